/* SPDX-License-Identifier: MIT */
#include "code/parse.h"

#include "code/scan.h"

#include <ctype.h>
#include <stdlib.h>

#define TEXT_BYTES (64u << 20)

whit_code_language whit_code_language_of(const char *path)
{
    static const char *const c[] = {"c", "h", "cc", "cpp", "cxx", "hh", "hpp", "hxx", "inc", "cu"};
    /* languages whose comments differ from those of C */
    static const char *const scripts[] = {"sh", "bash", "rb", "lua"};
    static const char *const others[] = {"js",   "mjs", "jsx", "ts",    "tsx",   "rs", "go",
                                         "java", "kt",  "zig", "swift", "scala", "cs", "php"};
    const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
    if (!dot) return WHIT_CODE_NONE;
    dot++;
    for (size_t i = 0; i < sizeof c / sizeof *c; i++)
        if (!strcmp(dot, c[i])) return WHIT_CODE_C;
    if (!strcmp(dot, "py") || !strcmp(dot, "pyi")) return WHIT_CODE_PYTHON;
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
        if (!strcmp(dot, scripts[i])) return WHIT_CODE_SCRIPT;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (!strcmp(dot, others[i])) return WHIT_CODE_OTHER;
    return WHIT_CODE_NONE;
}

void whit_parse_free(whit_parse *parse)
{
    free(parse->definitions);
    free(parse->mentions);
    *parse = (whit_parse){0};
}

static bool grow_array(void *array, size_t *room, size_t wanted, size_t elem_bytes)
{
    if (wanted <= *room) return true;
    size_t next = *room ? *room * 2 : 256;
    void *grown = realloc(*(void **)array, next * elem_bytes);
    if (!grown) return false;
    *(void **)array = grown;
    *room = next;
    return true;
}

uint32_t scan_define(struct scan *scan, struct token name, whit_symbol_kind kind, uint32_t parent)
{
    whit_parse *parse = scan->parse;
    if (!grow_array(&parse->definitions, &parse->definitions_room, parse->n_definitions + 1,
                    sizeof *parse->definitions)) {
        parse->failed = true;
        return WHIT_PARSE_NONE;
    }
    parse->definitions[parse->n_definitions] =
        (whit_parse_definition){name.begin, name.n, name.line, name.line, parent, kind, false};
    return (uint32_t)parse->n_definitions++;
}

void scan_mention(struct scan *scan, struct token name, uint32_t inside, bool calls, bool imports)
{
    whit_parse *parse = scan->parse;
    if (!name.n) return;
    if (!grow_array(&parse->mentions, &parse->mentions_room, parse->n_mentions + 1, sizeof *parse->mentions)) {
        parse->failed = true;
        return;
    }
    parse->mentions[parse->n_mentions++] =
        (whit_parse_mention){name.begin, name.n, name.line, inside, calls, imports, 0};
}

bool scan_is(const struct scan *scan, struct token token, const char *word)
{
    return token.n == strlen(word) && !memcmp(scan->text + token.begin, word, token.n);
}

bool scan_is_one_of(const struct scan *scan, struct token token, const char *const *words)
{
    for (; *words; words++)
        if (scan_is(scan, token, *words)) return true;
    return false;
}

void whit_parse_text(whit_parse *parse, whit_code_language language, const char *text, size_t n)
{
    parse->n_definitions = parse->n_mentions = 0;
    if (n > TEXT_BYTES || language == WHIT_CODE_NONE) return;
    struct scan scan = {.parse = parse, .text = text, .n = (uint32_t)n, .line = 1, .at_line_begin = true};
    scan.has_block_comments = language == WHIT_CODE_OTHER;
    switch (language) {
    case WHIT_CODE_C: scan_c(&scan); break;
    case WHIT_CODE_PYTHON: scan_python(&scan); break;
    default: scan_other(&scan); break;
    }
}
