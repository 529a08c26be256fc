/* SPDX-License-Identifier: MIT
 * Checks the files that a verb will write before it begins to work: the suffix of a name must match the format. */
#ifndef WHIT_CLI_OUTPUTS_H
#define WHIT_CLI_OUTPUTS_H

#include "cli/cli.h"

typedef enum cli_output_kind {
    CLI_OUTPUT_MODEL,   /* a model or an adapter as an .ndf */
    CLI_OUTPUT_GGUF,    /* a model as a GGUF file, for other programs */
    CLI_OUTPUT_FLOATS,  /* float32 values without a header */
    CLI_OUTPUT_VECTORS, /* vectors: a NumPy file if the suffix is .npy, otherwise lines of JSON */
    CLI_OUTPUT_PAGE,    /* an HTML page */
    CLI_OUTPUT_PICTURE, /* SVG */
    CLI_OUTPUT_LOG,     /* lines of JSON, to which the verb appends */
    CLI_OUTPUT_OWN,     /* a verb's own format, such as a checkpoint */
} cli_output_kind;

typedef struct cli_named_file {
    const char *option; /* name of the option for messages, such as "--calib" */
    const char *path;   /* value of the option; NULL: not given */
} cli_named_file;

/* Refuses an output whose suffix is that of another format, or that cannot be written; leaves no file. path NULL: there
 * is no output. Returns CLI_OK, or a status that was already reported. */
int cli_check_output(cli_call *call, const char *path, cli_output_kind kind);

/* Refuses an output that is the same file as one of n inputs, because it would replace it. Names of pulled models are
 * resolved to their paths. Devices may be input and output. Returns CLI_OK, or a status that was already reported. */
int cli_check_apart(cli_call *call, cli_named_file output, const cli_named_file *inputs, size_t n);

/* Refuses to begin a run anew if the file `path` (NULL: no file) has more than n_bytes bytes: these are the work of an
 * earlier run, which --resume would continue and the new run would replace. Returns CLI_OK, or a status that was
 * already reported. */
int cli_check_anew(cli_call *call, const char *path, uint64_t n_bytes);

#endif
