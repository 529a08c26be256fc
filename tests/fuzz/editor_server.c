/* SPDX-License-Identifier: MIT
 * Reads any bytes as the output of a language server: they are parsed, and given to an editor with an open request.
 * The first byte chooses the request. */
#include "editor/state.h"
#include "base/uri.h"

#include <stdlib.h>

static const char text[] = "def f(one):\n    return bad \xF0\x9F\x98\x80 one\r\n\xFF\n";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    whit_screen screen = {0};
    whit_editor *editor;
    whit_error error;
    whit_editor_options options = {.config = "server python true\n", .project = "/proc/self/attr/none"};
    if (!size || whit_editor_open(&options, &editor, &error) != WHIT_OK) return 0;
    if (!whit_screen_resize(&screen, 40, 10) ||
        whit_editor_add_text(editor, "a.py", text, sizeof text - 1, &error) != WHIT_OK)
        __builtin_trap();
    struct ed_doc *doc = editor->docs;
    struct ed_server *server = &editor->servers[0];
    doc->buffer->path = strdup("/proc/self/attr/none/a.py"); /* no file can be created in this folder */
    server->tried = true;
    server->greeting = 1;
    for (size_t at = 1, taken; at < size; at += taken) {
        json_t *message;
        taken = whit_lsp_next(data + at, size - at, &message);
        if (!taken || taken == WHIT_LSP_BROKEN) break;
        if (taken > size - at) __builtin_trap();
        doc->language.is_open = true;
        doc->language.sent = doc->buffer->version;
        doc->language.number = 1;
        ed_question question = (ed_question)(data[0] % 5);
        editor->asked = (struct ed_asked){.question = question,
                                          .number = 2,
                                          .version = doc->buffer->version,
                                          .offset = ed_cursor(editor)->offset,
                                          .doc = doc,
                                          .server = server};
        if (message) ed_language_message(editor, server, message);
        json_decref(message);
        whit_editor_draw(editor, &screen);
        whit_editor_key(editor, (whit_key){.code = data[0] & 128 ? WHIT_KEY_ENTER : WHIT_KEY_ESCAPE}, NULL, 0);
        /* the server's answer made the editor open a file of this machine */
        if (editor->window->doc != doc || editor->docs->next) break;
    }
    char path[64], uri[200], again[64];
    char *bytes = malloc(size + 1);
    if (bytes) {
        memcpy(bytes, data, size);
        bytes[size] = 0;
        if (whit_uri_to_path(bytes, path, sizeof path) &&
            (!whit_uri_of_path(path, uri, sizeof uri) || !whit_uri_to_path(uri, again, sizeof again) ||
             strcmp(path, again)))
            __builtin_trap();
        /* converting a position to bytes and back must give the same position */
        for (size_t at = 0; at < 100; at++) {
            size_t byte = whit_lsp_to_byte(bytes, size, at, false);
            uint64_t units = whit_lsp_from_byte(bytes, size, byte, false);
            if (byte > size || whit_lsp_to_byte(bytes, size, units, false) != byte) __builtin_trap();
        }
    }
    free(bytes);
    whit_editor_close(editor);
    whit_screen_free(&screen);
    return 0;
}
