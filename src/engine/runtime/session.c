/* SPDX-License-Identifier: MIT
 * Opens and steps sessions: all memory is in one arena, whose size is fixed at opening; each step computes tokens of
 * any number of sequences. */
#include "runtime/session.h"

#include "base/file.h"
#include "base/flag.h"
#include "base/fpenv.h"
#include "base/options.h"
#include "base/system.h"
#include "model/plan_split.h"
#include "model/residency.h"
#include "runtime/adapter.h"
#include "runtime/split.h"
#include "whit/embeddings.h"
#include "whit/steps.h"

#define DEFAULT_CTX_TOKENS   4096
#define DEFAULT_BATCH_TOKENS 512
#define MAX_SEQUENCES        65536

/* ---- options -------------------------------------------------------------------------------- */

/* Fails for draft models; for models that cannot continue a text, without only_vectors; for contexts longer than the
 * model's positions; and for models whose tokens attend to both sides, with an endless session or a packed cache. */
static whit_status check_vectors(const whit_model *model, const whit_session_options *o, whit_error *error)
{
    const whit_config *c = &model->config;
    if (c->draft_width)
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "%s: a draft model only predicts tokens for another model and cannot continue a text itself",
                         model->path);
    if (!whit_model_makes_text(model) && !o->only_vectors)
        return whit_fail(
            error, WHIT_ERROR_UNSUPPORTED,
            "%s: the model computes vectors or scores and cannot continue a text: use whit embed or whit rerank",
            model->path);
    if (c->n_positions && o->n_ctx_tokens > c->n_positions)
        return whit_fail(error, WHIT_ERROR_LIMIT,
                         "%s: the model has positions for %u tokens, not for %u: choose a smaller context", model->path,
                         c->n_positions, o->n_ctx_tokens);
    if (c->bidirectional && (o->endless || whit_kv_is_packed(o->kv)))
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "%s: its tokens attend to later ones, so the KV cache must be f16, f32 or i8 and not endless",
                         model->path);
    return WHIT_OK;
}

static whit_status fill_options(const whit_model *model, const whit_session_options *given, uint32_t n_threads,
                                whit_session_options *o, whit_error *error)
{
    const whit_config *c = &model->config;
    *o = whit_session_options_default();
    WHIT_TRY(whit_options_read(o, sizeof *o, given, "whit_session_options", error));
    if (!o->n_ctx_tokens) o->n_ctx_tokens = c->n_ctx < DEFAULT_CTX_TOKENS ? c->n_ctx : DEFAULT_CTX_TOKENS;
    if (!o->n_batch_tokens) o->n_batch_tokens = DEFAULT_BATCH_TOKENS;
    if (!o->n_sequences) o->n_sequences = 1;
    if (!o->n_threads) o->n_threads = n_threads;
    if (!o->endless) o->n_sinks = 0;
    if (o->endless && (o->n_sinks > WHIT_KV_BLOCK_TOKENS || o->n_sinks >= o->n_ctx_tokens))
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "%u sinks are too many: at most %u are possible, and fewer than the context's %u tokens",
                         o->n_sinks, WHIT_KV_BLOCK_TOKENS, o->n_ctx_tokens);
    if (o->n_ctx_tokens > 1u << 30)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "a context of %u tokens is too large: at most 2^30 are possible",
                         o->n_ctx_tokens);
    if (o->n_batch_tokens > 1u << 20)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "a batch of %u tokens is too large: at most 2^20 are possible",
                         o->n_batch_tokens);
    if (o->n_sequences > MAX_SEQUENCES)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "%u sequences are too many: at most %d are possible",
                         o->n_sequences, MAX_SEQUENCES);
    if (o->n_threads > WHIT_POOL_THREADS_MAX)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "%u threads are too many: at most %d are possible", o->n_threads,
                         WHIT_POOL_THREADS_MAX);
    if ((unsigned)o->kv >= WHIT_KV_TYPES || (unsigned)o->act > WHIT_ACT_Q2)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "whit_session_options: kv or act is not a value of its enum");
    if (o->n_kv_window > 1u << 20)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "a KV window of %u blocks is too large: at most 2^20 are possible",
                         o->n_kv_window);
    /* number of blocks that a token of an endless session attends to */
    const uint32_t n_all = (o->n_ctx_tokens - 1) / WHIT_KV_BLOCK_TOKENS + 1;
    if (o->endless && o->n_kv_window > n_all) o->n_kv_window = n_all;
    if (o->n_marks > WHIT_MARKS_MAX)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "%u marks are too many: at most %d are possible", o->n_marks,
                         WHIT_MARKS_MAX);
    if (c->bidirectional && o->n_batch_tokens < o->n_ctx_tokens) o->n_batch_tokens = o->n_ctx_tokens;
    if (o->n_batch_tokens > (uint64_t)o->n_ctx_tokens * o->n_sequences)
        o->n_batch_tokens = (uint32_t)((uint64_t)o->n_ctx_tokens * o->n_sequences);
    o->keep_hidden |= o->only_vectors;
    if (!o->n_logits) o->n_logits = o->only_vectors ? o->n_batch_tokens : o->n_sequences;
    return check_vectors(model, o, error);
}

/* ---- opening -------------------------------------------------------------------------------- */

static whit_status compile_plan(whit_session *s, whit_error *error)
{
    const uint32_t n_layers = s->model->config.n_layers;
    s->kv_layers = whit_zalloc_array(s->allocator, n_layers, sizeof *s->kv_layers);
    if (!s->kv_layers) return whit_fail_memory(error, "the session", n_layers * sizeof *s->kv_layers);
    if (!whit_exec_kv_layers(&s->model->graph, s->kv_layers, n_layers))
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "%s: a layer of the model's program calls attention() twice, but once is possible",
                         s->model->path);
    const char *drafted = s->drafter ? whit_drafter_source(s->drafter) : NULL;
    whit_plan_options options = {.act = s->options.act,
                                 .keep = &drafted,
                                 .n_keep = drafted != NULL,
                                 .keep_hidden = s->options.keep_hidden,
                                 .only_vectors = s->options.only_vectors,
                                 .no_fuse = s->options.no_fuse,
                                 .ranks = s->model->split ? s->model->split->ranks : NULL};
    WHIT_TRY(whit_plan_compile(&s->model->graph, &options, s->allocator, &s->plan, error));
    if (options.ranks) whit_split_kv_layers(options.ranks, &s->plan, s->kv_layers, n_layers);
    const whit_tensor *tensors = s->model->weights.tensors;
    WHIT_TRY(whit_exec_choose(&s->plan, tensors, &s->kernels, &s->schedules, error));
    return whit_exec_schedules_make(&s->plan, tensors, s->options.n_batch_tokens, s->options.n_logits, &s->schedules,
                                    error);
}

static whit_kv_shape kv_shape_of(const whit_session *s)
{
    const whit_session_options *o = &s->options;
    return (whit_kv_shape){.type = o->kv,
                           .layers = s->kv_layers,
                           .n_layers = s->model->config.n_layers,
                           .n_sequences = o->n_sequences,
                           .n_ctx_tokens = o->n_ctx_tokens,
                           .n_batch_tokens = o->n_batch_tokens,
                           .is_endless = o->endless,
                           .n_sinks = o->n_sinks,
                           .n_window_blocks = o->n_kv_window};
}

/* Sets split_tail_bytes to the size of the largest tail on any rank of a split model, because all ranks must have the
 * same number of marks. */
static whit_status measure_tails(whit_session *s, whit_error *error)
{
    whit_kv_shape shape = kv_shape_of(s);
    const size_t layers_bytes = shape.n_layers * sizeof *s->kv_layers;
    if (!s->model->split) return WHIT_OK;
    whit_kv_layer *layers = whit_zalloc(s->allocator, layers_bytes);
    if (!layers) return whit_fail_memory(error, "the session", layers_bytes);
    shape.layers = layers;
    whit_ranks ranks = *s->model->split->ranks;
    for (ranks.rank = 0; ranks.rank < ranks.n_ranks; ranks.rank++) {
        whit_kv kv;
        uint64_t bytes;
        uint32_t n_ids;
        memset(layers, 0, layers_bytes);
        /* Does not fail, because compile_plan already succeeded. */
        if (!whit_exec_kv_layers(&s->model->graph, layers, shape.n_layers)) continue;
        whit_split_kv_layers(&ranks, &s->plan, layers, shape.n_layers);
        if (!whit_kv_measure(&shape, &kv, &bytes)) continue; /* place_arrays reports a cache that is too large */
        bytes = whit_kv_tail_bytes_max(&kv, &n_ids);
        if (bytes > s->split_tail_bytes) s->split_tail_bytes = bytes;
    }
    whit_free(s->allocator, layers, layers_bytes);
    return WHIT_OK;
}

/* Takes all memory of a session from the arena, which only counts it or returns it. */
static void place_arrays(whit_session *s, whit_arena *arena)
{
    const whit_config *c = &s->model->config;
    const whit_session_options *o = &s->options;
    const whit_kv_shape shape = kv_shape_of(s);
    s->positions = whit_arena_take(arena, o->n_sequences, sizeof *s->positions);
    s->to_mark = whit_arena_take(arena, o->n_sequences, sizeof *s->to_mark);
    s->last_mark = whit_arena_take(arena, o->n_sequences, sizeof *s->last_mark);
    s->recent_marks = whit_arena_take(arena, o->n_sequences, WHIT_MARKS_RECENT * sizeof *s->recent_marks);
    s->advanced = whit_arena_take(arena, o->n_sequences, sizeof *s->advanced);
    s->is_damaged = whit_arena_take(arena, (uint64_t)o->n_sequences + 1, sizeof *s->is_damaged);
    s->mounts = whit_arena_take(arena, o->n_sequences, sizeof *s->mounts);
    s->is_mixed = whit_arena_take(arena, o->n_sequences, sizeof *s->is_mixed);
    s->tokens = whit_arena_take(arena, (uint64_t)o->n_sequences * o->n_ctx_tokens, sizeof *s->tokens);
    s->ids = whit_arena_take(arena, o->n_batch_tokens, sizeof *s->ids);
    s->row_sequences = whit_arena_take(arena, o->n_batch_tokens, sizeof *s->row_sequences);
    s->row_positions = whit_arena_take(arena, o->n_batch_tokens, sizeof *s->row_positions);
    s->row_types = whit_arena_take(arena, o->n_batch_tokens, sizeof *s->row_types);
    s->wanted = whit_arena_take(arena, o->n_batch_tokens, sizeof *s->wanted);
    s->selected = whit_arena_take(arena, o->n_batch_tokens, sizeof *s->selected);
    s->tops = whit_arena_take(arena, o->n_batch_tokens, sizeof *s->tops);
    uint64_t kv_bytes;
    if (!whit_kv_measure(&shape, &s->kv, &kv_bytes)) {
        arena->overflow = true;
        return;
    }
    void *kv_memory = whit_arena_take(arena, kv_bytes, 1);
    if (kv_memory) whit_kv_init(&s->kv, &shape, kv_memory);
    whit_session_place_marks(s, arena);
    whit_exec_options exec = {.n_batch_rows = o->n_batch_tokens,
                              .n_selected_rows = o->n_logits,
                              .n_threads = o->n_threads,
                              .n_ctx_tokens = o->n_ctx_tokens};
    const void *address;
    const char *path;
    size_t size_bytes;
    exec.releases_tables = whit_ndf_mapping(s->model->file, 0, &address, &size_bytes, &path);
    const whit_resolver resolver = whit_weights_resolver((whit_weights *)(uintptr_t)&s->model->weights);
    whit_exec_find_ropes(c, &resolver, s->model->weights.tensors, &exec);
    whit_exec_place(&s->exec, &s->plan, &s->schedules, s->model->weights.tensors, &s->kernels, &s->kv, &exec, arena);
    if (s->drafter) whit_drafter_place(s->drafter, o, &s->kv, arena);
}

static whit_status prepare_session(whit_session *s, const whit_model *model, const whit_session_options *options,
                                   const whit_model *drafter, whit_error *error)
{
    s->model = model;
    s->allocator = model->allocator;
    whit_cpu cpu;
    whit_cpu_detect(&cpu);
    WHIT_TRY(fill_options(model, options, cpu.n_threads, &s->options, error));
    WHIT_TRY(whit_kernels_select(&cpu, s->options.cpu, &s->kernels, error));
    if (drafter) WHIT_TRY(whit_drafter_open(model, drafter, &s->options, &s->kernels, &s->drafter, error));
    WHIT_TRY(compile_plan(s, error));
    const whit_kv_shape shape = kv_shape_of(s);
    if (whit_kv_kinds(&shape) > WHIT_KV_KINDS_MAX)
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "%s: its layers have more than %d kinds of attention (windows, heads), the limit", model->path,
                         WHIT_KV_KINDS_MAX);
    WHIT_TRY(measure_tails(s, error));
    whit_arena count = {0};
    place_arrays(s, &count);
    if (count.overflow)
        return whit_fail(error, WHIT_ERROR_MEMORY,
                         "%s: %u sequences of %u tokens do not fit the address space: choose a smaller context",
                         model->path, s->options.n_sequences, s->options.n_ctx_tokens);
    s->arena_bytes = (size_t)count.used_bytes;
    return WHIT_OK;
}

#define HUGE_PAGE_BYTES (2u << 20)

static bool is_multiplied(const whit_plan *plan, uint32_t tensor)
{
    for (uint32_t i = 0; i < plan->n_steps; i++)
        if (plan->steps[i].op == WHIT_PLAN_LINEAR && plan->steps[i].weight == (int32_t)tensor) return true;
    return false;
}

/* Asks the system for huge pages for memory that is read repeatedly (whit_map_expect): for the session's arena, in
 * which the KV cache and the values between steps are each filled from their beginning, and for the model. Excepted are
 * parts of tensors of at least HUGE_PAGE_BYTES that are not the codes of a multiplied matrix, such as embeddings that
 * are not also the head, because not all of such a part is read for every token. */
static void expect_reads(const whit_session *s)
{
    const whit_weights *weights = &s->model->weights;
    whit_map_expect(s->arena, s->arena_bytes, true);
    const void *address;
    const char *path;
    size_t size_bytes;
    for (uint32_t i = 0; whit_ndf_mapping(s->model->file, i, &address, &size_bytes, &path); i++)
        whit_map_expect(address, size_bytes, true);
    for (uint32_t i = 0; i < weights->n_tensors; i++) {
        const whit_tensor *tensor = &weights->tensors[i];
        for (int p = 0; p < WHIT_PART_COUNT; p++)
            if (tensor->part_bytes[p] >= HUGE_PAGE_BYTES && !(p == WHIT_PART_CODES && is_multiplied(&s->plan, i)))
                whit_map_expect(tensor->part[p], tensor->part_bytes[p], false);
    }
}

static whit_status open_session(const whit_model *model, const whit_session_options *options, const whit_model *drafter,
                                whit_session **out, whit_error *error)
{
    *out = NULL;
    whit_session *s = whit_zalloc(model->allocator, sizeof *s);
    if (!s) return whit_fail_memory(error, "the session", sizeof *s);
    s->allocator = model->allocator;
    whit_status status = prepare_session(s, model, options, drafter, error);
    if (status == WHIT_OK) {
        s->arena = whit_alloc(s->allocator, s->arena_bytes);
        if (!s->arena) status = whit_fail_memory(error, "the session", s->arena_bytes);
    }
    if (status == WHIT_OK) {
        if (s->arena_bytes >= HUGE_PAGE_BYTES) whit_system_interleave(s->arena, s->arena_bytes);
        whit_arena arena = {.memory = s->arena};
        whit_fpenv caller = whit_fpenv_enter(); /* encloses no allocation, because allocators belong to the host */
        place_arrays(s, &arena);
        whit_fpenv_leave(caller);
        memset(s->positions, 0, s->options.n_sequences * sizeof *s->positions);
        memset(s->to_mark, 0, s->options.n_sequences * sizeof *s->to_mark);
        memset(s->last_mark, 0, s->options.n_sequences * sizeof *s->last_mark);
        memset(s->recent_marks, 0, s->options.n_sequences * WHIT_MARKS_RECENT * sizeof *s->recent_marks);
        memset(s->mounts, 0, s->options.n_sequences * sizeof *s->mounts);
        memset(s->is_mixed, 0, s->options.n_sequences * sizeof *s->is_mixed);
        status = whit_pool_open(s->options.n_threads, s->allocator, &s->pool, error);
        s->exec.pool = s->pool;
        if (s->drafter) s->drafter->exec.pool = s->pool;
        expect_reads(s);
    }
    if (status != WHIT_OK) {
        whit_session_close(s);
        return status;
    }
    *out = s;
    return WHIT_OK;
}

whit_status whit_session_open_here(const whit_model *model, const whit_session_options *options, whit_session **out,
                                   whit_error *error)
{
    return open_session(model, options, NULL, out, error);
}

whit_status whit_session_open(const whit_model *model, const whit_session_options *options, whit_session **out,
                              whit_error *error)
{
    WHIT_NEED(out);
    *out = NULL;
    WHIT_NEED(model);
    if (!whit_split_leads(model)) return whit_session_open_here(model, options, out, error);
    uint32_t number;
    WHIT_TRY(whit_split_tell_open(model, options, &number, error));
    whit_session *session;
    whit_status status = whit_session_open_here(model, options, &session, error);
    status = whit_split_join(model, status, error);
    if (status != WHIT_OK) {
        whit_session_close(session);
        return status;
    }
    session->split_number = number;
    model->split->sessions[number] = session;
    *out = session;
    return WHIT_OK;
}

whit_status whit_session_open_drafting(const whit_model *model, const whit_session_options *options,
                                       const whit_model *drafter, whit_session **session, whit_error *error)
{
    if (!drafter) return whit_session_open(model, options, session, error);
    WHIT_NEED(session);
    *session = NULL;
    WHIT_NEED(model);
    if (model->split)
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "%s: a model that several machines run cannot have a draft model", model->path);
    return open_session(model, options, drafter, session, error);
}

/* Frees everything that prepare_session allocated. */
static void free_plan(whit_session *s)
{
    whit_drafter_close(s->drafter);
    whit_exec_schedules_free(&s->plan, &s->schedules);
    whit_plan_free(&s->plan);
    whit_free(s->allocator, s->kv_layers, s->model ? s->model->config.n_layers * sizeof *s->kv_layers : 0);
}

void whit_session_close(whit_session *s)
{
    if (!s) return;
    if (s->model && whit_split_leads(s->model)) whit_split_tell_close(s);
    whit_pool_close(s->pool);
    whit_exec_adapt_free(&s->exec.adapt);
    whit_residency_close(s->exec.residency);
    free_plan(s);
    whit_free(s->allocator, s->arena, s->arena_bytes);
    whit_free(s->allocator, s, sizeof *s);
}

whit_status whit_session_limit_experts(whit_session *s, uint64_t bytes_max, whit_error *error)
{
    const void *address;
    const char *path;
    size_t size_bytes;
    WHIT_TRY(whit_split_refuse(s, "limits of the experts' memory are", error));
    if (!whit_ndf_mapping(s->model->file, 0, &address, &size_bytes, &path))
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "%s: the memory of experts can be limited only if the model is opened from a file",
                         s->model->path);
    if (s->exec.residency)
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "%s: the memory limit of the session's experts is set already, and can be set only once",
                         s->model->path);
    whit_error inner;
    whit_status status =
        whit_residency_open(&s->plan, s->model->weights.tensors, bytes_max, s->allocator, &s->exec.residency, &inner);
    if (status != WHIT_OK) return whit_fail(error, status, "%s: %s", s->model->path, inner.message);
    return WHIT_OK;
}

void whit_session_count_experts(const whit_session *s, whit_expert_counts *counts)
{
    const size_t given = counts->struct_bytes;
    whit_expert_counts all = {0};
    if (s->exec.residency) all = *whit_residency_counts(s->exec.residency);
    all.struct_bytes = given;
    memcpy(counts, &all, given < sizeof all ? given : sizeof all);
}

/* ---- stepping ------------------------------------------------------------------------------- */

/* Tokens of a step in the caller's array. */
struct step_tokens {
    const uint8_t *first;
    size_t stride_bytes; /* size of the caller's whit_step_token, at least WHIT_STEP_TOKEN_MIN_BYTES */
};

static inline whit_step_token token_at(struct step_tokens tokens, size_t i)
{
    whit_step_token token = {0};
    size_t n = tokens.stride_bytes < sizeof token ? tokens.stride_bytes : sizeof token;
    memcpy(&token, tokens.first + i * tokens.stride_bytes, n);
    return token;
}

whit_status whit_session_check_sequence(const whit_session *session, uint32_t sequence, whit_error *error)
{
    if (sequence < session->options.n_sequences) return WHIT_OK;
    return whit_fail(error, WHIT_ERROR_ARGUMENT, "there is no sequence %u: the session has %u, counted from 0",
                     sequence, session->options.n_sequences);
}

static whit_status check_step(whit_session *s, struct step_tokens tokens, size_t n_tokens, whit_error *error)
{
    size_t n_wanted = 0;
    if (n_tokens == 0) return whit_fail(error, WHIT_ERROR_ARGUMENT, "a step needs at least one token");
    memset(s->advanced, 0, s->options.n_sequences * sizeof *s->advanced);
    for (size_t i = 0; i < n_tokens; i++) {
        whit_step_token token;
        WHIT_TRY(whit_element_read(&token, sizeof token, WHIT_STEP_TOKEN_MIN_BYTES, tokens.first, i,
                                   tokens.stride_bytes, "whit_step_token", error));
        WHIT_TRY(whit_session_check_sequence(s, token.sequence, error));
        if (token.id < 0 || (uint32_t)token.id >= s->model->config.n_vocab)
            return whit_fail(error, WHIT_ERROR_ARGUMENT,
                             "token %d is not in the vocabulary, which has ids from 0 to %u", token.id,
                             s->model->config.n_vocab - 1);
        const uint32_t n_types = s->model->config.n_token_types ? s->model->config.n_token_types : 1;
        if (token.token_type >= n_types || token.token_type > UINT8_MAX)
            return whit_fail(error, WHIT_ERROR_ARGUMENT, "there is no token type %u: the model has %u, counted from 0",
                             token.token_type, n_types);
        n_wanted += token.want_logits;
        if (s->advanced[token.sequence]++ < whit_session_room(s, token.sequence)) continue;
        s->n_selected = 0;
        return whit_fail(error, WHIT_ERROR_LIMIT, "the context of %u tokens is full: choose a larger one",
                         s->options.n_ctx_tokens);
    }
    if (n_wanted > s->options.n_logits)
        return whit_fail(error, WHIT_ERROR_LIMIT,
                         "the logits of %zu tokens were requested, but the session keeps %u a step (n_logits)",
                         n_wanted, s->options.n_logits);
    return WHIT_OK;
}

/* Sorts the rows of a pass by sequence, because rows of one sequence must be adjacent. The sort must be stable, because
 * the tokens of each sequence are in order. It is an insertion sort, because batches are small and mostly sorted. */
static void sort_rows(whit_session *s, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        uint32_t sequence = s->row_sequences[i], position = s->row_positions[i], wanted = s->wanted[i];
        int32_t id = s->ids[i];
        uint8_t type = s->row_types[i];
        uint32_t j = i;
        for (; j > 0 && s->row_sequences[j - 1] > sequence; j--) {
            s->row_sequences[j] = s->row_sequences[j - 1];
            s->row_positions[j] = s->row_positions[j - 1];
            s->ids[j] = s->ids[j - 1];
            s->row_types[j] = s->row_types[j - 1];
            s->wanted[j] = s->wanted[j - 1];
        }
        s->row_sequences[j] = sequence;
        s->row_positions[j] = position;
        s->ids[j] = id;
        s->row_types[j] = type;
        s->wanted[j] = wanted;
    }
}

static bool is_last_row(const whit_batch *batch, uint32_t row)
{
    return row + 1 == batch->n_rows || batch->sequences[row + 1] != batch->sequences[row];
}

/* Allocates KV cache positions for the rows of a pass. */
static whit_status extend(whit_session *s, const whit_batch *batch, whit_error *error)
{
    for (uint32_t i = 0; i < batch->n_rows; i++)
        if (is_last_row(batch, i))
            WHIT_TRY(whit_kv_extend(&s->kv, batch->sequences[i], batch->positions[i] + 1, error));
    return WHIT_OK;
}

/* Sets is_damaged for the sequences whose logits or vectors are not finite; returns whether there are any. */
static bool find_damage(whit_session *s, const whit_batch *batch)
{
    const uint32_t value = s->plan.output ? s->plan.output : s->plan.hidden;
    bool found = false;
    for (uint32_t i = 0; i < batch->n_selected; i++) {
        const float *row = whit_exec_row(&s->exec, value, s->n_selected + i);
        if (s->kernels.all_finite(row, s->plan.values[value - 1].width)) continue;
        s->is_damaged[batch->sequences[batch->selected[i]]] = true;
        found = true;
    }
    return found;
}

/* After a pass, enters full blocks into the prefix cache (not for bidirectional models), makes marks that are due, and
 * frees blocks before the windows; skips damaged sequences. */
static void settle(whit_session *s, const whit_batch *batch)
{
    for (uint32_t i = 0, first = 0; i < batch->n_rows; i++) {
        if (!is_last_row(batch, i)) continue;
        const uint32_t sequence = batch->sequences[i], end = batch->positions[i] + 1;
        const uint32_t begin = first;
        first = i + 1;
        if (s->is_damaged[sequence]) continue;
        if (!s->model->config.bidirectional) whit_session_name_blocks(s, sequence, batch->positions[begin], end);
        for (uint32_t row = begin; row <= i && s->marks.n; row++)
            if (whit_session_is_to_mark(s, sequence, batch->positions[row] + 1, batch->ids[row]))
                whit_session_keep_mark(s, sequence, batch->positions[row] + 1);
        if (s->to_mark[sequence] <= end) s->to_mark[sequence] = 0;
        whit_kv_settle(&s->kv, sequence);
    }
    whit_kv_populate(&s->kv);
}

/* Restores a sequence after a failed step. If blocks before a window were already freed, the sequence may become
 * shorter than before the step. */
static void undo(whit_session *s, uint32_t sequence)
{
    uint32_t position = s->positions[sequence];
    whit_session_forget_drafts(s, sequence, position);
    if (s->last_mark[sequence] > position) s->last_mark[sequence] = position;
    if (whit_kv_reaches(&s->kv, sequence, position))
        whit_kv_truncate(&s->kv, sequence, position);
    else
        whit_session_go_back(s, sequence, whit_session_tokens_of(s, sequence), position);
}

/* Runs one pass with tokens [begin, begin + n). each: logits that are not finite do not fail the pass. */
static whit_status run_pass(whit_session *s, struct step_tokens tokens, size_t begin, uint32_t n, bool each,
                            whit_error *error)
{
    whit_batch batch = {.n_rows = n,
                        .ids = s->ids,
                        .sequences = s->row_sequences,
                        .positions = s->row_positions,
                        .types = s->row_types,
                        .selected = s->selected,
                        .selected_begin = s->n_selected,
                        .tops = s->options.exact_head ? NULL : s->tops};
    for (uint32_t i = 0; i < n; i++) {
        whit_step_token token = token_at(tokens, begin + i);
        uint32_t sequence = token.sequence;
        s->ids[i] = token.id;
        s->row_types[i] = (uint8_t)token.token_type;
        s->row_sequences[i] = sequence;
        uint32_t position = s->positions[sequence] + s->advanced[sequence]++;
        s->row_positions[i] = position;
        s->wanted[i] = token.want_logits ? ++batch.n_selected : 0;
        if (s->wanted[i]) s->tops[s->wanted[i] - 1] = token.n_top;
        if (position < s->options.n_ctx_tokens) whit_session_tokens_of(s, sequence)[position] = token.id;
    }
    sort_rows(s, n);
    WHIT_TRY(extend(s, &batch, error));
    /* `selected` is the inverse of `wanted`. */
    for (uint32_t i = 0; i < n; i++)
        if (s->wanted[i]) s->selected[s->wanted[i] - 1] = i;
    const whit_model_ranks *split = s->model->split;
    const volatile bool *cancel = split ? NULL : s->options.cancel;
    if (!whit_exec_run(&s->exec, &batch, cancel))
        return split ? whit_split_lose(s, error) : whit_fail(error, WHIT_ERROR_CANCELLED, "cancelled");
    bool is_damaged = (!split || whit_split_leads(s->model)) && find_damage(s, &batch);
    if (split) WHIT_TRY(whit_split_agree(s, &is_damaged, error));
    if (is_damaged && !each)
        return whit_fail(error, WHIT_ERROR_NUMERIC,
                         "%s: the model's outputs are not finite: its weights are damaged, or an adapter is too strong",
                         s->model->path);
    if (s->drafter) whit_drafter_keep(s->drafter, &s->exec, &batch);
    s->n_selected += batch.n_selected;
    settle(s, &batch);
    return WHIT_OK;
}

/* Returns the number of tokens of the next pass, at most n. With recurrent layers a pass ends when a sequence reaches a
 * position to be marked, because its state cannot be saved any more after later tokens. */
static size_t tokens_of_pass(whit_session *s, struct step_tokens tokens, size_t begin, size_t n)
{
    size_t end = 0;
    bool is_marked = false;
    for (; s->kv.state.sequence_elems && s->marks.n && end < n && !is_marked; end++) {
        const whit_step_token token = token_at(tokens, begin + end);
        const uint32_t n_tokens = s->positions[token.sequence] + ++s->advanced[token.sequence];
        is_marked = whit_session_is_to_mark(s, token.sequence, n_tokens, token.id);
    }
    for (size_t i = 0; i < end; i++) s->advanced[token_at(tokens, begin + i).sequence]--;
    return is_marked ? end : n;
}

/* For a bidirectional model, fails if tokens continue a text or do not fit into one pass: all tokens of a text attend
 * to each other, so a text must be computed in one pass. */
static whit_status check_whole_texts(const whit_session *s, size_t n_tokens, whit_error *error)
{
    if (!s->model->config.bidirectional) return WHIT_OK;
    bool continues = n_tokens > s->options.n_batch_tokens;
    for (uint32_t q = 0; q < s->options.n_sequences; q++) continues |= s->advanced[q] && s->positions[q];
    if (!continues) return WHIT_OK;
    return whit_fail(
        error, WHIT_ERROR_ARGUMENT,
        "%s attends to both sides: a step takes whole texts in empty sequences, together at most %u tokens",
        s->model->path, s->options.n_batch_tokens);
}

/* On rank 0 of a split model, sends a step to the other ranks; fails if the step is already cancelled. */
static whit_status tell_step(const whit_session *s, struct step_tokens tokens, size_t n_tokens, bool each,
                             whit_error *error)
{
    const uint32_t numbers[3] = {each};
    if (!whit_split_leads(s->model)) return WHIT_OK;
    if (whit_flag_is_set(s->options.cancel)) return whit_fail(error, WHIT_ERROR_CANCELLED, "cancelled");
    if (tokens.stride_bytes == sizeof(whit_step_token))
        return whit_split_tell(s, WHIT_SPLIT_STEP, numbers, tokens.first, n_tokens, sizeof(whit_step_token), error);
    whit_step_token *copy = whit_zalloc_array(s->allocator, n_tokens, sizeof *copy);
    if (!copy) return whit_fail_memory(error, "a step", n_tokens * sizeof *copy);
    for (size_t i = 0; i < n_tokens; i++) copy[i] = token_at(tokens, i);
    const whit_status status = whit_split_tell(s, WHIT_SPLIT_STEP, numbers, copy, n_tokens, sizeof *copy, error);
    whit_free(s->allocator, copy, n_tokens * sizeof *copy);
    return status;
}

static whit_status take_step(whit_session *s, struct step_tokens tokens, size_t n_tokens, bool each, whit_error *error)
{
    WHIT_TRY(check_step(s, tokens, n_tokens, error));
    WHIT_TRY(check_whole_texts(s, n_tokens, error));
    WHIT_TRY(tell_step(s, tokens, n_tokens, each, error));
    whit_fpenv caller = whit_fpenv_enter();
    whit_status status = WHIT_OK;
    memset(s->advanced, 0, s->options.n_sequences * sizeof *s->advanced);
    memset(s->is_damaged, 0, s->options.n_sequences * sizeof *s->is_damaged);
    s->n_selected = 0;
    whit_pool_part_caller(s->pool);
    for (size_t i = 0, n; status == WHIT_OK && i < n_tokens; i += n) {
        n = n_tokens - i < s->options.n_batch_tokens ? n_tokens - i : s->options.n_batch_tokens;
        n = tokens_of_pass(s, tokens, i, n);
        status = run_pass(s, tokens, i, (uint32_t)n, each, error);
    }
    for (uint32_t q = 0; q < s->options.n_sequences; q++) {
        if (status == WHIT_OK && !s->is_damaged[q])
            s->positions[q] += s->advanced[q];
        else
            undo(s, q);
    }
    if (status != WHIT_OK) s->n_selected = 0;
    whit_fpenv_leave(caller);
    return status;
}

whit_status whit_session_step_strided(whit_session *s, const void *first, size_t n_tokens, size_t stride_bytes,
                                      whit_error *error)
{
    WHIT_NEED(s);
    WHIT_NEED(first);
    return take_step(s, (struct step_tokens){first, stride_bytes}, n_tokens, false, error);
}

whit_status whit_session_step_each(whit_session *s, const whit_step_token *tokens, size_t n_tokens, whit_error *error)
{
    return take_step(s, (struct step_tokens){(const uint8_t *)tokens, sizeof *tokens}, n_tokens, true, error);
}

const float *whit_session_logits(const whit_session *s, size_t i_wanted)
{
    if (i_wanted >= s->n_selected || !s->plan.output) return NULL;
    return whit_exec_row(&s->exec, s->plan.output, (uint32_t)i_wanted);
}

const float *whit_session_hidden(const whit_session *s, size_t i_wanted)
{
    if (i_wanted >= s->n_selected || !s->options.keep_hidden) return NULL;
    return whit_exec_row(&s->exec, s->plan.hidden, (uint32_t)i_wanted);
}

uint32_t whit_session_position(const whit_session *s, uint32_t sequence)
{
    return sequence < s->options.n_sequences ? s->positions[sequence] : 0;
}

uint32_t whit_session_context_size(const whit_session *s)
{
    return s->options.n_ctx_tokens;
}

size_t whit_session_arena_bytes(const whit_session *s)
{
    return s->arena_bytes;
}

void whit_session_cut(whit_session *s, uint32_t sequence, uint32_t n_tokens)
{
    if (!whit_kv_reaches(&s->kv, sequence, n_tokens)) {
        whit_session_go_back(s, sequence, whit_session_tokens_of(s, sequence), n_tokens);
        return;
    }
    whit_kv_truncate(&s->kv, sequence, n_tokens);
    whit_session_forget_drafts(s, sequence, n_tokens);
    s->positions[sequence] = n_tokens;
    if (s->last_mark[sequence] > n_tokens) s->last_mark[sequence] = n_tokens;
    if (!n_tokens) s->is_mixed[sequence] = false;
}

whit_status whit_session_truncate(whit_session *s, uint32_t sequence, uint32_t n_tokens, whit_error *error)
{
    WHIT_NEED(s);
    WHIT_TRY(whit_session_check_sequence(s, sequence, error));
    if (n_tokens > s->positions[sequence])
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "sequence %u has only %u tokens, so its first %u cannot be kept",
                         sequence, s->positions[sequence], n_tokens);
    WHIT_TRY(whit_split_tell(s, WHIT_SPLIT_TRUNCATE, (uint32_t[3]){sequence, n_tokens}, NULL, 0, 0, error));
    whit_session_cut(s, sequence, n_tokens);
    return WHIT_OK;
}

static bool same_mounts(const whit_session_mounts *a, const whit_session_mounts *b)
{
    bool same = a->n == b->n;
    for (uint32_t i = 0; same && i < a->n; i++)
        same = a->items[i].adapter == b->items[i].adapter && a->items[i].scale == b->items[i].scale;
    return same;
}

whit_status whit_session_share(whit_session *s, uint32_t from, uint32_t to, uint32_t n_tokens, whit_error *error)
{
    WHIT_NEED(s);
    if (from >= s->options.n_sequences || to >= s->options.n_sequences)
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "sequence %u or %u does not exist: the session has %u, counted from 0", from, to,
                         s->options.n_sequences);
    if (from == to) return whit_session_truncate(s, to, n_tokens, error);
    WHIT_TRY(whit_split_tell(s, WHIT_SPLIT_SHARE, (uint32_t[3]){from, to, n_tokens}, NULL, 0, 0, error));
    if (n_tokens <= s->positions[from] && !whit_kv_reaches(&s->kv, from, n_tokens)) {
        whit_session_go_back(s, to, whit_session_tokens_of(s, from), n_tokens);
        return WHIT_OK;
    }
    WHIT_TRY(whit_kv_share(&s->kv, from, to, n_tokens, error));
    whit_session_forget_drafts(s, to, 0);
    s->positions[to] = n_tokens;
    s->last_mark[to] = s->last_mark[from] < n_tokens ? s->last_mark[from] : n_tokens;
    size_t n_known = n_tokens < s->options.n_ctx_tokens ? n_tokens : s->options.n_ctx_tokens;
    memcpy(whit_session_tokens_of(s, to), whit_session_tokens_of(s, from), n_known * sizeof *s->tokens);
    s->is_mixed[to] = n_tokens && (s->is_mixed[from] || !same_mounts(&s->mounts[from], &s->mounts[to]));
    return WHIT_OK;
}

/* ---- adapters ------------------------------------------------------------------------------- */

_Static_assert(WHIT_MOUNTS_MAX == WHIT_EXEC_MOUNTS, "as many as are promised");

static whit_status check_mounts(const whit_session *s, const void *mounts, size_t n, size_t stride_bytes,
                                whit_exec_mounting *mounting, whit_error *error)
{
    *mounting = (whit_exec_mounting){0};
    for (size_t i = 0; i < n; i++) {
        whit_mount mount;
        WHIT_TRY(whit_element_read(&mount, sizeof mount, sizeof mount, mounts, i, stride_bytes, "whit_mount", error));
        if (!mount.adapter || mount.adapter->model != s->model)
            return whit_fail(error, WHIT_ERROR_ARGUMENT,
                             "an adapter to be mounted was opened for another model: open it for this one");
        if (!s->kernels.all_finite(&mount.scale, 1))
            return whit_fail(error, WHIT_ERROR_ARGUMENT,
                             "the scale of an adapter to be mounted is not a finite number");
        if (mount.scale == 0) continue; /* skipped, because adding +0 would turn -0 into +0 */
        if (mounting->n == WHIT_MOUNTS_MAX)
            return whit_fail(error, WHIT_ERROR_LIMIT,
                             "more adapters are to be mounted than a sequence can have: at most %d", WHIT_MOUNTS_MAX);
        mounting->mounts[mounting->n++] =
            (whit_exec_adapter){.weights = &mount.adapter->weights, .strength = mount.scale};
    }
    return WHIT_OK;
}

whit_status whit_session_mount_strided(whit_session *s, uint32_t sequence, const void *mounts, size_t n,
                                       size_t stride_bytes, whit_error *error)
{
    WHIT_NEED(s);
    WHIT_NEED_ARRAY(mounts, n);
    WHIT_TRY(whit_session_check_sequence(s, sequence, error));
    whit_exec_mounting mounting;
    WHIT_TRY(check_mounts(s, mounts, n, stride_bytes, &mounting, error));
    if (mounting.n) WHIT_TRY(whit_split_refuse(s, "adapters are", error));
    WHIT_TRY(whit_exec_mount(&s->exec, sequence, mounting, s->allocator, error));
    whit_session_mounts wanted = {0};
    for (size_t i = 0; i < n; i++) {
        whit_mount mount;
        memcpy(&mount, (const uint8_t *)mounts + i * stride_bytes, sizeof mount);
        if (mount.scale != 0) wanted.items[wanted.n++] = mount;
    }
    s->is_mixed[sequence] |= s->positions[sequence] && !same_mounts(&s->mounts[sequence], &wanted);
    s->mounts[sequence] = wanted;
    return WHIT_OK;
}

whit_status whit_session_predict_marks(const whit_model *model, const whit_session_options *options,
                                       whit_mark_counts *counts, whit_error *error)
{
    WHIT_NEED(counts);
    WHIT_NEED(model);
    whit_session *s = whit_zalloc(model->allocator, sizeof *s);
    if (!s) return whit_fail_memory(error, "the session", sizeof *s);
    whit_status status = prepare_session(s, model, options, NULL, error);
    if (status == WHIT_OK) whit_session_count_marks(s, counts);
    free_plan(s);
    whit_free(model->allocator, s, sizeof *s);
    return status;
}

whit_status whit_session_predict_bytes_strided(const whit_model *model, const whit_session_options *options,
                                               const void *mounts, size_t n, size_t stride_bytes, size_t *bytes,
                                               whit_error *error)
{
    WHIT_NEED(bytes);
    WHIT_NEED(model);
    WHIT_NEED_ARRAY(mounts, n);
    *bytes = 0;
    whit_session *s = whit_zalloc(model->allocator, sizeof *s);
    if (!s) return whit_fail_memory(error, "the session", sizeof *s);
    whit_exec_mounting mounting;
    whit_status status = prepare_session(s, model, options, NULL, error);
    if (status == WHIT_OK) status = check_mounts(s, mounts, n, stride_bytes, &mounting, error);
    if (status == WHIT_OK) *bytes = s->arena_bytes + whit_exec_mount_bytes(&s->exec, mounting);
    free_plan(s);
    whit_free(model->allocator, s, sizeof *s);
    return status;
}

whit_status whit_session_predict_drafter_bytes(const whit_model *model, const whit_session_options *options,
                                               const whit_model *drafter, size_t *bytes, whit_error *error)
{
    WHIT_NEED(bytes);
    WHIT_NEED(model);
    size_t without = 0;
    *bytes = 0;
    if (!drafter) return WHIT_OK;
    WHIT_TRY(whit_session_predict_bytes(model, options, NULL, 0, &without, error));
    whit_session *s = whit_zalloc(model->allocator, sizeof *s);
    if (!s) return whit_fail_memory(error, "the session", sizeof *s);
    s->allocator = model->allocator;
    whit_status status = prepare_session(s, model, options, drafter, error);
    if (status == WHIT_OK) *bytes = s->arena_bytes - without;
    free_plan(s);
    whit_free(model->allocator, s, sizeof *s);
    return status;
}
