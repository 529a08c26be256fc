/* SPDX-License-Identifier: MIT
 * The loop of an agent: ask the model, run its calls, show its changes, and write the approved ones. The changes of one
 * answer are one turn of the journal. */
#ifndef WHIT_AGENT_LOOP_H
#define WHIT_AGENT_LOOP_H

#include "agent/hunks.h"
#include "agent/runs.h"
#include "agent/mcp.h"
#include "agent/messages.h"
#include "agent/model.h"

typedef struct whit_agent_options {
    const char *project;   /* resolved */
    const char *state_dir; /* folder of the journal; NULL: the usual place */
    const char *task;
    uint32_t n_turns_max;  /* answers of the model */
    uint64_t n_tokens_max; /* tokens in and out, of all answers; 0: no limit */
    bool may_write;        /* changes that do not always need approval are written without a question */
    bool only_reads;       /* the model should only plan: its changes are refused */
    bool is_alone;         /* no person can answer: what needs an answer is refused, with this as the reason */
    whit_runner *runner;   /* runs commands and checks; NULL: no commands, no checks */
    whit_mcp *mcp;         /* servers of tools; may be NULL */
    /* Told every change before anything is asked or written; a failure ends the run. */
    whit_status (*show)(void *user, const whit_change *change, whit_error *error);
    bool (*agreed)(void *user, const char *reason, size_t n_files);
    /* Shows the hunks and asks about each, in the place of show and agreed where something is to be asked: a byte
     * of `taken` (0 at first) for each, not 0 where the person agrees. NULL: all of it is asked about at once. */
    whit_status (*choose)(void *user, const whit_hunks *hunks, uint8_t *taken, whit_error *error);
    /* Lets the person edit the staged changes, where `choose` set WHIT_TAKEN_EDIT; NULL: it never does. */
    whit_status (*edit)(void *user, whit_changes *staged, whit_error *error);
    whit_buf *why; /* agreed and choose append what the person said to a refusal, for the model; may be NULL */
    /* Reports the files that were written with their turn in the journal (0: only in open texts); n 0: no shown
     * change was written. May be NULL. */
    void (*written)(void *user, uint32_t turn, const whit_change *changes, size_t n);
    const whit_open_texts *open; /* texts that are open and not saved; may be NULL */
    bool (*ask)(void *user, const char *question, whit_buf *answer);
    void (*note)(void *user, const char *line); /* receives progress, line by line */
    /* Called when the messages have changed and each call in them has its result: after the task was added and after
     * each answer. NULL: not wanted. */
    void (*keep)(void *user);
    const volatile bool *cancel; /* ends the run between answers, too; NULL: never */
    void *user;
} whit_agent_options;

typedef struct whit_agent_report {
    whit_buf answer;                      /* the last words, freed by the caller */
    bool done;                            /* false: a bound was reached */
    uint32_t n_answers, n_calls, n_turns; /* n_turns written in the journal */
    uint32_t n_held;                      /* number of answers whose changes the checks refused */
    uint64_t tokens_in, tokens_out, written_bytes;
    uint64_t tokens_cached;  /* part of tokens_in that the model had cached, if it reports this */
    bool tokens_are_guessed; /* the model did not say: a token for four bytes */
} whit_agent_report;

/* Runs a task to its end, after the messages that are there. The report's counters are added to; its answer is the last
 * one. It is filled in on failure, too. Errors: errors of the model and the journal; format (an answer that is not
 * one); limit. */
whit_status whit_agent_run(const whit_agent_options *options, const whit_agent_model *model,
                           whit_agent_messages *messages, whit_agent_report *report, whit_error *error);

#endif
