/* SPDX-License-Identifier: MIT
 * --plot: the curve of a training run as an SVG that any browser shows. */
#ifndef WHIT_CLI_PLOT_H
#define WHIT_CLI_PLOT_H

#include "base/mem.h"

typedef struct cli_plot_point {
    double step, loss, held; /* held NAN: not measured then */
} cli_plot_point;

typedef struct cli_plot {
    const char *title, *measure; /* "KL to the teacher, nats" */
    whit_buf points;             /* cli_plot_point[] by rising step */
} cli_plot;

/* Points of the same step and of later ones go. Out of memory is told by the buffer. */
void cli_plot_add(cli_plot *plot, cli_plot_point point);
/* The points of an earlier part of the run, from its log's JSON lines: `field` is the loss's name,
 * "held_" in front of it that of the held-out text's. Lines that say something else are passed over;
 * where a run begins that was not resumed, what was before is dropped. */
void cli_plot_read_log(cli_plot *plot, const char *path, const char *field);
/* The picture, atomically; nothing where there are no points. A vertical axis that spans more than a
 * factor of ten is logarithmic. */
whit_status cli_plot_write(const cli_plot *plot, const char *path, whit_error *error);
void cli_plot_free(cli_plot *plot);

#endif
