/* SPDX-License-Identifier: MIT
 * Times random edits of a large text through the editor's undo, with its lines counted first. Prints one JSON line. It
 * also times samples that only read: each finds the lines of two offsets, which takes about as long as an edit and
 * touches the same memory. Their times are the floor of this machine: slow samples among them are not due to the
 * editor.
 *
 *     bench_edit [MEGABYTES [EDITS]]      100 and 1,000,000 by default */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "editor/undo.h"

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Prints quantiles of the n samples, and how many samples took over 10 us. Sorts the samples. */
static void told(const char *what, uint32_t *took_ns, size_t n)
{
    qsort(took_ns, n, sizeof *took_ns, by_value);
    size_t slow = 0;
    while (slow < n && took_ns[n - 1 - slow] > 10000) slow++;
    printf(", \"%smedian_ns\": %u, \"%sp99_ns\": %u, \"%sp999_ns\": %u, \"%sover_10_us\": %zu, \"%smax_ns\": %u", what,
           took_ns[n / 2], what, took_ns[n - 1 - n / 100], what, took_ns[n - 1 - n / 1000], what, slow, what,
           took_ns[n - 1]);
}

int main(int argc, char **argv)
{
    size_t size_bytes = (argc > 1 ? strtoul(argv[1], NULL, 10) : 100) << 20,
           n = argc > 2 ? strtoul(argv[2], NULL, 10) : 1000000;
    uint8_t *data = malloc(size_bytes);
    uint32_t *took_ns = malloc(n * sizeof *took_ns);
    whit_text *text;
    whit_undo *undo;
    whit_error error;
    if (!data || !took_ns || !n) return 1;
    for (size_t i = 0; i < size_bytes; i++) data[i] = i % 37 ? 'a' : '\n';
    memset(took_ns, 0, n * sizeof *took_ns);
    if (whit_text_open(&text, &error) != WHIT_OK || whit_text_adopt(text, data, size_bytes, &error) != WHIT_OK ||
        whit_undo_open(text, &undo, &error) != WHIT_OK)
        return 1;
    uint64_t begin = whit_now_ns();
    whit_text_count(text, UINT64_MAX, NULL, NULL);
    double count_ms = (double)(whit_now_ns() - begin) / 1e6;
    whit_rng rng = {1};
    for (size_t i = 0; i < n; i++) {
        uint64_t offset = whit_rng_below(&rng, whit_text_size(text) - 8), n_remove = i % 2 ? 3 : 0;
        begin = whit_now_ns();
        whit_status status = whit_undo_edit(undo, offset, n_remove, "typed", i % 2 ? 1 : 5, &error);
        whit_undo_seal(undo);
        took_ns[i] = (uint32_t)(whit_now_ns() - begin);
        if (status != WHIT_OK) return 1;
    }
    printf("{\"megabytes\": %zu, \"edits\": %zu, \"count_ms\": %.1f", size_bytes >> 20, n, count_ms);
    told("", took_ns, n);
    uint64_t lines = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t a = whit_rng_below(&rng, whit_text_size(text)), b = whit_rng_below(&rng, whit_text_size(text));
        begin = whit_now_ns();
        lines += whit_text_line_at(text, a) ^ whit_text_line_at(text, b);
        took_ns[i] = (uint32_t)(whit_now_ns() - begin);
    }
    told("floor_", took_ns, n);
    printf(", \"lines\": %llu}\n", (unsigned long long)lines);
    whit_undo_close(undo);
    whit_text_close(text);
    free(took_ns);
    free(data);
    return 0;
}
