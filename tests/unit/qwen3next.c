/* SPDX-License-Identifier: MIT
 * Tests Qwen3-Next with folders and GGUF files made of the weights of Qwen3.5's tiny models, with the projections
 * fused by key head as in Qwen3-Next. They must be the same models, to the bit; damaged ones must be refused with a
 * one-line error. */
#include "made_model.h"
#include "prompt_logits.h"

#include <math.h>
#include <sys/stat.h>

#include "model/convert.h"

/* ---- a model in memory ------------------------------------------------------------------------ */

struct shape {
    const char *folder;
    uint32_t n_layers, interval, head_dim, n_heads, n_kv_heads, n_ff, n_experts, n_used, n_expert_ff, n_shared_ff;
    uint32_t n_key_heads, n_value_heads, dim; /* heads and dimension of the delta rule */
    bool is_tied;
};

static const struct shape mixture = {"qwen35-moe", 3, 2, 32, 4, 2, 64, 6, 3, 16, 32, 2, 2, 32, false},
                          dense = {"qwen35-hybrid", 4, 4, 64, 2, 1, 64, 0, 0, 0, 0, 2, 4, 32, true};

/* Returns the matrix whose name is `name` with the end `from` replaced by `to`. */
static const struct matrix *beside(const struct made *made, const char *name, const char *from, const char *to)
{
    char other[160];
    snprintf(other, sizeof other, "%.*s%s", (int)(strlen(name) - strlen(from)), name, to);
    return find_matrix(made, other);
}

/* Fuses q, k, v and z, and b and a, grouped by key head. */
static void fuse_projections(const struct shape *s, const struct made *from, struct made *to)
{
    static const char qkv[] = "in_proj_qkv.weight", b[] = "in_proj_b.weight";
    const uint32_t keys = s->n_key_heads * s->dim, per_key = s->n_value_heads / s->n_key_heads, v = per_key * s->dim;
    for (uint32_t i = 0; i < from->n; i++) {
        const struct matrix *m = &from->items[i];
        const bool is_mixed = ends_with(m->name, qkv), is_beta = ends_with(m->name, b);
        if (ends_with(m->name, "in_proj_z.weight") || ends_with(m->name, "in_proj_a.weight")) continue;
        if (!is_mixed && !is_beta) {
            memcpy(add_matrix(to, m->name, m->n_dims, m->dims)->data, m->data, m->n_elems * 2);
            continue;
        }
        char name[160];
        snprintf(name, sizeof name, "%.*s%s", (int)(strlen(m->name) - strlen(is_mixed ? qkv : b)), m->name,
                 is_mixed ? "in_proj_qkvz.weight" : "in_proj_ba.weight");
        const struct matrix *other =
            is_mixed ? beside(from, m->name, qkv, "in_proj_z.weight") : beside(from, m->name, b, "in_proj_a.weight");
        uint8_t *at = add_matrix(to, name, 2, (const uint64_t[]){m->dims[0] + other->dims[0], m->dims[1]})->data;
        for (uint32_t h = 0; h < s->n_key_heads; h++) {
            if (is_beta) {
                append_rows(&at, m, h * per_key, per_key);
                append_rows(&at, other, h * per_key, per_key);
                continue;
            }
            append_rows(&at, m, h * s->dim, s->dim);
            append_rows(&at, m, keys + h * s->dim, s->dim);
            append_rows(&at, m, 2 * keys + h * v, v);
            append_rows(&at, other, h * v, v);
        }
    }
}

/* Copies key heads so that each value head has its own: an equal model in which the order of heads is irrelevant. */
static void repeat_keys(const struct shape *s, const struct made *from, struct made *to)
{
    const uint32_t keys = s->n_key_heads * s->dim, per_key = s->n_value_heads / s->n_key_heads,
                   values = s->n_value_heads * s->dim;
    for (uint32_t i = 0; i < from->n; i++) {
        const struct matrix *m = &from->items[i];
        const bool is_mixed = ends_with(m->name, "in_proj_qkv.weight") || ends_with(m->name, "conv1d.weight");
        uint64_t dims[3] = {is_mixed ? 3 * values : m->dims[0], m->dims[1], m->dims[2]};
        uint8_t *at = add_matrix(to, m->name, m->n_dims, dims)->data;
        if (!is_mixed) {
            memcpy(at, m->data, m->n_elems * 2);
            continue;
        }
        for (uint32_t part = 0; part < 2; part++)
            for (uint32_t h = 0; h < s->n_value_heads; h++)
                append_rows(&at, m, part * keys + h / per_key * s->dim, s->dim);
        append_rows(&at, m, 2 * keys, values);
    }
}

/* ---- folders ---------------------------------------------------------------------------------- */

/* Writes config.json with the fields of published configurations: class, model_type, and the shape. */
static void write_config(const struct shape *s, bool is_next, uint32_t n_key_heads, const char *path)
{
    char text[4096];
    whit_error error;
    const char *class = is_next ? "Qwen3NextForCausalLM" : "Qwen3_5ForCausalLM",
               *type = is_next ? "qwen3_next" : "qwen3_5_text";
    int n = snprintf(text, sizeof text,
                     "{\"architectures\": [\"%s\"], \"model_type\": \"%s\", \"attention_bias\": false,"
                     "\"attention_dropout\": 0.0, \"bos_token_id\": 1, \"eos_token_id\": 2, \"dtype\": \"bfloat16\","
                     "\"hidden_act\": \"silu\", \"hidden_size\": 128, \"initializer_range\": 0.02,"
                     "\"max_position_embeddings\": 2048, \"rms_norm_eps\": 1e-06, \"rope_scaling\": null,"
                     "\"rope_theta\": 10000000, \"use_cache\": true, \"use_sliding_window\": false,"
                     "\"linear_conv_kernel_dim\": 4, \"vocab_size\": 512, \"head_dim\": %u,"
                     "\"full_attention_interval\": %u, \"num_hidden_layers\": %u, \"num_attention_heads\": %u,"
                     "\"num_key_value_heads\": %u, \"intermediate_size\": %u, \"linear_num_key_heads\": %u,"
                     "\"linear_num_value_heads\": %u, \"linear_key_head_dim\": %u, \"linear_value_head_dim\": %u,"
                     "\"tie_word_embeddings\": %s",
                     class, type, s->head_dim, s->interval, s->n_layers, s->n_heads, s->n_kv_heads, s->n_ff,
                     n_key_heads, s->n_value_heads, s->dim, s->dim, s->is_tied ? "true" : "false");
    if (is_next)
        n += snprintf(text + n, sizeof text - (size_t)n,
                      ", \"decoder_sparse_step\": 1, \"mlp_only_layers\": [], \"moe_intermediate_size\": %u,"
                      "\"norm_topk_prob\": true, \"num_experts\": %u, \"num_experts_per_tok\": %u,"
                      "\"output_router_logits\": false, \"router_aux_loss_coef\": 0.001,"
                      "\"shared_expert_intermediate_size\": %u",
                      s->n_expert_ff, s->n_experts, s->n_used, s->n_shared_ff);
    if (!s->n_experts) n += snprintf(text + n, sizeof text - (size_t)n, ", \"partial_rotary_factor\": 0.25");
    n += snprintf(text + n, sizeof text - (size_t)n, "}\n");
    assert_true((size_t)n < sizeof text);
    assert_ok(whit_write_file(path, text, (size_t)n, &error), error);
}

static void write_folder(const struct shape *s, const struct made *made, bool is_next, uint32_t n_key_heads,
                         const char *name)
{
    char path[512];
    mkdir(in_folder(name), 0700);
    snprintf(path, sizeof path, "%s/config.json", in_folder(name));
    write_config(s, is_next, n_key_heads, path);
    snprintf(path, sizeof path, "%s/model.safetensors", in_folder(name));
    write_made(made, path);
}

/* ---- GGUF files ------------------------------------------------------------------------------- */

static const struct gguf_name gguf_names[] = {
    {"model.embed_tokens.weight", "token_embd.weight", BF16_AS_IS},
    {"model.norm.weight", "output_norm.weight", F32_PLUS_ONE},
    {"lm_head.weight", "output.weight", BF16_AS_IS},
    {"input_layernorm.weight", "attn_norm.weight", F32_PLUS_ONE},
    {"post_attention_layernorm.weight", "post_attention_norm.weight", F32_PLUS_ONE},
    {"self_attn.q_proj.weight", "attn_q.weight", BF16_AS_IS},
    {"self_attn.k_proj.weight", "attn_k.weight", BF16_AS_IS},
    {"self_attn.v_proj.weight", "attn_v.weight", BF16_AS_IS},
    {"self_attn.o_proj.weight", "attn_output.weight", BF16_AS_IS},
    {"self_attn.q_norm.weight", "attn_q_norm.weight", F32_PLUS_ONE},
    {"self_attn.k_norm.weight", "attn_k_norm.weight", F32_PLUS_ONE},
    {"linear_attn.in_proj_qkvz.weight", "ssm_in.weight", BF16_AS_IS},
    {"linear_attn.in_proj_qkv.weight", "attn_qkv.weight", BF16_AS_IS},
    {"linear_attn.in_proj_z.weight", "attn_gate.weight", BF16_AS_IS},
    {"linear_attn.in_proj_ba.weight", "ssm_ba.weight", BF16_AS_IS},
    {"linear_attn.conv1d.weight", "ssm_conv1d.weight", F32_AS_IS},
    {"linear_attn.A_log", "ssm_a", F32_NEG_EXP},
    {"linear_attn.dt_bias", "ssm_dt.bias", F32_AS_IS},
    {"linear_attn.norm.weight", "ssm_norm.weight", F32_AS_IS},
    {"linear_attn.out_proj.weight", "ssm_out.weight", BF16_AS_IS},
    {"mlp.gate_proj.weight", "ffn_gate.weight", BF16_AS_IS},
    {"mlp.up_proj.weight", "ffn_up.weight", BF16_AS_IS},
    {"mlp.down_proj.weight", "ffn_down.weight", BF16_AS_IS},
    {"mlp.gate.weight", "ffn_gate_inp.weight", BF16_AS_IS},
    {"mlp.experts.gate_proj", "ffn_gate_exps.weight", BF16_AS_IS},
    {"mlp.experts.up_proj", "ffn_up_exps.weight", BF16_AS_IS},
    {"mlp.experts.down_proj", "ffn_down_exps.weight", BF16_AS_IS},
    {"mlp.shared_expert.gate_proj.weight", "ffn_gate_shexp.weight", BF16_AS_IS},
    {"mlp.shared_expert.up_proj.weight", "ffn_up_shexp.weight", BF16_AS_IS},
    {"mlp.shared_expert.down_proj.weight", "ffn_down_shexp.weight", BF16_AS_IS},
    {"mlp.shared_expert_gate.weight", "ffn_gate_inp_shexp.weight", BF16_AS_IS},
    {NULL},
};

/* Splits matrices that GGUF files store separately: gate and up of the experts. Unless is_old, q, k and v become one
 * matrix and z another, with the value heads in order. */
static void split_for_gguf(const struct shape *s, const struct made *from, bool is_old, struct made *to)
{
    static const char both[] = "gate_up_proj", qkvz[] = "in_proj_qkvz.weight";
    for (uint32_t i = 0; i < from->n; i++) {
        const struct matrix *m = &from->items[i];
        char name[160];
        if (ends_with(m->name, both)) {
            for (uint32_t part = 0; part < 2; part++) {
                snprintf(name, sizeof name, "%.*s%s", (int)(strlen(m->name) - strlen(both)), m->name,
                         part ? "up_proj" : "gate_proj");
                const uint64_t dims[3] = {m->dims[0], m->dims[1] / 2, m->dims[2]};
                const size_t bytes = dims[1] * dims[2] * 2;
                uint8_t *at = add_matrix(to, name, 3, dims)->data;
                for (uint64_t e = 0; e < dims[0]; e++) memcpy(at + e * bytes, m->data + (2 * e + part) * bytes, bytes);
            }
        } else if (ends_with(m->name, qkvz) && !is_old) {
            const uint32_t v = s->n_value_heads / s->n_key_heads * s->dim, each = 2 * (s->dim + v);
            const uint32_t begins[4] = {0, s->dim, 2 * s->dim, 2 * s->dim + v}, sizes[4] = {s->dim, s->dim, v, v};
            uint8_t *at = NULL;
            for (uint32_t part = 0; part < 4; part++) {
                const uint64_t rows = (uint64_t)s->n_key_heads * (part == 3 ? v : 2 * s->dim + v);
                snprintf(name, sizeof name, "%.*s%s", (int)(strlen(m->name) - strlen(qkvz)), m->name,
                         part == 3 ? "in_proj_z.weight" : "in_proj_qkv.weight");
                if (part % 3 == 0) at = add_matrix(to, name, 2, (const uint64_t[]){rows, m->dims[1]})->data;
                for (uint32_t h = 0; h < s->n_key_heads; h++) append_rows(&at, m, h * each + begins[part], sizes[part]);
            }
        } else {
            memcpy(add_matrix(to, m->name, m->n_dims, m->dims)->data, m->data, m->n_elems * 2);
        }
    }
}

static void put_number(whit_gguf_writer *writer, const char *suffix, uint32_t value)
{
    char name[96];
    snprintf(name, sizeof name, "qwen3next.%s", suffix);
    whit_gguf_put_u32(writer, name, value);
}

static void put_keys(whit_gguf_writer *writer, const void *user)
{
    const struct shape *s = user;
    whit_gguf_put_string(writer, "general.architecture", "qwen3next", 9);
    put_number(writer, "block_count", s->n_layers);
    put_number(writer, "context_length", 2048);
    put_number(writer, "embedding_length", 128);
    put_number(writer, "feed_forward_length", s->n_ff);
    put_number(writer, "attention.head_count", s->n_heads);
    put_number(writer, "attention.head_count_kv", s->n_kv_heads);
    put_number(writer, "attention.key_length", s->head_dim);
    put_number(writer, "attention.value_length", s->head_dim);
    put_number(writer, "rope.dimension_count", s->head_dim / 4);
    put_number(writer, "ssm.conv_kernel", 4);
    put_number(writer, "ssm.state_size", s->dim);
    put_number(writer, "ssm.group_count", s->n_key_heads);
    put_number(writer, "ssm.time_step_rank", s->n_value_heads);
    put_number(writer, "ssm.inner_size", s->n_value_heads * s->dim);
    put_number(writer, "full_attention_interval", s->interval);
    whit_gguf_put_f32(writer, "qwen3next.attention.layer_norm_rms_epsilon", 1e-6f);
    whit_gguf_put_f32(writer, "qwen3next.rope.freq_base", 1e7f);
    if (!s->n_experts) return;
    put_number(writer, "expert_count", s->n_experts);
    put_number(writer, "expert_used_count", s->n_used);
    put_number(writer, "expert_feed_forward_length", s->n_expert_ff);
    put_number(writer, "expert_shared_feed_forward_length", s->n_shared_ff);
}

/* ---- equal models ----------------------------------------------------------------------------- */

/* Writes a folder "next", and GGUF files as converters write them now and as older ones did. */
static void make_next(const struct shape *s, struct made *fused)
{
    struct made model = {0};
    read_made(&model, s->folder);
    fuse_projections(s, &model, fused);
    write_folder(s, fused, true, s->n_key_heads, "next");
    for (int is_old = 0; is_old < 2; is_old++) {
        struct made parts = {0};
        split_for_gguf(s, fused, is_old, &parts);
        write_made_gguf(&parts, gguf_names, put_keys, s, in_folder(is_old ? "old.gguf" : "new.gguf"));
        free_made(&parts);
    }
    free_made(&model);
}

static void one_value_head_a_key_is_qwen35(void **state)
{
    struct made fused = {0};
    (void)state;
    make_next(&mixture, &fused);
    assert_one_model(shared_path("models-tiny/qwen35-moe/hf"), in_folder("next"));
    assert_one_model(in_folder("next"), in_folder("new.gguf"));
    assert_one_model(in_folder("next"), in_folder("old.gguf"));
    free_made(&fused);
}

/* Returns the prompt's logits for a CPU level, a thread count and a batch size; the caller frees them. */
static float *run_prompt(const whit_model *model, const char *cpu, uint32_t n_threads, uint32_t n_batch)
{
    whit_session_options options = whit_session_options_default();
    options.cpu = cpu;
    options.n_threads = n_threads;
    options.kv = WHIT_KV_F32;
    options.act = WHIT_ACT_F32;
    options.n_batch_tokens = n_batch;
    return prompt_logits(model, options);
}

static void grouped_heads_have_their_key(void **state)
{
    static const struct {
        const char *cpu;
        uint32_t n_threads, n_batch;
    } runs[] = {{"generic", 1, 64}, {"avx2", 2, 7}, {"avx512", 3, 1}, {"amx", 2, 64}};
    struct made fused = {0}, model = {0}, repeated = {0};
    (void)state;
    make_next(&dense, &fused);
    assert_one_model(in_folder("next"), in_folder("new.gguf"));
    assert_one_model(in_folder("next"), in_folder("old.gguf"));
    read_made(&model, dense.folder);
    repeat_keys(&dense, &model, &repeated);
    write_folder(&dense, &repeated, false, dense.n_value_heads, "repeated");

    whit_model *next = open_model_at(in_folder("next")), *same = open_model_at(in_folder("repeated")),
               *tiled = open_model_at(shared_path("models-tiny/qwen35-hybrid/hf"));
    const size_t n = PROMPT_TOKENS * (size_t)whit_model_vocab_size(next);
    float *expected = run_prompt(same, "generic", 1, 64), *other = run_prompt(tiled, "generic", 1, 64);
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        float *logits = run_prompt(next, runs[i].cpu, runs[i].n_threads, runs[i].n_batch);
        if (memcmp(logits, expected, n * sizeof *logits) != 0) fail_msg("other bits with %s", runs[i].cpu);
        free(logits);
    }
    /* Qwen3.5's importer orders heads differently, so the last products are summed in another order. */
    for (size_t i = 0; i < n; i++) assert_true(fabsf(expected[i] - other[i]) < 1e-4f);
    free(expected);
    free(other);
    whit_model_close(next);
    whit_model_close(same);
    whit_model_close(tiled);
    free_made(&fused);
    free_made(&model);
    free_made(&repeated);
}

/* The file's family has a name that older readers do not know, so they refuse it. */
static void files_name_the_order(void **state)
{
    struct made fused = {0};
    whit_error error;
    whit_source source;
    whit_ndf_writer *writer;
    const whit_convert_options options = {.n_threads = 1};
    (void)state;
    make_next(&dense, &fused);
    assert_ok(whit_source_open(in_folder("next"), NULL, &source, &error), error);
    assert_string_equal(source.config.family, "hybrid-grouped");
    assert_ok(whit_ndf_writer_open(in_folder("next.ndf"), NULL, NULL, &writer, &error), error);
    assert_ok(whit_convert(&source, &options, writer, &error), error);
    whit_ndf_writer_close(writer);
    whit_source_close(&source);
    assert_one_model(in_folder("next"), in_folder("next.ndf"));
    free_made(&fused);
}

/* ---- damaged ones ----------------------------------------------------------------------------- */

static void damaged_folders_are_refused(void **state)
{
    static const struct {
        const char *file, *from, *to, *word; /* from and to have the same length in bytes */
    } cases[] = {
        {"config.json", "\"linear_num_key_heads\": 2", "\"linear_num_key_heads\": 3", "its key heads, 3"},
        {"config.json", "\"linear_num_key_heads\": 2", "\"linear_num_key_heads\": 0", "its key heads, 0"},
        {"config.json", "\"linear_num_key_heads\": 2", "\"linear_num_key_heads\": 4", "with 384 rows"},
        {"config.json", "\"linear_num_value_heads\": 4", "\"linear_num_value_heads\": 8",
         "where the configuration needs"},
        {"config.json", "\"linear_num_value_heads\": 4", "\"linear_num_value_heads\": 0", "with 8 rows"},
        {"config.json", "\"linear_key_head_dim\": 32", "\"linear_key_head_dim\": 64", "with 384 rows"},
        {"config.json", "\"full_attention_interval\": 4", "\"full_attention_interval\": 3", "layers.3.q"},
        {"config.json", "\"num_experts\": 0", "\"num_experts\": 8", "experts"},
        {"model.safetensors", "layers.0.linear_attn.in_proj_qkvz.weight", "layers.0.linear_attn.in_proj.inv_freq.xx",
         "is not known"},
        {"model.safetensors", "layers.0.linear_attn.in_proj_qkvz.weight", "layers.0.linear_attn.in_proj_xx.inv_freq",
         "layers.0.mixed"},
        {"model.safetensors", "layers.1.linear_attn.in_proj_ba.weight", "layers.1.linear_attn.in_proj_.inv_freq",
         "layers.1.beta"},
        {"model.safetensors", "in_proj_ba.weight\":{\"dtype\":\"BF16\",\"shape\":[8,128]",
         "in_proj_ba.weight\":{\"dtype\":\"BF16\",\"shape\":[128,8]", "with 128 rows"},
    };
    struct made fused = {0};
    (void)state;
    make_next(&dense, &fused);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        whit_error error;
        whit_buf bytes = {0};
        char path[512];
        snprintf(path, sizeof path, "%s/%s", in_folder("next"), cases[i].file);
        assert_ok(whit_read_file(path, (size_t)4 << 20, &bytes, &error), error);
        uint8_t *at = memmem(bytes.data, bytes.size_bytes, cases[i].from, strlen(cases[i].from));
        if (!at) fail_msg("no '%s'", cases[i].from);
        memcpy(at, cases[i].to, strlen(cases[i].to));
        assert_ok(whit_write_file(path, bytes.data, bytes.size_bytes, &error), error);
        assert_refused(in_folder("next"), cases[i].word);
        memcpy(at, cases[i].from, strlen(cases[i].from));
        assert_ok(whit_write_file(path, bytes.data, bytes.size_bytes, &error), error);
        whit_buf_free(&bytes);
    }
    free_made(&fused);
}

static void damaged_files_are_refused(void **state)
{
    static const struct {
        const char *file, *name;
        uint32_t skipped, value; /* bytes between the name and the field, and the new u32 of the field */
        const char *word;
    } cases[] = {
        {"new.gguf", "qwen3next.ssm.group_count", 4, 3, "its key heads, 3"},
        {"new.gguf", "qwen3next.ssm.group_count", 4, 0, "its key heads, 0"},
        {"old.gguf", "qwen3next.ssm.group_count", 4, 3, "its key heads, 3"},
        {"old.gguf", "qwen3next.ssm.group_count", 4, 4, "with 384 rows"},
        {"new.gguf", "qwen3next.ssm.state_size", 4, 16, "mixed"},
        {"new.gguf", "qwen3next.ssm.time_step_rank", 4, 8, "with 8 rows"},
        {"new.gguf", "qwen3next.ssm.time_step_rank", 4, 0, "contradict each other"},
        {"new.gguf", "qwen3next.full_attention_interval", 4, 0, "contradict each other"},
        {"new.gguf", "blk.0.ssm_ba.weight", 12, 4, "with 4 rows"},
        {"old.gguf", "blk.0.ssm_in.weight", 12, 192, "with 192 rows"},
    };
    struct made fused = {0};
    (void)state;
    make_next(&dense, &fused);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        whit_error error;
        whit_buf bytes = {0};
        assert_ok(whit_read_file(in_folder(cases[i].file), (size_t)4 << 20, &bytes, &error), error);
        uint8_t *at = memmem(bytes.data, bytes.size_bytes, cases[i].name, strlen(cases[i].name));
        if (!at) fail_msg("no '%s'", cases[i].name);
        memcpy(at + strlen(cases[i].name) + cases[i].skipped, &cases[i].value, sizeof cases[i].value);
        assert_ok(whit_write_file(in_folder("damaged.gguf"), bytes.data, bytes.size_bytes, &error), error);
        assert_refused(in_folder("damaged.gguf"), cases[i].word);
        whit_buf_free(&bytes);
    }
    free_made(&fused);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_value_head_a_key_is_qwen35), cmocka_unit_test(grouped_heads_have_their_key),
        cmocka_unit_test(files_name_the_order),           cmocka_unit_test(damaged_folders_are_refused),
        cmocka_unit_test(damaged_files_are_refused),
    };
    return cmocka_run_group_tests_name("qwen3next", tests, make_folder, remove_folder);
}
