/* SPDX-License-Identifier: MIT
 * Builds filters of system calls by libseccomp, which is loaded on first use. A filter is built before a fork and
 * installed after it. */
#include "sandbox/walls.h"
#include "whit_config.h"

#include <errno.h>
#include <stddef.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int whit_filter_install(const struct sock_fprog *program, bool is_watched, bool for_all)
{
    /* TSYNC_ESRCH: if another thread cannot apply the filter, the call fails with ESRCH instead of returning that
     * thread's number. */
    unsigned flags = is_watched ? SECCOMP_FILTER_FLAG_NEW_LISTENER : 0;
    if (for_all) flags |= SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_TSYNC_ESRCH;
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, program);
}

#if WHIT_HAVE_SECCOMP
#include <dlfcn.h>
#include <seccomp.h>
#include <sys/mman.h>

#define NEW_CALLS_FIRST 463 /* system calls newer than Linux 6.9 were not reviewed, and fail with ENOSYS */
#define NEW_CALLS_LAST  600

struct api {
    scmp_filter_ctx (*init)(uint32_t action);
    void (*release)(scmp_filter_ctx filter);
    int (*attr_set)(scmp_filter_ctx filter, enum scmp_filter_attr attr, uint32_t value);
    int (*resolve)(const char *name);
    int (*rule_add)(scmp_filter_ctx filter, uint32_t action, int call, unsigned n,
                    const struct scmp_arg_cmp *comparisons);
    int (*export_bpf)(scmp_filter_ctx filter, int fd);
    uint32_t (*native)(void);
};

static bool open_library(struct api *api)
{
    void *library = dlopen("libseccomp.so.2", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) return false;
    /* ISO C forbids casting dlsym's pointer to a function pointer, so it is stored through a void **, as POSIX
     * recommends. */
    *(void **)&api->init = dlsym(library, "seccomp_init");
    *(void **)&api->release = dlsym(library, "seccomp_release");
    *(void **)&api->attr_set = dlsym(library, "seccomp_attr_set");
    *(void **)&api->resolve = dlsym(library, "seccomp_syscall_resolve_name");
    *(void **)&api->rule_add = dlsym(library, "seccomp_rule_add_array");
    *(void **)&api->export_bpf = dlsym(library, "seccomp_export_bpf");
    *(void **)&api->native = dlsym(library, "seccomp_arch_native");
    dlclose(library);
    return api->init && api->release && api->attr_set && api->resolve && api->rule_add && api->export_bpf &&
        api->native;
}

bool whit_filter_is_here(void)
{
    struct api api;
    return open_library(&api);
}

int whit_call_number(const whit_call *call)
{
    struct api api;
    if (call->number) return call->number;
    return open_library(&api) ? api.resolve(call->name) : -1;
}

static bool is_wanted(const whit_call *call, const whit_filter_wants *wants)
{
    switch (call->kind) {
    case CALL_REFUSE: return true;
    case CALL_UNSPACED:
    case CALL_CHANGE: return !wants->has_namespaces || call->path_at >= 0;
    case CALL_PROCESS:
    case CALL_GROUP: return !wants->has_namespaces;
    case CALL_WATCH:
    case CALL_LIMIT: return true;
    case CALL_REQUEST: return false; /* add_requests adds the rules for ioctl */
    case CALL_SOCKET: return !wants->may_connect;
    case CALL_START: return wants->is_watched || !wants->may_start;
    default: return wants->is_watched;
    }
}

static bool add_rules(const struct api *api, scmp_filter_ctx filter, const whit_filter_wants *wants)
{
    const uint32_t refuse = wants->is_watched ? SCMP_ACT_NOTIFY : SCMP_ACT_ERRNO(EPERM);
    for (const whit_call *call = whit_calls; call->name; call++) {
        int number = call->number ? call->number : api->resolve(call->name);
        if (number < 0 || !is_wanted(call, wants)) continue;
        struct scmp_arg_cmp only = {(unsigned)call->path_at, SCMP_CMP_MASKED_EQ, call->mask, call->value};
        int result = api->rule_add(filter, refuse, number, call->mask ? 1 : 0, &only);
        if (result != 0 && result != -EEXIST) return false;
    }
    /* The flags by which clone creates namespaces. clone3 (435) has its flags in memory, where filters cannot read
     * them, so it fails with ENOSYS, and libraries then call clone. */
    static const uint64_t spaces[] = {0x00020000, 0x02000000, 0x04000000, 0x08000000,
                                      0x10000000, 0x20000000, 0x40000000};
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++) {
        struct scmp_arg_cmp set = {0, SCMP_CMP_MASKED_EQ, spaces[i], spaces[i]};
        if (api->rule_add(filter, refuse, SCMP_SYS(clone), 1, &set) != 0) return false;
    }
    if (api->rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), 435, 0, NULL) != 0) return false;
    for (int number = NEW_CALLS_FIRST; number <= NEW_CALLS_LAST; number++)
        if (api->rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), number, 0, NULL) != 0) return false;
    return true;
}

/* Appends instructions that run before those of libseccomp: an ioctl whose request is in whit_requests is allowed, any
 * other ioctl is refused. libseccomp cannot express this list, because its default action here is to allow. Only the
 * low 32 bits of a request are compared, as in the kernel. */
static bool add_requests(const struct api *api, const whit_filter_wants *wants, whit_buf *code)
{
    const uint32_t refuse = wants->is_watched ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ERRNO | EPERM;
    const uint32_t low = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 0 : 4, n = (uint32_t)whit_n_requests;
    const struct sock_filter before[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, api->native(), 0, (uint8_t)(n + 5)),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)api->resolve("ioctl"), 0, (uint8_t)(n + 3)),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1]) + low),
    };
    const struct sock_filter after[] = {BPF_STMT(BPF_RET | BPF_K, refuse),
                                        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    bool ok = whit_buf_append(code, before, sizeof before);
    for (uint32_t i = 0; i < n; i++) {
        const struct sock_filter look = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, whit_requests[i], (uint8_t)(n - i), 0);
        ok = ok && whit_buf_append(code, &look, sizeof look);
    }
    return ok && whit_buf_append(code, after, sizeof after);
}

whit_status whit_filter_make(const whit_filter_wants *wants, whit_buf *code, whit_error *error)
{
    struct api api;
    uint8_t piece[4096];
    ssize_t got = -1;
    if (!open_library(&api))
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "libseccomp (libseccomp.so.2) is not on this machine: install libseccomp2");
    scmp_filter_ctx filter = api.init(SCMP_ACT_ALLOW);
    int fd = memfd_create("filter", MFD_CLOEXEC);
    /* A call with system call numbers of another architecture (32-bit, x32) kills the process. */
    bool ok = filter && fd >= 0 && api.attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS) == 0;
    /* builds a binary tree; libseccomp before 2.5 does not support this */
    if (ok) (void)api.attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    ok = ok && add_rules(&api, filter, wants) && api.export_bpf(filter, fd) == 0 && lseek(fd, 0, SEEK_SET) == 0 &&
        add_requests(&api, wants, code);
    while (ok && (got = read(fd, piece, sizeof piece)) > 0) ok = whit_buf_append(code, piece, (size_t)got);
    if (fd >= 0) close(fd);
    if (filter) api.release(filter);
    if (code->failed) return whit_fail_memory(error, "a filter of system calls", code->size_bytes);
    return ok && got == 0
        ? WHIT_OK
        : whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                    "libseccomp cannot make the filter of system calls: install version 2.5 or later");
}

#else

bool whit_filter_is_here(void)
{
    return false;
}

int whit_call_number(const whit_call *call)
{
    return call->number ? call->number : -1;
}

whit_status whit_filter_make(const whit_filter_wants *wants, whit_buf *code, whit_error *error)
{
    (void)wants, (void)code;
    return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                     "no sandbox is possible: whit was built without libseccomp; install its headers and build again");
}
#endif
