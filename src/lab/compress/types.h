/* SPDX-License-Identifier: MIT
 * Chooses the type of each tensor of a compressed model: the codec of its matrices, and the sizes of their corrections
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
    const whit_budget_choice *choices; /* (n_tensors) choices under a budget (budget.h); NULL: the options name the
                                        * codecs */
    double plane_share, outlier_share; /* columns of the sign plane as a share of all columns, outliers as a share of
                                        * all weights; 0: no plane, no outliers */
    uint32_t rank;
} whit_compress_types;

/* Returns whether the tensor is a matrix that the codec applies to: these are all matrices of the layers except those
 * for which whit_trainee_keeps returns true. */
bool whit_compress_is_layer_matrix(const whit_source_tensor *tensor);
/* Finds the type that a layer's matrix has in the finished file. */
whit_status whit_compress_type_of(const whit_compress_types *types, const whit_source_tensor *tensor,
                                  whit_tensor_type *type, whit_error *error);
/* Returns whether matrices of this type are solved, and not only rounded. */
bool whit_compress_is_solved(const whit_tensor_type *type);
/* Returns the number of columns that stay together when columns are ordered: a group, or a superblock if its groups
 * share factors. */
uint32_t whit_compress_walk_group(const whit_tensor_type *type);
/* Checks that the source and the options are compatible. */
whit_status whit_compress_types_check(const whit_compress_types *types, whit_error *error);
/* Sets plane_share, outlier_share and rank. The bits that the codec's budget leaves are given first to the sign plane,
 * then to the low-rank pair, then to outliers, with the same shares for every matrix. Sizes that the options request
 * are used even if they exceed the budget. */
void whit_compress_find_corrections(whit_compress_types *types);
whit_correction_sizes whit_compress_correction_sizes(const whit_compress_types *types, const whit_source_tensor *tensor,
                                                     const whit_tensor_type *type);
/* Returns the number of bits of a matrix with corrections of these sizes, including scales and padding. */
double whit_compress_matrix_bits(const whit_tensor_type *type, const whit_correction_sizes *sizes);

#endif
