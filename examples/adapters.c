/* SPDX-License-Identifier: MIT
 * Continues a prompt twice at once, without and with an adapter: adapters MODEL ADAPTER PROMPT. The two continuations
 * are sequences of one session, and the adapter is mounted on the second one. */
#include <stdio.h>
#include <string.h>
#include <whit.h>
#include <whit/names.h>

enum { N_TOKENS_MAX = 256, N_NEW = 24, N_SEQUENCES = 2 };

static int32_t largest(const float *logits, uint32_t n)
{
    int32_t best = 0;
    for (uint32_t i = 1; i < n; i++)
        if (logits[i] > logits[best]) best = (int32_t)i;
    return best;
}

/* Generates N_NEW tokens for both sequences. After the prompt each pass computes one token of either sequence. */
static whit_status continue_both(const whit_model *model, whit_session *session, const int32_t *ids, size_t n,
                                 int32_t written[N_SEQUENCES][N_NEW], whit_error *error)
{
    whit_step_token tokens[N_SEQUENCES * N_TOKENS_MAX];
    for (uint32_t s = 0; s < N_SEQUENCES; s++)
        for (size_t i = 0; i < n; i++) tokens[s * n + i] = (whit_step_token){s, ids[i], i + 1 == n, 0};
    size_t n_tokens = N_SEQUENCES * n;
    for (int i = 0; i < N_NEW; i++) {
        whit_status status = whit_session_step(session, tokens, n_tokens, error);
        if (status != WHIT_OK) return status;
        for (uint32_t s = 0; s < N_SEQUENCES; s++) {
            written[s][i] = largest(whit_session_logits(session, s), whit_model_vocab_size(model));
            tokens[s] = (whit_step_token){s, written[s][i], true, 0};
        }
        n_tokens = N_SEQUENCES;
    }
    return WHIT_OK;
}

static whit_status print_text(const whit_model *model, const int32_t *ids, whit_error *error)
{
    whit_detokenizer *detokenizer;
    const char *text;
    size_t n;
    whit_status status = whit_detokenizer_open(model, true, &detokenizer, error);
    for (int i = 0; status == WHIT_OK && i < N_NEW; i++) {
        status = whit_detokenizer_push(detokenizer, ids[i], &text, &n, error);
        if (status == WHIT_OK) fwrite(text, 1, n, stdout);
    }
    whit_detokenizer_close(detokenizer);
    putchar('\n');
    return status;
}

int main(int argc, char **argv)
{
    if (argc != 4) return fputs("usage: adapters MODEL ADAPTER PROMPT\n", stderr), 2;

    whit_model *model = NULL;
    whit_adapter *adapter = NULL;
    whit_session *session = NULL;
    whit_error error = {0};
    int32_t ids[N_TOKENS_MAX], written[N_SEQUENCES][N_NEW];
    size_t n = 0;
    whit_session_options options = whit_session_options_default();
    options.n_sequences = N_SEQUENCES;
    options.n_ctx_tokens = N_TOKENS_MAX + N_NEW;

    whit_status status = whit_model_open_named(argv[1], NULL, &model, &error);
    if (status == WHIT_OK) status = whit_adapter_open(model, argv[2], &adapter, &error);
    if (status == WHIT_OK) status = whit_session_open(model, &options, &session, &error);
    if (status == WHIT_OK)
        status = whit_tokenize(model, argv[3], strlen(argv[3]), true, false, ids, N_TOKENS_MAX, &n, &error);
    if (status == WHIT_OK) status = whit_session_mount(session, 1, &(whit_mount){adapter, 1}, 1, &error);
    if (status == WHIT_OK) status = continue_both(model, session, ids, n, written, &error);
    for (int s = 0; status == WHIT_OK && s < N_SEQUENCES; s++) {
        printf("%s: %s", s ? "with it" : "without", argv[3]);
        status = print_text(model, written[s], &error);
    }
    whit_session_close(session);
    whit_adapter_close(adapter); /* must follow the close of all sessions that have the adapter mounted */
    whit_model_close(model);
    if (status != WHIT_OK) fprintf(stderr, "adapters: %s\n", error.message);
    return status != WHIT_OK;
}
