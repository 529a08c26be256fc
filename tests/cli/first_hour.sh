# SPDX-License-Identifier: MIT
# What a newcomer meets first: run answers or continues, text on stdin is read, help is short, lines fit a terminal.
. "$SOURCE/tests/cli/lib.sh"
export XDG_CACHE_HOME=$PWD/cache XDG_STATE_HOME=$PWD/state
rm -rf cache state kept.ndf
tiny plain.gguf
tiny chat.gguf 1 chat
expect 0 whit convert plain.gguf -o plain.ndf
expect 0 whit convert chat.gguf -o chat.ndf
small="-n 4 --temp 0 -c 128"

# ---- a piece of a file that was cut says how to join it
cp plain.gguf big.gguf-split-a
cp plain.gguf big.gguf.part1of2
expect 3 whit run -m big.gguf-split-a -p x
one_line 'cat big.gguf-split-\* > big.gguf$'
expect 3 whit inspect big.gguf.part1of2
one_line 'cat big.gguf.part\* > big.gguf$'
cp plain.gguf a-split-run.gguf
expect 0 whit inspect a-split-run.gguf

# ---- the wrong thing is named, and what to give instead
mkdir -p downloads
cp plain.gguf downloads/b.gguf
cp plain.gguf downloads/a.gguf
expect 5 whit run -m downloads -p x
one_line 'name one of its files, such as downloads/a.gguf$'
rm -r downloads
echo '<!DOCTYPE html>' >page.gguf
expect 3 whit run -m page.gguf -p x
one_line 'looks like a web page; download the file itself'
expect 4 whit run -m plain.ndf -p "$(yes the land | head -200)" -c 64 -n 1
one_line 'shorten it, or choose a larger context (-c)'
[ ! -s out ] || complain "a prompt that is refused is shown: $(cat out)"
expect 2 whit run -n -9 x
one_line '-n takes a whole number of at least -2, not'

# ---- a model with a chat template answers, unless an option asks for the text
# shellcheck disable=SC2086 # options are a list
{
    expect 0 whit run chat.ndf 'the land' $small --chat
    cp out answer
    grep -q "chat template" err && complain "--chat needs no line: $(cat err)"
    expect 0 whit run chat.ndf 'the land' $small
    cmp -s out answer || complain "run is not run --chat: $(cat out)"
    [ "$(grep -c -- '--raw continues the text' err)" = 1 ] || complain "nothing says which: $(cat err)"
    expect 0 whit run -m chat.ndf -p 'the land' $small --no-stats
    cmp -s out answer || complain "-p is answered, too: $(cat out)"
    [ ! -s err ] || complain "--no-stats: $(cat err)"
    expect 0 whit run chat.ndf 'the land' $small --raw
    grep -q '^the land' out || complain "--raw: $(cat out)"
    cp out text
    for more in "--endless -c 128" "--session kept.ndf"; do
        expect 0 whit run chat.ndf 'the land' $small $more
        cmp -s out text || complain "$more continues a text: $(cat out)"
    done
    expect 0 whit run -m chat.ndf -p '' $small
    grep -q "chat template" err && complain "an empty prompt is no message: $(cat err)"
    expect 0 whit run plain.ndf 'the land' $small
    grep -q '^the land' out || complain "a model without a template: $(cat out)"
    expect 2 whit run chat.ndf x --raw -sys y
    one_line "one of them"
    expect 3 whit run plain.ndf x --chat
}

# ---- stdin is appended to the prompt, and /dev/null is not
printf 'the ocean\n' >part
printf 'the land\n\nthe ocean' >both
# shellcheck disable=SC2086
{
    expect 0 whit run plain.ndf -f both $small
    cp out wanted
    for how in "'the land'" "-p 'the land'" "-f whole"; do
        printf 'the land' >whole
        eval "whit run plain.ndf $how $small <part >out 2>err" || complain "$how: $(cat err)"
        cmp -s out wanted || complain "$how with a file on stdin: $(cat out)"
        eval "cat part | whit run plain.ndf $how $small >out 2>err" || complain "$how: $(cat err)"
        cmp -s out wanted || complain "$how with a pipe on stdin: $(cat out)"
    done
    whit run chat.ndf 'the land' $small <part >out 2>err
    expect 0 whit run chat.ndf -f both $small --no-stats
    cp out wanted
    whit run chat.ndf 'the land' $small <part >out 2>err
    cmp -s out wanted || complain "an answer to a prompt and stdin: $(cat out)"
    : | whit run plain.ndf 'the land' $small >out 2>err
    expect 0 whit run plain.ndf 'the land' $small --no-stats
    : >err
    for _ in $(seq 2400); do grep -q "waiting for the end of stdin" err && break; sleep 0.05; done | whit run plain.ndf 'the land' $small >again 2>err
    cmp -s out again || complain "an empty pipe: $(cat again)"
    grep -q "waiting for the end of stdin" err || complain "a silent pipe: $(cat err)"
}

# ---- a schema in the command line
expect 0 whit run plain.ndf x -n 24 -c 128 --temp 0 --no-display-prompt -j '{"type": "boolean"}' --no-stats
grep -qxE 'true|false' out || complain "-j TEXT: $(cat out)"
expect 3 whit run plain.ndf x -j '{"type": '
grep -q "the schema" err || complain "a schema that is no JSON: $(cat err)"

# ---- help: the usual options come first, exit statuses and variables are in one place
expect 0 whit help run
[ "$(wc -l <out)" -lt 175 ] || complain "whit help run has $(wc -l <out) lines"
grep -qE '^(EXIT STATUS|ENVIRONMENT)' out && complain "whit help run repeats what whit help says"
[ "$(sed -n '/^USUAL OPTIONS/,/^OPTIONS/p' out | grep -cE '^    -')" = 5 ] || complain "usual options: $(cat out)"
[ "$(grep -cE '^    -m, --model' out)" = 1 ] || complain "an option is listed twice"
expect 0 whit help
grep -q '^EXIT STATUS' out && grep -q '^ENVIRONMENT' out || complain "whit help lacks the statuses"

# ---- a server for other devices names the address that they open, which is not 0.0.0.0
cat >lan.py <<'END'
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
try:
    s.connect(("192.0.2.1", 9))
    print("" if s.getsockname()[0].startswith("127.") else s.getsockname()[0])
except OSError:
    print("")
END
if whit doctor | grep -q '^libraries.*libmicrohttpd'; then
    lan=$(python3 lan.py)
    for more in "" "--api-key secret"; do
        # shellcheck disable=SC2086
        ${EMULATOR:-} "$WHIT" serve --host 0.0.0.0 --port 0 $more >out 2>err &
        server=$!
        last=${lan:+other devices} # the last line that it says
        while kill -0 $server 2>/dev/null && ! grep -q "${last:-takes up to}" err; do sleep 0.05; done
        kill $server
        wait $server
        if [ -z "$lan" ]; then
            grep -q "other devices" err && complain "no network, and an address: $(cat err)"
        else
            grep -qE "other devices in this network open http://${lan//./\\.}:[0-9]+" err || complain "for a phone: $(cat err)"
        fi
        grep -q "may all ask" err && [ -n "$more" ] && complain "with a key all may ask: $(cat err)"
    done
fi

# ---- lines and tables fit a terminal of 80 columns
has_terminals || finish
mkdir -p a-folder-with-a-long-name/and-another-one-below-it-whose-name-is-long-too
cp plain.gguf a-folder-with-a-long-name/and-another-one-below-it-whose-name-is-long-too/plain.gguf
expect 0 whit inspect a-folder-with-a-long-name/and-another-one-below-it-whose-name-is-long-too/plain.gguf
printf 'the land and the ocean and then an inn on the land. %.0s' 1 2 3 >words
PYTHONPATH=$SOURCE/tests/cli python3 - $EMULATOR "$WHIT" <<'END' || failed=1
import sys
import at_terminal, checks
from checks import check


def shown(*arguments, columns=80):
    _, text = at_terminal.run(sys.argv[1:] + list(arguments), term="xterm", columns=columns)
    return text.decode().replace("\r\n", "\n")


said = "download the model first: 'whit pull microsoft/bitnet-b1.58-2B-4T-gguf'"
text = shown("-hf", "microsoft/bitnet-b1.58-2B-4T-gguf", columns=60)
check("a wrapped message", max(map(len, text.split("\n"))) <= 60 and said in " ".join(text.split()) and
      text.count("\n") > 1 and all(row.startswith("  ") for row in text.split("\n")[1:-1]), text)
text = shown("list")
rows = [line for line in text.split("\n") if not line.startswith("/")]
check("list", max(map(len, rows)) <= 80 and "converted" in text, text)
text = shown("compare", "plain.gguf", "chat.ndf", "-f", "words", "-c", "16")
text = text[text.rindex("\r") + 1:].split("\x1b[K")[-1]
check("compare", max(map(len, text.split("\n"))) <= 80 and "KL mean" in text, text)
text = shown("bench", "-m", "plain.ndf", "-p", "4", "-n", "2", "-r", "1").split("\x1b[K")[-1]
check("bench", max(map(len, text.split("\n")[1:])) <= 80 and "roofline" in text and "huge" not in text, text)
text = shown("perplexity", "plain.gguf", "-f", "words", "-c", "16")
check("perplexity ends its bar", "\x1b[KFinal" in text, text)
sys.exit(checks.failed)
END
finish
