/* SPDX-License-Identifier: MIT
 * Implements the public sampler, which connects the chain of samplers with a model's vocabulary. */
#include "runtime/chain.h"
#include "runtime/drawn.h"
#include "runtime/model.h"
#include "runtime/session_frames.h"

#include "base/fpenv.h"
#include "base/options.h"

struct whit_sampler {
    whit_chain chain;
    uint32_t n_vocab;
    const whit_allocator *allocator;
};

whit_status whit_sampler_open(const whit_model *model, const whit_sampler_options *options, whit_sampler **out,
                              whit_error *error)
{
    WHIT_NEED(out);
    *out = NULL;
    WHIT_NEED(model);
    whit_sampler_options own = whit_sampler_options_default();
    WHIT_TRY(whit_options_read(&own, sizeof own, options, "whit_sampler_options", error));
    const uint32_t least = 4096;
    if (!own.n_history_tokens) own.n_history_tokens = model->config.n_ctx > least ? model->config.n_ctx : least;
    whit_sampler *sampler = whit_zalloc(model->allocator, sizeof *sampler);
    if (!sampler) return whit_fail_memory(error, "the sampler", sizeof *sampler);
    sampler->allocator = model->allocator;
    sampler->n_vocab = model->config.n_vocab;
    const uint8_t *breakers = NULL;
    whit_status status = own.dry_multiplier > 0 ? whit_model_breakers(model, &breakers, error) : WHIT_OK;
    if (status == WHIT_OK)
        status = whit_chain_open(sampler->n_vocab, &own, breakers, sampler->allocator, &sampler->chain, error);
    if (status != WHIT_OK) {
        whit_free(sampler->allocator, sampler, sizeof *sampler);
        return status;
    }
    *out = sampler;
    return WHIT_OK;
}

void whit_sampler_close(whit_sampler *sampler)
{
    if (!sampler) return;
    whit_chain_close(&sampler->chain);
    whit_free(sampler->allocator, sampler, sizeof *sampler);
}

whit_status whit_sampler_pick(whit_sampler *sampler, const float *logits, int32_t *id, whit_error *error)
{
    WHIT_NEED(sampler);
    WHIT_NEED(id);
    uint32_t picked;
    if (!logits) return whit_fail(error, WHIT_ERROR_ARGUMENT, "whit_sampler_pick: 'logits' is NULL");
    whit_fpenv caller = whit_fpenv_enter();
    whit_status status = whit_chain_pick(&sampler->chain, logits, &picked, error);
    whit_fpenv_leave(caller);
    if (status == WHIT_OK) *id = (int32_t)picked;
    return status;
}

void whit_sampler_drawn(whit_sampler *sampler, uint32_t n_top, whit_logprob *entries)
{
    whit_fpenv caller = whit_fpenv_enter();
    whit_chain_drawn(&sampler->chain, n_top, entries);
    whit_fpenv_leave(caller);
}

uint32_t whit_sampler_n_top(const whit_sampler *sampler)
{
    uint32_t n;
    return whit_chain_needs_only_top(&sampler->chain, &n) ? n : 0;
}

void whit_sampler_accept(whit_sampler *sampler, int32_t id)
{
    if (id >= 0 && (uint32_t)id < sampler->n_vocab) whit_chain_accept(&sampler->chain, (uint32_t)id);
}

void whit_sampler_reset(whit_sampler *sampler)
{
    whit_chain_reset(&sampler->chain);
}

void whit_sampler_save(const whit_sampler *sampler, whit_sampler_state *state)
{
    *state = (whit_sampler_state){sampler->chain.rng.state, sampler->chain.mirostat_mu};
}

void whit_sampler_restore(whit_sampler *sampler, const whit_sampler_state *state)
{
    sampler->chain.rng.state = state->random;
    sampler->chain.mirostat_mu = state->mirostat_mu;
}

whit_sampler_options whit_sampler_options_of(const whit_sampler *sampler)
{
    whit_sampler_options options = sampler->chain.options;
    options.bias_ids = sampler->chain.bias_ids;
    options.bias_values = sampler->chain.bias_values;
    return options;
}
