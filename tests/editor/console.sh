#!/bin/sh
# SPDX-License-Identifier: MIT
# Plays console.play to the program for Windows in a console of wine.
#
#   console.sh WINE WHIT.EXE EDITOR_SCENES
set -eu
[ -x "$3" ] || {
    echo "[ SKIPPED ] no $3: it needs libvterm and 'make build' of this machine's tests"
    exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Keys that are typed before wine takes the terminal must not be shown by it.
printf '#!/bin/sh\nstty raw -echo\nexec "%s" "%s" "$@"\n' "$1" "$2" >"$work/whit"
chmod +x "$work/whit"
"$3" "$work/whit" "$(dirname "$0")/console.play"
