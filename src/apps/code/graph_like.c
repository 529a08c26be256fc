/* SPDX-License-Identifier: MIT
 * Finds similar symbols: each function and type has a hypervector, a long vector made from the letters of its name, its
 * callees and its callers. An associative memory next to the graph's file stores these vectors. */
#include "base/cpu.h"
#include "code/graph_file.h"
#include "memory/store.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define NEIGHBOURS    32 /* maximum number of callees, and of callers, that are encoded */
#define BATCH_RECORDS 4096
#define NAME_BYTES    256

/* Lists the names that each symbol calls: those of symbol i are names[first[i]] to names[first[i + 1] - 1]. */
struct calls {
    uint32_t *first;
    const char **names;
};

struct like {
    const whit_graph *graph;
    struct calls calls;
    whit_encoder encoder;
    whit_hyper_bundle bundle;
};

static bool is_told(const whit_graph_symbol *symbol)
{
    return symbol->kind == WHIT_SYMBOL_FUNCTION || symbol->kind == WHIT_SYMBOL_TYPE;
}

static uint32_t n_symbols(const whit_graph *graph)
{
    return (uint32_t)(graph->base.n[GRAPH_SYMBOLS] + graph->edits.n[GRAPH_SYMBOLS]);
}

/* For the names of one part, counts the calls in each symbol or, with `fill`, appends the names to the symbols'
 * lists. */
static void add_calls(const whit_graph *graph, const struct graph_part *part, struct calls *calls, bool fill)
{
    for (uint64_t i = 0; i < part->n[GRAPH_NAMES]; i++) {
        const char *name = part->strings + part->names[i].text;
        if (part == &graph->edits && graph_find(&graph->base, name, part->names[i].n_text)) continue;
        whit_graph_run run = whit_graph_mentions_of(graph, name, part->names[i].n_text);
        whit_graph_mention mention;
        while (whit_graph_next_mention(graph, &run, &mention)) {
            if (!mention.calls || mention.symbol == WHIT_GRAPH_NONE) continue;
            if (fill)
                calls->names[calls->first[mention.symbol]++] = name;
            else
                calls->first[mention.symbol + 1]++;
        }
    }
}

static bool collect_calls(const whit_graph *graph, struct calls *calls)
{
    uint32_t n = n_symbols(graph);
    calls->first = calloc((size_t)n + 2, sizeof *calls->first);
    if (!calls->first) return false;
    add_calls(graph, &graph->base, calls, false);
    if (graph->hidden) add_calls(graph, &graph->edits, calls, false);
    for (uint32_t i = 0; i < n; i++) calls->first[i + 1] += calls->first[i];
    calls->names = calloc((size_t)calls->first[n] + 1, sizeof *calls->names);
    if (!calls->names) return false;
    add_calls(graph, &graph->base, calls, true);
    if (graph->hidden) add_calls(graph, &graph->edits, calls, true);
    /* While the lists were filled, first[i] advanced to the end of list i, which is the beginning of list i + 1. */
    memmove(calls->first + 1, calls->first, n * sizeof *calls->first);
    calls->first[0] = 0;
    return true;
}

static void close_like(struct like *like)
{
    free(like->calls.first);
    free(like->calls.names);
    if (like->encoder.letters) whit_encoder_close(&like->encoder);
    if (like->bundle.planes) whit_hyper_bundle_close(&like->bundle);
}

static whit_status open_like(const whit_graph *graph, struct like *like, whit_error *error)
{
    *like = (struct like){.graph = graph};
    WHIT_TRY(whit_encoder_open(NULL, &like->encoder, error));
    WHIT_TRY(whit_hyper_bundle_open(WHIT_MEMORY_WORDS, NULL, &like->bundle, error));
    if (!collect_calls(graph, &like->calls)) return whit_fail_memory(error, "the calls in the code graph", 0);
    return WHIT_OK;
}

/* Encodes a name as words: "whitGraph_open" becomes "whit Graph open". */
static whit_status encode_name(struct like *like, const char *name, uint64_t out[WHIT_MEMORY_WORDS], whit_error *error)
{
    char words[2 * NAME_BYTES];
    size_t n = 0;
    for (const char *at = name; *at && at < name + NAME_BYTES; at++) {
        if (isupper((uint8_t)*at) && at > name && islower((uint8_t)at[-1])) words[n++] = ' ';
        words[n++] = isalnum((uint8_t)*at) || (uint8_t)*at >= 128 ? *at : ' ';
    }
    return whit_encode_text(&like->encoder, words, n, out, error);
}

/* Encodes a symbol as a hypervector in which its name has the same weight as its callees and callers together. */
static whit_status encode_symbol(struct like *like, const whit_graph_symbol *symbol, uint64_t out[WHIT_MEMORY_WORDS],
                                 whit_error *error)
{
    uint64_t name[WHIT_MEMORY_WORDS], around[WHIT_MEMORY_WORDS];
    whit_graph_mention mention;
    whit_graph_symbol caller;
    WHIT_TRY(encode_name(like, symbol->name, name, error));
    whit_hyper_bundle_clear(&like->bundle);
    uint32_t begin = like->calls.first[symbol->number], end = like->calls.first[symbol->number + 1];
    for (uint32_t i = begin; i < end && i < begin + NEIGHBOURS; i++) {
        whit_encode_triple(&like->encoder, (const char *const[]){NULL, "calls", like->calls.names[i]}, around);
        (void)whit_hyper_bundle_add(&like->bundle, around);
    }
    whit_graph_run run = whit_graph_mentions_of(like->graph, symbol->name, strlen(symbol->name));
    for (int i = 0; i < NEIGHBOURS && whit_graph_next_mention(like->graph, &run, &mention); i++) {
        if (!mention.calls || !whit_graph_symbol_at(like->graph, mention.symbol, &caller)) continue;
        if (symbol->is_local && mention.file_number != symbol->file_number) continue;
        whit_encode_triple(&like->encoder, (const char *const[]){caller.name, "calls", NULL}, around);
        (void)whit_hyper_bundle_add(&like->bundle, around);
    }
    if (!like->bundle.n_added) {
        memcpy(out, name, sizeof name);
        return WHIT_OK;
    }
    whit_hyper_bundle_majority(&like->bundle, like->encoder.ties, around);
    whit_hyper_bundle_clear(&like->bundle);
    (void)whit_hyper_bundle_add(&like->bundle, name);
    (void)whit_hyper_bundle_add(&like->bundle, around);
    whit_hyper_bundle_majority(&like->bundle, like->encoder.ties, out);
    return WHIT_OK;
}

/* Returns whether the memory was built from this graph: its first record contains the graph's checksum. */
static bool is_of(const whit_memory *memory, const whit_graph *graph)
{
    const char *text;
    const uint64_t *vector;
    whit_memory_stats stats;
    size_t n;
    whit_memory_stats_of(memory, &stats);
    if (!stats.n_records) return false;
    whit_memory_at(memory, 0, &text, &n, &vector);
    return n == 8 && !memcmp(text, graph->base.head->check, 8);
}

/* Builds the memory: a first record with the graph's checksum, then one for each function and type of the graph, in the
 * order of their numbers. Symbols of the edits are not included. */
static whit_status build_memory(struct like *like, const char *path, whit_error *error)
{
    const whit_graph *graph = like->graph;
    uint64_t vector[WHIT_MEMORY_WORDS] = {0};
    char draft[PATH_MAX + 32], text[PATH_MAX + NAME_BYTES];
    whit_memory_batch batch = {0};
    snprintf(draft, sizeof draft, "%s.%ld", path, (long)getpid());
    unlink(draft);
    whit_status status = whit_memory_batch_add(&batch, vector, (const char *)graph->base.head->check, 8, error);
    for (uint32_t i = 0; i < graph->base.n[GRAPH_SYMBOLS] && status == WHIT_OK; i++) {
        whit_graph_symbol symbol;
        if (!whit_graph_symbol_at(graph, i, &symbol) || !is_told(&symbol)) continue;
        int n = snprintf(text, sizeof text, "%s:%u %.*s", symbol.file, symbol.line, NAME_BYTES, symbol.name);
        status = encode_symbol(like, &symbol, vector, error);
        if (status == WHIT_OK)
            status = whit_memory_batch_add(&batch, vector, text, n < (int)sizeof text ? (size_t)n : sizeof text, error);
        if (status == WHIT_OK && batch.n_records == BATCH_RECORDS)
            status = whit_memory_batch_commit(&batch, draft, error);
    }
    if (status == WHIT_OK && batch.n_records) status = whit_memory_batch_commit(&batch, draft, error);
    whit_memory_batch_free(&batch);
    if (status == WHIT_OK && rename(draft, path) != 0) status = whit_fail_errno(error, path, "write");
    if (status != WHIT_OK) unlink(draft);
    return status;
}

static whit_status open_memory(struct like *like, const char *path, whit_memory **memory, whit_error *error)
{
    if (access(path, R_OK) == 0 && whit_memory_open(path, NULL, memory, NULL) == WHIT_OK) {
        if (is_of(*memory, like->graph)) return WHIT_OK;
        whit_memory_close(*memory);
    }
    *memory = NULL;
    WHIT_TRY(build_memory(like, path, error));
    return whit_memory_open(path, NULL, memory, error);
}

static void put_hit(whit_graph_hit *hits, uint32_t *n, uint32_t k, whit_graph_hit hit)
{
    uint32_t at = *n < k ? (*n)++ : k;
    for (; at && hits[at - 1].likeness < hit.likeness; at--)
        if (at < k) hits[at] = hits[at - 1];
    if (at < k) hits[at] = hit;
}

static double likeness(uint32_t distance)
{
    return 1 - 2.0 * distance / WHIT_MEMORY_BITS;
}

/* Searches the memory, which was built without the edits: leaves out symbols of files that the edits replace, and
 * compares the symbols of the edits one by one. */
static whit_status search(struct like *like, const whit_memory *memory, const uint64_t *query, whit_graph_hit *hits,
                          uint32_t k, uint32_t *n, whit_error *error)
{
    const whit_graph *graph = like->graph;
    whit_quat_kernels kernels;
    whit_cpu cpu;
    whit_memory_hit found[WHIT_MEMORY_MAX_HITS];
    whit_pool *pool = NULL;
    uint32_t n_found = 0, wanted = k + 1, record = 1;
    /* for each record of the memory, the number of its symbol */
    uint32_t *numbers = malloc(((size_t)graph->base.n[GRAPH_SYMBOLS] + 2) * sizeof *numbers);
    if (!numbers) return whit_fail_memory(error, "a search", (size_t)graph->base.n[GRAPH_SYMBOLS] * sizeof *numbers);
    whit_graph_symbol symbol;
    for (uint32_t i = 0; i < graph->base.n[GRAPH_SYMBOLS]; i++) {
        if (!whit_graph_symbol_at(graph, i, &symbol) || !is_told(&symbol)) continue;
        wanted += graph->hidden && graph->hidden[symbol.file_number];
        numbers[record++] = i;
    }
    if (wanted > WHIT_MEMORY_MAX_HITS) wanted = WHIT_MEMORY_MAX_HITS;
    whit_cpu_detect(&cpu);
    whit_status status = whit_quat_select(&cpu, getenv("WHIT_CPU"), &kernels, error);
    if (status == WHIT_OK) status = whit_pool_open(1, NULL, &pool, error);
    if (status == WHIT_OK) status = whit_memory_search(memory, &kernels, pool, query, wanted, found, &n_found, error);
    if (pool) whit_pool_close(pool);
    for (uint32_t i = 0; i < n_found; i++) {
        if (!found[i].record || found[i].record >= record) continue;
        uint32_t number = numbers[found[i].record];
        whit_graph_symbol_at(graph, number, &symbol);
        if (graph->hidden && graph->hidden[symbol.file_number]) continue;
        put_hit(hits, n, k, (whit_graph_hit){number, likeness(found[i].distance)});
    }
    free(numbers);
    for (uint32_t i = (uint32_t)graph->base.n[GRAPH_SYMBOLS]; i < n_symbols(graph) && status == WHIT_OK; i++) {
        uint64_t vector[WHIT_MEMORY_WORDS];
        uint32_t distance = 0;
        if (!whit_graph_symbol_at(graph, i, &symbol) || !is_told(&symbol)) continue;
        status = encode_symbol(like, &symbol, vector, error);
        for (int w = 0; w < WHIT_MEMORY_WORDS; w++) distance += (uint32_t)__builtin_popcountll(vector[w] ^ query[w]);
        put_hit(hits, n, k, (whit_graph_hit){i, likeness(distance)});
    }
    return status;
}

whit_status whit_graph_like(const whit_graph *graph, const char *folder, const char *cache_folder, const char *name,
                            whit_graph_hit *hits, uint32_t k, uint32_t *n, whit_error *error)
{
    struct like like;
    char path[PATH_MAX];
    uint64_t query[WHIT_MEMORY_WORDS];
    whit_memory *memory = NULL;
    whit_graph_symbol symbol;
    *n = 0;
    if (!graph_cache_path(folder, cache_folder, "memory", path))
        return whit_fail(error, WHIT_ERROR_IO,
                         "%s: there is no cache folder for the code graph's memory: set XDG_CACHE_HOME or HOME",
                         folder);
    whit_graph_run run = whit_graph_symbols_of(graph, name, strlen(name));
    bool known = false;
    while (!known && whit_graph_next_symbol(graph, &run, &symbol)) known = is_told(&symbol);
    whit_status status = open_like(graph, &like, error);
    if (status == WHIT_OK) status = open_memory(&like, path, &memory, error);
    if (status == WHIT_OK)
        status = known ? encode_symbol(&like, &symbol, query, error) : encode_name(&like, name, query, error);
    if (status == WHIT_OK) status = search(&like, memory, query, hits, k, n, error);
    if (memory) whit_memory_close(memory);
    close_like(&like);
    return status;
}
