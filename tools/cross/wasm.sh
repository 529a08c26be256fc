#!/bin/sh
# SPDX-License-Identifier: MIT
# Compiles the library to WebAssembly with SIMD, by Debian's emscripten, for bindings/js.
#
#   tools/cross/wasm.sh [FOLDER]     FOLDER/js/whit-core.mjs and .wasm; FOLDER is build-wasm by default
#
# The libraries that whit needs are Debian's source packages, pinned below and built once into FOLDER/libraries.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-build-wasm}
directory=$folder/libraries
mkdir -p "$directory/include" "$directory/lib/pkgconfig" "$directory/source"
folder=$(cd "$folder" && pwd)
directory=$folder/libraries
checksums='
6296ddd9c0a022bd1b70074aefb171cfcdf5694a04ffd32b35fd66097621af87  jansson_2.14-2.dsc
726dafe7a8d07332d4df61edf23f384ddb158b2b263846273d1103b6b9a7c176  pcre2_10.42-1.dsc
6ce2b0ab12fe7d0c3fd0a40d4eb886ae82bf6ea356e4db1a0a9f76582947625c  utf8proc_2.8.0-1.dsc
2c23c57b5a9385dab5a1916014c9b5f2cdd7dadeb8a35b28c1bfb603ce7095c4  libsodium_1.0.18-1+deb12u1.dsc
'
. "$here/sources.sh"
NODE_PATH=/usr/share/nodejs # Debian's acorn, also for a node from elsewhere
EM_COMPILER_WRAPPER=$(command -v ccache || true)
export NODE_PATH EM_COMPILER_WRAPPER

# compile NAME PC-NAME VERSION OPTION... SOURCE...: lib/libNAME.a and its file for pkg-config.
compile() {
    name=$1 module=$2 version=$3
    shift 3
    rm -rf "$directory/objects/$name"
    mkdir -p "$directory/objects/$name"
    (cd "$directory/objects/$name" && emcc -c -O2 -w "-ffile-prefix-map=$directory=." "$@" && emar rcsD "$directory/lib/lib$name.a" ./*.o)
    cat >"$directory/lib/pkgconfig/$module.pc" <<EOF
Name: $name
Description: $name for WebAssembly
Version: $version
Cflags: -I$directory/include
Libs: -L$directory/lib -l$name
EOF
}

build_dependencies() {
    for name in jansson pcre2 utf8proc libsodium; do unpack_source $name; done
    include=$directory/include

    source=$directory/source/jansson/src
    sed 's/@json_inline@/inline/; s/@json_[a-z_]*@/1/' "$source/jansson_config.h.in" >"$include/jansson_config.h"
    cp "$source/jansson.h" "$include"
    : >"$source/jansson_private_config.h" # its content is the options below
    compile jansson jansson 2.14 -DHAVE_STDINT_H=1 -DHAVE_UNISTD_H=1 -DHAVE_FCNTL_H=1 -DHAVE_SYS_TIME_H=1 -DHAVE_SYS_TYPES_H=1 \
        -DHAVE_GETPID=1 -DHAVE_GETTIMEOFDAY=1 -DHAVE_OPEN=1 -DHAVE_READ=1 -DHAVE_CLOSE=1 -DHAVE_LOCALECONV=1 \
        -DHAVE_STRTOLL=1 -DUSE_URANDOM=1 -DINITIAL_HASHTABLE_ORDER=3 -I"$include" "$source"/*.c

    source=$directory/source/pcre2/src
    cp "$source/pcre2.h.generic" "$include/pcre2.h"
    cp "$source/config.h.generic" "$source/config.h"
    cp "$source/pcre2_chartables.c.dist" "$source/pcre2_chartables.c"
    set --
    for part in auto_possess chartables compile config context convert dfa_match error extuni find_bracket \
        jit_compile maketables match match_data newline ord2utf pattern_info script_run serialize string_utils \
        study substitute substring tables ucd valid_utf xclass; do
        set -- "$@" "$source/pcre2_$part.c"
    done
    compile pcre2-8 libpcre2-8 10.42 -DHAVE_CONFIG_H -DPCRE2_CODE_UNIT_WIDTH=8 -DPCRE2_STATIC -DSUPPORT_UNICODE \
        -DSUPPORT_PCRE2_8 -I"$source" -I"$include" "$@"

    source=$directory/source/utf8proc
    cp "$source/utf8proc.h" "$include"
    compile utf8proc libutf8proc 2.8.0 -DUTF8PROC_STATIC "$source/utf8proc.c"

    source=$directory/source/libsodium/src/libsodium
    cp -r "$source/include/sodium" "$source/include/sodium.h" "$include"
    sed 's/@VERSION@/1.0.18/; s/@SODIUM_LIBRARY_VERSION_MAJOR@/10/; s/@SODIUM_LIBRARY_VERSION_MINOR@/3/; s/@SODIUM_LIBRARY_MINIMAL_DEF@//' \
        "$source/include/sodium/version.h.in" >"$include/sodium/version.h"
    # Objects have their sources' names alone, of which some are equal: each source gets its path as name.
    mkdir -p "$directory/source/sodium"
    find "$source" -name '*.c' ! -path '*sse*' ! -path '*avx*' ! -path '*aesni*' | LC_ALL=C sort | while read -r file; do
        name=$(echo "${file#"$source"/}" | tr / _)
        echo "#include \"$file\"" >"$directory/source/sodium/$name"
    done
    compile sodium libsodium 1.0.18 -DCONFIGURED=1 -DSODIUM_STATIC -I"$include" -I"$include/sodium" \
        -I"$source/include/sodium" "$directory"/source/sodium/*.c
}

if [ ! -f "$directory/done" ]; then
    build_dependencies
    touch "$directory/done"
fi
PKG_CONFIG_LIBDIR="$directory/lib/pkgconfig"
export PKG_CONFIG_LIBDIR
if [ ! -f "$folder/configured" ]; then
    generator='Unix Makefiles'
    command -v ninja >/dev/null && generator=Ninja
    emcmake cmake -S "$here/../.." -B "$folder" -G "$generator" -DCMAKE_BUILD_TYPE=Release -DWHIT_PROGRAM=OFF \
        -DCMAKE_EXE_LINKER_FLAGS="-L$directory/lib" -DCMAKE_CROSSCOMPILING_EMULATOR="$(command -v node)" \
        >"$folder/configure.log" 2>&1 || { cat "$folder/configure.log" >&2; exit 1; }
    touch "$folder/configured"
fi
cmake --build "$folder" --parallel "$(nproc)" --target whit_js
