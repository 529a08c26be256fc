/* SPDX-License-Identifier: MIT
 * Sums of quaternary vectors (q += d) in loops of machine code. Those that the loop changes are in registers for the
 * whole of it; that is so where nobody else refers to them and what is added has the same scale and length.
 * There is code for two sizes. rdi is the frame; rax is written over. */
#ifndef WHIT_LANG_JIT_QUATS_H
#define WHIT_LANG_JIT_QUATS_H

#include "lang/core/vm.h"
#include "lang/jit/encode_vector.h"

enum { JIT_QUATS_MAX = 24, JIT_ADDS_MAX = 64, JIT_QUAT_SIZES = 2 };

typedef struct jit_quats {
    bool wide; /* AVX-512 */
    uint32_t n, n_adds, n_changed;
    uint32_t slots[JIT_QUATS_MAX];
    int8_t number[JIT_QUATS_MAX];                 /* of those that are changed; -1 */
    uint8_t to[JIT_ADDS_MAX], from[JIT_ADDS_MAX]; /* indices of slots */
    void *code[JIT_QUAT_SIZES];                   /* NULL: there are too few registers */
} jit_quats;

/* Takes up an assignment of variables of the frame; false where it is no such sum, or there are too many. */
bool jit_quats_take(jit_quats *q, const lang_node *assignment);
/* Are there registers for vectors of a size? */
bool jit_quats_fit(const jit_quats *q, uint32_t size);
/* The code of one sum that was taken up, and of all that is changed from or to memory. */
void jit_quats_add(const jit_quats *q, uint32_t size, jit_code *c, const lang_node *assignment);
void jit_quats_move(const jit_quats *q, uint32_t size, jit_code *c, bool store);
/* The code for the vectors as they are, and their words; NULL where there is none. */
void *jit_quats_choose(const jit_quats *q, const lang_value *frame, uint32_t *words);

#endif
