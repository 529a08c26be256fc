/* SPDX-License-Identifier: MIT
 * Opens a model that several processes (ranks) run together. The caller uses rank 0 like a single process: it opens
 * sessions and steps them. The other ranks follow: they repeat every call that changes a session, so that their caches
 * have the same tables, each with its own heads, and compute their part of every step (model/plan_split.h).
 *
 * Differences from one process: only rank 0 has logits; a step is cancelled between passes; each rank makes the n_top
 * largest logits of its own rows of a screened head exact, so that more than the n_top largest of all may be exact;
 * adapters, draft models, session files, snapshots and limits of the experts' memory are refused. Sessions of a split
 * model must be used by one thread. */
#ifndef WHIT_RUNTIME_SPLIT_H
#define WHIT_RUNTIME_SPLIT_H

#include "base/ranks.h"
#include "runtime/session.h"

#define WHIT_SPLIT_SESSIONS_MAX 64 /* maximum number of open sessions of a split model */

struct whit_model_ranks {
    const whit_ranks *ranks;
    whit_session *sessions[WHIT_SPLIT_SESSIONS_MAX]; /* open sessions by number; a session has the same number on all
                                                      * ranks */
    bool is_lost;                                    /* another rank cannot be reached any more */
    uint64_t n_messages, sent_bytes;                 /* messages that rank 0 sent, and their bytes, without the
                                                      * exchanges within passes */
    uint64_t n_passes;
};

/* Calls that rank 0 sends to the other ranks. a, b and c are the three numbers of a call. */
typedef enum whit_split_call {
    WHIT_SPLIT_END, /* the model is closed */
    WHIT_SPLIT_OPEN,
    WHIT_SPLIT_CLOSE,
    WHIT_SPLIT_STEP,     /* a: 0: damaged sequences fail the step, 1: they do not; data: array of whit_step_token */
    WHIT_SPLIT_TRUNCATE, /* a: sequence, b: number of tokens */
    WHIT_SPLIT_SHARE,    /* a: source sequence, b: destination sequence, c: number of tokens */
    WHIT_SPLIT_REUSE,    /* a: sequence; data: ids */
    WHIT_SPLIT_MARK,     /* a: sequence */
} whit_split_call;

/* Splits an open model between `ranks`, which must outlive it; every rank calls this before it opens sessions. Errors:
 * argument (the ranks have different models), io (a rank is lost), memory. */
whit_status whit_model_split(whit_model *model, const whit_ranks *ranks, whit_error *error);
/* Executes the calls of rank 0 until rank 0 closes the model; called by the other ranks. */
whit_status whit_model_follow(whit_model *model, whit_error *error);
/* Frees model->split; on rank 0 first tells the other ranks that the model is closed. */
void whit_split_close(whit_model *model);

/* ---- for sessions ---- */

/* Returns whether this process is rank 0 of a split model. */
static inline bool whit_split_leads(const whit_model *model)
{
    return model->split && !model->split->ranks->rank;
}
/* On rank 0 of a split model, sends a call to the other ranks; otherwise does nothing. data: n elements of elem_bytes
 * bytes. */
whit_status whit_split_tell(const whit_session *session, whit_split_call call, const uint32_t numbers[3],
                            const void *data, size_t n, size_t elem_bytes, whit_error *error);
/* Tells the other ranks to close a session, if it is open on every rank. */
void whit_split_tell_close(const whit_session *session);
/* Fails if the session's model is split, for operations that split models do not support. The error message contains
 * `what`, such as "adapters are". */
whit_status whit_split_refuse(const whit_session *session, const char *what, whit_error *error);
/* Marks the session's model as lost, because its ranks could not exchange a value: its sessions cannot run another
 * step. Returns the error io. */
whit_status whit_split_lose(const whit_session *session, whit_error *error);
/* After a pass, sends the decision of rank 0 to all ranks: session->is_damaged of every sequence, and whether the step
 * is cancelled. *is_damaged: whether any sequence is damaged. Fails if the step is cancelled. */
whit_status whit_split_agree(whit_session *session, bool *is_damaged, whit_error *error);
/* Tells the other ranks to open a session with these options, and sets *number to its number. */
whit_status whit_split_tell_open(const whit_model *model, const whit_session_options *options, uint32_t *number,
                                 whit_error *error);
/* Exchanges the results of a call between all ranks. status, error: result of this rank. Returns `status` if it is an
 * error, else the first error of another rank, else WHIT_OK; returns the error io if a rank is lost. */
whit_status whit_split_join(const whit_model *model, whit_status status, whit_error *error);

#endif
