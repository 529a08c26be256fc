/* SPDX-License-Identifier: MIT */
#include "runtime/draft.h"

enum { PLACES_MAX = 64 }; /* maximum number of earlier occurrences that are examined */

static void free_arrays(whit_draft *draft)
{
    whit_free(draft->allocator, draft->history, draft->capacity * sizeof *draft->history);
    whit_free(draft->allocator, draft->latest, draft->n_buckets * sizeof *draft->latest);
    whit_free(draft->allocator, draft->earlier, draft->capacity * sizeof *draft->earlier);
}

whit_status whit_draft_open(size_t capacity, const whit_allocator *allocator, whit_draft *draft, whit_error *error)
{
    *draft = (whit_draft){.capacity = capacity, .n_buckets = 16, .allocator = allocator};
    while (draft->n_buckets < capacity && draft->n_buckets < 1u << 16) draft->n_buckets *= 2;
    draft->history = whit_zalloc_array(allocator, capacity, sizeof *draft->history);
    draft->latest = whit_zalloc_array(allocator, draft->n_buckets, sizeof *draft->latest);
    draft->earlier = whit_zalloc_array(allocator, capacity, sizeof *draft->earlier);
    if (draft->history && draft->latest && draft->earlier) return WHIT_OK;
    free_arrays(draft);
    *draft = (whit_draft){0};
    return whit_fail_memory(error, "the text so far", capacity * sizeof *draft->history);
}

void whit_draft_close(whit_draft *draft)
{
    free_arrays(draft);
    *draft = (whit_draft){0};
}

/* Returns the bucket of the pair of tokens at `position` - 1 and `position`. */
static size_t bucket_of(const whit_draft *draft, size_t position)
{
    uint32_t a = (uint32_t)draft->history[position - 1], b = (uint32_t)draft->history[position];
    uint32_t hash = (a * 0x9e3779b1u) ^ (b * 0x85ebca77u);
    return (hash ^ hash >> 15) & (draft->n_buckets - 1);
}

static void enter_pair(whit_draft *draft, size_t position)
{
    if (!position) return;
    uint32_t *latest = &draft->latest[bucket_of(draft, position)];
    draft->earlier[position] = *latest;
    *latest = (uint32_t)position + 1;
}

void whit_draft_push(whit_draft *draft, int32_t id)
{
    if (draft->n_tokens == draft->capacity) { /* drop the older half of the history */
        draft->n_tokens -= (draft->capacity + 1) / 2;
        memmove(draft->history, draft->history + (draft->capacity + 1) / 2, draft->n_tokens * sizeof *draft->history);
        memset(draft->latest, 0, draft->n_buckets * sizeof *draft->latest);
        for (size_t i = 0; i < draft->n_tokens; i++) enter_pair(draft, i);
    }
    if (draft->n_tokens == draft->capacity) return;
    draft->history[draft->n_tokens] = id;
    enter_pair(draft, draft->n_tokens++);
}

/* Returns how many tokens up to `position`, counted backwards, equal the last tokens of the text, at most
 * WHIT_DRAFT_MATCH_MAX. */
static uint32_t count_matched(const whit_draft *draft, size_t position)
{
    const int32_t *end = draft->history + draft->n_tokens - 1, *at = draft->history + position;
    uint32_t n = 0;
    while (n < WHIT_DRAFT_MATCH_MAX && n <= position && at[-(ptrdiff_t)n] == end[-(ptrdiff_t)n]) n++;
    return n;
}

uint32_t whit_draft_guess(const whit_draft *draft, uint32_t n_most, int32_t *ids, uint32_t *n_matched)
{
    size_t n = draft->n_tokens, found = 0;
    uint32_t longest = WHIT_DRAFT_MATCH_MIN - 1;
    if (n_matched) *n_matched = draft->script ? WHIT_DRAFT_MATCH_MAX : 0;
    if (draft->script) return draft->script(draft->script_user, n, n_most, ids);
    if (n < WHIT_DRAFT_MATCH_MIN) return 0;
    uint32_t next = draft->earlier[n - 1];
    for (uint32_t i = 0; next && i < PLACES_MAX && longest < WHIT_DRAFT_MATCH_MAX; i++) {
        size_t position = next - 1;
        uint32_t matched = count_matched(draft, position);
        if (matched > longest) longest = matched, found = position + 1;
        next = draft->earlier[position];
    }
    if (!found) return 0;
    for (uint32_t i = 0; i < n_most; i++) ids[i] = found + i < n ? draft->history[found + i] : ids[found + i - n];
    if (n_matched) *n_matched = longest;
    return n_most;
}
