/* SPDX-License-Identifier: MIT */
#include "agent/hunks.h"

#include "code/diff.h"
#include "agent/light.h"
#include "base/items.h"
#include "base/plain.h"
#include "base/status.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

static const whit_diff_hunk *spans_of(const whit_hunks *hunks)
{
    return WHIT_ITEMS(const whit_diff_hunk, &hunks->spans);
}

/* Appends one of a diff's two file names, ended by a zero byte, in git's form: begin ("a/" or "b/") and the path, or
 * /dev/null if the file does not exist on that side. A name with a tab, a quote, a backslash, or a space at either end
 * is quoted, since a reader takes a tab for the end of the name and does not see an outer space. Names contain no line
 * feeds. */
static void write_name(const char *begin, const char *path, bool is_there, whit_buf *name)
{
    if (!is_there) {
        whit_buf_append(name, "/dev/null", sizeof "/dev/null");
        return;
    }
    const size_t n = strlen(path);
    const bool is_quoted = strpbrk(path, "\t\"\\") || *path == ' ' || (n && path[n - 1] == ' ');
    if (is_quoted) whit_buf_append(name, "\"", 1);
    whit_buf_append_str(name, begin);
    for (const char *at = path; *at; at++) {
        if (is_quoted && (*at == '"' || *at == '\\')) whit_buf_append(name, "\\", 1);
        if (*at == '\t')
            whit_buf_append_str(name, "\\t");
        else
            whit_buf_append(name, at, 1);
    }
    if (is_quoted) whit_buf_append(name, "\"", 1);
    whit_buf_append(name, "", 1);
}

/* Writes the diff of a change and appends its hunks to `spans`. The diff of a created or deleted empty file consists of
 * the file names only. */
static whit_status write_diff(const whit_change *c, whit_buf *out, whit_buf *spans, whit_error *error)
{
    whit_buf names[2] = {{0}, {0}};
    size_t begin = out->size_bytes;
    write_name("a/", c->path, c->was, &names[0]);
    write_name("b/", c->path, c->is, &names[1]);
    whit_status status = WHIT_OK;
    if (names[0].failed || names[1].failed)
        status = whit_fail_memory(error, "the difference of two texts", strlen(c->path));
    if (status == WHIT_OK)
        status = whit_diff_hunks(whit_chars(&names[0]), c->before, c->before_bytes, whit_chars(&names[1]), c->after,
                                 c->after_bytes, out, spans, error);
    if (status == WHIT_OK && out->size_bytes == begin &&
        !whit_buf_printf(out, "--- %s\n+++ %s\n", whit_chars(&names[0]), whit_chars(&names[1])))
        status = whit_fail_memory(error, "the difference of two texts", out->size_bytes);
    whit_buf_free(&names[0]);
    whit_buf_free(&names[1]);
    return status;
}

whit_status whit_change_show(const whit_change *change, whit_buf *out, whit_error *error)
{
    whit_buf diff = {0}, spans = {0};
    whit_status status = write_diff(change, &diff, &spans, error);
    if (status == WHIT_OK && !whit_plain_show(whit_chars(&diff), diff.size_bytes, WHIT_PLAIN_SIGNED, out))
        status = whit_fail_memory(error, "the difference of two texts", diff.size_bytes);
    whit_buf_free(&diff);
    whit_buf_free(&spans);
    return status;
}

static whit_status add_change(whit_hunks *hunks, const whit_change *c, whit_error *error)
{
    size_t begin = hunks->texts.size_bytes, n_before = hunks->spans.size_bytes / sizeof(whit_diff_hunk);
    WHIT_TRY(write_diff(c, &hunks->texts, &hunks->spans, error));
    size_t n = hunks->spans.size_bytes / sizeof(whit_diff_hunk) - n_before;
    bool ok = true;
    if (!n) { /* the change creates or deletes an empty file */
        whit_diff_hunk whole = {.text_begin = begin, .text_end = hunks->texts.size_bytes};
        ok = whit_buf_append(&hunks->spans, &whole, sizeof whole);
        n = 1;
    } else {
        /* the first hunk also covers the lines with the file names */
        (WHIT_ITEMS(whit_diff_hunk, &hunks->spans) + n_before)->text_begin = begin;
    }
    ok = ok && whit_buf_append(&hunks->counts, &n, sizeof n) && !hunks->texts.failed;
    return ok ? WHIT_OK : whit_fail_memory(error, "the hunks of a patch", hunks->texts.size_bytes);
}

/* Writes the text of each hunk to `shown` in the form for display. */
static bool show_texts(whit_hunks *hunks)
{
    size_t *ends = calloc(hunks->n + 1, sizeof *ends);
    bool ok = ends != NULL;
    for (size_t k = 0; ok && k < hunks->n; k++) {
        const whit_diff_hunk *span = &spans_of(hunks)[k];
        ok = whit_plain_show(whit_chars(&hunks->texts) + span->text_begin, span->text_end - span->text_begin,
                             WHIT_PLAIN_SIGNED, &hunks->shown);
        ends[k] = hunks->shown.size_bytes;
    }
    for (size_t k = 0; ok && k < hunks->n; k++) {
        size_t begin = k ? ends[k - 1] : 0;
        hunks->list[k].text = whit_chars(&hunks->shown) + begin;
        hunks->list[k].n_bytes = ends[k] - begin;
    }
    free(ends);
    return ok;
}

whit_status whit_hunks_make(whit_hunks *hunks, const char *project, const whit_changes *staged, whit_error *error)
{
    size_t n_changes = whit_changes_count(staged);
    for (size_t i = 0; i < n_changes; i++) WHIT_TRY(add_change(hunks, whit_changes_at(staged, i), error));
    hunks->n = hunks->spans.size_bytes / sizeof(whit_diff_hunk);
    hunks->list = calloc(hunks->n + 1, sizeof *hunks->list);
    hunks->reasons = calloc(n_changes + 1, sizeof *hunks->reasons);
    if (!hunks->list || !hunks->reasons)
        return whit_fail_memory(error, "the hunks of a patch", hunks->n * sizeof *hunks->list);
    const size_t *counts = WHIT_ITEMS(const size_t, &hunks->counts);
    for (size_t i = 0, k = 0; i < n_changes; i++) {
        const whit_change *c = whit_changes_at(staged, i);
        const char *reason = whit_light_red(project, staged, c, hunks->reasons[i]);
        for (size_t last = k + counts[i]; k < last; k++) hunks->list[k] = (whit_hunk){c->path, reason, "", 0};
    }
    return show_texts(hunks) ? WHIT_OK : whit_fail_memory(error, "the hunks of a patch", hunks->texts.size_bytes);
}

whit_status whit_hunks_keep(const whit_hunks *hunks, const uint8_t *taken, whit_changes *staged, whit_error *error)
{
    const size_t *counts = WHIT_ITEMS(const size_t, &hunks->counts);
    size_t n_changes = whit_changes_count(staged), first = 0;
    for (size_t i = 0; i < n_changes; first += counts[i++]) {
        whit_change *c = whit_changes_at(staged, i);
        size_t n_taken = 0;
        for (size_t k = 0; k < counts[i]; k++) n_taken += taken[first + k] != 0;
        if (n_taken == counts[i]) continue;
        if (!n_taken || c->was != c->is) {
            c->path = "";
            continue;
        }
        whit_buf content = {0};
        if (!whit_diff_take(c->before_bytes ? c->before : "", c->before_bytes, c->after_bytes ? c->after : "",
                            spans_of(hunks) + first, counts[i], taken + first, &content)) {
            whit_buf_free(&content);
            return whit_fail_memory(error, "a file", c->before_bytes + c->after_bytes);
        }
        WHIT_TRY(whit_changes_replace(staged, i, &content, error));
    }
    whit_changes_drop(staged);
    return WHIT_OK;
}

void whit_hunks_free(whit_hunks *hunks)
{
    free(hunks->list);
    free(hunks->reasons);
    whit_buf_free(&hunks->texts);
    whit_buf_free(&hunks->shown);
    whit_buf_free(&hunks->spans);
    whit_buf_free(&hunks->counts);
    *hunks = (whit_hunks){0};
}
