/* SPDX-License-Identifier: MIT
 * Draws the picture of --plot: the curve of a training run as an SVG that any browser shows. */
#ifndef WHIT_CLI_PLOT_H
#define WHIT_CLI_PLOT_H

#include "base/mem.h"

typedef struct cli_plot_point {
    double step, loss, held; /* held NAN: not measured at this step */
} cli_plot_point;

typedef struct cli_plot {
    const char *title, *measure; /* title of the picture; e.g. "KL to the teacher, nats" */
    whit_buf points;             /* cli_plot_point[] by rising step */
} cli_plot;

/* Adds a point; points of this and later steps are removed. If memory runs out, the buffer is marked as failed. */
void cli_plot_add(cli_plot *plot, cli_plot_point point);
/* Reads the points of an earlier part of the run, from its log's JSON lines: `field` is the name of the loss, and
 * "held_" + field is the name of the held-out text's loss. Other lines are skipped; at the beginning of a new run that
 * was not resumed, earlier points are dropped. */
void cli_plot_read_log(cli_plot *plot, const char *path, const char *field);
/* Writes the picture atomically; nothing if there are no points. A vertical axis that spans more than a factor of ten
 * is logarithmic. */
whit_status cli_plot_write(const cli_plot *plot, const char *path, whit_error *error);
void cli_plot_free(cli_plot *plot);

#endif
