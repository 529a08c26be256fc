/* SPDX-License-Identifier: MIT */
#include "server/metrics.h"
#include "server/json_text.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The upper bounds of the buckets, in the printed unit. scale: how many of the units in which values are added make one
 * printed unit, such as 1e9 for ns that are printed as seconds. */
static const struct {
    double bounds[WHIT_HISTOGRAM_BOUNDS], scale;
} kinds[WHIT_HISTOGRAM_KINDS] = {
    [WHIT_HISTOGRAM_TIMES] = {{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120},
                              1e9},
    [WHIT_HISTOGRAM_TOKENS] = {{1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 1024, 2048, 4096}, 1},
};

void whit_histogram_add(whit_histogram *histogram, whit_histogram_kind kind, uint64_t value)
{
    size_t i = 0;
    while (i < WHIT_HISTOGRAM_BOUNDS && (double)value > kinds[kind].bounds[i] * kinds[kind].scale) i++;
    histogram->counts[i]++;
    histogram->sum += value;
}

void whit_histogram_merge(whit_histogram *histogram, const whit_histogram *other)
{
    for (size_t i = 0; i <= WHIT_HISTOGRAM_BOUNDS; i++) histogram->counts[i] += other->counts[i];
    histogram->sum += other->sum;
}

void whit_metric_begin(const char *name, const char *type, const char *help, whit_buf *out)
{
    whit_buf_printf(out, "# HELP whit:%s %s\n# TYPE whit:%s %s\n", name, help, name, type);
}

void whit_histogram_write(const whit_histogram *histogram, whit_histogram_kind kind, const char *name,
                          const char *model, whit_buf *out)
{
    uint64_t n = 0;
    for (size_t i = 0; i <= WHIT_HISTOGRAM_BOUNDS; i++) {
        char bound[16] = "+Inf";
        if (i < WHIT_HISTOGRAM_BOUNDS) snprintf(bound, sizeof bound, "%g", kinds[kind].bounds[i]);
        n += histogram->counts[i];
        whit_buf_printf(out, "whit:%s_bucket{model=\"%s\",le=\"%s\"} %llu\n", name, model, bound,
                        (unsigned long long)n);
    }
    whit_buf_printf(out, "whit:%s_sum{model=\"%s\"} %.9g\nwhit:%s_count{model=\"%s\"} %llu\n", name, model,
                    (double)histogram->sum / kinds[kind].scale, name, model, (unsigned long long)n);
}

whit_status whit_request_log_open(const char *path, bool texts, whit_request_log *log, whit_error *error)
{
    *log = (whit_request_log){.fd = -1, .texts = texts};
    if (!path) return WHIT_OK;
    log->fd = !strcmp(path, "-") ? dup(STDERR_FILENO)
                                 : open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600);
    return log->fd < 0 ? whit_fail_errno(error, path, "open the log") : WHIT_OK;
}

void whit_request_log_close(whit_request_log *log)
{
    if (log->fd >= 0) close(log->fd);
    log->fd = -1;
}

void whit_request_log_write(const whit_request_log *log, json_t *line)
{
    struct timespec now;
    struct tm utc;
    char date[32], stamp[48];
    whit_buf out = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(stamp, sizeof stamp, "%s.%03ldZ", date, now.tv_nsec / 1000000);
    json_t *whole = json_pack("{s:s}", "time", stamp);
    json_object_update(whole, line);
    char *text = whole ? whit_json_write(whole) : NULL;
    if (text && whit_buf_append_str(&out, text) && whit_buf_append(&out, "\n", 1))
        /* a full disk, or a pipe whose reader has ended, loses the line */
        if (write(log->fd, out.data, out.size_bytes) < 0) {
        }
    free(text);
    whit_buf_free(&out);
    json_decref(whole);
    json_decref(line);
}
