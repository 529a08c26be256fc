# SPDX-License-Identifier: MIT
# How much each room knows of the operating system: system headers, and conditions on the system, outside base.
# systems.txt says how much is allowed, and only falls. A room that is not in the list may have nothing.
set -u
cd "$SOURCE" || exit 1
failed=0
list=tests/house/systems.txt
headers='arpa/|bcrypt|dirent|dlfcn|fcntl|fnmatch|ftw|glob|langinfo|libgen|linux/|malloc|net/|netdb|netinet/|poll|process|psapi|pthread|pwd|sched|semaphore|shellapi|signal|spawn|sys/|termios|unistd|windows|winioctl|winsock2|ws2tcpip'
systems='_WIN32|_WIN64|__MINGW|_MSC_VER|__linux__|__APPLE__|__unix__|__ANDROID__|__GLIBC__|__FreeBSD__|__EMSCRIPTEN__'

# ROOM HEADERS CONDITIONS of a tree, for rooms that have any.
count_rooms() {
    grep -rnE "^[[:space:]]*#[[:space:]]*(include <($headers)|(if|ifdef|ifndef|elif).*($systems))" src \
        --include='*.[ch]' --include='*.inc' | awk -F: '
        {
            split($1, part, "/")
            room = part[2] == "lang" || part[2] == "cli" || part[2] == "base" ? part[2] : part[3]
            if (room == "base") next
            seen[room] = 1
            if ($3 ~ /include/) headers[room]++
            else conditions[room]++
        }
        END { for (room in seen) print room, headers[room] + 0, conditions[room] + 0 }' | sort
}
count_rooms >"${TMPDIR:-/tmp}/systems.$$"
trap 'rm -f "${TMPDIR:-/tmp}/systems.$$"' EXIT

while read -r room headers_now conditions_now; do
    line=$(grep -E "^$room " "$list" || echo "$room 0 0")
    # shellcheck disable=SC2086 # a list of three
    set -- $line
    if [ "$headers_now" -gt "$2" ] || [ "$conditions_now" -gt "$3" ]; then
        echo "$room: $headers_now system headers and $conditions_now conditions on the system; $2 and $3 are allowed:"
        echo "    what differs between systems belongs in src/base (docs/dev/porting.md)"
        failed=1
    fi
done <"${TMPDIR:-/tmp}/systems.$$"
# The count finds what it is there to find.
work=$(mktemp -d)
mkdir -p "$work/src/engine/kv" "$work/src/base"
printf '#include <unistd.h>\n#include <stdio.h>\n# ifdef _WIN32\n#include <sys/mman.h>\n#endif\n' >"$work/src/engine/kv/a.c"
printf '#include <unistd.h>\n' >"$work/src/base/a.c"
found=$(cd "$work" && count_rooms)
rm -rf "$work"
[ "$found" = "kv 2 1" ] || {
    echo "of a room with two system headers and one condition was found: $found"
    failed=1
}
exit $failed
