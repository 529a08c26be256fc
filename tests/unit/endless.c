/* SPDX-License-Identifier: MIT
 * Endless sessions against the definition, written plainly in double precision: keys are kept as they were before
 * RoPE, and for every query each one that it sees is rotated by its place inside the cache. Then that nothing grows,
 * and what is refused. */
#include "test.h"

#include "kernels/codec.h"
#include "random_model.h"
#include "runtime/session.h"
#include "train_reference.h"

enum { MODEL = 0, N_TOKENS = 700 };

/* Blocks of memory that the library holds. */
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

/* A head of n dimensions rotated by its place. */
static void rotate(const reference *r, const whit_node *rope, const double *x, uint32_t n, uint32_t place, double *out)
{
    const uint32_t half = rope->rotary / 2;
    memcpy(out, x, n * sizeof *x);
    for (uint32_t i = 0; i < half; i++) {
        const double at = (double)place * pow(r->theta, -(double)i / (double)half);
        out[i] = x[i] * cos(at) - x[i + half] * sin(at);
        out[i + half] = x[i + half] * cos(at) + x[i] * sin(at);
    }
}

static void attend(reference *r, const whit_node *node, const whit_node *rope, uint32_t n_ctx, uint32_t n_sinks)
{
    enum { HEAD_MAX = 64 };
    const uint32_t width = r->graph->values[node->output - 1].width, kv = r->graph->values[node->input[1] - 1].width,
                   d = node->head_dim, per = width / kv;
    const double *q = r->values[node->input[0]], *k = r->values[node->input[1]], *v = r->values[node->input[2]];
    double *y = r->values[node->output], query[HEAD_MAX], key[HEAD_MAX];
    assert_true(d <= HEAD_MAX);
    for (uint32_t row = 0; row < r->n_rows; row++)
        for (uint32_t head = 0; head < width / d; head++) {
            const uint32_t at = head / per * d, last = row < n_ctx ? row : n_ctx - 1;
            double sum = 0, *out = y + row * width + head * d;
            for (uint32_t i = 0; i < d; i++) out[i] = 0;
            rotate(r, rope, q + row * width + head * d, d, last, query);
            for (uint32_t place = 0; place <= last; place++) { /* of the cache */
                const uint32_t t = row < n_ctx || place < n_sinks ? place : row - (last - place);
                double s = 0;
                rotate(r, rope, k + t * kv + at, d, place, key);
                for (uint32_t i = 0; i < d; i++) s += query[i] * key[i];
                const double p = exp(s * (double)node->constant);
                sum += p;
                for (uint32_t i = 0; i < d; i++) out[i] += p * v[t * kv + at + i];
            }
            for (uint32_t i = 0; i < d; i++) out[i] /= sum;
        }
}

/* Logits of every position. */
static const double *run_reference(reference *r, const int32_t *ids, uint32_t n_ctx, uint32_t n_sinks)
{
    const whit_node *rope = NULL;
    for (uint32_t i = 0; i < r->graph->n_nodes; i++) {
        const whit_node *node = &r->graph->nodes[i];
        if (node->op == WHIT_OP_ROPE) { /* not yet */
            rope = node;
            memcpy(r->values[node->output], r->values[node->input[0]],
                   (size_t)r->n_rows * r->graph->values[node->output - 1].width * sizeof(double));
        } else if (node->op == WHIT_OP_ATTENTION) {
            attend(r, node, rope, n_ctx, n_sinks);
        } else {
            reference_node(r, node, ids);
        }
    }
    return r->values[r->graph->output];
}

static void is_what_places_in_the_cache_give(void **state)
{
    (void)state;
    enum { SLICE = 50 };
    static const struct {
        uint32_t n_ctx, n_sinks;
    } settings[] = {{64, 4}, {100, 4}, {150, 0}, {200, 64}, {321, 1}};
    const uint32_t n_vocab = whit_model_vocab_size(model);
    whit_error error;
    int32_t ids[N_TOKENS];
    for (uint32_t i = 0; i < N_TOKENS; i++) ids[i] = id_at(i);
    reference r = open_reference();
    for (size_t s = 0; s < sizeof settings / sizeof *settings; s++) {
        const double *expected = run_reference(&r, ids, settings[s].n_ctx, settings[s].n_sinks);
        whit_session *session;
        whit_session_options options = endless(WHIT_KV_F32, settings[s].n_ctx, settings[s].n_sinks);
        options.n_logits = SLICE;
        options.n_batch_tokens = 33;
        assert_ok(whit_session_open(model, &options, &session, &error), error);
        double largest = 0;
        for (uint32_t i = 0; i < N_TOKENS; i += SLICE) {
            whit_step_token tokens[SLICE];
            for (uint32_t j = 0; j < SLICE; j++) tokens[j] = (whit_step_token){.id = ids[i + j], .want_logits = true};
            assert_ok(whit_session_step(session, tokens, SLICE, &error), error);
            for (uint32_t j = 0; j < SLICE; j++) {
                const float *logits = whit_session_logits(session, j);
                for (uint32_t t = 0; t < n_vocab; t++) {
                    const double difference = fabs((double)logits[t] - expected[(size_t)(i + j) * n_vocab + t]);
                    if (!(difference <= largest)) largest = difference;
                }
            }
        }
        print_message("context %u, %u sinks: logits differ by %.2g at most\n", settings[s].n_ctx, settings[s].n_sinks,
                      largest);
        assert_true(largest <= 1e-4);
        whit_session_close(session);
    }
    reference_close(&r);
}

/* ---- what it costs --------------------------------------------------------------------------- */

static uint32_t blocks_in_use(const whit_session *session)
{
    uint32_t n = 0;
    for (uint32_t c = 0; c < session->kv.n_classes; c++)
        for (uint32_t b = 0; b < session->kv.classes[c].pool.n_blocks; b++)
            n += session->kv.classes[c].pool.references[b] > 0;
    return n;
}

/* One hash of logits: whatever the batches, the level, the threads; and no byte more after the first lap. */
static void bits_and_memory_stay(void **state)
{
    (void)state;
    static const char *const levels[] = {NULL, "generic", "avx2", "avx512", "amx", "neon", "i8mm"};
    static const uint32_t splits[] = {1, 63, 64, 65, 512};
    enum { N = 1500, C = 130 };
    whit_error error;
    static whit_step_token tokens[N];
    const size_t row_bytes = whit_model_vocab_size(model) * sizeof(float);
    for (int kv = WHIT_KV_F16; kv <= WHIT_KV_I8; kv++) {
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
            for (uint32_t at = 0; at < N; at += split) {
                const uint32_t n = N - at < split ? N - at : split;
                for (uint32_t j = 0; j < n; j++)
                    tokens[j] = (whit_step_token){.id = id_at(at + j), .want_logits = at + j + 1 == N};
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

static uint64_t resident_bytes(void)
{
    unsigned long long size, resident;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%llu %llu", &size, &resident), 2);
    fclose(file);
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* prose-6M reads its own text again and again, WHIT_TOKENS of them: every logit is a number (a step says so where one
 * is not), what the library holds stays the same to the byte, and nothing more is touched. */
static void reads_on_in_the_same_memory(void **state)
{
    (void)state;
    enum { C = 256, SLICE = 256, TEXT = 1 << 16 };
    const char *text = getenv("WHIT_TOKENS");
    const uint64_t n = text ? strtoull(text, NULL, 0) : tests_are_brief() ? 1000 : 6000;
    whit_error error;
    whit_model *prose;
    whit_session *session;
    static char bytes[4 * TEXT];
    static int32_t ids[TEXT];
    static whit_step_token tokens[SLICE];
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
    whit_session_options wanted = endless(WHIT_KV_F16, C, 4);
    wanted.n_logits = SLICE;
    wanted.n_threads = 2;
    assert_ok(whit_session_open(prose, &wanted, &session, &error), error);
    uint64_t resident = 0;
    long live = 0, calls = 0;
    for (uint64_t at = 0; at < n; at += SLICE) {
        for (uint32_t i = 0; i < SLICE; i++)
            tokens[i] = (whit_step_token){.id = ids[(at + i) % n_ids], .want_logits = true};
        assert_ok(whit_session_step(session, tokens, SLICE, &error), error);
        if (at / C == 3) resident = resident_bytes(), live = n_live, calls = n_calls;
    }
    print_message("%llu tokens: %llu resident bytes after the first laps, %llu at the end\n", (unsigned long long)n,
                  (unsigned long long)resident, (unsigned long long)resident_bytes());
    assert_int_equal(n_live, live);
    assert_int_equal(n_calls, calls);
#ifndef __SANITIZE_ADDRESS__                           /* its own tables grow */
    assert_true(resident_bytes() <= resident + 65536); /* pages of stacks and of what prints */
#endif
    whit_session_close(session);
    whit_model_close(prose);
}

static void says_what_it_cannot(void **state)
{
    (void)state;
    whit_error error;
    whit_session *session;
    whit_session_file *file;
    whit_session_options options = endless(WHIT_KV_K4V2, 128, 4);
    assert_int_equal(whit_session_open(model, &options, &session, &error), WHIT_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "endless"));
    options = endless(WHIT_KV_F16, 64, 64);
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
        cmocka_unit_test(bits_and_memory_stay),
        cmocka_unit_test(reads_on_in_the_same_memory),
        cmocka_unit_test(says_what_it_cannot),
    };
    return cmocka_run_group_tests_name("endless", tests, set_up, tear_down);
}
