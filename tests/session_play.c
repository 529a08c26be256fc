/* SPDX-License-Identifier: MIT */
#include "session_play.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adapter_sample.h"
#include "base/rng.h"
#include "dirty_memory.h"
#include "kv/state.h"
#include "random_model.h"
#include "format/ndf_append.h"
#include "runtime/drafter.h"
#include "runtime/model.h"
#include "runtime/session.h"

enum {
    MODELS_MAX = 32,
    N_ADAPTERS = 3,
    N_MOUNTINGS = 7,
    N_TEXTS = 3,
    SEQUENCES_MAX = 4,
    CTX_MAX = 720,
    STEP_MAX = 700, /* maximum number of tokens in a step */
    KEPT_ROWS = 4096,
    N_ACTS = WHIT_ACT_Q2 + 1,
    N_LIMITS = 4,
};

/* ---- models ---------------------------------------------------------------------------------- */

/* A token as it was fed. */
typedef struct fed {
    int32_t id;
    uint8_t mounting;
} fed;

/* A session that is fed one token at a time, the tokens that it has, and the rows that it has computed: logits, then
 * hidden state. Rows are found by a hash of all tokens up to theirs. */
typedef struct reference {
    whit_session *session;
    fed held[CTX_MAX];
    uint32_t n_held, n_rows;
    uint64_t key[2 * KEPT_ROWS];
    uint32_t place[2 * KEPT_ROWS];
    float *rows; /* (KEPT_ROWS, row_elems) */
} reference;

typedef struct played_model {
    uint32_t number;
    whit_ndf_writer *writer;
    whit_config config;
    whit_model *model;
    whit_ndf_writer *drafter_writer;
    whit_model *drafter; /* draft model, which may be the model itself; NULL: none */
    whit_adapter *adapters[N_ADAPTERS];
    bool is_screened;
    size_t row_elems;
    reference *of[WHIT_KV_TYPES][N_ACTS][N_LIMITS]; /* references by type of cache, type of activations, and limit */
} played_model;

static played_model models[MODELS_MAX];

/* Combinations of adapters that a sequence may have, with their strengths. */
static const struct mounting {
    uint8_t n, adapter[3];
    float scale[3];
} mountings[N_MOUNTINGS] = {
    {0, {0}, {0}},
    {1, {0}, {1}},
    {2, {0, 1}, {1, 0.5f}},
    {1, {2}, {-0.75f}},
    {2, {0, 1}, {0, 1.0f}},
    {2, {1, 0}, {0.5f, 1}},
    {3, {2, 1, 0}, {0.3f, 0.4f, 0.5f}},
};

/* Maximum context of a token: the whole context, or in an endless session the sinks and the newest tokens. */
static const struct limit {
    uint32_t n_ctx, n_sinks; /* n_ctx 0: the session is not endless */
} limits[N_LIMITS] = {{0, 0}, {66, 4}, {130, 0}, {200, 64}};

static void stop(const whit_error *error)
{
    fprintf(stderr, "%s\n", error->message);
    abort();
}
#define MUST(expression, error)                                                                                        \
    do {                                                                                                               \
        if ((expression) != WHIT_OK) stop(&(error));                                                                   \
    } while (0)

static void open_adapters(played_model *m, uint32_t which)
{
    static const uint32_t ranks[N_ADAPTERS] = {3, 17, 40};
    for (uint32_t i = 0; i < N_ADAPTERS; i++) {
        whit_error error;
        whit_buf image = {0};
        char path[] = "/tmp/whit-play-XXXXXX";
        adapter_sample sample = {
            .seed = which * N_ADAPTERS + i, .rank = ranks[i], .every_second = i == 1, .size = 0.05f};
        int fd = mkstemp(path);
        if (fd >= 0) close(fd);
        if (fd < 0 || !adapter_sample_build(&sample, m->model->file, &image, &error)) abort();
        MUST(whit_ndf_write_loose(path, WHIT_NDF_ADAPTER, "sample", image.data, image.size_bytes, NULL, &error), error);
        MUST(whit_adapter_open(m->model, path, &m->adapters[i], &error), error);
        unlink(path);
        whit_buf_free(&image);
    }
}

/* Gives one layer an unlimited window, so that the KV cache has two classes of layers. */
static void widen_a_layer(whit_model *model)
{
    for (uint32_t i = 0; i < model->graph.n_nodes; i++)
        if (model->graph.nodes[i].op == WHIT_OP_ATTENTION && model->graph.nodes[i].layer == 1)
            model->graph.nodes[i].window = 0;
}

static void close_model(played_model *m)
{
    for (int j = 0; j < WHIT_KV_TYPES * N_ACTS * N_LIMITS; j++) {
        reference *r = (&m->of[0][0][0])[j];
        if (!r) continue;
        whit_session_close(r->session);
        free(r->rows);
        free(r);
    }
    for (uint32_t a = 0; a < N_ADAPTERS; a++) whit_adapter_close(m->adapters[a]);
    if (m->drafter != m->model) whit_model_close(m->drafter);
    whit_ndf_writer_close(m->drafter_writer);
    whit_model_close(m->model);
    whit_ndf_writer_close(m->writer);
    *m = (played_model){0};
}

static whit_model *open_written(whit_ndf_writer *writer)
{
    whit_error error;
    char path[64];
    whit_model *model;
    whit_model_options options = {.struct_bytes = sizeof options, .allocator = &dirty_allocator, .no_cache = true};
    snprintf(path, sizeof path, "/proc/self/fd/%d", whit_ndf_writer_fd(writer));
    MUST(whit_model_open(path, &options, &model, &error), error);
    return model;
}

/* Opens the draft model: the model's own draft block, or for Gemma 4 a model that reads its keys. */
static void open_drafter(played_model *m)
{
    whit_error error;
    if (m->model->has_draft_block) m->drafter = m->model;
    if (strcmp(m->config.family, "gemma4") != 0 || m->number >= random_model_count()) return;
    MUST(random_model_make_drafter(false, &m->drafter_writer, &error), error);
    m->drafter = open_written(m->drafter_writer);
}

/* Returns model i. Listed models stay open, of drawn models only the last. */
static played_model *model_at(uint32_t i)
{
    played_model *m = &models[i < random_model_count() ? i : MODELS_MAX - 1];
    if (m->model && m->number == i) return m;
    close_model(m);
    m->number = i;
    whit_error error;
    MUST(random_model_make(i, &m->writer, &m->config, &error), error);
    m->model = open_written(m->writer);
    open_drafter(m);
    uint32_t head = (uint32_t)whit_ndf_find(m->model->file, m->config.tied_head ? "embed" : "head");
    m->is_screened = whit_ndf_tensor_type(m->model->file, head)->codec == WHIT_CODEC_I8S;
    if (strcmp(m->config.family, "qwen2") == 0) widen_a_layer(m->model);
    m->row_elems = m->config.n_vocab + m->config.n_embd;
    open_adapters(m, i);
    return m;
}

static whit_status mount(const played_model *m, whit_session *session, uint32_t sequence, uint8_t which,
                         whit_error *error)
{
    whit_mount mounts[3] = {{0}};
    for (uint32_t i = 0; i < mountings[which].n; i++)
        mounts[i] = (whit_mount){m->adapters[mountings[which].adapter[i]], mountings[which].scale[i]};
    return whit_session_mount(session, sequence, mounts, mountings[which].n, error);
}

/* ---- the reference --------------------------------------------------------------------------- */

/* Returns a KV window that makes packed caches close blocks early. */
static uint32_t window_of(whit_kv_type kv)
{
    return kv == WHIT_KV_K4V2 ? 1 : 0;
}

static reference *reference_of(played_model *m, whit_kv_type kv, whit_act_type act, uint32_t limit)
{
    reference **of = &m->of[kv][act][limit];
    if (*of) return *of;
    reference *r = *of = calloc(1, sizeof *r);
    if (!r || !(r->rows = malloc(KEPT_ROWS * m->row_elems * sizeof *r->rows))) abort();
    whit_error error;
    whit_session_options options = whit_session_options_default();
    options.endless = limit > 0;
    options.n_ctx_tokens = options.endless ? limits[limit].n_ctx : CTX_MAX;
    options.n_sinks = limits[limit].n_sinks;
    options.n_batch_tokens = options.n_threads = 1;
    options.kv = kv;
    options.n_kv_window = window_of(kv);
    options.act = act;
    options.keep_hidden = options.exact_head = true;
    const uint8_t fill = dirty.fill;
    const bool reuses = dirty.reuses;
    dirty.fill = 0;
    dirty.reuses = false;
    MUST(whit_session_open(m->model, &options, &r->session, &error), error);
    dirty.fill = fill;
    dirty.reuses = reuses;
    return r;
}

static uint64_t hash_of(uint64_t hash, fed token)
{
    whit_rng rng = {hash ^ ((uint64_t)(uint32_t)token.id << 8 | token.mounting)};
    return whit_rng_next(&rng);
}

/* Feeds the tokens of the first n that the reference lacks, and returns the last one's row. */
static const float *feed(const played_model *m, reference *r, const fed *tokens, uint32_t n)
{
    whit_error error;
    uint32_t same = 0;
    while (same < r->n_held && same + 1 < n && r->held[same].id == tokens[same].id &&
           r->held[same].mounting == tokens[same].mounting)
        same++;
    MUST(whit_session_truncate(r->session, 0, same, &error), error);
    /* windows have dropped the earlier tokens, whose recomputation may use other adapters: begin anew */
    if (whit_session_position(r->session, 0) != same) {
        same = 0;
        MUST(whit_session_truncate(r->session, 0, 0, &error), error);
    }
    for (; same < n; same++) {
        whit_step_token token = {.id = tokens[same].id, .want_logits = same + 1 == n};
        MUST(mount(m, r->session, 0, tokens[same].mounting, &error), error);
        MUST(whit_session_step(r->session, &token, 1, &error), error);
        r->held[same] = tokens[same];
    }
    r->n_held = n;
    if (r->n_rows == KEPT_ROWS) {
        memset(r->key, 0, sizeof r->key);
        r->n_rows = 0;
    }
    float *row = r->rows + r->n_rows++ * m->row_elems;
    memcpy(row, whit_session_logits(r->session, 0), m->config.n_vocab * sizeof *row);
    memcpy(row + m->config.n_vocab, whit_session_hidden(r->session, 0), m->config.n_embd * sizeof *row);
    return row;
}

/* Returns the expected logits and hidden state after n tokens. */
static const float *expected_row(const played_model *m, reference *r, const fed *tokens, uint32_t n)
{
    uint64_t hash = 1;
    for (uint32_t i = 0; i < n; i++) hash = hash_of(hash, tokens[i]);
    hash += hash == 0;
    uint32_t at = (uint32_t)(hash % (2 * KEPT_ROWS));
    for (; r->key[at]; at = (at + 1) % (2 * KEPT_ROWS))
        if (r->key[at] == hash) return r->rows + r->place[at] * m->row_elems;
    const float *row = feed(m, r, tokens, n);
    /* the table was full, and all earlier rows were dropped */
    if (r->n_rows == 1) at = (uint32_t)(hash % (2 * KEPT_ROWS));
    r->key[at] = hash;
    r->place[at] = r->n_rows - 1;
    return row;
}

/* ---- a sequence of calls --------------------------------------------------------------------- */

typedef struct sequence {
    fed fed[CTX_MAX];
    uint32_t n, text;
    uint32_t most; /* largest number of tokens that the sequence has had, since windows drop old ones */
    uint8_t mounting;
} sequence;

typedef struct life {
    play_source *source;
    play_counts *counts;
    whit_rng rng;
    played_model *m;
    reference *r;
    whit_session_options options;
    uint32_t limit, n_room; /* limit: index in `limits`; n_room: maximum number of tokens in a sequence */
    whit_session *session;
    volatile bool cancel;
    sequence sequences[SEQUENCES_MAX];
    whit_step_token tokens[STEP_MAX];
    uint32_t fed_before[STEP_MAX]; /* number of tokens of its sequence up to and including this token */
    char *why;
    size_t why_bytes;
} life;

static uint32_t below(life *l, uint32_t n)
{
    play_source *s = l->source;
    uint32_t value = 0;
    if (s->size) {
        value = s->data[0];
        s->data++, s->size--;
        if (n > 256 && s->size) {
            value |= (uint32_t)s->data[0] << 8;
            s->data++, s->size--;
        }
        return value % n;
    }
    return s->seed ? (uint32_t)whit_rng_below(&l->rng, n) : 0;
}

static bool one_in(life *l, uint32_t n)
{
    return below(l, n) == n - 1;
}

__attribute__((format(printf, 2, 3))) static bool differs(life *l, const char *format, ...)
{
    const whit_session_options *o = &l->options;
    va_list arguments;
    int n = snprintf(l->why, l->why_bytes,
                     "model %d ctx %u batch %u sequences %u threads %u kv %d act %d logits %u hidden %d exact %d "
                     "no_fuse %d cpu %s endless %d: ",
                     (int)l->m->number, o->n_ctx_tokens, o->n_batch_tokens, o->n_sequences, o->n_threads, o->kv, o->act,
                     o->n_logits, o->keep_hidden, o->exact_head, o->no_fuse, o->cpu ? o->cpu : "", o->endless);
    va_start(arguments, format);
    if (n > 0 && (size_t)n < l->why_bytes) vsnprintf(l->why + n, l->why_bytes - (size_t)n, format, arguments);
    va_end(arguments);
    return false;
}

static void choose_options(life *l)
{
#if defined(__aarch64__)
    static const char *const levels[] = {NULL, "generic", "neon", "dotprod", "i8mm"};
#elif defined(__riscv)
    static const char *const levels[] = {NULL, "generic", "rvv"};
#else
    static const char *const levels[] = {NULL, "generic", "avx2", "avx512", "amx"};
#endif
    static const uint32_t batches[] = {1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 31, 32, 33, 64, 100, 256, 512};
    static const uint32_t intervals[] = {0, 0, 3, 16, 50};
    static const uint8_t fills[] = {0xFF, 0x00, 0x7E, 0xA5};
    whit_session_options *o = &l->options;
    *o = whit_session_options_default();
    o->kv = (whit_kv_type)below(l, WHIT_KV_TYPES);
    bool is_long = one_in(l, l->m->config.window ? 2 : o->kv >= WHIT_KV_K4V2 ? 6 : 24);
    o->n_ctx_tokens = is_long ? 300 + below(l, CTX_MAX - 300 + 1) : 12 + below(l, 120);
    o->n_batch_tokens = batches[below(l, sizeof batches / sizeof *batches)];
    o->n_sequences = is_long ? 1 + below(l, 2) : 1 + below(l, SEQUENCES_MAX);
    o->n_threads = one_in(l, 3) ? 2 + below(l, 3) : 1;
    o->n_kv_window = window_of(o->kv);
    o->n_marks = below(l, 4);
    o->n_mark_tokens = intervals[below(l, sizeof intervals / sizeof *intervals)];
    o->act = below(l, 4) ? WHIT_ACT_I8 : below(l, 2) ? WHIT_ACT_Q2 : WHIT_ACT_F32;
    o->n_logits = one_in(l, 4) ? 40 : 1 + below(l, 9);
    o->keep_hidden = below(l, 2);
    o->exact_head = one_in(l, 4);
    o->no_fuse = one_in(l, 5);
    o->cpu = levels[below(l, sizeof levels / sizeof *levels)];
    o->cancel = &l->cancel;
    l->n_room = o->n_ctx_tokens;
    l->limit = one_in(l, 4) ? 1 + below(l, N_LIMITS - 1) : 0;
    if (l->limit) {
        o->endless = true;
        o->n_ctx_tokens = limits[l->limit].n_ctx;
        o->n_sinks = limits[l->limit].n_sinks;
        l->n_room = CTX_MAX;
    }
    dirty.fill = fills[below(l, sizeof fills)];
    dirty.reuses = below(l, 2);
    for (uint32_t q = 0; q < SEQUENCES_MAX; q++) l->sequences[q].text = below(l, N_TEXTS);
}

/* Returns the next token of a sequence. There are few different texts, so that many sessions compare the same rows. */
static int32_t next_id(life *l, const sequence *q, bool is_strange)
{
    if (is_strange) return (int32_t)below(l, l->m->config.n_vocab);
    return (int32_t)(((uint64_t)q->n * 7919 + q->text * 104729 + (uint64_t)q->n * q->n) % l->m->config.n_vocab);
}

/* Returns whether the n_top largest logits have the exact bits and all others are below them. The others may be
 * estimates. */
static bool are_best_right(const float *found, const float *exact, uint32_t n_vocab, uint32_t n_top)
{
    float least = INFINITY; /* the smallest of the n_top largest */
    uint32_t n_best = 0;
    for (uint32_t i = 0; i < n_vocab; i++) {
        uint32_t n_larger = 0;
        for (uint32_t j = 0; j < n_vocab; j++) n_larger += exact[j] > exact[i];
        if (n_larger >= n_top) continue;
        if (memcmp(&found[i], &exact[i], sizeof *found) != 0) return false;
        if (exact[i] < least) least = exact[i];
        n_best++;
    }
    uint32_t n_reaching = 0;
    for (uint32_t i = 0; i < n_vocab; i++) n_reaching += found[i] >= least;
    return n_reaching == n_best;
}

static bool check_row(life *l, uint32_t token, uint32_t wanted)
{
    const whit_step_token *t = &l->tokens[token];
    const whit_config *c = &l->m->config;
    const float *logits = whit_session_logits(l->session, wanted), *hidden = whit_session_hidden(l->session, wanted);
    const float *expected = expected_row(l->m, l->r, l->sequences[t->sequence].fed, l->fed_before[token] + 1);
    if (!logits) return differs(l, "no logits of wanted row %u", wanted);
    l->counts->n_rows++;
    if (memcmp(logits, expected, c->n_vocab * sizeof *logits) != 0) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < c->n_vocab; i++) n += memcmp(&logits[i], &expected[i], sizeof *logits) != 0;
        bool may_estimate = t->n_top && l->m->is_screened && !l->options.exact_head;
        if (!may_estimate || !are_best_right(logits, expected, c->n_vocab, t->n_top))
            return differs(l, "token %u at position %u of sequence %u, wanted row %u, n_top %u: %u of %u logits", token,
                           l->fed_before[token], t->sequence, wanted, t->n_top, n, c->n_vocab);
        l->counts->n_estimated++;
    }
    if (l->options.keep_hidden != (hidden != NULL)) return differs(l, "hidden states that are not as asked for");
    if (hidden && memcmp(hidden, expected + c->n_vocab, c->n_embd * sizeof *hidden) != 0)
        return differs(l, "the hidden state of wanted row %u", wanted);
    return true;
}

static bool check_positions(life *l)
{
    for (uint32_t q = 0; q < l->options.n_sequences; q++)
        if (whit_session_position(l->session, q) != l->sequences[q].n)
            return differs(l, "sequence %u has %u tokens, not %u", q, whit_session_position(l->session, q),
                           l->sequences[q].n);
    return true;
}

/* Makes a step that must or may fail, and checks that a failed step changes nothing. */
static bool check_refusal(life *l, uint32_t n, whit_status wanted)
{
    whit_error error;
    whit_status status = whit_session_step(l->session, l->tokens, n, &error);
    l->counts->n_refused++;
    if (status != wanted) return differs(l, "a step that cannot be gives %d, not %d", status, wanted);
    if (whit_session_logits(l->session, 0)) return differs(l, "logits of a step that was refused");
    return check_positions(l);
}

static bool step(life *l)
{
    const whit_session_options *o = &l->options;
    uint32_t n_wanted = 0, n = 0, density = below(l, 4);
    uint32_t n_tokens = one_in(l, 2) ? 1 + below(l, 6) : 1 + below(l, 40), before[SEQUENCES_MAX];
    bool is_long = l->n_room >= 300, is_mixed = below(l, 2), is_strange = one_in(l, 6);
    if (is_long && one_in(l, 2)) n_tokens = 1 + below(l, STEP_MAX);
    uint32_t q = below(l, o->n_sequences);
    for (uint32_t i = 0; i < SEQUENCES_MAX; i++) before[i] = l->sequences[i].n;
    for (uint32_t i = 0; i < n_tokens; i++) {
        if (is_mixed ? one_in(l, 2) : one_in(l, 8)) q = below(l, o->n_sequences);
        sequence *s = &l->sequences[q];
        if (s->n == l->n_room) continue;
        bool is_wanted = n_wanted < o->n_logits &&
            (density == 0       ? one_in(l, 12)
                 : density == 1 ? one_in(l, 3)
                                : density == 2);
        l->tokens[n] = (whit_step_token){.sequence = q,
                                         .id = next_id(l, s, is_strange),
                                         .want_logits = is_wanted || (i + 1 == n_tokens && !n_wanted)};
        if (one_in(l, 2)) l->tokens[n].n_top = 1 + below(l, 12);
        n_wanted += l->tokens[n].want_logits;
        l->fed_before[n++] = s->n;
        s->fed[s->n++] = (fed){l->tokens[n - 1].id, s->mounting};
    }
    if (n == 0) return true;
    for (uint32_t i = 0; i < SEQUENCES_MAX; i++)
        if (l->sequences[i].n > l->sequences[i].most) l->sequences[i].most = l->sequences[i].n;
    if (one_in(l, 16)) { /* first make the step fail: cancelled, or with an id outside the vocabulary */
        for (uint32_t i = 0; i < SEQUENCES_MAX; i++) {
            uint32_t now = l->sequences[i].n;
            l->sequences[i].n = before[i];
            before[i] = now;
        }
        l->cancel = true;
        bool is_right = check_refusal(l, n, WHIT_ERROR_CANCELLED);
        l->cancel = false;
        int32_t id = l->tokens[n - 1].id;
        l->tokens[n - 1].id = (int32_t)l->m->config.n_vocab;
        is_right = is_right && check_refusal(l, n, WHIT_ERROR_ARGUMENT);
        l->tokens[n - 1].id = id;
        if (!is_right) return false;
        for (uint32_t i = 0; i < SEQUENCES_MAX; i++) l->sequences[i].n = before[i];
    }
    whit_error error;
    whit_status status = whit_session_step(l->session, l->tokens, n, &error);
    if (status != WHIT_OK) return differs(l, "a step of %u tokens: %s", n, error.message);
    l->counts->n_steps++;
    l->counts->n_tokens += n;
    for (uint32_t i = 0, k = 0; i < n; i++)
        if (l->tokens[i].want_logits && !check_row(l, i, k++)) return false;
    if (whit_session_logits(l->session, n_wanted)) return differs(l, "more logits than were wanted");
    return check_positions(l);
}

/* Feeds more tokens to one sequence than fit, in a step of several passes: none of them may be accepted. */
static bool overfill(life *l)
{
    uint32_t q = below(l, l->options.n_sequences), n = l->options.n_ctx_tokens - l->sequences[q].n + 1;
    if (n > STEP_MAX || l->options.endless) return true;
    for (uint32_t i = 0; i < n; i++)
        l->tokens[i] =
            (whit_step_token){.sequence = q, .id = (int32_t)(i % l->m->config.n_vocab), .want_logits = i == 0};
    return check_refusal(l, n, WHIT_ERROR_LIMIT);
}

/* Returns whether any layer has a window. */
static bool has_window(const whit_config *c)
{
    bool found = c->window != 0;
    for (uint32_t k = 0; k < c->n_kinds; k++) found |= c->kinds[k].window != 0;
    return found;
}

/* Checks the position of a sequence that was to go back to n tokens and has had `most`. It may be smaller if old tokens
 * were dropped: models with windows and endless sessions keep 128 tokens more than they need, packed caches 47,
 * recurrent layers 8. The tokens that are left are then treated as computed with the current adapters. */
static bool stands(life *l, uint32_t at, uint32_t n, uint32_t most)
{
    sequence *s = &l->sequences[at];
    uint32_t position = whit_session_position(l->session, at);
    s->n = position;
    s->most = most;
    if (position == n) return true;
    l->counts->n_back++;
    const bool is_packed = l->options.kv >= WHIT_KV_K4V2;
    const bool is_recurrent = l->m->config.conv_taps,
               forgets = has_window(&l->m->config) || is_packed || l->options.endless;
    const uint32_t n_back = is_recurrent ? WHIT_STATE_BACK_TOKENS : is_packed ? 47 : 128;
    if (position > n || !(forgets || is_recurrent) || n + n_back >= most)
        return differs(l, "sequence %u, which had %u tokens, goes back to %u, not %u", at, most, position, n);
    for (uint32_t i = 0; i < position; i++) s->fed[i].mounting = s->mounting;
    if (position == 0) s->most = 0; /* otherwise the dropped tokens stay dropped */
    return true;
}

static bool cut(life *l)
{
    whit_error error;
    uint32_t q = below(l, l->options.n_sequences);
    sequence *s = &l->sequences[q];
    uint32_t n = one_in(l, 4) ? 0 : below(l, s->n + 1);
    l->counts->n_truncations++;
    if (whit_session_truncate(l->session, q, s->n + 1, &error) != WHIT_ERROR_ARGUMENT)
        return differs(l, "a sequence is cut to more than it has");
    if (whit_session_truncate(l->session, q, n, &error) != WHIT_OK) return differs(l, "%s", error.message);
    if (!stands(l, q, n, n ? s->most : 0)) return false;
    if (one_in(l, 3)) s->text = below(l, N_TEXTS);
    return check_positions(l);
}

static bool share(life *l)
{
    whit_error error;
    uint32_t from = below(l, l->options.n_sequences), to = below(l, l->options.n_sequences);
    uint32_t n = below(l, l->sequences[from].n + 1);
    l->counts->n_shares++;
    if (whit_session_share(l->session, from, to, l->sequences[from].n + 1, &error) != WHIT_ERROR_ARGUMENT)
        return differs(l, "more is shared than there is");
    if (whit_session_share(l->session, from, to, n, &error) != WHIT_OK) return differs(l, "%s", error.message);
    if (from != to) memcpy(l->sequences[to].fed, l->sequences[from].fed, n * sizeof(fed));
    return stands(l, to, n, n ? l->sequences[from].most : 0) && check_positions(l);
}

/* Reuses a prefix that some sequence has or had, followed by other tokens. The tokens found must be equivalent to fed
 * ones, which later rows show. */
static bool reuse(life *l)
{
    whit_error error;
    int32_t ids[CTX_MAX];
    uint32_t q = below(l, l->options.n_sequences), from = below(l, l->options.n_sequences), n_present;
    sequence *s = &l->sequences[q];
    uint32_t n_same = below(l, l->sequences[from].n + 1), n = n_same + below(l, l->n_room - n_same + 1);
    sequence wanted = {.text = below(l, N_TEXTS)};
    for (; wanted.n < n; wanted.n++)
        ids[wanted.n] = wanted.n < n_same ? l->sequences[from].fed[wanted.n].id : next_id(l, &wanted, false);
    l->counts->n_reuses++;
    if (whit_session_reuse(l->session, q, ids, n, &n_present, &error) != WHIT_OK)
        return differs(l, "%s", error.message);
    if (n_present != whit_session_position(l->session, q) || (n_present >= n && n))
        return differs(l, "of %u tokens %u are said to be there", n, n_present);
    for (uint32_t i = 0; i < n_present; i++) s->fed[i] = (fed){ids[i], s->mounting};
    s->n = n_present;
    s->most = n_present ? UINT32_MAX : 0; /* it is not known how far the sequence can go back */
    s->text = wanted.text;
    l->counts->n_reused += n_present;
    return check_positions(l);
}

/* Marks a position, which only affects how far sequences can go back. */
static bool mark(life *l)
{
    whit_error error;
    uint32_t q = below(l, l->options.n_sequences);
    if (whit_session_mark(l->session, q, &error) != WHIT_OK) return differs(l, "%s", error.message);
    return check_positions(l);
}

static bool mount_sequence(life *l, uint32_t q, uint8_t which)
{
    whit_error error;
    l->counts->n_mounts++;
    if (mount(l->m, l->session, q, which, &error) != WHIT_OK) return differs(l, "%s", error.message);
    l->sequences[q].mounting = which;
    return true;
}

static bool change_mounting(life *l)
{
    uint32_t q = below(l, l->options.n_sequences);
    return mount_sequence(l, q, (uint8_t)below(l, N_MOUNTINGS));
}

/* Returns whether no token of the sequence was computed with adapters. */
static bool is_plain(const sequence *s)
{
    bool plain = !s->mounting;
    for (uint32_t i = 0; i < s->n; i++) plain &= !s->fed[i].mounting;
    return plain;
}

/* Compares guesses with those of a new session that is fed the same tokens, if its draft cache begins at the same
 * position: they must be equal. */
static bool check_guesses(life *l, uint32_t q, int32_t next, const int32_t *guesses, uint32_t n)
{
    whit_error error;
    whit_session *fresh;
    const sequence *s = &l->sequences[q];
    int32_t expected[WHIT_DRAFT_MAX];
    whit_session_options options = whit_session_options_default();
    options.n_ctx_tokens = CTX_MAX;
    options.n_batch_tokens = 64;
    options.n_threads = 1;
    options.kv = l->options.kv;
    options.n_kv_window = l->options.n_kv_window;
    options.act = l->options.act;
    MUST(whit_session_open_drafting(l->m->model, &options, l->m->drafter, &fresh, &error), error);
    static whit_step_token tokens[CTX_MAX];
    for (uint32_t i = 0; i < s->n; i++) tokens[i] = (whit_step_token){.id = s->fed[i].id, .want_logits = i + 1 == s->n};
    MUST(whit_session_step(fresh, tokens, s->n, &error), error);
    const uint32_t n_expected = whit_drafter_guess(fresh->drafter, 0, s->n, next, n, expected, NULL);
    const bool is_comparable = fresh->drafter->sequences[0].first == l->session->drafter->sequences[q].first;
    whit_session_close(fresh);
    if (!is_comparable) return true;
    l->counts->n_guesses_compared++;
    if (n_expected == n && memcmp(guesses, expected, n * sizeof *guesses) == 0) return true;
    return differs(l, "other guesses of %u tokens after %u of sequence %u", n, s->n, q);
}

/* Guesses n tokens after the token `next`. Returns the number of guesses, which is smaller if hidden states are
 * missing. */
static uint32_t guess(life *l, uint32_t q, int32_t next, int32_t *guesses, uint32_t n)
{
    const sequence *s = &l->sequences[q];
    const uint32_t n_guessed = whit_drafter_guess(l->session->drafter, q, s->n, next, n, guesses, NULL);
    l->counts->n_guessed += n_guessed;
    return n_guessed;
}

/* Feeds up to 8 tokens in one step, some of them guesses of the draft model, and takes back the last ones. */
static bool draft_once(life *l, uint32_t q)
{
    whit_error error;
    int32_t guesses[WHIT_STATE_BACK_TOKENS];
    uint32_t n_guessed = 0;
    uint32_t n = 1 + below(l, WHIT_STATE_BACK_TOKENS);
    sequence *s = &l->sequences[q];
    if (n > l->options.n_logits) n = l->options.n_logits;
    if (s->n + n > l->n_room) return true;
    const int32_t next = next_id(l, s, one_in(l, 3));
    if (l->session->drafter && n > 1 && below(l, 4)) {
        n_guessed = guess(l, q, next, guesses, n - 1);
        if (n_guessed && !l->options.endless && is_plain(s) && !check_guesses(l, q, next, guesses, n_guessed))
            return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        int32_t id = i ? next_id(l, s, one_in(l, 3)) : next;
        if (i && i <= n_guessed) id = guesses[i - 1];
        if (id < 0 || id >= (int32_t)l->m->config.n_vocab) return differs(l, "a guess of token %d", id);
        l->tokens[i] = (whit_step_token){.sequence = q, .id = id, .want_logits = true};
        l->fed_before[i] = s->n;
        s->fed[s->n++] = (fed){l->tokens[i].id, s->mounting};
    }
    if (s->n > s->most) s->most = s->n;
    if (whit_session_step(l->session, l->tokens, n, &error) != WHIT_OK) return differs(l, "%s", error.message);
    for (uint32_t i = 0; i < n; i++)
        if (!check_row(l, i, i)) return false;
    const uint32_t n_taken = s->n - below(l, n);
    if (whit_session_truncate(l->session, q, n_taken, &error) != WHIT_OK) return differs(l, "%s", error.message);
    return stands(l, q, n_taken, s->most) && check_positions(l);
}

/* Drafts for one sequence several times, since a draft model guesses best after a draft, when it has the last token's
 * hidden state. */
static bool draft(life *l)
{
    const uint32_t q = below(l, l->options.n_sequences), n_times = l->session->drafter ? 3 : 1;
    for (uint32_t i = 0; i < n_times; i++)
        if (!draft_once(l, q)) return false;
    return true;
}

/* Saves a sequence to a file and loads it into another or the same sequence. */
static bool store(life *l)
{
    whit_error error;
    whit_session_file *file;
    uint32_t q = below(l, l->options.n_sequences), to = below(l, l->options.n_sequences), n = 0;
    const sequence *s = &l->sequences[q];
    for (uint32_t i = 0; i < s->n; i++)
        if (s->fed[i].mounting != s->mounting) return true;
    if (!s->n || l->options.endless) return true;
    char path[] = "/tmp/whit-play-XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0) abort();
    close(fd);
    whit_status status = whit_session_snapshot(l->session, q, path, "play", &n, &error);
    bool is_right = check_positions(l);
    if (status == WHIT_OK) {
        if (!mount_sequence(l, to, s->mounting)) is_right = false;
        status = whit_session_load(l->session, to, path, "play", &file, &error);
        if (status == WHIT_OK) whit_session_file_close(file);
        sequence *loaded = &l->sequences[to];
        if (to != q) memcpy(loaded->fed, s->fed, n * sizeof(fed));
        loaded->n = n;
        loaded->most = n ? UINT32_MAX : 0;
    } else if (status == WHIT_ERROR_ARGUMENT) {
        status = WHIT_OK; /* the sequence had other adapters in between */
    }
    unlink(path);
    if (status != WHIT_OK) return differs(l, "a file of %u tokens: %s", s->n, error.message);
    return is_right && check_positions(l);
}

static bool live(life *l)
{
    uint32_t n = 2 + below(l, 10);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t what = l->session->drafter && one_in(l, 3) ? 15 : below(l, 16);
        bool is_right = what < 6 ? step(l)
            : what == 6          ? cut(l)
            : what == 7          ? share(l)
            : what == 8          ? change_mounting(l)
            : what < 11          ? reuse(l)
            : what == 11         ? mark(l)
            : what == 13         ? store(l)
            : what > 13          ? draft(l)
                                 : (one_in(l, 3) ? overfill(l) : step(l));
        if (!is_right) return false;
    }
    return true;
}

bool session_play(play_source *source, play_counts *counts, char *why, size_t why_bytes)
{
    whit_error error;
    life *l = calloc(1, sizeof *l);
    if (!l) abort();
    *l = (life){.source = source, .counts = counts, .rng = {source->seed}, .why = why, .why_bytes = why_bytes};
    l->m = model_at(source->model ? source->model : below(l, random_model_count()));
    choose_options(l);
    l->r = reference_of(l->m, l->options.kv, l->options.act, l->limit);
    bool is_right = true;
    const whit_model *drafter = l->m->drafter && below(l, 4) ? l->m->drafter : NULL;
    const bool reads_keys = drafter && drafter != l->m->model;
    /* a draft model that reads keys is refused in endless sessions and with packed caches */
    if (reads_keys && (l->options.endless || l->options.kv >= WHIT_KV_K4V2)) drafter = NULL;
    if (whit_session_open_drafting(l->m->model, &l->options, drafter, &l->session, &error) != WHIT_OK)
        is_right = differs(l, "%s", error.message);
    counts->n_sequences++;
    is_right = is_right && live(l);
    whit_session_close(l->session);
    free(l);
    return is_right;
}

void session_play_end(void)
{
    for (uint32_t i = 0; i < MODELS_MAX; i++) close_model(&models[i]);
    for (int i = 0; i < 4; i++) {
        free(dirty.block[i]);
        dirty.block[i] = NULL;
    }
}
