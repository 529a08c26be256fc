/* SPDX-License-Identifier: MIT
 * Implements whit logits, which reads tokens and writes the logits after each token. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "cli/flags.h"
#include "cli/outputs.h"
#include "cli/ranks.h"
#include "cli/verbs.h"

struct logits_values {
    const char *tokens, *output;
    cli_model_flags model;
    cli_session_flags session;
    cli_adapter_flags adapters;
};
static const struct logits_values defaults;

#define AT(member) offsetof(struct logits_values, member)
static const cli_option options[] = {
    {"--tokens", CLI_FILE, AT(tokens), "FILE", "Token ids with white space between; - is stdin."},
    {"-o, --output", CLI_FILE, AT(output), "OUT",
     "Where to write: float32, little-endian, one row of the vocabulary per token."},
    {0},
};

/* Parses the token ids of a text into *tokens, which the caller frees. Returns an exit status. */
static int parse_ids(cli_call *call, const char *path, const cli_text *text, whit_step_token **tokens, size_t *n_tokens)
{
    /* Upper bound: each id has at least one digit and one space after it. */
    *tokens = calloc(text->size_bytes / 2 + 1, sizeof **tokens);
    if (!*tokens) return cli_fail(call, CLI_LIMIT, "not enough memory for the token ids");
    size_t n = 0;
    for (const char *at = text->data;;) {
        at += strspn(at, " \t\r\n\v\f");
        if (!*at && at == text->data + text->size_bytes) break;
        char *end;
        errno = 0;
        long id = strtol(at, &end, 10);
        if (end == at || errno || id < 0 || id > INT32_MAX || !strchr(" \t\r\n\v\f", *end)) {
            size_t n_shown = strcspn(at, " \t\r\n\v\f");
            return cli_fail(call, CLI_REFUSED, "%s: at byte %td: '%.*s' is not a token id", path, at - text->data,
                            (int)(n_shown < 40 ? n_shown : 40), at);
        }
        (*tokens)[n++] = (whit_step_token){.id = (int32_t)id, .want_logits = true};
        at = end;
    }
    if (!n) return cli_fail(call, CLI_REFUSED, "%s: contains no token ids", path);
    *n_tokens = n;
    return CLI_OK;
}

/* Runs the tokens, and appends the logits after each token to `writer`. */
static whit_status write_logits(whit_session *session, const whit_step_token *tokens, size_t n_tokens, size_t n_batch,
                                size_t n_vocab, whit_writer *writer, whit_error *error)
{
    for (size_t done = 0; done < n_tokens;) {
        size_t n = n_tokens - done < n_batch ? n_tokens - done : n_batch;
        whit_status status = whit_session_step(session, tokens + done, n, error);
        for (size_t i = 0; i < n && status == WHIT_OK; i++)
            status = whit_writer_append(writer, whit_session_logits(session, i), n_vocab * sizeof(float), error);
        WHIT_TRY(status);
        done += n;
        cli_progress(NULL, "logits", (double)done / (double)n_tokens);
    }
    return WHIT_OK;
}

/* Runs the tokens in a session and writes the logits to the file of -o. Returns an exit status. */
static int run_tokens(cli_call *call, const whit_model *model, const cli_adapters *adapters,
                      const whit_step_token *tokens, size_t n_tokens)
{
    const struct logits_values *values = call->values;
    whit_session *session = NULL;
    whit_writer writer = {.fd = -1};
    whit_error error;
    whit_session_options wanted = cli_session_wanted(&values->session, WHIT_ACT_F32);
    if (!wanted.n_ctx_tokens) wanted.n_ctx_tokens = n_tokens < UINT32_MAX ? (uint32_t)n_tokens : UINT32_MAX;
    size_t n_vocab = whit_model_vocab_size(model);
    cli_want_all_logits(&wanted, n_vocab);
    whit_status status = whit_session_open(model, &wanted, &session, &error);
    if (status == WHIT_OK) status = whit_session_mount(session, 0, adapters->mounts, adapters->n, &error);
    if (status == WHIT_OK) status = whit_writer_open(values->output, NULL, &writer, &error);
    if (status == WHIT_OK)
        status = write_logits(session, tokens, n_tokens, wanted.n_batch_tokens, n_vocab, &writer, &error);
    if (status == WHIT_OK) status = whit_writer_commit(&writer, &error);
    if (status == WHIT_OK) cli_note("%s: %zu x %zu float32 numbers", values->output, n_tokens, n_vocab);
    whit_writer_discard(&writer);
    whit_session_close(session);
    return status == WHIT_OK ? CLI_OK : cli_fail_error(call, &error);
}

static int run_logits(cli_call *call)
{
    const struct logits_values *values = call->values;
    whit_model *model = NULL;
    cli_adapters adapters = {0};
    cli_text text = {0};
    whit_step_token *tokens = NULL;
    size_t n_tokens = 0;

    if (!values->tokens || !values->output) return cli_fail(call, CLI_USAGE, "--tokens FILE and -o OUT are needed");
    const cli_named_file output = {"-o", values->output},
                         inputs[] = {{"--tokens", values->tokens}, {"-m", values->model.path}};
    int status = cli_check_apart(call, output, inputs, 2);
    if (status == CLI_OK) status = cli_check_output(call, values->output, CLI_OUTPUT_FLOATS);
    if (status == CLI_OK) status = cli_open_flagged_model(call, &values->model, &model);
    if (status == CLI_OK) status = cli_split_model(call, model);
    if (status == CLI_OK) status = cli_open_adapters(call, &values->adapters, model, &adapters);
    if (status == CLI_OK) status = cli_read_text(call, values->tokens, &text);
    if (status == CLI_OK) status = parse_ids(call, values->tokens, &text, &tokens, &n_tokens);
    if (status == CLI_OK) status = run_tokens(call, model, &adapters, tokens, n_tokens);
    cli_close_adapters(&adapters);
    whit_model_close(model);
    free(text.data);
    free(tokens);
    return status;
}

const cli_verb cli_logits_verb = {
    "logits",
    "",
    0,
    0,
    "write the logits after each of given tokens",
    "Feeds the tokens from position 0 on, with nothing put in front, and writes n x vocabulary "
    "numbers. An existing OUT is replaced when all is written.\n"
    "  whit logits -m model.ndf --tokens ids.txt -o logits.f32 --kv f32",
    {{"OPTIONS", options, 0},
     {"MODEL", cli_model_options, AT(model)},
     {"SESSION", cli_session_options, AT(session)},
     {"ADAPTERS", cli_adapter_options, AT(adapters)}},
    sizeof(struct logits_values),
    &defaults,
    run_logits,
};
