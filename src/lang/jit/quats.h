/* SPDX-License-Identifier: MIT
 * Compiles sums of quaternary vectors (q += d) in loops of machine code. The vectors that the loop changes stay in
 * registers during the whole loop. This requires that nothing else refers to them and that each vector added has the
 * same scale and length. The code is generated for two sizes of vectors. rdi holds the frame; rax is overwritten. */
#ifndef WHIT_LANG_JIT_QUATS_H
#define WHIT_LANG_JIT_QUATS_H

#include "lang/core/vm.h"
#include "lang/jit/encode_vector.h"

enum { JIT_QUATS_MAX = 24, JIT_ADDS_MAX = 64, JIT_QUAT_SIZES = 2 };

typedef struct jit_quats {
    bool wide; /* the code uses AVX-512 */
    uint32_t n, n_adds, n_changed;
    uint32_t slots[JIT_QUATS_MAX];
    int8_t number[JIT_QUATS_MAX];                 /* by variable: index among the changed vectors; -1: the loop does not
                                                   * change it */
    uint8_t to[JIT_ADDS_MAX], from[JIT_ADDS_MAX]; /* by addition: indices in `slots` of the changed and the added
                                                   * variable */
    void *code[JIT_QUAT_SIZES];                   /* by size: machine code; NULL: there are not enough registers, or it
                                                   * could not be generated */
} jit_quats;

/* Adds an assignment v = v + w of two different variables to the table; returns false if it has another form, or the
 * table is full. */
bool jit_quats_take(jit_quats *q, const lang_node *assignment);
/* Returns whether there are enough registers for vectors of size number `size`. */
bool jit_quats_fit(const jit_quats *q, uint32_t size);
/* Emit the code of an addition that was taken, and the code that stores (or loads, if !store) all changed vectors. */
void jit_quats_add(const jit_quats *q, uint32_t size, jit_code *c, const lang_node *assignment);
void jit_quats_move(const jit_quats *q, uint32_t size, jit_code *c, bool store);
/* Returns the code for the present lengths of the vectors, and sets *words to their number of words; NULL if no code
 * fits, a vector is empty or has no value, a changed vector is shared, or lengths or scales of a sum differ. */
void *jit_quats_choose(const jit_quats *q, const lang_value *frame, uint32_t *words);

#endif
