/* SPDX-License-Identifier: MIT
 * Implements the public chat interface with the prompter, the tool style and the answer parser. */
#include "base/phrase.h"
#include "runtime/chat.h"

#include "base/items.h"
#include "base/json.h"
#include "base/options.h"
#include "runtime/message_values.h"
#include "runtime/model.h"
#include "runtime/plain_tools.h"

struct whit_chat_template {
    whit_prompter *prompter;
    whit_tool_style style;
    const whit_model *model;
    const whit_allocator *allocator;
};

struct whit_chat_prompt {
    whit_prompt prompt;
    const whit_allocator *allocator;
    whit_buf tools; /* JSON list of tools, kept only if reading the answer needs their schemas */
};

whit_status whit_chat_template_open(const whit_model *model, const whit_chat_template_options *options,
                                    whit_chat_template **out, whit_error *error)
{
    *out = NULL;
    if (!model) return whit_fail(error, WHIT_ERROR_ARGUMENT, "whit_chat_template_open: 'model' is NULL");
    whit_chat_template_options own = whit_chat_template_options_default();
    WHIT_TRY(whit_options_read(&own, sizeof own, options, "whit_chat_template_options", error));
    whit_chat_template *chat = whit_zalloc(model->allocator, sizeof *chat);
    if (!chat) return whit_fail_memory(error, "the chat template", sizeof *chat);
    chat->allocator = model->allocator;
    chat->model = model;
    whit_status status = whit_prompter_open(model, own.source, own.source_bytes, own.name ? own.name : "the template",
                                            &chat->prompter, error);
    if (status == WHIT_OK) status = whit_tool_style_find(chat->prompter, &chat->style, error);
    if (status == WHIT_OK && own.tool_fallback) whit_tool_style_make_plain(&chat->style);
    if (status != WHIT_OK) {
        whit_chat_template_close(chat);
        return status;
    }
    *out = chat;
    return WHIT_OK;
}

void whit_chat_template_close(whit_chat_template *chat)
{
    if (!chat) return;
    whit_prompter_close(chat->prompter);
    whit_free(chat->allocator, chat, sizeof *chat);
}

const char *whit_chat_template_source(const whit_chat_template *chat, size_t *source_bytes)
{
    return whit_prompter_source(chat->prompter, source_bytes);
}

bool whit_chat_template_takes_tools(const whit_chat_template *chat)
{
    return chat->style.takes_tools || chat->style.is_plain;
}

bool whit_chat_template_is_plain(const whit_chat_template *chat)
{
    return chat->style.is_plain;
}

int32_t whit_chat_template_end(const whit_chat_template *chat)
{
    return whit_prompter_turn_end(chat->prompter);
}

const char *whit_chat_template_stop(const whit_chat_template *chat)
{
    return whit_prompter_stop(chat->prompter);
}

bool whit_chat_template_keep_special(const whit_chat_template *chat)
{
    return chat->style.syntax != WHIT_CALLS_TAGGED && chat->style.syntax != WHIT_CALLS_XML;
}

const whit_tool_style *whit_chat_template_style(const whit_chat_template *chat)
{
    return &chat->style;
}

const whit_model *whit_chat_template_model(const whit_chat_template *chat)
{
    return chat->model;
}

bool whit_chat_template_thinking(const whit_chat_template *chat, const char **open, const char **close)
{
    size_t n;
    const char *source = whit_prompter_source(chat->prompter, &n);
    *open = whit_prompter_thinking_open(chat->prompter);
    *close = whit_prompter_thinking_close(chat->prompter);
    return n && memmem(source, n, *close, strlen(*close)) != NULL;
}

bool whit_chat_prompt_thinks(const whit_chat_prompt *prompt)
{
    return prompt && prompt->prompt.thinking;
}

bool whit_chat_prompt_has_thought(const whit_chat_prompt *prompt)
{
    return prompt && prompt->prompt.has_thought;
}

/* ---- prompts --------------------------------------------------------------------------------- */

/* Converts a request to the values of the template; system messages from message n_kept on become user messages
 * (SIZE_MAX: none). */
static whit_status read_values(const whit_chat_template *chat, const whit_chat_request *request, size_t n_kept,
                               whit_datum_pool *pool, whit_chat *values, whit_error *error)
{
    WHIT_TRY(whit_tool_style_messages(&chat->style, request->messages, request->messages_bytes, pool, &values->messages,
                                      error));
    if (n_kept != SIZE_MAX && !whit_message_fold_system(pool, n_kept, &values->messages))
        return whit_fail_memory(error, "the conversation", request->messages_bytes);
    if (chat->style.is_plain)
        WHIT_TRY(
            whit_plain_tools_write(&chat->style, request->tools, request->tools_bytes, pool, &values->messages, error));
    else if (request->tools)
        WHIT_TRY(whit_datum_from_json(pool, request->tools, request->tools_bytes, true, &values->tools, error));
    if (values->tools.kind != WHIT_DATUM_UNDEFINED && values->tools.kind != WHIT_DATUM_LIST)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "tools: expected a JSON list");
    if (values->tools.kind == WHIT_DATUM_LIST && !values->tools.list->n) values->tools = whit_datum_undefined(NULL);
    if (values->tools.kind == WHIT_DATUM_LIST && !chat->style.takes_tools)
        return whit_fail(
            error, WHIT_ERROR_UNSUPPORTED,
            "the model's chat template has no place for tools: leave tools out, or choose another template");
    if (request->variables)
        WHIT_TRY(whit_datum_from_json(pool, request->variables, request->variables_bytes, true, &values->extra, error));
    if (values->extra.kind != WHIT_DATUM_UNDEFINED && values->extra.kind != WHIT_DATUM_DICT)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "variables: expected a JSON object");
    values->add_generation_prompt = !request->no_answer && !request->continue_last;
    values->continue_final_message = request->continue_last;
    return whit_prompter_set_thinking(pool, request->thinking, &values->extra)
        ? WHIT_OK
        : whit_fail_memory(error, "the conversation", request->messages_bytes);
}

/* Renders a request into `text` and `segments`, which are emptied first. */
static whit_status render_values(const whit_chat_template *chat, const whit_chat_request *request, size_t n_kept,
                                 whit_buf *text, whit_buf *segments, whit_error *error)
{
    whit_datum_pool pool = {.allocator = chat->allocator};
    whit_chat values = {.add_generation_prompt = false};
    text->size_bytes = segments->size_bytes = 0;
    whit_status status = read_values(chat, request, n_kept, &pool, &values, error);
    if (status == WHIT_OK) status = whit_prompter_render_chat(chat->prompter, &values, text, segments, error);
    whit_datum_pool_clear(&pool);
    return status;
}

/* Renders the messages unchanged, if the template accepts them. Coding agents put system messages between other
 * messages, which some templates refuse or leave out; other templates refuse all system messages. Rendering is then
 * retried with the late system messages as user messages, and after another failure with all of them. */
static whit_status render_somehow(const whit_chat_template *chat, const whit_chat_request *request, whit_buf *text,
                                  whit_buf *segments, whit_error *error)
{
    whit_datum_pool pool = {.allocator = chat->allocator};
    whit_datum messages;
    size_t n_system = 0, n_first = 0;
    bool is_whole = false;
    whit_status status =
        whit_tool_style_messages(&chat->style, request->messages, request->messages_bytes, &pool, &messages, error);
    if (status == WHIT_OK) {
        whit_message_count_system(&messages, &n_system, &n_first);
        status = render_values(chat, request, SIZE_MAX, text, segments, error);
        is_whole = status == WHIT_OK &&
            (n_system == n_first || whit_message_has_late_system(&messages, whit_chars(text), text->size_bytes));
    }
    whit_datum_pool_clear(&pool);
    if (is_whole || status == WHIT_ERROR_MEMORY) return status;
    whit_buf other = {.allocator = chat->allocator}, ranges = other;
    for (int all = n_system == n_first; all < 2 && n_system; all++) {
        whit_error reason;
        whit_status next = render_values(chat, request, all ? 0 : n_first, &other, &ranges, &reason);
        if (next != WHIT_OK) continue;
        whit_buf_free(text);
        whit_buf_free(segments);
        *text = other;
        *segments = ranges;
        return WHIT_OK;
    }
    whit_buf_free(&other);
    whit_buf_free(&ranges);
    return status;
}

whit_status whit_chat_render(const whit_chat_template *chat, const whit_chat_request *request, whit_chat_prompt **out,
                             whit_error *error)
{
    WHIT_NEED(out);
    *out = NULL;
    whit_chat_request own = whit_chat_request_default();
    if (!chat || !request)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "whit_chat_render: 'chat' or 'request' is NULL");
    WHIT_TRY(whit_options_read(&own, sizeof own, request, "whit_chat_request", error));
    whit_chat_prompt *prompt = whit_zalloc(chat->allocator, sizeof *prompt);
    if (!prompt) return whit_fail_memory(error, "the prompt", sizeof *prompt);
    prompt->allocator = prompt->prompt.text.allocator = prompt->prompt.ids.allocator = chat->allocator;
    prompt->tools.allocator = chat->allocator;
    whit_buf segments = {.allocator = chat->allocator};
    whit_status status = render_somehow(chat, &own, &prompt->prompt.text, &segments, error);
    if (status == WHIT_OK) status = whit_prompter_encode(chat->prompter, &segments, &prompt->prompt, error);
    if (status == WHIT_OK && own.tools && chat->style.syntax == WHIT_CALLS_XML &&
        !whit_buf_append(&prompt->tools, own.tools, own.tools_bytes))
        status = whit_fail_memory(error, "the tools", own.tools_bytes);
    whit_buf_free(&segments);
    if (status != WHIT_OK) {
        whit_chat_prompt_close(prompt);
        return status;
    }
    *out = prompt;
    return WHIT_OK;
}

const int32_t *whit_chat_prompt_ids(const whit_chat_prompt *prompt, size_t *n_ids)
{
    *n_ids = whit_prompt_n_ids(&prompt->prompt);
    return whit_prompt_ids(&prompt->prompt);
}

bool whit_chat_template_switches_thinking(const whit_chat_template *chat)
{
    static const char probe[] = "[{\"role\":\"user\",\"content\":\"qaqaqa\"}]";
    const whit_thinking ways[2] = {WHIT_THINKING_OFF, WHIT_THINKING_ON};
    whit_chat_prompt *prompts[2] = {NULL, NULL};
    whit_chat_request request = whit_chat_request_default();
    bool differs = true;
    request.messages = probe;
    request.messages_bytes = sizeof probe - 1;
    for (int i = 0; i < 2 && differs; i++) {
        request.thinking = ways[i];
        differs = whit_chat_render(chat, &request, &prompts[i], NULL) == WHIT_OK;
    }
    if (differs) {
        const whit_buf *off = &prompts[0]->prompt.text, *on = &prompts[1]->prompt.text;
        differs = off->size_bytes != on->size_bytes || memcmp(off->data, on->data, on->size_bytes) != 0;
    }
    for (int i = 0; i < 2; i++) whit_chat_prompt_close(prompts[i]);
    return differs;
}

const char *whit_chat_prompt_text(const whit_chat_prompt *prompt, size_t *text_bytes)
{
    *text_bytes = prompt->prompt.text.size_bytes;
    return *text_bytes ? whit_chars(&prompt->prompt.text) : "";
}

void whit_chat_prompt_close(whit_chat_prompt *prompt)
{
    if (!prompt) return;
    whit_prompt_free(&prompt->prompt);
    whit_buf_free(&prompt->tools);
    whit_free(prompt->allocator, prompt, sizeof *prompt);
}

whit_status whit_chat_parser_open(const whit_chat_template *chat, const whit_chat_prompt *prompt, bool tools,
                                  whit_chat_event_fn *on_event, void *user, whit_chat_parser **parser,
                                  whit_error *error)
{
    WHIT_NEED(parser);
    *parser = NULL;
    if (!chat) return whit_fail(error, WHIT_ERROR_ARGUMENT, "whit_chat_parser_open: 'chat' is NULL");
    WHIT_TRY(whit_answer_open(chat->style.syntax, tools, whit_prompter_thinking_open(chat->prompter),
                              whit_prompter_thinking_close(chat->prompter), prompt && prompt->prompt.thinking, on_event,
                              user, chat->allocator, parser, error));
    if (!prompt || !tools || !prompt->tools.size_bytes) return WHIT_OK;
    whit_status status = whit_answer_set_tools(*parser, whit_chars(&prompt->tools), prompt->tools.size_bytes, error);
    if (status == WHIT_OK) return WHIT_OK;
    whit_chat_parser_close(*parser);
    *parser = NULL;
    return status;
}

size_t whit_json_quote(const char *text, size_t text_bytes, char *out, size_t capacity)
{
    whit_buf quoted = {.limit_bytes = 0};
    size_t n = 0;
    if (whit_json_write_string(&quoted, whit_or_empty(text), text ? text_bytes : 0)) n = quoted.size_bytes;
    size_t n_written = n < capacity ? n : capacity;
    if (n_written) memcpy(out, quoted.data, n_written);
    whit_buf_free(&quoted);
    return n;
}
