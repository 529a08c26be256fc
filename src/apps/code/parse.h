/* SPDX-License-Identifier: MIT
 * Finds the definitions and mentions in a source file by its tokens alone: every file is accepted, and knowledge from
 * other files (macros, types) is not used. */
#ifndef WHIT_CODE_PARSE_H
#define WHIT_CODE_PARSE_H

#include "base/mem.h"

typedef enum whit_symbol_kind {
    WHIT_SYMBOL_FUNCTION = 1,
    WHIT_SYMBOL_TYPE, /* struct, class, enum, typedef, trait and others */
    WHIT_SYMBOL_MACRO,
    WHIT_SYMBOL_VARIABLE, /* variable outside functions */
    WHIT_N_SYMBOL_KINDS,
} whit_symbol_kind;

#define WHIT_PARSE_NONE UINT32_MAX

typedef struct whit_parse_definition {
    uint32_t name, n_name;   /* name: offset of the name in the text; n_name: its length; both in bytes */
    uint32_t line, end_line; /* first and last line, counted from 1 */
    uint32_t parent;         /* number of the definition that contains this one, or WHIT_PARSE_NONE */
    whit_symbol_kind kind;
    bool is_local; /* only its own file can refer to it */
} whit_parse_definition;

typedef struct whit_parse_mention {
    uint32_t name, n_name, line;
    uint32_t inside; /* number of the definition that contains the mention, or WHIT_PARSE_NONE */
    bool calls, imports;
    uint32_t n_dots; /* for imports: number of dots to put before the name; in the text they are elsewhere ("from ..
                      * import name") */
} whit_parse_mention;

typedef struct whit_parse {
    whit_parse_definition *definitions;
    whit_parse_mention *mentions;
    size_t n_definitions, n_mentions, definitions_room, mentions_room;
    bool failed; /* memory ran out, and the lists are incomplete */
} whit_parse;

typedef enum whit_code_language {
    WHIT_CODE_NONE,
    WHIT_CODE_C,
    WHIT_CODE_PYTHON,
    WHIT_CODE_SCRIPT,
    WHIT_CODE_OTHER
} whit_code_language;

/* Returns the language of a file by the suffix of its name; WHIT_CODE_NONE if the parser does not know the suffix. */
whit_code_language whit_code_language_of(const char *path);
/* Parses a text of at most 64 MiB and replaces the lists of `parse`, which may be reused for any number of files. For a
 * larger text, or WHIT_CODE_NONE, the lists become empty. */
void whit_parse_text(whit_parse *parse, whit_code_language language, const char *text, size_t n);
void whit_parse_free(whit_parse *parse);

#endif
