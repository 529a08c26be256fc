/* SPDX-License-Identifier: MIT
 * Declares a list of options and commands of llama.cpp and Ollama that whit does not have. Each has a note that names
 * the replacement, or the reason why none is needed. */
#ifndef WHIT_CLI_HABITS_H
#define WHIT_CLI_HABITS_H

#include <stdbool.h>
#include <stddef.h>

typedef enum cli_habit_value {
    CLI_HABIT_FLAG,  /* no value follows */
    CLI_HABIT_VALUE, /* a value follows */
    CLI_HABIT_MAYBE, /* one of on, off, auto, true, false, always, never or a digit may follow */
} cli_habit_value;

typedef struct cli_habit {
    const char *names; /* all names, separated by comma and space */
    cli_habit_value value;
    /* verbs that accept the option and only print the note, because nothing is lost without it. "": all verbs; a name:
     * this verb; NULL: none, the option is refused with the note */
    const char *needless_in;
    const char *line;
} cli_habit;

/* Finds an option by one of its names, given with dashes; NULL if it is unknown. */
const cli_habit *cli_habit_option(const char *given, size_t n_given);
bool cli_habit_is_needless(const cli_habit *habit, const char *verb);
/* Returns whether `text`, the argument after an option, is the option's value. */
bool cli_habit_takes(const cli_habit *habit, const char *text);

/* Returns a sentence that names the replacement for a command of another program; NULL if the command is unknown. */
const char *cli_habit_verb(const char *word);
/* Writes "; did you mean /set, /show" with those commands of a list (which ends with NULL) that are similar to a name
 * without '/'; writes "" if no command is. Returns `line`. */
const char *cli_near_commands(const char *given, const char *const *commands, char *line, size_t room);

#endif
