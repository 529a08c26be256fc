/* SPDX-License-Identifier: MIT
 * Declares the tables of names that importers have for each family: names of tensors, with the rows that are used, and
 * names of numbers. A family's own table is searched before the common one. */
#ifndef WHIT_MODEL_IMPORT_NAMES_H
#define WHIT_MODEL_IMPORT_NAMES_H

#include "format/ggml_types.h"
#include "model/source.h"

/* Names which rows (or columns) of a file's tensor form one of our tensors. */
typedef enum whit_import_rows {
    WHIT_IMPORT_ALL,
    WHIT_IMPORT_Q, /* rows of q in the stacked matrix of q, k and v */
    WHIT_IMPORT_K,
    WHIT_IMPORT_V,
    WHIT_IMPORT_GATE, /* rows of gate in the stacked matrix of gate and up */
    WHIT_IMPORT_UP,
    WHIT_IMPORT_HEAD_FIRST, /* the first of every two blocks of head_dim rows */
    WHIT_IMPORT_HEAD_SECOND,
    WHIT_IMPORT_THIRD_1, /* the first of three stacked matrices with n_embd rows each */
    WHIT_IMPORT_THIRD_2,
    WHIT_IMPORT_THIRD_3,
    /* all q, all k, all v of a matrix whose rows are, for each key head in turn, its q, k, v and z */
    WHIT_IMPORT_QKVZ_MIXED,
    WHIT_IMPORT_QKVZ_Z, /* all z of the matrix described at QKVZ_MIXED */
    /* all b of a matrix whose rows are, for each key head in turn, b and then a of its value heads */
    WHIT_IMPORT_BA_BETA,
    WHIT_IMPORT_BA_DECAY,     /* all a of the matrix described at BA_BETA */
    WHIT_IMPORT_ROW,          /* the only row of a vector that is stored as a matrix */
    WHIT_IMPORT_COLUMNS_EVEN, /* every second column, beginning with the first */
    WHIT_IMPORT_COLUMNS_ODD,  /* every second column, beginning with the second */
    WHIT_IMPORT_ONE_EXPERT,   /* the matrix of one expert; its number stands at the "*" of `theirs` */
    WHIT_IMPORT_EXPERTS,      /* all matrices of a tensor (experts, rows, columns) */
    WHIT_IMPORT_EXPERTS_GATE, /* for each expert, the first half of its rows */
    WHIT_IMPORT_EXPERTS_UP,   /* for each expert, the second half of its rows */
    WHIT_IMPORT_EXPERTS_EVEN, /* for each expert, every second row, beginning with the first */
    WHIT_IMPORT_EXPERTS_ODD,  /* for each expert, every second row, beginning with the second */
    WHIT_IMPORT_POSITIONS,    /* the last n_positions rows; earlier rows belong to no position */
} whit_import_rows;

/* Names how elements of a file's tensor are converted to ours. */
typedef enum whit_import_form {
    WHIT_IMPORT_AS_IS,
    WHIT_IMPORT_TAPS,       /* taps of a convolution, ordered by channel in the file, become a vector ordered by tap */
    WHIT_IMPORT_NEG_EXP,    /* x becomes -exp(x) */
    WHIT_IMPORT_MXFP4,      /* MXFP4 codes: tensor "..._blocks" (.., columns / 32, 16), two codes per byte, with scales
                             * "..._scales" (.., columns / 32) */
    WHIT_IMPORT_TRANSPOSED, /* floats (experts, columns, rows), each matrix transposed */
} whit_import_form;

/* Names what part of a tensor is ordered by the value heads of a delta rule. Hugging Face folders group value heads by
 * key head; our order (unless delta_grouped), which is also that of GGUF, is tiled: value head j uses key head j mod
 * n_key_heads. */
typedef enum whit_import_order {
    WHIT_IMPORT_UNORDERED,
    WHIT_IMPORT_MIXED,   /* the rows after those of queries and keys, value_dim rows per head */
    WHIT_IMPORT_VALUES,  /* all rows, value_dim rows per head */
    WHIT_IMPORT_HEADS,   /* all rows, one row per head */
    WHIT_IMPORT_COLUMNS, /* all columns, value_dim columns per head */
} whit_import_order;

typedef struct whit_import_name {
    const char *theirs; /* name in the file after "layers.N." or "blk.N.", or a whole name outside layers */
    const char *ours;   /* our name after "layers.N.", or a whole name; NULL: the tensor is skipped */
    uint8_t rows;       /* whit_import_rows; rows of the table with the same `theirs` must be adjacent */
    bool is_projection; /* a matrix of a layer, which may be quantised */
    bool is_rotary;     /* the tensor's rows are rotated by RoPE in pairs */
    uint8_t form;       /* whit_import_form */
    uint8_t order;      /* whit_import_order */
    bool keeps_value;   /* a norm that multiplies by w in a family whose other norms multiply by 1 + w */
} whit_import_name;

/* Maps the name of a number in a file to the name of an optional number of the configuration. */
typedef struct whit_import_number {
    const char *theirs, *ours;
} whit_import_number;

/* Returns the first table row for a name: in the family's table `own`, else in the common table. Either may be NULL;
 * both tables end with a row whose `theirs` is NULL. */
const whit_import_name *whit_import_find_name(const whit_import_name *own, const whit_import_name *common,
                                              const char *theirs);
/* Returns the following table row if it has the same `theirs`, else NULL. */
const whit_import_name *whit_import_next_name(const whit_import_name *row);

/* Returns whether a tensor contains the matrices of all experts of a layer, or halves of them. */
static inline bool whit_import_has_experts(uint8_t rows)
{
    return rows >= WHIT_IMPORT_EXPERTS && rows <= WHIT_IMPORT_EXPERTS_ODD;
}
/* Copies `name` to `pattern` with the number in "...experts.N..." replaced by "*", and sets *expert to N; returns false
 * if the name has no such number. */
bool whit_import_expert(const char *name, char pattern[96], uint32_t *expert);

/* Returns whether a layer does not use a tensor that files may contain: a layer that attends to the keys and values of
 * an earlier layer uses neither matrices of keys and values nor a norm of keys. */
bool whit_import_is_unused(const whit_config *config, uint32_t layer, const char *ours);

/* Restricts a tensor, which has all rows of the file's tensor, to the rows or columns that `rows` names; the sizes are
 * those of the layer. Returns WHIT_ERROR_FORMAT if the file's tensor has another number of rows than they need. */
whit_status whit_import_split(const whit_source *source, whit_source_tensor *tensor, uint32_t layer, uint8_t rows,
                              whit_error *error);

/* Declares that the part of a file's tensor that `order` names has its value heads grouped by key head, as in Hugging
 * Face folders; does nothing if each key head has only one. Returns WHIT_ERROR_FORMAT if the tensor's sizes do not
 * match. */
whit_status whit_import_order_heads(const whit_source *source, whit_source_tensor *tensor, uint8_t order,
                                    whit_error *error);

/* Reads the weights of a convolution, which files order by channel, into a vector ordered by tap. */
void whit_import_read_taps(const whit_source_tensor *tensor, const whit_ggml_view *view, float *values);

/* Replaces all layer kinds by kinds (n_layers). Returns the errors of whit_config_set_kind. */
whit_status whit_import_set_kinds(whit_config *config, const whit_layer_kind *kinds, const char *path,
                                  whit_error *error);

/* Parses "PREFIX.N.", where N is a number below n_layers without leading zeros; returns the rest of the name, or
 * NULL. */
const char *whit_import_layer(const char *name, const char *prefix, uint32_t n_layers, uint32_t *layer);

#endif
