/* SPDX-License-Identifier: MIT */
#include "base/phrase.h"
#include "runtime/answer.h"

#include "base/items.h"
#include "base/json.h"
#include "runtime/call_values.h"
#include "runtime/chat.h"

/* maximum length of a function's name as the model writes it; a call with a longer name is malformed */
#define NAME_BYTES 512

static const char deepseek_call[] = "<｜tool▁call▁begin｜>", deepseek_separator[] = "<｜tool▁sep｜>",
                  deepseek_call_end[] = "<｜tool▁call▁end｜>", deepseek_end[] = "<｜tool▁calls▁end｜>";

static const char gemma_call[] = "call:", gemma_end[] = "<tool_call|>", gemma_response[] = "<|tool_response>";

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/* Returns whether `c` is a continuation byte of UTF-8. */
static bool is_continued(uint8_t c)
{
    return (c & 0xC0) == 0x80;
}

/* ---- events ---------------------------------------------------------------------------------- */

/* Emits one event, and adds text or thinking to the answer; empty text and empty thinking are skipped. Returns false if
 * memory runs out. If the callback asks to stop, p->stopped becomes true, and the callback is not called again. */
static bool emit(whit_chat_parser *p, whit_chat_event_kind kind, const void *text, size_t n, bool complete)
{
    whit_buf *whole = NULL;
    if (kind == WHIT_CHAT_TEXT)
        whole = &p->content;
    else if (kind == WHIT_CHAT_THINKING)
        whole = &p->thinking;
    whit_chat_event event = {.kind = kind,
                             .i_call = kind >= WHIT_CHAT_CALL_BEGIN ? p->n_calls : 0,
                             .text = whit_or_empty(text),
                             .text_bytes = n,
                             .complete = complete};
    if (kind < WHIT_CHAT_CALL_BEGIN && !n) return true;
    if (whole && !whit_buf_append(whole, text, n)) return false;
    if (p->on_event && !p->stopped && !p->on_event(p->user, &event)) p->stopped = true;
    return true;
}

static bool emit_held(whit_chat_parser *p, whit_chat_event_kind kind, size_t n)
{
    bool ok = emit(p, kind, p->held.data, n, false);
    if (n) memmove(p->held.data, p->held.data + n, p->held.size_bytes - n);
    p->held.size_bytes -= n;
    return ok;
}

static void drop_held(whit_chat_parser *p, size_t n)
{
    if (n) memmove(p->held.data, p->held.data + n, p->held.size_bytes - n);
    p->held.size_bytes -= n;
}

/* ---- reading one call ------------------------------------------------------------------------ */

static void reset_call(whit_call_reader *c)
{
    whit_buf name = c->name, arguments = c->arguments, whole = c->whole;
    name.size_bytes = arguments.size_bytes = whole.size_bytes = 0;
    *c = (whit_call_reader){.name = name, .arguments = arguments, .whole = whole};
}

/* Decodes the content of a JSON string (without its quotes) in place; returns false if it is malformed or memory runs
 * out. */
static bool unquote(whit_buf *text)
{
    whit_buf quoted = {.allocator = text->allocator};
    whit_json json = {0};
    size_t n;
    bool ok = whit_buf_append_str(&quoted, "\"") && whit_buf_append(&quoted, text->data, text->size_bytes) &&
        whit_buf_append_str(&quoted, "\"") &&
        whit_json_parse("call", whit_chars(&quoted), quoted.size_bytes, text->allocator, &json, NULL) == WHIT_OK;
    const char *decoded = ok ? whit_json_string(&json, WHIT_JSON_ROOT, &n) : NULL;
    if (decoded) {
        text->size_bytes = 0;
        ok = whit_buf_append(text, decoded, n);
    }
    if (ok) whit_json_close(&json);
    whit_buf_free(&quoted);
    return ok && decoded;
}

/* Emits the part of the call that is known and not yet emitted: the name once the arguments have begun, then bytes of
 * the arguments. Arguments in a JSON string are emitted once the string is complete. Returns false if memory runs
 * out. */
static bool tell_call(whit_chat_parser *p)
{
    whit_call_reader *c = &p->call;
    if (!c->has_name || !c->has_arguments || c->quoted) return true;
    if (!c->begun) {
        c->begun = true;
        p->raw.size_bytes = 0;
        bool ok = emit(p, WHIT_CHAT_CALL_BEGIN, c->name.data, c->name.size_bytes, false) &&
            whit_buf_printf(&p->calls, "%s{\"id\": \"call%05u\", \"type\": \"function\", \"function\": {\"name\": ",
                            p->n_calls ? ", " : "", (p->first_id + p->n_calls) % 100000) &&
            whit_json_write_string(&p->calls, whit_chars(&c->name), c->name.size_bytes) &&
            whit_buf_append_str(&p->calls, ", \"arguments\": ");
        if (!ok) return false;
    }
    size_t n = c->arguments.size_bytes;
    if (!n) return true;
    c->arguments.size_bytes = 0;
    return emit(p, WHIT_CHAT_CALL_ARGUMENTS, c->arguments.data, n, false) &&
        whit_buf_append(&c->whole, c->arguments.data, n);
}

/* Returns whether `text` is valid JSON. */
static bool is_json(const whit_buf *text)
{
    whit_json json = {0};
    if (whit_json_parse("arguments", text->data ? whit_chars(text) : "", text->size_bytes, text->allocator, &json,
                        NULL) != WHIT_OK)
        return false;
    whit_json_close(&json);
    return true;
}

static bool end_call(whit_chat_parser *p, bool complete)
{
    complete = complete && is_json(&p->call.whole);
    const whit_buf *whole = &p->call.whole;
    bool ok = emit(p, WHIT_CHAT_CALL_END, NULL, 0, complete) &&
        whit_json_write_string(&p->calls, whole->data ? whit_chars(whole) : "", whole->size_bytes) &&
        whit_buf_append_str(&p->calls, "}}");
    p->n_calls++;
    p->raw.size_bytes = 0;
    reset_call(&p->call);
    return ok;
}

typedef enum verdict { MORE, DONE, MALFORMED, NO_MEMORY } verdict;

/* Reads one byte of the current value and returns whether the value is complete. A number or word ends at the byte
 * after it, which is not consumed: *takes is then false. */
static bool value_ends(whit_call_reader *c, uint8_t byte, bool *takes)
{
    *takes = true;
    if (c->in_string) {
        if (c->escaped)
            c->escaped = false;
        else if (byte == '\\')
            c->escaped = true;
        else if (byte == '"')
            c->in_string = false;
        return !c->in_string && !c->depth;
    }
    if (byte == '"') c->in_string = true;
    if (byte == '{' || byte == '[') c->depth++;
    if ((byte == '}' || byte == ']') && c->depth) return --c->depth == 0;
    if (!c->depth && !c->in_string && (byte == ',' || byte == '}' || byte == ']' || is_blank(byte))) {
        *takes = false;
        return true;
    }
    return false;
}

static bool key_is(const whit_call_reader *c, const char *name)
{
    return strlen(name) == c->n_key && memcmp(c->key, name, c->n_key) == 0;
}

/* Reads the first byte of a value; the value's key determines the next state. */
static verdict begin_value(whit_chat_parser *p, uint8_t byte)
{
    whit_call_reader *c = &p->call;
    c->depth = 0;
    c->in_string = c->escaped = false;
    if (key_is(c, "name") && !c->has_name) {
        c->state = WHIT_CALL_NAME;
        return byte == '"' ? MORE : MALFORMED;
    }
    if ((key_is(c, "arguments") || key_is(c, "parameters")) && !c->has_arguments) {
        c->state = WHIT_CALL_ARGUMENTS;
        c->quoted = byte == '"';
    } else if (p->bare && !key_is(c, "type") && !key_is(c, "id") && !key_is(c, "name")) {
        return MALFORMED; /* the JSON object is the answer and not a call */
    } else {
        c->state = WHIT_CALL_OTHER;
    }
    bool takes, ends = value_ends(c, byte, &takes);
    if (ends) return MALFORMED; /* no value begins with this byte */
    c->has_arguments |= c->state == WHIT_CALL_ARGUMENTS;
    if (c->state == WHIT_CALL_ARGUMENTS && !c->quoted && !whit_buf_append(&c->arguments, &byte, 1)) return NO_MEMORY;
    return MORE;
}

static verdict in_value(whit_chat_parser *p, uint8_t byte, bool *takes)
{
    whit_call_reader *c = &p->call;
    bool is_arguments = c->state == WHIT_CALL_ARGUMENTS, ends = value_ends(c, byte, takes);
    bool closing = c->quoted && ends; /* the byte is the closing quote of the string that contains the arguments */
    if (is_arguments && *takes && !closing && !whit_buf_append(&c->arguments, &byte, 1)) return NO_MEMORY;
    if (!ends) return MORE;
    c->state = WHIT_CALL_NEXT;
    if (is_arguments && c->quoted) {
        if (!unquote(&c->arguments)) return c->arguments.failed ? NO_MEMORY : MALFORMED;
        c->quoted = false;
    }
    return MORE;
}

static verdict read_name(whit_call_reader *c, uint8_t byte)
{
    if (!c->escaped && byte == '"') {
        c->has_name = true;
        c->state = WHIT_CALL_NEXT;
        if (!unquote(&c->name)) return c->name.failed ? NO_MEMORY : MALFORMED;
        return c->name.size_bytes ? MORE : MALFORMED;
    }
    c->escaped = !c->escaped && byte == '\\';
    if (c->name.size_bytes == NAME_BYTES) return MALFORMED;
    return whit_buf_append(&c->name, &byte, 1) ? MORE : NO_MEMORY;
}

/* Reads one byte of a call object; *takes is false if the byte was not consumed. Returns DONE at the closing brace. */
static verdict read_call(whit_chat_parser *p, uint8_t byte, bool *takes)
{
    whit_call_reader *c = &p->call;
    *takes = true;
    if (c->state != WHIT_CALL_IN_KEY && c->state < WHIT_CALL_NAME && is_blank(byte)) return MORE;
    if (c->state == WHIT_CALL_NEXT && is_blank(byte)) return MORE;
    switch (c->state) {
    case WHIT_CALL_OPEN: c->state = WHIT_CALL_KEY; return byte == '{' ? MORE : MALFORMED;
    case WHIT_CALL_KEY:
        c->n_key = 0;
        c->state = WHIT_CALL_IN_KEY;
        return byte == '"' ? MORE : MALFORMED;
    case WHIT_CALL_IN_KEY:
        if (byte == '"')
            c->state = WHIT_CALL_COLON;
        else if (c->n_key == sizeof c->key || byte == '\\')
            return MALFORMED;
        else
            c->key[c->n_key++] = (char)byte;
        return MORE;
    case WHIT_CALL_COLON: c->state = WHIT_CALL_VALUE; return byte == ':' ? MORE : MALFORMED;
    case WHIT_CALL_VALUE: return begin_value(p, byte);
    case WHIT_CALL_NAME: return read_name(c, byte);
    case WHIT_CALL_ARGUMENTS:
    case WHIT_CALL_OTHER: return in_value(p, byte, takes);
    case WHIT_CALL_NEXT:
        if (byte == ',') {
            c->state = WHIT_CALL_KEY;
            return MORE;
        }
        if (byte != '}' || !c->has_name || (p->bare && !c->has_arguments)) return MALFORMED;
        if (!c->has_arguments) {
            c->has_arguments = true;
            if (!whit_buf_append(&c->arguments, "{}", 2)) return NO_MEMORY;
        }
        return DONE;
    }
    return MALFORMED;
}

/* Reads one byte of DeepSeek's arguments, a JSON object without a call object around it. Returns DONE at its closing
 * brace. */
static verdict read_arguments(whit_chat_parser *p, uint8_t byte)
{
    whit_call_reader *c = &p->call;
    bool takes, first = !c->has_arguments;
    if (first && is_blank(byte)) return MORE;
    if (first && byte != '{') return MALFORMED;
    c->has_arguments = true;
    bool ends = value_ends(c, byte, &takes);
    if (!whit_buf_append(&c->arguments, &byte, 1)) return NO_MEMORY;
    return ends ? DONE : MORE;
}

/* ---- sections of calls ----------------------------------------------------------------------- */

/* Compares the held bytes with a marker. Returns 1 if they begin with it, -1 if they are a prefix of it, 0
 * otherwise. */
static int match(const whit_chat_parser *p, const char *marker)
{
    size_t n = strlen(marker), held = p->held.size_bytes;
    if (memcmp(p->held.data, marker, n < held ? n : held) != 0) return 0;
    return held >= n ? 1 : -1;
}

/* Leaves a section of calls. In a malformed section, a call whose beginning was already emitted ends as incomplete;
 * without such a call the bytes in `raw` are emitted as text. */
static bool leave_section(whit_chat_parser *p, bool malformed)
{
    bool ok = true;
    p->state = WHIT_ANSWER_TEXT;
    if (!malformed) {
        p->raw.size_bytes = 0;
        p->after = true;
    } else if (p->call.begun) {
        ok = end_call(p, false);
        p->after = true;
    } else {
        ok = emit(p, WHIT_CHAT_TEXT, p->raw.data, p->raw.size_bytes, false);
        p->raw.size_bytes = 0;
        p->after = false;
    }
    reset_call(&p->call);
    return ok;
}

/* Removes n held bytes, which belong to the section. Until the beginning of the call is emitted, they are appended to
 * `raw`, because a malformed section becomes text. */
static bool consume(whit_chat_parser *p, size_t n)
{
    bool ok = p->call.begun || whit_buf_append(&p->raw, p->held.data, n);
    drop_held(p, n);
    return ok;
}

static bool begin_call(whit_chat_parser *p)
{
    p->section_state = WHIT_SECTION_CALL;
    reset_call(&p->call);
    return true;
}

/* Reads a call of Llama's built-in tools, name.call(key="value", ...), once all of its bytes are held; sets *wait if
 * more bytes are needed. */
static bool read_builtin(whit_chat_parser *p, bool *wait)
{
    static const char word[] = ".call(";
    const char *text = whit_chars(&p->held);
    size_t n = p->held.size_bytes, n_name = 0, i;
    whit_call_reader *c = &p->call;
    bool in_string = false, in_key = true, ok = true;
    while (n_name < n && n_name < NAME_BYTES &&
           (text[n_name] == '_' || (text[n_name] >= '0' && text[n_name] <= '9') ||
            (text[n_name] >= 'A' && text[n_name] <= 'Z') || (text[n_name] >= 'a' && text[n_name] <= 'z')))
        n_name++;
    size_t n_word = n - n_name < strlen(word) ? n - n_name : strlen(word);
    if (!n_name || memcmp(text + n_name, word, n_word) != 0) return leave_section(p, true);
    for (i = n_name + strlen(word); i < n && (in_string || text[i] != ')'); i++) {
        if (in_string && text[i] == '\\')
            i++;
        else if (text[i] == '"')
            in_string = !in_string;
    }
    *wait = i >= n;
    if (*wait) return true;
    reset_call(c);
    ok = whit_buf_append(&c->name, text, n_name) && whit_buf_append_str(&c->arguments, "{\"");
    for (size_t at = n_name + strlen(word); ok && at < i; at++) {
        bool special = !in_string && (text[at] == '=' || text[at] == ',' || text[at] == ' ');
        if (!special) ok = whit_buf_append(&c->arguments, text + at, 1);
        if (special && text[at] == '=' && in_key) ok = whit_buf_append_str(&c->arguments, "\": "), in_key = false;
        if (special && text[at] == ',') ok = whit_buf_append_str(&c->arguments, ", \""), in_key = true;
        if (in_string && text[at] == '\\' && ok)
            ok = whit_buf_append(&c->arguments, text + ++at, 1);
        else if (text[at] == '"')
            in_string = !in_string;
    }
    if (in_key) c->arguments.size_bytes--; /* there are no arguments: remove the opening quote of a key */
    c->has_name = c->has_arguments = true;
    p->section_state = WHIT_SECTION_NEXT;
    ok = ok && whit_buf_append_str(&c->arguments, "}") && consume(p, i + 1) && tell_call(p);
    return ok && end_call(p, true);
}

/* Compares the held bytes at offset `at` with a word. Returns 1 if they begin with it, -1 if more bytes could complete
 * it, 0 if they differ. */
static int match_at(const whit_chat_parser *p, size_t at, const char *word)
{
    size_t n = strlen(word), left = p->held.size_bytes - at;
    if (memcmp(p->held.data + at, word, n < left ? n : left) != 0) return 0;
    return left >= n ? 1 : -1;
}

/* Reads the name of a call, from after the n_open bytes that begin the call up to `close`; emits the name and the
 * opening brace of the arguments, and changes to section state `next`, which reads the arguments. Sets *wait if more
 * bytes are needed. */
static bool read_call_name(whit_chat_parser *p, size_t n_open, char close, int next, bool *wait)
{
    const uint8_t *name = p->held.data + n_open;
    size_t left = p->held.size_bytes - n_open;
    const uint8_t *end = memchr(name, close, left);
    if (!end) {
        *wait = left <= NAME_BYTES;
        return *wait || leave_section(p, true);
    }
    whit_call_reader *c = &p->call;
    reset_call(c);
    if (end == name || (size_t)(end - name) > NAME_BYTES) return leave_section(p, true);
    if (!whit_buf_append(&c->name, name, (size_t)(end - name)) || !whit_buf_append_str(&c->arguments, "{"))
        return false;
    c->has_name = c->has_arguments = true;
    p->section_state = next;
    p->searched = 0;
    p->gemma = whit_gemma_begin();
    return consume(p, (size_t)(end + 1 - p->held.data)) && tell_call(p);
}

/* Reads one argument: <parameter=KEY>, the text between two optional line feeds, </parameter>. Sets *wait if more bytes
 * are needed. */
static bool read_parameter(whit_chat_parser *p, bool *wait)
{
    static const char open[] = "<parameter=", close[] = "</parameter>";
    const char *text = whit_chars(&p->held);
    size_t n = p->held.size_bytes, n_key = 0, n_open = strlen(open), from;
    const char *mark = memchr(text + n_open, '>', n - n_open), *end = NULL;
    if (mark) n_key = (size_t)(mark - text) - n_open;
    if (!mark || n_key > NAME_BYTES || n_key == 0) {
        *wait = !mark && n <= n_open + NAME_BYTES;
        return *wait || leave_section(p, true);
    }
    const char *value = mark + 1, *key = text + n_open;
    from = (size_t)(value - text) > p->searched ? (size_t)(value - text) : p->searched;
    uint32_t schema = WHIT_JSON_NONE;
    if (p->has_tools)
        schema = whit_call_parameter(&p->tools, whit_chars(&p->call.name), p->call.name.size_bytes, key, n_key);
    bool is_text = whit_call_value_is_text(&p->tools, schema);
    while ((end = memmem(text + from, n - from, close, strlen(close))) != NULL) {
        if (is_text || !whit_call_value_is_open(value, (size_t)(end - value))) break;
        from = (size_t)(end - text) + 1; /* the end tag is inside a JSON string */
    }
    if (!end) {
        size_t keep = strlen(close) - 1;
        p->searched = n - from > keep ? n - keep : from;
        *wait = true;
        return true;
    }
    size_t n_value = (size_t)(end - value), taken = (size_t)(end - text) + strlen(close);
    if (n_value && value[0] == '\n') value++, n_value--;
    if (n_value && value[n_value - 1] == '\n') n_value--;
    whit_buf *out = &p->call.arguments;
    bool first = p->call.whole.size_bytes <= 1; /* so far `whole` has only the opening brace */
    bool ok = (first || whit_buf_append_str(out, ", ")) && whit_json_write_string(out, key, n_key) &&
        whit_buf_append_str(out, ": ") && whit_call_value_write(value, n_value, is_text, out);
    p->searched = 0;
    return ok && consume(p, taken) && tell_call(p);
}

/* Reads the next tagged argument, or the end of the function, at a byte that is not blank. Sets *wait if more bytes are
 * needed. */
static bool read_tags(whit_chat_parser *p, bool *wait)
{
    int opens = match_at(p, 0, "<parameter="), closes = match_at(p, 0, "</function>");
    if (opens == 1) return read_parameter(p, wait);
    if (closes == 1) {
        p->section_state = WHIT_SECTION_NEXT;
        return whit_buf_append_str(&p->call.arguments, "}") && consume(p, strlen("</function>")) && tell_call(p) &&
            end_call(p, true);
    }
    *wait = opens < 0 || closes < 0;
    return *wait || leave_section(p, true);
}

static bool read_gemma(whit_chat_parser *p, bool *wait)
{
    whit_gemma_result result;
    size_t n = whit_gemma_read(&p->gemma, whit_chars(&p->held), p->held.size_bytes, &p->call.arguments, &result);
    if (result == WHIT_GEMMA_NO_MEMORY || !consume(p, n) || !tell_call(p)) return false;
    if (result == WHIT_GEMMA_MALFORMED) return leave_section(p, true);
    *wait = result == WHIT_GEMMA_MORE;
    if (*wait) return true;
    p->section_state = WHIT_SECTION_NEXT;
    return end_call(p, true);
}

/* Continues after a call or the section's marker, at a byte that is not blank: begins the next call or ends the
 * section. Sets *wait if more bytes are needed. */
static bool next_in_section(whit_chat_parser *p, bool *wait)
{
    uint8_t c = p->held.data[0];
    bool opened = p->section_state == WHIT_SECTION_OPEN;
    if (p->syntax == WHIT_CALLS_DEEPSEEK) {
        int begins = match(p, deepseek_call), ends = match(p, deepseek_end), closes = match(p, deepseek_call_end);
        if (begins == 1) {
            p->section_state = WHIT_SECTION_NAME;
            reset_call(&p->call);
            return consume(p, strlen(deepseek_call));
        }
        if (closes == 1) return consume(p, strlen(deepseek_call_end));
        if (ends == 1) return consume(p, strlen(deepseek_end)) && leave_section(p, false);
        if (match(p, "```") == 1 && !opened) return consume(p, 3);
        *wait = begins < 0 || ends < 0 || closes < 0 || (match(p, "```") < 0 && !opened);
        return *wait || leave_section(p, opened);
    }
    if (p->list) {
        if (c == '{') return begin_call(p);
        if (c == ',' && !opened) return consume(p, 1);
        if (c == ']' && !opened) return consume(p, 1) && leave_section(p, false);
        return leave_section(p, opened);
    }
    if (opened && c == '[' && (p->syntax == WHIT_CALLS_MISTRAL || p->syntax == WHIT_CALLS_GRANITE)) {
        p->list = true;
        return consume(p, 1);
    }
    if (p->syntax == WHIT_CALLS_XML && opened) {
        int begins = match_at(p, 0, "<function=");
        if (begins == 1) return read_call_name(p, strlen("<function="), '>', WHIT_SECTION_TAGS, wait);
        *wait = begins < 0;
        if (*wait) return true;
    }
    if (p->syntax == WHIT_CALLS_GEMMA && opened) {
        int begins = match(p, gemma_call);
        *wait = begins < 0;
        if (*wait) return true;
        return begins ? read_call_name(p, strlen(gemma_call), '{', WHIT_SECTION_CALL, wait) : leave_section(p, true);
    }
    if ((p->syntax == WHIT_CALLS_TAGGED || p->syntax == WHIT_CALLS_XML || p->syntax == WHIT_CALLS_GEMMA) && !opened) {
        const char *end = p->syntax == WHIT_CALLS_GEMMA ? gemma_end : "</tool_call>";
        int closes = match(p, end);
        *wait = closes < 0;
        if (closes == 1) return consume(p, strlen(end)) && leave_section(p, false);
        return *wait || leave_section(p, false);
    }
    if (c == '{' && (opened || p->syntax == WHIT_CALLS_LLAMA)) return begin_call(p);
    if (opened && p->syntax == WHIT_CALLS_LLAMA && !p->bare) return read_builtin(p, wait);
    if (!opened && p->syntax == WHIT_CALLS_LLAMA && (c == ';' || c == ',')) return consume(p, 1);
    return leave_section(p, opened);
}

/* Reads the heading of a DeepSeek call: type, separator, name, a line feed and a code fence, up to the opening brace of
 * the arguments. Sets *wait if more bytes are needed. */
static bool read_heading(whit_chat_parser *p, bool *wait)
{
    const char *text = whit_chars(&p->held);
    size_t n = p->held.size_bytes;
    const char *name = memmem(text, n, deepseek_separator, strlen(deepseek_separator));
    if (name) name += strlen(deepseek_separator);
    const char *end = name ? memchr(name, '\n', n - (size_t)(name - text)) : NULL;
    const char *brace = end ? memchr(end, '{', n - (size_t)(end - text)) : NULL;
    if (!brace) {
        *wait = n < 2 * NAME_BYTES;
        return *wait || leave_section(p, true);
    }
    size_t n_name = (size_t)(end - name);
    if (!n_name || n_name > NAME_BYTES) return leave_section(p, true);
    p->section_state = WHIT_SECTION_CALL;
    p->call.has_name = true;
    return whit_buf_append(&p->call.name, name, n_name) && consume(p, (size_t)(brace - text));
}

static bool read_section(whit_chat_parser *p, bool *wait)
{
    if (p->section_state == WHIT_SECTION_NAME) return read_heading(p, wait);
    if (p->section_state == WHIT_SECTION_CALL && p->syntax == WHIT_CALLS_GEMMA) return read_gemma(p, wait);
    if (p->section_state != WHIT_SECTION_CALL) {
        size_t blank = 0;
        while (blank < p->held.size_bytes && is_blank(p->held.data[blank])) blank++;
        if (blank && !consume(p, blank)) return false;
        *wait = !p->held.size_bytes;
        if (!*wait && p->section_state == WHIT_SECTION_TAGS) return read_tags(p, wait);
        return *wait || next_in_section(p, wait);
    }
    size_t i = 0;
    verdict read = MORE;
    bool takes = true;
    while (read == MORE && i < p->held.size_bytes) {
        uint8_t byte = p->held.data[i];
        read = p->syntax == WHIT_CALLS_DEEPSEEK ? read_arguments(p, byte) : read_call(p, byte, &takes);
        i += takes && read != MALFORMED;
    }
    /* The bytes of a malformed section become text, which is emitted in whole UTF-8 characters. */
    if (read == MALFORMED)
        while (i < p->held.size_bytes && is_continued(p->held.data[i])) i++;
    if (read == NO_MEMORY || !consume(p, i)) return false;
    if (!tell_call(p)) return false;
    if (read == MALFORMED) return leave_section(p, true);
    if (read == MORE) {
        *wait = true;
        return true;
    }
    p->section_state = WHIT_SECTION_NEXT;
    return end_call(p, true);
}

/* ---- thinking and text ----------------------------------------------------------------------- */

/* Returns the offset of a marker in the held bytes, or their number if it is not found. *perhaps becomes the offset of
 * an incomplete marker at their end, or their number if they do not end with one. */
static size_t find_marker(const whit_chat_parser *p, const char *marker, size_t *perhaps)
{
    size_t size = p->held.size_bytes, n = strlen(marker);
    const uint8_t *found = size >= n ? memmem(p->held.data, size, marker, n) : NULL;
    *perhaps = size;
    if (found) return (size_t)(found - p->held.data);
    for (size_t at = size >= n ? size - n + 1 : 0; at < size; at++)
        if (memcmp(p->held.data + at, marker, size - at) == 0) {
            *perhaps = at;
            break;
        }
    return size;
}

static void enter_section(whit_chat_parser *p, bool bare)
{
    p->state = WHIT_ANSWER_CALLS;
    p->section_state = WHIT_SECTION_OPEN;
    p->list = false;
    p->bare = bare;
    p->raw.size_bytes = 0;
    reset_call(&p->call);
}

static bool read_start(whit_chat_parser *p, bool *wait)
{
    size_t blank = 0;
    while (blank < p->held.size_bytes && is_blank(p->held.data[blank])) blank++;
    if (blank == p->held.size_bytes) {
        *wait = true;
        return true;
    }
    if (p->syntax == WHIT_CALLS_LLAMA && p->section && p->held.data[blank] == '{') {
        enter_section(p, true);
        return consume(p, blank);
    }
    if (!p->after) {
        const char *rest = whit_chars(&p->held) + blank;
        size_t n = p->held.size_bytes - blank, n_mark = strlen(p->think_open);
        if (memcmp(rest, p->think_open, n < n_mark ? n : n_mark) == 0) {
            *wait = n < n_mark;
            if (*wait) return true;
            drop_held(p, blank + n_mark);
            p->state = WHIT_ANSWER_THINKING;
            return true;
        }
    }
    if (p->syntax == WHIT_CALLS_GEMMA) { /* Gemma's models may write the end of a thinking section without its
                                          * beginning */
        const char *rest = whit_chars(&p->held) + blank;
        size_t n = p->held.size_bytes - blank, n_mark = strlen(p->think_close);
        if (memcmp(rest, p->think_close, n < n_mark ? n : n_mark) == 0) {
            *wait = n < n_mark;
            if (!*wait) drop_held(p, blank + n_mark);
            p->after |= !*wait;
            return true;
        }
    }
    p->state = WHIT_ANSWER_TEXT;
    return true;
}

static bool read_thinking(whit_chat_parser *p, bool *wait)
{
    size_t perhaps, at = find_marker(p, p->think_close, &perhaps);
    *wait = at == p->held.size_bytes;
    if (*wait) return emit_held(p, WHIT_CHAT_THINKING, perhaps);
    if (!emit_held(p, WHIT_CHAT_THINKING, at)) return false;
    drop_held(p, strlen(p->think_close));
    p->after = true;
    p->state = WHIT_ANSWER_START;
    return true;
}

static bool read_text(whit_chat_parser *p, bool *wait)
{
    if (p->after) { /* the text follows thinking or a call, which may have ended inside a UTF-8 character */
        size_t blank = 0;
        while (blank < p->held.size_bytes && (is_blank(p->held.data[blank]) || is_continued(p->held.data[blank])))
            blank++;
        drop_held(p, blank);
        if (p->syntax == WHIT_CALLS_GEMMA && p->held.size_bytes && p->n_calls) {
            int ends = match(p, gemma_response); /* models end an answer with calls by this marker, which begins the
                                                  * results; it is dropped */
            *wait = ends < 0;
            if (ends > 0) drop_held(p, strlen(gemma_response));
            if (ends) return true;
        }
        if (p->held.size_bytes) p->after = p->section && match(p, p->section) != 0;
    }
    *wait = true;
    if (!p->section) return emit_held(p, WHIT_CHAT_TEXT, p->held.size_bytes);
    size_t perhaps, at = find_marker(p, p->section, &perhaps), n = at < perhaps ? at : perhaps;
    size_t text = n; /* white space before a section of calls is not emitted */
    while (text && is_blank(p->held.data[text - 1])) text--;
    if (at == p->held.size_bytes) return emit_held(p, WHIT_CHAT_TEXT, text);
    *wait = false;
    if (!emit_held(p, WHIT_CHAT_TEXT, text)) return false;
    enter_section(p, false);
    return consume(p, n - text + strlen(p->section));
}

static whit_status advance(whit_chat_parser *p, whit_error *error)
{
    bool wait = false, ok = true;
    while (ok && !wait && p->held.size_bytes) {
        switch (p->state) {
        case WHIT_ANSWER_START: ok = read_start(p, &wait); break;
        case WHIT_ANSWER_THINKING: ok = read_thinking(p, &wait); break;
        case WHIT_ANSWER_TEXT: ok = read_text(p, &wait); break;
        case WHIT_ANSWER_CALLS: ok = read_section(p, &wait); break;
        }
    }
    if (!ok) return whit_fail_memory(error, "the answer", p->held.size_bytes);
    return p->stopped ? whit_fail(error, WHIT_ERROR_CANCELLED, "cancelled") : WHIT_OK;
}

/* ---- the public functions -------------------------------------------------------------------- */

const char *whit_answer_section(whit_call_syntax syntax)
{
    switch (syntax) {
    case WHIT_CALLS_XML:
    case WHIT_CALLS_TAGGED: return "<tool_call>";
    case WHIT_CALLS_MISTRAL: return "[TOOL_CALLS]";
    case WHIT_CALLS_GRANITE: return "<|tool_call|>";
    case WHIT_CALLS_GEMMA: return "<|tool_call>";
    case WHIT_CALLS_LLAMA: return "<|python_tag|>";
    case WHIT_CALLS_DEEPSEEK: return "<｜tool▁calls▁begin｜>";
    }
    return NULL;
}

whit_status whit_answer_open(whit_call_syntax syntax, bool tools, const char *think_open, const char *think_close,
                             bool thinking, whit_chat_event_fn *on_event, void *user, const whit_allocator *allocator,
                             whit_chat_parser **out, whit_error *error)
{
    whit_buf none = {.allocator = allocator};
    *out = NULL;
    whit_chat_parser *p = whit_zalloc(allocator, sizeof *p);
    if (!p) return whit_fail_memory(error, "the answer", sizeof *p);
    *p = (whit_chat_parser){.allocator = allocator,
                            .think_open = think_open,
                            .think_close = think_close,
                            .section = tools ? whit_answer_section(syntax) : NULL,
                            .syntax = syntax,
                            .on_event = on_event,
                            .user = user,
                            .state = thinking ? WHIT_ANSWER_THINKING : WHIT_ANSWER_START,
                            .held = none,
                            .raw = none,
                            .call = {.name = none, .arguments = none, .whole = none},
                            .content = none,
                            .thinking = none,
                            .calls = none,
                            .message = none,
                            .tools_text = none};
    *out = p;
    return WHIT_OK;
}

whit_status whit_answer_set_tools(whit_chat_parser *p, const char *tools, size_t tools_bytes, whit_error *error)
{
    if (!whit_buf_append(&p->tools_text, tools, tools_bytes)) return whit_fail_memory(error, "the tools", tools_bytes);
    WHIT_TRY(whit_json_parse("tools", whit_chars(&p->tools_text), tools_bytes, p->allocator, &p->tools, error));
    p->has_tools = true;
    return WHIT_OK;
}

/* Bytes that are reserved before the first token for the answer's text and for held bytes; longer text needs
 * reallocation. */
enum { TEXT_BYTES = 1 << 16, HELD_BYTES = 1 << 12 };

whit_status whit_answer_prepare(whit_chat_parser *p, uint32_t first_id, whit_error *error)
{
    p->first_id = first_id;
    return whit_buf_reserve(&p->content, TEXT_BYTES) && whit_buf_reserve(&p->held, HELD_BYTES)
        ? WHIT_OK
        : whit_fail_memory(error, "the answer", TEXT_BYTES);
}

whit_status whit_chat_parser_push(whit_chat_parser *p, const char *text, size_t text_bytes, whit_error *error)
{
    WHIT_NEED(p);
    WHIT_NEED_ARRAY(text, text_bytes);
    if (p->stopped) return whit_fail(error, WHIT_ERROR_CANCELLED, "cancelled");
    if (!whit_buf_append(&p->held, text, text_bytes)) return whit_fail_memory(error, "the answer", text_bytes);
    return advance(p, error);
}

static bool write_message(whit_chat_parser *p)
{
    whit_buf *out = &p->message;
    bool ok = whit_buf_append_str(out, "{\"role\": \"assistant\", \"content\": ");
    if (p->content.size_bytes || !p->n_calls)
        ok = ok && whit_json_write_string(out, p->content.data ? whit_chars(&p->content) : "", p->content.size_bytes);
    else
        ok = ok && whit_buf_append_str(out, "null");
    if (p->thinking.size_bytes)
        ok = ok && whit_buf_append_str(out, ", \"reasoning_content\": ") &&
            whit_json_write_string(out, whit_chars(&p->thinking), p->thinking.size_bytes);
    if (p->n_calls)
        ok = ok && whit_buf_append_str(out, ", \"tool_calls\": [") &&
            whit_buf_append(out, p->calls.data, p->calls.size_bytes) && whit_buf_append_str(out, "]");
    return ok && whit_buf_append(out, "}", 2) && (out->size_bytes--, true);
}

whit_status whit_chat_parser_flush(whit_chat_parser *p, whit_error *error)
{
    bool ok = true, wait = false;
    WHIT_NEED(p);
    if (p->message.size_bytes) return WHIT_OK;
    if (p->state == WHIT_ANSWER_CALLS) {
        if (p->section_state == WHIT_SECTION_NEXT) { /* after a complete call the section counts as closed */
            if (p->held.size_bytes &&
                (match(p, "</tool_call>") < 0 || match(p, gemma_end) < 0 || match(p, deepseek_call_end) < 0))
                drop_held(p, p->held.size_bytes);
            ok = leave_section(p, false);
        } else
            ok = tell_call(p) && leave_section(p, true);
        while (ok && !wait && p->held.size_bytes && p->state == WHIT_ANSWER_TEXT) ok = read_text(p, &wait);
        if (ok && p->state == WHIT_ANSWER_CALLS) ok = leave_section(p, true);
    }
    whit_chat_event_kind kind = p->state == WHIT_ANSWER_THINKING ? WHIT_CHAT_THINKING : WHIT_CHAT_TEXT;
    if (p->state == WHIT_ANSWER_TEXT && p->after) {
        size_t blank = 0;
        while (blank < p->held.size_bytes && is_blank(p->held.data[blank])) blank++;
        drop_held(p, blank);
    }
    ok = ok && emit_held(p, kind, p->held.size_bytes) && write_message(p);
    if (!ok) return whit_fail_memory(error, "the answer", p->held.size_bytes);
    return p->stopped ? whit_fail(error, WHIT_ERROR_CANCELLED, "cancelled") : WHIT_OK;
}

const char *whit_chat_parser_message(const whit_chat_parser *p, size_t *text_bytes)
{
    *text_bytes = p->message.size_bytes;
    return p->message.size_bytes ? whit_chars(&p->message) : "";
}

uint32_t whit_chat_parser_n_calls(const whit_chat_parser *p)
{
    return p->n_calls;
}

void whit_chat_parser_close(whit_chat_parser *p)
{
    if (!p) return;
    whit_buf *const bufs[] = {&p->held,    &p->raw,      &p->call.name, &p->call.arguments, &p->call.whole,
                              &p->content, &p->thinking, &p->calls,     &p->message,        &p->tools_text};
    if (p->has_tools) whit_json_close(&p->tools);
    for (size_t i = 0; i < sizeof bufs / sizeof *bufs; i++) whit_buf_free(bufs[i]);
    whit_free(p->allocator, p, sizeof *p);
}
