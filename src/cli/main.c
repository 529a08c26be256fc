/* SPDX-License-Identifier: MIT
 * The main program: finds the verb, parses its options, runs it and returns its exit status. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/path.h"
#include "base/system.h"
#include "cli/habits.h"
#include "cli/names.h"
#include "cli/ranks.h"
#include "cli/tales.h"
#include "cli/verbs.h"

const cli_verb *cli_verb_find(const char *name)
{
    for (const cli_verb *const *verb = cli_verbs; *verb; verb++)
        if (!strcmp((*verb)->name, name)) return *verb;
    return NULL;
}

/* ---- calls without a verb --------------------------------------------------------------------- */

/* Joins the arguments as a shell would accept them; "..." replaces the first argument that does not fit or contains a
 * single quote, and all arguments after it. */
static void join_words(int argc, char **argv, char *line, size_t line_bytes)
{
    size_t n = 0;
    line[0] = 0;
    for (int i = 1; i < argc; i++) {
        bool plain = argv[i][0] &&
            !argv[i][strspn(argv[i],
                            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                            "0123456789@%+=:,./_-")];
        bool fits = !strchr(argv[i], '\'') && n + strlen(argv[i]) + sizeof " '' ..." < line_bytes;
        const char *form = " '%s'";
        if (!fits)
            form = " ...";
        else if (plain)
            form = " %s";
        n += (size_t)snprintf(line + n, line_bytes - n, form, argv[i]);
        if (!fits) return;
    }
}

/* Reports a call that begins with an option, as in other programs, and suggests the verb. Returns an exit status. */
static int options_first(const cli_call *call, int argc, char **argv)
{
    static const char *const talking[] = {"-cnv", "--conversation", "-i", "--interactive", "-if"};
    static const char *const prompting[] = {"-p", "--prompt", "-f", "--file"};
    static const char *const hubs[] = {"-hf", "-hfr", "--hf-repo"};
    bool talks = false, prompts = false, has_model = false;
    for (int i = 1; i + 1 < argc; i++)
        for (size_t k = 0; k < sizeof hubs / sizeof *hubs; k++)
            if (!strcmp(argv[i], hubs[k]))
                return cli_fail(call, CLI_USAGE, "download the model first: 'whit pull %s', then 'whit chat %s'",
                                argv[i + 1], argv[i + 1]);
    for (int i = 1; i < argc; i++) {
        for (size_t k = 0; k < sizeof talking / sizeof *talking; k++) talks |= !strcmp(argv[i], talking[k]);
        has_model |= !strcmp(argv[i], "-m") || !strncmp(argv[i], "--model", 7);
        for (size_t k = 0; k < sizeof prompting / sizeof *prompting; k++) prompts |= !strcmp(argv[i], prompting[k]);
    }
    char line[300];
    join_words(argc, argv, line, sizeof line);
    if (!talks && !prompts && !has_model)
        return cli_fail(call, CLI_USAGE, "a command comes before its options; 'whit help' lists them");
    return cli_fail(call, CLI_USAGE, "a command comes first: whit %s%s", talks || !prompts ? "chat" : "run", line);
}

static bool is_model(const char *word)
{
    char path[CLI_PATH_BYTES];
    return cli_is_tales(word) || cli_find_model(word, path, NULL) == WHIT_OK;
}

static int no_such_verb(const cli_call *call, int argc, char **argv)
{
    char small[32]; /* the word in lower case: "RUN" probably means "run" */
    size_t n = 0;
    for (; argv[1][n] && n + 1 < sizeof small; n++) small[n] = (char)tolower((unsigned char)argv[1][n]);
    small[n] = 0;
    const char *word = argv[1], *habit = cli_habit_verb(small);
    const cli_verb *guess = cli_verb_guess(small);
    if (word[0] == '-') return options_first(call, argc, argv);
    if (habit) return cli_fail(call, CLI_USAGE, "there is no command '%s': %s", word, habit);
    if (is_model(word) && (!cli_looks_like_path(word) || whit_path_exists(word)))
        return cli_fail(call, CLI_USAGE, "'%s' is a model: type 'whit run %s' or 'whit chat %s'", word, word, word);
    if (cli_looks_like_path(word) && whit_path_exists(word))
        return cli_fail(call, CLI_USAGE, "%s: is neither a command nor a complete model file ('whit help')", word);
    if (cli_looks_like_path(word))
        return cli_fail(call, CLI_USAGE, "%s: No such file or directory ('whit run FILE' runs a model file)", word);
    if (guess)
        return cli_fail(call, CLI_USAGE, "there is no command '%s'; did you mean 'whit %s'? 'whit help' lists them",
                        word, guess->name);
    return cli_fail(call, CLI_USAGE, "there is no command '%s'; 'whit help' lists them", word);
}

int main(int argc, char **argv)
{
    whit_system_begin(&argc, &argv);
    cli_signals_install();
    cli_call call = {0};
    int status = CLI_OK;
    const char *word = argc > 1 ? argv[1] : "";
    if (!strcmp(word, "--version") || !strcmp(word, "-V")) {
        cli_print(&call, "whit %s\n", whit_version());
    } else if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
        cli_help(&call, NULL, false);
    } else if (argc < 2) {
        status = cli_fail(&call, CLI_USAGE, "no command given; try 'whit run' or 'whit help'");
    } else if (!(call.verb = cli_verb_find(word))) {
        status = no_such_verb(&call, argc, argv);
    } else {
        status = cli_parse(&call, argc - 2, argv + 2);
        if (call.wants_help)
            cli_help(&call, call.verb, false);
        else if (status == CLI_OK)
            status = call.verb->run(&call);
    }
    cli_call_free(&call);
    if (status == CLI_FOLLOWED) status = CLI_OK;
    cli_ranks_end(status != CLI_OK && status != CLI_INTERRUPTED);
    return cli_finish(&call, status);
}
