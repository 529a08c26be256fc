/* SPDX-License-Identifier: MIT
 * Every verb, one file each. */
#ifndef WHIT_CLI_VERBS_H
#define WHIT_CLI_VERBS_H

#include "cli/cli.h"

extern const cli_verb cli_doctor_verb;
extern const cli_verb cli_help_verb;
extern const cli_verb cli_kernels_verb;
extern const cli_verb cli_verify_verb;

#endif
