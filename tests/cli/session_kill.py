# SPDX-License-Identifier: MIT
# kill -9 at random moments of session writing: session_kill.py N KV WHIT...
# Every file reopens at its last whole turn, which is the one in flight or the one before, and goes on.
import json, os, random, signal, subprocess, sys, time

n_kills, kv, whit = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
random.seed(6)
path = "killed.ndf"
chat = whit + ["chat", "-m", "model.ndf", "-n", "2" if kv == "f16" else "70", "-c", "256", "--kv", kv, "--temp", "0", "--session", path]
if os.path.exists(path):
    os.remove(path)


def turns():
    found = subprocess.run(whit + ["inspect", path, "--json"], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    return len(json.loads(found.stdout)["turns"])


n_before = n_torn = n_grown = 0
took = 0  # seconds for a call with one answer: what a busy machine makes of the times below
for kill in range(n_kills):
    process = subprocess.Popen(chat, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    process.stdin.write(b"a\n/clear\n" * 200)
    process.stdin.flush()
    if kill % 4:
        process.stdout.read(1)  # it has begun to answer
        time.sleep(random.random() * max(0.03, 2 * took))
    else:
        time.sleep(random.random() * 0.05)  # maybe while the file is made
    process.send_signal(signal.SIGKILL)
    n_answers = process.stdout.read().count(b"\n") + (1 if kill % 4 else 0)
    process.wait()
    if not os.path.exists(path):
        continue
    n_torn += subprocess.run(whit + ["verify", path], capture_output=True).returncode != 0
    n = turns()
    # An answer's line is out before its turn is on disk, the next one's after it; /clear is a turn, too.
    assert kv != "f16" or n >= n_before + 2 * max(n_answers - 2, 0), (n_before, n, n_answers)
    began = time.monotonic()
    again = subprocess.run(chat, input=b"b\n", capture_output=True)
    took = time.monotonic() - began
    assert again.returncode == 0, again.stderr
    assert subprocess.run(whit + ["verify", path], capture_output=True).returncode == 0
    assert turns() == n + 1
    n_grown += n > n_before
    n_before = n + 1
    for name in os.listdir("."):
        assert ".tmp-" not in name or name.startswith("killed.ndf.tmp-"), name
print("%d kills, %d with a torn tail, %d with whole turns before; %d turns" % (n_kills, n_torn, n_grown, n_before))
assert n_grown > n_kills // 4
