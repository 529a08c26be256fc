# SPDX-License-Identifier: MIT
# The page of whit serve with several models, in a browser.
. "$SOURCE/tests/server/lib.sh"
tiny bare.gguf
exec python3 "$SOURCE/tests/server/page_models.py"
