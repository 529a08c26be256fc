# SPDX-License-Identifier: MIT
# The container image, packages of an archive and the recipes of other package managers, made of a stand-in for the program.
set -eu
rm -rf release recipes tree made image
export SOURCE_DATE_EPOCH=1700000000
version=$(sed -n '1s/^whit (\(.*\)) .*/\1/p' "$SOURCE/packaging/changelog")

# ---- container image: every digest and size is right, one file, not root, the same bytes again
mkdir made
printf '#!/bin/sh\necho whit\n' >made/whit
for image in first second; do "$SOURCE/packaging/oci" made/whit amd64 "$version" made/$image.tar >/dev/null; done
cmp made/first.tar made/second.tar
mkdir image
tar -C image -xf made/first.tar
python3 - <<'END'
import gzip, hashlib, io, json, tarfile
def blob(entry):
    data = open("image/blobs/" + entry["digest"].replace(":", "/"), "rb").read()
    assert len(data) == entry["size"] and "sha256:" + hashlib.sha256(data).hexdigest() == entry["digest"], entry
    return data
assert json.load(open("image/oci-layout"))["imageLayoutVersion"] == "1.0.0"
index = json.load(open("image/index.json"))
manifest = json.loads(blob(index["manifests"][0]))
config = json.loads(blob(manifest["config"]))
layer = gzip.decompress(blob(manifest["layers"][0]))
assert config["rootfs"]["diff_ids"] == ["sha256:" + hashlib.sha256(layer).hexdigest()]
assert config["config"]["User"] == "65534:65534" and config["config"]["Entrypoint"] == ["/whit"]
assert config["architecture"] == index["manifests"][0]["platform"]["architecture"] == "amd64"
members = {m.name: m for m in tarfile.open(fileobj=io.BytesIO(layer))}
assert [name for name, m in members.items() if m.isfile()] == ["whit"] and members["whit"].mode == 0o755
END

# ---- recipes: no place is left open, parts for absent files are left out
mkdir release
printf 'a\n' >"release/whit-$version-linux-x86_64.tar.gz"
(cd release && sha256sum -- * >SHA256SUMS)
sum=$(cut -d ' ' -f 1 release/SHA256SUMS)
"$SOURCE/packaging/fill-recipes" release https://files.example/whit https://whit.example recipes >list
[ "$(sed 's|.*/||' list | paste -sd ' ')" = "PKGBUILD package.nix whit.rb" ] || { cat list; exit 1; }
for file in PKGBUILD package.nix whit.rb; do
    grep -q "$sum" recipes/$file || { echo "$file lacks the sum"; exit 1; }
    grep -q "https://files.example/whit/whit-$version-linux-x86_64.tar.gz" recipes/$file || { cat recipes/$file; exit 1; }
    if grep -n '@[A-Z0-9]*[@:]' recipes/$file; then echo "$file has open places"; exit 1; fi
    if grep -n aarch64 recipes/$file; then echo "$file offers a file that is not there"; exit 1; fi
done
bash -n recipes/PKGBUILD
bash -euc '. ./recipes/PKGBUILD; [ "$pkgver" = "'"$version"'" ] && [ ${#source_x86_64[@]} = ${#sha256sums_x86_64[@]} ]'
if command -v ruby >/dev/null; then ruby -c recipes/whit.rb >/dev/null; fi
if command -v nix-instantiate >/dev/null; then nix-instantiate --parse recipes/package.nix >/dev/null; fi
printf 'b\n' >"release/whit-$version-linux-aarch64.tar.gz"
printf 'c\n' >"release/whit-$version-windows-x64-setup.exe"
(cd release && sha256sum -- whit-* >SHA256SUMS)
"$SOURCE/packaging/fill-recipes" release https://files.example/whit https://whit.example recipes >list
[ "$(wc -l <list)" = 4 ] || { cat list; exit 1; }
for file in PKGBUILD package.nix whit.rb; do grep -q aarch64 recipes/$file || { echo "$file lacks Arm"; exit 1; }; done
python3 - <<'END'
fields = dict(line.strip(" -\n").split(": ", 1) for line in open("recipes/winget.yaml") if ": " in line and line[0] != "#")
for name in ("PackageIdentifier", "PackageVersion", "PackageLocale", "Publisher", "PackageName", "License",
             "ShortDescription", "Architecture", "InstallerType", "InstallerUrl", "ManifestType", "ManifestVersion"):
    assert fields[name], name
assert len(fields["ShortDescription"]) <= 256 and len(fields["InstallerSha256"]) == 64
END
if "$SOURCE/packaging/fill-recipes" release 'https://x/"$(id)' https://whit.example recipes 2>said; then exit 1; fi
if "$SOURCE/packaging/fill-recipes" release http://x/ https://whit.example recipes 2>said; then exit 1; fi

# ---- packages of an archive
name=whit-$version-linux-x86_64
mkdir -p tree/$name/man/man1 tree/$name/completions/bash tree/$name/completions/zsh tree/$name/completions/fish tree/$name/docs/use
cp made/whit tree/$name/whit
cp "$SOURCE/LICENSE" "$SOURCE/README.md" tree/$name/
cp "$SOURCE/docs/use/install.md" tree/$name/docs/use/
echo .TH >tree/$name/man/man1/whit.1
for file in bash/whit zsh/_whit fish/whit.fish; do echo >"tree/$name/completions/$file"; done
tar -C tree -czf made/$name.tar.gz $name

# ---- Debian's, of the static program for another processor
if command -v dpkg-deb >/dev/null; then
    mv tree/$name tree/whit-$version-linux-riscv64
    tar -C tree -czf made/whit-$version-linux-riscv64.tar.gz whit-$version-linux-riscv64
    for folder in first second; do
        COMPRESSION=none "$SOURCE/packaging/deb/make" made/whit-$version-linux-riscv64.tar.gz made/$folder >list
        [ "$(cat list)" = "$PWD/made/$folder/whit_${version}_riscv64.deb" ] || { echo "made $(cat list)"; exit 1; }
    done
    cmp made/first/*_riscv64.deb made/second/*_riscv64.deb
    [ "$(dpkg-deb -f made/first/*_riscv64.deb Architecture)" = riscv64 ]
    [ -z "$(dpkg-deb -f made/first/*_riscv64.deb Depends)" ]
    dpkg-deb -c made/first/*_riscv64.deb >files
    for path in /usr/bin/whit /etc/whit/serve.env /usr/lib/systemd/system/whit.service /usr/share/man/man1/whit.1.gz \
        /usr/share/zsh/vendor-completions/_whit /usr/share/doc/whit/copyright; do
        grep -q " \.$path\$" files || { echo "the Debian package lacks $path"; exit 1; }
    done
fi

# ---- RPM
command -v rpmbuild >/dev/null || { echo "no rpmbuild: the RPM package is not looked at"; exit 0; }
for folder in first second; do "$SOURCE/packaging/rpm/make" made/$name.tar.gz made/$folder >/dev/null; done
cmp made/first/*.rpm made/second/*.rpm
# An archive for another processor makes a package for that processor.
if [ -f made/whit-$version-linux-riscv64.tar.gz ]; then
    "$SOURCE/packaging/rpm/make" made/whit-$version-linux-riscv64.tar.gz made/third >/dev/null
    [ "$(rpm -qp --qf '%{ARCH}' made/third/*.rpm)" = riscv64 ]
fi
rpm -qpl made/first/*.rpm >files
for path in /usr/bin/whit /etc/whit/serve.env /usr/lib/systemd/system/whit.service /usr/share/man/man1/whit.1.gz \
    /usr/share/bash-completion/completions/whit /usr/share/doc/whit/LICENSE; do
    grep -qx "$path" files || { echo "the RPM package lacks $path"; exit 1; }
done
rpm -qp --conflicts --requires made/first/*.rpm | grep -E '\.so' && { echo "the RPM package needs libraries"; exit 1; }
[ "$(rpm -qp --qf '%{VERSION}' made/first/*.rpm)" = "$version" ]
# Installed and removed in an empty root, it leaves none of its own files and folders there.
[ "$(id -u)" = 0 ] || { echo "only root changes the root folder: the RPM package is not installed"; exit 0; }
rm -rf root
mkdir root
in_root() { rpm --root "$PWD/root" --noscripts "$@" 2>rpm.log || { cat rpm.log; exit 1; }; }
in_root --nodeps -i made/first/*.rpm
[ -s root/usr/bin/whit ] && [ -s root/usr/share/doc/whit/docs/use/install.md ]
in_root -e whit
left=$(find root -path '*whit*')
[ -z "$left" ] || { echo "removed, the RPM package leaves $left"; exit 1; }
