/* SPDX-License-Identifier: MIT
 * Draws the editor's state on a screen. */
#include "editor/state.h"

#include <stdio.h>
#include <stdlib.h>

#define LINE_BYTES    4096u
#define BRACKET_BYTES 20000u
#define N_MATCHES     256
#define N_SELECTED    512

struct marks {
    whit_range matches[N_MATCHES];
    size_t n_matches;
    uint64_t brackets[2];
    whit_range selected[N_SELECTED]; /* ranges that vi's visual modes select */
    size_t n_selected;
};

static void find_marks(ed *e, struct ed_window *window, struct marks *marks)
{
    marks->n_matches = 0;
    marks->brackets[0] = marks->brackets[1] = ED_NONE;
    marks->n_selected = 0;
    if (window != e->window) return;
    if (e->vi.on && ed_vi_is_visual(e)) {
        uint64_t row = window->top;
        for (int y = 0; y < window->n_rows && row != UINT64_MAX; y++) row = whit_layout_next_row(&window->layout, row);
        marks->n_selected = ed_vi_selection(e, window->top, row, marks->selected, N_SELECTED);
    }
    bool searching = e->prompt.kind == ED_PROMPT_FIND || e->prompt.kind == ED_PROMPT_REPLACING;
    if (searching && e->find.search && (e->prompt.n || e->prompt.kind == ED_PROMPT_REPLACING)) {
        uint64_t at = window->top, row = at;
        for (int y = 0; y < window->n_rows && row != UINT64_MAX; y++) row = whit_layout_next_row(&window->layout, row);
        if (row == UINT64_MAX) row = whit_text_size(window->layout.text);
        whit_range match;
        while (marks->n_matches < N_MATCHES && ed_search_forward(e, window->layout.text, at, row, &match)) {
            if (match.end > match.begin) marks->matches[marks->n_matches++] = match;
            at = match.end > match.begin ? match.end : match.end + 1;
        }
    }
    uint64_t offset = ed_cursor(e)->offset, other = ed_bracket(e, offset, BRACKET_BYTES);
    if (other == ED_NONE && offset) other = ed_bracket(e, --offset, BRACKET_BYTES);
    if (other == ED_NONE) return;
    marks->brackets[0] = offset;
    marks->brackets[1] = other;
}

static uint8_t flags_at(const ed *e, const struct ed_window *window, const struct marks *marks, uint64_t offset)
{
    uint8_t flags = 0;
    for (size_t i = 0; i < window->n_cursors; i++) {
        whit_range range = ed_selection(&window->cursors[i]);
        if (offset >= range.begin && offset < range.end) flags |= WHIT_CELL_SELECTED;
        if (window == e->window && i + 1 < window->n_cursors && window->cursors[i].offset == offset)
            flags |= WHIT_CELL_CURSOR;
    }
    for (size_t i = 0; i < marks->n_selected; i++)
        if (offset >= marks->selected[i].begin && offset < marks->selected[i].end) flags |= WHIT_CELL_SELECTED;
    for (size_t i = 0; i < marks->n_matches; i++)
        if (offset >= marks->matches[i].begin && offset < marks->matches[i].end) flags |= WHIT_CELL_MATCH;
    if (window->doc->language.n_diagnostics && ed_language_is_wrong(window->doc, offset)) flags |= WHIT_CELL_WRONG;
    if (offset == marks->brackets[0] || offset == marks->brackets[1]) flags |= WHIT_CELL_BRACKET;
    return flags;
}

static const uint32_t space = ' ';

/* Draws one line of a suggestion up to the window's edge, with tabs as spaces. Returns the column after it; *n_drawn
 * gets the number of bytes drawn. */
static int draw_suggested(const struct ed_window *window, whit_screen *screen, int x, int y, int first,
                          const char *line, size_t n, size_t *n_drawn)
{
    static const char blanks[] = "                ";
    const int limit = window->x + window->n_columns;
    whit_glyph glyph;
    for (*n_drawn = 0; *n_drawn < n; *n_drawn += glyph.n_bytes) {
        const char *at = line + *n_drawn;
        whit_glyph_read((const uint8_t *)at, n - *n_drawn, &glyph);
        const bool is_tab = *at == '\t';
        if (is_tab) glyph.width = window->layout.tab_columns - (x - first) % window->layout.tab_columns;
        if (x + glyph.width > limit) break;
        if (is_tab)
            x = whit_screen_put_n(screen, x, y, limit, WHIT_STYLE_SUGGESTION, blanks, (size_t)glyph.width);
        else
            x = whit_screen_put_n(screen, x, y, limit, WHIT_STYLE_SUGGESTION, at, glyph.n_bytes);
    }
    return x;
}

/* Draws one row of text. Sets *cursor_x if the main cursor is in it. */
static void draw_row(ed *e, struct ed_window *window, whit_screen *screen, int y, uint64_t row, uint64_t next,
                     const struct marks *marks, uint32_t *state, int *cursor_x)
{
    whit_layout *layout = &window->layout;
    const whit_syntax *syntax = window->doc->syntax;
    int margin = ed_window_margin(e, window), first = window->x + margin, limit = window->x + window->n_columns;
    uint8_t bytes[LINE_BYTES], styles[LINE_BYTES] = {0};
    size_t n_styles = 0;
    uint64_t text_end = whit_text_size(layout->text), stop = next < text_end ? next : text_end;
    if (syntax) {
        n_styles = whit_text_read(layout->text, row, bytes, stop - row < LINE_BYTES ? stop - row : LINE_BYTES);
        const uint8_t *feed = memchr(bytes, '\n', n_styles);
        bool ends = feed || row + n_styles >= text_end;
        if (feed) n_styles = (size_t)(feed - bytes);
        *state = whit_syntax_line(syntax, *state, bytes, n_styles, ends, styles);
        if (ed_tree_is_there(window->doc)) ed_tree_styles(window->doc, row, n_styles, styles);
    }
    uint64_t main_offset = ed_cursor(e)->offset;
    bool is_main = window == e->window;
    size_t n_suggested = 0;
    const char *suggested = is_main ? ed_suggestion(e, window->doc, &n_suggested) : NULL;
    const char *feed = n_suggested ? memchr(suggested, '\n', n_suggested) : NULL;
    if (feed) n_suggested = (size_t)(feed - suggested);
    int column = 0;
    uint64_t at = row;
    whit_glyph glyph;
    while (at < next && whit_layout_glyph(layout, at, column, &glyph)) {
        int x = first + column - window->left;
        if (x >= limit) break;
        if (is_main && main_offset == at && n_suggested) {
            *cursor_x = x;
            column += draw_suggested(window, screen, x, y, first, suggested, n_suggested, &e->suggestion.n_shown) - x;
            n_suggested = 0;
            continue;
        }
        whit_style style = at - row < n_styles ? (whit_style)styles[at - row] : WHIT_STYLE_TEXT;
        uint8_t flags = flags_at(e, window, marks, at);
        if (is_main && main_offset >= at && main_offset < at + glyph.n_bytes && *cursor_x < 0) *cursor_x = x;
        if (whit_layout_byte(layout, at) == '\t') {
            for (int i = 0; i < glyph.width; i++)
                if (x + i >= first && x + i < limit) whit_screen_cell(screen, x + i, y, 1, style, flags, &space, 1);
        } else {
            whit_screen_glyph(screen, x, y, first, limit, glyph.is_foreign ? WHIT_STYLE_FOREIGN : style, flags, &glyph);
        }
        column += glyph.width;
        at += glyph.n_bytes;
    }
    int x = first + column - window->left;
    bool line_ends = at >= text_end || whit_layout_byte(layout, at) == '\n' || whit_layout_byte(layout, at) == '\r';
    if (is_main && main_offset == at && (line_ends || main_offset < next) && x >= first) {
        *cursor_x = x;
        if (n_suggested) draw_suggested(window, screen, x, y, first, suggested, n_suggested, &e->suggestion.n_shown);
    }
    if (line_ends && at < text_end && x >= first && x < limit) {
        uint8_t flags = flags_at(e, window, marks, at);
        if (flags & (WHIT_CELL_SELECTED | WHIT_CELL_CURSOR))
            whit_screen_cell(screen, x, y, 1, WHIT_STYLE_TEXT, flags, &space, 1);
    }
    for (size_t i = 0; i < layout->n_folds && line_ends; i++)
        if (layout->folds[i].begin >= row && layout->folds[i].begin <= at + 1 && layout->folds[i].end > at)
            whit_screen_put(screen, x + 1, y, limit, WHIT_STYLE_COMMENT, "...");
    if (window->left && whit_layout_byte(layout, row) >= 0 && margin)
        whit_screen_put(screen, first - 1, y, first, WHIT_STYLE_MARGIN, "<");
}

static void draw_number(const ed *e, const struct ed_window *window, whit_screen *screen, int y, uint64_t row,
                        bool here)
{
    int margin = ed_window_margin(e, window);
    char number[24] = "";
    uint64_t line = whit_text_line_at(window->layout.text, row);
    const bool is_begin = line != UINT64_MAX && whit_text_line_start(window->layout.text, line) == row;
    if (margin > 2 && margin < (int)sizeof number && is_begin)
        snprintf(number, sizeof number, "%*llu", margin - 2, (unsigned long long)line + 1);
    whit_screen_fill(screen, window->x, y, window->x + margin, WHIT_STYLE_MARGIN);
    whit_screen_put(screen, window->x, y, window->x + margin, here ? WHIT_STYLE_MARGIN_HERE : WHIT_STYLE_MARGIN,
                    number);
    whit_style style;
    const char *mark = *number ? ed_git_mark(window->doc, line + 1, &style) : NULL;
    if (window->doc == e->panel.doc && !is_begin) {
        mark = ">";
        style = WHIT_STYLE_MARGIN;
    }
    const struct ed_diagnostic *worst = *number && window->doc->language.n_diagnostics
        ? ed_language_worst(window->doc, row, whit_text_line_end(window->layout.text, row))
        : NULL;
    if (worst) {
        if (worst->severity == ED_SEVERITY_ERROR)
            mark = "E";
        else if (worst->severity == ED_SEVERITY_WARNING)
            mark = "W";
        else
            mark = "i";
        style = worst->severity == ED_SEVERITY_ERROR ? WHIT_STYLE_ERROR : WHIT_STYLE_CHANGED;
    }
    if (mark) whit_screen_put(screen, window->x + margin - 2, y, window->x + margin, style, mark);
}

static void draw_status(ed *e, struct ed_window *window, whit_screen *screen)
{
    const struct ed_doc *doc = window->doc;
    const whit_buffer *buffer = doc->buffer;
    whit_style style = window == e->window ? WHIT_STYLE_STATUS : WHIT_STYLE_STATUS_OTHER;
    int y = window->y + window->n_rows - 1, limit = window->x + window->n_columns;
    char left[300], right[160], place[80], mode[40] = "";
    uint64_t offset = window->cursors[window->n_cursors - 1].offset, size = whit_text_size(buffer->text);
    uint64_t line = whit_text_line_at(buffer->text, offset);
    whit_layout *layout = &window->layout;
    uint64_t begin = whit_layout_line_begin(layout, offset);
    if (line == UINT64_MAX)
        snprintf(place, sizeof place, "byte %llu", (unsigned long long)offset);
    else if (offset - begin > WHIT_SEGMENT_BYTES)
        snprintf(place, sizeof place, "%llu, byte %llu", (unsigned long long)line + 1,
                 (unsigned long long)(offset - begin));
    else {
        int wrap = layout->wrap_columns;
        layout->wrap_columns = 0;
        snprintf(place, sizeof place, "%llu:%d", (unsigned long long)line + 1,
                 whit_layout_column(layout, begin, offset) + 1);
        layout->wrap_columns = wrap;
    }
    if (e->vi.on) ed_vi_draw_mode(e, mode, sizeof mode);
    const char *tag = "";
    if (doc == e->panel.doc)
        tag = e->panel.working ? " (working)" : "";
    else if (buffer->read_only)
        tag = " (read-only)";
    else if (whit_buffer_is_new(buffer))
        tag = " [new]";
    else if (buffer->file.has_mark)
        tag = " (byte order mark)";
    const char *changed = whit_buffer_is_modified(buffer) ? " *" : "";
    const char *conflict = doc->conflict_shown ? " (conflict)" : "";
    snprintf(left, sizeof left, " %s%.200s%s%s%s", mode, buffer->name, changed, tag, conflict);
    char cursors[32] = "";
    if (window->n_cursors > 1) snprintf(cursors, sizeof cursors, "%zu cursors  ", window->n_cursors);
    const char *recording = e->macro.recording ? "recording  " : "";
    snprintf(right, sizeof right, "%s%s%s  %s  %llu%% ", recording, cursors, whit_syntax_name(doc->syntax), place,
             (unsigned long long)(size ? offset * 100 / size : 100));
    whit_screen_fill(screen, window->x, y, limit, style);
    int from = limit - (int)strlen(right);
    int x = whit_screen_put(screen, window->x, y, from - 1 > window->x ? from - 1 : limit, style, left);
    if (from > x) whit_screen_put(screen, from, y, limit, style, right);
}

/* Draws a suggestion's lines below the cursor's row, and stops after the first line that is cut off at the window's
 * edge. Returns the last row used. */
static int draw_lines_below(ed *e, const struct ed_window *window, whit_screen *screen, int y)
{
    size_t n;
    const char *text = ed_suggestion(e, window->doc, &n), *at = n ? memchr(text, '\n', n) : NULL, *end = NULL;
    int first = window->x + ed_window_margin(e, window);
    bool is_whole = at && e->suggestion.n_shown == (size_t)(at - text);
    while (is_whole && at && y + 1 < window->y + window->n_rows - 1) {
        const char *line = at + 1;
        size_t n_drawn;
        at = memchr(line, '\n', (size_t)(text + n - line));
        end = at ? at : text + n;
        draw_suggested(window, screen, first, ++y, first, line, (size_t)(end - line), &n_drawn);
        e->suggestion.n_shown = (size_t)(line - text) + n_drawn;
        is_whole = n_drawn == (size_t)(end - line);
    }
    return y;
}

static void draw_window(ed *e, struct ed_window *window, whit_screen *screen)
{
    if (window->child[0]) {
        draw_window(e, window->child[0], screen);
        draw_window(e, window->child[1], screen);
        if (!window->beside) return;
        const struct ed_window *left = window->child[0];
        for (int y = window->y; y < window->y + window->n_rows; y++)
            whit_screen_put(screen, left->x + left->n_columns, y, screen->n_columns, WHIT_STYLE_MARGIN, "\xE2\x94\x82");
        return;
    }
    struct marks marks;
    if (window == e->window) e->suggestion.n_shown = 0;
    whit_layout_forget(&window->layout);
    ed_window_follow(e, window);
    find_marks(e, window, &marks);
    uint64_t row = window->top, main_row = whit_layout_row(&window->layout, ed_cursor(e)->offset);
    uint32_t state = 0;
    struct ed_doc *doc = window->doc;
    if (ed_tree_is_there(doc)) {
        uint64_t end = row;
        for (int y = 0; y < window->n_rows && end != UINT64_MAX; y++) end = whit_layout_next_row(&window->layout, end);
        ed_tree_prepare(doc, row, end == UINT64_MAX ? whit_text_size(doc->buffer->text) : end);
    }
    if (doc->syntax)
        whit_syntax_states_at(&doc->states, doc->syntax, doc->buffer->text, row, WHIT_SYNTAX_PAINT_BYTES, &state);
    for (int y = window->y; y < window->y + window->n_rows - 1; y++) {
        if (row == UINT64_MAX) {
            whit_screen_put(screen, window->x, y, window->x + 1, WHIT_STYLE_MARGIN, "~");
            continue;
        }
        uint64_t next = whit_layout_next_row(&window->layout, row);
        int cursor_x = -1;
        bool here = window == e->window && row == main_row;
        draw_number(e, window, screen, y, row, here);
        draw_row(e, window, screen, y, row, next, &marks, &state, &cursor_x);
        if (here && cursor_x >= 0 && !window->moved_away) {
            int last = window->x + window->n_columns - 1;
            screen->cursor_x = cursor_x < last ? cursor_x : last;
            screen->cursor_y = y;
            y = draw_lines_below(e, window, screen, y);
        }
        if (next != UINT64_MAX && doc->syntax && (next - row > LINE_BYTES || window->layout.n_folds))
            whit_syntax_states_at(&doc->states, doc->syntax, doc->buffer->text, next, WHIT_SYNTAX_PAINT_BYTES, &state);
        row = next;
    }
    ed_welcome_draw(e, window, screen);
    draw_status(e, window, screen);
}

static void draw_tabs(ed *e, whit_screen *screen)
{
    whit_screen_fill(screen, 0, 0, screen->n_columns, WHIT_STYLE_STATUS_OTHER);
    int x = 0;
    for (const struct ed_doc *doc = e->docs; doc; doc = doc->next) {
        const char *slash = strrchr(doc->buffer->name, '/');
        whit_style style = doc == e->window->doc ? WHIT_STYLE_STATUS : WHIT_STYLE_STATUS_OTHER;
        x = whit_screen_put(screen, x, 0, screen->n_columns, style, " ");
        x = whit_screen_put(screen, x, 0, screen->n_columns, style, slash ? slash + 1 : doc->buffer->name);
        x = whit_screen_put(screen, x, 0, screen->n_columns, style, whit_buffer_is_modified(doc->buffer) ? "* " : "  ");
    }
}

static void draw_list(ed *e, whit_screen *screen)
{
    const struct ed_prompt *prompt = &e->prompt;
    int most = prompt->kind == ED_PROMPT_HELP ? screen->n_rows - 2 : screen->n_rows / 2;
    int n = prompt->n_shown < (size_t)most ? (int)prompt->n_shown : most;
    size_t first = prompt->chosen >= (size_t)n ? prompt->chosen - (size_t)n + 1 : 0;
    for (int i = 0; i < n; i++) {
        size_t item = first + (size_t)i;
        int y = screen->n_rows - 1 - n + i;
        whit_style style = item == prompt->chosen ? WHIT_STYLE_LIST_HERE : WHIT_STYLE_LIST;
        whit_screen_fill(screen, 0, y, screen->n_columns, style);
        whit_screen_put(screen, 1, y, screen->n_columns, style, prompt->items[prompt->shown[item]].label);
    }
}

void whit_editor_draw(whit_editor *e, whit_screen *screen)
{
    whit_screen_clear(screen);
    if (!e->root || e->done) return;
    e->n_columns = screen->n_columns;
    e->n_rows = screen->n_rows;
    ed_windows_layout(e);
    if (e->docs->next) draw_tabs(e, screen);
    ed_compare_scroll(e);
    ed_panel_fit(e);
    draw_window(e, e->root, screen);
    ed_panel_label(e);
    int y = screen->n_rows - 1;
    const struct ed_prompt *prompt = &e->prompt;
    if (!prompt->kind) {
        uint64_t begin = whit_layout_line_begin(ed_layout(e), ed_cursor(e)->offset);
        const struct ed_diagnostic *said = *e->message || !e->window->doc->language.n_diagnostics
            ? NULL
            : ed_language_worst(e->window->doc, begin, whit_layout_line_end(ed_layout(e), begin));
        if (said)
            whit_screen_put(screen, 0, y, screen->n_columns,
                            said->severity == ED_SEVERITY_ERROR ? WHIT_STYLE_ERROR : WHIT_STYLE_CHANGED, said->message);
        if (said) return;
        bool waits = !*e->message && ed_panel_waits(e);
        whit_style style = WHIT_STYLE_TEXT;
        if (waits)
            style = WHIT_STYLE_PROMPT;
        else if (e->message_is_error)
            style = WHIT_STYLE_ERROR;
        const char *message = waits ? "the agent asks a question: the command 'agent' (F9) shows it" : e->message;
        whit_screen_put(screen, 0, y, screen->n_columns, style, message);
        return;
    }
    if (ed_prompt_has_list(prompt->kind)) draw_list(e, screen);
    int x = whit_screen_put(screen, 0, y, screen->n_columns, WHIT_STYLE_PROMPT, prompt->label);
    /* a text longer than the row is scrolled so that the cursor is visible */
    size_t from = prompt->at > (size_t)screen->n_columns / 2 ? prompt->at - (size_t)screen->n_columns / 2 : 0;
    if (from) from = whit_glyph_begin((const uint8_t *)prompt->text, prompt->n, from);
    int cursor =
        whit_screen_put_n(screen, x, y, screen->n_columns, WHIT_STYLE_TEXT, prompt->text + from, prompt->at - from);
    x = whit_screen_put(screen, cursor, y, screen->n_columns, WHIT_STYLE_TEXT, prompt->text + prompt->at);
    if (*e->message)
        whit_screen_put(screen, x + 3, y, screen->n_columns,
                        e->message_is_error ? WHIT_STYLE_ERROR : WHIT_STYLE_COMMENT, e->message);
    screen->cursor_x = cursor < screen->n_columns ? cursor : screen->n_columns - 1;
    screen->cursor_y = y;
}
