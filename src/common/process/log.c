/* SPDX-License-Identifier: Apache-2.0 */
#include "process/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/progress.h"
#include "base/text.h"
#include "process/worker.h"

#define LINE_MAX_BYTES 2048
#define FILE_MS 1000
#define DAEMON_ERROR 27 /* syslog(3) */
#define DAEMON_INFO 30

static const char *log_subject = "";
static const char *log_destination = "none";

void log_begin(const char *subject, const char *destination)
{
        log_subject = subject;
        log_destination = destination;
}

const char *log_id(void)
{
        static char id[LOG_ID_SIZE]; /* kept: all lines of a call have the same */
        uint32_t number;

        if (id[0] != '\0')
                return id;
        if (getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number)
                number = (uint32_t)getpid(); /* early at boot */
        (void)snprintf(id, sizeof id, "%08x", number);
        return id;
}

struct line {
        const char *text;
        size_t length;
};

/* A line that cannot be written is lost. */
static int append_line(void *argument, struct error *error)
{
        const struct line *line = argument;
        cleanup_close int fd = open(
                log_destination, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);

        (void)error;
        if (fd >= 0)
                (void)file_write_all(fd, line->text, line->length);
        return 0;
}

/* In a worker: the file's disk may hang. */
static void say_to_file(const char *text, size_t length)
{
        struct line line = { .text = text, .length = length };
        struct error ignored;

        (void)worker_run(append_line, &line, clock_now_ms() + FILE_MS, &ignored);
}

static void say_to_system(const char *line, size_t length)
{
        static const struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "/dev/log" };
        cleanup_close int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
                (void)send(fd, line, length, MSG_NOSIGNAL | MSG_DONTWAIT);
}

__attribute__((format(printf, 2, 0))) static void say(int priority, const char *format, va_list arguments)
{
        int saved = errno;
        bool system = strcmp(log_destination, "syslog") == 0;
        struct timespec now = {};
        struct tm utc = {};
        char line[LINE_MAX_BYTES];
        va_list again;
        size_t length;

        if (verbose_is_asked()) {
                va_copy(again, arguments);
                (void)vsnprintf(line, sizeof line, format, again);
                va_end(again);
                verbose_say(line);
                errno = saved;
        }
        if (strcmp(log_destination, "none") == 0)
                return;
        if (system)
                length = (size_t)snprintf(line, sizeof line, "<%d>flexgraft[%d]: ", priority, getpid());
        else {
                (void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail for this clock */
                (void)gmtime_r(&now.tv_sec, &utc);         /* UTC: no time zone file is read */
                length = strftime(line, sizeof line, "%Y-%m-%dT%H:%M:%SZ ", &utc);
                length += (size_t)snprintf(line + length, sizeof line - length, "flexgraft[%d]: ", getpid());
        }
        length += (size_t)snprintf(line + length, sizeof line - length, "%s %.300s: ", log_id(), log_subject);
        (void)vsnprintf(line + length, sizeof line - length - 1, format, arguments);
        text_make_printable(line); /* a name or a kernel message must not start a line of its own */
        length = strlen(line);
        if (system)
                say_to_system(line, length);
        else {
                line[length] = '\n';
                say_to_file(line, length + 1);
        }
        errno = saved;
}

void log_say(const char *format, ...)
{
        va_list arguments;

        va_start(arguments, format);
        say(DAEMON_INFO, format, arguments);
        va_end(arguments);
}

void log_failure(const char *format, ...)
{
        va_list arguments;

        va_start(arguments, format);
        say(DAEMON_ERROR, format, arguments);
        va_end(arguments);
}
