/* SPDX-License-Identifier: MIT
 * Runs keys in vi's insert and replace modes. Keys that these modes lack act as in the editor's usual mode. */
#include "editor/state.h"
#include "editor/vi_action.h"

#include "base/utf8.h"

#include <stdlib.h>

#define REPLACED_BYTES (1u << 20) /* maximum number of replaced bytes that backspace can restore */

void ed_vi_begin_insert(ed *e, ed_vi_mode mode, uint32_t key)
{
    struct ed_vi *vi = &e->vi;
    bool was_indented = vi->auto_indent && key == 'c';
    ed_vi_hold(e, true);
    vi->mode = mode;
    vi->insert_key = key;
    vi->insert_count = key == 'c' ? 1 : ed_vi_count(e);
    vi->insert_from = vi->repeating ? vi->repeat_from : vi->typed.n;
    vi->insert_begin = ed_cursor(e)->offset;
    vi->auto_indent = was_indented;
    vi->replaced.size_bytes = 0;
    vi->count = vi->operator_count = 0;
}

/* Called when the cursor is moved in insert mode: begins a new step of undo and a new insertion, so that '.' repeats
 * only the text typed from now on. */
static void begin_again(ed *e)
{
    struct ed_vi *vi = &e->vi;
    if (vi->repeating) return;
    ed_vi_hold(e, false);
    ed_vi_hold(e, true);
    vi->typed.n = 0;
    ed_vi_keys_add(&vi->typed, (whit_key){.code = vi->mode == ED_VI_REPLACE ? 'R' : 'i'});
    vi->insert_from = 1;
    vi->insert_count = 1;
    vi->auto_indent = false;
    vi->replaced.size_bytes = 0;
}

static bool only_blanks(ed *e, uint64_t line)
{
    return ed_skip_blanks(e, line) >= ed_vi_line_end(e, line);
}

/* Deletes automatic indentation if its line contains nothing else. */
static void drop_indent(ed *e, uint64_t at)
{
    uint64_t line = ed_vi_line_begin(e, at), end = ed_vi_line_end(e, at);
    if (end > line && only_blanks(e, line)) ed_edit(e, line, end - line, NULL, 0);
}

static void repeat_insert(ed *e)
{
    struct ed_vi *vi = &e->vi;
    uint32_t n = vi->insert_count, key = vi->insert_key;
    const struct ed_vi_keys *from = vi->repeating ? &vi->repeat : &vi->typed;
    size_t first = vi->insert_from, n_keys = from->n > first ? from->n - first : 0;
    if (n_keys && from->keys[from->n - 1].code == WHIT_KEY_ESCAPE)
        n_keys--; /* the Esc that ended insert mode is not repeated */
    vi->insert_count = 1;
    if (n < 2 || !n_keys) return;
    whit_key *keys = malloc(n_keys * sizeof *keys);
    if (!keys) return;
    memcpy(keys, from->keys + first, n_keys * sizeof *keys);
    while (--n && !vi->failed) {
        if (key == 'o' || key == 'O') {
            ed_cursor(e)->offset = ed_vi_line_end(e, ed_cursor(e)->offset);
            ed_vi_run(e, "new-line");
        }
        bool was = vi->repeating;
        vi->repeating = true;
        ed_vi_play(e, keys, n_keys);
        vi->repeating = was;
        if (!ed_vi_is_inserting(e)) break;
    }
    free(keys);
}

void ed_vi_end_insert(ed *e)
{
    struct ed_vi *vi = &e->vi;
    repeat_insert(e);
    ed_only_main(e);
    struct ed_cursor *cursor = ed_cursor(e);
    if (vi->auto_indent) drop_indent(e, cursor->offset);
    vi->last_insert = cursor->offset;
    e->window->doc->mark_begin = vi->insert_begin < cursor->offset ? vi->insert_begin : cursor->offset;
    e->window->doc->mark_end = cursor->offset;
    if (cursor->offset > ed_vi_line_begin(e, cursor->offset)) cursor->offset = ed_vi_before(e, cursor->offset);
    cursor->anchor = ED_NONE;
    cursor->goal = -1;
    vi->mode = ED_VI_NORMAL;
    vi->auto_indent = vi->block_appends = false;
}

/* In replace mode, replaces the character at the cursor and stores the old one for backspace. */
static void overwrite(ed *e, uint32_t code)
{
    struct ed_vi *vi = &e->vi;
    uint8_t text[64];
    uint64_t at = ed_cursor(e)->offset;
    size_t n = 0;
    if (at < ed_vi_line_end(e, at)) {
        n = (size_t)(ed_vi_behind(e, at) - at);
        if (n > sizeof text) n = sizeof text;
        n = whit_text_read(ed_text(e), at, text, n);
    }
    uint8_t length = (uint8_t)n;
    if (vi->replaced.size_bytes < REPLACED_BYTES) {
        whit_buf_append(&vi->replaced, text, n);
        whit_buf_append(&vi->replaced, &length, 1);
    }
    n = whit_utf8_encode(code, text);
    ed_edit(e, at, length, text, n);
    *ed_cursor(e) = (struct ed_cursor){at + n, ED_NONE, -1};
}

static void bring_back(ed *e)
{
    struct ed_vi *vi = &e->vi;
    uint64_t at = ed_cursor(e)->offset, before = at > ed_vi_line_begin(e, at) ? ed_vi_before(e, at) : at;
    if (before == at) return;
    if (vi->replaced.size_bytes) {
        size_t n = vi->replaced.data[--vi->replaced.size_bytes];
        vi->replaced.size_bytes -= n;
        ed_edit(e, before, at - before, vi->replaced.data + vi->replaced.size_bytes, n);
    }
    *ed_cursor(e) = (struct ed_cursor){before, ED_NONE, -1};
}

static void delete_back_to(ed *e, uint64_t to)
{
    uint64_t at = ed_cursor(e)->offset;
    if (to < at) ed_edit(e, to, at - to, NULL, 0);
}

/* Returns the beginning of the word before the offset `to`, at least `line`, the beginning of the line. */
static uint64_t word_begin(ed *e, uint64_t line, uint64_t to)
{
    while (to > line && !ed_vi_class(e, ed_vi_before(e, to), false)) to = ed_vi_before(e, to);
    int class = to > line ? ed_vi_class(e, ed_vi_before(e, to), false) : 0;
    while (to > line && class && ed_vi_class(e, ed_vi_before(e, to), false) == class) to = ed_vi_before(e, to);
    return to;
}

void ed_vi_typed_register(ed *e, struct ed_vi_call call)
{
    struct ed_vi_register reg;
    if (!ed_vi_register_read(e, call.given, &reg))
        ed_complain(e, "the register is empty");
    else
        ed_paste(e, reg.text, reg.n_bytes);
}

/* Inserts a character literally; in replace mode it replaces the character at the cursor. */
static void insert_code(ed *e, uint32_t code)
{
    uint8_t text[4];
    if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) {
        ed_complain(e, "U+%X is not a character", code);
    } else if (e->vi.mode == ED_VI_REPLACE && e->window->n_cursors == 1) {
        overwrite(e, code);
    } else {
        ed_type(e, (const char *)text, whit_utf8_encode(code, text));
    }
}

/* Returns the code point that a key after Ctrl-V inserts, or UINT32_MAX. */
static uint32_t literal_code(whit_key key)
{
    static const struct {
        uint32_t key, code;
    } named[] = {{WHIT_KEY_ENTER, '\r'}, {WHIT_KEY_TAB, '\t'}, {WHIT_KEY_ESCAPE, 27}, {WHIT_KEY_BACKSPACE, 127}};
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        if (key.code == named[i].key) return named[i].code;
    if (key.mods == WHIT_MOD_CTRL && key.code >= '@' && key.code < 128) return key.code & 31;
    return key.mods || key.code >= WHIT_KEY_NONE ? UINT32_MAX : key.code;
}

/* Returns whether Ctrl-V was typed, so that the next key is inserted literally. */
bool ed_vi_is_literal(const ed *e)
{
    return e->vi.pending && e->vi.pending->key == (ED_VI_CTRL | 'v');
}

static int digit_value(uint32_t code)
{
    if (code >= '0' && code <= '9') return (int)code - '0';
    uint32_t letter = code | 32;
    return letter >= 'a' && letter <= 'f' ? (int)letter - 'a' + 10 : 99;
}

/* Reads a key after Ctrl-V, and inserts the character when its number is complete: up to three decimal digits, o and
 * three octal digits, x and two, u and four or U and eight hexadecimal digits; any other key is inserted itself.
 * Returns false if this key ends the number and must be run as usual. */
static bool literal_key(ed *e, whit_key key)
{
    static const struct {
        char letter;
        uint8_t base, n_most;
    } kinds[] = {{'o', 8, 3}, {'O', 8, 3}, {'x', 16, 2}, {'X', 16, 2}, {'u', 16, 4}, {'U', 16, 8}};
    struct ed_vi *vi = &e->vi;
    int digit = key.mods ? 99 : digit_value(key.code);
    if (!vi->literal.base) {
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
            if (key.mods || key.code != (uint8_t)kinds[i].letter) continue;
            vi->literal.base = kinds[i].base;
            vi->literal.n_most = kinds[i].n_most;
            return true;
        }
        if (digit > 9) {
            vi->pending = NULL;
            uint32_t code = literal_code(key);
            if (code != UINT32_MAX) insert_code(e, code);
            return true;
        }
        vi->literal.base = 10;
        vi->literal.n_most = 3;
    }
    bool taken = digit < vi->literal.base;
    if (taken) {
        vi->literal.value = vi->literal.value * vi->literal.base + (uint32_t)digit;
        vi->literal.n_digits++;
    }
    if (taken && vi->literal.n_digits < vi->literal.n_most) return true;
    vi->pending = NULL;
    if (vi->literal.n_digits) insert_code(e, vi->literal.value);
    return taken;
}

void ed_vi_typed_delete(ed *e, struct ed_vi_call call)
{
    uint64_t at = ed_cursor(e)->offset, line = ed_vi_line_begin(e, at), first = ed_skip_blanks(e, line);
    if (at == line)
        ed_vi_run(e, "backspace");
    else {
        uint64_t begin;
        if (call.how == 'w')
            begin = word_begin(e, line, at);
        else if (first < at)
            begin = first;
        else
            begin = line;
        delete_back_to(e, begin);
    }
}

void ed_vi_typed_indent(ed *e, struct ed_vi_call call)
{
    uint64_t at = ed_cursor(e)->offset, line = ed_vi_line_begin(e, at), end_before = ed_vi_line_end(e, at);
    ed_vi_run(e, call.how == 't' ? "indent" : "outdent");
    uint64_t end = ed_vi_line_end(e, line);
    at = at + end > end_before + line ? at + end - end_before : line;
    *ed_cursor(e) = (struct ed_cursor){at, ED_NONE, -1};
}

void ed_vi_typed_once(ed *e, struct ed_vi_call call)
{
    (void)call;
    e->vi.once = true;
    e->vi.mode = ED_VI_NORMAL;
    begin_again(e);
    e->vi.typed.n = 0;
}

static bool control_key(ed *e, uint32_t code)
{
    struct ed_vi *vi = &e->vi;
    const struct ed_vi_row *row = ed_vi_row_find(0, ED_VI_CTRL | code, ED_VI_IN_INSERT);
    if (!row) return false;
    /* the editor's own command for this key would select, cut or delete more than one expects in insert mode */
    if (row->effect == ED_VI_NOTHING) {
        ed_complain(e, "C-%c does nothing in insert mode", (char)code);
    } else if (row->argument) {
        vi->pending = row;
        memset(&vi->literal, 0, sizeof vi->literal);
    } else {
        ed_vi_row_run(e, row, 0);
    }
    return true;
}

void ed_vi_paste_typed(ed *e, const char *text, size_t n)
{
    struct ed_vi *vi = &e->vi;
    size_t length;
    vi->auto_indent = false;
    if (!vi->repeating)
        for (size_t i = 0; i < n; i += length) {
            uint32_t code = whit_utf8_decode((const uint8_t *)text + i, n - i, &length);
            whit_key key = {.code = code == '\n' || code == '\r' ? WHIT_KEY_ENTER : code, .mods = ED_VI_LITERAL};
            if (code == WHIT_UTF8_INVALID || !ed_vi_keys_add(&vi->typed, key)) break;
        }
    ed_paste(e, text, n);
}

/* Runs a key in insert or replace mode. Returns false if the key is not one of vi's. */
bool ed_vi_insert_key(ed *e, whit_key key)
{
    struct ed_vi *vi = &e->vi;
    const struct ed_vi_row *pending = vi->pending;
    if (ed_vi_is_literal(e)) {
        vi->auto_indent = false;
        if (literal_key(e, key)) return true;
    } else if (pending) {
        vi->pending = NULL;
        if (key.code < WHIT_KEY_NONE) ed_vi_row_run(e, pending, key.code);
        return true;
    }
    if (key.mods & ED_VI_LITERAL) {
        uint8_t text[4] = {'\n'};
        size_t n = key.code == WHIT_KEY_ENTER ? 1 : whit_utf8_encode(key.code, text);
        ed_edit(e, ed_cursor(e)->offset, 0, text, n);
        return true;
    }
    if (key.mods == WHIT_MOD_CTRL && key.code < 128) return control_key(e, key.code);
    if (key.mods & ~WHIT_MOD_SHIFT) return false;
    bool is_text = key.code < WHIT_KEY_NONE;
    if (vi->mode == ED_VI_REPLACE && e->window->n_cursors == 1) {
        if (is_text) {
            overwrite(e, key.code);
            return true;
        }
        if (key.code == WHIT_KEY_BACKSPACE) {
            bring_back(e);
            return true;
        }
    }
    if (key.code == WHIT_KEY_ENTER) {
        bool bare = vi->auto_indent;
        uint64_t line = ed_vi_line_begin(e, ed_cursor(e)->offset);
        ed_vi_run(e, "new-line");
        uint64_t at = ed_cursor(e)->offset, first = ed_skip_blanks(e, at);
        /* drop the blanks that followed the cursor, since the new line is already indented */
        if (e->window->n_cursors == 1 && first > at) ed_edit(e, at, first - at, NULL, 0);
        if (bare && e->window->n_cursors == 1) drop_indent(e, line);
        vi->auto_indent = true;
        return true;
    }
    switch (key.code) {
    case WHIT_KEY_UP:
    case WHIT_KEY_DOWN:
    case WHIT_KEY_LEFT:
    case WHIT_KEY_RIGHT:
    case WHIT_KEY_HOME:
    case WHIT_KEY_END:
    case WHIT_KEY_PAGE_UP:
    case WHIT_KEY_PAGE_DOWN: begin_again(e); break;
    default: vi->auto_indent = false;
    }
    return false;
}
