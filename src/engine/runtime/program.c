/* SPDX-License-Identifier: MIT */
#include "runtime/program.h"

#include "base/cpu.h"
#include "base/options.h"
#include "kernels/quat/quat.h"

struct whit_program {
    whit_lang *lang;
    whit_quat_kernels quat; /* default kernels, used if the caller gives none */
    float *history;         /* (n_history): the last n_held tokens, oldest first */
    uint32_t n_history, n_held;
    int64_t n_generated;
    int32_t last;
};

enum { STATE_ELEMS = 256 };

/* Appends a token to the history; a full history first loses its oldest half. */
static void remember(whit_program *program, int32_t id)
{
    if (program->n_held == program->n_history) {
        uint32_t kept = program->n_history / 2;
        memmove(program->history, program->history + program->n_held - kept, kept * sizeof *program->history);
        program->n_held = kept;
    }
    program->history[program->n_held++] = (float)id; /* the conversion is exact, because ids are below 2^24 */
    program->last = id;
}

static whit_status change_logits(void *user, float *logits, uint32_t n_vocab, whit_error *error)
{
    whit_program *program = user;
    whit_lang *lang = program->lang;
    WHIT_TRY(whit_lang_set_int(lang, "step", program->n_generated, error));
    WHIT_TRY(whit_lang_set_int(lang, "token", program->last, error));
    WHIT_TRY(whit_lang_set_int(lang, "end", 0, error));
    WHIT_TRY(whit_lang_set_vec(lang, "history", program->history, program->n_held, error));
    WHIT_TRY(whit_lang_lend_vec(lang, "logits", logits, n_vocab, error));
    WHIT_TRY(whit_lang_run(lang, error));
    bool is_any_allowed = false;
    for (uint32_t i = 0; i < n_vocab; i++) {
        if (!(logits[i] < __builtin_inff())) /* infinite or NaN; -infinity is allowed and forbids a token */
            return whit_fail(
                error, WHIT_ERROR_ARGUMENT,
                "the token program makes logits that are not finite (step %lld, token %u): keep them finite",
                (long long)program->n_generated, i);
        is_any_allowed |= logits[i] > -__builtin_inff();
    }
    if (is_any_allowed) return WHIT_OK;
    return whit_fail(error, WHIT_ERROR_ARGUMENT, "the token program forbids every token (step %lld): it must leave one",
                     (long long)program->n_generated);
}

static whit_status accept_token(void *user, int32_t id, bool *end, whit_error *error)
{
    whit_program *program = user;
    int64_t wants_end = 0;
    (void)error;
    remember(program, id);
    program->n_generated++;
    *end = whit_lang_get_int(program->lang, "end", &wants_end) && wants_end != 0;
    return WHIT_OK;
}

static whit_status declare(whit_program *program, whit_error *error)
{
    static const float zeros[STATE_ELEMS];
    whit_lang *lang = program->lang;
    WHIT_TRY(whit_lang_declare(lang, "logits", WHIT_LANG_VEC, error));
    WHIT_TRY(whit_lang_declare(lang, "history", WHIT_LANG_VEC, error));
    WHIT_TRY(whit_lang_declare(lang, "state", WHIT_LANG_VEC, error));
    WHIT_TRY(whit_lang_declare(lang, "step", WHIT_LANG_INT, error));
    WHIT_TRY(whit_lang_declare(lang, "token", WHIT_LANG_INT, error));
    WHIT_TRY(whit_lang_declare(lang, "end", WHIT_LANG_INT, error));
    WHIT_TRY(whit_lang_set_vec(lang, "state", zeros, STATE_ELEMS, error));
    return WHIT_OK;
}

whit_status whit_program_open_tier(const char *name, const char *text, size_t text_bytes,
                                   const whit_program_options *options, const whit_program_tier *tier,
                                   whit_program **out, whit_error *error)
{
    *out = NULL;
    whit_program_options o = whit_program_options_default();
    WHIT_TRY(whit_options_read(&o, sizeof o, options, "whit_program_options", error));
    whit_program *program = whit_zalloc(NULL, sizeof *program);
    if (!program) return whit_fail_memory(error, "a program", sizeof *program);
    program->n_history = o.n_history > 1 ? o.n_history : 2;
    program->last = -1;
    program->history = whit_zalloc_array(NULL, program->n_history, sizeof *program->history);
    whit_lang_options wanted = {
        .max_ms = o.max_ms, .max_bytes = o.max_bytes, .tier = tier->tier, .jit = tier->jit, .quat = tier->quat};
    whit_status status = WHIT_OK;
    if (!program->history) status = whit_fail_memory(error, "a history", program->n_history * sizeof(float));
    if (status == WHIT_OK && !wanted.quat) {
        whit_cpu cpu;
        whit_cpu_detect_isa(&cpu);
        status = whit_quat_select(&cpu, NULL, &program->quat, error);
        wanted.quat = &program->quat;
    }
    if (status == WHIT_OK) status = whit_lang_open(&wanted, &program->lang, error);
    if (status == WHIT_OK) status = declare(program, error);
    if (status == WHIT_OK) status = whit_lang_load(program->lang, name, text, text_bytes, error);
    if (status != WHIT_OK) {
        whit_program_close(program);
        return status;
    }
    for (size_t i = 0; i < o.n_prompt; i++) remember(program, o.prompt[i]);
    *out = program;
    return WHIT_OK;
}

whit_status whit_program_open(const char *name, const char *text, size_t text_bytes,
                              const whit_program_options *options, whit_program **program, whit_error *error)
{
    /* closures instead of machine code, because systems may refuse executable pages */
    const whit_program_tier tier = {.tier = WHIT_LANG_CLOSURES};
    return whit_program_open_tier(name, text, text_bytes, options, &tier, program, error);
}

void whit_program_close(whit_program *program)
{
    if (!program) return;
    whit_lang_close(program->lang);
    whit_free(NULL, program->history, program->n_history * sizeof *program->history);
    whit_free(NULL, program, sizeof *program);
}

whit_stage whit_program_stage(whit_program *program)
{
    whit_stage stage = whit_stage_default();
    stage.user = program;
    stage.apply = change_logits;
    stage.accept = accept_token;
    return stage;
}
