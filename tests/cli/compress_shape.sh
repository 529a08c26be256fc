# SPDX-License-Identifier: MIT
# compress_shape.sh DIVISOR MEGABYTES: two layers of TinyLlama-1.1B's shape, widths divided, through every stage of
# whit compress with 8,192 tokens, so that some are held out: progress and what is left of the time are shown, and no
# more memory is taken beside the pages of files. The time is printed beside that of its dense products at cblas_sgemm's
# rate.
. "$SOURCE/tests/cli/lib.sh"
export XDG_CACHE_HOME=$PWD/cache
divisor=$1 limit=$2 tokens=8192
[ -z "${EMULATOR:-}" ] || exit 77 # memory would be the emulator's
has_terminals || exit 77
if grep -qE 'WHIT_SANITIZE_[A-Z]*:BOOL=ON' "$BUILD/CMakeCache.txt"; then
    divisor=8 limit=0 tokens=1024
fi
rm -rf cache model out.ndf*
"$BUILD/tests/make_folder" tinyllama-1.1b model --layers 2 --divide "$divisor" --vocab 300 || complain "no folder"
for i in $(seq 4000); do echo "line $i of the calibration text says $((i * i % 977))"; done >text
PYTHONPATH=$SOURCE/tests/cli python3 - "$limit" "$WHIT" compress model --codec b1 --calib text --calib-tokens "$tokens" -t 2 --json -o out.ndf <<'END' || failed=1
import ctypes, json, os, pty, re, resource, subprocess, sys, threading, time
import checks
from checks import check

limit, command = int(sys.argv[1]), sys.argv[2:]


def sgemm_rate(n=1024):
    """Multiply-adds a second of CPU time of one thread in OpenBLAS; 0 where there is none."""
    try:
        library = ctypes.CDLL("libopenblas.so.0")
    except OSError:
        return 0
    library.openblas_set_num_threads(1)
    a, b, c = ((ctypes.c_float * (n * n))() for _ in range(3))
    one, zero = ctypes.c_float(1), ctypes.c_float(0)
    for turn in range(4):
        if turn == 1:
            began = time.process_time()
        library.cblas_sgemm(101, 111, 111, n, n, n, one, a, n, b, n, zero, c, n)
    return 3 * n**3 / (time.process_time() - began)


terminal, side = pty.openpty()
process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=side)
os.close(side)
shown, peak_kb = b"", 0


def read_terminal():
    global shown
    try:
        while data := os.read(terminal, 4096):
            shown += data
    except OSError:
        pass


def watch_memory():
    """Anonymous memory never shrinks before the end by much: looking often is enough."""
    global peak_kb
    while process.poll() is None:
        try:
            with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
                kb = re.search(r"RssAnon:\s*(\d+)", status.read())
            peak_kb = max(peak_kb, int(kb.group(1)) if kb else 0)
        except OSError:
            pass
        time.sleep(0.02)


threads = [threading.Thread(target=read_terminal), threading.Thread(target=watch_memory)]
for thread in threads:
    thread.start()
output = process.stdout.read()
check("compress succeeds", process.wait() == 0, shown[-300:])
for thread in threads:
    thread.join()
shares = [int(share) for share in re.findall(rb"(\d+) %", shown)]
check("progress rises", len(shares) > 4 and shares[0] < 50 < max(shares), shares)
check("the time that is left is shown", re.search(rb" %, \d+ s left|min left", shown), shown[-300:])
check("memory beside file pages", not limit or peak_kb <= limit << 10, peak_kb >> 10, "MB, more than", limit)
report = json.loads(output)
check("bits", report["body_bits_per_weight"] <= 1.40, report["body_bits_per_weight"])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
seconds, rate = used.ru_utime + used.ru_stime, sgemm_rate()
print(f"peak {peak_kb >> 10} MB beside file pages; {report['multiply_adds'] / 1e9:.0f} G multiply-adds in {seconds:.1f} s "
      "of CPU time" + (f", {seconds * rate / report['multiply_adds']:.2f} times sgemm's" if rate else ""))
sys.exit(checks.failed)
END
finish
