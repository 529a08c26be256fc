/* SPDX-License-Identifier: MIT
 * whit edit: the editor. */
#include <string.h>

#include "cli/verbs.h"
#include "cli/edit_agent.h"
#include "cli/edit_suggest.h"
#include "editor/editor.h"
#include "editor/terminal.h"

struct edit_values {
    const char *config, *model, *url, *name, *key_file;
    bool read_only, no_journal, list_keys;
};
static const struct edit_values defaults;
static const cli_option options[] = {
    {"--config", CLI_FILE, offsetof(struct edit_values, config), "FILE",
     "Read keys and settings from FILE; default $XDG_CONFIG_HOME/whit/edit.conf or ~/.config/whit/edit.conf."},
    {"-m", CLI_FILE, offsetof(struct edit_values, model), "MODEL",
     "A model that answers the agent's tasks in this process, and suggests what to type where it has fill-in tokens: a "
     "file or a pulled name.",
     0, 0},
    {"--url", CLI_TEXT, offsetof(struct edit_values, url), "URL",
     "The OpenAI-compatible endpoint that does, such as http://127.0.0.1:8080/v1.", 0, 0},
    {"--model", CLI_TEXT, offsetof(struct edit_values, name), "NAME", "The model's name at the endpoint.", 0, 0},
    {"--key-file", CLI_FILE, offsetof(struct edit_values, key_file), "FILE",
     "A file of mode 0600 with the endpoint's key; $WHIT_API_KEY by default.", 0, 0},
    {"-R, --read-only", CLI_FLAG, offsetof(struct edit_values, read_only), NULL, "Change nothing."},
    {"--no-journal", CLI_FLAG, offsetof(struct edit_values, no_journal), NULL,
     "Keep nothing of what is not saved, and no undo across runs."},
    {"--list-keys", CLI_FLAG, offsetof(struct edit_values, list_keys), NULL,
     "Print every command with its keys, and end."},
    {0},
};

static int list_keys(cli_call *call)
{
    const char *name, *keys, *help;
    cli_print(call, "| Command | Keys | What it does |\n|---|---|---|\n");
    for (size_t i = 0; whit_editor_command(i, &name, &keys, &help); i++) {
        cli_print(call, "| `%s` | ", name);
        for (const char *at = keys; *at; at++) cli_print(call, *at == '|' ? "\\%c" : "%c", *at);
        cli_print(call, " | %s |\n", help);
    }
    return CLI_OK;
}

static int run(cli_call *call)
{
    const struct edit_values *values = call->values;
    if (values->list_keys) return list_keys(call);
    whit_edit_options wanted = {.files = call->operands,
                                .n_files = call->n_operands,
                                .config_path = values->config,
                                .read_only = values->read_only,
                                .no_journal = values->no_journal,
                                .stop = cli_cancelled()};
    const struct cli_edit_wish wish = {values->model, values->url, values->name, values->key_file};
    struct cli_edit_agent *agent;
    bool stopped = false;
    whit_error error;
    if (values->model && values->url)
        return cli_fail(call, CLI_USAGE, "which model? either -m, in this process, or --url, where it is served");
    if (cli_edit_agent_open(&wish, &agent, &error) != WHIT_OK) return cli_fail_error(call, &error);
    wanted.panel = cli_edit_agent_panel(agent);
    struct cli_edit_suggester *suggester = NULL;
    whit_status status = cli_edit_suggester_open(&wish, &suggester, &error);
    if (suggester) wanted.suggester = cli_edit_suggester_callbacks(suggester);
    if (status == WHIT_OK) status = whit_edit_run(&wanted, &stopped, &error);
    cli_edit_suggester_close(suggester);
    cli_edit_agent_close(agent);
    if (status != WHIT_OK) return cli_fail_error(call, &error);
    return stopped ? CLI_INTERRUPTED : CLI_OK;
}

const cli_verb cli_edit_verb = {
    "edit",
    "[FILE[:LINE]]...",
    0,
    1000,
    "edit text in the terminal",
    "Opens every FILE in a buffer of its own, at LINE where one is given; - is what comes through a pipe. F1 shows "
    "all commands and keys, Ctrl-S saves, Ctrl-Q quits and asks for everything that is not saved.\n"
    "What is typed into a file is kept in a journal under $XDG_STATE_HOME/whit/edit or ~/.local/state/whit/edit from "
    "the moment it is typed, and offered at the next start if the editor did not end as it should. docs/editor.md says "
    "more.\n"
    "  whit edit main.c:120 README.md\n"
    "  git diff | whit edit -\n"
    "  EDITOR='whit edit' git commit\n",
    {{"OPTIONS", options, 0}},
    sizeof(struct edit_values),
    &defaults,
    run,
};
