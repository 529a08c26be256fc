/* SPDX-License-Identifier: MIT */
#include "wide.h"

#include <shellapi.h>
#include <utf8proc.h>

#include "base/mem.h"
#include "base/path.h"
#include "base/system.h"

#ifndef ENABLE_VIRTUAL_TERMINAL_PROCESSING
#define ENABLE_VIRTUAL_TERMINAL_PROCESSING 4
#endif

/* ---- start of the process, paths, memory ---------------------------------------------------- */

static UINT console_before;

/* Restores the console's code page from before the program's start. */
static void restore_console(void)
{
    SetConsoleOutputCP(console_before);
}

/* Replaces *argv by the arguments in UTF-8, which are never freed; false if memory runs out. */
static bool read_arguments(int *argc, char ***argv)
{
    int n;
    wchar_t **wide = CommandLineToArgvW(GetCommandLineW(), &n);
    char **items = wide ? calloc((size_t)n + 1, sizeof *items) : NULL;
    bool ok = items;
    for (int i = 0; ok && i < n; i++) {
        size_t size_bytes = wcslen(wide[i]) * 3 + 1;
        items[i] = malloc(size_bytes);
        ok = items[i] && WideCharToMultiByte(CP_UTF8, 0, wide[i], -1, items[i], (int)size_bytes, NULL, NULL) > 0;
    }
    if (wide) LocalFree(wide);
    if (!ok) return false;
    *argc = n;
    *argv = items;
    return true;
}

void whit_system_begin(int *argc, char ***argv)
{
    DWORD mode;
    read_arguments(argc, argv);
    for (int fd = 0; fd < 3; fd++) {
        HANDLE handle = (HANDLE)_get_osfhandle(fd);
        _setmode(fd, _O_BINARY);
        if (fd && handle != INVALID_HANDLE_VALUE && GetConsoleMode(handle, &mode))
            SetConsoleMode(handle, mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING);
    }
    setvbuf(stderr, NULL, _IONBF, 0);
    console_before = GetConsoleOutputCP();
    if (console_before && console_before != CP_UTF8 && SetConsoleOutputCP(CP_UTF8)) atexit(restore_console);
    /* Consoles of Windows 10 understand the escape sequences of this terminal. */
    if (!getenv("TERM") && _isatty(1)) setenv("TERM", "xterm-256color", 0);
}

bool whit_path_is_absolute(const char *path)
{
    bool has_drive = ((path[0] | 32) >= 'a' && (path[0] | 32) <= 'z') && path[1] == ':';
    return path[0] == '/' || path[0] == '\\' || (has_drive && (path[2] == '/' || path[2] == '\\'));
}

/* Returns whether the path component at `part` names a device, also with a suffix such as ".txt". */
static bool is_device(const char *part)
{
    static const char *const devices[] = {"con", "prn", "aux", "nul", "conin$", "conout$"};
    const size_t n = strcspn(part, "/. ");
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
        if (n == strlen(devices[i]) && strncasecmp(part, devices[i], n) == 0) return true;
    return n > 3 && (strncasecmp(part, "com", 3) == 0 || strncasecmp(part, "lpt", 3) == 0) &&
        (n == 4 ? part[3] >= '0' && part[3] <= '9' : (uint8_t)part[3] >= 0x80); /* superscript digits count too */
}

bool whit_path_is_relative(const char *path)
{
    if (path[0] == '/' || strpbrk(path, "\\:")) return false;
    for (const char *part = path; part; part = strchr(part, '/') ? strchr(part, '/') + 1 : NULL) {
        const size_t n = strcspn(part, "/");
        if (is_device(part)) return false;
        const bool is_step = n <= 2 && strspn(part, ".") >= n;
        /* Windows removes a trailing dot or space from names */
        if (n && !is_step && (part[n - 1] == '.' || part[n - 1] == ' ')) return false;
    }
    return true;
}

void whit_path_adopt(char *path)
{
    for (; *path; path++)
        if (*path == '\\') *path = '/';
}

bool whit_system_replaces_mapped(void)
{
    return false;
}

int whit_system_columns(uint32_t code)
{
    return code < 32 || (code > 126 && code < 160) ? -1 : utf8proc_charwidth((utf8proc_int32_t)code);
}

void *whit_system_alloc(size_t size_bytes, size_t alignment_bytes)
{
    return _aligned_malloc(size_bytes, alignment_bytes);
}

void whit_system_free(void *memory)
{
    _aligned_free(memory);
}

/* ---- threads -------------------------------------------------------------------------------- */

void whit_word_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns)
{
    DWORD timeout_ms = timeout_ns == WHIT_NO_TIMEOUT ? INFINITE : (DWORD)((timeout_ns + 999999) / 1000000);
    WaitOnAddress((volatile void *)word, &expected, sizeof expected, timeout_ms);
}

void whit_word_wake(_Atomic uint32_t *word, uint32_t n)
{
    enum { SINGLE_MAX = 4 }; /* for more threads one call wakes all waiting threads, which whit_word_wake may do */
    if (n > SINGLE_MAX) {
        WakeByAddressAll((void *)word);
        return;
    }
    for (uint32_t i = 0; i < n; i++) WakeByAddressSingle((void *)word);
}

bool whit_system_interleave(void *memory, size_t size_bytes)
{
    (void)memory, (void)size_bytes;
    return false;
}

void whit_thread_name(const char *name)
{
    (void)name; /* no effect: winpthreads names a thread by raising an exception for a debugger, which is too slow */
}

unsigned whit_thread_processor(void)
{
    return GetCurrentProcessorNumber();
}

void whit_thread_pin(pthread_t thread, unsigned processor)
{
    HANDLE handle = pthread_gethandle(thread);
    if (processor < 64 && handle) SetThreadAffinityMask(handle, (DWORD_PTR)1 << processor);
}

void whit_thread_move(unsigned processor)
{
    DWORD_PTR before = processor < 64 ? SetThreadAffinityMask(GetCurrentThread(), (DWORD_PTR)1 << processor) : 0;
    if (before) SetThreadAffinityMask(GetCurrentThread(), before);
}

/* ---- the machine ---------------------------------------------------------------------------- */

/* Masks of the logical processors of each physical core in the first group of 64 processors; read once. */
static struct {
    pthread_once_t once;
    size_t n;
    uint64_t masks[64];
} cores = {.once = PTHREAD_ONCE_INIT};

static void read_cores(void)
{
    SYSTEM_LOGICAL_PROCESSOR_INFORMATION items[256];
    DWORD size_bytes = sizeof items;
    if (!GetLogicalProcessorInformation(items, &size_bytes)) return;
    for (size_t i = 0; i < size_bytes / sizeof *items && cores.n < 64; i++)
        if (items[i].Relationship == RelationProcessorCore) cores.masks[cores.n++] = items[i].ProcessorMask;
}

unsigned whit_processor_core(unsigned processor)
{
    pthread_once(&cores.once, read_cores);
    for (size_t i = 0; i < cores.n; i++)
        if (processor < 64 && cores.masks[i] >> processor & 1) return (unsigned)__builtin_ctzll(cores.masks[i]);
    return processor;
}

void whit_system_cores(whit_cpu *cpu)
{
    DWORD_PTR allowed = 0, all;
    pthread_once(&cores.once, read_cores);
    GetProcessAffinityMask(GetCurrentProcess(), &allowed, &all);
    for (size_t i = 0; i < cores.n; i++) {
        uint64_t mine = cores.masks[i] & allowed;
        if (!mine) continue;
        cpu->n_logical += (uint32_t)__builtin_popcountll(mine);
        cpu->core_cpu[cpu->n_cores++] = (uint16_t)__builtin_ctzll(mine);
    }
    if (!cpu->n_cores) cpu->n_logical = cpu->n_cores = 1;
}

double whit_system_quota(void)
{
    return 0;
}

uint64_t whit_memory_available(void)
{
    MEMORYSTATUSEX memory = {.dwLength = sizeof memory};
    return GlobalMemoryStatusEx(&memory) ? memory.ullAvailPhys : 0;
}

bool whit_system_tiles(void)
{
    /* As on Linux, a process must ask for the tile registers before it uses them, or its first tile instruction ends
     * it. Windows 10 lacks the call. */
    enum { TILE_DATA = 18 };
    typedef BOOL WINAPI enable_features(DWORD64 features);
    HMODULE kernel = GetModuleHandleW(L"kernel32.dll");
    enable_features *enable =
        (enable_features *)(uintptr_t)GetProcAddress(kernel, "EnableProcessOptionalXStateFeatures");
    return enable && enable((DWORD64)1 << TILE_DATA);
}
