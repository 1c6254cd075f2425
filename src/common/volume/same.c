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

#define NAMESPACE_SIZE sizeof((struct volume_record *)0)->namespace
#define ATTRIBUTE POOL_IMAGE_NAMESPACE

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

static int fail_namespace(const struct volume_call *call, const char *owner, const char *namespace, struct error *error)
{
        char remedy[PATH_MAX + 100] = "";

        if (is_own_image(call) || call->kind->open != NULL)
                (void)snprintf(remedy, sizeof remedy,
                               "; to give it away, detach it and run setfattr -x " ATTRIBUTE " %s",
                               call->record.source);
        return fail_because(error, EACCES, "mount", call->request->name,
                            "the volume is of namespace %.64s, and the pod of namespace %.64s: inline volumes of "
                            "different namespaces need different names, or PersistentVolumes%.1000s",
                            owner, namespace, remedy);
}

/* The image, or the directory, keeps the name of its namespace, for the time after detach. */
static int check_kept(const struct volume_call *call, int fd, const char *namespace, struct error *error)
{
        char owner[NAMESPACE_SIZE];
        ssize_t n = fd < 0 ? -1 : fgetxattr(fd, ATTRIBUTE, owner, sizeof owner - 1);

        if (n >= 0) {
                owner[n] = '\0';
                return strcmp(owner, namespace) == 0 ? 0 : fail_namespace(call, owner, namespace, error);
        }
        if (fd >= 0 && errno == ENODATA)
                n = fsetxattr(fd, ATTRIBUTE, namespace, strlen(namespace), XATTR_CREATE);
        if (n < 0 && fd >= 0 && errno != ENOTSUP && errno != EROFS)
                return fail(error, errno, "write the namespace", call->record.source);
        if (n < 0)
                log_say("%s cannot keep the name of its namespace: %s", call->record.source, strerrordesc_np(errno));
        return 0;
}

static int check_image(const struct volume_call *call, const char *namespace, struct error *error)
{
        cleanup_close int fd = file_open_leased(AT_FDCWD, call->record.source, O_RDONLY | O_NOFOLLOW, 0);

        return check_kept(call, fd, namespace, error);
}

int volume_check_directory(const struct volume_call *call, int path_fd, struct error *error)
{
        cleanup_close int fd = -EBADF;
        const char *namespace;
        int r = volume_request_option(call->request, "kubernetes.io/pod.namespace", &namespace, error);

        if (r < 0 || namespace == NULL)
                return r;
        fd = openat(path_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return fd < 0 ? fail(error, errno, "open volume", call->record.source) : check_kept(call, fd, namespace, error);
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
        if (is_own_image(call) && (r = check_image(call, namespace, error)) < 0)
                return r;
        if (record->namespace[0] != '\0')
                return 0;
        (void)text_copy(record->namespace, sizeof record->namespace, namespace);
        return call->recorded ? volume_call_save(call, FILE_ORDERED, error) : 0;
}

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
