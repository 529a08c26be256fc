#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds the libraries of the static program that Debian has no suitable archive (.a) of: its libcurl needs libraries
# without one, its libmicrohttpd a TLS library that the server never uses. Both come from Debian's source packages,
# pinned below; all others are Debian's own archives, for another processor unpacked below DIRECTORY. Debian 12 has no
# packages for RISC-V: there all of them are built, and cmocka for the tests. A library that is there already is not built
# again.
#
#   tools/cross/static.sh DIRECTORY [TRIPLET]     x86_64-linux-gnu, aarch64-linux-gnu, riscv64-linux-gnu;
#                                                 default: this machine's
#
# DIRECTORY gets include, lib, lib/pkgconfig and licences.
set -eu

directory=${1:?usage: tools/cross/static.sh DIRECTORY [TRIPLET]}
mkdir -p "$directory"
directory=$(cd "$directory" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
native=$(gcc -dumpmachine)
triplet=${2:-$native}
jobs=${JOBS:-$(nproc)}

checksums='
2744f12e3aef161c0361743fa1b318296b122e566e47f381e4a63320fbcc23f4  curl_7.88.1-10+deb12u15.dsc
c0f8a9cd77c41285d2d48fc68bbee2e460a55042fcd5d3f6b9946c017d4b6846  libmicrohttpd_0.9.75-6.dsc
6296ddd9c0a022bd1b70074aefb171cfcdf5694a04ffd32b35fd66097621af87  jansson_2.14-2.dsc
726dafe7a8d07332d4df61edf23f384ddb158b2b263846273d1103b6b9a7c176  pcre2_10.42-1.dsc
6ce2b0ab12fe7d0c3fd0a40d4eb886ae82bf6ea356e4db1a0a9f76582947625c  utf8proc_2.8.0-1.dsc
2c23c57b5a9385dab5a1916014c9b5f2cdd7dadeb8a35b28c1bfb603ce7095c4  libsodium_1.0.18-1+deb12u1.dsc
5e060cb277f31e67b91033e05ece00832ca8056decba873b1698a5680414a177  libmd_1.0.4-2.dsc
21c62d65fa3b914d765b733fb0e03d331db830df45f1a5225f95902567f05146  libbsd_0.11.7-2.dsc
a35710b02a3de6ab8f9da7fa2e3726a609cc26c936ad85b2094ef91aa996fc94  ncurses_6.4-4.dsc
6e701f5e0bcd81f80fe3686d84861e9d9247e247ed08fb96ffc3746102aedd21  libedit_3.1-20221030-2.dsc
0ab1448c7206ee928f97a24d04300cfd3bb26babb4238c82fb71f507b5148595  libseccomp_2.5.4-1+deb12u1.dsc
a8bf91b5ffb40654efb0ebe0c962ac1e87b8eed5e104880982eaa70dd4bb33e3  mbedtls_2.28.3-1.dsc
9f94190b571e059dd6a359c7effd40b982c6c2796959ea201cf41e7cac0b6730  cmocka_1.1.5-2.1.dsc
'
foreign='' names='curl libmicrohttpd'
pkg_config=/usr/lib/$triplet/pkgconfig
includes='' libraries=''
case $triplet in
"$native") ;;
aarch64-linux-gnu)
    foreign=arm64
    includes=$directory/packages/usr/include libraries=$directory/packages/usr/lib/$triplet
    pkg_config=$libraries/pkgconfig
    ;;
riscv64-linux-gnu)
    names="jansson pcre2 utf8proc libsodium cmocka libmd libbsd ncurses libedit libseccomp mbedtls $names"
    includes=$directory/include libraries=$directory/lib
    pkg_config=$libraries/pkgconfig
    toolchain=$here/../../cmake/riscv64.cmake
    ;;
*)
    echo "tools/cross/static.sh: no packages for $triplet" >&2
    exit 1
    ;;
esac
. "$here/sources.sh"

with_configure() { # NAME OPTION...
    name=$1
    shift
    [ -e "$directory/source/$name/configure" ] || (cd "$directory/source/$name" && autoreconf -fi >/dev/null 2>&1)
    rm -rf "$directory/source/$name.build"
    mkdir -p "$directory/source/$name.build"
    (
        cd "$directory/source/$name.build"
        CC=$triplet-gcc CFLAGS="-O2 -ffunction-sections -fdata-sections -ffile-prefix-map=$directory=." \
            CPPFLAGS="${includes:+-I$includes}" LDFLAGS="${libraries:+-L$libraries}" \
            PKG_CONFIG_LIBDIR=$pkg_config "../$name/configure" --host="$triplet" \
            --prefix="$directory" --libdir="$directory/lib" --enable-static --disable-shared \
            --disable-dependency-tracking --disable-maintainer-mode "$@" >configure.log 2>&1 || {
            tail -n 20 configure.log >&2
            exit 1
        }
        make -s -j "$jobs" >make.log 2>&1 && make -s install >>make.log 2>&1 || {
            tail -n 20 make.log >&2
            exit 1
        }
    )
}

build() { # NAME
    case $1 in
    jansson) with_cmake jansson -DJANSSON_BUILD_DOCS=OFF -DJANSSON_WITHOUT_TESTS=ON -DJANSSON_EXAMPLES=OFF ;;
    pcre2) with_cmake pcre2 -DPCRE2_SUPPORT_JIT=ON -DPCRE2_BUILD_PCRE2GREP=OFF -DPCRE2_BUILD_TESTS=OFF ;;
    utf8proc) with_cmake utf8proc -DUTF8PROC_ENABLE_TESTING=OFF ;;
    mbedtls) with_cmake mbedtls -DENABLE_TESTING=OFF -DENABLE_PROGRAMS=OFF -DGEN_FILES=OFF ;;
    cmocka)
        with_cmake cmocka -DUNIT_TESTING=OFF -DWITH_EXAMPLES=OFF -DWITH_STATIC_LIB=ON
        rm -f "$directory"/lib/libcmocka.so* # the emulator finds no library there
        mv "$directory/lib/libcmocka-static.a" "$directory/lib/libcmocka.a"
        ;;
    libsodium | libmd | libedit | libseccomp) with_configure "$1" ;;
    libbsd)
        with_configure libbsd
        rm "$directory/lib/libbsd.so" # a script for the linker that names a library which is not made
        ;;
    ncurses) # terminals are looked for where Debian's packages have them
        with_configure ncurses --without-shared --without-debug --without-cxx --without-cxx-binding --without-ada \
            --without-manpages --without-progs --without-tests --disable-db-install --disable-stripping \
            --enable-widec --enable-overwrite --with-termlib=tinfo --enable-pc-files --with-pkg-config-libdir="$directory/lib/pkgconfig" \
            --with-default-terminfo-dir=/etc/terminfo --with-terminfo-dirs=/etc/terminfo:/lib/terminfo:/usr/share/terminfo
        ln -sf libtinfo.a "$directory/lib/libncurses.a" # libedit looks for its functions there
        ;;
    curl) # The program looks for the file of certificates itself (endpoint/libcurl.c).
        with_configure curl --with-mbedtls --without-ca-bundle --without-ca-path --enable-http --disable-ftp \
            --disable-file --disable-ldap --disable-ldaps --disable-rtsp --disable-dict --disable-telnet \
            --disable-tftp --disable-pop3 --disable-imap --disable-smb --disable-smtp --disable-gopher --disable-mqtt \
            --disable-manual --disable-netrc --disable-ntlm --disable-ntlm-wb --disable-unix-sockets --disable-alt-svc --disable-hsts \
            --enable-threaded-resolver --without-zlib --without-brotli --without-zstd --without-libpsl \
            --without-libidn2 --without-nghttp2 --without-librtmp --without-libssh2 --without-gssapi
        ;;
    libmicrohttpd)
        with_configure libmicrohttpd --disable-https --disable-doc --disable-examples --disable-curl --disable-tools
        ;;
    esac
}

mkdir -p "$directory/licences"
if [ -n "$foreign" ]; then
    # libgcc and the C library are the cross compiler's.
    unpack_foreign libjansson-dev libpcre2-dev libutf8proc-dev libsodium-dev libedit-dev libbsd-dev libmd-dev \
        libncurses-dev libseccomp-dev libmbedtls-dev
fi
for name in $names; do
    [ -e "$directory/licences/$name.txt" ] && continue
    unpack_source "$name"
    build "$name"
    cp "$directory/source/$name/debian/copyright" "$directory/licences/$name.txt"
done
