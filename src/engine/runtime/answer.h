/* SPDX-License-Identifier: MIT
 * The parser of answers, inside: what a model writes, told apart as it streams.
 *
 * An answer is: white space, a thinking section perhaps, then text with calls in it. What might become a
 * marker is held back until it cannot; a call that turns out to be none becomes text. */
#ifndef WHIT_RUNTIME_ANSWER_H
#define WHIT_RUNTIME_ANSWER_H

#include "base/json.h"
#include "base/mem.h"
#include "runtime/tool_style.h"

/* One call, {"name": ..., "arguments": ...}, byte by byte. */
typedef struct whit_call_reader {
    enum {
        WHIT_CALL_OPEN,   /* in front of { */
        WHIT_CALL_KEY,    /* in front of a key or } */
        WHIT_CALL_IN_KEY, /* inside its quotes */
        WHIT_CALL_COLON,
        WHIT_CALL_VALUE,     /* in front of a value */
        WHIT_CALL_NAME,      /* inside the name's quotes */
        WHIT_CALL_ARGUMENTS, /* inside a value that is the arguments */
        WHIT_CALL_OTHER,     /* inside another value */
        WHIT_CALL_NEXT,      /* behind a value */
    } state;
    char key[16];
    size_t n_key;
    whit_buf name;                   /* as written, without quotes; decoded once it is whole */
    whit_buf arguments;              /* what cannot be given out yet */
    whit_buf whole;                  /* all of the arguments, to be checked at the end */
    uint32_t depth;                  /* of the value */
    bool in_string, escaped, quoted; /* quoted: the arguments are a JSON text in a string */
    bool has_name, has_arguments, begun;
} whit_call_reader;

struct whit_chat_parser {
    const whit_allocator *allocator;
    const char *think_open, *think_close;
    const char *section; /* the marker in front of calls; NULL: none are looked for */
    whit_call_syntax syntax;
    whit_chat_event_fn *on_event;
    void *user;
    enum {
        WHIT_ANSWER_START, /* nothing but white space so far */
        WHIT_ANSWER_THINKING,
        WHIT_ANSWER_TEXT,
        WHIT_ANSWER_CALLS,
    } state;
    enum {
        WHIT_SECTION_OPEN, /* behind the marker */
        WHIT_SECTION_CALL, /* inside a call */
        WHIT_SECTION_NEXT, /* behind a call */
        WHIT_SECTION_NAME, /* DeepSeek: the name, up to the arguments */
        WHIT_SECTION_TAGS, /* inside tagged arguments */
    } section_state;
    bool list, bare;     /* calls stand in a list; without a marker */
    bool after, stopped; /* after: thinking or calls were there, so white space in front of text goes */
    whit_buf held;       /* not looked at yet, or perhaps a marker */
    whit_buf raw;        /* of a call that is not certain */
    whit_call_reader call;
    whit_buf tools_text; /* the list of tools, whose schemas say which tagged arguments are strings */
    whit_json tools;
    bool has_tools;
    size_t searched; /* held bytes in which no end tag begins */
    uint32_t n_calls;
    whit_buf content, thinking, calls, message; /* of the whole */
};

#endif
