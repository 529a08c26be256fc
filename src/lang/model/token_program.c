/* SPDX-License-Identifier: MIT */
#include "lang/model/token_program.h"

struct whit_token_program {
    whit_lang *lang;
    whit_stage stage;
    float *history; /* (n_history): the last tokens, oldest first */
    uint32_t n_history, n_held;
    int64_t n_generated;
    int32_t last;
};

enum { STATE_ELEMS = 256 };

/* Appends a token; the oldest half goes where the room ends. */
static void remember(whit_token_program *program, int32_t id)
{
    if (program->n_held == program->n_history) {
        uint32_t kept = program->n_history / 2;
        memmove(program->history, program->history + program->n_held - kept, kept * sizeof *program->history);
        program->n_held = kept;
    }
    program->history[program->n_held++] = (float)id; /* exact: ids are below 2^24 */
    program->last = id;
}

static whit_status apply(void *user, float *logits, uint32_t n_vocab, whit_error *error)
{
    whit_token_program *program = user;
    whit_lang *lang = program->lang;
    WHIT_TRY(whit_lang_set_int(lang, "step", program->n_generated, error));
    WHIT_TRY(whit_lang_set_int(lang, "token", program->last, error));
    WHIT_TRY(whit_lang_set_int(lang, "end", 0, error));
    WHIT_TRY(whit_lang_set_vec(lang, "history", program->history, program->n_held, error));
    WHIT_TRY(whit_lang_lend_vec(lang, "logits", logits, n_vocab, error));
    WHIT_TRY(whit_lang_run(lang, error));
    for (uint32_t i = 0; i < n_vocab; i++)
        if (logits[i] > -__builtin_inff()) return WHIT_OK;
    return whit_fail(error, WHIT_ERROR_ARGUMENT, "the program forbids every token (step %lld)",
                     (long long)program->n_generated);
}

static whit_status accept(void *user, int32_t id, bool *end, whit_error *error)
{
    whit_token_program *program = user;
    int64_t wants_end = 0;
    (void)error;
    remember(program, id);
    program->n_generated++;
    *end = whit_lang_get_int(program->lang, "end", &wants_end) && wants_end != 0;
    return WHIT_OK;
}

static whit_status declare(whit_token_program *program, whit_error *error)
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

whit_status whit_token_program_open(const char *name, const char *text, size_t n_bytes,
                                    const whit_token_program_options *options, whit_token_program **out,
                                    whit_error *error)
{
    whit_token_program *program = whit_zalloc(NULL, sizeof *program);
    *out = NULL;
    if (!program) return whit_fail_memory(error, "a program", sizeof *program);
    program->n_history = options->n_history > 1 ? options->n_history : 4096;
    program->last = -1;
    program->history = whit_zalloc_array(NULL, program->n_history, sizeof *program->history);
    whit_lang_options wanted = {.max_ms = options->max_ms ? options->max_ms : 1000,
                                .max_bytes = options->max_bytes,
                                .tier = options->tier,
                                .jit = whit_lang_jit_native(),
                                .quat = options->quat};
    whit_status status = program->history ? whit_lang_open(&wanted, &program->lang, error)
                                          : whit_fail_memory(error, "a history", program->n_history * sizeof(float));
    if (status == WHIT_OK) status = declare(program, error);
    if (status == WHIT_OK) status = whit_lang_load(program->lang, name, text, n_bytes, error);
    if (status != WHIT_OK) {
        whit_token_program_close(program);
        return status;
    }
    for (size_t i = 0; i < options->n_prompt; i++) remember(program, options->prompt[i]);
    program->stage = whit_stage_default();
    program->stage.user = program;
    program->stage.apply = apply;
    program->stage.accept = accept;
    *out = program;
    return WHIT_OK;
}

void whit_token_program_close(whit_token_program *program)
{
    if (!program) return;
    whit_lang_close(program->lang);
    whit_free(NULL, program->history, program->n_history * sizeof *program->history);
    whit_free(NULL, program, sizeof *program);
}

const whit_stage *whit_token_program_stage(const whit_token_program *program)
{
    return &program->stage;
}
