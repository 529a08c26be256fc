/* SPDX-License-Identifier: MIT */
#include "job.h"

#include <stdlib.h>

bool whit_job_make(uint32_t n_processes, uint64_t process_bytes, HANDLE *job)
{
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits = {
        .BasicLimitInformation = {.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE, .ActiveProcessLimit = n_processes},
        .ProcessMemoryLimit = process_bytes};
    if (n_processes) limits.BasicLimitInformation.LimitFlags |= JOB_OBJECT_LIMIT_ACTIVE_PROCESS;
    if (process_bytes) limits.BasicLimitInformation.LimitFlags |= JOB_OBJECT_LIMIT_PROCESS_MEMORY;
    *job = CreateJobObjectW(NULL, NULL);
    return *job && SetInformationJobObject(*job, JobObjectExtendedLimitInformation, &limits, sizeof limits);
}

bool whit_job_start(HANDLE job, wchar_t *line, const wchar_t *folder, void *environment, HANDLE in, HANDLE out,
                    HANDLE errors, HANDLE *process)
{
    const DWORD flags = CREATE_SUSPENDED | CREATE_NO_WINDOW | CREATE_UNICODE_ENVIRONMENT | EXTENDED_STARTUPINFO_PRESENT;
    STARTUPINFOEXW start = {.StartupInfo = {.cb = sizeof start,
                                            .dwFlags = STARTF_USESTDHANDLES,
                                            .hStdInput = in,
                                            .hStdOutput = out,
                                            .hStdError = errors}};
    HANDLE kept[3] = {in, out, errors};
    /* the list of handles must not contain a handle twice */
    const SIZE_T n_kept = errors == out || errors == in ? 2 : 3;
    PROCESS_INFORMATION made = {0};
    SIZE_T n_bytes = 0;
    InitializeProcThreadAttributeList(NULL, 1, 0, &n_bytes);
    wchar_t shell[WHIT_WIDE_MAX];
    LPPROC_THREAD_ATTRIBUTE_LIST list = malloc(n_bytes);
    bool is_list = list && InitializeProcThreadAttributeList(list, 1, 0, &n_bytes);
    start.lpAttributeList = list;
    bool ok = is_list &&
        UpdateProcThreadAttribute(list, 0, PROC_THREAD_ATTRIBUTE_HANDLE_LIST, kept, n_kept * sizeof *kept, NULL,
                                  NULL) &&
        whit_wide_shell(shell) &&
        CreateProcessW(shell, line, NULL, NULL, TRUE, flags, environment, folder, &start.StartupInfo, &made);
    DWORD code = GetLastError();
    if (is_list) DeleteProcThreadAttributeList(list);
    free(list);
    if (!ok) {
        SetLastError(code);
        return false;
    }
    *process = made.hProcess;
    ok = AssignProcessToJobObject(job, made.hProcess) && ResumeThread(made.hThread) != (DWORD)-1;
    code = GetLastError();
    if (!ok) TerminateProcess(made.hProcess, 1);
    CloseHandle(made.hThread);
    SetLastError(code);
    return ok;
}
