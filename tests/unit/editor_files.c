/* SPDX-License-Identifier: MIT
 * Tests saving, journals, and changes that other programs make to an open file. */
#include "test_folder.h"

#include "base/rng.h"
#include "editor/state.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>

static char journals[200];

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void assert_file(const char *path, const char *text)
{
    char data[4096];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    data[fread(data, 1, sizeof data - 1, file)] = 0;
    fclose(file);
    assert_string_equal(data, text);
}

static void assert_text(const whit_buffer *buffer, const char *text)
{
    char data[4096] = {0};
    assert_true(whit_text_size(buffer->text) < sizeof data);
    whit_text_read(buffer->text, 0, data, sizeof data - 1);
    assert_string_equal(data, text);
}

static whit_buffer *open_buffer(const char *path)
{
    whit_error error;
    whit_buffer *buffer;
    assert_ok(whit_buffer_open(path, journals, &buffer, &error), error);
    return buffer;
}

static void insert(whit_buffer *buffer, uint64_t at, const char *text)
{
    whit_error error;
    assert_ok(whit_buffer_edit(buffer, at, 0, text, strlen(text), &error), error);
    whit_buffer_seal(buffer);
}

static void save(whit_buffer *buffer)
{
    whit_error error;
    assert_ok(whit_buffer_save(buffer, false, &error), error);
    assert_false(whit_buffer_is_modified(buffer));
}

/* Closes the buffer and leaves its journal as it was last flushed, as after kill -9. */
static void crash(whit_buffer *buffer)
{
    whit_error error;
    assert_ok(whit_buffer_flush(buffer, &error), error);
    buffer->found = WHIT_FOUND_LOST; /* "undecided": the journal is left alone */
    whit_buffer_close(buffer);
}

static void test_save_keeps(void **state)
{
    (void)state;
    const char *path = in_folder("kept.txt"), *link_path = in_folder("link.txt");
    struct stat about;
    write_file(path, "one\r\ntwo\xFF\n");
    chmod(path, 0640);
    bool attributes = setxattr(path, "user.note", "kept", 4, 0) == 0;
    assert_int_equal(symlink("kept.txt", link_path), 0);
    whit_buffer *buffer = open_buffer(link_path);
    insert(buffer, 0, "zero\n");
    assert_true(whit_buffer_is_modified(buffer));
    save(buffer);
    whit_buffer_close(buffer);
    assert_file(path, "zero\none\r\ntwo\xFF\n");
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_mode & 07777, 0640);
    assert_int_equal(lstat(link_path, &about), 0);
    assert_true(S_ISLNK(about.st_mode));
    char value[8] = {0};
    if (attributes) assert_int_equal(getxattr(path, "user.note", value, sizeof value), 4);
    if (attributes) assert_string_equal(value, "kept");

    /* Both names of a hard link must show the saved text. */
    const char *hard = in_folder("hard.txt");
    assert_int_equal(link(path, hard), 0);
    buffer = open_buffer(hard);
    insert(buffer, 0, "more ");
    save(buffer);
    insert(buffer, 0, "and ");
    save(buffer);
    whit_buffer_close(buffer);
    assert_file(path, "and more zero\none\r\ntwo\xFF\n");
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_nlink, 2);

    /* The mode of a new file follows the umask. */
    mode_t mask = umask(027);
    buffer = open_buffer(in_folder("new.txt"));
    insert(buffer, 0, "new");
    save(buffer);
    whit_buffer_close(buffer);
    umask(mask);
    assert_int_equal(stat(in_folder("new.txt"), &about), 0);
    assert_int_equal(about.st_mode & 0777, 0640);
}

static void test_recovery(void **state)
{
    (void)state;
    const char *path = in_folder("recover.txt");
    write_file(path, "base\n");
    whit_buffer *buffer = open_buffer(path);
    insert(buffer, 5, "typed\n");
    insert(buffer, 11, "again\n");
    crash(buffer);
    assert_file(path, "base\n");

    buffer = open_buffer(path);
    assert_int_equal(buffer->found, WHIT_FOUND_UNSAVED);
    assert_text(buffer, "base\n");
    whit_buffer_recover(buffer);
    assert_text(buffer, "base\ntyped\nagain\n");
    assert_true(whit_buffer_is_modified(buffer));
    whit_range changed;
    assert_true(whit_buffer_undo(buffer, &changed, NULL));
    assert_text(buffer, "base\ntyped\n");
    crash(buffer); /* the journal contains the undo step, too */

    write_file(path, "others\n"); /* the journal contains the base: others may write */
    buffer = open_buffer(path);
    assert_int_equal(buffer->found, WHIT_FOUND_UNSAVED);
    whit_buffer_recover(buffer);
    assert_text(buffer, "base\ntyped\n");
    assert_true(whit_buffer_redo(buffer, &changed, NULL));
    assert_text(buffer, "base\ntyped\nagain\n");
    whit_error error;
    assert_true(whit_buffer_is_conflicting(buffer)); /* the other text is not overwritten unasked */
    assert_int_equal(whit_buffer_save(buffer, false, &error), WHIT_ERROR_ARGUMENT);
    assert_file(path, "others\n");
    assert_ok(whit_buffer_save(buffer, true, &error), error);
    whit_buffer_close(buffer);
    assert_file(path, "base\ntyped\nagain\n");

    /* Undo steps of an earlier run are available when the file is as it was saved. */
    buffer = open_buffer(path);
    assert_int_equal(buffer->found, WHIT_FOUND_HISTORY);
    assert_false(whit_buffer_is_modified(buffer));
    assert_true(whit_buffer_undo(buffer, &changed, NULL));
    assert_text(buffer, "base\ntyped\n");
    assert_true(whit_buffer_is_modified(buffer));
    assert_true(whit_buffer_redo(buffer, &changed, NULL));
    assert_false(whit_buffer_is_modified(buffer));
    whit_buffer_close(buffer);
    write_file(path, "others\n");
    buffer = open_buffer(path);
    assert_int_equal(buffer->found, WHIT_FOUND_NOTHING);
    assert_text(buffer, "others\n");
    insert(buffer, 0, "x");
    crash(buffer);
    buffer = open_buffer(path);
    whit_buffer_forget(buffer);
    whit_buffer_close(buffer);
    buffer = open_buffer(path);
    assert_int_equal(buffer->found, WHIT_FOUND_NOTHING);

    whit_buffer *second = open_buffer(path);
    assert_int_equal(second->found, WHIT_FOUND_BUSY);
    whit_buffer_close(second);
    whit_buffer_close(buffer);
}

/* A new file that is saved under its own name keeps its journal. Two spellings of its path open one text. */
static void test_own_name(void **state)
{
    (void)state;
    const char *path = in_folder("own.txt");
    whit_error error;
    whit_buffer *buffer = open_buffer(path);
    insert(buffer, 0, "one ");
    assert_ok(whit_buffer_save_as(buffer, path, journals, NULL, &error), error);
    assert_file(path, "one ");
    assert_false(whit_buffer_is_modified(buffer));
    assert_int_equal(buffer->found, WHIT_FOUND_NOTHING);
    assert_true(buffer->journal.fd >= 0);
    insert(buffer, 4, "two ");
    crash(buffer);
    buffer = open_buffer(path);
    assert_int_equal(buffer->found, WHIT_FOUND_UNSAVED);
    whit_buffer_recover(buffer);
    assert_text(buffer, "one two ");
    whit_buffer_close(buffer);

    char before[PATH_MAX];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(test_folder), 0);
    whit_editor_options options = {.config = "", .journal_folder = journals};
    whit_editor *editor;
    assert_int_equal(whit_editor_open(&options, &editor, &error), WHIT_OK);
    assert_int_equal(whit_editor_add_file(editor, "own-too.txt", &error), WHIT_OK);
    assert_ptr_equal(ed_open_file(editor, "own-too.txt", &error), editor->docs);
    assert_ptr_equal(ed_open_file(editor, "./own-too.txt", &error), editor->docs);
    ed_type(editor, "one", 3);
    ed_save_under(editor, "own-too.txt", false, NULL);
    assert_file("own-too.txt", "one");
    assert_int_equal(editor->docs->buffer->found, WHIT_FOUND_NOTHING);
    assert_true(editor->docs->buffer->journal.fd >= 0);
    assert_null(editor->docs->next);
    whit_editor_close(editor);
    assert_int_equal(chdir(before), 0);
}

/* Saves an unchanged text, whose edits were undone, under a new name: a redo after that must be in the new name's
 * journal. */
static void test_redo_behind_save(void **state)
{
    (void)state;
    const char *path = in_folder("undone.txt"), *other = in_folder("undone-too.txt");
    for (int n_branches = 1; n_branches < 3; n_branches++) {
        whit_error error;
        whit_range changed;
        write_file(path, "\n");
        whit_buffer *buffer = open_buffer(path);
        insert(buffer, 0, "one");
        assert_true(whit_buffer_undo(buffer, &changed, &error));
        if (n_branches == 2) {
            insert(buffer, 0, "two");
            assert_true(whit_buffer_undo(buffer, &changed, &error));
        }
        assert_ok(whit_buffer_save_as(buffer, other, journals, NULL, &error), error);
        assert_file(other, "\n");
        assert_int_equal(whit_buffer_next_branch(buffer), n_branches == 2);
        assert_true(whit_buffer_redo(buffer, &changed, &error));
        insert(buffer, 3, " more");
        crash(buffer);
        buffer = open_buffer(other);
        assert_int_equal(buffer->found, WHIT_FOUND_UNSAVED);
        whit_buffer_recover(buffer);
        assert_text(buffer, "one more\n");
        save(buffer);
        whit_buffer_close(buffer);
    }
}

static void test_conflicts(void **state)
{
    (void)state;
    const char *path = in_folder("conflict.txt");
    write_file(path, "mine\n");
    whit_error error;
    whit_buffer *buffer = open_buffer(path);
    insert(buffer, 0, "still ");
    assert_false(whit_buffer_is_conflicting(buffer));
    write_file(path, "theirs, which is longer\n");
    assert_true(whit_buffer_is_conflicting(buffer));
    assert_int_equal(whit_buffer_save(buffer, false, &error), WHIT_ERROR_ARGUMENT);
    assert_file(path, "theirs, which is longer\n");
    assert_ok(whit_buffer_reload(buffer, &error), error);
    assert_text(buffer, "theirs, which is longer\n");
    insert(buffer, 0, "not ");
    write_file(path, "theirs again\n");
    assert_ok(whit_buffer_save(buffer, true, &error), error);
    assert_file(path, "not theirs, which is longer\n");
    unlink(path);
    assert_true(whit_buffer_is_conflicting(buffer));
    whit_buffer_close(buffer);
}

/* When another program changes the file, the cursor keeps its line and its column in characters. */
static void test_cursor_of_changed(void **state)
{
    (void)state;
    const char *path = in_folder("cursor.txt");
    whit_error error;
    whit_editor_options options = {.config = ""};
    whit_editor *editor;
    assert_int_equal(whit_editor_open(&options, &editor, &error), WHIT_OK);
    write_file(path, "a\303\251\n");
    assert_int_equal(whit_editor_add_file(editor, path, &error), WHIT_OK);
    const whit_buffer *buffer = editor->docs->buffer;
    ed_place(editor, 1, 2);
    write_file(path, "\303\251ab\n");
    assert_true(whit_editor_check_files(editor));
    assert_text(buffer, "\303\251ab\n");
    whit_editor_key(editor, (whit_key){.code = 'x'}, NULL, 0);
    assert_text(buffer, "\303\251xab\n");

    ed_save(editor, editor->docs, false);
    whit_editor_key(editor, (whit_key){.code = 'y'}, NULL, 0);
    write_file(path, "one \303\251\303\251\ntwo\n");
    ed_save(editor, editor->docs, false);
    assert_int_equal(editor->prompt.kind, ED_PROMPT_CONFLICT);
    usleep(300000); /* keys at once after the question are no answer */
    whit_editor_key(editor, (whit_key){.code = 'r'}, NULL, 0);
    assert_text(buffer, "one \303\251\303\251\ntwo\n");
    assert_int_equal(ed_cursor(editor)->offset, 3);

    /* Far into a line the cursor keeps its byte offset instead, moved to the start of a character that it would
     * divide. */
    static char line[9001];
    memset(line, 'a', sizeof line - 1);
    write_file(path, line);
    assert_true(whit_editor_check_files(editor));
    ed_cursor(editor)->offset = 8000;
    memcpy(line + 7999, "\303\251", 2);
    line[8500] = 0;
    write_file(path, line);
    assert_true(whit_editor_check_files(editor));
    assert_int_equal(ed_cursor(editor)->offset, 7999);
    whit_editor_close(editor);
}

/* A file of /proc has a size of 0, but content. */
static void test_unsized(void **state)
{
    (void)state;
    whit_buffer *buffer = open_buffer("/proc/sys/kernel/ostype");
    assert_text(buffer, "Linux\n");
    whit_buffer_close(buffer);
}

/* Models a kill after the save's rename and before the journal records it. A file with a text that the journal contains
 * counts as saved by this editor, any other as changed by another program. Until a person has chosen to recover or to
 * forget, no edit, undo, save or reload is allowed. */
static void test_killed_save(void **state)
{
    (void)state;
    static const char *const on_disk[] = {"one \n", "one two \n", "three \n"};
    const char *path = in_folder("killed-save.txt");
    for (int i = 0; i < 3; i++) {
        write_file(path, "\n");
        whit_error error;
        whit_range changed;
        whit_buffer *buffer = open_buffer(path);
        insert(buffer, 0, "one ");
        whit_buffer_seal(buffer);
        insert(buffer, 4, "two ");
        whit_buffer_seal(buffer);
        insert(buffer, 8, "three ");
        buffer->keep_journal = true;
        whit_buffer_close(buffer);
        write_file(path, on_disk[i]);
        buffer = open_buffer(path);
        assert_int_equal(buffer->found, WHIT_FOUND_UNSAVED);
        assert_int_equal(whit_buffer_edit(buffer, 0, 0, "x", 1, &error), WHIT_ERROR_ARGUMENT);
        assert_false(whit_buffer_undo(buffer, &changed, &error));
        assert_int_equal(whit_buffer_save(buffer, true, &error), WHIT_ERROR_ARGUMENT);
        assert_int_equal(whit_buffer_reload(buffer, &error), WHIT_ERROR_ARGUMENT);
        assert_file(path, on_disk[i]);
        whit_buffer_recover(buffer);
        assert_text(buffer, "one two three \n");
        assert_int_equal(whit_buffer_is_conflicting(buffer), i == 2);
        assert_ok(whit_buffer_save(buffer, true, &error), error);
        whit_buffer_close(buffer);
        unlink(path);
    }
}

/* A mapped file that is truncated reads as zeros and is not saved; nothing may crash. */
static void test_cut_short(void **state)
{
    (void)state;
    const char *path = in_folder("large.txt");
    size_t n = 3u << 20;
    char *data = malloc(n + 1);
    for (size_t i = 0; i < n; i++) data[i] = i % 64 ? 'a' : '\n';
    data[n] = 0;
    write_file(path, data);
    whit_error error;
    whit_buffer *buffer = open_buffer(path);
    assert_true(buffer->file.is_mapped);
    insert(buffer, 0, "x");
    assert_int_equal(truncate(path, 100), 0);
    assert_int_equal(whit_text_byte(buffer->text, n), 0);
    assert_true(whit_file_is_lost(&buffer->file));
    assert_true(whit_buffer_is_conflicting(buffer));
    assert_int_equal(whit_buffer_save(buffer, true, &error), WHIT_ERROR_IO);
    struct stat about;
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_size, 100);
    whit_buffer_close(buffer);

    /* A large file with two names is written in place while it is mapped, and its text is read again. */
    write_file(path, data);
    assert_int_equal(link(path, in_folder("large2.txt")), 0);
    buffer = open_buffer(path);
    insert(buffer, 1000, "INSERTED");
    whit_text_count(buffer->text, UINT64_MAX, whit_file_drop, &buffer->file);
    save(buffer);
    assert_int_equal(whit_text_size(buffer->text), n + 8);
    char some[9] = {0};
    whit_text_read(buffer->text, 1000, some, 8);
    assert_string_equal(some, "INSERTED");
    assert_int_equal(whit_text_byte(buffer->text, n + 7), data[n - 1]);
    whit_buffer_close(buffer);
    unlink(in_folder("large2.txt"));

    /* Unsaved edits of a large file are lost when that file has changed. */
    buffer = open_buffer(path);
    insert(buffer, 0, "edit");
    crash(buffer);
    buffer = open_buffer(path);
    assert_int_equal(buffer->found, WHIT_FOUND_UNSAVED);
    whit_buffer_recover(buffer);
    assert_int_equal(whit_text_size(buffer->text), n + 12);
    crash(buffer);
    assert_int_equal(truncate(path, (off_t)n), 0);
    buffer = open_buffer(path);
    assert_int_equal(buffer->found, WHIT_FOUND_LOST);
    whit_buffer_forget(buffer);
    whit_buffer_close(buffer);
    free(data);
}

/* Limits the size of files that this process writes to n_bytes. Returns the previous limit. */
static rlim_t limit_files(rlim_t n_bytes)
{
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    rlim_t before = limit.rlim_cur;
    limit.rlim_cur = n_bytes;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    return before;
}

/* When the disk is full (here: a limit on file sizes), the old file and the text in the buffer must remain. */
static void test_full_disk(void **state)
{
    (void)state;
    const char *path = in_folder("full.txt");
    write_file(path, "old\n");
    whit_buffer *buffer = open_buffer(path);
    char text[2001];
    memset(text, 'x', 2000);
    text[2000] = 0;
    insert(buffer, 0, text);
    whit_error error;
    rlim_t before = limit_files(1000);
    whit_status status = whit_buffer_save(buffer, false, &error);
    whit_status flushed = whit_buffer_flush(buffer, NULL);
    limit_files(before);
    assert_int_equal(status, WHIT_ERROR_IO);
    assert_int_equal(flushed, WHIT_OK); /* reported once, by the save's own flush */
    assert_file(path, "old\n");
    assert_int_equal(whit_text_size(buffer->text), 2004);
    save(buffer);
    whit_buffer_close(buffer);

    /* After a save, a journal with an incomplete end must not count as unsaved text, and later edits must be written to
     * it. */
    buffer = open_buffer(path);
    insert(buffer, 0, "kept ");
    assert_ok(whit_buffer_flush(buffer, &error), error);
    insert(buffer, 0, text);
    before = limit_files(1000);
    flushed = whit_buffer_flush(buffer, &error);
    limit_files(before);
    assert_int_equal(flushed, WHIT_ERROR_IO);
    save(buffer);
    whit_buffer_close(buffer);
    buffer = open_buffer(path);
    assert_int_equal(buffer->found, WHIT_FOUND_NOTHING);
    insert(buffer, 0, text);
    before = limit_files(1000);
    flushed = whit_buffer_flush(buffer, &error);
    limit_files(before);
    assert_int_equal(flushed, WHIT_ERROR_IO);
    save(buffer);
    insert(buffer, 0, "unsaved ");
    crash(buffer);
    buffer = open_buffer(path);
    assert_int_equal(buffer->found, WHIT_FOUND_UNSAVED);
    whit_buffer_forget(buffer);
    whit_buffer_close(buffer);
}

/* The text that remains may be the whole old text; no byte before its start may be read. */
static void test_become(void **state)
{
    (void)state;
    static const char *const texts[] = {"a\n", "b\na\n", "b\nc\na\n", "a\n", "", "a\n", "xa\n"};
    whit_error error;
    whit_buffer *buffer = open_buffer(in_folder("become.txt"));
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_ok(whit_buffer_become(buffer, texts[i], strlen(texts[i]), &error), error);
        assert_text(buffer, texts[i]);
    }
    whit_buffer_close(buffer);
}

static whit_buffer *open_nameless(bool offer)
{
    whit_error error;
    whit_buffer *buffer;
    assert_ok(whit_buffer_open(NULL, NULL, &buffer, &error), error);
    assert_ok(whit_buffer_keep_nameless(buffer, journals, offer, &error), error);
    return buffer;
}

static void test_nameless(void **state)
{
    (void)state;
    whit_error error;
    /* Two nameless texts at a time, as in two editors. */
    whit_buffer *buffer = open_nameless(true), *other = open_nameless(true);
    insert(buffer, 0, "first");
    insert(buffer, 5, " text");
    insert(other, 0, "second");
    whit_buffer_undo(buffer, &(whit_range){0}, NULL);
    crash(buffer);
    crash(other);
    /* A new text does not take over a waiting journal; a text that is opened with content is not offered one. */
    buffer = open_nameless(false);
    assert_int_equal(buffer->found, WHIT_FOUND_NOTHING);
    insert(buffer, 0, "third");
    whit_buffer_close(buffer); /* closed normally: the text is discarded */
    buffer = open_nameless(true);
    assert_int_equal(buffer->found, WHIT_FOUND_UNSAVED);
    whit_buffer_recover(buffer);
    assert_text(buffer, "first");
    assert_true(whit_buffer_is_modified(buffer));
    assert_true(whit_buffer_redo(buffer, &(whit_range){0}, NULL));
    assert_text(buffer, "first text");
    /* When the text is saved under a name, its nameless journal is removed. */
    const char *path = in_folder("named.txt");
    assert_ok(whit_buffer_save_as(buffer, path, journals, NULL, &error), error);
    assert_file(path, "first text");
    whit_buffer_close(buffer);
    /* "Later" leaves the found text waiting; text typed meanwhile has a journal of its own. */
    buffer = open_nameless(true);
    assert_int_equal(buffer->found, WHIT_FOUND_UNSAVED);
    assert_ok(whit_buffer_later(buffer, journals, &error), error);
    assert_text(buffer, "");
    insert(buffer, 0, "meanwhile");
    other = open_nameless(true);
    assert_int_equal(other->found, WHIT_FOUND_UNSAVED);
    whit_buffer_recover(other);
    assert_text(other, "second");
    whit_buffer_close(other);
    crash(buffer);
    buffer = open_nameless(true);
    assert_int_equal(buffer->found, WHIT_FOUND_UNSAVED);
    whit_buffer_forget(buffer);
    whit_buffer_close(buffer);
    buffer = open_nameless(true);
    assert_int_equal(buffer->found, WHIT_FOUND_NOTHING);
    whit_buffer_close(buffer);
}

static void test_later(void **state)
{
    (void)state;
    whit_error error;
    const char *path = in_folder("later.txt");
    write_file(path, "old\n");
    whit_buffer *buffer = open_buffer(path);
    insert(buffer, 0, "new ");
    crash(buffer);
    for (int i = 0; i < 2; i++) { /* "later" may be chosen repeatedly */
        buffer = open_buffer(path);
        assert_int_equal(buffer->found, WHIT_FOUND_UNSAVED);
        assert_ok(whit_buffer_later(buffer, journals, &error), error);
        assert_text(buffer, "old\n");
        assert_int_equal(whit_buffer_edit(buffer, 0, 0, "x", 1, &error), WHIT_ERROR_ARGUMENT);
        whit_buffer_close(buffer);
    }
    buffer = open_buffer(path);
    whit_buffer_recover(buffer);
    assert_text(buffer, "new old\n");
    whit_buffer_close(buffer);
}

/* Types numbered words and saves at random; after every word it writes to fd the number of words, and whether they were
 * saved. */
static void typist(const char *path, int fd, uint64_t seed)
{
    whit_rng rng = {seed};
    whit_error error;
    whit_buffer *buffer;
    if (whit_buffer_open(path, journals, &buffer, &error) != WHIT_OK) _exit(1);
    whit_buffer_recover(buffer);
    for (uint32_t i = 0;; i++) {
        char word[24];
        int n = snprintf(word, sizeof word, "word %u\n", i);
        if (whit_buffer_edit(buffer, whit_text_size(buffer->text), 0, word, (size_t)n, &error) != WHIT_OK) _exit(2);
        whit_buffer_seal(buffer);
        if (whit_buffer_flush(buffer, &error) != WHIT_OK) _exit(3);
        uint32_t said[2] = {i + 1, 0};
        if (whit_rng_next(&rng) % 8 == 0) {
            if (whit_buffer_save(buffer, false, &error) != WHIT_OK) _exit(4);
            said[1] = 1;
        }
        if (write(fd, said, sizeof said) != sizeof said) _exit(5);
    }
}

static uint32_t count_words(const char *data, size_t n, bool *sound)
{
    uint32_t words = 0;
    for (const char *at = data; at < data + n; words++) {
        char word[24];
        size_t length = (size_t)snprintf(word, sizeof word, "word %u\n", words);
        if (length > (size_t)(data + n - at) || memcmp(at, word, length)) {
            *sound = false;
            return words;
        }
        at += length;
    }
    return words;
}

static void test_kills(void **state)
{
    (void)state;
    const char *long_form = getenv("WHIT_KILLS");
    int n_kills = long_form ? atoi(long_form) : 50;
    whit_rng rng = {11};
    char data[1 << 20];
    for (int kill_number = 0; kill_number < n_kills; kill_number++) {
        const char *path = in_folder("killed.txt"), *twin = in_folder("twin.txt");
        write_file(path, "");
        chmod(path, 0604);
        bool hard = kill_number % 3 == 0;
        if (hard) assert_int_equal(link(path, twin), 0);
        int fds[2];
        assert_int_equal(pipe(fds), 0);
        pid_t child = fork();
        if (!child) {
            close(fds[0]);
            typist(path, fds[1], (uint64_t)kill_number);
        }
        close(fds[1]);
        usleep((useconds_t)(2000 + whit_rng_next(&rng) % 15000));
        kill(child, SIGKILL);
        int status;
        waitpid(child, &status, 0);
        assert_true(WIFSIGNALED(status));
        uint32_t said[2], typed = 0, saved = 0;
        while (read(fds[0], said, sizeof said) == sizeof said) {
            typed = said[0];
            if (said[1]) saved = said[0];
        }
        close(fds[0]);
        bool sound = true;
        FILE *file = fopen(path, "r");
        uint32_t on_disk = count_words(data, fread(data, 1, sizeof data, file), &sound);
        fclose(file);
        /* A file that is replaced by a rename is whole at any moment; of one that is written in place the copy is. */
        if (!hard) assert_true(sound);
        whit_buffer *buffer = open_buffer(path);
        if (buffer->found == WHIT_FOUND_NOTHING || buffer->found == WHIT_FOUND_HISTORY) assert_true(sound);
        if (sound) assert_true(on_disk >= saved);
        whit_buffer_recover(buffer);
        sound = true;
        uint32_t recovered = count_words(data, whit_text_read(buffer->text, 0, data, sizeof data), &sound);
        assert_true(sound);
        assert_true(recovered >= typed); /* flushed after each word: none is missing */
        assert_true(recovered <= typed + 1);
        struct stat about;
        assert_int_equal(stat(path, &about), 0);
        assert_int_equal(about.st_mode & 0777, 0604);
        assert_int_equal(about.st_nlink, hard ? 2 : 1);
        whit_error error;
        assert_ok(whit_buffer_save(buffer, true, &error), error);
        whit_buffer_close(buffer);
        unlink(path);
        unlink(twin);
    }
}

/* Replaces the C library's posix_fallocate in this program, to model a disk that fills up while a file grows. */
static bool disk_is_full;
int posix_fallocate(int fd, off_t offset, off_t n_bytes)
{
    if (!disk_is_full) return fallocate(fd, 0, offset, n_bytes) ? errno : 0;
    return ftruncate(fd, offset + n_bytes / 2) ? errno : ENOSPC;
}

/* Replaces the C library's fsync in this program: another program saves the file `raced_path`, once, while the new
 * content is flushed to the disk, before it replaces the old one. */
static const char *raced_path;
int fsync(int fd)
{
    const char *path = raced_path;
    raced_path = NULL;
    if (path && !unlink(path)) write_file(path, "theirs\n");
    return fdatasync(fd);
}

/* A text that another program saves while the editor's own is written is not lost: the editor asks. */
static void test_saved_meanwhile(void **state)
{
    (void)state;
    const char *path = in_folder("meanwhile.txt");
    write_file(path, "old\n");
    whit_error error;
    whit_buffer *buffer = open_buffer(path);
    insert(buffer, 0, "mine ");
    raced_path = path;
    assert_int_equal(whit_buffer_save(buffer, false, &error), WHIT_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "another program has just changed"));
    assert_null(raced_path);
    assert_file(path, "theirs\n");
    assert_true(whit_buffer_is_conflicting(buffer));
    assert_text(buffer, "mine old\n");

    /* Only the state that the person agreed to replace is replaced. */
    whit_file_identity there;
    whit_file_identify(path, &there);
    write_file(path, "theirs again\n");
    assert_int_equal(whit_buffer_replace(buffer, &there, &error), WHIT_ERROR_ARGUMENT);
    assert_file(path, "theirs again\n");
    there = (whit_file_identity){.exists = false};
    assert_int_equal(whit_buffer_replace(buffer, &there, &error), WHIT_ERROR_ARGUMENT);
    assert_file(path, "theirs again\n");
    whit_file_identify(path, &there);
    assert_ok(whit_buffer_replace(buffer, &there, &error), error);
    assert_file(path, "mine old\n");

    /* The same in place, and for the copy of a text, which replaces no file that was not there. */
    char other[PATH_MAX], copy[PATH_MAX];
    snprintf(other, sizeof other, "%s.2", path);
    snprintf(copy, sizeof copy, "%s.copy", path);
    assert_int_equal(link(path, other), 0);
    insert(buffer, 0, "more ");
    write_file(other, "linked\n");
    assert_int_equal(whit_buffer_replace(buffer, &there, &error), WHIT_ERROR_ARGUMENT);
    assert_file(path, "linked\n");
    write_file(copy, "a copy\n");
    there = (whit_file_identity){.exists = false};
    assert_int_equal(whit_buffer_save_copy(buffer, copy, journals, &there, &error), WHIT_ERROR_ARGUMENT);
    assert_int_equal(whit_buffer_save_as(buffer, copy, journals, &there, &error), WHIT_ERROR_ARGUMENT);
    assert_file(copy, "a copy\n");
    whit_buffer_close(buffer);
}

/* The copy of a save in place without a journal follows no link, and replaces no file. */
static void test_spare_links(void **state)
{
    (void)state;
    char other[PATH_MAX], spare[PATH_MAX], target[PATH_MAX];
    const char *path = in_folder("spare.txt");
    write_file(path, "old\n");
    snprintf(other, sizeof other, "%s.2", path);
    snprintf(spare, sizeof spare, "%s.save", path);
    snprintf(target, sizeof target, "%s.target", path);
    assert_int_equal(link(path, other), 0);
    assert_int_equal(symlink(target, spare), 0);
    whit_error error;
    whit_buffer *buffer;
    assert_ok(whit_buffer_open(path, NULL, &buffer, &error), error);
    insert(buffer, 0, "new ");
    save(buffer);
    assert_file(other, "new old\n");
    assert_int_equal(access(target, F_OK), -1);
    struct stat about;
    assert_int_equal(lstat(spare, &about), 0);
    insert(buffer, 0, "more ");
    whit_file_identity now = buffer->file.identity;
    assert_int_equal(whit_file_save(path, buffer->text, spare, NULL, NULL, &now, &error), WHIT_ERROR_IO);
    assert_int_equal(access(target, F_OK), -1);
    assert_file(other, "new old\n");
    whit_buffer_close(buffer);
}

/* A failed save in place changes the file's time; that must not count as a conflict. */
static void test_full_disk_in_place(void **state)
{
    (void)state;
    char other[PATH_MAX];
    const char *path = in_folder("linked.txt");
    write_file(path, "old\n");
    snprintf(other, sizeof other, "%s.2", path);
    assert_int_equal(link(path, other), 0);
    whit_buffer *buffer = open_buffer(path);
    insert(buffer, 0, "new ");
    whit_error error;
    usleep(20000); /* so that the file's time changes */
    disk_is_full = true;
    whit_status status = whit_buffer_save(buffer, false, &error);
    disk_is_full = false;
    assert_int_equal(status, WHIT_ERROR_IO);
    assert_non_null(strstr(error.message, "No space left"));
    assert_file(other, "old\n");
    assert_false(whit_buffer_is_conflicting(buffer));
    assert_true(whit_buffer_is_modified(buffer));
    save(buffer);
    assert_file(other, "new old\n");

    /* A change by another program before the failed save remains a conflict. */
    insert(buffer, 0, "more ");
    write_file(other, "theirs\n");
    disk_is_full = true;
    assert_int_equal(whit_buffer_save(buffer, true, &error), WHIT_ERROR_IO);
    disk_is_full = false;
    assert_true(whit_buffer_is_conflicting(buffer));
    whit_buffer_close(buffer);
}

/* A journal of any length must be readable: here a sparse file of 2 GiB. */
static void test_long_journal(void **state)
{
    (void)state;
    const char *path = in_folder("journal.txt");
    write_file(path, "text\n");
    whit_buffer *buffer = open_buffer(path);
    insert(buffer, 0, "unsaved ");
    whit_buffer_flush(buffer, NULL);
    assert_int_equal(truncate(buffer->journal.path, (off_t)1 << 31), 0);
    crash(buffer);
    buffer = open_buffer(path);
    assert_int_equal(buffer->found, WHIT_FOUND_UNSAVED);
    whit_buffer_recover(buffer);
    assert_text(buffer, "unsaved text\n");
    save(buffer);
    whit_buffer_close(buffer);
}

/* A byte order mark is no part of the text; the file, copies of it, patches and git include it. */
static void test_mark(void **state)
{
    (void)state;
    char other[PATH_MAX];
    const char *path = in_folder("mark.txt");
    write_file(path, WHIT_FILE_MARK "one\n");
    snprintf(other, sizeof other, "%s.2", path);
    whit_buffer *buffer = open_buffer(path);
    whit_error error;
    assert_text(buffer, "one\n");
    insert(buffer, 0, "x");
    assert_int_equal(whit_buffer_edit(buffer, 0, 2, "y", 1, &error), WHIT_OK);
    save(buffer);
    assert_file(path, WHIT_FILE_MARK "yne\n");
    assert_ok(whit_buffer_save_copy(buffer, other, journals, NULL, &error), error);
    assert_file(other, WHIT_FILE_MARK "yne\n");
    /* The file has two names and is therefore written in place. */
    assert_int_equal(unlink(other), 0);
    assert_int_equal(link(path, other), 0);
    insert(buffer, 0, "longer ");
    save(buffer);
    assert_file(other, WHIT_FILE_MARK "longer yne\n");
    /* Another program removes the mark, and a patch adds it again. */
    write_file(path, "bare\n");
    assert_ok(whit_buffer_take(buffer, &error), error);
    assert_false(buffer->file.has_mark);
    assert_ok(whit_buffer_become(buffer, WHIT_FILE_MARK "two\n", 7, &error), error);
    assert_text(buffer, "two\n");
    save(buffer);
    assert_file(path, WHIT_FILE_MARK "two\n");
    whit_buffer_close(buffer);
    /* The undo history of an earlier run is valid for the same text, with or without a mark. */
    write_file(path, "two\n");
    buffer = open_buffer(path);
    assert_text(buffer, "two\n");
    insert(buffer, 0, "z");
    save(buffer);
    assert_file(path, "ztwo\n");
    whit_buffer_close(buffer);
}

static int make_folders(void **state)
{
    if (make_folder(state)) return -1;
    snprintf(journals, sizeof journals, "%s", in_folder("journals"));
    return mkdir(journals, 0700);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_save_keeps),
        cmocka_unit_test(test_recovery),
        cmocka_unit_test(test_conflicts),
        cmocka_unit_test(test_own_name),
        cmocka_unit_test(test_redo_behind_save),
        cmocka_unit_test(test_killed_save),
        cmocka_unit_test(test_cursor_of_changed),
        cmocka_unit_test(test_unsized),
        cmocka_unit_test(test_cut_short),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_saved_meanwhile),
        cmocka_unit_test(test_spare_links),
        cmocka_unit_test(test_full_disk_in_place),
        cmocka_unit_test(test_long_journal),
        cmocka_unit_test(test_mark),
        cmocka_unit_test(test_become),
        cmocka_unit_test(test_nameless),
        cmocka_unit_test(test_later),
        cmocka_unit_test(test_kills),
    };
    return cmocka_run_group_tests(tests, make_folders, remove_folder);
}
