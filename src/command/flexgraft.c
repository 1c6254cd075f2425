/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flexgraft COMMAND [ARGUMENT...] - run a program of flexgraft, from the directory that this one is in.
 *
 * It reads nothing but its arguments and its own path, and keeps all privileges: the program drops them.
 */
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/nearest.h"
#include "base/reply.h"
#include "base/text.h"
#include "process/exec.h"

/* The commands: --help, the man page and the completions are made of these rows. */
static const struct command {
        const char *first;
        const char *second; /* NULL: the first is all */
        const char *program;
        const char *about; /* as its man page names it */
} commands[] = {
        { "mount", "bind", "mount-bind", "mount a file or directory of the node in a running container" },
        { "mount", "block", "mount-block", "mount a filesystem on a block device in a running container" },
        { "mount", "image", "mount-image", "mount the filesystem in an image file in a running container" },
        { "mount", "nfs", "mount-nfs", "mount an NFS export in a running container" },
        { "mount", "container-to-container", "mount-container-to-container",
          "mount files of one container in another" },
        { "mount", "tmpfs", "mount-tmpfs", "mount a tmpfs in a running container" },
        { "mount", "overlay", "mount-overlay", "mount an overlay in a running container" },
        { "mount", "volume", "mount-volume", "mount a volume, by its name, in a running container" },
        { "mount", "batch", "mount-batch", "do several mounts in running containers, all or none" },
        { "mount", "hook", "mount-hook", "mount what is wanted in a container, as an OCI hook" },
        { "mount", "list", "mount-list", "list the mounts that flexgraft made in containers" },
        { "mount", "remove", "mount-remove", "remove a mount that flexgraft made in a container" },
        { "remap", "mount", "remap-mount", "mount a directory so that container runtimes can id-map it" },
        { "remap", "upgrade", "remap-upgrade", "have the installed remap-daemon serve an older one's mounts" },
        { "volume", "create", "volume-create", "make a volume in a pool, or adopt a disk" },
        { "volume", "expand", "volume-expand", "let a volume grow, also while it is mounted" },
        { "volume", "snapshot", "volume-snapshot", "take a snapshot of a volume, or go back to one" },
        { "volume", "delete", "volume-delete", "delete a volume" },
        { "volume", "list", "volume-list", "list pools, disks and volumes" },
        { "volume", "capacity", "volume-capacity", "say how much room pools and profiles have" },
        { "volume", "reconcile", "volume-reconcile", "make records and node agree after a crash or a reboot" },
        { "check", NULL, "host-check", "tell what a node can do for flexgraft, and what is missing" },
};

#define COMMANDS (sizeof commands / sizeof commands[0])
#define USAGE "usage: flexgraft COMMAND [ARGUMENT...] | --help | --version\n"

static void say(int fd, const char *text)
{
        (void)file_write_all(fd, text, strlen(text)); /* there is no other way to report */
}

/* "mount bind" */
static void put_name(const struct command *command, char *ret_name, size_t size)
{
        (void)snprintf(ret_name, size, "%s%s%s", command->first, command->second != NULL ? " " : "",
                       command->second != NULL ? command->second : "");
}

static int help(void)
{
        static char text[8192];
        size_t length = (size_t)snprintf(text, sizeof text,
                                         USAGE "\nRun a program of flexgraft, from the directory that this one is in.\n"
                                               "flexgraft COMMAND --help explains a command.\n\n");

        for (size_t i = 0; i < COMMANDS && length < sizeof text; i++) {
                char name[64];

                put_name(&commands[i], name, sizeof name);
                length += (size_t)snprintf(text + length, sizeof text - length, "  %-16s%s%s\n", name,
                                           strlen(name) > 15 ? "\n                  " : "", commands[i].about);
        }
        if (length < sizeof text)
                length += (size_t)snprintf(text + length, sizeof text - length,
                                           "\nExit status: the command's; 2 for no such command, 1 if it cannot "
                                           "be run.\n");
        return file_write_all(STDOUT_FILENO, text, length) < 0 ? EXIT_FAILED : EXIT_DONE;
}

/* The row that the arguments name, as words or as the program's name, and how many of them do. */
static const struct command *find(int argc, char **argv, int *ret_taken)
{
        for (size_t i = 0; i < COMMANDS; i++) {
                const struct command *command = &commands[i];

                *ret_taken = command->second != NULL ? 2 : 1;
                if (strcmp(argv[1], command->first) == 0 &&
                    (command->second == NULL || (argc > 2 && strcmp(argv[2], command->second) == 0)))
                        return command;
                *ret_taken = 1;
                if (strcmp(argv[1], command->program) == 0)
                        return command;
        }
        return NULL;
}

/* "mount" alone: what may follow it. */
static bool say_group(const char *first)
{
        char text[512];
        size_t length = (size_t)snprintf(text, sizeof text, "flexgraft: after %.32s comes one of:", first);
        bool found = false;

        for (size_t i = 0; i < COMMANDS && length < sizeof text; i++)
                if (strcmp(commands[i].first, first) == 0) {
                        length += (size_t)snprintf(text + length, sizeof text - length, " %s", commands[i].second);
                        found = true;
                }
        if (length < sizeof text)
                (void)snprintf(text + length, sizeof text - length, "\n");
        if (found)
                say(STDERR_FILENO, text);
        return found;
}

static int refuse(int argc, char **argv)
{
        char asked[NEAREST_MAX];
        struct nearest nearest = { .asked = asked };
        char hint[NEAREST_HINT_MAX];
        char text[256];

        if (argc < 2) {
                say(STDERR_FILENO, "flexgraft: a command is missing; --help lists them\n" USAGE);
                return EXIT_NOT_UNDERSTOOD;
        }
        if (argc == 2 && say_group(argv[1]))
                return EXIT_NOT_UNDERSTOOD;
        (void)snprintf(asked, sizeof asked, "%s%s%.40s", argv[1], argc > 2 ? " " : "", argc > 2 ? argv[2] : "");
        for (size_t i = 0; i < COMMANDS; i++) {
                char name[64];

                put_name(&commands[i], name, sizeof name);
                nearest_offer(&nearest, name);
        }
        nearest_hint(&nearest, hint);
        (void)snprintf(text, sizeof text, "flexgraft: there is no command \"%.100s\"%s; --help lists them", asked,
                       hint);
        (void)file_write_all(STDERR_FILENO, text,
                             text_end_line(text, sizeof text)); /* there is no other way to report */
        return EXIT_NOT_UNDERSTOOD;
}

int main(int argc, char **argv)
{
        const struct command *command;
        struct error error = {};
        char text[PATH_MAX + 128];
        int taken = 0;

        if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
                return help();
        if (argc == 2 && strcmp(argv[1], "--version") == 0) {
                say(STDOUT_FILENO, "flexgraft (flexgraft) " VERSION "\n");
                return EXIT_DONE;
        }
        command = argc > 1 ? find(argc, argv, &taken) : NULL;
        if (command == NULL)
                return refuse(argc, argv);
        argv[taken] = (char *)command->program;
        exec_beside(command->program, argv + taken, &error);
        (void)snprintf(text, sizeof text, "flexgraft: cannot run %s: %s\n", error.subject, error_why(&error));
        say(STDERR_FILENO, text);
        return EXIT_FAILED;
}
