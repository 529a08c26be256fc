/* SPDX-License-Identifier: MIT */
#include "train/adamw.h"

#include <math.h>

#define PIECE ((size_t)1 << 14) /* number of floats that a worker updates at a time */

whit_adamw whit_adamw_default(void)
{
    return (whit_adamw){.rate = 3e-4f,
                        .scale_rate = 0.3f,
                        .vector_rate = 1,
                        .least = 0.02f,
                        .warm_up = 0.03f,
                        .beta1 = 0.9f,
                        .beta2 = 0.95f,
                        .epsilon = 1e-8f,
                        .clip = 1};
}

float whit_adamw_rate(const whit_adamw *adamw, double share)
{
    double least = adamw->least, warm_up = adamw->warm_up;
    if (share < warm_up) return (float)(adamw->rate * (0.02 + 0.98 * share / warm_up));
    double done = fmin((share - warm_up) / (1 - warm_up), 1);
    return (float)(adamw->rate * (least + (1 - least) * 0.5 * (1 + cos(3.14159265358979323846 * done))));
}

double whit_adamw_norm(const whit_params *params)
{
    double sum = 0;
    for (size_t i = 0; i < params->n_floats; i += 4096) {
        size_t n = params->n_floats - i < 4096 ? params->n_floats - i : 4096;
        sum += params->loops->dot(params->gradient + i, params->gradient + i, n);
    }
    return sqrt(sum);
}

struct step_job {
    whit_params *params;
    whit_adamw_row row;
    size_t begin, n;
};

static void step_pieces(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    (void)worker;
    const struct step_job *job = context;
    const whit_params *p = job->params;
    for (size_t piece = begin; piece < end; piece++) {
        size_t at = job->begin + piece * PIECE, rest = job->begin + job->n - at;
        p->loops->adamw(&job->row, p->run + at, p->gradient + at, p->moment1 + at, p->moment2 + at,
                        rest < PIECE ? rest : PIECE);
    }
}

static void step_range(struct step_job *job, whit_pool *pool, size_t begin, size_t n, float step_size, float decay)
{
    job->begin = begin;
    job->n = n;
    job->row.step_size = step_size;
    job->row.decay = decay;
    whit_pool_run(pool, step_pieces, job, (uint32_t)((n + PIECE - 1) / PIECE), 1);
}

void whit_adamw_step(const whit_adamw *adamw, whit_params *params, whit_pool *pool, uint64_t step, float rate,
                     double norm)
{
    float bias1 = (float)(1 - pow(adamw->beta1, (double)step)), bias2 = (float)(1 - pow(adamw->beta2, (double)step));
    struct step_job job = {.params = params,
                           .row = {.beta1 = adamw->beta1,
                                   .beta2 = adamw->beta2,
                                   .epsilon = adamw->epsilon,
                                   .bias2 = bias2,
                                   .gradient_scale = 1}};
    if (adamw->clip > 0 && norm > adamw->clip) job.row.gradient_scale = (float)(adamw->clip / norm);
    for (uint32_t i = 0; i < params->n; i++) {
        const whit_param *param = &params->items[i];
        bool vector = param->type.layout == WHIT_LAYOUT_PLAIN;
        if (!param->frozen) {
            float decay = vector ? 0 : rate * adamw->decay;
            step_range(&job, pool, param->offset, param->n, rate * (vector ? adamw->vector_rate : 1) / bias1, decay);
        }
        if (params->learn_scales && param->n_scales)
            step_range(&job, pool, param->scales, param->n_scales, rate * adamw->scale_rate / bias1, 0);
    }
}
