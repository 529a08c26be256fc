/* SPDX-License-Identifier: MIT
 * Implements whit doctor, which reports what this machine and this build can do, and problems. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/path.h"
#include "base/phrase.h"
#include "base/threads.h"
#include "base/topology.h"
#include "cli/doctor_tune.h"
#include "cli/verbs.h"
#include "hub/http.h"
#include "hub/settings.h"
#include "hub/store.h"
#include "linalg/blas.h"
#include "sandbox/sandbox.h"
#include "whit_config.h"

struct doctor_values {
    bool json, tune;
};
static const struct doctor_values defaults;
static const cli_option options[] = {
    {"--tune", CLI_FLAG, offsetof(struct doctor_values, tune), NULL,
     "Measure this machine for a minute or two and keep the fastest settings for later calls."},
    {"--json", CLI_FLAG, offsetof(struct doctor_values, json), NULL, "Print one JSON object."},
    {0},
};

/* Adds a problem to the report. The report is one JSON object, with facts and a list of problems, from which both forms
 * of output are printed. */
static void problem(json_t *report, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void problem(json_t *report, const char *format, ...)
{
    char line[600];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    json_array_append_new(json_object_get(report, "problems"), cli_json_path(line));
}

static void look_at_processor(json_t *report)
{
    whit_cpu cpu;
    whit_cpu_detect(&cpu);
    json_object_set_new(report, "processor", json_string(cpu.model));
    json_object_set_new(report, "cores", json_integer(cpu.n_cores));
    json_object_set_new(report, "logical_cpus", json_integer(cpu.n_logical));

    whit_topology topology;
    char text[120];
    whit_topology_find(&cpu, &topology);
    whit_topology_text(&topology, text, sizeof text);
    json_object_set_new(report, "sockets", json_integer(topology.n_packages));
    json_object_set_new(report, "numa_nodes", json_integer(topology.n_nodes));
    json_object_set_new(report, "core_clusters", json_integer(topology.n_clusters));
    json_object_set_new(report, "topology", json_string(text));

    json_t *levels = json_array();
    for (int isa = 0; isa < WHIT_ISA_COUNT; isa++)
        if (whit_isa_allows(cpu.isa, (whit_isa)isa))
            json_array_append_new(levels, json_string(whit_isa_name((whit_isa)isa)));
    json_object_set_new(report, "isa_levels", levels);
    const char *cap = getenv("WHIT_CPU");
    whit_isa in_use = cpu.isa;
    if (!whit_isa_cap(cap, &in_use)) problem(report, "WHIT_CPU=%s is not a known CPU level", cap);
    json_object_set_new(report, "isa", json_string(whit_isa_name(in_use)));
    json_object_set_new(report, "training_products",
                        json_string(whit_precision_name(whit_precision_choose(WHIT_PRECISION_BF16))));

    if (cpu.n_threads < cpu.n_cores)
        problem(report, "this process may use only %.1f of %u cores (control group), so the default of -t is %u",
                whit_cpu_quota("/proc/self/cgroup", "/sys/fs/cgroup"), cpu.n_cores, cpu.n_threads);
}

static void look_at_memory(json_t *report)
{
    double total = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    double available = (double)whit_memory_available();
    if (available <= 0) available = total;
    double limit = (double)whit_memory_limit("/proc/self/cgroup", "/sys/fs/cgroup");
    if (limit > 0 && limit < total) problem(report, "a control group limits memory to %.1f GB", limit / 1e9);
    struct rlimit space;
    if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY)
        problem(report, "the address space is limited to %.1f GB (ulimit -v)", (double)space.rlim_cur / 1e9);
    json_object_set_new(report, "memory_bytes", json_integer((json_int_t)total));
    json_object_set_new(report, "memory_available_bytes", json_integer((json_int_t)available));
}

enum { CHUNK_BYTES = 1 << 18, N_CHUNKS = 128, N_CHUNKS_UNFLUSHED = 1024, ROUNDS_MAX = 9 };

struct reading {
    const uint64_t *words;
    uint64_t sums[WHIT_POOL_THREADS_MAX]; /* keeps the compiler from removing the reads */
};

static void read_chunks(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    struct reading *reading = context;
    const size_t n_words = CHUNK_BYTES / sizeof(uint64_t);
    uint64_t a = 0, b = 0, c = 0, d = 0;
    const uint64_t *words = reading->words + begin * n_words;
    for (size_t i = 0; i < (end - begin) * n_words; i += 4) {
        a += words[i];
        b += words[i + 1];
        c += words[i + 2];
        d += words[i + 3];
    }
    reading->sums[worker] += a + b + c + d;
}

/* Measures how fast the pool's threads read 32 MiB that are in no cache, and reports the best of several rounds. If
 * caches cannot be flushed, reads 256 MiB instead, which exceed usual caches. */
static void measure_bandwidth(json_t *report)
{
    const uint32_t n_chunks = whit_cpu_flush(NULL, 0) ? N_CHUNKS : N_CHUNKS_UNFLUSHED;
    const size_t size_bytes = (size_t)CHUNK_BYTES * n_chunks;
    struct reading *reading = calloc(1, sizeof *reading);
    void *memory = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    whit_pool *pool = NULL;
    if (reading && memory != MAP_FAILED && whit_pool_open(0, NULL, &pool, NULL) == WHIT_OK) {
        memset(memory, 1, size_bytes);
        reading->words = memory;
        uint64_t best_ns = UINT64_MAX;
        for (int round = 0; round < ROUNDS_MAX && !*cli_cancelled(); round++) {
            whit_cpu_flush(memory, size_bytes);
            uint64_t before = whit_now_ns();
            whit_pool_run(pool, read_chunks, reading, n_chunks, 4);
            uint64_t taken = whit_now_ns() - before;
            if (taken < best_ns) best_ns = taken;
        }
        json_object_set_new(report, "read_gbps", json_real((double)size_bytes / (double)best_ns));
    } else {
        problem(report, "not enough memory or threads to measure the bandwidth");
        json_object_set_new(report, "read_gbps", json_real(0));
    }
    whit_pool_close(pool);
    if (memory != MAP_FAILED) munmap(memory, size_bytes);
    free(reading);
}

static void look_at_libraries(json_t *report)
{
    static const struct {
        const char *name, *use;
        bool here;
    } libraries[] = {
        {"libedit", "line editing in chats", WHIT_HAVE_EDIT},
        {"libcurl", "downloads", WHIT_HAVE_CURL},
        {"libmicrohttpd", "the server", WHIT_HAVE_MICROHTTPD},
        {"openblas", "training and compression", WHIT_HAVE_OPENBLAS},
        {"libseccomp", "sandboxes", WHIT_HAVE_SECCOMP},
        {"ncursesw", "the editor on terminals that are not like xterm", WHIT_HAVE_NCURSESW},
        {"tree-sitter", "grammars in the editor", WHIT_HAVE_TREE_SITTER},
        {"libgit2", "git changes in the editor, commits of an agent's turns", WHIT_HAVE_GIT2},
        {"libzmq", "KV events of the server", WHIT_HAVE_ZMQ},
        {"hwloc", "the topology of machines with several NUMA nodes or caches, as it knows it", WHIT_HAVE_HWLOC},
        {"openmpi", "models, training and compression on several machines", WHIT_HAVE_MPI},
    };
    json_t *object = json_object();
    char left_out[400] = "";
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        json_object_set_new(object, libraries[i].name, json_boolean(libraries[i].here));
        if (libraries[i].here || !WHIT_CAN_ADD_LIBRARIES) continue;
        size_t n = strlen(left_out);
        if (WHIT_IS_STATIC)
            snprintf(left_out + n, sizeof left_out - n, "%s%s (%s)", n ? ", " : "", libraries[i].name,
                     libraries[i].use);
        else
            problem(report, "this build lacks %s (%s); 'make deps' installs it", libraries[i].name, libraries[i].use);
    }
    if (*left_out) problem(report, "this is the static build, one file; a build from source has, too: %s", left_out);
    json_object_set_new(report, "libraries", object);
    if (WHIT_LACKS_VECTORS)
        problem(report,
                "this build has no kernels for vectors (RVV 1.0): models run several times slower on a processor that "
                "has them; clang 16 or later beside the compiler builds them ('make deps')");
}

/* Returns whether this process may write to the nearest existing folder above `path`; `path` itself is not checked. */
static bool can_be_made(const char *path)
{
    char above[4096];
    snprintf(above, sizeof above, "%s", path);
    for (char *slash; (slash = strrchr(above, '/'));) {
        *slash = 0;
        const char *folder = slash == above ? "/" : above;
        if (whit_path_exists(folder)) return access(folder, W_OK) == 0;
        if (slash == above) break;
    }
    return false;
}

static void look_at_cache(json_t *report)
{
    char path[4096];
    const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (base && whit_path_is_absolute(base))
        snprintf(path, sizeof path, "%s/whit", base);
    else
        snprintf(path, sizeof path, "%s/.cache/whit", whit_or_empty(home));
    json_object_set_new(report, "cache", cli_json_path(path));
    double bytes = 0;
    long long n_files = 0;
    struct stat info;
    if (lstat(path, &info) != 0) {
        if (errno != ENOENT) problem(report, "%s: %s; models are converted again each time", path, strerror(errno));
        if (errno == ENOENT && !can_be_made(path))
            problem(report, "%s cannot be made; models are converted again each time", path);
    } else if (!S_ISDIR(info.st_mode) || info.st_uid != geteuid() || (info.st_mode & 077)) {
        problem(report, "%s is not a folder that only you can use; it is refused (chmod 700)", path);
    } else {
        if (access(path, W_OK) != 0)
            problem(report, "%s cannot be written to (%s); models are converted again each time", path,
                    strerror(errno));
        DIR *folder = opendir(path);
        struct dirent *entry;
        while (folder && (entry = readdir(folder)))
            if (fstatat(dirfd(folder), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(info.st_mode)) {
                n_files++;
                bytes += (double)info.st_size;
            }
        if (folder) closedir(folder);
    }
    json_object_set_new(report, "cache_files", json_integer(n_files));
    json_object_set_new(report, "cache_bytes", json_integer((json_int_t)bytes));
}

/* Reports whether and how an agent's commands can be confined to a sandbox. */
static void look_at_sandbox(json_t *report)
{
    whit_sandbox_support support;
    whit_sandbox_probe(&support);
    const char *lacks = whit_sandbox_lacks(&support);
    if (lacks) problem(report, "agents cannot run commands: %s", lacks);
    json_object_set_new(report, "landlock_abi", json_integer(support.landlock_abi));
    json_object_set_new(report, "seccomp", json_boolean(support.seccomp));
    json_object_set_new(report, "namespaces", json_boolean(support.namespaces));
}

/* Reports the hub's address and the pulled models. */
static void look_at_hub(json_t *report)
{
    char endpoint[WHIT_HUB_ENDPOINT_BYTES] = "", token[WHIT_HUB_TOKEN_BYTES];
    const char *from = "", *library = whit_http_library();
    whit_hub_entry *entries;
    whit_error error;
    size_t n_entries = 0;
    uint64_t bytes = 0;
    if (whit_hub_endpoint(endpoint, &error) != WHIT_OK) problem(report, "%s", error.message);
    if (whit_hub_token(NULL, token, &from, &error) != WHIT_OK) problem(report, "%s", error.message);
    if (WHIT_HAVE_CURL && !library) problem(report, "libcurl cannot be loaded, so there are no downloads");
    if (whit_hub_store_list(NULL, &entries, &n_entries, &error) == WHIT_OK) {
        for (size_t i = 0; i < n_entries; i++)
            for (size_t k = 0; k < entries[i].files.n_files; k++) bytes += entries[i].files.files[k].size_bytes;
        whit_hub_store_free(entries, n_entries);
    }
    json_object_set_new(report, "hub", cli_json_path(endpoint));
    json_object_set_new(report, "hub_token_from", cli_json_path(from));
    json_object_set_new(report, "hub_library", json_string(whit_or_empty(library)));
    json_object_set_new(report, "pulled_repositories", json_integer((json_int_t)n_entries));
    json_object_set_new(report, "pulled_bytes", json_integer((json_int_t)bytes));
}

static double read_number(const json_t *report, const char *key)
{
    return json_number_value(json_object_get(report, key));
}

static void print_text(cli_call *call, const json_t *report)
{
    const char *name;
    json_t *here, *line;
    size_t i;
    cli_print(call, "%-12s %s\n", "whit", whit_version());
    cli_print(call, "%-12s %s\n", "processor", json_string_value(json_object_get(report, "processor")));
    cli_print(call, "%-12s", "levels");
    json_array_foreach(json_object_get(report, "isa_levels"), i, line) cli_print(call, " %s", json_string_value(line));
    cli_print(call, "; in use: %s\n", json_string_value(json_object_get(report, "isa")));
    cli_print(call, "%-12s products in %s\n", "training",
              json_string_value(json_object_get(report, "training_products")));
    cli_print(call, "%-12s %.0f physical, %.0f logical; %s\n", "cores", read_number(report, "cores"),
              read_number(report, "logical_cpus"), json_string_value(json_object_get(report, "topology")));
    cli_print(call, "%-12s %.1f GB, %.1f GB free\n", "memory", read_number(report, "memory_bytes") / 1e9,
              read_number(report, "memory_available_bytes") / 1e9);
    cli_print(call, "%-12s %.1f GB/s read by all cores\n", "bandwidth", read_number(report, "read_gbps"));
    cli_print(call, "%-12s", "libraries");
    json_object_foreach(json_object_get(report, "libraries"), name, here)
        cli_print(call, " %s%s", json_is_true(here) ? "" : "no ", name);
    cli_print(call, "\n%-12s %s: %.0f files, %.1f MB\n", "cache", json_string_value(json_object_get(report, "cache")),
              read_number(report, "cache_files"), read_number(report, "cache_bytes") / 1e6);
    const char *seccomp = json_is_true(json_object_get(report, "seccomp")) ? "" : "no ";
    const char *namespaces = json_is_true(json_object_get(report, "namespaces")) ? "" : "no ";
    cli_print(call, "%-12s Landlock ABI %.0f, %sseccomp, %sname spaces\n", "sandbox",
              read_number(report, "landlock_abi"), seccomp, namespaces);
    cli_doctor_print_profile(call, report);
    const char *token = json_string_value(json_object_get(report, "hub_token_from"));
    cli_print(call, "%-12s %s, %s%s\n", "hub", json_string_value(json_object_get(report, "hub")),
              *token ? "token from " : "no token", token);
    cli_print(call, "%-12s %.0f repositories, %.1f MB\n", "pulled", read_number(report, "pulled_repositories"),
              read_number(report, "pulled_bytes") / 1e6);
    json_array_foreach(json_object_get(report, "problems"), i, line)
        cli_print(call, "%-12s %s\n", i ? "" : "problems", json_string_value(line));
    if (!i) cli_print(call, "%-12s none\n", "problems");
}

static int run_doctor(cli_call *call)
{
    const struct doctor_values *values = call->values;
    json_t *report = json_object();
    json_object_set_new(report, "version", json_string(whit_version()));
    json_object_set_new(report, "problems", json_array());
    look_at_processor(report);
    look_at_memory(report);
    measure_bandwidth(report);
    look_at_libraries(report);
    look_at_sandbox(report);
    look_at_cache(report);
    look_at_hub(report);
    int status = values->tune ? cli_doctor_tune(call, report) : CLI_OK;
    cli_doctor_profile(report);
    if (status != CLI_OK) {
        json_decref(report);
        return status;
    }
    if (*cli_cancelled()) {
        json_decref(report);
        return CLI_INTERRUPTED;
    }
    if (values->json) return cli_print_json(call, report) ? CLI_OK : CLI_IO;
    print_text(call, report);
    json_decref(report);
    return CLI_OK;
}

const cli_verb cli_doctor_verb = {
    "doctor",
    "",
    0,
    0,
    "show what this machine and build can do, and what is wrong",
    "Shows the instruction sets, cores, memory, memory bandwidth (measured for a moment), optional "
    "libraries, what can hold the commands of an agent, the cache of converted models and the hub of downloads, and "
    "lists what is wrong. --tune measures the number of threads, the size of batches and the number of guesses that "
    "are "
    "fastest here, and writes them to a profile in the cache folder, which run, chat, serve and bench then use unless "
    "options say otherwise; the settings never change a result. $WHIT_PROFILE=off ignores it, and another version of "
    "whit or another machine measures its own. The exit status is 0 "
    "also where problems are found; --json gives them as the list \"problems\".",
    {{"OPTIONS", options, 0}},
    sizeof(struct doctor_values),
    &defaults,
    run_doctor,
};
