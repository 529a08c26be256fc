/* SPDX-License-Identifier: MIT
 * Declares the histograms of requests for /metrics, and the log of requests, which has one line of JSON per request. */
#ifndef WHIT_SERVER_METRICS_H
#define WHIT_SERVER_METRICS_H

#include <jansson.h>

#include "base/mem.h"

#define WHIT_HISTOGRAM_BOUNDS 16

/* Kinds of values in a histogram. Times are added in nanoseconds and printed in seconds. */
typedef enum whit_histogram_kind {
    WHIT_HISTOGRAM_TIMES,
    WHIT_HISTOGRAM_TOKENS,
    WHIT_HISTOGRAM_KINDS
} whit_histogram_kind;

/* A histogram: for each bucket, whose bounds depend on the kind (metrics.c), the number of values in it; the last count
 * is of values above all bounds. */
typedef struct whit_histogram {
    uint64_t counts[WHIT_HISTOGRAM_BOUNDS + 1];
    uint64_t sum;
} whit_histogram;

void whit_histogram_add(whit_histogram *histogram, whit_histogram_kind kind, uint64_t value);
void whit_histogram_merge(whit_histogram *histogram, const whit_histogram *other);
/* Write Prometheus' text format. The first function writes the HELP and TYPE lines of the metric whit:NAME; the second
 * writes a histogram's lines for one model, whose name must already be escaped. */
void whit_metric_begin(const char *name, const char *type, const char *help, whit_buf *out);
void whit_histogram_write(const whit_histogram *histogram, whit_histogram_kind kind, const char *name,
                          const char *model, whit_buf *out);

typedef struct whit_request_log {
    int fd;     /* descriptor; -1: no log */
    bool texts; /* include the texts of requests and answers */
} whit_request_log;

/* Opens the file `path` for appending; a new file gets mode 0600. "-" is stderr; NULL: no log. */
whit_status whit_request_log_open(const char *path, bool texts, whit_request_log *log, whit_error *error);
void whit_request_log_close(whit_request_log *log);
/* Adds the member "time" before all others, and writes the line with one system call. Takes ownership of the object. If
 * the disk is full, the line is lost, but no request fails. */
void whit_request_log_write(const whit_request_log *log, json_t *line);

#endif
