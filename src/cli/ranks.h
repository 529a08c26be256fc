/* SPDX-License-Identifier: MIT
 * Joins verbs to the ranks that mpirun starts on several machines. */
#ifndef WHIT_CLI_RANKS_H
#define WHIT_CLI_RANKS_H

#include "base/ranks.h"
#include "cli/cli.h"

/* Makes an open model, under mpirun, one that all ranks run together (runtime/split.h). Rank 0 continues with CLI_OK.
 * On the other ranks this returns when rank 0 has closed the model: CLI_FOLLOWED, and the verb has nothing left to
 * do. */
int cli_split_model(cli_call *call, whit_model *model);
/* Returns whether mpirun has started this process. */
bool cli_under_mpirun(void);
/* Joins the ranks under mpirun, for a verb that shares its work itself; otherwise *ranks is NULL. */
int cli_join_ranks(cli_call *call, const whit_ranks **ranks);
/* Reports the traffic of rank 0; no effect without ranks. */
void cli_note_ranks(const whit_session *session);
/* Leaves the ranks at the end of the program. `failed`: ends the other ranks, too. */
void cli_ranks_end(bool failed);

#endif
