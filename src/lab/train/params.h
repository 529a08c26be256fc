/* SPDX-License-Identifier: MIT
 * Holds the parameters that are trained: the tensors of a graph as latent f32 weights, row-major, with their gradients
 * and the two moments of Adam.
 *
 * Everything that the optimiser moves lies in one run of floats, latents first and then the scales of coded tensors;
 * gradients and moments mirror it, so that clipping, stepping and checkpoints are walks over arrays. A tensor with a
 * coded type also has a `value`: its latents rounded to that codec, which is what the forward pass reads. The latents
 * of other tensors are read as they are. A frozen tensor's latents lie apart and never change; only its scales may be
 * trained, if it is coded.
 *
 *   whit_params_begin, whit_params_add (each), whit_params_allocate, fill the latents,
 *   whit_params_fit, whit_params_round; then per step: whit_tape_zero_gradients, passes,
 *   whit_params_scale_gradients, a step of adamw.h, whit_params_round. */
#ifndef WHIT_TRAIN_PARAMS_H
#define WHIT_TRAIN_PARAMS_H

#include "base/threads.h"
#include "format/ndf.h"
#include "model/graph.h"
#include "linalg/loops.h"

typedef struct whit_param {
    char name[WHIT_VALUE_NAME_BYTES];
    whit_tensor_type type; /* type in the finished file */
    bool coded;            /* rounded to type in training too */
    bool rounds_input;     /* W1.58A8: the rows that the tensor multiplies are rounded to int8, with a scale each */
    bool frozen;           /* the weights are not trained */
    bool is_new;           /* the tensor is not one of the model: an adapter's factor */
    int32_t low_a, low_b;  /* factors of the matrix's adapter; -1: no adapter */
    size_t n;              /* number of weights */
    size_t offset;         /* index of the latents in `run`, or in `fixed` if frozen */
    size_t scales;         /* index of the scales (n_lines, n_groups, n_fields) in `run` */
    size_t n_scales;
    uint32_t n_lines; /* number of rows; 1 if one scale is the whole tensor's */
    uint32_t n_groups, n_fields;
    size_t line_elems, group_elems;
    float *value; /* (n_rows, n_cols) */
    /* The loaded tensor is kept here if it has corrections (kernels/corrections.h) and keeps its type. The corrections
     * are added to the rounded values and are not part of the latents. A tensor without parts has no corrections. The
     * tensor's memory is used in place. */
    whit_tensor corrected;
} whit_param;

typedef struct whit_params {
    const whit_allocator *allocator;
    const whit_loops *loops;
    whit_param *items;
    uint32_t n, capacity;
    size_t n_latents, n_floats; /* number of floats in `run`: latents, then scales */
    size_t n_rounded;
    float *run;      /* (n_floats) */
    float *gradient; /* (n_floats), NULL if nothing is trained; the same holds for the moments */
    float *moment1, *moment2;
    float *fixed;          /* (n_fixed) latents of frozen tensors */
    float *fixed_gradient; /* gradients of frozen tensors whose scales are trained; NULL if there are no such tensors */
    size_t n_fixed;
    float *rounded;    /* (n_rounded) values of coded tensors */
    bool learn_scales; /* the optimiser trains the scales; otherwise rounding refits them */
    float share;       /* share of the rounding that is in the values: 1, less during a ramp */
} whit_params;

/* Receives the progress of work on a whole model. */
typedef struct whit_watcher {
    whit_progress_fn *progress; /* NULL: progress is not reported */
    void *user;
} whit_watcher;

void whit_params_begin(whit_params *params, const whit_allocator *allocator);
/* Adds a tensor that will be stored with `type`; `coded` asks for rounding in training, which needs
 * a type of whit_quantise_knows. */
whit_status whit_params_add(whit_params *params, const char *name, const whit_tensor_type *type, bool coded,
                            whit_error *error);
/* Takes the weights of tensor `i` out of the training; call it between add and allocate. */
void whit_params_freeze(whit_params *params, uint32_t i);
/* Returns the number of bytes that allocation will need. */
size_t whit_params_bytes(const whit_params *params, bool gradients);
whit_status whit_params_allocate(whit_params *params, bool gradients, whit_error *error);
void whit_params_free(whit_params *params);

int32_t whit_params_find(const whit_params *params, const char *name); /* -1 if not found */
/* Returns a resolver of the parameters; `params` must stay where it is while the resolver is used. */
whit_resolver whit_params_resolver(whit_params *params);
/* Copies the weights of tensors of the same names and shapes, decoded to f32; tensors with is_new are left out. The
 * file outlives the parameters. watcher NULL: nobody is told. */
whit_status whit_params_load(whit_params *params, const whit_ndf *file, const whit_watcher *watcher, whit_error *error);

/* Fits the scales of coded tensors to their latents. False: the watcher (NULL: nobody) cancelled, and not all have
 * scales. */
bool whit_params_fit(whit_params *params, whit_pool *pool, const whit_watcher *watcher);
/* Brings `value` of coded tensors up to date. */
void whit_params_round(whit_params *params, whit_pool *pool);
/* Sets gradients to zero, except the gradients of the weights of tensors i with is_left[i]. */
void whit_params_zero_gradients(whit_params *params, const bool *is_left, whit_pool *pool);
/* Computes, with learn_scales, the gradients of the scales from those of the rounded weights. */
void whit_params_scale_gradients(whit_params *params, whit_pool *pool);

static inline float *whit_param_latent(const whit_params *params, const whit_param *param)
{
    return (param->frozen ? params->fixed : params->run) + param->offset;
}
/* Returns the gradient of the tensor's latents; NULL if no gradient is needed. */
static inline float *whit_param_gradient(const whit_params *params, const whit_param *param)
{
    if (param->frozen) return params->fixed_gradient && param->coded ? params->fixed_gradient + param->offset : NULL;
    return params->gradient ? params->gradient + param->offset : NULL;
}

#endif
