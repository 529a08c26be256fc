# SPDX-License-Identifier: MIT
# Outputs: a name that promises another kind of file, an output that would replace an input, and a wrong kind of input
# are refused in one line before any work; a verb that wrote a file says its name, size and kind.
. "$SOURCE/tests/cli/lib.sh"
export XDG_CACHE_HOME=$PWD/cache
rm -rf cache ./*.ndf ./*.gguf ./out.*
tiny plain.gguf
expect 0 whit convert plain.gguf -o plain.ndf
for _ in $(seq 40); do echo 'the land and the ocean and then an inn on the land.'; done >text
printf '1 2 3' >ids
expect 0 whit tune -m plain.ndf --text text --steps 1 --rank 2 -c 16 --sequences 1 -o verse.ndf
cp plain.ndf kept.ndf

# ---- the ending of the output's name
refused() { # MESSAGE COMMAND...: one line with the message, and no file
    local message=$1
    shift
    expect 2 whit "$@"
    one_line "$message"
}
for verb in "compress plain.ndf --method rtn" "compress plain.ndf --calib text" "convert plain.ndf" \
    "merge -m plain.ndf --adapter verse.ndf" "train --text text --steps 1" \
    "distill --teacher plain.ndf --text text --steps 1" "tune -m plain.ndf --text text --steps 1"; do
    # shellcheck disable=SC2086 # options are a list
    refused "out.GGUF: ${verb%% *} writes an .ndf: name the output out.ndf; 'whit export out.ndf -o out.GGUF'" $verb -o out.GGUF
    # shellcheck disable=SC2086
    refused "${verb%% *} writes an .ndf: name the output out.ndf$" $verb -o out.safetensors
done
refused "out.ndf: export writes a GGUF file: name the output out.gguf; 'whit convert" export plain.ndf -o out.ndf
refused "out.ndf: refine writes a GGUF file" refine plain.gguf --original plain.ndf --calib text -o out.ndf
refused "logits writes float32 numbers without a header: name the output out.f32$" logits -m plain.ndf --tokens ids -o out.npy
refused "embed writes an .npy or lines of JSON: name the output out.npy$" embed -m plain.ndf -f text -o out.csv
refused "compress writes a page: name the output page.html$" compress plain.ndf --method rtn -o out.ndf --report page.txt
refused "train writes a picture: name the output curve.svg$" train --text text --steps 1 -o out.ndf --plot curve.html
expect 5 whit compress plain.ndf --calib text -o nowhere/out.ndf
one_line "nowhere"
[ -z "$(ls out.* page.* curve.* 2>/dev/null)" ] || complain "a refusal left files: $(ls out.* page.* curve.*)"

# ---- an output that is an input
refused "plain.ndf is the file of SRC; name another file for -o" compress plain.ndf --method rtn -o ./plain.ndf
refused "text is the file of --calib" compress plain.ndf --calib text -o text
refused "text is the file of --calib; name another file for --report" compress plain.ndf --calib text -o out.ndf --report text
refused "out.html is the file of -o" compress plain.ndf --method rtn -o out.html --report out.html
refused "plain.gguf is the file of SRC" export plain.gguf --type q4_0 -o plain.gguf
refused "plain.gguf is the file of --original" refine verse.ndf --original plain.gguf --calib text -o plain.gguf
refused "plain.ndf is the file of -m" merge -m plain.ndf --adapter verse.ndf -o plain.ndf
refused "verse.ndf is the file of --adapter" merge -m plain.ndf --adapter verse.ndf:0.5 -o verse.ndf
refused "plain.ndf is the file of --teacher" distill --teacher plain.ndf --text text --steps 1 -o plain.ndf
refused "plain.ndf is the file of -m" tune -m plain.ndf --text text --steps 1 -o plain.ndf
refused "ids is the file of --tokens" logits -m plain.ndf --tokens ids -o ids
refused "text is the file of -f" embed -m plain.ndf -f text -o text
cmp -s plain.ndf kept.ndf || complain "a refusal changed the model"

# ---- options that take the place of each other, also at their defaults
for option in "--codec t" "--group 128" "--scales f16" "--rank 0"; do
    # shellcheck disable=SC2086
    refused "leave out ${option% *}$" compress plain.ndf --calib text --bits 2 $option -o out.ndf
done

# ---- a wrong kind of file, before the work of the right one
expect 0 whit export plain.ndf --type q4_0 -o small.gguf
tiny other.gguf 2 tied
expect 3 whit refine plain.ndf --original plain.ndf --calib text -o out.gguf
one_line "plain.ndf: is not a GGUF file, the only format that refine reads; 'whit export plain.ndf --type"
expect 3 whit refine plain.gguf --original plain.ndf --calib text -o out.gguf
one_line "can be refined"
[ -z "$(ls out.* 2>/dev/null)" ] || complain "a refusal left files: $(ls out.*)"

for text in plain.gguf plain.ndf paper.pdf; do
    printf '%%PDF-1.7\n' >paper.pdf
    for verb in "compress plain.ndf -o out.ndf --calib" "train --steps 1 -o out.ndf --text" "perplexity -m plain.ndf -f" \
        "train --text text --steps 1 -o out.ndf --held-out" "export plain.ndf --type q4_0 -o out.gguf --calib" \
        "embed -m plain.ndf -f" "refine small.gguf --original plain.ndf -o out.gguf --calib"; do
        # shellcheck disable=SC2086
        expect 3 whit $verb $text
        one_line "$text: is a .*, but only plain text can be read$"
    done
done

printf '\377\376t\000e\000' >wide
expect 3 whit perplexity -m plain.ndf -f wide
one_line "wide: is text in UTF-16 ('iconv -f UTF-16 -t UTF-8 FILE' converts it)"

# A text may begin as another kind of file does: the bytes after that decide.
{ echo "GGUF is a format of files, and PAR1 begins a table."; cat text; } >named
expect 0 whit perplexity -m plain.ndf -f named
expect 0 whit export plain.ndf --type q4_0 -o out.gguf --calib named
{ printf 'GGUF\003\000\000\000'; cat text; } >named
expect 3 whit perplexity -m plain.ndf -f named
one_line "named: is a model (GGUF), but only plain text can be read$"

# ---- success names the file, its size and kind
expect 0 whit export plain.ndf -o whole.gguf
one_line '^whit: whole.gguf: [0-9.]* [kM]B, GGUF, [0-9]* tensors, [0-9]* % of their bytes [A-Z0-9_]*$'
expect 0 whit export plain.ndf --type q4_0 -o small.gguf
grep -qE '^whit: small.gguf: [0-9.]+ kB, GGUF, [0-9]+ tensors' err || complain "export --type: $(cat err)"
expect 0 whit compress plain.ndf --method rtn -o out.ndf
one_line '^whit: out.ndf: [0-9.]* kB, [0-9.]* bits per weight of the layers$'
expect 0 whit compress out.ndf --method rtn -o twice.ndf
grep -q "out.ndf: its matrices are already rounded (layers.0.* is t[25])" err || complain "a rounded source: $(cat err)"
expect 0 whit logits -m plain.ndf --tokens ids -o out.f32
one_line '^whit: out.f32: 3 x [0-9]* float32 numbers$'
expect 0 whit embed -m plain.ndf -f text -o out.npy
one_line '^whit: out.npy: 40 vectors of [0-9]* numbers$'
finish
