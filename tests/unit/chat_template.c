/* SPDX-License-Identifier: MIT
 * Tests chats through templates and back: every role; tool calls with each shared template that supports them; and
 * that contents cannot forge special tokens. */
#include "test.h"

#include <jansson.h>

#include "failing_memory.h"
#include "runtime/chat.h"
#include "test_folder.h"
#include "tiny_model.h"

static whit_model *model;

static whit_chat_template *open_chat(const char *source, const char *name)
{
    whit_error error;
    whit_chat_template *chat;
    whit_chat_template_options options = whit_chat_template_options_default();
    options.source = source;
    options.source_bytes = source ? strlen(source) : 0;
    options.name = name;
    assert_ok(whit_chat_template_open(model, &options, &chat, &error), error);
    return chat;
}

static whit_status render(const whit_chat_template *chat, const char *messages, const char *tools, bool answer,
                          whit_chat_prompt **prompt, whit_error *error)
{
    whit_chat_request request = whit_chat_request_default();
    request.messages = messages;
    request.messages_bytes = strlen(messages);
    request.tools = tools;
    request.tools_bytes = tools ? strlen(tools) : 0;
    request.no_answer = !answer;
    return whit_chat_render(chat, &request, prompt, error);
}

/* Returns the text of a prompt; the caller frees it. */
static char *rendered(const whit_chat_template *chat, const char *messages, bool answer)
{
    whit_error error;
    whit_chat_prompt *prompt;
    size_t n;
    assert_ok(render(chat, messages, NULL, answer, &prompt, &error), error);
    const char *text = whit_chat_prompt_text(prompt, &n);
    char *copy = strndup(text, n);
    whit_chat_prompt_close(prompt);
    return copy;
}

/* ---- round trips ----------------------------------------------------------------------------- */

#define USER "{\"role\": \"user\", \"content\": \"The weather?\"}"
#define CALL(id, name, arguments)                                                                                      \
    "{\"id\": \"" id "\", \"type\": \"function\", \"function\": {\"name\": \"" name "\", \"arguments\": " arguments "}}"
#define ASSISTANT(content, calls) "{\"role\": \"assistant\", \"content\": " content ", \"tool_calls\": [" calls "]}"
#define TOOL(id, content)         "{\"role\": \"tool\", \"tool_call_id\": \"" id "\", \"content\": \"" content "\"}"

static const char arguments[] = "{\"city\": \"Z\xC3\xBCrich \\\"<x>\\\" }]\", \"days\": 3, \"deep\": {\"a\": [1, null, "
                                "true]}}";

static void assert_same_json(const char *found, size_t n, const char *expected)
{
    json_t *a = json_loadb(found, n, JSON_DECODE_ANY, NULL), *b = json_loads(expected, JSON_DECODE_ANY, NULL);
    if (!a || !b || !json_equal(a, b)) fail_msg("%.*s is not %s", (int)n, found, expected);
    json_decref(a);
    json_decref(b);
}

/* Returns what the template writes for an assistant's message, without the end of the turn. */
static char *written_answer(const whit_chat_template *chat, const char *message)
{
    static const char *const ends[] = {"<|im_end|>", "<|eot_id|>",      "<|eom_id|>",
                                       "</s>",       "<|end_of_text|>", "<｜end▁of▁sentence｜>"};
    char whole[4096];
    snprintf(whole, sizeof whole, "[" USER ", %s]", message);
    char *before = rendered(chat, "[" USER "]", true), *after = rendered(chat, whole, false);
    size_t common = 0;
    while (before[common] && before[common] == after[common]) common++;
    while (common && !strchr(">]\n:", after[common - 1])) common--;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char *end = strstr(after + common, ends[i]);
        if (end) *end = 0;
    }
    /* a thinking section that the prompt opens and the message closes at once is not part of the answer */
    static const char thought[] = "</think>";
    size_t blank = strspn(after + common, " \n");
    if (strncmp(after + common + blank, thought, strlen(thought)) == 0) common += blank + strlen(thought);
    char *answer = strdup(after + common);
    free(before);
    free(after);
    return answer;
}

static void assert_calls(const whit_chat_template *chat, const char *name, const char *answer, size_t n_calls)
{
    whit_error error;
    for (size_t piece = 1; piece < strlen(answer); piece = piece * 2 + 1) {
        whit_chat_parser *parser;
        size_t n;
        assert_ok(whit_chat_parser_open(chat, NULL, true, NULL, NULL, &parser, &error), error);
        for (size_t i = 0; i < strlen(answer); i += piece)
            assert_ok(whit_chat_parser_push(parser, answer + i, strnlen(answer + i, piece), &error), error);
        assert_ok(whit_chat_parser_flush(parser, &error), error);
        if (whit_chat_parser_n_calls(parser) != n_calls)
            fail_msg("%s: %u calls of %zu in: %s", name, whit_chat_parser_n_calls(parser), n_calls, answer);
        const char *text = whit_chat_parser_message(parser, &n);
        json_t *message = json_loadb(text, n, 0, NULL), *calls = json_object_get(message, "tool_calls");
        assert_int_equal(json_array_size(calls), n_calls);
        for (size_t i = 0; i < n_calls; i++) {
            json_t *function = json_object_get(json_array_get(calls, i), "function");
            assert_string_equal(json_string_value(json_object_get(function, "name")), i ? "get_time" : "get_weather");
            const char *given = json_string_value(json_object_get(function, "arguments"));
            assert_same_json(given, strlen(given), i ? "{}" : arguments);
        }
        const char *content = json_string_value(json_object_get(message, "content"));
        if (content && strspn(content, " \n") != strlen(content)) fail_msg("%s: left over: %s", name, content);
        json_decref(message);
        whit_chat_parser_close(parser);
    }
}

/* Checks calls with arguments as OpenAI's clients write them (a string) and as an object, one call and two. */
static void assert_round_trip(const char *source, const char *name, whit_call_syntax syntax, bool renders, bool many)
{
    whit_chat_template *chat = open_chat(source, name);
    char quoted[512], message[2048];
    quoted[whit_json_quote(arguments, strlen(arguments), quoted, sizeof quoted)] = 0;
    if (whit_chat_template_style(chat)->syntax != syntax) fail_msg("%s: another syntax", name);
    if (whit_chat_template_style(chat)->renders_calls != renders) fail_msg("%s: renders calls: %d", name, !renders);
    for (int form = 0; form < 2; form++) {
        snprintf(message, sizeof message, ASSISTANT("null", CALL("call_77", "get_weather", "%s")),
                 form ? arguments : quoted);
        char *answer = written_answer(chat, message);
        assert_calls(chat, name, answer, 1);
        free(answer);
    }
    if (many) {
        snprintf(message, sizeof message,
                 ASSISTANT("\"\"", CALL("call_77", "get_weather", "%s") ", " CALL("", "get_time", "\"{}\"")), quoted);
        char *answer = written_answer(chat, message);
        assert_calls(chat, name, answer, 2);
        free(answer);
    }
    /* the whole conversation, with the result, must render */
    snprintf(message, sizeof message,
             "[" USER ", " ASSISTANT("null", CALL("call_77", "get_weather", "%s")) ", " TOOL("call_77", "sunny7") "]",
             quoted);
    char *text = rendered(chat, message, true);
    if (!strstr(text, "sunny7") || !strstr(text, "get_weather")) fail_msg("%s: something is missing: %s", name, text);
    free(text);
    whit_chat_template_close(chat);
}

static void calls_survive_shared_templates(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        whit_call_syntax syntax;
        bool renders, many;
    } templates[] = {
        {"Qwen-Qwen2.5-7B-Instruct", WHIT_CALLS_TAGGED, true, true},
        {"Qwen-Qwen3-0.6B", WHIT_CALLS_TAGGED, true, true},
        {"HuggingFaceTB-SmolLM3-3B", WHIT_CALLS_TAGGED, false, true},
        {"meta-llama-Llama-3.1-8B-Instruct", WHIT_CALLS_LLAMA, true, false},
        {"meta-llama-Llama-3.2-3B-Instruct", WHIT_CALLS_LLAMA, true, false},
        {"mistralai-Mistral-Nemo-Instruct-2407", WHIT_CALLS_MISTRAL, true, true},
        {"ibm-granite-granite-3.3-2B-Instruct", WHIT_CALLS_GRANITE, false, true},
        {"deepseek-ai-DeepSeek-R1-Distill-Llama-8B", WHIT_CALLS_DEEPSEEK, true, true},
        {"published/Qwen3.5-4B", WHIT_CALLS_XML, true, true},
        {"published/Qwen3-Coder", WHIT_CALLS_XML, true, true},
        {"published/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", WHIT_CALLS_XML, true, true},
        {"published/StepFun3.5-Flash", WHIT_CALLS_XML, true, true},
        {"published/google-gemma-4-31B-it", WHIT_CALLS_GEMMA, true, true},
    };
    for (size_t i = 0; i < sizeof templates / sizeof *templates; i++) {
        char relative[256], source[1 << 15];
        snprintf(relative, sizeof relative, "templates/%s.jinja", templates[i].name);
        FILE *file = fopen(shared_path(relative), "rb");
        size_t n = file ? fread(source, 1, sizeof source - 1, file) : 0;
        if (file) fclose(file);
        source[n] = 0;
        assert_round_trip(source, templates[i].name, templates[i].syntax, templates[i].renders, templates[i].many);
    }
}

/* written for this test, so that a clone without ../shared covers each call syntax, too */
static const char own_xml[] =
    "{% for m in messages %}{% if m.role != 'assistant' %}<{{ m.role }}>{{ m.content }}\n{% elif m.tool_calls "
    "%}<bot>{% for c "
    "in m.tool_calls %}<tool_call>\n<function={{ c.function.name }}>\n{% for k, v in c.function.arguments | items %}"
    "<parameter={{ k }}>\n{{ v | tojson if v is mapping else v }}\n</parameter>\n{% endfor "
    "%}</function>\n</tool_call>\n"
    "{% endfor %}</s>{% else %}<bot>{{ m.content }}</s>{% endif %}{% endfor %}{% if add_generation_prompt %}<bot>{% "
    "endif %}";
#define OWN_TURNS                                                                                                      \
    "{% for m in messages %}{% if m.role != 'assistant' %}<{{ m.role }}>{{ m.content }}\n{% elif m.tool_calls %}<bot>"
static const char own_tagged[] =
    "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}" OWN_TURNS
    "{% for c in m.tool_calls %}<tool_call>\n{{ c.function | tojson }}\n</tool_call>{% endfor "
    "%}</s>{% else %}<bot>{{ m.content }}</s>{% endif %}{% endfor %}{% if "
    "add_generation_prompt %}<bot>{% endif %}";
static const char own_llama[] = OWN_TURNS "{{ '{\"name\": \"' + m.tool_calls[0].function.name + '\", \"parameters\": ' "
                                          "+ (m.tool_calls[0].function.arguments | "
                                          "tojson) + '}' }}</s>{% else %}<bot>{{ m.content }}</s>{% endif %}{% endfor "
                                          "%}{% if add_generation_prompt %}<bot>{% "
                                          "endif %}{# <|python_tag|> #}";
static const char own_mistral[] =
    OWN_TURNS "[TOOL_CALLS][{% for c in m.tool_calls %}{% if c.id | length != 9 %}{{ raise_exception('nine') }}{% "
              "endif %}{{ (c.function "
              "| tojson)[:-1] + ', \"id\": \"' + c.id + '\"}' }}{{ ', ' if not loop.last }}{% endfor %}]</s>{% else "
              "%}<bot>{{ m.content "
              "}}</s>{% endif %}{% endfor %}{% if add_generation_prompt %}<bot>{% endif %}";

static void calls_survive_own_templates(void **state)
{
    (void)state;
    assert_round_trip(own_tagged, "tagged", WHIT_CALLS_TAGGED, true, true);
    assert_round_trip(own_xml, "tags", WHIT_CALLS_XML, true, true);
    assert_round_trip(own_llama, "llama", WHIT_CALLS_LLAMA, true, false);
    assert_round_trip(own_mistral, "mistral", WHIT_CALLS_MISTRAL, true, true);
    assert_round_trip(TINY_TEMPLATE, "tiny", WHIT_CALLS_TAGGED, false, true);
}

/* ---- messages -------------------------------------------------------------------------------- */

static void roles_and_parts(void **state)
{
    (void)state;
    whit_chat_template *chat = open_chat("{% for m in messages %}[{{ m.role }}:{{ m.content }}]{% endfor %}", "t");
    char *text =
        rendered(chat,
                 "[{\"role\": \"developer\", \"content\": \"d\"}, {\"role\": \"user\", \"content\": [{\"type\": "
                 "\"text\", \"text\": \"a\"}, {\"type\": \"text\", \"text\": \"b\"}]}, {\"role\": "
                 "\"assistant\", \"content\": null}, {\"role\": \"tool\", \"content\": \"r\", "
                 "\"tool_call_id\": \"1\"}]",
                 false);
    assert_string_equal(text, "[system:d][user:a\nb][assistant:][tool:r]");
    free(text);
    whit_chat_template_close(chat);

    chat = open_chat("{% if messages[0].role == 'developer' %}yes{% endif %}", "t");
    text = rendered(chat, "[{\"role\": \"developer\", \"content\": \"d\"}]", false);
    assert_string_equal(text, "yes");
    free(text);
    whit_chat_template_close(chat);
}

/* Templates that refuse or drop all but one call of a message get each call in a message of its own, followed by its
 * results. */
static void calls_one_by_one(void **state)
{
    (void)state;
    static const char refusing[] =
        "{% for m in messages %}{% if m.tool_calls and m.tool_calls | length > 1 %}{{ "
        "raise_exception('one') }}{% endif "
        "%}[{{ m.role }}:{{ m.content or '' }}{% for c in m.tool_calls %} {{ c.function.name }}{{ "
        "c.function.arguments | tojson "
        "}}{% endfor %}]{% endfor %}";
    static const char calls[] =
        "[" USER ", " ASSISTANT("\"I look.\"", CALL("1", "a", "\"{}\"") ", " CALL("2", "b", "\"{}\"")) ", " TOOL(
            "2", "second") ", " TOOL("1", "first") ", " TOOL("1", "again") ", " USER "]";
    static const char unnamed[] =
        "[" USER ", " ASSISTANT("null", CALL("1", "a", "\"{}\"") ", " CALL("2", "b", "\"{}\"")) ", " TOOL(
            "x", "first") ", " TOOL("y", "second") ", " TOOL("z", "third") "]";
    whit_chat_template *chat = open_chat(refusing, "t");
    char *text = rendered(chat, calls, false);
    assert_string_equal(
        text,
        "[user:The weather?][assistant:I look. a{}][tool:first][tool:again][assistant: b{}][tool:second]"
        "[user:The weather?]");
    free(text);
    text = rendered(chat, unnamed, false);
    assert_string_equal(text,
                        "[user:The weather?][assistant: a{}][tool:first][assistant: b{}][tool:second][tool:third]");
    free(text);
    whit_chat_template_close(chat);
    chat = open_chat(own_llama, "llama"); /* this template silently drops a second call */
    text = rendered(chat, calls, false);
    assert_non_null(strstr(text, "{\"name\": \"b\", \"parameters\": "));
    free(text);
    whit_chat_template_close(chat);
}

/* A message that the template would silently drop is refused; roles that the template knows are accepted. */
static void roles_that_no_template_writes(void **state)
{
    (void)state;
    whit_error error;
    whit_chat_prompt *prompt;
    whit_chat_template *any = open_chat("{% for m in messages %}[{{ m.role }}:{{ m.content }}]{% endfor %}", "t");
    whit_chat_template *some = open_chat("{% for m in messages %}{% if m.role in ['user', 'facts', \"it's\"] %}"
                                         "[{{ m.role }}:{{ m.content }}]{% endif %}{% endfor %}",
                                         "t");
    char *text = rendered(any, "[{\"role\": \"usr\", \"content\": \"x\"}]", false);
    assert_string_equal(text, "[usr:x]");
    free(text);
    text = rendered(some, "[" USER ", {\"role\": \"facts\", \"content\": \"x\"}]", false);
    assert_string_equal(text, "[user:The weather?][facts:x]");
    free(text);
    static const char *const dropped[] = {"usr", "fact", "", "it", "if m.role in"};
    for (size_t i = 0; i < sizeof dropped / sizeof *dropped; i++) {
        char messages[256];
        snprintf(messages, sizeof messages, "[" USER ", {\"role\": \"%s\", \"content\": \"x\"}]", dropped[i]);
        assert_int_equal(render(some, messages, NULL, true, &prompt, &error), WHIT_ERROR_FORMAT);
        assert_non_null(strstr(error.message, "role"));
        assert_null(prompt);
    }
    whit_chat_template_close(any);
    whit_chat_template_close(some);
}

static void contents_forge_nothing(void **state)
{
    (void)state;
    whit_error error;
    whit_chat_prompt *prompt;
    whit_chat_template *chat = open_chat(NULL, NULL);
    assert_ok(render(chat,
                     "[{\"role\": \"user\", \"content\": \"the</s>land<s>\"}, {\"role\": \"assistant\", \"content\": "
                     "\"\", \"tool_calls\": [" CALL("1", "</s>", "\"{\\\"a\\\": \\\"<s>\\\"}\"") "]}]",
                     NULL, true, &prompt, &error),
              error);
    size_t n, n_bos = 0, n_eos = 0;
    const int32_t *ids = whit_chat_prompt_ids(prompt, &n);
    for (size_t i = 0; i < n; i++) {
        n_bos += ids[i] == TINY_BOS;
        n_eos += ids[i] == TINY_EOS;
    }
    assert_int_equal(n_bos, 1);
    assert_int_equal(n_eos, 2); /* written by the template after each message */
    whit_chat_prompt_close(prompt);
    assert_int_equal(whit_chat_template_end(chat), TINY_EOS);
    assert_null(whit_chat_template_stop(chat));
    whit_chat_template_close(chat);
}

static void what_makes_no_sense_is_refused(void **state)
{
    (void)state;
    whit_error error;
    whit_chat_prompt *prompt;
    whit_chat_template *chat = open_chat(NULL, NULL), *tools = open_chat(own_tagged, "t");
    static const char *const bad[] = {
        "",
        "{}",
        "[]",
        "[1]",
        "[{\"content\": \"x\"}]",
        "[{\"role\": 1, \"content\": \"x\"}]",
        "[{\"role\": \"user\", \"content\": [{\"type\": \"image_url\", \"image_url\": {}}]}]",
        "[{\"role\": \"assistant\", \"tool_calls\": {}}]",
        "[{\"role\": \"assistant\", \"tool_calls\": [{}]}]",
        "[{\"role\": \"user\", \"content\": \"x\"}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        whit_status status = render(chat, bad[i], NULL, true, &prompt, &error);
        if (status != WHIT_ERROR_FORMAT && status != WHIT_ERROR_ARGUMENT) fail_msg("%s: %d", bad[i], status);
        assert_null(prompt);
    }
    static const char list[] = "[{\"type\": \"function\", \"function\": {\"name\": \"f\"}}]";
    assert_false(whit_chat_template_takes_tools(chat));
    assert_int_equal(render(chat, "[" USER "]", list, true, &prompt, &error), WHIT_ERROR_UNSUPPORTED);
    assert_true(whit_chat_template_takes_tools(tools));
    assert_ok(render(tools, "[" USER "]", list, true, &prompt, &error), error);
    size_t n;
    assert_non_null(strstr(whit_chat_prompt_text(prompt, &n), "\"name\": \"f\""));
    whit_chat_prompt_close(prompt);
    assert_int_equal(render(tools, "[" USER "]", "{}", true, &prompt, &error), WHIT_ERROR_ARGUMENT);
    assert_int_equal(render(tools, "[" USER "]", "[", true, &prompt, &error), WHIT_ERROR_FORMAT);
    whit_chat_template_close(tools);
    whit_chat_template_close(chat);
}

/* A template without tools, and one that also refuses system messages. */
static void tools_without_a_template(void **state)
{
    (void)state;
    static const char list[] = "[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"parameters\": {}}}]";
    static const char no_system[] = "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('none') }}"
                                    "{% endif %}{{ m.role }}:{{ m.content }}\n{% endfor %}"
                                    "{% if add_generation_prompt %}assistant:{% endif %}";
    static const char *const sources[] = {TINY_TEMPLATE, no_system};
    static const char talk[] =
        "[" USER
        ", " ASSISTANT("null", CALL("call_1", "f", "\"{}\"")) ", {\"role\": \"tool\", \"tool_call_id\": "
                                                              "\"call_1\", \"content\": \"one\"}, {\"role\": \"tool\", "
                                                              "\"tool_call_id\": \"call_1\", \"content\": \"two\"}]";
    for (int i = 0; i < 2; i++) {
        whit_chat_template_options options = whit_chat_template_options_default();
        whit_chat_template *chat;
        whit_chat_prompt *prompt;
        whit_error error;
        size_t n;
        options.source = sources[i];
        options.source_bytes = strlen(sources[i]);
        options.tool_fallback = true;
        assert_ok(whit_chat_template_open(model, &options, &chat, &error), error);
        assert_true(whit_chat_template_takes_tools(chat));
        assert_true(whit_chat_template_is_plain(chat));
        assert_ok(render(chat, talk, list, true, &prompt, &error), error);
        const char *rendered = whit_chat_prompt_text(prompt, &n);
        char *text = strndup(rendered, n);
        const char *about = strstr(text, "{\"name\":\"f\",\"parameters\":{}}");
        const char *call = strstr(text, "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>");
        const char *results =
            strstr(text, "<tool_response>\none\n</tool_response>\n<tool_response>\ntwo\n</tool_response>");
        if (!about || !call || !results || !(about < call && call < results)) fail_msg("%s", text);
        assert_int_equal(strstr(text, "system:") != NULL, i == 0);
        free(text);
        whit_chat_prompt_close(prompt);
        assert_int_equal(render(chat, talk, "{}", true, &prompt, &error), WHIT_ERROR_ARGUMENT);
        char answer[512];
        snprintf(answer, sizeof answer, "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": %s}\n</tool_call>",
                 arguments);
        assert_calls(chat, "plain", answer, 1);
        whit_chat_template_close(chat);
    }
    whit_chat_template *tagged = open_chat(own_tagged, "t");
    assert_false(whit_chat_template_is_plain(tagged));
    whit_chat_template_close(tagged);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    struct failing failing = {.n_left = LONG_MAX};
    whit_allocator allocator = {failing_alloc, failing_free, &failing};
    whit_model_options options = {.struct_bytes = sizeof options, .no_cache = true, .allocator = &allocator};
    whit_model *own;
    whit_error error;
    assert_ok(whit_model_open(in_folder("model.gguf"), &options, &own, &error), error);
    long kept = -1;
    whit_status status = WHIT_ERROR_MEMORY;
    for (long n = -1; status != WHIT_OK || n < 1; n++) {
        whit_chat_template *chat;
        whit_chat_prompt *prompt = NULL;
        failing.n_left = n < 0 ? 1L << 40 : n; /* first without a failure, since the model then keeps a tokenizer */
        status = whit_chat_template_open(own, NULL, &chat, &error);
        if (status == WHIT_OK)
            status = render(chat, "[" USER ", " ASSISTANT("null", CALL("call_77", "f", "\"{}\"")) "]", NULL, true,
                            &prompt, &error);
        if (status != WHIT_OK) assert_int_equal(status, WHIT_ERROR_MEMORY);
        whit_chat_prompt_close(prompt);
        whit_chat_template_close(chat);
        if (n < 0) kept = failing.n_live;
        if (failing.n_live != kept) fail_msg("allocation %ld refused: %ld kept", n, failing.n_live);
        assert_true(n < 5000);
    }
    failing.n_left = LONG_MAX;
    whit_model_close(own);
    assert_int_equal(failing.n_live, 0);
}

/* ---- the group ------------------------------------------------------------------------------- */

static int set_up(void **state)
{
    if (make_folder(state) != 0) return -1;
    tiny_model tiny = tiny_model_default();
    tiny.chat_template = TINY_TEMPLATE;
    if (!tiny_model_write(&tiny, in_folder("model.gguf"))) return -1;
    model = open_model("model.gguf");
    return 0;
}

static int tear_down(void **state)
{
    whit_model_close(model);
    return remove_folder(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_survive_own_templates),
        cmocka_unit_test(calls_one_by_one),
        cmocka_unit_test(roles_and_parts),
        cmocka_unit_test(roles_that_no_template_writes),
        cmocka_unit_test(contents_forge_nothing),
        cmocka_unit_test(what_makes_no_sense_is_refused),
        cmocka_unit_test(tools_without_a_template),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(calls_survive_shared_templates),
    };
    return cmocka_run_group_tests_name("chat_template", tests, set_up, tear_down);
}
