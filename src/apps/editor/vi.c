/* SPDX-License-Identifier: MIT
 * Handles vi's keys: the typed part of a command, counts, registers, operators with motions, the visual modes, '.' and
 * macros. */
#include "editor/state.h"
#include "editor/vi_action.h"

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

/* ---- positions that move with edits -------------------------------------------------------- */

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
                vi->lines.begins[i] = ED_NONE; /* the line was deleted */
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

/* ---- end of a command ---------------------------------------------------------------------- */

static void reset(ed *e)
{
    struct ed_vi *vi = &e->vi;
    vi->count = vi->operator_count = 0;
    vi->operator= 0;
    vi->pending = NULL;
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

/* Ends a command or, in insert mode, the keys before the inserted text: records it for '.', and resets counts and
 * registers. */
static void finish_command(ed *e)
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
    /* Ctrl-O ran one command of normal mode; insert mode continues */
    if (vi->once && vi->mode == ED_VI_NORMAL && !e->prompt.kind) {
        vi->once = false;
        ed_vi_begin_insert(e, ED_VI_INSERT, 'i');
    }
}

/* ---- repeat and macros --------------------------------------------------------------------- */

void ed_vi_play(ed *e, const whit_key *keys, size_t n)
{
    struct ed_vi *vi = &e->vi;
    vi->depth++;
    for (size_t i = 0; i < n && !vi->failed && !e->done; i++) {
        if (++vi->n_played > ED_VI_KEYS_MAX || vi->depth > 100) {
            ed_vi_fail(e, "stopped after %u keys: at most 100,000 keys or 100 nested macros are played",
                       vi->n_played - 1);
            break;
        }
        ed_take_key(e, keys[i], NULL, 0);
        if (e->vi.on) ed_vi_settle(e, keys[i]);
    }
    vi->depth--;
}

void ed_vi_repeat(ed *e, struct ed_vi_call call)
{
    (void)call;
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
        ed_vi_select_extent(e, &vi->repeat_extent);
    }
    vi->count = count;
    /* '.' increments a numbered register: "1p.. puts "1, "2 and "3 */
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
        ed_vi_fail(e, "a macro's name must be a letter");
        return;
    }
    vi->recording = letter;
    e->macro.recording = true;
    e->macro.n = 0;
    ed_say(e, "recording; q ends it, @%c plays it", (char)tolower((int)letter));
}

static void end_macro(ed *e)
{
    struct ed_vi *vi = &e->vi;
    struct ed_vi_keys *macro = &vi->macros[tolower((int)vi->recording) - 'a'];
    size_t n = e->macro.n ? e->macro.n - 1 : 0; /* drop the q that ended the recording */
    if (islower((int)vi->recording)) macro->n = 0;
    for (size_t i = 0; i < n && ed_vi_keys_add(macro, e->macro.keys[i]); i++) {
    }
    e->macro.recording = false;
    vi->recording = 0;
    ed_say(e, "recorded %zu keys", n);
}

void ed_vi_play_macro(ed *e, struct ed_vi_call call)
{
    struct ed_vi *vi = &e->vi;
    uint32_t letter = call.given;
    uint32_t n = ed_vi_count(e);
    if (letter == '@') letter = vi->last_macro;
    if (letter == ':' && *vi->line) {
        reset(e);
        ed_vi_line(e, vi->line);
        if (e->done) return;
        vi->changed = false; /* '.' must not repeat this command */
        finish_command(e);
        return;
    }
    struct ed_vi_keys *macro = letter < 128 && isalpha((int)letter) ? &vi->macros[tolower((int)letter) - 'a'] : NULL;
    if (!macro || !macro->n) {
        ed_vi_fail(e, "there is no macro of that name; q and a letter record one");
        finish_command(e);
        return;
    }
    vi->last_macro = letter;
    whit_key *keys = malloc(macro->n * sizeof *keys); /* copied, because playing the macro may record it anew */
    if (!keys) {
        finish_command(e);
        return;
    }
    size_t n_keys = macro->n;
    memcpy(keys, macro->keys, n_keys * sizeof *keys);
    finish_command(e);
    while (n-- && !vi->failed && !e->done) ed_vi_play(e, keys, n_keys);
    free(keys);
}

/* Key q: begins to record a macro under the given letter, or ends the recording. */
void ed_vi_record_macro(ed *e, struct ed_vi_call call)
{
    if (e->vi.recording)
        end_macro(e);
    else if (e->macro.recording)
        ed_vi_fail(e, "another macro is already being recorded; record-macro (M-q) ends it");
    else
        begin_macro(e, call.given);
}

/* ---- keys ---------------------------------------------------------------------------------- */

/* Key ": chooses the register of the following command. */
void ed_vi_choose_register(ed *e, struct ed_vi_call call)
{
    struct ed_vi *vi = &e->vi;
    if (ed_vi_register_is_name(call.given)) {
        vi->wanted_register = vi->typed_register = call.given;
        if (!vi->repeating && vi->typed.n >= 2) vi->typed.n -= 2;
        return;
    }
    ed_vi_fail(e, "there is no register of that name");
    finish_command(e);
}

/* Keys gt and gT: show the next or the previous buffer. */
void ed_vi_show_buffer(ed *e, struct ed_vi_call call)
{
    ed_vi_leave_visual(e);
    ed_vi_run(e, call.how == 't' ? "next-buffer" : "previous-buffer");
}

void ed_vi_open_line_prompt(ed *e, struct ed_vi_call call)
{
    (void)call;
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

void ed_vi_open_search(ed *e, struct ed_vi_call call)
{
    bool back = call.how == '?';
    struct ed_vi *vi = &e->vi;
    vi->search_pending = true;
    vi->search_back = back;
    vi->search_anchor = vi->anchor;
    ed_prompt_open(e, ED_PROMPT_FIND, back ? "?" : "/", "");
    e->find.regex = true;
}

/* Moves the cursor to the target of a motion or object or, if an operator is pending, applies the operator to the
 * span. */
static void go(ed *e, struct ed_vi_span span, uint8_t flags)
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
    if (flags & ED_VI_TO_LINE_END) goal = ED_VI_LAST_COLUMN;
    cursor->goal = flags & (ED_VI_TO_LINE_END | ED_VI_KEEPS_COLUMN) ? goal : -1;
}

static void take_motion(ed *e, const struct ed_vi_row *row, uint32_t given)
{
    uint64_t at = ed_cursor(e)->offset;
    struct ed_vi_span span = {at,
                              at,
                              .lines = row->flags & ED_VI_LINES,
                              .inclusive = row->flags & ED_VI_INCLUSIVE,
                              .jumps = row->flags & ED_VI_JUMPS,
                              .is_fixed = row->flags & ED_VI_FIXED};
    if (row->run.motion(e, (struct ed_vi_call){row->how, given}, &span))
        go(e, span, row->flags);
    else
        e->vi.failed = true;
    finish_command(e);
}

static void take_object(ed *e, const struct ed_vi_row *row, bool inner)
{
    struct ed_vi *vi = &e->vi;
    uint64_t at = ed_cursor(e)->offset;
    bool selecting = ed_vi_is_visual(e), more = selecting && vi->anchor != at;
    struct ed_vi_span span = {.begin = at, .end = at};
    if (more && vi->anchor < at) span.begin = vi->anchor;
    if (more && vi->anchor > at) { /* extend a selection that was made backwards as if it had been made forwards */
        span.end = vi->anchor;
    }
    if (!row->run.object(e, row->how, inner, more, &span)) {
        ed_vi_fail(e, "there is no such text object here");
        return;
    }
    if (!selecting) {
        go(e, span, 0);
        return;
    }
    vi->anchor = span.begin;
    if (span.lines)
        vi->mode = ED_VI_VISUAL_LINES;
    else if (vi->mode == ED_VI_VISUAL_LINES)
        vi->mode = ED_VI_VISUAL;
    if (!span.lines && span.end > span.begin) span.end = ed_vi_before(e, span.end);
    /* the object ends with its line's line feed, so select the latter, too */
    bool on_end = !span.lines && span.end == ed_vi_line_end(e, span.end);
    *ed_cursor(e) = (struct ed_cursor){span.end, ED_NONE, on_end ? ED_VI_LAST_COLUMN : -1};
}

static void take_operator(ed *e, uint32_t code)
{
    struct ed_vi *vi = &e->vi;
    if (ed_vi_is_visual(e)) {
        ed_vi_operate_visual(e, code);
        finish_command(e);
    } else if (vi->operator== code) { /* doubled operator, as in dd, cc, yy or gUgU: it acts on lines */
        uint64_t at = ed_cursor(e)->offset, last = at, next;
        uint32_t count = ed_vi_count(e);
        for (uint32_t n = count; --n && (next = ed_vi_next_line(e, last)) != ED_NONE;) last = next;
        if (count > 1 && last == at) { /* 2dd and the like fail in the last line */
            ed_vi_fail(e, "there is no line below");
            finish_command(e);
            return;
        }
        ed_vi_operate(e, code, (struct ed_vi_span){.begin = at, .end = last, .lines = true});
        uint64_t first = ed_vi_first(e, at);
        if ((code & ED_VI_G) && code != (ED_VI_G | 'q')) ed_cursor(e)->offset = first < at ? first : at;
        finish_command(e);
    } else if (!vi->operator) {
        vi->operator= code;
        vi->operator_count = vi->count;
        vi->count = 0;
    } else {
        finish_command(e);
    }
}

static void take_digit(ed *e, uint32_t digit)
{
    struct ed_vi *vi = &e->vi;
    /* may be a line number, so it is only limited by overflow */
    if (vi->count <= (UINT32_MAX - 9) / 10) vi->count = vi->count * 10 + digit;
    if (!vi->repeating && vi->typed.n) vi->typed.n--;
    vi->typed_count = ed_vi_count(e);
}

/* Runs a row of the table. `typed` is the digit, or the key that is the row's argument, otherwise 0; `prefix` is the
 * key before the row's key, otherwise 0. */
static void take_row(ed *e, const struct ed_vi_row *row, uint32_t typed, uint32_t prefix)
{
    struct ed_vi *vi = &e->vi;
    switch (row->effect) {
    case ED_VI_DIGIT: take_digit(e, typed - '0'); return;
    case ED_VI_MOTION: take_motion(e, row, typed); return;
    case ED_VI_OPERATOR: take_operator(e, row->how); return;
    case ED_VI_OBJECT: take_object(e, row, prefix == 'i'); break;
    case ED_VI_PREFIX: vi->pending = row; return;
    case ED_VI_ACTION:
    case ED_VI_COMMAND:
    case ED_VI_LINE: ed_vi_row_run(e, row, typed); break;
    default: break;
    }
    if (!e->done && !(row->flags & ED_VI_UNFINISHED)) finish_command(e);
}

static uint8_t mode_of_rows(const ed *e)
{
    if (e->vi.operator) return ED_VI_IN_OPERATOR;
    return ed_vi_is_visual(e) ? ED_VI_IN_VISUAL : ED_VI_IN_NORMAL;
}

/* Reports an unknown key, or an unknown key after a prefix, and ends the command. */
static void refuse_key(ed *e, uint32_t prefix)
{
    if (prefix == 'i' || prefix == 'a')
        ed_vi_fail(e, "this key is not a text object; :help lists them");
    else if (e->vi.operator)
        ed_vi_fail(e, "this key is not a motion; :help lists them");
    else if (prefix & ED_VI_CTRL)
        ed_vi_fail(e, "C-%c has no such key; :help lists them", (char)prefix);
    else if (prefix)
        ed_vi_fail(e, "%c has no such key in vi's %s mode; :help lists them", (char)prefix,
                   ed_vi_is_visual(e) ? "visual" : "normal");
    else if (ed_vi_is_visual(e))
        ed_vi_fail(e, "vi's visual mode has no such key; :help lists them");
    else
        ed_vi_fail(e, "vi's normal mode has no such key; i begins to insert");
    finish_command(e);
}

/* Runs the key after a prefix, or a key whose argument is the given key. */
static void pending_key(ed *e, whit_key key)
{
    struct ed_vi *vi = &e->vi;
    const struct ed_vi_row *row = vi->pending;
    uint32_t prefix = row->key, code = key.code;
    vi->pending = NULL;
    if (row->argument) {
        if (key.mods)
            finish_command(e);
        else
            take_row(e, row, code, 0);
        return;
    }
    if (prefix & ED_VI_CTRL) key.mods &= (uint8_t)~WHIT_MOD_CTRL; /* C-w C-v means the same as C-w v */
    row = key.mods ? NULL : ed_vi_row_find(prefix, code, mode_of_rows(e));
    if (row)
        take_row(e, row, 0, prefix);
    else
        refuse_key(e, prefix);
}

/* Returns the row for the first key of a command, or for a key after a count or operator; NULL if no row has this
 * key. */
static const struct ed_vi_row *row_of_key(const ed *e, whit_key key)
{
    const struct ed_vi *vi = &e->vi;
    uint32_t code = key.code;
    if (key.mods == WHIT_MOD_CTRL && code < 128) return ed_vi_row_find(0, ED_VI_CTRL | code, mode_of_rows(e));
    if (key.mods) return NULL;
    if ((code > '0' && code <= '9') || (code == '0' && vi->count)) code = '1'; /* all digits share one row */
    /* A repeated operator letter, as in g~~ or gcc, means the operator's own row, with prefix g; this test must precede
     * the lookup of c in gcc. */
    if ((vi->operator& ED_VI_G) && code == (vi->operator& 127)) return ed_vi_row_find('g', code, ED_VI_IN_OPERATOR);
    return ed_vi_row_find(0, code, mode_of_rows(e));
}

static bool normal_key(ed *e, whit_key key)
{
    struct ed_vi *vi = &e->vi;
    uint32_t code = key.code;
    if (code == WHIT_KEY_ESCAPE || (code == 'c' && key.mods == WHIT_MOD_CTRL)) {
        ed_vi_leave_visual(e);
        ed_only_main(e);
        ed_cursor(e)->anchor = ED_NONE;
        finish_command(e);
        return true;
    }
    if (vi->pending) {
        pending_key(e, key);
        return true;
    }
    const struct ed_vi_row *row = row_of_key(e, key);
    bool is_digit = row && row->effect == ED_VI_DIGIT;
    if (e->window->n_cursors > 1 && !is_digit) ed_only_main(e);
    if (!row) {
        if (!vi->operator&&(key.mods || code >= WHIT_KEY_NONE)) return false;
        refuse_key(e, 0);
        return true;
    }
    bool ends_macro = code == 'q' && e->macro.recording; /* the q that ends a recording takes no letter */
    if (row->argument && !ends_macro)
        vi->pending = row;
    else
        take_row(e, row, is_digit ? code : 0, 0);
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
            finish_command(e);
            ed_paste(e, paste, n_paste);
        } else {
            ed_vi_paste_typed(e, paste, n_paste);
        }
        return true;
    }
    if (ed_vi_map_key(e, key)) return true;
    bool own = key.mods & (WHIT_MOD_ALT | WHIT_MOD_CTRL) && ed_config_is_own(e, key);
    if (own && !vi->pending) {
        ed_vi_hand_over(e);
        return false;
    }
    if (!vi->repeating) ed_vi_keys_add(&vi->typed, key);
    if (ed_vi_is_inserting(e)) {
        bool ends = key.code == WHIT_KEY_ESCAPE || (key.mods == WHIT_MOD_CTRL && (key.code == 'c' || key.code == '['));
        bool literal = ed_vi_is_literal(e);
        if (!ends || (literal && !vi->literal.base)) return ed_vi_insert_key(e, key);
        if (literal) ed_vi_insert_key(e, key); /* the key ends a number typed after Ctrl-V */
        vi->pending = NULL;
        ed_vi_end_insert(e);
        finish_command(e);
        return true;
    }
    if (normal_key(e, key)) return true;
    ed_vi_hand_over(e);
    finish_command(e);
    return false;
}

/* Called when the search prompt has closed; if `found`, the cursor's selection is the match. Completes vi's search from
 * `origin`. */
void ed_vi_searched(ed *e, uint64_t origin, bool found)
{
    struct ed_vi *vi = &e->vi;
    struct ed_cursor *cursor = ed_cursor(e);
    /* after the editor's own search, put the cursor at the beginning of the match */
    if (!vi->search_pending) {
        if (!ed_vi_is_inserting(e)) *cursor = (struct ed_cursor){ed_selection(cursor).begin, ED_NONE, -1};
        return;
    }
    uint64_t to = ed_selection(cursor).begin;
    vi->search_pending = false;
    if (ed_vi_is_visual(e)) vi->anchor = vi->search_anchor;
    *cursor = (struct ed_cursor){origin, ED_NONE, -1};
    if (found) {
        struct ed_vi_span span = {.begin = origin, .end = to, .jumps = true};
        /* record n instead of the prompt's keys, so that '.' repeats the search */
        if (!vi->repeating && vi->typed.n) vi->typed.keys[vi->typed.n - 1] = (whit_key){.code = 'n'};
        go(e, span, 0);
    } else {
        vi->failed = true;
    }
    finish_command(e);
}

/* Moves the cursor to a valid position of vi: on a character or in an empty line, not after the last line feed. Also
 * follows changes of the buffer or selection by other means. */
void ed_vi_settle(ed *e, whit_key key)
{
    struct ed_vi *vi = &e->vi;
    if (!e->root || e->done) return;
    if (e->prompt.kind) {
        vi->asked = true;
        return;
    }
    if (vi->asked && !ed_vi_is_inserting(e)) { /* the prompt has closed, maybe with Esc */
        vi->changed = false;                   /* '.' must not repeat this command */
        finish_command(e);
    }
    vi->asked = false;
    /* showing another buffer ends a visual mode */
    if (ed_vi_is_visual(e) && vi->shown && vi->shown != e->window->doc) vi->mode = ED_VI_NORMAL;
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
    /* text was selected by the mouse or with Shift */
    if (selected && (key.mods & WHIT_MOD_SHIFT || key.code == WHIT_KEY_DRAG)) {
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
    /* after a mouse press the anchor stays, since dragging selects from there */
    if (key.code != WHIT_KEY_PRESS) cursor->anchor = ED_NONE;
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
