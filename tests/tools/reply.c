/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reply COMMAND - what nearly every test asks of a reply, at a fortieth of what jq takes to start. Standard input is the reply.
 *
 *   reply object                one line with one JSON object
 *   reply success               and its status is Success
 *   reply failure [ERRNO]       and it is a Failure with a whole error (of this ERRNO)
 *   reply not-understood [KEY]  and it is a Failure to parse the request (that names KEY)
 *   reply kubelet EXIT          and it has the types and fields of DriverStatus, and EXIT is what the verb has to end with
 *   reply get EXPRESSION        what `jq -r EXPRESSION` prints, for .name[0].name and .name | length
 *   reply is EXPRESSION TEXT    and it is that text, without newlines at its end
 *
 * Exit status: 0, 1 if it is not so, 2 if jq has to be asked.
 */
#include <ctype.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *text_of(const json_t *value, const char *key)
{
        const char *text = json_string_value(json_object_get(value, key));

        return text ? text : "";
}

static bool is_errno(const char *text)
{
        if (text[0] != 'E' || !text[1])
                return false;
        for (text++; *text; text++)
                if (!isupper((unsigned char)*text) && !isdigit((unsigned char)*text))
                        return false;
        return true;
}

static bool is_failure(const json_t *reply, const char *errnum)
{
        const json_t *error = json_object_get(reply, "error");

        return strcmp(text_of(reply, "status"), "Failure") == 0 && *text_of(reply, "message") &&
               *text_of(error, "operation") && is_errno(text_of(error, "errno")) && json_object_get(error, "subject") &&
               json_object_get(error, "where") && (!*errnum || strcmp(text_of(error, "errno"), errnum) == 0);
}

static bool is_not_understood(const json_t *reply, const char *key)
{
        const json_t *error = json_object_get(reply, "error");

        return strcmp(text_of(reply, "status"), "Failure") == 0 &&
               strcmp(text_of(error, "operation"), "parse request") == 0 &&
               strcmp(text_of(error, "errno"), "EINVAL") == 0 &&
               (!*key || (strcmp(text_of(error, "subject"), key) == 0 && strstr(text_of(reply, "message"), key)));
}

/* Kubernetes' pkg/volume/flexvolume/driver-call.go: DriverStatus. */
static bool is_for_kubelet(json_t *reply, const char *exit_status)
{
        static const struct {
                const char *key;
                json_type type;
        } fields[] = {
                { "status", JSON_STRING },         { "message", JSON_STRING }, { "device", JSON_STRING },
                { "volumeName", JSON_STRING },     { "attached", JSON_TRUE },  { "capabilities", JSON_OBJECT },
                { "volumeNewSize", JSON_INTEGER },
        };
        const char *status = text_of(reply, "status");
        size_t known = 0;

        for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
                const json_t *value = json_object_get(reply, fields[i].key);

                known += value != NULL;
                if (value && json_typeof(value) != fields[i].type &&
                    !(fields[i].type == JSON_TRUE && json_is_false(value)))
                        return false;
        }
        if (known != json_object_size(reply))
                return false;
        if (strcmp(status, "Not supported") == 0)
                return strcmp(exit_status, "1") == 0;
        return strcmp(exit_status, "0") == 0 &&
               (strcmp(status, "Success") == 0 || (strcmp(status, "Failure") == 0 && *text_of(reply, "message")));
}

/* The next ".name" or "[0]" of *at, from *value; false: jq has to be asked. */
static bool step(const char **at, const json_t **value)
{
        if (**at == '[') {
                char *end;
                unsigned long index = strtoul(*at + 1, &end, 10);

                if (end == *at + 1 || *end != ']' || !(json_is_array(*value) || json_is_null(*value)))
                        return false;
                *value = json_array_get(*value, index);
                *at = end + 1;
        } else {
                char name[64];
                size_t length = 0;

                if (**at != '.' || !(json_is_object(*value) || json_is_null(*value)))
                        return false;
                for ((*at)++; isalnum((unsigned char)**at) || **at == '_'; (*at)++) {
                        if (length == sizeof name - 1)
                                return false;
                        name[length++] = **at;
                }
                if (!length)
                        return false;
                name[length] = '\0';
                *value = json_object_get(*value, name);
        }
        if (!*value)
                *value = json_null();
        return true;
}

static int get(const json_t *value, const char *expression, FILE *to)
{
        const char *at = expression;

        while (*at && *at != ' ')
                if (!step(&at, &value))
                        return 2;
        if (at == expression)
                return 2;
        if (strcmp(at, " | length") == 0) {
                if (!json_is_array(value))
                        return 2;
                fprintf(to, "%zu\n", json_array_size(value));
                return 0;
        }
        if (*at)
                return 2;
        switch (json_typeof(value)) {
        case JSON_STRING:
                fwrite(json_string_value(value), 1, json_string_length(value), to);
                putc('\n', to);
                return 0;
        case JSON_INTEGER:
        case JSON_TRUE:
        case JSON_FALSE:
        case JSON_NULL:
                (void)json_dumpf(value, to, JSON_ENCODE_ANY);
                putc('\n', to);
                return 0;
        default:
                return 2;
        }
}

static int is(const json_t *value, const char *expression, const char *text)
{
        char *found = NULL;
        size_t length = 0;
        FILE *to = open_memstream(&found, &length);
        int r = to ? get(value, expression, to) : 2;

        if (!to || fclose(to) != 0)
                return 2;
        while (length > 0 && found[length - 1] == '\n')
                length--;
        if (r == 0)
                r = length != strlen(text) || memcmp(found, text, length) != 0;
        free(found);
        return r;
}

int main(int argc, char **argv)
{
        static char text[1 << 24];
        size_t length = fread(text, 1, sizeof text, stdin);
        const char *command = argc > 1 ? argv[1] : "";
        const char *argument = argc > 2 ? argv[2] : "";
        json_t *reply = json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);

        if (length == sizeof text)
                return 2;
        if (strcmp(command, "get") == 0)
                return reply ? get(reply, argument, stdout) : 2;
        if (strcmp(command, "is") == 0)
                return reply && argc == 4 ? is(reply, argument, argv[3]) : 2;
        if (!json_is_object(reply) || text[length - 1] != '\n' || memchr(text, '\n', length - 1))
                return 1;
        if (strcmp(command, "object") == 0)
                return 0;
        if (strcmp(command, "success") == 0)
                return strcmp(text_of(reply, "status"), "Success") != 0;
        if (strcmp(command, "failure") == 0)
                return !is_failure(reply, argument);
        if (strcmp(command, "kubelet") == 0)
                return !is_for_kubelet(reply, argument);
        if (strcmp(command, "not-understood") == 0)
                return !is_not_understood(reply, argument);
        return 2;
}
