# SPDX-License-Identifier: MIT
# The Debian packages: which file is in which, a man page with every option of every verb, equal bytes.
set -eu
for tool in dpkg-deb dpkg-shlibdeps; do
    command -v $tool >/dev/null || { echo "skipped: no $tool"; exit 77; }
done
rm -rf first second tree source
export SOURCE_DATE_EPOCH=1700000000 COMPRESSION=none
"$SOURCE/packaging/deb/make" "$BUILD" first >list
"$SOURCE/packaging/deb/make" "$BUILD" second >/dev/null
diff -r first second || { echo "two builds differ"; exit 1; }
[ "$(wc -l <list)" = 3 ] || { cat list; exit 1; }

mkdir tree
for package in whit libwhit0 libwhit-dev; do dpkg-deb -x first/${package}_*.deb tree/$package; done
# has PACKAGE PATTERN: one file of the package, at least, matches.
has() {
    find "tree/$1" -path "tree/$1/$2" -size +0 | grep -q . || { echo "$1 lacks $2"; exit 1; }
}
for path in usr/bin/whit etc/whit/serve.env usr/lib/systemd/system/whit.service usr/lib/sysusers.d/whit.conf \
    usr/share/man/man1/whit.1.gz usr/share/bash-completion/completions/whit usr/share/zsh/vendor-completions/_whit \
    usr/share/fish/vendor_completions.d/whit.fish usr/share/doc/whit/copyright usr/share/doc/whit/changelog.gz; do
    has whit $path
done
has libwhit0 'usr/lib/*libwhit.so.0.*'
for path in usr/include/whit.h 'usr/lib/*libwhit.a' 'usr/lib/*pkgconfig/whit.pc' 'usr/lib/*cmake/whit/whit-config.cmake'; do
    has libwhit-dev "$path"
done
others=$(cd tree && find . -type f ! -path './whit/usr/share/*' ! -path './libwhit-dev/usr/include/*' | grep -c .)
find tree -name '*.so*' -path '*/whit/*' | grep . && { echo "the program's package has a library"; exit 1; }
[ "$others" -lt 30 ] || { echo "$others files outside documents and headers"; exit 1; }
grep -q '^ExecStart=/usr/bin/whit serve$' tree/whit/usr/lib/systemd/system/whit.service
grep -q '^User=whit$' tree/whit/usr/lib/systemd/system/whit.service
grep -q '^u *whit ' tree/whit/usr/lib/sysusers.d/whit.conf

# Every verb has a page with all of its options.
for verb in $(tree/whit/usr/bin/whit help --list); do
    zcat "tree/whit/usr/share/man/man1/whit-$verb.1.gz" | sed 's/\\-/-/g' >page
    tree/whit/usr/bin/whit help "$verb" | grep -oE '^    -[^ ]*(, --?[a-z-]+)*' | tr -d ' ' | tr , '\n' | sort -u >options
    while read -r option; do
        grep -q -- "^.fB.*$option" page || { echo "the page of $verb lacks $option"; exit 1; }
    done <options
    if command -v man >/dev/null; then
        MANROFFSEQ='' MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 -Z page 2>&1 >/dev/null | grep . && { echo "man warns of $verb"; exit 1; }
    fi
done

# Relations: what is linked, what is opened by name, the library of the same version.
version=$("$WHIT" --version | cut -d ' ' -f 2)
for package in whit libwhit0 libwhit-dev; do
    [ "$(dpkg-deb -f first/${package}_*.deb Version)" = "$version" ] || { echo "$package: another version"; exit 1; }
done
dpkg-deb -f first/whit_*.deb Depends | grep -q 'libpcre2-8-0' || { echo "whit needs no libraries"; exit 1; }
[ "$(dpkg-deb -f first/libwhit-dev_*.deb Depends)" = "libwhit0 (= $version)" ] || { echo "libwhit-dev's library"; exit 1; }

# A changelog that lags behind the version stops every package.
mkdir -p source/include/whit
cp -r "$SOURCE/packaging" source/
cp "$SOURCE/CMakeLists.txt" source/
sed 's/\(WHIT_VERSION_PATCH *\)[0-9]*/\199/' "$SOURCE/include/whit/base.h" >source/include/whit/base.h
if source/packaging/deb/make "$BUILD" third 2>said; then echo "packages of a version without a changelog"; exit 1; fi
grep -q 'newest entry of packaging/changelog' said || { cat said; exit 1; }
