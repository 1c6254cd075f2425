/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal.h - what the driver has to say, as lines on standard error: the service manager's journal, or a container's
 * log. Never what a request holds, but the names of volumes.
 */
#ifndef FLEXGRAFT_CSI_JOURNAL_H
#define FLEXGRAFT_CSI_JOURNAL_H

/* journal_say() - one line; it is lost rather than waited for. */
__attribute__((format(printf, 1, 2))) void journal_say(const char *format, ...);

#endif
