/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.h - diagnostics, away from standard output and standard error: the system log, or a file of the node's.
 *
 * What is handed to it must hold no secret. Nothing waits for it and nothing fails with it.
 */
#ifndef FLEXGRAFT_PROCESS_LOG_H
#define FLEXGRAFT_PROCESS_LOG_H

#define LOG_ID_SIZE 9 /* eight hexadecimal digits, terminated */

/* log_begin() - subject: what every line is about ("attach data"); destination: "syslog", "none" or a path. Borrowed.
 */
void log_begin(const char *subject, const char *destination);

/* log_id() - what this process's lines begin with, for the failure message to name. */
const char *log_id(void);

/* log_say() - one line: "ID SUBJECT: text". */
void log_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
