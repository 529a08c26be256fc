# SPDX-License-Identifier: MIT
# The page of whit serve, in a browser.
. "$SOURCE/tests/server/lib.sh"
exec python3 "$SOURCE/tests/server/page.py"
