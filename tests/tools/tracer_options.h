/* SPDX-License-Identifier: Apache-2.0 */
/* The options that at-syscall and at-each-syscall share: what is done, to whose calls, at which one. */
#pragma once

#include "tracer.h"

/* usage() - how the tool is called, and why it could not be now. Does not return. */
static _Noreturn void usage(const char *why);

static int parse_errno(const char *text)
{
        for (size_t i = 0; i < ARRAY_LEN(known_errors); i++)
                if (strcmp(known_errors[i].name, text) == 0)
                        return known_errors[i].number;
        int number = atoi(text);
        if (number <= 0 || number > 4095)
                usage("not an errno");
        return number;
}

static const char *value(int argc, char **argv, int *i)
{
        if (*i + 1 >= argc)
                usage("an option lacks its value");
        return argv[++*i];
}

static void parse_at(char *text)
{
        char *end;
        long number = strtol(text, &end, 10);

        if (end != text && *end == '\0') {
                opt.at_number = number;
                return;
        }
        char *colon = strchr(text, ':');
        if (colon) {
                *colon = '\0';
                opt.at_occurrence = atol(colon + 1);
        }
        opt.at_name = text;
}

/* parse_action() - true for an option that both tools have: what is done, and to whose calls. */
static bool parse_action(int argc, char **argv, int *i)
{
        const char *a = argv[*i];

        if (strcmp(a, "--own") == 0) {
                opt.whose = WHOSE_OWN;
        } else if (strcmp(a, "--leave") == 0) {
                opt.leave = value(argc, argv, i);
        } else if (strcmp(a, "--others") == 0) {
                opt.whose = WHOSE_OTHERS;
        } else if (strcmp(a, "--count") == 0) {
                opt.action = ACTION_COUNT;
        } else if (strcmp(a, "--run") == 0) {
                opt.action = ACTION_RUN;
                opt.command = value(argc, argv, i);
        } else if (strcmp(a, "--run-output") == 0) {
                opt.run_output = value(argc, argv, i);
        } else if (strcmp(a, "--kill") == 0) {
                opt.action = ACTION_KILL;
        } else if (strcmp(a, "--kill-main") == 0) {
                opt.action = ACTION_KILL_MAIN;
        } else if (strcmp(a, "--fail") == 0) {
                opt.action = ACTION_FAIL;
                opt.result = -parse_errno(value(argc, argv, i));
        } else {
                return false;
        }
        return true;
}
