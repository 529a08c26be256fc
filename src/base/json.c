/* SPDX-License-Identifier: MIT */
#include "base/json.h"
#include "base/items.h"
#include "base/utf8.h"

#include <errno.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_NUMBER_BYTES 1024

typedef struct parser {
    whit_json *json;
    whit_error *error;
    const uint8_t *text;
    size_t n, at;
} parser;

static whit_status fail_at(const whit_json *json, size_t offset, whit_error *error, const char *what)
{
    size_t line = 1, column = 1;
    for (size_t i = 0; i < offset && i < json->text_bytes; i++) {
        uint8_t c = (uint8_t)json->text[i];
        if (c == '\n') {
            line++;
            column = 1;
        } else if ((c & 0xC0) != 0x80)
            column++;
    }
    return whit_fail(error, WHIT_ERROR_FORMAT, "%s:%zu:%zu: %s", json->name, line, column, what);
}

static whit_json_node *nodes_of(const whit_json *json)
{
    return WHIT_ITEMS(whit_json_node, &json->nodes);
}

static size_t n_nodes_of(const whit_json *json)
{
    return json->nodes.size_bytes / sizeof(whit_json_node);
}

static whit_status add_node(parser *p, whit_json_node node)
{
    node.next = (uint32_t)n_nodes_of(p->json) + 1;
    if (n_nodes_of(p->json) >= WHIT_JSON_NONE - 1)
        return fail_at(p->json, node.start, p->error, "the text has more than 2^32 values, the limit");
    if (!whit_buf_append(&p->json->nodes, &node, sizeof node))
        return whit_fail_memory(p->error, "the JSON text", p->json->nodes.size_bytes + sizeof node);
    return WHIT_OK;
}

static void skip_space(parser *p)
{
    while (p->at < p->n &&
           (p->text[p->at] == ' ' || p->text[p->at] == '\n' || p->text[p->at] == '\r' || p->text[p->at] == '\t'))
        p->at++;
}

static bool read_hex4(parser *p, uint32_t *value)
{
    if (p->n - p->at < 4) return false;
    *value = 0;
    for (int i = 0; i < 4; i++) {
        int digit = whit_hex_digit(p->text[p->at + (size_t)i]);
        if (digit < 0) return false;
        *value = *value << 4 | (uint32_t)digit;
    }
    p->at += 4;
    return true;
}

/* Decodes one escape sequence, whose backslash is already read, and appends the character to `strings`. */
static whit_status read_escape(parser *p)
{
    static const char letters[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    size_t start = p->at - 1;
    if (p->at >= p->n) return fail_at(p->json, start, p->error, "the text ends inside a string");
    char c = (char)p->text[p->at++];
    uint8_t bytes[4];
    size_t n_bytes = 1;
    const char *letter = c ? strchr(letters, c) : NULL;
    if (letter) {
        bytes[0] = (uint8_t)values[letter - letters];
    } else if (c == 'u') {
        uint32_t code, low;
        if (!read_hex4(p, &code)) return fail_at(p->json, start, p->error, "\\u needs four hexadecimal digits");
        if (code >= 0xD800 && code < 0xE000) {
            bool paired = code < 0xDC00 && p->n - p->at >= 2 && p->text[p->at] == '\\' && p->text[p->at + 1] == 'u';
            if (paired) p->at += 2;
            if (!paired || !read_hex4(p, &low) || low < 0xDC00 || low > 0xDFFF)
                return fail_at(p->json, start, p->error,
                               "this \\u escape is half of a surrogate pair: its partner is missing");
            code = 0x10000 + ((code - 0xD800) << 10 | (low - 0xDC00));
        }
        n_bytes = whit_utf8_encode(code, bytes);
    } else {
        return fail_at(p->json, start, p->error, "this escape is not known in JSON");
    }
    if (!whit_buf_append(&p->json->strings, bytes, n_bytes))
        return whit_fail_memory(p->error, "the strings of a JSON text", p->json->strings.size_bytes + n_bytes);
    return WHIT_OK;
}

static whit_status read_string(parser *p)
{
    whit_json *json = p->json;
    size_t quote = p->at++, run = p->at; /* `run`: start of the text that is not yet copied to `strings` */
    whit_json_node node = {.type = WHIT_JSON_STRING};
    size_t decoded = json->strings.size_bytes;
    for (;;) {
        if (p->at >= p->n) return fail_at(json, quote, p->error, "this string is not closed");
        uint8_t c = p->text[p->at];
        if (c == '"') break;
        if (c < 0x20) return fail_at(json, p->at, p->error, "a string must not contain a control character: escape it");
        if (c == '\\') {
            if (!whit_buf_append(&json->strings, p->text + run, p->at - run))
                return whit_fail_memory(p->error, "the strings of a JSON text", json->strings.size_bytes);
            p->at++;
            node.escaped = true;
            WHIT_TRY(read_escape(p));
            run = p->at;
        } else if (c < 0x80) {
            p->at++;
        } else {
            size_t length;
            if (whit_utf8_decode(p->text + p->at, p->n - p->at, &length) == WHIT_UTF8_INVALID)
                return fail_at(json, p->at, p->error, "this byte is not UTF-8");
            p->at += length;
        }
    }
    if (node.escaped) {
        if (!whit_buf_append(&json->strings, p->text + run, p->at - run))
            return whit_fail_memory(p->error, "the strings of a JSON text", json->strings.size_bytes);
        if (json->strings.size_bytes > UINT32_MAX)
            return fail_at(json, quote, p->error, "the strings of the text take more than 4 GiB, the limit");
        node.start = (uint32_t)decoded;
        node.end = (uint32_t)json->strings.size_bytes;
    } else {
        node.start = (uint32_t)run;
        node.end = (uint32_t)p->at;
    }
    p->at++;
    return add_node(p, node);
}

static size_t skip_digits(const parser *p, size_t at)
{
    while (at < p->n && p->text[at] >= '0' && p->text[at] <= '9') at++;
    return at;
}

static whit_status read_number(parser *p)
{
    size_t start = p->at, at = start;
    if (p->text[at] == '-') at++;
    if (p->n - at >= 8 && memcmp(p->text + at, "Infinity", 8) == 0) {
        at += 8;
    } else {
        size_t digits = at;
        at = skip_digits(p, at);
        bool ok = at > digits && (p->text[digits] != '0' || at == digits + 1);
        if (ok && at < p->n && p->text[at] == '.') {
            size_t fraction = ++at;
            at = skip_digits(p, at);
            ok = at > fraction;
        }
        if (ok && at < p->n && (p->text[at] | 0x20) == 'e') {
            at++;
            if (at < p->n && (p->text[at] == '+' || p->text[at] == '-')) at++;
            size_t exponent = at;
            at = skip_digits(p, at);
            ok = at > exponent;
        }
        if (!ok) return fail_at(p->json, start, p->error, "this is not a number");
    }
    if (at - start > MAX_NUMBER_BYTES)
        return fail_at(p->json, start, p->error, "this number has more than 1,024 characters, the limit");
    p->at = at;
    return add_node(p, (whit_json_node){.start = (uint32_t)start, .end = (uint32_t)at, .type = WHIT_JSON_NUMBER});
}

static whit_status read_word(parser *p, const char *word, whit_json_type type)
{
    size_t n = strlen(word);
    if (p->n - p->at < n || memcmp(p->text + p->at, word, n) != 0)
        return fail_at(p->json, p->at, p->error, "a value was expected here");
    whit_json_node node = {.start = (uint32_t)p->at, .end = (uint32_t)(p->at + n), .type = type};
    p->at += n;
    return add_node(p, node);
}

static whit_status read_scalar(parser *p)
{
    switch (p->text[p->at]) {
    case '"': return read_string(p);
    case 't': return read_word(p, "true", WHIT_JSON_BOOL);
    case 'f': return read_word(p, "false", WHIT_JSON_BOOL);
    case 'n': return read_word(p, "null", WHIT_JSON_NULL);
    case 'N': return read_word(p, "NaN", WHIT_JSON_NUMBER);
    case 'I': return read_word(p, "Infinity", WHIT_JSON_NUMBER);
    default: break;
    }
    uint8_t c = p->text[p->at];
    if (c == '-' || (c >= '0' && c <= '9')) return read_number(p);
    return fail_at(p->json, p->at, p->error, "a value was expected here");
}

/* Reads the key of an object's pair, and the colon after it. */
static whit_status read_key(parser *p)
{
    skip_space(p);
    if (p->at >= p->n || p->text[p->at] != '"')
        return fail_at(p->json, p->at, p->error, "a key in quotes was expected here");
    WHIT_TRY(read_string(p));
    skip_space(p);
    if (p->at >= p->n || p->text[p->at] != ':') return fail_at(p->json, p->at, p->error, "':' was expected here");
    p->at++;
    return WHIT_OK;
}

/* Reads up to the next value: closes the containers that end here, then reads a comma and, in an object, the next key.
 * At the end of the document *open becomes WHIT_JSON_NONE. While a container is open, its `next` is the index of its
 * parent. */
static whit_status after_value(parser *p, uint32_t *open, uint32_t *depth)
{
    while (*open != WHIT_JSON_NONE) {
        whit_json_node *container = &nodes_of(p->json)[*open];
        bool object = container->type == WHIT_JSON_OBJECT;
        skip_space(p);
        uint8_t c = p->at < p->n ? p->text[p->at] : 0;
        if (c == ',') {
            p->at++;
            return object ? read_key(p) : WHIT_OK;
        }
        char end = object ? '}' : ']';
        if (c != (end))
            return fail_at(p->json, p->at, p->error,
                           object ? "',' or '}' was expected here" : "',' or ']' was expected here");
        p->at++;
        uint32_t parent = container->next;
        container->next = (uint32_t)n_nodes_of(p->json);
        container->end = (uint32_t)p->at;
        *open = parent;
        (*depth)--;
    }
    return WHIT_OK;
}

static whit_status read_document(parser *p)
{
    uint32_t open = WHIT_JSON_NONE, depth = 0;
    do {
        skip_space(p);
        if (p->at >= p->n)
            return fail_at(p->json, p->at, p->error,
                           "the text ends too early: a value or a closing bracket is missing");
        uint8_t c = p->text[p->at];
        if (c == '{' || c == '[') {
            if (++depth > WHIT_JSON_MAX_DEPTH)
                return fail_at(p->json, p->at, p->error, "the values are nested more than 256 deep, the limit");
            WHIT_TRY(add_node(
                p, (whit_json_node){.start = (uint32_t)p->at, .type = c == '{' ? WHIT_JSON_OBJECT : WHIT_JSON_ARRAY}));
            uint32_t self = (uint32_t)n_nodes_of(p->json) - 1;
            nodes_of(p->json)[self].next = open;
            open = self;
            p->at++;
            skip_space(p);
            if (p->at < p->n && p->text[p->at] == (c == '{' ? '}' : ']')) {
                WHIT_TRY(after_value(p, &open, &depth));
            } else if (c == '{') {
                WHIT_TRY(read_key(p));
            }
        } else {
            WHIT_TRY(read_scalar(p));
            WHIT_TRY(after_value(p, &open, &depth));
        }
    } while (open != WHIT_JSON_NONE);
    skip_space(p);
    if (p->at < p->n) return fail_at(p->json, p->at, p->error, "the text must end after its value");
    return WHIT_OK;
}

whit_status whit_json_parse(const char *name, const char *text, size_t text_bytes, const whit_allocator *allocator,
                            whit_json *json, whit_error *error)
{
    *json = (whit_json){.name = name,
                        .text = text,
                        .text_bytes = text_bytes,
                        .nodes = {.allocator = allocator},
                        .strings = {.allocator = allocator}};
    if (text_bytes >= UINT32_MAX)
        return whit_fail(error, WHIT_ERROR_LIMIT, "%s: the JSON text is larger than 4 GiB, the limit", name);
    parser p = {.json = json, .error = error, .text = (const uint8_t *)text, .n = text_bytes};
    whit_status status = read_document(&p);
    if (status != WHIT_OK) whit_json_close(json);
    return status;
}

void whit_json_close(whit_json *json)
{
    if (!json) return;
    whit_buf_free(&json->nodes);
    whit_buf_free(&json->strings);
}

static const whit_json_node *node_at(const whit_json *json, uint32_t at)
{
    return at < n_nodes_of(json) ? &nodes_of(json)[at] : NULL;
}

whit_json_type whit_json_type_of(const whit_json *json, uint32_t at)
{
    const whit_json_node *node = node_at(json, at);
    return node ? (whit_json_type)node->type : WHIT_JSON_MISSING;
}

uint32_t whit_json_first(const whit_json *json, uint32_t container)
{
    const whit_json_node *node = node_at(json, container);
    if (!node || node->type < WHIT_JSON_ARRAY || node->next == container + 1) return WHIT_JSON_NONE;
    return container + 1;
}

uint32_t whit_json_next(const whit_json *json, uint32_t container, uint32_t at)
{
    const whit_json_node *node = node_at(json, container);
    if (!node || at >= node->next) return WHIT_JSON_NONE;
    uint32_t value = node->type == WHIT_JSON_OBJECT ? at + 1 : at;
    uint32_t next = nodes_of(json)[value].next;
    return next < node->next ? next : WHIT_JSON_NONE;
}

size_t whit_json_count(const whit_json *json, uint32_t container)
{
    size_t n = 0;
    for (uint32_t at = whit_json_first(json, container); at != WHIT_JSON_NONE; at = whit_json_next(json, container, at))
        n++;
    return n;
}

uint32_t whit_json_get(const whit_json *json, uint32_t object, const char *key)
{
    uint32_t found = WHIT_JSON_NONE;
    if (whit_json_type_of(json, object) != WHIT_JSON_OBJECT) return found;
    for (uint32_t at = whit_json_first(json, object); at != WHIT_JSON_NONE; at = whit_json_next(json, object, at))
        if (whit_json_is(json, at, key)) found = at + 1;
    return found;
}

const char *whit_json_string(const whit_json *json, uint32_t at, size_t *n_bytes)
{
    const whit_json_node *node = node_at(json, at);
    *n_bytes = 0;
    if (!node || node->type != WHIT_JSON_STRING) return NULL;
    *n_bytes = node->end - node->start;
    if (*n_bytes == 0) return "";
    return (node->escaped ? whit_chars(&json->strings) : json->text) + node->start;
}

const char *whit_json_raw(const whit_json *json, uint32_t at, size_t *n_bytes)
{
    const whit_json_node *node = node_at(json, at);
    *n_bytes = 0;
    if (!node || node->escaped) return NULL;
    *n_bytes = node->end - node->start;
    return json->text + node->start;
}

bool whit_json_is(const whit_json *json, uint32_t at, const char *text)
{
    size_t n;
    const char *string = whit_json_string(json, at, &n);
    return string && n == strlen(text) && memcmp(string, text, n) == 0;
}

bool whit_json_bool(const whit_json *json, uint32_t at, bool fallback)
{
    const whit_json_node *node = node_at(json, at);
    return node && node->type == WHIT_JSON_BOOL ? json->text[node->start] == 't' : fallback;
}

bool whit_json_i64(const whit_json *json, uint32_t at, int64_t *value)
{
    const whit_json_node *node = node_at(json, at);
    if (!node || node->type != WHIT_JSON_NUMBER) return false;
    const char *digit = json->text + node->start, *end = json->text + node->end;
    bool negative = *digit == '-';
    int64_t sum = 0;
    for (digit += negative; digit < end; digit++) {
        if (*digit < '0' || *digit > '9') return false;
        int64_t d = negative ? -(*digit - '0') : *digit - '0';
        if (__builtin_mul_overflow(sum, 10, &sum) || __builtin_add_overflow(sum, d, &sum)) return false;
    }
    *value = sum;
    return true;
}

bool whit_json_f64(const whit_json *json, uint32_t at, double *value)
{
    const whit_json_node *node = node_at(json, at);
    if (!node || node->type != WHIT_JSON_NUMBER) return false;
    char number[MAX_NUMBER_BYTES + 1];
    size_t n = node->end - node->start;
    memcpy(number, json->text + node->start, n);
    number[n] = 0;
    return whit_parse_f64(number, value);
}

bool whit_parse_f64(const char *number, double *value)
{
    /* strtod also reads leading blanks, hexadecimal digits, infinity and NaN */
    if (number[strspn(number, "+-.0123456789eE")]) return false;
    /* The host's locale may use a decimal comma, so the number is read in the C locale, which is built into the C
     * library. */
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c_locale) return false;
    char *end;
    double parsed = strtod_l(number, &end, c_locale);
    freelocale(c_locale);
    if (end == number || *end || !__builtin_isfinite(parsed)) return false;
    *value = parsed;
    return true;
}

whit_status whit_json_fail(const whit_json *json, uint32_t at, whit_error *error, const char *format, ...)
{
    char what[sizeof error->message];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    const whit_json_node *node = node_at(json, at);
    if (!node) return whit_fail(error, WHIT_ERROR_FORMAT, "%s: %s", json->name, what);
    /* The offsets of a string with escapes refer to `strings`, not to the text: use the position of the node before
     * it. */
    while (node->escaped && node > nodes_of(json)) node--;
    return fail_at(json, node->escaped ? 0 : node->start, error, what);
}

bool whit_json_write_string(whit_buf *out, const char *text, size_t text_bytes)
{
    const uint8_t *bytes = (const uint8_t *)text;
    whit_buf_append(out, "\"", 1);
    for (size_t i = 0, length; i < text_bytes; i += length) {
        uint32_t code = whit_utf8_decode(bytes + i, text_bytes - i, &length);
        if (code == WHIT_UTF8_INVALID)
            whit_buf_append_str(out, WHIT_UTF8_REPLACEMENT);
        else if (code == '"' || code == '\\')
            whit_buf_printf(out, "\\%c", (char)code);
        else if (code == '\n')
            whit_buf_append_str(out, "\\n");
        else if (code < 0x20 || code == 0x7F)
            whit_buf_printf(out, "\\u%04x", code);
        else
            whit_buf_append(out, bytes + i, length);
    }
    return whit_buf_append(out, "\"", 1);
}
