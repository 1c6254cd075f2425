/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client sends, behind HTTP/2's preface, to a connection of csi-driver with two methods: one that answers, and one
 * that never does. The first byte says in how many parts it comes.
 */
#include "fuzz.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include "csi/call.h"
#include "csi/calls.h"
#include "csi/connection.h"
#include "csi/journal.h"
#include "csi/loop.h"
#include "messages/csi.pb-c.h"

/* In place of journal.c: the fuzzer has standard error. */
void journal_say(const char *format, ...)
{
        (void)format;
}

static struct call *held[256];
static size_t held_count;

static void answer(struct call *call)
{
        Csi__V1__DeleteVolumeResponse response = CSI__V1__DELETE_VOLUME_RESPONSE__INIT;

        call_answer(call, &response.base);
}

static void hold(struct call *call)
{
        held[held_count++] = call;
}

static const char *volume(const ProtobufCMessage *request)
{
        return ((const Csi__V1__DeleteVolumeRequest *)request)->volume_id;
}

static const struct rpc rpcs[] = {
        { .path = "/a",
          .request = &csi__v1__delete_volume_request__descriptor,
          .response = &csi__v1__delete_volume_response__descriptor,
          .begin = answer },
        { .path = "/b",
          .request = &csi__v1__delete_volume_request__descriptor,
          .response = &csi__v1__delete_volume_response__descriptor,
          .begin = hold,
          .alone = volume },
        {},
};
static const struct rpc *const services[] = { rpcs, NULL };

static void begin_once(void)
{
        static const struct csi_options options = { .endpoint = "/s", .node = "n", .name = "d" };
        static bool begun;
        struct error error;

        if (begun)
                return;
        begun = true;
        fuzz_check(loop_begin(&error) == 0);
        calls_begin(&options);
}

/* One part: sent, read by the connection, answered, and the answer read. Whether the connection goes on. */
static bool exchange(int fd, struct connection *connection, const uint8_t *bytes, size_t length)
{
        uint8_t sink[65536];

        if (length > 0 && send(fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
                return false;
        if (length > 0)
                fuzz_check(loop_turn() == 0);
        if (!connection_settle(connection))
                return false;
        while (recv(fd, sink, sizeof sink, MSG_DONTWAIT) > 0)
                ;
        return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static const uint8_t preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
        struct connection *connection;
        int pair[2];
        size_t part;
        bool goes_on;

        if (size < 2)
                return 0;
        begin_once();
        fuzz_check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
        connection = connection_begin(pair[0], services);
        fuzz_check(connection != NULL);
        part = size / (data[0] % 8 + 1) + 1;
        goes_on = exchange(pair[1], connection, preface, sizeof preface - 1);
        data++;
        size--;
        while (goes_on && size > 0) {
                size_t length = size < part ? size : part;

                goes_on = exchange(pair[1], connection, data, length);
                data += length;
                size -= length;
        }
        if (goes_on && held_count > 0) { /* one is answered while its client is there, the others afterwards */
                answer(held[--held_count]);
                (void)connection_settle(connection);
        }
        connection_end(connection);
        (void)close(pair[1]);
        while (held_count > 0)
                answer(held[--held_count]);
        fuzz_check(!calls_under_way());
        return 0;
}
