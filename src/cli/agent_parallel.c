/* SPDX-License-Identifier: MIT
 * Implements whit agent -j N, which runs several tasks at once.
 *
 * Each task is another run of this program, "whit agent -p", in a copy of the project (agent/scratch.h); all tasks use
 * one endpoint. A snapshot of hashes records the state of the copy before the task. The changes of ended tasks are
 * applied in the order of the tasks: they are checked on the project's current state by the gate (the project's
 * checks), shown, approved by the user, and written as one turn. If another task has changed one of the files
 * meanwhile, or the checks fail, the task runs once more on the project's current state, and the model is told the
 * reason. */
#include "agent/folders.h"
#include "agent/gate.h"
#include "agent/guard.h"
#include "agent/light.h"
#include "agent/scratch.h"
#include "agent/snapshot.h"
#include "agent/tools.h"
#include "base/bound_child.h"
#include "base/file.h"
#include "base/items.h"
#include "base/path.h"
#include "base/piped.h"
#include "cli/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TASKS_MAX = 1000, ARGUMENTS_MAX = 32, REASON_BYTES = 2000 };

/* ---- tasks ---------------------------------------------------------------------------------- */

struct task {
    const char *text;
    enum { TASK_WAITS, TASK_RUNS, TASK_ENDED, TASK_APPLIED, TASK_FAILED } state;
    pid_t pid;
    int exit_status;
    whit_scratch scratch;
    bool is_open; /* `scratch` is open and must be closed */
    whit_snapshot before;
    whit_buf reason; /* reason why the task must run again or has done so; empty during the first run */
};

struct parallel {
    cli_call *call;
    const char *project;
    const char *url;
    struct task *tasks;
    size_t n_tasks, n_running;
    whit_agent_config config;
    whit_runner runner;
    cli_text file;          /* content of the file with tasks, to which their texts point */
    pid_t server_pid;       /* process of whit serve with the model of -m; 0: not started */
    char server_folder[32]; /* folder of that server's socket, closed to other users; "": not created */
    char socket_path[48];
};

static void close_task(struct task *task)
{
    if (task->is_open) whit_scratch_close(&task->scratch);
    task->is_open = false;
    whit_snapshot_free(&task->before);
}

/* Copies the project's settings file into the copy, which lacks it if git ignores it: a task must run the same checks
 * as this program does afterwards. */
static whit_status copy_config(const struct parallel *p, const char *tree, whit_error *error)
{
    char to[PATH_MAX + 32];
    whit_buf text = {0};
    bool exists = false;
    snprintf(to, sizeof to, "%s/%s", tree, WHIT_AGENT_CONFIG_FILE);
    if (whit_path_exists(to)) return WHIT_OK;
    whit_status status = whit_agent_config_read(p->project, &text, &exists, error);
    *strrchr(to, '/') = 0;
    if (status == WHIT_OK && exists) status = whit_agent_make_folders(to, error);
    to[strlen(to)] = '/';
    if (status == WHIT_OK && exists) status = whit_write_file(to, whit_chars(&text), text.size_bytes, error);
    whit_buf_free(&text);
    return status;
}

/* Opens a copy of the project for a task and brings it up to date. A task that runs again uses the same folder. */
static whit_status open_copy(struct parallel *p, struct task *task, whit_error *error)
{
    char name[32];
    const whit_scratch_wait wait = {.cancel = cli_cancelled()};
    snprintf(name, sizeof name, "task-%zu", (size_t)(task - p->tasks) + 1);
    close_task(task);
    WHIT_TRY(whit_scratch_open(p->project, NULL, name, &wait, &task->scratch, error));
    task->is_open = true;
    whit_scratch_empty(&task->scratch);
    WHIT_TRY(whit_scratch_update(&task->scratch, p->project, NULL, error));
    WHIT_TRY(copy_config(p, task->scratch.tree, error));
    return whit_snapshot_take(&task->before, task->scratch.tree, error);
}

/* In a forked process: executes this program with these arguments. It reads the descriptor `in`; its output goes to the
 * descriptor `log`. */
static void become(char *const arguments[], int in, int log)
{
    setsid(); /* without a terminal the program asks no questions */
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    if (in >= 0 && dup2(in, 0) >= 0 && dup2(log, 1) >= 0 && dup2(log, 2) >= 0) execv("/proc/self/exe", arguments);
    _exit(127);
}

/* Lets this process find the server at a port. It finds the server itself, instead of being given the address, so that
 * it asks no server of another user there. */
static void name_port(unsigned port)
{
    char text[16];
    snprintf(text, sizeof text, "%u", port);
    setenv("WHIT_PORT", text, 1);
    setenv("OLLAMA_HOST", text, 1);
}

/* Returns a descriptor from which a process can read a task, or -1 with errno. Other users see the arguments of a
 * process, so the text is not one of them. */
static int open_prompt(const struct task *task)
{
    whit_buf prompt = {0};
    whit_buf_append_str(&prompt, task->text);
    if (task->reason.size_bytes)
        whit_buf_printf(&prompt, "\n\nThis task was done once before, and its changes could not be merged: %.*s",
                        (int)task->reason.size_bytes, whit_chars(&task->reason));
    const int fd = prompt.failed ? -1 : memfd_create("task", MFD_CLOEXEC);
    const bool ok = fd >= 0 && whit_write_all(fd, prompt.data, prompt.size_bytes) && lseek(fd, 0, SEEK_SET) == 0;
    whit_buf_free(&prompt);
    if (ok || fd < 0) return fd;
    close(fd);
    return -1;
}

static whit_status start_task(struct parallel *p, struct task *task, whit_error *error)
{
    const struct agent_values *values = p->call->values;
    char log[PATH_MAX + 32], state[PATH_MAX + 32], cache[PATH_MAX + 32], turns[16], tokens[16];
    const char *arguments[ARGUMENTS_MAX] = {"whit", "agent", "--allow", "write"};
    size_t n = 4;
    const whit_found_server *found = values->local ? NULL : values->found;
    WHIT_TRY(open_copy(p, task, error));
    snprintf(log, sizeof log, "%s/task.log", task->scratch.folder);
    snprintf(state, sizeof state, "%s/state", task->scratch.folder);
    snprintf(cache, sizeof cache, "%s/cache", task->scratch.folder);
    snprintf(turns, sizeof turns, "%u", values->n_turns);
    snprintf(tokens, sizeof tokens, "%u", values->n_tokens);
    const struct {
        const char *option, *value;
    } more[] = {{"--url", found ? NULL : p->url}, {"--project", task->scratch.tree},
                {"--max-turns", turns},           {"--max-cost", values->n_tokens ? tokens : NULL},
                {"--model", values->model},       {"--key-file", p->server_pid ? NULL : values->key_file}};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        if (more[i].value) arguments[n++] = more[i].option, arguments[n++] = more[i].value;
    if (values->no_sandbox) arguments[n++] = "--no-sandbox";
    arguments[n++] = "-p";
    arguments[n++] = "-";
    const int prompt = open_prompt(task);
    const int fd = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    cli_flush(p->call);
    task->pid = fd >= 0 && prompt >= 0 ? whit_fork_bound(SIGTERM) : -1;
    if (task->pid == 0) {
        if (values->hides_key || p->server_pid) unsetenv("WHIT_API_KEY");
        if (p->server_pid) setenv(WHIT_TASK_SOCKET, p->socket_path, 1);
        if (found) name_port(found->port);
        /* The copy is in the usual cache folder, and an agent refuses to write into folders of its own files, so the
         * task gets other folders. */
        char folder[PATH_MAX];
        setenv(WHIT_TASK_PROJECT, p->project, 1);
        if (whit_guard_own_folder(WHIT_GUARD_OWN_STATE, folder)) setenv(WHIT_TASK_STATE, folder, 1);
        if (whit_guard_own_folder(WHIT_GUARD_OWN_CACHE, folder)) setenv(WHIT_TASK_CACHE, folder, 1);
        setenv("XDG_CACHE_HOME", cache, 1);
        setenv("XDG_STATE_HOME", state, 1);
        become((char *const *)arguments, prompt, fd);
    }
    const whit_status status = task->pid > 0 ? WHIT_OK : whit_fail_errno(error, log, "start the process of a task");
    if (fd >= 0) close(fd);
    if (prompt >= 0) close(prompt);
    WHIT_TRY(status);
    task->state = TASK_RUNS;
    p->n_running++;
    return WHIT_OK;
}

/* Prints the last line of the output of a failed task. */
static void note_failure(const struct parallel *p, const struct task *task)
{
    char path[PATH_MAX + 32];
    whit_buf text = {0};
    whit_error ignored;
    snprintf(path, sizeof path, "%s/task.log", task->scratch.folder);
    const char *line = "its process printed nothing";
    if (whit_read_file(path, 1 << 20, &text, &ignored) == WHIT_OK && whit_buf_append(&text, "", 1)) {
        char *at = WHIT_ITEMS(char, &text);
        size_t n = strlen(at);
        while (n && at[n - 1] == '\n') at[--n] = 0;
        line = strrchr(at, '\n') ? strrchr(at, '\n') + 1 : at;
    }
    cli_note("task %zu failed: %s", (size_t)(task - p->tasks) + 1, line);
    whit_buf_free(&text);
}

/* ---- applying changes ----------------------------------------------------------------------- */

/* Makes a task run again, or marks it as failed if it has run twice. */
static void retry_task(struct parallel *p, struct task *task, const char *reason)
{
    const size_t number = (size_t)(task - p->tasks) + 1;
    const bool is_second = task->reason.size_bytes > 0;
    cli_note("task %zu: %s; %s", number, reason, is_second ? "the task is given up" : "the task is tried again");
    task->state = is_second || !whit_buf_append_str(&task->reason, reason) ? TASK_FAILED : TASK_WAITS;
}

/* Context of may_check: the changes that a check would run on. */
struct checked {
    const struct parallel *parallel;
    const whit_changes *set;
    bool is_refused; /* the user has refused to run a check */
};

/* Returns whether a check may run. In a sandbox it always may; without a sandbox only if the user agrees at a terminal,
 * which has shown the changes on which the check would run. */
static bool may_check(void *user, const char *line)
{
    struct checked *checked = user;
    cli_call *call = checked->parallel->call;
    whit_buf shown = {0}, reason = {0};
    whit_error ignored;
    if (!checked->parallel->runner.no_sandbox) return true;
    const bool is_agreed = whit_light_has_terminal() &&
        cli_agent_show_all(call, checked->set, &shown, &ignored) == WHIT_OK &&
        whit_tool_reason(&reason, "outside the sandbox this check would run: ", line) &&
        cli_agent_agreed(call, &shown, whit_chars(&reason), 0, NULL);
    whit_buf_free(&shown);
    whit_buf_free(&reason);
    checked->is_refused |= !is_agreed;
    return is_agreed;
}

static void show_note(void *user, const char *line)
{
    (void)user;
    cli_note("%s", line);
}

/* Checks the changes of an ended task on the project and writes them. On a conflict or a failed check the task may run
 * again. */
static void apply_task(struct parallel *p, struct task *task)
{
    const size_t number = (size_t)(task - p->tasks) + 1;
    whit_changes set = {0};
    whit_buf why = {0};
    whit_error error;
    char conflict[PATH_MAX];
    bool passed = true;
    struct checked checked = {.parallel = p, .set = &set};
    whit_status status = whit_snapshot_stage(&task->before, p->project, &set, conflict, &error);
    const size_t n = whit_changes_count(&set);
    if (status == WHIT_OK && n && !conflict[0])
        status = whit_gate_pass(&p->runner, &set, may_check, &checked, &passed, &why, &error);
    if (status != WHIT_OK) {
        task->state = TASK_FAILED;
        cli_note("task %zu: %s", number, error.message);
    } else if (conflict[0]) {
        char reason[PATH_MAX + 64];
        snprintf(reason, sizeof reason, "another task has changed %s", conflict);
        retry_task(p, task, reason);
    } else if (checked.is_refused) {
        task->state = TASK_FAILED;
        cli_note("task %zu: a check outside the sandbox was not agreed to: nothing is written", number);
    } else if (!passed) {
        char reason[REASON_BYTES];
        whit_guard_hide_keys(&why);
        snprintf(reason, sizeof reason, "with the other tasks' changes the checks fail: %.*s",
                 (int)(why.size_bytes < REASON_BYTES - 100 ? why.size_bytes : REASON_BYTES - 100),
                 why.size_bytes ? whit_chars(&why) : "");
        retry_task(p, task, reason);
    } else {
        const bool is_written = !n || cli_agent_write(p->call, &set, p->project, task->text) == CLI_OK;
        if (n && is_written) whit_gate_written(&p->runner);
        task->state = is_written ? TASK_APPLIED : TASK_FAILED;
        if (is_written) cli_note("task %zu of %zu is done%s", number, p->n_tasks, n ? "" : ": it changed nothing");
    }
    whit_buf_free(&why);
    whit_changes_free(&set);
    if (task->state != TASK_WAITS) close_task(task);
}

/* ---- running -------------------------------------------------------------------------------- */

static void end_child(pid_t pid)
{
    if (pid <= 0) return;
    kill(pid, SIGTERM);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
    }
}

/* Waits until any child process ends, and records the end if it was a task. */
static void wait_for_task(struct parallel *p)
{
    int how;
    const pid_t pid = waitpid(-1, &how, 0);
    for (size_t i = 0; pid > 0 && i < p->n_tasks; i++) {
        struct task *task = &p->tasks[i];
        if (task->state != TASK_RUNS || task->pid != pid) continue;
        p->n_running--;
        const bool is_good = WIFEXITED(how) && WEXITSTATUS(how) == CLI_OK;
        task->state = is_good ? TASK_ENDED : TASK_FAILED;
        if (!is_good) {
            note_failure(p, task);
            close_task(task);
        }
    }
}

/* Runs all tasks, at most n_jobs at once, and applies their changes in the order of the tasks. Returns an exit
 * status. */
static int run_tasks(struct parallel *p)
{
    const struct agent_values *values = p->call->values;
    whit_error error;
    size_t at = 0; /* all tasks before this index are applied or failed */
    while (at < p->n_tasks && !*cli_cancelled()) {
        for (size_t i = at; i < p->n_tasks && p->n_running < values->n_jobs; i++) {
            if (p->tasks[i].state != TASK_WAITS || start_task(p, &p->tasks[i], &error) == WHIT_OK) continue;
            p->tasks[i].state = TASK_FAILED;
            cli_note("task %zu: %s", i + 1, error.message);
            close_task(&p->tasks[i]);
        }
        if (p->tasks[at].state == TASK_ENDED)
            apply_task(p, &p->tasks[at]);
        else if (p->tasks[at].state >= TASK_APPLIED)
            at++;
        else
            wait_for_task(p);
    }
    size_t n_failed = 0;
    for (size_t i = 0; i < p->n_tasks; i++) n_failed += p->tasks[i].state != TASK_APPLIED;
    if (*cli_cancelled())
        return cli_fail(p->call, CLI_INTERRUPTED, "%zu of %zu tasks are not done", n_failed, p->n_tasks);
    return n_failed ? cli_fail(p->call, CLI_FAILED, "%zu of %zu tasks are not done", n_failed, p->n_tasks) : CLI_OK;
}

/* ---- opening -------------------------------------------------------------------------------- */

static int add_task(struct parallel *p, const char *text)
{
    if (p->n_tasks == TASKS_MAX) return cli_fail(p->call, CLI_LIMIT, "at most %d tasks can be given", TASKS_MAX);
    p->tasks[p->n_tasks++].text = text;
    return CLI_OK;
}

/* Reads the tasks: the text of -p, if given, and those in the operands. If there is one operand and it is a readable
 * file, each of its lines is a task, except empty lines and lines that begin with '#'. Otherwise each operand is a
 * task; a single operand of one word is refused. */
static int read_tasks(struct parallel *p)
{
    cli_call *call = p->call;
    const struct agent_values *values = call->values;
    int status = CLI_OK;
    p->tasks = calloc(TASKS_MAX, sizeof *p->tasks);
    if (!p->tasks) return cli_fail(call, CLI_LIMIT, "not enough memory for the list of tasks");
    if (values->prompt) status = add_task(p, values->prompt);
    const bool is_file = call->n_operands == 1 && access(call->operands[0], R_OK) == 0;
    if (call->n_operands == 1 && !is_file && !strpbrk(call->operands[0], " \t\n"))
        return cli_fail(call, CLI_USAGE, "%s: cannot be read; as one task for the model it would be -p %s",
                        call->operands[0], call->operands[0]);
    for (size_t i = 0; status == CLI_OK && !is_file && i < call->n_operands; i++)
        status = add_task(p, call->operands[i]);
    if (status == CLI_OK && is_file) status = cli_read_text(call, call->operands[0], &p->file);
    char *rest = is_file ? p->file.data : NULL;
    for (char *line; status == CLI_OK && (line = strsep(&rest, "\n"));) {
        line += strspn(line, " \t\r");
        if (*line && *line != '#') status = add_task(p, line);
    }
    if (status == CLI_OK && !p->n_tasks)
        status = cli_fail(call, CLI_USAGE,
                          "no tasks given: whit agent -j 4 FILE (one task a line), or one argument for each task");
    return status;
}

/* Removes the variables that set options of whit serve, such as the key and the log with texts of a server that the
 * user has set up: the server of the tasks has only the options that it is given. */
static void clear_serve_options(void)
{
    static const char prefix[] = "WHIT_", kept[] = "WHIT_CPU=";
    char name[128];
    for (char *const *variable = whit_own_variables(); *variable;) {
        const size_t n = strcspn(*variable, "=");
        const bool is_option = strncmp(*variable, prefix, sizeof prefix - 1) == 0 &&
            strncmp(*variable, kept, sizeof kept - 1) != 0 && n < sizeof name;
        snprintf(name, sizeof name, "%.*s", (int)n, *variable);
        if (!is_option || unsetenv(name) != 0) variable++;
    }
}

/* Waits until the server listens at its socket. Otherwise returns false, with its last line. */
static bool wait_for_server(FILE *said, const char *socket_path, char *line, int line_bytes)
{
    while (said && fgets(line, line_bytes, said)) {
        line[strcspn(line, "\n")] = 0;
        if (strstr(line, socket_path)) return true;
    }
    return false;
}

/* Starts whit serve with the model of -m for all tasks, so that they share prefixes and one queue. Sets p->url. The
 * server listens at a socket in a folder of its own: no other user can ask it, or take its place when it ends. */
static int start_server(struct parallel *p)
{
    const struct agent_values *values = p->call->values;
    char jobs[16], n_ctx[16];
    int ends[2];
    snprintf(jobs, sizeof jobs, "%u", values->n_jobs);
    snprintf(n_ctx, sizeof n_ctx, "%u", values->session.n_ctx);
    snprintf(p->server_folder, sizeof p->server_folder, "/tmp/whit-XXXXXX");
    if (!mkdtemp(p->server_folder)) {
        p->server_folder[0] = 0;
        return cli_fail(p->call, CLI_IO, "the model's server: a folder in /tmp: %s", strerror(errno));
    }
    snprintf(p->socket_path, sizeof p->socket_path, "%s/model", p->server_folder);
    const char *arguments[] = {"whit",        "serve",    "-m",
                               values->local, "--socket", p->socket_path,
                               "--parallel",  jobs,       values->session.n_ctx ? "-c" : NULL,
                               n_ctx,         NULL};
    if (pipe2(ends, O_CLOEXEC) != 0) return cli_fail(p->call, CLI_IO, "the model's server: %s", strerror(errno));
    cli_flush(p->call);
    p->server_pid = whit_fork_bound(SIGTERM);
    if (p->server_pid == 0) {
        clear_serve_options();
        become((char *const *)arguments, open("/dev/null", O_RDONLY | O_CLOEXEC), ends[1]);
    }
    close(ends[1]);
    FILE *said = p->server_pid > 0 ? fdopen(ends[0], "r") : NULL;
    char line[512] = "its process could not be started";
    if (!wait_for_server(said, p->socket_path, line, sizeof line)) {
        if (said) fclose(said);
        return cli_fail(p->call, CLI_FAILED, "the model's server did not start: %s", line);
    }
    /* The read end is not closed before this program ends, because the server may write more lines. */
    p->url = WHIT_TASK_URL;
    return CLI_OK;
}

int cli_agent_parallel(cli_call *call, const char *project)
{
    const struct agent_values *values = call->values;
    struct parallel p = {.call = call, .project = project, .url = values->url};
    whit_error error;
    if (values->keep || values->resume || values->acp || values->preview)
        return cli_fail(call, CLI_USAGE,
                        "-j cannot be combined with --session, --resume, --acp or --preview: leave them out");
    if (!values->url == !values->local)
        return cli_fail(call, CLI_USAGE, "give one model: -m MODEL on this machine, or --url URL of a server");
    int status = read_tasks(&p);
    whit_buf key = {0}; /* only read so that the guard knows the key, and keeps files with it out of the copies */
    if (status == CLI_OK && values->key_file && whit_agent_key(values->key_file, &key, &error) != WHIT_OK)
        status = cli_fail_error(call, &error);
    whit_buf_free(&key);
    p.runner = (whit_runner){.project = project,
                             .state_dir = values->state,
                             .config = &p.config,
                             .no_sandbox = values->no_sandbox,
                             .cancel = cli_cancelled(),
                             .note = show_note};
    if (status == CLI_OK && whit_agent_config_load(&p.config, project, &error) != WHIT_OK)
        status = cli_fail_error(call, &error);
    const uint32_t recovered = status == CLI_OK ? whit_turns_recover(project, values->state) : 0;
    if (recovered) cli_note(WHIT_TURNS_RECOVERED, recovered);
    if (status == CLI_OK && values->local) status = start_server(&p);
    if (status == CLI_OK) status = run_tasks(&p);
    for (size_t i = 0; p.tasks && i < p.n_tasks; i++) {
        if (p.tasks[i].state == TASK_RUNS) end_child(p.tasks[i].pid);
        close_task(&p.tasks[i]);
        whit_buf_free(&p.tasks[i].reason);
    }
    end_child(p.server_pid);
    if (p.socket_path[0]) unlink(p.socket_path); /* left there if the server was killed */
    if (p.server_folder[0]) rmdir(p.server_folder);
    whit_agent_config_free(&p.config);
    free(p.tasks);
    free(p.file.data);
    return status;
}
