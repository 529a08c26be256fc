/* SPDX-License-Identifier: MIT
 * Implements --grammar and --json-schema. */
#include <stdlib.h>
#include <string.h>

#include "cli/flags.h"

#define AT(member) offsetof(cli_grammar_flags, member)
const cli_option cli_grammar_options[] = {
    {"--grammar, --grammar-file", CLI_FILE, AT(gbnf), "FILE", "Let the answer follow a grammar (GBNF); - is stdin."},
    {"-j, --json-schema, --json-schema-file, -jf", CLI_FILE, AT(schema), "FILE",
     "Let the answer be JSON that a schema accepts; - is stdin. Text that begins with { is the schema itself."},
    {0},
};
#undef AT

int cli_open_grammar(cli_call *call, const cli_grammar_flags *flags, const whit_model *model, cli_grammar *grammar)
{
    const char *path = flags->gbnf ? flags->gbnf : flags->schema;
    cli_text text = {0};
    whit_error error;
    *grammar = (cli_grammar){0};
    if (flags->gbnf && flags->schema)
        return cli_fail(call, CLI_USAGE, "give either --grammar or --json-schema, not both");
    if (!path) return CLI_OK;
    const bool is_schema = !flags->gbnf && path[strspn(path, " \t\n")] == '{';
    int status = CLI_OK;
    if (is_schema) {
        text = (cli_text){strdup(path), strlen(path)};
        if (!text.data) return cli_fail(call, CLI_LIMIT, "not enough memory for the schema");
        path = "the schema";
    } else {
        status = cli_read_text(call, path, &text);
    }
    if (status != CLI_OK) return status;
    whit_status opened = whit_grammar_vocabulary_open(model, &grammar->vocabulary, &error);
    if (opened == WHIT_OK)
        opened = (flags->gbnf ? whit_grammar_open_gbnf : whit_grammar_open_json_schema)(
            grammar->vocabulary, path, text.data, text.size_bytes, &grammar->grammar, &error);
    free(text.data);
    return opened == WHIT_OK ? cli_restart_grammar(call, grammar) : cli_fail_error(call, &error);
}

int cli_restart_grammar(cli_call *call, cli_grammar *grammar)
{
    whit_error error;
    if (!grammar->grammar) return CLI_OK;
    whit_grammar_state_close(grammar->state);
    if (whit_grammar_state_open(grammar->grammar, &grammar->state, &error) != WHIT_OK)
        return cli_fail_error(call, &error);
    grammar->stage = whit_grammar_stage(grammar->state);
    grammar->stages[0] = &grammar->stage;
    grammar->n_stages = 1;
    return CLI_OK;
}

void cli_grammar_after(cli_grammar *grammar, const whit_stage *const *stages, size_t n)
{
    grammar->n_stages = 0;
    for (size_t i = 0; i < n && i < 3; i++) grammar->stages[grammar->n_stages++] = stages[i];
    if (grammar->state) grammar->stages[grammar->n_stages++] = &grammar->stage;
}

void cli_close_grammar(cli_grammar *grammar)
{
    whit_grammar_state_close(grammar->state);
    whit_grammar_close(grammar->grammar);
    whit_grammar_vocabulary_close(grammar->vocabulary);
    *grammar = (cli_grammar){0};
}
