/* SPDX-License-Identifier: MIT
 * Compares greedy ids, text and log-likelihoods of a real trained model, stories260K, with its goldens. */
#include "test.h"

#include <jansson.h>
#include <math.h>

#define N_STEPS 200

static whit_model *open_model(void)
{
    whit_error error;
    whit_model *model;
    whit_model_options options = {.struct_bytes = sizeof options, .no_cache = true};
    assert_ok(whit_model_open(shared_path("models/stories260K/stories260K.gguf"), &options, &model, &error), error);
    return model;
}

static whit_session *open_session(const whit_model *model, uint32_t n_logits)
{
    whit_error error;
    whit_session *session;
    whit_session_options options = whit_session_options_default();
    options.kv = WHIT_KV_F32;
    options.act = WHIT_ACT_F32;
    options.n_threads = 1;
    options.n_logits = n_logits;
    assert_ok(whit_session_open(model, &options, &session, &error), error);
    return session;
}

static char *read_text(const char *path, size_t *n)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *text = malloc(1 << 20);
    assert_non_null(text);
    *n = fread(text, 1, (1 << 20) - 1, file);
    text[*n] = 0;
    fclose(file);
    return text;
}

/* Returns the next token of the golden's lines "ID pos=.. token=.. next=..", and advances *at. */
static int32_t golden_next(const char **at)
{
    const char *line = strstr(*at, "ID pos=");
    assert_non_null(line);
    int token, next, position;
    assert_int_equal(sscanf(line, "ID pos=%d token=%d next=%d", &position, &token, &next), 3);
    *at = line + 7;
    return next;
}

static void greedy_ids_are_the_goldens(void **state)
{
    (void)state;
    size_t n;
    char *golden = read_text(shared_path("models/stories260K/greedy-empty-prompt.ids.txt"), &n);
    const char *at = golden;
    whit_model *model = open_model();
    whit_session *session = open_session(model, 1);
    whit_error error;
    whit_step_token token = {.id = whit_model_bos(model), .want_logits = true};
    assert_int_equal(token.id, 1);
    int n_checked = 0;
    for (; n_checked < N_STEPS && strstr(at, "ID pos="); n_checked++) {
        assert_ok(whit_session_step(session, &token, 1, &error), error);
        const float *logits = whit_session_logits(session, 0);
        int32_t best = 0;
        for (uint32_t i = 1; i < whit_model_vocab_size(model); i++)
            if (logits[i] > logits[best]) best = (int32_t)i;
        assert_int_equal(best, golden_next(&at));
        token.id = best;
    }
    assert_true(n_checked >= N_STEPS - 1);
    whit_session_close(session);
    whit_model_close(model);
    free(golden);
}

struct text {
    char data[8192];
    size_t n;
};

static bool collect(void *user, const char *text, size_t n)
{
    struct text *all = user;
    assert_true(all->n + n < sizeof all->data);
    memcpy(all->data + all->n, text, n);
    all->n += n;
    return true;
}

static void check_text(const char *prompt, const char *golden_path)
{
    size_t n, n_ids;
    int32_t ids[256];
    whit_error error;
    char *golden = read_text(golden_path, &n);
    whit_model *model = open_model();
    whit_session *session = open_session(model, 1);
    whit_sampler *sampler;
    whit_sampler_options greedy = whit_sampler_options_default();
    greedy.temperature = 0;
    assert_ok(whit_sampler_open(model, &greedy, &sampler, &error), error);
    assert_ok(whit_tokenize(model, prompt, strlen(prompt), true, true, ids, 256, &n_ids, &error), error);
    struct text all = {0};
    collect(&all, prompt, strlen(prompt));
    whit_generate_options options = whit_generate_options_default();
    options.n_tokens = (uint32_t)(N_STEPS - n_ids + 1);
    options.on_text = collect;
    options.user = &all;
    whit_generate_result result = whit_generate_result_default();
    assert_ok(whit_generate(session, sampler, ids, n_ids, &options, &result, &error), error);
    /* the reference program stops after 200 positions and ends its output with line feeds */
    while (n && golden[n - 1] == '\n') n--;
    assert_true(n > 100 && all.n >= n - 16);
    size_t common = all.n < n ? all.n : n;
    if (memcmp(all.data, golden, common) != 0) fail_msg("got: %.*s\nnot: %.*s", (int)all.n, all.data, (int)n, golden);
    whit_sampler_close(sampler);
    whit_session_close(session);
    whit_model_close(model);
    free(golden);
}

static void greedy_text_is_the_golden(void **state)
{
    (void)state;
    check_text("", shared_path("models/stories260K/greedy-empty-prompt.txt"));
    check_text("One day, Lily", shared_path("models/stories260K/greedy-one-day-lily.txt"));
}

static void log_likelihoods_are_the_goldens(void **state)
{
    (void)state;
    size_t i;
    json_t *root = json_load_file(shared_path("models/stories260K/nll.json"), 0, NULL), *item;
    assert_non_null(root);
    whit_model *model = open_model();
    uint32_t n_vocab = whit_model_vocab_size(model);
    json_array_foreach(json_object_get(root, "cases"), i, item)
    {
        char relative[256];
        size_t n, n_ids;
        int32_t ids[4096];
        static whit_step_token tokens[512];
        whit_error error;
        snprintf(relative, sizeof relative, "corpora/%s", json_string_value(json_object_get(item, "file")));
        char *text = read_text(shared_path(relative), &n);
        assert_ok(whit_tokenize(model, text, n < 3000 ? n : 3000, true, true, ids, 4096, &n_ids, &error), error);
        if (n_ids > 512) n_ids = 512;
        for (size_t t = 0; t < n_ids; t++) tokens[t] = (whit_step_token){.id = ids[t], .want_logits = true};
        whit_session *session = open_session(model, 512);
        assert_ok(whit_session_step(session, tokens, n_ids, &error), error);
        double nll = 0;
        for (size_t t = 0; t + 1 < n_ids; t++) {
            const float *logits = whit_session_logits(session, t);
            double max = logits[0], sum = 0;
            for (uint32_t k = 1; k < n_vocab; k++) max = fmax(max, logits[k]);
            for (uint32_t k = 0; k < n_vocab; k++) sum += exp(logits[k] - max);
            nll -= logits[ids[t + 1]] - max - log(sum);
        }
        nll /= (double)(n_ids - 1);
        print_message("%s: %zu tokens, nll %.6f\n", relative, n_ids - 1, nll);
        assert_int_equal(n_ids - 1, json_integer_value(json_object_get(item, "tokens")));
        assert_true(fabs(nll - json_number_value(json_object_get(item, "nll"))) <= 0.0005);
        whit_session_close(session);
        free(text);
    }
    whit_model_close(model);
    json_decref(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(greedy_ids_are_the_goldens),
        cmocka_unit_test(greedy_text_is_the_golden),
        cmocka_unit_test(log_likelihoods_are_the_goldens),
    };
    return cmocka_run_group_tests_name("stories260K", tests, NULL, NULL);
}
