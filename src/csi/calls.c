/* SPDX-License-Identifier: Apache-2.0 */
#include "calls.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "awaited.h"
#include "base/text.h"
#include "memory.h"
#include "message.h"
#include "run.h"

#define REQUEST_MEMORY ((size_t)32 * 1024 * 1024) /* unpacked: eight times the longest message */
#define MESSAGE_MAX 1024                          /* clients refuse long headers: grpc-core from 8 KiB on */

struct call {
        struct call *next, *previous;
        const struct rpc *rpc;
        const char *alone; /* nothing else may work on it; NULL: nothing */
        ProtobufCMessage *request;
        call_answered *answered; /* NULL: forgotten */
        void *argument;
        void *kept;           /* by call_keep() */
        call_next *goes_on;   /* with what the program has answered */
        struct call **begun;  /* set to NULL by an answer while begin() runs */
        struct run *run;      /* the program; NULL: none */
        bool looks;           /* that changes nothing */
        bool has_run;         /* one of its programs has ended */
        bool has_worked;      /* one that may have changed something has */
        struct memory memory; /* of the request, and more */
};

static const struct csi_options *given_options;
static struct call *calls;
static size_t call_counts[RUN_QUEUES];

void calls_begin(const struct csi_options *options)
{
        given_options = options;
}

bool calls_under_way(void)
{
        return calls != NULL;
}

static bool is_under_way(const char *alone)
{
        for (const struct call *call = calls; call != NULL; call = call->next)
                if (call->alone != NULL && strcmp(call->alone, alone) == 0)
                        return true;
        return false;
}

static enum run_queue queue_of(const struct rpc *rpc)
{
        return rpc->yields || text_starts(rpc->path, "/csi.v1.Controller/") ? RUN_CONTROLLER : RUN_NODE;
}

static bool are_too_many(enum run_queue queue)
{
        return call_counts[RUN_CONTROLLER] + call_counts[RUN_NODE] > CALLS_MAX ||
               (queue == RUN_CONTROLLER && call_counts[queue] > CALLS_CONTROLLER_MAX);
}

static void insert(struct call *call)
{
        call->next = calls;
        if (calls != NULL)
                calls->previous = call;
        calls = call;
        call_counts[queue_of(call->rpc)]++;
}

static void end_call(struct call *call)
{
        struct memory memory = call->memory; /* the call lies in it */

        if (call->previous != NULL)
                call->previous->next = call->next;
        else
                calls = call->next;
        if (call->next != NULL)
                call->next->previous = call->previous;
        call_counts[queue_of(call->rpc)]--;
        if (call->begun != NULL)
                *call->begun = NULL;
        memory_end(&memory);
}

/* Whether the call may begin; else it is answered. */
static bool admit(struct call *call)
{
        const char *alone = call->rpc->alone != NULL ? call->rpc->alone(call->request) : NULL;

        if (alone == NULL || alone[0] == '\0')
                return true;
        if (is_under_way(alone)) {
                call_fail(call, GRPC_ABORTED, "another call for %.256s is under way", alone);
                return false;
        }
        call->alone = alone;
        return true;
}

struct call *call_begin(const struct rpc *rpc, const uint8_t *request, size_t length, call_answered *answered,
                        void *argument)
{
        struct memory memory;
        struct call *call;
        enum grpc_code code;
        const char *why;

        memory_init(&memory, REQUEST_MEMORY);
        call = memory_take_always(&memory, sizeof *call);
        *call = (struct call){ .rpc = rpc, .answered = answered, .argument = argument, .begun = &call };
        call->memory = memory;
        call->memory.allocator.allocator_data = &call->memory;
        insert(call);
        if (are_too_many(queue_of(rpc))) { /* after RESOURCE_EXHAUSTED the provisioner would try another node */
                call_fail(call, GRPC_UNAVAILABLE, "%zu calls are under way",
                          call_counts[RUN_CONTROLLER] + call_counts[RUN_NODE] - 1);
                return NULL;
        }
        code = message_unpack(rpc->request, request, length, &call->memory, &call->request, &why);
        if (code != GRPC_OK)
                call_fail(call, code, "%s", why);
        else if (admit(call))
                rpc->begin(call);
        if (call != NULL)
                call->begun = NULL;
        return call;
}

void call_forget(struct call *call)
{
        call->answered = NULL;
        if (call->run != NULL && !call->has_worked && run_cancel(call->run))
                end_call(call);
}

bool call_is_awaited(const struct call *call)
{
        return call->answered != NULL;
}

const ProtobufCMessage *call_request(const struct call *call)
{
        return call->request;
}

const struct csi_options *call_options(const struct call *call)
{
        (void)call;
        return given_options;
}

void call_keep(struct call *call, void *kept)
{
        call->kept = kept;
}

void *call_kept(const struct call *call)
{
        return call->kept;
}

void *call_memory(struct call *call, size_t size)
{
        return memory_take_always(&call->memory, size);
}

static void go_on(void *argument, const struct outcome *outcome)
{
        struct call *call = argument;
        call_next *next = call->goes_on;
        const bool is_first = !call->has_run;

        call->goes_on = NULL;
        call->run = NULL;
        call->has_run = true;
        call->has_worked = call->has_worked || !call->looks;
        if (outcome->occupied && is_first)
                call_fail(call, GRPC_ABORTED,
                          "a call for %.256s that was made before the driver was restarted is under way", call->alone);
        else if (call->answered == NULL && !call->has_worked)
                end_call(call); /* what it saw may be another volume's by the time that it goes on */
        else
                next(call, outcome);
}

void call_run(struct call *call, const char *program, const char *const arguments[], const char *input, call_next *next)
{
        struct awaited awaited = AWAITED_NOTHING;
        const bool slow = call->rpc->slow != NULL && call->rpc->slow(call->request, &awaited);
        const struct run_place place = { .queue = queue_of(call->rpc),
                                         .slow = slow ? call->rpc->path : NULL,
                                         .awaited = awaited,
                                         .alone = call->alone };

        call->goes_on = next;
        call->looks = strcmp(program, "volume-list") == 0;
        call->run = run_begin(&place, program, arguments, input, go_on, call);
}

void call_answer(struct call *call, const ProtobufCMessage *response)
{
        size_t length = protobuf_c_message_get_packed_size(response);
        uint8_t *body = malloc(length > 0 ? length : 1);

        if (body == NULL)
                abort(); /* as in memory_take_always() */
        (void)protobuf_c_message_pack(response, body);
        if (call->answered != NULL)
                call->answered(call->argument, GRPC_OK, "", body, length);
        else
                free(body);
        end_call(call);
}

void call_fail(struct call *call, enum grpc_code code, const char *format, ...)
{
        char message[MESSAGE_MAX];
        va_list arguments;

        va_start(arguments, format);
        (void)vsnprintf(message, sizeof message, format, arguments);
        va_end(arguments);
        if (call->answered != NULL)
                call->answered(call->argument, code, message, NULL, 0);
        end_call(call);
}
