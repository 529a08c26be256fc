# SPDX-License-Identifier: MIT
# The picture of docs/use/editor.md is what the editor shows, and keeps its columns in every viewer: blanks are
# U+00A0, none stands at an end. usage: picture.sh EDITOR_SCENES
picture=$SOURCE/docs/pictures/editor.svg
if grep -E '<text[^>]*>[^<]* [^<]*</text>' "$picture"; then
    echo "docs/pictures/editor.svg: a blank that viewers may take away"
    exit 1
fi
"$1" "$WHIT" "$SOURCE/tests/editor/picture.scenes" --svg picture picture.svg >/dev/null || exit 77
cmp picture.svg "$picture" || {
    echo "docs/pictures/editor.svg is another picture: editor_scenes WHIT picture.scenes --svg picture docs/pictures/editor.svg"
    exit 1
}
