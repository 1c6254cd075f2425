/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/same.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/xattr.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/text.h"
#include "pool/pool.h"
#include "pool/pool_count.h"
#include "process/log.h"
#include "volume/provisioned.h"

#define NAMESPACE_SIZE sizeof((struct volume_record *)0)->namespace
#define ATTRIBUTE POOL_IMAGE_NAMESPACE
#define REMEDY_SIZE (PATH_MAX + 100)

int volume_check_same(struct volume_call *call, struct error *error)
{
        static char named[PATH_MAX];
        struct error ignored;
        int r;

        if (!call->recorded || call->record.device[0] == '\0' || call->kind->names_other == NULL)
                return 0;
        r = call->kind->names_other(call, named, error);
        if (r <= 0)
                return r;
        if (call->kind->look(call, &ignored) == 0)
                return 0; /* it is not attached any more */
        return fail_because(error, EBUSY, "find volume", call->request->name,
                            "a volume of this name is attached already, of %.1000s, and the options name %.1000s; give "
                            "the volume another name, or detach that one first",
                            call->record.source, named);
}

/* Whether the name of the image is the volume's, also where "image" says it. Another is for whom the policy says. */
static bool is_own_image(const struct volume_call *call)
{
        const char *image;
        struct error ignored;

        return call->kind->has_image && volume_request_option(call->request, "image", &image, &ignored) == 0 &&
               (image == NULL || pool_image_is_of(image, call->request->name));
}

/* How to give the volume to another namespace; "" it ends with detach. path: of what keeps it. REMEDY_SIZE bytes. */
static void put_remedy(const struct volume_call *call, const char *path, char *ret_remedy)
{
        cleanup_provision_record struct provision_record made = {};
        struct error ignored;
        char record[PATH_MAX];

        ret_remedy[0] = '\0';
        if (provision_record_find(call->config.state_dir, call->request->name, &made, &ignored) == 0 &&
            made.namespace[0] != '\0') {
                if (provision_record_path(call->config.state_dir, call->request->name, record))
                        (void)snprintf(ret_remedy, REMEDY_SIZE,
                                       "; to give it away, detach it and remove \"namespace\" from %s", record);
        } else if (path[0] != '\0' && call->kind != NULL && (is_own_image(call) || call->kind->open != NULL))
                (void)snprintf(ret_remedy, REMEDY_SIZE,
                               "; to give it away, detach it and run setfattr -x " ATTRIBUTE " %s", path);
}

static int fail_of_csi(const struct volume_call *call, const char *path, struct error *error)
{
        char remedy[REMEDY_SIZE];

        put_remedy(call, path, remedy);
        return fail_because(error, EACCES, "find volume", call->request->name,
                            "the volume is the CSI driver's, and pods get it by a PersistentVolume alone: give the "
                            "FlexVolume volume another name%.1000s",
                            remedy);
}

static int fail_namespace(const struct volume_call *call, const char *owner, const char *namespace, struct error *error)
{
        char remedy[REMEDY_SIZE];

        if (strcmp(owner, PROVISION_OF_CSI) == 0)
                return fail_of_csi(call, call->record.source, error);
        put_remedy(call, call->record.source, remedy);
        return fail_because(error, EACCES, "mount", call->request->name,
                            "the volume is of namespace %.64s, and the pod of namespace %.64s: inline volumes of "
                            "different namespaces need different names, or PersistentVolumes%.1000s",
                            owner, namespace, remedy);
}

static int open_image(const struct volume_call *call)
{
        return file_open_leased(AT_FDCWD, call->record.source, O_RDONLY | O_NOFOLLOW, 0);
}

/* What the image, or the directory, keeps: the name of its namespace, for the time after detach. Returns < 0: none. */
static ssize_t read_kept(int fd, char *ret_owner)
{
        ssize_t n = fgetxattr(fd, ATTRIBUTE, ret_owner, NAMESPACE_SIZE - 1);

        if (n >= 0)
                ret_owner[n] = '\0';
        return n;
}

/* fd: -1: there is nothing that keeps it. Returns 1, or 0: it cannot be kept there. */
static int check_kept(const struct volume_call *call, int fd, const char *namespace, struct error *error)
{
        char owner[NAMESPACE_SIZE];
        ssize_t n = fd < 0 ? -1 : read_kept(fd, owner);

        if (n >= 0)
                return strcmp(owner, namespace) == 0 ? 1 : fail_namespace(call, owner, namespace, error);
        if (fd >= 0 && errno == ENODATA)
                n = fsetxattr(fd, ATTRIBUTE, namespace, strlen(namespace), XATTR_CREATE);
        if (n < 0 && fd >= 0 && errno != ENOTSUP && errno != EROFS)
                return fail(error, errno, "write the namespace", call->record.source);
        return n >= 0;
}

/* The record of volume-create of what is attached, which then nobody else changes. Returns 1; 0 there is none. */
static int find_made(struct volume_call *call, struct provision_record *ret_made, struct error *error)
{
        int r = provisioned_hold(call, error);

        if (r == 0)
                r = provisioned_find_own(call, ret_made, error);
        return r == -ENOENT ? 0 : r < 0 ? r : 1;
}

static int write_made(const struct volume_call *call, struct provision_record *made, const char *namespace,
                      struct error *error)
{
        (void)text_copy(made->namespace, sizeof made->namespace, namespace); /* as long at most */
        return provision_record_write(&call->provisioned, made, FILE_DURABLE, error);
}

static int save_namespace(struct volume_call *call, const char *namespace, struct error *error)
{
        (void)text_copy(call->record.namespace, NAMESPACE_SIZE, namespace); /* as long at most */
        return call->recorded ? volume_call_save(call, FILE_ORDERED, error) : 0;
}

/* ---- CSI */

int volume_check_csi(struct volume_call *call, struct error *error)
{
        cleanup_provision_record struct provision_record made = {};
        const char *namespace = call->record.namespace;
        int r;

        if (call->driver[0] == '\0')
                return 0;
        if (namespace[0] == '\0') {
                r = provision_record_find(call->config.state_dir, call->request->name, &made, error);
                if (r < 0 && r != -ENOENT)
                        return r;
                namespace = made.namespace;
        }
        return strcmp(namespace, PROVISION_OF_CSI) == 0 ? fail_of_csi(call, /* path= */ "", error) : 0;
}

int volume_check_image_csi(struct volume_call *call, int fd, const char *path, struct error *error)
{
        cleanup_provision_record struct provision_record made = {};
        char owner[NAMESPACE_SIZE];
        int found;

        if (call->driver[0] == '\0' || read_kept(fd, owner) < 0 || strcmp(owner, PROVISION_OF_CSI) != 0)
                return 0;
        found = find_made(call, &made, error);
        if (found < 0)
                return found;
        /* a record that says whose it is now was asked by volume_check_csi() */
        return found && made.namespace[0] != '\0' ? 0 : fail_of_csi(call, path, error);
}

/*
 * What CSI says of the pod that a PersistentVolume is for, under a key that the API server lets nobody set: its namespace,
 * or "?" it is not known, or "-" no pod has it yet. NULL: the call is not CSI's, or for an inline volume.
 */
static int csi_namespace(const struct volume_call *call, const char **ret_namespace, struct error *error)
{
        int r = volume_request_option(call->request, "kubernetes.io/csi", ret_namespace, error);

        if (call->driver[0] != '\0')
                *ret_namespace = NULL;
        return r;
}

/* A namespace keeps its volume as long as CSI's pods are of it, too: it may go back to FlexVolume. "": nobody's. */
static bool keeps(const char *owner, const char *csi)
{
        return owner[0] != '\0' &&
               (strcmp(csi, PROVISION_OF_CSI) == 0 || strcmp(owner, PROVISION_OF_CSI) == 0 || strcmp(owner, csi) == 0);
}

/* The image, or the directory, is CSI's from now on. Where it had nobody's name, it may be one that can have none. */
static int keep_csi(const struct volume_call *call, int fd, bool was_kept, struct error *error)
{
        if (fsetxattr(fd, ATTRIBUTE, PROVISION_OF_CSI, strlen(PROVISION_OF_CSI), 0) == 0)
                return 0;
        if (was_kept || (errno != ENOTSUP && errno != EROFS && errno != EPERM))
                return fail(error, errno, "write the namespace", call->record.source);
        log_say("%s cannot keep that it is CSI's: %s", call->record.source, strerror(errno));
        return 0;
}

/* fd: of the image or directory, or -1. */
static int claim(struct volume_call *call, const char *csi, int fd, int found, struct provision_record *made,
                 struct error *error)
{
        char owner[NAMESPACE_SIZE] = "";
        ssize_t n = fd < 0 ? 0 : read_kept(fd, owner);
        int r = 0;

        if (n < 0 && errno != ENODATA && errno != ENOTSUP)
                return fail(error, errno, "read the namespace", call->record.source);
        if (n < 0)
                owner[0] = '\0';
        if (found && keeps(made->namespace, csi))
                return save_namespace(call, made->namespace, error);
        if ((!found || made->namespace[0] == '\0') && keeps(owner, csi))
                return save_namespace(call, owner, error);
        if (owner[0] != '\0' || (found && made->namespace[0] != '\0'))
                log_say("the volume %s was namespace %s's, and is a PersistentVolume in namespace %s now",
                        call->request->name, owner[0] != '\0' ? owner : made->namespace, csi);
        if (found)
                r = write_made(call, made, PROVISION_OF_CSI, error);
        if (r == 0 && fd >= 0 && (owner[0] != '\0' || !found))
                r = keep_csi(call, fd, owner[0] != '\0', error);
        return r < 0 ? r : save_namespace(call, PROVISION_OF_CSI, error);
}

int volume_claim_csi(struct volume_call *call, struct error *error)
{
        cleanup_provision_record struct provision_record made = {};
        cleanup_close int fd = -EBADF;
        const char *csi;
        int r = csi_namespace(call, &csi, error);
        int found;

        if (r < 0 || csi == NULL || keeps(call->record.namespace, csi))
                return r;
        found = find_made(call, &made, error);
        if (found < 0)
                return found;
        if (call->kind->has_image) {
                if (call->record.source[0] == '\0') /* an image tells once it is attached */
                        return found && keeps(made.namespace, csi) ? save_namespace(call, made.namespace, error) : 0;
                fd = open_image(call);
                if (fd < 0 && fd != -ENOENT)
                        return fail(error, -fd, OPERATION_OPEN_IMAGE, call->record.source);
        }
        return claim(call, csi, fd, found, &made, error);
}

/* ---- namespaces */

/* fd: as check_kept() has it. What the record of volume-create says goes before what the image or directory does. */
static int check_lasting(struct volume_call *call, int fd, int found, struct provision_record *made,
                         const char *namespace, struct error *error)
{
        int r;

        if (found && made->namespace[0] != '\0')
                return strcmp(made->namespace, namespace) == 0
                               ? 0
                               : fail_namespace(call, made->namespace, namespace, error);
        r = check_kept(call, fd, namespace, error);
        if (r != 0)
                return r < 0 ? r : 0;
        if (found)
                return write_made(call, made, namespace, error);
        if (provisioned_is_by_name(call))
                log_say("%s cannot keep the name of its namespace: it has no attribute and no record for it",
                        call->record.source);
        return 0;
}

int volume_check_directory(struct volume_call *call, int path_fd, struct error *error)
{
        cleanup_provision_record struct provision_record made = {};
        cleanup_close int fd = -EBADF;
        const char *namespace;
        const char *csi;
        int found;
        int r = volume_request_option(call->request, "kubernetes.io/pod.namespace", &namespace, error);

        if (r < 0 || (r = csi_namespace(call, &csi, error)) < 0)
                return r;
        if (namespace == NULL && (csi == NULL || keeps(call->record.namespace, csi)))
                return 0;
        fd = openat(path_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return fail(error, errno, "open volume", call->record.source);
        found = find_made(call, &made, error);
        if (found < 0)
                return found;
        return namespace != NULL ? check_lasting(call, fd, found, &made, namespace, error)
                                 : claim(call, csi, fd, found, &made, error);
}

int volume_check_namespace(struct volume_call *call, struct error *error)
{
        cleanup_provision_record struct provision_record made = {};
        cleanup_close int fd = -EBADF;
        const char *owner = call->record.namespace;
        const char *namespace;
        int found;
        int r = volume_request_option(call->request, "kubernetes.io/pod.namespace", &namespace, error);

        if (r < 0 || (!call->kind->has_device && call->kind->open == NULL))
                return r;
        if (namespace == NULL)
                return call->kind->has_device ? volume_claim_csi(call, error) : 0;
        if (strlen(namespace) >= NAMESPACE_SIZE)
                return fail(error, ENAMETOOLONG, "mount", "kubernetes.io/pod.namespace");
        if (owner[0] != '\0')
                return strcmp(owner, namespace) == 0 ? 0 : fail_namespace(call, owner, namespace, error);
        if (call->kind->has_device) { /* volume_check_directory() follows for a directory */
                found = find_made(call, &made, error);
                if (found < 0)
                        return found;
                if (is_own_image(call) || (found && call->kind->has_image))
                        fd = open_image(call);
                r = check_lasting(call, fd, found, &made, namespace, error);
        }
        return r < 0 ? r : save_namespace(call, namespace, error);
}

/* Not that of a record of volume-create: what has one is formatted once. Nor that an image is CSI's. */
void volume_forget_namespace(struct volume_call *call)
{
        cleanup_close int fd = -EBADF;
        char owner[NAMESPACE_SIZE];

        if (strcmp(call->record.namespace, PROVISION_OF_CSI) == 0)
                return;
        call->record.namespace[0] = '\0';
        if (!call->kind->has_image)
                return;
        fd = open_image(call);
        if (fd >= 0 && read_kept(fd, owner) >= 0 && strcmp(owner, PROVISION_OF_CSI) != 0)
                (void)fremovexattr(fd, ATTRIBUTE); /* most often there is none */
}
