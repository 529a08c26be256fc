/* SPDX-License-Identifier: MIT */
#include "editor/syntax.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <strings.h>

#include "base/embed.h"

#define N_SPANS     16
#define TOKEN_BYTES 12
/* size of the hash table of words: a power of two, at least twice the number of words of any language */
#define N_SLOTS    1024
#define MARK_BYTES 8192 /* minimum distance in bytes between stored states */
/* maximum number of bytes coloured at once; longer lines are coloured in parts */
#define LINE_BYTES 4096

/* The embedded file contains the tables of all languages, one after another. */
WHIT_EMBED_FILE("whit_languages", WHIT_LANGUAGES_FILE);
extern const char whit_languages_begin[];

struct span {
    /* signs that open and close the span; empty `close`: the end of the line closes it */
    char open[TOKEN_BYTES], close[TOKEN_BYTES];
    char escape;
    uint8_t style;
    /* multi: the span may extend over several lines; nest: it may contain itself; at_start: it opens only at the
     * beginning of a line or after the line's indentation */
    bool multi, nest, at_start;
};
struct slot {
    const char *word;
    uint8_t n, style;
};
struct whit_syntax {
    char name[24];
    struct span spans[N_SPANS];
    unsigned n_spans;
    char word_chars[8]; /* characters that words may contain besides letters, digits and _ */
    bool any_case, calls, numbers;
    struct slot slots[N_SLOTS];
    unsigned n_words;
    uint64_t opens[4]; /* bit set: bytes with which a span's opening sign begins */
    int comment;       /* index of the span by which the comment command makes comments, or -1 */
};

static const char *next_line(const char *line)
{
    const char *end = strchr(line, '\n');
    return end ? end + 1 : line + strlen(line);
}

/* Copies the next word of a table's line into `word` and returns the position after it; returns NULL at the end of the
 * line. */
static const char *next_word(const char *at, char *word, size_t room_bytes)
{
    while (*at == ' ') at++;
    size_t n = strcspn(at, " \n");
    if (!n) return NULL;
    size_t kept = n < room_bytes ? n : room_bytes - 1;
    memcpy(word, at, kept);
    word[kept] = 0;
    return at + n;
}

static uint32_t hash_word(const uint8_t *word, size_t n, bool any_case)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < n; i++) hash = (hash ^ (any_case ? (uint32_t)tolower(word[i]) : word[i])) * 16777619u;
    return hash ^ hash >> 15;
}

static uint8_t style_of(const char *name)
{
    static const char *const names[] = {
        [WHIT_STYLE_TEXT] = "text",         [WHIT_STYLE_KEYWORD] = "keyword",   [WHIT_STYLE_TYPE] = "type",
        [WHIT_STYLE_CONSTANT] = "constant", [WHIT_STYLE_STRING] = "string",     [WHIT_STYLE_NUMBER] = "number",
        [WHIT_STYLE_COMMENT] = "comment",   [WHIT_STYLE_FUNCTION] = "function", [WHIT_STYLE_DIRECTIVE] = "directive"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i], name)) return (uint8_t)i;
    return WHIT_STYLE_TEXT;
}

static void add_words(whit_syntax *syntax, const char *at, uint8_t style)
{
    for (;;) {
        while (*at == ' ') at++;
        size_t n = strcspn(at, " \n");
        if (!n || n > 255 || syntax->n_words >= N_SLOTS / 2) return;
        uint32_t i = hash_word((const uint8_t *)at, n, syntax->any_case) & (N_SLOTS - 1);
        while (syntax->slots[i].word) i = (i + 1) & (N_SLOTS - 1);
        syntax->slots[i] = (struct slot){at, (uint8_t)n, style};
        syntax->n_words++;
        at += n;
    }
}

/* Adds a span from a table's line: span STYLE OPEN CLOSE [ESCAPE] [multi] [nest] [start]. CLOSE "eol" stands for the
 * end of the line. */
static void add_span(whit_syntax *syntax, const char *at)
{
    char word[32];
    if (syntax->n_spans == N_SPANS) return;
    struct span *span = &syntax->spans[syntax->n_spans];
    *span = (struct span){0};
    for (int i = 0; (at = next_word(at, word, sizeof word)); i++) {
        if (i == 0) span->style = style_of(word);
        if (i == 1) memcpy(span->open, word, TOKEN_BYTES - 1);
        if (i == 2 && strcmp(word, "eol")) memcpy(span->close, word, TOKEN_BYTES - 1);
        if (i < 3) continue;
        span->multi |= !strcmp(word, "multi");
        span->nest |= !strcmp(word, "nest");
        span->at_start |= !strcmp(word, "start");
        if (!word[1]) span->escape = word[0];
    }
    if (!span->open[0]) return;
    if (span->style == WHIT_STYLE_COMMENT && (syntax->comment < 0 || !span->close[0])) {
        bool better = syntax->comment < 0 || syntax->spans[syntax->comment].close[0];
        if (better) syntax->comment = (int)syntax->n_spans;
    }
    uint8_t first = (uint8_t)span->open[0];
    syntax->opens[first >> 6] |= 1ull << (first & 63);
    syntax->n_spans++;
}

static whit_syntax *read_table(const char *line)
{
    whit_syntax *syntax = calloc(1, sizeof *syntax);
    if (!syntax) return NULL;
    char word[32];
    syntax->comment = -1;
    const char *rest = next_word(line, word, sizeof word);
    if (rest) next_word(rest, syntax->name, sizeof syntax->name);
    for (line = next_line(line); *line && strncmp(line, "language ", 9); line = next_line(line)) {
        if (!(rest = next_word(line, word, sizeof word))) continue;
        if (!strcmp(word, "span"))
            add_span(syntax, rest);
        else if (!strcmp(word, "word"))
            next_word(rest, syntax->word_chars, sizeof syntax->word_chars);
        else if (!strcmp(word, "case"))
            syntax->any_case = true;
        else if (!strcmp(word, "calls"))
            syntax->calls = true;
        else if (!strcmp(word, "numbers"))
            syntax->numbers = true;
        else if (!strcmp(word, "keyword") || !strcmp(word, "type") || !strcmp(word, "constant") ||
                 !strcmp(word, "function"))
            add_words(syntax, rest, style_of(word));
    }
    return syntax;
}

static const char *next_table(const char *at)
{
    while (*at && strncmp(at, "language ", 9)) at = next_line(at);
    return *at ? at : NULL;
}

/* Returns whether a "files" or "first" line of this table matches the file's name or first line. */
static bool table_is_for(const char *table, const char *file, const char *first_line)
{
    char word[32], pattern[64];
    for (const char *line = next_line(table); *line && strncmp(line, "language ", 9); line = next_line(line)) {
        const char *rest = next_word(line, word, sizeof word);
        bool files = rest && !strcmp(word, "files"), first = rest && !strcmp(word, "first");
        if (!files && !first) continue;
        while ((rest = next_word(rest, pattern, sizeof pattern))) {
            if (files && file && !fnmatch(pattern, file, 0)) return true;
            if (first && first_line && !strncmp(first_line, "#!", 2) && strstr(first_line, pattern)) return true;
        }
    }
    return false;
}

whit_syntax *whit_syntax_for(const char *path, const char *first_line)
{
    const char *file = path ? strrchr(path, '/') : NULL;
    file = file ? file + 1 : path;
    for (const char *at = whit_languages_begin; (at = next_table(at)); at = next_line(at))
        if (table_is_for(at, file, NULL)) return read_table(at);
    for (const char *at = whit_languages_begin; (at = next_table(at)); at = next_line(at))
        if (table_is_for(at, NULL, first_line)) return read_table(at);
    return NULL;
}

const char *whit_syntax_language(size_t i, char *name, size_t room_bytes)
{
    for (const char *at = whit_languages_begin; (at = next_table(at)); at = next_line(at), i--)
        if (!i) return next_word(at + 9, name, room_bytes) ? name : NULL;
    return NULL;
}

void whit_syntax_close(whit_syntax *syntax)
{
    free(syntax);
}

const char *whit_syntax_name(const whit_syntax *syntax)
{
    return syntax ? syntax->name : "text";
}

void whit_syntax_comment(const whit_syntax *syntax, const char **open, const char **close)
{
    bool has = syntax && syntax->comment >= 0;
    *open = has ? syntax->spans[syntax->comment].open : "#";
    *close = has ? syntax->spans[syntax->comment].close : "";
}

/* ---- the lexer ----------------------------------------------------------------------------- */

static bool starts(const uint8_t *at, size_t n, const char *token, size_t *length)
{
    *length = strlen(token);
    return *length && *length <= n && !memcmp(at, token, *length);
}

static void paint(uint8_t *styles, size_t from, size_t to, uint8_t style)
{
    if (styles) memset(styles + from, style, to - from);
}

static bool is_word(const whit_syntax *syntax, uint8_t byte)
{
    return isalnum(byte) || byte == '_' || byte >= 0x80 || (byte && strchr(syntax->word_chars, byte));
}

/* Continues inside a span up to its end or the end of the bytes. The state is (index of the span + 1) + 32 * depth, and
 * 0 after the span's end. Returns the offset after the bytes read. */
static size_t read_span(const whit_syntax *syntax, uint32_t *state, const uint8_t *line, size_t at, size_t n, bool ends)
{
    const struct span *span = &syntax->spans[(*state & 31) - 1];
    size_t length;
    while (at < n) {
        if (span->escape && line[at] == (uint8_t)span->escape && span->escape != span->close[0] && at + 1 < n) {
            at += 2;
        } else if (starts(line + at, n - at, span->close, &length)) {
            at += length;
            /* a doubled closing sign is an escape, as in 'it''s' */
            if (span->escape == span->close[0] && at < n && line[at] == (uint8_t)span->escape) {
                at++;
            } else if (*state >> 5) {
                *state -= 32;
            } else {
                *state = 0;
                return at;
            }
        } else if (span->nest && starts(line + at, n - at, span->open, &length) && *state < 1u << 16) {
            *state += 32;
            at += length;
        } else {
            at++;
        }
    }
    bool continued = n && span->escape == '\\' && line[n - 1] == '\\';
    if (ends && !span->multi && !continued) *state = 0;
    return n;
}

static size_t read_number(const uint8_t *line, size_t at, size_t n)
{
    while (at < n &&
           (isalnum(line[at]) || line[at] == '_' || (line[at] == '.' && at + 1 < n && isdigit(line[at + 1])) ||
            ((line[at] == '+' || line[at] == '-') && (line[at - 1] | 32) == 'e')))
        at++;
    return at;
}

static uint8_t word_style(const whit_syntax *syntax, const uint8_t *line, size_t from, size_t to, size_t n)
{
    size_t length = to - from;
    for (uint32_t i = hash_word(line + from, length, syntax->any_case) & (N_SLOTS - 1); syntax->slots[i].word;
         i = (i + 1) & (N_SLOTS - 1)) {
        const struct slot *slot = &syntax->slots[i];
        if (slot->n == length &&
            !(syntax->any_case ? strncasecmp(slot->word, (const char *)line + from, length)
                               : memcmp(slot->word, line + from, length)))
            return slot->style;
    }
    return syntax->calls && to < n && line[to] == '(' ? WHIT_STYLE_FUNCTION : WHIT_STYLE_TEXT;
}

uint32_t whit_syntax_line(const whit_syntax *syntax, uint32_t state, const uint8_t *line, size_t n, bool ends,
                          uint8_t *styles)
{
    size_t at = 0;
    bool at_start = true;
    if ((state & 31) > syntax->n_spans) state = 0;
    while (at < n) {
        size_t from = at, length;
        if (state) {
            uint8_t style = syntax->spans[(state & 31) - 1].style;
            at = read_span(syntax, &state, line, at, n, ends);
            paint(styles, from, at, style);
            continue;
        }
        uint8_t byte = line[at];
        if (syntax->opens[byte >> 6] >> (byte & 63) & 1) {
            const struct span *best = NULL;
            size_t best_length = 0;
            for (unsigned i = 0; i < syntax->n_spans; i++) {
                const struct span *span = &syntax->spans[i];
                if ((!span->at_start || at_start) && starts(line + at, n - at, span->open, &length) &&
                    length > best_length) {
                    best = span;
                    best_length = length;
                }
            }
            if (best) {
                state = (uint32_t)(best - syntax->spans) + 1;
                at += best_length;
                paint(styles, from, at, best->style);
                if (at == n) read_span(syntax, &state, line, at, n, ends);
                at_start = false;
                continue;
            }
        }
        if (syntax->numbers && isdigit(byte)) {
            at = read_number(line, at + 1, n);
            paint(styles, from, at, WHIT_STYLE_NUMBER);
        } else if (is_word(syntax, byte)) {
            while (at < n && is_word(syntax, line[at])) at++;
            paint(styles, from, at, word_style(syntax, line, from, at, n));
        } else {
            at++;
            paint(styles, from, at, WHIT_STYLE_TEXT);
        }
        at_start = at_start && (byte == ' ' || byte == '\t');
    }
    if (!n && state) read_span(syntax, &state, line, 0, 0, ends);
    return state;
}

/* ---- states along a text ------------------------------------------------------------------- */

void whit_syntax_states_free(whit_syntax_states *states)
{
    free(states->marks);
    *states = (whit_syntax_states){0};
}

void whit_syntax_states_cut(whit_syntax_states *states, uint64_t offset)
{
    while (states->n_marks && states->marks[states->n_marks - 1].offset > offset) states->n_marks--;
}

static void add_mark(whit_syntax_states *states, uint64_t offset, uint32_t state)
{
    if (states->n_marks == states->room) {
        size_t room = states->room ? 2 * states->room : 64;
        void *grown = realloc(states->marks, room * sizeof *states->marks);
        if (!grown) return; /* without memory the state is computed again the next time */
        states->marks = grown;
        states->room = room;
    }
    states->marks[states->n_marks].offset = offset;
    states->marks[states->n_marks++].state = state;
}

bool whit_syntax_states_at(whit_syntax_states *states, const whit_syntax *syntax, const whit_text *text,
                           uint64_t offset, uint64_t budget_bytes, uint32_t *state)
{
    size_t low = 0, high = states->n_marks;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (states->marks[middle].offset <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    uint64_t at = low ? states->marks[low - 1].offset : 0, marked = at;
    bool at_end = low == states->n_marks; /* states are only appended after the last stored one */
    *state = low ? states->marks[low - 1].state : 0;
    uint64_t begin = at;
    uint8_t line[LINE_BYTES];
    while (at < offset) {
        if (at - begin > budget_bytes) return false;
        uint64_t end = whit_text_line_end(text, at), wanted = end < offset ? end : offset;
        size_t n = wanted - at < sizeof line ? (size_t)(wanted - at) : sizeof line;
        n = whit_text_read(text, at, line, n);
        size_t shown = n && at + n == end && line[n - 1] == '\r' ? n - 1 : n;
        *state = whit_syntax_line(syntax, *state, line, shown, at + n == end, NULL);
        at += n;
        if (at >= end && at < offset) at++;
        if (!n && at > end) continue;
        if (at_end && at - marked >= MARK_BYTES && at <= offset) {
            add_mark(states, at, *state);
            marked = at;
        }
    }
    return true;
}
