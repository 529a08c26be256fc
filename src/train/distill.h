/* SPDX-License-Identifier: MIT
 * Distillation: a student with rounded matrices learns its teacher's distribution over text.
 *
 * The student starts from the teacher's weights. Every step draws windows from the text, runs both,
 * and follows kl_weight * KL(teacher || student) + ce_weight * CE + hidden_weight * the mean squared
 * difference of the residual streams, in units of the teacher's mean square. Nothing is written
 * but checkpoints and, at the end, the finished .ndf. */
#ifndef WHIT_TRAIN_DISTILL_H
#define WHIT_TRAIN_DISTILL_H

#include "train/adamw.h"
#include "train/checkpoint.h"
#include "train/corpus.h"
#include "train/trainee.h"

typedef struct whit_distill_report {
    uint64_t step, n_steps; /* n_steps 0: the run has a time instead */
    double share;           /* done */
    double kl, ce;          /* means of the last steps, nats */
    double rate, tokens_per_second;
    uint64_t elapsed_ns;
    bool held;              /* what follows was measured now */
    double held_kl, held_ratio; /* on the held-out text, second halves of windows */
} whit_distill_report;

typedef struct whit_distill_options {
    whit_trainee_codecs codecs;
    const char *const *text; /* files */
    size_t n_text;
    const char *held;        /* file to measure on, NULL: none */
    uint32_t n_held_windows; /* at most; 0: all */
    uint32_t held_every;     /* steps between measurements; 0: at the end only */
    uint32_t n_sequences, n_tokens, n_accumulate;
    uint64_t n_steps;        /* or */
    double seconds;          /* of training; the schedule follows whichever is set */
    uint64_t seed;
    float kl_weight, ce_weight, hidden_weight;
    float ramp;              /* rounding comes in over this share of the run */
    bool refit_scales;       /* recompute scales from the weights instead of learning them */
    bool recompute;          /* keep few activations and compute the others again: less memory */
    whit_adamw adamw;
    uint32_t n_threads;
    const char *checkpoint;  /* file, NULL: none */
    uint32_t checkpoint_every_seconds;
    bool resume;
    const char *command;     /* for the file's metadata */
    const volatile bool *cancel;
    void (*report)(void *user, const whit_distill_report *report);
    void *user;
} whit_distill_options;

whit_distill_options whit_distill_options_default(void);

typedef struct whit_distill whit_distill;

/* Refuses options that make no sense, an empty text, a checkpoint of another run. */
whit_status whit_distill_open(const whit_model *teacher, const whit_distill_options *options,
                              const whit_allocator *allocator, whit_distill **distill, whit_error *error);
void whit_distill_close(whit_distill *distill);
/* Bytes held: parameters of both, activations, text. */
size_t whit_distill_bytes(const whit_distill *distill);
/* Trains to the end, or to a cancellation: then the checkpoint is written and WHIT_ERROR_CANCELLED
 * returned. A loss that is not finite is WHIT_ERROR_NUMERIC; the last checkpoint stays. */
whit_status whit_distill_run(whit_distill *distill, whit_error *error);
whit_status whit_distill_write(const whit_distill *distill, const char *path, whit_error *error);
const whit_trainee *whit_distill_student(const whit_distill *distill);

#endif
