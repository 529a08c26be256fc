# SPDX-License-Identifier: MIT
"""The page at /, in a headless chromium: send, stop, continue, versions, settings, and text that stays text."""
import json
import re
import signal
import sys
import time

import client
from browser import Browser, Tab, need_chromium
from client import Server, check

need_chromium()
server = Server("-c", "4096")
origin = "http://127.0.0.1:%d" % server.port
browser = Browser("--host-resolver-rules=MAP lan.test 127.0.0.1")
tab = Tab(browser, origin + "/")

# ---- a question, its versions -----------------------------------------------------------------------
check(tab.run("document.querySelectorAll('#log .empty button').length") == 2, "nothing to begin with")
tab.wait("document.querySelector('.empty').textContent.includes('toy')", "the remark that the built-in model is a toy")
tab.run("document.getElementById('input').focus()")
low = tab.run("document.getElementById('input').offsetHeight")
tab.insert("one\ntwo\nthree\nfour")
check(tab.run("document.getElementById('input').offsetHeight") > 2 * low, "the field for the message does not grow")
tab.run("document.getElementById('input').select()")
tab.insert("Tell me a tale")
check(tab.run("document.getElementById('input').offsetHeight") == low, "nor does it shrink")
tab.run("document.getElementById('input').select()")
tab.ask("Tell me a tale")
first = tab.texts("assistant")[0]
check(first and len(first) > 3, "the answer is empty:", first)
check(re.match(r"[1-9]\d* / 4096$", tab.run("document.getElementById('used').textContent")), "no context meter")
check("tokens/s" in tab.run("document.getElementById('speed').textContent"), "no speed")
tab.click(".message.assistant", "Regenerate")
tab.wait("document.querySelector('.message.assistant .branches')?.textContent === '‹2/2›'", "a second version")
second = tab.texts("assistant")[0]
tab.click(".message.assistant", "Earlier version")
check(tab.texts("assistant") == [first], "the first version is lost:", tab.texts("assistant"), first)
tab.click(".message.user", "Edit")
tab.run("document.querySelector('.message textarea').value = 'A cat'")
tab.key("Enter", 13, text="\r")
tab.wait("!answers.size && document.querySelector('.message.assistant .tools')", "an answer to the edited message")
check(tab.texts("user") == ["A cat"], "the message is not the edited one")
tab.click(".message.user", "Earlier version")
check(tab.texts("user") == ["Tell me a tale"] and tab.texts("assistant") == [first], "the question before the edit is lost")
tab.click(".message.assistant", "Later version")
check(tab.texts("assistant") == [second], "the later version is lost")
tab.click(".message.user", "Later version")
tab.run("document.getElementById('input').focus()")
tab.key("ArrowUp", 38)
check(tab.run("document.querySelector('.message textarea')?.value") == "A cat", "the arrow does not edit the last message")
tab.key("Escape", 27)
check(tab.picture("desktop", 1100, 700), "the page is wider than 1100")

# ---- failures, stop and continue --------------------------------------------------------------------
# A question whose answer failed is not asked again beside the next one.
tab.run("window.ownFetch = window.fetch; window.fetch = async () => { throw new Error('no answer today') }; "
        "sendMessage(current, 'Lost')")
tab.wait("!answers.size && document.querySelector('.message .error')", "the failure")
tab.run("window.fetch = (a, o) => { window.sent = JSON.parse(o.body).messages; return ownFetch(a, o) }; "
        "sendMessage(current, 'Found')")
tab.wait("!answers.size", "an answer after a failed one")
check(tab.run("sent.map(m => m.role).join()") == "user,assistant,user" and tab.run("sent[2].content") == "Found",
      tab.run("JSON.stringify(sent)"))
tab.run("window.fetch = ownFetch; 0")
# An answer that takes long is stopped by Esc, and continued.
tab.make_long()
tab.run("sendMessage(current, 'And then?')")
tab.wait("(answers.get(current.id)?.message.content || '').length > 50", "the beginning of a long answer")
tab.key("Escape", 27)
tab.wait("!answers.size", "the end after Esc")
stopped = tab.run("shownPath(current).at(-1).message.content")
tab.make_long(20)
tab.click(".message:last-child", "Continue")
tab.wait("!answers.size && shownPath(current).at(-1).message.content.length > %d" % len(stopped), "more of the answer")
check(tab.run("shownPath(current).at(-1).message.content").startswith(stopped), "the continued answer begins anew")
check("the most tokens" in tab.run("document.querySelector('.message:last-child .tools').textContent"), "why it ended")
tab.run("window.fetch = ownFetch; 0")
before = tab.texts("user") + tab.texts("assistant")
tab.reload()
check(tab.texts("user") + tab.texts("assistant") == before, "the conversation after a reload:", before)

# ---- what an answer holds is text -------------------------------------------------------------------
hostile = ("# Head\n\n<script>alert(1)</script> <img src=x onerror=alert(1)> **bold** `<b>` ![i](https://example.org/i.png)\n\n"
           "[bad](javascript:alert(1)) [good](https://example.org/a)\n\n```c\nint <i>x</i>;\n```\n\n- one\n  - two\n- three\n\n"
           "1. first\n2. second\n\n> said\n\n| a | b |\n|---|--:|\n| 1 | <u>2</u> |\n\n- [x] done\n- [ ] to do\n\n"
           "Then $\\frac{a}{b}$ and $$\\sum_{i=1}^{n} i^2 = \\begin{pmatrix} a & b \\\\ c & d \\end{pmatrix}$$ "
           "but $\\href{javascript:alert(1)}{x}$.\n")
tab.run("""(async () => importConversations(new File([JSON.stringify({version: 1, conversations: [{title: "<i>t</i>",
    messages: [{role: "user", content: "<script>alert(2)</scr" + "ipt>"},
    {role: "assistant", content: %s, thinking: "<b>why</b>"}]}]})], "x.json")))()""" % json.dumps(hostile))
shown = tab.texts("assistant")[0]
check("<script>alert(1)</script> <img src=x onerror=alert(1)>" in shown and "int <i>x</i>;" in shown, shown)
check(tab.run("document.querySelectorAll('#log script, #log img, #log i, #log b, #log u, #log [onerror], #log [style]').length")
      == 0, "markup of an answer became elements")
check(tab.run("[...document.querySelectorAll('#log a')].map(a => a.href).join()") ==
      "https://example.org/i.png,https://example.org/a", "links")
check(tab.run("document.querySelectorAll('#log h2, #log strong, #log pre code, #log ul ul li, #log ol li, #log blockquote, "
              "#log td').length") == 9, "Markdown")
check(tab.run("getComputedStyle(document.querySelector('#log td.right')).textAlign") == "right", "a column's alignment")
check(tab.run("[...document.querySelectorAll('#log .task input')].map(i => i.checked + '' + i.disabled).join()") ==
      "truetrue,falsetrue", "tasks")
check(tab.run("document.querySelector('#log .c-keyword').textContent") == "int", "colours in code")
# MathML is laid out by the browser: the fraction is higher than its letters, the sum's limits stand above each other.
check(tab.run("document.querySelectorAll('#log math').length") == 2 and "\\href" in shown, "formulas")
high = "document.querySelector('#log %s').getBoundingClientRect().height"
check(tab.run(high % "mfrac" + " > 1.5 * " + high % "mfrac mi"), "a fraction is flat")
check(tab.run("(([sum, below, above]) => below.top > sum.bottom - 2 && above.bottom < sum.top + 2)([...document.querySelector("
              "'#log munderover').children].map(e => e.getBoundingClientRect()))"), "the limits of a sum stand beside it")
check(tab.run("document.querySelector('#log details').open") is False, "thinking is not folded")
check(tab.run("[...document.querySelectorAll('#log td, #log th')].every(e => getComputedStyle(e).overflowWrap === 'normal')"),
      "cells of a table break within words")
check(tab.picture("answer", 1100, 1000), "the page is wider than 1100")
check(tab.picture("phone-answer", 380, 1000), "the page is wider than a phone")
tab.run("document.execCommand = what => { window.copied = what; return true }; "
        "Object.defineProperty(navigator, 'clipboard', {value: undefined}); document.querySelector('#log .code button').click()")
tab.wait("document.querySelector('#log .code button').textContent === 'Copied'", "a copy where there is no clipboard")
check(tab.run("window.copied") == "copy" and not tab.run("document.querySelector('#log .code textarea')"), "what is copied")
# An export holds all versions, and what is imported from it is the same again.
exported = tab.run("""(async () => { let got; const own = URL.createObjectURL;
  URL.createObjectURL = b => { got = b; return own.call(URL, b) };
  document.getElementById("export").click(); return await got.text() })()""")
check(sorted(len(c["messages"]) for c in json.loads(exported)["conversations"]) == [2, 11], "what is exported", exported[:400])
check(tab.run("""JSON.stringify(exportRecords(...(records => [records.filter(r => r.kind === "conversation"),
    id => records.filter(r => r.conversation === id)])(readExport(JSON.parse(%s)))))""" % json.dumps(exported)) ==
      json.dumps(json.loads(exported), separators=(",", ":"), ensure_ascii=False), "an import of an export differs")

# ---- settings ---------------------------------------------------------------------------------------
tab.command("Emulation.setDeviceMetricsOverride", width=1100, height=700, deviceScaleFactor=1, mobile=False)
tab.run("(async () => showSettings())()")
tab.wait("document.getElementById('dialog').open", "the settings")
check(tab.run("document.getElementById('s-temperature').placeholder") == "0.8", "the default temperature is not shown")
check(tab.run("SAMPLERS.every(s => document.getElementById('s-' + s.name).placeholder !== 'default')"),
      "a sampler without a default")
check(tab.run("document.getElementById('thinking').disabled"), "a template without thinking has a switch")
check(tab.picture("settings", 1100, 700), "settings")
change = "(() => { const e = document.getElementById('%s'); e.value = %s; e.onchange() })()"
for field, value in (("global-system", '"Be brief."'), ("s-temperature", "0"), ("s-dry_multiplier", "0.8"),
                     ("format", '"json"'), ("thinking", '"off"')):
    tab.run(change % (field, value))
tab.run("document.getElementById('dialog').close(); window.ownFetch = window.fetch; "
        "window.fetch = (a, o) => { window.sent = JSON.parse(o.body); return ownFetch(a, o) }; sendMessage(current, 'Hi')")
tab.wait("!answers.size", "an answer with settings")
sent = tab.run("sent")
check(sent["temperature"] == 0 and sent["dry_multiplier"] == 0.8 and sent["response_format"] == {"type": "json_object"} and
      sent["chat_template_kwargs"] == {"enable_thinking": False} and
      sent["messages"][0] == {"role": "system", "content": "Be brief."}, "settings are not sent:", sent)
check(tab.run("!shownPath(current).at(-1).message.error"), tab.run("shownPath(current).at(-1).message.error"))
# A conversation's own system prompt, which an import may bring, is shown above its messages, and stays unfolded.
tab.run(change % ("system", '"Be\\u202e rude."'))
fold = "document.querySelector('#log > details')"
check(tab.run(fold + ".textContent") == "System promptBe<U+202E> rude.", "a system prompt is not shown")
tab.run(fold + ".open = true; showMessages()")
check(tab.run(fold + ".open"), "a system prompt that is read is folded")
tab.run(change % ("system", '""'))
check(tab.run(fold + " === null"), "a system prompt that is none")
# So is a schema, which may have the words that the model is made to answer.
tab.run("""Object.assign(current, readConversation({...current, format: 'schema', schema: '{"const": "run it"}'})); showMessages()""")
check(tab.run(fold + "?.textContent") == 'Schema of answers{"const": "run it"}', "a schema is not shown")
tab.run("current.format = ''; showMessages()")
check(tab.run(fold + " === null"), "a schema that is not in force is shown")
# What is selected stays selected while the rest of the conversation is drawn again.
tab.run("getSelection().selectAllChildren(document.querySelector('.message.assistant .text > p'))")
selected = tab.run("getSelection().toString()")
tab.run("showMessages(); sendMessage(current, 'More')")
tab.wait("!answers.size", "one more answer")
check(len(selected) > 20 and tab.run("getSelection().toString()") == selected, "an answer takes the selection away")
# Adapters have a field each, and a template that can switch thinking a switch.
tab.run("models.push({id: 'verse', is_adapter: true}); properties[currentModel().id].switches_thinking = true; "
        "(async () => showSettings())()")
tab.wait("document.getElementById('dialog').open", "the settings again")
check(not tab.run("document.getElementById('thinking').disabled"), "the switch of thinking")
check(not tab.run("document.getElementById('adapters').hidden"), "the adapters")
tab.run("(() => { const e = document.querySelector('#adapters input'); e.value = 0.5; e.onchange() })(); "
        "document.getElementById('dialog').close()")
check(tab.run("requestSettings(current).adapters") == {"verse": 0.5}, "the strength of an adapter")
tab.run("models.pop(); setKey('secret', false)")
check(tab.run("apiKey() === 'secret' && localStorage.getItem('whit.key') === null"), "a key that is not to be remembered")
tab.run("setKey('secret', true)")
other = Tab(browser, origin + "/")
check(other.run("apiKey() === 'secret' && globalSettings().system === 'Be brief.'"), "a remembered key in another tab")
tab.run("setKey('', false)")
tab.run("document.dispatchEvent(new KeyboardEvent('keydown', {key: '/', ctrlKey: true}))")
check(tab.run("document.getElementById('keys-dialog').open && document.querySelectorAll('#keys-list dt').length > 8"),
      "the list of keys")
tab.run("document.getElementById('keys-dialog').close()")

# ---- as an application, by another name -------------------------------------------------------------
manifest = tab.command("Page.getAppManifest")
check(not manifest["errors"] and json.loads(manifest["data"])["name"] == "whit", "the manifest:", manifest)
check(tab.run("ownFetch('icon.svg').then(r => r.headers.get('Content-Type'))") == "image/svg+xml", "the icon")
check(tab.picture("dark", 1100, 700, True) and tab.picture("phone", 380, 700) and tab.picture("phone-dark", 380, 700, True),
      "the page does not fit")
lan = "http://lan.test:%d" % server.port
browser.complaints.clear()
named = Tab(browser, origin + "/")
named.command("Page.navigate", url=lan + "/")
named.wait("document.body && document.body.textContent.includes('--cors %s,')" % lan, "the option's name")
deadline = time.time() + 120  # the browser asks for its icon once the refusal is shown
while not (named.run("1") and any("favicon" in complaint for complaint in browser.complaints)) and time.time() < deadline:
    time.sleep(0.05)
check(all("403" in complaint for complaint in browser.complaints), browser.complaints)
browser.complaints.clear()
# A server with keys answers once the page has one; a server that has ended is named.
with open("keys", "w") as keys:
    keys.write("anna sesame\n")
guarded = Server("--api-key-file", "keys")
locked = "http://127.0.0.1:%d" % guarded.port
tab = Tab(browser, locked + "/")
tab.run("sendMessage(current, 'Hello')")
tab.wait("document.querySelector('.message .error')", "the refusal without a key")
check("Settings has a field for it" in tab.run("document.querySelector('.message .error').textContent"), "what a key is for")
tab.run("document.getElementById('key').value = 'sesame'; document.getElementById('key').onchange()")
tab.click(".message.assistant", "Regenerate")
tab.wait("!answers.size && document.querySelector('.message.assistant .text').textContent.length > 3", "an answer with a key")
# What is copied is what is shown: a hidden Enter or a character that reorders others is a mark in both.
tab.run(r"navigator.clipboard.writeText = async text => { window.copied = text }; "
        r"Object.assign(shownPath(current).at(-1).message, "
        r"{content: '```sh\necho ok\rrm -rf x\u202e\n```'}); showMessages()")
for label in ["Copy the code", "Copy"]:
    tab.run("window.copied = ''")
    tab.click(".message.assistant", label)
    tab.wait("window.copied", "the copy")
    check("echo ok<U+000D>rm -rf x<U+202E>\n" in tab.run("copied") + "\n", label, tab.run("copied"))
check(tab.run("document.querySelector('.message.assistant pre').textContent") == "echo ok<U+000D>rm -rf x<U+202E>", "the code")
guarded.process.kill()
guarded.process.wait()
tab.run("sendMessage(current, 'Hello?')")
tab.wait("document.querySelector('.message:last-child .error')", "the end of the server")
check("does not answer" in tab.run("document.querySelector('.message:last-child .error').textContent"), "the server's end")
check(all("401" in c or "ERR_CONNECTION" in c for c in browser.complaints), browser.complaints)
browser.complaints.clear()
browser.close(origin, lan, locked)
server.process.send_signal(signal.SIGTERM)
check(server.process.wait(60) == 0, "the server did not end well")
sys.exit(1 if client.failures else 0)
