/* SPDX-License-Identifier: MIT
 * Tests that the screened head never chooses another token than the full one, over very many positions. Half of them
 * use random heads of K = 2,560 with a reduced vocabulary and random hidden states, the other half a trained head
 * with the hidden states of its own text. WHIT_POSITIONS sets the number for each half (`make test-long` takes half
 * a million). */
#include "test.h"

#include <math.h>
#include <unistd.h>

#include "base/fpenv.h"
#include "base/rng.h"
#include "kernels/kernels.h"
#include "model/convert.h"
#include "quant/requantise.h"
#include "runtime/model.h"
#include "train/corpus.h"

enum { BATCH = 64, N_TOP = 40, TOP_EVERY = 64 };

static uint32_t n_positions(void)
{
    const char *text = getenv("WHIT_POSITIONS");
    return text ? (uint32_t)strtoul(text, NULL, 10) : 6400;
}

typedef struct trial {
    whit_kernels kernels;
    whit_tensor head;
    whit_acts acts;
    void *memory, *scratch;
    float *full, *screened; /* logits of the full and of the screened head, (BATCH, n_rows) */
    uint32_t *rows;
    uint64_t n_survivors;
} trial;

static void trial_open(trial *t, const whit_tensor *head)
{
    whit_cpu cpu;
    whit_error error;
    whit_cpu_detect(&cpu);
    t->head = *head;
    t->n_survivors = 0;
    assert_ok(whit_kernels_select(&cpu, getenv("WHIT_CPU"), &t->kernels, &error), error);
    whit_acts_spec spec = whit_acts_spec_for(&head->type, WHIT_ACT_I8);
    t->memory = whit_alloc(NULL, whit_acts_bytes(&spec, BATCH, head->type.n_cols));
    assert_non_null(t->memory);
    t->acts = whit_acts_place(&spec, BATCH, head->type.n_cols, t->memory);
    const whit_matmul_kernel *kernel = whit_matmul_find(&t->kernels, &head->type, &spec, BATCH);
    t->scratch = whit_alloc(NULL, kernel->scratch_bytes ? kernel->scratch_bytes(&head->type, &spec, BATCH) : 64);
    t->full = calloc((size_t)BATCH * head->type.n_rows, sizeof *t->full);
    t->screened = calloc((size_t)BATCH * head->type.n_rows, sizeof *t->screened);
    t->rows = calloc(head->type.n_rows, sizeof *t->rows);
    assert_true(t->scratch && t->full && t->screened && t->rows);
}

static void trial_close(trial *t)
{
    whit_free(NULL, t->memory, 0);
    whit_free(NULL, t->scratch, 0);
    free(t->full), free(t->screened), free(t->rows);
}

/* Compares both heads for BATCH hidden states (BATCH, n_cols): the largest logit of each, and in some calls the N_TOP
 * largest. */
static void compare(trial *t, const float *hidden, uint32_t first)
{
    const whit_tensor_type *type = &t->head.type;
    const whit_kernels *k = &t->kernels;
    uint32_t n_tiles = (type->n_rows + 15) / 16, n = type->n_rows;
    whit_fpenv caller = whit_fpenv_enter();
    k->quantise(hidden, type->n_cols, &t->acts, 0, BATCH);
    whit_matmul_find(k, type, &t->acts.spec, BATCH)->run(&t->head, &t->acts, 0, n_tiles, t->full, n, t->scratch);
    k->screen(&t->head, &t->acts, 0, n_tiles, t->screened, n);
    for (uint32_t i = 0; i < BATCH; i++) {
        uint32_t n_best = i == first / BATCH % TOP_EVERY ? N_TOP : 1;
        const float *right = t->full + (size_t)i * n;
        float *found = t->screened + (size_t)i * n;
        uint32_t n_rescored = whit_screen_finish(k, &t->head, &t->acts, i, n_best, found, t->rows);
        if (n_best == 1) t->n_survivors += n_rescored;
        uint32_t chosen = k->argmax(found, n), wanted = k->argmax(right, n);
        if (chosen != wanted)
            fail_msg("position %u: the screen chooses %u, the full head %u", first + i, chosen, wanted);
        if (n_best == 1) continue;
        k->best_rows(right, n, n_best, t->rows);
        float least = INFINITY;
        for (uint32_t j = 0; j < n_best; j++) {
            assert_memory_equal(&found[t->rows[j]], &right[t->rows[j]], sizeof *right);
            if (right[t->rows[j]] < least) least = right[t->rows[j]];
        }
        uint32_t n_above = 0;
        for (uint32_t row = 0; row < n; row++) n_above += found[row] >= least;
        assert_int_equal(n_above, n_best);
    }
    whit_fpenv_leave(caller);
}

static float normal(whit_rng *rng)
{
    double u = whit_rng_uniform(rng), v = whit_rng_uniform(rng);
    return (float)(sqrt(-2 * log(1 - u)) * cos(6.283185307179586 * v));
}

/* Makes a random head whose codes are normally distributed with a standard deviation of 32. */
static void make_head(whit_rng *rng, uint32_t n_rows, uint32_t n_cols, whit_tensor *head,
                      uint8_t *parts[WHIT_PART_COUNT])
{
    whit_error error;
    *head = (whit_tensor){.type = whit_requantise_type(WHIT_CODEC_I8S, n_rows, n_cols)};
    for (int p = 0; p < WHIT_PART_COUNT; p++) {
        parts[p] = NULL;
        if (!whit_codec_part_bytes(&head->type, (whit_part)p, &head->part_bytes[p]) || !head->part_bytes[p]) continue;
        head->part[p] = parts[p] = whit_alloc(NULL, head->part_bytes[p]);
        assert_non_null(parts[p]);
    }
    int8_t *codes = malloc((size_t)16 * n_cols);
    assert_non_null(codes);
    for (uint32_t row = 0; row < n_rows; row += 16) {
        float scales[16];
        for (uint32_t i = 0; i < 16; i++) scales[i] = 0.01f + 0.001f * (float)whit_rng_uniform(rng);
        for (uint32_t i = 0; i < 16 * n_cols; i++) codes[i] = (int8_t)fmaxf(-127, fminf(127, rintf(32 * normal(rng))));
        assert_ok(whit_codec_pack(&head->type, row, 16, &(whit_rows){.elems = codes, .fields = scales}, parts, &error),
                  error);
    }
    free(codes);
}

static void random_heads(void **state)
{
    (void)state;
    enum { ROWS = 2048, COLS = 2560, POSITIONS_PER_HEAD = 32000 };
    whit_rng rng = {20261121};
    uint32_t n = n_positions();
    float *hidden = malloc((size_t)BATCH * COLS * sizeof *hidden);
    assert_non_null(hidden);
    uint64_t n_survivors = 0;
    for (uint32_t begin = 0; begin < n; begin += POSITIONS_PER_HEAD) {
        whit_tensor head;
        uint8_t *parts[WHIT_PART_COUNT];
        trial t;
        make_head(&rng, ROWS, COLS, &head, parts);
        trial_open(&t, &head);
        for (uint32_t at = begin; at < n && at < begin + POSITIONS_PER_HEAD; at += BATCH) {
            for (size_t i = 0; i < (size_t)BATCH * COLS; i++)
                hidden[i] = (float)(whit_rng_uniform(&rng) + whit_rng_uniform(&rng) - 1);
            compare(&t, hidden, at);
        }
        n_survivors += t.n_survivors;
        trial_close(&t);
        for (int p = 0; p < WHIT_PART_COUNT; p++) whit_free(NULL, parts[p], 0);
    }
    print_message("%u positions of random heads: the same tokens; %.1f of %d rows read whole\n", n,
                  (double)n_survivors / n, ROWS);
    free(hidden);
}

static void convert(const char *source_path, const char *path)
{
    whit_error error;
    whit_source source;
    whit_ndf_writer *writer;
    whit_convert_options options = {.head = "i8s"};
    assert_ok(whit_source_open(source_path, NULL, &source, &error), error);
    assert_ok(whit_ndf_writer_open(path, NULL, NULL, &writer, &error), error);
    assert_ok(whit_convert(&source, &options, writer, &error), error);
    whit_ndf_writer_close(writer);
    whit_source_close(&source);
}

static void trained_head(void **state)
{
    (void)state;
    enum { WINDOW = 4 * BATCH };
    const char *source = shared_path("models/prose-6M/prose-6M-f16.gguf"),
               *text = shared_path("models/prose-6M/train.txt");
    char path[] = "/tmp/whit-choices-XXXXXX";
    close(mkstemp(path));
    convert(source, path);
    whit_error error;
    whit_model *model;
    whit_session *session;
    assert_ok(whit_model_open(path, NULL, &model, &error), error);
    unlink(path);
    whit_session_options options = whit_session_options_default();
    options.n_ctx_tokens = options.n_batch_tokens = options.n_logits = WINDOW;
    options.keep_hidden = true;
    assert_ok(whit_session_open(model, &options, &session, &error), error);
    whit_corpus corpus = {0};
    assert_ok(whit_corpus_add_file(&corpus, model, text, false, &error), error);
    trial t;
    trial_open(&t, &model->weights.tensors[whit_ndf_find(model->file, "embed")]);
    uint32_t n = n_positions(), n_embd = t.head.type.n_cols;
    float *hidden = malloc((size_t)BATCH * n_embd * sizeof *hidden);
    assert_non_null(hidden);
    for (uint32_t at = 0; at < n; at += WINDOW) {
        whit_step_token tokens[WINDOW];
        for (uint32_t i = 0; i < WINDOW; i++)
            tokens[i] = (whit_step_token){.id = corpus.ids[(at + i) % corpus.n], .want_logits = true};
        assert_ok(whit_session_truncate(session, 0, 0, &error), error);
        assert_ok(whit_session_step(session, tokens, WINDOW, &error), error);
        for (uint32_t b = 0; b < WINDOW; b += BATCH) {
            for (uint32_t i = 0; i < BATCH; i++)
                memcpy(hidden + (size_t)i * n_embd, whit_session_hidden(session, b + i), n_embd * sizeof *hidden);
            compare(&t, hidden, at + b);
        }
    }
    print_message("%u positions of a trained head: the same tokens; %.1f of %u rows read whole\n", n,
                  (double)t.n_survivors / n, t.head.type.n_rows);
    free(hidden);
    trial_close(&t);
    whit_corpus_free(&corpus);
    whit_session_close(session);
    whit_model_close(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_heads), cmocka_unit_test(trained_head)};
    return cmocka_run_group_tests_name("screened_choices", tests, NULL, NULL);
}
