/* SPDX-License-Identifier: MIT
 * Declares the parts of the command line program that every verb shares.
 *
 * One table per verb (struct cli_verb) states its options with types, bounds, defaults and help. Parsing, `--help`, the
 * man pages and the shells' completion all read that table, so they cannot disagree. The program itself uses one
 * thread; the library may use more. Verbs use whit.h; verbs for developers may also use internal headers. Names here
 * begin with cli_ and are not part of the library. */
#ifndef WHIT_CLI_CLI_H
#define WHIT_CLI_CLI_H

#include "whit.h"

#include <jansson.h>

/* Exit statuses, which `whit help` and whit(1) document. All are at most 123, because xargs, timeout and shells use
 * higher ones. */
enum cli_exit {
    CLI_OK = 0,
    CLI_FAILED = 1,      /* any other failure */
    CLI_USAGE = 2,       /* the command line is invalid */
    CLI_REFUSED = 3,     /* a file is damaged, has another format, or is not supported */
    CLI_LIMIT = 4,       /* memory ran out, or a limit was exceeded */
    CLI_IO = 5,          /* a file could not be read or written */
    CLI_INTERRUPTED = 6, /* ended by Ctrl-C or SIGTERM */
    CLI_NUMERIC = 7,     /* the model computed a value that is not a finite number */
    CLI_MAPPING = 8,     /* a mapped file was truncated, or its disk failed, while it was in use */
    CLI_FOLLOWED = -1,   /* not an exit status: this process was another rank than 0, and its work is done (ranks.h) */
};

/* ---- tables of verbs and options ----------------------------------------------------------- */

typedef enum cli_kind {
    CLI_FLAG,   /* bool: whether the option is given */
    CLI_TEXT,   /* const char * */
    CLI_FILE,   /* const char *, a path, which shells complete */
    CLI_COUNT,  /* uint32_t in [min, max] */
    CLI_AUTO,   /* uint32_t in [min, max]; "-1" is read as 0, which means all, or that the program chooses */
    CLI_INT,    /* int32_t in [min, max] */
    CLI_SEED,   /* int64_t */
    CLI_REAL,   /* float in [min, max] */
    CLI_CHOICE, /* int: index into the words of `argument`, such as "f16|f32|i8" */
    CLI_REPEAT, /* cli_list: the values of all occurrences */
} cli_kind;

typedef struct cli_list {
    const char **items; /* arguments of the process, or values of environment variables */
    size_t n;
} cli_list;

typedef struct cli_option {
    const char *names; /* all names, separated by comma and space: "-n, --predict" */
    cli_kind kind;
    size_t offset;        /* offset of the value in the struct of its group */
    const char *argument; /* name of the value, such as "N" or "FILE"; for CLI_CHOICE the words, separated by '|'; NULL
                           * for a flag */
    const char *help;     /* one sentence, which includes the default */
    double min, max;      /* bounds of a number; no bounds if both are equal, such as 0 */
} cli_option;

/* A group of options with one struct for their values, which is part of the verb's struct. Several verbs may share a
 * group. The last option has names NULL. */
typedef struct cli_group {
    const char *title;
    const cli_option *options;
    size_t offset; /* offset of the group's struct in the verb's struct */
} cli_group;

struct cli_call;
typedef int cli_run_fn(struct cli_call *call);

#define CLI_GROUPS_MAX  6
#define CLI_OPTIONS_MAX 96

typedef struct cli_verb {
    const char *name;
    const char *operands;             /* names of the operands, such as "SRC" or "[VERB]"; "": no operands */
    unsigned n_min, n_max;            /* minimum and maximum number of operands */
    const char *summary;              /* a few words for the list of verbs */
    const char *description;          /* paragraphs for the manual; lines that begin with two spaces are examples */
    cli_group groups[CLI_GROUPS_MAX]; /* the last group has title NULL */
    size_t values_bytes;              /* size of the verb's struct of values */
    const void *defaults;             /* a struct of values with the defaults */
    cli_run_fn *run;
    bool takes_variables; /* options that are not given are read from the environment, such as WHIT_PORT for --port */
    const char *words;    /* words that the operand i_words may be, such as "apply|undo", for completion; NULL: any */
    unsigned i_words;     /* index of that operand, from 0 */
    const char *usual;    /* names of the options that the help shows first, such as "-p, -n"; NULL: none */
} cli_verb;

extern const cli_verb *const cli_verbs[]; /* the last item is NULL */
const cli_verb *cli_verb_find(const char *name);
/* Returns the verb that was probably meant by the misspelt `word`, or NULL. */
const cli_verb *cli_verb_guess(const char *word);

/* ---- a call of a verb ---------------------------------------------------------------------- */

typedef struct cli_call {
    const cli_verb *verb;
    void *values; /* the verb's struct, filled from defaults, environment and arguments */
    const char **operands;
    size_t n_operands;
    /* for each option, in the order of cli_verb_option: whether the command line has it; operands and environment
     * variables do not count */
    bool given[CLI_OPTIONS_MAX];
    bool wants_help; /* --help or -h was given */
    /* Writing to stdout has failed, which was already reported unless the reader had closed the pipe */
    bool output_failed;
} cli_call;

/* Fills values and operands from the arguments after the verb. A verb with -m and without operands of its own also
 * accepts the model as an operand; distill, perplexity and tokenize accept other options so, too (parse.c). Returns
 * CLI_OK, or CLI_USAGE or CLI_LIMIT after one line on stderr. Stops at --help or -h, which are not in the tables. The
 * caller must call cli_call_free in both cases. */
int cli_parse(cli_call *call, int argc, char **argv);
void cli_call_free(cli_call *call);

/* Returns whether `given` may be a mistake for `name`: one is a part of the other, or they differ in one letter (in up
 * to two if `given` has more than four). */
bool cli_is_near_name(const char *given, const char *name);

/* Returns whether the command line has the option with this name; operands and environment variables do not count. Its
 * value does not show this, since it may equal the default. */
bool cli_was_given(const cli_call *call, const char *name);

/* Sets one option of a table in the struct `values`, as /set does. `name` is without dashes; '_' counts as '-'. Returns
 * CLI_OK, CLI_USAGE after a message, or -1 if the table has no such option, or if it is a flag, a text, a file or
 * repeatable. */
int cli_set_option(const cli_call *call, const cli_option *options, const char *name, const char *text, void *values);

/* Returns whether the verb accepts the model as an operand in place of -m. */
bool cli_verb_takes_model(const cli_verb *verb);

/* Returns the i-th option of a verb, counted over all groups; NULL if there are only i or fewer. group_offset: receives
 * the offset of its group's struct; may be NULL. */
const cli_option *cli_verb_option(const cli_verb *verb, size_t i, size_t *group_offset);
/* Copies the first of an option's names to `name`. Returns the rest of `names` for the next call; NULL after the last
 * name. */
const char *cli_option_name(const char *names, char *name, size_t name_bytes);

/* ---- messages and output ------------------------------------------------------------------- */

/* Returns the width of the terminal at a descriptor in columns; 0 if it is not a terminal, or if it cannot position
 * text (TERM is "dumb" or not set). */
unsigned cli_columns(int fd);
/* Returns whether a descriptor is a terminal that shows colours, and NO_COLOR is not set. */
bool cli_has_colours(int fd);

/* Writes "whit VERB: message" on stderr, or "whit: message" without a verb, wrapped between words at the width of its
 * terminal; returns the exit status `status` or that of `error`. */
int cli_fail(const cli_call *call, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));
int cli_fail_error(const cli_call *call, const whit_error *error);
/* Writes "whit: ..." on stderr, a line that is not about a failure. */
void cli_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Write text for people on stdout. All output on stdout goes through these functions and those below. A full disk makes
 * the run fail; a reader that has closed the pipe ends the run quietly. They return false once writing has failed.
 * Characters that could control a terminal are replaced (base/plain.h), even in a pipe, since its reader may show the
 * text on a terminal. */
bool cli_write(cli_call *call, const char *text, size_t text_bytes);
bool cli_print(cli_call *call, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Writes a text of whit_plain_for_terminal(). cli_write() would show its marks of direction by number, as it does the
 * hidden characters of any text; a text in the form for display has no others. */
bool cli_write_shown(cli_call *call, const char *text, size_t text_bytes);
/* Writes text that is the result itself, such as that of a model or a program. It is unchanged, except that a terminal
 * gets it filtered like text for people. */
bool cli_write_data(cli_call *call, const char *text, size_t text_bytes);
/* Writes a piece of JSON text, which must not end within a character. Characters that control a terminal, are invisible
 * or reorder text are escaped. */
bool cli_write_json(cli_call *call, const char *text, size_t text_bytes);
bool cli_flush(cli_call *call);
/* Writes a control sequence, such as "\x1b[2m", if stdout is a terminal. */
bool cli_control(cli_call *call, const char *sequence);
/* Prints a JSON value and releases it. NULL means that memory ran out or that JSON cannot represent the value: the
 * output then counts as failed. */
bool cli_print_json(cli_call *call, json_t *value);
/* Makes a JSON string from a path; bytes that are not UTF-8 become U+FFFD. Returns NULL if memory runs out. */
json_t *cli_json_path(const char *path);
/* Flushes and closes stdout. Returns `status`; in place of CLI_OK returns CLI_IO if output was lost. */
int cli_finish(cli_call *call, int status);

/* Shows a progress bar on stderr if that is a terminal. This is a whit_progress_fn; it returns false once the run is
 * cancelled. */
bool cli_progress(void *user, const char *what, double share);
void cli_progress_end(void);

/* ---- signals ------------------------------------------------------------------------------- */

/* Installs the signal handlers. Ctrl-C and SIGTERM set the flag of cli_cancelled; a second signal ends the program at
 * once. If Ctrl-C was ignored, it stays ignored. Writing to a closed pipe or beyond the file size limit becomes an
 * error. Access to a mapped file that was truncated ends the program with a line that names the file. */
void cli_signals_install(void);
const volatile bool *cli_cancelled(void);
/* Clears the flag after Ctrl-C, for a verb that continues. Returns false if the flag was not set, or if SIGTERM was
 * received, which always ends the program. */
bool cli_take_interrupt(void);
/* Returns whether the program was stopped (Ctrl-Z) and continued since the last call, after which the terminal has the
 * shell's modes. The first call only starts watching. */
bool cli_was_continued(void);
/* Sets the terminal settings to restore: if a signal ends the program at once while a line is edited, stdin's terminal
 * gets `settings`, and bracketed paste is turned off. NULL: nothing is restored. The pointer is stored, so *settings
 * must stay valid. */
struct termios;
void cli_signals_restore(const struct termios *settings);
/* Register files for the message about a truncated file; there is a small table of mappings. cli_guard_likely sets the
 * path to name if an address is in no registered mapping; this pointer is stored, not copied. */
void cli_guard_likely(const char *path);
void cli_guard_file(const void *address, size_t size_bytes, const char *path);
/* ---- help ---------------------------------------------------------------------------------- */

/* Prints the manual of one verb, or of the whole program (verb NULL), as text or as a man page. */
void cli_help(cli_call *call, const cli_verb *verb, bool man);
/* shells for which cli_completion can print a completion script */
typedef enum cli_shell { CLI_BASH, CLI_ZSH, CLI_FISH } cli_shell;
void cli_completion(cli_call *call, cli_shell shell);

#endif
