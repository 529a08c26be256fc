/* SPDX-License-Identifier: MIT
 * Starts programs in a job object, which kills all their processes when it is closed. */
#ifndef WHIT_BASE_WINDOWS_JOB_H
#define WHIT_BASE_WINDOWS_JOB_H

#include "wide.h"

#include <stdbool.h>
#include <stdint.h>

/* Creates an empty job, which the caller closes unless *job is NULL, with limits of the number of processes and of the
 * memory of each; 0: no limit. The result is false, with GetLastError, on failure. */
bool whit_job_make(uint32_t n_processes, uint64_t process_bytes, HANDLE *job);
/* Starts the command line `line`, which begins with "cmd.exe", in the job. Its working folder is `folder`. It inherits
 * only the handles `in`, `out` and `errors`, which must be inheritable. With `environment` NULL it inherits this
 * process's environment. The caller closes *process, which is zeroed before the call, also after a failure unless it is
 * still NULL. The result is false, with GetLastError, on failure. */
bool whit_job_start(HANDLE job, wchar_t *line, const wchar_t *folder, void *environment, HANDLE in, HANDLE out,
                    HANDLE errors, HANDLE *process);

#endif
