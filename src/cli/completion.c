/* SPDX-License-Identifier: MIT
 * Prints completion scripts for bash, zsh and fish from the tables of the verbs. */
#include <stdio.h>
#include <string.h>

#include "base/items.h"
#include "base/shell.h"
#include "cli/cli.h"

static void print_quoted(cli_call *call, const char *text)
{
    whit_buf word = {0};
    if (whit_shell_quote(&word, text))
        cli_write(call, whit_chars(&word), word.size_bytes);
    else
        cli_fail(call, CLI_LIMIT, "not enough memory for the completion script");
    whit_buf_free(&word);
}

static void option_names(cli_call *call, const cli_verb *verb)
{
    char name[32];
    const cli_option *option;
    for (size_t i = 0; (option = cli_verb_option(verb, i, NULL)); i++)
        for (const char *at = option->names; (at = cli_option_name(at, name, sizeof name));)
            cli_print(call, "%s ", name);
    cli_print(call, "--help");
}

static void words_of(cli_call *call, const char *choice)
{
    for (; *choice; choice++) cli_write(call, *choice == '|' ? " " : choice, 1);
}

/* Prints the names of the verbs whose operand is a model, a file or the name of a pulled model, separated by
 * `between`. */
static void model_verbs(cli_call *call, const char *between)
{
    bool first = true;
    for (const cli_verb *const *verb = cli_verbs; *verb; verb++) {
        bool takes = cli_verb_takes_model(*verb) || strstr((*verb)->operands, "MODEL") ||
            !strcmp((*verb)->operands, "NAME") || !strcmp((*verb)->operands, "FILE");
        if (!takes) continue;
        cli_print(call, "%s%s", first ? "" : between, (*verb)->name);
        first = false;
    }
}

/* For each verb with words for an operand, prints texts[0], the verb's name, texts[1], the operand's position in the
 * command line, texts[2], the words and texts[3]. n_before: position of a verb's first operand. */
static void operand_words(cli_call *call, const char *const texts[4], unsigned n_before)
{
    for (const cli_verb *const *verb = cli_verbs; *verb; verb++) {
        if (!(*verb)->words) continue;
        cli_print(call, "%s%s%s%u%s", texts[0], (*verb)->name, texts[1], (*verb)->i_words + n_before, texts[2]);
        words_of(call, (*verb)->words);
        cli_print(call, "%s", texts[3]);
    }
}

static void verb_names(cli_call *call)
{
    for (const cli_verb *const *verb = cli_verbs; *verb; verb++) cli_print(call, "%s ", (*verb)->name);
}

static void bash(cli_call *call)
{
    cli_print(call,
              "# bash completion for whit; written by 'whit help --completion bash'\n"
              "_whit() {\n"
              "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
              "    local verb=${COMP_WORDS[1]} words=''\n"
              "    COMPREPLY=()\n"
              "    if [ \"$COMP_CWORD\" = 1 ]; then\n"
              "        mapfile -t COMPREPLY < <(compgen -W '");
    for (const cli_verb *const *verb = cli_verbs; *verb; verb++) cli_print(call, "%s ", (*verb)->name);
    cli_print(call,
              "--version --help' -- \"$word\")\n"
              "        return\n"
              "    fi\n"
              "    case $verb:$before in\n");
    for (const cli_verb *const *verb = cli_verbs; *verb; verb++) {
        const cli_option *option;
        char name[32];
        for (size_t i = 0; (option = cli_verb_option(*verb, i, NULL)); i++) {
            if (option->kind != CLI_CHOICE) continue;
            const char *at = option->names;
            for (bool first = true; (at = cli_option_name(at, name, sizeof name)); first = false)
                cli_print(call, "%s%s:%s", first ? "    " : " | ", (*verb)->name, name);
            cli_print(call, ") words='");
            words_of(call, option->argument);
            cli_print(call, "' ;;\n");
        }
    }
    cli_print(call,
              "    esac\n"
              "    if [ -z \"$words\" ]; then\n"
              "        local models=''\n"
              "        case $before in\n"
              "        -m|--model|--kl-base|--teacher|--start) models=yes ;;\n"
              "        esac\n"
              "        case $verb in\n        ");
    model_verbs(call, "|");
    cli_print(call, ") [ \"$COMP_CWORD\" = 2 ] && models=yes ;;\n        help) words='");
    verb_names(call);
    cli_print(call, "' ;;\n");
    static const char *const texts[] = {
        "        ", ") [[ $COMP_CWORD == ", " && $word != -* && $before != -* ]] && words='", "' ;;\n"};
    operand_words(call, texts, 2);
    cli_print(call,
              "        esac\n"
              "        case $word in\n"
              "        -*) ;;\n"
              "        *) if [ -z \"$words\" ]; then\n"
              "               [ -n \"$models\" ] && words=$(whit list --names 2>/dev/null)\n"
              "               mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\"; compgen -f -- \"$word\")\n"
              "               return\n"
              "           fi ;;\n"
              "        esac\n"
              "    fi\n"
              "    if [ -z \"$words\" ]; then\n"
              "        case $verb in\n");
    for (const cli_verb *const *verb = cli_verbs; *verb; verb++) {
        cli_print(call, "        %s) words='", (*verb)->name);
        option_names(call, *verb);
        cli_print(call, "' ;;\n");
    }
    cli_print(call,
              "        esac\n"
              "    fi\n"
              "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
              "}\n"
              "complete -o filenames -F _whit whit\n");
}

static void zsh(cli_call *call)
{
    cli_print(call,
              "#compdef whit\n"
              "# zsh completion for whit; written by 'whit help --completion zsh'\n"
              "local -a verbs options\n"
              "verbs=(\n");
    for (const cli_verb *const *verb = cli_verbs; *verb; verb++) {
        char line[256];
        snprintf(line, sizeof line, "%s:%s", (*verb)->name, (*verb)->summary);
        cli_print(call, "    ");
        print_quoted(call, line);
        cli_print(call, "\n");
    }
    cli_print(call,
              ")\n"
              "if (( CURRENT == 2 )); then\n"
              "    _describe verb verbs\n"
              "    return\n"
              "fi\n"
              "case $words[2] in\n");
    for (const cli_verb *const *verb = cli_verbs; *verb; verb++) {
        cli_print(call, "%s) options=(", (*verb)->name);
        option_names(call, *verb);
        cli_print(call, ") ;;\n");
    }
    cli_print(call,
              "esac\n"
              "if [[ $words[CURRENT] == -* ]]; then\n"
              "    compadd -a options\n"
              "elif [[ $words[2] == help ]]; then\n"
              "    _describe verb verbs\n");
    static const char *const texts[] = {
        "elif [[ $words[2] == ", " && $CURRENT == ", " && $words[CURRENT-1] != -* ]]; then\n    compadd -- ", "\n"};
    operand_words(call, texts, 3);
    cli_print(call,
              "else\n"
              "    if [[ $words[CURRENT-1] == (-m|--model|--kl-base|--teacher|--start) ]] ||\n"
              "        [[ $CURRENT == 3 && $words[2] == (");
    model_verbs(call, "|");
    cli_print(call,
              ") ]]; then\n"
              "        compadd -- ${(f)\"$(whit list --names 2>/dev/null)\"}\n"
              "    fi\n"
              "    _files\n"
              "fi\n");
}

static bool takes_file(const cli_option *option)
{
    return option->kind == CLI_FILE || (option->kind == CLI_REPEAT && strstr(option->argument, "FILE"));
}

static void fish(cli_call *call)
{
    cli_print(call,
              "# fish completion for whit; written by 'whit help --completion fish'\n"
              "complete -c whit -n '__fish_seen_subcommand_from ");
    model_verbs(call, " ");
    cli_print(call,
              "' -a '(whit list --names 2>/dev/null)'\n"
              "complete -c whit -f -n '__fish_seen_subcommand_from help' -a '");
    verb_names(call);
    cli_print(call, "'\n");
    static const char *const texts[] = {"complete -c whit -f -n '__fish_seen_subcommand_from ",
                                        "; and test (count (commandline -opc)) -eq ", "' -a '", "'\n"};
    operand_words(call, texts, 2);
    for (const cli_verb *const *verb = cli_verbs; *verb; verb++) {
        cli_print(call, "complete -c whit -f -n __fish_use_subcommand -a %s -d ", (*verb)->name);
        print_quoted(call, (*verb)->summary);
        cli_print(call, "\n");
        const cli_option *option;
        for (size_t i = 0; (option = cli_verb_option(*verb, i, NULL)); i++) {
            char name[32];
            cli_print(call, "complete -c whit -n '__fish_seen_subcommand_from %s'", (*verb)->name);
            for (const char *at = option->names; (at = cli_option_name(at, name, sizeof name));) {
                const char *form = "s";
                if (name[1] == '-')
                    form = "l";
                else if (name[2])
                    form = "o";
                cli_print(call, " -%s %s", form, name + (name[1] == '-' ? 2 : 1));
            }
            if (option->kind != CLI_FLAG) cli_print(call, takes_file(option) ? " -r -F" : " -x");
            if (option->kind == CLI_CHOICE) {
                cli_print(call, " -a '");
                words_of(call, option->argument);
                cli_print(call, "'");
            }
            cli_print(call, " -d ");
            print_quoted(call, option->help);
            cli_print(call, "\n");
        }
    }
}

void cli_completion(cli_call *call, cli_shell shell)
{
    static void (*const writers[])(cli_call *) = {bash, zsh, fish};
    writers[shell](call);
}
