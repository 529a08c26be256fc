/* SPDX-License-Identifier: MIT
 * Reads which adapters a request uses: the request's model name is that of an adapter, or the request lists adapters
 * with strengths. */
#include <math.h>
#include <string.h>

#include "server/access.h"
#include "server/ask.h"
#include "server/fields.h"
#include "server/models.h"

static int find_adapter(const whit_api *api, const char *name)
{
    for (size_t k = 0; k < api->options->n_adapters; k++)
        if (api->adapters[k] && whit_is_named(api->options->adapters[k].name, name)) return (int)k;
    return -1;
}

/* Returns whether the request's model name is the name of an adapter, even of one that does not fit this model, and not
 * also the name of this model. */
static bool is_adapter(const whit_api *api, const char *name)
{
    bool found = false;
    for (size_t k = 0; name && k < api->options->n_adapters; k++)
        found |= whit_is_named(api->options->adapters[k].name, name);
    return found && !whit_is_named(api->name, name);
}

static bool add_mount(const whit_api *api, int which, const json_t *strength, whit_job *job, whit_web_reply *reply)
{
    double scale = 1;
    if (strength) scale = json_is_number(strength) ? json_number_value(strength) : NAN;
    if (which < 0)
        return whit_field_refuse(reply, "adapters", "the model has no adapter of that name; GET /v1/models lists them");
    if (!whit_key_may_use(api->site, job->key, api->options->adapters[which].name))
        return whit_key_refuse_model(reply), false;
    if (!(scale >= -WHIT_STRENGTH_MAX && scale <= WHIT_STRENGTH_MAX))
        return whit_field_refuse(reply, "adapters", "expected strengths from -16 to 16");
    for (size_t i = 0; i < job->n_mounts; i++)
        if (job->mounts[i].adapter == api->adapters[which]) return job->mounts[i].scale = (float)scale, true;
    if (job->n_mounts == WHIT_MOUNTS_MAX)
        return whit_field_refuse(reply, "adapters",
                                 "more adapters are named than one request can use at once: at most 8 are possible");
    job->mounts[job->n_mounts++] = (whit_mount){api->adapters[which], (float)scale};
    return true;
}

/* Adds the adapters whose strengths POST /lora-adapters has set, and which the key may use. */
static void add_usual(const whit_api *api, whit_job *job)
{
    for (size_t k = 0; k < api->options->n_adapters; k++) {
        float strength = atomic_load(&api->site->strengths[k]);
        if (strength == 0 || !whit_key_may_use(api->site, job->key, api->options->adapters[k].name)) continue;
        if (api->adapters[k] && job->n_mounts < WHIT_MOUNTS_MAX)
            job->mounts[job->n_mounts++] = (whit_mount){api->adapters[k], strength};
    }
}

bool whit_mounts_are_named(const whit_api *api, const json_t *body)
{
    const json_t *adapters = json_object_get(body, "adapters"), *lora = json_object_get(body, "lora");
    return (adapters && !json_is_null(adapters)) || (lora && !json_is_null(lora)) ||
        is_adapter(api, json_string_value(json_object_get(body, "model")));
}

bool whit_mounts_read(const whit_api *api, const json_t *body, whit_job *job, whit_web_reply *reply)
{
    const json_t *adapters, *lora;
    const char *model = json_string_value(json_object_get(body, "model")), *name;
    json_t *strength;
    size_t n = 0;
    if (!whit_field_object(body, "adapters", &adapters, reply) || !whit_field_list(body, "lora", &lora, reply))
        return false;
    if (!adapters && !lora && !is_adapter(api, model)) add_usual(api, job);
    if (is_adapter(api, model) && !add_mount(api, find_adapter(api, model), NULL, job, reply)) return false;
    json_object_foreach((json_t *)adapters, name, strength)
    {
        if (!add_mount(api, find_adapter(api, name), strength, job, reply)) return false;
    }
    for (size_t i = 0; i < json_array_size(lora); i++) { /* llama.cpp's form identifies adapters by number */
        const json_t *one = json_array_get(lora, i), *id = json_object_get(one, "id");
        json_int_t k = json_is_integer(id) ? json_integer_value(id) : -1;
        bool known = k >= 0 && (size_t)k < api->options->n_adapters && api->adapters[k];
        if (!add_mount(api, known ? (int)k : -1, json_object_get(one, "scale"), job, reply)) return false;
    }
    for (size_t i = 0; i < job->n_mounts; i++) /* removes adapters with strength 0 */
        if (job->mounts[i].scale != 0) job->mounts[n++] = job->mounts[i];
    job->n_mounts = n;
    return true;
}
