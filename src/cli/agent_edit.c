/* SPDX-License-Identifier: MIT
 * "e" at a question of whit agent: the person edits what a model proposes. */
#include "agent/changes.h"
#include "agent/folders.h"
#include "base/file.h"
#include "base/status.h"
#include "cli/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define FILE_BYTES_MAX ((size_t)64 << 20)

/* The copies that are edited, in a folder that only the person can read: FOLDER/0/main.c, FOLDER/1/main.h. */
struct copies {
    char folder[PATH_MAX];
    char **paths; /* a path for each change; NULL: it is not edited */
    size_t n;
    bool is_made; /* the folder is */
};

static whit_status write_copies(struct copies *copies, const whit_changes *staged, whit_error *error)
{
    const char *place = getenv("TMPDIR");
    copies->n = whit_changes_count(staged);
    copies->paths = calloc(copies->n + 1, sizeof *copies->paths);
    snprintf(copies->folder, sizeof copies->folder, "%s/whit-edit-XXXXXX", place && place[0] == '/' ? place : "/tmp");
    if (!copies->paths) return whit_fail_memory(error, "the copies", copies->n);
    if (!mkdtemp(copies->folder)) return whit_fail_errno(error, copies->folder, "make");
    copies->is_made = true;
    for (size_t i = 0; i < copies->n; i++) {
        const whit_change *c = whit_changes_at(staged, i);
        const char *slash = strrchr(c->path, '/');
        if (!c->is || c->open) continue; /* a deletion has no text, an open text is in an editor already */
        if (asprintf(&copies->paths[i], "%s/%zu/%s", copies->folder, i, slash ? slash + 1 : c->path) < 0) {
            copies->paths[i] = NULL;
            return whit_fail_memory(error, "a path", strlen(c->path));
        }
        char *end = strrchr(copies->paths[i], '/');
        *end = 0;
        int made = mkdir(copies->paths[i], 0700);
        *end = '/';
        if (made != 0) return whit_fail_errno(error, copies->paths[i], "make");
        WHIT_TRY(whit_write_file(copies->paths[i], c->after ? c->after : "", c->after_bytes, error));
    }
    return WHIT_OK;
}

static whit_status read_copies(const struct copies *copies, whit_changes *staged, whit_error *error)
{
    for (size_t i = 0; i < copies->n; i++) {
        whit_buf text = {0};
        if (!copies->paths[i]) continue;
        whit_status status = whit_read_file(copies->paths[i], FILE_BYTES_MAX, &text, error);
        if (status == WHIT_OK) status = whit_changes_replace(staged, i, &text, error);
        if (status != WHIT_OK) {
            whit_buf_free(&text);
            return status;
        }
    }
    return WHIT_OK;
}

/* Removes the folder with all that the editor left in it: backups and swap files hold the same text. */
static void remove_copies(struct copies *copies)
{
    if (copies->is_made) whit_agent_remove_all(AT_FDCWD, copies->folder);
    for (size_t i = 0; copies->paths && i < copies->n; i++) free(copies->paths[i]);
    free(copies->paths);
}

/* Runs the editor on the copies at the person's terminal. Returns whether it ended well. */
static bool run_editor(const struct copies *copies)
{
    const char *editor = getenv("VISUAL");
    char *line = NULL;
    if (!editor || !*editor) editor = getenv("EDITOR");
    if (asprintf(&line, "%s \"$@\"", editor && *editor ? editor : "/proc/$PPID/exe edit") < 0) return false;
    const char **arguments = calloc(copies->n + 5, sizeof *arguments);
    pid_t child = -1;
    int status = -1;
    if (arguments) {
        size_t n = 0;
        arguments[n++] = "sh", arguments[n++] = "-c", arguments[n++] = line, arguments[n++] = "sh";
        for (size_t i = 0; i < copies->n; i++)
            if (copies->paths[i]) arguments[n++] = copies->paths[i];
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

whit_status cli_agent_edit(struct whit_changes *staged, whit_error *error)
{
    struct copies copies = {.n = 0};
    whit_status status = write_copies(&copies, staged, error);
    if (status == WHIT_OK) {
        if (run_editor(&copies))
            status = read_copies(&copies, staged, error);
        else
            cli_note("the editor did not end well ($VISUAL and $EDITOR name it): the changes are as they were");
    }
    remove_copies(&copies);
    return status;
}
