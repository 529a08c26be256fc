/* SPDX-License-Identifier: MIT
 * Lists options and commands of llama.cpp and Ollama that whit does not have, each with its replacement, or the reason
 * why it is not needed. */
#ifndef WHIT_CLI_HABITS_H
#define WHIT_CLI_HABITS_H

#include <stdbool.h>
#include <stddef.h>

typedef enum cli_habit_value {
    CLI_HABIT_FLAG,  /* a flag */
    CLI_HABIT_VALUE, /* a value follows */
    CLI_HABIT_MAYBE, /* "on", "off", "auto" or a number may follow */
} cli_habit_value;

typedef struct cli_habit {
    const char *names; /* as in cli_option */
    cli_habit_value value;
    /* "": every verb accepts the option with a note, because nothing is lost without it; a verb's name: that verb
     * accepts it; NULL: it is refused with the note */
    const char *needless_in;
    const char *line;
} cli_habit;

/* Finds an option; NULL if unknown. `given` is one name, with its dashes. */
const cli_habit *cli_habit_option(const char *given, size_t n_given);
bool cli_habit_is_needless(const cli_habit *habit, const char *verb);
/* Returns whether `text` is the value of an option that may have one. */
bool cli_habit_takes(const cli_habit *habit, const char *text);

/* Returns the replacement for a command of another program; NULL if unknown. */
const char *cli_habit_verb(const char *word);
/* Writes "; did you mean /set, /show" with the commands of a list (NULL at its end) that are near a name without '/';
 * an empty text without such commands. Returns `line`. */
const char *cli_near_commands(const char *given, const char *const *commands, char *line, size_t room);

#endif
