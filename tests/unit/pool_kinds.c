/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <string.h>

#include "pool/pool_kind.h"
#include "pool/pool_words.h"

#define NOTHING
#define ROW(word, parameters) { #word, parameters },

/* What volume-create --help says of each type's parameters. */
static const struct {
        const char *type;
        const char *parameters;
} said[] = { POOL_TYPES(ROW, NOTHING, NOTHING) };

static const char *words_of(const char *type)
{
        for (size_t i = 0; i < sizeof said / sizeof said[0]; i++)
                if (strcmp(said[i].type, type) == 0)
                        return said[i].parameters;
        return "";
}

/* Each row of every kind, where its type has parameters of its own. */
static void help_names_each_parameter_of_a_pool(void **unused)
{
        (void)unused;
        for (size_t i = 0; pool_kinds[i] != NULL; i++)
                for (const struct file_key *key = pool_kinds[i]->parameters; key != NULL && key->name != NULL; key++) {
                        const char *words = words_of(pool_kinds[i]->type);

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
