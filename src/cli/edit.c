/* SPDX-License-Identifier: MIT
 * Implements whit edit, which starts the editor. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "assistant/panel_agent.h"
#include "assistant/suggester.h"
#include "base/path.h"
#include "cli/names.h"
#include "cli/verbs.h"
#include "editor/editor.h"
#include "editor/terminal.h"

struct edit_values {
    const char *config, *model, *url, *name, *key_file;
    const char *line;
    bool read_only, no_journal, list_keys, beside, below, tabs, compared;
};
static const struct edit_values defaults;
static const cli_option options[] = {
    {"--config", CLI_FILE, offsetof(struct edit_values, config), "FILE",
     "Read keys and settings from FILE; by default $XDG_CONFIG_HOME/whit/edit.conf or ~/.config/whit/edit.conf."},
    {"-m", CLI_FILE, offsetof(struct edit_values, model), "MODEL",
     "A model that answers the agent's tasks in this process, and suggests what to type where it has fill-in tokens: a "
     "file or a pulled name.",
     0, 0},
    {"--url", CLI_TEXT, offsetof(struct edit_values, url), "URL",
     "An OpenAI-compatible endpoint in place of -m, such as http://127.0.0.1:8080/v1.", 0, 0},
    {"--model", CLI_TEXT, offsetof(struct edit_values, name), "NAME", "The model's name at the endpoint.", 0, 0},
    {"--key-file", CLI_FILE, offsetof(struct edit_values, key_file), "FILE",
     "A file of mode 0600 with the endpoint's key; $WHIT_API_KEY by default.", 0, 0},
    {"-O", CLI_FLAG, offsetof(struct edit_values, beside), NULL, "Show the files side by side."},
    {"-o", CLI_FLAG, offsetof(struct edit_values, below), NULL, "Show the files one below the other."},
    {"-p", CLI_FLAG, offsetof(struct edit_values, tabs), NULL, "Show the files one at a time, with tabs: the default."},
    {"-d", CLI_FLAG, offsetof(struct edit_values, compared), NULL,
     "Compare two files side by side: the margins show what differs, F7 goes to the next place."},
    {"-c", CLI_TEXT, offsetof(struct edit_values, line), "COMMAND",
     "Begin with a line of vi's ':', such as '%s/a/b/g | w' or 'make'.", 0, 0},
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

static bool is_line(const char *operand)
{
    return operand[0] == '+' && operand[1] && !operand[1 + strspn(operand + 1, "0123456789")];
}

/* Converts "+LINE FILE", the form in which programs start an editor, to FILE:LINE, unless a file is called "+LINE". The
 * converted operands point into *texts, which the caller frees when the operands are no longer used. */
static int take_lines(cli_call *call, char **texts)
{
    size_t n = 0, n_bytes = 1;
    for (size_t i = 0; i < call->n_operands; i++) n_bytes += strlen(call->operands[i]) + 1;
    char *at = *texts = malloc(n_bytes);
    if (!at) return cli_fail(call, CLI_LIMIT, "not enough memory for the names of the files");
    for (size_t i = 0; i < call->n_operands; i++) {
        const char *line = call->operands[i];
        if (i + 1 < call->n_operands && is_line(line) && !whit_path_exists(line)) {
            const char *file = call->operands[++i];
            if (!strcmp(file, "-"))
                return cli_fail(call, CLI_USAGE, "%s: only a file can be opened at a line, not stdin", line);
            call->operands[n++] = at;
            /* "FILE:LINE" is not longer than "+LINE" and "FILE" together */
            at = stpcpy(stpcpy(stpcpy(at, file), ":"), line + 1) + 1;
        } else {
            call->operands[n++] = line;
        }
    }
    call->n_operands = n;
    return CLI_OK;
}

static int edit(cli_call *call)
{
    const struct edit_values *values = call->values;
    whit_edit_options wanted = {.files = call->operands,
                                .n_files = call->n_operands,
                                .config_path = values->config,
                                .read_only = values->read_only,
                                .no_journal = values->no_journal,
                                .arrangement = values->compared ? WHIT_ARRANGE_COMPARED
                                    : values->beside            ? WHIT_ARRANGE_BESIDE
                                    : values->below             ? WHIT_ARRANGE_BELOW
                                                                : WHIT_ARRANGE_TABS,
                                .line = values->line,
                                .stop = cli_cancelled()};
    const whit_assistant_options assistant = {{values->model, values->url, values->name, values->key_file},
                                              cli_find_model};
    whit_panel_agent *agent;
    bool stopped = false;
    whit_error error;
    if (values->model && values->url)
        return cli_fail(call, CLI_USAGE, "give one model: -m MODEL in this process, or --url URL of a server");
    if (whit_panel_agent_open(&assistant, &agent, &error) != WHIT_OK) return cli_fail_error(call, &error);
    wanted.panel = whit_panel_agent_panel(agent);
    whit_model_suggester *suggester = NULL;
    whit_status status = whit_model_suggester_open(&assistant, &suggester, &error);
    if (suggester) wanted.suggester = whit_model_suggester_callbacks(suggester);
    if (status == WHIT_OK) status = whit_edit_run(&wanted, &stopped, &error);
    whit_model_suggester_close(suggester);
    whit_panel_agent_close(agent);
    if (status != WHIT_OK) return cli_fail_error(call, &error);
    return stopped ? CLI_INTERRUPTED : CLI_OK;
}

static int run_edit(cli_call *call)
{
    const struct edit_values *values = call->values;
    char *texts = NULL;
    if (values->list_keys) return list_keys(call);
    /* The usual settings file may be missing, but a file named by the option must exist. */
    if (values->config && access(values->config, R_OK) != 0)
        return cli_fail(call, CLI_IO, "%s: cannot open: %s", values->config, strerror(errno));
    int status = take_lines(call, &texts);
    if (status == CLI_OK) status = edit(call);
    free(texts);
    return status;
}

const cli_verb cli_edit_verb = {
    "edit",
    "[FILE[:LINE]]...",
    0,
    1000,
    "edit text in the terminal",
    "Opens every FILE in a buffer of its own, at LINE where one is given, also as +LINE FILE; - is what comes "
    "through a pipe. F1 shows all commands and keys, Ctrl-S saves, Ctrl-Q quits and asks for everything that is not "
    "saved.\n"
    "What is typed is kept in a journal under $XDG_STATE_HOME/whit/edit or ~/.local/state/whit/edit from the moment "
    "it is typed, and offered at the next start if the editor did not end as it should; text without a file name is "
    "offered by whit edit without a FILE. docs/use/editor.md says more.\n"
    "  whit edit main.c:120 README.md\n"
    "  whit edit +120 main.c\n"
    "  git diff | whit edit -\n"
    "  EDITOR='whit edit' git commit\n",
    {{"OPTIONS", options, 0}},
    sizeof(struct edit_values),
    &defaults,
    run_edit,
};
