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


def make_model(build, model, shape, vocabulary, *more, codecs=()):
    """Makes a random model of a shape (tests/make_folder), by way of a folder beside it, unless it is there already.
    `codecs`: options of `whit convert`."""
    if os.path.exists(model):
        return
    folder = os.path.join(os.path.dirname(model), "folder")
    os.makedirs(os.path.dirname(model), exist_ok=True)
    subprocess.run([os.path.join(build, "tests", "make_folder"), shape, folder, *more, "--vocabulary", vocabulary],
                   check=True)
    subprocess.run([os.path.join(build, "whit"), "convert", folder, "-o", model, *codecs], check=True)
    shutil.rmtree(folder)


def run_first(priority):
    """A command's beginning that gives it real-time priority; nothing for priority 0."""
    return ["chrt", "-f", str(priority)] if priority else []


class Server:
    """`priority`: real-time priority of the threads that compute (0: none). Connections get one more, so that they
    interrupt these as they do among equals under the usual scheduler."""

    def __init__(self, whit, model, threads, *more, priority=0):
        command = [whit, "serve", "-m", model, "--port", "0", "-t", str(threads), *more]
        self.process = subprocess.Popen(run_first(priority and priority + 1) + command, stderr=subprocess.PIPE,
                                        text=True)
        for line in self.process.stderr:
            found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
            if found:
                self.port = int(found.group(1))
                threading.Thread(target=self.process.stderr.read, daemon=True).start()
                self.lower_computing(priority)
                return
            print(line, end="")
        sys.exit("the server did not start")

    def lower_computing(self, priority):
        tasks = "/proc/%d/task" % self.process.pid
        for task in os.listdir(tasks) if priority else ():
            with open(os.path.join(tasks, task, "comm"), encoding="ascii") as name:
                if int(task) != self.process.pid and name.read().startswith("whit"):
                    os.sched_setscheduler(int(task), os.SCHED_FIFO, os.sched_param(priority))

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
