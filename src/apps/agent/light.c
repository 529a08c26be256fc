/* SPDX-License-Identifier: MIT */
#include "agent/light.h"

#include "agent/guard.h"
#include "agent/ignored.h"
#include "agent/links.h"
#include "agent/review.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/items.h"
#include "base/lookalike.h"
#include "base/phrase.h"
#include "base/plain.h"
#include "code/diff.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

const char *whit_light_real(const char *project, const char *path, char real[PATH_MAX])
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
    const char *rest = whole + strlen(folder); /* the part that does not exist, with its leading slash, or "" */
    size_t n_real = strlen(real);
    if (n_real + strlen(rest) >= PATH_MAX) return "";
    memcpy(real + n_real, rest, strlen(rest) + 1);
    if (n == 1) n = 0; /* the project is "/" */
    return strncmp(real, project, n) == 0 && real[n] == '/' ? real + n + 1 : "";
}

/* Returns whether a line contains control characters, which may command a terminal or end a line in some programs.
 * Tabs, form feeds and CR LF are allowed. */
static bool has_controls(const char *line, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool is_end = line[i] == '\n' || (line[i] == '\r' && i + 2 == n && line[i + 1] == '\n');
        if ((uint8_t)line[i] < 0x20 ? !is_end && line[i] != '\t' && line[i] != '\f' : line[i] == 0x7F) return true;
    }
    return false;
}

static bool is_hidden(const char *line, size_t n)
{
    return whit_plain_has_hidden(line, n) || has_controls(line, n);
}

/* Returns whether is_one() is true of a changed or added line, without a byte order mark at the beginning of the file,
 * which is allowed. Returns true if memory runs out. */
static bool adds_line(const whit_change *c, bool (*is_one)(const char *line, size_t n))
{
    whit_buf runs = {0};
    const char *before = c->was && c->before_bytes ? c->before : "";
    const char *after = c->is && c->after_bytes ? c->after : "";
    size_t n_after = c->is ? c->after_bytes : 0, at = 0, line = 0;
    bool found = !whit_diff_lines(before, c->was ? c->before_bytes : 0, after, n_after, &runs);
    const whit_diff_run *run = WHIT_ITEMS(const whit_diff_run, &runs);
    for (size_t i = 0; !found && i < runs.size_bytes / sizeof *run; i++)
        for (; !found && at < n_after && line < run[i].new_line + run[i].n_new; line++) {
            const char *end = memchr(after + at, '\n', n_after - at);
            size_t next = end ? (size_t)(end - after) + 1 : n_after;
            bool has_mark = !at && n_after >= 3 && memcmp(after, "\xEF\xBB\xBF", 3) == 0;
            if (line >= run[i].new_line) found = is_one(after + at + 3 * has_mark, next - at - 3 * has_mark);
            at = next;
        }
    whit_buf_free(&runs);
    return found;
}

/* Reasons that follow from the path and the disk. They may change while a person reads, since folders, links and other
 * files may change. */
enum { OWN_SETTINGS, OBEYED, PROGRAM, KEYS, DELETED, OTHER_NAMES, HIDES_FILES, N_PLACE_REASONS };
static const char *const place_reasons[N_PLACE_REASONS] = {
    [OWN_SETTINGS] = "it belongs to this program's own configuration",
    [OBEYED] = "it belongs to the project's configuration, which programs obey",
    [PROGRAM] = "it belongs to an MCP server, which runs outside the sandbox",
    [KEYS] = "it may contain keys",
    [DELETED] = "it deletes a file",
    [OTHER_NAMES] = "it has other names, whose text would change, too",
    [HIDES_FILES] = "it hides files of the project from checks",
};

/* Returns the place_reasons of a change, reason k as bit k. */
static unsigned red_by_place(const char *project, const whit_links *links, const whit_changes *set,
                             const whit_change *change)
{
    char real[PATH_MAX];
    const char *below = whit_light_real(project, change->path, real);
    const unsigned kinds = whit_links_to(links, real);
    unsigned found = 0;
    if (whit_guard_folder_of(real) != WHIT_GUARD_ELSEWHERE || whit_guard_is_settings(real, "agent.json") ||
        whit_guard_is_settings(real, "edit.conf"))
        found |= 1u << OWN_SETTINGS;
    else if (whit_guard_is_configuration(project, change->path) || whit_guard_is_configuration(project, below) ||
             whit_links_hook(project, real) || (kinds & WHIT_LINKS_OBEYED))
        found |= 1u << OBEYED;
    if (whit_guard_is_program(real)) found |= 1u << PROGRAM;
    if (whit_guard_is_secret(change->path) || whit_guard_is_secret(below) || (kinds & WHIT_LINKS_SECRET))
        found |= 1u << KEYS;
    if (change->was && !change->is) found |= 1u << DELETED;
    struct stat about;
    if (change->was && change->is && stat(real, &about) == 0 && about.st_nlink > 1 && !change->open)
        found |= 1u << OTHER_NAMES;
    if (whit_ignored_more(project, set, below, change)) found |= 1u << HIDES_FILES;
    return found;
}

static void hash_key(const char *text, size_t begin, size_t end, uint8_t digest[WHIT_HASH_BYTES])
{
    whit_hash hash;
    whit_hash_begin(&hash, "agent-key");
    whit_hash_add(&hash, text + begin, end - begin);
    whit_hash_end(&hash, digest);
}

/* Returns whether the old text has a key that the new text lacks, or has more often than the new text; also if memory
 * runs out. The change may have removed only the first line of a private key: the rest is not recognised as a key, and
 * a model could read it. */
static bool takes_key(const whit_change *c)
{
    enum { N = WHIT_HASH_BYTES };
    whit_buf kept = {0}; /* hashes of the keys in the new text that no key of the old text is paired with */
    uint8_t digest[N];
    size_t begin = 0, end;
    if (!whit_change_had_key(c)) return false;
    const size_t n_after = c->is ? c->after_bytes : 0;
    for (; begin < n_after && whit_guard_find_key(c->after, n_after, &begin, &end); begin = end) {
        hash_key(c->after, begin, end, digest);
        whit_buf_append(&kept, digest, N);
    }
    bool is_taken = kept.failed;
    begin = 0;
    for (; begin < c->before_bytes && whit_guard_find_key(c->before, c->before_bytes, &begin, &end); begin = end) {
        size_t at = 0;
        hash_key(c->before, begin, end, digest);
        while (at < kept.size_bytes && memcmp(kept.data + at, digest, N) != 0) at += N;
        is_taken = is_taken || at >= kept.size_bytes;
        if (is_taken) break;
        kept.size_bytes -= N;
        memmove(kept.data + at, kept.data + kept.size_bytes, N);
    }
    whit_buf_free(&kept);
    return is_taken;
}

/* Appends a reason to those in `room`; one without room is left out. */
static void join_reason(char room[WHIT_REASON_BYTES], const char *reason)
{
    const size_t n = strlen(room);
    if (!reason || n + strlen(reason) + sizeof ", and " > WHIT_REASON_BYTES) return;
    snprintf(room + n, WHIT_REASON_BYTES - n, "%s%s", n ? ", and " : "", reason);
}

/* Appends the reasons that follow from the text alone. */
static void red_by_text(const char *project, const whit_changes *set, const whit_change *change,
                        char room[WHIT_REASON_BYTES])
{
    char review[WHIT_REASON_BYTES];
    if (takes_key(change)) join_reason(room, "it takes a key, or a part of one, out of a file");
    /* files with keys are not copied for commands */
    if (change->is && !whit_change_had_key(change) && whit_guard_has_key(change->after, change->after_bytes))
        join_reason(room, "it adds a key, after which checks do not see the file");
    if (adds_line(change, is_hidden))
        join_reason(room, "it adds characters that are invisible or change the order of others");
    if (adds_line(change, whit_lookalike_is_in) ||
        (!change->was && whit_lookalike_is_in(change->path, strlen(change->path))))
        join_reason(room, "it adds letters that look like Latin ones or signs, and are others");
    const whit_review_project place = {project, set};
    join_reason(room, whit_review_code(change, &place, review));
}

static const char *red_by_all(const char *project, const whit_links *links, const whit_changes *set,
                              const whit_change *change, char room[WHIT_REASON_BYTES])
{
    const unsigned found = red_by_place(project, links, set, change);
    *room = 0;
    for (unsigned k = 0; k < N_PLACE_REASONS; k++)
        if (found >> k & 1) join_reason(room, place_reasons[k]);
    red_by_text(project, set, change, room);
    return *room ? room : NULL;
}

const char *whit_light_red(const char *project, const whit_changes *set, const whit_change *change,
                           char room[WHIT_REASON_BYTES])
{
    whit_links links;
    whit_links_list(&links, project);
    const char *reasons = red_by_all(project, &links, set, change, room);
    whit_links_free(&links);
    return reasons;
}

const whit_change *whit_light_mark(const char *project, const whit_changes *set)
{
    const whit_change *first = NULL;
    whit_links links;
    whit_links_list(&links, project);
    for (size_t i = 0; i < whit_changes_count(set); i++) {
        whit_change *c = whit_changes_at(set, i);
        (void)red_by_all(project, &links, set, c, c->reason);
        c->has_links = strstr(c->reason, place_reasons[OTHER_NAMES]) != NULL;
        c->place = whit_project_place(project, c->path);
        if (*c->reason && !first) first = c;
    }
    whit_links_free(&links);
    return first;
}

/* Adds "NAME: reason" to a list of reasons, which "; " divides. `text` has WHIT_LIGHT_REASONS_BYTES bytes; what has no
 * room is counted in *n_more. */
static void add_reason(char *text, const char *path, const char *reason, size_t *n_more)
{
    whit_buf entry = {0};
    const size_t n = strlen(text), room = WHIT_LIGHT_REASONS_BYTES - 40;
    const bool ok = whit_plain_show(path, strlen(path), WHIT_PLAIN_NAME, &entry) &&
        whit_buf_printf(&entry, ": %s", reason) && whit_buf_append(&entry, "", 1);
    if (ok && !*n_more && n + 2 + entry.size_bytes <= room)
        snprintf(text + n, room - n, "%s%s", n ? "; " : "", whit_chars(&entry));
    else if (!n)
        snprintf(text, room, "%s", reason);
    else
        ++*n_more;
    whit_buf_free(&entry);
}

static void end_reasons(char *text, size_t n_more)
{
    if (n_more) snprintf(text + strlen(text), 40, "; and %zu more", n_more);
}

bool whit_light_reasons(const whit_changes *set, char text[WHIT_LIGHT_REASONS_BYTES])
{
    size_t n_more = 0;
    *text = 0;
    for (size_t i = 0; i < whit_changes_count(set); i++)
        if (*whit_changes_at(set, i)->reason)
            add_reason(text, whit_changes_at(set, i)->path, whit_changes_at(set, i)->reason, &n_more);
    end_reasons(text, n_more);
    return *text;
}

/* Returns whether a reason follows from the place now that a person was not shown. */
static bool has_new_place(unsigned found, const char *shown)
{
    for (unsigned k = 0; k < N_PLACE_REASONS; k++)
        if ((found >> k & 1) && !strstr(shown, place_reasons[k])) return true;
    return false;
}

const whit_change *whit_light_find_new(const char *project, const whit_changes *set)
{
    const whit_change *found = NULL;
    whit_links links;
    whit_links_list(&links, project);
    for (size_t i = 0; !found && i < whit_changes_count(set); i++) {
        const whit_change *c = whit_changes_at(set, i);
        char room[WHIT_REASON_BYTES] = "";
        bool is_new = has_new_place(red_by_place(project, &links, set, c), c->reason);
        /* if the change had a reason, its text is not examined: with the hunk of that reason left out, the rest may
         * have another one */
        if (!is_new && !*c->reason) red_by_text(project, set, c, room);
        if (is_new || *room || c->place != whit_project_place(project, c->path)) found = c;
    }
    whit_links_free(&links);
    return found;
}

bool whit_light_secret(const char *project, const char *path)
{
    char real[PATH_MAX];
    (void)whit_light_real(project, path, real);
    return whit_project_hides(project, path, real, NULL);
}

bool whit_light_secret_file(const char *path)
{
    char real[PATH_MAX], folder[PATH_MAX];
    (void)whit_light_real("/", path + 1, real);
    if (whit_project_hides("/", path + 1, real, NULL)) return true;
    snprintf(folder, sizeof folder, "%s", real);
    for (char *slash; (slash = strrchr(folder, '/')) != NULL && slash > folder;) {
        *slash = 0;
        if (whit_links_secret(folder, real)) return true;
    }
    return false;
}

bool whit_light_hides(const char *project, const whit_change *change)
{
    return change->is_hidden || whit_light_secret(project, change->path);
}

bool whit_light_leaves(const char *project, const char *path)
{
    char real[PATH_MAX];
    return !*whit_light_real(project, path, real);
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

bool whit_light_tell(const char *text, size_t n)
{
    whit_buf shown = {0};
    int terminal = open_terminal();
    if (terminal < 0) return false;
    bool ok = whit_buf_append_str(&shown, whit_typed_plain()) &&
        whit_plain_for_terminal(text, n, whit_typed_columns(terminal), &shown) &&
        whit_write_all(terminal, shown.data, shown.size_bytes);
    whit_buf_free(&shown);
    close(terminal);
    return ok;
}

/* Tells at the end of a question that it begins above the screen: its last rows may look like another question. */
static void tell_rows(int terminal, whit_buf *shown)
{
    const size_t n_rows = whit_typed_overflow(terminal, whit_chars(shown), shown->size_bytes);
    if (n_rows) whit_buf_printf(shown, "(a question of %zu rows, which begins above the screen) ", n_rows);
}

ssize_t whit_light_read_line(const char *question, size_t n_question, const char *mark, char *line, size_t room)
{
    const int terminal = open_terminal();
    if (terminal < 0) return -1;
    whit_buf shown = {0};
    ssize_t got = -1;
    /* a row of the question must not look like another question or a message */
    if (whit_plain_for_terminal(question, n_question, whit_typed_columns(terminal), &shown)) {
        tell_rows(terminal, &shown);
        if (whit_buf_append(&shown, "", 1))
            got = whit_typed_ask(terminal, whit_chars(&shown), shown.size_bytes - 1, mark, line, room);
    }
    whit_buf_free(&shown);
    close(terminal);
    return got;
}

/* Reads the line typed in answer to a question, without its line end. Returns false if there is no terminal, at the end
 * of its input, and at Ctrl-C. */
static bool read_answer(const char *question, char *answer, size_t room)
{
    enum { QUESTION_BYTES = 4096 + PATH_MAX * 2 };
    char line[QUESTION_BYTES];
    int n = snprintf(line, sizeof line, "%s", question);
    *answer = 0;
    if (n < 0 || (size_t)n >= sizeof line) return false;
    /* The question may contain a path that a model chose, so its control characters are removed for the terminal. */
    ssize_t got = whit_light_read_line(line, whit_plain_line(line, (size_t)n), "", answer, room - 1);
    for (ssize_t i = 0; i < got; i++)
        if (!answer[i]) answer[i] = '?'; /* a zero byte would end the string and hide the rest of the answer */
    if (got > 0) answer[got] = 0;
    if (got > 0) answer[strcspn(answer, "\r\n")] = 0;
    return got > 0;
}

static const struct {
    char letter;
    whit_light_answer answer;
    const char *word, *help;
} answers[] = {
    {'y', WHIT_LIGHT_YES, "yes", "y   yes, as it is shown\n"},
    {'n', WHIT_LIGHT_NO, "no", "n   no (so does Enter alone); words after it are told to the model: n keep the name\n"},
    {'h', WHIT_LIGHT_HUNKS, "hunks", "h   hunk by hunk: each is asked about\n"},
    {'e', WHIT_LIGHT_EDIT, "edit", "e   edit what is proposed ($VISUAL, $EDITOR or whit edit), and be asked again\n"},
};
enum { N_ANSWERS = sizeof answers / sizeof *answers };

static void explain_answers(const char *letters)
{
    for (size_t i = 0; i < N_ANSWERS; i++)
        if (strchr(letters, answers[i].letter)) (void)whit_light_tell(answers[i].help, strlen(answers[i].help));
}

/* Asks on the terminal until the answer is one of the letters in `letters` (of "ynhe") or its word; "?" lists them.
 * Words after a no, or several words without a letter first, refuse and are appended to `why` (NULL: they are
 * dropped). */
static whit_light_answer light_ask(const char *question, const char *letters, whit_buf *why)
{
    static const char again[] = "please answer with one of the letters; ? explains them\n";
    char line[1024];
    while (read_answer(question, line, sizeof line)) {
        char *word = line + strspn(line, " \t"), *rest = word + strcspn(word, " \t,:");
        size_t n = (size_t)(rest - word), i = 0;
        const char *words = rest + strspn(rest, " \t,:");
        if (!n && !*words) return WHIT_LIGHT_NO;
        while (i < N_ANSWERS &&
               !(strchr(letters, answers[i].letter) &&
                 ((n == 1 && (word[0] | 0x20) == answers[i].letter) ||
                  (n == strlen(answers[i].word) && strncasecmp(word, answers[i].word, n) == 0))))
            i++;
        if (i < N_ANSWERS && (answers[i].answer == WHIT_LIGHT_NO || !*words)) {
            if (answers[i].answer == WHIT_LIGHT_NO && why) whit_buf_append_str(why, words);
            return answers[i].answer;
        }
        if (i == N_ANSWERS && n > 1 && *words) { /* a sentence refuses the change; its words tell the model why */
            if (why) whit_buf_append_str(why, word);
            return WHIT_LIGHT_NO;
        }
        if (word[0] == '?' || (n == 4 && strncasecmp(word, "help", 4) == 0))
            explain_answers(letters);
        else
            (void)whit_light_tell(again, sizeof again - 1);
    }
    return WHIT_LIGHT_GONE;
}

bool whit_light_agreed(const char *reason, size_t n_files, whit_buf *why)
{
    char line[4096 + PATH_MAX * 2];
    int n;
    if (n_files)
        n = snprintf(line, sizeof line, "%s%sWrite %zu file%s? [y/N/?] ", whit_or_empty(reason), reason ? ". " : "",
                     n_files, whit_plural(n_files));
    else
        n = snprintf(line, sizeof line, "%s. Do it? [y/N/?] ", reason);
    if (n < 0 || (size_t)n >= sizeof line) return false;
    return light_ask(line, "yn", why) == WHIT_LIGHT_YES;
}

/* Asks about each hunk. If an answer is missing or a hunk cannot be shown, no hunk is taken, not even a hunk that
 * was agreed to before. */
static void choose_each(const whit_hunks *hunks, bool (*show)(void *user, const whit_hunk *hunk), void *user,
                        uint8_t *taken, whit_buf *why)
{
    char line[PATH_MAX + 200];
    for (size_t i = 0; i < hunks->n; i++) {
        const whit_hunk *hunk = &hunks->list[i];
        if (!show(user, hunk)) {
            memset(taken, 0, hunks->n);
            return;
        }
        int n = snprintf(line, sizeof line, "%s%s%zu of %zu, %s: take it? [y/N/?] ", whit_or_empty(hunk->reason),
                         hunk->reason ? ". " : "", i + 1, hunks->n, hunk->path);
        if (why && why->size_bytes && why->data[why->size_bytes - 1] != ' ') whit_buf_append_str(why, "; ");
        const whit_light_answer answer = n > 0 && (size_t)n < sizeof line ? light_ask(line, "yn", why) : WHIT_LIGHT_NO;
        taken[i] = answer == WHIT_LIGHT_YES;
        if (answer == WHIT_LIGHT_GONE) {
            memset(taken, 0, hunks->n);
            return;
        }
    }
}

void whit_light_choose(const whit_hunks *hunks, bool (*show)(void *user, const whit_hunk *hunk), void *user,
                       bool may_edit, uint8_t *taken, whit_buf *why)
{
    char line[WHIT_LIGHT_REASONS_BYTES + 200], reasons[WHIT_LIGHT_REASONS_BYTES] = "", letters[8] = "yn",
                                               marks[16] = "";
    size_t n_files = 0, n_more = 0;
    for (size_t i = 0; i < hunks->n; i++) {
        const whit_hunk *hunk = &hunks->list[i];
        if (i && strcmp(hunk->path, hunks->list[i - 1].path) == 0) continue;
        n_files++;
        if (hunk->reason) add_reason(reasons, hunk->path, hunk->reason, &n_more);
    }
    end_reasons(reasons, n_more);
    if (hunks->n > 1) strcat(letters, "h"), strcat(marks, "/h");
    if (may_edit) strcat(letters, "e"), strcat(marks, "/e");
    int n = snprintf(line, sizeof line, "%s%sWrite %zu file%s? [y/N%s/?] ", reasons, *reasons ? ". " : "", n_files,
                     whit_plural(n_files), marks);
    if (n < 0 || (size_t)n >= sizeof line) return;
    switch (light_ask(line, letters, why)) {
    case WHIT_LIGHT_YES: memset(taken, 1, hunks->n); break;
    case WHIT_LIGHT_HUNKS: choose_each(hunks, show, user, taken, why); break;
    case WHIT_LIGHT_EDIT: taken[0] = WHIT_TAKEN_EDIT; break;
    case WHIT_LIGHT_NO:
    case WHIT_LIGHT_GONE: break;
    }
}
