/* SPDX-License-Identifier: MIT
 * Tests tuning: gradients of the factors, what is learned, what is written, and what remains unchanged. */
#include "test_folder.h"

#include <math.h>

#include "base/file.h"
#include "runtime/adapter.h"
#include "tiny_model.h"
#include "train/loss.h"
#include "train/tape.h"
#include "train/trainer_parts.h"

#define LINE "the man and the anthem. in the ice, nothing came; the time and the then."

static bool is_coded_in_layers(const whit_param *param)
{
    return param->coded && strncmp(param->name, "layers.", 7) == 0;
}

/* Gives the matrices of layers one scale each; other tensors keep their types. */
static void give_one_scale_each(whit_trainee *trainee)
{
    whit_error error;
    whit_params grouped = trainee->params, *params = &trainee->params;
    whit_params_begin(params, NULL);
    for (uint32_t i = 0; i < grouped.n; i++) {
        const whit_param *param = &grouped.items[i];
        whit_tensor_type type = param->type;
        if (is_coded_in_layers(param)) {
            type.scale_kind = WHIT_SCALE_TENSOR;
            type.scale_type = WHIT_SCALE_F32;
            type.group = 0;
        }
        assert_ok(whit_params_add(params, param->name, &type, param->coded, &error), error);
    }
    whit_params_free(&grouped);
    assert_ok(whit_params_allocate(params, true, &error), error);
    assert_ok(whit_params_load(params, trainee->model->file, NULL, &error), error);
}

/* Makes a low-bit model: the tiny one with rounded matrices, with scales by groups or one each; with `token`, its
 * inputs are rounded, too (W1.58A8). */
static void make_model(const char *name, const char *codec, bool one_scale, bool token)
{
    whit_error error;
    whit_trainee trainee;
    tiny_model tiny = tiny_model_default();
    tiny.n_embd = 128;
    tiny.n_ff = 160;
    assert_true(tiny_model_write(&tiny, in_folder("tiny.gguf")));
    whit_model *model = open_model("tiny.gguf");
    assert_ok(whit_trainee_open(&trainee, model, &(whit_trainee_codecs){.layers = codec, .embedding = "i8"}, NULL, NULL,
                                &error),
              error);
    if (one_scale) give_one_scale_each(&trainee);
    whit_params_fit(&trainee.params, NULL, NULL);
    whit_params_round(&trainee.params, NULL);
    for (uint32_t i = 0; token && i < trainee.params.n; i++)
        if (is_coded_in_layers(&trainee.params.items[i])) trainee.params.items[i].type.act = WHIT_TENSOR_ACT_TOKEN;
    assert_ok(whit_trainee_write(&trainee, NULL, in_folder(name), &error), error);
    whit_trainee_close(&trainee);
    whit_model_close(model);
}

/* ---- gradients ------------------------------------------------------------------------------ */

enum { N_SEQUENCES = 2, N_TOKENS = 12, N_ROWS = N_SEQUENCES * N_TOKENS };

struct batch {
    whit_tape tape;
    whit_loss loss;
    int32_t ids[N_ROWS], targets[N_ROWS];
};

static double loss_of(struct batch *b)
{
    whit_ref output = b->tape.graph->output;
    whit_tape_forward(&b->tape, b->ids);
    whit_loss_run(&b->loss, NULL, whit_tape_gradient(&b->tape, output), NULL, b->targets,
                  b->tape.graph->values[output - 1].width, 1);
    return b->loss.ce;
}

/* Compares the slope of the loss along one parameter's gradient with the gradient's length. The step is taken at the
 * rounded values, because the gradient ignores rounding. */
static void check_direction(struct batch *b, const whit_param *param)
{
    const float *gradient = whit_param_gradient(b->tape.params, param);
    double squares = 0;
    float size = 0.01f;
    for (size_t i = 0; i < param->n; i++) squares += (double)gradient[i] * (double)gradient[i];
    for (size_t i = 0; i < param->n; i++) size = fmaxf(size, fabsf(param->value[i]));
    assert_true(squares > 1e-12);
    double step = 0.02 * (double)size, factor = step / sqrt(squares), loss[2];
    float *kept = malloc(param->n * sizeof *kept);
    memcpy(kept, param->value, param->n * sizeof *kept);
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < param->n; i++)
            param->value[i] = (float)((double)kept[i] + (side ? factor : -factor) * (double)gradient[i]);
        loss[side] = loss_of(b);
    }
    memcpy(param->value, kept, param->n * sizeof *kept);
    free(kept);
    double found = (loss[1] - loss[0]) / (2 * step), expected = sqrt(squares);
    if (!(fabs(found - expected) <= 5e-3 * expected + 2e-5))
        fail_msg("%s: %g along the gradient, whose length is %g", param->name, found, expected);
}

static void gradients_of_factors_norms_and_scales(void **state)
{
    (void)state;
    whit_error error;
    whit_trainee trainee;
    whit_model *model = open_model("t.ndf");
    whit_tuning tuning = {.rank = 5, .norms = true, .scales = true, .seed = 1};
    assert_ok(whit_tuning_open(&trainee, model, &tuning, NULL, NULL, &error), error);
    whit_params *params = &trainee.params;
    whit_rng rng = {3};
    for (uint32_t i = 0; i < params->n; i++) /* factors B must not be zero, so that A has a gradient */
        for (size_t k = 0; params->items[i].is_new && k < params->items[i].n; k++)
            whit_param_latent(params, &params->items[i])[k] = (float)(whit_rng_uniform(&rng) - 0.5) * 0.2f;
    whit_params_fit(params, NULL, NULL);
    whit_params_round(params, NULL);
    params->learn_scales = true;
    struct batch b;
    whit_tape_options options = {.n_sequences = N_SEQUENCES, .n_tokens = N_TOKENS, .gradients = true};
    assert_ok(whit_tape_open(&b.tape, &trainee.graph, &trainee.config, params, &options, NULL, NULL, &error), error);
    assert_ok(whit_loss_open(&b.loss, N_ROWS, 1, 0, NULL, &error), error);
    for (int i = 0; i < N_ROWS; i++) {
        b.ids[i] = (i * 37 + 5) % TINY_N_VOCAB;
        b.targets[i] = (i * 53 + 11) % TINY_N_VOCAB;
    }
    whit_tape_zero_gradients(&b.tape);
    (void)loss_of(&b);
    whit_tape_backward(&b.tape, NULL, NULL);
    uint32_t n_checked = 0;
    for (uint32_t i = 0; i < params->n; i++) {
        const whit_param *param = &params->items[i];
        if (!whit_param_gradient(params, param) || strcmp(param->name, "final_norm") == 0) continue;
        check_direction(&b, param);
        n_checked++;
    }
    assert_int_equal(n_checked, 14 * 2 + 14 + 4); /* factors, matrices with scales, norms */
    whit_loss_close(&b.loss);
    whit_tape_close(&b.tape);
    whit_trainee_close(&trainee);
    whit_model_close(model);
}

/* ---- runs ----------------------------------------------------------------------------------- */

struct last {
    whit_trainer_report report;
    double first_ce;
    bool stop;
    uint64_t stop_after;
};

static void remember(void *user, const whit_trainer_report *report)
{
    struct last *last = user;
    if (report->step == 1) last->first_ce = report->ce;
    last->report = *report;
    if (last->stop_after && report->step == last->stop_after) last->stop = true;
}

static whit_trainer_options small_run(const char *const *text, const whit_tuning *tuning, struct last *last)
{
    whit_trainer_options o = whit_trainer_options_default();
    o.tuning = tuning;
    o.text = text;
    o.n_text = 1;
    o.n_sequences = 2;
    o.n_tokens = 16;
    o.n_steps = 60;
    o.n_threads = 2;
    o.kl_weight = 0;
    o.ce_weight = 1;
    o.precision = WHIT_PRECISION_F32;
    o.adamw.rate = 3e-3f;
    o.report = remember;
    o.user = last;
    o.cancel = &last->stop;
    return o;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static bool rounds_by_token(const whit_model *model)
{
    for (uint32_t i = 0; i < model->weights.n_tensors; i++)
        if (model->weights.tensors[i].type.act == WHIT_TENSOR_ACT_TOKEN) return true;
    return false;
}

/* Returns the largest difference between a student's logits and those of a session. If activations are rounded for each
 * token, the order of sums (the BLAS in use) decides about an activation between two codes, and later logits may differ
 * by a tenth. Therefore every token is a sequence of its own, and the worst quarter is not counted. */
static double difference(const whit_trainer *trainer, const whit_model *model, const whit_mount *mount)
{
    enum { N = 40 };
    const bool token = rounds_by_token(model);
    whit_error error;
    whit_tape tape;
    whit_session *session;
    whit_step_token tokens[N];
    int32_t ids[N];
    whit_trainee *student = (whit_trainee *)&trainer->student;
    whit_tape_options batch = {.n_sequences = token ? N : 1, .n_tokens = token ? 1 : N};
    whit_session_options options = whit_session_options_default();
    options.kv = WHIT_KV_F32;
    options.act = WHIT_ACT_F32;
    options.n_threads = 1;
    options.n_logits = N;
    options.n_sequences = batch.n_sequences;
    options.n_ctx_tokens = 64;
    for (int i = 0; i < N; i++) {
        ids[i] = (i * 31 + i * i + 3) % TINY_N_VOCAB;
        tokens[i] = (whit_step_token){.sequence = token ? (uint32_t)i : 0, .id = ids[i], .want_logits = true};
    }
    assert_ok(whit_tape_open(&tape, &student->graph, &student->config, &student->params, &batch, NULL, NULL, &error),
              error);
    assert_ok(whit_session_open(model, &options, &session, &error), error);
    for (uint32_t q = 0; q < batch.n_sequences; q++)
        assert_ok(whit_session_mount(session, q, mount, mount->adapter != NULL, &error), error);
    assert_ok(whit_session_step(session, tokens, N, &error), error);
    whit_tape_forward(&tape, ids);
    double worst[N] = {0};
    for (int i = 0; i < N; i++)
        for (int k = 0; k < TINY_N_VOCAB; k++)
            worst[i] = fmax(worst[i],
                            fabs((double)whit_session_logits(session, (size_t)i)[k] -
                                 (double)whit_tape_value(&tape, tape.graph->output)[i * TINY_N_VOCAB + k]));
    whit_session_close(session);
    whit_tape_close(&tape);
    qsort(worst, N, sizeof *worst, by_size);
    return worst[token ? N * 3 / 4 : N - 1];
}

static void an_adapter_is_learned(void **state)
{
    (void)state;
    static const char *const codecs[] = {"t.ndf", "b1.ndf", "q2.ndf", "token.ndf"};
    static const char *const two[] = {"q", "down"};
    whit_error error;
    for (int i = 0; i < 4; i++) {
        whit_trainer *trainer;
        const char *text[] = {in_folder("line.txt")};
        struct last last = {0};
        whit_tuning tuning = {.rank = 6};
        if (i == 1) tuning.matrices = two, tuning.n_matrices = 2;
        whit_trainer_options o = small_run(text, &tuning, &last);
        whit_model *model = open_model(codecs[i]);
        assert_ok(whit_trainer_open(model, NULL, &o, NULL, &trainer, &error), error);
        assert_ok(whit_trainer_run(trainer, &error), error);
        print_message("%s: %.3f nats, after 60 steps %.3f\n", codecs[i], last.first_ce, last.report.ce);
        assert_true(last.report.ce < (i == 1 ? 0.8 : 0.5) * last.first_ce);
        assert_ok(whit_trainer_write(trainer, in_folder("adapter.ndf"), &error), error);
        whit_adapter *adapter;
        assert_ok(whit_adapter_open(model, in_folder("adapter.ndf"), &adapter, &error), error);
        assert_int_equal(adapter->view.n_pairs, i == 1 ? 4 : 14);
        assert_true(difference(trainer, model, &(whit_mount){adapter, 1}) < 2e-4);
        whit_adapter_close(adapter);
        whit_trainer_close(trainer);
        whit_model_close(model);
    }
}

/* Tunes norms and scales: the result is a new model with the same codes, whose file contains the adapter. */
static void a_model_is_tuned(void **state)
{
    (void)state;
    static const char *const codecs[] = {"t.ndf",     "b1.ndf",     "q2.ndf",    "planes.ndf",
                                         "one-t.ndf", "one-b1.ndf", "one-q2.ndf"};
    whit_error error;
    for (int i = 0; i < 7; i++) {
        whit_trainer *trainer;
        const char *text[] = {in_folder("line.txt")};
        struct last last = {0};
        whit_tuning tuning = {.rank = i == 1 ? 0 : 4, .norms = true, .scales = true};
        whit_trainer_options o = small_run(text, &tuning, &last);
        whit_model *model = open_model(codecs[i]), *tuned;
        /* the model is its own teacher */
        assert_ok(whit_trainer_open(model, model, &o, NULL, &trainer, &error), error);
        assert_ok(whit_trainer_run(trainer, &error), error);
        print_message("%s: %.3f nats, after 60 steps %.3f\n", codecs[i], last.first_ce, last.report.ce);
        assert_true(last.report.ce < 0.9 * last.first_ce);
        assert_ok(whit_trainer_write(trainer, in_folder("tuned.ndf"), &error), error);
        tuned = open_model("tuned.ndf");
        assert_true(memcmp(whit_model_identity(tuned), whit_model_identity(model), 32) != 0);
        whit_adapter *adapter = NULL;
        if (tuning.rank) assert_ok(whit_adapter_open(tuned, WHIT_TUNED_NAME, &adapter, &error), error);
        assert_true(difference(trainer, tuned, &(whit_mount){adapter, 1}) < 2e-4);
        for (uint32_t k = 0; k < model->weights.n_tensors; k++) {
            const char *name = whit_ndf_tensor_name(model->file, k);
            const whit_tensor *before = &model->weights.tensors[k], *after = &tuned->weights.tensors[k];
            bool learned = strncmp(name, "layers.", 7) == 0 || strstr(name, "norm");
            whit_tensor_type type = after->type;
            if (type.scale_kind == WHIT_SCALE_TENSOR) {
                assert_true(type.scale != before->type.scale);
                type.scale = before->type.scale;
                type.scale_b = before->type.scale_b;
            }
            assert_memory_equal(&before->type, &type, sizeof type);
            bool same = memcmp(whit_ndf_tensor_digest(model->file, k), whit_ndf_tensor_digest(tuned->file, k), 32) == 0;
            assert_int_equal(same, !learned);
        }
        whit_adapter_close(adapter);
        whit_trainer_close(trainer);
        whit_model_close(tuned);
        whit_model_close(model);
    }
}

static void check_cut_run(const char *name, bool scales)
{
    whit_error error;
    whit_model *model = open_model(name);
    const char *text[] = {in_folder("line.txt")};
    struct last last = {0};
    whit_trainer *trainer;
    whit_tuning tuning = {.rank = 4, .scales = scales};
    whit_trainer_options o = small_run(text, &tuning, &last);
    whit_buf files[2] = {{0}, {0}};
    o.n_steps = 7;
    assert_ok(whit_trainer_open(model, NULL, &o, NULL, &trainer, &error), error);
    assert_ok(whit_trainer_run(trainer, &error), error);
    assert_ok(whit_trainer_write(trainer, in_folder("adapter.ndf"), &error), error);
    assert_ok(whit_read_file(in_folder("adapter.ndf"), 1 << 24, &files[0], &error), error);
    whit_trainer_close(trainer);

    last.stop_after = 3;
    o.checkpoint = in_folder("run.checkpoint");
    assert_ok(whit_trainer_open(model, NULL, &o, NULL, &trainer, &error), error);
    assert_int_equal(whit_trainer_run(trainer, &error), WHIT_ERROR_CANCELLED);
    whit_trainer_close(trainer);
    last = (struct last){0};
    o.resume = true;
    o.n_threads = 1;
    assert_ok(whit_trainer_open(model, NULL, &o, NULL, &trainer, &error), error);
    assert_ok(whit_trainer_run(trainer, &error), error);
    assert_ok(whit_trainer_write(trainer, in_folder("adapter.ndf"), &error), error);
    assert_ok(whit_read_file(in_folder("adapter.ndf"), 1 << 24, &files[1], &error), error);
    whit_trainer_close(trainer);
    assert_int_equal(files[0].size_bytes, files[1].size_bytes);
    assert_memory_equal(files[0].data, files[1].data, files[0].size_bytes);
    tuning.rank = 5; /* the checkpoint is another run's */
    assert_int_equal(whit_trainer_open(model, NULL, &o, NULL, &trainer, &error), WHIT_ERROR_ARGUMENT);
    whit_buf_free(&files[0]), whit_buf_free(&files[1]);
    whit_model_close(model);
}

static void a_cut_run_goes_on_with_the_same_bits(void **state)
{
    (void)state;
    check_cut_run("t.ndf", false);
    check_cut_run("one-t.ndf", true);
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"embed"};
    static const whit_tuning cases[] = {{.rank = 0}, {.rank = 2000}, {.rank = 4, .matrices = wrong, .n_matrices = 1}};
    whit_error error;
    whit_trainee trainee;
    whit_model *model = open_model("t.ndf");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(whit_tuning_open(&trainee, model, &cases[i], NULL, NULL, &error), WHIT_ERROR_ARGUMENT);
    whit_model_close(model);
    model = open_model("tiny.gguf"); /* float matrices have no scales */
    assert_int_equal(whit_tuning_open(&trainee, model, &(whit_tuning){.scales = true}, NULL, NULL, &error),
                     WHIT_ERROR_UNSUPPORTED);
    whit_model_close(model);
}

struct heard {
    uint32_t n_read, n_fitted, last; /* last: the call that returns false; 0: none */
};

static bool hear_share(void *user, const char *what, double share)
{
    struct heard *heard = user;
    assert_true(share > 0 && share <= 1);
    heard->n_read += !strcmp(what, "reading the weights");
    heard->n_fitted += !strcmp(what, "fitting scales");
    return heard->n_read + heard->n_fitted != heard->last;
}

/* Opening must report every tensor that is read and fitted, and stop when the answer is false. */
static void opening_is_told_of(void **state)
{
    (void)state;
    whit_error error;
    whit_trainee trainee;
    struct heard heard = {0};
    const whit_watcher watcher = {hear_share, &heard};
    const whit_tuning tuning = {.norms = true, .scales = true};
    whit_model *model = open_model("t.ndf");
    assert_ok(whit_tuning_open(&trainee, model, &tuning, &watcher, NULL, &error), error);
    assert_int_equal(heard.n_read, model->weights.n_tensors);
    assert_int_equal(heard.n_fitted, trainee.params.n);
    whit_trainee_close(&trainee);
    const uint32_t ends[] = {1, heard.n_read + 1};
    for (size_t i = 0; i < 2; i++) {
        heard = (struct heard){.last = ends[i]};
        assert_int_equal(whit_tuning_open(&trainee, model, &tuning, &watcher, NULL, &error), WHIT_ERROR_CANCELLED);
        assert_int_equal(heard.n_read + heard.n_fitted, ends[i]);
    }
    whit_model_close(model);
}

static int make_files(void **state)
{
    whit_error error;
    if (make_folder(state)) return -1;
    make_model("t.ndf", "t", false, false);
    make_model("b1.ndf", "b1", false, false);
    make_model("q2.ndf", "q2", false, false);
    make_model("planes.ndf", "q2-planes", false, false);
    make_model("token.ndf", "t", false, true);
    make_model("one-t.ndf", "t", true, true); /* one scale per matrix and rounded inputs, as in BitNet */
    make_model("one-b1.ndf", "b1", true, false);
    make_model("one-q2.ndf", "q2-planes", true, false);
    return whit_write_file(in_folder("line.txt"), LINE LINE LINE, strlen(LINE LINE LINE), &error) == WHIT_OK ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_of_factors_norms_and_scales),
        cmocka_unit_test(an_adapter_is_learned),
        cmocka_unit_test(a_model_is_tuned),
        cmocka_unit_test(a_cut_run_goes_on_with_the_same_bits),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(opening_is_told_of),
    };
    return cmocka_run_group_tests_name("tuning", tests, make_files, remove_folder);
}
