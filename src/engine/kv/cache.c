/* SPDX-License-Identifier: MIT */
#include "kv/cache.h"

#include "base/mem.h"

static uint32_t blocks_of(uint32_t n_tokens)
{
    return n_tokens / WHIT_KV_BLOCK_TOKENS + (n_tokens % WHIT_KV_BLOCK_TOKENS != 0);
}

/* Returns the largest number of blocks that n consecutive positions can overlap. */
static uint64_t blocks_over(uint64_t n_tokens)
{
    return n_tokens < 2 ? n_tokens : (n_tokens + 2 * WHIT_KV_BLOCK_TOKENS - 2) / WHIT_KV_BLOCK_TOKENS;
}

/* ---- classes -------------------------------------------------------------------------------- */

/* Returns the class that a layer needs; its sizes, pool and table are not set. In an endless cache every class has a
 * window. */
static whit_kv_class kind_of(const whit_kv_shape *shape, const whit_kv_layer *layer)
{
    whit_kv_class class = {.type = shape->type,
                           .n_heads = layer->n_heads,
                           .n_kv_heads = layer->n_kv_heads,
                           .head_dim = layer->head_dim,
                           .window = layer->window,
                           .beyond = WHIT_KV_BEYOND_TOKENS};
    if (layer->is_bidirectional) {
        class.is_bidirectional = true;
        class.sides = layer->window ? layer->window / 2 : UINT32_MAX;
        class.window = 0;
    }
    if (whit_kv_is_packed(shape->type)) {
        class.n_window_blocks = shape->n_window_blocks;
        class.rope_pairs = whit_kv_turns_keys(shape->type, layer->has_key_bias) ? layer->rope_pairs : 0;
        class.rope = class.rope_pairs ? layer->rope : 0;
    }
    uint32_t most = shape->n_ctx_tokens - shape->n_sinks;
    if (shape->is_endless && (!class.window || class.window > most)) {
        class.window = most;
        class.n_sinks = shape->n_sinks;
    }
    return class;
}

static bool same_kind(const whit_kv_class *a, const whit_kv_class *b)
{
    return a->type == b->type && a->role == b->role && a->rope_pairs == b->rope_pairs && a->rope == b->rope &&
        a->n_heads == b->n_heads && a->n_kv_heads == b->n_kv_heads && a->head_dim == b->head_dim &&
        a->window == b->window && a->n_sinks == b->n_sinks && a->is_bidirectional == b->is_bidirectional &&
        a->sides == b->sides;
}

uint32_t whit_kv_kinds(const whit_kv_shape *shape)
{
    whit_kv_class kinds[WHIT_KV_KINDS_MAX];
    uint32_t n = 0;
    for (uint32_t i = 0; i < shape->n_layers; i++) {
        if (!shape->layers[i].n_kv_heads) continue;
        const whit_kv_class kind = kind_of(shape, &shape->layers[i]);
        uint32_t k = 0;
        while (k < n && !same_kind(&kinds[k], &kind)) k++;
        if (k == WHIT_KV_KINDS_MAX) return k + 1;
        if (k == n) kinds[n++] = kind;
    }
    return n;
}

/* Turns a packed class into the class of its open blocks. `window` becomes the number of positions that queries read in
 * the open form, and `beyond` the rest of the last block, so that some tokens can be removed again. The window of an
 * endless cache is not applied: block 0 is read in the open form, for its sinks, until it is read in the closed
 * form. */
static void open_for(whit_kv_class *class)
{
    const uint32_t window = class->n_sinks ? 0 : class->window;
    const uint64_t read = (uint64_t) class->n_window_blocks * WHIT_KV_BLOCK_TOKENS + WHIT_KV_LINGER_TOKENS + 1;
    const uint64_t room = WHIT_KV_BLOCK_TOKENS - WHIT_KV_LINGER_TOKENS - 1;
    class->type = whit_kv_open_type(class->type);
    if (window && window < read)
        class->window = window;
    else
        class->window = (uint32_t)(read < UINT32_MAX / 4 ? read : UINT32_MAX / 4);
    class->beyond = (uint32_t)room;
    class->n_sinks = 0; /* open blocks have no sinks: block 0 is kept as a closed block */
}

/* Returns the index of a layer's class, which is added if it does not exist yet; -1 if there would be too many
 * kinds. */
static int class_of(whit_kv *kv, const whit_kv_layer *layer)
{
    const whit_kv_class kind = kind_of(&kv->shape, layer);
    for (uint32_t c = 0; c < kv->n_classes; c++)
        if (same_kind(&kv->classes[c], &kind)) return (int)c;
    const uint32_t c = kv->n_classes, n = whit_kv_is_packed(kind.type) ? 3 : 1;
    if (c + n > WHIT_KV_KINDS_MAX * n) return -1;
    for (uint32_t role = 0; role < n; role++) {
        kv->classes[c + role] = kind;
        kv->classes[c + role].role = (uint8_t)role;
    }
    if (n > 1) open_for(&kv->classes[c + WHIT_KV_ROLE_OPEN]);
    if (n > 1) kv->classes[c + WHIT_KV_ROLE_SINKS].window = kv->classes[c + WHIT_KV_ROLE_SINKS].n_sinks = 0;
    kv->n_classes += n;
    return (int)c;
}

static size_t head_bytes_of(const whit_kv_class *class)
{
    return class->role == WHIT_KV_ROLE_SINKS ? whit_kv_sinks_bytes(class->head_dim)
                                             : whit_kv_block_bytes(class->type, class->head_dim);
}

/* Returns the largest number of blocks that all sequences together use in a class; sets n_places and keeps_all. Between
 * passes a sequence with a window needs at most its last window + beyond - 1 positions. A pass that adds `a` positions
 * to a sequence needs at most (a + 62) / 64 blocks more than a pass that adds one. Summed over all sequences, this is a
 * 64th of the batch, plus one block for each sequence that adds two or more. The sequences never need more blocks than
 * if each of them added the whole batch. */
static uint64_t count_blocks(const whit_kv_shape *shape, whit_kv_class *class)
{
    const uint64_t n_sequences = shape->n_sequences, n_batch = shape->n_batch_tokens;
    const uint64_t whole = blocks_of(shape->n_ctx_tokens), seen = (uint64_t) class->window + class->beyond;
    if (class->role == WHIT_KV_ROLE_SINKS) {
        class->keeps_all = true;
        class->n_places = 1;
        return n_sequences;
    }
    const uint64_t most = blocks_over(seen + n_batch);
    class->keeps_all = !class->window || (!shape->is_endless && most >= whole);
    class->n_places = (uint32_t)(class->keeps_all ? whole : most);
    if (class->keeps_all) return whole * n_sequences;
    uint64_t n_adding = n_batch / 2 < n_sequences ? n_batch / 2 : n_sequences;
    uint64_t n = n_sequences * blocks_over(seen) + n_batch / WHIT_KV_BLOCK_TOKENS + n_adding;
    const uint64_t n_apart = n_sequences * blocks_over(seen - 1 + n_batch);
    if (n > n_apart) n = n_apart;
    if (class->n_sinks) n += n_sequences;
    return shape->is_endless || n < whole * n_sequences ? n : whole * n_sequences;
}

static uint64_t table_entries(const whit_kv *kv, const whit_kv_class *class)
{
    /* per sequence: n_places + 1 entries of `table`, 1 of `first` */
    return (uint64_t)kv->shape.n_sequences * (class->n_places + 2);
}

static bool measure_class(const whit_kv *kv, whit_kv_class *class, uint64_t *bytes)
{
    uint64_t pool_bytes, n_blocks = count_blocks(&kv->shape, class);
    if (n_blocks > UINT32_MAX / 2 ||
        !whit_kv_pool_size(&class->pool, class->n_layers, class->n_kv_heads, head_bytes_of(class), n_blocks,
                           &pool_bytes))
        return false;
    pool_bytes += table_entries(kv, class) * sizeof(uint32_t);
    return !__builtin_add_overflow(*bytes, whit_round_up(pool_bytes, WHIT_ALIGN_BYTES), bytes);
}

static bool measure_state(const whit_kv_shape *shape, whit_state *state, uint64_t *bytes)
{
    return whit_state_measure(state, &shape->layers->state, sizeof *shape->layers, shape->n_layers, shape->n_sequences,
                              bytes);
}

bool whit_kv_measure(const whit_kv_shape *shape, whit_kv *kv, uint64_t *bytes)
{
    uint64_t state_bytes;
    *kv = (whit_kv){.shape = *shape};
    for (uint32_t i = 0; i < shape->n_layers; i++) {
        int c = shape->layers[i].n_kv_heads ? class_of(kv, &shape->layers[i]) : 0;
        if (c < 0) return false;
        if (!shape->layers[i].n_kv_heads) continue;
        const uint32_t n = whit_kv_is_packed(shape->type) ? 3 : 1;
        for (uint32_t role = 0; role < n; role++) kv->classes[(uint32_t)c + role].n_layers++;
    }
    *bytes = whit_round_up(shape->n_layers * sizeof *kv->layers + shape->n_sequences * sizeof *kv->n_tokens,
                           WHIT_ALIGN_BYTES);
    for (uint32_t c = 0; c < kv->n_classes; c++)
        if (!measure_class(kv, &kv->classes[c], bytes)) return false;
    return measure_state(shape, &kv->state, &state_bytes) && !__builtin_add_overflow(*bytes, state_bytes, bytes);
}

void whit_kv_init(whit_kv *kv, const whit_kv_shape *shape, void *memory)
{
    uint64_t bytes;
    uint8_t *at = memory;
    uint16_t n_placed[WHIT_KV_CLASSES_MAX] = {0};
    (void)whit_kv_measure(shape, kv, &bytes);
    for (uint32_t i = 0; i < kv->n_classes; i++) {
        whit_kv_class *class = &kv->classes[i];
        uint8_t *end = whit_kv_pool_init(&class->pool, at);
        class->table = (uint32_t *)(void *)end;
        class->first = class->table + (size_t)shape->n_sequences * (class->n_places + 1);
        memset(class->first, 0, shape->n_sequences * sizeof *class->first);
        at += whit_round_up((uint64_t)(end - at) + table_entries(kv, class) * sizeof(uint32_t), WHIT_ALIGN_BYTES);
    }
    kv->n_tokens = (uint32_t *)(void *)at;
    memset(kv->n_tokens, 0, shape->n_sequences * sizeof *kv->n_tokens);
    kv->layers = (struct whit_kv_place *)(void *)(kv->n_tokens + shape->n_sequences);
    for (uint32_t i = 0; i < shape->n_layers; i++) {
        uint16_t c = shape->layers[i].n_kv_heads ? (uint16_t)class_of(kv, &shape->layers[i]) : 0;
        kv->layers[i] = (struct whit_kv_place){c, n_placed[c]};
        if (shape->layers[i].n_kv_heads) n_placed[c]++;
    }
    at += whit_round_up(shape->n_layers * sizeof *kv->layers + shape->n_sequences * sizeof *kv->n_tokens,
                        WHIT_ALIGN_BYTES);
    whit_state_init(&kv->state, &shape->layers->state, sizeof *shape->layers, shape->n_layers, shape->n_sequences, at);
}

/* ---- positions ------------------------------------------------------------------------------ */

static bool is_pinned(const whit_kv_class *class, uint32_t block)
{
    return block == 0 && class->n_sinks;
}

/* Returns whether a class can store block number `block`: a class of sinks stores only block 0. */
static bool is_kind(const whit_kv_class *class, uint32_t block)
{
    return class->role != WHIT_KV_ROLE_SINKS || block == 0;
}

static void drop_block(whit_kv_class *class, uint32_t sequence, uint32_t block)
{
    whit_kv_pool_drop(&class->pool, *whit_kv_entry(class, sequence, block));
}

/* Makes the partly filled block of position n_tokens writable. A shared block is copied. A named block is copied, too,
 * if memory is left for the copy, so that the prefix cache keeps the text that the sequence had before it was
 * truncated; otherwise its name is removed. */
static void own_last(whit_kv_class *class, uint32_t sequence, uint32_t n_tokens)
{
    uint32_t *last = whit_kv_entry(class, sequence, n_tokens / WHIT_KV_BLOCK_TOKENS), shared = *last;
    const bool has_place = class->pool.n_free || class->pool.oldest;
    if (class->pool.references[shared] > 1 || (class->pool.names[shared].is_named && has_place)) {
        *last = whit_kv_pool_take(&class->pool);
        whit_kv_pool_copy(&class->pool, shared, *last);
        whit_kv_pool_drop(&class->pool, shared);
    } else {
        whit_kv_pool_forget(&class->pool, shared);
    }
}

whit_status whit_kv_extend(whit_kv *kv, uint32_t sequence, uint32_t n_tokens, whit_error *error)
{
    const uint32_t had = kv->n_tokens[sequence];
    if (n_tokens > kv->shape.n_ctx_tokens && !kv->shape.is_endless)
        return whit_fail(error, WHIT_ERROR_LIMIT, "the context of %u tokens is full: choose a larger one",
                         kv->shape.n_ctx_tokens);
    if (n_tokens <= had) return WHIT_OK;
    for (uint32_t c = 0; c < kv->n_classes; c++) {
        whit_kv_class *class = &kv->classes[c];
        if (had % WHIT_KV_BLOCK_TOKENS && is_kind(class, had / WHIT_KV_BLOCK_TOKENS)) own_last(class, sequence, had);
        for (uint32_t b = blocks_of(had); b < blocks_of(n_tokens) && is_kind(class, b); b++)
            *whit_kv_entry(class, sequence, b) = whit_kv_pool_take(&class->pool);
    }
    kv->n_tokens[sequence] = n_tokens;
    return WHIT_OK;
}

/* Returns the first block that a class stores after a pass, for a sequence of n_tokens. */
static uint32_t first_kept(const whit_kv_class *class, uint32_t n_tokens)
{
    uint64_t kept = (uint64_t) class->window + class->beyond;
    if (class->keeps_all || n_tokens < kept) return 0;
    return (uint32_t)((n_tokens + 1 - kept) / WHIT_KV_BLOCK_TOKENS);
}

void whit_kv_settle(whit_kv *kv, uint32_t sequence)
{
    for (uint32_t c = 0; c < kv->n_classes; c++) {
        whit_kv_class *class = &kv->classes[c];
        uint32_t *first = &class->first[sequence], end = first_kept(class, kv->n_tokens[sequence]);
        for (; *first < end; ++*first)
            if (!is_pinned(class, *first)) drop_block(class, sequence, *first);
    }
}

void whit_kv_populate(whit_kv *kv)
{
    uint32_t n_growing = 0;
    for (uint32_t i = 0; i < kv->shape.n_sequences; i++) n_growing += kv->n_tokens[i] > 0;
    for (uint32_t c = 0; c < kv->n_classes; c++) whit_kv_pool_populate(&kv->classes[c].pool, n_growing);
}

bool whit_kv_reaches(const whit_kv *kv, uint32_t sequence, uint32_t n_tokens)
{
    if (n_tokens > kv->n_tokens[sequence]) return false;
    for (uint32_t c = 0; c < kv->n_classes && n_tokens; c++)
        if (whit_kv_first_needed(&kv->classes[c], n_tokens) < kv->classes[c].first[sequence]) return false;
    return whit_state_reaches(&kv->state, sequence, n_tokens);
}

void whit_kv_truncate(whit_kv *kv, uint32_t sequence, uint32_t n_tokens)
{
    const uint32_t had = kv->n_tokens[sequence];
    if (!n_tokens) whit_state_reset(&kv->state, sequence);
    if (n_tokens >= had) return;
    for (uint32_t c = 0; c < kv->n_classes; c++) {
        whit_kv_class *class = &kv->classes[c];
        uint32_t *first = &class->first[sequence], begin = blocks_of(n_tokens);
        /* Drop from the last block to the first: the pool evicts the block that was dropped first, so blocks of
         * prefixes are evicted last. */
        for (uint32_t b = blocks_of(had); b-- > begin && b >= *first;)
            if (!is_pinned(class, b) && is_kind(class, b)) drop_block(class, sequence, b);
        if (n_tokens == 0) *first = 0;
        if (n_tokens == 0 && class->n_sinks) drop_block(class, sequence, 0);
    }
    kv->n_tokens[sequence] = n_tokens;
}

whit_status whit_kv_share(whit_kv *kv, uint32_t from, uint32_t to, uint32_t n_tokens, whit_error *error)
{
    if (n_tokens > kv->n_tokens[from])
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "sequence %u has only %u tokens, so its first %u cannot be shared or kept", from,
                         kv->n_tokens[from], n_tokens);
    whit_kv_truncate(kv, to, from == to ? n_tokens : 0);
    if (from == to) return WHIT_OK;
    for (uint32_t c = 0; c < kv->n_classes && n_tokens; c++) {
        whit_kv_class *class = &kv->classes[c];
        class->first[to] = class->first[from];
        for (uint32_t b = 0; b < blocks_of(n_tokens) && is_kind(class, b); b++) {
            if (b < class->first[from] && !is_pinned(class, b)) {
                b = class->first[from] - 1;
                continue;
            }
            uint32_t number = *whit_kv_entry(class, from, b);
            *whit_kv_entry(class, to, b) = number;
            whit_kv_pool_use(&class->pool, number);
        }
    }
    kv->n_tokens[to] = n_tokens;
    if (n_tokens) whit_state_copy(&kv->state, from, to);
    return WHIT_OK;
}

/* ---- prefix cache --------------------------------------------------------------------------- */

whit_kv_class *whit_kv_told_class(whit_kv *kv)
{
    whit_kv_class *first = NULL;
    for (uint32_t c = 0; c < kv->n_classes; c++) {
        whit_kv_class *class = &kv->classes[c];
        if (class->role != WHIT_KV_ROLE_LAYERS) continue;
        if (!class->window) return class;
        if (!first) first = class;
    }
    return first;
}

bool whit_kv_name_block(whit_kv *kv, uint32_t sequence, uint32_t block, const uint8_t key[WHIT_HASH_BYTES],
                        const int32_t ids[WHIT_KV_BLOCK_TOKENS])
{
    const whit_kv_class *told = whit_kv_told_class(kv);
    bool is_new = false;
    for (uint32_t c = 0; c < kv->n_classes; c++) {
        whit_kv_class *class = &kv->classes[c];
        if (!whit_kv_has(class, sequence, block)) continue;
        bool named = whit_kv_pool_name(&class->pool, *whit_kv_entry(class, sequence, block), key, ids);
        if (class == told) is_new = named;
    }
    return is_new;
}

const whit_kv_name *whit_kv_name_of(const whit_kv *kv, uint32_t sequence, uint32_t block)
{
    for (uint32_t c = 0; c < kv->n_classes; c++) {
        const whit_kv_class *class = &kv->classes[c];
        if (!whit_kv_has(class, sequence, block)) continue;
        const whit_kv_name *name = &class->pool.names[*whit_kv_entry(class, sequence, block)];
        if (name->is_named) return name;
    }
    return NULL;
}

static bool is_needed(const whit_kv_class *class, uint32_t n_tokens, uint32_t block)
{
    return is_kind(class, block) && (block >= whit_kv_first_needed(class, n_tokens) || is_pinned(class, block));
}

void whit_kv_adopt(whit_kv *kv, uint32_t sequence, uint32_t n_tokens, uint32_t block,
                   const uint8_t key[WHIT_HASH_BYTES], const int32_t ids[WHIT_KV_BLOCK_TOKENS], bool closed_only)
{
    for (uint32_t c = 0; c < kv->n_classes; c++) {
        whit_kv_class *class = &kv->classes[c];
        if (closed_only && class->role != WHIT_KV_ROLE_LAYERS) continue;
        class->first[sequence] = whit_kv_first_needed(class, n_tokens);
        if (!is_needed(class, n_tokens, block)) continue;
        uint32_t number = whit_kv_pool_find(&class->pool, key, ids);
        whit_kv_pool_use(&class->pool, number);
        *whit_kv_entry(class, sequence, block) = number;
    }
    kv->n_tokens[sequence] = (block + 1) * WHIT_KV_BLOCK_TOKENS;
}

whit_status whit_kv_begin_at(whit_kv *kv, uint32_t sequence, uint32_t n_blocks, whit_error *error)
{
    const uint64_t n_tokens = (uint64_t)n_blocks * WHIT_KV_BLOCK_TOKENS;
    whit_kv_truncate(kv, sequence, 0);
    if (n_tokens > kv->shape.n_ctx_tokens && !kv->shape.is_endless)
        return whit_fail(error, WHIT_ERROR_LIMIT, "%llu tokens exceed the context of %u: choose a larger one",
                         (unsigned long long)n_tokens, kv->shape.n_ctx_tokens);
    for (uint32_t c = 0; c < kv->n_classes && n_blocks; c++) {
        whit_kv_class *class = &kv->classes[c];
        if (class->role != WHIT_KV_ROLE_LAYERS) continue;
        class->first[sequence] = first_kept(class, (uint32_t)n_tokens);
        for (uint32_t b = class->first[sequence]; b < n_blocks && is_kind(class, b); b++)
            *whit_kv_entry(class, sequence, b) = whit_kv_pool_take(&class->pool);
        if (class->first[sequence] && class->n_sinks)
            *whit_kv_entry(class, sequence, 0) = whit_kv_pool_take(&class->pool);
    }
    kv->n_tokens[sequence] = (uint32_t)n_tokens;
    return WHIT_OK;
}

/* ---- a block of all layers ------------------------------------------------------------------ */

uint64_t whit_kv_whole_block_bytes(const whit_kv *kv)
{
    uint64_t bytes = 0;
    for (uint32_t c = 0; c < kv->n_classes; c++)
        if (kv->classes[c].role == WHIT_KV_ROLE_LAYERS) bytes += kv->classes[c].pool.block_bytes;
    return bytes;
}

bool whit_kv_holds(const whit_kv *kv, uint32_t sequence, uint32_t block)
{
    bool holds = (uint64_t)block * WHIT_KV_BLOCK_TOKENS < kv->n_tokens[sequence];
    for (uint32_t c = 0; c < kv->n_classes; c++)
        if (kv->classes[c].role == WHIT_KV_ROLE_LAYERS) holds &= whit_kv_has(&kv->classes[c], sequence, block);
    return holds;
}

bool whit_kv_next_piece(const whit_kv *kv, uint32_t sequence, uint32_t block, whit_kv_piece *piece)
{
    for (; piece->layer < kv->shape.n_layers; piece->layer++, piece->head = 0) {
        const whit_kv_class *class = whit_kv_class_of(kv, piece->layer);
        if (piece->head >= kv->shape.layers[piece->layer].n_kv_heads) continue;
        bool has = whit_kv_has(class, sequence, block);
        piece->size_bytes = class->pool.head_bytes;
        piece->data = has ? whit_kv_head_block(kv, piece->layer, piece->head, sequence, block) : NULL;
        piece->head++;
        return true;
    }
    return false;
}
