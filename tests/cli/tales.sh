# SPDX-License-Identifier: MIT
# The built-in model: no file beside the program, whole tales, a conversation; and the text that it
# learned from.
. "$SOURCE/tests/cli/lib.sh"
model=$SOURCE/tools/tales/tales.ndf

# ---- with nothing beside the program
mkdir -p elsewhere
(
    cd elsewhere || exit 1
    expect 0 env -i $EMULATOR "$WHIT" run -p 'Once upon a time' -s 1
    grep -q '^Once upon a time' out || complain "no tale: $(cat out)"
    [ "$(wc -w <out)" -ge 60 ] || complain "a short tale: $(cat out)"
    expect 0 env -i $EMULATOR "$WHIT" run -s 1
    [ "$(wc -w <out)" -ge 60 ] || complain "no tale without a prompt: $(cat out)"
    exit $failed
) || failed=1
rm -rf elsewhere

# At a terminal a bare run asks for nothing.
has_terminals && { PYTHONPATH=$SOURCE/tests/cli python3 - $EMULATOR "$WHIT" <<'END' || complain "a bare run at a terminal"; }
import sys
import at_terminal
status, told = at_terminal.run(sys.argv[1:] + ["run", "-s", "2"])
assert status == 0, told
assert len(told.split()) > 60, told
END

# ---- the file
[ "$(wc -c <"$model")" -le 2000000 ] || complain "the built-in model is larger than 2 MB"
expect 0 whit verify "$model"
expect 0 whit run -m "$model" --raw -p 'Once upon a time' -s 1 -n -1
cp out from_file
expect 0 whit run -p 'Once upon a time' -s 1
cmp -s out from_file || complain "the built-in model is not the file"
expect 0 whit convert tales -o written.ndf
cmp -s written.ndf "$model" || complain "whit convert tales is not the built-in model: $(cat err)"
expect 2 whit convert tales --embd f16 -o other.ndf
grep -q 'whit convert tales -o' err || complain "a codec of the built-in model: $(cat err)"
[ ! -e other.ndf ] || complain "a refused conversion wrote a file"
expect 0 whit inspect "$model" --json
python3 -c 'import json
m = json.load(open("out"))
assert m["body_bits_per_weight"] < 1.8, m["body_bits_per_weight"]
assert m["metadata"]["general.name"] == "tales"' || complain "what the built-in model is"

# ---- a conversation
printf 'Hello!\nTell me a story about a fox.\n' >lines
whit chat -s 1 <lines >out 2>err || complain "chat: $(cat err)"
[ "$(wc -w <out)" -ge 66 ] || complain "chat tells no tale: $(cat out)"

# ---- the text: the same for a seed, marked, held-out tales apart
tales=$BUILD/tools/tales
for side in train held; do
    ${EMULATOR:-} "$tales" 7 0.2 $side >$side.txt || complain "tales $side"
    ${EMULATOR:-} "$tales" 7 0.2 $side | cmp -s - $side.txt || complain "the same seed gave another text"
done
grep -vE '^<s>.*</s>$' train.txt && complain "a document without its marks"
sed -E 's/<(s|\/s|\|user\||\|assistant\|)>//g' train.txt held.txt | grep -E '[][{}<|>`]' && complain "grammar in the text"
grep -qE '  |\.\.|[!?],|,\.' train.txt held.txt && complain "bad punctuation: $(grep -ohE '.{20}(  |\.\.|[!?],|,\.).{10}' train.txt held.txt | head -n 3)"
[ "$(sort train.txt held.txt | grep -v '<|user|>' | uniq -d | wc -l)" -le 1 ] || complain "tales repeat"

# ---- what can be counted in tales that the model tells
if [ -z "${EMULATOR:-}" ]; then
    "$SOURCE/tools/tales/read" --whit "$WHIT" --count 12 >counted || complain "tools/tales/read"
    [ "$(tail -n 2 counted | head -n 1 | grep -oE '^[0-9]+')" -ge 10 ] || complain "$(tail -n 2 counted)"
fi
finish
