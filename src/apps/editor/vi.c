/* SPDX-License-Identifier: MIT
 * vi's keys: what was typed of a command, counts, registers, operators with motions, the visual modes, '.' and
 * macros. */
#include "editor/state.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void ed_vi_run(ed *e, const char *command)
{
    int number = ed_command_find(command);
    if (number >= 0) ed_run(e, number);
}

void ed_vi_fail(ed *e, const char *format, ...)
{
    char text[300];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    ed_complain(e, "%s", text);
    e->vi.failed = true;
}

bool ed_vi_is_inserting(const ed *e)
{
    return e->vi.mode == ED_VI_INSERT || e->vi.mode == ED_VI_REPLACE;
}

bool ed_vi_is_visual(const ed *e)
{
    return e->vi.mode >= ED_VI_VISUAL;
}

uint32_t ed_vi_count(const ed *e)
{
    uint64_t n = e->vi.count ? e->vi.count : 1;
    if (e->vi.operator_count) n *= e->vi.operator_count;
    return n < ED_VI_COUNT_MAX ? (uint32_t)n : ED_VI_COUNT_MAX;
}

bool ed_vi_keys_add(struct ed_vi_keys *keys, whit_key key)
{
    if (keys->n == keys->room) {
        size_t room = keys->room ? 2 * keys->room : 32;
        whit_key *grown = room > 2 * ED_VI_KEYS_MAX ? NULL : realloc(keys->keys, room * sizeof *grown);
        if (!grown) return false;
        keys->keys = grown;
        keys->room = room;
    }
    keys->keys[keys->n++] = key;
    return true;
}

static void keys_set(struct ed_vi_keys *to, const whit_key *keys, size_t n)
{
    to->n = 0;
    for (size_t i = 0; i < n && ed_vi_keys_add(to, keys[i]); i++) {
    }
}

/* ---- positions that edits move ------------------------------------------------------------- */

static void move(uint64_t *position, uint64_t offset, uint64_t n_removed, uint64_t n_inserted)
{
    if (*position == ED_NONE || *position < offset) return;
    *position = *position < offset + n_removed ? offset : *position - n_removed + n_inserted;
}

void ed_vi_changed(ed *e, const void *changed, uint64_t offset, uint64_t n_removed, uint64_t n_inserted)
{
    struct ed_vi *vi = &e->vi;
    struct ed_doc *doc = e->docs;
    while (doc && doc != changed) doc = doc->next;
    if (!doc) return;
    for (size_t i = 0; i < ED_VI_MARKS; i++) move(&doc->marks[i], offset, n_removed, n_inserted);
    move(&doc->mark_jump, offset, n_removed, n_inserted);
    doc->mark_change = offset;
    if (vi->lines.doc == doc)
        for (size_t i = vi->lines.at; i < vi->lines.n; i++) {
            if (vi->lines.begins[i] == ED_NONE) continue;
            if (vi->lines.begins[i] >= offset && vi->lines.begins[i] < offset + n_removed)
                vi->lines.begins[i] = ED_NONE; /* that line is gone */
            else
                move(&vi->lines.begins[i], offset, n_removed, n_inserted);
        }
    if (e->window->doc != doc) return;
    move(&vi->anchor, offset, n_removed, n_inserted);
    move(&vi->last_begin, offset, n_removed, n_inserted);
    move(&vi->last_end, offset, n_removed, n_inserted);
    move(&vi->last_insert, offset, n_removed, n_inserted);
}

void ed_vi_forget(ed *e, const void *doc)
{
    struct ed_vi *vi = &e->vi;
    if (vi->held && vi->held == ((const struct ed_doc *)doc)->buffer) {
        vi->held->held = false;
        vi->held = NULL;
    }
    if (vi->lines.doc == doc) vi->lines.doc = NULL;
}

void ed_vi_close(ed *e)
{
    struct ed_vi *vi = &e->vi;
    ed_vi_registers_free(e);
    for (size_t i = 0; i < 26; i++) free(vi->macros[i].keys);
    free(vi->typed.keys);
    free(vi->repeat.keys);
    free(vi->lines.begins);
    free(vi->mappings);
    whit_buf_free(&vi->replaced);
}

/* ---- the visual modes ---------------------------------------------------------------------- */

size_t ed_vi_selection(ed *e, uint64_t from, uint64_t to, whit_range *ranges, size_t max)
{
    const struct ed_vi *vi = &e->vi;
    uint64_t a = vi->anchor, b = ed_cursor(e)->offset, first = a < b ? a : b, last = a < b ? b : a;
    uint64_t size = whit_text_size(ed_text(e));
    if (!ed_vi_is_visual(e) || !max) return 0;
    if (last > size) last = size;
    if (vi->mode == ED_VI_VISUAL) {
        ranges[0] = (whit_range){first, whit_layout_behind(ed_layout(e), last)};
        return 1;
    }
    if (vi->mode == ED_VI_VISUAL_LINES) {
        uint64_t end = whit_text_line_end(ed_text(e), last);
        ranges[0] = (whit_range){ed_vi_line_begin(e, first), end < size ? end + 1 : end};
        return 1;
    }
    bool to_end = ed_cursor(e)->goal >= ED_VI_LAST_COLUMN;
    int ca = ed_vi_column(e, a), cb = ed_vi_column(e, b), left = ca < cb ? ca : cb, right = ca < cb ? cb : ca;
    size_t n = 0;
    if (from < first) from = first;
    for (uint64_t line = ed_vi_line_begin(e, from); n < max && line != ED_NONE && line <= to && line <= last;
         line = ed_vi_next_line(e, line)) {
        uint64_t end = ed_vi_line_end(e, line), begin = ed_vi_at_column(e, line, left);
        uint64_t right_end = to_end ? end : ed_vi_at_column(e, line, right);
        if (begin >= end || (begin == end && left > 0)) continue;
        if (!to_end && right_end < end) right_end = whit_layout_behind(ed_layout(e), right_end);
        ranges[n++] = (whit_range){begin, right_end};
    }
    return n;
}

void ed_vi_leave_visual(ed *e)
{
    struct ed_vi *vi = &e->vi;
    if (!ed_vi_is_visual(e)) return;
    vi->last_mode = vi->mode;
    vi->last_begin = vi->anchor;
    vi->last_end = ed_cursor(e)->offset;
    vi->mode = ED_VI_NORMAL;
}

static void visual(ed *e, ed_vi_mode mode)
{
    struct ed_vi *vi = &e->vi;
    if (vi->mode == mode) {
        ed_vi_leave_visual(e);
        return;
    }
    if (!ed_vi_is_visual(e)) vi->anchor = ed_cursor(e)->offset;
    vi->mode = mode;
}

static void visual_again(ed *e)
{
    struct ed_vi *vi = &e->vi;
    uint64_t end = ed_vi_end(e);
    if (!vi->last_mode) {
        ed_vi_fail(e, "nothing was selected yet");
        return;
    }
    vi->mode = vi->last_mode;
    vi->anchor = vi->last_begin < end ? vi->last_begin : end;
    *ed_cursor(e) = (struct ed_cursor){vi->last_end < end ? vi->last_end : end, ED_NONE, -1};
}

/* Selects for '.' as much as the repeated command had selected. */
static void select_extent(ed *e, const struct ed_vi_extent *extent)
{
    struct ed_vi *vi = &e->vi;
    uint64_t at = ed_cursor(e)->offset, line = at, next;
    vi->anchor = at;
    vi->mode = extent->mode;
    for (uint64_t n = extent->n_lines; n-- && (next = ed_vi_next_line(e, line)) != ED_NONE;) line = next;
    int column = extent->n_columns;
    if (extent->mode == ED_VI_VISUAL_BLOCK || !extent->n_lines) column += ed_vi_column(e, at);
    line = ed_vi_line_begin(e, line);
    uint64_t end = ed_vi_line_end(e, line);
    if (extent->mode != ED_VI_VISUAL_LINES) at = ed_vi_at_column(e, line, column);
    if (extent->mode == ED_VI_VISUAL_LINES) at = line;
    if (at == end && end > line && !extent->to_end) at = ed_vi_before(e, end);
    *ed_cursor(e) = (struct ed_cursor){at, ED_NONE, extent->to_end ? ED_VI_LAST_COLUMN : -1};
}

/* The usual commands see what is selected as they know it. */
static void hand_over_selection(ed *e)
{
    whit_range ranges[ED_CURSORS_MAX];
    size_t n = ed_vi_selection(e, 0, ED_NONE, ranges, ED_CURSORS_MAX);
    if (!n) return;
    ed_vi_leave_visual(e);
    for (size_t i = 0; i < n; i++) e->window->cursors[i] = (struct ed_cursor){ranges[i].end, ranges[i].begin, -1};
    e->window->n_cursors = n;
}

/* ---- where a command ends ------------------------------------------------------------------ */

static void reset(ed *e)
{
    struct ed_vi *vi = &e->vi;
    vi->count = vi->operator_count = 0;
    vi->operator= vi->pending[0] = vi->pending[1] = 0;
    vi->wanted_register = 0;
    vi->search_pending = false;
}

static void remember(ed *e)
{
    struct ed_vi *vi = &e->vi;
    if (vi->repeating) return;
    keys_set(&vi->repeat, vi->typed.keys, vi->typed.n);
    vi->repeat_count = vi->typed_count;
    vi->repeat_register = vi->typed_register;
    vi->repeat_from = vi->insert_from;
    vi->repeat_is_visual = vi->from_visual;
}

/* A command is over, or waits for what is typed in insert mode. */
static void finish(ed *e)
{
    struct ed_vi *vi = &e->vi;
    bool inserting = ed_vi_is_inserting(e);
    if (vi->changed && !inserting && !vi->failed) remember(e);
    reset(e);
    e->window->moved_away = false;
    if (inserting) return;
    vi->changed = vi->from_visual = false;
    if (!vi->repeating) {
        vi->typed.n = 0;
        vi->typed_count = vi->typed_register = 0;
    }
    if (vi->once && vi->mode == ED_VI_NORMAL && !e->prompt.kind) { /* after Ctrl-O: back to inserting */
        vi->once = false;
        ed_vi_begin_insert(e, ED_VI_INSERT, 'i');
    }
}

/* ---- '.', macros --------------------------------------------------------------------------- */

void ed_vi_play(ed *e, const whit_key *keys, size_t n)
{
    struct ed_vi *vi = &e->vi;
    vi->depth++;
    for (size_t i = 0; i < n && !vi->failed && !e->done; i++) {
        if (++vi->n_played > ED_VI_KEYS_MAX || vi->depth > 100) {
            ed_vi_fail(e, "stopped after %u keys", vi->n_played - 1);
            break;
        }
        ed_take_key(e, keys[i], NULL, 0);
        if (e->vi.on) ed_vi_settle(e, keys[i]);
    }
    vi->depth--;
}

static void repeat(ed *e)
{
    struct ed_vi *vi = &e->vi;
    if (vi->repeating || !vi->repeat.n) return;
    uint32_t count = vi->count ? vi->count : vi->repeat_count;
    if (vi->count) vi->repeat_count = vi->count;
    reset(e);
    vi->repeating = true;
    if (vi->repeat_is_visual) {
        if (!ed_vi_may_change(e)) {
            vi->repeating = false;
            return;
        }
        select_extent(e, &vi->repeat_extent);
    }
    vi->count = count;
    /* '.' increments a numbered register: "1p.. puts "1, "2 and "3. */
    if (vi->repeat_register >= '1' && vi->repeat_register < '0' + ED_VI_NUMBERED - 1) vi->repeat_register++;
    vi->wanted_register = vi->repeat_register;
    ed_vi_play(e, vi->repeat.keys, vi->repeat.n);
    if (ed_vi_is_inserting(e)) ed_vi_end_insert(e);
    vi->repeating = vi->changed = vi->from_visual = false;
    vi->typed.n = 0;
}

static void begin_macro(ed *e, uint32_t letter)
{
    struct ed_vi *vi = &e->vi;
    if (letter >= 128 || !isalpha((int)letter)) {
        ed_vi_fail(e, "a macro's name is a letter");
        return;
    }
    vi->recording = letter;
    e->recording = true;
    e->n_macro = 0;
    ed_say(e, "recording; q ends it, @%c plays it", (char)tolower((int)letter));
}

static void end_macro(ed *e)
{
    struct ed_vi *vi = &e->vi;
    struct ed_vi_keys *macro = &vi->macros[tolower((int)vi->recording) - 'a'];
    size_t n = e->n_macro ? e->n_macro - 1 : 0; /* without the q */
    if (islower((int)vi->recording)) macro->n = 0;
    for (size_t i = 0; i < n && ed_vi_keys_add(macro, e->macro[i]); i++) {
    }
    e->recording = false;
    vi->recording = 0;
    ed_say(e, "recorded %zu keys", n);
}

static void play_macro(ed *e, uint32_t letter)
{
    struct ed_vi *vi = &e->vi;
    uint32_t n = ed_vi_count(e);
    if (letter == '@') letter = vi->last_macro;
    if (letter == ':' && *vi->line) {
        reset(e);
        ed_vi_line(e, vi->line);
        if (e->done) return;
        vi->changed = false; /* '.' does not repeat it */
        finish(e);
        return;
    }
    struct ed_vi_keys *macro = letter < 128 && isalpha((int)letter) ? &vi->macros[tolower((int)letter) - 'a'] : NULL;
    if (!macro || !macro->n) {
        ed_vi_fail(e, "no macro of that name");
        return;
    }
    vi->last_macro = letter;
    whit_key *keys = malloc(macro->n * sizeof *keys); /* playing may record */
    if (!keys) return;
    size_t n_keys = macro->n;
    memcpy(keys, macro->keys, n_keys * sizeof *keys);
    finish(e);
    while (n-- && !vi->failed && !e->done) ed_vi_play(e, keys, n_keys);
    free(keys);
}

/* ---- one key ------------------------------------------------------------------------------- */

static bool control_key(ed *e, uint32_t code)
{
    struct ed_vi *vi = &e->vi;
    int n_rows = e->window->n_rows - 1, n = (int)(ed_vi_count(e) < 10000 ? ed_vi_count(e) : 10000);
    int half = n_rows > 1 ? n_rows / 2 : 1, page = n_rows > 3 ? n_rows - 2 : 1;
    switch (code) {
    case 'd': ed_vi_scroll(e, vi->count ? n : half, true); break;
    case 'u': ed_vi_scroll(e, vi->count ? -n : -half, true); break;
    case 'f': ed_vi_scroll(e, page * (n < 1000 ? n : 1000), true); break;
    case 'b': ed_vi_scroll(e, -page * (n < 1000 ? n : 1000), true); break;
    case 'e': ed_vi_scroll(e, n, false); break;
    case 'y': ed_vi_scroll(e, -n, false); break;
    case 'r': ed_vi_undo(e, false); break;
    case 'v': visual(e, ED_VI_VISUAL_BLOCK); break;
    case 'a': ed_vi_add_number(e, (int64_t)ed_vi_count(e)); break;
    case 'x': ed_vi_add_number(e, -(int64_t)ed_vi_count(e)); break;
    case 'o': ed_vi_run(e, "jump-back"); break;
    case ']': ed_vi_run(e, "definition"); break;
    case '^':
    case '6':
        ed_vi_leave_visual(e);
        ed_vi_run(e, "previous-buffer");
        break;
    case 'l': break;
    case 'w': vi->pending[0] = WHIT_MOD_CTRL << 8 | 'w'; return true;
    default: return false;
    }
    finish(e);
    return true;
}

static void open_line_prompt(ed *e)
{
    char text[32] = "";
    if (ed_vi_is_visual(e)) {
        ed_vi_leave_visual(e);
        snprintf(text, sizeof text, "'<,'>");
    } else if (e->vi.count > 1) {
        snprintf(text, sizeof text, ".,.+%u", e->vi.count - 1);
    } else if (e->vi.count) {
        snprintf(text, sizeof text, ".");
    }
    reset(e);
    ed_prompt_open(e, ED_PROMPT_VI, ":", text);
}

static void open_search(ed *e, bool back)
{
    struct ed_vi *vi = &e->vi;
    vi->search_pending = true;
    vi->search_back = back;
    vi->search_anchor = vi->anchor;
    ed_prompt_open(e, ED_PROMPT_FIND, back ? "?" : "/", "");
    e->regex = true;
}

/* Moves the cursor to where a motion or an object leads, or applies the pending operator up to there. */
static void go(ed *e, struct ed_vi_span span, uint32_t code)
{
    struct ed_vi *vi = &e->vi;
    struct ed_cursor *cursor = ed_cursor(e);
    uint64_t at = cursor->offset;
    int goal = cursor->goal >= 0 ? cursor->goal : ed_vi_column(e, at);
    if (span.jumps) {
        e->window->doc->mark_jump = at;
        if (!vi->operator&& ed_vi_line_begin(e, at) != ed_vi_line_begin(e, span.end)) ed_jump_push(e);
    }
    if (vi->operator) {
        ed_vi_operate(e, vi->operator, span);
        return;
    }
    cursor->offset = span.end;
    cursor->anchor = ED_NONE;
    bool vertical = span.lines &&
        (code == 'j' || code == 'k' || code == WHIT_KEY_UP || code == WHIT_KEY_DOWN || code == 'n' || code == 'p');
    cursor->goal = code == '$' || code == WHIT_KEY_END ? ED_VI_LAST_COLUMN : vertical ? goal : -1;
}

static void take_object(ed *e, bool inner, uint32_t code)
{
    struct ed_vi *vi = &e->vi;
    uint64_t at = ed_cursor(e)->offset;
    bool selecting = ed_vi_is_visual(e), more = selecting && vi->anchor != at;
    struct ed_vi_span span = {.begin = at, .end = at};
    if (more && vi->anchor < at) span.begin = vi->anchor;
    if (more && vi->anchor > at) { /* backwards: as if it had been selected forwards */
        span.end = vi->anchor;
    }
    ed_vi_found found = ed_vi_object(e, inner, code, more, &span);
    if (found == ED_VI_OTHER) ed_vi_fail(e, "no such text object");
    if (found != ED_VI_FOUND) return;
    if (!selecting) {
        go(e, span, code);
        return;
    }
    vi->anchor = span.begin;
    if (span.lines)
        vi->mode = ED_VI_VISUAL_LINES;
    else if (vi->mode == ED_VI_VISUAL_LINES)
        vi->mode = ED_VI_VISUAL;
    if (!span.lines && span.end > span.begin) span.end = ed_vi_before(e, span.end);
    bool on_end = !span.lines && span.end == ed_vi_line_end(e, span.end); /* the line feed, too */
    *ed_cursor(e) = (struct ed_cursor){span.end, ED_NONE, on_end ? ED_VI_LAST_COLUMN : -1};
}

static void behind_g(ed *e, whit_key key)
{
    if (ed_vi_is_visual(e) && key.code == 'J') {
        ed_vi_visual_command(e, ED_VI_G | 'J');
        return;
    }
    switch (key.code) {
    case 'v': visual_again(e); return;
    case 'd': ed_vi_run(e, "definition"); return;
    case 'r': ed_vi_run(e, "references"); return;
    case 't':
    case 'T':
        ed_vi_leave_visual(e);
        ed_vi_run(e, key.code == 't' ? "next-buffer" : "previous-buffer");
        return;
    case '&': ed_vi_line(e, "%s"); return;
    default: break;
    }
    if (!ed_vi_command(e, ED_VI_G | key.code)) ed_vi_fail(e, "g has no such key in vi's normal mode");
}

/* g~, gu, gU, gc, gq, also after another of them, as in gUU. */
static bool is_g_operator(uint32_t code)
{
    return code == '~' || code == 'u' || code == 'U' || code == 'c' || code == 'q';
}

static bool is_operator(uint32_t code)
{
    return code < 128 && code && strchr("dcy<>=", (int)code);
}

static void take_operator(ed *e, uint32_t code)
{
    struct ed_vi *vi = &e->vi;
    if (ed_vi_is_visual(e)) {
        ed_vi_operate_visual(e, code);
        finish(e);
    } else if (vi->operator== code) { /* dd, cc, yy, gUgU */
        uint64_t at = ed_cursor(e)->offset, last = at, next;
        uint32_t count = ed_vi_count(e);
        for (uint32_t n = count; --n && (next = ed_vi_next_line(e, last)) != ED_NONE;) last = next;
        if (count > 1 && last == at) { /* not one line below */
            ed_vi_fail(e, "no line below");
            finish(e);
            return;
        }
        ed_vi_operate(e, code, (struct ed_vi_span){.begin = at, .end = last, .lines = true});
        uint64_t first = ed_vi_first(e, at);
        if ((code & ED_VI_G) && code != (ED_VI_G | 'q')) ed_cursor(e)->offset = first < at ? first : at;
        finish(e);
    } else if (!vi->operator) {
        vi->operator= code;
        vi->operator_count = vi->count;
        vi->count = 0;
    } else {
        finish(e);
    }
}

/* Handles the key after f, g, r, i, " and the like. */
static void pending_key(ed *e, whit_key key)
{
    struct ed_vi *vi = &e->vi;
    uint32_t prefix = vi->pending[0], code = key.code;
    struct ed_vi_span span;
    vi->pending[0] = 0;
    if (prefix == '"') {
        if (ed_vi_register_is_name(code)) {
            vi->wanted_register = vi->typed_register = code;
            if (!vi->repeating && vi->typed.n >= 2) vi->typed.n -= 2;
            return;
        }
        ed_vi_fail(e, "no register of that name");
        finish(e);
        return;
    }
    if (prefix == 'g' && is_g_operator(code) && !key.mods) {
        take_operator(e, ED_VI_G | code);
        return;
    }
    if (prefix == 'i' || prefix == 'a') {
        take_object(e, prefix == 'i', code);
        finish(e);
        return;
    }
    ed_vi_found found = ed_vi_motion(e, prefix, key, ed_cursor(e)->offset, &span);
    if (found == ED_VI_FOUND) go(e, span, 0);
    if (found == ED_VI_FAILED) vi->failed = true;
    if (found != ED_VI_OTHER) {
        finish(e);
        return;
    }
    if (prefix == 'g') {
        behind_g(e, key);
    } else if (prefix == 'r') {
        ed_vi_replace_char(e, key);
    } else if (prefix == 'm') {
        if (code >= 'a' && code <= 'z')
            e->window->doc->marks[code - 'a'] = ed_cursor(e)->offset;
        else
            ed_vi_fail(e, "a mark is a letter from a to z");
    } else if (prefix == 'z') {
        ed_vi_behind_z(e, code);
    } else if (prefix == 'Z') {
        ed_vi_line(e, code == 'Z' ? "x" : code == 'Q' ? "q!" : "");
    } else if (prefix == 'q') {
        begin_macro(e, code);
    } else if (prefix == '@') {
        play_macro(e, code);
        return;
    } else if (prefix == (WHIT_MOD_CTRL << 8 | 'w')) {
        ed_vi_behind_window_key(e, code);
    }
    if (!e->done) finish(e);
}

static bool begins_pair(const ed *e, uint32_t code)
{
    const struct ed_vi *vi = &e->vi;
    if (code >= 128 || !code) return false;
    if (strchr("fFtTg`'", (int)code)) return true;
    if ((code == 'i' || code == 'a') && (vi->operator|| ed_vi_is_visual(e))) return true;
    return !vi->operator&& strchr("rm\"zZ@", (int)code);
}

static bool normal_key(ed *e, whit_key key)
{
    struct ed_vi *vi = &e->vi;
    uint32_t code = key.code;
    struct ed_vi_span span;
    if (code == WHIT_KEY_ESCAPE || (code == 'c' && key.mods == WHIT_MOD_CTRL)) {
        ed_vi_leave_visual(e);
        ed_only_main(e);
        ed_cursor(e)->anchor = ED_NONE;
        finish(e);
        return true;
    }
    if (vi->pending[0]) {
        pending_key(e, key);
        return true;
    }
    if (!key.mods && ((code >= '1' && code <= '9') || (code == '0' && vi->count))) {
        if (vi->count <= (UINT32_MAX - 9) / 10) vi->count = vi->count * 10 + code - '0'; /* a line's number, too */
        if (!vi->repeating && vi->typed.n) vi->typed.n--;
        vi->typed_count = ed_vi_count(e);
        return true;
    }
    if (e->window->n_cursors > 1) ed_only_main(e);
    if (!key.mods && begins_pair(e, code)) {
        vi->pending[0] = code;
        return true;
    }
    if (!key.mods && code == 'q' && !vi->operator) {
        if (vi->recording) {
            end_macro(e);
            finish(e);
        } else if (e->recording) {
            ed_vi_fail(e, "a macro is being recorded");
        } else {
            vi->pending[0] = 'q';
        }
        return true;
    }
    if (!key.mods && (vi->operator& ED_VI_G) && code == (vi->operator& 127)) { /* g~~; before c, for gcc */
        take_operator(e, vi->operator);
        return true;
    }
    if (!key.mods && is_operator(code)) {
        take_operator(e, code);
        return true;
    }
    if (!key.mods && (code == '/' || code == '?')) {
        open_search(e, code == '?');
        return true;
    }
    ed_vi_found found = ed_vi_motion(e, 0, key, ed_cursor(e)->offset, &span);
    if (found != ED_VI_OTHER) {
        if (found == ED_VI_FOUND) go(e, span, code);
        if (found == ED_VI_FAILED) vi->failed = true;
        finish(e);
        return true;
    }
    if (vi->operator) { /* no motion: nothing is done */
        ed_vi_fail(e, "no such motion");
        finish(e);
        return true;
    }
    if (key.mods == WHIT_MOD_CTRL && code < 128) return control_key(e, code);
    if (key.mods) return false;
    if (code == ':') {
        open_line_prompt(e);
    } else if (code == 'v' || code == 'V') {
        visual(e, code == 'v' ? ED_VI_VISUAL : ED_VI_VISUAL_LINES);
        finish(e);
    } else if (ed_vi_is_visual(e)) {
        bool known = ed_vi_visual_command(e, code);
        if (!known && code >= WHIT_KEY_NONE) return false;
        if (!known) ed_vi_fail(e, "vi's visual mode has no such key");
        finish(e);
    } else if (code == '.') {
        repeat(e);
        finish(e);
    } else if (code == 'K') {
        ed_vi_run(e, "hover");
        finish(e);
    } else if (code == '&') {
        ed_vi_line(e, "s");
        finish(e);
    } else if (ed_vi_command(e, code)) {
        finish(e);
    } else if (code < WHIT_KEY_NONE) {
        ed_vi_fail(e, "vi's normal mode has no such key; i begins to insert");
        finish(e);
    } else {
        return false;
    }
    return true;
}

bool ed_vi_key(ed *e, whit_key key, const char *paste, size_t n_paste)
{
    struct ed_vi *vi = &e->vi;
    if (!vi->depth) {
        vi->n_played = 0;
        vi->failed = false;
    }
    if (key.code == WHIT_KEY_PASTE) {
        ed_vi_map_flush(e);
        if (!ed_vi_is_inserting(e)) {
            if (ed_vi_is_visual(e)) ed_vi_operate_visual(e, 'd');
            finish(e);
            ed_paste(e, paste, n_paste);
        } else {
            ed_vi_paste_typed(e, paste, n_paste);
        }
        return true;
    }
    if (ed_vi_map_key(e, key)) return true;
    bool own = key.mods & (WHIT_MOD_ALT | WHIT_MOD_CTRL) && ed_config_is_own(e, key);
    if (own && !vi->pending[0]) {
        hand_over_selection(e);
        return false;
    }
    if (!vi->repeating) ed_vi_keys_add(&vi->typed, key);
    if (ed_vi_is_inserting(e)) {
        bool ends = key.code == WHIT_KEY_ESCAPE || (key.mods == WHIT_MOD_CTRL && (key.code == 'c' || key.code == '['));
        bool literal = vi->pending[0] == ED_VI_BY_NUMBER;
        if (!ends || (literal && !vi->literal.base)) return ed_vi_insert_key(e, key);
        if (literal) ed_vi_insert_key(e, key); /* the number ends */
        vi->pending[0] = 0;
        ed_vi_end_insert(e);
        finish(e);
        return true;
    }
    if (normal_key(e, key)) return true;
    hand_over_selection(e);
    finish(e);
    return false;
}

/* The prompt's search has ended: the cursor's selection is the match. */
void ed_vi_searched(ed *e, uint64_t origin, bool found)
{
    struct ed_vi *vi = &e->vi;
    struct ed_cursor *cursor = ed_cursor(e);
    if (!vi->search_pending) { /* the usual find, from normal mode: the cursor stands where the match begins */
        if (!ed_vi_is_inserting(e)) *cursor = (struct ed_cursor){ed_selection(cursor).begin, ED_NONE, -1};
        return;
    }
    uint64_t to = ed_selection(cursor).begin;
    vi->search_pending = false;
    if (ed_vi_is_visual(e)) vi->anchor = vi->search_anchor;
    *cursor = (struct ed_cursor){origin, ED_NONE, -1};
    if (found) {
        struct ed_vi_span span = {.begin = origin, .end = to, .jumps = true};
        if (!vi->repeating && vi->typed.n) vi->typed.keys[vi->typed.n - 1] = (whit_key){.code = 'n'}; /* for '.' */
        go(e, span, 0);
    } else {
        vi->failed = true;
    }
    finish(e);
}

/* Moves the cursor to where vi allows it: on a character, or in an empty line; not after the last line feed. */
void ed_vi_settle(ed *e, whit_key key)
{
    struct ed_vi *vi = &e->vi;
    if (!e->root || e->done) return;
    if (e->prompt.kind) {
        vi->asked = true;
        return;
    }
    if (vi->asked && !ed_vi_is_inserting(e)) { /* the prompt has ended, perhaps with Esc */
        vi->changed = false;                   /* '.' does not repeat it */
        finish(e);
    }
    vi->asked = false;
    if (ed_vi_is_visual(e) && vi->shown && vi->shown != e->window->doc) vi->mode = ED_VI_NORMAL; /* another text */
    vi->shown = e->window->doc;
    if (vi->held && vi->held != e->window->doc->buffer) ed_vi_hold(e, false);
    if (ed_vi_is_inserting(e)) {
        ed_vi_hold(e, true);
        return;
    }
    if (!vi->depth) ed_vi_hold(e, false);
    struct ed_cursor *cursor = ed_cursor(e);
    if (e->window->n_cursors > 1) return;
    bool selected = cursor->anchor != ED_NONE && cursor->anchor != cursor->offset;
    if (selected && (key.mods & WHIT_MOD_SHIFT || key.code == WHIT_KEY_DRAG)) { /* as the mouse or Shift did */
        bool forward = cursor->anchor < cursor->offset;
        if (!ed_vi_is_visual(e)) {
            vi->anchor = forward ? cursor->anchor : ed_vi_before(e, cursor->anchor);
            vi->mode = ED_VI_VISUAL;
        }
        if (forward) cursor->offset = ed_vi_before(e, cursor->offset);
    } else if (key.code == WHIT_KEY_PRESS) {
        ed_vi_leave_visual(e);
    } else if (selected) {
        cursor->offset = ed_selection(cursor).begin;
    }
    if (key.code != WHIT_KEY_PRESS) cursor->anchor = ED_NONE; /* a drag selects from where it was pressed */
    uint64_t last = ed_vi_end(e), at = cursor->offset < last ? cursor->offset : last;
    if (cursor->offset > last) at = ed_vi_line_begin(e, last);
    bool to_end = ed_vi_is_visual(e) && cursor->goal >= ED_VI_LAST_COLUMN;
    uint64_t line_end = ed_vi_line_end(e, at);
    if (!to_end && at >= line_end && at > ed_vi_line_begin(e, at)) at = ed_vi_before(e, line_end);
    cursor->offset = at;
}

void ed_vi_draw_mode(const ed *e, char *mode, size_t room_bytes)
{
    static const char *const names[] = {"NORMAL", "INSERT", "REPLACE", "VISUAL", "LINES", "BLOCK"};
    snprintf(mode, room_bytes, "%s ", names[e->vi.mode]);
}
