/* SPDX-License-Identifier: MIT
 * Declares what the files of whit compare share: the verb and its windows of text are in compare.c, tables in
 * compare_report.c, copied passages in compare_copies.c, chats in compare_chat.c. */
#ifndef WHIT_CLI_COMPARE_H
#define WHIT_CLI_COMPARE_H

#include "base/sketch.h"
#include "cli/flags.h"
#include "cli/interval.h"
#include "cli/score.h"

/* Sums over a unit of a measurement, such as a window of text or a chat. */
typedef struct cli_unit {
    double n;         /* number of predictions */
    double kl;        /* sum of the divergences from the original */
    double log_ratio; /* log-likelihood of the original minus that of this model */
    double n_same;    /* number of predictions with the same likeliest token as the original */
    double n_right;   /* number of predictions whose likeliest token is the text's; the original has these, too */
} cli_unit;

typedef struct cli_subject {
    const char *path;
    whit_model *model;
    whit_session *session;
    whit_chat_template *chat; /* NULL unless chats are compared */
    cli_score score;
    whit_buf units; /* array of cli_unit for the current text, or for the chats */
    whit_sketch sketch;
    bool has_sketch; /* the file contains a sketch of the text from which it was made */
} cli_subject;

enum { CLI_SUBJECTS_MAX = 33 };

typedef struct cli_comparison {
    cli_call *call;
    cli_subject subjects[CLI_SUBJECTS_MAX]; /* the models; the first one is the original */
    size_t n;
    uint32_t n_ctx, n_batch; /* n_ctx: tokens per window; n_batch: tokens per step */
    uint32_t n_chunks;       /* maximum number of windows per text; 0: all */
    int32_t bos;             /* token at the beginning of each window; -1: none */
    bool all, json;
} cli_comparison;

/* Runs one window of n tokens through all models, a slice at a time, and adds a unit to each model. The prediction
 * after a token counts if the token wants logits. In the original's units only `n` and `n_right` are meaningful.
 * Returns CLI_OK, or a status that was already reported. */
int cli_compare_window(cli_comparison *c, const whit_step_token *tokens, size_t n);
void cli_compare_clear(cli_comparison *c); /* clears all scores and units */

/* Reports a text: a row for each compressed model, with intervals over windows and, if there are several models, the
 * differences from the first one. overlaps: for each model, the share of the text that also occurs in the text from
 * which the model's file was made (its calibration or training text); -1: unknown. Appends the report to `texts`. */
int cli_compare_report(cli_comparison *c, const char *text, const double *overlaps, json_t *texts);
/* If there are several texts, prints for each model the divergence on each later text as a multiple of that on the
 * first, and adds it to the model's row of this text as "kld_beside_first"; with --json prints nothing. */
void cli_compare_beside(cli_comparison *c, json_t *texts);

/* Returns the mean per prediction, over a model's units, of the member at this offset; if `other` is not NULL, minus
 * that model's mean. If memory runs out, the value is NAN. */
cli_interval cli_compare_interval(const cli_subject *subject, const cli_subject *other, size_t offset);

/* Measures how well copies of passages in a text are predicted (docs/use/compression.md). Returns an exit status. */
int cli_compare_copies(cli_comparison *c, const char *path, json_t *report);
/* Measures the answers to the chats of a file, each of at most n_tokens tokens. Returns an exit status. */
int cli_compare_chats(cli_comparison *c, const char *path, uint32_t n_tokens, json_t *report);

enum { CLI_COMPARE_NAME = 17 }; /* width of the column for a file's name */
/* Begins a row of a table, in which all rows fit into 80 columns: a name that is too long gets a separate line. */
void cli_compare_begin_row(cli_call *call, const char *path);

#endif
