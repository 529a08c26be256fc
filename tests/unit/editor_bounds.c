/* SPDX-License-Identifier: MIT
 * Tests that the editor's memory is bounded when servers or terminals are too slow or too fast, and that lines
 * longer than its buffers are allowed. */
#include "test.h"

#include "editor/state.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Checks that bytes of a long paste that were moved to the pasted text do not stay in the input buffer, whose capacity
 * must remain small. */
static void test_paste(void **state)
{
    (void)state;
    static char text[64 << 10];
    whit_keys keys = {0};
    whit_key key;
    memset(text, 'a', sizeof text);
    assert_true(whit_keys_feed(&keys, "\033[200~", 6));
    assert_false(whit_keys_next(&keys, false, &key));
    for (int i = 0; i < 256; i++) {
        assert_true(whit_keys_feed(&keys, text, sizeof text));
        assert_false(whit_keys_next(&keys, false, &key));
    }
    assert_true(whit_keys_feed(&keys, "end\033[201~x", 10));
    assert_true(whit_keys_next(&keys, false, &key));
    assert_int_equal(key.code, WHIT_KEY_PASTE);
    assert_int_equal(keys.paste.size_bytes, 256 * sizeof text + 3);
    assert_memory_equal(keys.paste.data + 256 * sizeof text, "end", 3);
    assert_true(keys.bytes.capacity_bytes <= 4 * sizeof text);
    assert_true(whit_keys_next(&keys, false, &key));
    assert_int_equal(key.code, 'x');

    /* A paste whose end does not arrive can be ended by a call, after which keys are read as keys again. */
    assert_false(whit_keys_end_paste(&keys, &key));
    assert_true(whit_keys_feed(&keys, "\033[200~lost\033[20", 14));
    assert_false(whit_keys_next(&keys, false, &key));
    assert_true(whit_keys_end_paste(&keys, &key));
    assert_int_equal(key.code, WHIT_KEY_PASTE);
    assert_int_equal(keys.paste.size_bytes, 8);
    assert_memory_equal(keys.paste.data, "lost\033[20", 8);
    assert_true(whit_keys_feed(&keys, "x", 1));
    assert_true(whit_keys_next(&keys, false, &key));
    assert_int_equal(key.code, 'x');
    whit_keys_free(&keys);
}

/* The server greets and then reads nothing: text to send must not accumulate without a limit. */
static void test_deaf_server(void **state)
{
    (void)state;
    char folder[] = "/tmp/whit-bounds-XXXXXX", script[64], path[64], config[128];
    assert_non_null(mkdtemp(folder));
    snprintf(script, sizeof script, "%s/server", folder);
    snprintf(path, sizeof path, "%s/a.c", folder);
    snprintf(config, sizeof config, "server c %s\n", script);
    FILE *file = fopen(script, "w");
    assert_non_null(file);
    fputs("#!/bin/sh\nprintf 'Content-Length: "
          "53\\r\\n\\r\\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"capabilities\":{}}}'\n"
          "exec sleep 600\n",
          file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(script, 0700), 0);
    file = fopen(path, "w");
    assert_non_null(file);
    for (int i = 0; i < 10000; i++) fputs("int a;\n", file);
    assert_int_equal(fclose(file), 0);
    whit_editor_options options = {.config = config, .project = folder};
    whit_editor *editor;
    whit_error error;
    assert_int_equal(whit_editor_open(&options, &editor, &error), WHIT_OK);
    assert_int_equal(whit_editor_add_file(editor, path, &error), WHIT_OK);
    bool redraw;
    for (int i = 0; i < 120000 && !editor->docs->language.is_open; i++) {
        whit_editor_idle(editor, &redraw);
        whit_editor_ready(editor);
        usleep(1000);
    }
    assert_true(editor->docs->language.is_open);
    for (int i = 0; i < 100; i++) {
        whit_editor_key(editor, (whit_key){.code = 'x'}, NULL, 0);
        whit_editor_ready(editor);
        whit_editor_idle(editor, &redraw);
    }
    assert_non_null(editor->servers[0].lsp);
    assert_true(whit_lsp_unsent(editor->servers[0].lsp) < 300000);
    whit_editor_close(editor);
    unlink(script);
    unlink(path);
    rmdir(folder);
}

/* Converts offsets in a long line to UTF-16 units, as servers count, and back. */
static void test_places(void **state)
{
    (void)state;
    static const char *const pieces[] = {"a", "\303\244", "\346\274\242", "\360\237\220\261", "\377"};
    static const uint64_t units[] = {1, 1, 1, 2, 1};
    static char line[100000];
    static uint64_t offsets[sizeof line], counts[sizeof line];
    size_t n = 0, n_places = 0;
    uint64_t count = 0;
    for (size_t i = 0; n + 8 < sizeof line; i++) {
        size_t which = i * i % 7 % 5;
        offsets[n_places] = n;
        counts[n_places++] = count;
        n = (size_t)(stpcpy(line + n, pieces[which]) - line);
        count += units[which];
    }
    memcpy(line + n, "\r\nx", 3);
    whit_editor *editor;
    whit_error error;
    whit_editor_options options = {.config = ""};
    assert_int_equal(whit_editor_open(&options, &editor, &error), WHIT_OK);
    assert_int_equal(whit_editor_add_text(editor, "long", line, n + 3, &error), WHIT_OK);
    whit_text *text = editor->docs->buffer->text;
    while (whit_text_count(text, UINT64_MAX, NULL, NULL)) {
    }
    for (int utf8 = 0; utf8 < 2; utf8++) {
        const struct ed_server server = {.utf8 = utf8};
        for (size_t i = 0; i < n_places; i += 7) {
            json_t *place = ed_server_position(&server, text, offsets[i]);
            json_int_t character = json_integer_value(json_object_get(place, "character"));
            assert_int_equal(character, utf8 ? offsets[i] : counts[i]);
            assert_int_equal(ed_server_offset(&server, text, place), offsets[i]);
            json_decref(place);
        }
        json_t *behind = json_pack("{s:i, s:i}", "line", 0, "character", 1000000);
        assert_int_equal(ed_server_offset(&server, text, behind), n);
        json_decref(behind);
    }
    whit_editor_close(editor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_paste), cmocka_unit_test(test_deaf_server),
                                       cmocka_unit_test(test_places)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
