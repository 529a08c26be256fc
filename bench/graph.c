/* SPDX-License-Identifier: MIT
 * Measures queries to a code graph whose pages are cached, and updates after an edit. Prints one JSON line.
 *
 *     bench_graph FOLDER CACHE
 *
 * The graph is built in CACHE. FOLDER should be a copy, since the modification times of its files are changed. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <utime.h>

#include "base/clock.h"
#include "base/rng.h"
#include "code/graph.h"

#define N_NAMES 1000
#define N_EDITS 30

static double cpu_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double best_of(double (*take)(const whit_graph *, char names[][64]), const whit_graph *graph, char names[][64])
{
    double best = 1e18;
    for (int i = 0; i < 20; i++) {
        double ns = take(graph, names);
        best = ns < best ? ns : best;
    }
    return best;
}

/* Returns the nanoseconds per name for finding the line of its definition. */
static double definitions_ns(const whit_graph *graph, char names[][64])
{
    uint64_t begin = whit_now_ns();
    whit_graph_symbol symbol;
    uint32_t lines = 0;
    for (int i = 0; i < N_NAMES; i++) {
        whit_graph_run run = whit_graph_symbols_of(graph, names[i], strlen(names[i]));
        if (whit_graph_next_symbol(graph, &run, &symbol)) lines += symbol.line;
    }
    __asm__ volatile("" ::"r"(lines));
    return (double)(whit_now_ns() - begin) / N_NAMES;
}

/* Returns the nanoseconds per mention for listing the mentions of the names. */
static double neighbours_ns(const whit_graph *graph, char names[][64])
{
    uint64_t begin = whit_now_ns(), n = 0;
    whit_graph_mention mention;
    uint32_t lines = 0;
    for (int i = 0; i < N_NAMES; i++) {
        whit_graph_run run = whit_graph_mentions_of(graph, names[i], strlen(names[i]));
        for (; whit_graph_next_mention(graph, &run, &mention); n++) lines += mention.line;
    }
    __asm__ volatile("" ::"r"(lines));
    return (double)(whit_now_ns() - begin) / (double)(n ? n : 1);
}

int main(int argc, char **argv)
{
    static char names[N_NAMES][64];
    whit_graph *graph;
    whit_error error;
    if (argc != 3) return 2;
    double begin = cpu_ms();
    uint64_t wall = whit_now_ns();
    if (whit_graph_open(argv[1], argv[2], &graph, &error) != WHIT_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    double build_ms = cpu_ms() - begin, build_wall_ms = (double)(whit_now_ns() - wall) / 1e6;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    whit_graph_counts counts = whit_graph_count(graph);
    whit_graph_symbol symbol;
    whit_rng rng = {3};
    for (int i = 0; i < N_NAMES; i++) {
        if (!whit_graph_symbol_at(graph, (uint32_t)whit_rng_below(&rng, counts.n_symbols), &symbol)) return 1;
        snprintf(names[i], sizeof names[i], "%s", symbol.name);
    }
    double definition_ns = best_of(definitions_ns, graph, names), neighbour_ns = best_of(neighbours_ns, graph, names);
    double cpu[N_EDITS], took[N_EDITS];
    uint32_t file = (uint32_t)whit_rng_below(&rng, counts.n_files);
    for (int i = 0; i < N_EDITS; i++) {
        char path[PATH_MAX];
        /* Each chosen file gets new times, as if it had been saved, five times. */
        if (i % 5 == 0) file = (uint32_t)whit_rng_below(&rng, counts.n_files);
        snprintf(path, sizeof path, "%s/%s", argv[1], whit_graph_file(graph, file));
        struct utimbuf times = {1000000000 + i, 1000000000 + i};
        if (utime(path, &times)) return 1;
        wall = whit_now_ns();
        begin = cpu_ms();
        if (!whit_graph_follow(graph, argv[1], argv[2], whit_graph_file(graph, file))) return 1;
        cpu[i] = cpu_ms() - begin;
        took[i] = (double)(whit_now_ns() - wall) / 1e6;
    }
    begin = cpu_ms();
    if (!whit_graph_refresh(graph, argv[1], argv[2])) return 1;
    double refresh_ms = cpu_ms() - begin;
    qsort(cpu, N_EDITS, sizeof *cpu, by_value);
    qsort(took, N_EDITS, sizeof *took, by_value);
    printf("{\"files\": %u, \"lines\": %llu, \"file_mib\": %.1f, \"open_cpu_ms\": %.1f, \"open_ms\": %.1f, "
           "\"peak_rss_mib\": %.1f, \"definition_ns\": %.0f, \"neighbour_ns\": %.1f, \"edit_cpu_ms\": %.2f, "
           "\"edit_ms\": %.2f, \"edit_max_ms\": %.2f, \"edited_definition_ns\": %.0f, \"edited_neighbour_ns\": %.1f, "
           "\"refresh_cpu_ms\": %.1f}\n",
           counts.n_files, (unsigned long long)counts.n_lines, (double)counts.size_bytes / (1 << 20), build_ms,
           build_wall_ms, (double)usage.ru_maxrss / 1024, definition_ns, neighbour_ns, cpu[N_EDITS / 2],
           took[N_EDITS / 2], took[N_EDITS - 1], best_of(definitions_ns, graph, names),
           best_of(neighbours_ns, graph, names), refresh_ms);
    whit_graph_close(graph);
    return 0;
}
