# SPDX-License-Identifier: MIT
# The archive of the program and the page about installing: its lines for any Linux run as they stand there.
set -eu
rm -rf first second user
export SOURCE_DATE_EPOCH=1700000000
"$SOURCE/packaging/archive" "$BUILD" first >list
"$SOURCE/packaging/archive" "$BUILD" second >/dev/null
diff -r first second || { echo "two archives differ"; exit 1; }
archive=$(cat list)
tar tzf "$archive" >files
for path in whit LICENSE README.md man/man1/whit.1 man/man1/whit-serve.1 completions/bash/whit completions/zsh/_whit \
    completions/fish/whit.fish docs/use/install.md; do
    grep -q "^whit-[0-9.]*-linux-[a-z0-9_]*/$path$" files || { echo "the archive lacks $path"; exit 1; }
done
[ "$(tar tvzf "$archive" | awk '{print $2, $4, $5}' | sort -u)" = "0/0 2023-11-14 22:13" ] || {
    echo "the archive has owners or times of this machine"
    exit 1
}

case $archive in *-x86_64.tar.gz) ;; *) echo "skipped: the page's lines are for x86_64"; exit 77 ;; esac
mkdir user
cp "$archive" user/
(cd user && sha256sum -- *.tar.gz >SHA256SUMS)
awk '/^```sh/ { on = 1; next } /^```/ { if (on) exit } on' "$SOURCE/docs/use/install.md" >lines
grep -q 'whit run' lines || { echo "docs/use/install.md: no first lines"; exit 1; }
(cd user && XDG_CACHE_HOME=$PWD/cache bash -eu ../lines >../tale </dev/null)
[ "$(wc -w <tale)" -gt 5 ] || { cat tale; exit 1; }
echo broken >>user/*.tar.gz
if (cd user && bash -eu ../lines >/dev/null 2>&1 </dev/null); then echo "a damaged download is unpacked"; exit 1; fi

# The version stands in one place.
version=$(sed -n '1s/^whit (\(.*\)) .*/\1/p' "$SOURCE/packaging/changelog")
[ "whit $version" = "$("$WHIT" --version)" ] || { echo "packaging/changelog ends at $version"; exit 1; }
