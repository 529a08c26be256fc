/* SPDX-License-Identifier: MIT
 * The program of whit's own model families with one text in it replaced. */
#ifndef WHIT_TESTS_CHANGED_DECODER_H
#define WHIT_TESTS_CHANGED_DECODER_H

#include "test.h"

/* Returns the program with `from` replaced by `to`. The result is valid until the next call. */
static inline const char *changed_decoder(const char *from, const char *to)
{
    static char text[16384];
    FILE *file = fopen(WHIT_SOURCE_DIR "/src/engine/model/families/decoder.ndl", "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text / 2, file)] = 0;
    fclose(file);
    assert_non_null(strstr(text, from));
    for (char *at; (at = strstr(text, from));) {
        memmove(at + strlen(to), at + strlen(from), strlen(at + strlen(from)) + 1);
        memcpy(at, to, strlen(to));
    }
    return text;
}

#endif
