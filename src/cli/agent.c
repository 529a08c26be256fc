/* SPDX-License-Identifier: MIT
 * whit agent: patches that are shown before they are written, and turns that can be taken back. */
#include "agent/diff.h"
#include "agent/turns.h"
#include "agent/patch.h"
#include "cli/flags.h"
#include "cli/verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct agent_values {
    const char *project, *file, *state;
    int allow;
    bool preview, json;
};
static const struct agent_values defaults;
enum { ALLOW_GREEN, ALLOW_YELLOW };

#define AT(member) offsetof(struct agent_values, member)
static const cli_option options[] = {
    {"--project", CLI_FILE, AT(project), "FOLDER", "The project; the current folder by default.", 0, 0},
    {"-f, --file", CLI_FILE, AT(file), "PATH", "The file that SEARCH/REPLACE blocks without a name change.", 0, 0},
    {"--allow", CLI_CHOICE, AT(allow), "green|yellow",
     "What needs no question: green, the default, is reading only; yellow also writes inside the project.", 0, 0},
    {"--preview", CLI_FLAG, AT(preview), NULL, "Show what would be written, and write nothing.", 0, 0},
    {"--state-dir", CLI_FILE, AT(state), "FOLDER", "Where journals are kept; $XDG_STATE_HOME/whit by default.", 0, 0},
    {"--json", CLI_FLAG, AT(json), NULL, "Print JSON: one object for each file, or for each turn.", 0, 0},
    {0},
};

struct change_set {
    whit_buf changes;  /* whit_change[] */
    whit_buf contents; /* whit_buf[]: what the changes point into */
    whit_buf notes;    /* whit_patch_result[] */
};

static size_t n_changes(const struct change_set *set)
{
    return set->changes.size_bytes / sizeof(whit_change);
}

static whit_change *change_at(const struct change_set *set, size_t i)
{
    return (whit_change *)(void *)set->changes.data + i;
}

static void set_free(struct change_set *set)
{
    for (size_t i = 0; i < set->contents.size_bytes / sizeof(whit_buf); i++)
        whit_buf_free((whit_buf *)(void *)set->contents.data + i);
    whit_buf_free(&set->contents);
    whit_buf_free(&set->changes);
    whit_buf_free(&set->notes);
}

/* ---- what may be written -------------------------------------------------------------------- */

static bool has_part(const char *path, const char *part)
{
    size_t n = strlen(part);
    for (const char *at = path; (at = strstr(at, part)); at++)
        if ((at == path || at[-1] == '/') && (!at[n] || at[n] == '/')) return true;
    return false;
}

static size_t count_checks(const char *text, size_t n)
{
    static const char *const words[] = {"assert", "ASSERT", "expect(", "EXPECT", "REQUIRE", "CHECK("};
    size_t count = 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        for (const char *at = text; n && (at = memmem(at, n - (size_t)(at - text), words[i], strlen(words[i]))); at++)
            count++;
    return count;
}

/* Why a change needs a person whatever --allow says; NULL: it does not. */
static const char *red_reason(const whit_change *change)
{
    static const char *const guarded[] = {".git", ".hg", ".svn", ".github", ".ci", ".vscode", ".ssh", ".env"};
    for (size_t i = 0; i < sizeof guarded / sizeof *guarded; i++)
        if (has_part(change->path, guarded[i])) return "it belongs to the project's configuration";
    if (change->was && !change->is) return "it deletes a file";
    bool test = strstr(change->path, "test") || strstr(change->path, "spec");
    if (test && change->was &&
        count_checks(change->after, change->after_bytes) < count_checks(change->before, change->before_bytes))
        return "it leaves fewer checks in a test";
    return NULL;
}

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

static bool agreed(cli_call *call, const char *reason, size_t n)
{
    char answer[16] = "";
    cli_flush(call);
    int terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (terminal < 0) return false;
    dprintf(terminal, "%s%sWrite %zu file%s? [y/N] ", reason ? reason : "", reason ? ". " : "", n, n == 1 ? "" : "s");
    ssize_t got = read(terminal, answer, sizeof answer - 1);
    close(terminal);
    return got > 0 && (answer[0] == 'y' || answer[0] == 'Y');
}

/* ---- apply ---------------------------------------------------------------------------------- */

static whit_status add_change(struct change_set *set, const char *project, const whit_patch *patch,
                              const whit_patch_file *file, const char *path, whit_error *error)
{
    whit_buf content[2] = {{0}, {0}}; /* before, after */
    whit_patch_result result = {0};
    whit_change change = {.path = path, .is = file->action != WHIT_PATCH_DELETE};
    whit_status status = whit_project_read(project, path, &content[0], &change.was, &change.mode, error);
    if (status == WHIT_OK && !change.was && file->action != WHIT_PATCH_ADD)
        status = whit_fail(error, WHIT_ERROR_IO, "%s: there is no such file in the project", path);
    if (status == WHIT_OK && change.was && file->action == WHIT_PATCH_ADD && content[0].size_bytes)
        status = whit_fail(error, WHIT_ERROR_ARGUMENT, "%s: the patch makes this file, and it is there already", path);
    if (status == WHIT_OK && change.is)
        status = whit_patch_apply(patch, file, path, (const char *)content[0].data, content[0].size_bytes, &content[1],
                                  &result, error);
    change.before = (const char *)content[0].data;
    change.before_bytes = content[0].size_bytes;
    change.after = (const char *)content[1].data;
    change.after_bytes = content[1].size_bytes;
    if (status == WHIT_OK &&
        (!whit_buf_append(&set->contents, content, sizeof content) ||
         !whit_buf_append(&set->changes, &change, sizeof change) ||
         !whit_buf_append(&set->notes, &result, sizeof result)))
        status = whit_fail_memory(error, "changes", sizeof change);
    if (status != WHIT_OK) {
        whit_buf_free(&content[0]);
        whit_buf_free(&content[1]);
    }
    return status;
}

static whit_status make_changes(struct change_set *set, const struct agent_values *values, const char *project,
                                const whit_patch *patch, whit_error *error)
{
    for (size_t i = 0; i < whit_patch_n_files(patch); i++) {
        const whit_patch_file *file = whit_patch_file_at(patch, i);
        const char *path = file->path ? file->path : values->file;
        if (!path) return whit_fail(error, WHIT_ERROR_ARGUMENT, "the patch names no file; say which with --file PATH");
        if (file->move_to)
            return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                             "%s: a patch that moves a file is not applied; add the new file and delete the old one",
                             path);
        for (size_t k = 0; k < n_changes(set); k++)
            if (strcmp(change_at(set, k)->path, path) == 0)
                return whit_fail(error, WHIT_ERROR_ARGUMENT, "%s: the patch has this file twice", path);
        WHIT_TRY(add_change(set, project, patch, file, path, error));
    }
    return WHIT_OK;
}

/* Drops what changes nothing, and says so. */
static void drop_unchanged(cli_call *call, struct change_set *set)
{
    const struct agent_values *values = call->values;
    json_t *all = values->json ? json_array() : NULL;
    size_t kept = 0, n = n_changes(set);
    const whit_patch_result *results = (const whit_patch_result *)(const void *)set->notes.data;
    for (size_t i = 0; i < n; i++) {
        whit_change c = *change_at(set, i);
        bool same = c.was == c.is && c.before_bytes == c.after_bytes && memcmp(c.before, c.after, c.before_bytes) == 0;
        const char *state = results[i].already_applied ? "applied already" : same ? "unchanged" : "applies";
        if (values->json)
            json_array_append_new(all,
                                  json_pack("{s:s, s:s, s:s, s:i}", "path", c.path, "state", state, "grade",
                                            whit_patch_grade_name(results[i].grade), "hunks", (int)results[i].n_hunks));
        else if (same)
            cli_note("%s: %s", c.path, state);
        else if (results[i].grade != WHIT_PATCH_EXACT)
            cli_note("%s: found but for %s", c.path, whit_patch_grade_name(results[i].grade));
        if (!same) *change_at(set, kept++) = c;
    }
    set->changes.size_bytes = kept * sizeof(whit_change);
    if (all) cli_print_json(call, all);
}

static int write_changes(cli_call *call, struct change_set *set, const char *project)
{
    const struct agent_values *values = call->values;
    whit_error error;
    const char *reason = NULL;
    char line[PATH_MAX + 80];
    for (size_t i = 0; i < n_changes(set); i++) {
        if (!values->json && show(call, change_at(set, i), &error) != WHIT_OK) return cli_fail_error(call, &error);
        const char *red = red_reason(change_at(set, i));
        if (!red || reason) continue;
        snprintf(line, sizeof line, "%s: %s", change_at(set, i)->path, red);
        reason = line;
    }
    if (!n_changes(set) || values->preview) return CLI_OK;
    if ((reason || values->allow < ALLOW_YELLOW) && !agreed(call, reason, n_changes(set)))
        return cli_fail(call, CLI_FAILED, "%s%snothing is written", reason ? reason : "not agreed to",
                        reason ? ", and nobody agreed to it: " : ": ");
    whit_turns *journal;
    uint32_t recovered;
    whit_status status = whit_turns_open(project, values->state, &journal, &recovered, &error);
    if (status == WHIT_OK)
        status = whit_turns_write(journal, change_at(set, 0), n_changes(set), call->operands[1], &error);
    uint32_t n = status == WHIT_OK ? whit_turns_count(journal) : 0;
    if (n)
        cli_note("turn %u: %zu files written; 'whit agent undo' takes it back", whit_turns_at(journal, n - 1)->number,
                 n_changes(set));
    whit_turns_close(journal);
    return status == WHIT_OK ? CLI_OK : cli_fail_error(call, &error);
}

static int apply(cli_call *call, const char *project)
{
    const struct agent_values *values = call->values;
    cli_text text = {0};
    whit_patch patch = {0};
    struct change_set set = {0};
    whit_error error;
    int status = CLI_OK;
    if (call->n_operands < 2) return cli_fail(call, CLI_USAGE, "which patch? whit agent apply FILE (- is stdin)");
    status = cli_read_text(call, call->operands[1], &text);
    if (status != CLI_OK) return status;
    if (whit_patch_parse(text.data, text.size_bytes, &patch, &error) != WHIT_OK ||
        make_changes(&set, values, project, &patch, &error) != WHIT_OK)
        status = cli_fail_error(call, &error);
    if (status == CLI_OK) drop_unchanged(call, &set);
    if (status == CLI_OK) status = write_changes(call, &set, project);
    set_free(&set);
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

static int run(cli_call *call)
{
    const struct agent_values *values = call->values;
    char project[PATH_MAX];
    const char *what = call->operands[0];
    if (!realpath(values->project ? values->project : ".", project))
        return cli_fail(call, CLI_IO, "%s: %s", values->project ? values->project : ".", strerror(errno));
    if (strcmp(what, "apply") == 0) return apply(call, project);
    if (strcmp(what, "undo") == 0 || strcmp(what, "redo") == 0 || strcmp(what, "log") == 0)
        return turns(call, project, what);
    return cli_fail(call, CLI_USAGE, "'%s' is none of apply, undo, redo, log", what);
}

const cli_verb cli_agent_verb = {
    "agent",
    "apply|undo|redo|log [PATCH|TURN]",
    1,
    2,
    "apply patches of models, shown first, and take any of them back",
    "apply reads a patch as models write them (SEARCH/REPLACE blocks, *** Begin Patch, unified diffs), finds each "
    "hunk's only place (exactly, else but for blanks, indentation or typographic characters), shows the exact "
    "difference and asks. What is agreed to is written as one turn, all files or none. undo and redo take the latest "
    "turn, or the one that is named, back or make it again, unless a file has changed since; log lists the turns. "
    "A turn that was cut off by a crash is undone at the next call.\n"
    "  whit agent apply answer.patch\n"
    "  whit agent apply - --allow yellow < answer.md\n"
    "  whit agent undo --preview\n"
    "  whit agent log",
    {{"OPTIONS", options, 0}},
    sizeof(struct agent_values),
    &defaults,
    run,
};
