/* SPDX-License-Identifier: Apache-2.0 */
#include "message.h"

#include <stdbool.h>
#include <string.h>

/* Wire types of https://protobuf.dev/programming-guides/encoding/ */
enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_LENGTH = 2, WIRE_32 = 5 };

#define DEPTH_MAX 16 /* the messages of csi.proto go six deep */

struct bytes {
        const uint8_t *at, *end;
};

static bool take_number(struct bytes *bytes, uint64_t *ret_number)
{
        uint64_t number = 0;

        for (unsigned shift = 0; shift < 70 && bytes->at < bytes->end; shift += 7) {
                uint8_t byte = *bytes->at++;

                if (shift < 64)
                        number |= (uint64_t)(byte & 0x7f) << shift;
                if ((byte & 0x80) == 0) {
                        *ret_number = number;
                        return true;
                }
        }
        return false;
}

static bool take_part(struct bytes *bytes, uint64_t length, struct bytes *ret_part)
{
        if (length > (uint64_t)(bytes->end - bytes->at))
                return false;
        *ret_part = (struct bytes){ bytes->at, bytes->at + length };
        bytes->at += length;
        return true;
}

/* Length of the UTF-8 character at its beginning (RFC 3629, section 4); 0: it is none. */
static size_t character(const struct bytes *text)
{
        const uint8_t *at = text->at;
        size_t length = at[0] < 0x80 ? 1 : at[0] >= 0xc2 && at[0] <= 0xdf ? 2 : (at[0] & 0xf0) == 0xe0 ? 3 : 0;
        uint8_t low = at[0] == 0xe0 ? 0xa0 : at[0] == 0xf0 ? 0x90 : 0x80;
        uint8_t high = at[0] == 0xed ? 0x9f : at[0] == 0xf4 ? 0x8f : 0xbf;

        if (at[0] >= 0xf0 && at[0] <= 0xf4)
                length = 4;
        if (length == 0 || length > (size_t)(text->end - at) || (length > 1 && (at[1] < low || at[1] > high)))
                return 0;
        for (size_t i = 2; i < length; i++)
                if ((at[i] & 0xc0) != 0x80)
                        return 0;
        return length;
}

static enum grpc_code check_text(struct bytes text)
{
        bool has_nul = false;

        while (text.at < text.end) {
                size_t length = character(&text);

                if (length == 0)
                        return GRPC_INTERNAL;
                has_nul = has_nul || *text.at == 0;
                text.at += length;
        }
        return has_nul ? GRPC_INVALID_ARGUMENT : GRPC_OK;
}

static enum grpc_code check(const ProtobufCMessageDescriptor *descriptor, struct bytes bytes, unsigned depth);

static enum grpc_code check_part(const ProtobufCFieldDescriptor *field, struct bytes part, unsigned depth)
{
        if (field != NULL && field->type == PROTOBUF_C_TYPE_STRING)
                return check_text(part);
        if (field != NULL && field->type == PROTOBUF_C_TYPE_MESSAGE)
                return check(field->descriptor, part, depth + 1);
        return GRPC_OK;
}

/* The first of its codes that is not GRPC_OK, and GRPC_INTERNAL before all others. */
static enum grpc_code check(const ProtobufCMessageDescriptor *descriptor, struct bytes bytes, unsigned depth)
{
        enum grpc_code worst = GRPC_OK;

        if (depth > DEPTH_MAX)
                return GRPC_INTERNAL;
        while (bytes.at < bytes.end) {
                enum grpc_code code = GRPC_OK;
                struct bytes part;
                uint64_t key;
                uint64_t length = 0;

                if (!take_number(&bytes, &key) || key >> 3 == 0 || key >> 3 > 0x1fffffff)
                        return GRPC_INTERNAL;
                switch ((enum wire)(key & 7)) {
                case WIRE_VARINT:
                        if (!take_number(&bytes, &length))
                                return GRPC_INTERNAL;
                        continue;
                case WIRE_64:
                        length = 8;
                        break;
                case WIRE_32:
                        length = 4;
                        break;
                case WIRE_LENGTH:
                        if (!take_number(&bytes, &length))
                                return GRPC_INTERNAL;
                        break;
                default: /* groups, which proto3 has not */
                        return GRPC_INTERNAL;
                }
                if (!take_part(&bytes, length, &part))
                        return GRPC_INTERNAL;
                if ((key & 7) == WIRE_LENGTH)
                        code = check_part(protobuf_c_message_descriptor_get_field(descriptor, (unsigned)(key >> 3)),
                                          part, depth);
                if (code == GRPC_INTERNAL)
                        return code;
                worst = code != GRPC_OK ? code : worst;
        }
        return worst;
}

enum grpc_code message_unpack(const ProtobufCMessageDescriptor *descriptor, const uint8_t *bytes, size_t length,
                              struct memory *memory, ProtobufCMessage **ret_message, const char **ret_why)
{
        const struct bytes all = { bytes, bytes + length };
        enum grpc_code code = check(descriptor, all, 0);

        *ret_why = code == GRPC_INTERNAL ? "the message cannot be parsed" : "a text has a NUL character in it";
        if (code != GRPC_OK)
                return code;
        *ret_message = protobuf_c_message_unpack(descriptor, &memory->allocator, length, bytes);
        if (*ret_message != NULL)
                return GRPC_OK;
        if (memory->exhausted) {
                *ret_why = "the message has too many parts";
                return GRPC_RESOURCE_EXHAUSTED;
        }
        if (memory->crowded) { /* after RESOURCE_EXHAUSTED the provisioner would try another node */
                *ret_why = "the calls under way have too many parts together";
                return GRPC_UNAVAILABLE;
        }
        *ret_why = "the message cannot be parsed";
        return GRPC_INTERNAL;
}
