/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_lvm_layout.h - how logical volumes lie on the disks of their group, and how much room is left for such.
 */
#ifndef FLEXGRAFT_PROVISION_POOL_LVM_LAYOUT_H
#define FLEXGRAFT_PROVISION_POOL_LVM_LAYOUT_H

#include "provision/pool_kind.h"

/* How volumes of some type lie on disks. */
struct pool_lvm_layout {
        const char *type;
        unsigned stripes; /* that hold data */
        unsigned copies;  /* of each */
        unsigned parity;  /* disks with neither */
        bool keeps_notes; /* an extent of metadata on each disk */
        const char *thin_pool;
        const char *stripe_size; /* NULL: lvm's own choice */
};

/* pool_lvm_layout_of() - the layout that parameters ask for; its texts are borrowed from them. */
struct pool_lvm_layout pool_lvm_layout_of(const json_t *parameters);

/* pool_lvm_layout_describe() - its type, and over how many images it lies, or in which thin pool. Gives: ret_layout, of
 * POOL_LAYOUT_SIZE bytes. */
void pool_lvm_layout_describe(const char *type, unsigned images, const char *thin_pool, char *ret_layout);

/* As struct pool_kind has them: check_parameters, fits and measure. */
int pool_lvm_layout_check(const json_t *parameters, struct error *error);
bool pool_lvm_layout_fits(const struct pool_item *item, const json_t *parameters);
int pool_lvm_layout_measure(const struct config *config, const struct pool *pool, const json_t *parameters,
                            struct pool_measure *ret_measure, struct error *error);

#endif
