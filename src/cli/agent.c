/* SPDX-License-Identifier: MIT
 * Implements whit agent: shows patches before they are written, writes them, and undoes turns. */
#include "agent/changes.h"
#include "agent/config.h"
#include "base/items.h"
#include "agent/hunks.h"
#include "agent/light.h"
#include "base/phrase.h"
#include "base/plain.h"
#include "base/typed.h"
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
    {"--allow", CLI_CHOICE, AT(allow), "read|write|green|yellow",
     "What needs no question: read, the default, is reading only (green is its older name); write also writes inside "
     "the project (yellow).",
     0, 0},
    {"-y, --yes", CLI_FLAG, AT(yes), NULL, "The same as --allow write.", 0, 0},
    {"-p, --prompt", CLI_TEXT, AT(prompt), "TASK",
     "Let a model do this task, as 'whit agent \"TASK\"' does; - reads it from stdin, so that others on this machine "
     "cannot read it in the list of processes. Without one tasks are read line by line.",
     0, 0},
    {"-j, --jobs", CLI_COUNT, AT(n_jobs), "N",
     "Do several tasks, N at once, each in a copy of the project: the lines of a file, or an argument for each. What "
     "they change is checked, shown and written one after the other.",
     1, 64},
    {"-m", CLI_FILE, AT(local), "MODEL", "A model that answers in this process: a file or a pulled name.", 0, 0},
    {"-s, --seed", CLI_SEED, AT(seed), "S", "Seed of the model's random choices; -1, the default, draws one.", 0, 0},
    {"--temp, --temperature", CLI_REAL, AT(temperature), "T",
     "Temperature; 0, the default, always takes the likeliest token.", 0, 100},
    {"--url", CLI_TEXT, AT(url), "URL",
     "The OpenAI-compatible endpoint, such as http://127.0.0.1:8080/v1; without it and -m, the server that runs on "
     "this "
     "machine is found: whit serve and llama.cpp at port 8080 (or $WHIT_PORT), Ollama at 11434 (or $OLLAMA_HOST).",
     0, 0},
    {"--model", CLI_TEXT, AT(model), "NAME", "The model's name at the endpoint.", 0, 0},
    {"--key-file", CLI_FILE, AT(key_file), "FILE",
     "A file of mode 0600 with the endpoint's key; $WHIT_API_KEY by default.", 0, 0},
    {"--max-turns", CLI_COUNT, AT(n_turns), "N", "Answers of the model at most; 50 by default.", 1, 10000},
    {"--max-cost", CLI_COUNT, AT(n_tokens), "N", "Tokens at most, in and out; any number by default.", 1, UINT32_MAX},
    {"--session", CLI_FILE, AT(keep), "FILE", "Resume the conversation in this file, and keep it there.", 0, 0},
    {"--resume", CLI_FLAG, AT(resume), NULL,
     "Resume the project's last conversation, which is kept in the state folder where --session names no file.", 0, 0},
    {"--preview", CLI_FLAG, AT(preview), NULL,
     "With apply, undo and redo: show what would be written, and write nothing.", 0, 0},
    {"--state-dir", CLI_FILE, AT(state), "FOLDER", "Where journals are kept; $XDG_STATE_HOME/whit by default.", 0, 0},
    {"--no-sandbox", CLI_FLAG, AT(no_sandbox), NULL,
     "Run commands without a sandbox, each after a question; never without one unless you say this.", 0, 0},
    {"--acp", CLI_FLAG, AT(acp), NULL, "Let an editor give the tasks (Agent Client Protocol on stdin and stdout).", 0,
     0},
    {"--json", CLI_FLAG, AT(json), NULL,
     "Print JSON: one object for a task; of apply one for each file, of log one for each turn.", 0, 0},
    {0},
};

/* ---- showing changes ------------------------------------------------------------------------ */

/* Numbers of old and new lines of the current hunk that were not read yet. */
struct hunk_left {
    size_t n_old, n_new;
};

/* Returns the escape sequence for the colour of a diff's line, or NULL. Inside a hunk, a line such as "--- a/x" is a
 * removed line "-- a/x" and not a file's name. */
static const char *colour_of(const char *line, size_t n, struct hunk_left *left)
{
    const char kind = n ? line[0] : ' ';
    const bool is_name = !left->n_old && !left->n_new;
    if (is_name && kind == '@') {
        char head[100];
        snprintf(head, sizeof head, "%.*s", (int)(n < sizeof head ? n : sizeof head - 1), line);
        (void)sscanf(head, "@@ -%*u,%zu +%*u,%zu @@", &left->n_old, &left->n_new);
        return "\x1b[36m";
    }
    if (is_name) return kind == '+' || kind == '-' ? "\x1b[1m" : NULL;
    if (kind != '+' && kind != '\\') left->n_old -= left->n_old > 0;
    if (kind != '-' && kind != '\\') left->n_new -= left->n_new > 0;
    if (kind == '+') return "\x1b[32m";
    return kind == '-' ? "\x1b[31m" : NULL;
}

/* Prints a difference to a terminal in colours. */
static void write_coloured(cli_call *call, const char *text, size_t n_bytes)
{
    struct hunk_left left = {0};
    const char *colour = NULL;
    for (size_t i = 0, n; i < n_bytes; i += n) {
        const char *end = memchr(text + i, '\n', n_bytes - i);
        size_t n_line = end ? (size_t)(end - text) - i : n_bytes - i;
        /* no line of a difference begins with the first character of a further row */
        if (!n_line || text[i] != *WHIT_PLAIN_ROW) colour = colour_of(text + i, n_line, &left);
        if (colour) cli_control(call, colour);
        cli_write_shown(call, text + i, n_line);
        if (colour) cli_control(call, "\x1b[0m");
        if (end) cli_write(call, "\n", 1);
        n = n_line + (end != NULL);
    }
}

void cli_agent_write_diff(cli_call *call, const char *text, size_t n_bytes)
{
    whit_buf shown = {0};
    if (isatty(STDOUT_FILENO) && whit_plain_for_terminal(text, n_bytes, whit_typed_columns(STDOUT_FILENO), &shown)) {
        text = whit_chars(&shown);
        n_bytes = shown.size_bytes;
    }
    cli_control(call, whit_typed_plain());
    if (cli_has_colours(STDOUT_FILENO))
        write_coloured(call, text, n_bytes);
    else
        cli_write_shown(call, text, n_bytes);
    call->output_failed |= shown.failed;
    whit_buf_free(&shown);
}

whit_status cli_agent_show(cli_call *call, const whit_change *c, whit_error *error)
{
    whit_buf diff = {0};
    whit_status status = whit_change_show(c, &diff, error);
    if (status == WHIT_OK) cli_agent_write_diff(call, whit_chars(&diff), diff.size_bytes);
    whit_buf_free(&diff);
    return status;
}

bool cli_agent_asks_elsewhere(cli_call *call)
{
    /* also if stdout is another terminal than that of this session */
    return ((const struct agent_values *)call->values)->json || tcgetsid(STDOUT_FILENO) != getsid(0);
}

/* ---- apply ---------------------------------------------------------------------------------- */

/* Reports how the place of each change was found in its file, and drops changes without effect. */
static void drop_unchanged(cli_call *call, whit_changes *set)
{
    const struct agent_values *values = call->values;
    json_t *all = values->json ? json_array() : NULL;
    for (size_t i = 0; i < whit_changes_count(set); i++) {
        whit_change c = *whit_changes_at(set, i);
        const whit_patch_result *result = whit_changes_result(set, i);
        bool same = c.was == c.is && c.before_bytes == c.after_bytes &&
            (!c.before_bytes || memcmp(c.before, c.after, c.before_bytes) == 0);
        const char *state = "applies";
        if (result->already_applied)
            state = "applied already";
        else if (same)
            state = "unchanged";
        if (values->json)
            json_array_append_new(all,
                                  json_pack("{s:o, s:s, s:s, s:i}", "path", cli_json_path(c.path), "state", state,
                                            "grade", whit_patch_grade_name(result->grade), "hunks",
                                            (int)result->n_hunks));
        else if (same)
            cli_note("%s: %s", c.path, state);
        else if (result->grade != WHIT_PATCH_EXACT)
            cli_note("%s: the patch's lines were found in the file, where they differ in %s", c.path,
                     whit_patch_grade_name(result->grade));
    }
    whit_changes_settle(set);
    if (all) cli_print_json(call, all);
}

bool cli_agent_is_shown(cli_call *call, const char *text, size_t n_bytes)
{
    cli_flush(call);
    if (!cli_agent_asks_elsewhere(call) && !call->output_failed) return true;
    return whit_light_tell(text, n_bytes);
}

bool cli_agent_agreed(cli_call *call, const whit_buf *shown, const char *reason, size_t n_files, whit_buf *why)
{
    cli_flush(call);
    if (shown->size_bytes && !cli_agent_is_shown(call, whit_chars(shown), shown->size_bytes)) return false;
    return whit_light_agreed(reason, n_files, why);
}

whit_status cli_agent_show_all(cli_call *call, const whit_changes *set, whit_buf *shown, whit_error *error)
{
    const struct agent_values *values = call->values;
    for (size_t i = 0; i < whit_changes_count(set); i++)
        WHIT_TRY(whit_change_show(whit_changes_at(set, i), shown, error));
    if (!values->json && shown->size_bytes) cli_agent_write_diff(call, whit_chars(shown), shown->size_bytes);
    return WHIT_OK;
}

/* Asks for approval of changes if it is needed. Returns CLI_OK if the changes may be written. */
static int ask_about(cli_call *call, const whit_changes *set, const whit_buf *shown, const char *project)
{
    const struct agent_values *values = call->values;
    char reason[WHIT_LIGHT_REASONS_BYTES];
    (void)whit_light_mark(project, set);
    const bool red = whit_light_reasons(set, reason);
    if (!red && cli_agent_may_write(values)) return CLI_OK;
    if (!whit_light_has_terminal()) {
        if (red)
            return cli_fail(call, CLI_FAILED,
                            "%s, and nobody is there to agree to it (no terminal): nothing is written", reason);
        return cli_fail(call, CLI_FAILED,
                        "nobody is there to agree to it (no terminal): nothing is written; --yes "
                        "agrees in advance");
    }
    if (cli_agent_agreed(call, shown, red ? reason : NULL, whit_changes_count(set), NULL)) return CLI_OK;
    const char *link = red ? ", and it was not agreed to: " : ": ";
    return cli_fail(call, CLI_FAILED, "%s%sthese changes are not written", red ? reason : "the person did not agree",
                    link);
}

int cli_agent_write(cli_call *call, whit_changes *set, const char *project, const char *note)
{
    const struct agent_values *values = call->values;
    whit_error error;
    whit_buf shown = {0};
    int asked = cli_agent_show_all(call, set, &shown, &error) == WHIT_OK ? CLI_OK : cli_fail_error(call, &error);
    bool writes = whit_changes_count(set) && !values->preview;
    if (asked == CLI_OK && writes && whit_agent_config_know_programs(project, &error) != WHIT_OK)
        asked = cli_fail_error(call, &error);
    if (asked == CLI_OK && writes) asked = ask_about(call, set, &shown, project);
    whit_buf_free(&shown);
    if (asked != CLI_OK || !writes) return asked;
    const whit_change *other = whit_light_find_new(project, set);
    if (other)
        return cli_fail(call, CLI_FAILED, "%s: has changed since it was shown; nothing is written: look at it again",
                        other->path);
    whit_turns *journal;
    uint32_t recovered;
    whit_status status = whit_turns_open(project, values->state, &journal, &recovered, &error);
    if (status == WHIT_OK)
        status = whit_turns_write(journal, whit_changes_at(set, 0), whit_changes_count(set), note, &error);
    uint32_t n = status == WHIT_OK ? whit_turns_count(journal) : 0;
    if (n)
        cli_note("turn %u: %zu file%s written; 'whit agent undo' takes it back", whit_turns_at(journal, n - 1)->number,
                 whit_changes_count(set), whit_changes_count(set) == 1 ? "" : "s");
    if (n && whit_turns_commit_error(journal)) cli_note("%s", whit_turns_commit_error(journal)->message);
    whit_turns_close(journal);
    return status == WHIT_OK ? CLI_OK : cli_fail_error(call, &error);
}

static int apply_patch(cli_call *call, const char *project)
{
    const struct agent_values *values = call->values;
    cli_text text = {0};
    whit_patch patch = {0};
    whit_changes set = {0};
    whit_error error;
    int status = CLI_OK;
    if (call->n_operands < 2) return cli_fail(call, CLI_USAGE, "no patch given: whit agent apply FILE (- is stdin)");
    status = cli_read_text(call, call->operands[1], &text);
    if (status != CLI_OK) return status;
    const uint32_t number =
        (values->preview ? whit_turns_find_interrupted : whit_turns_recover)(project, values->state);
    if (number) cli_note(values->preview ? WHIT_TURNS_INTERRUPTED : WHIT_TURNS_RECOVERED, number);
    if (whit_patch_parse(text.data, text.size_bytes, &patch, &error) != WHIT_OK ||
        whit_changes_patch(&set, project, &patch, values->file, &error) != WHIT_OK)
        status = cli_fail_error(call, &error);
    if (status == CLI_OK) drop_unchanged(call, &set);
    if (status == CLI_OK) status = cli_agent_write(call, &set, project, call->operands[1]);
    whit_changes_free(&set);
    whit_patch_free(&patch);
    free(text.data);
    return status;
}

/* ---- turns ---------------------------------------------------------------------------------- */

/* Prints a turn in one line: a model can put line feeds into the task of another agent, which begins the note. */
static void print_turn(cli_call *call, const whit_turn *t, const char *when)
{
    whit_buf note = {0};
    if (whit_plain_show(t->note, strlen(t->note), WHIT_PLAIN_NAME, &note) && whit_buf_append(&note, "", 1))
        cli_print(call, "%4u  %s  %u file%s%s  %s\n", t->number, when, t->n_changes, whit_plural(t->n_changes),
                  t->undone ? ", undone" : "", whit_chars(&note));
    whit_buf_free(&note);
}

static json_t *pack_turn(const whit_turn *t, const char *kind)
{
    return json_pack("{s:i, s:s, s:i, s:b, s:i, s:I, s:s}", "turn", (int)t->number, "kind", kind, "of", (int)t->of,
                     "undone", t->undone, "files", (int)t->n_changes, "time", (json_int_t)t->time_s, "note", t->note);
}

static int list_turns(cli_call *call, const whit_turns *journal)
{
    const struct agent_values *values = call->values;
    static const char *const kinds[] = {"", "write", "undo", "redo"};
    const whit_turn *interrupted = whit_turns_interrupted(journal);
    json_t *all = values->json ? json_array() : NULL;
    if (!values->json && !whit_turns_count(journal) && !interrupted)
        cli_note("there are no turns yet: the agent has written nothing in this project");
    for (uint32_t i = 0; i < whit_turns_count(journal); i++) {
        const whit_turn *t = whit_turns_at(journal, i);
        char when[32];
        time_t seconds = (time_t)t->time_s;
        struct tm local;
        strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", localtime_r(&seconds, &local));
        const char *kind = kinds[t->kind <= WHIT_TURN_REDO ? t->kind : 0];
        if (values->json)
            json_array_append_new(all, pack_turn(t, kind));
        else if (t->of)
            cli_print(call, "%4u  %s  %s of turn %u, %u file%s\n", t->number, when, kind, t->of, t->n_changes,
                      whit_plural(t->n_changes));
        else
            print_turn(call, t, when);
    }
    if (all && interrupted) json_array_append_new(all, pack_turn(interrupted, "interrupted"));
    if (all) cli_print_json(call, all);
    return CLI_OK;
}

/* Differences in the form for display: by which an interrupted turn is taken back, and that a turn makes. */
struct shown_turns {
    whit_buf back, diff;
    whit_buf *out; /* the difference to which changes are added */
    whit_status status;
    whit_error *error;
    bool is_forward; /* the changes of an undo are shown as their turn made them */
};

static void add_shown(void *user, const whit_change *change)
{
    struct shown_turns *shown = user;
    whit_change c = *change;
    if (shown->is_forward) whit_change_turn_round(&c);
    if (shown->status == WHIT_OK) shown->status = whit_change_show(&c, shown->out, shown->error);
}

static void shown_free(struct shown_turns *shown)
{
    whit_buf_free(&shown->back);
    whit_buf_free(&shown->diff);
}

static json_t *json_of(const whit_buf *text)
{
    return json_stringn(text->size_bytes ? whit_chars(text) : "", text->size_bytes);
}

/* Shows what the next call that may write does first: it takes an interrupted turn back. */
static whit_status show_interrupted(cli_call *call, const whit_turns *journal, struct shown_turns *shown,
                                    whit_error *error)
{
    const struct agent_values *values = call->values;
    const whit_turn *interrupted = whit_turns_interrupted(journal);
    if (!interrupted) return WHIT_OK;
    shown->out = &shown->back;
    shown->error = error;
    WHIT_TRY(whit_turns_show_interrupted(journal, add_shown, shown, error));
    WHIT_TRY(shown->status);
    cli_note(WHIT_TURNS_INTERRUPTED, interrupted->number);
    if (shown->back.size_bytes && !values->json)
        cli_agent_write_diff(call, whit_chars(&shown->back), shown->back.size_bytes);
    return WHIT_OK;
}

/* Shows an undo or redo, which is not made. With --json prints an object with the differences. */
static whit_status show_turn(cli_call *call, whit_turns *journal, bool undo, uint32_t *number,
                             struct shown_turns *shown, whit_error *error)
{
    const struct agent_values *values = call->values;
    const whit_turn *interrupted = whit_turns_interrupted(journal);
    shown->out = &shown->diff;
    shown->error = error;
    WHIT_TRY((undo ? whit_turns_undo : whit_turns_redo)(journal, number, true, add_shown, shown, error));
    WHIT_TRY(shown->status);
    if (values->json) {
        json_t *all = json_pack("{s:I, s:s, s:b, s:o}", "turn", (json_int_t)*number, "kind", undo ? "undo" : "redo",
                                "preview", values->preview, "difference", json_of(&shown->diff));
        if (interrupted)
            json_object_set_new(
                all, "interrupted",
                json_pack("{s:I, s:o}", "turn", (json_int_t)interrupted->number, "difference", json_of(&shown->back)));
        cli_print_json(call, all);
    } else if (shown->diff.size_bytes) {
        cli_agent_write_diff(call, whit_chars(&shown->diff), shown->diff.size_bytes);
    }
    return WHIT_OK;
}

/* Lists turns, or shows an undo or redo (`what`), and writes nothing. With `reason` asks whether it may be made, and
 * sets *is_agreed to the answer. */
static int look_at_turns(cli_call *call, const char *project, const char *what, uint32_t *number, const char *reason,
                         bool *is_agreed)
{
    const struct agent_values *values = call->values;
    struct shown_turns shown = {0};
    whit_turns *journal;
    whit_error error;
    whit_status status = whit_turns_look(project, values->state, &journal, &error);
    if (status != WHIT_OK) return cli_fail_error(call, &error);
    status = show_interrupted(call, journal, &shown, &error);
    if (status == WHIT_OK && strcmp(what, "log") == 0)
        list_turns(call, journal);
    else if (status == WHIT_OK)
        status = show_turn(call, journal, strcmp(what, "undo") == 0, number, &shown, &error);
    whit_turns_close(journal);
    if (status == WHIT_OK && reason) {
        whit_buf_append(&shown.back, shown.diff.data, shown.diff.size_bytes);
        *is_agreed = !shown.back.failed && cli_agent_agreed(call, &shown.back, reason, 0, NULL);
    }
    shown_free(&shown);
    return status == WHIT_OK ? CLI_OK : cli_fail_error(call, &error);
}

/* Undoes or redoes a turn, which is shown first unless it was shown already. */
static int turn_back(cli_call *call, const char *project, bool undo, uint32_t *number, bool is_shown)
{
    const struct agent_values *values = call->values;
    struct shown_turns shown = {0};
    whit_turns *journal;
    whit_error error;
    uint32_t recovered;
    if (whit_turns_open(project, values->state, &journal, &recovered, &error) != WHIT_OK)
        return cli_fail_error(call, &error);
    if (recovered) cli_note(WHIT_TURNS_RECOVERED, recovered);
    whit_status status = is_shown ? WHIT_OK : show_turn(call, journal, undo, number, &shown, &error);
    cli_flush(call);
    if (status == WHIT_OK)
        status = (undo ? whit_turns_undo : whit_turns_redo)(journal, number, false, NULL, NULL, &error);
    whit_turns_close(journal);
    shown_free(&shown);
    return status == WHIT_OK ? CLI_OK : cli_fail_error(call, &error);
}

int cli_agent_turns(cli_call *call, const char *project, const char *what, const char *which, const char *reason)
{
    const struct agent_values *values = call->values;
    const bool lists = strcmp(what, "log") == 0, undo = strcmp(what, "undo") == 0, writes = !lists && !values->preview;
    bool is_agreed = true;
    uint32_t number = 0;
    int status = CLI_OK;
    if (which) {
        char *end;
        unsigned long n = strtoul(which, &end, 10);
        if (*end || !n || n > UINT32_MAX)
            return cli_fail(call, CLI_USAGE, "'%s' is not the number of a turn; 'whit agent log' lists the turns",
                            which);
        number = (uint32_t)n;
    }
    if (!writes || reason) status = look_at_turns(call, project, what, &number, reason, &is_agreed);
    if (status == CLI_OK && writes && is_agreed) status = turn_back(call, project, undo, &number, reason != NULL);
    const char *done = undo ? "undone" : "redone";
    if (status == CLI_OK && !lists && is_agreed) cli_note("turn %u is %s%s", number, writes ? "" : "to be ", done);
    return status;
}

int cli_agent_latest(cli_call *call, const char *project)
{
    const struct agent_values *values = call->values;
    struct shown_turns shown = {.is_forward = true};
    whit_turns *journal;
    whit_error error;
    uint32_t number = 0;
    whit_status status = whit_turns_look(project, values->state, &journal, &error);
    if (status != WHIT_OK) return cli_fail_error(call, &error);
    status = show_interrupted(call, journal, &shown, &error);
    if (status == WHIT_OK) status = show_turn(call, journal, true, &number, &shown, &error);
    if (status == WHIT_OK) cli_note("turn %u; /undo takes it back", number);
    shown_free(&shown);
    whit_turns_close(journal);
    return status == WHIT_OK ? CLI_OK : cli_fail_error(call, &error);
}

/* Joins the operands to the text of a task. Returns false if there is only one word, which is not a task, or if memory
 * runs out. */
static bool join_task(const cli_call *call, whit_buf *task)
{
    bool is_task = call->n_operands > 1 || strpbrk(call->operands[0], " \t\n");
    for (size_t i = 0; is_task && i < call->n_operands; i++)
        whit_buf_printf(task, "%s%s", i ? " " : "", call->operands[i]);
    return is_task && whit_buf_append(task, "", 1);
}

static int run_task(cli_call *call, const char *project)
{
    struct agent_values *values = call->values;
    whit_found_server found = {.url = NULL};
    /* With --acp each session of the editor finds its own server. */
    const bool finds = !values->url && !values->local && !values->acp && !values->preview;
    whit_error error;
    int status = CLI_OK;
    if (finds) {
        const bool is_found = whit_find_server(values->model, &found, &error) == WHIT_OK;
        cli_print_notes(whit_chars(&found.notes), found.notes.size_bytes);
        if (!is_found) status = cli_fail_error(call, &error);
        values->url = found.url;
        values->model = found.name;
        values->hides_key = found.hides_key;
        values->found = &found;
    }
    if (status == CLI_OK) status = (values->n_jobs ? cli_agent_parallel : cli_agent_task)(call, project);
    whit_found_server_free(&found);
    return status;
}

/* Runs the command, with the text of -p read. */
static int run_command(cli_call *call)
{
    struct agent_values *values = call->values;
    char project[PATH_MAX];
    whit_buf task = {0};
    const char *folder = values->project ? values->project : ".";
    if (!realpath(folder, project)) return cli_fail(call, CLI_IO, "%s: %s", folder, strerror(errno));
    if (values->acp && (values->prompt || call->n_operands))
        return cli_fail(call, CLI_USAGE,
                        "--acp lets an editor give the tasks; it cannot be combined with -p or '%s': leave them out",
                        call->n_operands ? call->operands[0] : "apply");
    if (values->resume && values->keep)
        return cli_fail(call, CLI_USAGE,
                        "--resume continues the last conversation, --session names a file: give only one of them");
    if (values->n_jobs) return run_task(call, project);
    if (values->prompt && call->n_operands)
        return cli_fail(call, CLI_USAGE, "give the task either by -p or as '%s', not both", call->operands[0]);
    if (!call->n_operands) return run_task(call, project);
    const char *what = call->operands[0], *which = call->n_operands > 1 ? call->operands[1] : NULL;
    if (call->n_operands <= 2 && strcmp(what, "apply") == 0) return apply_patch(call, project);
    if (call->n_operands <= 2 && (strcmp(what, "undo") == 0 || strcmp(what, "redo") == 0 || strcmp(what, "log") == 0))
        return cli_agent_turns(call, project, what, which, NULL);
    if (!join_task(call, &task)) {
        whit_buf_free(&task);
        return cli_fail(call, CLI_USAGE, "'%s' is not apply, undo, redo or log (a task of one word: -p %s)", what,
                        what);
    }
    values->prompt = whit_chars(&task);
    call->n_operands = 0;
    int status = run_task(call, project);
    whit_buf_free(&task);
    return status;
}

static int run_agent(cli_call *call)
{
    struct agent_values *values = call->values;
    cli_text prompt = {0};
    /* with --acp stdin is the editor's connection */
    if (values->prompt && !values->acp && strcmp(values->prompt, "-") == 0) {
        int status = cli_read_text(call, "-", &prompt);
        if (status != CLI_OK) return status;
        values->prompt = prompt.data;
    }
    int status = run_command(call);
    free(prompt.data);
    return status;
}

const cli_verb cli_agent_verb = {
    "agent",
    "[TASK | apply PATCH | undo [TURN] | redo [TURN] | log]",
    0,
    1 << 16,
    "let a model change a project, each change shown first and taken back at will",
    "A model does the task: one in this process (-m), at an OpenAI-compatible endpoint (--url), or of the server that "
    "runs on this machine, which is found. Without a task tasks are typed, and /help lists the commands beside them. "
    "The model reads, lists and searches the project, and writes by patches or whole files, and runs commands in a "
    "sandboxed copy. What it writes in one answer is one turn, checked, shown and asked about like a patch: y, n (and "
    "why), h for hunk by hunk, e to edit it, ? explains.\n"
    "apply reads a patch as models write them (SEARCH/REPLACE blocks, *** Begin Patch, unified diffs), finds each "
    "hunk's only place (exactly, else but for blanks, indentation or typographic characters), shows the exact "
    "difference and asks. What is agreed to is written as one turn, all files or none. undo takes the latest turn "
    "back, redo makes the one again that was undone last, or both the one that is named, unless a file has changed "
    "since; log lists the turns. A turn that was cut off by a crash is undone at the next call that may write.\n"
    "  whit agent 'rename the option'\n"
    "  whit agent 'rename the option' --url http://127.0.0.1:8080/v1\n"
    "  whit agent -j 4 tasks.txt\n"
    "  whit agent apply answer.patch\n"
    "  whit agent apply - --yes < answer.md\n"
    "  whit agent undo --preview\n"
    "  whit agent log",
    {{"OPTIONS", options, 0}, {"SESSION", cli_session_options, AT(session)}},
    sizeof(struct agent_values),
    &defaults,
    run_agent,
    false,
    "apply|undo|redo|log",
    0,
    .usual = "-m, --url, --allow, --resume, --session",
};
