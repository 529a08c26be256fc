/* SPDX-License-Identifier: MIT
 * Divides a layer into stages: matrices that read one input are solved together, against one Hessian. */
#ifndef WHIT_COMPRESS_STAGES_H
#define WHIT_COMPRESS_STAGES_H

#include "compress/stream.h"

enum { WHIT_STAGE_MATRICES_MAX = 8 };

typedef struct whit_layer_stage {
    whit_ref input;
    int32_t params[WHIT_STAGE_MATRICES_MAX];
    whit_ref outputs[WHIT_STAGE_MATRICES_MAX];
    uint32_t n;
    uint32_t n_experts; /* number of experts in these stacked matrices; 0: matrices of all tokens */
} whit_layer_stage;

/* Finds the next stage of the stream's layer from node *at on; false after the last stage. */
bool whit_layer_next_stage(const whit_stream *stream, uint32_t *at, whit_layer_stage *stage);

/* Finds the residual stream that the output of the stage's only matrix is added to, or the sum over a token's experts
 * of such outputs. *residual is 0 if the stage has several matrices, if nothing is added, or if what is added is
 * computed from the output itself. Errors: memory. */
whit_status whit_stage_residual(const whit_stream *stream, const whit_layer_stage *stage, whit_ref *residual,
                                whit_error *error);

#endif
