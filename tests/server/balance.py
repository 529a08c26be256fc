# SPDX-License-Identifier: MIT
"""Three replicas behind nginx and behind HAProxy with the files of deploy/: rolling drains lose no request,
a replica that is killed fails those that it had begun and no other. BALANCE_ROUNDS drains each. In a network
namespace of its own the files' ports are free; where a machine refuses one, others are written into them."""
import atexit
import fcntl
import http.client
import json
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

ROUNDS = int(os.environ.get("BALANCE_ROUNDS", "2"))
NO_NAMESPACE = 76
failed = 0


def has_own_network():
    """Inside one, whose loopback device is switched on; else this script is run again in one, if there is any."""
    if os.environ.get("OWN_NETWORK"):
        with socket.socket() as s:
            try:
                name, flags = struct.unpack("16sh14x", fcntl.ioctl(s, 0x8913, struct.pack("16sh14x", b"lo", 0)))
                fcntl.ioctl(s, 0x8914, struct.pack("16sh14x", name, flags | 1))
            except OSError:
                sys.exit(NO_NAMESPACE)
        return True
    if shutil.which("unshare") and subprocess.run(["unshare", "-rn", "true"], stderr=subprocess.DEVNULL,
                                                  check=False).returncode == 0:
        ended = subprocess.run(["unshare", "-rn", sys.executable, *sys.argv], check=False,
                               env={**os.environ, "OWN_NETWORK": "1"})
        if ended.returncode != NO_NAMESPACE:
            sys.exit(ended.returncode)
    print("no network namespaces: on ports of this machine")
    return False


def check(ok, *what):
    global failed
    if not ok:
        failed += 1
        print("FAILED:", *what)


def free_port():
    """Below those that connections get as their own: a replica comes back on the port that it had."""
    while True:
        port = random.SystemRandom().randrange(10000, 32000)
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


def start_replica(kind, port):
    # nginx notices by a refused request alone that a replica ends: a drain would only defer that.
    drain = ["--drain", "2"] if kind == "haproxy" else []
    process = subprocess.Popen([*os.environ["WHIT"].split(), "serve", "--port", str(port), "-t", "1", "-np", "4",
                                *drain], stderr=subprocess.PIPE)
    atexit.register(process.kill)
    for line in process.stderr:
        if b"serving" in line:
            threading.Thread(target=process.stderr.read, daemon=True).start()
            return process
    sys.exit("a replica did not start")


def write_config(kind, ports, port):
    source = {"nginx": "nginx.conf", "haproxy": "haproxy.cfg"}[kind]
    text = open(os.environ["SOURCE"] + "/deploy/" + source, encoding="utf-8").read()
    for old, new in (*zip((8081, 8082, 8083), ports), (8080, port)):
        text, n = re.subn(r"127\.0\.0\.1:%d\b" % old, "127.0.0.1:%d" % new, text)
        check(n > 0, source, "has no", old)
    text = text.replace("inter 500ms", "inter 100ms")
    here = os.getcwd()
    if kind == "nginx":
        text = ("%sdaemon off; master_process off; pid %s/nginx.pid; error_log stderr error;\nevents {}\nhttp {\n"
                "access_log off; client_body_temp_path %s/b; proxy_temp_path %s/p; fastcgi_temp_path %s/f;\n"
                "uwsgi_temp_path %s/u; scgi_temp_path %s/s;\n%s}\n" % ("user root; " if OWN_NETWORK else "", *[here] * 6, text))
    with open(source, "w", encoding="utf-8") as out:
        out.write(text)
    return ([kind, "-e", "stderr", "-p", here, "-c", here + "/" + source] if kind == "nginx" else
            [kind, "-db", "-f", source])


class Load:
    """Clients that ask without a pause."""

    def __init__(self, port):
        self.port, self.stop, self.ok, self.cut, self.refused = port, False, 0, 0, []
        self.threads = [threading.Thread(target=self.client, args=(i,)) for i in range(6)]
        for thread in self.threads:
            thread.start()

    def client(self, i):
        n = 0
        while not self.stop:
            n += 1
            begun = False
            try:
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
                body = {"prompt": "Once upon a time %d" % i, "max_tokens": 60, "ignore_eos": True, "stream": n % 2 == 0}
                connection.request("POST", "/v1/completions", json.dumps(body), {"X-Whit-Prefix": "user-%d" % i})
                reply = connection.getresponse()
                begun = reply.status == 200
                text = reply.read()
                whole = begun and (text.endswith(b"[DONE]\n\n") if body["stream"] else b'"usage"' in text)
                if whole:
                    self.ok += 1
                elif begun:
                    self.cut += 1
                else:
                    self.refused.append((reply.status, text[:200]))
                connection.close()
            except (OSError, http.client.HTTPException) as error:
                if begun or isinstance(error, http.client.IncompleteRead):
                    self.cut += 1
                else:
                    self.refused.append(repr(error))

    def wait_for(self, n):
        """Until so many more answers were whole."""
        before, deadline = self.ok, time.time() + 120
        while self.ok < before + n and time.time() < deadline:
            time.sleep(0.05)
        check(self.ok >= before + n, "nothing is answered any more", self.cut, self.refused[:3])

    def end(self):
        self.stop = True
        for thread in self.threads:
            thread.join()


def answers(port):
    deadline = time.time() + 120
    while time.time() < deadline:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/health")
            if connection.getresponse().status == 200:
                return
        except (OSError, http.client.HTTPException):
            pass
        time.sleep(0.05)
    sys.exit("the balancer does not answer")


def n_begun(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/metrics")
    metrics = connection.getresponse().read().decode()
    return int(re.search(r"^whit:time_to_first_token_seconds_count\{.*\} (\d+)", metrics, re.M).group(1))


def keep_prefixes(kind, port):
    """Requests with a prefix known by its header reach the replica that has it."""
    found = asked = 0
    for again in range(4):
        for prefix in range(6):
            prompt = "The story of number %d. " % prefix + "It was a long and happy day in the big garden. " * 12
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
            connection.request("POST", "/v1/completions", json.dumps({"prompt": prompt, "max_tokens": 1}),
                               {"X-Whit-Prefix": "story-%d" % prefix})
            usage = json.loads(connection.getresponse().read())["usage"]
            if again:
                asked += 1
                found += usage["prompt_tokens_details"]["cached_tokens"] >= usage["prompt_tokens"] - 64
            connection.close()
    check(found >= 0.95 * asked, kind, "known prefixes reached their replica in", found, "of", asked)


def wait_for_share(balancer, replica):
    """Asks with one prefix after another until the replica was asked: the balancer knows of it again."""
    deadline = time.time() + 120
    for n in range(1 << 30):
        connection = http.client.HTTPConnection("127.0.0.1", balancer, timeout=60)
        connection.request("POST", "/v1/completions", json.dumps({"prompt": "A", "max_tokens": 1}),
                           {"X-Whit-Prefix": "probe-%d" % n})
        connection.getresponse().read()
        if n_begun(replica) > 0:
            return
        if time.time() > deadline:
            sys.exit("a replica that came back is asked nothing for two minutes")
        time.sleep(0.05)


def test(kind):
    ports, port = ([8081, 8082, 8083], 8080) if OWN_NETWORK else ([free_port() for _ in range(3)], free_port())
    replicas = [start_replica(kind, p) for p in ports]
    balancer = subprocess.Popen(write_config(kind, ports, port), stderr=subprocess.DEVNULL)
    atexit.register(balancer.kill)
    answers(port)
    keep_prefixes(kind, port)
    load = Load(port)
    for n in range(ROUNDS):
        load.wait_for(6)
        i = n % 2
        replicas[i].send_signal(signal.SIGTERM)
        check(replicas[i].wait(120) == 0, kind, "a replica did not end well")
        load.wait_for(6)
        replicas[i] = start_replica(kind, ports[i])
        wait_for_share(port, ports[i])
    check(load.cut == 0 and not load.refused, kind, ROUNDS, "drains lost", load.cut, "and", load.refused[:3])
    load.wait_for(6)
    replicas[0].kill()
    replicas[0].wait()
    load.wait_for(12)
    load.end()
    check(load.cut <= 4 and len(load.refused) <= 4, kind, "a killed replica with 4 slots failed", load.cut, load.refused)
    print("%s%s: %d drains, %d answers whole, %d cut by the kill, %d refused" %
          (kind, " in a network of its own" if OWN_NETWORK else "", ROUNDS, load.ok, load.cut, len(load.refused)))
    balancer.kill()
    balancer.wait()
    for replica in replicas[1:]:
        replica.send_signal(signal.SIGTERM)
        replica.wait(120)


OWN_NETWORK = has_own_network()
ran = 0
for balancer in ("nginx", "haproxy"):
    if shutil.which(balancer) or os.path.exists("/usr/sbin/" + balancer):
        os.environ["PATH"] += ":/usr/sbin"
        test(balancer)
        ran += 1
    else:
        print("not tested: no", balancer)
sys.exit(77 if not ran else 1 if failed else 0)
