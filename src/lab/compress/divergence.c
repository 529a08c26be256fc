/* SPDX-License-Identifier: MIT */
#include "compress/divergence.h"

#include "kernels/codec.h"
#include "train/loss.h"

struct measuring {
    whit_stream *s;
    whit_variant_fn *choose;
    void *user;
    uint32_t n;
    size_t elems;     /* number of floats of a variant's activations */
    float **x;        /* (n) activations of each variant; NULL as long as they equal the original's */
    float *logits;    /* logits of the original model for a batch */
    int32_t *targets; /* (n_rows) the token after each token */
    const whit_tensor *current;
    float *values;
    whit_within within;     /* receives the share of the whole measurement */
    uint32_t n_done, n_all; /* passes over the text that are done, and all of them; the head counts as a layer */
    bool is_ended;          /* within.tell returned false */
};

/* Tells a share of the current pass over the text. */
static bool tell_pass(void *user, double share)
{
    struct measuring *m = user;
    m->is_ended = m->is_ended || !whit_within_tell(&m->within, (m->n_done + share) / m->n_all);
    return !m->is_ended;
}

static whit_status check_ended(const struct measuring *m, whit_error *error)
{
    if (!m->is_ended) return WHIT_OK;
    return whit_fail(error, WHIT_ERROR_CANCELLED, "%s: compression cancelled", m->s->source->path);
}

static void decode_rows(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    (void)worker;
    const struct measuring *m = context;
    const uint32_t n_cols = m->current->type.n_cols;
    for (int32_t row = (int32_t)begin; row < (int32_t)end; row++)
        whit_codec_get_rows(m->current, &row, 1, m->values + (size_t)row * n_cols, n_cols);
}

/* Loads a variant's matrices of the current layer on the compressed side of the stream. *own: at least one differs from
 * the original. */
static void set_values(struct measuring *m, uint32_t variant, bool *own)
{
    const whit_stream *s = m->s;
    *own = false;
    for (uint32_t i = 0; i < s->block.n_nodes; i++) {
        const int32_t param = s->block.nodes[i].weight;
        if (param < 0) continue;
        const whit_param *item = &s->params[0].items[param];
        const ptrdiff_t tensor = whit_source_find(s->source, item->name) - s->source->tensors;
        m->values = whit_stream_values(s, WHIT_STREAM_COMPRESSED, param);
        m->current = m->choose(m->user, variant, (uint32_t)tensor);
        if (m->current) {
            *own = true;
            whit_pool_run(s->pool, decode_rows, m, m->current->type.n_rows, 16);
        } else {
            memcpy(m->values, whit_stream_values(s, WHIT_STREAM_ORIGINAL, param), item->n * sizeof *m->values);
        }
    }
}

static whit_status run_layer(struct measuring *m, uint32_t layer, whit_error *error)
{
    whit_stream *s = m->s;
    WHIT_TRY(whit_stream_load(s, layer, error));
    WHIT_TRY(whit_stream_wake(s, error));
    float *compressed = s->x[WHIT_STREAM_COMPRESSED];
    for (uint32_t v = 0; v < m->n && !m->is_ended; v++, m->n_done++) {
        bool own;
        set_values(m, v, &own);
        if (!own && !m->x[v]) continue;
        if (!m->x[v]) {
            m->x[v] = whit_alloc(s->allocator, m->elems * sizeof(float));
            if (!m->x[v]) return whit_fail_memory(error, "the activations of a layer", m->elems * sizeof(float));
            memcpy(m->x[v], s->x[WHIT_STREAM_ORIGINAL], m->elems * sizeof(float));
        }
        s->x[WHIT_STREAM_COMPRESSED] = m->x[v];
        whit_stream_advance(s, WHIT_STREAM_COMPRESSED);
        s->x[WHIT_STREAM_COMPRESSED] = compressed;
    }
    whit_stream_advance(s, WHIT_STREAM_ORIGINAL);
    m->n_done++;
    return check_ended(m, error);
}

static void run_head(const struct measuring *m, whit_tape *head, const float *x, uint32_t batch)
{
    const whit_stream *s = m->s;
    const size_t n = (size_t)s->n_rows * s->n_embd;
    memcpy(whit_tape_value(head, s->input), x + batch * n, n * sizeof *x);
    whit_tape_forward_to(head, s->ids + (size_t)batch * s->n_rows, s->output);
}

static void measure_head(struct measuring *m, whit_tape *head, whit_loss *loss, double *kl)
{
    const whit_stream *s = m->s;
    const uint32_t n_vocab = s->graph.values[s->output - 1].width;
    const size_t logit_bytes = (size_t)s->n_rows * n_vocab * sizeof(float);
    for (uint32_t batch = 0; batch < s->n_batches; batch++) {
        run_head(m, head, s->x[WHIT_STREAM_ORIGINAL], batch);
        memcpy(m->logits, whit_tape_value(head, s->output), logit_bytes);
        for (uint32_t v = 0; v < m->n; v++) {
            if (!m->x[v]) continue;
            if (!tell_pass(m, (batch + (double)v / m->n) / s->n_batches)) return;
            run_head(m, head, m->x[v], batch);
            whit_loss_run(loss, s->pool, whit_tape_value(head, s->output), m->logits, m->targets, n_vocab, 0);
            kl[v] += loss->kl / s->n_batches;
        }
    }
}

static whit_status run_model(struct measuring *m, double *kl, whit_error *error)
{
    whit_stream *s = m->s;
    const whit_allocator *a = s->allocator;
    whit_tape head = {0};
    whit_loss loss = {0};
    for (uint32_t layer = 0; layer < s->source->config.n_layers; layer++) WHIT_TRY(run_layer(m, layer, error));
    WHIT_TRY(whit_stream_load_head(s, error));
    const size_t n_logits = (size_t)s->n_rows * s->graph.values[s->output - 1].width;
    const whit_tape_options options = {
        .n_sequences = s->n_sequences, .n_tokens = s->n_tokens, .input = s->input, .precision = WHIT_PRECISION_F32};
    m->logits = whit_alloc(a, n_logits * sizeof *m->logits);
    whit_status status = m->logits ? WHIT_OK : whit_fail_memory(error, "logits", n_logits * sizeof *m->logits);
    if (status == WHIT_OK)
        status = whit_tape_open(&head, &s->block, &s->source->config, &s->params[0], &options, s->pool, a, error);
    if (status == WHIT_OK) status = whit_loss_open(&loss, s->n_rows, 0, 1, a, error);
    if (status == WHIT_OK) {
        head.blas.multiply_adds = s->multiply_adds;
        measure_head(m, &head, &loss, kl);
        status = check_ended(m, error);
    }
    whit_loss_close(&loss);
    whit_tape_close(&head);
    whit_free(a, m->logits, n_logits * sizeof *m->logits);
    return status;
}

whit_status whit_divergence_measure(whit_stream *s, uint32_t n, whit_variant_fn *choose, void *user, double *kl,
                                    whit_error *error)
{
    const whit_allocator *a = s->allocator;
    struct measuring m = {.s = s, .choose = choose, .user = user, .n = n};
    m.within = s->within;
    m.n_all = (s->source->config.n_layers + 1) * (n + 1);
    s->within = (whit_within){tell_pass, &m};
    m.elems = (size_t)s->n_batches * s->n_rows * s->n_embd;
    m.x = whit_zalloc_array(a, n, sizeof *m.x);
    m.targets = whit_zalloc_array(a, s->n_rows, sizeof *m.targets);
    memset(kl, 0, n * sizeof *kl);
    whit_status status = m.x && m.targets ? run_model(&m, kl, error)
                                          : whit_fail_memory(error, "the variants of a text", n * sizeof *m.x);
    s->within = m.within;
    for (uint32_t v = 0; m.x && v < n; v++) whit_free(a, m.x[v], m.elems * sizeof(float));
    whit_free(a, m.x, n * sizeof *m.x);
    whit_free(a, m.targets, s->n_rows * sizeof *m.targets);
    return status;
}
