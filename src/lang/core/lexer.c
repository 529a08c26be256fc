/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/json.h"
#include "base/utf8.h"
#include "lang/core/ast.h"

struct lang_block {
    lang_block *next;
    size_t used, size;
    _Alignas(16) char bytes[];
};

void *lang_arena_take(lang_arena *arena, size_t n_bytes)
{
    n_bytes = whit_round_up(n_bytes, 16);
    lang_block *block = arena->blocks;
    if (!block || block->size - block->used < n_bytes) {
        size_t size = 4000;
        if (n_bytes > 4000)
            size = n_bytes;
        else if (block)
            size = 65536;
        size_t whole = sizeof *block + size;
        if (arena->n_bytes + whole > arena->limit_bytes) return NULL;
        block = whit_zalloc(arena->allocator, whole);
        if (!block) {
            arena->failed = true;
            return NULL;
        }
        *block = (lang_block){.next = arena->blocks, .size = size};
        arena->blocks = block;
        arena->n_bytes += whole;
    }
    void *memory = block->bytes + block->used;
    block->used += n_bytes;
    return memory;
}

lang_arena_mark lang_arena_now(const lang_arena *arena)
{
    return (lang_arena_mark){arena->blocks, arena->blocks ? arena->blocks->used : 0};
}

void lang_arena_rewind(lang_arena *arena, lang_arena_mark mark)
{
    for (lang_block *block; (block = arena->blocks) != mark.block;) {
        arena->blocks = block->next;
        arena->n_bytes -= sizeof *block + block->size;
        whit_free(arena->allocator, block, sizeof *block + block->size);
    }
    if (!mark.block) return;
    memset(mark.block->bytes + mark.used, 0, mark.block->used - mark.used);
    mark.block->used = mark.used;
}

void lang_arena_free(lang_arena *arena)
{
    lang_arena_rewind(arena, (lang_arena_mark){0});
}

whit_status lang_fail(lang_source *source, uint32_t line, uint32_t column, const char *format, ...)
{
    char text[400];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    *source->place = (whit_lang_place){line, column};
    return whit_fail(source->error, WHIT_ERROR_ARGUMENT, "%s:%u:%u: %s", source->name, line, column, text);
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const char *const words[] = {"let",      "if",     "else", "while", "for", "in", "break",
                                    "continue", "return", "fn",   "print", "and", "or", "not"};

/* Returns the length in bytes of the punctuation mark at the beginning of a text, 1 to 3; 0 if there is no such
 * mark. */
static size_t mark_length(const char *t, size_t left)
{
    char second = left > 1 ? t[1] : 0;
    char third = left > 2 ? t[2] : 0;
    switch (*t) {
    case '<':
    case '>':
        if (second == *t) return third == '=' ? 3 : 2;
        if (second == '=') return 2;
        return 1;
    case '&':
    case '|': return second == *t || second == '=' ? 2 : 1;
    case '=':
    case '!':
    case '+':
    case '-':
    case '*':
    case '/':
    case '%':
    case '^': return second == '=' ? 2 : 1;
    case '.': return second == '.' ? 2 : 0;
    case '~':
    case '(':
    case ')':
    case '[':
    case ']':
    case '{':
    case '}':
    case ',': return 1;
    default: return 0;
    }
}

static whit_status read_number(lang_source *s, lang_token *token)
{
    const char *t = s->text + s->at;
    size_t left = s->n - s->at, n = 0;
    uint64_t value = 0;
    bool fraction = false, over = false;
    if (left > 2 && t[0] == '0' && (t[1] == 'x' || t[1] == 'X')) {
        for (n = 2; n < left; n++) {
            int digit = whit_hex_digit((uint8_t)t[n]);
            if (digit < 0) break;
            over |= value >> 60 != 0;
            value = value << 4 | (unsigned)digit;
        }
        if (n == 2) return lang_fail(s, token->line, token->column, "0x needs hexadecimal digits");
    } else {
        for (; n < left && is_digit(t[n]); n++) {
            over |= value > (UINT64_MAX - 9) / 10;
            value = value * 10 + (unsigned)(t[n] - '0');
        }
        if (n + 1 < left && t[n] == '.' && is_digit(t[n + 1])) {
            fraction = true;
            for (n++; n < left && is_digit(t[n]); n++) continue;
        } else if (n < left && t[n] == '.' && !(n + 1 < left && t[n + 1] == '.')) {
            fraction = true;
            n++;
        }
        if (n < left && (t[n] | 32) == 'e') {
            size_t k = n + 1;
            if (k < left && (t[k] == '+' || t[k] == '-')) k++;
            if (k < left && is_digit(t[k])) {
                fraction = true;
                for (n = k; n < left && is_digit(t[n]); n++) continue;
            }
        }
        over |= !fraction && value > (uint64_t)INT64_MAX + 1;
        token->wants_minus = !fraction && value > (uint64_t)INT64_MAX;
    }
    if (n < left && (is_letter(t[n]) || is_digit(t[n])))
        return lang_fail(s, token->line, token->column + (uint32_t)n, "a number must not be followed by a letter");
    if (!fraction && over) return lang_fail(s, token->line, token->column, "an integer has at most 64 bits");
    if (n > 300) return lang_fail(s, token->line, token->column, "this number has more than 300 characters");
    token->kind = fraction ? TOKEN_FLOAT : TOKEN_INT;
    token->i = (int64_t)value;
    token->n = (uint32_t)n;
    if (fraction) {
        char copy[304];
        memcpy(copy, t, n);
        copy[n] = 0;
        if (!whit_parse_f64(copy, &token->f)) token->f = HUGE_VAL; /* too large for a double */
    }
    s->at += n;
    return WHIT_OK;
}

static whit_status text(lang_source *s, lang_token *token)
{
    const char *t = s->text + s->at;
    size_t left = s->n - s->at, n = 1;
    while (n < left && t[n] != '"' && (unsigned char)t[n] >= 32 && (unsigned char)t[n] < 127) n++;
    if (n == left || t[n] != '"')
        return lang_fail(s, token->line, token->column + (uint32_t)n, "a text must end with '\"' on its line");
    token->kind = TOKEN_TEXT;
    token->n = (uint32_t)n + 1;
    s->at += n + 1;
    return WHIT_OK;
}

whit_status lang_next(lang_source *s, lang_token *token)
{
    for (; s->at < s->n; s->at++) {
        char c = s->text[s->at];
        if (c == '#')
            while (s->at + 1 < s->n && s->text[s->at + 1] != '\n') s->at++;
        else if (c == '\n' && s->depth) {
            s->line++;
            s->line_begin = s->at + 1;
        } else if (c != ' ' && c != '\t' && c != '\r')
            break;
    }
    *token = (lang_token){.line = s->line, .column = (uint32_t)(s->at - s->line_begin) + 1, .text = s->text + s->at};
    if (s->at >= s->n) return WHIT_OK;
    char c = s->text[s->at];
    if (c == '\n' || c == ';') {
        token->kind = TOKEN_LINE;
        token->n = 1;
        s->at++;
        if (c == '\n') {
            s->line++;
            s->line_begin = s->at;
        }
        return WHIT_OK;
    }
    if (is_digit(c) || (c == '.' && s->at + 1 < s->n && is_digit(s->text[s->at + 1]))) return read_number(s, token);
    if (c == '"') return text(s, token);
    if (is_letter(c)) {
        size_t n = 1;
        while (s->at + n < s->n && (is_letter(s->text[s->at + n]) || is_digit(s->text[s->at + n]))) n++;
        if (n > 60) return lang_fail(s, token->line, token->column, "this name has more than 60 characters");
        token->kind = TOKEN_NAME;
        token->n = (uint32_t)n;
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            if (*words[i] == c && strlen(words[i]) == n && memcmp(words[i], token->text, n) == 0)
                token->kind = TOKEN_WORD;
        s->at += n;
        return WHIT_OK;
    }
    size_t n = mark_length(s->text + s->at, s->n - s->at);
    if (n) {
        token->kind = TOKEN_MARK;
        token->n = (uint32_t)n;
        s->at += n;
        if (c == '(' || c == '[') s->depth++;
        if ((c == ')' || c == ']') && s->depth) s->depth--;
        return WHIT_OK;
    }
    if ((unsigned char)c >= 128)
        return lang_fail(s, token->line, token->column,
                         "only comments may contain characters outside ASCII; names have letters, "
                         "digits and '_'");
    if ((unsigned char)c < 32 || c == 127)
        return lang_fail(s, token->line, token->column, "the byte 0x%02x has no meaning here", (unsigned char)c);
    return lang_fail(s, token->line, token->column, "'%c' has no meaning here", c);
}
