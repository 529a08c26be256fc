/* SPDX-License-Identifier: MIT
 * Implements whit compare --chat, which compares the answers of all models to the same chats.
 *
 * Each model answers greedily. Then all models read the original model's answer, which gives the agreement of greedy
 * tokens and the divergence at each token of that answer, independently of each model's own answer. */
#include "cli/compare.h"

#include <stdlib.h>

#include "base/items.h"
#include "cli/chat_items.h"

/* Sums over the chats for one model. */
struct chat_sums {
    cli_chat_tally tally;
    size_t n_equal;    /* number of answers with the same text as the original's */
    whit_buf prefixes; /* array of cli_unit, one for each chat. n_same: share of the original's tokens before the first
                        * difference; n_right: whether the answer is right */
};

struct chat_run {
    cli_comparison *c;
    const char *path;
    cli_chat_items items;
    uint32_t n_tokens;
    struct chat_sums sums[CLI_SUBJECTS_MAX];
    json_t *answers;
};

/* Returns how many of the original's tokens precede the first difference; *n_all: the number of the original's
 * tokens. */
static size_t find_difference(const cli_chat_answer *original, const cli_chat_answer *other, size_t *n_all)
{
    const int32_t *a = WHIT_ITEMS(const int32_t, &original->ids), *b = WHIT_ITEMS(const int32_t, &other->ids);
    const size_t n = original->ids.size_bytes / sizeof *a - original->n_prompt,
                 n_other = other->ids.size_bytes / sizeof *b - other->n_prompt;
    size_t same = 0;
    while (same < n && same < n_other && a[original->n_prompt + same] == b[other->n_prompt + same]) same++;
    *n_all = n;
    return same;
}

static bool is_equal_text(const cli_chat_answer *a, const cli_chat_answer *b)
{
    return a->text.size_bytes == b->text.size_bytes && !memcmp(a->text.data, b->text.data, a->text.size_bytes);
}

/* Adds the answers of all models to one chat to the sums; returns false if memory runs out. */
static bool add_answers(struct chat_run *run, const cli_chat_item *item, const cli_chat_answer *answers)
{
    bool ok = true;
    for (size_t i = 0; i < run->c->n; i++) {
        struct chat_sums *s = &run->sums[i];
        const cli_chat_answer *a = &answers[i];
        size_t n_all;
        const size_t same = find_difference(&answers[0], a, &n_all);
        const bool is_equal = is_equal_text(&answers[0], a);
        const cli_unit unit = {
            .n = 1, .n_same = is_equal || !n_all ? 1 : (double)same / (double)n_all, .n_right = a->is_right};
        cli_chat_tally_add(&s->tally, item, a);
        s->n_equal += is_equal;
        ok = ok && whit_buf_append(&s->prefixes, &unit, sizeof unit);
    }
    return ok;
}

/* Makes a JSON string of an answer's text; bytes that are not UTF-8 become U+FFFD. */
static json_t *text_to_json(const cli_chat_answer *answer)
{
    return cli_json_path(whit_chars(&answer->text));
}

static void keep_answers(struct chat_run *run, const cli_chat_item *item, const cli_chat_answer *answers)
{
    json_t *files = json_array();
    for (size_t i = 1; i < run->c->n; i++) {
        size_t n_all;
        const size_t same = find_difference(&answers[0], &answers[i], &n_all);
        const bool is_equal = is_equal_text(&answers[0], &answers[i]);
        json_array_append_new(files,
                              json_pack("{s:o, s:o, s:b, s:o}", "file", cli_json_path(run->c->subjects[i].path), "text",
                                        text_to_json(&answers[i]), "equal", is_equal, "first_difference",
                                        is_equal ? json_null() : json_integer((json_int_t)same)));
    }
    json_array_append_new(run->answers,
                          json_pack("{s:I, s:o, s:o}", "line", (json_int_t)item->line, "text",
                                    text_to_json(&answers[0]), "files", files));
}

/* Runs all models on the chat with the original's answer, so that they score each of its tokens. Returns an exit
 * status. */
static int read_answer(cli_comparison *c, const cli_chat_answer *answer)
{
    const int32_t *ids = WHIT_ITEMS(const int32_t, &answer->ids);
    const size_t n = answer->ids.size_bytes / sizeof *ids;
    whit_step_token *tokens = calloc(n + 1, sizeof *tokens);
    if (!tokens) return cli_fail(c->call, CLI_LIMIT, "not enough memory for the %zu tokens of an answer", n);
    for (size_t i = 0; i < n; i++)
        tokens[i] = (whit_step_token){.id = ids[i], .want_logits = i + 1 >= answer->n_prompt};
    const int status = cli_compare_window(c, tokens, n);
    free(tokens);
    return status;
}

static int ask_item(struct chat_run *run, const cli_chat_item *item)
{
    cli_comparison *c = run->c;
    cli_chat_answer answers[CLI_SUBJECTS_MAX] = {0};
    int status = CLI_OK;
    for (size_t i = 0; status == CLI_OK && i < c->n; i++)
        status = cli_chat_items_answer(c->call, item, run->path, c->subjects[i].model, c->subjects[i].session,
                                       c->subjects[i].chat, run->n_tokens, &answers[i]);
    if (status == CLI_OK && !add_answers(run, item, answers))
        status = cli_fail(c->call, CLI_LIMIT, "not enough memory for the answers");
    if (status == CLI_OK && c->json) keep_answers(run, item, answers);
    if (status == CLI_OK) status = read_answer(c, &answers[0]);
    for (size_t i = 0; i < c->n; i++) cli_chat_answer_free(&answers[i]);
    return status;
}

/* ---- the report ----------------------------------------------------------------------------- */

static cli_interval percent_of(size_t n_right, size_t n)
{
    return cli_interval_scale(cli_interval_share(n_right, n), 100);
}

/* Returns the mean over chats, in per cent, of the member at this offset; if `other` is not NULL, the mean of the
 * differences from the values of `other`. */
static cli_interval mean_of(const struct chat_sums *sums, const struct chat_sums *other, size_t offset)
{
    const cli_subject subject = {.units = sums->prefixes}, base = {.units = other ? other->prefixes : (whit_buf){0}};
    return cli_interval_scale(cli_compare_interval(&subject, other ? &base : NULL, offset), 100);
}

static json_t *make_row(const struct chat_run *run, size_t i)
{
    const struct chat_sums *s = &run->sums[i];
    const cli_chat_tally *t = &s->tally;
    const cli_subject *subject = &run->c->subjects[i];
    json_t *row = json_pack("{s:o, s:I}", "file", cli_json_path(subject->path), "chats", (json_int_t)t->n);
    if (i) {
        cli_interval_set(row, "equal", percent_of(s->n_equal, t->n));
        cli_interval_set(row, "prefix", mean_of(s, NULL, offsetof(cli_unit, n_same)));
        cli_interval_set(row, "top1",
                         cli_interval_scale(cli_compare_interval(subject, NULL, offsetof(cli_unit, n_same)), 100));
        cli_interval_set(row, "kld_mean", cli_compare_interval(subject, NULL, offsetof(cli_unit, kl)));
    }
    if (t->n_wanted) cli_interval_set(row, "right", percent_of(t->n_right, t->n_wanted));
    if (i && t->n_wanted == t->n)
        cli_interval_set(row, "right_difference", mean_of(s, &run->sums[0], offsetof(cli_unit, n_right)));
    if (!t->n_tooled) return row;
    cli_interval_set(row, "calling", percent_of(t->n_calling, t->n_tooled));
    json_object_set_new(row, "calls", json_integer((json_int_t)t->n_calls));
    if (t->n_calls) cli_interval_set(row, "calls_parsed", percent_of(t->n_parsed, t->n_calls));
    if (t->n_calls) cli_interval_set(row, "calls_valid", percent_of(t->n_valid, t->n_calls));
    json_object_set_new(row, "held", json_boolean(t->is_held));
    return row;
}

/* Columns of the table. */
static const struct {
    const char *key, *title;
    int decimals;
} columns[] = {{"equal", "equal %", 1},    {"prefix", "prefix %", 1}, {"top1", "top-1 %", 2},
               {"kld_mean", "KL mean", 5}, {"right", "right %", 1},   {"calls_valid", "calls %", 1}};
enum { COLUMNS = sizeof columns / sizeof *columns };

static void print_cells(cli_call *call, const json_t *row, bool halves)
{
    for (int k = 0; k < COLUMNS; k++) {
        const json_t *cell = json_object_get(row, columns[k].key);
        const double value = halves ? cli_interval_read_half(row, columns[k].key) : json_number_value(cell);
        if (halves ? value >= 0 : json_is_number(cell))
            cli_print(call, " %9.*f", columns[k].decimals, value);
        else
            cli_print(call, " %9s", "");
    }
    cli_print(call, "\n");
}

static void print_table(const struct chat_run *run, const json_t *rows)
{
    size_t i;
    json_t *row;
    cli_call *call = run->c->call;
    cli_print(call, "%zu chats of %s\n%-*s", run->items.n, run->path, CLI_COMPARE_NAME, "file");
    for (int k = 0; k < COLUMNS; k++) cli_print(call, " %9s", columns[k].title);
    cli_print(call, "\n");
    json_array_foreach(rows, i, row)
    {
        cli_compare_begin_row(call, run->c->subjects[i].path);
        print_cells(call, row, false);
        cli_print(call, "%*s", CLI_COMPARE_NAME, "+/-");
        print_cells(call, row, true);
    }
    cli_chat_tally_note(&run->sums[0].tally);
}

int cli_compare_chats(cli_comparison *c, const char *path, uint32_t n_tokens, json_t *report)
{
    struct chat_run run = {.c = c, .path = path, .n_tokens = n_tokens, .answers = json_array()};
    int status = cli_chat_items_read(c->call, path, &run.items);
    cli_compare_clear(c);
    for (size_t k = 0; status == CLI_OK && k < run.items.n; k++) {
        status = ask_item(&run, &run.items.items[k]);
        cli_progress(NULL, "chats", (double)(k + 1) / (double)run.items.n);
    }
    cli_progress_end();
    json_t *rows = json_array();
    for (size_t i = 0; status == CLI_OK && i < c->n; i++) json_array_append_new(rows, make_row(&run, i));
    if (status == CLI_OK && !c->json) print_table(&run, rows);
    json_object_set_new(
        report, "chats",
        json_pack("{s:o, s:o, s:o}", "path", cli_json_path(path), "files", rows, "answers", run.answers));
    for (size_t i = 0; i < c->n; i++) whit_buf_free(&run.sums[i].prefixes);
    cli_chat_items_free(&run.items);
    cli_compare_clear(c);
    return status;
}
