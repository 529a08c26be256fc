/* SPDX-License-Identifier: MIT
 * Learns merges with counts that are updated incrementally. All words are in one array of places, linked so that a
 * merge changes only the neighbours. Each pair has its count and a list of the places where it occurred. A heap has the
 * most frequent pair on top. A count in the heap may be too high, but never too low: if the entry on top is outdated,
 * it is pushed again with its current count. */
#include "tokenizer/learn_merges.h"

#include "base/items.h"
#include "base/utf8.h"

#include <stdlib.h>

#define COVERAGE   0.9995 /* share of the text that characters with a piece must cover */
#define N_CODES    0x110000u
#define NO_PIECE   UINT32_MAX
#define LEAST_PAIR 2 /* smallest count of a pair that is merged; a pair that occurs once is no regularity */

struct place {      /* a piece of a word */
    uint32_t piece; /* NO_PIECE between words, for a character without a piece, and at a place that was merged into
                     * another */
    uint32_t before, after;
    uint32_t word;
};

struct pair {
    uint32_t left, right;
    uint64_t count;
    uint32_t first, last; /* indices, plus 1, of the first and last occurrence; 0: no occurrence */
    uint32_t touched;     /* round in which its count was increased last */
};

struct occurrence {
    uint32_t place, later; /* later: index of the pair's next occurrence, plus 1; 0: no further occurrence */
};

struct entry {
    uint64_t count;
    uint32_t pair;
};

struct learning {
    const whit_allocator *allocator;
    const whit_text_table *words;
    whit_merges *merges;
    whit_buf places, pairs, occurrences, heap, touched;
    uint32_t *slots; /* hash table by the two pieces: index of the pair, plus 1; 0: free */
    size_t n_slots;
    uint32_t round;
};

static struct place *place_at(const struct learning *l, uint32_t i)
{
    return WHIT_ITEMS(struct place, &l->places) + i;
}
static struct pair *pair_at(const struct learning *l, uint32_t i)
{
    return WHIT_ITEMS(struct pair, &l->pairs) + i;
}
static struct occurrence *occurrence_at(const struct learning *l, uint32_t number)
{
    return WHIT_ITEMS(struct occurrence, &l->occurrences) + (number - 1);
}
static uint64_t count_of_word(const struct learning *l, uint32_t word)
{
    return whit_text_table_at(l->words, word)->count;
}

/* ---- characters ----------------------------------------------------------------------------- */

struct character {
    uint64_t count;
    uint32_t code;
};

static int by_count(const void *a, const void *b)
{
    const struct character *x = a, *y = b;
    if (x->count != y->count) return x->count < y->count ? 1 : -1;
    return x->code < y->code ? -1 : x->code > y->code;
}

typedef void character_fn(void *user, uint32_t word, uint32_t code, const uint8_t *text, size_t n_bytes);

static void each_character(const whit_text_table *words, character_fn *fn, void *user)
{
    for (size_t w = 0; w < words->n; w++) {
        const whit_text_entry *word = whit_text_table_at(words, w);
        const uint8_t *text = words->texts.data + word->offset;
        for (size_t at = 0, length; at < word->n_bytes; at += length) {
            uint32_t code = whit_utf8_decode(text + at, word->n_bytes - at, &length);
            fn(user, (uint32_t)w, code, text + at, length);
        }
    }
}

struct tally {
    const whit_text_table *words;
    struct character *characters; /* indexed by code point */
    uint64_t total;
};

static void count_character(void *user, uint32_t word, uint32_t code, const uint8_t *text, size_t n_bytes)
{
    (void)text;
    (void)n_bytes;
    struct tally *tally = user;
    uint64_t n = whit_text_table_at(tally->words, word)->count;
    tally->characters[code].count += n;
    tally->total += n;
}

static whit_status choose_characters(struct learning *l, size_t room, whit_error *error)
{
    struct tally tally = {l->words, whit_zalloc_array(l->allocator, N_CODES, sizeof(struct character)), 0};
    whit_status status = WHIT_OK;
    if (!tally.characters)
        return whit_fail_memory(error, "the tokenizer's characters", N_CODES * sizeof(struct character));
    for (uint32_t i = 0; i < N_CODES; i++) tally.characters[i].code = i;
    each_character(l->words, count_character, &tally);
    qsort(tally.characters, N_CODES, sizeof *tally.characters, by_count);
    uint64_t covered = 0;
    for (size_t i = 0; status == WHIT_OK && i < room && tally.characters[i].count; i++) {
        uint8_t text[4];
        if ((double)covered >= COVERAGE * (double)tally.total) break;
        covered += tally.characters[i].count;
        if (!whit_text_table_add(&l->merges->pieces, text, whit_utf8_encode(tally.characters[i].code, text)))
            status = whit_fail_memory(error, "the tokenizer's characters", 0);
    }
    l->merges->n_characters = l->merges->pieces.n;
    whit_free(l->allocator, tally.characters, N_CODES * sizeof *tally.characters);
    return status;
}

/* ---- places --------------------------------------------------------------------------------- */

struct layout {
    struct learning *l;
    uint32_t *piece_of; /* indexed by code point: number of its piece, plus 1; 0: it has no piece */
    uint32_t word;      /* word of the preceding character */
};

static void lay_out(void *user, uint32_t word, uint32_t code, const uint8_t *text, size_t n_bytes)
{
    (void)text;
    (void)n_bytes;
    struct layout *layout = user;
    whit_buf *places = &layout->l->places;
    uint32_t i = (uint32_t)(places->size_bytes / sizeof(struct place));
    if (i == 0 || word != layout->word) { /* a border separates this word from the one before */
        struct place border = {NO_PIECE, i - 1, i + 1, word};
        whit_buf_append(places, &border, sizeof border);
        i++;
    }
    struct place place = {layout->piece_of[code] - 1, i - 1, i + 1, word};
    whit_buf_append(places, &place, sizeof place);
    layout->word = word;
}

static whit_status lay_out_words(struct learning *l, whit_error *error)
{
    struct layout layout = {.l = l, .piece_of = whit_zalloc_array(l->allocator, N_CODES, sizeof(uint32_t))};
    if (!layout.piece_of) return whit_fail_memory(error, "the tokenizer's characters", N_CODES * sizeof(uint32_t));
    for (size_t i = 0; i < l->merges->n_characters; i++) {
        const whit_text_entry *piece = whit_text_table_at(&l->merges->pieces, i);
        size_t length;
        layout.piece_of[whit_utf8_decode(l->merges->pieces.texts.data + piece->offset, piece->n_bytes, &length)] =
            (uint32_t)i + 1;
    }
    l->places.limit_bytes = l->occurrences.limit_bytes = (size_t)UINT32_MAX / 2 * sizeof(struct place);
    each_character(l->words, lay_out, &layout);
    struct place end = {NO_PIECE, 0, 0, 0};
    whit_buf_append(&l->places, &end, sizeof end);
    whit_free(l->allocator, layout.piece_of, N_CODES * sizeof(uint32_t));
    return l->places.failed ? whit_fail_memory(error, "the words of the training text", l->places.size_bytes) : WHIT_OK;
}

/* ---- pairs ---------------------------------------------------------------------------------- */

static uint32_t *find_slot(const struct learning *l, uint32_t left, uint32_t right)
{
    size_t mask = l->n_slots - 1;
    size_t at = (size_t)((((uint64_t)left << 32 | right) * 0x9E3779B97F4A7C15u) >> 24) & mask;
    for (; l->slots[at]; at = (at + 1) & mask) {
        const struct pair *pair = pair_at(l, l->slots[at] - 1);
        if (pair->left == left && pair->right == right) break;
    }
    return &l->slots[at];
}

static bool grow_slots(struct learning *l)
{
    size_t before = l->n_slots, n = l->pairs.size_bytes / sizeof(struct pair);
    uint32_t *larger = whit_zalloc_array(l->allocator, before ? 2 * before : 1024, sizeof *larger);
    if (!larger) return false;
    whit_free(l->allocator, l->slots, before * sizeof *larger);
    l->slots = larger;
    l->n_slots = before ? 2 * before : 1024;
    for (uint32_t i = 0; i < n; i++) *find_slot(l, pair_at(l, i)->left, pair_at(l, i)->right) = i + 1;
    return true;
}

/* Returns the index of a pair, which is added with count 0 if it is new; UINT32_MAX if memory is exhausted. */
static uint32_t number_of_pair(struct learning *l, uint32_t left, uint32_t right)
{
    uint32_t n = (uint32_t)(l->pairs.size_bytes / sizeof(struct pair));
    if (2 * ((size_t)n + 1) > l->n_slots && !grow_slots(l)) return UINT32_MAX;
    uint32_t *slot = find_slot(l, left, right);
    if (*slot) return *slot - 1;
    struct pair pair = {.left = left, .right = right};
    if (!whit_buf_append(&l->pairs, &pair, sizeof pair)) return UINT32_MAX;
    *slot = n + 1;
    return n;
}

static bool before_in_heap(const struct learning *l, const struct entry *a, const struct entry *b)
{
    if (a->count != b->count) return a->count > b->count;
    const struct pair *x = pair_at(l, a->pair), *y = pair_at(l, b->pair);
    return x->left != y->left ? x->left < y->left : x->right < y->right;
}

static bool heap_push(struct learning *l, uint32_t pair)
{
    struct entry entry = {pair_at(l, pair)->count, pair};
    if (entry.count < LEAST_PAIR) return true;
    if (!whit_buf_append(&l->heap, &entry, sizeof entry)) return false;
    struct entry *heap = WHIT_ITEMS(struct entry, &l->heap);
    size_t i = l->heap.size_bytes / sizeof entry - 1;
    for (size_t up; i && before_in_heap(l, &entry, &heap[up = (i - 1) / 2]); i = up) heap[i] = heap[up];
    heap[i] = entry;
    return true;
}

static struct entry heap_pop(struct learning *l)
{
    struct entry *heap = WHIT_ITEMS(struct entry, &l->heap), top = heap[0];
    size_t n = l->heap.size_bytes / sizeof top - 1, i = 0;
    struct entry last = heap[n];
    l->heap.size_bytes = n * sizeof top;
    for (size_t down; (down = 2 * i + 1) < n; i = down) {
        if (down + 1 < n && before_in_heap(l, &heap[down + 1], &heap[down])) down++;
        if (!before_in_heap(l, &heap[down], &last)) break;
        heap[i] = heap[down];
    }
    if (n) heap[i] = last;
    return top;
}

/* Adds `n` to the count of the pair that consists of the piece at `place` and the next one, and records the occurrence.
 * Does nothing at a border. */
static bool see_pair(struct learning *l, uint32_t place, uint64_t n)
{
    uint32_t left = place_at(l, place)->piece, right = place_at(l, place_at(l, place)->after)->piece;
    if (left == NO_PIECE || right == NO_PIECE) return true;
    uint32_t number = number_of_pair(l, left, right);
    if (number == UINT32_MAX) return false;
    struct pair *pair = pair_at(l, number);
    struct occurrence occurrence = {place, 0};
    pair->count += n;
    if (!whit_buf_append(&l->occurrences, &occurrence, sizeof occurrence)) return false;
    uint32_t last = (uint32_t)(l->occurrences.size_bytes / sizeof occurrence);
    if (pair->last)
        occurrence_at(l, pair->last)->later = last;
    else
        pair->first = last;
    pair->last = last;
    if (pair->touched == l->round) return true;
    pair->touched = l->round;
    return whit_buf_append(&l->touched, &number, sizeof number);
}

static void forget_pair(struct learning *l, uint32_t place, uint64_t n)
{
    uint32_t left = place_at(l, place)->piece, right = place_at(l, place_at(l, place)->after)->piece;
    if (left == NO_PIECE || right == NO_PIECE) return;
    struct pair *pair = pair_at(l, *find_slot(l, left, right) - 1);
    pair->count -= n < pair->count ? n : pair->count;
}

static bool push_touched(struct learning *l)
{
    const uint32_t *touched = WHIT_ITEMS(const uint32_t, &l->touched);
    bool ok = true;
    for (size_t i = 0; ok && i < l->touched.size_bytes / sizeof *touched; i++) ok = heap_push(l, touched[i]);
    l->touched.size_bytes = 0;
    return ok;
}

/* Merges the piece at `place` with the next one; the result is `piece`. */
static bool join_pieces(struct learning *l, uint32_t place, uint32_t piece)
{
    uint32_t next = place_at(l, place)->after, before = place_at(l, place)->before;
    uint64_t n = count_of_word(l, place_at(l, place)->word);
    forget_pair(l, before, n);
    forget_pair(l, next, n);
    uint32_t after = place_at(l, next)->after;
    place_at(l, next)->piece = NO_PIECE; /* removed: occurrences at this place do not match any more */
    place_at(l, place)->piece = piece;
    place_at(l, place)->after = after;
    place_at(l, after)->before = place;
    return see_pair(l, before, n) && see_pair(l, place, n);
}

static bool merge(struct learning *l, uint32_t number, uint32_t piece)
{
    uint32_t left = pair_at(l, number)->left, right = pair_at(l, number)->right;
    uint32_t seen = pair_at(l, number)->first;
    bool ok = true;
    l->round++;
    pair_at(l, number)->first = pair_at(l, number)->last = 0;
    while (ok && seen) {
        struct occurrence at = *occurrence_at(l, seen);
        const struct place *place = place_at(l, at.place);
        if (place->piece == left && place_at(l, place->after)->piece == right) ok = join_pieces(l, at.place, piece);
        seen = at.later;
    }
    pair_at(l, number)->count = 0;
    return ok && push_touched(l);
}

/* Returns the number of the piece with the joined text of two pieces. */
static uint32_t piece_of(struct learning *l, uint32_t left, uint32_t right)
{
    whit_text_table *pieces = &l->merges->pieces;
    const whit_text_entry *a = whit_text_table_at(pieces, left), *b = whit_text_table_at(pieces, right);
    uint8_t text[512]; /* no word is that long */
    memcpy(text, pieces->texts.data + a->offset, a->n_bytes);
    memcpy(text + a->n_bytes, pieces->texts.data + b->offset, b->n_bytes);
    const whit_text_entry *entry = whit_text_table_add(pieces, text, a->n_bytes + b->n_bytes);
    return entry ? (uint32_t)(entry - whit_text_table_at(pieces, 0)) : NO_PIECE;
}

static bool learn(struct learning *l, size_t n_pieces)
{
    uint32_t n_places = (uint32_t)(l->places.size_bytes / sizeof(struct place));
    l->round = 1;
    for (uint32_t i = 0; i + 1 < n_places; i++)
        if (!see_pair(l, i, count_of_word(l, place_at(l, i)->word))) return false;
    if (!push_touched(l)) return false;
    while (l->merges->pieces.n < n_pieces && l->heap.size_bytes) {
        struct entry top = heap_pop(l);
        struct pair *pair = pair_at(l, top.pair);
        if (top.count != pair->count) {
            if (pair->count < top.count && !heap_push(l, top.pair)) return false;
            continue;
        }
        uint32_t piece = piece_of(l, pair->left, pair->right);
        if (piece == NO_PIECE || !merge(l, top.pair, piece)) return false;
    }
    return true;
}

whit_status whit_merges_learn(whit_merges *merges, const whit_text_table *words, size_t n_pieces,
                              const whit_allocator *allocator, whit_error *error)
{
    *merges = (whit_merges){.pieces = whit_text_table_init(allocator)};
    struct learning l = {.allocator = allocator, .words = words, .merges = merges};
    whit_buf *const bufs[] = {&l.places, &l.pairs, &l.occurrences, &l.heap, &l.touched};
    for (size_t i = 0; i < sizeof bufs / sizeof *bufs; i++) bufs[i]->allocator = allocator;
    whit_status status = choose_characters(&l, n_pieces, error);
    if (status == WHIT_OK) status = lay_out_words(&l, error);
    if (status == WHIT_OK && !learn(&l, n_pieces))
        status = whit_fail_memory(error, "the pairs of pieces of the training text", l.pairs.size_bytes);
    for (size_t i = 0; i < sizeof bufs / sizeof *bufs; i++) whit_buf_free(bufs[i]);
    whit_free(allocator, l.slots, l.n_slots * sizeof *l.slots);
    return status;
}

void whit_merges_free(whit_merges *merges)
{
    whit_text_table_free(&merges->pieces);
}
