/* SPDX-License-Identifier: MIT
 * Implements tests, such as {{ x is odd }}. */
#include "template/builtin.h"
#include "template/strings.h"
#include "template/unicode.h"

static whit_status set_answer(whit_datum *result, bool yes)
{
    *result = whit_datum_bool(yes);
    return WHIT_OK;
}

static whit_status is_kind(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    (void)m;
    return set_answer(result, call->self.kind == call->builtin->detail);
}

static whit_status is_defined(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    (void)m;
    return set_answer(result, call->self.kind != WHIT_DATUM_UNDEFINED);
}

static whit_status is_truth(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    (void)m;
    return set_answer(result, call->self.kind == WHIT_DATUM_BOOL && call->self.boolean == call->builtin->detail);
}

static whit_status is_integer(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    (void)m;
    return set_answer(result, call->self.kind == WHIT_DATUM_INT || call->self.kind == WHIT_DATUM_BIGINT);
}

static whit_status is_number(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    (void)m;
    return set_answer(result, whit_datum_is_number(call->self));
}

static whit_status is_string(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    (void)m;
    return set_answer(result, whit_datum_is_str(call->self));
}

static whit_status is_sequence(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    (void)m;
    uint8_t k = call->self.kind;
    return set_answer(result,
                      k == WHIT_DATUM_UNDEFINED || k == WHIT_DATUM_TEXT || k == WHIT_DATUM_LIST ||
                          k == WHIT_DATUM_TUPLE || k == WHIT_DATUM_DICT || k == WHIT_DATUM_RANGE);
}

static whit_status is_iterable(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    (void)m;
    return set_answer(result, whit_datum_is_iterable(call->self));
}

static whit_status is_callable(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    (void)m;
    return set_answer(result, whit_datum_is_callable(call->self));
}

static whit_status is_escaped(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    (void)m;
    return set_answer(result, call->self.kind == WHIT_DATUM_TEXT && call->self.text->markup);
}

static whit_status is_case(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    const whit_text *text;
    bool any = false, all = true, want_upper = call->builtin->detail;
    WHIT_TRY(whit_machine_str(m, call->self, &text));
    WHIT_TRY(whit_machine_spend(m, text->n_bytes / 16));
    for (size_t at = 0; at < text->n_bytes;) {
        uint32_t point = whit_text_point(text, at, &at);
        any |= want_upper ? whit_point_is_upper(point) : whit_point_is_lower(point);
        all &= !(want_upper ? whit_point_is_lower(point) : whit_point_is_upper(point)) && !whit_point_is_title(point);
    }
    return set_answer(result, any && all);
}

/* Implements odd, even and divisibleby: tests whether self % 2, or self % argument, equals the builtin's `detail`. */
static whit_status has_remainder(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    whit_datum by = call->given[0] ? call->values[0] : whit_datum_int(2), rest;
    bool same;
    WHIT_TRY(whit_machine_arithmetic(m, WHIT_MODULO, call->self, by, &rest));
    WHIT_TRY(whit_machine_equals(m, rest, whit_datum_int(call->builtin->detail), &same));
    return set_answer(result, same);
}

static whit_status compares(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    bool holds;
    WHIT_TRY(whit_machine_compare(m, (whit_comparison)call->builtin->detail, call->self, call->values[0], &holds));
    return set_answer(result, holds);
}

/* Implements Python's `is`. None, equal booleans, integers and floats, and equal texts of at most one character are
 * always the same object; other values are the same if they share their storage. */
static whit_status is_same(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    (void)m;
    whit_datum a = call->self, b = call->values[0];
    if (a.kind != b.kind) return set_answer(result, false);
    switch (a.kind) {
    case WHIT_DATUM_NONE: return set_answer(result, true);
    case WHIT_DATUM_BOOL: return set_answer(result, a.boolean == b.boolean);
    case WHIT_DATUM_INT: return set_answer(result, a.integer == b.integer);
    case WHIT_DATUM_FLOAT: return set_answer(result, a.real == b.real);
    case WHIT_DATUM_TEXT:
        return set_answer(result, a.text == b.text || (a.text->n_points <= 1 && whit_text_equal(a.text, b.text)));
    default: return set_answer(result, a.dict == b.dict);
    }
}

static whit_status is_known(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    WHIT_TRY(whit_machine_want_key(m, call->self));
    if (!whit_datum_is_str(call->self)) return set_answer(result, false);
    return set_answer(result,
                      call->builtin->detail ? whit_builtin_test(call->self.text) != NULL
                                            : whit_builtin_filter(call->self.text) != NULL);
}

const whit_builtin whit_tests[] = {
    {"defined", "", is_defined, 0},
    {"undefined", "", is_kind, WHIT_DATUM_UNDEFINED},
    {"none", "", is_kind, WHIT_DATUM_NONE},
    {"boolean", "", is_kind, WHIT_DATUM_BOOL},
    {"true", "", is_truth, true},
    {"false", "", is_truth, false},
    {"integer", "", is_integer, 0},
    {"float", "", is_kind, WHIT_DATUM_FLOAT},
    {"number", "", is_number, 0},
    {"string", "", is_string, 0},
    {"mapping", "", is_kind, WHIT_DATUM_DICT},
    {"sequence", "", is_sequence, 0},
    {"iterable", "", is_iterable, 0},
    {"callable", "", is_callable, 0},
    {"escaped", "", is_escaped, 0},
    {"lower", "", is_case, false},
    {"upper", "", is_case, true},
    {"odd", "", has_remainder, 1},
    {"even", "", has_remainder, 0},
    {"divisibleby", "num", has_remainder, 0},
    {"sameas", "other", is_same, 0},
    {"filter", "", is_known, false},
    {"test", "", is_known, true},
    {"in", "seq", compares, WHIT_IN},
    {"==", "/other", compares, WHIT_EQUAL},
    {"eq", "/other", compares, WHIT_EQUAL},
    {"equalto", "/other", compares, WHIT_EQUAL},
    {"!=", "/other", compares, WHIT_NOT_EQUAL},
    {"ne", "/other", compares, WHIT_NOT_EQUAL},
    {">", "/other", compares, WHIT_GREATER},
    {"gt", "/other", compares, WHIT_GREATER},
    {"greaterthan", "/other", compares, WHIT_GREATER},
    {">=", "/other", compares, WHIT_GREATER_EQUAL},
    {"ge", "/other", compares, WHIT_GREATER_EQUAL},
    {"<", "/other", compares, WHIT_LESS},
    {"lt", "/other", compares, WHIT_LESS},
    {"lessthan", "/other", compares, WHIT_LESS},
    {"<=", "/other", compares, WHIT_LESS_EQUAL},
    {"le", "/other", compares, WHIT_LESS_EQUAL},
    {NULL, NULL, NULL, 0},
};
