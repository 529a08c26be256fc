/* SPDX-License-Identifier: MIT
 * Converts messages to prompts by a model's chat template, and parses answers into text, thinking and tool calls.
 * Messages, tools and calls are JSON as OpenAI's chat API has it.
 *
 *     render -> prompt -> generation (keep_special if whit_chat_template_keep_special) -> parser -> message */
#ifndef WHIT_CHAT_H
#define WHIT_CHAT_H

#include "generation.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- templates ------------------------------------------------------------------------------------ */

/* A chat template is opened for one model, which must outlive it. After opening it never changes, and any thread may
 * use it. */
typedef struct whit_chat_template whit_chat_template;

typedef struct whit_chat_template_options {
    size_t struct_bytes;
    const char *source; /* Jinja source of the template; default NULL: the model's own template */
    size_t source_bytes;
    const char *name; /* name of the source in error messages; default NULL: "the template" */
    /* If the template does not support tools: describe them in the system message, write and read calls as
     * <tool_call>{"name", "arguments"}</tool_call> in the text, and pass results as user messages. */
    bool tool_fallback;
} whit_chat_template_options;
static inline whit_chat_template_options whit_chat_template_options_default(void)
{
    whit_chat_template_options options;
    memset(&options, 0, sizeof options);
    options.struct_bytes = sizeof options;
    return options;
}

/* Opens the template. The error is WHIT_ERROR_UNSUPPORTED if the model has no tokenizer, or has no template and
 * `source` is NULL. */
WHIT_API WHIT_CHECKED whit_status whit_chat_template_open(const whit_model *model,
                                                          const whit_chat_template_options *options,
                                                          whit_chat_template **chat, whit_error *error);
WHIT_API void whit_chat_template_close(whit_chat_template *chat);
/* Returns the Jinja source of the template, which is not terminated, and sets *source_bytes to its size. */
WHIT_API const char *whit_chat_template_source(const whit_chat_template *chat, size_t *source_bytes);
/* Returns whether requests may have tools: the template supports them, or tool_fallback is set. */
WHIT_API bool whit_chat_template_takes_tools(const whit_chat_template *chat);
/* Returns whether tools are described without the template (tool_fallback). A grammar (whit_call_grammar_open) should
 * then constrain the calls, because the model was not trained to write them in this form. */
WHIT_API bool whit_chat_template_is_plain(const whit_chat_template *chat);
/* Returns whether whit_chat_request.thinking changes a prompt: renders a short prompt with thinking on and off, and
 * compares. Returns false if the template refuses it. */
WHIT_API bool whit_chat_template_switches_thinking(const whit_chat_template *chat);
/* Return settings for generating an answer: an id and a text (NULL: no text) that end a turn in addition to the model's
 * own end tokens, and whether the parser needs special tokens in the text (keep_special). */
WHIT_API int32_t whit_chat_template_end(const whit_chat_template *chat); /* id that ends a turn; -1 if absent */
WHIT_API const char *whit_chat_template_stop(const whit_chat_template *chat);
WHIT_API bool whit_chat_template_keep_special(const whit_chat_template *chat);

/* ---- prompts -------------------------------------------------------------------------------------- */

/* The mode of thinking is passed to the templates of reasoning models; other templates ignore it. With AUTO the
 * template decides whether the model thinks. */
typedef enum whit_thinking { WHIT_THINKING_AUTO, WHIT_THINKING_ON, WHIT_THINKING_OFF } whit_thinking;

typedef struct whit_chat_request {
    size_t struct_bytes;
    const char *messages; /* a JSON list of objects: role, content, tool_calls, tool_call_id, name, ... */
    size_t messages_bytes;
    const char *tools; /* a JSON list; NULL: no tools */
    size_t tools_bytes;
    const char *variables; /* a JSON object with further template variables; NULL: no variables */
    size_t variables_bytes;
    whit_thinking thinking;
    bool no_answer;     /* end the prompt with the last message: do not append the text that begins an answer */
    bool continue_last; /* continue the last message instead of beginning a new one */
} whit_chat_request;
static inline whit_chat_request whit_chat_request_default(void)
{
    whit_chat_request request;
    memset(&request, 0, sizeof request);
    request.struct_bytes = sizeof request;
    return request;
}

/* A prompt is a rendered request. Special tokens written in the contents, tools and variables of the request become
 * plain text. The roles of messages are system, developer (rendered as system if the template does not know it), user,
 * assistant, tool, and others that the template names. System messages that the template refuses or leaves out are
 * rendered as user messages. */
typedef struct whit_chat_prompt whit_chat_prompt;
WHIT_API WHIT_CHECKED whit_status whit_chat_render(const whit_chat_template *chat, const whit_chat_request *request,
                                                   whit_chat_prompt **prompt, whit_error *error);
WHIT_API const int32_t *whit_chat_prompt_ids(const whit_chat_prompt *prompt, size_t *n_ids);
WHIT_API const char *whit_chat_prompt_text(const whit_chat_prompt *prompt, size_t *text_bytes);
WHIT_API void whit_chat_prompt_close(whit_chat_prompt *prompt);

/* ---- answers -------------------------------------------------------------------------------------- */

typedef enum whit_chat_event_kind {
    WHIT_CHAT_TEXT,
    WHIT_CHAT_THINKING,
    WHIT_CHAT_CALL_BEGIN,     /* `text` is the function's name */
    WHIT_CHAT_CALL_ARGUMENTS, /* `text` is a piece of the call's arguments, which are JSON */
    WHIT_CHAT_CALL_END,
} whit_chat_event_kind;

typedef struct whit_chat_event {
    whit_chat_event_kind kind;
    uint32_t i_call;  /* for CALL_BEGIN, CALL_ARGUMENTS and CALL_END: index of the call, from 0 */
    const char *text; /* not terminated; valid until on_event returns */
    size_t text_bytes;
    bool complete; /* for CALL_END: false if the call is malformed or cut off, or its arguments are not JSON */
} whit_chat_event;
/* Receives an event of an answer; returns false to stop the parser: it is not called again, and the parser's functions
 * return WHIT_ERROR_CANCELLED. */
typedef bool whit_chat_event_fn(void *user, const whit_chat_event *event);

/* Parses a streamed answer, in pieces of any size. A malformed call becomes text or, if its CALL_BEGIN was already
 * reported, ends with `complete` false. Blanks around thinking and calls are dropped. With `tools` false, calls are not
 * parsed. The template must outlive the parser. `prompt` (NULL: no prompt) says whether the answer begins within a
 * thinking section, and which types the arguments of calls have if the model writes them without JSON; it is not needed
 * afterwards. on_event may be NULL. */
typedef struct whit_chat_parser whit_chat_parser;
WHIT_API WHIT_CHECKED whit_status whit_chat_parser_open(const whit_chat_template *chat, const whit_chat_prompt *prompt,
                                                        bool tools, whit_chat_event_fn *on_event, void *user,
                                                        whit_chat_parser **parser, whit_error *error);
WHIT_API WHIT_CHECKED whit_status whit_chat_parser_push(whit_chat_parser *parser, const char *text, size_t text_bytes,
                                                        whit_error *error);
/* Ends the answer. Call it after the last piece. */
WHIT_API WHIT_CHECKED whit_status whit_chat_parser_flush(whit_chat_parser *parser, whit_error *error);
/* After the flush, returns the answer as an assistant's message: {"role", "content", "reasoning_content",
 * "tool_calls"}, where reasoning_content and tool_calls are optional, and content is null if there are calls and no
 * text. It is valid until close. */
WHIT_API const char *whit_chat_parser_message(const whit_chat_parser *parser, size_t *text_bytes);
WHIT_API uint32_t whit_chat_parser_n_calls(const whit_chat_parser *parser);
WHIT_API void whit_chat_parser_close(whit_chat_parser *parser);

/* Writes `text` as a JSON string with its quotes, for programs without a JSON library; returns the size
 * in bytes (0: out of memory), of which at most `capacity` are written, without a terminator. Bytes that
 * are not UTF-8 become U+FFFD. */
WHIT_API size_t whit_json_quote(const char *text, size_t text_bytes, char *out, size_t capacity);

#ifdef __cplusplus
}
#endif
#endif
