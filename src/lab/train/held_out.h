/* SPDX-License-Identifier: MIT
 * Measuring a student, beside its teacher where it has one, on held-out text: windows that do not overlap, scored on
 * their second halves, as `whit perplexity --second-half --kl-base` does. */
#ifndef WHIT_TRAIN_HELD_OUT_H
#define WHIT_TRAIN_HELD_OUT_H

#include "train/corpus.h"
#include "train/loss.h"
#include "train/tape.h"

typedef struct whit_held_out_result {
    double kl;             /* mean KL(teacher || student), nats; 0 without a teacher */
    double ce, teacher_ce; /* mean nats per token; likewise */
    uint32_t n_windows;
} whit_held_out_result;

/* `teacher` may be NULL. Both tapes have the same batch shape; `loss` is for their rows; ids and targets (n_rows) are
 * scratch. Takes at most n_windows windows (0: all), spread evenly over the text. */
whit_held_out_result whit_held_out_measure(whit_tape *student, whit_tape *teacher, whit_loss *loss,
                                           const whit_corpus *text, uint32_t n_windows, int32_t *ids, int32_t *targets);

#endif
