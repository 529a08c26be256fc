/* SPDX-License-Identifier: MIT
 * Hashes the variables of a program to one number, to compare tiers. */
#ifndef WHIT_TESTS_LANG_DIGEST_H
#define WHIT_TESTS_LANG_DIGEST_H

#include <string.h>

#include "lang/core/vm.h"

static inline void mix_bits(uint64_t *digest, uint64_t bits)
{
    *digest = (*digest ^ bits) * 0x9E3779B97F4A7C15u;
    *digest ^= *digest >> 29;
}

/* Returns a hash of the bits of all global variables; all NaN are treated as equal. */
static inline uint64_t digest_variables(const whit_lang *vm)
{
    uint64_t digest = 1;
    for (uint32_t i = 0; i < vm->scope.n_globals; i++) {
        lang_value value = vm->globals[i];
        uint8_t type = vm->scope.globals[i].type;
        if (!vm->scope.globals[i].name[0] || type == WHIT_LANG_TEXT) continue; /* variables of blocks are not visible */
        mix_bits(&digest, type);
        if (type == WHIT_LANG_FLOAT && value.f != value.f) value.i = -1;
        if (type < WHIT_LANG_VEC) {
            mix_bits(&digest, (uint64_t)value.i);
            continue;
        }
        for (uint32_t k = 0; value.a && k < value.a->n; k++) {
            if (type == WHIT_LANG_QUAT) {
                mix_bits(&digest, (uint64_t)(whit_quat_at(lang_view(value.a), k) + value.a->scale * 8));
                continue;
            }
            float x = value.a->x[k];
            uint32_t word;
            memcpy(&word, &x, sizeof word);
            mix_bits(&digest, x != x ? 1 : word);
        }
    }
    return digest;
}

#endif
