/* SPDX-License-Identifier: MIT */
#include "cli/ranks.h"

#include <inttypes.h>

#include "ranks/ranks.h"
#include "runtime/split.h"

static whit_ranks ranks;  /* ranks.user is NULL until this process has joined the ranks */
static bool have_a_model; /* cli_split_model has made the ranks run a model */

int cli_split_model(cli_call *call, whit_model *model)
{
    whit_error error;
    const whit_ranks *joined;
    if (model->split) return CLI_OK;
    if (have_a_model)
        return cli_fail(call, CLI_USAGE,
                        "several machines can run only one model at a time: name one, or start whit without mpirun");
    const int status_joined = cli_join_ranks(call, &joined);
    if (status_joined != CLI_OK || ranks.n_ranks <= 1) return status_joined;
    have_a_model = true;
    whit_status status = whit_model_split(model, &ranks, &error);
    if (status == WHIT_OK && !ranks.rank) return CLI_OK;
    if (status == WHIT_OK) status = whit_model_follow(model, &error);
    return status == WHIT_OK ? CLI_FOLLOWED : cli_fail_error(call, &error);
}

bool cli_under_mpirun(void)
{
    return whit_ranks_are_wanted();
}

static void say_that_ranks_wait(void)
{
    cli_note("waiting for the other ranks for %d s now: one is still reading its files, or ended before it joined; "
             "Ctrl-C ends the run",
             WHIT_RANKS_PATIENCE_S);
}

int cli_join_ranks(cli_call *call, const whit_ranks **joined)
{
    whit_error error;
    *joined = NULL;
    if (!whit_ranks_are_wanted()) return CLI_OK;
    if (!ranks.user && whit_ranks_open(&ranks, say_that_ranks_wait, &error) != WHIT_OK)
        return cli_fail_error(call, &error);
    *joined = &ranks;
    return CLI_OK;
}

void cli_note_ranks(const whit_session *session)
{
    const whit_model_ranks *split = session->model->split;
    const whit_exec_traffic *traffic = &session->exec.traffic;
    if (!split || !split->n_passes) return;
    const double n = (double)split->n_passes;
    cli_note("%u ranks; rank 0, a pass: %.1f exchanges, %.1f messages and %.0f bytes sent, %.0f bytes received",
             ranks.n_ranks, (double)traffic->n_gathers / n, (double)(traffic->n_messages + split->n_messages) / n,
             (double)(traffic->sent_bytes + split->sent_bytes) / n, (double)traffic->received_bytes / n);
}

void cli_ranks_end(bool failed)
{
    if (ranks.user) whit_ranks_close(&ranks, failed);
}
