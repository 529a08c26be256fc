# SPDX-License-Identifier: MIT
# The shared library exports what the public headers declare, and keeps the library's promises: it calls
# nothing that ends the process, prints to stdout or installs handlers, and has no mutable globals.
set -u
library=$1 failed=0
nm=$("$CC" -print-prog-name=nm)
objdump=$("$CC" -print-prog-name=objdump)

cat "$SOURCE"/include/whit.h "$SOURCE"/include/whit/*.h | sed '/^#/d' | tr '\n' ' ' | grep -oE 'WHIT_API [^;]*;' |
    sed -E 's/.*[ *](whit_[a-z0-9_]+)\(.*/\1/' | sort -u >declared
"$nm" -D --defined-only "$library" | awk '{print $3}' | grep -vE '^(_init|_fini)$' | sort -u >exported
extra=$(comm -13 declared exported)
if [ -n "$extra" ]; then
    echo "exported but not in the public headers: $extra"
    failed=1
fi
absent=$(comm -23 declared exported)
if [ -n "$absent" ]; then
    echo "in the public headers but not exported: $absent"
    failed=1
fi

# Other languages cannot call the inline defaults: each has an exported twin (whit/bindings.h).
for name in $(cat "$SOURCE"/include/whit/*.h | grep -oE 'whit_[a-z0-9_]+_default\(void\)' | sed 's/_default(void)//' | sort -u); do
    grep -q "^${name}_init\$" exported || {
        echo "${name}_default has no exported ${name}_init"
        failed=1
    }
done

calls=$("$nm" -D --undefined-only "$library" | awk '{sub(/@.*/, "", $2); print $2}' |
    grep -xE 'abort|exit|_exit|_Exit|quick_exit|__assert_fail|err|errx|signal|sigaction|__sysv_signal|printf|__printf_chk|puts|putchar|stdout|system|srand|rand|setlocale')
if [ -n "$calls" ]; then
    echo "the library must not use: $calls"
    failed=1
fi

# __cpu_model and __cpu_features2 are the compiler's: its constructor writes them once, before anything else runs.
globals=$("$objdump" -t "$library" | awk '$3 == "O" || $4 == "O"' | grep -E '[[:space:]]\.(t?data|t?bss)[[:space:]]' |
    awk '{print $NF}' | grep -vE '^(completed\.[0-9]+|__dso_handle|__TMC_END__|__cpu_model|__cpu_features2)$')
if [ -n "$globals" ]; then
    echo "mutable globals in the library: $globals"
    failed=1
fi
# What no public call reaches is in libraries beside this one.
inside=$("$nm" --defined-only "$BUILD/libwhit.a" 2>/dev/null | awk '{print $3}' |
    grep -E '^whit_(trainer|trainee|tape|adamw|tuning|merge|export|blas|cholesky|compress|hub_pull|http|server|editor|agent)_')
if [ -n "$inside" ]; then
    echo "not for programs that embed the library: $inside"
    failed=1
fi
exit $failed
