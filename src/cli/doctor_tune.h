/* SPDX-License-Identifier: MIT
 * Implements whit doctor --tune, which measures the machine's profile (profile.h). */
#ifndef WHIT_CLI_DOCTOR_TUNE_H
#define WHIT_CLI_DOCTOR_TUNE_H

#include "cli/cli.h"
#include "cli/profile.h"

/* Measures every setting on a random model of TinyLlama's shape, which the cache keeps, and writes the profile. Adds
 * "tuned", an object for each setting, to the report. The result is CLI_OK or a status already reported. */
int cli_doctor_tune(cli_call *call, json_t *report);
/* Adds the profile in use to the report: its file, its state, and the settings. */
void cli_doctor_profile(json_t *report);
/* Prints the profile and, after a tuning, the measured settings as text. */
void cli_doctor_print_profile(cli_call *call, const json_t *report);

#endif
