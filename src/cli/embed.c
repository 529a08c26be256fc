/* SPDX-License-Identifier: MIT
 * Implements whit embed, which reads one text per line and writes vectors as JSON lines or a NumPy file, and whit
 * rerank, which reads one document per line and writes the documents' scores for a query. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/items.h"
#include "base/json.h"
#include "base/phrase.h"
#include "base/threads.h"
#include "cli/embed_text.h"
#include "cli/flags.h"
#include "cli/outputs.h"
#include "cli/verbs.h"

/* Texts are computed and written in groups, which end after TOGETHER_TEXTS texts or TOGETHER_TOKENS tokens, whichever
 * comes first. The groups are so large that each group's last step, which is only partly filled, costs little. */
enum { TOGETHER_TEXTS = 512, TOGETHER_TOKENS = 8192 };
enum { KV_TOKENS = 4096, SEQUENCES_MAX = 32 };

struct embed_values {
    const char *file, *output, *prompt, *instruction;
    int pooling;
    bool jsonl;
    uint32_t n_dimensions, n_threads, n_top;
    cli_model_flags model;
};
static const struct embed_values defaults = {.file = "-"};

#define AT(member) offsetof(struct embed_values, member)
static const cli_option embed_options[] = {
    {"-f, --file", CLI_FILE, AT(file), "FILE", "Read the texts from a file; stdin by default."},
    {"--jsonl", CLI_FLAG, AT(jsonl), NULL, "Lines are JSON: a string, {\"text\": STRING} or {\"ids\": [ID, ...]}."},
    {"-o, --output", CLI_FILE, AT(output), "OUT",
     "Where to write: a NumPy file (float32, one row a text) if the name ends in .npy, else JSON lines."},
    {"--pooling", CLI_CHOICE, AT(pooling), "own|mean|cls|last",
     "How a text's vector is made of its tokens'; own, the default, is the model's, or mean if it names none."},
    {"--prompt", CLI_TEXT, AT(prompt), "NAME|TEXT",
     "Put a prompt before every text: one that the model's files name, such as query, or the text itself."},
    {"--dimensions", CLI_COUNT, AT(n_dimensions), "N", "Keep the first N elements of each vector, then scale it.", 1,
     1 << 20},
    {"-t, --threads", CLI_AUTO, AT(n_threads), "N", "Threads; 0, the default, is one per physical core.", 0,
     WHIT_POOL_THREADS_MAX},
    {0},
};
static const cli_option rerank_options[] = {
    {"-f, --file", CLI_FILE, AT(file), "FILE", "Read the documents from a file; stdin by default."},
    {"--jsonl", CLI_FLAG, AT(jsonl), NULL, "Lines are JSON: a string or {\"text\": STRING}."},
    {"--instruction", CLI_TEXT, AT(instruction), "TEXT", "What is asked of a model that judges by yes and no."},
    {"--top", CLI_COUNT, AT(n_top), "N", "Print the N best documents only.", 1, 1 << 30},
    {"-t, --threads", CLI_AUTO, AT(n_threads), "N", "Threads; 0, the default, is one per physical core.", 0,
     WHIT_POOL_THREADS_MAX},
    {0},
};

/* ---- reading texts ------------------------------------------------------------------------------ */

struct texts {
    whit_embed_text *of;
    char **written; /* array of n zero-terminated texts; NULL for a line with ids */
    size_t n, capacity, longest;
};

static void free_texts(struct texts *texts)
{
    for (size_t i = 0; i < texts->n; i++) {
        cli_embed_text_free(&texts->of[i]);
        free(texts->written[i]);
    }
    free(texts->of);
    free(texts->written);
}

static int add_text(cli_call *call, struct texts *texts, whit_embed_text text, char *written)
{
    if (texts->n == texts->capacity) {
        size_t capacity = texts->capacity ? 2 * texts->capacity : 256;
        whit_embed_text *of = realloc(texts->of, capacity * sizeof *of);
        if (of) texts->of = of;
        char **names = of ? realloc(texts->written, capacity * sizeof *names) : NULL;
        if (names) texts->written = names;
        if (!names) {
            cli_embed_text_free(&text);
            free(written);
            return cli_fail(call, CLI_LIMIT, "not enough memory for %zu texts", texts->n);
        }
        texts->capacity = capacity;
    }
    if (text.n_ids > texts->longest) texts->longest = text.n_ids;
    texts->of[texts->n] = text;
    texts->written[texts->n++] = written;
    return CLI_OK;
}

/* Reads the token ids of {"ids": [...]}; *ids is NULL if there is no such list, otherwise the caller frees it. Returns
 * an exit status. */
static int read_ids(cli_call *call, const whit_json *json, const char *place, int32_t **ids, size_t *n)
{
    const uint32_t list = whit_json_get(json, WHIT_JSON_ROOT, "ids");
    *ids = NULL;
    *n = 0;
    if (whit_json_type_of(json, list) != WHIT_JSON_ARRAY) return CLI_OK;
    *ids = malloc((whit_json_count(json, list) + 1) * sizeof **ids);
    if (!*ids) return cli_fail(call, CLI_LIMIT, "not enough memory for the ids of a text");
    for (uint32_t at = whit_json_first(json, list); at != WHIT_JSON_NONE; at = whit_json_next(json, list, at)) {
        int64_t id;
        if (!whit_json_i64(json, at, &id) || id < 0 || id > INT32_MAX)
            return cli_fail(call, CLI_REFUSED, "%s: ids are whole numbers from 0 on", place);
        (*ids)[(*n)++] = (int32_t)id;
    }
    return CLI_OK;
}

/* Reads a line: sets either *text, or *ids and *n_ids; the caller frees it. Returns an exit status. */
static int read_line(cli_call *call, const char *place, const char *line, size_t n_line, bool is_json, char **text,
                     int32_t **ids, size_t *n_ids)
{
    whit_error error;
    whit_json json;
    *text = NULL;
    *ids = NULL;
    if (!is_json) {
        *text = strndup(line, n_line);
        return *text ? CLI_OK : cli_fail(call, CLI_LIMIT, "not enough memory for a text");
    }
    if (whit_json_parse(place, line, n_line, NULL, &json, &error) != WHIT_OK) return cli_fail_error(call, &error);
    uint32_t at = WHIT_JSON_ROOT;
    if (whit_json_type_of(&json, at) == WHIT_JSON_OBJECT) at = whit_json_get(&json, at, "text");
    size_t n;
    const char *string = whit_json_string(&json, at, &n);
    int status = CLI_OK;
    if (string && memchr(string, 0, n))
        status = cli_fail(call, CLI_REFUSED, "%s: the text contains a zero byte: remove that byte", place);
    else if (string)
        *text = strndup(string, n);
    else
        status = read_ids(call, &json, place, ids, n_ids);
    if (status == CLI_OK && !*text && !*ids)
        status = string ? cli_fail(call, CLI_LIMIT, "not enough memory for a text")
                        : cli_fail(call, CLI_REFUSED, "%s: a string, {\"text\"} or {\"ids\"} was expected", place);
    if (status != CLI_OK) free(*ids);
    if (status != CLI_OK) *ids = NULL;
    whit_json_close(&json);
    return status;
}

/* Type of functions that tokenize the text of a line. */
typedef int make_text_fn(cli_call *call, void *user, const char *place, char *text, whit_embed_text *made);

/* Reads the texts of all lines that are not empty. Returns an exit status. */
static int read_texts(cli_call *call, const struct embed_values *values, const whit_model *model, make_text_fn *make,
                      void *user, struct texts *texts)
{
    const uint32_t n_ctx = whit_model_context_size(model);
    cli_text all = {0};
    int status = cli_read_text(call, values->file, &all);
    size_t number = 1;
    for (const char *at = all.data, *end; status == CLI_OK && at < all.data + all.size_bytes; at = end + 1, number++) {
        const char *feed = memchr(at, '\n', all.size_bytes - (size_t)(at - all.data));
        end = feed ? feed : all.data + all.size_bytes;
        size_t n = (size_t)(end - at);
        if (n && at[n - 1] == '\r') n--;
        if (!n) continue;
        char place[96], *text;
        int32_t *ids;
        whit_embed_text made = {0};
        snprintf(place, sizeof place, "%.64s:%zu", strcmp(values->file, "-") ? values->file : "stdin", number);
        status = read_line(call, place, at, n, values->jsonl, &text, &ids, &made.n_ids);
        made.ids = ids;
        if (status == CLI_OK && text) status = make(call, user, place, text, &made);
        if (status == CLI_OK && made.n_ids > n_ctx)
            status = cli_fail(call, CLI_LIMIT,
                              "%s: the text has %zu tokens, but the model's context has %u: shorten the text", place,
                              made.n_ids, n_ctx);
        if (status == CLI_OK && !made.n_ids)
            status = cli_fail(call, CLI_REFUSED, "%s: the text has no tokens: remove this line or write a text", place);
        if (status == CLI_OK)
            status = add_text(call, texts, made, text);
        else {
            cli_embed_text_free(&made);
            free(text);
        }
    }
    free(all.data);
    if (status == CLI_OK && !texts->n)
        status = cli_fail(call, CLI_REFUSED, "%s: contains no texts: write one a line", values->file);
    return status;
}

/* Opens a session for texts of up to `longest` tokens. With only_vectors it has as many sequences of this length as
 * KV_TOKENS allow, at most SEQUENCES_MAX; otherwise one. */
static int open_session(cli_call *call, const whit_model *model, const struct embed_values *values, size_t longest,
                        bool only_vectors, whit_session **session)
{
    whit_error error;
    whit_session_options wanted = whit_session_options_default();
    wanted.n_ctx_tokens = (uint32_t)longest;
    wanted.n_sequences = KV_TOKENS / wanted.n_ctx_tokens;
    if (wanted.n_sequences > SEQUENCES_MAX) wanted.n_sequences = SEQUENCES_MAX;
    if (!wanted.n_sequences || !only_vectors) wanted.n_sequences = 1;
    wanted.n_threads = values->n_threads;
    wanted.kv = WHIT_KV_F32;
    wanted.only_vectors = only_vectors;
    return whit_session_open(model, &wanted, session, &error) == WHIT_OK ? CLI_OK : cli_fail_error(call, &error);
}

/* ---- embed -------------------------------------------------------------------------------------- */

struct prompted {
    const whit_model *model;
    const char *prompt; /* the text before each text; NULL: none */
};

static int make_prompted(cli_call *call, void *user, const char *place, char *text, whit_embed_text *made)
{
    const struct prompted *p = user;
    (void)place;
    return cli_embed_text(call, p->model, p->prompt, text, strlen(text), made);
}

/* Returns the text of the prompt with this name (NULL: the default) from the model's metadata. If the metadata has no
 * prompt of this name, `name` itself is the text. */
static const char *find_prompt(const whit_model *model, const char *name)
{
    char key[128];
    if (!name) name = whit_model_metadata(model, "embedding.default_prompt");
    if (!name) return NULL;
    snprintf(key, sizeof key, "embedding.prompt.%.64s", name);
    const char *text = whit_model_metadata(model, key);
    return text ? text : name;
}

static bool ends_in_npy(const char *path)
{
    const size_t n = path ? strlen(path) : 0;
    return n > 4 && !strcmp(path + n - 4, ".npy");
}

/* Writes the header of NumPy's file format 1.0: a magic, the length of the description, and a description that is
 * padded so that the header's size is a multiple of 64 bytes. */
static whit_status write_npy_header(whit_writer *writer, size_t n_rows, size_t width, whit_error *error)
{
    char header[256];
    int n = snprintf(header + 10, sizeof header - 10, "{'descr': '<f4', 'fortran_order': False, 'shape': (%zu, %zu), }",
                     n_rows, width);
    const size_t whole = ((size_t)n + 10 + 1 + 63) / 64 * 64, n_text = whole - 10;
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    header[8] = (char)(n_text & 0xFF);
    header[9] = (char)(n_text >> 8);
    memset(header + 10 + n, ' ', n_text - (size_t)n);
    header[whole - 1] = '\n';
    return whit_writer_append(writer, header, whole, error);
}

static void append_line(const float *values, size_t width, whit_buf *line)
{
    line->size_bytes = 0;
    whit_buf_append_str(line, "{\"embedding\": [");
    for (size_t k = 0; k < width; k++) whit_buf_printf(line, k ? ", %.9g" : "%.9g", (double)values[k]);
    whit_buf_append_str(line, "]}\n");
}

/* Returns the number of texts in the group that begins at index `first`; at least one. */
static size_t count_together(const struct texts *texts, size_t first)
{
    size_t n = 0, n_tokens = 0;
    while (n < TOGETHER_TEXTS && n_tokens < TOGETHER_TOKENS && first + n < texts->n)
        n_tokens += texts->of[first + n++].n_ids;
    return n;
}

/* Computes the vectors of all texts and writes them, group by group. Returns an exit status. */
static int write_vectors(cli_call *call, const struct embed_values *values, whit_session *session,
                         const struct texts *texts, size_t width, whit_writer *writer)
{
    static const whit_pooling poolings[] = {WHIT_POOLING_OWN, WHIT_POOLING_MEAN, WHIT_POOLING_CLS, WHIT_POOLING_LAST};
    whit_embed_options options = whit_embed_options_default();
    options.pooling = poolings[values->pooling];
    options.n_dimensions = values->n_dimensions;
    float *vectors = malloc(TOGETHER_TEXTS * width * sizeof *vectors);
    whit_buf line = {0};
    whit_error error;
    const bool is_npy = ends_in_npy(values->output);
    int status = vectors ? CLI_OK : cli_fail(call, CLI_LIMIT, "not enough memory for the vectors");
    if (status == CLI_OK && is_npy && write_npy_header(writer, texts->n, width, &error) != WHIT_OK)
        status = cli_fail_error(call, &error);
    for (size_t done = 0, n; status == CLI_OK && done < texts->n; done += n) {
        n = count_together(texts, done);
        if (whit_embed_texts(session, texts->of + done, n, &options, vectors, &error) != WHIT_OK)
            status = cli_fail_error(call, &error);
        if (status == CLI_OK && is_npy && whit_writer_append(writer, vectors, n * width * sizeof *vectors, &error))
            status = cli_fail_error(call, &error);
        for (size_t i = 0; status == CLI_OK && !is_npy && i < n; i++) {
            append_line(vectors + i * width, width, &line);
            if (line.failed)
                status = cli_fail(call, CLI_LIMIT, "not enough memory for a printed vector");
            else if (!values->output)
                cli_write(call, whit_chars(&line), line.size_bytes);
            else if (whit_writer_append(writer, line.data, line.size_bytes, &error) != WHIT_OK)
                status = cli_fail_error(call, &error);
        }
        if (values->output) cli_progress(NULL, "embed", (double)(done + n) / (double)texts->n);
    }
    free(vectors);
    whit_buf_free(&line);
    return status;
}

static int run_embed(cli_call *call)
{
    const struct embed_values *values = call->values;
    whit_model *model = NULL;
    whit_session *session = NULL;
    whit_writer writer = {.fd = -1};
    struct texts texts = {0};
    whit_error error;
    const cli_named_file output = {"-o", values->output}, inputs[] = {{"-f", values->file}, {"-m", values->model.path}};
    int status = cli_check_apart(call, output, inputs, 2);
    if (status == CLI_OK) status = cli_check_output(call, values->output, CLI_OUTPUT_VECTORS);
    if (status == CLI_OK) status = cli_open_flagged_model(call, &values->model, &model);
    if (status == CLI_OK && whit_model_n_labels(model))
        status =
            cli_fail(call, CLI_REFUSED, "%s: this model computes scores of documents, not vectors: use 'whit rerank'",
                     cli_model_name(&values->model));
    const size_t width = status == CLI_OK ? whit_model_embedding_size(model) : 0;
    if (status == CLI_OK && values->n_dimensions > width)
        status = cli_fail(call, CLI_USAGE, "--dimensions %u: the model's vectors have only %zu", values->n_dimensions,
                          width);
    struct prompted prompted = {model, status == CLI_OK ? find_prompt(model, values->prompt) : NULL};
    if (status == CLI_OK) status = read_texts(call, values, model, make_prompted, &prompted, &texts);
    if (status == CLI_OK) status = open_session(call, model, values, texts.longest, true, &session);
    if (status == CLI_OK && values->output && whit_writer_open(values->output, NULL, &writer, &error) != WHIT_OK)
        status = cli_fail_error(call, &error);
    if (status == CLI_OK)
        status =
            write_vectors(call, values, session, &texts, values->n_dimensions ? values->n_dimensions : width, &writer);
    if (status == CLI_OK && values->output && whit_writer_commit(&writer, &error) != WHIT_OK)
        status = cli_fail_error(call, &error);
    cli_progress_end();
    if (status == CLI_OK && values->output)
        cli_note("%s: %zu vector%s of %zu numbers", values->output, texts.n, whit_plural(texts.n),
                 values->n_dimensions ? values->n_dimensions : width);
    if (values->output) whit_writer_discard(&writer);
    free_texts(&texts);
    whit_session_close(session);
    whit_model_close(model);
    return status;
}

/* ---- rerank ------------------------------------------------------------------------------------- */

struct asked {
    const whit_model *model;
    const char *query, *instruction;
};

static int make_pair(cli_call *call, void *user, const char *place, char *text, whit_embed_text *made)
{
    const struct asked *asked = user;
    whit_rerank_pair pair = whit_rerank_pair_default();
    whit_error error;
    (void)place;
    pair.query = asked->query;
    pair.query_bytes = strlen(asked->query);
    pair.document = text;
    pair.document_bytes = strlen(text);
    pair.instruction = asked->instruction;
    pair.n_ids_max = whit_model_context_size(asked->model);
    for (size_t capacity = 1024;; capacity = made->n_ids) {
        int32_t *ids = malloc(capacity * sizeof *ids);
        if (!ids) return cli_fail(call, CLI_LIMIT, "not enough memory for a pair of %zu tokens", capacity);
        made->ids = ids;
        whit_status status =
            whit_rerank_tokens(asked->model, &pair, ids, capacity, &made->n_ids, &made->n_first, &error);
        if (status == WHIT_OK) return CLI_OK;
        free(ids);
        made->ids = NULL;
        if (status != WHIT_ERROR_LIMIT || made->n_ids <= capacity) return cli_fail_error(call, &error);
    }
}

static int print_scores(cli_call *call, const struct texts *texts, const float *scores, size_t n_top)
{
    whit_ranked *order = malloc(texts->n * sizeof *order);
    if (!order) return cli_fail(call, CLI_LIMIT, "not enough memory for the scores of %zu texts", texts->n);
    whit_rank(scores, texts->n, order);
    whit_buf line = {0};
    for (size_t i = 0; i < texts->n && (!n_top || i < n_top); i++) {
        const char *text = texts->written[order[i].index] ? texts->written[order[i].index] : "";
        line.size_bytes = 0;
        whit_buf_printf(&line, "{\"index\": %zu, \"relevance_score\": %.9g, \"text\": ", order[i].index,
                        (double)order[i].score);
        whit_json_write_string(&line, text, strlen(text));
        whit_buf_append_str(&line, "}\n");
        if (line.failed) break;
        cli_write_json(call, whit_chars(&line), line.size_bytes);
    }
    const bool failed = line.failed;
    whit_buf_free(&line);
    free(order);
    return failed ? cli_fail(call, CLI_LIMIT, "not enough memory for the printed scores") : CLI_OK;
}

static int run_rerank(cli_call *call)
{
    const struct embed_values *values = call->values;
    whit_model *model = NULL;
    whit_session *session = NULL;
    struct texts texts = {0};
    float *scores = NULL;
    whit_error error;
    whit_rerank_options options = whit_rerank_options_default();
    int status = cli_open_model(call, call->operands[0], false, &model);
    if (status == CLI_OK && whit_rerank_judges(model, &options, &error) != WHIT_OK)
        status = cli_fail_error(call, &error);
    struct asked asked = {model, call->operands[1], values->instruction};
    if (status == CLI_OK) status = read_texts(call, values, model, make_pair, &asked, &texts);
    if (status == CLI_OK) status = open_session(call, model, values, texts.longest, options.yes < 0, &session);
    if (status == CLI_OK && !(scores = calloc(texts.n, sizeof *scores)))
        status = cli_fail(call, CLI_LIMIT, "not enough memory for the scores of %zu texts", texts.n);
    for (size_t done = 0, n; status == CLI_OK && done < texts.n; done += n) {
        n = count_together(&texts, done);
        if (whit_rerank(session, texts.of + done, n, &options, scores + done, &error) != WHIT_OK)
            status = cli_fail_error(call, &error);
    }
    if (status == CLI_OK) status = print_scores(call, &texts, scores, values->n_top);
    free(scores);
    free_texts(&texts);
    whit_session_close(session);
    whit_model_close(model);
    return status;
}

const cli_verb cli_embed_verb = {
    "embed",
    "",
    0,
    0,
    "turn texts into vectors",
    "Reads a text a line and prints {\"embedding\": [...]} a line, or writes all vectors into a NumPy file. Vectors "
    "have "
    "length 1, so that their products are cosines. Pooling, dense layers and prompts are those of the model's files; "
    "any "
    "other model's vectors are the mean over its tokens. Many texts are computed in one step, with the same bits as "
    "one "
    "at a time.\n"
    "  whit embed embeddinggemma-300m --prompt document -f texts.txt -o vectors.npy\n"
    "  echo 'how to cook rice' | whit embed qwen3-embedding-0.6b --prompt query --dimensions 256",
    {{"OPTIONS", embed_options, 0}, {"MODEL", cli_model_options, AT(model)}},
    sizeof(struct embed_values),
    &defaults,
    run_embed,
};

const cli_verb cli_rerank_verb = {
    "rerank",
    "MODEL QUERY",
    2,
    2,
    "order texts by how well they answer a query",
    "Reads a document a line and prints {\"index\", \"relevance_score\", \"text\"} a line, the best first. A model "
    "with a "
    "classification head gives its raw score; one that judges by yes and no, such as Qwen3-Reranker, the probability "
    "of "
    "yes.\n"
    "  whit rerank bge-reranker-v2-m3 'how to cook rice' -f passages.txt --top 3",
    {{"OPTIONS", rerank_options, 0}},
    sizeof(struct embed_values),
    &defaults,
    run_rerank,
};
