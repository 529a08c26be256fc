/* SPDX-License-Identifier: MIT
 * Implements causal convolution over time, of each channel by itself, with the same kernel as inference. A work item is
 * a run of channels of all sequences, so that one item computes the whole gradient of a tap's weight. With u the sum
 * over taps and s the sigmoid of u:
 *
 *   y[t] = f(u[t]), u[t] = sum over j of w[j] x[t - (n_taps - 1 - j)], f is SiLU or the identity
 *   du = dy s (1 + u (1 - s)) for SiLU, dy for the identity; dx[t] = sum over j of w[j] du[t + n_taps - 1 - j]
 *   dw[j] = sum over t of du[t] x[t - (n_taps - 1 - j)] */
#include "train/ops.h"

#include "kernels/delta.h"

#include <string.h>

#define CHANNELS 64 /* number of channels of a work item */

struct conv_job {
    const whit_tape *tape;
    const whit_tape_step *step;
    uint32_t width, n_tokens, n_taps;
    const float *weight; /* (n_taps, width) */
    float *dweight;      /* (n_taps, width); NULL if the weight is frozen */
};

static struct conv_job make_job(const whit_tape *tape, const whit_tape_step *step)
{
    const whit_param *weight = &tape->params->items[step->node->weight];
    return (struct conv_job){.tape = tape,
                             .step = step,
                             .width = whit_step_width(tape, step->node->output),
                             .n_tokens = tape->options.n_tokens,
                             .n_taps = step->node->n_taps,
                             .weight = weight->value,
                             .dweight = whit_param_gradient(tape->params, weight)};
}

static uint32_t count_items(const struct conv_job *job)
{
    return (job->width + CHANNELS - 1) / CHANNELS;
}

size_t whit_op_conv_scratch(uint32_t n_tokens)
{
    return (size_t)n_tokens * CHANNELS;
}

/* Computes n channels from number `channel` on of token t in the sequence that begins at row `first`, and writes them
 * to out (n). */
static void convolve_token(const struct conv_job *job, size_t first, uint32_t t, uint32_t channel, uint32_t n,
                           bool is_silu, float *out)
{
    static const float zeros[CHANNELS];
    const float *rows[WHIT_CONV_TAPS_MAX], *x = whit_step_input(job->tape, job->step, 0);
    for (uint32_t j = 0; j < job->n_taps; j++) {
        uint32_t back = job->n_taps - 1 - j;
        rows[j] = back > t ? zeros : x + (first + t - back) * job->width + channel;
    }
    job->tape->kernels.causal_conv(rows, job->weight + channel, job->width, job->n_taps, is_silu, n, out);
}

static void convolve_channels(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    (void)worker;
    const struct conv_job *job = context;
    float *y = whit_step_output(job->tape, job->step);
    for (uint32_t item = begin; item < end; item++) {
        uint32_t channel = item * CHANNELS, rest = job->width - channel, n = rest < CHANNELS ? rest : CHANNELS;
        for (uint32_t r = 0; r < job->tape->n_rows; r++) {
            uint32_t t = r % job->n_tokens;
            convolve_token(job, r - t, t, channel, n, job->step->node->is_silu, y + (size_t)r * job->width + channel);
        }
    }
}

void whit_op_conv(const whit_tape *tape, const whit_tape_step *step)
{
    struct conv_job job = make_job(tape, step);
    whit_pool_run(tape->pool, convolve_channels, &job, count_items(&job), 1);
}

/* Computes du (n_tokens, CHANNELS) of one sequence: the gradients of the sums over taps. */
static void find_sum_gradients(const struct conv_job *job, size_t first, uint32_t channel, uint32_t n, float *du)
{
    const float *dy = whit_step_doutput(job->tape, job->step);
    for (uint32_t t = 0; t < job->n_tokens; t++) {
        const float *dy_t = dy + (first + t) * job->width + channel;
        float *du_t = du + (size_t)t * CHANNELS;
        if (!job->step->node->is_silu) {
            memcpy(du_t, dy_t, n * sizeof *du_t);
            continue;
        }
        convolve_token(job, first, t, channel, n, false, du_t);
        for (uint32_t c = 0; c < n; c++) {
            float s = whit_delta_sigmoid(du_t[c]);
            du_t[c] = dy_t[c] * s * (1 + du_t[c] * (1 - s));
        }
    }
}

static void add_input_gradients(const struct conv_job *job, size_t first, uint32_t channel, uint32_t n, const float *du)
{
    float *dx = whit_step_dinput(job->tape, job->step, 0);
    for (uint32_t t = 0; t < job->n_tokens; t++) {
        float *dx_t = dx + (first + t) * job->width + channel;
        if (job->step->overwrites[0]) memset(dx_t, 0, n * sizeof *dx_t);
        for (uint32_t j = 0; j < job->n_taps; j++) {
            uint32_t later = t + job->n_taps - 1 - j;
            const float *w = job->weight + (size_t)j * job->width + channel, *du_t = du + (size_t)later * CHANNELS;
            if (later >= job->n_tokens) continue;
            for (uint32_t c = 0; c < n; c++) dx_t[c] += w[c] * du_t[c];
        }
    }
}

static void add_weight_gradients(const struct conv_job *job, size_t first, uint32_t channel, uint32_t n,
                                 const float *du)
{
    const float *x = whit_step_input(job->tape, job->step, 0);
    for (uint32_t j = 0; j < job->n_taps; j++) {
        uint32_t back = job->n_taps - 1 - j;
        float *dw = job->dweight + (size_t)j * job->width + channel;
        for (uint32_t t = back; t < job->n_tokens; t++) {
            const float *x_t = x + (first + t - back) * job->width + channel, *du_t = du + (size_t)t * CHANNELS;
            for (uint32_t c = 0; c < n; c++) dw[c] += du_t[c] * x_t[c];
        }
    }
}

static void channel_gradients(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    const struct conv_job *job = context;
    float *du = job->tape->scratch + worker * job->tape->scratch_elems;
    for (uint32_t item = begin; item < end; item++) {
        uint32_t channel = item * CHANNELS, rest = job->width - channel, n = rest < CHANNELS ? rest : CHANNELS;
        for (size_t first = 0; first < job->tape->n_rows; first += job->n_tokens) {
            find_sum_gradients(job, first, channel, n, du);
            add_input_gradients(job, first, channel, n, du);
            if (job->dweight) add_weight_gradients(job, first, channel, n, du);
        }
    }
}

void whit_op_conv_gradient(const whit_tape *tape, const whit_tape_step *step)
{
    struct conv_job job = make_job(tape, step);
    whit_pool_run(tape->pool, channel_gradients, &job, count_items(&job), 1);
}
