/* SPDX-License-Identifier: MIT
 * Compiles chains of operations on f32 vectors to one loop of AVX2 or AVX-512 code. A chain becomes a list of
 * instructions on values, each of which is computed once. Registers are assigned in the order of the list and are free
 * again after a value's last use. Constants that every round needs stay in registers as long as registers are left.
 * Multiplications and additions are not fused, so results have the same bits as lang/core/scalar.h. Sums have sixteen
 * lanes, which are one register of AVX-512 and two of AVX2. */
#include "lang/jit/vector.h"

#include <math.h>

#include "lang/core/scalar.h"
#include "lang/jit/encode_vector.h"
#include "lang/jit/pages.h"

enum { MICROS_MAX = 400, REGS_MAX = 32, CODE_BYTES = 16384, NONE = 0xFF };

/* Kinds of a source operand: result of another instruction, constant, leaf of the chain. */
enum { OF_VALUE, OF_CONSTANT, OF_LEAF };
struct source {
    uint8_t of;
    uint16_t k;
};

enum { MICRO_PLAIN, MICRO_SHIFT, MICRO_ROUND, MICRO_ONE_IF, MICRO_CUT, MICRO_ZERO_IF };
struct micro {
    uint8_t kind, n_sources, imm; /* imm: byte after the instruction: a predicate, a rounding mode or a shift count */
    const jit_vector_op *op;
    struct source s[3];
};

struct vector_compiler {
    jit_code code;
    lang_elements *e;
    const lang_element_op *ops;
    bool wide; /* the code uses AVX-512 */
    bool full;
    struct micro micros[MICROS_MAX];
    uint32_t n_micros, n_constants;
    struct source of_op[LANG_VALUES];
    /* The members below are used while code is emitted. */
    uint8_t value_reg[MICROS_MAX], leaf_reg[LANG_NATIVE_LEAVES], constant_reg[LANG_CONSTANTS];
    uint16_t value_last[MICROS_MAX], leaf_last[LANG_NATIVE_LEAVES];
    uint32_t n_held; /* number of constants (from 0 on) that stay in registers during the whole loop */
    uint32_t free_regs;
    bool short_of; /* there were too few registers */
};

/* ---- values ------------------------------------------------------------------------------------- */

static struct source constant(struct vector_compiler *v, uint32_t bits)
{
    struct source s = {OF_CONSTANT, 0};
    uint32_t k = v->e->n_scalars, old;
    for (; k < v->n_constants; k++) {
        memcpy(&old, &v->e->constants[k], sizeof old);
        if (old == bits) break;
    }
    if (k == LANG_CONSTANTS) {
        v->full = true;
        return s;
    }
    if (k == v->n_constants) memcpy(&v->e->constants[v->n_constants++], &bits, sizeof bits);
    s.k = (uint16_t)k;
    return s;
}

static struct source make_number(struct vector_compiler *v, float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return constant(v, bits);
}

static bool same(struct source a, struct source b)
{
    return a.of == b.of && a.k == b.k;
}

static struct source make_micro(struct vector_compiler *v, struct micro m)
{
    for (uint32_t i = 0; i < v->n_micros; i++) {
        const struct micro *old = &v->micros[i];
        if (old->kind == m.kind && old->op == m.op && old->imm == m.imm && old->n_sources == m.n_sources &&
            same(old->s[0], m.s[0]) && same(old->s[1], m.s[1]) && same(old->s[2], m.s[2]))
            return (struct source){OF_VALUE, (uint16_t)i};
    }
    if (v->n_micros == MICROS_MAX) {
        v->full = true;
        return (struct source){OF_VALUE, 0};
    }
    v->micros[v->n_micros] = m;
    return (struct source){OF_VALUE, (uint16_t)v->n_micros++};
}

static struct source two(struct vector_compiler *v, const jit_vector_op *op, struct source a, struct source b)
{
    return make_micro(v, (struct micro){.kind = MICRO_PLAIN, .n_sources = 2, .op = op, .s = {a, b}});
}

/* Emits the operations of lang_exp_f32. */
static struct source exponential(struct vector_compiler *v, struct source x)
{
    struct source bounded = two(v, &V_MIN, make_number(v, 88.0f), x);
    struct source magic = make_number(v, 12582912.0f);
    struct source shifted = two(v, &V_ADD, two(v, &V_MUL, bounded, make_number(v, 0x1.715476p+0f)), magic);
    struct source n = two(v, &V_SUB, shifted, magic);
    struct source r = two(v, &V_SUB, bounded, two(v, &V_MUL, n, make_number(v, 0x1.62e000p-1f)));
    r = two(v, &V_SUB, r, two(v, &V_MUL, n, make_number(v, 0x1.0bfbe8p-15f)));
    struct source p =
        two(v, &V_ADD, two(v, &V_MUL, r, make_number(v, 0x1.6c16c2p-10f)), make_number(v, 0x1.111112p-7f));
    p = two(v, &V_ADD, two(v, &V_MUL, p, r), make_number(v, 0x1.555556p-5f));
    p = two(v, &V_ADD, two(v, &V_MUL, p, r), make_number(v, 0x1.555556p-3f));
    p = two(v, &V_ADD, two(v, &V_MUL, p, r), make_number(v, 0.5f));
    struct source y = two(v, &V_MUL, p, two(v, &V_MUL, r, r));
    y = two(v, &V_ADD, two(v, &V_ADD, y, r), make_number(v, 1.0f));
    struct source power = two(v, &V_ADD_I32, shifted, constant(v, 127u - 0x4B400000u));
    power = make_micro(v, (struct micro){.kind = MICRO_SHIFT, .n_sources = 1, .imm = 23, .s = {power}});
    y = two(v, &V_MUL, y, power);
    return make_micro(v, (struct micro){.kind = MICRO_ZERO_IF, .n_sources = 3, .s = {x, make_number(v, -87.0f), y}});
}

static struct source one_plus_exp_of_minus(struct vector_compiler *v, struct source a)
{
    return two(v, &V_ADD, make_number(v, 1.0f), exponential(v, two(v, &V_XOR, a, constant(v, 0x80000000u))));
}

static struct source rounded(struct vector_compiler *v, struct source a, uint8_t mode)
{
    return make_micro(v, (struct micro){.kind = MICRO_ROUND, .n_sources = 1, .imm = mode, .op = &V_ROUND, .s = {a}});
}

/* Numbers of C's comparisons as predicates of AVX instructions. */
enum { IS_EQ = 0, IS_LT = 1, IS_LE = 2, IS_NE = 4, IS_NOT_LT = 5, IS_GE = 13, IS_GT = 14 };

static struct source unary(struct vector_compiler *v, uint8_t op, struct source a)
{
    enum { NEAREST = 8, DOWN = 9, UP = 10 };
    switch (op) {
    case OP_NEG: return two(v, &V_XOR, a, constant(v, 0x80000000u));
    case OP_ABS: return two(v, &V_AND, a, constant(v, 0x7FFFFFFFu));
    case OP_SQRT: return make_micro(v, (struct micro){.kind = MICRO_PLAIN, .n_sources = 1, .op = &V_SQRT, .s = {a}});
    case OP_EXP: return exponential(v, a);
    case OP_SIGMOID: return two(v, &V_DIV, make_number(v, 1.0f), one_plus_exp_of_minus(v, a));
    case OP_SILU: return two(v, &V_DIV, a, one_plus_exp_of_minus(v, a));
    case OP_RELU: return two(v, &V_MAX, a, make_number(v, 0.0f));
    case OP_FLOOR: return rounded(v, a, DOWN);
    case OP_CEIL: return rounded(v, a, UP);
    case OP_ROUND: return rounded(v, a, NEAREST);
    /* Other operations are not compiled, because they are functions of the C library. */
    default: v->full = true; return a;
    }
}

static struct source binary(struct vector_compiler *v, uint8_t op, struct source a, struct source b)
{
    static const uint8_t predicates[] = {
        [OP_LT] = IS_LT, [OP_LE] = IS_LE, [OP_GT] = IS_GT, [OP_GE] = IS_GE, [OP_EQ] = IS_EQ, [OP_NE] = IS_NE};
    switch (op) {
    case OP_ADD: return two(v, &V_ADD, a, b);
    case OP_SUB: return two(v, &V_SUB, a, b);
    case OP_MUL: return two(v, &V_MUL, a, b);
    case OP_DIV: return two(v, &V_DIV, a, b);
    case OP_MIN: return two(v, &V_MIN, a, b);
    case OP_MAX: return two(v, &V_MAX, a, b);
    case OP_CUT:
        return make_micro(v, (struct micro){.kind = MICRO_CUT, .n_sources = 3, .s = {a, b, make_number(v, -INFINITY)}});
    default:
        return make_micro(
            v,
            (struct micro){
                .kind = MICRO_ONE_IF, .n_sources = 3, .imm = predicates[op], .s = {a, b, make_number(v, 1.0f)}});
    }
}

static struct source operand(const struct vector_compiler *v, uint8_t k, bool scalar)
{
    if (scalar) return (struct source){OF_CONSTANT, k};
    return k < LANG_LEAVES ? (struct source){OF_LEAF, k} : v->of_op[k - LANG_LEAVES];
}

static void lower(struct vector_compiler *v)
{
    const lang_elements *e = v->e;
    for (uint32_t i = 0; i < e->n_ops && !v->full; i++) {
        const lang_element_op *op = &v->ops[i];
        struct source a = operand(v, op->a, op->form == LANG_SCALAR_BINARY);
        if (op->form == LANG_UNARY)
            v->of_op[i] = unary(v, op->op, a);
        else
            v->of_op[i] = binary(v, op->op, a, operand(v, op->b, op->form == LANG_BINARY_SCALAR));
    }
}

/* ---- registers ---------------------------------------------------------------------------------- */

static uint8_t take_reg(struct vector_compiler *v)
{
    if (!v->free_regs) {
        v->short_of = true;
        return 0;
    }
    uint8_t reg = (uint8_t)__builtin_ctz(v->free_regs);
    v->free_regs &= v->free_regs - 1;
    return reg;
}

static void find_last_uses(struct vector_compiler *v)
{
    memset(v->value_last, 0, sizeof v->value_last);
    memset(v->leaf_last, 0, sizeof v->leaf_last);
    for (uint32_t i = 0; i < v->n_micros; i++)
        for (uint32_t k = 0; k < v->micros[i].n_sources; k++) {
            struct source s = v->micros[i].s[k];
            if (s.of == OF_VALUE) v->value_last[s.k] = (uint16_t)i;
            if (s.of == OF_LEAF) v->leaf_last[s.k] = (uint16_t)i;
        }
    v->value_last[v->of_op[v->e->n_ops - 1].k] = UINT16_MAX; /* the register of the result is never freed */
}

/* ---- emitting code ------------------------------------------------------------------------------ */

/* Base registers of the leaves. rdi holds the address of the call's arguments, later of the constants; rax holds the
 * number of bytes done, rcx of all bytes, rdx the address of the result or of the lanes. */
static const uint8_t leaf_bases[LANG_NATIVE_LEAVES] = {RSI, R8, R9, R10, R11, RBX};

static void op3(struct vector_compiler *v, const jit_vector_op *op, unsigned to, unsigned a, jit_operand b)
{
    if (v->wide)
        jit_evex(&v->code, *op, to, a, b);
    else
        jit_vex(&v->code, *op, to, a, b);
}

static void broadcast(struct vector_compiler *v, unsigned to, uint32_t k)
{
    op3(v, &V_BROADCAST, to, 0, jit_at(RDI, (int32_t)(k * sizeof(float))));
}

/* Returns a register that contains a source for instruction `at`, after loading it if needed; sets *passing if nothing
 * reads the register after that instruction. */
static uint8_t in_register(struct vector_compiler *v, struct source s, uint32_t at, int32_t offset, bool *passing)
{
    uint8_t reg;
    *passing = false;
    switch (s.of) {
    case OF_CONSTANT:
        if (v->constant_reg[s.k] != NONE) return v->constant_reg[s.k];
        *passing = true;
        reg = take_reg(v);
        broadcast(v, reg, s.k);
        return reg;
    case OF_LEAF:
        if (v->leaf_reg[s.k] == NONE) {
            v->leaf_reg[s.k] = take_reg(v);
            op3(v, &V_LOAD, v->leaf_reg[s.k], 0, jit_at_index((jit_reg)leaf_bases[s.k], offset));
        }
        reg = v->leaf_reg[s.k];
        *passing = v->leaf_last[s.k] == at;
        if (*passing) v->leaf_reg[s.k] = NONE;
        return reg;
    default: *passing = v->value_last[s.k] == at; return v->value_reg[s.k];
    }
}

static void masked_op(struct vector_compiler *v, const struct micro *m, unsigned to, const uint8_t *s)
{
    enum { K1 = 1 };
    jit_code *c = &v->code;
    uint8_t predicate = IS_NOT_LT;
    if (m->kind == MICRO_ONE_IF)
        predicate = m->imm;
    else if (m->kind == MICRO_CUT)
        predicate = IS_LT;
    if (v->wide) {
        jit_evex(c, V_COMPARE, K1, s[0], jit_in(s[1]));
        jit_u8(c, predicate);
        if (m->kind == MICRO_CUT)
            jit_evex_masked(c, V_BLEND_K, to, s[0], jit_in(s[2]), K1, false, 64);
        else
            jit_evex_masked(c, V_MOVE, to, 0, jit_in(s[2]), K1, true, 64);
        return;
    }
    jit_vex(c, V_COMPARE, to, s[0], jit_in(s[1]));
    jit_u8(c, predicate);
    if (m->kind == MICRO_CUT) {
        jit_vex(c, V_BLEND, to, s[0], jit_in(s[2]));
        jit_u8(c, to << 4);
    } else
        jit_vex(c, V_AND, to, to, jit_in(s[2]));
}

static void one_micro(struct vector_compiler *v, uint32_t at, int32_t offset)
{
    const struct micro *m = &v->micros[at];
    jit_code *c = &v->code;
    uint8_t s[3] = {0}, given[3], to = 0;
    bool passing[3] = {false};
    uint32_t n_given = 0;
    jit_operand last = {0};
    for (uint32_t k = 0; k < m->n_sources; k++) {
        bool twice = false;
        for (uint32_t j = 0; j < k; j++)
            if (same(m->s[j], m->s[k])) {
                s[k] = s[j];
                twice = true;
            }
        bool lone_leaf = m->kind == MICRO_PLAIN && k + 1 == m->n_sources && m->s[k].of == OF_LEAF && !twice &&
            v->leaf_reg[m->s[k].k] == NONE && v->leaf_last[m->s[k].k] == at;
        if (lone_leaf)
            last = jit_at_index((jit_reg)leaf_bases[m->s[k].k], offset);
        else if (!twice)
            s[k] = in_register(v, m->s[k], at, offset, &passing[k]);
        if (passing[k]) given[n_given++] = s[k];
    }
    if (!last.memory && m->n_sources) last = jit_in(s[m->n_sources - 1]);
    bool keeps = m->kind >= MICRO_ONE_IF; /* the instruction writes its result register before it has read all sources,
                                           * so that register must be a free one */
    if (keeps) to = take_reg(v);
    for (uint32_t i = 0; i < n_given; i++) v->free_regs |= 1u << given[i];
    if (!keeps) to = take_reg(v);
    v->value_reg[at] = to;
    if (m->kind == MICRO_PLAIN)
        op3(v, m->op, to, m->n_sources == 2 ? s[0] : 0, last);
    else if (m->kind == MICRO_SHIFT) {
        op3(v, &V_SHIFT_I32, 6, to, last);
        jit_u8(c, m->imm);
    } else if (m->kind == MICRO_ROUND) {
        op3(v, &V_ROUND, to, 0, last);
        jit_u8(c, m->imm);
    } else
        masked_op(v, m, to, s);
}

/* Emits the code for the elements of one register, which begin `offset` bytes after the first element of the round. */
static void body(struct vector_compiler *v, int32_t offset, uint8_t lanes)
{
    memset(v->leaf_reg, NONE, sizeof v->leaf_reg);
    uint32_t free_before = v->free_regs;
    for (uint32_t i = 0; i < v->n_micros; i++) one_micro(v, i, offset);
    uint8_t result = v->value_reg[v->of_op[v->e->n_ops - 1].k];
    if (v->e->as == LANG_AS_SUM)
        op3(v, &V_ADD, lanes, lanes, jit_in(result));
    else if (v->e->as == LANG_AS_LARGEST)
        op3(v, &V_MAX, lanes, result, jit_in(lanes));
    else
        op3(v, &V_STORE, result, 0, jit_at_index(RDX, offset));
    v->free_regs = free_before;
}

/* Emits the whole loop, with the constants 0 to n_held - 1 in registers; returns false if there are too few registers,
 * or the code is too long. */
static bool emit_all(struct vector_compiler *v, uint32_t n_held)
{
    enum { ROUND_BYTES = 64, ALIGN = 32 };
    jit_code *c = &v->code;
    int32_t width = v->wide ? 64 : 32;
    uint8_t lanes[2] = {0};
    c->n = 0;
    c->full = v->short_of = false;
    v->free_regs = v->wide ? UINT32_MAX : 0xFFFF;
    memset(v->constant_reg, NONE, sizeof v->constant_reg);
    jit_push(c, RBX);
    for (uint32_t k = 0; k < v->e->n_leaves; k++)
        jit_load(c, (jit_reg)leaf_bases[k], RDI, (int32_t)(offsetof(lang_elements_call, x) + k * sizeof(float *)));
    jit_load(c, RCX, RDI, offsetof(lang_elements_call, n_bytes));
    bool sums = v->e->as != LANG_AS_VECTOR;
    jit_load(c, RDX, RDI, sums ? offsetof(lang_elements_call, lanes) : offsetof(lang_elements_call, out));
    jit_load(c, RDI, RDI, offsetof(lang_elements_call, constants));
    for (int i = 0; sums && i < ROUND_BYTES / width; i++) {
        lanes[i] = take_reg(v);
        op3(v, &V_LOAD, lanes[i], 0, jit_at(RDX, i * width));
    }
    for (uint32_t k = 0; k < n_held; k++) {
        v->constant_reg[k] = take_reg(v);
        broadcast(v, v->constant_reg[k], k);
    }
    jit_mov_imm(c, RAX, 0);
    jit_align(c, ALIGN);
    size_t top = c->n;
    for (int i = 0; i < ROUND_BYTES / width; i++) body(v, i * width, lanes[i]);
    jit_alu_imm(c, ALU_ADD, RAX, ROUND_BYTES);
    jit_alu_reg(c, ALU_CMP, RAX, RCX);
    jit_aim(c, jit_jump_if(c, CC_L), top);
    for (int i = 0; sums && i < ROUND_BYTES / width; i++) op3(v, &V_STORE, lanes[i], 0, jit_at(RDX, i * width));
    jit_vzeroupper(c);
    jit_pop(c, RBX);
    jit_ret(c);
    return !v->short_of && !c->full;
}

void jit_compile_elements(lang_compiler *outer, const lang_node *node, lang_elements *e, const lang_element_op *ops)
{
    whit_lang *vm = outer->vm;
    whit_isa isa = vm->options.quat->isa;
    if (!whit_isa_allows(isa, WHIT_ISA_AVX2) || e->n_leaves > LANG_NATIVE_LEAVES) return;
    struct vector_compiler *v = whit_alloc(vm->options.allocator, sizeof *v);
    uint8_t *bytes = whit_alloc(vm->options.allocator, CODE_BYTES);
    if (v && bytes) {
        v->code = (jit_code){.bytes = bytes, .capacity = CODE_BYTES};
        v->e = e;
        v->ops = ops;
        v->wide = whit_isa_allows(isa, WHIT_ISA_AVX512);
        v->full = false;
        v->n_micros = 0;
        v->n_constants = e->n_scalars;
        lower(v);
        if (!v->full) find_last_uses(v);
        uint32_t n_held = v->n_constants;
        bool done = !v->full;
        while (done && !emit_all(v, n_held)) done = n_held-- > 0;
        void *code = done ? jit_seal(vm, node, "elements", &v->code) : NULL;
        memcpy(&e->native, &code, sizeof code);
    }
    whit_free(vm->options.allocator, bytes, CODE_BYTES);
    whit_free(vm->options.allocator, v, sizeof *v);
}
