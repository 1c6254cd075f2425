/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.h - diagnostics to the system log or to a file of the node; to standard error only with --verbose (base/progress).
 *
 * Log lines must not contain secrets. A log that hangs or fails delays nothing and fails nothing.
 */
#ifndef FLEXGRAFT_PROCESS_LOG_H
#define FLEXGRAFT_PROCESS_LOG_H

#define LOG_ID_SIZE 9 /* eight hexadecimal digits, terminated */

/* log_begin() - subject: printed on every line ("attach data"); destination: "syslog", "none" or a path. Borrowed. */
void log_begin(const char *subject, const char *destination);

/* log_id() - the id at the start of this process's lines; failure messages name it. */
const char *log_id(void);

/* log_say() - one line: "ID SUBJECT: text". */
void log_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* log_failure() - likewise, as an error: what an administrator has to look at. */
void log_failure(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
