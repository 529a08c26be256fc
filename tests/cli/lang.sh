# SPDX-License-Identifier: MIT
# whit exec and whit repl: the examples of docs/use/arrays.md, mistakes with their place, limits.
. "$SOURCE/tests/cli/lib.sh"

python3 - "$SOURCE/docs/use/arrays.md" <<'END' || complain "no examples in docs/use/arrays.md"
import re, sys
blocks = re.findall(r"```ndl\n(.*?)```\n```text\n(.*?)```", open(sys.argv[1]).read(), re.S)
for i, (program, wanted) in enumerate(blocks):
    open(f"example-{i}.ndl", "w").write(program)
    open(f"example-{i}.txt", "w").write(wanted)
sys.exit(len(blocks) < 4)
END
for program in example-*.ndl; do
    expect 0 whit exec "$program"
    cmp -s out "${program%.ndl}.txt" || complain "$program prints: $(cat out)"
    case $(cat "$program") in *1000000000000*) continue ;; esac # only in closed form
    expect 0 env WHIT_TIER=0 $EMULATOR "$WHIT" exec "$program"
    cmp -s out "${program%.ndl}.txt" || complain "$program prints on tier 0: $(cat out)"
done
expect 0 whit exec --plan "$(grep -l '0\.\.1000000000000 ' example-*.ndl)"
grep -q 'closed form' out || complain "no closed form: $(cat out)"

# Constants go through variables, short loops are unrolled, dead calls leave nothing.
printf 'let n = 3\nlet s = 1\nfor i in 0..1000 { for k in 0..n { s = (s ^ i * k) + n } }\nif n == 4 { s = 0 }\nprint s\n' >short.ndl
expect 0 whit exec --plan short.ndl
[ "$(grep -c ' for \|^for ' out)" = 1 ] && grep -q 'i2 \* 2\|g[0-9]* \* 2' out && ! grep -q '^if' out || complain "plan: $(cat out)"
expect 0 whit exec short.ndl
cp out all-tiers
for tier in 0 1; do
    expect 0 env WHIT_TIER=$tier $EMULATOR "$WHIT" exec short.ndl
    cmp -s out all-tiers || complain "tier $tier prints $(cat out), not $(cat all-tiers)"
done
printf 'let s = 0\nfor i in 0..100 { s = s ^ i }\n:asm\n' | whit repl >out 2>err || complain "repl: $(cat err)"
case $(uname -m) in x86_64) [ -n "${EMULATOR:-}" ] || grep -q 'bytes of x86-64\|no machine code' out || complain ":asm: $(cat out)" ;; esac

printf 'let x = 1\nlet y = (x + zz) * 2\n' >wrong.ndl
expect 2 whit exec wrong.ndl
[ "$(sed -n 1p err)" = "whit exec: wrong.ndl:2:14: 'zz' is not defined" ] || complain "message: $(cat err)"
[ "$(sed -n 3p err)" = "                 ^" ] || complain "caret: $(cat err)"
for wrong in "5.5 % 2" "1 << 2.5" "vec(2, 1.0) ^ 1"; do
    printf 'print %s\n' "$wrong" >wrong.ndl
    expect 2 whit exec wrong.ndl
    operator=${wrong#* }
    operator=${operator#1.0) } # behind the blank within vec(...)
    grep -qF "'${operator%% *}' needs integers, not a" err || complain "$wrong: $(cat err)"
done
printf 'let i = 0\nwhile 1 { i += 1 }\n' >endless.ndl
expect 4 whit exec endless.ndl --limit-ms 50
grep -q 'endless.ndl:2:1: stopped after 50 ms' err || complain "limit: $(cat err)"
printf 'let v = range(10)\nwhile 1 { v = concat(v, v) }\n' >large.ndl
expect 4 whit exec large.ndl --limit-mb 1
expect 5 whit exec absent.ndl
one_line absent.ndl
# Habits of other languages: each line says what this one has instead.
while IFS='|' read -r text place reason; do
    printf '%b\n' "$text" >habit.ndl
    expect 2 whit exec habit.ndl
    [ "$(sed -n 1p err)" = "whit exec: habit.ndl:$place: $reason" ] || complain "$text: $(cat err)"
done <<'END'
print "hello"|1:7|texts can only be passed to a host's functions, and this program has no host; values are numbers and vectors
print(1, 2)|1:8|')' expected, not ','; 'print' takes its values without parentheses
if 1 { print 2 }\nelse { print 3 }|2:1|an expression expected, not 'else'; it must follow the '}' of its 'if' on the same line
// remark|1:1|an expression expected, not '/'; '#' begins a comment
let x = 5\nif x = 5 { print 1 }|2:6|'{' expected, not '='; '==' compares
for i in range(3) { }|1:19|'..' expected, not '{'; a loop counts, as in 'for i in 0..10'
for i = 0..3 { }|1:7|'in' expected, not '='; a loop counts, as in 'for i in 0..10'
print sin|1:7|'sin' is a function: 'sin(...)' calls it
fn f(x) { let y = x }\nprint f(1)|2:7|only values can be printed; a function returns one by 'return'
END
grep -q -- '--limit-mb' <<<"$(whit exec large.ndl --limit-mb 1 2>&1)" || complain "the limit's option is not named"
(ulimit -t 2 && whit exec /dev/zero >out 2>err) && complain "zeros without an end are a program"
one_line "the program is larger than 1048576 bytes"
expect 2 env WHIT_TIER=9 $EMULATOR "$WHIT" exec wrong.ndl
one_line WHIT_TIER

# Hostile texts end within a second of processor time and 64 MB, with one message.
python3 - <<'END'
import random
open("deep.ndl", "w").write("print " + "(" * 100000)
open("chains.ndl", "w").write("let x = 1\nprint " + "(" * 190 + "x" + ("+1" * 990 + ")") * 190)
open("braces.ndl", "w").write("if 1 {" * 100000)
open("minus.ndl", "w").write("print " + "-" * 100000 + "1")
open("sum.ndl", "w").write("print 1" + "+1" * 200000)
open("many.ndl", "w").write("".join(f"let x{i} = 1\n" for i in range(50000)))
open("list.ndl", "w").write("print [" + "1," * 500000 + "1]")
open("calls.ndl", "w").write("fn f0(a) { return a }\n" + "".join(f"fn f{i}(a) {{ return f{i-1}(a) + f{i-1}([1]) }}\n" for i in range(1, 500)) + "print f499(1)")
open("bytes.ndl", "wb").write(random.Random(1).randbytes(100000))
open("else.ndl", "w").write("if 0 {}" + " else if 0 {}" * 50000)
functions = "".join(f"fn f{i}(n) {{ return f{i+1}(n)" + "+1" * 300 + " }\n" for i in range(99)) + "fn f99(n) { return n }\nprint f0(1)"
open("functions.ndl", "w").write(functions)
open("deep-calls.ndl", "w").write("fn f(n) {\n if n <= 0 { return 0 }\n return f(n - 1)" + "+1" * 990 + "\n}\nprint f(198)\n")
open("too-long.ndl", "w").write("#" * 3000000)
END
for program in deep chains braces minus sum many list calls bytes else functions deep-calls too-long; do
    (ulimit -t 2 && whit exec "$program.ndl" >out 2>err)
    status=$?
    [ $status -gt 0 ] && [ $status -lt 9 ] && grep -q "^whit exec: $program.ndl" err ||
        [ $program = list ] || complain "$program.ndl ended with $status: $(head -c 300 err)"
done

printf 'fn twice(a) {\n return a * 2\n}\ntwice(21)\nlet v = range(3)\nv + 1\n:plan\n:time\ntwice(v)\n' >script
whit repl <script >out 2>err || complain "repl: $(cat err)"
[ "$(head -n 2 out)" = "42
[1.0, 2.0, 3.0]" ] || complain "repl: $(cat out)"
grep -q 'compiled in' out || complain "repl has no times: $(cat out)"
printf ':time sum(range(10))\n:plan range(4) + 1\n:nosuch\n:asm let x = (1\n' >script
whit repl <script >out 2>err
grep -q '^45.0$' out && grep -q 'compiled in' out && grep -q '^print (range(4) + 1)$' out && grep -q "there is no ':nosuch'" out ||
    complain "repl: $(cat out err)"
# What a command only shows leaves the session as it was.
printf 'let n = 7\n:plan let n = n / 2.0\n:asm\nn\nfn f(x) { return x }\n:asm fn f(x) { return x + 1 }\nf(n)\n' >script
whit repl <script >out 2>err || complain "repl: $(cat err)"
[ "$(grep -v ' = \|machine code' out)" = "7
7" ] || complain "a statement that is shown changes the session: $(cat out)"
printf '1\nnothing\n2\n' >script
whit repl <script >out 2>err
[ $? = 1 ] && [ "$(cat out)" = 1 ] || complain "a script should end with its first mistake: $(cat out)"

# Lines are counted through the session, so that a place is one of the script, also in a function of an earlier text.
printf 'let x = 1\nfn f(a) {\n  return a + zz\n}\n:time x\n\nf(2)\n' >script
whit repl <script >out 2>err
[ "$(cat err)" = "whit repl: input:3:14: 'zz' is not defined
      return a + zz
                 ^" ] || complain "a function of an earlier text: $(cat err)"
printf 'let x = 1\n:plan x + zz\n' >script
whit repl <script >out 2>err
[ "$(sed -n '1p;3p' err)" = "whit repl: input:2:11: 'zz' is not defined
              ^" ] || complain "the place behind a command: $(cat err)"
printf 'exit()\n' >script
whit repl <script >out 2>err
grep -q ':quit leaves' err || complain "exit is no help: $(cat err)"
printf '1\n:q\n2\n' >script
whit repl <script >out 2>err && [ "$(cat out)" = 1 ] || complain ":q does not leave: $(cat out err)"
# Brackets in comments and texts open nothing.
printf '1 # (\n2 # a "(" [\n:q\n' >script
whit repl <script >out 2>err && [ "$(cat out)" = "1
2" ] || complain "a comment's bracket: $(cat out err)"
printf 'print "("\n:q\n' >script
whit repl <script >out 2>err
grep -q 'input:1:' err || complain "a text's bracket: $(cat out err)"
for _ in $(seq 1500); do echo "for i in 0..9 { let t = i; if t > 100 { print t } }"; done >script
echo 42 >>script
whit repl <script >out 2>err && [ "$(cat out)" = 42 ] || complain "names of blocks stay behind: $(head -n 2 err)"

# A reader that leaves and Ctrl-C have their own statuses, from a script, too.
if [ -c /dev/full ]; then
    echo 'for i in 0..100000 { print i }' >script
    whit repl <script >/dev/full 2>err
    [ $? = 5 ] || complain "a full disk"
    one_line stdout
fi
python3 - $EMULATOR "$WHIT" <<'END' || complain "Ctrl-C"
import signal, subprocess, sys, time
for script, wanted in ((b"while 1 { }\n", b"whit repl: input:2:1: interrupted"), (b"", b"")):
    repl = subprocess.Popen(sys.argv[1:] + ["repl"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    repl.stdin.write(b"1\n" + script)
    repl.stdin.flush()
    assert repl.stdout.readline() == b"1\n"
    time.sleep(0.2)
    repl.send_signal(signal.SIGINT)
    try:
        repl.wait(120)
    finally:
        repl.kill()
    said = repl.stderr.read()
    assert repl.returncode == 6 and said.startswith(wanted), (repl.returncode, said)
END
finish
