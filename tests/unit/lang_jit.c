/* SPDX-License-Identifier: MIT
 * Tests tier 2, machine code: its instructions against binutils, its memory pages, and systems that do not allow a
 * program to make code. */
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/rng.h"
#include "kernels/quat/quat.h"
#include "lang/core/lang.h"
#include "lang/jit/encode_vector.h"
#include "lang/jit/jit.h"
#include "lang_digest.h"
#include "test.h"
#include "test_folder.h"

static whit_quat_kernels kernels;

static const char *const names[16] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
                                      "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};
static const char *const names32[16] = {"eax", "ecx", "edx",  "ebx",  "esp",  "ebp",  "esi",  "edi",
                                        "r8d", "r9d", "r10d", "r11d", "r12d", "r13d", "r14d", "r15d"};
static const struct {
    jit_alu op;
    const char *name;
} alus[] = {{ALU_ADD, "add"}, {ALU_OR, "or"}, {ALU_AND, "and"}, {ALU_SUB, "sub"}, {ALU_XOR, "xor"}, {ALU_CMP, "cmp"}};
static const struct {
    jit_condition cc;
    const char *name;
} conditions[] = {{CC_E, "e"}, {CC_NE, "ne"}, {CC_S, "s"}, {CC_L, "l"}, {CC_GE, "ge"}, {CC_LE, "le"}, {CC_G, "g"}};
static const struct {
    jit_shift op;
    const char *name;
} shifts[] = {{SHIFT_SHL, "shl"}, {SHIFT_SHR, "shr"}, {SHIFT_SAR, "sar"}};

/* ---- vectors ---- */

static const struct {
    const jit_vector_op *op;
    const char *vex, *evex;
} arithmetic[] = {{&V_ADD, "vaddps", "vaddps"},  {&V_MUL, "vmulps", "vmulps"},     {&V_SUB, "vsubps", "vsubps"},
                  {&V_MIN, "vminps", "vminps"},  {&V_DIV, "vdivps", "vdivps"},     {&V_MAX, "vmaxps", "vmaxps"},
                  {&V_AND, "vandps", "vandps"},  {&V_XOR, "vxorps", "vxorps"},     {&V_ADD_I32, "vpaddd", "vpaddd"},
                  {&V_OR_BITS, "vpor", "vpord"}, {&V_AND_BITS, "vpand", "vpandd"}, {&V_XOR_BITS, "vpxor", "vpxord"}};
static const jit_reg bases[] = {RSI, R8, R9, R10, R11, RBX, RDX, RDI};

/* Returns the second source operand as assembler text. */
static const char *words_of(jit_operand b, char vector)
{
    static char text[64];
    if (!b.memory)
        snprintf(text, sizeof text, "%cmm%d", vector, b.reg);
    else
        snprintf(text, sizeof text, "[%s%s%+d]", names[b.reg], b.indexed ? "+rax" : "", b.offset);
    return text;
}

static void vector_instruction(whit_rng *rng, jit_code *c, FILE *out)
{
    bool wide = whit_rng_below(rng, 2);
    char x = wide ? 'z' : 'y';
    unsigned regs = wide ? 32 : 16, to = (unsigned)whit_rng_below(rng, regs), a = (unsigned)whit_rng_below(rng, regs);
    unsigned mask = 1 + (unsigned)whit_rng_below(rng, 7), imm = (unsigned)whit_rng_below(rng, 32);
    jit_operand b = jit_in((unsigned)whit_rng_below(rng, regs)), in = b;
    size_t k = whit_rng_below(rng, sizeof arithmetic / sizeof *arithmetic);
    void (*const put)(jit_code *, jit_vector_op, unsigned, unsigned, jit_operand) = wide ? jit_evex : jit_vex;
    int32_t offset = (int32_t)whit_rng_below(rng, 600) * (whit_rng_below(rng, 2) ? 32 : 1) - 300;
    if (whit_rng_below(rng, 4) == 0) offset = 0;
    if (whit_rng_below(rng, 2)) {
        jit_reg base = bases[whit_rng_below(rng, sizeof bases / sizeof *bases)];
        b = whit_rng_below(rng, 2) ? jit_at(base, offset) : jit_at_index(base, offset);
    }
    const char *at = words_of(b, x);
    switch (whit_rng_below(rng, 11)) {
    case 0: put(c, V_SQRT, to, 0, b), fprintf(out, "vsqrtps %cmm%u, %s\n", x, to, at); break;
    case 1:
        put(c, b.memory ? V_LOAD : V_MOVE, to, 0, b);
        fprintf(out, "%s %cmm%u, %s\n", b.memory ? "vmovups" : "vmovaps", x, to, at);
        break;
    case 2:
        if (!b.memory) b = jit_at(RDX, offset);
        put(c, V_STORE, to, 0, b), fprintf(out, "vmovups %s, %cmm%u\n", words_of(b, x), x, to);
        break;
    case 3:
        if (!b.memory) b = jit_at(RDI, offset);
        put(c, V_BROADCAST, to, 0, b), fprintf(out, "vbroadcastss %cmm%u, dword ptr %s\n", x, to, words_of(b, x));
        break;
    case 4:
        put(c, V_SHIFT_I32, 6, to, in), jit_u8(c, imm);
        fprintf(out, "vpslld %cmm%u, %cmm%u, %u\n", x, to, x, in.reg, imm);
        break;
    case 5:
        put(c, V_ROUND, to, 0, b), jit_u8(c, imm & 15);
        fprintf(out, "%s %cmm%u, %s, %u\n", wide ? "vrndscaleps" : "vroundps", x, to, at, imm & 15);
        break;
    case 6:
        put(c, V_COMPARE, wide ? mask : to, a, b), jit_u8(c, imm);
        fprintf(out, wide ? "vcmpps k%u, zmm%u, %s, %u\n" : "vcmpps ymm%u, ymm%u, %s, %u\n", wide ? mask : to, a, at,
                imm);
        break;
    case 7:
        if (!wide) {
            jit_vex(c, V_BLEND, to, a, in), jit_u8(c, (imm & 15) << 4), jit_vzeroupper(c);
            fprintf(out, "vblendvps ymm%u, ymm%u, ymm%u, ymm%u\nvzeroupper\n", to, a, in.reg, imm & 15);
            break;
        }
        jit_evex_masked(c, V_BLEND_K, to, a, in, mask, false, 64);
        jit_evex_masked(c, V_MOVE, to, 0, in, mask, true, 64);
        fprintf(out, "vblendmps zmm%u{k%u}, zmm%u, zmm%u\nvmovaps zmm%u{k%u}{z}, zmm%u\n", to, mask, a, in.reg, to,
                mask, in.reg);
        break;
    case 8:
        if (!wide) break;
        jit_evex(c, V_TERNARY, to, a, b), jit_u8(c, imm * 8);
        fprintf(out, "vpternlogq zmm%u, zmm%u, %s, %u\n", to, a, at, imm * 8);
        break;
    default:
        put(c, *arithmetic[k].op, to, a, b);
        fprintf(out, "%s %cmm%u, %cmm%u, %s\n", wide ? arithmetic[k].evex : arithmetic[k].vex, x, to, x, a, at);
    }
}

/* Emits one random instruction, as bytes in c and as assembler text in out. */
static void instruction(whit_rng *rng, jit_code *c, FILE *out)
{
    jit_reg a = (jit_reg)whit_rng_below(rng, 16), b = (jit_reg)whit_rng_below(rng, 16);
    jit_reg base = whit_rng_below(rng, 2) ? RDI : RSI;
    int32_t offset = whit_rng_below(rng, 3) ? (int32_t)whit_rng_below(rng, 600) - 300 : (int32_t)whit_rng_next(rng);
    if (whit_rng_below(rng, 20) == 0) offset = 0;
    int32_t imm = whit_rng_below(rng, 3) ? (int32_t)whit_rng_below(rng, 300) - 150 : (int32_t)whit_rng_next(rng);
    int64_t wide = whit_rng_below(rng, 2) ? imm : (int64_t)whit_rng_next(rng) >> whit_rng_below(rng, 64);
    unsigned k = (unsigned)whit_rng_below(rng, 6), cc = (unsigned)whit_rng_below(rng, 7),
             s = (unsigned)whit_rng_below(rng, 3);
    unsigned count = 1 + (unsigned)whit_rng_below(rng, 63);
    switch (whit_rng_below(rng, 22)) {
    case 0: jit_mov(c, a, b), fprintf(out, "mov %s, %s\n", names[a], names[b]); break;
    case 1:
        jit_mov_imm(c, a, wide);
        if (wide >= 0 && wide <= UINT32_MAX)
            fprintf(out, "mov %s, %lld\n", names32[a], (long long)wide);
        else
            fprintf(out, "mov %s, %lld\n", names[a], (long long)wide);
        break;
    case 2: jit_load(c, a, base, offset), fprintf(out, "mov %s, [%s%+d]\n", names[a], names[base], offset); break;
    case 3: jit_store(c, base, offset, a), fprintf(out, "mov [%s%+d], %s\n", names[base], offset, names[a]); break;
    case 4: jit_alu_reg(c, alus[k].op, a, b), fprintf(out, "%s %s, %s\n", alus[k].name, names[a], names[b]); break;
    case 5:
        jit_alu_memory(c, alus[k].op, a, base, offset);
        fprintf(out, "%s %s, [%s%+d]\n", alus[k].name, names[a], names[base], offset);
        break;
    case 6:
    case 7: jit_alu_imm(c, alus[k].op, a, imm), fprintf(out, "%s %s, %d\n", alus[k].name, names[a], imm); break;
    case 8: jit_imul(c, a, b), fprintf(out, "imul %s, %s\n", names[a], names[b]); break;
    case 9:
        jit_imul_memory(c, a, base, offset), fprintf(out, "imul %s, [%s%+d]\n", names[a], names[base], offset);
        break;
    case 10: jit_imul_imm(c, a, b, imm), fprintf(out, "imul %s, %s, %d\n", names[a], names[b], imm); break;
    case 11: jit_group3(c, 2, a), fprintf(out, "not %s\n", names[a]); break;
    case 12: jit_group3(c, 3, a), fprintf(out, "neg %s\n", names[a]); break;
    case 13: jit_group3(c, 5, a), fprintf(out, "imul %s\n", names[a]); break;
    case 14: jit_group3(c, 7, a), jit_cqo(c), fprintf(out, "idiv %s\ncqo\n", names[a]); break;
    case 15:
        jit_shift_imm(c, shifts[s].op, a, count), fprintf(out, "%s %s, %u\n", shifts[s].name, names[a], count);
        break;
    case 16: jit_shift_cl(c, shifts[s].op, a), fprintf(out, "%s %s, cl\n", shifts[s].name, names[a]); break;
    case 17: jit_test(c, a, b), fprintf(out, "test %s, %s\n", names[a], names[b]); break;
    case 18:
        jit_cmov(c, conditions[cc].cc, a, b);
        fprintf(out, "cmov%s %s, %s\n", conditions[cc].name, names[a], names[b]);
        break;
    case 19: jit_set_rax(c, conditions[cc].cc), fprintf(out, "set%s al\nmovzx eax, al\n", conditions[cc].name); break;
    case 20:
        jit_push(c, a), jit_pop(c, b), jit_call_rax(c), jit_ret(c);
        fprintf(out, "push %s\npop %s\ncall rax\nret\n", names[a], names[b]);
        break;
    default: {
        unsigned n = s == 0 ? 3 : s == 1 ? 5 : 9;
        jit_multiply_rax(c, n);
        fprintf(out, "lea rax, [rax+rax*%u]\n", n - 1);
        size_t jump = k & 1 ? jit_jump(c) : jit_jump_if(c, conditions[cc].cc), far = 1000000 + (size_t)imm % 1000;
        jit_aim(c, jump, jump + far);
        fprintf(out, "j%s .+%zu\n", k & 1 ? "mp" : conditions[cc].name, far + (k & 1 ? 1 : 2));
    }
    }
}

static void test_encoder(void **state)
{
    (void)state;
    enum { INSTRUCTIONS = 200000 };
    static uint8_t bytes[INSTRUCTIONS * 24], wanted[INSTRUCTIONS * 24];
    jit_code code = {.bytes = bytes, .capacity = sizeof bytes};
    whit_rng rng = {21};
    char command[1024];
    if (system("as --version >/dev/null 2>&1 && objcopy --version >/dev/null 2>&1") != 0) {
        print_message("[ SKIPPED ] no binutils\n");
        skip();
    }
    FILE *out = fopen(in_folder("code.s"), "w");
    assert_non_null(out);
    fprintf(out, ".intel_syntax noprefix\n");
    for (int i = 0; i < INSTRUCTIONS; i++) (i % 2 ? vector_instruction : instruction)(&rng, &code, out);
    assert_int_equal(fclose(out), 0);
    assert_false(code.full);
    snprintf(command, sizeof command, "as -o %s %s && objcopy -O binary -j .text %s %s", in_folder("code.o"),
             in_folder("code.s"), in_folder("code.o"), in_folder("code.bin"));
    assert_int_equal(system(command), 0);
    FILE *in = fopen(in_folder("code.bin"), "rb");
    assert_non_null(in);
    size_t n = fread(wanted, 1, sizeof wanted, in);
    fclose(in);
    size_t at = 0;
    while (at < n && at < code.n && wanted[at] == bytes[at]) at++;
    if (n != code.n || at != n) fail_msg("%zu bytes, as has %zu; they differ at %zu", code.n, n, at);
}

static const char loop[] =
    "let s = 0\nlet t = 1\nfor i in 1..200000 { if i % 3 == 0 { s += i / 7 } else { t ^= s << (i & 7) } }\n"
    "print s, t";
static char printed[256];

static bool keep(void *user, const char *text, size_t n)
{
    (void)user;
    snprintf(printed, sizeof printed, "%.*s", (int)n, text);
    return true;
}

static whit_lang *start(int tier)
{
    whit_lang_options options = {.quat = &kernels, .jit = whit_lang_jit_native(), .tier = tier, .print = keep};
    whit_lang *lang;
    whit_error error;
    assert_ok(whit_lang_open(&options, &lang, &error), error);
    assert_ok(whit_lang_load(lang, "loop", loop, sizeof loop - 1, &error), error);
    assert_ok(whit_lang_run(lang, &error), error);
    return lang;
}

/* Returns the number of executable mappings of the process that belong to no file; fails if one of them is also
 * writable. */
static int executable_mappings(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[1024];
    int n = 0;
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps)) {
        char flags[8] = "";
        unsigned long inode = 0;
        sscanf(line, "%*s %7s %*s %*s %lu", flags, &inode);
        if (flags[1] == 'w' && flags[2] == 'x') fail_msg("writable and executable: %s", line);
        n += flags[2] == 'x' && inode == 0 && !strchr(line, '[');
    }
    fclose(maps);
    return n;
}

static void test_pages(void **state)
{
    (void)state;
    if (!whit_lang_jit_native()) skip();
    int before = executable_mappings();
    whit_lang *lang = start(WHIT_LANG_NATIVE);
    assert_int_equal(executable_mappings(), before + 1);
    whit_lang_close(lang);
    assert_int_equal(executable_mappings(), before);
}

#ifndef PR_SET_MDWE
#define PR_SET_MDWE              65
#define PR_MDWE_REFUSE_EXEC_GAIN 1
#endif

/* When the kernel refuses to make written memory executable, the program must still run, without machine code. */
static void test_denied(void **state)
{
    (void)state;
    char wanted[256];
    whit_lang_close(start(WHIT_LANG_WALK));
    memcpy(wanted, printed, sizeof wanted);
    whit_lang_close(start(WHIT_LANG_NATIVE));
    assert_string_equal(printed, wanted);
    if (!whit_lang_jit_native()) skip();
    pid_t pid = fork();
    if (pid == 0) {
        if (prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0) != 0) _exit(77);
        int before = executable_mappings();
        printed[0] = 0;
        whit_lang *lang = start(WHIT_LANG_NATIVE);
        _exit(strcmp(printed, wanted) != 0 || executable_mappings() != before || !lang);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        print_message("[ SKIPPED ] this kernel cannot forbid it\n");
        skip();
    }
    assert_int_equal(status, 0);
}

/* Runs a program by machine code with both widths of vectors and compares it with the tree walker. */
static void alike(const char *text)
{
    whit_cpu cpu;
    whit_error error;
    uint64_t wanted = 0;
    whit_cpu_detect(&cpu);
    for (int k = 0; k < 3; k++) {
        whit_quat_kernels level = kernels;
        whit_lang *lang;
        if (k == 1 && whit_isa_allows(kernels.isa, WHIT_ISA_AVX2))
            assert_ok(whit_quat_select(&cpu, "avx2", &level, &error), error);
        whit_lang_options options = {
            .quat = &level, .jit = whit_lang_jit_native(), .tier = k ? WHIT_LANG_NATIVE : WHIT_LANG_WALK};
        assert_ok(whit_lang_open(&options, &lang, &error), error);
        assert_ok(whit_lang_load(lang, "alike", text, strlen(text), &error), error);
        assert_ok(whit_lang_run(lang, &error), error);
        if (!k) wanted = digest_variables(lang);
        if (digest_variables(lang) != wanted) fail_msg("%s: %s differs", text, k == 1 ? "AVX2" : "the best level");
        whit_lang_close(lang);
    }
}

/* Sums that stay in registers, and loops whose sums cannot: too long, shared, or of other scales. */
static void test_quaternary_loops(void **state)
{
    (void)state;
    static const char *const starts[] = {
        "let p = quat(range(%u) - 7.0, 0)\nlet q = quat(sin(range(%u)), 0)\n",
        "let p = quat(range(%u) - 7.0, 1)\nlet q = quat(sin(range(%u)), 0)\n",
        "let p = quat(range(%u) - 7.0, 0)\nlet q = p\n",
        "let q = quat(range(%u) - 7.0, 0)\nlet p = quat(cos(range(%u)), 0)\nlet r = q\n",
    };
    static const char *const loops[] = {
        "for i in 0..10001 { q += p }",
        "let n = 0\nwhile n < 3001 { if n % 3 { q += p } else { p += q }\n n += 1 }",
        "let n = 0\nfor i in 0..999 { for k in 0..9 { q += p }\n p += q\n n += i ^ 3 }",
        "let a = p * p\nlet b = -p\nfor i in 0..77 { a += p\n b += q\n q += a }",
    };
    static const uint32_t lengths[] = {1, 64, 128, 257, 512, 513, 1000, 1024, 1025};
    for (size_t n = 0; n < sizeof lengths / sizeof *lengths; n++)
        for (size_t i = 0; i < 4; i++)
            for (size_t k = 0; k < 4; k++) {
                char text[600];
                int at = snprintf(text, sizeof text, starts[i], lengths[n], lengths[n]);
                snprintf(text + at, sizeof text - (size_t)at, "%s\n", loops[k]);
                alike(text);
            }
}

/* Divisions that are known to leave no remainder, and others of similar form. */
static void test_exact_divisions(void **state)
{
    (void)state;
    alike("let s = 0\nlet n = -1000\nlet m = 0\nfor i in 0..2000 { n = i - 1000\n if n % 8 == 0 { n = n / 4 }\n s = s "
          "* 3 + n\n"
          "m = i - 777\n if m % 2 == 0 { m = m / 8 } else { m = 5 * m + 1 }\n s = s * 3 + m\n"
          "n = i - 555\n if n % 4 != 0 { n = n / 2 }\n s = s * 3 + n\n"
          "m = i - 333\n if n % 4 == 0 { m = n / 4 }\n s = s * 3 + m\n"
          "n = i - 99\n if n % 2 == 0 { n += 1\n n = n / 2 }\n s = s * 3 + n }\n");
}

/* Every operation of machine code, at lengths around its blocks, also with NaN and infinity. */
static void test_vectors(void **state)
{
    (void)state;
    static const char *const expressions[] = {
        "a * b + 2 * a - b",
        "max(a, 0) * b + abs(a - b)",
        "sqrt(a * a + b * b)",
        "exp(a) / (1 + exp(-b))",
        "silu(a) * sigmoid(b)",
        "cut(a, 0.5) + cut(b, c)",
        "min(a, b) + max(c, a) - relu(b)",
        "floor(a * 3) + ceil(b * 3) + round(c * 3)",
        "(a < b) + (a <= b) + (a > b) + (a >= b) + (a == b) + (a != b)",
        "(a - b) / (a + b) * (c - a) / (c + b) + sqrt(a) * exp(c) - silu(b - c) * sigmoid(a * c)",
        "a * f - f / b",
        "exp(a) + exp(b) + exp(c) + exp(a * b) + exp(b * c) + silu(a) + silu(b) + silu(c)",
    };
    static const uint32_t lengths[] = {1, 15, 16, 17, 31, 32, 33, 48, 511, 512, 513, 1031};
    for (size_t n = 0; n < sizeof lengths / sizeof *lengths; n++)
        for (size_t k = 0; k < sizeof expressions / sizeof *expressions; k++) {
            char text[1000];
            snprintf(text, sizeof text,
                     "let a = (range(%u) - 8) * 0.37\nlet b = sin(range(%u)) * 90\nlet c = a / (a - a[0])\n"
                     "let f = 0.75\nlet r = %s\na = %s\nlet s = sum(%s)\nlet m = mean(%s)\nlet l = largest(%s)\n"
                     "let d = dot(%s, b - c)\nb = softmax(%s)\n",
                     lengths[n], lengths[n], expressions[k], expressions[k], expressions[k], expressions[k],
                     expressions[k], expressions[k], expressions[k]);
            alike(text);
        }
}

int main(void)
{
    whit_cpu cpu;
    whit_cpu_detect(&cpu);
    if (whit_quat_select(&cpu, NULL, &kernels, NULL) != WHIT_OK) return 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_encoder),         cmocka_unit_test(test_pages),
                                       cmocka_unit_test(test_denied),          cmocka_unit_test(test_quaternary_loops),
                                       cmocka_unit_test(test_exact_divisions), cmocka_unit_test(test_vectors)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
