/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kind_words.h - the kinds of volumes, listed once. A new kind is one file, kinds/kind_WORD.c, and one row here; everything else
 * about it is in its struct volume_kind (volume/kind.h), but for what CSI must know of it (src/csi/type.c). flexdriver,
 * which has no C library, needs this list alone.
 *
 * Each row is X(word, has_device, owned, grows). word: its "type", and the name of drivers for it alone, VENDOR~WORD.
 * has_device: attached before it is mounted. owned: the filesystem is the volume's alone, so kubelet may give it a label
 * and a group; else the volume is a directory of it, and has no size. grows: there is something that expandvolume can grow.
 */
#ifndef FLEXGRAFT_VOLUME_KIND_WORDS_H
#define FLEXGRAFT_VOLUME_KIND_WORDS_H

/*
 * VOLUME_TYPES(X, SEPARATOR) - a row for each type, SEPARATOR between them. Where a volume has no "type", the first whose
 * guess() accepts its options wins.
 */
/* clang-format off */
#define VOLUME_TYPES(X, SEPARATOR) \
        X(lvm, true, true, true) SEPARATOR \
        X(loop, true, true, true) SEPARATOR \
        X(block, true, true, true) SEPARATOR \
        X(pmem, true, true, true) SEPARATOR \
        X(bind, false, false, false) SEPARATOR \
        X(tmpfs, false, true, false) SEPARATOR \
        X(nfs, false, false, false) SEPARATOR \
        X(ephemeral, false, true, false) SEPARATOR \
        X(directory, false, true, true)

/* Kinds that wrap a volume of another kind: an option asks for them, not "type". END follows each. */
#define VOLUME_WRAPPERS(X, END) \
        X(kata, true, true, false) END
/* clang-format on */

/* "lvm, loop, ...": a string literal. */
#define VOLUME_TYPE_WORD(word, has_device, owned, grows) #word
#define VOLUME_TYPE_LIST VOLUME_TYPES(VOLUME_TYPE_WORD, ", ")

#endif
