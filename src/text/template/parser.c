/* SPDX-License-Identifier: MIT
 * Parses expressions with Jinja's precedence, from the weakest: or; and; not; comparisons; + -; ~; * / // %; **; signs;
 * then attributes, items and calls; and filters and tests, which bind tightest. */
#include "template/parser.h"

#include <stdarg.h>
#include <stdio.h>

#include "template/builtin.h"
#include "template/number.h"

/* ---- errors, tokens and nodes ----------------------------------------------------------------- */

whit_status whit_parser_fail(whit_parser *p, const char *format, ...)
{
    char line[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (!p->has_error_offset) p->error_offset = p->token->offset;
    p->has_error_offset = true;
    return whit_fail(p->error, WHIT_ERROR_FORMAT, "%s", line);
}

static whit_status no_memory(whit_parser *p)
{
    return whit_fail_memory(p->error, "the template", p->pool->used_bytes);
}

whit_status whit_parser_unexpected(whit_parser *p, const char *wanted)
{
    const whit_lexeme *t = p->token;
    if (t->type == WHIT_LEXEME_NAME)
        return whit_parser_fail(p, "expected %s, got '%.*s'", wanted, (int)t->value.text->n_bytes,
                                t->value.text->bytes);
    return whit_parser_fail(p, "expected %s, got '%s'", wanted, whit_lexeme_name(t->type));
}

whit_status whit_parser_expect(whit_parser *p, whit_lexeme_type type)
{
    if (p->token->type != type) return whit_parser_unexpected(p, whit_lexeme_name(type));
    p->token++;
    return WHIT_OK;
}

static bool parser_at_name(const whit_parser *p, const char *name)
{
    return p->token->type == WHIT_LEXEME_NAME && whit_text_is(p->token->value.text, name);
}

bool whit_parser_skip(whit_parser *p, whit_lexeme_type type)
{
    if (p->token->type != type) return false;
    p->token++;
    return true;
}

bool whit_parser_skip_name(whit_parser *p, const char *name)
{
    if (!parser_at_name(p, name)) return false;
    p->token++;
    return true;
}

whit_status whit_parser_take_name(whit_parser *p, const whit_text **name)
{
    if (p->token->type != WHIT_LEXEME_NAME) return whit_parser_unexpected(p, "a name");
    whit_datum text = p->token->value;
    p->token++;
    const whit_datum *known = whit_dict_get(p->names.dict, text);
    if (known) {
        *name = known->text;
        return WHIT_OK;
    }
    *name = text.text;
    return whit_dict_set(p->pool, p->names.dict, text, text) ? WHIT_OK : no_memory(p);
}

whit_status whit_parser_node(whit_parser *p, whit_node_kind kind, whit_node **node)
{
    *node = whit_datum_pool_zalloc(p->pool, 1, sizeof **node);
    if (!*node) return no_memory(p);
    (*node)->kind = (uint8_t)kind;
    (*node)->offset = p->token->offset;
    return WHIT_OK;
}

whit_status whit_parser_append(whit_parser *p, whit_node_list *list, whit_node *node)
{
    if (list->n == list->capacity) {
        size_t capacity = list->capacity ? list->capacity * 2 : 4;
        whit_node **items =
            whit_datum_pool_grow(p->pool, list->items, list->n * sizeof *items, capacity * sizeof *items);
        if (!items) return no_memory(p);
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->n++] = node;
    return WHIT_OK;
}

whit_status whit_parser_enter(whit_parser *p)
{
    if (++p->depth > WHIT_PARSER_MAX_DEPTH) return whit_parser_fail(p, "the template nests too deeply");
    return WHIT_OK;
}

void whit_parser_soften(whit_parser *p, size_t mark)
{
    p->unknown.n = mark;
}

whit_status whit_parser_harden(whit_parser *p, size_t mark)
{
    if (p->unknown.n <= mark) return WHIT_OK;
    const whit_node *node = p->unknown.items[mark];
    p->error_offset = node->offset;
    p->has_error_offset = true;
    return whit_parser_fail(p, "no %s named '%.*s'", node->kind == WHIT_NODE_FILTER ? "filter" : "test",
                            (int)node->text->n_bytes, node->text->bytes);
}

static whit_status take_items(whit_parser *p, whit_node_kind kind, uint32_t offset, const whit_node_list *list,
                              whit_node **node)
{
    WHIT_TRY(whit_parser_node(p, kind, node));
    (*node)->offset = offset;
    (*node)->items = list->items;
    (*node)->n_items = list->n;
    return WHIT_OK;
}

/* ---- primaries ------------------------------------------------------------------------------ */

static whit_status parse_unary(whit_parser *p, bool with_filter, whit_node **node);

static bool at_tuple_end(const whit_parser *p, const char *end_name)
{
    return p->token->type == WHIT_LEXEME_PRINT_END || p->token->type == WHIT_LEXEME_BLOCK_END ||
        p->token->type == WHIT_LEXEME_RPAREN || (end_name && parser_at_name(p, end_name));
}

/* How the elements of a tuple are parsed. */
typedef enum element { EXPRESSION, NO_CHOICE, TARGET, TARGET_OR_MEMBER } element;

static whit_status parse_primary(whit_parser *p, bool with_member, whit_node **node);

static whit_status parse_elements(whit_parser *p, element how, const char *end_name, bool in_brackets, whit_node **node)
{
    whit_node_list list = {0};
    uint32_t offset = p->token->offset;
    bool is_tuple = false;
    for (;;) {
        whit_node *item;
        if (list.n) WHIT_TRY(whit_parser_expect(p, WHIT_LEXEME_COMMA));
        if (at_tuple_end(p, end_name)) break;
        if (how == TARGET || how == TARGET_OR_MEMBER)
            WHIT_TRY(parse_primary(p, how == TARGET_OR_MEMBER, &item));
        else
            WHIT_TRY(whit_parser_expression(p, how == EXPRESSION, &item));
        WHIT_TRY(whit_parser_append(p, &list, item));
        if (p->token->type != WHIT_LEXEME_COMMA) break;
        is_tuple = true;
    }
    if (!is_tuple && list.n) {
        *node = list.items[0];
        return WHIT_OK;
    }
    if (!is_tuple && !in_brackets) return whit_parser_unexpected(p, "an expression");
    return take_items(p, WHIT_NODE_TUPLE, offset, &list, node);
}

whit_status whit_parser_tuple(whit_parser *p, bool with_choice, const char *end_name, whit_node **node)
{
    return parse_elements(p, with_choice ? EXPRESSION : NO_CHOICE, end_name, false, node);
}

static whit_status parse_list(whit_parser *p, whit_node **node)
{
    whit_node_list list = {0};
    uint32_t offset = p->token->offset;
    p->token++;
    while (p->token->type != WHIT_LEXEME_RBRACKET) {
        whit_node *item;
        if (list.n) WHIT_TRY(whit_parser_expect(p, WHIT_LEXEME_COMMA));
        if (p->token->type == WHIT_LEXEME_RBRACKET) break;
        WHIT_TRY(whit_parser_expression(p, true, &item));
        WHIT_TRY(whit_parser_append(p, &list, item));
    }
    WHIT_TRY(whit_parser_expect(p, WHIT_LEXEME_RBRACKET));
    return take_items(p, WHIT_NODE_LIST, offset, &list, node);
}

static whit_status parse_dict(whit_parser *p, whit_node **node)
{
    whit_node_list list = {0};
    uint32_t offset = p->token->offset;
    p->token++;
    while (p->token->type != WHIT_LEXEME_RBRACE) {
        whit_node *key, *value;
        if (list.n) WHIT_TRY(whit_parser_expect(p, WHIT_LEXEME_COMMA));
        if (p->token->type == WHIT_LEXEME_RBRACE) break;
        WHIT_TRY(whit_parser_expression(p, true, &key));
        WHIT_TRY(whit_parser_expect(p, WHIT_LEXEME_COLON));
        WHIT_TRY(whit_parser_expression(p, true, &value));
        WHIT_TRY(whit_parser_append(p, &list, key));
        WHIT_TRY(whit_parser_append(p, &list, value));
    }
    WHIT_TRY(whit_parser_expect(p, WHIT_LEXEME_RBRACE));
    return take_items(p, WHIT_NODE_DICT, offset, &list, node);
}

/* Parses a number, or a string and the string literals that directly follow it. */
static whit_status parse_constant(whit_parser *p, whit_node **node)
{
    WHIT_TRY(whit_parser_node(p, WHIT_NODE_CONSTANT, node));
    (*node)->constant = p->token->value;
    p->token++;
    if ((*node)->constant.kind != WHIT_DATUM_TEXT) return WHIT_OK;
    if (p->token->type != WHIT_LEXEME_CONSTANT || p->token->value.kind != WHIT_DATUM_TEXT) return WHIT_OK;
    whit_builder b = whit_builder_begin(p->pool, p->template->n_bytes);
    whit_builder_text(&b, (*node)->constant.text);
    for (; p->token->type == WHIT_LEXEME_CONSTANT && p->token->value.kind == WHIT_DATUM_TEXT; p->token++)
        whit_builder_text(&b, p->token->value.text);
    (*node)->constant = whit_datum_text(whit_builder_end(&b));
    return (*node)->constant.text ? WHIT_OK : no_memory(p);
}

static bool constant_name(const whit_text *name, whit_datum *value)
{
    if (whit_text_is(name, "true") || whit_text_is(name, "True"))
        *value = whit_datum_bool(true);
    else if (whit_text_is(name, "false") || whit_text_is(name, "False"))
        *value = whit_datum_bool(false);
    else if (whit_text_is(name, "none") || whit_text_is(name, "None"))
        *value = whit_datum_none();
    else
        return false;
    return true;
}

static whit_status parse_name(whit_parser *p, bool with_member, whit_node **node)
{
    const whit_text *name;
    WHIT_TRY(whit_parser_node(p, WHIT_NODE_NAME, node));
    WHIT_TRY(whit_parser_take_name(p, &name));
    (*node)->text = name;
    if (constant_name(name, &(*node)->constant)) {
        (*node)->kind = WHIT_NODE_CONSTANT;
        return WHIT_OK;
    }
    if (with_member && p->token->type == WHIT_LEXEME_DOT) {
        whit_node *member;
        p->token++;
        WHIT_TRY(whit_parser_node(p, WHIT_NODE_MEMBER, &member));
        WHIT_TRY(whit_parser_take_name(p, &member->text));
        member->b = *node;
        *node = member;
        return WHIT_OK;
    }
    p->uses_caller |= whit_text_is(name, "caller");
    p->uses_varargs |= whit_text_is(name, "varargs");
    p->uses_kwargs |= whit_text_is(name, "kwargs");
    return WHIT_OK;
}

static whit_status parse_primary(whit_parser *p, bool with_member, whit_node **node)
{
    WHIT_TRY(whit_parser_enter(p));
    whit_status status;
    switch (p->token->type) {
    case WHIT_LEXEME_NAME: status = parse_name(p, with_member, node); break;
    case WHIT_LEXEME_CONSTANT: status = parse_constant(p, node); break;
    case WHIT_LEXEME_LBRACKET: status = parse_list(p, node); break;
    case WHIT_LEXEME_LBRACE: status = parse_dict(p, node); break;
    case WHIT_LEXEME_LPAREN:
        p->token++;
        status = parse_elements(p, EXPRESSION, NULL, true, node);
        if (status == WHIT_OK) status = whit_parser_expect(p, WHIT_LEXEME_RPAREN);
        break;
    default: status = whit_parser_unexpected(p, "an expression");
    }
    p->depth--;
    return status;
}

/* ---- targets -------------------------------------------------------------------------------- */

static whit_status check_target(whit_parser *p, const whit_node *node)
{
    if (node->kind == WHIT_NODE_NAME || node->kind == WHIT_NODE_MEMBER) return WHIT_OK;
    if (node->kind == WHIT_NODE_TUPLE) {
        for (size_t i = 0; i < node->n_items; i++) WHIT_TRY(check_target(p, node->items[i]));
        return WHIT_OK;
    }
    return whit_parser_fail(p, "cannot assign to this expression");
}

whit_status whit_parser_target(whit_parser *p, const char *end_name, bool with_member, whit_node **node)
{
    bool uses[] = {p->uses_caller, p->uses_varargs, p->uses_kwargs}; /* assigning to a name does not count as a use */
    WHIT_TRY(parse_elements(p, with_member ? TARGET_OR_MEMBER : TARGET, end_name, false, node));
    p->uses_caller = uses[0];
    p->uses_varargs = uses[1];
    p->uses_kwargs = uses[2];
    return check_target(p, *node);
}

whit_status whit_parser_target_name(whit_parser *p, const whit_text **name)
{
    whit_datum ignored;
    WHIT_TRY(whit_parser_take_name(p, name));
    return constant_name(*name, &ignored) ? whit_parser_fail(p, "cannot assign to a constant") : WHIT_OK;
}

/* ---- postfix: attributes, items, calls, filters, tests -------------------------------------- */

static whit_status parse_subscript(whit_parser *p, whit_node **node)
{
    whit_node *n_slice = NULL, *item, **place[3];
    if (p->token->type == WHIT_LEXEME_COLON) {
        WHIT_TRY(whit_parser_node(p, WHIT_NODE_SLICE, &n_slice));
    } else {
        WHIT_TRY(whit_parser_expression(p, true, &item));
        if (p->token->type != WHIT_LEXEME_COLON) {
            *node = item;
            return WHIT_OK;
        }
        WHIT_TRY(whit_parser_node(p, WHIT_NODE_SLICE, &n_slice));
        n_slice->a = item;
    }
    place[1] = &n_slice->b;
    place[2] = &n_slice->c;
    for (int i = 1; i < 3 && whit_parser_skip(p, WHIT_LEXEME_COLON); i++)
        if (p->token->type != WHIT_LEXEME_COLON && p->token->type != WHIT_LEXEME_RBRACKET &&
            p->token->type != WHIT_LEXEME_COMMA)
            WHIT_TRY(whit_parser_expression(p, true, place[i]));
    *node = n_slice;
    return WHIT_OK;
}

static whit_status parse_item(whit_parser *p, whit_node **node)
{
    whit_node *item, *key;
    WHIT_TRY(whit_parser_node(p, WHIT_NODE_ITEM, &item));
    item->a = *node;
    whit_node_list keys = {0};
    p->token++;
    do {
        if (keys.n) WHIT_TRY(whit_parser_expect(p, WHIT_LEXEME_COMMA));
        WHIT_TRY(parse_subscript(p, &key));
        WHIT_TRY(whit_parser_append(p, &keys, key));
    } while (p->token->type != WHIT_LEXEME_RBRACKET);
    p->token++;
    item->b = keys.items[0];
    if (keys.n > 1) WHIT_TRY(take_items(p, WHIT_NODE_TUPLE, item->offset, &keys, &item->b));
    *node = item;
    return WHIT_OK;
}

static whit_status parse_attribute(whit_parser *p, whit_node **node)
{
    whit_node *attribute;
    WHIT_TRY(whit_parser_node(p, WHIT_NODE_ATTRIBUTE, &attribute));
    attribute->a = *node;
    p->token++;
    if (p->token->type == WHIT_LEXEME_CONSTANT && p->token->value.kind == WHIT_DATUM_INT) {
        attribute->kind = WHIT_NODE_ITEM; /* list.0 means list[0] */
        WHIT_TRY(whit_parser_node(p, WHIT_NODE_CONSTANT, &attribute->b));
        attribute->b->constant = p->token->value;
        p->token++;
    } else {
        WHIT_TRY(whit_parser_take_name(p, &attribute->text));
    }
    *node = attribute;
    return WHIT_OK;
}

static whit_status append_named(whit_parser *p, whit_call_arguments *arguments, size_t *capacity, const whit_text *name,
                                whit_node *value)
{
    if (arguments->n_named == *capacity) {
        size_t larger = *capacity ? *capacity * 2 : 4;
        struct whit_named *named =
            whit_datum_pool_grow(p->pool, arguments->named, arguments->n_named * sizeof *named, larger * sizeof *named);
        if (!named) return no_memory(p);
        arguments->named = named;
        *capacity = larger;
    }
    arguments->named[arguments->n_named++] = (struct whit_named){name, value};
    return WHIT_OK;
}

static whit_status parse_arguments(whit_parser *p, whit_call_arguments **result)
{
    whit_call_arguments *arguments = whit_datum_pool_zalloc(p->pool, 1, sizeof *arguments);
    if (!arguments) return no_memory(p);
    whit_node_list positional = {0};
    size_t named_capacity = 0;
    bool any = false;
    WHIT_TRY(whit_parser_expect(p, WHIT_LEXEME_LPAREN));
    while (p->token->type != WHIT_LEXEME_RPAREN) {
        if (any) WHIT_TRY(whit_parser_expect(p, WHIT_LEXEME_COMMA));
        if (any && p->token->type == WHIT_LEXEME_RPAREN) break;
        any = true;
        whit_node *value;
        if (whit_parser_skip(p, WHIT_LEXEME_MUL)) {
            if (arguments->rest || arguments->named_rest) return whit_parser_fail(p, "invalid argument list");
            WHIT_TRY(whit_parser_expression(p, true, &arguments->rest));
        } else if (whit_parser_skip(p, WHIT_LEXEME_POW)) {
            if (arguments->named_rest) return whit_parser_fail(p, "invalid argument list");
            WHIT_TRY(whit_parser_expression(p, true, &arguments->named_rest));
        } else if (p->token->type == WHIT_LEXEME_NAME && p->token[1].type == WHIT_LEXEME_ASSIGN) {
            const whit_text *name;
            if (arguments->named_rest) return whit_parser_fail(p, "invalid argument list");
            WHIT_TRY(whit_parser_take_name(p, &name));
            p->token++;
            for (size_t i = 0; i < arguments->n_named; i++)
                if (arguments->named[i].name == name) return whit_parser_fail(p, "a keyword argument is repeated");
            WHIT_TRY(whit_parser_expression(p, true, &value));
            WHIT_TRY(append_named(p, arguments, &named_capacity, name, value));
        } else {
            if (arguments->rest || arguments->named_rest || arguments->n_named)
                return whit_parser_fail(p, "positional argument after keyword argument");
            WHIT_TRY(whit_parser_expression(p, true, &value));
            WHIT_TRY(whit_parser_append(p, &positional, value));
        }
    }
    arguments->positional = positional.items;
    arguments->n_positional = positional.n;
    *result = arguments;
    return whit_parser_expect(p, WHIT_LEXEME_RPAREN);
}

static whit_status parse_call(whit_parser *p, whit_node **node)
{
    whit_node *call;
    WHIT_TRY(whit_parser_node(p, WHIT_NODE_CALL, &call));
    call->a = *node;
    call->offset = call->a->offset;
    *node = call;
    return parse_arguments(p, &call->arguments);
}

static whit_status parse_postfix(whit_parser *p, whit_node **node)
{
    for (;;) {
        if (p->token->type == WHIT_LEXEME_DOT)
            WHIT_TRY(parse_attribute(p, node));
        else if (p->token->type == WHIT_LEXEME_LBRACKET)
            WHIT_TRY(parse_item(p, node));
        else if (p->token->type == WHIT_LEXEME_LPAREN)
            WHIT_TRY(parse_call(p, node));
        else
            return WHIT_OK;
    }
}

/* Parses a name with optional dots, which names of filters and tests may have. */
static whit_status parse_dotted_name(whit_parser *p, const whit_text **name)
{
    WHIT_TRY(whit_parser_take_name(p, name));
    if (p->token->type != WHIT_LEXEME_DOT) return WHIT_OK;
    whit_builder b = whit_builder_begin(p->pool, p->template->n_bytes);
    whit_builder_text(&b, *name);
    while (whit_parser_skip(p, WHIT_LEXEME_DOT)) {
        WHIT_TRY(whit_parser_take_name(p, name));
        whit_builder_str(&b, ".");
        whit_builder_text(&b, *name);
    }
    *name = whit_builder_end(&b);
    return *name ? WHIT_OK : no_memory(p);
}

whit_status whit_parser_filters(whit_parser *p, whit_node *subject, bool at_name, whit_node **node)
{
    while (at_name || whit_parser_skip(p, WHIT_LEXEME_PIPE)) {
        whit_node *filter;
        at_name = false;
        WHIT_TRY(whit_parser_node(p, WHIT_NODE_FILTER, &filter));
        WHIT_TRY(parse_dotted_name(p, &filter->text));
        filter->a = subject;
        filter->builtin = whit_builtin_filter(filter->text);
        if (!filter->builtin) WHIT_TRY(whit_parser_append(p, &p->unknown, filter));
        if (p->token->type == WHIT_LEXEME_LPAREN) WHIT_TRY(parse_arguments(p, &filter->arguments));
        subject = filter;
    }
    *node = subject;
    return WHIT_OK;
}

/* Returns whether the current token begins an argument of a test that has no parentheses. */
static bool at_test_argument(const whit_parser *p)
{
    switch (p->token->type) {
    case WHIT_LEXEME_NAME: return !parser_at_name(p, "else") && !parser_at_name(p, "or") && !parser_at_name(p, "and");
    case WHIT_LEXEME_CONSTANT:
    case WHIT_LEXEME_LBRACKET:
    case WHIT_LEXEME_LBRACE: return true;
    default: return false;
    }
}

static whit_status parse_test(whit_parser *p, whit_node **node)
{
    whit_node *test;
    p->token++;
    bool negated = whit_parser_skip_name(p, "not");
    WHIT_TRY(whit_parser_node(p, WHIT_NODE_TEST, &test));
    test->flag = negated;
    WHIT_TRY(parse_dotted_name(p, &test->text));
    test->a = *node;
    test->builtin = whit_builtin_test(test->text);
    if (!test->builtin) WHIT_TRY(whit_parser_append(p, &p->unknown, test));
    *node = test;
    if (p->token->type == WHIT_LEXEME_LPAREN) return parse_arguments(p, &test->arguments);
    if (!at_test_argument(p)) return WHIT_OK;
    if (parser_at_name(p, "is")) return whit_parser_fail(p, "tests cannot be chained with is");
    test->arguments = whit_datum_pool_zalloc(p->pool, 1, sizeof *test->arguments);
    if (!test->arguments) return no_memory(p);
    whit_node *argument;
    whit_node_list list = {0};
    WHIT_TRY(parse_primary(p, false, &argument));
    WHIT_TRY(parse_postfix(p, &argument));
    WHIT_TRY(whit_parser_append(p, &list, argument));
    test->arguments->positional = list.items;
    test->arguments->n_positional = 1;
    return WHIT_OK;
}

/* ---- operators ------------------------------------------------------------------------------ */

static whit_status parse_signed(whit_parser *p, bool with_filter, whit_node **node)
{
    uint8_t type = p->token->type;
    if (type == WHIT_LEXEME_SUB || type == WHIT_LEXEME_ADD) {
        WHIT_TRY(whit_parser_node(p, type == WHIT_LEXEME_SUB ? WHIT_NODE_NEGATE : WHIT_NODE_PLUS, node));
        p->token++;
        WHIT_TRY(parse_unary(p, false, &(*node)->a));
    } else {
        WHIT_TRY(parse_primary(p, false, node));
    }
    WHIT_TRY(parse_postfix(p, node));
    while (with_filter) {
        if (p->token->type == WHIT_LEXEME_PIPE)
            WHIT_TRY(whit_parser_filters(p, *node, false, node));
        else if (parser_at_name(p, "is"))
            WHIT_TRY(parse_test(p, node));
        else if (p->token->type == WHIT_LEXEME_LPAREN)
            WHIT_TRY(parse_call(p, node));
        else
            break;
    }
    return WHIT_OK;
}

static whit_status parse_unary(whit_parser *p, bool with_filter, whit_node **node)
{
    WHIT_TRY(whit_parser_enter(p));
    WHIT_TRY(parse_signed(p, with_filter, node));
    p->depth--;
    return WHIT_OK;
}

static whit_status wrap_node(whit_parser *p, whit_node_kind kind, whit_node *a, whit_node **node)
{
    WHIT_TRY(whit_parser_node(p, kind, node));
    (*node)->offset = a->offset;
    (*node)->a = a;
    return WHIT_OK;
}

/* Levels of arithmetic, from the weakest; all are left-associative. */
enum { LEVEL_SUM, LEVEL_CONCAT, LEVEL_PRODUCT, LEVEL_POWER, LEVEL_UNARY };

static int arithmetic_of(const whit_lexeme *token, int level)
{
    switch (token->type) {
    case WHIT_LEXEME_ADD: return level == LEVEL_SUM ? WHIT_ADD : -1;
    case WHIT_LEXEME_SUB: return level == LEVEL_SUM ? WHIT_SUBTRACT : -1;
    case WHIT_LEXEME_MUL: return level == LEVEL_PRODUCT ? WHIT_MULTIPLY : -1;
    case WHIT_LEXEME_DIV: return level == LEVEL_PRODUCT ? WHIT_DIVIDE : -1;
    case WHIT_LEXEME_FLOORDIV: return level == LEVEL_PRODUCT ? WHIT_FLOOR_DIVIDE : -1;
    case WHIT_LEXEME_MOD: return level == LEVEL_PRODUCT ? WHIT_MODULO : -1;
    case WHIT_LEXEME_POW: return level == LEVEL_POWER ? WHIT_POWER : -1;
    default: return -1;
    }
}

static whit_status parse_arithmetic(whit_parser *p, int level, whit_node **node)
{
    if (level == LEVEL_UNARY) return parse_unary(p, true, node);
    WHIT_TRY(parse_arithmetic(p, level + 1, node));
    if (level == LEVEL_CONCAT) {
        if (p->token->type != WHIT_LEXEME_TILDE) return WHIT_OK;
        whit_node_list list = {0};
        whit_node *item = *node;
        WHIT_TRY(whit_parser_append(p, &list, item));
        while (whit_parser_skip(p, WHIT_LEXEME_TILDE)) {
            WHIT_TRY(parse_arithmetic(p, level + 1, &item));
            WHIT_TRY(whit_parser_append(p, &list, item));
        }
        return take_items(p, WHIT_NODE_CONCAT, (*node)->offset, &list, node);
    }
    for (int operation; (operation = arithmetic_of(p->token, level)) >= 0;) {
        whit_node *binary;
        WHIT_TRY(whit_parser_node(p, WHIT_NODE_BINARY, &binary));
        p->token++;
        binary->operation = (uint8_t)operation;
        binary->a = *node;
        WHIT_TRY(parse_arithmetic(p, level + 1, &binary->b));
        *node = binary;
    }
    return WHIT_OK;
}

/* Returns the comparison operator at the current token, and its number of tokens; -1 if the token is not such an
 * operator. */
static int comparison_at(const whit_parser *p, int *n_tokens)
{
    *n_tokens = 1;
    switch (p->token->type) {
    case WHIT_LEXEME_EQ: return WHIT_EQUAL;
    case WHIT_LEXEME_NE: return WHIT_NOT_EQUAL;
    case WHIT_LEXEME_LT: return WHIT_LESS;
    case WHIT_LEXEME_LE: return WHIT_LESS_EQUAL;
    case WHIT_LEXEME_GT: return WHIT_GREATER;
    case WHIT_LEXEME_GE: return WHIT_GREATER_EQUAL;
    case WHIT_LEXEME_NAME:
        if (whit_text_is(p->token->value.text, "in")) return WHIT_IN;
        *n_tokens = 2;
        if (whit_text_is(p->token->value.text, "not") && p->token[1].type == WHIT_LEXEME_NAME &&
            whit_text_is(p->token[1].value.text, "in"))
            return WHIT_NOT_IN;
        return -1;
    default: return -1;
    }
}

static whit_status parse_comparison(whit_parser *p, whit_node **node)
{
    WHIT_TRY(parse_arithmetic(p, LEVEL_SUM, node));
    whit_node_list list = {0};
    uint32_t offset = p->token->offset;
    for (int n, operation; (operation = comparison_at(p, &n)) >= 0;) {
        whit_node *operand;
        WHIT_TRY(whit_parser_node(p, WHIT_NODE_OPERAND, &operand));
        p->token += n;
        operand->operation = (uint8_t)operation;
        WHIT_TRY(parse_arithmetic(p, LEVEL_SUM, &operand->a));
        WHIT_TRY(whit_parser_append(p, &list, operand));
    }
    if (!list.n) return WHIT_OK;
    whit_node *first = *node;
    WHIT_TRY(take_items(p, WHIT_NODE_COMPARE, offset, &list, node));
    (*node)->a = first;
    return WHIT_OK;
}

static whit_status parse_not(whit_parser *p, whit_node **node)
{
    if (!parser_at_name(p, "not")) return parse_comparison(p, node);
    WHIT_TRY(whit_parser_enter(p));
    WHIT_TRY(whit_parser_node(p, WHIT_NODE_NOT, node));
    p->token++;
    WHIT_TRY(parse_not(p, &(*node)->a));
    p->depth--;
    return WHIT_OK;
}

static whit_status parse_and(whit_parser *p, whit_node **node)
{
    WHIT_TRY(parse_not(p, node));
    while (whit_parser_skip_name(p, "and")) {
        WHIT_TRY(wrap_node(p, WHIT_NODE_AND, *node, node));
        WHIT_TRY(parse_not(p, &(*node)->b));
    }
    return WHIT_OK;
}

static whit_status parse_or(whit_parser *p, whit_node **node)
{
    WHIT_TRY(parse_and(p, node));
    while (whit_parser_skip_name(p, "or")) {
        WHIT_TRY(wrap_node(p, WHIT_NODE_OR, *node, node));
        WHIT_TRY(parse_and(p, &(*node)->b));
    }
    return WHIT_OK;
}

whit_status whit_parser_expression(whit_parser *p, bool with_choice, whit_node **node)
{
    size_t unknown = p->unknown.n;
    WHIT_TRY(whit_parser_enter(p));
    WHIT_TRY(parse_or(p, node));
    while (with_choice && whit_parser_skip_name(p, "if")) {
        WHIT_TRY(wrap_node(p, WHIT_NODE_CHOICE, *node, node));
        WHIT_TRY(parse_or(p, &(*node)->b));
        if (whit_parser_skip_name(p, "else")) WHIT_TRY(whit_parser_expression(p, true, &(*node)->c));
        whit_parser_soften(p, unknown);
    }
    p->depth--;
    return WHIT_OK;
}
