/* SPDX-License-Identifier: MIT */
#include "agent/runs.h"

#include "agent/folders.h"
#include "agent/guard.h"
#include "base/items.h"
#include "base/path.h"
#include "base/status.h"
#include "base/utf8.h"

#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define SECONDS_USUAL 600 /* time limit in seconds if the settings give none */

const char *whit_runner_lacks(whit_runner *runner)
{
    if (!runner->was_probed) whit_sandbox_probe(&runner->support);
    runner->was_probed = true;
    return whit_sandbox_lacks(&runner->support);
}

void whit_runner_tell_lack(whit_runner *runner, const char *lacks)
{
    char line[400];
    if (runner->was_said || !runner->note) return;
    snprintf(line, sizeof line,
             "commands are not run: %s (--no-sandbox runs them without a sandbox, each after a question)", lacks);
    runner->note(runner->user, line);
    runner->was_said = true;
}

/* Appends the command and its result, as a line of JSON, to the list of runs. If that fails, the command counts as
 * failed, so that no run stays unrecorded. */
static whit_status note(const whit_runner *runner, const char *copy, const char *line,
                        const whit_sandbox_result *result, whit_error *error)
{
    char path[PATH_MAX];
    WHIT_TRY(whit_agent_state_path(runner->project, runner->state_dir, "agent", ".runs.jsonl", path, error));
    json_t *refused = json_array();
    const char *at = result->refused.size_bytes ? whit_chars(&result->refused) : "";
    const char *stop = at + result->refused.size_bytes;
    for (const char *end; at < stop && (end = memchr(at, '\n', (size_t)(stop - at))); at = end + 1)
        json_array_append_new(refused, json_stringn(at, (size_t)(end - at)));
    json_t *entry =
        json_pack("{s:I, s:s, s:s*, s:b, s:i, s:i, s:b, s:s*, s:I, s:i, s:o}", "time", (json_int_t)time(NULL), "copy",
                  copy, "command", line, "sandbox", !runner->no_sandbox, "status", result->status, "signal",
                  result->signal, "timed_out", result->timed_out, "over", *result->over ? result->over : NULL, "ms",
                  (json_int_t)(result->wall_ns / 1000000), "n_refused", (int)result->n_refused, "refused", refused);
    char *text = entry ? json_dumps(entry, JSON_COMPACT) : NULL;
    json_decref(entry);
    int fd = text ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600) : -1;
    bool ok = fd >= 0 && dprintf(fd, "%s\n", text) > 0;
    whit_status status;
    if (!text)
        status = whit_fail_memory(error, "a list of runs", 0);
    else if (ok)
        status = WHIT_OK;
    else
        status = whit_fail_errno(error, path, "write");
    if (fd >= 0) close(fd);
    free(text);
    return status;
}

/* Puts the texts that are open and not saved into `all`, except those with a staged change, and then the staged
 * changes. The entries of `all` point into `unsaved` and `staged`. */
static whit_status add_unsaved(const whit_runner *runner, const whit_changes *staged, whit_changes *unsaved,
                               whit_changes *all, whit_error *error)
{
    const whit_open_texts *open = staged ? staged->open : NULL;
    whit_buf paths = {0};
    whit_status status = open ? open->list(open->user, &paths, error) : WHIT_OK;
    unsaved->open = open;
    for (size_t at = 0; status == WHIT_OK && at < paths.size_bytes; at += strlen(whit_chars(&paths) + at) + 1) {
        const char *path = whit_chars(&paths) + at;
        if (whit_changes_find(staged, path)) continue;
        whit_buf content = {0};
        bool is = false;
        status = open->read(open->user, path, &content, &is, error);
        if (status == WHIT_OK && is)
            status = whit_changes_put(unsaved, runner->project, path, content.size_bytes ? whit_chars(&content) : "",
                                      content.size_bytes, error);
        whit_buf_free(&content);
    }
    whit_buf_free(&paths);
    const whit_changes *sets[] = {unsaved, staged};
    for (size_t i = 0; i < 2 && status == WHIT_OK; i++)
        if (sets[i] && sets[i]->changes.size_bytes &&
            !whit_buf_append(&all->changes, sets[i]->changes.data, sets[i]->changes.size_bytes))
            status = whit_fail_memory(error, "the list of changes", sets[i]->changes.size_bytes);
    return status;
}

whit_status whit_runner_open(whit_runner *runner, const char *copy, whit_scratch *scratch, whit_error *error)
{
    const char *lacks = runner->no_sandbox ? NULL : whit_runner_lacks(runner);
    if (lacks)
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "commands are not run: %s (--no-sandbox runs them without a sandbox)", lacks);
    const char *misses = runner->no_sandbox || runner->was_said ? NULL : whit_sandbox_misses(&runner->support);
    if (misses && runner->note) runner->note(runner->user, misses);
    runner->was_said = true;
    const whit_scratch_wait wait = {runner->cancel, runner->note, runner->user};
    /* Commands in the sandbox run without a question, and may leave files that programs obey. So commands outside of it
     * have copies of their own. */
    char name[32];
    snprintf(name, sizeof name, "%s%s", runner->no_sandbox ? "outside-" : "", copy);
    return whit_scratch_open(runner->project, runner->cache_dir, name, &wait, scratch, error);
}

enum { HIDDEN_MAX = 8 };

/* Paths that commands cannot read even if they are in a folder of the system (/usr/src/app), or in one that the user
 * lets commands read. */
struct hidden {
    const char *list[HIDDEN_MAX + 1]; /* ends with NULL; points to `paths` */
    char paths[HIDDEN_MAX][PATH_MAX];
    size_t n;
};

static void hide(struct hidden *hidden, const char *path)
{
    if (!path || !whit_path_is_absolute(path) || !realpath(path, hidden->paths[hidden->n])) return;
    hidden->list[hidden->n] = hidden->paths[hidden->n];
    hidden->n++;
}

/* Hides a project with the files beside it, if a folder of the system contains it. */
static void hide_project(struct hidden *hidden, const char *project)
{
    char real[PATH_MAX], folder[PATH_MAX];
    if (!project || !whit_path_is_absolute(project) || !realpath(project, real)) return;
    whit_agent_closed_folder(real, folder);
    hide(hidden, folder);
}

/* Hides the project, this program's own folders, those of the process that has started a task, and the home folder if
 * this user may write in it: users that belong to a service may have a folder of the system as their home, such as
 * /usr/sbin. */
static void hide_all(struct hidden *hidden, const char *project)
{
    char folder[PATH_MAX];
    const char *home = getenv("HOME");
    hide_project(hidden, project);
    hide_project(hidden, getenv(WHIT_TASK_PROJECT));
    hide(hidden, getenv(WHIT_TASK_STATE));
    hide(hidden, getenv(WHIT_TASK_CACHE));
    if (home && access(home, W_OK) == 0) hide(hidden, home);
    for (whit_guard_own which = 0; which < WHIT_GUARD_N_OWN; which++)
        if (whit_guard_own_folder(which, folder)) hide(hidden, folder);
}

/* Tells the person, once, that commands do not see all files of the project. */
static void tell_part(whit_runner *runner, const whit_scratch *scratch)
{
    if (!scratch->is_part || runner->was_part_said || !runner->note) return;
    runner->note(runner->user,
                 "commands and checks do not see all files of this project: left out are folders that cannot be read "
                 "or lie more than 32 levels deep, files after the first 200,000, and names with line feeds");
    runner->was_part_said = true;
}

whit_status whit_runner_run_in(whit_runner *runner, const char *copy, whit_scratch *scratch, const whit_changes *staged,
                               const char *line, uint32_t seconds, whit_sandbox_result *result, whit_error *error)
{
    whit_changes all = {0}, unsaved = {0};
    whit_status status = add_unsaved(runner, staged, &unsaved, &all, error);
    if (status == WHIT_OK) status = whit_scratch_update(scratch, runner->project, &all, error);
    whit_changes_free(&unsaved);
    whit_buf_free(&all.changes);
    if (status == WHIT_OK) tell_part(runner, scratch);
    struct hidden hidden = {.n = 0};
    const char *arguments[4], *const write[] = {scratch->tree, scratch->home, NULL};
    hide_all(&hidden, runner->project);
    /* A model may ask for less time than the settings allow, but not for more. */
    const uint32_t most = runner->config && runner->config->command_s ? runner->config->command_s : SECONDS_USUAL;
    whit_sandbox_shell(line, arguments);
    whit_sandbox_command command = {
        .arguments = arguments,
        .folder = scratch->tree,
        .home = scratch->home,
        .rules = {.read = runner->config ? runner->config->read : NULL, .write = write, .hidden = hidden.list},
        .limits = {.wall_s = seconds && seconds < most ? seconds : most},
        .is_unconfined = runner->no_sandbox,
        .cancel = runner->cancel,
    };
    if (status == WHIT_OK) status = whit_sandbox_run(&command, result, error);
    if (result->output_is_cut) whit_guard_drop_last_word(&result->output);
    whit_guard_hide_keys(&result->output); /* before whit_runner_tell() cuts it */
    /* if the command exceeded a limit of memory or disk, empty the copy, so that the next command does not exceed it,
     * too */
    if (status == WHIT_OK && *result->over) whit_scratch_empty(scratch);
    return status == WHIT_OK ? note(runner, copy, line, result, error) : status;
}

whit_status whit_runner_run(whit_runner *runner, const char *copy, const whit_changes *staged, const char *line,
                            uint32_t seconds, whit_sandbox_result *result, whit_error *error)
{
    whit_scratch scratch;
    WHIT_TRY(whit_runner_open(runner, copy, &scratch, error));
    whit_status status = whit_runner_run_in(runner, copy, &scratch, staged, line, seconds, result, error);
    whit_scratch_close(&scratch);
    return status;
}

void whit_runner_tell(const whit_sandbox_result *result, size_t n_bytes, whit_buf *out)
{
    size_t n = result->output.size_bytes, head = n, tail = 0;
    const char *text = n ? whit_chars(&result->output) : "";
    if (result->was_cancelled)
        whit_buf_append_str(out, "interrupted by the person");
    else if (*result->over)
        whit_buf_printf(out, "ended: %s; the project's copy is made again", result->over);
    else if (result->timed_out)
        whit_buf_append_str(out, "ended because it reached its time limit");
    else if (result->status < 0)
        whit_buf_printf(out, "ended by signal %d", result->signal);
    else
        whit_buf_printf(out, "exit status %d", result->status);
    whit_buf_printf(out, " after %.1f s\n", (double)result->wall_ns / 1e9);
    if (n > n_bytes) { /* the beginning shows the command, the end shows errors: keep both */
        head = whit_utf8_cut(text, n, n_bytes / 4);
        tail = n_bytes - n_bytes / 4;
        while (tail && (text[n - tail] & 0xc0) == 0x80) tail--;
    }
    whit_buf_append(out, text, head);
    if (tail) whit_buf_printf(out, "\n[%zu bytes left out]\n", n - head - tail);
    if (tail) whit_buf_append(out, text + n - tail, tail);
    if (result->output_is_cut) whit_buf_append_str(out, "\n[more was printed and dropped]\n");
    if (!result->n_refused) return;
    size_t n_refused = result->refused.size_bytes < 1500 ? result->refused.size_bytes : 1500;
    while (n_refused && result->refused.data[n_refused - 1] != '\n') n_refused--;
    whit_buf_append_str(out, "\n[the sandbox refused:\n");
    whit_buf_append(out, result->refused.data, n_refused);
    whit_buf_append_str(out, "]\n");
}
