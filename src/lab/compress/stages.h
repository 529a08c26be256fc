/* SPDX-License-Identifier: MIT
 * The stages of a layer: matrices that read one input are solved together, against one Hessian. */
#ifndef WHIT_COMPRESS_STAGES_H
#define WHIT_COMPRESS_STAGES_H

#include "compress/stream.h"

enum { WHIT_STAGE_MATRICES_MAX = 8 };

typedef struct whit_layer_stage {
    whit_ref input;
    int32_t params[WHIT_STAGE_MATRICES_MAX];
    whit_ref outputs[WHIT_STAGE_MATRICES_MAX];
    uint32_t n;
    uint32_t n_experts; /* number of experts whose stacked matrices these are; 0: matrices of all tokens */
} whit_layer_stage;

/* Finds the next stage of the stream's layer from node *at on; false after the last stage. */
bool whit_layer_next_stage(const whit_stream *stream, uint32_t *at, whit_layer_stage *stage);

#endif
