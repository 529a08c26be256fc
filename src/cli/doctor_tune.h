/* SPDX-License-Identifier: MIT
 * Declares whit doctor --tune, which measures the machine's profile (profile.h). */
#ifndef WHIT_CLI_DOCTOR_TUNE_H
#define WHIT_CLI_DOCTOR_TUNE_H

#include "cli/cli.h"
#include "cli/profile.h"

/* Measures every setting with a random model of TinyLlama's shape, which stays in the cache, and writes the profile.
 * Adds "tuned", with an object for each setting, to the report. Returns CLI_OK, or a status that was already
 * reported. */
int cli_doctor_tune(cli_call *call, json_t *report);
/* Adds the machine's profile to the report: its file, its state and its settings. Adds nothing if the file's path is
 * unknown. */
void cli_doctor_profile(json_t *report);
/* Prints the profile as text and, after a tuning, the measurements. */
void cli_doctor_print_profile(cli_call *call, const json_t *report);

#endif
