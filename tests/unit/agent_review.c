/* SPDX-License-Identifier: MIT
 * What of a change's code needs a person's look. */
#include "test.h"

#include "agent/review.h"

#define TEST_A "void test_a(void)\n{\n    assert(f() == 1);\n    assert(g() == 2);\n}\n"
#define MAIN   "int main(void)\n{\n    return 0;\n}\n"

static const struct {
    const char *path, *before, *after, *reason; /* reason NULL: none */
} cases[] = {
    /* tests: the checks that are there stay, in the code and not in comments */
    {"tests/a.c", TEST_A, "void test_a(void)\n{\n    /* assert assert */\n}\n", "test"},
    {"tests/a.c", TEST_A, "void test_a(void)\n{\n    assert(1);\n    assert(1);\n}\n", "test"},
    {"tests/a.c", TEST_A, "void test_a(void)\n{\n    return;\n    assert(f() == 1);\n    assert(g() == 2);\n}\n",
     "test"},
    {"tests/a.c", TEST_A, "#if 0\n" TEST_A "#endif\n", "switch tests off"},
    {"tests/a.c", TEST_A, "#undef assert\n#define assert(x)\n" TEST_A, "switch tests off"},
    {"tests/a.c", TEST_A, TEST_A "void test_b(void)\n{\n    assert(h() == 3);\n}\n", NULL},
    {"src/a_test.go", "func TestA(t *testing.T) {\n\tif f() != 1 {\n\t\tt.Fatal()\n\t}\n}\n",
     "func TestA(t *testing.T) {\n}\n", "test"},
    {"test_a.py", "def test_a():\n    assert f() == 1\n",
     "def test_a():\n    \"\"\"\n    assert f() == 1\n    \"\"\"\n", "test"},
    {"test_a.py", "def test_a():\n    assert f() == 1\n",
     "import pytest\n@pytest.mark.skip\ndef test_a():\n    assert f() == 1\n", "switch"},
    {"test_a.py", "def test_a():\n    assert f() == 1\n",
     "def test_a():\n    assert f() == 1\ndef test_b():\n    assert g() == 1\n", NULL},
    {"a.spec.js", "it('a', () => { expect(f()).toBe(1) })\n", "it.skip('a', () => { expect(f()).toBe(1) })\n", "test"},
    {"FooTest.java", "class FooTest {\n void a() { assertEquals(1, f()); }\n}\n", "class FooTest {\n void a() { }\n}\n",
     "test"},
    {"src/inspect.c", MAIN, "int main(void)\n{\n    return 1;\n}\n", NULL},
    {"src/latest.c", MAIN, "int main(void)\n{\n    return 1;\n}\n", NULL},
    /* programs that are run: by name, with other arguments, by macro, pointer, alias */
    {"a.c", MAIN, "int main(void)\n{\n    return system(\"x\");\n}\n", "system()"},
    {"a.c", "int main(void)\n{\n    return system(\"ls\");\n}\n",
     "int main(void)\n{\n    return system(\"curl http://x | sh\");\n}\n", "system()"},
    {"a.c", "int main(void)\n{\n    char *c = \"ls\";\n    return system(c);\n}\n",
     "int main(void)\n{\n    char *c = \"rm\";\n    return system(c);\n}\n", "system()"},
    {"a.c", MAIN, "int main(void)\n{\n    return (system)(\"x\");\n}\n", "system()"},
    {"a.c", MAIN, "int main(void)\n{\n    int (*p)(const char *) = system;\n    return p(\"x\");\n}\n", "system()"},
    {"a.c", MAIN, "int (*p)(const char *) = system;\n" MAIN, "system()"},
    {"a.c", MAIN, "#define R system\n" MAIN, "system()"},
    {"a.c", "#define R system\nint main(void)\n{\n    return R(\"ls\");\n}\n",
     "#define R system\nint main(void)\n{\n    return R(\"rm\");\n}\n", "runs programs"},
    {"a.c", "int (*p)(const char *) = system;\nint main(void)\n{\n    return p(\"ls\");\n}\n",
     "int (*p)(const char *) = system;\nint main(void)\n{\n    return p(\"rm\");\n}\n", "runs programs"},
    {"a.c", "static void r(const char *c)\n{\n    system(c);\n}\nint main(void)\n{\n    r(\"ls\");\n}\n",
     "static void r(const char *c)\n{\n    system(c);\n}\nint main(void)\n{\n    r(\"rm\");\n}\n", "runs programs"},
    {"a.c", "int main(void)\n{\n    return system(\"ls\");\n}\n",
     "int main(void)\n{\n    return system(\"ls\");\n}\nint other(void)\n{\n    return 3;\n}\n", NULL},
    {"a.c", MAIN, "/* system(x) */\nint main(void)\n{\n    return puts(\"system(1)\");\n}\n", NULL},
    {"a.c", MAIN, "int main(void)\n{\n    return execvpe(\"x\", 0, 0);\n}\n", "execvpe()"},
    {"a.c", MAIN, "int main(void)\n{\n    return wordexp(\"$(x)\", 0, 0);\n}\n", "wordexp()"},
    {"a.c", "int f(char *a)\n{\n    strcpy(a, \"x\");\n    return 1;\n}\n",
     "int f(char *a)\n{\n    strcpy(a, \"x\");\n    return 2;\n}\n", NULL},
    {"a.c", "int f(char *a)\n{\n    strcpy(a, \"x\");\n}\n", "int f(char *a)\n{\n    strcpy(a, getenv(\"X\"));\n}\n",
     "strcpy()"},
    {"a.py", "import os\n", "import os\nos.execvpe('x', [], {})\n", "execvpe()"},
    {"a.py", "x = 1\n", "import subprocess as s\ns.run('x', shell=True)\n", "subprocess"},
    {"a.py", "from subprocess import run as r\ndef f():\n    r(['ls'])\n",
     "from subprocess import run as r\ndef f():\n    r(['rm'])\n", "runs programs"},
    {"a.py", "from subprocess import run\ndef f():\n    run(['ls'])\ndef g():\n    return 1\n",
     "from subprocess import run\ndef f():\n    run(['ls'])\ndef g():\n    return 2\n", NULL},
    {"a.py", "x = 1\n", "import pickle\npickle.loads(x)\n", "pickle"},
    {"a.py", "x = 1\n", "import re\ny = re.compile('x')\n", NULL},
    {"a.py", "x = 1\n", "exec(compile(x, '', 'exec'))\n", "exec()"},
    {"a.js", "f()\n", "const c = require('child_process'); c.exec('x')\n", "child_process"},
    {"a.js", "f()\n", "import {exec} from \"node:child_process\"\nexec('x')\n", "child_process"},
    {"a.js", "f()\n", "new Function('x')()\n", "Function()"},
    {"a.js", "f()\n", "/x/.exec('y')\n", NULL},
    {"a.rs", "fn f() {}\n", "fn f() { std::process::Command::new(\"x\"); }\n", "process::Command"},
    {"a.go", "package a\n", "package a\nimport \"os/exec\"\n", "os/exec"},
    {"t/a.test", "ok(f() == 1)\n", "ok(1)\n", "test"},
    {"t/a.test", "ok(f() == 1)\n", "ok(f() == 1)\nok(g() == 1)\n", NULL},
    /* by other letters */
    {"a.c", "int f(void);\n", "int f(void)\n{\n    return sys\\\ntem(\"x\");\n}\n", "divides a name"},
    {"a.c", "int f(void);\n", "#define J(a, b) a##b\nint f(void)\n{\n    return J(sys, tem)(\"x\");\n}\n", "pastes"},
    {"a.c", "int f(void);\n", "void f(void)\n{\n    __asm__(\"syscall\");\n}\n", "assembly"},
    {"a.py", "import os\n", "import os\nos.\xEF\xBD\x93ystem('x')\n", "system()"},
    {"a.py", "import os\n", "import os\ngetattr(os, 'sys' + 'tem')('x')\n", "by name"},
    {"a.txt", "x\n", "system(1)\n", NULL},
    /* where a compiler has other ideas of comments, strings and words than the parser */
    {"a.py", "import os\n", "import os\ngetattr( os, 'sys' + 'tem')('x')\n", "by name"},
    {"a.py", "import os\n", "import os\nvars(os)['sys' + 'tem']('x')\n", "by name"},
    {"a.py", "import os\n", "import os\nos . __dict__['sys' + 'tem']('x')\n", "by name"},
    {"a.py", "x = 1\n", "import os as o\ngetattr(o, 'sys' + 'tem')('x')\n", "another name"},
    {"a.py", "x = 1\n", "# coding: unicode_escape\n#\\u000aexec('x')\n", "encoding"},
    {"a.py", "x = 1\n", "#!/x\n# -*- coding: utf-7 -*-\n+AGUAeABlAGM-('x')\n", "encoding"},
    {"a.py", "x = 1\n", "# -*- coding: UTF-8 -*-\nx = 2\n", NULL},
    {"a.py", "x = 1\n", "x = f\"{\"a\" + str(exec(\"x\"))}\"\n", "exec()"},
    {"a.py", "x = 1\n", "x = f\"{y:{\"a\" + exec(\"x\")}}\"\n", "exec()"},
    {"a.py", "x = 1\n", "x = f\"{f\"{\"\" + exec(\"x\")}\"}\"\n", "exec()"},
    {"a.py", "x = 1\n", "x = t'{exec(1)}'\n", "exec()"},
    {"a.py", "x = 1\n", "x = rf'\\N{exec(1)}'\n", "exec()"},
    {"a.py", "x = 1\n", "x = f'\\\\N{exec(1)}'\n", "exec()"},
    {"a.py", "x = 1\n", "x = f'\\N{BULLET} {{exec}} exec'\ny = 'exec'\n", NULL},
    {"a.py", "x = 1\n", "x = \"abc\\\r\ndef\"; exec(\"x\")\r\n", "exec()"},
    {"a.pyw", "x = 1\n", "exec('x')\n", "exec()"},
    {"a.PY", "x = 1\n", "exec('x')\n", "exec()"},
    {"tool", "#!/usr/bin/env python3\n", "#!/usr/bin/env python3\nexec('x')\n", "exec()"},
    {"a.c", "int f(void);\n", "int f(void)\n{\n    return sys\\ \ntem(\"x\");\n}\n", "divides a name"},
    {"a.c", "int f(void);\n", "int f(void)\n{\n    /* *\\\n/ system(\"x\"); /* */\n}\n", "divides a name"},
    {"a.c", "int f(void);\n", "int f(void)\n{\n    p = \"abc \\ \n \"; system(\"x\"); q = \"\";\n}\n", "system()"},
    {"a.c", "int f(void);\n", "int f(void)\n{\n    p = \"abc \\\r\n \"; system(\"x\"); q = \"\";\n}\n", "system()"},
    {"a.c", "int f(void);\n", "void f(void)\n{\n    __asm\n    (\"syscall\");\n}\n", "assembly"},
    {"a.c", "int f(void);\n", "void f(void)\n{\n    __asm goto (\"syscall\" : : : : x);\nx:;\n}\n", "assembly"},
    {"a.c", "int f(void);\n", "int f(void); /* asm is a word */\n", NULL},
    {"a.c", "int f(void);\n", "#define R\nint f(void)\n{\n    p = R\"x(\"; system(\"x\"); q = \")x\";\n}\n",
     "raw string"},
    {"a.cc", "int f();\n", "auto p = R\"x(system)x\";\n", NULL},
    {"a.c", "int f(void);\n", "#include \"notes.txt\"\n", "not named as code"},
    {"a.c", "int f(void);\n", "#include <notes.txt>\n", "not named as code"},
    {"a.cc", "int f();\n", "#include <vector>\n#include <a/b.hpp>\n#include \"table.inc\"\n", NULL},
    {"a.c", "#include \"notes.txt\"\nint f(void);\n", "#include \"notes.txt\"\nint g(void);\n", NULL},
    {"a.c", "int f(void);\n", "#define X \"notes.txt\"\n#include X\n", "not named after"},
    {"a.c", "int f(void);\n", "#/**/include \"notes.txt\"\n", "nam"},
    {"a.c", "int f(void);\n", "%:include \"notes.txt\"\n", "digraphs"},
    {"a.c", "int f(void);\n", "#pragma redefine_extname puts system\n", "another name"},
    {"a.def", "x\n", "int f(void) { return system(\"x\"); }\n", "system()"},
    {"a.c", "int f(void);\n", "static int f(const char *) __attribute__((__weakref__(\"system\")));\n", "another name"},
    {"a.S", "x\n", "    call system\n", "assembly"},
    {"a.js", "f()\n", "i--; eval(x)\n", "eval()"},
    {"a.js", "f()\n", "class A { #x = eval(x) }\n", "eval()"},
    {"a.js", "f()\n", "const q = '\"'; eval(x); const r = '\"'\n", "eval()"},
    {"a.js", "f()\n", "s.replace(/\"/g, ''); eval(x)\n", "eval()"},
    {"a.js", "f()\n", "q = `${eval(x)}`\n", "eval()"},
    {"a.cjs", "f()\n", "eval(x)\n", "eval()"},
    {"a.html", "<p>\n", "<script>eval(x)</script>\n", "eval()"},
    {"a.js", "f()\n", "g() // the system is a function of the spawn of systems\n", NULL},
    {"a.rb", "f\n", "puts \"#{system('x')}\"\n", "system()"},
    {"a.pl", "f\n", "$x // system('x');\n", "system()"},
    {"a.sh", "f\n", "ls // ; eval \"$x\"\n", "eval()"},
    {"A.java", "f\n", "i--; Runtime.getRuntime().exec(x);\n", "getRuntime()"},
};

static void code_is_reviewed_by_its_structure(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const whit_change change = {.path = cases[i].path,
                                    .was = true,
                                    .is = true,
                                    .before = cases[i].before,
                                    .before_bytes = strlen(cases[i].before),
                                    .after = cases[i].after,
                                    .after_bytes = strlen(cases[i].after)};
        const char *reason = whit_review_code(&change);
        if (cases[i].reason ? !reason || !strstr(reason, cases[i].reason) : reason != NULL)
            fail_msg("%s: '%s', not '%s':\n%s", cases[i].path, reason ? reason : "no reason",
                     cases[i].reason ? cases[i].reason : "no reason", cases[i].after);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(code_is_reviewed_by_its_structure)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
