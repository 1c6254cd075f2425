/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flexdriver VERB ARGS... - what kubelet runs. verbs/VERB ARGS... is the same program.
 *
 * Privileges: each verb drops all but its own first, and sets its own filter: src/privileges has a row for each.
 *
 * One program, because one exec costs as much as all that a small verb does: a life of a volume is eight calls.
 */
#include <stdio.h>

#include "flexdriver/flexdriver.h"
#include "volume/reply.h"

#define MAIN(name, word, letters, arguments, traits) word##_main,
static int (*const mains[VERBS])(int argc, char **argv) = { VOLUME_VERBS(MAIN) };

int main(int argc, char **argv)
{
        static char name[VOLUME_DRIVER_MAX + 32];
        char driver[VOLUME_DRIVER_MAX];
        int words;
        int status = flexdriver_answer(argc, argv);
        enum verb verb;

        if (status != FLEXDRIVER_NO_ANSWER)
                return status;
        verb = flexdriver_verb(argc, argv, &words);
        if (words > 0) {
                volume_driver_name(argv[0], driver);
                (void)snprintf(name, sizeof name, "%s/%s", driver, volume_verb_word(verb)); /* it fits */
                argv[words] = name;
        }
        return mains[verb](argc - words, argv + words);
}
