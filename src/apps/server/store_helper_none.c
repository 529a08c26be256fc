/* SPDX-License-Identifier: MIT
 * Replaces the store's helper on systems where no process can be forked: the store is not changed over HTTP. */
#include "server/store.h"

whit_status whit_store_open(const whit_server_store *store, int *fd, whit_error *error)
{
    (void)store;
    *fd = -1;
    return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                     "--allow-pull is not supported on this system; use `whit pull`, then serve the model by -m");
}
