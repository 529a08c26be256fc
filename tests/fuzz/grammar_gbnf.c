/* SPDX-License-Identifier: MIT
 * Any bytes as GBNF, and a walk along what came of it. */
#include "grammar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_grammar(whit_grammar_open_gbnf, data, size);
}
