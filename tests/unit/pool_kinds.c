/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "pool/pool_kind.h"
#include "pool/pool_words.h"

/* What volume-create --help says of a type's parameters: from its word to the next type. */
static void words_of(const char *type, char *ret_words, size_t size)
{
        char begin[64];
        const char *found;

        (void)snprintf(begin, sizeof begin, "%s: ", type);
        found = strstr(POOL_PARAMETERS, begin);
        if (found == NULL)
                fail_msg("%s is not in POOL_PARAMETERS", type);
        found += strlen(begin);
        (void)snprintf(ret_words, size, "%.*s", (int)strcspn(found, ";"), found);
}

/* Each row of every kind, where its type has parameters of its own. */
static void help_names_each_parameter_of_a_pool(void **unused)
{
        (void)unused;
        for (size_t i = 0; pool_kinds[i] != NULL; i++)
                for (const struct file_key *key = pool_kinds[i]->parameters; key != NULL && key->name != NULL; key++) {
                        char words[512];

                        words_of(pool_kinds[i]->type, words, sizeof words);
                        if (strstr(words, key->name) == NULL)
                                fail_msg("a pool of type %s has the parameter %s, and the help does not name it: %s",
                                         pool_kinds[i]->type, key->name, words);
                }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(help_names_each_parameter_of_a_pool),
        };

        return cmocka_run_group_tests_name("pool_kinds", tests, NULL, NULL);
}
