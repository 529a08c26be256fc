/* SPDX-License-Identifier: MIT */
#include "cli/stage.h"

#include <stdlib.h>

#include "cli/program.h"

int cli_stage_open(cli_call *call, const char *path, cli_stage *stage)
{
    whit_cpu cpu;
    whit_error error;
    *stage = (cli_stage){.path = path};
    if (!path) return CLI_OK;
    int status = cli_program_tier(call, &stage->tier);
    if (status == CLI_OK) status = cli_read_program(call, path, &stage->text);
    if (status != CLI_OK) return status;
    whit_cpu_detect(&cpu);
    if (whit_quat_select(&cpu, getenv("WHIT_CPU"), &stage->kernels, &error) != WHIT_OK)
        return cli_fail_error(call, &error);
    return cli_stage_begin(call, stage, NULL, 0);
}

int cli_stage_begin(cli_call *call, cli_stage *stage, const int32_t *ids, size_t n_ids)
{
    whit_error error;
    if (!stage->path) return CLI_OK;
    whit_token_program_close(stage->program);
    whit_token_program_options options = {
        .tier = stage->tier, .quat = &stage->kernels, .prompt = ids, .n_prompt = n_ids};
    if (whit_token_program_open(stage->path, stage->text.data, stage->text.size_bytes, &options, &stage->program,
                                &error) != WHIT_OK)
        return cli_fail_error(call, &error);
    stage->stages[0] = whit_token_program_stage(stage->program);
    stage->n_stages = 1;
    return CLI_OK;
}

void cli_stage_close(cli_stage *stage)
{
    whit_token_program_close(stage->program);
    free(stage->text.data);
    *stage = (cli_stage){0};
}
