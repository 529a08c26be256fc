/* SPDX-License-Identifier: MIT
 * Shows the changes since the last commit by marks in the margin, and moves from one change to the next. */
#include "editor/state.h"

#include <stdlib.h>

/* maximum size in bytes of a text whose marks are updated while it is modified; those of larger texts, up to
 * TEXT_BYTES, are updated when they are saved */
#define TYPED_BYTES (256u << 10)
#define TEXT_BYTES  (8u << 20)

void ed_git_forget(struct ed_doc *doc)
{
    whit_git_close(doc->git.file);
    free(doc->git.changes);
    doc->git = (struct ed_git){0};
}

bool ed_git_update(struct ed_doc *doc)
{
    struct ed_git *git = &doc->git;
    whit_buffer *buffer = doc->buffer;
    if (doc->compared.with) return ed_compare_update(doc);
    if (!buffer->path) return false;
    if (!git->asked) {
        git->asked = true;
        git->version = UINT64_MAX;
        whit_git_ask(buffer->path, &git->file);
    }
    whit_git_pump(git->file);
    uint64_t size = whit_text_size(buffer->text);
    bool waits = size > TYPED_BYTES && whit_buffer_is_modified(buffer) && git->version != UINT64_MAX;
    if (!whit_git_is_known(git->file) || git->version == buffer->version || waits || size > TEXT_BYTES) return false;
    git->version = buffer->version;
    git->n_changes = 0;
    whit_git_change *room = git->changes ? git->changes : malloc(ED_GIT_CHANGES_MAX * sizeof *room);
    size_t n_mark = buffer->file.has_mark ? 3 : 0; /* the committed text includes the byte order mark */
    char *text = malloc(n_mark + size + 1);
    git->changes = room;
    if (text && room) {
        memcpy(text, WHIT_FILE_MARK, n_mark);
        size_t n = n_mark + whit_text_read(buffer->text, 0, text + n_mark, size);
        n = whit_git_changes(git->file, text, n, room, ED_GIT_CHANGES_MAX);
        git->n_changes = n < ED_GIT_CHANGES_MAX ? n : ED_GIT_CHANGES_MAX;
    }
    free(text);
    return true;
}

const char *ed_git_mark(const struct ed_doc *doc, uint64_t line, whit_style *style)
{
    const struct ed_git *git = &doc->git;
    size_t low = 0, high = git->n_changes;
    while (low < high) { /* binary search for the first change that does not end before the line */
        size_t middle = (low + high) / 2;
        const whit_git_change *change = &git->changes[middle];
        if (change->line + (change->n_lines ? change->n_lines : 1) <= line)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == git->n_changes || git->changes[low].line > line) return NULL;
    switch (git->changes[low].kind) {
    case WHIT_GIT_ADDED: *style = WHIT_STYLE_ADDED; return "+";
    case WHIT_GIT_CHANGED: *style = WHIT_STYLE_CHANGED; return "~";
    default: *style = WHIT_STYLE_REMOVED; return "-";
    }
}

static void go(ed *e, bool back)
{
    struct ed_doc *doc = e->window->doc;
    ed_git_update(doc);
    const struct ed_git *git = &doc->git;
    /* git has not answered yet; its answer continues the movement, unless a key is pressed first */
    if (!doc->compared.with && whit_git_fd(git->file) >= 0) {
        e->git_wish = back ? ED_GIT_PREVIOUS : ED_GIT_NEXT;
        return;
    }
    uint64_t line = whit_text_line_at(ed_text(e), ed_cursor(e)->offset);
    if (!doc->compared.with && !whit_git_is_known(git->file)) {
        ed_complain(e, "git has no committed text of %s, or it is binary or over 8 MiB", doc->buffer->name);
        return;
    }
    if (!git->n_changes || line == UINT64_MAX) {
        ed_say(e, doc->compared.with ? "the two texts are equal" : "nothing was changed since the last commit");
        return;
    }
    uint64_t lines = whit_text_n_lines(ed_text(e)) + 1;
    /* the default, if there is no change in this direction, wraps around */
    size_t chosen = back ? git->n_changes - 1 : 0;
    for (size_t i = 0; i < git->n_changes; i++) {
        uint64_t at = git->changes[i].line < lines ? git->changes[i].line : lines;
        if (back && at < line + 1) chosen = i;
        if (!back && at > line + 1) {
            chosen = i;
            break;
        }
    }
    ed_place(e, git->changes[chosen].line < lines ? git->changes[chosen].line : lines, 1);
    ed_say(e, "change %zu of %zu", chosen + 1, git->n_changes);
}

bool ed_git_answer(ed *e)
{
    whit_git_file *file = e->window->doc->git.file;
    if (whit_git_fd(file) < 0) return false;
    whit_git_pump(file);
    if (whit_git_fd(file) >= 0 || !e->git_wish) return false;
    bool back = e->git_wish == ED_GIT_PREVIOUS;
    e->git_wish = ED_GIT_NOTHING;
    go(e, back);
    return true;
}

void ed_git_next(ed *e)
{
    go(e, false);
}

void ed_git_previous(ed *e)
{
    go(e, true);
}
