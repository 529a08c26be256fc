/* SPDX-License-Identifier: MIT
 * Routes a token in a mixture of experts: computes the token's experts and their weights from the router's logits.
 * Plain C is used on every level, because a token has at most a thousand logits. */
#include "kernels/kernels.h"
#include "kernels/math.h"

static void score_sigmoid(const float *logits, uint32_t n, float *scores)
{
    for (uint32_t e = 0; e < n; e++) scores[e] = 1.0f / (1.0f + whit_exp_f32(-logits[e]));
}

static void score_softmax(const float *logits, uint32_t n, float *scores)
{
    float largest = logits[0], sum = 0;
    for (uint32_t e = 1; e < n; e++) largest = logits[e] > largest ? logits[e] : largest;
    for (uint32_t e = 0; e < n; e++) sum += scores[e] = whit_exp_f32(logits[e] - largest);
    for (uint32_t e = 0; e < n; e++) scores[e] /= sum;
}

/* Finds the n_used experts with the largest ranks (score plus `choice`) by insertion into a sorted list; of equal ranks
 * the expert with the lower index is first. */
static void choose_experts(const whit_router *r, const float *scores, uint32_t *experts, float *ranks)
{
    uint32_t n = 0;
    for (uint32_t e = 0; e < r->n_experts; e++) {
        const float rank = r->choice ? scores[e] + r->choice[e] : scores[e];
        if (n == r->n_used && !(rank > ranks[n - 1])) continue;
        uint32_t at = n < r->n_used ? n++ : n - 1;
        for (; at > 0 && rank > ranks[at - 1]; at--) {
            ranks[at] = ranks[at - 1];
            experts[at] = experts[at - 1];
        }
        ranks[at] = rank;
        experts[at] = e;
    }
}

void whit_route_token(const whit_router *r, const float *logits, float *scores, uint32_t *experts, float *weights)
{
    float sum = 0;
    if (r->is_sigmoid)
        score_sigmoid(logits, r->n_experts, scores);
    else
        score_softmax(logits, r->n_experts, scores);
    choose_experts(r, scores, experts, weights);
    for (uint32_t i = 0; i < r->n_used; i++) sum += weights[i] = scores[experts[i]];
    for (uint32_t i = 0; i < r->n_used; i++) {
        if (r->is_normalised) weights[i] /= sum + r->added;
        weights[i] *= r->factor;
        if (r->scales) weights[i] *= r->scales[experts[i]];
    }
}
