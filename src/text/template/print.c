/* SPDX-License-Identifier: MIT
 * Prints values like Python's str() and repr(). */
#include <stdio.h>

#include "template/builtin.h"
#include "template/unicode.h"

/* Writes repr(text). Escapes of the user's characters count as the user's, and so do the quotes if any part of the text
 * is the user's. */
static void quote(whit_builder *b, const whit_text *text)
{
    char mark = memchr(text->bytes, '\'', text->n_bytes) && !memchr(text->bytes, '"', text->n_bytes) ? '"' : '\'';
    bool any_user = text->n_spans > 0;
    if (text->is_bytes) whit_builder_str(b, "b");
    if (text->markup) whit_builder_str(b, "Markup(");
    whit_builder_bytes(b, &mark, 1, any_user);
    for (size_t at = 0, next; at < text->n_bytes && !b->failed; at = next) {
        uint32_t point = whit_text_point(text, at, &next);
        bool user = any_user && whit_text_is_user(text, at);
        char escape[16];
        if (point == (uint32_t)mark || point == '\\')
            snprintf(escape, sizeof escape, "\\%c", (char)point);
        else if (point == '\n' || point == '\r' || point == '\t') {
            char letter = 't';
            if (point == '\n')
                letter = 'n';
            else if (point == '\r')
                letter = 'r';
            snprintf(escape, sizeof escape, "\\%c", letter);
        } else if (whit_point_is_printable(point) && !(text->is_bytes && point > 0x7E)) {
            whit_builder_bytes(b, text->bytes + at, next - at, user);
            continue;
        } else {
            const char *form = "\\U%08x";
            if (point < 0x100)
                form = "\\x%02x";
            else if (point < 0x10000)
                form = "\\u%04x";
            snprintf(escape, sizeof escape, form, point);
        }
        whit_builder_bytes(b, escape, strlen(escape), user);
    }
    whit_builder_bytes(b, &mark, 1, any_user);
    if (text->markup) whit_builder_str(b, ")");
}

static whit_status repr_list(whit_machine *m, whit_builder *b, const whit_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        if (i) whit_builder_str(b, ", ");
        WHIT_TRY(whit_machine_repr(m, b, list->items[i]));
    }
    return WHIT_OK;
}

static whit_status repr_dict(whit_machine *m, whit_builder *b, const whit_dict *dict)
{
    whit_builder_str(b, "{");
    for (size_t i = 0; i < dict->n; i++) {
        if (i) whit_builder_str(b, ", ");
        WHIT_TRY(whit_machine_repr(m, b, dict->pairs[i].key));
        whit_builder_str(b, ": ");
        WHIT_TRY(whit_machine_repr(m, b, dict->pairs[i].value));
    }
    whit_builder_str(b, "}");
    return WHIT_OK;
}

static whit_status repr_view(whit_machine *m, whit_builder *b, whit_datum view)
{
    whit_list list;
    whit_builder_str(b, whit_datum_type(view));
    whit_builder_str(b, "([");
    WHIT_TRY(whit_machine_items(m, view, &list));
    WHIT_TRY(repr_list(m, b, &list));
    whit_builder_str(b, "])");
    return WHIT_OK;
}

static void repr_range(whit_builder *b, const whit_range *range)
{
    long long start = range->start, step = range->step, stop = range->stop;
    if (step == 1)
        whit_builder_format(b, "range(%lld, %lld)", start, stop);
    else
        whit_builder_format(b, "range(%lld, %lld, %lld)", start, stop, step);
}

static whit_status repr_object(whit_machine *m, whit_builder *b, whit_datum v)
{
    size_t n;
    const whit_loop *loop = v.loop;
    switch (v.kind) {
    case WHIT_DATUM_NAMESPACE:
        whit_builder_str(b, "<Namespace ");
        WHIT_TRY(repr_dict(m, b, v.dict));
        whit_builder_str(b, ">");
        return WHIT_OK;
    case WHIT_DATUM_MACRO:
        whit_builder_str(b, "<Macro ");
        if (v.macro->signature->name)
            quote(b, v.macro->signature->name);
        else
            whit_builder_str(b, "anonymous");
        whit_builder_str(b, ">");
        return WHIT_OK;
    case WHIT_DATUM_LOOP: {
        whit_datum length;
        bool found;
        whit_text name = {.bytes = "length", .n_bytes = 6};
        WHIT_TRY(whit_machine_loop_attribute(m, v.loop, &name, &found, &length));
        n = (size_t)length.integer;
        whit_builder_format(b, "<LoopContext %zu/%zu>", loop->index + 1, n);
        return WHIT_OK;
    }
    case WHIT_DATUM_GENERATOR: whit_builder_format(b, "<generator object %s>", v.generator->name); return WHIT_OK;
    case WHIT_DATUM_FUNCTION: whit_builder_format(b, "<function %s>", v.function->name); return WHIT_OK;
    case WHIT_DATUM_METHOD:
        whit_builder_format(b, "<built-in method %s of %s object>", v.method->builtin->name,
                            whit_datum_type(v.method->self));
        return WHIT_OK;
    case WHIT_DATUM_BLOCKS: whit_builder_str(b, "<TemplateReference None>"); return WHIT_OK;
    default: whit_builder_format(b, "<%s object>", whit_datum_type(v)); return WHIT_OK;
    }
}

static whit_status repr(whit_machine *m, whit_builder *b, whit_datum v)
{
    char real[WHIT_REAL_BYTES];
    switch (v.kind) {
    case WHIT_DATUM_UNDEFINED: whit_builder_str(b, "Undefined"); return WHIT_OK;
    case WHIT_DATUM_NONE: whit_builder_str(b, "None"); return WHIT_OK;
    case WHIT_DATUM_BOOL: whit_builder_str(b, v.boolean ? "True" : "False"); return WHIT_OK;
    case WHIT_DATUM_INT: whit_builder_format(b, "%lld", (long long)v.integer); return WHIT_OK;
    case WHIT_DATUM_BIGINT: whit_builder_text(b, v.text); return WHIT_OK;
    case WHIT_DATUM_FLOAT:
        whit_real_write(v.real, real);
        whit_builder_str(b, real);
        return WHIT_OK;
    case WHIT_DATUM_TEXT: quote(b, v.text); return whit_machine_spend(m, v.text->n_bytes / 16);
    case WHIT_DATUM_LIST:
        whit_builder_str(b, "[");
        WHIT_TRY(repr_list(m, b, v.list));
        whit_builder_str(b, "]");
        return WHIT_OK;
    case WHIT_DATUM_TUPLE:
        whit_builder_str(b, "(");
        WHIT_TRY(repr_list(m, b, v.list));
        whit_builder_str(b, v.list->n == 1 ? ",)" : ")");
        return WHIT_OK;
    case WHIT_DATUM_DICT: return repr_dict(m, b, v.dict);
    case WHIT_DATUM_VIEW: return repr_view(m, b, v);
    case WHIT_DATUM_RANGE: repr_range(b, v.range); return WHIT_OK;
    default: return repr_object(m, b, v);
    }
}

whit_status whit_machine_repr(whit_machine *m, whit_builder *b, whit_datum v)
{
    WHIT_TRY(whit_machine_enter(m));
    WHIT_TRY(whit_machine_spend(m, 1));
    WHIT_TRY(repr(m, b, v));
    m->depth--;
    return WHIT_OK;
}

whit_status whit_machine_str(whit_machine *m, whit_datum v, const whit_text **text)
{
    static const whit_text empty = {.bytes = ""};
    if (v.kind == WHIT_DATUM_TEXT && !v.text->is_bytes) {
        *text = v.text;
        return WHIT_OK;
    }
    if (v.kind == WHIT_DATUM_UNDEFINED) {
        *text = &empty;
        return WHIT_OK;
    }
    whit_builder b = whit_machine_build(m);
    whit_datum result;
    WHIT_TRY(whit_machine_repr(m, &b, v));
    WHIT_TRY(whit_machine_build_end(m, &b, &result));
    *text = result.text;
    return WHIT_OK;
}

whit_status whit_machine_escape_html(whit_machine *m, whit_datum v, whit_datum *result)
{
    const whit_text *text;
    WHIT_TRY(whit_machine_str(m, v, &text));
    if (text->markup) {
        *result = whit_datum_text(text);
        return WHIT_OK;
    }
    whit_builder b = whit_machine_build(m);
    for (size_t at = 0; at < text->n_bytes; at++) {
        const char *entity = NULL;
        switch (text->bytes[at]) {
        case '&': entity = "&amp;"; break;
        case '<': entity = "&lt;"; break;
        case '>': entity = "&gt;"; break;
        case '\'': entity = "&#39;"; break;
        case '"': entity = "&#34;"; break;
        default: whit_builder_slice(&b, text, at, at + 1); continue;
        }
        whit_builder_bytes(&b, entity, strlen(entity), whit_text_is_user(text, at));
    }
    b.markup = true;
    return whit_machine_build_end(m, &b, result);
}
