/* SPDX-License-Identifier: MIT */
#include "cli/names.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hub/store.h"

_Static_assert(CLI_PATH_BYTES == WHIT_CACHE_PATH_BYTES, "paths of the store fit");

whit_status cli_find_model(const char *words, char path[CLI_PATH_BYTES], whit_error *error)
{
    whit_hub_name name;
    bool is_absent = access(words, F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR);
    if (is_absent && whit_hub_name_parse(words, &name, NULL) == WHIT_OK)
        return whit_hub_store_path(NULL, words, path, error);
    /* What is no possible name is opened as it stands, and then has its own reason why not. */
    if (snprintf(path, CLI_PATH_BYTES, "%s", words) >= CLI_PATH_BYTES)
        return whit_fail(error, WHIT_ERROR_IO, "%.200s...: the path is too long", words);
    return WHIT_OK;
}

const char *cli_bytes(uint64_t n_bytes, char text[32])
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB"};
    double n = (double)n_bytes;
    size_t unit = 0;
    while (n >= 999.5 && unit + 1 < sizeof units / sizeof *units) {
        n /= 1000;
        unit++;
    }
    snprintf(text, 32, "%.*f %s", unit && n < 99.95 ? 1 : 0, n, units[unit]);
    return text;
}
