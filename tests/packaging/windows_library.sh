#!/bin/sh
# SPDX-License-Identifier: MIT
# The zip for Windows: made twice it has the same bytes; whit.dll exports what the public headers declare and needs
# libraries of the system alone; a program of C that is linked with it writes the text that it writes here.
#
#   windows_library.sh SOURCE BUILD SCRATCH     BUILD: the build for Windows; the packages lie beside it
set -eu
root=$1 build=$(cd "$2" && pwd) scratch=$3
. "$root/packaging/release.sh"
name=whit-$version-windows-x64
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"
"$root/packaging/windows/make" "$build" "$build/../deps" first >/dev/null
"$root/packaging/windows/make" "$build" "$build/../deps" second >/dev/null
diff -r first second || { echo "two packages of the same build differ"; exit 1; }
cmake -E tar xf "first/$name.zip"
cd "$name"

x86_64-w64-mingw32-objdump -p whit.dll >../tables
sed -n '/^\[Ordinal\/Name Pointer\] Table/,/^$/s/^\t\[ *[0-9]*\] //p' ../tables | LC_ALL=C sort >../exports
nm -D --defined-only "$root/build/libwhit.so" | cut -d ' ' -f 3 | LC_ALL=C sort >../expected
diff ../expected ../exports || { echo "whit.dll does not export what libwhit.so does"; exit 1; }
sed -n 's/^\tDLL Name: //p' ../tables | tr 'A-Z' 'a-z' | grep -vxE '(api-ms-win-core-.*|kernel32|advapi32|bcrypt|msvcrt|shell32|ws2_32)\.dll' && {
    echo "whit.dll needs libraries that a user may not have"
    exit 1
}

x86_64-w64-mingw32-gcc -Wall -Werror -Iinclude examples/generate.c lib/libwhit.dll.a -o generate.exe
prompt='Once upon a time'
"$root/build/examples/generate" "$root/tools/tales/tales.ndf" "$prompt" | sed '$d' >../expected
"$root/tools/cross/wine" ./generate.exe "$root/tools/tales/tales.ndf" "$prompt" | sed '$d' | tr -d '\r' >../text
[ "$(wc -w <../expected)" -gt 20 ] || { cat ../expected; exit 1; }
diff ../expected ../text || { echo "the program with whit.dll writes another text"; exit 1; }
