/* SPDX-License-Identifier: MIT
 * Implements the methods of dict, list, tuple, range, int, float and bytes. As in Jinja's immutable sandbox, there are
 * no methods that change their object. */
#include <math.h>

#include "base/utf8.h"
#include "template/builtin.h"

static whit_status dict_view(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    *result = (whit_datum){.kind = WHIT_DATUM_VIEW, .detail = call->builtin->detail, .dict = call->self.dict};
    return whit_machine_spend(m, 1);
}

static whit_status dict_get(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    WHIT_TRY(whit_machine_want_key(m, call->values[0]));
    const whit_datum *member = whit_dict_get(call->self.dict, call->values[0]);
    if (member)
        *result = *member;
    else if (call->given[1])
        *result = call->values[1];
    else
        *result = whit_datum_none();
    return whit_machine_spend(m, 1);
}

static whit_status copy_dict(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    *result = call->self; /* the same dict, since dicts never change */
    return whit_machine_spend(m, 1);
}

const whit_builtin whit_dict_methods[] = {{"items", "", dict_view, WHIT_VIEW_ITEMS},
                                          {"keys", "", dict_view, WHIT_VIEW_KEYS},
                                          {"values", "", dict_view, WHIT_VIEW_VALUES},
                                          {"get", "/key default?", dict_get, 0},
                                          {"copy", "", copy_dict, 0},
                                          {NULL, NULL, NULL, 0}};

static whit_status sequence_count(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    whit_list list;
    int64_t n = 0;
    WHIT_TRY(whit_machine_items(m, call->self, &list));
    for (size_t i = 0; i < list.n; i++) {
        bool same;
        WHIT_TRY(whit_machine_equals(m, list.items[i], call->values[0], &same));
        n += same;
    }
    *result = whit_datum_int(n);
    return WHIT_OK;
}

static whit_status sequence_index(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    whit_list list;
    int64_t bounds[2];
    WHIT_TRY(whit_machine_items(m, call->self, &list));
    WHIT_TRY(whit_builtin_want_int(m, call, 1, 0, &bounds[0]));
    WHIT_TRY(whit_builtin_want_int(m, call, 2, (int64_t)list.n, &bounds[1]));
    for (int k = 0; k < 2; k++)
        if (bounds[k] < 0) bounds[k] = bounds[k] + (int64_t)list.n < 0 ? 0 : bounds[k] + (int64_t)list.n;
    for (int64_t i = bounds[0]; i < bounds[1] && (uint64_t)i < list.n; i++) {
        bool same;
        WHIT_TRY(whit_machine_equals(m, list.items[i], call->values[0], &same));
        if (!same) continue;
        *result = whit_datum_int(i);
        return WHIT_OK;
    }
    return whit_machine_raise(m, WHIT_ERROR_ARGUMENT, "value is not in %s", whit_datum_type(call->self));
}

const whit_builtin whit_sequence_methods[] = {{"count", "/value", sequence_count, 0},
                                              {"index", "/value start? stop?", sequence_index, 0},
                                              {"copy", "", copy_dict, 0},
                                              {NULL, NULL, NULL, 0}};

static whit_status is_whole(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    *result = whit_datum_bool(isfinite(call->self.real) && floor(call->self.real) == call->self.real);
    return whit_machine_spend(m, 1);
}

const whit_builtin whit_float_methods[] = {{"is_integer", "", is_whole, 0}, {NULL, NULL, NULL, 0}};

static whit_status decode(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    const whit_text *bytes = call->self.text;
    if (whit_utf8_valid_bytes((const uint8_t *)bytes->bytes, bytes->n_bytes) != bytes->n_bytes)
        return whit_machine_raise(m, WHIT_ERROR_ARGUMENT, "bytes are not UTF-8");
    whit_builder b = whit_machine_build(m);
    whit_builder_text(&b, bytes);
    return whit_machine_build_end(m, &b, result);
}

const whit_builtin whit_bytes_methods[] = {{"decode", "encoding? errors?", decode, 0}, {NULL, NULL, NULL, 0}};
