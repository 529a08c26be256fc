/* SPDX-License-Identifier: MIT */
#include "template/strings.h"

#include "template/unicode.h"

static bool has_point(const whit_text *set, uint32_t point)
{
    for (size_t at = 0; at < set->n_bytes;)
        if (whit_text_point(set, at, &at) == point) return true;
    return false;
}

static bool is_stripped(const whit_text *characters, uint32_t point)
{
    return characters ? has_point(characters, point) : whit_point_is_space(point);
}

whit_status whit_string_strip(whit_machine *m, const whit_text *text, const whit_text *characters, int sides,
                              whit_datum *result)
{
    size_t begin = 0, end = text->n_bytes, next;
    while ((sides & WHIT_SIDE_LEFT) && begin < end && is_stripped(characters, whit_text_point(text, begin, &next)))
        begin = next;
    while ((sides & WHIT_SIDE_RIGHT) && end > begin &&
           is_stripped(characters, whit_text_point_before(text, end, &next)))
        end = next;
    WHIT_TRY(
        whit_machine_spend(m, (text->n_bytes - (end - begin)) * (characters ? 1 + characters->n_bytes / 16 : 1) / 16));
    return whit_machine_slice_text(m, text, begin, end, result);
}

/* ---- lists of pieces ------------------------------------------------------------------------- */

typedef struct pieces {
    whit_datum *items;
    size_t n, capacity;
} pieces;

static whit_status add_piece(whit_machine *m, pieces *p, const whit_text *text, size_t begin, size_t end)
{
    if (p->n == p->capacity) {
        size_t capacity = p->capacity ? p->capacity * 2 : 8;
        whit_datum *items = whit_datum_pool_grow(m->pool, p->items, p->n * sizeof *items, capacity * sizeof *items);
        if (!items) return whit_machine_raise_memory(m);
        p->items = items;
        p->capacity = capacity;
    }
    return whit_machine_slice_text(m, text, begin, end, &p->items[p->n++]);
}

static whit_status end_pieces(whit_machine *m, pieces *p, bool reversed, whit_datum *result)
{
    for (size_t i = 0; reversed && i < p->n / 2; i++) {
        whit_datum swap = p->items[i];
        p->items[i] = p->items[p->n - 1 - i];
        p->items[p->n - 1 - i] = swap;
    }
    return whit_machine_new_list(m, p->items, p->n, result);
}

static whit_status split_spaces(whit_machine *m, const whit_text *text, int64_t limit, pieces *p)
{
    for (size_t at = 0, next; at < text->n_bytes;) {
        if (whit_point_is_space(whit_text_point(text, at, &next))) {
            at = next;
            continue;
        }
        size_t end = at;
        if (limit >= 0 && p->n == (uint64_t)limit) return add_piece(m, p, text, at, text->n_bytes);
        while (end < text->n_bytes && !whit_point_is_space(whit_text_point(text, end, &next))) end = next;
        WHIT_TRY(add_piece(m, p, text, at, end));
        at = end;
    }
    return WHIT_OK;
}

static whit_status split_spaces_right(whit_machine *m, const whit_text *text, int64_t limit, pieces *p)
{
    for (size_t end = text->n_bytes, next; end > 0;) {
        if (whit_point_is_space(whit_text_point_before(text, end, &next))) {
            end = next;
            continue;
        }
        size_t begin = end;
        if (limit >= 0 && p->n == (uint64_t)limit) return add_piece(m, p, text, 0, end);
        while (begin > 0 && !whit_point_is_space(whit_text_point_before(text, begin, &next))) begin = next;
        WHIT_TRY(add_piece(m, p, text, begin, end));
        end = begin;
    }
    return WHIT_OK;
}

whit_status whit_string_split(whit_machine *m, const whit_text *text, const whit_text *separator, int64_t limit,
                              bool from_right, whit_datum *result)
{
    pieces p = {0};
    WHIT_TRY(whit_machine_spend(m, text->n_bytes / 16));
    if (!separator) {
        WHIT_TRY(from_right ? split_spaces_right(m, text, limit, &p) : split_spaces(m, text, limit, &p));
        return end_pieces(m, &p, from_right, result);
    }
    if (separator->n_bytes == 0) return whit_machine_raise(m, WHIT_ERROR_ARGUMENT, "empty separator");
    size_t begin = 0, end = text->n_bytes, at;
    for (; limit < 0 || p.n < (uint64_t)limit;) {
        at =
            from_right ? whit_text_find_last(text, separator, begin, end) : whit_text_find(text, separator, begin, end);
        if (at == SIZE_MAX) break;
        if (from_right) {
            WHIT_TRY(add_piece(m, &p, text, at + separator->n_bytes, end));
            end = at;
        } else {
            WHIT_TRY(add_piece(m, &p, text, begin, at));
            begin = at + separator->n_bytes;
        }
    }
    WHIT_TRY(add_piece(m, &p, text, begin, end));
    return end_pieces(m, &p, from_right, result);
}

whit_status whit_string_split_lines(whit_machine *m, const whit_text *text, bool keep_ends, whit_datum *result)
{
    pieces p = {0};
    WHIT_TRY(whit_machine_spend(m, text->n_bytes / 16));
    for (size_t begin = 0, next; begin < text->n_bytes; begin = next) {
        size_t end = begin;
        next = begin;
        while (next < text->n_bytes) {
            end = next;
            uint32_t point = whit_text_point(text, end, &next);
            if (!whit_point_is_newline(point)) {
                end = next;
                continue;
            }
            if (point == '\r' && next < text->n_bytes && text->bytes[next] == '\n') next++;
            break;
        }
        WHIT_TRY(add_piece(m, &p, text, begin, keep_ends ? next : end));
    }
    return end_pieces(m, &p, false, result);
}

/* ---- whole texts ----------------------------------------------------------------------------- */

whit_status whit_string_replace(whit_machine *m, const whit_text *text, const whit_text *from, const whit_text *to,
                                int64_t limit, whit_datum *result)
{
    whit_builder b = whit_machine_build(m);
    size_t at = 0, next;
    b.markup = text->markup;
    WHIT_TRY(whit_machine_spend(m, text->n_bytes / 64));
    for (uint64_t n = 0; (limit < 0 || n < (uint64_t)limit) && !b.failed; n++) {
        size_t hit = whit_text_find(text, from, at, text->n_bytes);
        if (hit == SIZE_MAX) break;
        whit_builder_slice(&b, text, at, hit);
        whit_builder_text(&b, to);
        at = hit + from->n_bytes;
        if (from->n_bytes) continue;
        if (at == text->n_bytes) break; /* an empty `from` matches between all characters and at both ends */
        whit_text_point(text, at, &next);
        whit_builder_slice(&b, text, at, next);
        at = next;
    }
    whit_builder_slice(&b, text, at, text->n_bytes);
    return whit_machine_build_end(m, &b, result);
}

whit_status whit_string_join(whit_machine *m, const whit_text *separator, const whit_list *list, bool strict,
                             whit_datum *result)
{
    whit_builder b = whit_machine_build(m);
    WHIT_TRY(whit_machine_spend(m, list->n));
    for (size_t i = 0; i < list->n && !b.failed; i++) {
        const whit_text *text;
        whit_datum item = list->items[i];
        if (strict && !whit_datum_is_str(item))
            return whit_machine_raise_type(m, "sequence item %zu: expected str instance, %s found", i,
                                           whit_datum_type(item));
        if (strict && separator->markup) WHIT_TRY(whit_machine_escape_html(m, item, &item));
        WHIT_TRY(whit_machine_str(m, item, &text));
        if (i) whit_builder_text(&b, separator);
        whit_builder_text(&b, text);
    }
    b.markup = strict && separator->markup;
    return whit_machine_build_end(m, &b, result);
}

static bool is_cased(uint32_t point)
{
    return whit_point_is_lower(point) || whit_point_is_upper(point) || whit_point_is_title(point);
}

static bool begins_word_after(uint32_t point)
{
    return whit_point_is_space(point) || point == '-' || point == '(' || point == '{' || point == '[' || point == '<';
}

static whit_case case_of(whit_casing casing, uint32_t point, uint32_t before, bool is_first)
{
    switch (casing) {
    case WHIT_LOWER: return WHIT_CASE_LOWER;
    case WHIT_UPPER: return WHIT_CASE_UPPER;
    case WHIT_FOLD: return WHIT_CASE_FOLD;
    case WHIT_SWAP: return whit_point_is_upper(point) ? WHIT_CASE_LOWER : WHIT_CASE_UPPER;
    case WHIT_CAPITALIZE: return is_first ? WHIT_CASE_TITLE : WHIT_CASE_LOWER;
    case WHIT_TITLE: return is_first || !is_cased(before) ? WHIT_CASE_TITLE : WHIT_CASE_LOWER;
    case WHIT_TITLE_FILTER: return is_first || begins_word_after(before) ? WHIT_CASE_UPPER : WHIT_CASE_LOWER;
    }
    return WHIT_CASE_LOWER;
}

whit_status whit_string_change_case(whit_machine *m, const whit_text *text, whit_casing casing, whit_datum *result)
{
    whit_builder b = whit_machine_build(m);
    uint32_t before = 0;
    WHIT_TRY(whit_machine_spend(m, text->n_bytes / 8));
    for (size_t at = 0, next; at < text->n_bytes && !b.failed; at = next) {
        uint32_t point = whit_text_point(text, at, &next);
        whit_builder_cased(&b, text, at, case_of(casing, point, before, at == 0));
        before = point;
    }
    b.markup = text->markup && casing != WHIT_TITLE_FILTER;
    return whit_machine_build_end(m, &b, result);
}

whit_status whit_string_pad(whit_machine *m, const whit_text *text, int64_t width, uint32_t fill, int sides,
                            whit_datum *result)
{
    if (width < 0 || (uint64_t)width <= text->n_points) {
        *result = whit_datum_text(text);
        return WHIT_OK;
    }
    size_t room = (size_t)width - text->n_points;
    /* If the padding is odd, str.center puts the larger half on the left if the width is odd, else on the right. */
    size_t left = 0;
    if (sides == WHIT_SIDE_BOTH)
        left = room / 2 + (room & (size_t)width & 1);
    else if (sides == WHIT_SIDE_LEFT)
        left = room;
    whit_builder b = whit_machine_build(m);
    b.markup = text->markup;
    whit_builder_repeat(&b, fill, left, false);
    whit_builder_text(&b, text);
    whit_builder_repeat(&b, fill, room - left, false);
    return whit_machine_build_end(m, &b, result);
}
