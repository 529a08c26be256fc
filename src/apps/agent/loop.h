/* SPDX-License-Identifier: MIT
 * Runs the loop of an agent: it asks the model, runs the model's calls, shows the changes and writes the approved ones.
 * The changes of one answer are one turn of the journal, in which every turn can be undone. */
#ifndef WHIT_AGENT_LOOP_H
#define WHIT_AGENT_LOOP_H

#include "agent/hunks.h"
#include "agent/runs.h"
#include "agent/mcp.h"
#include "agent/messages.h"
#include "agent/model.h"

typedef struct whit_agent_options {
    const char *project;   /* the project's folder, with links resolved */
    const char *state_dir; /* folder of the journal; NULL: the usual place */
    const char *task;
    uint32_t n_turns_max;  /* maximum number of answers of the model */
    uint64_t n_tokens_max; /* maximum number of tokens in and out, of all answers; 0: no limit */
    bool may_write;        /* changes that do not always need approval are written without a question */
    bool only_reads;       /* the model should only plan: its changes are refused */
    bool is_alone;         /* no person can answer: an action that needs an answer is refused, and this is the reason */
    whit_runner *runner;   /* runs commands and checks; NULL: no commands and no checks are run */
    whit_mcp *mcp;         /* MCP servers, which offer tools; may be NULL */
    /* Receives every change before anything is asked or written; a failure ends the run. */
    whit_status (*show)(void *user, const whit_change *change, whit_error *error);
    bool (*agreed)(void *user, const char *reason, size_t n_files);
    /* Shows the hunks and asks about each, instead of `show` and `agreed` if something is to be asked. `taken` has a
     * byte for each hunk, 0 at first, which becomes another number if the person agrees. NULL: one question is asked
     * about all hunks. */
    whit_status (*choose)(void *user, const whit_hunks *hunks, uint8_t *taken, whit_error *error);
    /* Lets the person edit the staged changes, after `choose` has set WHIT_TAKEN_EDIT; NULL: `choose` never sets it. */
    whit_status (*edit)(void *user, whit_changes *staged, whit_error *error);
    whit_buf *why; /* `agreed` and `choose` append the person's words about a refusal, for the model; may be NULL */
    /* Reports the files that were written, with their turn in the journal (0: only open texts were changed); n is 0 if
     * no shown change was written. May be NULL. */
    void (*written)(void *user, uint32_t turn, const whit_change *changes, size_t n);
    const whit_open_texts *open; /* texts that are open and not saved; may be NULL */
    bool (*ask)(void *user, const char *question, whit_buf *answer);
    void (*note)(void *user, const char *line); /* receives progress, line by line */
    /* Called when the messages have changed and each call in them has its result: after the task was added and after
     * each answer. May be NULL. */
    void (*keep)(void *user);
    const volatile bool *cancel; /* ends the run: no further call is made, nothing is written; may be NULL */
    void *user;
} whit_agent_options;

typedef struct whit_agent_report {
    whit_buf answer;                      /* text of the last answer; the caller frees it */
    bool done;                            /* false: a limit ended the run */
    uint32_t n_answers, n_calls, n_turns; /* n_turns: number of turns written in the journal */
    uint32_t n_held;                      /* number of answers whose changes the checks refused */
    uint64_t tokens_in, tokens_out, written_bytes;
    uint64_t tokens_cached;  /* part of tokens_in that the model had cached, if it reports this */
    bool tokens_are_guessed; /* the model reported no counts: a token is counted for every four bytes */
} whit_agent_report;

/* Runs a task to its end; the task follows the messages that exist. The report's counters are added to, and its answer
 * becomes the last answer. The report is filled in on failure, too. Errors: errors of the model and the journal; format
 * (the model's answer has no valid form); limit. */
whit_status whit_agent_run(const whit_agent_options *options, const whit_agent_model *model,
                           whit_agent_messages *messages, whit_agent_report *report, whit_error *error);

#endif
