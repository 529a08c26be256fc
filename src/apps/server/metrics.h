/* SPDX-License-Identifier: MIT
 * Histograms of requests for /metrics, and the log of requests, which has a line of JSON for each. */
#ifndef WHIT_SERVER_METRICS_H
#define WHIT_SERVER_METRICS_H

#include <jansson.h>

#include "base/mem.h"

#define WHIT_HISTOGRAM_BOUNDS 16

/* Names the kind of a histogram. Times are added in ns and written in seconds. */
typedef enum whit_histogram_kind {
    WHIT_HISTOGRAM_TIMES,
    WHIT_HISTOGRAM_TOKENS,
    WHIT_HISTOGRAM_KINDS
} whit_histogram_kind;

/* Describes a histogram of times or numbers of tokens: the number of values in each bucket, whose bounds depend on the
 * kind (metrics.c), and the number of values above the last bound. */
typedef struct whit_histogram {
    uint64_t counts[WHIT_HISTOGRAM_BOUNDS + 1];
    uint64_t sum;
} whit_histogram;

void whit_histogram_add(whit_histogram *histogram, whit_histogram_kind kind, uint64_t value);
void whit_histogram_merge(whit_histogram *histogram, const whit_histogram *other);
/* Write Prometheus' text format. The first writes the HELP and TYPE lines of whit:NAME, the second a histogram's lines
 * for one model, whose name is escaped. */
void whit_metric_begin(const char *name, const char *type, const char *help, whit_buf *out);
void whit_histogram_write(const whit_histogram *histogram, whit_histogram_kind kind, const char *name,
                          const char *model, whit_buf *out);

typedef struct whit_request_log {
    int fd;     /* -1: no log */
    bool texts; /* log the texts of requests and answers, too */
} whit_request_log;

/* Opens `path` for appending, and creates it with mode 0600; "-" is stderr; NULL: no log. */
whit_status whit_request_log_open(const char *path, bool texts, whit_request_log *log, whit_error *error);
void whit_request_log_close(whit_request_log *log);
/* Inserts "time" before the other members and writes the line with one call. Takes ownership of the object. A full disk
 * causes lost lines, but no failed requests. */
void whit_request_log_write(const whit_request_log *log, json_t *line);

#endif
