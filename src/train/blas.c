/* SPDX-License-Identifier: MIT */
#include "train/blas.h"

#include "whit_config.h"

#include <dlfcn.h>
#include <string.h>

/* Numbers of the CBLAS interface. */
enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111, TRANSPOSE = 112 };

void whit_blas_open(whit_blas *blas, const whit_loops *loops)
{
    *blas = (whit_blas){.loops = loops};
#if WHIT_HAVE_OPENBLAS
    /* It stays loaded: its threads do not survive being unloaded in all versions. */
    void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) return;
    void (*set_threads)(int);
    int (*get_parallel)(void);
    /* POSIX lets a pointer from dlsym become one to a function, ISO C by this way round only. */
    *(void **)&set_threads = dlsym(library, "openblas_set_num_threads");
    *(void **)&get_parallel = dlsym(library, "openblas_get_parallel");
    *(void **)&blas->gemm = dlsym(library, "cblas_sgemm");
    /* A sequential build (0) shares its buffers without a lock: two of our threads in it at once
     * give wrong products. The threaded builds are safe, with one thread each. */
    if (!set_threads || !get_parallel || !blas->gemm || get_parallel() == 0) {
        dlclose(library);
        *blas = (whit_blas){.loops = loops};
        return;
    }
    set_threads(1);
    blas->library = library;
#endif
}

void whit_blas_close(whit_blas *blas)
{
    if (blas->library) dlclose(blas->library);
    *blas = (whit_blas){0};
}

const char *whit_blas_name(const whit_blas *blas)
{
    return blas->library ? "OpenBLAS" : "plain loops";
}

/* Any strides: element (i, j) of a is a[i * row_a + j * column_a]. Rows of c are built from rows of
 * b, or from dots where b is transposed. */
static void plain_gemm(const whit_loops *loops, bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k, const float *a, size_t lda,
                       const float *b, size_t ldb, float beta, float *c, size_t ldc)
{
    size_t row_a = transpose_a ? 1 : lda, column_a = transpose_a ? lda : 1;
    for (size_t i = 0; i < m; i++) {
        float *row = c + i * ldc;
        if (beta == 0) memset(row, 0, n * sizeof *row);
        if (transpose_b && !transpose_a) {
            for (size_t j = 0; j < n; j++) row[j] += loops->dot(a + i * lda, b + j * ldb, k);
        } else if (transpose_b) {
            for (size_t j = 0; j < n; j++)
                for (size_t l = 0; l < k; l++) row[j] += a[i * row_a + l * column_a] * b[j * ldb + l];
        } else {
            for (size_t l = 0; l < k; l++) loops->add_scaled(row, b + l * ldb, a[i * row_a + l * column_a], n);
        }
    }
}

void whit_blas_gemm(const whit_blas *blas, bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k,
                    const float *a, size_t lda, const float *b, size_t ldb, float beta, float *c, size_t ldc)
{
    if (!m || !n) return;
    if (!blas->library) {
        plain_gemm(blas->loops, transpose_a, transpose_b, m, n, k, a, lda, b, ldb, beta, c, ldc);
        return;
    }
    blas->gemm(ROW_MAJOR, transpose_a ? TRANSPOSE : NO_TRANSPOSE, transpose_b ? TRANSPOSE : NO_TRANSPOSE, (int)m,
               (int)n, (int)k, 1.0f, a, (int)lda, b, (int)ldb, beta, c, (int)ldc);
}
