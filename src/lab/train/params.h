/* SPDX-License-Identifier: MIT
 * The parameters that are trained: the tensors of a graph as latent (unrounded) f32 weights, row-major, with their
 * gradients and the two moments of Adam.
 *
 * Everything that the optimiser changes is in one array of floats, `run`: first the latent weights, then the scales of
 * coded tensors. The arrays of gradients and moments have the same layout, so that clipping, steps and checkpoints are
 * loops over arrays. A coded tensor also has a `value`: its latent weights rounded to its codec, which the forward pass
 * reads. The latent weights of other tensors are read as they are. Those of a frozen tensor are in another array,
 * `fixed`, and never change; if the tensor is coded, its scales may be trained.
 *
 *   whit_params_begin, whit_params_add (each), whit_params_allocate, fill the latent weights,
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
    bool coded;            /* the tensor is rounded to `type` in training too */
    bool rounds_input;     /* W1.58A8: the rows that the tensor multiplies are rounded to int8, with one scale per
                            * row */
    bool frozen;           /* the weights are not trained */
    bool is_new;           /* the tensor is an adapter's factor, which the model's file does not contain */
    int32_t low_a, low_b;  /* indices of the factors A and B of the matrix's adapter; -1: no adapter */
    size_t n;              /* number of weights */
    size_t offset;         /* index of the latent weights in `run`; for a frozen tensor in `fixed` */
    size_t scales;         /* index of the scales (n_lines, n_groups, n_fields) in `run` */
    size_t n_scales;
    uint32_t n_lines; /* number of rows; 1 if the whole tensor has one scale */
    uint32_t n_groups, n_fields;
    size_t line_elems, group_elems;
    float *value; /* (n_rows, n_cols) the weights that the forward pass reads */
    /* The loaded tensor, if it is coded, has corrections (kernels/corrections.h) and keeps its type. The corrections
     * are added to the rounded values; the latent weights do not include them. No parts: there are no corrections. The
     * parts are in the memory of the file. */
    whit_tensor corrected;
} whit_param;

typedef struct whit_params {
    const whit_allocator *allocator;
    const whit_loops *loops;
    whit_param *items;
    uint32_t n, capacity;
    size_t n_latents, n_floats; /* numbers of floats in `run`: of latent weights, and of all */
    size_t n_rounded;
    float *run;      /* (n_floats) */
    float *gradient; /* (n_floats); NULL if nothing is trained, like the moments */
    float *moment1, *moment2;
    float *fixed; /* (n_fixed) latent weights of frozen tensors */
    /* (n_fixed) gradients of frozen weights, from which the gradients of their scales are computed; NULL if no frozen
     * tensor is coded or nothing is trained */
    float *fixed_gradient;
    size_t n_fixed;
    float *rounded;    /* (n_rounded) values of coded tensors */
    bool learn_scales; /* the optimiser trains the scales, except those of i8; whit_params_round refits all others */
    float share;       /* share of the rounding in `value`: 0: latent weights, 1: rounded weights */
} whit_params;

/* Receives the progress of work on all tensors. */
typedef struct whit_watcher {
    whit_progress_fn *progress; /* NULL: not called */
    void *user;
} whit_watcher;

void whit_params_begin(whit_params *params, const whit_allocator *allocator);
/* Adds a tensor that has the type `type` in the finished file. `coded`: it is rounded to this type in training too,
 * which whit_quantise_knows must accept. */
whit_status whit_params_add(whit_params *params, const char *name, const whit_tensor_type *type, bool coded,
                            whit_error *error);
/* Excludes the weights of tensor `i` from training. Call it after whit_params_add and before whit_params_allocate. */
void whit_params_freeze(whit_params *params, uint32_t i);
/* Returns the number of bytes that whit_params_allocate will allocate. */
size_t whit_params_bytes(const whit_params *params, bool gradients);
whit_status whit_params_allocate(whit_params *params, bool gradients, whit_error *error);
void whit_params_free(whit_params *params);

int32_t whit_params_find(const whit_params *params, const char *name); /* -1 if not found */
/* Returns a resolver that finds the parameters by name. `params` must not move while the resolver is used. */
whit_resolver whit_params_resolver(whit_params *params);
/* Copies the weights from the file's tensors with the same names, decoded to f32. A missing tensor or another shape is
 * an error; tensors with is_new are skipped. The file must outlive the parameters. watcher may be NULL. */
whit_status whit_params_load(whit_params *params, const whit_ndf *file, const whit_watcher *watcher, whit_error *error);

/* Fits the scales of coded tensors to their latent weights. Returns false if the watcher cancelled; then some tensors
 * have no scales. watcher may be NULL. */
bool whit_params_fit(whit_params *params, whit_pool *pool, const whit_watcher *watcher);
/* Computes `value` of the coded tensors from their latent weights. Refits the scales that are not learned. */
void whit_params_round(whit_params *params, whit_pool *pool);
/* Sets all gradients to zero, except those of the weights of tensors i with is_left[i]. */
void whit_params_zero_gradients(whit_params *params, const bool *is_left, whit_pool *pool);
/* If learn_scales: computes the gradients of the scales, except those of i8, from the gradients of the rounded
 * weights. */
void whit_params_scale_gradients(whit_params *params, whit_pool *pool);

static inline float *whit_param_latent(const whit_params *params, const whit_param *param)
{
    return (param->frozen ? params->fixed : params->run) + param->offset;
}
/* Returns the gradient of the tensor's latent weights; NULL if it is not computed. */
static inline float *whit_param_gradient(const whit_params *params, const whit_param *param)
{
    if (param->frozen) return params->fixed_gradient && param->coded ? params->fixed_gradient + param->offset : NULL;
    return params->gradient ? params->gradient + param->offset : NULL;
}

#endif
