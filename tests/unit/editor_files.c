/* SPDX-License-Identifier: MIT
 * Saving, journals, and what others do to a file meanwhile. */
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

/* Closes without a word, as kill -9 does: the journal stays as it was flushed. */
static void crash(whit_buffer *buffer)
{
    whit_error error;
    assert_ok(whit_buffer_flush(buffer, &error), error);
    buffer->found = WHIT_FOUND_LOST; /* "not decided": nothing is tidied up */
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

    /* Both names of a hard link see the new text. */
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

    /* A new file has the mode that the user's mask says. */
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
    crash(buffer); /* the undo is in the journal, too */

    write_file(path, "others\n"); /* and so is the base: others may write meanwhile */
    buffer = open_buffer(path);
    assert_int_equal(buffer->found, WHIT_FOUND_UNSAVED);
    whit_buffer_recover(buffer);
    assert_text(buffer, "base\ntyped\n");
    assert_true(whit_buffer_redo(buffer, &changed, NULL));
    assert_text(buffer, "base\ntyped\nagain\n");
    whit_error error;
    assert_true(whit_buffer_is_conflicting(buffer)); /* what they wrote is not overwritten unasked */
    assert_int_equal(whit_buffer_save(buffer, false, &error), WHIT_ERROR_ARGUMENT);
    assert_file(path, "others\n");
    assert_ok(whit_buffer_save(buffer, true, &error), error);
    whit_buffer_close(buffer);
    assert_file(path, "base\ntyped\nagain\n");

    /* Undo reaches back over runs, where the file is what was saved. */
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

/* A new file that is saved under its own name keeps its journal, and is one text, however it is called. */
static void test_own_name(void **state)
{
    (void)state;
    const char *path = in_folder("own.txt");
    whit_error error;
    whit_buffer *buffer = open_buffer(path);
    insert(buffer, 0, "one ");
    assert_ok(whit_buffer_save_as(buffer, path, journals, &error), error);
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
    ed_save_under(editor, "own-too.txt", false);
    assert_file("own-too.txt", "one");
    assert_int_equal(editor->docs->buffer->found, WHIT_FOUND_NOTHING);
    assert_true(editor->docs->buffer->journal.fd >= 0);
    assert_null(editor->docs->next);
    whit_editor_close(editor);
    assert_int_equal(chdir(before), 0);
}

/* Saved as it was opened, with steps that undo took back: what is redone is in the journal of the new name, too. */
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
        assert_ok(whit_buffer_save_as(buffer, other, journals, &error), error);
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

/* The cursor of a text that another program changed keeps its line and column, in characters. */
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

    /* Far into a line it is the offset that stays, but for the character that it would divide. */
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

/* A file of /proc has a size of 0 and a content. */
static void test_unsized(void **state)
{
    (void)state;
    whit_buffer *buffer = open_buffer("/proc/sys/kernel/ostype");
    assert_text(buffer, "Linux\n");
    whit_buffer_close(buffer);
}

/* Killed behind the rename and before the journal says so, a save is still known as this editor's; what stands in the
 * journal nowhere is somebody else's. Until a person has chosen, nothing is written over what the journal holds. */
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

/* A mapped file that is cut short reads as zeros and is not saved; nothing crashes. */
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

    /* Large and with two names: written in place under its own map, and read again. */
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

    /* Unsaved edits of a large file need that very file. */
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

/* No file grows beyond so many bytes; returns how many it were before. */
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

/* A disk that is full (here: a limit on the size of files) keeps the old file and the text. */
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
    assert_int_equal(flushed, WHIT_OK); /* said once, by the save's own flush */
    assert_file(path, "old\n");
    assert_int_equal(whit_text_size(buffer->text), 2004);
    save(buffer);
    whit_buffer_close(buffer);

    /* A journal that ends too early is not taken for unsaved text once all is saved, and goes on from there. */
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

/* What stays may be all of the old text: no byte before it is looked at. */
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
    /* Two at a time, as two editors have them. */
    whit_buffer *buffer = open_nameless(true), *other = open_nameless(true);
    insert(buffer, 0, "first");
    insert(buffer, 5, " text");
    insert(other, 0, "second");
    whit_buffer_undo(buffer, &(whit_range){0}, NULL);
    crash(buffer);
    crash(other);
    /* New text does not take a journal that waits; text that comes with words of its own is offered none. */
    buffer = open_nameless(false);
    assert_int_equal(buffer->found, WHIT_FOUND_NOTHING);
    insert(buffer, 0, "third");
    whit_buffer_close(buffer); /* discarded */
    buffer = open_nameless(true);
    assert_int_equal(buffer->found, WHIT_FOUND_UNSAVED);
    whit_buffer_recover(buffer);
    assert_text(buffer, "first");
    assert_true(whit_buffer_is_modified(buffer));
    assert_true(whit_buffer_redo(buffer, &(whit_range){0}, NULL));
    assert_text(buffer, "first text");
    /* Under a name it leaves nothing behind. */
    const char *path = in_folder("named.txt");
    assert_ok(whit_buffer_save_as(buffer, path, journals, &error), error);
    assert_file(path, "first text");
    whit_buffer_close(buffer);
    /* Later: the text waits, and what is typed meanwhile is kept beside it. */
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
    for (int i = 0; i < 2; i++) { /* as often as one likes */
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

/* Types numbered words and saves now and then, and says after every step how far it came. */
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
        /* Renamed over, a file is whole at any moment; written in place, its copy is. */
        if (!hard) assert_true(sound);
        whit_buffer *buffer = open_buffer(path);
        if (buffer->found == WHIT_FOUND_NOTHING || buffer->found == WHIT_FOUND_HISTORY) assert_true(sound);
        if (sound) assert_true(on_disk >= saved);
        whit_buffer_recover(buffer);
        sound = true;
        uint32_t recovered = count_words(data, whit_text_read(buffer->text, 0, data, sizeof data), &sound);
        assert_true(sound);
        assert_true(recovered >= typed); /* flushed after each: not one is missing */
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

/* Takes the place of the C library's in this program: a disk that fills up while a file grows. */
static bool disk_is_full;
int posix_fallocate(int fd, off_t offset, off_t n_bytes)
{
    if (!disk_is_full) return fallocate(fd, 0, offset, n_bytes) ? errno : 0;
    return ftruncate(fd, offset + n_bytes / 2) ? errno : ENOSPC;
}

/* The time of a file that is written in place and cut back is this editor's doing, and no conflict. */
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
    usleep(20000); /* the clock of files moves on */
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

    /* What somebody else changed before is one still. */
    insert(buffer, 0, "more ");
    write_file(other, "theirs\n");
    disk_is_full = true;
    assert_int_equal(whit_buffer_save(buffer, true, &error), WHIT_ERROR_IO);
    disk_is_full = false;
    assert_true(whit_buffer_is_conflicting(buffer));
    whit_buffer_close(buffer);
}

/* A journal of any length is read: here one that a file system's holes make longer than 1 GiB. */
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

/* A byte order mark is no part of the text; saving, copies, patches and git see it. */
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
    assert_ok(whit_buffer_save_copy(buffer, other, journals, &error), error);
    assert_file(other, WHIT_FILE_MARK "yne\n");
    /* In place, where another name has the same file. */
    assert_int_equal(unlink(other), 0);
    assert_int_equal(link(path, other), 0);
    insert(buffer, 0, "longer ");
    save(buffer);
    assert_file(other, WHIT_FILE_MARK "longer yne\n");
    /* Another program takes it away, or a patch puts it back. */
    write_file(path, "bare\n");
    assert_ok(whit_buffer_take(buffer, &error), error);
    assert_false(buffer->file.has_mark);
    assert_ok(whit_buffer_become(buffer, WHIT_FILE_MARK "two\n", 7, &error), error);
    assert_text(buffer, "two\n");
    save(buffer);
    assert_file(path, WHIT_FILE_MARK "two\n");
    whit_buffer_close(buffer);
    /* The undo of an earlier run belongs to the same text, whatever the file begins with now. */
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
