/* SPDX-License-Identifier: MIT
 * Shared by the tests of adapters: the small model as an .ndf file, all logits of a text with adapters mounted, and
 * the same model with changed dense weights. */
#ifndef WHIT_TESTS_ADAPTER_RUN_H
#define WHIT_TESTS_ADAPTER_RUN_H

#include "test_folder.h"

#include <math.h>

#include "kernels/codec.h"
#include "model/convert.h"
#include "runtime/adapter.h"
#include "tiny_model.h"

#define N_TOKENS 70 /* more than one KV block, and more rows than one thread processes */

static inline void make_model(const char *name, uint64_t seed)
{
    whit_error error;
    whit_source source;
    whit_ndf_writer *writer;
    tiny_model tiny = tiny_model_default();
    tiny.seed = seed;
    const char *gguf = in_folder("source.gguf");
    assert_true(tiny_model_write(&tiny, gguf));
    assert_ok(whit_source_open(gguf, NULL, &source, &error), error);
    assert_ok(whit_ndf_writer_open(in_folder(name), NULL, NULL, &writer, &error), error);
    assert_ok(whit_convert(&source, &(whit_convert_options){0}, writer, &error), error);
    whit_ndf_writer_close(writer);
    whit_source_close(&source);
}

static inline whit_adapter *open_adapter(const whit_model *model, const char *name)
{
    whit_error error;
    whit_adapter *adapter;
    assert_ok(whit_adapter_open(model, in_folder(name), &adapter, &error), error);
    return adapter;
}

static inline int32_t token_at(uint32_t which, uint32_t i)
{
    return (int32_t)((i * 7919u + which * 104729u + i * i) % TINY_N_VOCAB);
}

static inline whit_session_options options_of(whit_act_type act)
{
    whit_session_options options = whit_session_options_default();
    options.n_ctx_tokens = 128;
    options.n_logits = N_TOKENS;
    options.n_threads = 1;
    options.act = act;
    options.kv = WHIT_KV_F32;
    return options;
}

/* Feeds text `which` to a sequence from its beginning, `split` tokens per step, and writes the logits of all tokens. */
static inline void feed(whit_session *session, uint32_t sequence, uint32_t which, uint32_t split, float *logits)
{
    whit_error error;
    assert_ok(whit_session_truncate(session, sequence, 0, &error), error);
    for (uint32_t i = 0; i < N_TOKENS;) {
        whit_step_token tokens[N_TOKENS];
        uint32_t n = 0;
        for (; n < split && i < N_TOKENS; n++, i++)
            tokens[n] = (whit_step_token){.sequence = sequence, .id = token_at(which, i), .want_logits = true};
        assert_ok(whit_session_step(session, tokens, n, &error), error);
        for (uint32_t k = 0; k < n; k++, logits += TINY_N_VOCAB)
            memcpy(logits, whit_session_logits(session, k), TINY_N_VOCAB * sizeof *logits);
    }
}

/* Returns (N_TOKENS, TINY_N_VOCAB) logits with the adapters in `mounts`; the caller frees them. */
static inline float *run(const whit_model *model, whit_session_options options, const whit_mount *mounts, size_t n,
                         uint32_t split)
{
    whit_error error;
    whit_session *session;
    float *logits = malloc((size_t)N_TOKENS * TINY_N_VOCAB * sizeof *logits);
    assert_ok(whit_session_open(model, &options, &session, &error), error);
    assert_ok(whit_session_mount(session, 0, mounts, n, &error), error);
    feed(session, 0, 0, split, logits);
    whit_session_close(session);
    return logits;
}

/* ---- dense weights -------------------------------------------------------------------------- */

/* Copies a model's file into memory, so that its f32 matrices can be changed. */
static inline void dense_open(const whit_model *model, whit_buf *file)
{
    const void *address;
    size_t size_bytes;
    const char *path;
    assert_true(whit_model_mapping(model, 0, &address, &size_bytes, &path));
    assert_true(whit_buf_append(file, address, size_bytes));
}

/* Adds `strength` B A to the weights of a matrix; a is (rank, n_cols), b is (n_rows, rank). */
static inline void dense_add(const whit_model *model, whit_buf *file, const char *name, double strength, uint32_t rank,
                             const double *a, const double *b)
{
    const void *address;
    size_t size_bytes;
    const char *path;
    const whit_tensor *w = &model->weights.tensors[whit_ndf_find(model->file, name)];
    assert_int_equal(w->type.codec, WHIT_CODEC_F32);
    assert_true(whit_model_mapping(model, 0, &address, &size_bytes, &path));
    float *elems = (float *)(void *)(file->data + (w->part[WHIT_PART_CODES] - (const uint8_t *)address));
    for (uint32_t row = 0; row < w->type.n_rows; row++)
        for (uint32_t k = 0; k < w->type.n_cols; k++) {
            double sum = 0;
            float *value = elems + ((size_t)row / 16 * w->type.n_cols + k) * 16 + row % 16;
            for (uint32_t j = 0; j < rank; j++) sum += b[(size_t)row * rank + j] * a[(size_t)j * w->type.n_cols + k];
            *value = (float)((double)*value + strength * sum);
        }
}

static inline void assert_near(const float *found, const float *expected, double tolerance)
{
    float largest = 0, difference = 0; /* logits are finite, since the session reports others as an error */
    for (size_t i = 0; i < (size_t)N_TOKENS * TINY_N_VOCAB; i++) {
        largest = fmaxf(largest, fabsf(expected[i]));
        difference = fmaxf(difference, fabsf(found[i] - expected[i]));
    }
    if (!((double)difference <= tolerance * (double)largest))
        fail_msg("logits differ by %g of %g", (double)difference, (double)largest);
}

/* Fails if the adapters have not changed the logits, since the comparison would then prove nothing. */
static inline void assert_far(const float *found, const float *plain)
{
    float moved = 0;
    for (size_t i = 0; i < (size_t)N_TOKENS * TINY_N_VOCAB; i++) moved = fmaxf(moved, fabsf(found[i] - plain[i]));
    assert_true(moved > 0.1f);
}

#endif
