/* SPDX-License-Identifier: MIT
 * Tables of names that importers have for each family: tensors, with the use of their rows, and numbers.
 * A family's own rows are looked at before the common ones. */
#ifndef WHIT_MODEL_IMPORT_NAMES_H
#define WHIT_MODEL_IMPORT_NAMES_H

#include "model/source.h"

/* Which rows of a tensor of the file a canonical tensor is. */
typedef enum whit_import_rows {
    WHIT_IMPORT_ALL,
    WHIT_IMPORT_Q, /* a part of q, k and v, which follow each other */
    WHIT_IMPORT_K,
    WHIT_IMPORT_V,
    WHIT_IMPORT_GATE, /* a part of gate and up */
    WHIT_IMPORT_UP,
    WHIT_IMPORT_HEAD_FIRST, /* the first of two blocks of head_dim rows for each head of q; the second */
    WHIT_IMPORT_HEAD_SECOND,
} whit_import_rows;

typedef struct whit_import_name {
    const char *theirs; /* the name after "layers.N." or "blk.N.", or a whole name outside layers */
    const char *ours;   /* the same with us; NULL: the tensor is passed over */
    uint8_t rows;       /* whit_import_rows; the rows of one tensor follow each other in a table */
    bool is_projection; /* a matrix of a layer, which may be quantised */
    bool is_rotary;     /* its rows hold RoPE pairs */
    bool keeps_value;   /* a norm that multiplies by w where the family's others multiply by 1 + w */
} whit_import_name;

/* A number of a file and the optional number of the configuration that it is. */
typedef struct whit_import_number {
    const char *theirs, *ours;
} whit_import_number;

/* The first row for a name in a family's table (may be NULL), else in the common one; both end with a row of NULL. */
const whit_import_name *whit_import_find_name(const whit_import_name *own, const whit_import_name *common,
                                              const char *theirs);
/* The row after it for the same tensor, or NULL. */
const whit_import_name *whit_import_next_name(const whit_import_name *row);

/* Makes a tensor, so far of all rows of the file's, the part that `rows` names, by the sizes of its layer. */
whit_status whit_import_split(const whit_source *source, whit_source_tensor *tensor, uint32_t layer, uint8_t rows,
                              whit_error *error);

/* Reads "PREFIX.N." in one spelling of N below n_layers: what follows, or NULL. */
const char *whit_import_layer(const char *name, const char *prefix, uint32_t n_layers, uint32_t *layer);

#endif
