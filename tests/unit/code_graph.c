/* SPDX-License-Identifier: MIT
 * Tests the code graph: what it finds in sources with unusual syntax, and that damaged graph files are detected. */
#include "test_folder.h"

#include "base/items.h"
#include "base/rng.h"
#include "code/graph_file.h"
#include "code/walk.h"

#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(in_folder(name), "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static whit_graph *open_graph_of(const char *folder)
{
    whit_error error;
    whit_graph *graph;
    assert_ok(whit_graph_open(in_folder(folder), in_folder("cache"), &graph, &error), error);
    return graph;
}

static whit_graph *open_graph(void)
{
    return open_graph_of("project");
}

/* Finds the definition of a name by its kind. Returns false if there is none. */
static bool find(const whit_graph *graph, const char *name, whit_symbol_kind kind, whit_graph_symbol *symbol)
{
    whit_graph_run run = whit_graph_symbols_of(graph, name, strlen(name));
    while (whit_graph_next_symbol(graph, &run, symbol))
        if (symbol->kind == kind) return true;
    return false;
}

static unsigned calls_from(const whit_graph *graph, const char *callee, const char *caller)
{
    whit_graph_run run = whit_graph_mentions_of(graph, callee, strlen(callee));
    whit_graph_mention mention;
    unsigned n_calls = 0;
    while (whit_graph_next_mention(graph, &run, &mention)) {
        whit_graph_symbol symbol;
        n_calls +=
            mention.calls && whit_graph_symbol_at(graph, mention.symbol, &symbol) && !strcmp(symbol.name, caller);
    }
    return n_calls;
}

static const char c_source[] =
    "#include \"head.h\"\n"
    "#include <stdio.h>\n"
    "#define TWICE(x) twice(x)\n"
    "/* int not_here(void) { */ // int nor_here(void) {\n"
    "static const char *text = \"int no(void) {\";\n"
    "struct pair {\n    int a, b;\n    struct inner { int c; } in;\n};\n"
    "typedef struct pair pair_thing;\n"
    "typedef int (*callback)(int);\n"
    "typedef int (CONVENTION *convened)(int a);\ntypedef int (FASTP quickened)(int a);\ntypedef void "
    "(plain_function)(int);\n"
    "typedef enum color { RED, GREEN = 2 } color;\n"
    "MACRO_CALL(x)\ntypedef struct behind { int a; } behind_one, *behind_pointer;\n"
    "typedef LIST_OF(behind) behind_list;\n"
    "int prototype(int a);\n"
    "static int twice(int x)\n{\n    return 2 * x;\n}\n"
    "#if A\nint choose(int a) {\n#else\nint choose(long a) {\n#endif\n    return twice(a) + TWICE(1);\n}\n"
    "__attribute__((noinline)) int marked(struct pair *p)\n{\n    callback f = prototype;\n"
    "    return f(p->a) + choose(2) + (int){1};\n}\n"
    "static struct pair table[] = {{1, 2}, {twice(3), 4}};\n"
    "int last(void) { struct local { int z; } l = {0}; return l.z; }\n";
/* macros before and after a function's name, and functions whose names look like macros */
static const char macro_source[] = "static void ATTRIBUTE_FORMAT(4, 0) formatted(int a)\n{\n    called(a);\n}\n"
                                   "PUBLIC char *created ARGUMENTS((n, m), int n, int m)\n{\n    return called(n);\n}\n"
                                   "static value_t SHOUTED(int x)\n{\n    return called(x);\n}\n"
                                   "void CALLBACK TIMER(int x)\n{\n    called(x);\n}\n"
                                   "int called(int x)\n{\n    return x;\n}\n";

static const char python_source[] =
    "import os.path, sys as system\nfrom head import (one,\n    two)\nfrom . import sibling\n\n"
    "LIMIT = 3\n\nclass Tree:\n    \"\"\"def no(): pass\"\"\"\n    def grow(self, n=len('x')):\n"
    "        def inner():\n            return one(n)\n        return inner()\n\n"
    "async def later():\n    await Tree().grow()\n";

static void test_languages(void **state)
{
    (void)state;
    mkdir(in_folder("project"), 0700);
    write_file("project/main.c", c_source);
    write_file("project/macros.c", macro_source);
    write_file("project/head.h", "extern int prototype(int);\n#define HEAD 1\nstruct forward;\n");
    write_file("project/tree.py", python_source);
    write_file("project/head.py", "def one(n): return n\ndef two(): pass\n");
    write_file("project/lib.rs",
               "pub struct Ring { n: usize }\nimpl Ring {\n  pub fn put(&mut self) { helper() }\n}\nfn helper() {}\n");
    write_file("project/run.sh", "build() {\n  echo\n}\nfunction clean { build; }\n");
    write_file("project/mod.go", "package m\nfunc (r *Ring) Get(n int) int { return 1 }\ntype Ring struct { n int }\n");
    write_file("project/ignored.c", "int ignored_function(void) { return 1; }\n");
    write_file("project/.gitignore", "ignored.c\n");
    whit_graph *graph = open_graph();
    whit_graph_symbol symbol;
    assert_int_equal(whit_graph_count(graph).n_files, 8);
    assert_true(whit_graph_count(graph).is_new);
    const char *functions[] = {"twice", "choose", "marked", "last",  "grow",  "inner", "later",
                               "one",   "put",    "helper", "build", "clean", "Get"};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (!find(graph, functions[i], WHIT_SYMBOL_FUNCTION, &symbol)) fail_msg("no function %s", functions[i]);
    const char *types[] = {"pair",        "inner",          "pair_thing", "callback",   "convened",
                           "quickened",   "plain_function", "behind",     "behind_one", "behind_pointer",
                           "behind_list", "color",          "local",      "Tree",       "Ring"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!find(graph, types[i], WHIT_SYMBOL_TYPE, &symbol)) fail_msg("no type %s", types[i]);
    const char *others[] = {"not_here", "nor_here", "no", "prototype", "forward", "ignored_function"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (find(graph, others[i], WHIT_SYMBOL_FUNCTION, &symbol) || find(graph, others[i], WHIT_SYMBOL_TYPE, &symbol))
            fail_msg("%s is none", others[i]);
    const char *callers[] = {"formatted", "created", "SHOUTED", "TIMER"};
    for (size_t i = 0; i < sizeof callers / sizeof *callers; i++)
        if (calls_from(graph, "called", callers[i]) != 1) fail_msg("%s does not call", callers[i]);
    assert_true(find(graph, "TWICE", WHIT_SYMBOL_MACRO, &symbol));
    assert_true(find(graph, "table", WHIT_SYMBOL_VARIABLE, &symbol));
    assert_true(find(graph, "GREEN", WHIT_SYMBOL_VARIABLE, &symbol));
    assert_true(find(graph, "LIMIT", WHIT_SYMBOL_VARIABLE, &symbol));
    assert_true(find(graph, "twice", WHIT_SYMBOL_FUNCTION, &symbol));
    assert_int_equal(symbol.line, 20);
    assert_int_equal(symbol.end_line, 23);
    assert_string_equal(symbol.file, "main.c");
    assert_true(symbol.is_local);
    assert_int_equal(calls_from(graph, "twice", "choose"), 1);
    assert_int_equal(calls_from(graph, "twice", "TWICE"), 1);
    assert_int_equal(calls_from(graph, "choose", "marked"), 1);
    assert_int_equal(calls_from(graph, "one", "inner"), 1);
    assert_int_equal(calls_from(graph, "grow", "later"), 1);
    assert_int_equal(calls_from(graph, "twice", "last"), 0);

    uint32_t n, first = whit_graph_imports_of(graph, whit_graph_file_number(graph, "main.c"), &n), file, line;
    const char *written;
    assert_int_equal(n, 2);
    assert_true(whit_graph_import_at(graph, first, &written, &file, &line));
    assert_string_equal(written, "head.h");
    assert_string_equal(whit_graph_file(graph, file), "head.h");
    assert_true(whit_graph_import_at(graph, first + 1, &written, &file, &line));
    assert_int_equal(file, WHIT_GRAPH_NONE);
    whit_graph_imports_of(graph, whit_graph_file_number(graph, "tree.py"), &n);
    assert_true(n >= 3);

    whit_buf map = {0};
    whit_error error;
    assert_ok(whit_graph_map(graph, in_folder("project"), 60, NULL, NULL, NULL, &map, &error), error);
    assert_true(map.size_bytes > 0 && map.size_bytes <= 240);
    whit_buf_free(&map);
    whit_graph_close(graph);
}

static void test_follows_changes(void **state)
{
    (void)state;
    whit_graph *graph = open_graph(), *after;
    whit_graph_symbol symbol;
    assert_false(whit_graph_count(graph).is_new);
    write_file("project/more.c", "int brand_new(void) { return 1; }\n");
    after = open_graph();
    assert_true(whit_graph_count(after).is_new);
    assert_true(find(after, "brand_new", WHIT_SYMBOL_FUNCTION, &symbol));
    assert_false(find(graph, "brand_new", WHIT_SYMBOL_FUNCTION, &symbol)); /* an open graph does not change */
    assert_true(find(graph, "twice", WHIT_SYMBOL_FUNCTION, &symbol));
    whit_graph_close(graph);
    whit_graph_close(after);
}

static int compare_symbols(const void *a, const void *b)
{
    const whit_graph_symbol *x = a, *y = b;
    if (x->line != y->line) return x->line < y->line ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Writes the symbols of a file, sorted by line. Returns their number. */
static size_t list_symbols(const whit_graph *graph, uint32_t file, whit_graph_symbol *symbols, size_t max)
{
    size_t n = 0;
    whit_graph_run all = whit_graph_all_symbols(graph);
    while (n < max && whit_graph_next_symbol(graph, &all, &symbols[n])) n += symbols[n].file_number == file;
    assert_true(n < max);
    qsort(symbols, n, sizeof *symbols, compare_symbols);
    return n;
}

/* Writes everything that a graph contains as text, so that graphs can be compared. */
static void tell(const whit_graph *graph, whit_buf *out)
{
    whit_graph_counts counts = whit_graph_count(graph);
    whit_graph_symbol symbol, inside;
    whit_graph_mention mention;
    whit_error error;
    whit_buf_printf(out, "%u %u %u %u %llu\n", counts.n_files, counts.n_symbols, counts.n_mentions, counts.n_imports,
                    (unsigned long long)counts.n_lines);
    for (uint32_t file = 0; file < counts.n_files; file++) {
        uint32_t n, target, line;
        const char *written;
        whit_buf_printf(out, "%s\n", whit_graph_file(graph, file));
        whit_graph_symbol symbols[64];
        size_t n_symbols = list_symbols(graph, file, symbols, 64);
        for (size_t i = 0; i < n_symbols; i++) {
            symbol = symbols[i];
            bool has = whit_graph_symbol_at(graph, symbol.parent, &inside);
            whit_buf_printf(out, " %u-%u %d %d %s in %s\n", symbol.line, symbol.end_line, symbol.kind, symbol.is_local,
                            symbol.name, has ? inside.name : "");
            whit_graph_run run = whit_graph_symbols_of(graph, symbol.name, strlen(symbol.name));
            while (whit_graph_next_symbol(graph, &run, &inside))
                whit_buf_printf(out, "  is %s:%u\n", inside.file, inside.line);
            run = whit_graph_mentions_of(graph, symbol.name, strlen(symbol.name));
            while (whit_graph_next_mention(graph, &run, &mention)) {
                has = whit_graph_symbol_at(graph, mention.symbol, &inside);
                whit_buf_printf(out, "  at %s:%u %d in %s\n", mention.file, mention.line, mention.calls,
                                has ? inside.name : "");
            }
        }
        uint32_t first = whit_graph_imports_of(graph, file, &n);
        for (uint32_t i = first; i < first + n; i++) {
            assert_true(whit_graph_import_at(graph, i, &written, &target, &line));
            const char *found = target == WHIT_GRAPH_NONE ? "" : whit_graph_file(graph, target);
            whit_buf_printf(out, " includes %s is %s\n", written, found);
        }
    }
    assert_ok(whit_graph_map(graph, in_folder("edited"), 400, NULL, NULL, NULL, out, &error), error);
}

static void assert_same(const whit_graph *graph, const whit_graph *other)
{
    whit_buf a = {0}, b = {0};
    tell(graph, &a);
    tell(other, &b);
    whit_buf_append(&a, "", 1);
    whit_buf_append(&b, "", 1);
    assert_false(a.failed || b.failed);
    assert_string_equal((char *)a.data, (char *)b.data);
    whit_buf_free(&a);
    whit_buf_free(&b);
}

#define N_EDITED 20

static void write_random(whit_rng *rng, const char *path)
{
    whit_buf text = {0};
    for (uint64_t i = whit_rng_below(rng, 3); i > 0; i--)
        whit_buf_printf(&text, "#include \"file%u.c\"\n", (unsigned)whit_rng_below(rng, N_EDITED + 5));
    for (uint64_t i = whit_rng_below(rng, 6); i > 0; i--)
        whit_buf_printf(&text, "%sint f%u(void)\n{\n    f%u();\n    return f%u + N%u;\n}\n#define N%u 1\n",
                        whit_rng_below(rng, 3) ? "" : "static ", (unsigned)whit_rng_below(rng, 40),
                        (unsigned)whit_rng_below(rng, 40), (unsigned)whit_rng_below(rng, 40),
                        (unsigned)whit_rng_below(rng, 20), (unsigned)whit_rng_below(rng, 20));
    whit_buf_append(&text, "", 1);
    write_file(path, (char *)text.data);
    whit_buf_free(&text);
}

/* Following edits one by one must give the same graph as building it from the files. */
static void test_edits(void **state)
{
    (void)state;
    whit_rng rng = {9};
    whit_error error;
    whit_graph *held, *again, *fresh;
    unsigned n_followed = 0;
    char name[64], fresh_cache[64];
    mkdir(in_folder("edited"), 0700);
    for (unsigned i = 0; i < N_EDITED; i++) {
        snprintf(name, sizeof name, "edited/file%u.c", i);
        write_random(&rng, name);
    }
    assert_ok(whit_graph_open(in_folder("edited"), in_folder("cache"), &held, &error), error);
    for (unsigned i = 0; i < 150; i++) {
        snprintf(name, sizeof name, "edited/file%u.c", (unsigned)whit_rng_below(&rng, N_EDITED + i / 100));
        unlink(in_folder(name)); /* gives the file another inode, in case the clock is coarse */
        write_random(&rng, name);
        bool follows = whit_graph_follow(held, in_folder("edited"), in_folder("cache"), strchr(name, '/') + 1);
        n_followed += follows;
        assert_ok(whit_graph_open(in_folder("edited"), in_folder("cache"), &again, &error), error);
        /* the followed change is in the cache file, so opening builds nothing new */
        if (follows) assert_false(whit_graph_count(again).is_new);
        snprintf(fresh_cache, sizeof fresh_cache, "fresh%u", i);
        mkdir(in_folder(fresh_cache), 0700);
        assert_ok(whit_graph_open(in_folder("edited"), in_folder(fresh_cache), &fresh, &error), error);
        assert_same(again, fresh);
        if (follows) {
            assert_same(held, fresh);
            whit_graph_close(again);
        } else {
            whit_graph_close(held);
            held = again;
        }
        assert_true(whit_graph_refresh(held, in_folder("edited"), in_folder("cache")));
        assert_false(whit_graph_count(held).is_new);
        whit_graph_close(fresh);
    }
    assert_true(n_followed >= 75);
    whit_graph_close(held);
}

/* Any damage must be detected, so that the graph is built anew. */
static whit_status attach_bytes(const whit_buf *bytes, size_t n)
{
    whit_graph *graph = calloc(1, sizeof *graph);
    whit_status status = graph_attach(graph, bytes->data, n, "memory", NULL);
    whit_graph_close(graph);
    return status;
}

static void test_damage(void **state)
{
    (void)state;
    char command[400], name[300] = "";
    snprintf(command, sizeof command, "ls %s/*.graph", in_folder("cache"));
    FILE *list = popen(command, "r");
    assert_non_null(fgets(name, sizeof name, list));
    pclose(list);
    name[strcspn(name, "\n")] = 0;
    whit_buf good = {0}, bad = {0};
    whit_error error;
    whit_graph *graph;
    assert_ok(whit_read_file(name, 1 << 24, &good, &error), error);
    assert_int_equal(attach_bytes(&good, good.size_bytes), WHIT_OK);
    whit_rng rng = {5};
    for (int i = 0; i < 300; i++) {
        bad.size_bytes = 0;
        whit_buf_append(&bad, good.data, good.size_bytes);
        size_t n = i % 3 ? good.size_bytes : whit_rng_below(&rng, good.size_bytes);
        if (i % 3) bad.data[whit_rng_below(&rng, n)] ^= (uint8_t)(1 << whit_rng_below(&rng, 8));
        assert_int_equal(attach_bytes(&bad, n), WHIT_ERROR_FORMAT);
    }
    bad.data[good.size_bytes / 2] ^= 255;
    assert_ok(whit_write_file(name, bad.data, bad.size_bytes, &error), error);
    graph = open_graph();
    assert_true(whit_graph_count(graph).is_new);
    whit_graph_close(graph);
    graph = open_graph();
    assert_false(whit_graph_count(graph).is_new);
    whit_graph_close(graph);
    whit_buf_free(&good);
    whit_buf_free(&bad);
}

/* Text in a path that looks like the beginning of a comment must not hide code. */
static void test_globs(void **state)
{
    (void)state;
    whit_graph_symbol symbol;
    mkdir(in_folder("globs"), 0700);
    write_file("globs/all.sh",
               "for f in src/*.c \"$d\"/*.h ${d}/*; do\n  echo $f\ndone\nbehind_globs() {\n  echo\n}\n");
    write_file("globs/more.sh", "for f in $(pwd)/* ~/* /*; do\n  echo\ndone\nbehind_more() {\n  echo\n}\n");
    static char line[(1 << 20) + 24];
    for (size_t i = 0; i < 1 << 20; i += 4) memcpy(line + i, "aa/*", 4);
    strcpy(line + (1 << 20), "\nfunction late() {}\n");
    write_file("globs/long.js", line);
    write_file("globs/all.js",
               "/* function hidden() {} */ function seen() {}\nlet a = 'src/*.ts';\nfunction behind_list() {\n}/* end "
               "function hidden */\n");
    whit_graph *graph = open_graph_of("globs");
    assert_true(find(graph, "behind_globs", WHIT_SYMBOL_FUNCTION, &symbol));
    assert_int_equal(symbol.line, 4);
    assert_true(find(graph, "behind_more", WHIT_SYMBOL_FUNCTION, &symbol));
    assert_true(find(graph, "seen", WHIT_SYMBOL_FUNCTION, &symbol));
    assert_true(find(graph, "behind_list", WHIT_SYMBOL_FUNCTION, &symbol));
    assert_true(find(graph, "late", WHIT_SYMBOL_FUNCTION, &symbol));
    assert_false(find(graph, "hidden", WHIT_SYMBOL_FUNCTION, &symbol));
    whit_graph_close(graph);
}

/* Members of a type, named or not, are not variables; a variable declared after its body is. */
static void test_members(void **state)
{
    (void)state;
    whit_graph_symbol symbol;
    mkdir(in_folder("members"), 0700);
    write_file(
        "members/all.c",
        "typedef struct { int loose; } bag;\nstatic const struct { int k; } rows[] = {{1}};\n"
        "struct named { int m; } variable;\nunion packed { int n; } PACKED;\nunion aligned { int o; } __aligned;\n"
        "static struct { struct { int p; } inner; } G;\nenum { ONE } mode;\nint plain;\n");
    whit_graph *graph = open_graph_of("members");
    const char *variables[] = {"rows", "variable", "G", "ONE", "mode", "plain"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        if (!find(graph, variables[i], WHIT_SYMBOL_VARIABLE, &symbol)) fail_msg("no variable %s", variables[i]);
    const char *others[] = {"loose", "k", "m", "n", "o", "p", "inner", "PACKED", "__aligned"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (find(graph, others[i], WHIT_SYMBOL_VARIABLE, &symbol)) fail_msg("%s is no variable", others[i]);
    assert_true(find(graph, "bag", WHIT_SYMBOL_TYPE, &symbol));
    assert_true(find(graph, "named", WHIT_SYMBOL_TYPE, &symbol));
    whit_graph_close(graph);
}

/* A comma inside an enumerator's value does not begin another enumerator, and names in the value are mentions. */
static void test_enumerators(void **state)
{
    (void)state;
    whit_graph_symbol symbol;
    whit_graph_mention mention;
    mkdir(in_folder("enumerators"), 0700);
    write_file("enumerators/all.c",
               "#define LIMIT_X 2\n#define TWO(a, b) (a)\n"
               "enum size { QUAD = TWO(1, LIMIT_X), NEXT, LAST = NEXT };\n");
    whit_graph *graph = open_graph_of("enumerators");
    assert_true(find(graph, "LIMIT_X", WHIT_SYMBOL_MACRO, &symbol));
    assert_false(find(graph, "LIMIT_X", WHIT_SYMBOL_VARIABLE, &symbol));
    assert_true(find(graph, "QUAD", WHIT_SYMBOL_VARIABLE, &symbol) &&
                find(graph, "NEXT", WHIT_SYMBOL_VARIABLE, &symbol));
    assert_int_equal(calls_from(graph, "TWO", "size"), 1);
    whit_graph_run run = whit_graph_mentions_of(graph, "LIMIT_X", strlen("LIMIT_X"));
    assert_true(whit_graph_next_mention(graph, &run, &mention));
    assert_int_equal(mention.line, 3);
    whit_graph_close(graph);
}

/* A block that is closed in both branches of an #if is closed once. */
static void test_branches(void **state)
{
    (void)state;
    whit_graph_symbol symbol;
    mkdir(in_folder("branches"), 0700);
    write_file("branches/all.c",
               "int helper(int a)\n{\n    return a;\n}\nint f(int a)\n{\n    if (a) {\n"
               "#if X\n        return 1;\n    }\n#else\n        return 2;\n    }\n#endif\n    return helper(a);\n}\n"
               "int after(void)\n{\n    return helper(1);\n}\n");
    whit_graph *graph = open_graph_of("branches");
    assert_int_equal(calls_from(graph, "helper", "f"), 1);
    assert_int_equal(calls_from(graph, "helper", "after"), 1);
    assert_true(find(graph, "f", WHIT_SYMBOL_FUNCTION, &symbol));
    assert_int_equal(symbol.end_line, 16);
    whit_graph_close(graph);
}

/* Templates with defaults and operators are functions, and code after them must be found. */
static void test_templates(void **state)
{
    (void)state;
    whit_graph_symbol symbol;
    mkdir(in_folder("templates"), 0700);
    write_file(
        "templates/all.cc",
        "struct Other {};\n"
        "template <typename T = Other, template <class> class C = Box, int N = (2 > 1)> void filled(T t) {}\n"
        "struct Same {\n    bool operator==(const Same &b) const { return compare(b); }\n"
        "    int operator ()(int a) { return compare(a); }\n    explicit operator bool() const { return true; }\n"
        "    Same &operator=(const Same &) = delete;\n    int member;\n};\n"
        "bool operator!=(const Same &a, const Same &b) { return compare(a, b); }\n"
        "template <> struct Special { int a; };\ntemplate <class T> class Forward;\n"
        "template <int N = 1 << 3> class Shifted { int a; };\n"
        "int compare(int a) { return a; }\nint value = compare(1);\n");
    whit_graph *graph = open_graph_of("templates");
    const char *functions[] = {"filled", "operator==", "operator ()", "operator bool", "operator!=", "compare"};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (!find(graph, functions[i], WHIT_SYMBOL_FUNCTION, &symbol)) fail_msg("no function %s", functions[i]);
    assert_int_equal(calls_from(graph, "compare", "operator=="), 1);
    assert_int_equal(calls_from(graph, "compare", "operator ()"), 1);
    assert_int_equal(calls_from(graph, "compare", "operator!="), 1);
    assert_true(find(graph, "Same", WHIT_SYMBOL_TYPE, &symbol) && symbol.line == 3 && symbol.end_line == 9);
    assert_true(find(graph, "Special", WHIT_SYMBOL_TYPE, &symbol));
    assert_true(find(graph, "value", WHIT_SYMBOL_VARIABLE, &symbol));
    assert_false(find(graph, "member", WHIT_SYMBOL_VARIABLE, &symbol));
    assert_false(find(graph, "Forward", WHIT_SYMBOL_VARIABLE, &symbol));
    whit_graph_close(graph);
}

/* C++20 constraints and attributes, aliases and concepts. */
static void test_constraints(void **state)
{
    (void)state;
    whit_graph_symbol symbol;
    mkdir(in_folder("constraints"), 0700);
    write_file("constraints/all.cc",
               "template <class T> concept Small = sizeof(T) < 9 && requires(T t) { t.size(); };\n"
               "template <typename T, int n>\nrequires (fits(n)) && Small<T>\nclass Engine {\npublic:\n"
               "    int start() const requires Small<T> { return check(); }\n"
               "    void stop(int x) && requires(n > 2) { check(); }\n};\n"
               "template <class T> requires std::same_v<T, int> || requires(T a) { a + a; { a.b() } -> Small; }\n"
               "T twice(T t) { return t; }\n"
               "template <class T> requires Small<T> struct [[nodiscard]] Result { int inner() { return 1; } };\n"
               "struct [[gnu::packed]] [[deprecated(\"a;b\")]] Packed { int a; };\n"
               "enum class [[nodiscard]] Kind : int { ONE };\n"
               "[[nodiscard]] int marked() { return check(); }\nvoid tail(int a [[maybe_unused]]) {}\n"
               "using Alias = Engine<int, 1>;\ntemplate <class T> using List = std::vector<T>;\n"
               "int (*lambda)(int) = [](int a) { check(); return a; };\n"
               "using std::swap;\nusing namespace std;\nint check() { return 1; }\n");
    write_file("constraints/all.c",
               "int requires(int a) { return a; }\nint concept = 3;\n"
               "int using_it(void) { return requires(4); }\n");
    whit_graph *graph = open_graph_of("constraints");
    static const char *const types[] = {"Small", "Engine", "Result", "Packed", "Kind", "Alias", "List"};
    static const char *const functions[] = {"start", "stop",  "twice",    "inner",   "marked",
                                            "tail",  "check", "requires", "using_it"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!find(graph, types[i], WHIT_SYMBOL_TYPE, &symbol)) fail_msg("no type %s", types[i]);
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (!find(graph, functions[i], WHIT_SYMBOL_FUNCTION, &symbol)) fail_msg("no function %s", functions[i]);
    assert_true(find(graph, "Engine", WHIT_SYMBOL_TYPE, &symbol) && symbol.line == 4 && symbol.end_line == 8);
    assert_true(find(graph, "concept", WHIT_SYMBOL_VARIABLE, &symbol));
    assert_true(find(graph, "lambda", WHIT_SYMBOL_VARIABLE, &symbol));
    assert_false(find(graph, "swap", WHIT_SYMBOL_TYPE, &symbol));
    assert_int_equal(calls_from(graph, "check", "start"), 1);
    assert_int_equal(calls_from(graph, "check", "stop"), 1);
    assert_int_equal(calls_from(graph, "requires", "using_it"), 1);
    whit_graph_close(graph);
}

/* Words around a name, such as specifiers, must not be taken for the name. */
static void test_specifiers(void **state)
{
    (void)state;
    whit_graph_symbol symbol;
    mkdir(in_folder("specifiers"), 0700);
    write_file("specifiers/all.cc",
               "class Derived final : public Base {\n};\nstruct alignas(64) Line {\n    int a;\n};\n"
               "alignas(8) static int aligned(void) { return 1; }\nstruct final {\n};\n");
    write_file("specifiers/all.c",
               "_Alignas(64) static float table[4];\nint final(int a) { return a; }\n"
               "void apply(int a, int operator) __attribute__((cold));\n"
               "int after(void) { return 1; }\n");
    whit_graph *graph = open_graph_of("specifiers");
    const char *types[] = {"Derived", "Line", "final"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!find(graph, types[i], WHIT_SYMBOL_TYPE, &symbol)) fail_msg("no type %s", types[i]);
    assert_int_equal(symbol.line, 7);
    assert_true(find(graph, "table", WHIT_SYMBOL_VARIABLE, &symbol));
    assert_true(find(graph, "aligned", WHIT_SYMBOL_FUNCTION, &symbol));
    assert_true(find(graph, "final", WHIT_SYMBOL_FUNCTION, &symbol));
    assert_true(find(graph, "after", WHIT_SYMBOL_FUNCTION, &symbol));
    assert_false(find(graph, "alignas", WHIT_SYMBOL_FUNCTION, &symbol));
    whit_graph_close(graph);
}

/* Quotes that do not begin a string, and strings that are not raw, must not hide code. */
static void test_literals(void **state)
{
    (void)state;
    whit_graph_symbol symbol;
    mkdir(in_folder("literals"), 0700);
    write_file("literals/all.cc",
               "int thousands = 10'000;\nint first(void) { return 0xFF'FF + 1'0; }\n"
               "const char *bad = ERR\"bad\\n\";\nint second(void) { return 'x'; }\n"
               "const char *raw = u8R\"x(\" int none(void) { )x\";\nint third(void) { return 1; }\n");
    whit_graph *graph = open_graph_of("literals");
    const char *functions[] = {"first", "second", "third"};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (!find(graph, functions[i], WHIT_SYMBOL_FUNCTION, &symbol)) fail_msg("no function %s", functions[i]);
    assert_int_equal(symbol.line, 6);
    assert_false(find(graph, "none", WHIT_SYMBOL_FUNCTION, &symbol));
    whit_graph_close(graph);
}

/* Returns the project's file to which an import in `file` refers, or "". */
static const char *import_in(const whit_graph *graph, const char *file, const char *text)
{
    uint32_t n, first = whit_graph_imports_of(graph, whit_graph_file_number(graph, file), &n), target, line;
    const char *written;
    for (uint32_t i = first; i < first + n; i++) {
        assert_true(whit_graph_import_at(graph, i, &written, &target, &line));
        if (!strcmp(written, text)) return target == WHIT_GRAPH_NONE ? "" : whit_graph_file(graph, target);
    }
    return "not imported";
}

/* Imports with relative paths must find the file of that path, not a nearer file of the same name. */
static void test_imports(void **state)
{
    (void)state;
    const char *folders[] = {"ways", "ways/a", "ways/a/b", "ways/a/b/c"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) mkdir(in_folder(folders[i]), 0700);
    const char *headers[] = {"ways/util.h", "ways/a/util.h", "ways/a/b/util.h"};
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) write_file(headers[i], "int util(void);\n");
    write_file("ways/a/b/x.c",
               "#include \"../util.h\"\n#include \"./util.h\"\n#include \"../../util.h\"\n#include \"util.h\"\n"
               "#include \"../../../util.h\"\n#include \"../none.h\"\n");
    write_file("ways/a/head.py", "def f(): pass\n");
    write_file("ways/a/b/head.py", "def f(): pass\n");
    write_file("ways/a/b/c/head.py", "def f(): pass\n");
    write_file("ways/a/b/c/x.py",
               "from ..head import f\nfrom ...head import (f,\n    g)\nfrom .head import f\nimport head\n");
    write_file("ways/a/b/c/y.py",
               "x = 1; import head\nimport json; from ..head import f\nif x: import os; import sys\n"
               "def g():\n    yield from util()\n");
    whit_graph *graph = open_graph_of("ways");
    /* also after another statement of the line */
    assert_string_equal(import_in(graph, "a/b/c/y.py", "head"), "a/b/c/head.py");
    assert_string_equal(import_in(graph, "a/b/c/y.py", "..head"), "a/b/head.py");
    assert_string_equal(import_in(graph, "a/b/c/y.py", "sys"), "");
    assert_string_equal(import_in(graph, "a/b/c/y.py", "util"), "not imported");
    assert_string_equal(import_in(graph, "a/b/x.c", "../util.h"), "a/util.h");
    assert_string_equal(import_in(graph, "a/b/x.c", "./util.h"), "a/b/util.h");
    assert_string_equal(import_in(graph, "a/b/x.c", "../../util.h"), "util.h");
    assert_string_equal(import_in(graph, "a/b/x.c", "util.h"), "a/b/util.h");
    /* outside the project: the nearest file of that name */
    assert_string_equal(import_in(graph, "a/b/x.c", "../../../util.h"), "a/b/util.h");
    assert_string_equal(import_in(graph, "a/b/x.c", "../none.h"), "");
    assert_string_equal(import_in(graph, "a/b/c/x.py", "..head"), "a/b/head.py");
    assert_string_equal(import_in(graph, "a/b/c/x.py", "...head"), "a/head.py");
    assert_string_equal(import_in(graph, "a/b/c/x.py", ".head"), "a/b/c/head.py");
    assert_string_equal(import_in(graph, "a/b/c/x.py", "head"), "a/b/c/head.py");
    whit_graph_close(graph);
}

/* Packages are represented by their __init__.py, and names in "from . import" are modules next to it. */
static void test_packages(void **state)
{
    (void)state;
    const char *folders[] = {"packages", "packages/pkg", "packages/pkg/sub", "packages/other", "packages/pkg/util"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) mkdir(in_folder(folders[i]), 0700);
    write_file("packages/pkg/__init__.py", "def here(): pass\n");
    write_file("packages/pkg/sub/__init__.py", "def there(): pass\n");
    write_file("packages/other/__init__.py", "from pkg import here\n");
    write_file("packages/head.py", "def f(): pass\n");
    write_file("packages/other/util.py", "def f(): pass\n");
    write_file("packages/pkg/util/__init__.py", "def f(): pass\n");
    write_file("packages/pkg/m.py", "from .util import f\n");
    write_file("packages/pkg/head.py", "def f(): pass\n");
    write_file("packages/main.py",
               "import pkg, os\nimport pkg.sub as s\nfrom . import head as h, here\nfrom pkg import head\n");
    write_file("packages/pkg/sub/deep.py", "from .. import (head,\n    sub)\nfrom ... import head\nfrom . import *\n");
    whit_graph *graph = open_graph_of("packages");
    assert_string_equal(import_in(graph, "main.py", "pkg"), "pkg/__init__.py");
    assert_string_equal(import_in(graph, "main.py", "os"), "");
    assert_string_equal(import_in(graph, "main.py", "pkg.sub"), "pkg/sub/__init__.py");
    assert_string_equal(import_in(graph, "main.py", ".head"), "head.py");
    assert_string_equal(import_in(graph, "main.py", ".h"), "not imported");
    assert_string_equal(import_in(graph, "pkg/m.py", ".util"), "pkg/util/__init__.py");
    assert_string_equal(import_in(graph, "main.py", ".here"), "");
    assert_string_equal(import_in(graph, "other/__init__.py", "pkg"), "pkg/__init__.py");
    assert_string_equal(import_in(graph, "pkg/sub/deep.py", "..head"), "pkg/head.py");
    assert_string_equal(import_in(graph, "pkg/sub/deep.py", "..sub"), "pkg/sub/__init__.py");
    assert_string_equal(import_in(graph, "pkg/sub/deep.py", "...head"), "head.py");
    whit_graph_close(graph);
}

/* A definition that ends with a multi-line string ends where the string does. */
static void test_docstrings(void **state)
{
    (void)state;
    whit_graph_symbol symbol;
    mkdir(in_folder("docstrings"), 0700);
    write_file("docstrings/all.py",
               "class Told:\n    \"\"\"One line,\n    two,\n    three.\"\"\"\n\n"
               "def short():\n    'one'\n\nlast = '''\n'''\n");
    whit_graph *graph = open_graph_of("docstrings");
    assert_true(find(graph, "Told", WHIT_SYMBOL_TYPE, &symbol));
    assert_int_equal(symbol.end_line, 4);
    assert_true(find(graph, "short", WHIT_SYMBOL_FUNCTION, &symbol));
    assert_int_equal(symbol.end_line, 7);
    whit_graph_close(graph);
}

/* Letters before a string are not a name; functions called in an f-string are calls. */
static void test_formatted(void **state)
{
    (void)state;
    whit_graph_symbol symbol;
    whit_graph_mention mention;
    mkdir(in_folder("formatted"), 0700);
    write_file("formatted/all.py",
               "def helper(n): return n\ndef r(): pass\ndef width(): pass\ndef d(): pass\ndef hidden(): pass\n"
               "def g(n):\n    return f\"{helper(n)!r} {{hidden()}} \\N{hidden()} {n:{width()}d}\"\n"
               "def h(n):\n    return rf'''\n{helper({'a': n}[\"a\"]):>8} hidden() {f\"{helper(1)}\"}\n'''\n"
               "def plain(n):\n    return '{helper(n)}' + rb\"{helper(n)}\" + u'x'\n"
               "def after(n):\n    return helper(n) if n != 3 else f'{n != helper(n)}'\n");
    whit_graph *graph = open_graph_of("formatted");
    assert_int_equal(calls_from(graph, "helper", "g"), 1);
    assert_int_equal(calls_from(graph, "width", "g"), 1);
    assert_int_equal(calls_from(graph, "hidden", "g"), 0);
    assert_int_equal(calls_from(graph, "helper", "h"), 2);
    assert_int_equal(calls_from(graph, "hidden", "h"), 0);
    assert_int_equal(calls_from(graph, "helper", "plain"), 0);
    assert_int_equal(calls_from(graph, "helper", "after"), 2);
    assert_true(find(graph, "after", WHIT_SYMBOL_FUNCTION, &symbol));
    assert_int_equal(symbol.line, 14);
    whit_graph_run run = whit_graph_mentions_of(graph, "r", 1);
    assert_false(whit_graph_next_mention(graph, &run, &mention));
    run = whit_graph_mentions_of(graph, "d", 1);
    assert_false(whit_graph_next_mention(graph, &run, &mention));
    whit_graph_close(graph);
}

/* "**" between folders also matches no folder. */
static void test_ignored_folders(void **state)
{
    (void)state;
    const char *folders[] = {"walked",       "walked/sub",       "walked/sub/gen",
                             "walked/sub/a", "walked/sub/a/gen", "walked/gen"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) mkdir(in_folder(folders[i]), 0700);
    const char *files[] = {"walked/sub/gen/x.c", "walked/sub/a/gen/y.c", "walked/sub/a/kept.c",
                           "walked/gen/kept.c",  "walked/sub/a/old.c",   "walked/sub/old.c"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) write_file(files[i], "int one;\n");
    write_file("walked/.gitignore", "sub/**/gen/\ns*/**/**/old.c\n");
    whit_graph *graph = open_graph_of("walked");
    assert_int_equal(whit_graph_count(graph).n_files, 2);
    assert_int_not_equal(whit_graph_file_number(graph, "sub/a/kept.c"), WHIT_GRAPH_NONE);
    assert_int_not_equal(whit_graph_file_number(graph, "gen/kept.c"), WHIT_GRAPH_NONE);
    whit_graph_close(graph);
    /* rules that lead to a pipe, as to a terminal, are not read: a silent one would be waited for */
    int ends[2], n_unread = 0;
    char pipe_path[32];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "sub/\n", 5), 5);
    snprintf(pipe_path, sizeof pipe_path, "/dev/fd/%d", ends[0]);
    unlink(in_folder("walked/.gitignore"));
    assert_int_equal(symlink(pipe_path, in_folder("walked/.gitignore")), 0);
    graph = open_graph_of("walked");
    assert_int_equal(ioctl(ends[0], FIONREAD, &n_unread), 0);
    assert_int_equal(n_unread, 5);
    assert_int_equal(whit_graph_count(graph).n_files, 6);
    whit_graph_close(graph);
    close(ends[0]);
    close(ends[1]);
    /* as for git, rules in a file to which a link leads do not count */
    write_file("walked/rules", "sub/\n");
    unlink(in_folder("walked/.gitignore"));
    assert_int_equal(symlink("rules", in_folder("walked/.gitignore")), 0);
    graph = open_graph_of("walked");
    assert_int_equal(whit_graph_count(graph).n_files, 6);
    whit_graph_close(graph);
}

static bool add_walked(void *user, const char *path)
{
    whit_buf_printf(user, "%s ", path);
    return true;
}

/* All rules of a .gitignore count, however many there are and however long their patterns are. */
static void test_many_rules(void **state)
{
    (void)state;
    whit_buf rules = {0}, seen = {0};
    char line[80];
    mkdir(in_folder("ruled"), 0700);
    mkdir(in_folder("ruled/sub"), 0700);
    write_file("ruled/last.c", "int one;\n");
    write_file("ruled/kept.c", "int one;\n");
    write_file("ruled/sub/long.c", "int one;\n");
    write_file("ruled/sub/kept.c", "int one;\n");
    write_file("ruled/sub/.gitignore", "unused\n");
    for (int i = 0; i < 2000; i++) {
        snprintf(line, sizeof line, "unused-%d.c\n", i);
        whit_buf_append_str(&rules, line);
    }
    whit_buf_append_str(&rules, "last.c\n/sub/[");
    for (int i = 0; i < 400; i++) whit_buf_append_str(&rules, "l");
    whit_buf_append_str(&rules, "]ong.c\n");
    whit_buf_append(&rules, "", 1);
    write_file("ruled/.gitignore", whit_chars(&rules));
    whit_walk_files(in_folder("ruled"), add_walked, &seen);
    whit_buf_append(&seen, "", 1);
    assert_string_equal(whit_chars(&seen), ".gitignore kept.c sub/.gitignore sub/kept.c ");
    whit_buf_free(&rules);
    whit_buf_free(&seen);
}

/* Puts a link to the folder "outside" in place of a folder. */
static void replace_folder(const char *folder, const char *kept)
{
    char from[PATH_MAX], target[PATH_MAX];
    snprintf(from, sizeof from, "%s", in_folder(folder));
    assert_int_equal(rename(from, in_folder(kept)), 0);
    snprintf(target, sizeof target, "%s", in_folder("outside"));
    assert_int_equal(symlink(target, from), 0);
}

static bool replace_once(void *user, const char *file)
{
    bool *is_done = user;
    if (!*is_done) replace_folder("linked/sub", "linked-sub");
    *is_done = true;
    return strcmp(file, "") == 0;
}

struct walked {
    whit_buf seen;
    bool is_done;
};

static bool replace_walked(void *user, const char *path)
{
    struct walked *walked = user;
    if (!walked->is_done) replace_folder("linked/sub", "linked-sub");
    walked->is_done = true;
    return add_walked(&walked->seen, path);
}

static void take_back_folder(void)
{
    char kept[PATH_MAX];
    snprintf(kept, sizeof kept, "%s", in_folder("linked-sub"));
    assert_int_equal(unlink(in_folder("linked/sub")), 0);
    assert_int_equal(rename(kept, in_folder("linked/sub")), 0);
}

/* A folder that becomes a link while it is looked at adds nothing of the folder to which it leads. */
static void test_replaced_folders(void **state)
{
    (void)state;
    const char *folders[] = {"outside", "linked", "linked/sub"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) mkdir(in_folder(folders[i]), 0700);
    write_file("linked/a.c", "int first_one(void) { return inner_one(); }\n");
    write_file("linked/sub/b.c", "int inner_one(void) { return 1; }\n");
    write_file("outside/b.c", "int outer_one(void) { return 234567; }\n");
    write_file("outside/c.c", "int outer_two(void) { return 2; }\n");
    whit_graph *graph = open_graph_of("linked");
    whit_graph_symbol symbol;
    whit_error error;

    char folder[PATH_MAX], cache[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", in_folder("linked"));
    snprintf(cache, sizeof cache, "%s", in_folder("cache"));

    /* while the map is written */
    whit_buf map = {0};
    bool is_done = false;
    assert_ok(whit_graph_map(graph, folder, 1000, replace_once, NULL, &is_done, &map, &error), error);
    whit_buf_append(&map, "", 1);
    assert_non_null(strstr(whit_chars(&map), "return inner_one()"));
    assert_null(strstr(whit_chars(&map), "outer_one"));
    whit_buf_free(&map);

    /* while the editor follows the change of one file */
    assert_false(whit_graph_follow(graph, folder, cache, "sub/b.c"));
    assert_false(find(graph, "outer_one", WHIT_SYMBOL_FUNCTION, &symbol));
    whit_graph_close(graph);

    /* while folders are listed */
    take_back_folder();
    struct walked walked = {.is_done = false};
    whit_walk_files(folder, replace_walked, &walked);
    whit_buf_append(&walked.seen, "", 1);
    assert_string_equal(whit_chars(&walked.seen), "a.c ");
    whit_buf_free(&walked.seen);
    take_back_folder();

    /* a file that is a link */
    snprintf(cache, sizeof cache, "%s", in_folder("outside/c.c"));
    assert_int_equal(symlink(cache, in_folder("linked/c.c")), 0);
    graph = open_graph_of("linked");
    assert_false(find(graph, "outer_two", WHIT_SYMBOL_FUNCTION, &symbol));
    assert_true(find(graph, "inner_one", WHIT_SYMBOL_FUNCTION, &symbol));
    whit_graph_close(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_languages),       cmocka_unit_test(test_follows_changes),
                                       cmocka_unit_test(test_damage),          cmocka_unit_test(test_edits),
                                       cmocka_unit_test(test_globs),           cmocka_unit_test(test_members),
                                       cmocka_unit_test(test_enumerators),     cmocka_unit_test(test_branches),
                                       cmocka_unit_test(test_templates),       cmocka_unit_test(test_constraints),
                                       cmocka_unit_test(test_specifiers),      cmocka_unit_test(test_literals),
                                       cmocka_unit_test(test_imports),         cmocka_unit_test(test_packages),
                                       cmocka_unit_test(test_docstrings),      cmocka_unit_test(test_formatted),
                                       cmocka_unit_test(test_ignored_folders), cmocka_unit_test(test_many_rules),
                                       cmocka_unit_test(test_replaced_folders)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
