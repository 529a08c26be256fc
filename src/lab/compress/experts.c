/* SPDX-License-Identifier: MIT */
#include "compress/experts.h"

#include "compress/compress.h"
#include "compress/matrix.h"

#include <string.h>

/* Limit of the memory for the sums of the experts that are solved at the same time. */
#define HESSIAN_BYTES_MAX ((size_t)1 << 30)

/* Solves the rows that belong to one expert in one tensor. */
static whit_status solve_rows(const whit_expert_stage *s, whit_expert_matrix *m, uint32_t expert, double share,
                              whit_hessian_pair *hessians, const whit_factor *factor, whit_error *error)
{
    const whit_allocator *a = s->stream->allocator;
    whit_tensor_type type = m->type;
    type.n_rows /= s->n_experts;
    const size_t at = (size_t)expert * type.n_rows * type.n_cols;
    whit_matrix_solve solve = {.type = &type,
                               .w = whit_stream_values(s->stream, WHIT_STREAM_ORIGINAL, m->param) + at,
                               .values = whit_stream_values(s->stream, WHIT_STREAM_COMPRESSED, m->param) + at,
                               .hessians = hessians,
                               .factor = factor,
                               .moved = hessians->text.shift != NULL,
                               .descends = s->stages & WHIT_STAGE_DESCENT,
                               .anneals = s->stages & WHIT_STAGE_ANNEAL};
    whit_status status = whit_matrix_run(&solve, s->blas, s->stream->pool, a, error);
    if (status == WHIT_OK)
        status = whit_finished_put(
            m->finished, expert * type.n_rows, type.n_rows,
            &(whit_rows){.elems = solve.codes, .fields = solve.fields, .fields_u8 = solve.fields_u8}, error);
    m->error_gptq += share * solve.error_gptq;
    m->error += share * solve.error;
    if (solve.sweeps > m->sweeps) m->sweeps = solve.sweeps;
    whit_matrix_free(&solve, a);
    return status;
}

/* Sets the Hessian to the identity, with which solving means rounding to the nearest levels. */
static void set_identity(whit_hessian_pair *pair)
{
    const size_t n = pair->text.n;
    memset(pair->text.h, 0, n * n * sizeof *pair->text.h);
    for (size_t i = 0; i < n; i++) pair->text.h[i * n + i] = 1;
    if (pair->held.h) memcpy(pair->held.h, pair->text.h, n * n * sizeof *pair->held.h);
}

static whit_status solve_expert(whit_expert_stage *s, whit_hessian_experts *h, uint32_t expert, whit_error *error)
{
    whit_hessian_pair *pair = &h->of[expert - h->first];
    const uint64_t n_seen = h->n_pairs[expert - h->first];
    const char *name = s->stream->params[0].items[s->matrices[0].param].name;
    whit_factor factor = {0};
    if (!n_seen) {
        set_identity(pair);
        s->n_unseen++;
    }
    whit_status status = whit_factor_make(&pair->text, s->group, s->stages & WHIT_STAGE_ORDER, name, s->blas,
                                          s->stream->pool, s->stream->allocator, &(whit_within){0}, &factor, error);
    for (uint32_t i = 0; status == WHIT_OK && i < s->n; i++)
        status = solve_rows(s, &s->matrices[i], expert, (double)n_seen / (double)h->n_all, pair, &factor, error);
    whit_factor_free(&factor);
    whit_hessian_free(pair);
    return status;
}

/* Returns the memory that one expert's sums need, including those of held-out tokens. With several ranks, this includes
 * the nodes of the trees: one node for each power of two up to the number of batches, and two more. The result is the
 * same on all ranks. */
static size_t count_bytes(const whit_expert_stage *s)
{
    const whit_stream *stream = s->stream;
    const size_t n = s->matrices[0].type.n_cols, n_out = s->residual ? stream->graph.values[s->residual - 1].width : 0;
    size_t n_nodes = 0;
    if (stream->ranks)
        for (n_nodes = 2; stream->n_batches >> (n_nodes - 2); n_nodes++) continue;
    return 2 * (1 + n_nodes) * (2 * n + n_out) * n * sizeof(float);
}

whit_status whit_experts_solve(whit_expert_stage *s, whit_error *error)
{
    const whit_allocator *a = s->stream->allocator;
    const size_t fit = HESSIAN_BYTES_MAX / count_bytes(s);
    uint32_t n_together = 1;
    if (fit > s->n_experts)
        n_together = s->n_experts;
    else if (fit)
        n_together = (uint32_t)fit;
    whit_status status = WHIT_OK;
    uint32_t n_begun = 0;
    for (; status == WHIT_OK && n_begun < s->n; n_begun++)
        status = whit_finished_begin(s->matrices[n_begun].finished,
                                     s->stream->params[0].items[s->matrices[n_begun].param].name,
                                     &s->matrices[n_begun].type, NULL, a, error);
    for (uint32_t first = 0; status == WHIT_OK && first < s->n_experts; first += n_together) {
        const uint32_t rest = s->n_experts - first;
        whit_hessian_experts h = {.first = first, .n = rest < n_together ? rest : n_together, .residual = s->residual};
        status = whit_hessian_gather_experts(&h, s->stream, s->blas, s->input, s->stages & WHIT_STAGE_QEP, error);
        whit_stream_rest(s->stream);
        for (uint32_t e = first; status == WHIT_OK && e < first + h.n; e++) {
            status = solve_expert(s, &h, e, error);
            if (status == WHIT_OK && !whit_within_tell(&s->within, (double)(e + 1) / s->n_experts))
                status = whit_fail(error, WHIT_ERROR_CANCELLED, "compression cancelled");
        }
        whit_hessian_free_experts(&h);
    }
    for (uint32_t i = 0; status == WHIT_OK && i < s->n; i++)
        status = whit_finished_end(s->matrices[i].finished, a, error);
    for (uint32_t i = 0; status != WHIT_OK && i < n_begun; i++) whit_finished_free(s->matrices[i].finished, a);
    return status;
}
