/* SPDX-License-Identifier: MIT
 * A model that several processes (ranks) run together. Rank 0 is used as any other process: it opens sessions and steps
 * them. The other ranks follow: they make every call that changes a session too, so that their caches have the same
 * tables and their own heads, and take their part in every step (model/plan_split.h).
 *
 * What differs from one process: logits are rank 0's alone; a step is cancelled between passes; each rank makes the
 * n_top largest logits of its own rows of a screened head exact, so that others than the n_top largest of all may be
 * exact, too; adapters, session files and snapshots are refused. Sessions of a model that is split belong to one
 * thread. */
#ifndef WHIT_RUNTIME_SPLIT_H
#define WHIT_RUNTIME_SPLIT_H

#include "base/ranks.h"
#include "runtime/session.h"

#define WHIT_SPLIT_SESSIONS_MAX 64 /* open sessions of a model that is split */

struct whit_model_ranks {
    const whit_ranks *ranks;
    whit_session *sessions[WHIT_SPLIT_SESSIONS_MAX]; /* by number, which is the same on all ranks */
    bool is_lost;                                    /* a rank is lost */
    uint64_t n_messages, sent_bytes;                 /* messages of rank 0 beside the exchanges of passes */
    uint64_t n_passes;
};

/* Calls that change a session, which rank 0 sends to the others. */
typedef enum whit_split_call {
    WHIT_SPLIT_END, /* the model is closed */
    WHIT_SPLIT_OPEN,
    WHIT_SPLIT_CLOSE,
    WHIT_SPLIT_STEP,     /* a: whether damaged sequences fail it; data: whit_step_token */
    WHIT_SPLIT_TRUNCATE, /* a: sequence, b: tokens */
    WHIT_SPLIT_SHARE,    /* a: from, b: to, c: tokens */
    WHIT_SPLIT_REUSE,    /* a: sequence; data: ids */
    WHIT_SPLIT_MARK,     /* a: sequence */
} whit_split_call;

/* Splits an open model between `ranks`, which must outlive it; every rank calls this before it opens sessions. Errors:
 * argument (the ranks have different models), io (a rank is lost). */
whit_status whit_model_split(whit_model *model, const whit_ranks *ranks, whit_error *error);
/* Follows rank 0 until it closes the model; called by the other ranks. */
whit_status whit_model_follow(whit_model *model, whit_error *error);
/* Ends the other ranks' following; on other ranks and models without a split only frees. */
void whit_split_close(whit_model *model);

/* ---- for sessions ---- */

/* Returns whether this process leads the others that run parts of a model. */
static inline bool whit_split_leads(const whit_model *model)
{
    return model->split && !model->split->ranks->rank;
}
/* Tells the other ranks of a call, if this rank leads. data: n elements of elem_bytes. */
whit_status whit_split_tell(const whit_session *session, whit_split_call call, const uint32_t numbers[3],
                            const void *data, size_t n, size_t elem_bytes, whit_error *error);
/* Tells the other ranks to close a session. */
void whit_split_tell_close(const whit_session *session);
/* Refuses an operation that a split model does not support; what: "adapters are". */
whit_status whit_split_refuse(const whit_session *session, const char *what, whit_error *error);
/* Gives up a model whose ranks could not exchange a value: its sessions can run no further step. Returns io. */
whit_status whit_split_lose(const whit_session *session, whit_error *error);
/* After a pass: all ranks learn which sequences are damaged, and whether the step is cancelled. */
whit_status whit_split_agree(whit_session *session, bool *is_damaged, whit_error *error);
/* Tells the other ranks to open a session with these options, and numbers it. */
whit_status whit_split_tell_open(const whit_model *model, const whit_session_options *options, uint32_t *number,
                                 whit_error *error);
/* Returns the first failure of any rank after all have tried; `status` and `error` are this rank's. */
whit_status whit_split_join(const whit_model *model, whit_status status, whit_error *error);

#endif
