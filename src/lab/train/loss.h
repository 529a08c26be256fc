/* SPDX-License-Identifier: MIT
 * Losses over the logits of a batch: cross-entropy (CE) of the next ids, and Kullback-Leibler divergence (KL) from a
 * teacher's logits. Both are means over the rows that have a target. */
#ifndef WHIT_TRAIN_LOSS_H
#define WHIT_TRAIN_LOSS_H

#include "base/threads.h"
#include "linalg/loops.h"

typedef struct whit_loss {
    float ce_weight, kl_weight; /* weights of the two losses in the gradient */
    double ce, kl;              /* means over the last batch in nats */
    double *rows;               /* (n_rows, 2) CE and KL of each row */
    uint32_t n_rows;
    const whit_loops *loops;
    const whit_allocator *allocator;
} whit_loss;

whit_status whit_loss_open(whit_loss *loss, uint32_t n_rows, float ce_weight, float kl_weight,
                           const whit_allocator *allocator, whit_error *error);
void whit_loss_close(whit_loss *loss);

/* Replaces logits (n_rows, n_vocab) by the gradient of
 *
 *   factor * (ce_weight * mean CE + kl_weight * mean KL(teacher || student))
 *
 * and sets loss->ce and loss->kl. targets (n_rows) are ids; a row with a negative target does not count and gets the
 * gradient 0. teacher (n_rows, n_vocab) may be NULL: there is no KL. */
void whit_loss_run(whit_loss *loss, whit_pool *pool, float *logits, const float *teacher, const int32_t *targets,
                   uint32_t n_vocab, float factor);

#endif
