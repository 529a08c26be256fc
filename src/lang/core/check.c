/* SPDX-License-Identifier: MIT
 * Checks programs: gives each name a slot and each expression a type. A function is checked again for every list of
 * argument types that it is called with; the type of its first `return` is the type of its result. */
#include <stdio.h>

#include "base/phrase.h"
#include "lang/core/ast.h"
#include "lang/core/builtins.h"

struct local {
    const char *name; /* "" if the variable's block has ended, or the variable has no name */
    uint8_t type;
};

struct checker {
    lang_source *source;
    lang_arena *arena;
    lang_scope *scope;
    lang_function *function; /* function that is being checked; NULL: the outermost level */
    struct local *locals;    /* local variables of `function`, by slot */
    uint32_t max_locals, n_locals, depth, levels, n_instances;
};

#define TRY WHIT_TRY

static whit_status no_memory(struct checker *c, const lang_node *at)
{
    return lang_fail(c->source, at->line, at->column, "the program is too large");
}

const char *whit_lang_type_name(whit_lang_type type)
{
    static const char *const names[] = {"nothing",  "an integer",         "a float", "a text", "a value of the host",
                                        "a vector", "a quaternary vector"};
    return (unsigned)type < sizeof names / sizeof *names ? names[type] : "unknown";
}

/* ---- names ------------------------------------------------------------------------------------ */

static bool find_local(const struct checker *c, const char *name, uint32_t *slot)
{
    for (uint32_t i = c->n_locals; i-- > 0;)
        if (*c->locals[i].name == *name && strcmp(c->locals[i].name, name) == 0) {
            *slot = i;
            return true;
        }
    return false;
}

static bool find_global(const struct checker *c, const char *name, uint32_t *slot)
{
    for (uint32_t i = c->scope->n_globals; i-- > 0;) {
        const lang_global *global = &c->scope->globals[i];
        /* functions cannot use the variables of blocks of the outermost level */
        if (c->function && global->inner) continue;
        if (*global->name == *name && strcmp(global->name, name) == 0) {
            *slot = i;
            return true;
        }
    }
    return false;
}

/* Declares a variable in a new slot; variables without a name are declared as "". */
static whit_status declare(struct checker *c, const lang_node *at, const char *name, uint8_t type, uint32_t *slot)
{
    if (*name && lang_is_builtin(name))
        return lang_fail(c->source, at->line, at->column, "'%s' is a built-in function: choose another name", name);
    if (c->function) {
        if (c->n_locals == c->max_locals) return no_memory(c, at);
        *slot = c->n_locals;
        c->locals[c->n_locals++] = (struct local){name, type};
        c->function->slot_types[*slot] = type;
        if (c->n_locals > c->function->n_slots) c->function->n_slots = c->n_locals;
        return WHIT_OK;
    }
    if (c->scope->n_globals == LANG_MAX_GLOBALS)
        return lang_fail(c->source, at->line, at->column, "the program has more than %d global variables",
                         LANG_MAX_GLOBALS);
    *slot = c->scope->n_globals++;
    lang_global *global = &c->scope->globals[*slot];
    snprintf(global->name, sizeof global->name, "%s", name);
    global->type = type;
    global->inner = c->depth > 0;
    return WHIT_OK;
}

static uint32_t scope_begin(const struct checker *c)
{
    return c->function ? c->n_locals : c->scope->n_globals;
}

/* Ends a block: its names can no longer be found. Slots are not reused within a text, so the type of a slot never
 * changes in it. */
static void scope_end(struct checker *c, uint32_t begin)
{
    if (c->function)
        for (uint32_t i = begin; i < c->n_locals; i++) c->locals[i].name = "";
    else
        for (uint32_t i = begin; i < c->scope->n_globals; i++) c->scope->globals[i].name[0] = 0;
}

/* ---- expressions ------------------------------------------------------------------------------ */

static whit_status check_node(struct checker *c, lang_node *node);

static LANG_APART whit_status mistyped(struct checker *c, const lang_node *at, const char *what, uint8_t type)
{
    return lang_fail(c->source, at->line, at->column, "%s, not %s", what, whit_lang_type_name(type));
}

/* Converts an integer expression to float; leaves other types unchanged. */
static whit_status to_float(struct checker *c, lang_node **node)
{
    if ((*node)->type != WHIT_LANG_INT) return WHIT_OK;
    return lang_to_float(c->arena, node) ? WHIT_OK : no_memory(c, *node);
}

static whit_status check_name(struct checker *c, lang_node *node)
{
    const char *name = node->name;
    if (c->function && find_local(c, name, &node->slot))
        node->type = c->locals[node->slot].type;
    else if (find_global(c, name, &node->slot)) {
        node->type = c->scope->globals[node->slot].type;
        node->global = true;
    } else if (lang_is_builtin(name))
        return lang_fail(c->source, node->line, node->column, "'%s' is a function: '%s(...)' calls it", name, name);
    else
        return lang_fail(c->source, node->line, node->column, "'%s' is not defined", name);
    node->kind = NODE_SLOT;
    return WHIT_OK;
}

/* Refuses operands without a value, texts and values of the host: programs can only store, pass and return texts and
 * values of the host. */
static whit_status check_operand(struct checker *c, const lang_node *operand, const char *what)
{
    bool has = operand->type != WHIT_LANG_NONE && operand->type != WHIT_LANG_TEXT && operand->type != WHIT_LANG_HOST;
    return has ? WHIT_OK : mistyped(c, operand, what, operand->type);
}

static whit_status check_unary(struct checker *c, lang_node *node)
{
    TRY(check_node(c, node->a));
    uint8_t type = node->a->type;
    if (node->op == OP_NEG) {
        TRY(check_operand(c, node->a, "'-' needs a value"));
        node->type = type;
        return WHIT_OK;
    }
    if (type != WHIT_LANG_INT)
        return mistyped(c, node->a, node->op == OP_NOT ? "'not' needs an integer" : "'~' needs an integer", type);
    node->type = type;
    return WHIT_OK;
}

/* The messages are stored as a whole, because composing them would need a buffer in the stack frame of every nested
 * expression. */
static const char *const wants_integers[] = {
    [OP_MOD - OP_MOD] = "'%' needs integers",  [OP_SHL - OP_MOD] = "'<<' needs integers",
    [OP_SHR - OP_MOD] = "'>>' needs integers", [OP_AND - OP_MOD] = "'&' needs integers",
    [OP_OR - OP_MOD] = "'|' needs integers",   [OP_XOR - OP_MOD] = "'^' needs integers",
};

static whit_status check_binary(struct checker *c, lang_node *node)
{
    TRY(check_node(c, node->a));
    TRY(check_node(c, node->b));
    uint8_t a = node->a->type, b = node->b->type;
    TRY(check_operand(c, node->a, "an operator needs a value"));
    TRY(check_operand(c, node->b, "an operator needs a value"));
    bool compares = node->op >= OP_LT && node->op <= OP_NE;
    if (node->op >= OP_MOD) {
        if (a != WHIT_LANG_INT) return mistyped(c, node->a, wants_integers[node->op - OP_MOD], a);
        if (b != WHIT_LANG_INT) return mistyped(c, node->b, wants_integers[node->op - OP_MOD], b);
        node->type = WHIT_LANG_INT;
        return WHIT_OK;
    }
    if (a == WHIT_LANG_QUAT || b == WHIT_LANG_QUAT) {
        if (a != b)
            return lang_fail(c->source, node->line, node->column,
                             "a quaternary vector can only be combined with another one; vec(x) and quat(x) convert");
        if (node->op == OP_DIV)
            return lang_fail(c->source, node->line, node->column, "quaternary vectors cannot be divided");
        node->type = WHIT_LANG_QUAT;
        return WHIT_OK;
    }
    if (a == WHIT_LANG_VEC || b == WHIT_LANG_VEC) {
        TRY(to_float(c, &node->a));
        TRY(to_float(c, &node->b));
        node->type = WHIT_LANG_VEC;
        return WHIT_OK;
    }
    if (a != b) {
        TRY(to_float(c, &node->a));
        TRY(to_float(c, &node->b));
    }
    node->type = compares ? WHIT_LANG_INT : node->a->type;
    return WHIT_OK;
}

static whit_status check_index(struct checker *c, lang_node *node, const char *what)
{
    TRY(check_node(c, node));
    if (node->type != WHIT_LANG_INT) return mistyped(c, node, what, node->type);
    return WHIT_OK;
}

/* ---- functions -------------------------------------------------------------------------------- */

static lang_node *copy_list(struct checker *c, const lang_node *node);

static lang_node *copy_node(struct checker *c, const lang_node *node)
{
    lang_node *to = lang_arena_take(c->arena, sizeof *to);
    if (!to) return NULL;
    *to = *node;
    to->next = NULL;
    if ((node->a && !(to->a = copy_list(c, node->a))) || (node->b && !(to->b = copy_list(c, node->b))) ||
        (node->c && !(to->c = copy_list(c, node->c))) || (node->d && !(to->d = copy_list(c, node->d))))
        return NULL;
    return to;
}

static lang_node *copy_list(struct checker *c, const lang_node *node)
{
    lang_node *first = NULL, **last = &first;
    for (; node; node = node->next) {
        if (!(*last = copy_node(c, node))) return NULL;
        last = &(*last)->next;
    }
    return first;
}

/* Returns an upper bound of the number of variables that a body declares. */
static uint32_t count_locals(const lang_node *node)
{
    uint32_t n = 0;
    for (; node && n < LANG_MAX_LOCALS; node = node->next) {
        if (node->kind == NODE_LET) n++;
        if (node->kind == NODE_FOR) n += 2;
        if (node->kind == NODE_BLOCK || node->kind == NODE_IF || node->kind == NODE_WHILE || node->kind == NODE_FOR)
            n += count_locals(node->a) + count_locals(node->b) + count_locals(node->c);
    }
    return n < LANG_MAX_LOCALS ? n : LANG_MAX_LOCALS;
}

static whit_status check_instance(struct checker *c, const lang_node *call, lang_function *f, lang_function *instance)
{
    struct checker inner = *c;
    uint32_t slot;
    if (c->depth == LANG_MAX_NESTING)
        return lang_fail(c->source, call->line, call->column, "calls of new functions are nested more than %d deep",
                         LANG_MAX_NESTING);
    inner.levels += f->levels;
    if (inner.levels > LANG_MAX_NEW_LEVELS)
        return lang_fail(c->source, call->line, call->column,
                         "calls of new functions are nested more than %d levels deep", LANG_MAX_NEW_LEVELS);
    inner.depth++;
    inner.function = instance;
    inner.n_locals = 0;
    instance->slot_types = lang_arena_take(c->arena, LANG_MAX_LOCALS);
    inner.max_locals = f->n_parameters + count_locals(f->body);
    inner.max_locals = inner.max_locals < LANG_MAX_LOCALS ? inner.max_locals : LANG_MAX_LOCALS;
    inner.locals = lang_arena_take(c->arena, (inner.max_locals + 1) * sizeof *inner.locals);
    instance->code = copy_node(c, f->body);
    if (!instance->slot_types || !inner.locals || !instance->code) return no_memory(c, call);
    uint32_t i = 0;
    for (lang_node *parameter = f->parameters; parameter; parameter = parameter->next)
        TRY(declare(&inner, parameter, parameter->name, instance->types[i++], &slot));
    TRY(check_node(&inner, instance->code));
    c->n_instances = inner.n_instances;
    if (!instance->result_known) {
        instance->result = WHIT_LANG_NONE;
        instance->result_known = true;
    }
    return WHIT_OK;
}

static LANG_APART whit_status check_call(struct checker *c, lang_node *node)
{
    lang_function *f = c->scope->functions, *instance;
    uint32_t n = 0;
    uint8_t types[sizeof f->types] = {0};
    for (; f; f = f->next)
        if (strcmp(f->name, node->name) == 0) break;
    for (lang_node *argument = node->a; argument; argument = argument->next) {
        TRY(check_node(c, argument));
        if (argument->type == WHIT_LANG_NONE)
            return mistyped(c, argument, "an argument must be a value", argument->type);
        if (f && n < sizeof types) types[n] = argument->type;
        n++;
    }
    if (!f) {
        if (lang_find_host(c->scope->host, node->name, &node->slot))
            return lang_check_host(c->source, c->arena, c->scope->host, node);
        if (!lang_is_builtin(node->name))
            return lang_fail(c->source, node->line, node->column, "there is no function '%s'", node->name);
        return lang_check_builtin(c->source, c->arena, node);
    }
    if (n != f->n_parameters)
        return lang_fail(c->source, node->line, node->column, "'%s' takes %u argument%s, not %u", f->name,
                         f->n_parameters, whit_plural(f->n_parameters), n);
    for (instance = f->instances; instance; instance = instance->next)
        if (memcmp(instance->types, types, sizeof types) == 0) break;
    if (!instance) {
        if (c->n_instances++ == LANG_MAX_INSTANCES) return no_memory(c, node);
        instance = lang_arena_take(c->arena, sizeof *instance);
        if (!instance) return no_memory(c, node);
        *instance = (lang_function){
            .name = f->name, .n_parameters = n, .levels = f->levels, .text = c->scope->text, .next = f->instances};
        memcpy(instance->types, types, sizeof types);
        f->instances = instance;
        TRY(check_instance(c, node, f, instance));
    }
    if (!instance->result_known)
        return lang_fail(c->source, node->line, node->column,
                         "the type of '%s' is not known here yet; let it return a value before it calls itself",
                         f->name);
    node->function = instance;
    node->type = instance->result;
    return WHIT_OK;
}

/* ---- statements ------------------------------------------------------------------------------- */

static LANG_APART whit_status check_assign(struct checker *c, lang_node *node)
{
    uint8_t type;
    if (c->function && find_local(c, node->name, &node->slot))
        type = c->locals[node->slot].type;
    else if (find_global(c, node->name, &node->slot)) {
        if (c->function)
            return lang_fail(c->source, node->line, node->column,
                             "a function cannot change the global variable '%s'; return a value", node->name);
        type = c->scope->globals[node->slot].type;
        node->global = true;
    } else
        return lang_fail(c->source, node->line, node->column, "'%s' is not defined; 'let %s = ...' defines it",
                         node->name, node->name);
    TRY(check_node(c, node->a));
    if (node->kind == NODE_STORE) {
        if (type != WHIT_LANG_VEC) return mistyped(c, node, "only elements of a vector can be set", type);
        TRY(check_index(c, node->b, "an index must be an integer"));
        TRY(to_float(c, &node->a));
        if (node->a->type != WHIT_LANG_FLOAT) return mistyped(c, node->a, "an element must be a number", node->a->type);
        node->type = type;
        return WHIT_OK;
    }
    if (type == WHIT_LANG_FLOAT) TRY(to_float(c, &node->a));
    if (node->a->type != type) {
        char what[120];
        snprintf(what, sizeof what, "'%s' is %s", node->name, whit_lang_type_name(type));
        return mistyped(c, node->a, what, node->a->type);
    }
    node->type = type;
    return WHIT_OK;
}

static whit_status check_condition(struct checker *c, lang_node *node)
{
    TRY(check_node(c, node));
    if (node->type != WHIT_LANG_INT) return mistyped(c, node, "a condition must be an integer", node->type);
    return WHIT_OK;
}

static LANG_APART whit_status check_statement(struct checker *c, lang_node *node)
{
    uint32_t begin;
    switch (node->kind) {
    case NODE_LET:
        TRY(check_node(c, node->a));
        if (node->a->type == WHIT_LANG_NONE)
            return mistyped(c, node->a, "a variable must be given a value", node->a->type);
        node->type = node->a->type;
        node->global = !c->function;
        if (!c->function && c->depth == 0 && find_global(c, node->name, &begin) &&
            c->scope->globals[begin].type == node->type) {
            node->slot = begin; /* the same variable is defined again with the same type, as is usual in interactive
                                 * sessions: it becomes an assignment */
            node->kind = NODE_ASSIGN;
            return WHIT_OK;
        }
        TRY(declare(c, node, node->name, node->type, &node->slot));
        node->kind = NODE_ASSIGN;
        return WHIT_OK;
    case NODE_ASSIGN:
    case NODE_STORE: return check_assign(c, node);
    case NODE_IF:
        TRY(check_condition(c, node->a));
        TRY(check_node(c, node->b));
        return node->c ? check_node(c, node->c) : WHIT_OK;
    case NODE_WHILE: TRY(check_condition(c, node->a)); return check_node(c, node->b);
    case NODE_FOR: {
        const char *name = node->name;
        TRY(check_index(c, node->a, "a loop must begin at an integer"));
        TRY(check_index(c, node->b, "a loop must end at an integer"));
        begin = scope_begin(c);
        node->global = !c->function;
        uint32_t limit;
        c->depth++; /* the counter belongs to the loop's block */
        TRY(declare(c, node, name, WHIT_LANG_INT, &node->slot));
        TRY(declare(c, node, "", WHIT_LANG_INT, &limit));
        c->depth--;
        TRY(check_node(c, node->c));
        scope_end(c, begin);
        return WHIT_OK;
    }
    case NODE_RETURN:
        TRY(check_node(c, node->a));
        if (node->a->type == WHIT_LANG_NONE)
            return mistyped(c, node->a, "a function must return a value", node->a->type);
        if (c->function->result_known) {
            if (c->function->result == WHIT_LANG_FLOAT) TRY(to_float(c, &node->a));
            if (node->a->type != c->function->result)
                return lang_fail(c->source, node->line, node->column, "'%s' returned %s before, not %s",
                                 c->function->name, whit_lang_type_name(c->function->result),
                                 whit_lang_type_name(node->a->type));
        }
        c->function->result = node->a->type;
        c->function->result_known = true;
        return WHIT_OK;
    case NODE_BLOCK:
        c->depth++;
        begin = scope_begin(c);
        for (lang_node *s = node->a; s; s = s->next) TRY(check_node(c, s));
        c->depth--;
        scope_end(c, begin);
        return WHIT_OK;
    case NODE_PRINT:
        begin = 0;
        for (lang_node *e = node->a; e; e = e->next) {
            TRY(check_node(c, e));
            if (e->type == WHIT_LANG_NONE)
                return lang_fail(c->source, e->line, e->column,
                                 "only values can be printed; a function returns one by 'return'");
            TRY(check_operand(c, e, "only values can be printed"));
            if (++begin > LANG_MAX_ARGUMENTS)
                return lang_fail(c->source, e->line, e->column, "'print' has more than %d values", LANG_MAX_ARGUMENTS);
        }
        return WHIT_OK;
    case NODE_EXPRESSION: return check_node(c, node->a);
    default: return WHIT_OK; /* break and continue need no check */
    }
}

static whit_status check_node(struct checker *c, lang_node *node)
{
    switch (node->kind) {
    case NODE_INT: node->type = WHIT_LANG_INT; return WHIT_OK;
    case NODE_FLOAT: node->type = WHIT_LANG_FLOAT; return WHIT_OK;
    case NODE_TEXT:
        node->type = WHIT_LANG_TEXT;
        if (!c->scope->host)
            return lang_fail(c->source, node->line, node->column,
                             "texts can only be passed to a host's functions, and this program has no host; values are "
                             "numbers and vectors");
        return WHIT_OK;
    case NODE_NAME: return check_name(c, node);
    case NODE_UNARY: return check_unary(c, node);
    case NODE_BINARY: return check_binary(c, node);
    case NODE_ALSO:
    case NODE_ELSE:
        TRY(check_condition(c, node->a));
        TRY(check_condition(c, node->b));
        node->type = WHIT_LANG_INT;
        return WHIT_OK;
    case NODE_CALL: return check_call(c, node);
    case NODE_INDEX:
    case NODE_SLICE:
        TRY(check_node(c, node->a));
        TRY(check_index(c, node->b, "an index must be an integer"));
        if (node->c) TRY(check_index(c, node->c, "an index must be an integer"));
        if (node->a->type != WHIT_LANG_VEC && node->a->type != WHIT_LANG_QUAT)
            return mistyped(c, node->a, "only vectors have elements", node->a->type);
        if (node->kind == NODE_SLICE && node->a->type != WHIT_LANG_VEC)
            return mistyped(c, node->a, "only vectors can be sliced", node->a->type);
        node->type = node->kind == NODE_SLICE ? WHIT_LANG_VEC : WHIT_LANG_FLOAT;
        return WHIT_OK;
    case NODE_LIST:
        for (lang_node **e = &node->a; *e; e = &(*e)->next) {
            TRY(check_node(c, *e));
            TRY(to_float(c, e));
            if ((*e)->type != WHIT_LANG_FLOAT) return mistyped(c, *e, "an element must be a number", (*e)->type);
        }
        node->type = WHIT_LANG_VEC;
        return WHIT_OK;
    default: return check_statement(c, node);
    }
}

whit_status lang_check(lang_source *source, lang_arena *arena, lang_scope *scope, lang_node *body)
{
    struct checker c = {.source = source, .arena = arena, .scope = scope};
    for (lang_node *s = body->a; s; s = s->next) TRY(check_node(&c, s));
    return WHIT_OK;
}
