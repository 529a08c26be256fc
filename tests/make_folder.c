/* SPDX-License-Identifier: MIT
 * Writes a model folder for scripts: make_folder NAME OUT [--layers N] [--divide N] [--vocab N]
 * [--vocabulary FOLDER] [--template FILE] [--seed N]. Without arguments it prints the names. */
#include "model_folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    if (argc < 3) {
        for (int i = 0; folder_names[i]; i++) puts(folder_names[i]);
        return argc > 1 ? 2 : 0;
    }
    const folder_model *model = folder_find(argv[1]);
    uint32_t layers = 0, divisor = 1, n_vocab = 0;
    uint64_t seed = 1;
    const char *vocabulary = NULL, *chat_template = NULL;
    for (int i = 3; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--layers")) layers = (uint32_t)strtoul(argv[i + 1], NULL, 10);
        if (!strcmp(argv[i], "--divide")) divisor = (uint32_t)strtoul(argv[i + 1], NULL, 10);
        if (!strcmp(argv[i], "--vocab")) n_vocab = (uint32_t)strtoul(argv[i + 1], NULL, 10);
        if (!strcmp(argv[i], "--seed")) seed = strtoull(argv[i + 1], NULL, 10);
        if (!strcmp(argv[i], "--vocabulary")) vocabulary = argv[i + 1];
        if (!strcmp(argv[i], "--template")) chat_template = argv[i + 1];
    }
    if (!model) {
        fprintf(stderr, "no model '%s'\n", argv[1]);
        return 2;
    }
    folder_model reduced = folder_reduce(model, layers, divisor, n_vocab);
    return !folder_write(&reduced, argv[2], seed, vocabulary, chat_template);
}
