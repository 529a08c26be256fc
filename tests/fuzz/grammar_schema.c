/* SPDX-License-Identifier: MIT
 * Compiles any bytes as a JSON schema, and walks at random through the grammar. */
#include "grammar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_grammar(whit_grammar_open_json_schema, data, size);
}
