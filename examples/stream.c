/* SPDX-License-Identifier: MIT
 * Writes two continuations of one prompt, step by step, and prints both: stream MODEL PROMPT.
 *
 * whit_generate does the same inside. This form is for programs that decide between tokens. One step serves any number
 * of sequences, and each gets the text that it would get alone. */
#include <stdio.h>
#include <string.h>
#include <whit.h>
#include <whit/names.h>

enum { N_SEQUENCES = 2, N_TOKENS = 32, N_PROMPT_MAX = 256 };

struct stream {
    whit_sampler *sampler;
    whit_detokenizer *detokenizer;
    char text[4096];
    size_t text_bytes;
};

/* Appends the text that the token makes final: it may be empty or several characters. Text that does not fit is
 * dropped. */
static whit_status append(struct stream *stream, int32_t id, whit_error *error)
{
    const char *text;
    size_t text_bytes;
    whit_status status = whit_detokenizer_push(stream->detokenizer, id, &text, &text_bytes, error);
    if (status != WHIT_OK || text_bytes > sizeof stream->text - stream->text_bytes) return status;
    memcpy(stream->text + stream->text_bytes, text, text_bytes);
    stream->text_bytes += text_bytes;
    return WHIT_OK;
}

static whit_status generate(whit_session *session, struct stream *streams, const int32_t *prompt, size_t n_prompt,
                            whit_error *error)
{
    /* The first step has the prompt of every sequence; only each prompt's last token needs logits. */
    whit_step_token tokens[N_SEQUENCES * N_PROMPT_MAX];
    whit_status status = WHIT_OK;
    size_t n = 0;
    for (uint32_t s = 0; s < N_SEQUENCES; s++)
        for (size_t i = 0; i < n_prompt && status == WHIT_OK; i++) {
            tokens[n++] = (whit_step_token){s, prompt[i], i + 1 == n_prompt};
            status = append(&streams[s], prompt[i], error);
        }

    for (int step = 0; step < N_TOKENS && status == WHIT_OK; step++) {
        status = whit_session_step(session, tokens, n, error);
        n = 0;
        for (uint32_t s = 0; s < N_SEQUENCES && status == WHIT_OK; s++) {
            int32_t id;
            status = whit_sampler_pick(streams[s].sampler, whit_session_logits(session, s), &id, error);
            if (status == WHIT_OK) status = append(&streams[s], id, error);
            tokens[n++] = (whit_step_token){s, id, true};
        }
    }
    return status;
}

int main(int argc, char **argv)
{
    if (argc != 3) return fputs("usage: stream MODEL PROMPT\n", stderr), 2;

    whit_model *model = NULL;
    whit_session *session = NULL;
    struct stream streams[N_SEQUENCES] = {0};
    whit_error error;
    whit_session_options options = whit_session_options_default();
    options.n_sequences = N_SEQUENCES;

    whit_status status = whit_model_open_named(argv[1], NULL, &model, &error);
    if (status == WHIT_OK) status = whit_session_open(model, &options, &session, &error);
    for (uint32_t s = 0; s < N_SEQUENCES && status == WHIT_OK; s++) {
        whit_sampler_options sampling = whit_sampler_options_default();
        sampling.seed = s;
        sampling.temperature = 1.2f;
        status = whit_sampler_open(model, &sampling, &streams[s].sampler, &error);
        if (status == WHIT_OK) status = whit_detokenizer_open(model, true, &streams[s].detokenizer, &error);
    }
    int32_t ids[N_PROMPT_MAX];
    size_t n_ids = 0;
    if (status == WHIT_OK)
        status = whit_tokenize(model, argv[2], strlen(argv[2]), true, true, ids, N_PROMPT_MAX, &n_ids, &error);
    if (status == WHIT_OK) status = generate(session, streams, ids, n_ids, &error);
    for (uint32_t s = 0; s < N_SEQUENCES && status == WHIT_OK; s++)
        printf("%u: %.*s\n", s, (int)streams[s].text_bytes, streams[s].text);
    if (status != WHIT_OK) fprintf(stderr, "%s\n", error.message);

    for (uint32_t s = 0; s < N_SEQUENCES; s++) {
        whit_detokenizer_close(streams[s].detokenizer);
        whit_sampler_close(streams[s].sampler);
    }
    whit_session_close(session);
    whit_model_close(model);
    return status != WHIT_OK;
}
