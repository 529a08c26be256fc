#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds the libraries of the static program that Debian has no suitable archive (.a) of: its libcurl needs libraries
# without one, its libmicrohttpd a TLS library that the server never uses. Both come from Debian's source packages,
# pinned below; all others are Debian's own archives, for another processor unpacked below DIRECTORY. A library that is
# there already is not built again.
#
#   tools/cross/static.sh DIRECTORY [TRIPLET]     x86_64-linux-gnu, aarch64-linux-gnu; default: this machine's
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
'
foreign=''
pkg_config=/usr/lib/$triplet/pkgconfig
if [ "$triplet" != "$native" ]; then
    case $triplet in
    aarch64-linux-gnu) foreign=arm64 ;;
    *)
        echo "tools/cross/static.sh: no packages for $triplet" >&2
        exit 1
        ;;
    esac
    pkg_config=$directory/packages/usr/lib/$triplet/pkgconfig
fi
. "$here/sources.sh"

with_configure() { # NAME OPTION...
    name=$1
    shift
    rm -rf "$directory/source/$name.build"
    mkdir -p "$directory/source/$name.build"
    (
        cd "$directory/source/$name.build"
        CC=$triplet-gcc CFLAGS="-O2 -ffunction-sections -fdata-sections -ffile-prefix-map=$directory=." \
            CPPFLAGS="${foreign:+-I$directory/packages/usr/include}" \
            LDFLAGS="${foreign:+-L$directory/packages/usr/lib/$triplet}" \
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
for name in curl libmicrohttpd; do
    [ -e "$directory/licences/$name.txt" ] && continue
    unpack_source "$name"
    build "$name"
    cp "$directory/source/$name/debian/copyright" "$directory/licences/$name.txt"
done
