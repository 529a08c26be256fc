/* SPDX-License-Identifier: MIT
 * Internals of the answer parser, which splits a model's streamed output into thinking, text and tool calls.
 *
 * An answer is white space, an optional thinking section, then text with calls in it. Bytes that might become a
 * marker are held back until more bytes decide. Text that looked like a call but is malformed is emitted as text,
 * unless the beginning of the call was already emitted; such a call ends as incomplete. */
#ifndef WHIT_RUNTIME_ANSWER_H
#define WHIT_RUNTIME_ANSWER_H

#include "base/json.h"
#include "base/mem.h"
#include "runtime/call_gemma.h"
#include "runtime/tool_style.h"

/* State of a reader that reads one call, {"name": ..., "arguments": ...}, byte by byte. */
typedef struct whit_call_reader {
    enum {
        WHIT_CALL_OPEN,   /* the opening brace is expected */
        WHIT_CALL_KEY,    /* a key is expected */
        WHIT_CALL_IN_KEY, /* inside the key's quotes */
        WHIT_CALL_COLON,
        WHIT_CALL_VALUE,     /* a value is expected */
        WHIT_CALL_NAME,      /* inside the name's quotes */
        WHIT_CALL_ARGUMENTS, /* inside the value of the arguments */
        WHIT_CALL_OTHER,     /* inside another value */
        WHIT_CALL_NEXT,      /* a comma or the closing brace is expected */
    } state;
    char key[16];
    size_t n_key;
    whit_buf name;      /* name as written, without quotes; decoded at its closing quote */
    whit_buf arguments; /* bytes of the arguments that are not yet emitted */
    whit_buf whole;     /* all arguments emitted so far, validated as JSON at the end */
    uint32_t depth;     /* nesting depth inside the current value */
    /* in_string: inside a JSON string; escaped: after a backslash in it; quoted: the arguments are JSON text in a JSON
     * string */
    bool in_string, escaped, quoted;
    bool has_name, has_arguments, begun;
} whit_call_reader;

struct whit_chat_parser {
    const whit_allocator *allocator;
    const char *think_open, *think_close;
    const char *section; /* marker that precedes a section of calls; NULL: calls are not parsed */
    whit_call_syntax syntax;
    whit_chat_event_fn *on_event;
    void *user;
    enum {
        WHIT_ANSWER_START, /* only white space was read so far, or since the thinking section */
        WHIT_ANSWER_THINKING,
        WHIT_ANSWER_TEXT,
        WHIT_ANSWER_CALLS,
    } state;
    enum {
        WHIT_SECTION_OPEN, /* the marker was read, and no call yet */
        WHIT_SECTION_CALL, /* a call is being read */
        WHIT_SECTION_NEXT, /* a call has ended */
        WHIT_SECTION_NAME, /* DeepSeek: the name is being read, up to the arguments */
        WHIT_SECTION_TAGS, /* tagged arguments are being read */
    } section_state;
    bool list, bare;     /* list: the calls are in a JSON list; bare: the call has no marker */
    bool after, stopped; /* after: thinking or calls precede, so white space before the text is dropped; stopped: the
                          * callback asked to stop */
    whit_buf held;       /* bytes that are not parsed yet, or that may begin a marker */
    whit_buf raw;        /* source text of a call that may still turn out malformed */
    whit_call_reader call;
    whit_gemma_reader gemma;
    whit_buf tools_text; /* JSON list of tools, whose schemas determine which tagged arguments are strings */
    whit_json tools;
    bool has_tools;
    size_t searched; /* number of held bytes already searched for an end tag */
    /* number of calls so far; number in the id of the first call */
    uint32_t n_calls, first_id;
    whit_buf content, thinking, calls, message; /* the parts of the answer so far; `message` is built at the end */
};

#endif
