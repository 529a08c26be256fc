/* SPDX-License-Identifier: MIT
 * The status that pclose() returns here is the exit status itself. */
#ifndef WHIT_WINDOWS_SYS_WAIT_H
#define WHIT_WINDOWS_SYS_WAIT_H
#define WIFEXITED(status)   ((void)(status), 1)
#define WEXITSTATUS(status) (status)
#endif
