/* SPDX-License-Identifier: MIT
 * Characters as Python's str sees them: classes, and case mappings with their special cases. */
#ifndef WHIT_TEMPLATE_UNICODE_H
#define WHIT_TEMPLATE_UNICODE_H

#include "template/text.h"

bool whit_point_is_space(uint32_t point);   /* str.isspace, also used by strip and split */
bool whit_point_is_newline(uint32_t point); /* line ends of str.splitlines; the caller handles CR LF */
bool whit_point_is_printable(uint32_t point);
bool whit_point_is_alpha(uint32_t point);
bool whit_point_is_decimal(uint32_t point);
bool whit_point_is_digit(uint32_t point);
bool whit_point_is_numeric(uint32_t point);
bool whit_point_is_lower(uint32_t point);
bool whit_point_is_upper(uint32_t point);
bool whit_point_is_title(uint32_t point); /* title case, such as U+01C5 */
bool whit_point_is_name_start(uint32_t point);
bool whit_point_is_name(uint32_t point); /* may continue an identifier */

typedef enum whit_case { WHIT_CASE_LOWER, WHIT_CASE_UPPER, WHIT_CASE_TITLE, WHIT_CASE_FOLD } whit_case;

/* Appends the code point at `offset` in another case; the surrounding text decides the form of a sigma. */
bool whit_builder_cased(whit_builder *b, const whit_text *text, size_t offset, whit_case to);

#endif
