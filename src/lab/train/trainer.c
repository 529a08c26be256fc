/* SPDX-License-Identifier: MIT */
#include "train/trainer_parts.h"

#include "base/clock.h"
#include "base/flag.h"
#include "train/sample.h"

#include <math.h>

/* This number is increased when the same run would give other bits. Checkpoints of other versions are refused. */
#define TRAINER_VERSION 2

whit_trainer_options whit_trainer_options_default(void)
{
    return (whit_trainer_options){.codecs = {"t", "i8"},
                                  .n_sequences = 8,
                                  .n_tokens = 256,
                                  .n_accumulate = 1,
                                  .kl_weight = 1,
                                  .precision = WHIT_PRECISION_BF16,
                                  .adamw = whit_adamw_default(),
                                  .checkpoint_every_seconds = 60};
}

/* ---- opening -------------------------------------------------------------------------------- */

static bool same_tokenizer(const whit_model *a, const whit_model *b)
{
    size_t n_a = 0, n_b = 0;
    const void *image_a = whit_ndf_tokenizer(a->file, &n_a), *image_b = whit_ndf_tokenizer(b->file, &n_b);
    return n_a == n_b && (!n_a || memcmp(image_a, image_b, n_a) == 0);
}

static whit_status check_teacher(const whit_trainer_options *o, const whit_model *start, const whit_model *teacher,
                                 whit_error *error)
{
    if (!teacher && (o->kl_weight > 0 || o->hidden_weight > 0))
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "losses against a teacher (kl_weight, hidden_weight) need a teacher model");
    if (!teacher || teacher == start) return WHIT_OK;
    const whit_config *from = &teacher->config, *to = &start->config;
    if (from->n_vocab != to->n_vocab || !same_tokenizer(start, teacher))
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "teacher and student have different tokenizers: both need the same");
    if (o->n_tokens > from->n_ctx)
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "windows of %u tokens are longer than the teacher's context of %u: choose smaller ones",
                         o->n_tokens, from->n_ctx);
    if (o->hidden_weight > 0 && (from->n_layers != to->n_layers || from->n_embd != to->n_embd))
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "a loss of hidden states needs a student with the teacher's number of layers and width");
    return WHIT_OK;
}

static whit_status check_options(const whit_trainer_options *o, const whit_model *start, whit_error *error)
{
    if (!o->n_steps == !(o->seconds > 0))
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "give either a number of steps or a time, not both or none");
    if (!o->n_accumulate || o->n_tokens < 2 || !o->n_sequences)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "a batch needs a sequence of two tokens at least");
    if ((uint64_t)o->n_sequences * o->n_accumulate > UINT32_MAX)
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "a step of %u batches of %u sequences is too large: at most 2^32 - 1 sequences are possible",
                         o->n_accumulate, o->n_sequences);
    if (o->n_tokens > start->config.n_ctx)
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "windows of %u tokens are longer than the model's context of %u: choose smaller ones",
                         o->n_tokens, start->config.n_ctx);
    const float of_logits = o->kl_weight + o->ce_weight;
    const bool are_weights = o->kl_weight >= 0 && o->ce_weight >= 0 && o->hidden_weight >= 0;
    if (o->by_blocks && (!are_weights || of_logits > 0 || !(o->hidden_weight > 0)))
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "training by blocks needs a weight of hidden states above 0, and no other losses");
    if (!o->by_blocks && (!are_weights || !(of_logits > 0)))
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "the weights of the losses must be at least 0, and the divergence's or the cross-entropy's "
                         "above 0");
    if (o->resume && !o->checkpoint)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "a run can only be resumed from its checkpoint: name that file");
    return WHIT_OK;
}

/* Computes the digest of the models, the text and the settings, which must not change when a run is resumed. */
static void digest_settings(const whit_trainer *d, whit_precision precision, uint8_t settings[WHIT_HASH_BYTES])
{
    const whit_trainer_options *o = &d->options;
    const float numbers[] = {o->kl_weight,        o->ce_weight,         o->hidden_weight,       o->ramp,
                             o->adamw.rate,       o->adamw.least,       o->adamw.warm_up,       o->adamw.beta1,
                             o->adamw.beta2,      o->adamw.epsilon,     o->adamw.decay,         o->adamw.clip,
                             o->adamw.scale_rate, o->adamw.vector_rate, (float)o->refit_scales, (float)o->seconds,
                             (float)precision};
    const uint64_t counts[] = {TRAINER_VERSION, o->n_sequences, o->n_tokens, o->n_accumulate,
                               o->n_steps,      o->seed,        o->specials};
    whit_hash hash;
    whit_hash_begin(&hash, "whit.train");
    whit_hash_add(&hash, whit_model_identity(d->start), WHIT_HASH_BYTES);
    if (d->teacher_model) whit_hash_add(&hash, whit_model_identity(d->teacher_model), WHIT_HASH_BYTES);
    whit_hash_add(&hash, o->codecs.layers, strlen(o->codecs.layers) + 1);
    whit_hash_add(&hash, o->codecs.embedding, strlen(o->codecs.embedding) + 1);
    for (size_t i = 0; i < o->codecs.n_mixed; i++)
        whit_hash_add(&hash, o->codecs.mixed[i], strlen(o->codecs.mixed[i]) + 1);
    if (o->tuning) {
        const uint64_t tuned[] = {o->tuning->rank, o->tuning->norms, o->tuning->scales, o->tuning->seed};
        whit_hash_add(&hash, tuned, sizeof tuned);
        for (size_t i = 0; i < o->tuning->n_matrices; i++)
            whit_hash_add(&hash, o->tuning->matrices[i], strlen(o->tuning->matrices[i]) + 1);
    }
    whit_hash_add(&hash, numbers, sizeof numbers);
    whit_hash_add(&hash, counts, sizeof counts);
    if (o->balance > 0) whit_hash_add(&hash, &o->balance, sizeof o->balance);
    if (o->by_blocks) whit_hash_add(&hash, "blocks", 6);
    if (o->ranks) {
        whit_hash_add(&hash, "ranks", 5);
        whit_hash_add(&hash, &d->n_batch, sizeof d->n_batch);
    }
    whit_hash_add(&hash, d->text.ids, d->text.n * sizeof *d->text.ids);
    whit_hash_end(&hash, settings);
}

/* Reads the checkpoint. If it belongs to a run whose products have another precision, the error names that
 * precision. */
static whit_status resume_run(whit_trainer *d, whit_error *error)
{
    const char *path = d->options.checkpoint;
    whit_params *params = &d->student.params;
    whit_status status = whit_checkpoint_read(path, &d->progress, params, error);
    if (status != WHIT_ERROR_ARGUMENT) return status;
    for (whit_precision p = WHIT_PRECISION_F32; p < WHIT_PRECISION_BF16; p++) {
        whit_progress other = {0};
        whit_error unused;
        digest_settings(d, p, other.settings);
        if (p == d->student_tape.blas.precision || whit_checkpoint_read(path, &other, params, &unused) != WHIT_OK)
            continue;
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "%s: the checkpoint belongs to a run with products in %s, here they are in %s; resume it with "
                         "--precision %s",
                         path, whit_precision_name(p), whit_precision_name(d->student_tape.blas.precision),
                         whit_precision_name(p));
    }
    return status;
}

static whit_status add_samples(whit_trainer *d, whit_error *error)
{
    const whit_trainer_options *o = &d->options;
    if (!d->teacher_model)
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "sampled text needs a teacher model that writes it: give one, or a text");
    uint32_t n_ctx = d->teacher_model->config.n_ctx, n_longest = 2 * o->n_tokens < n_ctx ? 2 * o->n_tokens : n_ctx;
    whit_sample_options sample = {o->n_sample_tokens, n_longest, o->seed, o->n_threads, o->cancel};
    return whit_corpus_add_samples(&d->text, d->teacher_model, &sample, error);
}

static whit_status open_text(whit_trainer *d, whit_error *error)
{
    const whit_trainer_options *o = &d->options;
    d->text.allocator = d->held_out.allocator = d->allocator;
    d->text.progress = d->held_out.progress = o->progress;
    d->text.user = d->held_out.user = o->user;
    for (size_t i = 0; i < o->n_text; i++)
        WHIT_TRY(whit_corpus_add_file(&d->text, d->start, o->text[i], o->specials, error));
    if (o->n_ids) WHIT_TRY(whit_corpus_add_ids(&d->text, d->start, o->ids, o->n_ids, error));
    if (o->n_sample_tokens) WHIT_TRY(add_samples(d, error));
    if (o->n_random_tokens) {
        const whit_sample_options random = {.n_tokens = o->n_random_tokens, .n_longest = o->n_tokens, .seed = o->seed};
        WHIT_TRY(whit_corpus_add_random(&d->text, d->start, &random, error));
    }
    if (d->text.n <= o->n_tokens)
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "the training text has %zu tokens, but a window needs %u: give more text or a smaller window",
                         d->text.n, o->n_tokens + 1);
    if (!o->held_out) return WHIT_OK;
    if (o->n_tokens < 3) /* only the tokens of the second half, except the last one, are scored */
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "a held-out window needs three tokens at least, not %u",
                         o->n_tokens);
    WHIT_TRY(whit_corpus_add_file(&d->held_out, d->start, o->held_out, o->specials, error));
    if (d->held_out.n <= o->n_tokens)
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "%s: the text has %zu tokens, but a window needs %u: give more text or a smaller window",
                         o->held_out, d->held_out.n, o->n_tokens + 1);
    return WHIT_OK;
}

/* Returns the teacher's value with the same name and width, if the teacher stores it; otherwise 0. Its number may
 * differ, because families differ. A program may use a name twice, so the value with the same number is tried first. */
static whit_ref teacher_value(const whit_trainer *d, whit_ref value)
{
    const whit_graph_value *student = &d->student.graph.values[value - 1];
    const whit_graph *graph = &d->teacher.graph;
    bool same = value <= graph->n_values && strcmp(graph->values[value - 1].name, student->name) == 0;
    whit_ref found = same ? value : whit_graph_find(graph, student->name);
    if (!found || !d->teacher_tape.crosses[d->teacher_tape.root[found]]) return 0;
    return graph->values[found - 1].width == student->width ? found : 0;
}

/* Checks that the teacher has a matching value for each value that follow_hidden is called with. */
static whit_status check_hidden(const whit_trainer *d, whit_error *error)
{
    const whit_tape *tape = &d->student_tape;
    const whit_graph *graph = &d->student.graph;
    for (whit_ref v = 1; v <= graph->n_values; v++)
        if (tape->crosses[v] && tape->root[v] == v && v != tape->root[graph->output] && !teacher_value(d, v))
            return whit_fail(error, WHIT_ERROR_ARGUMENT,
                             "hidden states cannot be compared: the teacher has no '%s' of %u elements between its "
                             "layers; give the loss of hidden states the weight 0",
                             graph->values[v - 1].name, graph->values[v - 1].width);
    return WHIT_OK;
}

static bool is_first_rank(const whit_trainer *d)
{
    return !d->options.ranks || !d->options.ranks->rank;
}

static whit_status open_parts(whit_trainer *d, whit_error *error)
{
    const whit_trainer_options *o = &d->options;
    const whit_allocator *a = d->allocator;
    const whit_watcher watcher = {o->progress, o->user};
    WHIT_TRY(check_options(o, d->start, error));
    WHIT_TRY(check_teacher(o, d->start, d->teacher_model, error));
    WHIT_TRY(whit_pool_open(o->n_threads, a, &d->pool, error));
    WHIT_TRY(open_text(d, error));
    if (o->tuning)
        WHIT_TRY(whit_tuning_open(&d->student, d->start, o->tuning, &watcher, a, error));
    else
        WHIT_TRY(whit_trainee_open(&d->student, d->start, &o->codecs, &watcher, a, error));
    for (size_t i = 0; is_first_rank(d) && i < o->n_text; i++) /* rank 0 writes the file */
        WHIT_TRY(whit_sketch_add_file(&d->student.sketch, o->text[i], error));
    whit_sketch_finish(&d->student.sketch);
    d->student.params.learn_scales = !o->refit_scales;
    d->n_batch = o->n_sequences;
    d->n_passes = o->n_accumulate;
    if (o->ranks) {
        const uint32_t n_all = o->n_sequences * o->n_accumulate;
        d->n_batch = whit_tree_unit(n_all, o->n_tokens);
        d->n_passes = n_all / d->n_batch;
    }
    whit_tape_options batch = {.n_sequences = d->n_batch, .n_tokens = o->n_tokens, .precision = o->precision};
    if (d->teacher_model) {
        WHIT_TRY(whit_trainee_open(&d->teacher, d->teacher_model, NULL, &watcher, a, error));
        WHIT_TRY(whit_tape_open(&d->teacher_tape, &d->teacher.graph, &d->teacher.config, &d->teacher.params, &batch,
                                d->pool, a, error));
    }
    batch.gradients = true;
    batch.checkpoint = o->recompute;
    batch.balance = o->balance / (float)d->n_passes;
    WHIT_TRY(whit_tape_open(&d->student_tape, &d->student.graph, &d->student.config, &d->student.params, &batch,
                            d->pool, a, error));
    if (o->hidden_weight > 0) WHIT_TRY(check_hidden(d, error));
    d->n_rows = d->student_tape.n_rows;
    WHIT_TRY(whit_loss_open(&d->loss, d->n_rows, o->ce_weight, o->kl_weight, a, error));
    d->ids = whit_zalloc_array(a, d->n_rows, sizeof *d->ids);
    d->targets = whit_zalloc_array(a, d->n_rows, sizeof *d->targets);
    if (!d->ids || !d->targets) return whit_fail_memory(error, "a batch", d->n_rows * sizeof *d->ids);
    if (!whit_params_fit(&d->student.params, d->pool, &watcher))
        return whit_fail(error, WHIT_ERROR_CANCELLED, "fitting scales was cancelled");
    const whit_params *params = &d->student.params;
    whit_tree_open(&d->tree, params->loops, d->pool, a,
                   params->n_floats + (params->fixed_gradient ? params->n_fixed : 0));
    digest_settings(d, d->student_tape.blas.precision, d->progress.settings);
    return o->resume ? resume_run(d, error) : WHIT_OK;
}

whit_status whit_trainer_open(const whit_model *start, const whit_model *teacher, const whit_trainer_options *options,
                              const whit_allocator *allocator, whit_trainer **out, whit_error *error)
{
    *out = NULL;
    whit_trainer *d = whit_zalloc(allocator, sizeof *d);
    if (!d) return whit_fail_memory(error, "the training", sizeof *d);
    d->options = *options;
    d->begun_ns = options->begun_ns ? options->begun_ns : whit_now_ns();
    d->n_windows = options->n_held_out_windows;
    d->allocator = allocator;
    d->start = start;
    d->teacher_model = teacher;
    whit_status status = open_parts(d, error);
    if (status != WHIT_OK)
        whit_trainer_close(d);
    else
        *out = d;
    return status;
}

void whit_trainer_close(whit_trainer *d)
{
    if (!d) return;
    const whit_allocator *a = d->allocator;
    whit_free(a, d->ids, d->n_rows * sizeof *d->ids);
    whit_free(a, d->targets, d->n_rows * sizeof *d->targets);
    whit_loss_close(&d->loss);
    whit_tree_close(&d->tree);
    whit_tape_close(&d->student_tape);
    whit_tape_close(&d->teacher_tape);
    whit_trainee_close(&d->student);
    whit_trainee_close(&d->teacher);
    whit_corpus_free(&d->held_out);
    whit_corpus_free(&d->text);
    whit_pool_close(d->pool);
    whit_free(a, d, sizeof *d);
}

size_t whit_trainer_bytes(const whit_trainer *d)
{
    return sizeof *d + whit_params_bytes(&d->teacher.params, false) + whit_params_bytes(&d->student.params, true) +
        whit_tape_bytes(&d->teacher_tape) + whit_tape_bytes(&d->student_tape) +
        (d->text.capacity + d->held_out.capacity) * sizeof *d->ids +
        d->n_rows * (sizeof *d->ids + sizeof *d->targets + 2 * sizeof *d->loss.rows);
}

whit_status whit_trainer_write(const whit_trainer *d, const char *path, whit_error *error)
{
    if (d->options.tuning) return whit_tuning_write(&d->student, d->options.tuning, d->options.command, path, error);
    return whit_trainee_write(&d->student, d->options.command, path, error);
}

/* ---- steps ---------------------------------------------------------------------------------- */

/* Adds to the gradient of the residual stream after a layer: the gradient of the squared difference between student and
 * teacher, relative to the teacher's energy over all tokens. */
static void follow_hidden(void *user, whit_tape *tape, whit_ref value)
{
    whit_trainer *d = user;
    size_t n = (size_t)tape->n_rows * tape->graph->values[value - 1].width;
    const float *student = whit_tape_value(tape, value);
    const float *teacher = whit_tape_value(&d->teacher_tape, teacher_value(d, value));
    double squares = 0;
    for (size_t i = 0; i < n; i += 4096) {
        size_t piece = n - i < 4096 ? n - i : 4096;
        squares += tape->loops->dot(teacher + i, teacher + i, piece);
    }
    float factor = (float)(2.0 * d->options.hidden_weight / (double)d->n_passes / (double)d->student.config.n_layers /
                           (squares + 1e-20));
    float *gradient = whit_tape_gradient(tape, value);
    tape->loops->add_scaled(gradient, student, factor, n);
    tape->loops->add_scaled(gradient, teacher, -factor, n);
}

/* Sets the gradient of the residual stream after a layer when each layer is trained by itself: the gradient from later
 * layers is discarded. The difference of each token is divided by the energy of the teacher's token, because the norms
 * of later layers do the same. */
static void follow_block(void *user, whit_tape *tape, whit_ref value)
{
    const whit_trainer *d = user;
    const size_t width = tape->graph->values[value - 1].width;
    const double share =
        2.0 * d->options.hidden_weight / ((double)d->n_passes * d->student.config.n_layers * tape->n_rows);
    for (size_t row = 0; row < tape->n_rows; row++) {
        const float *student = whit_tape_value(tape, value) + row * width;
        const float *teacher = whit_tape_value(&d->teacher_tape, teacher_value(d, value)) + row * width;
        const float factor = (float)(share / ((double)tape->loops->dot(teacher, teacher, width) + 1e-20));
        float *gradient = whit_tape_gradient(tape, value) + row * width;
        memset(gradient, 0, width * sizeof *gradient);
        tape->loops->add_scaled(gradient, student, factor, width);
        tape->loops->add_scaled(gradient, teacher, -factor, width);
    }
}

/* Returns the function that changes the gradients of the residual streams; NULL: they do not change. */
static whit_tape_hook *find_hook(const whit_trainer_options *o)
{
    if (o->by_blocks) return follow_block;
    return o->hidden_weight > 0 ? follow_hidden : NULL;
}

/* Runs one pass and adds its gradients. `number` counts the passes of the whole run from 0. */
static void run_pass(whit_trainer *d, uint64_t number)
{
    const whit_trainer_options *o = &d->options;
    whit_ref output = d->student.graph.output;
    for (uint32_t s = 0; s < d->n_batch; s++)
        whit_corpus_window(&d->text, o->seed, number * d->n_batch + s, o->n_tokens, d->ids + s * o->n_tokens,
                           d->targets + s * o->n_tokens);
    const float *teacher = NULL;
    if (d->teacher_model) {
        whit_tape_forward(&d->teacher_tape, d->ids);
        teacher = whit_tape_value(&d->teacher_tape, d->teacher.graph.output);
    }
    whit_tape_forward(&d->student_tape, d->ids);
    whit_loss_run(&d->loss, d->pool, whit_tape_gradient(&d->student_tape, output), teacher, d->targets,
                  d->student.config.n_vocab, 1.0f / (float)d->n_passes);
    whit_tape_backward(&d->student_tape, find_hook(o), d);
}

/* Moves the gradients of the parameters to a node of the tree, or back from it. The arrays are swapped, because copying
 * took a tenth of a small model's step. The gradients of frozen tensors are a separate array; if it exists, both arrays
 * are copied instead. */
static void move_gradients(whit_trainer *d, whit_tree_node *node, bool back)
{
    whit_params *params = &d->student.params;
    float *values = node->values, *fixed = values + params->n_floats;
    if (!params->fixed_gradient) {
        node->values = params->gradient;
        params->gradient = values;
        return;
    }
    const size_t bytes = params->n_floats * sizeof *values, fixed_bytes = params->n_fixed * sizeof *values;
    if (back) {
        memcpy(params->gradient, values, bytes);
        memcpy(params->fixed_gradient, fixed, fixed_bytes);
    } else {
        memcpy(values, params->gradient, bytes);
        memcpy(fixed, params->fixed_gradient, fixed_bytes);
    }
}

/* Runs this rank's share of the passes of step `step`, and sums the gradients and losses of all ranks. */
static whit_status run_passes_on_ranks(whit_trainer *d, uint64_t step, whit_trainer_report *report, whit_error *error)
{
    const whit_ranks *ranks = d->options.ranks;
    const uint32_t end = whit_rank_begin(ranks, ranks->rank + 1, d->n_passes);
    d->tree.n_nodes = 0;
    for (uint32_t i = whit_rank_begin(ranks, ranks->rank, d->n_passes); i < end; i++) {
        whit_tree_node *node = whit_tree_next(&d->tree);
        if (!node) return whit_fail_memory(error, "gradients", d->tree.n_values * sizeof(float));
        whit_tape_zero_gradients(&d->student_tape);
        run_pass(d, step * d->n_passes + i);
        node->first = i;
        node->n = 1;
        node->losses[0] = d->loss.kl;
        node->losses[1] = d->loss.ce;
        move_gradients(d, node, false);
        whit_tree_add(&d->tree);
    }
    WHIT_TRY(whit_tree_reduce(&d->tree, ranks, error));
    move_gradients(d, &d->tree.nodes[0], true);
    report->kl = d->tree.nodes[0].losses[0] / d->n_passes;
    report->ce = d->tree.nodes[0].losses[1] / d->n_passes;
    return WHIT_OK;
}

/* Returns the share of the run that is done. In a run of limited time, the time that the last measurement will take is
 * subtracted from the limit. */
static double share_of(const whit_trainer *d)
{
    const whit_trainer_options *o = &d->options;
    double seconds = fmax(o->seconds - d->measured_s, 0.1 * o->seconds);
    double share =
        o->n_steps ? (double)d->progress.step / (double)o->n_steps : (double)d->progress.elapsed_ns * 1e-9 / seconds;
    return share < 1 ? share : 1;
}

/* Rounds the student's weights as in a step at `share` of the run: during the ramp only in part. */
static void round_student(whit_trainer *d, double share)
{
    d->student.params.share = d->options.ramp > 0 ? fminf((float)share / d->options.ramp, 1) : 1;
    whit_params_round(&d->student.params, d->pool);
}

/* Limits the factors A of a delta rule's decays to -1/1024 or less, because other formats store log(-A). */
static void keep_decays_negative(whit_trainer *d)
{
    const float most = -1.0f / 1024;
    const whit_params *params = &d->student.params;
    for (uint32_t i = 0; i < d->student.graph.n_nodes; i++) {
        const whit_node *node = &d->student.graph.nodes[i];
        if (node->op != WHIT_OP_DELTA) continue;
        const whit_param *a = &params->items[node->weight];
        float *latent = whit_param_latent(params, a);
        for (size_t k = 0; !a->frozen && k < a->n; k++)
            if (latent[k] > most) latent[k] = most;
    }
}

/* The state that all ranks agree on between steps. */
struct between {
    double share;
    bool stop;
};

/* Sets share and stop: to the values of rank 0 on all ranks, or to the values of this process if there are no ranks. */
static whit_status agree(const whit_trainer *d, struct between *now, whit_error *error)
{
    const whit_ranks *ranks = d->options.ranks;
    *now = (struct between){share_of(d), whit_flag_is_set(d->options.cancel)};
    if (ranks && !ranks->broadcast(ranks->user, now, sizeof *now))
        return whit_fail(error, WHIT_ERROR_IO,
                         "the process of another rank has ended, and its machine's output says why");
    return WHIT_OK;
}

/* Counts a finished operation of the current step and reports the progress. Ranks share the passes; only rank 0
 * reports, and it counts only its own operations. */
static void tell_step(void *user)
{
    whit_trainer *d = user;
    const whit_ranks *ranks = d->options.ranks;
    const uint32_t n_student = d->student_tape.n_steps * (d->options.recompute ? 3 : 2);
    const uint32_t n_passes = ranks ? whit_rank_begin(ranks, ranks->rank + 1, d->n_passes) : d->n_passes;
    const double n_all = (double)n_passes * (n_student + (d->teacher_model ? d->teacher_tape.n_steps : 0));
    /* The backward pass skips operations whose gradients are not needed, so the share is approximate. */
    const double share = ++d->n_operations / n_all;
    d->options.stepping(d->options.user, d->progress.step + 1, share < 1 ? share : 1);
}

/* Turns the reports within a step on or off. They are off during measurements, which report their own progress. */
static void watch_step(whit_trainer *d, bool on)
{
    if (!d->options.stepping || !is_first_rank(d)) return;
    d->n_operations = 0;
    d->student_tape.watch = d->teacher_tape.watch = on ? tell_step : NULL;
    d->student_tape.watch_user = d->teacher_tape.watch_user = d;
}

static whit_status step_trainer(whit_trainer *d, double share, whit_trainer_report *report, whit_error *error)
{
    const whit_trainer_options *o = &d->options;
    whit_params *params = &d->student.params;
    uint64_t number = d->progress.step;
    report->share = share;
    report->rate = whit_adamw_rate(&o->adamw, report->share);
    report->kl = report->ce = 0;
    round_student(d, report->share);
    if (!o->ranks) whit_tape_zero_gradients(&d->student_tape);
    for (uint32_t i = 0; i < d->n_passes && !o->ranks; i++) {
        run_pass(d, number * d->n_passes + i);
        report->kl += d->loss.kl / d->n_passes;
        report->ce += d->loss.ce / d->n_passes;
    }
    if (o->ranks) WHIT_TRY(run_passes_on_ranks(d, number, report, error));
    whit_params_scale_gradients(params, d->pool);
    double norm = whit_adamw_norm(params);
    if (!isfinite(norm) || !isfinite(report->kl) || !isfinite(report->ce))
        return whit_fail(error, WHIT_ERROR_NUMERIC, "step %llu: the loss is NaN or infinite; try a lower learning rate",
                         (unsigned long long)number + 1);
    report->gradient_norm = norm;
    whit_adamw_step(&o->adamw, params, d->pool, number + 1, (float)report->rate, norm);
    keep_decays_negative(d);
    d->progress.step++;
    return WHIT_OK;
}

static void measure_loss(whit_trainer *d, whit_trainer_report *report)
{
    const whit_trainer_options *o = &d->options;
    whit_held_out_result result =
        whit_held_out_measure(&d->student_tape, d->teacher_model ? &d->teacher_tape : NULL, &d->loss, &d->held_out,
                              d->n_windows, d->ids, d->targets, o->progress, o->user);
    report->held_out = result.n_windows > 0; /* otherwise the measurement was cancelled */
    report->held_out_ce = result.ce;
    report->held_out_kl = result.kl;
    report->held_out_ratio = d->teacher_model ? exp(result.ce - result.teacher_ce) : 0;
    report->n_held_out = result.n_windows;
    report->n_held_out_all = whit_held_out_windows(&d->held_out, o->n_tokens, 0);
}

/* Measures between steps without changing the run. The weights are rounded for it, which refits scales starting from
 * the previous scales. So the scales are saved before, in the memory of their gradients, which the next step clears. */
static void measure_between(whit_trainer *d, double share, whit_trainer_report *report)
{
    whit_params *params = &d->student.params;
    float *scales = params->run + params->n_latents, *kept = params->gradient + params->n_latents;
    size_t n_scales = params->n_floats - params->n_latents;
    memcpy(kept, scales, n_scales * sizeof *kept);
    round_student(d, share);
    measure_loss(d, report);
    memcpy(scales, kept, n_scales * sizeof *scales);
}

/* In a run of limited time, estimates the time of a measurement from the time that one batch takes, and chooses the
 * number of windows if the options do not name it. */
static void fit_measuring(whit_trainer *d)
{
    const whit_trainer_options *o = &d->options;
    const uint32_t n_all = whit_held_out_windows(&d->held_out, o->n_tokens, 0);
    whit_trainer_report ignored;
    if (o->n_steps || !d->held_out.n || !is_first_rank(d)) return;
    const uint32_t wanted = d->n_windows;
    d->n_windows = d->n_batch;
    uint64_t begun_ns = whit_now_ns();
    measure_between(d, 1, &ignored);
    double batch_s = fmax((double)(whit_now_ns() - begun_ns) * 1e-9, 1e-9);
    double n = fmax(floor(0.05 * o->seconds / batch_s), 1) * d->n_batch;
    if (wanted)
        d->n_windows = wanted;
    else if (n < n_all)
        d->n_windows = (uint32_t)n;
    else
        d->n_windows = 0;
    d->measured_s = batch_s * ((d->n_windows && d->n_windows < n_all ? d->n_windows : n_all) / d->n_batch + 1);
}

void whit_trainer_finish(whit_trainer *d)
{
    round_student(d, 1);
}

uint64_t whit_trainer_steps(const whit_trainer *d)
{
    return d->progress.step;
}

const whit_sketch *whit_trainer_sketch(const whit_trainer *d)
{
    return &d->student.sketch;
}

static whit_status write_checkpoint(const whit_trainer *d, whit_error *error)
{
    if (!d->options.checkpoint || !is_first_rank(d)) return WHIT_OK;
    return whit_checkpoint_write(d->options.checkpoint, &d->progress, &d->student.params, error);
}

/* Rounds the trained weights. The checkpoint is written before, with the scales before rounding, so that a resumed run
 * ends in the same file. */
static whit_status finish_training(whit_trainer *d, whit_error *error)
{
    WHIT_TRY(write_checkpoint(d, error));
    round_student(d, 1);
    return WHIT_OK;
}

whit_status whit_trainer_run(whit_trainer *d, whit_error *error)
{
    const whit_trainer_options *o = &d->options;
    uint64_t before_ns = d->progress.elapsed_ns, opened_ns = whit_now_ns(), saved_ns = opened_ns,
             first = d->progress.step;
    const uint64_t begin_ns = o->n_steps ? opened_ns : d->begun_ns;
    whit_trainer_report report = {.n_steps = o->n_steps};
    if (!whit_flag_is_set(o->cancel)) fit_measuring(d);
    if (o->measure_before && d->held_out.n && is_first_rank(d) && !first && !whit_flag_is_set(o->cancel)) {
        measure_between(d, 1, &report);
        report.elapsed_ns = whit_now_ns() - begin_ns;
        if (o->report && report.held_out) o->report(o->user, &report);
    }
    opened_ns = whit_now_ns();
    if (!o->n_steps) d->progress.elapsed_ns = before_ns + opened_ns - begin_ns;
    struct between now;
    WHIT_TRY(agree(d, &now, error));
    while (now.share < 1) {
        uint64_t now_ns = whit_now_ns();
        if (now.stop || now_ns - saved_ns > o->checkpoint_every_seconds * 1000000000ull) {
            WHIT_TRY(write_checkpoint(d, error));
            saved_ns = now_ns;
        }
        if (now.stop)
            return whit_fail(error, WHIT_ERROR_CANCELLED, "cancelled after %llu steps",
                             (unsigned long long)d->progress.step);
        watch_step(d, true);
        whit_status status = step_trainer(d, now.share, &report, error);
        watch_step(d, false);
        WHIT_TRY(status);
        report.elapsed_ns = d->progress.elapsed_ns = before_ns + whit_now_ns() - begin_ns;
        report.step = d->progress.step;
        WHIT_TRY(agree(d, &now, error));
        report.share = now.share;
        report.tokens_per_second =
            (double)(d->progress.step - first) * d->n_passes * d->n_rows / ((double)(whit_now_ns() - opened_ns) * 1e-9);
        report.held_out = false;
        bool last = report.share >= 1;
        if (last) WHIT_TRY(finish_training(d, error));
        const bool measures = d->held_out.n && is_first_rank(d);
        if (measures && last)
            measure_loss(d, &report);
        else if (measures && o->held_out_every && report.step % o->held_out_every == 0)
            measure_between(d, report.share, &report);
        if (o->report) o->report(o->user, &report);
    }
    return d->progress.step == first ? finish_training(d, error) : WHIT_OK; /* no step was left to do */
}
