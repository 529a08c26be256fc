/* SPDX-License-Identifier: MIT
 * Encodes the vector instructions that tier 2 uses, with the same bytes as the GNU assembler: VEX for 256 bits, EVEX
 * for 512. Intel SDM volume 2, 2.3 and 2.7. */
#ifndef WHIT_LANG_JIT_ENCODE_VECTOR_H
#define WHIT_LANG_JIT_ENCODE_VECTOR_H

#include "lang/jit/encode.h"

/* Mandatory prefixes (PP) and opcode maps (MAP), by their numbers in VEX and EVEX. */
enum { PP_NONE, PP_66, PP_F3, PP_F2 };
enum { MAP_0F = 1, MAP_0F38, MAP_0F3A };

/* Describes a vector instruction: to = op(a, b). */
typedef struct jit_vector_op {
    uint8_t pp, map, opcode;
    bool wide; /* EVEX.W is 1 */
} jit_vector_op;

static const jit_vector_op V_ADD = {PP_NONE, MAP_0F, 0x58, false};
static const jit_vector_op V_MUL = {PP_NONE, MAP_0F, 0x59, false};
static const jit_vector_op V_SUB = {PP_NONE, MAP_0F, 0x5C, false};
static const jit_vector_op V_MIN = {PP_NONE, MAP_0F, 0x5D, false};
static const jit_vector_op V_DIV = {PP_NONE, MAP_0F, 0x5E, false};
static const jit_vector_op V_MAX = {PP_NONE, MAP_0F, 0x5F, false};
static const jit_vector_op V_SQRT = {PP_NONE, MAP_0F, 0x51, false}; /* square root of b; a is not used */
static const jit_vector_op V_AND = {PP_NONE, MAP_0F, 0x54, false};
static const jit_vector_op V_XOR = {PP_NONE, MAP_0F, 0x57, false};
static const jit_vector_op V_OR_BITS = {PP_66, MAP_0F, 0xEB, false};
static const jit_vector_op V_XOR_BITS = {PP_66, MAP_0F, 0xEF, false};
static const jit_vector_op V_AND_BITS = {PP_66, MAP_0F, 0xDB, false};
static const jit_vector_op V_ADD_I32 = {PP_66, MAP_0F, 0xFE, false};
static const jit_vector_op V_LOAD = {PP_NONE, MAP_0F, 0x10, false};  /* loads `to` from b (movups) */
static const jit_vector_op V_STORE = {PP_NONE, MAP_0F, 0x11, false}; /* stores register `to` at b */
static const jit_vector_op V_MOVE = {PP_NONE, MAP_0F, 0x28, false};  /* copies b to `to` (movaps) */
static const jit_vector_op V_BROADCAST = {PP_66, MAP_0F38, 0x18, false};
static const jit_vector_op V_COMPARE = {PP_NONE, MAP_0F, 0xC2, false}; /* a predicate byte follows (IS_EQ, ...) */
/* rounds b; a byte with the rounding mode follows */
static const jit_vector_op V_ROUND = {PP_66, MAP_0F3A, 0x08, false};
/* VEX: takes b in lanes where the sign of the mask register is set, else a */
static const jit_vector_op V_BLEND = {PP_66, MAP_0F3A, 0x4A, false};
/* EVEX: takes b in lanes where the mask is set, else a */
static const jit_vector_op V_BLEND_K = {PP_66, MAP_0F38, 0x65, false};
/* pslld by a constant: opcode extension /6, the count follows */
static const jit_vector_op V_SHIFT_I32 = {PP_66, MAP_0F, 0x72, false};
/* EVEX: any function of three bits; its table, a byte, follows */
static const jit_vector_op V_TERNARY = {PP_66, MAP_0F3A, 0x25, true};

/* Describes the operand b of an instruction: a register, memory at [base + rax + offset] if `indexed`, or memory at
 * [base + offset]. base (`reg`) must not be rsp, rbp, r12 or r13. */
typedef struct jit_operand {
    bool memory, indexed;
    uint8_t reg;
    int32_t offset;
} jit_operand;
static inline jit_operand jit_in(unsigned reg)
{
    return (jit_operand){false, false, (uint8_t)reg, 0};
}
static inline jit_operand jit_at(jit_reg base, int32_t offset)
{
    return (jit_operand){true, false, (uint8_t)base, offset};
}
static inline jit_operand jit_at_index(jit_reg base, int32_t offset)
{
    return (jit_operand){true, true, (uint8_t)base, offset};
}

/* Emits the ModRM byte of an operand and the bytes after it. An offset that fits one byte is stored in units of `unit`
 * bytes. */
static inline void jit_vector_operand(jit_code *c, unsigned reg, jit_operand b, int32_t unit)
{
    if (!b.memory) {
        jit_modrm(c, 3, reg, b.reg);
        return;
    }
    bool fits = b.offset % unit == 0 && jit_is_i8(b.offset / unit);
    unsigned mod = 2;
    if (b.offset == 0)
        mod = 0;
    else if (fits)
        mod = 1;
    jit_modrm(c, mod, reg, b.indexed ? RSP : b.reg);
    if (b.indexed) jit_modrm(c, 0, RAX, b.reg);
    if (mod == 1) jit_u8(c, (uint8_t)(b.offset / unit));
    if (mod == 2) jit_i32(c, b.offset);
}

/* Emits an instruction on 256-bit registers, whose numbers are below 16. `a` must be 0 if the instruction has only one
 * source. */
static inline void jit_vex(jit_code *c, jit_vector_op op, unsigned to, unsigned a, jit_operand b)
{
    /* the shorter form: encoded as a store, with the registers swapped */
    if (op.opcode == V_MOVE.opcode && op.map == MAP_0F && !b.memory && b.reg > 7 && to < 8) {
        unsigned swapped = b.reg;
        b.reg = (uint8_t)to;
        to = swapped;
        op.opcode = 0x29;
    }
    unsigned not_r = to > 7 ? 0 : 0x80, rest = (~a & 15) << 3 | 4 | op.pp;
    if (op.map == MAP_0F && b.reg < 8) {
        jit_u8(c, 0xC5);
        jit_u8(c, not_r | rest);
    } else {
        jit_u8(c, 0xC4);
        jit_u8(c, not_r | 0x40 | (b.reg > 7 ? 0 : 0x20) | op.map);
        jit_u8(c, rest);
    }
    jit_u8(c, op.opcode);
    jit_vector_operand(c, to, b, 1);
}

/* Emits an instruction on 512-bit registers, whose numbers are below 32. With a mask (1 to 7; 0: none), lanes that are
 * not selected keep the value of `to`, or become 0 if `zeroes`. `unit_bytes` is the size of a memory operand. */
static inline void jit_evex_masked(jit_code *c, jit_vector_op op, unsigned to, unsigned a, jit_operand b, unsigned mask,
                                   bool zeroes, int32_t unit_bytes)
{
    bool x = !b.memory && b.reg > 15;
    jit_u8(c, 0x62);
    jit_u8(c, (to & 8 ? 0 : 0x80) | (x ? 0 : 0x40) | (b.reg & 8 ? 0 : 0x20) | (to & 16 ? 0 : 0x10) | op.map);
    jit_u8(c, (op.wide ? 0x80u : 0u) | (~a & 15) << 3 | 4 | op.pp);
    jit_u8(c, (zeroes ? 0x80u : 0u) | 0x40 | (a & 16 ? 0 : 8) | mask);
    jit_u8(c, op.opcode);
    jit_vector_operand(c, to, b, unit_bytes);
}
static inline void jit_evex(jit_code *c, jit_vector_op op, unsigned to, unsigned a, jit_operand b)
{
    jit_evex_masked(c, op, to, a, b, 0, false, op.opcode == V_BROADCAST.opcode && op.map == MAP_0F38 ? 4 : 64);
}
static inline void jit_vzeroupper(jit_code *c)
{
    jit_bytes(c, "\xC5\xF8\x77", 3);
}

#endif
