/* SPDX-License-Identifier: Apache-2.0 */
/*
 * message.h - protocol buffers from a client, checked before they are unpacked.
 *
 * protobuf-c ends a string at its first NUL, accepts bytes that are no UTF-8, and takes as much memory as the message
 * asks for: a message of 4 MiB may name two million empty parts.
 */
#ifndef FLEXGRAFT_CSI_MESSAGE_H
#define FLEXGRAFT_CSI_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "call.h"
#include "memory.h"

/*
 * message_unpack() - Gives: ret_message, in that memory.
 *
 * Returns: GRPC_OK; GRPC_INTERNAL it is no such message; GRPC_INVALID_ARGUMENT a text has a NUL in it;
 *          GRPC_RESOURCE_EXHAUSTED it needs more memory than there may be. ret_why: a sentence.
 */
enum grpc_code message_unpack(const ProtobufCMessageDescriptor *descriptor, const uint8_t *bytes, size_t length,
                              struct memory *memory, ProtobufCMessage **ret_message, const char **ret_why);

#endif
