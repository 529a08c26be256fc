/* SPDX-License-Identifier: MIT */
#include "cli/rounding.h"

#include <stdio.h>
#include <unistd.h>

#include "base/items.h"
#include "base/malloc.h"
#include "base/path.h"
#include "compress/text.h"

static void on_matrix(void *user, const whit_compress_report *report)
{
    cli_rounding *rounding = user;
    double n = (double)report->type->n_rows * report->type->n_cols;
    rounding->n++;
    rounding->weights += n;
    rounding->errors += n * report->error;
    if (report->error >= rounding->worst) {
        rounding->worst = report->error;
        snprintf(rounding->worst_name, sizeof rounding->worst_name, "%s", report->name);
    }
    if (rounding->verbose) cli_note("%s: error %.5f", report->name, report->error);
}

whit_status cli_round(cli_rounding *rounding, const whit_source *source, whit_error *error)
{
    whit_buf ids = {0};
    int n = snprintf(rounding->path, sizeof rounding->path, "%s.rounded.ndf", rounding->output);
    if (n < 0 || (size_t)n + sizeof ".work" > sizeof rounding->path) {
        rounding->path[0] = '\0';
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "-o: the output's path is too long, over about 4,000 bytes");
    }
    if (whit_path_exists(rounding->path)) {
        whit_fail(error, WHIT_ERROR_ARGUMENT,
                  "%.3000s: would be replaced and removed: rename it, or choose another name for the output",
                  rounding->path);
        rounding->path[0] = '\0'; /* so that cli_rounding_end does not remove this file */
        return WHIT_ERROR_ARGUMENT;
    }
    whit_malloc_map_from(1 << 20); /* larger arrays are mapped, so that freed memory returns to the system; otherwise
                                    * memory use would grow with each layer */
    whit_status status = WHIT_OK;
    for (size_t i = 0; status == WHIT_OK && i < rounding->calib->n; i++)
        status = whit_compress_read_text(source, rounding->calib->items[i], &ids, error);
    whit_compress_options options = {.codec = rounding->codec,
                                     .like = rounding->like,
                                     .method = rounding->calib->n ? WHIT_COMPRESS_FULL : WHIT_COMPRESS_RTN,
                                     .ids = WHIT_ITEMS(const int32_t, &ids),
                                     .n_ids = ids.size_bytes / sizeof(int32_t),
                                     .max_tokens = rounding->max_tokens,
                                     .bos = whit_compress_bos(source),
                                     .n_threads = rounding->n_threads,
                                     .command = "whit export",
                                     .progress = cli_progress,
                                     .report = on_matrix,
                                     .user = rounding};
    if (status == WHIT_OK) status = whit_compress(source, &options, rounding->path, NULL, error);
    whit_buf_free(&ids);
    return status;
}

void cli_rounding_end(const cli_rounding *rounding)
{
    char work[CLI_PATH_BYTES + 8];
    if (!rounding->path[0]) return;
    snprintf(work, sizeof work, "%s.work", rounding->path);
    unlink(rounding->path);
    unlink(work);
}

void cli_rounding_report(const cli_rounding *rounding)
{
    if (!rounding->n) return;
    cli_note("%s: %u matrices rounded, mean relative squared error of %s %.5f, largest %.5f (%s)", rounding->output,
             rounding->n, rounding->calib->n ? "their outputs" : "the weights", rounding->errors / rounding->weights,
             rounding->worst, rounding->worst_name);
}
