/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_sums.h - what the images of a pool take, without asking each of them: pool-sums/DEVICE-INODE in the state
 * directory, named after the pool's own directory.
 *
 * ".sums" has the sum of the images' sizes, that of the blocks that they are promised and do not have yet, and the time
 * of the pool's directory (st_mtim) that they were true at, in this boot. Whatever makes or removes an image, by hand as well, changes that time, and whoever changes an image's size sets it
 * before: a sum of another time is not believed, and the images are counted anew. So it is after a kill or a power
 * failure at any moment. A size, or blocks, that were changed by hand are counted by volume-reconcile.
 *
 * The other names are marks, of the images whose blocks may change: those that were attached to a loop device since they
 * were last counted, whose user writes to them and can give blocks back, and those that share blocks with others. These
 * alone are asked for their blocks. A mark is a link to a number: what of the sum is that image's, so that what is true
 * now is the sum, and for each mark what the image is promised now less that number. A mark is there before its image
 * can change, and needs no lock; counting anew removes those that are not needed any more (pool_count()).
 */
#ifndef FLEXGRAFT_POOL_POOL_SUMS_H
#define FLEXGRAFT_POOL_POOL_SUMS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "pool/pool_count.h"
#include "state/state_dir.h"

/* pool_sums_ask() - what all images take. Counts them where no sum is known. anew: in any case. */
int pool_sums_ask(const char *state_dir, int pool_fd, bool anew, struct pool_use *ret_use, struct error *error);

/* pool_sums_look() - the same, and nothing is written: what is counted is not remembered. */
int pool_sums_look(const char *state_dir, int pool_fd, struct pool_use *ret_use, struct error *error);

#define POOL_TIME_SIZE 48

/* A change that is under way. */
struct pool_change {
        struct state sums;
        int files_fd; /* of the pool's; negative: it has none, or they could not be locked */
        int pool_fd;  /* borrowed */
        bool counted; /* the directory is a pool whose images were counted */
        bool known;   /* their sums */
        struct pool_use known_sums;
        char time[POOL_TIME_SIZE]; /* that the change gave the pool's directory */
};
#define POOL_CHANGE_NONE                                                                                               \
        {                                                                                                              \
                .sums = STATE_NONE, .files_fd = -EBADF                                                                 \
        }

/*
 * pool_change_begin() - before an image is made, removed, or gets another size; waits for other changes. A sum that
 * cannot be kept is no error: the images are counted then.
 * pool_change_renew() - right after the change made or removed a name in the directory: what others make or remove
 * there from then on, until the end and later, is seen.
 * pool_change_promised() - before an image is removed: what the sum of promised blocks has for it.
 * pool_change_unwatch() - the change removed an image: see pool_sums_watch().
 * pool_change_end() - after it: by how much the sum of sizes, and that of promised blocks, has grown, or shrunk. The
 * latter has not where the image is watched.
 * pool_change_release() - without pool_change_end() the images are counted the next time.
 */
void pool_change_begin(const char *state_dir, int pool_fd, struct pool_change *ret_change);
void pool_change_renew(struct pool_change *change);
uint64_t pool_change_promised(struct pool_change *change, const char *image);
void pool_change_unwatch(struct pool_change *change, const char *image);
void pool_change_end(struct pool_change *change, int64_t grown_bytes, int64_t promised_bytes);
void pool_change_release(struct pool_change *change);
#define cleanup_pool_change __attribute__((cleanup(pool_change_release)))

/*
 * pool_sums_watch() - the blocks of an image may change from now on. promised_bytes: pool_image_promise() before they
 * could; nothing changes where it is watched already.
 */
int pool_sums_watch(const char *state_dir, int pool_fd, const char *image, uint64_t promised_bytes,
                    struct error *error);

/*
 * pool_sums_keep() - note a pool's directory. pool_sums_remove_others() - remove what is known of all that were not
 * noted.
 */
void pool_sums_keep(int pool_fd, json_t *kept);
void pool_sums_remove_others(const char *state_dir, const json_t *kept);

#endif
