/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_program.h - a program of flexgraft's that is not for people: beside the one that we are or among the
 * driver's verbs, or where "make install" puts it.
 */
#ifndef FLEXGRAFT_PROCESS_OWN_PROGRAM_H
#define FLEXGRAFT_PROCESS_OWN_PROGRAM_H

#include <stdbool.h>

/* program_find_sibling() - Gives: ret_path, PATH_MAX bytes. False: it is nowhere. */
bool program_find_sibling(const char *name, char *ret_path);

#endif
