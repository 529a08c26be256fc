/* SPDX-License-Identifier: MIT
 * Implements whit repl, which runs the array language statement by statement. */
#include "base/clock.h"
#include "base/items.h"
#include "cli/input.h"
#include "cli/program.h"
#include "cli/verbs.h"

struct repl_values {
    cli_program_flags program;
};
static const struct repl_values defaults = {.program = CLI_PROGRAM_DEFAULTS};

static const char help[] =
    ":time        say how long compiling and running take, or no longer\n"
    ":plan        show what the last statement was compiled to\n"
    ":asm         show its machine code, byte by byte\n"
    "             each of them with a statement behind it: of that one\n"
    ":quit, :q    leave; so does Ctrl-D\n"
    "An expression with an open bracket or brace continues in the next line. docs/use/arrays.md has the language.\n";

struct repl {
    cli_call *call;
    cli_program program;
    whit_buf text;                /* text of the statement that is being typed */
    whit_buf session;             /* all lines so far, for messages: functions of earlier statements may fail */
    uint32_t n_lines, first_line; /* n_lines: lines read so far; first_line: number of the statement's first line */
    bool times, shown;            /* times: :time is on; shown: the last statement was loaded, but not run */
    int failure;                  /* status of the last statement */
};
enum { SESSION_BYTES = 4 << 20 }; /* limit of `session`; messages do not show lines beyond it */

/* Returns the number of brackets that are open at the end of a text. Those in comments and in texts (lexer.c) do not
 * count; a text without an end is a mistake, which the next line cannot mend. */
static int open_brackets(const char *text, size_t n)
{
    int depth = 0;
    char end = 0; /* the sign that ends the current comment or text, as a line's end does; 0: outside both */
    for (size_t i = 0; i < n; i++) {
        const char c = text[i];
        if (end)
            end = c == end || c == '\n' ? 0 : end;
        else if (c == '#' || c == '"')
            end = c == '#' ? '\n' : '"';
        else
            depth += (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
    }
    return depth;
}

static void show_value(struct repl *r, bool text_of(const whit_lang *, whit_buf *))
{
    whit_buf shown = {0};
    if (text_of(r->program.lang, &shown) && shown.size_bytes) cli_write(r->call, whit_chars(&shown), shown.size_bytes);
    whit_buf_free(&shown);
}

/* Returns whether the statement is this word alone, or the word followed by "()". */
static bool is_word(const whit_buf *text, const char *word)
{
    size_t n = strlen(word), rest = text->size_bytes - n;
    if (text->size_bytes <= n || memcmp(text->data, word, n) != 0) return false;
    const uint8_t *behind = text->data + n;
    return rest == 1 || (rest == 3 && memcmp(behind, "()", 2) == 0);
}

/* Loads the statement and, if `runs`, runs it; prints its error or, if `times`, how long loading and running took.
 * Empties r->text and returns whether the statement succeeded. */
static bool evaluate_text(struct repl *r, bool runs, bool times)
{
    whit_error error;
    const char *text = whit_chars(&r->text);
    if (r->shown) whit_lang_forget(r->program.lang);
    uint64_t t0 = whit_now_ns();
    whit_lang_begin_line(r->program.lang, r->first_line);
    whit_status status = whit_lang_load(r->program.lang, "input", text, r->text.size_bytes, &error);
    uint64_t t1 = whit_now_ns();
    r->shown = !runs;
    if (status == WHIT_OK && runs) status = whit_lang_run(r->program.lang, &error);
    uint64_t t2 = whit_now_ns();
    if (r->call->output_failed)
        r->failure = CLI_IO; /* the failed write is reported when the verb ends, as for every verb */
    else if (status != WHIT_OK) {
        const char *all = whit_chars(&r->session);
        r->failure = cli_program_fail(r->call, &r->program, all, r->session.size_bytes, &error);
        if (is_word(&r->text, "exit") || is_word(&r->text, "quit") || is_word(&r->text, "help"))
            fputs("    :quit leaves, :help lists the commands\n", stderr);
    } else if (times)
        cli_print(r->call, "compiled in %.1f us, ran in %.3f ms\n", (double)(t1 - t0) * 1e-3, (double)(t2 - t1) * 1e-6);
    r->text.size_bytes = 0;
    return status == WHIT_OK;
}

/* Runs a line that begins with ":". ":plan" and ":asm" show the last statement; ":plan STATEMENT" and ":asm STATEMENT"
 * load and show the given one without running it. ":time" switches times on or off; ":time STATEMENT" runs the
 * statement and prints its times. Every other line prints the help. */
static void command(struct repl *r, const char *line, size_t n)
{
    size_t n_word = 0;
    while (n_word < n && line[n_word] != ' ') n_word++;
    size_t rest = n_word;
    while (rest < n && line[rest] == ' ') rest++;
    bool time = n_word == 5 && memcmp(line, ":time", 5) == 0, plan = n_word == 5 && memcmp(line, ":plan", 5) == 0;
    bool code = n_word == 4 && memcmp(line, ":asm", 4) == 0;
    bool asked = n_word == 5 && memcmp(line, ":help", 5) == 0;
    r->first_line = r->n_lines;
    if (!time && !plan && !code) {
        if (!asked) cli_print(r->call, "there is no '%.*s'\n", (int)(n_word < 40 ? n_word : 40), line);
        cli_write(r->call, help, sizeof help - 1);
        return;
    }
    if (rest < n) {
        bool ok = whit_buf_printf(&r->text, "%*s", (int)rest, "") && /* spaces keep the columns in messages right */
            whit_buf_append(&r->text, line + rest, n - rest) && whit_buf_append_str(&r->text, "\n");
        if (!ok || !evaluate_text(r, time, time) || time) return;
    } else if (time)
        r->times = !r->times;
    if (plan) show_value(r, whit_lang_plan);
    if (code) show_value(r, whit_lang_asm);
}

/* Counts a line that was read and appends it to the session's text. Pasted text may arrive as one line with line
 * feeds. */
static void keep_line(struct repl *r, const char *line, size_t n)
{
    r->n_lines++;
    if (!r->text.size_bytes) r->first_line = r->n_lines;
    for (size_t i = 0; i < n; i++) r->n_lines += line[i] == '\n';
    if (whit_buf_append(&r->session, line, n)) (void)whit_buf_append_str(&r->session, "\n");
}

static int run_repl(cli_call *call)
{
    const struct repl_values *values = call->values;
    struct repl r = {
        .call = call, .text = {.limit_bytes = WHIT_LANG_MAX_TEXT_BYTES}, .session = {.limit_bytes = SESSION_BYTES}};
    int status = cli_program_open(call, &values->program, true, &r.program);
    if (status != CLI_OK) return status;
    cli_input *input = cli_input_open(false);
    bool person = input && cli_input_is_terminal(input), ended = !input;
    while (!ended && !call->output_failed) {
        const char *line;
        size_t n;
        cli_line how = cli_input_next(input, r.text.size_bytes ? "... " : ">>> ", &line, &n);
        if (how == CLI_LINE_INTERRUPTED && person && cli_take_interrupt()) {
            r.text.size_bytes = 0;
            cli_print(call, "\n");
            cli_flush(call);
            continue;
        }
        if (how == CLI_LINE_END && person) cli_print(call, "\n");
        if (how == CLI_LINE_INTERRUPTED) status = CLI_INTERRUPTED;
        if (how != CLI_LINE_READ) break;
        keep_line(&r, line, n);
        if (!r.text.size_bytes && ((n == 5 && memcmp(line, ":quit", 5) == 0) || (n == 2 && memcmp(line, ":q", 2) == 0)))
            break;
        if (!r.text.size_bytes && n && *line == ':') {
            command(&r, line, n);
            cli_flush(call);
            continue;
        }
        if (!whit_buf_append(&r.text, line, n) || !whit_buf_append_str(&r.text, "\n")) {
            status = cli_fail(call, CLI_LIMIT, "not enough memory for a statement");
            break;
        }
        if (open_brackets(whit_chars(&r.text), r.text.size_bytes) > 0) continue;
        evaluate_text(&r, true, r.times);
        cli_flush(call);
        ended = r.failure && !person; /* a script ends at its first failure */
        if (r.failure == CLI_INTERRUPTED && person) cli_take_interrupt();
    }
    if (status == CLI_OK && !person && r.text.size_bytes) evaluate_text(&r, true, r.times);
    if (!input) status = cli_fail(call, CLI_LIMIT, "not enough memory for the lines typed");
    bool told = r.failure == CLI_INTERRUPTED || r.failure == CLI_IO; /* these are not mistakes of the program */
    if (status == CLI_OK && r.failure && !person) status = told ? r.failure : CLI_FAILED;
    cli_input_close(input);
    whit_buf_free(&r.text);
    whit_buf_free(&r.session);
    cli_program_close(&r.program);
    return status;
}

const cli_verb cli_repl_verb = {
    "repl",
    "",
    0,
    0,
    "type programs of the array language, statement by statement",
    "Reads statements and prints the values of those that are expressions; variables and functions stay. "
    "docs/use/arrays.md is the language's reference, :help lists the commands. From a pipe it reads a script and "
    "ends with its first mistake.",
    {{"LIMITS", cli_program_options, offsetof(struct repl_values, program)}},
    sizeof(struct repl_values),
    &defaults,
    run_repl,
};
