/* SPDX-License-Identifier: MIT
 * Implements whit merge, which writes a model whose weights include adapters. */
#include <stdio.h>
#include <string.h>

#include "base/items.h"
#include "cli/flags.h"
#include "cli/outputs.h"
#include "cli/recorded.h"
#include "cli/verbs.h"
#include "model/merge.h"
#include "runtime/adapter.h"

struct merge_values {
    const char *output;
    int codec;
    uint32_t n_threads;
    bool verbose, json;
    cli_model_flags model;
    cli_adapter_flags adapters;
};
static const struct merge_values defaults;
static const char *const codec_names[] = {NULL, "f32", "f16", "bf16", "i8", "i4"};

#define AT(member) offsetof(struct merge_values, member)
static const cli_option options[] = {
    {"-o, --output", CLI_FILE, AT(output), "OUT", "The .ndf to write; replaced when all is written."},
    {"--codec", CLI_CHOICE, AT(codec), "own|f32|f16|bf16|i8|i4",
     "Codec of the matrices that change; own, the default, is theirs, where that can hold the sum (floats, i8)."},
    {"-t, --threads", CLI_COUNT, AT(n_threads), "N", "Threads; 0, the default, is one per physical core.", 0, 1024},
    {"-v, --verbose", CLI_FLAG, AT(verbose), NULL, "Print a line per changed matrix."},
    {"--json", CLI_FLAG, AT(json), NULL, "Print one JSON object."},
    {0},
};

struct listener {
    cli_call *call;
    bool verbose;
    json_t *matrices; /* list for --json; NULL without it */
    uint32_t n;
    double largest; /* the largest error of a matrix so far */
};

static void on_matrix(void *user, const whit_merge_report *r)
{
    struct listener *listener = user;
    const char *from = whit_codec_find(r->from->codec)->name, *to = whit_codec_find(r->to->codec)->name;
    listener->n++;
    if (r->error > listener->largest) listener->largest = r->error;
    if (listener->matrices)
        json_array_append_new(
            listener->matrices,
            json_pack("{s:s, s:s, s:s, s:f}", "name", r->name, "from", from, "to", to, "error", r->error));
    else if (listener->verbose)
        cli_print(listener->call, "%-28s %4s -> %-4s error %.3e\n", r->name, from, to, r->error);
}

/* Returns the path of the .ndf from which a model was opened: the model's own file, a converted copy in the cache, or a
 * file in memory (/proc). */
static const char *path_of(const whit_model *model, char *path, size_t path_bytes)
{
    if (!model->in_memory) return whit_ndf_path(model->file);
    snprintf(path, path_bytes, "/proc/self/fd/%d", whit_ndf_writer_fd(model->in_memory));
    return path;
}

static whit_status merge(const cli_call *call, const whit_model *model, const cli_adapters *adapters,
                         struct listener *listener, whit_error *error)
{
    const struct merge_values *v = call->values;
    char path[64];
    whit_buf command = {0};
    if (!cli_record_command(call, false, NULL, 0, &command))
        return whit_fail_memory(error, "the command's record", command.size_bytes);
    whit_merge_adapter merged[WHIT_MOUNTS_MAX];
    whit_merge_options o = {.codec = codec_names[v->codec],
                            .command = whit_chars(&command),
                            .n_threads = v->n_threads,
                            .progress = cli_progress,
                            .report = on_matrix,
                            .user = listener};
    for (size_t i = 0; i < adapters->n; i++)
        merged[i] = (whit_merge_adapter){&adapters->opened[i]->weights, adapters->mounts[i].scale};
    whit_ndf_writer *writer = NULL;
    whit_status status = whit_ndf_writer_open(v->output, NULL, NULL, &writer, error);
    if (status == WHIT_OK)
        status = whit_merge(&model->weights, path_of(model, path, sizeof path), merged, adapters->n, &o, writer, error);
    whit_ndf_writer_close(writer);
    whit_buf_free(&command);
    return status;
}

static int run_merge(cli_call *call)
{
    const struct merge_values *v = call->values;
    whit_model *model = NULL;
    cli_adapters adapters = {0};
    whit_error error = {0};
    struct listener listener = {.call = call, .verbose = v->verbose};
    if (!v->output || !v->adapters.adapters.n)
        return cli_fail(call, CLI_USAGE, "-m MODEL, --adapter A and -o OUT.ndf are needed");
    const cli_named_file output = {"-o", v->output}, source = {"-m", v->model.path};
    int status = cli_check_apart(call, output, &source, 1);
    if (status == CLI_OK) status = cli_check_output(call, v->output, CLI_OUTPUT_MODEL);
    if (status == CLI_OK) status = cli_open_flagged_model(call, &v->model, &model);
    if (status == CLI_OK) status = cli_open_adapters(call, &v->adapters, model, &adapters);
    for (size_t i = 0; status == CLI_OK && i < adapters.n; i++) {
        cli_named_file adapter = {"--adapter", NULL};
        const void *address;
        size_t n_bytes;
        if (whit_adapter_mapping(adapters.opened[i], &address, &n_bytes, &adapter.path))
            status = cli_check_apart(call, output, &adapter, 1);
    }
    if (status == CLI_OK && v->json) listener.matrices = json_array();
    if (status == CLI_OK && merge(call, model, &adapters, &listener, &error) != WHIT_OK)
        status = *cli_cancelled() ? cli_fail(call, CLI_INTERRUPTED, "interrupted; nothing was written")
                                  : cli_fail_error(call, &error);
    cli_progress_end();
    if (status == CLI_OK && v->json)
        cli_print_json(call,
                       json_pack("{s:o, s:f, s:O}", "output", cli_json_path(v->output), "largest_error",
                                 listener.largest, "matrices", listener.matrices));
    else if (status == CLI_OK)
        cli_note("%s: %u matrices changed; stored within %.4f %% of the sum (root mean square) or better", v->output,
                 listener.n, 100 * listener.largest);
    json_decref(listener.matrices);
    cli_close_adapters(&adapters);
    whit_model_close(model);
    return status;
}

const cli_verb cli_merge_verb = {
    "merge",
    "",
    0,
    0,
    "bake adapters into a model",
    "Writes the model with W + scale B A in place of each matrix W that an adapter changes. Matrices of floats and of "
    "i8 "
    "are stored in their own codec again; signs, trits and other low-bit codes cannot hold the sum, so such a model "
    "is refused unless --codec says how to store what changes. The loss of that rounding is told.\n"
    "  whit merge -m model.ndf --adapter verse.ndf:0.8 -o merged.ndf",
    {{"OPTIONS", options, 0}, {"MODEL", cli_model_options, AT(model)}, {"ADAPTERS", cli_adapter_options, AT(adapters)}},
    sizeof(struct merge_values),
    &defaults,
    run_merge,
};
