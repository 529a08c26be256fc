/* SPDX-License-Identifier: MIT
 * Tests that streamed answers are separated into text, thinking and calls, however they are cut into pieces. */
#include "test.h"

#include "base/utf8.h"
#include "failing_memory.h"
#include "runtime/chat.h"

struct told {
    char log[4096];
    size_t n;
    whit_chat_event_kind last;
    bool any;
    size_t stop_after;
};

/* Writes events as one text: t(...) for text, k(...) for thinking, [name|arguments] for calls, ! where a call is cut
 * off. */
static bool on_event(void *user, const whit_chat_event *event)
{
    struct told *told = user;
    static const char *const open[] = {"t(", "k(", "[", "|", ""};
    bool goes_on = told->any && told->last == event->kind && event->kind != WHIT_CHAT_CALL_BEGIN;
    if (told->any && !goes_on && told->last <= WHIT_CHAT_THINKING) told->log[told->n++] = ')';
    if (!goes_on) told->n += (size_t)sprintf(told->log + told->n, "%s", open[event->kind]);
    assert_true(told->n + event->text_bytes + 8 < sizeof told->log);
    memcpy(told->log + told->n, event->text, event->text_bytes);
    told->n += event->text_bytes;
    if (event->kind == WHIT_CHAT_CALL_END)
        told->n += (size_t)sprintf(told->log + told->n, "%s]", event->complete ? "" : "!");
    told->last = event->kind;
    told->any = true;
    return !told->stop_after || --told->stop_after;
}

static whit_status parse(whit_call_syntax syntax, bool tools, bool thinking, const char *answer, size_t piece,
                         struct told *told, char *message, const whit_allocator *allocator, whit_error *error)
{
    whit_chat_parser *parser;
    size_t n = strlen(answer), n_message;
    WHIT_TRY(
        whit_answer_open(syntax, tools, "<think>", "</think>", thinking, on_event, told, allocator, &parser, error));
    whit_status status = WHIT_OK;
    for (size_t i = 0; status == WHIT_OK && i < n; i += piece)
        status = whit_chat_parser_push(parser, answer + i, n - i < piece ? n - i : piece, error);
    if (status == WHIT_OK) status = whit_chat_parser_flush(parser, error);
    if (told->any && told->last <= WHIT_CHAT_THINKING) told->log[told->n++] = ')';
    told->log[told->n] = 0;
    const char *text = whit_chat_parser_message(parser, &n_message);
    if (message) snprintf(message, 4096, "%.*s", (int)n_message, text);
    whit_chat_parser_close(parser);
    return status;
}

static void assert_told(whit_call_syntax syntax, bool tools, bool thinking, const char *answer, const char *expected)
{
    whit_error error;
    for (size_t piece = 1; piece <= strlen(answer); piece++) {
        struct told told = {.n = 0};
        assert_ok(parse(syntax, tools, thinking, answer, piece, &told, NULL, NULL, &error), error);
        if (strcmp(told.log, expected) != 0) fail_msg("pieces of %zu: %s\nnot %s", piece, told.log, expected);
    }
}

#define TAGGED  WHIT_CALLS_TAGGED, true, false
#define MISTRAL WHIT_CALLS_MISTRAL, true, false
#define LLAMA   WHIT_CALLS_LLAMA, true, false

static void thinking_and_text(void **state)
{
    (void)state;
    assert_told(WHIT_CALLS_TAGGED, false, false, "\n <think>a < b</think>\n\nso", "k(a < b)t(so)");
    assert_told(WHIT_CALLS_TAGGED, false, true, "why</think>so", "k(why)t(so)");
    assert_told(WHIT_CALLS_TAGGED, false, false, " a <think>b</think> ", "t( a <think>b</think> )");
    assert_told(WHIT_CALLS_TAGGED, false, false, "<thi", "t(<thi)");
    assert_told(WHIT_CALLS_TAGGED, false, true, "cut </th", "k(cut </th)");
    assert_told(WHIT_CALLS_TAGGED, false, false, "<tool_call>\n{\"name\": \"x\"}", "t(<tool_call>\n{\"name\": \"x\"})");
}

static void calls_between_tags(void **state)
{
    (void)state;
    assert_told(
        TAGGED,
        "Let me see.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \"}<\\\"\", \"b\": [1, {}]}}\n</tool_call>",
        "t(Let me see.)[f|{\"a\": \"}<\\\"\", \"b\": [1, {}]}]");
    assert_told(TAGGED,
                "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>\n<tool_call>{\"arguments\": {\"x\": 1}, "
                "\"name\": \"g\\u00e9\"}</tool_call>\nDone. ",
                "[f|{}][g\xC3\xA9|{\"x\": 1}]t(Done. )");
    assert_told(TAGGED, "<think>x</think>\n<tool_call>{\"name\": \"f\"}</tool_call>", "k(x)[f|{}]");
    assert_told(TAGGED, "<tool_call>{\"name\": \"f\", \"arguments\": \"{\\\"a\\\": 1}\"}", "[f|{\"a\": 1}]");
    assert_told(TAGGED, "a <tool_cal", "t(a <tool_cal)");
    assert_told(TAGGED, "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1}}</tool_c", "[f|{\"a\": 1}]");
}

static void what_is_no_call_is_text(void **state)
{
    (void)state;
    assert_told(TAGGED, "use <tool_call> here", "t(use <tool_call> here)");
    assert_told(TAGGED, "<tool_call>{\"nam\": 1} x", "t(<tool_call>{\"nam\": 1} x)");
    assert_told(TAGGED, "<tool_call>{\"name\": 7}", "t(<tool_call>{\"name\": 7})");
    assert_told(TAGGED, "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": ", "[f|{\"a\": !]");
    assert_told(TAGGED, "<tool_call>{\"name\": \"f\", \"arguments\": {a: 1}}</tool_call>", "[f|{a: 1}!]");
    assert_told(TAGGED, "<tool_call>{\"name\": \"f\", \"arguments\": {}, x}</tool_call>b", "[f|{}!]t(x}</tool_call>b)");
    assert_told(TAGGED, "<tool_call>{\"name\": \"f\", \"arguments\": {}, \"имя пользователя\": 1}",
                "[f|{}!]t(ователя\": 1})");
    assert_told(LLAMA, "{\"answer\": 42}", "t({\"answer\": 42})");
    assert_told(LLAMA, "{\"name\": \"Bob\", \"age\": 3}", "t({\"name\": \"Bob\", \"age\": 3})");
    assert_told(LLAMA, "{\"name\": \"Bob\"}", "t({\"name\": \"Bob\"})");
    assert_told(WHIT_CALLS_LLAMA, false, false, "{\"name\": \"f\", \"parameters\": {}}",
                "t({\"name\": \"f\", \"parameters\": {}})");
    assert_told(MISTRAL, "[TOOL_CALLS]nothing", "t([TOOL_CALLS]nothing)");
}

static bool on_characters(void *user, const whit_chat_event *event)
{
    (void)user;
    if (whit_utf8_valid_bytes((const uint8_t *)event->text, event->text_bytes) != event->text_bytes)
        fail_msg("cut in a character: '%.*s'", (int)event->text_bytes, event->text);
    return true;
}

/* Pushes an answer character by character, or all at once. */
static void assert_characters(const char *answer, bool by_character)
{
    whit_chat_parser *parser;
    whit_error error;
    size_t n = strlen(answer), end;
    assert_ok(whit_answer_open(WHIT_CALLS_TAGGED, true, "<think>", "</think>", false, on_characters, NULL, NULL,
                               &parser, &error),
              error);
    for (size_t i = 0; i < n; i = end) {
        end = by_character ? i + 1 : n;
        while (end < n && ((uint8_t)answer[end] & 0xC0) == 0x80) end++;
        assert_ok(whit_chat_parser_push(parser, answer + i, end - i, &error), error);
    }
    assert_ok(whit_chat_parser_flush(parser, &error), error);
    whit_chat_parser_close(parser);
}

/* A key is too long from byte 17 on, a name from byte 513 on; both bytes are inside a character here. */
static void what_is_no_call_is_cut_between_characters(void **state)
{
    (void)state;
    char name[700] = "<tool_call>{\"name\": \"a";
    for (int i = 0; i < 300; i++) strcat(name, "é");
    for (int by_character = 0; by_character < 2; by_character++) {
        assert_characters("<tool_call>\n{\"имя пользователя\": 1}", by_character);
        assert_characters("<tool_call>{\"name\": \"f\", \"arguments\": {}, \"имя пользователя\": 1}", by_character);
        assert_characters(name, by_character);
    }
}

static void other_syntaxes(void **state)
{
    (void)state;
    assert_told(MISTRAL,
                "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {\"a\": 1}, \"id\": \"abcdef123\"}, "
                "{\"name\": \"g\", \"arguments\": {}, \"id\": \"x\"}]",
                "[f|{\"a\": 1}][g|{}]");
    assert_told(WHIT_CALLS_GRANITE, true, false, "<|tool_call|>[{\"arguments\": {\"a\": 1}, \"name\": \"f\"}]",
                "[f|{\"a\": 1}]");
    assert_told(LLAMA, "{\"name\": \"f\", \"parameters\": {\"a\": \"1\"}}", "[f|{\"a\": \"1\"}]");
    assert_told(LLAMA,
                "<|python_tag|>{\"type\": \"function\", \"name\": \"f\", \"parameters\": {}}; {\"name\": \"g\", "
                "\"parameters\": {\"b\": null}}",
                "[f|{}][g|{\"b\": null}]");
    assert_told(LLAMA, "<|python_tag|>search.call(query=\"a, \\\"b\\\"\", n=3)",
                "[search|{\"query\": \"a, \\\"b\\\"\", \"n\": 3}]");
    assert_told(LLAMA, "<|python_tag|>print(1)", "t(<|python_tag|>print(1))");
    assert_told(WHIT_CALLS_DEEPSEEK, true, false,
                "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{\"a\": {\"b\": "
                "1}}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>g\n```json\n{}\n"
                "```<｜tool▁call▁end｜><｜tool▁calls▁end｜>so",
                "[f|{\"a\": {\"b\": 1}}][g|{}]t(so)");
}

#define GEMMA      WHIT_CALLS_GEMMA, true, false
#define GEMMA_CALL "<|tool_call>call:f{"

static void calls_of_gemma(void **state)
{
    (void)state;
    assert_told(GEMMA, "So: " GEMMA_CALL "a:<|\"|>x \"y\"\n<|<\xC3\xA9<|\"|>,n:-3.5,ok:true}<tool_call|>",
                "t(So:)[f|{\"a\": \"x \\\"y\\\"\\n<|<\xC3\xA9\", \"n\": -3.5, \"ok\": true}]");
    assert_told(GEMMA,
                GEMMA_CALL "o:{k:<|\"|>}<|\"|>,l:[1,[],{}]},z:[<|\"|>,<|\"|>]}<tool_call|><|tool_call>call:g{}"
                           "<tool_call|>Done.",
                "[f|{\"o\": {\"k\": \"}\", \"l\": [1, [], {}]}, \"z\": [\",\"]}][g|{}]t(Done.)");
    /* variants that models write: blanks, names in marks, Python's words, texts without marks */
    assert_told(GEMMA, "<|tool_call> call:f{ <|\"|>a b<|\"|>: None , c:New York}<tool_call|>",
                "[f|{\"a b\": null, \"c\": \"New York\"}]");
    assert_told(GEMMA, GEMMA_CALL "}<tool_ca", "[f|{}]");
    assert_told(GEMMA, GEMMA_CALL "a:<|\"|>cut", "[f|{\"a\": \"cut!]");
    assert_told(GEMMA, GEMMA_CALL "a:1]}", "[f|{\"a\": 1!]t(]})");
    assert_told(GEMMA, GEMMA_CALL "a:1,}", "[f|{\"a\": 1, !]t(})");
    assert_told(GEMMA, "<|tool_call>call:{}", "t(<|tool_call>call:{})");
    assert_told(GEMMA, "<|tool_call>f{}", "t(<|tool_call>f{})");
    assert_told(GEMMA, "</think>so", "t(so)"); /* end of a thought that did not begin */
    assert_told(GEMMA, GEMMA_CALL "}<tool_call|>\n<|tool_response>", "[f|{}]"); /* a token that ends answers */
    assert_told(GEMMA, GEMMA_CALL "}<tool_call|><|tool", "[f|{}]t(<|tool)");
    assert_told(WHIT_CALLS_GEMMA, false, false, GEMMA_CALL "}", "t(" GEMMA_CALL "})");
}

static void the_whole_is_a_message(void **state)
{
    (void)state;
    whit_error error;
    for (size_t piece = 1; piece < 80; piece++) {
        struct told told = {.n = 0};
        char message[4096];
        assert_ok(parse(TAGGED,
                        "<think>hm</think>ok \"\xC3\xA9\"\n<tool_call>{\"name\": \"f\", \"arguments\": {\"\xC3\xA9\": "
                        "1}}</tool_call>",
                        piece, &told, message, NULL, &error),
                  error);
        assert_string_equal(
            message,
            "{\"role\": \"assistant\", \"content\": \"ok \\\"\xC3\xA9\\\"\", \"reasoning_content\": \"hm\", "
            "\"tool_calls\": [{\"id\": \"call00000\", \"type\": \"function\", \"function\": {\"name\": \"f\", "
            "\"arguments\": \"{\\\"\xC3\xA9\\\": 1}\"}}]}");
    }
}

static void a_host_may_stop(void **state)
{
    (void)state;
    whit_error error;
    struct told told = {.stop_after = 2};
    assert_int_equal(parse(TAGGED, "one two three", 4, &told, NULL, NULL, &error), WHIT_ERROR_CANCELLED);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    whit_error error;
    whit_status status = WHIT_ERROR_MEMORY;
    for (long n = 0; status != WHIT_OK; n++) {
        struct failing failing = {.n_left = n};
        whit_allocator allocator = {failing_alloc, failing_free, &failing};
        struct told told = {.n = 0};
        status =
            parse(TAGGED, "<think>a</think>b <tool_call>{\"name\": \"f\", \"arguments\": {\"c\": 1}}</tool_call> d", 3,
                  &told, NULL, &allocator, &error);
        if (status != WHIT_OK && status != WHIT_ERROR_MEMORY) fail_msg("%s", error.message);
        assert_int_equal(failing.n_live, 0);
        assert_true(n < 500);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(thinking_and_text),
        cmocka_unit_test(calls_between_tags),
        cmocka_unit_test(what_is_no_call_is_text),
        cmocka_unit_test(other_syntaxes),
        cmocka_unit_test(calls_of_gemma),
        cmocka_unit_test(the_whole_is_a_message),
        cmocka_unit_test(a_host_may_stop),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(what_is_no_call_is_cut_between_characters),
    };
    return cmocka_run_group_tests_name("answer", tests, NULL, NULL);
}
