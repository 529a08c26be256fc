/* SPDX-License-Identifier: MIT
 * Computes Myers' greedy difference (1986) of two texts by lines, with a limit on the number of edits. Round
 * d, which allows d edits, stores 2 d + 1 numbers. Beyond the limit, everything between the common beginning
 * and the common end is shown as removed and added, which is longer and just as exact. */
#include "code/diff.h"

#include <stdlib.h>

#define CONTEXT     3
#define MAX_ROUNDS  2000 /* maximum number of edits; memory grows with their square */
#define LINE_ROUNDS 500  /* limit for whit_diff_lines, which runs while the user types */

typedef struct line {
    const char *text;
    size_t n_bytes; /* includes the line end */
} line;

typedef struct side {
    const char *text;
    size_t n_bytes;
    line *lines;
    size_t n;
} side;

static bool split_lines(const char *text, size_t n_bytes, side *out)
{
    size_t n = 0;
    out->text = text;
    out->n_bytes = n_bytes;
    for (size_t i = 0; i < n_bytes; i++) n += text[i] == '\n';
    out->lines = calloc(n + 1, sizeof *out->lines);
    if (!out->lines) return false;
    for (size_t at = 0; at < n_bytes;) {
        const char *end = memchr(text + at, '\n', n_bytes - at);
        size_t length = end ? (size_t)(end - text) + 1 - at : n_bytes - at;
        out->lines[out->n++] = (line){text + at, length};
        at += length;
    }
    return true;
}

static bool same(const line *a, const line *b)
{
    return a->n_bytes == b->n_bytes && memcmp(a->text, b->text, a->n_bytes) == 0;
}

/* Marks the lines of both sides that have no match. Stores one row per number of edits, and then walks back through the
 * rows. Returns false if memory runs out. */
static bool mark(const side *a, const side *b, long max_rounds, uint8_t *removed, uint8_t *added)
{
    long n = (long)a->n, m = (long)b->n, most = n + m < max_rounds ? n + m : max_rounds;
    long **rounds = calloc((size_t)most + 1, sizeof *rounds);
    long *v = calloc(2 * (size_t)most + 3, sizeof *v);
    long d = 0, found = -1;
    bool ok = rounds && v;
    for (; ok && d <= most && found < 0; d++) {
        rounds[d] = malloc((2 * (size_t)d + 3) * sizeof **rounds);
        if (!(ok = rounds[d] != NULL)) break;
        for (long k = -d; k <= d; k += 2) {
            bool down = k == -d || (k != d && v[most + k] < v[most + k + 2]);
            long x = down ? v[most + k + 2] : v[most + k] + 1, y;
            if (d == 0) x = 0;
            for (y = x - k; x < n && y < m && same(&a->lines[x], &b->lines[y]);) x++, y++;
            v[most + 1 + k] = x;
            if (x >= n && y >= m) found = d;
        }
        for (long k = -d; k <= d; k++) rounds[d][k + d] = v[most + 1 + k];
    }
    if (ok && found >= 0) {
        long x = n, y = m;
        for (d = found; d > 0; d--) {
            const long *before = rounds[d - 1];
            long k = x - y;
            bool down = k == -d || (k != d && before[k - 1 + d - 1] < before[k + 1 + d - 1]);
            long from = down ? k + 1 : k - 1, fx = before[from + d - 1], fy = fx - from;
            if (down)
                added[fy] = 1;
            else
                removed[fx] = 1;
            x = fx;
            y = fy;
        }
    } else if (ok) {
        memset(removed, 1, a->n);
        memset(added, 1, b->n);
        for (size_t i = 0; i < a->n && i < b->n && same(&a->lines[i], &b->lines[i]); i++) removed[i] = added[i] = 0;
        for (size_t i = 1; i <= a->n && i <= b->n && removed[a->n - i] && added[b->n - i] &&
             same(&a->lines[a->n - i], &b->lines[b->n - i]);
             i++)
            removed[a->n - i] = added[b->n - i] = 0;
    }
    for (d = 0; rounds && d <= most; d++) free(rounds[d]);
    free(rounds);
    free(v);
    return ok;
}

static void put_line(whit_buf *out, char kind, const line *l)
{
    whit_buf_append(out, &kind, 1);
    whit_buf_append(out, l->text, l->n_bytes);
    if (l->text[l->n_bytes - 1] != '\n') whit_buf_append_str(out, "\n\\ No newline at end of file\n");
}

static size_t offset_of(const side *s, size_t i)
{
    return i < s->n ? (size_t)(s->lines[i].text - s->text) : s->n_bytes;
}

/* Writes one hunk, which begins at line *i of the old and *k of the new text and ends at the last change that more than
 * `most` unchanged lines follow. Moves *i and *k to the lines after the hunk. */
static void put_hunk(whit_buf *out, whit_buf *hunks, const side *a, const side *b, const uint8_t *removed,
                     const uint8_t *added, size_t most, size_t *i, size_t *k)
{
    whit_diff_hunk hunk = {.old_begin = offset_of(a, *i), .new_begin = offset_of(b, *k), .text_begin = out->size_bytes};
    size_t before = *i < CONTEXT ? *i : CONTEXT, from_a = *i - before, from_b = *k - before;
    size_t x = *i, y = *k, end_a = x, end_b = y, quiet = 0;
    while ((x < a->n || y < b->n) && quiet <= most) {
        bool change = (x < a->n && removed[x]) || (y < b->n && added[y]);
        if (x < a->n && removed[x])
            x++;
        else if (y < b->n && added[y])
            y++;
        else
            x++, y++;
        quiet = change ? 0 : quiet + 1;
        if (change) end_a = x, end_b = y;
    }
    size_t after = a->n - end_a < CONTEXT ? a->n - end_a : CONTEXT;
    whit_buf_printf(out, "@@ -%zu,%zu +%zu,%zu @@\n", from_a + (end_a + after > from_a), end_a + after - from_a,
                    from_b + (end_b + after > from_b), end_b + after - from_b);
    for (x = from_a, y = from_b; x < end_a + after || y < end_b + after;) {
        if (x < end_a && removed[x])
            put_line(out, '-', &a->lines[x++]);
        else if (y < end_b && added[y])
            put_line(out, '+', &b->lines[y++]);
        else
            put_line(out, ' ', &a->lines[x++]), y++;
    }
    hunk.old_end = offset_of(a, end_a);
    hunk.new_end = offset_of(b, end_b);
    hunk.text_end = out->size_bytes;
    if (hunks && !whit_buf_append(hunks, &hunk, sizeof hunk)) out->failed = true;
    *i = end_a;
    *k = end_b;
}

whit_status whit_diff_hunks(const char *old_name, const char *old_text, size_t old_bytes, const char *new_name,
                            const char *new_text, size_t new_bytes, whit_buf *out, whit_buf *hunks, whit_error *error)
{
    side a = {0}, b = {0};
    bool ok = split_lines(old_text, old_bytes, &a) && split_lines(new_text, new_bytes, &b);
    uint8_t *removed = calloc(a.n + 1, 1), *added = calloc(b.n + 1, 1);
    ok = ok && removed && added && mark(&a, &b, MAX_ROUNDS, removed, added);
    bool named = false;
    for (size_t i = 0, k = 0; ok && (i < a.n || k < b.n);) {
        if ((i < a.n && removed[i]) || (k < b.n && added[k])) {
            if (!named) whit_buf_printf(out, "--- %s\n+++ %s\n", old_name, new_name);
            named = true;
            put_hunk(out, hunks, &a, &b, removed, added, hunks ? CONTEXT - 1 : 2 * CONTEXT, &i, &k);
        } else {
            i++, k++;
        }
    }
    free(a.lines);
    free(b.lines);
    free(removed);
    free(added);
    return ok && !out->failed ? WHIT_OK : whit_fail_memory(error, "a diff", old_bytes + new_bytes);
}

bool whit_diff_take(const char *old_text, size_t old_bytes, const char *new_text, const whit_diff_hunk *hunks, size_t n,
                    const uint8_t *taken, whit_buf *out)
{
    size_t at = 0;
    bool ok = true;
    if (!n) return whit_buf_append(out, old_text, old_bytes);
    for (size_t i = 0; i < n && ok; i++) {
        if (!taken[i]) continue;
        ok = whit_buf_append(out, old_text + at, hunks[i].old_begin - at) &&
            whit_buf_append(out, new_text + hunks[i].new_begin, hunks[i].new_end - hunks[i].new_begin);
        at = hunks[i].old_end;
    }
    return ok && whit_buf_append(out, old_text + at, old_bytes - at);
}

bool whit_diff_lines(const char *old_text, size_t old_bytes, const char *new_text, size_t new_bytes, whit_buf *runs)
{
    side a = {0}, b = {0};
    bool ok = split_lines(old_text, old_bytes, &a) && split_lines(new_text, new_bytes, &b);
    uint8_t *removed = calloc(a.n + 1, 1), *added = calloc(b.n + 1, 1);
    ok = ok && removed && added && mark(&a, &b, LINE_ROUNDS, removed, added);
    for (size_t i = 0, k = 0; ok && (i < a.n || k < b.n);) {
        whit_diff_run run = {i, 0, k, 0};
        while (i < a.n && removed[i]) i++;
        while (k < b.n && added[k]) k++;
        run.n_old = i - run.old_line;
        run.n_new = k - run.new_line;
        if (run.n_old || run.n_new)
            ok = whit_buf_append(runs, &run, sizeof run);
        else
            i++, k++;
    }
    free(a.lines);
    free(b.lines);
    free(removed);
    free(added);
    return ok;
}
