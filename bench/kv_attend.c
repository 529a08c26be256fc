/* SPDX-License-Identifier: MIT
 * Measures the attention of one token over a long past, for each type of KV cache: heads of 128 elements, four queries
 * per head, groups of 256 positions read one after the other from memory, on one thread. Prints the CPU time, which
 * other work on the machine changes little, per group and per token of BitNet 2B4T at position 8,192 (30 layers, 5
 * heads, 32 groups).
 *   bench_kv_attend [GROUPS [ROUNDS [TYPE]]]      defaults: 2400, 5 and all types; f16 needs 133 KB a group */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/file.h"
#include "base/fpenv.h"
#include "base/mem.h"
#include "base/rng.h"
#include "kernels/kernels.h"

enum { DIM = 128, QUERIES = 4, TOKEN_GROUPS = 30 * 5 * 32, BLOCKS = WHIT_KV_GROUP_BLOCKS };

typedef struct cache {
    whit_kv_type type;
    uint8_t *blocks, *queries;
    float rope[DIM * WHIT_KV_BLOCK_TOKENS], *partials, *into;
    uint32_t n_groups;
    double seconds; /* CPU time of the fastest round */
} cache;

static double cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static whit_kv_group group_of(const cache *c, uint32_t g)
{
    const size_t bytes = whit_kv_block_bytes(c->type, DIM);
    const bool is_packed = whit_kv_is_packed(c->type);
    whit_kv_group group = {.closed = is_packed ? (1u << BLOCKS) - 1 : 0, .rope = c->rope};
    group.rope_pairs = is_packed && whit_kv_turns_keys(c->type, false) ? DIM / 2 : 0;
    for (uint32_t b = 0; b < BLOCKS; b++) group.blocks[b] = c->blocks + ((size_t)g * BLOCKS + b) * bytes;
    return group;
}

/* Allocates a cache and fills all its blocks with copies of one block of random numbers; returns false if memory runs
 * out. */
static bool make(cache *c, const whit_kernels *k, whit_kv_type type, uint32_t n_groups)
{
    const size_t bytes = whit_kv_block_bytes(type, DIM), query_bytes = whit_kv_query_bytes(type, DIM);
    const size_t partial_bytes = QUERIES * whit_kv_partial_elems(DIM) * sizeof(float);
    static float keys[WHIT_KV_BLOCK_TOKENS * DIM], values[WHIT_KV_BLOCK_TOKENS * DIM];
    double frequencies[DIM / 2];
    whit_rng rng = {1};
    *c = (cache){.type = type, .n_groups = n_groups, .seconds = 1e9};
    uint8_t *open = whit_alloc(NULL, whit_kv_block_bytes(WHIT_KV_F32, DIM));
    c->blocks = whit_alloc(NULL, bytes * BLOCKS * n_groups);
    /* Asks for huge pages, as a session does for its cache. */
    if (c->blocks) whit_map_expect(c->blocks, bytes * BLOCKS * n_groups, true);
    c->queries = whit_alloc(NULL, QUERIES * query_bytes);
    c->partials = whit_alloc(NULL, partial_bytes);
    c->into = whit_alloc(NULL, partial_bytes);
    if (!open || !c->blocks || !c->queries || !c->partials || !c->into) return false;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        keys[i] = (float)whit_rng_uniform(&rng) - 0.5f;
        values[i] = (float)whit_rng_uniform(&rng) - 0.5f;
    }
    whit_rope_frequencies(10000, DIM / 2, NULL, frequencies);
    whit_kv_offset_table(frequencies, DIM / 2, c->rope);
    whit_kv_query(k, type)(keys, DIM, QUERIES, DIM, c->queries);
    whit_kv_append(k, type)(open, 0, WHIT_KV_BLOCK_TOKENS, DIM, keys, values, DIM);
    if (whit_kv_is_packed(type)) {
        const whit_kv_packing how = {.rope = c->rope, .rope_pairs = group_of(c, 0).rope_pairs};
        whit_kv_pack(k, type)(open, DIM, &how, c->blocks, NULL);
    } else {
        memcpy(c->blocks, open, bytes);
    }
    for (size_t b = 1; b < (size_t)BLOCKS * n_groups; b++) memcpy(c->blocks + b * bytes, c->blocks, bytes);
    whit_free(NULL, open, whit_kv_block_bytes(WHIT_KV_F32, DIM));
    return true;
}

static void run(cache *c, const whit_kernels *k)
{
    const size_t elems = whit_kv_partial_elems(DIM);
    whit_kv_span spans[QUERIES];
    for (uint32_t q = 0; q < QUERIES; q++) {
        spans[q] = (whit_kv_span){0, WHIT_KV_GROUP_TOKENS};
        c->into[q * elems + DIM + 1] = 0;
    }
    const double begin = cpu_seconds();
    whit_kv_group next = group_of(c, 0);
    for (uint32_t g = 0; g < c->n_groups; g++) {
        whit_kv_group group = next;
        next = group_of(c, g + 1 < c->n_groups ? g + 1 : 0);
        whit_kv_attend(k, c->type)(&group, &next, c->queries, spans, QUERIES, DIM, 0.088f, c->partials, c->into);
    }
    const double seconds = cpu_seconds() - begin;
    if (seconds < c->seconds) c->seconds = seconds;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        whit_kv_type type;
    } types[] = {{"f16", WHIT_KV_F16},
                 {"i8", WHIT_KV_I8},
                 {"k4v2", WHIT_KV_K4V2},
                 {"k2v2", WHIT_KV_K2V2},
                 {"bitmap", WHIT_KV_BITMAP}};
    enum { N = sizeof types / sizeof *types };
    static cache caches[N];
    const uint32_t n_groups = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 2400;
    const unsigned long n_rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 5;
    const char *only = argc > 3 ? argv[3] : NULL;
    whit_cpu cpu;
    whit_kernels k;
    whit_error error;
    whit_cpu_detect(&cpu);
    if (whit_kernels_select(&cpu, getenv("WHIT_CPU"), &k, &error) != WHIT_OK)
        return fprintf(stderr, "%s\n", error.message), 1;
    for (int i = 0; i < N; i++)
        if ((!only || !strcmp(only, types[i].name)) && (!n_groups || !make(&caches[i], &k, types[i].type, n_groups)))
            return fprintf(stderr, "out of memory\n"), 1;
    for (unsigned long r = 0; r < n_rounds; r++)
        for (int i = 0; i < N; i++)
            if (caches[i].blocks) run(&caches[i], &k); /* the types take turns in every round */
    for (int i = 0; i < N; i++) {
        if (!caches[i].blocks) continue;
        const double group = caches[i].seconds / n_groups;
        printf("%-6s %6.2f us a group, %7.1f ms a token\n", types[i].name, 1e6 * group, 1e3 * group * TOKEN_GROUPS);
    }
    return 0;
}
