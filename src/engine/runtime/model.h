/* SPDX-License-Identifier: MIT
 * Internals of an open model: the container, its weights, and the graph of its family. A model never changes after it
 * is opened; sessions and developer commands read these fields. */
#ifndef WHIT_RUNTIME_MODEL_H
#define WHIT_RUNTIME_MODEL_H

#include "format/ndf_write.h"
#include "model/config.h"
#include "model/graph.h"
#include "model/weights.h"
#include "runtime/text.h"

typedef struct whit_model_ranks whit_model_ranks;

struct whit_model {
    const whit_allocator *allocator; /* NULL, or the address of own_allocator */
    whit_allocator own_allocator;
    char *path; /* path as the user gave it, or the name from whit_model_set_name; begins error messages */
    whit_ndf *file;
    whit_ndf_writer *in_memory; /* the writer of a converted model that is only in memory; else NULL */
    whit_config config;
    whit_weights weights;
    whit_graph graph;
    bool has_draft_block; /* the model has a block that predicts one more token (model/draft_block.h) */
    bool has_tokenizer;
    whit_tokenizer_view tokenizer;
    whit_tokenizers *tokenizers;
    whit_model_ranks *split; /* the processes that run the model together (split.h); NULL: only this one */
};

/* Opens a model that was just written in memory and committed. Takes ownership of the writer, also on failure. */
whit_status whit_model_open_written(whit_ndf_writer *writer, const char *name, const whit_allocator *allocator,
                                    whit_model **model, whit_error *error);

#endif
