/* SPDX-License-Identifier: MIT */
#include "cli/talk.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/parts.h"

int cli_talk_open(cli_call *call, const cli_model_flags *model, const cli_session_flags *session,
                  const cli_adapter_flags *adapters, const char *template_file, uint32_t n_draft, cli_talk *talk)
{
    whit_error error;
    *talk = (cli_talk){.model = talk->model};
    if (template_file) {
        int status = cli_read_text(call, template_file, &talk->template);
        if (status != CLI_OK) return status;
    }
    int status = talk->model ? CLI_OK : cli_open_flagged_model(call, model, &talk->model);
    if (status == CLI_OK) status = cli_open_adapters(call, adapters, talk->model, &talk->adapters);
    if (status != CLI_OK) return status;
    if (whit_prompter_open(talk->model, talk->template.data, talk->template.size_bytes, template_file, &talk->prompter,
                           &error) != WHIT_OK)
        return cli_fail_error(call, &error);
    whit_session_options wanted = cli_session_wanted(session, WHIT_ACT_I8);
    wanted.n_logits = 1 + n_draft;
    if (whit_session_open(talk->model, &wanted, &talk->session, &error) != WHIT_OK ||
        whit_session_mount(talk->session, 0, talk->adapters.mounts, talk->adapters.n, &error) != WHIT_OK ||
        whit_conversation_open(talk->session, 0, talk->prompter, &talk->conversation, &error) != WHIT_OK)
        return cli_fail_error(call, &error);
    cli_remark_context(talk->model, whit_session_context_size(talk->session));
    return CLI_OK;
}

void cli_talk_close(cli_talk *talk)
{
    whit_conversation_close(talk->conversation);
    whit_prompter_close(talk->prompter);
    whit_session_close(talk->session);
    cli_close_adapters(&talk->adapters);
    whit_model_close(talk->model);
    free(talk->template.data);
}

const char *cli_talk_template(const cli_talk *talk)
{
    return talk->template.data ? talk->template.data : cli_model_template(talk->model);
}

static double rate(uint32_t n, uint64_t ns)
{
    return ns ? (double)n * 1e9 / (double)ns : 0;
}

void cli_talk_statistics(const cli_talk *talk, const whit_answer *answer, uint64_t seed)
{
    cli_note("prompt %u tokens in %.3f s (%.1f/s), %u kept; generated %u in %.3f s (%.1f/s); "
             "context %u of %u; seed %" PRIu64,
             answer->n_prompt, (double)answer->prompt_ns / 1e9, rate(answer->n_prompt, answer->prompt_ns),
             answer->n_kept, answer->n_generated, (double)answer->generate_ns / 1e9,
             rate(answer->n_generated, answer->generate_ns), whit_session_position(talk->session, 0),
             whit_session_context_size(talk->session), seed);
}

void cli_talk_remarks(const cli_talk *talk, const whit_answer *answer)
{
    uint32_t n_ctx = whit_session_context_size(talk->session);
    if (answer->n_left_out)
        cli_note("the context of %u tokens is full: the model no longer sees the oldest %zu "
                 "messages (-c sets a larger context)",
                 n_ctx, whit_conversation_messages(talk->conversation)->n_left_out);
    if (answer->full) cli_note("the answer ended with the context of %u tokens (-c sets a larger one)", n_ctx);
}
