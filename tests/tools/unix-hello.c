/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unix-hello PATH [TEXT] - with TEXT: a server on a socket made at PATH, for its owner alone, that tells each caller
 * TEXT; prints "ready". Without: call the server there and print what it tells.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static int die(const char *what)
{
        perror(what);
        return 1;
}

int main(int argc, char **argv)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        char text[256];

        if (argc < 2 || argc > 3 || strlen(argv[1]) >= sizeof(address.sun_path)) {
                fprintf(stderr, "usage: unix-hello PATH [TEXT]\n");
                return 125;
        }
        strcpy(address.sun_path, argv[1]);
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return die("socket");
        if (argc == 2) {
                if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
                        return die(argv[1]);
                ssize_t length = read(fd, text, sizeof(text));
                return length > 0 && write(STDOUT_FILENO, text, (size_t)length) == length ? 0 : 1;
        }
        if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || chmod(argv[1], 0600) < 0 || listen(fd, 8) < 0)
                return die(argv[1]);
        puts("ready");
        fflush(stdout);
        for (;;) {
                int caller = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
                if (caller < 0)
                        return die("accept");
                if (write(caller, argv[2], strlen(argv[2])) < 0)
                        perror("write");
                close(caller);
        }
}
