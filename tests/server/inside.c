/* SPDX-License-Identifier: MIT
 * Tests code inside a server that has given up its rights: it cannot reach other files, connections and programs,
 * neither from the first thread nor from a connection's; what it needs still works. */
#include "test_folder.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "sandbox/sandbox.h"
#include "server/server.h"
#include "tiny_model.h"

enum { WAIT_S = 120 };

/* used in the server's process; set before it starts */
static char secret[256], other[256], served[256], cache[256];
static int other_fd = -1, elsewhere_fd = -1, results = -1;
static struct sockaddr_in elsewhere;
static struct sockaddr_un elsewhere_local;
static atomic_int stop, reload;
static bool sees_cuts;

/* ---- ways out -------------------------------------------------------------------------------------- */

/* These ways return -1 with errno if they are refused. */
static int at(const char *folder, const char *name, int flags)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return open(path, flags | O_CLOEXEC, 0600);
}

static int read_secret(void)
{
    return open(secret, O_RDONLY | O_CLOEXEC);
}

static int write_secret(void)
{
    return open(secret, O_WRONLY | O_CLOEXEC);
}

/* Landlock restricts truncation from its ABI 3 on. */
static int cut_secret(void)
{
    errno = EACCES;
    return sees_cuts ? truncate(secret, 0) : -1;
}

static int read_by_descriptor(void)
{
    return openat(other_fd, "secret", O_RDONLY | O_CLOEXEC);
}

static int read_by_link(void)
{
    char path[600];
    snprintf(path, sizeof path, "%s/way", cache);
    unlink(path);
    return symlink(secret, path) == 0 ? open(path, O_RDONLY | O_CLOEXEC) : 0;
}

static int link_secret(void)
{
    char path[600];
    snprintf(path, sizeof path, "%s/secret", cache);
    return link(secret, path);
}

static int take_secret(void)
{
    char path[600];
    snprintf(path, sizeof path, "%s/taken", cache);
    return rename(secret, path);
}

static int make_file(void)
{
    return at(other, "new", O_WRONLY | O_CREAT);
}

static int list_folder(void)
{
    DIR *folder = opendir(other);
    return folder ? closedir(folder) : -1;
}

static int read_users(void)
{
    return open("/etc/passwd", O_RDONLY | O_CLOEXEC);
}

static int read_own_memory(void)
{
    return open("/proc/self/mem", O_RDWR | O_CLOEXEC);
}

static int read_environment(void)
{
    return open("/proc/self/environ", O_RDONLY | O_CLOEXEC);
}

static int change_model(void)
{
    return at(served, "1.gguf", O_WRONLY);
}

static int remove_model(void)
{
    char path[600];
    snprintf(path, sizeof path, "%s/0.gguf", served);
    return unlink(path);
}

static int make_beside_model(void)
{
    return at(served, "new", O_WRONLY | O_CREAT);
}

static int let_others_write(void)
{
    return chmod(served, 0777);
}

static int give_away(void)
{
    return chown(secret, getuid(), getgid());
}

static int change_times(void)
{
    return utimensat(AT_FDCWD, secret, NULL, 0);
}

static int open_socket(void)
{
    return socket(AF_INET, SOCK_STREAM, 0);
}

static int open_socket6(void)
{
    return socket(AF_INET6, SOCK_DGRAM, 0);
}

static int open_local_socket(void)
{
    return socket(AF_UNIX, SOCK_STREAM, 0);
}

/* Connects with a socket that was opened before the server was confined. */
static int connect_out(void)
{
    return connect(elsewhere_fd, (const struct sockaddr *)&elsewhere, sizeof elsewhere);
}

static int connect_local(void)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) return -1;
    return connect(pair[0], (const struct sockaddr *)&elsewhere_local, sizeof elsewhere_local);
}

static int send_out(void)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) != 0) return -1;
    return (int)sendto(pair[0], "x", 1, 0, (const struct sockaddr *)&elsewhere_local, sizeof elsewhere_local);
}

static int listen_anew(void)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    return bind(elsewhere_fd, (const struct sockaddr *)&any, sizeof any);
}

static int run_program(void)
{
    char *const arguments[] = {"true", NULL};
    return execve("/bin/true", arguments, NULL);
}

static int run_memory(void)
{
    char *const arguments[] = {"x", NULL};
    int fd = memfd_create("x", MFD_CLOEXEC);
    if (fd < 0 || write(fd, "#!/bin/true\n", 12) != 12) return 0;
    return (int)syscall(SYS_execveat, fd, "", arguments, NULL, 0x1000 /* AT_EMPTY_PATH */);
}

static int trace_parent(void)
{
    return (int)ptrace(PTRACE_SEIZE, getppid(), NULL, NULL);
}

static int read_parent(void)
{
    char byte;
    struct iovec local = {&byte, 1}, remote = {&results, 1};
    return (int)process_vm_readv(getppid(), &local, 1, &remote, 1, 0);
}

static int mount_disk(void)
{
    return mount("none", served, "tmpfs", 0, NULL);
}

static int change_root(void)
{
    return chroot("/");
}

static int leave_spaces(void)
{
    return (int)syscall(SYS_unshare, 0x10000000 /* CLONE_NEWUSER */);
}

static int ask_ring(void)
{
    return (int)syscall(425 /* io_uring_setup */, 4, NULL);
}

static int load_filter(void)
{
    return (int)syscall(SYS_bpf, 0, NULL, 0);
}

static int watch_kernel(void)
{
    return (int)syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0);
}

static int read_keys(void)
{
    return (int)syscall(SYS_keyctl, 0, -3, 0);
}

#define WAY(name)                                                                                                      \
    {                                                                                                                  \
#name, name                                                                                                    \
    }
static const struct {
    const char *name;
    int (*go)(void);
} ways[] = {WAY(read_secret),       WAY(write_secret), WAY(cut_secret),        WAY(read_by_descriptor),
            WAY(read_by_link),      WAY(link_secret),  WAY(take_secret),       WAY(make_file),
            WAY(list_folder),       WAY(read_users),   WAY(read_own_memory),   WAY(read_environment),
            WAY(change_model),      WAY(remove_model), WAY(make_beside_model), WAY(let_others_write),
            WAY(give_away),         WAY(change_times), WAY(open_socket),       WAY(open_socket6),
            WAY(open_local_socket), WAY(connect_out),  WAY(connect_local),     WAY(send_out),
            WAY(listen_anew),       WAY(run_program),  WAY(run_memory),        WAY(trace_parent),
            WAY(read_parent),       WAY(mount_disk),   WAY(change_root),       WAY(leave_spaces),
            WAY(ask_ring),          WAY(load_filter),  WAY(watch_kernel),      WAY(read_keys)};
enum { N_WAYS = sizeof ways / sizeof *ways };

static void *nothing(void *user)
{
    return user;
}

/* Returns whether everything still works that a server does regularly. */
static bool works(void)
{
    pthread_t thread;
    int model = at(served, "0.gguf", O_RDONLY), kept = at(cache, "kept", O_WRONLY | O_CREAT);
    bool ok = model >= 0 && kept >= 0 && write(kept, "x", 1) == 1 && pthread_create(&thread, NULL, nothing, NULL) == 0;
    if (ok) pthread_join(thread, NULL);
    if (model >= 0) close(model);
    if (kept >= 0) close(kept);
    return ok;
}

static void tell(const char *where, const char *what, bool held)
{
    dprintf(results, "%s %s %s\n", where, held ? "held" : "OUT", what);
}

static void try_all(const char *where)
{
    for (size_t i = 0; i < N_WAYS; i++) {
        errno = 0;
        int result = ways[i].go();
        bool refused = errno == EPERM || errno == EACCES || errno == ENOSYS || errno == EXDEV;
        tell(where, ways[i].name, result < 0 && refused);
    }
    tell(where, "works", works());
}

/* ---- the server -------------------------------------------------------------------------------------- */

static bool has_tried;

static whit_status open_tiny(void *user, const char *path, whit_model **model, whit_error *error)
{
    whit_model_options options = whit_model_options_default();
    (void)user;
    options.no_cache = true;
    if (results >= 0 && !has_tried) try_all("connection");
    has_tried = true;
    return whit_model_open(path, &options, model, error);
}

static void on_confined(void *user, const char *why_not)
{
    (void)user;
    tell("start", why_not ? why_not : "confined", !why_not);
}

static void on_ready(void *user, const char *address, size_t n_bytes)
{
    (void)user, (void)n_bytes;
    try_all("main");
    dprintf(results, "ready %s\n", address);
}

static void on_signal(int number)
{
    (void)number;
    stop = 1;
}

static _Noreturn void serve(void)
{
    char paths[2][300];
    whit_server_model models[2];
    whit_error error;
    signal(SIGTERM, on_signal);
    other_fd = open(other, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    elsewhere_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int results_fd = results;
    results = -1; /* models may be opened without trying the ways until the server runs */
    for (int i = 0; i < 2; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/%d.gguf", served, i);
        models[i] = (whit_server_model){.name = i ? "two" : "one", .path = paths[i], .file = paths[i]};
        if (open_tiny(NULL, paths[i], &models[i].model, &error) != WHIT_OK) _exit(10);
    }
    results = results_fd;
    has_tried = false;
    whit_server_options options = {.host = "127.0.0.1",
                                   .models = models,
                                   .n_models = 2,
                                   .open_model = open_tiny,
                                   .confined = on_confined,
                                   .n_parallel = 2,
                                   .n_threads = 2,
                                   .n_ctx_tokens = 64,
                                   .n_queue = 8,
                                   .cache_dir = cache};
    whit_status status = whit_server_run(&options, &stop, &reload, on_ready, NULL, &error);
    if (status != WHIT_OK) dprintf(results, "start OUT %s\n", error.message);
    _exit(status == WHIT_OK ? 0 : 11);
}

/* ---- the test ------------------------------------------------------------------------------------------ */

static int prepare(void **state)
{
    tiny_model tiny = tiny_model_default();
    if (make_folder(state) != 0) return -1;
    snprintf(other, sizeof other, "%s", in_folder("other"));
    snprintf(secret, sizeof secret, "%s", in_folder("other/secret"));
    snprintf(served, sizeof served, "%s", in_folder("served"));
    snprintf(cache, sizeof cache, "%s", in_folder("cache"));
    if (mkdir(other, 0755) != 0 || mkdir(served, 0755) != 0 || mkdir(cache, 0700) != 0) return -1;
    FILE *file = fopen(secret, "w");
    if (!file || fputs("SECRET", file) < 0 || fclose(file) != 0) return -1;
    return tiny_model_write(&tiny, in_folder("served/0.gguf")) && tiny_model_write(&tiny, in_folder("served/1.gguf"))
        ? 0
        : -1;
}

static int listen_on(int type, const struct sockaddr *address, socklen_t n)
{
    int fd = socket(address->sa_family, type | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0 && bind(fd, address, n) == 0);
    if (type == SOCK_STREAM) assert_int_equal(listen(fd, 4), 0);
    return fd;
}

/* Creates the two addresses that the confined server must not reach. */
static void listen_elsewhere(const char *name, int *listening, int *local)
{
    elsewhere = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    elsewhere_local.sun_family = AF_UNIX;
    snprintf(elsewhere_local.sun_path, sizeof elsewhere_local.sun_path, "%s", in_folder(name));
    *listening = listen_on(SOCK_STREAM, (struct sockaddr *)&elsewhere, sizeof elsewhere);
    *local = listen_on(SOCK_DGRAM, (struct sockaddr *)&elsewhere_local, sizeof elsewhere_local);
    socklen_t n = sizeof elsewhere;
    assert_int_equal(getsockname(*listening, (struct sockaddr *)&elsewhere, &n), 0);
}

/* Requests the second model, whose opening tries the ways on a connection's thread. Returns the HTTP status. */
static int ask(const char *address)
{
    static const char body[] = "{\"model\": \"two\", \"prompt\": \"the land\", \"max_tokens\": 2}";
    char request[300], reply[4096] = "";
    struct sockaddr_in server = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct timeval limit = {.tv_sec = WAIT_S};
    const char *colon = strrchr(address, ':');
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    server.sin_port = htons((uint16_t)(colon ? atoi(colon + 1) : 0));
    int n = snprintf(request, sizeof request,
                     "POST /v1/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n%s",
                     strlen(body), body);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&server, sizeof server), 0);
    assert_int_equal(write(fd, request, (size_t)n), n);
    for (size_t at_byte = 0; at_byte + 1 < sizeof reply;) {
        ssize_t got = read(fd, reply + at_byte, sizeof reply - 1 - at_byte);
        if (got <= 0) break;
        at_byte += (size_t)got;
    }
    close(fd);
    return strlen(reply) > 12 ? atoi(reply + 9) : 0;
}

static void nothing_else_is_in_reach(void **state)
{
    (void)state;
    whit_sandbox_support support;
    whit_sandbox_probe(&support);
    const char *lacks = whit_sandbox_lacks(&support);
    if (lacks || !whit_server_library()) {
        print_message("[ SKIPPED ] %s\n", lacks ? lacks : "no libmicrohttpd");
        skip();
    }
    sees_cuts = support.landlock_abi >= 3;
    int listening, local;
    listen_elsewhere("other/socket", &listening, &local);
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        alarm(2 * WAIT_S); /* ends the process in any case */
        results = ends[1];
        serve();
    }
    close(ends[1]);
    FILE *told = fdopen(ends[0], "r");
    char line[400];
    size_t n_held = 0, n_out = 0;
    assert_non_null(told);
    while (fgets(line, sizeof line, told)) {
        if (strstr(line, " OUT ")) print_message("%s", line), n_out++;
        n_held += strstr(line, " held ") != NULL;
        if (strncmp(line, "ready ", 6) != 0) continue;
        int status = ask(line);
        if (status != 200) print_message("the second model gives %d\n", status), n_out++;
        kill(child, SIGTERM);
    }
    fclose(told);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
    assert_int_equal(n_out, 0);
    assert_int_equal(n_held, 1 + 2 * (N_WAYS + 1)); /* includes the way that ends the process */
    close(listening);
    close(local);
    struct stat info;
    assert_int_equal(stat(secret, &info), 0);
    assert_int_equal(info.st_size, 6);
}

/* Checks that harmless ways succeed without the sandbox; otherwise the list would prove nothing. */
static void ways_are_real(void **state)
{
    (void)state;
    int (*const open_ways[])(void) = {
        read_secret,      write_secret,      read_by_descriptor, list_folder, read_users,  change_model,
        open_socket,      open_local_socket, connect_out,        send_out,    make_file,   link_secret,
        read_environment, make_beside_model, let_others_write,   give_away,   change_times};
    int listening, local;
    listen_elsewhere("other/socket2", &listening, &local);
    other_fd = open(other, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    elsewhere_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    for (size_t i = 0; i < sizeof open_ways / sizeof *open_ways; i++)
        if (open_ways[i]() < 0) fail_msg("way %zu does not lead out of nothing: %s", i, strerror(errno));
    unlink(in_folder("cache/secret"));
    close(listening);
    close(local);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_else_is_in_reach),
        cmocka_unit_test(ways_are_real),
    };
    return cmocka_run_group_tests(tests, prepare, remove_folder);
}
