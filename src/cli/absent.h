/* SPDX-License-Identifier: MIT
 * Commands that the program of one system lacks. */
#ifndef WHIT_CLI_ABSENT_H
#define WHIT_CLI_ABSENT_H

typedef struct cli_absent {
    const char *name, *reason; /* "it needs ..." */
} cli_absent;

/* Ends with name NULL; defined beside the table of verbs. */
extern const cli_absent cli_absent_verbs[];

#endif
