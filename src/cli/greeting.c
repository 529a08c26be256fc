/* SPDX-License-Identifier: MIT
 * Prints a chat's remarks about itself: which model answers, and which parts of the conversation the model does not
 * see. */
#include <stdio.h>
#include <string.h>

#include "base/phrase.h"
#include "cli/chat.h"
#include "cli/tales.h"

void cli_chat_greet(const cli_chat *chat, const char *path)
{
    const char *name = whit_model_metadata(chat->talk.model, "general.name");
    const char *slash = path ? strrchr(path, '/') : NULL;
    if (cli_is_tales(path)) {
        cli_note("this is tales, a toy of 3 million weights inside the program: it tells short tales of children and "
                 "animals, and can do nothing else");
        cli_note("for a model that answers: 'whit pull " CLI_FIRST_MODEL "', then 'whit chat " CLI_FIRST_NAME "'");
    } else {
        const char *file = slash && slash[1] ? slash + 1 : path;
        cli_note("%s%s%s, context of %u tokens", file, name ? ": " : "", whit_or_empty(name),
                 whit_session_context_size(chat->talk.session));
    }
    cli_note("type a message and Enter; /help lists commands, Ctrl-C stops an answer, /bye leaves");
}

/* Excludes white space at both ends of the text, which templates remove, too. */
static void trim(const char **text, size_t *n)
{
    while (*n && strchr(" \t\r\n", (*text)[*n - 1])) --*n;
    while (*n && strchr(" \t\r\n", **text)) ++*text, --*n;
}

void cli_talk_remark_system(cli_talk *talk)
{
    json_t *system = cli_talk_message(talk, 0);
    size_t n_prompt, n = 0;
    const char *prompt = whit_conversation_prompt(talk->conversation, &n_prompt), *text = cli_system_text(system, &n);
    trim(&text, &n);
    const bool is_seen = !n || talk->told_system || memmem(prompt, n_prompt, text, n);
    json_decref(system);
    if (is_seen) return;
    talk->told_system = true;
    cli_note("the model's chat template leaves the system message out, so the model did not see it (put it into a "
             "message, or give another --template)");
}
