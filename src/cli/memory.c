/* SPDX-License-Identifier: MIT
 * Implements whit memory, an associative memory of texts and triples in a file. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/lines.h"
#include "cli/memory_embed.h"
#include "cli/verbs.h"
#include "memory/store.h"

enum { BATCH_RECORDS = 4096, LINE_BYTES = 8 * WHIT_MEMORY_MAX_TEXT };

struct memory_values {
    uint32_t n_hits, n_threads, batch;
    bool jsonl;
    const char *embed;
};
static const struct memory_values defaults = {.n_hits = 10, .batch = BATCH_RECORDS};

#define AT(member) offsetof(struct memory_values, member)
static const cli_option options[] = {
    {"-k, --hits", CLI_COUNT, AT(n_hits), "N", "Answers to a query; 10 by default.", 1, WHIT_MEMORY_MAX_HITS},
    {"--jsonl", CLI_FLAG, AT(jsonl), NULL,
     "Lines are JSON objects: {\"text\": ...}, or {\"subject\": ..., \"predicate\": ..., \"object\": ...}.", 0, 0},
    {"--embed", CLI_FILE, AT(embed), "MODEL",
     "Compare texts by their meaning, as this embedding model sees it, in place of their letters; always the same "
     "model for a store.",
     0, 0},
    {"--batch", CLI_COUNT, AT(batch), "N", "Records that are committed together; 4096 by default.", 1, 1 << 20},
    {"-t, --threads", CLI_COUNT, AT(n_threads), "N", "Threads; 0, the default, is one per physical core.", 0, 1024},
    {0},
};

struct state {
    cli_call *call;
    const struct memory_values *values;
    const char *store;
    whit_encoder encoder;
    cli_memory_embedder embedder; /* the model of --embed */
    whit_memory_batch batch;
    uint64_t n_committed, n_lines;
    char where[300]; /* beginning of messages: "FILE: " */
};

/* Encodes a line of input as a hypervector. *kept: the text to store. Returns an exit status. */
static int encode_line(struct state *s, const char *line, size_t n_bytes, bool is_query,
                       uint64_t vector[WHIT_MEMORY_WORDS], json_t **kept)
{
    static const char *const keys[3] = {"subject", "predicate", "object"};
    whit_error error;
    json_t *text = NULL;
    if (s->values->jsonl) {
        json_error_t mistake;
        json_t *object = json_loadb(line, n_bytes, 0, &mistake);
        const char *parts[3] = {NULL, NULL, NULL};
        size_t n_parts = 0;
        for (int i = 0; i < 3; i++) n_parts += (parts[i] = json_string_value(json_object_get(object, keys[i]))) != NULL;
        text = json_incref(json_object_get(object, "text"));
        if (!json_is_string(text)) {
            json_decref(text);
            text = NULL;
        }
        if (!object)
            return cli_fail(s->call, CLI_REFUSED, "%sline %llu: is not JSON: %s", s->where,
                            (unsigned long long)s->n_lines, mistake.text);
        if (!text && n_parts && s->embedder.model) {
            json_decref(object);
            return cli_fail(s->call, CLI_REFUSED,
                            "%sline %llu: a triple has no text, which --embed needs: add \"text\"", s->where,
                            (unsigned long long)s->n_lines);
        }
        if (!text && n_parts && (is_query || n_parts == 3)) {
            json_t *triple = json_pack("{s:s?, s:s?, s:s?}", keys[0], parts[0], keys[1], parts[1], keys[2], parts[2]);
            char *dump = json_dumps(triple, JSON_COMPACT);
            whit_encode_triple(&s->encoder, parts, vector);
            *kept = json_string(dump);
            free(dump);
            json_decref(triple);
            json_decref(object);
            return *kept ? CLI_OK : cli_fail(s->call, CLI_LIMIT, "not enough memory for a line");
        }
        json_decref(object);
        if (!text)
            return cli_fail(
                s->call, CLI_REFUSED,
                "%sline %llu: expected an object with a \"text\", or with \"subject\", \"predicate\" and \"object\"",
                s->where, (unsigned long long)s->n_lines);
    } else if (!(text = json_stringn(line, n_bytes)))
        return cli_fail(s->call, CLI_REFUSED, "%sline %llu: is not UTF-8", s->where, (unsigned long long)s->n_lines);
    *kept = text;
    if (s->embedder.model) {
        int status = cli_memory_embed(s->call, &s->embedder, json_string_value(text), json_string_length(text),
                                      is_query, vector);
        if (status != CLI_OK) json_decref(text);
        return status;
    }
    if (whit_encode_text(&s->encoder, json_string_value(text), json_string_length(text), vector, &error) == WHIT_OK)
        return CLI_OK;
    json_decref(text);
    return cli_fail(s->call, CLI_LIMIT, "%sline %llu: %s", s->where, (unsigned long long)s->n_lines, error.message);
}

static int commit(struct state *s)
{
    whit_error error;
    uint64_t n = s->batch.n_records;
    if (!n) return CLI_OK;
    if (whit_memory_batch_commit(&s->batch, s->store, &error) != WHIT_OK) return cli_fail_error(s->call, &error);
    s->n_committed += n;
    if (!cli_print(s->call, "{\"committed\": %llu}\n", (unsigned long long)s->n_committed) || !cli_flush(s->call))
        return CLI_IO;
    return CLI_OK;
}

typedef int line_fn(struct state *s, const char *line, size_t n_bytes);

static int add_line(struct state *s, const char *line, size_t n_bytes)
{
    uint64_t vector[WHIT_MEMORY_WORDS];
    whit_error error;
    json_t *kept;
    int status = encode_line(s, line, n_bytes, false, vector, &kept);
    if (status != CLI_OK) return status;
    if (whit_memory_batch_add(&s->batch, vector, json_string_value(kept), json_string_length(kept), &error) != WHIT_OK)
        status = cli_fail_error(s->call, &error);
    json_decref(kept);
    return status == CLI_OK && s->batch.n_records == s->values->batch ? commit(s) : status;
}

static bool is_blank(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (text[i] != ' ' && text[i] != '\t') return false;
    return true;
}

static int too_long(const struct state *s, const char *path, uint64_t line)
{
    return cli_fail(s->call, CLI_LIMIT, "%s: line %llu has more than %d bytes, the limit: split it", path,
                    (unsigned long long)line, LINE_BYTES - 1);
}

/* Calls `fn` for each line of a file ("-": stdin) that is not blank, without its line feed. Lines that are too long are
 * refused. Returns an exit status. */
static int each_line(struct state *s, const char *path, line_fn *fn)
{
    bool from_stdin = strcmp(path, "-") == 0;
    cli_reader reader = {.bytes = {.limit_bytes = LINE_BYTES + 2 * CLI_READER_BYTES}};
    if (!from_stdin && (reader.fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
        return cli_fail(s->call, CLI_IO, "%s: %s", path, strerror(errno));
    int status = CLI_OK, more = 0;
    const char *line;
    size_t n;
    s->n_lines = 0;
    snprintf(s->where, sizeof s->where, "%s: ", path);
    while (status == CLI_OK && (more = cli_reader_next(&reader, &line, &n)) > 0) {
        s->n_lines++;
        if (*cli_cancelled()) {
            more = -1;
            break;
        }
        if (n >= LINE_BYTES) {
            status = too_long(s, path, s->n_lines);
            break;
        }
        if (n && line[n - 1] == '\r') n--;
        if (!is_blank(line, n)) status = fn(s, line, n);
    }
    if (status == CLI_OK && more < 0) {
        if (*cli_cancelled())
            status = cli_fail(s->call, CLI_INTERRUPTED, "interrupted; %llu records are committed",
                              (unsigned long long)s->n_committed);
        else if (errno == ENOMEM)
            status = too_long(s, path, s->n_lines + 1);
        else
            status = cli_fail(s->call, CLI_IO, "%s: cannot be read: %s", path, strerror(errno));
    }
    if (!from_stdin) close(reader.fd);
    cli_reader_free(&reader);
    return status;
}

/* ---- queries ---------------------------------------------------------------------------------- */

struct asking {
    struct state state;
    whit_memory *memory;
    whit_quat_kernels kernels;
    whit_pool *pool;
    uint64_t n_queries;
};

static int query_line(struct state *s, const char *line, size_t n_bytes)
{
    struct asking *a = (struct asking *)s;
    uint64_t vector[WHIT_MEMORY_WORDS];
    whit_memory_hit hits[WHIT_MEMORY_MAX_HITS];
    uint32_t n_hits;
    whit_error error;
    json_t *kept;
    int status = encode_line(s, line, n_bytes, true, vector, &kept);
    if (status != CLI_OK) return status;
    json_decref(kept);
    a->n_queries++;
    if (whit_memory_search(a->memory, &a->kernels, a->pool, vector, s->values->n_hits, hits, &n_hits, &error) !=
        WHIT_OK)
        return cli_fail_error(s->call, &error);
    for (uint32_t i = 0; i < n_hits; i++) {
        const char *text;
        size_t text_bytes;
        const uint64_t *found;
        whit_memory_at(a->memory, hits[i].record, &text, &text_bytes, &found);
        json_t *row = json_pack("{s:I, s:i, s:I, s:f}", "query", (json_int_t)a->n_queries, "rank", (int)i + 1, "record",
                                (json_int_t)hits[i].record, "score", 1 - 2.0 * hits[i].distance / WHIT_MEMORY_BITS);
        json_object_set_new(row, "text", json_stringn(text, text_bytes));
        char *dump = json_dumps(row, JSON_COMPACT | JSON_REAL_PRECISION(6));
        bool ok = dump && cli_write_json(s->call, dump, strlen(dump)) && cli_write(s->call, "\n", 1);
        free(dump);
        json_decref(row);
        if (!ok) return CLI_IO;
    }
    return CLI_OK;
}

static int ask_memory(cli_call *call, const struct memory_values *values)
{
    struct asking a = {.state = {.call = call, .values = values, .store = call->operands[1]}};
    whit_cpu cpu;
    whit_error error;
    int status = CLI_OK;
    whit_cpu_detect(&cpu);
    if (whit_memory_open(a.state.store, NULL, &a.memory, &error) != WHIT_OK ||
        whit_quat_select(&cpu, getenv("WHIT_CPU"), &a.kernels, &error) != WHIT_OK ||
        whit_encoder_open(NULL, &a.state.encoder, &error) != WHIT_OK ||
        whit_pool_open(values->n_threads, NULL, &a.pool, &error) != WHIT_OK)
        status = cli_fail_error(call, &error);
    if (status == CLI_OK) status = cli_memory_embedder_open(call, values->embed, a.state.store, &a.state.embedder);
    for (size_t i = 2; status == CLI_OK && i < call->n_operands; i++) {
        a.state.n_lines++;
        if (is_blank(call->operands[i], strlen(call->operands[i])))
            status = cli_fail(call, CLI_USAGE, "the query is empty: give a text to compare with");
        else
            status = query_line(&a.state, call->operands[i], strlen(call->operands[i]));
    }
    if (status == CLI_OK && call->n_operands == 2) status = each_line(&a.state, "-", query_line);
    if (a.pool) whit_pool_close(a.pool);
    cli_memory_embedder_close(&a.state.embedder);
    if (a.state.encoder.letters) whit_encoder_close(&a.state.encoder);
    whit_memory_close(a.memory);
    return status;
}

/* Adds a text from the command line. Refuses a blank text, and the name of an existing file as a probable mistake.
 * Returns an exit status. */
static int add_text(struct state *s, const char *text)
{
    struct stat info;
    if (is_blank(text, strlen(text))) return cli_fail(s->call, CLI_USAGE, "an empty text is not stored: give a text");
    if (stat(text, &info) == 0 && S_ISREG(info.st_mode))
        return cli_fail(
            s->call, CLI_USAGE,
            "'%s' is a file: 'whit memory import %s %s' keeps its lines; a text of that name comes from stdin", text,
            s->store, text);
    return add_line(s, text, strlen(text));
}

static int write_records(cli_call *call, const struct memory_values *values, bool import)
{
    struct state s = {.call = call, .values = values, .store = call->operands[1]};
    whit_error error;
    if (whit_encoder_open(NULL, &s.encoder, &error) != WHIT_OK) return cli_fail_error(call, &error);
    int status = cli_memory_embedder_open(call, values->embed, s.store, &s.embedder);
    for (size_t i = 2; status == CLI_OK && i < call->n_operands; i++) {
        s.n_lines += !import;
        status = import ? each_line(&s, call->operands[i], add_line) : add_text(&s, call->operands[i]);
    }
    if (status == CLI_OK && call->n_operands == 2) status = each_line(&s, "-", add_line);
    if (status == CLI_OK) status = commit(&s);
    whit_memory_batch_free(&s.batch);
    cli_memory_embedder_close(&s.embedder);
    whit_encoder_close(&s.encoder);
    return status;
}

static int show_stats(cli_call *call)
{
    whit_memory *memory;
    whit_memory_stats stats;
    whit_error error;
    if (whit_memory_open(call->operands[1], NULL, &memory, &error) != WHIT_OK) return cli_fail_error(call, &error);
    whit_memory_stats_of(memory, &stats);
    whit_memory_close(memory);
    json_t *object =
        json_pack("{s:I, s:i, s:I, s:I, s:I, s:I}", "records", (json_int_t)stats.n_records, "bits", WHIT_MEMORY_BITS,
                  "commits", (json_int_t)stats.n_frames, "text_bytes", (json_int_t)stats.text_bytes, "vector_bytes",
                  (json_int_t)stats.vector_bytes, "file_bytes", (json_int_t)stats.file_bytes);
    return cli_print_json(call, object) ? CLI_OK : CLI_IO;
}

static int run_memory(cli_call *call)
{
    const struct memory_values *values = call->values;
    const char *action = call->operands[0];
    if (strcmp(action, "query") == 0) return ask_memory(call, values);
    if (strcmp(action, "add") == 0) return write_records(call, values, false);
    if (strcmp(action, "import") == 0) return write_records(call, values, true);
    if (strcmp(action, "stats") == 0) return show_stats(call);
    return cli_fail(call, CLI_USAGE, "'%s' is unknown: add, query, import or stats", action);
}

const cli_verb cli_memory_verb = {
    "memory",
    "ACTION STORE [TEXT...]",
    2,
    1000,
    "keep texts and triples, and find the ones most like a query",
    "An associative memory in a file: every text or triple is a hypervector of 8,192 bits, a query finds the "
    "nearest of all. 'add' takes texts, or lines from stdin; 'import' takes files of lines (- is stdin); "
    "'query' takes texts, or lines from stdin, and prints one JSON object for every answer; 'stats' says how much "
    "there is. What was committed survives a crash. A triple with parts left out asks for them.\n"
    "  whit memory import notes.mem notes.txt\n"
    "  whit memory query notes.mem \"what did I wirte about tomatos\" -k 3\n"
    "  whit memory import meant.mem notes.txt --embed bge-small",
    {{"OPTIONS", options, 0}},
    sizeof(struct memory_values),
    &defaults,
    run_memory,
    false,
    "add|query|import|stats",
    0,
};
