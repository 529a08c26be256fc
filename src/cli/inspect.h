/* SPDX-License-Identifier: MIT
 * Declares what the files of whit inspect share. */
#ifndef WHIT_CLI_INSPECT_H
#define WHIT_CLI_INSPECT_H

#include "cli/cli.h"
#include "model/adapter.h"

json_t *cli_table_to_json(const whit_table *table);
void cli_print_table(cli_call *call, const char *title, const json_t *table);

/* Describes an ADAPTER frame as an object, and prints that object as a line. */
json_t *cli_describe_adapter(const whit_ndf_appended *frame);
void cli_print_adapter(cli_call *call, const json_t *adapter);
/* Shows a loose adapter; false if the file is not a loose adapter. */
bool cli_inspect_adapter(cli_call *call, const char *path, bool json, int *status);
/* Shows a session; false if the file is not a session. */
bool cli_inspect_session(cli_call *call, const char *path, bool json, int *status);

#endif
