# SPDX-License-Identifier: MIT
# Installs into a scratch folder, moves that, and builds the examples against it: with pkg-config
# and the shared and the static library, and with CMake's find_package.
set -eu
rm -rf staged moved user
cmake --install "$BUILD" --prefix "$PWD/staged" >install.log
mv staged moved
root=$PWD/moved
for file in bin/whit include/whit.h include/whit/base.h include/whit/generation.h share/man/man1/whit.1 share/man/man1/whit-run.1 \
    share/doc/whit/LICENSE share/doc/whit/README.md share/doc/whit/docs/use/json.md share/doc/whit/examples/chat.c \
    share/bash-completion/completions/whit share/zsh/site-functions/_whit \
    share/fish/vendor_completions.d/whit.fish; do
    [ -s "$root/$file" ] || { echo "not installed: $file"; exit 1; }
done
"$root/bin/whit" --version
# ---- the installed documents link to nothing that is absent
python3 - "$root/share/doc/whit" <<'END'
import pathlib, re, sys
root = pathlib.Path(sys.argv[1])
pages = [root / "README.md", *(root / "docs/use").glob("*.md")]
dead = [f"{page.name}: {link}" for page in pages for link in re.findall(r"\]\(([^)#\s]+)", page.read_text())
        if "://" not in link and not (page.parent / link).exists()]
if len(pages) < 20 or dead:
    sys.exit(f"{len(pages)} pages, links to nothing: {dead}")
END
bash -n "$root/share/bash-completion/completions/whit"

mkdir user
"$TINY" user/model.gguf
export XDG_CACHE_HOME=$PWD/user/cache
PKG_CONFIG_PATH=$(dirname "$(find "$root" -name whit.pc)")
library=$(dirname "$PKG_CONFIG_PATH")
export PKG_CONFIG_PATH
case $(pkg-config --cflags whit) in *-D*) echo "pkg-config gives others' flags: $(pkg-config --cflags whit)"; exit 1 ;; esac
# shellcheck disable=SC2046 # flags are a list
"$CC" "$SOURCE/examples/open.c" -o user/shared $(pkg-config --cflags --libs whit)
LD_LIBRARY_PATH=$library user/shared user/model.gguf
# shellcheck disable=SC2046
"$CC" "$SOURCE/examples/open.c" -o user/static $(pkg-config --cflags whit) "$library/libwhit.a" \
    $(pkg-config --static --libs whit | sed 's/-lwhit//')
user/static user/model.gguf

cmake -S "$SOURCE/examples" -B user/build -DCMAKE_PREFIX_PATH="$root" >cmake.log || { cat cmake.log; exit 1; }
cmake --build user/build >>cmake.log || { cat cmake.log; exit 1; }
user/build/open user/model.gguf

cat >user/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.22)
project(user C)
find_package(whit 0.1 REQUIRED)
add_executable(with_static main.c)
target_link_libraries(with_static PRIVATE whit::static)
END
cp "$SOURCE/examples/open.c" user/main.c
cmake -S user -B user/build2 -DCMAKE_PREFIX_PATH="$root" >cmake.log || { cat cmake.log; exit 1; }
cmake --build user/build2 >>cmake.log || { cat cmake.log; exit 1; }
user/build2/with_static user/model.gguf

# ---- what make install says where it may not write, and where the library is not found by itself
if [ "$(id -u)" != 0 ]; then
    mkdir -p shut
    chmod 500 shut
    "$SOURCE/tools/install" before "$PWD/shut/usr" 2>said && { echo "a folder that may not be written is taken"; exit 1; }
    grep -q 'sudo make install.*PREFIX=\$HOME/.local' said || { cat said; exit 1; }
    chmod 700 shut
fi
"$SOURCE/tools/install" before "$PWD/new/usr"
DESTDIR=$PWD/new "$SOURCE/tools/install" before /usr
mkdir -p elsewhere/build
echo "$PWD/elsewhere/lib/libwhit.so.0" >elsewhere/build/install_manifest.txt
(cd elsewhere && "$SOURCE/tools/install" after "$PWD") 2>said
grep -q "rpath,$PWD/elsewhere/lib" said && grep -q "elsewhere/bin into PATH" said || { cat said; exit 1; }

# ---- make uninstall takes away what is listed, and nothing else
if [ "$BUILD" = "$SOURCE/build" ]; then
    rm -rf dest
    mkdir -p dest/usr/local/bin
    : >dest/usr/local/bin/other
    DESTDIR=$PWD/dest cmake --install "$BUILD" --prefix /usr/local >>install.log
    [ -x dest/usr/local/bin/whit ] || { echo "nothing under DESTDIR"; exit 1; }
    make -s -C "$SOURCE" uninstall DESTDIR="$PWD/dest"
    [ "$(find dest ! -type d)" = dest/usr/local/bin/other ] || { find dest ! -type d; echo "make uninstall left these"; exit 1; }
fi
