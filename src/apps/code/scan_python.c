/* SPDX-License-Identifier: MIT
 * Scans Python by its indentation, and other languages roughly, by the keywords that begin definitions. */
#include "code/scan.h"

#include <ctype.h>

#define DEPTH_MAX  64
#define NESTED_MAX 32 /* maximum nesting of f-strings; CPython limits it, too */
#define DOTS_MAX   32 /* maximum number of dots before an import's name; no project has folders that deep */

static const char *const python_keywords[] = {
    "and",    "as",   "assert", "async",  "await",    "break", "class", "continue", "def",
    "del",    "elif", "else",   "except", "finally",  "for",   "from",  "global",   "if",
    "import", "in",   "is",     "lambda", "nonlocal", "not",   "or",    "pass",     "raise",
    "return", "try",  "while",  "with",   "yield",    "None",  "True",  "False",    NULL};

static bool is_word(int byte)
{
    return isalnum(byte) || byte == '_' || byte >= 0x80;
}

static bool is_crlf(const struct scan *scan, uint32_t at)
{
    return at + 1 < scan->n && scan->text[at] == '\r' && scan->text[at + 1] == '\n';
}

static void skip_quoted(struct scan *scan, const char *end, bool lines)
{
    size_t n = strlen(end);
    for (scan->at += (uint32_t)n; scan->at < scan->n; scan->at++) {
        char byte = scan->text[scan->at];
        if (byte == '\n' && !lines) return;
        if (byte == '\n') scan->line++;
        if (byte == '\\' && scan->at + 1 < scan->n) {
            scan->at += is_crlf(scan, scan->at + 1);
            if (scan->text[scan->at + 1] == '\n') scan->line++;
            scan->at++;
        } else if (scan->at + n <= scan->n && !memcmp(scan->text + scan->at, end, n)) {
            scan->at += (uint32_t)n;
            return;
        }
    }
}

/* Returns the number of letters at the current position that are a string's prefix, such as those of r"", Rb'', f"" or
 * t"". */
static uint32_t prefix_bytes(const struct scan *scan)
{
    for (uint32_t n = 0; n <= 2 && scan->at + n < scan->n; n++) {
        char byte = scan->text[scan->at + n];
        if (byte == '"' || byte == '\'') return n;
        if (!memchr("rRbBuUfFtT", byte, 10)) break;
    }
    return 0;
}

/* Returns whether the prefix of a string contains one of the letters. */
static bool has_prefix(const struct scan *scan, struct token string, const char *letters)
{
    for (uint32_t i = string.begin; scan->text[i] != '"' && scan->text[i] != '\''; i++)
        if (strchr(letters, scan->text[i])) return true;
    return false;
}

static bool is_formatted(const struct scan *scan, struct token string)
{
    return has_prefix(scan, string, "fFtT");
}

static bool is_raw(const struct scan *scan, struct token string)
{
    return has_prefix(scan, string, "rR");
}

static struct token next_python(struct scan *scan);

/* Skips a field of an f-string whose '{' was read. Stops after its '}', or after the ':' that precedes its format, and
 * returns true in the second case. Strings in the field may use the quotes of the enclosing string (PEP 701). */
static bool skip_field(struct scan *scan)
{
    int brackets = 0;
    for (struct token token; (token = next_python(scan)).kind;) {
        if (!brackets && (token.kind == '}' || token.kind == ':')) return token.kind == ':';
        if (strchr("([{", token.kind)) brackets++;
        if (strchr(")]}", token.kind) && brackets) brackets--;
    }
    return false;
}

/* Skips an f-string whose prefix was read. lines: it has three quotes and may contain line ends. */
static void skip_formatted(struct scan *scan, const char *end, bool lines, bool is_raw)
{
    const uint32_t n = (uint32_t)strlen(end);
    unsigned n_formats = 0; /* number of field formats that enclose the current position */
    scan->n_nested++;
    for (scan->at += n; scan->at < scan->n;) {
        const char byte = scan->text[scan->at], after = scan->at + 1 < scan->n ? scan->text[scan->at + 1] : 0;
        if (byte == '\n' && !lines) break;
        if (scan->at + n <= scan->n && !memcmp(scan->text + scan->at, end, n)) {
            scan->at += n;
            break;
        }
        scan->at++;
        if (byte == '\n') scan->line++;
        if (byte == '}' && n_formats) n_formats--;
        if (byte == '\\' && after == 'N' && !is_raw) {
            while (scan->at < scan->n && !memchr("}\n\"'", scan->text[scan->at], 4)) scan->at++;
        } else if (byte == '\\' && after && after != '{') {
            scan->at += is_crlf(scan, scan->at);
            scan->line += scan->text[scan->at] == '\n';
            scan->at++;
        } else if (byte == '{' && after == '{' && !n_formats) {
            scan->at++;
        } else if (byte == '{') {
            n_formats += skip_field(scan);
        }
    }
    scan->n_nested--;
}

/* Returns the next token of Python; '\n' tokens also occur inside brackets. */
static struct token next_python(struct scan *scan)
{
    while (scan->at < scan->n) {
        char byte = scan->text[scan->at];
        if (byte == '#') {
            while (scan->at < scan->n && scan->text[scan->at] != '\n') scan->at++;
        } else if (byte == '\\' && scan->at + 1 < scan->n && scan->text[scan->at + 1] == '\n') {
            scan->at += 2;
            scan->line++;
        } else if (byte == '\\' && is_crlf(scan, scan->at + 1)) {
            scan->at += 3;
            scan->line++;
        } else if (byte == ' ' || byte == '\t' || byte == '\r' || byte == '\f') {
            scan->at++;
        } else {
            break;
        }
    }
    struct token token = {scan->at, 0, scan->line, 0};
    if (scan->at >= scan->n) return token;
    scan->at += prefix_bytes(scan);
    uint8_t byte = (uint8_t)scan->text[scan->at];
    if (byte == '"' || byte == '\'') {
        char end[4] = {(char)byte, (char)byte, (char)byte, 0};
        bool triple = scan->at + 3 <= scan->n && !memcmp(scan->text + scan->at, end, 3);
        if (!triple) end[1] = 0;
        token.n = scan->at - token.begin;
        if (!is_formatted(scan, token))
            skip_quoted(scan, end, triple);
        else if (scan->n_nested < NESTED_MAX)
            skip_formatted(scan, end, triple, is_raw(scan, token));
        else
            scan->at++; /* beyond the maximum nesting, the string's content is read as code */
        token.kind = '"';
    } else if (is_word(byte)) {
        bool digit = isdigit(byte);
        while (scan->at < scan->n && is_word((uint8_t)scan->text[scan->at])) scan->at++;
        token.kind = digit ? '0' : 'a';
    } else {
        scan->at++;
        token.kind = (char)byte;
        if (byte == '\n') scan->line++;
    }
    token.n = scan->at - token.begin;
    return token;
}

static void mention_word(struct scan *scan, struct token word, uint32_t inside)
{
    uint32_t behind = scan->at;
    while (behind < scan->n && scan->text[behind] == ' ') behind++;
    scan_mention(scan, word, inside, behind < scan->n && scan->text[behind] == '(', false);
}

static void mention_fields(const struct scan *scan, struct token string, uint32_t inside);

/* Records mentions of the names in a field's expression. Stops after its '}', or after the ':' that precedes its
 * format, and returns true in the second case. */
static bool mention_field(struct scan *in, uint32_t inside)
{
    int brackets = 0;
    for (struct token token, before = {0}; (token = next_python(in)).kind; before = token) {
        if (!brackets && (token.kind == '}' || token.kind == ':')) return token.kind == ':';
        if (strchr("([{", token.kind)) brackets++;
        if (strchr(")]}", token.kind) && brackets) brackets--;
        bool conversion = before.kind == '!'; /* the word is a conversion, such as r in "{word!r}" */
        if (token.kind == 'a' && !conversion && !scan_is_one_of(in, token, python_keywords))
            mention_word(in, token, inside);
        if (token.kind == '"') mention_fields(in, token, inside);
    }
    return false;
}

/* Records mentions of the names in the fields of an f-string. */
static void mention_fields(const struct scan *scan, struct token string, uint32_t inside)
{
    struct scan in = *scan;
    unsigned n_formats = 0; /* number of field formats that enclose the current position, each with its own fields */
    if (!is_formatted(scan, string) || scan->n_nested >= NESTED_MAX) return;
    const bool has_names = !is_raw(scan, string); /* characters may be written by name: \N{BULLET} */
    in.n_nested++;
    in.at = string.begin;
    in.n = string.begin + string.n;
    in.line = string.line;
    while (in.at < in.n) {
        char byte = in.text[in.at++], after = in.at < in.n ? in.text[in.at] : 0;
        if (byte == '\n') in.line++;
        if (byte == '}' && n_formats) n_formats--;
        if ((byte == '{' && after == '{' && !n_formats) || (byte == '\\' && after == 'N' && has_names)) {
            in.at++; /* skips a doubled brace, or the '{' of a character's name */
            if (byte == '\\' && in.at < in.n && in.text[in.at] == '{') in.at++;
        } else if (byte == '\\' && after == '\\') {
            in.at++;
        } else if (byte == '{') {
            n_formats += mention_field(&in, inside);
        }
    }
}

static uint32_t indentation(const struct scan *scan, uint32_t at)
{
    uint32_t columns = 0;
    while (at && scan->text[at - 1] != '\n') at--;
    for (; at < scan->n && (scan->text[at] == ' ' || scan->text[at] == '\t'); at++)
        columns = scan->text[at] == '\t' ? (columns | 7) + 1 : columns + 1;
    return columns;
}

/* Records the name in "from .. import name" as an import of "..name". */
static void import_name(struct scan *scan, struct token name, uint32_t n_dots, uint32_t inside)
{
    size_t n = scan->parse->n_mentions;
    scan_mention(scan, name, inside, false, true);
    if (scan->parse->n_mentions > n) scan->parse->mentions[n].n_dots = n_dots;
}

/* Reads the imports "import a.b as c, d" and "from ..x.y import z". Modules, with their leading dots, are recorded as
 * imports, and imported names as mentions. The names in "from . import z" may be modules, so they are recorded as
 * both. */
static struct token read_import(struct scan *scan, bool from, uint32_t inside)
{
    struct token token, path = {0};
    bool module = true, named = false; /* named: the module's path has a name after its dots */
    bool renamed = false;              /* the word "as" was read */
    uint32_t n_dots = 0;
    int parens = 0;
    for (;;) {
        token = next_python(scan);
        if (token.kind == '(') parens++;
        if (token.kind == ')') parens--;
        bool ends = !token.kind || (token.kind == '\n' && parens <= 0) || token.kind == ';';
        bool is_name = token.kind == 'a' && !scan_is_one_of(scan, token, python_keywords);
        if (module && (is_name || (token.kind == '.' && from && !named))) {
            if (!path.n) path = token;
            path.n = token.begin + token.n - path.begin;
            named = named || is_name;
            n_dots += !named;
        } else if (is_name && from) {
            scan_mention(scan, token, inside, false, false);
            if (!named && !renamed && n_dots <= DOTS_MAX) import_name(scan, token, n_dots, inside);
        }
        renamed = scan_is(scan, token, "as");
        bool separates = ends || token.kind == ',' || scan_is(scan, token, "import") || scan_is(scan, token, "as");
        if (separates && path.n) {
            if (named) scan_mention(scan, path, inside, false, true);
            path = (struct token){0};
        }
        if (scan_is(scan, token, "import") || scan_is(scan, token, "as")) module = false;
        if (token.kind == ',' && !from) module = true;
        if (ends) return token;
    }
}

void scan_python(struct scan *scan)
{
    struct {
        uint32_t definition, columns;
    } stack[DEPTH_MAX];
    unsigned depth = 0;
    int brackets = 0;
    bool line_begins = true;
    struct token token, before = {0};
    uint32_t last_line = 1;
    while ((token = next_python(scan)).kind) {
        uint32_t inside = depth ? stack[depth - 1].definition : WHIT_PARSE_NONE;
        if (token.kind == '\n') {
            line_begins = line_begins || brackets <= 0;
            continue;
        }
        if (line_begins && brackets <= 0) {
            uint32_t columns = indentation(scan, token.begin);
            while (depth && columns <= stack[depth - 1].columns) {
                depth--;
                if (stack[depth].definition != WHIT_PARSE_NONE)
                    scan->parse->definitions[stack[depth].definition].end_line = last_line;
            }
            inside = depth ? stack[depth - 1].definition : WHIT_PARSE_NONE;
        }
        bool begins = line_begins;
        line_begins = false;
        last_line = token.kind == '"' ? scan->line : token.line; /* a string may end on a later line */
        if (strchr("([{", token.kind)) brackets++;
        if (strchr(")]}", token.kind) && brackets) brackets--;
        if (token.kind == '"') mention_fields(scan, token, inside);
        if (token.kind != 'a') {
            before = token;
            continue;
        }
        bool is_class = scan_is(scan, token, "class"), is_def = scan_is(scan, token, "def");
        if ((begins || scan_is(scan, before, "async")) && (is_class || is_def)) {
            struct token name = next_python(scan);
            if (name.kind == 'a') {
                uint32_t definition = scan_define(scan, name, is_def ? WHIT_SYMBOL_FUNCTION : WHIT_SYMBOL_TYPE, inside);
                if (depth < DEPTH_MAX) {
                    stack[depth].definition = definition;
                    stack[depth++].columns = indentation(scan, token.begin);
                }
            }
        } else if ((begins || before.kind == ';' || before.kind == ':') &&
                   (scan_is(scan, token, "import") || scan_is(scan, token, "from"))) {
            before = read_import(scan, scan_is(scan, token, "from"), inside);
            line_begins = before.kind == '\n';
            continue;
        } else if (!scan_is_one_of(scan, token, python_keywords)) {
            uint32_t behind = scan->at;
            while (behind < scan->n && scan->text[behind] == ' ') behind++;
            char follows = behind < scan->n ? scan->text[behind] : 0;
            bool assigns = follows == '=' && behind + 1 < scan->n && scan->text[behind + 1] != '=';
            if (begins && !depth && (assigns || follows == ':') && !indentation(scan, token.begin))
                scan_define(scan, token, WHIT_SYMBOL_VARIABLE, WHIT_PARSE_NONE);
            else
                mention_word(scan, token, inside);
        }
        before = token;
    }
    while (depth--)
        if (stack[depth].definition != WHIT_PARSE_NONE)
            scan->parse->definitions[stack[depth].definition].end_line = last_line;
}

/* ---- other languages, scanned roughly ------------------------------------------------------- */

static whit_symbol_kind kind_behind(const struct scan *scan, struct token token)
{
    static const char *const functions[] = {"function", "fn", "func", "fun", "def", "sub", NULL};
    static const char *const types[] = {"class",    "struct", "enum",   "trait",  "interface", "type",
                                        "protocol", "module", "object", "record", "union",     NULL};
    if (scan_is_one_of(scan, token, functions)) return WHIT_SYMBOL_FUNCTION;
    if (scan_is_one_of(scan, token, types)) return WHIT_SYMBOL_TYPE;
    return 0;
}

/* Returns whether a slash and a star begin a comment. They do not in languages without such comments, and not in a path
 * pattern: there they follow a folder's name, and the line has no end of a comment. */
static bool begins_comment(struct scan *scan)
{
    uint8_t before = scan->at ? (uint8_t)scan->text[scan->at - 1] : '\n';
    if (!scan->has_block_comments) return false;
    if (!is_word(before) && !memchr(".*}\"'", before, 5)) return true;
    if (scan->at < scan->no_end_before) return false;
    const char *behind = scan->text + scan->at + 2, *end = scan->text + scan->n;
    const char *feed = behind < end ? memchr(behind, '\n', (size_t)(end - behind)) : NULL;
    size_t n = 0;
    if (behind < end) n = (size_t)((feed ? feed : end) - behind);
    if (n && memmem(behind, n, "*/", 2)) return true;
    scan->no_end_before = (uint32_t)((feed ? feed : end) - scan->text);
    return false;
}

static struct token next_other(struct scan *scan)
{
    while (scan->at < scan->n) {
        char byte = scan->text[scan->at], after = scan->at + 1 < scan->n ? scan->text[scan->at + 1] : 0;
        if (byte == '\n') {
            scan->line++;
            scan->at++;
        } else if ((byte == '/' && after == '/') || (byte == '#' && after != '[' && after != '!') ||
                   (byte == '-' && after == '-')) {
            while (scan->at < scan->n && scan->text[scan->at] != '\n') scan->at++;
        } else if (byte == '/' && after == '*' && begins_comment(scan)) {
            for (scan->at += 2; scan->at < scan->n; scan->at++) {
                if (scan->text[scan->at] == '\n') scan->line++;
                if (scan->text[scan->at] == '/' && scan->text[scan->at - 1] == '*') break;
            }
            scan->at += scan->at < scan->n;
        } else if (isspace((uint8_t)byte)) {
            scan->at++;
        } else {
            break;
        }
    }
    struct token token = {scan->at, 0, scan->line, 0};
    if (scan->at >= scan->n) return token;
    uint8_t byte = (uint8_t)scan->text[scan->at];
    if (byte == '"' || byte == '`') {
        char end[2] = {(char)byte, 0};
        skip_quoted(scan, end, byte == '`');
        token.kind = '"';
    } else if (is_word(byte)) {
        while (scan->at < scan->n && is_word((uint8_t)scan->text[scan->at])) scan->at++;
        token.kind = isdigit(byte) ? '0' : 'a';
    } else {
        scan->at++;
        token.kind = (char)byte;
    }
    token.n = scan->at - token.begin;
    return token;
}

void scan_other(struct scan *scan)
{
    whit_symbol_kind kind = 0;
    int receiver = 0; /* depth of brackets between "func" and the name of a Go method, where the receiver is */
    uint32_t inside = WHIT_PARSE_NONE;
    for (struct token token; (token = next_other(scan)).kind;) {
        if (kind && token.kind == '(') receiver++;
        if (kind && token.kind == ')' && receiver && --receiver == 0) continue;
        if (receiver) continue;
        if (token.kind != 'a') {
            if (token.kind != '*') kind = 0;
            continue;
        }
        whit_symbol_kind next_kind = kind_behind(scan, token);
        if (kind && !next_kind) {
            uint32_t definition = scan_define(scan, token, kind, WHIT_PARSE_NONE);
            if (kind == WHIT_SYMBOL_FUNCTION) {
                if (inside != WHIT_PARSE_NONE) scan->parse->definitions[inside].end_line = token.line - 1;
                inside = definition;
            }
            kind = 0;
        } else if (next_kind) {
            kind = next_kind;
        } else {
            bool calls = scan->at < scan->n && scan->text[scan->at] == '(';
            /* In a shell script, "NAME() {" begins a function. */
            if (calls && scan->at + 1 < scan->n && scan->text[scan->at + 1] == ')') {
                uint32_t at = scan->at + 2, begin = token.begin;
                while (at < scan->n && (scan->text[at] == ' ' || scan->text[at] == '\n')) at++;
                bool line_begins = !begin || scan->text[begin - 1] == '\n';
                if (line_begins && at < scan->n && scan->text[at] == '{') {
                    inside = scan_define(scan, token, WHIT_SYMBOL_FUNCTION, WHIT_PARSE_NONE);
                    continue;
                }
            }
            scan_mention(scan, token, inside, calls, false);
        }
    }
    if (inside != WHIT_PARSE_NONE) scan->parse->definitions[inside].end_line = scan->line;
}
