/* SPDX-License-Identifier: MIT
 * Tests that what an agent reads is what it has looked at: another program puts a link in the place of a folder at any
 * moment between, and no tool, patch or copy gets a secret or a file from outside of the project. */
#include "test_folder.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/scratch.h"
#include "agent/tools.h"
#include "base/file.h"
#include "base/items.h"

#define SECRET "hunter2-of-the-other-place"

static char project[256];
static int calls_left; /* the folders are exchanged at this call of the functions below; 0: never again */

/* Another program exchanges the folder d and a link. */
static void count_call(void)
{
    char names[2][300];
    if (!calls_left || --calls_left) return;
    snprintf(names[0], sizeof names[0], "%s/d", project);
    snprintf(names[1], sizeof names[1], "%s/link", project);
    assert_int_equal(renameat2(AT_FDCWD, names[0], AT_FDCWD, names[1], RENAME_EXCHANGE), 0);
}

/* The calls of the program at which the exchange may come: when a path is resolved, and when a file is opened. */
char *realpath(const char *restrict path, char *restrict resolved)
{
    static char *(*real)(const char *, char *);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "realpath");
    char *found = real(path, resolved);
    count_call();
    return found;
}

int open64(const char *path, int flags, ...)
{
    const int fd = openat(AT_FDCWD, path, flags, 0600);
    count_call();
    return fd;
}

static void put_text(const char *name, const char *text)
{
    whit_error error;
    assert_ok(whit_write_file(in_folder(name), text, strlen(text), &error), error);
}

/* Makes a project with a folder d, and a link to a folder with the same names: of version control, or outside. */
static void make_project(const char *target)
{
    char command[300];
    snprintf(command, sizeof command, "rm -rf %s/p %s/outside %s/cache; mkdir -p %s/p/d %s/p/.git %s/outside",
             test_folder, test_folder, test_folder, test_folder, test_folder, test_folder);
    assert_int_equal(system(command), 0);
    snprintf(project, sizeof project, "%s", in_folder("p"));
    put_text("p/d/f", "a public line\n");
    put_text("p/.git/f", SECRET " a public line\n");
    put_text("p/.git/" SECRET, "");
    put_text("outside/f", SECRET " a public line\n");
    put_text("outside/" SECRET, "");
    assert_int_equal(symlink(target, in_folder("p/link")), 0);
}

static const char *const targets[] = {".git", "../outside"};

static bool has_secret(const whit_buf *text)
{
    return text->size_bytes && memmem(text->data, text->size_bytes, SECRET, strlen(SECRET));
}

/* Tools, and the message of a patch that does not apply, which quotes the file. */
static void tools_read_what_was_looked_at(void **state)
{
    (void)state;
    static const char *const calls[][2] = {
        {"read", "{\"path\": \"d/f\"}"},
        {"grep", "{\"pattern\": \"line\", \"path\": \"d\"}"},
        {"grep", "{\"pattern\": \"line\"}"},
        {"grep", "{\"pattern\": \"line\", \"path\": \"d/f\"}"},
        {"list", "{\"path\": \"d\"}"},
        {"list", "{}"},
        {"patch_file", "{\"patch\": \"d/f\\n<<<<<<< SEARCH\\nno public line\\nx\\n=======\\ny\\n>>>>>>> REPLACE\\n\"}"},
    };
    for (size_t t = 0; t < 2; t++)
        for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
            bool is_over = false;
            for (int k = 1; !is_over; k++) {
                whit_changes staged = {0};
                whit_buf result = {0};
                const whit_tool_place place = {.project = project, .staged = &staged, .is_alone = true};
                make_project(targets[t]);
                calls_left = k;
                whit_tool_call(&place, calls[i][0], calls[i][1], &result);
                is_over = calls_left > 0;
                calls_left = 0;
                if (has_secret(&result))
                    fail_msg("%s %s with %s at call %d: %.*s", calls[i][0], calls[i][1], targets[t], k,
                             (int)result.size_bytes, whit_chars(&result));
                if (is_over && *calls[i][0] != 'p')
                    assert_non_null(memmem(result.data, result.size_bytes, *calls[i][0] == 'l' ? "f" : "public", 1));
                whit_buf_free(&result);
                whit_changes_free(&staged);
            }
        }
}

/* A text that was read through the link is not copied for commands afterwards, either. */
static void staged_texts_stay_hidden(void **state)
{
    (void)state;
    static const char patch[] = "{\"patch\": \"d/f\\n<<<<<<< SEARCH\\n" SECRET " a public line\\n=======\\n" SECRET
                                " two\\n>>>>>>> REPLACE\\n\"}";
    const whit_scratch_wait wait = {NULL, NULL, NULL};
    bool is_over = false;
    for (int k = 1; !is_over; k++) {
        whit_changes staged = {0};
        whit_buf result = {0}, text = {0};
        whit_scratch scratch;
        whit_error error;
        const whit_tool_place place = {.project = project, .staged = &staged, .is_alone = true};
        char name[PATH_MAX + 16], d[300], link[300];
        make_project(".git");
        calls_left = k;
        whit_tool_call(&place, "patch_file", patch, &result);
        is_over = calls_left > 0;
        calls_left = 0;
        snprintf(d, sizeof d, "%s/d", project);
        snprintf(link, sizeof link, "%s/link", project);
        if (!is_over) assert_int_equal(renameat2(AT_FDCWD, d, AT_FDCWD, link, RENAME_EXCHANGE), 0);
        assert_ok(whit_scratch_open(project, in_folder("cache"), "run", &wait, &scratch, &error), error);
        assert_ok(whit_scratch_update(&scratch, project, &staged, &error), error);
        snprintf(name, sizeof name, "%s/d/f", scratch.tree);
        assert_ok(whit_read_file(name, 1000, &text, &error), error);
        if (has_secret(&text)) fail_msg("a copy has what was read at call %d", k);
        whit_scratch_close(&scratch);
        whit_buf_free(&text);
        whit_buf_free(&result);
        whit_changes_free(&staged);
    }
}

/* Another hard link of the user's configuration is hidden by the file, whatever its name. */
static void other_names_are_hidden(void **state)
{
    (void)state;
    whit_buf content = {0};
    whit_project_file file;
    whit_error error;
    make_project(".git");
    char command[300];
    snprintf(command, sizeof command, "mkdir -p %s/config/whit", test_folder);
    assert_int_equal(system(command), 0);
    put_text("config/whit/agent.json", "{}");
    assert_int_equal(setenv("XDG_CONFIG_HOME", in_folder("config"), 1), 0);
    assert_int_equal(link(in_folder("config/whit/agent.json"), in_folder("p/own.txt")), 0);
    static const char *const names[] = {"own.txt", "link/f", "d/f", "none", ".git/none"};
    static const bool are_hidden[] = {true, true, false, false, true}, exist[] = {true, true, true, false, false};
    for (int i = 0; i < 5; i++) {
        assert_ok(whit_project_read_file(project, names[i], &content, &file, &error), error);
        assert_int_equal(file.is_hidden, are_hidden[i]);
        assert_int_equal(file.exists, exist[i]);
    }
    whit_buf_free(&content);
}

/* A file with secrets has the same keys by each of its hard links, and a repository in a folder of another name has its
 * settings, which may have passwords. */
static void secrets_of_other_names_are_hidden(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool is_hidden;
    } files[] = {{"notes.txt", true},   {"d/app.txt", true},     {"d/plain.txt", false},
                 {"d/twin.txt", false}, {"d/g/config", true},    {"d/g/a/b", true},
                 {"HEAD", false},       {"d/tree/config", true}, {"d/f", false}};
    whit_buf content = {0};
    whit_project_file file;
    whit_error error;
    make_project(".git");
    /* the links of the other tests' folder may still be known */
    snprintf(project, sizeof project, "%s", in_folder("q"));
    assert_int_equal(rename(in_folder("p"), project), 0);
    char command[1000];
    snprintf(command, sizeof command,
             "cd %s && mkdir -p backend d/g/objects d/g/refs d/g/a d/tree && echo A=" SECRET " > backend/.env &&"
             "ln backend/.env notes.txt && echo B=" SECRET
             " > d/app.txt && ln -s ../d/app.txt backend/b.env && echo a > d/plain.txt && ln d/plain.txt d/twin.txt &&"
             "touch HEAD d/g/HEAD d/g/config d/g/a/b d/tree/HEAD d/tree/commondir d/tree/config",
             project);
    assert_int_equal(system(command), 0);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        assert_ok(whit_project_read_file(project, files[i].name, &content, &file, &error), error);
        if (!file.exists || file.is_hidden != files[i].is_hidden) fail_msg("%s", files[i].name);
    }
    whit_buf_free(&content);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tools_read_what_was_looked_at),
        cmocka_unit_test(staged_texts_stay_hidden),
        cmocka_unit_test(other_names_are_hidden),
        cmocka_unit_test(secrets_of_other_names_are_hidden),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
