/* SPDX-License-Identifier: MIT
 * Reads the tasks and commands that a user types to whit agent, and runs them. */
#include "agent/guard.h"
#include "agent/light.h"
#include "agent/tools.h"
#include "base/items.h"
#include "base/plain.h"
#include "base/shell.h"
#include "cli/agent_tasks.h"
#include "cli/flags.h"
#include "cli/habits.h"
#include "cli/input.h"
#include "endpoint/endpoint.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ATTACHED_MAX = 256 << 10, OUTPUT_MAX = 16 << 10, OUTPUT_KEPT_MAX = 8 << 20 };

/* ---- additions to the next task --------------------------------------------------------------- */

/* Returns how many more bytes may be attached to the next task. */
static size_t room_left(const struct cli_tasks *t)
{
    return t->attached.size_bytes < ATTACHED_MAX ? ATTACHED_MAX - t->attached.size_bytes : 0;
}

/* Attaches a file of the project to the next task. On failure prints a message and returns false. */
static bool attach_file(struct cli_tasks *t, const char *path)
{
    whit_buf content = {0};
    whit_error error;
    const char *kind;
    whit_project_file file = {.exists = false};
    bool is_attached = false;
    if (whit_project_read_file(t->project, path, &content, &file, &error) != WHIT_OK)
        cli_note("%s", error.message);
    else if (file.is_hidden)
        cli_note("%s: may contain keys or belongs to version control, so it is not read", path);
    else if (!file.exists)
        cli_note("%s: there is no such file in the project", path);
    else if (content.size_bytes > room_left(t))
        cli_note(
            "%s: its %zu bytes are too many in addition to the files already added; the model can read parts of them",
            path, content.size_bytes);
    else if ((kind = cli_binary_kind(whit_chars(&content), content.size_bytes)) != NULL)
        cli_note("%s: is %s, so it is not read", path, kind);
    else if (content.size_bytes && memchr(content.data, 0, content.size_bytes))
        cli_note("%s: is not text, so it is not read", path);
    else if (whit_guard_has_key(whit_chars(&content), content.size_bytes))
        cli_note("%s: contains a key, so it is not read", path);
    else {
        whit_buf_printf(&t->attached, "\n\nThe file %s:\n```\n", path);
        whit_buf_append(&t->attached, content.data, content.size_bytes);
        is_attached = whit_buf_append_str(&t->attached, "\n```\n");
        if (is_attached) cli_note("%s: %zu bytes are added to the next task", path, content.size_bytes);
    }
    whit_buf_free(&content);
    return is_attached;
}

/* Attaches the files that a task names with '@', such as @src/main.c. */
static void attach_named(struct cli_tasks *t, const char *task)
{
    for (const char *at = strchr(task, '@'); at; at = strchr(at + 1, '@')) {
        size_t n = strcspn(at + 1, " \t\n,;:!?)\"'");
        while (n && at[n] == '.') n--;
        char *path = n && (at == task || strchr(" \t\n(\"'", at[-1])) ? strndup(at + 1, n) : NULL;
        if (path) attach_file(t, path);
        free(path);
    }
}

/* Attaches the end of a command's output to the next task: without control characters, since the task must be a UTF-8
 * string without zero bytes, and without keys. */
static void attach_output(struct cli_tasks *t, const char *line, whit_buf *output, int status)
{
    char how[40] = "the command was ended by a signal", *plain;
    whit_plain state = {.is_narrow = true};
    if (WIFEXITED(status)) snprintf(how, sizeof how, "exit status %d", WEXITSTATUS(status));
    whit_guard_hide_keys(output);
    const size_t room = room_left(t), most = room < OUTPUT_MAX ? room : OUTPUT_MAX;
    const size_t n = output->size_bytes < most ? output->size_bytes : most, skipped = output->size_bytes - n;
    plain = malloc(WHIT_PLAIN_ROOM(n) + WHIT_PLAIN_ROOM(0));
    if (!plain) {
        cli_note("%s; not enough memory for the text that the command printed", how);
        return;
    }
    size_t n_plain = n ? whit_plain_text(&state, whit_chars(output) + skipped, n, plain) : 0;
    n_plain += whit_plain_end(&state, plain + n_plain);
    whit_buf command = {0};
    whit_buf_append_str(&command, line);
    whit_guard_hide_keys(&command);
    whit_buf_printf(&t->attached, "\n\nThe person ran `%.*s` (%s), which printed:\n```\n%s", (int)command.size_bytes,
                    whit_chars(&command), how, skipped ? "...\n" : "");
    whit_buf_free(&command);
    whit_buf_append(&t->attached, plain, n_plain);
    whit_buf_append_str(&t->attached, "\n```\n");
    free(plain);
    cli_note("%s; its output is added to the next task (/clear drops it)", how);
}

/* Writes why a line that runs a command or changes files is asked about: a line that the user has not typed may belong
 * to a pasted text. The lines that wait after it are discarded by the question. The result is false if the line is too
 * long to be asked about. */
static bool name_pasted(const char *line, whit_buf *reason)
{
    return whit_tool_reason(reason, "this line may have been pasted: ", line);
}

/* Asks whether a line that may have been pasted should run. */
static bool may_run(const char *line)
{
    whit_buf reason = {0};
    const bool is_shown = name_pasted(line, &reason);
    const bool is_agreed = is_shown && whit_light_agreed(whit_chars(&reason), 0, NULL);
    if (!is_shown)
        cli_note("a line of %zu bytes may have been pasted and is too long to be asked about, so it does not run",
                 strlen(line));
    whit_buf_free(&reason);
    return is_agreed;
}

/* Returns whether a line looks like another one, since it has hidden characters, letters that look like others, or line
 * feeds of a pasted message, which look like the ends of rows. The result is true if memory runs out. */
static bool is_disguised(const char *line)
{
    whit_buf shown = {0};
    const size_t n = strlen(line);
    const bool is_plain = whit_plain_show(line, n, WHIT_PLAIN_NAME, &shown) && shown.size_bytes == n;
    whit_buf_free(&shown);
    return !is_plain;
}

/* Returns whether a line at a terminal may belong to a pasted text that nobody has read: it had arrived before its
 * prompt or, for a line of shell, there is no line editor, which tells a paste from typing, or the editor cannot show
 * all of it. */
static bool is_doubtful(const cli_input *input, const char *line)
{
    return *line && cli_input_is_terminal(input) &&
        (cli_input_is_early(input) || (*line == '!' && (!cli_input_is_typed(input) || is_disguised(line))));
}

/* Drops the first half of a long output, of which only the last OUTPUT_MAX bytes are attached. */
static void drop_half(whit_buf *output)
{
    const size_t n = output->size_bytes / 2;
    memmove(output->data, output->data + n, output->size_bytes - n);
    output->size_bytes -= n;
}

/* Runs a line of shell in the project, without a sandbox, because the user has typed it. */
static int run_line(struct cli_tasks *t, const char *line)
{
    whit_buf output = {0};
    char piece[4096];
    size_t n;
    line += strspn(line, " \t");
    if (!*line) {
        cli_note("!COMMAND runs a line of shell in the project");
        return CLI_OK;
    }
    FILE *run = whit_shell_open(t->project, line);
    if (!run) return cli_fail(t->call, CLI_IO, "the command cannot be run: %s", strerror(errno));
    while ((n = fread(piece, 1, sizeof piece, run)) > 0) {
        cli_write(t->call, piece, n);
        cli_flush(t->call);
        if (output.size_bytes >= OUTPUT_KEPT_MAX) drop_half(&output);
        whit_buf_append(&output, piece, n);
    }
    attach_output(t, line, &output, pclose(run));
    whit_buf_free(&output);
    return CLI_OK;
}

int cli_tasks_run_attached(struct cli_tasks *t, const char *task, bool only_reads)
{
    static const char plan[] = "Make a plan for this task: read what you need, and describe the changes file by file. "
                               "Change nothing.\n\n";
    whit_buf text = {0};
    attach_named(t, task);
    bool ok = (!only_reads || whit_buf_append_str(&text, plan)) && whit_buf_append_str(&text, task) &&
        whit_buf_append(&text, t->attached.data, t->attached.size_bytes) && whit_buf_append(&text, "", 1);
    t->attached.size_bytes = 0;
    int status = ok ? cli_tasks_run(t, whit_chars(&text), only_reads)
                    : cli_fail(t->call, CLI_LIMIT, "not enough memory for a task");
    whit_buf_free(&text);
    return status;
}

/* ---- commands --------------------------------------------------------------------------------- */

/* Returns the names of the server's models; an empty list if the server does not list them or is on another machine;
 * NULL if memory runs out. */
static json_t *ask_names(const struct agent_values *values)
{
    char address[200];
    whit_buf list = {0};
    whit_error error;
    const char *end = strstr(values->url, "/chat/completions");
    snprintf(address, sizeof address, "%.*s/models", (int)(end ? (size_t)(end - values->url) : strlen(values->url)),
             values->url);
    bool ok = (!values->found || whit_found_server_check(values->found, &error) == WHIT_OK) &&
        whit_endpoint_get(address, 1500, 1 << 20, &list, &error) == WHIT_OK;
    json_t *models = ok ? json_loadb(whit_chars(&list), list.size_bytes, 0, NULL) : NULL, *names = json_array();
    size_t i;
    const json_t *model;
    json_array_foreach(json_object_get(models, "data"), i, model)
    {
        json_t *id = json_object_get(model, "id");
        if (json_is_string(id)) json_array_append(names, id);
    }
    json_decref(models);
    whit_buf_free(&list);
    return names;
}

/* Returns whether the server's name `id` means the model `name`: it is equal or has the ":latest" that Ollama adds. */
static bool is_called(const char *id, const char *name)
{
    const size_t n = strlen(name);
    return strncmp(id, name, n) == 0 && (!id[n] || strcmp(id + n, ":latest") == 0);
}

/* Tells the user that the server lacks a model, and lists its models with similar names or, without such models, all of
 * them. */
static void say_lacks_model(const json_t *names, const char *name)
{
    enum { LINE_BYTES = 400 };
    char line[LINE_BYTES];
    size_t n = 0, i;
    const json_t *id;
    bool is_near = false;
    json_array_foreach(names, i, id) is_near = is_near || cli_is_near_name(name, json_string_value(id));
    json_array_foreach(names, i, id)
    {
        const char *text = json_string_value(id);
        if (is_near && !cli_is_near_name(name, text)) continue;
        const int more = snprintf(line + n, sizeof line - n, "%s%s", n ? ", " : "", text);
        if (more < 0 || (size_t)more >= sizeof line - n) break;
        n += (size_t)more;
    }
    line[n] = 0;
    cli_note("the server has no model %s; %s %s", name, is_near ? "did you mean" : "it has", line);
}

/* Prints a name that a server gives, in one line. */
static void print_name(struct cli_tasks *t, const char *name)
{
    whit_buf shown = {0};
    if (whit_plain_show(name, strlen(name), WHIT_PLAIN_NAME, &shown) && shown.size_bytes)
        cli_print(t->call, "%.*s\n", (int)shown.size_bytes, whit_chars(&shown));
    whit_buf_free(&shown);
}

static int do_model(struct cli_tasks *t, const char *name)
{
    const struct agent_values *values = t->call->values;
    if (values->local) {
        cli_note("%s answers, in this process; to use another model, start again with -m", values->local);
        return CLI_OK;
    }
    json_t *names = ask_names(values);
    bool has = !*name || !json_array_size(names);
    size_t i;
    const json_t *id;
    json_array_foreach(names, i, id) has = has || is_called(json_string_value(id), name);
    char *copy = *name && has ? strdup(name) : NULL;
    if (copy) {
        free(t->name);
        t->name = copy;
        t->remote.name = copy;
        t->remote.takes_no_tools = false;
    }
    if (!has) say_lacks_model(names, name);
    cli_note("the model is %s at %s", t->remote.name ? t->remote.name : "the one that the server has open",
             values->url);
    json_array_foreach(names, i, id) if (!*name) print_name(t, json_string_value(id));
    json_decref(names);
    return *name && has && !copy ? cli_fail(t->call, CLI_LIMIT, "not enough memory for the name of the model") : CLI_OK;
}

static int do_diff(struct cli_tasks *t, const char *nothing)
{
    (void)nothing;
    return cli_agent_latest(t->call, t->project);
}

static int do_clear(struct cli_tasks *t, const char *nothing)
{
    (void)nothing;
    whit_error error;
    size_t limit_bytes = t->messages.limit_bytes;
    whit_agent_messages_free(&t->messages);
    t->messages = (whit_agent_messages){0};
    t->attached.size_bytes = 0;
    if (whit_agent_messages_begin(&t->messages, t->project, limit_bytes, &error) != WHIT_OK)
        return cli_fail_error(t->call, &error);
    cli_note("a new conversation begins; the files are unchanged");
    return CLI_OK;
}

static int do_add(struct cli_tasks *t, const char *paths)
{
    if (!*paths) cli_note("/add FILE... lets the model read files with the next task");
    for (const char *at = paths; *at; at += strspn(at, " \t")) {
        size_t n = strcspn(at, " \t");
        char *path = strndup(at, n);
        if (path) attach_file(t, path);
        free(path);
        at += n;
    }
    return CLI_OK;
}

static int do_plan(struct cli_tasks *t, const char *task)
{
    if (*task) return cli_tasks_run_attached(t, task, true);
    cli_note("/plan TASK lets the model read and describe what it would change, and write nothing");
    return CLI_OK;
}

/* Undoes or redoes a turn; with t->pasted it is shown, and the user is asked. */
static int turn_back(struct cli_tasks *t, const char *what, const char *which)
{
    whit_buf reason = {0};
    if (!*which) which = NULL;
    if (!t->pasted || name_pasted(t->pasted, &reason))
        (void)cli_agent_turns(t->call, t->project, what, which, t->pasted ? whit_chars(&reason) : NULL);
    whit_buf_free(&reason);
    return CLI_OK;
}

static int do_undo(struct cli_tasks *t, const char *which)
{
    return turn_back(t, "undo", which);
}

static int do_redo(struct cli_tasks *t, const char *which)
{
    return turn_back(t, "redo", which);
}

static int do_log(struct cli_tasks *t, const char *nothing)
{
    (void)nothing;
    (void)cli_agent_turns(t->call, t->project, "log", NULL, NULL);
    return CLI_OK;
}

static int do_cost(struct cli_tasks *t, const char *nothing)
{
    (void)nothing;
    cli_tasks_cost(t);
    return CLI_OK;
}

static int do_help(struct cli_tasks *t, const char *nothing);

static const struct {
    const char *name, *argument, *help;
    int (*run)(struct cli_tasks *t, const char *argument); /* NULL: the command ends the program */
} commands[] = {
    {"/plan", "TASK", "let the model read and make a plan, and write nothing", do_plan},
    {"/add", "FILE...", "let the model read files with the next task; so does @FILE in it", do_add},
    {"/diff", "", "show the latest turn that can be undone", do_diff},
    {"/undo", "[TURN]", "take a turn back, the latest by default", do_undo},
    {"/redo", "[TURN]", "make a turn again that was undone", do_redo},
    {"/log", "", "list the turns", do_log},
    {"/model", "[NAME]", "say which model answers and which others the server has, or ask another", do_model},
    {"/clear", "", "forget the conversation; the files stay as they are", do_clear},
    {"/cost", "", "say what was spent so far", do_cost},
    {"/help", "", "this list", do_help},
    {"/bye", "", "leave; so does Ctrl-D", NULL},
    {"/quit", "", NULL, NULL},
    {"/exit", "", NULL, NULL},
    {"exit", "", NULL, NULL},
    {"quit", "", NULL, NULL},
    {":q", "", NULL, NULL},
    {"/?", "", NULL, do_help},
};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

static int do_help(struct cli_tasks *t, const char *nothing)
{
    (void)nothing;
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (commands[i].help)
            cli_print(t->call, "%-7s %-9s %s\n", commands[i].name, commands[i].argument, commands[i].help);
    cli_print(t->call, "%-17s %s\n%-17s %s\n", "!COMMAND",
              "run a line of shell yourself, and show the model what it printed", "Ctrl-C", "ends a task");
    return CLI_OK;
}

/* Returns the names of the commands that /help lists, with NULL at the end. */
static const char *const *command_words(void)
{
    static const char *words[N_COMMANDS + 1];
    for (size_t i = 0, n = 0; i < N_COMMANDS; i++)
        if (commands[i].help) words[n++] = commands[i].name;
    return words;
}

/* Runs a typed line: a command, "!" and a line of shell, or a task. Only a line that was typed at a terminal may run
 * shell, because other input may contain text that nobody has read. A line that may have been pasted is asked about,
 * /undo and /redo with their difference. *over: the line was a command that ends the program. */
static int run_typed(struct cli_tasks *t, char *line, const cli_input *input, bool *over)
{
    const bool is_person = cli_input_is_terminal(input);
    size_t n_name = strcspn(line, " \t"), i = 0;
    const char *argument = line + n_name + strspn(line + n_name, " \t");
    while (i < N_COMMANDS && !(strlen(commands[i].name) == n_name && strncmp(commands[i].name, line, n_name) == 0)) i++;
    const bool is_command = i < N_COMMANDS && (commands[i].run || !*argument);
    const bool turns_back = is_command && (commands[i].run == do_undo || commands[i].run == do_redo);
    if (is_doubtful(input, line) && !turns_back && !may_run(line)) return CLI_OK;
    if (is_command) {
        t->pasted = is_person && !cli_input_is_typed(input) ? line : NULL;
        *over = !commands[i].run;
        return *over ? CLI_OK : commands[i].run(t, argument);
    }
    if (*line == '!' && !is_person)
        return cli_fail(t->call, CLI_USAGE,
                        "!COMMAND works at a terminal only: other input gives tasks and runs no commands");
    if (*line == '!') return run_line(t, line + 1);
    if (*line == '/') {
        char hint[120];
        line[n_name] = 0;
        cli_note("%s is not a command%s; /help lists them", line,
                 cli_near_commands(line + 1, command_words(), hint, sizeof hint));
        return CLI_OK;
    }
    return *line ? cli_tasks_run_attached(t, line, false) : CLI_OK;
}

/* Reads and runs lines. After a failure a script ends; at a terminal reading continues, since the user has seen the
 * message. */
int cli_tasks_type(struct cli_tasks *t)
{
    cli_input *input = cli_input_open(true);
    int status = CLI_OK;
    bool over = false;
    if (!input) return cli_fail(t->call, CLI_LIMIT, "not enough memory for the lines typed");
    cli_input_words(input, command_words());
    const bool is_person = cli_input_is_terminal(input);
    if (is_person) cli_note("a task a line; /help lists commands, Ctrl-D leaves");
    while (!over) {
        const char *line;
        size_t n;
        cli_line got = cli_input_next(input, "agent> ", &line, &n);
        if (got == CLI_LINE_INTERRUPTED && is_person && cli_take_interrupt()) {
            cli_print(t->call, "\n(Ctrl-D or /bye leaves)\n");
            cli_flush(t->call);
            continue;
        }
        if (got == CLI_LINE_END && is_person) cli_print(t->call, "\n");
        if (got == CLI_LINE_INTERRUPTED || got == CLI_LINE_FAILED) {
            status = got == CLI_LINE_INTERRUPTED ? CLI_INTERRUPTED
                                                 : cli_fail(t->call, CLI_IO, "stdin: cannot read: %s", strerror(errno));
            cli_input_close(input);
            return status;
        }
        if (got != CLI_LINE_READ) break;
        while (n && strchr(" \t\r", line[n - 1])) n--;
        char *text = strndup(line, n);
        if (text) status = run_typed(t, text, input, &over);
        free(text);
        cli_flush(t->call);
        if (is_person && *cli_cancelled() && cli_take_interrupt()) continue;
        if (status == CLI_INTERRUPTED && !cli_take_interrupt()) break;
        if (status != CLI_OK && !is_person) break;
    }
    cli_input_close(input);
    return is_person && !*cli_cancelled() ? CLI_OK : status;
}
