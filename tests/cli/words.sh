# SPDX-License-Identifier: MIT
# Words for people: what the README promises of commands is so, its picture shows what they print,
# and a shell completes commands and models.
. "$SOURCE/tests/cli/lib.sh"
export XDG_CACHE_HOME=$PWD/cache
rm -rf cache bin
mkdir bin
printf '#!/bin/sh\nexec %s "%s" "$@"\n' "${EMULATOR:-}" "$WHIT" >bin/whit
chmod +x bin/whit
PATH=$PWD/bin:$PATH
export PATH
(cd "$SOURCE" && tools/picture --check docs/pictures/terminal.svg) || complain "docs/pictures/terminal.svg is of another day"

# ---- the lines that a user reads
tiny model.gguf
expect 0 whit convert model.gguf -o model.ndf
expect 0 whit verify model.ndf
grep -q "every hash matches" out || complain "verify: $(cat out)"
expect 2 whit run -n
one_line "-n needs a value"
expect 2 whit run -n x
one_line "Number of tokens, or -1 for no limit"
expect 2 whit doctor x
one_line "unexpected argument 'x'"
for word in "say-so" "the rooms for"; do
    grep -q "$word" "$SOURCE/README.md" && complain "the README says '$word'"
done

# ---- doctor stays small (sanitizers have shadows of their own)
if ! grep -qE 'WHIT_SANITIZE_[A-Z]*:BOOL=ON' "$BUILD/CMakeCache.txt" && [ -z "${EMULATOR:-}" ]; then
    python3 - "$WHIT" <<'END' || complain "doctor takes over 50 MB"
import resource, subprocess, sys
subprocess.run([sys.argv[1], "doctor"], stdout=subprocess.DEVNULL, check=False)
assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 50000
END
fi

# ---- completion in bash: commands, models by name, files
# completes WORDS...: what Tab offers for the last of them.
completes() {
    COMP_WORDS=("$@")
    COMP_CWORD=$(($# - 1))
    COMPREPLY=()
    _whit
    printf '%s\n' "${COMPREPLY[@]}"
}
expect 0 whit help --completion bash
# shellcheck disable=SC1091
. ./out
completes whit ch | grep -qx chat || complain "commands"
completes whit help co | grep -qx convert || complain "help COMMAND"
completes whit run ta | grep -qx tales || complain "the built-in model's name"
completes whit run mod | grep -qx model.gguf || complain "a file"
completes whit chat -m ta | grep -qx tales || complain "-m NAME"
completes whit run --kv f | grep -qx f16 || complain "a choice"
completes whit run --no-st | grep -qx -- --no-stats || complain "an option"
[ "$(completes whit agent '' | xargs)" = "apply undo redo log" ] || complain "what agent does: $(completes whit agent '')"
completes whit memory q | grep -qx query || complain "what memory does"
completes whit graph . ca | grep -qx callers || complain "what graph is asked"
completes whit agent --al | grep -qx -- --allow || complain "an option in a word's place"
completes whit graph mod | grep -qx model.gguf || complain "a path before the word"
for shell in zsh fish; do
    expect 0 whit help --completion $shell
    for words in "apply undo redo log" "add query import stats" "def refs callers imports like map"; do
        grep -q "$words" out || complain "$shell completes none of $words"
    done
done
expect 0 whit list --names
head -n 1 out | grep -qx tales || complain "list --names: $(cat out)"
expect 0 whit inspect model.gguf
expect 0 whit list --names
grep -qx "$PWD/model.gguf" out || complain "list --names: $(cat out)"
finish
