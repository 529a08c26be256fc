/* SPDX-License-Identifier: MIT
 * Reads the .ndf container independently of the library; it was written from docs/dev/format.md alone.
 *
 *     ndf-read [--container] FILE
 *
 * Checks a model with its part files, or an adapter in a separate file: every hash, every bound and, without
 * --container, every tensor's digest. Prints the contents, one item a line. It shares no code with the library, so a
 * mistake in one of them or in the specification shows as a difference (tests/unit/ndf_reader.sh). It is simple rather
 * than fast: whole files are in memory, and searches are linear. It runs on little-endian machines only. */
#include <inttypes.h>
#include <libgen.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sodium.h>

#include "ndf-digest.h"

enum { HASH = 32, CHUNK = 1 << 20 };
enum { HEAD = 1, TOKENIZER, DATA, SEAL, COMMIT, PART, FIRST_APPENDED = 16, ADAPTER = 16 };

typedef struct {
    const char *path;
    uint8_t *bytes;
    uint64_t size, end; /* size: bytes of the file; end: offset after the last complete commit */
} file;

/* Bytes of a file; `what` names them in messages. The functions below end the program if an access would be outside
 * them. */
typedef struct {
    const file *of;
    const char *what;
    const uint8_t *bytes;
    uint64_t size;
} span;

static _Noreturn void fail(const char *path, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "ndf-read: %s: ", path);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

static void need(bool right, const span *in, const char *reason)
{
    if (!right) fail(in->of->path, "%s: %s", in->what, reason);
}

static span piece(const span *in, const char *what, uint64_t offset, uint64_t size)
{
    need(offset <= in->size && size <= in->size - offset, in, "something lies outside");
    return (span){in->of, what, in->bytes + offset, size};
}

static uint64_t number(const span *in, uint64_t offset, int size)
{
    span from = piece(in, in->what, offset, (uint64_t)size);
    uint64_t value = 0;
    memcpy(&value, from.bytes, (size_t)size);
    return value;
}

static uint64_t u64(const span *in, uint64_t offset)
{
    return number(in, offset, 8);
}

static uint32_t u32(const span *in, uint64_t offset)
{
    return (uint32_t)number(in, offset, 4);
}

/* Returns the text of `size` bytes at an offset, after checking that a zero byte follows and that the text contains
 * none. */
static const char *text(const span *in, uint64_t offset, uint64_t size)
{
    need(size < UINT64_MAX, in, "a text is too long");
    span from = piece(in, in->what, offset, size + 1);
    need(from.bytes[size] == 0 && strlen((const char *)from.bytes) == size, in, "a text has a wrong end");
    return (const char *)from.bytes;
}

/* ---- hashes ---- */

typedef crypto_generichash_blake2b_state hash;

static void begin(hash *state, const char *domain)
{
    uint8_t salt[16] = {0}, personal[16] = {0};
    memcpy(personal, domain, strlen(domain));
    crypto_generichash_blake2b_init_salt_personal(state, NULL, 0, HASH, salt, personal);
}

static void add(hash *state, const void *bytes, uint64_t size)
{
    crypto_generichash_blake2b_update(state, bytes, size);
}

static void add_u64(hash *state, uint64_t value)
{
    add(state, &value, 8);
}

static void add_text(hash *state, const char *value)
{
    add_u64(state, strlen(value));
    add(state, value, strlen(value));
}

static void end(hash *state, uint8_t digest[HASH])
{
    crypto_generichash_blake2b_final(state, digest, HASH);
}

static void print_hash(const uint8_t digest[HASH])
{
    for (int i = 0; i < HASH; i++) printf("%02x", digest[i]);
}

/* ---- frames ---- */

static uint64_t up64(uint64_t n)
{
    return (n + 63) / 64 * 64;
}

typedef struct {
    uint32_t type;
    span payload;
    uint8_t hash[HASH];
} frame;

static bool is_zero(const uint8_t *bytes, uint64_t size)
{
    for (uint64_t i = 0; i < size; i++)
        if (bytes[i]) return false;
    return true;
}

/* Checks the frame at *offset, stores it in *out and advances *offset to its end. index and previous: the index and the
 * predecessor's hash that the frame must have. Returns NULL, or the reason why the frame is invalid. */
static const char *take_frame(const file *from, uint64_t *offset, uint32_t index, const uint8_t previous[HASH],
                              frame *out)
{
    const uint8_t *header = from->bytes + *offset;
    uint64_t left = from->size - *offset, size;
    if (left < 128) return "cut short";
    uint32_t words[4]; /* version, type, flags and index, from the header */
    memcpy(words, header + 8, 16);
    memcpy(&size, header + 24, 8);
    if (memcmp(header, "whit.ndf", 8) != 0) return "no frame";
    if (words[0] != 1) return "another version";
    if (words[2] != 0) return "unknown flags";
    if (words[3] != index) return "wrong index";
    if (memcmp(header + 32, previous, HASH) != 0) return "not after its predecessor";
    hash state;
    begin(&state, "ndf.frame");
    add(&state, header, 96);
    end(&state, out->hash);
    if (memcmp(out->hash, header + 96, HASH) != 0) return "damaged header";
    if (size > (uint64_t)1 << 60) return "absurd length";
    uint64_t chunks = (size + CHUNK - 1) / CHUNK, leaves = 128 + up64(size);
    if (leaves + up64(chunks * HASH) > left) return "cut short";
    if (!is_zero(header + 128 + size, leaves - 128 - size) ||
        !is_zero(header + leaves + chunks * HASH, up64(chunks * HASH) - chunks * HASH))
        return "padding is not zero";
    hash node;
    begin(&node, "ndf.node");
    add_u64(&node, chunks);
    for (uint64_t i = 0; i < chunks; i++) {
        uint8_t leaf[HASH];
        begin(&state, "ndf.leaf");
        add(&state, header + 128 + i * CHUNK, i + 1 < chunks ? CHUNK : size - i * CHUNK);
        end(&state, leaf);
        if (memcmp(leaf, header + leaves + i * HASH, HASH) != 0) return "damaged chunk";
        add(&node, leaf, HASH);
    }
    uint8_t root[HASH];
    end(&node, root);
    if (memcmp(root, header + 64, HASH) != 0) return "wrong root";
    out->type = words[1];
    out->payload = (span){from, "frame", header + 128, size};
    *offset += leaves + up64(chunks * HASH);
    if (out->type != COMMIT) return NULL;
    if (size != 16 || u64(&out->payload, 0) != *offset || u64(&out->payload, 8) != index + 1) return "wrong commit";
    return NULL;
}

/* Returns the frames up to the last commit, *count of them, which the caller frees. Ends the program if there is no
 * commit, or if anything follows the last one. */
static frame *take_chain(file *from, uint32_t *count)
{
    frame *frames = NULL;
    uint8_t previous[HASH] = {0};
    uint64_t offset = 0;
    const char *reason = "no commit";
    *count = 0;
    for (uint32_t n = 0; offset < from->size && (n < 65536 || frames[0].type >= FIRST_APPENDED); n++) {
        frames = realloc(frames, (n + 1) * sizeof *frames);
        if (!frames) fail(from->path, "not enough memory");
        const char *wrong = take_frame(from, &offset, n, previous, &frames[n]);
        if (wrong) {
            reason = wrong;
            break;
        }
        memcpy(previous, frames[n].hash, HASH);
        if (frames[n].type != COMMIT) continue;
        *count = n + 1;
        from->end = offset;
    }
    if (*count == 0) fail(from->path, "%s", reason);
    if (from->end != from->size) fail(from->path, "not committed: %s", reason);
    return frames;
}

static file load(const char *path)
{
    file out = {.path = path};
    FILE *in = fopen(path, "rb");
    if (!in) fail(path, "cannot open");
    fseek(in, 0, SEEK_END);
    long size = ftell(in);
    rewind(in);
    out.size = size < 0 ? 0 : (uint64_t)size;
    out.bytes = malloc(out.size + 1);
    if (!out.bytes || fread(out.bytes, 1, out.size, in) != out.size) fail(path, "cannot read");
    fclose(in);
    return out;
}

/* ---- names ---- */

static uint32_t name_hash(const char *name)
{
    uint64_t n = strlen(name), h = UINT64_C(0x9E3779B97F4A7C15) ^ n;
    for (uint64_t at = 0; at < n; at += 8) {
        uint64_t word = 0;
        memcpy(&word, name + at, n - at < 8 ? n - at : 8);
        unsigned __int128 p = (unsigned __int128)(h ^ word) * UINT64_C(0xBF58476D1CE4E5B9);
        h = (uint64_t)p ^ (uint64_t)(p >> 64);
    }
    return (uint32_t)h;
}

/* Returns the name of entry i after checking that it is in order, that its hash is right and that the index leads to
 * it. entries and buckets: offsets in `in`; stride: bytes from entry to entry. */
static const char *take_name(const span *in, uint64_t entries, uint64_t stride, uint32_t i, uint64_t buckets,
                             uint32_t n_buckets)
{
    uint64_t at = entries + i * stride;
    const char *name = text(in, u32(in, at), u32(in, at + 4));
    need(*name, in, "a name is empty");
    need(u32(in, at + 8) == name_hash(name), in, "a name has a wrong hash");
    if (i) {
        const char *before = text(in, u32(in, at - stride), u32(in, at - stride + 4));
        need(strcmp(before, name) < 0, in, "names are out of order");
    }
    uint32_t bucket = name_hash(name) % n_buckets, steps = 0;
    for (; u32(in, buckets + 4 * bucket) != i + 1; bucket = (bucket + 1) % n_buckets)
        need(u32(in, buckets + 4 * bucket) != 0 && ++steps < n_buckets, in, "the index misses a name");
    return name;
}

static uint32_t bucket_count(uint32_t n)
{
    uint64_t count = 2;
    while (count < 2 * (uint64_t)n) count *= 2;
    return n ? (uint32_t)count : 0;
}

/* ---- tables ---- */

static bool is_nan(uint64_t bits)
{
    return bits << 1 > UINT64_C(0xFFE0000000000000);
}

/* Checks a value of a table, prints it and adds it to the digest. value: the value itself, or its offset in `in` if it
 * is a text or an array. */
static void take_value(const span *in, uint32_t type, uint64_t count, uint64_t value, hash *state)
{
    need((type >= 1 && type <= 6) || (type >= 17 && type <= 21), in, "unknown type of value");
    if (type <= 4) {
        need(count == 1 && (type != 4 || value <= 1), in, "a wrong single value");
        need(type != 3 || !is_nan(value), in, "a number is NaN");
        printf(" %016" PRIx64, value);
        add_u64(state, value);
    } else if (type == 5) {
        printf(" %s", text(in, value, count));
        add(state, text(in, value, count), count);
    } else if (type == 21) {
        need(value % 8 == 0 && count <= in->size, in, "a wrong array");
        span list = piece(in, in->what, value, in->size - value);
        for (uint64_t i = 0; i < count; i++) {
            const char *element = text(&list, u32(&list, 8 * i), u32(&list, 8 * i + 4));
            printf(" '%s'", element);
            add_text(state, element);
        }
    } else {
        uint64_t unit = type == 6 || type == 20 ? 1 : 8;
        need(value % 8 == 0 && count <= in->size, in, "a wrong array");
        span data = piece(in, in->what, value, count * unit);
        for (uint64_t i = 0; type == 19 && i < count; i++) need(!is_nan(u64(&data, 8 * i)), in, "a number is NaN");
        for (uint64_t i = 0; type == 20 && i < count; i++) need(data.bytes[i] <= 1, in, "a wrong boolean");
        printf(" ");
        for (uint64_t i = 0; i < data.size; i++) printf("%02x", data.bytes[i]);
        add(state, data.bytes, data.size);
    }
    putchar('\n');
}

static void take_table(const span *in, const char *label, uint8_t digest[HASH])
{
    uint32_t n = u32(in, 0), n_buckets = u32(in, 4);
    need(u64(in, 8) == in->size, in, "wrong size");
    need(n_buckets == bucket_count(n), in, "wrong index");
    hash state;
    begin(&state, "ndf.config");
    add_u64(&state, n);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t at = 16 + 32 * (uint64_t)i;
        const char *key = take_name(in, 16, 32, i, 16 + 32 * (uint64_t)n, n_buckets);
        uint32_t type = u32(in, at + 12);
        uint64_t count = u64(in, at + 16);
        printf("%s %s %u", label, key, type);
        add_text(&state, key);
        add_u64(&state, type);
        add_u64(&state, count);
        take_value(in, type, count, u64(in, at + 24), &state);
    }
    end(&state, digest);
}

/* ---- the model ---- */

typedef struct {
    span sections[6], tokenizer, seal, data[512];
    uint32_t n_files;
} model;

static void take_sections(const span *head, model *out)
{
    static const char *const names[] = {"", "config", "meta", "templates", "tensors", "files"};
    uint32_t n = u32(head, 0), last = 0;
    need(u32(head, 4) == 0, head, "reserved");
    uint64_t reached = 8 + 24 * (uint64_t)n;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t at = 8 + 24 * (uint64_t)i, offset = u64(head, at + 8);
        uint32_t kind = u32(head, at);
        need(kind > last && u32(head, at + 4) == 0 && offset % 64 == 0 && offset >= reached, head, "sections");
        span section = piece(head, kind < 6 ? names[kind] : "other", offset, u64(head, at + 16));
        reached = offset + section.size;
        last = kind;
        if (kind < 6) out->sections[kind] = section;
    }
    for (int kind = 1; kind < 6; kind++) need(out->sections[kind].bytes != NULL, head, names[kind]);
}

static char *beside(const char *main_path, const char *name)
{
    size_t room = strlen(main_path) + strlen(name) + 3; /* for "/", a zero byte, and "." if the path has no folder */
    char *path = malloc(room), *copy = strdup(main_path);
    if (!path || !copy) fail(main_path, "not enough memory");
    snprintf(path, room, "%s/%s", dirname(copy), name);
    free(copy);
    return path;
}

/* Reads part file i and stores its data in `out`. Ends the program if the file is not PART, DATA and COMMIT, or does
 * not agree with the main file's HEAD and SEAL. */
static void take_part_file(const char *main_path, const span *head, model *out, uint32_t i)
{
    const span *files = &out->sections[5];
    uint64_t at = 8 + 16 * (uint64_t)i;
    const char *name = text(files, u32(files, at + 8), u32(files, at + 12));
    need(*name && !strchr(name, '/'), files, "a name is not plain");
    char *real = realpath(main_path, NULL), *path = beside(real ? real : main_path, name);
    file *part = malloc(sizeof *part);
    if (!part) fail(main_path, "not enough memory");
    if (access(path, R_OK) != 0) {
        free(path);
        path = beside(main_path, name);
    }
    free(real);
    *part = load(path);
    uint32_t n;
    frame *frames = take_chain(part, &n);
    if (n != 3 || frames[0].type != PART || frames[1].type != DATA || frames[2].type != COMMIT)
        fail(path, "not a part file");
    uint8_t set[HASH];
    hash state;
    begin(&state, "ndf.set");
    add(&state, head->bytes, head->size);
    end(&state, set);
    const span *mine = &frames[0].payload;
    if (mine->size != 40 || memcmp(mine->bytes, set, HASH) != 0 || u32(mine, 32) != i || u32(mine, 36) != out->n_files)
        fail(path, "a part of something else");
    span sealed = piece(&out->seal, "seal", out->seal.size - (out->n_files - i) * (uint64_t)HASH, HASH);
    if (memcmp(sealed.bytes, frames[2].hash, HASH) != 0 || frames[1].payload.size != u64(files, at))
        fail(path, "not what was sealed");
    out->data[i] = frames[1].payload;
    printf("file %u %s %" PRIu64 "\n", i, name, part->size);
    free(frames);
}

/* Checks the outliers of a tensor (section 4) and prints their number: records follow each other without gaps, and in
 * each row the columns exist and increase. */
static void take_outliers(const span *data, uint32_t rows, uint32_t columns)
{
    uint32_t n_tiles = (rows + 15) / 16;
    uint64_t head = (4 * (uint64_t)n_tiles + 4 + 63) / 64 * 64, n = 0;
    need(data->size > head && u32(data, 0) == 0, data, "outliers begin");
    for (uint64_t at = 4 * (uint64_t)n_tiles + 4; at < head; at += 4) need(u32(data, at) == 0, data, "zeros");
    need(head + 2 * (uint64_t)u32(data, 4 * (uint64_t)n_tiles) == data->size, data, "outliers end");
    for (uint32_t tile = 0; tile < n_tiles; tile++) {
        uint32_t begin = u32(data, 4 * (uint64_t)tile), end = u32(data, 4 * (uint64_t)tile + 4);
        if (begin == end) continue;
        need(begin < end && end - begin > 9, data, "a record of outliers");
        uint64_t at = head + 2 * (uint64_t)begin, column_at = at + 18, last = head + 2 * (uint64_t)end;
        uint32_t width = columns <= 256 ? 1 : 2, of_tile = 0;
        for (uint32_t row = 0; row < 16; row++) {
            uint64_t before = 0;
            uint32_t count = (uint32_t)number(data, at + 2 + row, 1);
            need(!count || 16 * tile + row < rows, data, "outliers of a row that there is not");
            of_tile += count;
            for (uint32_t i = 0; i < count; i++, column_at += width) {
                need(column_at + width <= last, data, "counts of outliers");
                uint64_t column = number(data, column_at, width);
                need(column < columns && (!i || column > before), data, "an outlier's column");
                before = column;
            }
        }
        uint64_t end_of_values = column_at + of_tile;
        if (end_of_values % 2) need(number(data, end_of_values++, 1) == 0, data, "zeros");
        need(end_of_values == last, data, "counts of outliers");
        n += of_tile;
    }
    printf("outliers %" PRIu64 "\n", n);
}

static void add_any(void *state, const void *bytes, uint64_t size)
{
    add(state, bytes, size);
}

/* Checks that the digest of a tensor (section 5) equals the one in the seal. parts: indexed by kind; an absent part has
 * `of` NULL. */
static void check_digest(const span *in, const uint8_t type[32], const span parts[8], const span *sealed)
{
    stored_tensor tensor = {0};
    hash state;
    uint8_t digest[HASH];
    memcpy(tensor.type, type, sizeof tensor.type);
    for (int kind = 0; kind < 3; kind++)
        tensor.part[kind] = parts[kind].bytes, tensor.part_bytes[kind] = parts[kind].size;
    begin(&state, "whit.tensor");
    need(canonical_tensor(&tensor, add_any, &state), in, "a tensor's parts have other lengths than its type asks for");
    for (uint32_t kind = 3; kind < 8; kind++) {
        if (!parts[kind].of) continue;
        add(&state, &kind, sizeof kind);
        add_u64(&state, parts[kind].size);
        add(&state, parts[kind].bytes, parts[kind].size);
    }
    end(&state, digest);
    need(memcmp(digest, sealed->bytes, HASH) == 0, in, "a tensor's digest is not that of its parts");
}

/* Checks the length of a matrix that fills `data` from offset `at` to the end: codes in tiles of 16 rows with lines of
 * 64 bytes, and scale_bytes bytes for each row of the tiles. */
static void take_matrix(const span *data, uint64_t at, uint32_t rows, uint32_t columns, uint32_t columns_of_line,
                        uint32_t scale_bytes)
{
    uint64_t n_tiles = ((uint64_t)rows + 15) / 16, lines = ((uint64_t)columns + columns_of_line - 1) / columns_of_line;
    need(at <= data->size && data->size - at == n_tiles * (lines * 64 + 16 * scale_bytes), data,
         "a correction's length");
}

/* Checks a second sign plane (section 4) and prints its number of columns. Its columns must increase; a matrix of signs
 * with f16 scales follows them. */
static void take_plane(const span *data, uint32_t rows, uint32_t columns)
{
    uint32_t n = u32(data, 0);
    uint64_t end = 64 + (2 * (uint64_t)n + 63) / 64 * 64;
    need(n && n <= columns && end <= data->size, data, "a plane's columns");
    for (uint64_t at = 4; at < 64; at++) need(number(data, at, 1) == 0, data, "zeros");
    for (uint64_t at = 64 + 2 * (uint64_t)n; at < end; at++) need(number(data, at, 1) == 0, data, "zeros");
    for (uint32_t i = 0; i < n; i++) {
        uint64_t column = number(data, 64 + 2 * (uint64_t)i, 2);
        need(column < columns && (!i || column > number(data, 62 + 2 * (uint64_t)i, 2)), data, "a plane's column");
    }
    take_matrix(data, end, rows, n, 32, 2);
    printf("plane %u\n", n);
}

/* Checks the first factor of a low-rank pair (section 4), prints its rank and returns it. */
static uint32_t take_low_rank(const span *data, uint32_t columns)
{
    uint32_t rank = u32(data, 0);
    need(rank && rank <= 256, data, "a rank");
    for (uint64_t at = 4; at < 64; at++) need(number(data, at, 1) == 0, data, "zeros");
    take_matrix(data, 64, rank, columns, 4, 4);
    printf("rank %u\n", rank);
    return rank;
}

static void take_tensors(const span *in, const model *from, bool container_alone, hash *identity)
{
    uint32_t n = u32(in, 0), n_parts = u32(in, 4), n_buckets = u32(in, 8), used = 0;
    need(n_buckets == bucket_count(n) && u32(in, 12) == 0, in, "header");
    uint64_t parts = 16 + 80 * (uint64_t)n, buckets = parts + 32 * (uint64_t)n_parts;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t at = 16 + 80 * (uint64_t)i;
        const char *name = take_name(in, 16, 80, i, buckets, n_buckets);
        uint32_t rows = u32(in, at + 24), columns = u32(in, at + 28);
        span digest = piece(&from->seal, "seal", 128 + i * (uint64_t)HASH, HASH);
        printf("tensor %s %u %u type ", name, rows, columns);
        for (int b = 0; b < 32; b++) printf("%02x", (unsigned)number(in, at + 16 + (uint64_t)b, 1));
        printf(" digest ");
        print_hash(digest.bytes);
        putchar('\n');
        need(u32(in, at + 12) == 0 && u32(in, at + 44) == 0 && rows && columns, in, "a tensor's type");
        add_text(identity, name);
        add_u64(identity, rows);
        add_u64(identity, columns);
        add(identity, digest.bytes, HASH);
        span stored[8] = {{0}};
        uint32_t rank = 0;
        for (uint32_t kind = 0; kind < 8; kind++) {
            uint32_t slot = u32(in, at + 48 + 4 * kind);
            need(kind || slot, in, "a tensor has no codes");
            if (!slot) continue;
            need(slot <= n_parts, in, "a part does not exist");
            uint64_t part = parts + 32 * (uint64_t)(slot - 1), offset = u64(in, part);
            uint32_t f = u32(in, part + 16);
            need(u32(in, part + 20) == i && u32(in, part + 24) == kind && u32(in, part + 28) == 0 && offset % 64 == 0 &&
                     f < from->n_files,
                 in, "a part");
            need(u64(in, part + 8) > 0, in, "a part is empty");
            span data = piece(&from->data[f], "data", offset, u64(in, part + 8));
            hash state;
            uint8_t sum[HASH];
            begin(&state, "");
            add(&state, data.bytes, data.size);
            end(&state, sum);
            printf("part %u file %u offset %" PRIu64 " bytes %" PRIu64 " ", kind, f, offset, data.size);
            print_hash(sum);
            putchar('\n');
            if (kind == 3) take_plane(&data, rows, columns);
            if (kind == 4) take_outliers(&data, rows, columns);
            stored[kind] = data;
            if (kind == 5) rank = take_low_rank(&data, columns);
            need(kind != 6 || rank, in, "a pair's first factor");
            if (kind == 6) take_matrix(&data, 0, rows, rank, 4, 4);
            used++;
        }
        need(!rank || stored[6].of, in, "a pair's second factor");
        if (!container_alone) check_digest(in, piece(in, in->what, at + 16, 32).bytes, stored, &digest);
    }
    need(used == n_parts, in, "a part belongs to no tensor");
    for (uint32_t i = 1; i < n_parts; i++) {
        uint64_t at = parts + 32 * (uint64_t)i;
        need(u32(in, at - 16) < u32(in, at + 16) ||
                 (u32(in, at - 16) == u32(in, at + 16) && u64(in, at - 32) + u64(in, at - 24) <= u64(in, at)),
             in, "parts overlap");
    }
}

static void take_appended(const frame *from)
{
    const span *in = &from->payload;
    span data = piece(in, "appended", u64(in, 8), u64(in, 16));
    need(u64(in, 8) % 64 == 0 && u32(in, 4) == 0, in, "an appended frame");
    printf("appended %u %s %" PRIu64 "\n", from->type, text(in, 24, u32(in, 0)), data.size);
}

/* ---- adapters ---- */

/* Checks that a factor of an adapter is aligned and inside `in`, and prints the hashes of its codes and scales. The
 * codes are i8 in tiles of 16 rows with lines of 4 columns; each row has an f32 scale. pair: offset of the factor's two
 * offsets. */
static void take_factor(const span *in, uint64_t pair, uint64_t n_rows, uint64_t n_columns)
{
    uint64_t codes = u64(in, pair), scales = u64(in, pair + 8), n_tiles = (n_rows + 15) / 16;
    need(codes % 64 == 0 && scales % 64 == 0, in, "a factor is not aligned");
    const span parts[] = {piece(in, "codes", codes, n_tiles * ((n_columns + 3) / 4) * 64),
                          piece(in, "scales", scales, n_tiles * 64)};
    for (int i = 0; i < 2; i++) {
        uint8_t sum[HASH];
        hash state;
        begin(&state, "");
        add(&state, parts[i].bytes, parts[i].size);
        end(&state, sum);
        printf(" ");
        print_hash(sum);
    }
}

static void take_adapter(const span *in)
{
    uint32_t n = u32(in, 32);
    const char *before = NULL;
    uint8_t other[HASH];
    need(n > 0 && u32(in, 36) == 0 && u64(in, 56) == 0 && u64(in, 40) % 8 == 0, in, "header");
    printf("adapter of ");
    print_hash(piece(in, "identity", 0, HASH).bytes);
    putchar('\n');
    span meta = piece(in, "metadata", u64(in, 40), u64(in, 48));
    take_table(&meta, "meta", other);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t at = 64 + 64 * (uint64_t)i;
        const char *name = text(in, u32(in, at), u32(in, at + 4));
        uint32_t rows = u32(in, at + 8), columns = u32(in, at + 12), rank = u32(in, at + 16);
        need(!before || strcmp(before, name) < 0, in, "pairs are out of order");
        need(rank >= 1 && rank <= 1024 && rows >= 1 && columns >= 1 && u32(in, at + 20) == 0 && u64(in, at + 56) == 0,
             in, "a pair");
        printf("pair %s %u %u %u", name, rows, columns, rank);
        take_factor(in, at + 24, rank, columns);
        take_factor(in, at + 40, rows, rank);
        putchar('\n');
        before = name;
    }
}

/* Checks and prints a file that has only appended frames and commits, without a model. */
static void take_loose(const frame *frames, uint32_t n, const char *path)
{
    for (uint32_t i = 0; i < n; i++) {
        if (frames[i].type == COMMIT) continue;
        if (frames[i].type < FIRST_APPENDED) fail(path, "not a model, and not appended frames alone");
        take_appended(&frames[i]);
    }
    const span *in = &frames[0].payload;
    span data = piece(in, "adapter", u64(in, 8), u64(in, 16));
    if (frames[0].type == ADAPTER) take_adapter(&data);
}

int main(int argc, char **argv)
{
    static model all;
    bool container_alone = argc == 3 && strcmp(argv[1], "--container") == 0;
    if (argc != 2 + container_alone || sodium_init() < 0) {
        fprintf(stderr, "usage: ndf-read [--container] FILE\n");
        return 2;
    }
    const char *path = argv[argc - 1];
    file main_file = load(path);
    uint32_t n, i = 0;
    frame *frames = take_chain(&main_file, &n);
    if (frames[0].type >= FIRST_APPENDED) {
        take_loose(frames, n, path);
        free(frames);
        free(main_file.bytes);
        return 0;
    }
    if (frames[0].type != HEAD || n < 4) fail(path, "not a model");
    const span *head = &frames[i++].payload;
    take_sections(head, &all);
    all.tokenizer = frames[i].type == TOKENIZER ? frames[i++].payload : (span){.of = &main_file};
    if (i + 3 > n || frames[i].type != DATA || frames[i + 1].type != SEAL || frames[i + 2].type != COMMIT)
        fail(path, "frames are out of order");
    all.data[0] = frames[i].payload;
    all.seal = frames[i + 1].payload;
    i += 3;
    const span *files = &all.sections[5];
    all.n_files = u32(files, 0);
    need(all.n_files >= 1 && all.n_files <= 512 && u64(files, 8) == all.data[0].size, files, "header");
    need(u32(files, 4) == 0, files, "reserved");
    uint32_t n_tensors = u32(&all.sections[4], 0);
    need(all.seal.size == 128 + HASH * ((uint64_t)n_tensors + all.n_files - 1) && u64(&all.seal, 96) == n_tensors &&
             u64(&all.seal, 104) == all.n_files - 1,
         &all.seal, "seal");
    need(is_zero(all.seal.bytes + 112, 16), &all.seal, "reserved");
    for (uint32_t f = 1; f < all.n_files; f++) take_part_file(path, head, &all, f);

    uint8_t config[HASH], tokenizer[HASH], other[HASH], identity[HASH];
    hash state;
    take_table(&all.sections[1], "config", config);
    take_table(&all.sections[2], "meta", other);
    take_table(&all.sections[3], "template", other);
    begin(&state, "ndf.tokenizer");
    add(&state, all.tokenizer.bytes, all.tokenizer.size);
    end(&state, tokenizer);
    begin(&state, "ndf.model");
    add(&state, config, HASH);
    add(&state, tokenizer, HASH);
    add_u64(&state, n_tensors);
    take_tensors(&all.sections[4], &all, container_alone, &state);
    end(&state, identity);
    need(memcmp(all.seal.bytes, identity, HASH) == 0 && memcmp(all.seal.bytes + 32, config, HASH) == 0 &&
             memcmp(all.seal.bytes + 64, tokenizer, HASH) == 0,
         &all.seal, "the identity is wrong");
    for (; i < n; i++) {
        if (frames[i].type != COMMIT && frames[i].type < FIRST_APPENDED) fail(path, "frames are out of order");
        if (frames[i].type != COMMIT) take_appended(&frames[i]);
    }
    printf("tokenizer %" PRIu64 " ", all.tokenizer.size);
    print_hash(tokenizer);
    printf("\nidentity ");
    print_hash(identity);
    printf("\nframes %u bytes %" PRIu64 "\n", n, main_file.end);
    free(frames);
    free(main_file.bytes);
    return 0;
}
