/* SPDX-License-Identifier: MIT
 * Tests an agent's model in the same process: if a grammar limits the answer, it can be parsed whatever the model
 * writes. */
#include "test.h"

#include "agent/model.h"
#include "agent/tools.h"

static unsigned rounds(void)
{
    return tests_are_brief() ? 15 : 60;
}

static void open_tales(uint32_t n_ctx_tokens, uint32_t n_sequences, whit_model **model, whit_session **session)
{
    whit_error error;
    whit_model_options opening = whit_model_options_default();
    opening.no_cache = true;
    assert_ok(whit_model_open(WHIT_SOURCE_DIR "/tools/tales/tales.ndf", &opening, model, &error), error);
    whit_session_options wanted = whit_session_options_default();
    wanted.n_ctx_tokens = n_ctx_tokens;
    wanted.n_sequences = n_sequences;
    wanted.n_threads = 1;
    assert_ok(whit_session_open(*model, &wanted, session, &error), error);
}

/* Returns how many answers have the required form. Calls in them must name existing tools. */
static unsigned share(const whit_model *model, whit_session *session, bool no_grammar, uint32_t n_tokens)
{
    static const char *const tasks[] = {"Read a file.", "Once upon a time", "{\"tool\":", "\"",
                                        "Find the fox in src/a.c."};
    json_t *tools = whit_tools_schema(true);
    unsigned n_formed = 0;
    for (unsigned i = 0; i < rounds(); i++) {
        whit_local_options options = {
            .n_tokens = n_tokens, .temperature = i % 3 ? 1.5f : 0, .seed = i, .no_grammar = no_grammar};
        whit_local_model *local;
        whit_error error;
        assert_ok(whit_local_open(model, session, 0, &options, &local, &error), error);
        whit_agent_model asked = whit_local_as_model(local);
        json_t *messages = json_pack("[{s:s, s:s}, {s:s, s:s}]", "role", "system", "content", "Be brief.", "role",
                                     "user", "content", tasks[i % 5]);
        json_t *answer;
        assert_ok(asked.ask(asked.user, messages, tools, &answer, &error), error);
        const json_t *message = json_object_get(json_array_get(json_object_get(answer, "choices"), 0), "message");
        const json_t *call = json_array_get(json_object_get(message, "tool_calls"), 0);
        if (json_is_true(json_object_get(answer, "formed"))) {
            const char *name = json_string_value(json_object_get(json_object_get(call, "function"), "name"));
            bool known = !call;
            size_t k;
            json_t *tool;
            json_array_foreach(tools, k, tool) known = known ||
                strcmp(name, json_string_value(json_object_get(json_object_get(tool, "function"), "name"))) == 0;
            n_formed += known;
        }
        json_decref(answer);
        json_decref(messages);
        whit_local_close(local);
    }
    json_decref(tools);
    return n_formed;
}

static void answers_parse(void **state)
{
    (void)state;
    whit_model *model;
    whit_session *session;
    open_tales(512, 1, &model, &session);
    unsigned off = share(model, session, true, 400), on = share(model, session, false, 400);
    unsigned tight = share(model, session, false, 1); /* with one token, closing writes the whole answer */
    print_message("answers that parse: %u of %u without the grammar, %u with it, %u where there is hardly room\n", off,
                  rounds(), on, tight);
    assert_int_equal(on, rounds());
    assert_int_equal(tight, rounds());
    assert_true(off < on);
    whit_session_close(session);
    whit_model_close(model);
}

/* Four agents share a prefix of about 2,000 tokens, which must be computed once. */
static void a_beginning_is_computed_once(void **state)
{
    (void)state;
    enum { AGENTS = 4 };
    whit_error error;
    whit_model *model;
    whit_session *session;
    open_tales(3072, AGENTS, &model, &session);
    json_t *tools = whit_tools_schema(false);
    whit_buf text = {0};
    /* this model's template shows only the person's last message, so the prefix is in that message */
    while (text.size_bytes < 7000) whit_buf_append_str(&text, "The fox went into the wood and the moon was big. ");
    long long first = 0, computed = 0;
    for (unsigned i = 0; i < AGENTS; i++) {
        whit_local_options options = {.n_tokens = 192, .seed = i};
        whit_local_model *local;
        assert_ok(whit_local_open(model, session, i, &options, &local, &error), error);
        whit_agent_model asked = whit_local_as_model(local);
        char task[40];
        snprintf(task, sizeof task, " Task number %u.", i);
        json_t *messages = json_pack("[{s:s, s:s+}]", "role", "user", "content",
                                     (whit_buf_append(&text, "", 1), text.size_bytes--, (char *)text.data), task);
        json_t *answer;
        assert_ok(asked.ask(asked.user, messages, tools, &answer, &error), error);
        const json_t *usage = json_object_get(answer, "usage");
        long long all = json_integer_value(json_object_get(usage, "prompt_tokens"));
        long long cached =
            json_integer_value(json_object_get(json_object_get(usage, "prompt_tokens_details"), "cached_tokens"));
        if (i == 0) first = all;
        computed += all - cached;
        json_decref(answer);
        json_decref(messages);
        whit_local_close(local);
    }
    print_message("%d agents on %lld tokens: %lld computed\n", AGENTS, first, computed);
    assert_true(first > 1500);
    assert_true(computed < first + (AGENTS - 1) * 128); /* KV blocks have 64 tokens, and each agent has its own tail */
    whit_buf_free(&text);
    json_decref(tools);
    whit_session_close(session);
    whit_model_close(model);
}

/* A tool of an MCP server has a schema that grammars do not support: its values may be any JSON, and the task
 * continues. */
static void foreign_schemas_are_no_end(void **state)
{
    (void)state;
    whit_error error;
    whit_model *model;
    whit_session *session;
    whit_local_model *local;
    open_tales(512, 1, &model, &session);
    whit_local_options options = {.n_tokens = 64};
    assert_ok(whit_local_open(model, session, 0, &options, &local, &error), error);
    whit_agent_model asked = whit_local_as_model(local);
    json_t *tools =
        json_loads("[{\"type\": \"function\", \"function\": {\"name\": \"mcp__s__add\", \"parameters\": {"
                   "\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"number\", \"multipleOf\": 0.1}, "
                   "\"b\": {\"not\": {\"uniqueItems\": true}}}, \"required\": [\"a\", \"b\"]}}}]",
                   0, NULL);
    json_t *messages = json_pack("[{s:s, s:s}]", "role", "user", "content", "Add."), *answer;
    assert_non_null(tools);
    assert_ok(asked.ask(asked.user, messages, tools, &answer, &error), error);
    assert_true(json_is_true(json_object_get(answer, "formed")));
    json_decref(answer);
    json_decref(messages);
    json_decref(tools);
    whit_local_close(local);
    whit_session_close(session);
    whit_model_close(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(answers_parse), cmocka_unit_test(a_beginning_is_computed_once),
                                       cmocka_unit_test(foreign_schemas_are_no_end)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
