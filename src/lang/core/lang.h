/* SPDX-License-Identifier: MIT
 * Runs the array language: a program is loaded, checked, compiled and run, all within limits.
 *
 * docs/use/arrays.md is the reference. One `whit_lang` is a session of one thread: later texts see what earlier texts
 * define. Programs reach no file, no network and no memory but their own. */
#ifndef WHIT_LANG_CORE_LANG_H
#define WHIT_LANG_CORE_LANG_H

#include "base/mem.h"
#include "base/quat.h"

typedef struct whit_lang whit_lang;

typedef enum whit_lang_type {
    WHIT_LANG_NONE,
    WHIT_LANG_INT,   /* i64; arithmetic is modulo 2^64 */
    WHIT_LANG_FLOAT, /* f64 */
    WHIT_LANG_TEXT,  /* "...", only for functions of the host */
    WHIT_LANG_HOST,  /* value of the host's functions, which programs only pass on */
    WHIT_LANG_VEC,   /* vector of f32 */
    WHIT_LANG_QUAT,  /* quaternary vector */
} whit_lang_type;
const char *whit_lang_type_name(whit_lang_type type);

/* These are the tiers of execution, which all give the same bits. */
enum { WHIT_LANG_WALK, WHIT_LANG_CLOSURES, WHIT_LANG_NATIVE, WHIT_LANG_TIERS };
typedef struct whit_lang_jit whit_lang_jit; /* tier 2: lang/jit/jit.h */

/* Receives the output of `print`: a complete line with its line feed. Returning false ends the run. */
typedef bool whit_lang_print_fn(void *user, const char *text, size_t n_bytes);

/* Describes a function of the host: "ift:h" takes an integer, a float and a text and gives a value of the host; ":-"
 * gives nothing. It has at most WHIT_LANG_MAX_HOST_ARGUMENTS arguments. */
typedef struct whit_lang_host_function {
    const char *name, *signature;
} whit_lang_host_function;
#define WHIT_LANG_MAX_HOST_ARGUMENTS 8
typedef union whit_lang_argument {
    int64_t i; /* an integer, or a value of the host */
    double f;
    const char *text; /* valid as long as the program */
} whit_lang_argument;
/* Lists the functions of a host. Programs that call them are run by the tree walker, regardless of the requested
 * tier. */
typedef struct whit_lang_host {
    const whit_lang_host_function *functions;
    uint32_t n_functions;
    /* Calls function number `function`; a failure ends the run, its line begins with the place of the call. */
    whit_status (*call)(void *user, uint32_t function, const whit_lang_argument *arguments, whit_lang_argument *result,
                        whit_error *error);
    void *user;
} whit_lang_host;

typedef struct whit_lang_options {
    /* Limits the number of steps: a statement, a call, a loop round or 64 array elements is one step; 0: 10^12. */
    uint64_t max_steps;
    uint64_t max_ms;      /* processor time of one run; 0: no limit */
    size_t max_bytes;     /* memory of all arrays; 0: 64 MiB */
    int tier;             /* WHIT_LANG_: the highest tier that may be used */
    bool no_closed_forms; /* execute every round of a loop */
    bool echo;            /* prints the values of expression statements, as in an interactive session */
    const whit_quat_kernels *quat;
    const whit_lang_host *host; /* may be NULL; must outlive the session */
    const whit_lang_jit *jit;   /* needed for WHIT_LANG_NATIVE; NULL: no native tier */
    whit_lang_print_fn *print;  /* NULL: nothing is printed */
    void *user;
    const volatile bool *cancel; /* may be NULL */
    const whit_allocator *allocator;
} whit_lang_options;

whit_status whit_lang_open(const whit_lang_options *options, whit_lang **lang, whit_error *error);
void whit_lang_close(whit_lang *lang);

/* Holds the place of the last error in the text: line and column from 1, 0 if it has no place. */
typedef struct whit_lang_place {
    uint32_t line, column;
} whit_lang_place;
whit_lang_place whit_lang_failed_at(const whit_lang *lang);

/* Declares a variable that the host sets (a vector, an integer or a float) before a text that uses
 * it is loaded. */
whit_status whit_lang_declare(whit_lang *lang, const char *name, whit_lang_type type, whit_error *error);
/* Set a declared variable; the vector's elements are copied into the program's own. */
whit_status whit_lang_set_int(whit_lang *lang, const char *name, int64_t value, whit_error *error);
whit_status whit_lang_set_float(whit_lang *lang, const char *name, double value, whit_error *error);
whit_status whit_lang_set_vec(whit_lang *lang, const char *name, const float *x, uint32_t n, whit_error *error);
/* Lends the program the host's own vector, without a copy: x has, after the run, what the program assigns to the
 * variable. x must stay until the next call of this function or until whit_lang_close. */
whit_status whit_lang_lend_vec(whit_lang *lang, const char *name, float *x, uint32_t n, whit_error *error);
/* Return the value of a variable of the outermost level after a run; false if it has no value of this type. The vector
 * lives until the next run. */
bool whit_lang_get_int(const whit_lang *lang, const char *name, int64_t *value);
bool whit_lang_get_vec(const whit_lang *lang, const char *name, float **x, uint32_t *n);

/* Compiles a text. `name` begins error lines ("NAME:LINE:COLUMN: ..."). On failure none of its definitions remain.
 * Texts are at most WHIT_LANG_MAX_TEXT_BYTES. */
#define WHIT_LANG_MAX_TEXT_BYTES ((size_t)1 << 20)
whit_status whit_lang_load(whit_lang *lang, const char *name, const char *text, size_t n_bytes, whit_error *error);
/* Removes the definitions of the text loaded last, as if it had failed; for a text that was not run. */
void whit_lang_forget(whit_lang *lang);
/* Sets the number of the first line of the next text, for sessions whose lines are numbered consecutively. */
void whit_lang_begin_line(whit_lang *lang, uint32_t line);
/* Runs the text loaded last; may be repeated. After a failure the variables keep the values they had then. Reaching a
 * limit is WHIT_ERROR_LIMIT. */
whit_status whit_lang_run(whit_lang *lang, whit_error *error);

/* Prints the text loaded last as its tier runs it, one statement per line, for people. */
bool whit_lang_plan(const whit_lang *lang, whit_buf *out);

/* Appends the machine code of the text loaded last, as bytes in hexadecimal (objdump -D -b binary reads them). */
bool whit_lang_asm(const whit_lang *lang, whit_buf *out);

#endif
