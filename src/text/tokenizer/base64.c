/* SPDX-License-Identifier: MIT */
#include "tokenizer/base64.h"

static int digit(char c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    if (c == '+') return 62;
    if (c == '/') return 63;
    return -1;
}

bool whit_base64_decode(const char *text, size_t n, whit_buf *out)
{
    if (n % 4 != 0) return false;
    if (!whit_buf_reserve(out, n / 4 * 3)) return false;
    size_t n_padding = n && text[n - 1] == '=' ? 1 + (text[n - 2] == '=') : 0;
    for (size_t i = 0; i < n; i += 4) {
        size_t n_digits = i + 4 == n ? 4 - n_padding : 4;
        uint32_t bits = 0;
        for (size_t k = 0; k < 4; k++) {
            int value = k < n_digits ? digit(text[i + k]) : 0;
            if (value < 0) return false;
            bits = bits << 6 | (uint32_t)value;
        }
        uint8_t bytes[3] = {(uint8_t)(bits >> 16), (uint8_t)(bits >> 8), (uint8_t)bits};
        if (!whit_buf_append(out, bytes, n_digits - 1)) return false;
    }
    return true;
}
