/* SPDX-License-Identifier: MIT
 * Fills the table of quaternary kernels from quat.inc: stronger levels override weaker ones. */
#include <string.h>

#include "kernels/quat/declare.h"

#define WHIT_QUAT(type, op, isa, level, features)                                                                      \
    {WHIT_ISA_##level, features, offsetof(whit_quat_kernels, op), (void (*)(void))whit_quat_##op##_##isa},
static const struct {
    whit_isa isa;
    uint32_t features;
    size_t table_offset;
    void (*function)(void);
} rows[] = {
#include "kernels/quat/quat.inc"
};
#undef WHIT_QUAT

whit_status whit_quat_select(const whit_cpu *cpu, const char *cap, whit_quat_kernels *kernels, whit_error *error)
{
    *kernels = (whit_quat_kernels){.isa = cpu->isa, .features = cpu->features};
    if (!whit_isa_cap(cap, &kernels->isa))
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "'%s' is not a CPU level (generic, avx2, avx512, amx, neon, dotprod, i8mm, simd128, rvv)",
                         cap);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (whit_isa_allows(kernels->isa, rows[i].isa) && (kernels->features & rows[i].features) == rows[i].features)
            memcpy((char *)kernels + rows[i].table_offset, &rows[i].function, sizeof rows[i].function);
    return WHIT_OK;
}
