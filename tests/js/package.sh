# SPDX-License-Identifier: MIT
# The package for JavaScript without its module: syntax, types beside classes, and streams over a pretended worker.
set -u
command -v node >/dev/null || {
    echo "[ SKIPPED ] no node"
    exit 77
}
rm -rf place
mkdir place
cp "$SOURCE"/bindings/js/*.mjs "$SOURCE/bindings/js/package.json" "$SOURCE/bindings/js/index.d.ts" place
python3 "$SOURCE/bindings/js/make_npm.py" --abi place/abi.mjs || exit 1
for file in place/*.mjs; do node --check "$file" || exit 1; done
exec node "$SOURCE/tests/js/package.mjs" "$PWD/place"
