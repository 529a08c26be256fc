/* SPDX-License-Identifier: MIT
 * Trains a model: the model, whose matrices are rounded if a codec requires this, learns a text or its teacher's
 * distribution over it.
 *
 * The student starts from the weights of an open model: a new one (new_model.h), or the teacher itself.
 * Every step draws windows from the text, runs student and teacher, and follows kl_weight *
 * KL(teacher || student) + ce_weight * CE + hidden_weight * the mean squared difference of the
 * residual streams, in units of the teacher's mean square. With by_blocks each layer is trained by itself instead,
 * towards the teacher's stream after it, and logits are only reported. Nothing is written but checkpoints and,
 * at the end, the finished .ndf. */
#ifndef WHIT_TRAIN_TRAINER_H
#define WHIT_TRAIN_TRAINER_H

#include "train/adamw.h"
#include "linalg/blas.h"
#include "train/checkpoint.h"
#include "train/corpus.h"
#include "train/held_out.h"
#include "train/tree.h"
#include "train/trainee.h"
#include "train/tuning.h"

typedef struct whit_trainer_report {
    uint64_t step, n_steps;         /* n_steps 0: the run's length is a time instead */
    double share;                   /* share of the run that is done */
    double kl, ce;                  /* means of the last steps, nats */
    double gradient_norm;           /* gradient norm of the last step, before clipping */
    double rate, tokens_per_second; /* learning rate; throughput since this run was started or resumed */
    uint64_t elapsed_ns;
    bool held_out;                       /* the three values below were measured at this step */
    double held_out_ce;                  /* CE on the held-out text, second halves of windows, nats */
    double held_out_kl, held_out_ratio;  /* compared with the teacher; 0 without a teacher */
    uint32_t n_held_out, n_held_out_all; /* measured windows, and all windows */
} whit_trainer_report;

typedef struct whit_trainer_options {
    whit_trainee_codecs codecs;
    const whit_tuning *tuning; /* NULL: train all weights; otherwise tune as it says, and ignore codecs */
    const char *const *text;   /* files */
    size_t n_text;
    const int32_t *ids; /* text as tokens; if it contains BOS, windows begin there */
    size_t n_ids;
    size_t n_sample_tokens;      /* tokens of text sampled from the teacher, in addition to the files */
    size_t n_random_tokens;      /* tokens drawn uniformly from the vocabulary, in addition to the text */
    bool specials;               /* special tokens written in the text are encoded as such; windows begin at BOS */
    const char *held_out;        /* file to measure on; NULL: no file */
    uint32_t n_held_out_windows; /* at most that many windows; 0: all */
    uint32_t held_out_every;     /* steps between measurements; 0: at the end only */
    bool measure_before;         /* also measure before the first step: a report with step 0 */
    uint32_t n_sequences, n_tokens, n_accumulate;
    uint64_t n_steps; /* length of the run in steps; 0: the run lasts `seconds` */
    /* Limits the length of the run in time, from begun_ns on, with opening and measuring; the schedule follows the
     * one of n_steps and seconds that is set. Without n_held_out_windows a measurement may take a twentieth of this
     * time. */
    double seconds;
    uint64_t begun_ns; /* whit_now_ns() when the run began; 0: when the trainer was opened */
    uint64_t seed;
    float kl_weight, ce_weight, hidden_weight;
    /* Each layer follows, by itself, the teacher's stream after it: gradients end at a layer's input, and each token
     * counts relative to its own energy. The embedding learns with the first layer. The option has an effect only with
     * hidden_weight. */
    bool by_blocks;
    float balance;            /* weight of the loss that balances experts; 0: no such loss */
    float ramp;               /* the rounding increases over this share of the run */
    bool refit_scales;        /* recompute scales from the weights instead of learning them */
    whit_precision precision; /* precision of matrix products; BF16 is whit_precision_choose's */
    bool recompute;           /* stores few activations and recomputes the others: less memory */
    whit_adamw adamw;
    uint32_t n_threads;
    /* These processes share each step's units of sequences (tree.h). NULL: only this process, which runs a batch in one
     * pass: sums of another order. Only rank 0 measures and writes files. */
    const whit_ranks *ranks;
    const char *checkpoint; /* path of the checkpoint; NULL: no checkpoint */
    uint32_t checkpoint_every_seconds;
    bool resume;
    const char *command; /* provenance, for the file's metadata */
    const volatile bool *cancel;
    void (*report)(void *user, const whit_trainer_report *report);
    /* Receives how far reading or sampling the text, or a measurement is; it returns false to end it. May be NULL. */
    whit_held_out_fn *progress;
    /* Receives after each operation how far a step (counted from 1) is, because steps of large models take minutes. May
     * be NULL. */
    void (*stepping)(void *user, uint64_t step, double share);
    void *user;
} whit_trainer_options;

whit_trainer_options whit_trainer_options_default(void);

typedef struct whit_trainer whit_trainer;

/* Opens a trainer. `start` is the model whose weights, tokenizer and metadata the student takes; `teacher` may be the
 * same model, another one with the same tokenizer, or NULL: then kl_weight and hidden_weight are 0. Both outlive the
 * trainer. Refuses options that contradict each other, an empty text, and a checkpoint of another run. */
whit_status whit_trainer_open(const whit_model *start, const whit_model *teacher, const whit_trainer_options *options,
                              const whit_allocator *allocator, whit_trainer **trainer, whit_error *error);
void whit_trainer_close(whit_trainer *trainer);
/* Returns the bytes of memory: parameters of both models, activations, text. */
size_t whit_trainer_bytes(const whit_trainer *trainer);
/* Trains to the end, or to a cancellation: then the checkpoint is written and WHIT_ERROR_CANCELLED returned;
 * whit_trainer_finish then prepares the weights for writing. A loss that is not finite is WHIT_ERROR_NUMERIC; the last
 * checkpoint stays. */
whit_status whit_trainer_run(whit_trainer *trainer, whit_error *error);
/* Rounds the weights of a cancelled run. Afterwards it can resume only from its checkpoint. */
void whit_trainer_finish(whit_trainer *trainer);
/* Returns the number of steps that were done, including the steps before a checkpoint. */
uint64_t whit_trainer_steps(const whit_trainer *trainer);
/* Returns the sketch of the training text; empty on ranks other than 0. */
const whit_sketch *whit_trainer_sketch(const whit_trainer *trainer);
whit_status whit_trainer_write(const whit_trainer *trainer, const char *path, whit_error *error);

#endif
