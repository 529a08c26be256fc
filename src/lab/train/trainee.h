/* SPDX-License-Identifier: MIT
 * Represents a model during training: its graph with latent weights, which are taken from an open model. A teacher is a
 * trainee without gradients; a student rounds its matrices to a codec. */
#ifndef WHIT_TRAIN_TRAINEE_H
#define WHIT_TRAIN_TRAINEE_H

#include "base/sketch.h"
#include "format/ndf_write.h"
#include "runtime/model.h"
#include "train/params.h"

typedef struct whit_trainee_codecs {
    /* This is the codec of the layers' matrices: "t", "b1", "q2" (l2), "q2-planes" (q2), "f16", "f32", or "own": as in
     * the model. */
    const char *layers;
    const char *embedding;    /* embedding and head: "i8", "f16" or "f32" */
    const char *const *mixed; /* "down=t": another codec for the matrices of that name in all layers */
    size_t n_mixed;
} whit_trainee_codecs;

typedef struct whit_trainee {
    const whit_model *model; /* source of the weights; NULL: the trainee is a new model (new_model.h) */
    whit_config config;
    whit_params params;
    whit_graph graph;
    whit_sketch sketch; /* sketch of the training text, for the file (WHIT_SKETCH_KEY); empty: not written */
    const whit_allocator *allocator;
} whit_trainee;

/* Returns whether a layer's matrix keeps its type whatever the codec of the layers is: a small one whose few outputs
 * steer a whole layer. */
bool whit_trainee_keeps(const char *name);

/* Opens a trainee. Inputs are rounded as the model does it (W1.58A8), except for a student's float matrices. Weights
 * are decoded from the model, which must outlive the trainee; the trainee must not move. codecs NULL: f32 throughout,
 * without training. */
whit_status whit_trainee_open(whit_trainee *trainee, const whit_model *model, const whit_trainee_codecs *codecs,
                              const whit_watcher *watcher, const whit_allocator *allocator, whit_error *error);
void whit_trainee_close(whit_trainee *trainee); /* accepts a zero-initialised trainee */

/* Declares the trainee's tensors, in the order of the graph, begins the writer, whose tables are filled,
 * and adds them. */
whit_status whit_trainee_add_tensors(const whit_trainee *trainee, whit_ndf_writer *writer, whit_error *error);
/* Writes the trainee as a finished .ndf with the tokenizer, templates and metadata of its model.
 * `command` says how it was made. */
whit_status whit_trainee_write(const whit_trainee *trainee, const char *command, const char *path, whit_error *error);

#endif
