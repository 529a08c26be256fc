/* SPDX-License-Identifier: MIT
 * Reads any bytes as a terminal's input: decoded to keys, typed in an editor with C source, and drawn. */
#include "editor/editor.h"
#include "editor/state.h"

static const char text[] =
    "#include <stdio.h>\n\nint main(void)\n{\n\tputs(\"caf\xC3\xA9 \xE6\xBC\xA2\xFF\"); /* here */\r\n"
    "    return f(1, [2], {3});\n}\n";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    whit_keys keys = {0};
    whit_screen screen = {0};
    whit_editor *editor;
    whit_error error;
    bool redraw;
    /* file finder and project search walk the project's folder, so it must be empty */
    whit_editor_options options = {
        .config = size % 2 ? "keys = vi\n" : "", .project = "/proc/self/attr/none", .read_only = false};
    if (size > 2000 || whit_editor_open(&options, &editor, &error) != WHIT_OK) return 0;
    if (!whit_screen_resize(&screen, 40, 10) || !whit_keys_feed(&keys, data, size) ||
        whit_editor_add_text(editor, "fuzz.c", text, sizeof text - 1, &error) != WHIT_OK)
        __builtin_trap();
    whit_key key;
    for (int n = 0; whit_keys_next(&keys, true, &key); n++) {
        /* keys that save or open would touch files */
        bool files = (key.mods == 4 && strchr("so", (int)key.code)) || (key.mods == 2 && key.code == 's');
        if (key.code && files) continue;
        if (key.code == WHIT_KEY_ENTER &&
            (editor->prompt.kind == ED_PROMPT_SAVE_AS ||
             (editor->prompt.kind == ED_PROMPT_VI && strpbrk(editor->prompt.text, "wxZ"))))
            continue;
        bool paste = key.code == WHIT_KEY_PASTE;
        whit_editor_key(editor, key, paste ? (const char *)keys.paste.data : NULL, paste ? keys.paste.size_bytes : 0);
        if (n % 4 == 0) whit_editor_draw(editor, &screen);
        if (n % 16 == 0) whit_editor_idle(editor, &redraw);
    }
    whit_editor_draw(editor, &screen);
    whit_editor_close(editor);
    whit_screen_free(&screen);
    whit_keys_free(&keys);
    return 0;
}
