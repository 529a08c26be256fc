/* SPDX-License-Identifier: MIT
 * Implements whit chat: a conversation in the terminal, or a script on stdin. */
#include "cli/chat.h"
#include "base/file.h"
#include "base/items.h"
#include "base/plain.h"
#include "base/system.h"
#include "base/typed.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/verbs.h"
#include "cli/view.h"

struct chat_values {
    const char *system, *template, *load, *program, *tools;
    int32_t n_tokens;
    uint32_t n_draft, n_thinking;
    int thinking;
    bool statistics, no_history, no_wrap, no_markup, mcp;
    cli_list stops;
    cli_keep_flags keep;
    cli_model_flags model;
    cli_session_flags session;
    cli_adapter_flags adapters;
    cli_grammar_flags grammar;
    cli_sampler_flags sampler;
};
static const struct chat_values defaults = {
    .n_draft = WHIT_DRAFT_BY_COST, .n_tokens = -1, .session = {.n_sinks = CLI_SINKS}, .sampler = CLI_SAMPLER_DEFAULTS};

#define AT(member) offsetof(struct chat_values, member)
static const cli_option options[] = {
    {"-sys, --system-prompt", CLI_TEXT, AT(system), "TEXT",
     "The system message: what the model is told before the conversation."},
    {"--load", CLI_FILE, AT(load), "FILE", "Go on with a conversation that /save wrote."},
    {"--tools", CLI_FILE, AT(tools), "FILE",
     "Tools that the model may call, a JSON list (docs/use/chat.md); you type their results, or let commands run."},
    {"--mcp", CLI_FLAG, AT(mcp), NULL, "Offer the tools of the MCP servers in the agent's configuration, too."},
    {"--chat-template, --template, --chat-template-file", CLI_FILE, AT(template), "NAME|FILE",
     "The chat template, in place of the model's own: chatml, llama3, ... or a file; a wrong name lists all."},
    {"-n, --predict, --n-predict", CLI_INT, AT(n_tokens), "N",
     "Number of tokens of an answer, or -1, the default, for no limit but the context, which -2 means too.", -2,
     1 << 30},
    {"--think", CLI_CHOICE, AT(thinking), "auto|on|off",
     "Ask a reasoning model to think first, or not; auto, the default, is as its template says."},
    {"--think-budget", CLI_COUNT, AT(n_thinking), "N",
     "Most tokens of thinking, after which its end is written for the model; 0, the default, is no limit.", 0, 1 << 30},
    {"--spec", CLI_COUNT, AT(n_draft), "N", CLI_DRAFT_HELP, 0, 31},
    CLI_DRAFT_OPTION(AT(session)),
    {"-r, --reverse-prompt, --stop", CLI_REPEAT, AT(stops), "TEXT",
     "End answers before this text; may be given again."},
    {"--program", CLI_FILE, AT(program), "FILE",
     "A program of the array language that runs for every token of an answer and changes its logits."},
    {"--stats", CLI_FLAG, AT(statistics), NULL,
     "Show tokens per second and the use of the context after every answer, on stderr."},
    {"--no-wrap, --nowordwrap", CLI_FLAG, AT(no_wrap), NULL, "Do not break long lines between words on a terminal."},
    {"--no-markup", CLI_FLAG, AT(no_markup), NULL,
     "Show answers as the model writes them, with the marks of Markdown."},
    {"--no-history", CLI_FLAG, AT(no_history), NULL, "Neither read nor write the history of typed lines."},
    CLI_KEEP_OPTIONS(AT(keep)),
    CLI_ENDLESS_OPTIONS(AT(session)),
    CLI_EXPERTS_OPTION(AT(session)),
    {0},
};

/* ---- failures ------------------------------------------------------------------------------- */

void cli_chat_remember(cli_chat *chat, int status)
{
    if (!cli_input_is_terminal(chat->input) && chat->status == CLI_OK) chat->status = status;
}

void cli_chat_fail(cli_chat *chat, int status, const char *format, ...)
{
    char line[600];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    cli_chat_remember(chat, cli_fail(chat->call, status, "%s", line));
}

void cli_chat_fail_error(cli_chat *chat, const whit_error *error)
{
    cli_chat_remember(chat, cli_fail_error(chat->call, error));
}

/* Handles an interruption: after Ctrl-C at a terminal the chat continues; SIGTERM, or any interruption of a script,
 * ends the chat. */
static void interrupted(cli_chat *chat)
{
    if (cli_input_is_terminal(chat->input) && cli_take_interrupt()) return;
    chat->over = true;
    chat->status = CLI_INTERRUPTED;
}

/* ---- answers -------------------------------------------------------------------------------- */

static void explain(cli_chat *chat, whit_status status, const whit_answer *answer, const whit_error *error)
{
    if (status == WHIT_ERROR_CANCELLED || *cli_cancelled())
        interrupted(chat);
    else if (status != WHIT_OK)
        cli_chat_fail_error(chat, error);
    cli_talk_remarks(&chat->talk, answer);
    if (chat->verbose) cli_talk_statistics(&chat->talk, answer, (uint64_t)chat->sampler.seed + chat->n_answers);
}

static void keep_turn(cli_chat *chat, const whit_sampler *sampler, whit_finish finish)
{
    int status = cli_keep_conversation(chat->call, &chat->keep, chat->talk.conversation, sampler, finish);
    if (status != CLI_OK)
        cli_note("this turn is not in the session file: it is written with the next one, if there is room then "
                 "(/save FILE writes the messages elsewhere)");
    cli_chat_remember(chat, status);
}

/* Generates one answer; false if no answer was added to the messages. */
static bool answer_once(cli_chat *chat)
{
    cli_sampler_flags flags = chat->sampler;
    whit_sampler *sampler = NULL;
    whit_answer answer = whit_answer_default();
    whit_error error;
    uint64_t seed;
    flags.seed += (int64_t)chat->n_answers; /* another seed for each answer: a repeated question gets another answer */
    int opened = cli_stage_begin(chat->call, &chat->stage, NULL, 0);
    if (opened == CLI_OK) opened = cli_open_sampler(chat->call, &flags, chat->talk.model, &seed, &sampler);
    if (opened == CLI_OK) opened = cli_restart_grammar(chat->call, &chat->grammar);
    cli_grammar_after(&chat->grammar, chat->stage.stages, chat->stage.n_stages);
    if (opened != CLI_OK) {
        whit_sampler_close(sampler);
        cli_chat_remember(chat, opened);
        return false;
    }
    cli_view view = cli_view_begin(chat->call, chat->wraps, chat->has_markup);
    whit_conversation *conversation = chat->talk.conversation;
    const size_t n_before = whit_conversation_count(conversation);
    whit_answer_options wanted = whit_answer_options_default();
    if (chat->n_tokens >= 0) wanted.n_tokens = (uint32_t)chat->n_tokens;
    wanted.n_draft_tokens = chat->n_draft;
    wanted.thinking = chat->thinking;
    wanted.n_thinking_tokens = chat->n_thinking;
    wanted.stop = chat->stops.items;
    wanted.n_stop = chat->stops.n;
    wanted.stages = chat->grammar.stages;
    wanted.n_stages = chat->grammar.n_stages;
    cli_view_receive(&view, json_array_size(chat->tools.list) > 0, &wanted);
    cli_keep_begin(&chat->keep, sampler, chat->grammar.n_stages);
    whit_status status = whit_conversation_answer(conversation, sampler, &wanted, &answer, &error);
    const bool is_answered = whit_conversation_count(conversation) > n_before;
    chat->keep.n_stages += answer.is_held + (chat->n_thinking > 0);
    if (status == WHIT_OK || answer.n_generated) cli_view_end(&view);
    if (is_answered) keep_turn(chat, sampler, answer.finish);
    whit_sampler_close(sampler);
    explain(chat, status, &answer, &error);
    if (status == WHIT_OK) cli_talk_remark_system(&chat->talk);
    chat->n_answers++;
    if (chat->call->output_failed) chat->over = true;
    return is_answered;
}

/* ---- the loop ------------------------------------------------------------------------------- */

/* Reads the next line; returns false if the chat has ended or the user pressed Ctrl-C. */
static bool next_line(cli_chat *chat, const char *prompt, const char **line, size_t *n_bytes)
{
    switch (cli_input_next(chat->input, prompt, line, n_bytes)) {
    case CLI_LINE_READ: return true;
    case CLI_LINE_INTERRUPTED:
        if (cli_input_is_terminal(chat->input)) cli_print(chat->call, "\n(Ctrl-D or /bye leaves the chat)\n");
        interrupted(chat);
        return false;
    case CLI_LINE_FAILED:
        cli_chat_remember(chat, cli_fail(chat->call, CLI_IO, "stdin: cannot read: %s", strerror(errno)));
        break;
    case CLI_LINE_END:
        if (cli_input_is_terminal(chat->input)) cli_print(chat->call, "\n");
        break;
    }
    chat->over = true;
    return false;
}

/* ---- calls of tools ------------------------------------------------------------------------- */

#define REFUSED "error: the person did not allow this call"
#define UNSEEN  "error: the call cannot be shown to the person, so it is not made"
enum { ROUNDS_MAX = 20 };

/* Appends a description of a call as a terminal shows it. Its rows must not look like another call, and those above the
 * screen must not be missed. Returns false if memory runs out. */
static bool put_rows(const whit_buf *shown, int terminal, whit_buf *rows)
{
    if (!whit_plain_for_terminal(whit_chars(shown), shown->size_bytes, whit_typed_columns(terminal), rows))
        return false;
    const size_t n_rows = whit_typed_overflow(terminal, whit_chars(rows), rows->size_bytes);
    return !n_rows || whit_buf_printf(rows, "(a call of %zu rows, which begins above the screen)\n", n_rows - 1);
}

/* Shows the description of a call; false if the output failed. A call that is asked about at the terminal is shown
 * there even if the output is a file or a pipe; *is_seen tells whether the person could see it. */
static bool show_call(cli_chat *chat, const whit_buf *shown, bool is_asked, bool *is_seen)
{
    const bool is_here = isatty(STDOUT_FILENO);
    whit_buf rows = {0};
    bool ok = put_rows(shown, is_here ? STDOUT_FILENO : STDERR_FILENO, &rows);
    *is_seen = true;
    if (ok && is_here)
        ok = cli_control(chat->call, whit_typed_plain()) &&
            cli_write_shown(chat->call, whit_chars(&rows), rows.size_bytes);
    else if (ok)
        ok = cli_write(chat->call, whit_chars(shown), shown->size_bytes);
    ok = ok && cli_flush(chat->call);
    if (ok && is_asked && isatty(STDIN_FILENO) && !is_here)
        *is_seen = isatty(STDERR_FILENO) &&
            whit_write_all(STDERR_FILENO, whit_typed_plain(), strlen(whit_typed_plain())) &&
            whit_write_all(STDERR_FILENO, rows.data, rows.size_bytes);
    whit_buf_free(&rows);
    return ok;
}

/* Shows a call and gets its result from the person or the tool. Returns false if the call could not be written, or if
 * the person's line could not be read (Ctrl-C, the end of the input, a failure). */
static bool answer_call(cli_chat *chat, const whit_conversation_call *call, whit_buf *result)
{
    const cli_tool_kind kind = cli_chat_tool_kind(&chat->tools, call->name);
    const char *line;
    size_t n;
    whit_buf shown = {0};
    bool is_seen;
    const bool is_shown =
        cli_chat_tool_describe(&chat->tools, call, &shown) && show_call(chat, &shown, kind == CLI_TOOL_ASKED, &is_seen);
    whit_buf_free(&shown);
    if (!is_shown) return false;
    json_t *arguments = cli_chat_tool_arguments(call);
    const bool is_whole = arguments != NULL;
    json_decref(arguments);
    if (!is_whole) { /* the answer was cut off, or the model is too small */
        whit_buf_append_str(result, "error: the arguments are not a JSON object");
        return true;
    }
    if (!is_seen) {
        whit_buf_append_str(result, UNSEEN);
        return true;
    }
    if (kind == CLI_TOOL_FREE) {
        cli_chat_tool_run(&chat->tools, call, result);
        return true;
    }
    /* Input that was typed before the call appeared is discarded, because it cannot be meant as an answer. */
    if (cli_input_is_terminal(chat->input)) (void)whit_typed_discard(STDIN_FILENO);
    if (!next_line(chat, kind == CLI_TOOL_ASKED ? "run it? y, n, or its result: " : "its result: ", &line, &n))
        return false;
    if (kind == CLI_TOOL_ASKED && n == 1 && line[0] == 'y')
        cli_chat_tool_run(&chat->tools, call, result);
    else if (kind == CLI_TOOL_ASKED && n == 1 && line[0] == 'n')
        whit_buf_append_str(result, REFUSED);
    else
        whit_buf_append(result, line, n);
    return true;
}

/* Gives the model a result for each call of its last answer. If answer_call returns false, this and the remaining calls
 * count as refused, and so do those after a call during which the person has pressed Ctrl-C; the function then returns
 * false. It also returns false after an error. */
static bool answer_calls(cli_chat *chat)
{
    whit_conversation *conversation = chat->talk.conversation;
    const whit_conversation_call *call;
    bool is_going = true;
    while ((call = whit_conversation_next_call(conversation)) != NULL) {
        whit_buf result = {0};
        whit_error error;
        if (is_going && *cli_cancelled()) {
            interrupted(chat);
            is_going = false;
        }
        is_going = is_going && answer_call(chat, call, &result);
        if (!is_going) {
            result.size_bytes = 0;
            whit_buf_append_str(&result, REFUSED);
        }
        whit_status status = result.failed
            ? whit_fail_memory(&error, "a result", result.size_bytes)
            : whit_conversation_return(conversation, whit_chars(&result), result.size_bytes, &error);
        if (status == WHIT_OK && is_going) {
            cli_write(chat->call, whit_chars(&result), result.size_bytes);
            cli_print(chat->call, "\n");
        }
        whit_buf_free(&result);
        if (status == WHIT_OK) continue;
        cli_chat_fail_error(chat, &error);
        return false;
    }
    if (!is_going) cli_chat_keep_messages(chat);
    return is_going;
}

bool cli_chat_answer(cli_chat *chat)
{
    bool is_answered = answer_once(chat), is_going = is_answered;
    for (int i = 0; is_going && whit_conversation_next_call(chat->talk.conversation); i++) {
        is_going = answer_calls(chat) && !chat->over;
        if (is_going && i + 1 == ROUNDS_MAX) {
            cli_note("%d answers in a row called tools: /retry lets the model continue", ROUNDS_MAX);
            break;
        }
        is_going = is_going && answer_once(chat);
    }
    return is_answered;
}

/* ---- messages ------------------------------------------------------------------------------- */

static const char quotes[] = "\"\"\"";
enum { N_QUOTES = sizeof quotes - 1 };

bool cli_chat_read_block(cli_chat *chat, const char *text, size_t n_bytes, whit_buf *block)
{
    for (;;) {
        size_t end = n_bytes;
        while (end && (text[end - 1] == ' ' || text[end - 1] == '\t')) end--;
        bool closed = end >= N_QUOTES && !memcmp(text + end - N_QUOTES, quotes, N_QUOTES);
        if (!whit_buf_append(block, text, closed ? end - N_QUOTES : n_bytes) ||
            (!closed && !whit_buf_append_str(block, "\n"))) {
            cli_chat_fail(chat, CLI_LIMIT, "not enough memory for a message");
            return false;
        }
        if (closed) return true;
        if (!next_line(chat, "... ", &text, &n_bytes)) {
            if (chat->over && chat->status != CLI_INTERRUPTED)
                cli_chat_fail(chat, CLI_USAGE, "the text after %s is not closed by %s", quotes, quotes);
            return false;
        }
    }
}

void cli_chat_say(cli_chat *chat, const char *text, size_t n_bytes)
{
    whit_error error;
    whit_conversation *conversation = chat->talk.conversation;
    const size_t n_before = whit_conversation_count(conversation);
    if (whit_conversation_say(conversation, "user", text, n_bytes, &error) != WHIT_OK) {
        cli_chat_fail_error(chat, &error);
    } else if (!cli_chat_answer(chat)) {
        whit_conversation_keep(conversation, n_before);
        if (!chat->over)
            cli_note("no answer was generated, so the message was removed from the conversation: send it again");
    }
}

static void take_line(cli_chat *chat)
{
    const char *line;
    size_t n_bytes;
    whit_buf block = {0};
    if (!next_line(chat, ">>> ", &line, &n_bytes)) return;
    if (n_bytes && line[n_bytes - 1] == '\r') n_bytes--;
    if (n_bytes >= N_QUOTES && !memcmp(line, quotes, N_QUOTES)) {
        if (cli_chat_read_block(chat, line + N_QUOTES, n_bytes - N_QUOTES, &block) && block.size_bytes)
            cli_chat_say(chat, whit_chars(&block), block.size_bytes);
    } else if (n_bytes && line[0] == '/') {
        cli_chat_command(chat, line, n_bytes);
    } else if (cli_chat_leaves(line, n_bytes)) {
        chat->over = true;
    } else {
        for (size_t i = 0; i < n_bytes; i++)
            if (line[i] != ' ' && line[i] != '\t') {
                cli_chat_say(chat, line, n_bytes);
                break;
            }
    }
    whit_buf_free(&block);
}

/* ---- the verb ------------------------------------------------------------------------------- */

static int start_chat(cli_chat *chat, const struct chat_values *values)
{
    whit_error error;
    int status = cli_talk_open(chat->call, &values->model, &values->session, &values->adapters, values->template,
                               values->n_draft, &chat->talk);
    if (status == CLI_OK) status = cli_chat_tools_open(chat->call, values->tools, values->mcp, &chat->tools);
    if (status == CLI_OK) status = cli_chat_tools_offer(chat->call, &chat->tools, chat->talk.conversation);
    chat->form = values->grammar;
    if (status == CLI_OK) status = cli_open_grammar(chat->call, &chat->form, chat->talk.model, &chat->grammar);
    if (status != CLI_OK) return status;
    chat->sampler = values->sampler;
    status = cli_keep_open(chat->call, &values->keep, chat->talk.session, "chat", &chat->sampler, &chat->keep);
    if (status == CLI_OK) status = cli_keep_resume(chat->call, &chat->keep, chat->talk.conversation);
    if (status != CLI_OK) return status;
    cli_fill_sampler(&chat->sampler, chat->talk.model);
    /* 32 bits, so that the user can type it. */
    if (chat->sampler.seed < 0) chat->sampler.seed = (uint32_t)whit_system_draw();
    chat->input = cli_input_open(!values->no_history);
    if (!chat->input) return cli_fail(chat->call, CLI_LIMIT, "not enough memory for the lines typed");
    cli_input_words(chat->input, cli_chat_words);
    if (values->load && (status = cli_chat_load(chat, values->load)) != CLI_OK) return status;
    if (values->system &&
        whit_conversation_set_system(chat->talk.conversation, values->system, strlen(values->system), &error) !=
            WHIT_OK)
        return cli_fail_error(chat->call, &error);
    return CLI_OK;
}

/* If the options still have the values that the previous model's authors advise, replaces them by the values that the
 * next model's authors advise. Options from the command line or /set stay. */
static void advise_sampler(cli_sampler_flags *now, const cli_sampler_flags *given, const whit_model *before,
                           const whit_model *next)
{
    cli_sampler_flags was = *given, is = *given;
    cli_fill_sampler(&was, before);
    cli_fill_sampler(&is, next);
#define ADVISE(name)                                                                                                   \
    if (now->name == was.name) now->name = is.name
    ADVISE(temperature);
    ADVISE(top_k);
    ADVISE(top_p);
    ADVISE(min_p);
    ADVISE(typical_p);
    ADVISE(repeat_penalty);
#undef ADVISE
}

void cli_chat_switch(cli_chat *chat, const char *name)
{
    const struct chat_values *values = chat->call->values;
    cli_model_flags wanted = values->model;
    cli_talk next = {.model = NULL};
    cli_grammar grammar = {.n_stages = 0};
    whit_error error;
    if (chat->keep.file) {
        cli_chat_fail(chat, CLI_USAGE,
                      "--session keeps this model's conversation: to use another model, start again with -m");
        return;
    }
    wanted.path = name;
    wanted.family = NULL;
    wanted.overrides = (cli_list){0};
    int status = cli_talk_open(chat->call, &wanted, &values->session, &values->adapters, values->template,
                               values->n_draft, &next);
    if (status == CLI_OK) status = cli_chat_tools_offer(chat->call, &chat->tools, next.conversation);
    if (status == CLI_OK) status = cli_open_grammar(chat->call, &chat->form, next.model, &grammar);
    for (size_t i = 0, n; status == CLI_OK && i < whit_conversation_count(chat->talk.conversation); i++) {
        const char *message = whit_conversation_message(chat->talk.conversation, i, &n);
        if (whit_conversation_append(next.conversation, message, n, &error) != WHIT_OK)
            status = cli_fail_error(chat->call, &error);
    }
    if (status != CLI_OK) {
        cli_close_grammar(&grammar);
        cli_talk_close(&next);
        cli_chat_remember(chat, status);
        return;
    }
    advise_sampler(&chat->sampler, &values->sampler, chat->talk.model, next.model);
    cli_close_grammar(&chat->grammar);
    cli_talk_close(&chat->talk);
    chat->talk = next;
    chat->grammar = grammar;
    cli_note("%s answers from now on; it reads the %zu message%s of this conversation before its next answer", name,
             whit_conversation_count(next.conversation), whit_conversation_count(next.conversation) == 1 ? "" : "s");
}

static int run_chat(cli_call *call)
{
    const struct chat_values *values = call->values;
    cli_chat chat = {.call = call,
                     .thinking = (whit_thinking)values->thinking,
                     .n_thinking = values->n_thinking,
                     .verbose = values->statistics,
                     .wraps = !values->no_wrap,
                     .has_markup = !values->no_markup,
                     .n_tokens = values->n_tokens,
                     .n_draft = values->n_draft,
                     .stops = values->stops};
    int status = cli_check_endless(call, &values->session, values->keep.path);
    if (status == CLI_OK) status = cli_stage_open(call, values->program, &chat.stage);
    if (status == CLI_OK) status = start_chat(&chat, values);
    if (status == CLI_OK) {
        if (cli_input_is_terminal(chat.input)) cli_chat_greet(&chat, values->model.path);
        while (!chat.over) take_line(&chat);
        status = chat.status;
    }
    cli_input_close(chat.input);
    cli_stage_close(&chat.stage);
    cli_chat_tools_close(&chat.tools);
    cli_keep_close(&chat.keep);
    cli_close_grammar(&chat.grammar);
    whit_buf_free(&chat.form_text);
    cli_talk_close(&chat.talk);
    return status;
}

const cli_verb cli_chat_verb = {
    "chat",
    "",
    0,
    0,
    "talk with a model",
    "A conversation, through the model's own chat template. What the model has read stays in its "
    "memory: each turn computes the new tokens only. Special tokens in what is typed are not "
    "honoured. A line is a message; \"\"\" begins one of several lines and ends it. Ctrl-C stops "
    "an "
    "answer, Ctrl-D or /bye the chat. When the context is full, the oldest turns are left out "
    "(the system message stays) and a line says so.\n"
    "/set shows and changes the sampling, the system message, thinking and more; /show shows the "
    "model, the template, the parameters, the context, the messages, the last prompt or its "
    "tokens; "
    "/save FILE "
    "and /load FILE keep conversations, as JSON; /retry answers again, /undo takes the last message back, /clear "
    "begins anew; /help lists them all. What is pasted is one message, with its lines.\n"
    "Without a terminal, lines are read from stdin and answers go to stdout, one after the other; "
    "the exit status is that of the first line that failed. Sampling is as the model's authors "
    "advise (generation_config) where no option says otherwise.\n"
    "  whit chat model.ndf -sys \"Answer in one sentence.\"\n"
    "  printf 'Why is the sky blue?\\n/save sky.json\\n' | whit chat -m model.ndf --temp 0",
    {{"OPTIONS", options, 0},
     {"MODEL", cli_model_options, AT(model)},
     {"SESSION", cli_session_options, AT(session)},
     {"ADAPTERS", cli_adapter_options, AT(adapters)},
     {"FORM", cli_grammar_options, AT(grammar)},
     {"SAMPLING", cli_sampler_options, AT(sampler)}},
    sizeof(struct chat_values),
    &defaults,
    run_chat,
    .usual = "-m, -sys, --temp, -c, --session",
};
