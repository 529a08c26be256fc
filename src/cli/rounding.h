/* SPDX-License-Identifier: MIT
 * Rounds a model to types of GGUF files in a file beside an output, and reports the loss, for whit export and
 * refine. */
#ifndef WHIT_CLI_ROUNDING_H
#define WHIT_CLI_ROUNDING_H

#include "cli/cli.h"
#include "cli/names.h"
#include "compress/compress.h"

typedef struct cli_rounding {
    const char *output, *codec; /* codec as in whit_compress_options */
    const whit_source *like;
    const cli_list *calib; /* calibration texts; empty: plain rounding */
    uint32_t max_tokens;   /* tokens of the texts that are used at most */
    uint32_t n_threads;
    bool verbose;
    char path[CLI_PATH_BYTES]; /* the rounded model, an .ndf beside the output */
    /* The members below are sums over the rounded matrices: */
    uint32_t n;
    double weights, errors, worst;
    char worst_name[WHIT_VALUE_NAME_BYTES];
} cli_rounding;

#define CLI_CALIB_TOKENS 131072 /* default of --calib-tokens */
/* Makes a row of the option tables of verbs that read a calibration text: AT is the offset of a uint32_t. */
#define CLI_CALIB_TOKENS_OPTION(at)                                                                                    \
    {                                                                                                                  \
        "--calib-tokens", CLI_COUNT, (at), "N",                                                                        \
            "Tokens of the text to use at most, spread over it; 131072 by default.", 1, 1 << 30                        \
    }

/* Rounds a source into rounding->path, which cli_rounding_end removes. */
whit_status cli_round(cli_rounding *rounding, const whit_source *source, whit_error *error);
void cli_rounding_end(const cli_rounding *rounding);
/* Prints one line about the loss, if anything was rounded. */
void cli_rounding_report(const cli_rounding *rounding);

#endif
