/* SPDX-License-Identifier: MIT */
#include "cli/outputs.h"

#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "cli/names.h"

static const struct {
    const char *what;
    const char *endings[4]; /* suffixes of the format; messages suggest the first one */
} kinds[] = {
    [CLI_OUTPUT_MODEL] = {"an .ndf", {".ndf"}},
    [CLI_OUTPUT_GGUF] = {"a GGUF file", {".gguf"}},
    [CLI_OUTPUT_FLOATS] = {"float32 numbers without a header", {".f32", ".bin"}},
    [CLI_OUTPUT_VECTORS] = {"an .npy or lines of JSON", {".npy", ".jsonl", ".json", ".txt"}},
    [CLI_OUTPUT_PAGE] = {"a page", {".html"}},
    [CLI_OUTPUT_PICTURE] = {"a picture", {".svg"}},
    [CLI_OUTPUT_LOG] = {"lines of JSON", {".jsonl", ".json", ".log", ".txt"}},
    [CLI_OUTPUT_OWN] = {"a file of its own form", {".run"}},
};

/* Suffixes of known formats. A file with another suffix may have any format. */
static const char *const promises[] = {".ndf", ".gguf", ".safetensors", ".onnx",  ".pt",  ".pth",
                                       ".npy", ".npz",  ".html",        ".svg",   ".csv", ".json",
                                       ".md",  ".txt",  ".jsonl",       ".jinja", ".gbnf"};

static bool ends_in(const char *path, const char *ending)
{
    const size_t n = strlen(path), m = strlen(ending);
    return n > m && strcasecmp(path + n - m, ending) == 0;
}

static bool is_of_kind(const char *path, cli_output_kind kind)
{
    for (size_t i = 0; i < 4 && kinds[kind].endings[i]; i++)
        if (ends_in(path, kinds[kind].endings[i])) return true;
    return false;
}

/* Refuses a file name with the suffix of another format. For .gguf in place of .ndf and the reverse, the message names
 * the verb that makes this format. Returns an exit status. */
static int refuse_ending(cli_call *call, const char *path, size_t n_stem, cli_output_kind kind)
{
    const char *verb = call->verb->name, *what = kinds[kind].what, *proposed = kinds[kind].endings[0];
    const int n = (int)n_stem;
    if (kind == CLI_OUTPUT_MODEL && ends_in(path, ".gguf"))
        return cli_fail(
            call, CLI_USAGE,
            "%s: %s writes %s: name the output %.*s.ndf; 'whit export %.*s.ndf -o %s' then makes a GGUF file of a "
            "model",
            path, verb, what, n, path, n, path, path);
    if (kind == CLI_OUTPUT_GGUF && ends_in(path, ".ndf"))
        return cli_fail(call, CLI_USAGE,
                        "%s: %s writes %s: name the output %.*s.gguf; 'whit convert SRC -o %s' writes an .ndf", path,
                        verb, what, n, path, path);
    return cli_fail(call, CLI_USAGE, "%s: %s writes %s: name the output %.*s%s", path, verb, what, n, path, proposed);
}

int cli_check_output(cli_call *call, const char *path, cli_output_kind kind)
{
    whit_writer writer;
    whit_error error;
    if (!path) return CLI_OK;
    for (size_t i = 0; i < sizeof promises / sizeof *promises; i++)
        if (ends_in(path, promises[i]) && !is_of_kind(path, kind))
            return refuse_ending(call, path, strlen(path) - strlen(promises[i]), kind);
    if (whit_writer_open(path, NULL, &writer, &error) != WHIT_OK) return cli_fail_error(call, &error);
    whit_writer_discard(&writer);
    return CLI_OK;
}

/* Returns whether `path` is the file of `input`, a path or the name of a pulled model, so that writing `path` would
 * change the input. Two equal paths count even if there is no such file; devices do not count. */
static bool is_one_file(const char *path, const char *input)
{
    uint64_t n_bytes;
    char found[CLI_PATH_BYTES];
    const bool exists = cli_is_same_file(path, path);
    if (!cli_file_size(path, &n_bytes)) return !exists && strcmp(path, input) == 0;
    if (cli_is_same_file(path, input)) return true;
    return cli_find_model(input, found, NULL) == WHIT_OK && cli_is_same_file(path, found);
}

int cli_check_apart(cli_call *call, cli_named_file output, const cli_named_file *inputs, size_t n)
{
    for (size_t i = 0; output.path && i < n; i++)
        if (inputs[i].path && is_one_file(output.path, inputs[i].path))
            return cli_fail(call, CLI_USAGE, "%s is the file of %s; name another file for %s", output.path,
                            inputs[i].option, output.option);
    return CLI_OK;
}

int cli_check_anew(cli_call *call, const char *path, uint64_t n_bytes)
{
    uint64_t n_there;
    if (!path || !cli_file_size(path, &n_there) || n_there <= n_bytes) return CLI_OK;
    return cli_fail(call, CLI_USAGE,
                    "%s has the work of an earlier run: --resume continues it; remove it to begin anew", path);
}
