/* SPDX-License-Identifier: MIT
 * Compiles any bytes as a model family's program; if it is accepted, the model runs for a few tokens. */
#include "random_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "whit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static whit_ndf_writer *writer;
    static whit_config config;
    char path[64], *text = malloc(size + 1);
    whit_error error;
    whit_model *model = NULL;
    whit_session *session = NULL;
    if (!text) exit(1);
    memcpy(text, data, size);
    text[size] = 0;
    if (!writer && random_model_make(0, &writer, &config, &error) != WHIT_OK) exit(1);
    snprintf(path, sizeof path, "/proc/self/fd/%d", whit_ndf_writer_fd(writer));
    whit_model_options options = whit_model_options_default();
    options.no_cache = true;
    options.family_program = text;
    options.family_name = "fuzz";
    whit_session_options wanted = whit_session_options_default();
    wanted.n_threads = 1;
    wanted.n_ctx_tokens = 64;
    wanted.n_batch_tokens = 8;
    if (whit_model_open(path, &options, &model, &error) == WHIT_OK &&
        whit_session_open(model, &wanted, &session, &error) == WHIT_OK) {
        const whit_step_token tokens[3] = {{.id = 1}, {.id = 2}, {.id = 3, .want_logits = true}};
        if (whit_session_step(session, tokens, 3, &error) == WHIT_OK && !whit_session_logits(session, 0)) abort();
    }
    whit_session_close(session);
    whit_model_close(model);
    free(text);
    return 0;
}
