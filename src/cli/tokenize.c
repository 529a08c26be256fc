/* SPDX-License-Identifier: MIT
 * Implements whit tokenize, which prints the token ids of a text or, with --jsonl, converts texts to ids and ids to
 * texts, one JSON object a line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/items.h"
#include "cli/flags.h"
#include "cli/lines.h"
#include "cli/names.h"
#include "cli/parts.h"
#include "cli/tales.h"
#include "cli/verbs.h"
#include "tokenizer/from_path.h"
#include "tokenizer/tokenizer.h"

struct tokenize_values {
    bool no_special, no_parse_special, json, jsonl;
    const char *file, *tokenizer, *prompt;
    cli_model_flags model;
};
static const struct tokenize_values defaults = {.file = "-"};

#define AT(member) offsetof(struct tokenize_values, member)
static const cli_option options[] = {
    {"--tokenizer", CLI_FILE, AT(tokenizer), "PATH",
     "A tokenizer without its model: tokenizer.json, tokenizer.model, a GGUF file, or a folder."},
    {"-p, --prompt", CLI_TEXT, AT(prompt), "TEXT", "The text, in place of a file."},
    {"-f, --file", CLI_FILE, AT(file), "FILE", "Read the text from a file; stdin by default."},
    {"--no-special", CLI_FLAG, AT(no_special), NULL, "Put no beginning-of-text token and the like around the text."},
    {"--no-parse-special", CLI_FLAG, AT(no_parse_special), NULL,
     "Take special tokens written in the text as plain text."},
    {"--json", CLI_FLAG, AT(json), NULL, "Print one JSON object, {\"ids\": [...]}."},
    {"--jsonl", CLI_FLAG, AT(jsonl), NULL, "One JSON object a line in, one out."},
    {0},
};

/* A tokenizer, taken from a model or made from a tokenizer file. */
struct subject {
    whit_model *model;
    whit_buf image; /* image made from the tokenizer file; unused with a model */
    whit_tokenizer_view own_view;
    const whit_tokenizer_view *view;
    whit_tokenizer *tokenizer;
};

/* If no text is given by -p, refuses a model's name that is not found and does not contain "/", ":" or ".", since it
 * may be meant as the text; the message shows the right form. Returns CLI_OK, or an exit status after a message. */
static int check_word(cli_call *call, const struct tokenize_values *values)
{
    const char *word = values->model.path;
    char path[CLI_PATH_BYTES];
    whit_error error;
    if (values->prompt || cli_is_tales(word) || strpbrk(word, "/:.") || cli_find_model(word, path, &error) == WHIT_OK)
        return CLI_OK;
    return cli_fail(call, CLI_IO, "%s (a text: whit tokenize MODEL %s)", error.message, word);
}

static int open_subject(cli_call *call, const struct tokenize_values *values, struct subject *subject)
{
    whit_error error;
    if (values->tokenizer) {
        if (whit_tokenizer_from_path(values->tokenizer, &subject->image, &error) != WHIT_OK ||
            whit_tokenizer_check(subject->image.data, subject->image.size_bytes, &subject->own_view, &error) != WHIT_OK)
            return cli_fail_error(call, &error);
        subject->view = &subject->own_view;
    } else {
        int status = check_word(call, values);
        if (status == CLI_OK) status = cli_open_flagged_model(call, &values->model, &subject->model);
        if (status != CLI_OK) return status;
        subject->view = cli_model_tokenizer(subject->model);
        if (!subject->view)
            return cli_fail(call, CLI_REFUSED, "%s: the model has no tokenizer; --tokenizer PATH names one",
                            cli_model_name(&values->model));
    }
    return whit_tokenizer_open(subject->view, NULL, &subject->tokenizer, &error) == WHIT_OK
        ? CLI_OK
        : cli_fail_error(call, &error);
}

static void close_subject(struct subject *subject)
{
    whit_tokenizer_close(subject->tokenizer);
    whit_model_close(subject->model);
    whit_buf_free(&subject->image);
}

/* ---- lines ---------------------------------------------------------------------------------- */

static void write_ids(const whit_buf *ids, whit_buf *out)
{
    const int32_t *each = WHIT_ITEMS(const int32_t, ids);
    whit_buf_append_str(out, "{\"ids\": [");
    for (size_t i = 0; i < ids->size_bytes / sizeof *each; i++) whit_buf_printf(out, i ? ", %d" : "%d", each[i]);
    whit_buf_append_str(out, "]}\n");
}

static whit_status read_ids(const whit_json *json, uint32_t list, whit_buf *ids, whit_error *error)
{
    for (uint32_t at = whit_json_first(json, list); at != WHIT_JSON_NONE; at = whit_json_next(json, list, at)) {
        int64_t number;
        if (!whit_json_i64(json, at, &number)) return whit_json_fail(json, at, error, "an id is a whole number");
        /* Ids outside the vocabulary give no text, so -1 can replace every number that is not in the range of an id. */
        int32_t id = number < 0 || number > INT32_MAX ? -1 : (int32_t)number;
        if (!whit_buf_append(ids, &id, sizeof id)) return whit_fail_memory(error, "ids", ids->size_bytes);
    }
    return WHIT_OK;
}

/* Writes {"text", "pieces", "tail"}. text: the text of all ids; pieces: the text that a stream would print after each
 * id; tail: the text that it would print at the end. */
static whit_status write_text(const struct subject *subject, const whit_buf *ids, bool skip_special, whit_buf *out,
                              whit_error *error)
{
    const int32_t *each = WHIT_ITEMS(const int32_t, ids);
    size_t n_ids = ids->size_bytes / sizeof *each, n_bytes;
    const char *piece;
    whit_buf text = {0};
    whit_token_decoder *decoder = NULL;
    whit_token_decoder_options stream = {.skip_special = skip_special};
    whit_status status = whit_tokenizer_decode(subject->view, each, n_ids, skip_special, &text, error);
    if (status == WHIT_OK) status = whit_token_decoder_open(subject->view, stream, NULL, &decoder, error);
    whit_buf_append_str(out, "{\"text\": ");
    whit_json_write_string(out, whit_chars(&text), text.size_bytes);
    whit_buf_append_str(out, ", \"pieces\": [");
    for (size_t i = 0; i < n_ids && status == WHIT_OK; i++) {
        status = whit_token_decoder_push(decoder, each[i], &piece, &n_bytes, error);
        if (i) whit_buf_append_str(out, ", ");
        if (status == WHIT_OK) whit_json_write_string(out, piece, n_bytes);
    }
    whit_buf_append_str(out, "], \"tail\": ");
    if (status == WHIT_OK) status = whit_token_decoder_flush(decoder, &piece, &n_bytes, error);
    if (status == WHIT_OK) whit_json_write_string(out, piece, n_bytes);
    whit_buf_append_str(out, "}\n");
    whit_token_decoder_close(decoder);
    whit_buf_free(&text);
    return status;
}

static whit_status answer_line(void *user, const char *line, size_t n_line, whit_buf *out, whit_error *error)
{
    const struct subject *subject = user;
    whit_json json;
    whit_buf ids = {0};
    WHIT_TRY(whit_json_parse("stdin", line, n_line, NULL, &json, error));
    size_t n_text;
    const char *text = whit_json_string(&json, whit_json_get(&json, WHIT_JSON_ROOT, "text"), &n_text);
    uint32_t list = whit_json_get(&json, WHIT_JSON_ROOT, "ids");
    whit_status status;
    if (text) {
        whit_encode_options encode = {
            .add_special = whit_json_bool(&json, whit_json_get(&json, WHIT_JSON_ROOT, "add_special"), true),
            .parse_special = whit_json_bool(&json, whit_json_get(&json, WHIT_JSON_ROOT, "parse_special"), true)};
        status = whit_tokenizer_encode(subject->tokenizer, text, n_text, &encode, &ids, error);
        if (status == WHIT_OK) write_ids(&ids, out);
    } else if (whit_json_type_of(&json, list) == WHIT_JSON_ARRAY) {
        bool skip = whit_json_bool(&json, whit_json_get(&json, WHIT_JSON_ROOT, "skip_special"), true);
        status = read_ids(&json, list, &ids, error);
        size_t begun = out->size_bytes;
        if (status == WHIT_OK) status = write_text(subject, &ids, skip, out, error);
        if (status != WHIT_OK) out->size_bytes = begun;
    } else {
        status = whit_json_fail(&json, WHIT_JSON_ROOT, error, "an object with \"text\" or \"ids\" was expected");
    }
    if (status == WHIT_OK && out->failed) status = whit_fail_memory(error, "an answer", out->size_bytes);
    whit_buf_free(&ids);
    whit_json_close(&json);
    return status;
}

/* ---- one text ------------------------------------------------------------------------------- */

static int tokenize_text(cli_call *call, const struct tokenize_values *values, const struct subject *subject)
{
    cli_text text = {0};
    whit_buf ids = {0};
    whit_error error;
    whit_encode_options encode = {.add_special = !values->no_special, .parse_special = !values->no_parse_special};
    int status = values->prompt ? CLI_OK : cli_read_text(call, values->file, &text);
    const char *words = values->prompt ? values->prompt : text.data;
    const size_t n_bytes = values->prompt ? strlen(words) : text.size_bytes;
    if (status == CLI_OK && whit_tokenizer_encode(subject->tokenizer, words, n_bytes, &encode, &ids, &error) != WHIT_OK)
        status = cli_fail_error(call, &error);
    if (status == CLI_OK && values->json) {
        whit_buf out = {0};
        write_ids(&ids, &out);
        if (out.failed)
            status = cli_fail(call, CLI_LIMIT, "not enough memory for the printed ids");
        else
            cli_write(call, whit_chars(&out), out.size_bytes);
        whit_buf_free(&out);
    } else if (status == CLI_OK) {
        const int32_t *each = WHIT_ITEMS(const int32_t, &ids);
        for (size_t i = 0; i < ids.size_bytes / sizeof *each; i++) cli_print(call, i ? " %d" : "%d", each[i]);
        cli_print(call, "\n");
    }
    free(text.data);
    whit_buf_free(&ids);
    return status;
}

static int run_tokenize(cli_call *call)
{
    const struct tokenize_values *values = call->values;
    struct subject subject = {0};
    if (values->prompt && (values->jsonl || cli_was_given(call, "-f")))
        return cli_fail(call, CLI_USAGE, "a text cannot be combined with -f or --jsonl: give only one of them");
    int status = open_subject(call, values, &subject);
    if (status == CLI_OK)
        status = values->jsonl ? cli_each_line(call, answer_line, &subject) : tokenize_text(call, values, &subject);
    close_subject(&subject);
    return status;
}

const cli_verb cli_tokenize_verb = {
    "tokenize",
    "",
    0,
    0,
    "turn text into token ids, and back",
    "Reads a text and prints the ids of its tokens on one line. With --jsonl it reads one JSON "
    "object "
    "a line: {\"text\", \"add_special\", \"parse_special\"} (both true unless given) is answered "
    "by "
    "{\"ids\"}; {\"ids\", \"skip_special\"} by {\"text\", \"pieces\", \"tail\"}, the pieces being "
    "what a "
    "stream would print after each id.\n"
    "  whit tokenize model.ndf \"Hello\"\n"
    "  echo -n \"Hello\" | whit tokenize -m model.ndf",
    {{"OPTIONS", options, 0}, {"MODEL", cli_model_options, AT(model)}},
    sizeof(struct tokenize_values),
    &defaults,
    run_tokenize,
};
