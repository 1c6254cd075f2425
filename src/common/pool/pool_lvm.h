/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_lvm.h - logical volumes, for the kinds of pool that consist of them: how they lie on the disks of their group,
 * how much room is left for such, and what can be done with one.
 */
#ifndef FLEXGRAFT_POOL_POOL_LVM_H
#define FLEXGRAFT_POOL_POOL_LVM_H

#include "block/lvm.h"
#include "pool/pool_kind.h"

/* How volumes of some type lie on disks. */
struct pool_lvm_layout {
        const char *type;
        unsigned stripes;  /* that hold data */
        unsigned copies;   /* of each */
        unsigned parity;   /* disks with neither */
        bool has_metadata; /* an extent on each disk */
        const char *thin_pool;
        unsigned stripe_kib;       /* 0: lvm's own choice */
        unsigned snapshot_percent; /* of the volume's size that a snapshot has room for */
};

/* pool_lvm_layout_of() - the layout that parameters ask for; its texts are borrowed from them. */
struct pool_lvm_layout pool_lvm_layout_of(const json_t *parameters);

/* pool_lvm_layout_describe() - its type, and over how many images it lies, or in which thin pool. Gives: ret_layout, of
 * POOL_LAYOUT_SIZE bytes. */
void pool_lvm_layout_describe(const char *type, unsigned images, const char *thin_pool, char *ret_layout);

/* As struct pool_kind has them: parameters, parameter_needs, check_parameters, fits and measure. */
extern const struct file_key pool_lvm_parameters[];
need_set pool_lvm_layout_needs(const json_t *parameters);
int pool_lvm_layout_check(const json_t *parameters, struct error *error);
bool pool_lvm_layout_fits(const struct pool_item *item, const json_t *parameters);
void pool_lvm_layout_note(const struct pool_item *item, json_t *parameters);
int pool_lvm_layout_measure(const struct config *config, const struct pool *pool, const json_t *parameters,
                            struct pool_measure *ret_measure, struct error *error);

/* Likewise: measure_snapshot. */
int pool_lvm_measure_snapshot(const struct config *config, const struct pool *pool, const json_t *parameters,
                              struct pool_measure *ret_measure, struct error *error);

/*
 * pool_lvm_snapshot_room() - what a snapshot of a volume of so many bytes, which is not thin, has for changes. At 100
 * percent each chunk of the volume can change, so that it is never full; lvm rounds it up to extents.
 */
uint64_t pool_lvm_snapshot_room(uint64_t size_bytes, unsigned percent);

/* Likewise: can_share, share, resume, copy, open_content, close_content and restore. */
int pool_lvm_can_share(const struct config *config, const struct pool *pool, const char *id, bool snapshot,
                       struct error *error);
int pool_lvm_share(const struct config *config, const struct pool *pool, const char *id,
                   const struct provision_record *record, struct error *error);
int pool_lvm_resume(const struct config *config, const struct pool *pool, const char *id, const char *to,
                    struct error *error);
int pool_lvm_copy(const struct config *config, const struct pool *pool, const char *id, const char *to, bool shares,
                  struct error *error);
int pool_lvm_open_content(const struct config *config, const struct pool *pool, const char *id, bool write,
                          struct pool_content *ret_content, struct error *error);
void pool_lvm_close_content(const struct config *config, const struct pool *pool, struct pool_content *content);
int pool_lvm_restore(const struct config *config, const struct pool *pool, const char *id, const char *from,
                     bool shares, bool *ret_torn, struct error *error);

/* pool_lvm_put_restored() - what a volume is called while it gets the content of another; PROVISION_ID_MAX bytes. */
#define POOL_LVM_RESTORED "flexgraft-restored-" /* no volume has such an id */
void pool_lvm_put_restored(const char *id, char *ret_id);

/* pool_lvm_remove_restored() - ensure that there is none, unless others made it. */
int pool_lvm_remove_restored(const struct pool *pool, const char *id, struct error *error);

/* Likewise: choose_id, look, check_unused, check_removable, is_blank, wipe, is_erased, erase, remove and each. */
void pool_lvm_choose_id(const struct pool *pool, const char *name, char *ret_id);
int pool_lvm_look(const struct config *config, const struct pool *pool, const char *id, struct pool_item *ret_item,
                  struct error *error);
int pool_lvm_check_removable(const struct config *config, const struct pool *pool, const char *id, struct error *error);
bool pool_lvm_is_looked_at(const struct config *config, const struct pool *pool, const char *id);
int pool_lvm_check_unused(const struct config *config, const struct pool *pool, const char *id, struct error *error);
int pool_lvm_is_blank(const struct config *config, const struct pool *pool, const char *id, struct error *error);
int pool_lvm_wipe(const struct config *config, const struct pool *pool, const char *id, struct error *error);
int pool_lvm_is_erased(const struct config *config, const struct pool *pool, const char *id, struct error *error);
int pool_lvm_erase(const struct config *config, const struct pool *pool, const char *id, bool begun,
                   struct error *error);
int pool_lvm_remove(const struct config *config, const struct pool *pool, const char *id, struct error *error);
int pool_lvm_each(const struct config *config, const struct pool *pool, pool_item_function *function, void *argument,
                  struct error *error);

/* pool_lvm_locate() - as locate; where the group is a region's, as locate_disks. */
int pool_lvm_locate(const struct config *config, const struct pool *pool, char *ret_location, struct error *error);

/* pool_lvm_check_disks() - note that a disk of the group is missing: then lvm changes nothing in it. */
void pool_lvm_check_disks(const struct lvm_group *group, struct pool_measure *measure);

/* pool_lvm_is_group() - whether a key's value is a volume group's name. */
bool pool_lvm_is_group(const json_t *value);

#endif
