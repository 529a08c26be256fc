/* SPDX-License-Identifier: MIT
 * Tests src/base: errors, sizes, buffers, files and hashes. */
#include "test.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/path.h"
#include "base/plain.h"
#include "base/rng.h"
#include "base/shell.h"

static void errors_are_cut_clean(void **state)
{
    (void)state;
    whit_error error = {0};
    char long_text[2000];
    memset(long_text, 'a', sizeof long_text);
    long_text[sizeof long_text - 1] = 0;
    memcpy(long_text + 501, "\xC3\xA9", 2); /* a character across the end of the buffer */
    assert_int_equal(whit_fail(&error, WHIT_ERROR_IO, "%s", long_text), WHIT_ERROR_IO);
    assert_int_equal(strlen(error.message), 501);
    whit_fail(&error, WHIT_ERROR_IO, "a\nb\x1b[0m");
    assert_string_equal(error.message, "a?b?[0m");
    assert_int_equal(whit_fail(NULL, WHIT_ERROR_LIMIT, "x"), WHIT_ERROR_LIMIT);
}

static void typed_paths_are_expanded(void **state)
{
    char path[12];
    (void)state;
    setenv("HOME", "/h", 1);
    assert_true(whit_path_expand("~/a b", path, sizeof path));
    assert_string_equal(path, "/h/a b");
    assert_true(whit_path_expand("~a/~/b", path, sizeof path));
    assert_string_equal(path, "~a/~/b");
    assert_true(whit_path_expand("~/12345678", path, sizeof path));
    assert_false(whit_path_expand("~/123456789", path, sizeof path));
    assert_false(whit_path_expand("123456789012", path, sizeof path));
    unsetenv("HOME");
    assert_true(whit_path_expand("~/a", path, sizeof path));
    assert_string_equal(path, "~/a");
}

static void words_are_quoted(void **state)
{
    static const char *const cases[][2] = {
        {"a$b", "'a$b'"}, {"it's '", "'it'\\''s '\\'''"}, {"", "''"}, {"'", "''\\'''"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        whit_buf word = {0};
        assert_true(whit_shell_quote(&word, cases[i][0]));
        assert_int_equal(word.size_bytes, strlen(cases[i][1]));
        assert_memory_equal(word.data, cases[i][1], word.size_bytes);
        whit_buf_free(&word);
    }
}

static void text_from_outside_is_plain(void **state)
{
    (void)state;
    static const struct {
        const char *text, *plain;
    } cases[] = {
        {"caf\xC3\xA9 \xE4\xB8\xAD \xF0\x9F\x98\x80\n\tx", "caf\xC3\xA9 \xE4\xB8\xAD \xF0\x9F\x98\x80\n\tx"},
        {"\x1b[2Jx\x07\r\x7f", "?[2Jx???"},
        {"a\xE2\x80\xAE"
         "b\xE2\x81\xA6\xC2\xAD",
         "a<U+202E>b<U+2066><U+00AD>"}, /* CVE-2021-42574 */
        {"\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x94\xA7",
         "\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x94\xA7"}, /* one emoji */
        {"a\xE2\x80\x8D\xF3\xA0\x81\xA1", "a<U+200D><U+E0061>"},
        {"\xC2\x9B"
         "2J",
         "?2J"}, /* U+009B, a control sequence as two bytes */
        {"\xC2\xC2\x9B"
         "2J",
         "??2J"}, /* after a lead byte without continuation */
        {"\x9B"
         "2J\xFF\x80",
         "?2J??"}, /* invalid bytes */
        {"\xE2\x82\xC2\x9B"
         "2J",
         "??2J"}, /* after a truncated character */
        {"\xC2\xA0\xC2\x85", "\xC2\xA0?"},
        {"\xE0\x82\x9B\xED\xA0\x80", "??????"}, /* overlong; a surrogate */
        {"x\xF0\x9F\x98", "x?"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t n = strlen(cases[i].text);
        /* divided in two at any place, and byte by byte, the result must be the same */
        for (size_t cut = 0; cut <= n + 1; cut++) {
            whit_plain plain = {{0}, 0, false, false};
            char out[WHIT_PLAIN_ROOM(32)];
            size_t n_out = 0;
            if (cut <= n) {
                n_out = whit_plain_text(&plain, cases[i].text, cut, out);
                n_out += whit_plain_text(&plain, cases[i].text + cut, n - cut, out + n_out);
            }
            for (size_t k = 0; cut > n && k < n; k++)
                n_out += whit_plain_text(&plain, cases[i].text + k, 1, out + n_out);
            n_out += whit_plain_end(&plain, out + n_out);
            out[n_out] = 0;
            assert_string_equal(out, cases[i].plain);
        }
    }
    whit_error error = {0};
    whit_fail(&error, WHIT_ERROR_FORMAT, "%s",
              "a\xC2\xC2\x9B"
              "2J\x9B\tb\xC3\xA9\xC2\x85");
    assert_string_equal(error.message, "a??2J??b\xC3\xA9?");
}

/* A person who agrees to a text must be able to distinguish it from every other text. */
static void shown_texts_differ(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t n;
        whit_plain_kept kept;
        const char *shown;
    } cases[] = {
        {"a\tb\r\nc\n", 7, WHIT_PLAIN_LINES, "a\tb<U+000D>\nc\n"},
        {"a\tb\r\nc\r", 7, WHIT_PLAIN_ENDS, "a\tb\r\nc<U+000D>"},
        {"a\tb\nc", 5, WHIT_PLAIN_NAME, "a<U+0009>b<U+000A>c"},
        {"\0\x1b[2J\x7f", 6, WHIT_PLAIN_LINES, "<U+0000><U+001B>[2J<U+007F>"},
        {"caf\xE9\xE2\x82 \xC3\xA9", 9, WHIT_PLAIN_LINES, "caf<0xE9><0xE2><0x82> \xC3\xA9"},
        {"\xE2\x80\xAE\xF0\x9F\x91\xA9\xE2\x80\x8D\xC2\xA0", 12, WHIT_PLAIN_LINES,
         "<U+202E>\xF0\x9F\x91\xA9<U+200D><U+00A0>"},
        {"<U+202E> <0xE9> <V", 18, WHIT_PLAIN_LINES, "<U+003C>U+202E> <U+003C>0xE9> <V"},
        /* characters that terminals do not show: unassigned code points, noncharacters, many marks */
        {"a\xEF\xBF\xBF\xEF\xB7\x90\xF0\x9F\xBF\xBF\xCD\xB8", 13, WHIT_PLAIN_LINES,
         "a<U+FFFF><U+FDD0><U+1FFFF><U+0378>"},
        {"\xEE\x80\x80\xF0\x96\xBF\xA4", 7, WHIT_PLAIN_LINES, "<U+E000><U+16FE4>"},
        {"a\xCC\xB6\xCC\xB6\xCC\xB6\xCC\xB6\xCC\xB6z\xCC\xB6", 14, WHIT_PLAIN_LINES,
         "a\xCC\xB6\xCC\xB6\xCC\xB6\xCC\xB6<U+0336>z\xCC\xB6"},
        {"\xEA\xB0\x80\xE1\x85\xA1\xE1\x85\xA1\xE1\x85\xA1\xE1\x85\xA1\xE1\x85\xA1", 18, WHIT_PLAIN_LINES,
         "\xEA\xB0\x80\xE1\x85\xA1\xE1\x85\xA1\xE1\x85\xA1\xE1\x85\xA1<U+1161>"},
        {"", 0, WHIT_PLAIN_LINES, ""},
        /* blanks that end a line, where nobody sees them: after a backslash they end a command of a shell */
        {"a \\ \n\tb\t\n", 9, WHIT_PLAIN_LINES, "a \\<U+0020>\n\tb<U+0009>\n"},
        {"a \r\n \n  ", 8, WHIT_PLAIN_ENDS, "a<U+0020>\r\n<U+0020>\n<U+0020><U+0020>"},
        {" \n  \n+\n+ \n- a\n", 14, WHIT_PLAIN_SIGNED, " \n <U+0020>\n+\n+<U+0020>\n- a\n"},
        {"a  ", 3, WHIT_PLAIN_NAME, "a<U+0020><U+0020>"},
        /* letters that look like Latin ones: Cyrillic a and o in a word with Latin letters and alone, Greek Omicron,
         * a wide letter; not in words of their own language, nor a letter of another look */
        {"is_\xD0\xB0"
         "dmin \xD0\xBF\xD0\xB0",
         14, WHIT_PLAIN_LINES, "is_<U+0430>dmin \xD0\xBF\xD0\xB0"},
        {"\xD0\xBE=1\n\xD0\xB6 \xD0\xBE", 10, WHIT_PLAIN_LINES, "<U+043E>=1\n\xD0\xB6 \xD0\xBE"},
        {"L\xCE\x9FG \xCE\x9F\xCE\xB4 \xCE\x94x\xEF\xBD\x81", 16, WHIT_PLAIN_NAME,
         "L<U+039F>G \xCE\x9F\xCE\xB4 \xCE\x94x<U+FF41>"},
        /* letters of other alphabets (Canadian, a digit of Devanagari, a runic letter) in words with Latin letters */
        {"\xE1\x91\xADx y\xE0\xA5\xA6 \xE1\x9A\xB1"
         "b",
         14, WHIT_PLAIN_LINES, "<U+146D>x y<U+0966> <U+16B1>b"},
        /* letters and signs that look like signs of ASCII: a click like "!", a modifier letter like a quote, a digit
         * like a full stop, a slash; not between letters of their own, nor at the end of a word */
        {"if (env\xC7\x83=a", 11, WHIT_PLAIN_LINES, "if (env<U+01C3>=a"},
        {"\xCA\xBC"
         "a a\xD9\xA0"
         "b :\xE2\x88\x95x",
         14, WHIT_PLAIN_LINES, "<U+02BC>a a<U+0660>b :<U+2215>x"},
        {"\xD0\xBF\xCA\xBC\xD1\x8F \xD7\x92\xD7\xB3 \xD9\xA1\xD9\xA0", 16, WHIT_PLAIN_LINES,
         "\xD0\xBF\xCA\xBC\xD1\x8F \xD7\x92\xD7\xB3 \xD9\xA1\xD9\xA0"},
        /* combining marks over characters of ASCII that are no letters, and a dot over one that has it */
        {"a_\xCC\xB2-\xE2\x83\x92i\xCC\x87"
         "e\xCC\x81",
         14, WHIT_PLAIN_LINES, "a_<U+0332>-<U+20D2>i<U+0307>e\xCC\x81"},
        {"d\xE1\x9F\x92\xC3\xA9\xE1\x80\xB9 \xE1\x9E\x80\xE1\x9F\x92", 16, WHIT_PLAIN_LINES,
         "d<U+17D2>\xC3\xA9<U+1039> \xE1\x9E\x80\xE1\x9F\x92"}, /* marks that join Khmer and Burmese letters */
        {"-\xE2\x83\x92\n\xCC\x81\xCC\x81", 9, WHIT_PLAIN_SIGNED, "-<U+20D2>\n<U+0301><U+0301>"},
        {"caf\xC3\xA9 \xCE\xBCs PDF\xD1\x8B", 15, WHIT_PLAIN_LINES, "caf\xC3\xA9 \xCE\xBCs PDF\xD1\x8B"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        whit_buf out = {0};
        assert_true(whit_plain_show(cases[i].text, cases[i].n, cases[i].kept, &out));
        assert_int_equal(out.size_bytes, strlen(cases[i].shown));
        if (out.size_bytes) assert_memory_equal(out.data, cases[i].shown, out.size_bytes);
        whit_buf_free(&out);
    }
    /* many blanks, after which a text may be out of sight */
    for (size_t i = 64; i <= 65; i++) {
        whit_buf out = {0};
        char line[80];
        const size_t n_line = (size_t)snprintf(line, sizeof line, "a%*sb", (int)i, "");
        assert_true(whit_plain_show(line, n_line, i % 2 ? WHIT_PLAIN_NAME : WHIT_PLAIN_LINES, &out));
        assert_int_equal(out.size_bytes, i == 64 ? 66 : 2 + 65 * strlen("<U+0020>"));
        whit_buf_free(&out);
    }
    whit_buf expanded = {0};
    assert_true(whit_plain_for_terminal("+\ta\n\xC3\xA9\xE4\xB8\xAD\tb\t", 12, 0, &expanded));
    assert_int_equal(expanded.size_bytes, 28);
    assert_memory_equal(expanded.data, "+       a\n\xC3\xA9\xE4\xB8\xAD     b       ", 28);
    whit_buf_free(&expanded);
    /* lines that are longer than a row of ten columns */
    static const struct {
        const char *text, *rows;
    } lines[] = {
        {"+234567890\n+b\n", "+234567890\n+b\n"},
        {"+234567890+b\n", "+234567890\n> +b\n"},
        {"+234567890+bcdefgh+c", "+234567890\n> +bcdefgh\n> +c"},
        {"+2\tx+b", "+2      x+\n> b"},
        {"+23456789\xE4\xB8\xADx", "+23456789\n> \xE4\xB8\xADx"}, /* a wide character */
        {"+23456789\xE4\xB7\x80x", "+23456789\n> \xE4\xB7\x80x"}, /* a hexagram */
        {"+23456789\xE3\x89\x88x", "+23456789\n> \xE3\x89\x88x"}, /* a number on a square */
        {"+23456789e\xCC\x81+b", "+23456789e\xCC\x81\n> +b"},     /* a mark stays over its letter */
        {"+2345678\xCC\x81"
         "0+b",
         "+2345678\xCC\x81"
         "0\n> +b"}, /* a terminal may draw it beside it */
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        whit_buf rows = {0};
        assert_true(whit_plain_for_terminal(lines[i].text, strlen(lines[i].text), 10, &rows));
        assert_int_equal(rows.size_bytes, strlen(lines[i].rows));
        assert_memory_equal(rows.data, lines[i].rows, rows.size_bytes);
        whit_buf_free(&rows);
    }
    /* letters from right to left (Hebrew alef, bet with a vowel, Arabic beh) and Arabic digits (1, 2), between marks */
#define M    "\xE2\x80\x8E"
#define ALEF "\xD7\x90"
#define BET  "\xD7\x91\xD6\xB8"
#define BEH  "\xD8\xA8"
#define ONE  "\xD9\xA1"
#define TWO  "\xD9\xA2"
    static const struct {
        const char *text, *ordered;
    } orders[] = {
        {"", ""},
        {"+a = 1 - 2;\n \xC3\xA9\n", "+a = 1 - 2;\n \xC3\xA9\n"},
        {"+" ALEF " = 1 - 2\n", "+" M ALEF M " = 1 - 2\n"},
        {"+" ALEF "12" BET "\n-" BEH "3\n", "+" M ALEF M "12" BET M "\n-" M BEH M "3\n"},
        {ALEF BET " " BEH ALEF ", " BET ".", M ALEF BET " " BEH ALEF M ", " BET M "."}, /* prose */
        {ALEF " \n" ALEF "  " BET " (", M ALEF M " \n" M ALEF M "  " BET M " ("},
        {ONE " - " TWO, M ONE M " - " TWO M},
        {BEH ONE TWO " " BEH, M BEH M ONE TWO M " " BEH M},
        {"\xCC\x81" ALEF "\xE4", "\xCC\x81" M ALEF M "\xE4"}, /* a lone combining mark, and no character */
    };
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        whit_buf ordered = {0};
        assert_true(whit_plain_keep_order(orders[i].text, strlen(orders[i].text), &ordered));
        assert_int_equal(ordered.size_bytes, strlen(orders[i].ordered));
        if (ordered.size_bytes) assert_memory_equal(ordered.data, orders[i].ordered, ordered.size_bytes);
        whit_buf_free(&ordered);
    }
    assert_true(whit_plain_has_hidden("a\xE2\x80\xAE", 4));
    assert_true(whit_plain_has_hidden("a\xE2\x80\x8D", 4));         /* a joiner after an ASCII letter joins nothing */
    assert_true(whit_plain_has_hidden("a\xEF\xBF\xBF", 4));         /* a noncharacter */
    assert_true(whit_plain_has_hidden("a\xCD\xB8", 3));             /* an unassigned code point */
    assert_false(whit_plain_has_hidden("\xC2\xA9\xEF\xB8\x8F", 5)); /* an emoji with its variation selector */
    assert_true(whit_plain_has_hidden("a_\xCC\xB2", 4));            /* a low line under a low line */
    assert_true(whit_plain_has_hidden("\xE2\x83\x92", 3));          /* a mark over a difference's sign */
    assert_false(whit_plain_has_hidden("a\xCC\xB6\xEE\x80\x80", 6));
    assert_false(whit_plain_has_hidden("\xF0\x9F\x91\xA9\xE2\x80\x8D caf\xE9", 12));
}

static void sizes_do_not_overflow(void **state)
{
    (void)state;
    size_t r = 7;
    assert_false(whit_mul_size(SIZE_MAX / 2, 3, &r));
    assert_int_equal(r, 7);
    assert_false(whit_add_size(SIZE_MAX, 1, &r));
    assert_true(whit_in_bounds(10, 0, 10));
    assert_false(whit_in_bounds(11, 0, 10));
    assert_false(whit_in_bounds(1, UINT64_MAX, 10));
    assert_null(whit_zalloc_array(NULL, SIZE_MAX / 2, 3));
}

static void buffers_remember_failure(void **state)
{
    (void)state;
    whit_buf buf = {.limit_bytes = 8};
    assert_true(whit_buf_append(&buf, "12345", 5));
    assert_true(whit_buf_align(&buf, 8));
    assert_false(whit_buf_append(&buf, "x", 1));
    assert_true(buf.failed);
    assert_memory_equal(buf.data, "12345\0\0\0", 8);
    whit_buf_free(&buf);
    whit_buf text = {0};
    assert_true(whit_buf_printf(&text, "%d %s", 42, "x"));
    assert_int_equal(text.size_bytes, 4);
    whit_buf_free(&text);
}

static void writes_are_atomic(void **state)
{
    (void)state;
    char folder[] = "/tmp/whit-base-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/file", folder);
    whit_error error;
    assert_ok(whit_write_file(path, "old", 3, &error), error);
    whit_writer writer;
    assert_ok(whit_writer_open(path, NULL, &writer, &error), error);
    assert_ok(whit_writer_append(&writer, "newer", 5, &error), error);
    /* until the commit, others see the old file, and another writer uses another temporary name */
    whit_writer second;
    assert_ok(whit_writer_open(path, NULL, &second, &error), error);
    assert_true(second.unnamed || strcmp(writer.temporary, second.temporary) != 0);
    whit_writer_discard(&second);
    whit_map map;
    assert_ok(whit_map_open(path, NULL, &map, &error), error);
    assert_int_equal(map.size_bytes, 3);
    whit_map_close(&map);
    assert_ok(whit_writer_commit(&writer, &error), error);
    assert_ok(whit_map_open(path, NULL, &map, &error), error);
    assert_memory_equal(map.data, "newer", 5);
    whit_map_close(&map);
    assert_ok(whit_writer_open(path, NULL, &writer, &error), error);
    whit_writer_discard(&writer);
    unlink(path);
    assert_int_equal(rmdir(folder), 0); /* the folder is empty, so no file was left */
    assert_int_equal(whit_map_open(folder, NULL, &map, &error), WHIT_ERROR_IO);
    assert_non_null(strstr(error.message, folder));
}

/* A new file has the mode that the umask permits, and the process's umask is unchanged. */
static void files_have_the_users_mode(void **state)
{
    (void)state;
    static const mode_t masks[] = {022, 077, 0};
    char folder[] = "/tmp/whit-base-XXXXXX", path[64];
    whit_error error;
    struct stat info;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/file", folder);
    mode_t before = umask(0);
    for (size_t i = 0; i < sizeof masks / sizeof *masks; i++) {
        umask(masks[i]);
        assert_ok(whit_write_file(path, "x", 1, &error), error);
        assert_int_equal(umask(masks[i]), masks[i]);
        assert_int_equal(stat(path, &info), 0);
        assert_int_equal(info.st_mode & 0777, 0666 & ~masks[i]);
        unlink(path);
    }
    umask(before);
    rmdir(folder);
    assert_int_equal(whit_write_file(path, "x", 1, &error), WHIT_ERROR_IO);
    assert_non_null(strstr(error.message, path));
}

/* As with "--key-file <(pass show key)", a pipe must be read to its end, however late the bytes come. */
static void pipes_are_waited_for(void **state)
{
    (void)state;
    int ends[2];
    char path[32];
    whit_error error;
    whit_buf text = {0};
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        usleep(50000);
        bool right = write(ends[1], "la", 2) == 2;
        usleep(50000);
        _exit(!right || write(ends[1], "te", 2) != 2);
    }
    close(ends[1]);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    assert_ok(whit_read_file(path, 100, &text, &error), error);
    assert_int_equal(text.size_bytes, 4);
    assert_memory_equal(text.data, "late", 4);
    whit_buf_free(&text);
    close(ends[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* A file that was found is not waited for, and nothing is taken from a pipe or a terminal to which it leads. */
static void found_files_are_regular(void **state)
{
    (void)state;
    int ends[2];
    char path[32], head[8];
    whit_error error;
    whit_buf text = {0};
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "keys", 4), 4);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    assert_int_equal(whit_read_found_file(path, 100, &text, &error), WHIT_ERROR_IO);
    assert_non_null(strstr(error.message, "not a regular file"));
    assert_int_equal(whit_read_found_head(path, head, sizeof head), 0);
    assert_int_equal(read(ends[0], head, sizeof head), 4);
    assert_int_equal(whit_read_found_file("/dev/zero", 100, &text, NULL), WHIT_ERROR_IO);
    assert_int_equal(whit_read_found_file("/proc/none", 100, &text, &error), WHIT_ERROR_IO);
    assert_non_null(strstr(error.message, "No such file"));
    assert_int_equal(text.size_bytes, 0);
    close(ends[0]);
    close(ends[1]);
}

static void write_text(const char *folder, const char *name, const char *text)
{
    char path[256];
    whit_error error;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_ok(whit_write_file(path, text, strlen(text), &error), error);
}

/* CPU quotas of both cgroup versions, of a group and of its parents. */
static void quotas_are_read(void **state)
{
    (void)state;
    char root[] = "/tmp/whit-base-XXXXXX", list[64], command[160];
    assert_non_null(mkdtemp(root));
    snprintf(list, sizeof list, "%s/list", root);
    snprintf(command, sizeof command, "mkdir -p %s/a/b %s/cpu,cpuacct/job", root, root);
    assert_int_equal(system(command), 0);
    assert_true(whit_cpu_quota(list, root) == 0);
    write_text(root, "list", "4:memory:/\n0::/a/b\n");
    assert_true(whit_cpu_quota(list, root) == 0);
    write_text(root, "a/b/cpu.max", "max 100000\n");
    assert_true(whit_cpu_quota(list, root) == 0);
    write_text(root, "a/cpu.max", "150000 100000\n");
    assert_true(whit_cpu_quota(list, root) == 1.5);
    write_text(root, "a/b/cpu.max", "50000 100000\n");
    assert_true(whit_cpu_quota(list, root) == 0.5);
    write_text(root, "list", "3:cpu,cpuacct:/job\n");
    write_text(root, "cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
    write_text(root, "cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
    assert_true(whit_cpu_quota(list, root) == 0);
    write_text(root, "cpu,cpuacct/job/cpu.cfs_quota_us", "300000\n");
    assert_true(whit_cpu_quota(list, root) == 3);
    snprintf(command, sizeof command, "rm -r %s", root);
    assert_int_equal(system(command), 0);
}

/* Memory limits of both cgroup versions: that of a parent counts if it is smaller. */
static void memory_limits_are_read(void **state)
{
    (void)state;
    char root[] = "/tmp/whit-base-XXXXXX", list[64], command[160];
    assert_non_null(mkdtemp(root));
    snprintf(list, sizeof list, "%s/list", root);
    snprintf(command, sizeof command, "mkdir -p %s/a/b %s/memory/job", root, root);
    assert_int_equal(system(command), 0);
    write_text(root, "list", "4:memory:/none\n0::/a/b\n");
    assert_int_equal(whit_memory_limit(list, root), 0);
    write_text(root, "a/b/memory.max", "max\n");
    assert_int_equal(whit_memory_limit(list, root), 0);
    write_text(root, "a/memory.max", "2147483648\n");
    assert_int_equal(whit_memory_limit(list, root), 2147483648);
    write_text(root, "a/b/memory.max", "4294967296\n");
    assert_int_equal(whit_memory_limit(list, root), 2147483648);
    write_text(root, "memory.max", "1073741824\n");
    assert_int_equal(whit_memory_limit(list, root), 1073741824);
    write_text(root, "list", "3:cpu:/a\n2:memory:/job\n");
    write_text(root, "memory/memory.limit_in_bytes", "9223372036854771712\n");
    assert_int_equal(whit_memory_limit(list, root), 0);
    write_text(root, "memory/job/memory.limit_in_bytes", "536870912\n");
    assert_int_equal(whit_memory_limit(list, root), 536870912);
    snprintf(command, sizeof command, "rm -r %s", root);
    assert_int_equal(system(command), 0);
}

static void hashes_have_domains(void **state)
{
    (void)state;
    uint8_t a[WHIT_HASH_BYTES], b[WHIT_HASH_BYTES];
    whit_hash hash;
    whit_hash_begin(&hash, "one");
    whit_hash_add(&hash, "abc", 3);
    whit_hash_end(&hash, a);
    whit_hash_begin(&hash, "two");
    whit_hash_add(&hash, "abc", 3);
    whit_hash_end(&hash, b);
    assert_memory_not_equal(a, b, sizeof a);
    char text[65];
    whit_hash_hex(a, text);
    assert_int_equal(strlen(text), 64);
}

static void paths_below(void **state)
{
    (void)state;
    assert_true(whit_path_is_below("/a/b", "/a") && whit_path_is_below("/a", "/a") &&
                whit_path_is_below("/a/b", "/a/"));
    assert_true(whit_path_is_below("/a", "/"));
    assert_false(whit_path_is_below("/ab", "/a") || whit_path_is_below("/", "/a") || whit_path_is_below("a", "/"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_below),
        cmocka_unit_test(errors_are_cut_clean),
        cmocka_unit_test(text_from_outside_is_plain),
        cmocka_unit_test(typed_paths_are_expanded),
        cmocka_unit_test(words_are_quoted),
        cmocka_unit_test(shown_texts_differ),
        cmocka_unit_test(sizes_do_not_overflow),
        cmocka_unit_test(buffers_remember_failure),
        cmocka_unit_test(writes_are_atomic),
        cmocka_unit_test(files_have_the_users_mode),
        cmocka_unit_test(hashes_have_domains),
        cmocka_unit_test(quotas_are_read),
        cmocka_unit_test(memory_limits_are_read),
        cmocka_unit_test(pipes_are_waited_for),
        cmocka_unit_test(found_files_are_regular),
    };
    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
