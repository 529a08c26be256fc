# SPDX-License-Identifier: MIT
# The parts of the page that need no browser.
command -v node >/dev/null || { echo "skipped: no node"; exit 77; }
exec node "$SOURCE/tests/server/page_parts.js" "$SOURCE/src/apps/server/page"
