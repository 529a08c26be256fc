/* SPDX-License-Identifier: MIT
 * Writes one answer by the library (whit/conversation.h): converse MODEL MESSAGES TOOLS. Prints the prompt's ids on
 * one line, and the message on another. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <whit.h>

static char *read_whole(const char *path, size_t *n)
{
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, 1 << 20);
    *n = file && text ? fread(text, 1, (1 << 20) - 1, file) : 0;
    if (file) fclose(file);
    return text;
}

static int fail(const whit_error *error)
{
    fprintf(stderr, "converse: %s\n", error->message);
    return 1;
}

int main(int argc, char **argv)
{
    static whit_model *model; /* static, since these last until the program ends */
    static whit_session *session;
    static whit_sampler *sampler;
    static whit_chat_template *chat;
    static whit_conversation *talk;
    static char *tools;
    whit_error error;
    whit_sampler_options greedy = whit_sampler_options_default();
    whit_session_options wide = whit_session_options_default();
    whit_chat_template_options any = whit_chat_template_options_default();
    whit_answer_options options = whit_answer_options_default();
    whit_answer answer = whit_answer_default();
    size_t n, n_ids;
    if (argc != 4) return 2;
    greedy.temperature = 0;
    wide.n_ctx_tokens = 2048;
    any.tool_fallback = true;
    options.n_tokens = 24;
    tools = read_whole(argv[3], &n);
    if (whit_model_open(argv[1], NULL, &model, &error) || whit_session_open(model, &wide, &session, &error) ||
        whit_sampler_open(model, &greedy, &sampler, &error) || whit_chat_template_open(model, &any, &chat, &error) ||
        whit_conversation_open(session, 0, chat, &talk, &error) ||
        whit_conversation_set_tools(talk, n > 2 ? tools : NULL, n, &error) ||
        whit_conversation_load(talk, argv[2], &error) ||
        whit_conversation_answer(talk, sampler, &options, &answer, &error))
        return fail(&error);
    const int32_t *ids = whit_conversation_ids(talk, &n_ids);
    for (uint32_t i = 0; i < answer.n_kept + answer.n_prompt && i < n_ids; i++) printf("%d ", ids[i]);
    const char *message = whit_conversation_message(talk, whit_conversation_count(talk) - 1, &n);
    printf("\n%.*s\n", (int)n, message);
    whit_conversation_close(talk);
    whit_chat_template_close(chat);
    whit_sampler_close(sampler);
    whit_session_close(session);
    whit_model_close(model);
    free(tools);
    return 0;
}
