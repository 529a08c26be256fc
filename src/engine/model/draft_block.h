/* SPDX-License-Identifier: MIT
 * Uses the draft block of a model, which predicts one more token (multi-token prediction), as a separate draft model.
 * The block consists of the layer after the last one, with the model's embedding and head (docs/dev/drafts.md). */
#ifndef WHIT_MODEL_DRAFT_BLOCK_H
#define WHIT_MODEL_DRAFT_BLOCK_H

#include "model/graph.h"

/* Sets *block to the configuration of the model's draft block: its only layer has number config->n_layers, as in the
 * names of its tensors. Returns false if the model has no draft block, lacks its tensors, or has a program of its
 * own. */
bool whit_draft_block_config(const whit_config *config, const whit_resolver *resolver, whit_config *block);

/* Calls `visit` with the index of every weight and bias in the graph of the draft block, -1 for an absent one; does
 * nothing for a model without a draft block. Returns the errors of building the graph. */
whit_status whit_draft_block_visit(const whit_config *config, const whit_resolver *resolver,
                                   void (*visit)(void *user, int32_t tensor), void *user,
                                   const whit_allocator *allocator, whit_error *error);

#endif
