/* SPDX-License-Identifier: MIT
 * Tests patches in three notations on generated files with shifted blanks, duplicates and outdated context. A patch
 * with exactly one right place must be applied there; one with no place or several must be refused; no file may be
 * damaged. */
#include "test_folder.h"

#include "code/diff.h"
#include "agent/patch.h"
#include "base/file.h"
#include "base/rng.h"

enum { MOST_LINES = 60, N_FORMS = 3 };
static const char *const form_names[N_FORMS] = {"search/replace", "begin patch", "unified diff"};

typedef struct source {
    char lines[MOST_LINES][48];
    int n;
    const char *end;
} source;

/* Returns the random numbers of a test; WHIT_SEED changes them. */
static whit_rng make_rng(uint64_t number)
{
    const char *seed = getenv("WHIT_SEED");
    return (whit_rng){.state = number + (seed ? strtoull(seed, NULL, 10) : 0)};
}

static void make_source(whit_rng *rng, source *s)
{
    static const char *const words[] = {"count", "total", "next", "size", "name", "value", "index", "state"};
    s->n = 12 + (int)whit_rng_below(rng, MOST_LINES - 14);
    s->end = whit_rng_below(rng, 6) ? "\n" : "\r\n";
    for (int i = 0; i < s->n; i++) {
        int indent = 4 * (int)whit_rng_below(rng, 3);
        snprintf(s->lines[i], sizeof s->lines[i], "%*s%s = %s - %d;", indent, "", words[whit_rng_below(rng, 8)],
                 words[whit_rng_below(rng, 8)], (int)whit_rng_below(rng, 10000));
        if (whit_rng_below(rng, 9) == 0) s->lines[i][0] = 0;
    }
}

static void put(whit_buf *out, const char *line, const char *end)
{
    whit_buf_append_str(out, line);
    whit_buf_append_str(out, end);
}

/* How the patch differs from the file. */
enum drift { NONE, TRAILING, INDENTED, TYPOGRAPHIC, STALE, DUPLICATE, N_DRIFTS };

/* One edit: replaces lines [at, at + n_old) by `new`; `before` and `after` are numbers of context lines. */
typedef struct edit {
    int at, n_old, n_new, before, after;
    char new[4][48];
} edit;

static void drift_line(enum drift drift, const char *line, char out[96])
{
    snprintf(out, 96, "%s", line);
    if (drift == TRAILING && *line) strcat(out, "  ");
    if (drift == INDENTED && *line) snprintf(out, 96, "  %s", line);
    if (drift == TYPOGRAPHIC) {
        char *minus = strchr(out, '-');
        if (minus) { /* an en dash instead of a minus */
            memmove(minus + 3, minus + 1, strlen(minus));
            memcpy(minus, "\xE2\x80\x93", 3);
        }
    }
}

static void write_patch(int form, const source *s, const edit *e, enum drift drift, whit_buf *out)
{
    char line[96];
    int from = e->at - e->before, to = e->at + e->n_old + e->after;
    if (form == 0) {
        whit_buf_append_str(out, "src/file.c\n<<<<<<< SEARCH\n");
        for (int i = from; i < to; i++) drift_line(drift, s->lines[i], line), put(out, line, "\n");
        whit_buf_append_str(out, "=======\n");
        for (int i = from; i < e->at; i++) drift_line(drift, s->lines[i], line), put(out, line, "\n");
        for (int i = 0; i < e->n_new; i++)
            drift_line(drift == INDENTED ? drift : NONE, e->new[i], line), put(out, line, "\n");
        for (int i = e->at + e->n_old; i < to; i++) drift_line(drift, s->lines[i], line), put(out, line, "\n");
        whit_buf_append_str(out, ">>>>>>> REPLACE\n");
        return;
    }
    if (form == 1)
        whit_buf_append_str(out, "*** Begin Patch\n*** Update File: src/file.c\n@@\n");
    else
        whit_buf_printf(out, "--- a/src/file.c\n+++ b/src/file.c\n@@ -%d,%d +%d,%d @@\n", from + 7, to - from, from + 7,
                        to - from - e->n_old + e->n_new);
    for (int i = from; i < to; i++) {
        bool removed = i >= e->at && i < e->at + e->n_old;
        drift_line(drift, s->lines[i], line);
        whit_buf_append_str(out, removed ? "-" : " ");
        put(out, line, "\n");
        for (int k = 0; i == e->at + e->n_old - 1 && k < e->n_new; k++) {
            drift_line(drift == INDENTED ? drift : NONE, e->new[k], line);
            whit_buf_append_str(out, "+");
            put(out, line, "\n");
        }
    }
    if (form == 1) whit_buf_append_str(out, "*** End Patch\n");
}

static void write_file(const source *s, const edit *e, whit_buf *out)
{
    for (int i = 0; i < s->n; i++) {
        if (e && i == e->at)
            for (int k = 0; k < e->n_new; k++) put(out, e->new[k], s->end);
        if (!e || i < e->at || i >= e->at + e->n_old) put(out, s->lines[i], s->end);
    }
}

static whit_status apply(const whit_buf *text, const whit_buf *file, whit_buf *out, whit_patch_result *result,
                         whit_error *error)
{
    whit_patch patch = {0};
    whit_status status = whit_patch_parse((const char *)text->data, text->size_bytes, &patch, error);
    if (status != WHIT_OK) return status;
    assert_int_equal(whit_patch_n_files(&patch), 1);
    assert_string_equal(whit_patch_file_at(&patch, 0)->path, "src/file.c");
    status = whit_patch_apply(&patch, whit_patch_file_at(&patch, 0), "src/file.c", (const char *)file->data,
                              file->size_bytes, out, result, error);
    whit_patch_free(&patch);
    return status;
}

static bool same(const whit_buf *a, const whit_buf *b)
{
    return a->size_bytes == b->size_bytes && (!a->size_bytes || memcmp(a->data, b->data, a->size_bytes) == 0);
}

/* ---- the same patches by other programs, where WHIT_PATCH_TABLE is set ---------------------- */

enum { N_TOOLS = 5 };
static const char *const tools[N_TOOLS] = {"whit", "patch -p1 -s -f -r - -i ../diff",
                                           "patch -l -p1 -s -f -r - -i ../diff", "git apply ../diff",
                                           "git apply --ignore-whitespace ../diff"};
static const char *const tool_names[N_TOOLS] = {"whit", "patch", "patch -l", "git apply",
                                                "git apply --ignore-whitespace"};
static const char *const drift_names[N_DRIFTS] = {"none",   "blanks at ends", "indentation",
                                                  "dashes", "stale",          "duplicate"};
enum outcome { RIGHT, WRONG, REFUSED, N_OUTCOMES };
static unsigned table[N_DRIFTS][N_TOOLS][N_OUTCOMES];

/* Applies an edit as a unified diff with another program, in a folder with the file. */
static enum outcome run_tool(int tool, const whit_buf *diff, const whit_buf *before, const whit_buf *after)
{
    char command[2000], path[700];
    whit_error error;
    whit_buf got = {0};
    snprintf(path, sizeof path, "%s/tree/src/file.c", test_folder);
    assert_ok(whit_write_file(path, before->data, before->size_bytes, &error), error);
    snprintf(path, sizeof path, "%s/diff", test_folder);
    assert_ok(whit_write_file(path, diff->data, diff->size_bytes, &error), error);
    snprintf(command, sizeof command, "cd '%s/tree' && GIT_CEILING_DIRECTORIES=/ %s >/dev/null 2>&1", test_folder,
             tools[tool]);
    bool done = system(command) == 0;
    snprintf(path, sizeof path, "%s/tree/src/file.c", test_folder);
    assert_ok(whit_read_file(path, 1 << 20, &got, &error), error);
    bool is_after = got.size_bytes == after->size_bytes && memcmp(got.data, after->data, got.size_bytes) == 0;
    bool is_before = got.size_bytes == before->size_bytes && memcmp(got.data, before->data, got.size_bytes) == 0;
    whit_buf_free(&got);
    return done && is_after ? RIGHT : is_before ? REFUSED : WRONG;
}

static void compare(int drift, const edit *e, const source *seen, const whit_buf *before, const whit_buf *after)
{
    whit_buf diff = {0}, out = {0};
    whit_patch_result result;
    whit_error error;
    write_patch(2, seen, e, (enum drift)drift, &diff);
    bool possible = drift != STALE && drift != DUPLICATE;
    bool done = apply(&diff, before, &out, &result, &error) == WHIT_OK;
    table[drift][0][!done ? REFUSED : possible && same(&out, after) ? RIGHT : WRONG]++;
    for (int tool = 1; tool < N_TOOLS; tool++) {
        enum outcome outcome = run_tool(tool, &diff, before, after);
        /* if two places match, neither is right */
        table[drift][tool][outcome == RIGHT && !possible ? WRONG : outcome]++;
    }
    whit_buf_free(&diff);
    whit_buf_free(&out);
}

static void print_table(void)
{
    print_message("%-16s %-30s %6s %6s %8s\n", "drift", "program", "right", "wrong", "refused");
    for (int drift = 0; drift < N_DRIFTS; drift++)
        for (int tool = 0; tool < N_TOOLS; tool++) {
            const unsigned *n = table[drift][tool];
            print_message("%-16s %-30s %6u %6u %8u\n", drift_names[drift], tool_names[tool], n[RIGHT], n[WRONG],
                          n[REFUSED]);
            if (tool == 0) assert_int_equal(n[WRONG], 0);
        }
}

/* Of 600 patches none may be applied at a wrong place, and at least 95 % of those with one right place must be applied
 * there. */
static void generated_patches(void **state)
{
    (void)state;
    whit_rng rng = make_rng(7);
    int n_right = 0, n_possible = 0;
    bool beside = getenv("WHIT_PATCH_TABLE") != NULL;
    if (beside) {
        char folder[700];
        snprintf(folder, sizeof folder, "mkdir -p '%s/tree/src'", test_folder);
        assert_int_equal(system(folder), 0);
    }
    for (int i = 0; i < 600; i++) {
        int form = i % N_FORMS;
        enum drift drift = (enum drift)(i / N_FORMS % N_DRIFTS);
        source s;
        make_source(&rng, &s);
        edit e = {
            .before = 2, .after = 2, .n_old = 1 + (int)whit_rng_below(&rng, 3), .n_new = (int)whit_rng_below(&rng, 4)};
        e.at = 2 + (int)whit_rng_below(&rng, (uint64_t)(s.n - e.n_old - 4));
        snprintf(s.lines[e.at], sizeof s.lines[0], "        unique_%d = %d - 1;", i, i);
        for (int k = 0; k < e.n_new; k++) snprintf(e.new[k], sizeof e.new[k], "        replaced_%d(%d);", i, k);
        whit_buf patch = {0}, before = {0}, after = {0}, out = {0};
        const source seen = s;
        write_patch(form, &s, &e, drift, &patch);
        if (drift == STALE) snprintf(s.lines[e.at], sizeof s.lines[0], "        changed_since(%d);", i);
        write_file(&s, NULL, &before);
        if (drift == DUPLICATE) /* repeats the place of the edit */
            for (int k = e.at - e.before; k < e.at + e.n_old + e.after; k++) put(&before, s.lines[k], s.end);
        write_file(&s, &e, &after);
        if (beside) compare((int)drift, &e, &seen, &before, &after);
        whit_patch_result result;
        whit_error error = {0};
        whit_status status = apply(&patch, &before, &out, &result, &error);
        bool possible = drift != STALE && drift != DUPLICATE;
        n_possible += possible;
        if (status == WHIT_OK && possible && same(&out, &after)) {
            n_right++;
            /* applied again, the patch must be recognised or refused, never applied twice */
            whit_buf again = {0};
            if (e.n_new && apply(&patch, &after, &again, &result, &error) == WHIT_OK) {
                assert_true(result.already_applied || drift == TYPOGRAPHIC);
                assert_true(same(&again, &after));
            }
            whit_buf_free(&again);
        } else if (status == WHIT_OK) {
            fail_msg("%s, drift %d, patch %d: applied at a wrong place:\n%.*s\ninto\n%.*s", form_names[form], drift, i,
                     (int)patch.size_bytes, (const char *)patch.data, (int)out.size_bytes, (const char *)out.data);
        } else if (possible) {
            print_message("%s, drift %d, patch %d: %s\n", form_names[form], drift, i, error.message);
        }
        whit_buf_free(&patch);
        whit_buf_free(&before);
        whit_buf_free(&after);
        whit_buf_free(&out);
    }
    print_message("%d of %d patches with one right place applied there\n", n_right, n_possible);
    if (beside) print_table();
    assert_true(n_right >= n_possible * 95 / 100);
}

/* The diff of two texts, applied to the first, must give the second. */
static void differences_apply(void **state)
{
    (void)state;
    whit_rng rng = make_rng(3);
    for (int i = 0; i < 300; i++) {
        source s;
        whit_buf before = {0}, after = {0}, diff = {0}, out = {0};
        whit_error error;
        make_source(&rng, &s);
        for (int k = 0; k < s.n; k++) snprintf(s.lines[k], sizeof s.lines[0], "line %d of %d", k, i);
        write_file(&s, NULL, &before);
        for (int k = 0; k < 4; k++) snprintf(s.lines[whit_rng_below(&rng, (uint64_t)s.n)], 48, "other %d", k);
        s.n -= (int)whit_rng_below(&rng, 3);
        write_file(&s, NULL, &after);
        if (whit_rng_below(&rng, 3) == 0) after.size_bytes -= strlen(s.end); /* the file has no final line end */
        assert_ok(whit_diff_hunks("a/src/file.c", (char *)before.data, before.size_bytes, "b/src/file.c",
                                  (char *)after.data, after.size_bytes, &diff, NULL, &error),
                  error);
        whit_patch_result result;
        if (!same(&before, &after)) {
            whit_status status = apply(&diff, &before, &out, &result, &error);
            if (status != WHIT_OK || !same(&out, &after))
                fail_msg("%d: %s\n%.*s", i, status == WHIT_OK ? "other text" : error.message, (int)diff.size_bytes,
                         (const char *)diff.data);
        } else {
            assert_int_equal(diff.size_bytes, 0);
        }
        whit_buf_free(&before);
        whit_buf_free(&after);
        whit_buf_free(&diff);
        whit_buf_free(&out);
    }
}

static void refuse_in(const char *content, const char *text, size_t n_bytes, const char *reason)
{
    whit_buf patch = {0}, file = {0}, out = {0};
    whit_patch_result result;
    whit_error error = {0};
    whit_buf_append(&patch, text, n_bytes);
    whit_buf_append_str(&file, content);
    assert_int_not_equal(apply(&patch, &file, &out, &result, &error), WHIT_OK);
    if (!strstr(error.message, reason)) fail_msg("'%s' is not in: %s", reason, error.message);
    assert_int_equal(out.size_bytes, 0);
    whit_buf_free(&patch);
    whit_buf_free(&file);
    whit_buf_free(&out);
}

static void refuse(const char *text, const char *reason)
{
    refuse_in("one\ntwo\nthree\ntwo\n", text, strlen(text), reason);
}

static void gives(const char *content, const char *text, const char *wanted)
{
    whit_buf patch = {0}, file = {0}, out = {0};
    whit_patch_result result;
    whit_error error;
    whit_buf_append_str(&patch, text);
    whit_buf_append_str(&file, content);
    assert_ok(apply(&patch, &file, &out, &result, &error), error);
    if (out.size_bytes != strlen(wanted) || (out.size_bytes && memcmp(out.data, wanted, out.size_bytes) != 0))
        fail_msg("'%.*s', not '%s'", (int)out.size_bytes, (const char *)out.data, wanted);
    whit_buf_free(&patch);
    whit_buf_free(&file);
    whit_buf_free(&out);
}

#define DIFF            "--- a/src/file.c\n+++ b/src/file.c\n"
#define MARK            WHIT_PATCH_MARK
#define NO_NL           "\\ No newline at end of file\n"
#define BLOCK(old, new) "src/file.c\n<<<<<<< SEARCH\n" old "=======\n" new ">>>>>>> REPLACE\n"

/* A patch that is applied in part must be refused, not treated as applied. */
static void a_patch_is_there_whole_or_not_at_all(void **state)
{
    (void)state;
    static const char stale[] =
        BLOCK("int a;\n", "int b;\n") BLOCK("int f(void) {\nreturn old();\n", "int f(void) {\nreturn 0;\n"),
                      both[] = BLOCK("#include <a.h>\nint a;\n", "#include <a.h>\nint b;\n")
                          BLOCK("int f(void) {\nreturn old();\n", "int f(void) {\nreturn 0;\n");
    refuse_in("int a;\nint f(void) {\nreturn 0;\n}\n", stale, strlen(stale), "1 of 2 hunks are in the file already");
    gives("#include <a.h>\nint b;\nint f(void) {\nreturn 0;\n}\n", both,
          "#include <a.h>\nint b;\nint f(void) {\nreturn 0;\n}\n");
    /* a single line may occur in any text, so it does not show that the patch was applied */
    static const char lone[] = BLOCK("int a = 1;\n", "int b = 2;\n"),
                      bracket[] = BLOCK("}\nold();\n", "}\nreturn 0;\n");
    refuse_in("int b = 2;\nint z;\n", lone, strlen(lone), "the file does not contain its first line");
    refuse_in("}\nreturn 0;\n", bracket, strlen(bracket), "is not in the file");
}

/* The hunks of a diff refer to one text, so a hunk must not match lines that an earlier hunk added. SEARCH/REPLACE
 * blocks may. */
static void a_stale_hunk_does_not_find_new_lines(void **state)
{
    (void)state;
    static const char stale[] =
        DIFF "@@ -1,2 +1,3 @@\n alpha\n+port = 1\n beta\n@@ -3,1 +4,1 @@\n-port = 1\n+port = 2\n",
                      good[] =
                          DIFF "@@ -1,2 +1,3 @@\n alpha\n+port = 1\n beta\n@@ -3,1 +4,1 @@\n-port = 3\n+port = 2\n",
                      twice[] =
                          DIFF "@@ -1,2 +1,3 @@\n alpha\n+port = 3\n beta\n@@ -3,1 +4,1 @@\n-port = 3\n+port = 2\n";
    refuse_in("alpha\nbeta\nport = 3\n", stale, strlen(stale), "hunk 2");
    gives("alpha\nbeta\nport = 3\n", good, "alpha\nport = 1\nbeta\nport = 2\n");
    gives("alpha\nbeta\nport = 3\n", twice, "alpha\nport = 3\nbeta\nport = 2\n");
    gives("a\n", BLOCK("a\n", "b\n") BLOCK("b\n", "c\n"), "c\n");
}

/* File names as models write them before a block. */
static void names_are_undressed(void **state)
{
    (void)state;
    static const char *const heads[] = {"**src/file.c**",   "./src/file.c",  "### src/file.c",
                                        "src/file.c:",      "`src/file.c`:", "### **`./src/file.c`**:",
                                        "File: src/file.c", "  src/file.c  "};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        char text[300];
        snprintf(text, sizeof text, "Change:\n\n%s\n```c\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n```\n",
                 heads[i]);
        gives("a\n", text, "b\n");
    }
    gives("a\n", "--- ./src/file.c\n+++ ./src/file.c\n@@ -1 +1 @@\n-a\n+b\n", "b\n");
}

static void more_than_lines_is_refused(void **state)
{
    (void)state;
    static const char zero[] = DIFF "@@ -1,2 +1,2 @@\n one\n\0two\n+x\n";
    refuse(BLOCK("one\n=======\n", "x\n"), "a second =======");
    refuse(BLOCK("one\n", "x\n========\ny\n"), "a second =======");
    refuse("diff --git a/src/file.c b/y\nrename from src/file.c\nrename to y\n" DIFF "@@ -1 +1 @@\n-one\n+x\n",
           "renames, modes");
    refuse("diff --git a/src/file.c b/src/file.c\nold mode 100644\nnew mode 100755\n" DIFF "@@ -1 +1 @@\n-one\n+x\n",
           "renames, modes");
    refuse("diff --git a/i b/i\nBinary files a/i and b/i differ\n" DIFF "@@ -1 +1 @@\n-one\n+x\n", "binary files");
    refuse("diff --git a/e b/e\nnew file mode 100644\nindex 0000000..e69de29\n"
           "diff --git a/src/file.c b/src/file.c\n" DIFF "@@ -1 +1 @@\n-one\n+x\n",
           "an empty file");
    refuse(DIFF "@@ -1 +1 @@\n-one\n+x\ndiff --git a/e b/e\ndeleted file mode 100644\n", "an empty file");
    gives("one\ntwo\n", DIFF "@@ -1 +1 @@\n-one\n+x\n", "x\ntwo\n");
    gives("one\ntwo\n", DIFF "@@ -1 +1 @@\n-one\n+x\n-- \n2.39.5\n\n", "x\ntwo\n");
    gives("one\ntwo\n", BLOCK("one\n", "x\n") BLOCK("one\n", "x\n"), "x\ntwo\n"); /* models repeat hunks */
    /* two patches of a mail series */
    gives("one\ntwo\n",
          DIFF "@@ -1 +1 @@\n-one\n+x\n-- \n2.39.5\n\nFrom 0 Mon\nSubject: y\n\n- an item\n---\n " DIFF
               "@@ -2 +2 @@\n-two\n+y\n-- \n2.39.5\n",
          "x\ny\n");
    refuse(DIFF "@@ -1,3 +1,3 @@\n-one\n+x\nodd\n-two\n+y\n", "follows a line that ends the hunk");
    /* a line that begins with a zero byte has no valid kind, so the hunk ends before it */
    whit_patch patch = {0};
    whit_error error;
    assert_int_equal(whit_patch_parse(zero, sizeof zero - 1, &patch, &error), WHIT_ERROR_FORMAT);
    assert_non_null(strstr(error.message, "follows a line that ends the hunk"));
    whit_patch_free(&patch);
}

static void the_last_line_end_comes_and_goes(void **state)
{
    (void)state;
    gives("foo", DIFF "@@ -1 +1 @@\n-foo\n" NO_NL "+foo\n", "foo\n");
    gives("foo", DIFF "@@ -1 +1,2 @@\n-foo\n" NO_NL "+foo\n+new\n", "foo\nnew\n");
    gives("a\nfoo", DIFF "@@ -1,2 +1 @@\n a\n-foo\n" NO_NL, "a\n");
    gives("foo", DIFF "@@ -1 +1 @@\n-foo\n" NO_NL "+bar\n" NO_NL, "bar");
    gives("foo\n", DIFF "@@ -1 +1 @@\n-foo\n+foo\n" NO_NL, "foo");
    gives("a\nfoo", DIFF "@@ -1,2 +1,2 @@\n-a\n+b\n foo\n" NO_NL, "b\nfoo");
    gives("a\nfoo", BLOCK("foo\n", "bar\n"), "a\nbar");
}

/* Added lines get the indentation by which the old lines differ, if all of these agree. */
static void indentation_is_learnt_from_all_lines(void **state)
{
    (void)state;
    static const char two_ways[] = BLOCK("if (x) {\na();\n", "if (x) {\na();\nb();\n"),
                      mixed[] = BLOCK("    a();\n", "    a();\n    b();\n"), bytes[] = BLOCK("a \xff\n", "b\n");
    refuse_in("if (x) {\n    a();\n}\n", two_ways, strlen(two_ways), "unequal indentation");
    /* tabs in the file for blanks in the patch, and the reverse */
    gives("\ta();\n", mixed, "\ta();\n\tb();\n");
    gives("def f():\n\tif x:\n\t\treturn 1\n\treturn 2\n",
          BLOCK("    if x:\n        return 1\n", "    if x:\n        y = 2\n        return 1\n"),
          "def f():\n\tif x:\n\t\ty = 2\n\t\treturn 1\n\treturn 2\n");
    gives("def f():\n  if x:\n    return 1\n", BLOCK("\tif x:\n\t\treturn 1\n", "\tif x:\n\t\ty = 2\n\t\treturn 1\n"),
          "def f():\n  if x:\n    y = 2\n    return 1\n");
    static const char uneven[] = BLOCK("    if x:\n       return 1\n", "    if x:\n       y = 2\n       return 1\n");
    refuse_in("\tif x:\n\t\treturn 1\n", uneven, strlen(uneven), "unequal indentation");
    refuse_in("a \xfe\n", bytes, strlen(bytes), "the file does not contain its first line");
    gives("\tif (x) {\n\t\ta();\n\t}\n", BLOCK("if (x) {\n\ta();\n", "if (x) {\n\ta();\n\tb();\n"),
          "\tif (x) {\n\t\ta();\n\t\tb();\n\t}\n");
    gives("if (x) {\n    a();\n    b();\n}\n", BLOCK("if (x) {\na();\nb();\n", "if (x) {\na();\n"),
          "if (x) {\n    a();\n}\n");
}

/* Editors hide the byte order mark before line 1, and models omit it. It must stay unless the patch removes it. */
static void a_byte_order_mark_stays(void **state)
{
    (void)state;
    static const char file[] = MARK "one\ntwo\n", both[] = MARK "x\ntwo\n";
    gives(file, DIFF "@@ -1,2 +1,2 @@\n-one\n+x\n two\n", both);
    gives(file, DIFF "@@ -1,2 +1,2 @@\n-" MARK "one\n+" MARK "x\n two\n", both);
    gives(file, DIFF "@@ -1,2 +1,2 @@\n-one\n+" MARK "x\n two\n", both);
    gives(file, DIFF "@@ -1,2 +1,2 @@\n " MARK "one\n-two\n+y\n", MARK "one\ny\n");
    gives(file, DIFF "@@ -1 +1,2 @@\n+" MARK "x\n one\n", MARK "x\none\ntwo\n");
    gives(file, DIFF "@@ -1 +1 @@\n-one\n+x\n@@ -2 +2 @@\n-two\n+y\n", MARK "x\ny\n");
    gives(file, DIFF "@@ -1,2 +1 @@\n-one\n two\n", MARK "two\n");
    gives(file, BLOCK("one\n", "x\n"), both);
    gives(file, BLOCK(MARK "one\n", MARK "x\n"), both);
    gives(MARK "  one\n", BLOCK(MARK "one\n", MARK "x\n"), MARK "  x\n");
    gives(MARK "one\r\ntwo\r\n", BLOCK("one\n", "x\n"), MARK "x\r\ntwo\r\n");
    gives(both, BLOCK("one\ntwo\n", "x\ntwo\n"), both); /* the patch was applied already */
    gives(both, BLOCK(MARK "one\ntwo\n", MARK "x\ntwo\n"), both);
    gives(MARK, BLOCK("", "x\n"), MARK "x\n");
    /* a diff may remove the mark or add it; on later lines it is an ordinary character */
    gives(file, DIFF "@@ -1 +1 @@\n-" MARK "one\n+one\n", "one\ntwo\n");
    gives("one\ntwo\n", DIFF "@@ -1 +1 @@\n-one\n+" MARK "one\n", file);
    gives(MARK "one\n" MARK "two\n", DIFF "@@ -2 +2 @@\n-" MARK "two\n+" MARK "y\n", MARK "one\n" MARK "y\n");
    /* a deleted file becomes empty */
    gives(MARK "one\n", "--- a/src/file.c\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n", "");
    gives(MARK "one\n", "--- a/src/file.c\n+++ /dev/null\n@@ -1 +0,0 @@\n-" MARK "one\n", "");
    /* a mark before the patch belongs neither to the file nor to the patch */
    gives("one\n", MARK DIFF "@@ -1 +1 @@\n-one\n+x\n", "x\n");
    gives("one\n", MARK BLOCK("one\n", "x\n"), "x\n");
}

/* git's core.quotePath: bytes beyond ASCII are written in octal, and the name with its prefix in quotes. */
static void names_in_quotes_are_unescaped(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *path;
    } names[] = {
        {"\"a/caf\\303\\251.txt\"", "\"b/caf\\303\\251.txt\"", "caf\303\251.txt"},
        {"\"a/d/\\344\\270\\255 x\"\t2026-01-01", "\"b/d/\\344\\270\\255 x\"\t2026-01-01", "d/\344\270\255 x"},
        {"\"a/caf\\303\\251\"", "/dev/null", "caf\303\251"},
        {"/dev/null", "\"b/\\\"\\\\\\a\\b\\f\\n\\r\\t\\v.c\"", "\"\\\a\b\f\n\r\t\v.c"},
        {"a/plain\\303\\251", "b/plain\\303\\251", "plain\\303\\251"}, /* escapes count only in quotes */
        /* names that git does not write are used unchanged */
        {"\"a/x\\q\"", "\"b/x\\q\"", "x\\q"},
        {"\"a/x\\\"", "\"b/x\\\"", "x\\"},
        {"\"a/x\\30\"", "\"b/x\\30\"", "x\\30"},
        {"\"a/x\\389\"", "\"b/x\\389\"", "x\\389"},
        {"\"a/x\\477\"", "\"b/x\\477\"", "x\\477"},
        {"\"a/x\\000y\"", "\"b/x\\000y\"", "x\\000y"},
        {"\"a/x\"y\"", "\"b/x\"y\"", "x\"y"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        whit_patch patch = {0};
        whit_buf text = {0};
        whit_error error;
        whit_buf_printf(&text, "--- %s\n+++ %s\n@@ -1 +1 @@\n-one\n+x\n", names[i].from, names[i].to);
        assert_ok(whit_patch_parse((const char *)text.data, text.size_bytes, &patch, &error), error);
        assert_int_equal(whit_patch_n_files(&patch), 1);
        assert_string_equal(whit_patch_file_at(&patch, 0)->path, names[i].path);
        whit_patch_free(&patch);
        whit_buf_free(&text);
    }
}

static void reasons(void **state)
{
    (void)state;
    refuse("words", "this is not a patch");
    refuse("src/file.c\n<<<<<<< SEARCH\none\n", "the SEARCH block has no");
    refuse("src/file.c\n<<<<<<< SEARCH\none\n=======\n", "REPLACE");
    refuse("src/file.c\n<<<<<<< SEARCH\ntwo\n=======\nx\n>>>>>>> REPLACE\n", "several places, at lines 2 and 4");
    refuse("src/file.c\n<<<<<<< SEARCH\none\ntow\n=======\nx\n>>>>>>> REPLACE\n", "line 2 is 'two', not 'tow'");
    refuse("src/file.c\n<<<<<<< SEARCH\nthree\ntwo\nfour\n=======\nx\n>>>>>>> REPLACE\n",
           "nearest is line 3, where the file ends after line 4 and the patch continues with 'four'");
    refuse("src/file.c\n<<<<<<< SEARCH\nthree\ntwo\n\n=======\nx\n>>>>>>> REPLACE\n",
           "where the file ends after line 4 and the patch continues with ''");
    refuse("*** Begin Patch\n*** Update File: src/file.c\n@@\n-one\n+x\n", "the patch is truncated");
    refuse("*** Begin Patch\n*** Update File: src/file.c\n@@ nothing\n-one\n+x\n*** End Patch\n", "anchor");
    refuse("--- a/src/file.c\n+++ b/src/file.c\n@@ -1,0 +1,1 @@\n+x\n", "context");
}

/* If a file is too large to be searched completely, a place that may not be unique must not be used. */
static void the_unseen_counts_as_a_place(void **state)
{
    (void)state;
    enum { N_LINES = 1000000, N_OLD = 300 };
    whit_buf content = {0}, text = {0}, out = {0};
    whit_patch patch = {0};
    whit_patch_result result;
    whit_error error;
    for (int i = 0; i < N_LINES; i++) whit_buf_append_str(&content, i == 1000 || i == N_LINES - 9 ? "y\n" : "x\n");
    whit_buf_append_str(&text, "<<<<<<< SEARCH\n");
    for (int i = 0; i < N_OLD; i++) whit_buf_append_str(&text, "x\n");
    whit_buf_append_str(&text, "y\n=======\nz\n>>>>>>> REPLACE\n");
    assert_ok(whit_patch_parse((const char *)text.data, text.size_bytes, &patch, &error), error);
    assert_int_equal(whit_patch_apply(&patch, whit_patch_file_at(&patch, 0), "f", (const char *)content.data,
                                      content.size_bytes, &out, &result, &error),
                     WHIT_ERROR_LIMIT);
    whit_patch_free(&patch);
    whit_buf_free(&content);
    whit_buf_free(&text);
    whit_buf_free(&out);
}

static void anchors_choose(void **state)
{
    (void)state;
    whit_buf patch = {0}, file = {0}, out = {0};
    whit_patch_result result;
    whit_error error;
    whit_buf_append_str(&file, "one\ntwo\nthree\ntwo\n");
    whit_buf_append_str(&patch, "*** Begin Patch\n*** Update File: src/file.c\n@@ three\n-two\n+four\n*** End Patch\n");
    assert_ok(apply(&patch, &file, &out, &result, &error), error);
    assert_int_equal(out.size_bytes, strlen("one\ntwo\nthree\nfour\n"));
    assert_memory_equal(out.data, "one\ntwo\nthree\nfour\n", out.size_bytes);
    whit_buf_free(&patch);
    whit_buf_free(&file);
    whit_buf_free(&out);
}

/* Many models repeat the path before each block: this is one file, whose hunks are applied all or none. */
static void a_file_named_again_goes_on(void **state)
{
    (void)state;
    static const char *const patches[] = {
        "f.c\n<<<<<<< SEARCH\none\n=======\n1\n>>>>>>> REPLACE\n\nf.c\n<<<<<<< SEARCH\nthree\n=======\n3\n"
        ">>>>>>> REPLACE\n",
        "*** Begin Patch\n*** Update File: f.c\n@@\n-one\n+1\n*** Update File: f.c\n@@\n-three\n+3\n*** End Patch\n",
        "--- a/f.c\n+++ b/f.c\n@@ -1,2 +1,2 @@\n-one\n+1\n two\n--- a/f.c\n+++ b/f.c\n@@ -3 +3 @@\n-three\n+3\n"};
    for (size_t i = 0; i < sizeof patches / sizeof *patches; i++) {
        whit_patch patch = {0};
        whit_buf out = {0};
        whit_patch_result result;
        whit_error error;
        assert_ok(whit_patch_parse(patches[i], strlen(patches[i]), &patch, &error), error);
        assert_int_equal(whit_patch_n_files(&patch), 1);
        assert_ok(whit_patch_apply(&patch, whit_patch_file_at(&patch, 0), "f.c", "one\ntwo\nthree\n", 14, &out, &result,
                                   &error),
                  error);
        assert_int_equal(out.size_bytes, strlen("1\ntwo\n3\n"));
        assert_memory_equal(out.data, "1\ntwo\n3\n", out.size_bytes);
        whit_patch_free(&patch);
        whit_buf_free(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(generated_patches),
        cmocka_unit_test(differences_apply),
        cmocka_unit_test(reasons),
        cmocka_unit_test(a_patch_is_there_whole_or_not_at_all),
        cmocka_unit_test(a_stale_hunk_does_not_find_new_lines),
        cmocka_unit_test(names_are_undressed),
        cmocka_unit_test(more_than_lines_is_refused),
        cmocka_unit_test(the_last_line_end_comes_and_goes),
        cmocka_unit_test(indentation_is_learnt_from_all_lines),
        cmocka_unit_test(a_byte_order_mark_stays),
        cmocka_unit_test(names_in_quotes_are_unescaped),
        cmocka_unit_test(anchors_choose),
        cmocka_unit_test(a_file_named_again_goes_on),
        cmocka_unit_test(the_unseen_counts_as_a_place),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
