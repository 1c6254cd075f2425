/* SPDX-License-Identifier: Apache-2.0 */
/* What the driver answers before a C library starts. */
#include "flexdriver/flexdriver.h"

#include <asm/unistd.h>
#include <errno.h>
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
                           "flexdriver VERB --help lists the options in JSON.\n"
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

/*
 * The verb that the program was run as: verbs/VERB, or VENDOR~DRIVER/VERB, as an earlier flexdriver runs it that an
 * upgrade has not replaced yet. VENDOR~DRIVER/DRIVER is the driver, also where that is the name of a verb.
 */
static enum verb verb_of_name(const char *argv0)
{
        const char *slash = strrchr(argv0, '/');
        const char *directory = slash;
        const char *tilde;

        if (slash == NULL)
                return volume_verb_find(argv0);
        while (directory > argv0 && directory[-1] != '/')
                directory--;
        tilde = memchr(directory, '~', (size_t)(slash - directory));
        if (tilde != NULL && strlen(slash + 1) == (size_t)(slash - tilde - 1) &&
            strncmp(slash + 1, tilde + 1, (size_t)(slash - tilde - 1)) == 0)
                return VERBS;
        return volume_verb_find(slash + 1);
}

enum verb flexdriver_verb(int argc, char **argv, int *ret_words)
{
        enum verb verb = argc > 0 ? verb_of_name(argv[0]) : VERBS;

        *ret_words = verb != VERBS ? 0 : 1;
        return verb == VERBS && argc > 1 ? volume_verb_find(argv[1]) : verb;
}

int flexdriver_answer(int argc, char **argv)
{
        char driver[VOLUME_DRIVER_MAX];
        int words;
        enum verb verb = flexdriver_verb(argc, argv, &words);

        if (verb != VERBS && (verb != VERB_INIT || argc > words + 1))
                return FLEXDRIVER_NO_ANSWER;
        volume_driver_name(argc > 0 ? argv[0] : "", driver);
        drop_privileges();
        if (verb == VERB_INIT)
                return say(volume_driver_init(driver), 0);
        if (argc == 2 && strcmp(argv[1], "--version") == 0)
                return say("flexdriver (flexgraft) " VERSION "\n", 0);
        if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
                return say(help, 0);
        return say(VOLUME_DRIVER_NOT_SUPPORTED, 1);
}
