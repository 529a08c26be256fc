/* SPDX-License-Identifier: MIT
 * Types and values of call arguments that are written as tagged texts (<parameter=KEY>). */
#ifndef WHIT_RUNTIME_CALL_VALUES_H
#define WHIT_RUNTIME_CALL_VALUES_H

#include "base/json.h"

/* Returns whether a schema accepts only strings, so that its values are written verbatim. Values of other schemas are
 * written as JSON. */
bool whit_call_value_is_text(const whit_json *json, uint32_t schema);
/* Returns the schema of a function's parameter in a list of tools; WHIT_JSON_NONE if not found. */
uint32_t whit_call_parameter(const whit_json *tools, const char *name, size_t n_name, const char *key, size_t n_key);
/* Appends a tagged text as JSON: as a string if is_text; otherwise without surrounding blanks if it is a JSON value, as
 * true, false or null if it is Python's True, False or None, else as a string. Returns false if memory runs out. */
bool whit_call_value_write(const char *text, size_t n_bytes, bool is_text, whit_buf *out);
/* Returns whether a tagged text that begins as JSON ends inside a string, so that an end tag that follows is part of
 * the string. */
bool whit_call_value_is_open(const char *text, size_t n_bytes);

#endif
