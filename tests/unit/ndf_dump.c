/* SPDX-License-Identifier: MIT
 * Makes .ndf files with the library and prints them, for a comparison with tools/ndf-read.c.
 *
 *     ndf_dump make FOLDER     writes model.ndf, split.ndf and its parts, adapter.ndf, types.ndf (a tensor of every
 *                              valid type, of random bytes, with the library's digests), and smallest.ndf, which
 *                              docs/dev/format.md prints
 *     ndf_dump forge FOLDER    writes files that docs/dev/format.md forbids, with right hashes; the name says what
 *                              is wrong
 *     ndf_dump show FILE       prints the same as ndf-read, by the library's functions */
#include "format/ndf_append.h"
#include "format/ndf_file.h"
#include "format/ndf_identity.h"
#include "format/ndf_verify.h"
#include "base/rng.h"
#include "kernels/codec.h"
#include "kernels/corrections.h"
#include "model/adapter.h"
#include "ndf_reseal.h"
#include "ndf_sample.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void print_hash(const uint8_t digest[WHIT_HASH_BYTES])
{
    char text[2 * WHIT_HASH_BYTES + 1];
    whit_hash_hex(digest, text);
    printf("%s", text);
}

static void show_table(const whit_table *table, const char *label)
{
    for (uint32_t i = 0; i < whit_table_count(table); i++) {
        whit_value value;
        const char *key = whit_table_at(table, i, &value);
        printf("%s %s %u", label, key, value.type);
        uint64_t n_bytes = value.count;
        switch (value.type) {
        case WHIT_VALUE_U64:
        case WHIT_VALUE_I64:
        case WHIT_VALUE_F64: printf(" %016" PRIx64, value.u64); break;
        case WHIT_VALUE_BOOL: printf(" %016x", value.boolean); break;
        case WHIT_VALUE_STRING: printf(" %s", value.string); break;
        case WHIT_VALUE_STRING_ARRAY:
            for (uint64_t s = 0; s < value.count; s++) printf(" '%s'", whit_value_string_at(&value, s, NULL));
            break;
        case WHIT_VALUE_U64_ARRAY:
        case WHIT_VALUE_I64_ARRAY:
        case WHIT_VALUE_F64_ARRAY: n_bytes *= 8; /* fall through */
        case WHIT_VALUE_BYTES:
        case WHIT_VALUE_BOOL_ARRAY:
            printf(" ");
            for (uint64_t b = 0; b < n_bytes; b++) printf("%02x", value.bytes[b]);
            break;
        }
        putchar('\n');
    }
}

static void show_tensor(const whit_ndf *ndf, uint32_t i)
{
    whit_tensor tensor;
    whit_ndf_tensor(ndf, i, &tensor);
    printf("tensor %s %u %u type ", whit_ndf_tensor_name(ndf, i), tensor.type.n_rows, tensor.type.n_cols);
    for (size_t b = 0; b < sizeof tensor.type; b++) printf("%02x", ((const uint8_t *)&tensor.type)[b]);
    printf(" digest ");
    print_hash(whit_ndf_tensor_digest(ndf, i));
    putchar('\n');
    for (uint32_t k = 0; k < WHIT_PART_COUNT; k++) {
        if (!tensor.part[k]) continue;
        const whit_ndf_part_entry *part = &ndf->parts[whit_ndf_tensor_entry_at(ndf, i)->part[k] - 1];
        uint8_t sum[WHIT_HASH_BYTES];
        whit_hash hash;
        whit_hash_begin(&hash, "");
        whit_hash_add(&hash, tensor.part[k], tensor.part_bytes[k]);
        whit_hash_end(&hash, sum);
        printf("part %u file %u offset %" PRIu64 " bytes %" PRIu64 " ", k, part->file, part->offset,
               tensor.part_bytes[k]);
        print_hash(sum);
        putchar('\n');
    }
}

static void show_factor(const whit_tensor *factor)
{
    for (int part = 0; part <= WHIT_PART_ROW_SCALES; part++) {
        uint8_t sum[WHIT_HASH_BYTES];
        whit_hash hash;
        whit_hash_begin(&hash, "");
        whit_hash_add(&hash, factor->part[part], factor->part_bytes[part]);
        whit_hash_end(&hash, sum);
        printf(" ");
        print_hash(sum);
    }
}

static whit_status show_loose(whit_ndf *ndf, whit_error *error)
{
    whit_ndf_appended frame;
    whit_adapter_view view;
    WHIT_TRY(whit_ndf_verify(ndf, 1, NULL, NULL, NULL, error));
    WHIT_TRY(whit_ndf_appended_at(ndf, 0, &frame, error));
    printf("appended %u %s %" PRIu64 "\n", frame.type, frame.name, frame.size_bytes);
    WHIT_TRY(whit_adapter_check(frame.data, frame.size_bytes, whit_ndf_path(ndf), &view, error));
    printf("adapter of ");
    print_hash(view.identity);
    putchar('\n');
    show_table(&view.meta, "meta");
    for (uint32_t i = 0; i < view.n_pairs; i++) {
        whit_adapter_pair pair = whit_adapter_pair_at(&view, i);
        printf("pair %s %u %u %u", pair.name, pair.b.type.n_rows, pair.a.type.n_cols, pair.a.type.n_rows);
        show_factor(&pair.a);
        show_factor(&pair.b);
        putchar('\n');
    }
    return WHIT_OK;
}

static whit_status show(const char *path, whit_error *error)
{
    whit_ndf *ndf;
    if (whit_ndf_open_loose(path, NULL, &ndf, NULL) == WHIT_OK) {
        whit_status status = show_loose(ndf, error);
        whit_ndf_close(ndf);
        return status;
    }
    WHIT_TRY(whit_ndf_open(path, NULL, &ndf, error));
    whit_status status = whit_ndf_verify(ndf, 2, NULL, NULL, NULL, error);
    for (uint32_t f = 1; f < whit_ndf_n_files(ndf); f++) {
        uint64_t size_bytes;
        const char *name = whit_ndf_file(ndf, f, &size_bytes);
        printf("file %u %s %" PRIu64 "\n", f, strrchr(name, '/') ? strrchr(name, '/') + 1 : name, size_bytes);
    }
    show_table(whit_ndf_config(ndf), "config");
    show_table(whit_ndf_meta(ndf), "meta");
    show_table(whit_ndf_templates(ndf), "template");
    for (uint32_t i = 0; i < whit_ndf_n_tensors(ndf); i++) show_tensor(ndf, i);
    for (uint32_t i = 0; status == WHIT_OK && i < whit_ndf_n_appended(ndf); i++) {
        whit_ndf_appended appended;
        status = whit_ndf_appended_at(ndf, i, &appended, error);
        if (status == WHIT_OK)
            printf("appended %u %s %" PRIu64 "\n", appended.type, appended.name, appended.size_bytes);
    }
    uint8_t digest[WHIT_HASH_BYTES];
    size_t size_bytes;
    const void *tokenizer = whit_ndf_tokenizer(ndf, &size_bytes);
    whit_ndf_tokenizer_digest(tokenizer, size_bytes, digest);
    printf("tokenizer %zu ", size_bytes);
    print_hash(digest);
    printf("\nidentity ");
    print_hash(whit_ndf_identity(ndf));
    uint64_t end_bytes;
    (void)whit_ndf_file(ndf, 0, &end_bytes);
    printf("\nframes %u bytes %" PRIu64 "\n", ndf->files[0].chain.n_frames, end_bytes);
    whit_ndf_close(ndf);
    return status;
}

static whit_status make_adapter(const char *path, whit_error *error)
{
    enum { RANK = 5, WIDTH = 30 };
    static float values[RANK * WIDTH];
    const uint8_t identity[WHIT_HASH_BYTES] = {7, 8, 9};
    whit_adapter_floats pairs[] = {{"layers.0.down", WIDTH, WIDTH - 7, RANK, values, values},
                                   {"layers.0.q", WIDTH - 13, WIDTH, RANK - 3, values, values}};
    whit_table_builder meta = {0};
    whit_buf image = {0};
    for (int i = 0; i < RANK * WIDTH; i++) values[i] = (float)(i * i % 17 - 8) * 0.3f;
    whit_table_set_string(&meta, "general.name", "sample");
    whit_table_set_u64(&meta, "adapter.steps", 12);
    whit_status status = whit_adapter_build(identity, &meta, pairs, 2, &image, error);
    if (status == WHIT_OK)
        status = whit_ndf_write_loose(path, WHIT_NDF_ADAPTER, "sample", image.data, image.size_bytes, NULL, error);
    whit_table_builder_free(&meta);
    whit_buf_free(&image);
    return status;
}

/* Declares a tensor of this type, or writes it. Its parts are random bytes, because every bit pattern has a value. */
static whit_status put_type(whit_ndf_writer *writer, bool declares, uint32_t i, const whit_tensor_type *type,
                            uint32_t *number, whit_error *error)
{
    static uint8_t bytes[WHIT_PART_COUNT][1 << 18], rows[1 << 18];
    uint64_t part_bytes[WHIT_PART_COUNT] = {0};
    whit_tensor tensor = {.type = *type}, *t = &tensor;
    whit_rng rng = {1000 + i};
    char name[32];
    snprintf(name, sizeof name, "tensor %u", i);
    for (int p = 0; p < WHIT_PART_COUNT; p++) {
        if (!whit_codec_part_bytes(type, (whit_part)p, &part_bytes[p]) || part_bytes[p] > sizeof bytes[p])
            return whit_fail(error, WHIT_ERROR_LIMIT, "%s", name);
        if (p == WHIT_PART_COUNT - 1 && i % 5 == 0) part_bytes[p] = 40 + i; /* such a part is hashed as it is */
        for (uint64_t k = 0; k < part_bytes[p]; k++) bytes[p][k] = (uint8_t)whit_rng_next(&rng);
        t->part[p] = bytes[p];
        t->part_bytes[p] = part_bytes[p];
    }
    if (declares) return whit_ndf_writer_declare(writer, name, type, part_bytes, number, error);
    whit_hash hash;
    uint8_t digest[WHIT_HASH_BYTES];
    whit_tensor_type canonical = whit_codec_canonical_type(type);
    size_t row_bytes = whit_codec_find(type->codec)->is_float
        ? (size_t)type->n_cols * whit_codec_find(type->codec)->elem_bytes
        : whit_codec_canonical_row_bytes(type);
    if (row_bytes * type->n_rows > sizeof rows) return whit_fail(error, WHIT_ERROR_LIMIT, "%s: rows", name);
    whit_codec_canonical_rows(t, 0, type->n_rows, rows);
    whit_hash_begin(&hash, "whit.tensor");
    whit_hash_add(&hash, &canonical, sizeof canonical);
    whit_hash_add(&hash, rows, row_bytes * type->n_rows);
    whit_corrections_digest(t, &hash);
    whit_hash_end(&hash, digest);
    whit_ndf_writer_set_digest(writer, *number, digest);
    for (int p = 0; p < WHIT_PART_COUNT; p++)
        if (part_bytes[p]) WHIT_TRY(whit_ndf_writer_add(writer, *number, (whit_part)p, bytes[p], part_bytes[p], error));
    return WHIT_OK;
}

/* Declares or writes a tensor of every type that whit_tensor_type_check accepts, with several row lengths; *n becomes
 * their number. */
static whit_status put_types(whit_ndf_writer *writer, bool declares, uint32_t numbers[], uint32_t *n, whit_error *error)
{
    static const uint16_t groups[] = {0, 16, 32, 64, 128, 256};
    static const uint32_t columns[] = {20, 121, 300, 513, 768};
    *n = 0;
    for (uint32_t i = 0; i < WHIT_CODEC_COUNT * 2 * 4 * WHIT_SCALE_TYPE_COUNT * 2 * 6 * 5; i++) {
        uint32_t at = i;
#define NEXT(count)                                                                                                    \
    (at % (count));                                                                                                    \
    at /= (count)
        whit_tensor_type type = {.scale = 0.5f};
        type.codec = (uint8_t)NEXT(WHIT_CODEC_COUNT);
        type.layout = (uint8_t)NEXT(2);
        type.scale_kind = (uint8_t)NEXT(4);
        type.scale_type = (uint8_t)NEXT(WHIT_SCALE_TYPE_COUNT);
        type.has_offset = (uint8_t)NEXT(2);
        type.group = groups[at % 6];
        at /= 6;
#undef NEXT
        type.n_cols = columns[at];
        type.n_rows = 1 + i * 7 % 35;
        if (type.scale_kind != WHIT_SCALE_TENSOR && type.scale_type != WHIT_SCALE_E4) type.scale = 0;
        if (whit_tensor_type_check(&type, NULL) != WHIT_OK) continue;
        WHIT_TRY(put_type(writer, declares, i, &type, &numbers[*n], error));
        ++*n;
    }
    return WHIT_OK;
}

/* Writes the file that docs/dev/format.md prints: one number as configuration, one tensor of two numbers. */
static whit_status make_smallest(const char *path, whit_error *error)
{
    static const float values[] = {1, -2};
    whit_tensor_type type = {.codec = WHIT_CODEC_F32, .n_rows = 1, .n_cols = 2};
    uint64_t part_bytes[WHIT_PART_COUNT] = {sizeof values};
    uint8_t digest[WHIT_HASH_BYTES];
    whit_ndf_writer *writer;
    whit_ndf_write_options how = {0};
    uint32_t number;
    whit_hash hash;
    whit_hash_begin(&hash, "whit.tensor");
    whit_hash_add(&hash, &type, sizeof type);
    whit_hash_add(&hash, values, sizeof values);
    whit_hash_end(&hash, digest);
    WHIT_TRY(whit_ndf_writer_open(path, &how, NULL, &writer, error));
    whit_table_set_u64(whit_ndf_writer_config(writer), "n", 3);
    whit_status status = whit_ndf_writer_declare(writer, "w", &type, part_bytes, &number, error);
    if (status == WHIT_OK) status = whit_ndf_writer_begin(writer, error);
    if (status == WHIT_OK) status = whit_ndf_writer_add(writer, number, WHIT_PART_CODES, values, sizeof values, error);
    if (status == WHIT_OK) whit_ndf_writer_set_digest(writer, number, digest);
    if (status == WHIT_OK) status = whit_ndf_writer_commit(writer, NULL, error);
    whit_ndf_writer_close(writer);
    return status;
}

static whit_status make_types(const char *path, whit_error *error)
{
    static uint32_t numbers[8192];
    whit_ndf_writer *writer;
    whit_ndf_write_options how = {0};
    uint8_t identity[WHIT_HASH_BYTES];
    uint32_t n;
    WHIT_TRY(whit_ndf_writer_open(path, &how, NULL, &writer, error));
    whit_table_set_u64(whit_ndf_writer_config(writer), "model.n", 1);
    whit_status status = put_types(writer, true, numbers, &n, error);
    if (status == WHIT_OK) status = whit_ndf_writer_begin(writer, error);
    if (status == WHIT_OK) status = put_types(writer, false, numbers, &n, error);
    if (status == WHIT_OK) status = whit_ndf_writer_commit(writer, identity, error);
    if (status == WHIT_OK) printf("%u types\n", n);
    whit_ndf_writer_close(writer);
    return status;
}

static whit_status make(const char *folder, whit_error *error)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/model.ndf", folder);
    ndf_sample_options options = {.n_tensors = 9, .row_bytes = 300000};
    WHIT_TRY(ndf_sample_write(path, &options, NULL, NULL, error));
    WHIT_TRY(whit_ndf_append(path, WHIT_NDF_ADAPTER, "tuned", "adapter", 7, NULL, error));
    WHIT_TRY(whit_ndf_append(path, 40, "of later days", "?", 1, NULL, error));
    snprintf(path, sizeof path, "%s/adapter.ndf", folder);
    WHIT_TRY(make_adapter(path, error));
    snprintf(path, sizeof path, "%s/types.ndf", folder);
    WHIT_TRY(make_types(path, error));
    snprintf(path, sizeof path, "%s/smallest.ndf", folder);
    WHIT_TRY(make_smallest(path, error));
    snprintf(path, sizeof path, "%s/split.ndf", folder);
    options.max_data_bytes = 1000000;
    return ndf_sample_write(path, &options, NULL, NULL, error);
}

static whit_ndf_header *frame_after(whit_ndf_header *frame)
{
    return (whit_ndf_header *)((uint8_t *)frame + whit_ndf_frame_bytes(frame->payload_bytes));
}

static uint8_t *section_of(whit_ndf_header *head, whit_ndf_section_kind kind)
{
    uint8_t *payload = (uint8_t *)(head + 1);
    return payload + ((whit_ndf_section *)(payload + sizeof(whit_ndf_head)))[kind - 1].offset;
}

static whit_ndf_entry *entry_of(uint8_t *table, uint32_t i)
{
    return (whit_ndf_entry *)(table + sizeof(whit_ndf_table_header)) + i;
}

/* Turns the scales of a tensor of 64 rows, 256 bytes, into the first factor of a correction of rank 1 whose second
 * factor is missing. */
static void forge_pair(uint8_t *tensors, uint8_t *data)
{
    const whit_ndf_tensors_header *header = (const whit_ndf_tensors_header *)tensors;
    whit_ndf_tensor_entry *tensor = (whit_ndf_tensor_entry *)(tensors + sizeof *header);
    whit_ndf_part_entry *part = (whit_ndf_part_entry *)(tensor + header->n_tensors);
    const uint32_t rank = 1;
    while (tensor->type.n_rows != 64) tensor++;
    part += tensor->part[WHIT_PART_ROW_SCALES] - 1;
    part->part = WHIT_PART_FACTOR_A;
    tensor->part[WHIT_PART_FACTOR_A] = tensor->part[WHIT_PART_ROW_SCALES];
    tensor->part[WHIT_PART_ROW_SCALES] = 0;
    memset(data + part->offset, 0, 64);
    memcpy(data + part->offset, &rank, sizeof rank);
}

static whit_status forge(const char *folder, whit_error *error)
{
    static const char *const names[] = {"files", "seal", "empty", "nan", "nans", "boolean", "text", "texts", "pair"};
    const ndf_sample_options options = {.n_tensors = 61}; /* the last tensor has 64 rows */
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[4096];
        size_t n_bytes = 0;
        snprintf(path, sizeof path, "%s/%s.ndf", folder, names[i]);
        WHIT_TRY(ndf_sample_write(path, &options, NULL, NULL, error));
        uint8_t *file = ndf_sample_load(path, &n_bytes);
        if (!file) return whit_fail(error, WHIT_ERROR_IO, "%s", path);
        whit_ndf_header *head = (whit_ndf_header *)file, *data = frame_after(frame_after(head));
        uint8_t *config = section_of(head, WHIT_NDF_CONFIG), *meta = section_of(head, WHIT_NDF_META);
        uint8_t *tensors = section_of(head, WHIT_NDF_TENSORS), *texts = meta + entry_of(meta, 4)->value;
        const whit_ndf_tensors_header *header = (const whit_ndf_tensors_header *)tensors;
        switch (i) {
        case 0: ((whit_ndf_files_header *)section_of(head, WHIT_NDF_FILES))->reserved = 1; break;
        case 1: ((whit_ndf_seal *)(frame_after(data) + 1))->reserved[15] = 1; break;
        case 2:
            ((whit_ndf_part_entry *)(tensors + sizeof *header + header->n_tensors * sizeof(whit_ndf_tensor_entry)))
                ->size_bytes = 0;
            break;
        case 3: /* general.negative */
            entry_of(meta, 2)->type = WHIT_VALUE_F64;
            entry_of(meta, 2)->value = UINT64_C(0x7FF8000000000000);
            break;
        case 4: /* heads */
            entry_of(config, 1)->type = WHIT_VALUE_F64_ARRAY;
            memset(config + entry_of(config, 1)->value + 16, 0xFF, 8);
            break;
        case 5: entry_of(meta, 0)->type = WHIT_VALUE_BOOL_ARRAY; break;   /* general.blob: 0, 1, 2 */
        case 6: meta[entry_of(meta, 1)->value + 1] = 0; break;            /* general.name */
        case 7: texts[((whit_ndf_string *)texts)->offset + 1] = 0; break; /* general.tags */
        default: forge_pair(tensors, (uint8_t *)(data + 1)); break;
        }
        ndf_reseal(file, n_bytes);
        whit_status status = whit_write_file(path, file, n_bytes, error);
        free(file);
        WHIT_TRY(status);
    }
    return WHIT_OK;
}

int main(int argc, char **argv)
{
    whit_error error = {0};
    if (argc != 3) return 2;
    whit_status status = strcmp(argv[1], "make") == 0 ? make(argv[2], &error)
        : strcmp(argv[1], "forge") == 0               ? forge(argv[2], &error)
                                                      : show(argv[2], &error);
    if (status != WHIT_OK) fprintf(stderr, "%s\n", error.message);
    return status != WHIT_OK;
}
