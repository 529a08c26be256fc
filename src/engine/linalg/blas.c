/* SPDX-License-Identifier: MIT */
#include "linalg/blas.h"

#include "linalg/gemm_bf16.h"
#include "linalg/level.h"
#include "whit_config.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

#define ROUNDED_PIECE 64  /* number of rows per job of a shared bf16 product */
#define LARGEST_PIECE 512 /* maximum number of rows per job of a shared f32 product */

/* Constants of the CBLAS interface. */
enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111, TRANSPOSE = 112 };

static const char *const precision_names[WHIT_PRECISION_COUNT] = {"f32", "bf16-amx", "bf16-avx512", "bf16"};

const char *whit_precision_name(whit_precision precision)
{
    return precision_names[precision];
}

whit_precision whit_precision_choose(whit_precision precision)
{
    if (precision != WHIT_PRECISION_BF16) return precision;
    whit_cpu cpu;
    whit_linalg_detect(&cpu);
    if (cpu.features & WHIT_CPU_AMX_BF16) return WHIT_PRECISION_BF16_TILES;
    return whit_linalg_bf16_pays(&cpu) ? WHIT_PRECISION_BF16_PAIRS : WHIT_PRECISION_F32;
}

const whit_gemm_kernel *whit_blas_kernel(whit_precision precision)
{
    if (precision == WHIT_PRECISION_F32) return NULL;
    bool tiles = precision == WHIT_PRECISION_BF16_TILES;
#if defined(__x86_64__)
    whit_cpu cpu;
    whit_linalg_detect(&cpu);
    if (tiles && cpu.features & WHIT_CPU_AMX_BF16) return &whit_gemm_tiles_amx;
    if (!tiles && cpu.features & WHIT_CPU_AVX512_BF16) return &whit_gemm_pairs_avx512;
    if (whit_isa_allows(cpu.isa, WHIT_ISA_AVX2)) return tiles ? &whit_gemm_tiles_avx2 : &whit_gemm_pairs_avx2;
#endif
    return tiles ? &whit_gemm_tiles_generic : &whit_gemm_pairs_generic;
}

static void load_library(whit_blas *blas)
{
#if WHIT_HAVE_OPENBLAS
    whit_cpu cpu;
    whit_linalg_detect(&cpu);
    if (cpu.isa == WHIT_ISA_GENERIC) return;
    /* RTLD_NODELETE, because the threads of some versions do not survive unloading. */
    void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) return;
    void (*set_threads)(int);
    int (*get_parallel)(void);
    /* ISO C forbids casting dlsym's pointer to a function pointer, so it is stored through a void **, as POSIX
     * recommends. */
    *(void **)&set_threads = dlsym(library, "openblas_set_num_threads");
    *(void **)&get_parallel = dlsym(library, "openblas_get_parallel");
    *(void **)&blas->gemm = dlsym(library, "cblas_sgemm");
    /* A sequential build (get_parallel() is 0) shares its buffers without a lock: two of our threads in it at once
     * would compute wrong products. The threaded builds are safe, and run with one thread each. */
    if (!set_threads || !get_parallel || !blas->gemm || get_parallel() == 0) {
        dlclose(library);
        blas->gemm = NULL;
        return;
    }
    set_threads(1);
    blas->library = library;
#else
    (void)blas;
#endif
}

whit_status whit_blas_open(whit_blas *blas, whit_precision precision, const whit_loops *loops, size_t common_elems,
                           size_t own_elems, uint32_t n_workers, const whit_allocator *allocator, whit_error *error)
{
    *blas = (whit_blas){.loops = loops, .allocator = allocator};
    blas->precision = whit_precision_choose(precision);
    blas->kernel = whit_blas_kernel(blas->precision);
    if (!blas->kernel) {
        load_library(blas);
        return WHIT_OK;
    }
    blas->common_bytes = common_elems * 2;
    blas->own_bytes = own_elems * 2;
    blas->packed_bytes = blas->common_bytes + n_workers * blas->own_bytes;
    blas->packed = whit_alloc(allocator, blas->packed_bytes);
    return blas->packed ? WHIT_OK : whit_fail_memory(error, "matrix products", blas->packed_bytes);
}

void whit_blas_close(whit_blas *blas)
{
    if (blas->library) dlclose(blas->library);
    whit_free(blas->allocator, blas->packed, blas->packed_bytes);
    *blas = (whit_blas){0};
}

/* Computes any product with plain loops: element (i, j) of op(a) is a[i * row_a + j * column_a]. Rows of c are summed
 * from rows of b; if b is transposed, elements of c are dot products. */
static void plain_rows(const whit_loops *loops, const whit_product *p)
{
    size_t row_a = p->transpose_a ? 1 : p->lda;
    size_t column_a = p->transpose_a ? p->lda : 1;
    for (size_t i = 0; i < p->m; i++) {
        float *row = p->c + i * p->ldc;
        if (p->beta == 0) memset(row, 0, p->n * sizeof *row);
        if (p->transpose_b && !p->transpose_a) {
            for (size_t j = 0; j < p->n; j++) row[j] += loops->dot(p->a + i * p->lda, p->b + j * p->ldb, p->k);
        } else if (p->transpose_b) {
            for (size_t j = 0; j < p->n; j++)
                for (size_t l = 0; l < p->k; l++) row[j] += p->a[i * row_a + l * column_a] * p->b[j * p->ldb + l];
        } else {
            for (size_t l = 0; l < p->k; l++)
                loops->add_scaled(row, p->b + l * p->ldb, p->a[i * row_a + l * column_a], p->n);
        }
    }
}

static void rounded_pack(const whit_gemm_kernel *kernel, const whit_product *p, size_t begin, size_t end,
                         uint8_t *packed)
{
    whit_gemm_operand b = {p->b, p->ldb, p->transpose_b};
    whit_gemm_pack(kernel, &b, p->n, p->k, begin, end, packed);
}
static void rounded_rows(const whit_gemm_kernel *kernel, const whit_product *p, const uint8_t *packed, size_t begin,
                         size_t end)
{
    whit_gemm_operand a = {p->a, p->lda, p->transpose_a};
    whit_gemm_rows(kernel, &a, packed, begin, end, p->n, p->k, p->beta != 0, p->c, p->ldc);
}

static size_t n_panels(const whit_product *p)
{
    return (p->n + WHIT_GEMM_SIDE - 1) / WHIT_GEMM_SIDE;
}

void whit_blas_multiply(const whit_blas *blas, uint32_t worker, const whit_product *p)
{
    if (!p->m || !p->n) return;
    if (blas->multiply_adds)
        atomic_fetch_add_explicit(blas->multiply_adds, (uint64_t)p->m * p->n * p->k, memory_order_relaxed);
    if (blas->packed) {
        uint8_t *own = blas->packed + blas->common_bytes + worker * blas->own_bytes;
        rounded_pack(blas->kernel, p, 0, n_panels(p), own);
        rounded_rows(blas->kernel, p, own, 0, p->m);
    } else if (blas->library) {
        int turn_a = p->transpose_a ? TRANSPOSE : NO_TRANSPOSE;
        int turn_b = p->transpose_b ? TRANSPOSE : NO_TRANSPOSE;
        blas->gemm(ROW_MAJOR, turn_a, turn_b, (int)p->m, (int)p->n, (int)p->k, 1.0f, p->a, (int)p->lda, p->b,
                   (int)p->ldb, p->beta, p->c, (int)p->ldc);
    } else {
        plain_rows(blas->loops, p);
    }
}

/* ---- products on all threads ----------------------------------------------------------------- */

struct share_job {
    const whit_blas *blas;
    const whit_product *product;
    size_t piece; /* number of rows of c per job */
};

static void pack_panels(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    (void)worker;
    const struct share_job *job = context;
    rounded_pack(job->blas->kernel, job->product, begin, end, job->blas->packed);
}

static void multiply_pieces(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    const struct share_job *job = context;
    const whit_product *all = job->product;
    for (size_t piece = begin; piece < end; piece++) {
        size_t from = piece * job->piece, to = from + job->piece < all->m ? from + job->piece : all->m;
        if (job->blas->packed) {
            rounded_rows(job->blas->kernel, all, job->blas->packed, from, to);
        } else {
            whit_product part = *all;
            part.m = to - from;
            part.a += all->transpose_a ? from : from * all->lda;
            part.c += from * all->ldc;
            whit_blas_multiply(job->blas, worker, &part);
        }
    }
}

void whit_blas_share(const whit_blas *blas, whit_pool *pool, const whit_product *p)
{
    struct share_job job = {blas, p, ROUNDED_PIECE};
    if (blas->packed) {
        whit_pool_run(pool, pack_panels, &job, (uint32_t)n_panels(p), 1);
    } else { /* cut c into about four pieces, more only if they would exceed LARGEST_PIECE, because each piece packs all
              * of b again */
        job.piece = whit_round_up((p->m + 3) / 4, 64);
        if (job.piece > LARGEST_PIECE) job.piece = LARGEST_PIECE;
    }
    whit_pool_run(pool, multiply_pieces, &job, (uint32_t)((p->m + job.piece - 1) / job.piece), 1);
}

void whit_blas_share_packed(const whit_blas *blas, whit_pool *pool, bool transpose_b, const float *a, size_t m,
                            size_t k, const float *b, size_t n, float *c, bool adds)
{
    whit_product product = whit_product_packed(false, transpose_b, a, b, m, n, k, c);
    product.beta = adds;
    whit_blas_share(blas, pool, &product);
}
