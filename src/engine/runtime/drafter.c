/* SPDX-License-Identifier: MIT */
#include "runtime/drafter.h"

#include "base/fpenv.h"
#include "kernels/codec.h"
#include "model/draft_block.h"
#include "model/families.h"
#include "runtime/draft.h"

enum { ROWS = WHIT_DRAFTER_ROWS, BATCH = WHIT_DRAFTER_BATCH };

/* Returns the plan value that corresponds to a graph value; 0 if the plan has dropped it. */
static uint32_t find_value(const whit_plan *plan, whit_ref value)
{
    uint32_t v = plan->n_values;
    while (v && plan->values[v - 1].graph_value != value) v--;
    return v;
}

/* ---- opening -------------------------------------------------------------------------------- */

/* Sets drafter->source to the target's value whose rows are stored: the input of the norm before the head, or, if rows
 * are selected directly before that norm, the input of the selection, which has a row for every token of a pass.
 * Returns false if there is no norm that fits. */
static bool find_source(const whit_graph *graph, whit_drafter *drafter)
{
    whit_ref value = graph->hidden;
    for (uint32_t i = graph->n_nodes; i-- > 0;) {
        const whit_node *node = &graph->nodes[i];
        if (node->output != value) continue;
        if (node->op == WHIT_OP_RMS_NORM && !drafter->norm)
            drafter->norm = node;
        else if (node->op != WHIT_OP_SELECT || !drafter->norm)
            break;
        value = node->input[0];
    }
    drafter->source = value;
    return drafter->norm && drafter->norm->weight >= 0 && drafter->norm->head_dim == drafter->width;
}

static whit_status build_graph(whit_drafter *drafter, whit_error *error)
{
    const whit_model *model = drafter->model;
    const whit_resolver resolver = whit_weights_resolver((whit_weights *)(uintptr_t)&model->weights);
    whit_error inner = {0};
    if (model->config.program)
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "%s: a model that contains its family's program cannot be a draft model", model->path);
    if (model->config.draft_width)
        drafter->config = model->config;
    else if (!whit_draft_block_config(&model->config, &resolver, &drafter->config))
        return whit_fail(
            error, WHIT_ERROR_UNSUPPORTED,
            "%s: the model has no block that predicts further tokens (mtp, nextn) and is not a draft model",
            model->path);
    whit_graph_begin(&drafter->graph, drafter->allocator, resolver, &inner);
    whit_status status = whit_family_build(&drafter->config, &drafter->graph);
    if (status != WHIT_OK) return whit_fail(error, status, "%s: %s", model->path, inner.message);
    return WHIT_OK;
}

/* Finds the target's embedding table, and the factor by which the target multiplies embeddings; false if there is no
 * table. */
static bool find_embedding(whit_drafter *drafter)
{
    const whit_graph *graph = &drafter->target->graph;
    whit_ref rows = 0;
    drafter->embedding_scale = 1;
    for (uint32_t i = 0; i < graph->n_nodes; i++) {
        const whit_node *node = &graph->nodes[i];
        const bool is_table = node->op == WHIT_OP_EMBED && node->gate == WHIT_INDEX_ID &&
            graph->values[node->output - 1].width == drafter->width;
        if (is_table && !rows) {
            rows = node->output;
            drafter->embedding = &drafter->target->weights.tensors[node->weight];
        }
        if (rows && node->op == WHIT_OP_SCALE && node->input[0] == rows) drafter->embedding_scale = node->constant;
    }
    return rows != 0;
}

/* Finds the target's last layer with keys that has the same window as the draft model's layer `layer`; returns false
 * without such a layer, if its heads do not fit, or if the window is 1. */
static bool find_owner(whit_drafter *drafter, uint32_t layer, uint32_t n_heads, const whit_kv_layer *target)
{
    const whit_layer_kind kind = whit_config_kind(&drafter->config, layer);
    const whit_kv_layer *owner = NULL;
    for (uint32_t i = 0; i < drafter->target->config.n_layers; i++) {
        if (!target[i].n_kv_heads || target[i].window != kind.window) continue;
        owner = &target[i];
        drafter->owners[layer] = i;
    }
    return owner && kind.window != 1 && owner->head_dim == kind.head_dim && n_heads % owner->n_kv_heads == 0;
}

/* Finds the target's layers whose keys and values the draft model's layers read; `owners` stays NULL if the draft model
 * computes its own keys. */
static whit_status find_owners(whit_drafter *drafter, const whit_session_options *options, whit_error *error)
{
    const whit_model *target = drafter->target, *model = drafter->model;
    const uint32_t n_layers = target->config.n_layers;
    for (uint32_t i = 0; i < drafter->graph.n_nodes; i++)
        drafter->reads_target |= drafter->graph.nodes[i].op == WHIT_OP_ATTENTION_SHARED;
    if (!drafter->reads_target) return WHIT_OK;
    if (whit_kv_is_packed(options->kv) || options->endless)
        return whit_fail(
            error, WHIT_ERROR_UNSUPPORTED,
            "%s: this draft model reads the model's KV cache, which must be f16, f32 or i8 and not endless",
            model->path);
    drafter->owners = whit_zalloc_array(drafter->allocator, drafter->config.n_layers, sizeof *drafter->owners);
    whit_kv_layer *layers = whit_zalloc_array(drafter->allocator, n_layers, sizeof *layers);
    /* number of query heads of layers without ([0]) and with ([1]) a window: all layers of a cache class must have the
     * same number */
    uint32_t n_queries[2] = {0};
    const bool has_memory = drafter->owners && layers;
    bool fits = has_memory && whit_exec_kv_layers(&target->graph, layers, n_layers);
    for (uint32_t i = 0; fits && i < drafter->graph.n_nodes; i++) {
        const whit_node *node = &drafter->graph.nodes[i];
        if (node->op != WHIT_OP_ATTENTION_SHARED) continue;
        const uint32_t n_heads = drafter->graph.values[node->output - 1].width / node->head_dim;
        uint32_t *expected = &n_queries[whit_config_kind(&drafter->config, node->layer).window != 0];
        if (!*expected) *expected = n_heads;
        fits = *expected == n_heads && find_owner(drafter, node->layer, n_heads, layers);
    }
    whit_free(drafter->allocator, layers, n_layers * sizeof *layers);
    if (!has_memory) return whit_fail_memory(error, "the draft model", n_layers * sizeof *layers);
    if (fits) return WHIT_OK;
    return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                     "%s: its layers read keys that %s does not have: windows, sizes or numbers of heads differ",
                     model->path, target->path);
}

/* Checks the widths of the values that the draft model reads from the target and returns for the next guess, and finds
 * the embedding table if input rows contain an embedding. */
static whit_status check_values(whit_drafter *drafter, whit_error *error)
{
    const whit_plan *plan = &drafter->plan;
    const uint32_t width = drafter->width;
    if (!drafter->given || !plan->output || !plan->hidden || plan->values[plan->hidden - 1].width != width)
        return whit_fail(
            error, WHIT_ERROR_FORMAT,
            "%s: a draft model must read the target model's rows, and return logits and rows of %u elements",
            drafter->model->path, width);
    const bool has_embedding = plan->values[drafter->given - 1].width == 2 * width;
    if (has_embedding && !find_embedding(drafter))
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "%s: the model has no table of embeddings, which its draft model needs",
                         drafter->target->path);
    return WHIT_OK;
}

static whit_status compile_plan(whit_drafter *drafter, const whit_session_options *options, whit_error *error)
{
    const uint32_t n_layers = drafter->config.n_layers;
    const whit_tensor *tensors = drafter->model->weights.tensors;
    whit_ref given = 0;
    drafter->kv_layers = whit_zalloc_array(drafter->allocator, n_layers, sizeof *drafter->kv_layers);
    if (!drafter->kv_layers) return whit_fail_memory(error, "the draft model", n_layers * sizeof *drafter->kv_layers);
    if (!whit_exec_kv_layers(&drafter->graph, drafter->kv_layers, n_layers))
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "%s: a layer of the model's program calls attention() twice, but once is possible",
                         drafter->model->path);
    for (uint32_t i = 0; i < n_layers; i++) {
        if (drafter->kv_layers[i].state.n_channels || drafter->kv_layers[i].state.n_heads)
            return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                             "%s: draft models with recurrent layers are not supported, those with attention only are",
                             drafter->model->path);
        drafter->kv_layers[i].window = 0; /* no window, because the cache is short */
    }
    const whit_plan_options plan = {.act = options->act, .keep_hidden = true, .no_fuse = options->no_fuse};
    WHIT_TRY(whit_plan_compile(&drafter->graph, &plan, drafter->allocator, &drafter->plan, error));
    for (uint32_t i = 0; i < drafter->graph.n_nodes; i++)
        if (drafter->graph.nodes[i].op == WHIT_OP_GIVEN) given = drafter->graph.nodes[i].output;
    drafter->given = find_value(&drafter->plan, given);
    WHIT_TRY(check_values(drafter, error));
    WHIT_TRY(whit_exec_choose(&drafter->plan, tensors, drafter->kernels, &drafter->schedules, error));
    return whit_exec_schedules_make(&drafter->plan, tensors, BATCH, 1, &drafter->schedules, error);
}

static whit_status open_parts(whit_drafter *drafter, const whit_session_options *options, whit_error *error)
{
    const whit_model *target = drafter->target;
    WHIT_TRY(build_graph(drafter, error));
    if (!find_source(&target->graph, drafter) || target->config.n_embd != drafter->config.draft_width ||
        target->config.n_vocab != drafter->config.n_vocab)
        return whit_fail(
            error, WHIT_ERROR_UNSUPPORTED,
            "%s: the draft model reads rows of %u and predicts %u tokens, but %s has rows of %u and %u tokens",
            drafter->model->path, drafter->config.draft_width, drafter->config.n_vocab, target->path,
            target->config.n_embd, target->config.n_vocab);
    WHIT_TRY(find_owners(drafter, options, error));
    return compile_plan(drafter, options, error);
}

whit_status whit_drafter_open(const whit_model *target, const whit_model *model, const whit_session_options *options,
                              const whit_kernels *kernels, whit_drafter **out, whit_error *error)
{
    whit_drafter *drafter = whit_zalloc(target->allocator, sizeof *drafter);
    *out = NULL;
    if (!drafter) return whit_fail_memory(error, "the draft model", sizeof *drafter);
    uint32_t n_ctx = options->n_ctx_tokens < WHIT_DRAFTER_CTX ? options->n_ctx_tokens : WHIT_DRAFTER_CTX;
    if (n_ctx < ROWS) n_ctx = ROWS;
    *drafter = (whit_drafter){.target = target,
                              .model = model,
                              .allocator = target->allocator,
                              .kernels = kernels,
                              .n_sequences = options->n_sequences,
                              .n_ctx_tokens = n_ctx + WHIT_DRAFT_MAX,
                              .width = target->config.n_embd,
                              .exact_head = options->exact_head};
    whit_status status = open_parts(drafter, options, error);
    if (status == WHIT_OK)
        *out = drafter;
    else
        whit_drafter_close(drafter);
    return status;
}

void whit_drafter_close(whit_drafter *drafter)
{
    if (!drafter) return;
    whit_exec_schedules_free(&drafter->plan, &drafter->schedules);
    whit_plan_free(&drafter->plan);
    whit_free(drafter->allocator, drafter->kv_layers, drafter->config.n_layers * sizeof *drafter->kv_layers);
    whit_free(drafter->allocator, drafter->owners, drafter->config.n_layers * sizeof *drafter->owners);
    whit_graph_free(&drafter->graph);
    whit_free(drafter->allocator, drafter, sizeof *drafter);
}

const char *whit_drafter_source(const whit_drafter *drafter)
{
    return drafter->target->graph.values[drafter->source - 1].name;
}

/* Measures the cache of the draft model's own layers, and takes its memory from the arena. */
static void place_cache(whit_drafter *drafter, whit_arena *arena)
{
    const whit_kv_shape shape = {.type = WHIT_KV_F16,
                                 .layers = drafter->kv_layers,
                                 .n_layers = drafter->config.n_layers,
                                 .n_sequences = drafter->n_sequences,
                                 .n_ctx_tokens = drafter->n_ctx_tokens,
                                 .n_batch_tokens = BATCH};
    uint64_t kv_bytes;
    if (!whit_kv_measure(&shape, &drafter->kv, &kv_bytes)) {
        arena->overflow = true;
        return;
    }
    void *kv_memory = whit_arena_take(arena, kv_bytes, 1);
    if (kv_memory) whit_kv_init(&drafter->kv, &shape, kv_memory);
}

/* Makes the draft model's cache a view of the target's cache: the same blocks, but the draft model's number of query
 * heads. A query of the draft model at the last position belongs to the token after it, so windows are one position
 * shorter. */
static void view_cache(whit_drafter *drafter, const whit_kv *target, whit_arena *arena)
{
    drafter->kv = *target;
    drafter->kv.shape.layers = drafter->kv_layers;
    drafter->kv.shape.n_layers = drafter->config.n_layers;
    drafter->kv.layers = whit_arena_take(arena, drafter->config.n_layers, sizeof *drafter->kv.layers);
    for (uint32_t c = 0; c < drafter->kv.n_classes; c++)
        if (drafter->kv.classes[c].window) drafter->kv.classes[c].window--;
    for (uint32_t i = 0; i < drafter->graph.n_nodes; i++) {
        const whit_node *node = &drafter->graph.nodes[i];
        if (node->op != WHIT_OP_ATTENTION_SHARED) continue;
        const uint32_t window = whit_config_kind(&drafter->config, node->layer).window;
        const uint32_t n_heads = drafter->graph.values[node->output - 1].width / node->head_dim;
        for (uint32_t c = 0; c < drafter->kv.n_classes; c++) {
            whit_kv_class *class = &drafter->kv.classes[c];
            if (class->head_dim == node->head_dim && (class->window != 0) == (window != 0) &&
                n_heads % class->n_kv_heads == 0)
                class->n_heads = n_heads;
        }
        if (drafter->kv.layers) drafter->kv.layers[node->layer] = target->layers[drafter->owners[node->layer]];
    }
}

void whit_drafter_place(whit_drafter *drafter, const whit_session_options *options, const whit_kv *target,
                        whit_arena *arena)
{
    const uint64_t n_rows = (uint64_t)drafter->n_sequences * ROWS;
    drafter->sequences = whit_arena_take(arena, drafter->n_sequences, sizeof *drafter->sequences);
    drafter->ids = whit_arena_take(arena, n_rows, sizeof *drafter->ids);
    drafter->hidden = whit_arena_take(arena, n_rows * drafter->width, sizeof *drafter->hidden);
    if (drafter->sequences) memset(drafter->sequences, 0, drafter->n_sequences * sizeof *drafter->sequences);
    if (drafter->reads_target)
        view_cache(drafter, target, arena);
    else
        place_cache(drafter, arena);
    if (arena->overflow) return;
    const whit_tensor *tensors = drafter->model->weights.tensors;
    const whit_resolver resolver = drafter->graph.resolver;
    whit_exec_options exec = {.n_batch_rows = BATCH,
                              .n_selected_rows = 1,
                              .n_threads = options->n_threads,
                              .n_ctx_tokens = options->n_ctx_tokens};
    whit_exec_find_ropes(&drafter->config, &resolver, tensors, &exec);
    whit_exec_place(&drafter->exec, &drafter->plan, &drafter->schedules, tensors, drafter->kernels, &drafter->kv, &exec,
                    arena);
}

/* ---- hidden states of the target -------------------------------------------------------------- */

static float *row_of(const whit_drafter *drafter, uint32_t sequence, uint32_t position)
{
    return drafter->hidden + ((size_t)sequence * ROWS + position % ROWS) * drafter->width;
}

static int32_t *id_of(const whit_drafter *drafter, uint32_t sequence, uint32_t position)
{
    return &drafter->ids[(size_t)sequence * ROWS + position % ROWS];
}

void whit_drafter_truncate(whit_drafter *drafter, uint32_t sequence, uint32_t n_tokens)
{
    whit_drafter_sequence *s = &drafter->sequences[sequence];
    if (s->end > n_tokens) s->end = n_tokens;
    if (s->begin >= s->end) s->begin = s->end = 0;
    /* The row at a position also contains the token after it, so the last position has no row. */
    const uint32_t n_valid = n_tokens > s->first + 1 ? n_tokens - s->first - 1 : 0;
    if (s->n_fed > n_valid) s->n_fed = n_valid;
}

static void keep_row(whit_drafter *drafter, uint32_t sequence, uint32_t position, int32_t id, const float *x)
{
    whit_drafter_sequence *s = &drafter->sequences[sequence];
    if (s->end > position) whit_drafter_truncate(drafter, sequence, position);
    if (s->end != position || s->begin == s->end) s->begin = position;
    s->end = position + 1;
    if (s->end - s->begin > ROWS) s->begin = s->end - ROWS;
    *id_of(drafter, sequence, position) = id;
    const float *weight =
        (const float *)(const void *)drafter->target->weights.tensors[drafter->norm->weight].part[WHIT_PART_CODES];
    drafter->kernels->rms_norm(x, weight, drafter->width, drafter->norm->constant, row_of(drafter, sequence, position));
}

void whit_drafter_keep(whit_drafter *drafter, const whit_exec *target, const whit_batch *batch)
{
    const uint32_t value = find_value(target->plan, drafter->source);
    const bool has_all = target->plan->values[value - 1].rows == WHIT_ROWS_BATCH;
    const uint32_t n = has_all ? batch->n_rows : batch->n_selected;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t row = has_all ? i : batch->selected[i];
        keep_row(drafter, batch->sequences[row], batch->positions[row], batch->ids[row],
                 whit_exec_row(target, value, has_all ? i : batch->selected_begin + i));
    }
}

/* ---- guessing --------------------------------------------------------------------------------- */

/* Rows of a pass of the draft model. */
struct rows {
    uint32_t n;
    int32_t ids[BATCH];
    uint32_t sequences[BATCH], positions[BATCH];
};

/* Adds a row at `position`: the token `id`, and the hidden state at the token before it. */
static void add_row(whit_drafter *drafter, struct rows *rows, uint32_t sequence, uint32_t position, int32_t id,
                    const float *hidden)
{
    const uint32_t width = drafter->width;
    float *row = whit_exec_row(&drafter->exec, drafter->given, rows->n);
    rows->ids[rows->n] = id;
    rows->sequences[rows->n] = sequence;
    rows->positions[rows->n++] = position;
    if (drafter->embedding) {
        whit_codec_get_rows(drafter->embedding, &id, 1, row, width);
        for (uint32_t i = 0; i < width; i++) row[i] *= drafter->embedding_scale;
        row += width;
    }
    memcpy(row, hidden, width * sizeof *hidden);
}

/* Runs the draft model on rows of one sequence and empties `rows`; with `guesses` computes the logits of the last row.
 * Returns false if cancelled or the cache is full. */
static bool run_rows(whit_drafter *drafter, struct rows *rows, bool guesses, const volatile bool *cancel)
{
    const uint32_t last = rows->n - 1, one = 1, sequence = rows->sequences[last];
    const whit_batch batch = {.n_rows = rows->n,
                              .ids = rows->ids,
                              .sequences = rows->sequences,
                              .positions = rows->positions,
                              .selected = &last,
                              .n_selected = guesses,
                              .tops = drafter->exact_head ? NULL : &one,
                              .rope_ahead = drafter->reads_target};
    rows->n = 0;
    if (!drafter->reads_target && whit_kv_extend(&drafter->kv, sequence, batch.positions[last] + 1, NULL) != WHIT_OK)
        return false;
    return whit_exec_run(&drafter->exec, &batch, cancel);
}

/* Returns the token with the largest logit in the last pass. */
static int32_t best_token(const whit_drafter *drafter)
{
    const float *logits = whit_exec_row(&drafter->exec, drafter->plan.output, 0);
    uint32_t best = 0;
    for (uint32_t i = 1; i < drafter->config.n_vocab; i++)
        if (logits[i] > logits[best]) best = i;
    return (int32_t)best;
}

/* Restarts the draft model's cache of a sequence at the oldest stored hidden state if the cache is empty, lacks
 * positions whose hidden states are no longer stored, or is full. An empty cache also restarts because the sequence may
 * begin at another position than before. */
static void begin_rows(whit_drafter *drafter, uint32_t sequence, uint32_t n_tokens)
{
    whit_drafter_sequence *s = &drafter->sequences[sequence];
    const uint32_t next = s->first + s->n_fed;
    if (!s->n_fed || next < s->begin || n_tokens - s->first + WHIT_DRAFT_MAX > drafter->n_ctx_tokens) {
        s->first = s->begin;
        s->n_fed = 0;
    }
    whit_kv_truncate(&drafter->kv, sequence, s->n_fed);
}

/* Feeds the rows that are not yet in the draft model's cache, up to position n_tokens - 1; `next` is the token after
 * it. */
static bool feed_rows(whit_drafter *drafter, uint32_t sequence, uint32_t n_tokens, int32_t next, struct rows *rows,
                      const volatile bool *cancel)
{
    whit_drafter_sequence *s = &drafter->sequences[sequence];
    bool done = true;
    for (uint32_t p = s->first + s->n_fed; done && p < n_tokens; p++) {
        const bool is_last = p + 1 == n_tokens;
        add_row(drafter, rows, sequence, p - s->first, is_last ? next : *id_of(drafter, sequence, p + 1),
                row_of(drafter, sequence, p));
        if (rows->n < BATCH && !is_last) continue;
        done = run_rows(drafter, rows, is_last, cancel);
        if (done) s->n_fed = p + 1 - s->first;
    }
    return done;
}

/* Feeds the rows from which the first guess is computed: with a cache of its own, all rows that are not yet in it; else
 * only the last row. */
static bool feed_sequence(whit_drafter *drafter, uint32_t sequence, uint32_t n_tokens, int32_t next, struct rows *rows,
                          const volatile bool *cancel)
{
    whit_drafter_sequence *s = &drafter->sequences[sequence];
    if (drafter->reads_target) {
        add_row(drafter, rows, sequence, n_tokens - 1, next, row_of(drafter, sequence, n_tokens - 1));
        return run_rows(drafter, rows, true, cancel);
    }
    /* The row of the last position is fed again, because the token after it may differ from the previous call. */
    if (s->n_fed && s->first + s->n_fed >= n_tokens) s->n_fed = n_tokens - 1 - s->first;
    begin_rows(drafter, sequence, n_tokens);
    return feed_rows(drafter, sequence, n_tokens, next, rows, cancel);
}

uint32_t whit_drafter_guess(whit_drafter *drafter, uint32_t sequence, uint32_t n_tokens, int32_t next, uint32_t n_most,
                            int32_t *ids, const volatile bool *cancel)
{
    whit_drafter_sequence *s = &drafter->sequences[sequence];
    struct rows rows = {0};
    uint32_t n = 0;
    if (!n_most || s->begin == s->end || s->end != n_tokens) return 0;
    const whit_fpenv caller = whit_fpenv_enter();
    bool done = feed_sequence(drafter, sequence, n_tokens, next, &rows, cancel);
    while (done) {
        ids[n] = best_token(drafter);
        if (++n == n_most) break;
        /* A draft model without its own cache computes all guesses at the same position. */
        const uint32_t position = drafter->reads_target ? n_tokens - 1 : n_tokens - 1 - s->first + n;
        add_row(drafter, &rows, sequence, position, ids[n - 1], whit_exec_row(&drafter->exec, drafter->plan.hidden, 0));
        done = run_rows(drafter, &rows, true, cancel);
    }
    if (!drafter->reads_target) whit_kv_truncate(&drafter->kv, sequence, s->n_fed);
    whit_fpenv_leave(caller);
    return n;
}
