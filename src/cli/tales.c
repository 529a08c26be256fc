/* SPDX-License-Identifier: MIT */
#include "cli/tales.h"
#include "base/embed.h"
#include "base/file.h"

WHIT_EMBED_FILE("cli_tales", CLI_TALES_FILE);
extern const uint8_t cli_tales_begin[], cli_tales_end[];

static size_t tales_bytes(void)
{
    return (uintptr_t)cli_tales_end - (uintptr_t)cli_tales_begin;
}

whit_status cli_tales_open(whit_model **model, whit_error *error)
{
    return whit_model_open_memory(cli_tales_begin, tales_bytes(), CLI_TALES_NAME, NULL, model, error);
}

whit_status cli_tales_write(const char *path, whit_error *error)
{
    return whit_write_file(path, cli_tales_begin, tales_bytes(), error);
}
