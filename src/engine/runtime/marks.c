/* SPDX-License-Identifier: MIT
 * Keeps the checkpoints (marks) of a session: decides how many there are, when they are made, and which one is
 * evicted. */
#include "base/options.h"
#include "runtime/session.h"
#include "runtime/split.h"

enum {
    BLOCK = WHIT_KV_BLOCK_TOKENS,
    INTERVAL_MIN = 1024,    /* smallest default of the interval n_mark_tokens */
    MESSAGE_TOKENS_MIN = 48 /* smallest distance in tokens between the last mark and the end of a message at which
                             * the latter is marked */
};

/* ---- memory --------------------------------------------------------------------------------- */

/* Returns the number of marks: n_marks, or, if state_bytes is given, as many as fit into it, at most WHIT_MARKS_MAX and
 * at most one mark for each block of all sequences' contexts. */
static uint32_t count_marks(const whit_session_options *o, uint64_t mark_bytes)
{
    if (!o->state_bytes) return o->n_marks;
    const uint64_t useful = ((uint64_t)o->n_ctx_tokens + BLOCK - 1) / BLOCK * o->n_sequences;
    uint64_t n = o->state_bytes / mark_bytes;
    if (n > useful) n = useful;
    return n > WHIT_MARKS_MAX ? WHIT_MARKS_MAX : (uint32_t)n;
}

/* Returns the interval of marks in tokens; the default lets a full context use at most half of the n marks. */
static uint32_t interval_of(const whit_session_options *o, uint32_t n)
{
    if (o->n_mark_tokens) return o->n_mark_tokens;
    const uint32_t tokens = o->n_ctx_tokens / (n > 2 ? n / 2 : 1);
    return tokens < INTERVAL_MIN ? INTERVAL_MIN : (tokens + BLOCK - 1) / BLOCK * BLOCK;
}

void whit_session_place_marks(whit_session *s, whit_arena *arena)
{
    whit_marks *marks = &s->marks;
    *marks = (whit_marks){0};
    marks->tail_bytes = whit_kv_tail_bytes_max(&s->kv, &marks->n_ids);
    if (!marks->tail_bytes) return;
    marks->mark_bytes = marks->tail_bytes + marks->n_ids * sizeof *marks->ids + sizeof *marks->items;
    const uint64_t more_bytes = s->split_tail_bytes ? s->split_tail_bytes - marks->tail_bytes : 0;
    marks->n = count_marks(&s->options, marks->mark_bytes + more_bytes);
    marks->interval = interval_of(&s->options, marks->n);
    marks->items = whit_arena_take(arena, marks->n, sizeof *marks->items);
    marks->ids = whit_arena_take(arena, (uint64_t)marks->n * marks->n_ids, sizeof *marks->ids);
    marks->tails = whit_arena_take(arena, marks->n, marks->tail_bytes);
    if (marks->items) memset(marks->items, 0, marks->n * sizeof *marks->items);
}

/* ---- making and evicting marks -------------------------------------------------------------- */

bool whit_session_is_to_mark(const whit_session *s, uint32_t sequence, uint32_t n_tokens, int32_t id)
{
    if (!s->marks.n || n_tokens > s->options.n_ctx_tokens) return false;
    if (n_tokens == s->to_mark[sequence] || n_tokens % s->marks.interval == 0) return true;
    return n_tokens >= s->last_mark[sequence] + MESSAGE_TOKENS_MIN && whit_model_is_end(s->model, id);
}

/* Returns whether a sequence begins with the prefix of mark i; the sequence must have at least as many tokens. */
static bool is_beginning(const whit_session *s, uint32_t i, uint32_t sequence)
{
    const whit_mark *m = &s->marks.items[i];
    const int32_t *ids = whit_session_tokens_of(s, sequence) + (size_t)m->first * BLOCK;
    uint8_t key[WHIT_HASH_BYTES];
    if (memcmp(whit_mark_ids(&s->marks, i), ids, (m->n_tokens - m->first * BLOCK) * sizeof *ids)) return false;
    whit_session_block_key(s, sequence, m->first, key);
    return memcmp(m->key, key, sizeof key) == 0;
}

/* Returns whether every cache class without a window still stores the last block before a mark's tail. */
static bool has_blocks(const whit_session *s, const whit_mark *m)
{
    bool has = true;
    for (uint32_t c = 0; c < s->kv.n_classes && m->first; c++) {
        const whit_kv_class *class = &s->kv.classes[c];
        if (class->role == WHIT_KV_ROLE_LAYERS && !class->window) has &= whit_kv_pool_knows(&class->pool, m->key);
    }
    return has;
}

void whit_session_note_mark(whit_session *s, uint32_t sequence, uint64_t number)
{
    uint64_t *recent = s->recent_marks + (size_t)sequence * WHIT_MARKS_RECENT;
    uint32_t at = 0;
    while (at < WHIT_MARKS_RECENT - 1 && recent[at] != number) at++;
    memmove(recent + 1, recent, at * sizeof *recent);
    recent[0] = number;
}

static bool is_recent(const whit_session *s, const whit_mark *m)
{
    const uint32_t n = s->options.n_sequences * WHIT_MARKS_RECENT;
    for (uint32_t i = 0; i < n; i++)
        if (s->recent_marks[i] == m->number) return true;
    return false;
}

static uint64_t value_of(const whit_session *s, const whit_mark *m)
{
    enum { USES_MAX = 15, RECENT_FACTOR = 64 };
    const uint64_t t = 4 * (uint64_t)s->marks.n, age = s->marks.clock - m->when;
    const uint32_t uses = m->n_uses < USES_MAX ? m->n_uses : USES_MAX;
    const uint64_t gap = (uint64_t)m->gap * (is_recent(s, m) ? RECENT_FACTOR : 1);
    return has_blocks(s, m) ? gap * (1 + uses) * t * 16 / (t + age) : 0;
}

/* Removes mark i; its gap is added to the gaps of the marks that follow it directly (whose parent it is). */
static void evict_mark(whit_marks *marks, uint32_t i)
{
    whit_mark *gone = &marks->items[i];
    for (uint32_t j = 0; j < marks->n; j++) {
        whit_mark *m = &marks->items[j];
        if (!m->n_tokens || m->parent != gone->number) continue;
        m->parent = gone->parent;
        m->gap += gone->gap;
    }
    gone->n_tokens = 0;
    marks->n_evicted++;
}

/* Returns the index of a free mark; evicts the mark with the least value if none is free. */
static uint32_t find_place(whit_session *s)
{
    whit_marks *marks = &s->marks;
    uint32_t least = 0;
    uint64_t least_value = UINT64_MAX;
    for (uint32_t i = 0; i < marks->n; i++) {
        if (!marks->items[i].n_tokens) return i;
        const uint64_t value = value_of(s, &marks->items[i]);
        if (value >= least_value) continue;
        least = i;
        least_value = value;
    }
    evict_mark(marks, least);
    return least;
}

/* Sets the parent of `mark` to the nearest earlier mark of the sequence's prefix, and its gap to the distance from
 * it. */
static void find_parent(const whit_session *s, uint32_t sequence, whit_mark *mark)
{
    uint32_t latest = 0;
    for (uint32_t i = 0; i < s->marks.n; i++) {
        const whit_mark *m = &s->marks.items[i];
        if (m->n_tokens <= latest || m->n_tokens >= mark->n_tokens || !is_beginning(s, i, sequence)) continue;
        latest = m->n_tokens;
        mark->parent = m->number;
    }
    mark->gap = mark->n_tokens - latest;
}

void whit_session_keep_mark(whit_session *s, uint32_t sequence, uint32_t n_tokens)
{
    whit_marks *marks = &s->marks;
    if (!marks->n || s->is_mixed[sequence] || n_tokens > s->options.n_ctx_tokens ||
        !whit_kv_has_tail(&s->kv, sequence, n_tokens))
        return;
    s->last_mark[sequence] = n_tokens;
    marks->clock++;
    for (uint32_t i = 0; i < marks->n; i++) {
        if (marks->items[i].n_tokens != n_tokens || !is_beginning(s, i, sequence)) continue;
        marks->items[i].when = marks->clock;
        whit_session_note_mark(s, sequence, marks->items[i].number);
        return;
    }
    const uint32_t at = find_place(s);
    whit_mark mark = {.n_tokens = n_tokens,
                      .first = whit_kv_tail_first(&s->kv, n_tokens),
                      .when = marks->clock,
                      .number = ++marks->n_made};
    const int32_t *ids = whit_session_tokens_of(s, sequence) + (size_t)mark.first * BLOCK;
    whit_session_block_key(s, sequence, mark.first, mark.key);
    find_parent(s, sequence, &mark);
    marks->items[at] = mark;
    whit_session_note_mark(s, sequence, mark.number);
    memcpy(whit_mark_ids(marks, at), ids, (n_tokens - mark.first * BLOCK) * sizeof *ids);
    whit_kv_tail_save(&s->kv, sequence, n_tokens, whit_mark_tail(marks, at));
}

whit_status whit_session_mark(whit_session *s, uint32_t sequence, whit_error *error)
{
    WHIT_NEED(s);
    WHIT_TRY(whit_session_check_sequence(s, sequence, error));
    WHIT_TRY(whit_split_tell(s, WHIT_SPLIT_MARK, (uint32_t[3]){sequence}, NULL, 0, 0, error));
    whit_session_keep_mark(s, sequence, s->positions[sequence]);
    return WHIT_OK;
}

/* ---- finding marks to save ------------------------------------------------------------------ */

/* Returns whether mark i may be saved with a sequence: it is not yet chosen, belongs to the sequence's prefix, and is
 * at least WHIT_STATE_BACK_TOKENS tokens before the end; at later positions the sequence can resume from the tail of
 * its end. */
static bool is_worth_saving(const whit_session *s, uint32_t i, uint32_t sequence, const uint32_t *chosen, uint32_t n)
{
    const whit_mark *m = &s->marks.items[i];
    for (uint32_t k = 0; k < n; k++)
        if (chosen[k] == i) return false;
    return m->n_tokens && m->n_tokens + WHIT_STATE_BACK_TOKENS <= s->positions[sequence] &&
        is_beginning(s, i, sequence);
}

uint32_t whit_session_find_marks(const whit_session *s, uint32_t sequence, uint32_t *marks, uint32_t most)
{
    uint32_t n = 0;
    if (s->is_mixed[sequence] || s->positions[sequence] > s->options.n_ctx_tokens) return 0;
    for (; n < most; n++) {
        uint64_t best = 0;
        for (uint32_t i = 0; i < s->marks.n; i++) {
            if (!is_worth_saving(s, i, sequence, marks, n)) continue;
            const whit_mark *m = &s->marks.items[i];
            const uint64_t merit = n ? (uint64_t)m->n_uses << 32 | m->gap : m->n_tokens;
            if (merit <= best) continue;
            best = merit;
            marks[n] = i;
        }
        if (!best) break;
    }
    for (uint32_t i = 1; i < n; i++)
        for (uint32_t k = i; k && s->marks.items[marks[k - 1]].n_tokens > s->marks.items[marks[k]].n_tokens; k--) {
            const uint32_t later = marks[k - 1];
            marks[k - 1] = marks[k];
            marks[k] = later;
        }
    return n;
}

/* ---- counts --------------------------------------------------------------------------------- */

void whit_session_count_marks(const whit_session *s, whit_mark_counts *counts)
{
    const whit_marks *marks = &s->marks;
    const size_t given = counts->struct_bytes;
    whit_mark_counts all = {.struct_bytes = given,
                            .n_marks_max = marks->n,
                            .n_marks = (uint32_t)(marks->n_made - marks->n_evicted),
                            .n_made = marks->n_made,
                            .n_used = marks->n_used,
                            .n_evicted = marks->n_evicted,
                            .mark_bytes = marks->mark_bytes};
    memcpy(counts, &all, given < sizeof all ? given : sizeof all);
}
