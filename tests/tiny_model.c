/* SPDX-License-Identifier: MIT
 * Writes the tests' own model for scripts: tiny_model OUT.gguf [SEED [tied] [no-tokenizer] [chat]]. */
#include "tiny_model.h"

int main(int argc, char **argv)
{
    if (argc < 2) return 2;
    tiny_model model = tiny_model_default();
    if (argc > 2) model.seed = strtoull(argv[2], NULL, 10);
    for (int i = 3; i < argc; i++) {
        model.tied_head |= !strcmp(argv[i], "tied");
        if (!strcmp(argv[i], "chat")) model.chat_template = TINY_TEMPLATE;
        model.no_tokenizer |= !strcmp(argv[i], "no-tokenizer");
    }
    return !tiny_model_write(&model, argv[1]);
}
