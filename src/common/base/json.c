/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"

int json_file_load(int dirfd, const char *path, json_type type, json_t **ret_value, struct error *error)
{
        cleanup_close int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        json_error_t parse;
        struct stat st;
        json_t *value;
        char *text;
        ssize_t n;

        if (fd < 0)
                return fail(error, errno, "open", path);
        if (fstat(fd, &st) < 0)
                return fail(error, errno, "fstat", path);
        if (!S_ISREG(st.st_mode))
                return fail_because(error, EBADMSG, "read", path, "not a regular file");
        if (st.st_size > (off_t)JSON_FILE_MAX_BYTES)
                return fail(error, EFBIG, "read", path);
        text = malloc((size_t)st.st_size + 4096); /* it may grow a little meanwhile */
        if (text == NULL)
                return fail(error, ENOMEM, "read", path);
        n = file_read_fd(fd, text, (size_t)st.st_size + 4096);
        if (n < 0) {
                free(text);
                return fail(error, (int)-n, "read", path);
        }
        value = json_loadb(text, (size_t)n, JSON_REJECT_DUPLICATES, &parse);
        free(text);
        if (value == NULL)
                return fail_because(error, EBADMSG, "parse", path, "line %d: %s", parse.line, parse.text);
        if (type == JSON_OBJECT ? !json_is_object(value) : !json_is_array(value)) {
                json_decref(value);
                return fail_because(error, EBADMSG, "parse", path, "line 1: not a JSON %s",
                                    type == JSON_OBJECT ? "object" : "array");
        }
        *ret_value = value;
        return 0;
}

int json_file_replace(int dirfd, const char *name, const json_t *value, enum file_durability durability)
{
        char *text = value != NULL ? json_dumps(value, JSON_COMPACT) : NULL;
        int r = text != NULL ? file_replace(dirfd, name, text, strlen(text), durability) : -ENOMEM;

        free(text);
        return r;
}
