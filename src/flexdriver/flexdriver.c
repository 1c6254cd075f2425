/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flexdriver VERB ARGS... - what kubelet runs: init is answered here, every other verb is a program of its own.
 *
 * Privileges: it keeps all for the verb's program, which drops them first. What is answered here drops them first, too,
 * with init's filter.
 */
#include <asm/unistd.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/prctl.h>

#include "flexdriver/bare.h"
#include "privileges/init.h"
#include "volume/kind_words.h"
#include "volume/verbs.h"

#define STANDARD_OUTPUT 1

#define VERB_LINE(name, word, letters, arguments, traits) "  " #word " " arguments "\n"

static const char help[] =
        "usage: flexdriver VERB ... | --help | --version\n"
        "\n"
        "The FlexVolume driver of flexgraft. kubelet runs it under the name that it was\n"
        "installed as: VENDOR~DRIVER/DRIVER VERB ARGUMENTS; see install-flexvolume(8).\n"
        "The types of volumes are\n" VOLUME_TYPE_LIST ".\n"
        "A driver named after a type has volumes of that type only; with any other\n"
        "driver, the option \"type\" names the type.\n"
        "\n" VOLUME_VERBS(
                VERB_LINE) "\n"
                           "Example: flexdriver attach '{\"kubernetes.io/pvOrVolumeName\": \"data\",\n"
                           "                              \"type\": \"loop\", \"size\": \"1Gi\"}' $(hostname)\n"
                           "verbs/VERB --help, beside the driver's program, lists the options in JSON.\n"
                           "Exit status: 0 done or failed, as \"status\" says; 1 not supported. Needs root.\n";

static int say(const char *line, int status)
{
        size_t length = strlen(line);

        while (length > 0) {
                long n = bare_call(__NR_write, STANDARD_OUTPUT, (long)line, (long)length, 0, 0);

                if (n == -EINTR)
                        continue;
                if (n <= 0)
                        return 1;
                line += n;
                length -= (size_t)n;
        }
        return status;
}

static int say_failure(void)
{
        return say("{\"status\":\"Failure\",\"message\":\"the verb's program cannot be run: it belongs into verbs/ "
                   "beside the driver\"}\n",
                   0);
}

/* As privileges_drop() does; a caller that is not root has none to drop. */
static void drop_privileges(void)
{
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3, .pid = 0 };
        struct __user_cap_data_struct none[2] = { { 0, 0, 0 }, { 0, 0, 0 } };
        const struct sock_fprog program = { .len = PRIVILEGES.filter_length,
                                            .filter = (struct sock_filter *)PRIVILEGES.filter };

        (void)bare_call(__NR_capset, (long)&header, (long)none, 0, 0, 0);
        (void)bare_call(__NR_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        (void)bare_call(__NR_seccomp, SECCOMP_SET_MODE_FILTER, 0, (long)&program, 0, 0);
}

static size_t append(char *text, size_t length, size_t size, const char *more)
{
        size_t part = strlen(more);

        if (length + part >= size)
                return size; /* too long: the caller checks */
        (void)memcpy(text + length, more, part + 1);
        return length + part;
}

/* Become the program of a verb: verbs/VERB beside our own, with the driver's name in its argv[0]. */
static int dispatch(const char *driver, enum verb verb, char **argv, char **environment)
{
        char path[PATH_MAX];
        char name[VOLUME_DRIVER_MAX + 32];
        size_t length;
        long n = bare_call(__NR_readlinkat, AT_FDCWD, (long)"/proc/self/exe", (long)path, sizeof path - 1, 0);
        char *slash;

        if (n <= 0)
                return say_failure();
        path[n] = '\0';
        slash = strrchr(path, '/');
        length = slash != NULL ? (size_t)(slash - path) : sizeof path;
        if (length < sizeof path)
                length = append(path, length, sizeof path, "/verbs/");
        if (length < sizeof path)
                length = append(path, length, sizeof path, volume_verb_word(verb));
        if (length >= sizeof path)
                return say_failure();
        length = append(name, 0, sizeof name, driver);
        if (driver[0] != '\0')
                length = append(name, length, sizeof name, "/");
        (void)append(name, length, sizeof name, volume_verb_word(verb)); /* it fits */
        argv[1] = name;
        (void)bare_call(__NR_execve, (long)path, (long)(argv + 1), (long)environment, 0, 0);
        return say_failure();
}

int bare_main(int argc, char **argv, char **environment)
{
        enum verb verb = argc > 1 ? volume_verb_find(argv[1]) : VERBS;
        char driver[VOLUME_DRIVER_MAX];

        volume_driver_name(argc > 0 ? argv[0] : "", driver);
        if (verb != VERBS && (verb != VERB_INIT || argc > 2))
                return dispatch(driver, verb, argv, environment);
        drop_privileges();
        if (verb == VERB_INIT)
                return say(volume_driver_init(driver), 0);
        if (argc == 2 && strcmp(argv[1], "--version") == 0)
                return say("flexdriver (flexgraft) " VERSION "\n", 0);
        if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
                return say(help, 0);
        return say(VOLUME_DRIVER_NOT_SUPPORTED, 1);
}
