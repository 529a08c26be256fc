/* SPDX-License-Identifier: MIT
 * Loads grammars of tree-sitter: NAME.so and NAME.scm, which `make grammars` puts into a folder of the user. Both are
 * loaded when a text of the language is first shown. This header is private to its folder. */
#ifndef WHIT_EDITOR_GRAMMAR_H
#define WHIT_EDITOR_GRAMMAR_H

#include <stdint.h>
#include <tree_sitter/api.h>

#include "editor/screen.h"
#include "editor/text.h"

#define ED_TREE_FUNCTIONS(X)                                                                                           \
    X(ts_parser_new)                                                                                                   \
    X(ts_parser_delete)                                                                                                \
    X(ts_parser_set_language)                                                                                          \
    X(ts_parser_parse)                                                                                                 \
    X(ts_parser_reset)                                                                                                 \
    X(ts_parser_set_timeout_micros)                                                                                    \
    X(ts_tree_copy)                                                                                                    \
    X(ts_tree_delete)                                                                                                  \
    X(ts_tree_edit)                                                                                                    \
    X(ts_tree_root_node)                                                                                               \
    X(ts_node_start_byte)                                                                                              \
    X(ts_node_end_byte)                                                                                                \
    X(ts_query_new)                                                                                                    \
    X(ts_query_delete)                                                                                                 \
    X(ts_query_pattern_count)                                                                                          \
    X(ts_query_capture_count)                                                                                          \
    X(ts_query_capture_name_for_id)                                                                                    \
    X(ts_query_string_value_for_id)                                                                                    \
    X(ts_query_predicates_for_pattern)                                                                                 \
    X(ts_query_cursor_new)                                                                                             \
    X(ts_query_cursor_delete)                                                                                          \
    X(ts_query_cursor_exec)                                                                                            \
    X(ts_query_cursor_set_byte_range)                                                                                  \
    X(ts_query_cursor_set_match_limit)                                                                                 \
    X(ts_query_cursor_next_capture)

struct ed_tree_sitter {
#define ED_MEMBER(name) __typeof__(&name) name;
    ED_TREE_FUNCTIONS(ED_MEMBER)
#undef ED_MEMBER
};

struct ed_grammar;

/* Returns tree-sitter's library, loaded on first use; NULL if it is not installed. */
const struct ed_tree_sitter *ed_tree_sitter(void);
/* Returns the grammar of the language with this name, loaded on first use. Returns NULL if it is absent or unusable; if
 * unusable, the first call writes the reason to `why`, and in all other cases "". */
const struct ed_grammar *ed_grammar_for(const char *language, char *why, size_t why_bytes);

const TSLanguage *ed_grammar_language(const struct ed_grammar *grammar);
const TSQuery *ed_grammar_query(const struct ed_grammar *grammar);
whit_style ed_grammar_style(const struct ed_grammar *grammar, uint32_t capture);
/* Returns whether all predicates of the match's pattern are true. */
bool ed_grammar_holds(const struct ed_grammar *grammar, const whit_text *text, const TSQueryMatch *match);

#endif
