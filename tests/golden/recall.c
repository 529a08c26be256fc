/* SPDX-License-Identifier: MIT
 * Asks the recall model (tools/lockers), for every type of cache, for names that were stated once, 256 to 1,900
 * words before the question. Such questions show losses that perplexity hides. WHIT_QUESTIONS sets their number; the
 * long test asks 500. WHIT_RECALL_MODEL names another model. */
#include "test.h"

#include "lockers/lockers.h"

enum { WORDS = 2040, TEXT_BYTES = WORDS * (LOCKERS_LABEL_BYTES - 1) };

typedef struct exam {
    char text[TEXT_BYTES];
    size_t n;
} exam;

static void write_word(void *context, uint32_t name, char letter)
{
    exam *e = context;
    char label[LOCKERS_LABEL_BYTES];
    lockers_label(name, letter, label);
    const size_t n = strlen(label);
    assert_true(e->n + n <= sizeof e->text);
    memcpy(e->text + e->n, label, n);
    e->n += n;
}

static whit_model *model;

static int set_up(void **state)
{
    (void)state;
    whit_error error;
    const char *path = getenv("WHIT_RECALL_MODEL");
    whit_model_options options = {.struct_bytes = sizeof options, .no_cache = true};
    if (!path) path = WHIT_SOURCE_DIR "/tools/lockers/recall.ndf";
    return whit_model_open(path, &options, &model, &error) == WHIT_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    whit_model_close(model);
    return 0;
}

static uint32_t argmax(const float *logits, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++)
        if (logits[i] > logits[best]) best = i;
    return best;
}

/* Returns how many questions of an exam are answered correctly. Each question follows the answers to the earlier
 * ones. */
static uint32_t answered(whit_session *session, uint64_t seed)
{
    static exam e;
    static int32_t ids[WORDS + 2];
    static whit_step_token tokens[WORDS + 2];
    whit_error error;
    whit_rng rng = {seed};
    size_t n;
    uint32_t n_right = 0;
    e.n = 0;
    lockers_exam(&rng, WORDS, write_word, &e);
    assert_ok(whit_tokenize(model, e.text, e.n, true, false, ids, WORDS + 2, &n, &error), error);
    assert_int_equal(n, WORDS + 1); /* <s> and one token per word */
    for (size_t i = 0; i < n; i++) {
        /* the text ends in pairs of question and answer; the logits of the questions are needed */
        const size_t behind = n - i;
        tokens[i] = (whit_step_token){.id = ids[i], .want_logits = behind <= 2 * LOCKERS_ASKED && behind % 2 == 0};
    }
    assert_ok(whit_session_truncate(session, 0, 0, &error), error);
    assert_ok(whit_session_step(session, tokens, n, &error), error);
    for (uint32_t k = 0; k < LOCKERS_ASKED; k++) {
        const int32_t answer = ids[n - 2 * LOCKERS_ASKED + 2 * k + 1];
        n_right += (int32_t)argmax(whit_session_logits(session, k), whit_model_vocab_size(model)) == answer;
    }
    return n_right;
}

/* Returns the share of correctly answered questions with --kv-window 0, which makes the asked-for words always
 * packed. */
static double answers(whit_kv_type kv, const char *name)
{
    const char *wanted = getenv("WHIT_QUESTIONS");
    const uint32_t n_exams = (uint32_t)(wanted ? strtoul(wanted, NULL, 10) : 50) / LOCKERS_ASKED;
    whit_error error;
    whit_session *session;
    whit_session_options options = whit_session_options_default();
    options.kv = kv;
    options.n_kv_window = 0;
    options.n_ctx_tokens = 2048;
    options.n_logits = LOCKERS_ASKED;
    options.n_threads = 1;
    assert_ok(whit_session_open(model, &options, &session, &error), error);
    uint32_t n_right = 0;
    for (uint32_t i = 0; i < n_exams; i++) n_right += answered(session, 1000 + i);
    whit_session_close(session);
    const double share = (double)n_right / (n_exams * LOCKERS_ASKED);
    print_message("%-6s %u of %u, %.1f %%\n", name, n_right, n_exams * LOCKERS_ASKED, 100 * share);
    return share;
}

/* A guess is right in one of eight cases. Logits have the same bits on all machines, so the shares do not vary; with
 * 500 questions they are 98.4, 99.0, 92.8 and 84.6 %. */
static void keys_planted_far_away_are_found(void **state)
{
    (void)state;
    static const struct {
        whit_kv_type kv;
        const char *name;
        double least;
    } types[] = {{WHIT_KV_F16, "f16", 0.98},
                 {WHIT_KV_K4V2, "k4v2", 0.98},
                 {WHIT_KV_K2V2, "k2v2", 0.88},
                 {WHIT_KV_BITMAP, "bitmap", 0.82}};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        if (answers(types[t].kv, types[t].name) < types[t].least) fail_msg("%s: fewer than before", types[t].name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(keys_planted_far_away_are_found)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
