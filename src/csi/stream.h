/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream.h - one HTTP/2 stream as gRPC uses it: headers, one message, and the answer.
 *
 * https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md: POST, ":path" is the method's name, a message is a
 * byte (0: not compressed), its length (four bytes, big-endian) and itself; the answer is the same, then trailers with
 * "grpc-status" and "grpc-message"; without a message, headers and trailers are one block.
 */
#ifndef FLEXGRAFT_CSI_STREAM_H
#define FLEXGRAFT_CSI_STREAM_H

#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "call.h"

#define STREAM_MESSAGE_MAX ((size_t)4 * 1024 * 1024)
#define STREAM_METADATA_MAX ((size_t)96 * 1024) /* as RFC 9113, 6.5.2 counts it: 32 bytes more for each field */

/* What its streams share: part of a connection. */
struct stream_peer {
        nghttp2_session *session;
        const struct rpc *const *services; /* tables of what may be called; NULL ends them */
        struct stream *streams;
        bool changed; /* something was submitted to the session */
        bool failed;  /* it cannot go on: the connection ends */
};

struct stream;

/* stream_begin() - of a request's first frame. NULL: no memory. */
struct stream *stream_begin(struct stream_peer *peer, int32_t id);

/* stream_header() - one field of the request. */
void stream_header(struct stream *stream, const char *name, size_t name_length, const char *value, size_t value_length);

/* stream_headers_end() - after the last of them. */
void stream_headers_end(struct stream *stream);

/* stream_data() - a part of the message. */
void stream_data(struct stream *stream, const uint8_t *bytes, size_t length);

/* stream_request_end() - the client has sent all: begin the call. */
void stream_request_end(struct stream *stream);

/* stream_fail() - answer with a code and a sentence; nothing if it is answered. */
void stream_fail(struct stream *stream, enum grpc_code code, const char *message);

/* stream_is_open() - whether the client may still send. */
bool stream_is_open(const struct stream *stream);

struct stream *stream_next(const struct stream *stream);

/* stream_end() - it is closed: forget it. Its call is finished all the same. */
void stream_end(struct stream *stream);

#endif
