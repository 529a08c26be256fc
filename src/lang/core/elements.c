/* SPDX-License-Identifier: MIT
 * A chain of operations on vectors as one loop over chunks that stay in L1: a register
 * machine, equal values computed once. What a chain reads is evaluated first, left to right. */
#include "lang/core/chunk.h"
#include "lang/core/code.h"

enum { LEAVES_MAX = 16, VALUES_MAX = 64 };
enum { FORM_BINARY, FORM_BINARY_SCALAR, FORM_SCALAR_BINARY, FORM_UNARY };

/* Operands: below LEAVES_MAX a leaf; from LEAVES_MAX on a register; for scalars their number. */
struct instruction {
    uint8_t form, op, to, a, b;
};

typedef struct lang_elements {
    uint32_t n_instructions, n_leaves, n_scalars;
    struct instruction instructions[VALUES_MAX];
    const lang_code *leaves[LEAVES_MAX], *scalars[LEAVES_MAX];
    uint8_t order[2 * LEAVES_MAX]; /* leaves, and LEAVES_MAX + scalars, as they are evaluated */
    uint32_t n_order;
} lang_elements;

struct builder {
    lang_compiler *c;
    lang_elements *e;
    lang_node *leaf_nodes[LEAVES_MAX], *scalar_nodes[LEAVES_MAX];
    /* An instruction's `to`, a and b are numbers of values until registers are given out. */
    bool full;
};

enum { VALUE = LEAVES_MAX }; /* a value's number begins here */

static bool is_elementwise(const lang_node *e)
{
    return e->type == WHIT_LANG_VEC && (e->kind == NODE_UNARY || e->kind == NODE_BINARY);
}

static bool same_leaf(const lang_node *a, const lang_node *b)
{
    if (a->kind != b->kind || a->type != b->type) return false;
    if (a->kind == NODE_SLOT) return a->slot == b->slot && a->global == b->global;
    return a->kind == NODE_FLOAT && memcmp(&a->f, &b->f, sizeof a->f) == 0;
}

static uint8_t leaf(struct builder *b, lang_node *node, bool scalar)
{
    lang_node **nodes = scalar ? b->scalar_nodes : b->leaf_nodes;
    uint32_t *n = scalar ? &b->e->n_scalars : &b->e->n_leaves;
    for (uint32_t i = 0; i < *n; i++)
        if (same_leaf(nodes[i], node)) return (uint8_t)i;
    if (*n == LEAVES_MAX) {
        b->full = true;
        return 0;
    }
    nodes[*n] = node;
    (scalar ? b->e->scalars : b->e->leaves)[*n] = lang_compile_expression(b->c, node);
    b->e->order[b->e->n_order++] = (uint8_t)(scalar ? LEAVES_MAX + *n : *n);
    return (uint8_t)(*n)++;
}

static uint8_t emit(struct builder *b, uint8_t form, uint8_t op, uint8_t x, uint8_t y)
{
    lang_elements *e = b->e;
    for (uint32_t i = 0; i < e->n_instructions; i++) {
        const struct instruction *old = &e->instructions[i];
        if (old->form == form && old->op == op && old->a == x && old->b == y) return (uint8_t)(VALUE + i);
    }
    if (e->n_instructions == VALUES_MAX) {
        b->full = true;
        return VALUE;
    }
    e->instructions[e->n_instructions] = (struct instruction){form, op, 0, x, y};
    return (uint8_t)(VALUE + e->n_instructions++);
}

static uint8_t build(struct builder *b, lang_node *node, uint32_t depth)
{
    if (b->full) return 0;
    if (!is_elementwise(node) || depth == LANG_REGISTERS - 2) return leaf(b, node, false);
    if (node->kind == NODE_UNARY) return emit(b, FORM_UNARY, node->op, build(b, node->a, depth + 1), 0);
    bool a_is = node->a->type == WHIT_LANG_VEC, b_is = node->b->type == WHIT_LANG_VEC;
    uint8_t x = a_is ? build(b, node->a, depth + 1) : leaf(b, node->a, true);
    uint8_t y = b_is ? build(b, node->b, depth + 1) : leaf(b, node->b, true);
    return emit(b, a_is && b_is ? FORM_BINARY : a_is ? FORM_BINARY_SCALAR : FORM_SCALAR_BINARY, node->op, x, y);
}

/* Numbers of values become registers that are free again after the last use. */
static bool give_registers(lang_elements *e)
{
    uint32_t last[VALUES_MAX] = {0};
    uint8_t reg[VALUES_MAX];
    bool used[LANG_REGISTERS] = {false};
    for (uint32_t i = 0; i < e->n_instructions; i++) {
        const struct instruction *in = &e->instructions[i];
        if (in->form != FORM_SCALAR_BINARY && in->a >= VALUE) last[in->a - VALUE] = i;
        if (in->form != FORM_UNARY && in->form != FORM_BINARY_SCALAR && in->b >= VALUE) last[in->b - VALUE] = i;
    }
    for (uint32_t i = 0; i < e->n_instructions; i++) {
        struct instruction *in = &e->instructions[i];
        uint8_t *operands[2] = {in->form == FORM_SCALAR_BINARY ? NULL : &in->a,
                                in->form == FORM_UNARY || in->form == FORM_BINARY_SCALAR ? NULL : &in->b};
        for (int k = 0; k < 2; k++) {
            if (!operands[k] || *operands[k] < VALUE) continue;
            uint32_t value = *operands[k] - VALUE;
            *operands[k] = (uint8_t)(VALUE + reg[value]);
            if (last[value] == i) used[reg[value]] = false;
        }
        uint32_t r = 0;
        while (r < LANG_REGISTERS && used[r]) r++;
        if (r == LANG_REGISTERS) return false;
        reg[i] = (uint8_t)r;
        used[r] = true;
        in->to = (uint8_t)(VALUE + r);
    }
    return true;
}

static void run_chunk(const whit_lang *vm, const lang_elements *e, const float *const *x, const float *scalars,
                      uint32_t n, float *out)
{
    const lang_chunk_kernels *k = vm->kernels;
    for (uint32_t i = 0; i < e->n_instructions; i++) {
        const struct instruction *in = &e->instructions[i];
        float *to = i + 1 == e->n_instructions ? out : vm->chunks + (size_t)(in->to - VALUE) * LANG_CHUNK;
        switch (in->form) {
        case FORM_BINARY: k->binary[in->op](to, x[in->a], x[in->b], n); break;
        case FORM_BINARY_SCALAR: k->binary_scalar[in->op](to, x[in->a], scalars[in->b], n); break;
        case FORM_SCALAR_BINARY: k->scalar_binary[in->op](to, scalars[in->a], x[in->b], n); break;
        default: k->unary[in->op](to, x[in->a], n); break;
        }
    }
}

static lang_array *run_elements(const lang_code *c, lang_value *frame)
{
    const lang_elements *e = c->elements;
    whit_lang *vm = c->vm;
    lang_array *arrays[LEAVES_MAX], *out = NULL;
    float scalars[LEAVES_MAX];
    const float *x[LEAVES_MAX + LANG_REGISTERS];
    for (uint32_t i = 0; i < e->n_order; i++) {
        uint8_t k = e->order[i];
        if (k < LEAVES_MAX)
            arrays[k] = e->leaves[k]->a(e->leaves[k], frame);
        else
            scalars[k - LEAVES_MAX] = (float)e->scalars[k - LEAVES_MAX]->f(e->scalars[k - LEAVES_MAX], frame);
    }
    for (uint32_t k = 1; k < e->n_leaves; k++) lang_same_length(vm, c->node, arrays[0], arrays[k]);
    /* Written over what nobody else refers to: a passing value, or the variable that is assigned. */
    const lang_array *target = c->n ? frame[c->target].a : NULL;
    for (uint32_t k = 0; k < e->n_leaves && !out; k++)
        if (arrays[k]->refs == 1 || (arrays[k] == target && arrays[k]->refs == 2)) out = arrays[k];
    uint32_t n = arrays[0]->n;
    if (out) {
        lang_step(vm, c->node, n / 64 + 1);
        out->refs++;
    } else
        out = lang_new_vec(vm, c->node, n);
    for (uint32_t r = 0; r < LANG_REGISTERS; r++) x[LEAVES_MAX + r] = vm->chunks + (size_t)r * LANG_CHUNK;
    for (uint32_t at = 0; at < n; at += LANG_CHUNK) {
        for (uint32_t k = 0; k < e->n_leaves; k++) x[k] = arrays[k]->x + at;
        run_chunk(vm, e, x, scalars, n - at < LANG_CHUNK ? n - at : LANG_CHUNK, out->x + at);
    }
    for (uint32_t k = 0; k < e->n_leaves; k++) lang_release(vm, arrays[k]);
    return out;
}

const lang_code *lang_compile_elements(lang_compiler *c, lang_node *node)
{
    lang_code *code = lang_code_new(c, node);
    lang_elements *e = c->failed ? NULL : lang_arena_take(&c->vm->arena, sizeof *e);
    struct builder b = {.c = c, .e = e};
    if (!e) {
        c->failed = true;
        return code;
    }
    build(&b, node, 0);
    if (b.full || !give_registers(e)) { /* too much for one loop: this operation by itself */
        *e = (lang_elements){0};
        b = (struct builder){.c = c, .e = e};
        bool unary = node->kind == NODE_UNARY, a_is = node->a->type == WHIT_LANG_VEC;
        bool b_is = !unary && node->b->type == WHIT_LANG_VEC;
        uint8_t x = leaf(&b, node->a, !a_is), y = unary ? 0 : leaf(&b, node->b, !b_is);
        emit(&b,
             unary              ? FORM_UNARY
                 : a_is && b_is ? FORM_BINARY
                 : a_is         ? FORM_BINARY_SCALAR
                                : FORM_SCALAR_BINARY,
             node->op, x, y);
        give_registers(e);
    }
    code->a = run_elements;
    code->elements = e;
    return code;
}
