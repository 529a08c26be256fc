/* SPDX-License-Identifier: MIT */
#include "train/loss.h"

#include "base/mem.h"

whit_status whit_loss_open(whit_loss *loss, uint32_t n_rows, float ce_weight, float kl_weight,
                           const whit_allocator *allocator, whit_error *error)
{
    *loss = (whit_loss){.ce_weight = ce_weight,
                        .kl_weight = kl_weight,
                        .n_rows = n_rows,
                        .loops = whit_loops_find(),
                        .allocator = allocator};
    loss->rows = whit_zalloc_array(allocator, (size_t)n_rows * 2, sizeof *loss->rows);
    return loss->rows ? WHIT_OK : whit_fail_memory(error, "losses", (size_t)n_rows * 2 * sizeof *loss->rows);
}

void whit_loss_close(whit_loss *loss)
{
    whit_free(loss->allocator, loss->rows, (size_t)loss->n_rows * 2 * sizeof *loss->rows);
    *loss = (whit_loss){0};
}

struct loss_job {
    whit_loss *loss;
    float *logits;
    const float *teacher;
    const int32_t *targets;
    uint32_t n_vocab;
    float ce, kl;
};

static void loss_rows(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    (void)worker;
    const struct loss_job *job = context;
    for (uint32_t r = begin; r < end; r++) {
        float *logits = job->logits + (size_t)r * job->n_vocab;
        const float *teacher = job->teacher ? job->teacher + (size_t)r * job->n_vocab : NULL;
        double *ce = job->loss->rows + 2 * r, *kl = ce + 1;
        if (job->targets[r] < 0) {
            memset(logits, 0, job->n_vocab * sizeof *logits);
            *ce = *kl = 0;
            continue;
        }
        job->loss->loops->logit_loss(logits, teacher, job->targets[r], job->ce, job->kl, job->n_vocab, ce, kl);
    }
}

void whit_loss_run(whit_loss *loss, whit_pool *pool, float *logits, const float *teacher, const int32_t *targets,
                   uint32_t n_vocab, float factor)
{
    uint32_t n = 0;
    for (uint32_t r = 0; r < loss->n_rows; r++) n += targets[r] >= 0;
    float share = n ? factor / (float)n : 0;
    struct loss_job job = {
        loss, logits, teacher, targets, n_vocab, loss->ce_weight * share, teacher ? loss->kl_weight * share : 0};
    whit_pool_run(pool, loss_rows, &job, loss->n_rows, 16);
    loss->ce = loss->kl = 0;
    for (uint32_t r = 0; r < loss->n_rows; r++) {
        loss->ce += loss->rows[2 * r];
        loss->kl += loss->rows[2 * r + 1];
    }
    if (n) {
        loss->ce /= n;
        loss->kl /= n;
    }
}
