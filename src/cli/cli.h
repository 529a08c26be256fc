/* SPDX-License-Identifier: MIT
 * Declares the parts of the command line program that every verb shares.
 *
 * One table per verb (struct cli_verb) states its options with types, bounds, defaults and help.
 * Parsing, `--help`, the man pages and the shells' completion all read that table, so they cannot
 * disagree. The program is single-threaded outside the library. It uses whit.h; verbs for
 * developers may look into a room. Names here begin with cli_: none of them is in the library. */
#ifndef WHIT_CLI_CLI_H
#define WHIT_CLI_CLI_H

#include "whit.h"

#include <jansson.h>

/* These exit statuses are documented in `whit help` and whit(1). All are at most 123: xargs, timeout and shells use
 * higher statuses. */
enum cli_exit {
    CLI_OK = 0,
    CLI_FAILED = 1,      /* any other failure */
    CLI_USAGE = 2,       /* invalid command line */
    CLI_REFUSED = 3,     /* a file is damaged, of another format, or not supported */
    CLI_LIMIT = 4,       /* out of memory, or over a limit */
    CLI_IO = 5,          /* a file could not be read or written */
    CLI_INTERRUPTED = 6, /* Ctrl-C or SIGTERM */
    CLI_NUMERIC = 7,     /* the model computed something that is not a number */
    CLI_MAPPING = 8,     /* a file was cut short while it was in use */
    CLI_FOLLOWED = -1,   /* not an exit status: this process has run as another rank until the end (ranks.h) */
};

/* ---- the tables ---------------------------------------------------------------------------- */

typedef enum cli_kind {
    CLI_FLAG,   /* bool: present or not */
    CLI_TEXT,   /* const char * */
    CLI_FILE,   /* const char *: a path; shells complete it as such */
    CLI_COUNT,  /* uint32_t in [min, max] */
    CLI_AUTO,   /* uint32_t in [min, max]; 0 or -1: all, or automatic */
    CLI_INT,    /* int32_t in [min, max] */
    CLI_SEED,   /* int64_t */
    CLI_REAL,   /* float in [min, max] */
    CLI_CHOICE, /* int: index into the words of `argument`, "f16|f32|i8" */
    CLI_REPEAT, /* cli_list: every occurrence */
} cli_kind;

typedef struct cli_list {
    const char **items; /* each points into argv */
    size_t n;
} cli_list;

typedef struct cli_option {
    const char *names; /* "-n, --predict": any number of names, with comma and space between */
    cli_kind kind;
    size_t offset;        /* offset of the value in the group's struct */
    const char *argument; /* "N", "FILE"; the words of a choice; NULL for a flag */
    const char *help;     /* one sentence, including the default */
    double min, max;      /* bounds of a number; both 0: unbounded */
} cli_option;

/* Describes a group of options, which several verbs may share, for one struct inside the verb's own. The options end
 * with names NULL. */
typedef struct cli_group {
    const char *title;
    const cli_option *options;
    size_t offset; /* offset of the options' struct in the verb's struct */
} cli_group;

struct cli_call;
typedef int cli_run_fn(struct cli_call *call);

#define CLI_GROUPS_MAX  6
#define CLI_OPTIONS_MAX 96

typedef struct cli_verb {
    const char *name;
    const char *operands;             /* "SRC", "[VERB]"; "": no operands */
    unsigned n_min, n_max;            /* number of operands */
    const char *summary;              /* half a line */
    const char *description;          /* paragraphs; a line that begins with two spaces is an example */
    cli_group groups[CLI_GROUPS_MAX]; /* ends with title NULL */
    size_t values_bytes;              /* size of the verb's struct */
    const void *defaults;             /* a struct of default values */
    cli_run_fn *run;
    bool takes_variables; /* options that were not given are read from the environment: WHIT_PORT for --port, ... */
    const char *words;    /* "apply|undo": the words of the operand at i_words, for completion; NULL: no such operand */
    unsigned i_words;     /* index from 0 */
    const char *usual;    /* "-p, -n": names of the options that help shows first; NULL: no such section */
} cli_verb;

extern const cli_verb *const cli_verbs[]; /* ends with NULL */
const cli_verb *cli_verb_find(const char *name);
/* Returns the verb that `word` is a slip of, or NULL. */
const cli_verb *cli_verb_guess(const char *word);

/* ---- one call of one verb ------------------------------------------------------------------ */

typedef struct cli_call {
    const cli_verb *verb;
    void *values; /* the verb's struct, filled in */
    const char **operands;
    size_t n_operands;
    bool given[CLI_OPTIONS_MAX]; /* by the verb's options, in the order of cli_verb_option */
    bool wants_help;             /* --help was among the options */
    bool output_failed;          /* stdout could not be written; already reported */
} cli_call;

/* Fills values and operands from the arguments after the verb. A verb that has -m and no operands of its own accepts
 * the model as an operand, too. The result is CLI_OK, or CLI_USAGE after one line on stderr. Stops at --help, which is
 * not in the tables. The call then owns memory; cli_call_free releases it in every case. */
int cli_parse(cli_call *call, int argc, char **argv);
void cli_call_free(cli_call *call);

/* Returns whether a given name may stand for `name`: it is a part of it, or a slip of a letter or two away. */
bool cli_is_near_name(const char *given, const char *name);

/* Returns whether the option of this name was among the arguments. Its value cannot show this, since it may equal the
 * default. */
bool cli_was_given(const cli_call *call, const char *name);

/* Sets one option of a table at `values` by its name without dashes ('_' counts as '-'), as /set does. The result is
 * CLI_OK, CLI_USAGE after a message, or -1 if the table has no such option, or if it is a flag, a text, a file or may
 * be repeated. */
int cli_set_option(const cli_call *call, const cli_option *options, const char *name, const char *text, void *values);

/* Returns whether the verb accepts the model as an operand, in place of -m. */
bool cli_verb_takes_model(const cli_verb *verb);

/* Walks every option of a verb: i from 0; NULL at the end. *group_offset may be NULL. */
const cli_option *cli_verb_option(const cli_verb *verb, size_t i, size_t *group_offset);
/* Copies the next of an option's names to `name`; returns where the names continue, NULL after the last. */
const char *cli_option_name(const char *names, char *name, size_t name_bytes);

/* ---- messages and output ------------------------------------------------------------------- */

/* Returns the columns of the terminal at a descriptor; 0 if the descriptor is no terminal, or the terminal cannot place
 * text (TERM=dumb). */
unsigned cli_columns(int fd);
/* Returns whether the terminal at a descriptor shows colours and its user wants them (NO_COLOR is not set). */
bool cli_has_colours(int fd);

/* Writes "whit VERB: message" on stderr, broken between words where its terminal is narrower; returns the exit
 * status. */
int cli_fail(const cli_call *call, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));
int cli_fail_error(const cli_call *call, const whit_error *error);
/* Prints a line that is not about a failure: "whit: ..." on stderr. */
void cli_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Write text for people. All output on stdout goes through the functions below: a full disk is an error of the run, and
 * a reader that went away (a closed pipe) ends the run quietly. They return false once writing failed.
 *
 * Whatever could command a terminal is replaced (base/plain.h), also in a pipe, since its reader may show the text on a
 * terminal. */
bool cli_write(cli_call *call, const char *text, size_t text_bytes);
bool cli_print(cli_call *call, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Writes text that is the result itself (of a model, a program): unchanged, except to a terminal, where it is filtered
 * like text for people. */
bool cli_write_data(cli_call *call, const char *text, size_t text_bytes);
/* Writes a piece of a JSON text, in whole characters. Characters that control a terminal, are invisible or reorder
 * others are escaped. */
bool cli_write_json(cli_call *call, const char *text, size_t text_bytes);
bool cli_flush(cli_call *call);
/* Writes a control sequence, such as "\x1b[2m"; nothing if stdout is not a terminal. */
bool cli_control(cli_call *call, const char *sequence);
/* Prints a value and takes its reference. NULL (out of memory, or a value that JSON cannot hold) is a failure of the
 * output. */
bool cli_print_json(cli_call *call, json_t *value);
/* Makes a JSON string of a path: bytes that are not UTF-8 become U+FFFD. The result is NULL if memory runs out. */
json_t *cli_json_path(const char *path);
/* Flushes and closes stdout; returns `status`, or CLI_IO if output was lost. */
int cli_finish(cli_call *call, int status);

/* Shows a bar on stderr, on a terminal only. It is a whit_progress_fn, and returns false once the run is cancelled. */
bool cli_progress(void *user, const char *what, double share);
void cli_progress_end(void);

/* ---- signals ------------------------------------------------------------------------------- */

/* Installs the handlers: Ctrl-C and SIGTERM set the flag (a second one ends the program at once), a closed pipe is an
 * error of the write, and access to a truncated mapped file ends the program with a line that names the file. */
void cli_signals_install(void);
const volatile bool *cli_cancelled(void);
/* Clears Ctrl-C, for a verb that continues after it. The result is false if there was no Ctrl-C, or if SIGTERM arrived,
 * which always ends the program. */
bool cli_take_interrupt(void);
/* Returns whether the program was stopped (Ctrl-Z) and continued since the last call; the terminal then has the shell's
 * modes. The first call begins to watch for this. */
bool cli_was_continued(void);
/* Sets the terminal settings to restore while a line is edited: if a signal ends the program at once, stdin's
 * terminal gets `settings` back (NULL: nothing to restore) and bracketed paste is turned off. The pointer is kept,
 * not copied. */
struct termios;
void cli_signals_restore(const struct termios *settings);
/* Registers the files of mappings, for the message about a truncated file; a small table. The likely path is named if
 * the address is in no registered mapping; its pointer is kept, not copied. */
void cli_guard_likely(const char *path);
void cli_guard_file(const void *address, size_t size_bytes, const char *path);
/* ---- help ---------------------------------------------------------------------------------- */

/* Prints the page of one verb, or of the whole program (NULL): for a terminal, or as a man page. */
void cli_help(cli_call *call, const cli_verb *verb, bool man);
/* cli_completion prints the completion script of one of these shells. */
typedef enum cli_shell { CLI_BASH, CLI_ZSH, CLI_FISH } cli_shell;
void cli_completion(cli_call *call, cli_shell shell);

#endif
