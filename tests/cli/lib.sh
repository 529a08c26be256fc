# SPDX-License-Identifier: MIT
# What the scripts of this folder share: running the program and saying what was expected.
set -u
failed=0

# The program, behind an emulator where the build is for another machine.
whit() {
    # shellcheck disable=SC2086 # the emulator is a command with arguments
    ${EMULATOR:-} "$WHIT" "$@"
}

# tiny OUT.gguf [SEED [tied] [no-tokenizer] [chat]]: the small model of tests/tiny_model.h.
tiny() {
    # shellcheck disable=SC2086
    ${EMULATOR:-} "$TINY" "$@" || complain "no model $1"
}

# False, with a message, where the system has no pseudo-terminals, as some containers.
has_terminals() {
    python3 -c 'import pty; pty.openpty()' 2>/dev/null && return
    echo "[ SKIPPED ] this system gives no pseudo-terminals"
    return 1
}

complain() {
    echo "FAILED: $*"
    failed=1
}

# expect STATUS COMMAND...: its stdout lands in the file out, its stderr in err.
expect() {
    local wanted=$1 status
    shift
    "$@" >out 2>err </dev/null
    status=$?
    [ "$status" = "$wanted" ] || {
        complain "$* ended with $status, not $wanted"
        head -n 5 err
    }
}

# One line on stderr that contains every PATTERN.
one_line() {
    local pattern
    [ "$(wc -l <err)" = 1 ] || complain "stderr should be one line: $(head -n 3 err)"
    for pattern in "$@"; do
        grep -q -- "$pattern" err || complain "stderr lacks '$pattern': $(cat err)"
    done
}

finish() {
    exit $failed
}
