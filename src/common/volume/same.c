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

/* Whether the volume's name alone says which image it is. One that "image" names is for whom the policy says. */
static bool is_own_image(const struct volume_call *call)
{
        const char *image;
        struct error ignored;

        return call->kind == &kind_loop && volume_request_option(call->request, "image", &image, &ignored) == 0 &&
               image == NULL;
}

/* How to give the volume to another namespace; "" it ends with detach. REMEDY_SIZE bytes. */
static void put_remedy(const struct volume_call *call, char *ret_remedy)
{
        cleanup_provision_record struct provision_record made = {};
        struct error ignored;
        char path[PATH_MAX];

        ret_remedy[0] = '\0';
        if (provisioned_find_own(call, &made, &ignored) == 0 && made.namespace[0] != '\0') {
                if (provision_record_path(call->config.state_dir, call->request->name, path))
                        (void)snprintf(ret_remedy, REMEDY_SIZE,
                                       "; to give it away, detach it and remove \"namespace\" from %s", path);
        } else if (is_own_image(call) || call->kind->open != NULL)
                (void)snprintf(ret_remedy, REMEDY_SIZE,
                               "; to give it away, detach it and run setfattr -x " ATTRIBUTE " %s",
                               call->record.source);
}

static int fail_namespace(const struct volume_call *call, const char *owner, const char *namespace, struct error *error)
{
        char remedy[REMEDY_SIZE];

        put_remedy(call, remedy);
        return fail_because(error, EACCES, "mount", call->request->name,
                            "the volume is of namespace %.64s, and the pod of namespace %.64s: inline volumes of "
                            "different namespaces need different names, or PersistentVolumes%.1000s",
                            owner, namespace, remedy);
}

/* The image, or the directory, keeps the name of its namespace, for the time after detach. Returns 0: it cannot. */
static int check_kept(const struct volume_call *call, int fd, const char *namespace, struct error *error)
{
        char owner[NAMESPACE_SIZE];
        ssize_t n = fd < 0 ? -1 : fgetxattr(fd, ATTRIBUTE, owner, sizeof owner - 1);

        if (n >= 0) {
                owner[n] = '\0';
                return strcmp(owner, namespace) == 0 ? 1 : fail_namespace(call, owner, namespace, error);
        }
        if (fd >= 0 && errno == ENODATA)
                n = fsetxattr(fd, ATTRIBUTE, namespace, strlen(namespace), XATTR_CREATE);
        if (n < 0 && fd >= 0 && errno != ENOTSUP && errno != EROFS)
                return fail(error, errno, "write the namespace", call->record.source);
        return n >= 0;
}

static int check_image(const struct volume_call *call, const char *namespace, struct error *error)
{
        cleanup_close int fd = file_open_leased(AT_FDCWD, call->record.source, O_RDONLY | O_NOFOLLOW, 0);

        return check_kept(call, fd, namespace, error);
}

/* What has no attribute for it, as a logical volume: its record of volume-create keeps the name. */
static int check_record(struct volume_call *call, const char *namespace, struct error *error)
{
        cleanup_provision_record struct provision_record made = {};
        int r = call->provisioned.dir_fd >= 0 ? 0 : provisioned_hold(call, error);

        if (r < 0)
                return r;
        r = provisioned_find_own(call, &made, error);
        if (r == -ENOENT) {
                log_say("%s cannot keep the name of its namespace: it has no attribute and no record for it",
                        call->record.source);
                return 0;
        }
        if (r < 0)
                return r;
        if (made.namespace[0] != '\0')
                return strcmp(made.namespace, namespace) == 0 ? 0
                                                              : fail_namespace(call, made.namespace, namespace, error);
        (void)text_copy(made.namespace, sizeof made.namespace, namespace); /* as long at most */
        return provision_record_write(&call->provisioned, &made, FILE_DURABLE, error);
}

int volume_check_directory(struct volume_call *call, int path_fd, struct error *error)
{
        cleanup_close int fd = -EBADF;
        const char *namespace;
        int r = volume_request_option(call->request, "kubernetes.io/pod.namespace", &namespace, error);

        if (r < 0 || namespace == NULL)
                return r;
        fd = openat(path_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return fail(error, errno, "open volume", call->record.source);
        r = check_kept(call, fd, namespace, error);
        return r == 0 ? check_record(call, namespace, error) : r < 0 ? r : 0;
}

int volume_check_namespace(struct volume_call *call, struct error *error)
{
        struct volume_record *record = &call->record;
        const char *namespace;
        int r = volume_request_option(call->request, "kubernetes.io/pod.namespace", &namespace, error);

        if (r < 0 || namespace == NULL || (!call->kind->has_device && call->kind->open == NULL))
                return r;
        if (strlen(namespace) >= NAMESPACE_SIZE)
                return fail(error, ENAMETOOLONG, "mount", "kubernetes.io/pod.namespace");
        if (record->namespace[0] != '\0' && strcmp(record->namespace, namespace) != 0)
                return fail_namespace(call, record->namespace, namespace, error);
        r = is_own_image(call) ? check_image(call, namespace, error) : 0;
        if (r < 0 || record->namespace[0] != '\0')
                return r < 0 ? r : 0;
        /* volume_check_directory() follows for a directory */
        if (r == 0 && call->kind->has_device && provisioned_is_by_name(call) &&
            (r = check_record(call, namespace, error)) < 0)
                return r;
        (void)text_copy(record->namespace, sizeof record->namespace, namespace);
        return call->recorded ? volume_call_save(call, FILE_ORDERED, error) : 0;
}

/* Not that of a record of volume-create: what has one is formatted once. */
void volume_forget_namespace(struct volume_call *call)
{
        cleanup_close int fd = -EBADF;

        call->record.namespace[0] = '\0';
        if (call->kind != &kind_loop)
                return;
        fd = file_open_leased(AT_FDCWD, call->record.source, O_RDONLY | O_NOFOLLOW, 0);
        if (fd >= 0)
                (void)fremovexattr(fd, ATTRIBUTE); /* most often there is none */
}
