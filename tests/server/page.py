# SPDX-License-Identifier: MIT
"""The page at /, in a headless chromium: send, stop, edit, regenerate, reload, and text that stays text."""
import atexit
import base64
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

server = subprocess.Popen([*os.environ["WHIT"].split(), "serve", "--port", "0", "-t", "2", "-c", "4096"], stderr=subprocess.PIPE)
atexit.register(server.kill)  # whatever goes wrong: else the test would never end
origin = None
for line in server.stderr:
    found = re.search(rb"http://127\.0\.0\.1:\d+", line)
    if found:
        origin = found.group(0).decode()
        break
if not origin:
    sys.exit("the server did not start")
threading.Thread(target=server.stderr.read, daemon=True).start()
program = shutil.which("chromium") or shutil.which("chromium-browser")
if not program:
    print("skipped: no chromium")
    server.kill()
    sys.exit(77)
folder = tempfile.mkdtemp()
to_read, to_write = os.pipe()
from_read, from_write = os.pipe()


def inherit():
    a, b = os.dup(to_read), os.dup(from_write)  # out of the way of 3 and 4
    os.dup2(a, 3)
    os.dup2(b, 4)


browser = subprocess.Popen(
    [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
     "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
     "--remote-debugging-pipe", "--user-data-dir=" + folder, "about:blank"],
    preexec_fn=inherit, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
os.close(to_read)
os.close(from_write)
received, n_sent, failed = b"", 0, 0
requested, complaints = [], []


def command(method, session=None, **parameters):
    global received, n_sent
    n_sent += 1
    message = {"id": n_sent, "method": method, "params": parameters}
    if session:
        message["sessionId"] = session
    os.write(to_write, json.dumps(message).encode() + b"\0")
    while True:
        while b"\0" not in received:
            piece = os.read(from_read, 1 << 20)
            if not piece:
                sys.exit("chromium ended")
            received += piece
        one, received = received.split(b"\0", 1)
        value = json.loads(one)
        if value.get("method") == "Network.requestWillBeSent":
            requested.append(value["params"]["request"]["url"])
        if value.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded") and \
                value["params"].get("entry", {}).get("level") != "verbose":  # advice on password fields
            complaints.append(json.dumps(value["params"])[:400])
        if value.get("method") == "Page.javascriptDialogOpening":
            complaints.append("a dialog opened")
        if value.get("id") == n_sent:
            if "error" in value:
                sys.exit("%s: %s" % (method, value["error"]))
            return value["result"]


def page(method, **parameters):
    return command(method, tab, **parameters)


def run(script):
    result = page("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
    if "exceptionDetails" in result:
        print(script, json.dumps(result["exceptionDetails"])[:400])
    return result["result"].get("value")


def wait(script, what):
    until = time.time() + 120
    while time.time() < until:
        if run("!!(%s)" % script):
            return
        time.sleep(0.05)
    check(False, what, "did not come:", script)


def check(ok, *what):
    global failed
    if not ok:
        failed += 1
        print("FAILED:", *what)


def key(name, code, **more):
    page("Input.dispatchKeyEvent", type="keyDown", key=name, code=name, windowsVirtualKeyCode=code, **more)
    page("Input.dispatchKeyEvent", type="keyUp", key=name, code=name, windowsVirtualKeyCode=code)


def picture(name, width, height, dark=False):
    if not os.environ.get("PICTURES"):
        return
    page("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500)
    page("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
    data = base64.b64decode(page("Page.captureScreenshot", format="png")["data"])
    with open(os.path.join(os.environ["PICTURES"], name + ".png"), "wb") as out:
        out.write(data)


target = command("Target.createTarget", url="about:blank")["targetId"]
tab = command("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
for domain in ("Page", "Network", "Runtime", "Log"):
    page(domain + ".enable")
page("Page.navigate", url=origin + "/")
wait("document.readyState === 'complete' && document.querySelector('#model option')", "the model's name")
check(run("document.querySelectorAll('#log .empty button').length") == 2, "nothing to begin with")
run("document.getElementById('input').focus()")
low = run("document.getElementById('input').offsetHeight")
page("Input.insertText", text="one\ntwo\nthree\nfour")
check(run("document.getElementById('input').offsetHeight") > 2 * low, "the field for the message does not grow")
run("document.getElementById('input').select()")
page("Input.insertText", text="Tell me a tale")
check(run("document.getElementById('input').offsetHeight") == low, "nor does it shrink")
key("Enter", 13, text="\r")
wait("document.querySelector('.message.assistant .tools')", "an answer")
first = run("document.querySelector('.message.assistant .text').textContent")
check(first and len(first) > 3, "the answer is empty:", first)
check(re.match(r"[1-9]\d* / 4096$", run("document.getElementById('used').textContent")), "no context meter")
check("tokens/s" in run("document.getElementById('speed').textContent"), "no speed")
run("[...document.querySelectorAll('.message.assistant button')].find(b => b.textContent === 'Regenerate').click()")
wait("document.querySelector('.message.assistant .tools') && document.querySelectorAll('.message').length === 2",
     "an answer anew")
run("[...document.querySelectorAll('.message.user button')].find(b => b.textContent === 'Edit').click()")
run("document.querySelector('.message textarea').value = 'A cat'")
key("Enter", 13, text="\r")
wait("document.querySelector('.message.assistant .tools')", "an answer to the edited message")
check(run("document.querySelector('.message.user .text').textContent") == "A cat", "the message is not the edited one")
picture("desktop", 1100, 700)
# A question whose answer failed is not asked again beside the next one.
run("window.ownFetch = window.fetch; window.fetch = async () => { throw new Error('no answer today') }; send('Lost')")
wait("!running && document.querySelector('.message .error')", "the failure")
run("window.fetch = (a, o) => { window.sent = JSON.parse(o.body).messages; return ownFetch(a, o) }; send('Found')")
wait("!running", "an answer behind a failed one")
check(run("sent.map(m => m.role).join()") == "user,assistant,user" and run("sent[2].content") == "Found",
      run("JSON.stringify(sent)"))
run("window.fetch = ownFetch; current.messages.length = 2; show(); save()")
# An answer that takes long is stopped by Esc.
run("new MutationObserver(() => { window.couldStop ||= !document.getElementById('stop').hidden })"
    ".observe(document.getElementById('stop'), {attributes: true}); "
    "current.sampling = {max_tokens: 3500}; const own = fetch; window.fetch = (a, o) => own(a, o && o.body ? {...o, "
    "body: JSON.stringify({...JSON.parse(o.body), ignore_eos: true, logit_bias: {}})} : o); send('And then?')")
wait("window.couldStop", "the button that stops")
key("Escape", 27)
wait("!running", "the end after Esc")
# Reloaded, it is all there; a script that an answer holds stays text.
page("Page.reload")
wait("document.querySelectorAll('.message').length === 4", "the conversation after a reload")
hostile = ("# Head\n\n<script>alert(1)</script> <img src=x onerror=alert(1)> **bold** `<b>`\n\n"
           "[bad](javascript:alert(1)) [good](https://example.org/a)\n\n```c\nint <i>x</i>;\n```\n\n- one\n  - two\n- three\n\n"
           "1. first\n2. second\n\n> said\n\n| a | b |\n|---|---|\n| 1 | <u>2</u> |\n")
run("""(async () => {
  const data = new DataTransfer();
  data.items.add(new File([JSON.stringify({version: 1, conversations: [{title: "<i>t</i>", messages: [
    {role: "user", content: "<script>alert(2)</scr" + "ipt>"}, {role: "assistant", content: %s, thinking: "<b>why</b>"}]}]})], "x.json"));
  document.getElementById("file").files = data.files;
  await document.getElementById("file").onchange();
})()""" % json.dumps(hostile))
shown = run("document.querySelector('.message.assistant .text').textContent")
check(shown and "<script>alert(1)</script> <img src=x onerror=alert(1)>" in shown and "int <i>x</i>;" in shown, shown)
check(run("document.querySelectorAll('#log script, #log img, #log i, #log b, #log u, #log [onerror]').length") == 0,
      "markup of an answer became elements")
check(run("[...document.querySelectorAll('#log a')].map(a => a.href).join()") == "https://example.org/a", "links")
check(run("document.querySelectorAll('#log h2, #log strong, #log pre code, #log ul ul li, #log ol li, #log blockquote, "
          "#log td').length") == 9, "Markdown", run("document.querySelector('.message.assistant .text').innerHTML"))
check(run("document.querySelector('#log details').open") is False, "thinking is not folded")
run("document.execCommand = what => { window.copied = what; return true }; "
    "Object.defineProperty(navigator, 'clipboard', {value: undefined}); document.querySelector('#log .code button').click()")
wait("document.querySelector('#log .code button').textContent === 'Copied'", "a copy where there is no clipboard")
check(run("window.copied") == "copy" and not run("document.querySelector('#log .code textarea')"), "what is copied")
exported = run("""(async () => { let got; const own = URL.createObjectURL;
  URL.createObjectURL = b => { got = b; return own.call(URL, b) };
  document.getElementById("export").click(); return await got.text() })()""")
check([len(c["messages"]) for c in json.loads(exported)["conversations"]] == [2, 4], "what is exported", exported[:200])
picture("dark", 1100, 700, True)
picture("phone", 380, 700)
picture("phone-dark", 380, 700, True)
foreign = [url for url in requested if not url.startswith((origin + "/", "data:", "blob:" + origin))]
check(not foreign, "requests left the server:", foreign)
check(not complaints, "the browser complains:", complaints)
browser.terminate()
browser.wait(60)
server.send_signal(signal.SIGTERM)
check(server.wait(60) == 0, "the server did not end well")
shutil.rmtree(folder, ignore_errors=True)
sys.exit(1 if failed else 0)
