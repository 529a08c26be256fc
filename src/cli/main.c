/* SPDX-License-Identifier: MIT
 * whit: finds the verb, parses its options, runs it, and says how it ended. */
#include <string.h>

#include "cli/verbs.h"

const cli_verb *cli_verb_find(const char *name)
{
    for (const cli_verb *const *verb = cli_verbs; *verb; verb++)
        if (!strcmp((*verb)->name, name)) return *verb;
    return NULL;
}

int main(int argc, char **argv)
{
    cli_signals_install();
    cli_call call = {0};
    int status = CLI_OK;
    const char *word = argc > 1 ? argv[1] : "";
    if (!strcmp(word, "--version") || !strcmp(word, "-V")) {
        cli_print(&call, "whit %s\n", whit_version());
    } else if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
        cli_help(&call, NULL, false);
    } else if (argc < 2) {
        status = cli_fail(&call, CLI_USAGE, "a verb is wanted, such as run; 'whit help' lists them");
    } else if (!(call.verb = cli_verb_find(word))) {
        status = cli_fail(&call, CLI_USAGE, "there is no verb '%s'; 'whit help' lists them", word);
    } else {
        status = cli_parse(&call, argc - 2, argv + 2);
        if (call.wants_help)
            cli_help(&call, call.verb, false);
        else if (status == CLI_OK)
            status = call.verb->run(&call);
    }
    cli_call_free(&call);
    return cli_finish(&call, status);
}
