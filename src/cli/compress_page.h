/* SPDX-License-Identifier: MIT
 * Declares the page of compress --report: self-contained HTML with charts and a table of the error and bits of every
 * matrix, and samples of the model's text before and after. */
#ifndef WHIT_CLI_COMPRESS_PAGE_H
#define WHIT_CLI_COMPRESS_PAGE_H

#include <whit.h>

#include "base/mem.h"

typedef struct cli_compressed_matrix {
    char name[96], codec[8];
    uint32_t layer, group, sweeps;
    uint64_t n_weights;
    double bits;              /* bits per weight, including scales and padding */
    double error_gptq, error; /* relative squared errors of the matrix's outputs; error_gptq: after GPTQ; error:
                               * after the coordinate descent that follows */
} cli_compressed_matrix;

typedef struct cli_compress_sample {
    char *prompt, *before, *after; /* texts in UTF-8, from malloc: a prompt, and its continuations by the original and
                                    * by the compressed model */
} cli_compress_sample;

enum { CLI_COMPRESS_SAMPLES = 3 };

typedef struct cli_compress_page {
    const char *source, *output, *command;
    const char *tuning; /* extent of the tuning, such as "60000 tokens"; NULL: not tuned */
    double layer_bits;
    uint64_t bytes_before, bytes_after; /* bytes of all tensors in memory: of the source, and of the result */
    whit_buf matrices;                  /* array of cli_compressed_matrix, in the order in which the matrices were
                                         * finished */
    uint32_t n_unreported;              /* number of matrices that an earlier run has finished, about which nothing is
                                         * known */
    cli_compress_sample samples[CLI_COMPRESS_SAMPLES];
    uint32_t n_samples;
    double seconds;
} cli_compress_page;

/* Takes prompts from several places of the given text and continues them greedily with both models. A short text gives
 * fewer samples. */
whit_status cli_compress_page_sample(cli_compress_page *page, const whit_model *original, const whit_model *compressed,
                                     const int32_t *ids, size_t n_ids, whit_error *error);
/* Writes the page atomically. All texts are escaped. */
whit_status cli_compress_page_write(const cli_compress_page *page, const char *path, whit_error *error);
void cli_compress_page_free(cli_compress_page *page);

#endif
