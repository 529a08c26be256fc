/* SPDX-License-Identifier: MIT
 * Declares the common parts of the verbs that train: options, progress, the log, writing the result. */
#ifndef WHIT_CLI_TRAINING_H
#define WHIT_CLI_TRAINING_H

#include "cli/flags.h"
#include "train/trainer.h"

typedef struct cli_training_flags {
    const char *held_out, *out, *log, *plot, *checkpoint;
    cli_list text;
    int embedding, precision; /* embedding: only for verbs that make a new model */
    float minutes;
    /* n_tokens 0: see cli_train */
    uint32_t n_steps, n_sequences, n_tokens, n_accumulate, n_threads, held_out_every, n_held_out_windows,
        checkpoint_seconds;
    int64_t seed;
    float rate, scale_rate, decay, clip, warm_up, ramp, beta2, balance;
    bool specials, refit, recompute, resume;
} cli_training_flags;

extern const cli_option cli_training_options[], cli_recipe_options[];
/* Sets the defaults of the options above in a verb's own defaults. */
#define CLI_TRAINING_DEFAULTS                                                                                          \
    {                                                                                                                  \
        .n_sequences = 8, .n_accumulate = 1, .rate = 3e-4f, .scale_rate = 0.3f, .clip = 1, .warm_up = 0.03f,           \
        .beta2 = 0.95f, .checkpoint_seconds = 60                                                                       \
    }

/* This is the default rate if training starts from a model whose codes stay, which is already fitted: the rate of
 * compress --tune-tokens. */
#define CLI_RATE_OF_CODES 1e-4f

/* Converts the flags to the trainer's options; the verb sets the codec of the layers, the weights of the losses and the
 * command. */
whit_trainer_options cli_training_wanted(const cli_training_flags *flags);
/* Checks everything that can be known before the work begins: options, readable texts, writable outputs. n_ctx: the
 * model's context, 0 if not yet known. The result is CLI_OK or a status already reported. */
int cli_training_check(cli_call *call, const cli_training_flags *flags, uint32_t n_ctx);
/* Trains, reports, and writes the finished file. n_tokens 0: windows of 256 tokens, or of the model's context if that
 * is shorter. The result is CLI_OK or a status already reported. */
int cli_train(cli_call *call, const cli_training_flags *flags, const whit_model *start, const whit_model *teacher,
              whit_trainer_options *options);

#endif
