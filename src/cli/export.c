/* SPDX-License-Identifier: MIT
 * Implements whit export, which writes any readable model as a GGUF file for other programs. */
#include <string.h>

#include "base/phrase.h"
#include "cli/flags.h"
#include "cli/names.h"
#include "cli/outputs.h"
#include "cli/rounding.h"
#include "cli/verbs.h"
#include "format/gguf.h"
#include "format/ndf.h"
#include "kernels/codec.h"
#include "model/export_gguf.h"

struct export_values {
    const char *output, *coded, *floats;
    cli_list calib;
    uint32_t max_tokens, n_threads;
    bool no_tokenizer, verbose;
};
static const struct export_values defaults = {.max_tokens = CLI_CALIB_TOKENS};

#define AT(member) offsetof(struct export_values, member)
static const cli_option options[] = {
    {"-o, --output", CLI_FILE, AT(output), "OUT", "The GGUF file to write; replaced when all is written.", 0, 0},
    {"--type", CLI_TEXT, AT(coded), "TYPE",
     "Type of the matrices of the layers: q8_0 q6_k q5_k q4_k q4_0 iq4_nl iq4_xs q3_k q2_k iq2_s iq2_xs iq2_xxs q2_0 "
     "tq2_0 tq1_0 q1_0 f16 "
     "bf16 f32. A "
     "matrix that it does not hold exactly is rounded again. By default the smallest type that holds each matrix "
     "exactly; with --calib, q2_0 for trits and signs and q2_k for four levels.",
     0, 0},
    {"--calib", CLI_REPEAT, AT(calib), "FILE",
     "Round with error feedback over this text, as whit compress does; may be given several times. Without it each "
     "weight goes to the nearest level.",
     0, 0},
    CLI_CALIB_TOKENS_OPTION(AT(max_tokens)),
    {"--float-type", CLI_TEXT, AT(floats), "TYPE", "Type of float matrices (f16 bf16 f32); by default as they are.", 0,
     0},
    {"--no-tokenizer", CLI_FLAG, AT(no_tokenizer), NULL, "Leave the tokenizer out.", 0, 0},
    {"-t, --threads", CLI_COUNT, AT(n_threads), "N",
     "Threads; 0, the default, is one per physical core. The file does not depend on it.", 0, 1024},
    {"-v, --verbose", CLI_FLAG, AT(verbose), NULL, "Print a line per rounded matrix.", 0, 0},
    {0},
};

/* Returns the GGUF type that loses least for the layers' most frequent codec; NULL if the file is not a low-bit
 * .ndf. */
static const char *closest_type(const char *path)
{
    static const char *const types[] = {"q2_0", "q2_k"};
    double weights[2] = {0};
    whit_ndf *file;
    if (whit_ndf_open(path, NULL, &file, NULL) != WHIT_OK) return NULL;
    for (uint32_t i = 0; i < whit_ndf_n_tensors(file); i++) {
        whit_tensor tensor;
        whit_ndf_tensor(file, i, &tensor);
        const char *closest = whit_export_closest(tensor.type.codec);
        if (!closest || strncmp(whit_ndf_tensor_name(file, i), "layers.", 7) != 0) continue;
        weights[strcmp(closest, types[0]) != 0] += (double)tensor.type.n_rows * tensor.type.n_cols;
    }
    whit_ndf_close(file);
    if (weights[0] + weights[1] == 0) return NULL;
    return weights[0] < weights[1] ? types[1] : types[0];
}

/* Fails, because the file's corrections cannot be exported. closest: the GGUF type that loses least; NULL: unknown. */
static whit_status refuse_corrections(const char *name, const char *closest, whit_error *error)
{
    if (!closest)
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "%s: has corrections added to its codes, which no GGUF type can store exactly; with --calib "
                         "TEXT it is rounded to the type that --type names",
                         name);
    return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                     "%s: has corrections added to its codes, which no GGUF type can store exactly; with --calib "
                     "TEXT it is rounded to %s, which loses least, or --type names another type",
                     name, closest);
}

/* Returns whether a matrix of the layers is stored as floats, so that exporting to a type of coded matrices means
 * rounding. */
static bool has_float_layers(const whit_source *source)
{
    for (uint32_t i = 0; i < source->n_tensors; i++) {
        const whit_source_tensor *tensor = &source->tensors[i];
        if (tensor->type.layout == WHIT_LAYOUT_TILE16 && strncmp(tensor->name, "layers.", 7) == 0 &&
            whit_codec_find(tensor->type.codec)->is_float)
            return true;
    }
    return false;
}

/* Returns whether the file could be opened if its corrections were added to the values; it is called when it could not
 * be opened otherwise. */
static bool has_corrections(const char *path)
{
    whit_source source;
    whit_error ignored;
    if (whit_source_open_values(path, NULL, &source, &ignored) != WHIT_OK) return false;
    whit_source_close(&source);
    return true;
}

/* Exports without rounding. *inexact: the requested type is impossible without rounding, but may be possible with
 * it. */
static whit_status export_file(const char *path, const whit_export_options *wanted, const char *output, bool *inexact,
                               whit_error *error)
{
    whit_source source;
    whit_status status = whit_source_open(path, NULL, &source, error);
    *inexact = status == WHIT_ERROR_UNSUPPORTED; /* WHIT_ERROR_UNSUPPORTED: the file may have corrections */
    if (*inexact && !(wanted->coded && whit_compress_knows_form(wanted->coded)) && has_corrections(path))
        return refuse_corrections(wanted->name, closest_type(path), error);
    WHIT_TRY(status);
    *inexact = wanted->coded && has_float_layers(&source);
    if (!*inexact || !whit_compress_knows_form(wanted->coded)) {
        status = whit_export_gguf(&source, wanted, output, error);
        *inexact = status == WHIT_ERROR_UNSUPPORTED;
    }
    whit_source_close(&source);
    return status;
}

/* Rounds the matrices to the requested type in a file beside OUT, and exports that file. */
static whit_status export_rounded(const struct export_values *values, const char *path,
                                  const whit_export_options *wanted, cli_rounding *rounding, whit_error *error)
{
    whit_source source;
    const char *architecture;
    WHIT_TRY(whit_source_open_values(path, NULL, &source, error));
    whit_status status = whit_export_architecture(&source, &architecture, error); /* checked first: the rounding takes
                                                                                   * hours */
    if (status == WHIT_OK && !values->coded)
        cli_note("%s: rounded to %s, which loses least of the types of two to three bits; --type names another",
                 wanted->name, wanted->coded);
    if (status == WHIT_OK) status = cli_round(rounding, &source, error);
    whit_source_close(&source);
    if (status == WHIT_OK) {
        whit_export_options exact = *wanted;
        bool inexact;
        exact.coded = NULL; /* the rounded matrices already have types of GGUF */
        status = export_file(rounding->path, &exact, values->output, &inexact, error);
    }
    cli_rounding_end(rounding);
    return status;
}

/* Refuses outputs that would replace an input, that cannot be written, or whose suffix is that of another format, and
 * calibration files that are not text. Returns an exit status. */
static int check_output(cli_call *call, const struct export_values *values, const char *path)
{
    const cli_named_file output = {"-o", values->output}, source = {"SRC", path};
    int status = cli_check_apart(call, output, &source, 1);
    for (size_t i = 0; status == CLI_OK && i < values->calib.n; i++)
        status = cli_check_apart(call, output, &(cli_named_file){"--calib", values->calib.items[i]}, 1);
    for (size_t i = 0; status == CLI_OK && i < values->calib.n; i++)
        status = cli_check_text(call, values->calib.items[i]);
    return status == CLI_OK ? cli_check_output(call, values->output, CLI_OUTPUT_GGUF) : status;
}

/* Prints the size of the written file and the type of most of its weights. */
static void say_what_was_written(const char *path)
{
    uint64_t bytes[WHIT_GGML_KIND_COUNT] = {0}, all_bytes = 0, file_bytes;
    char size[32];
    int largest = 0;
    whit_gguf *gguf;
    if (!cli_file_size(path, &file_bytes) || whit_gguf_open(path, NULL, &gguf, NULL) != WHIT_OK) return;
    for (size_t i = 0; i < gguf->n_tensors; i++) {
        const whit_gguf_tensor *tensor = &gguf->tensors[i];
        all_bytes += tensor->size_bytes;
        bytes[tensor->kind] += tensor->size_bytes;
        if (bytes[tensor->kind] > bytes[largest]) largest = (int)tensor->kind;
    }
    const double share = all_bytes ? 100.0 * (double)bytes[largest] / (double)all_bytes : 0;
    cli_note("%s: %s, GGUF, %zu tensors, %.0f %% of their bytes %s", path, cli_bytes(file_bytes, size), gguf->n_tensors,
             share, whit_ggml_kind_info((whit_ggml_kind)largest)->name);
    whit_gguf_close(gguf);
}

static int run_export(cli_call *call)
{
    const struct export_values *values = call->values;
    char found[CLI_PATH_BYTES];
    if (!values->output) return cli_fail(call, CLI_USAGE, "no output given: name a file with -o");
    bool rounds = values->coded && whit_compress_knows_form(values->coded);
    if (values->calib.n && values->coded && !rounds)
        return cli_fail(call, CLI_USAGE, "--calib is for rounding to low bits, not to %s: leave it out", values->coded);
    const int checked = check_output(call, values, call->operands[0]);
    if (checked != CLI_OK) return checked;
    whit_export_options export = {.coded = values->coded,
                                  .floats = values->floats,
                                  .name = found,
                                  .no_tokenizer = values->no_tokenizer,
                                  .progress = cli_progress};
    cli_rounding rounding = {.output = values->output,
                             .codec = values->coded,
                             .calib = &values->calib,
                             .max_tokens = values->max_tokens,
                             .n_threads = values->n_threads,
                             .verbose = values->verbose};
    whit_error error;
    cli_guard_likely(call->operands[0]);
    if (cli_find_model(call->operands[0], found, &error) != WHIT_OK) return cli_fail_error(call, &error);
    bool inexact = false;
    const char *closest = values->calib.n && !values->coded ? closest_type(found) : NULL;
    if (values->calib.n && !values->coded && !closest)
        return cli_fail(
            call, CLI_USAGE,
            "--calib is for rounding, and %s is not an .ndf with low-bit codes, which would set the type: name a "
            "type with --type, as in --type q2_k",
            call->operands[0]);
    whit_status status = export_file(found, &export, values->output, &inexact, &error);
    if (closest && !inexact && status == WHIT_OK) cli_note("nothing was rounded: --calib was not needed");
    if (closest && inexact) {
        export.coded = rounding.codec = closest;
        rounds = true;
    }
    if (inexact && rounds) status = export_rounded(values, found, &export, &rounding, &error);
    cli_progress_end();
    if (status != WHIT_OK)
        return *cli_cancelled() ? cli_fail(call, CLI_INTERRUPTED, "interrupted; nothing was written")
                                : cli_fail_error(call, &error);
    cli_rounding_report(&rounding);
    say_what_was_written(values->output);
    return CLI_OK;
}

const cli_verb cli_export_verb = {
    "export",
    "SRC",
    1,
    1,
    "write a model as a GGUF file, for other programs",
    "Reads an .ndf, a GGUF file or a Hugging Face folder. Without --type nothing is rounded: each matrix gets the "
    "smallest type that holds it exactly, and where no type does, the export is refused with its name and the reason. "
    "With --type a matrix that the type does not hold is rounded to it, and the loss is printed. With --calib alone, a "
    "file that no type holds is rounded to q2_0 if its codes are trits or signs, to q2_k if they have four levels.\n"
    "  whit export model.ndf -o model.gguf\n"
    "  whit export small.ndf --calib text.txt -o small.gguf",
    {{"OPTIONS", options, 0}},
    sizeof(struct export_values),
    &defaults,
    run_export,
};
