/* SPDX-License-Identifier: MIT
 * Chats by the model's template: chat MODEL. Each line of stdin is a question. */
#include <stdio.h>
#include <string.h>
#include <whit.h>
#include <whit/names.h>

static bool print(void *user, const char *text, size_t n)
{
    return fwrite(text, 1, n, (FILE *)user) == n && fflush((FILE *)user) == 0;
}

int main(int argc, char **argv)
{
    static whit_model *model; /* static: these objects are used until the program ends */
    static whit_session *session;
    static whit_sampler *sampler;
    static whit_chat_template *chat;
    static whit_conversation *talk;
    whit_error error;
    char line[1024];
    if (argc != 2) return fputs("usage: chat MODEL\n", stderr), 2;
    if (whit_model_open_named(argv[1], NULL, &model, &error) || whit_session_open(model, NULL, &session, &error) ||
        whit_sampler_open(model, NULL, &sampler, &error) || whit_chat_template_open(model, NULL, &chat, &error) ||
        whit_conversation_open(session, 0, chat, &talk, &error))
        return fprintf(stderr, "chat: %s\n", error.message), 1;
    whit_answer_options options = whit_answer_options_default();
    options.on_text = print, options.user = stdout, options.n_tokens = 64;
    while (fgets(line, sizeof line, stdin)) {
        if (whit_conversation_say(talk, "user", line, strcspn(line, "\n"), &error) ||
            whit_conversation_answer(talk, sampler, &options, NULL, &error))
            return fprintf(stderr, "chat: %s\n", error.message), 1;
        puts("");
    }
    return 0;
}
