/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuse_library.h - libfuse's low-level half, in the one version of its interface that is used here.
 */
#ifndef FLEXGRAFT_TRANSLATOR_FUSE_LIBRARY_H
#define FLEXGRAFT_TRANSLATOR_FUSE_LIBRARY_H

#define FUSE_USE_VERSION 314
#include <fuse3/fuse_lowlevel.h>

#endif
