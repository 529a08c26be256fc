/* SPDX-License-Identifier: MIT
 * Tests conversations: messages and their files, prompts, thinking in streams, and that answers depend on the
 * conversation only, not on the content of the cache. */
#include "test.h"

#include "failing_memory.h"
#include "base/file.h"
#include "runtime/chat.h"
#include "runtime/conversation.h"
#include "runtime/text.h"
#include "tiny_model.h"

static char model_path[] = "/tmp/whit-chat-XXXXXX";
static whit_model *model;

/* ---- conversations -------------------------------------------------------------------------- */

static whit_chat_template *open_chat(const char *source)
{
    whit_error error;
    whit_chat_template *chat;
    whit_chat_template_options options = whit_chat_template_options_default();
    options.source = source;
    options.source_bytes = source ? strlen(source) : 0;
    options.name = "test.jinja";
    options.tool_fallback = true;
    assert_ok(whit_chat_template_open(model, &options, &chat, &error), error);
    return chat;
}

struct talk {
    whit_session *session;
    whit_chat_template *chat;
    whit_conversation *conversation;
};

static struct talk open_talk(uint32_t n_ctx, const volatile bool *cancel)
{
    struct talk talk = {.chat = open_chat(NULL)};
    whit_error error;
    whit_session_options options = whit_session_options_default();
    options.n_ctx_tokens = n_ctx;
    options.n_threads = 1;
    options.n_logits = 5;
    options.cancel = cancel;
    assert_ok(whit_session_open(model, &options, &talk.session, &error), error);
    assert_ok(whit_conversation_open(talk.session, 0, talk.chat, &talk.conversation, &error), error);
    return talk;
}

static void close_talk(struct talk *talk)
{
    whit_conversation_close(talk->conversation);
    whit_session_close(talk->session);
    whit_chat_template_close(talk->chat);
}

static void say(struct talk *talk, const char *role, const char *text)
{
    whit_error error;
    assert_ok(whit_conversation_say(talk->conversation, role, text, strlen(text), &error), error);
}

/* Returns a message's JSON as a string; it is valid until the next call. */
static const char *message_of(const struct talk *talk, size_t i)
{
    static char text[4096];
    size_t n;
    const char *json = whit_conversation_message(talk->conversation, i, &n);
    assert_non_null(json);
    snprintf(text, sizeof text, "%.*s", (int)n, json);
    return text;
}

/* ---- messages ------------------------------------------------------------------------------- */

static void messages_keep_their_order(void **state)
{
    (void)state;
    struct talk talk = open_talk(64, NULL);
    whit_conversation *c = talk.conversation;
    whit_error error;
    say(&talk, "user", "one");
    assert_ok(whit_conversation_set_system(c, "first", 5, &error), error);
    say(&talk, "assistant", "two \xFF\xC3");
    assert_ok(whit_conversation_set_system(c, "last", 4, &error), error);
    assert_int_equal(whit_conversation_count(c), 3);
    assert_string_equal(message_of(&talk, 0), "{\"role\": \"system\", \"content\": \"last\"}");
    assert_string_equal(message_of(&talk, 1), "{\"role\": \"user\", \"content\": \"one\"}");
    assert_string_equal(message_of(&talk, 2),
                        "{\"role\": \"assistant\", \"content\": \"two \xEF\xBF\xBD\xEF\xBF\xBD\"}");
    say(&talk, "user", "three");
    assert_int_equal(whit_conversation_undo(c), 1);
    assert_int_equal(whit_conversation_undo(c), 2);
    assert_int_equal(whit_conversation_undo(c), 0);
    assert_int_equal(whit_conversation_count(c), 1);
    assert_ok(whit_conversation_set_system(c, "", 0, &error), error);
    assert_int_equal(whit_conversation_count(c), 0);
    size_t n;
    assert_null(whit_conversation_message(c, 0, &n));
    close_talk(&talk);
}

static void files_say_the_same(void **state)
{
    (void)state;
    struct talk talk = open_talk(64, NULL);
    whit_conversation *c = talk.conversation;
    whit_buf text = {0}, again = {0};
    whit_error error;
    char path[] = "/tmp/whit-messages-XXXXXX";
    close(mkstemp(path));
    unlink(path);
    assert_ok(whit_conversation_set_system(c, "be \"short\"", 10, &error), error);
    assert_ok(whit_conversation_say(c, "user", "a\0b\n\xC3\xA9", 6, &error), error);
    say(&talk, "assistant", "");
    assert_ok(whit_conversation_save(c, path, &error), error);
    assert_ok(whit_read_file(path, 1000, &text, &error), error);
    assert_int_equal(text.data[text.size_bytes - 1], '\n');
    assert_null(memchr(text.data, '\n', text.size_bytes - 1));
    assert_ok(whit_conversation_load(c, path, &error), error);
    assert_int_equal(whit_conversation_count(c), 3);
    assert_ok(whit_conversation_save(c, path, &error), error); /* replaces the file of an older conversation */
    assert_ok(whit_read_file(path, 1000, &again, &error), error);
    assert_int_equal(text.size_bytes, again.size_bytes);
    assert_memory_equal(text.data, again.data, text.size_bytes);

    static const char *const bad[] = {
        "",
        "[]",
        "{\"messages\": 1}",
        "{\"messages\": [1]}",
        "{\"messages\": [{\"role\": \"user\"}]}",
        "{\"messages\": [{\"content\": \"x\"}]}",
        "{\"messages\": [{\"role\": \"user\", \"content\": 1}]}",
        "{\"messages\": [{\"role\": \"user\", \"content\": null}]}",
        "{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}, {\"role\": \"tool\", \"content\": \"x\"}]}",
        "{\"messages\": [{\"role\": \"assistant\", \"content\": \"x\", \"tool_calls\": 1}]}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_ok(whit_write_file(path, bad[i], strlen(bad[i]), &error), error);
        assert_int_equal(whit_conversation_load(c, path, &error), WHIT_ERROR_FORMAT);
        assert_non_null(strstr(error.message, path));
        assert_int_equal(whit_conversation_save(c, path, &error), WHIT_ERROR_FORMAT);
        assert_non_null(strstr(error.message, "not replaced"));
        assert_int_equal(whit_conversation_count(c), 3);
        if (bad[i][0] == '{')
            assert_int_equal(whit_conversation_append(c, bad[i], strlen(bad[i]), &error), WHIT_ERROR_FORMAT);
    }
    assert_int_equal(whit_conversation_count(c), 3);

    /* members that saving would drop; such a file can be loaded, but not replaced */
    static const char *const others[] = {
        "{\"messages\":[],\"extra\":1}",
        "{\"model\": \"m\", \"messages\": [{\"role\": \"user\", \"content\": \"x\"}]}",
        "{\"messages\": [], \"messages\": []}",
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_ok(whit_write_file(path, others[i], strlen(others[i]), &error), error);
        assert_int_equal(whit_conversation_save(c, path, &error), WHIT_ERROR_FORMAT);
        assert_non_null(strstr(error.message, "not replaced"));
        text.size_bytes = 0;
        assert_ok(whit_read_file(path, 1000, &text, &error), error);
        assert_int_equal(text.size_bytes, strlen(others[i]));
        assert_memory_equal(text.data, others[i], text.size_bytes);
        assert_ok(whit_conversation_load(c, path, &error), error);
    }
    /* members of a message are kept */
    static const char tagged[] = "{\"messages\": [{\"role\": \"user\", \"content\": \"x\", \"id\": 7}]}\n";
    assert_ok(whit_write_file(path, tagged, sizeof tagged - 1, &error), error);
    assert_ok(whit_conversation_load(c, path, &error), error);
    assert_ok(whit_conversation_save(c, path, &error), error);
    text.size_bytes = 0;
    assert_ok(whit_read_file(path, 1000, &text, &error), error);
    assert_int_equal(text.size_bytes, sizeof tagged - 1);
    assert_memory_equal(text.data, tagged, text.size_bytes);
    unlink(path);
    whit_buf_free(&text);
    whit_buf_free(&again);
    close_talk(&talk);
}

/* ---- calls ---------------------------------------------------------------------------------- */

static void calls_wait_for_results(void **state)
{
    (void)state;
    static const char asked[] =
        "[{\"role\": \"user\", \"content\": \"x\"},\n {\"role\": \"assistant\", \"content\": null, \"tool_calls\": ["
        "{\"id\": \"a\", \"type\": \"function\", \"function\": {\"name\": \"one\", \"arguments\": \"{\\\"k\\\":1}\"}},"
        "{\"id\": \"b\", \"type\": \"function\", \"function\": {\"name\": \"two\", \"arguments\": {\"k\":[ ]}}}]}]";
    struct talk talk = open_talk(128, NULL);
    whit_conversation *c = talk.conversation;
    whit_error error;
    whit_sampler *sampler;
    assert_null(whit_conversation_next_call(c));
    assert_int_equal(whit_conversation_return(c, "x", 1, &error), WHIT_ERROR_ARGUMENT);
    assert_ok(whit_conversation_append(c, asked, sizeof asked - 1, &error), error);
    assert_ok(whit_sampler_open(model, NULL, &sampler, &error), error);
    assert_int_equal(whit_conversation_answer(c, sampler, NULL, NULL, &error), WHIT_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "'one'"));
    whit_sampler_close(sampler);
    const whit_conversation_call *call = whit_conversation_next_call(c);
    assert_string_equal(call->id, "a");
    assert_string_equal(call->name, "one");
    assert_string_equal(call->arguments, "{\"k\":1}");
    assert_int_equal(call->arguments_bytes, 7);
    assert_ok(whit_conversation_return(c, "18 \"C\"", 6, &error), error);
    assert_string_equal(message_of(&talk, 2),
                        "{\"role\": \"tool\", \"tool_call_id\": \"a\", \"name\": \"one\", "
                        "\"content\": \"18 \\\"C\\\"\"}");
    call = whit_conversation_next_call(c);
    assert_string_equal(call->name, "two");
    assert_string_equal(call->arguments, "{\"k\": []}");
    assert_ok(whit_conversation_return(c, NULL, 0, &error), error);
    assert_null(whit_conversation_next_call(c));
    assert_int_equal(whit_conversation_undo(c), 4); /* the question, the calls and both results */
    close_talk(&talk);
}

static const char tools[] =
    "[{\"type\": \"function\", \"function\": {\"name\": \"weather\", \"parameters\": {\"type\": \"object\", "
    "\"properties\": {\"city\": {\"enum\": [\"Bern\", \"Rome\"]}}, \"required\": [\"city\"], "
    "\"additionalProperties\": false}}}]";

static bool note_event(void *user, const whit_chat_event *event)
{
    ((uint32_t *)user)[event->kind]++;
    return true;
}

/* A required call is made, shown and answered, and another answer follows. Every call has its own id. */
static void required_calls_are_made(void **state)
{
    (void)state;
    struct talk talk = open_talk(1024, NULL);
    whit_conversation *c = talk.conversation;
    whit_error error;
    whit_sampler *sampler;
    uint32_t events[8] = {0};
    char first_id[32] = "";
    whit_answer_options options = whit_answer_options_default();
    whit_answer answer = whit_answer_default();
    options.on_event = note_event;
    options.user = events;
    options.n_tokens = 100;
    options.choice = WHIT_CALL_REQUIRED;
    options.single_call = true;
    say(&talk, "user", "x");
    assert_ok(whit_sampler_open(model, NULL, &sampler, &error), error);
    assert_int_equal(whit_conversation_answer(c, sampler, &options, &answer, &error), WHIT_ERROR_ARGUMENT);
    assert_int_equal(whit_conversation_set_tools(c, "{}", 2, &error), WHIT_ERROR_ARGUMENT);
    assert_ok(whit_conversation_set_tools(c, tools, sizeof tools - 1, &error), error);
    for (int round = 0; round < 2; round++) {
        assert_ok(whit_conversation_answer(c, sampler, &options, &answer, &error), error);
        assert_int_equal(answer.n_calls, 1);
        assert_true(answer.is_held);
        const whit_conversation_call *call = whit_conversation_next_call(c);
        assert_string_equal(call->name, "weather");
        assert_true(!strcmp(call->arguments, "{\"city\":\"Bern\"}") ||
                    !strcmp(call->arguments, "{\"city\":\"Rome\"}") || strchr(call->arguments, ' '));
        assert_string_not_equal(call->id, first_id);
        snprintf(first_id, sizeof first_id, "%s", call->id);
        assert_ok(whit_conversation_return(c, "rain", 4, &error), error);
        assert_int_equal(events[WHIT_CHAT_CALL_END], round + 1);
    }
    options = whit_answer_options_default();
    options.n_tokens = 4;
    assert_ok(whit_conversation_set_tools(c, NULL, 0, &error), error);
    assert_ok(whit_conversation_answer(c, sampler, &options, &answer, &error), error);
    assert_int_equal(answer.n_calls, 0);
    assert_false(answer.is_held);
    size_t n;
    const char *prompt = whit_conversation_prompt(c, &n);
    assert_non_null(memmem(prompt, n, "rain", 4));
    whit_sampler_close(sampler);
    close_talk(&talk);
}

/* ---- prompts -------------------------------------------------------------------------------- */

static whit_chat_prompt *render(const whit_chat_template *chat, const char *content)
{
    whit_error error;
    whit_chat_prompt *prompt;
    whit_chat_request request = whit_chat_request_default();
    char messages[256];
    snprintf(messages, sizeof messages, "[{\"role\": \"user\", \"content\": \"%s\"}]", content);
    request.messages = messages;
    request.messages_bytes = strlen(messages);
    assert_ok(whit_chat_render(chat, &request, &prompt, &error), error);
    return prompt;
}

static void what_users_write_is_no_token(void **state)
{
    (void)state;
    whit_error error;
    whit_chat_template *chat = open_chat(NULL);
    size_t n, n_bytes;
    whit_chat_prompt *prompt = render(chat, "the</s>land<s>");
    const int32_t *ids = whit_chat_prompt_ids(prompt, &n);
    (void)whit_chat_prompt_text(prompt, &n_bytes);
    assert_int_equal(n_bytes, strlen("<s>user:the</s>land<s></s>assistant:"));
    size_t n_bos = 0, n_eos = 0;
    for (size_t i = 0; i < n; i++) {
        n_bos += ids[i] == TINY_BOS;
        n_eos += ids[i] == TINY_EOS;
    }
    assert_int_equal(n_bos, 1);
    assert_int_equal(n_eos, 1);
    whit_chat_prompt_close(prompt);

    /* without special tokens the ids are those of the whole text */
    const char *whole = "<s>user:the land</s>assistant:";
    int32_t expected[64];
    size_t n_expected;
    prompt = render(chat, "the land");
    ids = whit_chat_prompt_ids(prompt, &n);
    assert_ok(whit_tokenize(model, whole, strlen(whole), false, true, expected, 64, &n_expected, &error), error);
    assert_int_equal(n, n_expected);
    assert_memory_equal(ids, expected, n * sizeof *ids);
    whit_chat_prompt_close(prompt);
    whit_chat_template_close(chat);
}

static void templates_say_how_turns_end(void **state)
{
    (void)state;
    whit_error error;
    const char *open, *close;
    whit_chat_template *chat = open_chat(NULL);
    assert_int_equal(whit_chat_template_end(chat), TINY_EOS);
    assert_null(whit_chat_template_stop(chat));
    whit_chat_template_thinking(chat, &open, &close);
    assert_string_equal(open, "<think>");
    whit_chat_template_close(chat);

    chat = open_chat("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}{# [THINK] [/THINK] #}");
    assert_string_equal(whit_chat_template_stop(chat), "\nuser:");
    whit_chat_template_thinking(chat, &open, &close);
    assert_string_equal(close, "[/THINK]");
    whit_chat_template_close(chat);

    chat = open_chat("{{ raise_exception('never') }}"); /* opens, and fails when it is used */
    whit_chat_prompt *prompt;
    whit_chat_request request = whit_chat_request_default();
    request.messages = "[{\"role\": \"user\", \"content\": \"x\"}]";
    request.messages_bytes = strlen(request.messages);
    assert_int_not_equal(whit_chat_render(chat, &request, &prompt, &error), WHIT_OK);
    assert_non_null(strstr(error.message, "never"));
    assert_non_null(strstr(error.message, "test.jinja"));
    whit_chat_template_close(chat);
    whit_chat_template_options options = whit_chat_template_options_default();
    options.source = "{% if %}";
    options.source_bytes = 8;
    options.name = "test.jinja";
    assert_int_equal(whit_chat_template_open(model, &options, &chat, &error), WHIT_ERROR_FORMAT);
    assert_null(chat);

    chat = open_chat(
        "{{ messages[0].content }}{% if enable_thinking is defined %}{{ enable_thinking }}{% endif %}<think>\n");
    static const char *const expected[] = {"x<think>", "xTrue<think>", "xFalse<think>"};
    for (int t = WHIT_THINKING_AUTO; t <= WHIT_THINKING_OFF; t++) {
        size_t n;
        request.thinking = (whit_thinking)t;
        assert_ok(whit_chat_render(chat, &request, &prompt, &error), error);
        assert_memory_equal(whit_chat_prompt_text(prompt, &n), expected[t], strlen(expected[t]));
        assert_true(whit_chat_prompt_thinks(prompt));
        whit_chat_prompt_close(prompt);
    }
    whit_chat_template_close(chat);
    chat = open_chat("<think></think>{{ messages[0].content }}");
    prompt = render(chat, "<think>");
    assert_false(whit_chat_prompt_thinks(prompt)); /* a mark in a user's message does not begin thinking */
    whit_chat_prompt_close(prompt);
    whit_chat_template_close(chat);
}

/* If a template refuses system messages or drops late ones, their text is put into the person's message. */
static void system_messages_find_a_place(void **state)
{
    (void)state;
    static const struct {
        const char *source, *messages, *expected;
    } cases[] = {
        {"{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no') }}{% endif %}"
         "{{ m.role }}:{{ m.content }};{% endfor %}",
         "[{\"role\": \"system\", \"content\": \"a\"}, {\"role\": \"user\", \"content\": \"b\"}]", "user:a\n\nb;"},
        {"{% for m in messages %}{% if m.role != 'system' or loop.first %}{{ m.role }}:{{ m.content }};{% endif %}"
         "{% endfor %}",
         "[{\"role\": \"system\", \"content\": \"a\"}, {\"role\": \"user\", \"content\": \"b\"}, {\"role\": "
         "\"system\", "
         "\"content\": [{\"type\": \"text\", \"text\": \" c \"}]}]",
         "system:a;user:b\n\n c ;"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        whit_error error;
        whit_chat_prompt *prompt;
        whit_chat_request request = whit_chat_request_default();
        whit_chat_template *chat = open_chat(cases[i].source);
        size_t n;
        request.messages = cases[i].messages;
        request.messages_bytes = strlen(cases[i].messages);
        assert_ok(whit_chat_render(chat, &request, &prompt, &error), error);
        const char *text = whit_chat_prompt_text(prompt, &n);
        assert_int_equal(n, strlen(cases[i].expected));
        assert_memory_equal(text, cases[i].expected, n);
        whit_chat_prompt_close(prompt);
        whit_chat_template_close(chat);
    }
}

/* ---- answers -------------------------------------------------------------------------------- */

static whit_status try_answer(struct talk *talk, float temperature, uint32_t n_tokens, uint32_t n_draft,
                              whit_answer *answer, whit_error *error)
{
    whit_sampler *sampler;
    whit_sampler_options sampling = whit_sampler_options_default();
    sampling.temperature = temperature;
    sampling.repeat_penalty = 1.2f;
    sampling.seed = 3;
    assert_ok(whit_sampler_open(model, &sampling, &sampler, error), *error);
    whit_answer_options options = whit_answer_options_default();
    options.n_tokens = n_tokens;
    options.n_draft_tokens = n_draft;
    options.ignore_end = true;
    whit_status status = whit_conversation_answer(talk->conversation, sampler, &options, answer, error);
    whit_sampler_close(sampler);
    return status;
}

static whit_answer answer_now(struct talk *talk, float temperature, uint32_t n_tokens, uint32_t n_draft)
{
    whit_answer answer = whit_answer_default();
    whit_error error;
    assert_ok(try_answer(talk, temperature, n_tokens, n_draft, &answer, &error), error);
    return answer;
}

static void only_new_tokens_are_evaluated(void **state)
{
    (void)state;
    for (int run = 0; run < 3; run++) {
        float temperature = run ? 0.9f : 0;
        struct talk talk = open_talk(256, NULL);
        size_t n_held_before = 0;
        const int32_t *held;
        whit_error error;
        for (int turn = 0; turn < 3; turn++) {
            int32_t before[256];
            held = whit_conversation_ids(talk.conversation, &n_held_before);
            if (n_held_before) memcpy(before, held, n_held_before * sizeof *held);
            say(&talk, "user", "the land and the ocean");
            whit_answer answer = answer_now(&talk, temperature, 9, run == 2 ? 4 : 0);
            assert_int_equal(answer.n_generated, 9);
            /* all tokens that the prompt and the sequence have in common must be kept */
            size_t n, common = 0, n_prompt = answer.n_kept + answer.n_prompt;
            held = whit_conversation_ids(talk.conversation, &n);
            while (common < n_held_before && common < n_prompt - 1 && held[common] == before[common]) common++;
            assert_int_equal(answer.n_kept, common);
            assert_int_equal(n, n_prompt + 9 - 1);
            assert_int_equal(n, whit_session_position(talk.session, 0));
            if (turn) assert_true(answer.n_kept > 10);

            /* a new conversation with the same messages must give the same answer */
            struct talk restarted = open_talk(256, NULL);
            const size_t last = whit_conversation_count(talk.conversation) - 1;
            for (size_t i = 0; i < last; i++) {
                const char *message = message_of(&talk, i);
                assert_ok(whit_conversation_append(restarted.conversation, message, strlen(message), &error), error);
            }
            whit_answer again = answer_now(&restarted, temperature, 9, 0);
            assert_int_equal(again.n_kept, 0);
            assert_int_equal(again.n_prompt, n_prompt);
            char answered[4096];
            snprintf(answered, sizeof answered, "%s", message_of(&talk, last));
            assert_string_equal(message_of(&restarted, last), answered);
            close_talk(&restarted);
        }
        close_talk(&talk);
    }
}

static void an_answer_can_be_given_again(void **state)
{
    (void)state;
    struct talk talk = open_talk(256, NULL);
    say(&talk, "user", "the land");
    answer_now(&talk, 0.8f, 12, 0);
    char first[4096];
    snprintf(first, sizeof first, "%s", message_of(&talk, 1));
    whit_conversation_keep(talk.conversation, 1);
    whit_answer again = answer_now(&talk, 0.8f, 12, 0);
    assert_int_equal(again.n_prompt, 1); /* the last token, whose logits are needed */
    assert_string_equal(message_of(&talk, 1), first);
    close_talk(&talk);
}

static void the_oldest_turns_make_room(void **state)
{
    (void)state;
    struct talk talk = open_talk(160, NULL);
    whit_error error;
    assert_ok(whit_conversation_set_system(talk.conversation, "on land", 7, &error), error);
    uint32_t n_drops = 0;
    for (int turn = 0; turn < 12; turn++) {
        char text[64];
        snprintf(text, sizeof text, "the ocean and the land %d", turn);
        say(&talk, "user", text);
        size_t before = whit_conversation_n_left_out(talk.conversation), n;
        whit_answer answer = answer_now(&talk, 0, 8, 0);
        assert_int_equal(answer.n_generated, 8);
        assert_int_equal(whit_conversation_n_left_out(talk.conversation), before + answer.n_left_out);
        assert_int_equal(whit_conversation_n_left_out(talk.conversation) % 2, 0);
        assert_int_equal(whit_conversation_count(talk.conversation), 1 + 2 * (turn + 1));
        const char *prompt = whit_conversation_prompt(talk.conversation, &n);
        assert_memory_equal(prompt, "<s>system:on land</s>user:the", 29);
        assert_non_null(memmem(prompt, n, text, strlen(text)));
        n_drops += answer.n_left_out > 0;
        if (answer.n_left_out) assert_true(answer.n_kept + answer.n_prompt <= 80);
    }
    assert_true(n_drops >= 1 && n_drops < 6); /* rare, because several turns are dropped at once */
    whit_conversation_keep(talk.conversation, 1);
    assert_int_equal(whit_conversation_n_left_out(talk.conversation), 0);

    /* a message that cannot fit must change nothing, and the next one must be answered */
    char *long_text = calloc(1, 1000);
    memset(long_text, 'q', 999);
    say(&talk, "user", long_text);
    free(long_text);
    whit_answer answer = whit_answer_default();
    assert_int_equal(try_answer(&talk, 0, 8, 0, &answer, &error), WHIT_ERROR_LIMIT);
    assert_non_null(strstr(error.message, "160"));
    assert_int_equal(whit_conversation_count(talk.conversation), 2);
    whit_conversation_keep(talk.conversation, 1);
    say(&talk, "user", "the land");
    answer = answer_now(&talk, 0, UINT32_MAX, 0);
    assert_true(answer.full);
    assert_int_equal(answer.finish, WHIT_FINISH_LENGTH);
    close_talk(&talk);
}

static volatile bool cancelled;

static bool cancel_soon(void *user, const char *text, size_t n)
{
    (void)text;
    *(size_t *)user += n;
    if (*(size_t *)user > 10) cancelled = true;
    return true;
}

static void a_stopped_answer_is_kept(void **state)
{
    (void)state;
    struct talk talk = open_talk(256, &cancelled);
    whit_error error;
    whit_sampler *sampler;
    size_t n_bytes = 0;
    whit_sampler_options sampling = whit_sampler_options_default();
    sampling.temperature = 0;
    assert_ok(whit_sampler_open(model, &sampling, &sampler, &error), error);
    whit_answer_options options = whit_answer_options_default();
    options.n_tokens = 200;
    options.ignore_end = true;
    options.on_text = cancel_soon;
    options.user = &n_bytes;
    whit_answer answer = whit_answer_default();
    say(&talk, "user", "the land");
    assert_int_equal(whit_conversation_answer(talk.conversation, sampler, &options, &answer, &error),
                     WHIT_ERROR_CANCELLED);
    assert_int_equal(whit_conversation_count(talk.conversation), 2);
    assert_true(strlen(message_of(&talk, 1)) >= n_bytes + strlen("{\"role\": \"assistant\", \"content\": \"\"}"));
    whit_sampler_close(sampler);

    /* no answer while it is cancelled; the conversation continues afterwards */
    say(&talk, "user", "and then");
    assert_int_equal(try_answer(&talk, 0, 8, 0, &answer, &error), WHIT_ERROR_CANCELLED);
    assert_int_equal(whit_conversation_count(talk.conversation), 3);
    cancelled = false;
    answer = answer_now(&talk, 0, 8, 0);
    assert_int_equal(whit_conversation_count(talk.conversation), 4);
    close_talk(&talk);
}

/* Turns that were dropped for a message that is then cancelled or removed must be restored. */
static void turns_come_back(void **state)
{
    (void)state;
    struct talk talk = open_talk(160, &cancelled);
    whit_error error;
    whit_answer answer = whit_answer_default();
    while (!answer.n_left_out) {
        const size_t before = whit_conversation_n_left_out(talk.conversation);
        say(&talk, "user", "the ocean and the land");
        cancelled = true;
        assert_int_equal(try_answer(&talk, 0, 8, 0, &answer, &error), WHIT_ERROR_CANCELLED);
        assert_int_equal(answer.n_left_out, 0);
        assert_int_equal(whit_conversation_n_left_out(talk.conversation), before);
        cancelled = false;
        answer = answer_now(&talk, 0, 8, 0);
        assert_int_equal(whit_conversation_n_left_out(talk.conversation), before + answer.n_left_out);
        assert_true(whit_conversation_count(talk.conversation) < 40);
    }
    const size_t n = whit_conversation_count(talk.conversation);
    whit_conversation_keep(talk.conversation, n - 1);
    assert_int_equal(whit_conversation_n_left_out(talk.conversation),
                     answer.n_left_out); /* the question is still there */
    whit_conversation_keep(talk.conversation, n - 2);
    assert_int_equal(whit_conversation_n_left_out(talk.conversation), 0);
    close_talk(&talk);
}

static const char with_call[] =
    "[{\"role\": \"user\", \"content\": [\"x\"]}, {\"role\": \"assistant\", \"content\": null, \"tool_calls\": ["
    "{\"id\": \"a\", \"function\": {\"name\": \"one\", \"arguments\": {}}}]}]";
static char saved_path[] = "/tmp/whit-saved-XXXXXX";

/* Plays two turns with a system message and a call, and saves them. The first failure ends it; everything is closed in
 * any case. */
static whit_status short_talk(const whit_model *of, whit_error *error)
{
    whit_session *session = NULL;
    whit_sampler *sampler = NULL;
    whit_chat_template *chat = NULL;
    whit_conversation *c = NULL;
    whit_session_options session_options = whit_session_options_default();
    session_options.n_threads = 1;
    session_options.n_ctx_tokens = 128;
    whit_answer_options options = whit_answer_options_default();
    options.n_tokens = 3;
    whit_status status = whit_chat_template_open(of, NULL, &chat, error);
    if (status == WHIT_OK) status = whit_session_open(of, &session_options, &session, error);
    if (status == WHIT_OK) status = whit_sampler_open(of, NULL, &sampler, error);
    if (status == WHIT_OK) status = whit_conversation_open(session, 0, chat, &c, error);
    if (status == WHIT_OK) status = whit_conversation_set_system(c, "be brief", 8, error);
    for (int turn = 0; turn < 2; turn++) {
        size_t before = c ? whit_conversation_count(c) : 0;
        if (status == WHIT_OK) status = whit_conversation_say(c, "user", "the land", 8, error);
        if (status == WHIT_OK) {
            status = whit_conversation_answer(c, sampler, &options, NULL, error);
            assert_int_equal(whit_conversation_count(c), before + 1 + (status == WHIT_OK));
        }
    }
    if (status == WHIT_OK) status = whit_conversation_append(c, with_call, sizeof with_call - 1, error);
    if (status == WHIT_OK) status = whit_conversation_return(c, "18", 2, error);
    if (status == WHIT_OK) status = whit_conversation_save(c, saved_path, error);
    if (status == WHIT_OK) status = whit_conversation_load(c, saved_path, error);
    if (status == WHIT_OK) assert_int_equal(whit_conversation_count(c), 8);
    whit_conversation_close(c);
    whit_sampler_close(sampler);
    whit_session_close(session);
    whit_chat_template_close(chat);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    struct failing failing = {.n_left = LONG_MAX};
    whit_allocator allocator = {failing_alloc, failing_free, &failing};
    whit_model_options options = {.struct_bytes = sizeof options, .no_cache = true, .allocator = &allocator};
    whit_model *own;
    whit_error error;
    close(mkstemp(saved_path));
    unlink(saved_path);
    assert_ok(whit_model_open(model_path, &options, &own, &error), error);
    assert_ok(short_talk(own, &error), error); /* from here on the model keeps a tokenizer */
    long kept = failing.n_live;
    whit_status status = WHIT_ERROR_MEMORY;
    for (long n = 0; status != WHIT_OK; n++) {
        assert_true(n < 5000);
        failing.n_left = n;
        status = short_talk(own, &error);
        if (status != WHIT_OK) assert_int_equal(status, WHIT_ERROR_MEMORY);
        if (failing.n_live != kept) fail_msg("allocation %ld refused: %ld kept", n, failing.n_live);
    }
    failing.n_left = LONG_MAX;
    whit_model_close(own);
    assert_int_equal(failing.n_live, 0);
    unlink(saved_path);
}

/* ---- tokens that the session has already ----------------------------------------------------- */

static void present_tokens_must_be_there(void **state)
{
    (void)state;
    static const int32_t ids[] = {TINY_BOS, 260, 270, 280};
    struct talk talk = open_talk(64, NULL);
    whit_error error;
    whit_sampler *sampler;
    whit_generate_options options = whit_generate_options_default();
    whit_generate_result result = whit_generate_result_default();
    options.n_tokens = 2;
    assert_ok(whit_sampler_open(model, NULL, &sampler, &error), error);
    options.n_present = 3; /* the sequence is empty */
    assert_int_equal(whit_generate(talk.session, sampler, ids, 4, &options, &result, &error), WHIT_ERROR_ARGUMENT);
    options.n_present = 0;
    assert_ok(whit_generate(talk.session, sampler, ids, 4, &options, &result, &error), error);
    assert_ok(whit_session_truncate(talk.session, 0, 4, &error), error);
    options.n_present = 4; /* no token is left whose logits could be computed */
    assert_int_equal(whit_generate(talk.session, sampler, ids, 4, &options, &result, &error), WHIT_ERROR_ARGUMENT);
    assert_ok(whit_session_truncate(talk.session, 0, 3, &error), error);
    options.n_present = 3;
    assert_ok(whit_generate(talk.session, sampler, ids, 4, &options, &result, &error), error);
    assert_int_equal(result.n_prompt_tokens, 1);
    whit_sampler_close(sampler);
    close_talk(&talk);
}

/* ---- the group ------------------------------------------------------------------------------ */

static int open_model(void **state)
{
    (void)state;
    tiny_model tiny = tiny_model_default();
    tiny.chat_template = TINY_TEMPLATE;
    whit_model_options options = {.struct_bytes = sizeof options, .no_cache = true};
    return tiny_model_make(&tiny, model_path) == 0 && whit_model_open(model_path, &options, &model, NULL) == WHIT_OK
        ? 0
        : -1;
}

static int close_model(void **state)
{
    (void)state;
    whit_model_close(model);
    return unlink(model_path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_keep_their_order),    cmocka_unit_test(files_say_the_same),
        cmocka_unit_test(calls_wait_for_results),       cmocka_unit_test(required_calls_are_made),
        cmocka_unit_test(what_users_write_is_no_token), cmocka_unit_test(templates_say_how_turns_end),
        cmocka_unit_test(system_messages_find_a_place), cmocka_unit_test(only_new_tokens_are_evaluated),
        cmocka_unit_test(an_answer_can_be_given_again), cmocka_unit_test(the_oldest_turns_make_room),
        cmocka_unit_test(a_stopped_answer_is_kept),     cmocka_unit_test(turns_come_back),
        cmocka_unit_test(every_allocation_may_fail),    cmocka_unit_test(present_tokens_must_be_there),
    };
    return cmocka_run_group_tests_name("conversation", tests, open_model, close_model);
}
