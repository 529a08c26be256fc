/* SPDX-License-Identifier: MIT
 * Parses programs by recursive descent; the depth of nesting is limited. */
#include "lang/core/ast.h"

struct parser {
    lang_source *source;
    lang_arena *arena;
    lang_token token; /* the next token, which is not consumed yet */
    lang_function *functions;
    uint32_t nesting, most_nesting, most_levels; /* nesting: current depth; the two maxima are those of the current
                                                  * function */
    bool in_function;
    uint32_t loops;
};

#define TRY WHIT_TRY

static whit_status advance(struct parser *p)
{
    return lang_next(p->source, &p->token);
}

static bool is(const struct parser *p, const char *text)
{
    return (p->token.kind == TOKEN_MARK || p->token.kind == TOKEN_WORD) && *text == *p->token.text &&
        strlen(text) == p->token.n && memcmp(text, p->token.text, p->token.n) == 0;
}

/* Returns advice to append to an error message, if the mistake is a habit from another language; otherwise "". */
static const char *advice(const struct parser *p, const char *wanted)
{
    static const struct {
        char wanted[16], given[8];
        const char *text;
    } habits[] = {
        {"an expression", "else", "; it must follow the '}' of its 'if' on the same line"},
        {"an expression", "/", "; '#' begins a comment"},
        {"'{'", "=", "; '==' compares"},
        {"')'", ",", "; 'print' takes its values without parentheses"},
        {"'..'", "", "; a loop counts, as in 'for i in 0..10'"},
        {"'in'", "", "; a loop counts, as in 'for i in 0..10'"},
    };
    for (size_t i = 0; i < sizeof habits / sizeof *habits; i++)
        if (strcmp(wanted, habits[i].wanted) == 0 && (!*habits[i].given || is(p, habits[i].given)))
            return habits[i].text;
    return "";
}

static whit_status fail_wanted(struct parser *p, const char *wanted)
{
    const lang_token *t = &p->token;
    const char *instead = advice(p, wanted);
    if (t->kind == TOKEN_END)
        return lang_fail(p->source, t->line, t->column, "%s expected before the end%s", wanted, instead);
    if (t->kind == TOKEN_LINE)
        return lang_fail(p->source, t->line, t->column, "%s expected before the end of the statement%s", wanted,
                         instead);
    return lang_fail(p->source, t->line, t->column, "%s expected, not '%.*s'%s", wanted, (int)(t->n < 40 ? t->n : 40),
                     t->text, instead);
}

static whit_status expect(struct parser *p, const char *text)
{
    char wanted[16] = {'\'', 0};
    if (is(p, text)) return advance(p);
    strcat(strncat(wanted, text, 10), "'");
    return fail_wanted(p, wanted);
}

static whit_status no_memory(struct parser *p)
{
    return lang_fail(p->source, p->token.line, p->token.column, "the program is too large");
}

static whit_status make_node(struct parser *p, lang_kind kind, const lang_token *at, lang_node **node)
{
    *node = lang_arena_take(p->arena, sizeof **node);
    if (!*node) return no_memory(p);
    (*node)->kind = (uint8_t)kind;
    (*node)->line = at->line;
    (*node)->column = at->column;
    return WHIT_OK;
}

static whit_status enter(struct parser *p)
{
    if (++p->nesting > LANG_MAX_NESTING)
        return lang_fail(p->source, p->token.line, p->token.column, "the program is nested more than %d deep",
                         LANG_MAX_NESTING);
    if (p->nesting > p->most_nesting) p->most_nesting = p->nesting;
    return WHIT_OK;
}

static whit_status name(struct parser *p, const char **text)
{
    if (p->token.kind != TOKEN_NAME) return fail_wanted(p, "a name");
    char *copy = lang_arena_take(p->arena, p->token.n + 1);
    if (!copy) return no_memory(p);
    memcpy(copy, p->token.text, p->token.n);
    *text = copy;
    return advance(p);
}

/* Sets a node's number of levels from an operand's number, and refuses too many: functions that walk trees are
 * recursive. Until the check, the number is stored in `slot`. */
static whit_status deepen(struct parser *p, lang_node *node, const lang_node *operand)
{
    if (operand->slot >= node->slot) node->slot = operand->slot + 1;
    if (node->slot > p->most_levels) p->most_levels = node->slot;
    if (node->slot > LANG_MAX_LEVELS)
        return lang_fail(p->source, node->line, node->column, "an expression has more than %d levels", LANG_MAX_LEVELS);
    return WHIT_OK;
}

/* ---- expressions ------------------------------------------------------------------------------ */

static whit_status expression(struct parser *p, lang_node **node);

/* Parses expressions separated by "," up to the mark `end`; they become the operands of `node`. */
static whit_status parse_list(struct parser *p, const char *end, lang_node *node)
{
    lang_node **last = &node->a;
    while (!is(p, end)) {
        TRY(expression(p, last));
        TRY(deepen(p, node, *last));
        last = &(*last)->next;
        if (!is(p, ",")) break;
        TRY(advance(p));
    }
    return expect(p, end);
}

static whit_status primary(struct parser *p, lang_node **node)
{
    lang_token at = p->token;
    if (at.wants_minus)
        return lang_fail(p->source, at.line, at.column,
                         "the largest integer is 9223372036854775807; write '-' or a float");
    if (at.kind == TOKEN_INT || at.kind == TOKEN_FLOAT) {
        TRY(make_node(p, at.kind == TOKEN_INT ? NODE_INT : NODE_FLOAT, &at, node));
        if (at.kind == TOKEN_INT)
            (*node)->i = at.i;
        else
            (*node)->f = at.f;
        return advance(p);
    }
    if (at.kind == TOKEN_TEXT) {
        char *copy = lang_arena_take(p->arena, at.n);
        if (!copy) return no_memory(p);
        memcpy(copy, at.text + 1, at.n - 2);
        TRY(make_node(p, NODE_TEXT, &at, node));
        (*node)->name = copy;
        return advance(p);
    }
    if (at.kind == TOKEN_NAME) {
        TRY(make_node(p, NODE_NAME, &at, node));
        TRY(name(p, &(*node)->name));
        if (!is(p, "(")) return WHIT_OK;
        (*node)->kind = NODE_CALL;
        TRY(advance(p));
        return parse_list(p, ")", *node);
    }
    if (is(p, "(")) {
        TRY(advance(p));
        TRY(expression(p, node));
        return expect(p, ")");
    }
    if (is(p, "[")) {
        TRY(make_node(p, NODE_LIST, &at, node));
        TRY(advance(p));
        return parse_list(p, "]", *node);
    }
    return fail_wanted(p, "an expression");
}

static whit_status postfix(struct parser *p, lang_node **node)
{
    TRY(primary(p, node));
    while (is(p, "[")) {
        lang_node *index;
        TRY(make_node(p, NODE_INDEX, &p->token, &index));
        index->a = *node;
        TRY(advance(p));
        TRY(expression(p, &index->b));
        if (is(p, "..")) {
            index->kind = NODE_SLICE;
            TRY(advance(p));
            TRY(expression(p, &index->c));
        }
        TRY(expect(p, "]"));
        TRY(deepen(p, index, index->a));
        TRY(deepen(p, index, index->b));
        if (index->c) TRY(deepen(p, index, index->c));
        *node = index;
    }
    return WHIT_OK;
}

static whit_status unary(struct parser *p, lang_node **node)
{
    lang_token at = p->token;
    lang_op op = N_OPS;
    if (is(p, "-"))
        op = OP_NEG;
    else if (is(p, "~"))
        op = OP_FLIP;
    else if (is(p, "!") || is(p, "not"))
        op = OP_NOT;
    if (op == N_OPS) return postfix(p, node);
    TRY(enter(p));
    TRY(advance(p));
    if (op == OP_NEG) p->token.wants_minus = false;
    TRY(make_node(p, NODE_UNARY, &at, node));
    (*node)->op = (uint8_t)op;
    TRY(unary(p, &(*node)->a));
    TRY(deepen(p, *node, (*node)->a));
    p->nesting--;
    return WHIT_OK;
}

static const struct {
    char text[4];
    uint8_t level, op; /* lang_op of the operator; N_OPS for `and`, N_OPS + 1 for `or` */
} operators[] = {
    {"or", 1, N_OPS + 1}, {"||", 1, N_OPS + 1}, {"and", 2, N_OPS}, {"&&", 2, N_OPS},  {"==", 3, OP_EQ},
    {"!=", 3, OP_NE},     {"<", 3, OP_LT},      {"<=", 3, OP_LE},  {">", 3, OP_GT},   {">=", 3, OP_GE},
    {"|", 4, OP_OR},      {"^", 5, OP_XOR},     {"&", 6, OP_AND},  {"<<", 7, OP_SHL}, {">>", 7, OP_SHR},
    {"+", 8, OP_ADD},     {"-", 8, OP_SUB},     {"*", 9, OP_MUL},  {"/", 9, OP_DIV},  {"%", 9, OP_MOD},
};

static whit_status binary(struct parser *p, unsigned level, lang_node **node)
{
    TRY(unary(p, node));
    uint32_t length = 0;
    for (;;) {
        size_t k = 0, n = sizeof operators / sizeof *operators;
        while (k < n && !is(p, operators[k].text)) k++;
        if (k == n || operators[k].level < level) return WHIT_OK;
        if (++length > 1000)
            return lang_fail(p->source, p->token.line, p->token.column, "more than 1,000 operators follow each other");
        lang_node *both;
        uint8_t op = operators[k].op;
        lang_kind kind = NODE_BINARY;
        if (op == N_OPS)
            kind = NODE_ALSO;
        else if (op == N_OPS + 1)
            kind = NODE_ELSE;
        TRY(make_node(p, kind, &p->token, &both));
        if (op < N_OPS) both->op = op;
        TRY(advance(p));
        both->a = *node;
        TRY(binary(p, operators[k].level + 1u, &both->b));
        TRY(deepen(p, both, both->a));
        TRY(deepen(p, both, both->b));
        *node = both;
    }
}

static whit_status expression(struct parser *p, lang_node **node)
{
    TRY(enter(p));
    TRY(binary(p, 1, node));
    p->nesting--;
    return WHIT_OK;
}

/* ---- statements ------------------------------------------------------------------------------- */

static whit_status statements(struct parser *p, bool braces, lang_node **first);

static whit_status skip_lines(struct parser *p)
{
    while (p->token.kind == TOKEN_LINE) TRY(advance(p));
    return WHIT_OK;
}

static whit_status block(struct parser *p, lang_node **node)
{
    TRY(make_node(p, NODE_BLOCK, &p->token, node));
    TRY(expect(p, "{"));
    TRY(enter(p));
    TRY(statements(p, true, &(*node)->a));
    p->nesting--;
    return expect(p, "}");
}

static whit_status if_statement(struct parser *p, lang_node **node)
{
    TRY(make_node(p, NODE_IF, &p->token, node));
    TRY(advance(p));
    TRY(expression(p, &(*node)->a));
    TRY(block(p, &(*node)->b));
    if (!is(p, "else")) return WHIT_OK;
    TRY(advance(p));
    if (!is(p, "if")) return block(p, &(*node)->c);
    TRY(enter(p));
    TRY(if_statement(p, &(*node)->c));
    p->nesting--;
    return WHIT_OK;
}

static whit_status for_statement(struct parser *p, lang_node **node)
{
    TRY(make_node(p, NODE_FOR, &p->token, node));
    TRY(advance(p));
    TRY(name(p, &(*node)->name));
    TRY(expect(p, "in"));
    TRY(expression(p, &(*node)->a));
    TRY(expect(p, ".."));
    TRY(expression(p, &(*node)->b));
    p->loops++;
    TRY(block(p, &(*node)->c));
    p->loops--;
    return WHIT_OK;
}

static whit_status function(struct parser *p)
{
    lang_token at = p->token;
    lang_function *f = lang_arena_take(p->arena, sizeof *f);
    if (!f) return no_memory(p);
    if (p->in_function || p->nesting)
        return lang_fail(p->source, at.line, at.column, "a function can only be defined at the outermost level");
    TRY(advance(p));
    at = p->token;
    TRY(name(p, &f->name));
    if (lang_is_builtin(f->name))
        return lang_fail(p->source, at.line, at.column, "'%s' is a built-in function: choose another name", f->name);
    TRY(expect(p, "("));
    lang_node **last = &f->parameters;
    while (!is(p, ")")) {
        TRY(make_node(p, NODE_NAME, &p->token, last));
        TRY(name(p, &(*last)->name));
        for (lang_node *other = f->parameters; other != *last; other = other->next)
            if (strcmp(other->name, (*last)->name) == 0)
                return lang_fail(p->source, (*last)->line, (*last)->column, "'%s' is a parameter already", other->name);
        if (++f->n_parameters > sizeof f->types)
            return lang_fail(p->source, (*last)->line, (*last)->column, "a function has at most %zu parameters",
                             sizeof f->types);
        last = &(*last)->next;
        if (!is(p, ",")) break;
        TRY(advance(p));
    }
    TRY(expect(p, ")"));
    uint32_t loops = p->loops;
    p->in_function = true;
    p->loops = p->most_nesting = p->most_levels = 0;
    TRY(block(p, &f->body));
    p->in_function = false;
    p->loops = loops;
    f->levels = 2 * p->most_nesting + p->most_levels + 4; /* two levels per block (the block and its statement), and
                                                           * four at the ends */
    f->next = p->functions;
    p->functions = f;
    return WHIT_OK;
}

/* Parses NAME = e or NAME[i] = e, also with an operator before '=' (NAME += e), or an expression as a statement. */
static whit_status assignment(struct parser *p, lang_node **node)
{
    static const char *const compound[] = {"+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="};
    static const uint8_t ops[] = {OP_ADD, OP_SUB, OP_MUL, OP_DIV, OP_MOD, OP_AND, OP_OR, OP_XOR, OP_SHL, OP_SHR};
    lang_node *target, *value;
    lang_token at = p->token;
    TRY(expression(p, &target));
    size_t k = 0, n = sizeof ops;
    while (k < n && !is(p, compound[k])) k++;
    if (k == n && !is(p, "=")) {
        TRY(make_node(p, NODE_EXPRESSION, &at, node));
        (*node)->a = target;
        return WHIT_OK;
    }
    bool store = target->kind == NODE_INDEX && target->a->kind == NODE_NAME;
    if (target->kind != NODE_NAME && !store)
        return lang_fail(p->source, p->token.line, p->token.column, "only NAME and NAME[i] can be assigned to");
    at = p->token;
    TRY(advance(p));
    TRY(expression(p, &value));
    if (k < n) {
        lang_node *both;
        TRY(make_node(p, NODE_BINARY, &at, &both));
        both->op = ops[k];
        both->b = value;
        /* The target gets a copy, because the checker annotates each occurrence separately. */
        TRY(make_node(p, target->kind, &(lang_token){.line = target->line, .column = target->column}, &both->a));
        *both->a = *target;
        if (store) {
            if (target->b->kind != NODE_NAME && target->b->kind != NODE_INT)
                return lang_fail(p->source, at.line, at.column, "the index before '%s' must be a name or a number",
                                 compound[k]);
            TRY(make_node(p, NODE_NAME, &at, &both->a->a));
            *both->a->a = *target->a;
            TRY(make_node(p, NODE_NAME, &at, &both->a->b));
            *both->a->b = *target->b;
        }
        value = both;
    }
    TRY(make_node(p, store ? NODE_STORE : NODE_ASSIGN, &(lang_token){.line = target->line, .column = target->column},
                  node));
    (*node)->name = store ? target->a->name : target->name;
    (*node)->a = value;
    if (store) (*node)->b = target->b;
    return WHIT_OK;
}

static whit_status parse_statement(struct parser *p, lang_node **node)
{
    lang_token at = p->token;
    if (is(p, "{")) return block(p, node);
    if (is(p, "if")) return if_statement(p, node);
    if (is(p, "for")) return for_statement(p, node);
    if (is(p, "while")) {
        TRY(make_node(p, NODE_WHILE, &at, node));
        TRY(advance(p));
        TRY(expression(p, &(*node)->a));
        p->loops++;
        TRY(block(p, &(*node)->b));
        p->loops--;
        return WHIT_OK;
    }
    if (is(p, "let")) {
        TRY(make_node(p, NODE_LET, &at, node));
        TRY(advance(p));
        (*node)->column = p->token.column;
        TRY(name(p, &(*node)->name));
        TRY(expect(p, "="));
        return expression(p, &(*node)->a);
    }
    if (is(p, "break") || is(p, "continue")) {
        if (!p->loops)
            return lang_fail(p->source, at.line, at.column, "'%.*s' is only possible inside a loop", (int)at.n,
                             at.text);
        TRY(make_node(p, is(p, "break") ? NODE_BREAK : NODE_CONTINUE, &at, node));
        return advance(p);
    }
    if (is(p, "return")) {
        if (!p->in_function)
            return lang_fail(p->source, at.line, at.column, "'return' is only possible inside a function");
        TRY(make_node(p, NODE_RETURN, &at, node));
        TRY(advance(p));
        return expression(p, &(*node)->a);
    }
    if (is(p, "print")) {
        TRY(make_node(p, NODE_PRINT, &at, node));
        TRY(advance(p));
        lang_node **last = &(*node)->a;
        for (;;) {
            TRY(expression(p, last));
            last = &(*last)->next;
            if (!is(p, ",")) return WHIT_OK;
            TRY(advance(p));
        }
    }
    return assignment(p, node);
}

static whit_status statements(struct parser *p, bool braces, lang_node **first)
{
    lang_node **last = first;
    TRY(skip_lines(p));
    while (p->token.kind != TOKEN_END && !(braces && is(p, "}"))) {
        bool braced = is(p, "fn"); /* the statement ends with '}' and so needs no line feed or ';' */
        if (braced)
            TRY(function(p));
        else {
            TRY(parse_statement(p, last));
            uint8_t kind = (*last)->kind;
            braced = kind == NODE_IF || kind == NODE_WHILE || kind == NODE_FOR || kind == NODE_BLOCK;
            last = &(*last)->next;
        }
        if (!braced && p->token.kind != TOKEN_LINE && p->token.kind != TOKEN_END && !(braces && is(p, "}")))
            return fail_wanted(p, "the end of the statement (a line feed or ';')");
        TRY(skip_lines(p));
    }
    return WHIT_OK;
}

whit_status lang_parse(lang_source *source, lang_arena *arena, lang_node **body, lang_function **functions)
{
    struct parser p = {.source = source, .arena = arena};
    TRY(advance(&p));
    TRY(make_node(&p, NODE_BLOCK, &p.token, body));
    TRY(statements(&p, false, &(*body)->a));
    *functions = p.functions;
    return WHIT_OK;
}
