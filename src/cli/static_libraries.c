/* SPDX-License-Identifier: MIT
 * Links the optional libraries into the static program and the program for Windows. Other programs open the libraries
 * when they are needed (dlopen); here the linker's --wrap redirects dlopen, dlsym and dlclose to the tables below, so
 * that callers are the same. A library without a table cannot be opened. Each name that a caller looks up must be in a
 * table: tests/packaging/static.sh uses all names. */
#include "editor/curses_names.h"
#include "whit_config.h"

#include <stddef.h>
#include <string.h>
#if __has_include(<nss.h>) /* only glibc has nss.h */
#include <nss.h>
#endif

#define CURL(X)                                                                                                        \
    X(curl_global_init)                                                                                                \
    X(curl_version)                                                                                                    \
    X(curl_easy_init)                                                                                                  \
    X(curl_easy_cleanup)                                                                                               \
    X(curl_easy_reset)                                                                                                 \
    X(curl_easy_setopt)                                                                                                \
    X(curl_easy_getinfo)                                                                                               \
    X(curl_easy_perform)                                                                                               \
    X(curl_slist_append)                                                                                               \
    X(curl_slist_free_all)
#define MICROHTTPD(X)                                                                                                  \
    X(MHD_get_version)                                                                                                 \
    X(MHD_start_daemon)                                                                                                \
    X(MHD_stop_daemon)                                                                                                 \
    X(MHD_quiesce_daemon)                                                                                              \
    X(MHD_add_connection)                                                                                              \
    X(MHD_create_response_from_buffer)                                                                                 \
    X(MHD_create_response_from_callback)                                                                               \
    X(MHD_add_response_header)                                                                                         \
    X(MHD_queue_response)                                                                                              \
    X(MHD_destroy_response)                                                                                            \
    X(MHD_lookup_connection_value)                                                                                     \
    X(MHD_get_connection_values_n)                                                                                     \
    X(MHD_get_connection_info)                                                                                         \
    X(MHD_set_connection_option)
#define SECCOMP(X)                                                                                                     \
    X(seccomp_init)                                                                                                    \
    X(seccomp_release)                                                                                                 \
    X(seccomp_attr_set)                                                                                                \
    X(seccomp_syscall_resolve_name)                                                                                    \
    X(seccomp_rule_add_array)                                                                                          \
    X(seccomp_export_bpf)                                                                                              \
    X(seccomp_arch_native)
#define NCURSESW(X)                                                                                                    \
    X(stdscr)                                                                                                          \
    X(COLORS)                                                                                                          \
    EDITOR_CURSES(X)

struct symbol {
    const char *name;
    void *address;
};

/* Only the addresses of the symbols are used, so all can be declared with this type. */
#define DECLARE(name) extern char name[];
#define ROW(name)     {#name, name},
CURL(DECLARE)
MICROHTTPD(DECLARE)
static const struct symbol curl[] = {CURL(ROW){0}};
static const struct symbol microhttpd[] = {MICROHTTPD(ROW){0}};
#if WHIT_HAVE_SECCOMP
SECCOMP(DECLARE)
static const struct symbol seccomp[] = {SECCOMP(ROW){0}};
#endif
#if WHIT_HAVE_NCURSESW
NCURSESW(DECLARE)
static const struct symbol ncursesw[] = {NCURSESW(ROW){0}};
#endif

static const struct library {
    const char *name;
    const struct symbol *symbols;
} libraries[] = {
    {"libcurl.so.4", curl},
    {"libmicrohttpd.so.12", microhttpd},
#if WHIT_HAVE_SECCOMP
    {"libseccomp.so.2", seccomp},
#endif
#if WHIT_HAVE_NCURSESW
    {"libncursesw.so.6", ncursesw},
#endif
};

void *__wrap_dlopen(const char *name, int flags);
void *__wrap_dlsym(void *library, const char *name);
int __wrap_dlclose(void *library);

void *__wrap_dlopen(const char *name, int flags)
{
    (void)flags;
    for (size_t i = 0; name && i < sizeof libraries / sizeof *libraries; i++)
        if (strcmp(libraries[i].name, name) == 0) return (void *)&libraries[i];
    return NULL;
}

void *__wrap_dlsym(void *library, const char *name)
{
    for (const struct symbol *symbol = ((const struct library *)library)->symbols; symbol->name; symbol++)
        if (strcmp(symbol->name, name) == 0) return symbol->address;
    return NULL;
}

int __wrap_dlclose(void *library)
{
    (void)library;
    return 0;
}

#if __has_include(<nss.h>)
/* Limits the modules by which glibc resolves names to "files" and "dns", which are linked into the program. By default
 * glibc, even in a static program, loads the modules that nsswitch.conf names (dlopen), and modules of another glibc
 * version would crash the program. */
__attribute__((constructor)) static void choose_name_services(void)
{
    static const char *const databases[] = {"hosts", "services", "protocols", "networks", "passwd", "group"};
    for (size_t i = 0; i < sizeof databases / sizeof *databases; i++)
        __nss_configure_lookup(databases[i], i == 0 ? "files dns" : "files");
}
#endif
