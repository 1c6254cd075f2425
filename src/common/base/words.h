/* SPDX-License-Identifier: Apache-2.0 */
/*
 * words.h - a request in words: arguments -> the JSON object that says the same, by the program's table of keys.
 *
 *      mount-bind web /srv/data /data --read-only --timeout-seconds=5
 *      {"container": "web", "source": "/srv/data", "target": "/data", "readOnly": true, "timeoutSeconds": 5}
 *
 * Nothing is checked here but what only words can have wrong; the object goes through the parser of requests.
 */
#ifndef FLEXGRAFT_BASE_WORDS_H
#define FLEXGRAFT_BASE_WORDS_H

#include <stdbool.h>

#include "base/words_form.h"

/*
 * words_are_json() - whether the arguments are a request in JSON: the first is empty or begins, after blanks, with a
 * brace, a bracket or a quotation mark, or it is exactly "-".
 */
bool words_are_json(int argc, char **argv);

/*
 * words_take() - the request that argv[1] and on say. "--" ends the options; all that follows it are words. The order
 * of argv is changed.
 *
 * Gives:  ret_request, owned by the caller.
 * Errors: OPERATION_PARSE: an option that is unknown, given twice, or has no value; a word that is missing or too many.
 */
int words_take(const struct words *words, int argc, char **argv, json_t **ret_request, struct error *error);

#endif
