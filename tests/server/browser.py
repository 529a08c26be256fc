# SPDX-License-Identifier: MIT
"""A headless chromium for the tests of the page, over its pipe of the DevTools protocol."""
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from client import check

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser")
NOISE = ("verbose",)  # the level of advice, on password fields for example


def need_chromium():
    if not PROGRAM:
        print("skipped: no chromium")
        sys.exit(77)


class Browser:
    """One process; its tabs share a profile, and with it the store of the page."""

    def __init__(self, *arguments):
        self.folder = tempfile.mkdtemp()
        to_read, self.to_write = os.pipe()
        self.from_read, from_write = os.pipe()

        def inherit():
            a, b = os.dup(to_read), os.dup(from_write)  # out of the way of 3 and 4
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.process = subprocess.Popen(
            [PROGRAM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync",
             "--disable-dev-shm-usage", "--remote-debugging-pipe", "--user-data-dir=" + self.folder, *arguments,
             "about:blank"],
            preexec_fn=inherit, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(from_write)
        self.received, self.n_sent = b"", 0
        self.requested, self.complaints = [], []

    def command(self, method, session=None, **parameters):
        self.n_sent += 1
        message = {"id": self.n_sent, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self.to_write, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self.received:
                piece = os.read(self.from_read, 1 << 20)
                if not piece:
                    sys.exit("chromium ended")
                self.received += piece
            one, self.received = self.received.split(b"\0", 1)
            value = json.loads(one)
            self.note_event(value)
            if value.get("id") == self.n_sent:
                if "error" in value:
                    sys.exit("%s: %s" % (method, value["error"]))
                return value["result"]

    def note_event(self, value):
        method, parameters = value.get("method"), value.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requested.append(parameters["request"]["url"])
        if method in ("Runtime.exceptionThrown", "Log.entryAdded") and \
                parameters.get("entry", {}).get("level") not in NOISE:
            self.complaints.append(json.dumps(parameters)[:400])
        if method == "Page.javascriptDialogOpening":
            self.complaints.append("a dialog opened")

    def close(self, *origins):
        """Ends it; checks that nothing left the origins and nothing was complained about."""
        allowed = tuple(start for o in origins for start in (o + "/", "blob:" + o)) + ("data:", "about:")
        foreign = [url for url in self.requested if not url.startswith(allowed)]
        check(not foreign, "requests left the server:", foreign)
        check(not self.complaints, "the browser complains:", self.complaints)
        self.process.terminate()
        self.process.wait(60)
        shutil.rmtree(self.folder, ignore_errors=True)


class Tab:
    def __init__(self, browser, url):
        self.browser = browser
        self.target = browser.command("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.command("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.command(domain + ".enable")
        self.open(url)

    def command(self, method, **parameters):
        return self.browser.command(method, self.session, **parameters)

    def open(self, url):
        self.command("Page.navigate", url=url)
        self.ready()

    def reload(self):
        self.run("window.isOld = true")
        self.command("Page.reload")
        self.wait("!window.isOld && document.readyState === 'complete'", "the page again")
        self.ready()

    def ready(self):
        self.wait("document.readyState === 'complete' && document.querySelector('#model option')", "the model's name")

    def run(self, script):
        result = self.command("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            print(script, json.dumps(result["exceptionDetails"])[:400])
        return result["result"].get("value")

    def wait(self, script, what):
        until = time.time() + 900  # answers of thousands of pieces, each of them delayed, take minutes on a busy machine
        while time.time() < until:
            if self.run("!!(%s)" % script):
                return
            time.sleep(0.03)
        check(False, what, "did not come:", script)

    def key(self, name, code, **more):
        self.command("Input.dispatchKeyEvent", type="keyDown", key=name, code=name, windowsVirtualKeyCode=code, **more)
        self.command("Input.dispatchKeyEvent", type="keyUp", key=name, code=name, windowsVirtualKeyCode=code)

    def insert(self, text):
        self.command("Input.insertText", text=text)

    def click(self, within, label):
        """Clicks the button whose text or label it is."""
        found = self.run("(() => { const b = [...document.querySelectorAll(%s)].find(b => b.textContent === %s || "
                         "b.getAttribute('aria-label') === %s); if (b) b.click(); return !!b })()"
                         % (json.dumps(within + " button"), json.dumps(label), json.dumps(label)))
        check(found, "there is no button", label, "in", within)

    def ask(self, text):
        """Sends a message and waits for its answer."""
        self.run("document.getElementById('input').focus()")
        self.insert(text)
        self.key("Enter", 13, text="\r")
        self.wait("document.getElementById('stop').hidden && document.querySelector('.message.assistant .tools')",
                  "an answer to " + text)

    def texts(self, role):
        return self.run("[...document.querySelectorAll('.message.%s .text')].map(e => e.textContent)" % role)

    def make_long(self, n=3500):
        """Lets the next answers have that many tokens, whatever the model says. Each piece of a long one comes after a
        pause, so that it still grows while the test looks, however fast the server is."""
        self.run("window.ownFetch ||= window.fetch; window.fetch = async (a, o) => {"
                 "  if (!o || !o.body) return ownFetch(a, o);"
                 "  const body = JSON.stringify({...JSON.parse(o.body), ignore_eos: true, max_tokens: %d});"
                 "  const reply = await ownFetch(a, {...o, body});"
                 "  if (%d < 1000 || !reply.ok) return reply;"
                 "  const pause = { transform: (piece, to) => new Promise(next => setTimeout(next, 25)).then(() => to.enqueue(piece)) };"
                 "  return new Response(reply.body.pipeThrough(new TransformStream(pause)), { headers: reply.headers }); }; 0"
                 % (n, n))

    def picture(self, name, width, height, dark=False):
        """Writes a picture into the folder PICTURES, if it is given; returns whether the page fits the width."""
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                     mobile=width < 500)
        self.command("Emulation.setEmulatedMedia",
                     features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        if os.environ.get("PICTURES"):
            data = base64.b64decode(self.command("Page.captureScreenshot", format="png")["data"])
            with open(os.path.join(os.environ["PICTURES"], name + ".png"), "wb") as out:
                out.write(data)
        return self.run("document.documentElement.scrollWidth <= innerWidth")
