/* SPDX-License-Identifier: MIT */
#include "template/lexer.h"

#include "base/utf8.h"
#include "template/number.h"
#include "template/unicode.h"

enum { MAX_OPEN_BRACKETS = 256 };

typedef struct lexer {
    whit_datum_pool *pool;
    const char *source;
    size_t n_bytes, at;
    whit_lexemes tokens;
    size_t capacity;
    whit_error *error;
} lexer;

static const struct {
    char text[3];
    uint8_t type;
} operators[] = {
    /* longer operators come first, since the first match counts */
    {"//", WHIT_LEXEME_FLOORDIV}, {"**", WHIT_LEXEME_POW},      {"==", WHIT_LEXEME_EQ},    {"!=", WHIT_LEXEME_NE},
    {">=", WHIT_LEXEME_GE},       {"<=", WHIT_LEXEME_LE},       {"+", WHIT_LEXEME_ADD},    {"-", WHIT_LEXEME_SUB},
    {"/", WHIT_LEXEME_DIV},       {"*", WHIT_LEXEME_MUL},       {"%", WHIT_LEXEME_MOD},    {"~", WHIT_LEXEME_TILDE},
    {"[", WHIT_LEXEME_LBRACKET},  {"]", WHIT_LEXEME_RBRACKET},  {"(", WHIT_LEXEME_LPAREN}, {")", WHIT_LEXEME_RPAREN},
    {"{", WHIT_LEXEME_LBRACE},    {"}", WHIT_LEXEME_RBRACE},    {">", WHIT_LEXEME_GT},     {"<", WHIT_LEXEME_LT},
    {"=", WHIT_LEXEME_ASSIGN},    {".", WHIT_LEXEME_DOT},       {":", WHIT_LEXEME_COLON},  {"|", WHIT_LEXEME_PIPE},
    {",", WHIT_LEXEME_COMMA},     {";", WHIT_LEXEME_SEMICOLON},
};

const char *whit_lexeme_name(whit_lexeme_type type)
{
    switch (type) {
    case WHIT_LEXEME_END: return "end of template";
    case WHIT_LEXEME_DATA: return "template data";
    case WHIT_LEXEME_PRINT_BEGIN: return "begin of print statement";
    case WHIT_LEXEME_PRINT_END: return "end of print statement";
    case WHIT_LEXEME_BLOCK_BEGIN: return "begin of statement block";
    case WHIT_LEXEME_BLOCK_END: return "end of statement block";
    case WHIT_LEXEME_NAME: return "name";
    case WHIT_LEXEME_CONSTANT: return "constant";
    default:
        for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
            if (operators[i].type == type) return operators[i].text;
        return "token";
    }
}

static whit_status add_lexeme(lexer *l, whit_lexeme_type type, size_t offset, whit_datum value)
{
    if (l->tokens.n == l->capacity) {
        size_t capacity = l->capacity ? l->capacity * 2 : 64;
        whit_lexeme *items =
            whit_datum_pool_grow(l->pool, l->tokens.items, l->tokens.n * sizeof *items, capacity * sizeof *items);
        if (!items) return whit_fail_memory(l->error, "the tokens of the chat template", capacity * sizeof *items);
        l->tokens.items = items;
        l->capacity = capacity;
    }
    l->tokens.items[l->tokens.n++] = (whit_lexeme){(uint8_t)type, (uint32_t)offset, value};
    return WHIT_OK;
}

static whit_status add_text(lexer *l, whit_lexeme_type type, size_t begin, size_t end)
{
    const whit_text *text = whit_text_new(l->pool, l->source + begin, end - begin, false);
    if (!text) return whit_fail_memory(l->error, "the text of the chat template", end - begin);
    return add_lexeme(l, type, begin, whit_datum_text(text));
}

static bool starts(const lexer *l, size_t at, const char *what)
{
    size_t n = strlen(what);
    return n <= l->n_bytes - at && memcmp(l->source + at, what, n) == 0;
}

static uint32_t point_at(const lexer *l, size_t at, size_t *next)
{
    size_t length;
    uint32_t point = whit_utf8_decode((const uint8_t *)l->source + at, l->n_bytes - at, &length);
    *next = at + length;
    return point;
}

static size_t skip_space(const lexer *l, size_t at)
{
    for (size_t next; at < l->n_bytes && whit_point_is_space(point_at(l, at, &next));) at = next;
    return at;
}

/* Returns where the white space that ends at `end` begins; not less than `begin`. */
static size_t space_before(const lexer *l, size_t begin, size_t end)
{
    whit_text text = {.bytes = l->source, .n_bytes = l->n_bytes};
    for (size_t start; end > begin && whit_point_is_space(whit_text_point_before(&text, end, &start));) end = start;
    return end;
}

/* Adds source[begin, end), the text before a tag, as a DATA token. `sign` is the tag's '-', '+' or 0: '-' removes the
 * white space before the tag. */
static whit_status add_data(lexer *l, size_t begin, size_t end, char sign, bool is_print)
{
    if (sign == '-') {
        end = space_before(l, begin, end);
    } else if (sign != '+' && !is_print) { /* lstrip_blocks: without a sign, white space between the line's beginning
                                            * and the tag is removed */
        size_t line = end;
        while (line > begin && l->source[line - 1] != '\n') line--;
        bool at_line_start = line > begin || begin == 0 || l->source[begin - 1] == '\n';
        if (at_line_start && space_before(l, line, end) == line) end = line;
    }
    return end > begin ? add_text(l, WHIT_LEXEME_DATA, begin, end) : WHIT_OK;
}

/* Returns whether the end of a block or comment ("%}", "-%}", "+%}") is at `at`. *after is the position after it and
 * after the white space that it removes. */
static bool closes(const lexer *l, size_t at, const char *end, size_t *after)
{
    char sign = at < l->n_bytes ? l->source[at] : 0;
    size_t tail = at + (sign == '-' || sign == '+');
    if (tail > l->n_bytes || !starts(l, tail, end)) return false;
    tail += 2;
    if (sign == '-')
        *after = skip_space(l, tail);
    else
        /* trim_blocks: a line feed after the tag is removed */
        *after = tail + (sign != '+' && tail < l->n_bytes && l->source[tail] == '\n');
    return true;
}

static char sign_at(const lexer *l, size_t at)
{
    return at < l->n_bytes && (l->source[at] == '-' || l->source[at] == '+') ? l->source[at] : 0;
}

/* Returns whether the "{%" at `at` begins "{% raw %}". *after is where the raw text begins. */
static bool opens_raw(const lexer *l, size_t at, size_t *after)
{
    at = skip_space(l, at + 2 + (sign_at(l, at + 2) != 0));
    if (!starts(l, at, "raw")) return false;
    at = skip_space(l, at + 3);
    if (starts(l, at, "-%}"))
        *after = skip_space(l, at + 3);
    else if (starts(l, at, "%}"))
        *after = at + 2;
    else
        return false;
    return true;
}

static whit_status read_raw(lexer *l, size_t begin)
{
    for (size_t at = begin; at + 1 < l->n_bytes; at++) {
        if (!starts(l, at, "{%")) continue;
        char sign = sign_at(l, at + 2);
        size_t name = skip_space(l, at + 2 + (sign != 0)), after;
        if (!starts(l, name, "endraw") || !closes(l, skip_space(l, name + 6), "%}", &after)) continue;
        l->at = after;
        return add_data(l, begin, at, sign, false);
    }
    return whit_fail(l->error, WHIT_ERROR_FORMAT, "missing end of raw directive");
}

static whit_status read_comment(lexer *l)
{
    size_t begin = l->at + 2 + (sign_at(l, l->at + 2) != 0);
    for (size_t at = begin; at < l->n_bytes; at++)
        if (closes(l, at, "#}", &l->at)) return WHIT_OK;
    return whit_fail(l->error, WHIT_ERROR_FORMAT, "missing end of comment tag");
}

/* Reads an escape of a string literal, after its backslash, as in Python. Unknown escapes stay unchanged. */
static whit_status read_escape(lexer *l, whit_builder *b, size_t *at, size_t end)
{
    static const char letters[] = "\\'\"abfnrtv", meanings[] = "\\'\"\a\b\f\n\r\t\v";
    char c = l->source[(*at)++];
    if (c == '\n') return WHIT_OK;
    const char *letter = c ? strchr(letters, c) : NULL;
    if (letter) {
        whit_builder_point(b, (uint8_t)meanings[letter - letters], false);
        return WHIT_OK;
    }
    if (c >= '0' && c <= '7') {
        uint32_t point = (uint32_t)(c - '0');
        for (int i = 0; i < 2 && *at < end && l->source[*at] >= '0' && l->source[*at] <= '7'; i++)
            point = point * 8 + (uint32_t)(l->source[(*at)++] - '0');
        whit_builder_point(b, point, false);
        return WHIT_OK;
    }
    size_t n_digits = 0;
    if (c == 'x')
        n_digits = 2;
    else if (c == 'u')
        n_digits = 4;
    else if (c == 'U')
        n_digits = 8;
    if (n_digits) {
        uint32_t point = 0;
        for (size_t i = 0; i < n_digits; i++) {
            int digit = *at < end ? whit_hex_digit((uint8_t)l->source[*at]) : -1;
            if (digit < 0) return whit_fail(l->error, WHIT_ERROR_FORMAT, "truncated \\%c escape", c);
            point = point << 4 | (uint32_t)digit;
            ++*at;
        }
        if (point > 0x10FFFF || (point >= 0xD800 && point < 0xE000))
            return whit_fail(l->error, WHIT_ERROR_FORMAT, "this escape is not a Unicode character");
        whit_builder_point(b, point, false);
        return WHIT_OK;
    }
    if (c == 'N')
        return whit_fail(l->error, WHIT_ERROR_UNSUPPORTED,
                         "named characters (\\N{...}) are not supported: write the character itself");
    whit_builder_str(b, "\\");
    whit_builder_bytes(b, &c, 1, false); /* the further bytes of the character follow as plain text */
    return WHIT_OK;
}

static whit_status read_string(lexer *l)
{
    size_t begin = l->at, end = begin + 1;
    char quote = l->source[begin];
    while (end < l->n_bytes && l->source[end] != quote) end += l->source[end] == '\\' ? 2 : 1;
    if (end >= l->n_bytes) return whit_fail(l->error, WHIT_ERROR_FORMAT, "this string is not closed");
    whit_builder b = whit_builder_begin(l->pool, l->n_bytes + 1);
    for (size_t at = begin + 1; at < end;) {
        size_t plain = at;
        while (at < end && l->source[at] != '\\') at++;
        whit_builder_bytes(&b, l->source + plain, at - plain, false);
        if (at == end) break;
        at++;
        WHIT_TRY(read_escape(l, &b, &at, end));
    }
    const whit_text *text = whit_builder_end(&b);
    if (!text) return whit_fail_memory(l->error, "the text of the chat template", end - begin);
    l->at = end + 1;
    return add_lexeme(l, WHIT_LEXEME_CONSTANT, begin, whit_datum_text(text));
}

static bool is_digit(const lexer *l, size_t at)
{
    return at < l->n_bytes && l->source[at] >= '0' && l->source[at] <= '9';
}

/* Skips digits, with at most one underscore between two of them. */
static size_t skip_digits(const lexer *l, size_t at)
{
    while (is_digit(l, at) || (at < l->n_bytes && l->source[at] == '_' && is_digit(l, at + 1))) at++;
    return at;
}

/* Returns the end of the float at `at`; returns `at` if no float is there. */
static size_t float_end(const lexer *l, size_t at)
{
    if (at && l->source[at - 1] == '.') return at;
    size_t end = skip_digits(l, at), mantissa = end;
    if (end < l->n_bytes && l->source[end] == '.' && is_digit(l, end + 1)) end = skip_digits(l, end + 1);
    if (end < l->n_bytes && (l->source[end] | 32) == 'e') {
        size_t digits = end + 1;
        if (digits < l->n_bytes && (l->source[digits] == '+' || l->source[digits] == '-')) digits++;
        if (is_digit(l, digits)) return skip_digits(l, digits);
    }
    return end > mantissa ? end : at;
}

static int base_digit(char c, int base)
{
    int digit = whit_hex_digit((uint8_t)c);
    return digit < base ? digit : -1;
}

static size_t integer_end(const lexer *l, size_t at, int *base)
{
    char letter = at + 1 < l->n_bytes ? (char)(l->source[at + 1] | 32) : 0;
    *base = 10;
    if (l->source[at] == '0' && letter == 'x')
        *base = 16;
    else if (l->source[at] == '0' && letter == 'o')
        *base = 8;
    else if (l->source[at] == '0' && letter == 'b')
        *base = 2;
    if (*base != 10) {
        size_t end = at + 2;
        for (;;) {
            size_t digit = end + (end < l->n_bytes && l->source[end] == '_');
            if (digit >= l->n_bytes || base_digit(l->source[digit], *base) < 0) break;
            end = digit + 1;
        }
        if (end > at + 2) return end;
        *base = 10;
    }
    if (l->source[at] != '0') return skip_digits(l, at);
    size_t end = at + 1; /* after a leading 0 only zeros may follow */
    while (end < l->n_bytes && (l->source[end] == '0' || (starts(l, end, "_0")))) end++;
    return end;
}

static whit_status read_number(lexer *l)
{
    size_t begin = l->at, end = float_end(l, begin);
    bool is_float = end > begin;
    int base = 10;
    if (!is_float) end = integer_end(l, begin, &base);
    whit_builder b = whit_builder_begin(l->pool, l->n_bytes + 1);
    for (size_t i = begin + (base != 10 ? 2 : 0); i < end; i++)
        if (l->source[i] != '_') whit_builder_bytes(&b, l->source + i, 1, false);
    const whit_text *digits = whit_builder_end(&b);
    whit_datum value;
    if (!digits) return whit_fail_memory(l->error, "a number", end - begin);
    if (is_float) {
        double real;
        if (!whit_real_parse(digits->bytes, digits->n_bytes, &real))
            return whit_fail(l->error, WHIT_ERROR_FORMAT, "this number has more than 1,000 characters, the limit");
        value = whit_datum_float(real);
    } else if (!whit_integer_parse(digits, base, &value)) {
        return whit_fail(l->error, WHIT_ERROR_UNSUPPORTED, "this integer has more than 64 bits, the limit");
    }
    l->at = end;
    return add_lexeme(l, WHIT_LEXEME_CONSTANT, begin, value);
}

static bool is_word(uint32_t point)
{
    return point == '_' || whit_point_is_alpha(point) || whit_point_is_numeric(point);
}

static whit_status read_name(lexer *l)
{
    size_t begin = l->at, next;
    bool good = whit_point_is_name_start(point_at(l, begin, &next));
    while (l->at < l->n_bytes) {
        uint32_t point = point_at(l, l->at, &next);
        if (!is_word(point)) break;
        good = good && whit_point_is_name(point);
        l->at = next;
    }
    if (!good) return whit_fail(l->error, WHIT_ERROR_FORMAT, "invalid character in identifier");
    return add_text(l, WHIT_LEXEME_NAME, begin, l->at);
}

static whit_status read_operator(lexer *l, char *open, size_t *n_open)
{
    size_t i = 0, n = sizeof operators / sizeof *operators;
    while (i < n && !starts(l, l->at, operators[i].text)) i++;
    if (i == n) return whit_fail(l->error, WHIT_ERROR_FORMAT, "unexpected character '%c'", l->source[l->at]);
    char c = operators[i].text[0];
    if (c == '(' || c == '[' || c == '{') {
        if (*n_open == MAX_OPEN_BRACKETS)
            return whit_fail(l->error, WHIT_ERROR_LIMIT, "brackets are nested too deeply: at most 256 are possible");
        char close = '}';
        if (c == '(')
            close = ')';
        else if (c == '[')
            close = ']';
        open[(*n_open)++] = close;
    } else if (c == ')' || c == ']' || c == '}') {
        if (*n_open == 0) return whit_fail(l->error, WHIT_ERROR_FORMAT, "unexpected '%c'", c);
        if (open[--*n_open] != c)
            return whit_fail(l->error, WHIT_ERROR_FORMAT, "unexpected '%c', expected '%c'", c, open[*n_open]);
    }
    WHIT_TRY(add_lexeme(l, operators[i].type, l->at, whit_datum_none()));
    l->at += strlen(operators[i].text);
    return WHIT_OK;
}

/* Reads the tokens between "{{" and "}}" or between "{%" and "%}". Inside brackets, "}}" and "%}" do not end the
 * tag. */
static whit_status read_code(lexer *l, bool is_print)
{
    char open[MAX_OPEN_BRACKETS];
    size_t n_open = 0, begin = l->at, next;
    WHIT_TRY(add_lexeme(l, is_print ? WHIT_LEXEME_PRINT_BEGIN : WHIT_LEXEME_BLOCK_BEGIN, begin, whit_datum_none()));
    l->at += 2 + (sign_at(l, begin + 2) != 0);
    while ((l->at = skip_space(l, l->at)) < l->n_bytes) {
        size_t at = l->at;
        if (n_open == 0 && is_print && (starts(l, at, "}}") || starts(l, at, "-}}"))) {
            l->at = l->source[at] == '-' ? skip_space(l, at + 3) : at + 2;
            return add_lexeme(l, WHIT_LEXEME_PRINT_END, at, whit_datum_none());
        }
        if (n_open == 0 && !is_print && closes(l, at, "%}", &l->at))
            return add_lexeme(l, WHIT_LEXEME_BLOCK_END, at, whit_datum_none());
        char c = l->source[at];
        if (is_digit(l, at))
            WHIT_TRY(read_number(l));
        else if (is_word(point_at(l, at, &next)))
            WHIT_TRY(read_name(l));
        else if (c == '\'' || c == '"')
            WHIT_TRY(read_string(l));
        else
            WHIT_TRY(read_operator(l, open, &n_open));
    }
    return WHIT_OK; /* the parser reports that the end is missing */
}

static whit_status read_all(lexer *l)
{
    while (l->at < l->n_bytes) {
        size_t begin = l->at, at = begin, raw;
        while (at < l->n_bytes &&
               !(l->source[at] == '{' && at + 1 < l->n_bytes && strchr("%{#", l->source[at + 1]) && l->source[at + 1]))
            at++;
        if (at == l->n_bytes) {
            l->at = at;
            return add_text(l, WHIT_LEXEME_DATA, begin, at);
        }
        WHIT_TRY(add_data(l, begin, at, sign_at(l, at + 2), l->source[at + 1] == '{'));
        l->at = at;
        if (l->source[at + 1] == '#')
            WHIT_TRY(read_comment(l));
        else if (l->source[at + 1] == '%' && opens_raw(l, at, &raw))
            WHIT_TRY(read_raw(l, raw));
        else
            WHIT_TRY(read_code(l, l->source[at + 1] == '{'));
    }
    return WHIT_OK;
}

whit_status whit_lexer_read(whit_datum_pool *pool, const char *source, size_t n_bytes, whit_lexemes *tokens,
                            size_t *error_offset, whit_error *error)
{
    lexer l = {.pool = pool, .source = source, .n_bytes = n_bytes, .error = error};
    whit_status status = read_all(&l);
    *error_offset = l.at;
    if (status == WHIT_OK) status = add_lexeme(&l, WHIT_LEXEME_END, n_bytes, whit_datum_none());
    *tokens = l.tokens;
    return status;
}
