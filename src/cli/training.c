/* SPDX-License-Identifier: MIT */
#include "cli/training.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/plot.h"

#define AT(member) offsetof(cli_training_flags, member)
const cli_option cli_training_options[] = {
    {"--text", CLI_REPEAT, AT(text), "FILE", "Training text; may be given several times.", 0, 0},
    {"-o, --output", CLI_FILE, AT(out), "FILE", "The finished .ndf.", 0, 0},
    {"--ends", CLI_CHOICE, AT(ends), "i8|f16|f32", "Codec of embedding and head; i8 is the default.", 0, 0},
    {"--minutes", CLI_REAL, AT(minutes), "N", "Train for so long; this or --steps is wanted.", 0, 1e6},
    {"--steps", CLI_COUNT, AT(n_steps), "N", "Train for so many steps.", 0, 4e9},
    {"--seed", CLI_SEED, AT(seed), "N", "Which windows of the text are drawn; 0 is the default.", 0, 0},
    {"--specials", CLI_FLAG, AT(specials), NULL, "Special tokens written in the text are those; windows begin at BOS.",
     0, 0},
    {"--held", CLI_FILE, AT(held), "FILE", "Text to measure the model on, beside its teacher.", 0, 0},
    {"--held-every", CLI_COUNT, AT(held_every), "N", "Measure every N steps; 0, the default, at the end only.", 0, 4e9},
    {"--held-windows", CLI_COUNT, AT(n_held_windows), "N", "Measure on so many windows; 0, the default, on all.", 0,
     1e6},
    {"--checkpoint", CLI_FILE, AT(checkpoint), "FILE", "Where a run that is cut can go on.", 0, 0},
    {"--checkpoint-seconds", CLI_COUNT, AT(checkpoint_seconds), "N", "Write it every N seconds; 60.", 0, 1e6},
    {"--resume", CLI_FLAG, AT(resume), NULL, "Go on from the checkpoint.", 0, 0},
    {"--log", CLI_FILE, AT(log), "FILE", "Append a JSON line for every report.", 0, 0},
    {"--plot", CLI_FILE, AT(plot), "FILE",
     "Draw the curve of the loss as an SVG; with --resume and --log, from the log's beginning.", 0, 0},
    {"-t, --threads", CLI_AUTO, AT(n_threads), "N", "Threads; 0, the default, is one per physical core.", 0, 1024},
    {0},
};

const cli_option cli_recipe_options[] = {
    {"--rate", CLI_REAL, AT(rate), "X", "Highest learning rate; 3e-4.", 0, 1},
    {"--scale-rate", CLI_REAL, AT(scale_rate), "X", "Learning rate of scales as a share of it; 0.3.", 0, 100},
    {"--decay", CLI_REAL, AT(decay), "X", "Weight decay of matrices; 0.", 0, 1},
    {"--clip", CLI_REAL, AT(clip), "X", "Largest norm of the gradient; 1; 0 is off.", 0, 1e6},
    {"--beta2", CLI_REAL, AT(beta2), "X", "Adam's memory of squared gradients; 0.95.", 0, 0.9999},
    {"--warm-up", CLI_REAL, AT(warm_up), "X", "Share of the run with a rising rate; 0.03.", 0, 0.9},
    {"--ramp", CLI_REAL, AT(ramp), "X", "Share of the run over which rounding comes in; 0.", 0, 1},
    {"--refit-scales", CLI_FLAG, AT(refit), NULL, "Recompute scales from the weights instead of learning them.", 0, 0},
    {"--sequences", CLI_COUNT, AT(n_sequences), "N", "Windows in a batch; 8.", 1, 65536},
    {"-c, --window", CLI_COUNT, AT(n_tokens), "N", "Tokens in a window; 256.", 2, 1048576},
    {"--accumulate", CLI_COUNT, AT(n_accumulate), "N", "Batches in a step; 1.", 1, 65536},
    {"--precision", CLI_CHOICE, AT(precision), "bf16|f32",
     "Of matrix products; bf16, the default, is f32 on processors without AMX.", 0, 0},
    {"--recompute", CLI_FLAG, AT(recompute), NULL, "Keep few activations and compute the others again.", 0, 0},
    {0},
};
#undef AT

struct listener {
    FILE *log;
    cli_plot plot;
    bool plots_kl;
    double kl, ce; /* sums since the last line */
    uint32_t n;
    uint64_t shown_ns;
};

/* A line every five seconds, and whenever the held-out text was measured. */
static void on_report(void *user, const whit_trainer_report *r)
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
        snprintf(held, sizeof held, ", held: perplexity %.4f", exp(r->held_ce));
        snprintf(held_json, sizeof held_json, ", \"held_ce\": %.6f", r->held_ce);
    }
    if (r->held && r->held_ratio > 0) {
        size_t n = strlen(held), n_json = strlen(held_json);
        snprintf(held + n, sizeof held - n, ", KL %.5f, ratio %.4f", r->held_kl, r->held_ratio);
        snprintf(held_json + n_json, sizeof held_json - n_json, ", \"held_kl\": %.6f, \"held_ratio\": %.6f", r->held_kl,
                 r->held_ratio);
    }
    cli_note("step %llu, %.1f %%: KL %.5f, CE %.4f, rate %.2e, %.0f tokens/s, %.0f s left%s",
             (unsigned long long)r->step, 100 * r->share, kl, ce, r->rate, r->tokens_per_second,
             r->share > 0 ? seconds / r->share - seconds : 0, held);
    if (listener->log) {
        fprintf(listener->log,
                "{\"step\": %llu, \"seconds\": %.2f, \"kl\": %.6f, \"ce\": %.6f, \"rate\": %.4e, "
                "\"tokens_per_second\": %.1f%s}\n",
                (unsigned long long)r->step, seconds, kl, ce, r->rate, r->tokens_per_second, held_json);
        fflush(listener->log);
    }
    cli_plot_add(&listener->plot,
                 (cli_plot_point){(double)r->step, listener->plots_kl ? kl : ce,
                                  !r->held                 ? NAN
                                      : listener->plots_kl ? r->held_kl
                                                           : r->held_ce});
    listener->kl = listener->ce = 0;
    listener->n = 0;
}

whit_trainer_options cli_training_wanted(const cli_training_flags *v)
{
    static const char *const ends[] = {"i8", "f16", "f32"};
    whit_trainer_options o = whit_trainer_options_default();
    o.codecs.ends = ends[v->ends];
    o.text = v->text.items;
    o.n_text = v->text.n;
    o.specials = v->specials;
    o.held = v->held;
    o.n_held_windows = v->n_held_windows;
    o.held_every = v->held_every;
    o.n_sequences = v->n_sequences;
    o.n_tokens = v->n_tokens;
    o.n_accumulate = v->n_accumulate;
    o.n_steps = v->n_steps;
    o.seconds = (double)v->minutes * 60;
    o.seed = (uint64_t)v->seed;
    o.ramp = v->ramp;
    o.refit_scales = v->refit;
    o.precision = v->precision ? WHIT_PRECISION_F32 : WHIT_PRECISION_BF16;
    o.recompute = v->recompute;
    o.adamw.rate = v->rate;
    o.adamw.scale_rate = v->scale_rate;
    o.adamw.decay = v->decay;
    o.adamw.clip = v->clip;
    o.adamw.beta2 = v->beta2;
    o.adamw.warm_up = v->warm_up;
    o.n_threads = v->n_threads;
    o.checkpoint = v->checkpoint;
    o.checkpoint_every_seconds = v->checkpoint_seconds;
    o.resume = v->resume;
    o.cancel = cli_cancelled();
    return o;
}

int cli_train(cli_call *call, const cli_training_flags *flags, const whit_model *start, const whit_model *teacher,
              whit_trainer_options *options)
{
    whit_error error;
    whit_trainer *trainer = NULL;
    struct listener listener = {.plots_kl = options->kl_weight > 0};
    listener.plot.title = options->command;
    listener.plot.measure = listener.plots_kl ? "divergence from the teacher, nats" : "cross-entropy, nats";
    if (flags->plot && flags->resume && flags->log)
        cli_plot_read_log(&listener.plot, flags->log, listener.plots_kl ? "kl" : "ce");
    options->report = on_report;
    options->user = &listener;
    if (flags->log && !(listener.log = fopen(flags->log, "a")))
        return cli_fail(call, CLI_IO, "%s: cannot be opened", flags->log);
    whit_status status = whit_trainer_open(start, teacher, options, NULL, &trainer, &error);
    if (status == WHIT_OK) {
        cli_note("training takes %.0f MB", (double)whit_trainer_bytes(trainer) / 1e6);
        status = whit_trainer_run(trainer, &error);
    }
    whit_error plot_error;
    if (flags->plot && cli_plot_write(&listener.plot, flags->plot, &plot_error) != WHIT_OK)
        cli_note("%s", plot_error.message);
    cli_plot_free(&listener.plot);
    if (status == WHIT_OK) status = whit_trainer_write(trainer, flags->out, &error);
    whit_trainer_close(trainer);
    if (listener.log) fclose(listener.log);
    return status == WHIT_OK ? CLI_OK : cli_fail_error(call, &error);
}
