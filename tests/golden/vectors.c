/* SPDX-License-Identifier: MIT
 * Compares vectors and scores of the tiny embedding and rerank models with their goldens, from the folder and from
 * the GGUF file; all texts at once and one at a time must give the same bits. */
#include "test_folder.h"

#include "golden_logits.h"

#include <jansson.h>

#include "model/families.h"
#include "runtime/model.h"

enum { TEXTS_MAX = 16, IDS_MAX = 4096 };

struct texts {
    int32_t ids[IDS_MAX];
    whit_embed_text of[TEXTS_MAX];
    size_t n;
};

/* Reads texts as token ids, one text per line. */
static void read_texts(const char *folder, const char *name, struct texts *texts)
{
    char path[4096], line[8192];
    size_t n = 0;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    texts->n = 0;
    while (fgets(line, sizeof line, file)) {
        assert_true(texts->n < TEXTS_MAX);
        whit_embed_text *text = &texts->of[texts->n++];
        *text = (whit_embed_text){.ids = texts->ids + n};
        char *at = line, *end;
        for (long id = strtol(at, &end, 10); end != at; id = strtol(at, &end, 10)) {
            assert_true(n < IDS_MAX);
            texts->ids[n++] = (int32_t)id;
            text->n_ids++;
            at = end;
        }
    }
    fclose(file);
}

struct way {
    uint32_t n_sequences, n_batch, n_threads;
    bool one_by_one;
};

/* Computes vectors, or scores if is_scored, in f32 throughout. */
static void run_texts(const whit_model *model, const struct texts *texts, const struct way *way, bool is_scored,
                      int32_t yes, int32_t no, float *values)
{
    whit_error error;
    whit_session *session;
    whit_session_options options = whit_session_options_default();
    size_t width = is_scored ? 1 : whit_model_embedding_size(model);
    options.kv = WHIT_KV_F32;
    options.act = WHIT_ACT_F32;
    options.n_ctx_tokens = 64;
    for (size_t i = 0; i < texts->n; i++)
        if (texts->of[i].n_ids > options.n_ctx_tokens) options.n_ctx_tokens = (uint32_t)texts->of[i].n_ids;
    options.n_sequences = way->n_sequences;
    options.n_batch_tokens = way->n_batch;
    options.n_threads = way->n_threads;
    options.only_vectors = !is_scored || yes < 0;
    assert_ok(whit_session_open(model, &options, &session, &error), error);
    whit_rerank_options rerank = whit_rerank_options_default();
    rerank.yes = yes;
    rerank.no = no;
    size_t step = way->one_by_one ? 1 : texts->n;
    for (size_t i = 0; i < texts->n; i += step)
        if (is_scored)
            assert_ok(whit_rerank(session, texts->of + i, step, &rerank, values + i, &error), error);
        else
            assert_ok(whit_embed_texts(session, texts->of + i, step, NULL, values + i * width, &error), error);
    whit_session_close(session);
}

static double cosine_of(const float *a, const float *b, size_t n)
{
    double ab = 0, aa = 0, bb = 0;
    for (size_t i = 0; i < n; i++) {
        ab += (double)a[i] * (double)b[i];
        aa += (double)a[i] * (double)a[i];
        bb += (double)b[i] * (double)b[i];
    }
    return ab / sqrt(aa * bb);
}

/* Reads the two ids from "... of ids 317 (yes) and 95 (no), ..."; sets them to -1 if the text does not contain them. */
static void read_judges(const char *text, int32_t *yes, int32_t *no)
{
    const char *at = text ? strstr(text, "ids ") : NULL;
    *yes = *no = -1;
    if (at) assert_int_equal(sscanf(at, "ids %d (yes) and %d (no)", yes, no), 2);
}

static void check_file(const char *folder, const char *file, const json_t *golden)
{
    static const struct way ways[] = {
        {8, 512, 2, false}, {1, 512, 1, true}, {3, 64, 2, false}, {2, 7, 1, false}, {1, 512, 2, false}};
    static struct texts texts;
    const char *vectors = json_string_value(json_object_get(golden, "vectors_file")),
               *scores = json_string_value(json_object_get(golden, "scores_file"));
    const json_t *shape = json_object_get(golden, "shape"),
                 *tolerance = json_object_get(json_object_get(golden, "tolerance"), "float32 activations");
    const double max_abs = json_number_value(json_object_get(tolerance, "max_abs"));
    const size_t width = (size_t)json_integer_value(json_array_get(shape, 1));
    int32_t yes, no;
    char path[4096];
    whit_error error;
    whit_model *model;
    assert_true(max_abs > 0);
    snprintf(path, sizeof path, "%s/%s", folder, file);
    whit_model_options options = {.struct_bytes = sizeof options, .no_cache = true};
    assert_ok(whit_model_open(path, &options, &model, &error), error);
    read_judges(json_string_value(json_object_get(golden, "score_is")), &yes, &no);
    if (whit_model_n_labels(model)) yes = no = -1;
    read_texts(folder, "tokens.txt", &texts);
    assert_int_equal(texts.n, json_integer_value(json_array_get(shape, 0)));
    if (!scores) assert_int_equal(whit_model_embedding_size(model), width);
    float *expected = read_floats(folder, scores ? scores : vectors, texts.n * width);
    float *values = calloc(texts.n * width, sizeof *values), *again = calloc(texts.n * width, sizeof *again);
    assert_true(values && again);
    run_texts(model, &texts, &ways[0], scores != NULL, yes, no, values);
    double worst = 0, least = 1;
    for (size_t i = 0; i < texts.n * width; i++) worst = fmax(worst, fabs((double)values[i] - (double)expected[i]));
    for (size_t i = 0; !scores && i < texts.n; i++)
        least = fmin(least, cosine_of(values + i * width, expected + i * width, width));
    print_message("%s: worst %.3g of %.3g, least cosine %.9f\n", path + strlen(WHIT_SHARED_DIR), worst, max_abs, least);
    assert_true(worst <= max_abs);
    assert_true(least >= 0.99999);
    for (size_t w = 1; w < sizeof ways / sizeof *ways; w++) {
        memset(again, 0, texts.n * width * sizeof *again);
        run_texts(model, &texts, &ways[w], scores != NULL, yes, no, again);
        assert_memory_equal(again, values, texts.n * width * sizeof *again);
    }
    free(again);
    free(values);
    free(expected);
    whit_model_close(model);
}

static void vectors_are_the_goldens(void **state)
{
    static const char *const names[] = {"qwen3-embed", "qwen3-rerank", "bitnet-embed",
                                        "gemma-embed", "bert-embed",   "bert-rerank"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char folder[1024], path[4096];
        json_error_t why;
        const json_t *golden, *file;
        size_t g, f;
        snprintf(folder, sizeof folder, "%s/models-tiny/%s", WHIT_SHARED_DIR, names[i]);
        snprintf(path, sizeof path, "%s/golden.json", folder);
        json_t *document = json_load_file(path, 0, &why);
        if (!document) {
            print_message("%s is not there: skipped\n", path);
            exit(77);
        }
        json_array_foreach(json_object_get(document, "goldens"), g, golden)
        {
            json_array_foreach(json_object_get(golden, "applies_to"), f, file)
                check_file(folder, json_string_value(file), golden);
        }
        json_decref(document);
    }
}

/* Vectors of fewer dimensions are cut first and then normalised. */
static void dimensions_are_cut_before_the_norm(void **state)
{
    (void)state;
    const char *folder = WHIT_SHARED_DIR "/models-tiny/qwen3-embed/hf";
    static const int32_t ids[] = {5, 7, 11, 13};
    float whole[96], cut[10];
    whit_error error;
    whit_model *model;
    whit_session *session;
    whit_model_options options = {.struct_bytes = sizeof options, .no_cache = true};
    if (whit_model_open(folder, &options, &model, &error) == WHIT_ERROR_IO) {
        print_message("%s is not there: skipped\n", folder);
        skip();
    }
    assert_int_equal(whit_model_pooling(model), WHIT_POOLING_LAST);
    whit_session_options wanted = whit_session_options_default();
    wanted.only_vectors = true;
    wanted.n_ctx_tokens = 64;
    assert_ok(whit_session_open(model, &wanted, &session, &error), error);
    whit_embed_options embed = whit_embed_options_default();
    assert_ok(whit_embed(session, ids, 4, &embed, whole, &error), error);
    embed.n_dimensions = 10;
    assert_ok(whit_embed(session, ids, 4, &embed, cut, &error), error);
    double squares = 0;
    for (int i = 0; i < 10; i++) squares += (double)whole[i] * (double)whole[i];
    for (int i = 0; i < 10; i++) assert_true(fabs((double)cut[i] - (double)whole[i] / sqrt(squares)) < 1e-6);
    embed.n_dimensions = 97;
    assert_int_equal(whit_embed(session, ids, 4, &embed, whole, &error), WHIT_ERROR_ARGUMENT);
    assert_null(whit_session_logits(session, 0));
    whit_session_close(session);
    whit_model_close(model);
}

/* A bidirectional model accepts only whole texts and no packed cache, and its file must record that it is
 * bidirectional. */
static void texts_of_encoders_are_whole(void **state)
{
    (void)state;
    whit_error error;
    whit_model *model;
    whit_session *session;
    whit_model_options options = {.struct_bytes = sizeof options, .no_cache = true};
    if (whit_model_open(WHIT_SHARED_DIR "/models-tiny/bert-embed/hf", &options, &model, &error) == WHIT_ERROR_IO)
        skip();
    assert_false(whit_model_makes_text(model));
    whit_session_options wanted = whit_session_options_default();
    assert_int_equal(whit_session_open(model, &wanted, &session, &error), WHIT_ERROR_UNSUPPORTED);
    wanted.only_vectors = true;
    wanted.kv = WHIT_KV_K4V2;
    assert_int_equal(whit_session_open(model, &wanted, &session, &error), WHIT_ERROR_UNSUPPORTED);
    wanted.kv = WHIT_KV_F16;
    wanted.n_ctx_tokens = 65;
    assert_int_equal(whit_session_open(model, &wanted, &session, &error), WHIT_ERROR_LIMIT);
    wanted.n_ctx_tokens = 0;
    assert_ok(whit_session_open(model, &wanted, &session, &error), error);
    whit_step_token tokens[] = {{.id = 5, .want_logits = true}, {.id = 6, .token_type = 2}};
    assert_int_equal(whit_session_step(session, tokens, 2, &error), WHIT_ERROR_ARGUMENT);
    tokens[1].token_type = 1;
    assert_ok(whit_session_step(session, tokens, 2, &error), error);
    /* the sequence already has tokens, so the text would not be whole */
    assert_int_equal(whit_session_step(session, tokens, 1, &error), WHIT_ERROR_ARGUMENT);
    assert_int_equal(whit_session_position(session, 0), 2);
    assert_ok(whit_session_truncate(session, 0, 0, &error), error);
    assert_ok(whit_session_step(session, tokens, 1, &error), error);
    whit_session_close(session);

    /* a bidirectional model with a head */
    whit_model *gemma;
    assert_ok(whit_model_open(WHIT_SHARED_DIR "/models-tiny/gemma-embed/hf", &options, &gemma, &error), error);
    wanted = whit_session_options_default();
    assert_int_equal(whit_session_open(gemma, &wanted, &session, &error), WHIT_ERROR_UNSUPPORTED);
    assert_string_equal(gemma->config.family, "gemma3-vectors"); /* earlier versions refuse this family */
    whit_model_close(gemma);

    whit_config config = model->config;
    whit_graph graph;
    config.bidirectional = false;
    whit_graph_begin(&graph, NULL, whit_weights_resolver(&model->weights), &error);
    assert_int_equal(whit_family_build(&config, &graph), WHIT_ERROR_FORMAT);
    whit_graph_free(&graph);
    whit_model_close(model);
}

/* Computes the mean of the hidden states of tokens n_prompt to n, normalised to length 1. */
static void mean_after(whit_session *session, const whit_embed_text *text, double *mean, size_t width)
{
    whit_step_token tokens[64];
    whit_error error;
    double squares = 0;
    assert_in_range(text->n_ids, 1, 64);
    for (size_t i = 0; i < text->n_ids; i++)
        tokens[i] = (whit_step_token){.id = text->ids[i], .want_logits = true, .n_top = 1};
    assert_ok(whit_session_step(session, tokens, text->n_ids, &error), error);
    for (size_t k = 0; k < width; k++) {
        mean[k] = 0;
        for (size_t i = text->n_prompt; i < text->n_ids; i++) mean[k] += (double)whit_session_hidden(session, i)[k];
        squares += mean[k] * mean[k];
    }
    for (size_t k = 0; k < width; k++) mean[k] /= sqrt(squares);
    assert_ok(whit_session_truncate(session, 0, 0, &error), error);
}

/* Copies a folder and replaces its pooling configuration. Returns false if the folder does not exist. */
static bool copy_with_pooling(const char *name, const char *pooling)
{
    char command[512];
    snprintf(command, sizeof command,
             "test -d %s/models-tiny/%s && rm -rf %s/hf && cp -r %s/models-tiny/%s/hf %s/hf && chmod -R u+w %s/hf",
             WHIT_SHARED_DIR, name, test_folder, WHIT_SHARED_DIR, name, test_folder, test_folder);
    if (system(command) != 0) return false;
    FILE *file = fopen(in_folder("hf/1_Pooling/config.json"), "w");
    assert_non_null(file);
    fputs(pooling, file);
    return fclose(file) == 0;
}

/* Checks texts whose first three tokens are an instruction: in one step or several, alone and together with other
 * texts. */
static void check_means(const whit_model *model, bool pools_prompt)
{
    static const int32_t ids[] = {5, 7, 11, 13, 2, 9, 4, 21, 6, 3, 8};
    static const struct way ways[] = {{1, 64, 1, false}, {4, 64, 2, false}, {3, 11, 1, true}};
    const whit_embed_text prompted[] = {{ids, 11, 0, 3}, {ids + 1, 4, 0, 3}, {ids, 9, 0, 0}, {ids + 2, 8, 0, 7}};
    const size_t n = sizeof prompted / sizeof *prompted, width = whit_model_embedding_size(model);
    float *values = malloc(n * width * sizeof *values), *first = malloc(n * width * sizeof *first);
    double *mean = malloc(width * sizeof *mean);
    struct texts texts = {.n = n};
    memcpy(texts.of, prompted, sizeof prompted);
    assert_int_equal(whit_model_pools_prompt(model), pools_prompt);
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        run_texts(model, &texts, &ways[w], false, -1, -1, w ? values : first);
        if (w) assert_memory_equal(values, first, n * width * sizeof *values);
    }
    whit_session *session;
    whit_session_options wanted = whit_session_options_default();
    whit_error error;
    wanted.n_ctx_tokens = wanted.n_batch_tokens = wanted.n_logits = 64;
    wanted.kv = WHIT_KV_F32;
    wanted.act = WHIT_ACT_F32;
    wanted.only_vectors = true;
    assert_ok(whit_session_open(model, &wanted, &session, &error), error);
    for (size_t i = 0; i < n; i++) {
        whit_embed_text text = prompted[i];
        if (pools_prompt) text.n_prompt = 0;
        mean_after(session, &text, mean, width);
        for (size_t k = 0; k < width; k++)
            if (fabs((double)first[i * width + k] - mean[k]) > 1e-6)
                fail_msg("text %zu, element %zu: %g, computed %g", i, k, (double)first[i * width + k], mean[k]);
    }
    const whit_embed_text empty = {ids, 3, 0, 3}; /* a text that consists of the instruction only */
    const whit_status status = whit_embed_texts(session, &empty, 1, NULL, values, &error);
    assert_int_equal(status, pools_prompt ? WHIT_OK : WHIT_ERROR_ARGUMENT);
    whit_session_close(session);
    free(mean);
    free(values);
    free(first);
}

static void instructions_are_left_out_of_the_mean(void **state)
{
    (void)state;
    static const char *const names[] = {"bert-embed", "qwen3-embed", "gemma-embed"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int includes = 0; includes < 2; includes++) {
            const char *pooling = includes ? "{\"pooling_mode_mean_tokens\": true, \"include_prompt\": true}"
                                           : "{\"pooling_mode_mean_tokens\": true, \"include_prompt\": false}";
            if (!copy_with_pooling(names[i], pooling)) {
                print_message("%s is not there: skipped\n", names[i]);
                skip();
            }
            whit_model *model = open_model("hf");
            check_means(model, includes);
            whit_model_close(model);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_are_the_goldens),
        cmocka_unit_test(dimensions_are_cut_before_the_norm),
        cmocka_unit_test(texts_of_encoders_are_whole),
        cmocka_unit_test(instructions_are_left_out_of_the_mean),
    };
    return cmocka_run_group_tests_name("golden_vectors", tests, make_folder, remove_folder);
}
