/* SPDX-License-Identifier: MIT
 * Declares all verbs of the command line program. */
#ifndef WHIT_CLI_VERBS_H
#define WHIT_CLI_VERBS_H

#include "cli/cli.h"

/* in the order of the manual */
extern const cli_verb cli_run_verb;
extern const cli_verb cli_chat_verb;
extern const cli_verb cli_serve_verb;
extern const cli_verb cli_tokenize_verb;
extern const cli_verb cli_template_verb;
extern const cli_verb cli_logits_verb;
extern const cli_verb cli_embed_verb;
extern const cli_verb cli_rerank_verb;
extern const cli_verb cli_perplexity_verb;
extern const cli_verb cli_convert_verb;
extern const cli_verb cli_compress_verb;
extern const cli_verb cli_compare_verb;
extern const cli_verb cli_eval_verb;
extern const cli_verb cli_inspect_verb;
extern const cli_verb cli_pull_verb;
extern const cli_verb cli_list_verb;
extern const cli_verb cli_rm_verb;
extern const cli_verb cli_verify_verb;
extern const cli_verb cli_sign_verb;
extern const cli_verb cli_agent_verb;
extern const cli_verb cli_kernels_verb;
extern const cli_verb cli_bench_verb;
extern const cli_verb cli_train_verb;
extern const cli_verb cli_distill_verb;
extern const cli_verb cli_doctor_verb;
extern const cli_verb cli_export_verb;
extern const cli_verb cli_refine_verb;
extern const cli_verb cli_merge_verb;
extern const cli_verb cli_tune_verb;
extern const cli_verb cli_edit_verb;
extern const cli_verb cli_graph_verb;
extern const cli_verb cli_exec_verb;
extern const cli_verb cli_repl_verb;
extern const cli_verb cli_memory_verb;
extern const cli_verb cli_mcp_verb;
extern const cli_verb cli_help_verb;

#endif
