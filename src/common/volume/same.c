/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/same.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/xattr.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/text.h"
#include "process/log.h"
#include "provision/pool.h"
#include "provision/pool_count.h"
#include "volume/provisioned.h"

#define NAMESPACE_SIZE sizeof((struct volume_record *)0)->namespace
#define ATTRIBUTE POOL_IMAGE_NAMESPACE
#define REMEDY_SIZE (PATH_MAX + 100)

int volume_check_same(struct volume_call *call, struct error *error)
{
        static char named[PATH_MAX]; /* static, for its size */
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
        const size_t length = strlen(call->request->name);
        const char *image;
        struct error ignored;

        return call->kind == &kind_loop && volume_request_option(call->request, "image", &image, &ignored) == 0 &&
               (image == NULL ||
                (strncmp(image, call->request->name, length) == 0 && strcmp(image + length, POOL_IMAGE_SUFFIX) == 0));
}

/* How to give the volume to another namespace; "" it ends with detach. REMEDY_SIZE bytes. */
static void put_remedy(const struct volume_call *call, char *ret_remedy)
{
        cleanup_provision_record struct provision_record made = {};
        struct error ignored;
        char path[PATH_MAX];

        ret_remedy[0] = '\0';
        if (provision_record_find(call->config.state_dir, call->request->name, &made, &ignored) == 0 &&
            made.namespace[0] != '\0') {
                if (provision_record_path(call->config.state_dir, call->request->name, path))
                        (void)snprintf(ret_remedy, REMEDY_SIZE,
                                       "; to give it away, detach it and remove \"namespace\" from %s", path);
        } else if (call->kind != NULL && (is_own_image(call) || call->kind->open != NULL))
                (void)snprintf(ret_remedy, REMEDY_SIZE,
                               "; to give it away, detach it and run setfattr -x " ATTRIBUTE " %s",
                               call->record.source);
}

static int fail_of_csi(const struct volume_call *call, struct error *error)
{
        char remedy[REMEDY_SIZE];

        put_remedy(call, remedy);
        return fail_because(error, EACCES, "find volume", call->request->name,
                            "the volume is the CSI driver's, and pods get it by a PersistentVolume alone: give the "
                            "FlexVolume volume another name%.1000s",
                            remedy);
}

static int fail_namespace(const struct volume_call *call, const char *owner, const char *namespace, struct error *error)
{
        char remedy[REMEDY_SIZE];

        if (strcmp(owner, PROVISION_OF_CSI) == 0)
                return fail_of_csi(call, error);
        put_remedy(call, remedy);
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

/* ---- CSI, whose calls have no driver's name, as those have that people make */

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
        return strcmp(namespace, PROVISION_OF_CSI) == 0 ? fail_of_csi(call, error) : 0;
}

/* What is a namespace's since a FlexVolume pod had it stays its own. fd: of the image or directory. */
static int claim(struct volume_call *call, int fd, int found, struct provision_record *made, struct error *error)
{
        char owner[NAMESPACE_SIZE];
        ssize_t n = fd < 0 ? 0 : read_kept(fd, owner);
        int r = 0;

        if (n > 0)
                return save_namespace(call, owner, error);
        if (n < 0 && errno != ENODATA && errno != ENOTSUP)
                return fail(error, errno, "read the namespace", call->record.source);
        if (found)
                r = write_made(call, made, PROVISION_OF_CSI, error);
        else if (n < 0 && errno == ENODATA &&
                 fsetxattr(fd, ATTRIBUTE, PROVISION_OF_CSI, strlen(PROVISION_OF_CSI), XATTR_CREATE) < 0 &&
                 errno != EROFS)
                r = fail(error, errno, "write the namespace", call->record.source);
        return r < 0 ? r : save_namespace(call, PROVISION_OF_CSI, error);
}

/* Whether the call is CSI's, and not for an inline volume. */
static int claims(const struct volume_call *call, struct error *error)
{
        const char *namespace;
        int r = volume_request_option(call->request, "kubernetes.io/pod.namespace", &namespace, error);

        return r < 0 ? r : call->driver[0] == '\0' && namespace == NULL;
}

int volume_claim_csi(struct volume_call *call, struct error *error)
{
        cleanup_provision_record struct provision_record made = {};
        cleanup_close int fd = -EBADF;
        int r = call->record.namespace[0] != '\0' ? 0 : claims(call, error);
        int found;

        if (r <= 0)
                return r;
        found = find_made(call, &made, error);
        if (found < 0)
                return found;
        if (found && made.namespace[0] != '\0')
                return save_namespace(call, made.namespace, error);
        if (call->kind == &kind_loop) {
                if (call->record.source[0] == '\0')
                        return 0; /* once it is attached */
                fd = open_image(call);
                if (fd < 0)
                        return fail(error, -fd, "open image", call->record.source);
        }
        return claim(call, fd, found, &made, error);
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
        int found;
        int r = volume_request_option(call->request, "kubernetes.io/pod.namespace", &namespace, error);

        if (r < 0 || (namespace == NULL && (call->driver[0] != '\0' || call->record.namespace[0] != '\0')))
                return r;
        fd = openat(path_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return fail(error, errno, "open volume", call->record.source);
        found = find_made(call, &made, error);
        if (found < 0)
                return found;
        if (namespace != NULL)
                return check_lasting(call, fd, found, &made, namespace, error);
        return found && made.namespace[0] != '\0' ? save_namespace(call, made.namespace, error)
                                                  : claim(call, fd, found, &made, error);
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
                if (is_own_image(call) || (found && call->kind == &kind_loop))
                        fd = open_image(call);
                r = check_lasting(call, fd, found, &made, namespace, error);
        }
        return r < 0 ? r : save_namespace(call, namespace, error);
}

/* Not that of a record of volume-create: what has one is formatted once. */
void volume_forget_namespace(struct volume_call *call)
{
        cleanup_close int fd = -EBADF;

        call->record.namespace[0] = '\0';
        if (call->kind != &kind_loop)
                return;
        fd = open_image(call);
        if (fd >= 0)
                (void)fremovexattr(fd, ATTRIBUTE); /* most often there is none */
}
