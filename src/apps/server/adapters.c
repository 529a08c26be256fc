/* SPDX-License-Identifier: MIT
 * Serves llama.cpp's GET and POST /lora-adapters: lists and sets the adapter strengths that apply to requests that name
 * no adapter. */
#include <math.h>

#include "server/access.h"
#include "server/ask.h"
#include "server/endpoints.h"

void whit_adapters_get(whit_call *call)
{
    const whit_site *site = call->site;
    json_t *list = json_array();
    /* the paths of the files are omitted, since clients should not learn them */
    for (size_t k = 0; k < site->options->n_adapters; k++) {
        if (!whit_key_may_use(site, call->key, site->options->adapters[k].name)) continue;
        json_array_append_new(list,
                              json_pack("{s:i, s:s, s:s, s:f}", "id", (int)k, "name", site->options->adapters[k].name,
                                        "path", site->options->adapters[k].name, "scale",
                                        (double)atomic_load(&site->strengths[k])));
    }
    whit_api_reply(call->reply, list);
}

void whit_adapters_set(whit_call *call)
{
    whit_site *site = call->site;
    if (whit_key_is_limited(site, call->key)) {
        whit_api_fail(call->reply, 403, "permission_error", NULL, "this key may not set adapters for all requests");
        return;
    }
    float strengths[WHIT_SERVER_MOST_ADAPTERS] = {0}; /* adapters that are not in the request's list get strength 0 */
    size_t n_on = 0;
    for (size_t i = 0; i < json_array_size(call->body); i++) {
        const json_t *one = json_array_get(call->body, i), *id = json_object_get(one, "id");
        const json_t *scale = json_object_get(one, "scale");
        double value = json_is_number(scale) ? json_number_value(scale) : NAN;
        json_int_t k = json_is_integer(id) ? json_integer_value(id) : -1;
        if (k < 0 || (size_t)k >= site->options->n_adapters || !(fabs(value) <= WHIT_STRENGTH_MAX)) {
            whit_api_fail(
                call->reply, 400, "invalid_request_error", "id",
                "[%zu]: expected the id of an adapter (GET /lora-adapters lists them) and a scale from -%d to "
                "%d",
                i, WHIT_STRENGTH_MAX, WHIT_STRENGTH_MAX);
            return;
        }
        strengths[k] = (float)value;
    }
    for (size_t k = 0; k < site->options->n_adapters; k++) n_on += strengths[k] != 0;
    if (n_on > WHIT_MOUNTS_MAX) {
        whit_api_fail(call->reply, 400, "invalid_request_error", NULL,
                      "at most %d adapters may be enabled for all requests", WHIT_MOUNTS_MAX);
        return;
    }
    for (size_t k = 0; k < site->options->n_adapters; k++) atomic_store(&site->strengths[k], strengths[k]);
    whit_api_reply(call->reply, json_pack("{s:b}", "success", 1));
}
