/* SPDX-License-Identifier: MIT
 * Implements whit convert, which converts a readable source to an .ndf. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/phrase.h"
#include "cli/convert_adapter.h"
#include "base/items.h"
#include "cli/flags.h"
#include "cli/names.h"
#include "cli/outputs.h"
#include "cli/program.h"
#include "cli/recorded.h"
#include "cli/tales.h"
#include "cli/verbs.h"
#include "kernels/codec.h"
#include "model/convert.h"
#include "model/fastest_ternary.h"

struct convert_values {
    const char *output, *embd, *head, *model, *name, *family;
    int ternary;
    uint32_t split_mb;
    cli_list overrides;
    bool verbose, json, append, strict;
};
static const struct convert_values defaults = {0};
static const char *const ternary_names[] = {NULL, "t2", "q2", "auto"};
enum { TERNARY_AUTO = 3 };

#define AT(member) offsetof(struct convert_values, member)
static const cli_option options[] = {
    {"-o, --output", CLI_FILE, AT(output), "OUT", "The .ndf to write; replaced when all is written."},
    {"--codec", CLI_CHOICE, AT(ternary), "t5|t2|q2|auto",
     "How ternary matrices lie: t5 (1.6 bits), the default, where it can hold them; t2, two bits; q2, two planes of "
     "signs, for --act q2; auto measures which one this machine decodes faster."},
    {"--embd", CLI_TEXT, AT(embd), "CODEC", "Store the embedding in this codec (f32 f16 bf16 i8 i4), with loss."},
    {"--head", CLI_TEXT, AT(head), "CODEC",
     "Store the head in this codec (also i8s), with loss; counts for both where they are one."},
    {"--split-max-size", CLI_COUNT, AT(split_mb), "MB", "Tensor data per file; 0, the default, writes one file."},
    {"--family", CLI_FILE, AT(family), "FILE",
     "The forward pass as a program of the array language, which becomes a part of OUT, instead of the family's own."},
    CLI_OVERRIDE_OPTION(AT(overrides)),
    {"--strict", CLI_FLAG, AT(strict), NULL,
     "Refuse fields of a source that are not known, those of trainers and publishers too, which are else noted."},
    {"--for", CLI_FILE, AT(model), "MODEL", "The model that an adapter (SRC) is for."},
    {"--append", CLI_FLAG, AT(append), NULL, "Write the adapter into the model's own .ndf, in place of -o."},
    {"--name", CLI_TEXT, AT(name), "NAME", "The adapter's name; by default the output's."},
    {"-v, --verbose", CLI_FLAG, AT(verbose), NULL, "Print a line per tensor."},
    {"--json", CLI_FLAG, AT(json), NULL, "Print one JSON object."},
    {0},
};

struct listener {
    cli_call *call;
    bool verbose;
    json_t *tensors; /* list for --json; NULL without it */
    uint64_t total_bytes;
    uint32_t n_ternary;
};

static void describe_type(const whit_tensor_type *type, char *text, size_t text_bytes)
{
    const whit_codec_info *codec = whit_codec_find(type->codec);
    const char *name = codec ? codec->name : "?";
    snprintf(text, text_bytes, type->group ? "%s/%u" : "%s", name, type->group);
}

static void on_tensor(void *user, const whit_convert_tensor_report *report)
{
    struct listener *listener = user;
    char from[24], to[24];
    describe_type(report->from, from, sizeof from);
    describe_type(report->to, to, sizeof to);
    listener->total_bytes += report->bytes;
    const uint8_t codec = report->to->codec;
    listener->n_ternary += codec == WHIT_CODEC_T2 || codec == WHIT_CODEC_T5 || codec == WHIT_CODEC_Q2;
    if (listener->tensors)
        json_array_append_new(listener->tensors,
                              json_pack("{s:s, s:I, s:I, s:s, s:s, s:I}", "name", report->name, "rows",
                                        (json_int_t)report->to->n_rows, "columns", (json_int_t)report->to->n_cols,
                                        "from", from, "to", to, "bytes", (json_int_t)report->bytes));
    else if (listener->verbose)
        cli_print(listener->call, "[%u/%u] %-28s %6u x %-6u %6s -> %-6s %10.3f MB\n", report->i + 1, report->n,
                  report->name, report->to->n_rows, report->to->n_cols, from, to, (double)report->bytes / 1e6);
}

/* Returns whether no option changes codecs, metadata, the number of files or the form of output. */
static bool is_plain(const struct convert_values *values)
{
    return !values->ternary && !values->embd && !values->head && !values->split_mb && !values->family &&
        !values->json && !values->overrides.n;
}

static int write_tales(cli_call *call, const char *output)
{
    whit_error error;
    if (cli_tales_write(output, &error) != WHIT_OK) return cli_fail_error(call, &error);
    cli_note("%s: contains the built-in model, tales", output);
    return CLI_OK;
}

static int run_convert(cli_call *call)
{
    const struct convert_values *values = call->values;
    const char *path = call->operands[0];
    char found[CLI_PATH_BYTES];
    if (values->model || cli_is_adapter(path))
        return cli_convert_adapter(call,
                                   &(cli_adapter_conversion){.path = path,
                                                             .model = values->model,
                                                             .output = values->output,
                                                             .append = values->append,
                                                             .name = values->name,
                                                             .json = values->json});
    if (values->append || values->name)
        return cli_fail(call, CLI_USAGE, "--append and --name are for adapters (--for MODEL)");
    if (!values->output) return cli_fail(call, CLI_USAGE, "no output given: -o OUT.ndf");
    const int checked = cli_check_output(call, values->output, CLI_OUTPUT_MODEL);
    if (checked != CLI_OK) return checked;
    if (cli_is_tales(path) && is_plain(values) && cli_find_model(path, found, NULL) != WHIT_OK)
        return write_tales(call, values->output);

    struct listener listener = {.call = call, .verbose = values->verbose};
    whit_buf command = {0};
    whit_convert_options convert = {.ternary = ternary_names[values->ternary],
                                    .embd = values->embd,
                                    .head = values->head,
                                    .progress = cli_progress,
                                    .report = on_tensor,
                                    .user = &listener};
    whit_ndf_write_options write = {.max_data_bytes = (uint64_t)values->split_mb * 1000000};
    whit_source source = {0};
    whit_ndf_writer *writer = NULL;
    whit_error error;
    if (values->ternary == TERNARY_AUTO) {
        whit_ternary_speeds speeds;
        if (whit_ternary_measure(getenv("WHIT_CPU"), NULL, &speeds, &error) != WHIT_OK)
            return cli_fail_error(call, &error);
        convert.ternary = whit_ternary_faster(&speeds);
        cli_note("%s: this machine decodes %.0f billion weights a second of t2, %.0f of t5", convert.ternary,
                 speeds.t2 * 1e-9, speeds.t5 * 1e-9);
    }
    if (whit_convert_options_check(&convert, &error) != WHIT_OK) return cli_fail_error(call, &error);
    cli_guard_likely(path);
    cli_text family = {0};
    int status = values->family ? cli_read_family(call, values->family, &family) : CLI_OK;
    if (status != CLI_OK) return status;
    const cli_effective measured = {"--codec", convert.ternary};
    if (!cli_record_command(call, false, &measured, values->ternary == TERNARY_AUTO, &command)) {
        free(family.data);
        return cli_fail(call, CLI_LIMIT, "not enough memory for the record of the command");
    }
    convert.command = whit_chars(&command);
    const whit_family_program program = {values->family, family.data};
    const whit_source_options wanted = {.program = family.data ? &program : NULL,
                                        .is_strict = values->strict,
                                        .overrides = values->overrides.items,
                                        .n_overrides = values->overrides.n};
    if (cli_find_model(path, found, &error) != WHIT_OK ||
        whit_source_open_as(found, &wanted, NULL, &source, &error) != WHIT_OK) {
        status = family.data ? cli_family_fail(call, values->family, &family, &error) : cli_fail_error(call, &error);
        free(family.data);
        whit_buf_free(&command);
        return status;
    }

    if (values->json) listener.tensors = json_array();
    if (whit_ndf_writer_open(values->output, &write, NULL, &writer, &error) != WHIT_OK ||
        whit_convert(&source, &convert, writer, &error) != WHIT_OK) {
        status = *cli_cancelled() ? cli_fail(call, CLI_INTERRUPTED, "interrupted; nothing was written")
                                  : cli_fail_error(call, &error);
    } else {
        cli_progress_end();
        cli_print_notes(whit_chars(&source.notes), source.notes.size_bytes);
        if (values->ternary && !listener.n_ternary)
            cli_note("--codec %s changes nothing: the model has no ternary matrices; 'whit compress' rounds others",
                     ternary_names[values->ternary]);
        if (values->json)
            cli_print_json(call,
                           json_pack("{s:o, s:o, s:I, s:O}", "source", cli_json_path(path), "output",
                                     cli_json_path(values->output), "tensor_bytes", (json_int_t)listener.total_bytes,
                                     "tensors", listener.tensors));
        else
            cli_note("%s: %u tensors, %.1f MB", values->output, source.n_tensors, (double)listener.total_bytes / 1e6);
    }
    json_decref(listener.tensors);
    whit_ndf_writer_close(writer);
    whit_source_close(&source);
    free(family.data);
    whit_buf_free(&command);
    return status;
}

const cli_verb cli_convert_verb = {
    "convert",
    "SRC",
    1,
    1,
    "write a readable source as an .ndf",
    "Reads a GGUF file, a Hugging Face folder, or an .ndf to change its codecs. The conversion is "
    "lossless unless --embd or --head name a codec: types "
    "that "
    "the .ndf does not know are stored in one that holds them exactly. What no graph could run is "
    "refused here, not later.\n"
    "With --for, SRC is an adapter: a LoRA folder of Hugging Face's PEFT (adapter_config.json and "
    "adapter_model.safetensors), whose factors are rounded to int8 by rows, or an .ndf adapter to be put "
    "into the model's file.\n"
    "  whit convert model.gguf -o model.ndf\n"
    "  whit convert tales -o tales.ndf\n"
    "  whit convert lora-folder --for model.ndf -o verse.ndf",
    {{"OPTIONS", options, 0}},
    sizeof(struct convert_values),
    &defaults,
    run_convert,
};
