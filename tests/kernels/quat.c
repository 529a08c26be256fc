/* SPDX-License-Identifier: MIT
 * Compares the generic kernels of quaternary vectors with arithmetic on the values, and every faster level with the
 * generic kernels, bit for bit, for any content of the padding. */
#include <math.h>

#include "base/rng.h"
#include "kernels/quat/declare.h"
#include "test.h"

enum { WORDS = 60, GUARD = 2, N_LENGTHS = 300 };

struct planes {
    uint64_t sign[WORDS + 2 * GUARD], extra[WORDS + 2 * GUARD];
};

static whit_quat_planes in(struct planes *p)
{
    return (whit_quat_planes){p->sign + GUARD, p->extra + GUARD};
}
static whit_quat_view view(const struct planes *p)
{
    return (whit_quat_view){p->sign + GUARD, p->extra + GUARD};
}
static void fill(struct planes *p, whit_rng *rng)
{
    for (size_t i = 0; i < WORDS + 2 * GUARD; i++) {
        p->sign[i] = whit_rng_next(rng);
        p->extra[i] = whit_rng_next(rng);
    }
}

static int saturate(int v)
{
    return v > 2 ? 2 : v < -2 ? -2 : v == 0 ? 1 : v;
}

static whit_quat_kernels table_of(const char *cap)
{
    whit_cpu cpu;
    whit_error error;
    whit_quat_kernels kernels;
    whit_cpu_detect(&cpu);
    assert_ok(whit_quat_select(&cpu, cap, &kernels, &error), error);
    return kernels;
}

/* All sixteen pairs of values, one per lane, and maps that choose by a lane's own values. */
static void test_values(void **state)
{
    (void)state;
    static const int values[4] = {-2, -1, 1, 2};
    whit_quat_kernels k = table_of("generic");
    struct planes a = {0}, b = {0}, out = {0};
    uint64_t mask[1];
    for (uint32_t i = 0; i < 16; i++) {
        whit_quat_put(in(&a), i, values[i >> 2]);
        whit_quat_put(in(&b), i, values[i & 3]);
        assert_int_equal(whit_quat_at(view(&a), i), values[i >> 2]);
    }
#define CHECK(expression)                                                                                              \
    for (uint32_t i = 0; i < 16; i++) {                                                                                \
        int x = values[i >> 2], y = values[i & 3], wanted = (expression);                                              \
        (void)x, (void)y;                                                                                              \
        assert_int_equal(whit_quat_at(view(&out), i), wanted);                                                         \
    }
    k.add(in(&out), view(&a), view(&b), 1);
    CHECK(saturate(x + y))
    k.mul(in(&out), view(&a), view(&b), 1);
    CHECK(saturate(x * y))
    k.swiglu(in(&out), view(&a), view(&b), 1);
    CHECK(saturate((x < 0 ? -1 : x) * y))
    k.silu(in(&out), view(&a), 1);
    CHECK(x < 0 ? -1 : x)
    k.negate(in(&out), view(&a), 1);
    CHECK(-x)
    k.absolute(in(&out), view(&a), 1);
    CHECK(x < 0 ? -x : x)
    whit_quat_map map = {0};
    for (unsigned i = 0; i < 16; i++) { /* the map gives a if a is odd, otherwise -b */
        int v = values[i >> 2] % 2 ? values[i >> 2] : -values[i & 3];
        map.sign |= (uint16_t)((v > 0) << i);
        map.extra |= (uint16_t)((v == 2 || v == -1) << i);
    }
    k.map(in(&out), &map, view(&a), view(&b), 1);
    CHECK(x % 2 ? x : -y)
    k.less(mask, view(&a), view(&b), 1);
    for (uint32_t i = 0; i < 16; i++) assert_int_equal(mask[0] >> i & 1, values[i >> 2] < values[i & 3]);
    k.equal(mask, view(&a), view(&b), 1);
    for (uint32_t i = 0; i < 16; i++) assert_int_equal(mask[0] >> i & 1, values[i >> 2] == values[i & 3]);
    k.select(in(&out), mask, view(&a), view(&b), 1);
    CHECK(x == y ? x : y)

    /* rounded sums of operands with different scales: halves are rounded away from zero, zero becomes +1 */
    for (int apart = 1; apart < 8; apart++) {
        assert_int_equal(whit_quat_add_scaled(&k, in(&out), view(&a), 3, view(&b), (int8_t)(3 - apart), 1), 3);
        CHECK((2 * abs(x * (1 << apart) + y) >= 3 << apart ? 2 : 1) * (x * (1 << apart) + y < 0 ? -1 : 1))
        assert_int_equal(whit_quat_add_scaled(&k, in(&out), view(&b), (int8_t)(3 - apart), view(&a), 3, 1), 3);
        CHECK((2 * abs(x * (1 << apart) + y) >= 3 << apart ? 2 : 1) * (x * (1 << apart) + y < 0 ? -1 : 1))
    }
    assert_int_equal(whit_quat_add_scaled(&k, in(&out), view(&a), -7, view(&b), -7, 1), -7);
    CHECK(saturate(x + y))
}

/* Reductions of all lengths, with random padding. */
static void test_sums(void **state)
{
    (void)state;
    whit_quat_kernels k = table_of("generic");
    whit_rng rng = {3};
    struct planes a, b;
    for (uint32_t n = 1; n <= N_LENGTHS; n++) {
        fill(&a, &rng);
        fill(&b, &rng);
        int64_t dot = 0, sum = 0, squares = 0;
        for (uint32_t i = 0; i < n; i++) {
            int x = whit_quat_at(view(&a), i);
            dot += x * whit_quat_at(view(&b), i);
            sum += x;
            squares += x * x;
        }
        assert_int_equal(k.dot(view(&a), view(&b), n), dot);
        assert_int_equal(k.dot8(view(&a), view(&b), n), dot);
        assert_int_equal(k.sum(view(&a), n), sum);
        assert_int_equal(k.sum_squares(view(&a), n), squares);
    }
}

static void compare(const struct planes *a, const struct planes *b)
{
    assert_memory_equal(a->sign, b->sign, sizeof a->sign);
    assert_memory_equal(a->extra, b->extra, sizeof a->extra);
}

static void test_levels(void **state)
{
    (void)state;
    whit_quat_kernels generic = table_of("generic");
    for (int isa = 1; isa < WHIT_ISA_COUNT; isa++) {
        whit_quat_kernels k = table_of(whit_isa_name((whit_isa)isa));
        whit_rng rng = {(uint64_t)isa};
        for (uint32_t words = 1; words <= WORDS; words++) {
            struct planes a, b, one, two;
            uint64_t mask_one[WORDS + 1] = {0}, mask_two[WORDS + 1] = {0};
            whit_quat_map map = {(uint16_t)whit_rng_next(&rng), (uint16_t)whit_rng_next(&rng)};
            fill(&a, &rng);
            fill(&b, &rng);
            fill(&one, &rng);
            two = one; /* so that lanes that a kernel does not write stay equal */
#define BOTH(call)                                                                                                     \
    do {                                                                                                               \
        struct planes *out = &one;                                                                                     \
        uint64_t *mask = mask_one;                                                                                     \
        whit_quat_kernels *f = &generic;                                                                               \
        call;                                                                                                          \
        out = &two, mask = mask_two, f = &k;                                                                           \
        call;                                                                                                          \
        (void)out;                                                                                                     \
        assert_memory_equal(mask_one, mask_two, sizeof mask_one);                                                      \
        compare(&one, &two);                                                                                           \
    } while (0)
            BOTH(((void)mask, f->add(in(out), view(&a), view(&b), words)));
            BOTH(((void)mask, f->add(in(out), view(out), view(&b), words)));
            BOTH(((void)mask, f->mul(in(out), view(&a), view(&b), words)));
            BOTH(((void)mask, f->swiglu(in(out), view(&a), view(out), words)));
            BOTH(((void)mask, f->silu(in(out), view(&a), words)));
            BOTH(((void)mask, f->negate(in(out), view(out), words)));
            BOTH(((void)mask, f->absolute(in(out), view(out), words)));
            BOTH(f->less(mask, view(&a), view(&b), words));
            BOTH(f->select(in(out), mask, view(&a), view(&b), words));
            BOTH(f->equal(mask, view(&a), view(&b), words));
            BOTH(((void)mask, f->map(in(out), &map, view(&a), view(&b), words)));
            for (uint32_t n = 64 * words - 63; n <= 64 * words; n += 1 + (uint32_t)whit_rng_below(&rng, 9)) {
                assert_int_equal(generic.dot(view(&a), view(&b), n), k.dot(view(&a), view(&b), n));
                assert_int_equal(generic.dot8(view(&a), view(&b), n), k.dot8(view(&a), view(&b), n));
                assert_int_equal(generic.sum(view(&a), n), k.sum(view(&a), n));
                assert_int_equal(generic.sum_squares(view(&a), n), k.sum_squares(view(&a), n));
            }
            assert_int_equal(generic.distance(a.sign, b.sign, words), k.distance(a.sign, b.sign, words));
        }
    }
}

static void test_table(void **state)
{
    (void)state;
    static uint8_t table[WHIT_QUAT_TABLE_BYTES];
    enum { N = 64 * WORDS };
    whit_quat_kernels k = table_of(NULL);
    whit_rng rng = {9};
    struct planes a, b, by_words;
    uint8_t x[N / 4], y[N / 4], by_table[N / 4], wanted[N / 4];
    fill(&a, &rng);
    fill(&b, &rng);
    by_words = a;
    whit_quat_table_pack(view(&a), N, x);
    whit_quat_table_pack(view(&b), N, y);
    whit_quat_table_add(table);
    whit_quat_table_run(table, by_table, x, y, N / 4);
    k.add(in(&by_words), view(&a), view(&b), WORDS);
    whit_quat_table_pack(view(&by_words), N, wanted);
    assert_memory_equal(by_table, wanted, sizeof wanted);
}

static int8_t scale_of(const float *x, uint32_t n)
{
    whit_quat_fitting fit;
    whit_quat_fit_begin(&fit, whit_quat_largest(x, n));
    whit_quat_fit_add(&fit, x, n);
    return whit_quat_fit_end(&fit);
}

/* The norm, compared with floating point where no value is at a rounding threshold. */
static void test_norm(void **state)
{
    (void)state;
    whit_quat_kernels k = table_of(NULL);
    whit_rng rng = {5};
    for (uint32_t n = 1; n <= N_LENGTHS; n += 7) {
        struct planes x, w, out;
        fill(&x, &rng);
        fill(&w, &rng);
        for (int weighted = 0; weighted < 2; weighted++) {
            whit_quat_view weight = weighted ? view(&w) : (whit_quat_view){0};
            int scale = whit_quat_rms_norm(&k, in(&out), view(&x), weight, n);
            double squares = 0;
            for (uint32_t i = 0; i < n; i++) squares += (double)whit_quat_at(view(&x), i) * whit_quat_at(view(&x), i);
            double root = __builtin_sqrt(squares / n);
            assert_in_range(scale, 0, 1);
            for (uint32_t i = 0; i < n; i++) {
                double v = whit_quat_at(view(&x), i) * (weighted ? whit_quat_at(view(&w), i) : 1) / root / (1 << scale);
                int rounded = whit_quat_at(view(&out), i);
                if (__builtin_fabs(__builtin_fabs(v) - 1.5) > 1e-9)
                    assert_int_equal(rounded, (__builtin_fabs(v) > 1.5 ? 2 : 1) * (v < 0 ? -1 : 1));
            }
        }
    }
}

static void test_rounding(void **state)
{
    (void)state;
    const float x[] = {0, -0.f, 0.1f, -0.1f, 1.49f, 1.5f, -1.5f, 9, -9, __builtin_nanf("")};
    const int wanted[] = {1, 1, 1, -1, 1, 2, -2, 2, -2, 1};
    struct planes out = {0};
    float back[10];
    whit_quat_round(x, 10, 0, in(&out));
    whit_quat_expand(view(&out), 10, -1, back);
    for (uint32_t i = 0; i < 10; i++) {
        assert_int_equal(whit_quat_at(view(&out), i), wanted[i]);
        assert_true(back[i] == (float)wanted[i] / 2);
    }
    const float exact[] = {0.25f, -0.5f, 0.5f, -0.25f};
    assert_int_equal(scale_of(exact, 4), -2);
    assert_int_equal(scale_of(x, 1), 0);
    assert_int_equal(scale_of((const float[]){3e38f, -3e38f}, 2), 126);

    /* the chosen scale must be that of the least squared error among six, by the definition */
    whit_rng rng = {3};
    for (int round = 0; round < 2000; round++) {
        float values[200];
        uint32_t n = 1 + (uint32_t)whit_rng_below(&rng, 200);
        int exponent = (int)whit_rng_below(&rng, 270) - 140, largest, best = 0;
        float most = 0;
        for (uint32_t i = 0; i < n; i++) {
            double part = (double)(whit_rng_below(&rng, 2000001)) * 1e-6 - 1;
            values[i] = whit_rng_below(&rng, 50) ? (float)ldexp(part, exponent) : i % 2 ? -0.f : -INFINITY;
            if (fabsf(values[i]) > most && isfinite(values[i])) most = fabsf(values[i]);
        }
        frexpf(most, &largest);
        double least = INFINITY;
        for (int k = largest; most > 0 && k >= largest - 5; k--) {
            int scale = k < -126 ? -126 : k > 126 ? 126 : k;
            double sum = 0;
            for (uint32_t i = 0; i < n; i++) {
                float y = values[i] * ldexpf(1, -scale);
                double gap = (double)values[i] - ldexp(y >= 1.5f ? 2 : y <= -1.5f ? -2 : y < 0 ? -1 : 1, scale);
                if (isfinite(values[i])) sum += gap * gap;
            }
            if (sum < least) {
                least = sum;
                best = scale;
            }
        }
        assert_int_equal(scale_of(values, n), best);
        struct planes planes = {0};
        whit_quat_round(values, n < 64 ? n : 64, (int8_t)best, in(&planes));
        for (uint32_t i = 0; i < n && i < 64; i++) {
            float y = values[i] * ldexpf(1, -best);
            assert_int_equal(whit_quat_at(view(&planes), i), y >= 1.5f ? 2 : y <= -1.5f ? -2 : y < 0 ? -1 : 1);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values), cmocka_unit_test(test_sums),
                                       cmocka_unit_test(test_levels), cmocka_unit_test(test_table),
                                       cmocka_unit_test(test_norm),   cmocka_unit_test(test_rounding)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
