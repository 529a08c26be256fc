/* SPDX-License-Identifier: MIT
 * Draws the picture of --plot: the losses of a training run as an SVG file, which browsers show. */
#ifndef WHIT_CLI_PLOT_H
#define WHIT_CLI_PLOT_H

#include "base/mem.h"

typedef struct cli_plot_point {
    double step, loss, held; /* held: loss on the held-out text; NAN: not measured at this step */
} cli_plot_point;

typedef struct cli_plot {
    const char *title, *measure; /* title of the picture; what is measured, such as "KL to the teacher, nats" */
    whit_buf points;             /* array of cli_plot_point, by ascending step */
} cli_plot;

/* Adds a point, and removes points of the same and later steps. If memory runs out, plot->points.failed becomes
 * true. */
void cli_plot_add(cli_plot *plot, cli_plot_point point);
/* Adds the points of an earlier part of the run from its log, which consists of JSON lines. field: name of the loss;
 * "held_" + field is that of the held-out text. Other lines are skipped. A line about the start of a run that was not
 * resumed removes all points. */
void cli_plot_read_log(cli_plot *plot, const char *path, const char *field);
/* Writes the picture atomically; writes nothing if there are no points. If the losses are positive and span more than a
 * factor of ten, the vertical axis is logarithmic. */
whit_status cli_plot_write(const cli_plot *plot, const char *path, whit_error *error);
void cli_plot_free(cli_plot *plot);

#endif
