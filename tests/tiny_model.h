/* SPDX-License-Identifier: MIT
 * Makes a small Llama as a GGUF file: random weights, and a SentencePiece-style tokenizer with byte fallback. Its
 * text is nonsense, but it runs everything that a real model does, so that a clone without ../shared has end-to-end
 * tests, too. */
#ifndef WHIT_TESTS_TINY_MODEL_H
#define WHIT_TESTS_TINY_MODEL_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/rng.h"
#include "format/gguf_write.h"
#include "ggml_random.h"

typedef struct tiny_model {
    uint64_t seed;
    uint32_t n_layers, n_embd, n_ff, n_heads, n_kv_heads, n_ctx;
    uint32_t n_rope_factors; /* 0: no RoPE factors */
    whit_ggml_kind kind;     /* type of the matrices: F32, or a coded type with random codes */
    bool scale_tensors;      /* adds "blk.0.attn_q.scale" with the value 3, and an input scale that must be ignored */
    bool tied_head, no_tokenizer;
    const char *chat_template;                                    /* NULL: no template */
    void (*put_keys)(whit_gguf_writer *writer, const void *user); /* adds further keys; NULL: none */
    const void *user;
} tiny_model;

/* chat template with an end-of-turn token */
#define TINY_TEMPLATE                                                                                                  \
    "{{ bos_token }}{% for m in messages %}{{ m.role }}:{{ m.content }}{{ eos_token }}"                                \
    "{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}"

static inline tiny_model tiny_model_default(void)
{
    return (tiny_model){
        .seed = 1, .n_layers = 2, .n_embd = 64, .n_ff = 96, .n_heads = 4, .n_kv_heads = 2, .n_ctx = 256};
}

/* pieces after 3 control tokens and 256 bytes: the letters, and words that merges build from them */
/* clang-format off */
static const char *const tiny_pieces[] = {
    "\xE2\x96\x81", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q",
    "r", "s", "t", "u", "v", "w", "x", "y", "z", ".", ",", "O", "T", "L", "th", "he", "the", "in", "on",
    "an", "and", "\xE2\x96\x81t", "\xE2\x96\x81th", "\xE2\x96\x81the", "\xE2\x96\x81" "a", "\xE2\x96\x81" "an",
    "\xE2\x96\x81" "and", "ce", "nce", "nc", "ime", "me", "\xC3\xA9",
};
/* clang-format on */
enum {
    TINY_N_PIECES = sizeof tiny_pieces / sizeof *tiny_pieces,
    TINY_N_VOCAB = 3 + 256 + TINY_N_PIECES,
    TINY_BOS = 1,
    TINY_EOS = 2
};

static inline void tiny_put_tokenizer(whit_gguf_writer *writer)
{
    static const char *const control[] = {"<unk>", "<s>", "</s>"};
    float scores[TINY_N_VOCAB] = {0};
    int32_t kinds[TINY_N_VOCAB];
    whit_gguf_put_string(writer, "tokenizer.ggml.model", "llama", 5);
    whit_gguf_put_strings(writer, "tokenizer.ggml.tokens", TINY_N_VOCAB);
    for (int id = 0; id < TINY_N_VOCAB; id++) {
        char byte[8];
        const char *piece = id < 3 ? control[id] : tiny_pieces[id >= 259 ? id - 259 : 0];
        if (id >= 3 && id < 259) {
            snprintf(byte, sizeof byte, "<0x%02X>", (unsigned)(id - 3));
            piece = byte;
        }
        whit_gguf_put_element(writer, piece, strlen(piece));
        /* types: 1 normal, 2 unknown, 3 control, 6 byte; longer pieces have higher scores */
        kinds[id] = id == 0 ? 2 : id < 3 ? 3 : id < 259 ? 6 : 1;
        if (id >= 259) scores[id] = (float)strlen(piece) - 20.0f - 0.01f * (float)(id - 259);
    }
    whit_gguf_put_array(writer, "tokenizer.ggml.scores", WHIT_GGUF_F32, scores, TINY_N_VOCAB);
    whit_gguf_put_array(writer, "tokenizer.ggml.token_type", WHIT_GGUF_I32, kinds, TINY_N_VOCAB);
    whit_gguf_put_u32(writer, "tokenizer.ggml.unknown_token_id", 0);
    whit_gguf_put_u32(writer, "tokenizer.ggml.bos_token_id", TINY_BOS);
    whit_gguf_put_u32(writer, "tokenizer.ggml.eos_token_id", TINY_EOS);
    whit_gguf_put_bool(writer, "tokenizer.ggml.add_bos_token", true);
    whit_gguf_put_bool(writer, "tokenizer.ggml.add_eos_token", false);
}

typedef struct tiny_tensor {
    char name[64];
    uint32_t n_rows, n_cols; /* n_rows 0: a vector with values near 1 */
} tiny_tensor;

/* Describes tensor i, from 0. Returns false after the last. */
static inline bool tiny_tensor_at(const tiny_model *model, uint32_t i, tiny_tensor *tensor)
{
    enum { PER_LAYER = 9 };
    uint32_t d = model->n_embd, kv = d / model->n_heads * model->n_kv_heads, n_layers = model->n_layers;
    const struct {
        const char *name;
        uint32_t n_rows, n_cols;
    } layer[PER_LAYER] = {{"attn_norm", 0, d},
                          {"attn_q", d, d},
                          {"attn_k", kv, d},
                          {"attn_v", kv, d},
                          {"attn_output", d, d},
                          {"ffn_norm", 0, d},
                          {"ffn_gate", model->n_ff, d},
                          {"ffn_up", model->n_ff, d},
                          {"ffn_down", d, model->n_ff}};
    if (i < n_layers * PER_LAYER) {
        uint32_t k = i % PER_LAYER;
        snprintf(tensor->name, sizeof tensor->name, "blk.%u.%s.weight", i / PER_LAYER, layer[k].name);
        tensor->n_rows = layer[k].n_rows;
        tensor->n_cols = layer[k].n_cols;
        return true;
    }
    const char *names[] = {"token_embd.weight", "output_norm.weight", "output.weight", "rope_freqs.weight"};
    uint32_t k = i - n_layers * PER_LAYER;
    k += k >= 2 && model->tied_head;
    if (k > 3 || (k == 3 && !model->n_rope_factors)) return false;
    snprintf(tensor->name, sizeof tensor->name, "%s", names[k]);
    tensor->n_rows = k % 2 ? 0 : TINY_N_VOCAB;
    tensor->n_cols = k == 3 ? model->n_rope_factors : d;
    return true;
}

static inline void tiny_put_config(whit_gguf_writer *writer, const tiny_model *model)
{
    whit_gguf_put_string(writer, "general.architecture", "llama", 5);
    whit_gguf_put_string(writer, "general.name", "tiny", 4);
    whit_gguf_put_u32(writer, "llama.vocab_size", TINY_N_VOCAB);
    whit_gguf_put_u32(writer, "llama.context_length", model->n_ctx);
    whit_gguf_put_u32(writer, "llama.embedding_length", model->n_embd);
    whit_gguf_put_u32(writer, "llama.block_count", model->n_layers);
    whit_gguf_put_u32(writer, "llama.feed_forward_length", model->n_ff);
    whit_gguf_put_u32(writer, "llama.attention.head_count", model->n_heads);
    whit_gguf_put_u32(writer, "llama.attention.head_count_kv", model->n_kv_heads);
    whit_gguf_put_u32(writer, "llama.rope.dimension_count", model->n_embd / model->n_heads);
    whit_gguf_put_f32(writer, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
}

/* Declares the two tensors of scale_tensors. */
static inline void tiny_put_scale_tensors(whit_gguf_writer *writer)
{
    whit_gguf_put_tensor(writer, "blk.0.attn_q.scale", 0, 1, (const uint64_t[]){1}, 4);
    whit_gguf_put_tensor(writer, "blk.0.attn_q.input_scale", 0, 1, (const uint64_t[]){1}, 4);
}

/* Writes a matrix of a coded type. */
static inline whit_status tiny_write_codes(whit_gguf_writer *writer, const tiny_model *model, const tiny_tensor *tensor,
                                           whit_rng *rng, whit_error *error)
{
    uint64_t size;
    uint8_t *data = random_tensor(model->kind, tensor->n_cols, tensor->n_rows, &size, rng);
    if (!data) return whit_fail(error, WHIT_ERROR_ARGUMENT, "%s has no such shape", tensor->name);
    whit_status status = whit_gguf_write_data(writer, data, size, error);
    free(data);
    return status;
}

/* Writes the model to `path`. Returns false after printing a message on stderr. */
static inline bool tiny_model_write(const tiny_model *model, const char *path)
{
    whit_gguf_writer writer;
    whit_writer file;
    whit_error error = {0};
    tiny_tensor tensor;
    whit_gguf_writer_init(&writer, WHIT_GGUF_ALIGNMENT_BYTES, NULL);
    tiny_put_config(&writer, model);
    if (!model->no_tokenizer) tiny_put_tokenizer(&writer);
    if (model->chat_template)
        whit_gguf_put_string(&writer, "tokenizer.chat_template", model->chat_template, strlen(model->chat_template));
    if (model->put_keys) model->put_keys(&writer, model->user);
    for (uint32_t i = 0; tiny_tensor_at(model, i, &tensor); i++) {
        uint64_t dims[2] = {tensor.n_cols, tensor.n_rows};
        uint64_t n_elems = (uint64_t)tensor.n_cols * (tensor.n_rows ? tensor.n_rows : 1);
        uint64_t bytes = 4 * n_elems;
        whit_ggml_kind kind = tensor.n_rows ? model->kind : WHIT_GGML_F32;
        if (kind) whit_ggml_size(kind, tensor.n_cols, tensor.n_rows, &bytes);
        whit_gguf_put_tensor(&writer, tensor.name, whit_ggml_kind_info(kind)->id, tensor.n_rows ? 2 : 1, dims, bytes);
    }
    if (model->scale_tensors) tiny_put_scale_tensors(&writer);
    whit_rng rng = {model->seed};
    whit_status status = whit_writer_open(path, NULL, &file, &error);
    if (status == WHIT_OK) status = whit_gguf_write_head(&writer, &file, &error);
    for (uint32_t i = 0; status == WHIT_OK && tiny_tensor_at(model, i, &tensor); i++) {
        if (model->kind && tensor.n_rows) {
            status = tiny_write_codes(&writer, model, &tensor, &rng, &error);
            continue;
        }
        for (uint32_t row = 0; status == WHIT_OK && row < (tensor.n_rows ? tensor.n_rows : 1); row++) {
            float values[4096];
            uint32_t n = tensor.n_cols < 4096 ? tensor.n_cols : 4096;
            for (uint32_t k = 0; k < n; k++) {
                float x = (float)(whit_rng_uniform(&rng) - 0.5);
                values[k] = tensor.n_rows ? 0.6f * x : 1.0f + 0.2f * x;
            }
            status = whit_gguf_write_data(&writer, values, 4 * n, &error);
        }
    }
    for (int i = 0; status == WHIT_OK && model->scale_tensors && i < 2; i++)
        status = whit_gguf_write_data(&writer, &(float){3}, 4, &error);
    if (status == WHIT_OK) status = whit_gguf_write_end(&writer, &error);
    if (status == WHIT_OK) status = whit_writer_commit(&file, &error);
    whit_writer_discard(&file);
    whit_gguf_writer_close(&writer);
    if (status != WHIT_OK) fprintf(stderr, "%s\n", error.message);
    return status == WHIT_OK;
}

/* Writes the model to a new file. `path` ends in XXXXXX and gets the file's name. Returns 0 or -1, for cmocka's
 * fixtures; the caller deletes the file. */
static inline int tiny_model_make(const tiny_model *model, char *path)
{
    int fd = mkstemp(path);
    if (fd < 0) return -1;
    close(fd);
    return tiny_model_write(model, path) ? 0 : -1;
}

#endif
