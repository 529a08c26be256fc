/* SPDX-License-Identifier: MIT
 * Declares the common part of the parsers of expressions and of statements. Recursion is bounded by `depth`. */
#ifndef WHIT_TEMPLATE_PARSER_H
#define WHIT_TEMPLATE_PARSER_H

#include "template/ast.h"
#include "template/lexer.h"

enum { WHIT_PARSER_MAX_DEPTH = 150 };

typedef struct whit_node_list {
    whit_node **items;
    size_t n, capacity;
} whit_node_list;

typedef struct whit_parser {
    whit_datum_pool *pool;
    const whit_lexeme *token; /* the current token; the last one is WHIT_LEXEME_END */
    whit_datum names;         /* dict in which equal names are one text object */
    whit_node_list unknown;   /* filters and tests that do not exist, not yet judged */
    size_t loop_depth;
    uint32_t depth;
    bool uses_caller, uses_varargs, uses_kwargs; /* uses in the macro being parsed */
    whit_template *template;
    size_t block_capacity;
    whit_error *error;
    size_t error_offset;
    bool has_error_offset;
} whit_parser;

/* Parses an expression, which may be "a if b else c" if `with_choice`. */
whit_status whit_parser_expression(whit_parser *p, bool with_choice, whit_node **node);
/* Parses one expression or a tuple without brackets, which also ends at `end_name` (NULL: no such name). */
whit_status whit_parser_tuple(whit_parser *p, bool with_choice, const char *end_name, whit_node **node);
/* Parses a target of assignment: name, tuple of names or, where allowed, namespace.member. */
whit_status whit_parser_target(whit_parser *p, const char *end_name, bool with_member, whit_node **node);
whit_status whit_parser_target_name(whit_parser *p, const whit_text **name);
/* Parses a chain of filters on `subject`; the current token is its first name if `at_name`, else a '|'. */
whit_status whit_parser_filters(whit_parser *p, whit_node *subject, bool at_name, whit_node **node);

/* Both parsers use the helpers below. */
whit_status whit_parser_fail(whit_parser *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
whit_status whit_parser_unexpected(whit_parser *p, const char *wanted);
whit_status whit_parser_expect(whit_parser *p, whit_lexeme_type type);
bool whit_parser_skip(whit_parser *p, whit_lexeme_type type);
bool whit_parser_skip_name(whit_parser *p, const char *name);
whit_status whit_parser_take_name(whit_parser *p, const whit_text **name); /* expects a name and interns it */
whit_status whit_parser_node(whit_parser *p, whit_node_kind kind, whit_node **node);
whit_status whit_parser_append(whit_parser *p, whit_node_list *list, whit_node *node);
whit_status whit_parser_enter(whit_parser *p);
/* Filters unknown since `mark` may stay unknown because they are in a condition or branch (soften), or become errors
 * now (harden). */
void whit_parser_soften(whit_parser *p, size_t mark);
whit_status whit_parser_harden(whit_parser *p, size_t mark);

#endif
