/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file-session - one process that holds a file open and does what each line of its input says, and prints the result:
 *
 *   open r|w|a FILE      for reading, for both, for appending
 *   lock KIND            wait for it (posix, ofd, flock), for writing; "unlock KIND"
 *   size                 of the open file
 *   read                 all of it, from its beginning
 *   write TEXT           at its beginning
 *   map                  it, shared; then "peek" reads and "poke TEXT" writes at the beginning of the mapping
 *   close
 *
 * file-session count KIND FILE TIMES: adds one to the number in the file under that lock, so many times, opening it once.
 * file-session line KIND FILE TIMES TEXT: appends that line under that lock, so many times.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int set_lock(int fd, const char *kind, int type)
{
        struct flock lock = { .l_type = (short)type, .l_whence = SEEK_SET };

        if (strcmp(kind, "posix") == 0)
                return fcntl(fd, F_SETLKW, &lock);
        if (strcmp(kind, "ofd") == 0)
                return fcntl(fd, F_OFD_SETLKW, &lock);
        return flock(fd, type == F_UNLCK ? LOCK_UN : LOCK_EX);
}

static void say(const char *text)
{
        puts(text);
        fflush(stdout);
}

static void say_result(long result)
{
        say(result < 0 ? strerrorname_np(errno) : "ok");
}

static void act(const char *word, char *rest)
{
        static int fd = -1;
        static char *mapping = MAP_FAILED;
        static char text[65536];
        struct stat st;

        if (strcmp(word, "open") == 0) {
                static const int flags[] = { ['r'] = O_RDONLY, ['w'] = O_RDWR, ['a'] = O_WRONLY | O_APPEND };
                fd = open(rest + 2, flags[(unsigned char)*rest] | O_CLOEXEC);
                say_result(fd);
        } else if (strcmp(word, "close") == 0) {
                say_result(close(fd));
        } else if (strcmp(word, "lock") == 0) {
                say_result(set_lock(fd, rest, F_WRLCK));
        } else if (strcmp(word, "unlock") == 0) {
                say_result(set_lock(fd, rest, F_UNLCK));
        } else if (strcmp(word, "size") == 0) {
                snprintf(text, sizeof text, "%lld", fstat(fd, &st) < 0 ? -1LL : (long long)st.st_size);
                say(text);
        } else if (strcmp(word, "read") == 0) {
                ssize_t length = pread(fd, text, sizeof text - 1, 0);
                text[length < 0 ? 0 : length] = 0;
                say(length < 0 ? strerrorname_np(errno) : text);
        } else if (strcmp(word, "write") == 0) {
                say_result(pwrite(fd, rest, strlen(rest), 0));
        } else if (strcmp(word, "map") == 0) {
                mapping = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
                say_result(mapping == MAP_FAILED ? -1 : 0);
        } else if (strcmp(word, "peek") == 0) {
                snprintf(text, sizeof text, "%.4095s", mapping);
                say(text);
        } else if (strcmp(word, "poke") == 0) {
                memcpy(mapping, rest, strlen(rest));
                say("ok");
        } else {
                say("what?");
        }
}

static int failed(const char *what, long step)
{
        fprintf(stderr, "file-session: %s, step %ld: %s\n", what, step, strerror(errno));
        return 1;
}

static int count(const char *kind, const char *file, long times)
{
        int fd = open(file, O_RDWR | O_CLOEXEC);

        for (long i = 0; i < times; i++) {
                char text[16] = "";

                if (fd < 0 || set_lock(fd, kind, F_WRLCK) < 0 || pread(fd, text, 8, 0) != 8)
                        return failed("lock or read", i);
                snprintf(text, sizeof text, "%08ld", strtol(text, NULL, 10) + 1);
                if (pwrite(fd, text, 8, 0) != 8 || set_lock(fd, kind, F_UNLCK) < 0)
                        return failed("write or unlock", i);
        }
        return 0;
}

static int add_lines(const char *kind, const char *file, long times, const char *line)
{
        int fd = open(file, O_RDWR | O_CLOEXEC);

        for (long i = 0; i < times; i++)
                if (fd < 0 || set_lock(fd, kind, F_WRLCK) < 0 || lseek(fd, 0, SEEK_END) < 0 ||
                    dprintf(fd, "%s\n", line) < 0 || set_lock(fd, kind, F_UNLCK) < 0)
                        return failed("add a line", i);
        return 0;
}

int main(int argc, char **argv)
{
        char line[4096];

        if (argc == 5 && strcmp(argv[1], "count") == 0)
                return count(argv[2], argv[3], atol(argv[4]));
        if (argc == 6 && strcmp(argv[1], "line") == 0)
                return add_lines(argv[2], argv[3], atol(argv[4]), argv[5]);
        say("ready");
        while (fgets(line, sizeof line, stdin)) {
                char *rest;

                line[strcspn(line, "\n")] = 0;
                rest = strchr(line, ' ');
                if (rest != NULL)
                        *rest++ = 0;
                act(line, rest != NULL ? rest : line + strlen(line));
        }
        return 0;
}
