/* SPDX-License-Identifier: MIT
 * whit tokenize: text in, token ids out. */
#include <stdlib.h>

#include "cli/flags.h"
#include "cli/verbs.h"

struct tokenize_values {
    bool no_special, no_parse_special, json;
    const char *file;
    cli_model_flags model;
};
static const struct tokenize_values defaults = {.file = "-"};

#define AT(member) offsetof(struct tokenize_values, member)
static const cli_option options[] = {
    {"-f, --file", CLI_FILE, AT(file), "FILE", "Read the text from a file; stdin by default."},
    {"--no-special", CLI_FLAG, AT(no_special), NULL,
     "Put no beginning-of-text token and the like around the text."},
    {"--no-parse-special", CLI_FLAG, AT(no_parse_special), NULL,
     "Take special tokens written in the text as plain text."},
    {"--json", CLI_FLAG, AT(json), NULL, "Print one JSON object, {\"ids\": [...]}."},
    {0},
};

static int run(cli_call *call)
{
    const struct tokenize_values *values = call->values;
    whit_model *model = NULL;
    cli_text text = {0};
    int32_t *ids = NULL;
    size_t n_ids = 0;
    int status = cli_open_model(call, values->model.path, values->model.no_cache, &model);
    if (status == CLI_OK) status = cli_read_text(call, values->file, &text);
    if (status == CLI_OK)
        status = cli_tokenize(call, model, text.data, text.size_bytes, !values->no_special,
                              !values->no_parse_special, &ids, &n_ids);
    if (status == CLI_OK && values->json) {
        json_t *list = json_array();
        for (size_t i = 0; i < n_ids; i++) json_array_append_new(list, json_integer(ids[i]));
        cli_print_json(call, json_pack("{s:o}", "ids", list));
    } else if (status == CLI_OK) {
        for (size_t i = 0; i < n_ids; i++) cli_print(call, i ? " %d" : "%d", ids[i]);
        cli_print(call, "\n");
    }
    whit_model_close(model);
    free(text.data);
    free(ids);
    return status;
}

const cli_verb cli_tokenize_verb = {
    "tokenize",
    "",
    0,
    0,
    "turn text into token ids",
    "Reads a text and prints the ids of its tokens on one line.\n"
    "  echo -n \"Hello\" | whit tokenize -m model.ndf",
    {{"OPTIONS", options, 0}, {"MODEL", cli_model_options, AT(model)}},
    sizeof(struct tokenize_values),
    &defaults,
    run,
};
