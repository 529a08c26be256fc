/* SPDX-License-Identifier: MIT
 * Tests confidence intervals, sketches of texts, and values checked against a JSON Schema. */
#include "base/rng.h"
#include "base/sketch.h"
#include "cli/interval.h"
#include "grammar/schema.h"
#include "test.h"

#include <math.h>

static void assert_near(double x, double wanted, double tolerance)
{
    if (!(fabs(x - wanted) <= tolerance)) fail_msg("%.9g is not %.9g", x, wanted);
}

/* ---- intervals -------------------------------------------------------------------------------- */

static void test_student(void **state)
{
    /* published 97.5 % quantiles of Student's distribution */
    static const struct {
        size_t degrees;
        double quantile;
    } known[] = {{1, 12.7062},  {2, 4.30265},  {10, 2.22814}, {11, 2.20099},
                 {20, 2.08596}, {60, 2.00030}, {120, 1.97993}};
    double sums[121], counts[121];
    (void)state;
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        const size_t n = known[k].degrees + 1;
        double squares = 0;
        for (size_t i = 0; i < n; i++) {
            sums[i] = 3 + (double)(i % 2 ? 1 : -1) * (n % 2 && i == n - 1 ? 0 : 1);
            counts[i] = 1;
            squares += (sums[i] - 3) * (sums[i] - 3);
        }
        const cli_interval x = cli_interval_mean(sums, counts, n);
        const double half = known[k].quantile * sqrt(squares / (double)(n - 1) / (double)n);
        assert_true(x.is_known);
        assert_near(x.value, 3, 1e-12);
        assert_near(cli_interval_half(x), half, 2e-4 * half);
    }
    assert_false(cli_interval_mean(sums, counts, 1).is_known);
    assert_false(cli_interval_mean(sums, counts, 0).is_known);
}

/* Checks how often the confidence interval of 12 windows contains the true mean. The windows have unequal lengths, and
 * tokens within a window are correlated. */
static void test_coverage(void **state)
{
    enum { ROUNDS = 2000, WINDOWS = 12 };
    whit_rng rng = {7};
    uint32_t n_within = 0, n_share = 0;
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        double sums[WINDOWS], counts[WINDOWS];
        size_t n_right = 0;
        for (int w = 0; w < WINDOWS; w++) {
            const double level = whit_rng_uniform(&rng) + whit_rng_uniform(&rng); /* the mean of `level` is 1 */
            counts[w] = w % 3 ? 20 : 10;
            sums[w] = 0;
            for (int t = 0; t < (int)counts[w]; t++) sums[w] += level + whit_rng_uniform(&rng) - 0.5;
        }
        const cli_interval x = cli_interval_mean(sums, counts, WINDOWS);
        n_within += x.low <= 1 && x.high >= 1;
        for (int i = 0; i < 30; i++) n_right += whit_rng_uniform(&rng) < 0.9;
        const cli_interval share = cli_interval_share(n_right, 30);
        n_share += share.low <= 0.9 && share.high >= 0.9;
    }
    assert_in_range(n_within, ROUNDS * 93 / 100, ROUNDS * 97 / 100);
    assert_in_range(n_share, ROUNDS * 92 / 100, ROUNDS * 99 / 100);
}

static void test_shares(void **state)
{
    (void)state;
    /* Wilson's interval for 8 of 10 is 0.490 to 0.943 (formula: Brown, Cai, DasGupta 2001) */
    const cli_interval x = cli_interval_share(8, 10), all = cli_interval_share(5, 5), zero = cli_interval_share(0, 5);
    assert_near(x.low, 0.4902, 1e-4);
    assert_near(x.high, 0.9433, 1e-4);
    assert_true(all.high == 1 && all.low > 0.5 && all.low < 0.6);
    assert_true(zero.low == 0 && zero.high > 0.4 && zero.high < 0.5);
    assert_false(cli_interval_share(0, 0).is_known);
    const cli_interval a = {4, 3.6, 4.4, true}, b = {2, 1.8, 2.2, true};
    const cli_interval q = cli_interval_quotient(a, b);
    assert_near(q.value, 2, 1e-12);
    assert_near(q.low * q.high, 4, 1e-12);
    assert_near(log(q.high / q.value), 0.1 * sqrt(2), 1e-12);
    assert_false(cli_interval_quotient(a, (cli_interval){0}).is_known);
}

/* ---- sketches --------------------------------------------------------------------------------- */

enum { TEXT_BYTES = 300000 };

static void fill_text(char *text, size_t n, uint64_t seed)
{
    whit_rng rng = {seed};
    for (size_t i = 0; i < n; i++) text[i] = (char)('a' + whit_rng_below(&rng, 26));
}

static double share_of(const whit_sketch *sketch, const char *text, size_t n)
{
    const whit_sketch_overlap overlap = whit_sketch_compare(sketch, text, n);
    return overlap.n_seen ? (double)overlap.n_common / (double)overlap.n_seen : -1;
}

static void test_overlap(void **state)
{
    (void)state;
    char *known = malloc(TEXT_BYTES), *other = malloc(TEXT_BYTES);
    whit_sketch sketch = {0}, read;
    uint8_t bytes[8 * WHIT_SKETCH_HASHES_MAX];
    assert_true(known && other);
    fill_text(known, TEXT_BYTES, 1);
    whit_sketch_add(&sketch, known, TEXT_BYTES);
    whit_sketch_finish(&sketch);
    assert_int_equal(sketch.n, WHIT_SKETCH_HASHES_MAX);
    const size_t n_bytes = whit_sketch_write(&sketch, bytes);
    assert_true(whit_sketch_read(&read, bytes, n_bytes));
    assert_true(share_of(&read, known, TEXT_BYTES) == 1);
    /* `tenths` tenths of the other text are a passage of the known text */
    for (int tenths = 0; tenths <= 10; tenths += 2) {
        const size_t n = TEXT_BYTES / 10 * (size_t)tenths;
        fill_text(other, TEXT_BYTES, 2 + (uint64_t)tenths);
        memcpy(other + TEXT_BYTES - n, known, n);
        assert_near(share_of(&read, other, TEXT_BYTES), tenths / 10.0, 0.07);
    }
    /* line breaks and indentation must not matter, but a changed letter in forty must */
    size_t n = 0;
    for (size_t i = 0; n + 8 < TEXT_BYTES && i < TEXT_BYTES / 2; i++) {
        other[n++] = known[i];
        if (i % 60 == 59) known[i] = ' ', memcpy(other + n - 1, "\n\t  ", 4), n += 3;
    }
    sketch = (whit_sketch){0};
    whit_sketch_add(&sketch, known, TEXT_BYTES / 2);
    whit_sketch_finish(&sketch);
    assert_true(share_of(&sketch, other, n) > 0.99);
    for (size_t i = 0; i < n; i += 40) other[i] = '#';
    assert_true(share_of(&sketch, other, n) == 0);
    free(known), free(other);
}

static void test_joined(void **state)
{
    (void)state;
    static char a[60000], b[500];
    whit_sketch parts[2] = {{{0}, 0, false, 0}}, both = {0}, small = {0};
    fill_text(a, sizeof a, 5), fill_text(b, sizeof b, 6);
    whit_sketch_add(&parts[0], a, sizeof a), whit_sketch_finish(&parts[0]);
    whit_sketch_add(&parts[1], b, sizeof b), whit_sketch_finish(&parts[1]);
    whit_sketch_add(&both, a, sizeof a), whit_sketch_add(&both, b, sizeof b), whit_sketch_finish(&both);
    whit_sketch_join(&parts[0], &parts[1]);
    assert_int_equal(parts[0].n, both.n);
    assert_memory_equal(parts[0].hashes, both.hashes, both.n * sizeof *both.hashes);
    assert_false(parts[1].is_full); /* a short text keeps all its shingles */
    assert_true(share_of(&parts[1], b, sizeof b) == 1 && share_of(&parts[1], a, sizeof a) == 0);
    whit_sketch_add(&small, "too short for a shingle", 23), whit_sketch_finish(&small);
    assert_int_equal(small.n, 0);
    assert_true(share_of(&both, "short", 5) == -1);
}

static void test_damaged_sketch(void **state)
{
    (void)state;
    whit_sketch sketch;
    uint8_t bytes[8 * WHIT_SKETCH_HASHES_MAX + 8] = {0};
    assert_true(whit_sketch_read(&sketch, bytes, 0));
    assert_false(whit_sketch_read(&sketch, bytes, 12));
    assert_false(whit_sketch_read(&sketch, bytes, 16)); /* two equal hashes are invalid */
    assert_false(whit_sketch_read(&sketch, bytes, sizeof bytes));
    bytes[15] = 1;
    assert_true(whit_sketch_read(&sketch, bytes, 16));
    bytes[7] = 2;
    assert_false(whit_sketch_read(&sketch, bytes, 16)); /* hashes that are not ascending */
}

/* ---- values ----------------------------------------------------------------------------------- */

static void test_values(void **state)
{
    static const struct {
        const char *schema, *value;
        int valid; /* -1: the schema is refused */
    } cases[] = {
        {"{}", "{\"a\": 1}", 1},
        {"true", "3", 1},
        {"false", "3", 0},
        {"{}", "{\"a\": ", 0},
        {"{}", "", 0},
        {"{\"type\": \"object\"}", "[]", 0},
        {" {\"type\": \"object\", \"properties\": {\"n\": {\"type\": \"integer\", \"minimum\": 2}}, \"required\": "
         "[\"n\"]}",
         "{\"n\": 2}", 1},
        {"{\"properties\": {\"n\": {\"type\": \"integer\", \"minimum\": 2}}, \"required\": [\"n\"]}", "{\"n\": 1}", 0},
        {"{\"properties\": {\"n\": {\"type\": \"integer\"}}, \"required\": [\"n\"]}", "{\"m\": 1}", 0},
        {"{\"properties\": {\"n\": {}}, \"additionalProperties\": false}", "{\"n\": null, \"m\": 1}", 0},
        {"{\"properties\": {\"n\": {}}, \"additionalProperties\": false}", "{\"n\": null}", 1},
        {"{\"const\": 4}", "4", 1},
        {"{\"const\": 4}", "5", 0},
        {"{\"enum\": [\"a\", \"b\"]}", "\"b\"", 1},
        {"{\"enum\": [\"a\", \"b\"]}", "\"c\"", 0},
        {"{\"$defs\": {\"s\": {\"type\": \"string\"}}, \"items\": {\"$ref\": \"#/$defs/s\"}}", "[\"x\", \"y\"]", 1},
        {"{\"$defs\": {\"s\": {\"type\": \"string\"}}, \"items\": {\"$ref\": \"#/$defs/s\"}}", "[\"x\", 1]", 0},
        {"{\"anyOf\": [{\"type\": \"null\"}, {\"pattern\": \"^a+$\", \"type\": \"string\"}]}", "\"aaa\"", 1},
        {"{\"anyOf\": [{\"type\": \"null\"}, {\"pattern\": \"^a+$\", \"type\": \"string\"}]}", "\"ab\"", 0},
        {"[1]", "1", -1},
        {"{\"type\": 3}", "1", -1},
        {"{", "1", -1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool valid = true;
        whit_error error = {0};
        const whit_status status = whit_json_schema_check("case", cases[i].schema, strlen(cases[i].schema),
                                                          cases[i].value, strlen(cases[i].value), &valid, &error);
        if ((status == WHIT_OK) != (cases[i].valid >= 0) || valid != (cases[i].valid == 1))
            fail_msg("%s of %s: %d, %d, %s", cases[i].value, cases[i].schema, (int)status, valid, error.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_student), cmocka_unit_test(test_coverage), cmocka_unit_test(test_shares),
        cmocka_unit_test(test_overlap), cmocka_unit_test(test_joined),   cmocka_unit_test(test_damaged_sketch),
        cmocka_unit_test(test_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
