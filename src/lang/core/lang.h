/* SPDX-License-Identifier: MIT
 * Runs the array language: a program is loaded, checked, compiled and run, all within limits.
 *
 * docs/use/arrays.md is the reference. A `whit_lang` is a session, used by one thread: later texts can use the
 * definitions of earlier texts. Programs can access no file, no network and no memory except their own. */
#ifndef WHIT_LANG_CORE_LANG_H
#define WHIT_LANG_CORE_LANG_H

#include "base/mem.h"
#include "base/quat.h"

typedef struct whit_lang whit_lang;

typedef enum whit_lang_type {
    WHIT_LANG_NONE,
    WHIT_LANG_INT,   /* i64; arithmetic is modulo 2^64 */
    WHIT_LANG_FLOAT, /* f64 */
    WHIT_LANG_TEXT,  /* text in quotes; programs can only store it, pass it to functions and return it */
    WHIT_LANG_HOST,  /* value that a function of the host returns; programs can use it like a text */
    WHIT_LANG_VEC,   /* vector of f32 elements */
    WHIT_LANG_QUAT,  /* quaternary vector: elements -2, -1, 1 and 2 times a power of two */
} whit_lang_type;
const char *whit_lang_type_name(whit_lang_type type);

/* Tiers of execution: tree walker, closures, machine code. All give the same bits. */
enum { WHIT_LANG_WALK, WHIT_LANG_CLOSURES, WHIT_LANG_NATIVE, WHIT_LANG_TIERS };
typedef struct whit_lang_jit whit_lang_jit; /* tier 2: lang/jit/jit.h */

/* Receives a line of `print`, with its line feed; returns false to end the run. */
typedef bool whit_lang_print_fn(void *user, const char *text, size_t n_bytes);

/* Describes a function of the host. The signature "ift:h" means: arguments integer, float and text, result a value of
 * the host; ":-" at the end means: no result. At most WHIT_LANG_MAX_HOST_ARGUMENTS arguments are possible. */
typedef struct whit_lang_host_function {
    const char *name, *signature;
} whit_lang_host_function;
#define WHIT_LANG_MAX_HOST_ARGUMENTS 8
typedef union whit_lang_argument {
    int64_t i; /* an integer, or a value of the host */
    double f;
    const char *text; /* valid as long as the tree of the program */
} whit_lang_argument;
/* Lists the functions of a host. If a session has a host, its programs run in the tree walker, whatever tier is
 * requested. */
typedef struct whit_lang_host {
    const whit_lang_host_function *functions;
    uint32_t n_functions;
    /* Executes function number `function`; a failure ends the run, and its message begins with the place of the
     * call. */
    whit_status (*call)(void *user, uint32_t function, const whit_lang_argument *arguments, whit_lang_argument *result,
                        whit_error *error);
    void *user;
} whit_lang_host;

typedef struct whit_lang_options {
    /* Maximum number of steps of a run; 0: 10^12. A statement, a call, a round of a loop and 64 elements of an array
     * are one step each; printing a value takes 64 steps, and 64 more for each number printed. */
    uint64_t max_steps;
    uint64_t max_ms;      /* maximum processor time of one run; 0: no limit */
    size_t max_bytes;     /* maximum memory of all arrays; 0: 64 MiB */
    int tier;             /* highest tier that may be used: WHIT_LANG_WALK, ... */
    bool no_closed_forms; /* execute every round of a loop instead of computing loops in closed form */
    bool echo;            /* print the values of expression statements, as in an interactive session */
    const whit_quat_kernels *quat;
    const whit_lang_host *host; /* functions of the host; may be NULL; must outlive the session */
    const whit_lang_jit *jit;   /* tier 2, needed for WHIT_LANG_NATIVE; NULL: machine code is not used */
    whit_lang_print_fn *print;  /* receives the output of print; NULL: nothing is printed */
    void *user;
    const volatile bool *cancel; /* true ends the run; may be NULL */
    const whit_allocator *allocator;
} whit_lang_options;

whit_status whit_lang_open(const whit_lang_options *options, whit_lang **lang, whit_error *error);
void whit_lang_close(whit_lang *lang);

/* Holds the place of the last error in the text: line and column, from 1; both are 0 if the error has no place. */
typedef struct whit_lang_place {
    uint32_t line, column;
} whit_lang_place;
whit_lang_place whit_lang_failed_at(const whit_lang *lang);

/* Declares a variable that the host sets: a vector, an integer or a float. It must be declared before a text that uses
 * it is loaded. */
whit_status whit_lang_declare(whit_lang *lang, const char *name, whit_lang_type type, whit_error *error);
/* Set a declared variable; the elements of a vector are copied. A variable to which a vector is lent cannot be set:
 * WHIT_ERROR_ARGUMENT. */
whit_status whit_lang_set_int(whit_lang *lang, const char *name, int64_t value, whit_error *error);
whit_status whit_lang_set_float(whit_lang *lang, const char *name, double value, whit_error *error);
whit_status whit_lang_set_vec(whit_lang *lang, const char *name, const float *x, uint32_t n, whit_error *error);
/* Lends the program the host's own vector, without a copy. Only one variable of a session can have a lent vector; for a
 * second one the error is WHIT_ERROR_ARGUMENT. After a successful run, x contains the elements that the program has
 * assigned to the variable; a run fails at its end if they are not n. x must stay valid until the next call of this
 * function or whit_lang_close. */
whit_status whit_lang_lend_vec(whit_lang *lang, const char *name, float *x, uint32_t n, whit_error *error);
/* Return the value of a variable of the outermost level; false if there is no such variable, it has another type, or it
 * is a vector without a value. A vector is valid until the next run, or until the variable is set. */
bool whit_lang_get_int(const whit_lang *lang, const char *name, int64_t *value);
bool whit_lang_get_vec(const whit_lang *lang, const char *name, float **x, uint32_t *n);

/* Checks and compiles a text. `name` begins error messages ("NAME:LINE:COLUMN: ..."). On failure all definitions of the
 * text are removed. A text has at most WHIT_LANG_MAX_TEXT_BYTES bytes, without a UTF-8 byte order mark at its
 * beginning, which is ignored. */
#define WHIT_LANG_MAX_TEXT_BYTES ((size_t)1 << 20)
whit_status whit_lang_load(whit_lang *lang, const char *name, const char *text, size_t n_bytes, whit_error *error);
/* Removes the definitions of the text loaded last, which must not have run. */
void whit_lang_forget(whit_lang *lang);
/* Sets the line number of the next text's first line, for sessions that number all their lines consecutively. */
void whit_lang_begin_line(whit_lang *lang, uint32_t line);
/* Runs the text loaded last; it may be run repeatedly. The error is WHIT_ERROR_ARGUMENT if no text was loaded, or the
 * last one could not be loaded or was forgotten. After a failure, variables keep the values that they had at that
 * point. If a limit is exceeded, the error is WHIT_ERROR_LIMIT. */
whit_status whit_lang_run(whit_lang *lang, whit_error *error);

/* Appends all checked functions and the text loaded last as the tier runs them (optimised unless it is the tree
 * walker), for people to read: one statement per line. Returns false if memory runs out. */
bool whit_lang_plan(const whit_lang *lang, whit_buf *out);

/* Appends the machine code of the text loaded last, as bytes in hexadecimal, which objdump -D -b binary can read once
 * converted; without machine code, a line that says so. Returns false if memory runs out. */
bool whit_lang_asm(const whit_lang *lang, whit_buf *out);

#endif
