/* SPDX-License-Identifier: MIT
 * Trains a model on a text: the model, whose matrices are rounded if a codec requires this, learns the text or its
 * teacher's distribution over it.
 *
 * The student starts from the weights of an open model: a new one (new_model.h), or the teacher itself. Every step
 * draws windows from the text, runs student and teacher, and reduces
 *
 *   kl_weight * KL(teacher || student) + ce_weight * CE + hidden_weight * D
 *
 * where D is the squared difference of the two residual streams after a layer, divided by the teacher's mean square and
 * averaged over layers. With by_blocks each layer is trained by itself instead, towards the teacher's residual stream
 * after it; KL and CE are only reported. A run writes only checkpoints; whit_trainer_write writes the finished .ndf
 * file. */
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
    uint64_t step, n_steps;         /* number of finished steps and of all steps; n_steps 0: the run has a limited time
                                     * instead */
    double share;                   /* share of the run that is done */
    double kl, ce;                  /* means over the last step in nats */
    double gradient_norm;           /* gradient norm of the last step, before clipping */
    double rate, tokens_per_second; /* learning rate of the last step; throughput since this run was started or
                                     * resumed */
    uint64_t elapsed_ns;
    bool held_out;                       /* the values below were measured at this step */
    double held_out_ce;                  /* CE on the held-out text, in nats per token */
    double held_out_kl, held_out_ratio;  /* KL from the teacher in nats per token; e^(CE - teacher's CE); both 0 without
                                          * a teacher */
    uint32_t n_held_out, n_held_out_all; /* number of measured windows, and of all windows */
} whit_trainer_report;

typedef struct whit_trainer_options {
    whit_trainee_codecs codecs;
    const whit_tuning *tuning; /* NULL: all weights are trained; otherwise tuning.h's options, and `codecs` only enters
                                * the digest of checkpoints */
    const char *const *text;   /* (n_text) paths of the text files */
    size_t n_text;
    const int32_t *ids; /* (n_ids) text as tokens, in addition to the files; if it contains BOS, windows begin there */
    size_t n_ids;
    size_t n_sample_tokens;      /* number of tokens of text that is sampled from the teacher, in addition to the
                                  * text */
    size_t n_random_tokens;      /* number of tokens that are drawn uniformly from the vocabulary, in addition to the
                                  * text */
    bool specials;               /* special tokens that are written in the text files are encoded as such, and windows
                                  * begin at BOS */
    const char *held_out;        /* path of the text that the student is measured on; NULL: no measurements */
    uint32_t n_held_out_windows; /* maximum number of windows in a measurement; 0: all */
    uint32_t held_out_every;     /* number of steps between measurements; 0: only at the end */
    bool measure_before;         /* also measure before the first step: a report with step 0 */
    uint32_t n_sequences, n_tokens, n_accumulate;
    uint64_t n_steps; /* length of the run in steps; 0: the run lasts `seconds` */
    /* Length of the run in time, counted from begun_ns, including opening and measurements. Exactly one of n_steps and
     * seconds is set; the learning rate follows it. If n_held_out_windows is 0, a measurement takes at most about a
     * twentieth of this time. */
    double seconds;
    uint64_t begun_ns; /* whit_now_ns() when the run began; 0: when the trainer was opened */
    uint64_t seed;
    float kl_weight, ce_weight, hidden_weight;
    /* Each layer is trained by itself towards the teacher's residual stream after it: gradients end at a layer's input,
     * and the difference of each token is divided by the energy of the teacher's token. The embedding is trained with
     * the first layer. The option requires hidden_weight above 0, and 0 for the other two weights. */
    bool by_blocks;
    float balance; /* weight of the loss that balances experts; 0: no such loss */
    /* the rounding grows to its full strength over this share of the run; 0: it has full strength from the start */
    float ramp;
    bool refit_scales;        /* the scales are computed from the weights in each step instead of being learned */
    whit_precision precision; /* precision of matrix products; for BF16, whit_precision_choose chooses the precision */
    bool recompute;           /* stores few activations and computes the others again: needs less memory */
    whit_adamw adamw;
    uint32_t n_threads;
    /* Processes that share the units of each step (tree.h). NULL: only this process, which runs the sequences of a
     * batch in one pass and therefore adds gradients in another order. Only rank 0 measures and writes files. */
    const whit_ranks *ranks;
    const char *checkpoint; /* path of the checkpoint; NULL: no checkpoint */
    uint32_t checkpoint_every_seconds;
    bool resume;
    const char *command; /* command that is stored in the file's metadata; NULL: not stored */
    const volatile bool *cancel;
    void (*report)(void *user, const whit_trainer_report *report);
    /* Receives the progress of reading the text and the weights, of sampling text, of fitting scales and of
     * measurements. It returns false to cancel; a cancelled measurement does not end the run. May be NULL. */
    whit_held_out_fn *progress;
    /* Receives after each operation the share of a step (counted from 1) that is done, because steps of large models
     * take minutes. May be NULL. */
    void (*stepping)(void *user, uint64_t step, double share);
    void *user;
} whit_trainer_options;

whit_trainer_options whit_trainer_options_default(void);

typedef struct whit_trainer whit_trainer;

/* Opens a trainer. The student gets the weights, tokenizer and metadata of `start`. `teacher` may be the same model,
 * another one with the same tokenizer, or NULL if kl_weight, hidden_weight and n_sample_tokens are 0. Both models must
 * outlive the trainer. Refuses options that contradict each other, a text that is not longer than a window, and a
 * checkpoint of another run. */
whit_status whit_trainer_open(const whit_model *start, const whit_model *teacher, const whit_trainer_options *options,
                              const whit_allocator *allocator, whit_trainer **trainer, whit_error *error);
void whit_trainer_close(whit_trainer *trainer);
/* Returns the number of bytes of memory for the parameters of both models, activations and text. */
size_t whit_trainer_bytes(const whit_trainer *trainer);
/* Trains to the end of the run or until it is cancelled. If it is cancelled, the function writes the checkpoint (if the
 * options name one) and returns WHIT_ERROR_CANCELLED; whit_trainer_finish then prepares the weights for writing. If a
 * loss is NaN or infinite, the error is WHIT_ERROR_NUMERIC, and the last checkpoint remains. */
whit_status whit_trainer_run(whit_trainer *trainer, whit_error *error);
/* Rounds the weights of a cancelled run for whit_trainer_write. The run can then be continued only from its
 * checkpoint. */
void whit_trainer_finish(whit_trainer *trainer);
/* Returns the number of finished steps, including the steps before the checkpoint that the run was resumed from. */
uint64_t whit_trainer_steps(const whit_trainer *trainer);
/* Returns the sketch of the text files; empty on ranks other than 0. */
const whit_sketch *whit_trainer_sketch(const whit_trainer *trainer);
whit_status whit_trainer_write(const whit_trainer *trainer, const char *path, whit_error *error);

#endif
