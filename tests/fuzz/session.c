/* SPDX-License-Identifier: MIT
 * Plays a sequence of calls on a session (session_play.h): the input's bytes are its decisions in order, followed by
 * zeros. */
#include <stdio.h>
#include <stdlib.h>

#include "session_play.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static play_counts counts;
    char why[512];
    play_source source = {.data = data, .size = size};
    if (session_play(&source, &counts, why, sizeof why)) return 0;
    fprintf(stderr, "%s\n", why);
    abort();
}
