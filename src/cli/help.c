/* SPDX-License-Identifier: MIT
 * Prints the manual, which is generated from the verbs' tables, and implements the verb `help`. */
#include <stdio.h>
#include <string.h>

#include "base/phrase.h"
#include "cli/page.h"

static const struct {
    const char *status, *text;
} exits[] = {
    {"0", "The work was done."},
    {"1", "It failed for another reason than those below."},
    {"2", "The command line is not valid; nothing was done."},
    {"3", "A file was refused: damaged, not what it says it is, or not supported."},
    {"4", "Out of memory, or over a limit such as the context."},
    {"5", "A file or the output could not be read or written."},
    {"6", "Interrupted by Ctrl-C or SIGTERM. A second Ctrl-C ends at once."},
    {"7", "The model's numbers were not finite."},
    {"8", "A mapped file was cut short while it was in use."},
};

static const struct {
    const char *name, *text;
} variables[] = {
    {"WHIT_CPU",
     "The highest instruction set to use: generic, avx2, avx512, amx, neon, dotprod or i8mm. "
     "Empty is no limit; a level above the machine's is no error. What a model computes has the same bits on every "
     "level."},
    {"XDG_CACHE_HOME",
     "Where pulled and converted models, code graphs and an agent's copies of projects are kept, in a folder named "
     "whit; ~/.cache by default."},
    {"XDG_STATE_HOME",
     "Where the lines typed in chats and to agents (chat_history), the journals of agents' turns and the editor's "
     "journals are kept, in a folder named whit; ~/.local/state by default."},
    {"XDG_CONFIG_HOME", "Where whit/edit.conf and whit/agent.json are; ~/.config by default."},
    {"WHIT_API_KEY", "The key of the endpoint of 'whit agent' and 'whit edit' where --key-file names none."},
    {"WHIT_TIER",
     "How programs of the array language run: 0 walks the tree, 1 is closures, 2, the default, machine code; the same "
     "bits."},
    {"HF_ENDPOINT", "The address of the hub that 'whit pull' downloads from."},
    {"HF_TOKEN",
     "The hub's token; else it is read from the file HF_TOKEN_PATH, HF_HOME/token or ~/.cache/huggingface/token. "
     "Only the hub itself is sent it. Proxies are taken from https_proxy, http_proxy and no_proxy."},
};

/* Returns whether `usual`, a list of names, contains one of the option's names. */
static bool is_usual(const char *usual, const cli_option *option)
{
    char name[32], other[32];
    for (const char *at = usual; (at = cli_option_name(at, name, sizeof name));)
        for (const char *its = option->names; (its = cli_option_name(its, other, sizeof other));)
            if (strcmp(name, other) == 0) return true;
    return false;
}

static void option_item(cli_page *page, const cli_option *option)
{
    char tag[160];
    snprintf(tag, sizeof tag, "%s%s%s", option->names, option->argument ? " " : "", whit_or_empty(option->argument));
    cli_page_item(page, tag, option->help);
}

/* Prints the section of the options that most calls need; the sections after it have all options. */
static void usual_options(cli_page *page, const cli_verb *verb)
{
    const cli_option *option;
    if (!verb->usual) return;
    cli_page_section(page, "USUAL OPTIONS");
    for (size_t i = 0; (option = cli_verb_option(verb, i, NULL)); i++)
        if (is_usual(verb->usual, option)) option_item(page, option);
}

static void exits_and_environment(cli_page *page)
{
    cli_page_section(page, "EXIT STATUS");
    for (size_t i = 0; i < sizeof exits / sizeof *exits; i++) cli_page_item(page, exits[i].status, exits[i].text);
    cli_page_section(page, "ENVIRONMENT");
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        cli_page_item(page, variables[i].name, variables[i].text);
}

static void program_page(cli_page *page)
{
    char line[256];
    cli_page_head(page, "whit");
    cli_page_section(page, "NAME");
    cli_page_text(page, "whit - run low-bit language models on an ordinary CPU");
    cli_page_section(page, "SYNOPSIS");
    cli_page_text(page, "  whit COMMAND [options] [operands]\n  whit help COMMAND\n  whit --version");
    cli_page_section(page, "COMMANDS");
    for (const cli_verb *const *verb = cli_verbs; *verb; verb++) {
        if (page->man) {
            cli_page_item(page, (*verb)->name, (*verb)->summary);
        } else {
            snprintf(line, sizeof line, "  %-12s%s", (*verb)->name, (*verb)->summary);
            cli_page_text(page, line);
        }
    }
    cli_page_section(page, "DESCRIPTION");
    cli_page_text(
        page,
        "Every command that takes a model takes an .ndf file, any readable source, which is "
        "converted once into a cache, or the name of a model that 'whit pull' downloaded. What a model "
        "computes depends on the model, the tokens and the settings, never on the CPU, the number of threads or "
        "the batch; what train, distill, tune and compress make may differ in last bits from one kind of CPU to "
        "another.\n"
        "Results go to stdout, everything else to stderr; a progress bar is shown on a "
        "terminal only.");
    exits_and_environment(page);
}

static void verb_page(cli_page *page, const cli_verb *verb)
{
    char line[512];
    snprintf(line, sizeof line, "whit-%s", verb->name);
    cli_page_head(page, line);
    cli_page_section(page, "NAME");
    snprintf(line, sizeof line, "whit-%s - %s", verb->name, verb->summary);
    cli_page_text(page, line);
    cli_page_section(page, "SYNOPSIS");
    const char *operands = cli_verb_takes_model(verb) ? "[MODEL]" : verb->operands;
    snprintf(line, sizeof line, "  whit %s%s%s [options]", verb->name, operands[0] ? " " : "", operands);
    cli_page_text(page, line);
    cli_page_section(page, "DESCRIPTION");
    cli_page_text(page, verb->description);
    usual_options(page, verb);
    for (const cli_group *group = verb->groups; group < verb->groups + CLI_GROUPS_MAX && group->title; group++) {
        cli_page_section(page, group->title);
        for (const cli_option *option = group->options; option->names; option++)
            if (!is_usual(verb->usual, option)) option_item(page, option);
    }
    cli_page_section(page, "SEE ALSO");
    cli_page_text(page, "whit(1) ('whit help') has the exit statuses and the environment variables of all commands.");
}

void cli_help(cli_call *call, const cli_verb *verb, bool man)
{
    cli_page page = {.call = call, .man = man};
    if (verb)
        verb_page(&page, verb);
    else
        program_page(&page);
}

struct help_values {
    bool man, list;
    int completion; /* a cli_shell; -1: no completion script is wanted */
};
static const struct help_values defaults = {.completion = -1};
static const cli_option options[] = {
    {"--man", CLI_FLAG, offsetof(struct help_values, man), NULL, "Print the page as man(7) source."},
    {"--list", CLI_FLAG, offsetof(struct help_values, list), NULL, "Print the names of the commands."},
    {"--completion", CLI_CHOICE, offsetof(struct help_values, completion), "bash|zsh|fish",
     "Print the completion script of a shell.", 0, 0},
    {0},
};

static void list_verbs(cli_call *call)
{
    for (const cli_verb *const *verb = cli_verbs; *verb; verb++) cli_print(call, "%s\n", (*verb)->name);
}

static int run_help(cli_call *call)
{
    const struct help_values *values = call->values;
    const cli_verb *verb = NULL;
    if (call->n_operands && !(verb = cli_verb_find(call->operands[0])))
        return cli_fail(call, CLI_USAGE, "there is no command '%s'; 'whit help' lists them", call->operands[0]);
    if (values->completion >= 0)
        cli_completion(call, (cli_shell)values->completion);
    else if (values->list)
        list_verbs(call);
    else
        cli_help(call, verb, values->man);
    return CLI_OK;
}

const cli_verb cli_help_verb = {
    "help",
    "[COMMAND]",
    0,
    1,
    "show the manual",
    "Shows the list of commands, or the manual of one. The same text is shown by 'whit COMMAND --help'.",
    {{"OPTIONS", options, 0}},
    sizeof(struct help_values),
    &defaults,
    run_help,
};
