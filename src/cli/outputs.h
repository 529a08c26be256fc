/* SPDX-License-Identifier: MIT
 * Checks files that a verb writes, before any work: their names imply their formats. */
#ifndef WHIT_CLI_OUTPUTS_H
#define WHIT_CLI_OUTPUTS_H

#include "cli/cli.h"

typedef enum cli_output_kind {
    CLI_OUTPUT_MODEL,   /* a model or an adapter as an .ndf */
    CLI_OUTPUT_GGUF,    /* a model for other programs */
    CLI_OUTPUT_FLOATS,  /* float32 numbers without a header */
    CLI_OUTPUT_VECTORS, /* .npy, else lines of JSON */
    CLI_OUTPUT_PAGE,    /* a page for browsers */
    CLI_OUTPUT_PICTURE, /* SVG */
    CLI_OUTPUT_LOG,     /* lines of JSON, appended */
    CLI_OUTPUT_OWN,     /* a format of one verb, such as a checkpoint */
} cli_output_kind;

typedef struct cli_named_file {
    const char *option; /* "--calib", as named in messages */
    const char *path;   /* NULL if not given */
} cli_named_file;

/* Refuses an output whose suffix implies another format, or that cannot be written. Leaves no file. NULL means that
 * there is no output. The result is CLI_OK or a status already reported. */
int cli_check_output(cli_call *call, const char *path, cli_output_kind kind);

/* Refuses an output that is one of n inputs, whose content it would replace. Names of pulled models are resolved;
 * devices may be shared. The result is CLI_OK or a status already reported. */
int cli_check_apart(cli_call *call, cli_named_file output, const cli_named_file *inputs, size_t n);

/* Refuses to begin a run anew while `path` has more than n_bytes: --resume would continue from them, and the run would
 * replace them. The result is CLI_OK or a status already reported. */
int cli_check_anew(cli_call *call, const char *path, uint64_t n_bytes);

#endif
