/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.h - a volume that volume-create made or adopted, or the driver from "size": one JSON file per volume, in
 * "provisioned" of the state directory. It holds intent; what is in a pool, the pool says.
 */
#ifndef FLEXGRAFT_POOL_RECORD_H
#define FLEXGRAFT_POOL_RECORD_H

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "state/record.h"
#include "state/state_dir.h"

#define POOL_NAME_MAX 129          /* terminated */
#define PROVISION_NAME_MAX 256     /* terminated */
#define PROVISION_ID_MAX 256       /* terminated */
#define PROVISION_IDENTITY_MAX 48  /* terminated */
#define PROVISION_TARGET_MAX 256   /* terminated */
#define PROVISION_LOCATION_MAX 320 /* terminated */

enum provision_lifecycle {
        PROVISION_CREATING, /* perhaps there in part */
        PROVISION_CREATED,
        PROVISION_DELETING, /* perhaps gone */
};

/* provision_lifecycle_word() - "created". */
const char *provision_lifecycle_word(enum provision_lifecycle lifecycle);

/* In place of a namespace: pods get the volume by a PersistentVolume of CSI, and none by its name alone. */
#define PROVISION_OF_CSI "-"

struct provision_record {
        char name[PROVISION_NAME_MAX];
        char pool[POOL_NAME_MAX];
        char pool_type[16];
        char location[PROVISION_LOCATION_MAX]; /* where its pool was then (pool_put_location()); "": not noted */
        char profile[PROVISION_NAME_MAX];      /* "": none */
        char target_type[8];                   /* "mount" or "block" */
        char fs_type[32];                      /* "": not given */
        char access_mode[48];                  /* "": not given */
        char reclaim_policy[16];               /* "delete", "retain" or "recycle" */
        char id[PROVISION_ID_MAX];             /* what it is called in its pool */
        char identity[PROVISION_IDENTITY_MAX]; /* tells it from another of the same id; "" */
        uint64_t size_bytes;
        uint64_t asked_bytes; /* before it was rounded up; 0: not given (adopted) */
        bool adopted;         /* it was there before */
        bool keeps_content;   /* it is not erased when it is deleted */
        bool formatted;       /* it has had a filesystem: that it is blank means that its content is lost */
        bool grows;           /* its content is that of a smaller one: its filesystem grows when it is mounted */
        bool has_kata_image;  /* its filesystem has had an image for virtual machines, likewise */
        char snapshot_of[PROVISION_NAME_MAX]; /* it is a snapshot of that volume, and is never attached; "" */
        char copy_of[PROVISION_NAME_MAX];     /* it was made as a copy of that; "" */
        char restoring[PROVISION_NAME_MAX];   /* content of that snapshot is being put back; "" */
        uint64_t taken;                       /* when a snapshot was, in seconds since 1970; 0 */
        uint64_t source_born;                 /* "born" of its volume then; 0: not noted */
        uint64_t born; /* when it was made or adopted, in nanoseconds since 1970: no other one of its name was; 0 */
        enum provision_lifecycle lifecycle;
        char target[PROVISION_TARGET_MAX]; /* where a container gets it as a device (CDI); "": /volumes/NAME */
        char driver[PROVISION_NAME_MAX];   /* "vendor~driver" that made it from "size"; "": a volume tool did */
        char namespace[64];  /* of Kubernetes, if the pool cannot keep it (volume/same.h); or PROVISION_OF_CSI; "" */
        json_t *parameters;  /* an object of strings; owned */
        json_t *mount_flags; /* an array of strings; owned */
};

extern const struct record_table provision_record_table;

/* provision_record_open() - the directory of records. Errors: those of state_open(). */
int provision_record_open(const char *state_dir, bool create, struct state *ret_state, struct error *error);

/*
 * provision_record_read() - Gives: ret_record, released by provision_record_release(), also after a failure.
 * Errors: ENOENT, without a message; EPROTONOSUPPORT a record of another version, which is kept. A file that is
 * damaged, or of another volume, is renamed to FILE.bad, logged, and counts as absent.
 */
int provision_record_read(const struct state *state, const char *name, struct provision_record *ret_record,
                          struct error *error);

/*
 * provision_record_forget_read() - that the next provision_record_read() reads the file: after the lock of a record was
 * taken. Without, what was read last is told again while its file is the same one, of the same size and time of change.
 * provision_record_lock() - take the lock of a volume's record (state_lock()), and forget what was read before.
 */
void provision_record_forget_read(void);
int provision_record_lock(struct state *state, const char *name, struct error *error);

/* provision_record_find() - the same, where the state directory may be absent. */
int provision_record_find(const char *state_dir, const char *name, struct provision_record *ret_record,
                          struct error *error);

/* provision_record_path() - the file of a record; PATH_MAX bytes. Returns whether they are enough. */
bool provision_record_path(const char *state_dir, const char *name, char *ret_path);

/* provision_record_exists() - whether there is a file of its name, damaged or not. */
bool provision_record_exists(const char *state_dir, const char *name);

/* provision_record_write() - replace it, whole. What of it survives a power cut: base/file.h. */
int provision_record_write(const struct state *state, const struct provision_record *record,
                           enum file_durability durability, struct error *error);

/* provision_record_remove() - ensure that there is none. id: of the record; NULL: there was none. */
int provision_record_remove(const struct state *state, const char *name, const char *id, struct error *error);

/*
 * provision_record_each() - call function() with every record until it returns other than 0, which is the result. For a
 * record of another version record is NULL. stem: the volume's name, as volume_record_stem() makes it. set_aside: have
 * damaged ones renamed; false: pass over them, and change nothing.
 */
typedef int provision_record_function(const struct provision_record *record, const char *stem, void *argument,
                                      struct error *error);
int provision_record_each(const struct state *state, bool set_aside, provision_record_function *function,
                          void *argument, struct error *error);

void provision_record_release(struct provision_record *record);
#define cleanup_provision_record __attribute__((cleanup(provision_record_release)))

/* provision_record_tidy() - remove temporary files that killed processes left (record_tidy()). */
void provision_record_tidy(struct state *state);

/*
 * ---- the records of volumes by what they are called in their pools: entries in the index (state/use_index.h),
 * so that whose a disk is costs the same however many volumes there are.
 *
 * The key is the id alone: pools that are one location under several names have the same ids, and the location of a pool may
 * change. An entry is made before its record is written, and removed after it. One whose record has another id says nothing.
 */

/* record_index_add() - before a record is written to file. record_index_remove() - remove the record, then its entry. */
int record_index_add(const struct state *records, const char *id, const char *file, struct error *error);
int record_index_remove(const struct state *records, const char *id, const char *file);

/* ---- record_find.c: the records of volumes of one id, by the index */

/*
 * record_find_each() - call function() with every record of that id, until it returns other than 0, which is the result.
 * Records from before there was an index are entered first, once.
 */
int record_find_each(const struct state *records, const char *id, provision_record_function *function, void *argument,
                     struct error *error);

/* record_find_repair() - make the entries agree with the records. Reads all of them; volume-reconcile does it. */
int record_find_repair(struct state *records, struct error *error);

#endif
