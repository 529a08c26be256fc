/* SPDX-License-Identifier: MIT
 * Parts of the importer of Hugging Face folders: import_hf.c opens them and takes what describes,
 * import_hf_fields.c says which fields a config.json may have, import_hf_config.c reads them,
 * import_hf_tensors.c takes the weights. Private to them. */
#ifndef WHIT_MODEL_IMPORT_HF_H
#define WHIT_MODEL_IMPORT_HF_H

#include "format/hf.h"
#include "format/ternary.h"
#include "model/rope_scaling.h"
#include "model/source.h"

/* A model class of transformers, with the defaults that its code has for absent fields. */
typedef struct whit_hf_class {
    const char *name; /* as in "architectures", without "ForCausalLM" */
    const char *type; /* "model_type" */
    const char *family;
    bool bitnet; /* float matrices that are ternary are W1.58A8 */
    bool online; /* latent weights are made ternary whatever the quantization_config says */
    bool sub_norm, qk_norm;
    bool qkv_bias; /* whatever attention_bias says */
    const char *act;
    double norm_eps, rope_theta;
    uint32_t n_ctx, n_kv_heads, head_dim, window; /* 0: computed from other fields; none */
    bool window_switch;                           /* the window is there only where use_sliding_window says so, */
    uint32_t window_layers;                       /* and from this layer on (max_window_layers) */
} whit_hf_class;

/* What quantization_config and its relatives say about the projections. */
typedef struct whit_hf_quantisation {
    bool bitnet;      /* quant_method "bitnet": packed weights, or latent ones */
    bool online;      /* float weights are latent: made ternary by their mean magnitude */
    bool multiplies;  /* weight_scale multiplies (AutoBitLinear); else it divides (BitLinear) */
    uint32_t skipped; /* node of modules_to_not_convert, or WHIT_JSON_NONE */
} whit_hf_quantisation;

/* One tensor, ready to be read by rows. */
struct whit_hf_import {
    const struct whit_hf_importer *importer;
    const whit_safetensor *file;
    whit_ggml_view view;        /* float weights */
    float inverse;              /* of the scale that makes them ternary */
    whit_packed_ternary packed; /* U8 weights */
    const int8_t *codes;        /* I8 weights, row-major */
    float *values;              /* computed here: a vector of n_values */
    uint32_t n_values;
};

struct whit_hf_importer {
    whit_hf *hf;
    const whit_hf_class *class;
    whit_hf_quantisation quantisation;
    bool tied;                      /* tie_word_embeddings */
    struct whit_hf_import *imports; /* capacity fixed before the first is used: addresses stay */
    size_t n_imports, capacity;
};

/* null, false, "", [] and {}: whatever the field is, it is not there. */
bool whit_hf_says_nothing(const whit_json *json, uint32_t value);
/* A field that changes nothing in any object: bookkeeping by its name, or with such a value. */
bool whit_hf_is_void(const whit_json *json, uint32_t key);

/* Refuses fields that would change the mathematics and are not understood. */
whit_status whit_import_hf_fields(const whit_hf_document *config, whit_error *error);

/* Finds the class and reads everything but what only the weights know. */
whit_status whit_import_hf_config(struct whit_hf_importer *importer, whit_config *config, whit_error *error);
/* Factors for rope_scaling; NULL in *factors where there is none. n is config->rope_dim / 2. */
whit_status whit_import_hf_rope(const struct whit_hf_importer *importer, const whit_config *config,
                                const whit_allocator *allocator, float **factors, whit_error *error);

/* Adds every tensor; decides tied_head and the biases. */
whit_status whit_import_hf_tensors(whit_source *source, struct whit_hf_importer *importer, whit_error *error);
/* Adds a vector; takes the values, whose memory is the source's allocator's, in every case. */
whit_status whit_import_hf_vector(whit_source *source, struct whit_hf_importer *importer, const char *name,
                                  float *values, uint32_t n, whit_error *error);

#endif
