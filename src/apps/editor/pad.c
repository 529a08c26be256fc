/* SPDX-License-Identifier: MIT
 * Opens and fills pads, which are texts that the editor writes, such as the agent's panel and a command's output. A
 * pad has no file, is read-only for the person, and is closed without a question. */
#include "editor/state.h"

#include <stdlib.h>

#define PAD_BYTES (4u << 20) /* size in bytes above which the older half of a pad is deleted */

struct ed_doc *ed_pad_open(ed *e, struct ed_doc **pad, const char *name, const char *like)
{
    whit_buffer *buffer;
    whit_error error;
    if (*pad) return *pad;
    if (whit_buffer_open(NULL, NULL, &buffer, &error) != WHIT_OK) return NULL;
    char *copy = strdup(name);
    if (copy) {
        free(buffer->name);
        buffer->name = copy;
    }
    struct ed_doc *doc = ed_doc_add(e, buffer);
    if (!doc) return NULL;
    whit_syntax_close(doc->syntax);
    doc->syntax = whit_syntax_for(like, NULL);
    buffer->read_only = true;
    doc->grows = true;
    return *pad = doc;
}

void ed_pad_append(ed *e, struct ed_doc *doc, const char *text, size_t n)
{
    whit_error error;
    if (!doc || !n) return;
    whit_buffer *buffer = doc->buffer;
    uint64_t size = whit_text_size(buffer->text);
    buffer->read_only = false;
    /* nothing is deleted while hunks in the panel wait for approval */
    const bool waits = doc == e->panel.doc && e->panel.hunks;
    if (size > PAD_BYTES && !waits)
        whit_buffer_edit(buffer, 0, whit_text_line_begin(buffer->text, size / 2), NULL, 0, &error);
    if (whit_buffer_edit(buffer, whit_text_size(buffer->text), 0, text, n, &error) != WHIT_OK)
        ed_complain_error(e, &error);
    buffer->read_only = true;
    whit_buffer_mark_saved(buffer);
}

void ed_pad_clear(struct ed_doc *doc)
{
    whit_error error;
    doc->buffer->read_only = false;
    (void)whit_buffer_edit(doc->buffer, 0, whit_text_size(doc->buffer->text), NULL, 0, &error);
    doc->buffer->read_only = true;
    whit_buffer_mark_saved(doc->buffer);
}

struct ed_window *ed_pad_window(const ed *e, const struct ed_doc *doc)
{
    struct ed_window *window = e->window;
    do {
        if (window->doc == doc) return window;
        window = ed_window_next(e, window);
    } while (window != e->window);
    return NULL;
}

void ed_pad_release(ed *e, struct ed_doc *doc)
{
    if (!doc->grows) return;
    doc->grows = false;
    ed_panel_forget(e, doc);
    ed_shell_forget(e, doc);
    ed_files_forget(e, doc);
}

bool ed_pad_show(ed *e, struct ed_doc *doc, bool beside)
{
    struct ed_window *window = ed_pad_window(e, doc);
    if (window) {
        e->window = window;
    } else {
        if (!ed_window_split(e, beside) && e->prompt.kind) return false;
        ed_window_show(e, e->window, doc);
        ed_windows_layout(e);
    }
    ed_only_main(e);
    *ed_cursor(e) = (struct ed_cursor){whit_text_size(doc->buffer->text), ED_NONE, -1};
    e->window->moved_away = false;
    return true;
}
