/* SPDX-License-Identifier: MIT
 * Implements causal attention with grouped heads. A work item is a KV head of a sequence with all its query heads, so
 * that no two items write the same gradient. Queries are processed in blocks. A block reads the keys from the first key
 * in its first query's window to the key of its last query. The backward pass computes the probabilities again:
 *
 *   S = scale Q K^T, P = softmax(S), O = P V
 *   dV += P^T dO, dP = dO V^T, dS = scale P (dP - rowsum(dO O)), dQ = dS K, dK += dS^T Q */
#include "train/ops.h"

#include <string.h>

#define QUERY_BLOCK 64

size_t whit_op_attention_scratch(const whit_node *node, uint32_t n_tokens)
{
    (void)node;
    return 2 * (size_t)QUERY_BLOCK * n_tokens; /* for P and dP of a block */
}

struct attention_job {
    const whit_tape *tape;
    const whit_tape_step *step;
    uint32_t n_tokens, head_dim, n_kv_heads, per_kv_head;
    size_t q_width, kv_width;
};

static struct attention_job attention_job(const whit_tape *tape, const whit_tape_step *step)
{
    struct attention_job job = {
        .tape = tape, .step = step, .n_tokens = tape->options.n_tokens, .head_dim = step->node->head_dim};
    job.q_width = whit_step_width(tape, step->node->input[0]);
    job.kv_width = whit_step_width(tape, step->node->input[1]);
    job.n_kv_heads = (uint32_t)job.kv_width / job.head_dim;
    job.per_kv_head = (uint32_t)(job.q_width / job.kv_width);
    return job;
}

/* A block of attention: queries [begin, end) of one head attend to keys [first, end). */
struct block {
    uint32_t begin, end, first;
    size_t n_queries, n_keys;
    size_t q, kv; /* offsets of the block's first query and first key in their values */
};

static struct block block_at(const struct attention_job *job, uint32_t item, uint32_t member, uint32_t begin)
{
    uint32_t sequence = item / job->n_kv_heads, head = item % job->n_kv_heads, window = job->step->node->window;
    struct block b = {.begin = begin, .end = begin + QUERY_BLOCK};
    if (b.end > job->n_tokens) b.end = job->n_tokens;
    if (window && begin + 1 > window) b.first = begin + 1 - window;
    b.n_queries = b.end - b.begin;
    b.n_keys = b.end - b.first;
    size_t row = (size_t)sequence * job->n_tokens;
    b.q = (row + begin) * job->q_width + ((size_t)head * job->per_kv_head + member) * job->head_dim;
    b.kv = (row + b.first) * job->kv_width + (size_t)head * job->head_dim;
    return b;
}

/* Computes p (n_queries, n_keys): the probabilities. They are 0 for keys that a query does not attend to. */
static void probabilities(const struct attention_job *job, uint32_t worker, const struct block *b, float *p)
{
    const whit_tape *tape = job->tape;
    whit_blas_multiply(&tape->blas, worker,
                       &(whit_product){.transpose_b = true,
                                       .m = b->n_queries,
                                       .n = b->n_keys,
                                       .k = job->head_dim,
                                       .a = whit_step_input(tape, job->step, 0) + b->q,
                                       .lda = job->q_width,
                                       .b = whit_step_input(tape, job->step, 1) + b->kv,
                                       .ldb = job->kv_width,
                                       .c = p,
                                       .ldc = b->n_keys});
    uint32_t window = job->step->node->window;
    for (uint32_t i = b->begin; i < b->end; i++, p += b->n_keys) {
        uint32_t from = window && i + 1 > window ? i + 1 - window - b->first : 0, to = i + 1 - b->first;
        memset(p, 0, from * sizeof *p);
        tape->loops->softmax(p + from, job->step->node->constant, to - from);
        memset(p + to, 0, (b->n_keys - to) * sizeof *p);
    }
}

static void forward_items(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    const struct attention_job *job = context;
    const whit_tape *tape = job->tape;
    float *p = tape->scratch + worker * tape->scratch_elems;
    for (uint32_t item = begin; item < end; item++)
        for (uint32_t member = 0; member < job->per_kv_head; member++)
            for (uint32_t at = 0; at < job->n_tokens; at += QUERY_BLOCK) {
                struct block b = block_at(job, item, member, at);
                probabilities(job, worker, &b, p);
                whit_blas_multiply(&tape->blas, worker,
                                   &(whit_product){.m = b.n_queries,
                                                   .n = job->head_dim,
                                                   .k = b.n_keys,
                                                   .a = p,
                                                   .lda = b.n_keys,
                                                   .b = whit_step_input(tape, job->step, 2) + b.kv,
                                                   .ldb = job->kv_width,
                                                   .c = whit_step_output(tape, job->step) + b.q,
                                                   .ldc = job->q_width});
            }
}

void whit_op_attention(const whit_tape *tape, const whit_tape_step *step)
{
    struct attention_job job = attention_job(tape, step);
    whit_pool_run(tape->pool, forward_items, &job, tape->options.n_sequences * job.n_kv_heads, 1);
}

/* Sets the gradient d of one KV head in one sequence to zero, so that blocks can add to it. `offset` is the index of
 * the head's first element. */
static void clear_head(const struct attention_job *job, float *d, size_t offset)
{
    for (uint32_t t = 0; t < job->n_tokens; t++) memset(d + offset + t * job->kv_width, 0, job->head_dim * sizeof *d);
}

static void gradient_block(const struct attention_job *job, uint32_t worker, const struct block *b, float *p, float *dp)
{
    const whit_tape *tape = job->tape;
    const whit_tape_step *step = job->step;
    size_t d = job->head_dim, n = b->n_queries, m = b->n_keys;
    const float *q = whit_step_input(tape, step, 0) + b->q, *k = whit_step_input(tape, step, 1) + b->kv;
    const float *v = whit_step_input(tape, step, 2) + b->kv;
    const float *output = whit_step_output(tape, step) + b->q, *doutput = whit_step_doutput(tape, step) + b->q;
    probabilities(job, worker, b, p);
    whit_product dv = {.transpose_a = true,
                       .m = m,
                       .n = d,
                       .k = n,
                       .a = p,
                       .lda = m,
                       .b = doutput,
                       .ldb = job->q_width,
                       .beta = 1,
                       .c = whit_step_dinput(tape, step, 2) + b->kv,
                       .ldc = job->kv_width};
    whit_product dprobabilities = {.transpose_b = true,
                                   .m = n,
                                   .n = m,
                                   .k = d,
                                   .a = doutput,
                                   .lda = job->q_width,
                                   .b = v,
                                   .ldb = job->kv_width,
                                   .c = dp,
                                   .ldc = m};
    whit_blas_multiply(&tape->blas, worker, &dv);
    whit_blas_multiply(&tape->blas, worker, &dprobabilities);
    for (size_t i = 0; i < n; i++)
        tape->loops->softmax_gradient(p + i * m,
                                      tape->loops->dot(output + i * job->q_width, doutput + i * job->q_width, d),
                                      step->node->constant, dp + i * m, m);
    whit_product dq = {.m = n,
                       .n = d,
                       .k = m,
                       .a = dp,
                       .lda = m,
                       .b = k,
                       .ldb = job->kv_width,
                       .beta = step->overwrites[0] ? 0 : 1,
                       .c = whit_step_dinput(tape, step, 0) + b->q,
                       .ldc = job->q_width};
    whit_product dk = {.transpose_a = true,
                       .m = m,
                       .n = d,
                       .k = n,
                       .a = dp,
                       .lda = m,
                       .b = q,
                       .ldb = job->q_width,
                       .beta = 1,
                       .c = whit_step_dinput(tape, step, 1) + b->kv,
                       .ldc = job->kv_width};
    whit_blas_multiply(&tape->blas, worker, &dq);
    whit_blas_multiply(&tape->blas, worker, &dk);
}

static void gradient_items(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    const struct attention_job *job = context;
    const whit_tape *tape = job->tape;
    float *p = tape->scratch + worker * tape->scratch_elems, *dp = p + tape->scratch_elems / 2;
    for (uint32_t item = begin; item < end; item++) {
        size_t head = (size_t)(item / job->n_kv_heads) * job->n_tokens * job->kv_width +
            (size_t)(item % job->n_kv_heads) * job->head_dim;
        for (int i = 1; i < 3; i++)
            if (job->step->overwrites[i]) clear_head(job, whit_step_dinput(tape, job->step, i), head);
        for (uint32_t member = 0; member < job->per_kv_head; member++)
            for (uint32_t at = 0; at < job->n_tokens; at += QUERY_BLOCK) {
                struct block b = block_at(job, item, member, at);
                gradient_block(job, worker, &b, p, dp);
            }
    }
}

void whit_op_attention_gradient(const whit_tape *tape, const whit_tape_step *step)
{
    struct attention_job job = attention_job(tape, step);
    whit_pool_run(tape->pool, gradient_items, &job, tape->options.n_sequences * job.n_kv_heads, 1);
}
