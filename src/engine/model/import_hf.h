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

/* The experts of a class: values for absent fields, and values fixed by its code. */
typedef struct whit_hf_experts {
    bool is_optional;   /* the class has models without experts */
    bool zero_is_dense; /* num_experts 0 states a model without experts */
    bool is_beside;     /* the feed-forward part stays */
    bool is_sigmoid;
    bool has_choice; /* a bias of the choice, if use_expert_bias does not say otherwise */
    bool is_normalised, always_normalised;
    uint8_t gate;      /* gate of the experts, if not the model's hidden_act; 0: that */
    bool has_sinks;    /* attention has one additional logit for each head */
    bool has_bias;     /* the router and the experts' matrices have biases */
    bool ff_is_width;  /* intermediate_size is the width of an expert */
    double added;      /* to the sum that divides the scores */
    double gate_limit; /* the default of swiglu_limit */
} whit_hf_experts;

/* A model class of transformers, with the defaults that its code has for absent fields. */
typedef struct whit_hf_class {
    const char *name; /* as in "architectures", without "ForCausalLM" */
    const char *type; /* "model_type" */
    const char *family;
    bool bitnet; /* ternary matrices stored as floats are W1.58A8 */
    bool online; /* latent weights are rounded to ternary regardless of quantization_config */
    bool sub_norm, qk_norm;
    bool qkv_bias; /* whatever attention_bias says */
    const char *act;
    double norm_eps, rope_theta;
    uint32_t n_ctx, n_kv_heads, head_dim, window; /* 0: computed from other fields; window: no window */
    bool window_always;                           /* a stated window is used, though the default is no window */
    bool window_switch;                           /* the window is used only if use_sliding_window is true, */
    uint32_t window_layers;                       /* and from this layer on (max_window_layers) */
    bool tied;                                    /* the default of tie_word_embeddings */
    bool is_nested;                  /* its fields may be in "text_config", its tensors after "language_model." */
    const char *const *outer_fields; /* fields that occur only outside text_config; NULL: none */
    const char *draft_prefix;   /* prefix of the names of the block that predicts one more token; NULL: no such block */
    const char *recurrent_type; /* entry of layer_types that marks recurrent layers; NULL if it has no such layers */
    uint8_t recurrent_mixer;    /* whit_mixer of the recurrent layers */
    double rotary_share;        /* the default of partial_rotary_factor; 0: the class has no such field */
    bool norms_add_one;         /* norms multiply by 1 + w */
    bool norm_after_rope;
    bool no_rope_in_full;              /* layers that attend to all positions are without RoPE */
    uint32_t no_rope_interval;         /* every n-th layer is without RoPE (no_rope_layers); 0: all layers have it */
    uint32_t full_interval;            /* without layer_types every n-th layer attends to all positions; */
    const char *full_interval_field;   /* field that may override full_interval */
    const whit_import_name *names;     /* tensors in addition to the common ones */
    const whit_import_number *numbers; /* fields of the configuration's optional numbers */
    const char *const *fields;         /* further fields that are read; NULL ends the list */
    bool last_is_full;                 /* the last layer has full attention, too */
    const struct whit_hf_experts *experts; /* NULL: the class has no experts */
    double local_theta;          /* theta of layers with a window ("rope_local_base_freq"); 0: as the others */
    bool scales_full_only;       /* layers with a window have unscaled RoPE */
    const char *prefix, *layers; /* prefix of an encoder's names ("bert.", "encoder.layer"); NULL: a decoder */
    uint32_t n_positions_cut;    /* encoders: rows of the table of positions that no position has */
    bool has_scores;             /* encoders: a classification head gives scores */
    /* Reads fields specific to this class, after all others; NULL if it has no such fields. */
    whit_status (*finish)(const struct whit_hf_importer *importer, whit_config *config, whit_error *error);
} whit_hf_class;

whit_status whit_import_hf_bert(const struct whit_hf_importer *importer, whit_config *config, whit_error *error);
whit_status whit_import_hf_gemma3(const struct whit_hf_importer *importer, whit_config *config, whit_error *error);
whit_status whit_import_hf_gemma4(const struct whit_hf_importer *importer, whit_config *config, whit_error *error);

/* Finds the class by "architectures", or by model_type; `any`: a class for every model if a program says what it
 * computes. */
whit_status whit_hf_find_class(const whit_hf_document *config, bool any, const whit_hf_class **class,
                               whit_error *error);

/* How the projections are quantised, from quantization_config or the fields that replace it. */
typedef struct whit_hf_quantisation {
    bool bitnet;       /* quant_method "bitnet": packed weights, or latent ones */
    bool online;       /* float weights are latent: rounded to ternary by their mean magnitude */
    bool multiplies;   /* weight_scale multiplies (AutoBitLinear); else it divides (BitLinear) */
    bool is_fixed;     /* modules may have fixed scales of int8 inputs and outputs */
    whit_hf_form form; /* packed matrices */
    uint32_t mlx_bits; /* bits of MLX codes, unless a module states its own */
    uint32_t mlx_node; /* "quantization": modules by name with bits of their own; or WHIT_JSON_NONE */
    uint32_t skipped;  /* node of modules_to_not_convert, or WHIT_JSON_NONE */
} whit_hf_quantisation;

/* One tensor, ready to be read by rows. */
struct whit_hf_import {
    const struct whit_hf_importer *importer;
    const whit_safetensor *file;
    whit_safetensor flat;       /* the file's tensor with its first two dimensions merged */
    whit_ggml_view view;        /* float weights */
    float inverse;              /* 1 / scale, for float weights that are rounded to ternary */
    whit_packed_ternary packed; /* U8 weights */
    whit_hf_packed matrix;      /* weights in words, or floats of eight bits */
    const int8_t *codes;        /* I8 weights, row-major; blocks of MXFP4 */
    const uint8_t *scales;      /* scales of MXFP4, a byte for each block */
    float *values;              /* computed here: a vector of n_values */
    uint32_t n_values;
    uint8_t form; /* whit_import_form */
};

/* A tensor of the experts of a layer, import->file, in blocks of MXFP4: (experts, rows, blocks, 16) and, in a tensor
 * beside it, their scales (experts, rows, blocks). Gives `tensor` its type and reader; returns why it is refused, NULL
 * if it is not. */
const char *whit_hf_mxfp4_experts(const char *file_name, struct whit_hf_import *import, whit_source_tensor *tensor);
/* The same for floats (experts, columns, rows), with the view of the flattened file in import->view. */
const char *whit_hf_transpose_experts(const struct whit_hf_import *import, whit_source_tensor *tensor);

#define WHIT_HF_DENSE_MAX         2
#define WHIT_HF_MODULE_PATH_BYTES 128

/* The modules of a folder of sentence-transformers beside its model (modules.json). */
struct whit_hf_modules {
    whit_hf_document list, pooling, prompts, dense_config[WHIT_HF_DENSE_MAX];
    whit_safetensors *dense[WHIT_HF_DENSE_MAX];
    uint32_t n_dense;
    const char *pooling_name; /* NULL: no Pooling module */
    bool excludes_prompt;     /* its mean leaves out the tokens of the prompt */
};

struct whit_hf_importer {
    whit_hf *hf;
    struct whit_hf_modules modules;
    whit_source *source;   /* NULL: only a configuration is read */
    whit_hf_document text; /* config.json, or its text_config: a view of hf's */
    const whit_hf_class *class;
    whit_hf_quantisation quantisation;
    bool tied;          /* tie_word_embeddings */
    bool told_rounding; /* the note about matrices that are not stored exactly was given */
    struct whit_hf_divisors {
        const char *name; /* NULL: unused */
        float *values;
        uint32_t n;
    } divisors[3];                  /* vectors that divide RoPE frequencies, before they become tensors of the source */
    struct whit_hf_import *imports; /* capacity fixed before the first is used: addresses stay */
    size_t n_imports, capacity;
};

/* Returns whether a value is null, false, "", [] or {}: a field with such a value counts as absent. */
bool whit_hf_says_nothing(const whit_json *json, uint32_t value);
/* Returns whether a field has no effect in any object: its name marks it as bookkeeping, or it has such a value. */
bool whit_hf_is_void(const whit_json *json, uint32_t key);

/* Refuses fields that would change the mathematics and are not understood. */
whit_status whit_import_hf_fields(const struct whit_hf_importer *importer, whit_error *error);

/* Finds the class and reads everything but what only the weights know. */
whit_status whit_import_hf_config(struct whit_hf_importer *importer, whit_config *config, whit_error *error);
/* Reads RoPE tables and their scalings; divisors that are vectors are stored in the importer. */
whit_status whit_import_hf_rope(struct whit_hf_importer *importer, whit_config *config, whit_error *error);
/* Reads windows, and what else differs between layers, into kinds. */
whit_status whit_import_hf_layers(const struct whit_hf_importer *importer, whit_config *config, whit_error *error);
/* Reads numbers of experts; makes the feed-forward part of layers with experts 0 wide. */
whit_status whit_import_hf_experts(const struct whit_hf_importer *importer, whit_config *config, whit_error *error);
/* Returns whether classes with experts read a field. */
bool whit_import_hf_is_of_experts(const whit_json *json, uint32_t key);
/* A number of a field, rounded as GGUF files keep it; unchanged if the field is absent. */
whit_status whit_hf_read_float(const whit_hf_document *document, const char *path, double *value, whit_error *error);
whit_status whit_hf_read_u32(const whit_hf_document *document, const char *path, bool required, uint32_t *value,
                             whit_error *error);
bool whit_hf_text_is(const char *text, size_t n, const char *expected);

/* Reads modules.json and what it names: sets the widths of dense layers. Close it also after a failure. */
whit_status whit_import_hf_modules(struct whit_hf_importer *importer, whit_config *config, whit_error *error);
void whit_import_hf_close_modules(struct whit_hf_importer *importer);
/* Writes the pooling and the prompts into the metadata. */
void whit_import_hf_set_prompts(const struct whit_hf_importer *importer, whit_table_builder *meta);

/* Adds every tensor; decides tied_head and the biases. */
whit_status whit_import_hf_tensors(whit_source *source, struct whit_hf_importer *importer, whit_error *error);
/* Frees the divisors that are not tensors yet. */
void whit_import_hf_free_divisors(struct whit_hf_importer *importer);
/* Adds a vector; takes the values, whose memory is the source's allocator's, in every case. */
whit_status whit_import_hf_vector(whit_source *source, struct whit_hf_importer *importer, const char *name,
                                  float *values, uint32_t n, whit_error *error);

#endif
