/* SPDX-License-Identifier: MIT
 * whit agent: patches are shown before they are written, and turns can be undone. */
#include "agent/changes.h"
#include "agent/hunks.h"
#include "agent/light.h"
#include "cli/agent.h"
#include "cli/verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

static const struct agent_values defaults = {.n_turns = 50, .session.n_batch = 512, .seed = -1};

#define AT(member) offsetof(struct agent_values, member)
static const cli_option options[] = {
    {"--project", CLI_FILE, AT(project), "FOLDER", "The project; the current folder by default.", 0, 0},
    {"-f, --file", CLI_FILE, AT(file), "PATH", "The file that SEARCH/REPLACE blocks without a name change.", 0, 0},
    {"--allow", CLI_CHOICE, AT(allow), "green|yellow",
     "What needs no question: green, the default, is reading only; yellow also writes inside the project.", 0, 0},
    {"-p, --prompt", CLI_TEXT, AT(prompt), "TASK", "Let a model do this task; without it tasks are read line by line.",
     0, 0},
    {"-m", CLI_FILE, AT(local), "MODEL", "A model that answers in this process: a file or a pulled name.", 0, 0},
    {"-s, --seed", CLI_SEED, AT(seed), "S", "Seed of its random choices; -1, the default, draws one.", 0, 0},
    {"--temp, --temperature", CLI_REAL, AT(temperature), "T", "Its temperature; 0, the default, is the likeliest.", 0,
     100},
    {"--url", CLI_TEXT, AT(url), "URL", "The OpenAI-compatible endpoint, such as http://127.0.0.1:8080/v1.", 0, 0},
    {"--model", CLI_TEXT, AT(model), "NAME", "The model's name at the endpoint.", 0, 0},
    {"--key-file", CLI_FILE, AT(key_file), "FILE",
     "A file of mode 0600 with the endpoint's key; $WHIT_API_KEY by default.", 0, 0},
    {"--max-turns", CLI_COUNT, AT(n_turns), "N", "Answers of the model at most; 50 by default.", 1, 10000},
    {"--max-cost", CLI_COUNT, AT(n_tokens), "N", "Tokens at most, in and out; any number by default.", 1, UINT32_MAX},
    {"--session", CLI_FILE, AT(keep), "FILE", "Go on with the messages of this file, and keep them in it.", 0, 0},
    {"--preview", CLI_FLAG, AT(preview), NULL,
     "Of apply, undo and redo: show what would be written, and write nothing.", 0, 0},
    {"--state-dir", CLI_FILE, AT(state), "FOLDER", "Where journals are kept; $XDG_STATE_HOME/whit by default.", 0, 0},
    {"--no-sandbox", CLI_FLAG, AT(no_sandbox), NULL,
     "Run commands without a sandbox, each after a question; never without one unless you say this.", 0, 0},
    {"--acp", CLI_FLAG, AT(acp), NULL, "Let an editor give the tasks (Agent Client Protocol on stdin and stdout).", 0,
     0},
    {"--json", CLI_FLAG, AT(json), NULL,
     "Print JSON: one object for a task; of apply one for each file, of log one for each turn.", 0, 0},
    {0},
};

/* ---- showing -------------------------------------------------------------------------------- */

whit_status cli_agent_show(cli_call *call, const whit_change *c, whit_error *error)
{
    whit_buf diff = {0};
    whit_status status = whit_change_show(c, &diff, error);
    if (status == WHIT_OK) cli_write(call, (const char *)diff.data, diff.size_bytes);
    whit_buf_free(&diff);
    return status;
}

bool cli_agent_asks_elsewhere(cli_call *call)
{
    /* stdout on another terminal than the session's counts as elsewhere, too. */
    return ((const struct agent_values *)call->values)->json || tcgetsid(STDOUT_FILENO) != getsid(0);
}

/* ---- apply ---------------------------------------------------------------------------------- */

/* Reports how each file was found, and drops changes without an effect. */
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

bool cli_agent_agreed(cli_call *call, const whit_buf *shown, const char *reason, size_t n_files)
{
    cli_flush(call);
    if (cli_agent_asks_elsewhere(call) && shown->size_bytes)
        whit_light_tell((const char *)shown->data, shown->size_bytes);
    return whit_light_agreed(reason, n_files);
}

/* Shows all changes on stdout, except with --json; `shown` receives the same text for the terminal of the question. */
static whit_status show_all(cli_call *call, const whit_changes *set, whit_buf *shown, whit_error *error)
{
    const struct agent_values *values = call->values;
    for (size_t i = 0; i < whit_changes_count(set); i++)
        WHIT_TRY(whit_change_show(whit_changes_at(set, i), shown, error));
    if (!values->json && shown->size_bytes) cli_write(call, (const char *)shown->data, shown->size_bytes);
    return WHIT_OK;
}

/* Asks for agreement where it is needed; CLI_OK if it was given or is not needed. */
static int ask_about(cli_call *call, const whit_changes *set, const whit_buf *shown, const char *project)
{
    const struct agent_values *values = call->values;
    const char *red = NULL, *path = "";
    for (size_t i = 0; i < whit_changes_count(set) && !red; i++) {
        path = whit_changes_at(set, i)->path;
        red = whit_light_red(project, whit_changes_at(set, i));
    }
    if (!red && values->allow >= ALLOW_YELLOW) return CLI_OK;
    char reason[PATH_MAX + 200];
    snprintf(reason, sizeof reason, "%s: %s", path, red ? red : "");
    if (!whit_light_has_terminal())
        return cli_fail(call, CLI_FAILED, "%s%snobody is there to agree to it (no terminal): nothing is written",
                        red ? reason : "", red ? ", and " : "");
    if (cli_agent_agreed(call, shown, red ? reason : NULL, whit_changes_count(set))) return CLI_OK;
    return cli_fail(call, CLI_FAILED, "%s%snothing is written", red ? reason : "not agreed to",
                    red ? ", and it was not agreed to: " : ": ");
}

static int write_changes(cli_call *call, whit_changes *set, const char *project)
{
    const struct agent_values *values = call->values;
    whit_error error;
    whit_buf shown = {0};
    int asked = show_all(call, set, &shown, &error) == WHIT_OK ? CLI_OK : cli_fail_error(call, &error);
    bool writes = whit_changes_count(set) && !values->preview;
    if (asked == CLI_OK && writes) asked = ask_about(call, set, &shown, project);
    whit_buf_free(&shown);
    if (asked != CLI_OK || !writes) return asked;
    whit_turns *journal;
    uint32_t recovered;
    whit_status status = whit_turns_open(project, values->state, &journal, &recovered, &error);
    if (status == WHIT_OK)
        status = whit_turns_write(journal, whit_changes_at(set, 0), whit_changes_count(set), call->operands[1], &error);
    uint32_t n = status == WHIT_OK ? whit_turns_count(journal) : 0;
    if (n)
        cli_note("turn %u: %zu file%s written; 'whit agent undo' takes it back", whit_turns_at(journal, n - 1)->number,
                 whit_changes_count(set), whit_changes_count(set) == 1 ? "" : "s");
    if (n && whit_turns_commit_error(journal)) cli_note("%s", whit_turns_commit_error(journal)->message);
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
            cli_print(call, "%4u  %s  %s of turn %u, %u file%s\n", t->number, when, kind, t->of, t->n_changes,
                      t->n_changes == 1 ? "" : "s");
        else
            cli_print(call, "%4u  %s  %u file%s%s  %s\n", t->number, when, t->n_changes, t->n_changes == 1 ? "" : "s",
                      t->undone ? ", undone" : "", t->note);
    }
    if (all) cli_print_json(call, all);
    return CLI_OK;
}

static void show_change(void *user, const whit_change *change)
{
    whit_error error;
    cli_call *call = user;
    if (!((const struct agent_values *)call->values)->json) (void)cli_agent_show(call, change, &error);
}

int cli_agent_turns(cli_call *call, const char *project, const char *what, const char *which)
{
    const struct agent_values *values = call->values;
    whit_turns *journal;
    whit_error error;
    uint32_t recovered, number = 0;
    if (which) {
        char *end;
        unsigned long n = strtoul(which, &end, 10);
        if (*end || !n || n > UINT32_MAX) return cli_fail(call, CLI_USAGE, "'%s' is no turn's number", which);
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

static int run(cli_call *call)
{
    const struct agent_values *values = call->values;
    char project[PATH_MAX];
    if (!realpath(values->project ? values->project : ".", project))
        return cli_fail(call, CLI_IO, "%s: %s", values->project ? values->project : ".", strerror(errno));
    if (values->acp && (values->prompt || call->n_operands))
        return cli_fail(call, CLI_USAGE, "--acp lets an editor give the tasks; it goes with neither -p nor '%s'",
                        call->n_operands ? call->operands[0] : "apply");
    if (values->prompt || (!call->n_operands && (values->url || values->local))) return cli_agent_task(call, project);
    if (!call->n_operands)
        return cli_fail(call, CLI_USAGE,
                        "what? -m MODEL or --url URL says who answers; or one of apply, undo, redo, log");
    const char *what = call->operands[0];
    if (strcmp(what, "apply") == 0) return apply(call, project);
    if (strcmp(what, "undo") == 0 || strcmp(what, "redo") == 0 || strcmp(what, "log") == 0)
        return cli_agent_turns(call, project, what, call->n_operands > 1 ? call->operands[1] : NULL);
    return cli_fail(call, CLI_USAGE, "'%s' is none of apply, undo, redo, log", what);
}

const cli_verb cli_agent_verb = {
    "agent",
    "[apply|undo|redo|log] [PATCH|TURN]",
    0,
    2,
    "let a model change a project, each change shown first and taken back at will",
    "-p lets a model, in this process (-m) or at an OpenAI-compatible endpoint (--url), do a task; without it tasks "
    "are typed, and /undo, /redo, /log, /cost and /bye are commands. It reads, lists and searches the project, and "
    "writes by patches or whole files, and runs commands in a sandboxed copy. What it writes in one answer is one "
    "turn, checked, shown and asked about like a patch.\n"
    "apply reads a patch as models write them (SEARCH/REPLACE blocks, *** Begin Patch, unified diffs), finds each "
    "hunk's only place (exactly, else but for blanks, indentation or typographic characters), shows the exact "
    "difference and asks. What is agreed to is written as one turn, all files or none. undo takes the latest turn "
    "back, redo makes the one again that was undone last, or both the one that is named, unless a file has changed "
    "since; log lists the turns. A turn that was cut off by a crash is undone at the next call.\n"
    "  whit agent -p 'rename the option' --url http://127.0.0.1:8080/v1\n"
    "  whit agent apply answer.patch\n"
    "  whit agent apply - --allow yellow < answer.md\n"
    "  whit agent undo --preview\n"
    "  whit agent log",
    {{"OPTIONS", options, 0}, {"SESSION", cli_session_options, AT(session)}},
    sizeof(struct agent_values),
    &defaults,
    run,
    false,
    "apply|undo|redo|log",
    0,
    .usual = "-m, --url, -p, --allow, --session",
};
