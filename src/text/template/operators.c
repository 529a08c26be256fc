/* SPDX-License-Identifier: MIT
 * Implements Python's operators, comparisons, membership tests, attributes, items and slices. */
#include "template/builtin.h"
#include "template/format.h"
#include "template/number.h"

/* ---- arithmetic ------------------------------------------------------------------------------ */

static whit_status join_texts(whit_machine *m, const whit_text *a, const whit_text *b, whit_datum *result)
{
    whit_datum left = whit_datum_text(a), right = whit_datum_text(b);
    bool markup = a->markup || b->markup;
    if (markup) {
        WHIT_TRY(whit_machine_escape_html(m, left, &left));
        WHIT_TRY(whit_machine_escape_html(m, right, &right));
    }
    whit_builder builder = whit_machine_build(m);
    whit_builder_text(&builder, left.text);
    whit_builder_text(&builder, right.text);
    builder.markup = markup;
    return whit_machine_build_end(m, &builder, result);
}

static whit_status join_lists(whit_machine *m, whit_datum a, whit_datum b, whit_datum *result)
{
    WHIT_TRY(whit_machine_new_list(m, NULL, a.list->n + b.list->n, result));
    if (a.list->n) memcpy(result->list->items, a.list->items, a.list->n * sizeof a);
    if (b.list->n) memcpy(result->list->items + a.list->n, b.list->items, b.list->n * sizeof b);
    result->kind = a.kind;
    return WHIT_OK;
}

static whit_status repeat(whit_machine *m, whit_datum sequence, int64_t times, whit_datum *result)
{
    size_t n = times > 0 ? (size_t)times : 0, total;
    if (sequence.kind == WHIT_DATUM_TEXT) {
        whit_builder b = whit_machine_build(m);
        if (sequence.text->n_bytes == 0) n = 0;
        for (size_t i = 0; i < n && whit_builder_text(&b, sequence.text); i++) {
        }
        WHIT_TRY(whit_machine_spend(m, b.n_bytes / 64));
        b.markup = sequence.text->markup;
        b.is_bytes = sequence.text->is_bytes;
        return whit_machine_build_end(m, &b, result);
    }
    if (!whit_mul_size(n, sequence.list->n, &total)) return whit_machine_raise_memory(m);
    WHIT_TRY(whit_machine_new_list(m, NULL, total, result));
    for (size_t i = 0; i < total; i++) result->list->items[i] = sequence.list->items[i % sequence.list->n];
    result->kind = sequence.kind;
    return WHIT_OK;
}

static bool is_sequence(whit_datum v)
{
    return v.kind == WHIT_DATUM_TEXT || v.kind == WHIT_DATUM_LIST || v.kind == WHIT_DATUM_TUPLE;
}

whit_status whit_machine_arithmetic(whit_machine *m, whit_arithmetic operation, whit_datum a, whit_datum b,
                                    whit_datum *result)
{
    static const char *const signs[] = {"+", "-", "*", "/", "//", "%", "**"};
    int64_t times;
    if (whit_datum_is_number(a) && whit_datum_is_number(b)) {
        const char *problem = whit_arithmetic_do(operation, a, b, result);
        return problem ? whit_machine_raise(m, WHIT_ERROR_ARGUMENT, "%s", problem) : WHIT_OK;
    }
    if (operation == WHIT_MODULO && whit_datum_is_str(a)) return whit_print_percent(m, a.text, b, result);
    if (a.kind == WHIT_DATUM_UNDEFINED) return whit_machine_raise_undefined(m, a);
    if (b.kind == WHIT_DATUM_UNDEFINED) return whit_machine_raise_undefined(m, b);
    if (operation == WHIT_ADD && a.kind == b.kind && is_sequence(a)) {
        if (a.kind != WHIT_DATUM_TEXT) return join_lists(m, a, b, result);
        if (!a.text->is_bytes && !b.text->is_bytes) return join_texts(m, a.text, b.text, result);
    }
    if (operation == WHIT_MULTIPLY && is_sequence(a) && whit_datum_as_int(b, &times))
        return repeat(m, a, times, result);
    if (operation == WHIT_MULTIPLY && is_sequence(b) && whit_datum_as_int(a, &times))
        return repeat(m, b, times, result);
    return whit_machine_raise_type(m, "unsupported operand types for %s: '%s' and '%s'", signs[operation],
                                   whit_datum_type(a), whit_datum_type(b));
}

/* ---- comparison ------------------------------------------------------------------------------ */

whit_status whit_machine_equals(whit_machine *m, whit_datum a, whit_datum b, bool *result)
{
    *result = whit_datum_equal(a, b, &m->n_steps_left);
    return m->n_steps_left ? WHIT_OK : whit_machine_spend(m, 1);
}

/* Compares two values: *result is -1, 0 or 1, or 2 if they are not ordered (NaN). Fails for types without an order;
 * `sign` is the operator for the message. */
static whit_status order(whit_machine *m, const char *sign, whit_datum a, whit_datum b, int *result)
{
    WHIT_TRY(whit_machine_spend(m, 1));
    if (whit_datum_is_number(a) && whit_datum_is_number(b)) {
        *result = whit_number_compare(a, b);
        return WHIT_OK;
    }
    if (a.kind == WHIT_DATUM_UNDEFINED) return whit_machine_raise_undefined(m, a);
    if (b.kind == WHIT_DATUM_UNDEFINED) return whit_machine_raise_undefined(m, b);
    if (a.kind != b.kind || !is_sequence(a) || (a.kind == WHIT_DATUM_TEXT && a.text->is_bytes != b.text->is_bytes))
        return whit_machine_raise_type(m, "'%s' not supported between instances of '%s' and '%s'", sign,
                                       whit_datum_type(a), whit_datum_type(b));
    if (a.kind == WHIT_DATUM_TEXT) {
        int c = whit_text_compare(a.text, b.text);
        *result = (c > 0) - (c < 0);
        return whit_machine_spend(m, (a.text->n_bytes < b.text->n_bytes ? a.text->n_bytes : b.text->n_bytes) / 64);
    }
    for (size_t i = 0; i < a.list->n && i < b.list->n; i++) {
        bool same;
        WHIT_TRY(whit_machine_equals(m, a.list->items[i], b.list->items[i], &same));
        if (same) continue;
        WHIT_TRY(whit_machine_enter(m));
        WHIT_TRY(order(m, sign, a.list->items[i], b.list->items[i], result));
        m->depth--;
        return WHIT_OK;
    }
    *result = (a.list->n > b.list->n) - (a.list->n < b.list->n);
    return WHIT_OK;
}

whit_status whit_machine_less(whit_machine *m, whit_datum a, whit_datum b, bool *result)
{
    int c;
    WHIT_TRY(order(m, "<", a, b, &c));
    *result = c == -1;
    return WHIT_OK;
}

static whit_status contains(whit_machine *m, whit_datum container, whit_datum item, bool *result)
{
    *result = false;
    if (container.kind == WHIT_DATUM_TEXT && !container.text->is_bytes) {
        if (!whit_datum_is_str(item))
            return whit_machine_raise_type(m, "'in <string>' requires string as left operand, not %s",
                                           whit_datum_type(item));
        *result = whit_text_find(container.text, item.text, 0, container.text->n_bytes) != SIZE_MAX;
        return whit_machine_spend(m, 1 + container.text->n_bytes / 64);
    }
    if (container.kind == WHIT_DATUM_DICT ||
        (container.kind == WHIT_DATUM_VIEW && container.detail == WHIT_VIEW_KEYS)) {
        WHIT_TRY(whit_machine_want_key(m, item));
        *result = whit_dict_get(container.dict, item) != NULL;
        return whit_machine_spend(m, 1);
    }
    if (!whit_datum_is_iterable(container))
        return whit_machine_raise_type(m, "argument of type '%s' is not iterable", whit_datum_type(container));
    whit_list list;
    size_t start = container.kind == WHIT_DATUM_GENERATOR ? container.generator->next : 0;
    WHIT_TRY(whit_machine_items(m, container, &list));
    for (size_t i = 0; i < list.n && !*result; i++) {
        WHIT_TRY(whit_machine_equals(m, list.items[i], item, result));
        if (*result && container.kind == WHIT_DATUM_GENERATOR) container.generator->next = start + i + 1;
    }
    return WHIT_OK;
}

whit_status whit_machine_compare(whit_machine *m, whit_comparison operation, whit_datum a, whit_datum b, bool *result)
{
    int c;
    switch (operation) {
    case WHIT_EQUAL: return whit_machine_equals(m, a, b, result);
    case WHIT_NOT_EQUAL:
        WHIT_TRY(whit_machine_equals(m, a, b, result));
        *result = !*result;
        return WHIT_OK;
    case WHIT_IN: return contains(m, b, a, result);
    case WHIT_NOT_IN:
        WHIT_TRY(contains(m, b, a, result));
        *result = !*result;
        return WHIT_OK;
    case WHIT_LESS:
        WHIT_TRY(order(m, "<", a, b, &c));
        *result = c == -1;
        return WHIT_OK;
    case WHIT_LESS_EQUAL:
        WHIT_TRY(order(m, "<=", a, b, &c));
        *result = c == -1 || c == 0;
        return WHIT_OK;
    case WHIT_GREATER:
        WHIT_TRY(order(m, ">", a, b, &c));
        *result = c == 1;
        return WHIT_OK;
    case WHIT_GREATER_EQUAL:
        WHIT_TRY(order(m, ">=", a, b, &c));
        *result = c == 1 || c == 0;
        return WHIT_OK;
    }
    return WHIT_OK;
}

/* ---- attributes and items -------------------------------------------------------------------- */

static whit_status undefined_member(whit_machine *m, whit_datum object, whit_datum key, whit_datum *result)
{
    whit_builder b = whit_machine_build(m);
    whit_datum text;
    if (whit_datum_is_str(key))
        whit_builder_format(&b, "'%s object' has no attribute '%.*s'", whit_datum_type(object),
                            (int)(key.text->n_bytes < 80 ? key.text->n_bytes : 80), key.text->bytes);
    else if (key.kind == WHIT_DATUM_INT)
        whit_builder_format(&b, "%s object has no element %lld", whit_datum_type(object), (long long)key.integer);
    else
        whit_builder_format(&b, "%s object has no such element", whit_datum_type(object));
    WHIT_TRY(whit_machine_build_end(m, &b, &text));
    *result = whit_datum_undefined(text.text);
    return WHIT_OK;
}

static bool is_dunder(const whit_text *name)
{
    return name->n_bytes > 4 && memcmp(name->bytes, "__", 2) == 0 &&
        memcmp(name->bytes + name->n_bytes - 2, "__", 2) == 0;
}

/* Returns whether this is a method that would change a dict, which the sandbox forbids. */
static bool is_mutating(const whit_text *name)
{
    return whit_text_is(name, "clear") || whit_text_is(name, "pop") || whit_text_is(name, "popitem") ||
        whit_text_is(name, "setdefault") || whit_text_is(name, "update");
}

/* Returns whether this name (without underscores) is a special method or attribute of Python that exists on Jinja's
 * Undefined. The sandbox hides these; any other attribute of an undefined value is an error. */
static bool is_of_undefined(const whit_text *name)
{
    static const char *const names[] = {
        "add",  "aiter",         "bool",         "call",    "class",     "complex",  "delattr",
        "dir",  "div",           "doc",          "eq",      "float",     "floordiv", "format",
        "ge",   "getattr",       "getattribute", "getitem", "getstate",  "gt",       "hash",
        "init", "init_subclass", "int",          "iter",    "le",        "len",      "lt",
        "mod",  "module",        "mul",          "ne",      "neg",       "new",      "pos",
        "pow",  "radd",          "rdiv",         "reduce",  "reduce_ex", "repr",     "rfloordiv",
        "rmod", "rmul",          "rpow",         "rsub",    "rtruediv",  "setattr",  "sizeof",
        "str",  "sub",           "subclasshook", "truediv",
    };
    if (!is_dunder(name)) return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == name->n_bytes - 4 && memcmp(names[i], name->bytes + 2, name->n_bytes - 4) == 0)
            return true;
    return false;
}

/* Finds a method or property, like Python's getattr. Sets *found to whether it exists. */
static whit_status find_attribute(whit_machine *m, whit_datum object, const whit_text *name, bool *found,
                                  whit_datum *result)
{
    *found = false;
    const whit_datum *member;
    if (object.kind == WHIT_DATUM_NAMESPACE) {
        member = whit_dict_get(object.dict, whit_datum_text(name));
        *found = member && !(name->n_bytes && name->bytes[0] == '_');
        if (*found) *result = *member;
        return WHIT_OK;
    }
    if (object.kind == WHIT_DATUM_LOOP) {
        WHIT_TRY(whit_machine_loop_attribute(m, object.loop, name, found, result));
        if (*found) return WHIT_OK;
    }
    if (object.kind == WHIT_DATUM_MACRO) {
        const whit_signature *s = object.macro->signature;
        *found = true;
        if (whit_text_is(name, "name"))
            *result = s->name ? whit_datum_text(s->name) : whit_datum_none();
        else if (whit_text_is(name, "catch_kwargs"))
            *result = whit_datum_bool(s->uses_kwargs);
        else if (whit_text_is(name, "catch_varargs"))
            *result = whit_datum_bool(s->uses_varargs);
        else if (whit_text_is(name, "caller"))
            *result = whit_datum_bool(s->uses_caller);
        else if (whit_text_is(name, "arguments")) {
            WHIT_TRY(whit_machine_new_tuple(m, NULL, s->n_parameters, result));
            for (size_t i = 0; i < s->n_parameters; i++) result->list->items[i] = whit_datum_text(s->parameters[i]);
        } else
            *found = false;
        return WHIT_OK;
    }
    if (object.kind == WHIT_DATUM_TUPLE && object.detail) { /* a group that the filter groupby has created */
        *found = whit_text_is(name, "grouper") || whit_text_is(name, "list");
        if (*found) *result = object.list->items[whit_text_is(name, "list")];
        if (*found) return WHIT_OK;
    }
    if (object.kind == WHIT_DATUM_RANGE) {
        *found = true;
        if (whit_text_is(name, "start")) return *result = whit_datum_int(object.range->start), WHIT_OK;
        if (whit_text_is(name, "stop")) return *result = whit_datum_int(object.range->stop), WHIT_OK;
        if (whit_text_is(name, "step")) return *result = whit_datum_int(object.range->step), WHIT_OK;
    }
    if (object.kind == WHIT_DATUM_BLOCKS)
        for (size_t i = 0; i < m->template->n_blocks; i++)
            if (whit_text_equal(m->template->blocks[i].name, name)) {
                *found = true;
                *result = (whit_datum){.kind = WHIT_DATUM_BLOCK, .block = &m->template->blocks[i]};
                return WHIT_OK;
            }
    const whit_builtin *builtin = whit_builtin_method(object, name);
    *found = builtin != NULL;
    if (!builtin) return WHIT_OK;
    whit_method *method = whit_datum_pool_zalloc(m->pool, 1, sizeof *method);
    if (!method) return whit_machine_raise_memory(m);
    *method = (whit_method){builtin, object};
    *result = (whit_datum){.kind = WHIT_DATUM_METHOD, .method = method};
    return WHIT_OK;
}

whit_status whit_machine_attribute(whit_machine *m, whit_datum object, const whit_text *name, whit_datum *result)
{
    bool found;
    if (object.kind == WHIT_DATUM_UNDEFINED && !is_of_undefined(name)) return whit_machine_raise_undefined(m, object);
    WHIT_TRY(find_attribute(m, object, name, &found, result));
    if (found) return WHIT_OK;
    const whit_datum *member = NULL; /* a key is not found if the sandbox forbids the attribute of the same name */
    if (object.kind == WHIT_DATUM_DICT && !is_dunder(name) && !is_mutating(name))
        member = whit_dict_get(object.dict, whit_datum_text(name));
    if (!member) return undefined_member(m, object, whit_datum_text(name), result);
    *result = *member;
    return WHIT_OK;
}

/* Returns element i of a sequence; a negative i counts from the end. *found is false if i is out of range. */
static whit_status element(whit_machine *m, whit_datum object, int64_t i, bool *found, whit_datum *result)
{
    size_t n = 0;
    whit_datum_length(object, &n);
    if (i < 0) i += (int64_t)n;
    *found = i >= 0 && (uint64_t)i < n;
    if (!*found) return WHIT_OK;
    if (object.kind == WHIT_DATUM_TEXT) {
        size_t begin = whit_text_offset(object.text, (size_t)i), end;
        uint32_t point = whit_text_point(object.text, begin, &end);
        WHIT_TRY(whit_machine_spend(m, begin / 64));
        if (!object.text->is_bytes) return whit_machine_slice_text(m, object.text, begin, end, result);
        *result = whit_datum_int((uint8_t)point);
    } else {
        *result = object.kind == WHIT_DATUM_RANGE ? whit_range_at(object.range, (size_t)i) : object.list->items[i];
    }
    return WHIT_OK;
}

whit_status whit_machine_item(whit_machine *m, whit_datum object, whit_datum key, whit_datum *result)
{
    int64_t i;
    bool found = false;
    if (object.kind == WHIT_DATUM_UNDEFINED) return whit_machine_raise_undefined(m, object);
    if (object.kind == WHIT_DATUM_DICT) {
        uint64_t n_steps;
        bool hashable = whit_datum_is_hashable(key, &n_steps);
        WHIT_TRY(whit_machine_spend(m, n_steps));
        const whit_datum *member = hashable ? whit_dict_get(object.dict, key) : NULL;
        if (member) {
            *result = *member;
            return WHIT_OK;
        }
    } else if ((is_sequence(object) || object.kind == WHIT_DATUM_RANGE) && whit_datum_as_int(key, &i)) {
        WHIT_TRY(element(m, object, i, &found, result));
        if (found) return WHIT_OK;
    }
    if (whit_datum_is_str(key)) {
        WHIT_TRY(find_attribute(m, object, key.text, &found, result));
        if (found) return WHIT_OK;
    }
    return undefined_member(m, object, key, result);
}

/* ---- slices ---------------------------------------------------------------------------------- */

/* Computes like Python's slice.indices the elements of a sequence of n items that a slice selects: *count elements,
 * beginning with *start, *step apart. Returns false if a bound is not an integer. */
static bool slice_indices(const whit_datum bounds[3], size_t n, int64_t *start, int64_t *step, size_t *count)
{
    int64_t length = (int64_t)n, stop;
    *step = 1;
    if (bounds[2].kind != WHIT_DATUM_NONE && !whit_datum_as_int(bounds[2], step)) return false;
    if (*step == INT64_MIN) *step = -INT64_MAX;
    int64_t low = *step < 0 ? -1 : 0;
    int64_t high = *step < 0 ? length - 1 : length;
    *start = *step < 0 ? high : low;
    stop = *step < 0 ? low : high;
    int64_t *ends[] = {start, &stop};
    for (int i = 0; i < 2; i++) {
        if (bounds[i].kind == WHIT_DATUM_NONE) continue;
        if (!whit_datum_as_int(bounds[i], ends[i])) return false;
        if (*ends[i] < 0) *ends[i] += length;
        if (*ends[i] < low) *ends[i] = low;
        if (*ends[i] > high) *ends[i] = high;
    }
    *count = 0;
    if (*step > 0 && *start < stop) *count = (size_t)((stop - *start - 1) / *step + 1);
    if (*step < 0 && *start > stop) *count = (size_t)((*start - stop - 1) / -*step + 1);
    return true;
}

static whit_status slice_text(whit_machine *m, const whit_text *text, int64_t start, int64_t step, size_t count,
                              whit_datum *result)
{
    if (count == 0) return whit_machine_slice_text(m, text, 0, 0, result);
    if (step == 1) {
        size_t begin = whit_text_offset(text, (size_t)start), end = whit_text_offset(text, (size_t)start + count);
        WHIT_TRY(whit_machine_spend(m, end / 64));
        return whit_machine_slice_text(m, text, begin, end, result);
    }
    whit_builder b = whit_machine_build(m);
    size_t at = whit_text_offset(text, (size_t)start), next;
    for (size_t i = 0; i < count; i++) {
        whit_text_point(text, at, &next);
        whit_builder_slice(&b, text, at, next);
        if (i + 1 == count) break;
        for (int64_t skip = 0; skip < step; skip++) whit_text_point(text, at, &at);
        for (int64_t skip = 0; skip > step; skip--) whit_text_point_before(text, at, &at);
    }
    WHIT_TRY(whit_machine_spend(m, text->n_bytes / 16));
    b.markup = text->markup;
    b.is_bytes = text->is_bytes;
    return whit_machine_build_end(m, &b, result);
}

whit_status whit_machine_slice(whit_machine *m, whit_datum object, const whit_datum bounds[3], whit_datum *result)
{
    int64_t start, step;
    size_t n, count;
    if (object.kind == WHIT_DATUM_UNDEFINED) return whit_machine_raise_undefined(m, object);
    if (!is_sequence(object) && object.kind != WHIT_DATUM_RANGE)
        return whit_machine_raise_type(m, "'%s' object is not subscriptable", whit_datum_type(object));
    whit_datum_length(object, &n);
    if (!slice_indices(bounds, n, &start, &step, &count))
        return whit_machine_raise_type(m, "slice indices must be integers or None");
    if (step == 0) return whit_machine_raise(m, WHIT_ERROR_ARGUMENT, "slice step cannot be zero");
    if (count <= 1) step = 1; /* with at most one element the step does not matter, and a large one could overflow */
    if (object.kind == WHIT_DATUM_TEXT) return slice_text(m, object.text, start, step, count, result);
    if (object.kind == WHIT_DATUM_RANGE) {
        whit_range *range = whit_datum_pool_zalloc(m->pool, 1, sizeof *range);
        if (!range) return whit_machine_raise_memory(m);
        *range = (whit_range){
            .start = object.range->start + object.range->step * start, .step = object.range->step * step, .n = count};
        range->stop = (int64_t)((uint64_t)range->start + (uint64_t)range->step * count);
        *result = (whit_datum){.kind = WHIT_DATUM_RANGE, .range = range};
        return WHIT_OK;
    }
    WHIT_TRY(whit_machine_new_list(m, NULL, count, result));
    for (size_t i = 0; i < count; i++) result->list->items[i] = object.list->items[start + (int64_t)i * step];
    result->kind = object.kind;
    return WHIT_OK;
}
