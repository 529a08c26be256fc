/* SPDX-License-Identifier: MIT
 * Reads the cases of a .jsonl file, one JSON object per line. */
#ifndef WHIT_TESTS_JSON_LINES_H
#define WHIT_TESTS_JSON_LINES_H

#include "base/file.h"
#include "base/json.h"
#include "test.h"

/* Callback for one line; `number` counts from 1, and `line` is not terminated by a zero byte. */
typedef void json_line_fn(void *user, const whit_json *json, const char *line, size_t n_bytes, size_t number);

/* Calls `look` with every line of a file that is not empty. A line that is not JSON fails the test. */
static inline void each_json_line(const char *path, json_line_fn *look, void *user)
{
    whit_buf text = {0};
    whit_error error;
    size_t number = 0;
    assert_ok(whit_read_file(path, 64u << 20, &text, &error), error);
    const char *at = (const char *)text.data, *end = at + text.size_bytes;
    while (at < end) {
        const char *feed = memchr(at, '\n', (size_t)(end - at));
        size_t n_bytes = (size_t)((feed ? feed : end) - at);
        whit_json json;
        number++;
        if (n_bytes) {
            assert_ok(whit_json_parse(path, at, n_bytes, NULL, &json, &error), error);
            look(user, &json, at, n_bytes, number);
            whit_json_close(&json);
        }
        at += n_bytes + 1;
    }
    whit_buf_free(&text);
}

#endif
