/* SPDX-License-Identifier: MIT
 * Opens the adapters that --adapter FILE[:SCALE] names, which may be repeated, and mounts them on a session. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/flags.h"

#define AT(member) offsetof(cli_adapter_flags, member)
const cli_option cli_adapter_options[] = {
    {"--adapter", CLI_REPEAT, AT(adapters), "FILE[:SCALE]",
     "Mount an adapter: one of the model's own by name, else a file; its strength is 1 without SCALE. "
     "May be given again: they add up."},
    {0},
};
#undef AT

/* Splits the scale off the end of a name: "a:0.5" becomes "a" and 0.5. If the text after the last colon is not a
 * number, it stays part of the name, and the scale is 1. Returns false if the number is too large or not finite. */
static bool take_scale(char *name, float *scale)
{
    char *colon = strrchr(name, ':'), *end;
    *scale = 1;
    if (!colon || colon == name || !colon[1]) return true;
    errno = 0;
    float value = strtof(colon + 1, &end);
    if (*end) return true;
    if (errno || !isfinite(value)) return false;
    *scale = value;
    *colon = 0;
    return true;
}

static int open_one(cli_call *call, const char *text, const whit_model *model, cli_adapters *adapters)
{
    whit_error error;
    char *name = strdup(text);
    float scale;
    if (!name) return cli_fail(call, CLI_LIMIT, "not enough memory for the name of an adapter");
    int status = CLI_OK;
    if (!take_scale(name, &scale)) {
        status =
            cli_fail(call, CLI_USAGE, "--adapter %s: the scale after ':' is not a finite number, as in FILE:0.5", text);
    } else if (whit_adapter_open(model, name, &adapters->opened[adapters->n], &error) != WHIT_OK) {
        status = cli_fail_error(call, &error);
    } else {
        const void *address;
        size_t size_bytes;
        const char *path;
        whit_adapter *adapter = adapters->opened[adapters->n];
        if (whit_adapter_mapping(adapter, &address, &size_bytes, &path)) cli_guard_file(address, size_bytes, path);
        adapters->mounts[adapters->n++] = (whit_mount){adapter, scale};
    }
    free(name);
    return status;
}

int cli_open_adapters(cli_call *call, const cli_adapter_flags *flags, const whit_model *model, cli_adapters *adapters)
{
    if (flags->adapters.n > WHIT_MOUNTS_MAX)
        return cli_fail(call, CLI_USAGE, "--adapter: at most %d adapters can be mounted at once", WHIT_MOUNTS_MAX);
    int status = CLI_OK;
    for (size_t i = 0; status == CLI_OK && i < flags->adapters.n; i++)
        status = open_one(call, flags->adapters.items[i], model, adapters);
    return status;
}

void cli_close_adapters(cli_adapters *adapters)
{
    for (size_t i = 0; i < adapters->n; i++) whit_adapter_close(adapters->opened[i]);
    *adapters = (cli_adapters){0};
}
