/* SPDX-License-Identifier: MIT
 * Declares what the verbs that train have in common: options, checks, reports, the log, and writing the result. */
#ifndef WHIT_CLI_TRAINING_H
#define WHIT_CLI_TRAINING_H

#include "cli/flags.h"
#include "train/trainer.h"

typedef struct cli_training_flags {
    const char *held_out, *out, *log, *plot, *checkpoint;
    cli_list text;
    int embedding, precision; /* indices of the options' choices; embedding: only an option of verbs that make new
                               * models */
    float minutes;
    /* n_tokens: tokens of a window; 0: the default, see cli_train */
    uint32_t n_steps, n_sequences, n_tokens, n_accumulate, n_threads, held_out_every, n_held_out_windows,
        checkpoint_seconds;
    int64_t seed;
    float rate, scale_rate, decay, clip, warm_up, ramp, beta2, balance;
    bool specials, refit, recompute, resume;
} cli_training_flags;

extern const cli_option cli_training_options[], cli_recipe_options[];
/* Initialises the cli_training_flags among the defaults of a verb. */
#define CLI_TRAINING_DEFAULTS                                                                                          \
    {                                                                                                                  \
        .n_sequences = 8, .n_accumulate = 1, .rate = 3e-4f, .scale_rate = 0.3f, .clip = 1, .warm_up = 0.03f,           \
        .beta2 = 0.95f, .checkpoint_seconds = 60                                                                       \
    }

/* Default learning rate of whit distill if the codes of the student do not change, because such a student is already
 * fitted. compress --tune-tokens has the same rate. */
#define CLI_RATE_OF_CODES 1e-4f

/* Converts the flags to options of the trainer. The verb itself then sets the codec of the layers, the weights of the
 * losses and the command. */
whit_trainer_options cli_training_wanted(const cli_training_flags *flags);
/* Checks before the work begins that the options agree, that the texts can be read and that the outputs can be written.
 * n_ctx: the model's context in tokens; 0: not known yet. Returns CLI_OK, or an exit status after a message. */
int cli_training_check(cli_call *call, const cli_training_flags *flags, uint32_t n_ctx);
/* Trains a model that begins as `start`, prints reports, and writes the result to flags->out; so does an interrupted
 * run that has taken a step. Only rank 0 reports and writes. teacher may be NULL. If options->n_tokens is 0, sets it to
 * 256, or to the model's context if that is shorter. Returns CLI_OK, or an exit status after a message. */
int cli_train(cli_call *call, const cli_training_flags *flags, const whit_model *start, const whit_model *teacher,
              whit_trainer_options *options);

#endif
