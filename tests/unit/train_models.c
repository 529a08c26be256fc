/* SPDX-License-Identifier: MIT
 * Tests that training and inference agree: logits are equal for the project's own model, for real ones and for
 * finished students; a line of text can be learned by heart; an interrupted run resumes with the same bits;
 * unsuitable models are refused. */
#include "test_folder.h"

#include <math.h>

#include "tiny_model.h"
#include "train/new_model.h"
#include "train/sample.h"
#include "train/trainer_parts.h"
#include "train/tape.h"

#define LINE "the man and the anthem. in the ice, nothing came; the time and the then."

static whit_model *open_tiny(uint32_t n_layers, bool tied)
{
    tiny_model tiny = tiny_model_default();
    tiny.n_layers = n_layers;
    tiny.tied_head = tied;
    tiny.n_embd = 128; /* one block of five-trit codes */
    tiny.n_ff = 160;
    assert_true(tiny_model_write(&tiny, in_folder("tiny.gguf")));
    return open_model("tiny.gguf");
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
}

/* ---- logits --------------------------------------------------------------------------------- */

/* Returns the largest difference between a tape's logits and those of a session with float activations, for the given
 * ids or, if NULL, for made-up ones. */
static double difference(whit_tape *tape, const whit_model *model, const int32_t *given)
{
    whit_error error;
    whit_session *session;
    whit_session_options options = whit_session_options_default();
    uint32_t n = tape->n_rows, n_vocab = whit_model_vocab_size(model);
    options.kv = WHIT_KV_F32;
    options.act = WHIT_ACT_F32;
    options.n_threads = 1;
    options.n_logits = n;
    whit_step_token *tokens = calloc(n, sizeof *tokens);
    int32_t *ids = calloc(n, sizeof *ids);
    for (uint32_t i = 0; i < n; i++) {
        ids[i] = given ? given[i] : (int32_t)((i * 7919u + i * i + 3) % n_vocab);
        tokens[i] = (whit_step_token){.id = ids[i], .want_logits = true};
    }
    assert_ok(whit_session_open(model, &options, &session, &error), error);
    assert_ok(whit_session_step(session, tokens, n, &error), error);
    whit_tape_forward(tape, ids);
    double worst = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < n_vocab; k++)
            worst = fmax(worst,
                         fabs((double)whit_session_logits(session, i)[k] -
                              whit_tape_value(tape, tape->graph->output)[(size_t)i * n_vocab + k]));
    whit_session_close(session);
    free(tokens);
    free(ids);
    return worst;
}

static void check_logits(whit_model *model, const char *name, const int32_t *given, uint32_t n)
{
    whit_error error;
    whit_trainee trainee;
    whit_tape tape;
    whit_tape_options batch = {.n_sequences = 1, .n_tokens = n};
    assert_ok(whit_trainee_open(&trainee, model, NULL, NULL, NULL, &error), error);
    assert_ok(whit_tape_open(&tape, &trainee.graph, &trainee.config, &trainee.params, &batch, NULL, NULL, &error),
              error);
    double worst = difference(&tape, model, given);
    print_message("%s: logits differ by %.2g\n", name, worst);
    assert_true(worst < 1e-4);
    whit_tape_close(&tape);
    whit_trainee_close(&trainee);
    whit_model_close(model);
}

static void logits_of_own_models(void **state)
{
    (void)state;
    check_logits(open_tiny(2, false), "tiny", NULL, 100);
    check_logits(open_tiny(1, true), "tiny, tied", NULL, 100);
}

static void logits_of_stories(void **state)
{
    (void)state;
    check_logits(open_model_at(shared_path("models/stories260K/stories260K.gguf")), "stories260K", NULL, 100);
}

static void logits_of_prose(void **state)
{
    (void)state;
    check_logits(open_model_at(shared_path("models/prose-6M/prose-6M-f16.gguf")), "prose-6M", NULL, 100);
}

/* W1.58A8 rounds activations, so a difference in the last bit can become a whole code; with these ids no activation is
 * between two codes. */
static void logits_of_bitnet(void **state)
{
    (void)state;
    int32_t ids[48];
    FILE *file = fopen(shared_path("models-tiny/bitnet-b158/tokens.txt"), "r");
    assert_non_null(file);
    for (int i = 0; i < 48; i++) assert_int_equal(fscanf(file, "%d", &ids[i]), 1);
    fclose(file);
    check_logits(open_model_at(shared_path("models-tiny/bitnet-b158/bitnet-b158-i2_s.gguf")), "bitnet-b158", ids, 48);
}

/* Models with recurrent layers or experts. */
static void logits_of_hybrids_and_mixtures(void **state)
{
    static const char *const names[] = {"qwen35-hybrid", "lfm2", "qwen3-moe", "lfm2-moe", "qwen35-moe"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char relative[128];
        snprintf(relative, sizeof relative, "models-tiny/%s/hf", names[i]);
        check_logits(open_model_at(shared_path(relative)), names[i], NULL, 100);
    }
}

/* ---- runs ----------------------------------------------------------------------------------- */

struct last {
    whit_trainer_report report;
    bool stop; /* after `stop_after` steps; 0: never */
    uint64_t stop_after;
};

static void remember(void *user, const whit_trainer_report *report)
{
    struct last *last = user;
    last->report = *report;
    if (last->stop_after && report->step == last->stop_after) last->stop = true;
}

static whit_trainer_options small_run(const char *const *text, const char *codec, struct last *last)
{
    whit_trainer_options o = whit_trainer_options_default();
    o.codecs.layers = codec;
    o.text = text;
    o.n_text = 1;
    o.held_out = text ? text[0] : NULL;
    o.n_sequences = 2;
    o.n_tokens = 16;
    o.n_steps = 8;
    o.n_accumulate = 2;
    o.n_threads = 2;
    o.hidden_weight = 0.1f;
    o.adamw.rate = 1e-3f;
    o.report = remember;
    o.user = last;
    o.cancel = &last->stop;
    return o;
}

/* A finished student's file must compute the same logits as the student. */
static void check_written(const whit_trainer *distill, const char *codec)
{
    whit_error error;
    whit_tape tape;
    whit_trainee *student = (whit_trainee *)&distill->student;
    whit_tape_options batch = {1, 40, false, false};
    assert_ok(whit_trainer_write(distill, in_folder("out.ndf"), &error), error);
    whit_model *model = open_model("out.ndf");
    assert_ok(whit_tape_open(&tape, &student->graph, &student->config, &student->params, &batch, NULL, NULL, &error),
              error);
    double worst = difference(&tape, model, NULL);
    print_message("%s: a finished student differs by %.2g\n", codec, worst);
    assert_true(worst < 1e-4);
    assert_true(whit_model_has_tokenizer(model));
    whit_tape_close(&tape);
    whit_model_close(model);
}

static void check_codec(const char *codec, const char *mixed, bool refit)
{
    whit_error error;
    whit_model *teacher = open_tiny(2, true);
    const char *text[] = {in_folder("line.txt")};
    struct last last = {0};
    whit_trainer *distill;
    write_text(text[0], LINE LINE LINE);
    whit_trainer_options o = small_run(text, codec, &last);
    o.refit_scales = refit;
    o.codecs.mixed = &mixed;
    o.codecs.n_mixed = mixed != NULL;
    o.ramp = refit ? 0.5f : 0;
    o.held_out_every = 1;
    assert_ok(whit_trainer_open(teacher, teacher, &o, NULL, &distill, &error), error);
    assert_ok(whit_trainer_run(distill, &error), error);
    assert_true(last.report.held_out && last.report.step == 8 && isfinite(last.report.held_out_kl));
    if (mixed) { /* "down=t" */
        const whit_params *params = &distill->student.params;
        assert_int_equal(params->items[whit_params_find(params, "layers.1.down")].type.codec, WHIT_CODEC_T5);
        assert_int_equal(params->items[whit_params_find(params, "layers.1.up")].type.codec, WHIT_CODEC_B1);
    }
    check_written(distill, codec);
    whit_trainer_close(distill);
    whit_model_close(teacher);
}

static void students_are_written(void **state)
{
    (void)state;
    check_codec("t", NULL, false);
    check_codec("b1", "down=t", true);
    check_codec("q2", NULL, false);
    check_codec("q2-planes", NULL, false);
    check_codec("f32", NULL, false); /* f16 would round once more */
}

static void distilling_follows_the_teacher(void **state)
{
    (void)state;
    whit_error error;
    whit_model *teacher = open_tiny(1, true);
    const char *text[] = {in_folder("line.txt")};
    struct last last = {0};
    whit_trainer *distill;
    write_text(text[0], LINE LINE LINE);
    whit_trainer_options o = small_run(text, "q2", &last);
    o.n_steps = 1;
    assert_ok(whit_trainer_open(teacher, teacher, &o, NULL, &distill, &error), error);
    assert_ok(whit_trainer_run(distill, &error), error);
    double before = last.report.held_out_kl;
    whit_trainer_close(distill);
    o.n_steps = 60;
    assert_ok(whit_trainer_open(teacher, teacher, &o, NULL, &distill, &error), error);
    assert_ok(whit_trainer_run(distill, &error), error);
    print_message("held-out divergence %.4f, after 60 steps %.4f\n", before, last.report.held_out_kl);
    assert_true(last.report.held_out_kl < 0.5 * before);
    whit_trainer_close(distill);
    whit_model_close(teacher);
}

struct stepping {
    uint64_t step;
    double share;
    uint32_t n_told;
};

static void on_step(void *user, uint64_t step, double share)
{
    struct stepping *told = user;
    assert_true(step == told->step ? share >= told->share : step == told->step + 1);
    assert_true(share > 0 && share <= 1);
    *told = (struct stepping){step, share, told->n_told + 1};
}

static bool send_nothing(void *user, uint32_t to, const void *data, size_t n_bytes)
{
    (void)user, (void)to, (void)data, (void)n_bytes;
    return true;
}

/* Models another rank that sends gradients of 0. */
static bool receive_nothing(void *user, uint32_t from, void *data, size_t n_bytes)
{
    (void)user, (void)from;
    memset(data, 0, n_bytes);
    return true;
}

static bool broadcast_nothing(void *user, void *data, size_t n_bytes)
{
    return send_nothing(user, 0, data, n_bytes);
}

/* The operations of a step must be reported, because a step may take minutes; between steps nothing is reported. */
static void steps_tell_how_far_they_are(void **state)
{
    (void)state;
    whit_error error;
    whit_model *teacher = open_tiny(1, true);
    const char *text[] = {in_folder("line.txt")};
    write_text(text[0], LINE LINE LINE);
    const whit_ranks ranks = {
        .n_ranks = 2, .send = send_nothing, .receive = receive_nothing, .broadcast = broadcast_nothing};
    for (int i = 0; i < 3; i++) { /* all in memory, with recomputing, as one of two ranks */
        struct last last = {0};
        struct stepping told = {0};
        whit_trainer *distill;
        whit_trainer_options o = small_run(text, "q2", &last);
        o.n_steps = 2;
        o.n_accumulate = 2;
        o.recompute = i == 1;
        o.ranks = i == 2 ? &ranks : NULL;
        o.report = NULL;
        o.user = &told;
        o.stepping = on_step;
        assert_ok(whit_trainer_open(teacher, teacher, &o, NULL, &distill, &error), error);
        assert_ok(whit_trainer_run(distill, &error), error);
        assert_true(told.step == 2 && told.n_told > 40);
        assert_true(told.share > 0.7);
        whit_trainer_close(distill);
    }
    whit_model_close(teacher);
}

static void a_line_is_learned_by_heart(void **state)
{
    (void)state;
    whit_error error;
    int32_t ids[512];
    size_t n;
    struct last last = {0};
    whit_trainer *distill;
    whit_model *model = open_tiny(1, false);
    const char *text[] = {in_folder("line.txt")};
    write_text(text[0], LINE);
    assert_ok(whit_tokenize(model, LINE, strlen(LINE), false, false, ids, 512, &n, &error), error);
    whit_trainer_options o = small_run(text, "f32", &last);
    o.codecs.embedding = "f32";
    o.held_out = NULL;
    o.n_sequences = o.n_accumulate = 1;
    o.n_tokens = (uint32_t)n - 1; /* the only window is the line */
    o.n_steps = 120;
    o.kl_weight = o.hidden_weight = 0;
    o.ce_weight = 1;
    o.adamw.rate = 5e-3f;
    assert_ok(whit_trainer_open(model, NULL, &o, NULL, &distill, &error), error);
    assert_ok(whit_trainer_run(distill, &error), error);
    print_message("%zu ids by heart: %.5f nats\n", n, last.report.ce);
    assert_true(last.report.ce < 0.01);
    whit_trainer_close(distill);
    whit_model_close(model);
}

/* ---- new models ----------------------------------------------------------------------------- */

static const whit_config new_shape = {.family = "llama",
                                      .n_layers = 2,
                                      .n_embd = 64,
                                      .n_ff = 96,
                                      .n_heads = 4,
                                      .n_kv_heads = 2,
                                      .head_dim = 16,
                                      .rope_dim = 16,
                                      .n_ctx = 128,
                                      .tied_head = true,
                                      .norm_eps = 1e-5,
                                      .rope_theta = 10000};

/* Opens a new model of another shape than `like`, with the same tokenizer; `program` may be NULL. */
static whit_model *open_stated(const whit_model *like, const char *family, const char *program, uint64_t seed)
{
    whit_error error;
    whit_model *model;
    whit_config config = new_shape;
    whit_new_model new_model = {.config = &config, .seed = seed};
    config.program = program;
    snprintf(config.family, sizeof config.family, "%s", family);
    config.n_vocab = whit_model_vocab_size(like);
    config.attn_bias = !strcmp(family, "qwen2");
    config.qk_norm = !strcmp(family, "qwen3");
    config.sub_norm = !strcmp(family, "bitnet");
    config.tied_head = config.attn_bias || config.qk_norm;
    whit_new_model_like(&new_model, like);
    assert_ok(whit_new_model_open(&new_model, NULL, &model, &error), error);
    return model;
}

static whit_model *open_new(const whit_model *like, const char *family, uint64_t seed)
{
    return open_stated(like, family, NULL, seed);
}

static void new_models_are_whole(void **state)
{
    (void)state;
    static const char *const families[] = {"llama", "qwen2", "qwen3", "bitnet"};
    whit_error error;
    whit_model *like = open_tiny(1, true), *model;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        check_logits(open_new(like, families[i], i), families[i], NULL, 100);
    model = open_new(like, "llama", 3);
    whit_model *same = open_new(like, "llama", 3), *other = open_new(like, "llama", 4);
    assert_memory_equal(whit_model_identity(model), whit_model_identity(same), 32);
    assert_memory_not_equal(whit_model_identity(model), whit_model_identity(other), 32);
    assert_true(whit_model_has_tokenizer(model));
    whit_model_close(model);
    whit_model_close(same);
    whit_model_close(other);
    whit_config config = new_shape;
    whit_new_model new_model = {.config = &config};
    config.n_vocab = 10;
    config.n_heads = 3; /* no multiple of the 2 KV heads */
    assert_int_equal(whit_new_model_open(&new_model, NULL, &model, &error), WHIT_ERROR_FORMAT);
    config.n_heads = 4;
    snprintf(config.family, sizeof config.family, "parrot");
    assert_int_equal(whit_new_model_open(&new_model, NULL, &model, &error), WHIT_ERROR_UNSUPPORTED);
    assert_null(model);
    whit_model_close(like);
}

/* A student of another depth and width learns from a teacher. Their hidden states cannot be compared. */
static void a_student_of_another_shape_learns(void **state)
{
    (void)state;
    whit_error error;
    whit_model *teacher = open_tiny(1, true), *start = open_new(teacher, "llama", 1);
    const char *text[] = {in_folder("line.txt")};
    struct last last = {0};
    whit_trainer *trainer;
    write_text(text[0], LINE LINE LINE);
    whit_trainer_options o = small_run(text, "t", &last);
    assert_int_equal(whit_trainer_open(start, teacher, &o, NULL, &trainer, &error), WHIT_ERROR_ARGUMENT);
    o.hidden_weight = 0;
    double kl[2];
    for (int i = 0; i < 2; i++) {
        o.n_steps = i ? 80 : 1;
        assert_ok(whit_trainer_open(start, teacher, &o, NULL, &trainer, &error), error);
        assert_ok(whit_trainer_run(trainer, &error), error);
        kl[i] = last.report.held_out_kl;
        whit_trainer_close(trainer);
    }
    print_message("divergence of another shape %.4f, after 80 steps %.4f\n", kl[0], kl[1]);
    assert_true(kl[1] < 0.7 * kl[0]);
    assert_int_equal(whit_trainer_open(start, NULL, &o, NULL, &trainer, &error),
                     WHIT_ERROR_ARGUMENT); /* without a teacher there is no KL */
    whit_model_close(start);
    whit_model_close(teacher);
}

/* A program of attention only, in which the residual stream has another name. */
static const char other_names[] = "fn layer(l, x) {\n"
                                  "    let h = rms_norm(l, \"in\", x, \"attn_norm\", norm_eps)\n"
                                  "    let q = linear(l, \"queries\", h, \"q\", \"\", n_heads * head_dim)\n"
                                  "    let k = linear(l, \"keys\", h, \"k\", \"\", n_kv_heads * head_dim)\n"
                                  "    let v = linear(l, \"values\", h, \"v\", \"\", n_kv_heads * head_dim)\n"
                                  "    let a = attention(l, \"attended\", q, k, v, head_dim, 0, 0.25)\n"
                                  "    return add(l, \"stream\", x, linear(l, \"out\", a, \"o\", \"\", n_embd))\n"
                                  "}\n"
                                  "let x = embed(\"embedded\", \"embed\", n_vocab)\n"
                                  "for l in 0..n_layers { x = layer(l, x) }\n"
                                  "x = selected(\"selected\", x)\n"
                                  "output(x, linear(-1, \"logits\", x, \"embed\", \"\", n_vocab))\n";

/* In two families the residual streams have different numbers in the graph, but the same names. */
static void hidden_states_of_other_families_are_followed(void **state)
{
    (void)state;
    whit_error error;
    whit_model *like = open_tiny(1, true), *teacher = open_new(like, "llama", 1), *start = open_new(like, "qwen3", 2);
    const char *text[] = {in_folder("line.txt")};
    struct last last = {0};
    whit_trainer *trainer;
    write_text(text[0], LINE LINE LINE);
    whit_trainer_options o = small_run(text, "f32", &last);
    o.codecs.embedding = "f32";
    o.held_out = NULL;
    o.kl_weight = 1e-6f;
    o.hidden_weight = 1;
    o.adamw.rate = 5e-3f;
    double apart[2];
    for (int i = 0; i < 2; i++) { /* training on hidden states only must also lower the divergence of the output */
        o.n_steps = i ? 60 : 1;
        assert_ok(whit_trainer_open(start, teacher, &o, NULL, &trainer, &error), error);
        assert_ok(whit_trainer_run(trainer, &error), error);
        apart[i] = last.report.kl;
        whit_trainer_close(trainer);
    }
    whit_model *stranger = open_stated(like, "llama", other_names, 1);
    assert_int_equal(whit_trainer_open(start, stranger, &o, NULL, &trainer, &error), WHIT_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "'layers.0.ffn_residual'"));
    whit_model_close(stranger);
    print_message("divergence of another family %.5f, after 60 steps %.5f\n", apart[0], apart[1]);
    assert_true(apart[1] < 0.8 * apart[0]);
    whit_model_close(start);
    whit_model_close(teacher);
    whit_model_close(like);
}

/* The hidden states of a model with one layer are compared, as those of deeper models are. */
static void one_layer_has_hidden_states(void **state)
{
    (void)state;
    whit_error error;
    whit_model *teacher = open_tiny(1, true);
    const char *text[] = {in_folder("line.txt")};
    struct last last = {0};
    whit_trainer *runs[3]; /* without hidden states, with them, and with them recomputed */
    write_text(text[0], LINE LINE LINE);
    whit_trainer_options o = small_run(text, "t", &last);
    o.held_out = NULL;
    o.n_steps = 1;
    for (int i = 0; i < 3; i++) {
        o.hidden_weight = i ? 10 : 0;
        o.recompute = i == 2;
        assert_ok(whit_trainer_open(teacher, teacher, &o, NULL, &runs[i], &error), error);
        assert_ok(whit_trainer_run(runs[i], &error), error);
    }
    const whit_params *none = &runs[0]->student.params, *kept = &runs[1]->student.params,
                      *again = &runs[2]->student.params;
    assert_memory_not_equal(none->run, kept->run, none->n_floats * sizeof *none->run);
    assert_memory_equal(again->run, kept->run, kept->n_floats * sizeof *kept->run);
    for (int i = 0; i < 3; i++) whit_trainer_close(runs[i]);
    whit_model_close(teacher);
}

/* Counts the gradients of tensors whose names begin with `prefix` that differ between two runs. */
static size_t count_other_gradients(const whit_trainer *a, const whit_trainer *b, const char *prefix)
{
    const whit_params *params = &a->student.params, *others = &b->student.params;
    size_t n = 0;
    for (uint32_t i = 0; i < params->n; i++) {
        const float *x = whit_param_gradient(params, &params->items[i]);
        const float *y = whit_param_gradient(others, &others->items[i]);
        if (strncmp(params->items[i].name, prefix, strlen(prefix)) != 0) continue;
        for (size_t k = 0; k < params->items[i].n; k++) n += memcmp(&x[k], &y[k], sizeof *x) != 0;
    }
    return n;
}

/* With by_blocks, a layer's gradient depends neither on later layers nor on the next tokens of the text. */
static void layers_are_trained_by_themselves(void **state)
{
    (void)state;
    whit_error error;
    whit_model *teacher = open_tiny(2, true);
    const char *text[] = {in_folder("line.txt")};
    struct last last = {0};
    whit_trainer *runs[2];
    write_text(text[0], LINE LINE LINE);
    whit_trainer_options o = small_run(text, "t", &last);
    o.by_blocks = true;
    o.hidden_weight = 1;
    assert_int_equal(whit_trainer_open(teacher, teacher, &o, NULL, &runs[0], &error), WHIT_ERROR_ARGUMENT);
    o.kl_weight = 0;
    o.n_steps = 1;
    for (int i = 0; i < 2; i++) {
        assert_ok(whit_trainer_open(teacher, teacher, &o, NULL, &runs[i], &error), error);
        const whit_params *params = &runs[i]->student.params;
        const whit_param *later = &params->items[whit_params_find(params, "layers.1.gate")];
        for (size_t k = 0; i && k < later->n; k++) whit_param_latent(params, later)[k] *= -1;
        assert_ok(whit_trainer_run(runs[i], &error), error);
        const whit_param *norm = &params->items[whit_params_find(params, "final_norm")];
        for (size_t k = 0; k < norm->n; k++) assert_true(whit_param_gradient(params, norm)[k] == 0);
    }
    assert_int_equal(count_other_gradients(runs[0], runs[1], "layers.0."), 0);
    assert_int_equal(count_other_gradients(runs[0], runs[1], "embed"), 0);
    assert_true(count_other_gradients(runs[0], runs[1], "layers.1.") > 0);
    for (int i = 0; i < 2; i++) whit_trainer_close(runs[i]);
    double apart[2];
    for (int i = 0; i < 2; i++) { /* training of the layers only must also lower the divergence of the output */
        o.n_steps = i ? 60 : 1;
        assert_ok(whit_trainer_open(teacher, teacher, &o, NULL, &runs[0], &error), error);
        assert_ok(whit_trainer_run(runs[0], &error), error);
        apart[i] = last.report.held_out_kl;
        whit_trainer_close(runs[0]);
    }
    print_message("divergence %.5f, after 60 steps by layers %.5f\n", apart[0], apart[1]);
    assert_true(apart[1] < 0.7 * apart[0]);
    whit_model_close(teacher);
}

/* Text generated by the teacher must be the same for a seed and any number of threads, and consist of whole
 * documents. */
static void teachers_make_text(void **state)
{
    (void)state;
    whit_error error;
    whit_model *model = open_tiny(1, true);
    whit_corpus corpora[3] = {{0}};
    for (uint32_t i = 0; i < 3; i++) {
        whit_sample_options o = {.n_tokens = 500, .n_longest = 24, .seed = i == 2, .n_threads = 1 + i % 2};
        assert_ok(whit_corpus_add_samples(&corpora[i], model, &o, &error), error);
        assert_true(corpora[i].n >= 500 && corpora[i].n < 500 + 16 * 24);
        assert_true(corpora[i].n_starts >= 500 / 24);
        for (size_t k = 0; k < corpora[i].n_starts; k++)
            assert_int_equal(corpora[i].ids[corpora[i].starts[k]], whit_model_bos(model));
    }
    assert_int_equal(corpora[0].n, corpora[1].n);
    assert_memory_equal(corpora[0].ids, corpora[1].ids, corpora[0].n * sizeof *corpora[0].ids);
    assert_memory_not_equal(corpora[0].ids, corpora[2].ids, 400 * sizeof *corpora[0].ids);
    for (int i = 0; i < 3; i++) whit_corpus_free(&corpora[i]);

    struct last last = {0};
    whit_trainer *trainer;
    whit_trainer_options o = small_run(NULL, "t", &last);
    o.n_text = 0;
    o.n_sample_tokens = 300;
    assert_ok(whit_trainer_open(model, model, &o, NULL, &trainer, &error), error);
    assert_ok(whit_trainer_run(trainer, &error), error);
    whit_trainer_close(trainer);
    whit_model_close(model);
}

/* A model whose prompts have no BOS continues pieces of the text. */
static void text_is_continued_without_bos(void **state)
{
    (void)state;
    enum { TEXT = 100, LONGEST = 24, OPENING = 8 };
    whit_error error;
    whit_model *model = open_model_at(shared_path("models/prose-6M/prose-6M-f16.gguf"));
    whit_corpus corpora[2] = {{0}};
    whit_sample_options o = {.n_tokens = 200, .n_longest = LONGEST, .n_threads = 1};
    int32_t text[TEXT];
    for (int32_t i = 0; i < TEXT; i++) text[i] = 300 + i;
    for (int i = 0; i < 2; i++) {
        assert_ok(whit_corpus_add_ids(&corpora[i], model, text, TEXT, &error), error);
        assert_ok(whit_corpus_add_samples(&corpora[i], model, &o, &error), error);
    }
    assert_int_equal(corpora[0].n, corpora[1].n);
    assert_int_equal(corpora[0].n_starts, 0);
    assert_memory_equal(corpora[0].ids, corpora[1].ids, corpora[0].n * sizeof *corpora[0].ids);
    const int32_t *document = corpora[0].ids + TEXT;
    size_t rising = 1;
    while (rising < LONGEST && document[rising] == document[0] + (int32_t)rising) rising++;
    assert_true(document[0] >= 300 && document[0] <= 300 + TEXT - OPENING);
    assert_true(rising >= OPENING && rising < LONGEST);
    for (int i = 0; i < 2; i++) whit_corpus_free(&corpora[i]);
    whit_model_close(model);
}

/* Random text contains every token of the vocabulary; BOS occurs only at the start of a document. */
static void random_text_has_all_words(void **state)
{
    (void)state;
    enum { LONGEST = 25, DOCUMENTS = 200 };
    whit_error error;
    whit_model *model = open_tiny(1, true);
    whit_corpus corpus = {0};
    whit_sample_options o = {.n_tokens = LONGEST * DOCUMENTS, .n_longest = LONGEST, .seed = 3};
    bool seen[TINY_N_VOCAB] = {false};
    size_t n_seen = 0;
    assert_ok(whit_corpus_add_random(&corpus, model, &o, &error), error);
    assert_int_equal(corpus.n, LONGEST * DOCUMENTS);
    assert_int_equal(corpus.n_starts, DOCUMENTS);
    for (size_t i = 0; i < corpus.n; i++) {
        assert_true(corpus.ids[i] >= 0 && corpus.ids[i] < TINY_N_VOCAB);
        assert_int_equal(corpus.ids[i] == whit_model_bos(model), i % LONGEST == 0);
        n_seen += !seen[corpus.ids[i]];
        seen[corpus.ids[i]] = true;
    }
    assert_int_equal(n_seen, TINY_N_VOCAB);
    whit_corpus_free(&corpus);
    whit_model_close(model);
}

/* The text of a file without documents is still drawn when documents are added to it. */
static void text_beside_documents_is_drawn_too(void **state)
{
    (void)state;
    enum { WINDOW = 8, WINDOWS = 1000 };
    whit_error error;
    whit_model *model = open_tiny(1, true);
    const char *path = in_folder("line.txt");
    whit_corpus corpus = {0};
    int32_t documents[200], ids[WINDOW], targets[WINDOW], bos = whit_model_bos(model);
    assert_true(bos >= 0);
    for (int i = 0; i < 200; i++) documents[i] = i % 20 ? bos + 1 : bos;
    write_text(path, LINE LINE LINE LINE LINE LINE LINE LINE);
    assert_ok(whit_corpus_add_file(&corpus, model, path, false, &error), error);
    assert_ok(whit_corpus_add_ids(&corpus, model, documents, 200, &error), error);
    uint32_t n_documents = 0;
    for (uint32_t i = 0; i < WINDOWS; i++) {
        whit_corpus_window(&corpus, 1, i, WINDOW, ids, targets);
        n_documents += ids[0] == bos;
    }
    double expected = WINDOWS * (200.0 - WINDOW) / (double)(corpus.n - WINDOW);
    print_message("%u windows begin with a document, about %.0f expected\n", n_documents, expected);
    assert_true(fabs(n_documents - expected) < 60);
    whit_corpus_free(&corpus);
    whit_model_close(model);
}

/* ---- going on ------------------------------------------------------------------------------- */

static void a_cut_run_goes_on_with_the_same_bits(void **state)
{
    (void)state;
    whit_error error;
    whit_model *teacher = open_tiny(1, true);
    const char *text[] = {in_folder("line.txt")}, *checkpoint = in_folder("run.checkpoint");
    struct last last = {0};
    whit_trainer *whole, *cut;
    write_text(text[0], LINE LINE LINE);
    whit_trainer_options o = small_run(text, "t", &last);
    assert_ok(whit_trainer_open(teacher, teacher, &o, NULL, &whole, &error), error);
    assert_ok(whit_trainer_run(whole, &error), error);

    last.stop_after = 3;
    o.checkpoint = checkpoint;
    assert_ok(whit_trainer_open(teacher, teacher, &o, NULL, &cut, &error), error);
    assert_int_equal(whit_trainer_run(cut, &error), WHIT_ERROR_CANCELLED);
    whit_trainer_close(cut);
    last = (struct last){0};
    o.resume = true;
    o.n_threads = 1; /* the number of threads does not matter */
    assert_ok(whit_trainer_open(teacher, teacher, &o, NULL, &cut, &error), error);
    assert_ok(whit_trainer_run(cut, &error), error);
    const whit_params *a = &whole->student.params, *b = &cut->student.params;
    assert_int_equal(a->n_floats, b->n_floats);
    assert_memory_equal(a->run, b->run, a->n_floats * sizeof *a->run);
    assert_memory_equal(a->moment2, b->moment2, a->n_floats * sizeof *a->run);
    whit_trainer_close(cut);

    o.seed = 1; /* the checkpoint is another run's */
    assert_int_equal(whit_trainer_open(teacher, teacher, &o, NULL, &cut, &error), WHIT_ERROR_ARGUMENT);
    o.seed = 0;
    assert_int_equal(truncate(checkpoint, 5000), 0);
    assert_int_equal(whit_trainer_open(teacher, teacher, &o, NULL, &cut, &error), WHIT_ERROR_FORMAT);
    assert_int_equal(truncate(checkpoint, 3), 0);
    assert_int_equal(whit_trainer_open(teacher, teacher, &o, NULL, &cut, &error), WHIT_ERROR_FORMAT);
    whit_trainer_close(whole);
    whit_model_close(teacher);
}

/* Refitting starts from the previous scales, so neither a measurement nor a resumed run may refit once more. */
static void refitted_scales_do_not_depend_on_measuring(void **state)
{
    (void)state;
    whit_error error;
    whit_model *teacher = open_tiny(1, true);
    const char *text[] = {in_folder("line.txt")};
    struct last last = {0};
    whit_trainer *runs[3]; /* measured at the end, measured at every step, resumed at the end */
    write_text(text[0], LINE LINE LINE);
    whit_trainer_options o = small_run(text, "t", &last);
    o.refit_scales = true;
    o.checkpoint = in_folder("run.checkpoint");
    for (uint32_t i = 0; i < 3; i++) {
        o.held_out_every = i == 1;
        o.resume = i == 2;
        assert_ok(whit_trainer_open(teacher, teacher, &o, NULL, &runs[i], &error), error);
        assert_ok(whit_trainer_run(runs[i], &error), error);
        const whit_params *a = &runs[0]->student.params, *b = &runs[i]->student.params;
        assert_memory_equal(a->run, b->run, a->n_floats * sizeof *a->run);
        assert_memory_equal(a->rounded, b->rounded, a->n_rounded * sizeof *a->rounded);
    }
    for (uint32_t i = 0; i < 3; i++) whit_trainer_close(runs[i]);
    whit_model_close(teacher);
}

/* Units depend on the number and length of a step's sequences, never on ranks; a change of them would change the bytes
 * of runs. */
static void units_of_ranks_follow_the_step(void **state)
{
    (void)state;
    static const uint32_t cases[][3] = {{1, 64, 1},    {4, 64, 1},     {7, 64, 1},   {8, 64, 2},    {10, 16, 2},
                                        {12, 64, 2},   {16, 64, 4},    {32, 64, 8},  {64, 64, 16},  {128, 64, 16},
                                        {8, 256, 2},   {16, 256, 4},   {64, 256, 4}, {24, 256, 4},  {64, 1024, 1},
                                        {64, 1023, 2}, {64, 65536, 1}, {18, 256, 2}, {4096, 2, 512}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const uint32_t unit = whit_tree_unit(cases[i][0], cases[i][1]);
        if (unit != cases[i][2])
            fail_msg("%u sequences of %u tokens: units of %u, not %u", cases[i][0], cases[i][1], unit, cases[i][2]);
    }
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    whit_error error;
    whit_model *teacher = open_tiny(1, true);
    const char *text[] = {in_folder("short.txt")};
    struct last last = {0};
    whit_trainer *distill;
    write_text(text[0], "the");
    whit_trainer_options o = small_run(text, "t", &last);
    o.held_out = NULL;
    assert_int_equal(whit_trainer_open(teacher, teacher, &o, NULL, &distill, &error), WHIT_ERROR_ARGUMENT);
    assert_null(distill);
    write_text(text[0], LINE);
    o.seconds = 1; /* steps and seconds together */
    assert_int_equal(whit_trainer_open(teacher, teacher, &o, NULL, &distill, &error), WHIT_ERROR_ARGUMENT);
    o.seconds = 0;
    o.n_tokens = 100000;
    assert_int_equal(whit_trainer_open(teacher, teacher, &o, NULL, &distill, &error), WHIT_ERROR_ARGUMENT);
    o.held_out = text[0];
    o.n_tokens = 2; /* a window of two tokens leaves nothing to measure */
    assert_int_equal(whit_trainer_open(teacher, teacher, &o, NULL, &distill, &error), WHIT_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "three tokens"));
    o.held_out = NULL;
    o.n_tokens = 16;
    o.n_sequences = o.n_accumulate = 1 << 16; /* the product exceeds 32 bits */
    assert_int_equal(whit_trainer_open(teacher, teacher, &o, NULL, &distill, &error), WHIT_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "65536 batches of 65536"));
    o.n_sequences = o.n_accumulate = 2;
    const char *const unknown[] = {"down=x3", "middle=t", "down", "=t", "norm=t"};
    o.codecs.n_mixed = 1;
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        o.codecs.mixed = &unknown[i];
        assert_int_equal(whit_trainer_open(teacher, teacher, &o, NULL, &distill, &error), WHIT_ERROR_ARGUMENT);
    }
    o.codecs.n_mixed = 0;
    o.codecs.layers = "x3";
    assert_int_equal(whit_trainer_open(teacher, teacher, &o, NULL, &distill, &error), WHIT_ERROR_ARGUMENT);
    o.codecs.layers = "t";
    o.adamw.rate = 1e30f; /* the weights become NaN */
    o.adamw.clip = 0;
    assert_ok(whit_trainer_open(teacher, teacher, &o, NULL, &distill, &error), error);
    assert_int_equal(whit_trainer_run(distill, &error), WHIT_ERROR_NUMERIC);
    whit_trainer_close(distill);
    whit_model_close(teacher);
}

/* Removes the known files of the test; fails if there are any other files. */
static int remove_known_files(void **state)
{
    (void)state;
    static const char *const names[] = {"tiny.gguf", "line.txt", "short.txt", "out.ndf", "run.checkpoint"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) unlink(in_folder(names[i]));
    return rmdir(test_folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logits_of_own_models),
        cmocka_unit_test(logits_of_stories),
        cmocka_unit_test(logits_of_prose),
        cmocka_unit_test(logits_of_bitnet),
        cmocka_unit_test(logits_of_hybrids_and_mixtures),
        cmocka_unit_test(students_are_written),
        cmocka_unit_test(distilling_follows_the_teacher),
        cmocka_unit_test(steps_tell_how_far_they_are),
        cmocka_unit_test(a_line_is_learned_by_heart),
        cmocka_unit_test(new_models_are_whole),
        cmocka_unit_test(a_student_of_another_shape_learns),
        cmocka_unit_test(hidden_states_of_other_families_are_followed),
        cmocka_unit_test(one_layer_has_hidden_states),
        cmocka_unit_test(layers_are_trained_by_themselves),
        cmocka_unit_test(teachers_make_text),
        cmocka_unit_test(text_is_continued_without_bos),
        cmocka_unit_test(random_text_has_all_words),
        cmocka_unit_test(text_beside_documents_is_drawn_too),
        cmocka_unit_test(a_cut_run_goes_on_with_the_same_bits),
        cmocka_unit_test(refitted_scales_do_not_depend_on_measuring),
        cmocka_unit_test(units_of_ranks_follow_the_step),
        cmocka_unit_test(nonsense_is_refused),
    };
    return cmocka_run_group_tests_name("models in training", tests, make_folder, remove_known_files);
}
