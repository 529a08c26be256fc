/* SPDX-License-Identifier: MIT
 * Declares Python's ways of formatting: "%s" % x, "{}".format(x), strftime, and json.dumps. */
#ifndef WHIT_TEMPLATE_FORMAT_H
#define WHIT_TEMPLATE_FORMAT_H

#include "template/machine.h"

/* Formats like Python's `format % arguments`. `arguments` is a tuple of values, a dict whose keys the format names, or
 * a single value. */
whit_status whit_print_percent(whit_machine *m, const whit_text *format, whit_datum arguments, whit_datum *result);
/* Formats like Python's str.format. */
whit_status whit_print_braces(whit_machine *m, const whit_text *format, const whit_arguments *arguments,
                              whit_datum *result);
/* Formats like Python's datetime.strftime in the C locale. */
whit_status whit_print_time(whit_machine *m, const whit_template_time *time, const whit_text *format,
                            whit_datum *result);

typedef struct whit_json_style {
    bool ascii, sort_keys, has_indent;
    const whit_text *indent; /* text that indents a line by one level */
    const whit_text *item_separator, *key_separator;
} whit_json_style;
whit_status whit_print_json(whit_machine *m, whit_datum value, const whit_json_style *style, whit_datum *result);

#endif
