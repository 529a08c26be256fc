/* SPDX-License-Identifier: MIT
 * Scans C and C++. Declarations are read token by token up to a ';', a '{' or a '='. A '{' opens a container
 * (namespace, class, extern "C"), a body, or a list. After #else the brackets are counted from the depth at the #if. */
#include "code/scan.h"

#include <ctype.h>

#define DEPTH_MAX      256
#define IFS_MAX        64
#define TOKENS_MAX     512 /* further tokens of a declaration are ignored */
#define OPERATOR_BYTES 200 /* maximum number of bytes of an operator's name */

enum scope_kind { CONTAINER, BODY, LIST, ENUM };

struct scope {
    enum scope_kind kind;
    uint32_t definition; /* number of the definition whose braces this is, or that contains it */
    bool members;        /* the scope is the body of a type, whose declarations are members and not variables */
};

struct c {
    struct scan *scan;
    struct scope scopes[DEPTH_MAX];
    unsigned depth;
    unsigned ifs[IFS_MAX], n_ifs;
    struct token tokens[TOKENS_MAX]; /* tokens of the declaration that is being read */
    unsigned n_tokens;
    int parens;    /* number of open parentheses in the declaration */
    bool in_value; /* a '=' was read in the declaration */
};

static const char *const keywords[] = {"if",
                                       "else",
                                       "for",
                                       "while",
                                       "do",
                                       "switch",
                                       "case",
                                       "default",
                                       "break",
                                       "continue",
                                       "return",
                                       "goto",
                                       "sizeof",
                                       "typedef",
                                       "struct",
                                       "union",
                                       "enum",
                                       "static",
                                       "extern",
                                       "inline",
                                       "const",
                                       "volatile",
                                       "restrict",
                                       "register",
                                       "auto",
                                       "void",
                                       "char",
                                       "short",
                                       "int",
                                       "long",
                                       "float",
                                       "double",
                                       "signed",
                                       "unsigned",
                                       "_Bool",
                                       "bool",
                                       "class",
                                       "namespace",
                                       "template",
                                       "typename",
                                       "using",
                                       "operator",
                                       "_Static_assert",
                                       "_Alignof",
                                       "alignof",
                                       "_Alignas",
                                       "alignas",
                                       "__typeof__",
                                       "typeof",
                                       "_Generic",
                                       "__attribute__",
                                       "__asm__",
                                       "asm",
                                       "defined",
                                       "constexpr",
                                       "noexcept",
                                       "decltype",
                                       "static_assert",
                                       "__extension__",
                                       "__inline",
                                       "__restrict",
                                       "true",
                                       "false",
                                       "nullptr",
                                       "mutable",
                                       NULL};

static bool is_word_char(int byte)
{
    return isalnum(byte) || byte == '_' || byte >= 0x80 || byte == '$';
}

static int byte_at(const struct scan *scan, uint32_t at)
{
    return at < scan->n ? (uint8_t)scan->text[at] : -1;
}

/* If a backslash followed by a line end is at this offset, returns the length of both, which compilers remove;
 * otherwise 0. As in GCC, blanks may be between the two. */
static uint32_t splice_bytes(const struct scan *scan, uint32_t at)
{
    uint32_t end = at + 1;
    if (byte_at(scan, at) != '\\') return 0;
    while (byte_at(scan, end) != '\n' && isspace(byte_at(scan, end))) end++;
    return byte_at(scan, end) == '\n' ? end + 1 - at : 0;
}

static void skip_string(struct scan *scan, char quote)
{
    for (scan->at++; scan->at < scan->n; scan->at++) {
        char byte = scan->text[scan->at];
        uint32_t n_splice = splice_bytes(scan, scan->at);
        if (n_splice) {
            scan->line++;
            scan->at += n_splice - 1;
        } else if (byte == '\\' && scan->at + 1 < scan->n) {
            scan->at++;
        } else if (byte == quote) {
            scan->at++;
            return;
        } else if (byte == '\n') {
            return; /* a string without a closing quote ends at the line's end */
        }
    }
}

static void skip_block(struct scan *scan)
{
    for (scan->at += 2; scan->at < scan->n; scan->at++) {
        if (scan->text[scan->at] == '\n') scan->line++;
        if (scan->text[scan->at] == '*' && byte_at(scan, scan->at + 1) == '/') {
            scan->at += 2;
            return;
        }
    }
}

/* Returns the next token. In a directive the end of the line is a token, too. */
static struct token next(struct scan *scan, bool directive)
{
    while (scan->at < scan->n) {
        char byte = scan->text[scan->at];
        if (byte == '\n') {
            if (directive) return (struct token){scan->at, 0, scan->line, '\n'};
            scan->line++;
            scan->at++;
            scan->at_line_begin = true;
        } else if (byte == '\\' && splice_bytes(scan, scan->at)) {
            scan->at += splice_bytes(scan, scan->at);
            scan->line++;
        } else if (byte == '/' && byte_at(scan, scan->at + 1) == '*') {
            skip_block(scan);
        } else if (byte == '/' && byte_at(scan, scan->at + 1) == '/') {
            while (scan->at < scan->n && scan->text[scan->at] != '\n') {
                uint32_t n_splice = splice_bytes(scan, scan->at);
                scan->line += n_splice > 0;
                scan->at += n_splice ? n_splice : 1;
            }
        } else if (isspace((uint8_t)byte)) {
            scan->at++;
        } else {
            break;
        }
    }
    struct token token = {scan->at, 0, scan->line, 0};
    if (scan->at >= scan->n) return token;
    uint8_t first = (uint8_t)scan->text[scan->at];
    bool at_line_begin = scan->at_line_begin;
    scan->at_line_begin = false;
    if (first == '#' && at_line_begin && !directive) {
        scan->at++;
        token.kind = '#';
    } else if (first == '"' || first == '\'') {
        skip_string(scan, (char)first);
        token.kind = '"';
    } else if (isdigit(first)) {
        while (is_word_char(byte_at(scan, scan->at)) || byte_at(scan, scan->at) == '.' ||
               (byte_at(scan, scan->at) == '\'' && isalnum(byte_at(scan, scan->at + 1))))
            scan->at++;
        token.kind = '0';
    } else if (is_word_char(first)) {
        while (is_word_char(byte_at(scan, scan->at))) scan->at++;
        token.kind = 'a';
        /* the word may be the prefix of a string literal, as in L"", u8"" and R"x( )x" */
        if (byte_at(scan, scan->at) == '"' && scan->at - token.begin <= 3) {
            static const char *const raw[] = {"R", "LR", "uR", "UR", "u8R", NULL};
            token.n = scan->at - token.begin;
            if (scan_is_one_of(scan, token, raw)) {
                uint32_t open = scan->at + 1, paren = open;
                while (paren < scan->n && paren - open < 17 && scan->text[paren] != '(') paren++;
                for (scan->at = paren; scan->at < scan->n; scan->at++) {
                    if (scan->text[scan->at] == '\n') scan->line++;
                    uint32_t n = paren - open;
                    if (scan->text[scan->at] == ')' && scan->at + n + 1 < scan->n &&
                        !memcmp(scan->text + scan->at + 1, scan->text + open, n) &&
                        scan->text[scan->at + n + 1] == '"') {
                        scan->at += n + 2;
                        break;
                    }
                }
            } else {
                skip_string(scan, '"');
            }
            token.kind = '"';
        }
    } else {
        scan->at++;
        token.kind = (char)first;
    }
    token.n = scan->at - token.begin;
    return token;
}

static struct scope *scope(struct c *c)
{
    return &c->scopes[c->depth];
}

/* Returns the number of the definition that encloses the current position, or WHIT_PARSE_NONE. */
static uint32_t inside(const struct c *c)
{
    return c->scopes[c->depth].definition;
}

static void forget(struct c *c)
{
    c->n_tokens = 0;
    c->parens = 0;
    c->in_value = false;
}

static void open_scope(struct c *c, enum scope_kind kind, uint32_t definition)
{
    if (c->depth + 1 < DEPTH_MAX) c->depth++;
    c->scopes[c->depth] = (struct scope){kind, definition};
}

static bool is_name(const struct c *c, struct token token)
{
    return token.kind == 'a' && !scan_is_one_of(c->scan, token, keywords);
}

/* Reads "operator==", "operator()" or "operator bool" as one name, which ends before the parameters' bracket. */
static struct token read_operator(struct scan *scan, struct token token)
{
    uint32_t end = scan->at;
    while (byte_at(scan, end) == ' ') end++;
    if (byte_at(scan, end) == '(' && byte_at(scan, end + 1) == ')') end += 2;
    while (end < scan->n && end - token.begin < OPERATOR_BYTES && !memchr("();{}\n", scan->text[end], 6)) end++;
    if (byte_at(scan, end) != '(') return token;
    while (scan->text[end - 1] == ' ') end--;
    scan->at = end;
    token.n = end - token.begin;
    return token;
}

/* Skips the parameters of a template, so that a '=' in them does not begin a value. If they are incomplete, stops
 * before the token that ends them. */
static void skip_template(struct c *c)
{
    struct scan *scan = c->scan;
    int angles = 0, parens = 0;
    do {
        struct scan before = *scan;
        struct token token = next(scan, false);
        if (!token.kind || strchr("{};#", token.kind) || (!angles && token.kind != '<')) {
            *scan = before;
            return;
        }
        parens += (token.kind == '(') - (token.kind == ')');
        /* two '<' in a default value are a shift */
        if (token.kind == '<' && angles && byte_at(scan, scan->at) == '<') {
            scan->at++;
            continue;
        }
        if (parens <= 0) angles += (token.kind == '<') - (token.kind == '>');
        if (is_name(c, token)) scan_mention(scan, token, inside(c), false, false);
    } while (angles > 0);
}

/* Skips a pair of brackets and everything between them; the next token must be the opening bracket. Returns false at
 * the end of the text, or at a token of `stops`, which is not consumed. */
static bool skip_brackets(struct c *c, char open, char close, const char *stops)
{
    struct scan *scan = c->scan;
    int depth = 0;
    do {
        struct scan before = *scan;
        struct token token = next(scan, false);
        if (!token.kind || strchr(stops, token.kind) || (!depth && token.kind != open)) {
            *scan = before;
            return false;
        }
        depth += (token.kind == open) - (token.kind == close);
        if (is_name(c, token)) scan_mention(scan, token, inside(c), false, false);
    } while (depth > 0);
    return true;
}

static struct token peek(struct scan *scan)
{
    struct scan before = *scan;
    struct token token = next(scan, false);
    *scan = before;
    return token;
}

/* Skips a name with its namespaces and template arguments, such as "std::is_same_v<T, int>". */
static void skip_qualified(struct c *c)
{
    for (struct token token = peek(c->scan); token.kind == 'a' || token.kind == ':'; token = peek(c->scan)) {
        next(c->scan, false);
        if (token.kind == ':') continue;
        if (is_name(c, token)) scan_mention(c->scan, token, inside(c), false, false);
        struct token after = peek(c->scan);
        if (after.kind == '<') skip_template(c);
        if (after.kind != '<' && after.kind != ':') return;
        if (peek(c->scan).kind != ':') return;
    }
}

/* Skips the constraint after "requires" (C++20, [temp.pre]), which is primary expressions joined by && or ||. */
static void skip_constraint(struct c *c)
{
    struct scan *scan = c->scan;
    for (;;) {
        struct token token = peek(scan);
        if (token.kind == '(') {
            if (!skip_brackets(c, '(', ')', "{};#")) return;
        } else if (scan_is(scan, token, "requires")) { /* a requires expression: parameters in round brackets are
                                                        * optional, requirements follow in braces */
            next(scan, false);
            if (peek(scan).kind == '(' && !skip_brackets(c, '(', ')', "{};#")) return;
            if (!skip_brackets(c, '{', '}', "#")) return;
        } else {
            skip_qualified(c);
        }
        struct scan before = *scan;
        struct token first = next(scan, false), second = next(scan, false);
        if (first.kind != second.kind || (first.kind != '&' && first.kind != '|')) {
            *scan = before;
            return;
        }
    }
}

/* Returns whether "requires" can begin a constraint here, which is after a function's parameters and qualifiers.
 * Elsewhere it may be an ordinary name, as in C. */
static bool follows_parameters(const struct c *c)
{
    static const char *const words[] = {"const", "volatile", "noexcept", "override", "final", NULL};
    if (!c->n_tokens) return false;
    struct token last = c->tokens[c->n_tokens - 1];
    return last.kind == ')' || (c->n_tokens > 2 && last.kind == '&') || scan_is_one_of(c->scan, last, words);
}

/* ---- directives ---------------------------------------------------------------------------- */

static void skip_line(struct scan *scan)
{
    while (next(scan, true).kind != '\n' && scan->at < scan->n) {
    }
}

static void directive(struct c *c)
{
    struct scan *scan = c->scan;
    struct token word = next(scan, true);
    if (scan_is(scan, word, "include") || scan_is(scan, word, "import") || scan_is(scan, word, "include_next")) {
        struct token path = next(scan, true);
        if (path.kind == '"' && path.n > 2) {
            path.begin++;
            path.n -= 2;
            scan_mention(scan, path, WHIT_PARSE_NONE, false, true);
        } else if (path.kind == '<') {
            path.begin++;
            uint32_t end = path.begin;
            while (end < scan->n && scan->text[end] != '>' && scan->text[end] != '\n') end++;
            path.n = end - path.begin;
            scan_mention(scan, path, WHIT_PARSE_NONE, false, true);
            scan->at = end;
        }
    } else if (scan_is(scan, word, "define")) {
        struct token name = next(scan, true), token;
        if (name.kind == 'a') {
            uint32_t macro = scan_define(scan, name, WHIT_SYMBOL_MACRO, WHIT_PARSE_NONE);
            while ((token = next(scan, true)).kind && token.kind != '\n') {
                if (token.kind != 'a' || scan_is_one_of(scan, token, keywords)) continue;
                scan_mention(scan, token, macro, byte_at(scan, scan->at) == '(', false);
            }
            if (macro != WHIT_PARSE_NONE) scan->parse->definitions[macro].end_line = scan->line;
            return;
        }
    } else if (scan_is(scan, word, "if") || scan_is(scan, word, "ifdef") || scan_is(scan, word, "ifndef")) {
        if (c->n_ifs < IFS_MAX) c->ifs[c->n_ifs] = c->depth;
        c->n_ifs++;
    } else if (scan_is(scan, word, "else") || scan_is(scan, word, "elif")) {
        /* Restores the depth from before the #if, even if the branch closed more brackets than it opened. */
        if (c->n_ifs && c->n_ifs <= IFS_MAX) c->depth = c->ifs[c->n_ifs - 1];
    } else if (scan_is(scan, word, "endif")) {
        if (c->n_ifs) c->n_ifs--;
    }
    if (word.kind != '\n') skip_line(scan);
}

/* ---- declarations -------------------------------------------------------------------------- */

/* Returns whether the token has no lower-case letter, as the names of macros usually have none. */
static bool is_shouted(const struct c *c, struct token token)
{
    for (uint32_t i = 0; i < token.n; i++)
        if (byte_at(c->scan, token.begin + i) >= 'a' && byte_at(c->scan, token.begin + i) <= 'z') return false;
    return true;
}

/* For TYPE NAME MACRO((...)), returns whether the word before the macro is the function's name. If no type precedes
 * this word, it may be the type itself. */
static bool is_named_before(const struct c *c, int macro)
{
    static const char *const no_types[] = {"static", "extern", "inline", "const",    "volatile",
                                           "struct", "union",  "enum",   "unsigned", NULL};
    if (macro < 2 || !is_name(c, c->tokens[macro - 1]) || is_shouted(c, c->tokens[macro - 1])) return false;
    struct token before = c->tokens[macro - 2];
    return before.kind == '*' || (before.kind == 'a' && !scan_is_one_of(c->scan, before, no_types));
}

/* Returns the index of the name before the first '(' outside other brackets, or -1; it is a function's name if a body
 * follows. The search continues after __attribute__((...)) and after macros that are attributes. */
static int function_name(const struct c *c)
{
    int depth = 0, found = -1;
    for (unsigned i = 0; i < c->n_tokens; i++) {
        char kind = c->tokens[i].kind;
        if (kind == '=' && !depth) break;
        if (kind == '(' && depth++ == 0 && i && is_name(c, c->tokens[i - 1])) {
            /* In NAME(...) NAME(...) the first name is a macro and the second the function, unless the second is an
             * attribute macro of the first. */
            bool whole_first = found == 0 && i - 1 > 0;
            bool attribute = found > 0 && is_shouted(c, c->tokens[found]) && !is_shouted(c, c->tokens[i - 1]);
            if (found < 0 || whole_first || attribute) found = (int)i - 1;
        }
        if (kind == ')' && depth) depth--;
        if (kind == ':' && !depth && found >= 0 && i + 1 < c->n_tokens && c->tokens[i + 1].kind != ':' &&
            c->tokens[i - 1].kind != ':')
            break; /* the initialiser list of a constructor follows */
    }
    if (found > 1 && is_shouted(c, c->tokens[found]) && is_named_before(c, found)) found--;
    return found;
}

/* Returns the index of NAME in "struct NAME", "class NAME" or "namespace NAME", if the tokens before a '{' are such a
 * type; -1 if it has no name. */
static int type_name(const struct c *c, bool *is_enum, bool *is_type, bool *is_space)
{
    static const char *const types[] = {"struct", "union", "class", "enum", NULL};
    int name = -1, depth = 0;
    *is_enum = *is_type = *is_space = false;
    for (unsigned i = 0; i < c->n_tokens; i++) {
        struct token token = c->tokens[i];
        if (token.kind == '(') depth++;
        if (token.kind == ')') depth--;
        if (depth || token.kind != 'a') {
            if (token.kind == ':' && *is_type) break; /* base classes follow */
            continue;
        }
        if (scan_is_one_of(c->scan, token, types)) {
            *is_type = true;
            *is_enum = scan_is(c->scan, token, "enum");
            name = -1;
        } else if (scan_is(c->scan, token, "namespace")) {
            *is_space = true;
        } else if (is_name(c, token) && (name < 0 || !scan_is(c->scan, token, "final"))) {
            /* in "class NAME final" the name is the word before "final" */
            name = (int)i;
        }
    }
    return name;
}

static bool has_word(const struct c *c, const char *word)
{
    for (unsigned i = 0; i < c->n_tokens; i++)
        if (c->tokens[i].kind == 'a' && scan_is(c->scan, c->tokens[i], word)) return true;
    return false;
}

static void open_brace(struct c *c)
{
    struct scan *scan = c->scan;
    bool is_enum, is_type, is_space;
    uint32_t parent = inside(c);
    if (c->in_value || c->parens > 0) {
        open_scope(c, LIST, parent);
        return;
    }
    int function = function_name(c), name = type_name(c, &is_enum, &is_type, &is_space);
    bool is_extern = c->n_tokens == 2 && scan_is(scan, c->tokens[0], "extern") && c->tokens[1].kind == '"';
    /* in a typedef, "NAME(...)" is a macro call without a semicolon before it, and no function */
    if (is_type && has_word(c, "typedef")) function = -1;
    if (is_extern || (is_space && function < 0)) {
        open_scope(c, CONTAINER, parent);
        forget(c);
    } else if (is_type && function < 0) {
        uint32_t definition = name < 0 ? parent : scan_define(scan, c->tokens[name], WHIT_SYMBOL_TYPE, parent);
        open_scope(c, is_enum ? ENUM : CONTAINER, definition);
        scope(c)->members = true;
        forget(c);
    } else if (function >= 0) {
        uint32_t definition = scan_define(scan, c->tokens[function], WHIT_SYMBOL_FUNCTION, parent);
        if (definition != WHIT_PARSE_NONE) scan->parse->definitions[definition].is_local = has_word(c, "static");
        for (unsigned i = 0; i < c->n_tokens; i++)
            if ((int)i != function && is_name(c, c->tokens[i]))
                scan_mention(scan, c->tokens[i], definition, false, false);
        open_scope(c, BODY, definition);
        forget(c);
    } else {
        open_scope(c, LIST, parent);
    }
}

/* For a typedef of a function or function pointer, finds the name in the brackets before the parameters: "(NAME)(...)",
 * "(CONVENTION *NAME)(...)". Returns the token's index, or -1. */
static int bracketed_name(const struct c *c)
{
    for (unsigned i = 1; i < c->n_tokens; i++) {
        if (c->tokens[i].kind != '(') continue;
        int name = -1, depth = 0;
        unsigned end = i;
        for (; end < c->n_tokens; end++) {
            depth += (c->tokens[end].kind == '(') - (c->tokens[end].kind == ')');
            if (!depth) break;
            if (is_name(c, c->tokens[end])) name = (int)end;
        }
        if (end + 1 < c->n_tokens && c->tokens[end + 1].kind == '(') return name;
        i = end;
    }
    return -1;
}

/* Defines the second and further names of a typedef such as "A, *B, C[2]". */
static void define_others(struct c *c, uint32_t parent)
{
    int depth = 0, name = -1;
    bool behind_comma = false;
    for (unsigned i = 0; i <= c->n_tokens; i++) {
        int kind = i < c->n_tokens ? c->tokens[i].kind : ',';
        if (kind == '(' || kind == '[') depth++;
        if (kind == ')' || kind == ']') depth--;
        if (depth) continue;
        if (kind == ',') {
            if (behind_comma && name >= 0) scan_define(c->scan, c->tokens[name], WHIT_SYMBOL_TYPE, parent);
            behind_comma = true;
            name = -1;
        } else if (is_name(c, c->tokens[i])) {
            name = (int)i;
        }
    }
}

/* Returns whether the last word is probably an attribute macro: the only word after a named type, as in "struct NAME
 * {...} PACKED;". */
static bool is_attribute(const struct c *c)
{
    struct token last = c->tokens[c->n_tokens - 1];
    return c->n_tokens == 2 && c->tokens[0].kind == 'N' &&
        (is_shouted(c, last) || (last.n > 2 && !memcmp(c->scan->text + last.begin, "__", 2)));
}

/* Ends a declaration: records typedefs and variables as definitions, and prototypes as mentions. */
static void end_declaration(struct c *c, bool typedef_of_type)
{
    struct scan *scan = c->scan;
    uint32_t parent = inside(c);
    bool is_typedef = typedef_of_type || has_word(c, "typedef"), is_extern = has_word(c, "extern");
    bool member = scope(c)->members;
    int function = function_name(c), depth = 0, name = -1, pointer = -1;
    for (unsigned i = 0; i < c->n_tokens; i++) {
        struct token token = c->tokens[i];
        if (token.kind == '=') break;
        if (token.kind == '[' || token.kind == '(') {
            /* (*NAME)(...) declares a pointer to a function. */
            if (token.kind == '(' && i + 2 < c->n_tokens && c->tokens[i + 1].kind == '*' && pointer < 0)
                for (unsigned k = i + 1; k < c->n_tokens && c->tokens[k].kind != ')'; k++)
                    if (is_name(c, c->tokens[k])) pointer = (int)k;
            depth++;
        }
        if (token.kind == ']' || token.kind == ')') depth--;
        if (!depth && is_name(c, token)) name = (int)i;
        if (!depth && token.kind == ',') break;
    }
    if (is_typedef) {
        int bracketed = bracketed_name(c);
        bool of_macro = name > function && (name + 1 == (int)c->n_tokens || c->tokens[name + 1].kind == ',');
        int chosen = function;
        if (pointer >= 0)
            chosen = pointer;
        else if (bracketed >= 0)
            chosen = bracketed;
        else if (of_macro || function < 0)
            chosen = name;
        if (chosen >= 0) scan_define(scan, c->tokens[chosen], WHIT_SYMBOL_TYPE, parent);
        define_others(c, parent);
    } else if (c->n_tokens > 2 && c->tokens[2].kind == '=' && is_name(c, c->tokens[1]) &&
               (scan_is(scan, c->tokens[0], "using") || scan_is(scan, c->tokens[0], "concept"))) {
        scan_define(scan, c->tokens[1], WHIT_SYMBOL_TYPE, parent);
    } else if (function < 0 && !member && !is_extern && c->n_tokens > 1 && (pointer >= 0 || name > 0) &&
               !has_word(c, "using")) {
        /* "struct name;" is a forward declaration and no variable. */
        bool forward = c->n_tokens == 2 && !is_name(c, c->tokens[0]) &&
            (scan_is(scan, c->tokens[0], "struct") || scan_is(scan, c->tokens[0], "union") ||
             scan_is(scan, c->tokens[0], "enum") || scan_is(scan, c->tokens[0], "class"));
        if (!forward && !is_attribute(c))
            scan_define(scan, c->tokens[pointer >= 0 ? pointer : name], WHIT_SYMBOL_VARIABLE, parent);
    }
    for (unsigned i = 0; i < c->n_tokens; i++)
        if (is_name(c, c->tokens[i])) scan_mention(scan, c->tokens[i], parent, false, false);
    forget(c);
}

static void close_brace(struct c *c)
{
    struct scope closed = *scope(c);
    if (!c->depth) {
        forget(c);
        return;
    }
    uint32_t definition = closed.definition;
    c->depth--;
    if (definition != WHIT_PARSE_NONE && definition != inside(c))
        c->scan->parse->definitions[definition].end_line = c->scan->line;
    if (closed.kind != LIST) forget(c);
}

void scan_c(struct scan *scan)
{
    struct c c = {.scan = scan};
    c.scopes[0] = (struct scope){CONTAINER, WHIT_PARSE_NONE};
    bool typedefs[DEPTH_MAX] = {false}; /* for each depth: whether the braces belong to a typedef */
    for (struct token token; (token = next(scan, false)).kind;) {
        enum scope_kind kind = scope(&c)->kind;
        if (token.kind == '#') {
            directive(&c);
            continue;
        }
        bool declares = kind == CONTAINER && !c.in_value;
        if (token.kind == '{') {
            bool is_typedef = declares && has_word(&c, "typedef");
            if (kind == CONTAINER) {
                open_brace(&c);
            } else {
                /* In a body, a brace opens a local type or a block. */
                bool is_enum, is_type, is_space;
                int name = type_name(&c, &is_enum, &is_type, &is_space);
                if (kind == BODY && is_type && name >= 0 && !c.parens && function_name(&c) < 0 &&
                    name + 1 == (int)c.n_tokens) {
                    uint32_t definition = scan_define(scan, c.tokens[name], WHIT_SYMBOL_TYPE, inside(&c));
                    open_scope(&c, is_enum ? ENUM : LIST, inside(&c));
                    if (definition != WHIT_PARSE_NONE) scan->parse->definitions[definition].end_line = token.line;
                } else {
                    open_scope(&c, kind == BODY ? BODY : kind, inside(&c));
                }
                if (kind != LIST) forget(&c);
            }
            typedefs[c.depth] = is_typedef;
        } else if (token.kind == '}') {
            bool was_typedef = typedefs[c.depth];
            struct scope closed = *scope(&c);
            close_brace(&c);
            bool is_type = closed.kind != LIST && (was_typedef || closed.members);
            /* After a type's body, one token stands for the type before the names that follow: 'T' for a typedef, 'N'
             * for a named type, 'S' for one without a name. */
            char type = 'S';
            if (was_typedef)
                type = 'T';
            else if (closed.definition != inside(&c))
                type = 'N';
            if (scope(&c)->kind == CONTAINER && is_type && c.n_tokens < TOKENS_MAX)
                c.tokens[c.n_tokens++] = (struct token){0, 0, token.line, type};
        } else if (token.kind == ';' && c.parens <= 0) {
            bool of_type = c.n_tokens && c.tokens[0].kind == 'T';
            if (kind == CONTAINER) end_declaration(&c, of_type);
            /* In a list within a value, a ';' is inside a lambda and does not end the declaration. */
            if (kind != LIST || !c.in_value) forget(&c);
        } else {
            if (declares && scan_is(scan, token, "template")) {
                skip_template(&c);
                if (scan_is(scan, peek(scan), "requires")) {
                    next(scan, false);
                    skip_constraint(&c);
                }
                continue;
            }
            if (declares && scan_is(scan, token, "requires") && follows_parameters(&c)) {
                skip_constraint(&c);
                continue;
            }
            if (declares && token.kind == '[' && byte_at(scan, scan->at) == '[') { /* "[[" begins an attribute */
                scan->at--;
                if (skip_brackets(&c, '[', ']', "{};#")) continue;
                scan->at++;
            }
            if (declares && scan_is(scan, token, "operator")) token = read_operator(scan, token);
            if (token.kind == '(') c.parens++;
            if (token.kind == ')') c.parens--;
            if (token.kind == '=' && !c.parens && kind == CONTAINER) c.in_value = true;
            bool word = is_name(&c, token);
            bool in_value = kind == ENUM && c.n_tokens > 0; /* the enumerator's name was read, its value follows */
            if (kind == ENUM && word && !in_value) scan_define(scan, token, WHIT_SYMBOL_VARIABLE, inside(&c));
            if (kind == ENUM) c.n_tokens = token.kind == ',' && c.parens <= 0 ? 0 : 1;
            if (word && (kind == BODY || kind == LIST || c.in_value || in_value)) {
                uint32_t behind = scan->at;
                while (behind < scan->n && isspace((uint8_t)scan->text[behind])) behind++;
                scan_mention(scan, token, inside(&c), byte_at(scan, behind) == '(', false);
            }
            if (kind == ENUM) continue;
            if (c.n_tokens < TOKENS_MAX) c.tokens[c.n_tokens++] = token;
            /* Labels and "public:" end here; they are not part of the next declaration. */
            if (token.kind == ':' && kind == CONTAINER && c.n_tokens == 2) forget(&c);
        }
    }
}
