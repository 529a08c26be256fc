/* SPDX-License-Identifier: MIT
 * Implements the filters on sequences and mappings. */
#include "template/builtin.h"
#include "template/strings.h"

/* Converts a str to lower case; other values stay unchanged. */
static whit_status machine_ignore_case(whit_machine *m, whit_datum value, whit_datum *result)
{
    *result = value;
    return whit_datum_is_str(value) ? whit_string_change_case(m, value.text, WHIT_LOWER, result) : WHIT_OK;
}

static whit_status length(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    size_t n;
    if (call->self.kind == WHIT_DATUM_LOOP) {
        bool found;
        whit_text name = {.bytes = "length", .n_bytes = 6};
        return whit_machine_loop_attribute(m, call->self.loop, &name, &found, result);
    }
    if (!whit_datum_length(call->self, &n))
        return whit_machine_raise_type(m, "object of type '%s' has no len()", whit_datum_type(call->self));
    *result = whit_datum_int((int64_t)n);
    return WHIT_OK;
}

static whit_status make_list(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    whit_list items;
    WHIT_TRY(whit_machine_items(m, call->self, &items));
    return whit_machine_new_list(m, items.items, items.n, result);
}

static whit_status undefined_item(whit_machine *m, const char *what, whit_datum *result)
{
    const whit_text *text = whit_text_new(m->pool, what, strlen(what), false);
    *result = whit_datum_undefined(text);
    return text ? WHIT_OK : whit_machine_raise_memory(m);
}

static whit_status first(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    whit_datum self = call->self;
    whit_list items;
    /* The item is removed from the generator. */
    if (self.kind == WHIT_DATUM_GENERATOR && self.generator->next < self.generator->list.n) {
        *result = self.generator->list.items[self.generator->next++];
        return WHIT_OK;
    }
    if (self.kind == WHIT_DATUM_TEXT && self.text->n_points)
        return whit_machine_item(m, self, whit_datum_int(0), result);
    WHIT_TRY(whit_machine_items(m, self, &items));
    if (!items.n) return undefined_item(m, "No first item, sequence was empty.", result);
    *result = items.items[0];
    return WHIT_OK;
}

static bool is_reversible(whit_datum v)
{
    return v.kind >= WHIT_DATUM_TEXT && v.kind <= WHIT_DATUM_RANGE;
}

static whit_status last(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    whit_datum self = call->self;
    whit_list items;
    if (self.kind != WHIT_DATUM_UNDEFINED && !is_reversible(self))
        return whit_machine_raise_type(m, "'%s' object is not reversible", whit_datum_type(self));
    if (self.kind == WHIT_DATUM_TEXT && self.text->n_points)
        return whit_machine_item(m, self, whit_datum_int(-1), result);
    WHIT_TRY(whit_machine_items(m, self, &items));
    if (!items.n) return undefined_item(m, "No last item, sequence was empty.", result);
    *result = items.items[items.n - 1];
    return WHIT_OK;
}

static whit_status random_item(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    size_t n;
    whit_datum self = call->self;
    if (!whit_datum_length(self, &n))
        return whit_machine_raise_type(m, "object of type '%s' has no len()", whit_datum_type(self));
    if (self.kind == WHIT_DATUM_UNDEFINED || n == 0)
        return undefined_item(m, "No random item, sequence was empty.", result);
    return whit_machine_item(m, self, whit_datum_int((int64_t)whit_rng_below(&m->rng, n)), result);
}

static whit_status reverse(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    whit_list items;
    whit_datum bounds[3] = {whit_datum_none(), whit_datum_none(), whit_datum_int(-1)}, reversed;
    if (whit_datum_is_str(call->self)) return whit_machine_slice(m, call->self, bounds, result);
    WHIT_TRY(whit_machine_items(m, call->self, &items));
    WHIT_TRY(whit_machine_new_list(m, items.items, items.n, &reversed));
    for (size_t i = 0; i < items.n; i++) reversed.list->items[i] = items.items[items.n - 1 - i];
    if (is_reversible(call->self)) return whit_machine_new_generator(m, "reverse", *reversed.list, result);
    *result = reversed;
    return WHIT_OK;
}

static whit_status items(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    whit_list list_of = {0};
    whit_datum view = call->self;
    if (view.kind != WHIT_DATUM_UNDEFINED) {
        if (view.kind != WHIT_DATUM_DICT) return whit_machine_raise_type(m, "can only get item pairs from a mapping");
        view.kind = WHIT_DATUM_VIEW;
        view.detail = WHIT_VIEW_ITEMS;
        WHIT_TRY(whit_machine_items(m, view, &list_of));
    }
    return whit_machine_new_generator(m, "items", list_of, result);
}

/* ---- sorting --------------------------------------------------------------------------------- */

static whit_status sort_key(whit_machine *m, whit_datum item, whit_datum attribute, bool case_sensitive,
                            const whit_datum *fallback, whit_datum *key)
{
    WHIT_TRY(whit_machine_select_attribute(m, item, attribute, fallback, key));
    return case_sensitive ? WHIT_OK : machine_ignore_case(m, *key, key);
}

/* Builds the list of an item's sort keys: the attribute "a,b" sorts by a, then by b. Even a single key becomes a list,
 * as in Jinja: lists with equal elements need no order between elements, so that undefined keys can be sorted. */
static whit_status sort_keys(whit_machine *m, whit_datum item, whit_datum attribute, bool case_sensitive,
                             whit_datum *key)
{
    static const whit_text comma = {.bytes = ",", .n_bytes = 1, .n_points = 1};
    whit_datum parts;
    if (whit_datum_is_str(attribute))
        WHIT_TRY(whit_string_split(m, attribute.text, &comma, -1, false, &parts));
    else
        WHIT_TRY(whit_machine_new_list(m, &attribute, 1, &parts));
    for (size_t i = 0; i < parts.list->n; i++)
        WHIT_TRY(sort_key(m, item, parts.list->items[i], case_sensitive, NULL, &parts.list->items[i]));
    *key = parts;
    return WHIT_OK;
}

static whit_status sort(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    whit_list items_of;
    whit_datum keys, attribute = call->given[2] ? call->values[2] : whit_datum_none();
    WHIT_TRY(whit_machine_items(m, call->self, &items_of));
    WHIT_TRY(whit_machine_new_list(m, items_of.items, items_of.n, result));
    WHIT_TRY(whit_machine_new_list(m, NULL, items_of.n, &keys));
    for (size_t i = 0; i < items_of.n; i++)
        WHIT_TRY(sort_keys(m, items_of.items[i], attribute, whit_builtin_is_true(call, 1), &keys.list->items[i]));
    return whit_machine_sort(m, keys.list->items, result->list->items, items_of.n, whit_builtin_is_true(call, 0));
}

static whit_status dict_sort(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    static const whit_text key_name = {.bytes = "key", .n_bytes = 3, .n_points = 3};
    const whit_text *by = &key_name;
    whit_datum keys, view = call->self;
    whit_list pairs;
    if (view.kind == WHIT_DATUM_UNDEFINED) return whit_machine_raise_undefined(m, view);
    if (view.kind != WHIT_DATUM_DICT)
        return whit_machine_raise_type(m, "dictsort wants a mapping, not %s", whit_datum_type(view));
    if (call->given[1]) WHIT_TRY(whit_builtin_want_text(m, call, 1, &by));
    bool by_value = whit_text_is(by, "value");
    if (!by_value && !whit_text_is(by, "key"))
        return whit_machine_raise(m, WHIT_ERROR_ARGUMENT, "you can only sort by either \"key\" or \"value\"");
    view.kind = WHIT_DATUM_VIEW;
    view.detail = WHIT_VIEW_ITEMS;
    WHIT_TRY(whit_machine_items(m, view, &pairs));
    WHIT_TRY(whit_machine_new_list(m, pairs.items, pairs.n, result));
    WHIT_TRY(whit_machine_new_list(m, NULL, pairs.n, &keys));
    for (size_t i = 0; i < pairs.n; i++)
        WHIT_TRY(sort_key(m, pairs.items[i].list->items[by_value], whit_datum_none(), whit_builtin_is_true(call, 0),
                          NULL, &keys.list->items[i]));
    return whit_machine_sort(m, keys.list->items, result->list->items, pairs.n, whit_builtin_is_true(call, 2));
}

static whit_status group_by(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    whit_list items_of;
    whit_datum keys, sorted;
    const whit_datum *fallback = whit_builtin_is_given(call, 1) ? &call->values[1] : NULL;
    bool case_sensitive = whit_builtin_is_true(call, 2);
    WHIT_TRY(whit_machine_items(m, call->self, &items_of));
    WHIT_TRY(whit_machine_new_list(m, items_of.items, items_of.n, &sorted));
    WHIT_TRY(whit_machine_new_list(m, NULL, items_of.n, &keys));
    for (size_t i = 0; i < items_of.n; i++)
        WHIT_TRY(sort_key(m, items_of.items[i], call->values[0], case_sensitive, fallback, &keys.list->items[i]));
    WHIT_TRY(whit_machine_sort(m, keys.list->items, sorted.list->items, items_of.n, false));
    WHIT_TRY(whit_machine_new_list(m, NULL, items_of.n, result));
    size_t n_groups = 0;
    for (size_t begin = 0, end; begin < items_of.n; begin = end) {
        whit_datum group[2];
        for (end = begin + 1; end < items_of.n; end++) {
            bool same;
            WHIT_TRY(whit_machine_equals(m, keys.list->items[begin], keys.list->items[end], &same));
            if (!same) break;
        }
        /* The group's key is that of its first item, in the original case. */
        WHIT_TRY(whit_machine_select_attribute(m, sorted.list->items[begin], call->values[0], fallback, &group[0]));
        WHIT_TRY(whit_machine_new_list(m, sorted.list->items + begin, end - begin, &group[1]));
        WHIT_TRY(whit_machine_new_tuple(m, group, 2, &result->list->items[n_groups]));
        result->list->items[n_groups++].detail = 1;
    }
    return whit_machine_new_list(m, result->list->items, n_groups, result);
}

static whit_status unique(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    whit_list items_of;
    whit_datum seen, kept, attribute = call->given[1] ? call->values[1] : whit_datum_none();
    size_t n = 0;
    WHIT_TRY(whit_machine_items(m, call->self, &items_of));
    WHIT_TRY(whit_machine_new_list(m, NULL, items_of.n, &kept));
    if (!whit_datum_dict(m->pool, &seen)) return whit_machine_raise_memory(m);
    for (size_t i = 0; i < items_of.n; i++) {
        whit_datum key;
        WHIT_TRY(sort_key(m, items_of.items[i], attribute, whit_builtin_is_true(call, 0), NULL, &key));
        WHIT_TRY(whit_machine_want_key(m, key));
        if (whit_dict_get(seen.dict, key)) continue;
        if (!whit_dict_set(m->pool, seen.dict, key, key)) return whit_machine_raise_memory(m);
        kept.list->items[n++] = items_of.items[i];
    }
    return whit_machine_new_generator(m, "unique", (whit_list){kept.list->items, n}, result);
}

static whit_status extreme(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    whit_list items_of;
    whit_datum best, key, attribute = call->given[1] ? call->values[1] : whit_datum_none();
    bool want_max = call->builtin->detail;
    WHIT_TRY(whit_machine_items(m, call->self, &items_of));
    if (!items_of.n) return undefined_item(m, "No aggregated item, sequence was empty.", result);
    for (size_t i = 0; i < items_of.n; i++) {
        bool better = i == 0;
        WHIT_TRY(sort_key(m, items_of.items[i], attribute, whit_builtin_is_true(call, 0), NULL, &key));
        if (i) WHIT_TRY(want_max ? whit_machine_less(m, best, key, &better) : whit_machine_less(m, key, best, &better));
        if (!better) continue;
        best = key;
        *result = items_of.items[i];
    }
    return WHIT_OK;
}

static whit_status sum(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    whit_list items_of;
    WHIT_TRY(whit_machine_items(m, call->self, &items_of));
    *result = call->given[1] ? call->values[1] : whit_datum_int(0);
    if (whit_datum_is_str(*result)) return whit_machine_raise_type(m, "sum() can't sum strings");
    for (size_t i = 0; i < items_of.n; i++) {
        whit_datum item;
        WHIT_TRY(whit_machine_select_attribute(
            m, items_of.items[i], whit_builtin_is_given(call, 0) ? call->values[0] : whit_datum_none(), NULL, &item));
        WHIT_TRY(whit_machine_arithmetic(m, WHIT_ADD, *result, item, result));
    }
    return WHIT_OK;
}

/* ---- map, select, reject --------------------------------------------------------------------- */

/* Returns the arguments without the first `n` positional ones. */
static whit_arguments rest_of(const whit_arguments *a, size_t n)
{
    return (whit_arguments){a->positional + n, a->n_positional - n, a->named, a->n_named};
}

static const whit_datum *named_argument(const whit_arguments *a, const char *name)
{
    for (size_t i = 0; i < a->n_named; i++)
        if (whit_text_is(a->named[i].name, name)) return &a->named[i].value;
    return NULL;
}

static whit_status named_builtin(whit_machine *m, whit_datum name, bool is_test, const whit_builtin **builtin)
{
    const char *kind = is_test ? "test" : "filter";
    if (!whit_datum_is_str(name))
        *builtin = NULL;
    else if (is_test)
        *builtin = whit_builtin_test(name.text);
    else
        *builtin = whit_builtin_filter(name.text);
    if (*builtin) return WHIT_OK;
    if (!whit_datum_is_str(name)) return whit_machine_raise_type(m, "the name of a %s must be a str", kind);
    return whit_machine_raise_type(m, "no %s named '%.*s'", kind,
                                   (int)(name.text->n_bytes < 80 ? name.text->n_bytes : 80), name.text->bytes);
}

static whit_status map(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    const whit_arguments *a = call->arguments;
    const whit_datum *attribute = a->n_positional ? NULL : named_argument(a, "attribute");
    const whit_datum *fallback = attribute ? named_argument(a, "default") : NULL;
    const whit_builtin *filter = NULL;
    whit_list items_of = {0};
    whit_datum mapped;
    if (!whit_datum_is_true(call->self)) return whit_machine_new_generator(m, "map", items_of, result);
    if (attribute) {
        if (a->n_named > 1 + (fallback != NULL)) return whit_machine_raise_type(m, "map: unexpected keyword argument");
        if (fallback && fallback->kind == WHIT_DATUM_NONE) fallback = NULL;
    } else {
        if (!a->n_positional) return whit_machine_raise_type(m, "map requires a filter argument");
        WHIT_TRY(named_builtin(m, a->positional[0], false, &filter));
    }
    WHIT_TRY(whit_machine_items(m, call->self, &items_of));
    WHIT_TRY(whit_machine_new_list(m, NULL, items_of.n, &mapped));
    whit_arguments rest = filter ? rest_of(a, 1) : (whit_arguments){0};
    WHIT_TRY(whit_machine_enter(m));
    for (size_t i = 0; i < items_of.n; i++) {
        WHIT_TRY(whit_machine_spend(m, 1));
        WHIT_TRY(
            filter ? whit_builtin_call(m, filter, items_of.items[i], &rest, &mapped.list->items[i])
                   : whit_machine_select_attribute(m, items_of.items[i], *attribute, fallback, &mapped.list->items[i]));
    }
    m->depth--;
    return whit_machine_new_generator(m, "map", *mapped.list, result);
}

enum { REJECT = 1, BY_ATTRIBUTE = 2 };

static whit_status select_items(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    const whit_arguments *a = call->arguments;
    bool rejects = call->builtin->detail & REJECT;
    size_t skip = call->builtin->detail & BY_ATTRIBUTE ? 1 : 0, n = 0;
    const whit_builtin *test = NULL;
    whit_list items_of = {0};
    whit_datum kept;
    if (!whit_datum_is_true(call->self)) return whit_machine_new_generator(m, call->builtin->name, items_of, result);
    if (a->n_positional < skip)
        return whit_machine_raise_type(m, "%s: missing parameter for attribute name", call->builtin->name);
    if (a->n_positional > skip) WHIT_TRY(named_builtin(m, a->positional[skip], true, &test));
    WHIT_TRY(whit_machine_items(m, call->self, &items_of));
    WHIT_TRY(whit_machine_new_list(m, NULL, items_of.n, &kept));
    whit_arguments rest = test ? rest_of(a, skip + 1) : (whit_arguments){0};
    WHIT_TRY(whit_machine_enter(m));
    for (size_t i = 0; i < items_of.n; i++) {
        whit_datum value = items_of.items[i];
        WHIT_TRY(whit_machine_spend(m, 1));
        if (skip) WHIT_TRY(whit_machine_select_attribute(m, value, a->positional[0], NULL, &value));
        if (test) WHIT_TRY(whit_builtin_call(m, test, value, &rest, &value));
        if (whit_datum_is_true(value) != rejects) kept.list->items[n++] = items_of.items[i];
    }
    m->depth--;
    return whit_machine_new_generator(m, call->builtin->name, (whit_list){kept.list->items, n}, result);
}

/* ---- groups of a fixed size ------------------------------------------------------------------ */

static whit_status batch(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    int64_t count;
    whit_list items_of;
    whit_datum groups;
    WHIT_TRY(whit_machine_items(m, call->self, &items_of));
    WHIT_TRY(whit_builtin_want_int(m, call, 0, 1, &count));
    /* Jinja ends a batch when its length equals the size. A negative size is never reached, so that all items are one
     * batch. Size 0 would begin with an empty batch, and is an error here. */
    size_t size = count > 0 ? (size_t)count : items_of.n, n = 0;
    if (count == 0 && items_of.n) return whit_machine_raise(m, WHIT_ERROR_ARGUMENT, "batch wants a size over 0");
    WHIT_TRY(whit_machine_new_list(m, NULL, size ? items_of.n / size + 1 : 0, &groups));
    for (size_t begin = 0; begin < items_of.n; begin += size) {
        size_t n_items = items_of.n - begin < size ? items_of.n - begin : size;
        bool fills = n_items < size && whit_builtin_is_given(call, 1);
        whit_datum *group = &groups.list->items[n++];
        WHIT_TRY(whit_machine_new_list(m, NULL, fills ? size : n_items, group));
        for (size_t i = 0; i < group->list->n; i++)
            group->list->items[i] = i < n_items ? items_of.items[begin + i] : call->values[1];
    }
    return whit_machine_new_generator(m, "batch", (whit_list){groups.list->items, n}, result);
}

static whit_status slice(whit_machine *m, whit_builtin_frame *call, whit_datum *result)
{
    int64_t count;
    whit_list items_of;
    whit_datum groups;
    WHIT_TRY(whit_machine_items(m, call->self, &items_of));
    WHIT_TRY(whit_builtin_want_int(m, call, 0, 1, &count));
    if (count == 0) return whit_machine_raise(m, WHIT_ERROR_ARGUMENT, "integer division or modulo by zero");
    size_t n = count > 0 ? (size_t)count : 0, begin = 0;
    WHIT_TRY(whit_machine_new_list(m, NULL, n, &groups));
    for (size_t i = 0; i < n; i++) {
        bool is_longer = i < items_of.n % n;
        size_t n_items = items_of.n / n + is_longer;
        bool fills = !is_longer && whit_builtin_is_given(call, 1);
        WHIT_TRY(whit_machine_new_list(m, NULL, n_items + fills, &groups.list->items[i]));
        whit_datum *group = groups.list->items[i].list->items;
        for (size_t k = 0; k < n_items; k++) group[k] = items_of.items[begin + k];
        if (fills) group[n_items] = call->values[1];
        begin += n_items;
    }
    return whit_machine_new_generator(m, "slice", *groups.list, result);
}

const whit_builtin whit_list_filters[] = {
    {"batch", "linecount fill_with?", batch, 0},
    {"count", "", length, 0},
    {"dictsort", "case_sensitive? by? reverse?", dict_sort, 0},
    {"first", "", first, 0},
    {"groupby", "attribute default? case_sensitive?", group_by, 0},
    {"items", "", items, 0},
    {"last", "", last, 0},
    {"length", "", length, 0},
    {"list", "", make_list, 0},
    {"map", "*", map, 0},
    {"max", "case_sensitive? attribute?", extreme, 1},
    {"min", "case_sensitive? attribute?", extreme, 0},
    {"random", "", random_item, 0},
    {"reject", "*", select_items, REJECT},
    {"rejectattr", "*", select_items, REJECT | BY_ATTRIBUTE},
    {"reverse", "", reverse, 0},
    {"select", "*", select_items, 0},
    {"selectattr", "*", select_items, BY_ATTRIBUTE},
    {"slice", "slices fill_with?", slice, 0},
    {"sort", "reverse? case_sensitive? attribute?", sort, 0},
    {"sum", "attribute? start?", sum, 0},
    {"unique", "case_sensitive? attribute?", unique, 0},
    {NULL, NULL, NULL, 0},
};
