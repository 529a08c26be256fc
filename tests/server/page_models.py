# SPDX-License-Identifier: MIT
"""The page at / with several models: which one answers, what its settings offer, thinking as it is written."""
import os
import signal
import subprocess
import sys

import client
from browser import Browser, Tab, need_chromium
from client import Server, check

TEMPLATE = r"""{%- for m in messages %}{{- '<|im_start|>' + m.role + '\n' + (m.content or '') + '<|im_end|>\n' }}{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}
{%- if enable_thinking is defined and not enable_thinking %}{{- '<think>\n\n</think>\n\n' }}{%- else %}{{- '<think>\n' }}{%- endif %}{%- endif %}"""

need_chromium()
with open("thinker.jinja", "w", encoding="utf-8") as out:
    out.write(TEMPLATE)
subprocess.run([*os.environ.get("EMULATOR", "").split(), os.environ["BUILD"] + "/tests/make_folder", "qwen3-0.6b", "thinker",
                "--layers", "1", "--divide", "8", "--vocab", "300", "--template", "thinker.jinja"],
               check=True, stdout=subprocess.DEVNULL)
server = Server("-m", "tales", "-m", "thinker=thinker", "-m", "bare=bare.gguf", "-c", "4096")
origin = "http://127.0.0.1:%d" % server.port
browser = Browser()
tab = Tab(browser, origin + "/")
check(tab.run("[...document.getElementById('model').options].map(o => o.value)") == ["tales", "thinker", "bare"], "the models")
tab.ask("Of tales")
choose = "(async () => { document.getElementById('model').value = '%s'; await document.getElementById('model').onchange() })()"
defaults = ("(async () => { await showSettings(); document.getElementById('dialog').close(); "
            "return [document.getElementById('thinking').disabled, document.getElementById('s-top_k').placeholder] })()")
check(tab.run(defaults) == [True, "40"], "the settings of tales")

# A model that is not open has the server's defaults; once it has answered, its template says whether thinking can be switched.
tab.click("#side", "New conversation")
tab.run(choose % "thinker")
check(tab.run(defaults)[1] == "40" and not tab.run("models.find(m => m.id === 'thinker').meta.is_open"), "a model that is closed")
tab.make_long(3000)
tab.run("window.grown = []; new MutationObserver(() => grown.push(document.querySelector('.thinking div')?.textContent.length || 0))"
        ".observe(document.getElementById('log'), {childList: true, subtree: true}); 0")
tab.ask("Of the thinker")
check(tab.run("document.querySelector('.message.assistant details.thinking div').textContent.length") > 0, "thinking is not shown")
check(tab.run("new Set(grown).size") > 2, "thinking does not grow while it is written")
tab.make_long(40)
check(tab.run(defaults) == [False, "40"], "the switch of thinking of a model that is open now")
tab.run("(() => { const e = document.getElementById('thinking'); e.value = 'off'; e.onchange() })()")
tab.click(".message.assistant", "Regenerate")
tab.wait("!answers.size && document.querySelector('.branches')?.textContent === '‹2/2›'", "an answer without thinking")
check(tab.run("document.querySelector('.message.assistant .text').textContent.length > 0 && "
              "!document.querySelector('.message.assistant details.thinking')"), "thinking that is switched off")

# A conversation returns with its model, also if another model was chosen while it was answered.
tab.make_long(2000)
tab.run("sendMessage(current, 'And more?')")
tab.run("[...document.querySelectorAll('#list .open')].find(b => b.textContent.includes('Of tales')).click()")
check(tab.run("document.getElementById('model').value") == "tales", "the model of a conversation")
tab.wait("!answers.size", "the answer that is not shown")
tab.make_long(40)
tab.run("[...document.querySelectorAll('#list .open')].find(b => b.textContent.includes('thinker')).click()")
check(tab.run("document.getElementById('model').value") == "thinker", "the model of the other conversation")

# A model without a template says so, and the question is not lost.
tab.click("#side", "New conversation")
tab.run(choose % "bare")
tab.ask("Anyone?")
check("no chat template" in tab.run("document.querySelector('.message .error').textContent"), "a model without a template",
      tab.run("document.getElementById('log').textContent"))
check(tab.texts("user") == ["Anyone?"], "the question")
check(len(browser.complaints) == 1 and "400" in browser.complaints[0], browser.complaints)
browser.complaints.clear()
browser.close(origin)
server.process.send_signal(signal.SIGTERM)
check(server.process.wait(60) == 0, "the server did not end well", server.process.returncode, server.said)
sys.exit(1 if client.failures else 0)
