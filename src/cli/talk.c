/* SPDX-License-Identifier: MIT */
#include "cli/talk.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/parts.h"
#include "cli/ranks.h"
#include "cli/templates.h"
#include "whit/steps.h"

int cli_talk_open(cli_call *call, const cli_model_flags *model, const cli_session_flags *session,
                  const cli_adapter_flags *adapters, const char *template_file, uint32_t n_draft, cli_talk *talk)
{
    whit_error error;
    *talk = (cli_talk){.model = talk->model};
    if (template_file) {
        int status = cli_read_template(call, template_file, &talk->template);
        if (status != CLI_OK) return status;
    }
    int status = talk->model ? CLI_OK : cli_open_flagged_model(call, model, &talk->model);
    if (status == CLI_OK) status = cli_split_model(call, talk->model);
    if (status == CLI_OK) status = cli_open_adapters(call, adapters, talk->model, &talk->adapters);
    if (status != CLI_OK) return status;
    whit_chat_template_options chat = whit_chat_template_options_default();
    chat.source = talk->template.data;
    chat.source_bytes = talk->template.size_bytes;
    chat.name = template_file;
    chat.tool_fallback = true;
    if (whit_chat_template_open(talk->model, &chat, &talk->chat, &error) != WHIT_OK)
        return cli_fail_error(call, &error);
    if (template_file && !cli_model_template(talk->model))
        cli_note("the model has no chat template of its own: it answers well only if it was trained with %.80s",
                 template_file);
    whit_session_options wanted = cli_session_wanted(session, WHIT_ACT_I8);
    wanted.n_logits = 1 + cli_draft_max(n_draft);
    const whit_model *drafter;
    status = cli_choose_drafter(call, session, n_draft, talk->model, &drafter, &talk->drafter);
    if (status != CLI_OK) return status;
    if (whit_session_open_drafting(talk->model, &wanted, drafter, &talk->session, &error) != WHIT_OK ||
        cli_limit_experts(session, talk->session, &error) != WHIT_OK ||
        whit_session_mount(talk->session, 0, talk->adapters.mounts, talk->adapters.n, &error) != WHIT_OK ||
        whit_conversation_open(talk->session, 0, talk->chat, &talk->conversation, &error) != WHIT_OK)
        return cli_fail_error(call, &error);
    cli_remark_context(whit_model_context_size(talk->model), whit_session_context_size(talk->session));
    return CLI_OK;
}

void cli_talk_close(cli_talk *talk)
{
    whit_conversation_close(talk->conversation);
    whit_chat_template_close(talk->chat);
    whit_session_close(talk->session);
    cli_close_adapters(&talk->adapters);
    whit_model_close(talk->drafter);
    whit_model_close(talk->model);
    free(talk->template.data);
}

const char *cli_talk_template(const cli_talk *talk)
{
    return talk->template.data ? talk->template.data : cli_model_template(talk->model);
}

json_t *cli_talk_message(const cli_talk *talk, size_t i)
{
    size_t n;
    const char *text = whit_conversation_message(talk->conversation, i, &n);
    return text ? json_loadb(text, n, JSON_ALLOW_NUL, NULL) : NULL;
}

const char *cli_system_text(const json_t *message, size_t *n_bytes)
{
    const json_t *content = json_object_get(message, "content");
    const char *role = json_string_value(json_object_get(message, "role"));
    const bool is_system = role && !strcmp(role, "system") && json_is_string(content);
    *n_bytes = is_system ? json_string_length(content) : 0;
    return is_system ? json_string_value(content) : "";
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
    cli_note_experts(talk->session);
}

void cli_talk_remarks(const cli_talk *talk, const whit_answer *answer)
{
    uint32_t n_ctx = whit_session_context_size(talk->session);
    if (answer->n_left_out)
        cli_note("the context of %u tokens is full: the model no longer sees the oldest %zu "
                 "messages (-c sets a larger context)",
                 n_ctx, whit_conversation_n_left_out(talk->conversation));
    if (answer->full)
        cli_note("the answer ended because the context of %u tokens is full (-c sets a larger one)", n_ctx);
}
