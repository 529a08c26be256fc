/* SPDX-License-Identifier: MIT
 * Measures the speed of batches of texts in the sessions that whit embed opens, and in the same rounds the speed of a
 * prompt of 512 tokens. The first round, in which memory is new, does not count.
 *
 *     bench_embed FILE.ndf [ROUNDS] */
#include "rounds.h"

#include "base/clock.h"

enum { PROMPT_TOKENS = 512, ALL_TOKENS = 4096, LENGTHS_MAX = 3, ROUNDS_MAX = 101 };

struct texts {
    const char *name;
    uint32_t lengths[LENGTHS_MAX];
    whit_embed_text *texts;
    size_t n, n_tokens;
    whit_session *session;
    double shares[ROUNDS_MAX], speeds[ROUNDS_MAX];
};

static void make_texts(struct texts *t, const int32_t *ids)
{
    t->texts = calloc(ALL_TOKENS, sizeof *t->texts);
    if (!t->texts) exit(1);
    uint32_t n_lengths = 0;
    while (n_lengths < LENGTHS_MAX && t->lengths[n_lengths]) n_lengths++;
    for (; t->n_tokens < ALL_TOKENS; t->n++) {
        uint32_t n = t->lengths[t->n % n_lengths];
        t->texts[t->n] = (whit_embed_text){.ids = ids + t->n_tokens, .n_ids = n};
        t->n_tokens += n;
    }
}

/* Returns the nanoseconds of a prompt with logits for its last token only, as whit bench measures it. */
static uint64_t run_prompt(whit_session *session, const int32_t *ids)
{
    static whit_step_token tokens[PROMPT_TOKENS];
    for (size_t i = 0; i < PROMPT_TOKENS; i++)
        tokens[i] = (whit_step_token){.id = ids[i], .want_logits = i == PROMPT_TOKENS - 1, .n_top = 1};
    uint64_t ns = 0;
    for (int i = 0; i < 2; i++) { /* the first step is not counted: it brings the session's memory into the caches */
        const uint64_t start = whit_now_ns();
        must(whit_session_step(session, tokens, PROMPT_TOKENS, &error));
        ns = whit_now_ns() - start;
        must(whit_session_truncate(session, 0, 0, &error));
    }
    return ns;
}

int main(int argc, char **argv)
{
    static struct texts all[] = {{.name = "8", .lengths = {8}},
                                 {.name = "32", .lengths = {32}},
                                 {.name = "256", .lengths = {256}},
                                 {.name = "8, 32, 256", .lengths = {8, 32, 256}}};
    enum { N_ALL = sizeof all / sizeof *all };
    static int32_t ids[ALL_TOKENS + 256];
    static double speeds[ROUNDS_MAX];
    whit_model *model;
    whit_session *prompt;
    if (argc < 2) {
        fprintf(stderr, "usage: bench_embed FILE.ndf [ROUNDS]\n");
        return 2;
    }
    size_t n_rounds = argc > 2 ? (size_t)atoi(argv[2]) : 3;
    if (n_rounds < 1 || n_rounds > ROUNDS_MAX) n_rounds = 3;
    must(whit_model_open(argv[1], NULL, &model, &error));
    whit_session_options options = whit_session_options_default();
    options.n_ctx_tokens = PROMPT_TOKENS;
    must(whit_session_open(model, &options, &prompt, &error));
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) ids[i] = (int32_t)(i * 7919 % 30000);
    float *values = malloc((size_t)ALL_TOKENS * whit_model_embedding_size(model) * sizeof *values);
    if (!values) return 1;
    for (int i = 0; i < N_ALL; i++) {
        make_texts(&all[i], ids);
        uint32_t longest = 0;
        for (int k = 0; k < LENGTHS_MAX; k++) longest = all[i].lengths[k] > longest ? all[i].lengths[k] : longest;
        options = whit_session_options_default();
        options.n_ctx_tokens = longest;
        options.n_sequences = 4096 / longest < 32 ? 4096 / longest : 32;
        options.kv = WHIT_KV_F32;
        options.only_vectors = true;
        must(whit_session_open(model, &options, &all[i].session, &error));
    }
    for (int round = -1; round < (int)n_rounds; round++) {
        for (int i = 0; i < N_ALL; i++) {
            uint64_t ns = run_prompt(prompt, ids), start = whit_now_ns();
            must(whit_embed_texts(all[i].session, all[i].texts, all[i].n, NULL, values, &error));
            const uint64_t texts_ns = whit_now_ns() - start;
            ns += run_prompt(prompt, ids);
            if (round < 0) continue;
            const double whole = 2.0 * PROMPT_TOKENS / (double)ns * 1e9;
            all[i].speeds[round] = (double)all[i].n_tokens / (double)texts_ns * 1e9;
            all[i].shares[round] = all[i].speeds[round] / whole;
            speeds[round] = whole;
        }
    }
    printf("prompt of 512: %.0f tokens/s\n", median(speeds, n_rounds));
    for (int i = 0; i < N_ALL; i++)
        printf("texts of %s: %.0f tokens/s, share %.2f\n", all[i].name, median(all[i].speeds, n_rounds),
               median(all[i].shares, n_rounds));
    return 0;
}
