/* SPDX-License-Identifier: MIT
 * whit agent: patches that are shown before they are written, and turns that can be taken back. */
#include "agent/changes.h"
#include "agent/diff.h"
#include "agent/light.h"
#include "agent/loop.h"
#include "base/file.h"
#include "base/plain.h"
#include "cli/flags.h"
#include "cli/verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct agent_values {
    const char *project, *file, *state, *prompt, *url, *model, *key_file;
    uint32_t n_turns;
    int allow;
    bool preview, json, no_sandbox;
};
static const struct agent_values defaults = {.n_turns = 50};
enum { ALLOW_GREEN, ALLOW_YELLOW };

#define AT(member) offsetof(struct agent_values, member)
static const cli_option options[] = {
    {"--project", CLI_FILE, AT(project), "FOLDER", "The project; the current folder by default.", 0, 0},
    {"-f, --file", CLI_FILE, AT(file), "PATH", "The file that SEARCH/REPLACE blocks without a name change.", 0, 0},
    {"--allow", CLI_CHOICE, AT(allow), "green|yellow",
     "What needs no question: green, the default, is reading only; yellow also writes inside the project.", 0, 0},
    {"-p, --prompt", CLI_TEXT, AT(prompt), "TASK", "Let a model do this task; needs --url.", 0, 0},
    {"--url", CLI_TEXT, AT(url), "URL", "The OpenAI-compatible endpoint, such as http://127.0.0.1:8080/v1.", 0, 0},
    {"--model", CLI_TEXT, AT(model), "NAME", "The model's name at the endpoint.", 0, 0},
    {"--key-file", CLI_FILE, AT(key_file), "FILE",
     "A file of mode 0600 with the endpoint's key; $WHIT_API_KEY by default.", 0, 0},
    {"--max-turns", CLI_COUNT, AT(n_turns), "N", "Answers of the model at most; 50 by default.", 1, 10000},
    {"--preview", CLI_FLAG, AT(preview), NULL, "Show what would be written, and write nothing.", 0, 0},
    {"--state-dir", CLI_FILE, AT(state), "FOLDER", "Where journals are kept; $XDG_STATE_HOME/whit by default.", 0, 0},
    {"--no-sandbox", CLI_FLAG, AT(no_sandbox), NULL,
     "Run commands without a sandbox, each after a question; never without one unless you say this.", 0, 0},
    {"--json", CLI_FLAG, AT(json), NULL, "Print JSON: one object for each file, or for each turn.", 0, 0},
    {0},
};

/* ---- showing -------------------------------------------------------------------------------- */

static whit_status show(cli_call *call, const whit_change *c, whit_error *error)
{
    whit_buf diff = {0};
    char names[2][PATH_MAX + 8];
    snprintf(names[0], sizeof names[0], c->was ? "a/%s" : "/dev/null", c->path);
    snprintf(names[1], sizeof names[1], c->is ? "b/%s" : "/dev/null", c->path);
    whit_status status =
        whit_diff_write(names[0], c->before, c->before_bytes, names[1], c->after, c->after_bytes, &diff, error);
    if (status == WHIT_OK) cli_write(call, (const char *)diff.data, diff.size_bytes);
    whit_buf_free(&diff);
    return status;
}

/* ---- apply ---------------------------------------------------------------------------------- */

/* Says how each file was found, and drops what changes nothing. */
static void drop_unchanged(cli_call *call, whit_changes *set)
{
    const struct agent_values *values = call->values;
    json_t *all = values->json ? json_array() : NULL;
    for (size_t i = 0; i < whit_changes_count(set); i++) {
        whit_change c = *whit_changes_at(set, i);
        const whit_patch_result *result = whit_changes_result(set, i);
        bool same = c.was == c.is && c.before_bytes == c.after_bytes &&
            (!c.before_bytes || memcmp(c.before, c.after, c.before_bytes) == 0);
        const char *state = result->already_applied ? "applied already" : same ? "unchanged" : "applies";
        if (values->json)
            json_array_append_new(all,
                                  json_pack("{s:s, s:s, s:s, s:i}", "path", c.path, "state", state, "grade",
                                            whit_patch_grade_name(result->grade), "hunks", (int)result->n_hunks));
        else if (same)
            cli_note("%s: %s", c.path, state);
        else if (result->grade != WHIT_PATCH_EXACT)
            cli_note("%s: found but for %s", c.path, whit_patch_grade_name(result->grade));
    }
    whit_changes_settle(set);
    if (all) cli_print_json(call, all);
}

static bool agreed(cli_call *call, const char *reason, size_t n_files)
{
    cli_flush(call);
    return whit_light_agreed(reason, n_files);
}

static int write_changes(cli_call *call, whit_changes *set, const char *project)
{
    const struct agent_values *values = call->values;
    whit_error error;
    const char *reason = NULL;
    char line[PATH_MAX + 80];
    for (size_t i = 0; i < whit_changes_count(set); i++) {
        if (!values->json && show(call, whit_changes_at(set, i), &error) != WHIT_OK)
            return cli_fail_error(call, &error);
        const char *red = whit_light_red(project, whit_changes_at(set, i));
        if (!red || reason) continue;
        snprintf(line, sizeof line, "%s: %s", whit_changes_at(set, i)->path, red);
        reason = line;
    }
    if (!whit_changes_count(set) || values->preview) return CLI_OK;
    if ((reason || values->allow < ALLOW_YELLOW) && !agreed(call, reason, whit_changes_count(set)))
        return cli_fail(call, CLI_FAILED, "%s%snothing is written", reason ? reason : "not agreed to",
                        reason ? ", and nobody agreed to it: " : ": ");
    whit_turns *journal;
    uint32_t recovered;
    whit_status status = whit_turns_open(project, values->state, &journal, &recovered, &error);
    if (status == WHIT_OK)
        status = whit_turns_write(journal, whit_changes_at(set, 0), whit_changes_count(set), call->operands[1], &error);
    uint32_t n = status == WHIT_OK ? whit_turns_count(journal) : 0;
    if (n)
        cli_note("turn %u: %zu files written; 'whit agent undo' takes it back", whit_turns_at(journal, n - 1)->number,
                 whit_changes_count(set));
    whit_turns_close(journal);
    return status == WHIT_OK ? CLI_OK : cli_fail_error(call, &error);
}

static int apply(cli_call *call, const char *project)
{
    const struct agent_values *values = call->values;
    cli_text text = {0};
    whit_patch patch = {0};
    whit_changes set = {0};
    whit_error error;
    int status = CLI_OK;
    if (call->n_operands < 2) return cli_fail(call, CLI_USAGE, "which patch? whit agent apply FILE (- is stdin)");
    status = cli_read_text(call, call->operands[1], &text);
    if (status != CLI_OK) return status;
    if (whit_patch_parse(text.data, text.size_bytes, &patch, &error) != WHIT_OK ||
        whit_changes_patch(&set, project, &patch, values->file, &error) != WHIT_OK)
        status = cli_fail_error(call, &error);
    if (status == CLI_OK) drop_unchanged(call, &set);
    if (status == CLI_OK) status = write_changes(call, &set, project);
    whit_changes_free(&set);
    whit_patch_free(&patch);
    free(text.data);
    return status;
}

/* ---- turns ---------------------------------------------------------------------------------- */

static int list_turns(cli_call *call, const whit_turns *journal)
{
    const struct agent_values *values = call->values;
    static const char *const kinds[] = {"", "write", "undo", "redo"};
    json_t *all = values->json ? json_array() : NULL;
    for (uint32_t i = 0; i < whit_turns_count(journal); i++) {
        const whit_turn *t = whit_turns_at(journal, i);
        char when[32];
        time_t seconds = (time_t)t->time_s;
        struct tm local;
        strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", localtime_r(&seconds, &local));
        const char *kind = kinds[t->kind <= WHIT_TURN_REDO ? t->kind : 0];
        if (values->json)
            json_array_append_new(all,
                                  json_pack("{s:i, s:s, s:i, s:b, s:i, s:I, s:s}", "turn", (int)t->number, "kind", kind,
                                            "of", (int)t->of, "undone", t->undone, "files", (int)t->n_changes, "time",
                                            (json_int_t)t->time_s, "note", t->note));
        else if (t->of)
            cli_print(call, "%4u  %s  %s of turn %u, %u files\n", t->number, when, kind, t->of, t->n_changes);
        else
            cli_print(call, "%4u  %s  %u files%s  %s\n", t->number, when, t->n_changes, t->undone ? ", undone" : "",
                      t->note);
    }
    if (all) cli_print_json(call, all);
    return CLI_OK;
}

static void show_change(void *user, const whit_change *change)
{
    whit_error error;
    cli_call *call = user;
    if (!((const struct agent_values *)call->values)->json) (void)show(call, change, &error);
}

static int turns(cli_call *call, const char *project, const char *what)
{
    const struct agent_values *values = call->values;
    whit_turns *journal;
    whit_error error;
    uint32_t recovered, number = 0;
    if (call->n_operands > 1) {
        char *end;
        unsigned long n = strtoul(call->operands[1], &end, 10);
        if (*end || !n || n > UINT32_MAX)
            return cli_fail(call, CLI_USAGE, "'%s' is no turn's number", call->operands[1]);
        number = (uint32_t)n;
    }
    if (whit_turns_open(project, values->state, &journal, &recovered, &error) != WHIT_OK)
        return cli_fail_error(call, &error);
    if (recovered) cli_note("turn %u had been cut off; its files are as they were before it", recovered);
    int status = CLI_OK;
    bool undo = strcmp(what, "undo") == 0;
    if (strcmp(what, "log") == 0)
        status = list_turns(call, journal);
    else if ((undo ? whit_turns_undo : whit_turns_redo)(journal, &number, values->preview, show_change, call, &error))
        status = cli_fail_error(call, &error);
    else
        cli_note("turn %u is %s%s", number, values->preview ? "to be " : "", undo ? "undone" : "made again");
    whit_turns_close(journal);
    return status;
}

/* ---- a task --------------------------------------------------------------------------------- */

static whit_status task_show(void *user, const whit_change *change, whit_error *error)
{
    cli_call *call = user;
    return ((const struct agent_values *)call->values)->json ? WHIT_OK : show(call, change, error);
}

static bool task_agreed(void *user, const char *reason, size_t n_files)
{
    return agreed(user, reason, n_files);
}

static bool task_ask(void *user, const char *question, whit_buf *answer)
{
    char line[4096];
    cli_flush(user);
    int terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (terminal < 0) return false;
    char *plain = strdup(question);
    if (plain) dprintf(terminal, "%.*s\n> ", (int)whit_plain_line(plain, strlen(plain)), plain);
    free(plain);
    ssize_t got = read(terminal, line, sizeof line);
    close(terminal);
    return got > 0 && whit_buf_append(answer, line, (size_t)got);
}

static void task_note(void *user, const char *line)
{
    (void)user;
    cli_note("%s", line);
}

static void task_retry(void *user, const char *reason, uint32_t wait_ms)
{
    (void)user;
    cli_note("%s; trying again in %.1f s", reason, wait_ms / 1000.0);
}

/* The key of --key-file, else of the environment; "" for none. */
static int read_key(cli_call *call, whit_buf *key)
{
    const struct agent_values *values = call->values;
    const char *given = getenv("WHIT_API_KEY");
    whit_error error;
    struct stat info;
    if (values->key_file) {
        if (stat(values->key_file, &info) != 0)
            return cli_fail(call, CLI_IO, "%s: %s", values->key_file, strerror(errno));
        if (info.st_mode & 077)
            return cli_fail(call, CLI_USAGE, "%s: others may read the key; run chmod 600 on it", values->key_file);
        if (whit_read_file(values->key_file, 4096, key, &error) != WHIT_OK) return cli_fail_error(call, &error);
        while (key->size_bytes && strchr(" \t\r\n", key->data[key->size_bytes - 1])) key->size_bytes--;
    } else if (given) {
        whit_buf_append_str(key, given);
    }
    return whit_buf_append(key, "", 1) ? CLI_OK : cli_fail(call, CLI_LIMIT, "not enough memory for a key");
}

static int print_report(cli_call *call, const whit_agent_report *report)
{
    const struct agent_values *values = call->values;
    const char *answer = report->answer.size_bytes ? (const char *)report->answer.data : "";
    if (values->json)
        cli_print_json(call,
                       json_pack("{s:b, s:s%, s:i, s:i, s:i, s:i, s:I, s:I, s:I}", "done", report->done, "answer",
                                 answer, report->answer.size_bytes, "answers", (int)report->n_answers, "calls",
                                 (int)report->n_calls, "turns", (int)report->n_turns, "held", (int)report->n_held,
                                 "tokens_in", (json_int_t)report->tokens_in, "tokens_out",
                                 (json_int_t)report->tokens_out, "written_bytes", (json_int_t)report->written_bytes));
    else if (report->done && report->answer.size_bytes)
        cli_print(call, "%.*s\n", (int)report->answer.size_bytes, answer);
    cli_note("%u answers, %u calls, %u turns written, %llu bytes; %llu tokens in, %llu out", report->n_answers,
             report->n_calls, report->n_turns, (unsigned long long)report->written_bytes,
             (unsigned long long)report->tokens_in, (unsigned long long)report->tokens_out);
    return report->done ? CLI_OK : cli_fail(call, CLI_LIMIT, "not finished after %u answers", report->n_answers);
}

static int task(cli_call *call, const char *project)
{
    const struct agent_values *values = call->values;
    whit_buf key = {0};
    whit_endpoint *endpoint = NULL;
    whit_agent_report report = {0};
    whit_error error;
    if (call->n_operands) return cli_fail(call, CLI_USAGE, "either -p or %s, not both", call->operands[0]);
    if (!values->url) return cli_fail(call, CLI_USAGE, "which model? --url URL says where it is");
    int status = read_key(call, &key);
    whit_agent_config config = {0};
    whit_runner runner = {.project = project,
                          .state_dir = values->state,
                          .config = &config,
                          .no_sandbox = values->no_sandbox,
                          .cancel = cli_cancelled()};
    whit_endpoint_options at = {
        .url = values->url, .key = (const char *)key.data, .cancel = cli_cancelled(), .on_retry = task_retry};
    whit_agent_options how = {.project = project,
                              .state_dir = values->state,
                              .task = values->prompt,
                              .model = values->model,
                              .n_turns_max = values->n_turns,
                              .may_write = values->allow >= ALLOW_YELLOW,
                              .runner = &runner,
                              .show = task_show,
                              .agreed = task_agreed,
                              .ask = task_ask,
                              .note = task_note,
                              .user = call};
    if (status == CLI_OK &&
        (whit_agent_config_load(&config, project, &error) != WHIT_OK ||
         whit_endpoint_open(&at, &endpoint, &error) != WHIT_OK ||
         whit_agent_run(&how, endpoint, &report, &error) != WHIT_OK))
        status = cli_fail_error(call, &error);
    else if (status == CLI_OK)
        status = print_report(call, &report);
    whit_agent_config_free(&config);
    whit_buf_free(&report.answer);
    whit_buf_free(&key);
    whit_endpoint_close(endpoint);
    return status;
}

static int run(cli_call *call)
{
    const struct agent_values *values = call->values;
    char project[PATH_MAX];
    if (!realpath(values->project ? values->project : ".", project))
        return cli_fail(call, CLI_IO, "%s: %s", values->project ? values->project : ".", strerror(errno));
    if (values->prompt) return task(call, project);
    if (!call->n_operands) return cli_fail(call, CLI_USAGE, "what? -p TASK, or one of apply, undo, redo, log");
    const char *what = call->operands[0];
    if (strcmp(what, "apply") == 0) return apply(call, project);
    if (strcmp(what, "undo") == 0 || strcmp(what, "redo") == 0 || strcmp(what, "log") == 0)
        return turns(call, project, what);
    return cli_fail(call, CLI_USAGE, "'%s' is none of apply, undo, redo, log", what);
}

const cli_verb cli_agent_verb = {
    "agent",
    "[apply|undo|redo|log] [PATCH|TURN]",
    0,
    2,
    "let a model change a project, each change shown first and taken back at will",
    "-p lets the model of an OpenAI-compatible endpoint do a task: it reads, lists and searches the project, and "
    "writes by patches or whole files, and runs commands in a sandboxed copy. What it writes in one answer is one "
    "turn, "
    "checked, shown and asked about like a patch.\n"
    "apply reads a patch as models write them (SEARCH/REPLACE blocks, *** Begin Patch, unified diffs), finds each "
    "hunk's only place (exactly, else but for blanks, indentation or typographic characters), shows the exact "
    "difference and asks. What is agreed to is written as one turn, all files or none. undo and redo take the latest "
    "turn, or the one that is named, back or make it again, unless a file has changed since; log lists the turns. "
    "A turn that was cut off by a crash is undone at the next call.\n"
    "  whit agent -p 'rename the option' --url http://127.0.0.1:8080/v1\n"
    "  whit agent apply answer.patch\n"
    "  whit agent apply - --allow yellow < answer.md\n"
    "  whit agent undo --preview\n"
    "  whit agent log",
    {{"OPTIONS", options, 0}},
    sizeof(struct agent_values),
    &defaults,
    run,
};
