/* SPDX-License-Identifier: MIT
 * Compares two texts side by side: each marks its differing lines in the margin, and they scroll together. */
#include "editor/state.h"
#include "base/items.h"

#include "code/diff.h"

#include <stdlib.h>

#define COMPARED_BYTES (8u << 20) /* maximum size of a compared text in bytes */

void ed_compare(ed *e, struct ed_doc *a, struct ed_doc *b)
{
    if (a == b || whit_text_size(a->buffer->text) > COMPARED_BYTES ||
        whit_text_size(b->buffer->text) > COMPARED_BYTES) {
        ed_complain(e, "only two different texts of at most %u MiB can be compared", COMPARED_BYTES >> 20);
        return;
    }
    ed_compare_forget(a);
    ed_compare_forget(b);
    a->compared.with = b;
    b->compared.with = a;
    a->compared.version = b->compared.version = UINT64_MAX;
}

void ed_compare_forget(struct ed_doc *doc)
{
    struct ed_doc *other = doc->compared.with;
    whit_buf_free(&doc->compared.runs);
    doc->compared.with = NULL;
    if (!other) return;
    whit_buf_free(&other->compared.runs);
    other->compared.with = NULL;
    /* force both documents to compute their marks against the last commit again */
    other->git.version = doc->git.version = UINT64_MAX;
}

static char *copy_text(const struct ed_doc *doc, size_t *n)
{
    *n = (size_t)whit_text_size(doc->buffer->text);
    char *text = malloc(*n + 1);
    if (text) *n = whit_text_read(doc->buffer->text, 0, text, *n);
    return text;
}

bool ed_compare_update(struct ed_doc *doc)
{
    struct ed_compared *compared = &doc->compared;
    struct ed_git *git = &doc->git;
    const struct ed_doc *other = compared->with;
    if (compared->version == doc->buffer->version && compared->other_version == other->buffer->version) return false;
    compared->version = doc->buffer->version;
    compared->other_version = other->buffer->version;
    size_t n_old, n_new;
    char *old_text = copy_text(other, &n_old), *new_text = copy_text(doc, &n_new);
    whit_buf_free(&compared->runs);
    if (!git->changes) git->changes = malloc(ED_GIT_CHANGES_MAX * sizeof *git->changes);
    git->n_changes = 0;
    bool ok = old_text && new_text && git->changes && n_old <= COMPARED_BYTES && n_new <= COMPARED_BYTES &&
        whit_diff_lines(old_text, n_old, new_text, n_new, &compared->runs);
    const whit_diff_run *runs = WHIT_ITEMS(const whit_diff_run, &compared->runs);
    for (size_t i = 0; ok && i < compared->runs.size_bytes / sizeof *runs && git->n_changes < ED_GIT_CHANGES_MAX; i++)
        git->changes[git->n_changes++] = (whit_git_change){runs[i].new_line + 1, runs[i].n_new,
                                                           !runs[i].n_new       ? WHIT_GIT_REMOVED
                                                               : !runs[i].n_old ? WHIT_GIT_ADDED
                                                                                : WHIT_GIT_CHANGED};
    free(old_text);
    free(new_text);
    return true;
}

/* Returns the line of the other text that is shown beside line `line` of this one; lines are counted from 0. */
static uint64_t line_beside(const struct ed_doc *doc, uint64_t line)
{
    const whit_diff_run *runs = WHIT_ITEMS(const whit_diff_run, &doc->compared.runs);
    uint64_t beside = line;
    for (size_t i = 0; i < doc->compared.runs.size_bytes / sizeof *runs && runs[i].new_line <= line; i++) {
        /* within a change the line is limited to the end of the change in the other text */
        if (line < runs[i].new_line + runs[i].n_new) {
            uint64_t into = line - runs[i].new_line;
            return runs[i].old_line + (into < runs[i].n_old ? into : runs[i].n_old);
        }
        beside = line - (runs[i].new_line + runs[i].n_new) + runs[i].old_line + runs[i].n_old;
    }
    return beside;
}

void ed_compare_scroll(ed *e)
{
    struct ed_doc *doc = e->window->doc, *other = doc->compared.with;
    struct ed_window *window = other ? ed_pad_window(e, other) : NULL;
    if (!window || doc->compared.version == UINT64_MAX) return;
    ed_window_follow(e, e->window);
    uint64_t line = whit_text_line_at(ed_text(e), e->window->top);
    uint64_t start = line == UINT64_MAX ? line : whit_text_line_start(other->buffer->text, line_beside(doc, line));
    if (start == UINT64_MAX) return;
    window->top = start;
    window->moved_away = true; /* keep the window's cursor from scrolling it back */
}
