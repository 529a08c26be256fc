/* SPDX-License-Identifier: MIT
 * vi's keys: normal, insert and visual mode, counts, operators with motions, '.' and ':'. */
#include "editor/state.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

static void run(ed *e, const char *command)
{
    int number = ed_command_find(command);
    if (number >= 0) ed_run(e, number);
}

static uint32_t count_of(const ed *e)
{
    return e->vi.count ? e->vi.count : 1;
}

static uint64_t line_begin(ed *e, uint64_t at)
{
    return whit_layout_line_begin(ed_layout(e), at);
}
static uint64_t line_end(ed *e, uint64_t at)
{
    return whit_layout_line_end(ed_layout(e), at);
}

static int kind_of(ed *e, uint64_t at)
{
    int byte = whit_layout_byte(ed_layout(e), at);
    return byte < 0 ? -1 : isspace(byte) ? 0 : ed_is_word(byte) ? 1 : 2;
}

static uint64_t word_end(ed *e, uint64_t at)
{
    uint64_t size = whit_text_size(ed_text(e));
    if (at < size) at = whit_layout_behind(ed_layout(e), at);
    while (at < size && kind_of(e, at) == 0) at = whit_layout_behind(ed_layout(e), at);
    int kind = kind_of(e, at);
    for (uint64_t next; at < size && kind_of(e, next = whit_layout_behind(ed_layout(e), at)) == kind && next < size;)
        at = next;
    return at;
}

static uint64_t find_char(ed *e, uint64_t at, uint32_t how, uint32_t code)
{
    uint64_t begin = line_begin(e, at), end = line_end(e, at), found = at;
    uint8_t wanted = (uint8_t)code;
    if (code > 127) return at;
    if (how == 'f' || how == 't') {
        for (found = at + 1 + (how == 't'); found < end && whit_layout_byte(ed_layout(e), found) != wanted;) found++;
        return found < end ? found - (how == 't') : at;
    }
    for (found = at; found > begin && whit_layout_byte(ed_layout(e), --found) != wanted;) {
    }
    return whit_layout_byte(ed_layout(e), found) == wanted && found < at ? found + (how == 'T') : at;
}

/* A motion: where it goes from `at`. *lines: it is by whole lines; *inclusive: the character there is
 * part of it. False where the key is no motion. */
static bool motion(ed *e, whit_key key, uint64_t at, uint64_t *to, bool *lines, bool *inclusive)
{
    uint32_t n = count_of(e);
    whit_layout *layout = ed_layout(e);
    uint64_t match, begin = line_begin(e, at);
    *lines = *inclusive = false;
    *to = at;
    if (key.mods) return false;
    switch (key.code) {
    case 'h':
    case WHIT_KEY_LEFT:
    case WHIT_KEY_BACKSPACE:
        while (n-- && *to > begin) *to = whit_layout_before(layout, *to);
        return true;
    case 'l':
    case ' ':
    case WHIT_KEY_RIGHT:
        while (n-- && *to < line_end(e, at)) *to = whit_layout_behind(layout, *to);
        return true;
    case 'j':
    case 'k':
    case WHIT_KEY_UP:
    case WHIT_KEY_DOWN: {
        bool upward = key.code == 'k' || key.code == WHIT_KEY_UP;
        int goal = ed_cursor(e)->goal >= 0 ? ed_cursor(e)->goal : whit_layout_column(layout, begin, at);
        uint64_t line = begin;
        while (n--) {
            if (upward ? !line : whit_text_line_end(ed_text(e), line) >= whit_text_size(ed_text(e))) break;
            line = upward ? line_begin(e, line - 1) : whit_text_line_end(ed_text(e), line) + 1;
        }
        uint64_t end = line_end(e, line);
        int wrap = layout->wrap_columns;
        layout->wrap_columns = 0;
        *to = whit_layout_at_column(layout, line, goal);
        layout->wrap_columns = wrap;
        if (*to > end) *to = end;
        *lines = true;
        return true;
    }
    case 'w':
        while (n--) *to = ed_word_right(e, *to);
        return true;
    case 'b':
        while (n--) *to = ed_word_left(e, *to);
        return true;
    case 'e':
        while (n--) *to = word_end(e, *to);
        *inclusive = true;
        return true;
    case '0':
    case WHIT_KEY_HOME: *to = begin; return true;
    case '^':
        for (*to = begin; kind_of(e, *to) == 0 && whit_layout_byte(layout, *to) != '\n';) ++*to;
        return true;
    case '$':
    case WHIT_KEY_END: *to = line_end(e, at); return true;
    case 'G':
        if (e->vi.count)
            *to = whit_text_line_start(ed_text(e), e->vi.count - 1);
        else
            *to = line_begin(e, whit_text_size(ed_text(e)));
        *lines = true;
        return *to != UINT64_MAX;
    case '%':
        match = ed_bracket(e, at, 1000000);
        if (match != ED_NONE) *to = match;
        *inclusive = true;
        return true;
    case 'n':
    case 'N': {
        whit_range found;
        bool ok = key.code == 'n' ? ed_search_forward(e, ed_text(e), at + 1, ED_NONE, &found) ||
                ed_search_forward(e, ed_text(e), 0, ED_NONE, &found)
                                  : ed_search_backward(e, ed_text(e), at, &found) ||
                ed_search_backward(e, ed_text(e), whit_text_size(ed_text(e)) + 1, &found);
        if (ok)
            *to = found.begin;
        else
            ed_complain(e, "not found");
        return true;
    }
    case ';':
        while (n--) *to = find_char(e, *to, e->vi.find, e->vi.find_char);
        *inclusive = true;
        return true;
    case '}':
    case '{':
        while (n--) {
            uint64_t line = *to;
            do {
                if (key.code == '{' ? !line_begin(e, line)
                                    : whit_text_line_end(ed_text(e), line) >= whit_text_size(ed_text(e))) {
                    line = key.code == '{' ? 0 : whit_text_size(ed_text(e));
                    break;
                }
                line =
                    key.code == '{' ? line_begin(e, line_begin(e, line) - 1) : whit_text_line_end(ed_text(e), line) + 1;
            } while (line_end(e, line) != line);
            *to = line;
        }
        return true;
    default: return false;
    }
}

static void begin_insert(ed *e)
{
    e->vi.inserting = true;
    e->vi.visual = false;
}

/* d, c, y, <, > over a range; by lines it is widened to whole ones. */
static void apply(ed *e, uint32_t operator, whit_range range, bool lines)
{
    uint64_t size = whit_text_size(ed_text(e));
    if (lines) {
        range.begin = line_begin(e, range.begin);
        range.end = whit_text_line_end(ed_text(e), range.end);
        if (range.end < size && operator!= 'c') range.end++;
    }
    if (range.end > size) range.end = size;
    if (operator== '<' || operator== '>') {
        *ed_cursor(e) = (struct ed_cursor){range.begin, range.end > range.begin ? range.end - 1 : ED_NONE, -1};
        run(e, operator== '>' ? "indent" : "outdent");
        *ed_cursor(e) = (struct ed_cursor){range.begin, ED_NONE, -1};
        return;
    }
    ed_copy_range(e, range, lines);
    if (operator!= 'y') {
        whit_buffer_seal(e->window->doc->buffer);
        uint64_t begin = range.begin;
        if (lines && operator== 'd' && range.end == size && begin && whit_layout_byte(ed_layout(e), size - 1) != '\n')
            begin--;
        ed_cursor(e)->anchor = ED_NONE;
        if (range.end > begin) ed_edit(e, begin, range.end - begin, NULL, 0);
        if (begin > whit_text_size(ed_text(e))) begin = whit_text_size(ed_text(e));
        range.begin = begin;
    }
    *ed_cursor(e) = (struct ed_cursor){lines && operator== 'd' ? line_begin(e, range.begin) : range.begin, ED_NONE, -1};
    if (operator== 'c')
        begin_insert(e);
    else
        whit_buffer_seal(e->window->doc->buffer);
}

static void put(ed *e, bool before)
{
    if (!e->clipboard_bytes) return;
    uint64_t at = ed_cursor(e)->offset;
    whit_buffer_seal(e->window->doc->buffer);
    for (uint32_t n = count_of(e); n--;) {
        if (e->clipboard_lines) {
            at = before ? line_begin(e, at) : whit_text_line_end(ed_text(e), at);
            if (!before && at == whit_text_size(ed_text(e))) ed_edit(e, at, 0, "\n", 1);
            if (!before) at++;
            ed_edit(e, at, 0, e->clipboard, e->clipboard_bytes);
        } else {
            if (!before && at < line_end(e, at)) at = whit_layout_behind(ed_layout(e), at);
            ed_edit(e, at, 0, e->clipboard, e->clipboard_bytes);
            at += e->clipboard_bytes - 1;
        }
    }
    whit_buffer_seal(e->window->doc->buffer);
    *ed_cursor(e) = (struct ed_cursor){at, ED_NONE, -1};
}

static void join_lines(ed *e)
{
    uint64_t end = line_end(e, ed_cursor(e)->offset), at = end;
    while (kind_of(e, at) == 0) at++;
    if (at == end) return;
    whit_buffer_seal(e->window->doc->buffer);
    ed_edit(e, end, at - end, " ", 1);
    whit_buffer_seal(e->window->doc->buffer);
    *ed_cursor(e) = (struct ed_cursor){end, ED_NONE, -1};
}

static void reset(ed *e)
{
    e->vi.count = e->vi.operator_count = 0;
    e->vi.operator= e->vi.pending = 0;
}

static void remember(ed *e)
{
    if (e->vi.repeating) return;
    memcpy(e->vi.repeat, e->vi.typed, sizeof e->vi.repeat);
    e->vi.n_repeat = e->vi.n_typed;
}

static void insert_at(ed *e, uint64_t at)
{
    *ed_cursor(e) = (struct ed_cursor){at, ED_NONE, -1};
    begin_insert(e);
}

/* A command without an operator; false where the key is none. */
static bool command(ed *e, uint32_t code)
{
    struct ed_cursor *cursor = ed_cursor(e);
    uint64_t at = cursor->offset;
    uint32_t n = count_of(e);
    bool changes = true, read_only = e->window->doc->buffer->read_only;
    if (read_only && strchr("iaIAoOxXDCsSpPJr~.", (int)code)) {
        ed_complain(e, "%s is read-only", e->window->doc->buffer->name);
        return true;
    }
    switch (code) {
    case 'i': insert_at(e, at); break;
    case 'a': insert_at(e, at < line_end(e, at) ? whit_layout_behind(ed_layout(e), at) : at); break;
    case 'I': insert_at(e, line_begin(e, at)); break;
    case 'A': insert_at(e, line_end(e, at)); break;
    case 'o':
        *cursor = (struct ed_cursor){line_end(e, at), ED_NONE, -1};
        run(e, "new-line");
        begin_insert(e);
        break;
    case 'O':
        whit_buffer_seal(e->window->doc->buffer);
        at = line_begin(e, at);
        ed_edit(e, at, 0, "\n", 1);
        insert_at(e, at);
        break;
    case 'x':
    case 'X':
        for (uint64_t to = at; n--;) {
            to = code == 'x' ? whit_layout_behind(ed_layout(e), to) : whit_layout_before(ed_layout(e), to);
            bool outside = code == 'x' ? to > line_end(e, at) : to < line_begin(e, at);
            if (outside) break;
            if (!n) apply(e, 'd', code == 'x' ? (whit_range){at, to} : (whit_range){to, at}, false);
        }
        break;
    case 's':
        apply(e, 'c', (whit_range){at, at < line_end(e, at) ? whit_layout_behind(ed_layout(e), at) : at}, false);
        break;
    case 'S': apply(e, 'c', (whit_range){at, at}, true); break;
    case 'D': apply(e, 'd', (whit_range){at, line_end(e, at)}, false); break;
    case 'C': apply(e, 'c', (whit_range){at, line_end(e, at)}, false); break;
    case 'p':
    case 'P': put(e, code == 'P'); break;
    case 'J': join_lines(e); break;
    case 'u':
        while (n--) run(e, "undo");
        changes = false;
        break;
    case 'v':
    case 'V':
        e->vi.visual = !e->vi.visual || e->vi.visual_lines != (code == 'V');
        e->vi.visual_lines = code == 'V';
        cursor->anchor = e->vi.visual ? at : ED_NONE;
        changes = false;
        break;
    case '/':
        ed_prompt_open(e, ED_PROMPT_FIND, "/", "");
        e->regex = true;
        changes = false;
        break;
    case ':':
        ed_prompt_open(e, ED_PROMPT_VI, ":", "");
        changes = false;
        break;
    case '.':
        changes = false;
        if (e->vi.repeating || !e->vi.n_repeat) break;
        reset(e);
        e->vi.repeating = true;
        for (size_t i = 0; i < e->vi.n_repeat; i++) ed_vi_key(e, e->vi.repeat[i], NULL, 0);
        if (e->vi.inserting) ed_vi_key(e, (whit_key){.code = WHIT_KEY_ESCAPE}, NULL, 0);
        e->vi.repeating = false;
        break;
    default: return false;
    }
    e->vi.changing = changes && e->vi.inserting;
    if (changes && !e->vi.inserting) remember(e);
    return true;
}

static void insert_key(ed *e, whit_key key)
{
    if (key.code != WHIT_KEY_ESCAPE) return;
    whit_buffer_seal(e->window->doc->buffer);
    e->vi.inserting = false;
    struct ed_cursor *cursor = ed_cursor(e);
    if (cursor->offset > line_begin(e, cursor->offset))
        cursor->offset = whit_layout_before(ed_layout(e), cursor->offset);
    cursor->anchor = ED_NONE;
    if (e->vi.changing) remember(e);
    e->vi.changing = false;
    e->vi.n_typed = 0;
}

/* The character behind f, t, r, g and the like. */
static void pending_key(ed *e, whit_key key)
{
    uint32_t pending = e->vi.pending, operator= e->vi.operator;
    uint64_t at = ed_cursor(e)->offset, to = at;
    e->vi.pending = 0;
    if (pending == 'g') {
        if (key.code == 'g') to = 0;
        if (operator&& key.code == 'g')
            apply(e, operator,(whit_range){0, at}, true);
        else if (key.code == 'g') {
            e->shift = e->vi.visual;
            ed_move_to(e, ed_cursor(e), to);
            e->shift = false;
        }
    } else if (pending == 'r' && key.code < WHIT_KEY_NONE && at < line_end(e, at)) {
        uint8_t text[4];
        size_t n = 1;
        text[0] = (uint8_t)key.code;
        if (key.code > 127) return;
        whit_buffer_seal(e->window->doc->buffer);
        ed_edit(e, at, whit_layout_behind(ed_layout(e), at) - at, (const char *)text, n);
        whit_buffer_seal(e->window->doc->buffer);
        *ed_cursor(e) = (struct ed_cursor){at, ED_NONE, -1};
        remember(e);
    } else if (strchr("fFtT", (int)pending)) {
        e->vi.find = pending;
        e->vi.find_char = key.code;
        for (uint32_t n = count_of(e); n--;) to = find_char(e, to, pending, key.code);
        bool forward = pending == 'f' || pending == 't';
        if (operator&& to != at)
            apply(e, operator, forward ? (whit_range){at, whit_layout_behind(ed_layout(e), to)} : (whit_range){to, at},
                  false);
        else if (!operator) {
            e->shift = e->vi.visual;
            ed_move_to(e, ed_cursor(e), to);
            e->shift = false;
        }
        if (operator&& operator!= 'y' && to != at) {
            e->vi.changing = e->vi.inserting;
            if (!e->vi.inserting) remember(e);
        }
    }
    reset(e);
    if (!e->vi.inserting) e->vi.n_typed = 0;
}

static void operate(ed *e, uint32_t code, whit_range range, bool lines)
{
    if (code != 'y' && e->window->doc->buffer->read_only)
        ed_complain(e, "%s is read-only", e->window->doc->buffer->name);
    else
        apply(e, code, range, lines);
    e->vi.changing = e->vi.inserting;
    if (code != 'y' && !e->vi.inserting) remember(e);
    e->vi.visual = false;
}

bool ed_vi_key(ed *e, whit_key key, const char *paste, size_t n_paste)
{
    struct ed_vi *vi = &e->vi;
    if (key.code == WHIT_KEY_PASTE) {
        ed_paste(e, paste, n_paste);
        return true;
    }
    if (!vi->repeating && vi->n_typed < sizeof vi->typed / sizeof *vi->typed) vi->typed[vi->n_typed++] = key;
    if (vi->inserting) {
        insert_key(e, key);
        if (key.code == WHIT_KEY_ESCAPE) return true;
        if (vi->repeating && key.code < WHIT_KEY_NONE) { /* keys that '.' plays come here alone */
            char text = (char)key.code;
            if (key.code < 128 && !key.mods) ed_type(e, &text, 1);
            return true;
        }
        return false;
    }
    if (key.mods & ~WHIT_MOD_SHIFT) {
        if (key.code == 'r' && key.mods == WHIT_MOD_CTRL) {
            run(e, "redo");
            return true;
        }
        if (key.mods == WHIT_MOD_CTRL && (key.code == 'd' || key.code == 'f')) {
            run(e, "page-down");
            return true;
        }
        if (key.mods == WHIT_MOD_CTRL && (key.code == 'u' || key.code == 'b')) {
            run(e, "page-up");
            return true;
        }
        vi->n_typed = 0;
        return false;
    }
    if (key.code == WHIT_KEY_ESCAPE) {
        reset(e);
        vi->visual = false;
        vi->n_typed = 0;
        ed_only_main(e);
        ed_cursor(e)->anchor = ED_NONE;
        return true;
    }
    if (vi->pending) {
        pending_key(e, key);
        return true;
    }
    if ((key.code >= '1' && key.code <= '9') || (key.code == '0' && vi->count)) {
        if (vi->count < 100000) vi->count = vi->count * 10 + key.code - '0';
        return true;
    }
    ed_only_main(e);
    struct ed_cursor *cursor = ed_cursor(e);
    uint64_t at = cursor->offset, to;
    bool lines, inclusive;
    if (key.code < 128 && strchr("fFtTg", (int)key.code)) {
        vi->pending = key.code;
        return true;
    }
    if (key.code == 'r' && !vi->operator) {
        vi->pending = 'r';
        return true;
    }
    if (key.code < 128 && strchr("dcy<>", (int)key.code)) {
        if (vi->visual) {
            whit_range range = ed_selection(cursor);
            if (!vi->visual_lines) range.end = whit_layout_behind(ed_layout(e), range.end);
            operate(e, key.code, range, vi->visual_lines);
        } else if (vi->operator== key.code) { /* dd, cc, yy */
            uint64_t last = at;
            for (uint32_t n = (vi->operator_count ? vi->operator_count : 1) * count_of(e); n > 1; n--) {
                uint64_t end = whit_text_line_end(ed_text(e), last);
                if (end >= whit_text_size(ed_text(e))) break;
                last = end + 1;
            }
            operate(e, key.code, (whit_range){at, last}, true);
        } else if (!vi->operator) {
            vi->operator= key.code;
            vi->operator_count = vi->count;
            vi->count = 0;
            return true;
        }
        reset(e);
        if (!vi->inserting) vi->n_typed = 0;
        return true;
    }
    whit_key plain = key;
    if (vi->operator_count) vi->count = vi->operator_count * count_of(e);
    if (vi->operator== 'c' && key.code == 'w') plain.code = 'e'; /* as vi has it */
    if (motion(e, plain, at, &to, &lines, &inclusive)) {
        int goal = cursor->goal >= 0 ? cursor->goal : whit_layout_column(ed_layout(e), line_begin(e, at), at);
        if (vi->operator) {
            whit_range range = to < at ? (whit_range){to, at} : (whit_range){at, to};
            if (inclusive && to >= at) range.end = whit_layout_behind(ed_layout(e), range.end);
            operate(e, vi->operator, range, lines);
        } else {
            e->shift = vi->visual;
            ed_move_to(e, cursor, to);
            e->shift = false;
            if (lines && key.code != 'G') cursor->goal = goal;
            vi->n_typed = 0;
        }
        reset(e);
        e->window->moved_away = false;
        if (!vi->inserting) vi->n_typed = 0;
        return true;
    }
    bool known = key.code < 128 && command(e, key.code);
    reset(e);
    if (!vi->inserting) vi->n_typed = 0;
    e->window->moved_away = false;
    if (known || key.code < WHIT_KEY_NONE) {
        if (!known) ed_complain(e, "vi's normal mode has no such key; i begins to insert");
        return true;
    }
    return false;
}

void ed_vi_draw_mode(const ed *e, char *mode, size_t room_bytes)
{
    snprintf(mode, room_bytes, "%s ",
             e->vi.inserting    ? "INSERT"
                 : e->vi.visual ? (e->vi.visual_lines ? "LINES" : "VISUAL")
                                : "NORMAL");
}

/* :w :q :wq :x :e FILE, the number of a line, or the name of a command. */
void ed_vi_line(ed *e, const char *line)
{
    char *behind;
    unsigned long number = strtoul(line, &behind, 10);
    if (*line && !*behind && number) {
        ed_place(e, number, 1);
    } else if (!strcmp(line, "w")) {
        run(e, "save");
    } else if (!strncmp(line, "w ", 2)) {
        ed_prompt_open(e, ED_PROMPT_SAVE_AS, "Save as: ", line + 2);
    } else if (!strcmp(line, "q")) {
        run(e, "close");
    } else if (!strcmp(line, "q!")) {
        ed_close_doc(e, e->window->doc);
    } else if (!strcmp(line, "qa")) {
        run(e, "quit");
    } else if (!strcmp(line, "wq") || !strcmp(line, "x")) {
        run(e, "save");
        if (!e->prompt.kind && !whit_buffer_is_modified(e->window->doc->buffer)) ed_close_doc(e, e->window->doc);
    } else if (!strncmp(line, "e ", 2)) {
        whit_error error;
        struct ed_doc *doc = ed_open_file(e, line + 2, &error);
        if (doc)
            ed_show(e, doc);
        else
            ed_complain_error(e, &error);
    } else if (ed_command_find(line) >= 0) {
        run(e, line);
    } else if (*line) {
        ed_complain(e, "no such command: %s", line);
    }
}
