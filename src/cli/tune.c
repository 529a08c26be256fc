/* SPDX-License-Identifier: MIT
 * Implements whit tune, which trains adapters, norms and scales of a low-bit model. */
#include <stdio.h>
#include <string.h>

#include "base/items.h"
#include "cli/outputs.h"
#include "cli/recorded.h"
#include "cli/training.h"
#include "cli/verbs.h"
#include "model/adapter.h"

struct tune_values {
    const char *teacher;
    uint32_t rank;
    cli_list matrices;
    bool norms, scales;
    float ce, kl, hidden;
    cli_model_flags model;
    cli_training_flags training;
};
#define USUAL -1.0f /* not given: 1 for the default loss (--kl with --teacher, else --ce), 0 for the other */
static const struct tune_values defaults = {.rank = 16, .ce = USUAL, .kl = USUAL, .training = CLI_TRAINING_DEFAULTS};

#define AT(member) offsetof(struct tune_values, member)
static const cli_option options[] = {
    {"--rank", CLI_COUNT, AT(rank), "N", "Rank of the adapter on the layers' matrices; 16 by default, 0 is none.", 0,
     WHIT_ADAPTER_MAX_RANK},
    {"--matrix", CLI_REPEAT, AT(matrices), "NAME", "Adapt q, k, v, o, gate, up or down only; may be given again.", 0,
     0},
    {"--norms", CLI_FLAG, AT(norms), NULL, "Tune the norms too; the output is then a new model.", 0, 0},
    {"--scales", CLI_FLAG, AT(scales), NULL, "Tune the scales of the layers' matrices too; likewise.", 0, 0},
    {"--teacher", CLI_FILE, AT(teacher), "MODEL", "Learn this model's probabilities in place of the text's own tokens.",
     0, 0},
    {"--kl", CLI_REAL, AT(kl), "X", "Weight of the divergence from the teacher; 1 by default if there is a teacher.", 0,
     1e6},
    {"--ce", CLI_REAL, AT(ce), "X", "Weight of the text's own cross-entropy; by default 1 without a teacher, else 0.",
     0, 1e6},
    {"--hidden", CLI_REAL, AT(hidden), "X", "Weight of the difference between hidden states; 0 by default.", 0, 1e6},
    {0},
};

static int run_tune(cli_call *call)
{
    const struct tune_values *v = call->values;
    const cli_training_flags *training = &v->training;
    if (!training->out || !training->text.n) return cli_fail(call, CLI_USAGE, "-m MODEL, --text and -o are needed");
    whit_model *model = NULL, *teacher = NULL;
    whit_buf command = {0};
    whit_tuning tuning = {.rank = v->rank,
                          .matrices = v->matrices.items,
                          .n_matrices = v->matrices.n,
                          .norms = v->norms,
                          .scales = v->scales,
                          .seed = (uint64_t)training->seed};
    whit_trainer_options o = cli_training_wanted(training);
    o.tuning = &tuning;
    if (v->kl != USUAL)
        o.kl_weight = v->kl;
    else if (v->teacher)
        o.kl_weight = 1;
    else
        o.kl_weight = 0;
    if (v->ce != USUAL)
        o.ce_weight = v->ce;
    else if (v->teacher)
        o.ce_weight = 0;
    else
        o.ce_weight = 1;
    o.hidden_weight = v->hidden;
    if (v->scales && training->refit)
        return cli_fail(call, CLI_USAGE,
                        "--refit-scales recomputes the scales that --scales learns: give only one of them");
    if (!cli_record_command(call, true, NULL, 0, &command))
        return cli_fail(call, CLI_LIMIT, "not enough memory for the record of the command");
    o.command = whit_chars(&command);
    /* An adapter must not replace the file of its model, because it cannot be used without the model. */
    const bool makes_adapter = !v->norms && !v->scales;
    const cli_named_file output = {"-o", training->out},
                         inputs[] = {{"--teacher", v->teacher}, {"-m", makes_adapter ? v->model.path : NULL}};
    int exit = cli_check_apart(call, output, inputs, 2);
    if (exit == CLI_OK) exit = cli_training_check(call, training, 0);
    if (exit == CLI_OK) exit = cli_open_flagged_model(call, &v->model, &model);
    if (exit == CLI_OK && v->teacher) exit = cli_open_model(call, v->teacher, v->model.no_cache, &teacher);
    if (exit == CLI_OK) exit = cli_train(call, training, model, teacher, &o);
    whit_model_close(teacher);
    whit_model_close(model);
    whit_buf_free(&command);
    return exit;
}

const cli_verb cli_tune_verb = {
    "tune",
    "",
    0,
    0,
    "train an adapter, norms and scales of a model",
    "The model's matrices stay as they are, whatever their codec; an int8 low-rank adapter beside them learns the "
    "text, or "
    "a teacher's probabilities over it. OUT is the adapter, for run --adapter and merge. With --norms or --scales OUT "
    "is a new model, and its adapter lies in its file under the name \"tuned\". With --checkpoint FILE a run "
    "that is cut is resumed by --resume and the same options; with --steps it then ends with the same bits.\n"
    "  whit tune -m small.ndf --text poems.txt --steps 500 -o verse.ndf\n"
    "  whit run -m small.ndf --adapter verse.ndf -p \"The sea\"",
    {{"OPTIONS", options, 0},
     {"MODEL", cli_model_options, AT(model)},
     {"TRAINING", cli_training_options, AT(training)},
     {"RECIPE", cli_recipe_options, AT(training)}},
    sizeof(struct tune_values),
    &defaults,
    run_tune,
    .usual = "-m, --text, -o, --minutes, --rank",
};
