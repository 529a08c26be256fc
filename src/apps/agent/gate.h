/* SPDX-License-Identifier: MIT
 * Runs the gate: the checks that the changes of an agent's turn must pass before they are shown, approved and
 * written. */
#ifndef WHIT_AGENT_GATE_H
#define WHIT_AGENT_GATE_H

#include "agent/runs.h"

/* Runs the checks before writing: the syntax of every change, then the commands of the runner's configuration in the
 * scratch copy "gate", until a check fails. Then *passed becomes false and `why` gets the failure, for the model.
 * `on_check` (may be NULL) is called before each command; if it returns false, the command is not run and counts as
 * failed. Errors: those of whit_runner_run. */
whit_status whit_gate_pass(whit_runner *runner, const whit_changes *staged,
                           bool (*on_check)(void *user, const char *line), void *user, bool *passed, whit_buf *why,
                           whit_error *error);
/* Records that the changes of the last successful whit_gate_pass() were written, so that the next pass reuses the files
 * that the checks built. */
void whit_gate_written(whit_runner *runner);

#endif
