/* SPDX-License-Identifier: MIT
 * Losses over the logits of a batch: cross-entropy to the next ids and Kullback-Leibler divergence
 * to a teacher's logits, means over the rows that count. */
#ifndef WHIT_TRAIN_LOSS_H
#define WHIT_TRAIN_LOSS_H

#include "base/threads.h"
#include "linalg/loops.h"

typedef struct whit_loss {
    float ce_weight, kl_weight; /* weights of the two losses in the gradient */
    double ce, kl;              /* means in nats of the last batch */
    double *rows;               /* (n_rows, 2) */
    uint32_t n_rows;
    const whit_loops *loops;
    const whit_allocator *allocator;
} whit_loss;

whit_status whit_loss_open(whit_loss *loss, uint32_t n_rows, float ce_weight, float kl_weight,
                           const whit_allocator *allocator, whit_error *error);
void whit_loss_close(whit_loss *loss);

/* Replaces logits (n_rows, n_vocab) by the gradient of
 * factor * (ce_weight * mean CE + kl_weight * mean KL(teacher || student)).
 * targets (n_rows): ids; a negative one means that the row does not count at all. teacher may be NULL: no KL. */
void whit_loss_run(whit_loss *loss, whit_pool *pool, float *logits, const float *teacher, const int32_t *targets,
                   uint32_t n_vocab, float factor);

#endif
