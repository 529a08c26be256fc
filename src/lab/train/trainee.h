/* SPDX-License-Identifier: MIT
 * A trainee is a model during training: its graph, with latent weights that are copied from an open model. A teacher is
 * a trainee without gradients; a student rounds its matrices to a codec. */
#ifndef WHIT_TRAIN_TRAINEE_H
#define WHIT_TRAIN_TRAINEE_H

#include "base/sketch.h"
#include "format/ndf_write.h"
#include "runtime/model.h"
#include "train/params.h"

typedef struct whit_trainee_codecs {
    /* codec of the layers' matrices: "t", "b1", "q2" (l2), "q2-planes" (q2), "i8", "f16", "f32", or "own" (each matrix
     * has its codec in the model) */
    const char *layers;
    const char *embedding;    /* codec of the embedding and the head: "i8", "f16" or "f32" */
    const char *const *mixed; /* texts such as "down=t": another codec for the matrices with this name in all layers */
    size_t n_mixed;
} whit_trainee_codecs;

typedef struct whit_trainee {
    const whit_model *model; /* source of the weights; NULL: the trainee is a new model (new_model.h) */
    whit_config config;
    whit_params params;
    whit_graph graph;
    whit_sketch sketch; /* sketch of the training text (base/sketch.h), for the key WHIT_SKETCH_KEY of the file; empty:
                         * not written */
    const whit_allocator *allocator;
} whit_trainee;

/* Returns whether the codec of the layers does not apply to a layer's matrix, which, unless `mixed` names it, keeps the
 * type that it has in the model: a small matrix whose few outputs control a whole layer, or the biases of experts. */
bool whit_trainee_keeps(const char *name);

/* Opens a trainee. Its weights are decoded from the model, which must outlive the trainee. The trainee must not move.
 * Inputs are rounded to int8 where the model requires it (W1.58A8), except for the matrices of a student that have a
 * float codec. codecs NULL: a teacher, with f32 weights and without gradients. */
whit_status whit_trainee_open(whit_trainee *trainee, const whit_model *model, const whit_trainee_codecs *codecs,
                              const whit_watcher *watcher, const whit_allocator *allocator, whit_error *error);
void whit_trainee_close(whit_trainee *trainee); /* accepts a zero-initialised trainee */

/* Declares the trainee's tensors in the order in which the graph uses them, begins the writer, and adds the tensors.
 * The writer's tables must be complete. */
whit_status whit_trainee_add_tensors(const whit_trainee *trainee, whit_ndf_writer *writer, whit_error *error);
/* Writes the trainee as a finished .ndf file with the tokenizer, templates and metadata of its model. `command` is
 * stored in the metadata as the command that made the file; NULL: not stored. */
whit_status whit_trainee_write(const whit_trainee *trainee, const char *command, const char *path, whit_error *error);

#endif
