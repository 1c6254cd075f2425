/* SPDX-License-Identifier: Apache-2.0 */
/* The first byte chooses a message of csi.proto or registration.proto; the rest is what a client sends as one. */
#include "fuzz.h"

#include "csi/journal.h"
#include "csi/memory.h"
#include "csi/message.h"
#include "messages/csi.pb-c.h"
#include "messages/registration.pb-c.h"

/* In place of journal.c: the fuzzer has standard error. */
void journal_say(const char *format, ...)
{
        (void)format;
}

#define MEMORY ((size_t)1024 * 1024)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static const ProtobufCMessageDescriptor *const messages[] = {
                &csi__v1__create_volume_request__descriptor,
                &csi__v1__validate_volume_capabilities_request__descriptor,
                &csi__v1__node_stage_volume_request__descriptor,
                &csi__v1__node_publish_volume_request__descriptor,
                &csi__v1__get_capacity_request__descriptor,
                &csi__v1__list_snapshots_request__descriptor,
                &csi__v1__node_expand_volume_request__descriptor,
                &pluginregistration__registration_status__descriptor,
        };
        ProtobufCMessage *message = NULL;
        struct memory memory;
        enum grpc_code code;
        const char *why = NULL;

        if (size == 0)
                return 0;
        memory_init(&memory, MEMORY);
        code = message_unpack(messages[data[0] % (sizeof messages / sizeof messages[0])], data + 1, size - 1, &memory,
                              &message, &why);
        fuzz_check(memory.used <= MEMORY);
        fuzz_check((code == GRPC_OK) == (message != NULL));
        if (code == GRPC_OK) { /* what was read, can be written, and is as long as it says */
                size_t length = protobuf_c_message_get_packed_size(message);
                uint8_t *bytes = malloc(length + 1);

                fuzz_check(bytes != NULL && protobuf_c_message_pack(message, bytes) == length);
                free(bytes);
        } else
                fuzz_check(why != NULL &&
                           (code == GRPC_INTERNAL || code == GRPC_INVALID_ARGUMENT || code == GRPC_RESOURCE_EXHAUSTED));
        memory_end(&memory);
        return 0;
}
