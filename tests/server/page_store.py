# SPDX-License-Identifier: MIT
"""The page at / loses nothing: two tabs, a reload within an answer, other conversations, a full context, undo, files."""
import json
import signal
import sys

import client
from browser import Browser, Tab, need_chromium
from client import Server, check

need_chromium()
server = Server("-c", "2048")
origin = "http://127.0.0.1:%d" % server.port
browser = Browser()
names = "[...document.querySelectorAll('#list .open')].map(e => e.textContent)"

# ---- what an earlier version kept -------------------------------------------------------------------
one = Tab(browser, origin + "/")
old = {"version": 1, "current": "1-2", "conversations": [
    {"id": "1-2", "title": "From before", "messages": [{"role": "user", "content": "Old question"},
                                                        {"role": "assistant", "content": "Old answer"}]}]}
one.run("localStorage.setItem('whit.conversations', %s)" % json.dumps(json.dumps(old)))
one.reload()
check(one.run(names) == ["From before"] and one.texts("assistant") == ["Old answer"], "the earlier store is not taken over")
check(one.run("localStorage.getItem('whit.conversations')") is None, "the earlier store stays beside the new one")

# ---- two tabs ---------------------------------------------------------------------------------------
two = Tab(browser, origin + "/")
one.click("#side", "New conversation")
two.click("#side", "New conversation")
one.ask("First tab, about cats")
two.ask("Second tab, about dogs")
for tab in (one, two):
    tab.wait(names + ".length === 3", "three conversations in both tabs")
    check(sorted(tab.run(names)) == ["First tab, about cats", "From before", "Second tab, about dogs"], tab.run(names))
# Both write in one conversation: neither question nor answer is lost.
two.run("[...document.querySelectorAll('#list .open')].find(b => b.textContent.includes('cats')).click()")
check(two.texts("user") == ["First tab, about cats"], "a conversation of the other tab")
for tab in (one, two):
    tab.make_long(150)
one.run("sendMessage(current, 'From one 1998')")
two.run("sendMessage(current, 'From two')")
for tab in (one, two):
    tab.wait("!answers.size", "both answers")
check(one.run("[...messagesOf(current.id)].filter(m => /^From/.test(m.content)).map(m => m.content).sort().join()") ==
      "From one 1998,From two", "a question is lost")
one.wait("[...messagesOf(current.id)].every(m => m.role === 'user' || m.state !== 'writing')", "the end in the other tab")
# The other tab sees an answer while it grows, and does not call it cut off.
two.make_long(1500)
two.run("sendMessage(current, 'Long')")
one.wait("[...messagesOf(current.id)].some(m => m.state === 'writing' && m.content.length > 50 && isLive(m))",
         "an answer while the other tab writes it")
check("cut off" not in one.run("[...document.querySelectorAll('#log .tools')].map(e => e.textContent).join()"),
      "a growing answer is called cut off")

# ---- another conversation, and a reload, within an answer -------------------------------------------
two.run("[...document.querySelectorAll('#list .open')].find(b => b.textContent.includes('dogs')).click()")
check(two.texts("user") == ["Second tab, about dogs"] and two.run("answers.size") == 1, "another conversation stops the answer")
check(two.run("document.querySelectorAll('#list .busy').length") == 1, "the list does not show who answers")
two.wait("!answers.size", "the end of the answer that is not shown")
check(two.run("shownPath([...library.conversations.values()].find(c => c.title.includes('cats'))).at(-1).message.state") ==
      "full", "how it ended")
two.make_long(2000)
two.run("sendMessage(current, 'And then?')")
two.wait("document.querySelector('.message:last-child .text').textContent.length > 200", "the beginning of a long answer")
seen = two.run("document.querySelector('.message:last-child .text').textContent")
two.reload()
check(two.texts("user")[-1:] == ["And then?"], "the question is lost by a reload")
kept = two.texts("assistant")[-1]
check(len(kept) >= len(seen) and kept[:50] == seen[:50], "the beginning of the answer is lost by a reload")
check("cut off" in two.run("document.querySelector('.message:last-child .tools').textContent"), "it is not said")
two.make_long(20)
two.click(".message:last-child", "Continue")
two.wait("!answers.size", "the rest of the answer")
check(two.run("shownPath(current).at(-1).message.content.length") > len(kept), "a cut answer is not continued")
# A draft stays, too.
two.run("document.getElementById('input').focus()")
two.insert("Not sent yet")
two.reload()
check(two.run("document.getElementById('input').value") == "Not sent yet", "the draft is lost by a reload")
two.run("document.getElementById('input').value = ''; keepDraft()")

# ---- a full context ---------------------------------------------------------------------------------
two.click("#side", "New conversation")
two.make_long(30)
sentence = "There once was a little cat who lived in a big house and liked to play with a ball of red wool. "
for i in range(5):
    two.run("sendMessage(current, %s)" % json.dumps("Part %d. " % i + 24 * sentence))
    two.wait("!answers.size && shownPath(current).length === %d" % (2 * i + 2), "an answer at part %d" % i)
check(two.run("shownPath(current).every(p => !p.message.error)"), "a full context is a dead end:",
      two.run("shownPath(current).map(p => p.message.error).join()"))
divider = two.run("document.querySelector('#log .divider')?.textContent") or ""
check("The context of 2048 tokens is full: the model no longer sees the" in divider, "nothing is said:", divider)
check(two.picture("full", 1100, 700), "full")
two.run("sendMessage(current, %s)" % json.dumps(120 * sentence))
two.wait("!answers.size", "a refusal")
check("make it shorter" in two.run("shownPath(current).at(-1).message.error"), "what a message that is too long gets")
two.run("window.fetch = ownFetch; 0")

# ---- search, rename, delete and undo ----------------------------------------------------------------
search = "(() => { const e = document.getElementById('search'); e.value = %s; e.oninput() })()"
two.run(search % '"pART 0. there"')  # what the page was told, since an answer may have any words
check(len(two.run(names)) == 1 and "Part 0. There" in two.run(names)[0], "a search:", two.run(names))
two.run(search % '"zebras on skates"')
check("Nothing is found" in two.run("document.getElementById('list').textContent"), "a search that finds nothing")
two.run(search % '""')
count = len(two.run(names))
two.click("#list", "Rename From before")
two.run("(() => { const e = document.querySelector('#list input'); e.value = 'Of old'; e.onblur() })()")
one.wait(names + ".includes('Of old')", "the new name in the other tab")
# A folder: chosen beside the name, shared by the tabs, closed and opened, found by a search, kept by an export.
two.click("#list", "Rename Of old")
two.run("(() => { const [name, folder] = document.querySelectorAll('#list input'); name.value = 'Of old'; "
        "folder.value = 'Past 1997'; name.onblur({relatedTarget: folder}); "
        "folder.onkeydown({key: 'Enter', stopPropagation() {}}) })()")
one.wait("document.querySelector('#list li').textContent === '▾ Past 1997'", "the folder in the other tab")
check(one.run(names + "[0]") == "Of old" and one.run("document.querySelectorAll('#list .inside').length") == 1, one.run(names))
one.click("#list", "▾ Past 1997")
two.wait("document.querySelector('#list .folder button').getAttribute('aria-expanded') === 'false'",
         "a folder that another tab closed")
check("Of old" not in one.run(names) and one.run("document.querySelector('#list .folder button').getAttribute('aria-expanded')")
      == "false", "a closed folder shows what is in it")
one.reload()
check("Of old" not in one.run(names), "a closed folder is open after a reload")
one.click("#list", "▸ Past 1997")
check("Of old" in one.run(names), "a folder does not open")
seen = one.run("""(() => { const order = shownConversations().map(c => c.id), seen = [];
    openConversation(shownConversations()[0]);
    do seen.push(current.id); while (seen.length < order.length && (openBeside(1), true));
    return [order, seen] })()""")
check(len(seen[0]) > 2 and seen[0] == seen[1], "the next conversation is not the one below:", seen)
check(one.run("folderRows('constructor', [])[0].querySelector('button').getAttribute('aria-expanded')") == "true",
      "a folder that was not closed is closed")
one.run(search % '"1997 old"')
check(one.run(names) == ["Past 1997 / Of old"], "a search for the folder:", one.run(names))
one.run(search % '""')
check(one.run("readExport(JSON.parse(JSON.stringify(exportRecords(listedConversations(), messagesOf))))"
              ".filter(r => r.folder === 'Past 1997').length") == 1, "an export has no folders")
# A word that only an earlier version has opens that version.
two.run("[...document.querySelectorAll('#list .open')].find(b => b.textContent.includes('cats')).click()")
two.run("(async () => { const question = shownPath(current)[0].message; "
        "sendMessage(current, 'Edited question', [], question.parent) })()")
two.wait("!answers.size", "an answer to the edited question")
check(two.texts("user") == ["Edited question"], "the edited question")
two.run(search % '"From 1998"')
two.run("document.querySelector('#list .open').click()")
check("From one 1998" in two.texts("user"), "what is found is not shown:", two.texts("user"))
two.run(search % '""')
two.click("#list", "Delete Of old")
check(len(two.run(names)) == count - 1, "it is not deleted")
one.wait("!" + names + ".includes('Of old')", "the deletion in the other tab")
two.click("#toast", "Undo")
check(len(two.run(names)) == count and two.texts("assistant") == ["Old answer"], "it does not come back")
one.wait(names + ".includes('Of old')", "the undone deletion in the other tab")
check(not browser.complaints, browser.complaints)

# ---- files ------------------------------------------------------------------------------------------
two.click("#side", "New conversation")
two.run("(async () => attachFiles([new File(['a ``` b'], 'notes.md'), new File([new Uint8Array([1, 0, 255])], 'x.bin'), "
        "new File(['%PDF-1.7 ', new Uint8Array(5 << 20)], 'paper.pdf'), new File([new Uint8Array([137, 80, 78, 71])], 'cat.png'), "
        "new File(['PK', new Uint8Array([3, 4])], 'plan.docx'), new File([new Uint8Array([255, 254, 65, 0])], 'old.txt'), "
        "new File(['a'.repeat(5 << 20)], 'long.txt'), "
        "new File(['BM', new Uint8Array([70, 0, 0, 0, 0, 0, 0, 0, 54, 0, 0, 0])], 'a.bmp')]))()")
refused = two.run("document.getElementById('toast').textContent")
for line in ("x.bin is not text", "paper.pdf is a PDF: 'pdftotext -layout FILE.pdf' writes its text to FILE.txt: attach that.",
             "cat.png is a picture: the models here read text alone.", "plan.docx is an office document",
             "old.txt is text in UTF-16: save it as UTF-8.", "long.txt has over 4 MiB", "a.bmp is a picture"):
    check(line in refused, "a file that is not text:", line, refused)
check(two.run("(async () => Promise.all(['BMI is mass over the square of height', 'BZh, GIF8'].map("
              "text => readTextFile(new File([text], 'a.txt')))))()") ==
      ["BMI is mass over the square of height", "BZh, GIF8"], "a text that begins with the letters of a picture")
two.run("""(() => { const data = new DataTransfer(); data.setData("text/plain", "long ".repeat(500));
    document.getElementById("input").dispatchEvent(new ClipboardEvent("paste", {clipboardData: data, cancelable: true})) })()""")
check(two.run("[...document.querySelectorAll('#files li')].map(e => e.textContent)") ==
      ["notes.md, 7 characters×", "pasted text 2, 3k characters×"], two.run("document.getElementById('files').textContent"))
two.run("window.ownFetch = window.fetch; window.fetch = (a, o) => { window.sent = JSON.parse(o.body); return ownFetch(a, o) }; 0")
two.ask("What is in it?")
sent = two.run("sent.messages.at(-1).content")
check(sent.startswith("File notes.md:\n````\na ``` b\n````\n\nFile pasted text 2:\n```\nlong ") and
      sent.endswith("\n```\n\nWhat is in it?"), "the files as the model reads them:", sent[:200])
check(two.run("document.querySelectorAll('.message.user .file').length") == 2 and two.texts("user") == ["What is in it?"],
      "the files as they are shown")
check(two.run("document.getElementById('files').childElementCount") == 0, "the files stay attached")
two.reload()
check(two.run("document.querySelectorAll('.message.user .file').length") == 2, "the files after a reload")
browser.close(origin)
server.process.send_signal(signal.SIGTERM)
check(server.process.wait(60) == 0, "the server did not end well")
sys.exit(1 if client.failures else 0)
