/* SPDX-License-Identifier: MIT */
#include "agent/light.h"

#include "agent/guard.h"
#include "agent/review.h"
#include "base/file.h"
#include "base/plain.h"
#include "code/diff.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

/* Resolves a path: the nearest existing folder with links followed, and the rest of the name. `real` gets the whole
 * path; the result is the part below the project, or "" outside of it. */
static const char *real_below(const char *project, const char *path, char real[PATH_MAX])
{
    char folder[PATH_MAX], whole[PATH_MAX];
    size_t n = strlen(project);
    *real = 0;
    if (snprintf(whole, sizeof whole, "%s/%s", project, path) >= (int)sizeof whole) return "";
    memcpy(folder, whole, strlen(whole) + 1);
    while (!realpath(folder, real)) {
        char *slash = strrchr(folder, '/');
        *real = 0;
        if (!slash || (size_t)(slash - folder) < n) return "";
        *slash = 0;
    }
    const char *rest = whole + strlen(folder); /* "" or with its slash */
    size_t n_real = strlen(real);
    if (n_real + strlen(rest) >= PATH_MAX) return "";
    memcpy(real + n_real, rest, strlen(rest) + 1);
    if (n == 1) n = 0; /* the project is "/" */
    return strncmp(real, project, n) == 0 && real[n] == '/' ? real + n + 1 : "";
}

/* Characters that a reader does not see, or sees elsewhere, in a line that is new. */
static bool adds_hidden(const whit_change *c)
{
    whit_buf runs = {0};
    const char *before = c->was && c->before_bytes ? c->before : "", *after = c->is && c->after_bytes ? c->after : "";
    size_t n_after = c->is ? c->after_bytes : 0, at = 0, line = 0;
    bool found = !whit_diff_lines(before, c->was ? c->before_bytes : 0, after, n_after, &runs);
    const whit_diff_run *run = (const whit_diff_run *)(const void *)runs.data;
    for (size_t i = 0; !found && i < runs.size_bytes / sizeof *run; i++)
        for (; !found && at < n_after && line < run[i].new_line + run[i].n_new; line++) {
            const char *end = memchr(after + at, '\n', n_after - at);
            size_t next = end ? (size_t)(end - after) + 1 : n_after;
            bool has_mark = !at && n_after >= 3 && memcmp(after, "\xEF\xBB\xBF", 3) == 0;
            if (line >= run[i].new_line)
                found = whit_plain_has_hidden(after + at + 3 * has_mark, next - at - 3 * has_mark);
            at = next;
        }
    whit_buf_free(&runs);
    return found;
}

const char *whit_light_red(const char *project, const whit_change *change)
{
    char real[PATH_MAX];
    const char *below = real_below(project, change->path, real);
    if (whit_guard_folder_of(real) != WHIT_GUARD_ELSEWHERE) return "it belongs to this program's own configuration";
    if (whit_guard_is_configuration(project, change->path) || whit_guard_is_configuration(project, below))
        return "it belongs to the project's configuration, which programs obey";
    if (whit_guard_is_secret(change->path) || whit_guard_is_secret(below)) return "it may hold keys";
    if (change->was && !change->is) return "it deletes a file";
    struct stat about;
    if (change->was && stat(real, &about) == 0 && about.st_nlink > 1 && !change->open)
        return "it has other names, whose text would change, too";
    if (adds_hidden(change)) return "it adds characters that are invisible or change the order of others";
    return whit_review_code(change);
}

bool whit_light_secret(const char *project, const char *path)
{
    char real[PATH_MAX];
    const char *below = real_below(project, path, real);
    return whit_guard_is_secret(path) || whit_guard_is_secret(below) || whit_guard_folder_of(real) == WHIT_GUARD_STATE;
}

static int open_terminal(void)
{
    return open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
}

bool whit_light_has_terminal(void)
{
    int terminal = open_terminal();
    if (terminal >= 0) close(terminal);
    return terminal >= 0;
}

void whit_light_tell(const char *text, size_t n)
{
    int terminal = open_terminal();
    if (terminal < 0) return;
    (void)whit_write_all(terminal, text, n);
    close(terminal);
}

/* The first letter that is typed at the question; 0 without a terminal. */
static char ask(char *line, size_t n)
{
    char answer[16] = "";
    int terminal = open_terminal();
    if (terminal < 0) return 0;
    (void)tcflush(terminal, TCIFLUSH); /* input that was typed before the question does not answer it */
    /* The reason has a path that a model chose: nothing in it may command the terminal. */
    dprintf(terminal, "%.*s", (int)whit_plain_line(line, n), line);
    ssize_t got = read(terminal, answer, sizeof answer - 1);
    close(terminal);
    return got > 0 ? answer[0] : 0;
}

bool whit_light_agreed(const char *reason, size_t n_files)
{
    char line[4096 + PATH_MAX * 2];
    int n = n_files ? snprintf(line, sizeof line, "%s%sWrite %zu file%s? [y/N] ", reason ? reason : "",
                               reason ? ". " : "", n_files, n_files == 1 ? "" : "s")
                    : snprintf(line, sizeof line, "%s. Do it? [y/N] ", reason);
    if (n < 0 || (size_t)n >= sizeof line) return false;
    char letter = ask(line, (size_t)n);
    return letter == 'y' || letter == 'Y';
}

void whit_light_choose(const whit_hunks *hunks, void (*show)(void *user, const whit_hunk *hunk), void *user,
                       uint8_t *taken)
{
    char line[PATH_MAX + 200];
    const char *reason = NULL, *path = "";
    size_t n_files = 0;
    for (size_t i = 0; i < hunks->n; i++) {
        n_files += i == 0 || strcmp(hunks->list[i].path, hunks->list[i - 1].path) != 0;
        if (!reason && hunks->list[i].reason) reason = hunks->list[i].reason, path = hunks->list[i].path;
    }
    int n = snprintf(line, sizeof line, "%s%s%s%sWrite %zu file%s?%s [y/N] ", path, reason ? ": " : "",
                     reason ? reason : "", reason ? ". " : "", n_files, n_files == 1 ? "" : "s",
                     hunks->n > 1 ? " (h: hunk by hunk)" : "");
    if (n < 0 || (size_t)n >= sizeof line) return;
    char letter = ask(line, (size_t)n);
    if (letter == 'y' || letter == 'Y') memset(taken, 1, hunks->n);
    for (size_t i = 0; (letter == 'h' || letter == 'H') && i < hunks->n; i++) {
        const whit_hunk *hunk = &hunks->list[i];
        show(user, hunk);
        n = snprintf(line, sizeof line, "%s%s%zu of %zu, %s: take it? [y/N] ", hunk->reason ? hunk->reason : "",
                     hunk->reason ? ". " : "", i + 1, hunks->n, hunk->path);
        char own = n > 0 && (size_t)n < sizeof line ? ask(line, (size_t)n) : 0;
        taken[i] = own == 'y' || own == 'Y';
    }
}
