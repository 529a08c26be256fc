/* SPDX-License-Identifier: MIT
 * Splits a plan over ranks (several machines): decides which columns of each value a rank computes, and where ranks
 * exchange them.
 *
 * Matrices are split by outputs, attention by KV heads. The values between them that are computed column by column, or
 * head by head, stay split; a *gather* completes a value before the first step that reads whole rows: int8 activations
 * where a matrix reads them and their groups fit the split, else f32 rows. Every number is computed as in one process,
 * so the bits are the same. Norms, sums and look-ups of whole rows run on every rank.
 *
 * A split value is cut into units: KV heads, value heads of a delta rule, or equal numbers of columns. Each rank
 * computes consecutive units. The input of a delta rule, [queries | keys | values] of its heads, is not cut into units:
 * a rank computes and convolves the columns that its own value heads read (whit_split_channels). */
#ifndef WHIT_MODEL_PLAN_SPLIT_H
#define WHIT_MODEL_PLAN_SPLIT_H

#include "kv/cache.h"
#include "model/plan.h"

/* Marks the steps of a plan that are split over ranks, and inserts the gathers. It must be called before phases are
 * made. The only possible error is a failed allocation. */
whit_status whit_plan_split(whit_plan *plan, whit_error *error);

/* Returns whether a step on columns needs whole rows of its second input: the weights of experts (COMBINE), or the
 * row's gate (SCALE_ROWS). */
static inline bool whit_split_reads_row(const whit_plan_step *step)
{
    return step->op == WHIT_PLAN_COMBINE || step->op == WHIT_PLAN_SCALE_ROWS;
}

/* Returns the units [begin, end) of n that this rank computes: its share, or one unit if its share is empty, so that
 * every rank has KV heads. */
whit_columns whit_split_units(const whit_ranks *ranks, uint32_t n);
/* Returns the columns of a value that this rank computes; all columns if the value is not split. */
whit_columns whit_split_columns(const whit_ranks *ranks, const whit_plan_value *value);
/* Returns the columns of a split value that `rank` sends to the other ranks; an empty range if its share is empty. */
whit_columns whit_split_share(const whit_ranks *ranks, uint32_t rank, const whit_plan_value *value);
/* Returns the number of bytes of one row of a rank's share. A row of int8 activations consists of codes, then scales,
 * then sums. */
size_t whit_split_row_bytes(const whit_plan_value *value, whit_columns share);

enum { WHIT_SPLIT_RANGES = 3 };
/* Sets `ranges` to the channels that this rank convolves, in ascending order; unused ranges are empty. Only a
 * convolution that is split by the heads of a delta rule has several ranges. Otherwise the first range has the columns
 * of the output that this rank computes; if ranks is NULL, all channels. */
void whit_split_channels(const whit_ranks *ranks, const whit_plan *plan, const whit_plan_step *convolution,
                         whit_columns ranges[WHIT_SPLIT_RANGES]);

/* Reduces each layer's heads and recurrent state to the part that this rank of a split plan computes. */
void whit_split_kv_layers(const whit_ranks *ranks, const whit_plan *plan, whit_kv_layer *layers, uint32_t n_layers);

#endif
