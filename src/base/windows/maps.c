/* SPDX-License-Identifier: MIT
 * Implements mappings of files and of anonymous memory. */
#include "wide.h"

#include <sys/mman.h>

#include <psapi.h>

static DWORD page_of(int protection, bool copies)
{
    if (protection & PROT_EXEC) return protection & PROT_WRITE ? PAGE_EXECUTE_READWRITE : PAGE_EXECUTE_READ;
    if (protection & PROT_WRITE) return copies ? PAGE_WRITECOPY : PAGE_READWRITE;
    return protection & PROT_READ ? PAGE_READONLY : PAGE_NOACCESS;
}

static void *map_fd(size_t size_bytes, int protection, int flags, int fd, off_t offset)
{
    bool copies = flags & MAP_PRIVATE;
    uint64_t end = (uint64_t)offset + size_bytes;
    HANDLE file = (HANDLE)_get_osfhandle(fd);
    if (file == INVALID_HANDLE_VALUE) {
        errno = EBADF;
        return MAP_FAILED;
    }
    /* Size 0 means the file's size. The end of the map is not passed, because a size beyond the end of the file would
     * extend the file. */
    (void)end;
    HANDLE section = CreateFileMappingW(file, NULL, page_of(protection, copies), 0, 0, NULL);
    if (!section) {
        whit_wide_error();
        return MAP_FAILED;
    }
    DWORD way = FILE_MAP_READ;
    if (protection & PROT_WRITE) way = copies ? FILE_MAP_COPY : FILE_MAP_WRITE;
    void *begin = MapViewOfFile(section, way, (DWORD)((uint64_t)offset >> 32), (DWORD)offset, size_bytes);
    if (!begin) whit_wide_error();
    CloseHandle(section); /* the view keeps the section open */
    return begin ? begin : MAP_FAILED;
}

void *mmap(void *wanted, size_t size_bytes, int protection, int flags, int fd, off_t offset)
{
    if (!size_bytes) {
        errno = EINVAL;
        return MAP_FAILED;
    }
    if (flags & MAP_FIXED) { /* Windows cannot replace a mapping at addresses that are in use */
        errno = ENOTSUP;
        return MAP_FAILED;
    }
    if (!(flags & MAP_ANONYMOUS)) return map_fd(size_bytes, protection, flags, fd, offset);
    (void)wanted;
    void *begin = VirtualAlloc(NULL, size_bytes, MEM_RESERVE | MEM_COMMIT, page_of(protection, false));
    if (begin) return begin;
    whit_wide_error();
    return MAP_FAILED;
}

int munmap(void *begin, size_t size_bytes)
{
    MEMORY_BASIC_INFORMATION info;
    (void)size_bytes; /* Windows can only release a mapping as a whole */
    if (!VirtualQuery(begin, &info, sizeof info)) return whit_wide_error();
    bool ok = info.Type == MEM_MAPPED ? UnmapViewOfFile(begin) : VirtualFree(begin, 0, MEM_RELEASE);
    return ok ? 0 : whit_wide_error();
}

int mprotect(void *begin, size_t size_bytes, int protection)
{
    DWORD before;
    return VirtualProtect(begin, size_bytes, page_of(protection, false), &before) ? 0 : whit_wide_error();
}

int madvise(void *begin, size_t size_bytes, int advice)
{
    MEMORY_BASIC_INFORMATION info;
    if (advice != MADV_DONTNEED || !VirtualQuery(begin, &info, sizeof info) || info.Type != MEM_MAPPED) return 0;
    VirtualUnlock(begin, size_bytes); /* VirtualUnlock removes pages that are not locked from the working set */
    return 0;
}

int getrusage(int who, struct rusage *usage)
{
    FILETIME begun, ended, system, user;
    PROCESS_MEMORY_COUNTERS memory = {.cb = sizeof memory};
    (void)who;
    *usage = (struct rusage){0};
    if (!GetProcessTimes(GetCurrentProcess(), &begun, &ended, &system, &user)) return whit_wide_error();
    uint64_t user_us = ((uint64_t)user.dwHighDateTime << 32 | user.dwLowDateTime) / 10;
    uint64_t system_us = ((uint64_t)system.dwHighDateTime << 32 | system.dwLowDateTime) / 10;
    usage->ru_utime = (struct timeval){.tv_sec = (long)(user_us / 1000000), .tv_usec = (long)(user_us % 1000000)};
    usage->ru_stime = (struct timeval){.tv_sec = (long)(system_us / 1000000), .tv_usec = (long)(system_us % 1000000)};
    if (GetProcessMemoryInfo(GetCurrentProcess(), &memory, sizeof memory)) {
        usage->ru_maxrss = (long)(memory.PeakWorkingSetSize >> 10);
        usage->ru_minflt = (long)memory.PageFaultCount;
    }
    return 0;
}

long sysconf(int name)
{
    SYSTEM_INFO info;
    MEMORYSTATUSEX memory = {.dwLength = sizeof memory};
    GetSystemInfo(&info);
    GlobalMemoryStatusEx(&memory);
    switch (name) {
    case _SC_PAGESIZE: return (long)info.dwPageSize;
    case _SC_NPROCESSORS_ONLN: return (long)info.dwNumberOfProcessors;
    case _SC_CLK_TCK: return 100;
    case _SC_PHYS_PAGES: return (long)(memory.ullTotalPhys / info.dwPageSize);
    case _SC_AVPHYS_PAGES: return (long)(memory.ullAvailPhys / info.dwPageSize);
    default: errno = EINVAL; return -1;
    }
}
