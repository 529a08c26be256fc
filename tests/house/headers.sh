# SPDX-License-Identifier: MIT
# Every header compiles alone; the public one also as C++ and as strict C11, and it stays short.
set -u
failed=0
flags="-fsyntax-only -Wall -Wextra -Wno-unused-function -Wno-pragma-once-outside-header -I$SOURCE/include -I$SOURCE/src -I$BUILD/generated"
flags="$flags $(pkg-config --cflags jansson libpcre2-8 libutf8proc libsodium 2>/dev/null)"

while read -r header; do
    # A header of one ISA may need its flags; it says so itself: "compile with: -mavx2 -mfma".
    own=$(sed -n 's/.*compile with: \([-a-z0-9_=+. ]*\).*/\1/p' "$header" | head -n 1)
    # shellcheck disable=SC2086 # flags are a list
    "$CC" -std=gnu11 -D_GNU_SOURCE -Werror $flags $own -x c "$header" || {
        echo "$header does not compile alone"
        failed=1
    }
done < <(find "$SOURCE/src" -name '*.h' | sort)

public=$SOURCE/include/whit.h
# shellcheck disable=SC2086
"$CC" -std=c11 -pedantic -Werror $flags -x c "$public" || failed=1
if command -v c++ >/dev/null; then
    c++ -std=c++17 -pedantic -Wall -Wextra -Werror -fsyntax-only -x c++ "$public" || failed=1
fi
lines=$(wc -l <"$public")
if [ "$lines" -gt 300 ]; then
    echo "include/whit.h has $lines lines; the limit is 300"
    failed=1
fi
exit $failed
