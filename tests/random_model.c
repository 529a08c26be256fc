/* SPDX-License-Identifier: MIT */
#include "random_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "base/rng.h"
#include "kernels/corrections.h"
#include "model/rope_scaling.h"

/* The type of a matrix without its size. */
typedef struct kind {
    uint8_t codec, scale_kind, scale_type, act, has_offset;
    uint16_t group;
    uint8_t corrections;
} kind;

/* corrections that a matrix may have in addition to its codes */
enum { OUTLIERS = 1, PLANE = 2, PAIR = 4, ALL = OUTLIERS | PLANE | PAIR };

#define FLOAT(c)                                                                                                       \
    {                                                                                                                  \
        .codec = WHIT_CODEC_##c                                                                                        \
    }
#define ROW_SCALES(c)                                                                                                  \
    {                                                                                                                  \
        .codec = WHIT_CODEC_##c, .scale_kind = WHIT_SCALE_ROW                                                          \
    }
#define TENSOR_SCALE(c)                                                                                                \
    {                                                                                                                  \
        .codec = WHIT_CODEC_##c, .scale_kind = WHIT_SCALE_TENSOR, .act = WHIT_TENSOR_ACT_TOKEN                         \
    }
#define GROUP_SCALES(c, n, type, offset)                                                                               \
    {                                                                                                                  \
        .codec = WHIT_CODEC_##c, .scale_kind = WHIT_SCALE_GROUP, .scale_type = WHIT_SCALE_##type, .group = n,          \
        .has_offset = offset                                                                                           \
    }
#define CORRECTED_TENSOR_SCALE(c, what)                                                                                \
    {                                                                                                                  \
        .codec = WHIT_CODEC_##c, .scale_kind = WHIT_SCALE_TENSOR, .act = WHIT_TENSOR_ACT_TOKEN, .corrections = what    \
    }
#define CORRECTED(c, n, type, what)                                                                                    \
    {                                                                                                                  \
        .codec = WHIT_CODEC_##c, .scale_kind = WHIT_SCALE_GROUP, .scale_type = WHIT_SCALE_##type, .group = n,          \
        .corrections = what                                                                                            \
    }

enum { N_MATRICES_MAX = 7 };

/* Columns: family, layers, width, FFN width, heads, KV heads, head size, dimensions rotated by RoPE, vocabulary
 * size. */
#define SIZES(name, layers, embd, ff, heads, kv_heads, head, rope, vocab)                                              \
    .family = (name), .n_layers = (layers), .n_embd = (embd), .n_ff = (ff), .n_heads = (heads),                        \
    .n_kv_heads = (kv_heads), .head_dim = (head), .rope_dim = (rope), .n_vocab = (vocab)

/* clang-format off */
static const struct shape {
    whit_config config;
    kind matrices[N_MATRICES_MAX]; /* q, k, v, o, gate, up, down; a kind that is all zero means the first one */
    kind embed, head;              /* head: unused if the head is tied */
} shapes[] = {
    {{SIZES("llama", 2, 48, 72, 4, 2, 16, 16, 90)}, {FLOAT(F32)}, FLOAT(F32), FLOAT(F32)},
    {{SIZES("qwen2", 2, 40, 56, 3, 1, 16, 8, 77), .window = 40, .tied_head = true, .attn_bias = true},
     {FLOAT(F16)}, FLOAT(F16), FLOAT(F16)},
    {{SIZES("qwen3", 1, 64, 96, 2, 2, 32, 32, 200), .qk_norm = true},
     {FLOAT(BF16), [6] = GROUP_SCALES(B1, 32, F16, 0)}, FLOAT(BF16), ROW_SCALES(I8S)},
    {{SIZES("bitnet", 2, 96, 144, 4, 2, 16, 16, 150), .gate = WHIT_GATE_RELU2, .tied_head = true, .sub_norm = true},
     {TENSOR_SCALE(T2)}, ROW_SCALES(I8S), FLOAT(F32)},
    {{SIZES("bitnet", 2, 128, 160, 2, 1, 64, 64, 120), .gate = WHIT_GATE_SILU, .tied_head = true, .sub_norm = true},
     {TENSOR_SCALE(T5)}, ROW_SCALES(I8), FLOAT(F32)},
    {{SIZES("llama", 1, 128, 200, 4, 4, 24, 24, 100)},
     {GROUP_SCALES(T2, 128, F16, 0)}, ROW_SCALES(I8), GROUP_SCALES(I4, 32, F16, 0)},
    {{SIZES("llama", 2, 128, 96, 4, 2, 32, 32, 170)}, {GROUP_SCALES(B1, 128, F16, 0)}, FLOAT(F16), ROW_SCALES(I8S)},
    {{SIZES("qwen3", 2, 96, 128, 2, 1, 32, 16, 64), .window = 100, .qk_norm = true, .tied_head = true},
     {GROUP_SCALES(Q2, 64, F16, 0)}, FLOAT(F16), FLOAT(F16)},
    {{SIZES("qwen2", 1, 64, 120, 4, 2, 16, 16, 110), .attn_bias = true, .out_bias = true, .ffn_bias = true},
     {GROUP_SCALES(I4, 32, F16, 1)}, GROUP_SCALES(I4, 32, F16, 0), ROW_SCALES(I8)},
    {{SIZES("llama", 2, 64, 80, 2, 2, 64, 64, 130)}, {ROW_SCALES(I8)}, ROW_SCALES(I8), ROW_SCALES(I8S)},
    {{SIZES("llama", 2, 112, 80, 4, 1, 16, 16, 95), .gate = WHIT_GATE_RELU2},
     {GROUP_SCALES(T2, 64, F16, 1), GROUP_SCALES(B1, 64, F32, 1), GROUP_SCALES(Q2, 64, F16, 1), ROW_SCALES(B1),
      GROUP_SCALES(I8, 64, F16, 0), GROUP_SCALES(I4, 64, F16, 0), TENSOR_SCALE(Q2)},
     GROUP_SCALES(I4, 64, F16, 0), FLOAT(F32)},
    {{SIZES("llama", 1, 144, 272, 2, 2, 40, 40, 105), .out_bias = true},
     {GROUP_SCALES(T5, 128, F16, 0), GROUP_SCALES(T5, 128, F16, 0), GROUP_SCALES(B1, 128, F16, 0), GROUP_SCALES(Q2,
      128, F16, 0), GROUP_SCALES(T5, 128, F16, 1), GROUP_SCALES(T5, 128, F16, 1), GROUP_SCALES(T2, 128, U8, 0)},
     ROW_SCALES(I8), ROW_SCALES(I8S)},
    {{SIZES("llama", 2, 128, 416, 4, 2, 32, 32, 95), .out_bias = true},
     {CORRECTED(B1, 128, F16, ALL), CORRECTED(T5, 128, F16, ALL), CORRECTED(T2, 128, U8, ALL), CORRECTED(Q2, 64, F16,
      ALL), CORRECTED(B1, 128, F16, ALL), CORRECTED(B1, 128, F16, ALL), CORRECTED(T2, 64, F16, ALL)},
     ROW_SCALES(I8), ROW_SCALES(I8S)},
    /* matrices with the same inputs but different corrections */
    {{SIZES("qwen2", 2, 320, 200, 4, 2, 16, 16, 95), .attn_bias = true, .ffn_bias = true},
     {CORRECTED(B1, 64, F16, OUTLIERS), CORRECTED(T5, 128, F16, PLANE), CORRECTED(T2, 64, F16, OUTLIERS | PAIR),
      CORRECTED(B1, 64, F16, PAIR), CORRECTED(B1, 64, F16, OUTLIERS | PLANE), GROUP_SCALES(B1, 64, F16, 0),
      CORRECTED(Q2, 64, F16, OUTLIERS)},
     ROW_SCALES(I8), CORRECTED(T2, 64, F16, ALL)},
    {{SIZES("bitnet", 2, 96, 272, 2, 1, 32, 32, 110), .gate = WHIT_GATE_RELU2, .tied_head = true, .sub_norm = true},
     {CORRECTED(T5, 128, F16, OUTLIERS), CORRECTED(T5, 128, F16, OUTLIERS), CORRECTED(T5, 128, F16, PAIR),
      CORRECTED(T5, 128, F16, PLANE), CORRECTED(T5, 128, F16, PLANE), CORRECTED(T5, 128, F16, OUTLIERS),
      CORRECTED_TENSOR_SCALE(T2, OUTLIERS | PLANE)},
     ROW_SCALES(I8S), FLOAT(F32)},
    /* three kinds of layers, two RoPE tables, all optional numbers */
    {{SIZES("decoder", 3, 48, 64, 4, 2, 16, 16, 70), .tied_head = true, .qk_norm = true, .norm_after_rope = true,
      .embedding_scale = 3, .residual_scale = 0.75, .attention_scale = 0.3, .logit_divisor = 2,
      .temperature_scale = 0.25, .temperature_length = 11, .n_kinds = 3,
      .kinds = {{.n_heads = 4, .n_kv_heads = 2, .head_dim = 16, .rope_dim = 16, .window = 21, .n_ff = 64}, {.rope = 1,
       .n_heads = 3, .n_kv_heads = 3, .head_dim = 24, .rope_dim = 12, .n_ff = 80}, {.n_heads = 4, .n_kv_heads = 1,
       .head_dim = 16, .n_ff = 48}},
      .kind_of_layer = {0, 1, 2}, .n_ropes = 2,
      .ropes = {{.theta = 1e4, .dims = 16, .magnitude = 1}, {.theta = 1e5, .dims = 12, .scaling = WHIT_ROPE_YARN,
       .rounds = true, .factor = 4, .length = 64, .beta_fast = 8, .beta_slow = 1, .magnitude = 1.25}}},
     {GROUP_SCALES(I4, 32, F16, 0)}, ROW_SCALES(I8)},
    /* Frequencies that depend on the context's length. All contexts of the tests are below the limit, since longer ones
     * give other bits. */
    {{SIZES("decoder", 1, 32, 40, 2, 1, 16, 12, 65), .n_ropes = 1,
      .ropes = {{.theta = 1e4, .dims = 12, .scaling = WHIT_ROPE_LONG, .factor = 8, .length = 3000,
       .magnitude = 1.125}}},
     {ROW_SCALES(I8)}, FLOAT(F16), FLOAT(BF16)},
    /* short convolutions and attention alternate */
    {{SIZES("hybrid", 3, 72, 88, 2, 1, 32, 32, 100), .tied_head = true, .qk_norm = true, .conv_taps = 3, .n_kinds = 2,
      .kinds = {{.mixer = WHIT_MIXER_SHORT_CONV, .n_ff = 88}, {.n_heads = 2, .n_kv_heads = 1, .head_dim = 32,
       .rope_dim = 32, .n_ff = 88}},
      .kind_of_layer = {0, 1, 0}}, {GROUP_SCALES(T2, 32, F16, 0)}, FLOAT(F16), FLOAT(F32)},
    /* delta rules, and attention with a gate and a window; more value heads than key heads, odd sizes */
    {{SIZES("hybrid", 3, 64, 80, 4, 2, 16, 8, 90), .qk_norm = true, .attn_gate = true, .conv_taps = 4,
      .delta_heads = 4, .delta_key_heads = 2, .delta_key_dim = 16, .delta_value_dim = 24, .n_kinds = 2,
      .kinds = {{.mixer = WHIT_MIXER_DELTA, .n_ff = 80}, {.n_heads = 4, .n_kv_heads = 2, .head_dim = 16,
       .rope_dim = 8, .window = 90, .n_ff = 80}},
      .kind_of_layer = {0, 1, 0}}, {GROUP_SCALES(Q2, 32, F16, 0)}, FLOAT(F16), ROW_SCALES(I8S)},
    {{SIZES("olmo2", 2, 40, 56, 4, 2, 16, 16, 71), .n_kinds = 2,
      .kinds = {{.n_heads = 4, .n_kv_heads = 2, .head_dim = 16, .rope_dim = 16, .window = 19, .n_ff = 56},
       {.n_heads = 4, .n_kv_heads = 2, .head_dim = 16, .rope_dim = 16, .n_ff = 56}},
      .kind_of_layer = {0, 1}}, {ROW_SCALES(I8)}, FLOAT(F16), FLOAT(F16)},
    /* two layers that share keys and values, values equal to keys, per-layer embeddings, capped logits */
    {{SIZES("gemma4", 5, 48, 80, 2, 2, 24, 24, 66), .window = 23, .gate = WHIT_GATE_GELU,
      .tied_head = true, .attention_scale = 1, .logit_cap = 5, .value_norm = true, .value_from_key = true,
      .layer_scale = true, .n_shared_layers = 2, .side_width = 16, .n_kinds = 4,
      .kinds = {{.rope = 1, .n_heads = 2, .n_kv_heads = 2, .head_dim = 16, .rope_dim = 16, .window = 23, .n_ff = 56},
       {.n_heads = 2, .n_kv_heads = 1, .head_dim = 24, .rope_dim = 24, .n_ff = 56}, {.rope = 1, .n_heads = 2,
       .n_kv_heads = 2, .head_dim = 16, .rope_dim = 16, .window = 23, .n_ff = 80}, {.n_heads = 2, .n_kv_heads = 1,
       .head_dim = 24, .rope_dim = 24, .n_ff = 80}},
      .kind_of_layer = {0, 1, 0, 3, 2}, .rope_factors = true, .n_ropes = 2,
      .ropes = {{.theta = 1e6, .dims = 24, .has_factors = true, .magnitude = 1}, {.theta = 1e4, .dims = 16,
       .magnitude = 1}}},
     {ROW_SCALES(I8)}, ROW_SCALES(I8), FLOAT(F16)},
    /* experts with biases in the second layer: sigmoid router with a selection bias, clamped gates */
    {{SIZES("decoder-experts", 2, 48, 72, 4, 2, 16, 16, 83), .gate = WHIT_GATE_SWISH1, .attn_bias = true,
      .n_experts = 11, .n_experts_used = 3, .n_expert_ff = 32, .router_sigmoid = true, .router_bias = true,
      .router_norm = true, .router_norm_eps = 1e-6, .router_scale = 1.5, .expert_bias = true, .gate_limit = 0.5,
      .n_kinds = 2,
      .kinds = {{.n_heads = 4, .n_kv_heads = 2, .head_dim = 16, .rope_dim = 16, .window = 21, .n_ff = 72},
       {.n_heads = 4, .n_kv_heads = 2, .head_dim = 16, .rope_dim = 16}},
      .kind_of_layer = {0, 1}}, {GROUP_SCALES(I4, 32, F16, 0)}, FLOAT(F16), FLOAT(F16)},
    /* ternary experts with row scales in all layers, next to a shared expert */
    {{.family = "hybrid-experts", .n_layers = 3, .n_embd = 64, .n_heads = 4, .n_kv_heads = 2, .head_dim = 16,
      .rope_dim = 8, .n_vocab = 90, .qk_norm = true, .conv_taps = 3, .n_experts = 6, .n_experts_used = 2,
      .n_expert_ff = 48, .n_shared_ff = 40, .n_kinds = 2,
      .kinds = {{.mixer = WHIT_MIXER_SHORT_CONV}, {.n_heads = 4, .n_kv_heads = 2, .head_dim = 16, .rope_dim = 8}},
      .kind_of_layer = {0, 1, 0}}, {ROW_SCALES(T5)}, FLOAT(F16), ROW_SCALES(I8S)},
    /* experts in addition to the feed-forward part, each with a factor */
    {{SIZES("gemma4-experts", 2, 48, 56, 2, 1, 24, 24, 66), .gate = WHIT_GATE_GELU, .tied_head = true,
      .attention_scale = 1, .value_norm = true, .layer_scale = true, .n_experts = 4, .n_experts_used = 4,
      .n_expert_ff = 16, .router_norm = true}, {FLOAT(BF16)}, ROW_SCALES(I8), FLOAT(F16)},
    /* a draft layer, which predicts one more token, with layers that have a delta rule */
    {{SIZES("hybrid", 3, 64, 80, 4, 2, 16, 8, 90), .qk_norm = true, .attn_gate = true, .conv_taps = 4,
      .delta_heads = 4, .delta_key_heads = 2, .delta_key_dim = 16, .delta_value_dim = 128, .n_draft_layers = 1,
      .n_kinds = 2,
      .kinds = {{.mixer = WHIT_MIXER_DELTA, .n_ff = 80}, {.n_heads = 4, .n_kv_heads = 2, .head_dim = 16,
       .rope_dim = 8, .n_ff = 80}},
      .kind_of_layer = {0, 1, 0}}, {FLOAT(F32)}, FLOAT(F32), FLOAT(F32)},
    /* a draft layer with experts in all layers, in low-bit codecs */
    {{.family = "hybrid-experts", .n_layers = 2, .n_embd = 64, .n_heads = 4, .n_kv_heads = 2, .head_dim = 16,
      .rope_dim = 8, .n_vocab = 90, .tied_head = true, .qk_norm = true, .conv_taps = 3, .n_experts = 6,
      .n_experts_used = 2, .n_expert_ff = 48, .n_shared_ff = 40, .n_draft_layers = 1, .n_kinds = 2,
      .kinds = {{.mixer = WHIT_MIXER_SHORT_CONV}, {.n_heads = 4, .n_kv_heads = 2, .head_dim = 16, .rope_dim = 8}},
      .kind_of_layer = {1, 0}}, {GROUP_SCALES(Q2, 32, F16, 0)}, ROW_SCALES(I8S)},
};
/* A draft model for the gemma4 model above: the same windows and head sizes, but more queries. */
static const struct shape draft_shape = {
    {SIZES("gemma4-draft", 3, 40, 56, 4, 2, 24, 24, 66), .gate = WHIT_GATE_GELU, .tied_head = true,
     .attention_scale = 1, .layer_scale = true, .draft_width = 48, .n_kinds = 2,
     .kinds = {{.rope = 1, .n_heads = 4, .n_kv_heads = 2, .head_dim = 16, .rope_dim = 16, .window = 23, .n_ff = 56},
      {.n_heads = 3, .n_kv_heads = 1, .head_dim = 24, .rope_dim = 24, .n_ff = 56}},
     .kind_of_layer = {0, 0, 1}, .rope_factors = true, .n_ropes = 2,
     .ropes = {{.theta = 1e6, .dims = 24, .has_factors = true, .magnitude = 1}, {.theta = 1e4, .dims = 16,
      .magnitude = 1}}},
    {ROW_SCALES(I8)}, FLOAT(F16), FLOAT(F16)};
/* clang-format on */

uint32_t random_model_count(void)
{
    return sizeof shapes / sizeof *shapes;
}

/* ---- drawn models ---------------------------------------------------------------------------- */

static uint32_t below(whit_rng *rng, uint32_t n)
{
    return (uint32_t)whit_rng_below(rng, n);
}

static kind draw_float_or_i8(whit_rng *rng, bool is_head)
{
    static const kind kinds[] = {FLOAT(F32), FLOAT(F16), FLOAT(BF16), ROW_SCALES(I8), ROW_SCALES(I8S)};
    return kinds[below(rng, is_head ? 5 : 4)];
}

/* Draws a codec with any valid scales and, if it may have them, corrections. */
static kind draw_kind(whit_rng *rng)
{
    static const uint8_t codecs[] = {WHIT_CODEC_T2, WHIT_CODEC_T5, WHIT_CODEC_B1, WHIT_CODEC_Q2,
                                     WHIT_CODEC_B1, WHIT_CODEC_I4, WHIT_CODEC_I8};
    if (below(rng, 8) == 0) return draw_float_or_i8(rng, false);
    for (;;) {
        kind k = {.codec = codecs[below(rng, 7)], .scale_kind = (uint8_t)(1 + below(rng, 3))};
        bool is_whole = k.scale_kind == WHIT_SCALE_TENSOR;
        if (is_whole || below(rng, 6) == 0) k.act = (uint8_t)below(rng, 2);
        if (!is_whole) k.scale_type = (uint8_t)below(rng, k.scale_kind == WHIT_SCALE_GROUP ? 3 : 2);
        if (k.scale_kind == WHIT_SCALE_GROUP) k.group = (uint16_t)(16 << below(rng, 5));
        k.has_offset = below(rng, 4) == 0;
        whit_tensor_type type = {.codec = k.codec,
                                 .layout = WHIT_LAYOUT_TILE16,
                                 .scale_kind = k.scale_kind,
                                 .scale_type = k.scale_type,
                                 .has_offset = k.has_offset,
                                 .group = k.group,
                                 .n_rows = 1,
                                 .n_cols = 1,
                                 .scale = is_whole,
                                 .scale_b = is_whole && k.codec == WHIT_CODEC_Q2};
        if (whit_may_be_corrected(&type)) k.corrections = (uint8_t)below(rng, ALL + 1);
        if (whit_tensor_type_check(&type, NULL) == WHIT_OK) return k;
    }
}

static uint32_t draw_width(whit_rng *rng, uint32_t most)
{
    return below(rng, 3) ? 20 + below(rng, most - 20) : 16 * (1 + below(rng, most / 16));
}

static struct shape draw_shape(uint64_t seed)
{
    static const char *const families[] = {"llama", "qwen2", "qwen3", "bitnet"};
    static const uint32_t dims[] = {16, 24, 32, 40, 64};
    whit_rng rng = {seed};
    struct shape s = {0};
    whit_config *c = &s.config;
    uint32_t family = below(&rng, 4);
    snprintf(c->family, sizeof c->family, "%s", families[family]);
    c->n_layers = 1 + below(&rng, 2);
    if (family == 1) c->n_layers = 2; /* session_play.c widens the window of one of the layers */
    c->n_embd = draw_width(&rng, 400);
    c->n_ff = draw_width(&rng, 520);
    c->n_kv_heads = 1 + below(&rng, 2);
    c->n_heads = c->n_kv_heads * (1 + below(&rng, 3));
    c->head_dim = c->rope_dim = dims[below(&rng, 5)];
    c->n_vocab = 40 + below(&rng, 170);
    c->window = below(&rng, 4) ? 0 : 40;
    c->gate = (uint8_t)below(&rng, 2);
    c->tied_head = below(&rng, 4) == 0;
    c->attn_bias = family == 1;
    c->qk_norm = family == 2;
    c->sub_norm = family == 3;
    c->out_bias = below(&rng, 5) == 0;
    c->ffn_bias = below(&rng, 5) == 0;
    /* matrices with the same inputs have the same type, except for their corrections */
    bool are_alike = below(&rng, 2);
    for (uint32_t i = 0; i < N_MATRICES_MAX; i++) {
        kind k = draw_kind(&rng), *first = i < 3 ? &s.matrices[0] : &s.matrices[4];
        if (are_alike && (i == 1 || i == 2 || i == 5)) {
            uint8_t corrections = first->corrections ? k.corrections : 0;
            k = *first;
            k.corrections = corrections;
        }
        s.matrices[i] = k;
    }
    s.embed = below(&rng, 2) ? draw_kind(&rng) : draw_float_or_i8(&rng, c->tied_head);
    s.head = below(&rng, 2) ? draw_kind(&rng) : draw_float_or_i8(&rng, true);
    bool is_plain = below(&rng, 3) == 0; /* without corrections the model can be a source of conversions */
    for (uint32_t i = 0; is_plain && i < N_MATRICES_MAX; i++) s.matrices[i].corrections = 0;
    if (is_plain) s.embed.corrections = s.head.corrections = 0;
    return s;
}

/* ---- making them ------------------------------------------------------------------------------ */

struct maker {
    whit_ndf_writer *writer;
    whit_rng rng;
    uint64_t salt; /* seed of the corrections of a drawn model; 0: the model is not drawn */
    bool writing;  /* second pass, which writes; the first pass declares the tensors */
    bool negates;  /* negates all vectors */
    uint32_t next;
    whit_error *error;
};

static float spread(whit_rng *rng, float size)
{
    return (float)(whit_rng_uniform(rng) * 2 - 1) * size;
}

static int8_t pick_code(whit_rng *rng, uint8_t codec)
{
    const whit_codec_info *info = whit_codec_find(codec);
    if (codec == WHIT_CODEC_B1) return whit_rng_below(rng, 2) ? 1 : -1;
    if (codec == WHIT_CODEC_T2) return (int8_t)((int)whit_rng_below(rng, 3) - 1);
    return (int8_t)(info->code_min + (int)whit_rng_below(rng, (uint64_t)(info->code_max - info->code_min + 1)));
}

/* Fills n_rows rows with random content that keeps the magnitude of values from layer to layer. */
static bool fill(whit_rng *rng, const whit_tensor_type *type, whit_rows *rows)
{
    const whit_codec_info *info = whit_codec_find(type->codec);
    whit_geometry g = whit_codec_geometry(type);
    size_t n = (size_t)type->n_rows * type->n_cols, n_fields = (size_t)type->n_rows * g.n_groups * g.n_fields;
    float size = 1.7f / sqrtf((float)type->n_cols);
    rows->elems = malloc(n * 4);
    rows->fields = malloc((n_fields + 1) * sizeof(float));
    rows->fields_u8 = malloc(n_fields + 1);
    if (!rows->elems || !rows->fields || !rows->fields_u8) return false;
    for (size_t i = 0; i < n; i++) {
        float value = type->layout == WHIT_LAYOUT_PLAIN ? 1 + spread(rng, 0.2f) : spread(rng, size);
        uint16_t half = type->codec == WHIT_CODEC_F16 ? whit_f16_from_f32(value) : whit_bf16_from_f32(value);
        if (!info->is_float)
            ((int8_t *)rows->elems)[i] = pick_code(rng, type->codec);
        else if (type->codec == WHIT_CODEC_F32)
            ((float *)rows->elems)[i] = value;
        else
            ((uint16_t *)rows->elems)[i] = half;
    }
    float scale = 1.5f * size / (float)(info->code_max > 1 ? info->code_max : 1);
    if (type->scale_type == WHIT_SCALE_U8) scale /= 100;
    for (size_t i = 0; i < n_fields; i++) {
        rows->fields[i] = scale * (0.5f + (float)whit_rng_uniform(rng)) * (i % g.n_fields ? 0.5f : 1);
        rows->fields_u8[i] = (uint8_t)(50 + whit_rng_below(rng, 100));
    }
    return true;
}

/* Makes up to three outliers per row, about twice as large as the weights. In drawn models (salt != 0) there may be as
 * many as fit, at the ends of rows and next to each other, and tiles without any. Both passes give the same result. */
static whit_status make_outliers(const whit_tensor_type *type, uint64_t salt, whit_buf *part, whit_error *error)
{
    static const uint32_t mosts[] = {4, 2, 256, 40, 3}, gaps[] = {1, 2, 9, 1u << 16};
    whit_rng rng = {.state = salt * 7919 + type->n_rows * 65537ull + type->n_cols};
    uint32_t most = salt ? mosts[whit_rng_below(&rng, 5)] : 4, gap = salt ? gaps[whit_rng_below(&rng, 4)] : 1u << 16,
             bare = salt ? (uint32_t)whit_rng_below(&rng, 3) : 0; /* number of tiles of three without outliers */
    if (gap > type->n_cols) gap = type->n_cols;
    whit_outlier *list = calloc((size_t)type->n_rows * UINT8_MAX, sizeof *list);
    float *scales = calloc((type->n_rows + 15) / 16, sizeof *scales);
    size_t n = 0;
    for (uint32_t row = 0; list && row < type->n_rows; row++) {
        uint32_t col = (uint32_t)whit_rng_below(&rng, type->n_cols), left = (uint32_t)whit_rng_below(&rng, most);
        if (salt && whit_rng_below(&rng, 4) == 0) col = whit_rng_below(&rng, 2) ? type->n_cols - 1 : 0;
        if (bare && row / 16 % 3 == bare) left = 0;
        for (; left && col < type->n_cols; left--, col += 1 + (uint32_t)whit_rng_below(&rng, gap))
            list[n++] = (whit_outlier){row, col, (int8_t)((int)whit_rng_below(&rng, 255) - 127)};
    }
    if (list && !n) list[n++] = (whit_outlier){type->n_rows - 1, type->n_cols - 1, 5};
    for (uint32_t tile = 0; scales && tile < (type->n_rows + 15) / 16; tile++)
        scales[tile] = 3.5f / sqrtf((float)type->n_cols) / 127 * (0.5f + (float)whit_rng_uniform(&rng));
    whit_status status = list && scales ? whit_outliers_build(type, list, n, scales, part, error)
                                        : whit_fail_memory(error, "outliers", type->n_rows);
    free(list);
    free(scales);
    return status;
}

/* Makes a sign plane on about a third of the columns; in drawn models on any share, from all columns to one. */
static whit_status make_plane(const whit_tensor_type *type, uint64_t salt, whit_buf *part, whit_error *error)
{
    static const uint32_t shares[] = {1, 3, 8, 1000};
    whit_rng rng = {.state = salt * 7919 + type->n_rows * 257ull + type->n_cols};
    uint16_t *columns = calloc(type->n_cols, sizeof *columns);
    whit_rows rows = {0};
    uint32_t n = 0, share = salt ? shares[whit_rng_below(&rng, 4)] : 3, always = salt ? type->n_cols - 1 : 0;
    for (uint32_t k = 0; columns && k < type->n_cols; k++)
        if (k == always || whit_rng_below(&rng, share) == 0) columns[n++] = (uint16_t)k;
    whit_tensor_type plane = whit_plane_type(type, n);
    whit_status status = columns && fill(&rng, &plane, &rows)
        ? whit_plane_build(type, columns, n, &rows, NULL, part, error)
        : whit_fail_memory(error, "a plane", n);
    free(columns), free(rows.elems), free(rows.fields), free(rows.fields_u8);
    return status;
}

static whit_status make_low_rank(const whit_tensor_type *type, uint64_t salt, whit_buf corrections[WHIT_PART_COUNT],
                                 whit_error *error)
{
    static const uint32_t ranks[] = {1, 2, 5, 16, 17, 33, 100, WHIT_LOW_RANK_MAX};
    whit_rng rng = {.state = salt * 7919 + type->n_rows * 1021ull + type->n_cols};
    uint32_t rank = salt ? ranks[whit_rng_below(&rng, 8)] : 3 + type->n_rows % 17;
    whit_tensor_type types[2] = {whit_factor_type(rank, type->n_cols), whit_factor_type(type->n_rows, rank)};
    whit_rows rows[2] = {0};
    whit_status status = fill(&rng, &types[0], &rows[0]) && fill(&rng, &types[1], &rows[1])
        ? whit_low_rank_build(type, rank, &rows[0], &rows[1], NULL, &corrections[WHIT_PART_FACTOR_A],
                              &corrections[WHIT_PART_FACTOR_B], error)
        : whit_fail_memory(error, "a pair", rank);
    for (int i = 0; i < 2; i++) free(rows[i].elems), free(rows[i].fields), free(rows[i].fields_u8);
    return status;
}

static whit_status write_tensor(struct maker *m, const whit_tensor_type *type, const uint64_t bytes[WHIT_PART_COUNT],
                                const whit_buf corrections[WHIT_PART_COUNT])
{
    whit_rows rows = {0};
    uint8_t *part[WHIT_PART_COUNT] = {0}, digest[WHIT_HASH_BYTES] = {1};
    whit_status status = WHIT_OK;
    memcpy(digest + 1, &m->next, sizeof m->next);
    /* the digest may be arbitrary, since the model is not converted again */
    whit_ndf_writer_set_digest(m->writer, m->next, digest);
    if (!fill(&m->rng, type, &rows)) status = whit_fail_memory(m->error, "a tensor", type->n_rows);
    for (uint32_t i = 0; status == WHIT_OK && m->negates && i < type->n_cols; i++)
        ((float *)rows.elems)[i] = -((float *)rows.elems)[i];
    for (int p = 0; p < WHIT_PART_COUNT; p++)
        if (bytes[p] && !(part[p] = whit_zalloc(NULL, bytes[p])))
            status = whit_fail_memory(m->error, "a tensor", bytes[p]);
    if (status == WHIT_OK && type->layout == WHIT_LAYOUT_PLAIN)
        memcpy(part[WHIT_PART_CODES], rows.elems, bytes[WHIT_PART_CODES]);
    else if (status == WHIT_OK)
        status = whit_codec_pack(type, 0, type->n_rows, &rows, part, m->error);
    for (int p = WHIT_PART_PLANE; status == WHIT_OK && p < WHIT_PART_COUNT; p++)
        if (bytes[p]) memcpy(part[p], corrections[p].data, bytes[p]);
    for (int p = 0; p < WHIT_PART_COUNT; p++) {
        if (status == WHIT_OK && bytes[p])
            status = whit_ndf_writer_add(m->writer, m->next, (whit_part)p, part[p], bytes[p], m->error);
        whit_free(NULL, part[p], bytes[p]);
    }
    free(rows.elems);
    free(rows.fields);
    free(rows.fields_u8);
    m->next++;
    return status;
}

/* Declares or writes one tensor, depending on the pass. */
static whit_status tensor(struct maker *m, int layer, const char *name, whit_tensor_type type, uint8_t has)
{
    char full[64];
    whit_buf corrections[WHIT_PART_COUNT] = {0};
    uint64_t bytes[WHIT_PART_COUNT];
    if (layer >= 0)
        snprintf(full, sizeof full, "layers.%d.%s", layer, name);
    else
        snprintf(full, sizeof full, "%s", name);
    WHIT_TRY(whit_tensor_type_check(&type, m->error));
    for (int p = 0; p < WHIT_PART_COUNT; p++) whit_codec_part_bytes(&type, (whit_part)p, &bytes[p]);
    whit_status status = WHIT_OK;
    if (has & OUTLIERS) status = make_outliers(&type, m->salt, &corrections[WHIT_PART_OUTLIERS], m->error);
    if (has & PLANE && status == WHIT_OK) status = make_plane(&type, m->salt, &corrections[WHIT_PART_PLANE], m->error);
    if (has & PAIR && status == WHIT_OK) status = make_low_rank(&type, m->salt, corrections, m->error);
    uint32_t number;
    for (int p = WHIT_PART_PLANE; p < WHIT_PART_COUNT; p++) bytes[p] = corrections[p].size_bytes;
    if (status == WHIT_OK)
        status = m->writing ? write_tensor(m, &type, bytes, corrections)
                            : whit_ndf_writer_declare(m->writer, full, &type, bytes, &number, m->error);
    for (int p = 0; p < WHIT_PART_COUNT; p++) whit_buf_free(&corrections[p]);
    return status;
}

static whit_status vector(struct maker *m, int layer, const char *name, uint32_t n)
{
    return tensor(m, layer, name, (whit_tensor_type){.n_rows = 1, .n_cols = n}, 0);
}

static whit_status matrix(struct maker *m, int layer, const char *name, kind k, uint32_t n_rows, uint32_t n_cols)
{
    whit_tensor_type type = {.codec = k.codec,
                             .layout = WHIT_LAYOUT_TILE16,
                             .scale_kind = k.scale_kind,
                             .scale_type = k.scale_type,
                             .act = k.act,
                             .has_offset = k.has_offset,
                             .group = k.group,
                             .n_rows = n_rows,
                             .n_cols = n_cols};
    if (k.scale_kind == WHIT_SCALE_TENSOR) type.scale = 1.2f / sqrtf((float)n_cols);
    if (k.scale_kind == WHIT_SCALE_TENSOR && k.codec == WHIT_CODEC_Q2) type.scale_b = 0.5f * type.scale;
    if (k.scale_kind == WHIT_SCALE_TENSOR && k.has_offset) type.offset = 0.1f * type.scale;
    return tensor(m, layer, name, type, k.corrections);
}

static whit_status divisors(void *context, const char *name, uint32_t n, whit_error *error)
{
    (void)error;
    return vector(context, -1, name, n);
}

struct named_matrix {
    const char *name, *bias;
    uint32_t n_rows, n_cols;
    bool has_bias;
};

/* Makes matrices of a layer; their kinds are those of the shape from index `first` on. */
static whit_status matrices_of(struct maker *m, const struct shape *shape, int layer,
                               const struct named_matrix *matrices, int first, int n)
{
    static const kind unset;
    for (int i = 0; i < n; i++) {
        const kind *own = &shape->matrices[(first + i) % N_MATRICES_MAX];
        if (memcmp(own, &unset, sizeof unset) == 0) own = &shape->matrices[0];
        WHIT_TRY(matrix(m, layer, matrices[i].name, *own, matrices[i].n_rows, matrices[i].n_cols));
        if (matrices[i].has_bias) WHIT_TRY(vector(m, layer, matrices[i].bias, matrices[i].n_rows));
    }
    return WHIT_OK;
}

static whit_status attention_tensors(struct maker *m, const struct shape *shape, int layer)
{
    const whit_config *c = &shape->config;
    const whit_layer_kind k = whit_config_kind(c, (uint32_t)layer);
    const uint32_t q = k.n_heads * k.head_dim, kv = k.n_kv_heads * k.head_dim;
    const struct named_matrix matrices[] = {{"q", "q_bias", q, c->n_embd, c->attn_bias},
                                            {"k", "k_bias", kv, c->n_embd, c->attn_bias},
                                            {"v", "v_bias", kv, c->n_embd, c->attn_bias},
                                            {"o", "o_bias", c->n_embd, q, c->out_bias},
                                            {"attn_gate", NULL, q, c->n_embd, false}};
    const bool is_gemma = strncmp(c->family, "gemma", 5) == 0, is_olmo = strncmp(c->family, "olmo", 4) == 0;
    const bool is_shared =
        c->draft_width || (c->n_shared_layers && (uint32_t)layer >= c->n_layers - c->n_shared_layers);
    const bool has_norms = c->qk_norm || is_gemma || is_olmo;
    if (has_norms) WHIT_TRY(vector(m, layer, "q_norm", is_olmo ? q : k.head_dim));
    if (has_norms && !is_shared) WHIT_TRY(vector(m, layer, "k_norm", is_olmo ? kv : k.head_dim));
    if (c->sub_norm) WHIT_TRY(vector(m, layer, "attn_sub_norm", q));
    if (c->sub_norm) WHIT_TRY(vector(m, layer, "ffn_sub_norm", k.n_ff));
    for (int i = 0; i < (c->attn_gate ? 5 : 4); i++) {
        if ((is_shared && (i == 1 || i == 2)) || (c->value_from_key && !k.window && i == 2)) continue;
        WHIT_TRY(matrices_of(m, shape, layer, &matrices[i], i, 1));
    }
    return WHIT_OK;
}

static whit_status short_conv_tensors(struct maker *m, const struct shape *shape, int layer)
{
    const uint32_t n = shape->config.n_embd;
    const struct named_matrix matrices[] = {{"conv_b", NULL, n, n, false},
                                            {"conv_c", NULL, n, n, false},
                                            {"conv_x", NULL, n, n, false},
                                            {"conv_o", NULL, n, n, false}};
    WHIT_TRY(vector(m, layer, "conv", shape->config.conv_taps * n));
    return matrices_of(m, shape, layer, matrices, 0, 4);
}

static whit_status delta_tensors(struct maker *m, const struct shape *shape, int layer)
{
    const whit_config *c = &shape->config;
    const uint32_t n = c->n_embd, values = c->delta_heads * c->delta_value_dim,
                   mixed = 2 * c->delta_key_heads * c->delta_key_dim + values;
    const struct named_matrix matrices[] = {{"mixed", NULL, mixed, n, false},
                                            {"z", NULL, values, n, false},
                                            {"beta", NULL, c->delta_heads, n, false},
                                            {"decay", NULL, c->delta_heads, n, false},
                                            {"delta_o", NULL, n, values, false}};
    WHIT_TRY(vector(m, layer, "conv", c->conv_taps * mixed));
    m->negates = true;
    whit_status status = vector(m, layer, "delta_a", c->delta_heads);
    m->negates = false;
    if (status == WHIT_OK) status = vector(m, layer, "delta_dt", c->delta_heads);
    if (status == WHIT_OK) status = vector(m, layer, "delta_norm", c->delta_value_dim);
    return status == WHIT_OK ? matrices_of(m, shape, layer, matrices, 0, 5) : status;
}

/* Makes the router, the experts and the shared expert. */
static whit_status expert_tensors(struct maker *m, const struct shape *shape, int layer)
{
    const whit_config *c = &shape->config;
    const bool is_gemma = strncmp(c->family, "gemma", 5) == 0;
    const uint32_t n = c->n_experts, d = c->n_embd, ff = c->n_expert_ff;
    const kind f32 = FLOAT(F32), bf16 = FLOAT(BF16);
    const struct named_matrix experts[] = {{"expert_gate", NULL, n * ff, d, false},
                                           {"expert_up", NULL, n * ff, d, false},
                                           {"expert_down", NULL, n * d, ff, false}};
    const struct named_matrix shared[] = {{"shared_gate", NULL, c->n_shared_ff, d, false},
                                          {"shared_up", NULL, c->n_shared_ff, d, false},
                                          {"shared_down", NULL, d, c->n_shared_ff, false}};
    WHIT_TRY(matrix(m, layer, "router", f32, n, d));
    if (c->router_bias) WHIT_TRY(vector(m, layer, "router_choice", n));
    if (c->expert_bias) {
        WHIT_TRY(vector(m, layer, "router_bias", n));
        WHIT_TRY(matrix(m, layer, "expert_gate_bias", f32, n, ff));
        WHIT_TRY(matrix(m, layer, "expert_up_bias", bf16, n, ff));
        WHIT_TRY(matrix(m, layer, "expert_down_bias", f32, n, d));
    }
    if (is_gemma) {
        WHIT_TRY(vector(m, layer, "router_norm", d));
        WHIT_TRY(vector(m, layer, "expert_scales", n));
        WHIT_TRY(vector(m, layer, "ffn_dense_post_norm", d));
        WHIT_TRY(vector(m, layer, "expert_post_norm", d));
        WHIT_TRY(vector(m, layer, "expert_norm", d));
    }
    WHIT_TRY(matrices_of(m, shape, layer, experts, 4, 3));
    if (!c->n_shared_ff) return WHIT_OK;
    WHIT_TRY(matrix(m, layer, "shared_weight", f32, 1, d));
    return matrices_of(m, shape, layer, shared, 4, 3);
}

/* Makes the norms around the sublayers, as the family has them, and Gemma 4's per-layer embeddings. */
static whit_status norms_of_layer(struct maker *m, const whit_config *c, int layer)
{
    const bool is_gemma = strncmp(c->family, "gemma", 5) == 0, is_olmo = strncmp(c->family, "olmo", 4) == 0;
    if (!is_olmo) WHIT_TRY(vector(m, layer, "attn_norm", c->n_embd));
    if (!is_olmo) WHIT_TRY(vector(m, layer, "ffn_norm", c->n_embd));
    if (is_olmo || is_gemma) WHIT_TRY(vector(m, layer, "attn_post_norm", c->n_embd));
    if (is_olmo || is_gemma) WHIT_TRY(vector(m, layer, "ffn_post_norm", c->n_embd));
    if (c->layer_scale) WHIT_TRY(vector(m, layer, "layer_scale", 1));
    if (!c->side_width) return WHIT_OK;
    WHIT_TRY(vector(m, layer, "side_norm", c->n_embd));
    const kind i8 = ROW_SCALES(I8);
    WHIT_TRY(matrix(m, layer, "side_gate", i8, c->side_width, c->n_embd));
    return matrix(m, layer, "side_proj", i8, c->n_embd, c->side_width);
}

/* Makes the additional tensors of a draft layer, which predicts one more token. */
static whit_status draft_tensors(struct maker *m, const struct shape *shape, int layer)
{
    const uint32_t n = shape->config.n_embd;
    const struct named_matrix input = {"draft_in", NULL, n, 2 * n, false};
    WHIT_TRY(vector(m, layer, "draft_embed_norm", n));
    WHIT_TRY(vector(m, layer, "draft_hidden_norm", n));
    WHIT_TRY(vector(m, layer, "draft_norm", n));
    return matrices_of(m, shape, layer, &input, 0, 1);
}

/* Makes all tensors, in the same order in both passes. */
static whit_status tensors(struct maker *m, const struct shape *shape)
{
    static whit_status (*const mixers[])(struct maker *, const struct shape *,
                                         int) = {attention_tensors, short_conv_tensors, delta_tensors};
    const whit_config *c = &shape->config;
    WHIT_TRY(matrix(m, -1, "embed", shape->embed, c->n_vocab, c->n_embd));
    for (int layer = 0; layer < (int)(c->n_layers + c->n_draft_layers); layer++) {
        const whit_layer_kind k = whit_config_kind(c, (uint32_t)layer);
        const struct named_matrix ffn[] = {{"gate", "gate_bias", k.n_ff, c->n_embd, c->ffn_bias},
                                           {"up", "up_bias", k.n_ff, c->n_embd, c->ffn_bias},
                                           {"down", "down_bias", c->n_embd, k.n_ff, c->ffn_bias}};
        WHIT_TRY(norms_of_layer(m, c, layer));
        WHIT_TRY(mixers[k.mixer](m, shape, layer));
        if (k.n_ff) WHIT_TRY(matrices_of(m, shape, layer, ffn, 4, 3));
        if (c->n_experts && (!k.n_ff || strncmp(c->family, "gemma", 5) == 0)) WHIT_TRY(expert_tensors(m, shape, layer));
        if (layer == (int)c->n_layers) WHIT_TRY(draft_tensors(m, shape, layer));
    }
    WHIT_TRY(whit_rope_visit(c, divisors, m, m->error));
    if (c->side_width) {
        WHIT_TRY(matrix(m, -1, "side_embed", shape->embed, c->n_vocab, c->n_layers * c->side_width));
        WHIT_TRY(matrix(m, -1, "side_context_proj", shape->matrices[0], c->n_layers * c->side_width, c->n_embd));
        WHIT_TRY(vector(m, -1, "side_context_norm", c->side_width));
    }
    if (c->draft_width) {
        WHIT_TRY(matrix(m, -1, "draft_in", shape->matrices[0], c->n_embd, 2 * c->draft_width));
        WHIT_TRY(matrix(m, -1, "draft_out", shape->matrices[0], c->draft_width, c->n_embd));
    }
    WHIT_TRY(vector(m, -1, "final_norm", c->n_embd));
    if (!c->tied_head) WHIT_TRY(matrix(m, -1, "head", shape->head, c->n_vocab, c->n_embd));
    return WHIT_OK;
}

/* Builds the model of a shape with random content from `seed`. */
static whit_status make_shape(struct shape shape, uint64_t seed, uint64_t salt, whit_ndf_writer **writer,
                              whit_config *config, whit_error *error)
{
    shape.config.n_ctx = 4096;
    shape.config.norm_eps = 1e-5;
    shape.config.rope_theta = shape.config.n_ropes ? shape.config.ropes[0].theta : 1e4;
    *config = shape.config;
    WHIT_TRY(whit_ndf_writer_open(NULL, NULL, NULL, writer, error));
    struct maker m = {.writer = *writer, .rng = {seed}, .salt = salt, .error = error};
    whit_config_save(config, whit_ndf_writer_config(*writer));
    whit_table_set_string(whit_ndf_writer_meta(*writer), "general.name", "random");
    whit_status status = tensors(&m, &shape);
    if (status == WHIT_OK) status = whit_ndf_writer_begin(*writer, error);
    m.writing = true;
    if (status == WHIT_OK) status = tensors(&m, &shape);
    if (status == WHIT_OK) status = whit_ndf_writer_commit(*writer, NULL, error);
    if (status == WHIT_OK) return WHIT_OK;
    whit_ndf_writer_close(*writer);
    *writer = NULL;
    return status;
}

whit_status random_model_make(uint32_t i, whit_ndf_writer **writer, whit_config *config, whit_error *error)
{
    const bool is_drawn = i >= random_model_count();
    return make_shape(is_drawn ? draw_shape(i) : shapes[i], i, is_drawn ? i : 0, writer, config, error);
}

whit_status random_model_make_drafter(bool is_uneven, whit_ndf_writer **writer, whit_error *error)
{
    whit_config config;
    struct shape shape = draft_shape;
    if (is_uneven) {
        shape.config.kinds[shape.config.n_kinds] = shape.config.kinds[0];
        shape.config.kinds[shape.config.n_kinds].n_heads = 2;
        shape.config.kind_of_layer[1] = (uint8_t)shape.config.n_kinds++;
    }
    return make_shape(shape, 99, 0, writer, &config, error);
}

whit_status random_model_open_source(uint32_t i, whit_ndf_writer **writer, char path[64], whit_source *source,
                                     whit_error *error)
{
    whit_config config;
    WHIT_TRY(random_model_make(i, writer, &config, error));
    snprintf(path, 64, "/proc/self/fd/%d", whit_ndf_writer_fd(*writer));
    whit_status status = whit_source_open(path, NULL, source, error);
    if (status == WHIT_OK) return WHIT_OK;
    whit_ndf_writer_close(*writer);
    *writer = NULL;
    return status;
}
