/* SPDX-License-Identifier: MIT
 * Runs the tasks of whit agent: opens the model, in this process or at an endpoint, and the runner, runs a task, and
 * saves its conversation. */
#include "agent/folders.h"
#include "agent/light.h"
#include "base/clock.h"
#include "base/items.h"
#include "base/path.h"
#include "base/phrase.h"
#include "base/plain.h"
#include "base/status.h"
#include "cli/agent_tasks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Ends the answer that is being shown, before any other output: the view may still hold back some text, which must not
 * appear between a change and the question about it. */
static void end_view(struct cli_tasks *t)
{
    if (t->is_viewing) cli_view_end(&t->view);
    t->is_viewing = false;
}

static whit_status task_show(void *user, const whit_change *change, whit_error *error)
{
    struct cli_tasks *t = user;
    const struct agent_values *values = t->call->values;
    const size_t before = t->shown.size_bytes;
    end_view(t);
    WHIT_TRY(whit_change_show(change, &t->shown, error));
    if (!values->json) cli_agent_write_diff(t->call, whit_chars(&t->shown) + before, t->shown.size_bytes - before);
    return WHIT_OK;
}

/* Shows a hunk on stdout and, if that is not the terminal of the question, there too. Returns false if this failed. */
static bool show_hunk(void *user, const whit_hunk *hunk)
{
    struct cli_tasks *t = user;
    const struct agent_values *values = t->call->values;
    if (!values->json) cli_agent_write_diff(t->call, hunk->text, hunk->n_bytes);
    return cli_agent_is_shown(t->call, hunk->text, hunk->n_bytes);
}

static whit_status task_choose(void *user, const whit_hunks *hunks, uint8_t *taken, whit_error *error)
{
    struct cli_tasks *t = user;
    (void)error;
    end_view(t);
    for (size_t i = 0; i < hunks->n; i++)
        if (!show_hunk(user, &hunks->list[i])) return WHIT_OK; /* hunks can only be approved after all were shown */
    whit_light_choose(hunks, show_hunk, user, true, taken, &t->why);
    return WHIT_OK;
}

static whit_status task_edit(void *user, whit_changes *staged, whit_error *error)
{
    (void)user;
    return cli_agent_edit(staged, error);
}

static bool task_agreed(void *user, const char *reason, size_t n_files)
{
    struct cli_tasks *t = user;
    end_view(t);
    bool yes = cli_agent_agreed(t->call, &t->shown, reason, n_files, &t->why);
    t->shown.size_bytes = 0;
    return yes;
}

static void task_written(void *user, uint32_t turn, const whit_change *changes, size_t n)
{
    struct cli_tasks *t = user;
    (void)turn, (void)changes, (void)n;
    t->shown.size_bytes = 0;
}

static bool task_ask(void *user, const char *question, whit_buf *answer)
{
    char line[4096];
    struct cli_tasks *t = user;
    end_view(t);
    cli_flush(t->call);
    char *plain = strdup(question);
    ssize_t got =
        plain ? whit_light_read_line(plain, whit_plain_line(plain, strlen(plain)), "\n> ", line, sizeof line) : -1;
    free(plain);
    return got > 0 && whit_buf_append(answer, line, (size_t)got);
}

static void task_note(void *user, const char *line)
{
    end_view(user);
    cli_note("%s", line);
}

static void task_retry(void *user, const char *reason, uint32_t wait_ms)
{
    (void)user;
    cli_note("%s; trying again in %.1f s", reason, wait_ms / 1000.0);
}

static void note_no_tools(const char *said)
{
    cli_note("%s; the tools are described in the prompt instead, and the model calls them by JSON in its text", said);
}

/* Shows a piece of the answer on a terminal while the model generates it. */
static void task_text(void *user, const char *text, size_t n)
{
    struct cli_tasks *t = user;
    if (!t->is_viewing) t->view = cli_view_begin(t->call, true, true);
    t->has_streamed = t->is_viewing = true;
    cli_view_part(&t->view, text, n, false);
}

static int open_remote(struct cli_tasks *t)
{
    const struct agent_values *values = t->call->values;
    whit_error error;
    if (values->hides_key && !values->key_file)
        whit_buf_append(&t->key, "", 1);
    else if (whit_agent_key(values->key_file, &t->key, &error) != WHIT_OK)
        return cli_fail_error(t->call, &error);
    if (t->key.failed) return cli_fail(t->call, CLI_LIMIT, "not enough memory for a key");
    const char *socket_path = strcmp(values->url, WHIT_TASK_URL) == 0 ? getenv(WHIT_TASK_SOCKET) : NULL;
    whit_endpoint_options at = {.url = values->url,
                                .socket_path = socket_path,
                                .key = whit_chars(&t->key),
                                .cancel = t->cancel,
                                .on_retry = task_retry,
                                .check_receiver = values->found ? whit_found_server_check : NULL,
                                .receiver = values->found};
    if (whit_endpoint_open(&at, &t->endpoint, &error) != WHIT_OK) return cli_fail_error(t->call, &error);
    t->remote = (whit_remote_model){.endpoint = t->endpoint,
                                    .name = values->model,
                                    .on_text = t->on_text,
                                    .user = t->user,
                                    .on_note = note_no_tools};
    t->answering = whit_remote_as_model(&t->remote);
    return CLI_OK;
}

static int open_local(struct cli_tasks *t)
{
    const struct agent_values *values = t->call->values;
    whit_error error;
    whit_session_options wanted = cli_session_wanted(&values->session, WHIT_ACT_I8);
    whit_local_options options = {.temperature = values->temperature,
                                  .seed = values->seed >= 0 ? (uint64_t)values->seed : whit_now_ns(),
                                  .on_text = t->on_text,
                                  .user = t->user};
    int status = cli_open_model(t->call, values->local, false, &t->model);
    if (status != CLI_OK) return status;
    wanted.cancel = t->cancel;
    if (whit_session_open(t->model, &wanted, &t->session, &error) != WHIT_OK) return cli_fail_error(t->call, &error);
    cli_remark_context(whit_model_context_size(t->model), whit_session_context_size(t->session));
    if (whit_local_open(t->model, t->session, 0, &options, &t->local, &error) != WHIT_OK)
        return cli_fail_error(t->call, &error);
    t->answering = whit_local_as_model(t->local);
    return CLI_OK;
}

whit_status cli_tasks_path(const struct agent_values *values, const char *project, const char *id, char path[PATH_MAX],
                           whit_error *error)
{
    char suffix[64] = ".talk.json";
    if (id) snprintf(suffix, sizeof suffix, "-%.40s.talk.json", id);
    return whit_agent_state_path(project, values->state, "agent", suffix, path, error);
}

whit_status cli_tasks_keep(const struct cli_tasks *t, whit_error *error)
{
    return whit_agent_messages_save(&t->messages, t->kept, error);
}

/* Saves the conversation during a task. Errors are ignored: saving at the task's end reports them. */
static void task_keep(void *user)
{
    whit_error ignored;
    (void)cli_tasks_keep(user, &ignored);
}

/* Chooses and locks the file of the conversation. If another running agent in this project uses the usual file, chooses
 * a new file in the same folder; fails if it uses a file that --session, --resume or the editor's session names. */
static whit_status choose_file(struct cli_tasks *t, whit_error *error)
{
    const struct agent_values *values = t->call->values;
    char suffix[32];
    if (values->keep && snprintf(t->kept, sizeof t->kept, "%s", values->keep) >= (int)sizeof t->kept)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "--session: the path is longer than 4,095 bytes, the limit");
    if (!values->keep) WHIT_TRY(cli_tasks_path(values, t->project, t->id, t->kept, error));
    WHIT_TRY(whit_agent_messages_reserve(t->kept, values->state, &t->kept_lock, error));
    if (t->kept_lock >= 0) return WHIT_OK;
    if (values->keep || values->resume || t->id)
        return whit_fail(
            error, WHIT_ERROR_ARGUMENT,
            "%s: another agent that is still running keeps its conversation in this file; end it, or use another file "
            "(--session FILE)",
            t->kept);
    for (uint32_t i = 2; t->kept_lock < 0 && i < 10000; i++) {
        snprintf(suffix, sizeof suffix, "-%u.talk.json", i);
        WHIT_TRY(whit_agent_state_path(t->project, values->state, "agent", suffix, t->kept, error));
        if (!whit_path_exists(t->kept))
            WHIT_TRY(whit_agent_messages_reserve(t->kept, values->state, &t->kept_lock, error));
    }
    if (t->kept_lock < 0)
        return whit_fail(error, WHIT_ERROR_LIMIT,
                         "%s: the project has 10,000 kept conversations, the limit; remove old files of this kind",
                         t->kept);
    cli_note("another agent works in this project: this conversation is kept in %s (--session resumes it)", t->kept);
    return WHIT_OK;
}

/* Adds the MCP servers of the configuration to the servers that the editor names. If both have a server of the same
 * name, the editor's is used: its calls always need approval, whereas a configured server may allow calls without. The
 * configuration decides in which folder it is started: an editor names its servers for whatever folder is opened. */
static bool add_servers(struct cli_tasks *t)
{
    const char *name;
    json_t *server;
    if (!t->servers) t->servers = json_object();
    json_object_foreach((json_t *)(uintptr_t)t->config.servers, name, server)
    {
        json_t *given = json_object_get(t->servers, name), *folder = json_object_get(server, "folder");
        if (!given) continue;
        cli_note("the editor's MCP server '%.40s' takes the place of the configured one", name);
        if (folder && json_object_set(given, "folder", folder) != 0) return false;
    }
    return t->servers &&
        (!t->config.servers || json_object_update_missing(t->servers, (json_t *)(uintptr_t)t->config.servers) == 0);
}

int cli_tasks_open(struct cli_tasks *t)
{
    const struct agent_values *values = t->call->values;
    bool there = false;
    whit_error error;
    t->begun_ns = whit_now_ns();
    t->kept_lock = -1;
    t->runner = (whit_runner){.project = t->project,
                              .state_dir = values->state,
                              .config = &t->config,
                              .no_sandbox = values->no_sandbox,
                              .cancel = t->cancel};
    if (whit_agent_config_load(&t->config, t->project, &error) != WHIT_OK) return cli_fail_error(t->call, &error);
    if (!add_servers(t)) return cli_fail(t->call, CLI_LIMIT, "not enough memory for the list of MCP servers");
    if (json_object_size(t->servers) &&
        whit_mcp_open(t->servers, t->project, t->cancel, task_note, t, &t->mcp, &error) != WHIT_OK)
        return cli_fail_error(t->call, &error);
    int status = values->local ? open_local(t) : open_remote(t);
    if (status != CLI_OK) return status;
    size_t limit = t->answering.context_bytes ? t->answering.context_bytes : 400000;
    whit_status made = whit_agent_messages_begin(&t->messages, t->project, limit, &error);
    if (made == WHIT_OK) made = choose_file(t, &error);
    if (made == WHIT_OK && (values->keep || values->resume || t->id))
        made = whit_agent_messages_load(&t->messages, t->kept, &there, &error);
    if (there && made == WHIT_OK && !t->id)
        cli_note("%s: resumed after %zu messages", values->keep ? values->keep : "the last conversation",
                 json_array_size(t->messages.list) - 1);
    else if (values->resume && made == WHIT_OK)
        cli_note("there is no earlier conversation of this project: a new one begins");
    return made == WHIT_OK ? CLI_OK : cli_fail_error(t->call, &error);
}

void cli_tasks_close(struct cli_tasks *t)
{
    whit_mcp_close(t->mcp);
    json_decref(t->servers);
    whit_local_close(t->local);
    whit_session_close(t->session);
    whit_model_close(t->model);
    whit_endpoint_close(t->endpoint);
    whit_agent_messages_free(&t->messages);
    whit_agent_config_free(&t->config);
    whit_buf_free(&t->report.answer);
    whit_buf_free(&t->why);
    whit_buf_free(&t->attached);
    free(t->name);
    if (t->kept_lock >= 0) close(t->kept_lock);
    whit_buf_free(&t->shown);
    whit_buf_free(&t->key);
}

void cli_tasks_cost(const struct cli_tasks *t)
{
    const whit_agent_report *r = &t->report;
    cli_note("%u answer%s, %u call%s, %u turn%s written, %llu bytes; %s%llu tokens in (%llu of them cached), %llu out; "
             "%.1f s",
             r->n_answers, whit_plural(r->n_answers), r->n_calls, whit_plural(r->n_calls), r->n_turns,
             whit_plural(r->n_turns), (unsigned long long)r->written_bytes, r->tokens_are_guessed ? "about " : "",
             (unsigned long long)r->tokens_in, (unsigned long long)r->tokens_cached, (unsigned long long)r->tokens_out,
             (double)(whit_now_ns() - t->begun_ns) / 1e9);
}

static int print_report(struct cli_tasks *t)
{
    const struct agent_values *values = t->call->values;
    const whit_agent_report *r = &t->report;
    const char *answer = r->answer.size_bytes ? whit_chars(&r->answer) : "";
    uint64_t spent = r->tokens_in + r->tokens_out;
    if (values->json)
        cli_print_json(t->call,
                       json_pack("{s:b, s:s%, s:i, s:i, s:i, s:i, s:I, s:I, s:I, s:b, s:I, s:f}", "done", r->done,
                                 "answer", answer, r->answer.size_bytes, "answers", (int)r->n_answers, "calls",
                                 (int)r->n_calls, "turns", (int)r->n_turns, "held", (int)r->n_held, "tokens_in",
                                 (json_int_t)r->tokens_in, "tokens_cached", (json_int_t)r->tokens_cached, "tokens_out",
                                 (json_int_t)r->tokens_out, "guessed", r->tokens_are_guessed, "written_bytes",
                                 (json_int_t)r->written_bytes, "seconds", (double)(whit_now_ns() - t->begun_ns) / 1e9));
    else if (t->has_streamed)
        end_view(t);
    else if (r->done && r->answer.size_bytes)
        cli_print(t->call, "%.*s\n", (int)r->answer.size_bytes, answer);
    t->has_streamed = false;
    cli_flush(t->call);
    cli_tasks_cost(t);
    if (r->done) return CLI_OK;
    if (values->n_tokens && spent >= values->n_tokens)
        return cli_fail(t->call, CLI_LIMIT, "the task is not finished after %llu tokens (--max-cost)",
                        (unsigned long long)spent);
    return cli_fail(t->call, CLI_LIMIT, "the task is not finished after %u answers (--max-turns)", values->n_turns);
}

int cli_tasks_run(struct cli_tasks *t, const char *text, bool only_reads)
{
    const struct agent_values *values = t->call->values;
    whit_error error;
    whit_agent_options how = {.project = t->project,
                              .state_dir = values->state,
                              .task = text,
                              .n_turns_max = values->n_turns,
                              .n_tokens_max = values->n_tokens,
                              .may_write = cli_agent_may_write(values),
                              .only_reads = only_reads,
                              .runner = &t->runner,
                              .mcp = t->mcp,
                              .show = task_show,
                              .is_alone = !whit_light_has_terminal(),
                              .agreed = task_agreed,
                              .written = task_written,
                              .choose = task_choose,
                              .edit = task_edit,
                              .why = &t->why,
                              .ask = task_ask,
                              .note = task_note,
                              .keep = task_keep,
                              .cancel = t->cancel,
                              .user = t};
    t->why.size_bytes = 0;
    whit_status ran = whit_agent_run(&how, &t->answering, &t->messages, &t->report, &error);
    if (ran != WHIT_OK) end_view(t);
    int status = ran == WHIT_OK ? print_report(t) : cli_fail_error(t->call, &error);
    /* the conversation is saved even if the task has failed */
    if (cli_tasks_keep(t, &error) != WHIT_OK) return cli_fail_error(t->call, &error);
    return status;
}

int cli_agent_task(cli_call *call, const char *project)
{
    const struct agent_values *values = call->values;
    struct cli_tasks t = {.call = call, .cancel = cli_cancelled(), .user = &t, .project = project};
    if (!values->json && isatty(STDOUT_FILENO)) t.on_text = task_text;
    if (values->acp && !values->preview && !(values->url && values->local)) return cli_agent_acp(call, project);
    if (!values->url == !values->local)
        return cli_fail(call, CLI_USAGE, "give one model: -m MODEL in this process, or --url URL of a server");
    if (values->preview)
        return cli_fail(call, CLI_USAGE,
                        "--preview is for apply, undo and redo; a task shows each change before it is written");
    int status = cli_tasks_open(&t);
    if (status == CLI_OK)
        status = values->prompt ? cli_tasks_run_attached(&t, values->prompt, false) : cli_tasks_type(&t);
    cli_tasks_close(&t);
    return status;
}
