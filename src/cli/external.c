/* SPDX-License-Identifier: MIT */
#include "cli/external.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/folders.h"
#include "base/file.h"
#include "base/items.h"
#include "base/status.h"

#define TEXT_BYTES_MAX ((size_t)4 << 20)

whit_status cli_editor_folder(char folder[PATH_MAX], whit_error *error)
{
    const char *place = getenv("TMPDIR");
    snprintf(folder, PATH_MAX, "%s/whit-edit-XXXXXX", place && place[0] == '/' ? place : "/tmp");
    return mkdtemp(folder) ? WHIT_OK : whit_fail_errno(error, folder, "make");
}

void cli_editor_remove(const char *folder)
{
    whit_agent_remove_all(AT_FDCWD, folder);
}

bool cli_editor_run(char *const *paths, size_t n_paths)
{
    const char *editor = getenv("VISUAL");
    char *line = NULL;
    if (!editor || !*editor) editor = getenv("EDITOR");
    if (asprintf(&line, "%s \"$@\"", editor && *editor ? editor : "/proc/$PPID/exe edit") < 0) return false;
    const char **arguments = calloc(n_paths + 5, sizeof *arguments);
    pid_t child = -1;
    int status = -1;
    if (arguments) {
        size_t n = 0;
        arguments[n++] = "sh", arguments[n++] = "-c", arguments[n++] = line, arguments[n++] = "sh";
        for (size_t i = 0; i < n_paths; i++)
            if (paths[i]) arguments[n++] = paths[i];
        child = n > 4 ? fork() : -1;
    }
    if (child == 0) {
        int terminal = open("/dev/tty", O_RDWR);
        for (int fd = 0; terminal >= 0 && fd < 3; fd++) dup2(terminal, fd);
        execv("/bin/sh", (char *const *)(uintptr_t)arguments);
        _exit(127);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0)
        if (errno != EINTR) break;
    free(arguments);
    free(line);
    return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

whit_status cli_editor_text(const char *name, whit_buf *text, bool *is_done, whit_error *error)
{
    char folder[PATH_MAX], *path = NULL;
    *is_done = false;
    WHIT_TRY(cli_editor_folder(folder, error));
    whit_status status =
        asprintf(&path, "%s/%s", folder, name) < 0 ? whit_fail_memory(error, "a path", PATH_MAX) : WHIT_OK;
    if (status != WHIT_OK) path = NULL;
    if (status == WHIT_OK)
        status = whit_write_file(path, text->size_bytes ? whit_chars(text) : "", text->size_bytes, error);
    if (status == WHIT_OK && cli_editor_run(&path, 1)) {
        text->size_bytes = 0;
        status = whit_read_file(path, TEXT_BYTES_MAX, text, error);
        *is_done = status == WHIT_OK;
    }
    cli_editor_remove(folder);
    free(path);
    return status;
}
