/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remap_settings.h - what remap-daemon is told when it is started, as messages of its socket FD_SETTINGS
 * (daemon/keeper.h): a struct remap_settings.
 *
 * Before it a struct id_maps, where the source is a container's: that container's maps, by which the source has other ids
 * (src/remap/source_ids.h). A daemon of an earlier version, which would serve it with wrong owners, takes no message of
 * this size for its settings, and fails with EPROTO.
 */
#ifndef FLEXGRAFT_MOUNT_REMAP_SETTINGS_H
#define FLEXGRAFT_MOUNT_REMAP_SETTINGS_H

#include "process/id_ranges.h"

/*
 * What the kernel may remember of the files. Their names and attributes may be wrong for up to a second when others change
 * them: AUTO. Nobody else does: they stay right until somebody in the mount changes them.
 */
enum remap_cache { REMAP_CACHE_AUTO, REMAP_CACHE_ALWAYS };

/* The words for it, in this order. NULL ends it. */
extern const char *const remap_cache_words[];

/* The extended attribute of every file that remap-daemon serves which says the word. No list has it. */
#define REMAP_CACHE_ATTRIBUTE "flexgraft.cache"

struct remap_settings {
        struct id_maps maps; /* of the user namespace that the filesystem is of */
        enum remap_cache cache;
};

#endif
