/* SPDX-License-Identifier: MIT
 * Declares functions that the parts of whit agent share: patches and turns (agent.c), tasks (agent_task.c). */
#ifndef WHIT_CLI_AGENT_H
#define WHIT_CLI_AGENT_H

#include "agent/find_server.h"
#include "agent/turns.h"
#include "cli/flags.h"

struct agent_values {
    const char *project, *file, *state, *prompt, *url, *model, *key_file, *local, *keep;
    uint32_t n_turns, n_tokens, n_jobs;
    int64_t seed;
    float temperature;
    int allow;
    bool preview, json, no_sandbox, acp, yes, resume;
    bool hides_key; /* whit found the server by itself, so $WHIT_API_KEY is not sent */
    /* the server that `url` names; NULL: an option names the server, or the model runs in this process */
    const whit_found_server *found;
    cli_session_flags session;
};
/* The words of --allow; green and yellow are older names of read and write. */
enum { ALLOW_READ, ALLOW_WRITE, ALLOW_GREEN, ALLOW_YELLOW };

static inline bool cli_agent_may_write(const struct agent_values *values)
{
    return values->yes || values->allow == ALLOW_WRITE || values->allow == ALLOW_YELLOW;
}

/* Writes a diff on stdout; on a terminal in colours, unless NO_COLOR is set. */
void cli_agent_write_diff(cli_call *call, const char *text, size_t n_bytes);
/* Prints the difference that a change makes to its file on stdout. */
whit_status cli_agent_show(cli_call *call, const whit_change *change, whit_error *error);
/* Prints the differences of all changes on stdout, except with --json, and appends them to `shown` for the terminal on
 * which the question is asked. Errors: memory. */
struct whit_changes;
whit_status cli_agent_show_all(cli_call *call, const struct whit_changes *set, whit_buf *shown, whit_error *error);
/* Returns whether questions are asked on a terminal that does not show stdout: stdout is a pipe, a file or another
 * terminal, or --json is given. */
bool cli_agent_asks_elsewhere(cli_call *call);
/* Makes sure that the terminal on which questions are asked has shown a text that was written to stdout: if it does not
 * show stdout, or stdout has failed, writes the text to it. Returns false if that fails. */
bool cli_agent_is_shown(cli_call *call, const char *text, size_t n_bytes);
/* Asks for approval at the terminal; before that prints `shown` there if the terminal has not shown it. why: receives
 * the user's words about a refusal; may be NULL. */
bool cli_agent_agreed(cli_call *call, const whit_buf *shown, const char *reason, size_t n_files, whit_buf *why);
/* Prints the latest turn that can be undone as a diff. Returns an exit status. */
int cli_agent_latest(cli_call *call, const char *project);
/* Runs a command for turns: "undo", "redo" (with --preview they only show the changes) or "log". which: the number of
 * the turn to undo or redo; NULL: the latest one for which this is possible. reason: why the person is asked, after the
 * turn was shown; NULL: no question. Returns an exit status. */
int cli_agent_turns(cli_call *call, const char *project, const char *what, const char *which, const char *reason);
/* Lets the user edit staged changes in $VISUAL, $EDITOR or whit edit, except deleted files and texts that an editor has
 * open. If the editor fails, says so and keeps the changes. Errors: io, memory. */
struct whit_changes;
whit_status cli_agent_edit(struct whit_changes *staged, whit_error *error);
/* Shows changes, asks for approval if needed, and writes them as one turn with this note; with --preview only shows
 * them. Returns CLI_OK also if there is nothing to write. */
struct whit_changes;
int cli_agent_write(cli_call *call, struct whit_changes *set, const char *project, const char *note);
/* Runs the tasks of -j in parallel. Returns an exit status. */
int cli_agent_parallel(cli_call *call, const char *project);
/* Runs the task of -p, or reads tasks line by line and runs them. Returns an exit status. */
int cli_agent_task(cli_call *call, const char *project);
/* Runs the tasks that an editor sends (--acp); stdin and stdout are the connection. Returns an exit status. */
int cli_agent_acp(cli_call *call, const char *project);

#endif
