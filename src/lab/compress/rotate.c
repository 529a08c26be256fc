/* SPDX-License-Identifier: MIT */
#include "compress/rotate.h"

#include "kernels/hadamard.h"

static const whit_node *node_that_gives(const whit_graph *block, whit_ref value)
{
    for (uint32_t i = 0; i < block->n_nodes; i++)
        if (block->nodes[i].output == value) return &block->nodes[i];
    return NULL;
}

static uint32_t count_readers(const whit_graph *block, whit_ref value)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < block->n_nodes; i++)
        for (int j = 0; j < 3; j++) n += block->nodes[i].input[j] == value;
    return n;
}

/* Returns whether node `at` of the block is the only node of the model that uses its matrix. Otherwise a rotation would
 * affect the other nodes. */
static bool is_own(const whit_stream *s, const whit_node *at)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->graph.n_nodes; i++) n += s->graph.nodes[i].weight == at->weight;
    return n == 1;
}

bool whit_rotation_find(whit_stream *s, whit_rotation *r)
{
    const whit_graph *block = &s->block;
    for (uint32_t i = 0; i < block->n_nodes; i++) {
        const whit_node *o = &block->nodes[i];
        const whit_node *attention = o->op == WHIT_OP_LINEAR ? node_that_gives(block, o->input[0]) : NULL;
        if (!attention || attention->op != WHIT_OP_ATTENTION || count_readers(block, o->input[0]) != 1) continue;
        const whit_node *v = node_that_gives(block, attention->input[2]);
        if (!v || v->op != WHIT_OP_LINEAR || v->bias >= 0 || count_readers(block, v->output) != 1) return false;
        if (!is_own(s, v) || !is_own(s, o)) return false;
        for (uint32_t k = i + 1; k < block->n_nodes; k++) {
            const whit_node *sum = &block->nodes[k];
            if (sum->op != WHIT_OP_ADD || (sum->input[0] != o->output && sum->input[1] != o->output)) continue;
            *r = (whit_rotation){
                .stream = s, .head_dim = attention->head_dim, .sum = sum->output, .params = {v->weight, o->weight}};
            return true;
        }
    }
    return false;
}

static size_t n_elems(const whit_rotation *r, int i)
{
    return r->stream->params[0].items[r->params[i]].n;
}

/* Computes R v for each head: v is (n_kv_heads * head_dim, n_cols), and each column of a head is rotated. */
static whit_status turn_v(const whit_rotation *r, const float *from, float *to, whit_error *error)
{
    const whit_tensor_type *type = &r->stream->params[0].items[r->params[WHIT_ROTATED_V]].type;
    size_t n_cols = type->n_cols;
    float *head = whit_zalloc_array(r->stream->allocator, r->head_dim, sizeof *head);
    if (!head) return whit_fail_memory(error, "a head", r->head_dim * sizeof *head);
    for (size_t row = 0; row + r->head_dim <= type->n_rows; row += r->head_dim)
        for (size_t k = 0; k < n_cols; k++) {
            for (size_t d = 0; d < r->head_dim; d++) head[d] = from[(row + d) * n_cols + k];
            whit_hadamard(head, r->head_dim, false);
            for (size_t d = 0; d < r->head_dim; d++) to[(row + d) * n_cols + k] = head[d];
        }
    whit_free(r->stream->allocator, head, r->head_dim * sizeof *head);
    return WHIT_OK;
}

whit_status whit_rotation_open(whit_rotation *r, whit_error *error)
{
    const whit_allocator *a = r->stream->allocator;
    for (int i = 0; i < WHIT_ROTATED_COUNT; i++) {
        r->original[i] = whit_zalloc_array(a, n_elems(r, i), sizeof(float));
        r->values[i] = whit_zalloc_array(a, n_elems(r, i), sizeof(float));
        if (!r->original[i] || !r->values[i])
            return whit_fail_memory(error, "a rotated matrix", n_elems(r, i) * sizeof(float));
    }
    WHIT_TRY(turn_v(r, whit_stream_values(r->stream, WHIT_STREAM_ORIGINAL, r->params[WHIT_ROTATED_V]),
                    r->original[WHIT_ROTATED_V], error));
    memcpy(r->original[WHIT_ROTATED_O], whit_stream_values(r->stream, WHIT_STREAM_ORIGINAL, r->params[WHIT_ROTATED_O]),
           n_elems(r, WHIT_ROTATED_O) * sizeof(float));
    for (size_t at = 0; at + r->head_dim <= n_elems(r, WHIT_ROTATED_O); at += r->head_dim)
        whit_hadamard(r->original[WHIT_ROTATED_O] + at, r->head_dim, true);
    return WHIT_OK;
}

void whit_rotation_close(whit_rotation *r)
{
    for (int i = 0; r->stream && i < WHIT_ROTATED_COUNT; i++) {
        const whit_allocator *a = r->stream->allocator;
        whit_free(a, r->original[i], n_elems(r, i) * sizeof(float));
        whit_free(a, r->values[i], n_elems(r, i) * sizeof(float));
        whit_finished_free(&r->finished[i], a);
    }
    *r = (whit_rotation){0};
}

static void swap(float *a, float *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float kept = a[i];
        a[i] = b[i];
        b[i] = kept;
    }
}

void whit_rotation_swap_originals(whit_rotation *r)
{
    for (int i = 0; i < WHIT_ROTATED_COUNT; i++)
        swap(r->original[i], whit_stream_values(r->stream, WHIT_STREAM_ORIGINAL, r->params[i]), n_elems(r, i));
}

void whit_rotation_swap_rounded(whit_rotation *r, int i, whit_finished *finished)
{
    whit_finished kept = *finished;
    *finished = r->finished[i];
    r->finished[i] = kept;
    swap(r->values[i], whit_stream_values(r->stream, WHIT_STREAM_COMPRESSED, r->params[i]), n_elems(r, i));
}

/* Exchanges the errors of the ranks' batches, so that each rank has all of them. Returns false if that fails. */
static bool gather_errors(const whit_stream *s, double *errors)
{
    size_t offsets[WHIT_RANKS_MAX + 1];
    for (uint32_t r = 0; r <= s->ranks->n_ranks; r++)
        offsets[r] = whit_rank_begin(s->ranks, r, s->n_batches) * sizeof *errors;
    return s->ranks->gather(s->ranks->user, errors, offsets, false);
}

whit_status whit_rotation_measure(const whit_rotation *r, double *error_sum, whit_error *error)
{
    whit_stream *s = r->stream;
    const size_t n = (size_t)s->n_rows * s->n_embd;
    const bool held = whit_stream_is_held(s, 7);
    whit_status status = WHIT_OK;
    double *errors = whit_zalloc_array(s->allocator, s->n_batches, sizeof *errors);
    if (!errors) return whit_fail_memory(error, "the errors on the text", s->n_batches * sizeof *errors);
    uint32_t batch, end = whit_stream_own_batches(s, &batch);
    for (; batch < end; batch++) {
        if (held && !whit_stream_is_held(s, batch)) continue;
        whit_stream_run(s, batch, r->sum);
        const float *x = whit_tape_value(&s->tape[WHIT_STREAM_ORIGINAL], r->sum),
                    *rounded = whit_tape_value(&s->tape[WHIT_STREAM_COMPRESSED], r->sum);
        for (size_t i = 0; i < n; i++)
            errors[batch] += ((double)x[i] - (double)rounded[i]) * ((double)x[i] - (double)rounded[i]);
    }
    if (s->ranks && !gather_errors(s, errors))
        status =
            whit_fail(error, WHIT_ERROR_IO, "the process of another rank has ended, and its machine's output says why");
    *error_sum = 0;
    for (uint32_t i = 0; i < s->n_batches; i++) *error_sum += errors[i];
    whit_free(s->allocator, errors, s->n_batches * sizeof *errors);
    return status;
}
