/* SPDX-License-Identifier: MIT
 * compress --report: one HTML page that needs nothing else, with the error and bits of every matrix as pictures and a
 * table, and what the model writes before and after. */
#ifndef WHIT_CLI_COMPRESS_PAGE_H
#define WHIT_CLI_COMPRESS_PAGE_H

#include <whit.h>

#include "base/mem.h"

typedef struct cli_compressed_matrix {
    char name[96], codec[8];
    uint32_t layer, group, sweeps;
    uint64_t n_weights;
    double bits;              /* per weight, scales and padding counted */
    double error_gptq, error; /* of its outputs, as a share; before and after descent */
} cli_compressed_matrix;

typedef struct cli_compress_sample {
    char *prompt, *before, *after; /* UTF-8 of whatever the models wrote; malloc'd */
} cli_compress_sample;

enum { CLI_COMPRESS_SAMPLES = 3 };

typedef struct cli_compress_page {
    const char *source, *output, *command;
    const char *tuning; /* "60000 tokens"; NULL: none */
    double layer_bits;
    uint64_t bytes_before, bytes_after; /* of all tensors, the source's as it is held in memory */
    whit_buf matrices;                  /* cli_compressed_matrix[] in the order in which they were made */
    uint32_t n_unreported;              /* finished by a run before this one */
    cli_compress_sample samples[CLI_COMPRESS_SAMPLES];
    uint32_t n_samples;
    double seconds;
} cli_compress_page;

/* What both models write after some places of the text, the likeliest token each time; fewer where it is short. */
whit_status cli_compress_page_sample(cli_compress_page *page, const whit_model *original, const whit_model *compressed,
                                     const int32_t *ids, size_t n_ids, whit_error *error);
/* Atomically. Texts are shown as text, whatever they hold. */
whit_status cli_compress_page_write(const cli_compress_page *page, const char *path, whit_error *error);
void cli_compress_page_free(cli_compress_page *page);

#endif
