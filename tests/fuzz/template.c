/* SPDX-License-Identifier: MIT
 * Renders any bytes as a template under tight limits with a small conversation. The part after a zero byte is JSON
 * of further variables. */
#include "template/chat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char messages[] = "[{\"role\": \"user\", \"content\": \"h\\u00e9 <|x|>\"}, "
                                   "{\"role\": \"assistant\", \"content\": null, "
                                   "\"tool_calls\": [{\"id\": 7, \"function\": {\"name\": \"f\", "
                                   "\"arguments\": {\"a\": [1.5, true]}}}]}]";
    static const whit_template_time now = {.year = 2026, .month = 1, .day = 2};
    whit_template_options options = {
        .now = &now, .limits = {.memory_bytes = 4 << 20, .output_bytes = 1 << 16, .n_steps = 20000, .depth = 300}};
    if (size > 1 << 16) return 0;
    const uint8_t *zero = size ? memchr(data, 0, size) : NULL;
    size_t n_source = zero ? (size_t)(zero - data) : size;
    whit_template *template = NULL;
    whit_template_error error = {0};
    whit_datum_pool pool = {0};
    whit_buf out = {0}, segments = {0};
    whit_chat chat = {.add_generation_prompt = true, .bos_token = "<s>"};
    if (whit_datum_from_json(&pool, messages, sizeof messages - 1, true, &chat.messages, NULL) != WHIT_OK) return 0;
    if (zero) whit_datum_from_json(&pool, (const char *)zero + 1, size - n_source - 1, true, &chat.extra, NULL);
    if (whit_template_open((const char *)data, n_source, NULL, &template, &error) == WHIT_OK)
        whit_template_chat(template, &chat, &options, &out, &segments, &error);
    whit_template_close(template);
    whit_template_error_free(&error);
    whit_datum_pool_clear(&pool);
    whit_buf_free(&out);
    whit_buf_free(&segments);
    return 0;
}
