/* SPDX-License-Identifier: MIT
 * Makes the page of compress --report: self-contained HTML with the error and bits of every matrix as charts and a
 * table, and samples of the model's text before and after. */
#ifndef WHIT_CLI_COMPRESS_PAGE_H
#define WHIT_CLI_COMPRESS_PAGE_H

#include <whit.h>

#include "base/mem.h"

typedef struct cli_compressed_matrix {
    char name[96], codec[8];
    uint32_t layer, group, sweeps;
    uint64_t n_weights;
    double bits;              /* per weight, including scales and padding */
    double error_gptq, error; /* relative error of the matrix's outputs, before and after descent */
} cli_compressed_matrix;

typedef struct cli_compress_sample {
    char *prompt, *before, *after; /* the models' texts, converted to UTF-8; malloc'd */
} cli_compress_sample;

enum { CLI_COMPRESS_SAMPLES = 3 };

typedef struct cli_compress_page {
    const char *source, *output, *command;
    const char *tuning; /* "60000 tokens"; NULL: not tuned */
    double layer_bits;
    uint64_t bytes_before, bytes_after; /* bytes of all tensors; the source's as in memory */
    whit_buf matrices;                  /* cli_compressed_matrix[] in the order of completion */
    uint32_t n_unreported;              /* matrices finished by an earlier run */
    cli_compress_sample samples[CLI_COMPRESS_SAMPLES];
    uint32_t n_samples;
    double seconds;
} cli_compress_page;

/* Samples the text of both models after some places of the given text, by the likeliest tokens; fewer samples if the
 * text is short. */
whit_status cli_compress_page_sample(cli_compress_page *page, const whit_model *original, const whit_model *compressed,
                                     const int32_t *ids, size_t n_ids, whit_error *error);
/* Writes the page atomically. Texts are escaped, whatever they contain. */
whit_status cli_compress_page_write(const cli_compress_page *page, const char *path, whit_error *error);
void cli_compress_page_free(cli_compress_page *page);

#endif
