/* SPDX-License-Identifier: MIT
 * Starts programs in a job object, which kills all their processes when it is closed. */
#ifndef WHIT_BASE_WINDOWS_JOB_H
#define WHIT_BASE_WINDOWS_JOB_H

#include "wide.h"

#include <stdbool.h>
#include <stdint.h>

/* Makes an empty job. Limits of 0 are no limits. The result is false on failure, with GetLastError. */
bool whit_job_make(uint32_t n_processes, uint64_t process_bytes, HANDLE *job);
/* Starts a line that begins with "cmd.exe" in the job, with these three as its only handles; they must be inheritable.
 * `environment` NULL: that of this process; `folder` is its working folder. *process is the caller's to close. The
 * result is false on failure, with GetLastError. */
bool whit_job_start(HANDLE job, wchar_t *line, const wchar_t *folder, void *environment, HANDLE in, HANDLE out,
                    HANDLE errors, HANDLE *process);

#endif
