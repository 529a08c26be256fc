# SPDX-License-Identifier: MIT
# tools/deps says how to get what is missing on any system, and brings no tools of tests to those who only use whit.
set -u
failed=0
complain() {
    echo "FAILED: $*: $(cat said)"
    failed=1
}
rm -rf bin said calls
mkdir bin
for tool in sh sed grep cat head tail cut mktemp rm sleep env dirname kill; do ln -s "$(command -v $tool)" bin/$tool; done
printf '#!/bin/sh\necho 0\n' >bin/id
chmod +x bin/id
deps() {
    env -i PATH="$PWD/bin" TMPDIR="$PWD" sh "$SOURCE/tools/deps" "$@" >said 2>&1
}

# ---- a system without apt-get is not told to use it
deps check run && complain "nothing is missing"
grep -q 'no apt-get: please install by its own means' said && grep -q 'pkgconfig(jansson)' said || complain "no package manager"
grep -q 'apt-get install\|make deps' said && complain "apt-get where there is none"
deps install run && complain "installed by nothing"
grep -q 'apt-get install' said && complain "apt-get where there is none"
for manager in dnf zypper; do
    printf '#!/bin/sh\nexit 0\n' >bin/$manager
    chmod +x bin/$manager
    deps check run && complain "nothing is missing"
    grep -q "$manager install.* cmake .*'pkgconfig(jansson)'" said || complain "$manager"
    rm bin/$manager
done
# try MANAGER PATTERN...: its advice has every pattern
try() {
    manager=$1
    shift
    printf '#!/bin/sh\nexit 0\n' >bin/$manager
    chmod +x bin/$manager
    deps check run && complain "nothing is missing"
    for pattern in "$@"; do grep -q -- "$pattern" said || complain "$manager: no $pattern"; done
    grep -q 'apt-get\|pkgconfig(' said && complain "$manager is told of others"
    rm bin/$manager
}
try pacman 'pacman -S gcc .*cmake .*pkgconf jansson pcre2 libutf8proc libsodium$'
try apk 'apk add gcc musl-dev .*cmd:cmake .*pc:jansson .*pc:libpcre2-8'

# ---- apt-get: sizes and progress are said, each set has its packages
cat >bin/apt-get <<'END'
#!/bin/sh
echo "$@" >>calls
case "$*" in
*--assume-no*) echo "Need to get 123 MB/150 MB of archives." ;;
*install*) sleep 7 && echo "Unpacking libjansson-dev" ;;
esac
END
cat >bin/apt-cache <<'END'
#!/bin/sh
case "$1 $2" in
"depends clang") echo "  Depends: clang-19" ;;
"show libclang-rt-19-dev") exit "${NO_RT:-0}" ;;
"show libclang-common-19-dev") exit 0 ;;
*) exit 100 ;;
esac
END
chmod +x bin/apt-get bin/apt-cache
deps install use && complain "what is not there after apt-get was found"
grep -q '123 MB/150 MB to download' said && grep -q 'apt-get, 5 s' said || complain "nothing is said while apt-get works"
grep -q 'libmicrohttpd-dev' calls || complain "the optional packages: $(cat calls)"
grep -qE 'clang|cmocka|g\+\+|qemu|vterm' calls && complain "tools of tests: $(cat calls)"
sed -i 's/sleep 7/true/' bin/apt-get
: >calls
deps install all
grep -q 'clang libclang-rt-19-dev' calls || complain "clang's runtime: $(cat calls)"
: >calls
sed -i 's/\${NO_RT:-0}/100/' bin/apt-cache
deps install all
grep -q 'clang libclang-common-19-dev' calls || complain "clang's runtime in Ubuntu 22.04: $(cat calls)"
exit $failed
