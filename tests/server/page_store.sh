# SPDX-License-Identifier: MIT
# What the page of whit serve keeps, in a browser.
. "$SOURCE/tests/server/lib.sh"
exec python3 "$SOURCE/tests/server/page_store.py"
