/* SPDX-License-Identifier: MIT
 * Tests .ndf files with right hashes and invalid contents, and valid files of unusual size. */
#include "test.h"

#include "ndf_reseal.h"
#include "ndf_sample.h"

#include <fcntl.h>
#include <sys/mman.h>

/* A model in memory, with pointers to the fields that the cases change. */
typedef struct victim {
    uint8_t *file;
    size_t size_bytes;
    whit_ndf_header *head_frame, *data_frame, *seal_frame, *commit_frame;
    whit_ndf_head *head;
    whit_ndf_section *sections; /* kind k is sections[k - 1] */
    whit_ndf_tensors_header *tensors;
    whit_ndf_tensor_entry *tensor;
    whit_ndf_part_entry *part;
    uint32_t *buckets;
    whit_ndf_files_header *files;
    whit_ndf_file_entry *file_entry;
    whit_ndf_table_header *config, *meta;
    whit_ndf_entry *entry, *meta_entry;
    whit_ndf_seal *seal;
    whit_ndf_commit *commit;
} victim;

static whit_ndf_header *next_frame(whit_ndf_header *frame)
{
    return (whit_ndf_header *)((uint8_t *)frame + whit_ndf_frame_bytes(frame->payload_bytes));
}

static void make_victim(victim *v)
{
    whit_error error;
    int fd = -1;
    assert_ok(ndf_sample_write(NULL, NULL, NULL, &fd, &error), error);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    v->file = ndf_sample_load(path, &v->size_bytes);
    close(fd);
    v->head_frame = (whit_ndf_header *)v->file;
    v->data_frame = next_frame(next_frame(v->head_frame));
    v->seal_frame = next_frame(v->data_frame);
    v->commit_frame = next_frame(v->seal_frame);
    v->head = (whit_ndf_head *)(v->head_frame + 1);
    uint8_t *payload = (uint8_t *)v->head;
    v->sections = (whit_ndf_section *)(v->head + 1);
    v->config = (whit_ndf_table_header *)(payload + v->sections[WHIT_NDF_CONFIG - 1].offset);
    v->entry = (whit_ndf_entry *)(v->config + 1);
    v->meta = (whit_ndf_table_header *)(payload + v->sections[WHIT_NDF_META - 1].offset);
    v->meta_entry = (whit_ndf_entry *)(v->meta + 1);
    v->tensors = (whit_ndf_tensors_header *)(payload + v->sections[WHIT_NDF_TENSORS - 1].offset);
    v->tensor = (whit_ndf_tensor_entry *)(v->tensors + 1);
    v->part = (whit_ndf_part_entry *)(v->tensor + v->tensors->n_tensors);
    v->buckets = (uint32_t *)(v->part + v->tensors->n_parts);
    v->files = (whit_ndf_files_header *)(payload + v->sections[WHIT_NDF_FILES - 1].offset);
    v->file_entry = (whit_ndf_file_entry *)(v->files + 1);
    v->seal = (whit_ndf_seal *)(v->seal_frame + 1);
    v->commit = (whit_ndf_commit *)(v->commit_frame + 1);
}

static whit_status open_bytes(const uint8_t *bytes, size_t size_bytes, whit_error *error)
{
    int fd = memfd_create("hostile", MFD_CLOEXEC);
    assert_int_equal(write(fd, bytes, size_bytes), (ssize_t)size_bytes);
    whit_ndf *ndf;
    whit_status status = whit_ndf_open_fd(fd, "hostile.ndf", NULL, &ndf, error);
    close(fd);
    whit_ndf_close(ndf);
    return status;
}

/* Returns the bytes of value i of a table. */
static uint8_t *value_of(whit_ndf_table_header *table, uint32_t i)
{
    return (uint8_t *)table + ((whit_ndf_entry *)(table + 1))[i].value;
}

static uint8_t *text_of(whit_ndf_table_header *table, uint32_t i, uint32_t k)
{
    uint8_t *array = value_of(table, i);
    return array + ((whit_ndf_string *)array)[k].offset;
}

static void lines_are_clear(void **state)
{
    (void)state;
    /* Each case: a change to a field of `v`, and a part of the expected error. */
#define CASE(change, line)                                                                                             \
    do {                                                                                                               \
        victim v;                                                                                                      \
        whit_error error = {0};                                                                                        \
        make_victim(&v);                                                                                               \
        change;                                                                                                        \
        ndf_reseal(v.file, v.size_bytes);                                                                              \
        assert_int_equal(open_bytes(v.file, v.size_bytes, &error), WHIT_ERROR_FORMAT);                                 \
        if (strncmp(error.message, "hostile.ndf: ", 13) != 0 || !strstr(error.message, line))                          \
            fail_msg("%s: %s", #change, error.message);                                                                \
        free(v.file);                                                                                                  \
    } while (0)
    CASE(v.head_frame->magic[0] = 'W', "this is not an .ndf file");
    CASE(v.head_frame->version = 9, "its format version is not one");
    CASE(v.data_frame->flags = 1, "flags that this program does not know");
    CASE(v.data_frame->index = 7, "its number is wrong");
    CASE(v.data_frame->type = WHIT_NDF_SEAL, "its type is not expected here");
    CASE(v.head_frame->type = WHIT_NDF_PART, "part of a split model");
    CASE(v.commit->end_bytes += 64, "it commits another length");
    CASE(v.commit->n_frames = 4, "it commits another length");
    CASE(v.head->n_sections = UINT32_MAX, "more sections than fit");
    CASE(v.sections[1].kind = 1, "the sections are out of order");
    CASE(v.sections[0].offset += 8, "a section is not aligned");
    CASE(v.sections[1].offset = v.sections[0].offset, "two sections overlap");
    CASE(v.sections[4].size_bytes = UINT64_MAX, "a section is outside the frame");
    CASE(v.sections[4].kind = 77, "file directory: it is missing");
    CASE(v.config->n_entries = UINT32_MAX, "do not fit into");
    CASE(v.config->size_bytes = 1, "table's size is wrong");
    CASE(v.config->n_buckets = 4, "the index has a wrong size");
    CASE(v.entry[0].type = 99, "its type is unknown");
    CASE(v.entry[0].value = UINT64_MAX - 7, "its string is outside the table");
    CASE(v.entry[0].count = 4, "its string is outside the table");
    CASE(v.entry[1].value = UINT64_MAX - 7, "its value is outside the table");
    CASE(v.entry[1].value += 4, "its value is not aligned");
    CASE(v.entry[1].count = UINT64_MAX / 4, "its value is outside the table");
    CASE(v.entry[2].count = 2, "a single value has a wrong count");
    CASE(v.entry[3].value = UINT64_C(0xFFF0000000000001), "entry 3 of 4: a number is NaN");
    CASE(value_of(v.config, 0)[2] = 0, "entry 0 of 4: its string has a zero byte");
    /* its bytes are 4, 0, 0 */
    CASE(v.entry[1].type = WHIT_VALUE_BOOL_ARRAY, "entry 1 of 4: a boolean is neither 0 nor 1");
    CASE((v.entry[1].type = WHIT_VALUE_F64_ARRAY, memset(value_of(v.config, 1) + 16, 0xFF, 8)),
         "entry 1 of 4: a number is NaN");
    CASE(text_of(v.meta, 4, 2)[1] = 0, "entry 4 of 6: one of its strings has a zero byte");
    CASE(v.entry[0].name.name_offset = UINT32_MAX, "its name is outside the frame");
    CASE(v.entry[1].name = v.entry[0].name, "its name occurs twice");
    CASE(v.tensors->n_tensors = UINT32_MAX, "do not fit into");
    CASE(v.tensors->n_parts = UINT32_MAX, "do not fit into");
    CASE(v.tensors->n_buckets = UINT32_MAX, "do not fit into");
    CASE(v.tensor[1].name = v.tensor[0].name, "its name occurs twice");
    CASE(v.tensor[0].name.name_bytes = UINT32_MAX, "its name is outside the frame");
    CASE(v.tensor[0].name.name_hash ^= 1, "the hash of its name is wrong");
    CASE(v.tensor[2].type.codec = 200, "tensor 'tensor.2': its codec is unknown");
    CASE(v.tensor[2].type.layout = 2, "its layout is unknown");
    CASE(v.tensor[2].type.scale_kind = 4, "its kind of scales");
    CASE(v.tensor[2].type.scale_type = 99, "its type of scales");
    CASE(v.tensor[2].type.act = 3, "its kind of activations is unknown");
    CASE(v.tensor[2].type.group = 32, "its group size");
    CASE(v.tensor[2].type.n_rows = 0, "it has no elements");
    CASE(v.tensor[2].type.reserved = 1, "its reserved word");
    CASE(v.tensor[0].part[0] = 0, "it has no codes");
    CASE(v.tensor[0].part[0] = UINT32_MAX, "one of its parts does not exist");
    CASE(v.tensor[0].part[0] = 3, "one of its parts belongs to another");
    CASE(v.tensor[0].part[1] = 0, "a part belongs to no tensor");
    CASE(v.part[1].tensor = 4, "one of its parts belongs to another");
    CASE(v.part[1].offset += 8, "it is not aligned to 64 bytes");
    CASE(v.part[1].offset = v.part[0].offset, "it overlaps another part");
    CASE(v.part[0].size_bytes = v.part[1].offset + 1, "it overlaps another part");
    CASE(v.part[0].size_bytes = UINT64_MAX - 10, "it is outside the DATA frame");
    CASE(v.part[9].offset = (uint64_t)1 << 63, "it is outside the DATA frame");
    CASE(v.part[3].size_bytes = 0, "it is empty");
    CASE(v.part[3].file = 1, "its file does not exist");
    CASE(memset(v.buckets, 0, 16 * 4), "the index has a wrong number of entries");
    CASE(v.buckets[0] = v.buckets[1] = 99, "the index points outside");
    CASE(v.files->n_files = 0, "number of files is not possible");
    CASE(v.files->n_files = 100000, "number of files is not possible");
    CASE(v.file_entry->data_bytes += 64, "its length is not the one in the file directory");
    CASE(v.seal->n_tensors = 4, "it gives another number");
    CASE(v.seal->n_part_files = 1, "it gives another number");
    CASE(v.seal->reserved[15] = 1, "its reserved words are not 0");
    CASE(v.files->reserved = 1, "the reserved word is not 0");
#undef CASE
    /* Lengths so large that nothing can be hashed; the header's own hash is right. */
    static const uint64_t lengths[] = {UINT64_MAX, (uint64_t)1 << 63, (uint64_t)1 << 59, 1u << 20};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        victim v;
        whit_error error;
        make_victim(&v);
        v.head_frame->payload_bytes = lengths[i];
        whit_ndf_frame_hash(v.head_frame, v.head_frame->hash);
        assert_int_equal(open_bytes(v.file, v.size_bytes, &error), WHIT_ERROR_FORMAT);
        assert_non_null(strstr(error.message, i < 2 ? "its length is not possible" : "the file ends inside it"));
        free(v.file);
    }
}

static void other_files_are_refused(void **state)
{
    (void)state;
    whit_error error;
    whit_ndf *ndf;
    assert_int_equal(open_bytes((const uint8_t *)"", 0, &error), WHIT_ERROR_FORMAT);
    assert_non_null(strstr(error.message, "empty"));
    uint8_t text[4096];
    memset(text, 'x', sizeof text);
    assert_int_equal(open_bytes(text, sizeof text, &error), WHIT_ERROR_FORMAT);
    assert_non_null(strstr(error.message, "this is not an .ndf file"));
    assert_int_equal(whit_ndf_open("/tmp", NULL, &ndf, &error), WHIT_ERROR_IO);
    assert_int_equal(whit_ndf_open("/dev/null", NULL, &ndf, &error), WHIT_ERROR_IO);
    assert_int_equal(whit_ndf_open("/nonexistent", NULL, &ndf, &error), WHIT_ERROR_IO);
    assert_null(ndf);
}

/* DATA of 5 GiB is a hole: the hash of a chunk of zeros is known, so the test writes little. */
static void files_over_4_gib_work(void **state)
{
    (void)state;
    const uint64_t far = (uint64_t)5 << 30;
    victim v;
    whit_error error;
    make_victim(&v);
    char *path = ndf_sample_path("huge.ndf");
    whit_writer out;
    assert_ok(whit_writer_open(path, NULL, &out, &error), error);
    uint32_t last = v.tensors->n_parts - 1;
    uint64_t size_bytes = v.part[last].size_bytes;
    v.part[last].offset = far;
    v.file_entry->data_bytes = far + size_bytes;
    whit_ndf_stream stream = {.out = &out};
    assert_ok(whit_ndf_stream_frame(&stream, WHIT_NDF_HEAD, v.head, v.head_frame->payload_bytes, &error), error);
    assert_ok(whit_ndf_stream_begin(&stream, WHIT_NDF_DATA, &error), error);
    uint8_t leaf[WHIT_HASH_BYTES], *chunk = calloc(1, WHIT_NDF_CHUNK_BYTES);
    whit_ndf_leaf(chunk, WHIT_NDF_CHUNK_BYTES, leaf);
    for (uint64_t i = 0; i < far / WHIT_NDF_CHUNK_BYTES; i++)
        assert_true(whit_buf_append(&stream.leaves, leaf, sizeof leaf));
    stream.payload_bytes = far;
    out.offset_bytes += far;
    memset(chunk, 0x5A, size_bytes);
    if (whit_ndf_stream_add(&stream, chunk, size_bytes, &error) != WHIT_OK) {
        print_message("[ SKIPPED ] %s\n", error.message);
        whit_writer_discard(&out);
        skip();
    }
    assert_ok(whit_ndf_stream_end(&stream, &error), error);
    assert_ok(whit_ndf_stream_frame(&stream, WHIT_NDF_SEAL, v.seal, v.seal_frame->payload_bytes, &error), error);
    assert_ok(whit_ndf_stream_commit(&stream, &error), error);
    assert_ok(whit_writer_commit(&out, &error), error);
    whit_ndf_stream_free(&stream);
    whit_ndf *ndf;
    assert_ok(whit_ndf_open(path, NULL, &ndf, &error), error);
    whit_tensor tensor;
    whit_ndf_tensor(ndf, v.part[last].tensor, &tensor);
    assert_memory_equal(tensor.part[v.part[last].part], chunk, size_bytes);
    assert_true((uint64_t)(tensor.part[v.part[last].part] - tensor.part[0]) > (uint64_t)4 << 30);
    whit_ndf_close(ndf);
    free(chunk);
    free(v.file);
    unlink(path);
    assert_non_null(ndf_sample_path(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_clear),
        cmocka_unit_test(other_files_are_refused),
        cmocka_unit_test(files_over_4_gib_work),
    };
    return cmocka_run_group_tests_name("ndf_hostile", tests, NULL, NULL);
}
