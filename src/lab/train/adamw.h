/* SPDX-License-Identifier: MIT
 * The optimiser: AdamW with decoupled weight decay (Loshchilov, Hutter 2019), warm-up, a cosine schedule, and clipping
 * of the norm of the whole gradient. */
#ifndef WHIT_TRAIN_ADAMW_H
#define WHIT_TRAIN_ADAMW_H

#include "train/params.h"

typedef struct whit_adamw {
    float rate;        /* highest learning rate of the trained weights */
    float scale_rate;  /* learning rate of the scales of coded tensors, as a share of the current rate */
    float vector_rate; /* learning rate of vectors (norms and biases), as a share of the current rate */
    float least;       /* learning rate at the end of the run, as a share of `rate` */
    float warm_up;     /* share of the run, from its beginning, in which the learning rate rises */
    float beta1, beta2, epsilon;
    float decay; /* decoupled weight decay of matrices, multiplied by the current rate */
    float clip;  /* largest norm of the gradient; a larger gradient is scaled down to it; 0: no limit */
} whit_adamw;

whit_adamw whit_adamw_default(void);
/* Returns the learning rate when `share` in [0, 1] of the run is done. */
float whit_adamw_rate(const whit_adamw *adamw, double share);
/* Returns the Euclidean norm of all gradients. It is NaN or infinite if one of them is. */
double whit_adamw_norm(const whit_params *params);
/* Does step number `step`, counted from 1, with the learning rate `rate`; `norm` is the result of whit_adamw_norm. */
void whit_adamw_step(const whit_adamw *adamw, whit_params *params, whit_pool *pool, uint64_t step, float rate,
                     double norm);

#endif
