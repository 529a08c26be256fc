/* SPDX-License-Identifier: MIT
 * Computes attention of one query over a group whose first blocks are closed; the packed caches share this code. Each
 * cache has its own functions for the scores and the values of closed blocks (closed_form). */
#ifndef WHIT_KERNELS_GENERIC_ATTENTION_CLOSED_H
#define WHIT_KERNELS_GENERIC_ATTENTION_CLOSED_H

#include "kernels/generic/attention.h"

static inline float dot_words(const int16_t *words, const uint8_t *query, uint32_t head_dim)
{
    const int16_t *codes = (const int16_t *)(const void *)query;
    uint32_t sum = 0;
    for (uint32_t d = 0; d < head_dim; d++) sum += (uint32_t)(words[d] * codes[d]);
    return (float)(int32_t)sum;
}

/* Positions of a group that a query attends to: [begin, closed) in closed blocks, without sinks, and [open, end) in
 * open blocks. Either range is empty if it ends before it begins. */
typedef struct seen {
    uint32_t begin, closed, open, end;
} seen;

static inline seen seen_of(const whit_kv_group *group, whit_kv_span span)
{
    const uint32_t limit = (uint32_t)__builtin_popcount(group->closed) * BLOCK;
    const uint32_t first = group->sinks && span.begin < WHIT_KV_SINKS ? WHIT_KV_SINKS : span.begin;
    return (seen){.begin = first,
                  .closed = span.end < limit ? span.end : limit,
                  .open = span.begin > limit ? span.begin : limit,
                  .end = span.end};
}

/* Computes a query's scores at positions [s.begin, s.closed). `factor` is the scale of the query's codes times the
 * scale of the scores. `context` is closed_form.context. */
typedef void closed_scores_fn(const void *context, const whit_kv_group *group, seen s, const uint8_t *query,
                              uint32_t head_dim, float factor, float *scores);
/* Adds the values at positions [s.begin, s.closed), times their weights, to out (head_dim). */
typedef void closed_values_fn(const void *context, const whit_kv_group *group, seen s, uint32_t head_dim,
                              const float *weights, float *out);
typedef struct closed_form {
    closed_scores_fn *scores;
    closed_values_fn *values;
    const void *context;
} closed_form;

static inline void attend_closed(const closed_form *form, const whit_kv_group *group, const uint8_t *query,
                                 whit_kv_span span, uint32_t head_dim, float scale, float *partial)
{
    const group_arrays open = arrays_of(WHIT_KV_F16, head_dim, group);
    const seen s = seen_of(group, span);
    const float factor = whit_load_f32(query + whit_kv_query_scale_offset(WHIT_KV_F16, head_dim)) * scale;
    const int16_t *query_codes = (const int16_t *)(const void *)query;
    whit_kv_sinks sinks = {0};
    if (group->sinks) sinks = whit_kv_sinks_arrays(head_dim, group->sinks);
    float scores[GROUP];
    for (uint32_t j = span.begin; j < s.begin && j < span.end; j++)
        scores[j] = dot_words(sinks.keys + j * head_dim, query, head_dim) * (factor * sinks.key_scales[j]);
    form->scores(form->context, group, s, query, head_dim, factor, scores);
    for (uint32_t j = s.open; j < s.end; j++) {
        const whit_kv_arrays *from = &open.of[j / BLOCK];
        int32_t sum = 0;
        for (uint32_t d = 0; d < head_dim; d++)
            sum += f16_code(((const uint16_t *)from->keys)[d * BLOCK + j % BLOCK], from->key_scales[j % BLOCK]) *
                query_codes[d];
        scores[j] = (float)sum * (factor * from->key_scales[j % BLOCK]);
    }
    softmax_queries(scores, span, head_dim, partial);

    float weights[GROUP] = {0};
    int32_t codes[GROUP];
    for (uint32_t j = s.open; j < s.end; j++) weights[j] = scores[j] * open.of[j / BLOCK].value_scales[j % BLOCK];
    float unit = 0;
    if (s.open < s.end)
        unit = quantise_probs(WHIT_KV_F16, weights, (whit_kv_span){(uint16_t)s.open, (uint16_t)s.end}, codes);
    for (uint32_t d = 0; d < head_dim; d++) {
        int32_t sum = 0;
        for (uint32_t j = s.open; j < s.end; j++) {
            const whit_kv_arrays *from = &open.of[j / BLOCK];
            sum += codes[j] *
                f16_code(((const uint16_t *)from->values)[j % BLOCK * head_dim + d], from->value_scales[j % BLOCK]);
        }
        partial[d] = (float)sum * unit;
    }
    if (s.begin < s.closed) form->values(form->context, group, s, head_dim, scores, partial);
    for (uint32_t j = span.begin; j < s.begin && j < span.end; j++)
        for (uint32_t d = 0; d < head_dim; d++)
            partial[d] = fmaf(scores[j] * sinks.value_scales[j], (float)sinks.values[j * head_dim + d], partial[d]);
}

/* Implements whit_kv_attend_fn (kernels.h). */
static inline void attend_closed_group(const closed_form *form, const whit_kv_group *group, const uint8_t *queries,
                                       const whit_kv_span *spans, uint32_t n, uint32_t head_dim, float scale,
                                       float *partials, float *into)
{
    const size_t elems = whit_kv_partial_elems(head_dim), query_bytes = whit_kv_query_bytes(WHIT_KV_F16, head_dim);
    for (uint32_t i = 0; i < n; i++) {
        float *partial = into ? partials : partials + i * elems;
        partial[head_dim + 1] = 0;
        if (spans[i].begin < spans[i].end)
            attend_closed(form, group, queries + i * query_bytes, spans[i], head_dim, scale * WHIT_EXP_LOG2E, partial);
        if (into) whit_kv_merge_generic(into + i * elems, partial, 1, head_dim);
    }
}

#endif
