/* SPDX-License-Identifier: MIT
 * Prints the results of whit compare: a row for each file, intervals, paired differences, and a comparison of several
 * texts. */
#include "cli/compare.h"

#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/items.h"
#include "cli/names.h"
#include "hub/choose.h"
#include "runtime/model.h"

/* If at least this share of a text also occurs in the text from which a file was made, the report warns about it.
 * Different parts of one book have fewer passages of 48 bytes in common. */
static const double OVERLAP_NAMED = 0.02;

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Returns the bytes of a model on disk, including all parts of an .ndf. If the source is a folder or a GGUF in several
 * parts, returns the bytes of its converted copy. */
static uint64_t file_bytes(const whit_model *model, const char *words)
{
    char path[CLI_PATH_BYTES];
    struct stat info;
    whit_error error;
    uint64_t sum = 0;
    size_t stem;
    unsigned part, n_parts = 1;
    bool is_found = cli_find_model(words, path, &error) == WHIT_OK;
    if (is_found) (void)whit_hub_gguf_stem(path, &stem, &part, &n_parts);
    if (is_found && stat(path, &info) == 0 && S_ISREG(info.st_mode) && n_parts < 2 &&
        !cli_is_same_file(path, whit_ndf_path(model->file)))
        return (uint64_t)info.st_size;
    for (uint32_t i = 0; i < whit_ndf_n_files(model->file); i++) {
        uint64_t bytes = 0;
        (void)whit_ndf_file(model->file, i, &bytes);
        sum += bytes;
    }
    return sum;
}

static uint64_t tensor_bytes(const whit_model *model)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < model->weights.n_tensors; i++)
        for (int p = 0; p < WHIT_PART_COUNT; p++) sum += model->weights.tensors[i].part_bytes[p];
    return sum;
}

/* ---- intervals ------------------------------------------------------------------------------ */

static double read_member(const cli_unit *unit, size_t offset)
{
    return *(const double *)((const char *)unit + offset);
}

cli_interval cli_compare_interval(const cli_subject *subject, const cli_subject *other, size_t offset)
{
    const size_t n = subject->units.size_bytes / sizeof(cli_unit);
    const cli_unit *units = WHIT_ITEMS(const cli_unit, &subject->units),
                   *others = other ? WHIT_ITEMS(const cli_unit, &other->units) : NULL;
    double *sums = malloc((2 * n + 1) * sizeof *sums);
    if (!sums) return (cli_interval){.value = NAN};
    for (size_t i = 0; i < n; i++) {
        sums[i] = read_member(&units[i], offset) - (others ? read_member(&others[i], offset) : 0);
        sums[n + i] = units[i].n;
    }
    const cli_interval result = cli_interval_mean(sums, sums + n, n);
    free(sums);
    return result;
}

#define INTERVAL(subject, other, member) cli_compare_interval(subject, other, offsetof(cli_unit, member))

/* ---- rows and tables ------------------------------------------------------------------------ */

static json_t *make_row(const cli_comparison *c, cli_subject *s, double overlap)
{
    cli_score *score = &s->score;
    const double n = (double)score->n;
    cli_interval ratio = cli_interval_exp(INTERVAL(s, NULL, log_ratio)), kl = INTERVAL(s, NULL, kl);
    /* These values are computed over tokens and not over windows, so that they equal those of `whit perplexity` bit by
     * bit. */
    ratio.value = exp((score->sum - score->base_sum) / n);
    kl.value = 0;
    for (size_t i = 0; i < score->n; i++) kl.value += score->divergences[i];
    kl.value /= n;
    qsort(score->divergences, score->n, sizeof *score->divergences, by_size);
    json_t *row = json_pack(
        "{s:o, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:I, s:I}", "file", cli_json_path(s->path), "tokens",
        (json_int_t)score->n, "windows", (json_int_t)(s->units.size_bytes / sizeof(cli_unit)), "kld_median",
        cli_quantile(score->divergences, score->n, 0.5), "kld_p99", cli_quantile(score->divergences, score->n, 0.99),
        "kld_max", score->divergences[score->n - 1], "rms_change", 100 * sqrt(score->squared_change / n),
        "body_bits_per_weight", whit_weights_layer_bits(&s->model->weights), "file_bytes",
        (json_int_t)file_bytes(s->model, s->path), "resident_bytes", (json_int_t)tensor_bytes(s->model));
    if (!row) return NULL;
    cli_interval_set(row, "ppl_ratio", ratio);
    cli_interval_set(row, "kld_mean", kl);
    cli_interval_set(row, "top1", cli_interval_scale(INTERVAL(s, NULL, n_same), 100));
    json_object_set_new(row, "overlap", overlap < 0 ? json_null() : json_real(overlap));
    const cli_subject *first = &c->subjects[1];
    if (s == first) return row;
    cli_interval_set(row, "kld_difference", INTERVAL(s, first, kl));
    cli_interval_set(row, "top1_difference", cli_interval_scale(INTERVAL(s, first, n_same), 100));
    return row;
}

static double read_number(const json_t *row, const char *key)
{
    return json_number_value(json_object_get(row, key));
}

void cli_compare_begin_row(cli_call *call, const char *path)
{
    const bool fits = strlen(path) <= CLI_COMPARE_NAME;
    if (!fits) cli_print(call, "%s\n", path);
    cli_print(call, "%-*s", CLI_COMPARE_NAME, fits ? path : "");
}

static void print_row(cli_call *call, const char *path, const json_t *row)
{
    cli_compare_begin_row(call, path);
    cli_print(call, " %9.4f %9.5f %9.5f %7.2f %7.3f %6.3f %9.2f\n", read_number(row, "ppl_ratio"),
              read_number(row, "kld_mean"), read_number(row, "kld_p99"), read_number(row, "top1"),
              read_number(row, "rms_change"), read_number(row, "body_bits_per_weight"),
              read_number(row, "file_bytes") / 1e6);
    if (cli_interval_read_half(row, "kld_mean") >= 0)
        cli_print(call, "%*s %9.4f %9.5f %9s %7.2f\n", CLI_COMPARE_NAME, "+/-",
                  cli_interval_read_half(row, "ppl_ratio"), cli_interval_read_half(row, "kld_mean"), "",
                  cli_interval_read_half(row, "top1"));
}

/* Prints the differences of the further models from the first compressed model, paired by window. */
static void print_pairs(const cli_comparison *c, const json_t *rows)
{
    cli_print(c->call, "against %s, window by window: KL mean, top-1 %%\n", c->subjects[1].path);
    for (size_t i = 2; i < c->n; i++) {
        const json_t *row = json_array_get(rows, i - 1);
        cli_compare_begin_row(c->call, c->subjects[i].path);
        cli_print(c->call, " %+.5f", read_number(row, "kld_difference"));
        if (cli_interval_read_half(row, "kld_difference") >= 0)
            cli_print(c->call, " +/- %.5f", cli_interval_read_half(row, "kld_difference"));
        cli_print(c->call, ", %+.2f", read_number(row, "top1_difference"));
        if (cli_interval_read_half(row, "top1_difference") >= 0)
            cli_print(c->call, " +/- %.2f", cli_interval_read_half(row, "top1_difference"));
        cli_print(c->call, "\n");
    }
}

int cli_compare_report(cli_comparison *c, const char *text, const double *overlaps, json_t *texts)
{
    json_t *rows = json_array();
    if (!c->json)
        cli_print(c->call, "%s\n%-*s %9s %9s %9s %7s %7s %6s %9s\n", text, CLI_COMPARE_NAME, "file", "ppl ratio",
                  "KL mean", "KL 99 %", "top-1 %", "RMS %", "bits", "file MB");
    for (size_t i = 1; i < c->n; i++) {
        cli_subject *s = &c->subjects[i];
        json_t *row = make_row(c, s, overlaps[i]);
        if (!row) {
            json_decref(rows);
            return cli_fail(c->call, CLI_LIMIT, "not enough memory for the report");
        }
        if (overlaps[i] >= OVERLAP_NAMED)
            cli_note("%s: about %.0f %% of %s was in the text that this model was made with: results on other text "
                     "will be worse",
                     s->path, 100 * overlaps[i], text);
        if (!c->json) print_row(c->call, s->path, row);
        json_array_append_new(rows, row);
    }
    if (!c->json && c->n > 2) print_pairs(c, rows);
    json_array_append_new(texts, json_pack("{s:o, s:o}", "text", cli_json_path(text), "files", rows));
    return CLI_OK;
}

/* ---- several texts ---------------------------------------------------------------------------- */

static cli_interval read_interval(const json_t *row, const char *key)
{
    const double value = read_number(row, key), half = cli_interval_read_half(row, key);
    return (cli_interval){value, value - half, value + half, half >= 0};
}

void cli_compare_beside(cli_comparison *c, json_t *texts)
{
    const json_t *first = json_array_get(texts, 0);
    if (!c->json) cli_print(c->call, "KL mean beside that on %s\n", json_string_value(json_object_get(first, "text")));
    for (size_t t = 1; t < json_array_size(texts); t++) {
        const json_t *text = json_array_get(texts, t);
        for (size_t i = 1; i < c->n; i++) {
            json_t *row = json_array_get(json_object_get(text, "files"), i - 1);
            const json_t *first_row = json_array_get(json_object_get(first, "files"), i - 1);
            const cli_interval q =
                cli_interval_quotient(read_interval(row, "kld_mean"), read_interval(first_row, "kld_mean"));
            cli_interval_set(row, "kld_beside_first", q);
            if (c->json) continue;
            cli_compare_begin_row(c->call, c->subjects[i].path);
            cli_print(c->call, " %7.2f times", q.value);
            if (q.is_known) cli_print(c->call, " (%.2f to %.2f)", q.low, q.high);
            cli_print(c->call, " on %s\n", json_string_value(json_object_get(text, "text")));
        }
    }
}
