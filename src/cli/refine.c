/* SPDX-License-Identifier: MIT
 * Implements whit refine, which improves a GGUF file: it rounds the original model again to the same types with less
 * error. */
#include <string.h>

#include "cli/flags.h"
#include "cli/names.h"
#include "cli/outputs.h"
#include "cli/rounding.h"
#include "cli/verbs.h"
#include "format/gguf.h"
#include "model/export_gguf.h"
#include "compress/levels.h"

struct refine_values {
    const char *output, *original;
    cli_list calib;
    uint32_t max_tokens, n_threads;
    bool verbose;
};
static const struct refine_values defaults = {.max_tokens = CLI_CALIB_TOKENS};

#define AT(member) offsetof(struct refine_values, member)
static const cli_option options[] = {
    {"-o, --output", CLI_FILE, AT(output), "OUT", "The GGUF file to write; replaced when all is written.", 0, 0},
    {"--original", CLI_FILE, AT(original), "SRC", "The model in full precision: a folder, a GGUF file or an .ndf.", 0,
     0},
    {"--calib", CLI_REPEAT, AT(calib), "FILE",
     "Calibration text: of the kind that the model is for, 250 kB or more; may be given several times.", 0, 0},
    CLI_CALIB_TOKENS_OPTION(AT(max_tokens)),
    {"-t, --threads", CLI_COUNT, AT(n_threads), "N",
     "Threads; 0, the default, is one per physical core. The file does not depend on it.", 0, 1024},
    {"-v, --verbose", CLI_FLAG, AT(verbose), NULL, "Print a line per matrix.", 0, 0},
    {0},
};

/* Checks before the work, which takes hours, that the file is a GGUF file in one part, and that refining could change
 * it at all. */
static whit_status check_refinable(const whit_source *file, const whit_source *original, whit_error *error)
{
    uint32_t n_known = 0, n_alike = 0;
    whit_gguf *gguf;
    if (whit_gguf_open(file->path, NULL, &gguf, error) != WHIT_OK)
        return whit_fail(
            error, WHIT_ERROR_UNSUPPORTED,
            "%s: is not a GGUF file, the only format that refine reads; 'whit export %s --type q2_k --calib TEXT -o "
            "OUT.gguf' makes one of the original",
            file->path, original->path);
    const size_t n_files = gguf->n_files;
    whit_gguf_close(gguf);
    if (n_files != 1)
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "%s: is a file of a split set, which refine does not read: join its files into one first",
                         file->path);
    for (uint32_t i = 0; i < file->n_tensors; i++) {
        const whit_source_tensor *tensor = &file->tensors[i], *other = whit_source_find(original, tensor->name);
        if (strncmp(tensor->name, "layers.", 7) != 0 || !whit_levels_know(&tensor->type) || tensor->is_recoded)
            continue;
        n_known++;
        n_alike += other && other->type.n_rows == tensor->type.n_rows && other->type.n_cols == tensor->type.n_cols;
    }
    if (!n_known)
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "%s: no matrix of its layers has a type that can be refined (q2_k and the like)", file->path);
    if (n_alike < n_known)
        return whit_fail(
            error, WHIT_ERROR_UNSUPPORTED,
            "%s: %u of the %u matrices to refine are missing in %s, or have another size in it: --original is "
            "the model that the file was made from",
            file->path, n_known - n_alike, n_known, original->path);
    return WHIT_OK;
}

static whit_status refine_file(cli_rounding *rounding, const whit_source *file, const char *original,
                               uint32_t *n_replaced, whit_error *error)
{
    whit_source source, rounded;
    WHIT_TRY(whit_source_open_values(original, NULL, &source, error));
    whit_status status = check_refinable(file, &source, error);
    if (status == WHIT_OK) status = cli_round(rounding, &source, error);
    whit_source_close(&source);
    if (status == WHIT_OK) status = whit_source_open(rounding->path, NULL, &rounded, error);
    if (status == WHIT_OK) {
        status = whit_export_gguf_like(&rounded, file, rounding->output, n_replaced, error);
        whit_source_close(&rounded);
    }
    return status;
}

static int run_refine(cli_call *call)
{
    const struct refine_values *values = call->values;
    char path[CLI_PATH_BYTES], original[CLI_PATH_BYTES];
    whit_source file;
    whit_error error;
    if (!values->output) return cli_fail(call, CLI_USAGE, "no output given: name a file with -o");
    if (!values->original)
        return cli_fail(call, CLI_USAGE, "no original given: --original SRC, the model that the file was made from");
    if (!values->calib.n)
        return cli_fail(call, CLI_USAGE, "no text given: --calib FILE, a text of the kind that the model is for");
    const cli_named_file output = {"-o", values->output}, source = {"--original", values->original};
    int checked = cli_check_apart(call, output, &source, 1);
    for (size_t i = 0; checked == CLI_OK && i < values->calib.n; i++)
        checked = cli_check_apart(call, output, &(cli_named_file){"--calib", values->calib.items[i]}, 1);
    for (size_t i = 0; checked == CLI_OK && i < values->calib.n; i++)
        checked = cli_check_text(call, values->calib.items[i]);
    if (checked == CLI_OK) checked = cli_check_output(call, values->output, CLI_OUTPUT_GGUF);
    if (checked != CLI_OK) return checked;
    cli_guard_likely(values->original);
    if (cli_find_model(call->operands[0], path, &error) != WHIT_OK ||
        cli_find_model(values->original, original, &error) != WHIT_OK ||
        whit_source_open(path, NULL, &file, &error) != WHIT_OK)
        return cli_fail_error(call, &error);
    uint32_t n_replaced = 0;
    cli_rounding rounding = {.output = values->output,
                             .codec = "f16", /* matrices that are not refined are copied from the file unchanged */
                             .like = &file,
                             .calib = &values->calib,
                             .max_tokens = values->max_tokens,
                             .n_threads = values->n_threads,
                             .verbose = values->verbose};
    whit_status status = refine_file(&rounding, &file, original, &n_replaced, &error);
    cli_rounding_end(&rounding);
    whit_source_close(&file);
    cli_progress_end();
    if (status != WHIT_OK)
        return *cli_cancelled() ? cli_fail(call, CLI_INTERRUPTED, "interrupted; nothing was written")
                                : cli_fail_error(call, &error);
    cli_rounding_report(&rounding);
    cli_note("%s: %u tensors were replaced, all others are unchanged from %s", values->output, n_replaced, path);
    return CLI_OK;
}

const cli_verb cli_refine_verb = {
    "refine",
    "FILE.gguf",
    1,
    1,
    "make a GGUF file better, in the same types and size",
    "Rounds the original again to the types that the matrices of the layers have in FILE, with error feedback over a "
    "calibration text, and writes FILE with these codes and scales in place of its own. Every program that ran FILE "
    "runs the result. Refined are Q6_K, Q5_K, Q4_K, Q4_0, IQ4_NL, IQ4_XS, Q3_K, Q2_K, IQ2_S, IQ2_XS, IQ2_XXS, Q2_0, "
    "TQ2_0, TQ1_0 and Q1_0; "
    "tensors of other "
    "types stay as they are. whit compare tells the difference.\n"
    "  whit refine model-Q2_K.gguf --original model-f16.gguf --calib text.txt -o better-Q2_K.gguf",
    {{"OPTIONS", options, 0}},
    sizeof(struct refine_values),
    &defaults,
    run_refine,
};
