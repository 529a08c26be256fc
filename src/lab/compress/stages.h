/* SPDX-License-Identifier: MIT
 * Divides a layer into stages: matrices with the same input, which are solved together with one Hessian. */
#ifndef WHIT_COMPRESS_STAGES_H
#define WHIT_COMPRESS_STAGES_H

#include "compress/stream.h"

enum { WHIT_STAGE_MATRICES_MAX = 8 };

typedef struct whit_layer_stage {
    whit_ref input;
    int32_t params[WHIT_STAGE_MATRICES_MAX];
    whit_ref outputs[WHIT_STAGE_MATRICES_MAX];
    uint32_t n;
    uint32_t n_experts; /* number of experts whose matrices these tensors contain; 0: the matrices are used for all
                         * tokens */
} whit_layer_stage;

/* Finds the next stage of the stream's current layer, beginning at node *at, which is advanced. Returns false after the
 * last stage. */
bool whit_layer_next_stage(const whit_stream *stream, uint32_t *at, whit_layer_stage *stage);

/* Finds the residual stream that the output of the stage's only matrix is added to; for experts, the residual stream
 * that the sum over a token's experts is added to. *residual is 0 if the stage has several matrices, if the output is
 * not added to anything, or if the other summand is computed from the output. Errors: memory. */
whit_status whit_stage_residual(const whit_stream *stream, const whit_layer_stage *stage, whit_ref *residual,
                                whit_error *error);

#endif
