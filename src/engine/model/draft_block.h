/* SPDX-License-Identifier: MIT
 * The block of a model that predicts one more token (multi-token prediction), as a draft model of its own: the layer
 * after the last one, with the model's embedding and head (docs/dev/drafts.md). */
#ifndef WHIT_MODEL_DRAFT_BLOCK_H
#define WHIT_MODEL_DRAFT_BLOCK_H

#include "model/graph.h"

/* Sets the configuration of the model's block: its layer is the last one, and has the number that its tensors have.
 * False if the model has no block, or not its tensors. */
bool whit_draft_block_config(const whit_config *config, const whit_resolver *resolver, whit_config *block);

/* Calls `visit` for each tensor that the block's graph reads; no effect for a model without a block. Errors are
 * those of the graph, or of visit. */
whit_status whit_draft_block_visit(const whit_config *config, const whit_resolver *resolver,
                                   void (*visit)(void *user, int32_t tensor), void *user,
                                   const whit_allocator *allocator, whit_error *error);

#endif
