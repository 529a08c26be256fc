/* SPDX-License-Identifier: MIT
 * Tests Granite MoE with a folder and a GGUF file that combine the attention of the tiny dense Granite with random
 * experts. Both must have the logits of a reference in double precision; each possible mistake in reading these
 * files must give other logits. A mixture whose experts are copies of one feed-forward part must have the dense
 * model's logits. */
#include "made_model.h"
#include "prompt_logits.h"

#include <math.h>
#include <sys/stat.h>

#include "base/rng.h"

enum { D = 128, N_LAYERS = 3, N_HEADS = 4, N_KV = 2, HEAD = 32, N_VOCAB = 512, N_FF_MAX = 160, N_EXPERTS_MAX = 6 };

struct mixture {
    uint32_t n_experts, n_used, n_ff;
};
static const struct mixture random_experts = {6, 2, 48}, copied_experts = {4, 3, 160};

/* ---- the model -------------------------------------------------------------------------------- */

static void fill_random(struct matrix *m, uint64_t seed, float scale)
{
    whit_rng rng = {seed};
    for (size_t i = 0; i < m->n_elems; i++) {
        const uint16_t stored = whit_bf16_from_f32(((float)whit_rng_uniform(&rng) - 0.5f) * scale);
        memcpy(m->data + 2 * i, &stored, 2);
    }
}

/* Adds the router and the experts of a layer; `dense` is the layer whose feed-forward part they copy, or NULL. */
static void add_experts(struct made *made, const struct mixture *mixture, uint32_t layer, const struct made *dense)
{
    const uint64_t e = mixture->n_experts, ff = mixture->n_ff;
    char name[160];
    snprintf(name, sizeof name, "model.layers.%u.block_sparse_moe.router.layer.weight", layer);
    fill_random(add_matrix(made, name, 2, (const uint64_t[]){e, D}), 100 + layer, 1);
    snprintf(name, sizeof name, "model.layers.%u.block_sparse_moe.input_linear.weight", layer);
    struct matrix *input = add_matrix(made, name, 3, (const uint64_t[]){e, 2 * ff, D});
    snprintf(name, sizeof name, "model.layers.%u.block_sparse_moe.output_linear.weight", layer);
    struct matrix *output = add_matrix(made, name, 3, (const uint64_t[]){e, D, ff});
    fill_random(input, 200 + layer, 0.5f);
    fill_random(output, 300 + layer, 0.5f);
    static const char *const parts[] = {"gate_proj", "up_proj", "down_proj"};
    for (uint32_t part = 0; dense && part < 3; part++) {
        snprintf(name, sizeof name, "model.layers.%u.mlp.%s.weight", layer, parts[part]);
        const struct matrix *from = find_matrix(dense, name);
        const size_t bytes = from->n_elems * 2;
        for (uint64_t i = 0; i < e; i++)
            memcpy(part == 2 ? output->data + i * bytes : input->data + (2 * i + part) * bytes, from->data, bytes);
    }
}

static void make_mixture(const struct mixture *mixture, bool copies, struct made *made)
{
    struct made dense = {0};
    read_made(&dense, "granite");
    for (uint32_t i = 0; i < dense.n; i++) {
        const struct matrix *m = &dense.items[i];
        if (!strstr(m->name, ".mlp."))
            memcpy(add_matrix(made, m->name, m->n_dims, m->dims)->data, m->data, m->n_elems * 2);
    }
    for (uint32_t layer = 0; layer < N_LAYERS; layer++) add_experts(made, mixture, layer, copies ? &dense : NULL);
    free_made(&dense);
}

/* Writes a model folder with the configuration fields that published models have. */
static void write_folder(const struct mixture *mixture, const struct made *made, const char *name)
{
    char text[2048], path[512];
    whit_error error;
    const int n = snprintf(
        text, sizeof text,
        "{\"architectures\": [\"GraniteMoeForCausalLM\"], \"model_type\": \"granitemoe\", \"attention_bias\": false,"
        "\"attention_dropout\": 0.1, \"attention_multiplier\": 0.09375, \"bos_token_id\": 0,"
        "\"embedding_multiplier\": 12.0, \"eos_token_id\": 0, \"hidden_act\": \"silu\", \"hidden_size\": 128,"
        "\"initializer_range\": 0.02, \"intermediate_size\": %u, \"logits_scaling\": 8.0,"
        "\"max_position_embeddings\": 2048, \"num_attention_heads\": 4, \"num_experts_per_tok\": %u,"
        "\"num_hidden_layers\": 3, \"num_key_value_heads\": 2, \"num_local_experts\": %u,"
        "\"output_router_logits\": false, \"pad_token_id\": 0, \"residual_multiplier\": 0.22, \"rms_norm_eps\": 1e-05,"
        "\"rope_scaling\": null, \"rope_theta\": 10000, \"router_aux_loss_coef\": 0.0, \"tie_word_embeddings\": true,"
        "\"torch_dtype\": \"bfloat16\", \"use_cache\": true, \"vocab_size\": 512}\n",
        mixture->n_ff, mixture->n_used, mixture->n_experts);
    assert_true((size_t)n < sizeof text);
    mkdir(in_folder(name), 0700);
    snprintf(path, sizeof path, "%s/config.json", in_folder(name));
    assert_ok(whit_write_file(path, text, (size_t)n, &error), error);
    snprintf(path, sizeof path, "%s/model.safetensors", in_folder(name));
    write_made(made, path);
}

/* ---- GGUF files ------------------------------------------------------------------------------- */

static const struct gguf_name gguf_names[] = {
    {"model.embed_tokens.weight", "token_embd.weight", BF16_AS_IS},
    {"model.norm.weight", "output_norm.weight", F32_AS_IS},
    {"input_layernorm.weight", "attn_norm.weight", F32_AS_IS},
    {"post_attention_layernorm.weight", "ffn_norm.weight", F32_AS_IS},
    {"self_attn.q_proj.weight", "attn_q.weight", BF16_AS_IS},
    {"self_attn.k_proj.weight", "attn_k.weight", BF16_AS_IS},
    {"self_attn.v_proj.weight", "attn_v.weight", BF16_AS_IS},
    {"self_attn.o_proj.weight", "attn_output.weight", BF16_AS_IS},
    {"block_sparse_moe.router.layer.weight", "ffn_gate_inp.weight", BF16_AS_IS},
    {"experts.gate", "ffn_gate_exps.weight", BF16_AS_IS},
    {"experts.up", "ffn_up_exps.weight", BF16_AS_IS},
    {"block_sparse_moe.output_linear.weight", "ffn_down_exps.weight", BF16_AS_IS},
    {NULL},
};

static void put_keys(whit_gguf_writer *writer, const void *user)
{
    const struct mixture *mixture = user;
    whit_gguf_put_string(writer, "general.architecture", "granitemoe", 10);
    whit_gguf_put_u32(writer, "granitemoe.block_count", N_LAYERS);
    whit_gguf_put_u32(writer, "granitemoe.context_length", 2048);
    whit_gguf_put_u32(writer, "granitemoe.embedding_length", D);
    whit_gguf_put_u32(writer, "granitemoe.feed_forward_length", mixture->n_ff);
    whit_gguf_put_u32(writer, "granitemoe.attention.head_count", N_HEADS);
    whit_gguf_put_u32(writer, "granitemoe.attention.head_count_kv", N_KV);
    whit_gguf_put_u32(writer, "granitemoe.rope.dimension_count", HEAD);
    whit_gguf_put_u32(writer, "granitemoe.vocab_size", N_VOCAB);
    whit_gguf_put_u32(writer, "granitemoe.expert_count", mixture->n_experts);
    whit_gguf_put_u32(writer, "granitemoe.expert_used_count", mixture->n_used);
    whit_gguf_put_f32(writer, "granitemoe.attention.layer_norm_rms_epsilon", 1e-5f);
    whit_gguf_put_f32(writer, "granitemoe.rope.freq_base", 1e4f);
    whit_gguf_put_f32(writer, "granitemoe.attention.scale", 0.09375f);
    whit_gguf_put_f32(writer, "granitemoe.embedding_scale", 12);
    whit_gguf_put_f32(writer, "granitemoe.residual_scale", 0.22f);
    whit_gguf_put_f32(writer, "granitemoe.logit_scale", 8);
}

/* Splits gate and up matrices and interleaves the RoPE pairs of q and k, as GGUF converters do. */
static void arrange_for_gguf(const struct mixture *mixture, const struct made *from, struct made *to)
{
    for (uint32_t i = 0; i < from->n; i++) {
        const struct matrix *m = &from->items[i];
        const char *both = strstr(m->name, "block_sparse_moe.input_linear");
        const bool is_rotated = ends_with(m->name, "q_proj.weight") || ends_with(m->name, "k_proj.weight");
        const size_t bytes = (size_t)mixture->n_ff * D * 2;
        char name[160];
        for (uint32_t part = 0; both && part < 2; part++) {
            snprintf(name, sizeof name, "%.*sexperts.%s", (int)(both - m->name), m->name, part ? "up" : "gate");
            uint8_t *at = add_matrix(to, name, 3, (const uint64_t[]){m->dims[0], mixture->n_ff, D})->data;
            for (uint64_t e = 0; e < m->dims[0]; e++) memcpy(at + e * bytes, m->data + (2 * e + part) * bytes, bytes);
        }
        if (both) continue;
        uint8_t *at = add_matrix(to, m->name, m->n_dims, m->dims)->data;
        if (!is_rotated) memcpy(at, m->data, m->n_elems * 2);
        for (uint32_t row = 0; is_rotated && row < m->dims[0]; row++)
            append_rows(&at, m, row / HEAD * HEAD + row % 2 * (HEAD / 2) + row % HEAD / 2, 1);
    }
}

/* Writes one model as a folder "folder" and as a file "file.gguf". */
static void write_both(const struct mixture *mixture, const struct made *made)
{
    struct made arranged = {0};
    write_folder(mixture, made, "folder");
    arrange_for_gguf(mixture, made, &arranged);
    write_made_gguf(&arranged, gguf_names, put_keys, mixture, in_folder("file.gguf"));
    free_made(&arranged);
}

/* ---- the reference ---------------------------------------------------------------------------- */

/* Deliberate mistakes of the reference, which must change the logits. */
enum mistake {
    NO_MISTAKE,
    HALVES_SWAPPED, /* up first, then gate */
    ALL_WEIGHTS,    /* softmax over all experts, not only the chosen */
    LEAST_EXPERTS,  /* the experts of the least logits are chosen */
    PLAIN_RESIDUAL, /* expert outputs lack the residual multiplier */
    USUAL_SCALE,    /* scores divided by sqrt(head width) */
    N_MISTAKES
};

struct reference {
    const struct made *made;
    const struct mixture *mixture;
    enum mistake mistake;
};

static const struct matrix *of_layer(const struct reference *r, uint32_t layer, const char *name)
{
    char whole[160];
    snprintf(whole, sizeof whole, "model.layers.%u.%s", layer, name);
    return find_matrix(r->made, whole);
}

/* Computes y (n_rows) = rows `row` to row + n_rows - 1 of m, times x (n). */
static void multiply(const struct matrix *m, size_t row, size_t n_rows, size_t n, const double *x, double *y)
{
    for (size_t i = 0; i < n_rows; i++) {
        y[i] = 0;
        for (size_t k = 0; k < n; k++) y[i] += (double)value_at(m, (row + i) * n + k) * x[k];
    }
}

static void normalise(const struct matrix *weight, const double *x, double *y)
{
    double squares = 0;
    for (size_t k = 0; k < D; k++) squares += x[k] * x[k];
    for (size_t k = 0; k < D; k++) y[k] = x[k] / sqrt(squares / D + 1e-5) * (double)value_at(weight, k);
}

/* Applies RoPE to the pairs (i, i + HEAD / 2) of each head. */
static void rotate(double *x, uint32_t n_heads, uint32_t position)
{
    for (uint32_t h = 0; h < n_heads; h++)
        for (uint32_t i = 0; i < HEAD / 2; i++) {
            double *a = x + h * HEAD + i, *b = a + HEAD / 2, first = *a;
            const double angle = position * pow(1e4, -2.0 * i / HEAD);
            *a = first * cos(angle) - *b * sin(angle);
            *b = *b * cos(angle) + first * sin(angle);
        }
}

/* Computes the attention of the token at `position` to keys and values (position + 1, N_KV * HEAD). */
static void attend(const struct reference *r, const double *q, const double (*keys)[N_KV * HEAD],
                   const double (*values)[N_KV * HEAD], uint32_t position, double *out)
{
    const double scale = r->mistake == USUAL_SCALE ? 1 / sqrt(HEAD) : 0.09375;
    for (uint32_t h = 0; h < N_HEADS; h++) {
        const uint32_t kv = h / (N_HEADS / N_KV) * HEAD;
        double scores[PROMPT_TOKENS], sum = 0;
        for (uint32_t t = 0; t <= position; t++) {
            scores[t] = 0;
            for (uint32_t k = 0; k < HEAD; k++) scores[t] += q[h * HEAD + k] * keys[t][kv + k];
            sum += scores[t] = exp(scores[t] * scale);
        }
        for (uint32_t k = 0; k < HEAD; k++) {
            out[h * HEAD + k] = 0;
            for (uint32_t t = 0; t <= position; t++) out[h * HEAD + k] += scores[t] / sum * values[t][kv + k];
        }
    }
}

static void add_chosen(const struct reference *r, uint32_t layer, const double *x, double *y)
{
    const uint32_t n = r->mixture->n_experts, n_ff = r->mixture->n_ff;
    double logits[N_EXPERTS_MAX], inner[2 * N_FF_MAX], out[D], sum = 0;
    uint32_t chosen[N_EXPERTS_MAX];
    bool is_taken[N_EXPERTS_MAX] = {false};
    multiply(of_layer(r, layer, "block_sparse_moe.router.layer.weight"), 0, n, D, x, logits);
    for (uint32_t i = 0; i < r->mixture->n_used; i++) {
        uint32_t best = n;
        for (uint32_t e = 0; e < n; e++) {
            if (is_taken[e]) continue;
            const bool is_better = best == n || logits[e] > logits[best];
            if (is_better != (best < n && r->mistake == LEAST_EXPERTS)) best = e;
        }
        is_taken[chosen[i] = best] = true;
    }
    for (uint32_t e = 0; e < n; e++)
        if (is_taken[e] || r->mistake == ALL_WEIGHTS) sum += exp(logits[e]);
    const uint32_t gate = r->mistake == HALVES_SWAPPED ? n_ff : 0, up = n_ff - gate;
    for (uint32_t i = 0; i < r->mixture->n_used; i++) {
        const uint32_t e = chosen[i];
        multiply(of_layer(r, layer, "block_sparse_moe.input_linear.weight"), (size_t)e * 2 * n_ff, 2 * n_ff, D, x,
                 inner);
        for (uint32_t k = 0; k < n_ff; k++) inner[gate + k] *= inner[up + k] / (1 + exp(-inner[gate + k]));
        multiply(of_layer(r, layer, "block_sparse_moe.output_linear.weight"), (size_t)e * D, D, n_ff, inner + gate,
                 out);
        for (uint32_t k = 0; k < D; k++) y[k] += exp(logits[e]) / sum * out[k];
    }
}

/* Computes the logits (PROMPT_TOKENS, N_VOCAB) of the prompt that prompt_logits uses. */
static void compute_logits(const struct reference *r, double *logits)
{
    static double x[PROMPT_TOKENS][D], keys[PROMPT_TOKENS][N_KV * HEAD], values[PROMPT_TOKENS][N_KV * HEAD];
    const struct matrix *embed = find_matrix(r->made, "model.embed_tokens.weight");
    double h[D], q[D], a[D], y[D];
    for (uint32_t t = 0; t < PROMPT_TOKENS; t++)
        for (uint32_t k = 0; k < D; k++) x[t][k] = 12 * (double)value_at(embed, (size_t)prompt_token(t) * D + k);
    for (uint32_t layer = 0; layer < N_LAYERS; layer++)
        for (uint32_t t = 0; t < PROMPT_TOKENS; t++) {
            normalise(of_layer(r, layer, "input_layernorm.weight"), x[t], h);
            multiply(of_layer(r, layer, "self_attn.q_proj.weight"), 0, D, D, h, q);
            multiply(of_layer(r, layer, "self_attn.k_proj.weight"), 0, N_KV * HEAD, D, h, keys[t]);
            multiply(of_layer(r, layer, "self_attn.v_proj.weight"), 0, N_KV * HEAD, D, h, values[t]);
            rotate(q, N_HEADS, t);
            rotate(keys[t], N_KV, t);
            attend(r, q, keys, values, t, a);
            multiply(of_layer(r, layer, "self_attn.o_proj.weight"), 0, D, D, a, y);
            for (uint32_t k = 0; k < D; k++) x[t][k] += 0.22 * y[k];
            normalise(of_layer(r, layer, "post_attention_layernorm.weight"), x[t], h);
            memset(y, 0, sizeof y);
            add_chosen(r, layer, h, y);
            for (uint32_t k = 0; k < D; k++) x[t][k] += (r->mistake == PLAIN_RESIDUAL ? 1 : 0.22) * y[k];
        }
    for (uint32_t t = 0; t < PROMPT_TOKENS; t++) {
        normalise(find_matrix(r->made, "model.norm.weight"), x[t], h);
        multiply(embed, 0, N_VOCAB, D, h, logits + (size_t)t * N_VOCAB);
        for (uint32_t i = 0; i < N_VOCAB; i++) logits[(size_t)t * N_VOCAB + i] /= 8;
    }
}

/* ---- checks ----------------------------------------------------------------------------------- */

static const size_t n_logits = (size_t)PROMPT_TOKENS * N_VOCAB;

/* Returns the prompt's logits for a CPU level, a thread count and a batch size; the caller frees them. */
static float *run_prompt(const char *name, const char *cpu, uint32_t n_threads, uint32_t n_batch)
{
    whit_session_options options = whit_session_options_default();
    options.cpu = cpu;
    options.n_threads = n_threads;
    options.kv = WHIT_KV_F32;
    options.act = WHIT_ACT_F32;
    options.n_batch_tokens = n_batch;
    whit_model *model = open_model_at(name);
    float *logits = prompt_logits(model, options);
    whit_model_close(model);
    return logits;
}

static double distance(const float *a, const double *b)
{
    double worst = 0;
    for (size_t i = 0; i < n_logits; i++) worst = fmax(worst, fabs((double)a[i] - b[i]));
    return worst;
}

static void folder_and_file_have_the_reference(void **state)
{
    static const struct {
        const char *cpu;
        uint32_t n_threads, n_batch;
    } runs[] = {{"generic", 1, 64}, {"avx2", 2, 7}, {"avx512", 3, 1}, {"amx", 2, 64}};
    struct made made = {0};
    (void)state;
    make_mixture(&random_experts, false, &made);
    write_both(&random_experts, &made);
    assert_one_model(in_folder("folder"), in_folder("file.gguf"));
    double *expected = malloc(n_logits * sizeof *expected);
    assert_non_null(expected);
    float *first = run_prompt(in_folder("folder"), "generic", 1, 64);
    for (enum mistake mistake = NO_MISTAKE; mistake < N_MISTAKES; mistake++) {
        const struct reference reference = {&made, &random_experts, mistake};
        compute_logits(&reference, expected);
        const double away = distance(first, expected);
        print_message("mistake %d: %.3g away\n", mistake, away);
        if (mistake == NO_MISTAKE ? away > 5e-4 : away < 1) fail_msg("mistake %d is %g away", mistake, away);
    }
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        float *again =
            run_prompt(in_folder(i % 2 ? "file.gguf" : "folder"), runs[i].cpu, runs[i].n_threads, runs[i].n_batch);
        if (memcmp(again, first, n_logits * sizeof *again) != 0) fail_msg("other bits with %s", runs[i].cpu);
        free(again);
    }
    free(first);
    free(expected);
    free_made(&made);
}

static void copies_of_one_expert_are_the_dense_model(void **state)
{
    struct made made = {0};
    (void)state;
    make_mixture(&copied_experts, true, &made);
    write_both(&copied_experts, &made);
    assert_one_model(in_folder("folder"), in_folder("file.gguf"));
    float *mixed = run_prompt(in_folder("file.gguf"), "generic", 1, 64),
          *dense = run_prompt(shared_path("models-tiny/granite/hf"), "generic", 1, 64);
    for (size_t i = 0; i < n_logits; i++)
        if (!(fabsf(mixed[i] - dense[i]) < 1e-4f))
            fail_msg("logit %zu: %g, dense %g", i, (double)mixed[i], (double)dense[i]);
    free(mixed);
    free(dense);
    free_made(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folder_and_file_have_the_reference),
        cmocka_unit_test(copies_of_one_expert_are_the_dense_model),
    };
    return cmocka_run_group_tests_name("granitemoe", tests, make_folder, remove_folder);
}
