# SPDX-License-Identifier: MIT
# Programs in binary form, in .ndf frames, by their roots; and what the grammar generates is read.
. "$SOURCE/tests/cli/lib.sh"
rm -f ./*.ndl ./*.ndlp ./*.ndf
cat >a.ndl <<'END'
# A text with everything in it.
fn gcd(a, b) {
    while b { let t = a % b; a = b
        b = t }
    return a
}
fn half(x) { if x > 1.5e0 { return x / 2 } else if not (x < -1) { return -x } else { return ~int(x) * 1.0 } }
let v = [1, 2.5, -3]
for i in 0..3 { if i == 1 { continue }; v[i] += i * (2 - 3) - (4 - 5 - 6); { break } }
v[0] = 0x7fffffffffffffff & 9223372036854775807 | -9223372036854775808
print gcd(1071, 462), half(3.0), v, v[1..2], (1 + 2) * 3 << 1 | 4, 1 or 0 and 0, sum(v) - (2 - (1 - 5))
END
# The same program: other layout, comments, parentheses and numbers.
cat >b.ndl <<'END'
fn gcd(a,b){while(b){let t=(a%b)
a=b;b=t};return a}
fn half(x) {
    if (x > 1.5) { return (x / 2) }
    else if not (x < (-1)) { return -x } else { return (~int(x)) * 1.0 }
}
let v = [1, 2.50, -3]   # other words for the same
for i in (0)..3 {
    if i == 1 { continue }
    v[i] += (i * (2 - 3)) - ((4 - 5) - 6)
    { break }
}
v[0] = 9223372036854775807 & 0x7FFFFFFFFFFFFFFF | (- 0x8000000000000000)
print gcd(1071, 462), half(3.0), v, v[1..2], ((1 + 2) * 3 << 1) | 4, 1 or (0 and 0), sum(v) - (2 - (1 - 5))
END
sed -i 's/^}  *else/} else/; N; s/}\n *else/} else/; P; D' b.ndl
expect 0 whit exec a.ndl
cp out plain
for name in a b; do
    expect 0 whit exec $name.ndl --root --binary $name.ndlp
    cp out $name.root
    expect 0 whit exec $name.ndlp
    cmp -s out plain || complain "$name in binary form prints: $(cat out)"
    expect 0 whit exec $name.ndlp --text
    cp out $name.text
    expect 0 whit exec $name.text --root
    cmp -s out $name.root || complain "the text of a binary form has another root"
done
cmp -s a.root b.root || complain "one program, two roots: $(cat a.root b.root)"
cmp -s a.ndlp b.ndlp || complain "one program, two binary forms"
[ "$(wc -c <a.root)" = 65 ] || complain "a root is 64 digits: $(cat a.root)"
sed 's/1071/1072/' a.ndl >c.ndl
expect 0 whit exec c.ndl --root
cmp -s out a.root && complain "another program has the same root"

# Numbers up to the largest, and beyond.
printf 'print 1.75e308, 1.7976931348623157e308, 1e999, 5e-324\n' >numbers.ndl
expect 0 whit exec numbers.ndl
cp out numbers
expect 0 whit exec numbers.ndl --binary numbers.ndlp
expect 0 whit exec numbers.ndlp
cmp -s out numbers || complain "numbers in binary form: $(cat out)"

# Equal subtrees once.
printf 'print 1 + 2\n' >one.ndl
(for _ in $(seq 500); do printf 'print 1 + 2\n'; done) >many.ndl
expect 0 whit exec one.ndl --binary one.ndlp
expect 0 whit exec many.ndl --binary many.ndlp
[ "$(wc -c <many.ndlp)" -lt $(($(wc -c <one.ndlp) + 500 * 40)) ] || complain "equal subtrees are stored again"

# In a container of its own, and behind a model.
expect 0 whit exec a.ndl --binary program.ndf
expect 0 whit exec program.ndf
cmp -s out plain || complain "from a frame: $(cat out)"
expect 0 whit verify program.ndf
tiny tiny.gguf 3
expect 0 whit convert tiny.gguf -o model.ndf
expect 3 whit exec model.ndf
one_line "contains no program"
printf 'logits = logits * 2\n' >stage.ndl
expect 0 whit exec stage.ndl --binary model.ndf
expect 0 whit run -m model.ndf -p the -n 3 --temp 0 --no-stats --program model.ndf
expect 0 whit exec one.ndl --binary model.ndf
expect 0 whit exec model.ndf
[ "$(cat out)" = 3 ] || complain "the last frame counts: $(cat out)"
# standard input: a program, but not a container, whose frames are read by the file's path
exec_stdin() { whit exec - <"$1"; }
expect 0 exec_stdin one.ndlp
[ "$(cat out)" = 3 ] || complain "a program in binary form from stdin: $(cat out)"
cp program.ndf ./-
expect 2 exec_stdin model.ndf
one_line "stdin: an .ndf cannot be read from standard input" "give the file's path"
head -c 100 one.ndlp >cut.ndlp
expect 3 exec_stdin cut.ndlp
one_line "stdin: "
rm ./-

# A false node, a missing node and a false root are named.
python3 - <<'END'
import struct
data = bytearray(open("a.ndlp", "rb").read())
n = struct.unpack_from("<I", data, 8)[0]
triples = [bytes(data[64 + 40 * i:104 + 40 * i]) for i in range(n)]
false = bytearray(data)
numbers = [i for i in range(n) if struct.unpack_from("<I", triples[i], 16)[0] == 3]
false[64 + 40 * numbers[0] + 24] ^= 1
open("false.ndlp", "wb").write(false)
open("false.name", "w").write(triples[numbers[0]][:16].hex())
gone = [t for t in triples if t[:16] != triples[0][:16]]
head = bytearray(data[:64])
struct.pack_into("<I", head, 8, len(gone))
open("missing.ndlp", "wb").write(head + b"".join(gone))
open("missing.name", "w").write(triples[0][:16].hex())
root = bytearray(data)
root[20] ^= 1
open("root.ndlp", "wb").write(root)
open("short.ndlp", "wb").write(data[:-1])
open("head.ndlp", "wb").write(data[:30])
END
for name in false missing; do
    expect 3 whit exec $name.ndlp
    one_line "node $(cat $name.name)" $name
done
expect 3 whit exec root.ndlp
one_line "is last and not the root"
expect 3 whit exec short.ndlp
expect 3 whit exec head.ndlp

# The grammar: what it generates has no mistake of syntax, and the engine takes it.
expect 0 whit exec --gbnf
cp out ndl.gbnf
python3 "$SOURCE/tests/cli/ndl_sample.py" ndl.gbnf 80 sample || complain "no samples"
for program in sample-*.ndl; do
    whit exec "$program" --root >out 2>err || complain "$program: $(cat err)"
done
for word in fn let if else while for break continue return print and or not; do
    grep -qw "$word" sample-*.ndl || complain "no sample has '$word'"
done
expect 0 whit run -p "let" -n 30 --temp 1.5 -s 4 --no-stats --no-display-prompt --grammar ndl.gbnf
expect 2 whit exec
one_line "no program given"
finish
