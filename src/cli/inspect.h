/* SPDX-License-Identifier: MIT
 * Declares functions that the files of whit inspect share. */
#ifndef WHIT_CLI_INSPECT_H
#define WHIT_CLI_INSPECT_H

#include "cli/cli.h"
#include "model/adapter.h"

json_t *cli_table_to_json(const whit_table *table);
void cli_print_table(cli_call *call, const char *title, const json_t *table);

/* Describe an ADAPTER frame as a JSON object, and print such an object as a line. */
json_t *cli_describe_adapter(const whit_ndf_appended *frame);
void cli_print_adapter(cli_call *call, const json_t *adapter);
/* If the file is loose, that is without a model, prints its adapter, or reports that its first frame is no adapter, and
 * sets *status. Returns false if the file is not loose. */
bool cli_inspect_adapter(cli_call *call, const char *path, bool json, int *status);
/* If the file is a session, prints it and sets *status. Returns false if the file is something else. */
bool cli_inspect_session(cli_call *call, const char *path, bool json, int *status);

#endif
