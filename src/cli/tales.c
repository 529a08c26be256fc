/* SPDX-License-Identifier: MIT */
#include "cli/tales.h"

#include "base/file.h"
#include "whit/names.h"

whit_status cli_tales_open(whit_model **model, whit_error *error)
{
    return whit_model_open_named("tales", NULL, model, error);
}

whit_status cli_tales_write(const char *path, whit_error *error)
{
    size_t size_bytes;
    const void *bytes = whit_builtin_bytes(&size_bytes);
    return whit_write_file(path, bytes, size_bytes, error);
}
