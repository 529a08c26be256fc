/* SPDX-License-Identifier: MIT
 * Parts of the GGUF importer, private to them:
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

/* Holds the keys of a file, "ARCHITECTURE.SUFFIX". Getters leave *value unchanged if the key is absent. */
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

/* Names the layers of an architecture that have experts. */
typedef enum whit_gguf_experts {
    WHIT_GGUF_NO_EXPERTS,
    WHIT_GGUF_EXPERTS,          /* in place of the feed-forward part, in layers from leading_dense_block_count on */
    WHIT_GGUF_EXPERTS_BY_LAYER, /* the same, but only in layers that have a router */
    WHIT_GGUF_EXPERTS_BESIDE,   /* all layers, in addition to the feed-forward part, in models that have experts */
} whit_gguf_experts;

typedef struct whit_gguf_architecture {
    const char *name, *family;
    bool permuted; /* the two elements of a RoPE pair are adjacent */
    bool bitnet;   /* ternary matrices are W1.58A8 regardless of their type in the file */
    bool sub_norm, qk_norm, attn_bias, norm_after_rope;
    bool is_encoder; /* tokens attend to both sides */
    uint8_t gate;
    uint32_t no_rope_interval; /* every n-th layer is without RoPE; 0: all layers have RoPE */
    uint32_t full_interval;    /* every n-th layer attends to all positions if there is a window */
    /* theta of layers with a window if no key states it; 0: theta of the other layers */
    double local_theta;
    uint8_t experts;                   /* whit_gguf_experts */
    bool scales_full_only;             /* layers with a window have unscaled RoPE */
    const whit_import_name *names;     /* tensors in addition to the common ones */
    const whit_import_number *numbers; /* keys of the configuration's optional numbers */
    const char *const *keys;           /* further keys that are read; NULL ends the list */
    /* Reads fields specific to this architecture, after all others; the member is NULL if there are no such fields. */
    whit_status (*finish)(const whit_gguf_keys *keys, whit_config *config);
} whit_gguf_architecture;

/* Read the RoPE tables and, after them, the layers that differ, which become kinds. */
whit_status whit_import_gguf_ropes(const whit_gguf_keys *keys, const whit_gguf_architecture *architecture,
                                   whit_config *config);
whit_status whit_import_gguf_layers(const whit_gguf_keys *keys, const whit_gguf_architecture *architecture,
                                    whit_config *config);

/* Reads the numbers of experts; sets the width of the feed-forward part to 0 in layers with experts. */
whit_status whit_import_gguf_experts(const whit_gguf_keys *keys, const whit_gguf_architecture *architecture,
                                     whit_config *config);
/* Returns whether whit_import_gguf_experts reads a key; `name` is the key without its architecture. */
bool whit_import_gguf_is_of_experts(const char *name, size_t n);

/* Describes one tensor of the file, ready to be read row by row. */
struct whit_gguf_import {
    whit_ggml_view view; /* view.data NULL: every element is `constant` */
    whit_ggml_twin twin;
    float inverse; /* 1 / s, if a float matrix of {-s, 0, s} is read as its signs */
    float constant;
    const float *values; /* elements of a computed vector; NULL: they are read from the file */
    uint8_t form;        /* whit_import_form */
    const struct whit_gguf_importer *importer;
    const whit_gguf_tensor *file;
};

#define WHIT_GGUF_SIGN_WIDTHS_MAX 8

/* Holds the rotated matrices of a file (import_gguf_hadamard.c). */
struct whit_gguf_rotation {
    bool *is_rotated;  /* (tensors of the file) whether each is rotated; NULL: no tensor is rotated */
    uint32_t plain;    /* bits of the matrices that are not rotated (model/hadamard.h) */
    bool groups_heads; /* value heads of delta rules, tiled in the file, are grouped in the model */
    float *signs;      /* (n_signs) the signs of each width, concatenated */
    size_t n_signs;
    uint32_t widths[WHIT_GGUF_SIGN_WIDTHS_MAX], n_widths;
};

struct whit_gguf_importer {
    whit_gguf *gguf;
    struct whit_gguf_rotation rotation;
    struct whit_gguf_import *tensors; /* capacity is fixed before the first use, so that addresses do not change */
    size_t n_tensors, capacity;
};

whit_status whit_import_gguf_bert(const whit_gguf_keys *keys, whit_config *config);
whit_status whit_import_gguf_gemma_embedding(const whit_gguf_keys *keys, whit_config *config);
/* Reads the numbers of embedding and rerank models, whatever the architecture. */
whit_status whit_import_gguf_vectors(const whit_gguf_keys *keys, const whit_gguf_architecture *architecture,
                                     whit_config *config);
/* Writes the pooling, and the template of a rerank model, into the metadata. */
void whit_import_gguf_pooling(const whit_gguf *gguf, whit_table_builder *meta);
whit_status whit_import_gguf_gemma3(const whit_gguf_keys *keys, whit_config *config);
whit_status whit_import_gguf_gemma4(const whit_gguf_keys *keys, whit_config *config);

/* Returns the architecture with that name; NULL if it is unknown. */
const whit_gguf_architecture *whit_gguf_find_architecture(const char *name, size_t n);
/* Returns whether files of an architecture, known or not, have adjacent RoPE pairs. */
bool whit_gguf_is_permuted(const char *name, size_t n);
/* Returns the row for a tensor of ours in an architecture's tables (NULL: only the common ones), for export; NULL if
 * GGUF has no name for it. *layer: UINT32_MAX for a tensor outside layers. */
const whit_import_name *whit_gguf_find_row(const whit_gguf_architecture *architecture, const char *ours,
                                           uint32_t *layer);
/* Returns the first row for the file's tensor of which `row` is a part. */
const whit_import_name *whit_gguf_first_row(const whit_gguf_architecture *architecture, const whit_import_name *row);
/* Writes the name that a row's tensor has in files. */
void whit_gguf_row_name(const whit_import_name *row, uint32_t layer, char out[96]);
/* Translates a tensor's name by the tables that all architectures share, such as "layers.0.q" to "blk.0.attn_q.weight".
 * *rotary: whether its rows are RoPE pairs. Returns false if GGUF has no name for it. */
bool whit_gguf_tensor_name(const char *ours, char out[96], bool *rotary);

/* Refuses a key that may affect the computation and that the importer does not read; the error (unsupported) names
 * it. */
whit_status whit_import_gguf_keys(const whit_gguf *gguf, whit_source *source,
                                  const whit_gguf_architecture *architecture, whit_error *error);
whit_status whit_import_gguf_tensors(whit_source *source, struct whit_gguf_importer *importer,
                                     const whit_gguf_architecture *architecture, whit_error *error);
/* Adds a vector whose elements are all `value`. */
whit_status whit_import_gguf_constant(whit_source *source, struct whit_gguf_importer *importer, const char *name,
                                      uint32_t n, float value, whit_error *error);
/* Adds a vector of n values, which must live as long as the importer. */
whit_status whit_import_gguf_vector(whit_source *source, struct whit_gguf_importer *importer, const char *name,
                                    const float *values, uint32_t n, whit_error *error);

/* Reads the keys of rotated matrices into the configuration and `rotation`, which the caller has zeroed and closes,
 * also after a failure. */
whit_status whit_import_gguf_hadamard(const whit_gguf *gguf, whit_source *source, struct whit_gguf_rotation *rotation,
                                      whit_error *error);
void whit_import_gguf_close_rotation(const whit_gguf *gguf, struct whit_gguf_rotation *rotation);
/* Returns whether whit_import_gguf_hadamard reads a key. */
bool whit_import_gguf_is_of_hadamard(const char *name, size_t n);
/* Records whether a tensor, part of the file's tensor number `file`, is rotated; refuses matrices that cannot be
 * rotated, or that are rotated in some layers only. */
whit_status whit_import_gguf_rotate(whit_source *source, struct whit_gguf_importer *importer, size_t file,
                                    const whit_source_tensor *tensor, whit_error *error);
/* Adds the vectors of signs of rotated matrices. */
whit_status whit_import_gguf_signs(whit_source *source, struct whit_gguf_importer *importer, whit_error *error);
whit_status whit_import_gguf_tokenizer(whit_source *source, const whit_gguf *gguf, whit_error *error);

#endif
