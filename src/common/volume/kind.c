/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/kind.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "volume/kind_bind.h"
#include "volume/kind_block.h"
#include "volume/kind_ephemeral.h"
#include "volume/kind_loop.h"
#include "volume/kind_lvm.h"
#include "volume/kind_nfs.h"
#include "volume/kind_pmem.h"
#include "volume/kind_tmpfs.h"
#include "volume/kind_words.h"
#include "volume/option_keys.h"
#include "volume/provisioned.h"

static const struct volume_kind *const kinds[] = { &kind_loop, &kind_block, &kind_bind,      &kind_tmpfs, &kind_nfs,
                                                   &kind_lvm,  &kind_pmem,  &kind_ephemeral, &kind_kata };

static const struct volume_kind *find(const char *word)
{
        for (size_t i = 0; word != NULL && i < sizeof kinds / sizeof kinds[0]; i++)
                if (strcmp(kinds[i]->word, word) == 0)
                        return kinds[i];
        return NULL;
}

/* What only one kind could mean. */
static const struct volume_kind *guess(const struct volume_request *request)
{
        static const char *const of_loop[] = { "image", "pool", "size" };

        if (json_object_get(request->options, "volumegroup") != NULL)
                return &kind_lvm;
        for (size_t i = 0; i < sizeof of_loop / sizeof of_loop[0]; i++)
                if (json_object_get(request->options, of_loop[i]) != NULL)
                        return &kind_loop;
        if (json_object_get(request->options, "server") != NULL && json_object_get(request->options, "share") != NULL)
                return &kind_nfs;
        return NULL;
}

/* Of a pool, whatever type that is. */
static bool is_of_pool(const struct volume_kind *kind)
{
        return kind == NULL || kind->of_pool || kind == &kind_ephemeral;
}

/* "ephemeral": "true" makes a volume of a pool another sort. */
static int check_ephemeral(const struct volume_request *request, const struct volume_kind *of_driver,
                           const struct volume_kind **kind, struct error *error)
{
        const char *ephemeral;
        int r = volume_request_option(request, "ephemeral", &ephemeral, error);

        if (r < 0 || ephemeral == NULL || strcmp(ephemeral, "false") == 0)
                return r;
        if (strcmp(ephemeral, "true") != 0)
                return fail_because(error, EINVAL, "find kind", "ephemeral", "ephemeral: must be true or false");
        if (!is_of_pool(of_driver) || !is_of_pool(*kind))
                return fail_because(error, EINVAL, "find kind", request->name,
                                    "only volumes of pools (loop, lvm, pmem) are ephemeral");
        *kind = &kind_ephemeral;
        return 0;
}

int volume_kind_choose(struct volume_call *call, struct error *error)
{
        const char *tilde = strchr(call->driver, '~');
        const struct volume_kind *of_driver = find(tilde != NULL ? tilde + 1 : NULL);
        const struct volume_kind *of_record = call->recorded ? find(call->record.kind) : NULL;
        const struct volume_kind *kind;
        const char *word;
        int r = volume_request_option(call->request, "type", &word, error);

        if (r < 0)
                return r;
        kind = find(word);
        if (word != NULL && (kind == NULL || kind == &kind_kata))
                return fail_because(error, EINVAL, "find kind", word,
                                    "\"%.64s\" is no type of volume: " VOLUME_TYPE_LIST, word);
        if (kind != NULL && of_driver != NULL && kind != of_driver)
                return fail_because(error, EINVAL, "find kind", word, "a driver named %s has no volumes of type %s",
                                    of_driver->word, word);
        if ((r = check_ephemeral(call->request, of_driver, &kind, error)) < 0)
                return r;
        if (kind == NULL)
                kind = of_record != NULL ? of_record : of_driver != NULL ? of_driver : guess(call->request);
        if (kind == NULL)
                return fail_because(error, EINVAL, "find kind", call->request->name,
                                    "the volume does not say its \"type\": one of " VOLUME_TYPE_LIST);
        /* one that is neither attached nor mounted is kept for its unfinished filesystem, and bars nobody */
        if (of_record != NULL && of_record != kind && call->record.device[0] == '\0' &&
            call->record.staged.dir == NULL && call->record.published_count == 0) {
                of_record = NULL;
                call->record.source[0] = '\0';
                call->record.formatting[0] = '\0';
        }
        if (of_record != NULL && of_record != kind)
                return fail_because(error, EBUSY, "find kind", call->request->name,
                                    "a volume of this name is here already, of type %s", call->record.kind);
        call->kind = kind;
        if (call->request->verb == VERB_ATTACH || call->request->verb == VERB_MOUNT)
                option_keys_tell(call->request->options);
        return 0;
}

int volume_kind_open(struct volume_call *call, struct error *error)
{
        int r;

        if ((r = volume_call_open(call, error)) < 0 || (r = volume_kind_choose(call, error)) < 0 ||
            (r = volume_call_load_policy(call, error)) < 0)
                return r;
        return provisioned_apply(call, error);
}

const struct volume_kind *volume_kind_of_lost_record(void)
{
        return &kind_loop;
}
