# SPDX-License-Identifier: MIT
"""Low-bit language models on the CPU: whit's library for Python.

    import whit
    model = whit.Model("model.ndf")
    for text in model.session().generate("Once upon a time", max_tokens=40):
        print(text, end="")
    chat = whit.Chat(model, system="Be brief.")
    print(chat.ask("Why is the sky blue?").text)
"""
from ._api import Adapter, Answer, Chat, Error, Model, Session, pulled, version

__all__ = ["Adapter", "Answer", "Chat", "Error", "Model", "Session", "pulled", "version"]
