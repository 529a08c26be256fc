/* SPDX-License-Identifier: MIT
 * The person's own editor where programs cannot be started: refused. */
#include "cli/external.h"

#include "base/status.h"

whit_status cli_editor_text(const char *name, whit_buf *text, bool *is_done, whit_error *error)
{
    (void)text;
    *is_done = false;
    return whit_fail(error, WHIT_ERROR_UNSUPPORTED, "%s: the program for this system cannot run an editor", name);
}
