/* SPDX-License-Identifier: MIT
 * Compares endless sessions with a simple reference in double precision: keys are stored as before RoPE, and for
 * every query each visible key is rotated by its place in the cache. In packed caches the reference reads blocks as
 * they are after packing. Also tests that memory does not grow, that sequences return exactly, and refusals. */
#include "test.h"

#include "changed_decoder.h"
#include "kernels/codec.h"
#include "kernels/hadamard.h"
#include "random_model.h"
#include "runtime/session.h"
#include "tiny_model.h"
#include "train_reference.h"

#include <sys/prctl.h>

enum { MODEL = 0, N_TOKENS = 700 };

/* Memory blocks that the library has not freed, and its allocations so far. */
static long n_live, n_calls;

static void *counting_alloc(void *user, size_t size_bytes, size_t align_bytes)
{
    (void)user;
    n_live++;
    n_calls++;
    return aligned_alloc(align_bytes, (size_bytes + align_bytes - 1) / align_bytes * align_bytes);
}

static void counting_free(void *user, void *memory, size_t size_bytes)
{
    (void)user;
    (void)size_bytes;
    n_live -= memory != NULL;
    free(memory);
}

static const whit_allocator allocator = {counting_alloc, counting_free, NULL};
static whit_ndf_writer *writer;
static whit_model *model;

static int set_up(void **state)
{
    (void)state;
    whit_config config;
    whit_error error;
    char path[64];
    whit_model_options options = {.struct_bytes = sizeof options, .no_cache = true, .allocator = &allocator};
    (void)prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); /* huge pages make untouched memory resident */
    if (random_model_make(MODEL, &writer, &config, &error) != WHIT_OK) return -1;
    snprintf(path, sizeof path, "/proc/self/fd/%d", whit_ndf_writer_fd(writer));
    return whit_model_open(path, &options, &model, &error) == WHIT_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    whit_model_close(model);
    whit_ndf_writer_close(writer);
    return 0;
}

static int32_t id_at(uint32_t position)
{
    return (int32_t)((position * 37u + position / 11 * 5u + position * position % 13) % whit_model_vocab_size(model));
}

static whit_session_options endless(whit_kv_type kv, uint32_t n_ctx, uint32_t n_sinks)
{
    whit_session_options options = whit_session_options_default();
    options.kv = kv;
    options.act = WHIT_ACT_F32;
    options.n_ctx_tokens = n_ctx;
    options.n_threads = 1;
    options.endless = true;
    options.n_sinks = n_sinks;
    return options;
}

/* ---- the definition -------------------------------------------------------------------------- */

static double *weight_of(const whit_tensor *tensor)
{
    const size_t rows = tensor->type.n_rows, cols = tensor->type.n_cols;
    double *w = malloc(rows * cols * sizeof *w);
    float *row = malloc(cols * sizeof *row);
    for (size_t r = 0; r < rows; r++) {
        const int32_t id = (int32_t)r;
        whit_codec_get_rows(tensor, &id, 1, row, cols);
        for (size_t c = 0; c < cols; c++) w[r * cols + c] = (double)row[c];
    }
    free(row);
    return w;
}

static reference open_reference(void)
{
    const whit_graph *graph = &model->graph;
    reference r = {.graph = graph,
                   .n_params = model->weights.n_tensors,
                   .n_sequences = 1,
                   .n_tokens = N_TOKENS,
                   .n_rows = N_TOKENS,
                   .theta = (double)model->config.rope_theta};
    r.weights = calloc(r.n_params, sizeof *r.weights);
    r.values = calloc(graph->n_values + 1, sizeof *r.values);
    for (uint32_t i = 0; i < r.n_params; i++) r.weights[i] = weight_of(&model->weights.tensors[i]);
    for (uint32_t v = 1; v <= graph->n_values; v++)
        r.values[v] = malloc((size_t)N_TOKENS * graph->values[v - 1].width * sizeof(double));
    return r;
}

/* Rotates n elements of a head by the angles of RoPE at `place`, which may be a difference of positions. The last
 * place's cosines are cached, because neighbouring keys are often rotated by the same. */
static void rotate(const reference *r, const whit_node *rope, const double *x, uint32_t n, double place, double *out)
{
    enum { PAIRS_MAX = 32 };
    static double at, cosines[PAIRS_MAX], sines[PAIRS_MAX];
    const uint32_t half = rope->rotary / 2;
    assert_true(half <= PAIRS_MAX);
    if (place != at || cosines[0] == 0)
        for (uint32_t i = 0; i < half; i++) {
            const double angle = place * pow(r->theta, -(double)i / (double)half);
            cosines[i] = cos(angle), sines[i] = sin(angle);
        }
    at = place;
    memcpy(out, x, n * sizeof *x);
    for (uint32_t i = 0; i < half; i++) {
        out[i] = x[i] * cosines[i] - x[i + half] * sines[i];
        out[i + half] = x[i + half] * cosines[i] + x[i] * sines[i];
    }
}

/* The keys, rotated to their own positions, and the values of a KV head as queries read them, (N_TOKENS, HEAD_MAX). */
enum { HEAD_MAX = 64, BLOCK = WHIT_KV_BLOCK_TOKENS };
typedef struct seen_head {
    double keys[N_TOKENS][HEAD_MAX], values[N_TOKENS][HEAD_MAX];
} seen_head;

/* Settings of a reference run: the context, the sinks, and the cache's type and window. */
typedef struct reading {
    uint32_t n_ctx, n_sinks, n_window;
    whit_kv_type kv;
    const whit_kernels *kernels;
    bool leaves_sinks; /* deliberately wrong: sinks keep their distance */
} reading;

/* Reads the keys and values of n positions of an f16 block; the values' Hadamard rotation is undone. */
static void read_open(const void *block, uint32_t d, uint32_t n, double (*keys)[HEAD_MAX], double (*values)[HEAD_MAX])
{
    const whit_kv_arrays at = whit_kv_block_arrays(WHIT_KV_F16, d, block);
    for (uint32_t j = 0; j < n; j++) {
        float value[HEAD_MAX];
        for (uint32_t i = 0; i < d; i++) {
            keys[j][i] = (double)whit_f32_from_f16(((const uint16_t *)at.keys)[i * BLOCK + j]);
            value[i] = whit_f32_from_f16(((const uint16_t *)at.values)[j * d + i]);
        }
        whit_hadamard(value, d, true);
        for (uint32_t i = 0; i < d; i++) values[j][i] = (double)value[i];
    }
}

/* Reads the key and values of position j of a closed block. If the type stores turned keys, the key is as at the
 * block's first position. */
static void read_closed(whit_kv_type kv, const void *block, uint32_t d, uint32_t j, double *key, double *values)
{
    float value[HEAD_MAX];
    for (uint32_t i = 0; i < d; i++) {
        if (kv == WHIT_KV_BITMAP) {
            const whit_kv_bitmap at = whit_kv_bitmap_arrays(d, block);
            const uint32_t *k = at.keys + whit_kv_bitmap_key_word(j, i);
            const uint32_t *v = at.values + whit_kv_bitmap_value_word(j, i);
            const uint32_t is_key = *k >> i % 32 & 1, is_up = k[WHIT_KV_BITMAP_KEY_STRIDE] >> i % 32 & 1;
            const uint32_t is_value = *v >> j % 32 & 1, is_plus = v[WHIT_KV_BITMAP_VALUE_STRIDE] >> j % 32 & 1;
            const float step = (float)at.key_steps[i] * at.units[WHIT_KV_BITMAP_KEY_STEP];
            key[i] = (double)((float)at.middles[i] * at.units[WHIT_KV_BITMAP_MIDDLE]);
            if (is_key) key[i] += (double)(is_up ? step : -step);
            value[i] = (float)at.value_steps[i / 64 * BLOCK + j] * at.units[WHIT_KV_BITMAP_VALUE_STEP];
            value[i] *= is_value ? is_plus ? 1 : -1 : 0;
            continue;
        }
        const whit_kv_packed at = whit_kv_packed_arrays(kv, d, block);
        const uint32_t bits = whit_kv_key_bits(kv), per = 32 / bits;
        const uint32_t code = at.keys[i / per * BLOCK + j] >> i % per * bits & ((1u << bits) - 1);
        key[i] = (double)whit_f32_from_f16(at.key_least[i]) +
            code * (double)((float)at.key_steps[i] * at.units[WHIT_KV_UNIT_KEY_STEP]);
        value[i] = (2 * (float)whit_kv_value_code(at.values, d, j, i) - 3) *
            ((float)at.value_steps[i / 64 * BLOCK + j] * at.units[WHIT_KV_UNIT_VALUE_STEP]);
    }
    whit_hadamard(value, d, true);
    for (uint32_t i = 0; i < d; i++) values[i] = (double)value[i];
}

/* Computes what queries read of a KV head in a packed cache, from its keys (before RoPE) and values at k and v, whose
 * rows are `stride` apart. `open` is as in f16 blocks, `closed` as in packed blocks; the last block of `closed` is
 * missing if it is not full. */
static void pack_head(const reference *r, const whit_node *rope, const reading *how, uint32_t d, const double *k,
                      const double *v, uint32_t stride, seen_head *open, seen_head *closed)
{
    enum { PAIRS_MAX = HEAD_MAX / 2, BYTES = 4 * HEAD_MAX * BLOCK + 8 * BLOCK };
    static _Alignas(64) uint8_t block[BYTES], packed[BYTES], sinks[BYTES];
    const uint32_t pairs = whit_kv_turns_keys(how->kv, false) ? rope->rotary / 2 : 0;
    double frequencies[PAIRS_MAX];
    float table[2 * PAIRS_MAX * BLOCK];
    whit_rope_frequencies(r->theta, rope->rotary / 2, NULL, frequencies);
    whit_kv_offset_table(frequencies, rope->rotary / 2, table);
    const whit_kv_packing packing = {.rope = table, .rope_pairs = pairs};
    for (uint32_t b = 0; b * BLOCK < N_TOKENS; b++) {
        const uint32_t first = b * BLOCK, n = N_TOKENS - first < BLOCK ? N_TOKENS - first : BLOCK;
        for (uint32_t j = 0; j < n; j++) {
            double rotated[HEAD_MAX];
            float key[HEAD_MAX], value[HEAD_MAX];
            rotate(r, rope, k + (first + j) * stride, d, first + j, rotated);
            for (uint32_t i = 0; i < d; i++) key[i] = (float)rotated[i], value[i] = (float)v[(first + j) * stride + i];
            whit_kv_append(how->kernels, how->kv)(block, j, 1, d, key, value, d);
        }
        read_open(block, d, n, open->keys + first, open->values + first);
        if (n < BLOCK) return;
        whit_kv_pack(how->kernels, how->kv)(block, d, &packing, packed, b ? NULL : sinks);
        for (uint32_t j = 0; j < BLOCK; j++) {
            double key[HEAD_MAX];
            read_closed(how->kv, packed, d, j, key, closed->values[first + j]);
            rotate(r, rope, key, d, pairs ? j : 0, closed->keys[first + j]);
        }
    }
}

/* The same for a cache that is not packed: rotated keys and unchanged values. */
static void plain_head(const reference *r, const whit_node *rope, uint32_t d, const double *k, const double *v,
                       uint32_t stride, seen_head *open)
{
    for (uint32_t t = 0; t < N_TOKENS; t++) {
        rotate(r, rope, k + t * stride, d, t, open->keys[t]);
        memcpy(open->values[t], v + t * stride, d * sizeof *v);
    }
}

static void attend(reference *r, const whit_node *node, const whit_node *rope, const reading *how)
{
    static seen_head open, closed;
    const uint32_t width = r->graph->values[node->output - 1].width, kv = r->graph->values[node->input[1] - 1].width,
                   d = node->head_dim, per = width / kv, n_ctx = how->n_ctx;
    const double *q = r->values[node->input[0]], *k = r->values[node->input[1]], *v = r->values[node->input[2]];
    double *y = r->values[node->output], query[HEAD_MAX], key[HEAD_MAX];
    assert_true(d <= HEAD_MAX);
    for (uint32_t head = 0; head < width / d; head++) {
        const uint32_t at = head / per * d;
        if (whit_kv_is_packed(how->kv))
            pack_head(r, rope, how, d, k + at, v + at, kv, &open, &closed);
        else
            plain_head(r, rope, d, k + at, v + at, kv, &open);
        for (uint32_t row = 0; row < r->n_rows; row++) {
            const uint32_t last = row < n_ctx ? row : n_ctx - 1;
            double sum = 0, *out = y + row * width + head * d;
            for (uint32_t i = 0; i < d; i++) out[i] = 0;
            rotate(r, rope, q + row * width + head * d, d, last, query);
            for (uint32_t place = 0; place <= last; place++) { /* position in the cache */
                const bool is_sink = row >= n_ctx && place < how->n_sinks;
                const uint32_t t = row < n_ctx || is_sink ? place : row - (last - place);
                const bool is_closed = whit_kv_is_packed(how->kv) && t >= WHIT_KV_SINKS &&
                    (t / BLOCK + 1 + how->n_window) * BLOCK + WHIT_KV_LINGER_TOKENS <= row;
                const seen_head *of = is_closed ? &closed : &open;
                double s = 0, by = (double)place - (double)t;
                if (is_sink && how->leaves_sinks) by = (double)last - (double)row;
                rotate(r, rope, of->keys[t], d, by, key);
                for (uint32_t i = 0; i < d; i++) s += query[i] * key[i];
                const double p = exp(s * (double)node->constant);
                sum += p;
                for (uint32_t i = 0; i < d; i++) out[i] += p * of->values[t][i];
            }
            for (uint32_t i = 0; i < d; i++) out[i] /= sum;
        }
    }
}

/* Returns the reference's logits of all positions, (N_TOKENS, n_vocab). */
static const double *run_reference(reference *r, const int32_t *ids, const reading *how)
{
    const whit_node *rope = NULL;
    for (uint32_t i = 0; i < r->graph->n_nodes; i++) {
        const whit_node *node = &r->graph->nodes[i];
        if (node->op == WHIT_OP_ROPE) { /* keys are rotated in attend */
            rope = node;
            memcpy(r->values[node->output], r->values[node->input[0]],
                   (size_t)r->n_rows * r->graph->values[node->output - 1].width * sizeof(double));
        } else if (node->op == WHIT_OP_ATTENTION) {
            attend(r, node, rope, how);
        } else {
            reference_node(r, node, ids);
        }
    }
    return r->values[r->graph->output];
}

/* Returns the logits of all positions from an endless session, (N_TOKENS, n_vocab); the caller frees them. */
static float *run_session(whit_session_options options, const int32_t *ids)
{
    enum { SLICE = 50 };
    const uint32_t n_vocab = whit_model_vocab_size(model);
    float *logits = malloc((size_t)N_TOKENS * n_vocab * sizeof *logits);
    whit_error error;
    whit_session *session;
    options.n_logits = SLICE;
    options.n_batch_tokens = 33;
    assert_non_null(logits);
    assert_ok(whit_session_open(model, &options, &session, &error), error);
    for (uint32_t i = 0; i < N_TOKENS; i += SLICE) {
        whit_step_token tokens[SLICE];
        for (uint32_t j = 0; j < SLICE; j++) tokens[j] = (whit_step_token){.id = ids[i + j], .want_logits = true};
        assert_ok(whit_session_step(session, tokens, SLICE, &error), error);
        for (uint32_t j = 0; j < SLICE; j++)
            memcpy(logits + (size_t)(i + j) * n_vocab, whit_session_logits(session, j), n_vocab * sizeof *logits);
    }
    whit_session_close(session);
    return logits;
}

typedef struct distance {
    double most, rms; /* largest difference, root mean square */
} distance;

/* Compares the logits from position `from` on. */
static distance difference(const float *logits, const double *expected, uint32_t from)
{
    const size_t n_vocab = whit_model_vocab_size(model), first = from * n_vocab, n = N_TOKENS * n_vocab;
    distance by = {0};
    for (size_t i = first; i < n; i++) {
        const double own = fabs((double)logits[i] - expected[i]);
        if (!(own <= by.most)) by.most = own;
        by.rms += own * own;
    }
    by.rms = sqrt(by.rms / (double)(n - first));
    return by;
}

static void is_what_places_in_the_cache_give(void **state)
{
    (void)state;
    static const struct {
        uint32_t n_ctx, n_sinks;
    } settings[] = {{64, 4}, {100, 4}, {150, 0}, {200, 64}, {321, 1}};
    int32_t ids[N_TOKENS];
    for (uint32_t i = 0; i < N_TOKENS; i++) ids[i] = id_at(i);
    reference r = open_reference();
    for (size_t s = 0; s < sizeof settings / sizeof *settings; s++) {
        const reading how = {.n_ctx = settings[s].n_ctx, .n_sinks = settings[s].n_sinks, .kv = WHIT_KV_F32};
        float *logits = run_session(endless(WHIT_KV_F32, how.n_ctx, how.n_sinks), ids);
        const double largest = difference(logits, run_reference(&r, ids, &how), 0).most;
        print_message("context %u, %u sinks: logits differ by %.2g at most\n", how.n_ctx, how.n_sinks, largest);
        assert_true(largest <= 1e-4);
        free(logits);
    }
    reference_close(&r);
}

/* ---- programs -------------------------------------------------------------------------------- */

enum { N_SHORT = 200, SHORT_CTX = 64, SHORT_SINKS = 4 };

/* Opens a model of one layer whose family program is the decoder's with `from` replaced by `to`. */
static whit_model *open_changed(const char *from, const char *to)
{
    char path[] = "/tmp/whit-endless-XXXXXX";
    whit_error error;
    whit_model *opened;
    tiny_model tiny = tiny_model_default();
    whit_model_options options = {
        .struct_bytes = sizeof options, .no_cache = true, .family_program = changed_decoder(from, to)};
    tiny.n_layers = 1;
    assert_int_equal(tiny_model_make(&tiny, path), 0);
    assert_ok(whit_model_open(path, &options, &opened, &error), error);
    unlink(path);
    return opened;
}

static int32_t short_id(uint32_t position)
{
    return (int32_t)(position * 37 % 199);
}

/* Computes the logits (n_vocab) of position `position` in an endless session. */
static void run_to(const whit_model *of, uint32_t position, float *logits)
{
    whit_error error;
    whit_session *session;
    whit_step_token tokens[N_SHORT];
    const whit_session_options options = endless(WHIT_KV_F32, SHORT_CTX, SHORT_SINKS);
    for (uint32_t i = 0; i <= position; i++)
        tokens[i] = (whit_step_token){.id = short_id(i), .want_logits = i == position};
    assert_ok(whit_session_open(of, &options, &session, &error), error);
    assert_ok(whit_session_step(session, tokens, position + 1, &error), error);
    memcpy(logits, whit_session_logits(session, 0), whit_model_vocab_size(of) * sizeof *logits);
    whit_session_close(session);
}

static void are_near(const float *a, const float *b, size_t n, uint32_t position)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabsf(a[i] - b[i]) <= 1e-4f)) fail_msg("position %u: %g for %g", position, (double)a[i], (double)b[i]);
}

/* In a model without RoPE, logits must equal those of an ordinary session that is fed only the sinks and the last
 * tokens of the context. */
static void sinks_without_rope_stay_as_they_are(void **state)
{
    (void)state;
    whit_error error;
    whit_model *plain = open_changed("size, kind(l, \"rope_dim\"))", "size, 0)");
    const uint32_t n_vocab = whit_model_vocab_size(plain);
    float *logits = malloc(n_vocab * sizeof *logits);
    whit_session_options options = endless(WHIT_KV_F32, SHORT_CTX, 0);
    options.endless = false;
    assert_non_null(logits);
    for (uint32_t p = SHORT_CTX; p < N_SHORT; p += 9) {
        whit_session *session;
        whit_step_token tokens[SHORT_CTX];
        for (uint32_t i = 0; i < SHORT_CTX; i++) {
            const uint32_t at = i < SHORT_SINKS ? i : p + 1 - SHORT_CTX + i;
            tokens[i] = (whit_step_token){.id = short_id(at), .want_logits = i + 1 == SHORT_CTX};
        }
        assert_ok(whit_session_open(plain, &options, &session, &error), error);
        assert_ok(whit_session_step(session, tokens, SHORT_CTX, &error), error);
        run_to(plain, p, logits);
        are_near(logits, whit_session_logits(session, 0), n_vocab, p);
        whit_session_close(session);
    }
    free(logits);
    whit_model_close(plain);
}

/* Keys that are scaled after RoPE must still be rotated. */
static void sinks_of_scaled_keys_are_rotated(void **state)
{
    (void)state;
    whit_model *models[2] = {open_changed("q, k, v, size", "q, k,  v, size"),
                             open_changed("q, k, v, size", "q, scaled(l, \"k_scaled\", k, 1), v, size")};
    const uint32_t n_vocab = whit_model_vocab_size(models[0]);
    float *logits = malloc(2 * n_vocab * sizeof *logits);
    assert_non_null(logits);
    for (int i = 0; i < 2; i++) run_to(models[i], N_SHORT - 1, logits + (size_t)i * n_vocab);
    are_near(logits, logits + n_vocab, n_vocab, N_SHORT - 1);
    for (int i = 0; i < 2; i++) whit_model_close(models[i]);
    free(logits);
}

/* ---- packed caches --------------------------------------------------------------------------- */

/* The reference knows the cache's keys and values exactly; but the session rounds queries and weights to integers, and
 * a key near the middle between two codes may get the other code. So logits must be near in the root mean square, and
 * far from those of wrong readings. */
static void packed_caches_are_what_places_give(void **state)
{
    (void)state;
    static const struct {
        uint32_t n_ctx, n_sinks, n_window;
    } settings[] = {{150, 1, 0}, {200, 64, 1}};
    int32_t ids[N_TOKENS];
    whit_kernels kernels;
    whit_cpu cpu;
    whit_error error;
    whit_cpu_detect(&cpu);
    assert_ok(whit_kernels_select(&cpu, NULL, &kernels, &error), error);
    for (uint32_t i = 0; i < N_TOKENS; i++) ids[i] = id_at(i);
    reference r = open_reference();
    for (whit_kv_type kv = WHIT_KV_K4V2; kv < WHIT_KV_TYPES; kv++)
        for (size_t s = 0; s < sizeof settings / sizeof *settings; s++) {
            reading how = {settings[s].n_ctx, settings[s].n_sinks, settings[s].n_window, kv, &kernels, false};
            whit_session_options options = endless(kv, how.n_ctx, how.n_sinks);
            options.n_kv_window = how.n_window;
            float *logits = run_session(options, ids);
            const double right = difference(logits, run_reference(&r, ids, &how), how.n_ctx).rms;
            print_message("kv %d, context %u, %u sinks, window %u: logits differ by %.2g (root of the mean square)\n",
                          (int)kv, how.n_ctx, how.n_sinks, how.n_window, right);
            assert_true(right <= 0.03);
            if (how.n_sinks > 1) {
                how.leaves_sinks = true;
                const double far = difference(logits, run_reference(&r, ids, &how), how.n_ctx).rms;
                how.leaves_sinks = false;
                how.kv = WHIT_KV_F32;
                const double exact = difference(logits, run_reference(&r, ids, &how), how.n_ctx).rms;
                print_message("  from those of sinks left behind by %.2g, of exact keys and values by %.2g\n", far,
                              exact);
                assert_true(far >= 10 * right && exact >= 10 * right);
            }
            free(logits);
        }
    reference_close(&r);
}

/* ---- memory and equal bits ------------------------------------------------------------------- */

/* Returns the blocks in use in the class of cache that has most of them. */
static uint32_t blocks_in_use(const whit_session *session)
{
    uint32_t most = 0;
    for (uint32_t c = 0; c < session->kv.n_classes; c++) {
        uint32_t n = 0;
        for (uint32_t b = 0; b < session->kv.classes[c].pool.n_blocks; b++)
            n += session->kv.classes[c].pool.references[b] > 0;
        if (n > most) most = n;
    }
    return most;
}

/* Logits must have the same bits for all batches, CPU levels and thread counts, and no memory may be allocated after
 * twice the context. */
static void bits_and_memory_stay(void **state)
{
    (void)state;
    static const char *const levels[] = {NULL, "generic", "avx2", "avx512", "amx", "neon", "i8mm"};
    static const uint32_t splits[] = {1, 63, 64, 65, 512};
    enum { N = 1500, C = 130 };
    const uint32_t n_tokens = tests_are_brief() ? N / 2 : N;
    whit_error error;
    static whit_step_token tokens[N];
    const size_t row_bytes = whit_model_vocab_size(model) * sizeof(float);
    for (int kv = WHIT_KV_F16; kv < WHIT_KV_TYPES; kv++) {
        float *expected = NULL;
        for (uint32_t i = 0; i < 11; i++) {
            whit_session *session;
            whit_session_options options = endless((whit_kv_type)kv, C, 4);
            options.cpu = i < 7 ? levels[i] : NULL;
            options.n_threads = 1 + i % 3;
            options.n_batch_tokens = i % 2 ? 100 : 512;
            const uint32_t split = i < 7 ? 64 : splits[i % 5];
            assert_ok(whit_session_open(model, &options, &session, &error), error);
            uint32_t used = 0;
            long live = 0, calls = 0;
            for (uint32_t at = 0; at < n_tokens; at += split) {
                const uint32_t n = n_tokens - at < split ? n_tokens - at : split;
                for (uint32_t j = 0; j < n; j++)
                    tokens[j] = (whit_step_token){.id = id_at(at + j), .want_logits = at + j + 1 == n_tokens};
                assert_ok(whit_session_step(session, tokens, n, &error), error);
                if (at < 2 * C) live = n_live, calls = n_calls;
                if (at >= 2 * C && blocks_in_use(session) > used) used = blocks_in_use(session);
            }
            assert_int_equal(n_live, live);
            assert_int_equal(n_calls, calls);
            assert_true(used * WHIT_KV_BLOCK_TOKENS <= C + 128 + 4 * WHIT_KV_BLOCK_TOKENS);
            if (!expected) {
                expected = malloc(row_bytes);
                memcpy(expected, whit_session_logits(session, 0), row_bytes);
            }
            assert_memory_equal(whit_session_logits(session, 0), expected, row_bytes);
            whit_session_close(session);
        }
        free(expected);
    }
}

/* Returns the resident bytes of the process that belong to no file. */
static uint64_t resident_bytes(void)
{
    unsigned long long size, resident, shared;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%llu %llu %llu", &size, &resident, &shared), 3);
    fclose(file);
    return (resident - shared) * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* prose-6M reads n tokens of its own text, which is repeated. Every logit must be finite (otherwise the step returns an
 * error); the library's allocations and the resident memory must not grow. */
static void read_on(whit_kv_type kv, whit_model *prose, const int32_t *ids, size_t n_ids, uint64_t n)
{
    enum { C = 256, SLICE = 256 };
    static whit_step_token tokens[SLICE];
    whit_error error;
    whit_session *session;
    whit_session_options wanted = endless(kv, C, 4);
    wanted.n_logits = SLICE;
    wanted.n_threads = 1; /* threads touch their scratch only at work */
    assert_ok(whit_session_open(prose, &wanted, &session, &error), error);
    uint64_t resident = 0;
    long live = 0, calls = 0;
    for (uint64_t at = 0; at < n; at += SLICE) {
        for (uint32_t i = 0; i < SLICE; i++)
            tokens[i] = (whit_step_token){.id = ids[(at + i) % n_ids], .want_logits = true};
        assert_ok(whit_session_step(session, tokens, SLICE, &error), error);
        if (at / C == 3) resident = resident_bytes(), live = n_live, calls = n_calls;
    }
    print_message("kv %d, %llu tokens: %llu resident bytes after the first laps, %llu at the end\n", (int)kv,
                  (unsigned long long)n, (unsigned long long)resident, (unsigned long long)resident_bytes());
    assert_int_equal(n_live, live);
    assert_int_equal(n_calls, calls);
#ifndef __SANITIZE_ADDRESS__                           /* the sanitizer's own tables grow */
    assert_true(resident_bytes() <= resident + 65536); /* room for stacks and output */
#endif
    whit_session_close(session);
}

static void reads_on_in_the_same_memory(void **state)
{
    (void)state;
    enum { TEXT = 1 << 16 };
    static const whit_kv_type types[] = {WHIT_KV_F16, WHIT_KV_K2V2, WHIT_KV_K4V2, WHIT_KV_BITMAP};
    const size_t n_types = tests_are_brief() ? 2 : sizeof types / sizeof *types;
    const char *text = getenv("WHIT_TOKENS");
    const uint64_t n = text ? strtoull(text, NULL, 0) : tests_are_brief() ? 1100 : 2500;
    whit_error error;
    whit_model *prose;
    static char bytes[4 * TEXT];
    static int32_t ids[TEXT];
    size_t n_ids, n_bytes;
    whit_model_options options = {.struct_bytes = sizeof options, .no_cache = true, .allocator = &allocator};
    const char *path = shared_path("models/prose-6M/prose-6M-f16.gguf");
    FILE *file = fopen(shared_path("models/prose-6M/own.txt"), "r");
    assert_non_null(file);
    n_bytes = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_ok(whit_model_open(path, &options, &prose, &error), error);
    assert_ok(whit_tokenize(prose, bytes, n_bytes, true, false, ids, TEXT, &n_ids, &error), error);
    if (n_ids > TEXT) n_ids = TEXT;
    for (size_t i = 0; i < n_types; i++) read_on(types[i], prose, ids, n_ids, n);
    whit_model_close(prose);
}

/* ---- going back ------------------------------------------------------------------------------ */

static int32_t turned_id(uint32_t position, uint32_t turned)
{
    return id_at(position < turned ? position : position + 7);
}

static void feed(whit_session *session, uint32_t sequence, uint32_t n, uint32_t turned)
{
    static whit_step_token tokens[2048];
    whit_error error;
    uint32_t k = 0;
    for (uint32_t i = whit_session_position(session, sequence); i < n; i++)
        tokens[k++] = (whit_step_token){.sequence = sequence, .id = turned_id(i, turned), .want_logits = i + 1 == n};
    assert_ok(whit_session_step(session, tokens, k, &error), error);
}

/* Goes back to a place near the end, to one of the context's first tokens and to places between, by truncation, sharing
 * and reuse. From the position reached, a sequence must compute the same bits as one that was only fed these tokens. */
static void goes_back_exactly(void **state)
{
    (void)state;
    enum { C = 200, N = 700, MARKED = 100 };
    static const uint32_t places[] = {N - 47, N - 128, N - 300, C, MARKED};
    whit_error error;
    int32_t ids[N];
    for (whit_kv_type kv = WHIT_KV_F16; kv < WHIT_KV_TYPES; kv++) {
        whit_session *session, *plain;
        whit_session_options options = endless(kv, C, 4);
        options.n_sequences = 2;
        assert_ok(whit_session_open(model, &options, &session, &error), error);
        assert_ok(whit_session_open(model, &options, &plain, &error), error);
        for (size_t i = 0; i < 3 * sizeof places / sizeof *places; i++) {
            const uint32_t at = places[i / 3], to = i % 3 > 0;
            if (tests_are_brief() && i / 3 % 2) continue;
            uint32_t n_present;
            feed(session, 0, MARKED, N);
            assert_ok(whit_session_mark(session, 0, &error), error);
            feed(session, 0, N, N);
            for (uint32_t j = 0; j < N; j++) ids[j] = turned_id(j, at);
            if (i % 3 == 0) assert_ok(whit_session_truncate(session, 0, at, &error), error);
            if (i % 3 == 1) assert_ok(whit_session_share(session, 0, 1, at, &error), error);
            if (i % 3 == 2) assert_ok(whit_session_reuse(session, 1, ids, at + 1, &n_present, &error), error);
            const uint32_t n = whit_session_position(session, to), room = whit_kv_is_packed(kv) ? 47 : 128;
            assert_true(n <= at);
            if (i % 3 < 2 && (at + room >= N || (at == MARKED && room == 47))) assert_int_equal(n, at);
            feed(session, to, at + 150, at);
            assert_ok(whit_session_truncate(plain, 0, 0, &error), error);
            feed(plain, 0, at + 150, at);
            assert_memory_equal(whit_session_logits(session, 0), whit_session_logits(plain, 0),
                                whit_model_vocab_size(model) * sizeof(float));
            for (uint32_t q = 0; q < 2; q++) assert_ok(whit_session_truncate(session, q, 0, &error), error);
        }
        whit_session_close(session);
        whit_session_close(plain);
    }
}

static void says_what_it_cannot(void **state)
{
    (void)state;
    whit_error error;
    whit_session *session;
    whit_session_file *file;
    whit_session_options options = endless(WHIT_KV_F16, 64, 64);
    assert_int_equal(whit_session_open(model, &options, &session, &error), WHIT_ERROR_ARGUMENT);
    options = endless(WHIT_KV_F16, 128, 65);
    assert_int_equal(whit_session_open(model, &options, &session, &error), WHIT_ERROR_ARGUMENT);
    options = endless(WHIT_KV_F16, 128, 4);
    assert_ok(whit_session_open(model, &options, &session, &error), error);
    assert_int_equal(whit_session_load(session, 0, "/tmp/whit-endless.ndf", "text", &file, &error),
                     WHIT_ERROR_UNSUPPORTED);
    assert_int_equal(access("/tmp/whit-endless.ndf", F_OK), -1);
    whit_session_close(session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_what_places_in_the_cache_give),
        cmocka_unit_test(sinks_without_rope_stay_as_they_are),
        cmocka_unit_test(sinks_of_scaled_keys_are_rotated),
        cmocka_unit_test(packed_caches_are_what_places_give),
        cmocka_unit_test(bits_and_memory_stay),
        cmocka_unit_test(reads_on_in_the_same_memory),
        cmocka_unit_test(goes_back_exactly),
        cmocka_unit_test(says_what_it_cannot),
    };
    return cmocka_run_group_tests_name("endless", tests, set_up, tear_down);
}
