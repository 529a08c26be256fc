/* SPDX-License-Identifier: MIT
 * Prints the cosine similarity of two texts by the model's hidden states: embed MODEL TEXT TEXT. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <whit.h>
#include <whit/names.h>

enum { N_TOKENS_MAX = 256 };

static whit_status embed(const whit_model *model, whit_session *session, const char *text, float *values,
                         whit_error *error)
{
    int32_t ids[N_TOKENS_MAX];
    size_t n;
    whit_status status = whit_tokenize(model, text, strlen(text), true, false, ids, N_TOKENS_MAX, &n, error);
    return status == WHIT_OK ? whit_embed(session, ids, n, NULL, values, error) : status;
}

int main(int argc, char **argv)
{
    if (argc != 4) return fputs("usage: embed MODEL TEXT TEXT\n", stderr), 2;

    whit_model *model = NULL;
    whit_session *session = NULL;
    whit_error error;
    float *values = NULL;
    whit_session_options options = whit_session_options_default();
    options.keep_hidden = true;
    options.n_ctx_tokens = N_TOKENS_MAX;
    options.n_logits = N_TOKENS_MAX; /* maximum number of tokens per step whose states are kept */

    whit_status status = whit_model_open_named(argv[1], NULL, &model, &error);
    if (status == WHIT_OK) status = whit_session_open(model, &options, &session, &error);
    uint32_t width = status == WHIT_OK ? whit_model_embedding_size(model) : 1;
    values = (float *)calloc(2 * (size_t)width, sizeof *values);
    if (!values) return fputs("out of memory\n", stderr), 1;
    if (status == WHIT_OK) status = embed(model, session, argv[2], values, &error);
    if (status == WHIT_OK) status = embed(model, session, argv[3], values + width, &error);
    if (status == WHIT_OK) {
        double cosine = 0; /* both vectors have length 1, so their dot product is the cosine */
        for (uint32_t k = 0; k < width; k++) cosine += (double)values[k] * (double)values[width + k];
        printf("cosine similarity %.6f\n", cosine);
    } else {
        fprintf(stderr, "%s\n", error.message);
    }
    free(values);
    whit_session_close(session);
    whit_model_close(model);
    return status != WHIT_OK;
}
