/* SPDX-License-Identifier: MIT
 * The commands of the program for Windows. */
#include "cli/absent.h"
#include "cli/verbs.h"

/* clang-format off */
const cli_verb *const cli_verbs[] = {
    &cli_run_verb,
    &cli_chat_verb,
    &cli_tokenize_verb,
    &cli_template_verb,
    &cli_logits_verb,
    &cli_embed_verb,
    &cli_rerank_verb,
    &cli_perplexity_verb,
    &cli_convert_verb,
    &cli_compress_verb,
    &cli_compare_verb,
    &cli_eval_verb,
    &cli_export_verb,
    &cli_refine_verb,
    &cli_merge_verb,
    &cli_inspect_verb,
    &cli_list_verb,
    &cli_rm_verb,
    &cli_pull_verb,
    &cli_serve_verb,
    &cli_train_verb,
    &cli_distill_verb,
    &cli_tune_verb,
    &cli_verify_verb,
    &cli_sign_verb,
    &cli_exec_verb,
    &cli_repl_verb,
    &cli_memory_verb,
    &cli_kernels_verb,
    &cli_doctor_verb,
    &cli_graph_verb,
    &cli_help_verb,
    NULL,
};

const cli_absent cli_absent_verbs[] = {
    {"edit", "the editor is not ported"},
    {"agent", "there is no sandbox for what an agent runs"},
    {"mcp", "servers of tools are not ported"},
    {"bench", "it starts every test as a process of its own by fork"},
    {0},
};
