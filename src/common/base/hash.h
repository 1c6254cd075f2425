/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hash.h - the small hash behind ids, locks and file names.
 */
#ifndef FLEXGRAFT_BASE_HASH_H
#define FLEXGRAFT_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/*
 * hash_bytes() - FNV-1a, 64 bit: stable across runs and machines, so that it may stand in file names. Continue a hash
 * by handing the last result as seed; start with HASH_SEED. Not for anything an attacker must not collide.
 */
#define HASH_SEED 0xcbf29ce484222325ULL
uint64_t hash_bytes(uint64_t seed, const void *bytes, size_t size);

/* hash_text() - the same of a text alone. hash_text_or_zero() - a number that stands for it, and is not 0; of NULL 0. */
uint64_t hash_text(const char *text);
uint64_t hash_text_or_zero(const char *text);

#endif
