/* SPDX-License-Identifier: MIT
 * Finds a rotation that costs nothing when the model runs: values of attention are rotated within each head by a
 * Hadamard matrix R, which is folded into the matrices on both sides, R W_v and W_o R^-1. Weights that are nearer to a
 * normal distribution lose less to levels that are the same for a whole group (QuaRot, Ashkboos et al. 2024). Whether
 * the layer loses less is tried, since a rotation also hides the columns that stand out.
 *
 * Both variants of v and o are kept during the trial: one is on the stream, the other here. */
#ifndef WHIT_COMPRESS_ROTATE_H
#define WHIT_COMPRESS_ROTATE_H

#include "compress/finished.h"
#include "compress/stream.h"

enum { WHIT_ROTATED_V, WHIT_ROTATED_O, WHIT_ROTATED_COUNT };

typedef struct whit_rotation {
    whit_stream *stream;
    uint32_t head_dim;
    whit_ref sum;                               /* the residual stream after o */
    int32_t params[WHIT_ROTATED_COUNT];         /* v, o */
    float *original[WHIT_ROTATED_COUNT];        /* weights of the variant that is not on the stream */
    float *values[WHIT_ROTATED_COUNT];          /* the rounded values of these weights */
    whit_finished finished[WHIT_ROTATED_COUNT]; /* the packed matrices; an empty name: absent */
} whit_rotation;

/* Finds v and o of the stream's layer if a rotation can be folded into them exactly: nothing but attention lies between
 * them, values have no bias, and nothing else reads the two matrices. The result is false if the layer has no such
 * pair. */
bool whit_rotation_find(whit_stream *stream, whit_rotation *rotation);
/* Computes the rotated weights of the matrices that were found. */
whit_status whit_rotation_open(whit_rotation *rotation, whit_error *error);
void whit_rotation_close(whit_rotation *rotation); /* accepts a zero-initialised rotation; the stream keeps its
                                                    * variant */

/* Exchanges the original's weights of v and o with those kept here; the original then computes the same result except
 * for rounding. */
void whit_rotation_swap_originals(whit_rotation *rotation);
/* Exchanges the rounded values and codes of matrix i (v, o) with those kept here. */
void whit_rotation_swap_rounded(whit_rotation *rotation, int i, whit_finished *finished);
/* Measures *error_sum: squared losses of the residual stream after o over the held-out windows, or over all windows if
 * no window is held out. Errors: memory, io (a rank is lost). */
whit_status whit_rotation_measure(const whit_rotation *rotation, double *error_sum, whit_error *error);

#endif
