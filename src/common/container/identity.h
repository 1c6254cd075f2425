/* SPDX-License-Identifier: Apache-2.0 */
/*
 * identity.h - what tells a container from every other one, before and after it is stopped, started again, or the node
 * reboots: what is wanted in a container (state/wish) is kept under it.
 *
 * An engine gives each container a full id that no other one ever has. A name is less: whoever creates a container
 * chooses it, and another may have it next. With a name goes the bundle's directory, by its inode and the time of its
 * birth, which nobody chooses.
 */
#ifndef FLEXGRAFT_CONTAINER_IDENTITY_H
#define FLEXGRAFT_CONTAINER_IDENTITY_H

#include <stdbool.h>

#include "container/reference.h"
#include "container/state_file.h"

#define CONTAINER_IDENTITY_MAX (CONTAINER_NAME_MAX + 64) /* terminated */

/*
 * container_identity_oci() - of a container of an OCI runtime: its full id, or "ID@INODE.BIRTH". bundle: "" unknown.
 * ret_identity: CONTAINER_IDENTITY_MAX bytes; "" where nothing tells it from a later container of this name. Returns 0,
 * or negative errno where the bundle is there and cannot be looked at.
 */
int container_identity_oci(const char *id, const char *bundle, char *ret_identity);

/* container_identity_make() - of a container that a request names, and that was found so; likewise. */
void container_identity_make(const struct container_reference *reference, const struct container_process *found,
                             char *ret_identity);

/*
 * container_identity_called() - whether it may be of a container that requests call so (container_reference_name()): by
 * its id, or by the beginning of a full one.
 */
bool container_identity_called(const char *identity, const char *name);

/*
 * container_identity_stem() - what an index has of an identity, and container_identity_stem_called() - of a name: if
 * container_identity_called(), then the identity's stem is the name, or the name's stem. Of CONTAINER_IDENTITY_MAX bytes.
 */
void container_identity_stem(const char *identity, char *ret_stem);
void container_identity_stem_called(const char *name, char *ret_stem);

#endif
