/* SPDX-License-Identifier: MIT
 * Tests programs and libraries of different versions, whose structs have different sizes (whit/base.h). */
#include "test.h"

#include "test_folder.h"
#include "tiny_model.h"

static whit_model *model;

/* whit_session_options of a program that was compiled before the last members were added. It has no padding at its end,
 * because new members are added after padding (base/options.h). */
struct older_options {
    size_t struct_bytes;
    uint32_t n_ctx_tokens, n_batch_tokens, n_sequences, n_threads;
};

static void a_smaller_struct_is_taken(void **state)
{
    (void)state;
    whit_error error;
    whit_session *session;
    struct older_options older = {sizeof older, 48, 16, 3, 1};
    assert_ok(whit_session_open(model, (const whit_session_options *)(const void *)&older, &session, &error), error);
    assert_int_equal(whit_session_context_size(session), 48);
    assert_ok(whit_session_step(session, &(whit_step_token){.sequence = 2, .id = 5, .want_logits = true}, 1, &error),
              error);
    whit_session_close(session);
}

static void a_larger_struct_is_taken_where_it_says_nothing_new(void **state)
{
    (void)state;
    struct {
        whit_sampler_options known;
        uint64_t new_members[2];
    } newer = {.known = whit_sampler_options_default()};
    whit_error error;
    whit_sampler *sampler;
    newer.known.struct_bytes = sizeof newer;
    assert_ok(whit_sampler_open(model, &newer.known, &sampler, &error), error);
    whit_sampler_close(sampler);
    newer.new_members[1] = 1;
    assert_int_equal(whit_sampler_open(model, &newer.known, &sampler, &error), WHIT_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "whit_sampler_options"));
    assert_null(sampler);
}

static void a_struct_that_nobody_filled_is_refused(void **state)
{
    (void)state;
    whit_error error;
    whit_session *session;
    whit_sampler *sampler;
    whit_model *other;
    whit_session_options session_options = {.n_sequences = 1};
    whit_sampler_options sampler_options = {.temperature = 1};
    whit_model_options model_options = {0};
    assert_int_equal(whit_session_open(model, &session_options, &session, &error), WHIT_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "whit_session_options_default()"));
    assert_int_equal(whit_sampler_open(model, &sampler_options, &sampler, &error), WHIT_ERROR_ARGUMENT);
    assert_int_equal(whit_model_open("x", &model_options, &other, &error), WHIT_ERROR_ARGUMENT);
}

/* A step token of a later version of the interface, which has one more member. */
struct longer_token {
    whit_step_token known;
    uint64_t more;
};

static void elements_have_any_stride(void **state)
{
    (void)state;
    enum { N = 5 };
    whit_error error;
    whit_session *session;
    float *expected = malloc(whit_model_vocab_size(model) * sizeof *expected);
    size_t row_bytes = whit_model_vocab_size(model) * sizeof *expected;
    whit_step_token tokens[N];
    struct longer_token longer[N] = {0};
    for (int i = 0; i < N; i++) {
        tokens[i] = (whit_step_token){.id = 270 + i, .want_logits = i == N - 1};
        longer[i].known = tokens[i];
    }
    assert_ok(whit_session_open(model, NULL, &session, &error), error);
    assert_ok(whit_session_step(session, tokens, N, &error), error);
    memcpy(expected, whit_session_logits(session, 0), row_bytes);
    assert_ok(whit_session_truncate(session, 0, 0, &error), error);
    assert_ok(whit_session_step_strided(session, longer, N, sizeof *longer, &error), error);
    assert_memory_equal(whit_session_logits(session, 0), expected, row_bytes);
    longer[3].more = 1;
    assert_int_equal(whit_session_step_strided(session, longer, N, sizeof *longer, &error), WHIT_ERROR_ARGUMENT);
    assert_int_equal(whit_session_step_strided(session, tokens, N, 8, &error), WHIT_ERROR_ARGUMENT);
    assert_int_equal(whit_session_position(session, 0), N);
    whit_session_close(session);
    free(expected);
}

/* Every function must return a status and an error message for NULL arguments, and not crash. */
static void null_is_a_status(void **state)
{
    (void)state;
    whit_error error;
    whit_session *session, *none;
    whit_sampler *sampler;
    whit_model *other;
    whit_detokenizer *detokenizer;
    whit_adapter *adapter;
    whit_generation *generation;
    whit_chat_template *chat;
    whit_chat_prompt *prompt;
    whit_chat_parser *parser;
    whit_conversation *talk;
    whit_session_file *file;
    whit_session_replay replay = whit_session_replay_default();
    whit_grammar_vocabulary *vocabulary;
    whit_grammar *grammar;
    whit_grammar_state *state_of;
    const uint64_t *bits;
    int32_t id = 5;
    uint32_t n_present;
    size_t n;
    whit_status opened = whit_session_open(model, NULL, &session, &error);
    assert_int_equal(opened, WHIT_OK);
    const whit_status found[] = {
        whit_model_open(NULL, NULL, &other, &error),
        whit_model_open("x", NULL, NULL, &error),
        whit_model_open_memory(NULL, 0, "x", NULL, &other, &error),
        whit_session_open(NULL, NULL, &none, &error),
        whit_session_open(model, NULL, NULL, &error),
        whit_sampler_open(NULL, NULL, &sampler, &error),
        whit_sampler_pick(NULL, NULL, &id, &error),
        whit_tokenize(NULL, "x", 1, true, true, &id, 1, &n, &error),
        whit_tokenize(model, NULL, 1, true, true, &id, 1, &n, &error),
        whit_tokenize(model, "x", 1, true, true, NULL, 1, &n, &error),
        whit_token_bytes(NULL, 5, NULL, 0, &n, &error),
        whit_token_bytes(model, 5, NULL, 1, &n, &error),
        whit_token_bytes(model, 5, NULL, 0, NULL, &error),
        whit_detokenizer_open(NULL, true, &detokenizer, &error),
        whit_adapter_open(model, NULL, &adapter, &error),
        whit_generation_open(NULL, NULL, &id, 1, NULL, &generation, &error),
        whit_chat_template_open(NULL, NULL, &chat, &error),
        whit_conversation_open(NULL, 0, NULL, &talk, &error),
        whit_conversation_open(session, 0, NULL, NULL, &error),
        whit_conversation_say(NULL, "user", "x", 1, &error),
        whit_conversation_append(NULL, "[]", 2, &error),
        whit_conversation_set_system(NULL, "x", 1, &error),
        whit_conversation_set_tools(NULL, "[]", 2, &error),
        whit_conversation_return(NULL, "x", 1, &error),
        whit_conversation_save(NULL, "x", &error),
        whit_conversation_load(NULL, "x", &error),
        whit_conversation_answer(NULL, NULL, NULL, NULL, &error),
        whit_chat_render(NULL, NULL, &prompt, &error),
        whit_session_step(NULL, NULL, 1, &error),
        whit_session_truncate(NULL, 0, 0, &error),
        whit_session_share(NULL, 0, 0, 0, &error),
        whit_session_mount(NULL, 0, NULL, 1, &error),
        whit_embed(NULL, &id, 1, NULL, NULL, &error),
        whit_session_reuse(NULL, 0, &id, 1, &n_present, &error),
        whit_session_reuse(session, 0, NULL, 1, &n_present, &error),
        whit_session_reuse(session, 0, &id, 1, NULL, &error),
        whit_generations_step(NULL, NULL, 0, NULL, &error),
        whit_generations_step(session, NULL, 1, NULL, &error),
        whit_generations_step(session, &(whit_generation *){NULL}, 1, NULL, &error),
        whit_generations_run(NULL, NULL, 0, 0, NULL, &error),
        whit_generation_tokens(NULL, NULL, 0, 0, &n, &error),
        whit_generation_accept(NULL, 0, &error),
        whit_chat_render(NULL, NULL, NULL, &error),
        whit_chat_parser_open(NULL, NULL, true, NULL, NULL, &parser, &error),
        whit_chat_parser_open(NULL, NULL, true, NULL, NULL, NULL, &error),
        whit_chat_parser_push(NULL, "x", 1, &error),
        whit_chat_parser_flush(NULL, &error),
        whit_session_load(NULL, 0, "x", "x", &file, &error),
        whit_session_load(session, 0, NULL, "x", &file, &error),
        whit_session_load(session, 0, "x", NULL, &file, &error),
        whit_session_load(session, 0, "x", "x", NULL, &error),
        whit_session_save(NULL, NULL, &error),
        whit_session_replay_file(NULL, NULL, NULL, 0, "x", &replay, &error),
        whit_session_replay_file(model, NULL, NULL, 0, NULL, &replay, &error),
        whit_session_replay_file(model, NULL, NULL, 0, "x", NULL, &error),
        whit_session_replay_file(model, NULL, NULL, 1, "x", &replay, &error),
        whit_grammar_vocabulary_open(NULL, &vocabulary, &error),
        whit_grammar_vocabulary_open(model, NULL, &error),
        whit_grammar_open_gbnf(NULL, "x", "x", 1, &grammar, &error),
        whit_grammar_open_json_schema(NULL, "x", "x", 1, &grammar, &error),
        whit_grammar_state_open(NULL, &state_of, &error),
        whit_grammar_state_clone(NULL, &state_of, &error),
        whit_grammar_mask(NULL, &bits, &error),
        whit_grammar_accept(NULL, 0, &error),
        whit_grammar_rollback(NULL, 1, &error),
    };
    whit_generation_cancel(NULL);
    whit_session_close(session);
    for (size_t i = 0; i < sizeof found / sizeof *found; i++)
        if (found[i] != WHIT_ERROR_ARGUMENT) fail_msg("%zu: %s", i, whit_status_name(found[i]));
}

static void values_out_of_range_are_refused(void **state)
{
    (void)state;
    whit_error error;
    whit_sampler *sampler;
    whit_sampler_options options;
#define assert_refused(member, value)                                                                                  \
    do {                                                                                                               \
        options = whit_sampler_options_default();                                                                      \
        options.member = (value);                                                                                      \
        assert_int_equal(whit_sampler_open(model, &options, &sampler, &error), WHIT_ERROR_ARGUMENT);                   \
    } while (0)
    assert_refused(top_p, 7);
    assert_refused(top_p, -0.1f);
    assert_refused(typical_p, 2);
    assert_refused(min_p, 1.5f);
    assert_refused(top_k, -2);
    assert_refused(penalty_last_n, -7);
    assert_refused(xtc_probability, 1.1f);
    assert_refused(repeat_penalty, 0);
    assert_refused(mirostat, 3);
}

static void versions_agree(void **state)
{
    (void)state;
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", WHIT_VERSION_MAJOR, WHIT_VERSION_MINOR, WHIT_VERSION_PATCH);
    assert_string_equal(whit_version(), text);
}

static int open_tiny(void **state)
{
    if (make_folder(state) != 0) return -1;
    tiny_model tiny = tiny_model_default();
    if (!tiny_model_write(&tiny, in_folder("model.gguf"))) return -1;
    model = open_model("model.gguf");
    return 0;
}

static int close_tiny(void **state)
{
    whit_model_close(model);
    return remove_folder(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_smaller_struct_is_taken),
        cmocka_unit_test(a_larger_struct_is_taken_where_it_says_nothing_new),
        cmocka_unit_test(a_struct_that_nobody_filled_is_refused),
        cmocka_unit_test(elements_have_any_stride),
        cmocka_unit_test(null_is_a_status),
        cmocka_unit_test(values_out_of_range_are_refused),
        cmocka_unit_test(versions_agree),
    };
    return cmocka_run_group_tests_name("interface", tests, open_tiny, close_tiny);
}
