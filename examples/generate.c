/* SPDX-License-Identifier: MIT
 * Continues a text in one call: generate MODEL PROMPT. */
#include <stdio.h>
#include <string.h>
#include <whit.h>
#include <whit/names.h>

/* Receives text as soon as it is final. Returning false would stop the generation. */
static bool print(void *user, const char *text, size_t text_bytes)
{
    (void)user;
    return fwrite(text, 1, text_bytes, stdout) == text_bytes && fflush(stdout) == 0;
}

int main(int argc, char **argv)
{
    if (argc != 3) return fputs("usage: generate MODEL PROMPT\n", stderr), 2;

    whit_model *model = NULL;
    whit_session *session = NULL;
    whit_sampler *sampler = NULL;
    whit_error error;
    whit_sampler_options sampling = whit_sampler_options_default();
    sampling.seed = 42; /* the same seed, model and prompt give the same text on every machine */

    whit_status status = whit_model_open_named(argv[1], NULL, &model, &error);
    if (status == WHIT_OK) status = whit_session_open(model, NULL, &session, &error);
    if (status == WHIT_OK) status = whit_sampler_open(model, &sampling, &sampler, &error);

    int32_t ids[1024];
    size_t n_ids;
    if (status == WHIT_OK)
        status = whit_tokenize(model, argv[2], strlen(argv[2]), true, true, ids, 1024, &n_ids, &error);
    if (status == WHIT_OK) {
        whit_generate_options options = whit_generate_options_default();
        whit_generate_result result = whit_generate_result_default();
        options.n_tokens = 64;
        options.on_text = print;
        printf("%s", argv[2]);
        status = whit_generate(session, sampler, ids, n_ids, &options, &result, &error);
        if (status == WHIT_OK)
            printf("\n[%u tokens, %.0f per second]\n", result.n_generated_tokens,
                   1e9 * result.n_generated_tokens / (double)(result.generate_ns + 1));
    }
    if (status != WHIT_OK) fprintf(stderr, "%s\n", error.message);

    whit_sampler_close(sampler);
    whit_session_close(session);
    whit_model_close(model);
    return status != WHIT_OK;
}
