/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuse_library.h - libfuse's low-level API, in the one version that is used here.
 */
#ifndef FLEXGRAFT_REMAP_FUSE_LIBRARY_H
#define FLEXGRAFT_REMAP_FUSE_LIBRARY_H

#define FUSE_USE_VERSION 314
#include <fuse3/fuse_lowlevel.h>

#endif
