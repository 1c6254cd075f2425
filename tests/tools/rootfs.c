/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rootfs - the root directories of containers: most of the tests make one.
 *
 *   rootfs copy TEMPLATE DIR BASE   DIR, and its parent directory, are made: as TEMPLATE, whose files it has as links. It and the
 *                                   directories in it are BASE's, and their group's.
 *   rootfs links DIR TARGET NAME... symbolic links to TARGET, with these names in DIR
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void die(const char *what)
{
        fprintf(stderr, "rootfs: %s: %s\n", what, strerror(errno));
        exit(1);
}

static int open_directory(int parent, const char *name)
{
        int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        if (fd < 0)
                die(name);
        return fd;
}

/* The directory `name`, as `from`. levels: how many of those in it, and it, are given to `id`. */
static void copy(int from, int parent, const char *name, int levels, id_t id)
{
        struct stat st;
        struct dirent *entry;
        int to;
        DIR *dir;

        if (fstat(from, &st) < 0 || mkdirat(parent, name, 0700) < 0)
                die(name);
        to = open_directory(parent, name);
        dir = fdopendir(from);
        if (!dir)
                die(name);
        while ((entry = readdir(dir))) {
                if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
                        continue;
                if (entry->d_type == DT_DIR)
                        copy(open_directory(from, entry->d_name), to, entry->d_name,
                             entry->d_name[0] == '.' ? 0 : levels - 1, id);
                else if (linkat(from, entry->d_name, to, entry->d_name, 0) < 0)
                        die(entry->d_name);
        }
        if ((levels > 0 && fchown(to, id, id) < 0) || fchmod(to, st.st_mode & 07777) < 0)
                die(name);
        close(to);
        closedir(dir);
}

int main(int argc, char **argv)
{
        if (argc == 5 && strcmp(argv[1], "copy") == 0) {
                char *parent = strdup(argv[3]);
                char *slash = parent ? strrchr(parent, '/') : NULL;

                if (slash)
                        *slash = '\0';
                if (!slash || mkdir(parent, 0777) < 0)
                        die(argv[3]);
                copy(open_directory(AT_FDCWD, argv[2]), AT_FDCWD, argv[3], 2, (id_t)strtoul(argv[4], NULL, 10));
                return 0;
        }
        if (argc > 4 && strcmp(argv[1], "links") == 0) {
                int dir = open_directory(AT_FDCWD, argv[2]);

                for (int i = 4; i < argc; i++)
                        if (symlinkat(argv[3], dir, argv[i]) < 0)
                                die(argv[i]);
                return 0;
        }
        fprintf(stderr, "usage: rootfs copy TEMPLATE DIR BASE | rootfs links DIR TARGET NAME...\n");
        return 1;
}
