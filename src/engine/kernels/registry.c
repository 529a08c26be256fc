/* SPDX-License-Identifier: MIT
 * Fills the table of kernels from kernels.inc: weak levels come first, and stronger ones override them. */
#include "kernels/kernels.h"

#define WHIT_KERNEL(type, op, isa, level, features)                                                                    \
    {#op, WHIT_ISA_##level, features, offsetof(whit_kernels, op), (void (*)(void))whit_##op##_##isa},
#define WHIT_MATMUL(name)
static const whit_kernel_row rows[] = {
#include "kernels/kernels.inc"
};
#undef WHIT_KERNEL
#undef WHIT_MATMUL

#define WHIT_KERNEL(type, op, isa, level, features)
#define WHIT_MATMUL(name) &whit_matmul_##name,
static const whit_matmul_kernel *const matmuls[] = {
#include "kernels/kernels.inc"
};
#undef WHIT_KERNEL
#undef WHIT_MATMUL

#define N_ROWS    (sizeof rows / sizeof *rows)
#define N_MATMULS (sizeof matmuls / sizeof *matmuls)

const whit_kernel_row *whit_kernel_rows(size_t *n)
{
    *n = N_ROWS;
    return rows;
}

const whit_matmul_kernel *const *whit_matmul_kernels(size_t *n)
{
    *n = N_MATMULS;
    return matmuls;
}

bool whit_kernel_runs(const whit_kernels *kernels, whit_isa isa, uint32_t features)
{
    return whit_isa_allows(kernels->isa, isa) && (kernels->features & features) == features;
}

whit_status whit_kernels_select(const whit_cpu *cpu, const char *cap, whit_kernels *kernels, whit_error *error)
{
    *kernels = (whit_kernels){.isa = cpu->isa, .features = cpu->features};
    if (!whit_isa_cap(cap, &kernels->isa))
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "'%s' is not a CPU level (generic, avx2, avx512, amx, neon, dotprod, i8mm, simd128, rvv)",
                         cap);
    /* AMX kernels convert blocks of f16 to integers before they multiply. */
    kernels->kv_converts_f16 = whit_isa_allows(kernels->isa, WHIT_ISA_AMX);
    kernels->kv_queries = kernels->kv_converts_f16 ? 256 : 128;
    kernels->screen_rows = 8; /* value for levels that were not measured */
    if (whit_isa_allows(kernels->isa, WHIT_ISA_AVX2)) kernels->screen_rows = kernels->kv_converts_f16 ? 32 : 64;
    for (size_t i = 0; i < N_ROWS; i++)
        if (whit_kernel_runs(kernels, rows[i].isa, rows[i].features))
            memcpy((char *)kernels + rows[i].table_offset, &rows[i].function, sizeof rows[i].function);
    return WHIT_OK;
}

const whit_matmul_kernel *whit_matmul_find(const whit_kernels *kernels, const whit_tensor_type *type,
                                           const whit_acts_spec *spec, uint32_t n_tokens)
{
    const whit_matmul_kernel *found = NULL;
    for (size_t i = 0; i < N_MATMULS; i++) {
        const whit_matmul_kernel *kernel = matmuls[i];
        if (whit_kernel_runs(kernels, kernel->isa, kernel->features) && n_tokens >= kernel->min_tokens &&
            n_tokens <= kernel->max_tokens && kernel->accepts(type, spec))
            found = kernel;
    }
    return found;
}
