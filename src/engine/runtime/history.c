/* SPDX-License-Identifier: MIT
 * Penalties for tokens that occurred before. */
#include "runtime/history.h"
#include "runtime/elementary.h"
#include "base/mem.h"

#include <float.h>

whit_status whit_history_open(uint32_t n_vocab, uint32_t n_history, const whit_allocator *allocator,
                              whit_history *history, whit_error *error)
{
    *history = (whit_history){.n_vocab = n_vocab, .n_history = n_history, .allocator = allocator};
    history->ring = whit_zalloc_array(allocator, n_history, sizeof *history->ring);
    history->recent = whit_zalloc_array(allocator, n_history, sizeof *history->recent);
    history->matches = whit_zalloc_array(allocator, n_history, sizeof *history->matches);
    history->per_id = whit_zalloc_array(allocator, n_vocab, sizeof *history->per_id);
    if (history->ring && history->recent && history->matches && history->per_id) return WHIT_OK;
    whit_history_close(history);
    return whit_fail_memory(error, "the history of a sampler", 12 * (size_t)n_history + 4 * (size_t)n_vocab);
}

void whit_history_close(whit_history *history)
{
    const whit_allocator *allocator = history->allocator;
    size_t n = history->n_history;
    whit_free(allocator, history->ring, n * sizeof *history->ring);
    whit_free(allocator, history->recent, n * sizeof *history->recent);
    whit_free(allocator, history->matches, n * sizeof *history->matches);
    whit_free(allocator, history->per_id, history->n_vocab * sizeof *history->per_id);
    *history = (whit_history){0};
}

void whit_history_push(whit_history *history, uint32_t id)
{
    if (history->n_history == 0) return;
    history->ring[history->head] = (int32_t)id;
    history->head = history->head + 1 < history->n_history ? history->head + 1 : 0;
    if (history->n_tokens < history->n_history) history->n_tokens++;
}

void whit_history_clear(whit_history *history)
{
    history->head = history->n_tokens = 0;
}

/* Writes the last `window` tokens (or all, if there are fewer) to `recent`, latest first, and returns their number. */
static uint32_t unroll(whit_history *history, uint32_t window)
{
    uint32_t n = window < history->n_tokens ? window : history->n_tokens, from = history->head;
    for (uint32_t i = 0; i < n; i++) {
        from = from ? from - 1 : history->n_history - 1;
        history->recent[i] = history->ring[from];
    }
    return n;
}

static void edit(whit_candidates *candidates, uint32_t id, double logit)
{
    if (logit > FLT_MAX) logit = FLT_MAX; /* limits the logit, so that no penalty makes it infinite */
    if (logit < -FLT_MAX) logit = -FLT_MAX;
    candidates->keys[id] = whit_key((float)logit, id);
}

static bool is_banned(const whit_candidates *candidates, uint32_t id)
{
    return whit_key_logit(candidates->keys[id]) < -FLT_MAX;
}

void whit_history_penalize(whit_history *history, whit_candidates *candidates, uint32_t window, float repeat,
                           float frequency, float presence)
{
    uint32_t n = unroll(history, window);
    for (uint32_t i = 0; i < n; i++) history->per_id[history->recent[i]]++;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t id = (uint32_t)history->recent[i], count = history->per_id[id];
        if (count == 0 || is_banned(candidates, id)) continue;
        history->per_id[id] = 0;
        double logit = whit_key_logit(candidates->keys[id]);
        logit = logit <= 0.0 ? logit * repeat : logit / repeat;
        edit(candidates, id, logit - (double)count * frequency - presence);
    }
    for (uint32_t i = 0; i < n; i++) history->per_id[history->recent[i]] = 0;
}

static bool is_breaker(const whit_history *history, uint32_t id)
{
    return history->breakers && history->breakers[id / 8] >> (id % 8) & 1;
}

/* Computes the Z function (Gusfield) for k >= 1: matches[k] is the number of tokens from k on that equal the tokens
 * from 0 on. */
static void match_lengths(const int32_t *tokens, uint32_t n, uint32_t *matches)
{
    uint32_t box_begin = 0, box_end = 0; /* tokens [box_begin, box_end) equal the first box_end - box_begin tokens */
    for (uint32_t k = 1; k < n; k++) {
        uint32_t length = 0;
        if (k < box_end) {
            length = matches[k - box_begin];
            if (length > box_end - k) length = box_end - k;
        }
        while (k + length < n && tokens[k + length] == tokens[length]) length++;
        matches[k] = length;
        if (k + length > box_end) {
            box_begin = k;
            box_end = k + length;
        }
    }
}

void whit_history_penalize_repetition(whit_history *history, whit_candidates *candidates, uint32_t window,
                                      float multiplier, float base, uint32_t allowed)
{
    uint32_t n = unroll(history, window);
    uint32_t limit = 0; /* number of tokens after the latest breaker; no repetition extends across a breaker */
    while (limit < n && !is_breaker(history, (uint32_t)history->recent[limit])) limit++;
    if (n <= allowed || limit < allowed) return;
    match_lengths(history->recent, n, history->matches);
    /* The tokens from index k on match the latest tokens, and recent[k - 1] is the token that followed them: picking it
     * again would extend the repetition. */
    for (uint32_t k = 1; k < n; k++) {
        uint32_t length = history->matches[k] < limit ? history->matches[k] : limit;
        uint32_t id = (uint32_t)history->recent[k - 1];
        if (length >= allowed && length + 1 > history->per_id[id]) history->per_id[id] = length + 1;
    }
    for (uint32_t k = 1; k < n; k++) {
        uint32_t id = (uint32_t)history->recent[k - 1];
        if (history->per_id[id] == 0) continue;
        uint32_t beyond = history->per_id[id] - 1 - allowed;
        history->per_id[id] = 0;
        if (is_breaker(history, id) || is_banned(candidates, id)) continue;
        double penalty = multiplier * whit_quick_pow(base, beyond);
        edit(candidates, id, whit_key_logit(candidates->keys[id]) - penalty);
    }
}
