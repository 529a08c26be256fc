/* SPDX-License-Identifier: MIT
 * Runs the commands of a chat, which are lines that begin with '/'. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/items.h"
#include "base/path.h"
#include "base/phrase.h"
#include "cli/chat.h"
#include "cli/flags.h"
#include "cli/habits.h"
#include "cli/names.h"

static const char *n_messages(cli_chat *chat, char many[32])
{
    size_t n = whit_conversation_count(chat->talk.conversation);
    snprintf(many, 32, "%zu message%s", n, whit_plural(n));
    return many;
}

/* ---- files ---------------------------------------------------------------------------------- */

/* Splits off the first word; returns the text after the word and its blanks. */
static char *next_word(char *text)
{
    char *end = text + strcspn(text, " \t");
    if (!*end) return end;
    *end++ = 0;
    return end + strspn(end, " \t");
}

/* Reads the file's name at the beginning of *text; "~/" at its beginning is $HOME. A name that begins with a double
 * quote ends at the second one, and *text becomes the text after it; otherwise the whole text is the name, and *text
 * becomes empty. Returns false if the name is empty or too long. */
static bool read_name(char **text, char path[CLI_PATH_BYTES])
{
    char *name = *text, *end = name[0] == '"' ? strchr(name + 1, '"') : NULL;
    *text = name + strlen(name);
    if (end) {
        name++;
        *end++ = 0;
        *text = end + strspn(end, " \t");
    }
    return whit_path_expand(name, path, CLI_PATH_BYTES) && *path;
}

int cli_chat_load(cli_chat *chat, const char *path)
{
    whit_error error;
    if (whit_conversation_load(chat->talk.conversation, path, &error) != WHIT_OK)
        return cli_fail_error(chat->call, &error);
    char many[32];
    cli_note("loaded %s from %s", n_messages(chat, many), path);
    return CLI_OK;
}

static void load_conversation(cli_chat *chat, char *given)
{
    char path[CLI_PATH_BYTES];
    if (!read_name(&given, path))
        cli_chat_fail(chat, CLI_USAGE, "/load needs a file");
    else
        cli_chat_remember(chat, cli_chat_load(chat, path));
}

static void save(cli_chat *chat, char *given)
{
    whit_error error;
    char many[32], path[CLI_PATH_BYTES];
    if (!read_name(&given, path))
        cli_chat_fail(chat, CLI_USAGE, "/save needs a file");
    else if (whit_conversation_save(chat->talk.conversation, path, &error) != WHIT_OK)
        cli_chat_fail_error(chat, &error);
    else
        cli_note("saved %s to %s", n_messages(chat, many), path);
}

/* ---- /show ---------------------------------------------------------------------------------- */

static void show_model(cli_chat *chat)
{
    const whit_model *model = chat->talk.model;
    const char *name = whit_model_metadata(model, "general.name"),
               *family = whit_model_metadata(model, "general.architecture");
    cli_print(chat->call, "%-14s%s\n%-14s%s\n", "model", name ? name : "?", "family", family);
    cli_print(chat->call, "%-14s%u tokens\n%-14s%u tokens, as trained\n", "vocabulary", whit_model_vocab_size(model),
              "context", whit_model_context_size(model));
}

static void show_template(cli_chat *chat)
{
    cli_print(chat->call, "%s\n", cli_talk_template(&chat->talk));
}

static const char *const thinking_words[] = {"auto", "on", "off"};

/* Shows the sampling parameter `only`, or with NULL all of them; false if no parameter has this name. */
static bool show_sampling(cli_chat *chat, const char *only)
{
    char name[32];
    bool is_shown = false;
    for (const cli_option *option = cli_sampler_options; option->names; option++) {
        const char *value = (const char *)&chat->sampler + option->offset;
        cli_option_name(option->names, name, sizeof name);
        if (!strcmp(name, "-s")) strcpy(name, "--seed");
        if (only && strcmp(name + 2, only) != 0) continue;
        is_shown = is_shown || option->kind != CLI_REPEAT;
        if (option->kind == CLI_REAL)
            cli_print(chat->call, "%-20s%g\n", name + 2, (double)*(const float *)(const void *)value);
        else if (option->kind == CLI_INT)
            cli_print(chat->call, "%-20s%d\n", name + 2, *(const int32_t *)(const void *)value);
        else if (option->kind == CLI_SEED)
            cli_print(chat->call, "%-20s%lld\n", name + 2, (long long)*(const int64_t *)(const void *)value);
    }
    return is_shown;
}

static void show_parameters(cli_chat *chat)
{
    show_sampling(chat, NULL);
    cli_print(chat->call, "%-20s%d\n%-20s%s\n%-20s%s\n", "predict", chat->n_tokens, "think",
              thinking_words[chat->thinking], "stats", chat->verbose ? "on" : "off");
}

static void show_context(cli_chat *chat)
{
    const size_t n_left_out = whit_conversation_n_left_out(chat->talk.conversation);
    char many[32];
    cli_print(chat->call, "context: %u of %u tokens; %s", whit_session_position(chat->talk.session, 0),
              whit_session_context_size(chat->talk.session), n_messages(chat, many));
    if (n_left_out)
        cli_print(chat->call, ", of which the model no longer sees the oldest %zu\n", n_left_out);
    else
        cli_print(chat->call, whit_conversation_count(chat->talk.conversation) ? ", and all messages fit\n" : "\n");
}

/* Prints the role, the text and the calls of a message. A content that is a list of parts is printed as JSON. */
static void show_message(cli_chat *chat, const json_t *message)
{
    const json_t *content = json_object_get(message, "content"), *calls = json_object_get(message, "tool_calls");
    char *parts = json_is_array(content) ? json_dumps(content, 0) : NULL;
    const char *role = json_string_value(json_object_get(message, "role"));
    cli_print(chat->call, "%s: ", role ? role : "?");
    if (json_is_string(content)) cli_write(chat->call, json_string_value(content), json_string_length(content));
    if (parts) cli_write(chat->call, parts, strlen(parts));
    for (size_t i = 0; i < json_array_size(calls); i++) {
        const json_t *function = json_object_get(json_array_get(calls, i), "function");
        const char *name = json_string_value(json_object_get(function, "name"));
        char *arguments = json_dumps(json_object_get(function, "arguments"), JSON_ENCODE_ANY);
        const char *feed = json_string_length(content) || i ? "\n" : "";
        cli_print(chat->call, "%scalls %s ", feed, name ? name : "?");
        if (arguments) cli_write(chat->call, arguments, strlen(arguments));
        free(arguments);
    }
    cli_print(chat->call, "\n");
    free(parts);
}

static void show_history(cli_chat *chat)
{
    const size_t n = whit_conversation_count(chat->talk.conversation);
    if (!n) cli_print(chat->call, "no messages yet\n");
    for (size_t i = 0; i < n; i++) {
        json_t *message = cli_talk_message(&chat->talk, i);
        show_message(chat, message);
        json_decref(message);
    }
}

static void show_system(cli_chat *chat)
{
    json_t *message = cli_talk_message(&chat->talk, 0);
    size_t n;
    const char *text = cli_system_text(message, &n);
    if (n)
        cli_write(chat->call, text, n);
    else
        cli_print(chat->call, "no system message; '/set system TEXT' sets one");
    cli_print(chat->call, "\n");
    json_decref(message);
}

static void show_prompt(cli_chat *chat)
{
    size_t n;
    const char *prompt = whit_conversation_prompt(chat->talk.conversation, &n);
    if (!n) {
        cli_print(chat->call, "nothing was sent to the model yet\n");
        return;
    }
    cli_write(chat->call, prompt, n);
    cli_print(chat->call, "\n");
}

static void show_tokens(cli_chat *chat)
{
    size_t n;
    const int32_t *ids = whit_conversation_ids(chat->talk.conversation, &n);
    cli_print(chat->call, "tokens:");
    for (size_t i = 0; i < n; i++) cli_print(chat->call, " %d", ids[i]);
    cli_print(chat->call, "\n");
}

static const struct {
    const char *name;
    void (*show)(cli_chat *chat);
} shows[] = {
    {"info", show_model},      {"model", show_model},     {"template", show_template}, {"parameters", show_parameters},
    {"context", show_context}, {"history", show_history}, {"system", show_system},     {"prompt", show_prompt},
    {"tokens", show_tokens},
};
enum { N_SHOWS = sizeof shows / sizeof *shows };

static void show_facts(cli_chat *chat, char *what)
{
    if (!what[0]) {
        show_model(chat);
        show_context(chat);
        show_parameters(chat);
        return;
    }
    for (size_t i = 0; i < N_SHOWS; i++)
        if (!strcmp(shows[i].name, what)) {
            shows[i].show(chat);
            return;
        }
    cli_chat_fail(chat, CLI_USAGE,
                  "/show takes info, template, parameters, context, history, system, prompt or "
                  "tokens, not '%s'",
                  what);
}

/* ---- /set ----------------------------------------------------------------------------------- */

static void set_system(cli_chat *chat, const char *text)
{
    whit_buf block = {0};
    whit_error error;
    bool given = true;
    if (!strncmp(text, "\"\"\"", 3))
        given = cli_chat_read_block(chat, text + 3, strlen(text + 3), &block);
    else
        whit_buf_append_str(&block, text);
    if (given &&
        whit_conversation_set_system(chat->talk.conversation, whit_chars(&block), block.size_bytes, &error) != WHIT_OK)
        cli_chat_fail_error(chat, &error);
    else if (given && block.size_bytes)
        cli_note("the system message is set");
    else if (given)
        cli_note("there is no system message any more");
    whit_buf_free(&block);
}

static void set_thinking(cli_chat *chat, const char *word)
{
    if (!word[0]) word = "on";
    for (int i = 0; i < 3; i++)
        if (!strcmp(word, thinking_words[i])) {
            chat->thinking = (whit_thinking)i;
            cli_note("think: %s", word);
            return;
        }
    cli_chat_fail(chat, CLI_USAGE, "/set think takes auto, on or off, not '%s'", word);
}

static void set_verbose(cli_chat *chat, const char *word)
{
    if (word[0] && strcmp(word, "on") && strcmp(word, "off"))
        cli_chat_fail(chat, CLI_USAGE, "/set stats takes on or off, not '%s'", word);
    else
        chat->verbose = strcmp(word, "off") != 0;
    cli_note("stats: %s", chat->verbose ? "on" : "off");
}

static void set_predict(cli_chat *chat, const char *text)
{
    char *end;
    errno = 0;
    long n = strtol(text, &end, 10);
    if (end == text || *end || errno || n < -1 || n > 1 << 30)
        cli_chat_fail(chat, CLI_USAGE, "/set predict takes a whole number from -1, not '%s'", text);
    else
        chat->n_tokens = (int32_t)n;
    if (chat->n_tokens < 0)
        cli_note("predict: no limit but the context");
    else
        cli_note("predict: at most %d tokens", chat->n_tokens);
}

static void set_no_thinking(cli_chat *chat, const char *nothing)
{
    (void)nothing;
    chat->thinking = WHIT_THINKING_OFF;
    cli_note("think: off");
}

static void set_quiet(cli_chat *chat, const char *nothing)
{
    (void)nothing;
    chat->verbose = false;
    cli_note("stats: off");
}

/* Runs /set format and /format: sets the grammar that every answer must follow, or with off or text ends it. */
static void set_format(cli_chat *chat, const char *text)
{
    cli_grammar wanted;
    whit_buf kept = {0};
    bool is_off = !*text || !strcmp(text, "off") || !strcmp(text, "text"), is_json = !strcmp(text, "json");
    cli_grammar_flags flags = {.schema = is_json ? "{\"type\": \"object\"}" : is_off ? NULL : text};
    int status = cli_open_grammar(chat->call, &flags, chat->talk.model, &wanted);
    if (status == CLI_OK && flags.schema && !whit_buf_append(&kept, flags.schema, strlen(flags.schema) + 1))
        status = cli_fail(chat->call, CLI_LIMIT, "not enough memory for the format");
    if (status != CLI_OK) {
        cli_close_grammar(&wanted);
        cli_chat_remember(chat, status);
        return;
    }
    cli_close_grammar(&chat->grammar);
    chat->grammar = wanted;
    whit_buf_free(&chat->form_text);
    chat->form_text = kept;
    chat->form = (cli_grammar_flags){.schema = kept.size_bytes ? whit_chars(&chat->form_text) : NULL};
    const char *form = "format: JSON as %s has it";
    if (is_off)
        form = "format: any text%s";
    else if (is_json)
        form = "format: a JSON object%s";
    cli_note(form, is_off || is_json ? "" : text);
}

/* Names that /set does not accept, such as settings of other programs, with a hint to the option of whit that has their
 * effect. */
static const struct {
    const char *name, *line;
} elsewhere[] = {
    {"num_ctx", "the context is chosen at the start: whit chat -c N"},
    {"ctx-size", "the context is chosen at the start: whit chat -c N"},
    {"num_thread", "threads are chosen at the start: whit chat -t N"},
    {"num_gpu", "whit runs on the CPU"},
    {"history", "the history of typed lines is kept unless whit chat --no-history"},
    {"nohistory", "whit chat --no-history keeps no history of typed lines"},
    {"wordwrap", "long lines are wrapped unless whit chat --no-wrap"},
    {"nowordwrap", "whit chat --no-wrap leaves long lines to the terminal"},
};

static const struct {
    const char *name;
    void (*set)(cli_chat *chat, const char *value);
} sets[] = {
    {"system", set_system},   {"think", set_thinking},      {"nothink", set_no_thinking},
    {"verbose", set_verbose}, {"stats", set_verbose},       {"quiet", set_quiet},
    {"predict", set_predict}, {"num_predict", set_predict}, {"format", set_format},
};
enum { N_SETS = sizeof sets / sizeof *sets };

static void set_sampling(cli_chat *chat, const char *name, const char *value)
{
    cli_sampler_flags wanted = chat->sampler;
    if (!value[0] && show_sampling(chat, name)) return;
    int status = cli_set_option(chat->call, cli_sampler_options, name, value, &wanted);
    for (size_t i = 0; status < 0 && i < sizeof elsewhere / sizeof *elsewhere; i++)
        if (!strcmp(elsewhere[i].name, name)) {
            cli_chat_fail(chat, CLI_USAGE, "%s", elsewhere[i].line);
            return;
        }
    if (status < 0) {
        cli_chat_fail(chat, CLI_USAGE,
                      "/set has no parameter '%s'; it has system and those that /show parameters lists", name);
        return;
    }
    cli_chat_remember(chat, status);
    if (status != CLI_OK) return;
    if (wanted.seed < 0) wanted.seed = chat->sampler.seed;
    if (!strcmp(name, "seed")) chat->n_answers = 0;
    chat->sampler = wanted;
    cli_note("%s: %s", name, value);
}

static void set_parameter(cli_chat *chat, char *name)
{
    char *value = next_word(name);
    if (!strcmp(name, "parameter")) {
        name = value;
        value = next_word(name);
    }
    char *equals = value[0] ? NULL : strchr(name, '=');
    if (equals) { /* "temp=0.2" */
        *equals = 0;
        value = equals + 1;
    }
    if (!name[0]) {
        show_parameters(chat);
        return;
    }
    for (size_t i = 0; i < N_SETS; i++)
        if (!strcmp(sets[i].name, name)) {
            sets[i].set(chat, value);
            return;
        }
    set_sampling(chat, name, value);
}

/* ---- other commands ------------------------------------------------------------------------- */

void cli_chat_keep_messages(cli_chat *chat)
{
    cli_chat_remember(
        chat, cli_keep_conversation(chat->call, &chat->keep, chat->talk.conversation, NULL, WHIT_FINISH_LENGTH));
}

static void clear(cli_chat *chat, char *nothing)
{
    (void)nothing;
    whit_conversation_keep(chat->talk.conversation, whit_conversation_n_system(chat->talk.conversation));
    cli_chat_keep_messages(chat);
    cli_note("the conversation begins anew");
}

/* Generates the last answer again. If this gives no answer, the previous one stays. */
static void answer_again(cli_chat *chat, char *nothing)
{
    (void)nothing;
    whit_conversation *conversation = chat->talk.conversation;
    const size_t n = whit_conversation_count(conversation);
    size_t n_bytes;
    whit_buf before = {0};
    whit_error error;
    if (n == whit_conversation_n_system(conversation)) {
        cli_chat_fail(chat, CLI_USAGE, "there is nothing to answer yet");
        return;
    }
    const bool is_answered = whit_messages_of(conversation)[n - 1].role == WHIT_ROLE_ASSISTANT;
    const char *last = whit_conversation_message(conversation, n - 1, &n_bytes);
    if (is_answered && !whit_buf_append(&before, last, n_bytes)) {
        cli_chat_fail(chat, CLI_LIMIT, "not enough memory to keep the earlier answer");
        return;
    }
    if (is_answered) whit_conversation_keep(conversation, n - 1);
    if (!cli_chat_answer(chat) && is_answered &&
        whit_conversation_append(conversation, whit_chars(&before), before.size_bytes, &error) != WHIT_OK)
        cli_chat_fail_error(chat, &error);
    whit_buf_free(&before);
}

static void undo(cli_chat *chat, char *nothing)
{
    (void)nothing;
    char many[32];
    const size_t n_removed = whit_conversation_undo(chat->talk.conversation);
    if (!n_removed) {
        cli_chat_fail(chat, CLI_USAGE, "there is no message to take back");
        return;
    }
    cli_chat_keep_messages(chat);
    cli_note("took back the last message%s; %s left", n_removed > 1 ? " and its answer" : "", n_messages(chat, many));
}

/* Maximum size of a file for /read. Most contexts are smaller: a file that does not fit in the context is refused only
 * when the model is to answer it. */
enum { READ_BYTES_MAX = 4 << 20 };

/* Makes a message from the words after a file's name, followed by the file. */
static void read_message(cli_chat *chat, char *words)
{
    char path[CLI_PATH_BYTES], *name = words;
    if (words[0] != '"') words = next_word(words);
    whit_buf text = {0}, message = {0};
    const char *kind;
    whit_error error;
    const bool is_quoted = name[0] == '"';
    if (!read_name(&name, path)) {
        cli_chat_fail(chat, CLI_USAGE, "/read FILE [WORDS] puts a file into a message, after the words");
        return;
    }
    if (is_quoted) words = name;
    if (whit_read_file(path, READ_BYTES_MAX, &text, &error) != WHIT_OK) {
        cli_chat_fail_error(chat, &error);
    } else if ((kind = cli_binary_kind(whit_chars(&text), text.size_bytes)) != NULL) {
        cli_chat_fail(chat, CLI_REFUSED, "%s: is %s, but only plain text can be read", path, kind);
    } else if (!text.size_bytes || memchr(text.data, 0, text.size_bytes)) {
        cli_chat_fail(chat, CLI_REFUSED, text.size_bytes ? "%s: is not text" : "%s: is empty", path);
    } else {
        cli_note("%s: %zu bytes", path, text.size_bytes);
        if (words[0] && (!whit_buf_append_str(&message, words) || !whit_buf_append_str(&message, "\n\n")))
            message.failed = true;
        if (whit_buf_append(&message, text.data, text.size_bytes))
            cli_chat_say(chat, whit_chars(&message), message.size_bytes);
        else
            cli_chat_fail(chat, CLI_LIMIT, "not enough memory for a message");
    }
    whit_buf_free(&message);
    whit_buf_free(&text);
}

static void say_model(cli_chat *chat, char *name)
{
    if (name[0])
        cli_chat_switch(chat, name);
    else
        show_model(chat);
}

static void list_models(cli_chat *chat, char *nothing)
{
    (void)nothing;
    cli_chat_fail(chat, CLI_USAGE, "'whit list' shows the models that are here");
}

static void leave(cli_chat *chat, char *nothing)
{
    (void)nothing;
    chat->over = true;
}

static void take_format(cli_chat *chat, char *text)
{
    set_format(chat, text);
}

static void help(cli_chat *chat, char *nothing);

static const struct {
    const char *name, *argument, *help;
    void (*run)(cli_chat *chat, char *argument); /* argument: "" if it was not given */
} commands[] = {
    {"set", "NAME VALUE", "change a parameter: temp, top-k, seed, ..., predict", set_parameter},
    {"set", "system TEXT", "what the model is told first; \"\"\" begins several lines", set_parameter},
    {"set", "stats on|off", "show tokens per second after every answer, or not", set_parameter},
    {"set", "think on|off|auto", "ask a reasoning model to think first, or not", set_parameter},
    {"set", "format json|FILE|off", "hold answers to JSON, or to the schema in a file; so does /format", set_parameter},
    {"read", "FILE [WORDS]", "put a file into a message, after the words; \"A FILE\" with blanks", read_message},
    {"show", "[WHAT]", "info, template, parameters, context, history, system, prompt, tokens", show_facts},
    {"save", "FILE", "write the conversation as JSON", save},
    {"load", "FILE", "resume a conversation that was saved", load_conversation},
    {"edit", "", "edit the last message in $VISUAL or $EDITOR, and answer it anew", cli_chat_edit},
    {"copy", "[code]", "put the last answer, or its last block of code, into the clipboard", cli_chat_copy},
    {"model", "[NAME]", "say which model answers, or let another one answer", say_model},
    {"retry", "", "answer the last message again; so does /regen", answer_again},
    {"undo", "", "take back the last message and its answer", undo},
    {"clear", "", "begin anew; the system message stays", clear},
    {"bye", "", "leave; so does Ctrl-D", leave},
    {"help", "", "this list", help},
    {"format", "", NULL, take_format},
    {"file", "", NULL, read_message},
    {"list", "", NULL, list_models},
    {"regen", "", NULL, answer_again},
    {"exit", "", NULL, leave},
    {"quit", "", NULL, leave},
    {"?", "", NULL, help},
};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

static void help(cli_chat *chat, char *nothing)
{
    (void)nothing;
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (commands[i].help)
            cli_print(chat->call, "/%-7s%-21s%s\n", commands[i].name, commands[i].argument, commands[i].help);
    cli_print(chat->call, "%-29s%s\n%-29s%s\n", "\"\"\"", "begins and ends a message of several lines", "Ctrl-C",
              "stops an answer");
}

const char *const cli_chat_words[] = {"/bye",           "/clear",           "/copy",         "/edit",
                                      "/format json",   "/format off",      "/help",         "/load ",
                                      "/model",         "/read ",           "/retry",        "/save ",
                                      "/set format",    "/set seed",        "/set stats",    "/set system",
                                      "/set temp",      "/set think",       "/show context", "/show history",
                                      "/show model",    "/show parameters", "/show prompt",  "/show system",
                                      "/show template", "/show tokens",     "/undo",         NULL};

bool cli_chat_leaves(const char *line, size_t n_bytes)
{
    static const char *const words[] = {"exit", "quit", ":q", ":wq", ":q!"};
    while (n_bytes && strchr(" \t", line[n_bytes - 1])) n_bytes--;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == n_bytes && memcmp(words[i], line, n_bytes) == 0) return true;
    return false;
}

void cli_chat_command(cli_chat *chat, const char *line, size_t n_bytes)
{
    while (n_bytes && strchr(" \t", line[n_bytes - 1])) n_bytes--;
    char *name = memchr(line, 0, n_bytes) ? NULL : strndup(line + 1, n_bytes - 1);
    if (!name) {
        cli_chat_fail(chat, CLI_USAGE, "the command contains a zero byte, or there is not enough memory");
        return;
    }
    char *argument = next_word(name);
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (!strcmp(commands[i].name, name)) {
            commands[i].run(chat, argument);
            cli_flush(chat->call);
            free(name);
            return;
        }
    char hint[120];
    cli_chat_fail(chat, CLI_USAGE, "there is no command /%s%s; /help lists them (a space in front makes it a message)",
                  name, cli_near_commands(name, cli_chat_words, hint, sizeof hint));
    free(name);
}
