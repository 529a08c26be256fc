/* SPDX-License-Identifier: MIT */
#include "runtime/tool_style.h"

#include <stdio.h>

static bool mentions(const whit_prompter *p, const char *word)
{
    size_t n;
    const char *source = whit_prompter_source(p, &n);
    return n && memmem(source, n, word, strlen(word));
}

static whit_call_syntax find_syntax(const whit_prompter *p)
{
    if (mentions(p, "<｜tool▁calls▁begin｜>")) return WHIT_CALLS_DEEPSEEK;
    if (mentions(p, "[TOOL_CALLS]")) return WHIT_CALLS_MISTRAL;
    if (mentions(p, "<|tool_call>call:")) return WHIT_CALLS_GEMMA;
    if (mentions(p, "<|tool_call|>")) return WHIT_CALLS_GRANITE;
    if (mentions(p, "<tool_call>") && mentions(p, "<function=") && mentions(p, "<parameter=")) return WHIT_CALLS_XML;
    if (mentions(p, "<tool_call>")) return WHIT_CALLS_TAGGED;
    if (mentions(p, "<|python_tag|>") || mentions(p, "\"parameters\": ")) return WHIT_CALLS_LLAMA;
    return WHIT_CALLS_TAGGED;
}

/* Words of the probes (short conversations that are rendered to test a template). They occur in no template. */
#define PROBE_NAME "qaqaqa"
#define PROBE_KEY  "zbzbzb"
#define PROBE_CALL                                                                                                     \
    "[{\"role\": \"user\", \"content\": \"x\"}, {\"role\": \"assistant\", \"content\": \"\", \"tool_calls\": [{"       \
    "\"id\": \"%s\", \"type\": \"function\", \"function\": {\"name\": \"" PROBE_NAME                                   \
    "\", \"arguments\": {\"" PROBE_KEY                                                                                 \
    "\": 1}}}]}, {\"role\": \"tool\", \"tool_call_id\": \"%s\", \"name\": \"" PROBE_NAME "\", \"content\": \"y\"}]"
#define PROBE_SECOND "xcxcxc"
#define PROBE_TWO_CALLS                                                                                                \
    "[{\"role\": \"user\", \"content\": \"x\"}, {\"role\": \"assistant\", \"content\": \"\", \"tool_calls\": [{"       \
    "\"id\": \"abcdef123\", \"type\": \"function\", \"function\": {\"name\": \"" PROBE_NAME                            \
    "\", \"arguments\": {}}}, {\"id\": \"abcdef124\", \"type\": \"function\", \"function\": {\"name\": "               \
    "\"" PROBE_SECOND                                                                                                  \
    "\", \"arguments\": {}}}]}, {\"role\": \"tool\", \"tool_call_id\": \"abcdef123\", \"name\": \"" PROBE_NAME         \
    "\", \"content\": \"y\"}, {\"role\": \"tool\", \"tool_call_id\": \"abcdef124\", \"name\": \"" PROBE_SECOND         \
    "\", \"content\": \"y\"}]"
#define PROBE_ROLE                                                                                                     \
    "[{\"role\": \"user\", \"content\": \"x\"}, {\"role\": \"" PROBE_KEY "\", \"content\": \"" PROBE_NAME "\"}]"
#define PROBE_SYSTEM                                                                                                   \
    "[{\"role\": \"system\", \"content\": \"" PROBE_NAME "\"}, {\"role\": \"user\", \"content\": \"x\"}]"
static const char probe_tools[] =
    "[{\"type\": \"function\", \"function\": {\"name\": \"" PROBE_NAME "\", \"description\": \"x\", \"parameters\": "
    "{\"type\": \"object\", \"properties\": {\"" PROBE_KEY "\": {\"type\": \"integer\"}}}}}]";

/* Renders messages, and tools (NULL: no tools), in a style. *ok becomes false if the template refuses them or the
 * rendered text lacks one of `words` (ended by NULL). Fails only if memory runs out. */
static whit_status try(const whit_prompter *p, const whit_tool_style *style, const char *messages, const char *tools,
                       const char *const *words, bool *ok, whit_error *error)
{
    whit_datum_pool pool = {.allocator = whit_prompter_allocator(p)};
    whit_buf text = {.allocator = pool.allocator}, segments = text;
    whit_chat chat = {.add_generation_prompt = true};
    whit_error reason = {.status = WHIT_OK};
    whit_status status = whit_tool_style_messages(style, messages, strlen(messages), &pool, &chat.messages, &reason);
    if (status == WHIT_OK && tools)
        status = whit_datum_from_json(&pool, tools, strlen(tools), true, &chat.tools, &reason);
    if (status == WHIT_OK) status = whit_prompter_render_chat(p, &chat, &text, &segments, &reason);
    *ok = status == WHIT_OK;
    for (; *ok && *words; words++)
        *ok = text.size_bytes && memmem(text.data, text.size_bytes, *words, strlen(*words)) != NULL;
    whit_buf_free(&text);
    whit_buf_free(&segments);
    whit_datum_pool_clear(&pool);
    if (status != WHIT_ERROR_MEMORY) return WHIT_OK;
    if (error) *error = reason;
    return status;
}

whit_status whit_tool_style_find(const whit_prompter *p, whit_tool_style *style, whit_error *error)
{
    static const char *const named[] = {PROBE_NAME, NULL}, *const both[] = {PROBE_NAME, PROBE_SECOND, NULL},
                             *const json_called[] = {PROBE_NAME, "\"" PROBE_KEY "\":", NULL},
                             *const gemma_called[] = {"call:" PROBE_NAME "{", PROBE_KEY ":", NULL},
                             *const xml_called[] = {"<function=" PROBE_NAME ">", "<parameter=" PROBE_KEY ">", NULL};
    char short_ids[1024], long_ids[1024];
    bool ok = false, takes_long = false;
    snprintf(short_ids, sizeof short_ids, PROBE_CALL, "abcdef123", "abcdef123");
    snprintf(long_ids, sizeof long_ids, PROBE_CALL, "call_abcdef1234567890", "call_abcdef1234567890");
    *style = (whit_tool_style){
        .syntax = find_syntax(p), .developer = mentions(p, "developer"), .renders_calls = true, .any_role = true};
    style->source = whit_prompter_source(p, &style->source_bytes);
    const char *const *called = json_called;
    if (style->syntax == WHIT_CALLS_XML)
        called = xml_called;
    else if (style->syntax == WHIT_CALLS_GEMMA)
        called = gemma_called;
    bool any_role = false;
    WHIT_TRY(try(p, style, PROBE_ROLE, NULL, named, &any_role, error));
    style->any_role = any_role;
    WHIT_TRY(
        try(p, style, "[{\"role\": \"user\", \"content\": \"x\"}]", probe_tools, named, &style->takes_tools, error));
    WHIT_TRY(try(p, style, PROBE_SYSTEM, NULL, named, &style->takes_system, error));
    for (int variant = 0; variant < 4 && !ok; variant++) {
        style->arguments_text = variant / 2 == 1;
        style->content_null = variant % 2 == 0;
        WHIT_TRY(try(p, style, short_ids, NULL, called, &ok, error));
    }
    if (ok) {
        WHIT_TRY(try(p, style, long_ids, NULL, called, &takes_long, error));
        style->short_ids = !takes_long;
        bool takes_two = false;
        WHIT_TRY(try(p, style, PROBE_TWO_CALLS, NULL, both, &takes_two, error));
        style->single_calls = !takes_two;
        return WHIT_OK;
    }
    style->renders_calls = false;
    style->arguments_text = true;
    style->content_null = false;
    return WHIT_OK;
}

void whit_tool_style_make_plain(whit_tool_style *style)
{
    if (style->takes_tools) return;
    style->is_plain = true;
    style->syntax = WHIT_CALLS_TAGGED;
    style->renders_calls = false;
    style->arguments_text = true;
    style->content_null = false;
    style->short_ids = false;
    style->single_calls = false;
}
