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

/* Reads the highest tier that WHIT_TIER allows. The result is CLI_OK, or a status after a line. */
int cli_program_tier(const cli_call *call, int *tier);

/* Opens a session that prints on stdout and obeys WHIT_TIER and WHIT_CPU. The result is CLI_OK, or a status after a
 * line. */
int cli_program_open(cli_call *call, const cli_program_flags *flags, bool echo, cli_program *program);
void cli_program_close(cli_program *program);

/* Prints the message of a failure, the program's line and a caret under the place; returns the exit status. */
int cli_program_fail(cli_call *call, const cli_program *program, const char *text, size_t n_bytes,
                     const whit_error *error);

/* Reads a program's text from a text, a binary form (lang/core/binary.h), or the last PROGRAM frame of an .ndf; - is
 * stdin. The result is CLI_OK, or a status after a line; free() the text. */
int cli_read_program(cli_call *call, const char *path, cli_text *text);

/* Reads a family's program (--family). The result is CLI_OK, or a status after a line; free() the text. */
int cli_read_family(cli_call *call, const char *path, cli_text *text);
/* Prints the message of a failure of an object opened with the program, and a caret if the mistake is in the program;
 * returns the exit status. */
int cli_family_fail(cli_call *call, const char *path, const cli_text *text, const whit_error *error);

#endif
