/* SPDX-License-Identifier: MIT
 * Reads any bytes as the user's configuration, as a project's, as a journal, and as a text of every language. */
#include "editor/editor.h"
#include "editor/editorconfig.h"
#include "editor/journal.h"
#include "editor/syntax.h"

#include <stdlib.h>

/* one file name for each language */
static const char *const files[] = {"a.c",  "a.cc",   "a.cmake", "a.css",    "a.diff", "a.go",   "a.html", "a.java",
                                    "a.js", "a.json", "a.lua",   "Makefile", "a.md",   "a.pl",   "a.py",   "a.rb",
                                    "a.rs", "a.sh",   "a.sql",   "a.toml",   "a.ts",   "a.yaml", "a.zig"};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    whit_editor *editor;
    whit_error error;
    whit_record record;
    whit_buf text = {0};
    if (!whit_buf_append(&text, data, size) || !whit_buf_append(&text, "", 1)) return 0;
    whit_editor_options options = {.config = (const char *)text.data};
    if (whit_editor_open(&options, &editor, &error) == WHIT_OK) whit_editor_close(editor);
    whit_editorconfig project = {0};
    whit_editorconfig_apply((const char *)data, size, "src/main.c", &project);
    for (size_t at = 0, before = 0; whit_journal_next(data, size, &at, &record); before = at)
        if (at <= before || at > size || record.size_bytes > size) __builtin_trap();
    uint8_t *styles = malloc(size + 1);
    for (size_t i = 0; styles && i < sizeof files / sizeof *files; i++) {
        whit_syntax *syntax = whit_syntax_for(files[i], NULL);
        if (!syntax) __builtin_trap();
        uint32_t state = 0;
        for (size_t at = 0; at < size;) {
            const uint8_t *feed = memchr(data + at, '\n', size - at);
            size_t n = feed ? (size_t)(feed - data) - at : size - at;
            state = whit_syntax_line(syntax, state, data + at, n, true, styles);
            for (size_t k = 0; k < n; k++)
                if (styles[k] >= WHIT_N_STYLES) __builtin_trap();
            at += n + 1;
        }
        whit_syntax_close(syntax);
    }
    free(styles);
    whit_buf_free(&text);
    return 0;
}
