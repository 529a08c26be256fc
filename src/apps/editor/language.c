/* SPDX-License-Identifier: MIT
 * Starts and stops language servers, and tells them which texts are open and how these change. */
#include "editor/state.h"

#include "base/clock.h"
#include "base/uri.h"
#include "base/utf8.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* maximum size in bytes of a text that is sent to its server while it is typed; a larger text, up to TEXT_BYTES, is
 * sent only when it is opened or saved, or a request is made */
#define TYPED_BYTES  (128u << 10)
#define TEXT_BYTES   (16u << 20)
#define UNSENT_BYTES (64u << 10)
#define MINUTE_NS    60000000000u

bool ed_language_add(ed *e, const char *language, const char *command)
{
    if (e->n_servers == ED_SERVERS_MAX) return false;
    struct ed_server *server = &e->servers[e->n_servers];
    *server = (struct ed_server){.language = strdup(language), .command = strdup(command)};
    if (server->language && server->command) {
        e->n_servers++;
        return true;
    }
    free(server->language);
    free(server->command);
    return false;
}

void ed_language_close(ed *e)
{
    for (size_t i = 0; i < e->n_servers; i++) {
        whit_lsp_close(e->servers[i].lsp);
        free(e->servers[i].language);
        free(e->servers[i].command);
    }
    e->n_servers = 0;
}

struct ed_server *ed_server_of(ed *e, const struct ed_doc *doc)
{
    if (!doc->buffer->path) return NULL;
    for (size_t i = 0; i < e->n_servers; i++)
        if (!strcmp(e->servers[i].language, whit_syntax_name(doc->syntax)) &&
            (doc->server_agreed || !e->servers[i].is_found))
            return &e->servers[i];
    return NULL;
}

static const char *folder_of(const ed *e)
{
    return e->options.project ? e->options.project : ".";
}

static void start_server(ed *e, struct ed_server *server)
{
    char folder[PATH_MAX], uri[3 * PATH_MAX + 8];
    whit_error error;
    server->tried = true;
    if (!realpath(folder_of(e), folder) || !whit_uri_of_path(folder, uri, sizeof uri)) return;
    if (whit_lsp_open(server->command, folder, &server->lsp, &error) != WHIT_OK) {
        ed_complain_error(e, &error);
        return;
    }
    server->greeting = whit_lsp_request(
        server->lsp, "initialize",
        json_pack("{s:i, s:{s:s}, s:s, s:{s:{s:[ss]}, s:{s:{s:b}, s:{s:{s:b}}, s:{s:[s]}, s:{s:b}, s:{}, "
                  "s:{s:{s:{s:[ssss]}}}, "
                  "s:{}, s:{}}, s:{s:b, s:{s:b}}}}",
                  "processId", (int)getpid(), "clientInfo", "name", "whit", "rootUri", uri, "capabilities", "general",
                  "positionEncodings", "utf-8", "utf-16", "textDocument", "synchronization", "didSave", 1, "completion",
                  "completionItem", "snippetSupport", 0, "hover", "contentFormat", "plaintext", "rename",
                  "prepareSupport", 0, "publishDiagnostics", "codeAction", "codeActionLiteralSupport", "codeActionKind",
                  "valueSet", "", "quickfix", "refactor", "source", "formatting", "signatureHelp", "workspace",
                  "applyEdit", 1, "workspaceEdit", "documentChanges", 1));
}

bool ed_server_restart(ed *e, struct ed_server *server)
{
    const uint64_t now = whit_now_ns();
    uint64_t *oldest = &server->restarted_ns[server->n_restarts % ED_RESTARTS_MAX];
    if (server->n_restarts >= ED_RESTARTS_MAX && now - *oldest < MINUTE_NS) {
        ed_complain(e, "the language server '%.100s' was started %d times within a minute and has ended: try later",
                    server->command, ED_RESTARTS_MAX);
        return false;
    }
    *oldest = now;
    server->n_restarts++;
    start_server(e, server);
    return server->lsp != NULL;
}

static void send_text(struct ed_server *server, struct ed_doc *doc)
{
    struct ed_language *language = &doc->language;
    const whit_buffer *buffer = doc->buffer;
    uint64_t size = whit_text_size(buffer->text);
    char uri[3 * PATH_MAX + 8], *text = malloc(size + 1);
    if (!text || !whit_uri_of_path(buffer->path, uri, sizeof uri)) {
        free(text);
        return;
    }
    size_t n = whit_text_read(buffer->text, 0, text, size);
    /* JSON requires UTF-8, so each invalid byte is sent as '?', which keeps offsets unchanged. */
    json_t *content = json_stringn(text, n);
    if (!content) {
        for (size_t i = 0, length; i < n; i += length)
            if (whit_utf8_decode((const uint8_t *)text + i, n - i, &length) == WHIT_UTF8_INVALID) {
                text[i] = '?';
                length = 1;
            }
        content = json_stringn(text, n);
    }
    free(text);
    language->sent = buffer->version;
    language->order = ++server->n_sent;
    language->number++;
    if (!language->is_open)
        whit_lsp_notify(server->lsp, "textDocument/didOpen",
                        json_pack("{s:{s:s, s:s, s:I, s:o}}", "textDocument", "uri", uri, "languageId",
                                  whit_syntax_name(doc->syntax), "version", language->number, "text", content));
    else
        whit_lsp_notify(server->lsp, "textDocument/didChange",
                        json_pack("{s:{s:s, s:I}, s:[{s:o}]}", "textDocument", "uri", uri, "version", language->number,
                                  "contentChanges", "text", content));
    language->is_open = true;
}

bool ed_server_has_text(ed *e, struct ed_doc *doc, bool asked)
{
    struct ed_server *server = ed_server_of(e, doc);
    const whit_text *text = doc->buffer->text;
    uint64_t size = whit_text_size(text);
    if (!server || size > TEXT_BYTES || !whit_text_is_counted(text)) return false;
    if (!server->tried) start_server(e, server);
    if (!server->lsp || !server->ready) return false;
    bool wanted = asked || size <= TYPED_BYTES || !whit_buffer_is_modified(doc->buffer) || !doc->language.is_open;
    /* While the server does not read, new versions of a text are not queued. */
    if (!asked && whit_lsp_unsent(server->lsp) > UNSENT_BYTES) wanted = false;
    if (wanted && (!doc->language.is_open || doc->language.sent != doc->buffer->version)) {
        send_text(server, doc);
        whit_lsp_pump(server->lsp);
    }
    return doc->language.is_open;
}

bool ed_language_update(ed *e)
{
    struct ed_doc *doc = e->window->doc;
    struct ed_server *server = doc == e->results.peeked ? NULL : ed_server_of(e, doc);
    if (!server) return false;
    bool tried = server->tried;
    uint64_t sent = doc->language.sent;
    bool was_open = doc->language.is_open;
    ed_server_has_text(e, doc, false);
    return tried != server->tried || sent != doc->language.sent || was_open != doc->language.is_open;
}

void ed_language_saved(ed *e, struct ed_doc *doc)
{
    char uri[3 * PATH_MAX + 8];
    if (!ed_server_has_text(e, doc, true) || !whit_uri_of_path(doc->buffer->path, uri, sizeof uri)) return;
    whit_lsp_notify(ed_server_of(e, doc)->lsp, "textDocument/didSave",
                    json_pack("{s:{s:s}}", "textDocument", "uri", uri));
}

static void free_diagnostics(struct ed_language *language)
{
    for (size_t i = 0; i < language->n_diagnostics; i++) {
        free(language->diagnostics[i].message);
        json_decref(language->diagnostics[i].said);
    }
    free(language->diagnostics);
    language->diagnostics = NULL;
    language->n_diagnostics = 0;
}

void ed_language_forget(ed *e, struct ed_doc *doc)
{
    char uri[3 * PATH_MAX + 8];
    struct ed_server *server = ed_server_of(e, doc);
    if (e->asked.doc == doc) e->asked = (struct ed_asked){0};
    if (e->acting_doc == doc) e->acting_doc = NULL;
    if (server && server->lsp && doc->language.is_open && whit_uri_of_path(doc->buffer->path, uri, sizeof uri))
        whit_lsp_notify(server->lsp, "textDocument/didClose", json_pack("{s:{s:s}}", "textDocument", "uri", uri));
    free_diagnostics(&doc->language);
    doc->language = (struct ed_language){0};
}

/* ---- positions ------------------------------------------------------------------------------ */

#define CHUNK_BYTES 8192

/* Reads the next bytes of a line up to `end`, without cutting a UTF-8 character. Returns their number. */
static size_t read_chunk(const whit_text *text, uint64_t at, uint64_t end, char *bytes)
{
    size_t n = whit_text_read(text, at, bytes, end - at < CHUNK_BYTES ? end - at : CHUNK_BYTES), whole = n;
    if (at + n >= end) return n;
    while (whole > n - 3 && ((uint8_t)bytes[whole - 1] & 0xC0) == 0x80) whole--;
    return (uint8_t)bytes[whole - 1] >= 0xC0 ? whole - 1 : n;
}

uint64_t ed_server_offset(const struct ed_server *server, const whit_text *text, const json_t *position)
{
    json_int_t line = json_integer_value(json_object_get(position, "line"));
    json_int_t character = json_integer_value(json_object_get(position, "character"));
    if (line < 0 || character < 0) return 0;
    uint64_t at = whit_text_line_start(text, (uint64_t)line), left = (uint64_t)character;
    if (at == UINT64_MAX) return whit_text_size(text);
    char bytes[CHUNK_BYTES];
    uint64_t end = whit_text_line_end(text, at);
    if (end > at && whit_text_byte(text, end - 1) == '\r') end--;
    for (size_t n, here; left && at < end; at += here) {
        n = read_chunk(text, at, end, bytes);
        here = whit_lsp_to_byte(bytes, n, left, server->utf8);
        uint64_t passed = whit_lsp_from_byte(bytes, n, here, server->utf8);
        left -= passed < left ? passed : left;
        if (!here) break;
    }
    return at;
}

json_t *ed_server_position(const struct ed_server *server, const whit_text *text, uint64_t offset)
{
    char bytes[CHUNK_BYTES];
    uint64_t line = whit_text_line_at(text, offset), units = 0;
    for (uint64_t at = whit_text_line_begin(text, offset); at < offset;) {
        size_t n = read_chunk(text, at, offset, bytes);
        units += whit_lsp_from_byte(bytes, n, n, server->utf8);
        at += n;
    }
    return json_pack("{s:I, s:I}", "line", (json_int_t)line, "character", (json_int_t)units);
}

/* ---- diagnostics --------------------------------------------------------------------------- */

static int by_place(const void *a, const void *b)
{
    const struct ed_diagnostic *x = a, *y = b;
    if (x->range.begin != y->range.begin) return x->range.begin < y->range.begin ? -1 : 1;
    return (int)x->severity - (int)y->severity;
}

static void take_diagnostics(ed *e, struct ed_server *server, const json_t *params)
{
    char path[PATH_MAX];
    const char *uri = json_string_value(json_object_get(params, "uri"));
    const json_t *list = json_object_get(params, "diagnostics"), *version = json_object_get(params, "version");
    struct ed_doc *doc = uri && whit_uri_to_path(uri, path, sizeof path) ? ed_doc_find(e, path) : NULL;
    if (!doc || ed_server_of(e, doc) != server || !json_is_array(list)) return;
    struct ed_language *language = &doc->language;
    /* Diagnostics of an older version are dropped, because the server will send newer ones. */
    if (json_is_integer(version) && json_integer_value(version) != language->number) return;
    if (language->sent != doc->buffer->version) return;
    free_diagnostics(language);
    size_t n = json_array_size(list) < ED_DIAGNOSTICS_MAX ? json_array_size(list) : ED_DIAGNOSTICS_MAX;
    language->diagnostics = calloc(n ? n : 1, sizeof *language->diagnostics);
    for (size_t i = 0; language->diagnostics && i < n; i++) {
        const json_t *one = json_array_get(list, i), *range = json_object_get(one, "range");
        const char *message = json_string_value(json_object_get(one, "message"));
        json_int_t severity = json_integer_value(json_object_get(one, "severity"));
        struct ed_diagnostic *to = &language->diagnostics[language->n_diagnostics];
        if (!message || !range || !(to->message = strndup(message, 500))) continue;
        for (char *at = to->message; *at; at++)
            if ((uint8_t)*at < 32) *at = ' ';
        to->said = json_incref((json_t *)(uintptr_t)one);
        to->range.begin = ed_server_offset(server, doc->buffer->text, json_object_get(range, "start"));
        to->range.end = ed_server_offset(server, doc->buffer->text, json_object_get(range, "end"));
        if (to->range.end < to->range.begin) to->range.end = to->range.begin;
        to->severity =
            severity >= ED_SEVERITY_ERROR && severity <= ED_SEVERITY_HINT ? (ed_severity)severity : ED_SEVERITY_ERROR;
        language->n_diagnostics++;
    }
    qsort(language->diagnostics, language->n_diagnostics, sizeof *language->diagnostics, by_place);
}

void ed_language_changed(struct ed_doc *doc, uint64_t offset, uint64_t n_removed, uint64_t n_inserted)
{
    for (size_t i = 0; i < doc->language.n_diagnostics; i++) {
        whit_range *range = &doc->language.diagnostics[i].range;
        uint64_t *ends[] = {&range->begin, &range->end};
        for (int k = 0; k < 2; k++)
            if (*ends[k] >= offset + n_removed)
                *ends[k] = *ends[k] - n_removed + n_inserted;
            else if (*ends[k] > offset)
                *ends[k] = offset;
    }
}

const struct ed_diagnostic *ed_language_worst(const struct ed_doc *doc, uint64_t begin, uint64_t end)
{
    const struct ed_language *language = &doc->language;
    const struct ed_diagnostic *worst = NULL;
    for (size_t i = 0; i < language->n_diagnostics && language->diagnostics[i].range.begin <= end; i++) {
        const struct ed_diagnostic *one = &language->diagnostics[i];
        if (one->range.begin >= begin && (!worst || one->severity < worst->severity)) worst = one;
    }
    return worst;
}

bool ed_language_is_wrong(const struct ed_doc *doc, uint64_t offset)
{
    const struct ed_language *language = &doc->language;
    for (size_t i = 0; i < language->n_diagnostics && language->diagnostics[i].range.begin <= offset; i++)
        if (offset < language->diagnostics[i].range.end && language->diagnostics[i].severity <= ED_SEVERITY_WARNING)
            return true;
    return false;
}

static void go(ed *e, bool back)
{
    const struct ed_language *language = &e->window->doc->language;
    uint64_t offset = ed_selection(ed_cursor(e)).begin;
    size_t n = language->n_diagnostics, chosen = back ? n - 1 : 0;
    if (!n) {
        ed_say(e,
               ed_server_of(e, e->window->doc)
                   ? "the language server reports no errors or warnings"
                   : "there is no language server for this text; 'server' in the settings names one");
        return;
    }
    for (size_t i = 0; i < n; i++) {
        uint64_t at = language->diagnostics[i].range.begin;
        if (back && at < offset) chosen = i;
        if (!back && at > offset) {
            chosen = i;
            break;
        }
    }
    ed_only_main(e);
    ed_move_to(e, ed_cursor(e), language->diagnostics[chosen].range.begin);
    ed_say(e, "%s", language->diagnostics[chosen].message);
}

void ed_diagnostic_next(ed *e)
{
    go(e, false);
}

void ed_diagnostic_previous(ed *e)
{
    go(e, true);
}

/* ---- messages ------------------------------------------------------------------------------ */

static void greet(ed *e, struct ed_server *server, const json_t *message)
{
    const json_t *result = json_object_get(message, "result"), *capabilities = json_object_get(result, "capabilities");
    const char *encoding = json_string_value(json_object_get(capabilities, "positionEncoding"));
    if (!json_is_object(result)) {
        ed_complain(e, "%.100s does not start: %.200s", server->command, ed_server_error(message));
        whit_lsp_close(server->lsp);
        server->lsp = NULL;
        return;
    }
    server->ready = true;
    const json_t *formats = json_object_get(capabilities, "documentFormattingProvider");
    server->formats = formats && !json_is_false(formats) && !json_is_null(formats);
    server->has_signatures = json_is_object(json_object_get(capabilities, "signatureHelpProvider"));
    server->utf8 = encoding && !strcmp(encoding, "utf-8");
    if (!server->lsp) return;
    whit_lsp_notify(server->lsp, "initialized", json_object());
    ed_server_has_text(e, e->window->doc, false);
    if (e->asked.question && e->asked.server == server) ed_language_ask_now(e);
}

const char *ed_server_error(const json_t *message)
{
    const char *text = json_string_value(json_object_get(json_object_get(message, "error"), "message"));
    return text ? text : "it answers with nothing";
}

void ed_language_message(ed *e, struct ed_server *server, const json_t *message)
{
    const char *method = json_string_value(json_object_get(message, "method"));
    const json_t *id = json_object_get(message, "id"), *params = json_object_get(message, "params");
    if (method && id) { /* a request from the server */
        bool harmless = !strcmp(method, "client/registerCapability") ||
            !strcmp(method, "client/unregisterCapability") || !strcmp(method, "window/workDoneProgress/create") ||
            !strcmp(method, "workspace/configuration");
        json_t *result = NULL;
        /* the request contains the changes of an action that the person has chosen */
        if (!strcmp(method, "workspace/applyEdit") && e->acting == server) {
            const struct ed_asked waiting = e->asked;
            e->acting = NULL;
            e->asked = (struct ed_asked){
                .server = server, .doc = e->acting_doc, .n_sent = e->acting_n_sent, .sent_ns = e->acting_sent_ns};
            ed_language_apply(e, json_object_get(params, "edit"), "changed", "change");
            e->asked = waiting;
            result = json_pack("{s:b}", "applied", !e->message_is_error);
            harmless = true;
        }
        if (!strcmp(method, "workspace/configuration") && (result = json_array()))
            for (size_t i = 0; i < json_array_size(json_object_get(params, "items")) && i < 100; i++)
                json_array_append_new(result, json_null());
        if (server->lsp)
            whit_lsp_reply(server->lsp, id, result, harmless ? 0 : -32601);
        else
            json_decref(result);
    } else if (method) {
        const char *text = json_string_value(json_object_get(params, "message"));
        if (!strcmp(method, "textDocument/publishDiagnostics")) take_diagnostics(e, server, params);
        if (!strcmp(method, "window/showMessage") && text) ed_say(e, "%.100s: %.300s", server->language, text);
    } else if (json_is_integer(id)) {
        uint64_t number = (uint64_t)json_integer_value(id);
        if (e->acting == server && number == e->acting_number) e->acting = NULL;
        if (number == server->greeting && !server->ready)
            greet(e, server, message);
        else if (e->asked.question && e->asked.number && e->asked.number == number && e->asked.server == server)
            ed_language_answer(e, message);
    }
}

bool ed_language_pump(ed *e)
{
    bool any = false;
    for (size_t i = 0; i < e->n_servers; i++) {
        struct ed_server *server = &e->servers[i];
        if (!server->lsp) continue;
        bool alive = whit_lsp_pump(server->lsp);
        for (json_t *message; server->lsp && (message = whit_lsp_take(server->lsp)); any = true) {
            ed_language_message(e, server, message);
            json_decref(message);
        }
        if (alive || !server->lsp) continue;
        whit_lsp_close(server->lsp);
        server->lsp = NULL;
        server->ready = false;
        if (e->asked.server == server) e->asked = (struct ed_asked){0};
        if (e->acting == server) e->acting = NULL;
        for (struct ed_doc *doc = e->docs; doc; doc = doc->next)
            if (ed_server_of(e, doc) == server) {
                free_diagnostics(&doc->language);
                doc->language = (struct ed_language){0};
            }
        ed_complain(e, "the language server '%.100s' has ended; the next request starts it again", server->command);
        any = true;
    }
    return any;
}
