/* SPDX-License-Identifier: MIT
 * Has a conversation with tools: conversation MODEL "QUESTION". The model must call each of the two tools once; this
 * program makes up their results. */
#include <stdio.h>
#include <string.h>
#include <whit.h>
#include <whit/names.h>

static const char tools[] =
    "[{\"type\": \"function\", \"function\": {\"name\": \"weather\", \"parameters\": {\"type\": \"object\", "
    "\"properties\": {\"city\": {\"enum\": [\"Bern\", \"Rome\"]}}, \"required\": [\"city\"], \"additionalProperties\": "
    "false}}}, {\"type\": \"function\", \"function\": {\"name\": \"clock\", \"parameters\": {\"type\": \"object\", "
    "\"properties\": {}, \"additionalProperties\": false}}}]";

int main(int argc, char **argv)
{
    static whit_model *model; /* static: these objects are used until the program ends */
    static whit_session *session;
    static whit_sampler *sampler;
    static whit_chat_template *chat;
    static whit_conversation *talk;
    static const char *const demanded[] = {"weather", "clock", NULL}; /* the tool that each answer must call; NULL: the
                                                                       * last answer is text */
    if (argc != 3) return fputs("usage: conversation MODEL QUESTION\n", stderr), 2;
    const char *question = argv[2];
    const whit_conversation_call *call;
    whit_error error;
    whit_session_options wide = whit_session_options_default();
    whit_chat_template_options any = whit_chat_template_options_default();
    whit_answer_options options = whit_answer_options_default();
    size_t n;
    wide.n_ctx_tokens = 2048, any.tool_fallback = options.single_call = true, options.n_tokens = 100;
    if (whit_model_open_named(argv[1], NULL, &model, &error) || whit_session_open(model, &wide, &session, &error) ||
        whit_sampler_open(model, NULL, &sampler, &error) || whit_chat_template_open(model, &any, &chat, &error) ||
        whit_conversation_open(session, 0, chat, &talk, &error) ||
        whit_conversation_set_tools(talk, tools, sizeof tools - 1, &error) ||
        whit_conversation_say(talk, "user", question, strlen(question), &error))
        return fprintf(stderr, "conversation: %s\n", error.message), 1;
    for (int i = 0; i < 3; i++) {
        options.call_name = demanded[i];
        if (whit_conversation_answer(talk, sampler, &options, NULL, &error))
            return fprintf(stderr, "conversation: %s\n", error.message), 1;
        while ((call = whit_conversation_next_call(talk)) != NULL) {
            const char *result = strcmp(call->name, "clock") ? "18 degrees, rain" : "12:30";
            printf("%s(%s): %s\n", call->name, call->arguments, result);
            if (whit_conversation_return(talk, result, strlen(result), &error)) break;
        }
    }
    const char *last = whit_conversation_message(talk, whit_conversation_count(talk) - 1, &n);
    return printf("%.*s\n", (int)n, last) < 0;
}
