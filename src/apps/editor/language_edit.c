/* SPDX-License-Identifier: MIT
 * Makes the changes that language servers propose (renaming, formatting and code actions), and shows signatures. */
#include "base/items.h"
#include "base/path.h"
#include "base/phrase.h"
#include "base/piped.h"
#include "base/shell.h"
#include "base/uri.h"
#include "editor/state.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#define EDITS_MAX   100000u
#define FILES_MAX   64u
#define ACTIONS_MAX 200u

struct edit {
    struct ed_doc *doc;
    uint64_t begin, end;
    size_t order; /* index in the server's list */
    const char *text;
};

struct edits {
    struct edit *list;
    size_t n, n_docs;
    char word[256];   /* the word that is renamed; "" for other changes */
    const char *done; /* participle for messages, such as "renamed" */
    char why[300];    /* reason why no edit is made; "" if all can be made */
};

static int last_first(const void *a, const void *b)
{
    const struct edit *x = a, *y = b;
    if (x->doc != y->doc) return (uintptr_t)x->doc < (uintptr_t)y->doc ? -1 : 1;
    if (x->begin != y->begin) return x->begin > y->begin ? -1 : 1;
    return x->order > y->order ? -1 : 1;
}

static void refuse_edit(struct edits *edits, const char *why, const char *path)
{
    if (!*edits->why) snprintf(edits->why, sizeof edits->why, "nothing was %s: %s%.200s", edits->done, why, path);
}

/* Returns the document of a file, opened if necessary. Returns NULL and sets the reason if the file, with links
 * resolved, is outside the project; only the document of the request itself may be outside. */
static struct ed_doc *open_within(ed *e, struct edits *edits, const char *path)
{
    char *real = whit_buffer_full_path(path);
    whit_error error;
    struct ed_doc *doc = ed_doc_find(e, path);
    const char *part = real ? ed_project_part(e, real) : NULL;
    if (!part && !(doc && doc == e->asked.doc)) {
        refuse_edit(edits, "this file is outside the project: ", path);
        doc = NULL;
    } else if (!doc) { /* open the file by its path relative to the current folder, if that is the project */
        doc = ed_open_file(e, e->options.project ? real : part, &error);
        if (!doc) refuse_edit(edits, "", error.message);
    }
    free(real);
    return doc;
}

/* Returns why a text is not changed, or NULL if it may be: it must be the text that the server knew when the request
 * was made. This is the last version sent to the server; a file that it reads by itself must not have changed since. */
static const char *find_refusal(const ed *e, const struct ed_doc *doc)
{
    const struct ed_language *language = &doc->language;
    const whit_buffer *buffer = doc->buffer;
    const bool is_other = language->is_open ? language->sent != buffer->version || language->order > e->asked.n_sent
                                            : whit_buffer_is_modified(buffer);
    if (buffer->read_only) return "read-only: ";
    if (buffer->recovered) return "this file has unsaved text of an earlier run: ";
    if (is_other) return "this file has changed meanwhile: ";
    if (!language->is_open &&
        (whit_buffer_is_conflicting(buffer) || whit_file_changed_since(buffer->path, e->asked.sent_ns)))
        return "this file has changed since the server was asked: ";
    return NULL;
}

/* Reads the word at the cursor of the request. */
static void read_renamed_word(const ed *e, char *word, size_t room)
{
    const whit_text *text = e->asked.doc->buffer->text;
    const uint64_t size = whit_text_size(text);
    uint64_t begin = e->asked.offset, end = begin;
    while (begin && ed_is_word(whit_text_byte(text, begin - 1))) begin--;
    while (end < size && ed_is_word(whit_text_byte(text, end))) end++;
    if (end - begin < room) word[whit_text_read(text, begin, word, end - begin)] = 0;
}

/* Returns whether an edit fits a file that the server has read by itself, maybe before another program changed it: a
 * renaming must replace the word. */
static bool fits_file(const struct edits *edits, const struct ed_doc *doc, uint64_t begin, uint64_t end)
{
    char there[sizeof edits->word];
    const size_t n = strlen(edits->word);
    if (!n || doc->language.is_open) return true;
    return end - begin == n && whit_text_read(doc->buffer->text, begin, there, n) == n &&
        memcmp(there, edits->word, n) == 0;
}

/* Collects the edits of one file, which is opened if necessary. No text is changed yet. */
static void take_file(ed *e, struct edits *edits, const char *uri, const json_t *list)
{
    char path[PATH_MAX];
    if (!uri || !whit_uri_to_path(uri, path, sizeof path)) {
        refuse_edit(edits, "the language server names no file: ", whit_or_empty(uri));
        return;
    }
    if (++edits->n_docs > FILES_MAX) {
        refuse_edit(edits, "the change needs more than 64 files, the limit", "");
        return;
    }
    struct ed_doc *doc = open_within(e, edits, path);
    if (!doc) return;
    whit_text *text = doc->buffer->text;
    while (whit_text_count(text, 16u << 20, whit_file_drop, &doc->buffer->file)) {
    }
    const char *refusal = find_refusal(e, doc);
    if (refusal) {
        refuse_edit(edits, refusal, path);
        return;
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i), *range = json_object_get(one, "range");
        const char *new_text = json_string_value(json_object_get(one, "newText"));
        if (!new_text || !range || edits->n == EDITS_MAX) {
            refuse_edit(edits, "the language server's answer has a malformed edit, or over 100,000 edits, the limit",
                        "");
            return;
        }
        uint64_t begin = ed_server_offset(e->asked.server, text, json_object_get(range, "start"));
        uint64_t end = ed_server_offset(e->asked.server, text, json_object_get(range, "end"));
        if (end < begin)
            refuse_edit(edits, "the language server's answer has an edit that ends before it begins", "");
        else if (!fits_file(edits, doc, begin, end))
            refuse_edit(edits, "this file has changed since the server read it: ", path);
        edits->list[edits->n] = (struct edit){doc, begin, end, edits->n, new_text};
        edits->n++;
    }
}

void ed_language_apply(ed *e, const json_t *result, const char *done, const char *verb)
{
    struct edits edits = {.list = malloc(EDITS_MAX * sizeof *edits.list), .done = done};
    const json_t *changes = json_object_get(result, "documentChanges"), *list;
    const char *uri;
    if (!edits.list) {
        ed_complain(e, "not enough memory to %s", verb);
        return;
    }
    if (!strcmp(verb, "rename")) read_renamed_word(e, edits.word, sizeof edits.word);
    for (size_t i = 0; i < json_array_size(changes); i++) {
        const json_t *one = json_array_get(changes, i);
        list = json_object_get(one, "edits");
        if (!list)
            refuse_edit(&edits,
                        "the language server asks to create or delete files, which is not supported: do so by hand",
                        "");
        if (list && !*edits.why)
            take_file(e, &edits, json_string_value(json_object_get(json_object_get(one, "textDocument"), "uri")), list);
    }
    if (!json_array_size(changes)) {
        json_t *map = json_object_get(result, "changes");
        for (void *at = json_object_iter(map); at && !*edits.why; at = json_object_iter_next(map, at)) {
            uri = json_object_iter_key(at);
            take_file(e, &edits, uri, json_object_iter_value(at));
        }
    }
    if (edits.n) qsort(edits.list, edits.n, sizeof *edits.list, last_first);
    for (size_t i = 1; i < edits.n; i++)
        if (edits.list[i].doc == edits.list[i - 1].doc && edits.list[i].end > edits.list[i - 1].begin)
            refuse_edit(&edits, "the language server's changes overlap", "");
    whit_error error = {0};
    size_t n_files = 0;
    bool ok = !*edits.why;
    for (size_t i = 0; ok && i < edits.n; i++) {
        const struct edit *edit = &edits.list[i];
        bool first = !i || edits.list[i - 1].doc != edit->doc, last = i + 1 == edits.n || edit[1].doc != edit->doc;
        if (first) whit_buffer_seal(edit->doc->buffer);
        n_files += first;
        ok = whit_buffer_edit(edit->doc->buffer, edit->begin, edit->end - edit->begin, edit->text, strlen(edit->text),
                              &error) == WHIT_OK;
        if (last || !ok) whit_buffer_seal(edit->doc->buffer);
    }
    if (*edits.why)
        ed_complain(e, "%s", edits.why);
    else if (!ok)
        ed_complain_error(e, &error);
    else if (!edits.n)
        ed_say(e, "there is nothing to %s here", verb);
    else
        ed_say(e, "%s %zu time%s in %zu file%s; not saved yet", done, edits.n, whit_plural(edits.n), n_files,
               whit_plural(n_files));
    free(edits.list);
}

/* ---- formatting ---------------------------------------------------------------------------- */

/* Programs that format a text if no server does. They read the project's style files but do not run its code. */
static const struct formatter {
    const char *language, *program, *options;
    const char *names_text;  /* option before the text's path, by which the program finds the style; NULL: none */
    const char *names_style; /* option before the path of the style file itself; NULL: none */
} formatters[] = {
    {"c", "clang-format", "", "--assume-filename=", NULL},
    {"cpp", "clang-format", "", "--assume-filename=", NULL},
    {"java", "clang-format", "", "--assume-filename=", NULL},
    {"go", "gofmt", "", NULL, NULL},
    {"rust", "rustfmt", "--emit stdout", NULL, "--config-path "},
    {"python", "black", "-q -", "--stdin-filename ", NULL},
    {"zig", "zig", "fmt --stdin", NULL, NULL},
};

/* Finds the style file of rustfmt for a text, in the text's folder or in one above. */
static bool find_style(const char *text, char path[PATH_MAX])
{
    static const char *const names[] = {".rustfmt.toml", "rustfmt.toml"};
    char folder[PATH_MAX], *slash;
    if (snprintf(folder, sizeof folder, "%s", text) >= (int)sizeof folder) return false;
    while ((slash = strrchr(folder, '/'))) {
        *slash = 0;
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            if (snprintf(path, PATH_MAX, "%s/%s", folder, names[i]) < PATH_MAX && whit_path_exists(path)) return true;
    }
    return false;
}

/* Appends an option and the path that is its value as one or two words. */
static void append_path(whit_buf *line, const char *option, const char *path)
{
    whit_buf_printf(line, " %s", option);
    whit_shell_quote(line, path);
}

/* Starts a formatter for the current text. `program` is its absolute path, so that the shell does not search for it. It
 * runs in the root folder: a program such as `rustfmt` of rustup or a shim of a version manager would take the program
 * to run from a file of the folder in which it is started, as of a project that a stranger has made. */
static void start_formatter(ed *e, const char *program, const struct formatter *formatter)
{
    const char *text = e->window->doc->buffer->path;
    const bool has_path = text && whit_path_is_absolute(text);
    char style[PATH_MAX];
    whit_buf line = {0};
    whit_buf_append_str(&line, "cd / && ");
    whit_shell_quote(&line, program);
    whit_buf_printf(&line, " %s", formatter->options);
    if (formatter->names_text && has_path) append_path(&line, formatter->names_text, text);
    if (formatter->names_style && has_path && find_style(text, style))
        append_path(&line, formatter->names_style, style);
    if (!whit_buf_append(&line, "", 1))
        ed_complain(e, "not enough memory for a command; close other texts");
    else
        ed_shell_start(e, ED_SHELL_FORMAT, whit_chars(&line), (whit_range){0, whit_text_size(ed_text(e))});
    whit_buf_free(&line);
}

void ed_format(ed *e)
{
    struct ed_doc *doc = e->window->doc;
    const struct ed_server *server = ed_server_of(e, doc);
    bool starts = server && (!server->tried || (server->lsp && !server->ready));
    char path[WHIT_PROGRAM_BYTES];
    if (starts || (server && server->ready && server->formats)) {
        ed_language_ask(e, ED_ASK_FORMAT, "");
        return;
    }
    for (size_t i = 0; i < sizeof formatters / sizeof *formatters; i++) {
        if (strcmp(formatters[i].language, whit_syntax_name(doc->syntax)) != 0) continue;
        if (!whit_find_program(formatters[i].program, path)) continue;
        start_formatter(e, path, &formatters[i]);
        return;
    }
    ed_complain(e, "no language server and no program here formats %s", whit_syntax_name(doc->syntax));
}

void ed_language_format(ed *e, const json_t *result)
{
    char uri[3 * PATH_MAX + 8];
    if (!whit_uri_of_path(e->window->doc->buffer->path, uri, sizeof uri)) return;
    json_t *edit =
        json_pack("{s:{s:O}}", "changes", uri, json_is_array(result) ? (json_t *)(uintptr_t)result : json_null());
    ed_language_apply(e, edit, "formatted", "format");
    json_decref(edit);
}

static json_t *range_of(const struct ed_server *server, const whit_text *text, whit_range range)
{
    return json_pack("{s:o, s:o}", "start", ed_server_position(server, text, range.begin), "end",
                     ed_server_position(server, text, range.end));
}

void ed_language_extend(ed *e, json_t *params)
{
    struct ed_doc *doc = e->asked.doc;
    if (e->asked.question == ED_ASK_FORMAT) {
        json_object_set_new(params, "options",
                            json_pack("{s:i, s:b}", "tabSize", doc->indent_columns, "insertSpaces", !doc->indent_tabs));
        return;
    }
    /* Code actions are requested for the selection, with the diagnostics of its lines. */
    whit_range range =
        e->window->doc == doc ? ed_selection(ed_cursor(e)) : (whit_range){e->asked.offset, e->asked.offset};
    uint64_t begin = whit_text_line_begin(doc->buffer->text, range.begin);
    uint64_t end = whit_text_line_end(doc->buffer->text, range.end);
    json_t *said = json_array();
    for (size_t i = 0; i < doc->language.n_diagnostics; i++) {
        const struct ed_diagnostic *one = &doc->language.diagnostics[i];
        if (one->range.begin < begin || one->range.begin > end) continue;
        /* the diagnostic's range may have moved through edits since it arrived */
        json_t *copy = json_copy(one->said);
        json_object_set_new(copy, "range", range_of(e->asked.server, doc->buffer->text, one->range));
        json_array_append_new(said, copy);
    }
    json_object_set_new(params, "range", range_of(e->asked.server, doc->buffer->text, range));
    json_object_set_new(params, "context", json_pack("{s:o}", "diagnostics", said));
}

/* ---- code actions -------------------------------------------------------------------------- */

void ed_code_actions(ed *e)
{
    ed_language_ask(e, ED_ASK_ACTIONS, "");
}

void ed_language_offer_actions(ed *e, const json_t *result)
{
    size_t n = json_array_size(result) < ACTIONS_MAX ? json_array_size(result) : ACTIONS_MAX;
    json_decref(e->actions);
    e->actions = json_incref((json_t *)(uintptr_t)result);
    ed_prompt_open(e, ED_PROMPT_ACTIONS, "Action: ", "");
    for (size_t i = 0; i < n; i++) {
        const char *title = json_string_value(json_object_get(json_array_get(result, i), "title"));
        if (title && !json_object_get(json_array_get(result, i), "disabled")) ed_prompt_add(e, title, NULL, i, -1);
    }
    if (e->prompt.n_items) {
        ed_prompt_filter(e);
        return;
    }
    ed_prompt_close(e);
    ed_say(e, "the language server offers no action here");
}

void ed_language_act(ed *e, uint64_t number)
{
    json_t *action = json_array_get(e->actions, number), *edit = json_object_get(action, "edit");
    json_t *command = json_object_get(action, "command");
    struct ed_server *server = ed_server_of(e, e->window->doc);
    if (json_is_string(command)) command = action; /* older servers send a Command object instead of a CodeAction */
    const bool is_there = server && server->lsp && server == e->asked.server && e->asked.doc == e->window->doc;
    const bool is_same = e->asked.version == e->window->doc->buffer->version;
    if (edit && is_there) ed_language_apply(e, edit, "changed", "change");
    if (edit && e->message_is_error) command = NULL; /* the command must not run if the edit before it failed */
    /* the server will send the command's changes in a workspace/applyEdit request */
    if (command && is_there && is_same) {
        (void)ed_server_has_text(e, e->window->doc, true); /* the command refers to the text after the edit */
        e->acting = server;
        e->acting_sent_ns = whit_file_now_ns();
        e->acting_number = whit_lsp_request(server->lsp, "workspace/executeCommand",
                                            json_pack("{s:O?, s:O?}", "command", json_object_get(command, "command"),
                                                      "arguments", json_object_get(command, "arguments")));
        if (!e->acting_number) e->acting = NULL; /* the request could not be queued */
        e->acting_n_sent = server->n_sent;
        e->acting_doc = e->window->doc;
        whit_lsp_pump(server->lsp);
    }
    if (!is_there)
        ed_complain(e, "nothing was changed, because the language server has ended");
    else if (command && !is_same) /* the command refers to positions in the text for which it was offered */
        ed_complain(e, "nothing was changed, because the text has changed meanwhile");
    else if (!edit && !command)
        ed_complain(e, "the language server's action contains neither an edit nor a command");
    json_decref(e->actions);
    e->actions = NULL;
}

/* ---- signatures ---------------------------------------------------------------------------- */

void ed_signature(ed *e)
{
    ed_language_ask(e, ED_ASK_SIGNATURE, "");
}

void ed_signature_typed(ed *e)
{
    const struct ed_server *server = ed_server_of(e, e->window->doc);
    bool quiet = !e->asked.question && !*e->message && e->window->n_cursors == 1 && !e->macro.playing;
    if (server && server->ready && server->has_signatures && quiet && ed_server_has_text(e, e->window->doc, true))
        ed_language_ask(e, ED_ASK_SIGNATURE, "");
}

void ed_language_show_signature(ed *e, const json_t *result)
{
    const json_t *list = json_object_get(result, "signatures");
    size_t at = (size_t)json_integer_value(json_object_get(result, "activeSignature"));
    const json_t *one = json_array_get(list, at < json_array_size(list) ? at : 0),
                 *chosen = json_object_get(one, "activeParameter");
    const char *label = json_string_value(json_object_get(one, "label"));
    if (!chosen) chosen = json_object_get(result, "activeParameter");
    const json_t *parameter = json_array_get(json_object_get(one, "parameters"), (size_t)json_integer_value(chosen));
    const json_t *name = json_object_get(parameter, "label");
    if (!label) return;
    const char *found = json_is_string(name) ? strstr(label, json_string_value(name)) : NULL;
    size_t begin = found ? (size_t)(found - label) : 0;
    size_t n = found ? strlen(json_string_value(name)) : 0;
    if (json_is_array(name)) { /* [begin, end], in UTF-16 units */
        begin = whit_lsp_to_byte(label, strlen(label), (uint64_t)json_integer_value(json_array_get(name, 0)), false);
        n = whit_lsp_to_byte(label, strlen(label), (uint64_t)json_integer_value(json_array_get(name, 1)), false) -
            begin;
        if (begin + n > strlen(label)) n = 0;
    }
    if (n)
        ed_say(e, "%.*s[%.*s]%s", (int)begin, label, (int)n, label + begin, label + begin + n);
    else
        ed_say(e, "%s", label);
}
