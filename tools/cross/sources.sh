# SPDX-License-Identifier: MIT
# Functions for scripts that build libraries from Debian's source packages; the caller sets `directory` (absolute)
# and `checksums`, lines of "SHA-256  FILE.dsc". Sources lie in $directory/source.

# Makes a folder of settings and lists for apt-get, so that the machine's own are neither needed nor changed.
prepare_apt() {
    [ -e "$directory/source/apt.conf" ] && return
    mkdir -p "$directory/source/lists/partial" "$directory/source/cache/archives/partial" "$directory/source/empty"
    echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm main" \
        >"$directory/source/sources.list"
    cat >"$directory/source/apt.conf.new" <<END
Dir::Etc::sourcelist "$directory/source/sources.list";
Dir::Etc::sourceparts "$directory/source/empty";
Dir::State::lists "$directory/source/lists";
Dir::Cache "$directory/source/cache";
APT::Sandbox::User "root";
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
