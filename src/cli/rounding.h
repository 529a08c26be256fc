/* SPDX-License-Identifier: MIT
 * Rounds a model to types of GGUF files, for whit export and whit refine: writes the rounded model into a temporary
 * .ndf beside the output, and reports the rounding error. */
#ifndef WHIT_CLI_ROUNDING_H
#define WHIT_CLI_ROUNDING_H

#include "cli/cli.h"
#include "cli/names.h"
#include "compress/compress.h"

typedef struct cli_rounding {
    const char *output, *codec; /* codec: as in whit_compress_options */
    const whit_source *like;
    const cli_list *calib; /* calibration texts; empty list: plain rounding */
    uint32_t max_tokens;   /* upper limit of the tokens used from the texts */
    uint32_t n_threads;
    bool verbose;
    char path[CLI_PATH_BYTES]; /* path of the rounded model, an .ndf beside the output */
    /* Results: number of rounded matrices, number of their weights, the sum of each matrix's error times its number of
     * weights, the largest error, and the name of the matrix that has it. Errors are relative squared errors: of the
     * matrix's outputs, or without calibration texts of its weights. */
    uint32_t n;
    double weights, errors, worst;
    char worst_name[WHIT_VALUE_NAME_BYTES];
} cli_rounding;

#define CLI_CALIB_TOKENS 131072 /* default of --calib-tokens */
/* Row of an option table for --calib-tokens. AT: offset of the uint32_t that receives the number. */
#define CLI_CALIB_TOKENS_OPTION(at)                                                                                    \
    {                                                                                                                  \
        "--calib-tokens", CLI_COUNT, (at), "N",                                                                        \
            "Tokens of the text to use at most, spread over it; 131072 by default.", 1, 1 << 30                        \
    }

/* Rounds a source and writes the result to rounding->path, a path that must not exist yet. The caller then calls
 * cli_rounding_end, which removes that file. */
whit_status cli_round(cli_rounding *rounding, const whit_source *source, whit_error *error);
void cli_rounding_end(const cli_rounding *rounding);
/* Prints one line with the number of rounded matrices, their mean and their largest error; prints nothing if no matrix
 * was rounded. */
void cli_rounding_report(const cli_rounding *rounding);

#endif
