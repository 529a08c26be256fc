/* SPDX-License-Identifier: MIT
 * Makes random models of real shapes: the widths, layers and formats are those of an existing model, and products with
 * the random weights take as long as with real ones. The weights are drawn as packed bytes, by a table of the bytes
 * that are valid in each line of codes. Scales are chosen so that activations keep their magnitude. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/half.h"
#include "base/rng.h"
#include "bench/bench.h"
#include "quant/requantise.h"
#include "format/conversion_cache.h"
#include "model/hadamard.h"

#define BENCH_MODEL_VERSION "2" /* increment this whenever the content that is written below changes */
#define SEED                20261121

#define SIZES(name, layers, embd, ff, heads, kv_heads, head, vocab, theta)                                             \
    .family = (name), .n_layers = (layers), .n_embd = (embd), .n_ff = (ff), .n_heads = (heads),                        \
    .n_kv_heads = (kv_heads), .head_dim = (head), .n_vocab = (vocab), .rope_theta = (theta)
#define QWEN35                                                                                                         \
    .rope_dim = 64, .qk_norm = true, .attn_gate = true, .conv_taps = 4, .delta_key_heads = 16, .delta_key_dim = 128,   \
    .delta_value_dim = 128
#define GEMMA4                                                                                                         \
    .window = 512, .tied_head = true, .gate = WHIT_GATE_GELU, .qk_norm = true, .attention_scale = 1, .logit_cap = 30,  \
    .value_norm = true, .layer_scale = true, .side_width = 256

/* Lists the shapes of known models. Columns: family, layers, width, width of the FFN, heads, KV heads, size of a head,
 * vocabulary, theta of RoPE. The kinds of layers are set below. */
/* clang-format off */
static const struct {
    const char *name;
    whit_config config;
} shapes[] = {
    {"bitnet-2b4t", {SIZES("bitnet", 30, 2560, 6912, 20, 5, 128, 128256, 5e5), .tied_head = true,
      .gate = WHIT_GATE_RELU2, .sub_norm = true}},
    {"tinyllama-1.1b", {SIZES("llama", 22, 2048, 5632, 32, 4, 64, 32000, 1e4)}},
    {"llama3-8b", {SIZES("llama", 32, 4096, 14336, 32, 8, 128, 128256, 5e5)}},
    {"falcon3-7b", {SIZES("llama", 28, 3072, 23040, 12, 4, 256, 131072, 1000042)}},
    {"qwen3-0.6b", {SIZES("qwen3", 28, 1024, 3072, 16, 8, 128, 151936, 1e6), .tied_head = true, .qk_norm = true}},
    {"qwen35-0.8b", {SIZES("hybrid", 24, 1024, 3584, 8, 2, 256, 248320, 1e7), QWEN35, .delta_heads = 16,
      .tied_head = true}},
    {"qwen35-4b", {SIZES("hybrid", 32, 2560, 9216, 16, 4, 256, 248320, 1e7), QWEN35, .delta_heads = 32,
      .tied_head = true}},
    {"qwen35-0.8b-mtp", {SIZES("hybrid", 24, 1024, 3584, 8, 2, 256, 248320, 1e7), QWEN35, .delta_heads = 16,
      .tied_head = true, .n_draft_layers = 1}},
    {"qwen35-4b-mtp", {SIZES("hybrid", 32, 2560, 9216, 16, 4, 256, 248320, 1e7), QWEN35, .delta_heads = 32,
      .tied_head = true, .n_draft_layers = 1}},
    {"bonsai2-27b", {SIZES("hybrid", 64, 5120, 17408, 24, 4, 256, 248320, 1e7), QWEN35, .delta_heads = 48,
      .hadamard_block = 1024, .hadamard_signs = true}},
    {"lfm2-1.2b", {SIZES("hybrid", 16, 2048, 8192, 32, 8, 64, 65536, 1e6), .tied_head = true, .qk_norm = true,
      .conv_taps = 3}},
    {"gemma4-e2b", {SIZES("gemma4", 35, 1536, 6144, 8, 1, 256, 262144, 1e6), GEMMA4, .n_shared_layers = 20}},
    {"gemma4-e4b", {SIZES("gemma4", 42, 2560, 10240, 8, 2, 256, 262144, 1e6), GEMMA4, .n_shared_layers = 18}},
    {"qwen3-30b-a3b", {SIZES("decoder-experts", 48, 2048, 0, 32, 4, 128, 151936, 1e6), .qk_norm = true,
      .n_experts = 128, .n_experts_used = 8, .n_expert_ff = 768, .router_norm = true}},
    {"lfm2-8b-a1b", {SIZES("hybrid-experts", 24, 2048, 7168, 32, 8, 64, 65536, 1e6), .tied_head = true,
      .qk_norm = true, .conv_taps = 3, .n_experts = 32, .n_experts_used = 4, .n_expert_ff = 1792,
      .router_sigmoid = true, .router_bias = true, .router_norm = true, .router_norm_eps = 1e-6}},
    {"maple-a1b", {SIZES("decoder-experts", 24, 2048, 0, 16, 4, 128, 151936, 1e4), .rope_dim = 64, .qk_norm = true,
      .window = 512, .n_experts = 256, .n_experts_used = 8, .n_expert_ff = 512, .router_norm = true,
      .gate_limit = 7}},
};
/* clang-format on */
#define N_SHAPES (sizeof shapes / sizeof *shapes)

struct shape {
    whit_config config;
    const char *name;
    uint8_t layers, head, embd; /* codecs of the layers, the head and the embeddings */
    bool no_head;
    bool is_cut;       /* the shape has fewer layers than the model */
    bool is_corrected; /* the layers' matrices have corrections */
    /* as in Gemma 4's files for mobile devices: each matrix has its own number of bits, and int8 inputs and outputs
     * with fixed scales */
    bool is_mobile;
};

/* Returns whether the shape is Gemma 4's E2B and not E4B. E2B has a full-attention layer every five layers, E4B every
 * six. In E2B, layers that use the keys of other layers have wider FFNs. */
static bool is_e2b(const whit_config *c)
{
    return c->n_layers == 35;
}

/* Sets the layers of Gemma 4: the last of every five or six layers attends to all positions, with heads of twice the
 * size. */
static void set_gemma_layers(whit_config *c)
{
    const uint32_t period = is_e2b(c) ? 5 : 6;
    c->n_kinds = 4;
    for (uint32_t k = 0; k < c->n_kinds; k++) {
        const bool sees_all = k % 2, is_shared = k >= 2;
        c->kinds[k] = (whit_layer_kind){.rope = !sees_all,
                                        .n_heads = c->n_heads,
                                        .n_kv_heads = c->n_kv_heads,
                                        .head_dim = sees_all ? 2 * c->head_dim : c->head_dim,
                                        .window = sees_all ? 0 : c->window,
                                        .n_ff = is_shared && is_e2b(c) ? 2 * c->n_ff : c->n_ff};
        c->kinds[k].rope_dim = c->kinds[k].head_dim;
    }
    for (uint32_t i = 0; i < c->n_layers; i++)
        c->kind_of_layer[i] =
            (uint8_t)((i % period == period - 1) + 2 * (is_e2b(c) && i + c->n_shared_layers >= c->n_layers));
    if (!is_e2b(c)) c->n_kinds = 2;
    c->n_ropes = 2;
    c->ropes[0] = (whit_rope){.theta = c->rope_theta, .dims = 2 * c->head_dim, .has_factors = true, .magnitude = 1};
    c->ropes[1] = (whit_rope){.theta = 1e4, .dims = c->head_dim, .magnitude = 1};
    c->rope_factors = true;
    whit_config_settle_kinds(c);
}

static bool is_maple(const whit_config *c)
{
    return c->gate_limit > 0;
}

/* Sets the layers of Maple: after three layers with a window and RoPE comes one that attends to all positions and has
 * no RoPE. */
static void set_maple_layers(whit_config *c)
{
    c->n_kinds = 2;
    c->kinds[0] = (whit_layer_kind){.n_heads = c->n_heads,
                                    .n_kv_heads = c->n_kv_heads,
                                    .head_dim = c->head_dim,
                                    .rope_dim = c->rope_dim,
                                    .window = c->window};
    c->kinds[1] = c->kinds[0];
    c->kinds[1].rope_dim = c->kinds[1].window = 0;
    for (uint32_t i = 0; i < c->n_layers; i++) c->kind_of_layer[i] = (i + 1) % 4 == 0;
}

/* Sets which of Bonsai-2's matrices have rotated inputs: all matrices of the layers except those of beta and decay. */
static void set_rotated_matrices(whit_config *c)
{
    static const char *const names[] = {"q", "k", "v", "o", "attn_gate", "mixed", "z", "delta_o", "gate", "up", "down"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) c->hadamard_matrices |= whit_hadamard_bit(names[i]);
}

/* Sets the layers of shapes whose layers are not all alike: Gemma 4's, Maple's, Bonsai-2's (rotated inputs), and those
 * of hybrid models, which have delta rules with attention in every fourth layer, or LFM2's short convolutions. */
static void set_layers(whit_config *c)
{
    static const uint8_t lfm2_attends[] = {2, 5, 8, 10, 12, 14}, experts_attend[] = {2, 6, 10, 14, 18, 21};
    enum { N_DENSE = 2 };
    const uint8_t *attends = c->n_experts ? experts_attend : lfm2_attends;
    if (c->side_width) set_gemma_layers(c);
    if (is_maple(c)) set_maple_layers(c);
    if (c->hadamard_block) set_rotated_matrices(c);
    if (!c->conv_taps) return;
    c->n_kinds = 2;
    c->kinds[0] =
        (whit_layer_kind){.mixer = c->delta_heads ? WHIT_MIXER_DELTA : WHIT_MIXER_SHORT_CONV, .n_ff = c->n_ff};
    c->kinds[1] = (whit_layer_kind){.n_heads = c->n_heads,
                                    .n_kv_heads = c->n_kv_heads,
                                    .head_dim = c->head_dim,
                                    .rope_dim = c->rope_dim,
                                    .n_ff = c->n_ff};
    for (uint32_t i = 0; i < c->n_layers; i++) c->kind_of_layer[i] = c->delta_heads ? (i + 1) % 4 == 0 : 0;
    for (size_t i = 0; !c->delta_heads && i < sizeof lfm2_attends; i++)
        if (attends[i] < c->n_layers) c->kind_of_layer[attends[i]] = 1;
    if (!c->n_experts) return;
    c->kinds[1].n_ff = 0;
    c->kinds[c->n_kinds++] = (whit_layer_kind){.mixer = WHIT_MIXER_SHORT_CONV};
    for (uint32_t i = N_DENSE; i < c->n_layers; i++)
        if (c->kind_of_layer[i] == 0) c->kind_of_layer[i] = 2;
}

/* ---- parsing a shape ------------------------------------------------------------------------ */

static whit_status parse_shape(const char *text, struct shape *shape, whit_error *error)
{
    char fields[4][32] = {{0}};
    const char *at = text;
    bool fits = true;
    for (size_t n = 0; fits; n++) {
        size_t length = strcspn(at, ":");
        fits = n < 4 && length < sizeof fields[0];
        if (fits) memcpy(fields[n], at, length);
        at += length;
        if (!*at) break;
        at++;
    }
    char *cut = strchr(fields[0], '/'); /* the text after '/' is the number of layers */
    if (cut) *cut++ = 0;
    size_t which = 0;
    while (which < N_SHAPES && strcmp(shapes[which].name, fields[0])) which++;
    if (which == N_SHAPES || !fits)
        return whit_fail(
            error, WHIT_ERROR_ARGUMENT,
            "'%s' is not a shape NAME:LAYERS[:HEAD[:EMBD]] with NAME one of bitnet-2b4t, tinyllama-1.1b, "
            "llama3-8b, falcon3-7b, qwen3-0.6b, qwen35-0.8b[-mtp], qwen35-4b[-mtp], lfm2-1.2b, gemma4-e2b, "
            "gemma4-e4b, bonsai2-27b, qwen3-30b-a3b, lfm2-8b-a1b, maple-a1b, or of NAME/N, its first N layers",
            text);
    *shape = (struct shape){.config = shapes[which].config, .name = shapes[which].name};
    whit_config *c = &shape->config;
    if (!c->rope_dim) c->rope_dim = c->head_dim;
    const unsigned long n_wanted = cut ? strtoul(cut, NULL, 10) : c->n_layers;
    if (n_wanted < 1 || n_wanted > c->n_layers || (n_wanted != c->n_layers && c->side_width))
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "'%s': the shape has %u layers, not '%s'", text, c->n_layers, cut);
    c->n_layers = (uint32_t)n_wanted;
    set_layers(c);
    shape->is_cut = c->n_layers != shapes[which].config.n_layers;
    c->n_ctx = 131072;
    c->norm_eps = 1e-5;
    uint8_t usual = c->tied_head ? WHIT_CODEC_I8S : WHIT_CODEC_I4;
    shape->head = shape->embd = usual;
    shape->no_head = !strcmp(fields[2], "none");
    size_t n_layers = strlen(fields[1]);
    shape->is_corrected = n_layers && fields[1][n_layers - 1] == '+';
    if (shape->is_corrected) fields[1][n_layers - 1] = 0;
    shape->is_mobile = c->side_width && !strcmp(fields[1], "mobile");
    if (shape->is_mobile) shape->head = shape->embd = shape->layers = WHIT_CODEC_T2;
    if (!shape->is_mobile && !whit_codec_parse(fields[1], &shape->layers))
        return whit_fail(
            error, WHIT_ERROR_ARGUMENT,
            "%s: LAYERS is not a codec (t2 t5 b1 q2 l2 i4 i8 f16 ...; t2+ t5+ b1+ q2+ l2+ with corrections), nor "
            "\"mobile\" (gemma4 only): '%s'",
            text, fields[1]);
    const whit_tensor_type layers = {.codec = shape->layers, .layout = WHIT_LAYOUT_TILE16};
    if (shape->is_corrected && !whit_may_be_corrected(&layers))
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "%s: only t2, t5, b1, q2 and l2 have corrections", text);
    if (fields[2][0] && !shape->no_head && !whit_codec_parse(fields[2], &shape->head))
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "%s: HEAD is a codec or none, not '%s'", text, fields[2]);
    if (c->tied_head) shape->embd = shape->head;
    if (fields[3][0] && !whit_codec_parse(fields[3], &shape->embd))
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "%s: EMBD is a codec, not '%s'", text, fields[3]);
    if (shape->no_head)
        c->tied_head = true; /* the head then needs no tensor of its own */
    else if (shape->embd != shape->head)
        c->tied_head = false;
    return WHIT_OK;
}

/* ---- tensors -------------------------------------------------------------------------------- */

struct maker {
    const struct shape *shape;
    whit_ndf_writer *writer;
    whit_rng rng;
    uint64_t done, all;         /* bytes drawn so far, and bytes of all tensors */
    whit_progress_fn *progress; /* NULL: not called */
    bool writing;               /* false: the first pass declares the tensors */
    uint32_t next;              /* index of the next tensor, the same in both passes */
    whit_error *error;
};

static bool is_float(uint8_t codec)
{
    return whit_codec_find(codec)->is_float;
}

/* Returns the mean square of a random code of a format, before its scale. For q2 this assumes scales of 1 and 0.5, for
 * l2 levels of 1.5 and 0.5. */
static double code_power(uint8_t codec)
{
    switch (codec) {
    case WHIT_CODEC_T2:
    case WHIT_CODEC_T5: return 2.0 / 3;
    case WHIT_CODEC_B1: return 1;
    case WHIT_CODEC_Q2:
    case WHIT_CODEC_L2: return 1.25;
    case WHIT_CODEC_I4: return 21.5;
    case WHIT_CODEC_I8:
    case WHIT_CODEC_I8S: return 5461.5;
    default: return 1;
    }
}

/* Returns the type of a matrix in the mobile form: 8 bits for matrices of per-layer embeddings, t2 (2 bits) in E2B's
 * wide FFNs, 4 bits elsewhere. The scales of inputs and outputs suit values near 1. */
static whit_tensor_type mobile_type(const whit_config *c, uint32_t layer, const char *name, uint32_t n_rows,
                                    uint32_t n_cols)
{
    const bool is_side = strncmp(name, "side_", 5) == 0,
               is_ffn = !strcmp(name, "gate") || !strcmp(name, "up") || !strcmp(name, "down");
    const bool is_wide = is_ffn && whit_config_kind(c, layer).n_ff == c->n_ff && is_e2b(c);
    return (whit_tensor_type){.codec = (uint8_t)(is_side       ? WHIT_CODEC_I8
                                                     : is_wide ? WHIT_CODEC_T2
                                                               : WHIT_CODEC_I4),
                              .layout = WHIT_LAYOUT_TILE16,
                              .scale_kind = WHIT_SCALE_ROW,
                              .act = WHIT_TENSOR_ACT_FIXED,
                              .n_rows = n_rows,
                              .n_cols = n_cols,
                              .scale = 0.03f,
                              .scale_b = 0.03f};
}

/* Returns the type of the table of per-layer embeddings; in the mobile form each of its groups is one layer's part of a
 * row. */
static whit_tensor_type side_type(const struct shape *shape)
{
    const whit_config *c = &shape->config;
    whit_tensor_type type = whit_requantise_type(WHIT_CODEC_I4, c->n_vocab, c->n_layers * c->side_width);
    if (!shape->is_mobile) return type;
    type.codec = (uint8_t)(is_e2b(c) ? WHIT_CODEC_I4 : WHIT_CODEC_T2);
    type.scale_type = WHIT_SCALE_F32;
    type.group = 256;
    return type;
}

static whit_tensor_type layer_type(const struct shape *shape, uint32_t n_rows, uint32_t n_cols)
{
    uint8_t codec = shape->layers;
    whit_tensor_type type = {.codec = codec, .layout = WHIT_LAYOUT_TILE16, .n_rows = n_rows, .n_cols = n_cols};
    if (is_float(codec)) return type;
    if (codec == WHIT_CODEC_L2) {
        type.scale_kind = WHIT_SCALE_GROUP;
        type.scale_type = WHIT_SCALE_L6;
        type.group = 128;
    } else if (shape->config.sub_norm) {
        type.scale_kind = WHIT_SCALE_TENSOR;
        type.act = WHIT_TENSOR_ACT_TOKEN;
        type.scale = (float)(1 / sqrt(code_power(codec) * n_cols));
        if (codec == WHIT_CODEC_Q2) type.scale_b = 0.5f * type.scale;
    } else if (codec == WHIT_CODEC_I8S) {
        type = whit_requantise_type(codec, n_rows, n_cols);
    } else {
        type.scale_kind = WHIT_SCALE_GROUP;
        type.scale_type = WHIT_SCALE_F16;
        type.group = 128;
    }
    return type;
}

/* Draws a byte of the format t2: four trits of two bits each. */
static uint8_t pick_trits(uint8_t random)
{
    unsigned trits = random % 81, byte = 0;
    for (int j = 0; j < 4; j++, trits /= 3) byte |= trits % 3 << 2 * j;
    return (uint8_t)byte;
}

/* Holds the pattern of a tile of a coded type: its bytes with every code at its minimum, and with every code at its
 * maximum. Lines of 64 bytes in which the two differ contain codes. The other lines contain scales, which all tiles of
 * the model share. */
struct pattern {
    uint8_t *least, *largest;
    uint8_t *low[2], *row_scales;
    uint64_t tile_bytes, low_bytes, row_bytes; /* bytes per tile (16 rows) in the parts for codes, low codes, row
                                                * scales */
    uint8_t trits[256], bytes[256];            /* the byte to write for a random byte; trits: in a line of t2 codes;
                                                * bytes: in a line of other codes */
};

static void free_pattern(struct pattern *p)
{
    free(p->least);
    free(p->largest);
    free(p->low[0]);
    free(p->low[1]);
    free(p->row_scales);
}

static whit_status pack_tile(const whit_tensor_type *tile, int code, uint8_t *codes, uint8_t *low, uint8_t *row_scales,
                             whit_error *error)
{
    whit_geometry g = whit_codec_geometry(tile);
    size_t n = (size_t)WHIT_TILE_ROWS * tile->n_cols, n_fields = (size_t)WHIT_TILE_ROWS * g.n_groups * g.n_fields;
    whit_rows rows = {.elems = malloc(n), .fields = malloc((n_fields + 1) * sizeof(float))};
    uint16_t *levels = malloc((n_fields + 1) * sizeof *levels); /* only l2 has levels */
    rows.fields_u8 = (uint8_t *)levels;
    whit_status status = WHIT_OK;
    if (!rows.elems || !rows.fields || !levels) {
        status = whit_fail_memory(error, "a tile of a matrix", n);
    } else {
        float scale = (float)(1 / sqrt(code_power(tile->codec) * tile->n_cols));
        memset(rows.elems, code, n);
        for (size_t i = 0; i < n_fields; i++) {
            rows.fields[i] = i % g.n_fields == 0 ? scale : 0.5f * scale;
            levels[i] = (uint16_t)whit_level_nearest(1.5f * scale, 0.5f * scale);
        }
        uint8_t *part[WHIT_PART_COUNT] = {
            [WHIT_PART_CODES] = codes, [WHIT_PART_LOW] = low, [WHIT_PART_ROW_SCALES] = row_scales};
        status = whit_codec_pack(tile, 0, WHIT_TILE_ROWS, &rows, part, error);
    }
    free(rows.elems);
    free(rows.fields);
    free(levels);
    return status;
}

static whit_status make_pattern(const whit_tensor_type *type, struct pattern *p, whit_error *error)
{
    const whit_codec_info *codec = whit_codec_find(type->codec);
    whit_tensor_type tile = *type;
    tile.n_rows = WHIT_TILE_ROWS;
    *p = (struct pattern){0};
    whit_codec_part_bytes(&tile, WHIT_PART_CODES, &p->tile_bytes);
    whit_codec_part_bytes(&tile, WHIT_PART_LOW, &p->low_bytes);
    whit_codec_part_bytes(&tile, WHIT_PART_ROW_SCALES, &p->row_bytes);
    p->least = whit_alloc(NULL, p->tile_bytes);
    p->largest = whit_alloc(NULL, p->tile_bytes);
    p->low[0] = whit_alloc(NULL, p->low_bytes + 64);
    p->low[1] = whit_alloc(NULL, p->low_bytes + 64);
    p->row_scales = whit_alloc(NULL, p->row_bytes + 64);
    if (!p->least || !p->largest || !p->low[0] || !p->low[1] || !p->row_scales)
        return whit_fail_memory(error, "a tile of a matrix", p->tile_bytes);
    WHIT_TRY(pack_tile(&tile, codec->code_min, p->least, p->low[0], p->row_scales, error));
    WHIT_TRY(pack_tile(&tile, codec->code_max, p->largest, p->low[1], p->row_scales, error));
    for (int i = 0; i < 256; i++) {
        p->trits[i] = pick_trits((uint8_t)i);
        p->bytes[i] = (uint8_t)(type->codec == WHIT_CODEC_T5 ? i % 243 : i);
    }
    return WHIT_OK;
}

static void random_line(whit_rng *rng, const uint8_t table[256], uint8_t *line)
{
    for (int i = 0; i < WHIT_LINE_BYTES; i += 8) {
        uint64_t word = whit_rng_next(rng);
        for (int j = 0; j < 8; j++, word >>= 8) line[i + j] = table[word & 255];
    }
}

static void random_tile(struct maker *m, const whit_tensor_type *type, const struct pattern *p, uint8_t *out)
{
    memcpy(out, p->least, p->tile_bytes);
    for (uint64_t at = 0; at < p->tile_bytes; at += WHIT_LINE_BYTES) {
        if (!memcmp(p->least + at, p->largest + at, WHIT_LINE_BYTES)) continue;
        bool trits = type->codec == WHIT_CODEC_T2 || (type->codec == WHIT_CODEC_T5 && p->largest[at] != 242);
        random_line(&m->rng, trits ? p->trits : p->bytes, out + at);
    }
}

/* Draws floats with random sign and magnitude; their scale is chosen so that activations keep their magnitude. */
static void random_floats(struct maker *m, const whit_tensor_type *type, uint8_t *out, uint64_t size_bytes)
{
    float size = (float)(1 / sqrt(type->n_cols));
    size_t width = whit_codec_find(type->codec)->elem_bytes;
    for (uint64_t at = 0; at + width <= size_bytes; at += width) {
        float value = (float)(whit_rng_uniform(&m->rng) * 2 - 1) * 1.7f * size;
        uint16_t half = type->codec == WHIT_CODEC_F16 ? whit_f16_from_f32(value) : whit_bf16_from_f32(value);
        memcpy(out + at, width == 4 ? (const void *)&value : (const void *)&half, width);
    }
}

static whit_status add_part(struct maker *m, uint32_t tensor, whit_part part, const void *data, uint64_t size_bytes)
{
    m->done += size_bytes;
    if (m->progress && !m->progress(NULL, "making a random model", (double)m->done / (double)m->all))
        return whit_fail(m->error, WHIT_ERROR_CANCELLED, "interrupted");
    return whit_ndf_writer_add(m->writer, tensor, part, data, size_bytes, m->error);
}

static whit_status write_floats(struct maker *m, uint32_t tensor, const whit_tensor_type *type)
{
    uint64_t size_bytes;
    whit_codec_part_bytes(type, WHIT_PART_CODES, &size_bytes);
    enum { PIECE = 1 << 20 };
    uint8_t *piece = malloc(PIECE);
    if (!piece) return whit_fail_memory(m->error, "a tensor", PIECE);
    whit_status status = WHIT_OK;
    for (uint64_t at = 0; status == WHIT_OK && at < size_bytes; at += PIECE) {
        uint64_t n = size_bytes - at < PIECE ? size_bytes - at : PIECE;
        random_floats(m, type, piece, n);
        status = add_part(m, tensor, WHIT_PART_CODES, piece, n);
    }
    free(piece);
    return status;
}

static whit_status write_codes(struct maker *m, uint32_t tensor, const whit_tensor_type *type)
{
    struct pattern p;
    whit_status status = make_pattern(type, &p, m->error);
    uint32_t n_tiles = whit_codec_geometry(type).n_tiles;
    uint8_t *tile = status == WHIT_OK ? malloc(p.tile_bytes + p.low_bytes) : NULL;
    if (status == WHIT_OK && !tile) status = whit_fail_memory(m->error, "a tile of a matrix", p.tile_bytes);
    for (uint32_t i = 0; status == WHIT_OK && i < n_tiles; i++) {
        random_tile(m, type, &p, tile);
        status = add_part(m, tensor, WHIT_PART_CODES, tile, p.tile_bytes);
    }
    for (uint32_t i = 0; status == WHIT_OK && p.row_bytes && i < n_tiles; i++)
        status = add_part(m, tensor, WHIT_PART_ROW_SCALES, p.row_scales, p.row_bytes);
    for (uint32_t i = 0; status == WHIT_OK && p.low_bytes && i < n_tiles; i++) {
        for (uint64_t at = 0; at < p.low_bytes; at += WHIT_LINE_BYTES) random_line(&m->rng, p.bytes, tile + at);
        status = add_part(m, tensor, WHIT_PART_LOW, tile, p.low_bytes);
    }
    free(tile);
    free_pattern(&p);
    return status;
}

/* Declares one tensor in the first pass, and writes it in the second. */
static whit_status tensor(struct maker *m, const char *name, whit_tensor_type type, const whit_buf *corrections)
{
    if (m->writing) {
        /* The tensor's number is stored in place of a digest, because this model is never converted again. */
        uint8_t digest[WHIT_HASH_BYTES] = {0};
        memcpy(digest, &m->next, sizeof m->next);
        whit_ndf_writer_set_digest(m->writer, m->next, digest);
        if (type.layout == WHIT_LAYOUT_PLAIN) { /* the weights of norms are 1, the A of decays (delta_a) is -1 */
            float ones[1024];
            for (int i = 0; i < 1024; i++) ones[i] = strstr(name, ".delta_a") ? -1 : 1;
            for (uint32_t at = 0; at < type.n_cols; at += 1024)
                WHIT_TRY(add_part(m, m->next, WHIT_PART_CODES, ones,
                                  (type.n_cols - at < 1024 ? type.n_cols - at : 1024) * sizeof *ones));
            m->next++;
            return WHIT_OK;
        }
        whit_status status = is_float(type.codec) ? write_floats(m, m->next, &type) : write_codes(m, m->next, &type);
        for (int p = 0; status == WHIT_OK && corrections && p < WHIT_PART_COUNT; p++)
            if (corrections[p].size_bytes)
                status = add_part(m, m->next, (whit_part)p, corrections[p].data, corrections[p].size_bytes);
        m->next++;
        return status;
    }
    whit_error inner;
    if (whit_tensor_type_check(&type, &inner) != WHIT_OK)
        return whit_fail(m->error, WHIT_ERROR_ARGUMENT, "%s: tensor %s: %s", m->shape->name, name, inner.message);
    uint64_t bytes[WHIT_PART_COUNT];
    for (int p = 0; p < WHIT_PART_COUNT; p++) {
        whit_codec_part_bytes(&type, (whit_part)p, &bytes[p]);
        if (corrections && corrections[p].size_bytes) bytes[p] = corrections[p].size_bytes;
        m->all += bytes[p];
    }
    uint32_t number;
    return whit_ndf_writer_declare(m->writer, name, &type, bytes, &number, m->error);
}

static whit_status vector(struct maker *m, int layer, const char *name, uint32_t n)
{
    char full[64];
    if (layer >= 0)
        snprintf(full, sizeof full, "layers.%d.%s", layer, name);
    else
        snprintf(full, sizeof full, "%s", name);
    return tensor(m, full,
                  (whit_tensor_type){.codec = WHIT_CODEC_F32, .layout = WHIT_LAYOUT_PLAIN, .n_rows = 1, .n_cols = n},
                  NULL);
}

static whit_status matrix(struct maker *m, uint32_t layer, const char *name, uint32_t n_rows, uint32_t n_cols)
{
    char full[64];
    snprintf(full, sizeof full, "layers.%u.%s", layer, name);
    whit_tensor_type type = m->shape->is_mobile ? mobile_type(&m->shape->config, layer, name, n_rows, n_cols)
                                                : layer_type(m->shape, n_rows, n_cols);
    whit_buf corrections[WHIT_PART_COUNT] = {0};
    whit_status status = WHIT_OK;
    if (m->shape->is_corrected) status = bench_corrections(&type, SEED + layer, corrections, m->error);
    if (status == WHIT_OK) status = tensor(m, full, type, corrections);
    for (int p = 0; p < WHIT_PART_COUNT; p++) whit_buf_free(&corrections[p]);
    return status;
}

static whit_status short_conv_tensors(struct maker *m, uint32_t i)
{
    const uint32_t n = m->shape->config.n_embd;
    WHIT_TRY(matrix(m, i, "conv_b", n, n));
    WHIT_TRY(matrix(m, i, "conv_c", n, n));
    WHIT_TRY(matrix(m, i, "conv_x", n, n));
    WHIT_TRY(vector(m, (int)i, "conv", m->shape->config.conv_taps * n));
    return matrix(m, i, "conv_o", n, n);
}

static whit_status delta_tensors(struct maker *m, uint32_t i)
{
    const whit_config *c = &m->shape->config;
    const uint32_t values = c->delta_heads * c->delta_value_dim,
                   mixed = 2 * c->delta_key_heads * c->delta_key_dim + values;
    WHIT_TRY(matrix(m, i, "mixed", mixed, c->n_embd));
    WHIT_TRY(matrix(m, i, "z", values, c->n_embd));
    WHIT_TRY(matrix(m, i, "beta", c->delta_heads, c->n_embd));
    WHIT_TRY(matrix(m, i, "decay", c->delta_heads, c->n_embd));
    WHIT_TRY(vector(m, (int)i, "conv", c->conv_taps * mixed));
    WHIT_TRY(vector(m, (int)i, "delta_a", c->delta_heads));
    WHIT_TRY(vector(m, (int)i, "delta_dt", c->delta_heads));
    WHIT_TRY(vector(m, (int)i, "delta_norm", c->delta_value_dim));
    return matrix(m, i, "delta_o", c->n_embd, values);
}

static whit_status attention_tensors(struct maker *m, uint32_t i)
{
    const whit_config *c = &m->shape->config;
    const uint32_t q = c->n_heads * c->head_dim, kv = c->n_kv_heads * c->head_dim;
    WHIT_TRY(matrix(m, i, "q", q, c->n_embd));
    WHIT_TRY(matrix(m, i, "k", kv, c->n_embd));
    WHIT_TRY(matrix(m, i, "v", kv, c->n_embd));
    if (c->attn_gate) WHIT_TRY(matrix(m, i, "attn_gate", q, c->n_embd));
    if (c->qk_norm) WHIT_TRY(vector(m, (int)i, "q_norm", c->head_dim));
    if (c->qk_norm) WHIT_TRY(vector(m, (int)i, "k_norm", c->head_dim));
    if (c->sub_norm) WHIT_TRY(vector(m, (int)i, "attn_sub_norm", q));
    return matrix(m, i, "o", c->n_embd, q);
}

/* Declares or writes the attention tensors of a layer of Gemma 4 and the norm after them. The last n_shared_layers
 * layers have no k and v, because they use those of other layers. */
static whit_status gemma_tensors(struct maker *m, uint32_t i)
{
    const whit_config *c = &m->shape->config;
    const whit_layer_kind kind = whit_config_kind(c, i);
    const uint32_t q = kind.n_heads * kind.head_dim, kv = kind.n_kv_heads * kind.head_dim;
    WHIT_TRY(matrix(m, i, "q", q, c->n_embd));
    WHIT_TRY(vector(m, (int)i, "q_norm", kind.head_dim));
    if (i + c->n_shared_layers < c->n_layers) {
        WHIT_TRY(matrix(m, i, "k", kv, c->n_embd));
        WHIT_TRY(matrix(m, i, "v", kv, c->n_embd));
        WHIT_TRY(vector(m, (int)i, "k_norm", kind.head_dim));
    }
    WHIT_TRY(matrix(m, i, "o", c->n_embd, q));
    return vector(m, (int)i, "attn_post_norm", c->n_embd);
}

/* Declares or writes the tensors of a layer of Gemma 4 after its FFN. */
static whit_status gemma_layer_end(struct maker *m, uint32_t i)
{
    const whit_config *c = &m->shape->config;
    WHIT_TRY(vector(m, (int)i, "ffn_post_norm", c->n_embd));
    WHIT_TRY(matrix(m, i, "side_gate", c->side_width, c->n_embd));
    WHIT_TRY(matrix(m, i, "side_proj", c->n_embd, c->side_width));
    WHIT_TRY(vector(m, (int)i, "side_norm", c->n_embd));
    return vector(m, (int)i, "layer_scale", 1);
}

/* Declares or writes the tensors that precede the layers of Gemma 4: the projection and the table that give the
 * per-layer embeddings, and the RoPE factors. */
static whit_status gemma_begin(struct maker *m)
{
    const whit_config *c = &m->shape->config;
    whit_tensor_type context = {.codec = WHIT_CODEC_BF16,
                                .layout = WHIT_LAYOUT_TILE16,
                                .n_rows = c->n_layers * c->side_width,
                                .n_cols = c->n_embd};
    WHIT_TRY(tensor(m, "side_context_proj", context, NULL));
    WHIT_TRY(vector(m, -1, "side_context_norm", c->side_width));
    WHIT_TRY(tensor(m, "side_embed", side_type(m->shape), NULL));
    return vector(m, -1, "rope_factors", c->ropes[0].dims / 2);
}

static whit_status ffn_tensors(struct maker *m, uint32_t i)
{
    const whit_config *c = &m->shape->config;
    const uint32_t n_ff = whit_config_kind(c, i).n_ff;
    WHIT_TRY(matrix(m, i, "gate", n_ff, c->n_embd));
    WHIT_TRY(matrix(m, i, "up", n_ff, c->n_embd));
    if (c->sub_norm) WHIT_TRY(vector(m, (int)i, "ffn_sub_norm", c->n_ff));
    return matrix(m, i, "down", c->n_embd, n_ff);
}

static whit_status expert_tensors(struct maker *m, uint32_t i)
{
    const whit_config *c = &m->shape->config;
    char router[64];
    snprintf(router, sizeof router, "layers.%u.router", i);
    WHIT_TRY(
        tensor(m, router,
               (whit_tensor_type){
                   .codec = WHIT_CODEC_F32, .layout = WHIT_LAYOUT_TILE16, .n_rows = c->n_experts, .n_cols = c->n_embd},
               NULL));
    if (c->router_bias) WHIT_TRY(vector(m, (int)i, "router_choice", c->n_experts));
    WHIT_TRY(matrix(m, i, "expert_gate", c->n_experts * c->n_expert_ff, c->n_embd));
    WHIT_TRY(matrix(m, i, "expert_up", c->n_experts * c->n_expert_ff, c->n_embd));
    return matrix(m, i, "expert_down", c->n_experts * c->n_embd, c->n_expert_ff);
}

/* Declares or writes the tensors of a draft layer, which predicts one more token, that an ordinary layer does not
 * have. */
static whit_status draft_tensors(struct maker *m, uint32_t i)
{
    static const char *const norms[] = {"draft_embed_norm", "draft_hidden_norm", "draft_norm"};
    const uint32_t n = m->shape->config.n_embd;
    for (size_t k = 0; k < sizeof norms / sizeof *norms; k++) WHIT_TRY(vector(m, (int)i, norms[k], n));
    return matrix(m, i, "draft_in", n, 2 * n);
}

/* Declares or writes the sign vectors of rotated inputs, one for each width. All signs are 1, since random signs would
 * cost the same time. */
static whit_status sign_tensors(struct maker *m)
{
    const whit_config *c = &m->shape->config;
    const uint32_t widths[] = {c->n_embd, c->n_heads * c->head_dim, c->n_ff};
    char name[32];
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        snprintf(name, sizeof name, "hadamard.%u", widths[i]);
        WHIT_TRY(vector(m, -1, name, widths[i]));
    }
    return WHIT_OK;
}

/* Declares or writes all tensors, in the order in which a pass reads them. */
static whit_status tensors(struct maker *m)
{
    static whit_status (*const mixers[])(struct maker *, uint32_t) = {attention_tensors, short_conv_tensors,
                                                                      delta_tensors};
    const whit_config *c = &m->shape->config;
    const bool is_gemma = c->side_width != 0;
    WHIT_TRY(tensor(m, "embed", whit_requantise_type(m->shape->embd, c->n_vocab, c->n_embd), NULL));
    if (is_gemma) WHIT_TRY(gemma_begin(m));
    for (uint32_t i = 0; i < c->n_layers + c->n_draft_layers; i++) {
        const whit_layer_kind kind = whit_config_kind(c, i);
        WHIT_TRY(vector(m, (int)i, "attn_norm", c->n_embd));
        WHIT_TRY((is_gemma ? gemma_tensors : mixers[kind.mixer])(m, i));
        WHIT_TRY(vector(m, (int)i, "ffn_norm", c->n_embd));
        WHIT_TRY((kind.n_ff ? ffn_tensors : expert_tensors)(m, i));
        if (is_gemma) WHIT_TRY(gemma_layer_end(m, i));
        if (i >= c->n_layers) WHIT_TRY(draft_tensors(m, i));
    }
    WHIT_TRY(vector(m, -1, "final_norm", c->n_embd));
    if (c->hadamard_signs) WHIT_TRY(sign_tensors(m));
    if (!c->tied_head) WHIT_TRY(tensor(m, "head", whit_requantise_type(m->shape->head, c->n_vocab, c->n_embd), NULL));
    return WHIT_OK;
}

static whit_status write_model(const struct shape *shape, whit_ndf_writer *writer, whit_progress_fn *progress,
                               whit_error *error)
{
    struct maker m = {.shape = shape, .writer = writer, .rng = {SEED}, .progress = progress, .error = error};
    whit_config_save(&shape->config, whit_ndf_writer_config(writer));
    whit_table_set_string(whit_ndf_writer_meta(writer), "general.name", "random weights of a real shape");
    WHIT_TRY(tensors(&m));
    WHIT_TRY(whit_ndf_writer_begin(writer, error));
    m.writing = true;
    WHIT_TRY(tensors(&m));
    return whit_ndf_writer_commit(writer, NULL, error);
}

/* ---- the cache of models -------------------------------------------------------------------- */

static const char *codec_name(uint8_t codec)
{
    return whit_codec_find(codec)->name;
}

/* Makes the model's path in the cache, and its folder if it does not exist; returns false if the cache cannot be
 * used. */
static bool cache_path(const struct shape *shape, char path[BENCH_PATH_BYTES])
{
    char folder[WHIT_CACHE_PATH_BYTES];
    if (whit_cache_folder(NULL, folder, NULL) != WHIT_OK) return false;
    int n = snprintf(path, BENCH_PATH_BYTES, "%s/bench", folder);
    if (n >= BENCH_PATH_BYTES || (mkdir(path, 0700) != 0 && access(path, W_OK) != 0)) return false;
    char layers[16] = "";
    if (shape->is_cut) snprintf(layers, sizeof layers, "-%u", shape->config.n_layers);
    const char *layers_codec = shape->is_mobile ? "mobile" : codec_name(shape->layers);
    const char *head_codec = shape->no_head ? "none" : codec_name(shape->head);
    n = snprintf(path, BENCH_PATH_BYTES, "%s/bench/%s%s-%s%s-%s-%s-v" BENCH_MODEL_VERSION ".ndf", folder, shape->name,
                 layers, layers_codec, shape->is_corrected ? "+" : "", head_codec, codec_name(shape->embd));
    return n < BENCH_PATH_BYTES;
}

static whit_status make_model(const struct shape *shape, const char *path, whit_progress_fn *progress,
                              whit_ndf_writer **writer, whit_error *error)
{
    whit_status status = whit_ndf_writer_open(path, NULL, NULL, writer, error);
    if (status == WHIT_OK) status = write_model(shape, *writer, progress, error);
    if (status == WHIT_OK) return WHIT_OK;
    whit_ndf_writer_close(*writer);
    *writer = NULL;
    return status;
}

whit_status bench_model_shape(const char *text, whit_progress_fn *progress, bench_model *model, whit_error *error)
{
    struct shape shape;
    WHIT_TRY(parse_shape(text, &shape, error));
    *model = (bench_model){.no_head = shape.no_head};
    snprintf(model->name, sizeof model->name, "%s", text);
    whit_ndf_writer *writer;
    if (cache_path(&shape, model->path)) {
        whit_model *found; /* opened as a check: an older version's model may lack a tensor or key and is then made
                            * again */
        whit_error ignored;
        if (access(model->path, R_OK) == 0 && whit_model_open(model->path, NULL, &found, &ignored) == WHIT_OK) {
            whit_model_close(found);
            return WHIT_OK;
        }
        whit_status status = make_model(&shape, model->path, progress, &writer, error);
        whit_ndf_writer_close(writer);
        /* WHIT_ERROR_IO means that the cache's disk is full; the model is then made in memory. */
        if (status != WHIT_ERROR_IO) return status;
    }
    WHIT_TRY(make_model(&shape, NULL, progress, &model->in_memory, error));
    snprintf(model->path, sizeof model->path, "/proc/%d/fd/%d", (int)getpid(), whit_ndf_writer_fd(model->in_memory));
    return WHIT_OK;
}

void bench_model_free(bench_model *model)
{
    whit_ndf_writer_close(model->in_memory);
    model->in_memory = NULL;
}
