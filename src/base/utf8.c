/* SPDX-License-Identifier: MIT */
#include "base/utf8.h"

#include <string.h>

size_t whit_utf8_valid_bytes(const uint8_t *text, size_t n)
{
    size_t i = 0;
    while (i < n) {
        uint64_t eight;
        if (n - i >= 8 && (memcpy(&eight, text + i, 8), (eight & 0x8080808080808080u) == 0)) {
            i += 8;
            continue;
        }
        size_t length;
        if (whit_utf8_decode(text + i, n - i, &length) == WHIT_UTF8_INVALID) return i;
        i += length;
    }
    return n;
}
