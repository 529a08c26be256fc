/* SPDX-License-Identifier: MIT */
#include "bench/fused.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "lang/core/lang.h"
#include "lang/jit/jit.h"

static const char *const statements[BENCH_FUSED] = {
    "r = a * b + 2 * a - b", "r = max(a, 0) * b + abs(a - b)", "r = sqrt(a * a + b * b)", "s = sum((a - b) * (a - b))",
    "r = softmax(a)",
};
enum { LARGEST = 16777216, PAGE_BYTES = 4096, OUT_ELEMS = LARGEST + PAGE_BYTES / sizeof(float) };

/* rounds: repetitions per call, chosen so that a call takes about the same time for every size. */
static const struct {
    uint32_t n, rounds;
    const char *text;
} sizes[BENCH_FUSED_SIZES] = {{1024, 1024, "1,024"}, {65536, 16, "65,536"}, {LARGEST, 1, "16,777,216"}};

struct bench_fused {
    whit_lang *lang[BENCH_FUSED_SIZES];
    int loaded[BENCH_FUSED_SIZES]; /* number of the expression that is loaded in the session of this size */
    bench_fused_fn *const *c;
    float *memory, *out; /* two arrays of the largest size, page-aligned like the vectors of a program */
    volatile float kept;
    char name[BENCH_FUSED][BENCH_FUSED_SIZES][80];
};

static whit_lang *open_session(const whit_quat_kernels *quat, uint32_t n)
{
    whit_lang_options options = {
        .quat = quat, .jit = whit_lang_jit_native(), .tier = WHIT_LANG_NATIVE, .max_bytes = (size_t)1 << 30};
    whit_lang *lang;
    whit_error error;
    char text[200];
    int n_text =
        snprintf(text, sizeof text, "let a = range(%u) * %.9g - 4\nlet b = 3 - a * 0.5\nlet r = a + 0\nlet s = 0.0\n",
                 n, 8.0 / n);
    if (whit_lang_open(&options, &lang, &error) != WHIT_OK) return NULL;
    if (whit_lang_load(lang, "bench", text, (size_t)n_text, &error) == WHIT_OK &&
        whit_lang_run(lang, &error) == WHIT_OK)
        return lang;
    whit_lang_close(lang);
    return NULL;
}

bench_fused *bench_fused_open(const whit_quat_kernels *quat)
{
    bench_fused *f = whit_zalloc(NULL, sizeof *f);
    bool ok = f && (f->memory = whit_zalloc_array(NULL, OUT_ELEMS, sizeof *f->out));
    if (ok) f->out = (float *)(((uintptr_t)f->memory + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES);
    if (f) f->c = bench_fused_generic;
#if defined(__x86_64__)
    if (f && whit_isa_allows(quat->isa, WHIT_ISA_AVX2)) f->c = bench_fused_avx2;
    if (f && whit_isa_allows(quat->isa, WHIT_ISA_AVX512)) f->c = bench_fused_avx512;
#endif
    for (int size = 0; ok && size < BENCH_FUSED_SIZES; size++) {
        f->loaded[size] = -1;
        ok = (f->lang[size] = open_session(quat, sizes[size].n)) != NULL;
        for (int e = 0; e < BENCH_FUSED; e++)
            snprintf(f->name[e][size], sizeof f->name[e][size], "%s of %s", statements[e], sizes[size].text);
    }
    if (ok) return f;
    bench_fused_close(f);
    return NULL;
}

void bench_fused_close(bench_fused *f)
{
    if (!f) return;
    for (int size = 0; size < BENCH_FUSED_SIZES; size++) whit_lang_close(f->lang[size]);
    whit_free(NULL, f->memory, OUT_ELEMS * sizeof *f->out);
    whit_free(NULL, f, sizeof *f);
}

const char *bench_fused_name(bench_fused *f, int expression, int size)
{
    return f->name[expression][size];
}

uint32_t bench_fused_elements(int size)
{
    return sizes[size].n * sizes[size].rounds;
}

void bench_fused_program(bench_fused *f, int expression, int size)
{
    whit_error error;
    char text[200];
    int n = snprintf(text, sizeof text, "for k in 0..%u { %s }\n", sizes[size].rounds, statements[expression]);
    if (f->loaded[size] != expression) (void)whit_lang_load(f->lang[size], "bench", text, (size_t)n, &error);
    f->loaded[size] = expression;
    (void)whit_lang_run(f->lang[size], &error);
}

void bench_fused_c(bench_fused *f, int expression, int size)
{
    float *a, *b;
    uint32_t n;
    if (!whit_lang_get_vec(f->lang[size], "a", &a, &n) || !whit_lang_get_vec(f->lang[size], "b", &b, &n)) return;
    for (uint32_t round = 0; round < sizes[size].rounds; round++) f->kept += f->c[expression](f->out, a, b, n);
}
