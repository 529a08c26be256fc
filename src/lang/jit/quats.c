/* SPDX-License-Identifier: MIT */
#include "lang/jit/quats.h"

static const uint32_t plane_bytes[JIT_QUAT_SIZES] = {64, 128};

/* Returns the index of a variable in q->slots; q->n if it is not in the table. */
static uint32_t index_of(const jit_quats *q, uint32_t slot)
{
    uint32_t i = 0;
    while (i < q->n && q->slots[i] != slot) i++;
    return i;
}

static uint32_t add_variable(jit_quats *q, uint32_t slot)
{
    uint32_t i = index_of(q, slot);
    if (i < q->n || i == JIT_QUATS_MAX) return i;
    q->slots[i] = slot;
    q->number[i] = -1;
    return q->n++;
}

bool jit_quats_take(jit_quats *q, const lang_node *assignment)
{
    const lang_node *e = assignment->a;
    bool sum = e->kind == NODE_BINARY && e->op == OP_ADD && e->a->kind == NODE_SLOT && e->b->kind == NODE_SLOT;
    if (!sum || e->a->slot != assignment->slot || e->b->slot == assignment->slot || q->n_adds == JIT_ADDS_MAX)
        return false;
    /* equal slots in different frames are different variables */
    if (e->a->global != assignment->global) return false;
    uint32_t to = add_variable(q, assignment->slot), from = add_variable(q, e->b->slot);
    if (to == JIT_QUATS_MAX || from == JIT_QUATS_MAX) return false;
    if (q->number[to] < 0) q->number[to] = (int8_t)q->n_changed++;
    q->to[q->n_adds] = (uint8_t)to;
    q->from[q->n_adds++] = (uint8_t)from;
    return true;
}

/* ---- emitting code ------------------------------------------------------------------------------ */

/* Holds arguments that the functions below share. */
struct context {
    const jit_quats *q;
    jit_code *c;
    uint32_t plane_bytes, reg_bytes, n_regs; /* bytes of a plane, bytes of a register, number of registers per plane */
};

static struct context context_of(const jit_quats *q, uint32_t size, jit_code *c)
{
    uint32_t reg_bytes = q->wide ? 64 : 32;
    return (struct context){q, c, plane_bytes[size], reg_bytes, plane_bytes[size] / reg_bytes};
}

bool jit_quats_fit(const jit_quats *q, uint32_t size)
{
    return q->n_changed * 2 * context_of(q, size, NULL).n_regs <=
        (q->wide ? 29 : 13); /* three of the 32 or 16 registers hold intermediate values */
}

static void vector(const struct context *x, jit_vector_op op, unsigned to, unsigned a, jit_operand b)
{
    if (x->q->wide)
        jit_evex(x->c, op, to, a, b);
    else
        jit_vex(x->c, op, to, a, b);
}

/* Returns part k of a plane of a vector: a register if the loop changes the vector, else memory at rax. */
static jit_operand part(const struct context *x, uint32_t quat, unsigned plane, unsigned k)
{
    int number = x->q->number[quat];
    if (number >= 0) return jit_in(((unsigned)number * 2 + plane) * x->n_regs + k);
    return jit_at(RAX, (int32_t)(plane * x->plane_bytes + k * x->reg_bytes));
}

static void load_address(const struct context *x, uint32_t quat)
{
    jit_load(x->c, RAX, RDI, (int32_t)(x->q->slots[quat] * sizeof(lang_value)));
    jit_load(x->c, RAX, RAX, offsetof(lang_array, x));
}

/* Emits the addition of one part of b to one part of a: new sign = majority(sign of a, sign of b, extra of a or extra
 * of b), new extra = new sign xor sign of a xor sign of b. */
static void add_part(const struct context *x, unsigned sign, unsigned extra, jit_operand from_sign,
                     jit_operand from_extra)
{
    enum { MAJORITY = 0xE8 };
    unsigned t = x->q->wide ? 29 : 13, u = t + 1, v = t + 2;
    vector(x, V_XOR_BITS, u, sign, from_sign);
    vector(x, V_OR_BITS, t, extra, from_extra);
    if (x->q->wide) {
        jit_evex(x->c, V_TERNARY, sign, t, from_sign);
        jit_u8(x->c, MAJORITY);
    } else {
        vector(x, V_AND_BITS, v, sign, from_sign);
        vector(x, V_AND_BITS, t, t, jit_in(u));
        vector(x, V_OR_BITS, sign, v, jit_in(t));
    }
    vector(x, V_XOR_BITS, extra, sign, jit_in(u));
}

void jit_quats_add(const jit_quats *q, uint32_t size, jit_code *c, const lang_node *assignment)
{
    struct context x = context_of(q, size, c);
    uint32_t to = index_of(q, assignment->slot), from = index_of(q, assignment->a->b->slot);
    if (q->number[from] < 0) load_address(&x, from);
    for (unsigned k = 0; k < x.n_regs; k++)
        add_part(&x, part(&x, to, 0, k).reg, part(&x, to, 1, k).reg, part(&x, from, 0, k), part(&x, from, 1, k));
}

void jit_quats_move(const jit_quats *q, uint32_t size, jit_code *c, bool store)
{
    struct context x = context_of(q, size, c);
    for (uint32_t i = 0; i < q->n; i++) {
        if (q->number[i] < 0) continue;
        load_address(&x, i);
        for (unsigned k = 0; k < 2 * x.n_regs; k++)
            vector(&x, store ? V_STORE : V_LOAD, part(&x, i, 0, k).reg, 0, jit_at(RAX, (int32_t)(k * x.reg_bytes)));
    }
    if (store && q->n) jit_vzeroupper(c);
}

/* ---- choosing the code to run ------------------------------------------------------------------- */

void *jit_quats_choose(const jit_quats *q, const lang_value *frame, uint32_t *words)
{
    uint32_t size = 0;
    for (uint32_t i = 0; i < q->n; i++) {
        const lang_array *a = frame[q->slots[i]].a;
        if (!a || a->n < 1 || (q->number[i] >= 0 && a->refs != 1)) return NULL;
        uint32_t n_bytes = lang_plane_words(a->n) * 8, fits = n_bytes <= plane_bytes[0] ? 0 : 1;
        if (n_bytes > plane_bytes[fits] || (i && fits != size)) return NULL;
        size = fits;
        *words = whit_quat_words(a->n);
    }
    for (uint32_t i = 0; i < q->n_adds; i++) {
        const lang_array *to = frame[q->slots[q->to[i]]].a, *from = frame[q->slots[q->from[i]]].a;
        if (to->n != from->n || to->scale != from->scale) return NULL;
    }
    return q->code[size];
}
