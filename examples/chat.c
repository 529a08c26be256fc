/* SPDX-License-Identifier: MIT
 * A chat by the model's template: chat FILE, a line of stdin for each question. */
#include <stdio.h>
#include <string.h>
#include <whit.h>

static char messages[1 << 16] = "["; /* a JSON list; its end is written for each prompt */
static char answer[1 << 14];         /* the text of one answer */
static size_t n_answer;

static bool collect(void *user, const char *text, size_t n)
{
    if (n > sizeof answer - n_answer) return false;
    memcpy(answer + n_answer, text, n);
    n_answer += n;
    return fwrite(text, 1, n, (FILE *)user) == n && fflush((FILE *)user) == 0;
}

static bool append(const char *role, const char *text, size_t n)
{
    char quoted[1 << 15];
    size_t n_quoted = whit_json_quote(text, n, quoted, sizeof quoted), at = strlen(messages);
    if (n_quoted > sizeof quoted || at + n_quoted + 64 > sizeof messages) return false;
    sprintf(messages + at, "%s{\"role\": \"%s\", \"content\": %.*s}", at > 1 ? ", " : "", role, (int)n_quoted, quoted);
    return true;
}

int main(int argc, char **argv)
{
    static whit_model *model; /* static: they last until the program ends */
    static whit_session *session;
    static whit_sampler *sampler;
    static whit_chat_template *chat;
    whit_chat_prompt *prompt;
    whit_error error;
    char line[1024];
    if (whit_model_open(argc == 2 ? argv[1] : "", NULL, &model, &error) ||
        whit_session_open(model, NULL, &session, &error) || whit_sampler_open(model, NULL, &sampler, &error) ||
        whit_chat_template_open(model, NULL, &chat, &error))
        return fprintf(stderr, "chat: %s\n", error.message), 1;
    int32_t end_id = whit_chat_template_end(chat);
    whit_chat_request request = whit_chat_request_default();
    whit_generate_options options = whit_generate_options_default();
    options.on_text = collect, options.user = stdout, options.end_ids = &end_id, options.n_end_ids = 1,
    options.n_tokens = 64;
    while (fgets(line, sizeof line, stdin) && append("user", line, strcspn(line, "\n"))) {
        size_t n, end = strlen(messages);
        request.messages = strcat(messages, "]"), request.messages_bytes = end + 1;
        if (whit_chat_render(chat, &request, &prompt, &error)) return fprintf(stderr, "chat: %s\n", error.message), 1;
        const int32_t *ids = whit_chat_prompt_ids(prompt, &n);
        if (whit_session_truncate(session, 0, 0, &error) ||
            whit_generate(session, sampler, ids, n, &options, NULL, &error))
            return fprintf(stderr, "chat: %s\n", error.message), 1;
        whit_chat_prompt_close(prompt), messages[end] = 0;
        if (!append("assistant", answer, n_answer)) break;
        puts(""), n_answer = 0;
    }
    return 0;
}
