/* SPDX-License-Identifier: MIT
 * Implements whit agent --acp: provides the models and conversations for the sessions of an editor (agent/acp.h). */
#include <unistd.h>

#include "agent/acp.h"
#include "base/items.h"
#include "cli/agent_tasks.h"

struct hosted {
    cli_call *call;
    struct cli_tasks tasks;
    whit_found_server found; /* the server that was found, if `finds` */
    const char *wanted;      /* the name of --model */
    bool finds;              /* neither --url nor -m is given */
};

/* Puts the address of the server that was found into the options if neither --url nor -m is given. Each session finds
 * it anew, since another user's server may have taken its place. Errors: argument (no server answers). */
static whit_status find_server(void *user, whit_error *error)
{
    struct hosted *h = user;
    struct agent_values *values = h->call->values;
    if (!h->finds) return WHIT_OK;
    whit_found_server_free(&h->found);
    h->found = (whit_found_server){.url = NULL};
    values->url = NULL;
    values->model = h->wanted; /* the name of the server that was found before is freed */
    values->found = NULL;
    WHIT_TRY(whit_find_server(h->wanted, &h->found, error));
    cli_print_notes(whit_chars(&h->found.notes), h->found.notes.size_bytes);
    values->url = h->found.url;
    values->model = h->found.name;
    values->hides_key = h->found.hides_key;
    values->found = &h->found;
    return WHIT_OK;
}

static bool open_tasks(void *user, const whit_acp_wanted *wanted, whit_acp_session *session)
{
    struct hosted *h = user;
    struct cli_tasks *tasks = &h->tasks;
    *tasks = (struct cli_tasks){.call = h->call,
                                .cancel = wanted->cancel,
                                .on_text = wanted->on_text,
                                .user = wanted->user,
                                .project = wanted->folder,
                                .id = wanted->id,
                                .servers = wanted->servers};
    *session = (whit_acp_session){&tasks->runner, NULL, &tasks->answering, &tasks->messages, &tasks->report};
    if (cli_tasks_open(tasks) != CLI_OK) return false;
    session->mcp = tasks->mcp;
    return true;
}

static void close_tasks(void *user)
{
    struct hosted *h = user;
    cli_tasks_close(&h->tasks);
}

static whit_status keep_tasks(void *user, whit_error *error)
{
    const struct hosted *h = user;
    return cli_tasks_keep(&h->tasks, error);
}

static whit_status write_path(void *user, const char *folder, const char *id, char path[PATH_MAX], whit_error *error)
{
    const struct hosted *h = user;
    return cli_tasks_path(h->call->values, folder, id, path, error);
}

int cli_agent_acp(cli_call *call, const char *project)
{
    const struct agent_values *values = call->values;
    struct hosted hosted = {.call = call, .wanted = values->model, .finds = !values->url && !values->local};
    const whit_acp_host host = {.project = project,
                                .state_dir = values->state,
                                .has_file = values->keep || values->resume,
                                .may_write = cli_agent_may_write(values),
                                .n_turns_max = values->n_turns,
                                .n_tokens_max = values->n_tokens,
                                .in = STDIN_FILENO,
                                .out = STDOUT_FILENO,
                                .stop = cli_cancelled(),
                                .find_server = find_server,
                                .open = open_tasks,
                                .close = close_tasks,
                                .keep = keep_tasks,
                                .path = write_path,
                                .user = &hosted};
    whit_error error;
    const whit_status status = whit_acp_serve(&host, &error);
    whit_found_server_free(&hosted.found);
    if (status != WHIT_OK) return cli_fail_error(call, &error);
    return *cli_cancelled() ? CLI_INTERRUPTED : CLI_OK;
}
