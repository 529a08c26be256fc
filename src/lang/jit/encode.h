/* SPDX-License-Identifier: MIT
 * Encodes the x86-64 instructions that tier 2 uses, with the same bytes as the GNU assembler: in the shortest form,
 * with 64-bit operands unless the name says otherwise. Intel SDM volume 2. */
#ifndef WHIT_LANG_JIT_ENCODE_H
#define WHIT_LANG_JIT_ENCODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef enum jit_reg { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15 } jit_reg;

/* Numbers of ALU operations, as in the opcodes of x86. */
typedef enum jit_alu { ALU_ADD = 0, ALU_OR = 1, ALU_AND = 4, ALU_SUB = 5, ALU_XOR = 6, ALU_CMP = 7 } jit_alu;
typedef enum jit_shift { SHIFT_SHL = 4, SHIFT_SHR = 5, SHIFT_SAR = 7 } jit_shift;
/* Condition codes of jumps and moves, for signed numbers. */
typedef enum jit_condition {
    CC_E = 4,
    CC_NE = 5,
    CC_S = 8,
    CC_L = 12,
    CC_GE = 13,
    CC_LE = 14,
    CC_G = 15
} jit_condition;

typedef struct jit_code {
    uint8_t *bytes;
    size_t n, capacity;
    bool full; /* the capacity was exceeded, and the code that did not fit is missing */
} jit_code;

static inline void jit_bytes(jit_code *c, const void *bytes, size_t n)
{
    if (c->capacity - c->n < n) {
        c->full = true;
        return;
    }
    memcpy(c->bytes + c->n, bytes, n);
    c->n += n;
}
static inline void jit_u8(jit_code *c, unsigned byte)
{
    uint8_t b = (uint8_t)byte;
    jit_bytes(c, &b, 1);
}
static inline void jit_i32(jit_code *c, int32_t value)
{
    jit_bytes(c, &value, 4);
}
static inline bool jit_is_i8(int64_t v)
{
    return v >= -128 && v <= 127;
}
static inline bool jit_is_i32(int64_t v)
{
    return v >= INT32_MIN && v <= INT32_MAX;
}

static inline void jit_rex(jit_code *c, bool wide, unsigned reg, unsigned rm)
{
    jit_u8(c, 0x40 | (wide ? 8 : 0) | (reg >> 3 << 2) | rm >> 3);
}
static inline void jit_modrm(jit_code *c, unsigned mod, unsigned reg, unsigned rm)
{
    jit_u8(c, mod << 6 | (reg & 7) << 3 | (rm & 7));
}
/* Emits the operand bytes for the address [base + offset]; base must not be rsp or r12. */
static inline void jit_memory(jit_code *c, unsigned reg, unsigned base, int32_t offset)
{
    unsigned mod = 2;
    if (offset == 0 && (base & 7) != RBP)
        mod = 0;
    else if (jit_is_i8(offset))
        mod = 1;
    jit_modrm(c, mod, reg, base);
    if (mod == 1) jit_u8(c, (uint8_t)offset);
    if (mod == 2) jit_i32(c, offset);
}

static inline void jit_mov(jit_code *c, jit_reg to, jit_reg from)
{
    jit_rex(c, true, from, to);
    jit_u8(c, 0x89);
    jit_modrm(c, 3, from, to);
}
static inline void jit_mov_imm(jit_code *c, jit_reg to, int64_t value)
{
    if (value >= 0 && value <= UINT32_MAX) { /* the instruction with a 32-bit operand clears the upper half of the
                                              * register */
        if (to > 7) jit_u8(c, 0x41);
        jit_u8(c, 0xB8 | (to & 7));
        jit_bytes(c, &value, 4);
        return;
    }
    jit_rex(c, true, 0, to);
    if (jit_is_i32(value)) {
        jit_u8(c, 0xC7);
        jit_modrm(c, 3, 0, to);
        jit_i32(c, (int32_t)value);
    } else {
        jit_u8(c, 0xB8 | (to & 7));
        jit_bytes(c, &value, 8);
    }
}
static inline void jit_load(jit_code *c, jit_reg to, jit_reg base, int32_t offset)
{
    jit_rex(c, true, to, base);
    jit_u8(c, 0x8B);
    jit_memory(c, to, base, offset);
}
static inline void jit_store(jit_code *c, jit_reg base, int32_t offset, jit_reg from)
{
    jit_rex(c, true, from, base);
    jit_u8(c, 0x89);
    jit_memory(c, from, base, offset);
}
static inline void jit_alu_reg(jit_code *c, jit_alu op, jit_reg to, jit_reg from)
{
    jit_rex(c, true, from, to);
    jit_u8(c, (unsigned)op << 3 | 1);
    jit_modrm(c, 3, from, to);
}
static inline void jit_alu_memory(jit_code *c, jit_alu op, jit_reg to, jit_reg base, int32_t offset)
{
    jit_rex(c, true, to, base);
    jit_u8(c, (unsigned)op << 3 | 3);
    jit_memory(c, to, base, offset);
}
static inline void jit_alu_imm(jit_code *c, jit_alu op, jit_reg to, int32_t value)
{
    jit_rex(c, true, 0, to);
    if (jit_is_i8(value)) {
        jit_u8(c, 0x83);
        jit_modrm(c, 3, op, to);
        jit_u8(c, (uint8_t)value);
        return;
    }
    if (to == RAX)
        jit_u8(c, (unsigned)op << 3 | 5);
    else {
        jit_u8(c, 0x81);
        jit_modrm(c, 3, op, to);
    }
    jit_i32(c, value);
}
static inline void jit_imul(jit_code *c, jit_reg to, jit_reg from)
{
    jit_rex(c, true, to, from);
    jit_u8(c, 0x0F);
    jit_u8(c, 0xAF);
    jit_modrm(c, 3, to, from);
}
static inline void jit_imul_memory(jit_code *c, jit_reg to, jit_reg base, int32_t offset)
{
    jit_rex(c, true, to, base);
    jit_u8(c, 0x0F);
    jit_u8(c, 0xAF);
    jit_memory(c, to, base, offset);
}
static inline void jit_imul_imm(jit_code *c, jit_reg to, jit_reg from, int32_t value)
{
    jit_rex(c, true, to, from);
    jit_u8(c, jit_is_i8(value) ? 0x6B : 0x69);
    jit_modrm(c, 3, to, from);
    if (jit_is_i8(value))
        jit_u8(c, (uint8_t)value);
    else
        jit_i32(c, value);
}
/* Multiplies rax by n, which is 3, 5 or 9, with an address computation: lea rax, [rax + rax * (n - 1)]. */
static inline void jit_multiply_rax(jit_code *c, unsigned n)
{
    jit_bytes(c, "\x48\x8D\x04", 3);
    jit_u8(c, n == 3 ? 0x40 : n == 5 ? 0x80 : 0xC0);
}
/* Emits an instruction of opcode group 3. op 2: not; 3: neg; 5: rdx:rax = rax * reg, signed; 7: idiv. */
static inline void jit_group3(jit_code *c, unsigned op, jit_reg reg)
{
    jit_rex(c, true, 0, reg);
    jit_u8(c, 0xF7);
    jit_modrm(c, 3, op, reg);
}
static inline void jit_cqo(jit_code *c)
{
    jit_u8(c, 0x48);
    jit_u8(c, 0x99);
}
static inline void jit_shift_imm(jit_code *c, jit_shift op, jit_reg reg, unsigned count)
{
    jit_rex(c, true, 0, reg);
    jit_u8(c, count == 1 ? 0xD1 : 0xC1);
    jit_modrm(c, 3, op, reg);
    if (count != 1) jit_u8(c, count);
}
static inline void jit_shift_cl(jit_code *c, jit_shift op, jit_reg reg)
{
    jit_rex(c, true, 0, reg);
    jit_u8(c, 0xD3);
    jit_modrm(c, 3, op, reg);
}
static inline void jit_test(jit_code *c, jit_reg a, jit_reg b)
{
    jit_rex(c, true, b, a);
    jit_u8(c, 0x85);
    jit_modrm(c, 3, b, a);
}
static inline void jit_cmov(jit_code *c, jit_condition cc, jit_reg to, jit_reg from)
{
    jit_rex(c, true, to, from);
    jit_u8(c, 0x0F);
    jit_u8(c, 0x40 | cc);
    jit_modrm(c, 3, to, from);
}
/* Sets rax to 1 if the condition is true, else to 0. */
static inline void jit_set_rax(jit_code *c, jit_condition cc)
{
    jit_u8(c, 0x0F);
    jit_u8(c, 0x90 | cc);
    jit_u8(c, 0xC0);
    jit_bytes(c, "\x0F\xB6\xC0", 3);
}
static inline void jit_push(jit_code *c, jit_reg reg)
{
    if (reg > 7) jit_u8(c, 0x41);
    jit_u8(c, 0x50 | (reg & 7));
}
static inline void jit_pop(jit_code *c, jit_reg reg)
{
    if (reg > 7) jit_u8(c, 0x41);
    jit_u8(c, 0x58 | (reg & 7));
}
static inline void jit_call_rax(jit_code *c)
{
    jit_bytes(c, "\xFF\xD0", 2);
}
static inline void jit_ret(jit_code *c)
{
    jit_u8(c, 0xC3);
}
/* Fills the code up to a multiple of `multiple` bytes with instructions that do nothing, as long ones as possible. */
static inline void jit_align(jit_code *c, size_t multiple)
{
    size_t n = (multiple - c->n % multiple) % multiple;
    for (; n >= 8; n -= 8) jit_bytes(c, "\x0F\x1F\x84\0\0\0\0\0", 8);
    for (; n > 1; n--) jit_u8(c, 0x66);
    if (n) jit_u8(c, 0x90);
}
/* Emits a jump whose 32-bit distance is filled in later (jit_aim); returns the offset of the distance in the code. */
static inline size_t jit_jump(jit_code *c)
{
    jit_u8(c, 0xE9);
    jit_i32(c, 0);
    return c->n - 4;
}
static inline size_t jit_jump_if(jit_code *c, jit_condition cc)
{
    jit_u8(c, 0x0F);
    jit_u8(c, 0x80 | cc);
    jit_i32(c, 0);
    return c->n - 4;
}
static inline void jit_aim(jit_code *c, size_t at, size_t target)
{
    int32_t distance = (int32_t)((int64_t)target - (int64_t)at - 4);
    if (!c->full) memcpy(c->bytes + at, &distance, 4);
}

#endif
