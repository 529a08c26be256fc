/* SPDX-License-Identifier: MIT
 * Declares the tool style: the form in which a chat template expects messages and tool calls, and in which its model
 * writes calls. It is detected by rendering probes and by the markers in the template's source. */
#ifndef WHIT_RUNTIME_TOOL_STYLE_H
#define WHIT_RUNTIME_TOOL_STYLE_H

#include "runtime/prompter.h"
#include "template/chat.h"

typedef enum whit_call_syntax {
    WHIT_CALLS_TAGGED,   /* <tool_call>{"name", "arguments"}</tool_call>: Hermes, Qwen, SmolLM3 */
    WHIT_CALLS_MISTRAL,  /* [TOOL_CALLS][{"name", "arguments", "id"}, ...] */
    WHIT_CALLS_GRANITE,  /* <|tool_call|>[{"name", "arguments"}, ...] */
    WHIT_CALLS_LLAMA,    /* {"name", "parameters"} is the whole answer, optionally after <|python_tag|> */
    WHIT_CALLS_DEEPSEEK, /* markers with full-width bars (｜), the arguments in a ```json block */
    WHIT_CALLS_GEMMA,    /* <|tool_call>call:NAME{key:<|"|>text<|"|>,n:1}<tool_call|>: Gemma 4 */
    WHIT_CALLS_XML,      /* <tool_call>, <function=NAME>, <parameter=KEY> and texts: Qwen3.5, Qwen3-Coder, Nemotron */
} whit_call_syntax;

typedef struct whit_tool_style {
    whit_call_syntax syntax;
    bool takes_tools;    /* the template writes the list of tools */
    bool takes_system;   /* the template writes system messages */
    bool is_plain;       /* the descriptions of tools and the calls are written as plain text, not by the template
                          * (plain_tools.h) */
    bool renders_calls;  /* the template writes the calls of messages; if not, calls are appended to the contents */
    bool arguments_text; /* the template expects arguments as a string of JSON, not as an object */
    bool content_null;   /* the template expects null, not an empty string, as the content of a message with calls */
    /* the template refuses or drops all calls but the first of a message, so each call is written as a message of its
     * own */
    bool single_calls;
    bool short_ids; /* the template requires ids of calls with nine letters and digits */
    bool developer; /* the source of the template contains the word "developer" */
    bool any_role;  /* the template writes messages of unknown roles, too */
    /* Source of the template, owned by the prompter; searched for the names of roles. */
    const char *source;
    size_t source_bytes;
} whit_tool_style;

whit_status whit_tool_style_find(const whit_prompter *prompter, whit_tool_style *style, whit_error *error);

/* If the template does not write tools, changes the style to the plain form of tools (plain_tools.h). */
void whit_tool_style_make_plain(whit_tool_style *style);

/* Converts messages (JSON) to values in the form that the template expects. Calls that the template cannot write are
 * appended to contents: as <tool_call>...</tool_call>, or as a list for WHIT_CALLS_GRANITE. */
whit_status whit_tool_style_messages(const whit_tool_style *style, const char *json, size_t n_bytes,
                                     whit_datum_pool *pool, whit_datum *messages, whit_error *error);

#endif
