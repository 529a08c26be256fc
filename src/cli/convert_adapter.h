/* SPDX-License-Identifier: MIT
 * Declares the part of whit convert that handles adapters. */
#ifndef WHIT_CLI_CONVERT_ADAPTER_H
#define WHIT_CLI_CONVERT_ADAPTER_H

#include "cli/cli.h"

typedef struct cli_adapter_conversion {
    const char *path;   /* source: a LoRA folder, or an adapter in whit's own format */
    const char *model;  /* the model of --for */
    const char *output; /* path given by -o; NULL if `append` */
    bool append;        /* append the adapter to the model's own file */
    const char *name;   /* name of the adapter; NULL: derived from the output's name or, with `append`, the source's */
    bool json;
} cli_adapter_conversion;

bool cli_is_adapter(const char *path);
int cli_convert_adapter(cli_call *call, const cli_adapter_conversion *wanted);

#endif
