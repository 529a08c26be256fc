/* SPDX-License-Identifier: MIT
 * Implements mixtures of experts: the choice of experts, rows grouped by expert, products with an expert's matrix, and
 * weighted sums. A value of (token, expert) pairs has n_rows n_used rows, sorted by expert and then by token, as in
 * inference. A work item of a product is an expert, so that no two items write the same gradient of a matrix. The
 * gradient passes through the weights of the chosen experts; the choice itself has no gradient.
 *
 * The logits l of a token give the scores s. p_i is the score of choice i, c_i the factor of the chosen expert, and f
 * the factor of the router. The weights are w_i = f c_i p_i / (sum of p + added) if normalised, otherwise w_i = f c_i
 * p_i. With q_i = f c_i dw_i:
 *
 *   dp_i = q_i; normalised: (q_i - sum of q_j p_j / (sum of p + added)) / (sum of p + added)
 *   softmax: dl_e = s_e (ds_e - sum of ds s); sigmoid: dl_e = ds_e s_e (1 - s_e)
 *
 * The loss that balances the E experts (Fedus et al. 2021, equation 4) is balance * E * (sum over e of share_e * mean
 * of s_e over the rows), where share_e is expert e's share of the pairs; it adds balance * E * share_e / n_rows to
 * ds_e. */
#include "train/ops.h"

#include <string.h>

/* ---- pairs ---------------------------------------------------------------------------------- */

/* Fills tape->pairs with the (token, expert) pairs that the step's router chose. */
static void find_pairs(const whit_tape *tape, const whit_tape_step *step)
{
    const whit_tape_pairs *p = &tape->pairs;
    const uint32_t n_used = p->n_used;
    const float *route = tape->value[step->route];
    memset(p->first, 0, (p->n_experts + 1) * sizeof *p->first);
    for (uint32_t t = 0; t < tape->n_rows; t++)
        for (uint32_t i = 0; i < n_used; i++) p->first[(uint32_t)route[(size_t)t * 2 * n_used + i] + 1]++;
    for (uint32_t e = 0; e < p->n_experts; e++) p->first[e + 1] += p->first[e];
    for (uint32_t t = 0; t < tape->n_rows; t++)
        for (uint32_t i = 0; i < n_used; i++) {
            const uint32_t e = (uint32_t)route[(size_t)t * 2 * n_used + i], row = p->first[e]++;
            p->row_of[(size_t)t * n_used + i] = row;
            p->token_of[row] = t;
            p->weight_of[row] = route[(size_t)t * 2 * n_used + n_used + i];
        }
    memmove(p->first + 1, p->first,
            p->n_experts * sizeof *p->first); /* the loop has moved each start to the next expert's start: moves the
                                               * starts back */
    p->first[0] = 0;
}

/* ---- choice --------------------------------------------------------------------------------- */

struct route_job {
    const whit_tape *tape;
    const whit_tape_step *step;
    whit_router router;
    const float *balance; /* (n_experts) gradients of the balancing loss, added to those of each token's scores; NULL:
                           * no such loss */
};

static whit_router find_router(const whit_tape *tape, const whit_node *node)
{
    const whit_param *items = tape->params->items;
    return (whit_router){.n_experts = node->n_experts,
                         .n_used = node->n_used,
                         .is_sigmoid = node->route & WHIT_ROUTE_SIGMOID,
                         .is_normalised = node->route & WHIT_ROUTE_NORM,
                         .added = node->added,
                         .factor = node->constant,
                         .choice = node->weight >= 0 ? items[node->weight].value : NULL,
                         .scales = node->bias >= 0 ? items[node->bias].value : NULL};
}

size_t whit_op_route_scratch(const whit_node *node)
{
    return 2 * (size_t)node->n_experts + 2 * (size_t)node->n_used;
}

static void route_rows(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    const struct route_job *job = context;
    const whit_router *router = &job->router;
    float *scores = job->tape->scratch + worker * job->tape->scratch_elems;
    uint32_t *experts = (uint32_t *)(void *)(scores + router->n_experts);
    for (uint32_t r = begin; r < end; r++) {
        float *out = whit_step_output(job->tape, job->step) + (size_t)r * 2 * router->n_used;
        whit_route_token(router, whit_step_input(job->tape, job->step, 0) + (size_t)r * router->n_experts, scores,
                         experts, out + router->n_used);
        for (uint32_t i = 0; i < router->n_used; i++) out[i] = (float)experts[i];
    }
}

void whit_op_route(const whit_tape *tape, const whit_tape_step *step)
{
    struct route_job job = {.tape = tape, .step = step, .router = find_router(tape, step->node)};
    whit_pool_run(tape->pool, route_rows, &job, tape->n_rows, WHIT_TAPE_ROW_CHUNK);
}

/* Sets ds (n_experts) to the gradients of a token's scores s. dw (n_used) are the gradients of the token's weights;
 * they are multiplied by the factors that do not depend on the scores. */
static void find_score_gradients(const struct route_job *job, const float *s, const float *route, float *dw, float *ds)
{
    const whit_router *router = &job->router;
    float sum = router->added, along = 0;
    for (uint32_t i = 0; i < router->n_used; i++) {
        const uint32_t e = (uint32_t)route[i];
        sum += s[e];
        dw[i] *= router->factor * (router->scales ? router->scales[e] : 1);
        along += dw[i] * s[e];
    }
    if (job->balance)
        memcpy(ds, job->balance, router->n_experts * sizeof *ds);
    else
        memset(ds, 0, router->n_experts * sizeof *ds);
    for (uint32_t i = 0; i < router->n_used; i++)
        ds[(uint32_t)route[i]] += router->is_normalised ? (dw[i] - along / sum) / sum : dw[i];
}

static void route_gradients(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    const struct route_job *job = context;
    const whit_tape *tape = job->tape;
    const whit_router *router = &job->router;
    const uint32_t n = router->n_experts, n_used = router->n_used;
    float *s = tape->scratch + worker * tape->scratch_elems, *ds = s + n, *weights = ds + n;
    uint32_t *experts = (uint32_t *)(void *)(weights + n_used);
    for (uint32_t r = begin; r < end; r++) {
        const float *route = tape->value[job->step->node->output] + (size_t)r * 2 * n_used;
        float *dl = whit_step_dinput(tape, job->step, 0) + (size_t)r * n, along = 0;
        whit_route_token(router, whit_step_input(tape, job->step, 0) + (size_t)r * n, s, experts, weights);
        memcpy(weights, whit_step_doutput(tape, job->step) + (size_t)r * 2 * n_used + n_used, n_used * sizeof *weights);
        find_score_gradients(job, s, route, weights, ds);
        for (uint32_t e = 0; e < n; e++) along += ds[e] * s[e];
        for (uint32_t e = 0; e < n; e++) {
            const float d = s[e] * (router->is_sigmoid ? ds[e] * (1 - s[e]) : ds[e] - along);
            dl[e] = job->step->overwrites[0] ? d : dl[e] + d;
        }
    }
}

/* Adds the gradients of the experts' factors to dscales. It runs on one thread, because several rows use the same
 * expert. */
static void add_scale_gradients(const whit_tape *tape, const whit_tape_step *step, const whit_router *router,
                                float *dscales)
{
    const uint32_t n_used = router->n_used;
    for (uint32_t r = 0; r < tape->n_rows; r++) {
        const float *route = whit_step_output(tape, step) + (size_t)r * 2 * n_used,
                    *dw = whit_step_doutput(tape, step) + (size_t)r * 2 * n_used + n_used;
        for (uint32_t i = 0; i < n_used; i++)
            if (router->scales[(uint32_t)route[i]] != 0)
                dscales[(uint32_t)route[i]] += dw[i] * route[n_used + i] / router->scales[(uint32_t)route[i]];
    }
}

void whit_op_route_gradient(const whit_tape *tape, const whit_tape_step *step)
{
    struct route_job job = {.tape = tape, .step = step, .router = find_router(tape, step->node)};
    const uint32_t n = job.router.n_experts;
    if (tape->options.balance > 0) {
        float factor =
            tape->options.balance * (float)n / ((float)tape->n_rows * (float)tape->n_rows * (float)job.router.n_used);
        find_pairs(tape, step);
        for (uint32_t e = 0; e < n; e++)
            tape->partials[e] = factor * (float)(tape->pairs.first[e + 1] - tape->pairs.first[e]);
        job.balance = tape->partials;
    }
    whit_pool_run(tape->pool, route_gradients, &job, tape->n_rows, WHIT_TAPE_ROW_CHUNK);
    float *dscales =
        step->node->bias >= 0 ? whit_param_gradient(tape->params, &tape->params->items[step->node->bias]) : NULL;
    if (dscales) add_scale_gradients(tape, step, &job.router, dscales);
}

/* ---- rows for experts, and back ------------------------------------------------------------- */

struct pair_job {
    const whit_tape *tape;
    const whit_tape_step *step;
    size_t width;
};

static void copy_rows(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    (void)worker;
    const struct pair_job *job = context;
    for (size_t row = begin; row < end; row++)
        memcpy(whit_step_output(job->tape, job->step) + row * job->width,
               whit_step_input(job->tape, job->step, 0) + job->tape->pairs.token_of[row] * job->width,
               job->width * sizeof(float));
}

void whit_op_dispatch(const whit_tape *tape, const whit_tape_step *step)
{
    struct pair_job job = {tape, step, whit_step_width(tape, step->node->output)};
    find_pairs(tape, step);
    whit_pool_run(tape->pool, copy_rows, &job, whit_tape_rows(tape, step->node->output), WHIT_TAPE_ROW_CHUNK);
}

/* Computes the sum of weight * x[pair] over token t's pairs, in the order in which their experts were chosen. The sum
 * replaces y if `overwrites`, otherwise it is added to y. weights NULL: all weights are 1. */
static void sum_pairs(const struct pair_job *job, uint32_t t, const float *x, const float *weights, bool overwrites,
                      float *y)
{
    const whit_tape *tape = job->tape;
    const uint32_t n_used = tape->pairs.n_used, *rows = tape->pairs.row_of + (size_t)t * n_used;
    for (uint32_t i = 0; i < n_used; i++) {
        const float *from = x + rows[i] * job->width, weight = weights ? weights[i] : 1;
        if (overwrites && i == 0)
            tape->loops->scale(y, from, weight, job->width);
        else
            tape->loops->add_scaled(y, from, weight, job->width);
    }
}

static void dispatch_gradients(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    (void)worker;
    const struct pair_job *job = context;
    for (uint32_t t = begin; t < end; t++)
        sum_pairs(job, t, whit_step_doutput(job->tape, job->step), NULL, job->step->overwrites[0],
                  whit_step_dinput(job->tape, job->step, 0) + t * job->width);
}

void whit_op_dispatch_gradient(const whit_tape *tape, const whit_tape_step *step)
{
    struct pair_job job = {tape, step, whit_step_width(tape, step->node->output)};
    find_pairs(tape, step);
    whit_pool_run(tape->pool, dispatch_gradients, &job, tape->n_rows, WHIT_TAPE_ROW_CHUNK);
}

static void combine_rows(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    (void)worker;
    const struct pair_job *job = context;
    const uint32_t n_used = job->tape->pairs.n_used;
    for (uint32_t t = begin; t < end; t++)
        sum_pairs(job, t, whit_step_input(job->tape, job->step, 0),
                  whit_step_input(job->tape, job->step, 1) + (size_t)t * 2 * n_used + n_used, true,
                  whit_step_output(job->tape, job->step) + t * job->width);
}

void whit_op_combine(const whit_tape *tape, const whit_tape_step *step)
{
    struct pair_job job = {tape, step, whit_step_width(tape, step->node->output)};
    find_pairs(tape, step);
    whit_pool_run(tape->pool, combine_rows, &job, tape->n_rows, WHIT_TAPE_ROW_CHUNK);
}

static void combine_gradients(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    (void)worker;
    const struct pair_job *job = context;
    const whit_tape *tape = job->tape;
    const uint32_t n_used = tape->pairs.n_used;
    for (uint32_t t = begin; t < end; t++) {
        const float *dy = whit_step_doutput(tape, job->step) + t * job->width,
                    *weights = whit_step_input(tape, job->step, 1) + (size_t)t * 2 * n_used + n_used;
        float *droute = whit_step_dinput(tape, job->step, 1) + (size_t)t * 2 * n_used;
        if (job->step->overwrites[1]) memset(droute, 0, 2 * n_used * sizeof *droute);
        for (uint32_t i = 0; i < n_used; i++) {
            const size_t at = tape->pairs.row_of[(size_t)t * n_used + i] * job->width;
            float *dx = whit_step_dinput(tape, job->step, 0) + at;
            droute[n_used + i] += tape->loops->dot(dy, whit_step_input(tape, job->step, 0) + at, job->width);
            if (job->step->overwrites[0])
                tape->loops->scale(dx, dy, weights[i], job->width);
            else
                tape->loops->add_scaled(dx, dy, weights[i], job->width);
        }
    }
}

void whit_op_combine_gradient(const whit_tape *tape, const whit_tape_step *step)
{
    struct pair_job job = {tape, step, whit_step_width(tape, step->node->output)};
    find_pairs(tape, step);
    whit_pool_run(tape->pool, combine_gradients, &job, tape->n_rows, WHIT_TAPE_ROW_CHUNK);
}

/* ---- products ------------------------------------------------------------------------------- */

struct expert_job {
    const whit_tape *tape;
    const whit_tape_step *step;
    size_t n_in, n_out;
    const float *weight, *bias;
    float *dweight, *dbias; /* NULL if the parameter is frozen or absent */
};

static struct expert_job make_job(const whit_tape *tape, const whit_tape_step *step)
{
    const whit_param *weight = &tape->params->items[step->node->weight],
                     *bias = step->node->bias >= 0 ? &tape->params->items[step->node->bias] : NULL;
    return (struct expert_job){.tape = tape,
                               .step = step,
                               .n_in = weight->type.n_cols,
                               .n_out = whit_step_width(tape, step->node->output),
                               .weight = weight->value,
                               .bias = bias ? bias->value : NULL,
                               .dweight = whit_param_gradient(tape->params, weight),
                               .dbias = bias ? whit_param_gradient(tape->params, bias) : NULL};
}

static void multiply_experts(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    const struct expert_job *job = context;
    for (uint32_t e = begin; e < end; e++) {
        const size_t first = job->tape->pairs.first[e], n = job->tape->pairs.first[e + 1] - first;
        float *y = whit_step_output(job->tape, job->step) + first * job->n_out;
        if (!n) continue;
        const whit_product product =
            whit_product_packed(false, true, whit_step_input(job->tape, job->step, 0) + first * job->n_in,
                                job->weight + e * job->n_out * job->n_in, n, job->n_out, job->n_in, y);
        whit_blas_multiply(&job->tape->blas, worker, &product);
        for (size_t r = 0; job->bias && r < n; r++)
            job->tape->loops->add(y + r * job->n_out, job->bias + e * job->n_out, job->n_out);
    }
}

void whit_op_expert_linear(const whit_tape *tape, const whit_tape_step *step)
{
    struct expert_job job = make_job(tape, step);
    find_pairs(tape, step);
    whit_pool_run(tape->pool, multiply_experts, &job, tape->pairs.n_experts, 1);
}

static void expert_gradients(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    const struct expert_job *job = context;
    for (uint32_t e = begin; e < end; e++) {
        const size_t first = job->tape->pairs.first[e], n = job->tape->pairs.first[e + 1] - first,
                     at = e * job->n_out * job->n_in;
        const float *dy = whit_step_doutput(job->tape, job->step) + first * job->n_out;
        if (!n) continue;
        whit_product dx = whit_product_packed(false, false, dy, job->weight + at, n, job->n_in, job->n_out,
                                              whit_step_dinput(job->tape, job->step, 0) + first * job->n_in);
        dx.beta = job->step->overwrites[0] ? 0 : 1;
        whit_blas_multiply(&job->tape->blas, worker, &dx);
        if (job->dweight) {
            whit_product dweight =
                whit_product_packed(true, false, dy, whit_step_input(job->tape, job->step, 0) + first * job->n_in,
                                    job->n_out, job->n_in, n, job->dweight + at);
            dweight.beta = 1;
            whit_blas_multiply(&job->tape->blas, worker, &dweight);
        }
        for (size_t r = 0; job->dbias && r < n; r++)
            job->tape->loops->add(job->dbias + e * job->n_out, dy + r * job->n_out, job->n_out);
    }
}

void whit_op_expert_linear_gradient(const whit_tape *tape, const whit_tape_step *step)
{
    struct expert_job job = make_job(tape, step);
    find_pairs(tape, step);
    whit_pool_run(tape->pool, expert_gradients, &job, tape->pairs.n_experts, 1);
}
