/* SPDX-License-Identifier: MIT
 * whit distill: a low-bit student of a float model. */
#include <stdio.h>
#include <string.h>

#include "cli/flags.h"
#include "cli/verbs.h"
#include "train/distill.h"

struct distill_values {
    const char *teacher, *held, *out, *log, *checkpoint;
    cli_list text;
    int codec, ends;
    float minutes;
    uint32_t n_steps, n_sequences, n_tokens, n_accumulate, n_threads, held_every, n_held_windows;
    int64_t seed;
    float rate, scale_rate, decay, clip, warm_up, ramp, ce, kl, hidden, beta2;
    bool refit, recompute, resume;
};
static const struct distill_values defaults = {
    .n_sequences = 8, .n_tokens = 256, .n_accumulate = 1, .rate = 3e-4f, .scale_rate = 0.3f, .clip = 1, .warm_up = 0.03f,
    .kl = 1, .beta2 = 0.95f,
};

#define AT(member) offsetof(struct distill_values, member)
static const cli_option options[] = {
    {"--teacher", CLI_FILE, AT(teacher), "MODEL", "The model to learn from; the student starts from its weights.", 0, 0},
    {"--text", CLI_REPEAT, AT(text), "FILE", "Training text; may be given several times.", 0, 0},
    {"-o, --output", CLI_FILE, AT(out), "FILE", "The finished .ndf.", 0, 0},
    {"--codec", CLI_CHOICE, AT(codec), "t|b1|q2", "Of the layers' matrices: ternary (the default), signs, four levels.", 0, 0},
    {"--ends", CLI_CHOICE, AT(ends), "i8|f16", "Of embedding and head; i8 is the default.", 0, 0},
    {"--minutes", CLI_REAL, AT(minutes), "N", "Train for so long; this or --steps is wanted.", 0, 1e6},
    {"--steps", CLI_COUNT, AT(n_steps), "N", "Train for so many steps.", 0, 4e9},
    {"--seed", CLI_SEED, AT(seed), "N", "Which windows of the text are drawn; 0 is the default.", 0, 0},
    {"--held", CLI_FILE, AT(held), "FILE", "Text to measure the student on beside its teacher.", 0, 0},
    {"--held-every", CLI_COUNT, AT(held_every), "N", "Measure every N steps; 0, the default, at the end only.", 0, 4e9},
    {"--held-windows", CLI_COUNT, AT(n_held_windows), "N", "Measure on so many windows; 0, the default, on all.", 0, 1e6},
    {"--checkpoint", CLI_FILE, AT(checkpoint), "FILE", "Where a run that is cut can go on; written every minute.", 0, 0},
    {"--resume", CLI_FLAG, AT(resume), NULL, "Go on from the checkpoint.", 0, 0},
    {"--log", CLI_FILE, AT(log), "FILE", "Append a JSON line for every report.", 0, 0},
    {"-t, --threads", CLI_COUNT, AT(n_threads), "N", "Threads; 0, the default, is one per physical core.", 0, 1024},
    {0},
};
static const cli_option recipe[] = {
    {"--rate", CLI_REAL, AT(rate), "X", "Highest learning rate; 3e-4.", 0, 1},
    {"--scale-rate", CLI_REAL, AT(scale_rate), "X", "Learning rate of scales as a share of it; 0.3.", 0, 100},
    {"--decay", CLI_REAL, AT(decay), "X", "Weight decay of matrices; 0.", 0, 1},
    {"--clip", CLI_REAL, AT(clip), "X", "Largest norm of the gradient; 1; 0 is off.", 0, 1e6},
    {"--beta2", CLI_REAL, AT(beta2), "X", "Adam's memory of squared gradients; 0.95.", 0, 0.9999},
    {"--warm-up", CLI_REAL, AT(warm_up), "X", "Share of the run with a rising rate; 0.03.", 0, 0.9},
    {"--ramp", CLI_REAL, AT(ramp), "X", "Share of the run over which rounding comes in; 0.", 0, 1},
    {"--kl", CLI_REAL, AT(kl), "X", "Weight of the divergence from the teacher; 1.", 0, 1e6},
    {"--ce", CLI_REAL, AT(ce), "X", "Weight of the text's own cross-entropy; 0.", 0, 1e6},
    {"--hidden", CLI_REAL, AT(hidden), "X", "Weight of the difference between hidden states; 0.", 0, 1e6},
    {"--refit-scales", CLI_FLAG, AT(refit), NULL, "Recompute scales from the weights instead of learning them.", 0, 0},
    {"--sequences", CLI_COUNT, AT(n_sequences), "N", "Windows in a batch; 8.", 1, 65536},
    {"-c, --window", CLI_COUNT, AT(n_tokens), "N", "Tokens in a window; 256.", 2, 1048576},
    {"--accumulate", CLI_COUNT, AT(n_accumulate), "N", "Batches in a step; 1.", 1, 65536},
    {"--recompute", CLI_FLAG, AT(recompute), NULL, "Keep few activations and compute the others again.", 0, 0},
    {0},
};

struct listener {
    FILE *log;
    double kl, ce; /* sums since the last line */
    uint32_t n;
    uint64_t shown_ns;
};

/* A line every five seconds, and whenever the held-out text was measured. */
static void on_report(void *user, const whit_distill_report *r)
{
    struct listener *listener = user;
    listener->kl += r->kl;
    listener->ce += r->ce;
    listener->n++;
    if (!r->held && r->share < 1 && r->elapsed_ns - listener->shown_ns < 5000000000ull) return;
    listener->shown_ns = r->elapsed_ns;
    double kl = listener->kl / listener->n, ce = listener->ce / listener->n, seconds = (double)r->elapsed_ns * 1e-9;
    char held[96] = "", held_json[96] = "";
    if (r->held) {
        snprintf(held, sizeof held, ", held: KL %.5f, ratio %.4f", r->held_kl, r->held_ratio);
        snprintf(held_json, sizeof held_json, ", \"held_kl\": %.6f, \"held_ratio\": %.6f", r->held_kl, r->held_ratio);
    }
    cli_note("step %llu, %.1f %%: KL %.5f, CE %.4f, rate %.2e, %.0f tokens/s, %.0f s left%s", (unsigned long long)r->step,
             100 * r->share, kl, ce, r->rate, r->tokens_per_second, r->share > 0 ? seconds / r->share - seconds : 0, held);
    if (listener->log) {
        fprintf(listener->log, "{\"step\": %llu, \"seconds\": %.2f, \"kl\": %.6f, \"ce\": %.6f, \"rate\": %.4e, "
                "\"tokens_per_second\": %.1f%s}\n", (unsigned long long)r->step, seconds, kl, ce, r->rate,
                r->tokens_per_second, held_json);
        fflush(listener->log);
    }
    listener->kl = listener->ce = 0;
    listener->n = 0;
}

static whit_distill_options options_of(const struct distill_values *v)
{
    static const char *const codecs[] = {"t", "b1", "q2"}, *const ends[] = {"i8", "f16"};
    whit_distill_options o = whit_distill_options_default();
    o.codecs = (whit_trainee_codecs){codecs[v->codec], ends[v->ends]};
    o.text = v->text.items;
    o.n_text = v->text.n;
    o.held = v->held;
    o.n_held_windows = v->n_held_windows;
    o.held_every = v->held_every;
    o.n_sequences = v->n_sequences;
    o.n_tokens = v->n_tokens;
    o.n_accumulate = v->n_accumulate;
    o.n_steps = v->n_steps;
    o.seconds = (double)v->minutes * 60;
    o.seed = (uint64_t)v->seed;
    o.kl_weight = v->kl;
    o.ce_weight = v->ce;
    o.hidden_weight = v->hidden;
    o.ramp = v->ramp;
    o.refit_scales = v->refit;
    o.recompute = v->recompute;
    o.adamw.rate = v->rate;
    o.adamw.scale_rate = v->scale_rate;
    o.adamw.decay = v->decay;
    o.adamw.clip = v->clip;
    o.adamw.beta2 = v->beta2;
    o.adamw.warm_up = v->warm_up;
    o.n_threads = v->n_threads;
    o.checkpoint = v->checkpoint;
    o.resume = v->resume;
    o.cancel = cli_cancelled();
    o.report = on_report;
    return o;
}

static int run(cli_call *call)
{
    const struct distill_values *v = call->values;
    if (!v->teacher || !v->out || !v->text.n)
        return cli_fail(call, CLI_USAGE, "--teacher, --text and -o are wanted");
    whit_error error;
    whit_model *teacher = NULL;
    whit_distill *distill = NULL;
    struct listener listener = {0};
    char command[256];
    whit_distill_options o = options_of(v);
    snprintf(command, sizeof command, "whit distill --codec %s --steps %u --minutes %g --seed %lld --rate %g", o.codecs.body,
             v->n_steps, (double)v->minutes, (long long)v->seed, (double)v->rate);
    o.command = command;
    o.user = &listener;
    if (v->log && !(listener.log = fopen(v->log, "a"))) return cli_fail(call, CLI_IO, "%s: cannot be opened", v->log);
    int exit = cli_open_model(call, v->teacher, false, &teacher);
    whit_status status = WHIT_OK;
    if (exit == CLI_OK) status = whit_distill_open(teacher, &o, NULL, &distill, &error);
    if (distill) {
        cli_note("training takes %.0f MB", (double)whit_distill_bytes(distill) / 1e6);
        status = whit_distill_run(distill, &error);
    }
    if (distill && status == WHIT_OK) status = whit_distill_write(distill, v->out, &error);
    whit_distill_close(distill);
    whit_model_close(teacher);
    if (listener.log) fclose(listener.log);
    return status == WHIT_OK ? exit : cli_fail_error(call, &error);
}

const cli_verb cli_distill_verb = {
    "distill", "", 0, 0,
    "train a low-bit student of a model",
    "The student starts from the teacher's own weights with its matrices rounded to a codec, and learns to give the "
    "teacher's probabilities over the text. A run that is cut goes on with --resume and the same options; with "
    "--steps it then ends with the same bits.\n"
    "  whit distill --teacher model.gguf --text train.txt --codec t --minutes 40 -o small.ndf",
    {{"OPTIONS", options, 0}, {"RECIPE", recipe, 0}}, sizeof(struct distill_values), &defaults, run,
};
