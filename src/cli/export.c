/* SPDX-License-Identifier: MIT
 * whit export: any readable model as a GGUF file, for other programs. */
#include "cli/names.h"
#include "cli/verbs.h"
#include "model/export_gguf.h"

struct export_values {
    const char *output, *coded, *floats;
    bool no_tokenizer;
};
static const struct export_values defaults;

#define AT(member) offsetof(struct export_values, member)
static const cli_option options[] = {
    {"-o, --output", CLI_FILE, AT(output), "OUT", "The GGUF file to write; replaced when all is written.", 0, 0},
    {"--type", CLI_TEXT, AT(coded), "TYPE",
     "Type of quantised matrices (tq1_0 tq2_0 q8_0 q1_0 f16 bf16 f32); by default the smallest that holds each "
     "exactly.",
     0, 0},
    {"--float-type", CLI_TEXT, AT(floats), "TYPE", "Type of float matrices (f16 bf16 f32); by default as they are.", 0,
     0},
    {"--no-tokenizer", CLI_FLAG, AT(no_tokenizer), NULL, "Leave the tokenizer out.", 0, 0},
    {0},
};

static int run(cli_call *call)
{
    const struct export_values *values = call->values;
    const char *path = call->operands[0];
    char found[CLI_PATH_BYTES];
    if (!values->output) return cli_fail(call, CLI_USAGE, "where to? name a file with -o");
    whit_export_options export = {.coded = values->coded,
                                  .floats = values->floats,
                                  .no_tokenizer = values->no_tokenizer,
                                  .progress = cli_progress};
    whit_source source;
    whit_error error;
    cli_guard_likely(path);
    if (cli_find_model(path, found, &error) != WHIT_OK || whit_source_open(found, NULL, &source, &error) != WHIT_OK)
        return cli_fail_error(call, &error);
    whit_status status = whit_export_gguf(&source, &export, values->output, &error);
    cli_progress_end();
    whit_source_close(&source);
    if (status == WHIT_OK) return CLI_OK;
    return *cli_cancelled() ? cli_fail(call, CLI_INTERRUPTED, "interrupted; nothing was written")
                            : cli_fail_error(call, &error);
}

const cli_verb cli_export_verb = {
    "export",
    "SRC",
    1,
    1,
    "write a model as a GGUF file, for other programs",
    "Reads an .ndf, a GGUF file or a Hugging Face folder. Nothing is rounded: where no type holds a "
    "matrix exactly, the export is refused with its name and the reason.\n"
    "  whit export model.ndf -o model.gguf",
    {{"OPTIONS", options, 0}},
    sizeof(struct export_values),
    &defaults,
    run,
};
