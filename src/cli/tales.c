/* SPDX-License-Identifier: MIT */
#include "cli/tales.h"
#include "base/embed.h"

WHIT_EMBED_FILE("cli_tales", CLI_TALES_FILE);
extern const uint8_t cli_tales_begin[], cli_tales_end[];

whit_status cli_tales_open(whit_model **model, whit_error *error)
{
    size_t size_bytes = (uintptr_t)cli_tales_end - (uintptr_t)cli_tales_begin;
    return whit_model_open_memory(cli_tales_begin, size_bytes, CLI_TALES_NAME, NULL, model, error);
}
