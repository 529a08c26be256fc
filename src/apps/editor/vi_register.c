/* SPDX-License-Identifier: MIT
 * Keeps vi's registers, and runs the commands that put their content. The unnamed register, "+ and "* are the editor's
 * clipboard. */
#include "editor/state.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

static void set_register(struct ed_vi_register *reg, char *text, size_t n, bool lines, bool block)
{
    free(reg->text);
    *reg = (struct ed_vi_register){text, n, lines, block};
}

static void set_copy(struct ed_vi_register *reg, const char *text, size_t n, bool lines, bool block)
{
    char *copy = malloc(n + 1);
    if (!copy) return;
    memcpy(copy, text, n);
    copy[n] = 0;
    set_register(reg, copy, n, lines, block);
}

static void append_text(struct ed_vi_register *reg, const char *text, size_t n, bool lines)
{
    bool feed = lines && reg->n_bytes && reg->text[reg->n_bytes - 1] != '\n';
    char *grown = realloc(reg->text, reg->n_bytes + n + 3);
    if (!grown) return;
    size_t at = reg->n_bytes;
    if (feed) grown[at++] = '\n';
    memcpy(grown + at, text, n);
    at += n;
    if (reg->lines && at && grown[at - 1] != '\n') grown[at++] = '\n';
    grown[at] = 0;
    *reg = (struct ed_vi_register){grown, at, reg->lines || lines, false};
}

/* Stores copied or deleted text in the clipboard (the unnamed register) and, as vi does, in the register that the
 * command names or else in a numbered register or the small-delete register. The command's register "_ stores
 * nothing. */
void ed_vi_register_keep(ed *e, whit_range range, bool lines, bool block, bool deleted)
{
    struct ed_vi *vi = &e->vi;
    uint32_t name = vi->wanted_register;
    if (name == '_') return;
    if (block) {
        whit_buf text = {.limit_bytes = ED_VI_BYTES_MAX};
        for (uint64_t line = ed_vi_line_begin(e, range.begin); line != ED_NONE && line <= range.end;
             line = ed_vi_next_line(e, line)) {
            whit_range part;
            if (text.size_bytes || line != ed_vi_line_begin(e, range.begin)) whit_buf_append(&text, "\n", 1);
            if (!ed_vi_selection(e, line, line, &part, 1) || part.end <= part.begin) continue;
            size_t n = (size_t)(part.end - part.begin);
            if (!whit_buf_reserve(&text, n)) break;
            text.size_bytes += whit_text_read(ed_text(e), part.begin, text.data + text.size_bytes, n);
        }
        char *copy = text.failed ? NULL : malloc(text.size_bytes + 1);
        if (copy) {
            if (text.size_bytes) memcpy(copy, text.data, text.size_bytes);
            copy[text.size_bytes] = 0;
            free(e->clipboard.text);
            e->clipboard.text = copy;
            e->clipboard.n_bytes = text.size_bytes;
            e->clipboard.lines = false;
            if (e->options.copy) e->options.copy(e->options.user, copy, text.size_bytes);
        }
        whit_buf_free(&text);
    } else {
        ed_copy_range(e, range, lines);
    }
    e->clipboard.block = block;
    if (!e->clipboard.text) return;
    const char *text = e->clipboard.text;
    size_t n = e->clipboard.n_bytes;
    if (lines && n && text[n - 1] != '\n') { /* add the missing line feed of the text's last line */
        const char *ending = ed_line_ending(e, ed_vi_line_begin(e, range.begin));
        char *grown = realloc(e->clipboard.text, n + 3);
        if (!grown) return;
        strcpy(grown + n, ending);
        n += strlen(ending);
        text = e->clipboard.text = grown;
        e->clipboard.n_bytes = n;
    }
    if (name < 128 && isupper((int)name)) {
        append_text(&vi->letters[name - 'A'], text, n, lines);
    } else if (name < 128 && islower((int)name)) {
        set_copy(&vi->letters[name - 'a'], text, n, lines, block);
    } else if (!deleted) {
        set_copy(&vi->numbered[0], text, n, lines, block);
    } else if (lines || memchr(text, '\n', n)) {
        free(vi->numbered[ED_VI_NUMBERED - 1].text);
        memmove(vi->numbered + 2, vi->numbered + 1, (ED_VI_NUMBERED - 2) * sizeof *vi->numbered);
        vi->numbered[1] = (struct ed_vi_register){0};
        set_copy(&vi->numbered[1], text, n, lines, block);
    } else {
        set_copy(&vi->small, text, n, lines, block);
    }
}

void ed_vi_registers_free(ed *e)
{
    struct ed_vi *vi = &e->vi;
    for (size_t i = 0; i < 26; i++) free(vi->letters[i].text);
    for (size_t i = 0; i < ED_VI_NUMBERED; i++) free(vi->numbered[i].text);
    free(vi->small.text);
}

/* Sets *reg to the content of a register, whose text stays owned by the register. Returns false if it is empty. */
bool ed_vi_register_read(ed *e, uint32_t name, struct ed_vi_register *reg)
{
    const struct ed_vi *vi = &e->vi;
    char *text = NULL;
    if (!name || name == '"' || name == '+' || name == '*') {
        *reg = (struct ed_vi_register){e->clipboard.text, e->clipboard.n_bytes, e->clipboard.lines, e->clipboard.block};
        return e->clipboard.text && e->clipboard.n_bytes;
    }
    if (name < 128 && isalpha((int)name)) {
        *reg = vi->letters[tolower((int)name) - 'a'];
        return reg->n_bytes > 0;
    }
    if (name >= '0' && name <= '9') *reg = vi->numbered[name - '0'];
    if (name == '-') *reg = vi->small;
    if ((name >= '0' && name <= '9') || name == '-') return reg->n_bytes > 0;
    if (name == '%') text = e->window->doc->buffer->name;
    if (name == '/') text = e->find.pattern;
    if (name == ':') text = e->vi.line;
    *reg = (struct ed_vi_register){text, text ? strlen(text) : 0, false, false};
    return reg->n_bytes > 0;
}

bool ed_vi_register_is_name(uint32_t name)
{
    return name && name < 128 && (isalnum((int)name) || strchr("\"+*-_%/:", (int)name));
}

/* Inserts the lines of a register into successive lines of the text, all at the same column. */
static void put_block(ed *e, const struct ed_vi_register *reg, uint64_t at, uint32_t n)
{
    size_t width = 0;
    for (const char *line = reg->text, *end = line + reg->n_bytes; line <= end;) {
        const char *feed = memchr(line, '\n', (size_t)(end - line));
        size_t length = (size_t)((feed ? feed : end) - line);
        if (length > width) width = length;
        if (!feed) break;
        line = feed + 1;
    }
    int column = ed_vi_column(e, at);
    uint64_t row = ed_vi_line_begin(e, at);
    if (width * n > ED_VI_BYTES_MAX / 1024) return;
    for (const char *line = reg->text, *end = line + reg->n_bytes; line <= end;) {
        const char *feed = memchr(line, '\n', (size_t)(end - line));
        size_t length = (size_t)((feed ? feed : end) - line);
        uint64_t to = ed_vi_at_column(e, row, column), row_end = ed_vi_line_end(e, row);
        int there = ed_vi_column(e, to);
        whit_buf text = {0};
        for (; there < column; there++) whit_buf_append(&text, " ", 1);
        for (uint32_t i = 0; i < n; i++) {
            whit_buf_append(&text, line, length);
            for (size_t pad = length; pad < width && (i + 1 < n || to < row_end); pad++) whit_buf_append(&text, " ", 1);
        }
        bool ok = !text.failed && ed_edit(e, to, 0, text.data, text.size_bytes);
        whit_buf_free(&text);
        if (!ok || !feed) break;
        line = feed + 1;
        uint64_t next = ed_vi_next_line(e, row);
        if (next == ED_NONE) {
            uint64_t last = ed_vi_end(e);
            const char *ending = ed_line_ending(e, row);
            if (!ed_edit(e, last, 0, ending, strlen(ending))) break;
            next = last + strlen(ending);
        }
        row = next;
    }
}

/* Puts a register's text at the cursor, as many times as the count says. If `line` is not ED_NONE, puts it as whole
 * lines before or after the line at that offset instead, for :put. */
void ed_vi_put(ed *e, bool before, bool cursor_behind, uint64_t line)
{
    struct ed_vi_register reg;
    uint32_t n = ed_vi_count(e);
    if (!ed_vi_may_change(e)) return;
    if (!ed_vi_register_read(e, e->vi.wanted_register, &reg)) {
        ed_vi_fail(e, "that register is empty");
        return;
    }
    if (reg.n_bytes > ED_VI_BYTES_MAX / n) {
        ed_vi_fail(e, "the pasted text would be larger than %u MiB", ED_VI_BYTES_MAX >> 20);
        return;
    }
    bool of_line = line != ED_NONE;
    uint64_t at = of_line ? line : ed_cursor(e)->offset;
    if (reg.block && !of_line) {
        if (!before && at < ed_vi_line_end(e, at)) at = ed_vi_behind(e, at);
        put_block(e, &reg, at, n);
        *ed_cursor(e) = (struct ed_cursor){at, ED_NONE, -1};
        return;
    }
    size_t total = reg.n_bytes * n;
    char *text = malloc(total + 4);
    if (!text) {
        ed_vi_fail(e, "there is not enough memory for %zu bytes", total);
        return;
    }
    for (uint32_t i = 0; i < n; i++) memcpy(text + i * reg.n_bytes, reg.text, reg.n_bytes);
    uint64_t cursor;
    bool lines = reg.lines || of_line;
    if (lines) {
        const char *ending = ed_line_ending(e, ed_vi_line_begin(e, at));
        size_t n_ending = strlen(ending);
        if (text[total - 1] != '\n') {
            memcpy(text + total, ending, n_ending);
            total += n_ending;
        }
        if (before) {
            at = ed_vi_line_begin(e, at);
            ed_edit(e, at, 0, text, total);
        } else { /* insert before the line's own line feed, which then ends the inserted text */
            at = whit_text_line_end(ed_text(e), at);
            if (at < whit_text_size(ed_text(e)))
                n_ending = 1;
            else if (total > 1 && text[total - 2] == '\r')
                total--; /* the last line has no CR LF, so the register's final CR LF is moved to the front */
            memmove(text + n_ending, text, total - 1);
            memcpy(text, n_ending == 1 ? "\n" : ending, n_ending);
            if (ed_edit(e, at, 0, text, total - 1 + n_ending)) at += n_ending;
        }
        cursor = cursor_behind ? at + total : ed_vi_first(e, at);
    } else {
        if (!before && at < ed_vi_line_end(e, at)) at = ed_vi_behind(e, at);
        bool several = memchr(text, '\n', total);
        ed_edit(e, at, 0, text, total);
        if (cursor_behind)
            cursor = at + total;
        else if (several)
            cursor = at;
        else
            cursor = ed_vi_before(e, at + total);
    }
    free(text);
    e->window->doc->mark_begin = at;
    if (lines)
        e->window->doc->mark_end = ed_vi_before(e, at + total);
    else if (at + total)
        e->window->doc->mark_end = ed_vi_before(e, at + total);
    else
        e->window->doc->mark_end = 0;
    *ed_cursor(e) = (struct ed_cursor){cursor, ED_NONE, -1};
}
