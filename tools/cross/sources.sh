# SPDX-License-Identifier: MIT
# Functions for scripts that build libraries from Debian's source packages; the caller sets `directory` (absolute)
# and `checksums`, lines of "SHA-256  FILE.dsc". Sources lie in $directory/source. With `foreign`, an architecture of
# Debian's, its binary packages can be had, too.

# Makes a folder of settings and lists for apt-get, so that the machine's own are neither needed nor changed.
prepare_apt() {
    [ -e "$directory/source/apt.conf" ] && return
    mkdir -p "$directory/source/lists/partial" "$directory/source/cache/archives/partial" "$directory/source/empty"
    : >"$directory/source/status" # what is installed here must not choose the versions
    archive="[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm main"
    echo "deb-src $archive" >"$directory/source/sources.list"
    if [ -n "${foreign:-}" ]; then echo "deb $archive" >>"$directory/source/sources.list"; fi
    cat >"$directory/source/apt.conf.new" <<END
Dir::Etc::sourcelist "$directory/source/sources.list";
Dir::Etc::sourceparts "$directory/source/empty";
Dir::State::lists "$directory/source/lists";
Dir::State::status "$directory/source/status";
Dir::Cache "$directory/source/cache";
APT::Sandbox::User "root";
${foreign:+APT::Architectures { "$foreign"; \};}
END
    APT_CONFIG=$directory/source/apt.conf.new apt-get -q update
    mv "$directory/source/apt.conf.new" "$directory/source/apt.conf"
}

# Unpacks the source package NAME, with Debian's patches, as $directory/source/NAME. Its .dsc is checked against
# `checksums`, and dpkg-source checks the archives against the .dsc.
unpack_source() { # NAME
    [ -d "$directory/source/$1" ] && return
    prepare_apt
    line=$(echo "$checksums" | grep "  $1_")
    description=${line##* }
    version=${description#"$1"_}
    (
        cd "$directory/source"
        APT_CONFIG=$directory/source/apt.conf apt-get -q source --download-only "$1=${version%.dsc}" >apt.log 2>&1 || {
            cat apt.log >&2
            exit 1
        }
        echo "$line" | sha256sum -c --quiet
        rm -rf "$1.new"
        dpkg-source --no-check -x "$description" "$1.new" >/dev/null
        mv "$1.new" "$1"
    )
}

# Builds an unpacked source with CMake and the toolchain file `toolchain`, and installs it in $directory.
with_cmake() { # NAME OPTION...
    name=$1
    shift
    cmake -S "$directory/source/$name" -B "$directory/source/$name.build" \
        -DCMAKE_TOOLCHAIN_FILE="$toolchain" -DCMAKE_BUILD_TYPE=Release \
        -DCMAKE_INSTALL_PREFIX="$directory" -DCMAKE_INSTALL_LIBDIR=lib -DBUILD_SHARED_LIBS=OFF "$@" >/dev/null
    cmake --build "$directory/source/$name.build" -j "$jobs" >/dev/null
    cmake --install "$directory/source/$name.build" >/dev/null
}

# Unpacks Debian's packages of the architecture `foreign` below $directory/packages, and has their .pc files say so: the
# machine itself stays as it is.
unpack_foreign() { # PACKAGE...
    [ -e "$directory/packages/whole" ] && return
    prepare_apt
    rm -rf "$directory/packages"
    mkdir -p "$directory/packages/archives"
    (
        cd "$directory/packages/archives"
        APT_CONFIG=$directory/source/apt.conf apt-get -q download $(printf "%s:$foreign " "$@") >../apt.log 2>&1 || {
            cat ../apt.log >&2
            exit 1
        }
        for file in *.deb; do dpkg-deb -x "$file" ..; done
    )
    find "$directory/packages" -name '*.pc' -type f -exec sed -i "s|/usr|$directory/packages/usr|g" {} +
    touch "$directory/packages/whole"
}
