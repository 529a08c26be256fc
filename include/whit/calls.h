/* SPDX-License-Identifier: MIT
 * Compiles grammars for the form in which a model writes tool calls: a grammar can require calls, and can constrain
 * their arguments to the tools' schemas.
 *
 *     template -> vocabulary; template, prompt, tools -> grammar -> state -> stage of the generation */
#ifndef WHIT_CALLS_H
#define WHIT_CALLS_H

#include "chat.h"
#include "grammar.h"

#ifdef __cplusplus
extern "C" {
#endif

/* With AUTO an answer may contain calls; with REQUIRED it consists of one or more calls, after an optional thinking
 * section. */
typedef enum whit_call_choice { WHIT_CALL_AUTO, WHIT_CALL_REQUIRED } whit_call_choice;

typedef struct whit_call_options {
    size_t struct_bytes;
    /* `tools` is a JSON list as for whit_chat_request, with at least one tool; names have 1 to 128 letters, digits, _,
     * - and . signs. A tool's arguments must follow its `parameters` if it is `strict`, or if calls are required and
     * the tool is not `"strict": false`. If tools are described without the template (whit_chat_template_is_plain),
     * they must with AUTO also follow any schema that a grammar can enforce. Otherwise they may be any JSON object. */
    const char *tools;
    size_t tools_bytes;
    const char *name; /* the only function that may be called; NULL: any of the tools */
    whit_call_choice choice;
    bool single;               /* allow one call at most */
    const char *answer_schema; /* JSON Schema of an answer without calls, ignored with REQUIRED; NULL: any text */
    size_t answer_schema_bytes;
} whit_call_options;
static inline whit_call_options whit_call_options_default(void)
{
    whit_call_options options;
    memset(&options, 0, sizeof options);
    options.struct_bytes = sizeof options;
    return options;
}

/* Opens a vocabulary of the template's model for such grammars: special tokens with which calls and thinking are
 * written have their text in it. Generations with such a grammar must set keep_special if
 * whit_chat_template_keep_special returns true. The template's model must outlive the vocabulary. */
WHIT_API WHIT_CHECKED whit_status whit_call_vocabulary_open(const whit_chat_template *chat,
                                                            whit_grammar_vocabulary **vocabulary, whit_error *error);
/* Compiles the grammar of answers to `prompt`. A thinking section may precede calls and text if the template has one.
 * Models whose whole answer is the call (Llama 3) make one call at most. If a schema keyword can't be enforced, the
 * error is "tools[i].function.parameters: #/path: " with the reason. */
WHIT_API WHIT_CHECKED whit_status whit_call_grammar_open(const whit_chat_template *chat, const whit_chat_prompt *prompt,
                                                         const whit_grammar_vocabulary *vocabulary,
                                                         const whit_call_options *options, whit_grammar **grammar,
                                                         whit_error *error);

#ifdef __cplusplus
}
#endif
#endif
