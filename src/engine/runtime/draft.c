/* SPDX-License-Identifier: MIT */
#include "runtime/draft.h"

#define LONGEST_MATCH  4 /* tokens that must agree, tried from long to short */
#define SHORTEST_MATCH 2

whit_status whit_draft_open(size_t capacity, const whit_allocator *allocator, whit_draft *draft, whit_error *error)
{
    *draft = (whit_draft){.capacity = capacity, .allocator = allocator};
    draft->history = whit_zalloc_array(allocator, capacity, sizeof *draft->history);
    return draft->history ? WHIT_OK : whit_fail_memory(error, "the text so far", capacity * sizeof *draft->history);
}

void whit_draft_close(whit_draft *draft)
{
    whit_free(draft->allocator, draft->history, draft->capacity * sizeof *draft->history);
    *draft = (whit_draft){0};
}

void whit_draft_push(whit_draft *draft, int32_t id)
{
    if (draft->n_tokens == draft->capacity) { /* the older half makes room */
        draft->n_tokens -= (draft->capacity + 1) / 2;
        memmove(draft->history, draft->history + (draft->capacity + 1) / 2, draft->n_tokens * sizeof *draft->history);
    }
    if (draft->n_tokens < draft->capacity) draft->history[draft->n_tokens++] = id;
}

uint32_t whit_draft_guess(const whit_draft *draft, uint32_t n_most, int32_t *ids)
{
    size_t n = draft->n_tokens;
    for (size_t match = LONGEST_MATCH; match >= SHORTEST_MATCH; match--) {
        if (n <= match) continue;
        const int32_t *tail = draft->history + n - match;
        for (size_t at = n - match; at-- > 0;) { /* the latest place first */
            if (memcmp(draft->history + at, tail, match * sizeof *tail) != 0) continue;
            size_t found = n - (at + match);
            if (found > n_most) found = n_most;
            memcpy(ids, draft->history + at + match, found * sizeof *ids);
            return (uint32_t)found;
        }
    }
    return 0;
}
