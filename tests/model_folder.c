/* SPDX-License-Identifier: MIT */
#include "model_folder.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/half.h"
#include "base/rng.h"

/* ---- the models ------------------------------------------------------------------------------ */

#define LLAMA_FIELDS                                                                                                   \
    "\"architectures\": [\"LlamaForCausalLM\"], \"attention_bias\": false, \"hidden_act\": \"silu\", "                 \
    "\"initializer_range\": 0.02, \"model_type\": \"llama\", \"pretraining_tp\": 1, \"use_cache\": true, "
#define BITNET_FIELDS                                                                                                  \
    "\"architectures\": [\"BitNetForCausalLM\"], \"hidden_act\": \"relu2\", \"initializer_range\": 0.02, "             \
    "\"max_position_embeddings\": 4096, \"model_type\": \"bitnet\", \"rms_norm_eps\": 1e-05, "                         \
    "\"rope_theta\": 500000.0, \"torch_dtype\": \"bfloat16\", \"use_cache\": true, "
#define LLAMA3_SPECIALS                                                                                                \
    {                                                                                                                  \
        {128000, "<|begin_of_text|>"}, {128001, "<|end_of_text|>"}, {128006, "<|start_header_id|>"},                   \
            {128007, "<|end_header_id|>"},                                                                             \
        {                                                                                                              \
            128009, "<|eot_id|>"                                                                                       \
        }                                                                                                              \
    }
#define BITNET_NORMS                                                                                                   \
    {                                                                                                                  \
        "self_attn.attn_sub_norm", "mlp.ffn_sub_norm"                                                                  \
    }

/* Columns: name, dtype, layers, hidden and intermediate sizes, heads, KV heads, head size, vocabulary size. */
#define SIZES(model_name, type, layers, width, ffn, heads, kv_heads, head, vocab)                                      \
    .name = (model_name), .dtype = (type), .n_layers = (layers), .hidden = (width), .intermediate = (ffn),             \
    .n_heads = (heads), .n_kv_heads = (kv_heads), .head_dim = (head), .n_vocab = (vocab)

/* clang-format off */
static const folder_model models[] = {
    {SIZES("bitnet-2b4t", "BF16", 30, 2560, 6912, 20, 5, 128, 128256), .weights = FOLDER_PACKED,
     .sub_norms = BITNET_NORMS, .embed = true, .tied = true, .bos = 128000, .eos = 128001,
     .specials = LLAMA3_SPECIALS, .n_shards = 1,
     .config = BITNET_FIELDS "\"quantization_config\": {\"quant_method\": \"bitnet\", \"linear_class\": "
       "\"autobitlinear\", \"quantization_mode\": \"offline\"}, "},
    {SIZES("bitnet-2b4t-bf16", "BF16", 30, 2560, 6912, 20, 5, 128, 128256), .sub_norms = BITNET_NORMS, .embed = true,
     .tied = true, .bos = 128000, .eos = 128001, .n_shards = 1,
     .config = BITNET_FIELDS "\"quantization_config\": {\"quant_method\": \"bitnet\", \"linear_class\": "
       "\"autobitlinear\", \"quantization_mode\": \"online\"}, "},
    {SIZES("1bitllm-3b", "F16", 26, 3200, 8640, 32, 32, 100, 32002),
     .sub_norms = {"self_attn.inner_attn_ln", "mlp.ffn_layernorm"}, .embed = true, .tied = true, .bos = 1, .eos = 2,
     .n_shards = 3,
     .config = "\"architectures\": [\"BitnetForCausalLM\"], \"attention_bias\": false, \"attention_dropout\": 0.0, "
       "\"hidden_act\": \"silu\", \"initializer_range\": 0.02, \"input_bits\": 8, \"max_position_embeddings\": 2048, "
       "\"model_type\": \"llama\", \"pad_token_id\": 32000, \"pretraining_tp\": 1, \"rms_norm_eps\": 1e-05, "
       "\"rope_scaling\": null, \"rope_theta\": 10000.0, \"torch_dtype\": \"float16\", \"transformers_version\": "
       "\"4.39.0\", \"use_cache\": true, \"weight_bits\": 1, "},
    {SIZES("falcon3-1b-1.58", "BF16", 18, 2048, 8192, 8, 4, 256, 131072), .weights = FOLDER_PACKED, .embed = true,
     .head = true, .states_head_dim = true, .bos = 0, .eos = 11,
     .specials = {{8, "<|system|>"}, {9, "<|user|>"}, {10, "<|assistant|>"}, {11, "<|endoftext|>"}}, .n_shards = 1,
     .config = LLAMA_FIELDS "\"attention_dropout\": 0.0, \"max_position_embeddings\": 8192, \"mlp_bias\": false, "
       "\"quantization_config\": {\"modules_to_not_convert\": null, \"quant_method\": \"bitnet\"}, \"rms_norm_eps\": "
       "1e-06, \"rope_scaling\": null, \"rope_theta\": 1000042, \"torch_dtype\": \"bfloat16\", "
       "\"transformers_version\": \"4.48.0.dev0\", "},
    {SIZES("qwen3-0.6b", "BF16", 28, 1024, 3072, 16, 8, 128, 151936), .qk_norm = true, .embed = true, .head = true,
     .tied = true, .states_head_dim = true, .bos = 151643, .eos = 151645,
     .specials = {{151643, "<|endoftext|>"}, {151644, "<|im_start|>"}, {151645, "<|im_end|>"}}, .n_shards = 1,
     .config = "\"architectures\": [\"Qwen3ForCausalLM\"], \"attention_bias\": false, \"attention_dropout\": 0.0, "
       "\"hidden_act\": \"silu\", \"initializer_range\": 0.02, \"max_position_embeddings\": 40960, "
       "\"max_window_layers\": 28, \"model_type\": \"qwen3\", \"rms_norm_eps\": 1e-06, \"rope_scaling\": null, "
       "\"rope_theta\": 1000000, \"sliding_window\": null, \"torch_dtype\": \"bfloat16\", \"transformers_version\": "
       "\"4.51.0\", \"use_cache\": true, \"use_sliding_window\": false, "},
    {SIZES("qwen2.5-0.5b", "BF16", 24, 896, 4864, 14, 2, 64, 151936), .qkv_bias = true, .embed = true, .tied = true,
     .bos = 151643, .eos = 151645, .n_shards = 1,
     .config = "\"architectures\": [\"Qwen2ForCausalLM\"], \"attention_dropout\": 0.0, \"hidden_act\": \"silu\", "
       "\"initializer_range\": 0.02, \"max_position_embeddings\": 32768, \"max_window_layers\": 21, \"model_type\": "
       "\"qwen2\", \"rms_norm_eps\": 1e-06, \"rope_theta\": 1000000.0, \"sliding_window\": 32768, \"torch_dtype\": "
       "\"bfloat16\", \"transformers_version\": \"4.43.1\", \"use_cache\": true, \"use_sliding_window\": false, "},
    {SIZES("tinyllama-1.1b", "BF16", 22, 2048, 5632, 32, 4, 64, 32000), .embed = true, .head = true, .bos = 1,
     .eos = 2, .specials = {{1, "<s>"}, {2, "</s>"}}, .n_shards = 1,
     .config = LLAMA_FIELDS "\"max_position_embeddings\": 2048, \"rms_norm_eps\": 1e-05, \"rope_scaling\": null, "
       "\"rope_theta\": 10000.0, \"torch_dtype\": \"bfloat16\", \"transformers_version\": \"4.35.0\", "},
    {SIZES("llama-3.2-1b", "BF16", 16, 2048, 8192, 32, 8, 64, 128256), .embed = true, .tied = true,
     .states_head_dim = true, .bos = 128000, .eos = 128009, .specials = LLAMA3_SPECIALS, .n_shards = 1,
     .config = LLAMA_FIELDS "\"attention_dropout\": 0.0, \"max_position_embeddings\": 131072, \"mlp_bias\": false, "
       "\"rms_norm_eps\": 1e-05, \"rope_scaling\": {\"factor\": 32.0, \"high_freq_factor\": 4.0, "
       "\"low_freq_factor\": 1.0, \"original_max_position_embeddings\": 8192, \"rope_type\": \"llama3\"}, "
       "\"rope_theta\": 500000.0, \"torch_dtype\": \"bfloat16\", \"transformers_version\": \"4.45.0.dev0\", "},
    {SIZES("mistral-7b-v0.1", "BF16", 32, 4096, 14336, 32, 8, 128, 32000), .embed = true, .head = true, .bos = 1,
     .eos = 2, .n_shards = 2,
     .config = "\"architectures\": [\"MistralForCausalLM\"], \"hidden_act\": \"silu\", \"initializer_range\": 0.02, "
       "\"max_position_embeddings\": 32768, \"model_type\": \"mistral\", \"rms_norm_eps\": 1e-05, \"rope_theta\": "
       "10000.0, \"sliding_window\": 4096, \"torch_dtype\": \"bfloat16\", \"transformers_version\": \"4.34.0.dev0\", "
       "\"use_cache\": true, "},
    {SIZES("llama-1-7b", "F16", 32, 4096, 11008, 32, 32, 128, 32000), .embed = true, .head = true, .old_table = true,
     .bos = 1, .eos = 2, .n_shards = 2,
     .config = "\"architectures\": [\"LlamaForCausalLM\"], \"hidden_act\": \"silu\", \"initializer_range\": 0.02, "
       "\"max_position_embeddings\": 2048, \"max_sequence_length\": 2048, \"model_type\": \"llama\", "
       "\"pad_token_id\": 0, \"rms_norm_eps\": 1e-06, \"torch_dtype\": \"float16\", \"transformers_version\": "
       "\"4.27.0.dev0\", \"use_cache\": true, "},
};
/* clang-format on */
enum { N_MODELS = sizeof models / sizeof *models };

const char *const folder_names[] = {
    "bitnet-2b4t",    "bitnet-2b4t-bf16", "1bitllm-3b",      "falcon3-1b-1.58", "qwen3-0.6b", "qwen2.5-0.5b",
    "tinyllama-1.1b", "llama-3.2-1b",     "mistral-7b-v0.1", "llama-1-7b",      NULL};

const folder_model *folder_find(const char *name)
{
    for (size_t i = 0; i < N_MODELS; i++)
        if (strcmp(models[i].name, name) == 0) return &models[i];
    return NULL;
}

folder_model folder_reduce(const folder_model *model, uint32_t n_layers, uint32_t divisor, uint32_t n_vocab)
{
    folder_model m = *model;
    if (n_layers) m.n_layers = n_layers;
    if (n_vocab) {
        m.n_vocab = n_vocab;
        m.bos = 256;
        m.eos = 257;
    }
    if (divisor <= 1) return m;
    uint32_t group = m.n_heads / m.n_kv_heads;
    m.head_dim = m.head_dim / divisor < 32 ? 32 : m.head_dim / divisor;
    m.n_kv_heads = m.n_kv_heads / divisor ? m.n_kv_heads / divisor : 1;
    m.n_heads = group * m.n_kv_heads;
    m.hidden = m.states_head_dim ? (m.hidden / divisor + 31) / 32 * 32 : m.n_heads * m.head_dim;
    m.intermediate = (m.intermediate / divisor + 31) / 32 * 32;
    return m;
}

/* ---- tensors --------------------------------------------------------------------------------- */

typedef struct tensor {
    char name[96];
    const char *dtype;
    uint64_t dims[2]; /* dims[1] = 0: a vector */
    enum { FILL_FLOAT, FILL_NORM, FILL_PACKED, FILL_I8, FILL_TERNARY, FILL_SCALE, FILL_TABLE } fill;
    uint64_t seed; /* tensors with equal seeds have equal content */
} tensor;

typedef struct list {
    const folder_model *model;
    uint64_t seed;
    whit_buf items; /* tensor[] */
} list;

static uint64_t seed_of(const list *l, const char *name)
{
    uint64_t hash = l->seed;
    while (*name) hash = (hash ^ (uint8_t)*name++) * 0x100000001B3u;
    return hash;
}

static void add(list *l, const char *name, const char *dtype, uint64_t rows, uint64_t columns, int fill)
{
    tensor t = {.dtype = dtype, .dims = {rows, columns}, .seed = seed_of(l, name)};
    t.fill = fill;
    snprintf(t.name, sizeof t.name, "%s", name);
    whit_buf_append(&l->items, &t, sizeof t);
}

static void add_projection(list *l, uint32_t layer, const char *module, uint64_t rows, uint64_t columns, bool bias)
{
    char name[96];
    folder_weights weights = l->model->weights;
    snprintf(name, sizeof name, "model.layers.%u.%s.weight", layer, module);
    if (weights == FOLDER_PACKED)
        add(l, name, "U8", rows / 4, columns, FILL_PACKED);
    else if (weights == FOLDER_I8)
        add(l, name, "I8", rows, columns, FILL_I8);
    else
        add(l, name, l->model->dtype, rows, columns, weights == FOLDER_TERNARY ? FILL_TERNARY : FILL_FLOAT);
    snprintf(name, sizeof name, "model.layers.%u.%s.weight_scale", layer, module);
    if (weights == FOLDER_PACKED || weights == FOLDER_I8) add(l, name, l->model->dtype, 1, 0, FILL_SCALE);
    snprintf(name, sizeof name, "model.layers.%u.%s.bias", layer, module);
    if (bias) add(l, name, l->model->dtype, rows, 0, FILL_FLOAT);
}

static void add_norm(list *l, uint32_t layer, const char *module, uint64_t n)
{
    char name[96];
    if (!module) return;
    snprintf(name, sizeof name, "model.layers.%u.%s.weight", layer, module);
    add(l, name, l->model->dtype, n, 0, FILL_NORM);
}

static void list_tensors(list *l)
{
    const folder_model *m = l->model;
    uint64_t q = (uint64_t)m->n_heads * m->head_dim, kv = (uint64_t)m->n_kv_heads * m->head_dim;
    if (m->embed) add(l, "model.embed_tokens.weight", m->dtype, m->n_vocab, m->hidden, FILL_FLOAT);
    for (uint32_t i = 0; i < m->n_layers; i++) {
        add_norm(l, i, "input_layernorm", m->hidden);
        add_projection(l, i, "mlp.down_proj", m->hidden, m->intermediate, m->mlp_bias);
        add_norm(l, i, m->sub_norms[1], m->intermediate);
        add_projection(l, i, "mlp.gate_proj", m->intermediate, m->hidden, m->mlp_bias);
        add_projection(l, i, "mlp.up_proj", m->intermediate, m->hidden, m->mlp_bias);
        add_norm(l, i, "post_attention_layernorm", m->hidden);
        add_norm(l, i, m->sub_norms[0], q);
        if (m->qk_norm) add_norm(l, i, "self_attn.k_norm", m->head_dim);
        add_projection(l, i, "self_attn.k_proj", kv, m->hidden, m->qkv_bias);
        add_projection(l, i, "self_attn.o_proj", m->hidden, q, m->out_bias);
        if (m->qk_norm) add_norm(l, i, "self_attn.q_norm", m->head_dim);
        add_projection(l, i, "self_attn.q_proj", q, m->hidden, m->qkv_bias);
        char name[96];
        snprintf(name, sizeof name, "model.layers.%u.self_attn.rotary_emb.inv_freq", i);
        if (m->old_table) add(l, name, "F32", m->head_dim / 2, 0, FILL_TABLE);
        add_projection(l, i, "self_attn.v_proj", kv, m->hidden, m->qkv_bias);
    }
    add(l, "model.norm.weight", m->dtype, m->hidden, 0, FILL_NORM);
    if (!m->head) return;
    add(l, "lm_head.weight", m->dtype, m->n_vocab, m->hidden, FILL_FLOAT);
    if (m->tied) ((tensor *)(l->items.data + l->items.size_bytes))[-1].seed = seed_of(l, "model.embed_tokens.weight");
}

static uint64_t elem_bytes(const char *dtype)
{
    return strstr(dtype, "8") ? 1 : strcmp(dtype, "F32") == 0 ? 4 : 2;
}

static uint64_t tensor_bytes(const tensor *t)
{
    return t->dims[0] * (t->dims[1] ? t->dims[1] : 1) * elem_bytes(t->dtype);
}

/* ---- values ---------------------------------------------------------------------------------- */

enum { N_VALUES = 1 << 16, BLOCK_BYTES = 1 << 20 };

static void store(const char *dtype, float value, uint8_t *out)
{
    uint16_t half = strcmp(dtype, "F16") == 0 ? whit_f16_from_f32(value) : whit_bf16_from_f32(value);
    if (strcmp(dtype, "F32") == 0)
        memcpy(out, &value, sizeof value);
    else
        memcpy(out, &half, sizeof half);
}

/* Returns a uniformly distributed value whose variance keeps products near the magnitude of their inputs. */
static float value_of(const tensor *t, uint32_t r)
{
    double x = 2.0 * r / N_VALUES - 1, width = sqrt(3.0 / (double)(t->dims[1] ? t->dims[1] : 1));
    switch (t->fill) {
    case FILL_NORM: return (float)(1 + 0.1 * x);
    case FILL_SCALE: return 1.0f + (float)(r % 64) / 64;
    case FILL_TERNARY: return (float)((int)(r % 3) - 1) * 0.03125f;
    default: return t->dims[1] ? (float)(width * x) : (float)(0.1 * x);
    }
}

/* Returns a byte with four ternary codes, made from a number below 81. */
static uint8_t packed_byte(uint32_t r)
{
    uint32_t n = r % 81;
    return (uint8_t)(n % 3 | n / 3 % 3 << 2 | n / 9 % 3 << 4 | n / 27 << 6);
}

static whit_status write_tensor(const tensor *t, whit_writer *file, uint8_t *table, uint8_t *block, whit_error *error)
{
    uint64_t width = elem_bytes(t->dtype), left = tensor_bytes(t) / width;
    whit_rng rng = {t->seed};
    for (uint32_t r = 0; r < N_VALUES; r++) {
        if (t->fill == FILL_PACKED)
            table[r] = packed_byte(r);
        else if (t->fill == FILL_I8)
            table[r] = (uint8_t)((int)(r % 3) - 1);
        else
            store(t->dtype, value_of(t, r), table + r * width);
    }
    while (left) {
        uint64_t n = left < BLOCK_BYTES / width ? left : BLOCK_BYTES / width, random = 0;
        for (uint64_t i = 0; i < n; i++, random >>= 16) {
            if (i % 4 == 0) random = whit_rng_next(&rng);
            memcpy(block + i * width, table + (random & 0xFFFF) * width, width);
        }
        if (whit_writer_append(file, block, n * width, error) != WHIT_OK) return error->status;
        left -= n;
    }
    return WHIT_OK;
}

/* ---- files ----------------------------------------------------------------------------------- */

static whit_status write_shard(const list *l, size_t begin, size_t end, const char *path, whit_error *error)
{
    const tensor *tensors = (const tensor *)(void *)l->items.data;
    whit_buf header = {0};
    uint64_t offset = 0, length;
    whit_buf_append_zeros(&header, 8);
    whit_buf_append_str(&header, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (size_t i = begin; i < end; i++) {
        const tensor *t = &tensors[i];
        whit_buf_printf(&header, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[%llu", t->name, t->dtype,
                        (unsigned long long)t->dims[0]);
        if (t->dims[1]) whit_buf_printf(&header, ",%llu", (unsigned long long)t->dims[1]);
        whit_buf_printf(&header, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)offset,
                        (unsigned long long)(offset + tensor_bytes(t)));
        offset += tensor_bytes(t);
    }
    whit_buf_append_str(&header, "}");
    while (header.size_bytes % 8) whit_buf_append_str(&header, " ");
    length = header.size_bytes - 8;
    if (header.data) memcpy(header.data, &length, 8);
    whit_writer file = {0};
    uint8_t *table = malloc(4 * N_VALUES), *block = malloc(BLOCK_BYTES);
    whit_status status = table && block && !header.failed ? whit_writer_open(path, NULL, &file, error)
                                                          : whit_fail_memory(error, path, BLOCK_BYTES);
    if (status == WHIT_OK) status = whit_writer_append(&file, header.data, header.size_bytes, error);
    for (size_t i = begin; status == WHIT_OK && i < end; i++)
        status = write_tensor(&tensors[i], &file, table, block, error);
    if (status == WHIT_OK) status = whit_writer_commit(&file, error);
    whit_writer_discard(&file);
    whit_buf_free(&header);
    free(table);
    free(block);
    return status;
}

static whit_status write_weights(const list *l, const char *folder, whit_error *error)
{
    const tensor *tensors = (const tensor *)(void *)l->items.data;
    size_t n = l->items.size_bytes / sizeof(tensor), shards = l->model->n_shards, begin = 0;
    char path[1024];
    if (shards <= 1) {
        snprintf(path, sizeof path, "%s/model.safetensors", folder);
        return write_shard(l, 0, n, path, error);
    }
    whit_buf index = {0};
    whit_status status = WHIT_OK;
    uint64_t total = 0;
    for (size_t i = 0; i < n; i++) total += tensor_bytes(&tensors[i]);
    whit_buf_printf(&index, "{\"metadata\": {\"total_size\": %llu}, \"weight_map\": {", (unsigned long long)total);
    for (size_t s = 0; status == WHIT_OK && s < shards; s++) {
        size_t end = n * (s + 1) / shards;
        snprintf(path, sizeof path, "%s/model-%05zu-of-%05zu.safetensors", folder, s + 1, shards);
        for (size_t i = begin; i < end; i++)
            whit_buf_printf(&index, "%s\"%s\": \"%s\"", i ? ", " : "", tensors[i].name, strrchr(path, '/') + 1);
        status = write_shard(l, begin, end, path, error);
        begin = end;
    }
    whit_buf_append_str(&index, "}}\n");
    snprintf(path, sizeof path, "%s/model.safetensors.index.json", folder);
    if (status == WHIT_OK) status = whit_write_file(path, index.data, index.size_bytes, error);
    whit_buf_free(&index);
    return status;
}

static whit_status write_text(const char *folder, const char *name, whit_buf *text, whit_error *error)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    whit_status status = text->failed ? whit_fail_memory(error, name, text->size_bytes)
                                      : whit_write_file(path, text->data, text->size_bytes, error);
    text->size_bytes = 0;
    return status;
}

static whit_status write_config(const folder_model *m, const char *folder, whit_buf *text, whit_error *error)
{
    whit_buf_printf(text, "{%s\"bos_token_id\": %u, \"eos_token_id\": %u, ", m->config, m->bos, m->eos);
    if (m->states_head_dim) whit_buf_printf(text, "\"head_dim\": %u, ", m->head_dim);
    whit_buf_printf(text,
                    "\"hidden_size\": %u, \"intermediate_size\": %u, \"num_hidden_layers\": %u, "
                    "\"num_attention_heads\": %u, \"num_key_value_heads\": %u, \"vocab_size\": %u, "
                    "\"tie_word_embeddings\": %s}\n",
                    m->hidden, m->intermediate, m->n_layers, m->n_heads, m->n_kv_heads, m->n_vocab,
                    m->tied ? "true" : "false");
    WHIT_TRY(write_text(folder, "config.json", text, error));
    whit_buf_printf(text,
                    "{\"bos_token_id\": %u, \"eos_token_id\": [%u], \"do_sample\": true, \"temperature\": 0.6, "
                    "\"top_p\": 0.9}\n",
                    m->bos, m->eos);
    return write_text(folder, "generation_config.json", text, error);
}

/* ---- vocabulary ------------------------------------------------------------------------------ */

/* Returns the printable character that represents a byte in byte-level BPE (GPT-2's table). */
static uint32_t byte_symbol(unsigned byte)
{
    uint32_t next = 256;
    for (unsigned b = 0; b < 256; b++) {
        bool printable = (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
        if (b == byte) return printable ? b : next;
        next += !printable;
    }
    return 0;
}

static void put_symbol(whit_buf *text, unsigned byte)
{
    uint32_t c = byte_symbol(byte);
    if (c == '"' || c == '\\')
        whit_buf_printf(text, "\\%c", (char)c);
    else if (c < 0x80)
        whit_buf_printf(text, "%c", (char)c);
    else
        whit_buf_printf(text, "%c%c", (char)(0xC0 | c >> 6), (char)(0x80 | (c & 63)));
}

/* Returns the text of a special token, or NULL if the id is not one. */
static const char *special_text(const folder_model *m, uint32_t id)
{
    for (const struct folder_special *s = m->specials; s->text; s++)
        if (s->id == id) return s->text;
    return id == m->bos ? "<|bos|>" : id == m->eos ? "<|eos|>" : NULL;
}

static void put_special(whit_buf *text, uint32_t id, const char *name, bool *first)
{
    whit_buf_printf(text,
                    "%s{\"id\": %u, \"content\": \"%s\", \"single_word\": false, \"lstrip\": false, "
                    "\"rstrip\": false, \"normalized\": false, \"special\": true}",
                    *first ? "" : ", ", id, name);
    *first = false;
}

/* Writes a substitute tokenizer.json: 256 bytes, filler tokens that no text contains, and the special tokens. */
static whit_status write_stand_in(const folder_model *m, const char *folder, whit_buf *text, whit_error *error)
{
    bool first = true;
    whit_buf_append_str(text, "{\"version\": \"1.0\", \"truncation\": null, \"padding\": null, \"added_tokens\": [");
    for (uint32_t id = 0; id < m->n_vocab; id++)
        if (special_text(m, id)) put_special(text, id, special_text(m, id), &first);
    whit_buf_append_str(
        text,
        "], \"normalizer\": null, \"pre_tokenizer\": {\"type\": \"ByteLevel\", "
        "\"add_prefix_space\": false, \"trim_offsets\": true, \"use_regex\": true}, \"post_processor\": null, "
        "\"decoder\": {\"type\": \"ByteLevel\", \"add_prefix_space\": true, \"trim_offsets\": true, "
        "\"use_regex\": true}, \"model\": {\"type\": \"BPE\", \"dropout\": null, \"unk_token\": null, "
        "\"continuing_subword_prefix\": null, \"end_of_word_suffix\": null, \"fuse_unk\": false, "
        "\"byte_fallback\": false, \"ignore_merges\": false, \"vocab\": {");
    unsigned byte = 0;
    first = true;
    for (uint32_t id = 0; id < m->n_vocab; id++) {
        if (special_text(m, id)) continue;
        whit_buf_append_str(text, first ? "\"" : ", \"");
        first = false;
        if (byte < 256)
            put_symbol(text, byte++);
        else
            whit_buf_printf(text, "<filler %u>", id);
        whit_buf_printf(text, "\": %u", id);
    }
    whit_buf_append_str(text, "}, \"merges\": []}}\n");
    return write_text(folder, "tokenizer.json", text, error);
}

static whit_status copy_file(const char *from, const char *folder, const char *name, bool *found, whit_buf *text,
                             whit_error *error)
{
    FILE *file = fopen(from, "rb");
    *found = file != NULL;
    if (!file) return WHIT_OK;
    fclose(file);
    WHIT_TRY(whit_read_file(from, 64u << 20, text, error));
    return write_text(folder, name, text, error);
}

static whit_status write_vocabulary(const folder_model *m, const char *folder, const char *vocabulary,
                                    const char *chat_template, whit_buf *text, whit_error *error)
{
    static const char *const names[] = {"tokenizer.json", "tokenizer.model", "tokenizer_config.json",
                                        "special_tokens_map.json"};
    char path[1024];
    bool found, any = false;
    for (size_t i = 0; vocabulary && i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", vocabulary, names[i]);
        WHIT_TRY(copy_file(path, folder, names[i], &found, text, error));
        any |= found;
    }
    if (!any) {
        WHIT_TRY(write_stand_in(m, folder, text, error));
        whit_buf_printf(text,
                        "{\"bos_token\": \"%s\", \"eos_token\": \"%s\", \"model_max_length\": "
                        "1000000000000000019884624838656, \"chat_template\": \"{%% for m in messages %%}"
                        "{{ m.role }}: {{ m.content }}\\n{%% endfor %%}assistant: \"}\n",
                        special_text(m, m->bos), special_text(m, m->eos));
        WHIT_TRY(write_text(folder, "tokenizer_config.json", text, error));
    }
    return chat_template ? copy_file(chat_template, folder, "chat_template.jinja", &found, text, error) : WHIT_OK;
}

bool folder_write(const folder_model *model, const char *path, uint64_t seed, const char *vocabulary,
                  const char *chat_template)
{
    whit_error error = {0};
    whit_buf text = {0};
    list l = {.model = model, .seed = seed << 32};
    list_tensors(&l);
    whit_status status = mkdir(path, 0700) != 0 && errno != EEXIST ? whit_fail_errno(&error, path, "make") : WHIT_OK;
    if (status == WHIT_OK && l.items.failed) status = whit_fail_memory(&error, path, l.items.size_bytes);
    if (status == WHIT_OK) status = write_config(model, path, &text, &error);
    if (status == WHIT_OK) status = write_vocabulary(model, path, vocabulary, chat_template, &text, &error);
    if (status == WHIT_OK) status = write_weights(&l, path, &error);
    whit_buf_free(&text);
    whit_buf_free(&l.items);
    if (status != WHIT_OK) fprintf(stderr, "%s\n", error.message);
    return status == WHIT_OK;
}
