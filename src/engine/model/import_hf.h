/* SPDX-License-Identifier: MIT
 * Declares what the parts of the importer of Hugging Face folders share. Private to:
 *
 *   import_hf.c          opens folders, reads texts that describe the model
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

/* Describes the experts of a class: defaults of absent fields, and properties that are fixed in the class's code. */
typedef struct whit_hf_experts {
    bool is_optional;   /* the model has experts only if the field enable_moe_block is true */
    bool zero_is_dense; /* num_experts 0 means that the model has no experts */
    bool is_beside;     /* the feed-forward part is used in addition to the experts */
    bool is_sigmoid;
    bool has_choice; /* a bias is added to the scores for the choice, unless use_expert_bias is false */
    bool is_normalised, always_normalised;
    uint8_t gate;      /* gate of the experts, a whit_gate; 0: the gate that hidden_act names */
    bool has_sinks;    /* attention has one additional logit for each head (attention sinks) */
    bool has_bias;     /* the router and the experts' matrices have biases */
    bool ff_is_width;  /* the field intermediate_size is the width of an expert */
    double added;      /* added to the sum that the scores are divided by */
    double gate_limit; /* the default of swiglu_limit */
} whit_hf_experts;

/* Describes a model class of transformers, including the defaults that its code gives to absent fields. */
typedef struct whit_hf_class {
    const char *name; /* name in "architectures", without "ForCausalLM", "TextModel" or "Model" at its end */
    const char *type; /* value of "model_type" */
    const char *family;
    bool bitnet; /* ternary matrices stored as floats are W1.58A8 (int8 activations per token) */
    bool online; /* float weights are latent and are rounded to ternary, whatever quantization_config says */
    bool sub_norm, qk_norm;
    bool qkv_bias; /* q, k and v have biases and o does not, whatever attention_bias says */
    const char *act;
    double norm_eps, rope_theta;
    uint32_t n_ctx, n_kv_heads, head_dim, window; /* defaults; 0: computed from other fields; window 0: no window */
    bool window_always;                           /* a window in the file is used, although the class's default is no
                                                   * window */
    bool window_switch;                           /* the window is off unless use_sliding_window is true */
    /* default of max_window_layers: with window_switch, the layers from this one on have the window */
    uint32_t window_layers;
    bool tied; /* default of tie_word_embeddings */
    /* fields may be in "text_config", and names of tensors may begin with "language_model." */
    bool is_nested;
    const char *const *outer_fields; /* fields that may occur only outside text_config, ended by NULL; NULL: no such
                                      * fields */
    const char *draft_prefix;   /* prefix of the names of the block that predicts one more token; NULL: no such block */
    const char *recurrent_type; /* entry of layer_types that marks recurrent layers; NULL: the class has no recurrent
                                 * layers */
    uint8_t recurrent_mixer;    /* whit_mixer of the recurrent layers */
    double rotary_share;        /* default of partial_rotary_factor; 0: the class has no such field */
    bool norms_add_one;         /* norms multiply by 1 + w */
    bool norm_after_rope;
    bool no_rope_in_full;              /* layers that attend to all positions do not have RoPE */
    uint32_t no_rope_interval;         /* default of no_rope_layer_interval: every n-th layer is without RoPE if
                                        * no_rope_layers is absent; 0: all layers have RoPE */
    uint32_t full_interval;            /* if layer_types is absent, every n-th layer attends to all positions; 0: the
                                        * class has no such rule */
    const char *full_interval_field;   /* name of the field that may override full_interval; NULL: no such field */
    const whit_import_name *names;     /* names of tensors, in addition to the names that all classes share */
    const whit_import_number *numbers; /* fields that become optional numbers of the configuration */
    const char *const *fields;         /* further fields that are read; NULL ends the list */
    bool last_is_full;                 /* without layer_types, the last layer attends to all positions, too */
    const struct whit_hf_experts *experts; /* NULL: the class has no experts */
    /* theta of layers with a window ("rope_local_base_freq"); 0: the theta of the other layers */
    double local_theta;
    bool scales_full_only; /* scaled RoPE applies only to layers without a window */
    /* encoders: prefix of all tensor names ("bert."), and of the names of layers ("encoder.layer"); NULL: a decoder */
    const char *prefix, *layers;
    uint32_t n_positions_cut; /* encoders: number of leading rows of the table of positions that belong to no
                               * position */
    bool has_scores;          /* encoders: the model has a classification head */
    /* Reads fields specific to this class, after all other fields; NULL: there are no such fields. */
    whit_status (*finish)(const struct whit_hf_importer *importer, whit_config *config, whit_error *error);
} whit_hf_class;

whit_status whit_import_hf_bert(const struct whit_hf_importer *importer, whit_config *config, whit_error *error);
whit_status whit_import_hf_gemma3(const struct whit_hf_importer *importer, whit_config *config, whit_error *error);
whit_status whit_import_hf_gemma4(const struct whit_hf_importer *importer, whit_config *config, whit_error *error);

/* Finds the class by "architectures", else by "model_type". any: an unknown class is accepted, because a program
 * defines the computation. */
whit_status whit_hf_find_class(const whit_hf_document *config, bool any, const whit_hf_class **class,
                               whit_error *error);

/* Describes how the projections (matrices of layers) are quantised, from quantization_config or the fields that replace
 * it. */
typedef struct whit_hf_quantisation {
    bool bitnet;       /* quant_method "bitnet": weights are packed ternary codes, or latent floats */
    bool online;       /* float weights are latent: they are rounded to ternary, scaled by their mean magnitude */
    bool multiplies;   /* weight_scale multiplies the products (AutoBitLinear); else it divides them (BitLinear) */
    bool is_fixed;     /* modules may have fixed scales of int8 inputs and outputs */
    whit_hf_form form; /* form in which matrices are packed */
    uint32_t mlx_bits; /* number of bits of MLX codes, unless a module has its own number */
    /* JSON node "quantization", in which modules may have other numbers of bits, or WHIT_JSON_NONE */
    uint32_t mlx_node;
    uint32_t skipped; /* JSON node of modules_to_not_convert, or WHIT_JSON_NONE */
} whit_hf_quantisation;

/* Describes how one tensor of ours is read row by row from a tensor of the file. */
struct whit_hf_import {
    const struct whit_hf_importer *importer;
    const whit_safetensor *file;
    whit_safetensor flat;       /* the file's tensor with its first two dimensions merged */
    whit_ggml_view view;        /* weights stored as floats, or scales of rows (row_alpha) */
    float inverse;              /* 1 / scale, for float weights that are rounded to ternary */
    whit_packed_ternary packed; /* weights stored as U8, packed ternary codes */
    whit_hf_packed matrix;      /* weights packed in 32-bit words, or stored as floats of eight bits */
    const int8_t *codes;        /* weights stored as I8 or as 2-bit codes, row-major, or the blocks of MXFP4 */
    const uint8_t *scales;      /* scales of MXFP4, one byte per block */
    float *values;              /* (n_values) a vector that the importer has computed; NULL: elements are read from the
                                 * file */
    uint32_t n_values;
    uint8_t form; /* whit_import_form */
};

/* Prepares import->file, a tensor of all experts of a layer in MXFP4: blocks (experts, rows, blocks, 16), with scales
 * (experts, rows, blocks) in another tensor. Sets the type and the reader of `tensor`. Returns NULL, or the reason why
 * the tensor is refused. */
const char *whit_hf_mxfp4_experts(const char *file_name, struct whit_hf_import *import, whit_source_tensor *tensor);
/* Prepares a tensor of all experts of a layer, floats (experts, columns, rows); import->view is the view of the
 * flattened tensor. Returns NULL, or the reason why the tensor is refused. */
const char *whit_hf_transpose_experts(const struct whit_hf_import *import, whit_source_tensor *tensor);

#define WHIT_HF_DENSE_MAX         2
#define WHIT_HF_MODULE_PATH_BYTES 128

/* Holds the modules of a sentence-transformers folder that modules.json lists in addition to the model. */
struct whit_hf_modules {
    whit_hf_document list, pooling, prompts, dense_config[WHIT_HF_DENSE_MAX];
    whit_safetensors *dense[WHIT_HF_DENSE_MAX];
    uint32_t n_dense;
    const char *pooling_name; /* name of the pooling mode; NULL: the folder has no Pooling module */
    bool excludes_prompt;     /* the mean leaves out the tokens of the instruction (include_prompt is false) */
};

struct whit_hf_importer {
    whit_hf *hf;
    struct whit_hf_modules modules;
    whit_source *source;   /* the source that is filled; NULL: only a configuration is read, without weights */
    whit_hf_document text; /* the part of config.json about the text model: text_config, or the whole document; a view
                            * of the document in `hf` */
    const whit_hf_class *class;
    whit_hf_quantisation quantisation;
    bool tied;          /* value of tie_word_embeddings */
    bool told_rounding; /* the user has been told that some matrices are not stored exactly */
    struct whit_hf_divisors {
        const char *name; /* name of the tensor; NULL: unused entry */
        float *values;
        uint32_t n;
    } divisors[3];                  /* divisors of RoPE frequencies, which later become tensors of the source */
    struct whit_hf_import *imports; /* capacity is fixed before the first use, so that addresses of elements do not
                                     * change */
    size_t n_imports, capacity;
};

/* Returns whether a value is null, false, "", [] or {}; such a field counts as absent. */
bool whit_hf_says_nothing(const whit_json *json, uint32_t value);
/* Returns whether a field has no effect in any object, because its name marks it as bookkeeping or its value counts as
 * absent. */
bool whit_hf_is_void(const whit_json *json, uint32_t key);

/* Refuses fields that would change the mathematics and are not supported. */
whit_status whit_import_hf_fields(const struct whit_hf_importer *importer, whit_error *error);

/* Finds the class and reads the part of the configuration that does not depend on the weights. */
whit_status whit_import_hf_config(struct whit_hf_importer *importer, whit_config *config, whit_error *error);
/* Reads RoPE tables and their scalings; divisors of frequencies are stored in the importer. */
whit_status whit_import_hf_rope(struct whit_hf_importer *importer, whit_config *config, whit_error *error);
/* Reads windows, RoPE and other properties that differ between layers, into layer kinds. */
whit_status whit_import_hf_layers(const struct whit_hf_importer *importer, whit_config *config, whit_error *error);
/* Reads the numbers of experts; sets the width of the feed-forward part to 0 in layers where experts replace it. */
whit_status whit_import_hf_experts(const struct whit_hf_importer *importer, whit_config *config, whit_error *error);
/* Returns whether whit_import_hf_experts reads a field. */
bool whit_import_hf_is_of_experts(const whit_json *json, uint32_t key);
/* Reads a number and rounds it to float32, the precision of GGUF files; *value is unchanged if the field is absent. */
whit_status whit_hf_read_float(const whit_hf_document *document, const char *path, double *value, whit_error *error);
whit_status whit_hf_read_u32(const whit_hf_document *document, const char *path, bool required, uint32_t *value,
                             whit_error *error);
bool whit_hf_text_is(const char *text, size_t n, const char *expected);

/* Reads modules.json and the files that it names, and sets the widths of dense layers. The caller closes the modules,
 * also after a failure. */
whit_status whit_import_hf_modules(struct whit_hf_importer *importer, whit_config *config, whit_error *error);
void whit_import_hf_close_modules(struct whit_hf_importer *importer);
/* Writes the pooling and the prompts (instructions) into the metadata. */
void whit_import_hf_set_prompts(const struct whit_hf_importer *importer, whit_table_builder *meta);

/* Adds all tensors; sets tied_head and the fields that depend on which tensors the folder has. */
whit_status whit_import_hf_tensors(whit_source *source, struct whit_hf_importer *importer, whit_error *error);
/* Frees the divisors that have not become tensors of the source. */
void whit_import_hf_free_divisors(struct whit_hf_importer *importer);
/* Adds a vector. Takes ownership of `values`, also on failure; the source's allocator must have allocated them. */
whit_status whit_import_hf_vector(whit_source *source, struct whit_hf_importer *importer, const char *name,
                                  float *values, uint32_t n, whit_error *error);

#endif
