/* SPDX-License-Identifier: MIT
 * Parses statements and whole templates. */
#include "template/parser.h"

static whit_status parse_body(whit_parser *p, const char *const *ends, whit_node **body);

/* Parses the end of a tag, and a body up to one of the tags `ends` (array with a final NULL). The current token is then
 * that tag's name. */
static whit_status parse_statements(whit_parser *p, const char *const *ends, whit_node **body)
{
    whit_parser_skip(p, WHIT_LEXEME_COLON);
    WHIT_TRY(whit_parser_expect(p, WHIT_LEXEME_BLOCK_END));
    WHIT_TRY(parse_body(p, ends, body));
    if (p->token->type == WHIT_LEXEME_END)
        return whit_parser_fail(p, "unexpected end of template: '%s' is missing", ends[0]);
    return WHIT_OK;
}

static whit_status parse_until(whit_parser *p, const char *end, whit_node **body)
{
    const char *const ends[] = {end, NULL};
    WHIT_TRY(parse_statements(p, ends, body));
    p->token++;
    return WHIT_OK;
}

/* Parses the body of a macro, call or block up to `end`. It is a separate function in Jinja's compiled template: break
 * and continue in it cannot refer to loops around it. */
static whit_status parse_function_body(whit_parser *p, const char *end, whit_node **body)
{
    size_t loops = p->loop_depth, unknown = p->unknown.n;
    p->loop_depth = 0;
    WHIT_TRY(parse_until(p, end, body));
    p->loop_depth = loops;
    return whit_parser_harden(p, unknown);
}

static whit_status parse_for(whit_parser *p, whit_node *node)
{
    static const char *const ends[] = {"endfor", "else", NULL};
    node->kind = WHIT_NODE_FOR;
    WHIT_TRY(whit_parser_target(p, "in", false, &node->a));
    if (node->a->kind == WHIT_NODE_NAME && whit_text_is(node->a->text, "loop"))
        return whit_parser_fail(p, "cannot assign to the special loop variable");
    if (!whit_parser_skip_name(p, "in")) return whit_parser_unexpected(p, "'in'");
    WHIT_TRY(whit_parser_tuple(p, false, "recursive", &node->b));
    size_t unknown = p->unknown.n;
    if (whit_parser_skip_name(p, "if")) WHIT_TRY(whit_parser_expression(p, true, &node->c));
    node->flag = whit_parser_skip_name(p, "recursive");
    p->loop_depth++;
    WHIT_TRY(parse_statements(p, ends, &node->d));
    p->loop_depth--;
    if (whit_parser_skip_name(p, "else"))
        WHIT_TRY(parse_until(p, "endfor", &node->e));
    else
        p->token++;
    return whit_parser_harden(p, unknown);
}

/* Parses an if statement. An elif becomes an IF node, which is the else branch of the preceding one. */
static whit_status parse_if(whit_parser *p, whit_node *node)
{
    static const char *const ends[] = {"endif", "elif", "else", NULL};
    size_t unknown = p->unknown.n;
    for (;;) {
        node->kind = WHIT_NODE_IF;
        WHIT_TRY(whit_parser_tuple(p, false, NULL, &node->a));
        WHIT_TRY(parse_statements(p, ends, &node->b));
        if (!whit_parser_skip_name(p, "elif")) break;
        WHIT_TRY(whit_parser_node(p, WHIT_NODE_IF, &node->c));
        node = node->c;
    }
    if (whit_parser_skip_name(p, "else"))
        WHIT_TRY(parse_until(p, "endif", &node->c));
    else
        p->token++;
    whit_parser_soften(p, unknown);
    return WHIT_OK;
}

static whit_status parse_captured_filters(whit_parser *p, bool at_name, whit_node **node)
{
    whit_node *captured;
    if (!at_name && p->token->type != WHIT_LEXEME_PIPE) return WHIT_OK;
    WHIT_TRY(whit_parser_node(p, WHIT_NODE_CAPTURED, &captured));
    return whit_parser_filters(p, captured, at_name, node);
}

static whit_status parse_set(whit_parser *p, whit_node *node)
{
    node->kind = WHIT_NODE_SET;
    WHIT_TRY(whit_parser_target(p, NULL, true, &node->a));
    if (whit_parser_skip(p, WHIT_LEXEME_ASSIGN)) return whit_parser_tuple(p, true, NULL, &node->b);
    node->kind = WHIT_NODE_SET_BLOCK;
    WHIT_TRY(parse_captured_filters(p, false, &node->b));
    return parse_until(p, "endset", &node->d);
}

static whit_status parse_with(whit_parser *p, whit_node *node)
{
    whit_node_list list = {0};
    node->kind = WHIT_NODE_WITH;
    while (p->token->type != WHIT_LEXEME_BLOCK_END) {
        whit_node *target, *value;
        if (list.n) WHIT_TRY(whit_parser_expect(p, WHIT_LEXEME_COMMA));
        WHIT_TRY(whit_parser_target(p, NULL, false, &target));
        WHIT_TRY(whit_parser_expect(p, WHIT_LEXEME_ASSIGN));
        WHIT_TRY(whit_parser_expression(p, true, &value));
        WHIT_TRY(whit_parser_append(p, &list, target));
        WHIT_TRY(whit_parser_append(p, &list, value));
    }
    node->items = list.items;
    node->n_items = list.n;
    size_t unknown = p->unknown.n;
    WHIT_TRY(parse_until(p, "endwith", &node->d));
    return whit_parser_harden(p, unknown);
}

static whit_status parse_signature(whit_parser *p, whit_signature *macro)
{
    size_t capacity = 0;
    WHIT_TRY(whit_parser_expect(p, WHIT_LEXEME_LPAREN));
    while (p->token->type != WHIT_LEXEME_RPAREN) {
        size_t n = macro->n_parameters;
        if (n) WHIT_TRY(whit_parser_expect(p, WHIT_LEXEME_COMMA));
        if (n == capacity) {
            size_t larger = capacity ? capacity * 2 : 4;
            macro->parameters =
                whit_datum_pool_grow(p->pool, macro->parameters, n * sizeof(void *), larger * sizeof(void *));
            macro->defaults =
                whit_datum_pool_grow(p->pool, macro->defaults, n * sizeof(void *), larger * sizeof(void *));
            if (!macro->parameters || !macro->defaults)
                return whit_fail_memory(p->error, "a macro", larger * sizeof(void *));
            capacity = larger;
        }
        WHIT_TRY(whit_parser_target_name(p, &macro->parameters[n]));
        for (size_t i = 0; i < n; i++)
            if (macro->parameters[i] == macro->parameters[n]) return whit_parser_fail(p, "a parameter is repeated");
        macro->defaults[n] = NULL;
        macro->n_parameters++;
        if (whit_parser_skip(p, WHIT_LEXEME_ASSIGN))
            WHIT_TRY(whit_parser_expression(p, true, &macro->defaults[n]));
        else if (n && macro->defaults[n - 1])
            return whit_parser_fail(p, "non-default argument follows default argument");
    }
    return whit_parser_expect(p, WHIT_LEXEME_RPAREN);
}

/* Parses {% macro name(...) %} or {% call(...) name() %}. Whether the body reads caller, varargs or kwargs decides
 * which additional arguments are accepted. */
static whit_status parse_macro(whit_parser *p, whit_node *node, bool is_call)
{
    whit_signature *macro = whit_datum_pool_zalloc(p->pool, 1, sizeof *macro);
    if (!macro) return whit_fail_memory(p->error, "a macro", sizeof *macro);
    bool outer[] = {p->uses_caller, p->uses_varargs, p->uses_kwargs};
    node->kind = is_call ? WHIT_NODE_CALL_BLOCK : WHIT_NODE_MACRO;
    if (!is_call) WHIT_TRY(whit_parser_target_name(p, &macro->name));
    node->text = macro->name;
    p->uses_caller = p->uses_varargs = p->uses_kwargs = false;
    if (!is_call || p->token->type == WHIT_LEXEME_LPAREN) WHIT_TRY(parse_signature(p, macro));
    if (is_call) {
        WHIT_TRY(whit_parser_expression(p, true, &node->a));
        if (node->a->kind != WHIT_NODE_CALL) return whit_parser_fail(p, "expected a call");
    }
    WHIT_TRY(parse_function_body(p, is_call ? "endcall" : "endmacro", &node->d));
    macro->uses_caller = p->uses_caller;
    macro->uses_varargs = p->uses_varargs;
    macro->uses_kwargs = p->uses_kwargs;
    p->uses_caller |= outer[0];
    p->uses_varargs |= outer[1];
    p->uses_kwargs |= outer[2];
    node->macro = macro;
    return WHIT_OK;
}

static whit_status parse_block(whit_parser *p, whit_node *node)
{
    whit_template *t = p->template;
    node->kind = WHIT_NODE_BLOCK;
    WHIT_TRY(whit_parser_take_name(p, &node->text));
    node->flag = whit_parser_skip_name(p, "scoped");
    whit_parser_skip_name(p, "required");
    WHIT_TRY(parse_function_body(p, "endblock", &node->d));
    if (p->token->type == WHIT_LEXEME_NAME && whit_text_equal(p->token->value.text, node->text)) p->token++;
    for (size_t i = 0; i < t->n_blocks; i++)
        if (t->blocks[i].name == node->text) return whit_parser_fail(p, "this block is defined twice");
    if (t->n_blocks == p->block_capacity) {
        size_t larger = p->block_capacity ? p->block_capacity * 2 : 4;
        t->blocks =
            whit_datum_pool_grow(p->pool, t->blocks, t->n_blocks * sizeof *t->blocks, larger * sizeof *t->blocks);
        if (!t->blocks) return whit_fail_memory(p->error, "blocks", larger * sizeof *t->blocks);
        p->block_capacity = larger;
    }
    t->blocks[t->n_blocks++] = (whit_block){node->text, node->d};
    return WHIT_OK;
}

static whit_status parse_print(whit_parser *p, whit_node *node)
{
    whit_node_list list = {0};
    node->kind = WHIT_NODE_PRINT;
    while (p->token->type != WHIT_LEXEME_BLOCK_END) {
        whit_node *item;
        if (list.n) WHIT_TRY(whit_parser_expect(p, WHIT_LEXEME_COMMA));
        WHIT_TRY(whit_parser_expression(p, true, &item));
        WHIT_TRY(whit_parser_append(p, &list, item));
    }
    node->items = list.items;
    node->n_items = list.n;
    return WHIT_OK;
}

/* Skips a tag that would load another template, which is not supported. Executing it raises an error. */
static whit_status parse_no_loader(whit_parser *p, whit_node *node)
{
    node->kind = WHIT_NODE_NO_LOADER;
    while (p->token->type != WHIT_LEXEME_BLOCK_END && p->token->type != WHIT_LEXEME_END) p->token++;
    return WHIT_OK;
}

/* Parses a tag according to its name. */
static whit_status parse_tag(whit_parser *p, const whit_text *tag, whit_node *node)
{
    if (whit_text_is(tag, "for")) return parse_for(p, node);
    if (whit_text_is(tag, "if")) return parse_if(p, node);
    if (whit_text_is(tag, "set")) return parse_set(p, node);
    if (whit_text_is(tag, "macro")) return parse_macro(p, node, false);
    if (whit_text_is(tag, "call")) return parse_macro(p, node, true);
    if (whit_text_is(tag, "with")) return parse_with(p, node);
    if (whit_text_is(tag, "block")) return parse_block(p, node);
    if (whit_text_is(tag, "print")) return parse_print(p, node);
    if (whit_text_is(tag, "filter")) {
        node->kind = WHIT_NODE_FILTER_BLOCK;
        WHIT_TRY(parse_captured_filters(p, true, &node->b));
        return parse_until(p, "endfilter", &node->d);
    }
    if (whit_text_is(tag, "generation")) {
        node->kind = WHIT_NODE_SCOPE;
        return parse_function_body(p, "endgeneration", &node->d);
    }
    if (whit_text_is(tag, "autoescape")) {
        node->kind = WHIT_NODE_AUTOESCAPE;
        WHIT_TRY(whit_parser_expression(p, true, &node->a));
        return parse_until(p, "endautoescape", &node->d);
    }
    if (whit_text_is(tag, "break") || whit_text_is(tag, "continue")) {
        node->kind = whit_text_is(tag, "break") ? WHIT_NODE_BREAK : WHIT_NODE_CONTINUE;
        if (!p->loop_depth)
            return whit_parser_fail(p, "'%s' is outside a loop", node->kind == WHIT_NODE_BREAK ? "break" : "continue");
        return WHIT_OK;
    }
    if (whit_text_is(tag, "include") || whit_text_is(tag, "import") || whit_text_is(tag, "extends") ||
        whit_text_is(tag, "from"))
        return parse_no_loader(p, node);
    p->token--;
    return whit_parser_fail(p, "unknown tag '%.*s'", (int)tag->n_bytes, tag->bytes);
}

static whit_status parse_statement(whit_parser *p, whit_node_list *list)
{
    whit_node *node;
    WHIT_TRY(whit_parser_enter(p));
    WHIT_TRY(whit_parser_node(p, WHIT_NODE_BODY, &node));
    if (p->token->type == WHIT_LEXEME_DATA) {
        node->kind = WHIT_NODE_DATA;
        node->text = p->token->value.text;
        p->token++;
    } else if (whit_parser_skip(p, WHIT_LEXEME_PRINT_BEGIN)) {
        whit_node *value;
        whit_node_list values = {0};
        node->kind = WHIT_NODE_PRINT;
        WHIT_TRY(whit_parser_tuple(p, true, NULL, &value));
        WHIT_TRY(whit_parser_append(p, &values, value));
        node->items = values.items;
        node->n_items = 1;
        WHIT_TRY(whit_parser_expect(p, WHIT_LEXEME_PRINT_END));
    } else {
        WHIT_TRY(whit_parser_expect(p, WHIT_LEXEME_BLOCK_BEGIN));
        node->offset = p->token->offset;
        const whit_text *tag;
        WHIT_TRY(whit_parser_take_name(p, &tag));
        WHIT_TRY(parse_tag(p, tag, node));
        WHIT_TRY(whit_parser_expect(p, WHIT_LEXEME_BLOCK_END));
    }
    p->depth--;
    return whit_parser_append(p, list, node);
}

static bool at_end_tag(const whit_parser *p, const char *const *ends)
{
    if (!ends || p->token->type != WHIT_LEXEME_BLOCK_BEGIN || p->token[1].type != WHIT_LEXEME_NAME) return false;
    for (; *ends; ends++)
        if (whit_text_is(p->token[1].value.text, *ends)) return true;
    return false;
}

/* Parses statements up to one of the tags `ends`. The current token is then that tag's name. */
static whit_status parse_body(whit_parser *p, const char *const *ends, whit_node **body)
{
    whit_node_list list = {0};
    WHIT_TRY(whit_parser_node(p, WHIT_NODE_BODY, body));
    while (p->token->type != WHIT_LEXEME_END) {
        if (at_end_tag(p, ends)) {
            p->token++;
            break;
        }
        WHIT_TRY(parse_statement(p, &list));
    }
    (*body)->items = list.items;
    (*body)->n_items = list.n;
    return WHIT_OK;
}

whit_status whit_template_parse(whit_template *template, size_t *error_offset, whit_error *error)
{
    whit_lexemes tokens;
    WHIT_TRY(whit_lexer_read(&template->pool, template->source, template->n_bytes, &tokens, error_offset, error));
    whit_parser p = {.pool = &template->pool, .token = tokens.items, .template = template, .error = error};
    if (!whit_datum_dict(p.pool, &p.names)) return whit_fail_memory(error, "the template", 0);
    whit_status status = parse_body(&p, NULL, &template->body);
    if (status == WHIT_OK) status = whit_parser_harden(&p, 0);
    *error_offset = p.has_error_offset ? p.error_offset : p.token->offset;
    return status;
}
