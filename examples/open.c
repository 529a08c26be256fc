/* SPDX-License-Identifier: MIT
 * Opens a model and says what it is: open MODEL. */
#include <stdio.h>
#include <whit.h>
#include <whit/names.h>

int main(int argc, char **argv)
{
    if (argc != 2) return fputs("usage: open MODEL\n", stderr), 2;

    whit_model *model;
    whit_error error;
    if (whit_model_open_named(argv[1], NULL, &model, &error) != WHIT_OK)
        return fprintf(stderr, "%s\n", error.message), 1;

    const char *name = whit_model_metadata(model, "general.name");
    printf("%s: vocabulary %u, width %u, trained on %u tokens of context\n", name ? name : "unnamed",
           whit_model_vocab_size(model), whit_model_embedding_size(model), whit_model_context_size(model));
    printf("identity ");
    for (int i = 0; i < 32; i++) printf("%02x", whit_model_identity(model)[i]);
    printf("\n");

    whit_model_close(model);
    return 0;
}
