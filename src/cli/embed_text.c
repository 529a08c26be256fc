/* SPDX-License-Identifier: MIT */
#include "cli/embed_text.h"

#include <stdlib.h>
#include <string.h>

#include "cli/flags.h"
#include "cli/parts.h"

/* Counts a prompt's tokens as sentence-transformers does: tokenizes the prompt alone with special tokens, and does not
 * count a special token at its end. Returns an exit status. */
static int count_prompt(cli_call *call, const whit_model *model, const char *prompt, size_t *n_prompt)
{
    int32_t *ids = NULL;
    int status = cli_tokenize(call, model, prompt, strlen(prompt), true, false, &ids, n_prompt);
    const int32_t last = status == CLI_OK && *n_prompt ? ids[*n_prompt - 1] : -1;
    free(ids);
    if (last >= 0 && whit_tokenizer_token_flags(cli_model_tokenizer(model), last) & WHIT_TOKEN_SPECIAL) --*n_prompt;
    return status;
}

int cli_embed_text(cli_call *call, const whit_model *model, const char *prompt, const char *text, size_t n_bytes,
                   whit_embed_text *made)
{
    const size_t n_prompt = prompt ? strlen(prompt) : 0;
    char *whole = malloc(n_prompt + n_bytes + 1);
    int32_t *ids = NULL;
    *made = (whit_embed_text){0};
    if (!whole) return cli_fail(call, CLI_LIMIT, "not enough memory for a text");
    if (n_prompt) memcpy(whole, prompt, n_prompt);
    memcpy(whole + n_prompt, text, n_bytes);
    int status = cli_tokenize(call, model, whole, n_prompt + n_bytes, true, false, &ids, &made->n_ids);
    made->ids = ids;
    free(whole);
    if (status == CLI_OK && n_prompt && !whit_model_pools_prompt(model))
        status = count_prompt(call, model, prompt, &made->n_prompt);
    return status;
}

void cli_embed_text_free(whit_embed_text *text)
{
    free((int32_t *)(uintptr_t)text->ids);
    *text = (whit_embed_text){0};
}
