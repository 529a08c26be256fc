/* SPDX-License-Identifier: MIT
 * Declares the plots of the tales. A plot is a list of patterns (grammar.h), which tell a tale from its beginning to a
 * clear end. */
#ifndef TALES_PLOTS_H
#define TALES_PLOTS_H

#define MAX_BEATS 24

enum {
    PLOT_IS_A_THING = 1, /* `about` names a thing, so a request may have "a fox and" before it */
    PLOT_HAS_FRIEND = 2, /* the friend {b} appears */
    PLOT_FLIES = 4,      /* {q} is blown or thrown into the air */
    PLOT_FLOATS = 8,     /* {o} swims on water */
};

struct plot {
    const char *about; /* pattern for the subject of the tale in a request */
    unsigned flags;
    const char *beats[MAX_BEATS]; /* in order, joined by spaces; NULL after the last */
};

extern const struct plot tales_plots[];
extern const unsigned tales_n_plots;

#endif
