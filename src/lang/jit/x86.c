/* SPDX-License-Identifier: MIT
 * Compiles loops over integers to machine code.
 *
 * rdi holds the frame, rsi the session, r15 the session's `fuel`. The variables with the most uses stay in the other
 * registers during the whole loop; a use counts ten times more for each loop around it. All other variables stay in the
 * frame. rax, rcx and rdx hold intermediate values of expressions. All variables are written back before any code that
 * may end the run. */
#include "lang/jit/jit.h"

#include "lang/core/code.h"
#include "lang/jit/encode.h"
#include "lang/jit/pages.h"
#include "lang/jit/quats.h"
#include "lang/jit/vector.h"

enum { CODE_BYTES = 65536, SLOTS_MAX = 64, FIXES_MAX = 256, LOOP_ALIGN = 32 };

static const uint8_t home_regs[] = {RBX, RBP, R8, R9, R10, R11, R12, R13, R14};
enum { N_HOMES = sizeof home_regs };

struct variable {
    uint32_t slot;
    double weight;
    int reg; /* register number; -1: the variable stays in the frame */
};

/* Describes code outside the main path: it checks the limits, or reports a division by zero. */
struct aside {
    size_t from, back;
    const lang_node *node;
    bool division;
};

struct loop {
    size_t breaks[FIXES_MAX], continues[FIXES_MAX];
    uint32_t n_breaks, n_continues;
};

struct compiler {
    jit_code code;
    jit_quats quats;
    uint32_t quat_size; /* index of the vector size for which code is being generated */
    struct variable variables[SLOTS_MAX];
    uint32_t n_variables;
    struct aside asides[FIXES_MAX];
    uint32_t n_asides;
    struct loop *loop;
    const lang_node *exact; /* a division that leaves no remainder, because a condition has tested that; NULL: no such
                             * division is known */
    const lang_compiler *outer;
    bool failed;
};

/* ---- programs that can be compiled ------------------------------------------------------------------------ */

static bool use(struct compiler *c, const lang_node *node, uint32_t slot, double weight)
{
    if (c->outer->function && node->global) return false;
    uint32_t i = 0;
    while (i < c->n_variables && c->variables[i].slot != slot) i++;
    if (i == SLOTS_MAX) return false;
    if (i == c->n_variables) c->variables[c->n_variables++] = (struct variable){slot, 0, -1};
    c->variables[i].weight += weight;
    return true;
}

static bool fits_expression(struct compiler *c, const lang_node *e, double weight)
{
    if (e->type != WHIT_LANG_INT) return false;
    switch (e->kind) {
    case NODE_INT: return true;
    case NODE_SLOT: return use(c, e, e->slot, weight);
    case NODE_KEEP: return use(c, e, e->slot, weight) && fits_expression(c, e->a, weight);
    case NODE_UNARY: return e->op != OP_INT && fits_expression(c, e->a, weight);
    case NODE_BINARY:
    case NODE_ALSO:
    case NODE_ELSE: return fits_expression(c, e->a, weight) && fits_expression(c, e->b, weight);
    default: return false;
    }
}

static bool assigns(const lang_node *s, uint32_t slot)
{
    for (; s; s = s->next)
        if ((s->kind == NODE_ASSIGN && s->slot == slot) || (s->kind == NODE_BLOCK && assigns(s->a, slot)) ||
            (s->kind == NODE_IF && (assigns(s->b, slot) || (s->c && assigns(s->c, slot)))) ||
            (s->kind == NODE_WHILE && assigns(s->b, slot)) || (s->kind == NODE_FOR && assigns(s->c, slot)))
            return true;
    return false;
}

static bool fits_quats(struct compiler *c, const lang_node *s)
{
    if (!whit_isa_allows(c->outer->vm->options.quat->isa, WHIT_ISA_AVX2)) return false;
    return jit_quats_take(&c->quats, s) && !(c->outer->function && s->a->b->global);
}

static bool fits(struct compiler *c, const lang_node *s, double weight)
{
    switch (s->kind) {
    case NODE_BLOCK:
        for (const lang_node *inner = s->a; inner; inner = inner->next)
            if (!fits(c, inner, weight)) return false;
        return true;
    case NODE_ASSIGN:
        if (s->type == WHIT_LANG_QUAT) return fits_quats(c, s);
        return s->type == WHIT_LANG_INT && use(c, s, s->slot, weight) && fits_expression(c, s->a, weight);
    case NODE_IF: return fits_expression(c, s->a, weight) && fits(c, s->b, weight) && (!s->c || fits(c, s->c, weight));
    case NODE_WHILE: return fits_expression(c, s->a, 10 * weight) && fits(c, s->b, 10 * weight);
    case NODE_FOR:
        return use(c, s, s->slot, 20 * weight) && use(c, s, s->slot + 1, 10 * weight) &&
            fits_expression(c, s->a, weight) && fits_expression(c, s->b, weight) && fits(c, s->c, 10 * weight) &&
            !assigns(s->c, s->slot);
    case NODE_BREAK:
    case NODE_CONTINUE: return true;
    default: return false;
    }
}

static void give_registers(struct compiler *c)
{
    for (uint32_t r = 0; r < N_HOMES; r++) {
        int best = -1;
        for (uint32_t i = 0; i < c->n_variables; i++)
            if (c->variables[i].reg < 0 && (best < 0 || c->variables[i].weight > c->variables[best].weight))
                best = (int)i;
        if (best < 0) return;
        c->variables[best].reg = home_regs[r];
    }
}

/* ---- expressions -------------------------------------------------------------------------------- */

static const struct variable *variable_of(const struct compiler *c, uint32_t slot)
{
    uint32_t i = 0;
    while (c->variables[i].slot != slot) i++;
    return &c->variables[i];
}

static int32_t place_of_slot(uint32_t slot)
{
    return (int32_t)(slot * sizeof(lang_value));
}

static void load_slot(struct compiler *c, jit_reg to, uint32_t slot)
{
    const struct variable *v = variable_of(c, slot);
    if (v->reg < 0)
        jit_load(&c->code, to, RDI, place_of_slot(slot));
    else if (v->reg != (int)to)
        jit_mov(&c->code, to, (jit_reg)v->reg);
}

static void store_slot(struct compiler *c, uint32_t slot, jit_reg from)
{
    const struct variable *v = variable_of(c, slot);
    if (v->reg < 0)
        jit_store(&c->code, RDI, place_of_slot(slot), from);
    else if (v->reg != (int)from)
        jit_mov(&c->code, (jit_reg)v->reg, from);
}

static bool is_simple(const lang_node *e)
{
    return e->kind == NODE_SLOT || (e->kind == NODE_INT && jit_is_i32(e->i));
}

static void load_simple(struct compiler *c, jit_reg to, const lang_node *e)
{
    if (e->kind == NODE_INT)
        jit_mov_imm(&c->code, to, e->i);
    else
        load_slot(c, to, e->slot);
}

static void alu_simple(struct compiler *c, jit_alu op, jit_reg to, const lang_node *e)
{
    if (e->kind == NODE_INT) {
        jit_alu_imm(&c->code, op, to, (int32_t)e->i);
        return;
    }
    const struct variable *v = variable_of(c, e->slot);
    if (v->reg < 0)
        jit_alu_memory(&c->code, op, to, RDI, place_of_slot(e->slot));
    else
        jit_alu_reg(&c->code, op, to, (jit_reg)v->reg);
}

static void emit_value(struct compiler *c, const lang_node *e); /* emits code that leaves the value in rax */

/* Emits code that evaluates a into rax and b into rcx. */
static void evaluate_both(struct compiler *c, const lang_node *a, const lang_node *b)
{
    if (is_simple(b)) {
        emit_value(c, a);
        load_simple(c, RCX, b);
        return;
    }
    emit_value(c, a);
    jit_push(&c->code, RAX);
    emit_value(c, b);
    jit_mov(&c->code, RCX, RAX);
    jit_pop(&c->code, RAX);
}

static int alu_of(lang_op op)
{
    switch (op) {
    case OP_ADD: return ALU_ADD;
    case OP_SUB: return ALU_SUB;
    case OP_AND: return ALU_AND;
    case OP_OR: return ALU_OR;
    case OP_XOR: return ALU_XOR;
    default: return -1;
    }
}

static bool is_compare(const lang_node *e)
{
    return e->kind == NODE_BINARY && e->op >= OP_LT && e->op <= OP_NE;
}

static jit_condition condition_of(lang_op op)
{
    static const uint8_t conditions[] = {
        [OP_LT] = CC_L, [OP_LE] = CC_LE, [OP_GT] = CC_G, [OP_GE] = CC_GE, [OP_EQ] = CC_E, [OP_NE] = CC_NE};
    return conditions[op];
}

/* Returns whether a comparison compares x % 2^k with 0. The low bits of x decide such a comparison, whatever its
 * sign. */
static bool is_parity(const lang_node *e)
{
    const lang_node *a = e->a, *b = e->b;
    return (e->op == OP_EQ || e->op == OP_NE) && b->kind == NODE_INT && b->i == 0 && a->kind == NODE_BINARY &&
        a->op == OP_MOD && a->b->kind == NODE_INT && a->b->i > 1 && jit_is_i32(a->b->i) &&
        (a->b->i & (a->b->i - 1)) == 0;
}

/* Returns the division x / d at the beginning of a branch that runs only if x % m is 0, where m and d are powers of two
 * and d divides m; otherwise NULL. */
static const lang_node *exact_division(const lang_node *branch)
{
    const lang_node *condition = branch->a, *s = branch->b;
    if (condition->kind != NODE_BINARY || condition->op != OP_EQ || !is_parity(condition)) return NULL;
    while (s && s->kind == NODE_BLOCK) s = s->a;
    const lang_node *x = condition->a->a, *e = s && s->kind == NODE_ASSIGN ? s->a : NULL;
    bool divides = x->kind == NODE_SLOT && e && e->kind == NODE_BINARY && e->op == OP_DIV && e->a->kind == NODE_SLOT &&
        e->a->slot == x->slot && e->b->kind == NODE_INT;
    int64_t d = divides ? e->b->i : 0;
    return d > 1 && (d & (d - 1)) == 0 && d <= condition->a->b->i ? e : NULL;
}

/* Emits code that sets the flags for the comparison e. */
static void emit_comparison(struct compiler *c, const lang_node *e)
{
    if (is_parity(e)) {
        emit_value(c, e->a->a);
        jit_alu_imm(&c->code, ALU_AND, RAX, (int32_t)(e->a->b->i - 1));
        return;
    }
    const struct variable *a = e->a->kind == NODE_SLOT ? variable_of(c, e->a->slot) : NULL;
    if (a && a->reg >= 0 && is_simple(e->b)) {
        alu_simple(c, ALU_CMP, (jit_reg)a->reg, e->b);
        return;
    }
    if (is_simple(e->b)) {
        emit_value(c, e->a);
        alu_simple(c, ALU_CMP, RAX, e->b);
        return;
    }
    evaluate_both(c, e->a, e->b);
    jit_alu_reg(&c->code, ALU_CMP, RAX, RCX);
}

static void step_aside(struct compiler *c, size_t from, const lang_node *node, bool division)
{
    if (c->n_asides == FIXES_MAX) {
        c->failed = true;
        return;
    }
    c->asides[c->n_asides++] = (struct aside){from, c->code.n, node, division};
}

/* Emits rax / d or rax % d for a constant d >= 2: by shifts if d is a power of two below 2^31, else by multiplication
 * by an inverse (Granlund and Montgomery, 1994; Warren, Hacker's Delight, 10-1). */
static void divide_by(struct compiler *c, bool remainder, int64_t d)
{
    jit_code *code = &c->code;
    if ((d & (d - 1)) == 0 && jit_is_i32(d)) {
        unsigned k = (unsigned)__builtin_ctzll((uint64_t)d);
        jit_mov(code, RDX, RAX); /* adds d - 1 to negative numbers, so that the shift rounds to zero */
        if (k > 1) jit_shift_imm(code, SHIFT_SAR, RDX, 63);
        jit_shift_imm(code, SHIFT_SHR, RDX, 64 - k);
        jit_alu_reg(code, ALU_ADD, RAX, RDX);
        if (remainder) {
            jit_alu_imm(code, ALU_AND, RAX, (int32_t)(d - 1));
            jit_alu_reg(code, ALU_SUB, RAX, RDX);
        } else
            jit_shift_imm(code, SHIFT_SAR, RAX, k);
        return;
    }
    /* p is the least number with 2^p > nc (d - 2^p mod d), where nc = 2^63 - 1 - 2^63 mod d. */
    uint64_t two63 = (uint64_t)1 << 63, ud = (uint64_t)d, nc = two63 - 1 - two63 % ud;
    unsigned p = 63;
    unsigned __int128 power;
    do {
        p++;
        power = (unsigned __int128)1 << p;
    } while (power <= (unsigned __int128)nc * (ud - (uint64_t)(power % ud)));
    uint64_t magic = (uint64_t)((power + ud - (uint64_t)(power % ud)) / ud);
    jit_mov(code, RCX, RAX);
    jit_mov_imm(code, RAX, (int64_t)magic);
    jit_group3(code, 5, RCX);
    if ((int64_t)magic < 0) jit_alu_reg(code, ALU_ADD, RDX, RCX);
    if (p > 64) jit_shift_imm(code, SHIFT_SAR, RDX, p - 64);
    jit_mov(code, RAX, RCX);
    jit_shift_imm(code, SHIFT_SHR, RAX, 63);
    jit_alu_reg(code, ALU_ADD, RAX, RDX);
    if (!remainder) return;
    if (jit_is_i32(d))
        jit_imul_imm(code, RAX, RAX, (int32_t)d);
    else {
        jit_mov_imm(code, RDX, d);
        jit_imul(code, RAX, RDX);
    }
    jit_alu_reg(code, ALU_SUB, RCX, RAX);
    jit_mov(code, RAX, RCX);
}

static void divide(struct compiler *c, const lang_node *e)
{
    jit_code *code = &c->code;
    bool remainder = e->op == OP_MOD;
    if (e == c->exact) {
        emit_value(c, e->a);
        jit_shift_imm(code, SHIFT_SAR, RAX, (unsigned)__builtin_ctzll((uint64_t)e->b->i));
        return;
    }
    if (e->b->kind == NODE_INT && e->b->i >= 2) {
        emit_value(c, e->a);
        divide_by(c, remainder, e->b->i);
        return;
    }
    evaluate_both(c, e->a, e->b);
    jit_test(code, RCX, RCX);
    step_aside(c, jit_jump_if(code, CC_E), e, true);
    jit_alu_imm(code, ALU_CMP, RCX, -1);
    size_t usual = jit_jump_if(code, CC_NE);
    if (remainder)
        jit_mov_imm(code, RAX, 0);
    else
        jit_group3(code, 3, RAX);
    size_t done = jit_jump(code);
    jit_aim(code, usual, code->n);
    jit_cqo(code);
    jit_group3(code, 7, RCX);
    if (remainder) jit_mov(code, RAX, RDX);
    jit_aim(code, done, code->n);
}

static size_t jump_unless(struct compiler *c, const lang_node *e);

static void evaluate_binary(struct compiler *c, const lang_node *e)
{
    jit_code *code = &c->code;
    int alu = alu_of(e->op);
    bool commutes = e->op == OP_ADD || e->op == OP_AND || e->op == OP_OR || e->op == OP_XOR || e->op == OP_MUL;
    const lang_node *a = e->a, *b = e->b;
    if (commutes && is_simple(a) && (!is_simple(b) || a->kind == NODE_INT)) {
        a = e->b;
        b = e->a;
    }
    if (is_compare(e)) {
        emit_comparison(c, e);
        jit_set_rax(code, condition_of(e->op));
    } else if (e->op == OP_DIV || e->op == OP_MOD)
        divide(c, e);
    else if (alu >= 0 && is_simple(b)) {
        emit_value(c, a);
        alu_simple(c, (jit_alu)alu, RAX, b);
    } else if (e->op == OP_MUL && is_simple(b)) {
        emit_value(c, a);
        if (b->kind == NODE_INT && (b->i == 3 || b->i == 5 || b->i == 9))
            jit_multiply_rax(code, (unsigned)b->i);
        else if (b->kind == NODE_INT)
            jit_imul_imm(code, RAX, RAX, (int32_t)b->i);
        else if (variable_of(c, b->slot)->reg >= 0)
            jit_imul(code, RAX, (jit_reg)variable_of(c, b->slot)->reg);
        else
            jit_imul_memory(code, RAX, RDI, place_of_slot(b->slot));
    } else if ((e->op == OP_SHL || e->op == OP_SHR) && b->kind == NODE_INT) {
        emit_value(c, a);
        if (b->i & 63) jit_shift_imm(code, e->op == OP_SHL ? SHIFT_SHL : SHIFT_SAR, RAX, (unsigned)(b->i & 63));
    } else {
        evaluate_both(c, a, b);
        if (alu >= 0)
            jit_alu_reg(code, (jit_alu)alu, RAX, RCX);
        else if (e->op == OP_MUL)
            jit_imul(code, RAX, RCX);
        else if (e->op == OP_SHL || e->op == OP_SHR)
            jit_shift_cl(code, e->op == OP_SHL ? SHIFT_SHL : SHIFT_SAR, RAX);
        else { /* the operations that remain: min and max */
            jit_alu_reg(code, ALU_CMP, RAX, RCX);
            jit_cmov(code, e->op == OP_MIN ? CC_G : CC_L, RAX, RCX);
        }
    }
}

static void emit_value(struct compiler *c, const lang_node *e)
{
    jit_code *code = &c->code;
    switch (e->kind) {
    case NODE_INT: jit_mov_imm(code, RAX, e->i); return;
    case NODE_SLOT: load_slot(c, RAX, e->slot); return;
    case NODE_KEEP:
        emit_value(c, e->a);
        store_slot(c, e->slot, RAX);
        return;
    case NODE_UNARY:
        emit_value(c, e->a);
        if (e->op == OP_NEG)
            jit_group3(code, 3, RAX);
        else if (e->op == OP_FLIP)
            jit_group3(code, 2, RAX);
        else if (e->op == OP_NOT) {
            jit_test(code, RAX, RAX);
            jit_set_rax(code, CC_E);
        } else { /* the operation that remains: abs; the smallest integer stays as it is */
            jit_mov(code, RCX, RAX);
            jit_group3(code, 3, RCX);
            jit_test(code, RAX, RAX);
            jit_cmov(code, CC_S, RAX, RCX);
        }
        return;
    case NODE_BINARY: evaluate_binary(c, e); return;
    default: { /* the kinds that remain, `and` and `or`: the value is 0 or 1 */
        size_t otherwise = jump_unless(c, e);
        jit_mov_imm(code, RAX, 1);
        size_t done = jit_jump(code);
        jit_aim(code, otherwise, code->n);
        jit_mov_imm(code, RAX, 0);
        jit_aim(code, done, code->n);
    }
    }
}

/* Emits code that continues if the condition is true and jumps otherwise; returns the jump, which the caller aims. */
static size_t jump_unless(struct compiler *c, const lang_node *e)
{
    jit_code *code = &c->code;
    if (is_compare(e)) {
        emit_comparison(c, e);
        return jit_jump_if(code, (jit_condition)(condition_of(e->op) ^ 1));
    }
    if (e->kind == NODE_ALSO || e->kind == NODE_ELSE) {
        size_t first = jump_unless(c, e->a);
        if (e->kind == NODE_ELSE) { /* if a is true, b is skipped */
            size_t holds = jit_jump(code);
            jit_aim(code, first, code->n);
            size_t second = jump_unless(c, e->b);
            jit_aim(code, holds, code->n);
            return second;
        }
        size_t second = jump_unless(c, e->b), over = jit_jump(code);
        jit_aim(code, first, code->n);
        jit_aim(code, second, code->n);
        size_t fails = jit_jump(code);
        jit_aim(code, over, code->n);
        return fails;
    }
    emit_value(c, e);
    jit_test(code, RAX, RAX);
    return jit_jump_if(code, CC_E);
}

/* ---- statements --------------------------------------------------------------------------------- */

/* Returns whether an expression reads a variable, or stores it in a NODE_KEEP. */
static bool reads(const lang_node *e, uint32_t slot)
{
    return (e->kind == NODE_SLOT && e->slot == slot) || (e->kind == NODE_KEEP && e->slot == slot) ||
        (e->a && reads(e->a, slot)) || (e->b && reads(e->b, slot));
}

static void assign_quats(struct compiler *c, const lang_node *s)
{
    jit_alu_memory(&c->code, ALU_SUB, R15, RSI, offsetof(whit_lang, quat_steps));
    step_aside(c, jit_jump_if(&c->code, CC_S), s, false);
    jit_quats_add(&c->quats, c->quat_size, &c->code, s);
}

static void assign(struct compiler *c, const lang_node *s)
{
    const lang_node *e = s->a;
    const struct variable *v = variable_of(c, s->slot);
    int alu = e->kind == NODE_BINARY ? alu_of(e->op) : -1;
    bool own = alu >= 0 && e->a->kind == NODE_SLOT && e->a->slot == s->slot;
    if (v->reg >= 0 && own) { /* x = x op e is computed in x's register */
        if (is_simple(e->b))
            alu_simple(c, (jit_alu)alu, (jit_reg)v->reg, e->b);
        else {
            emit_value(c, e->b);
            jit_alu_reg(&c->code, (jit_alu)alu, (jit_reg)v->reg, RAX);
        }
        return;
    }
    if (v->reg >= 0 && e == c->exact && e->a->slot == s->slot) {
        jit_shift_imm(&c->code, SHIFT_SAR, (jit_reg)v->reg, (unsigned)__builtin_ctzll((uint64_t)e->b->i));
        return;
    }
    if (v->reg >= 0 && is_simple(e)) {
        load_simple(c, (jit_reg)v->reg, e);
        return;
    }
    if (v->reg >= 0 && alu >= 0 && is_simple(e->a) && is_simple(e->b) && !reads(e->b, s->slot)) {
        load_simple(c, (jit_reg)v->reg, e->a);
        alu_simple(c, (jit_alu)alu, (jit_reg)v->reg, e->b);
        return;
    }
    emit_value(c, e);
    store_slot(c, s->slot, RAX);
}

static void keep_fix(struct compiler *c, size_t *fixes, uint32_t *n, size_t at)
{
    if (*n == FIXES_MAX)
        c->failed = true;
    else
        fixes[(*n)++] = at;
}

static void count_round(struct compiler *c, const lang_node *s)
{
    jit_alu_imm(&c->code, ALU_SUB, R15, 1);
    step_aside(c, jit_jump_if(&c->code, CC_S), s, false);
}

static void emit_statement(struct compiler *c, const lang_node *s);

static void for_loop(struct compiler *c, const lang_node *s)
{
    jit_code *code = &c->code;
    struct loop loop = {.n_breaks = 0}, *outer = c->loop;
    lang_node counter = {.kind = NODE_SLOT, .type = WHIT_LANG_INT, .slot = s->slot};
    lang_node limit = {.kind = NODE_SLOT, .type = WHIT_LANG_INT, .slot = s->slot + 1};
    lang_node in_range = {.kind = NODE_BINARY, .op = OP_LT, .type = WHIT_LANG_INT, .a = &counter, .b = &limit};
    c->loop = &loop;
    emit_value(c, s->a);
    if (!is_simple(s->b)) {
        jit_push(code, RAX);
        emit_value(c, s->b);
        store_slot(c, limit.slot, RAX);
        jit_pop(code, RAX);
    } else {
        load_simple(c, RCX, s->b);
        store_slot(c, limit.slot, RCX);
    }
    store_slot(c, counter.slot, RAX);
    size_t none = jump_unless(c, &in_range);
    jit_align(code, LOOP_ALIGN);
    size_t top = code->n;
    count_round(c, s);
    emit_statement(c, s->c);
    for (uint32_t i = 0; i < loop.n_continues; i++) jit_aim(code, loop.continues[i], code->n);
    const struct variable *v = variable_of(c, s->slot);
    if (v->reg >= 0)
        jit_alu_imm(code, ALU_ADD, (jit_reg)v->reg, 1);
    else {
        load_slot(c, RAX, s->slot);
        jit_alu_imm(code, ALU_ADD, RAX, 1);
        store_slot(c, s->slot, RAX);
    }
    emit_comparison(c, &in_range);
    jit_aim(code, jit_jump_if(code, CC_L), top);
    jit_aim(code, none, code->n);
    for (uint32_t i = 0; i < loop.n_breaks; i++) jit_aim(code, loop.breaks[i], code->n);
    c->loop = outer;
}

static void while_loop(struct compiler *c, const lang_node *s)
{
    jit_code *code = &c->code;
    struct loop loop = {.n_breaks = 0}, *outer = c->loop;
    c->loop = &loop;
    size_t done = jump_unless(c, s->a); /* the condition is emitted before and at the end of the loop, so that each
                                         * round has one jump */
    jit_align(code, LOOP_ALIGN);
    size_t top = code->n, again;
    count_round(c, s);
    emit_statement(c, s->b);
    for (uint32_t i = 0; i < loop.n_continues; i++) jit_aim(code, loop.continues[i], code->n);
    if (is_compare(s->a)) {
        emit_comparison(c, s->a);
        jit_aim(code, jit_jump_if(code, condition_of(s->a->op)), top);
    } else {
        again = jump_unless(c, s->a);
        jit_aim(code, jit_jump(code), top);
        jit_aim(code, again, code->n);
    }
    jit_aim(code, done, code->n);
    for (uint32_t i = 0; i < loop.n_breaks; i++) jit_aim(code, loop.breaks[i], code->n);
    c->loop = outer;
}

/* Returns the assignment of an integer that is the only statement of a branch; otherwise NULL. */
static const lang_node *lone_assignment(const lang_node *branch)
{
    while (branch->kind == NODE_BLOCK && branch->a && !branch->a->next) branch = branch->a;
    return branch->kind == NODE_ASSIGN && branch->type == WHIT_LANG_INT ? branch : NULL;
}

/* Returns whether an expression has at most n operations, cannot fail, and can be computed with rax alone. */
static bool is_cheap(const struct compiler *c, const lang_node *e, unsigned n)
{
    if (is_simple(e)) return true;
    if (e->kind != NODE_BINARY || !n) return false;
    if (e == c->exact) return true;
    bool shift = (e->op == OP_SHL || e->op == OP_SHR) && e->b->kind == NODE_INT;
    bool commutes = e->op == OP_ADD || e->op == OP_AND || e->op == OP_OR || e->op == OP_XOR || e->op == OP_MUL;
    if (!shift && !commutes && e->op != OP_SUB) return false;
    return (is_simple(e->b) && is_cheap(c, e->a, n - 1)) || (commutes && is_simple(e->a) && is_cheap(c, e->b, n - 1));
}

/* Compiles `if x % 2^k == 0 { v = e } else { v = f }` (or with !=, or without else) without a branch: computes both
 * values and selects one, because the low bits of a number are unpredictable. Returns false if the statement has
 * another form, or e or f is not cheap (is_cheap). */
static bool choose_branch(struct compiler *c, const lang_node *s)
{
    enum { OPERATIONS = 3 };
    jit_code *code = &c->code;
    if (!is_compare(s->a) || !is_parity(s->a) || s->a->a->a->kind != NODE_SLOT) return false;
    const lang_node *then = lone_assignment(s->b), *otherwise = s->c ? lone_assignment(s->c) : NULL;
    if (!then || (s->c && (!otherwise || otherwise->slot != then->slot))) return false;
    c->exact = exact_division(s);
    if (!is_cheap(c, then->a, OPERATIONS) || (otherwise && !is_cheap(c, otherwise->a, OPERATIONS))) return false;
    if (otherwise)
        emit_value(c, otherwise->a);
    else
        load_slot(c, RAX, then->slot);
    jit_mov(code, RDX, RAX);
    emit_value(c, then->a);
    load_slot(c, RCX, s->a->a->a->slot);
    jit_alu_imm(code, ALU_AND, RCX, (int32_t)(s->a->a->b->i - 1));
    jit_cmov(code, condition_of(s->a->op), RDX, RAX);
    store_slot(c, then->slot, RDX);
    return true;
}

static void emit_statement(struct compiler *c, const lang_node *s)
{
    jit_code *code = &c->code;
    size_t otherwise, done;
    if (c->failed || code->full) return;
    switch (s->kind) {
    case NODE_BLOCK:
        for (const lang_node *inner = s->a; inner; inner = inner->next) emit_statement(c, inner);
        return;
    case NODE_ASSIGN:
        if (s->type == WHIT_LANG_QUAT)
            assign_quats(c, s);
        else
            assign(c, s);
        return;
    case NODE_IF:
        if (choose_branch(c, s)) return;
        otherwise = jump_unless(c, s->a);
        c->exact = exact_division(s);
        emit_statement(c, s->b);
        if (s->c) {
            done = jit_jump(code);
            jit_aim(code, otherwise, code->n);
            emit_statement(c, s->c);
            jit_aim(code, done, code->n);
        } else
            jit_aim(code, otherwise, code->n);
        return;
    case NODE_WHILE: while_loop(c, s); return;
    case NODE_FOR: for_loop(c, s); return;
    case NODE_BREAK: keep_fix(c, c->loop->breaks, &c->loop->n_breaks, jit_jump(code)); return;
    default: keep_fix(c, c->loop->continues, &c->loop->n_continues, jit_jump(code)); return;
    }
}

/* ---- the code around a loop --------------------------------------------------------------------- */

static const uint8_t saved_regs[] = {RBX, RBP, R12, R13, R14, R15, RDI, RSI};
enum { N_SAVED = sizeof saved_regs, ALIGN_BYTES = 8 };

static void write_back(struct compiler *c)
{
    for (uint32_t i = 0; i < c->n_variables; i++)
        if (c->variables[i].reg >= 0)
            jit_store(&c->code, RDI, place_of_slot(c->variables[i].slot), (jit_reg)c->variables[i].reg);
    jit_store(&c->code, RSI, offsetof(whit_lang, fuel), R15);
    jit_quats_move(&c->quats, c->quat_size, &c->code, true);
}

static void read_in(struct compiler *c)
{
    for (uint32_t i = 0; i < c->n_variables; i++)
        if (c->variables[i].reg >= 0)
            jit_load(&c->code, (jit_reg)c->variables[i].reg, RDI, place_of_slot(c->variables[i].slot));
    jit_load(&c->code, R15, RSI, offsetof(whit_lang, fuel));
    jit_quats_move(&c->quats, c->quat_size, &c->code, false);
}

static void divided_by_zero(whit_lang *vm, const lang_node *at, int64_t dividend)
{
    lang_raise(vm, at, WHIT_ERROR_ARGUMENT, "division of %lld by zero", (long long)dividend);
}

static void write_asides(struct compiler *c)
{
    jit_code *code = &c->code;
    for (uint32_t i = 0; i < c->n_asides && !code->full; i++) {
        const struct aside *aside = &c->asides[i];
        jit_aim(code, aside->from, code->n);
        if (aside->division) jit_mov(code, RDX, RAX);
        write_back(c);
        if (aside->division) jit_alu_imm(code, ALU_AND, RSP, -16); /* align the stack; this call does not return */
        jit_mov(code, RDI, RSI);
        jit_mov_imm(code, RSI, (int64_t)(uintptr_t)aside->node);
        jit_mov_imm(code, RAX, (int64_t)(uintptr_t)(aside->division ? (void *)divided_by_zero : (void *)lang_refuel));
        jit_call_rax(code);
        if (aside->division) continue;
        /* Restore rdi and rsi from the stack, where they are at [rsp + 16] and [rsp + 8]. */
        jit_pop(code, RAX);
        jit_pop(code, RSI);
        jit_pop(code, RDI);
        jit_push(code, RDI);
        jit_push(code, RSI);
        jit_push(code, RAX);
        read_in(c);
        jit_aim(code, jit_jump(code), aside->back);
    }
}

static void emit_whole_loop(struct compiler *c, const lang_node *loop)
{
    jit_code *code = &c->code;
    for (uint32_t i = 0; i < N_SAVED; i++) jit_push(code, (jit_reg)saved_regs[i]);
    jit_push(code, RAX); /* aligns the stack to 16 bytes for calls */
    read_in(c);
    emit_statement(c, loop);
    write_back(c);
    jit_pop(code, RAX);
    for (uint32_t i = N_SAVED; i-- > 0;) jit_pop(code, (jit_reg)saved_regs[i]);
    jit_ret(code);
    write_asides(c);
}

/* ---- running compiled loops --------------------------------------------------------------------- */

typedef void loop_fn(lang_value *frame, whit_lang *vm);

static int run_loop(const lang_code *code, lang_value *frame)
{
    loop_fn *fn;
    memcpy(&fn, &code->native, sizeof fn);
    fn(frame, code->vm);
    return LANG_GO_ON;
}

static int run_guarded_loop(const lang_code *code, lang_value *frame)
{
    uint32_t words = 0;
    loop_fn *fn;
    void *native = jit_quats_choose(code->native_guard, frame, &words);
    if (!native) return code->x->s(code->x, frame);
    memcpy(&fn, &native, sizeof fn);
    code->vm->quat_steps = words + 1;
    fn(frame, code->vm);
    return LANG_GO_ON;
}

static void *emit_loop(struct compiler *c, const lang_node *loop)
{
    c->code.n = 0;
    c->n_asides = 0;
    emit_whole_loop(c, loop);
    return c->failed || c->code.full ? NULL : jit_seal(c->outer->vm, loop, "loop", &c->code);
}

/* Emits the code of a loop, once for each size of quaternary vectors if it adds any, and sets `code` to run it; returns
 * false if no code could be made. */
static bool emit_sizes(struct compiler *c, const lang_node *loop, lang_code *code)
{
    code->s = run_loop;
    if (!c->quats.n) return (code->native = emit_loop(c, loop)) != NULL;
    jit_quats *quats = lang_arena_take(&c->outer->vm->arena, sizeof *quats);
    if (!quats) return false;
    for (c->quat_size = 0; c->quat_size < JIT_QUAT_SIZES; c->quat_size++)
        if (jit_quats_fit(&c->quats, c->quat_size)) c->quats.code[c->quat_size] = emit_loop(c, loop);
    *quats = c->quats;
    code->native_guard = quats;
    code->s = run_guarded_loop;
    return quats->code[0];
}

static bool compile_loop(lang_compiler *outer, const lang_node *loop, lang_code *code)
{
    const whit_allocator *allocator = outer->vm->options.allocator;
    struct compiler *c = whit_zalloc(allocator, sizeof *c);
    uint8_t *bytes = whit_alloc(allocator, CODE_BYTES);
    bool done = false;
    if (c && bytes) {
        c->code = (jit_code){.bytes = bytes, .capacity = CODE_BYTES};
        c->outer = outer;
        c->quats.wide = whit_isa_allows(outer->vm->options.quat->isa, WHIT_ISA_AVX512);
        if (fits(c, loop, 1)) {
            give_registers(c);
            done = emit_sizes(c, loop, code);
        }
    }
    whit_free(allocator, bytes, CODE_BYTES);
    whit_free(allocator, c, sizeof *c);
    return done;
}

const whit_lang_jit *whit_lang_jit_native(void)
{
    static const whit_lang_jit jit = {compile_loop, jit_compile_elements, jit_close_pages, jit_list_pages};
    return &jit;
}
