/* SPDX-License-Identifier: MIT
 * Sends requests to language servers at the cursor, and carries out the effects of the answers. */
#include "base/phrase.h"
#include "base/uri.h"
#include "editor/state.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#define COMPLETIONS_MAX 1000u
#define HOVER_LINES     200

static const char *const methods[] = {
    [ED_ASK_COMPLETION] = "textDocument/completion",   [ED_ASK_HOVER] = "textDocument/hover",
    [ED_ASK_RENAME] = "textDocument/rename",           [ED_ASK_DEFINITION] = "textDocument/definition",
    [ED_ASK_FORMAT] = "textDocument/formatting",       [ED_ASK_ACTIONS] = "textDocument/codeAction",
    [ED_ASK_SIGNATURE] = "textDocument/signatureHelp",
};

void ed_language_ask_now(ed *e)
{
    char uri[3 * PATH_MAX + 8];
    struct ed_asked *asked = &e->asked;
    const whit_buffer *buffer = asked->doc->buffer;
    if (asked->version != buffer->version || !ed_server_has_text(e, asked->doc, true) ||
        !whit_uri_of_path(buffer->path, uri, sizeof uri)) {
        asked->question = ED_ASK_NOTHING;
        return;
    }
    json_t *params = json_pack("{s:{s:s}, s:o}", "textDocument", "uri", uri, "position",
                               ed_server_position(asked->server, buffer->text, asked->offset));
    if (asked->question == ED_ASK_RENAME) json_object_set_new(params, "newName", json_string(asked->name));
    if (asked->question == ED_ASK_FORMAT || asked->question == ED_ASK_ACTIONS) ed_language_extend(e, params);
    asked->n_sent = asked->server->n_sent;
    asked->sent_ns = whit_file_now_ns();
    asked->number = whit_lsp_request(asked->server->lsp, methods[asked->question], params);
    whit_lsp_pump(asked->server->lsp);
}

/* Makes a request for the cursor's position, at once or as soon as the server is ready. ed_language_answer() gets the
 * answer. */
void ed_language_ask(ed *e, ed_question question, const char *name)
{
    struct ed_doc *doc = e->window->doc;
    struct ed_server *server = ed_server_of(e, doc);
    struct ed_asked *asked = &e->asked;
    if (!server) {
        ed_complain(e,
                    "there is no language server for this text; 'server LANGUAGE COMMAND' in the settings names one");
        return;
    }
    const bool starts_again = server->tried && !server->lsp;
    if (starts_again && !ed_server_restart(e, server)) return;
    const bool has_text = ed_server_has_text(e, doc, true);
    if (!server->lsp && server->tried) return; /* starting it has failed, and the person was told why */
    if (!server->lsp || (server->ready && !has_text)) {
        ed_complain(e, "texts over 16 MiB are not sent to a language server");
        return;
    }
    if (asked->question && asked->number && asked->server->lsp)
        whit_lsp_notify(asked->server->lsp, "$/cancelRequest", json_pack("{s:I}", "id", (json_int_t)asked->number));
    *asked = (struct ed_asked){.question = question,
                               .version = doc->buffer->version,
                               .offset = ed_cursor(e)->offset,
                               .doc = doc,
                               .server = server};
    snprintf(asked->name, sizeof asked->name, "%s", name);
    if (has_text)
        ed_language_ask_now(e);
    else
        ed_say(e, "%sthe request waits until the language server is ready", starts_again ? "started again: " : "");
}

void ed_complete(ed *e)
{
    ed_language_ask(e, ED_ASK_COMPLETION, "");
}

void ed_hover(ed *e)
{
    ed_language_ask(e, ED_ASK_HOVER, "");
}

bool ed_language_definition(ed *e)
{
    struct ed_server *server = ed_server_of(e, e->window->doc);
    if (!server || !server->ready) return false;
    ed_language_ask(e, ED_ASK_DEFINITION, "");
    return e->asked.question == ED_ASK_DEFINITION;
}

static uint64_t word_begin(ed *e, uint64_t offset)
{
    while (offset && ed_is_word(whit_layout_byte(ed_layout(e), offset - 1))) offset--;
    return offset;
}

void ed_rename(ed *e)
{
    char word[256];
    uint64_t begin = word_begin(e, ed_cursor(e)->offset), end = begin;
    while (ed_is_word(whit_layout_byte(ed_layout(e), end)) && end - begin < sizeof word - 1) end++;
    if (end == begin) {
        ed_complain(e, "there is no word at the cursor");
        return;
    }
    word[whit_text_read(ed_text(e), begin, word, end - begin)] = 0;
    ed_prompt_open(e, ED_PROMPT_RENAME, "Rename to: ", word);
}

void ed_rename_to(ed *e, const char *name)
{
    if (*name) ed_language_ask(e, ED_ASK_RENAME, name);
}

/* ---- completion ---------------------------------------------------------------------------- */

/* Writes the row of a completion: the text that it inserts, then the server's name for it if that is different, and the
 * detail. Line breaks of the text become spaces; a text over 100 bytes is cut and ends with "...". */
static void write_label(char *label, size_t label_bytes, const char *text, const char *name, const char *detail)
{
    char shown[101];
    snprintf(shown, sizeof shown, strlen(text) < sizeof shown ? "%.100s" : "%.97s...", text);
    for (char *at = shown; *at; at++)
        if (*at == '\n' || *at == '\r' || *at == '\t') *at = ' ';
    if (strcmp(text, name) != 0)
        snprintf(label, label_bytes, "%-32s %.100s %.120s", shown, name, detail);
    else
        snprintf(label, label_bytes, "%-32s %.120s", shown, detail);
}

static void offer_completions(ed *e, const json_t *result)
{
    const json_t *items = json_is_array(result) ? result : json_object_get(result, "items");
    uint64_t end = e->asked.offset, begin = word_begin(e, end), line = whit_text_line_begin(ed_text(e), end);
    char prefix[256];
    if (end - begin >= sizeof prefix) return;
    prefix[whit_text_read(ed_text(e), begin, prefix, end - begin)] = 0;
    ed_prompt_open(e, ED_PROMPT_COMPLETE, "Complete: ", prefix);
    for (size_t i = 0; i < json_array_size(items) && i < COMPLETIONS_MAX; i++) {
        const json_t *item = json_array_get(items, i), *edit = json_object_get(item, "textEdit");
        const char *name = json_string_value(json_object_get(item, "label"));
        const char *text = json_string_value(json_object_get(edit, "newText"));
        const char *detail = json_string_value(json_object_get(item, "detail"));
        if (!text) text = json_string_value(json_object_get(item, "insertText"));
        if (!text) text = name;
        if (!name || strlen(text) > 4096) continue;
        char label[400];
        while (*name == ' ') name++;
        write_label(label, sizeof label, text, name, whit_or_empty(detail));
        const json_t *range = json_object_get(edit, "range");
        if (!range) range = json_object_get(edit, "replace");
        uint64_t from = range ? ed_server_offset(e->asked.server, ed_text(e), json_object_get(range, "start")) : begin;
        /* the protocol allows a range within the line alone: the row does not show that other text would be deleted */
        if (from >= line && from <= end) ed_prompt_add(e, label, text, from, -1);
    }
    if (!e->prompt.n_items) {
        ed_prompt_close(e);
        ed_say(e, "there is no completion here");
        return;
    }
    ed_prompt_filter(e);
    e->prompt.origin = end;
    e->prompt.version = e->window->doc->buffer->version;
}

void ed_complete_with(ed *e, const char *text, uint64_t from, uint64_t to)
{
    uint64_t size = whit_text_size(ed_text(e));
    if (from > to || to > size) return;
    whit_buffer_seal(e->window->doc->buffer);
    ed_only_main(e);
    if (ed_edit(e, from, to - from, text, strlen(text))) ed_move_to(e, ed_cursor(e), from + strlen(text));
    whit_buffer_seal(e->window->doc->buffer);
}

/* ---- hover --------------------------------------------------------------------------------- */

static void add_lines(ed *e, const char *text)
{
    for (int n = 0; *text && n < HOVER_LINES; n++) {
        char label[300];
        size_t length = strcspn(text, "\r\n");
        snprintf(label, sizeof label, "%.*s", (int)(length < sizeof label ? length : sizeof label - 1), text);
        if (length) ed_prompt_add(e, label, NULL, 0, -1);
        text += length;
        text += strspn(text, "\r\n");
    }
}

static void show_hover(ed *e, const json_t *result)
{
    const json_t *contents = json_object_get(result, "contents");
    ed_prompt_open(e, ED_PROMPT_RESULTS, "Esc closes: ", "");
    size_t n = json_is_array(contents) ? json_array_size(contents) : 1;
    for (size_t i = 0; i < n && i < 20; i++) {
        const json_t *one = json_is_array(contents) ? json_array_get(contents, i) : contents;
        const char *text = json_string_value(json_is_object(one) ? json_object_get(one, "value") : one);
        if (text) add_lines(e, text);
    }
    if (e->prompt.n_items) {
        ed_prompt_filter(e);
        return;
    }
    ed_prompt_close(e);
    ed_say(e, "the language server knows nothing about the word at the cursor");
}

/* ---- definition ---------------------------------------------------------------------------- */

static void add_location(ed *e, const json_t *location)
{
    char path[PATH_MAX], label[PATH_MAX + 40];
    const char *uri = json_string_value(json_object_get(location, "uri"));
    const json_t *range = json_object_get(location, "range");
    if (!uri) uri = json_string_value(json_object_get(location, "targetUri"));
    if (!range) range = json_object_get(location, "targetSelectionRange");
    json_int_t line = json_integer_value(json_object_get(json_object_get(range, "start"), "line"));
    if (!uri || !whit_uri_to_path(uri, path, sizeof path) || line < 0) return;
    snprintf(label, sizeof label, "%s:%lld", path, (long long)line + 1);
    ed_prompt_add(e, label, path, (uint64_t)line + 1, -1);
}

static void go_to_definition(ed *e, const json_t *result)
{
    ed_prompt_open(e, ED_PROMPT_RESULTS, "Definition: ", "");
    if (json_is_object(result)) add_location(e, result);
    for (size_t i = 0; i < json_array_size(result) && i < 1000; i++) add_location(e, json_array_get(result, i));
    size_t n = e->prompt.n_items;
    if (!n) {
        ed_prompt_close(e);
        ed_definition_by_graph(e);
        return;
    }
    /* keeps a list of one place from replacing the last list of results */
    if (n == 1) e->prompt.kind = ED_PROMPT_SYMBOLS;
    ed_prompt_filter(e);
    if (n == 1) ed_prompt_key(e, (whit_key){.code = WHIT_KEY_ENTER}, NULL, 0);
}

void ed_language_answer(ed *e, const json_t *message)
{
    struct ed_asked asked = e->asked;
    const json_t *result = json_object_get(message, "result");
    e->asked.question = ED_ASK_NOTHING;
    if (!e->prompt.kind) e->message[0] = 0;
    /* errors about signatures are not reported, since typing requests them */
    if (json_object_get(message, "error") && asked.question == ED_ASK_SIGNATURE) return;
    if (json_object_get(message, "error")) {
        ed_complain(e, "%.300s", ed_server_error(message));
        return;
    }
    /* A late answer must not interrupt: it is dropped if the text has changed or is not shown, if a prompt is open, or
     * (same_place), if it is about the cursor's position and the cursor has moved. */
    bool here = e->window->doc == asked.doc && asked.doc->buffer->version == asked.version && !e->prompt.kind;
    bool same_place = here && ed_cursor(e)->offset == asked.offset;
    switch (asked.question) {
    case ED_ASK_COMPLETION:
        if (same_place) offer_completions(e, result);
        break;
    case ED_ASK_HOVER:
        if (same_place) show_hover(e, result);
        break;
    case ED_ASK_DEFINITION:
        if (same_place) go_to_definition(e, result);
        break;
    case ED_ASK_RENAME:
        if (here)
            ed_language_apply(e, result, "renamed", "rename");
        else
            ed_complain(e, "nothing was renamed, because the text has changed meanwhile");
        break;
    case ED_ASK_FORMAT:
        if (here)
            ed_language_format(e, result);
        else
            ed_complain(e, "nothing was formatted, because the text has changed meanwhile");
        break;
    case ED_ASK_ACTIONS:
        if (same_place) ed_language_offer_actions(e, result);
        break;
    case ED_ASK_SIGNATURE:
        if (same_place) ed_language_show_signature(e, result);
        break;
    default: break;
    }
}
