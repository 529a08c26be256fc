/* SPDX-License-Identifier: MIT */
#include "base/sketch.h"

#include <stdlib.h>

#include "base/file.h"

enum { WIDTH = WHIT_SKETCH_SHINGLE_BYTES, KEPT = WHIT_SKETCH_HASHES_MAX };

/* The hash is a polynomial in FACTOR whose coefficients are the last WIDTH bytes, modulo 2^64; it is updated for each
 * byte (Karp, Rabin 1987). */
static const uint64_t FACTOR = 0x9E3779B97F4A7C15u;

/* Applies SplitMix64's finaliser (Steele, Lea, Flood 2014), so that the shingles with small hashes are a random
 * sample. */
static uint64_t mix_bits(uint64_t x)
{
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

/* Iterates over the shingles of a text. */
struct shingles {
    const uint8_t *at, *end;
    uint64_t sum, power;   /* hash of the window before mix_bits; FACTOR^WIDTH */
    uint8_t window[WIDTH]; /* ring buffer of the last WIDTH bytes */
    size_t n;              /* number of bytes that entered the window */
    bool after_space;
};

static struct shingles begin_shingles(const void *text, size_t n_bytes)
{
    struct shingles s = {.at = text, .end = (const uint8_t *)text + n_bytes, .power = 1, .after_space = true};
    for (int i = 0; i < WIDTH; i++) s.power *= FACTOR;
    return s;
}

static bool is_space(uint8_t byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

/* Computes the hash of the next shingle; false after the last one. */
static bool next_shingle(struct shingles *s, uint64_t *hash)
{
    while (s->at < s->end) {
        uint8_t byte = *s->at++;
        const bool space = is_space(byte);
        if (space && s->after_space) continue;
        s->after_space = space;
        if (space) byte = ' ';
        uint8_t *place = &s->window[s->n % WIDTH];
        s->sum = s->sum * FACTOR + byte + 1;
        if (s->n >= WIDTH) s->sum -= s->power * (uint64_t)(*place + 1);
        *place = byte;
        if (++s->n < WIDTH) continue;
        *hash = mix_bits(s->sum);
        return true;
    }
    return false;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Sorts the hashes, removes duplicates, and keeps only the KEPT smallest ones. */
static void settle_hashes(whit_sketch *sketch)
{
    size_t n = 0;
    qsort(sketch->hashes, sketch->n, sizeof *sketch->hashes, by_value);
    for (size_t i = 0; i < sketch->n; i++)
        if (!n || sketch->hashes[n - 1] != sketch->hashes[i]) sketch->hashes[n++] = sketch->hashes[i];
    if (n >= KEPT) {
        n = KEPT;
        sketch->is_full = true;
        sketch->limit = sketch->hashes[KEPT - 1];
    }
    sketch->n = n;
}

static void add_hash(whit_sketch *sketch, uint64_t hash)
{
    if (sketch->is_full && hash > sketch->limit) return;
    sketch->hashes[sketch->n++] = hash;
    if (sketch->n == sizeof sketch->hashes / sizeof *sketch->hashes) settle_hashes(sketch);
}

void whit_sketch_add(whit_sketch *sketch, const void *text, size_t n_bytes)
{
    struct shingles shingles = begin_shingles(text, n_bytes);
    uint64_t hash;
    while (next_shingle(&shingles, &hash)) add_hash(sketch, hash);
}

whit_status whit_sketch_add_file(whit_sketch *sketch, const char *path, whit_error *error)
{
    whit_map map = {0};
    WHIT_TRY(whit_map_open(path, NULL, &map, error));
    whit_sketch_add(sketch, map.data, map.size_bytes);
    whit_map_close(&map);
    return WHIT_OK;
}

void whit_sketch_finish(whit_sketch *sketch)
{
    settle_hashes(sketch);
}

void whit_sketch_join(whit_sketch *sketch, const whit_sketch *other)
{
    for (size_t i = 0; i < other->n; i++) add_hash(sketch, other->hashes[i]);
    /* If `other` is full, it has KEPT hashes up to its limit; so the union has at least KEPT, its limit is not higher,
     * and no hash that `other` left out is missing. */
    settle_hashes(sketch);
}

size_t whit_sketch_write(const whit_sketch *sketch, uint8_t *out)
{
    for (size_t i = 0; i < sketch->n; i++)
        for (int b = 0; b < 8; b++) out[8 * i + (size_t)b] = (uint8_t)(sketch->hashes[i] >> 8 * b);
    return 8 * sketch->n;
}

bool whit_sketch_read(whit_sketch *sketch, const uint8_t *data, size_t n_bytes)
{
    *sketch = (whit_sketch){0};
    if (n_bytes % 8 || n_bytes / 8 > KEPT) return false;
    for (size_t i = 0; i < n_bytes / 8; i++) {
        uint64_t hash = 0;
        for (int b = 0; b < 8; b++) hash |= (uint64_t)data[8 * i + (size_t)b] << 8 * b;
        if (i && hash <= sketch->hashes[i - 1]) return false;
        sketch->hashes[sketch->n++] = hash;
    }
    sketch->is_full = sketch->n == KEPT;
    sketch->limit = sketch->is_full ? sketch->hashes[KEPT - 1] : 0;
    return true;
}

whit_sketch_overlap whit_sketch_compare(const whit_sketch *sketch, const void *text, size_t n_bytes)
{
    struct shingles shingles = begin_shingles(text, n_bytes);
    whit_sketch_overlap overlap = {0};
    uint64_t hash;
    while (next_shingle(&shingles, &hash)) {
        if (sketch->is_full && hash > sketch->limit) continue;
        overlap.n_seen++;
        overlap.n_common += bsearch(&hash, sketch->hashes, sketch->n, sizeof hash, by_value) != NULL;
    }
    return overlap;
}
