/* SPDX-License-Identifier: MIT
 * Implements whit compare --copies, which measures how far back models use the text.
 *
 * A window is a piece of the text, followed by a copy of PASSAGE tokens from some depth of the piece. A model that can
 * still attend to the passage continues the copy: after the first CUE tokens of the copy, each further token counts as
 * right if the model finds it the likeliest. */
#include "cli/compare.h"

#include <stdlib.h>

#include "base/items.h"

enum { PASSAGE = 32, CUE = 8, DEPTHS = 5, WINDOW_MIN = 4 * PASSAGE };

/* Returns the index of the first token of the passage for a depth: depth 0 is at the beginning of the window, depth
 * DEPTHS - 1 immediately before the copy. */
static size_t passage_begin(size_t n_piece, size_t depth)
{
    return (n_piece - PASSAGE) * depth / (DEPTHS - 1);
}

static int measure_window(cli_comparison *c, const int32_t *ids, whit_step_token *tokens)
{
    const size_t n_piece = c->n_ctx - PASSAGE;
    for (size_t depth = 0; depth < DEPTHS; depth++) {
        for (size_t i = 0; i < n_piece; i++) tokens[i] = (whit_step_token){.id = ids[i]};
        if (c->bos >= 0) tokens[0].id = c->bos;
        /* If the window begins with BOS, the first passage starts after it. */
        const size_t from = passage_begin(n_piece, depth) + (depth == 0 && c->bos >= 0);
        for (size_t i = 0; i < PASSAGE; i++)
            tokens[n_piece + i] = (whit_step_token){.id = tokens[from + i].id, .want_logits = i + 1 >= CUE};
        const int status = cli_compare_window(c, tokens, c->n_ctx);
        if (status != CLI_OK) return status;
    }
    return CLI_OK;
}

/* Returns the units of one depth; there are DEPTHS units per window, in the order of depths. */
static cli_subject pick_depth(const cli_subject *subject, size_t depth)
{
    cli_subject picked = {.path = subject->path};
    const cli_unit *units = WHIT_ITEMS(const cli_unit, &subject->units);
    for (size_t i = depth; i < subject->units.size_bytes / sizeof *units; i += DEPTHS)
        whit_buf_append(&picked.units, &units[i], sizeof *units);
    return picked;
}

static cli_interval find_right(const cli_subject *subject, const cli_subject *other)
{
    return cli_interval_scale(cli_compare_interval(subject, other, offsetof(cli_unit, n_right)), 100);
}

/* Returns one unit per window with `n` and `n_right` summed over all depths, because only different windows are
 * independent of each other. */
static cli_subject join_depths(const cli_subject *subject)
{
    cli_subject joined = {.path = subject->path};
    const cli_unit *units = WHIT_ITEMS(const cli_unit, &subject->units);
    for (size_t i = 0; i + DEPTHS <= subject->units.size_bytes / sizeof *units; i += DEPTHS) {
        cli_unit sum = {0};
        for (size_t d = 0; d < DEPTHS; d++) sum.n += units[i + d].n, sum.n_right += units[i + d].n_right;
        whit_buf_append(&joined.units, &sum, sizeof sum);
    }
    return joined;
}

static void report_subject(cli_comparison *c, size_t i, const cli_subject *original, json_t *rows)
{
    const cli_subject *subject = &c->subjects[i];
    cli_subject joined = join_depths(subject);
    json_t *depths = json_array(), *row = json_pack("{s:o}", "file", cli_json_path(subject->path));
    const cli_interval right = find_right(&joined, NULL), difference = find_right(&joined, original);
    if (!c->json) cli_compare_begin_row(c->call, subject->path);
    for (size_t d = 0; d < DEPTHS; d++) {
        cli_subject picked = pick_depth(subject, d);
        const cli_interval at_depth = find_right(&picked, NULL);
        json_t *cell = json_pack("{s:f}", "depth", (double)d / (DEPTHS - 1));
        cli_interval_set(cell, "right", at_depth);
        json_array_append_new(depths, cell);
        if (!c->json) cli_print(c->call, " %6.1f", at_depth.value);
        whit_buf_free(&picked.units);
    }
    cli_interval_set(row, "right", right);
    json_object_set_new(row, "depths", depths);
    if (!c->json) {
        cli_print(c->call, " %6.1f", right.value);
        if (right.is_known) cli_print(c->call, " +/- %.1f", cli_interval_half(right));
    }
    if (i) cli_interval_set(row, "right_difference", difference);
    if (i && !c->json) {
        cli_print(c->call, ", %+.1f", difference.value);
        if (difference.is_known) cli_print(c->call, " +/- %.1f", cli_interval_half(difference));
    }
    if (!c->json) cli_print(c->call, "\n");
    json_array_append_new(rows, row);
    whit_buf_free(&joined.units);
}

int cli_compare_copies(cli_comparison *c, const char *path, json_t *report)
{
    cli_text text = {0};
    int32_t *ids = NULL;
    size_t n_ids = 0;
    whit_step_token *tokens = calloc(c->n_ctx, sizeof *tokens);
    int status =
        tokens ? CLI_OK : cli_fail(c->call, CLI_LIMIT, "not enough memory for a window of %u tokens (-c)", c->n_ctx);
    if (status == CLI_OK && c->n_ctx < WINDOW_MIN)
        status = cli_fail(c->call, CLI_USAGE, "--copies needs a window (-c) of at least %d tokens", WINDOW_MIN);
    if (status == CLI_OK) status = cli_read_text(c->call, path, &text);
    if (status == CLI_OK)
        status = cli_tokenize(c->call, c->subjects[0].model, text.data, text.size_bytes, true, false, &ids, &n_ids);
    size_t n_windows = n_ids / c->n_ctx;
    if (c->n_chunks && n_windows > c->n_chunks) n_windows = c->n_chunks;
    if (status == CLI_OK && !n_windows)
        status = cli_fail(c->call, CLI_REFUSED,
                          "%s: has %zu tokens, too few for a window of %u (-c): give more text or a smaller -c", path,
                          n_ids, c->n_ctx);
    cli_compare_clear(c);
    for (size_t w = 0; status == CLI_OK && w < n_windows; w++) {
        status = measure_window(c, ids + w * c->n_ctx, tokens);
        cli_progress(NULL, "copies", (double)(w + 1) / (double)n_windows);
    }
    cli_progress_end();
    json_t *rows = json_array();
    cli_subject original = {0};
    if (status == CLI_OK) original = join_depths(&c->subjects[0]);
    if (status == CLI_OK && !c->json)
        cli_print(c->call,
                  "copies of %d tokens in %s, windows of %u: %% of tokens continued right, by depth\n"
                  "%-*s %6s %6s %6s %6s %6s %6s\n",
                  PASSAGE, path, c->n_ctx, CLI_COMPARE_NAME, "file", "0 %", "25 %", "50 %", "75 %", "100 %", "all");
    for (size_t i = 0; status == CLI_OK && i < c->n; i++) report_subject(c, i, &original, rows);
    json_object_set_new(report, "copies",
                        json_pack("{s:o, s:i, s:I, s:o}", "text", cli_json_path(path), "window", (int)c->n_ctx,
                                  "windows", (json_int_t)n_windows, "files", rows));
    whit_buf_free(&original.units);
    cli_compare_clear(c);
    free(tokens), free(text.data), free(ids);
    return status;
}
