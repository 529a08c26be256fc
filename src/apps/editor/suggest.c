/* SPDX-License-Identifier: MIT
 * Shows suggestions, which are texts that a model proposes at the cursor. A suggestion is shown after a pause, and
 * removed by the next key that does not type it. */
#include "editor/state.h"

#include <string.h>

#include "base/clock.h"
#include "base/items.h"
#include "base/lookalike.h"
#include "base/plain.h"
#include "base/utf8.h"

#define REST_NS      300000000u
#define BEFORE_BYTES 6144u
#define BEHIND_BYTES 2048u
/* bytes on each side of the cursor that are searched for secret keys; longer than any key */
#define AROUND_BYTES 32768u
#define ANSWER_BYTES 8192u
#define SHOWN_BYTES  2048u
#define BESIDE_BYTES 256u /* bytes of the text on each side that may belong to the suggestion's first or last word */

bool ed_read_around(ed *e, uint64_t begin, uint64_t end, whit_buf *around)
{
    begin = begin > AROUND_BYTES ? begin - AROUND_BYTES : 0;
    const size_t n = (size_t)(end - begin) + AROUND_BYTES;
    if (!whit_buf_reserve(around, n)) return false;
    around->size_bytes = whit_text_read(ed_text(e), begin, around->data, n);
    return true;
}

/* Returns whether a suggestion may be requested: they are not switched off, no prompt is open, no macro is played, the
 * text may be changed, vi's keys are off or in insert mode, and there is one cursor, without a selection and with only
 * blanks, closing signs, commas and semicolons after it in its line. */
static bool is_wanted(ed *e)
{
    if (!e->options.suggester || e->suggest == ED_SUGGEST_NEVER || e->prompt.kind || e->macro.playing) return false;
    if (e->window->n_cursors > 1 || ed_cursor(e)->anchor != ED_NONE || e->window->doc->buffer->read_only) return false;
    if (e->vi.on && !ed_vi_is_inserting(e)) return false;
    whit_layout *layout = ed_layout(e);
    uint64_t at = ed_cursor(e)->offset;
    for (int byte; (byte = whit_layout_byte(layout, at)) >= 0 && byte != '\n' && byte != '\r'; at++)
        if (!strchr(" \t)]};,\"'", byte)) return false;
    return true;
}

void ed_suggest_drop(ed *e)
{
    struct ed_suggestion *own = &e->suggestion;
    own->due_ns = 0;
    if (own->doc && !own->done) e->options.suggester->cancel(e->options.suggester->user);
    own->doc = NULL;
    own->text.size_bytes = own->n_shown = 0;
}

/* If the last key typed the beginning of the suggestion, removes that beginning and returns true; the rest stays
 * valid. */
static bool was_expected(ed *e, uint64_t version, uint64_t offset)
{
    struct ed_suggestion *own = &e->suggestion;
    const whit_buffer *buffer = e->window->doc->buffer;
    uint64_t now = ed_cursor(e)->offset;
    char typed[16];
    if (own->version != version || own->offset != offset || now <= offset || now - offset > sizeof typed) return false;
    size_t n = (size_t)(now - offset);
    if (buffer->version != version + 1 || n >= own->text.size_bytes) return false;
    if (whit_text_read(buffer->text, offset, typed, n) != n || memcmp(typed, own->text.data, n)) return false;
    memmove(own->text.data, own->text.data + n, own->text.size_bytes - n);
    own->text.size_bytes -= n;
    own->n_shown -= n < own->n_shown ? n : own->n_shown;
    own->offset = now;
    own->version = buffer->version;
    return true;
}

void ed_suggest_key(ed *e, const struct ed_doc *doc, uint64_t version, uint64_t offset)
{
    struct ed_suggestion *own = &e->suggestion;
    if (!e->options.suggester || e->done) return;
    bool typed = doc == e->window->doc && doc->buffer->version != version;
    if (own->doc) {
        if (typed && own->doc == doc && was_expected(e, version, offset)) return;
        ed_suggest_drop(e);
    }
    own->due_ns = typed && is_wanted(e) ? whit_now_ns() + REST_NS : 0;
}

void ed_suggest_idle(ed *e)
{
    struct ed_suggestion *own = &e->suggestion;
    if (!own->due_ns || whit_now_ns() < own->due_ns) return;
    own->due_ns = 0;
    if (!is_wanted(e)) return;
    char buffer[BEFORE_BYTES], behind[BEHIND_BYTES], *before = buffer;
    const whit_text *text = ed_text(e);
    uint64_t offset = ed_cursor(e)->offset, from = offset > BEFORE_BYTES ? offset - BEFORE_BYTES : 0;
    size_t n_before = whit_text_read(text, from, buffer, (size_t)(offset - from));
    size_t n_behind = whit_text_read(text, offset, behind, BEHIND_BYTES);
    char *feed = from ? memchr(buffer, '\n', n_before) : NULL;
    if (feed) { /* begin with a whole line */
        before = feed + 1;
        n_before -= (size_t)(before - buffer);
    }
    whit_buf around = {0};
    if (!ed_read_around(e, offset, offset, &around)) return;
    const whit_suggestion_question question = {.path = e->window->doc->buffer->path,
                                               .name = e->window->doc->buffer->name,
                                               .before = before,
                                               .behind = behind,
                                               .before_bytes = n_before,
                                               .behind_bytes = n_behind,
                                               .around = whit_chars(&around),
                                               .around_bytes = around.size_bytes,
                                               .settings = ed_panel_wish(e),
                                               .anywhere = e->suggest == ED_SUGGEST_ANYWHERE};
    const bool is_asked = e->options.suggester->ask(e->options.suggester->user, &question);
    whit_buf_free(&around);
    if (!is_asked) return;
    own->doc = e->window->doc;
    own->version = own->doc->buffer->version;
    own->offset = offset;
    own->done = false;
    own->text.size_bytes = 0;
}

bool ed_suggest_take(ed *e)
{
    const whit_suggester *suggester = e->options.suggester;
    struct ed_suggestion *own = &e->suggestion;
    if (!suggester) return false;
    char why[300] = "";
    size_t before = own->text.size_bytes;
    own->text.limit_bytes = ANSWER_BYTES;
    whit_suggestion_state state = suggester->take(suggester->user, &own->text, why, sizeof why);
    if (!own->doc) {
        own->text.size_bytes = 0;
        return false;
    }
    own->done = state == WHIT_SUGGESTION_DONE || state == WHIT_SUGGESTION_FAILED || own->text.failed;
    if (own->text.failed && state == WHIT_SUGGESTION_WORKING) suggester->cancel(suggester->user);
    own->text.failed = false;
    if (state == WHIT_SUGGESTION_FAILED) {
        ed_suggest_drop(e);
        ed_complain(e, "no suggestion: %s", why);
        return true;
    }
    return own->text.size_bytes > before;
}

/* Returns the length of the beginning of a suggestion that is what it looks like: it ends before a letter that looks
 * like another one, as in a word of Latin letters, and before a blank outside ASCII. */
static size_t read_plain(const struct ed_suggestion *own, size_t n)
{
    char line[BESIDE_BYTES + SHOWN_BYTES + BESIDE_BYTES];
    const whit_text *text = own->doc->buffer->text;
    const uint64_t from = own->offset > BESIDE_BYTES ? own->offset - BESIDE_BYTES : 0;
    size_t first = 0, length;
    while (first < n && own->text.data[first] < 0x80) first++;
    if (first == n) return n;
    const size_t n_before = whit_text_read(text, from, line, (size_t)(own->offset - from));
    memcpy(line + n_before, own->text.data, n);
    const size_t n_line = n_before + n + whit_text_read(text, own->offset, line + n_before + n, BESIDE_BYTES);
    for (size_t at = n_before + first; at < n_before + n; at += length) {
        const uint32_t code = whit_utf8_decode((const uint8_t *)line + at, n_line - at, &length);
        if (code < 0x80 || code == WHIT_UTF8_INVALID) continue;
        if (whit_plain_is_other_blank(code) || whit_lookalike_at(line, n_line, at, code)) return at - n_before;
    }
    return n;
}

const char *ed_suggestion(const ed *e, const struct ed_doc *doc, size_t *n)
{
    const struct ed_suggestion *own = &e->suggestion;
    *n = 0;
    if (!own->doc || own->doc != doc || doc->buffer->version != own->version || ed_cursor(e)->offset != own->offset)
        return NULL;
    *n = read_plain(own, own->text.size_bytes < SHOWN_BYTES ? own->text.size_bytes : SHOWN_BYTES);
    while (*n && (own->text.data[*n - 1] == '\n' || own->text.data[*n - 1] == ' ')) (*n)--;
    return whit_chars(&own->text);
}

bool ed_suggest_accept(ed *e)
{
    struct ed_suggestion *own = &e->suggestion;
    size_t n;
    if (e->prompt.kind || !ed_suggestion(e, e->window->doc, &n)) return false;
    if (n > own->n_shown) n = own->n_shown;
    if (!n) return false;
    whit_buffer_seal(e->window->doc->buffer);
    uint64_t offset = own->offset;
    if (ed_edit(e, offset, 0, own->text.data, n)) ed_move_to(e, ed_cursor(e), offset + n);
    whit_buffer_seal(e->window->doc->buffer);
    ed_suggest_drop(e);
    return true;
}

void ed_suggest_close(ed *e)
{
    if (e->options.suggester) ed_suggest_drop(e);
    whit_buf_free(&e->suggestion.text);
}
