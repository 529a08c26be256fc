/* SPDX-License-Identifier: MIT
 * Uses all of an open GGUF file, for tests on damaged files and for fuzzing. */
#ifndef WHIT_TESTS_GGUF_TOUCH_H
#define WHIT_TESTS_GGUF_TOUCH_H

#include "format/gguf.h"

/* Reads everything in an open GGUF file, so that a sanitizer finds invalid pointers. */
static inline uint64_t touch_gguf(const whit_gguf *gguf)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < gguf->n_keys; i++) {
        const whit_gguf_key *key = &gguf->keys[i];
        whit_gguf_strings strings = whit_gguf_strings_of(key);
        const char *text;
        size_t n;
        int64_t integer;
        while (whit_gguf_strings_next(&strings, &text, &n)) sum += n ? (uint8_t)text[n - 1] : 0;
        for (uint64_t e = 0; whit_gguf_element_i64(key, e, &integer); e++) sum += (uint64_t)integer;
        if (key->size_bytes) sum += key->data[0] + key->data[key->size_bytes - 1];
    }
    for (size_t i = 0; i < gguf->n_tensors; i++) {
        whit_ggml_view view = whit_gguf_view(&gguf->tensors[i]);
        whit_ggml_twin twin;
        whit_error error;
        (void)whit_ggml_find_twin(&view, "x", &twin, &error);
        if (view.n_cols > 4096) continue;
        float row[4096];
        whit_ggml_row_f32(&view, view.n_rows - 1, row);
        sum += (uint8_t)(row[0] > 0);
    }
    return sum;
}

#endif
