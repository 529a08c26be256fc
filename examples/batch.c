/* SPDX-License-Identifier: MIT
 * Writes eight continuations of one prompt, all in the same steps of the model: batch MODEL PROMPT. Each continuation
 * is the same as if it were generated alone with its seed. */
#include <stdio.h>
#include <string.h>
#include <whit.h>
#include <whit/names.h>

enum { N = 8 };

int main(int argc, char **argv)
{
    if (argc != 3) return fputs("usage: batch MODEL PROMPT\n", stderr), 2;

    whit_model *model = NULL;
    whit_session *session = NULL;
    whit_sampler *samplers[N] = {NULL};
    whit_generation *generations[N] = {NULL};
    whit_error error;
    int32_t ids[256];
    size_t n_ids = 0, n_open = N, n;
    whit_session_options options = whit_session_options_default();
    options.n_sequences = N;

    whit_status status = whit_model_open_named(argv[1], NULL, &model, &error);
    if (status == WHIT_OK) status = whit_session_open(model, &options, &session, &error);
    if (status == WHIT_OK)
        status = whit_tokenize(model, argv[2], strlen(argv[2]), true, true, ids, 256, &n_ids, &error);
    for (uint32_t i = 0; i < N && status == WHIT_OK; i++) {
        whit_sampler_options sampling = whit_sampler_options_default();
        whit_generate_options generate = whit_generate_options_default();
        sampling.seed = i;
        generate.sequence = i;
        generate.n_tokens = 24;
        status = whit_sampler_open(model, &sampling, &samplers[i], &error);
        if (status == WHIT_OK)
            status = whit_generation_open(session, samplers[i], ids, n_ids, &generate, &generations[i], &error);
    }
    while (status == WHIT_OK && n_open) status = whit_generations_step(session, generations, N, &n_open, &error);
    for (uint32_t i = 0; i < N && status == WHIT_OK; i++) {
        const char *text = whit_generation_text(generations[i], &n);
        printf("%u: %s%.*s\n", i, argv[2], (int)n, text);
    }
    if (status != WHIT_OK) fprintf(stderr, "%s\n", error.message);

    for (uint32_t i = 0; i < N; i++) {
        whit_generation_close(generations[i]);
        whit_sampler_close(samplers[i]);
    }
    whit_session_close(session);
    whit_model_close(model);
    return status != WHIT_OK;
}
