# SPDX-License-Identifier: MIT
# The front door. CMake does the work; this file only says which, and in what order.
#
#   make                 builds build/whit; names missing packages and installs nothing
#   make deps            installs all that the program can use (Debian, Ubuntu); DEPS=all: tests, fuzzers and formatter, too
#   make run             installs, builds and prints a tale: PROMPT="text", or MODEL=FILE;
#                        says how to open the chat page
#   make test            installs, builds and tests, plainly and under ASan and UBSan, within a quarter of an hour
#   make test-all        what that leaves out: scripts under sanitizers, sessions on emulated old processors
#   make bench           what this machine reaches: MODEL=FILE, ARGS="-t 1,2"
#   make distilled       low-bit students of ../shared/models/prose-6M in build/distilled, and their table
#   make fuzz            fuzzes every reader: FUZZ_SECONDS=60 each, FUZZ_TARGETS="ndf gguf"
#   make test-asan       one of the suites alone; also test-release, test-tsan, test-aarch64, test-riscv64;
#                        of any the tests of some names: TESTS="kernels|threads"
#   make test-avx512     kernels on an emulated CPU with AVX-512, for machines without one
#   make test-long       what takes many minutes: a million positions of the screened head,
#                        a hundred thousand sessions, every size of batch
#   make test-clients    openai, ollama, LangChain, AI SDK and Anthropic's client for Node, then coding
#                        agents (tests/clients/agents.json) against build/whit serve; npm fetches them
#   make tales           trains the built-in model anew, from nothing, into build/tales
#   make recall          trains the model of the test `recall` anew, into build/recall
#   make grammars        tree-sitter grammars for the editor, into ~/.local/share/whit/grammars
#   make install         PREFIX=/usr/local (with sudo) or $HOME/.local, DESTDIR=
#   make uninstall       removes what that put there: the same PREFIX and DESTDIR
#   make static          build-static/whit, one file that runs on any Linux of this architecture
#   make riscv64         build-static-riscv64/whit, the same for 64-bit RISC-V, by a cross compiler
#   make deb             build-package/packages/*.deb for Debian and Ubuntu; packaging/packages.mk has the others
#   make npm             build-wasm/whit-VERSION.tgz, the package for JavaScript, and build-wasm/whit.html, a page
#                        with the built-in model, by emscripten
#   make test-wasm       its tests in Node and in a browser
#   make test-everywhere one table: every target that this machine can build and run gives the same logits and text;
#                        ARGS="--built windows wasm": these, as they were built last
#   make windows         build-windows/packages: a zip of whit.exe, whit.dll and headers for 64-bit Windows, by
#                        mingw-w64, and an installer
#   make test-windows    their suites under wine
#   make fmt             formats the C files
#   make clean
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60
TESTS ?=
MODEL ?=
DEPS ?= use
PROMPT ?= Once upon a time
JOBS := $(shell nproc 2>/dev/null || echo 2)
CTEST := ctest --output-on-failure --no-tests=error -j $(JOBS) $(if $(TESTS),-R '$(TESTS)')

.PHONY: build deps run tales recall suite test test-all test-release test-asan test-tsan test-aarch64 test-riscv64 test-avx512 test-long test-clients grammars bench distilled fuzz install uninstall static riscv64 riscv64-libraries wheel npm test-wasm test-everywhere windows test-windows fmt clean
.NOTPARALLEL:

build:
	@tools/deps check run
	@TARGETS=whit tools/build release

deps:
	@tools/deps install $(DEPS)

run:
	@tools/deps install run
	@TARGETS=whit tools/build release
	@build/whit run $(if $(MODEL),-m "$(MODEL)" -n 200) -p "$(PROMPT)"
	@echo "A chat page in your browser: build/whit serve$(if $(MODEL), -m $(MODEL)), then open http://127.0.0.1:8080/" >&2

grammars:
	@tools/grammars

tales:
	@tools/deps install run
	@tools/build release
	@tools/tales/make

recall:
	@tools/deps install run
	@tools/build release
	@tools/lockers/make

# One run of CTest over both builds, so that its summary counts everything. Tests of one name would share their
# properties, which program they run among them, so those of the second build get names of their own.
suite:
	@tools/deps install test
	@tools/build release
	@tools/build debug
	@mkdir -p build/suite
	@mkdir -p build/suite/asan
	@sed -E 's/^( *(add_test|set_tests_properties)\(\[=\[)/\1asan_/' build-debug/tests/CTestTestfile.cmake >build/suite/asan/CTestTestfile.cmake
	@echo 'subdirs(.. asan)' >build/suite/CTestTestfile.cmake

test: suite
	@$(CTEST) $(if $(TESTS),,-LE '^rest$$') --test-dir build/suite

test-all: suite
	@$(CTEST) -L '^rest$$' --test-dir build/suite

test-release:
	@tools/deps install test
	@tools/build release
	@$(CTEST) --test-dir build

test-asan:
	@tools/deps install test
	@tools/build debug
	@$(CTEST) --test-dir build-debug

test-tsan:
	@tools/deps install test
	@tools/build tsan
	@TSAN_OPTIONS="suppressions=$(CURDIR)/tests/tsan.supp" $(CTEST) --test-dir build-tsan

test-aarch64:
	@tools/deps install arm
	@tools/build aarch64
	@$(CTEST) --test-dir build-aarch64

test-riscv64: riscv64-libraries
	@tools/build riscv64
	@$(CTEST) --test-dir build-riscv64

test-avx512:
	@tools/deps install emulate
	@tools/build release
	@tools/emulate-avx512 build $(TESTS) || [ $$? = 77 ]

test-long:
	@tools/deps install test
	@tools/build release
	@$(CTEST) --test-dir build -C Long -R _long

test-clients:
	@tools/deps install test
	@tools/build release
	@tests/clients/llama.sh
	@tests/clients/run.sh
	@tests/clients/agents.sh

bench:
	@tools/deps install run
	@tools/build release
	@build/whit bench -m "$(or $(MODEL),tools/tales/tales.ndf)" $(ARGS)

distilled:
	@tools/deps install run
	@tools/build release
	@tools/distilled build/whit build/distilled
	@tools/distilled-table build/whit build/distilled

fuzz:
	@tools/deps install fuzz
	@tools/build fuzz
	@tools/fuzz build-fuzz $(FUZZ_SECONDS) $(FUZZ_TARGETS)

install:
	@tools/deps check run
	@tools/install before "$(PREFIX)"
	@TARGETS="whit whit_static whit_shared whit_manuals" tools/build release
	@cmake -DCMAKE_INSTALL_PREFIX="$(PREFIX)" build >/dev/null
	@cmake --install build
	@tools/install after "$(PREFIX)"

# The list of files is that of the last `make install` from this folder.
uninstall:
	@test -f build/install_manifest.txt || { echo "nothing was installed from here"; exit 1; }
	@sed 's|^|$(DESTDIR)|' build/install_manifest.txt | tr '\n' '\0' | xargs -0 rm -f
	@sed 's|^|$(DESTDIR)|; s|/[^/]*$$||; p; s|/[^/]*$$||; p; s|/[^/]*$$||' build/install_manifest.txt | grep -E '/whit(/docs.*)?$$' | sort -ru | tr '\n' '\0' | xargs -0 rmdir 2>/dev/null || true

wheel:
	@tools/deps check run
	@TARGETS=whit_shared tools/build release
	@python3 bindings/python/make_wheel.py build/libwhit.so -o build

static:
	@tools/deps check static
	@tools/cross/static.sh build-static/libraries
	@TARGETS=whit tools/build static

riscv64-libraries:
	@tools/deps install riscv
	@tools/cross/static.sh build-static-riscv64/libraries riscv64-linux-gnu

riscv64: riscv64-libraries
	@TARGETS=whit tools/build static-riscv64

npm:
	@tools/deps install wasm
	@tools/cross/wasm.sh build-wasm
	@bindings/js/make_npm.py build-wasm -o build-wasm
	@bindings/js/make_npm.py build-wasm --page build-wasm/whit.html

test-everywhere:
	@tests/everywhere.py $(ARGS)

test-wasm: npm
	@tools/deps install test
	@tools/build release
	@WHIT_WASM=$(CURDIR)/build-wasm $(CTEST) --test-dir build -C Long -R '^js_'

windows:
	@tools/deps install windows
	@tools/cross/windows-build

test-windows:
	@tools/deps install windows
	@TARGETS="whit hub_serve tiny_model example_generate" tools/build release
	@TARGETS=editor_scenes tools/build release >/dev/null 2>&1 || echo "no libvterm: the editor is not tested" >&2
	@tools/cross/windows-build all
	@tools/cross/windows-build
	@$(CTEST) --test-dir build-windows/build

fmt:
	@tools/deps install fmt
	@git ls-files '*.c' '*.h' | xargs clang-format -i

clean:
	@rm -rf build build-debug build-tsan build-fuzz build-static build-static-aarch64 build-static-riscv64 build-aarch64 build-riscv64 build-package build-wasm build-windows

include packaging/packages.mk
