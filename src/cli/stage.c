/* SPDX-License-Identifier: MIT */
#include "cli/stage.h"

#include <stdlib.h>

#include "cli/program.h"
#include "lang/jit/jit.h"

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
    whit_program_close(stage->program);
    const whit_program_tier tier = {stage->tier, whit_lang_jit_native(), &stage->kernels};
    whit_program_options options = whit_program_options_default();
    options.prompt = ids;
    options.n_prompt = n_ids;
    if (whit_program_open_tier(stage->path, stage->text.data, stage->text.size_bytes, &options, &tier, &stage->program,
                               &error) != WHIT_OK)
        return cli_fail_error(call, &error);
    stage->stage = whit_program_stage(stage->program);
    stage->stages[0] = &stage->stage;
    stage->n_stages = 1;
    return CLI_OK;
}

void cli_stage_close(cli_stage *stage)
{
    whit_program_close(stage->program);
    free(stage->text.data);
    *stage = (cli_stage){0};
}
