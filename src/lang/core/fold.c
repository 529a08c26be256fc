/* SPDX-License-Identifier: MIT
 * What is decided before a program runs. Results keep every bit: folding uses the functions that
 * the tree walker uses, and nothing is reordered. */
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
        become(e, a->a); /* exact for every type */
}

static bool is_int(const lang_node *e, int64_t value)
{
    return e->kind == NODE_INT && e->i == value;
}

static void fold_binary(lang_node *e)
{
    const lang_node *a = e->a, *b = e->b;
    if (a->kind == NODE_INT && b->kind == NODE_INT) {
        if ((e->op == OP_DIV || e->op == OP_MOD) && b->i == 0) return; /* fails when it is reached */
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
    default: return false; /* calls and elements are computed where they stand */
    }
}

/* Scalars made of operators, slots and constants alone; not the cheapest of them. */
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
    case NODE_ELSE: share(seen, e->a); return; /* b may not be reached */
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

/* ---- statements ------------------------------------------------------------------------------- */

static void fold(lang_optimise *o, lang_node *e);

static void fold_list(lang_optimise *o, lang_node *e)
{
    for (; e; e = e->next) fold(o, e);
}

/* Leaves out what follows a statement that never lets it be reached. */
static void cut_dead(lang_node *first)
{
    for (lang_node *s = first; s; s = s->next)
        if (s->kind == NODE_BREAK || s->kind == NODE_CONTINUE || s->kind == NODE_RETURN) s->next = NULL;
}

static void fold(lang_optimise *o, lang_node *e)
{
    fold_list(o, e->a);
    fold_list(o, e->b);
    fold_list(o, e->c);
    switch (e->kind) {
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
            }
        }
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
        case NODE_STORE: /* the value comes before the index */
            share(&seen, s->a);
            share(&seen, s->b);
            break;
        default: break;
        }
    }
}

void lang_optimise_tree(lang_optimise *o, lang_node *node)
{
    fold(o, node);
    share_all(o, node);
}
