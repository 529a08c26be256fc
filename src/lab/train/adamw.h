/* SPDX-License-Identifier: MIT
 * Implements the optimiser: AdamW with decoupled decay (Loshchilov, Hutter 2019), warm-up, cosine schedule, and
 * clipping of the whole gradient's norm. */
#ifndef WHIT_TRAIN_ADAMW_H
#define WHIT_TRAIN_ADAMW_H

#include "train/params.h"

typedef struct whit_adamw {
    float rate;        /* highest learning rate of the latent weights */
    float scale_rate;  /* rate of learned scales, as a share of `rate` */
    float vector_rate; /* rate of norms and biases, as a share of `rate` */
    float least;       /* final rate, as a share of `rate` */
    float warm_up;     /* share of the run with a rising rate */
    float beta1, beta2, epsilon;
    float decay; /* decoupled weight decay of matrices, multiplied by the rate */
    float clip;  /* largest norm of the gradient; 0: no limit */
} whit_adamw;

whit_adamw whit_adamw_default(void);
/* Returns the learning rate when `share` in [0, 1] of the run is done. */
float whit_adamw_rate(const whit_adamw *adamw, double share);
/* Returns the norm of all gradients, which is not finite if the loss was not. */
double whit_adamw_norm(const whit_params *params);
/* Does step number `step` (from 1) with the given learning rate and gradient norm. */
void whit_adamw_step(const whit_adamw *adamw, whit_params *params, whit_pool *pool, uint64_t step, float rate,
                     double norm);

#endif
