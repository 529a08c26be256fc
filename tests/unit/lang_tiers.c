/* SPDX-License-Identifier: MIT
 * Runs random programs on every tier: every variable must have the same bits, the printed lines and the result must be
 * the same, and an error must have the same text and place.
 *
 *     lang_tiers [FIRST COUNT]     seeds; the test suite runs them in parts */
#include <limits.h>
#include <malloc.h>

#include "failing_memory.h"
#include "kernels/quat/quat.h"
#include "lang/core/lang.h"
#include "lang/jit/jit.h"
#include "lang_digest.h"
#include "lang_random.h"
#include "test.h"

static uint64_t first_seed, n_seeds = 5000;

struct outcome {
    whit_status status;
    uint64_t digest, printed; /* printed: a hash of all printed lines */
    whit_error error;
};

enum { MAX_STEPS = 100000 };

static bool keep_line(void *user, const char *text, size_t n_bytes)
{
    uint64_t *hash = user;
    for (size_t i = 0; i < n_bytes; i++) *hash = (*hash ^ (unsigned char)text[i]) * 0x100000001B3u;
    return true;
}

static struct outcome run(const whit_quat_kernels *kernels, const lang_writer *writer, int tier, bool every_round,
                          uint64_t max_steps)
{
    struct outcome outcome = {.printed = 1};
    whit_lang_options options = {.quat = kernels,
                                 .print = keep_line,
                                 .user = &outcome.printed,
                                 .jit = whit_lang_jit_native(),
                                 .tier = tier,
                                 .max_steps = max_steps,
                                 .no_closed_forms = every_round};
    whit_lang *lang;
    whit_error error;
    assert_ok(whit_lang_open(&options, &lang, &error), error);
    whit_status status = whit_lang_load(lang, "random", writer->text, writer->n, &error);
    if (status != WHIT_OK) fail_msg("%s\n%s", writer->text, error.message);
    outcome.status = whit_lang_run(lang, &error);
    if (outcome.status != WHIT_OK) outcome.error = error;
    outcome.digest = digest_variables(lang);
    whit_lang_close(lang);
    return outcome;
}

static void test_tiers(void **state)
{
    (void)state;
    static lang_writer writer;
    whit_cpu cpu;
    whit_error error;
    whit_quat_kernels generic, narrow, best;
    uint64_t n_failed = 0, n = tests_are_brief() ? n_seeds / 20 : n_seeds;
    whit_cpu_detect(&cpu);
    assert_ok(whit_quat_select(&cpu, "generic", &generic, &error), error);
    assert_ok(whit_quat_select(&cpu, NULL, &best, &error), error);
    bool avx2 = whit_isa_allows(best.isa, WHIT_ISA_AVX2); /* machine code has two widths */
    assert_ok(whit_quat_select(&cpu, avx2 ? "avx2" : NULL, &narrow, &error), error);
    for (uint64_t seed = first_seed; seed < first_seed + n; seed++) {
        lang_random(&writer, seed);
        struct outcome oracle = run(&generic, &writer, WHIT_LANG_WALK, true, MAX_STEPS);
        n_failed += oracle.status != WHIT_OK;
        for (int k = 0; k < 4; k++) {
            const whit_quat_kernels *level = k < 3 ? &best : &narrow;
            int tier = k < 2 ? WHIT_LANG_CLOSURES : WHIT_LANG_NATIVE;
            struct outcome wanted = oracle, other = run(level, &writer, tier, k != 0, MAX_STEPS);
            /* If both runs reach the limit on steps, they need not stop at the same place. A fused chain counts fewer
             * steps than its operations, so one run alone may reach the limit. */
            bool limited = oracle.status == WHIT_ERROR_LIMIT, other_limited = other.status == WHIT_ERROR_LIMIT;
            if (limited && other_limited) continue;
            if (limited != other_limited) {
                wanted = run(&generic, &writer, WHIT_LANG_WALK, true, 100 * MAX_STEPS);
                other = run(level, &writer, tier, k != 0, 100 * MAX_STEPS);
            }
            bool same_words =
                wanted.status == WHIT_ERROR_LIMIT || strcmp(wanted.error.message, other.error.message) == 0;
            if (other.status != wanted.status || other.digest != wanted.digest || other.printed != wanted.printed ||
                !same_words)
                fail_msg("seed %llu differs%s ('%s', '%s'):\n%s", (unsigned long long)seed,
                         k ? "" : " with closed forms", wanted.error.message, other.error.message, writer.text);
        }
    }
    print_message("%llu programs, %llu of them fail while they run\n", (unsigned long long)n,
                  (unsigned long long)n_failed);
    assert_true(n_failed < n / 2);
}

/* Allocation fails at a random place, in every tier: the run must report it, or continue without machine code and give
 * the same bits; all memory must be freed. Fresh memory holds NaN and -1. */
static void test_memory_that_ends(void **state)
{
    (void)state;
    static lang_writer writer;
    enum { SHARE = 25, TRIES = 4 };
    whit_cpu cpu;
    whit_error error;
    whit_quat_kernels kernels;
    uint64_t n = (tests_are_brief() ? n_seeds / 20 : n_seeds) / SHARE;
    whit_rng rng = {first_seed + 7};
    whit_cpu_detect(&cpu);
    assert_ok(whit_quat_select(&cpu, NULL, &kernels, &error), error);
    for (uint64_t seed = first_seed; seed < first_seed + n; seed++) {
        lang_random(&writer, seed);
        for (int tier = 0; tier < WHIT_LANG_TIERS; tier++) {
            uint64_t wanted = 0;
            long n_allocations = -1;
            whit_status without = WHIT_OK;
            for (int k = 0; k < TRIES; k++) {
                struct failing failing = {.n_left = k ? (long)whit_rng_below(&rng, (uint64_t)n_allocations) : LONG_MAX};
                whit_allocator allocator = {failing_alloc, failing_free, &failing};
                whit_lang_options options = {.quat = &kernels,
                                             .jit = whit_lang_jit_native(),
                                             .tier = tier,
                                             .max_steps = MAX_STEPS,
                                             .allocator = &allocator};
                whit_lang *lang;
                uint64_t digest = 0;
                whit_status status = whit_lang_open(&options, &lang, &error);
                if (status == WHIT_OK) status = whit_lang_load(lang, "random", writer.text, writer.n, &error);
                if (status == WHIT_OK) status = whit_lang_run(lang, &error);
                if (lang) digest = digest_variables(lang);
                whit_lang_close(lang);
                if (failing.n_live || failing.live_bytes)
                    fail_msg("seed %llu, tier %d, try %d: %ld pieces of memory are left", (unsigned long long)seed,
                             tier, k, failing.n_live);
                if (!k) {
                    wanted = digest;
                    without = status;
                    n_allocations = LONG_MAX - failing.n_left;
                } else if (status != WHIT_ERROR_MEMORY && (status != without || digest != wanted))
                    fail_msg("seed %llu, tier %d, try %d: status %d (%s)", (unsigned long long)seed, tier, k, status,
                             status ? error.message : "");
            }
        }
    }
}

int main(int argc, char **argv)
{
    /* Sessions are opened by the million: freed memory stays with the process for speed. */
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    if (argc > 2) {
        first_seed = strtoull(argv[1], NULL, 10);
        n_seeds = strtoull(argv[2], NULL, 10);
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tiers), cmocka_unit_test(test_memory_that_ends)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
