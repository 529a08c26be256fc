/* SPDX-License-Identifier: MIT
 * Parses any bytes as JSON, visits every node, and writes every string. */
#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    whit_json json;
    whit_error error;
    whit_buf out = {0};
    if (whit_json_parse("fuzz", (const char *)data, size, NULL, &json, &error) != WHIT_OK) return 0;
    for (uint32_t at = 0; whit_json_type_of(&json, at) != WHIT_JSON_MISSING; at++) {
        size_t n;
        int64_t integer;
        double number;
        const char *text = whit_json_string(&json, at, &n);
        if (text) (void)whit_json_write_string(&out, text, n);
        (void)whit_json_i64(&json, at, &integer);
        (void)whit_json_f64(&json, at, &number);
        (void)whit_json_first(&json, at);
        out.size_bytes = 0;
    }
    (void)whit_json_count(&json, WHIT_JSON_ROOT);
    (void)whit_json_get(&json, WHIT_JSON_ROOT, "key");
    whit_buf_free(&out);
    whit_json_close(&json);
    return 0;
}
