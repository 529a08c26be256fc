/* SPDX-License-Identifier: MIT
 * Implements filters on numbers and on values of any type. */
#include <math.h>

#include "template/builtin.h"
#include "template/format.h"

static whit_status absolute(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    int64_t integer;
    if (call->self.kind == WHIT_DATUM_UNDEFINED) return whit_machine_raise_undefined(m, call->self);
    if (call->self.kind == WHIT_DATUM_FLOAT) {
        *result = whit_datum_float(fabs(call->self.real));
        return WHIT_OK;
    }
    if (!whit_datum_as_int(call->self, &integer))
        return whit_machine_raise_type(m, "bad operand type for abs(): '%s'", whit_datum_type(call->self));
    if (integer < 0) return whit_machine_arithmetic(m, WHIT_SUBTRACT, whit_datum_int(0), call->self, result);
    *result = whit_datum_int(integer);
    return WHIT_OK;
}

static whit_status attribute(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    const whit_text *name;
    WHIT_TRY(whit_builtin_want_text(m, call, 0, &name));
    whit_datum self = call->self;
    /* Only attributes are found, not keys: a dict is replaced by an empty one. */
    whit_dict empty = {0};
    if (self.kind != WHIT_DATUM_DICT) return whit_machine_attribute(m, self, name, result);
    self.dict = &empty;
    WHIT_TRY(whit_machine_attribute(m, self, name, result));
    if (result->kind == WHIT_DATUM_METHOD) result->method->self = call->self;
    return WHIT_OK;
}

static whit_status fallback(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    bool replace =
        call->self.kind == WHIT_DATUM_UNDEFINED || (whit_builtin_is_true(call, 1) && !whit_datum_is_true(call->self));
    *result = call->self;
    if (!replace) return WHIT_OK;
    if (!call->given[0])
        return whit_datum_string(m->pool, "", 0, false, result) ? WHIT_OK : whit_machine_raise_memory(m);
    *result = call->values[0];
    return WHIT_OK;
}

static whit_status to_float(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    double real;
    if (call->self.kind == WHIT_DATUM_UNDEFINED) return whit_machine_raise_undefined(m, call->self);
    if (call->self.kind == WHIT_DATUM_BIGINT) /* an integer that is too large must not silently become the default */
        return whit_machine_raise(m, WHIT_ERROR_ARGUMENT, "integer of more than 64 bits");
    if (whit_datum_is_str(call->self) ? whit_real_from_text(call->self.text, &real)
                                      : whit_datum_as_real(call->self, &real))
        *result = whit_datum_float(real);
    else
        *result = call->given[0] ? call->values[0] : whit_datum_float(0);
    return WHIT_OK;
}

static bool truncate_real(double real, whit_datum *result)
{
    if (!(fabs(real) < 0x1p63)) return false;
    *result = whit_datum_int((int64_t)real);
    return true;
}

static whit_status to_int(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    int64_t integer, base;
    double real;
    whit_datum self = call->self;
    if (self.kind == WHIT_DATUM_UNDEFINED) return whit_machine_raise_undefined(m, self);
    WHIT_TRY(whit_builtin_want_int(m, call, 1, 10, &base));
    if (whit_datum_as_int(self, &integer)) {
        *result = whit_datum_int(integer);
        return WHIT_OK;
    }
    if (self.kind == WHIT_DATUM_FLOAT && !isnan(self.real)) {
        if (truncate_real(self.real, result)) return WHIT_OK;
        return whit_machine_raise(m, WHIT_ERROR_ARGUMENT,
                                  isinf(self.real) ? "cannot convert float infinity to integer"
                                                   : "integer of more than 64 bits");
    }
    if (self.kind == WHIT_DATUM_BIGINT) {
        *result = self;
        return WHIT_OK;
    }
    if (whit_datum_is_str(self)) {
        if (whit_integer_from_text(m->pool, self.text, base, result)) return WHIT_OK;
        if (whit_real_from_text(self.text, &real) && truncate_real(real, result)) return WHIT_OK;
    }
    *result = call->given[0] ? call->values[0] : whit_datum_int(0);
    return WHIT_OK;
}

/* Rounds like Python's round(integer, n_digits) with a negative n_digits: to tens, hundreds and so on, ties to even. */
static whit_status round_integer(whit_machine *m, int64_t integer, int64_t n_digits, whit_datum *result)
{
    *result = whit_datum_int(integer);
    if (n_digits >= 0) return WHIT_OK;
    if (n_digits < -18) {
        *result = whit_datum_int(0);
        return WHIT_OK;
    }
    int64_t unit = 1;
    for (int64_t i = n_digits; i < 0; i++) unit *= 10;
    int64_t rest = ((integer % unit) + unit) % unit, low;
    if (__builtin_sub_overflow(integer, rest, &low))
        return whit_machine_raise(m, WHIT_ERROR_ARGUMENT, "integer of more than 64 bits");
    bool up = rest > unit / 2 || (rest == unit / 2 && (low / unit) % 2 != 0);
    return whit_machine_arithmetic(m, WHIT_ADD, whit_datum_int(low), whit_datum_int(up ? unit : 0), result);
}

static whit_status round_number(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    static const whit_text common = {.bytes = "common", .n_bytes = 6, .n_points = 6};
    const whit_text *method = &common;
    int64_t precision, integer;
    double real;
    if (call->self.kind == WHIT_DATUM_UNDEFINED) return whit_machine_raise_undefined(m, call->self);
    WHIT_TRY(whit_builtin_want_int(m, call, 0, 0, &precision));
    if (call->given[1]) WHIT_TRY(whit_builtin_want_text(m, call, 1, &method));
    bool up = whit_text_is(method, "ceil"), down = whit_text_is(method, "floor");
    if (!up && !down && !whit_text_is(method, "common"))
        return whit_machine_raise(m, WHIT_ERROR_ARGUMENT, "method must be common, ceil or floor");
    if (!whit_datum_as_real(call->self, &real))
        return whit_machine_raise_type(m, "round wants a number, not %s", whit_datum_type(call->self));
    if (!up && !down) {
        if (whit_datum_as_int(call->self, &integer)) return round_integer(m, integer, precision, result);
        *result = whit_datum_float(whit_real_round(real, precision));
        return WHIT_OK;
    }
    if (!isfinite(real))
        return whit_machine_raise(m, WHIT_ERROR_ARGUMENT, "cannot convert float %s to integer",
                                  isnan(real) ? "NaN" : "infinity");
    double unit = pow(10, (double)precision); /* + 0.0 below: Python's result is an int, which has no -0 */
    *result = whit_datum_float(((up ? ceil(real * unit) : floor(real * unit)) + 0.0) / unit);
    return WHIT_OK;
}

static whit_status to_json(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    static const whit_text comma_space = {.bytes = ", ", .n_bytes = 2, .n_points = 2};
    static const whit_text comma = {.bytes = ",", .n_bytes = 1, .n_points = 1};
    static const whit_text colon_space = {.bytes = ": ", .n_bytes = 2, .n_points = 2};
    int64_t width;
    whit_json_style style = {.ascii = whit_builtin_is_true(call, 0),
                             .sort_keys = whit_builtin_is_true(call, 3),
                             .has_indent = whit_builtin_is_given(call, 1),
                             .key_separator = &colon_space};
    style.item_separator = style.has_indent ? &comma : &comma_space;
    if (style.has_indent && whit_datum_is_str(call->values[1])) {
        style.indent = call->values[1].text;
    } else if (style.has_indent) {
        whit_builder b = whit_machine_build(m);
        whit_datum spaces;
        WHIT_TRY(whit_builtin_want_int(m, call, 1, 0, &width));
        whit_builder_repeat(&b, ' ', width > 0 ? (size_t)width : 0, false);
        WHIT_TRY(whit_machine_build_end(m, &b, &spaces));
        style.indent = spaces.text;
    }
    if (whit_builtin_is_given(call, 2)) {
        whit_datum pair = call->values[2];
        if ((pair.kind != WHIT_DATUM_TUPLE && pair.kind != WHIT_DATUM_LIST) || pair.list->n != 2 ||
            !whit_datum_is_str(pair.list->items[0]) || !whit_datum_is_str(pair.list->items[1]))
            return whit_machine_raise_type(m, "tojson: separators must be two str");
        style.item_separator = pair.list->items[0].text;
        style.key_separator = pair.list->items[1].text;
    }
    return whit_print_json(m, call->self, &style, result);
}

/* Prints like Python's pprint, which sorts dicts and wraps lines longer than 80 characters. Fails if the output is
 * longer than 80 characters, or the value itself is a dict of several pairs. */
static whit_status print_small(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    whit_builder b = whit_machine_build(m);
    WHIT_TRY(whit_machine_repr(m, &b, call->self));
    WHIT_TRY(whit_machine_build_end(m, &b, result));
    if (result->text->n_points > 80 || (call->self.kind == WHIT_DATUM_DICT && call->self.dict->n > 1))
        return whit_machine_raise(m, WHIT_ERROR_UNSUPPORTED, "the filter pprint is not supported for large values");
    return WHIT_OK;
}

const whit_builtin whit_datum_filters[] = {
    {"abs", "", absolute, 0},
    {"attr", "name", attribute, 0},
    {"d", "default_value? boolean?", fallback, 0},
    {"default", "default_value? boolean?", fallback, 0},
    {"float", "default?", to_float, 0},
    {"int", "default? base?", to_int, 0},
    {"pprint", "", print_small, 0},
    {"round", "precision? method?", round_number, 0},
    {"tojson", "ensure_ascii? indent? separators? sort_keys?", to_json, 0},
    {NULL, NULL, NULL, 0},
};
