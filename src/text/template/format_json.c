/* SPDX-License-Identifier: MIT
 * Writes JSON like Python's json.dumps. */
#include "template/format.h"
#include "template/unicode.h"

#include <stdio.h>

static void put_string(whit_builder *b, const whit_text *text, bool ascii)
{
    bool any_user = text->n_spans > 0;
    whit_builder_bytes(b, "\"", 1, any_user);
    for (size_t at = 0, next; at < text->n_bytes && !b->failed; at = next) {
        uint32_t point = whit_text_point(text, at, &next);
        const char *letter = point && point < 0x80 ? strchr("\"\\\n\r\t\f\b", (int)point) : NULL;
        char escape[16];
        if (letter) {
            static const char letters[] = "\"\\nrtfb";
            snprintf(escape, sizeof escape, "\\%c", letters[letter - &"\"\\\n\r\t\f\b"[0]]);
        } else if (point < 0x20 || (ascii && point >= 0x80 && point < 0x10000)) {
            snprintf(escape, sizeof escape, "\\u%04x", point);
        } else if (ascii && point >= 0x10000) {
            uint32_t high = 0xD800 + ((point - 0x10000) >> 10), low = 0xDC00 + ((point - 0x10000) & 0x3FF);
            snprintf(escape, sizeof escape, "\\u%04x\\u%04x", high, low);
        } else {
            size_t begin = at; /* several plain characters are written at once */
            while (next < text->n_bytes && (unsigned char)text->bytes[next] >= 0x20 && text->bytes[next] != '"' &&
                   text->bytes[next] != '\\' && (unsigned char)text->bytes[next] < 0x80)
                next++;
            whit_builder_slice(b, text, begin, next);
            continue;
        }
        whit_builder_bytes(b, escape, strlen(escape), any_user && whit_text_is_user(text, at));
    }
    whit_builder_bytes(b, "\"", 1, any_user);
}

static void put_real(whit_builder *b, double real)
{
    char text[WHIT_REAL_BYTES];
    whit_real_write(real, text);
    const char *name;
    if (text[0] == 'n')
        name = "NaN";
    else if (text[0] == 'i')
        name = "Infinity";
    else if (text[1] == 'i')
        name = "-Infinity";
    else
        name = text;
    whit_builder_str(b, name);
}

static void new_line(whit_builder *b, const whit_json_style *style, size_t level)
{
    if (!style->has_indent) return;
    whit_builder_str(b, "\n");
    for (size_t i = 0; i < level; i++) whit_builder_text(b, style->indent);
}

static whit_status put_json(whit_machine *m, whit_builder *b, whit_datum v, const whit_json_style *style, size_t level);

static whit_status put_scalar(whit_machine *m, whit_builder *b, whit_datum v, const whit_json_style *style)
{
    switch (v.kind) {
    case WHIT_DATUM_NONE: whit_builder_str(b, "null"); return WHIT_OK;
    case WHIT_DATUM_BOOL: whit_builder_str(b, v.boolean ? "true" : "false"); return WHIT_OK;
    case WHIT_DATUM_INT: whit_builder_format(b, "%lld", (long long)v.integer); return WHIT_OK;
    case WHIT_DATUM_BIGINT: whit_builder_text(b, v.text); return WHIT_OK;
    case WHIT_DATUM_FLOAT: put_real(b, v.real); return WHIT_OK;
    case WHIT_DATUM_TEXT:
        if (v.text->is_bytes) break;
        put_string(b, v.text, style->ascii);
        return whit_machine_spend(m, v.text->n_bytes / 16);
    default: break;
    }
    return whit_machine_raise_type(m, "object of type %s is not JSON serializable", whit_datum_type(v));
}

static whit_status put_list(whit_machine *m, whit_builder *b, const whit_list *list, const whit_json_style *style,
                            size_t level)
{
    if (!list->n) {
        whit_builder_str(b, "[]");
        return WHIT_OK;
    }
    whit_builder_str(b, "[");
    for (size_t i = 0; i < list->n; i++) {
        if (i) whit_builder_text(b, style->item_separator);
        new_line(b, style, level + 1);
        WHIT_TRY(put_json(m, b, list->items[i], style, level + 1));
    }
    new_line(b, style, level);
    whit_builder_str(b, "]");
    return WHIT_OK;
}

static whit_status put_key(whit_machine *m, whit_builder *b, whit_datum key, const whit_json_style *style)
{
    if (whit_datum_is_str(key)) return put_scalar(m, b, key, style);
    if (key.kind == WHIT_DATUM_TEXT || key.kind == WHIT_DATUM_UNDEFINED || key.kind > WHIT_DATUM_TEXT)
        return whit_machine_raise_type(m, "keys must be str, int, float, bool or None, not %s", whit_datum_type(key));
    whit_builder_str(b, "\"");
    WHIT_TRY(put_scalar(m, b, key, style));
    whit_builder_str(b, "\"");
    return WHIT_OK;
}

static whit_status put_dict(whit_machine *m, whit_builder *b, const whit_dict *dict, const whit_json_style *style,
                            size_t level)
{
    whit_datum keys, values;
    if (!dict->n) {
        whit_builder_str(b, "{}");
        return WHIT_OK;
    }
    WHIT_TRY(whit_machine_new_list(m, NULL, dict->n, &keys));
    WHIT_TRY(whit_machine_new_list(m, NULL, dict->n, &values));
    for (size_t i = 0; i < dict->n; i++) {
        keys.list->items[i] = dict->pairs[i].key;
        values.list->items[i] = dict->pairs[i].value;
    }
    if (style->sort_keys) WHIT_TRY(whit_machine_sort(m, keys.list->items, values.list->items, dict->n, false));
    whit_builder_str(b, "{");
    for (size_t i = 0; i < dict->n; i++) {
        if (i) whit_builder_text(b, style->item_separator);
        new_line(b, style, level + 1);
        WHIT_TRY(put_key(m, b, keys.list->items[i], style));
        whit_builder_text(b, style->key_separator);
        WHIT_TRY(put_json(m, b, values.list->items[i], style, level + 1));
    }
    new_line(b, style, level);
    whit_builder_str(b, "}");
    return WHIT_OK;
}

static whit_status put_json(whit_machine *m, whit_builder *b, whit_datum v, const whit_json_style *style, size_t level)
{
    WHIT_TRY(whit_machine_spend(m, 1));
    if (b->failed) return whit_machine_raise_memory(m);
    if (v.kind != WHIT_DATUM_LIST && v.kind != WHIT_DATUM_TUPLE && v.kind != WHIT_DATUM_DICT)
        return put_scalar(m, b, v, style);
    WHIT_TRY(whit_machine_enter(m));
    WHIT_TRY(v.kind == WHIT_DATUM_DICT ? put_dict(m, b, v.dict, style, level) : put_list(m, b, v.list, style, level));
    m->depth--;
    return WHIT_OK;
}

whit_status whit_print_json(whit_machine *m, whit_datum value, const whit_json_style *style, whit_datum *result)
{
    whit_builder b = whit_machine_build(m);
    WHIT_TRY(put_json(m, &b, value, style, 0));
    return whit_machine_build_end(m, &b, result);
}
