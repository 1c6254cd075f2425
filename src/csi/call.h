/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call.h - one RPC, from its request to its answer.
 *
 * The transport (server.c, connection.c) makes a call of each complete request, finds its row in rpcs[] and calls
 * begin(). That answers at once, or runs a program of flexgraft and goes on in a function that gets the outcome. Nothing
 * here waits: all calls share one thread. The answer may come after the client has gone; what has begun is finished all
 * the same.
 */
#ifndef FLEXGRAFT_CSI_CALL_H
#define FLEXGRAFT_CSI_CALL_H

#include <jansson.h>
#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>

#include "awaited.h"

/* What gRPC calls them. */
enum grpc_code {
        GRPC_OK = 0,
        GRPC_CANCELLED = 1,
        GRPC_UNKNOWN = 2,
        GRPC_INVALID_ARGUMENT = 3,
        GRPC_DEADLINE_EXCEEDED = 4,
        GRPC_NOT_FOUND = 5,
        GRPC_ALREADY_EXISTS = 6,
        GRPC_PERMISSION_DENIED = 7,
        GRPC_RESOURCE_EXHAUSTED = 8,
        GRPC_FAILED_PRECONDITION = 9,
        GRPC_ABORTED = 10,
        GRPC_OUT_OF_RANGE = 11,
        GRPC_UNIMPLEMENTED = 12,
        GRPC_INTERNAL = 13,
        GRPC_UNAVAILABLE = 14,
};

struct call;

/* What a program of flexgraft answered. */
struct outcome {
        int status;          /* its exit status; -1: it was killed, or printed no JSON object */
        const json_t *reply; /* what it printed, as long as the function runs; NULL: nothing that is JSON */
        const char *state;   /* its "status": "Success", "Failure", "Not supported"; "" where there is none */
        const char *message; /* its "message", or a sentence about what happened to it */
        int error;           /* its "error"."errno" as a number; 0: none */
        bool occupied;       /* it was not started: one that an earlier driver has begun for the same runs */
};
typedef void call_next(struct call *call, const struct outcome *outcome);

struct rpc {
        const char *path; /* "/csi.v1.Node/NodePublishVolume" */
        const ProtobufCMessageDescriptor *request;
        const ProtobufCMessageDescriptor *response;
        void (*begin)(struct call *call);
        /*
         * What two calls may not work on at the same time: the second is answered ABORTED. A text inside the request;
         * NULL or "": nothing. NULL function: never.
         */
        const char *(*alone)(const ProtobufCMessage *request);
        /*
         * Whether its programs may overwrite or copy a volume, or wait for a server. Gives: ret_awaited, AWAITED_NOTHING
         * before, for which. NULL function: never.
         */
        bool (*slow)(const ProtobufCMessage *request, struct awaited *ret_awaited);
        bool yields; /* no pod waits for it: it counts with the Controller's calls, and so do its programs */
};
/* One table per service, ended by a row without a path. */
extern const struct rpc identity_rpcs[], controller_rpcs[], node_rpcs[], registration_rpcs[];

/* call_request() - the request, as long as the call. */
const ProtobufCMessage *call_request(const struct call *call);

/* call_options() - the driver's command line, as long as the process. */
struct csi_options {
        const char *endpoint; /* the path of the socket that kubelet calls */
        const char *registry; /* the directory of the registration socket; NULL: none */
        const char *node;     /* the node's name: its id and its topology */
        const char *name;     /* the driver's: "csi.flexgraft.io" */
};
const struct csi_options *call_options(const struct call *call);

/* call_memory() - that many bytes, zero, which are freed with the call; never NULL (the process ends instead). */
void *call_memory(struct call *call, size_t size);

/* call_is_awaited() - whether somebody still waits for the answer. */
bool call_is_awaited(const struct call *call);

/* call_keep() - a pointer for the functions that go on, which call_kept() gives back; NULL at first. */
void call_keep(struct call *call, void *kept);
void *call_kept(const struct call *call);

/*
 * call_run() - run a program, and call next with what came of it. At most once at a time per call. If it cannot begin
 * because of one that an earlier driver has begun, and is the call's first, the call ends, with ABORTED.
 *
 * Where:   arguments are argv[1] and after, ended by NULL; input is its standard input (NULL: none).
 *          program is a name as program_find_sibling() knows them: "volume-create", "verbs/mount".
 * Owns:    nothing: program, arguments and input are copied.
 */
void call_run(struct call *call, const char *program, const char *const arguments[], const char *input,
              call_next *next);

/* call_answer() - GRPC_OK and a message of the row's response; ends the call. */
void call_answer(struct call *call, const ProtobufCMessage *response);

/* call_fail() - any other code and a sentence; ends the call. */
__attribute__((format(printf, 3, 4))) void call_fail(struct call *call, enum grpc_code code, const char *format, ...);

#endif
