/* SPDX-License-Identifier: MIT */
#include "base/shell.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

FILE *whit_shell_open(const char *folder, const char *line)
{
    char *command = NULL;
    /* The folder's name is passed in a variable and not in the command line, so that the shell does not execute parts
     * of it. */
    if (setenv("WHIT_AGENT_PROJECT", folder, 1) != 0 ||
        asprintf(&command, "cd \"$WHIT_AGENT_PROJECT\" && { %s\n} 2>&1", line) < 0)
        return NULL;
    FILE *shell = popen(command, "r");
    free(command);
    return shell;
}

bool whit_shell_at_terminal(const char *line, char *const *paths, size_t n_paths)
{
    char *command = NULL;
    if (asprintf(&command, "%s \"$@\"", line) < 0) return false;
    const char **words = calloc(n_paths + 5, sizeof *words);
    pid_t child = -1;
    int status = -1;
    if (words) {
        size_t n = 0;
        words[n++] = "sh", words[n++] = "-c", words[n++] = command, words[n++] = "sh";
        for (size_t i = 0; i < n_paths; i++)
            if (paths[i]) words[n++] = paths[i];
        child = n > 4 ? fork() : -1;
    }
    if (child == 0) {
        int terminal = open("/dev/tty", O_RDWR);
        for (int fd = 0; terminal >= 0 && fd < 3; fd++) dup2(terminal, fd);
        execv("/bin/sh", (char *const *)(uintptr_t)words);
        _exit(127);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0)
        if (errno != EINTR) break;
    free(words);
    free(command);
    return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

char *whit_shell_program(void)
{
    return strdup("/proc/$PPID/exe");
}
