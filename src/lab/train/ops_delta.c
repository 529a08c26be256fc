/* SPDX-License-Identifier: MIT
 * Implements the gated delta rule with the same kernel as inference. A value head's state S (key_dim, value_dim) begins
 * as zeros. A token has a query q and a key k of unit length (q is also divided by sqrt(key_dim)), a value v, b =
 * sigmoid(beta) and g = exp(a softplus(decay + dt)). beta and decay are inputs; a and dt are parameters of the head.
 *
 *   R = g S, u = b (v - R^T k), S' = R + k u^T, o = S'^T q
 *
 * The backward pass visits the tokens in reverse order. D is the gradient of S', and at the end of a token that of S:
 *
 *   dq = S' do, D += q do^T, du = D^T k, dk = D u, db = du . (v - R^T k), dv = b du, dr = -dv,
 *   dk += R dr, D += k dr^T, dg = sum of D * S, D = g D
 *
 * The states of all tokens are not stored. A first pass stores the state before every ceil(sqrt(n_tokens))-th token;
 * the states of the tokens after it are computed again from this state. A work item is a key head of a sequence with
 * all its value heads, so that no two items write the same gradient of a token. The gradients of a and dt are summed
 * for each sequence, and then over the sequences in order. */
#include "train/ops.h"

#include "kernels/delta.h"

#include <string.h>

struct delta_job {
    const whit_tape *tape;
    const whit_tape_step *step;
    uint32_t n_tokens, n_heads, n_key_heads, key_dim, value_dim,
        stride; /* stride: number of tokens between stored states */
    bool is_grouped;
    size_t width, state_elems;
    const float *mixed, *beta, *decay, *a, *dt;
};

/* A token's change to the state of a head. */
struct token {
    float *query, *key; /* (key_dim) q and k of the comment at the top */
    float *change;      /* (value_dim) u of the comment at the top */
    float g, b;
};

/* The parts of a worker's scratch memory. */
struct walk {
    float *kept;           /* (ceil(n_tokens / stride), state_elems) states before tokens 0, stride, 2 stride, ... */
    float *states;         /* (stride + 1, state_elems) states before each token of a chunk, and after its last token */
    float *dstate;         /* (state_elems) D of the comment at the top */
    struct token *tokens;  /* (stride) the tokens of a chunk */
    float *read, *dchange; /* (value_dim) R^T k, later dr; du */
    float *dquery, *dkey;  /* (key_dim) gradients of q and k */
};

static uint32_t find_stride(uint32_t n_tokens)
{
    uint32_t stride = 1;
    while (stride * stride < n_tokens) stride++;
    return stride;
}

static size_t token_elems(uint32_t stride)
{
    return (stride * sizeof(struct token) + sizeof(float) - 1) / sizeof(float);
}

size_t whit_op_delta_scratch(const whit_node *node, uint32_t n_tokens)
{
    size_t stride = find_stride(n_tokens), state = (size_t)node->head_dim * node->value_dim;
    return token_elems((uint32_t)stride) + ((n_tokens + stride - 1) / stride + stride + 2) * state +
        (stride + 1) * (2 * node->head_dim + node->value_dim) + node->value_dim;
}

static struct walk open_walk(const struct delta_job *job, uint32_t worker)
{
    float *at = job->tape->scratch + worker * job->tape->scratch_elems;
    struct walk w = {.tokens = (struct token *)(void *)at};
    at += token_elems(job->stride);
    w.kept = at;
    at += (job->n_tokens + job->stride - 1) / job->stride * job->state_elems;
    w.states = at;
    at += (job->stride + 1) * job->state_elems;
    w.dstate = at;
    at += job->state_elems;
    for (uint32_t i = 0; i < job->stride; i++) {
        w.tokens[i].query = at;
        w.tokens[i].key = at + job->key_dim;
        w.tokens[i].change = at + 2 * job->key_dim;
        at += 2 * job->key_dim + job->value_dim;
    }
    w.read = at;
    w.dchange = at + job->value_dim;
    w.dquery = at + 2 * job->value_dim;
    w.dkey = w.dquery + job->key_dim;
    return w;
}

static struct delta_job make_job(const whit_tape *tape, const whit_tape_step *step)
{
    const whit_node *node = step->node;
    return (struct delta_job){.tape = tape,
                              .step = step,
                              .n_tokens = tape->options.n_tokens,
                              .n_heads = node->n_heads,
                              .n_key_heads = node->n_key_heads,
                              .key_dim = node->head_dim,
                              .value_dim = node->value_dim,
                              .is_grouped = node->is_grouped,
                              .stride = find_stride(tape->options.n_tokens),
                              .width = whit_step_width(tape, node->input[0]),
                              .state_elems = (size_t)node->head_dim * node->value_dim,
                              .mixed = whit_step_input(tape, step, 0),
                              .beta = whit_step_input(tape, step, 1),
                              .decay = whit_step_input(tape, step, 2),
                              .a = tape->params->items[node->weight].value,
                              .dt = tape->params->items[node->bias].value};
}

static uint32_t key_head_of(const struct delta_job *job, uint32_t head)
{
    return whit_delta_key_head(head, job->n_heads, job->n_key_heads, job->is_grouped);
}

/* The functions below return offsets in a row of the mixed input: the offset of a key head's query, of a key head's
 * key, and of a value head's value. */
static size_t query_at(const struct delta_job *job, uint32_t key_head)
{
    return (size_t)key_head * job->key_dim;
}
static size_t key_at(const struct delta_job *job, uint32_t key_head)
{
    return (size_t)(job->n_key_heads + key_head) * job->key_dim;
}
static size_t value_at(const struct delta_job *job, uint32_t head)
{
    return (size_t)2 * job->n_key_heads * job->key_dim + (size_t)head * job->value_dim;
}

/* ---- forward -------------------------------------------------------------------------------- */

/* Advances `state` by the token of row r. Fills *token, and writes the token's output to out (value_dim). */
static void run_token(const struct delta_job *job, uint32_t head, size_t r, struct token *token, float *state,
                      float *out)
{
    const whit_kernels *kernels = &job->tape->kernels;
    const float *row = job->mixed + r * job->width;
    const uint32_t key_head = key_head_of(job, head);
    size_t at = r * job->n_heads + head;
    whit_delta_normalise(kernels, row + query_at(job, key_head), job->key_dim, 1.0f / sqrtf((float)job->key_dim),
                         token->query);
    whit_delta_normalise(kernels, row + key_at(job, key_head), job->key_dim, 1.0f, token->key);
    token->b = whit_delta_sigmoid(job->beta[at]);
    token->g = whit_exp_f32(job->a[head] * whit_delta_softplus(job->decay[at] + job->dt[head]));
    const whit_delta_update update = {.key = token->key, .change = token->change, .decay = token->g};
    kernels->delta_step(state, token->query, row + value_at(job, head), token->b, &update, job->key_dim, job->value_dim,
                        out);
}

static void run_heads(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    const struct delta_job *job = context;
    const struct walk w = open_walk(job, worker);
    float *y = whit_step_output(job->tape, job->step);
    for (uint32_t item = begin; item < end; item++) {
        size_t first = (size_t)(item / job->n_heads) * job->n_tokens;
        uint32_t head = item % job->n_heads;
        memset(w.states, 0, job->state_elems * sizeof *w.states);
        for (size_t r = first; r < first + job->n_tokens; r++)
            run_token(job, head, r, w.tokens, w.states, y + (r * job->n_heads + head) * job->value_dim);
    }
}

void whit_op_delta(const whit_tape *tape, const whit_tape_step *step)
{
    struct delta_job job = make_job(tape, step);
    whit_pool_run(tape->pool, run_heads, &job, tape->options.n_sequences * job.n_heads, 1);
}

/* ---- backward ------------------------------------------------------------------------------- */

/* Adds the gradient of x to dx (n). dnormalised (n) is the gradient of factor * x / sqrt(sum of x^2 + eps). */
static void add_normalised(const whit_loops *loops, const float *x, const float *dnormalised, float factor, size_t n,
                           float *dx)
{
    float r = 1.0f / sqrtf(loops->dot(x, x, n) + WHIT_DELTA_NORM_EPS), along = loops->dot(x, dnormalised, n);
    loops->add_scaled(dx, dnormalised, factor * r, n);
    loops->add_scaled(dx, x, -factor * r * r * r * along, n);
}

/* Stores the state before each chunk in w->kept. */
static void keep_states(const struct delta_job *job, const struct walk *w, size_t first, uint32_t head)
{
    memset(w->states, 0, job->state_elems * sizeof *w->states);
    for (uint32_t t = 0; t < job->n_tokens; t++) {
        if (t % job->stride == 0)
            memcpy(w->kept + t / job->stride * job->state_elems, w->states, job->state_elems * sizeof *w->states);
        run_token(job, head, first + t, w->tokens, w->states, w->read);
    }
}

/* Computes the states of tokens [begin, end), which are a chunk, from the stored state before it. */
static void fill_chunk(const struct delta_job *job, const struct walk *w, size_t first, uint32_t head, uint32_t begin,
                       uint32_t end)
{
    size_t bytes = job->state_elems * sizeof *w->states;
    memcpy(w->states, w->kept + begin / job->stride * job->state_elems, bytes);
    for (uint32_t t = begin; t < end; t++) {
        float *before = w->states + (t - begin) * job->state_elems;
        memcpy(before + job->state_elems, before, bytes);
        run_token(job, head, first + t, &w->tokens[t - begin], before + job->state_elems, w->read);
    }
}

/* Gradients of a and dt of one value head, summed over the tokens of a sequence. */
struct head_sums {
    float da, ddt;
};

/* Computes the gradients of the token at row r, which has number i in its chunk, and adds those of a and dt to
 * *sums. */
static void token_gradient(const struct delta_job *job, const struct walk *w, size_t r, uint32_t head, uint32_t i,
                           struct head_sums *sums)
{
    const whit_loops *loops = job->tape->loops;
    const struct token *token = &w->tokens[i];
    const size_t n_values = job->value_dim, at = r * job->n_heads + head;
    const float *before = w->states + i * job->state_elems, *after = before + job->state_elems,
                *row = job->mixed + r * job->width, *value = row + value_at(job, head),
                *dout = whit_step_doutput(job->tape, job->step) + at * n_values;
    float *drow = whit_step_dinput(job->tape, job->step, 0) + r * job->width, *dvalue = drow + value_at(job, head);
    float *dchange = w->dchange, *dread = w->read, db = 0, dg = 0;
    memset(dchange, 0, n_values * sizeof *dchange);
    memset(w->read, 0, n_values * sizeof *w->read);
    for (uint32_t k = 0; k < job->key_dim; k++) {
        float *d = w->dstate + k * n_values;
        w->dquery[k] = loops->dot(after + k * n_values, dout, n_values);
        loops->add_scaled(d, dout, token->query[k], n_values);
        loops->add_scaled(dchange, d, token->key[k], n_values);
        loops->add_scaled(w->read, before + k * n_values, token->g * token->key[k], n_values);
        w->dkey[k] = loops->dot(d, token->change, n_values);
    }
    for (size_t c = 0; c < n_values; c++) {
        db += dchange[c] * (value[c] - w->read[c]);
        float dv = token->b * dchange[c];
        dvalue[c] = job->step->overwrites[0] ? dv : dvalue[c] + dv;
        dread[c] = -dv;
    }
    for (uint32_t k = 0; k < job->key_dim; k++) {
        float *d = w->dstate + k * n_values;
        w->dkey[k] += token->g * loops->dot(before + k * n_values, dread, n_values);
        loops->add_scaled(d, dread, token->key[k], n_values);
        dg += loops->dot(d, before + k * n_values, n_values);
        loops->scale(d, d, token->g, n_values);
    }
    const size_t query = query_at(job, key_head_of(job, head)), key = key_at(job, key_head_of(job, head));
    add_normalised(loops, row + query, w->dquery, 1.0f / sqrtf((float)job->key_dim), job->key_dim, drow + query);
    add_normalised(loops, row + key, w->dkey, 1.0f, job->key_dim, drow + key);
    float *dbeta = whit_step_dinput(job->tape, job->step, 1) + at,
          *ddecay = whit_step_dinput(job->tape, job->step, 2) + at;
    float x = job->decay[at] + job->dt[head], dlog = dg * token->g, dx = dlog * job->a[head] * whit_delta_sigmoid(x);
    db *= token->b * (1 - token->b);
    *dbeta = job->step->overwrites[1] ? db : *dbeta + db;
    *ddecay = job->step->overwrites[2] ? dx : *ddecay + dx;
    sums->da += dlog * whit_delta_softplus(x);
    sums->ddt += dx;
}

static void clear_key_head(const struct delta_job *job, size_t first, uint32_t key_head)
{
    float *drow = whit_step_dinput(job->tape, job->step, 0) + first * job->width;
    for (uint32_t t = 0; t < job->n_tokens; t++, drow += job->width) {
        memset(drow + query_at(job, key_head), 0, job->key_dim * sizeof *drow);
        memset(drow + key_at(job, key_head), 0, job->key_dim * sizeof *drow);
    }
}

/* Returns the sums of a sequence: the gradients of a for all heads, then the gradients of dt for all heads. */
static float *sums_of(const struct delta_job *job, uint32_t sequence)
{
    return job->tape->partials + (size_t)sequence * 2 * job->n_heads;
}

static void head_gradients(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    const struct delta_job *job = context;
    const struct walk w = open_walk(job, worker);
    for (uint32_t item = begin; item < end; item++) {
        uint32_t sequence = item / job->n_key_heads, key_head = item % job->n_key_heads;
        size_t first = (size_t)sequence * job->n_tokens;
        if (job->step->overwrites[0]) clear_key_head(job, first, key_head);
        for (uint32_t head = 0; head < job->n_heads; head++) {
            if (key_head_of(job, head) != key_head) continue;
            struct head_sums sums = {0};
            keep_states(job, &w, first, head);
            memset(w.dstate, 0, job->state_elems * sizeof *w.dstate);
            for (uint32_t end_t = job->n_tokens; end_t > 0;) {
                uint32_t begin_t = (end_t - 1) / job->stride * job->stride;
                fill_chunk(job, &w, first, head, begin_t, end_t);
                for (; end_t > begin_t; end_t--)
                    token_gradient(job, &w, first + end_t - 1, head, end_t - 1 - begin_t, &sums);
            }
            sums_of(job, sequence)[head] = sums.da;
            sums_of(job, sequence)[job->n_heads + head] = sums.ddt;
        }
    }
}

void whit_op_delta_gradient(const whit_tape *tape, const whit_tape_step *step)
{
    struct delta_job job = make_job(tape, step);
    whit_pool_run(tape->pool, head_gradients, &job, tape->options.n_sequences * job.n_key_heads, 1);
    float *da = whit_param_gradient(tape->params, &tape->params->items[step->node->weight]),
          *ddt = whit_param_gradient(tape->params, &tape->params->items[step->node->bias]);
    for (uint32_t sequence = 0; sequence < tape->options.n_sequences; sequence++) {
        const float *sums = sums_of(&job, sequence);
        if (da) tape->loops->add(da, sums, job.n_heads);
        if (ddt) tape->loops->add(ddt, sums + job.n_heads, job.n_heads);
    }
}
