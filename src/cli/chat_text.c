/* SPDX-License-Identifier: MIT
 * Implements /copy and /edit, which pass texts between a chat and other programs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/plain.h"
#include "cli/chat.h"
#include "base/items.h"
#include "cli/external.h"
#include "cli/markup.h"

/* Maximum size of a copied text. The escape sequence for a longer text would exceed the limit of xterm and similar
 * terminals. */
enum { CLIPBOARD_BYTES_MAX = 74994 };

/* Returns the text of the last message that has this role and whose content is a string, or NULL. The text is part of
 * *message, which the caller releases. */
static const char *last_text(const cli_chat *chat, const char *role, json_t **message, size_t *n_bytes)
{
    *message = NULL;
    for (size_t i = whit_conversation_count(chat->talk.conversation); i-- > 0;) {
        json_t *found = cli_talk_message(&chat->talk, i);
        const char *is = json_string_value(json_object_get(found, "role"));
        const json_t *content = json_object_get(found, "content");
        if (is && !strcmp(is, role) && json_is_string(content)) {
            *message = found;
            *n_bytes = json_string_length(content);
            return json_string_value(content);
        }
        json_decref(found);
    }
    return NULL;
}

/* ---- /copy ------------------------------------------------------------------------------------------ */

static bool drop_piece(void *user, const char *text, size_t n_bytes, unsigned style, bool verbatim)
{
    (void)user, (void)text, (void)n_bytes, (void)style, (void)verbatim;
    return true;
}

/* Returns the last block of code in a text, without the lines that mark it, or NULL. A block that is not closed extends
 * to the end of the text. The parser of the terminal's view finds the blocks: a person copies code that was shown. */
static const char *last_block(const char *text, size_t n_bytes, size_t *n_block)
{
    cli_markup markup = cli_markup_begin(drop_piece, NULL);
    const char *block = NULL, *begin = NULL, *end = text + n_bytes;
    for (const char *line = text, *next; line < end; line = next) {
        const char *feed = memchr(line, '\n', (size_t)(end - line));
        next = feed ? feed + 1 : end;
        (void)cli_markup_add(&markup, line, (size_t)(next - line));
        if (!feed) (void)cli_markup_add(&markup, "\n", 1);
        const bool is_code = cli_markup_is_code(&markup);
        if (begin && !is_code) *n_block = (size_t)(line - begin);
        if (is_code && !begin) block = next;
        if (is_code != (begin != NULL)) begin = is_code ? next : NULL;
    }
    if (begin) *n_block = (size_t)(end - begin);
    return block;
}

/* Returns the escape sequence that sets the terminal's clipboard (OSC 52); it also works if the terminal is on another
 * machine. The caller frees it. */
static char *clipboard_sequence(const char *text, size_t n_bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *sequence = malloc(n_bytes / 3 * 4 + 32), *at = sequence;
    if (!sequence) return NULL;
    at += sprintf(at, "\x1b]52;c;");
    for (size_t i = 0; i < n_bytes; i += 3) {
        uint32_t three = 0;
        for (size_t k = 0; k < 3; k++) three = three << 8 | (i + k < n_bytes ? (uint8_t)text[i + k] : 0);
        for (size_t k = 0; k < 4; k++) *at++ = i + k > n_bytes ? '=' : digits[three >> (18 - 6 * k) & 63];
    }
    memcpy(at, "\a", 2);
    return sequence;
}

void cli_chat_copy(cli_chat *chat, char *what)
{
    json_t *message;
    size_t n;
    const bool is_code = !strcmp(what, "code");
    const char *text = last_text(chat, "assistant", &message, &n);
    char *plain = NULL;
    /* The copied text is as it was shown: control characters, on which a shell may act, are removed, and hidden
     * characters are marked. */
    if (text && (plain = malloc(WHIT_PLAIN_ROOM(n))) != NULL) {
        whit_plain state = {.n_held = 0};
        size_t n_plain = whit_plain_text(&state, text, n, plain);
        n = n_plain + whit_plain_end(&state, plain + n_plain);
        text = is_code ? last_block(plain, n, &n) : plain;
    }
    if (what[0] && !is_code)
        cli_chat_fail(chat, CLI_USAGE, "/copy puts the last answer into the clipboard, /copy code its last block");
    else if (!text || !n)
        cli_chat_fail(chat, CLI_USAGE, is_code ? "the last answer has no code" : "there is no answer to copy yet");
    else if (!isatty(STDOUT_FILENO))
        cli_chat_fail(chat, CLI_USAGE, "/copy needs a terminal; /save FILE writes the conversation");
    else if (!plain)
        cli_chat_fail(chat, CLI_LIMIT, "not enough memory for the clipboard");
    else if (n > CLIPBOARD_BYTES_MAX)
        cli_chat_fail(chat, CLI_LIMIT, "a terminal's clipboard takes at most %d bytes, and the text has %zu",
                      CLIPBOARD_BYTES_MAX, n);
    else {
        char *sequence = clipboard_sequence(text, n);
        if (sequence && cli_control(chat->call, sequence) && cli_flush(chat->call))
            cli_note("%zu bytes for the clipboard, if the terminal allows it (OSC 52)", n);
        free(sequence);
    }
    free(plain);
    json_decref(message);
}

/* ---- /edit ------------------------------------------------------------------------------------------ */

static bool is_blank(const whit_buf *text)
{
    for (size_t i = 0; i < text->size_bytes; i++)
        if (!strchr(" \t\r\n", text->data[i]) || !text->data[i]) return false;
    return true;
}

/* Replaces the user's last message (if has_before) and everything after it by `text`, and answers it. If there is no
 * answer, restores the old messages. */
static void answer_edited(cli_chat *chat, const whit_buf *text, bool has_before)
{
    whit_conversation *conversation = chat->talk.conversation;
    const size_t n_all = whit_conversation_count(conversation);
    whit_buf removed = {0};
    whit_error error;
    size_t n_removed = 0, n;
    if (has_before) {
        for (size_t i = n_all; i-- > 0 && !n_removed;) {
            json_t *message = cli_talk_message(&chat->talk, i);
            const char *role = json_string_value(json_object_get(message, "role"));
            if (role && !strcmp(role, "user")) n_removed = n_all - i;
            json_decref(message);
        }
        whit_buf_append_str(&removed, "[");
        for (size_t i = n_all - n_removed; i < n_all; i++) {
            const char *message = whit_conversation_message(conversation, i, &n);
            if (i > n_all - n_removed) whit_buf_append_str(&removed, ",");
            whit_buf_append(&removed, message, n);
        }
        whit_buf_append_str(&removed, "]");
        if (removed.failed) {
            cli_chat_fail(chat, CLI_LIMIT, "not enough memory to keep the earlier messages");
            whit_buf_free(&removed);
            return;
        }
        whit_conversation_keep(conversation, n_all - n_removed);
    }
    cli_chat_say(chat, whit_chars(text), text->size_bytes);
    if (n_removed && whit_conversation_count(conversation) == n_all - n_removed &&
        whit_conversation_append(conversation, whit_chars(&removed), removed.size_bytes, &error) != WHIT_OK)
        cli_chat_fail_error(chat, &error);
    whit_buf_free(&removed);
}

void cli_chat_edit(cli_chat *chat, char *nothing)
{
    json_t *message;
    size_t n = 0;
    whit_buf text = {0};
    whit_error error;
    bool is_done = false;
    (void)nothing;
    if (!cli_input_is_terminal(chat->input)) {
        cli_chat_fail(chat, CLI_USAGE, "/edit needs a terminal, where an editor can run");
        return;
    }
    const char *before = last_text(chat, "user", &message, &n);
    if (before) whit_buf_append(&text, before, n);
    whit_status status =
        text.failed ? whit_fail_memory(&error, "a message", n) : cli_editor_text("message.md", &text, &is_done, &error);
    (void)cli_take_interrupt(); /* an interrupt during the editor was meant for it */
    if (text.size_bytes && text.data[text.size_bytes - 1] == '\n') text.size_bytes--;
    const bool is_same = before && text.size_bytes == n && !memcmp(text.data, before, n);
    if (status != WHIT_OK)
        cli_chat_fail_error(chat, &error);
    else if (!is_done)
        cli_note("the editor failed ($VISUAL and $EDITOR name it): nothing changes");
    else if (is_same || is_blank(&text) || memchr(text.data, 0, text.size_bytes)) {
        const char *state = "no text";
        if (is_same)
            state = "as it was";
        else if (is_blank(&text))
            state = "empty";
        cli_note("the edited message is %s: nothing changes", state);
    } else
        answer_edited(chat, &text, before != NULL);
    json_decref(message);
    whit_buf_free(&text);
}
