/* SPDX-License-Identifier: MIT */
#include "base/shell.h"

#include <stdlib.h>

FILE *whit_shell_open(const char *folder, const char *line)
{
    char *command = NULL;
    /* The folder's name is not part of the command line, so that none of it is run as a command. */
    if (setenv("WHIT_AGENT_PROJECT", folder, 1) != 0 ||
        asprintf(&command, "cd \"$WHIT_AGENT_PROJECT\" && { %s\n} 2>&1", line) < 0)
        return NULL;
    FILE *shell = popen(command, "r");
    free(command);
    return shell;
}
