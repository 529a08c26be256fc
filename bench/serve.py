# SPDX-License-Identifier: MIT
"""A server for the benches of this folder: started on a free port, asked, measured, ended."""
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading


def make_model(build, model, shape, vocabulary, *more):
    """Makes a random model of a shape (tests/make_folder), by way of a folder beside it, unless it is there already."""
    if os.path.exists(model):
        return
    folder = os.path.join(os.path.dirname(model), "folder")
    os.makedirs(os.path.dirname(model), exist_ok=True)
    subprocess.run([os.path.join(build, "tests", "make_folder"), shape, folder, *more, "--vocabulary", vocabulary],
                   check=True)
    subprocess.run([os.path.join(build, "whit"), "convert", folder, "-o", model], check=True)
    shutil.rmtree(folder)


class Server:
    def __init__(self, whit, model, threads, *more):
        self.process = subprocess.Popen([whit, "serve", "-m", model, "--port", "0", "-t", str(threads), *more],
                                        stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
            if found:
                self.port = int(found.group(1))
                threading.Thread(target=self.process.stderr.read, daemon=True).start()
                return
            print(line, end="")
        sys.exit("the server did not start")

    def metric(self, pattern):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        return float(re.search(r"^whit:%s\{[^}]*\} (\S+)" % pattern, text, re.M).group(1))

    def cpu_s(self):
        with open("/proc/%d/stat" % self.process.pid, encoding="ascii") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def post(self, body):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        connection.request("POST", "/v1/completions", json.dumps(body))
        reply = json.loads(connection.getresponse().read())
        connection.close()
        return reply

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
