/* SPDX-License-Identifier: MIT
 * Changes texts: typing, deleting, indentation, the clipboard, saving. */
#include "base/path.h"
#include "base/phrase.h"
#include "editor/state.h"

#include <stdio.h>
#include <stdlib.h>

bool ed_edit(ed *e, uint64_t offset, uint64_t n_remove, const void *data, size_t n)
{
    whit_error error;
    if (whit_buffer_edit(e->window->doc->buffer, offset, n_remove, data, n, &error) == WHIT_OK) return true;
    ed_complain_error(e, &error);
    return false;
}

bool ed_delete_selection(ed *e, struct ed_cursor *cursor)
{
    whit_range range = ed_selection(cursor);
    cursor->anchor = ED_NONE;
    return range.end > range.begin && ed_edit(e, range.begin, range.end - range.begin, NULL, 0);
}

/* Outdents the cursor's line by one level if only indentation precedes the cursor, since a closing bracket is about to
 * be typed there. */
static void outdent_closing(ed *e, struct ed_cursor *cursor)
{
    whit_layout *layout = ed_layout(e);
    struct ed_doc *doc = e->window->doc;
    uint64_t begin = whit_layout_line_begin(layout, cursor->offset), at = begin;
    while (at < cursor->offset && (whit_layout_byte(layout, at) == ' ' || whit_layout_byte(layout, at) == '\t')) at++;
    if (at != cursor->offset || at == begin) return;
    uint64_t n = 1;
    if (whit_layout_byte(layout, at - 1) == ' ')
        for (n = 0; n < (uint64_t)doc->indent_columns && at - n > begin && whit_layout_byte(layout, at - n - 1) == ' ';)
            n++;
    ed_edit(e, at - n, n, NULL, 0);
}

uint32_t ed_closing(int byte)
{
    static const char pairs[] = "()[]{}\"\"''``";
    const char *found = byte > 0 ? strchr(pairs, byte) : NULL;
    return found && (found - pairs) % 2 == 0 ? (uint8_t)found[1] : 0;
}

/* With the setting `pairs`: inserts an opening sign with its closing sign, or moves past an equal closing sign. Returns
 * false if `typed` must be inserted as usual. */
static bool type_pair(ed *e, struct ed_cursor *cursor, char typed)
{
    whit_layout *layout = ed_layout(e);
    int next = whit_layout_byte(layout, cursor->offset);
    int before = cursor->offset ? whit_layout_byte(layout, cursor->offset - 1) : ' ';
    uint32_t closing = ed_closing((uint8_t)typed);
    bool closes = strchr(")]}\"'`", typed) != NULL, quotes = closing == (uint8_t)typed;
    if (closes && next == typed && before != '\\') {
        cursor->offset++;
        return true;
    }
    bool room = next < 0 || strchr(" \t\r\n)]},;:.", next) != NULL;
    if (!closing || !room || before == '\\' || (quotes && (ed_is_word(before) || before == typed))) return false;
    const char both[2] = {typed, (char)closing};
    if (!ed_edit(e, cursor->offset, 0, both, 2)) return true;
    cursor->offset--; /* the cursor moves back between the two signs */
    return true;
}

void ed_type(ed *e, const char *text, size_t n)
{
    struct ed_window *window = e->window;
    if (window->doc->buffer->read_only) {
        ed_complain_read_only(e);
        return;
    }
    for (size_t i = 0; i < window->n_cursors; i++) {
        struct ed_cursor *cursor = &window->cursors[i];
        ed_delete_selection(e, cursor);
        if (n == 1 && strchr(")]}", *text)) outdent_closing(e, cursor);
        if (e->settings.pairs && n == 1 && type_pair(e, cursor, *text)) continue;
        if (!ed_edit(e, cursor->offset, 0, text, n)) return;
    }
    window->moved_away = false;
    if (window->n_cursors > 1) whit_buffer_seal(window->doc->buffer);
}

void ed_paste(ed *e, const char *text, size_t n)
{
    struct ed_window *window = e->window;
    if (window->doc->buffer->read_only || !n) {
        if (n) ed_complain_read_only(e);
        return;
    }
    /* In a paste, terminals send each line end as a carriage return; replace it by the line end of this text. */
    const char *ending = ed_line_ending(e, whit_layout_line_begin(ed_layout(e), ed_cursor(e)->offset));
    size_t kept = 0, n_ending = strlen(ending);
    char *copy = n <= SIZE_MAX / 2 ? malloc(n_ending * n) : NULL;
    if (!copy) {
        ed_complain(e, "there is not enough memory for a paste of %zu bytes", n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\r' && i + 1 < n && text[i + 1] == '\n') continue;
        bool ends = text[i] == '\r' || text[i] == '\n';
        size_t n_copied = ends ? n_ending : 1;
        memcpy(copy + kept, ends ? ending : text + i, n_copied);
        kept += n_copied;
    }
    whit_buffer_seal(window->doc->buffer);
    for (size_t i = 0; i < window->n_cursors; i++) {
        ed_delete_selection(e, &window->cursors[i]);
        if (!ed_edit(e, window->cursors[i].offset, 0, copy, kept)) break;
    }
    whit_buffer_seal(window->doc->buffer);
    free(copy);
    window->moved_away = false;
}

void ed_copy_range(ed *e, whit_range range, bool lines)
{
    size_t n = (size_t)(range.end - range.begin);
    char *copy = malloc(n + 1);
    if (!copy) {
        ed_complain(e, "there is not enough memory to copy %zu bytes", n);
        return;
    }
    n = whit_text_read(ed_text(e), range.begin, copy, n);
    copy[n] = 0;
    free(e->clipboard.text);
    e->clipboard.text = copy;
    e->clipboard.n_bytes = n;
    e->clipboard.lines = lines;
    e->clipboard.block = false;
    if (e->options.copy) e->options.copy(e->options.user, copy, n);
}

bool ed_put_lines(ed *e, struct ed_doc *doc, uint64_t at, const char *text, size_t n)
{
    whit_buffer *buffer = doc->buffer;
    whit_error error = {0};
    uint64_t size = whit_text_size(buffer->text);
    if (at > size) at = size;
    bool open_end = at == size && size && whit_text_byte(buffer->text, size - 1) != '\n';
    whit_buffer_seal(buffer);
    bool ok = !open_end || whit_buffer_edit(buffer, at, 0, "\n", 1, &error) == WHIT_OK;
    at += open_end;
    ok = ok && (!n || whit_buffer_edit(buffer, at, 0, text, n, &error) == WHIT_OK);
    if (ok && n && text[n - 1] != '\n') ok = whit_buffer_edit(buffer, at + n, 0, "\n", 1, &error) == WHIT_OK;
    whit_buffer_seal(buffer);
    if (!ok) ed_complain_error(e, &error);
    if (ok && e->window->doc == doc && e->prompt.kind != ED_PROMPT_REPLACING) { /* which is about the cursor's place */
        ed_only_main(e);
        *ed_cursor(e) = (struct ed_cursor){at, ED_NONE, -1};
    }
    return ok;
}

/* Sets a document's indentation: as the setting `indent` says (-1: tabs, n > 0: n spaces) or, if it is 0, from the
 * first 400 lines: tabs, or the most frequent number of columns by which a line is indented deeper than the line before
 * (4 if no line is). Texts of make, and of go without indentation, then get tabs. */
void ed_indent_detect(struct ed_doc *doc, int tab_columns, int indent)
{
    size_t tabs = 0, deeper[9] = {0};
    int before = 0;
    uint64_t at = 0;
    const whit_text *text = doc->buffer->text;
    for (int line = 0; line < 400 && at < whit_text_size(text); line++) {
        char begin[64];
        size_t n = whit_text_read(text, at, begin, sizeof begin);
        int spaces = 0;
        while ((size_t)spaces < n && begin[spaces] == ' ') spaces++;
        bool blank = (size_t)spaces < n && (begin[spaces] == '\n' || begin[spaces] == '*');
        if (n && begin[0] == '\t') tabs++;
        if (!blank && n && begin[0] != '\t') {
            if (spaces > before && spaces - before <= 8) deeper[spaces - before]++;
            before = spaces;
        }
        at = whit_text_line_end(text, at) + 1;
    }
    int best = 0;
    size_t total = 0;
    for (int i = 2; i <= 8; i++) {
        total += deeper[i];
        if (deeper[i] > deeper[best] || !best) best = i;
    }
    doc->tab_columns = tab_columns;
    doc->indent_tabs = indent < 0 || (!indent && tabs > total);
    if (indent > 0)
        doc->indent_columns = indent;
    else if (doc->indent_tabs)
        doc->indent_columns = tab_columns;
    else if (deeper[best])
        doc->indent_columns = best;
    else
        doc->indent_columns = 4;
    if (!indent && !strcmp(whit_syntax_name(doc->syntax), "make")) doc->indent_tabs = true;
    if (!indent && !tabs && !total && !strcmp(whit_syntax_name(doc->syntax), "go")) doc->indent_tabs = true;
}

void ed_project_settings(struct ed_doc *doc)
{
    whit_editorconfig *project = &doc->project;
    memset(project, 0, sizeof *project);
    if (!doc->buffer->path) return;
    whit_editorconfig_read(doc->buffer->path, project);
    bool had_tabs = doc->indent_tabs;
    if (project->tab_columns) doc->tab_columns = project->tab_columns;
    if (project->tabs) doc->indent_tabs = project->tabs == WHIT_YES;
    if (project->indent_columns)
        doc->indent_columns = project->indent_columns;
    else if (doc->indent_tabs)
        doc->indent_columns = doc->tab_columns;
    else if (had_tabs)
        doc->indent_columns = 4;
}

#define TIDY_BYTES (64u << 20) /* maximum size of a text in bytes that is tidied; larger texts are saved as they are */

/* Removes trailing blanks and adds a final line feed if the project's settings say so, as one step of undo. */
static void tidy(struct ed_doc *doc)
{
    whit_buffer *buffer = doc->buffer;
    whit_error error;
    if (whit_text_size(buffer->text) > TIDY_BYTES) return;
    whit_buffer_seal(buffer);
    if (doc->project.trim == WHIT_YES) {
        uint64_t n_blanks = 0, at = whit_text_size(buffer->text);
        bool in_end = true; /* only blanks were found between `at` and the end of its line */
        while (at) {
            whit_span span = whit_text_before(buffer->text, at);
            uint64_t begin = at - span.size_bytes;
            bool changed = false;
            for (uint64_t i = span.size_bytes; i-- > 0;) {
                uint8_t byte = span.data[i];
                if (in_end && (byte == ' ' || byte == '\t')) {
                    n_blanks++;
                    continue;
                }
                uint64_t n = n_blanks;
                n_blanks = 0;
                /* blanks before a carriage return and line feed are trailing blanks, too */
                in_end = byte == '\n' || (byte == '\r' && in_end && !n);
                if (!n) continue;
                at = begin + i + 1;
                if (whit_buffer_edit(buffer, at, n, NULL, 0, &error) != WHIT_OK) return;
                changed = true; /* the span may be invalid after the edit */
                break;
            }
            if (!changed) at = begin;
        }
        if (n_blanks && whit_buffer_edit(buffer, 0, n_blanks, NULL, 0, &error) != WHIT_OK) return;
    }
    uint64_t size = whit_text_size(buffer->text);
    bool ends = size && whit_text_byte(buffer->text, size - 1) == '\n';
    if (doc->project.final_newline == WHIT_YES && size && !ends) {
        const char *ending = doc->project.carriage_return == WHIT_YES ? "\r\n" : "\n";
        whit_buffer_edit(buffer, size, 0, ending, strlen(ending), &error);
    }
    whit_buffer_seal(buffer);
}

static void say_saved(ed *e, const whit_buffer *buffer, const char *name)
{
    uint64_t lines = whit_text_n_lines(buffer->text), size = whit_text_size(buffer->text);
    if (size && whit_text_byte(buffer->text, size - 1) != '\n' && lines != UINT64_MAX) lines++;
    if (lines == UINT64_MAX)
        ed_say(e, "saved %s, %llu bytes", name, (unsigned long long)size);
    else
        ed_say(e, "saved %s, %llu line%s", name, (unsigned long long)lines, whit_plural(lines));
}

static void tell_saved(ed *e, struct ed_doc *doc)
{
    const whit_buffer *buffer = doc->buffer;
    doc->conflict_shown = false;
    ed_git_forget(doc);
    ed_graph_saved(e, doc);
    ed_language_saved(e, doc);
    if (!doc->syntax) doc->syntax = whit_syntax_for(buffer->path, NULL);
    say_saved(e, buffer, buffer->name);
}

/* Reports that the document was saved, or why it was not. */
static void end_save(ed *e, struct ed_doc *doc, whit_status status, const whit_error *error)
{
    if (status == WHIT_OK) {
        tell_saved(e, doc);
        return;
    }
    ed_complain_error(e, error);
    e->quitting = false;
}

void ed_save(ed *e, struct ed_doc *doc, bool force)
{
    whit_error error;
    whit_buffer *buffer = doc->buffer;
    if (!buffer->path) {
        ed_prompt_open(e, ED_PROMPT_SAVE_AS, "Save as: ", "");
        return;
    }
    if (buffer->read_only) {
        ed_complain(e, "%s is read-only; 'save-as' writes it elsewhere", buffer->name);
        return;
    }
    if (!force && whit_buffer_is_conflicting(buffer)) {
        const char *label = "changed by another program: o overwrite, r read again, Esc cancel";
        if (whit_file_is_lost(&buffer->file))
            label = "truncated by another program: r read again, Esc cancel";
        else if (!whit_path_exists(buffer->path))
            label = "removed by another program: o write it again, Esc cancel";
        doc->conflict_shown = true;
        ed_prompt_open(e, ED_PROMPT_CONFLICT, label, "");
        whit_file_identify(buffer->path, &e->prompt.there);
        return;
    }
    tidy(doc);
    end_save(e, doc, whit_buffer_save(buffer, force, &error), &error);
}

void ed_save_over(ed *e, struct ed_doc *doc, const whit_file_identity *there)
{
    whit_error error;
    tidy(doc);
    end_save(e, doc, whit_buffer_replace(doc->buffer, there, &error), &error);
}

bool ed_save_all(ed *e)
{
    struct ed_doc *shown = e->window->doc;
    size_t n_saved = 0;
    for (struct ed_doc *doc = e->docs; doc; doc = doc->next) {
        if (!whit_buffer_is_modified(doc->buffer) || (!doc->buffer->path && !whit_text_size(doc->buffer->text)))
            continue;
        ed_show(e, doc);
        if (e->prompt.kind) return false;
        ed_save(e, doc, false);
        if (e->prompt.kind || whit_buffer_is_modified(doc->buffer)) return false;
        n_saved++;
    }
    ed_show(e, shown);
    if (n_saved != 1) ed_say(e, n_saved ? "saved %zu files" : "everything is saved already", n_saved);
    return !e->prompt.kind;
}

void ed_save_under(ed *e, const char *path, bool force, const whit_file_identity *agreed)
{
    whit_error error;
    struct ed_doc *doc = e->window->doc;
    const struct ed_doc *other = ed_doc_find(e, path);
    whit_file_identity there;
    if (!*path) return;
    if (other && other != doc) {
        ed_complain(e, "%s is open in another buffer: close that buffer first", path);
        return;
    }
    whit_file_identify(path, &there);
    if (!force && !agreed && there.exists && !other) {
        if (strlen(path) >= sizeof e->prompt.text) {
            ed_complain(e, "the path is longer than %zu bytes, the limit", sizeof e->prompt.text - 1);
            return;
        }
        ed_prompt_open(e, ED_PROMPT_OVERWRITE, "the file exists: o overwrite, Esc cancel: ", path);
        e->prompt.version = doc->buffer->version;
        e->prompt.there = there;
        return;
    }
    if (agreed) there = *agreed;
    if (other) {
        ed_save(e, doc, force);
    } else {
        ed_language_forget(e, doc); /* the language server forgets the old name */
        doc->looked_for_server = doc->server_agreed = false;
        whit_status status =
            whit_buffer_save_as(doc->buffer, path, e->options.journal_folder, force ? NULL : &there, &error);
        if (status == WHIT_OK) {
            ed_pad_release(e, doc);
            whit_syntax_close(doc->syntax);
            doc->syntax = whit_syntax_for(doc->buffer->path, NULL);
            whit_syntax_states_cut(&doc->states, 0);
            doc->states.n_marks = 0;
            ed_tree_close(doc); /* the new name may mean another language */
            if (e->settings.editorconfig) ed_project_settings(doc);
            tidy(doc);
            if (whit_buffer_is_modified(doc->buffer)) status = whit_buffer_save(doc->buffer, false, &error);
        }
        if (status != WHIT_OK) {
            ed_complain_error(e, &error);
            e->quitting = false;
            return;
        }
        tell_saved(e, doc);
    }
    if (e->quitting && !e->prompt.kind && !whit_buffer_is_modified(doc->buffer)) ed_quit_next(e);
}

void ed_save_copy(ed *e, const char *path, bool force)
{
    whit_error error;
    whit_file_identity there;
    whit_file_identify(path, &there);
    if (ed_doc_find(e, path))
        ed_complain(e, "%s is open in another buffer: close that buffer first", path);
    else if (there.exists && !force)
        ed_complain(e, "%s exists; ':w! FILE' replaces it", path);
    else if (whit_buffer_save_copy(e->window->doc->buffer, path, e->options.journal_folder, force ? NULL : &there,
                                   &error) != WHIT_OK)
        ed_complain_error(e, &error);
    else
        say_saved(e, e->window->doc->buffer, path);
}
