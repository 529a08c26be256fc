# SPDX-License-Identifier: MIT
# Every header compiles alone; the public ones also as C++ and as strict C11, and they stay short.
set -u
failed=0
flags="-fsyntax-only -Wall -Wextra -Wno-unused-function -Wno-pragma-once-outside-header -I$SOURCE/include -I$BUILD/generated"
for root in "" /engine /text /files /lab /lang /apps; do flags="$flags -I$SOURCE/src$root"; done
flags="$flags $(pkg-config --cflags jansson libpcre2-8 libutf8proc libsodium 2>/dev/null)"

# A header that some source file includes before anything else is compiled alone by the build.
first=$(find "$SOURCE/src" -name '*.c' -exec awk 'FNR == 1 { seen = 0 } /^#[ \t]*include/ && !seen++ { print $2 }' {} + |
    sort -u | tr -d '"<>')
while read -r header; do
    name=${header#"$SOURCE"/src/} # as it is included: below src, or below a wing
    case "
$first
" in *"
$name
"* | *"
${name#*/}
"*) continue ;; esac
    # Headers of Windows are compiled by its build.
    case $header in */base/windows/*) continue ;; esac
    # Built where the library's header is.
    optional=
    case $header in
    */endpoint/libcurl.h) optional=curl/curl.h ;;
    */code/libgit2.h) optional=git2.h ;;
    esac
    [ -z "$optional" ] || echo "#include <$optional>" | "$CC" -E -x c - >/dev/null 2>&1 || continue
    # A header of one ISA may need its flags; it says so itself: "compile with: -mavx2 -mfma".
    own=$(sed -n 's/.*compile with: \([-a-z0-9_=+. ]*\).*/\1/p' "$header" | head -n 1)
    # shellcheck disable=SC2086 # flags are a list
    "$CC" -std=gnu11 -D_GNU_SOURCE -Werror $flags $own -x c "$header" || {
        echo "$header does not compile alone"
        failed=1
    }
done < <(find "$SOURCE/src" -name '*.h' | sort)

while read -r public; do
    # shellcheck disable=SC2086
    "$CC" -std=c11 -pedantic -Werror $flags -x c "$public" || failed=1
    if command -v c++ >/dev/null; then
        c++ -std=c++17 -pedantic -Wall -Wextra -Werror -Wno-pragma-once-outside-header -fsyntax-only -x c++ "$public" ||
            failed=1
    fi
    lines=$(wc -l <"$public")
    if [ "$lines" -ge 200 ]; then
        echo "$public has $lines lines; a public header has under 200"
        failed=1
    fi
    case $public in
    */whit.h | */whit/cache.h | */whit/steps.h | */whit/experts.h | */whit/facts.h | */whit/names.h) ;; # for few programs, which include them themselves
    *) grep -q "\"whit/${public##*/}\"" "$SOURCE/include/whit.h" || {
        echo "whit.h does not include $public"
        failed=1
    } ;;
    esac
done < <(find "$SOURCE/include" -name '*.h' | sort)
exit $failed
