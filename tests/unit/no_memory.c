/* SPDX-License-Identifier: MIT
 * Tests that every allocation of a public function may fail: the function returns an error, leaves no memory
 * allocated, and existing objects still work. */
#include "test.h"

#include "failing_memory.h"
#include "test_folder.h"
#include "tiny_model.h"
#include "whit/embeddings.h"
#include "whit/grammar.h"
#include "whit/session_file.h"

static struct failing failing = {.n_left = LONG_MAX};
static whit_allocator allocator = {failing_alloc, failing_free, &failing};
static whit_model *model;
static whit_grammar_vocabulary *vocabulary;

typedef whit_status attempt(void *user, whit_error *error);

/* Runs an attempt with the first allocation refused, then with the second, and so on, until it succeeds. Unless
 * `keeps`, a run may not leave memory allocated. */
static void refuse_each(const char *what, attempt *run, void *user, bool keeps)
{
    whit_status status = WHIT_ERROR_MEMORY;
    long before = failing.n_live, n = 0;
    for (; status != WHIT_OK && n < 20000; n++) {
        whit_error error = {.message = ""};
        failing.n_left = n;
        status = run(user, &error);
        failing.n_left = LONG_MAX;
        if (status != WHIT_OK && status != WHIT_ERROR_MEMORY && status != WHIT_ERROR_LIMIT)
            fail_msg("%s: allocation %ld refused: %s", what, n, error.message);
        if (!keeps && failing.n_live != before)
            fail_msg("%s: allocation %ld refused: %ld kept", what, n, failing.n_live - before);
    }
    if (status != WHIT_OK) fail_msg("%s never goes well", what);
    print_message("%s: %ld allocations\n", what, n - 1);
}

/* ---- grammars -------------------------------------------------------------------------------- */

static whit_status open_vocabulary(void *user, whit_error *error)
{
    whit_grammar_vocabulary *own;
    (void)user;
    whit_status status = whit_grammar_vocabulary_open(model, &own, error);
    if (status != WHIT_OK) assert_null(own);
    whit_grammar_vocabulary_close(own);
    return status;
}

struct text {
    const char *source, *wanted; /* wanted: a text that the grammar must accept */
};

static int32_t byte_token(char byte)
{
    return 3 + (uint8_t)byte;
}

/* Opens a grammar and feeds it a text byte by byte; before each byte the mask is computed. */
static whit_status follow(const struct text *text, bool gbnf, whit_error *error)
{
    whit_grammar *grammar;
    whit_grammar_state *state = NULL, *clone = NULL;
    const uint64_t *bits;
    whit_status status = (gbnf ? whit_grammar_open_gbnf : whit_grammar_open_json_schema)(
        vocabulary, "test", text->source, strlen(text->source), &grammar, error);
    if (status != WHIT_OK) assert_null(grammar);
    if (status == WHIT_OK) status = whit_grammar_state_open(grammar, &state, error);
    if (status == WHIT_OK) status = whit_grammar_state_clone(state, &clone, error);
    for (const char *c = text->wanted; status == WHIT_OK && *c; c++) {
        status = whit_grammar_mask(state, &bits, error);
        if (status == WHIT_OK) assert_true(bits[byte_token(*c) / 64] >> byte_token(*c) % 64 & 1);
        if (status == WHIT_OK) status = whit_grammar_accept(state, byte_token(*c), error);
    }
    if (status == WHIT_OK) assert_true(whit_grammar_is_complete(state));
    whit_grammar_state_close(state);
    whit_grammar_state_close(clone);
    whit_grammar_close(grammar);
    return status;
}

static whit_status follow_gbnf(void *user, whit_error *error)
{
    return follow(user, true, error);
}

static whit_status follow_schema(void *user, whit_error *error)
{
    return follow(user, false, error);
}

static void grammars(void **state)
{
    (void)state;
    struct text gbnf = {"root ::= (\"(\" root \")\" | [a-z]{1,3})* \"\xC3\xA4\"", "((\xC3\xA4)ab\xC3\xA4)c\xC3\xA4"};
    struct text schema = {
        "{\"type\":\"object\",\"properties\":{\"a\":{\"enum\":[1,\"x\",[2,{\"y\":3}]]},\"b\":{\"type\":"
        "\"string\",\"pattern\":\"^[a-c]+(d|e)?$\"},\"c\":{\"oneOf\":[{\"type\":\"null\"},{\"$ref\":"
        "\"#/$defs/n\"}]}},\"required\":[\"a\",\"b\"],\"$defs\":{\"n\":{\"type\":\"number\","
        "\"minimum\":-1.5}}}",
        "{\"a\":[2,{\"y\":3}],\"b\":\"abd\",\"c\":-1.25}"};
    struct text open = {
        "{\"type\":\"object\",\"properties\":{\"a\":{}},\"additionalProperties\":{\"format\":\"date\"}}",
        "{\"b\":\"2024-02-28\"}"};
    refuse_each("a vocabulary", open_vocabulary, NULL, false);
    refuse_each("a grammar", follow_gbnf, &gbnf, false);
    refuse_each("a schema", follow_schema, &schema, false);
    refuse_each("further properties", follow_schema, &open, false);
}

/* ---- sessions -------------------------------------------------------------------------------- */

static whit_status open_session(void *user, whit_error *error)
{
    whit_session *session;
    whit_session_options options = whit_session_options_default();
    (void)user;
    options.n_threads = 2;
    options.keep_hidden = true;
    whit_status status = whit_session_open(model, &options, &session, error);
    if (status != WHIT_OK) assert_null(session);
    whit_session_close(session);
    return status;
}

static whit_status predict(void *user, whit_error *error)
{
    size_t bytes;
    (void)user;
    return whit_session_predict_bytes(model, NULL, NULL, 0, &bytes, error);
}

static whit_status embed(void *user, whit_error *error)
{
    static const int32_t ids[] = {TINY_BOS, 260, 270};
    float values[64];
    whit_status status = whit_embed(user, ids, 3, NULL, values, error);
    assert_int_equal(whit_session_position(user, 0), 0);
    return status;
}

static whit_status open_sampler(void *user, whit_error *error)
{
    whit_sampler *sampler;
    whit_sampler_options options = whit_sampler_options_default();
    static const int32_t ids[] = {5};
    static const float values[] = {1};
    (void)user;
    options.dry_multiplier = 0.5f;
    options.bias_ids = ids;
    options.bias_values = values;
    options.n_biases = 1;
    whit_status status = whit_sampler_open(model, &options, &sampler, error);
    if (status != WHIT_OK) assert_null(sampler);
    whit_sampler_close(sampler);
    return status;
}

/* Saves a turn of given tokens, loads it and replays it. */
static whit_status keep(void *user, whit_error *error)
{
    static int32_t ids[130];
    whit_session *session = user;
    whit_session_file *file = NULL;
    const char *path = in_folder("kept.ndf");
    whit_session_turn turn = whit_session_turn_default();
    whit_session_replay replay = whit_session_replay_default();
    for (int i = 0; i < 130; i++) ids[i] = i ? 259 + i % 40 : TINY_BOS;
    turn.ids = ids;
    turn.n_ids = turn.n_given = 130;
    turn.note = "note";
    turn.note_bytes = 4;
    unlink(path);
    whit_status status = whit_session_load(session, 0, path, "text", &file, error);
    if (status != WHIT_OK) assert_null(file);
    uint32_t position = whit_session_position(session, 0);
    if (status == WHIT_OK && position == 0) {
        whit_step_token tokens[130];
        for (int i = 0; i < 130; i++) tokens[i] = (whit_step_token){.id = ids[i]};
        status = whit_session_step(session, tokens, 130, error);
    }
    if (status == WHIT_OK) status = whit_session_save(file, &turn, error);
    whit_session_file_close(file);
    file = NULL;
    if (status == WHIT_OK) status = whit_session_load(session, 0, path, "text", &file, error);
    if (status == WHIT_OK) assert_int_equal(whit_session_position(session, 0), 130);
    whit_session_file_close(file);
    if (status == WHIT_OK) status = whit_session_replay_file(model, NULL, NULL, 0, path, &replay, error);
    if (status == WHIT_OK) assert_true(replay.is_same && replay.n_turns == 1);
    whit_error ignored;
    whit_ignore(whit_session_truncate(session, 0, 0, &ignored));
    return status;
}

static void sessions(void **state)
{
    (void)state;
    whit_session *session;
    whit_error error;
    whit_session_options options = whit_session_options_default();
    options.n_threads = 1;
    options.keep_hidden = true;
    refuse_each("a session", open_session, NULL, false);
    refuse_each("a prediction", predict, NULL, false);
    refuse_each("a sampler", open_sampler, NULL, true); /* the model keeps a table that the first sampler makes */
    assert_ok(whit_session_open(model, &options, &session, &error), error);
    refuse_each("an embedding", embed, session, false);
    refuse_each("a session file", keep, session, false);
    whit_session_close(session);
}

/* ---- the group ------------------------------------------------------------------------------- */

static int set_up(void **state)
{
    whit_error error;
    tiny_model tiny = tiny_model_default();
    whit_model_options options = {.struct_bytes = sizeof options, .no_cache = true, .allocator = &allocator};
    if (make_folder(state) || !tiny_model_write(&tiny, in_folder("a.gguf"))) return -1;
    if (whit_model_open(in_folder("a.gguf"), &options, &model, &error) != WHIT_OK) return -1;
    return whit_grammar_vocabulary_open(model, &vocabulary, &error) != WHIT_OK;
}

static int tear_down(void **state)
{
    whit_grammar_vocabulary_close(vocabulary);
    whit_model_close(model);
    return remove_folder(state) || failing.n_live;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(grammars), cmocka_unit_test(sessions)};
    return cmocka_run_group_tests_name("no_memory", tests, set_up, tear_down);
}
