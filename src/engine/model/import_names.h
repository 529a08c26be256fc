/* SPDX-License-Identifier: MIT
 * Tables of names that importers have for each family: names of tensors, with the use of their rows, and names of
 * numbers. A family's own table is searched before the common one. */
#ifndef WHIT_MODEL_IMPORT_NAMES_H
#define WHIT_MODEL_IMPORT_NAMES_H

#include "format/ggml_types.h"
#include "model/source.h"

/* Names the rows of a file's tensor that form a canonical tensor. */
typedef enum whit_import_rows {
    WHIT_IMPORT_ALL,
    WHIT_IMPORT_Q, /* q of the stacked matrix of q, k and v */
    WHIT_IMPORT_K,
    WHIT_IMPORT_V,
    WHIT_IMPORT_GATE, /* gate of the stacked matrix of gate and up */
    WHIT_IMPORT_UP,
    WHIT_IMPORT_HEAD_FIRST, /* the first of two blocks of head_dim rows for each head of q */
    WHIT_IMPORT_HEAD_SECOND,
    WHIT_IMPORT_THIRD_1, /* the first of three stacked matrices of n_embd rows each */
    WHIT_IMPORT_THIRD_2,
    WHIT_IMPORT_THIRD_3,
    /* all q, all k, all v of a matrix that has rows of q, k, v and z for each key head in turn */
    WHIT_IMPORT_QKVZ_MIXED,
    WHIT_IMPORT_QKVZ_Z, /* all z of that matrix */
    /* all b of a matrix that has rows of b and a of the value heads for each key head in turn */
    WHIT_IMPORT_BA_BETA,
    WHIT_IMPORT_BA_DECAY,     /* all a of that matrix */
    WHIT_IMPORT_ROW,          /* a vector stored as a matrix of one row */
    WHIT_IMPORT_COLUMNS_EVEN, /* every second column of a matrix, from the first on */
    WHIT_IMPORT_COLUMNS_ODD,  /* every second column of a matrix, from the second on */
    WHIT_IMPORT_ONE_EXPERT,   /* the matrix of one expert, whose number is at the "*" of `theirs` */
    WHIT_IMPORT_EXPERTS,      /* the matrices of all experts of a layer, (experts, rows, columns) */
    WHIT_IMPORT_EXPERTS_GATE, /* each expert's first half of rows, from the matrices of all experts */
    WHIT_IMPORT_EXPERTS_UP,   /* each expert's second half of rows */
    WHIT_IMPORT_EXPERTS_EVEN, /* every second row of each expert, from the first on */
    WHIT_IMPORT_EXPERTS_ODD,  /* every second row of each expert, from the second on */
    WHIT_IMPORT_POSITIONS,    /* the last n_positions rows */
} whit_import_rows;

/* Names the conversion of the elements of a file's tensor to canonical ones, in addition to the order of rows. */
typedef enum whit_import_form {
    WHIT_IMPORT_AS_IS,
    WHIT_IMPORT_TAPS,       /* taps of a convolution, ordered by channel, become a vector ordered by tap */
    WHIT_IMPORT_NEG_EXP,    /* -exp(x) */
    WHIT_IMPORT_MXFP4,      /* "..._blocks" (.., columns / 32, 16) of nibbles, with "..._scales" (.., columns / 32) */
    WHIT_IMPORT_TRANSPOSED, /* floats (experts, columns, rows) */
} whit_import_form;

/* Names the part of a tensor that is ordered by the value heads of a delta rule. Hugging Face folders group the heads
 * by key head; the canonical order, which is also GGUF's, is tiled: value head j uses key head j mod n_key_heads. */
typedef enum whit_import_order {
    WHIT_IMPORT_UNORDERED,
    WHIT_IMPORT_MIXED,   /* rows that follow those of queries and keys, value_dim for each head */
    WHIT_IMPORT_VALUES,  /* rows, value_dim for each head */
    WHIT_IMPORT_HEADS,   /* rows, one for each head */
    WHIT_IMPORT_COLUMNS, /* columns, value_dim for each head */
} whit_import_order;

typedef struct whit_import_name {
    const char *theirs; /* name in the file after "layers.N." or "blk.N.", or a whole name outside layers */
    const char *ours;   /* the canonical name; NULL: the tensor is skipped */
    uint8_t rows;       /* whit_import_rows; the table's rows for one tensor are adjacent */
    bool is_projection; /* a matrix of a layer, which may be quantised */
    bool is_rotary;     /* the tensor's rows form RoPE pairs */
    uint8_t form;       /* whit_import_form */
    uint8_t order;      /* whit_import_order */
    bool keeps_value;   /* a norm that multiplies by w, while the family's other norms multiply by 1 + w */
} whit_import_name;

/* Holds the name of a number in a file, and that of the configuration's optional number. */
typedef struct whit_import_number {
    const char *theirs, *ours;
} whit_import_number;

/* Returns the first row for a name in a family's table `own` (may be NULL), else in the common one. Both tables end
 * with a row of NULL. */
const whit_import_name *whit_import_find_name(const whit_import_name *own, const whit_import_name *common,
                                              const char *theirs);
/* Returns the next row for the same tensor, or NULL. */
const whit_import_name *whit_import_next_name(const whit_import_name *row);

/* Returns whether a tensor holds the matrices of all experts of a layer, or parts of them. */
static inline bool whit_import_has_experts(uint8_t rows)
{
    return rows >= WHIT_IMPORT_EXPERTS && rows <= WHIT_IMPORT_EXPERTS_ODD;
}
/* Replaces the number in "...experts.N..." by "*" in `pattern`; returns false if the name has no such number. */
bool whit_import_expert(const char *name, char pattern[96], uint32_t *expert);

/* Returns whether a layer does not use a tensor that files may contain: the matrices of keys and values of a layer that
 * reads those of another layer. */
bool whit_import_is_unused(const whit_config *config, uint32_t layer, const char *ours);

/* Narrows a tensor, which so far has all rows of the file's tensor, to the part that `rows` names, by the sizes of its
 * layer. */
whit_status whit_import_split(const whit_source *source, whit_source_tensor *tensor, uint32_t layer, uint8_t rows,
                              whit_error *error);

/* Declares that a tensor has the order of value heads of Hugging Face folders. Returns WHIT_ERROR_FORMAT if its sizes
 * do not match. */
whit_status whit_import_order_heads(const whit_source *source, whit_source_tensor *tensor, uint8_t order,
                                    whit_error *error);

/* Reads the taps of a convolution, which files order by channel, into a vector ordered by tap. */
void whit_import_read_taps(const whit_source_tensor *tensor, const whit_ggml_view *view, float *values);

/* Replaces the layers' kinds by kinds[n_layers]. Returns the errors of whit_config_set_kind. */
whit_status whit_import_set_kinds(whit_config *config, const whit_layer_kind *kinds, const char *path,
                                  whit_error *error);

/* Parses "PREFIX.N." with canonical N below n_layers; returns the rest of the name, or NULL. */
const char *whit_import_layer(const char *name, const char *prefix, uint32_t n_layers, uint32_t *layer);

#endif
