/* SPDX-License-Identifier: MIT
 * Optimises trees: folds constants, computes equal values once, unrolls short loops. Results keep every bit, because
 * folding calls the tree walker's functions and reorders nothing. */
#include "lang/core/scalar.h"

/* ---- constants -------------------------------------------------------------------------------- */

static void become_int(lang_node *e, int64_t value)
{
    *e = (lang_node){
        .kind = NODE_INT, .type = WHIT_LANG_INT, .line = e->line, .column = e->column, .i = value, .next = e->next};
}

static void become_float(lang_node *e, double value)
{
    *e = (lang_node){
        .kind = NODE_FLOAT, .type = WHIT_LANG_FLOAT, .line = e->line, .column = e->column, .f = value, .next = e->next};
}

static void become(lang_node *e, const lang_node *other)
{
    lang_node *next = e->next;
    *e = *other;
    e->next = next;
}

static void fold_unary(lang_node *e)
{
    const lang_node *a = e->a;
    if (a->kind == NODE_INT)
        e->op == OP_FLOAT ? become_float(e, (double)a->i) : become_int(e, lang_i64_unary(e->op, a->i));
    else if (a->kind == NODE_FLOAT)
        e->op == OP_INT ? become_int(e, lang_to_int(a->f)) : become_float(e, lang_f64_unary(e->op, a->f));
    else if (e->op == OP_NEG && a->kind == NODE_UNARY && a->op == OP_NEG)
        become(e, a->a); /* exact for operands of any type */
}

static bool is_int(const lang_node *e, int64_t value)
{
    return e->kind == NODE_INT && e->i == value;
}

static void fold_binary(lang_node *e)
{
    const lang_node *a = e->a, *b = e->b;
    if (a->kind == NODE_INT && b->kind == NODE_INT) {
        /* a division by 0 must fail only if it is executed */
        if ((e->op == OP_DIV || e->op == OP_MOD) && b->i == 0) return;
        become_int(e, lang_i64_binary(e->op, a->i, b->i));
    } else if (a->kind == NODE_FLOAT && b->kind == NODE_FLOAT) {
        if (e->type == WHIT_LANG_INT)
            become_int(e, lang_f64_compare(e->op, a->f, b->f));
        else
            become_float(e, lang_f64_binary(e->op, a->f, b->f));
    } else if (e->type == WHIT_LANG_INT && a->type == WHIT_LANG_INT) {
        bool zero = e->op == OP_ADD || e->op == OP_SUB || e->op == OP_OR || e->op == OP_XOR || e->op == OP_SHL ||
            e->op == OP_SHR;
        if ((zero && is_int(b, 0)) || ((e->op == OP_MUL || e->op == OP_DIV) && is_int(b, 1)))
            become(e, a);
        else if ((e->op == OP_ADD && is_int(a, 0)) || (e->op == OP_MUL && is_int(a, 1)))
            become(e, b);
    }
}

/* ---- equal values of one statement -------------------------------------------------------------- */

static bool same(const lang_node *a, const lang_node *b)
{
    if (!a || !b) return a == b;
    if (a->kind != b->kind || a->type != b->type || a->op != b->op) return false;
    switch (a->kind) {
    case NODE_INT: return a->i == b->i;
    case NODE_FLOAT: return memcmp(&a->f, &b->f, sizeof a->f) == 0;
    case NODE_SLOT: return a->slot == b->slot && a->global == b->global;
    case NODE_UNARY: return same(a->a, b->a);
    case NODE_BINARY: return same(a->a, b->a) && same(a->b, b->b);
    default: return false; /* calls and elements of vectors are never shared */
    }
}

/* Returns whether a scalar expression consists only of operators, variables and constants. */
static bool pure(const lang_node *e)
{
    return e->kind == NODE_INT || e->kind == NODE_FLOAT || e->kind == NODE_SLOT ||
        (e->kind == NODE_UNARY && pure(e->a)) || (e->kind == NODE_BINARY && pure(e->a) && pure(e->b));
}

enum { SEEN_MAX = 64 };
struct seen {
    lang_optimise *o;
    lang_node *nodes[SEEN_MAX];
    uint32_t n;
};

static bool new_slot(lang_optimise *o, uint8_t type, uint32_t *slot)
{
    if (o->function) {
        if (o->function->n_slots == LANG_MAX_LOCALS) return false;
        *slot = o->function->n_slots++;
        o->function->slot_types[*slot] = type;
        return true;
    }
    if (o->scope->n_globals == LANG_MAX_GLOBALS) return false;
    *slot = o->scope->n_globals++;
    o->scope->globals[*slot] = (lang_global){.type = type};
    return true;
}

static void share(struct seen *seen, lang_node *e)
{
    bool scalar = e->type == WHIT_LANG_INT || e->type == WHIT_LANG_FLOAT;
    if (scalar && (e->kind == NODE_UNARY || e->kind == NODE_BINARY) && pure(e)) {
        for (uint32_t i = 0; i < seen->n; i++) {
            lang_node *first = seen->nodes[i], *value = first->kind == NODE_KEEP ? first->a : first;
            if (!same(value, e)) continue;
            if (first->kind != NODE_KEEP) {
                lang_node *moved = lang_arena_take(seen->o->arena, sizeof *moved);
                uint32_t slot;
                if (!moved || !new_slot(seen->o, e->type, &slot)) return;
                *moved = *first;
                moved->next = NULL;
                first->kind = NODE_KEEP;
                first->a = moved;
                first->b = NULL;
                first->slot = slot;
                first->global = !seen->o->function;
            }
            lang_node *next = e->next;
            *e = (lang_node){.kind = NODE_SLOT,
                             .type = e->type,
                             .global = first->global,
                             .slot = first->slot,
                             .line = e->line,
                             .column = e->column,
                             .next = next};
            return;
        }
    }
    switch (e->kind) {
    case NODE_ALSO:
    case NODE_ELSE: share(seen, e->a); return; /* only a is searched, because b may not be evaluated */
    case NODE_CALL:
    case NODE_BUILTIN:
    case NODE_LIST:
        for (lang_node *a = e->a; a; a = a->next) share(seen, a);
        return;
    default: break;
    }
    if (e->a) share(seen, e->a);
    if (e->b) share(seen, e->b);
    if (e->c) share(seen, e->c);
    if (scalar && (e->kind == NODE_UNARY || e->kind == NODE_BINARY) && seen->n < SEEN_MAX && pure(e))
        seen->nodes[seen->n++] = e;
}

/* ---- constants in variables ------------------------------------------------------------------- */

/* Holds the values of variables that are known at a point of the program. A variable whose only assignment in the whole
 * tree is that of a constant has this value in the rest of the assignment's block. Functions read variables of the
 * outermost level when they run, so within functions the values of such variables are unknown. */
struct known {
    uint32_t n_slots;
    uint8_t *n_assigned;      /* (n_slots) number of assignments in the whole tree; 2 means two or more */
    const lang_node **values; /* (n_slots) constant that each slot has; NULL: unknown */
};

static void count_assigned(struct known *k, const lang_node *e)
{
    for (; e; e = e->next) {
        bool sets = e->kind == NODE_ASSIGN || e->kind == NODE_FOR || e->kind == NODE_STORE;
        if (sets && e->slot < k->n_slots && k->n_assigned[e->slot] < 2) k->n_assigned[e->slot]++;
        count_assigned(k, e->a);
        count_assigned(k, e->b);
        count_assigned(k, e->c);
    }
}

static bool is_constant(const lang_node *e)
{
    return e->kind == NODE_INT || e->kind == NODE_FLOAT;
}

static lang_node *copy_list(lang_arena *arena, const lang_node *e)
{
    lang_node *first = NULL, **last = &first;
    for (; e; e = e->next) {
        lang_node *to = lang_arena_take(arena, sizeof *to);
        if (!to) return NULL;
        *to = *e;
        to->next = NULL;
        if ((e->a && !(to->a = copy_list(arena, e->a))) || (e->b && !(to->b = copy_list(arena, e->b))) ||
            (e->c && !(to->c = copy_list(arena, e->c))))
            return NULL;
        *last = to;
        last = &to->next;
    }
    return first;
}

/* ---- short loops -------------------------------------------------------------------------------- */

enum { ROUNDS_MAX = 8, UNROLLED_MAX = 128 };

/* Returns the number of nodes in a body; a number above UNROLLED_MAX if the body contains a loop, or may leave the loop
 * or a round early. */
static uint32_t weight(const lang_node *e)
{
    uint32_t n = 0;
    for (; e && n <= UNROLLED_MAX; e = e->next) {
        if (e->kind == NODE_BREAK || e->kind == NODE_CONTINUE || e->kind == NODE_RETURN || e->kind == NODE_WHILE ||
            e->kind == NODE_FOR || e->kind == NODE_AFFINE)
            return UNROLLED_MAX + 1;
        n += 1 + weight(e->a) + weight(e->b) + weight(e->c);
    }
    return n;
}

static void fold(lang_optimise *o, struct known *k, lang_node *e);

/* Unrolls a loop if its number of rounds is known and small, and its body is short (weight). */
static LANG_APART void unroll(lang_optimise *o, struct known *k, lang_node *loop)
{
    const lang_node *from = loop->a, *to = loop->b;
    if (!is_constant(from) || !is_constant(to) || from->i >= to->i) return;
    uint64_t n = (uint64_t)to->i - (uint64_t)from->i;
    if (n > ROUNDS_MAX || weight(loop->c) * n > UNROLLED_MAX) return;
    lang_node *first = NULL, **last = &first;
    for (uint64_t i = 0; i < n; i++) {
        lang_node *set = lang_arena_take(o->arena, sizeof *set), *value = lang_arena_take(o->arena, sizeof *value);
        lang_node *body = copy_list(o->arena, loop->c);
        if (!set || !value || !body) return;
        *value = *from;
        value->i += (int64_t)i;
        *set = (lang_node){.kind = NODE_ASSIGN,
                           .type = WHIT_LANG_INT,
                           .global = loop->global,
                           .slot = loop->slot,
                           .line = loop->line,
                           .column = loop->column,
                           .a = value,
                           .next = body};
        *last = set;
        last = &body->next;
    }
    bool own = loop->global == !o->function && loop->slot < k->n_slots && k->n_assigned[loop->slot] == 1;
    uint32_t slot = loop->slot;
    *loop = (lang_node){.kind = NODE_BLOCK, .line = loop->line, .column = loop->column, .a = first, .next = loop->next};
    for (lang_node *set = first; own && set; set = set->next->next) { /* the counter has a known value in each round */
        k->values[slot] = set->a;
        fold(o, k, set->next);
        k->values[slot] = NULL;
    }
}

/* ---- statements ------------------------------------------------------------------------------- */

static void fold_list(lang_optimise *o, struct known *k, lang_node *e)
{
    for (; e; e = e->next) fold(o, k, e);
}

/* Folds a block: constants that its assignments establish are known from there to the block's end. */
static void fold_block(lang_optimise *o, struct known *k, lang_node *first)
{
    for (lang_node *s = first; s; s = s->next) {
        fold(o, k, s);
        bool own = s->kind == NODE_ASSIGN && s->global == !o->function && s->slot < k->n_slots;
        if (own && k->n_assigned[s->slot] == 1 && is_constant(s->a) && s->a->type == s->type) k->values[s->slot] = s->a;
    }
    for (const lang_node *s = first; s; s = s->next)
        if (s->kind == NODE_ASSIGN && s->global == !o->function && s->slot < k->n_slots) k->values[s->slot] = NULL;
}

static void fold_slot(const lang_optimise *o, const struct known *k, lang_node *e)
{
    const lang_node *value = e->global == !o->function && e->slot < k->n_slots ? k->values[e->slot] : NULL;
    if (!value) return;
    value->kind == NODE_INT ? become_int(e, value->i) : become_float(e, value->f);
}

/* Removes the statements after a break, continue or return. */
static void cut_dead(lang_node *first)
{
    for (lang_node *s = first; s; s = s->next)
        if (s->kind == NODE_BREAK || s->kind == NODE_CONTINUE || s->kind == NODE_RETURN) s->next = NULL;
}

static void fold(lang_optimise *o, struct known *k, lang_node *e)
{
    if (e->kind == NODE_BLOCK)
        fold_block(o, k, e->a);
    else {
        fold_list(o, k, e->a);
        fold_list(o, k, e->b);
        fold_list(o, k, e->c);
    }
    switch (e->kind) {
    case NODE_SLOT: fold_slot(o, k, e); return;
    case NODE_UNARY: fold_unary(e); return;
    case NODE_BINARY: fold_binary(e); return;
    case NODE_ALSO:
        if (e->a->kind == NODE_INT && !e->a->i) become_int(e, 0);
        return;
    case NODE_ELSE:
        if (e->a->kind == NODE_INT && e->a->i) become_int(e, 1);
        return;
    case NODE_IF:
        if (e->a->kind != NODE_INT) return;
        if (!e->a->i && !e->c)
            *e = (lang_node){.kind = NODE_BLOCK, .line = e->line, .column = e->column, .next = e->next};
        else
            become(e, e->a->i ? e->b : e->c);
        return;
    case NODE_WHILE:
        if (is_int(e->a, 0))
            *e = (lang_node){.kind = NODE_BLOCK, .line = e->line, .column = e->column, .next = e->next};
        return;
    case NODE_BLOCK: cut_dead(e->a); return;
    case NODE_FOR:
        if (!o->no_closed_forms) {
            lang_affine *affine = lang_affine_find(o->arena, e);
            if (affine) {
                e->kind = NODE_AFFINE;
                e->affine = affine;
                return;
            }
        }
        unroll(o, k, e);
        return;
    default: return;
    }
}

static void share_all(lang_optimise *o, lang_node *s)
{
    for (; s; s = s->next) {
        struct seen seen = {.o = o};
        switch (s->kind) {
        case NODE_BLOCK: share_all(o, s->a); break;
        case NODE_IF:
            share_all(o, s->b);
            share_all(o, s->c);
            break;
        case NODE_WHILE: share_all(o, s->b); break;
        case NODE_FOR: share_all(o, s->c); break;
        case NODE_ASSIGN:
        case NODE_RETURN:
        case NODE_EXPRESSION: share(&seen, s->a); break;
        case NODE_STORE: /* the value (a) is evaluated before the index (b) */
            share(&seen, s->a);
            share(&seen, s->b);
            break;
        default: break;
        }
    }
}

void lang_optimise_tree(lang_optimise *o, lang_node *node)
{
    struct known k = {.n_slots = o->function ? o->function->n_slots : o->scope->n_globals};
    k.n_assigned = lang_arena_take(o->arena, k.n_slots * sizeof *k.n_assigned);
    k.values = lang_arena_take(o->arena, k.n_slots * sizeof *k.values);
    if (!k.n_assigned || !k.values) k.n_slots = 0; /* if memory is exhausted, the values of variables stay unknown */
    count_assigned(&k, node);
    fold(o, &k, node);
    share_all(o, node);
}
