/* SPDX-License-Identifier: MIT
 * Tests the machine's profile: the settings found for scripted costs, and outdated or damaged files. */
#include "test_folder.h"

#include <math.h>

#include "cli/profile.h"

static const cli_machine machine = {
    .cpu = "Some CPU (R) 5 @ 3 GHz", .isa = "avx2", .version = "1.2.3", .n_cores = 4, .n_threads = 4, .memory_gb = 16};

/* ---- choices --------------------------------------------------------------------------------------- */

/* Seconds for each value (0 is the default), changed at random by up to the share `noise`. */
struct costs {
    double seconds[9];
    double noise;
    uint32_t n_calls, fails_at;
};

static double scripted_cost(void *user, cli_tuned which, uint32_t value)
{
    struct costs *c = user;
    (void)which;
    if (++c->n_calls == c->fails_at) return -1;
    uint32_t hash = c->n_calls * 2654435761u;
    return c->seconds[value] * (1 + c->noise * ((hash >> 8) % 1000 / 500.0 - 1));
}

static const cli_tune_candidates candidates = {.values = {1, 2, 4, 8}, .n = 4};

static void a_bad_default_is_found(void **state)
{
    (void)state;
    struct costs c = {.seconds = {1.0, 1.9, 1.1, [4] = 0.6, [8] = 0.7}, .noise = 0.1};
    cli_profile profile = {.values = {0}};
    assert_true(cli_tune_choose(scripted_cost, &c, CLI_TUNED_THREADS, &candidates, 7, &profile));
    assert_int_equal(profile.values[CLI_TUNED_THREADS], 4);
    assert_true(fabs(profile.gains[CLI_TUNED_THREADS] - 1 / 0.6) < 0.2);
    assert_int_equal(c.n_calls, 7 * 5);
}

static void a_good_default_stays(void **state)
{
    (void)state;
    for (uint32_t seed = 0; seed < 200; seed++) {
        struct costs c = {.seconds = {1, 1, 1.02, [4] = 1, [8] = 0.99}, .noise = 0.01, .n_calls = seed * 1000};
        cli_profile profile = {.values = {9, 9, 9}};
        assert_true(cli_tune_choose(scripted_cost, &c, CLI_TUNED_BATCH, &candidates, 7, &profile));
        assert_int_equal(profile.values[CLI_TUNED_BATCH], 0);
        assert_true(profile.gains[CLI_TUNED_BATCH] == 1);
        assert_int_equal(profile.values[CLI_TUNED_DRAFT], 9); /* settings without measurements keep their value */
    }
}

/* On the measured machine, the chosen value must be at least 0.97 times as fast as the default. */
static void no_choice_is_slower_than_the_default(void **state)
{
    (void)state;
    uint32_t n_changed = 0;
    for (uint32_t seed = 0; seed < 500; seed++) {
        struct costs c = {.seconds = {1}, .noise = 0.15, .n_calls = seed * 977};
        for (size_t i = 0; i < candidates.n; i++)
            c.seconds[candidates.values[i]] = 0.9 + (seed * 7 + i * 13) % 40 / 100.0;
        cli_profile profile = {.values = {0}};
        assert_true(cli_tune_choose(scripted_cost, &c, CLI_TUNED_THREADS, &candidates, 21, &profile));
        uint32_t chosen = profile.values[CLI_TUNED_THREADS];
        n_changed += chosen != 0;
        if (c.seconds[chosen] > 1 / 0.97) fail_msg("seed %u: %u takes %.2f", seed, chosen, c.seconds[chosen]);
    }
    assert_in_range(n_changed, 20, 480);
}

static void a_failed_measurement_chooses_nothing(void **state)
{
    (void)state;
    for (uint32_t at = 1; at <= 8; at++) {
        struct costs c = {.seconds = {1, 0.1, 0.1, [4] = 0.1, [8] = 0.1}, .fails_at = at};
        cli_profile profile = {.values = {0}};
        assert_false(cli_tune_choose(scripted_cost, &c, CLI_TUNED_DRAFT, &candidates, 3, &profile));
        assert_int_equal(profile.values[CLI_TUNED_DRAFT], 0);
    }
}

/* ---- files ----------------------------------------------------------------------------------------- */

static void a_profile_comes_back(void **state)
{
    (void)state;
    whit_error error;
    cli_profile written = {.values = {2, 1024, 0}, .gains = {1.25, 1.031, 1}}, read;
    char path[WHIT_CACHE_PATH_BYTES];
    assert_ok(cli_profile_name(in_folder("cache"), &machine, path, &error), error);
    assert_non_null(strstr(path, "/profile-Some-CPU-R-5-3-GHz-avx2-4-4-16g.txt"));
    assert_int_equal(cli_profile_read(path, &machine, &read), CLI_PROFILE_ABSENT);
    snprintf(path, sizeof path, "%s", in_folder("profile.txt"));
    assert_ok(cli_profile_write(path, &machine, &written, &error), error);
    assert_int_equal(cli_profile_read(path, &machine, &read), CLI_PROFILE_READ);
    for (int i = 0; i < CLI_TUNED_COUNT; i++) {
        assert_int_equal(read.values[i], written.values[i]);
        assert_true(read.gains[i] == written.gains[i]);
    }
}

static void another_machine_or_version_makes_it_stale(void **state)
{
    (void)state;
    whit_error error;
    cli_profile written = {.values = {2, 0, 3}, .gains = {1.25, 1, 1.5}}, read;
    cli_machine others[5];
    for (int i = 0; i < 5; i++) others[i] = machine;
    snprintf(others[0].version, sizeof others[0].version, "1.2.4");
    snprintf(others[1].cpu, sizeof others[1].cpu, "Another CPU");
    snprintf(others[2].isa, sizeof others[2].isa, "avx512");
    others[3].n_cores = 2;
    others[4].memory_gb = 8;
    const char *path = in_folder("profile.txt");
    assert_ok(cli_profile_write(path, &machine, &written, &error), error);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(cli_profile_read(path, &others[i], &read), CLI_PROFILE_STALE);
        for (int k = 0; k < CLI_TUNED_COUNT; k++) assert_int_equal(read.values[k], 0);
    }
}

static void write_text(const char *path, const char *text, size_t n)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

static void damage_is_noticed(void **state)
{
    (void)state;
    whit_error error;
    cli_profile written = {.values = {2, 0, 3}, .gains = {1.25, 1, 1.5}}, read;
    char text[2048], changed[2048];
    const char *path = in_folder("profile.txt");
    assert_ok(cli_profile_write(path, &machine, &written, &error), error);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t n = fread(text, 1, sizeof text, file);
    fclose(file);
    assert_in_range(n, 100, sizeof text - 1);
    for (size_t i = 0; i < n; i++) { /* every byte, and every length */
        memcpy(changed, text, n);
        changed[i] ^= 1;
        write_text(path, changed, n);
        assert_int_equal(cli_profile_read(path, &machine, &read), CLI_PROFILE_DAMAGED);
        write_text(path, text, i);
        assert_int_equal(cli_profile_read(path, &machine, &read), CLI_PROFILE_DAMAGED);
    }
    memset(changed, 'x', sizeof changed);
    write_text(path, changed, sizeof changed);
    assert_int_equal(cli_profile_read(path, &machine, &read), CLI_PROFILE_DAMAGED);
    written.values[CLI_TUNED_THREADS] = 5000; /* undamaged, but no possible number of threads */
    assert_ok(cli_profile_write(path, &machine, &written, &error), error);
    assert_int_equal(cli_profile_read(path, &machine, &read), CLI_PROFILE_DAMAGED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bad_default_is_found),
        cmocka_unit_test(a_good_default_stays),
        cmocka_unit_test(no_choice_is_slower_than_the_default),
        cmocka_unit_test(a_failed_measurement_chooses_nothing),
        cmocka_unit_test(a_profile_comes_back),
        cmocka_unit_test(another_machine_or_version_makes_it_stale),
        cmocka_unit_test(damage_is_noticed),
    };
    return cmocka_run_group_tests_name("profile", tests, make_folder, remove_folder);
}
