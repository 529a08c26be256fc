# SPDX-License-Identifier: MIT
"""The demo page in a headless browser: small, alone, quick to its first words, a chat, a model from a file."""
import functools
import http.server
import os
import pathlib
import sys
import threading

SOURCE = os.environ["SOURCE"]
sys.path.insert(0, SOURCE + "/tests/server")
from browser import Browser, Tab, need_chromium  # noqa: E402
import client  # noqa: E402
from client import check  # noqa: E402

need_chromium()
folder = pathlib.Path(sys.argv[1])
(folder / "tales.ndf").write_bytes(pathlib.Path(SOURCE, "tools/tales/tales.ndf").read_bytes())
size = (folder / "whit.html").stat().st_size
check(size < 3_000_000, "the page has", size, "bytes")


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_unused):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
threading.Thread(target=server.serve_forever, daemon=True).start()
origin = "http://127.0.0.1:%d" % server.server_port


class Page(Tab):
    def ready(self):
        self.wait("document.readyState === 'complete' && document.querySelector('#send')", "the page")


browser = Browser()
tab = Page(browser, origin + "/whit.html")
tab.wait("!document.querySelector('#send').disabled", "the built-in model")
tab.run("document.querySelector('#send').click()")
tab.wait("document.querySelector('#log .answer')?.textContent.length > 40", "a tale")
tab.wait("document.querySelector('#log .counts')", "its end")
check(tab.run("document.querySelector('#log .answer').textContent").startswith("Once upon a time"), "the tale")

# A chat, and its end before it is done.
tab.run("document.querySelector('#clear').click(); document.querySelector('#mode').value = 'chat';"
        "document.querySelector('#prompt').value = 'Tell me a tale of a fox.'; document.querySelector('#send').click()")
tab.wait("document.querySelector('#log .answer')?.textContent.length > 10", "an answer")
tab.wait("!document.querySelector('#send').disabled", "the answer's end")

# An address: the second visit reads the copy that the browser keeps.
load = "document.querySelector('#address').value = '%s'; document.querySelector('#load').requestSubmit()"
for _visit in range(2):
    tab.run(load % (origin + "/tales.ndf"))
    tab.wait("document.querySelector('#about').textContent.includes('/tales.ndf: llama')", "the model of an address")
check(sum(url.endswith("/tales.ndf") for url in browser.requested) <= 1, "downloaded twice", browser.requested)
# The second visit may still be opening its model: the newest address wins.
tab.run(load % (origin + "/absent.ndf"))
tab.wait("document.querySelector('#about').textContent.includes('404')", "an absent model's line")
browser.complaints = [line for line in browser.complaints if "404" not in line]
browser.close(origin)
server.shutdown()
sys.exit(1 if client.failures else 0)
