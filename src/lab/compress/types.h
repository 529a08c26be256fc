/* SPDX-License-Identifier: MIT
 * Chooses the type of each tensor of a compressed model: the codec of its matrices, and the size of their corrections
 * within the codec's budget of bits. */
#ifndef WHIT_COMPRESS_TYPES_H
#define WHIT_COMPRESS_TYPES_H

#include "compress/budget.h"
#include "compress/compress.h"
#include "compress/correct.h"

typedef struct whit_compress_types {
    const whit_source *source;
    const whit_compress_options *options;
    unsigned stages;
    const whit_budget_choice *choices; /* (n_tensors) of a budget (budget.h); NULL: the options' codecs */
    double plane_share, outlier_share; /* plane columns over columns, outliers over weights; 0: no plane, no outliers */
    uint32_t rank;
} whit_compress_types;

/* Returns whether the tensor is a matrix to which the codec applies: all matrices of the layers except a few small ones
 * that control them. */
bool whit_compress_is_layer_matrix(const whit_source_tensor *tensor);
/* Finds the type of a layer's matrix in the finished file. */
whit_status whit_compress_type_of(const whit_compress_types *types, const whit_source_tensor *tensor,
                                  whit_tensor_type *type, whit_error *error);
/* Returns whether the type is rounded by the solver rather than plainly. */
bool whit_compress_is_solved(const whit_tensor_type *type);
/* Returns the number of columns that stay together when columns are ordered: a group, or a superblock whose groups
 * share factors. */
uint32_t whit_compress_walk_group(const whit_tensor_type *type);
/* Checks that source and options fit together. */
whit_status whit_compress_types_check(const whit_compress_types *types, whit_error *error);
/* Sets the shares and the rank: what the budget leaves goes to the sign plane, then to the low-rank pair, then to
 * outliers, the same share for every matrix. Explicitly requested sizes do not count against the budget. */
void whit_compress_find_corrections(whit_compress_types *types);
whit_correction_sizes whit_compress_correction_sizes(const whit_compress_types *types, const whit_source_tensor *tensor,
                                                     const whit_tensor_type *type);
/* Returns the bits of a matrix with corrections of these sizes, scales and padding counted. */
double whit_compress_matrix_bits(const whit_tensor_type *type, const whit_correction_sizes *sizes);

#endif
