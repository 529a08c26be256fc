/* SPDX-License-Identifier: MIT
 * Implements the prefix cache: finds full KV blocks of this session, which are in use or left from ended sequences, by
 * a key, a hash of everything from which they were computed.
 *
 * The key of a block is a hash over the previous block's key and its own ids. The chain starts from a hash over the
 * model, the types of cache and activations, and the adapters that the sequence has mounted. */
#include "runtime/session.h"

#include "runtime/adapter.h"
#include "runtime/split.h"

enum { BLOCK = WHIT_KV_BLOCK_TOKENS };

static void first_key(const whit_session *s, uint32_t sequence, uint8_t key[WHIT_HASH_BYTES])
{
    const whit_session_mounts *mounts = &s->mounts[sequence];
    whit_hash hash;
    whit_hash_begin(&hash, "kv.first");
    whit_hash_add(&hash, whit_model_identity(s->model), WHIT_HASH_BYTES);
    whit_hash_add_u64(&hash, (uint64_t)s->options.kv << 32 | s->options.act);
    for (uint32_t i = 0; i < mounts->n; i++) {
        whit_hash_add(&hash, mounts->items[i].adapter->digest, WHIT_HASH_BYTES);
        whit_hash_add(&hash, &mounts->items[i].scale, sizeof mounts->items[i].scale);
    }
    whit_hash_end(&hash, key);
}

static void next_key(const int32_t ids[BLOCK], uint8_t key[WHIT_HASH_BYTES])
{
    whit_hash hash;
    whit_hash_begin(&hash, "kv.block");
    whit_hash_add(&hash, key, WHIT_HASH_BYTES);
    whit_hash_add(&hash, ids, BLOCK * sizeof *ids);
    whit_hash_end(&hash, key);
}

void whit_session_block_key(const whit_session *s, uint32_t sequence, uint32_t n_blocks, uint8_t key[WHIT_HASH_BYTES])
{
    const whit_kv_name *name = n_blocks ? whit_kv_name_of(&s->kv, sequence, n_blocks - 1) : NULL;
    if (name) {
        memcpy(key, name->key, WHIT_HASH_BYTES);
        return;
    }
    const int32_t *ids = whit_session_tokens_of(s, sequence);
    first_key(s, sequence, key);
    for (uint32_t b = 0; b < n_blocks; b++) next_key(ids + b * BLOCK, key);
}

void whit_session_name_blocks(whit_session *s, uint32_t sequence, uint32_t from, uint32_t to)
{
    uint32_t n =
        /* Ids beyond the context are not stored. */
        (to < s->options.n_ctx_tokens ? to : s->options.n_ctx_tokens) / BLOCK;
    if (from / BLOCK >= n || s->is_mixed[sequence]) return;
    const int32_t *ids = whit_session_tokens_of(s, sequence);
    uint8_t key[WHIT_HASH_BYTES];
    whit_session_block_key(s, sequence, from / BLOCK, key);
    for (uint32_t b = from / BLOCK; b < n; b++) {
        uint8_t parent[WHIT_HASH_BYTES];
        memcpy(parent, key, sizeof parent);
        next_key(ids + b * BLOCK, key);
        if (!whit_kv_name_block(&s->kv, sequence, b, key, ids + b * BLOCK) || !s->on_cache_event) continue;
        const whit_cache_event event = {.struct_bytes = sizeof event,
                                        .key = key,
                                        .ids = ids + b * BLOCK,
                                        .parent = b ? parent : NULL,
                                        .sequence = sequence};
        s->on_cache_event(s->cache_event_user, &event);
    }
}

/* ---- reporting changes of the prefix cache -------------------------------------------------- */

_Static_assert(WHIT_CACHE_KEY_BYTES == WHIT_HASH_BYTES && WHIT_CACHE_BLOCK_TOKENS == BLOCK,
               "as the public header says");

static void tell_removal(void *user, const whit_kv_name *name)
{
    const whit_session *s = user;
    const whit_cache_event event = {.struct_bytes = sizeof event, .key = name->key};
    s->on_cache_event(s->cache_event_user, &event);
}

void whit_session_watch_cache(whit_session *s, whit_cache_event_fn *on_event, void *user)
{
    whit_kv_class *told = s ? whit_kv_told_class(&s->kv) : NULL;
    if (!told) return;
    s->on_cache_event = on_event;
    s->cache_event_user = user;
    told->pool.on_forget = on_event ? tell_removal : NULL;
    told->pool.user = s;
}

void whit_session_count_blocks(const whit_session *s, uint32_t *n_blocks, uint32_t *n_found)
{
    const whit_kv_class *told = s ? whit_kv_told_class((whit_kv *)&s->kv) : NULL;
    *n_blocks = told ? told->pool.n_blocks : 0;
    *n_found = told ? told->pool.n_named : 0;
}

/* ---- marks ---------------------------------------------------------------------------------- */

/* Sets `reach` of each mark whose ids begin after n_blocks blocks with this key to the position up to which its prefix
 * equals `ids`. `reach` stays 0 if a sequence cannot resume at that position with the mark's tail. */
static void look_at_marks(whit_marks *marks, const whit_kv *kv, uint32_t n_blocks, const uint8_t key[WHIT_HASH_BYTES],
                          const int32_t *ids, uint32_t n_ids)
{
    for (uint32_t i = 0; i < marks->n; i++) {
        whit_mark *m = &marks->items[i];
        if (!m->n_tokens || m->first != n_blocks || memcmp(m->key, key, sizeof m->key)) continue;
        uint32_t at = n_blocks * BLOCK;
        const int32_t *own = whit_mark_ids(marks, i) - at;
        while (at < n_ids && at < m->n_tokens && own[at] == ids[at]) at++;
        if (whit_kv_tail_serves(kv, m->n_tokens, at, whit_mark_tail(marks, i))) m->reach = at;
    }
}

/* ---- finding the longest cached prefix ------------------------------------------------------ */

/* Prefix at whose end the sequence can resume. */
struct found {
    uint32_t n_tokens, n_known; /* length of the prefix; number of ids up to which every class without a window stores
                                 * all blocks */
    whit_mark *mark;            /* mark whose tail is needed; NULL: the prefix consists of whole blocks */
};

/* State of the search along the blocks of the prefix, for each KV class. */
struct walk {
    /* number of consecutive stored blocks up to the present block */
    uint32_t n_there[WHIT_KV_CLASSES_MAX];
    bool has_sinks[WHIT_KV_CLASSES_MAX];
};

/* Returns whether class c has all full blocks that a query at position n_tokens attends to. */
static bool has_all(const struct walk *walk, const whit_kv_class *class, uint32_t c, uint32_t n_tokens)
{
    const uint32_t n = n_tokens / BLOCK;
    if (n && class->n_sinks && !walk->has_sinks[c]) return false;
    return n - walk->n_there[c] <= whit_kv_first_needed(class, n_tokens);
}

static void take_marks(whit_session *s, const struct walk *walk, uint32_t n_blocks, struct found *found)
{
    for (uint32_t i = 0; i < s->marks.n; i++) {
        whit_mark *m = &s->marks.items[i];
        if (m->reach / BLOCK != n_blocks || m->reach <= found->n_tokens) continue;
        bool is_whole = true;
        for (uint32_t c = 0; c < s->kv.n_classes; c++)
            is_whole &= s->kv.classes[c].role != WHIT_KV_ROLE_LAYERS || has_all(walk, &s->kv.classes[c], c, m->reach);
        if (is_whole) *found = (struct found){.n_tokens = m->reach, .mark = m};
    }
}

/* Finds the longest prefix of the n_ids `ids` at whose end the sequence can resume: every class stores the blocks that
 * the next query attends to, and a mark has the tail if a tail is needed. */
static struct found find_prefix(whit_session *s, uint32_t sequence, const int32_t *ids, uint32_t n_ids)
{
    const whit_kv *kv = &s->kv;
    struct walk walk = {{0}, {false}};
    struct found found = {0};
    uint32_t n_known = 0;
    uint8_t key[WHIT_HASH_BYTES];
    bool goes_on = true;
    first_key(s, sequence, key);
    for (uint32_t i = 0; i < s->marks.n; i++) s->marks.items[i].reach = 0;
    for (uint32_t b = 0; goes_on; b++) {
        n_known = b * BLOCK;
        look_at_marks(&s->marks, kv, b, key, ids, n_ids);
        take_marks(s, &walk, b, &found);
        if (b == n_ids / BLOCK) break;
        bool is_whole = true;
        next_key(ids + b * BLOCK, key);
        for (uint32_t c = 0; c < kv->n_classes; c++) {
            const whit_kv_class *class = &kv->classes[c];
            const bool are_sinks = class->role == WHIT_KV_ROLE_SINKS;
            bool is_there = !(are_sinks && b) && whit_kv_pool_find(&class->pool, key, ids + b * BLOCK) != UINT32_MAX;
            walk.n_there[c] = is_there ? walk.n_there[c] + 1 : 0;
            if (b == 0) walk.has_sinks[c] = is_there;
            if (are_sinks) {
                is_whole &= walk.has_sinks[c];
                continue;
            }
            if (!is_there && (!class->window || (b == 0 && class->n_sinks))) goes_on = false;
            is_whole &= has_all(&walk, class, c, (b + 1) * BLOCK);
        }
        if (goes_on && is_whole && !kv->state.sequence_elems) found = (struct found){.n_tokens = (b + 1) * BLOCK};
    }
    found.n_known = n_known;
    return found;
}

/* Replaces the content of a sequence by the prefix that find_prefix returned. */
static void adopt(whit_session *s, uint32_t sequence, const int32_t *ids, struct found found)
{
    whit_kv *kv = &s->kv;
    uint8_t key[WHIT_HASH_BYTES];
    first_key(s, sequence, key);
    whit_kv_truncate(kv, sequence, 0);
    for (uint32_t b = 0; b < found.n_tokens / BLOCK; b++) {
        next_key(ids + b * BLOCK, key);
        whit_kv_adopt(kv, sequence, found.n_tokens, b, key, ids + b * BLOCK, found.mark != NULL);
    }
    if (found.mark) {
        whit_kv_tail_load(kv, sequence, found.mark->n_tokens, found.n_tokens,
                          whit_mark_tail(&s->marks, (uint32_t)(found.mark - s->marks.items)));
        found.mark->n_uses++;
        whit_session_note_mark(s, sequence, found.mark->number);
        found.mark->when = ++s->marks.clock;
        s->marks.n_used++;
    }
    memmove(whit_session_tokens_of(s, sequence), ids, (size_t)found.n_tokens * sizeof *ids);
    s->positions[sequence] = s->last_mark[sequence] = found.n_tokens;
    whit_session_forget_drafts(s, sequence, 0);
    s->is_mixed[sequence] = false;
}

void whit_session_go_back(whit_session *s, uint32_t sequence, const int32_t *ids, uint32_t n_ids)
{
    if (n_ids > s->options.n_ctx_tokens) n_ids = s->options.n_ctx_tokens;
    const struct found found = find_prefix(s, sequence, ids, n_ids);
    adopt(s, sequence, ids, found);
    s->to_mark[sequence] = found.n_tokens < n_ids ? n_ids : 0;
}

whit_status whit_session_reuse(whit_session *s, uint32_t sequence, const int32_t *ids, size_t n_ids,
                               uint32_t *n_present, whit_error *error)
{
    WHIT_NEED(n_present);
    *n_present = 0;
    WHIT_NEED(s);
    WHIT_NEED_ARRAY(ids, n_ids);
    WHIT_TRY(whit_session_check_sequence(s, sequence, error));
    WHIT_TRY(whit_split_tell(s, WHIT_SPLIT_REUSE, (uint32_t[3]){sequence}, ids, n_ids, sizeof *ids, error));
    size_t most = n_ids ? n_ids - 1 : 0;
    if (most > s->options.n_ctx_tokens) most = s->options.n_ctx_tokens;
    const int32_t *held = whit_session_tokens_of(s, sequence);
    uint32_t n_own = 0, n_held = s->is_mixed[sequence] ? 0 : s->positions[sequence];
    while (n_own < most && n_own < n_held && held[n_own] == ids[n_own]) n_own++;
    if (!whit_kv_reaches(&s->kv, sequence, n_own)) n_own = 0;
    const struct found found = find_prefix(s, sequence, ids, (uint32_t)most);
    if (n_own >= found.n_tokens)
        whit_session_cut(s, sequence, n_own);
    else
        adopt(s, sequence, ids, found);
    /* The end of the blocks that are known, but could not be reused, will be marked, so that the next request can
     * resume there. */
    if (s->positions[sequence] < found.n_known) s->to_mark[sequence] = found.n_known;
    *n_present = s->positions[sequence];
    return WHIT_OK;
}
