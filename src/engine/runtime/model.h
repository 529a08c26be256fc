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
    const whit_allocator *allocator; /* address of own_allocator; NULL: the default allocator */
    whit_allocator own_allocator;
    char *path; /* path as the caller gave it, or the name from whit_model_set_name; error messages begin with it */
    whit_ndf *file;
    whit_ndf_writer *in_memory; /* writer of a converted model that exists only in memory; else NULL */
    whit_config config;
    whit_weights weights;
    whit_graph graph;
    bool has_draft_block; /* the model has a block that predicts one more token (model/draft_block.h) */
    bool has_tokenizer;
    whit_tokenizer_view tokenizer;
    whit_tokenizers *tokenizers;
    whit_model_ranks *split; /* processes that run the model together (split.h); NULL: only this process */
};

/* Opens a model that was written in memory and committed. The model owns the writer, which is also freed on failure. */
whit_status whit_model_open_written(whit_ndf_writer *writer, const char *name, const whit_allocator *allocator,
                                    whit_model **model, whit_error *error);

#endif
