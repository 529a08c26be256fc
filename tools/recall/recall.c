/* SPDX-License-Identifier: MIT
 * Writes the text that the recall model learns from (docs/recall.md).
 *
 *   recall SEED DOCUMENTS LINES NAMES
 *
 * A document is a list of lockers: a name with the letter of its locker, " baK". Which letter a name has is drawn for
 * each document anew. Half the time a name that has been there is asked for first: " ba baK". NAMES of all names take
 * part in a document, the one of rank r with a weight of 1 / (r + 1)^2: some come all the time, some a few times in a
 * thousand, so that what is asked for may lie far behind. Documents begin with <s>. The same seed gives the same text
 * on every machine. */
#include "recall/lockers.h"

#include <stdio.h>
#include <stdlib.h>

static bool number_of(const char *text, uint32_t most, uint32_t *number)
{
    char *end;
    const unsigned long value = strtoul(text, &end, 10);
    *number = (uint32_t)value;
    return *text && !*end && value <= most;
}

static void write_document(whit_rng *rng, uint32_t n_lines, uint32_t n_names)
{
    lockers lockers;
    bool is_known[LOCKERS_NAMES] = {false};
    lockers_draw(&lockers, rng, n_names);
    fputs("<s>", stdout);
    for (uint32_t i = 0; i < n_lines; i++) {
        char label[LOCKERS_LABEL_BYTES];
        const uint32_t name = lockers_next(&lockers, rng);
        const bool asks = whit_rng_next(rng) & 1;
        lockers_label(name, 0, label);
        if (asks && is_known[name]) fputs(label, stdout);
        lockers_label(name, lockers.letter[name], label);
        fputs(label, stdout);
        is_known[name] = true;
    }
    putchar('\n');
}

int main(int argc, char **argv)
{
    uint32_t seed, n_documents, n_lines, n_names;
    if (argc != 5 || !number_of(argv[1], UINT32_MAX, &seed) || !number_of(argv[2], UINT32_MAX, &n_documents) ||
        !number_of(argv[3], 1 << 20, &n_lines) || !number_of(argv[4], LOCKERS_NAMES, &n_names) || !n_names) {
        fprintf(stderr, "usage: recall SEED DOCUMENTS LINES NAMES (of %d)\n", LOCKERS_NAMES);
        return 2;
    }
    whit_rng rng = {seed};
    for (uint32_t i = 0; i < n_documents; i++) write_document(&rng, n_lines, n_names);
    return fflush(stdout) == 0 ? 0 : 1;
}
