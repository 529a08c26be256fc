/* SPDX-License-Identifier: MIT
 * Keeps lists of places from a search, a compiler or a language server. The selected place is shown above the list; the
 * last list stays, and the command next-result steps through it. */
#include "editor/state.h"

#include <stdio.h>
#include <stdlib.h>

#define RESULTS_MAX 100000u

static void free_items(struct ed_results *results)
{
    for (size_t i = 0; i < results->n; i++) {
        free(results->items[i].label);
        free(results->items[i].path);
    }
    free(results->items);
    results->items = NULL;
    results->n = results->at = 0;
    results->was_at = false;
}

void ed_results_close(ed *e)
{
    free_items(&e->results);
}

void ed_results_begin(ed *e, const char *label)
{
    free_items(&e->results);
    snprintf(e->results.label, sizeof e->results.label, "%s", label);
}

bool ed_results_add(ed *e, const char *label, const char *path, uint64_t line)
{
    struct ed_results *results = &e->results;
    if (results->n == RESULTS_MAX) return false;
    if ((results->n & (results->n - 1)) == 0) { /* the capacity doubles whenever n is 0 or a power of two */
        struct ed_item *grown = realloc(results->items, (results->n ? 2 * results->n : 1) * sizeof *grown);
        if (!grown) return false;
        results->items = grown;
    }
    struct ed_item item = {strdup(label), strdup(path), line, -1};
    if (!item.label || !item.path) {
        free(item.label);
        free(item.path);
        return false;
    }
    results->items[results->n++] = item;
    return true;
}

/* ---- preview of the chosen place ----------------------------------------------------------- */

static bool is_shown(const struct ed_doc *doc, const char *path)
{
    return doc->buffer->path && !strcmp(doc->buffer->path, path);
}

/* Returns a place's document: an open one, the current preview, or a new copy of the file, which is not in the list of
 * documents and which the caller must store in results->peeked or free. */
static struct ed_doc *doc_of(ed *e, const char *path)
{
    struct ed_results *results = &e->results;
    struct ed_doc *doc = ed_doc_find(e, path);
    char *full = doc ? NULL : whit_buffer_full_path(path);
    if (!doc && results->peeked && full && is_shown(results->peeked, full)) doc = results->peeked;
    free(full);
    return doc ? doc : ed_doc_peek(e, path);
}

void ed_results_preview(ed *e)
{
    struct ed_prompt *prompt = &e->prompt;
    struct ed_results *results = &e->results;
    if (prompt->kind != ED_PROMPT_RESULTS || prompt->chosen >= prompt->n_shown) return;
    const struct ed_item *item = &prompt->items[prompt->shown[prompt->chosen]];
    struct ed_doc *doc = item->path ? doc_of(e, item->path) : NULL;
    if (!doc) return;
    if (!results->from) {
        results->from = e->window->doc;
        results->from_cursor = *ed_cursor(e);
        results->from_top = e->window->top;
    }
    struct ed_doc *before = results->peeked;
    results->peeked = ed_doc_find(e, doc->buffer->path) ? NULL : doc;
    if (e->window->doc != doc) ed_window_show(e, e->window, doc);
    if (before && before != results->peeked) ed_doc_free(before);
    ed_place(e, item->line, 1);
    uint64_t begin = ed_cursor(e)->offset, top = begin, row;
    *ed_cursor(e) = (struct ed_cursor){begin, whit_layout_line_end(ed_layout(e), begin), -1};
    for (int above = e->window->n_rows / 4; above > 0; above--) {
        if ((row = whit_layout_previous_row(ed_layout(e), top)) == UINT64_MAX) break;
        top = row;
    }
    e->window->top = top;
}

/* Shows the document again that was shown before the preview. */
static void end_preview(ed *e)
{
    struct ed_results *results = &e->results;
    if (!results->from) return;
    if (e->window->doc != results->from) ed_window_show(e, e->window, results->from);
    *ed_cursor(e) = results->from_cursor;
    e->window->top = results->from_top;
    if (results->peeked) ed_doc_free(results->peeked);
    results->from = results->peeked = NULL;
}

void ed_results_keep(ed *e)
{
    struct ed_prompt *prompt = &e->prompt;
    if (prompt->kind != ED_PROMPT_RESULTS) return;
    end_preview(e);
    if (!prompt->n_items || !prompt->items[0].path) return;
    free_items(&e->results);
    e->results.items = prompt->items;
    e->results.n = prompt->n_items;
    e->results.was_at = false;
    e->results.at = prompt->chosen < prompt->n_shown ? prompt->shown[prompt->chosen] : 0;
    snprintf(e->results.label, sizeof e->results.label, "%.60s", prompt->label);
    prompt->items = NULL;
    prompt->n_items = prompt->items_room = 0;
}

/* ---- commands ------------------------------------------------------------------------------ */

static bool has_results(ed *e)
{
    if (!e->results.n) ed_complain(e, "there is no list yet: find-in-files, references and make create one");
    return e->results.n > 0;
}

void ed_results_go(ed *e, size_t at)
{
    struct ed_results *results = &e->results;
    if (!has_results(e)) return;
    if (at >= results->n) {
        ed_complain(e, at == SIZE_MAX ? "this is the first place of the list" : "this is the last place of the list");
        return;
    }
    results->at = at;
    results->was_at = true;
    ed_go_to_file(e, results->items[at].path, results->items[at].line);
    if (!e->prompt.kind && !*e->message) ed_say(e, "%zu of %zu: %.400s", at + 1, results->n, results->items[at].label);
}

void ed_results_next(ed *e)
{
    ed_results_go(e, e->results.at + e->results.was_at);
}

void ed_results_previous(ed *e)
{
    ed_results_go(e, e->results.at - 1); /* before the first place, the index wraps around to SIZE_MAX */
}

void ed_results_list(ed *e)
{
    struct ed_results *results = &e->results;
    if (!has_results(e)) return;
    size_t at = results->at;
    ed_prompt_open(e, ED_PROMPT_RESULTS, results->label, "");
    e->prompt.items = results->items;
    e->prompt.n_items = e->prompt.items_room = results->n;
    results->items = NULL;
    results->n = 0;
    ed_prompt_filter(e);
    e->prompt.chosen = at < e->prompt.n_shown ? at : 0;
    ed_results_preview(e);
}
