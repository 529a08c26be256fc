/* SPDX-License-Identifier: MIT
 * Parts of the importer of Hugging Face folders. Private to them:
 *
 *   import_hf.c          opens folders, takes what describes
 *   import_hf_classes.c  the model classes, their names of tensors and numbers: a new family is rows there
 *   import_hf_fields.c   which fields a config.json may have
 *   import_hf_config.c   numbers and quantisation
 *   import_hf_rope.c     RoPE and its scalings
 *   import_hf_layers.c   layers that differ
 *   import_experts.c     mixtures of experts
 *   import_hf_tensors.c  weights */
#ifndef WHIT_MODEL_IMPORT_HF_H
#define WHIT_MODEL_IMPORT_HF_H

#include "format/hf.h"
#include "format/hf_packed.h"
#include "format/ternary.h"
#include "model/import_names.h"
#include "model/rope_scaling.h"
#include "model/source.h"

struct whit_hf_importer;

/* Holds the experts of a class: defaults of absent fields, and values that are fixed in the class's code. */
typedef struct whit_hf_experts {
    bool is_optional;   /* some models of the class have no experts */
    bool zero_is_dense; /* num_experts 0 means a model without experts */
    bool is_beside;     /* the feed-forward part is used, too */
    bool is_sigmoid;
    bool has_choice; /* the choice has a bias, unless use_expert_bias says otherwise */
    bool is_normalised, always_normalised;
    uint8_t gate;      /* gate of the experts; 0: that of the model's hidden_act */
    bool has_sinks;    /* attention has one additional logit for each head */
    bool has_bias;     /* the router and the experts' matrices have biases */
    bool ff_is_width;  /* intermediate_size is the width of an expert */
    double added;      /* summand of the sum that divides the scores */
    double gate_limit; /* the default of swiglu_limit */
} whit_hf_experts;

/* Describes a model class of transformers, with the defaults of absent fields in its code. */
typedef struct whit_hf_class {
    const char *name; /* name in "architectures", without "ForCausalLM" */
    const char *type; /* value of "model_type" */
    const char *family;
    bool bitnet; /* ternary matrices stored as floats are W1.58A8 */
    bool online; /* latent weights are rounded to ternary regardless of quantization_config */
    bool sub_norm, qk_norm;
    bool qkv_bias; /* q, k and v have biases, whatever attention_bias says */
    const char *act;
    double norm_eps, rope_theta;
    uint32_t n_ctx, n_kv_heads, head_dim, window; /* 0: computed from other fields; window 0: no window */
    bool window_always;                           /* a stated window is used, though the default is no window */
    bool window_switch;                           /* the window is used only if use_sliding_window is true */
    /* default of max_window_layers: with window_switch, the window is used from that layer on */
    uint32_t window_layers;
    bool tied; /* the default of tie_word_embeddings */
    /* fields may be in "text_config", and names of tensors may begin with "language_model." */
    bool is_nested;
    const char *const *outer_fields; /* fields that occur only outside text_config; NULL: none */
    const char *draft_prefix;   /* prefix of the names of the block that predicts one more token; NULL: no such block */
    const char *recurrent_type; /* entry of layer_types that marks recurrent layers; NULL if it has no such layers */
    uint8_t recurrent_mixer;    /* whit_mixer of the recurrent layers */
    double rotary_share;        /* the default of partial_rotary_factor; 0: the class has no such field */
    bool norms_add_one;         /* norms multiply by 1 + w */
    bool norm_after_rope;
    bool no_rope_in_full;              /* layers that attend to all positions are without RoPE */
    uint32_t no_rope_interval;         /* every n-th layer is without RoPE (no_rope_layers); 0: all layers have it */
    uint32_t full_interval;            /* without layer_types, every n-th layer attends to all positions */
    const char *full_interval_field;   /* name of the field that may override full_interval; NULL: no such field */
    const whit_import_name *names;     /* tensors in addition to the common ones */
    const whit_import_number *numbers; /* fields of the configuration's optional numbers */
    const char *const *fields;         /* further fields that are read; NULL ends the list */
    bool last_is_full;                 /* the last layer has full attention, too */
    const struct whit_hf_experts *experts; /* NULL: the class has no experts */
    /* theta of layers with a window ("rope_local_base_freq"); 0: the theta of the other layers */
    double local_theta;
    bool scales_full_only; /* layers with a window have unscaled RoPE */
    /* encoders: prefixes of the names ("bert.", "encoder.layer"); NULL: the class is a decoder */
    const char *prefix, *layers;
    uint32_t n_positions_cut; /* encoders: number of rows of the table of positions that belong to no position */
    bool has_scores;          /* encoders: a classification head gives scores */
    /* Reads fields specific to this class, after all others; the member is NULL if it has no such fields. */
    whit_status (*finish)(const struct whit_hf_importer *importer, whit_config *config, whit_error *error);
} whit_hf_class;

whit_status whit_import_hf_bert(const struct whit_hf_importer *importer, whit_config *config, whit_error *error);
whit_status whit_import_hf_gemma3(const struct whit_hf_importer *importer, whit_config *config, whit_error *error);
whit_status whit_import_hf_gemma4(const struct whit_hf_importer *importer, whit_config *config, whit_error *error);

/* Finds the class by "architectures", or by model_type. any: a class is found for every model, because a program
 * defines its computation. */
whit_status whit_hf_find_class(const whit_hf_document *config, bool any, const whit_hf_class **class,
                               whit_error *error);

/* Holds the quantisation of the projections, from quantization_config or the fields that replace it. */
typedef struct whit_hf_quantisation {
    bool bitnet;       /* quant_method "bitnet": weights are packed, or latent */
    bool online;       /* float weights are latent, and are rounded to ternary by their mean magnitude */
    bool multiplies;   /* weight_scale multiplies (AutoBitLinear); else it divides (BitLinear) */
    bool is_fixed;     /* modules may have fixed scales of int8 inputs and outputs */
    whit_hf_form form; /* form of packed matrices */
    uint32_t mlx_bits; /* bits of MLX codes, unless a module states its own */
    /* node "quantization", with modules by name that have other numbers of bits; or WHIT_JSON_NONE */
    uint32_t mlx_node;
    uint32_t skipped; /* node of modules_to_not_convert, or WHIT_JSON_NONE */
} whit_hf_quantisation;

/* Describes one tensor, ready to be read row by row. */
struct whit_hf_import {
    const struct whit_hf_importer *importer;
    const whit_safetensor *file;
    whit_safetensor flat;       /* the file's tensor with its first two dimensions merged */
    whit_ggml_view view;        /* view of float weights */
    float inverse;              /* 1 / scale, for float weights that are rounded to ternary */
    whit_packed_ternary packed; /* view of U8 weights */
    whit_hf_packed matrix;      /* view of weights in 32-bit words, or of floats of eight bits */
    const int8_t *codes;        /* I8 weights, row-major, or blocks of MXFP4 */
    const uint8_t *scales;      /* scales of MXFP4, a byte for each block */
    float *values;              /* (n_values) a vector that the importer has computed */
    uint32_t n_values;
    uint8_t form; /* whit_import_form */
};

/* Prepares a tensor of the experts of a layer, import->file, in blocks of MXFP4: (experts, rows, blocks, 16), with its
 * scales (experts, rows, blocks) in another tensor. Sets the type and the reader of `tensor`; returns the reason if it
 * is refused, else NULL. */
const char *whit_hf_mxfp4_experts(const char *file_name, struct whit_hf_import *import, whit_source_tensor *tensor);
/* Prepares a tensor of the experts of a layer as floats (experts, columns, rows), with the view of the flattened file
 * in import->view. Returns the reason if it is refused, else NULL. */
const char *whit_hf_transpose_experts(const struct whit_hf_import *import, whit_source_tensor *tensor);

#define WHIT_HF_DENSE_MAX         2
#define WHIT_HF_MODULE_PATH_BYTES 128

/* Holds the modules of a sentence-transformers folder in addition to its model (modules.json). */
struct whit_hf_modules {
    whit_hf_document list, pooling, prompts, dense_config[WHIT_HF_DENSE_MAX];
    whit_safetensors *dense[WHIT_HF_DENSE_MAX];
    uint32_t n_dense;
    const char *pooling_name; /* NULL: no Pooling module */
    bool excludes_prompt;     /* the mean leaves out the tokens of the prompt */
};

struct whit_hf_importer {
    whit_hf *hf;
    struct whit_hf_modules modules;
    whit_source *source;   /* NULL: only a configuration is read */
    whit_hf_document text; /* config.json, or its text_config: a view of the document in `hf` */
    const whit_hf_class *class;
    whit_hf_quantisation quantisation;
    bool tied;          /* value of tie_word_embeddings */
    bool told_rounding; /* the user was told that some matrices are not stored exactly */
    struct whit_hf_divisors {
        const char *name; /* NULL: unused */
        float *values;
        uint32_t n;
    } divisors[3];                  /* vectors that divide RoPE frequencies, until they become tensors of the source */
    struct whit_hf_import *imports; /* capacity is fixed before the first use, so that addresses do not change */
    size_t n_imports, capacity;
};

/* Returns whether a value is null, false, "", [] or {}: a field with such a value counts as absent. */
bool whit_hf_says_nothing(const whit_json *json, uint32_t value);
/* Returns whether a field has no effect in any object, because its name marks it as bookkeeping or its value counts as
 * absent. */
bool whit_hf_is_void(const whit_json *json, uint32_t key);

/* Refuses fields that would change the mathematics and are not supported. */
whit_status whit_import_hf_fields(const struct whit_hf_importer *importer, whit_error *error);

/* Finds the class, and reads everything that does not depend on the weights. */
whit_status whit_import_hf_config(struct whit_hf_importer *importer, whit_config *config, whit_error *error);
/* Reads RoPE tables and their scalings; divisors that are vectors are stored in the importer. */
whit_status whit_import_hf_rope(struct whit_hf_importer *importer, whit_config *config, whit_error *error);
/* Reads windows and other differences between layers into kinds. */
whit_status whit_import_hf_layers(const struct whit_hf_importer *importer, whit_config *config, whit_error *error);
/* Reads the numbers of experts; sets the width of the feed-forward part to 0 in layers with experts. */
whit_status whit_import_hf_experts(const struct whit_hf_importer *importer, whit_config *config, whit_error *error);
/* Returns whether classes with experts read a field. */
bool whit_import_hf_is_of_experts(const whit_json *json, uint32_t key);
/* Reads a number of a field, rounded to the precision of GGUF files; unchanged if the field is absent. */
whit_status whit_hf_read_float(const whit_hf_document *document, const char *path, double *value, whit_error *error);
whit_status whit_hf_read_u32(const whit_hf_document *document, const char *path, bool required, uint32_t *value,
                             whit_error *error);
bool whit_hf_text_is(const char *text, size_t n, const char *expected);

/* Reads modules.json and the files that it names, and sets the widths of dense layers. The caller closes the modules,
 * also after a failure. */
whit_status whit_import_hf_modules(struct whit_hf_importer *importer, whit_config *config, whit_error *error);
void whit_import_hf_close_modules(struct whit_hf_importer *importer);
/* Writes the pooling and the prompts into the metadata. */
void whit_import_hf_set_prompts(const struct whit_hf_importer *importer, whit_table_builder *meta);

/* Adds every tensor; decides tied_head and which biases the model has. */
whit_status whit_import_hf_tensors(whit_source *source, struct whit_hf_importer *importer, whit_error *error);
/* Frees the divisors that have not become tensors. */
void whit_import_hf_free_divisors(struct whit_hf_importer *importer);
/* Adds a vector. Takes ownership of the values, which the source's allocator has allocated, in every case. */
whit_status whit_import_hf_vector(whit_source *source, struct whit_hf_importer *importer, const char *name,
                                  float *values, uint32_t n, whit_error *error);

#endif
