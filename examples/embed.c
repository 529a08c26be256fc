/* SPDX-License-Identifier: MIT
 * How alike two texts are to a model: embed FILE TEXT TEXT.
 *
 * An embedding here is the mean of the hidden states after the final norm, one per token. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <whit.h>

enum { N_TOKENS_MAX = 256 };

/* Adds the hidden states of the text's tokens into mean (width). */
static whit_status embed(const whit_model *model, whit_session *session, const char *text, double *mean,
                         whit_error *error)
{
    int32_t ids[N_TOKENS_MAX];
    whit_step_token tokens[N_TOKENS_MAX];
    size_t n;
    whit_status status = whit_tokenize(model, text, strlen(text), true, false, ids, N_TOKENS_MAX, &n, error);
    for (size_t i = 0; status == WHIT_OK && i < n; i++) tokens[i] = (whit_step_token){0, ids[i], true};
    if (status == WHIT_OK) status = whit_session_truncate(session, 0, 0, error);
    if (status == WHIT_OK) status = whit_session_step(session, tokens, n, error);
    for (size_t i = 0; status == WHIT_OK && i < n; i++)
        for (uint32_t k = 0; k < whit_model_embedding_size(model); k++) mean[k] += whit_session_hidden(session, i)[k];
    return status;
}

int main(int argc, char **argv)
{
    if (argc != 4) return fputs("usage: embed FILE TEXT TEXT\n", stderr), 2;

    whit_model *model = NULL;
    whit_session *session = NULL;
    double *a = NULL, *b = NULL;
    whit_error error = {.message = "out of memory"};
    whit_session_options options = whit_session_options_default();
    options.keep_hidden = true;
    options.n_ctx_tokens = N_TOKENS_MAX;
    options.n_logits = N_TOKENS_MAX; /* most tokens whose states are kept */

    whit_status status = whit_model_open(argv[1], NULL, &model, &error);
    if (status == WHIT_OK) status = whit_session_open(model, &options, &session, &error);
    uint32_t width = status == WHIT_OK ? whit_model_embedding_size(model) : 1;
    a = calloc(width, sizeof *a);
    b = calloc(width, sizeof *b);
    if (!a || !b) status = WHIT_ERROR_MEMORY;
    if (status == WHIT_OK) status = embed(model, session, argv[2], a, &error);
    if (status == WHIT_OK) status = embed(model, session, argv[3], b, &error);
    if (status == WHIT_OK) {
        double aa = 0, bb = 0, ab = 0;
        for (uint32_t k = 0; k < width; k++) {
            aa += a[k] * a[k];
            bb += b[k] * b[k];
            ab += a[k] * b[k];
        }
        printf("cosine similarity %.6f\n", ab / sqrt(aa * bb));
    } else {
        fprintf(stderr, "%s\n", error.message);
    }
    free(a);
    free(b);
    whit_session_close(session);
    whit_model_close(model);
    return status != WHIT_OK;
}
