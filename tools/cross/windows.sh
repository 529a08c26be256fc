#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds the libraries that whit.exe is linked with, from Debian's source packages, into DIRECTORY
# (include, lib, lib/pkgconfig, licences). Versions and checksums are pinned below. A library that is
# there already is not built again.
#
#   tools/cross/windows.sh DIRECTORY
set -eu

directory=${1:?usage: tools/cross/windows.sh DIRECTORY}
mkdir -p "$directory/source"
directory=$(cd "$directory" && pwd)
root=$(cd "$(dirname "$0")/../.." && pwd)
target=x86_64-w64-mingw32
jobs=${JOBS:-$(nproc)}
toolchain=$root/cmake/mingw.cmake

# SHA-256, file of the source package.
checksums='
6296ddd9c0a022bd1b70074aefb171cfcdf5694a04ffd32b35fd66097621af87  jansson_2.14-2.dsc
726dafe7a8d07332d4df61edf23f384ddb158b2b263846273d1103b6b9a7c176  pcre2_10.42-1.dsc
6ce2b0ab12fe7d0c3fd0a40d4eb886ae82bf6ea356e4db1a0a9f76582947625c  utf8proc_2.8.0-1.dsc
2c23c57b5a9385dab5a1916014c9b5f2cdd7dadeb8a35b28c1bfb603ce7095c4  libsodium_1.0.18-1+deb12u1.dsc
9f94190b571e059dd6a359c7effd40b982c6c2796959ea201cf41e7cac0b6730  cmocka_1.1.5-2.1.dsc
2744f12e3aef161c0361743fa1b318296b122e566e47f381e4a63320fbcc23f4  curl_7.88.1-10+deb12u15.dsc
c0f8a9cd77c41285d2d48fc68bbee2e460a55042fcd5d3f6b9946c017d4b6846  libmicrohttpd_0.9.75-6.dsc
'

. "$root/tools/cross/sources.sh"

with_configure() { # NAME OPTION...
    name=$1
    shift
    [ -e "$directory/source/$name/configure" ] || (cd "$directory/source/$name" && autoreconf -fi >/dev/null 2>&1)
    mkdir -p "$directory/source/$name.build"
    cd "$directory/source/$name.build"
    CC=$target-gcc-posix CFLAGS="-O2 -ffile-prefix-map=$directory=." "../$name/configure" --host=$target \
        --prefix="$directory" --enable-static --disable-shared --disable-dependency-tracking "$@" >/dev/null
    make -s -j "$jobs" >/dev/null
    make -s install >/dev/null
    cd "$directory"
}

build() { # NAME
    case $1 in
    jansson) with_cmake jansson -DJANSSON_BUILD_DOCS=OFF -DJANSSON_WITHOUT_TESTS=ON -DJANSSON_EXAMPLES=OFF ;;
    pcre2) with_cmake pcre2 -DPCRE2_SUPPORT_JIT=ON -DPCRE2_BUILD_PCRE2GREP=OFF -DPCRE2_BUILD_TESTS=OFF ;;
    utf8proc) with_cmake utf8proc -DUTF8PROC_ENABLE_TESTING=OFF ;;
    libsodium) with_configure libsodium --disable-ssp ;;
    curl) # TLS and certificates are the system's own
        with_configure curl --with-schannel --enable-http --disable-ftp --disable-file --disable-ldap --disable-ldaps \
            --disable-rtsp --disable-dict --disable-telnet --disable-tftp --disable-pop3 --disable-imap --disable-smb \
            --disable-smtp --disable-gopher --disable-mqtt --disable-manual --disable-netrc --disable-ntlm \
            --disable-unix-sockets --disable-alt-svc --disable-hsts --without-zlib --without-brotli --without-zstd \
            --without-libpsl --without-libidn2 --without-nghttp2 --without-librtmp --without-libssh2
        ;;
    libmicrohttpd)
        with_configure libmicrohttpd --disable-https --disable-doc --disable-examples --disable-curl \
            --disable-tools
        ;;
    cmocka)
        with_cmake cmocka -DUNIT_TESTING=OFF -DWITH_EXAMPLES=OFF -DWITH_STATIC_LIB=ON
        rm -f "$directory/lib/libcmocka.dll.a" "$directory/bin/libcmocka.dll" # tests need no library beside them
        mv "$directory/lib/libcmocka-static.a" "$directory/lib/libcmocka.a"
        ;;
    esac
}

mkdir -p "$directory/licences"
for name in jansson pcre2 utf8proc libsodium cmocka curl libmicrohttpd; do
    [ -e "$directory/licences/$name.txt" ] && continue
    unpack_source "$name"
    build "$name"
    cp "$directory/source/$name/debian/copyright" "$directory/licences/$name.txt"
done
