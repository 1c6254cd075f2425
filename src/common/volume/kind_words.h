/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kind_words.h - the types of volumes, listed once: for the table of kinds, the options' table, and flexdriver, which
 * has no C library.
 */
#ifndef FLEXGRAFT_VOLUME_KIND_WORDS_H
#define FLEXGRAFT_VOLUME_KIND_WORDS_H

/*
 * VOLUME_TYPES(X, SEPARATOR) - X(word, has_device, owned) for each type, SEPARATOR between them. has_device: attached
 * before it is mounted. owned: the filesystem is the volume's alone, so kubelet may give it a label and a group.
 */
/* clang-format off */
#define VOLUME_TYPES(X, SEPARATOR) \
        X(loop, true, true) SEPARATOR \
        X(block, true, true) SEPARATOR \
        X(bind, false, false) SEPARATOR \
        X(tmpfs, false, true) SEPARATOR \
        X(nfs, false, false) SEPARATOR \
        X(lvm, true, true) SEPARATOR \
        X(pmem, true, true)
/* clang-format on */

/* "loop, block, ...": a string literal. */
#define VOLUME_TYPE_WORD(word, has_device, owned) #word
#define VOLUME_TYPE_LIST VOLUME_TYPES(VOLUME_TYPE_WORD, ", ")

#endif
