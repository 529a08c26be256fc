/* SPDX-License-Identifier: MIT */
#include "base/phrase.h"
#include "cli/training.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "cli/names.h"
#include "cli/outputs.h"
#include "cli/plot.h"
#include "cli/ranks.h"
#include "runtime/model.h"

#define WINDOW_TOKENS 256u

#define AT(member) offsetof(cli_training_flags, member)
const cli_option cli_training_options[] = {
    {"--text", CLI_REPEAT, AT(text), "FILE", "Training text; may be given several times.", 0, 0},
    {"-o, --output", CLI_FILE, AT(out), "FILE", "The finished .ndf.", 0, 0},
    {"--minutes", CLI_REAL, AT(minutes), "N",
     "Take so long, with reading the text and measuring; this or --steps is wanted.", 0, 1e6},
    {"--steps", CLI_COUNT, AT(n_steps), "N", "Train for so many steps.", 0, 4e9},
    {"--seed", CLI_SEED, AT(seed), "N", "Seed of the choice of windows of the text; 0 by default.", 0, 0},
    {"--specials", CLI_FLAG, AT(specials), NULL,
     "Special tokens written in the text count as such; windows begin with the beginning-of-text token.", 0, 0},
    {"--held-out", CLI_FILE, AT(held_out), "FILE", "Text to measure the model on, beside its teacher.", 0, 0},
    {"--held-out-every", CLI_COUNT, AT(held_out_every), "N", "Measure every N steps; 0, the default, at the end only.",
     0, 4e9},
    {"--held-out-windows", CLI_COUNT, AT(n_held_out_windows), "N",
     "Measure on so many windows; 0, the default, on all, but with --minutes on as many as take a twentieth of it.", 0,
     1e6},
    {"--checkpoint", CLI_FILE, AT(checkpoint), "FILE", "The file that a run that is cut is resumed from.", 0, 0},
    {"--checkpoint-seconds", CLI_COUNT, AT(checkpoint_seconds), "N",
     "Write the checkpoint every N seconds; 60 by default.", 0, 1e6},
    {"--resume", CLI_FLAG, AT(resume), NULL, "Go on from the checkpoint.", 0, 0},
    {"--log", CLI_FILE, AT(log), "FILE", "Append a JSON line for every report.", 0, 0},
    {"--plot", CLI_FILE, AT(plot), "FILE",
     "Draw the curve of the loss as an SVG; with --resume and --log, from the log's beginning.", 0, 0},
    {"-t, --threads", CLI_AUTO, AT(n_threads), "N", "Threads; 0, the default, is one per physical core.", 0, 1024},
    {0},
};

const cli_option cli_recipe_options[] = {
    {"--rate", CLI_REAL, AT(rate), "X",
     "Highest learning rate; 3e-4 by default, but 1e-4 where the start has low-bit codes that stay.", 0, 1},
    {"--scale-rate", CLI_REAL, AT(scale_rate), "X", "Learning rate of scales as a share of --rate; 0.3 by default.", 0,
     100},
    {"--decay", CLI_REAL, AT(decay), "X", "Weight decay of matrices; 0, the default, is none.", 0, 1},
    {"--clip", CLI_REAL, AT(clip), "X", "Largest norm of the gradient; 1 by default, 0 is off.", 0, 1e6},
    {"--beta2", CLI_REAL, AT(beta2), "X", "Adam's memory of squared gradients; 0.95 by default.", 0, 0.9999},
    {"--warm-up", CLI_REAL, AT(warm_up), "X", "Share of the run with a rising rate; 0.03 by default.", 0, 0.9},
    {"--ramp", CLI_REAL, AT(ramp), "X",
     "Share of the run over which rounding comes in; 0, the default, rounds from the start.", 0, 1},
    {"--balance", CLI_REAL, AT(balance), "X",
     "Weight of a loss that spreads tokens over the experts of a mixture; 0, the default, is none, 0.01 is usual.", 0,
     1e3},
    {"--refit-scales", CLI_FLAG, AT(refit), NULL, "Recompute scales from the weights instead of learning them.", 0, 0},
    {"--sequences", CLI_COUNT, AT(n_sequences), "N", "Windows in a batch; 8 by default.", 1, 65536},
    {"-c, --window", CLI_COUNT, AT(n_tokens), "N",
     "Tokens in a window; 256 by default, or the model's context where that is shorter.", 2, 1048576},
    {"--accumulate", CLI_COUNT, AT(n_accumulate), "N", "Batches in a step; 1 by default.", 1, 65536},
    {"--precision", CLI_CHOICE, AT(precision), "bf16|f32|bf16-amx|bf16-avx512",
     "Precision of matrix products; bf16, the default, is bf16-amx or bf16-avx512 where the processor has it, else "
     "f32. The "
     "other "
     "names give the same bits on every processor with the same library; slowly without the instruction.",
     0, 0},
    {"--recompute", CLI_FLAG, AT(recompute), NULL, "Keep few activations and compute the others again.", 0, 0},
    {0},
};
#undef AT

struct listener {
    FILE *log;
    cli_plot plot;
    bool plots_kl, has_teacher;
    double kl, ce;                  /* sums of the losses, in nats, of the n steps since the last printed line */
    double last_ce;                 /* cross-entropy in the last printed line; the held-out one if it was measured */
    bool is_measured, was_measured; /* is_measured: the last line has a held-out loss; was_measured: so had the model
                                     * before the first step */
    double first_ce, first_kl, last_kl;
    uint32_t n;
    uint64_t shown_ns, n_steps;
    uint64_t step, step_ns; /* step: the current step; step_ns: time at which it was first reported */
};

/* ---- before the work ------------------------------------------------------------------------- */

static int check_readable(cli_call *call, const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0 || access(path, R_OK) != 0)
        return cli_fail(call, CLI_IO, "%s: cannot open: %s", path, strerror(errno));
    if (!S_ISREG(info.st_mode)) return cli_fail(call, CLI_IO, "%s: is not a regular file", path);
    return info.st_size ? CLI_OK : cli_fail(call, CLI_REFUSED, "%s: the file is empty", path);
}

static int check_text(cli_call *call, const char *path)
{
    const int status = check_readable(call, path);
    return status == CLI_OK ? cli_check_text(call, path) : status;
}

/* Checks that every output file can be written, has no suffix of another kind of file, and differs from the texts and
 * from the other outputs. Returns CLI_OK, or an exit status after a message. */
static int check_outputs(cli_call *call, const cli_training_flags *v)
{
    const struct {
        cli_named_file file;
        cli_output_kind kind;
    } outputs[] = {{{"-o", v->out}, CLI_OUTPUT_MODEL},
                   {{"--checkpoint", v->checkpoint}, CLI_OUTPUT_OWN},
                   {{"--plot", v->plot}, CLI_OUTPUT_PICTURE},
                   {{"--log", v->log}, CLI_OUTPUT_LOG}};
    const size_t n_outputs = sizeof outputs / sizeof *outputs;
    const cli_named_file held_out = {"--held-out", v->held_out};
    int status = CLI_OK;
    for (size_t i = 0; status == CLI_OK && i < n_outputs; i++) {
        for (size_t k = 0; status == CLI_OK && k < v->text.n; k++)
            status = cli_check_apart(call, outputs[i].file, &(cli_named_file){"--text", v->text.items[k]}, 1);
        if (status == CLI_OK) status = cli_check_apart(call, outputs[i].file, &held_out, 1);
        for (size_t k = 0; status == CLI_OK && k < i; k++)
            status = cli_check_apart(call, outputs[i].file, &outputs[k].file, 1);
    }
    for (size_t i = 0; status == CLI_OK && i < n_outputs; i++)
        status = cli_check_output(call, outputs[i].file.path, outputs[i].kind);
    return status;
}

int cli_training_check(cli_call *call, const cli_training_flags *v, uint32_t n_ctx)
{
    if (!v->n_steps == !(v->minutes > 0))
        return cli_fail(call, CLI_USAGE, "give either --steps N or --minutes N, which says how long to train");
    if (v->resume && !v->checkpoint)
        return cli_fail(call, CLI_USAGE, "--resume needs --checkpoint FILE, the checkpoint of the interrupted run");
    if (n_ctx && v->n_tokens > n_ctx)
        return cli_fail(call, CLI_USAGE,
                        "windows of %u tokens (-c) are longer than the model's context of %u: choose a smaller -c",
                        v->n_tokens, n_ctx);
    int status = CLI_OK;
    for (size_t i = 0; status == CLI_OK && i < v->text.n; i++) status = check_text(call, v->text.items[i]);
    if (status == CLI_OK && v->held_out) status = check_text(call, v->held_out);
    if (status == CLI_OK)
        status = v->resume ? check_readable(call, v->checkpoint) : cli_check_anew(call, v->checkpoint, 0);
    return status == CLI_OK ? check_outputs(call, v) : status;
}

/* ---- reports --------------------------------------------------------------------------------- */

static bool on_measuring(void *user, const char *what, double share)
{
    (void)user;
    return cli_progress(NULL, what, share);
}

/* Shows the progress within a step, once the step has taken a second. */
static void on_stepping(void *user, uint64_t step, double share)
{
    struct listener *listener = user;
    char what[40];
    if (step != listener->step) {
        listener->step = step;
        listener->step_ns = whit_now_ns();
    }
    if (whit_now_ns() - listener->step_ns < 1000000000) return;
    snprintf(what, sizeof what, "step %llu", (unsigned long long)step);
    cli_progress(NULL, what, share);
}

/* Prints the held-out perplexity before the first step and, with a teacher, the divergence, and writes the losses to
 * the log. */
static void on_begin(struct listener *listener, const whit_trainer_report *r)
{
    char some[64] = "", divergence[48] = "", divergence_json[48] = "";
    listener->was_measured = true;
    listener->first_ce = r->held_out_ce;
    listener->first_kl = r->held_out_kl;
    if (r->n_held_out < r->n_held_out_all)
        snprintf(some, sizeof some, " (on %u of %u windows)", r->n_held_out, r->n_held_out_all);
    if (listener->has_teacher) {
        snprintf(divergence, sizeof divergence, ", KL %.5f", r->held_out_kl);
        snprintf(divergence_json, sizeof divergence_json, ", \"held_kl\": %.6f", r->held_out_kl);
    }
    cli_note("before: held-out perplexity %.4f%s%s", exp(r->held_out_ce), divergence, some);
    if (listener->log) fprintf(listener->log, "{\"before\": {\"held_ce\": %.6f%s}}\n", r->held_out_ce, divergence_json);
}

/* Prints a line and adds it to the log and the plot every five seconds, after each measurement on held-out text and at
 * the end. Shows a progress bar in between. */
static void on_report(void *user, const whit_trainer_report *r)
{
    struct listener *listener = user;
    if (!r->step) {
        on_begin(listener, r);
        return;
    }
    listener->kl += r->kl;
    listener->ce += r->ce;
    listener->n++;
    if (!r->held_out && r->share < 1 && r->elapsed_ns - listener->shown_ns < 5000000000ull) {
        cli_progress(NULL, "training", r->share);
        return;
    }
    listener->shown_ns = r->elapsed_ns;
    double kl = listener->kl / listener->n, ce = listener->ce / listener->n, seconds = (double)r->elapsed_ns * 1e-9;
    char held_out[96] = "", held_out_json[96] = "", divergence[32] = "", divergence_json[40] = "";
    if (listener->has_teacher) {
        snprintf(divergence, sizeof divergence, "KL %.5f, ", kl);
        snprintf(divergence_json, sizeof divergence_json, "\"kl\": %.6f, ", kl);
    }
    if (r->held_out) {
        snprintf(held_out, sizeof held_out, ", held-out: perplexity %.4f", exp(r->held_out_ce));
        snprintf(held_out_json, sizeof held_out_json, ", \"held_ce\": %.6f", r->held_out_ce);
    }
    if (r->held_out && r->held_out_ratio > 0) {
        size_t n = strlen(held_out), n_json = strlen(held_out_json);
        snprintf(held_out + n, sizeof held_out - n, ", KL %.5f, ratio %.4f", r->held_out_kl, r->held_out_ratio);
        snprintf(held_out_json + n_json, sizeof held_out_json - n_json, ", \"held_kl\": %.6f, \"held_ratio\": %.6f",
                 r->held_out_kl, r->held_out_ratio);
    }
    cli_note("step %llu, %.1f %%: %sCE %.4f, rate %.2e, %.0f tokens/s, %.0f s left%s", (unsigned long long)r->step,
             100 * r->share, divergence, ce, r->rate, r->tokens_per_second,
             r->share > 0 ? seconds / r->share - seconds : 0, held_out);
    if (listener->log) {
        fprintf(listener->log,
                "{\"step\": %llu, \"seconds\": %.2f, %s\"ce\": %.6f, \"gradient_norm\": %.6g, \"rate\": %.4e, "
                "\"tokens_per_second\": %.1f%s}\n",
                (unsigned long long)r->step, seconds, divergence_json, ce, r->gradient_norm, r->rate,
                r->tokens_per_second, held_out_json);
        fflush(listener->log);
    }
    cli_plot_add(&listener->plot,
                 (cli_plot_point){(double)r->step, listener->plots_kl ? kl : ce,
                                  !r->held_out             ? NAN
                                      : listener->plots_kl ? r->held_out_kl
                                                           : r->held_out_ce});
    listener->is_measured = r->held_out;
    listener->last_ce = r->held_out ? r->held_out_ce : ce;
    listener->last_kl = r->held_out ? r->held_out_kl : kl;
    listener->n_steps = r->step;
    listener->kl = listener->ce = 0;
    listener->n = 0;
}

/* Writes the first line of a run to the log: the settings that are needed to reproduce the results. */
static void log_run(FILE *log, const whit_trainer_options *o, const char *out)
{
    json_t *text = json_array();
    for (size_t i = 0; i < o->n_text; i++) json_array_append_new(text, cli_json_path(o->text[i]));
    json_t *run = json_pack(
        "{s:{s:s, s:s, s:I, s:I, s:f, s:o, s:i, s:i, s:i, s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:b, s:b}}",
        "run", "version", whit_version(), "command", o->command, "seed", (json_int_t)o->seed, "steps",
        (json_int_t)o->n_steps, "seconds", o->seconds, "text", text, "sequences", (int)o->n_sequences, "window",
        (int)o->n_tokens, "accumulate", (int)o->n_accumulate, "precision",
        whit_precision_name(whit_precision_choose(o->precision)), "rate", (double)o->adamw.rate, "scale_rate",
        (double)o->adamw.scale_rate, "decay", (double)o->adamw.decay, "clip", (double)o->adamw.clip, "beta2",
        (double)o->adamw.beta2, "warm_up", (double)o->adamw.warm_up, "kl_weight", (double)o->kl_weight, "ce_weight",
        (double)o->ce_weight, "resumed", (int)o->resume, "specials", (int)o->specials);
    if (run) json_object_set_new(json_object_get(run, "run"), "output", cli_json_path(out));
    char *line = run ? json_dumps(run, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    if (line) fprintf(log, "%s\n", line);
    free(line);
    json_decref(run);
}

/* Describes the losses in the last printed line (held-out, if they were measured then): the divergence from the teacher
 * if training minimised it, and in any case the cross-entropy and the perplexity. */
static void describe_loss(const struct listener *listener, char *text, size_t text_bytes)
{
    int n = listener->has_teacher && listener->plots_kl
        ? snprintf(text, text_bytes, ", KL %.5f from the teacher", listener->last_kl)
        : 0;
    snprintf(text + n, text_bytes - (size_t)n, ", cross-entropy %.4f (perplexity %.2f) after %" PRIu64 " step%s",
             listener->last_ce, exp(listener->last_ce), listener->n_steps, whit_plural(listener->n_steps));
}

/* Warns if the held-out loss is higher than before training. The loss is the divergence from the teacher if training
 * minimised it, otherwise the cross-entropy. */
static void compare_ends(const struct listener *listener)
{
    bool by_teacher = listener->has_teacher && listener->plots_kl;
    double first = by_teacher ? listener->first_kl : listener->first_ce;
    double last = by_teacher ? listener->last_kl : listener->last_ce;
    if (last > first)
        cli_note(
            "worse than before training: held-out %s %.5f, before %.5f; try a lower --rate, more steps or more text",
            by_teacher ? "KL" : "cross-entropy", last, first);
}

/* Prints the model's path, its size, its bits per weight and its last loss. */
static void say_what_was_made(const char *path, const struct listener *listener)
{
    whit_model *model = NULL;
    struct stat info;
    char size[32], bits[64] = "", loss[160] = "";
    if (stat(path, &info) != 0) return;
    if (whit_model_open(path, NULL, &model, NULL) == WHIT_OK)
        snprintf(bits, sizeof bits, ", %.2f bits per weight in the layers", whit_weights_layer_bits(&model->weights));
    whit_model_close(model);
    if (listener->n_steps) describe_loss(listener, loss, sizeof loss);
    cli_note("%s: %s%s%s", path, cli_bytes((uint64_t)info.st_size, size), bits, loss);
    if (listener->is_measured && listener->was_measured) compare_ends(listener);
}

/* Writes the model of a cancelled run and explains how to resume the run; before the first step writes nothing. Returns
 * an exit status. */
static int end_cut(cli_call *call, const cli_training_flags *flags, whit_trainer *trainer)
{
    char resumed[CLI_PATH_BYTES + 80] = "; with --checkpoint FILE it could be resumed";
    whit_error error;
    const uint64_t n = whit_trainer_steps(trainer);
    if (!n) return cli_fail(call, CLI_INTERRUPTED, "interrupted before the first step: nothing is written");
    whit_trainer_finish(trainer);
    if (whit_trainer_write(trainer, flags->out, &error) != WHIT_OK) return cli_fail_error(call, &error);
    if (flags->checkpoint)
        snprintf(resumed, sizeof resumed, "; the same command with --resume resumes %.*s", CLI_PATH_BYTES - 1,
                 flags->checkpoint);
    return cli_fail(call, CLI_INTERRUPTED, "interrupted: %s contains the model after %" PRIu64 " step%s%s", flags->out,
                    n, whit_plural(n), resumed);
}

whit_trainer_options cli_training_wanted(const cli_training_flags *v)
{
    static const char *const embedding[] = {"i8", "f16", "f32"};
    whit_trainer_options o = whit_trainer_options_default();
    o.codecs.embedding = embedding[v->embedding];
    o.text = v->text.items;
    o.n_text = v->text.n;
    o.specials = v->specials;
    o.held_out = v->held_out;
    o.n_held_out_windows = v->n_held_out_windows;
    o.held_out_every = v->held_out_every;
    o.n_sequences = v->n_sequences;
    o.n_tokens = v->n_tokens;
    o.n_accumulate = v->n_accumulate;
    o.n_steps = v->n_steps;
    o.seconds = (double)v->minutes * 60;
    o.seed = (uint64_t)v->seed;
    o.balance = v->balance;
    o.ramp = v->ramp;
    o.refit_scales = v->refit;
    static const whit_precision precisions[] = {WHIT_PRECISION_BF16, WHIT_PRECISION_F32, WHIT_PRECISION_BF16_TILES,
                                                WHIT_PRECISION_BF16_PAIRS};
    o.precision = precisions[v->precision];
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
    o.measure_before = true;
    o.progress = on_measuring;
    o.begun_ns = whit_now_ns();
    return o;
}

/* Trains on a rank other than 0, without reports and output files, because only rank 0 has them. Returns an exit
 * status. */
static int train_quietly(cli_call *call, const whit_model *start, const whit_model *teacher,
                         whit_trainer_options *options)
{
    options->progress = NULL;
    whit_error error;
    whit_trainer *trainer = NULL;
    whit_status status = whit_trainer_open(start, teacher, options, NULL, &trainer, &error);
    if (status == WHIT_OK) status = whit_trainer_run(trainer, &error);
    whit_trainer_close(trainer);
    if (status == WHIT_OK) return CLI_OK;
    return status == WHIT_ERROR_CANCELLED ? CLI_INTERRUPTED : cli_fail_error(call, &error);
}

/* Warns if at least 2 % of the held-out text are in the training text, too. */
static void note_overlap(cli_call *call, const cli_training_flags *flags, const whit_trainer *trainer)
{
    const double least = 0.02; /* the same limit as in whit compare (OVERLAP_NAMED) */
    cli_text text = {0};
    if (!flags->held_out || cli_read_text(call, flags->held_out, &text) != CLI_OK) return;
    const whit_sketch_overlap found = whit_sketch_compare(whit_trainer_sketch(trainer), text.data, text.size_bytes);
    free(text.data);
    const double share = found.n_seen ? (double)found.n_common / (double)found.n_seen : 0;
    if (share >= least)
        cli_note("about %.0f %% of %s is in the training text: results on other text will be worse", 100 * share,
                 flags->held_out);
}

static int train_first(cli_call *call, const cli_training_flags *flags, const whit_model *start,
                       const whit_model *teacher, whit_trainer_options *options)
{
    whit_error error;
    whit_trainer *trainer = NULL;
    struct listener listener = {.plots_kl = options->kl_weight > 0, .has_teacher = teacher != NULL};
    listener.plot.title = options->command;
    listener.plot.measure = listener.plots_kl ? "divergence from the teacher, nats" : "cross-entropy, nats";
    if (flags->plot && flags->resume && flags->log)
        cli_plot_read_log(&listener.plot, flags->log, listener.plots_kl ? "kl" : "ce");
    options->report = on_report;
    options->stepping = on_stepping;
    options->user = &listener;
    if (flags->log && !(listener.log = fopen(flags->log, "a"))) {
        int cause = errno;
        cli_plot_free(&listener.plot);
        return cli_fail(call, CLI_IO, "%s: cannot open: %s", flags->log, strerror(cause));
    }
    cli_progress(NULL, options->n_sample_tokens ? "sampling a text from the teacher" : "reading the text", 0);
    whit_status status = whit_trainer_open(start, teacher, options, NULL, &trainer, &error);
    if (status == WHIT_OK) {
        cli_note("training takes %.0f MB of memory", (double)whit_trainer_bytes(trainer) / 1e6);
        note_overlap(call, flags, trainer);
        cli_progress(NULL, "training", 0);
        if (listener.log) log_run(listener.log, options, flags->out);
        status = whit_trainer_run(trainer, &error);
    }
    cli_progress_end();
    whit_error plot_error;
    if (flags->plot && cli_plot_write(&listener.plot, flags->plot, &plot_error) != WHIT_OK)
        cli_note("%s", plot_error.message);
    cli_plot_free(&listener.plot);
    if (status == WHIT_OK) status = whit_trainer_write(trainer, flags->out, &error);
    const int cut = status == WHIT_ERROR_CANCELLED && trainer ? end_cut(call, flags, trainer) : CLI_OK;
    whit_trainer_close(trainer);
    if (listener.log) fclose(listener.log);
    if (cut != CLI_OK) return cut;
    if (status != WHIT_OK) return cli_fail_error(call, &error);
    say_what_was_made(flags->out, &listener);
    return CLI_OK;
}

int cli_train(cli_call *call, const cli_training_flags *flags, const whit_model *start, const whit_model *teacher,
              whit_trainer_options *options)
{
    const whit_ranks *ranks;
    const uint32_t n_ctx = start->config.n_ctx;
    int status = cli_training_check(call, flags, n_ctx);
    if (status != CLI_OK) return status;
    if (!options->n_tokens) options->n_tokens = n_ctx && n_ctx < WINDOW_TOKENS ? n_ctx : WINDOW_TOKENS;
    status = cli_join_ranks(call, &ranks);
    if (status != CLI_OK) return status;
    options->ranks = ranks;
    if (ranks && ranks->rank) return train_quietly(call, start, teacher, options);
    if (ranks) cli_note("training on %u rank%s", ranks->n_ranks, whit_plural(ranks->n_ranks));
    return train_first(call, flags, start, teacher, options);
}
