/* SPDX-License-Identifier: MIT
 * The plots: patterns of grammar.h, sentence by sentence, from a beginning to a clear end. */
#ifndef TALES_PLOTS_H
#define TALES_PLOTS_H

#define MAX_BEATS 24

enum {
    PLOT_IS_A_THING = 1, /* one can ask for "a fox and ..." */
    PLOT_HAS_FRIEND = 2, /* {b} is in it */
    PLOT_FLIES = 4,      /* {q} is blown or thrown into the air */
    PLOT_FLOATS = 8,     /* {o} swims on water */
};

struct plot {
    const char *about; /* as somebody would ask for it */
    unsigned flags;
    const char *beats[MAX_BEATS]; /* in order, joined by spaces; ends with NULL */
};

extern const struct plot tales_plots[];
extern const unsigned tales_n_plots;

#endif
