/* SPDX-License-Identifier: MIT
 * Lets verbs run on several ranks, which are processes that mpirun starts on one or more machines. */
#ifndef WHIT_CLI_RANKS_H
#define WHIT_CLI_RANKS_H

#include "base/ranks.h"
#include "cli/cli.h"

/* Under mpirun, makes all ranks run this open model together (runtime/split.h). On rank 0 returns CLI_OK, and the verb
 * continues. On the other ranks returns CLI_FOLLOWED when rank 0 has closed the model; the verb must then end. Without
 * mpirun returns CLI_OK. Refuses a second model. On failure returns an exit status after a message. */
int cli_split_model(cli_call *call, whit_model *model);
/* Returns whether mpirun has started this process. */
bool cli_under_mpirun(void);
/* Under mpirun, joins the ranks, for a verb that itself distributes its work. Otherwise sets *ranks to NULL. Returns an
 * exit status. */
int cli_join_ranks(cli_call *call, const whit_ranks **ranks);
/* Reports how much rank 0 has sent and received per pass. Does nothing without ranks. */
void cli_note_ranks(const whit_session *session);
/* Leaves the ranks before the program ends. failed: the other ranks are ended, too. */
void cli_ranks_end(bool failed);

#endif
