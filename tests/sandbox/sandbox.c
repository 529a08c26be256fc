/* SPDX-License-Identifier: MIT
 * Tests that commands stay in their folder: every way out that escape.c knows fails, and attempts are reported; a
 * compiler works; no process is left running. */
#include "test_folder.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/file.h"
#include "sandbox/sandbox.h"

static char scratch[300], home[320], helper_folder[1024];
static whit_sandbox_support support;
static bool without_namespaces;

static void put(const char *name, const char *text, mode_t mode)
{
    whit_error error;
    assert_ok(whit_write_file(in_folder(name), text, strlen(text), &error), error);
    assert_int_equal(chmod(in_folder(name), mode), 0);
}

static int prepare(void **state)
{
    if (make_folder(state) != 0) return -1;
    static const char *const folders[] = {"home",  "home/.ssh",   "project", "project/.git",
                                          "other", "other/empty", "scratch", "scratch/home"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (mkdir(in_folder(folders[i]), 0755) != 0) return -1;
    put("home/.ssh/id", "SECRET", 0600);
    put("project/.env", "SECRET", 0600);
    put("project/.git/config", "[core]\n", 0644);
    put("project/src.c", "int x;\n", 0644);
    put("other/program", "#!/bin/sh\nexit 0\n", 0755);
    snprintf(scratch, sizeof scratch, "%s", in_folder("scratch"));
    snprintf(home, sizeof home, "%s", in_folder("scratch/home"));
    snprintf(helper_folder, sizeof helper_folder, "%s", ESCAPE);
    *strrchr(helper_folder, '/') = 0;
    whit_sandbox_probe(&support);
    return 0;
}

/* On a kernel with old Landlock and without name spaces, the reason given must be this, not a lack of filters. */
static void what_lacks_is_said(void **state)
{
    whit_sandbox_support old = {.landlock_abi = 2, .seccomp = true}, bare = {.landlock_abi = 6},
                         whole = {.landlock_abi = 2, .seccomp = true, .holds = true, .namespaces = true};
    (void)state;
    assert_non_null(strstr(whit_sandbox_lacks(&old), "name spaces"));
    assert_non_null(strstr(whit_sandbox_lacks(&bare), "libseccomp"));
    assert_null(whit_sandbox_lacks(&whole));
    assert_true(support.seccomp || !support.holds);
}

static void need_sandbox(void)
{
    const char *lacks = whit_sandbox_lacks(&support);
    if (!lacks) return;
    print_message("[ SKIPPED ] %s\n", lacks);
    skip();
}

/* Runs a command in the scratch folder; the caller frees the result. */
static whit_sandbox_result run(const char *const *arguments, const whit_sandbox_limits *limits)
{
    const char *const read[] = {helper_folder, NULL}, *const write[] = {scratch, NULL};
    whit_sandbox_command command = {
        .arguments = arguments, .folder = scratch, .home = home, .rules = {.read = read, .write = write}};
    command.no_namespaces = without_namespaces;
    whit_sandbox_result result = {0};
    whit_error error;
    if (limits) command.limits = *limits;
    assert_ok(whit_sandbox_run(&command, &result, &error), error);
    whit_buf_append(&result.output, "", 1);
    whit_buf_append(&result.refused, "", 1);
    return result;
}

static whit_sandbox_result shell(const char *line)
{
    return run((const char *const[]){"/bin/sh", "-c", line, NULL}, NULL);
}

static int listen_on(int family, int type, const struct sockaddr *address, socklen_t n)
{
    int fd = socket(family, type | SOCK_CLOEXEC, 0);
    if (family == AF_UNIX) unlink(((const struct sockaddr_un *)address)->sun_path);
    assert_true(fd >= 0 && bind(fd, address, n) == 0);
    if (type == SOCK_STREAM) assert_int_equal(listen(fd, 4), 0);
    return fd;
}

/* Returns whether the sandbox reports this way. It does not report ways that end at a limit, use a call that does not
 * exist, or have no effect to report. */
static bool is_told(const char *way)
{
    static const char *const untold[] = {"read_descriptor",
                                         "read_variable",
                                         "is_capable",
                                         "killed",
                                         "ipc_shm",
                                         "ipc_queue",
                                         "prlimit_parent",
                                         "survived",
                                         "outlasted",
                                         "grew",
                                         "filled_disk",
                                         "called_new",
                                         "called_x32",
                                         "called_32",
                                         "cloned_by_memory",
                                         "write_mode_system",
                                         "write_mode_process",
                                         "write_time_descriptor",
                                         "read_proc_cwd",
                                         "read_proc_root",
                                         "write_self",
                                         "read_proc_parent",
                                         "read_proc_first",
                                         "read_parent_memory",
                                         "entered",
                                         "write_device",
                                         "typed",
                                         "read_disk",
                                         "read_first_line",
                                         NULL},
                             *const spaced[] = {
                                 "slowed",      "slowed_group", "slowed_user", /* hidden by the PID name space */
                                 "slowed_disk", "scheduled",    "pinned",      NULL};
    for (size_t i = 0; untold[i]; i++)
        if (strcmp(untold[i], way) == 0) return false;
    for (size_t i = 0; support.namespaces && !without_namespaces && spaced[i]; i++)
        if (strcmp(spaced[i], way) == 0) return false;
    return true;
}

/* Returns whether the way is ended by a limit on all processes of the command together. */
static bool is_summed(const char *way)
{
    static const char *const summed[] = {"hoarded", "hoarded_unnamed", "filled_folder", "filled_hole",
                                         "filled_deleted"};
    for (size_t i = 0; i < sizeof summed / sizeof *summed; i++)
        if (strcmp(summed[i], way) == 0) return true;
    /* for root, the kernel does not apply its limit on processes */
    return strcmp(way, "crowded") == 0 && geteuid() == 0;
}

static void no_way_leads_out(void **state)
{
    (void)state;
    need_sandbox();
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_un local = {.sun_family = AF_UNIX}, datagrams = local;
    snprintf(local.sun_path, sizeof local.sun_path, "%s", in_folder("socket"));
    snprintf(datagrams.sun_path, sizeof datagrams.sun_path, "%s", in_folder("datagrams"));
    int fds[4] = {listen_on(AF_INET, SOCK_STREAM, (struct sockaddr *)&any, sizeof any),
                  listen_on(AF_UNIX, SOCK_STREAM, (struct sockaddr *)&local, sizeof local),
                  listen_on(AF_UNIX, SOCK_DGRAM, (struct sockaddr *)&datagrams, sizeof datagrams),
                  open(in_folder("home/.ssh/id"), O_RDONLY)}; /* would be inherited if the sandbox did not close it */
    socklen_t n = sizeof any;
    assert_int_equal(getsockname(fds[0], (struct sockaddr *)&any, &n), 0);
    char port[16], parent[16], way[64], line[1000];
    snprintf(port, sizeof port, "%u", ntohs(any.sin_port));
    snprintf(parent, sizeof parent, "%d", (int)getpid());
    setenv("WHIT_API_KEY", "SECRET", 1);
    int segment = shmget(ntohs(any.sin_port), 4096, IPC_CREAT | 0600);
    int queue = msgget(ntohs(any.sin_port), IPC_CREAT | 0600);
    char *shared = segment < 0 ? (char *)-1 : shmat(segment, NULL, 0);
    if (shared != (char *)-1) *shared = 'S';

    FILE *list = popen(ESCAPE " list", "r");
    size_t n_ways = 0, n_out = 0;
    assert_non_null(list);
    while (fgets(way, sizeof way, list)) {
        way[strcspn(way, "\n")] = 0;
        n_ways++;
        const whit_sandbox_limits limits = {.wall_s = strcmp(way, "outlasted") == 0 ? 1 : 60,
                                            .n_processes = geteuid() == 0 ? 40 : 0,
                                            .total_memory_bytes = (uint64_t)100 << 20,
                                            .disk_bytes = (uint64_t)100 << 20};
        whit_sandbox_result result = run((const char *const[]){ESCAPE, way, test_folder, port, parent, NULL}, &limits);
        /* a kernel without 32-bit programs ends int 0x80 with SIGSEGV */
        bool held =
            result.status == 1 || (result.status == -1 && (result.signal != SIGSEGV || strcmp(way, "called_32") == 0));
        if (strcmp(way, "outlasted") == 0) held = result.timed_out && result.status == -1;
        if (!held) {
            print_message("%s: status %d, signal %d: %s%s", way, result.status, result.signal, result.output.data,
                          result.refused.data);
            n_out++;
        }
        if (is_summed(way) != (*result.over != 0)) {
            print_message("%s: limits of sums say '%s'\n", way, result.over);
            n_out++;
        }
        if (is_told(way) && !is_summed(way) && strcmp(way, "crowded") != 0 && !result.n_refused) {
            print_message("%s is not told: %s", way, result.output.data);
            n_out++;
        }
        whit_sandbox_result_free(&result);
        /* removed from outside, since the files would exceed the limits of a command in the sandbox, too */
        if (is_summed(way)) {
            snprintf(line, sizeof line, "rm -rf %s/many %s/hole %s/gone", scratch, scratch, scratch);
            assert_int_equal(system(line), 0);
        }
    }
    pclose(list);
    usleep(600000);
    if (access(in_folder("scratch/survived"), F_OK) == 0) {
        print_message("a process survived\n");
        n_out++;
    }
    unsetenv("WHIT_API_KEY");
    if (shared != (char *)-1) shmdt(shared);
    if (segment >= 0) shmctl(segment, IPC_RMID, NULL);
    if (queue >= 0) msgctl(queue, IPC_RMID, NULL);
    for (size_t i = 0; i < 4; i++) close(fds[i]);
    print_message("%zu ways, %zu lead out; Landlock ABI %u, %s name spaces\n", n_ways, n_out, support.landlock_abi,
                  support.namespaces && !without_namespaces ? "with" : "without");
    assert_true(n_ways >= 60);
    assert_int_equal(n_out, 0);

    struct stat info;
    whit_buf text = {0};
    whit_error error;
    assert_int_equal(stat(in_folder("home/.ssh/id"), &info), 0);
    assert_int_equal(info.st_mode & 07777, 0600);
    assert_ok(whit_read_file(in_folder("project/src.c"), 100, &text, &error), error);
    assert_int_equal(text.size_bytes, 7);
    whit_buf_free(&text);
}

static void no_way_leads_out_without_namespaces(void **state)
{
    if (support.landlock_abi < 3) { /* without Landlock ABI 3, commands are not run without name spaces */
        print_message("[ SKIPPED ] Landlock ABI %u\n", support.landlock_abi);
        skip();
    }
    without_namespaces = true;
    no_way_leads_out(state);
    without_namespaces = false;
}

/* Checks that the ways are effective: some of each kind succeed outside the sandbox. */
static void ways_are_real(void **state)
{
    (void)state;
    static const char *const open_ways[] = {"read_key",  "read_link",      "read_env",      "write_hook",
                                            "run_other", "read_proc_root", "sent_datagram", "write_time",
                                            "killed",    "prlimit_parent"};
    char command[1200];
    for (size_t i = 0; i < sizeof open_ways / sizeof *open_ways; i++) {
        snprintf(command, sizeof command, "cd %s && rm -f way && '%s' %s %s 9 %d >out", scratch, ESCAPE, open_ways[i],
                 test_folder, (int)getpid());
        int status = system(command);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) fail_msg("%s does not lead out of nothing", open_ways[i]);
    }
    unlink(in_folder("project/.git/hook"));
}

static void programs_work(void **state)
{
    (void)state;
    need_sandbox();
    whit_sandbox_result r = shell("echo one; echo two >&2; exit 7");
    assert_int_equal(r.status, 7);
    assert_string_equal((char *)r.output.data, "one\ntwo\n");
    whit_sandbox_result_free(&r);
    r = shell("kill -9 $$");
    assert_int_equal(r.status, -1);
    assert_int_equal(r.signal, SIGKILL);
    whit_sandbox_result_free(&r);
    r = shell("rm -f d e f; read x && exit 1; mkdir -p a/b && echo x >a/b/c && mv a/b/c a/d && ln a/d e && ln -s e f "
              "&& cat f &&"
              " rm -r a && env && test -n \"$HOME\" && echo x >\"$TMPDIR/x\" && head -c 4 /dev/urandom >/dev/null");
    if (r.status != 0) fail_msg("%s%s", r.output.data, r.refused.data);
    assert_null(strstr((char *)r.output.data, "SSH"));
    whit_sandbox_result_free(&r);
    if (support.namespaces && !without_namespaces) {
        r = shell("test -r /proc/self/maps && ! ls /proc/sys 2>/dev/null");
        if (r.status != 0) fail_msg("%s%s", r.output.data, r.refused.data);
        whit_sandbox_result_free(&r);
    }
    r = shell(
        "rm -rf f g d k e; mkdir d && touch f \"$TMPDIR/y\" d/f && chmod 640 f && test \"$(stat -c %a f)\" = 640 &&"
        " chmod 700 . d && chmod -R u+x d && chmod 755 \"$PWD/d/../f\" && test -x f && cd d && chmod 600 ../f &&"
        " cd .. && touch -d 2001-02-03 f && cp -p f g && test \"$(stat -c '%a %Y' f)\" = \"$(stat -c '%a %Y' g)\" &&"
        " test \"$(stat -c %y g | cut -c 1-10)\" = 2001-02-03 && ln -s f k && touch -h -d 2002-02-03 k &&"
        " test \"$(stat -c %y k | cut -c 1-10)\" = 2002-02-03 && chmod 644 k && test \"$(stat -c %a f)\" = 644 &&"
        " ! chmod 644 missing 2>e && grep -q 'No such file' e");
    if (r.status != 0) fail_msg("%s%s", r.output.data, r.refused.data);
    whit_sandbox_result_free(&r);
    /* queries of attributes, reflink copies, and watches on the command's own folder must work */
    r = shell("rm -rf p q w; mkdir w && cp --reflink=auto /bin/true p && cp -a p q && { lsattr p || true; } >/dev/null "
              "2>&1 &&"
              " nice -n 5 true && { ! test -x /usr/bin/taskset || taskset -p $$ >/dev/null; } &&"
              " { ! test -x /usr/bin/python3 || python3 -c '"
              "import ctypes,os\nc=ctypes.CDLL(None)\nn=c.inotify_init()\na=c.inotify_add_watch(n,b\"w\",0x100)\n"
              "b=c.inotify_add_watch(n,os.getcwdb(),0x100)\nopen(\"w/new\",\"w\")\ntext=os.read(n,999)\n"
              "os.sched_setaffinity(0,os.sched_getaffinity(0))\nos.setpriority(os.PRIO_PROCESS,os.getpid(),19)\n"
              "assert a>0 and b>0 and a!=b and b\"new\" in text,(a,b,text)\n"
              "assert c.inotify_add_watch(n,b\"missing\",0x100)<0'; }");
    if (r.status != 0) fail_msg("%s%s", r.output.data, r.refused.data);
    static const char *const wanted[] = {"ioctl", "inotify", "sched_set", "setpriority"};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) assert_null(strstr((char *)r.refused.data, wanted[i]));
    whit_sandbox_result_free(&r);
    if (access("/usr/bin/cc", X_OK) == 0) {
        put("scratch/t.c", "#include <stdio.h>\nint main(void){puts(\"built\");return 0;}\n", 0644);
        r = shell("rm -f t; cc -O2 -g t.c -o t && ./t");
        if (r.status != 0) fail_msg("%s%s", r.output.data, r.refused.data);
        whit_sandbox_result_free(&r);
    }
}

static void programs_work_without_namespaces(void **state)
{
    without_namespaces = true;
    programs_work(state);
    /* set-user-id bits would give a program another user's rights when it is started outside */
    whit_sandbox_result r =
        shell("rm -rf s; cp /bin/true s && ! chmod u+s s && ! chmod 2755 s && ! chmod 6777 . && test ! -u s"
              " && test ! -g s");
    if (r.status != 0) fail_msg("%s%s", r.output.data, r.refused.data);
    assert_non_null(strstr((char *)r.refused.data, "chmod"));
    whit_sandbox_result_free(&r);
    /* signals reach only the command's own processes */
    char line[400];
    snprintf(line, sizeof line,
             "sleep 9 & kill $!; wait $!; test $? = 143 && sh -c 'kill -ABRT $$'; test $? = 134 &&"
             " ! kill -0 %d && ! kill -0 $PPID && ! kill -CONT -1 && ! kill -0 4194303 && trap '' TERM && kill 0",
             (int)getpid());
    r = shell(line);
    if (r.status != 0) fail_msg("%d: %s%s", r.status, r.output.data, r.refused.data);
    assert_int_equal(r.n_refused, 1); /* a repeated refusal is listed once */
    assert_string_equal((char *)r.refused.data, "kill\n");
    whit_sandbox_result_free(&r);
    without_namespaces = false;
}

static void limits_hold(void **state)
{
    (void)state;
    need_sandbox();
    const whit_sandbox_limits limits = {
        .wall_s = 200, .cpu_s = 1, .memory_bytes = (uint64_t)1 << 30, .file_bytes = 1 << 16, .output_bytes = 1000};
    static const char *const lines[] = {"while :; do :; done", "head -c 100000 /dev/zero >file",
                                        "head -c 100000 /dev/zero"};
    for (size_t i = 0; i < 3; i++) {
        whit_sandbox_result r = run((const char *const[]){"/bin/sh", "-c", lines[i], NULL}, &limits);
        assert_false(r.timed_out);
        if (i < 2) assert_true(r.status != 0);
        assert_int_equal(r.output_is_cut, i == 2);
        if (i == 2) assert_int_equal(r.output.size_bytes, 1001);
        whit_sandbox_result_free(&r);
    }
    volatile bool cancel = true;
    whit_sandbox_command command = {.arguments = (const char *const[]){"/bin/sleep", "20", NULL},
                                    .folder = scratch,
                                    .home = home,
                                    .rules = {.write = (const char *const[]){scratch, NULL}},
                                    .cancel = &cancel};
    whit_sandbox_result r = {0};
    whit_error error;
    assert_ok(whit_sandbox_run(&command, &r, &error), error);
    assert_true(r.was_cancelled && r.status == -1);
    whit_sandbox_result_free(&r);
    command.cancel = NULL;
    command.arguments = (const char *const[]){"/no/such/program", NULL};
    assert_int_equal(whit_sandbox_run(&command, &r, &error), WHIT_ERROR_IO);
    assert_non_null(strstr(error.message, "/no/such/program"));
    whit_sandbox_result_free(&r);
}

/* A confined server may use what it has open and read and write in its folders, but open nothing else. */
static int confined(int listening)
{
    const char *const read[] = {in_folder("project"), NULL}, *const write[] = {scratch, NULL};
    whit_sandbox_rules rules = {.read = read, .write = write};
    whit_error error;
    if (whit_sandbox_enter(&rules, &error) != WHIT_OK) return 10;
    int accepted = accept(listening, NULL, NULL);
    if (accepted < 0) return 1;
    if (open(in_folder("home/.ssh/id"), O_RDONLY) >= 0) return 2;
    if (open(in_folder("project/src.c"), O_RDONLY) < 0) return 3;
    if (open(in_folder("project/src.c"), O_WRONLY) >= 0) return 4;
    if (open(in_folder("scratch/cache"), O_WRONLY | O_CREAT, 0600) < 0) return 5;
    if (socket(AF_INET, SOCK_STREAM, 0) >= 0) return 6;
    if (execl("/bin/true", "true", NULL) == 0 || errno != EPERM) return 7;
    return send(accepted, "x", 1, 0) == 1 ? 0 : 8;
}

static void a_process_gives_up_the_rest(void **state)
{
    (void)state;
    need_sandbox();
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof any;
    int listening = listen_on(AF_INET, SOCK_STREAM, (struct sockaddr *)&any, sizeof any);
    assert_int_equal(getsockname(listening, (struct sockaddr *)&any, &n), 0);
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(client, (struct sockaddr *)&any, sizeof any), 0);
    pid_t child = fork();
    if (child == 0) _exit(confined(listening));
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
    close(client);
    close(listening);
}

/* A folder stays closed although a folder of the system, or one that may be read, contains it. */
static void hidden_folders_stay_closed(void **state)
{
    (void)state;
    need_sandbox();
    char other[300], program[300], line[1200];
    snprintf(other, sizeof other, "%s", in_folder("other"));
    snprintf(program, sizeof program, "%s", in_folder("other/program"));
    const char *const read[] = {other, NULL}, *const write[] = {scratch, NULL};
    const char *const hidden[] = {"/usr/share", program, NULL};
    snprintf(line, sizeof line,
             "ls /usr/bin >names; ls /usr/share || echo closed; cat %s || echo shut; ls %s/empty && echo seen", program,
             other);
    const char *arguments[4];
    whit_sandbox_shell(line, arguments);
    for (int round = 0; round < 2; round++) {
        const whit_sandbox_command command = {.arguments = arguments,
                                              .folder = scratch,
                                              .home = home,
                                              .rules = {.read = read, .write = write, .hidden = hidden},
                                              .no_namespaces = round == 1};
        whit_sandbox_result result = {0};
        whit_error error;
        assert_ok(whit_sandbox_run(&command, &result, &error), error);
        whit_buf_append(&result.output, "", 1);
        whit_buf_append(&result.refused, "", 1);
        const char *output = (char *)result.output.data, *refused = (char *)result.refused.data;
        if (!strstr(output, "closed") || !strstr(output, "shut") || !strstr(output, "seen") ||
            strstr(output, "exit 0") || !strstr(refused, "/usr/share") || !strstr(refused, program))
            fail_msg("%s\n%s", output, refused);
        whit_sandbox_result_free(&result);
    }
}

/* Finds a file with settings of installed programs. */
static bool find_settings(char path[600])
{
    static const char *const folders[] = {"/usr/local/etc", "/usr/etc"};
    struct stat about;
    bool is_found = false;
    for (size_t i = 0; !is_found && i < sizeof folders / sizeof *folders; i++) {
        DIR *entries = opendir(folders[i]);
        for (struct dirent *entry; entries && !is_found && (entry = readdir(entries));) {
            snprintf(path, 600, "%s/%s", folders[i], entry->d_name);
            is_found = lstat(path, &about) == 0 && S_ISREG(about.st_mode) && access(path, R_OK) == 0;
        }
        if (entries) closedir(entries);
    }
    return is_found;
}

/* Settings of installed programs, such as a npmrc with a password, lie in folders of the system, too. They are read if
 * the rules name their folder. */
static void settings_are_not_read(void **state)
{
    (void)state;
    need_sandbox();
    char settings[600], folder[600], line[2000];
    if (!find_settings(settings)) skip();
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(settings, '/') - settings), settings);
    const char *const read[] = {folder, NULL}, *const write[] = {scratch, NULL};
    snprintf(line, sizeof line, "cat '%s' >out && echo read; ls /usr >out && ls /usr/local >out && echo listed",
             settings);
    const char *arguments[4];
    whit_sandbox_shell(line, arguments);
    for (int round = 0; round < 4; round++) {
        const bool is_named = round >= 2;
        const whit_sandbox_command command = {.arguments = arguments,
                                              .folder = scratch,
                                              .home = home,
                                              .rules = {.read = is_named ? read : NULL, .write = write},
                                              .no_namespaces = round % 2 == 1};
        whit_sandbox_result result = {0};
        whit_error error;
        assert_ok(whit_sandbox_run(&command, &result, &error), error);
        whit_buf_append(&result.output, "", 1);
        whit_buf_append(&result.refused, "", 1);
        const char *output = (char *)result.output.data, *refused = (char *)result.refused.data;
        if ((strstr(output, "read\n") != NULL) != is_named || !strstr(output, "listed") ||
            (strstr(refused, settings) != NULL) == is_named)
            fail_msg("%d: %s\n%s", round, output, refused);
        whit_sandbox_result_free(&result);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_lacks_is_said),
        cmocka_unit_test(programs_work),
        cmocka_unit_test(programs_work_without_namespaces),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(ways_are_real),
        cmocka_unit_test(no_way_leads_out),
        cmocka_unit_test(no_way_leads_out_without_namespaces),
        cmocka_unit_test(a_process_gives_up_the_rest),
        cmocka_unit_test(hidden_folders_stay_closed),
        cmocka_unit_test(settings_are_not_read),
    };
    return cmocka_run_group_tests(tests, prepare, remove_folder);
}
