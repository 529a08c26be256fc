/* SPDX-License-Identifier: MIT
 * Compiles sums of quaternary vectors (q += d) in loops of machine code. The vectors that the loop changes stay in
 * registers during the whole loop. This requires that nothing else refers to them and that each vector added has the
 * same scale and length. There is code for two sizes. rdi is the frame; rax is overwritten. */
#ifndef WHIT_LANG_JIT_QUATS_H
#define WHIT_LANG_JIT_QUATS_H

#include "lang/core/vm.h"
#include "lang/jit/encode_vector.h"

enum { JIT_QUATS_MAX = 24, JIT_ADDS_MAX = 64, JIT_QUAT_SIZES = 2 };

typedef struct jit_quats {
    bool wide; /* AVX-512 */
    uint32_t n, n_adds, n_changed;
    uint32_t slots[JIT_QUATS_MAX];
    int8_t number[JIT_QUATS_MAX];                 /* index among the changed vectors; -1: not changed */
    uint8_t to[JIT_ADDS_MAX], from[JIT_ADDS_MAX]; /* indices of slots */
    void *code[JIT_QUAT_SIZES];                   /* NULL: not enough registers */
} jit_quats;

/* Adds an assignment of variables of the frame; false if it is not such a sum, or if there are too many. */
bool jit_quats_take(jit_quats *q, const lang_node *assignment);
/* Returns whether there are enough registers for vectors of a size. */
bool jit_quats_fit(const jit_quats *q, uint32_t size);
/* Emits the code of one sum that was added, or of loading or storing all changed vectors. */
void jit_quats_add(const jit_quats *q, uint32_t size, jit_code *c, const lang_node *assignment);
void jit_quats_move(const jit_quats *q, uint32_t size, jit_code *c, bool store);
/* Chooses the code that fits the vectors as they are now; *words is their number of words. The result is NULL if no
 * code fits. */
void *jit_quats_choose(const jit_quats *q, const lang_value *frame, uint32_t *words);

#endif
