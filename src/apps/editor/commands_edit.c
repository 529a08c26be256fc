/* SPDX-License-Identifier: MIT
 * Runs the commands that change the text, for all cursors. */
#include "editor/state.h"

#include <stdio.h>
#include <stdlib.h>

static void delete_to(ed *e, uint64_t (*to)(ed *e, struct ed_cursor *cursor))
{
    for (size_t i = 0; i < e->window->n_cursors; i++) {
        struct ed_cursor *cursor = &e->window->cursors[i];
        if (ed_selection(cursor).end > ed_selection(cursor).begin) {
            ed_delete_selection(e, cursor);
            continue;
        }
        cursor->anchor = ED_NONE;
        uint64_t there = to(e, cursor), from = there < cursor->offset ? there : cursor->offset;
        uint64_t until = there < cursor->offset ? cursor->offset : there;
        if (until > from) ed_edit(e, from, until - from, NULL, 0);
    }
}

/* Returns the offset to which backspace deletes: in a text that is indented by spaces, within a line's indentation one
 * level; elsewhere one character. */
static uint64_t to_before(ed *e, struct ed_cursor *cursor)
{
    struct ed_doc *doc = e->window->doc;
    uint64_t begin = whit_layout_line_begin(ed_layout(e), cursor->offset), at = begin;
    while (at < cursor->offset && whit_layout_byte(ed_layout(e), at) == ' ') at++;
    uint64_t n = cursor->offset - begin;
    if (at == cursor->offset && n > 1 && !doc->indent_tabs && doc->indent_columns > 1)
        return begin + (n - 1) / (uint64_t)doc->indent_columns * (uint64_t)doc->indent_columns;
    return whit_layout_before(ed_layout(e), cursor->offset);
}

void ed_do_backspace(ed *e)
{
    /* between the two signs of an empty pair, delete the closing sign, too */
    for (size_t i = 0; e->settings.pairs && i < e->window->n_cursors; i++) {
        const struct ed_cursor *cursor = &e->window->cursors[i];
        uint32_t closing = cursor->anchor == ED_NONE && cursor->offset
            ? ed_closing(whit_layout_byte(ed_layout(e), cursor->offset - 1))
            : 0;
        if (closing && whit_layout_byte(ed_layout(e), cursor->offset) == (int)closing)
            ed_edit(e, cursor->offset, 1, NULL, 0);
    }
    delete_to(e, to_before);
}
void ed_do_delete(ed *e)
{
    delete_to(e, ed_to_right);
}
void ed_do_delete_word_left(ed *e)
{
    delete_to(e, ed_to_word_left);
}
void ed_do_delete_word_right(ed *e)
{
    delete_to(e, ed_to_word_right);
}

const char *ed_line_ending(ed *e, uint64_t begin)
{
    whit_layout *layout = ed_layout(e);
    uint64_t line_end = whit_layout_line_end(layout, begin);
    bool ended = whit_layout_byte(layout, line_end) >= 0;
    bool carriage;
    if (ended)
        carriage = whit_layout_byte(layout, line_end) == '\r';
    else if (begin > 1)
        carriage = whit_layout_byte(layout, begin - 2) == '\r';
    else
        carriage = !begin && e->window->doc->project.carriage_return == WHIT_YES;
    return carriage ? "\r\n" : "\n";
}

void ed_do_new_line(ed *e)
{
    struct ed_doc *doc = e->window->doc;
    for (size_t i = 0; i < e->window->n_cursors; i++) {
        struct ed_cursor *cursor = &e->window->cursors[i];
        ed_delete_selection(e, cursor);
        whit_layout *layout = ed_layout(e);
        char text[512];
        uint64_t begin = whit_layout_line_begin(layout, cursor->offset);
        size_t n = (size_t)(stpcpy(text, ed_line_ending(e, begin)) - text);
        int byte;
        for (uint64_t at = begin; at < cursor->offset && n < sizeof text - 16 &&
             ((byte = whit_layout_byte(layout, at)) == ' ' || byte == '\t');
             at++)
            text[n++] = (char)byte;
        size_t n_same = n; /* number of bytes of `text` so far: line end and copied indentation */
        int last = cursor->offset > begin ? whit_layout_byte(layout, cursor->offset - 1) : 0;
        bool deeper =
            last && (strchr("{([", last) || (last == ':' && !strcmp(whit_syntax_name(doc->syntax), "python")));
        if (deeper && doc->indent_tabs) text[n++] = '\t';
        if (deeper && !doc->indent_tabs)
            for (int k = 0; k < doc->indent_columns && k < 16; k++) text[n++] = ' ';
        bool splits = e->settings.pairs && deeper && last != ':' &&
            whit_layout_byte(layout, cursor->offset) == (int)ed_closing(last);
        if (!ed_edit(e, cursor->offset, 0, text, n)) return;
        if (!splits) continue;
        uint64_t at = cursor->offset; /* the closing bracket moves to a line of its own */
        ed_edit(e, at, 0, text, n_same);
        cursor->offset = at;
    }
}

/* Orders ranges by their ends, from the end of the text to its beginning. */
static int compare_ranges(const void *a, const void *b)
{
    uint64_t x = ((const whit_range *)a)->end, y = ((const whit_range *)b)->end;
    return x > y ? -1 : x < y;
}

/* Calls `change` once with the beginning of each line that a cursor or selection touches. It goes from the last line to
 * the first, so that edits do not move the remaining lines. */
static void each_line(ed *e, void (*change)(ed *e, uint64_t begin, void *user), void *user)
{
    whit_range lines[ED_CURSORS_MAX]; /* offsets at which each cursor's first and last line begin */
    size_t n = e->window->n_cursors;
    for (size_t i = 0; i < n; i++) {
        whit_range range = ed_selection(&e->window->cursors[i]);
        lines[i].begin = whit_layout_line_begin(ed_layout(e), range.begin);
        lines[i].end = whit_layout_line_begin(ed_layout(e), range.end > range.begin ? range.end - 1 : range.end);
    }
    qsort(lines, n, sizeof *lines, compare_ranges);
    uint64_t done = ED_NONE; /* lines that begin at or after this offset are done */
    for (size_t i = 0; i < n; i++)
        for (uint64_t at = lines[i].end;; at = whit_layout_line_begin(ed_layout(e), at - 1)) {
            if (at < done) change(e, done = at, user);
            if (at <= lines[i].begin) break;
        }
}

void ed_indent_line(ed *e, uint64_t begin, bool even_empty)
{
    static const char spaces[] = "                ";
    const struct ed_doc *doc = e->window->doc;
    int byte = whit_layout_byte(ed_layout(e), begin);
    if (!even_empty && (byte == '\n' || byte == '\r' || byte < 0)) return;
    size_t n = doc->indent_tabs ? 1 : (size_t)doc->indent_columns;
    const char *blanks = doc->indent_tabs ? "\t" : spaces;
    ed_edit(e, begin, 0, blanks, n < 16 ? n : 16);
}

void ed_outdent_line(ed *e, uint64_t begin)
{
    const struct ed_doc *doc = e->window->doc;
    uint64_t n = 0;
    if (whit_layout_byte(ed_layout(e), begin) == '\t')
        n = 1;
    else
        while (n < (uint64_t)doc->indent_columns && whit_layout_byte(ed_layout(e), begin + n) == ' ') n++;
    if (n) ed_edit(e, begin, n, NULL, 0);
}

/* Indents a line. Empty lines are indented, too, if `user` is NULL (command "indent"), and stay empty otherwise (Tab
 * with several lines). */
static void indent_line(ed *e, uint64_t begin, void *user)
{
    ed_indent_line(e, begin, !user);
}
static void outdent_line(ed *e, uint64_t begin, void *user)
{
    (void)user;
    ed_outdent_line(e, begin);
}

void ed_do_tab(ed *e)
{
    bool lines = false;
    for (size_t i = 0; i < e->window->n_cursors; i++) {
        whit_range range = ed_selection(&e->window->cursors[i]);
        lines |= whit_layout_line_begin(ed_layout(e), range.begin) != whit_layout_line_begin(ed_layout(e), range.end);
    }
    if (lines) {
        each_line(e, indent_line, e);
        return;
    }
    const struct ed_doc *doc = e->window->doc;
    for (size_t i = 0; i < e->window->n_cursors; i++) {
        struct ed_cursor *cursor = &e->window->cursors[i];
        ed_delete_selection(e, cursor);
        uint64_t begin = whit_layout_line_begin(ed_layout(e), cursor->offset);
        if (cursor->offset - begin > WHIT_SEGMENT_BYTES) begin = cursor->offset;
        int column = whit_layout_column(ed_layout(e), begin, cursor->offset);
        int n = doc->indent_columns - column % doc->indent_columns;
        size_t n_blanks;
        if (doc->indent_tabs)
            n_blanks = 1;
        else if (n > 16)
            n_blanks = 16;
        else
            n_blanks = (size_t)n;
        ed_edit(e, cursor->offset, 0, doc->indent_tabs ? "\t" : "                ", n_blanks);
    }
}

void ed_do_indent(ed *e)
{
    each_line(e, indent_line, NULL);
}
void ed_do_outdent(ed *e)
{
    each_line(e, outdent_line, NULL);
}

struct comment {
    const char *open, *close;
    bool all; /* every line that is not blank is a comment already */
};

static bool has_at(ed *e, uint64_t at, const char *word)
{
    for (; *word; word++, at++)
        if (whit_layout_byte(ed_layout(e), at) != (uint8_t)*word) return false;
    return true;
}

static void look_for_comment(ed *e, uint64_t begin, void *user)
{
    struct comment *comment = user;
    uint64_t at = ed_skip_blanks(e, begin);
    if (at < whit_layout_line_end(ed_layout(e), begin) && !has_at(e, at, comment->open)) comment->all = false;
}

static void toggle_line(ed *e, uint64_t begin, void *user)
{
    const struct comment *comment = user;
    uint64_t at = ed_skip_blanks(e, begin), line_end = whit_layout_line_end(ed_layout(e), begin);
    size_t n_open = strlen(comment->open), n_close = strlen(comment->close);
    if (at >= line_end) return;
    char text[32];
    if (comment->all) {
        if (n_close && line_end >= at + n_open + n_close && has_at(e, line_end - n_close, comment->close)) {
            bool space = whit_layout_byte(ed_layout(e), line_end - n_close - 1) == ' ';
            ed_edit(e, line_end - n_close - space, n_close + space, NULL, 0);
        }
        bool space = whit_layout_byte(ed_layout(e), at + n_open) == ' ';
        ed_edit(e, at, n_open + space, NULL, 0);
    } else {
        int n = snprintf(text, sizeof text, " %s", comment->close);
        if (n_close) ed_edit(e, line_end, 0, text, (size_t)n);
        n = snprintf(text, sizeof text, "%s ", comment->open);
        ed_edit(e, at, 0, text, (size_t)n);
    }
}

void ed_do_toggle_comment(ed *e)
{
    struct comment comment = {.all = true};
    whit_syntax_comment(e->window->doc->syntax, &comment.open, &comment.close);
    each_line(e, look_for_comment, &comment);
    each_line(e, toggle_line, &comment);
}

/* Returns the range of whole lines that the main cursor's selection touches, including the last line feed. */
static whit_range lines_of(ed *e)
{
    whit_range range = ed_selection(ed_cursor(e));
    whit_range lines = {whit_layout_line_begin(ed_layout(e), range.begin), 0};
    uint64_t last = range.end > range.begin ? range.end - 1 : range.end;
    lines.end = whit_text_line_end(ed_text(e), last);
    if (lines.end < whit_text_size(ed_text(e))) lines.end++;
    return lines;
}

void ed_do_delete_line(ed *e)
{
    whit_range lines = lines_of(e);
    uint64_t size = whit_text_size(ed_text(e));
    if (lines.end == size && lines.begin && whit_layout_byte(ed_layout(e), size - 1) != '\n')
        lines.begin -= strlen(ed_line_ending(e, lines.begin));
    ed_cursor(e)->anchor = ED_NONE;
    ed_edit(e, lines.begin, lines.end - lines.begin, NULL, 0);
}

void ed_do_duplicate_line(ed *e)
{
    whit_range lines = lines_of(e);
    size_t n = (size_t)(lines.end - lines.begin);
    const char *ending = ed_line_ending(e, lines.begin);
    char *copy = malloc(n + 2);
    if (!copy) return;
    whit_text_read(ed_text(e), lines.begin, copy + 2, n);
    /* at the end of a text without a final line feed, the line needs a line end */
    size_t n_ending = n && copy[n + 1] == '\n' ? 0 : strlen(ending);
    memcpy(copy + 2 - n_ending, ending, n_ending);
    struct ed_cursor before = *ed_cursor(e);
    uint64_t shift = n + n_ending;
    ed_edit(e, lines.end, 0, copy + 2 - n_ending, shift);
    *ed_cursor(e) =
        (struct ed_cursor){before.offset + shift, before.anchor == ED_NONE ? ED_NONE : before.anchor + shift, -1};
    free(copy);
}

static void move_lines(ed *e, bool upward)
{
    whit_range lines = lines_of(e);
    uint64_t size = whit_text_size(ed_text(e));
    if (upward ? !lines.begin : lines.end >= size) return;
    uint64_t other = upward ? whit_layout_line_begin(ed_layout(e), lines.begin - 1) : lines.end;
    uint64_t other_end = upward ? lines.begin : whit_text_line_end(ed_text(e), lines.end) + 1;
    if (other_end > size) other_end = size;
    uint64_t from = upward ? other : lines.begin;
    uint64_t to = upward ? lines.end : other_end;
    size_t n = (size_t)(to - from), n_first = (size_t)((upward ? other_end : lines.end) - from);
    char *copy = malloc(2 * n + 2);
    if (!copy) return;
    whit_text_read(ed_text(e), from, copy, n);
    char *swapped = copy + n;
    size_t n_second = n - n_first, n_swapped = 0;
    /* At the end of a text without a final line feed, the upper and the lower line exchange their line ends, too. */
    size_t n_ending = 1;
    if (copy[n - 1] == '\n')
        n_ending = 0;
    else if (n_first > 1 && copy[n_first - 2] == '\r')
        n_ending = 2;
    memcpy(swapped, copy + n_first, n_second);
    n_swapped = n_second;
    memcpy(swapped + n_swapped, copy + n_first - n_ending, n_ending);
    memcpy(swapped + n_swapped + n_ending, copy, n_first - n_ending);
    struct ed_cursor before = *ed_cursor(e);
    int64_t shift = upward ? -(int64_t)n_first : (int64_t)(n_second + n_ending);
    ed_edit(e, from, n, swapped, n);
    *ed_cursor(e) = (struct ed_cursor){before.offset + (uint64_t)shift,
                                       before.anchor == ED_NONE ? ED_NONE : before.anchor + (uint64_t)shift, -1};
    free(copy);
}
void ed_do_line_up(ed *e)
{
    move_lines(e, true);
}
void ed_do_line_down(ed *e)
{
    move_lines(e, false);
}

void ed_do_copy(ed *e)
{
    whit_range range = ed_selection(ed_cursor(e));
    bool lines = range.begin == range.end;
    ed_copy_range(e, lines ? lines_of(e) : range, lines);
}
void ed_do_cut(ed *e)
{
    ed_do_copy(e);
    if (e->clipboard.lines) {
        ed_do_delete_line(e);
        return;
    }
    for (size_t i = 0; i < e->window->n_cursors; i++) ed_delete_selection(e, &e->window->cursors[i]);
}
void ed_do_paste(ed *e)
{
    if (!e->clipboard.text) {
        ed_complain(e, "nothing was copied yet; the terminal's own paste works, too");
        return;
    }
    if (e->clipboard.lines) { /* whole lines are inserted before the cursor's line */
        uint64_t begin = whit_layout_line_begin(ed_layout(e), ed_cursor(e)->offset);
        const char *ending = ed_line_ending(e, begin);
        bool ended = e->clipboard.n_bytes && e->clipboard.text[e->clipboard.n_bytes - 1] == '\n';
        if (!ended && !ed_edit(e, begin, 0, ending, strlen(ending))) return;
        ed_edit(e, begin, 0, e->clipboard.text, e->clipboard.n_bytes);
        return;
    }
    for (size_t i = 0; i < e->window->n_cursors; i++) {
        ed_delete_selection(e, &e->window->cursors[i]);
        if (!ed_edit(e, e->window->cursors[i].offset, 0, e->clipboard.text, e->clipboard.n_bytes)) return;
    }
}

bool ed_steps(ed *e, bool back, uint32_t n, whit_range *changed)
{
    whit_buffer *buffer = e->window->doc->buffer;
    whit_error error = {0};
    whit_range now;
    *changed = (whit_range){ED_NONE, ED_NONE};
    size_t n_ways = back ? 0 : whit_undo_n_branches(buffer->history);
    for (; n; n--, *changed = now) {
        if (back ? whit_buffer_undo(buffer, &now, &error) : whit_buffer_redo(buffer, &now, &error)) continue;
        if (error.status != WHIT_OK)
            ed_complain_error(e, &error);
        else
            ed_say(e, back ? "nothing to undo" : "nothing to redo");
        return false;
    }
    if (n_ways > 1) ed_say(e, "redid 1 of %zu branches; undo, then undo-branch picks another", n_ways);
    return true;
}

static void undo_step(ed *e, bool back)
{
    whit_range changed;
    if (!ed_steps(e, back, 1, &changed)) return;
    ed_only_main(e);
    *ed_cursor(e) = (struct ed_cursor){changed.end, ED_NONE, -1};
}
void ed_do_undo(ed *e)
{
    undo_step(e, true);
}
void ed_do_redo(ed *e)
{
    undo_step(e, false);
}
void ed_do_branch(ed *e)
{
    if (whit_buffer_next_branch(e->window->doc->buffer))
        ed_say(e, "redo now follows another branch");
    else
        ed_complain(e, "there is no other branch to redo from here");
}
