/* SPDX-License-Identifier: Apache-2.0 */
#include "connection.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "loop.h"
#include "stream.h"

#define STREAMS_MAX 128
#define ANSWERS_MAX 1000  /* to PING and SETTINGS, that wait to be sent */
#define SETTINGS_MAX 32   /* of one frame */
#define GREETING_MS 10000 /* until a client must have sent its preface and settings */
#define STALL_MS 20000    /* until it must have read something of what waits for it */
#define PART ((size_t)64 * 1024)

/* Content of the PING that follows the notice of the end. */
static const uint8_t end_ping[8] = { 't', 'h', 'e', ' ', 'e', 'n', 'd', '.' };

struct connection {
        struct loop_source source;
        struct stream_peer peer;
        struct loop_timer greeting, stall;
        uint8_t *pending; /* what the socket had no room for */
        size_t pending_length, pending_at;
        int64_t since_ms; /* when the last request began */
        bool is_over;
        bool end_announced, end_heard, end_said;
};

#define CONNECTION_OF(member, pointer)                                                                                 \
        ((struct connection *)(void *)((char *)(pointer)-offsetof(struct connection, member)))

/* ---- what the session tells */

static int headers_begin(nghttp2_session *session, const nghttp2_frame *frame, void *argument)
{
        struct connection *connection = argument;
        struct stream *stream;

        if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
                return 0;
        connection->since_ms = clock_now_ms();
        if ((stream = stream_begin(&connection->peer, frame->hd.stream_id)) == NULL)
                return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        return nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, stream) < 0
                       ? NGHTTP2_ERR_CALLBACK_FAILURE
                       : 0;
}

static int header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_length,
                  const uint8_t *value, size_t value_length, uint8_t flags, void *argument)
{
        struct stream *stream = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

        (void)flags;
        (void)argument;
        if (stream != NULL && frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
                stream_header(stream, (const char *)name, name_length, (const char *)value, value_length);
        return 0;
}

static int data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *bytes, size_t length,
                void *argument)
{
        struct stream *stream = nghttp2_session_get_stream_user_data(session, id);

        (void)flags;
        (void)argument;
        if (stream != NULL)
                stream_data(stream, bytes, length);
        return 0;
}

static int frame_received(nghttp2_session *session, const nghttp2_frame *frame, void *argument)
{
        struct connection *connection = argument;
        struct stream *stream = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

        if (frame->hd.type == NGHTTP2_SETTINGS)
                loop_unset(&connection->greeting);
        if (frame->hd.type == NGHTTP2_PING && (frame->hd.flags & NGHTTP2_FLAG_ACK) != 0 &&
            memcmp(frame->ping.opaque_data, end_ping, sizeof end_ping) == 0)
                connection->end_heard = connection->end_announced;
        if (stream == NULL || (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA))
                return 0;
        if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
                stream_headers_end(stream);
        if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0)
                stream_request_end(stream);
        return 0;
}

static int frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *argument)
{
        struct connection *connection = argument;
        const struct stream *stream = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

        /* not before: libnghttp2 would send the PING first */
        if (frame->hd.type == NGHTTP2_GOAWAY && !connection->end_announced) {
                (void)nghttp2_submit_ping(session, NGHTTP2_FLAG_NONE, end_ping);
                connection->end_announced = true;
        }
        /* An answer that came before the end of the request: the client need not send the rest. */
        if (stream != NULL && frame->hd.type == NGHTTP2_HEADERS && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0 &&
            stream_is_open(stream))
                (void)nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_NO_ERROR);
        return 0;
}

static int stream_closed(nghttp2_session *session, int32_t id, uint32_t error, void *argument)
{
        struct stream *stream = nghttp2_session_get_stream_user_data(session, id);

        (void)error;
        (void)argument;
        if (stream != NULL)
                stream_end(stream);
        return 0;
}

static int make_session(struct connection *connection)
{
        static const nghttp2_settings_entry settings[] = {
                { NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, STREAMS_MAX },
                { NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, STREAM_METADATA_MAX },
        };
        nghttp2_session_callbacks *callbacks;
        nghttp2_option *option;
        int r;

        if (nghttp2_session_callbacks_new(&callbacks) < 0)
                return -ENOMEM;
        if (nghttp2_option_new(&option) < 0) {
                nghttp2_session_callbacks_del(callbacks);
                return -ENOMEM;
        }
        nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, headers_begin);
        nghttp2_session_callbacks_set_on_header_callback(callbacks, header);
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, data);
        nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, frame_received);
        nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, frame_sent);
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, stream_closed);
        /* kubelet's ":authority" is the socket's path, which RFC 3986 does not allow there */
        nghttp2_option_set_no_http_messaging(option, 1);
        nghttp2_option_set_no_closed_streams(option, 1);
        nghttp2_option_set_max_outbound_ack(option, ANSWERS_MAX);
        nghttp2_option_set_max_settings(option, SETTINGS_MAX);
        r = nghttp2_session_server_new2(&connection->peer.session, callbacks, connection, option);
        nghttp2_option_del(option);
        nghttp2_session_callbacks_del(callbacks);
        if (r == 0)
                r = nghttp2_submit_settings(connection->peer.session, NGHTTP2_FLAG_NONE, settings,
                                            sizeof settings / sizeof settings[0]);
        return r < 0 ? -ENOMEM : 0;
}

/* ---- bytes in */

static void read_part(struct connection *connection)
{
        static uint8_t bytes[PART];
        ssize_t length = recv(connection->source.fd, bytes, sizeof bytes, MSG_DONTWAIT);

        if (length == 0 || (length < 0 && errno != EAGAIN && errno != EINTR))
                connection->is_over = true;
        if (length <= 0)
                return;
        connection->peer.changed = true;
        if (nghttp2_session_mem_recv(connection->peer.session, bytes, (size_t)length) < 0)
                connection->is_over = true;
        memset(bytes, 0, (size_t)length); /* there may be secrets among them */
}

static void is_ready(struct loop_source *source, uint32_t events)
{
        struct connection *connection = CONNECTION_OF(source, source);

        if ((events & EPOLLIN) != 0)
                read_part(connection);
        else if ((events & (EPOLLERR | EPOLLHUP)) != 0)
                connection->is_over = true;
        if ((events & EPOLLOUT) != 0)
                connection->peer.changed = true;
}

static void greeting_is_over(struct loop_timer *timer)
{
        CONNECTION_OF(greeting, timer)->is_over = true;
}

static void stall_is_over(struct loop_timer *timer)
{
        CONNECTION_OF(stall, timer)->is_over = true;
}

/* ---- bytes out */

/* Behind what waits already. */
static void keep_pending(struct connection *connection, const uint8_t *bytes, size_t length)
{
        size_t left = connection->pending_length - connection->pending_at;
        uint8_t *pending = malloc(left + length);

        if (pending == NULL) {
                connection->is_over = true;
                return;
        }
        if (connection->pending != NULL)
                memcpy(pending, connection->pending + connection->pending_at, left);
        memcpy(pending + left, bytes, length);
        free(connection->pending);
        connection->pending = pending;
        connection->pending_length = left + length;
        connection->pending_at = 0;
}

/* How many the socket took. */
static size_t send_part(struct connection *connection, const uint8_t *bytes, size_t length)
{
        ssize_t sent = send(connection->source.fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (sent < 0 && errno != EAGAIN && errno != EINTR)
                connection->is_over = true;
        return sent > 0 ? (size_t)sent : 0;
}

static void send_bytes(struct connection *connection, const uint8_t *bytes, size_t length)
{
        size_t sent = connection->pending == NULL ? send_part(connection, bytes, length) : 0;

        if (sent < length && !connection->is_over)
                keep_pending(connection, bytes + sent, length - sent);
}

static void send_pending(struct connection *connection)
{
        size_t sent = send_part(connection, connection->pending + connection->pending_at,
                                connection->pending_length - connection->pending_at);

        connection->pending_at += sent;
        if (connection->pending_at == connection->pending_length) {
                free(connection->pending);
                connection->pending = NULL;
                connection->pending_length = connection->pending_at = 0;
        }
        if (sent > 0)
                loop_unset(&connection->stall);
}

/* Frames together, as many as there are: one send() for an answer. */
static void send_frames(struct connection *connection)
{
        static uint8_t bytes[PART];
        size_t length = 0;

        while (connection->pending == NULL && !connection->is_over) {
                const uint8_t *frame;
                ssize_t size = nghttp2_session_mem_send(connection->peer.session, &frame);

                if (size < 0)
                        connection->is_over = true;
                if (size <= 0)
                        break;
                if ((size_t)size > sizeof bytes - length) {
                        send_bytes(connection, bytes, length);
                        length = 0;
                }
                if ((size_t)size > sizeof bytes)
                        send_bytes(connection, frame, (size_t)size);
                else {
                        memcpy(bytes + length, frame, (size_t)size);
                        length += (size_t)size;
                }
        }
        if (length > 0 && !connection->is_over)
                send_bytes(connection, bytes, length);
}

/* No new streams from here on; the open ones go on, also those whose request is still on its way. */
static void say_end(struct connection *connection)
{
        nghttp2_session *session = connection->peer.session;

        (void)nghttp2_submit_goaway(session, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(session),
                                    NGHTTP2_NO_ERROR, NULL, 0);
        connection->end_said = true;
}

bool connection_settle(struct connection *connection)
{
        if (connection->is_over || connection->peer.failed)
                return false;
        if (!connection->peer.changed)
                return true;
        connection->peer.changed = false;
        if (connection->end_heard && !connection->end_said)
                say_end(connection);
        if (connection->pending != NULL)
                send_pending(connection);
        send_frames(connection);
        if (connection->pending != NULL && !connection->stall.set)
                loop_set(&connection->stall, clock_now_ms() + STALL_MS, stall_is_over);
        /* who does not read is not read from, either */
        loop_wait_for(&connection->source, connection->pending != NULL ? EPOLLOUT : EPOLLIN);
        if (connection->pending == NULL && nghttp2_session_want_read(connection->peer.session) == 0 &&
            nghttp2_session_want_write(connection->peer.session) == 0)
                connection->is_over = true;
        return !connection->is_over;
}

/* ---- its life */

struct connection *connection_begin(int fd, const struct rpc *const *services)
{
        struct connection *connection = calloc(1, sizeof *connection);

        if (connection == NULL) {
                (void)close(fd);
                return NULL;
        }
        connection->source = (struct loop_source){ .fd = fd, .ready = is_ready };
        connection->peer.services = services;
        connection->peer.changed = true;
        connection->since_ms = clock_now_ms();
        if (make_session(connection) < 0 || loop_add(&connection->source, EPOLLIN) < 0) {
                nghttp2_session_del(connection->peer.session);
                (void)close(fd);
                free(connection);
                return NULL;
        }
        loop_set(&connection->greeting, connection->since_ms + GREETING_MS, greeting_is_over);
        return connection;
}

void connection_announce_end(struct connection *connection)
{
        (void)nghttp2_submit_shutdown_notice(connection->peer.session);
        connection->peer.changed = true;
}

bool connection_is_idle(const struct connection *connection, int64_t *ret_since_ms)
{
        *ret_since_ms = connection->since_ms;
        return connection->peer.streams == NULL && connection->pending == NULL;
}

void connection_end(struct connection *connection)
{
        loop_remove(&connection->source);
        loop_unset(&connection->greeting);
        loop_unset(&connection->stall);
        while (connection->peer.streams != NULL)
                stream_end(connection->peer.streams);
        nghttp2_session_del(connection->peer.session); /* calls no callbacks */
        (void)close(connection->source.fd);
        free(connection->pending);
        free(connection);
}
