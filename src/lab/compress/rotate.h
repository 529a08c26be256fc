/* SPDX-License-Identifier: MIT
 * Rotates the values of attention, which costs nothing when the model runs: within each head they are rotated by a
 * Hadamard matrix R, which is multiplied into the matrices on both sides, R W_v and W_o R^-1. Rotated weights are
 * nearer to a normal distribution, so that levels which a whole group shares fit them better (QuaRot, Ashkboos et al.
 * 2024). But a rotation also hides columns that stand out, so both variants are tried and the better one is kept.
 *
 * During the trial there are two variants of v and o: one in the stream, the other here. */
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
    float *original[WHIT_ROTATED_COUNT];        /* weights of the variant that is not in the stream */
    float *values[WHIT_ROTATED_COUNT];          /* rounded values of these weights */
    whit_finished finished[WHIT_ROTATED_COUNT]; /* packed matrices of this variant; the name is empty if a matrix is
                                                 * absent */
} whit_rotation;

/* Finds v and o of the stream's current layer. Returns false if the layer lacks them, or if a rotation cannot be
 * multiplied into them exactly: there must be nothing but attention between them, no bias of v, no other node that
 * reads the outputs of v or of attention or uses the two matrices, and a sum after o. */
bool whit_rotation_find(whit_stream *stream, whit_rotation *rotation);
/* Computes the rotated weights of the matrices that whit_rotation_find has found. The caller closes the rotation, even
 * after a failure. */
whit_status whit_rotation_open(whit_rotation *rotation, whit_error *error);
void whit_rotation_close(whit_rotation *rotation); /* accepts a zero-initialised rotation; the variant in the stream
                                                    * stays there */

/* Exchanges the original side's weights of v and o in the stream with those here. The original model then computes the
 * same result except for rounding. */
void whit_rotation_swap_originals(whit_rotation *rotation);
/* Exchanges the rounded values and the packed form of matrix i (v or o) with those here. */
void whit_rotation_swap_rounded(whit_rotation *rotation, int i, whit_finished *finished);
/* Computes *error_sum: the sum of the squared losses of the residual stream after o over the held-out windows, or over
 * all windows if none are held out. Errors: memory, io (a rank has failed). */
whit_status whit_rotation_measure(const whit_rotation *rotation, double *error_sum, whit_error *error);

#endif
