/* SPDX-License-Identifier: MIT
 * Declares what the parsers of expressions and of statements share. `depth` limits their recursion. */
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
    const whit_lexeme *token; /* current token; the last token is WHIT_LEXEME_END */
    whit_datum names;         /* dict of all names, so that equal names are the same whit_text */
    whit_node_list unknown;   /* filters and tests that do not exist and have not been reported yet */
    size_t loop_depth;
    uint32_t depth;
    bool uses_caller, uses_varargs, uses_kwargs; /* whether the macro being parsed uses these names */
    whit_template *template;
    size_t block_capacity;
    whit_error *error;
    size_t error_offset;
    bool has_error_offset;
} whit_parser;

/* Parses an expression. `with_choice`: it may have the form "a if b else c". */
whit_status whit_parser_expression(whit_parser *p, bool with_choice, whit_node **node);
/* Parses an expression, or a tuple without parentheses. A tuple may also end before the name `end_name` (NULL: no such
 * name). */
whit_status whit_parser_tuple(whit_parser *p, bool with_choice, const char *end_name, whit_node **node);
/* Parses the target of an assignment: a name, a tuple of targets or, if `with_member`, namespace.member. */
whit_status whit_parser_target(whit_parser *p, const char *end_name, bool with_member, whit_node **node);
whit_status whit_parser_target_name(whit_parser *p, const whit_text **name);
/* Parses a chain of filters that is applied to `subject`. The current token is the first filter's name if `at_name`,
 * else a '|'. */
whit_status whit_parser_filters(whit_parser *p, whit_node *subject, bool at_name, whit_node **node);

/* The functions below are used by the parsers of expressions (parser.c) and of statements (statements.c). */
whit_status whit_parser_fail(whit_parser *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
whit_status whit_parser_unexpected(whit_parser *p, const char *wanted);
whit_status whit_parser_expect(whit_parser *p, whit_lexeme_type type);
bool whit_parser_skip(whit_parser *p, whit_lexeme_type type);
bool whit_parser_skip_name(whit_parser *p, const char *name);
whit_status whit_parser_take_name(whit_parser *p, const whit_text **name); /* expects a name; equal names become the
                                                                            * same whit_text */
whit_status whit_parser_node(whit_parser *p, whit_node_kind kind, whit_node **node);
whit_status whit_parser_append(whit_parser *p, whit_node_list *list, whit_node *node);
whit_status whit_parser_enter(whit_parser *p);
/* `mark` is an earlier p->unknown.n. soften: unknown filters and tests since then are allowed, because they are in a
 * condition or branch that may not be executed. harden: they are an error. */
void whit_parser_soften(whit_parser *p, size_t mark);
whit_status whit_parser_harden(whit_parser *p, size_t mark);

#endif
