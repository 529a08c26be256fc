/* SPDX-License-Identifier: MIT
 * Measures the training throughput of a Llama of ten million parameters, and in the same run the throughput of SGEMM on
 * matrices of the same shapes: bench_train [THREADS [SECONDS]]. A step is complete training on next-token prediction:
 * forward, loss, backward, optimiser. It counts as 6 operations per matrix parameter and token, or as 8 if activations
 * are recomputed. */
#include "base/clock.h"
#include "tiny_model.h"
#include "train/adamw.h"
#include "train/loss.h"
#include "train/tape.h"
#include "train/trainee.h"

#include <dlfcn.h>
#include <unistd.h>

enum { SEQUENCES = 8, TOKENS = 256, ROWS = SEQUENCES * TOKENS };

static const tiny_model shape = {.seed = 1,
                                 .n_layers = 8,
                                 .n_embd = 320,
                                 .n_ff = 960,
                                 .n_heads = 10,
                                 .n_kv_heads = 5,
                                 .n_ctx = TOKENS,
                                 .tied_head = true};

/* ---- SGEMM ---------------------------------------------------------------------------------- */

typedef void sgemm_fn(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha, const float *a,
                      int lda, const float *b, int ldb, float beta, float *c, int ldc);
enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111, TRANSPOSE = 112 };

static float *floats(size_t n)
{
    float *x = aligned_alloc(64, n * sizeof *x);
    if (!x) exit(1);
    for (size_t i = 0; i < n; i++) x[i] = (float)(i % 97) / 97.0f - 0.5f;
    return x;
}

/* Computes the three products of a linear layer: y = x W^T, dx = dy W, dW = dy^T x. */
static void three_products(sgemm_fn *sgemm, float *x, float *w, float *y, int n_out, int n_in)
{
    sgemm(ROW_MAJOR, NO_TRANSPOSE, TRANSPOSE, ROWS, n_out, n_in, 1, x, n_in, w, n_in, 0, y, n_out);
    sgemm(ROW_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, ROWS, n_in, n_out, 1, y, n_out, w, n_in, 0, x, n_in);
    sgemm(ROW_MAJOR, TRANSPOSE, NO_TRANSPOSE, n_out, n_in, ROWS, 1, y, n_out, x, n_in, 0, w, n_in);
}

/* Returns the GFLOP/s of OpenBLAS, with its own threads, over all matrices of the model; 0 if OpenBLAS is not
 * installed. */
static double measure_sgemm(const whit_trainee *model, int n_threads, double seconds)
{
    void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    sgemm_fn *sgemm = NULL;
    void (*set_threads)(int) = NULL;
    if (library) {
        *(void **)&sgemm = dlsym(library, "cblas_sgemm");
        *(void **)&set_threads = dlsym(library, "openblas_set_num_threads");
    }
    if (!sgemm || !set_threads) return 0;
    set_threads(n_threads);
    float *x = floats((size_t)ROWS * 1024), *y = floats((size_t)ROWS * 1024), *w = floats((size_t)1024 * 1024);
    double operations = 0, best = 0;
    for (uint64_t begin = whit_now_ns(); (double)(whit_now_ns() - begin) * 1e-9 < seconds;) {
        uint64_t from = whit_now_ns();
        operations = 0;
        for (uint32_t i = 0; i < model->graph.n_nodes; i++) {
            const whit_node *node = &model->graph.nodes[i];
            if (node->op != WHIT_OP_LINEAR) continue;
            const whit_tensor_type *type = &model->params.items[node->weight].type;
            three_products(sgemm, x, w, y, (int)type->n_rows, (int)type->n_cols);
            operations += 6.0 * ROWS * type->n_rows * type->n_cols;
        }
        double rate = operations / (double)(whit_now_ns() - from);
        if (rate > best) best = rate;
    }
    set_threads(1);
    free(x);
    free(y);
    free(w);
    return best;
}

/* ---- training ------------------------------------------------------------------------------- */

struct run {
    const char *name;
    whit_precision precision;
    bool recompute;
};

static size_t matrix_params(const whit_trainee *model)
{
    size_t n = 0;
    for (uint32_t i = 0; i < model->graph.n_nodes; i++)
        if (model->graph.nodes[i].op == WHIT_OP_LINEAR) n += model->params.items[model->graph.nodes[i].weight].n;
    return n;
}

static void train_step(whit_trainee *model, whit_tape *tape, whit_loss *loss, whit_pool *pool, const int32_t *ids,
                       uint64_t number)
{
    whit_adamw adamw = whit_adamw_default();
    whit_ref output = model->graph.output;
    whit_params_round(&model->params, pool);
    whit_tape_zero_gradients(tape);
    whit_tape_forward(tape, ids);
    whit_loss_run(loss, pool, whit_tape_gradient(tape, output), NULL, ids, model->config.n_vocab, 1);
    whit_tape_backward(tape, NULL, NULL);
    whit_adamw_step(&adamw, &model->params, pool, number, 1e-4f, whit_adamw_norm(&model->params));
}

/* Prints the tokens/s of the fastest step within `seconds`, and its GFLOP/s as a share of `sgemm`, which is also in
 * GFLOP/s. */
static whit_status measure_training(const whit_model *file, const struct run *run, uint32_t n_threads, double seconds,
                                    double sgemm, whit_error *error)
{
    whit_trainee model = {0};
    whit_tape tape = {0};
    whit_loss loss = {0};
    whit_pool *pool = NULL;
    static int32_t ids[ROWS];
    for (uint32_t i = 0; i < ROWS; i++) ids[i] = (int32_t)(i * 7 % TINY_N_VOCAB);
    whit_tape_options batch = {SEQUENCES, TOKENS, true, run->recompute, run->precision};
    whit_status status = whit_pool_open(n_threads, NULL, &pool, error);
    if (status == WHIT_OK)
        status = whit_trainee_open(&model, file, &(whit_trainee_codecs){"t", "i8"}, NULL, NULL, error);
    if (status == WHIT_OK)
        status = whit_tape_open(&tape, &model.graph, &model.config, &model.params, &batch, pool, NULL, error);
    if (status == WHIT_OK) status = whit_loss_open(&loss, ROWS, 1, 0, NULL, error);
    if (status == WHIT_OK) {
        whit_params_fit(&model.params, pool, NULL);
        uint64_t best = UINT64_MAX, begin = whit_now_ns();
        for (uint64_t n = 1; n < 3 || (double)(whit_now_ns() - begin) * 1e-9 < seconds; n++) {
            uint64_t from = whit_now_ns();
            train_step(&model, &tape, &loss, pool, ids, n);
            if (whit_now_ns() - from < best) best = whit_now_ns() - from;
        }
        double tokens = ROWS * 1e9 / (double)best;
        double rate = (run->recompute ? 8e-9 : 6e-9) * (double)matrix_params(&model) * tokens;
        printf("%-26s %8.0f tokens/s %8.1f GFLOP/s", run->name, tokens, rate);
        if (sgemm > 0) printf(" %6.0f %% of SGEMM", 100 * rate / sgemm);
        printf("\n");
    }
    if (loss.rows) whit_loss_close(&loss);
    whit_tape_close(&tape);
    whit_trainee_close(&model);
    whit_pool_close(pool);
    return status;
}

static whit_status measure_all(const whit_model *file, uint32_t n_threads, double seconds, whit_error *error)
{
    static const struct run runs[] = {
        {"f32", WHIT_PRECISION_F32, false},
        {"f32, computed again", WHIT_PRECISION_F32, true},
        {"bf16", WHIT_PRECISION_BF16, false},
        {"bf16-avx512", WHIT_PRECISION_BF16_PAIRS, false},
        {"bf16, computed again", WHIT_PRECISION_BF16, true},
    };
    whit_trainee model;
    WHIT_TRY(whit_trainee_open(&model, file, NULL, NULL, NULL, error));
    printf("%.1f M parameters in matrices, %u threads, %d x %d tokens\n", (double)matrix_params(&model) * 1e-6,
           n_threads, SEQUENCES, TOKENS);
    double sgemm = measure_sgemm(&model, (int)n_threads, seconds);
    whit_trainee_close(&model);
    if (sgemm > 0) printf("%-26s %26.1f GFLOP/s\n", "SGEMM at its shapes", sgemm);
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++)
        if (runs[i].precision != WHIT_PRECISION_BF16 ||
            whit_precision_choose(WHIT_PRECISION_BF16) != WHIT_PRECISION_F32)
            WHIT_TRY(measure_training(file, &runs[i], n_threads, seconds, sgemm, error));
    return WHIT_OK;
}

int main(int argc, char **argv)
{
    uint32_t n_threads = argc > 1 ? (uint32_t)atoi(argv[1]) : 2;
    double seconds = argc > 2 ? atof(argv[2]) : 3;
    char path[] = "/tmp/bench-train-XXXXXX";
    int file = mkstemp(path);
    whit_error error;
    whit_model *model = NULL;
    if (file < 0 || !n_threads || !tiny_model_write(&shape, path)) {
        fprintf(stderr, "bench_train: the model could not be written\n");
        return 1;
    }
    close(file);
    whit_model_options options = {.struct_bytes = sizeof options, .no_cache = true};
    whit_status status = whit_model_open(path, &options, &model, &error);
    if (status == WHIT_OK) status = measure_all(model, n_threads, seconds, &error);
    if (status != WHIT_OK) fprintf(stderr, "bench_train: %s\n", error.message);
    whit_model_close(model);
    unlink(path);
    return status != WHIT_OK;
}
