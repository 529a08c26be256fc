/* SPDX-License-Identifier: MIT
 * Declares what the files of whit compare share. The verb and its windows of text are in compare.c, tables in
 * compare_report.c, copied passages in compare_copies.c, chats in compare_chat.c. */
#ifndef WHIT_CLI_COMPARE_H
#define WHIT_CLI_COMPARE_H

#include "base/sketch.h"
#include "cli/flags.h"
#include "cli/interval.h"
#include "cli/score.h"

/* Holds sums over a window, or over another unit of a measurement. */
typedef struct cli_unit {
    double n;         /* predictions */
    double kl;        /* divergence from the original */
    double log_ratio; /* log-likelihood of the original less this model's */
    double n_same;    /* equal first choices */
    double n_right;   /* number of predictions whose likeliest token was right; also counted for the original */
} cli_unit;

typedef struct cli_subject {
    const char *path;
    whit_model *model;
    whit_session *session;
    whit_chat_template *chat; /* NULL without chats */
    cli_score score;
    whit_buf units; /* cli_unit[] of the current text, or chats */
    whit_sketch sketch;
    bool has_sketch; /* the file records its calibration text */
} cli_subject;

enum { CLI_SUBJECTS_MAX = 33 };

typedef struct cli_comparison {
    cli_call *call;
    cli_subject subjects[CLI_SUBJECTS_MAX]; /* the original is the first */
    size_t n;
    uint32_t n_ctx, n_batch; /* tokens in a window; in a step */
    uint32_t n_chunks;       /* windows of each text at most; 0: all */
    int32_t bos;             /* token that begins each window; -1: no such token */
    bool all, json;
} cli_comparison;

/* Runs one window of n tokens through all models, a slice at a time, and adds a unit to each. A prediction counts if
 * the token before it wants logits. The original's units have only `n` and `n_right`. The result is CLI_OK or a status
 * already reported. */
int cli_compare_window(cli_comparison *c, const whit_step_token *tokens, size_t n);
void cli_compare_clear(cli_comparison *c); /* forgets scores and units */

/* Reports a text: rows of all files, with intervals over windows and, if there are several, differences from the first
 * file. `overlaps` has a share for each subject, or -1. Appends to `texts`. */
int cli_compare_report(cli_comparison *c, const char *text, const double *overlaps, json_t *texts);
/* Prints, for several texts, the divergence on each text beside that on the first. Sets "beside" in the later texts. */
void cli_compare_beside(cli_comparison *c, json_t *texts);

/* Returns the mean per prediction over the units of a subject, of the member at this offset; less the mean of `other`
 * if that is not NULL. */
cli_interval cli_compare_interval(const cli_subject *subject, const cli_subject *other, size_t offset);

/* Measures copies of passages in a text (docs/use/compression.md). */
int cli_compare_copies(cli_comparison *c, const char *path, json_t *report);
/* Measures answers to chats. */
int cli_compare_chats(cli_comparison *c, const char *path, uint32_t n_tokens, json_t *report);

enum { CLI_COMPARE_NAME = 17 }; /* columns of a file's name */
/* Begins a row of at most 80 columns; a long name gets a line of its own. */
void cli_compare_begin_row(cli_call *call, const char *path);

#endif
