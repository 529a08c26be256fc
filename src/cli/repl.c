/* SPDX-License-Identifier: MIT
 * whit repl: the array language, statement by statement. */
#include "base/clock.h"
#include "cli/input.h"
#include "cli/program.h"
#include "cli/verbs.h"

struct repl_values {
    cli_program_flags program;
};
static const struct repl_values defaults = {.program = CLI_PROGRAM_DEFAULTS};

static const char help[] = ":time        say how long compiling and running take, or no longer\n"
                           ":plan        show what the last statement was compiled to\n"
                           ":asm         show its machine code, byte by byte\n"
                           ":quit        leave; so does Ctrl-D\n"
                           "An open bracket or brace goes on in the next line. docs/arrays.md has the language.\n";

struct repl {
    cli_call *call;
    cli_program program;
    whit_buf text; /* of the statement so far */
    bool times, failed;
};

/* Brackets that are open at the end; comments do not count. */
static int open_brackets(const char *text, size_t n)
{
    int depth = 0;
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '#')
            while (i + 1 < n && text[i + 1] != '\n') i++;
        depth +=
            (text[i] == '(' || text[i] == '[' || text[i] == '{') - (text[i] == ')' || text[i] == ']' || text[i] == '}');
    }
    return depth;
}

static void command(struct repl *r, const char *line, size_t n)
{
    if (n == 5 && memcmp(line, ":time", 5) == 0)
        r->times = !r->times;
    else if (n == 5 && memcmp(line, ":plan", 5) == 0) {
        whit_buf plan = {0};
        if (whit_lang_plan(r->program.lang, &plan) && plan.size_bytes)
            cli_write(r->call, (const char *)plan.data, plan.size_bytes);
        whit_buf_free(&plan);
    } else if (n == 4 && memcmp(line, ":asm", 4) == 0) {
        whit_buf code = {0};
        if (whit_lang_asm(r->program.lang, &code)) cli_write(r->call, (const char *)code.data, code.size_bytes);
        whit_buf_free(&code);
    } else
        cli_write(r->call, help, sizeof help - 1);
}

static void evaluate(struct repl *r)
{
    whit_error error;
    const char *text = (const char *)r->text.data;
    uint64_t t0 = whit_now_ns();
    whit_status status = whit_lang_load(r->program.lang, "input", text, r->text.size_bytes, &error);
    uint64_t t1 = whit_now_ns();
    if (status == WHIT_OK) status = whit_lang_run(r->program.lang, &error);
    uint64_t t2 = whit_now_ns();
    if (status != WHIT_OK) {
        cli_program_fail(r->call, &r->program, text, r->text.size_bytes, &error);
        r->failed = true;
    } else if (r->times)
        cli_print(r->call, "compiled in %.1f us, ran in %.3f ms\n", (double)(t1 - t0) * 1e-3, (double)(t2 - t1) * 1e-6);
    r->text.size_bytes = 0;
}

static int run(cli_call *call)
{
    const struct repl_values *values = call->values;
    struct repl r = {.call = call, .text = {.limit_bytes = WHIT_LANG_MAX_TEXT_BYTES}};
    int status = cli_program_open(call, &values->program, true, &r.program);
    if (status != CLI_OK) return status;
    cli_input *input = cli_input_open(false);
    bool person = input && cli_input_is_terminal(input), ended = !input;
    while (!ended && !call->output_failed) {
        const char *line;
        size_t n;
        cli_line how = cli_input_next(input, r.text.size_bytes ? "... " : ">>> ", &line, &n);
        if (how == CLI_LINE_INTERRUPTED && cli_take_interrupt()) {
            r.text.size_bytes = 0;
            continue;
        }
        if (how != CLI_LINE_READ || (!r.text.size_bytes && n == 5 && memcmp(line, ":quit", 5) == 0)) break;
        if (!r.text.size_bytes && n && *line == ':') {
            command(&r, line, n);
            cli_flush(call);
            continue;
        }
        if (!whit_buf_append(&r.text, line, n) || !whit_buf_append_str(&r.text, "\n")) {
            status = cli_fail(call, CLI_LIMIT, "a statement is too long");
            break;
        }
        if (open_brackets((const char *)r.text.data, r.text.size_bytes) > 0) continue;
        evaluate(&r);
        cli_flush(call);
        ended = r.failed && !person; /* a script ends with its first mistake */
    }
    if (status == CLI_OK && !person && r.text.size_bytes) evaluate(&r);
    if (!input) status = cli_fail(call, CLI_LIMIT, "out of memory");
    if (status == CLI_OK && r.failed && !person) status = CLI_FAILED;
    cli_input_close(input);
    whit_buf_free(&r.text);
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
    "docs/arrays.md is the language's reference, :help lists the commands. From a pipe it reads a script and "
    "ends with its first mistake.",
    {{"LIMITS", cli_program_options, offsetof(struct repl_values, program)}},
    sizeof(struct repl_values),
    &defaults,
    run,
};
