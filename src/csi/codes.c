/* SPDX-License-Identifier: Apache-2.0 */
#include "codes.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#define ERRNO_MAX 133 /* EHWPOISON, the last of Linux */

static const struct {
        int error;
        enum grpc_code code;
} rows[] = {
        { ENOENT, GRPC_NOT_FOUND },
        { ENODEV, GRPC_NOT_FOUND },
        { ENXIO, GRPC_NOT_FOUND },
        { EEXIST, GRPC_ALREADY_EXISTS },
        { EINVAL, GRPC_INVALID_ARGUMENT },
        { ENAMETOOLONG, GRPC_INVALID_ARGUMENT },
        { E2BIG, GRPC_INVALID_ARGUMENT },
        { ENOTDIR, GRPC_INVALID_ARGUMENT },
        { EISDIR, GRPC_INVALID_ARGUMENT },
        { ELOOP, GRPC_INVALID_ARGUMENT },
        { ERANGE, GRPC_OUT_OF_RANGE },
        { EFBIG, GRPC_OUT_OF_RANGE },
        { EOVERFLOW, GRPC_OUT_OF_RANGE },
        { ENOSPC, GRPC_RESOURCE_EXHAUSTED },
        { EDQUOT, GRPC_RESOURCE_EXHAUSTED },
        { ENOMEM, GRPC_RESOURCE_EXHAUSTED },
        { EMFILE, GRPC_RESOURCE_EXHAUSTED },
        { ENFILE, GRPC_RESOURCE_EXHAUSTED },
        { EBUSY, GRPC_FAILED_PRECONDITION },
        { ENOTEMPTY, GRPC_FAILED_PRECONDITION },
        { EROFS, GRPC_FAILED_PRECONDITION },
        { ENOPKG, GRPC_FAILED_PRECONDITION },
        { ETIMEDOUT, GRPC_ABORTED },
        { EAGAIN, GRPC_ABORTED },
        { EINTR, GRPC_ABORTED },
        { ECANCELED, GRPC_ABORTED },
        { EINPROGRESS, GRPC_ABORTED },
        { EALREADY, GRPC_ABORTED },
        { EPERM, GRPC_PERMISSION_DENIED },
        { EACCES, GRPC_PERMISSION_DENIED },
        { EOPNOTSUPP, GRPC_UNIMPLEMENTED },
        { ENOSYS, GRPC_UNIMPLEMENTED },
        { EHOSTUNREACH, GRPC_UNAVAILABLE },
        { EHOSTDOWN, GRPC_UNAVAILABLE },
        { ENETUNREACH, GRPC_UNAVAILABLE },
        { ECONNREFUSED, GRPC_UNAVAILABLE },
        { ECONNRESET, GRPC_UNAVAILABLE },
};

enum grpc_code csi_code(int error)
{
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
                if (rows[i].error == error)
                        return rows[i].code;
        return GRPC_INTERNAL;
}

int csi_errno(const char *name)
{
        for (int error = 1; error <= ERRNO_MAX; error++) {
                const char *known = strerrorname_np(error);

                if (known != NULL && strcmp(known, name) == 0)
                        return error;
        }
        return 0;
}
