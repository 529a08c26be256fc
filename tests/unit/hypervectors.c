/* SPDX-License-Identifier: MIT
 * Tests hypervectors: binding and bundles; recall from bundles against the theory; search in the store against a
 * full scan; queries with mistakes. */
#include <math.h>

#include "base/rng.h"
#include "failing_memory.h"
#include "memory/store.h"
#include "test.h"
#include "test_folder.h"

enum { WORDS = WHIT_MEMORY_WORDS };
static whit_quat_kernels kernels;

static double cosine(const uint64_t *a, const uint64_t *b)
{
    return 1 - 2 * (double)kernels.distance(a, b, WORDS) / (64.0 * WORDS);
}

static void test_binding(void **state)
{
    (void)state;
    uint64_t a[WORDS], b[WORDS], c[WORDS], d[WORDS];
    whit_hyper_random(1, a, WORDS);
    whit_hyper_random(2, b, WORDS);
    assert_true(fabs(cosine(a, b)) < 0.06);
    assert_true(cosine(a, a) == 1);
    whit_hyper_bind(c, a, b, WORDS);
    assert_true(fabs(cosine(a, c)) < 0.06);
    whit_hyper_bind(c, c, b, WORDS);
    assert_memory_equal(a, c, sizeof a);
    whit_hyper_permute(c, a, 3, WORDS);
    assert_true(fabs(cosine(a, c)) < 0.06);
    whit_hyper_permute(d, c, WORDS - 3, WORDS);
    assert_memory_equal(a, d, sizeof a);
}

/* Compares majorities of 1 to 40 vectors with counted ones. */
static void test_majority(void **state)
{
    (void)state;
    whit_hyper_bundle bundle;
    whit_error error;
    whit_rng rng = {4};
    assert_ok(whit_hyper_bundle_open(3, NULL, &bundle, &error), error);
    for (uint32_t n = 1; n <= 40; n++) {
        uint64_t ties[3] = {whit_rng_next(&rng), whit_rng_next(&rng), whit_rng_next(&rng)}, out[3];
        uint32_t counts[192] = {0};
        whit_hyper_bundle_clear(&bundle);
        for (uint32_t k = 0; k < n; k++) {
            uint64_t v[3] = {whit_rng_next(&rng), whit_rng_next(&rng), whit_rng_next(&rng)};
            assert_true(whit_hyper_bundle_add(&bundle, v));
            for (uint32_t i = 0; i < 192; i++) counts[i] += v[i / 64] >> i % 64 & 1;
        }
        whit_hyper_bundle_majority(&bundle, ties, out);
        for (uint32_t i = 0; i < 192; i++) {
            uint64_t wanted = 2 * counts[i] == n ? ties[i / 64] >> i % 64 & 1 : 2 * counts[i] > n;
            assert_int_equal(out[i / 64] >> i % 64 & 1, wanted);
        }
    }
    whit_hyper_bundle_close(&bundle);
}

static double normal_below(double x)
{
    return 0.5 * erfc(-x / sqrt(2));
}

/* Returns the probability that an item of a bundle of m items (m odd) is nearer to the bundle than 999 strangers. A
 * member agrees with the majority in a bit with p = 1/2 + C(m - 1, (m - 1) / 2) / 2^m; the number of agreements is
 * nearly normal. */
static double theory(uint32_t m, double bits)
{
    double p = 0.5 + exp(lgamma(m) - 2 * lgamma((m + 1) / 2.0) - m * log(2)), chance = 0;
    double mean = bits * p, deviation = sqrt(bits * p * (1 - p));
    for (double z = -8; z < 8; z += 0.01) {
        double x = mean + z * deviation;
        double below = normal_below((x - bits / 2) / sqrt(bits / 4)); /* half of the ties count as lost */
        chance += exp(-z * z / 2) / sqrt(2 * M_PI) * 0.01 * pow(below, 999);
    }
    return chance;
}

static void test_recall(void **state)
{
    (void)state;
    enum { STRANGERS = 999 };
    static const uint32_t sizes[] = {3, 11, 31, 101, 301};
    static uint64_t strangers[STRANGERS][WORDS];
    whit_rng rng = {77};
    whit_error error;
    uint64_t *items = calloc(301, sizeof *strangers);
    for (uint32_t words = 16; words <= 128; words += 112) /* 1,024 and 8,192 bits */
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            uint32_t m = sizes[k], n_trials = tests_are_brief() ? 200 : 3000, n_found = 0, n_tried = 0;
            whit_hyper_bundle bundle;
            assert_ok(whit_hyper_bundle_open(words, NULL, &bundle, &error), error);
            while (n_tried < n_trials) {
                uint64_t sum[WORDS];
                whit_hyper_bundle_clear(&bundle);
                for (uint32_t i = 0; i < m; i++) {
                    whit_hyper_random(whit_rng_next(&rng), items + (size_t)i * WORDS, words);
                    assert_true(whit_hyper_bundle_add(&bundle, items + (size_t)i * WORDS));
                }
                whit_hyper_bundle_majority(&bundle, items, sum);
                for (uint32_t i = 0; i < STRANGERS; i++) whit_hyper_random(whit_rng_next(&rng), strangers[i], words);
                uint64_t nearest = UINT64_MAX;
                for (uint32_t i = 0; i < STRANGERS; i++) {
                    uint64_t distance = kernels.distance(sum, strangers[i], words);
                    if (distance < nearest) nearest = distance;
                }
                for (uint32_t i = 0; i < m && i < 30; i++, n_tried++)
                    n_found += kernels.distance(sum, items + (size_t)i * WORDS, words) < nearest;
            }
            double found = (double)n_found / n_tried, wanted = theory(m, 64.0 * words);
            print_message("%4u bits, bundle of %3u: recall %.3f, theory %.3f\n", 64 * words, m, found, wanted);
            assert_true(fabs(found - wanted) < (tests_are_brief() ? 0.08 : 0.02));
            whit_hyper_bundle_close(&bundle);
        }
    free(items);
}

static const char *const nouns[] = {"garden", "engine",  "letter", "river",   "window",  "harbour",
                                    "violin", "market",  "forest", "kitchen", "teacher", "mountain",
                                    "pencil", "station", "winter", "candle"};
static const char *const verbs[] = {"watches", "repairs",   "forgets", "paints",
                                    "crosses", "remembers", "carries", "sells"};

static void make_line(whit_rng *rng, char *line, size_t size)
{
    snprintf(line, size, "the %s %s a %s near the %s on day %u", nouns[whit_rng_below(rng, 16)],
             verbs[whit_rng_below(rng, 8)], nouns[whit_rng_below(rng, 16)], nouns[whit_rng_below(rng, 16)],
             (unsigned)whit_rng_below(rng, 100000));
}

static void test_store(void **state)
{
    (void)state;
    enum { LINES = 2500 };
    const char *path = in_folder("notes.mem");
    static uint64_t vectors[LINES][WORDS];
    static char lines[LINES][200];
    whit_encoder encoder;
    whit_memory_batch batch = {0};
    whit_memory *memory;
    whit_pool *pool;
    whit_error error;
    whit_rng rng = {8};
    assert_ok(whit_encoder_open(NULL, &encoder, &error), error);
    for (uint32_t i = 0; i < LINES; i++) {
        make_line(&rng, lines[i], sizeof lines[i]);
        assert_ok(whit_encode_text(&encoder, lines[i], strlen(lines[i]), vectors[i], &error), error);
        assert_ok(whit_memory_batch_add(&batch, vectors[i], lines[i], strlen(lines[i]), &error), error);
        if (i % 700 == 0) assert_ok(whit_memory_batch_commit(&batch, path, &error), error);
    }
    assert_ok(whit_memory_batch_commit(&batch, path, &error), error);
    assert_ok(whit_memory_batch_commit(&batch, path, &error), error); /* the batch has nothing more to write */
    whit_memory_batch_free(&batch);
    assert_ok(whit_memory_open(path, NULL, &memory, &error), error);
    whit_memory_stats stats;
    whit_memory_stats_of(memory, &stats);
    assert_int_equal(stats.n_records, LINES);
    assert_int_equal(stats.n_frames, 5);
    assert_ok(whit_pool_open(3, NULL, &pool, &error), error);
    uint32_t n_first = 0;
    for (uint32_t q = 0; q < 1000; q++) {
        uint32_t wanted = (uint32_t)whit_rng_below(&rng, LINES), n_hits;
        char text[200];
        uint64_t query[WORDS];
        whit_memory_hit hits[10];
        size_t n = strlen(lines[wanted]);
        memcpy(text, lines[wanted], n + 1);
        for (size_t k = 0; k < n / 10; k++) text[whit_rng_below(&rng, n)] = (char)('a' + whit_rng_below(&rng, 26));
        assert_ok(whit_encode_text(&encoder, text, n, query, &error), error);
        assert_ok(whit_memory_search(memory, &kernels, q % 2 ? pool : NULL, query, 10, hits, &n_hits, &error), error);
        assert_int_equal(n_hits, 10);
        n_first += hits[0].record == wanted || strcmp(lines[hits[0].record], lines[wanted]) == 0;
        if (q % 50) continue;
        for (uint32_t h = 0; h < 10; h++) { /* a full scan: exactly h records are nearer */
            uint32_t n_nearer = 0;
            for (uint32_t i = 0; i < LINES; i++) {
                uint32_t distance = (uint32_t)kernels.distance(vectors[i], query, WORDS);
                n_nearer += distance < hits[h].distance || (distance == hits[h].distance && i < hits[h].record);
                if (i == hits[h].record) assert_int_equal(distance, hits[h].distance);
            }
            assert_int_equal(n_nearer, h);
        }
    }
    print_message("%u of 1000 altered lines are found first\n", n_first);
    assert_true(n_first >= 950);
    const char *text;
    size_t n_bytes;
    const uint64_t *vector;
    whit_memory_at(memory, 1234, &text, &n_bytes, &vector);
    assert_int_equal(n_bytes, strlen(lines[1234]));
    assert_memory_equal(text, lines[1234], n_bytes);
    assert_memory_equal(vector, vectors[1234], sizeof vectors[0]);
    whit_pool_close(pool);
    whit_memory_close(memory);

    /* A triple must be found by a query of which one field is missing. */
    uint64_t whole[WORDS], part[WORDS], other[WORDS];
    whit_encode_triple(&encoder, (const char *const[3]){"whit", "is written in", "C11"}, whole);
    whit_encode_triple(&encoder, (const char *const[3]){"whit", "is written in", NULL}, part);
    whit_encode_triple(&encoder, (const char *const[3]){"C11", "is written in", "whit"}, other);
    assert_true(cosine(whole, part) > cosine(other, part) + 0.2);
    whit_encoder_close(&encoder);
}

/* A record for which memory runs out is not added, whichever allocation fails; the others are committed. */
static void test_no_memory_for_record(void **state)
{
    (void)state;
    const char *path = in_folder("short.mem");
    static const uint64_t vector[WORDS] = {1};
    for (long n = 0; n < 3; n++) {
        struct failing failing = {.n_left = LONG_MAX};
        const whit_allocator allocator = {failing_alloc, failing_free, &failing};
        whit_memory_batch batch = {.allocator = &allocator};
        char text[4096];
        whit_memory *memory;
        whit_memory_stats stats;
        whit_error error;
        memset(text, 't', sizeof text);
        unlink(path);
        assert_ok(whit_memory_batch_add(&batch, vector, "a", 1, &error), error);
        uint32_t n_added = 1;
        for (failing.n_left = n; whit_memory_batch_add(&batch, vector, text, sizeof text, &error) == WHIT_OK;)
            n_added++;
        assert_int_equal(error.status, WHIT_ERROR_MEMORY);
        failing.n_left = LONG_MAX;
        assert_ok(whit_memory_batch_add(&batch, vector, "b", 1, &error), error);
        assert_ok(whit_memory_batch_commit(&batch, path, &error), error);
        whit_memory_batch_free(&batch);
        assert_int_equal(failing.n_live, 0);
        assert_ok(whit_memory_open(path, NULL, &memory, &error), error);
        whit_memory_stats_of(memory, &stats);
        assert_int_equal(stats.n_records, n_added + 1);
        assert_int_equal(stats.text_bytes, (n_added - 1) * sizeof text + 2);
        whit_memory_close(memory);
    }
}

int main(void)
{
    whit_cpu cpu;
    whit_cpu_detect(&cpu);
    if (whit_quat_select(&cpu, getenv("WHIT_CPU"), &kernels, NULL) != WHIT_OK) return 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_binding), cmocka_unit_test(test_majority),
                                       cmocka_unit_test(test_recall), cmocka_unit_test(test_store),
                                       cmocka_unit_test(test_no_memory_for_record)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
