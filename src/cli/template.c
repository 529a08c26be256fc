/* SPDX-License-Identifier: MIT
 * Implements whit template, which renders conversations through a chat template. */
#include <stdlib.h>
#include <string.h>

#include "cli/flags.h"
#include "cli/lines.h"
#include "cli/parts.h"
#include "cli/templates.h"
#include "cli/verbs.h"
#include "template/chat.h"

struct template_values {
    const char *file, *now;
    bool jsonl;
    cli_model_flags model;
};
static const struct template_values defaults;

#define AT(member) offsetof(struct template_values, member)
static const cli_option options[] = {
    {"--chat-template, --template", CLI_FILE, AT(file), "NAME|FILE",
     "The template, in place of a model's own: chatml, llama3, ... or a file."},
    {"--now", CLI_TEXT, AT(now), "TIME", "What strftime_now gives: 2026-01-02T03:04:05; the clock by default."},
    {"--jsonl", CLI_FLAG, AT(jsonl), NULL, "One JSON object a line in, one out; the only form, and the default."},
    {0},
};

struct renderer {
    whit_template *template; /* NULL: each input line contains its template */
    whit_template_options options;
};

static whit_status answer_line(void *user, const char *line, size_t n_bytes, whit_buf *out, whit_error *error)
{
    const struct renderer *renderer = user;
    return whit_template_jsonl_line(renderer->template, &renderer->options, line, n_bytes, NULL, out, error);
}

static int open_template(cli_call *call, const char *place, const char *source, size_t n_bytes,
                         whit_template **template)
{
    whit_template_error error = {0};
    whit_status status = whit_template_open(source, n_bytes, NULL, template, &error);
    if (status == WHIT_OK) return CLI_OK;
    int exit_status = cli_fail(call, CLI_REFUSED, "%s: %s", place, error.error.message);
    whit_template_error_free(&error);
    return exit_status;
}

static int open_from_model(cli_call *call, const struct template_values *values, whit_template **template)
{
    whit_model *model = NULL;
    int status = cli_open_flagged_model(call, &values->model, &model);
    if (status != CLI_OK) return status;
    const char *source = cli_model_template(model);
    if (source)
        status = open_template(call, cli_model_name(&values->model), source, strlen(source), template);
    else
        status = cli_fail(call, CLI_REFUSED, "%s: has no chat template; --chat-template NAME or FILE gives one",
                          cli_model_name(&values->model));
    whit_model_close(model);
    return status;
}

static int run_template(cli_call *call)
{
    const struct template_values *values = call->values;
    struct renderer renderer = {0};
    whit_template_time now;
    cli_text text = {0};
    int status = CLI_OK;
    if (values->now) {
        if (!whit_template_time_parse(values->now, &now))
            return cli_fail(call, CLI_USAGE, "--now takes a time such as 2026-01-02T03:04:05, not '%s'", values->now);
        renderer.options.now = &now;
    }
    if (values->file) {
        status = cli_read_template(call, values->file, &text);
        if (status == CLI_OK)
            status = open_template(call, values->file, text.data, text.size_bytes, &renderer.template);
    } else if (values->model.path) {
        status = open_from_model(call, values, &renderer.template);
    }
    if (status == CLI_OK) status = cli_each_line(call, answer_line, &renderer);
    whit_template_close(renderer.template);
    free(text.data);
    return status;
}

const cli_verb cli_template_verb = {
    "template",
    "",
    0,
    0,
    "render conversations with a chat template",
    "Reads one JSON object a line: a conversation (\"messages\", \"tools\", \"documents\", "
    "\"add_generation_prompt\", \"bos_token\", \"eos_token\", \"extra\", "
    "\"continue_final_message\"), or "
    "{\"source\", \"context\"} for a template of its own, for which no option is needed. Prints "
    "{\"text\"} or {\"error\", \"line\", \"column\"} for each.\n"
    "  whit template -m model.ndf --jsonl < conversations.jsonl",
    {{"OPTIONS", options, 0}, {"MODEL", cli_model_options, AT(model)}},
    sizeof(struct template_values),
    &defaults,
    run_template,
};
