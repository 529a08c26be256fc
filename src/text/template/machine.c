/* SPDX-License-Identifier: MIT
 * Implements errors, limits, scopes, and the creation of values. */
#include "template/machine.h"

#include <stdarg.h>
#include <stdio.h>

whit_status whit_machine_raise(whit_machine *m, whit_status status, const char *format, ...)
{
    char line[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    return whit_fail(&m->error, status, "%s", line);
}

whit_status whit_machine_raise_type(whit_machine *m, const char *format, ...)
{
    char line[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    return whit_fail(&m->error, WHIT_ERROR_ARGUMENT, "%s", line);
}

whit_status whit_machine_raise_memory(whit_machine *m)
{
    size_t limit = m->limits.memory_bytes;
    if (m->pool->used_bytes > limit / 2)
        return whit_machine_raise(m, WHIT_ERROR_LIMIT, "the template needs more memory than its limit of %zu bytes",
                                  limit);
    return whit_machine_raise(m, WHIT_ERROR_MEMORY, "not enough memory for the template");
}

whit_status whit_machine_raise_undefined(whit_machine *m, whit_datum undefined)
{
    if (!undefined.text) return whit_machine_raise_type(m, "value is undefined");
    return whit_machine_raise_type(m, "%.*s", (int)undefined.text->n_bytes, undefined.text->bytes);
}

whit_status whit_machine_spend(whit_machine *m, uint64_t n_steps)
{
    if (n_steps > m->n_steps_left) {
        m->n_steps_left = 0;
        return whit_machine_raise(m, WHIT_ERROR_LIMIT, "the template takes more than its limit of %llu steps",
                                  (unsigned long long)m->limits.n_steps);
    }
    m->n_steps_left -= n_steps;
    return WHIT_OK;
}

whit_status whit_machine_enter(whit_machine *m)
{
    if (m->depth >= m->limits.depth)
        return whit_machine_raise(m, WHIT_ERROR_LIMIT, "the template nests deeper than its limit of %u levels",
                                  m->limits.depth);
    m->depth++;
    return WHIT_OK;
}

whit_builder whit_machine_build(whit_machine *m)
{
    return whit_builder_begin(m->pool, m->limits.output_bytes);
}

whit_status whit_machine_build_end(whit_machine *m, whit_builder *b, whit_datum *value)
{
    size_t n_bytes = b->n_bytes;
    const whit_text *text = whit_builder_end(b);
    if (!text) {
        if (n_bytes > m->limits.output_bytes / 2)
            return whit_machine_raise(m, WHIT_ERROR_LIMIT, "text is longer than its limit of %zu bytes",
                                      m->limits.output_bytes);
        return whit_machine_raise_memory(m);
    }
    *value = whit_datum_text(text);
    return whit_machine_spend(m, 1 + n_bytes / 64);
}

whit_status whit_machine_slice_text(whit_machine *m, const whit_text *text, size_t begin, size_t end, whit_datum *value)
{
    *value = whit_datum_text(whit_text_slice(m->pool, text, begin, end));
    if (!value->text) return whit_machine_raise_memory(m);
    return whit_machine_spend(m, 1 + (end - begin) / 64);
}

whit_status whit_machine_new_list(whit_machine *m, const whit_datum *items, size_t n, whit_datum *value)
{
    WHIT_TRY(whit_machine_spend(m, 1 + n / 4));
    return whit_datum_list(m->pool, items, n, value) ? WHIT_OK : whit_machine_raise_memory(m);
}

whit_status whit_machine_new_tuple(whit_machine *m, const whit_datum *items, size_t n, whit_datum *value)
{
    WHIT_TRY(whit_machine_new_list(m, items, n, value));
    value->kind = WHIT_DATUM_TUPLE;
    return WHIT_OK;
}

whit_status whit_machine_new_generator(whit_machine *m, const char *name, whit_list list, whit_datum *value)
{
    whit_generator *generator = whit_datum_pool_zalloc(m->pool, 1, sizeof *generator);
    if (!generator) return whit_machine_raise_memory(m);
    generator->name = name;
    generator->list = list;
    *value = (whit_datum){.kind = WHIT_DATUM_GENERATOR, .generator = generator};
    return WHIT_OK;
}

whit_scope *whit_machine_new_scope(whit_machine *m, whit_scope *parent)
{
    whit_scope *scope = whit_datum_pool_zalloc(m->pool, 1, sizeof *scope);
    if (scope) scope->parent = parent;
    return scope;
}

whit_status whit_machine_want_key(whit_machine *m, whit_datum key)
{
    uint64_t n_steps;
    if (!whit_datum_is_hashable(key, &n_steps))
        return whit_machine_raise_type(m, "unhashable type: '%s'", whit_datum_type(key));
    return whit_machine_spend(m, n_steps);
}

/* Finds a binding of a scope by name. *n_seen counts the visited bindings, each of which costs a step, since it is
 * likely to be a cache miss. */
static struct whit_binding *find_binding(const whit_scope *scope, const whit_text *name, uint64_t *n_seen)
{
    for (struct whit_binding *b = scope->bindings; b; b = b->next, ++*n_seen)
        if (b->name == name || whit_text_equal(b->name, name)) return b;
    return NULL;
}

whit_status whit_machine_bind(whit_machine *m, whit_scope *scope, const whit_text *name, whit_datum value)
{
    uint64_t n_seen = 0;
    struct whit_binding *binding = find_binding(scope, name, &n_seen);
    WHIT_TRY(whit_machine_spend(m, n_seen));
    if (!binding) {
        binding = whit_datum_pool_zalloc(m->pool, 1, sizeof *binding);
        if (!binding) return whit_machine_raise_memory(m);
        binding->next = scope->bindings;
        binding->name = name;
        scope->bindings = binding;
    }
    binding->value = value;
    return WHIT_OK;
}

whit_status whit_machine_lookup(whit_machine *m, const whit_text *name, bool *found, whit_datum *value)
{
    uint64_t n_seen = 0;
    const struct whit_binding *binding = NULL;
    for (const whit_scope *scope = m->scope; scope && !binding; scope = scope->parent)
        binding = find_binding(scope, name, &n_seen);
    *found = binding != NULL;
    if (binding) *value = binding->value;
    return whit_machine_spend(m, n_seen);
}

/* ---- iteration ------------------------------------------------------------------------------- */

bool whit_datum_is_iterable(whit_datum v)
{
    return v.kind == WHIT_DATUM_UNDEFINED || (v.kind >= WHIT_DATUM_TEXT && v.kind <= WHIT_DATUM_GENERATOR) ||
        v.kind == WHIT_DATUM_LOOP;
}

static whit_status characters(whit_machine *m, const whit_text *text, whit_datum *items)
{
    if (text->markup) { /* the characters of Markup are plain texts */
        whit_text *plain = whit_datum_pool_zalloc(m->pool, 1, sizeof *plain);
        if (!plain) return whit_machine_raise_memory(m);
        *plain = *text;
        plain->markup = false;
        text = plain;
    }
    for (size_t at = 0, next; at < text->n_bytes; at = next) {
        uint32_t point = whit_text_point(text, at, &next);
        if (text->is_bytes) {
            *items++ = whit_datum_int((uint8_t)point);
            continue;
        }
        WHIT_TRY(whit_machine_slice_text(m, text, at, next, items++));
    }
    return WHIT_OK;
}

static whit_status view_items(whit_machine *m, whit_datum view, whit_datum *items)
{
    for (size_t i = 0; i < view.dict->n; i++) {
        const struct whit_pair *pair = &view.dict->pairs[i];
        if (view.detail == WHIT_VIEW_KEYS)
            items[i] = pair->key;
        else if (view.detail == WHIT_VIEW_VALUES)
            items[i] = pair->value;
        else
            WHIT_TRY(whit_machine_new_tuple(m, (whit_datum[]){pair->key, pair->value}, 2, &items[i]));
    }
    return WHIT_OK;
}

whit_status whit_machine_items(whit_machine *m, whit_datum value, whit_list *list)
{
    size_t n = 0;
    *list = (whit_list){0};
    switch (value.kind) {
    case WHIT_DATUM_UNDEFINED: return WHIT_OK;
    case WHIT_DATUM_LIST:
    case WHIT_DATUM_TUPLE: *list = *value.list; return whit_machine_spend(m, 1);
    case WHIT_DATUM_GENERATOR:
        list->n = value.generator->list.n - value.generator->next;
        if (list->n) list->items = value.generator->list.items + value.generator->next;
        value.generator->next = value.generator->list.n;
        return whit_machine_spend(m, 1);
    case WHIT_DATUM_TEXT:
    case WHIT_DATUM_DICT:
    case WHIT_DATUM_VIEW:
    case WHIT_DATUM_RANGE: whit_datum_length(value, &n); break;
    default: return whit_machine_raise_type(m, "'%s' object is not iterable", whit_datum_type(value));
    }
    whit_datum copy;
    WHIT_TRY(whit_machine_new_list(m, NULL, n, &copy));
    *list = *copy.list;
    if (value.kind == WHIT_DATUM_TEXT) return characters(m, value.text, list->items);
    if (value.kind == WHIT_DATUM_RANGE) {
        for (size_t i = 0; i < n; i++) list->items[i] = whit_range_at(value.range, i);
        return WHIT_OK;
    }
    if (value.kind == WHIT_DATUM_DICT) value.detail = WHIT_VIEW_KEYS;
    return view_items(m, value, list->items);
}

/* ---- sorting --------------------------------------------------------------------------------- */

static whit_status merge(whit_machine *m, const whit_datum *keys, const uint32_t *from, uint32_t *to, size_t begin,
                         size_t middle, size_t end, bool reverse)
{
    size_t i = begin, j = middle;
    for (size_t at = begin; at < end; at++) {
        bool right_first = false;
        if (i < middle && j < end) {
            whit_datum left = keys[from[i]], right = keys[from[j]];
            WHIT_TRY(reverse ? whit_machine_less(m, left, right, &right_first)
                             : whit_machine_less(m, right, left, &right_first));
        }
        to[at] = i < middle && !right_first ? from[i++] : from[j++];
    }
    return WHIT_OK;
}

whit_status whit_machine_sort(whit_machine *m, whit_datum *keys, whit_datum *items, size_t n, bool reverse)
{
    if (n > UINT32_MAX) return whit_machine_raise_memory(m);
    uint32_t *order = whit_datum_pool_zalloc(m->pool, n, sizeof *order);
    uint32_t *other = whit_datum_pool_zalloc(m->pool, n, sizeof *other);
    whit_datum *copy = whit_datum_pool_zalloc(m->pool, n, 2 * sizeof *copy);
    if (!order || !other || !copy) return whit_machine_raise_memory(m);
    for (size_t i = 0; i < n; i++) order[i] = (uint32_t)i;
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t begin = 0; begin < n; begin += 2 * width) {
            size_t middle = begin + width < n ? begin + width : n;
            size_t end = begin + 2 * width < n ? begin + 2 * width : n;
            WHIT_TRY(merge(m, keys, order, other, begin, middle, end, reverse));
        }
        uint32_t *swap = order;
        order = other;
        other = swap;
    }
    for (size_t i = 0; i < n; i++) {
        copy[i] = items[order[i]];
        copy[n + i] = keys[order[i]];
    }
    if (n) {
        memcpy(items, copy, n * sizeof *items);
        memcpy(keys, copy + n, n * sizeof *keys);
    }
    return WHIT_OK;
}
