/* SPDX-License-Identifier: MIT
 * An open model, inside: the container, its weights, the graph of its family. Never changes after
 * opening; sessions and developer verbs look in here. */
#ifndef WHIT_RUNTIME_MODEL_H
#define WHIT_RUNTIME_MODEL_H

#include "format/ndf_write.h"
#include "model/config.h"
#include "model/graph.h"
#include "model/weights.h"
#include "runtime/text.h"

typedef struct whit_model_ranks whit_model_ranks;

struct whit_model {
    const whit_allocator *allocator; /* NULL, or &own_allocator */
    whit_allocator own_allocator;
    char *path; /* path as the user gave it, or a name (whit_model_set_name); begins messages */
    whit_ndf *file;
    whit_ndf_writer *in_memory; /* a conversion that was not written to disk */
    whit_config config;
    whit_weights weights;
    whit_graph graph;
    bool has_draft_block; /* a block that predicts one more token (model/draft_block.h) */
    bool has_tokenizer;
    whit_tokenizer_view tokenizer;
    whit_tokenizers *tokenizers;
    whit_model_ranks *split; /* several processes run the model (split.h); NULL: this one alone */
};

/* Opens a model that was just written in memory and committed. Takes the writer, also on failure. */
whit_status whit_model_open_written(whit_ndf_writer *writer, const char *name, const whit_allocator *allocator,
                                    whit_model **model, whit_error *error);

#endif
