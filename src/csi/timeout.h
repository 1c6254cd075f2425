/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timeout.h - "grpc-timeout": at most eight digits and a unit, H M S m u n.
 */
#ifndef FLEXGRAFT_CSI_TIMEOUT_H
#define FLEXGRAFT_CSI_TIMEOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* timeout_read() - in milliseconds, rounded up. False: it is none. */
bool timeout_read(const char *text, size_t length, int64_t *ret_ms);

#endif
