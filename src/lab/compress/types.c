/* SPDX-License-Identifier: MIT */
#include "compress/types.h"

#include "compress/levels.h"
#include "model/convert.h"
#include "quant/requantise.h"
#include "train/trainee.h"

#include <string.h>
#include <strings.h>

#define GROUP          128
#define MOST_OUTLIERS  0.003 /* largest number of outliers, as a share of a matrix's weights */
#define LEAST_OUTLIERS 0.0002
#define MOST_PLANE     0.125 /* largest number of columns in the sign plane, as a share of a matrix's columns */
#define RANK           16
#define PAIR_SIDE_MIN  1024  /* least number of rows, and of columns, for a low-rank pair */
#define OUTLIER_COLS   65536 /* number of columns that an outlier's index can address */

/* Types of GGUF files that matrices can be rounded to, with the type of whit that has the same values. */
static const struct form {
    const char *name;
    uint8_t codec, scale_type;
    uint16_t group;
} forms[] = {
    {"q8_0", WHIT_CODEC_I8, WHIT_SCALE_F16, 32},    {"q4_0", WHIT_CODEC_I4, WHIT_SCALE_F16, 32},
    {"iq4_nl", WHIT_CODEC_N4, WHIT_SCALE_F16, 32},  {"iq4_xs", WHIT_CODEC_N4, WHIT_SCALE_K8, 32},
    {"q3_k", WHIT_CODEC_I3, WHIT_SCALE_K8, 16},     {"q2_k", WHIT_CODEC_U2, WHIT_SCALE_K4, 16},
    {"q4_k", WHIT_CODEC_U4, WHIT_SCALE_K16, 32},    {"q5_k", WHIT_CODEC_U5, WHIT_SCALE_K16, 32},
    {"q6_k", WHIT_CODEC_I6, WHIT_SCALE_K8, 16},     {"iq2_s", WHIT_CODEC_X10, WHIT_SCALE_ODD4, 16},
    {"iq2_xs", WHIT_CODEC_X9, WHIT_SCALE_ODD4, 16}, {"iq2_xxs", WHIT_CODEC_X8, WHIT_SCALE_ODD4, 32},
    {"q2_0", WHIT_CODEC_T2, WHIT_SCALE_F16, 64},    {"tq2_0", WHIT_CODEC_T5, WHIT_SCALE_F16, 256},
    {"tq1_0", WHIT_CODEC_T5, WHIT_SCALE_F16, 256},  {"q1_0", WHIT_CODEC_B1, WHIT_SCALE_F16, 128},
};

static const struct form *find_form(const char *name)
{
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (!strcasecmp(forms[i].name, name)) return &forms[i];
    return NULL;
}

bool whit_compress_knows_form(const char *name)
{
    return find_form(name) != NULL;
}

/* Sets the type to that of a form, or to q4_0 if the rows do not divide into the form's blocks. Returns false if they
 * do not divide into blocks of 32 either. */
static bool form_type(const struct form *form, const whit_source_tensor *tensor, whit_tensor_type *type)
{
    uint32_t n_cols = tensor->type.n_cols;
    uint32_t block = whit_scale_in_superblocks(form->scale_type) ? WHIT_SUPER_COLS : form->group;
    if (n_cols % block) form = find_form("q4_0");
    if (n_cols % form->group) return false;
    type->codec = form->codec;
    type->scale_type = form->scale_type;
    type->group = form->group;
    type->has_offset = whit_scale_has_minima(form->scale_type);
    return true;
}

static const char *last_word(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot ? dot + 1 : name;
}

bool whit_compress_is_layer_matrix(const whit_source_tensor *tensor)
{
    return tensor->type.layout == WHIT_LAYOUT_TILE16 && strncmp(tensor->name, "layers.", 7) == 0 &&
        !whit_trainee_keeps(tensor->name);
}

static const char *codec_of(const whit_compress_options *o, const char *name)
{
    const char *codec = o->codec, *last = last_word(name);
    for (size_t i = 0; i < o->n_mixed; i++) {
        size_t n = strcspn(o->mixed[i], "=");
        if (n == strlen(last) && strncmp(o->mixed[i], last, n) == 0 && o->mixed[i][n]) codec = o->mixed[i] + n + 1;
    }
    return codec;
}

whit_status whit_compress_type_of(const whit_compress_types *t, const whit_source_tensor *tensor,
                                  whit_tensor_type *type, whit_error *error)
{
    if (t->choices && t->choices[tensor - t->source->tensors].name) {
        *type = t->choices[tensor - t->source->tensors].type;
        return WHIT_OK;
    }
    const char *codec = codec_of(t->options, tensor->name);
    uint32_t n_cols = tensor->type.n_cols, group = t->options->group ? t->options->group : GROUP;
    *type = (whit_tensor_type){.layout = WHIT_LAYOUT_TILE16, .n_rows = tensor->type.n_rows, .n_cols = n_cols};
    const whit_source_tensor *like = t->options->like ? whit_source_find(t->options->like, tensor->name) : NULL;
    if (like && like->type.n_rows == tensor->type.n_rows && like->type.n_cols == n_cols &&
        whit_levels_know(&like->type) && !like->is_recoded) {
        *type = like->type;
        type->layout = WHIT_LAYOUT_TILE16;
        return WHIT_OK;
    }
    if (!strcmp(codec, "f16")) {
        type->codec = WHIT_CODEC_F16;
        return WHIT_OK;
    }
    type->act = tensor->type.act;
    type->scale_kind = WHIT_SCALE_GROUP;
    type->scale_type = t->options->u8_scales ? WHIT_SCALE_U8 : WHIT_SCALE_F16;
    type->group = (uint16_t)group;
    const struct form *form = find_form(codec);
    if (form) {
        type->act = WHIT_TENSOR_ACT_AUTO; /* other programs support W1.58A8 only in BitNet's architecture */
        if (!form_type(form, tensor, type))
            return whit_fail(
                error, WHIT_ERROR_UNSUPPORTED,
                "tensor '%s': rows of %u columns do not divide into blocks of %s or Q4_0: choose another type",
                tensor->name, n_cols, codec);
    } else if (!strcmp(codec, "t")) {
        type->codec = n_cols >= 128 && group >= 128 ? WHIT_CODEC_T5 : WHIT_CODEC_T2;
    } else if (!strcmp(codec, "q2") && !t->options->u8_scales) {
        type->codec = WHIT_CODEC_L2;
        type->scale_type = WHIT_SCALE_L6;
    } else if (!strcmp(codec, "q2") || !strcmp(codec, "q2-planes")) {
        type->codec = WHIT_CODEC_Q2;
    } else if (!strcmp(codec, "b1")) {
        type->codec = WHIT_CODEC_B1;
    } else if (!strcmp(codec, "i8")) {
        *type = whit_requantise_type(WHIT_CODEC_I8, tensor->type.n_rows, n_cols);
        type->act = tensor->type.act;
    } else {
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "codec '%s' is unknown: choose b1, t, q2, q2-planes, i8, f16 or a GGUF type that whit writes",
                         codec);
    }
    whit_error inner;
    if (whit_tensor_type_check(type, &inner) != WHIT_OK)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "tensor '%s': %s", tensor->name, inner.message);
    return WHIT_OK;
}

bool whit_compress_is_solved(const whit_tensor_type *type)
{
    return !whit_codec_find(type->codec)->is_float && type->codec != WHIT_CODEC_I8;
}

uint32_t whit_compress_walk_group(const whit_tensor_type *type)
{
    return whit_scale_in_superblocks(type->scale_type) ? WHIT_SUPER_COLS : type->group;
}

whit_status whit_compress_types_check(const whit_compress_types *t, whit_error *error)
{
    const whit_compress_options *o = t->options;
    bool any = false;
    for (uint32_t i = 0; i < t->source->n_tensors; i++) {
        const whit_source_tensor *tensor = &t->source->tensors[i];
        whit_tensor_type type;
        bool is_compressed = tensor->type.codec == WHIT_CODEC_Q2 || tensor->type.codec == WHIT_CODEC_L2 ||
            tensor->type.scale_type == WHIT_SCALE_U8;
        if (is_compressed && !find_form(o->codec)) /* a compressed matrix would be rounded a second time */
            return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                             "%s: tensor '%s' is compressed already; start from the original", t->source->path,
                             tensor->name);
        if (!whit_compress_is_layer_matrix(tensor)) continue;
        any = true;
        WHIT_TRY(whit_compress_type_of(t, tensor, &type, error));
    }
    if (!any) return whit_fail(error, WHIT_ERROR_UNSUPPORTED, "%s: has no layers to compress", t->source->path);
    for (size_t k = 0; k < o->n_mixed; k++) {
        size_t n = strcspn(o->mixed[k], "=");
        bool found = false;
        for (uint32_t i = 0; i < t->source->n_tensors && !found; i++) {
            const char *last = last_word(t->source->tensors[i].name);
            found = whit_compress_is_layer_matrix(&t->source->tensors[i]) && n == strlen(last) &&
                strncmp(o->mixed[k], last, n) == 0;
        }
        if (!found || !o->mixed[k][n])
            return whit_fail(error, WHIT_ERROR_ARGUMENT, "'%s' is not a matrix of the layers and a codec, as in down=t",
                             o->mixed[k]);
    }
    return WHIT_OK;
}

/* Returns the number of bits per weight that the layers may have with this codec, including corrections. */
static double budget_of(const char *codec)
{
    if (!strcmp(codec, "b1")) return 1.40;
    if (!strcmp(codec, "t")) return 1.80;
    return 2.30;
}

/* Returns the number of columns in the second sign plane of a b1 matrix, a multiple of 32; 0 for other codecs. */
static uint32_t plane_columns(const whit_compress_types *t, const whit_tensor_type *type)
{
    return type->codec == WHIT_CODEC_B1 ? (uint32_t)(t->plane_share * type->n_cols) / 32 * 32 : 0;
}

static uint32_t rank_of(const whit_compress_types *t, const whit_tensor_type *type)
{
    bool affords = type->n_rows >= PAIR_SIDE_MIN && type->n_cols >= PAIR_SIDE_MIN;
    return affords || t->options->rank ? t->rank : 0;
}

static double plane_bits(const whit_tensor_type *type, uint32_t n_columns)
{
    uint64_t bytes = 0;
    whit_tensor_type plane = whit_plane_type(type, n_columns);
    if (!plane.n_cols) return 0;
    (void)whit_codec_total_bytes(&plane, &bytes);
    return 8.0 * (double)(bytes + 64 + whit_round_up(2 * (uint64_t)plane.n_cols, 64));
}

static double pair_bits(const whit_tensor_type *type, uint32_t rank)
{
    uint64_t a = 0, b = 0;
    whit_tensor_type types[] = {whit_factor_type(rank, type->n_cols), whit_factor_type(type->n_rows, rank)};
    if (!rank) return 0;
    (void)whit_codec_total_bytes(&types[0], &a);
    (void)whit_codec_total_bytes(&types[1], &b);
    return 8.0 * (double)(a + b + 64);
}

/* Returns the fixed number of bits of a matrix's outliers, which does not depend on how many there are: the heads and
 * the padding of the tiles. */
static double outlier_head_bits(const whit_tensor_type *type)
{
    uint32_t n_tiles = whit_codec_geometry(type).n_tiles;
    uint32_t odd = whit_outlier_column_bytes(type->n_cols) % 2 ? 0 : 1;
    return 8.0 * (double)(whit_outliers_head_bytes(n_tiles) + (2ull * WHIT_OUTLIERS_HEAD_UNITS + odd) * n_tiles);
}

static double outlier_bits(const whit_tensor_type *type)
{
    return 8.0 * (whit_outlier_column_bytes(type->n_cols) + 1);
}

double whit_compress_matrix_bits(const whit_tensor_type *type, const whit_correction_sizes *sizes)
{
    uint64_t bytes = 0;
    (void)whit_codec_total_bytes(type, &bytes);
    double bits = 8.0 * (double)bytes + plane_bits(type, sizes->n_columns) + pair_bits(type, sizes->rank);
    if (sizes->n_outliers) bits += outlier_head_bits(type) + outlier_bits(type) * (double)sizes->n_outliers;
    return bits;
}

/* Returns whether a tensor contains the matrices of a layer's experts. They get no corrections. */
static bool has_experts(const whit_source_tensor *tensor)
{
    return strncmp(last_word(tensor->name), "expert_", 7) == 0;
}

/* Returns the number of bits of the layers with sign planes and low-rank pairs but without outliers. *elems: number of
 * weights. *heads: fixed bits of outliers. *each: bits of the outliers if every weight were an outlier. */
static double count_bits(const whit_compress_types *t, double *elems, double *each, double *heads)
{
    double bits = 0;
    *elems = *each = *heads = 0;
    for (uint32_t i = 0; i < t->source->n_tensors; i++) {
        const whit_source_tensor *tensor = &t->source->tensors[i];
        whit_tensor_type type;
        if (!whit_compress_is_layer_matrix(tensor) || whit_compress_type_of(t, tensor, &type, NULL) != WHIT_OK)
            continue;
        double n = (double)type.n_rows * type.n_cols;
        const bool is_corrected = whit_compress_is_solved(&type) && !has_experts(tensor);
        const whit_correction_sizes sizes = {.n_columns = is_corrected ? plane_columns(t, &type) : 0,
                                             .rank = is_corrected ? rank_of(t, &type) : 0};
        *elems += n;
        bits += whit_compress_matrix_bits(&type, &sizes);
        if (!is_corrected || type.n_cols > OUTLIER_COLS) continue;
        *each += n * outlier_bits(&type);
        *heads += outlier_head_bits(&type);
    }
    return bits;
}

void whit_compress_find_corrections(whit_compress_types *t)
{
    const whit_compress_options *o = t->options;
    double elems, each, heads, budget = budget_of(o->codec);
    for (int k = 8; k > 0 && (t->stages & WHIT_STAGE_PLANE) && !t->plane_share; k--) {
        t->plane_share = MOST_PLANE * k / 8;
        if (count_bits(t, &elems, &each, &heads) > budget * elems) t->plane_share = 0;
    }
    if (o->plane_percent > 0 && (t->stages & WHIT_STAGE_PLANE)) t->plane_share = (double)o->plane_percent / 100;
    if (t->stages & WHIT_STAGE_LOW_RANK) {
        t->rank = o->rank ? o->rank : RANK;
        if (!o->rank && count_bits(t, &elems, &each, &heads) > budget * elems) t->rank = 0;
    }
    if (!(t->stages & WHIT_STAGE_OUTLIERS)) return;
    t->outlier_share = (double)o->outlier_percent / 100;
    if (t->outlier_share > 0) return;
    double bits = count_bits(t, &elems, &each, &heads), share = each > 0 ? (budget * elems - bits - heads) / each : 0;
    if (share >= LEAST_OUTLIERS) t->outlier_share = share < MOST_OUTLIERS ? share : MOST_OUTLIERS;
}

whit_correction_sizes whit_compress_correction_sizes(const whit_compress_types *t, const whit_source_tensor *tensor,
                                                     const whit_tensor_type *type)
{
    const whit_budget_choice *choice = t->choices ? &t->choices[tensor - t->source->tensors] : NULL;
    if (choice && choice->name) return choice->sizes;
    double n = (double)type->n_rows * type->n_cols;
    return (whit_correction_sizes){.n_columns = plane_columns(t, type),
                                   .n_outliers = type->n_cols > OUTLIER_COLS ? 0 : (size_t)(t->outlier_share * n),
                                   .rank = rank_of(t, type)};
}
