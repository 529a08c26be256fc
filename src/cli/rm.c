/* SPDX-License-Identifier: MIT
 * Implements whit rm, which removes a pulled model and its converted copies. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "cli/names.h"
#include "cli/verbs.h"
#include "hub/store.h"
#include "format/conversion_cache.h"

static const cli_option options[] = {{0}};
static const int defaults;

/* Removes the converted copies whose source is `words` or which are at the path `words`. *freed_bytes and *n_removed:
 * the sums over the removed copies. If a copy cannot be removed, the others still are; the status is that of the last
 * failure. */
static whit_status remove_copies(const char *words, uint64_t *freed_bytes, size_t *n_removed, whit_error *error)
{
    whit_cached *entries;
    size_t n;
    *freed_bytes = *n_removed = 0;
    WHIT_TRY(whit_cache_list(NULL, &entries, &n, error));
    char *real = realpath(words, NULL);
    whit_status status = WHIT_OK;
    for (size_t i = 0; i < n; i++) {
        bool same = strcmp(entries[i].source, words) == 0 || (real && strcmp(entries[i].source, real) == 0) ||
            (real && strcmp(entries[i].path, real) == 0);
        if (!same) continue;
        if (whit_cache_remove(&entries[i])) {
            *freed_bytes += entries[i].size_bytes;
            ++*n_removed;
        } else if (errno == EWOULDBLOCK) { /* another process holds the lock of the copy */
            status =
                whit_fail(error, WHIT_ERROR_IO,
                          "%s: another process uses the converted copy; try again when it has ended", entries[i].path);
        } else if (errno != ENOENT) { /* otherwise another process has removed the copy */
            status = whit_fail_errno(error, entries[i].path, "remove");
        }
    }
    free(real);
    free(entries);
    return status;
}

static int run_rm(cli_call *call)
{
    uint64_t freed_bytes;
    size_t n_removed;
    const char *words = call->operands[0];
    char pulled[32], converted[32], copies[64] = "a copy that was";
    whit_hub_removed removed;
    whit_hub_name name;
    whit_error error;
    whit_status status = remove_copies(words, &freed_bytes, &n_removed, &error);
    if (n_removed > 1) snprintf(copies, sizeof copies, "%zu copies that were", n_removed);
    if (n_removed)
        cli_print(call, "%s: freed %s, %s converted from it%s\n", words, cli_bytes(freed_bytes, converted), copies,
                  whit_path_exists(words) ? "; the model itself stays" : "");
    if (status != WHIT_OK) return cli_fail_error(call, &error);
    if (n_removed) return CLI_OK;
    if (cli_looks_like_path(words) || whit_hub_name_parse(words, &name, &error) != WHIT_OK)
        return cli_fail(
            call, CLI_USAGE,
            "%s: is not a pulled model and has no converted copy; rm removes nothing else ('whit list' shows "
            "what can be)",
            words);
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
    "remove a pulled model, or a converted copy",
    "Removes what 'whit pull' brought under this name, and the files that were converted from it, and says how much "
    "that freed. With NAME:FILE only that GGUF model goes. With the path of a model of your own, what was converted "
    "from it goes "
    "from the cache; the model stays. Nothing is asked, and nothing outside the cache is "
    "removed.\n"
    "  whit rm OWNER/NAME",
    {{"OPTIONS", options, 0}},
    sizeof(int),
    &defaults,
    run_rm,
};
