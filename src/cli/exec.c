/* SPDX-License-Identifier: MIT
 * Implements whit exec, which runs a program of the array language. */
#include <stdlib.h>

#include "base/file.h"
#include "base/items.h"
#include "base/path.h"
#include "cli/flags.h"
#include "cli/program.h"
#include "cli/verbs.h"
#include "format/ndf_append.h"
#include "lang/core/binary.h"

struct exec_values {
    bool plan, text, root, gbnf;
    const char *binary;
    cli_program_flags program;
};
static const struct exec_values defaults = {.program = CLI_PROGRAM_DEFAULTS};
static const cli_option options[] = {
    {"--plan", CLI_FLAG, offsetof(struct exec_values, plan), NULL, "Print what would be run after compilation instead.",
     0, 0},
    {"--binary", CLI_FILE, offsetof(struct exec_values, binary), "OUT",
     "Write the program's binary form instead, a tree of hashed nodes; OUT.ndf gets it as a frame, also behind a "
     "model.",
     0, 0},
    {"--root", CLI_FLAG, offsetof(struct exec_values, root), NULL,
     "Print the root of that tree instead, which names the program whatever its layout.", 0, 0},
    {"--text", CLI_FLAG, offsetof(struct exec_values, text), NULL, "Print the text of a binary form instead.", 0, 0},
    {"--gbnf", CLI_FLAG, offsetof(struct exec_values, gbnf), NULL,
     "Print the language's grammar instead, for answers that must be a program (run --grammar).", 0, 0},
    {0},
};

extern const char whit_lang_gbnf[]; /* text of lang/core/ndl.gbnf */

/* Encodes a program's text in binary form, as a tree. Writes the tree to the file of --binary, in an .ndf as a PROGRAM
 * frame; with --root prints the hash of its root. Returns an exit status. */
static int encode_tree(cli_call *call, const struct exec_values *values, const char *path, const cli_text *text)
{
    whit_buf tree = {0};
    whit_error error;
    uint8_t root[WHIT_HASH_BYTES];
    char name[2 * WHIT_HASH_BYTES + 1];
    const char *to = values->binary;
    whit_status status = whit_lang_encode(path, text->data, text->size_bytes, &tree, root, &error);
    if (status == WHIT_OK && to) {
        size_t n = strlen(to);
        bool framed = n > 4 && strcmp(to + n - 4, ".ndf") == 0;
        if (framed && whit_path_exists(to))
            status = whit_ndf_append(to, WHIT_NDF_PROGRAM, "program", tree.data, tree.size_bytes, NULL, &error);
        else if (framed)
            status = whit_ndf_write_loose(to, WHIT_NDF_PROGRAM, "program", tree.data, tree.size_bytes, NULL, &error);
        else
            status = whit_write_file(to, tree.data, tree.size_bytes, &error);
    }
    whit_buf_free(&tree);
    if (status != WHIT_OK) return cli_fail_error(call, &error);
    whit_hash_hex(root, name);
    if (values->root) cli_print(call, "%s\n", name);
    return CLI_OK;
}

static int run_exec(cli_call *call)
{
    const struct exec_values *values = call->values;
    if (values->gbnf) {
        cli_write(call, whit_lang_gbnf, strlen(whit_lang_gbnf));
        return CLI_OK;
    }
    if (!call->n_operands) return cli_fail(call, CLI_USAGE, "no program given: FILE, or - for stdin");
    const char *path = call->operands[0];
    cli_program program;
    cli_text text;
    whit_error error;
    int status = cli_read_program(call, path, &text);
    if (status != CLI_OK) return status;
    if (values->text || values->root || values->binary) {
        status = values->root || values->binary ? encode_tree(call, values, path, &text) : CLI_OK;
        if (status == CLI_OK && values->text) cli_write_data(call, text.data, text.size_bytes);
        free(text.data);
        return status;
    }
    status = cli_program_open(call, &values->program, false, &program);
    if (status == CLI_OK &&
        (whit_lang_load(program.lang, path, text.data, text.size_bytes, &error) != WHIT_OK ||
         (!values->plan && whit_lang_run(program.lang, &error) != WHIT_OK)))
        status = call->output_failed ? CLI_IO : cli_program_fail(call, &program, text.data, text.size_bytes, &error);
    else if (status == CLI_OK && values->plan) {
        whit_buf plan = {0};
        if (!whit_lang_plan(program.lang, &plan))
            status = cli_fail(call, CLI_LIMIT, "not enough memory for the plan");
        else if (plan.size_bytes)
            cli_write(call, whit_chars(&plan), plan.size_bytes);
        whit_buf_free(&plan);
    }
    cli_program_close(&program);
    free(text.data);
    return status;
}

const cli_verb cli_exec_verb = {
    "exec",
    "[FILE]",
    0,
    1,
    "run a program of the array language",
    "Runs a program over integers, floats, vectors and quaternary vectors; docs/use/arrays.md is the language's "
    "reference. FILE may be - for stdin, a binary form, or an .ndf with one. A program reaches no file and no network, "
    "and its memory and, with "
    "--limit-ms, its time are bounded. WHIT_TIER=0 walks the tree instead of compiling it, with the same bits.\n"
    "  whit exec program.ndl --limit-ms 1000\n"
    "  whit exec program.ndl --binary program.ndf --root",
    {{"OPTIONS", options, 0}, {"LIMITS", cli_program_options, offsetof(struct exec_values, program)}},
    sizeof(struct exec_values),
    &defaults,
    run_exec,
};
