/* SPDX-License-Identifier: MIT
 * Runs a chain of operations on vectors as one loop over chunks that stay in the L1 cache. The chain is a program of a
 * register machine, in which equal values are computed once. The operands of a chain are evaluated first, from left to
 * right. */
#include "lang/core/chunk.h"
#include "lang/core/code.h"

struct builder {
    lang_compiler *c;
    lang_elements *e;
    uint32_t max_depth;
    lang_node *leaf_nodes[LANG_LEAVES], *scalar_nodes[LANG_LEAVES];
    uint8_t of_value[LANG_VALUES]; /* for each value, a leaf that has the same length */
    uint8_t like[LANG_LEAVES];     /* leaves whose lengths are known to be equal have the same number */
    lang_element_op values[LANG_VALUES];
    bool full;
};

enum { VALUE = LANG_LEAVES }; /* operands from VALUE on are values, lower ones are leaves */

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
    if (*n == LANG_LEAVES) {
        b->full = true;
        return 0;
    }
    nodes[*n] = node;
    if (!scalar) b->like[*n] = (uint8_t)*n;
    if (scalar && node->kind == NODE_FLOAT)
        b->e->constants[*n] = (float)node->f;
    else
        b->e->reads[b->e->n_reads++] = (lang_element_read){scalar ? LANG_READ_SCALAR : LANG_READ_LEAF, (uint8_t)*n};
    return (uint8_t)(*n)++;
}

static uint8_t leaf_of(const struct builder *b, uint8_t x)
{
    return x < VALUE ? x : b->of_value[x - VALUE];
}

/* Adds a check that two vectors have the same length, unless earlier checks imply it. */
static void meet(struct builder *b, const lang_node *at, uint8_t x, uint8_t y)
{
    uint8_t from = b->like[leaf_of(b, y)], to = b->like[leaf_of(b, x)];
    if (from == to) return;
    b->e->reads[b->e->n_reads++] = (lang_element_read){LANG_SAME_LENGTH, leaf_of(b, x), leaf_of(b, y), at};
    for (uint32_t i = 0; i < b->e->n_leaves; i++)
        if (b->like[i] == from) b->like[i] = to;
}

static uint8_t emit(struct builder *b, uint8_t form, uint8_t op, uint8_t x, uint8_t y)
{
    lang_elements *e = b->e;
    if (b->full) return VALUE;
    for (uint32_t i = 0; i < e->n_ops; i++) {
        const lang_element_op *old = &e->ops[i];
        if (old->form == form && old->op == op && old->a == x && old->b == y) return (uint8_t)(VALUE + i);
    }
    if (e->n_ops == LANG_VALUES) {
        b->full = true;
        return VALUE;
    }
    e->ops[e->n_ops] = (lang_element_op){form, op, 0, x, y};
    b->of_value[e->n_ops] = leaf_of(b, form == LANG_SCALAR_BINARY ? y : x);
    return (uint8_t)(VALUE + e->n_ops++);
}

static uint8_t build_element(struct builder *b, lang_node *node, uint32_t depth)
{
    if (b->full) return 0;
    if (!is_elementwise(node) || depth == b->max_depth) return leaf(b, node, false);
    if (node->kind == NODE_UNARY) return emit(b, LANG_UNARY, node->op, build_element(b, node->a, depth + 1), 0);
    bool a_is = node->a->type == WHIT_LANG_VEC, b_is = node->b->type == WHIT_LANG_VEC;
    uint8_t x = a_is ? build_element(b, node->a, depth + 1) : leaf(b, node->a, true);
    uint8_t y = b_is ? build_element(b, node->b, depth + 1) : leaf(b, node->b, true);
    if (a_is && b_is && !b->full) meet(b, node, x, y);
    int form = LANG_SCALAR_BINARY;
    if (a_is && b_is)
        form = LANG_BINARY;
    else if (a_is)
        form = LANG_BINARY_SCALAR;
    return emit(b, form, node->op, x, y);
}

/* Replaces numbers of values by numbers of registers; a register is free after the last use of its value. Returns false
 * if there are too few registers. */
static bool give_registers(lang_elements *e)
{
    uint32_t last[LANG_VALUES] = {0};
    uint8_t reg[LANG_VALUES];
    bool used[LANG_REGISTERS] = {false};
    for (uint32_t i = 0; i < e->n_ops; i++) {
        const lang_element_op *in = &e->ops[i];
        if (in->form != LANG_SCALAR_BINARY && in->a >= VALUE) last[in->a - VALUE] = i;
        if (in->form != LANG_UNARY && in->form != LANG_BINARY_SCALAR && in->b >= VALUE) last[in->b - VALUE] = i;
    }
    for (uint32_t i = 0; i < e->n_ops; i++) {
        lang_element_op *in = &e->ops[i];
        uint8_t *operands[2] = {in->form == LANG_SCALAR_BINARY ? NULL : &in->a,
                                in->form == LANG_UNARY || in->form == LANG_BINARY_SCALAR ? NULL : &in->b};
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

/* Computes n <= LANG_CHUNK elements; returns their address, which is `out` or, if `out` is NULL, a register. */
static const float *run_chunk(const whit_lang *vm, const lang_elements *e, const float *const *x, uint32_t n,
                              float *out)
{
    const lang_chunk_kernels *k = vm->kernels;
    float *to = out;
    for (uint32_t i = 0; i < e->n_ops; i++) {
        const lang_element_op *op = &e->ops[i];
        to = out && i + 1 == e->n_ops ? out : vm->chunks + (size_t)(op->to - VALUE) * LANG_CHUNK;
        switch (op->form) {
        case LANG_BINARY: k->binary[op->op](to, x[op->a], x[op->b], n); break;
        case LANG_BINARY_SCALAR: k->binary_scalar[op->op](to, x[op->a], e->constants[op->b], n); break;
        case LANG_SCALAR_BINARY: k->scalar_binary[op->op](to, e->constants[op->a], x[op->b], n); break;
        default: k->unary[op->op](to, x[op->a], n); break;
        }
    }
    return to;
}

/* Computes the elements from `begin` on, chunk by chunk: writes them to `out`, or adds them to `lanes` or keeps the
 * largest ones there. */
static void run_chunks(const lang_code *c, lang_array *const *arrays, uint32_t begin, float *out, float *lanes)
{
    whit_lang *vm = c->vm;
    const lang_elements *e = c->elements;
    const float *x[LANG_LEAVES + LANG_REGISTERS];
    for (uint32_t r = 0; r < LANG_REGISTERS; r++) x[LANG_LEAVES + r] = vm->chunks + (size_t)r * LANG_CHUNK;
    for (uint32_t at = begin, end = arrays[0]->n; at < end; at += LANG_CHUNK) {
        uint32_t n = end - at < LANG_CHUNK ? end - at : LANG_CHUNK;
        lang_look(vm, c->node, at - begin);
        for (uint32_t k = 0; k < e->n_leaves; k++) x[k] = arrays[k]->x + at;
        const float *y = run_chunk(vm, e, x, n, out ? out + at : NULL);
        if (e->as == LANG_AS_SUM) vm->kernels->sum(lanes, y, n);
        if (e->as == LANG_AS_LARGEST && at == 0) lang_lanes_begin(lanes, y, n);
        if (e->as == LANG_AS_LARGEST) vm->kernels->largest(lanes, y, n);
    }
}

enum { BLOCK = 16 };

/* Computes all elements. If there is machine code and there are at least two blocks of sixteen elements, it computes
 * the whole blocks (except the first block if the largest element is wanted), and run_chunks computes the rest. */
static void run_all(const lang_code *c, lang_array *const *arrays, float *out, float *lanes)
{
    const whit_lang *vm = c->vm;
    const lang_elements *e = c->elements;
    uint32_t begin = 0, n = arrays[0]->n;
    if (e->native && n >= 2 * BLOCK) {
        if (e->as == LANG_AS_LARGEST) {
            const float *x[LANG_LEAVES + LANG_REGISTERS];
            for (uint32_t r = 0; r < LANG_REGISTERS; r++) x[LANG_LEAVES + r] = vm->chunks + (size_t)r * LANG_CHUNK;
            for (uint32_t k = 0; k < e->n_leaves; k++) x[k] = arrays[k]->x;
            lang_lanes_begin(lanes, run_chunk(vm, e, x, BLOCK, NULL), BLOCK);
            begin = BLOCK;
        }
        lang_elements_call call = {.constants = e->constants, .lanes = lanes, .out = out ? out + begin : NULL};
        for (uint32_t k = 0; k < e->n_leaves; k++) call.x[k] = arrays[k]->x + begin;
        call.n_bytes = (size_t)(n - begin) / BLOCK * BLOCK * sizeof(float);
        e->native(&call);
        begin = n / BLOCK * BLOCK;
    }
    if (begin < n) run_chunks(c, arrays, begin, out, lanes);
}

/* Evaluates the operands of the chain. References to variables of the frame are not counted: nothing assigns to them
 * while the chain runs. */
static void read_operands(const lang_code *c, lang_value *frame, lang_array **arrays)
{
    lang_elements *e = c->elements;
    float scalars[LANG_LEAVES];
    for (uint32_t i = 0; i < e->n_reads; i++) {
        const lang_element_read *read = &e->reads[i];
        uint8_t k = read->a;
        if (read->what == LANG_SAME_LENGTH)
            lang_same_length(c->vm, read->at, arrays[k], arrays[read->b]);
        else if (read->what == LANG_READ_SCALAR)
            scalars[k] = (float)e->scalars[k]->f(e->scalars[k], frame);
        else if (e->slots[k] >= 0)
            arrays[k] = lang_array_of(c->vm, e->leaves[k]->node, frame[e->slots[k]].a);
        else
            arrays[k] = e->leaves[k]->a(e->leaves[k], frame);
    }
    /* The scalars are stored only now, because evaluating an operand may have run this same chain recursively. */
    for (uint32_t i = 0; i < e->n_reads; i++)
        if (e->reads[i].what == LANG_READ_SCALAR) e->constants[e->reads[i].a] = scalars[e->reads[i].a];
}

static void release_operands(whit_lang *vm, const lang_elements *e, lang_array **arrays)
{
    for (uint32_t k = 0; k < e->n_leaves; k++)
        if (e->slots[k] < 0) lang_release(vm, arrays[k]);
}

/* Returns an array that may be overwritten with the result: the assigned variable's array or an intermediate value, if
 * nothing else refers to it; otherwise NULL. The variable's array is not used if the run may be stopped in the middle
 * of the elements, because the variable must then keep its value. */
static lang_array *reusable(const lang_code *c, const lang_value *frame, lang_array *const *arrays)
{
    const lang_elements *e = c->elements;
    lang_array *target = c->n ? frame[c->target].a : NULL;
    bool whole = e->native || arrays[0]->n <= LANG_LOOK;
    if (target && whole && target->refs == 1 && target->n == arrays[0]->n) return target;
    for (uint32_t k = 0; k < e->n_leaves; k++)
        if (e->slots[k] < 0 && arrays[k]->refs == 1) return arrays[k];
    return NULL;
}

static lang_array *run_elements(const lang_code *c, lang_value *frame)
{
    lang_array *arrays[LANG_LEAVES];
    read_operands(c, frame, arrays);
    lang_array *out = reusable(c, frame, arrays);
    if (out) {
        lang_step(c->vm, c->node, out->n / 64 + 1);
        out->refs++;
    } else
        out = lang_new_vec(c->vm, c->node, arrays[0]->n);
    run_all(c, arrays, out->x, NULL);
    release_operands(c->vm, c->elements, arrays);
    return out;
}

bool lang_elements_in_place(const lang_code *c, lang_value *frame)
{
    const lang_elements *e = c->elements;
    const lang_array *out = frame[c->target].a;
    if (!out || out->refs != 1 || out->n < BLOCK || out->n % BLOCK) return false;
    lang_elements_call call = {.out = out->x, .constants = e->constants, .n_bytes = (size_t)out->n * sizeof(float)};
    for (uint32_t k = 0; k < e->n_leaves; k++) {
        const lang_array *a = frame[e->slots[k]].a;
        if (!a || a->n != out->n) return false;
        call.x[k] = a->x;
    }
    lang_step(c->vm, c->node, out->n / 64 + 1);
    e->native(&call);
    return true;
}

static double run_reduction(const lang_code *c, lang_value *frame)
{
    lang_array *arrays[LANG_LEAVES];
    const lang_elements *e = c->elements;
    read_operands(c, frame, arrays);
    float lanes[16] = {0};
    uint32_t n = arrays[0]->n;
    lang_step(c->vm, c->node, n / 64 + 1);
    if (!n && e->as == LANG_AS_LARGEST)
        lang_raise(c->vm, c->node, WHIT_ERROR_ARGUMENT, "an empty vector has no such element");
    run_all(c, arrays, NULL, lanes);
    release_operands(c->vm, e, arrays);
    if (e->as == LANG_AS_LARGEST) return lang_lanes_largest(lanes);
    double sum = lang_lanes_total(lanes);
    return c->node->op == FN_MEAN ? sum / n : sum;
}

/* Compiles the chain of a node, as many levels of the tree as one loop supports; deeper levels become chains of their
 * own. */
static lang_elements *compile_chain(lang_compiler *c, lang_node *node, uint8_t as)
{
    const whit_allocator *allocator = c->vm->options.allocator;
    lang_elements *e = c->failed ? NULL : lang_arena_take(&c->vm->arena, sizeof *e);
    struct builder *b = e ? whit_alloc(allocator, sizeof *b) : NULL;
    const whit_lang_jit *jit = c->vm->options.tier >= WHIT_LANG_NATIVE ? c->vm->options.jit : NULL;
    if (!b) {
        c->vm->arena.failed |= e != NULL; /* memory is exhausted, as opposed to the arena's limit */
        c->failed = true;
        return NULL;
    }
    for (uint32_t depth = LANG_REGISTERS - 2; depth > 0; depth /= 2) { /* a chain of one level always fits */
        *e = (lang_elements){.as = as};
        *b = (struct builder){.c = c, .e = e, .max_depth = depth};
        build_element(b, node, 0);
        memcpy(b->values, e->ops, sizeof b->values);
        if (!b->full && give_registers(e)) break;
    }
    e->is_simple = true;
    for (uint32_t k = 0; k < e->n_leaves; k++) {
        lang_node *leaf = b->leaf_nodes[k];
        e->leaves[k] = lang_compile_expression(c, leaf);
        e->slots[k] = leaf->kind == NODE_SLOT && lang_in_frame(c, leaf) ? (int32_t)leaf->slot : -1;
        e->is_simple &= e->slots[k] >= 0;
    }
    for (uint32_t k = 0; k < e->n_scalars; k++) {
        e->scalars[k] = lang_compile_expression(c, b->scalar_nodes[k]);
        e->is_simple &= b->scalar_nodes[k]->kind == NODE_FLOAT;
    }
    if (jit && !c->failed) jit->compile_elements(c, node, e, b->values);
    whit_free(allocator, b, sizeof *b);
    return e;
}

const lang_code *lang_compile_elements(lang_compiler *c, lang_node *node)
{
    lang_code *code = lang_code_new(c, node);
    if (c->failed) return code;
    code->elements = compile_chain(c, node, LANG_AS_VECTOR);
    code->a = run_elements;
    return code;
}

const lang_code *lang_compile_reduction(lang_compiler *c, lang_node *node)
{
    lang_node *a = node->a, *product;
    uint8_t as = node->op == FN_LARGEST ? LANG_AS_LARGEST : LANG_AS_SUM;
    if (node->op == FN_DOT && a->type == WHIT_LANG_VEC && (is_elementwise(a) || is_elementwise(a->next))) {
        if (!(product = lang_arena_take(&c->vm->arena, sizeof *product))) return NULL;
        *product = *node;
        product->kind = NODE_BINARY;
        product->op = OP_MUL;
        product->type = WHIT_LANG_VEC;
        product->b = a->next;
        a = product;
    } else if ((node->op != FN_SUM && node->op != FN_MEAN && node->op != FN_LARGEST) || !is_elementwise(a))
        return NULL;
    lang_code *code = lang_code_new(c, node);
    if (c->failed) return code;
    code->elements = compile_chain(c, a, as);
    code->f = run_reduction;
    return code;
}
