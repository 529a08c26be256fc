/* SPDX-License-Identifier: MIT
 * Implements the global functions, and the methods of loops. */
#include "template/builtin.h"
#include "template/format.h"
#include "template/strings.h"

enum { MAX_RANGE = 100000 }; /* limit of range(), as in Jinja's sandbox */

static whit_status range(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    int64_t start = 0, stop, step, distance;
    bool has_start = call->given[1];
    WHIT_TRY(whit_builtin_want_int(m, call, 0, 0, &stop));
    if (has_start) {
        start = stop;
        WHIT_TRY(whit_builtin_want_int(m, call, 1, 0, &stop));
    }
    WHIT_TRY(whit_builtin_want_int(m, call, 2, 1, &step));
    if (step == 0) return whit_machine_raise(m, WHIT_ERROR_ARGUMENT, "range() arg 3 must not be zero");
    if (__builtin_sub_overflow(stop, start, &distance) || step == INT64_MIN)
        return whit_machine_raise(m, WHIT_ERROR_LIMIT, "range too big");
    uint64_t n = 0;
    if (step > 0 && distance > 0) n = ((uint64_t)distance - 1) / (uint64_t)step + 1;
    if (step < 0 && distance < 0) n = (0 - (uint64_t)distance - 1) / (uint64_t)-step + 1;
    if (n > MAX_RANGE)
        return whit_machine_raise(m, WHIT_ERROR_LIMIT, "range too big: the sandbox blocks ranges larger than %d",
                                  MAX_RANGE);
    whit_range *made = whit_datum_pool_zalloc(m->pool, 1, sizeof *made);
    if (!made) return whit_machine_raise_memory(m);
    *made = (whit_range){start, stop, step, (size_t)n};
    *result = (whit_datum){.kind = WHIT_DATUM_RANGE, .range = made};
    return WHIT_OK;
}

/* Implements dict(...) and namespace(...). Their arguments are a mapping or pairs, and name=value. */
static whit_status make_dict(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    const whit_arguments *a = call->arguments;
    if (a->n_positional > 1)
        return whit_machine_raise_type(m, "%s() takes at most one positional argument", call->builtin->name);
    if (!whit_datum_dict(m->pool, result)) return whit_machine_raise_memory(m);
    whit_list pairs = {0};
    if (a->n_positional) {
        whit_datum from = a->positional[0];
        if (from.kind == WHIT_DATUM_DICT)
            from = (whit_datum){.kind = WHIT_DATUM_VIEW, .detail = WHIT_VIEW_ITEMS, .dict = from.dict};
        WHIT_TRY(whit_machine_items(m, from, &pairs));
    }
    for (size_t i = 0; i < pairs.n; i++) {
        whit_list pair;
        WHIT_TRY(whit_machine_items(m, pairs.items[i], &pair));
        if (pair.n != 2) return whit_machine_raise_type(m, "%s() wants pairs", call->builtin->name);
        WHIT_TRY(whit_machine_want_key(m, pair.items[0]));
        if (!whit_dict_set(m->pool, result->dict, pair.items[0], pair.items[1])) return whit_machine_raise_memory(m);
    }
    for (size_t i = 0; i < a->n_named; i++)
        if (!whit_dict_set(m->pool, result->dict, whit_datum_text(a->named[i].name), a->named[i].value))
            return whit_machine_raise_memory(m);
    result->kind = call->builtin->detail;
    return WHIT_OK;
}

static whit_status joiner(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    static const whit_text comma = {.bytes = ", ", .n_bytes = 2, .n_points = 2};
    const whit_text *separator = &comma;
    if (call->given[0]) WHIT_TRY(whit_machine_str(m, call->values[0], &separator));
    whit_joiner *made = whit_datum_pool_zalloc(m->pool, 1, sizeof *made);
    if (!made) return whit_machine_raise_memory(m);
    made->separator = separator;
    *result = (whit_datum){.kind = WHIT_DATUM_JOINER, .joiner = made};
    return WHIT_OK;
}

static whit_status raise_exception(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    const whit_text *text;
    (void)result;
    WHIT_TRY(whit_machine_str(m, call->values[0], &text));
    m->raised = text;
    return whit_machine_raise(m, WHIT_ERROR_ARGUMENT, "the template raised an exception");
}

static whit_status strftime_now(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    const whit_text *format;
    WHIT_TRY(whit_builtin_want_text(m, call, 0, &format));
    return whit_print_time(m, &m->now, format, result);
}

const whit_builtin whit_functions[] = {
    {"range", "/start stop? step?", range, 0},
    {"dict", "*", make_dict, WHIT_DATUM_DICT},
    {"namespace", "*", make_dict, WHIT_DATUM_NAMESPACE},
    {"joiner", "sep?", joiner, 0},
    {"raise_exception", "message", raise_exception, 0},
    {"strftime_now", "format", strftime_now, 0},
    {NULL, NULL, NULL, 0},
};

/* ---- loop ------------------------------------------------------------------------------------ */

static whit_status loop_cycle(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    if (!call->arguments->n_positional) return whit_machine_raise_type(m, "no items for cycling given");
    *result = call->arguments->positional[call->self.loop->index % call->arguments->n_positional];
    return WHIT_OK;
}

static whit_status loop_changed(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    whit_datum given;
    bool same = false;
    WHIT_TRY(whit_machine_new_tuple(m, call->arguments->positional, call->arguments->n_positional, &given));
    if (call->self.loop->changed.kind == WHIT_DATUM_TUPLE)
        WHIT_TRY(whit_machine_equals(m, call->self.loop->changed, given, &same));
    if (!same) call->self.loop->changed = given;
    *result = whit_datum_bool(!same);
    return WHIT_OK;
}

const whit_builtin whit_loop_methods[] = {
    {"cycle", "*", loop_cycle, 0}, {"changed", "*", loop_changed, 0}, {NULL, NULL, NULL, 0}};
