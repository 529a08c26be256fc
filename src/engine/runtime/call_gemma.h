/* SPDX-License-Identifier: MIT
 * Reads Gemma 4's notation of arguments: {key:<|"|>text<|"|>,n:3,list:[1,2],o:{k:true}}. Keys are bare, strings are
 * verbatim between two marks, everything else is as in JSON. Source: the model's chat template. */
#ifndef WHIT_RUNTIME_CALL_GEMMA_H
#define WHIT_RUNTIME_CALL_GEMMA_H

#include "base/json.h"
#include "grammar/automaton.h"

#define WHIT_GEMMA_MARK      "<|\"|>"
#define WHIT_GEMMA_DEPTH_MAX 64

/* State of an incremental reader of an object, whose opening brace is already read. */
typedef struct whit_gemma_reader {
    enum {
        WHIT_GEMMA_KEY,   /* a key is expected */
        WHIT_GEMMA_VALUE, /* a value is expected */
        WHIT_GEMMA_TEXT,  /* a string is being read */
        WHIT_GEMMA_NEXT,  /* a value has ended */
    } state;
    uint64_t lists; /* bit i: the container at depth i is a list */
    uint32_t depth; /* number of containers inside the outermost object */
    bool is_first;  /* the innermost open container has no element yet */
} whit_gemma_reader;

typedef enum whit_gemma_result {
    WHIT_GEMMA_MORE,
    WHIT_GEMMA_DONE,      /* the object's closing brace was read */
    WHIT_GEMMA_MALFORMED, /* the bytes after the consumed ones are not in this notation */
    WHIT_GEMMA_NO_MEMORY,
} whit_gemma_result;

whit_gemma_reader whit_gemma_begin(void);
/* Reads as much of the text as possible, appends it to `out` as JSON (without the outermost opening brace), and
 * returns the number of bytes consumed. The caller passes the rest again together with the following bytes. */
size_t whit_gemma_read(whit_gemma_reader *reader, const char *text, size_t n_bytes, whit_buf *out,
                       whit_gemma_result *result);

/* Builds the grammar rule of a function's arguments, without the braces around them. held: the arguments are
 * constrained to the properties of the function's schema, in the order of their names, as the template writes them;
 * otherwise any arguments are allowed whose names consist of letters, digits, -, . and _. Error messages begin with
 * `name`, and name the place in the schema that no rule can express. */
whit_status whit_call_gemma_rule(whit_automaton *graph, const whit_json *json, uint32_t parameters, bool held,
                                 const char *name, uint32_t *rule, whit_error *error);

#endif
