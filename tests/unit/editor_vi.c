/* SPDX-License-Identifier: MIT
 * Tests vi's keys: the text and the cursor ('|') after a sequence of keys. The first table was made by Vim 9.0
 * (autoindent, shiftwidth=4, expandtab, smartcase) with the same keys; the second states what this editor does, which
 * may differ from Vim. */
#include "test.h"

#include "editor/editor.h"
#include "editor/state.h"
#include "editor/vi_table.h"

static const char code[] = "int main(void)\n"
                           "{\n"
                           "    call(a, b[1]);\n"
                           "    if (x) {\n"
                           "        y = \"one two\";\n"
                           "    }\n"
                           "}\n";
static const char words[] = "one two  three.four five\n"
                            "\n"
                            "foo bar-baz qux\n"
                            "last line\n";
static const char prose[] = "First one. Second one!  Third?\n"
                            "Next line. End\n"
                            "\n"
                            "Another para.\n";
static const char marks[] = "<p class=\"a\"><b>bold</b> t</p>\n"
                            "x = 'q' + `k` <y>\n"
                            "-5 x10 0x1f 007\n";

struct row {
    const char *text, *keys, *wanted;
};

/* clang-format off */
static const struct row as_vim[] = {
    {words, "wldiw",
     "one |  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "wldaw",
     "one |three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "wldiW",
     "one |  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "wldaW",
     "one |three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "wlciwX\033",
     "one |X  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "wlcawX\033",
     "one |Xthree.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "wlciWX\033",
     "one |X  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "wlcaWX\033",
     "one |Xthree.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "wlyiwP",
     "one tw|otwo  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "wlyawP",
     "one two | two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "wlyiWP",
     "one tw|otwo  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "wlyaWP",
     "one two | two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "wlviwd",
     "one |  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "wlvawd",
     "one |three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "wlviWd",
     "one |  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "wlvaWd",
     "one |three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {code, "2jfadi(",
     "int main(void)\n{\n    call(|);\n    if (x) {\n        y = \"one two\";\n    }\n}\n"},
    {code, "2jf1di(",
     "int main(void)\n{\n    call(|);\n    if (x) {\n        y = \"one two\";\n    }\n}\n"},
    {code, "2jfaci(X\033",
     "int main(void)\n{\n    call(|X);\n    if (x) {\n        y = \"one two\";\n    }\n}\n"},
    {code, "2jfada(",
     "int main(void)\n{\n    call|;\n    if (x) {\n        y = \"one two\";\n    }\n}\n"},
    {code, "2jf1da(",
     "int main(void)\n{\n    call|;\n    if (x) {\n        y = \"one two\";\n    }\n}\n"},
    {code, "2jfaca(X\033",
     "int main(void)\n{\n    call|X;\n    if (x) {\n        y = \"one two\";\n    }\n}\n"},
    {code, "2jfadib",
     "int main(void)\n{\n    call(|);\n    if (x) {\n        y = \"one two\";\n    }\n}\n"},
    {code, "2jf1dib",
     "int main(void)\n{\n    call(|);\n    if (x) {\n        y = \"one two\";\n    }\n}\n"},
    {code, "2jfacibX\033",
     "int main(void)\n{\n    call(|X);\n    if (x) {\n        y = \"one two\";\n    }\n}\n"},
    {code, "2jfadab",
     "int main(void)\n{\n    call|;\n    if (x) {\n        y = \"one two\";\n    }\n}\n"},
    {code, "2jf1dab",
     "int main(void)\n{\n    call|;\n    if (x) {\n        y = \"one two\";\n    }\n}\n"},
    {code, "2jfacabX\033",
     "int main(void)\n{\n    call|X;\n    if (x) {\n        y = \"one two\";\n    }\n}\n"},
    {code, "2jfadi)",
     "int main(void)\n{\n    call(|);\n    if (x) {\n        y = \"one two\";\n    }\n}\n"},
    {code, "2jf1di)",
     "int main(void)\n{\n    call(|);\n    if (x) {\n        y = \"one two\";\n    }\n}\n"},
    {code, "2jfaci)X\033",
     "int main(void)\n{\n    call(|X);\n    if (x) {\n        y = \"one two\";\n    }\n}\n"},
    {code, "2jfada)",
     "int main(void)\n{\n    call|;\n    if (x) {\n        y = \"one two\";\n    }\n}\n"},
    {code, "2jf1da)",
     "int main(void)\n{\n    call|;\n    if (x) {\n        y = \"one two\";\n    }\n}\n"},
    {code, "2jfaca)X\033",
     "int main(void)\n{\n    call|X;\n    if (x) {\n        y = \"one two\";\n    }\n}\n"},
    {code, "2jfadi[",
     "int main(void)\n{\n    call(a, b[|]);\n    if (x) {\n        y = \"one two\";\n    }\n}\n"},
    {code, "2jf1di[",
     "int main(void)\n{\n    call(a, b[|]);\n    if (x) {\n        y = \"one two\";\n    }\n}\n"},
    {code, "2jfaci[X\033",
     "int main(void)\n{\n    call(a, b[|X]);\n    if (x) {\n        y = \"one two\";\n    }\n}\n"},
    {code, "2jfada]",
     "int main(void)\n{\n    call(a, b|);\n    if (x) {\n        y = \"one two\";\n    }\n}\n"},
    {code, "2jf1da]",
     "int main(void)\n{\n    call(a, b|);\n    if (x) {\n        y = \"one two\";\n    }\n}\n"},
    {code, "2jfaca]X\033",
     "int main(void)\n{\n    call(a, b|X);\n    if (x) {\n        y = \"one two\";\n    }\n}\n"},
    {code, "4jdi{",
     "int main(void)\n{\n    call(a, b[1]);\n    if (x) {\n    |}\n}\n"},
    {code, "4jyi{P",
     "int main(void)\n{\n    call(a, b[1]);\n    if (x) {\n        |y = \"one two\";\n"
     "        y = \"one two\";\n    }\n}\n"},
    {code, "4jci{X\033",
     "int main(void)\n{\n    call(a, b[1]);\n    if (x) {\n        |X\n    }\n}\n"},
    {code, "4jvi{d",
     "int main(void)\n{\n    call(a, b[1]);\n    if (x) {\n|    }\n}\n"},
    {code, "4jda{",
     "int main(void)\n{\n    call(a, b[1]);\n    if (x)| \n}\n"},
    {code, "4jya{P",
     "int main(void)\n{\n    call(a, b[1]);\n    if (x) |{\n        y = \"one two\";\n    }{\n"
     "        y = \"one two\";\n    }\n}\n"},
    {code, "4jca{X\033",
     "int main(void)\n{\n    call(a, b[1]);\n    if (x) |X\n}\n"},
    {code, "4jva{d",
     "int main(void)\n{\n    call(a, b[1]);\n    if (x)| \n}\n"},
    {code, "4jdiB",
     "int main(void)\n{\n    call(a, b[1]);\n    if (x) {\n    |}\n}\n"},
    {code, "4jyiBP",
     "int main(void)\n{\n    call(a, b[1]);\n    if (x) {\n        |y = \"one two\";\n"
     "        y = \"one two\";\n    }\n}\n"},
    {code, "4jciBX\033",
     "int main(void)\n{\n    call(a, b[1]);\n    if (x) {\n        |X\n    }\n}\n"},
    {code, "4jviBd",
     "int main(void)\n{\n    call(a, b[1]);\n    if (x) {\n|    }\n}\n"},
    {code, "4jdaB",
     "int main(void)\n{\n    call(a, b[1]);\n    if (x)| \n}\n"},
    {code, "4jyaBP",
     "int main(void)\n{\n    call(a, b[1]);\n    if (x) |{\n        y = \"one two\";\n    }{\n"
     "        y = \"one two\";\n    }\n}\n"},
    {code, "4jcaBX\033",
     "int main(void)\n{\n    call(a, b[1]);\n    if (x) |X\n}\n"},
    {code, "4jvaBd",
     "int main(void)\n{\n    call(a, b[1]);\n    if (x)| \n}\n"},
    {code, "4jdi}",
     "int main(void)\n{\n    call(a, b[1]);\n    if (x) {\n    |}\n}\n"},
    {code, "4jyi}P",
     "int main(void)\n{\n    call(a, b[1]);\n    if (x) {\n        |y = \"one two\";\n"
     "        y = \"one two\";\n    }\n}\n"},
    {code, "4jci}X\033",
     "int main(void)\n{\n    call(a, b[1]);\n    if (x) {\n        |X\n    }\n}\n"},
    {code, "4jvi}d",
     "int main(void)\n{\n    call(a, b[1]);\n    if (x) {\n|    }\n}\n"},
    {code, "4jdi\"",
     "int main(void)\n{\n    call(a, b[1]);\n    if (x) {\n        y = \"|\";\n    }\n}\n"},
    {code, "4jfwci\"X\033",
     "int main(void)\n{\n    call(a, b[1]);\n    if (x) {\n        y = \"|X\";\n    }\n}\n"},
    {code, "4jfnvi\"d",
     "int main(void)\n{\n    call(a, b[1]);\n    if (x) {\n        y = \"|\";\n    }\n}\n"},
    {code, "4jda\"",
     "int main(void)\n{\n    call(a, b[1]);\n    if (x) {\n        y =|;\n    }\n}\n"},
    {code, "4jfwca\"X\033",
     "int main(void)\n{\n    call(a, b[1]);\n    if (x) {\n        y =|X;\n    }\n}\n"},
    {code, "4jfnva\"d",
     "int main(void)\n{\n    call(a, b[1]);\n    if (x) {\n        y =|;\n    }\n}\n"},
    {marks, "jdi'",
     "<p class=\"a\"><b>bold</b> t</p>\nx = '|' + `k` <y>\n-5 x10 0x1f 007\n"},
    {marks, "jfkdi'",
     "<p class=\"a\"><b>bold</b> t</p>\nx = 'q' + `|k` <y>\n-5 x10 0x1f 007\n"},
    {marks, "jfyci'X\033",
     "<p class=\"a\"><b>bold</b> t</p>\nx = 'q' + `k` |y>\n-5 x10 0x1f 007\n"},
    {marks, "jda'",
     "<p class=\"a\"><b>bold</b> t</p>\nx = |+ `k` <y>\n-5 x10 0x1f 007\n"},
    {marks, "jfkda'",
     "<p class=\"a\"><b>bold</b> t</p>\nx = 'q' + `|k` <y>\n-5 x10 0x1f 007\n"},
    {marks, "jfyca'X\033",
     "<p class=\"a\"><b>bold</b> t</p>\nx = 'q' + `k` |y>\n-5 x10 0x1f 007\n"},
    {marks, "jdi`",
     "<p class=\"a\"><b>bold</b> t</p>\nx = 'q' + `|` <y>\n-5 x10 0x1f 007\n"},
    {marks, "jfkdi`",
     "<p class=\"a\"><b>bold</b> t</p>\nx = 'q' + `|` <y>\n-5 x10 0x1f 007\n"},
    {marks, "jfyci`X\033",
     "<p class=\"a\"><b>bold</b> t</p>\nx = 'q' + `k` |y>\n-5 x10 0x1f 007\n"},
    {marks, "jda`",
     "<p class=\"a\"><b>bold</b> t</p>\nx = 'q' + |<y>\n-5 x10 0x1f 007\n"},
    {marks, "jfkda`",
     "<p class=\"a\"><b>bold</b> t</p>\nx = 'q' + |<y>\n-5 x10 0x1f 007\n"},
    {marks, "jfyca`X\033",
     "<p class=\"a\"><b>bold</b> t</p>\nx = 'q' + `k` |y>\n-5 x10 0x1f 007\n"},
    {marks, "jdi<",
     "<p class=\"a\"><b>bold</b> t</p>\nx = 'q' + `k` <|>\n-5 x10 0x1f 007\n"},
    {marks, "jfkdi<",
     "<p class=\"a\"><b>bold</b> t</p>\nx = 'q' + `k` <|>\n-5 x10 0x1f 007\n"},
    {marks, "jfyci<X\033",
     "<p class=\"a\"><b>bold</b> t</p>\nx = 'q' + `k` <|X>\n-5 x10 0x1f 007\n"},
    {marks, "jda<",
     "<p class=\"a\"><b>bold</b> t</p>\nx = 'q' + `k`| \n-5 x10 0x1f 007\n"},
    {marks, "jfkda<",
     "<p class=\"a\"><b>bold</b> t</p>\nx = 'q' + `k`| \n-5 x10 0x1f 007\n"},
    {marks, "jfyca<X\033",
     "<p class=\"a\"><b>bold</b> t</p>\nx = 'q' + `k` |X\n-5 x10 0x1f 007\n"},
    {marks, "jdi>",
     "<p class=\"a\"><b>bold</b> t</p>\nx = 'q' + `k` <|>\n-5 x10 0x1f 007\n"},
    {marks, "jfkdi>",
     "<p class=\"a\"><b>bold</b> t</p>\nx = 'q' + `k` <|>\n-5 x10 0x1f 007\n"},
    {marks, "jfyci>X\033",
     "<p class=\"a\"><b>bold</b> t</p>\nx = 'q' + `k` <|X>\n-5 x10 0x1f 007\n"},
    {marks, "fldit",
     "<p class=\"a\">|</p>\nx = 'q' + `k` <y>\n-5 x10 0x1f 007\n"},
    {marks, "fld2it",
     "<p c|lass=\"a\"><b>bold</b> t</p>\nx = 'q' + `k` <y>\n-5 x10 0x1f 007\n"},
    {marks, "flcitX\033",
     "<p class=\"a\">|X</p>\nx = 'q' + `k` <y>\n-5 x10 0x1f 007\n"},
    {marks, "flvitd",
     "<p class=\"a\">|</p>\nx = 'q' + `k` <y>\n-5 x10 0x1f 007\n"},
    {marks, "ftdit",
     "<p class=\"a\">|</p>\nx = 'q' + `k` <y>\n-5 x10 0x1f 007\n"},
    {marks, "fldat",
     "|\nx = 'q' + `k` <y>\n-5 x10 0x1f 007\n"},
    {marks, "fld2at",
     "<p c|lass=\"a\"><b>bold</b> t</p>\nx = 'q' + `k` <y>\n-5 x10 0x1f 007\n"},
    {marks, "flcatX\033",
     "|X\nx = 'q' + `k` <y>\n-5 x10 0x1f 007\n"},
    {marks, "flvatd",
     "|\nx = 'q' + `k` <y>\n-5 x10 0x1f 007\n"},
    {marks, "flvatatd",
     "|\nx = 'q' + `k` <y>\n-5 x10 0x1f 007\n"},
    {marks, "ftdat",
     "|\nx = 'q' + `k` <y>\n-5 x10 0x1f 007\n"},
    {prose, "dip",
     "|\nAnother para.\n"},
    {prose, "jcipX\033",
     "|X\n\nAnother para.\n"},
    {prose, "vipd",
     "|\nAnother para.\n"},
    {prose, "2jdip",
     "First one. Second one!  Third?\nNext line. End\n|Another para.\n"},
    {prose, "3jdip",
     "First one. Second one!  Third?\nNext line. End\n|\n"},
    {prose, "yipP",
     "|First one. Second one!  Third?\nNext line. End\nFirst one. Second one!  Third?\n"
     "Next line. End\n\nAnother para.\n"},
    {prose, ">ip",
     "    |First one. Second one!  Third?\n    Next line. End\n\nAnother para.\n"},
    {prose, "dap",
     "|Another para.\n"},
    {prose, "jcapX\033",
     "|X\nAnother para.\n"},
    {prose, "vapd",
     "|Another para.\n"},
    {prose, "2jdap",
     "First one. Second one!  Third?\n|Next line. End\n"},
    {prose, "3jdap",
     "First one. Second one!  Third?\n|Next line. End\n"},
    {prose, "yapP",
     "|First one. Second one!  Third?\nNext line. End\n\nFirst one. Second one!  Third?\n"
     "Next line. End\n\nAnother para.\n"},
    {prose, ">ap",
     "    |First one. Second one!  Third?\n    Next line. End\n\nAnother para.\n"},
    {prose, "dis",
     "| Second one!  Third?\nNext line. End\n\nAnother para.\n"},
    {prose, "fSdis",
     "First one. |  Third?\nNext line. End\n\nAnother para.\n"},
    {prose, "fTdis",
     "First one. Second one! | \nNext line. End\n\nAnother para.\n"},
    {prose, "cisX\033",
     "|X Second one!  Third?\nNext line. End\n\nAnother para.\n"},
    {prose, "visd",
     "| Second one!  Third?\nNext line. End\n\nAnother para.\n"},
    {prose, "jdis",
     "First one. Second one!  Third?\n| End\n\nAnother para.\n"},
    {prose, "das",
     "|Second one!  Third?\nNext line. End\n\nAnother para.\n"},
    {prose, "fSdas",
     "First one. |Third?\nNext line. End\n\nAnother para.\n"},
    {prose, "fTdas",
     "First one. Second one|!\nNext line. End\n\nAnother para.\n"},
    {prose, "casX\033",
     "|XSecond one!  Third?\nNext line. End\n\nAnother para.\n"},
    {prose, "vasd",
     "|Second one!  Third?\nNext line. End\n\nAnother para.\n"},
    {prose, "jdas",
     "First one. Second one!  Third?\n|End\n\nAnother para.\n"},
    {words, "d2aw",
     "|three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "d3iw",
     "|  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "wviwiwd",
     "one |three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "2jfbdiw",
     "one two  three.four five\n\nfoo |-baz qux\nlast line\n"},
    {words, "2jfbdaW",
     "one two  three.four five\n\nfoo |qux\nlast line\n"},
    {words, "viwawd",
     "|  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "$daw",
     "one two  three.fou|r\n\nfoo bar-baz qux\nlast line\n"},
    {words, "2dw",
     "|three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "d2w",
     "|three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "2d2w",
     "|four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "3x",
     "| two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "dw.",
     "|three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "ciwX\033w.",
     "X |X  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "cwX\033w.w.",
     "X X  |X.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "A!\033j.",
     "one two  three.four five!\n|!\nfoo bar-baz qux\nlast line\n"},
    {words, "ox\033.",
     "one two  three.four five\nx\n|x\n\nfoo bar-baz qux\nlast line\n"},
    {words, "Iab\033j.",
     "abone two  three.four five\na|b\nfoo bar-baz qux\nlast line\n"},
    {words, "x3.",
     "|two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "dd.",
     "|foo bar-baz qux\nlast line\n"},
    {words, "2ddp",
     "foo bar-baz qux\n|one two  three.four five\n\nlast line\n"},
    {words, "\"ayw\"bywj\"ap\"bp",
     "one two  three.four five\none one| \nfoo bar-baz qux\nlast line\n"},
    {words, "\"add\"ap",
     "\n|one two  three.four five\nfoo bar-baz qux\nlast line\n"},
    {words, "\"ayyj\"Ayyj\"ap",
     "one two  three.four five\n\nfoo bar-baz qux\n|one two  three.four five\n\nlast line\n"},
    {words, "yyjdd\"0p",
     "one two  three.four five\nfoo bar-baz qux\n|one two  three.four five\nlast line\n"},
    {words, "dd\"1p",
     "\n|one two  three.four five\nfoo bar-baz qux\nlast line\n"},
    {words, "\"_ddp",
     "|\nfoo bar-baz qux\nlast line\n"},
    {words, "yyp2.",
     "one two  three.four five\none two  three.four five\n|one two  three.four five\n"
     "one two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "xp",
     "n|oe two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "ddp",
     "\n|one two  three.four five\nfoo bar-baz qux\nlast line\n"},
    {words, "ddP",
     "|one two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "5ix\033",
     "xxxx|xone two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "3oab\033",
     "one two  three.four five\nab\nab\na|b\n\nfoo bar-baz qux\nlast line\n"},
    {words, "2Iab\033",
     "aba|bone two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "gUiw.",
     "|ONE two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "gUiww.",
     "ONE |TWO  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "g~~",
     "|ONE TWO  THREE.FOUR FIVE\n\nfoo bar-baz qux\nlast line\n"},
    {words, "guu",
     "|one two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "gUU",
     "|ONE TWO  THREE.FOUR FIVE\n\nfoo bar-baz qux\nlast line\n"},
    {words, "vU",
     "|One two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "Vjd.",
     "|"},
    {words, "vld.",
     "|two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "jViwd",
     "one two  three.four five\n|foo bar-baz qux\nlast line\n"},
    {words, "fe;d;",
     "one two  thr|.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "te;d;",
     "one two  th|e.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "$Feld,",
     "one two  thre|e\n\nfoo bar-baz qux\nlast line\n"},
    {words, "fed,",
     "on|e two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "dte",
     "|e two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "dfo",
     "|  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "d$",
     "|\n\nfoo bar-baz qux\nlast line\n"},
    {words, "d0",
     "|one two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "d^",
     "|one two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "dG",
     "|"},
    {words, "jdgg",
     "|foo bar-baz qux\nlast line\n"},
    {words, "d}",
     "|\nfoo bar-baz qux\nlast line\n"},
    {words, "2jd{",
     "one two  three.four five\n|foo bar-baz qux\nlast line\n"},
    {words, "2jdk",
     "one two  three.four five\n|last line\n"},
    {words, "dj",
     "|foo bar-baz qux\nlast line\n"},
    {words, "wdb",
     "|two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "wdge",
     "on|wo  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "dE",
     "| two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "2jd2h",
     "one two  three.four five\n\n|foo bar-baz qux\nlast line\n"},
    {words, "gg$d3l",
     "one two  three.four fi|v\n\nfoo bar-baz qux\nlast line\n"},
    {words, "Gd-",
     "one two  three.four five\n|\n"},
    {words, "2GD",
     "one two  three.four five\n|\nfoo bar-baz qux\nlast line\n"},
    {words, "G",
     "one two  three.four five\n\nfoo bar-baz qux\n|last line\n"},
    {words, "3G",
     "one two  three.four five\n\n|foo bar-baz qux\nlast line\n"},
    {words, "wG",
     "one two  three.four five\n\nfoo bar-baz qux\n|last line\n"},
    {words, "jjgg",
     "|one two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "d3G",
     "|last line\n"},
    {words, ":2\r",
     "one two  three.four five\n|\nfoo bar-baz qux\nlast line\n"},
    {words, "50%",
     "one two  three.four five\n|\nfoo bar-baz qux\nlast line\n"},
    {words, "dW",
     "|two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "2jdW",
     "one two  three.four five\n\n|bar-baz qux\nlast line\n"},
    {words, "w*",
     "one |two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "w*#",
     "one |two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "jj0e",
     "one two  three.four five\n\nfo|o bar-baz qux\nlast line\n"},
    {words, "eee",
     "one two  thre|e.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "bbb",
     "|one two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "2jwdB",
     "one two  three.four five\n\n|bar-baz qux\nlast line\n"},
    {words, "W",
     "one |two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "E",
     "on|e two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "gE",
     "|one two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "2jge",
     "one two  three.four five\n|\nfoo bar-baz qux\nlast line\n"},
    {code, "2jf(%",
     "int main(void)\n{\n    call(a, b[1]|);\n    if (x) {\n        y = \"one two\";\n    }\n}\n"},
    {code, "2jf(d%",
     "int main(void)\n{\n    call|;\n    if (x) {\n        y = \"one two\";\n    }\n}\n"},
    {code, "jd%",
     "|int main(void)\n"},
    {code, "%",
     "int main(void|)\n{\n    call(a, b[1]);\n    if (x) {\n        y = \"one two\";\n    }\n}\n"},
    {code, "f(d%",
     "int mai|n\n{\n    call(a, b[1]);\n    if (x) {\n        y = \"one two\";\n    }\n}\n"},
    {code, "3j$%",
     "int main(void)\n{\n    call(a, b[1]);\n    if (x) {\n        y = \"one two\";\n    |}\n}\n"},
    {code, "majd`a",
     "|{\n    call(a, b[1]);\n    if (x) {\n        y = \"one two\";\n    }\n}\n"},
    {code, "majjd'a",
     "    |if (x) {\n        y = \"one two\";\n    }\n}\n"},
    {code, "majjjy'aP",
     "|int main(void)\n{\n    call(a, b[1]);\n    if (x) {\nint main(void)\n{\n    call(a, b[1]);\n"
     "    if (x) {\n        y = \"one two\";\n    }\n}\n"},
    {code, "2jmbggd`b",
     "    |call(a, b[1]);\n    if (x) {\n        y = \"one two\";\n    }\n}\n"},
    {code, "jj''",
     "|int main(void)\n{\n    call(a, b[1]);\n    if (x) {\n        y = \"one two\";\n    }\n}\n"},
    {code, "G``",
     "|int main(void)\n{\n    call(a, b[1]);\n    if (x) {\n        y = \"one two\";\n    }\n}\n"},
    {code, "2Gmx4G'xdd",
     "int main(void)\n    |call(a, b[1]);\n    if (x) {\n        y = \"one two\";\n    }\n}\n"},
    {code, "4G`.",
     "int main(void)\n{\n    call(a, b[1]);\n    |if (x) {\n        y = \"one two\";\n    }\n}\n"},
    {prose, "d)",
     "|Second one!  Third?\nNext line. End\n\nAnother para.\n"},
    {prose, "fSd(",
     "|Second one!  Third?\nNext line. End\n\nAnother para.\n"},
    {prose, ")x",
     "First one. |econd one!  Third?\nNext line. End\n\nAnother para.\n"},
    {prose, "))x",
     "First one. Second one!  |hird?\nNext line. End\n\nAnother para.\n"},
    {prose, "(",
     "|First one. Second one!  Third?\nNext line. End\n\nAnother para.\n"},
    {prose, "}x",
     "First one. Second one!  Third?\nNext line. End\n|\nAnother para.\n"},
    {prose, "}}x",
     "First one. Second one!  Third?\nNext line. End\n\nAnother par|a\n"},
    {prose, "{",
     "|First one. Second one!  Third?\nNext line. End\n\nAnother para.\n"},
    {prose, "d2)",
     "|Third?\nNext line. End\n\nAnother para.\n"},
    {prose, "j{d}",
     "|\nAnother para.\n"},
    {words, "/three\rx",
     "one two  |hree.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "d/three\r",
     "|three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "/o\rnx",
     "one two  three.f|ur five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "/o\rNx",
     "|ne two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "?line\rx",
     "one two  three.four five\n\nfoo bar-baz qux\nlast |ine\n"},
    {words, "G?t\rnx",
     "one |wo  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "/e\rxn.",
     "on two  thr|e.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "y/three\rP",
     "one two | one two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "c/th\rX\033",
     "|Xthree.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "/zz\rx",
     "|ne two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "v/three\rd",
     "|hree.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, ":s/o/0/\r",
     "|0ne two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, ":s/o/0/g\r",
     "|0ne tw0  three.f0ur five\n\nfoo bar-baz qux\nlast line\n"},
    {words, ":%s/o/0/g\r",
     "0ne tw0  three.f0ur five\n\n|f00 bar-baz qux\nlast line\n"},
    {words, ":%s/a/[&]/g\r",
     "one two  three.four five\n\nfoo b[a]r-b[a]z qux\n|l[a]st line\n"},
    {words, ":2,3s/a/X/\r",
     "one two  three.four five\n\n|foo bXr-baz qux\nlast line\n"},
    {words, ":s/two/a\\rb/\r",
     "one a\n|b  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, ":%s/line$/end/\r",
     "one two  three.four five\n\nfoo bar-baz qux\n|last end\n"},
    {words, ":s,one,1,\r",
     "|1 two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, ":s/O/x/i\r",
     "|xne two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, ":s/ONE/x/\r",
     "|one two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, ":s/two\r",
     "|one   three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, ":g/o/d\r",
     "\n|last line\n"},
    {words, ":v/o/d\r",
     "one two  three.four five\n|foo bar-baz qux\n"},
    {words, ":g/a/s/a/A/g\r",
     "one two  three.four five\n\nfoo bAr-bAz qux\n|lAst line\n"},
    {words, ":g/o/t.\r",
     "one two  three.four five\none two  three.four five\n\nfoo bar-baz qux\n|foo bar-baz qux\nlast line\n"},
    {words, ":g/^/m0\r",
     "|last line\nfoo bar-baz qux\n\none two  three.four five\n"},
    {words, ":3m0\r",
     "|foo bar-baz qux\none two  three.four five\n\nlast line\n"},
    {words, ":1t$\r",
     "one two  three.four five\n\nfoo bar-baz qux\nlast line\n|one two  three.four five\n"},
    {words, ":1,2d\r",
     "|foo bar-baz qux\nlast line\n"},
    {words, ":d\rp",
     "\n|one two  three.four five\nfoo bar-baz qux\nlast line\n"},
    {words, ":3y\rP",
     "|foo bar-baz qux\none two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, ":1,3j\r",
     "|one two  three.four five foo bar-baz qux\nlast line\n"},
    {words, ":2,$>\r",
     "one two  three.four five\n\n    foo bar-baz qux\n    |last line\n"},
    {words, ":norm xx\r",
     "|e two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, ":%norm Iz\r",
     "zone two  three.four five\nz\nzfoo bar-baz qux\n|zlast line\n"},
    {words, "jj:.,+1d\r",
     "one two  three.four five\n|\n"},
    {words, ":1,99d\r",
     "|one two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, ":2ka\rd'a",
     "|foo bar-baz qux\nlast line\n"},
    {words, ":.+2\r",
     "one two  three.four five\n\n|foo bar-baz qux\nlast line\n"},
    {words, ":$\r",
     "one two  three.four five\n\nfoo bar-baz qux\n|last line\n"},
    {words, ":/foo\r",
     "one two  three.four five\n\n|foo bar-baz qux\nlast line\n"},
    {words, ":/foo/,$d\r",
     "one two  three.four five\n|\n"},
    {words, "Vj:s/o/0/g\r",
     "|0ne tw0  three.f0ur five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "vjjd:pu\r",
     "oo bar-baz qux\none two  three.four five\n\n|f\nlast line\n"},
    {words, ":%s/o/0/gn\r",
     "|one two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, ":s/o/0/\rj&",
     "0ne two  three.four five\n|\nfoo bar-baz qux\nlast line\n"},
    {words, ":%s/o/0/\rg&",
     "0ne tw0  three.four five\n\n|f00 bar-baz qux\nlast line\n"},
    {words, "vey2jP",
     "one two  three.four five\n\non|efoo bar-baz qux\nlast line\n"},
    {words, "Vyp",
     "one two  three.four five\n|one two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "Vjd",
     "|foo bar-baz qux\nlast line\n"},
    {words, "vjd",
     "|foo bar-baz qux\nlast line\n"},
    {words, "ved",
     "| two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "v$d",
     "|\nfoo bar-baz qux\nlast line\n"},
    {words, "Vc7\033",
     "|7\n\nfoo bar-baz qux\nlast line\n"},
    {words, "vjo0d",
     "|foo bar-baz qux\nlast line\n"},
    {words, "vwy\033gvd",
     "|wo  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "vj~",
     "|ONE TWO  THREE.FOUR FIVE\n\nfoo bar-baz qux\nlast line\n"},
    {words, "vU",
     "|One two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "VU",
     "|ONE TWO  THREE.FOUR FIVE\n\nfoo bar-baz qux\nlast line\n"},
    {words, ">>",
     "    |one two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "2>>",
     "    |one two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "Vj>",
     "    |one two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "V2>",
     "        |one two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "yiwwviwp",
     "one on|e  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "yyjVp",
     "one two  three.four five\n|one two  three.four five\nfoo bar-baz qux\nlast line\n"},
    {words, "yiwjVp",
     "one two  three.four five\n|one\nfoo bar-baz qux\nlast line\n"},
    {words, "yyw viwp",
     "one \n|one two  three.four five\n  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "vJ",
     "one two  three.four fiv|e\nfoo bar-baz qux\nlast line\n"},
    {words, "VjjJ",
     "one two  three.four five| foo bar-baz qux\nlast line\n"},
    {words, "VjgJ",
     "one two  three.four fiv|e\nfoo bar-baz qux\nlast line\n"},
    {words, "wvrX",
     "one |Xwo  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "VjrX",
     "|XXXXXXXXXXXXXXXXXXXXXXXX\n\nfoo bar-baz qux\nlast line\n"},
    {words, "viwcX\033ww.",
     "X two  |Xee.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "veu",
     "|one two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "viwx",
     "| two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "vipd",
     "|\nfoo bar-baz qux\nlast line\n"},
    {words, "vapd",
     "|foo bar-baz qux\nlast line\n"},
    {words, "vjjy`]p",
     "one two  three.four five\n\nf|one two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {code, "\026jjd",
     "|nt main(void)\n\n   call(a, b[1]);\n    if (x) {\n        y = \"one two\";\n    }\n}\n"},
    {code, "\026jjlly$p",
     "int main(void)|int\n{             {\n    call(a, b[   1]);\n    if (x) {\n        y = \"one two\";\n    }\n}\n"},
    {code, "w\026jjd",
     "int |ain(void)\n{\n    all(a, b[1]);\n    if (x) {\n        y = \"one two\";\n    }\n}\n"},
    {code, "2j\0264ljjd",
     "int main(void)\n{\n|all(a, b[1]);\nf (x) {\n   y = \"one two\";\n    }\n}\n"},
    {code, "2j\026jjIX\033",
     "int main(void)\n{\n|X    call(a, b[1]);\nX    if (x) {\nX        y = \"one two\";\n    }\n}\n"},
    {code, "2j\026jcZ\033",
     "int main(void)\n{\n|Z   call(a, b[1]);\nZ   if (x) {\n        y = \"one two\";\n    }\n}\n"},
    {code, "2j\026jjrX",
     "int main(void)\n{\n|X   call(a, b[1]);\nX   if (x) {\nX       y = \"one two\";\n    }\n}\n"},
    {code, "2j\026jj~",
     "int main(void)\n{\n|    call(a, b[1]);\n    if (x) {\n        y = \"one two\";\n    }\n}\n"},
    {code, "\026Gd",
     "|nt main(void)\n\n   call(a, b[1]);\n   if (x) {\n       y = \"one two\";\n   }\n\n"},
    {code, "2j\026jjx.",
     "int main(void)\n{\n|  call(a, b[1]);\n  if (x) {\n      y = \"one two\";\n    }\n}\n"},
    {code, "2j\026jdp",
     "int main(void)\n{\n |   call(a, b[1]);\n    if (x) {\n        y = \"one two\";\n    }\n}\n"},
    {code, "2j\026jdP",
     "int main(void)\n{\n|    call(a, b[1]);\n    if (x) {\n        y = \"one two\";\n    }\n}\n"},
    {code, "2j\026jlyp",
     "int main(void)\n{\n |     call(a, b[1]);\n      if (x) {\n        y = \"one two\";\n    }\n}\n"},
    {code, "4j\026k$d",
     "int main(void)\n{\n    call(a, b[1]);\n|\n\n    }\n}\n"},
    {code, "2j\026jlD",
     "int main(void)\n{\n|\n\n        y = \"one two\";\n    }\n}\n"},
    {code, "2j\026jlCX\033",
     "int main(void)\n{\n|X\nX\n        y = \"one two\";\n    }\n}\n"},
    {code, "2j\026jloOd",
     "int main(void)\n{\n|  call(a, b[1]);\n  if (x) {\n        y = \"one two\";\n    }\n}\n"},
    {words, "ione\033",
     "on|eone two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "aXY\033u",
     "o|ne two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "oab\rcd\033.",
     "one two  three.four five\nab\ncd\nab\nc|d\n\nfoo bar-baz qux\nlast line\n"},
    {words, "Oab\033",
     "a|b\none two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "wihello\027bye\033",
     "one by|etwo  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "iab\025c\033",
     "|cone two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "i\022\"x\033",
     "|xone two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "yiwA\022\"\033",
     "one two  three.four fiveon|e\n\nfoo bar-baz qux\nlast line\n"},
    {words, "Rabc\033",
     "ab|c two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "Rabc\177\177\033",
     "|ane two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "3Rab\033",
     "ababa|bo  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "$i!\033",
     "one two  three.four fiv|!e\n\nfoo bar-baz qux\nlast line\n"},
    {words, "cc7\033",
     "|7\n\nfoo bar-baz qux\nlast line\n"},
    {words, "S7\033",
     "|7\n\nfoo bar-baz qux\nlast line\n"},
    {words, "C7\033",
     "|7\n\nfoo bar-baz qux\nlast line\n"},
    {words, "s7\033",
     "|7ne two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "3s7\033",
     "|7 two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "2cc7\033",
     "|7\nfoo bar-baz qux\nlast line\n"},
    {words, "ccx\033j.",
     "x\n|x\nfoo bar-baz qux\nlast line\n"},
    {words, "rX",
     "|Xne two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "3rX",
     "XX|X two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "r\r",
     "\n|ne two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "99rX",
     "|one two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "~",
     "O|ne two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "3~",
     "ONE| two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "w~.",
     "one TW|o  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "J",
     "one two  three.four fiv|e\nfoo bar-baz qux\nlast line\n"},
    {words, "3J",
     "one two  three.four five| foo bar-baz qux\nlast line\n"},
    {words, "jJ",
     "one two  three.four five\n|foo bar-baz qux\nlast line\n"},
    {words, "gJ",
     "one two  three.four fiv|e\nfoo bar-baz qux\nlast line\n"},
    {words, "2jJ",
     "one two  three.four five\n\nfoo bar-baz qux| last line\n"},
    {words, "iab\033$.gi!\033",
     "abone two  three.four fivab|!e\n\nfoo bar-baz qux\nlast line\n"},
    {words, "ix\033u\022",
     "|xone two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "ddu",
     "|one two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "ddu\022",
     "|\nfoo bar-baz qux\nlast line\n"},
    {words, "xxx2u",
     "|ne two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "dduu",
     "|one two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "xxuu\022",
     "|ne two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "ix\ry\033u",
     "|one two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "A\rx\033",
     "one two  three.four five\n|x\n\nfoo bar-baz qux\nlast line\n"},
    {words, "p",
     "|one two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "gp",
     "|one two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "yygp",
     "one two  three.four five\none two  three.four five\n|\nfoo bar-baz qux\nlast line\n"},
    {words, "ywgPix\033",
     "one |xone two  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "yyjgpix\033",
     "one two  three.four five\n\none two  three.four five\n|xfoo bar-baz qux\nlast line\n"},
    {marks, "jj\001",
     "<p class=\"a\"><b>bold</b> t</p>\nx = 'q' + `k` <y>\n-|4 x10 0x1f 007\n"},
    {marks, "jj5\001",
     "<p class=\"a\"><b>bold</b> t</p>\nx = 'q' + `k` <y>\n|0 x10 0x1f 007\n"},
    {marks, "jj\030",
     "<p class=\"a\"><b>bold</b> t</p>\nx = 'q' + `k` <y>\n-|6 x10 0x1f 007\n"},
    {marks, "jjw\001",
     "<p class=\"a\"><b>bold</b> t</p>\nx = 'q' + `k` <y>\n-|4 x10 0x1f 007\n"},
    {marks, "jjw3\030",
     "<p class=\"a\"><b>bold</b> t</p>\nx = 'q' + `k` <y>\n-|8 x10 0x1f 007\n"},
    {marks, "jjfx\001",
     "<p class=\"a\"><b>bold</b> t</p>\nx = 'q' + `k` <y>\n-5 x1|1 0x1f 007\n"},
    {marks, "jjf0l\001",
     "<p class=\"a\"><b>bold</b> t</p>\nx = 'q' + `k` <y>\n-5 x10 0x2|0 007\n"},
    {marks, "jj11l\001",
     "<p class=\"a\"><b>bold</b> t</p>\nx = 'q' + `k` <y>\n-5 x10 0x1f 00|8\n"},
    {marks, "jj$\001",
     "<p class=\"a\"><b>bold</b> t</p>\nx = 'q' + `k` <y>\n-5 x10 0x1f 00|8\n"},
    {marks, "jj$\030",
     "<p class=\"a\"><b>bold</b> t</p>\nx = 'q' + `k` <y>\n-5 x10 0x1f 00|6\n"},
    {words, "qaxjq@a",
     "ne two  three.four five\n\n|foo bar-baz qux\nlast line\n"},
    {words, "qaA!\033jq2@a",
     "one two  three.four five!\n!\nfoo bar-baz qux!\nlast lin|e\n"},
    {words, "qawciwX\033q@a",
     "one X  |X.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "qaxq3@a@@",
     "|wo  three.four five\n\nfoo bar-baz qux\nlast line\n"},
    {words, "qqddq@q",
     "|foo bar-baz qux\nlast line\n"},
    {"a\nb\nc\nd\ne\n", "dddddd\"1p..", "d\nc\nb\n|a\ne\n"},
    {"a\nb\nc\nd\ne\n", "dddd\"2p.j.", "c\na\n|d\ne\n"},
    {"abc\n", "i\026065\033", "|Aabc\n"},
    {"abc\n", "i\026u20acx\033", "\342\202\254|xabc\n"},
    {"abc\n", "i\026x41\026o101\026U0001f600\033", "AA|\360\237\230\200abc\n"},
    {"abc\n", "i\02665y\033", "A|yabc\n"},
    {"abc\n", "i\026\tx\033", "\t|xabc\n"},
    {"abc\n", "i\026\033x\033", "\033|xabc\n"},
    {"abc\n", "i\026ax\033", "a|xabc\n"},
    {"abc\n", "i\026\001x\033", "\001|xabc\n"},
    {"abc\n", "R\02666y\033", "B|yc\n"},
    {"abc\n", "i\026u4z\033.", "\004\004|zzabc\n"},
    {"a\nb\nc\n", ":s/a/x/|2d\r", "x\n|c\n"},
    {"a\nb\nc\n", ":2|d\r", "a\n|c\n"},
    {"a\nb\nc\n", ":s/q/x/|2d\r", "|a\nb\nc\n"},
    {"a\nb\na\n", ":g/a/s/a/x/|s/$/!/\r", "x!\nb\n|x!\n"},
    {"a\nb\nc\n", ":norm Ax|y\r", "ax||y\nb\nc\n"},
    {"a\nb\nc\n", ":1d|1d | put\r", "c\n|b\n"},
};

static const struct row own[] = {
    {"a\nb\nc\nd\ne\n", "dddddd\"1pu.u.", "d\n|a\ne\n"},
    {"a|b\nb\nc\n", ":s/a|b/z/g|s/z/q/\r", "|q|z\nb\nc\n"},
    {"a\nb\n", ":s/a/x\\|y/|2s/b/z/\r", "x|y\n|z\n"},
    {"a\nb\n", "i\026uD800\033", "|a\nb\n"},
    {"a<b\n", "/[\\<>]\rx", "a|b\n"},
    {"a foo\n", "/\\<foo\\>\r0:s//x/\r", "|a x\n"},
    {"ax\r\nbx\r\n", "/x$\riy\033", "a|yx\r\nbx\r\n"},
    {"ax\r\nbx\r\n", ":%s/x$/y/\r", "ay\r\n|by\r\n"},
    {"a\r\nb\r\n", "onew\033", "a\r\nne|w\r\nb\r\n"},
    {"a\r\nb\r\n", "jOnew\033", "a\r\nne|w\r\nb\r\n"},
    {"a\r\nb\r\n", "yyp", "a\r\n|a\r\nb\r\n"},
    {"a\r\nb\r\n", "ccx\033", "|x\r\nb\r\n"},
    {"a\r\nb\r\n", "J", "a| b\r\n"},
    {"a\r\nb\r\n", "$x", "|\r\nb\r\n"},
    {"a\r\nb\r\n", "jdd", "|a\r\n"},
    {"a\r\nb\r\n", "$ax\033", "a|x\r\nb\r\n"},
    {"ab cd\r\n", "ww", "ab c|d\r\n"},
    {"ab\r\ncd\r\n", "\026jyjp", "ab\r\nc|ad\r\n c\r\n"},
    {"a\nb", "jyyp", "a\nb\n|b"},
    {"a\nb", "yyjp", "a\nb\n|a"},
    {"a\nb", "jdd", "|a"},
    {"a\nb", "jddP", "|b\na"},
    {"a\nb", "jVp", "a\n|b"},
    {"a\nb", ":m$\r", "b\n|a"},
    {"a\nb", "j:m0\r", "|b\na"},
    {"a\nb", ":t$\r", "a\nb\n|a"},
    {"b", ":m.\r", "|b"},
    {"a\nb", ":%m$\r", "|a\nb"},
    {"a\nb\nc", ":2,3m0\r", "b\n|c\na"},
    {"a\r\nb", "yyGp", "a\r\nb\r\n|a"},
    {"a\r\nb", "jyyP", "a\r\n|b\r\nb"},
    {"a\r\nb\r\n", "yl:put\r", "a\r\n|a\r\nb\r\n"},
    {"a\r\nb", "yyjVp", "a\r\n|a"},
    {"a b\r\n", "yyviwp", "\r\n|a b\r\n b\r\n"},
    {"a\r\nb", ":$m0\r", "|b\r\na"},
    {"a\r\nb", ":m$\r", "b\r\n|a"},
    {"a\r\nb", ":t$\r", "a\r\nb\r\n|a"},
    {"a", "dd", "|"},
    {"", "ddpxJ~rx.uix\033", "|x"},
    {"", "d}diwdapd%yiwP>>gUU:%s/a/b/\rviwd", "|"},
    {"\303\244\303\266 \346\274\242\345\255\227 x", "x", "|\303\266 \346\274\242\345\255\227 x"},
    {"\303\244\303\266 \346\274\242\345\255\227 x", "wr\303\274", "\303\244\303\266 |\303\274\345\255\227 x"},
    {"\303\244\303\266 \346\274\242\345\255\227 x", "f\345\255\227x", "\303\244\303\266 \346\274\242| x"},
    {"\303\244\303\266 \346\274\242\345\255\227 x", "2~", "\303\204\303\226| \346\274\242\345\255\227 x"},
    {"\303\244\303\266 \346\274\242\345\255\227 x", "wciw\303\237\033", "\303\244\303\266 |\303\237 x"},
    {"\303\244\303\266 \303\244\303\266", "*x", "\303\244\303\266 |\303\266"},
    {"\377b\376", "xx", "|\376"},
    {"\377b\376", "gUU", "|\377B\376"},
    {"a\nb\nc\n", ":2,3norm kIx\r", "xa\n|xb\nc\n"},
    {"a\nb\nc\n", ":2,3norm OX\r", "a\nX\n|X\nb\nc\n"},
    {"a\nb\nc\n", ":%norm dd\r", "|b\n"},
    {"a b\n", "qqxq:%norm @q\r", "|b\n"},
    {"f(a)\n", "qqixq\033", "x|qf(a)\n"},          /* in insert mode, q is only typed */
    {"a\n", "qq@qxq@q", "|\n"},                       /* a macro that plays itself ends */
    {"one\n", "99999999999iab\033", "one\n"},         /* a count is limited; text typed before stays */
    {"x\n", ":set number wrap et ts=4\r:w\r\033x", "|\n"},
    {"abc\n", "vly:s/\\(/x/\r", "|abc\n"},           /* an invalid pattern */
    {"abc\n", ":s/b/a&b\\&\\\\$1/\r", "|aabb&\\$1c\n"},
    {"abc\n", ":s/b/[\\5]/\r", "|a[]c\n"}, /* a group that the pattern lacks */
    {"a.b\n", ":s#\\.#/#\r", "|a/b\n"},
    {"food foo\n", "/\\<foo\\>\rx", "food |oo\n"},
    {"foo food\n", ":s/\\<foo\\>/x/g\r", "|x food\n"},
    /* a match does not cross the end of a line */
    {"a  \n\nb\n", ":%s/\\s+$//\r", "|a\n\nb\n"},
    {"x\ny\n", ":%s/\\s+$//\r", "|x\ny\n"},
    {"a \r\nb\r\n", ":%s/\\s+$//\r", "|a\r\nb\r\n"},
    {"a\r\nb\r\n", ":%s/$/x/\r", "ax\r\n|bx\r\n"},
    {"x\n\n\nb\n", ":%s/^\\s*$/-/\r", "x\n-\n|-\nb\n"},
    {"a\nb c\nd", ":%s/([^x]+)/<\\1>/g\r", "<a>\n<b c>\n|<d>"},
    {"a\n\nb\n", ":g/^\\s*$/d\r", "a\n|b\n"},
    {"a\n\n\nb\n", ":g/^\\s*$/d\r", "a\n|b\n"},
    /* ^ matches once per line */
    {"aaa\n", ":s/^a//g\r", "|aa\n"},
    {"aa\nab\n", ":%s/^a//g\r", "a\n|b\n"},
    {"aa\nab\n", ":%s/^a//\r", "a\n|b\n"},
    {"aaa\naab\n", ":%s/^a//gc\ryn/a\rx", "aa\na|b\n"},
    {"a b c\n", ":s/ /,/gc\ryn", "a,b| c\n"},
    {"ab\nab\nab\n", ":1,2s/a/x/gc\ra", "xb\nx|b\nab\n"},
    /* a backward range changes nothing, and ends the line of commands */
    {"a\nb\nc\n", ":3,2d\r", "|a\nb\nc\n"},
    {"a\nb\nc\n", "j:.,1s/./x/\r", "a\n|b\nc\n"},
    {"a\nb\nc\n", ":$,1d|2d\r", "|a\nb\nc\n"},
    {"a\nb\nc\n", "jmaggma:2ka\r:'a,1y\rp", "|a\nb\nc\n"},
    {"a\nb\nc\n", ":2,2d\r", "a\n|c\n"},
    {"a a\na a\n", ":%s/a/x/c\rya", "x a\nx| a\n"},
    /* empty matches: one at each place; the last is the one at the end of the text */
    {"a\nb\nc\nd\n", ":%s/$/x/\r", "ax\nbx\ncx\n|dx\n"},
    {"a\nb\nc", ":%s/$/x/\r", "ax\nbx\n|cx"},
    {"a\nb", ":%s/$/x/g\r", "ax\n|bx"},
    {"a\nb\nc\n", ":%s/$/x/c\ryyy", "ax\nbx\n|cx\n"},
    {"a\nb\nc\n", ":%s/^/x/c\ryny", "xa\nb\nx|c\n"},
    {"ab", ":s/x*/-/gc\ryny", "-ab|-"},
    {"abc", "/b\r:replace\r$\rx\ra", "abc|x"},
    {"abc", "/b\r:replace\r$\rx\rnx", "a|b"},
    {"        a\n        b\n", "Vj2<", "|a\nb\n"},
    /* C-o allows one command of ':', also a cancelled one; then insert mode continues */
    {"ab\n", "i\017:s/b/c/\rdd\033", "d|dac\n"},
    {"ab\n", "i\017:\033x\033", "|xab\n"},
    {"ab\n", "i\017/b\rx\033", "a|xb\n"},
    {"ab\n", "i\017/c\033x\033", "|xab\n"},
    {"ab\n", "i\017:s/b/c/c\ryx\033", "ac|x\n"},
    {"ab\n", "i\017:norm x\ry\033", "|yb\n"},
    {"abcb\n", "x:s/c/d/\rl.", "b|b\n"}, /* '.' does not repeat the ':' command */
    {"aacc\n", "x:s/c/d/\r@:l.", "a|d\n"},
    /* visual mode ends when another text or window gets the focus */
    {"abc\ndef\n", ":e /tmp/whit-vi-none\rione two\033vgtx", "|bc\ndef\n"},
    {"abc\ndef\n", ":e /tmp/whit-vi-none\rione two\033v\036x", "|bc\ndef\n"},
    {"abc def\n", "wv\027s0x", "|bc def\n"},
    {"ab\nc\n", ":delete\r", "|c\n"}, /* vi's commands precede the editor's */
    {"ab\nc\n", ":delete-line\r", "|c\n"},
    {"a\n", "gcc", "|# a\n"},
    {"a\nb\nc\n", "2gcc", "|# a\n# b\nc\n"},
    {"0xffffffffffffffff\n", "\001", "0x000000000000000|0\n"},
    {"0x8000000000000000\n", "\030", "0x7ffffffffffffff|f\n"},
    {"0x12345678123456789\n", "\001", "|0x12345678123456789\n"}, /* does not fit 64 bits */
    {"0xAB\n", "\001", "0xA|C\n"},
    {"one two\n", "wdiw\"-P", "onetw|o \n"},
    {"a\nb\n", "ayank\033yyjp:1d\ru", "|ayank\nb\nayank\n"},
};
/* clang-format on */

/* Opens an editor with n bytes of text in a new file. `path` is a template for mkstemp and becomes the file's path. */
static whit_editor *open_text(const char *text, size_t n, char *path, whit_screen *screen)
{
    whit_editor_options options = {.config = "keys = vi\nindent = 4\n", .project = "/proc/self/attr/none"};
    whit_editor *editor;
    whit_error error;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, n), n);
    close(fd);
    assert_int_equal(whit_editor_open(&options, &editor, &error), WHIT_OK);
    assert_true(whit_screen_resize(screen, 60, 24));
    assert_int_equal(whit_editor_add_file(editor, path, &error), WHIT_OK);
    whit_editor_draw(editor, screen);
    return editor;
}

static void type_keys(whit_editor *editor, const char *at)
{
    whit_keys keys = {0};
    whit_key key;
    for (; *at && !whit_editor_is_done(editor); at++) {
        assert_true(whit_keys_feed(&keys, at, 1));
        bool lone = *at == 27; /* an Escape that begins no sequence */
        while (whit_keys_next(&keys, lone, &key)) whit_editor_key(editor, key, NULL, 0);
    }
    whit_keys_free(&keys);
}

static void play(const struct row *row, size_t number, const char *table)
{
    char path[] = "/tmp/whit-vi-XXXXXX";
    whit_screen screen = {0};
    size_t n = strlen(row->text);
    whit_editor *editor = open_text(row->text, n, path, &screen);
    type_keys(editor, row->keys);
    whit_editor_draw(editor, &screen);
    char got[8192] = "";
    if (!whit_editor_is_done(editor)) {
        if (ed_vi_is_inserting(editor)) whit_editor_key(editor, (whit_key){.code = WHIT_KEY_ESCAPE}, NULL, 0);
        size_t cursor = (size_t)ed_cursor(editor)->offset;
        assert_true(whit_text_size(ed_text(editor)) < sizeof got - 2 || !strchr(row->wanted, '|'));
        n = whit_text_read(ed_text(editor), 0, got, sizeof got - 2);
        if (strchr(row->wanted, '|')) {
            memmove(got + cursor + 1, got + cursor, n - cursor + 1);
            got[cursor] = '|';
            if (strcmp(got, row->wanted))
                fail_msg("%s %zu, keys '%s': '%s', not '%s' (%s)", table, number, row->keys, got, row->wanted,
                         editor->message);
        }
    }
    whit_editor_close(editor);
    whit_screen_free(&screen);
    unlink(path);
}

static void rows_of_vim(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof as_vim / sizeof *as_vim; i++) play(&as_vim[i], i, "as_vim");
}

static void own_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) play(&own[i], i, "own");
}

/* Line numbers may exceed the largest count of repetitions. */
static void lines_beyond_a_million(void **state)
{
    (void)state;
    char path[] = "/tmp/whit-vi-XXXXXX";
    whit_screen screen = {0};
    size_t n = 1000010;
    char *text = malloc(n);
    assert_non_null(text);
    memset(text, '\n', n);
    whit_editor *editor = open_text(text, n, path, &screen);
    type_keys(editor, ":1000005\r");
    assert_int_equal(ed_cursor(editor)->offset, 1000004);
    type_keys(editor, "gg1000006G");
    assert_int_equal(ed_cursor(editor)->offset, 1000005);
    type_keys(editor, "1000003gg");
    assert_int_equal(ed_cursor(editor)->offset, 1000002);
    type_keys(editor, "2000000G");
    assert_int_equal(ed_cursor(editor)->offset, 1000009);
    whit_editor_close(editor);
    whit_screen_free(&screen);
    unlink(path);
    free(text);
}

static bool is_in_help(const char *wanted)
{
    char keys[80];
    const char *help;
    size_t n = strlen(wanted);
    for (size_t i = 0; ed_vi_help(i, keys, sizeof keys, &help); i++) {
        assert_true(*help && strlen(keys) < sizeof keys - 1);
        for (const char *at = keys; (at = strstr(at, wanted)); at++)
            if ((at == keys || at[-1] == ' ') && (!at[n] || strchr(" {", at[n]))) return true;
    }
    return false;
}

/* Every key of the vi table must be in the help; keys after a prefix are listed together with it. */
/* Types `before`, n letters "a" and `after` into a text, and requires that the text becomes `wanted`. */
static void type_long(const char *text, const char *before, size_t n, const char *after, const char *wanted)
{
    char *keys = malloc(strlen(before) + n + strlen(after) + 1);
    assert_non_null(keys);
    char *at = stpcpy(keys, before);
    memset(at, 'a', n);
    strcpy(at + n, after);
    play(&(struct row){text, keys, wanted}, n, "type_long");
    free(keys);
}

/* A pattern, a replacement, a mapping or a line of the settings that is too long is refused, never cut. */
static void long_parts(void **state)
{
    (void)state;
    char text[600] = "";
    memset(text, 'a', 511);
    strcpy(text + 511, "b\nx\n");
    char same[600] = "|";
    strcat(same, text);
    type_long(text, ":g/", 511, "ccc/d\r", same);
    type_long(text, ":%s/", 511, "ccc/y/\r", same);
    type_long(text, ":/", 511, "ccc/d\r", same);
    type_long("x\n", ":s/x/", 600, "/\r", "|x\n");
    type_long("x\n", ":nmap Q A", 100, "\rQ", "|x\n");
    type_long("x\n", ":nmap ", 9, " dd\raaaaaaaa\033", "xaaaaaa|a\n");
}

/* "@:" repeats the whole line, or nothing if it was refused. */
static void long_line_again(void **state)
{
    (void)state;
    char path[] = "/tmp/whit-vi-XXXXXX", line[2000] = "s/$/";
    whit_screen screen = {0};
    whit_editor *editor = open_text("x\n", 2, path, &screen);
    memset(line + 4, 'a', 300);
    strcpy(line + 304, "end/");
    whit_editor_line(editor, line);
    type_keys(editor, "@:");
    assert_int_equal(whit_text_size(ed_text(editor)), 2 + 2 * 303);
    memset(line, ' ', 1100);
    strcpy(line + 1100, "d");
    whit_editor_line(editor, line);
    assert_true(editor->message_is_error);
    assert_int_equal(whit_text_size(ed_text(editor)), 2 + 2 * 303);
    whit_editor_close(editor);
    whit_screen_free(&screen);
    unlink(path);
}

static void backward_range(void **state)
{
    (void)state;
    char path[] = "/tmp/whit-vi-XXXXXX";
    whit_screen screen = {0};
    whit_editor *editor = open_text("a\nb\nc\n", 6, path, &screen);
    whit_editor_line(editor, "3,2d");
    assert_true(editor->message_is_error);
    assert_string_equal(editor->message, "the range is backwards: its first line is below its last line");
    assert_int_equal(whit_text_size(ed_text(editor)), 6);
    whit_editor_close(editor);
    whit_screen_free(&screen);
    unlink(path);
}

/* A command is not started without its end. */
static void long_command(void **state)
{
    (void)state;
    char path[] = "/tmp/whit-vi-XXXXXX", line[700] = "make ";
    whit_screen screen = {0};
    whit_editor *editor = open_text("x\n", 2, path, &screen);
    editor->settings.make = strdup(": a command of more than forty letters ;");
    memset(line + 5, 'a', 570);
    whit_editor_line(editor, line);
    assert_false(ed_shell_runs(editor));
    assert_string_equal(editor->message, "the command is longer than 599 bytes, the limit");
    whit_editor_close(editor);
    whit_screen_free(&screen);
    unlink(path);
}

static void long_setting(void **state)
{
    (void)state;
    char config[700] = "# ", *second = config + 602;
    whit_editor *editor;
    whit_error error;
    memset(config + 2, 'a', 600);
    strcpy(second, "\nmake = a\n");
    assert_int_equal(whit_editor_open(&(whit_editor_options){.config = config}, &editor, &error), WHIT_OK);
    assert_string_equal(editor->settings.make, "a");
    whit_editor_close(editor);
    memcpy(config, "make = ", 7);
    assert_int_equal(whit_editor_open(&(whit_editor_options){.config = config}, &editor, &error), WHIT_OK);
    assert_string_equal(editor->settings.make, "a");
    assert_string_equal(editor->message, "configuration:1: the line is longer than 511 bytes, the limit");
    whit_editor_close(editor);
}

static void keys_in_help(void **state)
{
    (void)state;
    static const uint8_t modes[] = {ED_VI_IN_NORMAL, ED_VI_IN_VISUAL, ED_VI_IN_OPERATOR, ED_VI_IN_INSERT};
    static const uint32_t prefixes[] = {0, 'g', 'z', 'Z', 'i'};
    size_t n_seen = 0;
    for (size_t m = 0; m < sizeof modes; m++)
        for (size_t p = 0; p < sizeof prefixes / sizeof *prefixes; p++)
            for (uint32_t key = '!'; key < 128; key++) {
                char name[8];
                const struct ed_vi_row *row = ed_vi_row_find(prefixes[p], key, modes[m]);
                if (!row || row->effect == ED_VI_PREFIX) continue;
                snprintf(name, sizeof name, "%.*s%c", prefixes[p] > 0, (const char[]){(char)prefixes[p], 0}, (char)key);
                if (!is_in_help(name)) fail_msg("'%s' is not in the help", name);
                n_seen++;
            }
    assert_true(n_seen > 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_vim),  cmocka_unit_test(own_rows),        cmocka_unit_test(lines_beyond_a_million),
        cmocka_unit_test(long_parts),   cmocka_unit_test(long_line_again), cmocka_unit_test(backward_range),
        cmocka_unit_test(long_command), cmocka_unit_test(long_setting),    cmocka_unit_test(keys_in_help),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
