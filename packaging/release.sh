# SPDX-License-Identifier: MIT
# Facts that every package shares. Scripts in packaging/ read this file after setting `root`, the folder of the source.
# The version has one place, include/whit/base.h; so has the changelog, packaging/changelog, whose newest entry must
# name that version, and the number in the library's soname, CMakeLists.txt.
: "${root:?}"
umask 022
export LC_ALL=C

version=$(sed -n 's/^#define WHIT_VERSION_\(MAJOR\|MINOR\|PATCH\) *\([0-9]*\).*/\2/p' "$root/include/whit/base.h" | paste -sd .)
soversion=$(sed -n 's/.*SOVERSION \([0-9]*\)).*/\1/p' "$root/CMakeLists.txt")
changed=$(sed -n '1s/^whit (\(.*\)) .*/\1/p' "$root/packaging/changelog")
maintainer=$(sed -n 's/^ -- \(.*>\)  .*/\1/p' "$root/packaging/changelog" | head -n 1)
summary=$(sed -n '1s/^summary: //p' "$root/packaging/description")

[ "$version" = "$changed" ] || {
    echo "packaging: include/whit/base.h has version $version, but the newest entry of packaging/changelog $changed" >&2
    exit 1
}

# Every time in a package is that of the commit, or of the changelog where there is no repository: two builds of the same
# commit have the same bytes.
if [ -z "${SOURCE_DATE_EPOCH:-}" ]; then
    SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct 2>/dev/null) ||
        SOURCE_DATE_EPOCH=$(date -d "$(sed -n 's/^ -- .*>  //p' "$root/packaging/changelog" | head -n 1)" +%s)
fi
export SOURCE_DATE_EPOCH

# Gives every file below FOLDER the time of the commit.
set_times() { # FOLDER
    find "$1" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
}

# Puts the service below STAGE: its unit, its user and its settings. A user of its own owns the cache, so that converted
# models are found again after an update.
add_service() { # STAGE
    mkdir -p "$1/usr/lib/systemd/system" "$1/etc/whit" "$1/usr/lib/sysusers.d"
    sed -e 's|^ExecStart=/usr/local/|ExecStart=/usr/|' -e 's|^DynamicUser=yes|User=whit\nGroup=whit|' \
        -e '1,/^\[Unit\]/{/^#/d}' "$root/deploy/whit.service" >"$1/usr/lib/systemd/system/whit.service"
    cp "$root/packaging/serve.env" "$1/etc/whit/serve.env"
    cp "$root/packaging/whit.sysusers" "$1/usr/lib/sysusers.d/whit.conf"
}

# Installs BUILD below STAGE with the prefix /usr, stripped, man pages compressed, without what only a copy of the
# source needs.
stage_files() { # BUILD STAGE
    rm -rf "$2"
    DESTDIR=$2 cmake --install "$1" --prefix /usr >/dev/null
    rm "$2/usr/share/doc/whit/LICENSE"
    strip --strip-unneeded --remove-section=.comment --remove-section=.note "$2/usr/bin/whit"
    find "$2/usr/lib" -name 'libwhit.so.*.*' -exec strip --strip-unneeded --remove-section=.comment {} +
    find "$2/usr/lib" -name 'libwhit.a' -exec strip --strip-debug --enable-deterministic-archives {} +
    gzip -9n "$2"/usr/share/man/man1/*
    add_service "$2"
}

# Installs the archive that packaging/archive has made below STAGE with the prefix /usr, and sets `architecture` to the
# processor's name in the archive's.
stage_archive() { # ARCHIVE STAGE
    architecture=${1##*-linux-}
    architecture=${architecture%.tar.gz}
    rm -rf "$2" "$2.from"
    mkdir -p "$2.from" "$2/usr/bin" "$2/usr/share/man" "$2/usr/share/bash-completion/completions" \
        "$2/usr/share/zsh/site-functions" "$2/usr/share/fish/vendor_completions.d" "$2/usr/share/doc/whit"
    tar -C "$2.from" --strip-components=1 -xzf "$1"
    mv "$2.from/whit" "$2/usr/bin/whit"
    mv "$2.from/man/man1" "$2/usr/share/man/man1"
    gzip -9n "$2"/usr/share/man/man1/*
    mv "$2.from/completions/bash/whit" "$2/usr/share/bash-completion/completions/whit"
    mv "$2.from/completions/zsh/_whit" "$2/usr/share/zsh/site-functions/_whit"
    mv "$2.from/completions/fish/whit.fish" "$2/usr/share/fish/vendor_completions.d/whit.fish"
    rm -r "$2.from/completions" "$2.from/man"
    mv "$2.from"/* "$2/usr/share/doc/whit/"
    rmdir "$2.from"
    add_service "$2"
}
