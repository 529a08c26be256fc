# SPDX-License-Identifier: MIT
# Dependencies point one way, model and kernels do not know each other's words, files stay short.
set -u
cd "$SOURCE" || exit 1
failed=0
complain() {
    echo "$*"
    failed=1
}

# WING: the rooms of src/WING that lie in a folder each; base, lang and cli are rooms themselves.
wing_rooms() {
    case $1 in
    engine) echo 'kernels kv quant linalg model runtime' ;;
    text) echo 'tokenizer template grammar' ;;
    files) echo 'format hub endpoint ranks' ;;
    lab) echo 'train compress' ;;
    apps) echo 'editor agent server code sandbox bench assistant' ;;
    lang) echo 'memory' ;;
    esac
}
[ "$(cd src && echo *)" = 'apps base cli engine files lab lang text' ] || complain "src has other folders than its eight wings"
for wing in engine text files lab apps; do
    for folder in src/"$wing"/*; do
        case " $(wing_rooms "$wing") " in *" ${folder##*/} "*) ;; *) complain "$folder is not a room of the wing $wing" ;; esac
    done
done

# ROOM: the rooms whose headers it may include, beside its own and whit.h, in REPLY: thousands of processes would take a
# minute on some machines. In the order of the wings: base, files and text, lang/core, engine, lab, lang, apps, cli.
allowed() {
    case $1 in
    base) REPLY='' ;;
    format) REPLY='base kernels' ;;
    endpoint | ranks) REPLY='base' ;;
    hub) REPLY='base format endpoint' ;;
    tokenizer | template) REPLY='base format' ;;
    grammar) REPLY='base' ;;
    kernels) REPLY='base' ;;
    kv) REPLY='base kernels format' ;;
    linalg) REPLY='base kernels' ;;
    quant) REPLY='base kernels linalg' ;;
    model) REPLY='base kernels format tokenizer kv quant lang' ;;
    runtime) REPLY='base kernels format tokenizer template kv model grammar lang' ;;
    train) REPLY='base kernels format tokenizer model runtime quant linalg' ;;
    compress) REPLY='base kernels format tokenizer model runtime quant linalg train' ;;
    lang) REPLY='base kernels format' ;; # lang/core: base alone, see below
    memory) REPLY='base kernels format' ;;
    bench) REPLY='base kernels format quant model runtime lang' ;;
    sandbox) REPLY='base' ;;
    code) REPLY='base memory' ;;
    server) REPLY='base sandbox' ;;
    editor) REPLY='base endpoint code' ;;
    assistant) REPLY='base format endpoint editor agent' ;;
    agent) REPLY='base format endpoint sandbox code memory' ;;
    cli) REPLY='base kernels format tokenizer template grammar kv quant linalg model compress train lang runtime endpoint ranks sandbox server hub memory code editor agent assistant bench' ;;
    *) REPLY=unknown ;;
    esac
}
# The room of a file below src, in REPLY.
room_of() {
    local path=${1#src/}
    case $path in
    lang/memory/*) REPLY=memory ;;
    base/* | cli/* | lang/*) REPLY=${path%%/*} ;;
    *) path=${path#*/} REPLY=${path%%/*} ;;
    esac
}
while IFS=: read -r file _ include; do
    room_of "$file"
    room=$REPLY
    target=${include#*\"}
    target=${target%%\"*}
    case $target in whit.h | whit/*.h | whit_config.h) continue ;; esac
    case $target in
    */*) to=${target%%/*} ;;
    *) # beside the including file
        [ -f "${file%/*}/$target" ] || complain "$file includes \"$target\", which is not beside it"
        continue
        ;;
    esac
    [ -f "${file%/*}/$target" ] && continue
    allowed "$to"
    [ "$REPLY" = unknown ] && complain "$file includes \"$target\" from nowhere"
    allowed "$room"
    [ "$REPLY" = unknown ] && complain "$file: $room is not a room"
    # Of the language, other rooms but the program see its core, and the core sees base alone.
    case $file:$target in
    src/lang/core/*:base/* | src/lang/core/*:lang/core/*) ;;
    src/lang/core/*) complain "$file includes \"$target\": lang/core may depend on base alone" ;;
    src/lang/* | src/cli/* | src/apps/bench/* | src/engine/runtime/* | *:lang/core/*) ;;
    *:lang/*) complain "$file includes \"$target\": only lang/core is for other rooms" ;;
    esac
    case " $room $REPLY " in
    *" $to "*) ;;
    *) complain "$file includes \"$target\": $room may not depend on $to" ;;
    esac
done < <(grep -rnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' src --include='*.[ch]' --include='*.inc')

found=$(grep -rniE '\b(avx|avx2|avx512|amx|neon|sse[0-9]?|vnni|dotprod|i8mm|__m(128|256|512)i?|immintrin|arm_neon)' src/engine/model) &&
    complain "model must not know any ISA:
$found"
found=$(grep -rniE '\b(llama|qwen[0-9.]*|bitnet|falcon|mistral|whit_(model|session|graph|plan)_)' src/engine/kernels) &&
    complain "kernels must not know any model:
$found"

while read -r lines file; do
    [ "$file" = total ] && continue
    [ "$lines" -le 900 ] || complain "$file has $lines lines; look for the second idea (limit 900)"
done < <(find src include -name '*.[ch]' -print0 | xargs -0 wc -l)

found=$(git ls-files -z '*.[ch]' 2>/dev/null | xargs -0 awk 'FNR == 1 && !/SPDX-License-Identifier: MIT/ { print FILENAME }') &&
    [ -n "$found" ] && complain "no SPDX line:
$found"

# The library speaks to programs too: what it says names no option of the command line.
found=$(grep -nrE '"[^"]*( --[a-z]|\(-[a-z]\)| with -[a-z] )[^"]*"' src/base src/engine/kernels src/files/format src/text/tokenizer src/text/template \
    src/engine/kv src/engine/model src/engine/runtime src/engine/quant src/engine/linalg src/text/grammar --include='*.[ch]' 2>/dev/null) &&
    complain "a message of the library names an option of the command line:
$found"

# No machine's own paths, no words that promise work left undone.
found=$(git grep -nE '/(home|work|root)/[a-z]' -- src include tests tools examples 2>/dev/null | grep -v '^tests/house/') &&
    complain "absolute paths of one machine:
$found"
found=$(git grep -nE '\b(TODO|FIXME|XXX)\b|^[[:space:]]*#[[:space:]]*if 0\b' -- src include tests tools examples 2>/dev/null |
    grep -v '^tests/house/' | grep -v XXXXXX) &&
    complain "work left undone:
$found"
exit $failed
