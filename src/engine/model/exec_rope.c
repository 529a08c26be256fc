/* SPDX-License-Identifier: MIT
 * Computes RoPE tables of a session: the frequencies when the session is opened, and the cosines and sines of the
 * tokens before each pass. */
#include "model/exec_step.h"

void whit_exec_find_ropes(const whit_config *config, const whit_resolver *resolver, const whit_tensor *tensors,
                          whit_exec_options *options)
{
    options->n_ropes = whit_config_n_ropes(config);
    for (uint32_t i = 0; i < options->n_ropes; i++) {
        options->ropes[i] = whit_config_rope(config, i);
        const char *name = whit_rope_divisors(&options->ropes[i], options->n_ctx_tokens);
        int32_t tensor = name ? resolver->find(resolver->context, name) : -1;
        if (tensor >= 0) options->divisors[i] = (const float *)(const void *)tensors[tensor].part[WHIT_PART_CODES];
    }
}

void whit_exec_place_ropes(whit_exec *exec, const whit_exec_options *options, bool has_sinks, const bool *turns_packed,
                           whit_arena *arena)
{
    exec->n_ropes = options->n_ropes;
    for (uint32_t i = 0; i < options->n_ropes; i++) {
        whit_exec_rope *rope = &exec->ropes[i];
        const uint32_t n = options->ropes[i].dims / 2;
        rope->pairs = n;
        rope->magnitude = (float)options->ropes[i].magnitude;
        rope->frequencies = whit_arena_take(arena, n, sizeof *rope->frequencies);
        rope->tables = whit_arena_take(arena, (uint64_t)options->n_batch_rows * 2 * n, sizeof(float));
        if (has_sinks)
            rope->sink_tables = whit_arena_take(arena, (uint64_t)options->n_batch_rows * 2 * n, sizeof(float));
        if (turns_packed[i])
            rope->offset_table = whit_arena_take(arena, (uint64_t)2 * n * WHIT_KV_BLOCK_TOKENS, sizeof(float));
        if (!arena->memory) continue;
        whit_rope_scaled_frequencies(&options->ropes[i], options->n_ctx_tokens, options->divisors[i],
                                     rope->frequencies);
        if (rope->offset_table) whit_kv_offset_table(rope->frequencies, n, rope->offset_table);
    }
}

/* Endless cache: computes the table that rotates the queries of row `row` from their position back to the last position
 * of the context, n_ctx_tokens - 1. Positions up to that one need no table. */
static void make_sink_table(const whit_exec *exec, const whit_exec_rope *rope, uint32_t row)
{
    const uint32_t position = exec->batch->positions[row], last = exec->kv->shape.n_ctx_tokens - 1;
    float *table = rope->sink_tables + (size_t)row * 2 * rope->pairs;
    if (position <= last) return;
    whit_rope_table(rope->frequencies, rope->pairs, position - last, table);
    for (uint32_t i = rope->pairs; i < 2 * rope->pairs; i++) table[i] = -table[i];
}

static void make_tables(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    const whit_exec *exec = context;
    (void)worker;
    for (uint32_t i = 0; i < exec->n_ropes; i++) {
        const whit_exec_rope *rope = &exec->ropes[i];
        for (uint32_t r = begin; r < end; r++) {
            float *table = rope->tables + (size_t)r * 2 * rope->pairs;
            whit_rope_table(rope->frequencies, rope->pairs, exec->batch->positions[r] + exec->batch->rope_ahead, table);
            for (uint32_t j = 0; rope->magnitude != 1.0f && j < 2 * rope->pairs; j++) table[j] *= rope->magnitude;
            if (rope->sink_tables) make_sink_table(exec, rope, r);
        }
    }
}

void whit_exec_make_rope_tables(whit_exec *exec)
{
    bool turns = false;
    for (uint32_t i = 0; i < exec->n_ropes; i++) turns |= exec->ropes[i].pairs != 0;
    if (turns) whit_pool_run(exec->pool, make_tables, exec, exec->batch->n_rows, 0);
}
