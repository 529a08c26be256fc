/* SPDX-License-Identifier: MIT
 * whit rm: removes a pulled model, and what was converted from it. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/names.h"
#include "cli/verbs.h"
#include "hub/store.h"

static const cli_option options[] = {{0}};
static const int defaults;

static int run(cli_call *call)
{
    const char *words = call->operands[0];
    char pulled[32], converted[32];
    whit_hub_removed removed;
    whit_hub_name name;
    whit_error error;
    if (whit_hub_name_parse(words, &name, &error) != WHIT_OK)
        return cli_fail(call, CLI_USAGE,
                        "%s: is no pulled model, and no other file is removed ('whit list' shows them)", words);
    if (whit_hub_store_remove(NULL, words, &removed, &error) != WHIT_OK) return cli_fail_error(call, &error);
    cli_print(call, "%s: freed %s", words, cli_bytes(removed.pulled_bytes, pulled));
    if (removed.converted_bytes)
        cli_print(call, ", and %s converted from it", cli_bytes(removed.converted_bytes, converted));
    cli_print(call, "\n");
    return CLI_OK;
}

const cli_verb cli_rm_verb = {
    "rm",
    "NAME",
    1,
    1,
    "remove a pulled model",
    "Removes what 'whit pull' brought under this name, and the files that were converted from it, and says how much "
    "that freed. With NAME:FILE only that GGUF model goes. Nothing is asked, and nothing outside the cache is "
    "removed.\n"
    "  whit rm OWNER/NAME",
    {{"OPTIONS", options, 0}},
    sizeof(int),
    &defaults,
    run,
};
