/* SPDX-License-Identifier: MIT
 * Writes the text that the recall model learns from (tools/lockers/lockers.h).
 *
 *   lockers SEED DOCUMENTS WORDS NAMES
 *
 * Documents begin with <s> and are a line each. The same seed gives the same text on every machine. */
#include "lockers/lockers.h"

#include <stdio.h>
#include <stdlib.h>

static bool number_of(const char *text, uint32_t least, uint32_t most, uint32_t *number)
{
    char *end;
    const unsigned long value = strtoul(text, &end, 10);
    *number = (uint32_t)value;
    return *text && !*end && value >= least && value <= most;
}

static void print_word(void *context, uint32_t name, char letter)
{
    char label[LOCKERS_LABEL_BYTES];
    lockers_label(name, letter, label);
    fputs(label, context);
}

int main(int argc, char **argv)
{
    uint32_t seed, n_documents, n_words, n_names;
    if (argc != 5 || !number_of(argv[1], 0, UINT32_MAX, &seed) || !number_of(argv[2], 1, UINT32_MAX, &n_documents) ||
        !number_of(argv[3], 8, 1 << 20, &n_words) || !number_of(argv[4], 4, LOCKERS_NAMES, &n_names)) {
        fprintf(stderr, "usage: lockers SEED DOCUMENTS WORDS NAMES (4 to %d)\n", LOCKERS_NAMES);
        return 2;
    }
    whit_rng rng = {seed};
    for (uint32_t i = 0; i < n_documents; i++) {
        fputs("<s>", stdout);
        lockers_document(&rng, n_names, n_words, print_word, stdout);
        putchar('\n');
    }
    return fflush(stdout) == 0 ? 0 : 1;
}
