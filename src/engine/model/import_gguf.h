/* SPDX-License-Identifier: MIT
 * Declares what the parts of the GGUF importer share. Private to:
 *
 *   import_gguf.c           opens files, reads the configuration
 *   import_gguf_families.c  the architectures, their names of tensors and keys: a new family is rows there
 *   import_gguf_hadamard.c  rotated matrices
 *   import_gguf_keys.c      which keys a file may have
 *   import_gguf_layers.c    RoPE and layers that differ
 *   import_gguf_tensors.c   weights
 *   import_gguf_tokenizer.c the vocabulary */
#ifndef WHIT_MODEL_IMPORT_GGUF_H
#define WHIT_MODEL_IMPORT_GGUF_H

#include "format/gguf.h"
#include "model/import_names.h"
#include "model/rope_scaling.h"

/* Gives access to the keys "ARCHITECTURE.SUFFIX" of a file. Getters leave *value unchanged if the key is absent. */
typedef struct whit_gguf_keys {
    const whit_gguf *gguf;
    const char *architecture;
    const char *path;
    whit_error *error;
} whit_gguf_keys;
const whit_gguf_key *whit_gguf_key_find(const whit_gguf_keys *keys, const char *suffix);
whit_status whit_gguf_key_u32(const whit_gguf_keys *keys, const char *suffix, bool required, uint32_t *value);
whit_status whit_gguf_key_f64(const whit_gguf_keys *keys, const char *suffix, double *value);
whit_status whit_gguf_key_string(const whit_gguf_keys *keys, const char *suffix, const char **text, size_t *n);

/* Names which layers of an architecture have experts. */
typedef enum whit_gguf_experts {
    WHIT_GGUF_NO_EXPERTS,
    WHIT_GGUF_EXPERTS,          /* experts replace the feed-forward part, in layers from leading_dense_block_count on */
    WHIT_GGUF_EXPERTS_BY_LAYER, /* like EXPERTS, but only in layers that have a router */
    WHIT_GGUF_EXPERTS_BESIDE,   /* experts in all layers, in addition to the feed-forward part; only in models that have
                                 * experts */
} whit_gguf_experts;

typedef struct whit_gguf_architecture {
    const char *name, *family;
    bool permuted; /* RoPE pairs are adjacent rows in the file */
    bool bitnet;   /* ternary matrices are W1.58A8 (int8 activations per token), whatever their type in the file */
    bool sub_norm, qk_norm, attn_bias, norm_after_rope;
    bool is_encoder; /* tokens attend to both sides */
    uint8_t gate;
    uint32_t no_rope_interval; /* every n-th layer is without RoPE; 0: all layers have RoPE */
    uint32_t full_interval;    /* if there is a window and no key says which layers have it: every n-th layer does not,
                                * and attends to all positions; 0: all layers have it */
    /* theta of layers with a window if no key states it; 0: theta of the other layers */
    double local_theta;
    uint8_t experts;                   /* whit_gguf_experts */
    bool scales_full_only;             /* scaled RoPE applies only to layers without a window */
    const whit_import_name *names;     /* names of tensors, in addition to the names that all architectures share */
    const whit_import_number *numbers; /* keys of the configuration's optional numbers */
    const char *const *keys;           /* further keys that are read; NULL ends the list */
    /* Reads fields specific to this architecture, after all other fields; NULL: there are no such fields. */
    whit_status (*finish)(const whit_gguf_keys *keys, whit_config *config);
} whit_gguf_architecture;

/* Read the RoPE tables and, after them, the properties in which layers differ, which become layer kinds. */
whit_status whit_import_gguf_ropes(const whit_gguf_keys *keys, const whit_gguf_architecture *architecture,
                                   whit_config *config);
whit_status whit_import_gguf_layers(const whit_gguf_keys *keys, const whit_gguf_architecture *architecture,
                                    whit_config *config);

/* Reads the numbers of experts; sets the width of the feed-forward part to 0 in layers where experts replace it. */
whit_status whit_import_gguf_experts(const whit_gguf_keys *keys, const whit_gguf_architecture *architecture,
                                     whit_config *config);
/* Returns whether whit_import_gguf_experts reads the key with this name; `name` is without "ARCHITECTURE.". */
bool whit_import_gguf_is_of_experts(const char *name, size_t n);

/* Describes how one tensor of ours is read row by row from a tensor of the file. */
struct whit_gguf_import {
    whit_ggml_view view; /* view.data NULL: the elements are `values`, or all `constant` */
    whit_ggml_twin twin;
    float inverse; /* 1 / s if a float matrix with elements {-s, 0, s} is read as ternary codes */
    float constant;
    const float *values; /* elements of a vector that was computed; NULL: `view` or `constant` gives them */
    uint8_t form;        /* whit_import_form */
    const struct whit_gguf_importer *importer;
    const whit_gguf_tensor *file;
};

#define WHIT_GGUF_SIGN_WIDTHS_MAX 8

/* Holds the rotated matrices of a file (import_gguf_hadamard.c). */
struct whit_gguf_rotation {
    bool *is_rotated;  /* (tensors of the file) whether each tensor is rotated; NULL: no tensor is rotated */
    uint32_t plain;    /* bits (model/hadamard.h) of the matrices that are not rotated in at least one layer */
    bool groups_heads; /* the importer reorders value heads of delta rules: tiled in the file, grouped by key head in
                        * the model */
    float *signs;      /* (n_signs) the signs of each width, concatenated */
    size_t n_signs;
    uint32_t widths[WHIT_GGUF_SIGN_WIDTHS_MAX], n_widths;
};

struct whit_gguf_importer {
    whit_gguf *gguf;
    struct whit_gguf_rotation rotation;
    struct whit_gguf_import *tensors; /* capacity is fixed before the first use, so that addresses of elements do not
                                       * change */
    size_t n_tensors, capacity;
};

whit_status whit_import_gguf_bert(const whit_gguf_keys *keys, whit_config *config);
whit_status whit_import_gguf_gemma_embedding(const whit_gguf_keys *keys, whit_config *config);
/* Reads the configuration of embedding and rerank models, for any architecture. */
whit_status whit_import_gguf_vectors(const whit_gguf_keys *keys, const whit_gguf_architecture *architecture,
                                     whit_config *config);
/* Writes the pooling, and the template of a rerank model, into the metadata. */
void whit_import_gguf_pooling(const whit_gguf *gguf, whit_table_builder *meta);
whit_status whit_import_gguf_gemma3(const whit_gguf_keys *keys, whit_config *config);
whit_status whit_import_gguf_gemma4(const whit_gguf_keys *keys, whit_config *config);

/* Returns the architecture with that name; NULL if it is unknown. */
const whit_gguf_architecture *whit_gguf_find_architecture(const char *name, size_t n);
/* Returns whether RoPE pairs are adjacent rows in files of an architecture, which may be unknown. */
bool whit_gguf_is_permuted(const char *name, size_t n);
/* Returns the table row for a tensor of ours, for export; NULL if GGUF has no name for it. architecture NULL: searches
 * only the common tables. *layer: UINT32_MAX for a tensor outside layers. */
const whit_import_name *whit_gguf_find_row(const whit_gguf_architecture *architecture, const char *ours,
                                           uint32_t *layer);
/* Returns the first row of the group of rows that are parts of the same tensor in the file as `row`. */
const whit_import_name *whit_gguf_first_row(const whit_gguf_architecture *architecture, const whit_import_name *row);
/* Writes the name that the tensor of a table row has in files. */
void whit_gguf_row_name(const whit_import_name *row, uint32_t layer, char out[96]);
/* Translates a tensor's name to its GGUF name by the tables that all architectures share, such as "layers.0.q" to
 * "blk.0.attn_q.weight". *rotary: whether its rows are rotated by RoPE. Returns false if GGUF has no name for it. */
bool whit_gguf_tensor_name(const char *ours, char out[96], bool *rotary);

/* Refuses files with a key that the importer does not know and that may affect the computation; the error
 * (WHIT_ERROR_UNSUPPORTED) names the key. */
whit_status whit_import_gguf_keys(const whit_gguf *gguf, whit_source *source,
                                  const whit_gguf_architecture *architecture, whit_error *error);
whit_status whit_import_gguf_tensors(whit_source *source, struct whit_gguf_importer *importer,
                                     const whit_gguf_architecture *architecture, whit_error *error);
/* Adds a vector whose elements are all `value`. */
whit_status whit_import_gguf_constant(whit_source *source, struct whit_gguf_importer *importer, const char *name,
                                      uint32_t n, float value, whit_error *error);
/* Adds a vector of n values; `values` must stay valid as long as the importer. */
whit_status whit_import_gguf_vector(whit_source *source, struct whit_gguf_importer *importer, const char *name,
                                    const float *values, uint32_t n, whit_error *error);

/* Reads the keys of rotated matrices into the configuration and into `rotation`, which the caller has zeroed. The
 * caller closes `rotation`, also after a failure. */
whit_status whit_import_gguf_hadamard(const whit_gguf *gguf, whit_source *source, struct whit_gguf_rotation *rotation,
                                      whit_error *error);
void whit_import_gguf_close_rotation(const whit_gguf *gguf, struct whit_gguf_rotation *rotation);
/* Returns whether whit_import_gguf_hadamard reads the key with this name. */
bool whit_import_gguf_is_of_hadamard(const char *name, size_t n);
/* Records whether a tensor of ours, read from the file's tensor number `file`, is rotated. Refuses a rotation of
 * matrices that cannot be rotated, and of a matrix that is rotated in some layers only. */
whit_status whit_import_gguf_rotate(whit_source *source, struct whit_gguf_importer *importer, size_t file,
                                    const whit_source_tensor *tensor, whit_error *error);
/* Adds the vectors of signs of rotated matrices. */
whit_status whit_import_gguf_signs(whit_source *source, struct whit_gguf_importer *importer, whit_error *error);
whit_status whit_import_gguf_tokenizer(whit_source *source, const whit_gguf *gguf, whit_error *error);

#endif
