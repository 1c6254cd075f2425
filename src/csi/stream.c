/* SPDX-License-Identifier: Apache-2.0 */
#include "stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "calls.h"
#include "journal.h"
#include "loop.h"
#include "memory.h"
#include "timeout.h"

#define PREFIX 5
#define HEADERS_MS 10000                        /* until its headers must have come */
#define REQUEST_MS 30000                        /* until all of a request must have come */
#define ANSWER_MS 20000                         /* until the client must have taken all of an answer */
#define BUFFERED_MAX ((size_t)64 * 1024 * 1024) /* requests that are not complete, of all clients */
#define SMALL ((size_t)64 * 1024)               /* a message of that length is always let in, and not counted there */
#define BUFFER_FIRST ((size_t)1024)             /* a length that is only said takes no memory */
#define PATH_BYTES 96                           /* longer than any method's name */
#define CODED_MAX 3072                          /* the longest message, each byte as three */

struct stream {
        struct stream *next, *previous;
        struct stream_peer *peer;
        int32_t id;
        bool is_post, is_grpc, is_coded; /* what the headers say */
        bool timeout_is_wrong;
        bool is_answered, is_ended; /* by us; by the client */
        char path[PATH_BYTES];
        size_t metadata;
        int64_t begun_ms, timeout_ms; /* < 0: none */
        struct loop_timer limit;      /* until the headers, then all of the request must have come; then the deadline */
        uint8_t prefix[PREFIX];
        size_t received; /* of prefix and message */
        size_t length;   /* of the message */
        uint8_t *message;
        size_t buffered; /* what message has room for */
        struct call *call;
        uint8_t answer_prefix[PREFIX];
        uint8_t *answer;
        size_t answer_length, sent;
};

static size_t all_buffered;

static struct stream *of_limit(struct loop_timer *limit)
{
        return (struct stream *)(void *)((char *)limit - offsetof(struct stream, limit));
}

/* Nothing else may come on the connection until they have ended (RFC 9113, 4.3). */
static void headers_are_late(struct loop_timer *limit)
{
        of_limit(limit)->peer->failed = true;
}

struct stream *stream_begin(struct stream_peer *peer, int32_t id)
{
        struct stream *stream = calloc(1, sizeof *stream);

        if (stream == NULL)
                return NULL;
        stream->peer = peer;
        stream->id = id;
        stream->begun_ms = clock_now_ms();
        stream->timeout_ms = -1;
        stream->next = peer->streams;
        if (peer->streams != NULL)
                peer->streams->previous = stream;
        peer->streams = stream;
        loop_set(&stream->limit, stream->begun_ms + HEADERS_MS, headers_are_late);
        return stream;
}

static void drop_message(struct stream *stream)
{
        memory_forget(stream->message, stream->buffered);
        if (stream->length > SMALL)
                all_buffered -= stream->buffered;
        stream->buffered = 0;
        stream->message = NULL;
}

void stream_end(struct stream *stream)
{
        if (stream->previous != NULL)
                stream->previous->next = stream->next;
        else
                stream->peer->streams = stream->next;
        if (stream->next != NULL)
                stream->next->previous = stream->previous;
        if (stream->call != NULL)
                call_forget(stream->call);
        loop_unset(&stream->limit);
        drop_message(stream);
        free(stream->answer);
        free(stream);
}

bool stream_is_open(const struct stream *stream)
{
        return !stream->is_ended;
}

struct stream *stream_next(const struct stream *stream)
{
        return stream->next;
}

/* ---- the answer */

/* Values are copied by the session. */
static nghttp2_nv field(const char *name, const char *value)
{
        return (nghttp2_nv){ (uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value), NGHTTP2_NV_FLAG_NONE };
}

/* Printable ASCII but '%' as it is, any other byte as %XX. */
static void encode(const char *message, char ret_coded[CODED_MAX + 1])
{
        static const char digits[] = "0123456789ABCDEF";
        size_t length = 0;

        for (const unsigned char *at = (const unsigned char *)message; *at != '\0' && length + 3 <= CODED_MAX; at++) {
                if (*at >= ' ' && *at <= '~' && *at != '%')
                        ret_coded[length++] = (char)*at;
                else {
                        ret_coded[length++] = '%';
                        ret_coded[length++] = digits[*at >> 4];
                        ret_coded[length++] = digits[*at & 0xf];
                }
        }
        ret_coded[length] = '\0';
}

/* The connection ends, where there is not even memory for this. */
static void reset(struct stream *stream, uint32_t error)
{
        stream->peer->changed = true;
        if (nghttp2_submit_rst_stream(stream->peer->session, NGHTTP2_FLAG_NONE, stream->id, error) < 0)
                stream->peer->failed = true;
}

/* A window that stays closed holds the answer's memory. */
static void answer_is_late(struct loop_timer *limit)
{
        reset(of_limit(limit), NGHTTP2_CANCEL);
}

static void submit(struct stream *stream, const nghttp2_nv *fields, size_t count, const nghttp2_data_provider *data)
{
        stream->is_answered = true;
        stream->peer->changed = true;
        drop_message(stream);
        loop_set(&stream->limit, clock_now_ms() + ANSWER_MS, answer_is_late);
        if (nghttp2_submit_response(stream->peer->session, stream->id, fields, count, data) < 0)
                reset(stream, NGHTTP2_INTERNAL_ERROR);
}

void stream_fail(struct stream *stream, enum grpc_code code, const char *message)
{
        char number[16];
        char coded[CODED_MAX + 1];
        nghttp2_nv fields[5];
        size_t count = 0;

        if (stream->is_answered)
                return;
        (void)snprintf(number, sizeof number, "%d", (int)code);
        encode(message, coded);
        fields[count++] = field(":status", "200");
        fields[count++] = field("content-type", "application/grpc");
        fields[count++] = field("grpc-status", number);
        fields[count++] = field("grpc-message", coded);
        if (stream->is_coded)
                fields[count++] = field("grpc-accept-encoding", "identity");
        submit(stream, fields, count, NULL);
        journal_say("%s: code %d: %s", stream->path, (int)code, message);
}

/* An answer of HTTP, to what is no call of gRPC. */
static void refuse(struct stream *stream, const char *status)
{
        const nghttp2_nv fields[] = { field(":status", status) };

        submit(stream, fields, 1, NULL);
}

static ssize_t read_answer(nghttp2_session *session, int32_t id, uint8_t *buffer, size_t size, uint32_t *flags,
                           nghttp2_data_source *source, void *ignored)
{
        struct stream *stream = source->ptr;
        const nghttp2_nv trailers[] = { field("grpc-status", "0") };
        size_t length = 0;

        (void)ignored;
        while (stream->sent < PREFIX && length < size)
                buffer[length++] = stream->answer_prefix[stream->sent++];
        if (stream->sent >= PREFIX && stream->answer_length > 0) {
                size_t left = stream->answer_length - (stream->sent - PREFIX);
                size_t part = left < size - length ? left : size - length;

                memcpy(buffer + length, stream->answer + stream->sent - PREFIX, part);
                stream->sent += part;
                length += part;
        }
        if (stream->sent == PREFIX + stream->answer_length) {
                *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
                if (nghttp2_submit_trailer(session, id, trailers, 1) < 0)
                        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        }
        return (ssize_t)length;
}

static void answer(struct stream *stream, uint8_t *body, size_t length)
{
        const nghttp2_nv fields[] = { field(":status", "200"), field("content-type", "application/grpc") };
        const nghttp2_data_provider data = { .source.ptr = stream, .read_callback = read_answer };

        stream->answer = body;
        stream->answer_length = length;
        for (int i = 0; i < 4; i++)
                stream->answer_prefix[1 + i] = (uint8_t)(length >> (24 - 8 * i));
        submit(stream, fields, 2, &data);
}

static void call_is_answered(void *argument, enum grpc_code code, const char *message, uint8_t *body, size_t length)
{
        struct stream *stream = argument;

        stream->call = NULL;
        if (code != GRPC_OK)
                stream_fail(stream, code, message);
        else if (!stream->is_answered)
                answer(stream, body, length);
        else
                free(body);
}

/* ---- the request */

static bool is(const char *name, size_t length, const char *text)
{
        return length == strlen(text) && memcmp(name, text, length) == 0;
}

/* "application/grpc", "application/grpc+proto", "application/grpc;..." */
static bool is_grpc_type(const char *value, size_t length)
{
        static const char type[] = "application/grpc";
        const size_t known = sizeof type - 1;

        return length >= known && memcmp(value, type, known) == 0 &&
               (length == known || value[known] == '+' || value[known] == ';');
}

/* A path that is too long, or has a NUL in it, is nobody's. */
static void take_path(struct stream *stream, const char *value, size_t length)
{
        stream->path[0] = '\0';
        if (length < PATH_BYTES && memchr(value, '\0', length) == NULL)
                (void)snprintf(stream->path, sizeof stream->path, "%.*s", (int)length, value);
}

void stream_header(struct stream *stream, const char *name, size_t name_length, const char *value, size_t value_length)
{
        stream->metadata += name_length + value_length + 32;
        if (is(name, name_length, ":method"))
                stream->is_post = is(value, value_length, "POST");
        else if (is(name, name_length, ":path"))
                take_path(stream, value, value_length);
        else if (is(name, name_length, "content-type"))
                stream->is_grpc = is_grpc_type(value, value_length);
        else if (is(name, name_length, "grpc-encoding"))
                stream->is_coded = !is(value, value_length, "identity");
        else if (is(name, name_length, "grpc-timeout"))
                stream->timeout_is_wrong = !timeout_read(value, value_length, &stream->timeout_ms);
}

static void time_is_over(struct loop_timer *limit)
{
        struct stream *stream = of_limit(limit);

        if (stream->call != NULL)
                call_forget(stream->call);
        stream->call = NULL;
        stream_fail(stream, GRPC_DEADLINE_EXCEEDED,
                    stream->is_ended ? "the deadline has passed; what was begun is finished"
                                     : "the request did not come in time");
}

static const struct rpc *find_rpc(const struct stream *stream)
{
        for (const struct rpc *const *service = stream->peer->services; *service != NULL; service++)
                for (const struct rpc *rpc = *service; rpc->path != NULL; rpc++)
                        if (strcmp(rpc->path, stream->path) == 0)
                                return rpc;
        return NULL;
}

void stream_headers_end(struct stream *stream)
{
        int64_t limit_ms = stream->timeout_ms >= 0 && stream->timeout_ms < REQUEST_MS ? stream->timeout_ms : REQUEST_MS;

        if (stream->metadata > STREAM_METADATA_MAX)
                stream_fail(stream, GRPC_RESOURCE_EXHAUSTED, "the metadata are longer than 96 KiB");
        else if (!stream->is_post)
                refuse(stream, "405");
        else if (!stream->is_grpc)
                refuse(stream, "415");
        else if (stream->timeout_is_wrong)
                stream_fail(stream, GRPC_INTERNAL, "grpc-timeout cannot be parsed");
        else if (stream->is_coded)
                stream_fail(stream, GRPC_UNIMPLEMENTED, "compressed messages are not supported");
        else if (find_rpc(stream) == NULL)
                stream_fail(stream, GRPC_UNIMPLEMENTED, "unknown method");
        else
                loop_set(&stream->limit, stream->begun_ms + limit_ms, time_is_over);
}

/* Once the prefix is there. */
static void read_prefix(struct stream *stream)
{
        for (int i = 0; i < 4; i++)
                stream->length = stream->length << 8 | stream->prefix[1 + i];
        if (stream->prefix[0] == 1) {
                stream->is_coded = true;
                stream_fail(stream, GRPC_INTERNAL, "the message is compressed, and no grpc-encoding says how");
        } else if (stream->prefix[0] != 0)
                stream_fail(stream, GRPC_INTERNAL, "the message's flags are wrong");
        else if (stream->length > STREAM_MESSAGE_MAX)
                stream_fail(stream, GRPC_RESOURCE_EXHAUSTED, "the message is longer than 4 MiB");
}

/* Room for so many bytes of the message. */
static bool make_room(struct stream *stream, size_t needed)
{
        size_t size = stream->buffered > 0 ? stream->buffered : BUFFER_FIRST;
        uint8_t *message;

        if (needed <= stream->buffered)
                return true;
        while (size < needed)
                size *= 2;
        size = size < stream->length ? size : stream->length;
        if (stream->length > SMALL && size - stream->buffered > BUFFERED_MAX - all_buffered)
                return false;
        if ((message = malloc(size)) == NULL)
                return false;
        if (stream->message != NULL)
                memcpy(message, stream->message, stream->buffered);
        if (stream->length > SMALL)
                all_buffered += size; /* and those of the old one go */
        drop_message(stream);
        stream->message = message;
        stream->buffered = size;
        return true;
}

void stream_data(struct stream *stream, const uint8_t *bytes, size_t length)
{
        size_t had;

        while (stream->received < PREFIX && length > 0) {
                stream->prefix[stream->received++] = *bytes++;
                length--;
                if (stream->received == PREFIX)
                        read_prefix(stream);
        }
        if (stream->is_answered || length == 0)
                return;
        had = stream->received - PREFIX;
        if (length > stream->length - had)
                stream_fail(stream, GRPC_INTERNAL, "more than one message");
        else if (!make_room(stream, had + length))
                stream_fail(stream, GRPC_RESOURCE_EXHAUSTED, "too many requests at one time");
        else {
                memcpy(stream->message + had, bytes, length);
                stream->received += length;
        }
}

void stream_request_end(struct stream *stream)
{
        const struct rpc *rpc = find_rpc(stream);

        stream->is_ended = true;
        if (stream->is_answered)
                return;
        if (stream->received < PREFIX || stream->received < PREFIX + stream->length) {
                stream_fail(stream, GRPC_INTERNAL, "the message is not complete");
                return;
        }
        loop_unset(&stream->limit);
        if (stream->timeout_ms >= 0) {
                if (clock_now_ms() >= stream->begun_ms + stream->timeout_ms) {
                        stream_fail(stream, GRPC_DEADLINE_EXCEEDED, "the deadline had passed when the request came");
                        return;
                }
                loop_set(&stream->limit, stream->begun_ms + stream->timeout_ms, time_is_over);
        }
        stream->call = call_begin(rpc, stream->message != NULL ? stream->message : stream->prefix, stream->length,
                                  call_is_answered, stream);
        if (stream->message != NULL)
                drop_message(stream);
}
