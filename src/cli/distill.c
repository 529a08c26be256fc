/* SPDX-License-Identifier: MIT
 * Implements whit distill, which trains a low-bit student of a float model. */
#include <stdio.h>

#include "base/items.h"
#include "cli/outputs.h"
#include "cli/recorded.h"
#include "cli/training.h"
#include "cli/verbs.h"
#include "model/config_json.h"
#include "train/new_model.h"

struct distill_values {
    const char *teacher, *student, *start;
    int codec;
    cli_list mixed;
    uint32_t n_sample_tokens, n_random_tokens;
    float ce, kl, hidden;
    bool by_blocks;
    cli_training_flags training;
};
static const struct distill_values defaults = {.kl = 1, .training = CLI_TRAINING_DEFAULTS};

#define AT(member) offsetof(struct distill_values, member)
static const cli_option options[] = {
    {"--teacher", CLI_FILE, AT(teacher), "MODEL",
     "The model to learn from; the student starts from its weights, unless --student is given.", 0, 0},
    {"--student", CLI_FILE, AT(student), "FILE",
     "A student of another shape, in the fields of a Hugging Face config.json, with random weights at first.", 0, 0},
    {"--start", CLI_FILE, AT(start), "MODEL",
     "Start from the weights of this model, such as a finished student whose scales and norms are to be polished.", 0,
     0},
    {"--codec", CLI_CHOICE, AT(codec), "t|b1|q2|own|q2-planes",
     "Codec of the layers' matrices: ternary (the default), signs, four levels, or each its own, as --start has them.",
     0, 0},
    {"--mixed", CLI_REPEAT, AT(mixed), "NAME=CODEC",
     "Another codec for q, k, v, o, gate, up or down, as in down=t; may be given several times.", 0, 0},
    {"--embedding", CLI_CHOICE, AT(training.embedding), "i8|f16|f32", "Codec of embedding and head; i8 is the default.",
     0, 0},
    {"--sample", CLI_COUNT, AT(n_sample_tokens), "N",
     "Tokens of text that the teacher makes up, in place of --text or beside it. A teacher whose prompts have no "
     "beginning-of-text token continues pieces of --text.",
     0, 1 << 30},
    {"--random", CLI_COUNT, AT(n_random_tokens), "N",
     "Tokens drawn evenly from the vocabulary, beside the text: for words that it lacks.", 0, 1 << 30},
    {"--kl", CLI_REAL, AT(kl), "X", "Weight of the divergence from the teacher; 1 by default.", 0, 1e6},
    {"--ce", CLI_REAL, AT(ce), "X", "Weight of the text's own cross-entropy; 0 by default.", 0, 1e6},
    {"--hidden", CLI_REAL, AT(hidden), "X", "Weight of the difference between hidden states; 0 by default.", 0, 1e6},
    {"--blocks", CLI_FLAG, AT(by_blocks), NULL,
     "Train each layer by itself towards the teacher's hidden states after it, in place of the other losses.", 0, 0},
    {0},
};

/* Makes a new, random model of the wanted shape with the teacher's tokenizer. Returns an exit status. */
static int open_student(cli_call *call, const struct distill_values *v, const whit_model *teacher, whit_model **student)
{
    whit_error error;
    whit_config config;
    whit_new_model new_model = {.config = &config, .seed = (uint64_t)v->training.seed};
    whit_status status = whit_config_read_json(v->student, NULL, &config, &error);
    config.n_vocab = whit_model_vocab_size(teacher);
    whit_new_model_like(&new_model, teacher);
    if (status == WHIT_OK) status = whit_new_model_open(&new_model, NULL, student, &error);
    return status == WHIT_OK ? CLI_OK : cli_fail_error(call, &error);
}

static int run_distill(cli_call *call)
{
    enum { CODEC_OWN = 3 };
    static const char *const codecs[] = {"t", "b1", "q2", "own", "q2-planes"};
    const struct distill_values *v = call->values;
    const cli_training_flags *training = &v->training;
    if (!v->teacher || !training->out || !(training->text.n || v->n_sample_tokens))
        return cli_fail(call, CLI_USAGE, "--teacher, --text or --sample, and -o are needed");
    if (v->student && v->start) return cli_fail(call, CLI_USAGE, "give --student or --start, not both");
    if (v->by_blocks && (cli_was_given(call, "--kl") || cli_was_given(call, "--ce") || cli_was_given(call, "--hidden")))
        return cli_fail(call, CLI_USAGE,
                        "--blocks takes the place of the other losses: leave out --kl, --ce, --hidden");
    whit_model *teacher = NULL, *student = NULL;
    char rate[24];
    whit_buf command = {0};
    whit_trainer_options o = cli_training_wanted(training);
    o.codecs.layers = codecs[v->codec];
    o.codecs.mixed = v->mixed.items;
    o.codecs.n_mixed = v->mixed.n;
    o.n_sample_tokens = v->n_sample_tokens;
    o.n_random_tokens = v->n_random_tokens;
    o.by_blocks = v->by_blocks;
    o.kl_weight = v->by_blocks ? 0 : v->kl;
    o.ce_weight = v->ce;
    o.hidden_weight = v->by_blocks ? 1 : v->hidden;
    if (v->codec == CODEC_OWN && !cli_was_given(call, "--rate")) o.adamw.rate = CLI_RATE_OF_CODES;
    snprintf(rate, sizeof rate, "%.7g", (double)o.adamw.rate);
    const cli_effective effective[] = {{"--rate", rate}, {"--kl", NULL}};
    const size_t n_effective = v->by_blocks ? 2 : 1; /* with --blocks, --kl is unused, and recorded as absent */
    if (!cli_record_command(call, true, effective, n_effective, &command))
        return cli_fail(call, CLI_LIMIT, "not enough memory for the record of the command");
    o.command = whit_chars(&command);
    const cli_named_file output = {"-o", training->out},
                         inputs[] = {{"--teacher", v->teacher}, {"--student", v->student}};
    int exit = cli_check_apart(call, output, inputs, 2);
    if (exit == CLI_OK) exit = cli_training_check(call, training, 0);
    if (exit == CLI_OK) exit = cli_open_model(call, v->teacher, false, &teacher);
    if (exit == CLI_OK && v->start) exit = cli_open_model(call, v->start, false, &student);
    if (exit == CLI_OK && v->student) exit = open_student(call, v, teacher, &student);
    if (exit == CLI_OK) exit = cli_train(call, training, student ? student : teacher, teacher, &o);
    whit_model_close(student);
    whit_model_close(teacher);
    whit_buf_free(&command);
    return exit;
}

const cli_verb cli_distill_verb = {
    "distill",
    "",
    0,
    0,
    "train a low-bit student of a model",
    "The student starts from the teacher's own weights with its matrices rounded to a codec, and learns to give the "
    "teacher's probabilities over the text. With --checkpoint FILE a run that is cut is resumed by --resume and the "
    "same options; with --steps it then ends with the same bits.\n"
    "  whit distill --teacher model.gguf --text train.txt --codec t --minutes 40 -o small.ndf",
    {{"OPTIONS", options, 0},
     {"TRAINING", cli_training_options, AT(training)},
     {"RECIPE", cli_recipe_options, AT(training)}},
    sizeof(struct distill_values),
    &defaults,
    run_distill,
    .usual = "--teacher, --text, -o, --minutes, --codec",
};
