/* SPDX-License-Identifier: MIT
 * Measures a student, and its teacher if there is one, on held-out text. The windows do not overlap, and only their
 * second halves are scored, as in `whit perplexity --second-half --kl-base`. */
#ifndef WHIT_TRAIN_HELD_OUT_H
#define WHIT_TRAIN_HELD_OUT_H

#include "train/corpus.h"
#include "train/loss.h"
#include "train/tape.h"

typedef struct whit_held_out_result {
    double kl;             /* mean KL(teacher || student) in nats per token; 0 without a teacher */
    double ce, teacher_ce; /* mean cross-entropy of student and teacher in nats per token; teacher_ce is 0 without a
                            * teacher */
    uint32_t n_windows;
} whit_held_out_result;

/* A function of this type is called before each batch with the share of the windows that is done. */
typedef whit_corpus_fn whit_held_out_fn;

/* Measures the student, and the teacher unless it is NULL. Both tapes have the same batch shape, and `loss` was opened
 * for their number of rows. ids and targets (n_rows) are scratch memory. At most n_windows windows (0: all), spread
 * evenly over the text, are measured. `progress` may be NULL; if it returns false, n_windows of the result is 0. */
whit_held_out_result whit_held_out_measure(whit_tape *student, whit_tape *teacher, whit_loss *loss,
                                           const whit_corpus *text, uint32_t n_windows, int32_t *ids, int32_t *targets,
                                           whit_held_out_fn *progress, void *user);
/* Returns the number of windows of n_tokens tokens that whit_held_out_measure uses if its n_windows is `limit`; at most
 * 2^20. */
uint32_t whit_held_out_windows(const whit_corpus *text, uint32_t n_tokens, uint32_t limit);

#endif
