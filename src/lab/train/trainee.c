/* SPDX-License-Identifier: MIT */
#include "train/trainee.h"

#include "kernels/codec.h"
#include "model/families.h"
#include "quant/quantise.h"

#include <stdio.h>

/* Finds the type of a matrix from a codec's name. "t" is the codec t5, or t2 if rows are shorter than a block of 128
 * columns; "q2" is l2. t and q2-planes have an f16 scale per 128 columns, q2 an l6 scale (WHIT_SCALE_L6); b1 has an f16
 * scale per 64 columns; i8 has an f32 scale per row. */
static whit_status type_of_trainee(const char *codec, uint32_t n_rows, uint32_t n_cols, whit_tensor_type *type,
                                   whit_error *error)
{
    *type = (whit_tensor_type){.layout = WHIT_LAYOUT_TILE16, .n_rows = n_rows, .n_cols = n_cols};
    if (!strcmp(codec, "f32") || !strcmp(codec, "f16")) {
        type->codec = codec[1] == '3' ? WHIT_CODEC_F32 : WHIT_CODEC_F16;
        return WHIT_OK;
    }
    if (!strcmp(codec, "i8")) {
        type->codec = WHIT_CODEC_I8;
        type->scale_kind = WHIT_SCALE_ROW;
        return WHIT_OK;
    }
    type->scale_kind = WHIT_SCALE_GROUP;
    type->scale_type = WHIT_SCALE_F16;
    type->group = 128;
    if (!strcmp(codec, "t")) {
        type->codec = n_cols >= 128 ? WHIT_CODEC_T5 : WHIT_CODEC_T2; /* t5 would pad shorter rows to whole blocks */
    } else if (!strcmp(codec, "q2")) {
        type->codec = WHIT_CODEC_L2;
        type->scale_type = WHIT_SCALE_L6;
    } else if (!strcmp(codec, "q2-planes")) {
        type->codec = WHIT_CODEC_Q2;
    } else if (!strcmp(codec, "b1")) {
        type->codec = WHIT_CODEC_B1;
        type->group = 64;
    } else {
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "codec '%s' is unknown: choose one of t, b1, q2, q2-planes, i8, f16, f32", codec);
    }
    return WHIT_OK;
}

bool whit_trainee_keeps(const char *name)
{
    /* The steps and decays of a delta rule's states, the router and the weight of a shared expert are under 1 % of a
     * model's weights. */
    static const char *const kept[] = {"beta", "decay", "router", "shared_weight"};
    const char *last = strrchr(name, '.');
    const size_t n = strlen(name), n_end = strlen("_bias"); /* biases of experts have the shape of matrices */
    for (size_t i = 0; last && i < sizeof kept / sizeof *kept; i++)
        if (strcmp(last + 1, kept[i]) == 0) return true;
    return n > n_end && strcmp(name + n - n_end, "_bias") == 0;
}

/* Returns the codec of a layer's matrix: that of the last entry of `mixed` with the matrix's name, otherwise "own" if
 * whit_trainee_keeps returns true, and else the layers' codec. */
static const char *layer_codec(const whit_trainee_codecs *codecs, const char *name)
{
    const char *codec = whit_trainee_keeps(name) ? "own" : codecs->layers, *last = strrchr(name, '.') + 1;
    for (size_t i = 0; i < codecs->n_mixed; i++) {
        const char *mixed = codecs->mixed[i];
        size_t n = strcspn(mixed, "=");
        if (n == strlen(last) && strncmp(mixed, last, n) == 0 && mixed[n]) codec = mixed + n + 1;
    }
    return codec;
}

static whit_status check_mixed(const whit_trainee_codecs *codecs, const whit_weights *weights, whit_error *error)
{
    for (size_t i = 0; i < codecs->n_mixed; i++) {
        const char *mixed = codecs->mixed[i];
        size_t n = strcspn(mixed, "=");
        bool found = false;
        for (uint32_t k = 0; k < weights->n_tensors && !found; k++) {
            const char *name = whit_ndf_tensor_name(weights->file, k), *last = strrchr(name, '.');
            found = weights->tensors[k].type.layout == WHIT_LAYOUT_TILE16 && strncmp(name, "layers.", 7) == 0 && last &&
                n == strlen(last + 1) && strncmp(mixed, last + 1, n) == 0;
        }
        if (!found || !mixed[n])
            return whit_fail(error, WHIT_ERROR_ARGUMENT, "'%s' is not a matrix of the layers and a codec, as in down=t",
                             mixed);
    }
    return WHIT_OK;
}

/* Sets *type to the matrix's type in the model. Refuses a type to which training cannot round, such as one with offsets
 * or u8 factors. */
static whit_status own_type(const char *name, const whit_tensor_type *from, whit_tensor_type *type, whit_error *error)
{
    *type = *from;
    if (whit_codec_find(from->codec)->is_float || whit_quantise_knows(from)) return WHIT_OK;
    return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                     "matrix '%s' has a type that cannot be trained: start from the original", name);
}

static whit_status add_params(whit_trainee *trainee, const whit_trainee_codecs *codecs, whit_error *error)
{
    const whit_weights *weights = &trainee->model->weights;
    if (codecs) WHIT_TRY(check_mixed(codecs, weights, error));
    for (uint32_t i = 0; i < weights->n_tensors; i++) {
        const char *name = whit_ndf_tensor_name(weights->file, i);
        const whit_tensor_type *from = &weights->tensors[i].type;
        whit_tensor_type type = {.layout = from->layout, .n_rows = from->n_rows, .n_cols = from->n_cols};
        bool matrix = from->layout == WHIT_LAYOUT_TILE16;
        if (from->act == WHIT_TENSOR_ACT_FIXED)
            return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                             "tensor '%s' has fixed scales of its inputs and outputs, which cannot be trained: start "
                             "from the original",
                             name);
        if (matrix && codecs) {
            const char *codec = strncmp(name, "layers.", 7) == 0 ? layer_codec(codecs, name) : codecs->embedding;
            if (strcmp(codec, "own") != 0)
                WHIT_TRY(type_of_trainee(codec, from->n_rows, from->n_cols, &type, error));
            else
                WHIT_TRY(own_type(name, from, &type, error));
        }
        bool coded = !whit_codec_find(type.codec)->is_float, rounds = from->act == WHIT_TENSOR_ACT_TOKEN;
        if (coded) type.act = from->act; /* a matrix with a float codec is stored without rounding of its inputs */
        WHIT_TRY(whit_params_add(&trainee->params, name, &type, coded, error));
        trainee->params.items[i].rounds_input = rounds && (coded || !codecs);
    }
    return WHIT_OK;
}

whit_status whit_trainee_open(whit_trainee *trainee, const whit_model *model, const whit_trainee_codecs *codecs,
                              const whit_watcher *watcher, const whit_allocator *allocator, whit_error *error)
{
    *trainee = (whit_trainee){.model = model, .config = model->config, .allocator = allocator};
    whit_params_begin(&trainee->params, allocator);
    whit_graph_begin(&trainee->graph, allocator, whit_params_resolver(&trainee->params), error);
    whit_status status = add_params(trainee, codecs, error);
    if (status == WHIT_OK) status = whit_params_allocate(&trainee->params, codecs != NULL, error);
    if (status == WHIT_OK) status = whit_params_load(&trainee->params, model->file, watcher, error);
    if (status == WHIT_OK) status = whit_family_build(&trainee->config, &trainee->graph);
    if (status != WHIT_OK) whit_trainee_close(trainee);
    return status;
}

void whit_trainee_close(whit_trainee *trainee)
{
    if (!trainee->params.loops) return;
    whit_graph_free(&trainee->graph);
    whit_params_free(&trainee->params);
    *trainee = (whit_trainee){0};
}
