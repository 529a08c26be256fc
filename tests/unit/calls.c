/* SPDX-License-Identifier: MIT
 * Tests that a grammar limits tool calls: whatever tokens are picked, the parser finds calls of known tools whose
 * arguments follow the schemas, in each notation that models use. */
#include "test.h"

#include <jansson.h>

#include "../fuzz/grammar.h"

#include "base/rng.h"
#include "failing_memory.h"
#include "runtime/chat.h"
#include "runtime/grammar.h"
#include "test_folder.h"
#include "tiny_model.h"
#include "tokenizer/from_json.h"
#include "tokenizer_open.h"
#include "tokenizer_sample.h"
#include "whit/calls.h"

static whit_model *model;

#define BODY "{% for m in messages %}{{ m.role }}:{{ m.content }}\n{% endfor %}{{ tools[0].function.name if tools }}"
static const struct {
    const char *source;
    whit_call_syntax syntax;
    const char *section;
    bool many;
} styles[] = {
    {"{# <tool_call> #}" BODY, WHIT_CALLS_TAGGED, "<tool_call>", true},
    {"{# [TOOL_CALLS] #}" BODY, WHIT_CALLS_MISTRAL, "[TOOL_CALLS]", true},
    {"{# <|tool_call|> #}" BODY, WHIT_CALLS_GRANITE, "<|tool_call|>", true},
    {"{# <|python_tag|> #}" BODY, WHIT_CALLS_LLAMA, "", false},
    {"{# <｜tool▁calls▁begin｜> #}" BODY, WHIT_CALLS_DEEPSEEK, "<｜tool▁calls▁begin｜>", true},
    {"{# <|tool_call>call: #}" BODY, WHIT_CALLS_GEMMA, "<|tool_call>", true},
    {"{# <tool_call> <function= <parameter= #}" BODY, WHIT_CALLS_XML, "<tool_call>", true},
};
enum { N_STYLES = sizeof styles / sizeof *styles };

#define WEATHER                                                                                                        \
    "{\"type\": \"function\", \"function\": {\"name\": \"weather\", \"strict\": true, \"parameters\": {\"type\": "     \
    "\"object\", \"properties\": {\"city\": {\"enum\": [\"Bern\", \"Rome\"]}, \"days\": {\"type\": \"integer\", "      \
    "\"minimum\": 1, \"maximum\": 99}}, \"required\": [\"city\", \"days\"], \"additionalProperties\": false}}}"
#define STOP "{\"type\": \"function\", \"function\": {\"name\": \"stop-it\", \"strict\": true}}"
static const char tools[] = "[" WEATHER ", " STOP "]";

static whit_chat_template *open_chat(const char *source)
{
    whit_error error;
    whit_chat_template *chat;
    whit_chat_template_options options = whit_chat_template_options_default();
    options.source = source;
    options.source_bytes = strlen(source);
    options.name = "t";
    assert_ok(whit_chat_template_open(model, &options, &chat, &error), error);
    return chat;
}

static whit_grammar_vocabulary *open_vocabulary(const whit_chat_template *chat)
{
    whit_error error;
    whit_grammar_vocabulary *vocabulary;
    assert_ok(whit_call_vocabulary_open(chat, &vocabulary, &error), error);
    return vocabulary;
}

static whit_call_options options_of(const char *list)
{
    whit_call_options options = whit_call_options_default();
    options.tools = list;
    options.tools_bytes = strlen(list);
    return options;
}

static whit_grammar *open_grammar(const whit_chat_template *chat, const whit_grammar_vocabulary *vocabulary,
                                  const whit_call_options *options)
{
    whit_error error;
    whit_grammar *grammar;
    assert_ok(whit_call_grammar_open(chat, NULL, vocabulary, options, &grammar, &error), error);
    return grammar;
}

/* Feeds bytes as byte tokens. Returns false if one is refused. */
static bool feed(whit_grammar_state *state, const char *text, whit_buf *out)
{
    for (; *text; text++) {
        if (whit_grammar_accept(state, 3 + (uint8_t)*text, NULL) != WHIT_OK) return false;
        if (out) whit_buf_append(out, text, 1);
    }
    return true;
}

static bool ends_with(const whit_buf *text, const char *end)
{
    const size_t n = strlen(end);
    return text->size_bytes >= n && memcmp(text->data + text->size_bytes - n, end, n) == 0;
}

/* Picks random allowed tokens until the text ends; if it may end, it does so one time in three. A thinking section,
 * which would not end at random, is ended at once. */
static void walk(const whit_chat_template *chat, const whit_grammar_vocabulary *v, whit_grammar_state *state,
                 whit_rng *rng, whit_buf *out)
{
    whit_error error;
    const char *open, *close;
    const bool thinks = whit_chat_template_thinking(chat, &open, &close);
    for (int n = 0; n < 2000 && !whit_grammar_is_finished(state); n++) {
        const uint64_t *bits;
        uint32_t n_open = 0;
        int32_t id = -1;
        assert_ok(whit_grammar_mask(state, &bits, &error), error);
        if (whit_grammar_is_complete(state) && whit_rng_next(rng) % 3 == 0) return;
        for (uint32_t k = 0; k < v->n_tokens; k++) {
            bool has_text = (bits[k / 64] >> k % 64 & 1) && v->begin[k + 1] > v->begin[k];
            if (has_text && whit_rng_next(rng) % ++n_open == 0) id = (int32_t)k;
        }
        if (id < 0) return;
        assert_ok(whit_grammar_accept(state, id, &error), error);
        whit_buf_append(out, v->bytes + v->begin[id], v->begin[id + 1] - v->begin[id]);
        if (thinks && ends_with(out, open)) assert_true(feed(state, close, out));
    }
    if (!whit_grammar_is_complete(state)) fail_msg("it does not end: %.*s", (int)out->size_bytes, out->data);
}

static bool is_valid(const char *name, const json_t *arguments)
{
    const json_t *city = json_object_get(arguments, "city"), *days = json_object_get(arguments, "days");
    if (!strcmp(name, "stop-it")) return json_is_object(arguments) && json_object_size(arguments) == 0;
    const char *place = json_string_value(city);
    return !strcmp(name, "weather") && json_object_size(arguments) == 2 && place &&
        (!strcmp(place, "Bern") || !strcmp(place, "Rome")) && json_integer_value(days) >= 1 &&
        json_integer_value(days) <= 99;
}

/* Parses the answer as a server does. All calls in it must be valid and complete. Returns their number. */
static size_t check_calls(const whit_chat_template *chat, const whit_buf *answer, const char *only)
{
    whit_error error;
    whit_chat_parser *parser;
    size_t n;
    assert_ok(whit_chat_parser_open(chat, NULL, true, NULL, NULL, &parser, &error), error);
    assert_ok(whit_chat_parser_push(parser, (const char *)answer->data, answer->size_bytes, &error), error);
    assert_ok(whit_chat_parser_flush(parser, &error), error);
    const char *text = whit_chat_parser_message(parser, &n);
    json_t *message = json_loadb(text, n, 0, NULL), *calls = json_object_get(message, "tool_calls");
    size_t n_calls = json_array_size(calls);
    for (size_t i = 0; i < n_calls; i++) {
        const json_t *function = json_object_get(json_array_get(calls, i), "function");
        const char *name = json_string_value(json_object_get(function, "name"));
        json_t *arguments = json_loads(json_string_value(json_object_get(function, "arguments")), 0, NULL);
        if (!is_valid(name, arguments) || (only && strcmp(only, name) != 0))
            fail_msg("%.*s", (int)answer->size_bytes, answer->data);
        json_decref(arguments);
    }
    json_decref(message);
    whit_chat_parser_close(parser);
    return n_calls;
}

/* ---- accepted calls ------------------------------------------------------------------------------ */

static void required_calls_are_made(void **state)
{
    (void)state;
    whit_rng rng = {7};
    for (int s = 0; s < N_STYLES; s++) {
        whit_chat_template *chat = open_chat(styles[s].source);
        assert_int_equal(whit_chat_template_style(chat)->syntax, styles[s].syntax);
        whit_grammar_vocabulary *v = open_vocabulary(chat);
        size_t most = 0;
        for (int i = 0; i < 48; i++) {
            whit_call_options options = options_of(tools);
            options.choice = WHIT_CALL_REQUIRED;
            options.single = i % 3 == 1;
            options.name = i % 4 == 3 ? "weather" : NULL;
            whit_grammar *grammar = open_grammar(chat, v, &options);
            whit_grammar_state *place;
            whit_error error;
            whit_buf answer = {0};
            assert_ok(whit_grammar_state_open(grammar, &place, &error), error);
            assert_false(whit_grammar_is_complete(place));
            walk(chat, v, place, &rng, &answer);
            size_t n = check_calls(chat, &answer, options.name);
            if (!n || (options.single && n > 1)) fail_msg("%zu calls: %.*s", n, (int)answer.size_bytes, answer.data);
            if (n > most) most = n;
            whit_buf_free(&answer);
            whit_grammar_state_close(place);
            whit_grammar_close(grammar);
        }
        assert_int_equal(most > 1, styles[s].many);
        whit_grammar_vocabulary_close(v);
        whit_chat_template_close(chat);
    }
}

/* Text is unconstrained until a call begins, which must then follow its schema. */
static void calls_in_text_are_held(void **state)
{
    (void)state;
    whit_rng rng = {8};
    for (int s = 0; s < N_STYLES; s++) {
        whit_chat_template *chat = open_chat(styles[s].source);
        whit_grammar_vocabulary *v = open_vocabulary(chat);
        whit_call_options options = options_of(tools);
        for (int i = 0; i < 16; i++) {
            whit_grammar *grammar = open_grammar(chat, v, &options);
            whit_grammar_state *place;
            whit_error error;
            whit_buf answer = {0};
            assert_ok(whit_grammar_state_open(grammar, &place, &error), error);
            assert_true(whit_grammar_is_complete(place));
            if (styles[s].syntax != WHIT_CALLS_LLAMA)
                assert_true(feed(place, "a < \xC3\xA9 <tool_ca [TOOL<<", &answer));
            assert_true(feed(place, styles[s].section, &answer));
            if (styles[s].syntax == WHIT_CALLS_LLAMA) assert_true(feed(place, "{\"name\": \"", &answer));
            assert_false(whit_grammar_is_complete(place));
            walk(chat, v, place, &rng, &answer);
            if (check_calls(chat, &answer, NULL) == 0) fail_msg("%.*s", (int)answer.size_bytes, answer.data);
            whit_buf_free(&answer);
            whit_grammar_state_close(place);
            whit_grammar_close(grammar);
        }
        whit_grammar_vocabulary_close(v);
        whit_chat_template_close(chat);
    }
}

/* ---- tagged arguments ---------------------------------------------------------------------------- */

/* schemas of parameters of several kinds; each has a check for its values */
enum { N_KINDS = 10 };
static const char *const kinds[N_KINDS] = {
    "{\"type\": \"string\", \"maxLength\": 9}",
    "{\"type\": \"string\", \"pattern\": \"^[0-9]{1,4}$\"}",
    "{\"enum\": [\"true\", \"1\", \"a b\", \"</x>\", \"\\n\"]}",
    "{\"type\": \"integer\", \"minimum\": -20, \"maximum\": 99}",
    "{\"type\": \"boolean\"}",
    "{\"type\": \"array\", \"items\": {\"$ref\": \"#/$defs/short\"}, \"maxItems\": 2}",
    "{\"type\": [\"string\", \"null\"], \"maxLength\": 5}",
    "{\"type\": \"array\", \"maxItems\": 2, \"items\": {\"type\": \"object\", \"properties\": {\"b\": {\"type\": "
    "\"boolean\"}, \"a\": {\"type\": \"string\", \"maxLength\": 3}}, \"required\": [\"a\"], \"additionalProperties\": "
    "false}}",
    "{\"anyOf\": [{\"type\": \"integer\", \"minimum\": 0, \"maximum\": 9}, {\"type\": \"string\", \"maxLength\": 2}]}",
    "{\"type\": \"object\", \"properties\": {\"x\": {\"const\": \"</parameter>\"}}, \"required\": [\"x\"], "
    "\"additionalProperties\": false}"};

static bool is_of_kind(int kind, const json_t *value)
{
    const char *text = json_string_value(value);
    switch (kind) {
    case 0: return text != NULL;
    case 1: return text && strlen(text) >= 1 && strlen(text) <= 4 && strspn(text, "0123456789") == strlen(text);
    case 2:
        return text &&
            (!strcmp(text, "true") || !strcmp(text, "1") || !strcmp(text, "a b") || !strcmp(text, "</x>") ||
             !strcmp(text, "\n"));
    case 3: return json_is_integer(value) && json_integer_value(value) >= -20 && json_integer_value(value) <= 99;
    case 4: return json_is_boolean(value);
    case 5: return json_is_array(value) && json_array_size(value) <= 2;
    case 6: return text || json_is_null(value);
    case 7:
        return json_is_array(value) && json_array_size(value) <= 2 &&
            (!json_array_size(value) || json_object_get(json_array_get(value, 0), "a"));
    case 8: return text || (json_is_integer(value) && json_integer_value(value) >= 0 && json_integer_value(value) <= 9);
    default: text = json_string_value(json_object_get(value, "x")); return text && !strcmp(text, "</parameter>");
    }
}

/* Checks a message against the answer from which it was parsed. */
typedef void check_answer(const whit_chat_template *chat, const char *message, size_t n, const whit_buf *answer);

/* Random calls that the grammar allows must be parsed to values of the parameters' kinds, in whatever pieces the answer
 * arrives. */
static void check_arguments(const char *source, check_answer *check)
{
    whit_rng rng = {9};
    whit_error error;
    whit_chat_template *chat = open_chat(source);
    whit_grammar_vocabulary *v = open_vocabulary(chat);
    for (int round = 0; round < 1000; round++) {
        int own[4], n_own = 1 + (int)whit_rng_below(&rng, 4);
        whit_buf list = {0}, answer = {0};
        whit_buf_append_str(&list,
                            "[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"parameters\": {\"type\": "
                            "\"object\", \"properties\": {");
        for (int i = 0; i < n_own; i++) {
            own[i] = (int)whit_rng_below(&rng, N_KINDS);
            whit_buf_printf(&list, "%s\"k%d\": %s", i ? ", " : "", i, kinds[own[i]]);
        }
        bool all = whit_rng_below(&rng, 2);
        whit_buf_printf(
            &list, "}, \"required\": [\"k0\"%s], \"$defs\": {\"short\": {\"type\": \"string\", \"maxLength\": 3}}}}}]",
            all && n_own > 1 ? ", \"k1\"" : "");
        whit_buf_append_zeros(&list, 1);
        whit_call_options options = options_of((const char *)list.data);
        options.choice = WHIT_CALL_REQUIRED;
        options.single = true;
        whit_chat_prompt *prompt;
        whit_chat_request request = whit_chat_request_default();
        request.messages = "[{\"role\": \"user\", \"content\": \"x\"}]";
        request.messages_bytes = strlen(request.messages);
        request.tools = options.tools;
        request.tools_bytes = options.tools_bytes;
        assert_ok(whit_chat_render(chat, &request, &prompt, &error), error);
        whit_grammar *grammar;
        whit_grammar_state *place;
        const char *open, *close;
        assert_ok(whit_call_grammar_open(chat, prompt, v, &options, &grammar, &error), error);
        assert_ok(whit_grammar_state_open(grammar, &place, &error), error);
        if (whit_chat_prompt_thinks(prompt) && whit_chat_template_thinking(chat, &open, &close))
            assert_true(feed(place, close, &answer));
        walk(chat, v, place, &rng, &answer);
        whit_chat_parser *parser;
        assert_ok(whit_chat_parser_open(chat, prompt, true, NULL, NULL, &parser, &error), error);
        size_t piece = 1 + whit_rng_below(&rng, 30), n;
        for (size_t at = 0; at < answer.size_bytes; at += piece)
            assert_ok(whit_chat_parser_push(parser, (const char *)answer.data + at,
                                            answer.size_bytes - at < piece ? answer.size_bytes - at : piece, &error),
                      error);
        assert_ok(whit_chat_parser_flush(parser, &error), error);
        const char *text = whit_chat_parser_message(parser, &n);
        json_t *message = json_loadb(text, n, 0, NULL);
        const json_t *call = json_array_get(json_object_get(message, "tool_calls"), 0);
        const char *given = json_string_value(json_object_get(json_object_get(call, "function"), "arguments"));
        json_t *arguments = given ? json_loads(given, 0, NULL) : NULL;
        bool ok = whit_chat_parser_n_calls(parser) == 1 && json_object_get(arguments, "k0");
        for (int i = 0; i < n_own && ok; i++) {
            char key[16];
            snprintf(key, sizeof key, "k%d", i);
            const json_t *value = json_object_get(arguments, key);
            ok = value ? is_of_kind(own[i], value) : i > 0 && !(i == 1 && all);
        }
        if (!ok) fail_msg("%s\n%.*s\n%.*s", list.data, (int)answer.size_bytes, answer.data, (int)n, text);
        if (check) check(chat, text, n, &answer);
        json_decref(arguments);
        json_decref(message);
        whit_chat_parser_close(parser);
        whit_chat_prompt_close(prompt);
        whit_grammar_state_close(place);
        whit_grammar_close(grammar);
        whit_buf_free(&list);
        whit_buf_free(&answer);
    }
    whit_grammar_vocabulary_close(v);
    whit_chat_template_close(chat);
}

static void tagged_arguments_are_read_back(void **state)
{
    (void)state;
    check_arguments(styles[N_STYLES - 1].source, NULL);
}

/* From a message with calls, the published template must write the answer that the model wrote by the grammar, except
 * that it writes null as Python's None. */
static void check_gemma(const whit_chat_template *chat, const char *message, size_t n, const whit_buf *answer)
{
    whit_error error;
    whit_chat_prompt *prompt;
    whit_chat_request request = whit_chat_request_default();
    whit_buf messages = {0};
    size_t n_text;
    whit_buf_printf(&messages, "[{\"role\": \"user\", \"content\": \"x\"}, %.*s]", (int)n, message);
    request.messages = (const char *)messages.data;
    request.messages_bytes = messages.size_bytes;
    assert_ok(whit_chat_render(chat, &request, &prompt, &error), error);
    const char *text = whit_chat_prompt_text(prompt, &n_text);
    for (size_t i = 0; i + 4 <= answer->size_bytes; i++)
        if (memcmp(answer->data + i, "null", 4) == 0) memcpy(answer->data + i, "None", 4);
    if (!memmem(text, n_text, answer->data, answer->size_bytes))
        fail_msg("'%.*s' is written as '%.*s'", (int)answer->size_bytes, answer->data, (int)n_text, text);
    whit_chat_prompt_close(prompt);
    whit_buf_free(&messages);
}

/* published templates: Gemma's call format, Qwen3.5's tagged arguments and LFM2's Python literals */
static void published_templates_are_read_back(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        check_answer *check;
    } published[] = {
        {"google-gemma-4-31B-it", check_gemma}, {"Qwen3.5-4B", NULL}, {"LFM2-8B-A1B", NULL}, {"LFM2.5-Instruct", NULL}};
    for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
        static char source[65536];
        char path[256];
        snprintf(path, sizeof path, "templates/published/%s.jinja", published[i].path);
        FILE *file = fopen(shared_path(path), "r");
        assert_non_null(file);
        source[fread(source, 1, sizeof source - 1, file)] = 0;
        fclose(file);
        check_arguments(source, published[i].check);
    }
}

/* Asserts that the whole text is accepted or, with `begins`, that it is at least a valid beginning. */
static void assert_taken(const char *source, const whit_call_options *options, const char *text, bool begins,
                         bool whole)
{
    whit_error error;
    whit_chat_template *chat = open_chat(source);
    whit_grammar_vocabulary *v = open_vocabulary(chat);
    whit_grammar *grammar = open_grammar(chat, v, options);
    whit_grammar_state *place;
    assert_ok(whit_grammar_state_open(grammar, &place, &error), error);
    bool taken = feed(place, text, NULL);
    if (taken != begins || (taken && whit_grammar_is_complete(place) != whole)) fail_msg("%d: %s", taken, text);
    whit_grammar_state_close(place);
    whit_grammar_close(grammar);
    whit_grammar_vocabulary_close(v);
    whit_chat_template_close(chat);
}

static void what_is_taken(void **state)
{
    (void)state;
    static const char tagged[] = "{# <tool_call> #}" BODY, llama[] = "{# <|python_tag|> #}" BODY,
                      thinks[] = "{# <tool_call> #}" BODY "{{ '<think></think>' if x }}";
    whit_call_options may = options_of(tools), must = may, single = may, form = may;
    must.choice = WHIT_CALL_REQUIRED;
    single.single = true;
    form.answer_schema = "{\"enum\": [1, 2]}";
    form.answer_schema_bytes = strlen(form.answer_schema);
#define CALL "<tool_call>\n{\"name\": \"stop-it\", \"arguments\": {}}\n</tool_call>"
    assert_taken(tagged, &may, "plain text, as long as it likes", true, true);
    assert_taken(tagged, &may, "a <<tool_call", true, true);
    assert_taken(tagged, &may, "a <tool_call><", false, false);
    assert_taken(tagged, &may, CALL "\n" CALL, true, true);
    assert_taken(tagged, &may, CALL "and more", false, false);
    assert_taken(tagged, &single, "so: " CALL, true, true);
    assert_taken(tagged, &single, CALL "\n", false, false);
    assert_taken(tagged, &must, "a", false, false);
    assert_taken(tagged, &must, "<think>", false, false);
    assert_taken(tagged, &form, "2", true, true);
    assert_taken(tagged, &form, "3", false, false);
    assert_taken(tagged, &form, CALL, true, true);
    assert_taken(thinks, &must, "<think>a <tool_call> b</think>\n" CALL, true, true);
    assert_taken(thinks, &must, "<think>a</think>b", false, false);
    assert_taken(thinks, &may, "<think>a <tool_call> b</think>b", true, true);
    assert_taken(llama, &may, "no call {\"name\": 1}", true, true);
    assert_taken(llama, &may, " {\"nome\": 1}", false, false);
    assert_taken(llama, &may, "a <|python_tag|>", false, false);
    assert_taken(llama, &may, "{\"name\": \"stop-it\", \"parameters\": {}}", true, true);
    assert_taken(llama, &may, "{\"name\": \"stop-it\", \"parameters\": {}};", false, false);
}

static void what_is_taken_of_gemma(void **state)
{
    (void)state;
#define GEMMA_TOOL(parameters)                                                                                         \
    "[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"strict\": true, \"parameters\": " parameters "}}]"
    static const char source[] = "{# <|tool_call>call: #}" BODY;
    static const struct {
        const char *list, *arguments;
        bool taken;
    } cases[] = {
        {GEMMA_TOOL("{\"type\": \"object\", \"properties\": {\"B\": {\"type\": \"integer\"}, \"a\": {\"type\": "
                    "\"string\"}}, \"required\": [\"B\"]}"),
         "a:<|\"|>x<|\"|>,B:1", true}, /* sorted by name, ignoring case */
        {GEMMA_TOOL("{\"properties\": {\"B\": {\"type\": \"integer\"}, \"a\": {}}, \"required\": [\"B\"]}"), "B:1,a:2",
         false},
        {GEMMA_TOOL("{\"properties\": {\"B\": {\"type\": \"integer\"}, \"a\": {}}, \"required\": [\"B\"]}"), "B:1",
         true},
        {GEMMA_TOOL("{\"properties\": {\"B\": {\"type\": \"integer\"}, \"a\": {}}, \"required\": [\"B\"]}"), "a:1",
         false},
        {GEMMA_TOOL("{\"properties\": {\"o\": {\"type\": \"object\"}}}"), "o:{k:{l:[null,<|\"|>,<|\"|>]}}", true},
        {GEMMA_TOOL(
             "{\"properties\": {\"o\": {\"type\": \"object\", \"additionalProperties\": {\"type\": \"boolean\"}}}}"),
         "o:{k:true,l:false}", true},
        {GEMMA_TOOL(
             "{\"properties\": {\"o\": {\"type\": \"object\", \"additionalProperties\": {\"type\": \"boolean\"}}}}"),
         "o:{k:1}", false},
        {GEMMA_TOOL(
             "{\"properties\": {\"n\": {\"$ref\": \"#/$defs/node\"}}, \"$defs\": {\"node\": {\"type\": \"object\", "
             "\"properties\": {\"next\": {\"$ref\": \"#/$defs/node\"}, \"v\": {\"type\": \"string\", \"pattern\": "
             "\"^[ab]$\"}}, \"required\": [\"v\"]}}}"),
         "n:{next:{next:{v:<|\"|>a<|\"|>},v:<|\"|>b<|\"|>},v:<|\"|>a<|\"|>}", true},
        {GEMMA_TOOL(
             "{\"properties\": {\"l\": {\"type\": \"array\", \"items\": {\"enum\": [1, \"x\"]}, \"minItems\": 2, "
             "\"maxItems\": 3}}}"),
         "l:[1,<|\"|>x<|\"|>,1]", true},
        {GEMMA_TOOL(
             "{\"properties\": {\"l\": {\"type\": \"array\", \"items\": {\"enum\": [1, \"x\"]}, \"minItems\": 2, "
             "\"maxItems\": 3}}}"),
         "l:[1]", false},
        {GEMMA_TOOL("{\"properties\": {\"s\": {\"type\": [\"string\", \"null\"], \"enum\": [\"a\", null, 3]}}}"), "s:3",
         false},
        {GEMMA_TOOL("{\"properties\": {\"s\": {\"type\": [\"string\", \"null\"], \"enum\": [\"a\", null, 3]}}}"),
         "s:null", true},
        {GEMMA_TOOL("{\"properties\": {\"s\": {\"type\": \"string\", \"nullable\": true}}}"), "s:null", true},
        {GEMMA_TOOL(
             "{\"properties\": {\"s\": {\"type\": [\"integer\", \"string\"], \"minimum\": 3, \"maxLength\": 2}}}"),
         "s:3", true},
        {GEMMA_TOOL(
             "{\"properties\": {\"s\": {\"type\": [\"integer\", \"string\"], \"minimum\": 3, \"maxLength\": 2}}}"),
         "s:2", false},
        {"[{\"type\": \"function\", \"function\": {\"name\": \"f\"}}]", "x:[{y:<|\"|>z<|\"|>}],w:-1.5e3", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        whit_call_options options = options_of(cases[i].list);
        snprintf(text, sizeof text, "so <|tool_call>call:f{%s}<tool_call|>", cases[i].arguments);
        assert_taken(source, &options, text, cases[i].taken, cases[i].taken);
    }
    static const struct {
        const char *list, *error;
    } refused[] = {
        {GEMMA_TOOL("{\"properties\": {\"a\": {\"allOf\": []}}}"),
         "tools[0].function.parameters: #/properties/a/allOf: "},
        {GEMMA_TOOL("{\"properties\": {\"a\": {\"type\": \"array\", \"uniqueItems\": true}}}"),
         "tools[0].function.parameters: #/properties/a/uniqueItems: "},
        {GEMMA_TOOL("{\"properties\": {\"a\": {\"$ref\": \"#/$defs/b\"}}}"),
         "tools[0].function.parameters: #/properties/a/$ref: "},
        {GEMMA_TOOL("{\"properties\": {\"a\": {\"type\": [\"integer\", \"null\"], \"not\": {\"const\": 3}}}}"),
         "tools[0].function.parameters: #/properties/a/not: "},
        {GEMMA_TOOL("{\"properties\": {\"a:b\": {}}}"), "tools[0].function.parameters: #/properties: "},
        {GEMMA_TOOL("{\"properties\": {\"a\": {}}, \"required\": [\"b\"]}"),
         "tools[0].function.parameters: #/required: "},
        {GEMMA_TOOL("{\"properties\": {\"a\": {\"oneOf\": [{\"type\": \"number\"}, {\"type\": \"integer\"}]}}}"),
         "tools[0].function.parameters: #/properties/a/oneOf: "},
        {GEMMA_TOOL("{\"properties\": {\"a\": {\"enum\": [\"<|\\\"|>\"]}}}"),
         "tools[0].function.parameters: #/properties/a/enum: "},
    };
    whit_chat_template *chat = open_chat(source);
    whit_grammar_vocabulary *v = open_vocabulary(chat);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        whit_grammar *grammar;
        whit_error error;
        whit_call_options options = options_of(refused[i].list);
        assert_int_not_equal(whit_call_grammar_open(chat, NULL, v, &options, &grammar, &error), WHIT_OK);
        if (strncmp(error.message, refused[i].error, strlen(refused[i].error)) != 0) fail_msg("%s", error.message);
    }
    whit_grammar_vocabulary_close(v);
    whit_chat_template_close(chat);
}

/* ---- refusals -------------------------------------------------------------------------------------- */

static void refusals_name_the_place(void **state)
{
    (void)state;
#define FUNCTION(more) "[" WEATHER ", {\"type\": \"function\", \"function\": {" more "}}]"
    static const struct {
        const char *list, *name, *error;
    } cases[] = {
        {FUNCTION("\"name\": \"f\", \"parameters\": {\"properties\": {\"a\": {\"not\": {\"uniqueItems\": true}}}}"),
         NULL, "tools[1].function.parameters: #/properties/a/not: "},
        {FUNCTION("\"name\": \"f\", \"parameters\": {\"type\": \"array\"}"), NULL,
         "tools[1].function.parameters: #/type: "},
        {FUNCTION("\"name\": \"f\", \"parameters\": []"), NULL, "tools[1].function.parameters: "},
        {FUNCTION("\"name\": \"f g\""), NULL, "tools[1].function.name: "},
        {FUNCTION("\"nome\": 1"), NULL, "tools[1].function.name: "},
        {FUNCTION("\"name\": \"f\""), "g", "tool_choice: there is no tool named g"},
        {"[]", NULL, "tools: "},
        {"{}", NULL, "tools: expected a JSON list"},
        {"[", NULL, "tools:1:"},
    };
    whit_chat_template *chat = open_chat(styles[0].source);
    whit_grammar_vocabulary *v = open_vocabulary(chat);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        whit_grammar *grammar;
        whit_error error;
        whit_call_options options = options_of(cases[i].list);
        options.choice = WHIT_CALL_REQUIRED;
        options.name = cases[i].name;
        assert_int_not_equal(whit_call_grammar_open(chat, NULL, v, &options, &grammar, &error), WHIT_OK);
        assert_null(grammar);
        if (strncmp(error.message, cases[i].error, strlen(cases[i].error)) != 0) fail_msg("%s", error.message);
    }
    whit_grammar *grammar;
    whit_error error; /* an unsupported schema allows any object */
    static const char loose[] = "[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"strict\": false, "
                                "\"parameters\": {\"not\": {\"uniqueItems\": true}}}}]";
    whit_call_options options = options_of(loose);
    options.choice = WHIT_CALL_REQUIRED;
    assert_ok(whit_call_grammar_open(chat, NULL, v, &options, &grammar, &error), error);
    whit_grammar_close(grammar);
    whit_grammar_vocabulary_close(v);
    whit_chat_template_close(chat);
}

/* A special token is allowed as text only where the grammar requires it. */
static void special_tokens_are_spelled(void **state)
{
    (void)state;
    whit_buf json = {0};
    opened it = {.image = {0}};
    whit_error error;
    sample_byte_level_json(&json, "\"a\"");
    assert_ok(whit_tokenizer_from_json("t", (const char *)json.data, json.size_bytes, NULL, &it.image, &error), error);
    open_image(&it);
    for (int spelled = 0; spelled < 2; spelled++) {
        const char *const names[] = {spelled ? "<s>" : NULL, NULL};
        whit_grammar_vocabulary *v;
        whit_grammar *grammar;
        whit_grammar_state *place;
        const uint64_t *bits;
        assert_ok(whit_token_trie_of_tokenizer(&it.view, 265, names, "t", NULL, &v, &error), error);
        static const char text[] = "root ::= \"<s>a\"";
        assert_ok(whit_grammar_open_gbnf(v, "t", text, strlen(text), &grammar, &error), error);
        assert_ok(whit_grammar_state_open(grammar, &place, &error), error);
        assert_ok(whit_grammar_mask(place, &bits, &error), error);
        assert_int_equal(bits[262 / 64] >> 262 % 64 & 1, spelled);
        whit_grammar_state_close(place);
        whit_grammar_close(grammar);
        whit_grammar_vocabulary_close(v);
    }
    close_tokenizer(&it);
    whit_buf_free(&json);
}

/* If the decoder reads <0xNN> as a byte, grammars must, too, although tokenizer.json gives such a token no type. */
static void byte_tokens_are_bytes(void **state)
{
    (void)state;
    static const char json[] = "{\"decoder\": {\"type\": \"ByteFallback\"}, \"model\": {\"type\": \"BPE\", "
                               "\"byte_fallback\": true, \"vocab\": {\"<0x22>\": 0, \"<0x0A>\": 1, \"a\": 2, "
                               "\"<0x@g>\": 3}, \"merges\": []}}",
                      text[] = "root ::= \"a\\n\"";
    const char *const none[] = {NULL};
    opened it = {.image = {0}};
    whit_error error;
    whit_grammar_vocabulary *v;
    whit_grammar *grammar;
    whit_grammar_state *place;
    const uint64_t *bits;
    assert_ok(whit_tokenizer_from_json("t", json, strlen(json), NULL, &it.image, &error), error);
    open_image(&it);
    assert_ok(whit_token_trie_of_tokenizer(&it.view, 4, none, "t", NULL, &v, &error), error);
    assert_int_equal(v->begin[1] - v->begin[0], 1);
    assert_int_equal(v->bytes[v->begin[0]], '"');
    assert_int_equal(v->begin[2] - v->begin[1], 1);
    assert_int_equal(v->bytes[v->begin[1]], '\n');
    assert_int_equal(v->begin[4] - v->begin[3], 6); /* not a valid byte notation */
    assert_ok(whit_grammar_open_gbnf(v, "t", text, strlen(text), &grammar, &error), error);
    assert_ok(whit_grammar_state_open(grammar, &place, &error), error);
    for (int32_t id = 2; id > 0; id--) { /* first a, then the line end */
        assert_ok(whit_grammar_mask(place, &bits, &error), error);
        assert_int_equal(bits[0], UINT64_C(1) << id);
        assert_ok(whit_grammar_accept(place, id, &error), error);
    }
    assert_true(whit_grammar_is_finished(place));
    whit_grammar_state_close(place);
    whit_grammar_close(grammar);
    whit_grammar_vocabulary_close(v);
    close_tokenizer(&it);
}

/* ---- the group ------------------------------------------------------------------------------------- */

static int set_up(void **state)
{
    if (make_folder(state) != 0) return -1;
    tiny_model tiny = tiny_model_default();
    whit_model_options options = whit_model_options_default();
    whit_error error;
    options.no_cache = true;
    if (!tiny_model_write(&tiny, in_folder("model.gguf"))) return -1;
    return whit_model_open(in_folder("model.gguf"), &options, &model, &error) == WHIT_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    whit_model_close(model);
    return remove_folder(state);
}

int main(void)
{
    const struct CMUnitTest unit_tests[] = {
        cmocka_unit_test(required_calls_are_made),
        cmocka_unit_test(calls_in_text_are_held),
        cmocka_unit_test(what_is_taken),
        cmocka_unit_test(tagged_arguments_are_read_back),
        cmocka_unit_test(published_templates_are_read_back),
        cmocka_unit_test(what_is_taken_of_gemma),
        cmocka_unit_test(refusals_name_the_place),
        cmocka_unit_test(special_tokens_are_spelled),
        cmocka_unit_test(byte_tokens_are_bytes),
    };
    return cmocka_run_group_tests(unit_tests, set_up, tear_down);
}
