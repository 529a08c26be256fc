/* SPDX-License-Identifier: MIT
 * Uses the draft block of a model, which predicts one more token (multi-token prediction), as a separate draft model.
 * The block consists of the layer after the last one, with the model's embedding and head (docs/dev/drafts.md). */
#ifndef WHIT_MODEL_DRAFT_BLOCK_H
#define WHIT_MODEL_DRAFT_BLOCK_H

#include "model/graph.h"

/* Sets the configuration of the model's draft block: its only layer is the last one, with the number that is in the
 * names of its tensors. Returns false if the model has no block, or lacks its tensors. */
bool whit_draft_block_config(const whit_config *config, const whit_resolver *resolver, whit_config *block);

/* Calls `visit` for each tensor that the block's graph reads; has no effect for a model without a block. Returns errors
 * of the graph, or of `visit`. */
whit_status whit_draft_block_visit(const whit_config *config, const whit_resolver *resolver,
                                   void (*visit)(void *user, int32_t tensor), void *user,
                                   const whit_allocator *allocator, whit_error *error);

#endif
