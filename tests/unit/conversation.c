/* SPDX-License-Identifier: MIT
 * Conversations: messages and their files, prompts, thinking in streams, and answers that depend on
 * the conversation alone, whatever is in the cache. */
#include "test.h"

#include "failing_memory.h"
#include "runtime/conversation.h"
#include "runtime/text.h"
#include "tiny_model.h"

static char model_path[] = "/tmp/whit-chat-XXXXXX";
static whit_model *model;

/* ---- messages ------------------------------------------------------------------------------- */

static void say(whit_messages *messages, whit_role role, const char *text)
{
    whit_error error;
    assert_ok(whit_messages_add(messages, role, text, strlen(text), &error), error);
}

static void assert_message(const whit_messages *messages, size_t i, whit_role role, const char *text)
{
    const whit_message *message = whit_messages_at(messages, i);
    assert_int_equal(message->role, role);
    assert_string_equal(message->text, text);
    assert_int_equal(message->text_bytes, strlen(text));
}

static void messages_keep_their_order(void **state)
{
    (void)state;
    whit_messages m = {0};
    whit_error error;
    say(&m, WHIT_ROLE_USER, "one");
    assert_null(whit_messages_system(&m));
    assert_ok(whit_messages_set_system(&m, "first", 5, &error), error);
    say(&m, WHIT_ROLE_ASSISTANT, "two \xFF\xC3");
    assert_ok(whit_messages_set_system(&m, "last", 4, &error), error);
    assert_int_equal(whit_messages_count(&m), 3);
    assert_message(&m, 0, WHIT_ROLE_SYSTEM, "last");
    assert_message(&m, 1, WHIT_ROLE_USER, "one");
    assert_message(&m, 2, WHIT_ROLE_ASSISTANT, "two \xEF\xBF\xBD\xEF\xBF\xBD");
    assert_false(whit_messages_take_back(&m, WHIT_ROLE_USER));
    assert_true(whit_messages_take_back(&m, WHIT_ROLE_ASSISTANT));
    whit_messages_clear(&m);
    assert_int_equal(whit_messages_count(&m), 1);
    assert_ok(whit_messages_set_system(&m, "", 0, &error), error);
    assert_int_equal(whit_messages_count(&m), 0);
    whit_messages_free(&m);
}

static void files_say_the_same(void **state)
{
    (void)state;
    whit_messages m = {0}, read = {0};
    whit_buf text = {0}, again = {0};
    whit_error error;
    assert_ok(whit_messages_set_system(&m, "be \"short\"", 10, &error), error);
    assert_ok(whit_messages_add(&m, WHIT_ROLE_USER, "a\0b\n\xC3\xA9", 6, &error), error);
    say(&m, WHIT_ROLE_ASSISTANT, "");
    assert_ok(whit_messages_write(&m, &text, &error), error);
    assert_int_equal(text.data[text.size_bytes - 1], '\n');
    assert_null(memchr(text.data, '\n', text.size_bytes - 1));
    assert_ok(whit_messages_read(&read, "file", (const char *)text.data, text.size_bytes, &error), error);
    assert_ok(whit_messages_write(&read, &again, &error), error);
    assert_int_equal(text.size_bytes, again.size_bytes);
    assert_memory_equal(text.data, again.data, text.size_bytes);

    static const char *const bad[] = {
        "",
        "[]",
        "{\"messages\": 1}",
        "{\"messages\": [1]}",
        "{\"messages\": [{\"role\": \"user\"}]}",
        "{\"messages\": [{\"role\": \"tool\", \"content\": \"x\"}]}",
        "{\"messages\": [{\"role\": \"user\", \"content\": [\"x\"]}]}",
        "{\"messages\": [{\"role\": \"user\", \"content\": \"x\", \"tool_calls\": []}]}",
        "{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}, {\"role\": \"system\", "
        "\"content\": \"y\"}]}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(whit_messages_read(&read, "file", bad[i], strlen(bad[i]), &error), WHIT_ERROR_FORMAT);
        assert_non_null(strstr(error.message, "file"));
        assert_int_equal(whit_messages_count(&read), 3);
    }
    whit_messages_free(&m);
    whit_messages_free(&read);
    whit_buf_free(&text);
    whit_buf_free(&again);
}

/* ---- thinking ------------------------------------------------------------------------------- */

struct parts {
    char thought[256], said[256];
    size_t n_thought, n_said;
};

static bool on_part(void *user, const char *text, size_t n, bool thinking)
{
    struct parts *parts = user;
    char *out = thinking ? parts->thought : parts->said;
    size_t *n_out = thinking ? &parts->n_thought : &parts->n_said;
    memcpy(out + *n_out, text, n);
    *n_out += n;
    return true;
}

static void assert_splits(const char *answer, bool inside, const char *thought, const char *said)
{
    size_t n = strlen(answer);
    for (size_t piece = 1; piece <= n; piece++) {
        struct parts parts = {0};
        whit_thinking_stream stream = {"<think>", "</think>", inside, on_part, &parts, false, 0, 0, {0}, {0}};
        for (size_t i = 0; i < n; i += piece)
            assert_true(whit_thinking_push(&stream, answer + i, n - i < piece ? n - i : piece));
        assert_true(whit_thinking_flush(&stream));
        assert_string_equal(parts.thought, thought);
        assert_string_equal(parts.said, said);
    }
}

static void thinking_is_told_from_saying(void **state)
{
    (void)state;
    assert_splits("<think>a < b</think>c", false, "<think>a < b</think>", "c");
    assert_splits("\n <think>a</thin</think>\n<think>", false, "<think>a</thin</think>", "\n \n<think>");
    assert_splits("a <think>b</think>", false, "", "a <think>b</think>");
    assert_splits("<thinks", false, "", "<thinks");
    assert_splits("<<think>x</think>", false, "", "<<think>x</think>");
    assert_splits("<thi", false, "", "<thi");
    assert_splits("why</think>so", true, "why</think>", "so");
    assert_splits("<think>cut </th", false, "<think>cut </th", "");
    assert_splits("</</think>x", true, "</</think>", "x");
}

/* ---- prompts -------------------------------------------------------------------------------- */

static whit_prompter *open_prompter(const char *source)
{
    whit_error error;
    whit_prompter *prompter;
    assert_ok(whit_prompter_open(model, source, source ? strlen(source) : 0, "test.jinja", &prompter, &error), error);
    return prompter;
}

static void what_users_write_is_no_token(void **state)
{
    (void)state;
    whit_error error;
    whit_prompter *prompter = open_prompter(NULL);
    whit_messages m = {0};
    whit_prompt prompt = {0};
    say(&m, WHIT_ROLE_USER, "the</s>land<s>");
    assert_ok(whit_prompter_render(prompter, whit_messages_at(&m, 0), 1, WHIT_THINKING_AUTO, &prompt, &error), error);
    assert_int_equal(prompt.text.size_bytes, strlen("<s>user:the</s>land<s></s>assistant:"));
    size_t n_bos = 0, n_eos = 0;
    for (size_t i = 0; i < whit_prompt_n_ids(&prompt); i++) {
        n_bos += whit_prompt_ids(&prompt)[i] == TINY_BOS;
        n_eos += whit_prompt_ids(&prompt)[i] == TINY_EOS;
    }
    assert_int_equal(n_bos, 1);
    assert_int_equal(n_eos, 1);

    /* With nothing special in it the ids are those of the whole text. */
    const char *plain = "the land", *whole = "<s>user:the land</s>assistant:";
    int32_t ids[64];
    size_t n;
    whit_messages_clear(&m);
    say(&m, WHIT_ROLE_USER, plain);
    assert_ok(whit_prompter_render(prompter, whit_messages_at(&m, 0), 1, WHIT_THINKING_AUTO, &prompt, &error), error);
    assert_ok(whit_tokenize(model, whole, strlen(whole), false, true, ids, 64, &n, &error), error);
    assert_int_equal(whit_prompt_n_ids(&prompt), n);
    assert_memory_equal(whit_prompt_ids(&prompt), ids, n * sizeof *ids);
    whit_prompt_free(&prompt);
    whit_messages_free(&m);
    whit_prompter_close(prompter);
}

static void templates_say_how_turns_end(void **state)
{
    (void)state;
    whit_error error;
    whit_prompter *prompter = open_prompter(NULL);
    assert_true(whit_prompter_ends_turn(prompter, TINY_EOS));
    assert_false(whit_prompter_ends_turn(prompter, TINY_BOS));
    assert_false(whit_prompter_ends_turn(prompter, -1));
    assert_null(whit_prompter_stop(prompter));
    assert_string_equal(whit_prompter_thinking_open(prompter), "<think>");
    whit_prompter_close(prompter);

    prompter = open_prompter("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
                             "{# [THINK] [/THINK] #}");
    assert_string_equal(whit_prompter_stop(prompter), "\nuser:");
    assert_string_equal(whit_prompter_thinking_close(prompter), "[/THINK]");
    whit_prompter_close(prompter);

    prompter = open_prompter("{{ raise_exception('never') }}"); /* opens; says so when used */
    whit_messages m = {0};
    whit_prompt prompt = {0};
    say(&m, WHIT_ROLE_USER, "x");
    assert_int_not_equal(
        whit_prompter_render(prompter, whit_messages_at(&m, 0), 1, WHIT_THINKING_AUTO, &prompt, &error), WHIT_OK);
    assert_non_null(strstr(error.message, "never"));
    assert_non_null(strstr(error.message, "test.jinja"));
    whit_prompter_close(prompter);
    assert_int_equal(whit_prompter_open(model, "{% if %}", 8, "test.jinja", &prompter, &error), WHIT_ERROR_FORMAT);
    assert_null(prompter);

    prompter = open_prompter("{{ messages[0].content }}{% if enable_thinking is defined %}"
                             "{{ enable_thinking }}{% endif %}<think>\n");
    static const char *const expected[] = {"x<think>", "xTrue<think>", "xFalse<think>"};
    for (int t = WHIT_THINKING_AUTO; t <= WHIT_THINKING_OFF; t++) {
        assert_ok(whit_prompter_render(prompter, whit_messages_at(&m, 0), 1, (whit_thinking)t, &prompt, &error), error);
        assert_memory_equal(prompt.text.data, expected[t], strlen(expected[t]));
        assert_true(prompt.thinking);
    }
    whit_prompter_close(prompter);
    prompter = open_prompter("<think></think>{{ messages[0].content }}");
    whit_messages_clear(&m);
    say(&m, WHIT_ROLE_USER, "<think>");
    assert_ok(whit_prompter_render(prompter, whit_messages_at(&m, 0), 1, WHIT_THINKING_AUTO, &prompt, &error), error);
    assert_false(prompt.thinking); /* a user's mark opens nothing */
    whit_prompter_close(prompter);
    whit_prompt_free(&prompt);
    whit_messages_free(&m);
}

/* ---- answers -------------------------------------------------------------------------------- */

struct talk {
    whit_session *session;
    whit_prompter *prompter;
    whit_conversation *conversation;
    whit_messages *messages;
};

static struct talk open_talk(uint32_t n_ctx, const volatile bool *cancel)
{
    struct talk talk = {.prompter = open_prompter(NULL)};
    whit_error error;
    whit_session_options options = whit_session_options_default();
    options.n_ctx_tokens = n_ctx;
    options.n_threads = 1;
    options.n_logits = 5;
    options.cancel = cancel;
    assert_ok(whit_session_open(model, &options, &talk.session, &error), error);
    assert_ok(whit_conversation_open(talk.session, 0, talk.prompter, &talk.conversation, &error), error);
    talk.messages = whit_conversation_messages(talk.conversation);
    return talk;
}

static void close_talk(struct talk *talk)
{
    whit_conversation_close(talk->conversation);
    whit_session_close(talk->session);
    whit_prompter_close(talk->prompter);
}

static whit_status try_answer(struct talk *talk, float temperature, uint32_t n_tokens, uint32_t n_draft,
                              whit_answer *answer, whit_error *error)
{
    whit_sampler *sampler;
    whit_sampler_options sampling = whit_sampler_options_default();
    sampling.temperature = temperature;
    sampling.repeat_penalty = 1.2f;
    sampling.seed = 3;
    assert_ok(whit_sampler_open(model, &sampling, &sampler, error), *error);
    whit_answer_options options = {.n_tokens = n_tokens, .n_draft_tokens = n_draft, .ignore_end = true};
    whit_status status = whit_conversation_answer(talk->conversation, sampler, &options, answer, error);
    whit_sampler_close(sampler);
    return status;
}

static whit_answer answer_now(struct talk *talk, float temperature, uint32_t n_tokens, uint32_t n_draft)
{
    whit_answer answer;
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
        for (int turn = 0; turn < 3; turn++) {
            int32_t before[256];
            held = whit_conversation_ids(talk.conversation, &n_held_before);
            if (n_held_before) memcpy(before, held, n_held_before * sizeof *held);
            say(talk.messages, WHIT_ROLE_USER, "the land and the ocean");
            whit_answer answer = answer_now(&talk, temperature, 9, run == 2 ? 4 : 0);
            assert_int_equal(answer.n_generated, 9);
            /* Everything that the prompt has in common with the sequence was kept. */
            size_t n, common = 0, n_prompt = answer.n_kept + answer.n_prompt;
            held = whit_conversation_ids(talk.conversation, &n);
            while (common < n_held_before && common < n_prompt - 1 && held[common] == before[common]) common++;
            assert_int_equal(answer.n_kept, common);
            assert_int_equal(n, n_prompt + 9 - 1);
            assert_int_equal(n, whit_session_position(talk.session, 0));
            if (turn) assert_true(answer.n_kept > 10);

            /* A conversation that begins with these messages answers the same. */
            struct talk restarted = open_talk(256, NULL);
            for (size_t i = 0; i + 1 < whit_messages_count(talk.messages); i++) {
                const whit_message *message = whit_messages_at(talk.messages, i);
                say(restarted.messages, message->role, message->text);
            }
            whit_answer again = answer_now(&restarted, temperature, 9, 0);
            assert_int_equal(again.n_kept, 0);
            assert_int_equal(again.n_prompt, n_prompt);
            size_t last = whit_messages_count(talk.messages) - 1;
            assert_string_equal(whit_messages_at(talk.messages, last)->text,
                                whit_messages_at(restarted.messages, last)->text);
            close_talk(&restarted);
        }
        close_talk(&talk);
    }
}

static void an_answer_can_be_given_again(void **state)
{
    (void)state;
    struct talk talk = open_talk(256, NULL);
    say(talk.messages, WHIT_ROLE_USER, "the land");
    answer_now(&talk, 0.8f, 12, 0);
    char first[512];
    snprintf(first, sizeof first, "%s", whit_messages_at(talk.messages, 1)->text);
    assert_true(whit_messages_take_back(talk.messages, WHIT_ROLE_ASSISTANT));
    whit_answer again = answer_now(&talk, 0.8f, 12, 0);
    assert_int_equal(again.n_prompt, 1); /* the last token, for its logits */
    assert_string_equal(whit_messages_at(talk.messages, 1)->text, first);
    close_talk(&talk);
}

static void the_oldest_turns_make_room(void **state)
{
    (void)state;
    struct talk talk = open_talk(160, NULL);
    whit_error error;
    assert_ok(whit_messages_set_system(talk.messages, "on land", 7, &error), error);
    uint32_t n_drops = 0;
    for (int turn = 0; turn < 12; turn++) {
        char text[64];
        snprintf(text, sizeof text, "the ocean and the land %d", turn);
        say(talk.messages, WHIT_ROLE_USER, text);
        size_t before = talk.messages->n_left_out, n;
        whit_answer answer = answer_now(&talk, 0, 8, 0);
        assert_int_equal(answer.n_generated, 8);
        assert_int_equal(talk.messages->n_left_out, before + answer.n_left_out);
        assert_int_equal(talk.messages->n_left_out % 2, 0);
        assert_int_equal(whit_messages_count(talk.messages), 1 + 2 * (turn + 1));
        const char *prompt = whit_conversation_prompt(talk.conversation, &n);
        assert_memory_equal(prompt, "<s>system:on land</s>user:the", 29);
        assert_non_null(memmem(prompt, n, text, strlen(text)));
        n_drops += answer.n_left_out > 0;
        if (answer.n_left_out) assert_true(answer.n_kept + answer.n_prompt <= 80);
    }
    assert_true(n_drops >= 1 && n_drops < 6); /* rarely: several turns go at once */
    whit_messages_clear(talk.messages);
    assert_int_equal(talk.messages->n_left_out, 0);

    /* A message that cannot fit changes nothing; the next one is answered. */
    char *long_text = calloc(1, 1000);
    memset(long_text, 'q', 999);
    say(talk.messages, WHIT_ROLE_USER, long_text);
    free(long_text);
    whit_answer answer;
    assert_int_equal(try_answer(&talk, 0, 8, 0, &answer, &error), WHIT_ERROR_LIMIT);
    assert_non_null(strstr(error.message, "160"));
    assert_int_equal(whit_messages_count(talk.messages), 2);
    assert_true(whit_messages_take_back(talk.messages, WHIT_ROLE_USER));
    say(talk.messages, WHIT_ROLE_USER, "the land");
    answer = answer_now(&talk, 0, UINT32_MAX, 0);
    assert_true(answer.full);
    assert_int_equal(answer.finish, WHIT_FINISH_LENGTH);
    close_talk(&talk);
}

static volatile bool cancelled;

static bool cancel_soon(void *user, const char *text, size_t n, bool thinking)
{
    (void)text;
    (void)thinking;
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
    whit_answer_options options = {.n_tokens = 200, .ignore_end = true, .on_part = cancel_soon, .user = &n_bytes};
    whit_answer answer;
    say(talk.messages, WHIT_ROLE_USER, "the land");
    assert_int_equal(whit_conversation_answer(talk.conversation, sampler, &options, &answer, &error),
                     WHIT_ERROR_CANCELLED);
    assert_int_equal(whit_messages_count(talk.messages), 2);
    assert_int_equal(whit_messages_at(talk.messages, 1)->text_bytes, n_bytes);
    whit_sampler_close(sampler);

    /* While it is cancelled nothing comes; then the conversation goes on as any other. */
    say(talk.messages, WHIT_ROLE_USER, "and then");
    assert_int_equal(try_answer(&talk, 0, 8, 0, &answer, &error), WHIT_ERROR_CANCELLED);
    assert_int_equal(whit_messages_count(talk.messages), 3);
    cancelled = false;
    answer = answer_now(&talk, 0, 8, 0);
    assert_int_equal(whit_messages_count(talk.messages), 4);
    close_talk(&talk);
}

/* What is left out for a message that is cancelled or taken back is left out no more. */
static void turns_come_back(void **state)
{
    (void)state;
    struct talk talk = open_talk(160, &cancelled);
    whit_error error;
    whit_answer answer = {0};
    while (!answer.n_left_out) {
        const size_t before = talk.messages->n_left_out;
        say(talk.messages, WHIT_ROLE_USER, "the ocean and the land");
        cancelled = true;
        assert_int_equal(try_answer(&talk, 0, 8, 0, &answer, &error), WHIT_ERROR_CANCELLED);
        assert_int_equal(answer.n_left_out, 0);
        assert_int_equal(talk.messages->n_left_out, before);
        cancelled = false;
        answer = answer_now(&talk, 0, 8, 0);
        assert_int_equal(talk.messages->n_left_out, before + answer.n_left_out);
        assert_true(whit_messages_count(talk.messages) < 40);
    }
    assert_true(whit_messages_take_back(talk.messages, WHIT_ROLE_ASSISTANT));
    assert_int_equal(talk.messages->n_left_out, answer.n_left_out); /* the question is still there */
    assert_true(whit_messages_take_back(talk.messages, WHIT_ROLE_USER));
    assert_int_equal(talk.messages->n_left_out, 0);
    close_talk(&talk);
}

/* Two turns with a system message, and a file of them. The first failure ends it; everything is
 * closed in any case. */
static whit_status short_talk(const whit_model *of, whit_error *error)
{
    whit_session *session = NULL;
    whit_sampler *sampler = NULL;
    whit_prompter *prompter = NULL;
    whit_conversation *c = NULL;
    whit_messages *m = NULL;
    whit_buf text = {0};
    whit_session_options session_options = whit_session_options_default();
    session_options.n_threads = 1;
    session_options.n_ctx_tokens = 128;
    whit_answer_options options = {.n_tokens = 3};
    whit_status status = whit_prompter_open(of, NULL, 0, NULL, &prompter, error);
    if (status == WHIT_OK) status = whit_session_open(of, &session_options, &session, error);
    if (status == WHIT_OK) status = whit_sampler_open(of, NULL, &sampler, error);
    if (status == WHIT_OK) status = whit_conversation_open(session, 0, prompter, &c, error);
    if (status == WHIT_OK) {
        m = whit_conversation_messages(c);
        text.allocator = m->items.allocator;
        status = whit_messages_set_system(m, "be brief", 8, error);
    }
    for (int turn = 0; turn < 2; turn++) {
        size_t before = m ? whit_messages_count(m) : 0;
        if (status == WHIT_OK) status = whit_messages_add(m, WHIT_ROLE_USER, "the land", 8, error);
        if (status == WHIT_OK) {
            status = whit_conversation_answer(c, sampler, &options, NULL, error);
            assert_int_equal(whit_messages_count(m), before + 1 + (status == WHIT_OK));
        }
    }
    if (status == WHIT_OK) status = whit_messages_write(m, &text, error);
    if (status == WHIT_OK) status = whit_messages_read(m, "text", (const char *)text.data, text.size_bytes, error);
    whit_buf_free(&text);
    whit_conversation_close(c);
    whit_sampler_close(sampler);
    whit_session_close(session);
    whit_prompter_close(prompter);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    struct failing failing = {.n_left = 1L << 40};
    whit_allocator allocator = {failing_alloc, failing_free, &failing};
    whit_model_options options = {.struct_bytes = sizeof options, .no_cache = true, .allocator = &allocator};
    whit_model *own;
    whit_error error;
    assert_ok(whit_model_open(model_path, &options, &own, &error), error);
    assert_ok(short_talk(own, &error), error); /* the model keeps a tokenizer from here on */
    long kept = failing.n_live;
    whit_status status = WHIT_ERROR_MEMORY;
    for (long n = 0; status != WHIT_OK; n++) {
        assert_true(n < 5000);
        failing.n_left = n;
        status = short_talk(own, &error);
        if (status != WHIT_OK) assert_int_equal(status, WHIT_ERROR_MEMORY);
        if (failing.n_live != kept) fail_msg("allocation %ld refused: %ld kept", n, failing.n_live);
    }
    failing.n_left = 1L << 40;
    whit_model_close(own);
    assert_int_equal(failing.n_live, 0);
}

/* ---- what is present needs no feeding -------------------------------------------------------- */

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
    options.n_present = 3; /* of an empty sequence */
    assert_int_equal(whit_generate(talk.session, sampler, ids, 4, &options, &result, &error), WHIT_ERROR_ARGUMENT);
    options.n_present = 0;
    assert_ok(whit_generate(talk.session, sampler, ids, 4, &options, &result, &error), error);
    assert_ok(whit_session_truncate(talk.session, 0, 4, &error), error);
    options.n_present = 4; /* nothing left to get logits from */
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
        cmocka_unit_test(thinking_is_told_from_saying), cmocka_unit_test(what_users_write_is_no_token),
        cmocka_unit_test(templates_say_how_turns_end),  cmocka_unit_test(only_new_tokens_are_evaluated),
        cmocka_unit_test(an_answer_can_be_given_again), cmocka_unit_test(the_oldest_turns_make_room),
        cmocka_unit_test(a_stopped_answer_is_kept),     cmocka_unit_test(turns_come_back),
        cmocka_unit_test(every_allocation_may_fail),    cmocka_unit_test(present_tokens_must_be_there),
    };
    return cmocka_run_group_tests_name("conversation", tests, open_model, close_model);
}
