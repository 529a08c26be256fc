/* SPDX-License-Identifier: MIT */
#include "cli/doctor_tune.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "bench/bench.h"

#define TUNE_SHAPE "tinyllama-1.1b:t2"
enum { N_ROUNDS = 7, N_CTX = 1280, ANSWER_PROMPT = 192, ANSWER_TOKENS = 16, LONG_PROMPT = 1024, COLUMN_STEPS = 6 };
enum { USUAL_GUESSES = 7 };

/* For each setting: the work by which it is measured, a description of its default, and the values to compare with
 * it. */
static const struct {
    const char *work, *usual;
    cli_tune_candidates candidates; /* not for threads, whose values depend on the processor */
} settings[CLI_TUNED_COUNT] = {
    [CLI_TUNED_THREADS] = {"a prompt of 192 tokens and 16 of an answer", "one per core", {.n = 0}},
    [CLI_TUNED_BATCH] = {"a prompt of 1,024 tokens", "512", {{64, 128, 256, 1024}, 4}},
    [CLI_TUNED_DRAFT] = {"steps with guesses of which 80 % are right", "7", {{1, 2, 3, 5}, 4}},
};

/* ---- measuring ------------------------------------------------------------------------------------- */

struct tuning {
    whit_model *model;
    const cli_profile *chosen; /* profile with the settings that were chosen so far */
    whit_error error;
    whit_status status;
};

static whit_status open_session(struct tuning *t, cli_tuned which, uint32_t value, whit_session **session)
{
    whit_session_options options = whit_session_options_default();
    options.n_ctx_tokens = N_CTX;
    options.n_threads = which == CLI_TUNED_THREADS ? value : t->chosen->values[CLI_TUNED_THREADS];
    options.n_batch_tokens = which == CLI_TUNED_BATCH ? value : t->chosen->values[CLI_TUNED_BATCH];
    options.n_logits = 1 + USUAL_GUESSES;
    options.cpu = getenv("WHIT_CPU");
    options.cancel = cli_cancelled();
    return whit_session_open(t->model, &options, session, &t->error);
}

/* Runs n tokens in one step; logits are computed for the last n_wanted tokens. */
static whit_status feed_tokens(struct tuning *t, whit_session *session, uint32_t n, uint32_t n_wanted)
{
    static whit_step_token tokens[LONG_PROMPT];
    for (uint32_t i = 0; i < n; i++)
        tokens[i] = (whit_step_token){.id = (int32_t)(100 + 7 * i % 1000), .want_logits = i + n_wanted >= n};
    return whit_session_step(session, tokens, n, &t->error);
}

/* Returns the expected number of tokens that a step with k guesses gives, if each guess is right with probability
 * 0.8. */
static double expect_tokens(uint32_t k)
{
    double n = 1, all_right = 1;
    for (uint32_t i = 0; i < k; i++) n += all_right *= 0.8;
    return n;
}

static whit_status do_work(struct tuning *t, whit_session *session, cli_tuned which, uint32_t value, double *seconds)
{
    const uint32_t k = value ? value : USUAL_GUESSES;
    WHIT_TRY(feed_tokens(t, session, 8, 1)); /* not measured; warms up pages and threads */
    const uint64_t start_ns = whit_now_ns();
    double n_units = 1;
    switch (which) {
    case CLI_TUNED_BATCH: WHIT_TRY(feed_tokens(t, session, LONG_PROMPT, 1)); break;
    case CLI_TUNED_DRAFT:
        for (uint32_t i = 0; i < COLUMN_STEPS; i++) WHIT_TRY(feed_tokens(t, session, 1 + k, 1 + k));
        n_units = expect_tokens(k);
        break;
    default:
        WHIT_TRY(feed_tokens(t, session, ANSWER_PROMPT, 1));
        for (uint32_t i = 0; i < ANSWER_TOKENS; i++) WHIT_TRY(feed_tokens(t, session, 1, 1));
    }
    *seconds = (double)(whit_now_ns() - start_ns) * 1e-9 / n_units;
    return WHIT_OK;
}

static double measure_work(void *user, cli_tuned which, uint32_t value)
{
    struct tuning *t = user;
    whit_session *session = NULL;
    double seconds = -1;
    t->status = open_session(t, which, value, &session);
    if (t->status == WHIT_OK) t->status = do_work(t, session, which, value, &seconds);
    whit_session_close(session);
    return t->status == WHIT_OK ? seconds : -1;
}

/* Lists the numbers of threads to measure: all up to the number of logical processors or, if these are too many, evenly
 * spread ones; without the default. */
static cli_tune_candidates list_threads(const cli_machine *machine)
{
    cli_tune_candidates list = {.n = 0};
    whit_cpu cpu;
    whit_cpu_detect(&cpu);
    const uint32_t n_wanted = sizeof list.values / sizeof *list.values, n = cpu.n_logical;
    for (uint32_t i = 1; i <= n_wanted; i++) {
        uint32_t value = n <= n_wanted ? i : n * i / n_wanted;
        if (value >= 1 && value <= n && value != machine->n_threads) list.values[list.n++] = value;
    }
    return list;
}

static int tune_all(cli_call *call, const cli_machine *machine, struct tuning *t, cli_profile *profile)
{
    for (int i = 0; i < CLI_TUNED_COUNT; i++) {
        cli_tune_candidates candidates = i == CLI_TUNED_THREADS ? list_threads(machine) : settings[i].candidates;
        cli_progress(NULL, "measuring", (double)i / CLI_TUNED_COUNT);
        if (!cli_tune_choose(measure_work, t, (cli_tuned)i, &candidates, N_ROUNDS, profile))
            return t->status == WHIT_ERROR_CANCELLED ? CLI_INTERRUPTED : cli_fail_error(call, &t->error);
    }
    return CLI_OK;
}

int cli_doctor_tune(cli_call *call, json_t *report)
{
    cli_profile profile = {.values = {0}};
    struct tuning t = {.chosen = &profile};
    bench_model shape = {.name = ""};
    cli_machine machine;
    char path[WHIT_CACHE_PATH_BYTES], folder[WHIT_CACHE_PATH_BYTES];
    whit_error error;
    cli_machine_find(&machine);
    whit_status status = whit_cache_folder(NULL, folder, &error);
    if (status == WHIT_OK) status = cli_profile_name(NULL, &machine, path, &error);
    if (status == WHIT_OK) status = bench_model_shape(TUNE_SHAPE, cli_progress, &shape, &error);
    if (status == WHIT_OK) status = whit_model_open(shape.path, NULL, &t.model, &error);
    int result = status == WHIT_OK ? tune_all(call, &machine, &t, &profile) : cli_fail_error(call, &error);
    if (result == CLI_OK && cli_profile_write(path, &machine, &profile, &error) != WHIT_OK)
        result = cli_fail_error(call, &error);
    whit_model_close(t.model);
    bench_model_free(&shape);
    json_t *list = json_object();
    for (int i = 0; result == CLI_OK && i < CLI_TUNED_COUNT; i++)
        json_object_set_new(list, cli_tuned_name((cli_tuned)i),
                            json_pack("{s:I, s:f, s:s}", "value", (json_int_t)profile.values[i], "gain",
                                      profile.gains[i], "measured_by", settings[i].work));
    json_object_set_new(report, "tuned", list);
    return result;
}

/* ---- reports --------------------------------------------------------------------------------------- */

void cli_doctor_profile(json_t *report)
{
    static const char *const states[] = {"absent", "in use", "stale", "damaged"};
    cli_machine machine;
    cli_profile profile;
    char path[WHIT_CACHE_PATH_BYTES];
    whit_error error;
    cli_machine_find(&machine);
    if (cli_profile_name(NULL, &machine, path, &error) != WHIT_OK) return;
    cli_profile_state state = cli_profile_read(path, &machine, &profile);
    json_t *object = json_pack("{s:o, s:s}", "file", cli_json_path(path), "state",
                               cli_profile_is_off() ? "switched off" : states[state]);
    for (int i = 0; i < CLI_TUNED_COUNT; i++)
        json_object_set_new(object, cli_tuned_name((cli_tuned)i), json_integer(profile.values[i]));
    json_object_set_new(report, "profile", object);
}

void cli_doctor_print_profile(cli_call *call, const json_t *report)
{
    const json_t *tuned = json_object_get(report, "tuned"), *profile = json_object_get(report, "profile");
    const char *state = json_string_value(json_object_get(profile, "state"));
    if (!state) return;
    cli_print(call, "%-12s %s", "profile", state);
    if (!strcmp(state, "absent")) cli_print(call, "; 'whit doctor --tune' measures one");
    for (int i = 0; !strcmp(state, "in use") && i < CLI_TUNED_COUNT; i++) {
        json_int_t value = json_integer_value(json_object_get(profile, cli_tuned_name((cli_tuned)i)));
        cli_print(call, "%s %s ", i ? "," : ":", cli_tuned_name((cli_tuned)i));
        if (value)
            cli_print(call, "%lld", (long long)value);
        else
            cli_print(call, "%s", settings[i].usual);
    }
    cli_print(call, "\n");
    for (int i = 0; tuned && i < CLI_TUNED_COUNT; i++) {
        const json_t *one = json_object_get(tuned, cli_tuned_name((cli_tuned)i));
        json_int_t value = json_integer_value(json_object_get(one, "value"));
        if (value)
            cli_print(call, "%-12s %s %lld instead of %s: %.2f times as fast, by %s\n", "",
                      cli_tuned_name((cli_tuned)i), (long long)value, settings[i].usual,
                      json_real_value(json_object_get(one, "gain")), settings[i].work);
        else
            cli_print(call, "%-12s %s %s stays: nothing was 3 %% faster, by %s\n", "", cli_tuned_name((cli_tuned)i),
                      settings[i].usual, settings[i].work);
    }
}
