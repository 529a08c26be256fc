/* SPDX-License-Identifier: MIT
 * Opens programs of the array language for the verbs that run them. */
#ifndef WHIT_CLI_PROGRAM_H
#define WHIT_CLI_PROGRAM_H

#include "cli/flags.h"
#include "kernels/quat/quat.h"
#include "lang/core/lang.h"

typedef struct cli_program_flags {
    uint32_t limit_ms, limit_mb;
    bool every_round;
} cli_program_flags;
extern const cli_option cli_program_options[];
#define CLI_PROGRAM_DEFAULTS                                                                                           \
    {                                                                                                                  \
        .limit_mb = 64                                                                                                 \
    }

typedef struct cli_program {
    whit_quat_kernels kernels;
    whit_lang *lang;
} cli_program;

/* Sets *tier to the highest execution tier that the environment variable WHIT_TIER allows. Returns CLI_OK, or an exit
 * status after a message. */
int cli_program_tier(const cli_call *call, int *tier);

/* Opens a session of the array language, which prints on stdout and obeys WHIT_TIER and WHIT_CPU. Returns CLI_OK, or an
 * exit status after a message. */
int cli_program_open(cli_call *call, const cli_program_flags *flags, bool echo, cli_program *program);
void cli_program_close(cli_program *program);

/* Prints an error's message, and the line of the program with a caret under the place. Returns the exit status. */
int cli_program_fail(cli_call *call, const cli_program *program, const char *text, size_t n_bytes,
                     const whit_error *error);

/* Reads the text of a program from a text file, a file in binary form (lang/core/binary.h), or the last PROGRAM frame
 * of an .ndf; "-" is stdin, which cannot be an .ndf. The caller frees the text. Returns CLI_OK, or an exit status after
 * a message. */
int cli_read_program(cli_call *call, const char *path, cli_text *text);

/* Reads the program of a model family (--family). The caller frees the text. Returns CLI_OK, or an exit status after a
 * message. */
int cli_read_family(cli_call *call, const char *path, cli_text *text);
/* Prints the message of an error that occurred with a model family's program, and a caret if the mistake is in the
 * program. Returns the exit status. */
int cli_family_fail(cli_call *call, const char *path, const cli_text *text, const whit_error *error);

#endif
