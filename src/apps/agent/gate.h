/* SPDX-License-Identifier: MIT
 * Runs the gate: the checks that the changes of an agent's turn must pass before they are shown, approved and
 * written. */
#ifndef WHIT_AGENT_GATE_H
#define WHIT_AGENT_GATE_H

#include "agent/runs.h"

/* Runs the whole gate: the syntax of every change, then the checks of the runner's configuration in its copy "gate" of
 * the project. *passed becomes false if a check fails, and `why` then gets the failure, for the model. `on_check` (may
 * be NULL) is told each command, and prevents it by returning false. Errors: errors of whit_runner_run. */
whit_status whit_gate_pass(whit_runner *runner, const whit_changes *staged,
                           bool (*on_check)(void *user, const char *line), void *user, bool *passed, whit_buf *why,
                           whit_error *error);
/* Records that the changes of the last pass were written, so that the files that its checks built are reused. */
void whit_gate_written(whit_runner *runner);

#endif
