# SPDX-License-Identifier: MIT
"""Models, sessions and chats as Python objects over the C library."""
from __future__ import annotations

import ctypes
import json
import os
import queue
import threading
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Union

from . import _abi
from ._library import defaults, lib

KV = {"f16": 0, "f32": 1, "i8": 2, "k4v2": 3, "k2v2": 4, "bitmap": 5}
PIECE_NS = 2_000_000  # least time between two pieces of text, below what a reader notices
FINISH = ("length", "end", "stop", "cancelled", "failed")
_TEXT = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
_NAME = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_char_p)
_EVENT = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.POINTER(_abi.whit_chat_event))


class Error(Exception):
    """What the library says: one line with the file, the place, the reason and what to do."""

    def __init__(self, message: str, status: str = "") -> None:
        super().__init__(message)
        self.status = status


def version() -> str:
    """The library's version."""
    return str(lib.whit_version().decode())


def _raise(status: int, error: Any) -> None:
    raise Error(error.message.decode("utf-8", "replace"), lib.whit_status_name(status).decode())


def pulled(cache_dir: Optional[str] = None) -> List[str]:
    """Names of the models that `whit pull` has downloaded: Model(name) opens them."""
    names: List[str] = []

    def keep(_user: Any, name: bytes) -> bool:
        names.append(name.decode("utf-8", "surrogateescape"))
        return True

    _call(lib.whit_pulled_list, os.fsencode(cache_dir) if cache_dir else None, _NAME(keep), None)
    return names


def _call(function: Callable[..., int], *arguments: Any) -> None:
    error = _abi.whit_error()
    status = function(*arguments, ctypes.byref(error))
    if status:
        _raise(status, error)


def _ids_of(ids: Sequence[int]) -> ctypes.Array:
    return (ctypes.c_int32 * max(len(ids), 1))(*ids)


class _Handle:
    """An object of the library that is closed once, by close(), a with statement, or the garbage collector."""

    _close_function = ""

    def __init__(self) -> None:
        self._handle: Optional[ctypes.c_void_p] = None
        self._pid = os.getpid()

    @property
    def _pointer(self) -> ctypes.c_void_p:
        if not self._handle:
            raise Error(f"this {type(self).__name__} is closed", "argument")
        if self._pid != os.getpid():
            raise Error(f"this {type(self).__name__} was made before a fork; its threads are not in this process",
                        "argument")
        return self._handle

    def close(self) -> None:
        """Gives the memory back. Closing twice does nothing."""
        handle, self._handle = self._handle, None
        if handle and self._pid == os.getpid():
            getattr(lib, self._close_function)(handle)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_unused: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self.close()


class Model(_Handle):
    """A model, mapped from its file; any number of threads may share it. `path` is a file, a folder, the name of a
    pulled model, or "tales", the toy inside the library."""

    _close_function = "whit_model_close"

    def __init__(self, path: Union[str, os.PathLike], *, cache_dir: Optional[str] = None, strict: bool = False) -> None:
        super().__init__()
        options = defaults(_abi.whit_model_options)
        options.strict = strict
        if cache_dir:
            options.cache_dir = os.fsencode(cache_dir)
        handle = ctypes.c_void_p()
        _call(lib.whit_model_open_named, os.fsencode(path), ctypes.byref(options), ctypes.byref(handle))
        self._handle = handle

    @property
    def vocab_size(self) -> int:
        return int(lib.whit_model_vocab_size(self._pointer))

    @property
    def context_size(self) -> int:
        """Tokens of context that the model was trained for."""
        return int(lib.whit_model_context_size(self._pointer))

    @property
    def embedding_size(self) -> int:
        return int(lib.whit_model_embedding_size(self._pointer))

    def metadata(self, key: str) -> Optional[str]:
        text = lib.whit_model_metadata(self._pointer, key.encode())
        return None if text is None else text.decode("utf-8", "replace")

    @property
    def identity(self) -> str:
        """A digest of configuration, tokenizer and weights, in hexadecimal digits."""
        return ctypes.string_at(lib.whit_model_identity(self._pointer), 32).hex()

    def tokenize(self, text: str, *, add_special: bool = True, parse_special: bool = False) -> List[int]:
        data = text.encode("utf-8", "surrogateescape")
        capacity = len(data) + 16
        ids, n_ids = (ctypes.c_int32 * capacity)(), ctypes.c_size_t()
        _call(lib.whit_tokenize, self._pointer, data, len(data), add_special, parse_special, ids, capacity,
              ctypes.byref(n_ids))
        return ids[: n_ids.value]

    def token_bytes(self, token: int) -> bytes:
        """The bytes that a token adds to a text, which may be a part of a character."""
        n_bytes, out = ctypes.c_size_t(), (ctypes.c_uint8 * 1024)()
        _call(lib.whit_token_bytes, self._pointer, token, out, len(out), ctypes.byref(n_bytes))
        return bytes(out[: n_bytes.value])

    def detokenize(self, ids: Iterable[int]) -> str:
        return b"".join(self.token_bytes(i) for i in ids).decode("utf-8", "replace")

    def is_end(self, token: int) -> bool:
        return bool(lib.whit_model_is_end(self._pointer, token))

    def session(self, **options: Any) -> "Session":
        return Session(self, **options)

    def embed(self, texts: Union[str, Sequence[str]], *, dimensions: int = 0, threads: int = 0) -> Any:
        """Vectors of texts with the model's own pooling: a NumPy array (n, dimensions), or lists without NumPy."""
        many = [texts] if isinstance(texts, str) else list(texts)
        size = dimensions or self.embedding_size
        with Session(self, threads=threads, _only_vectors=True) as session:
            values = session._embed(many, dimensions, size)
        return values[0] if isinstance(texts, str) else values


class Adapter(_Handle):
    """An int8 low-rank addition to one model; mount it with Session.mount."""

    _close_function = "whit_adapter_close"

    def __init__(self, model: Model, name: Union[str, os.PathLike]) -> None:
        super().__init__()
        self.model = model
        handle = ctypes.c_void_p()
        _call(lib.whit_adapter_open, model._pointer, os.fsencode(name), ctypes.byref(handle))
        self._handle = handle


def _array(pointer: Any, n_rows: int, n_columns: int, stride: int, owner: Any) -> Any:
    """(n_rows, n_columns) f32, rows `stride` elements apart, as a NumPy array without a copy that keeps its owner; a
    list of lists where NumPy is not there."""
    try:
        import numpy
    except ImportError:
        return [pointer[i * stride : i * stride + n_columns] for i in range(n_rows)]
    flat = numpy.ctypeslib.as_array(pointer, shape=(max(n_rows * stride, 1),))
    view = numpy.lib.stride_tricks.as_strided(flat, (n_rows, n_columns), (4 * stride, 4), writeable=False)
    kept = view.view(type("whit_array", (numpy.ndarray,), {}))
    kept.owner = owner
    return kept


class Session(_Handle):
    """Threads, key and value caches, and one or more sequences of tokens. One thread uses it at a time."""

    _close_function = "whit_session_close"

    def __init__(self, model: Model, *, context: int = 0, threads: int = 0, kv: str = "f16", sequences: int = 1,
                 batch: int = 512, logits: int = 0, _only_vectors: bool = False) -> None:
        super().__init__()
        if kv not in KV:
            raise Error(f"kv is '{kv}', not one of {', '.join(KV)}", "argument")
        self.model = model
        options = defaults(_abi.whit_session_options)
        options.n_ctx_tokens, options.n_threads, options.kv = context, threads, KV[kv]
        options.n_sequences, options.n_batch_tokens, options.n_logits = sequences, batch, logits
        options.only_vectors = _only_vectors
        self._cancel = ctypes.c_bool(False)
        options.cancel = ctypes.addressof(self._cancel)
        handle = ctypes.c_void_p()
        _call(lib.whit_session_open, model._pointer, ctypes.byref(options), ctypes.byref(handle))
        self._handle = handle
        self._adapters: List[Adapter] = []

    @property
    def context_size(self) -> int:
        return int(lib.whit_session_context_size(self._pointer))

    def position(self, sequence: int = 0) -> int:
        return int(lib.whit_session_position(self._pointer, sequence))

    def truncate(self, tokens: int = 0, sequence: int = 0) -> None:
        """Forgets the tokens of a sequence from `tokens` on."""
        _call(lib.whit_session_truncate, self._pointer, sequence, tokens)

    def cancel(self) -> None:
        """Ends a running call at the next layer; any thread may ask for it."""
        self._cancel.value = True

    def mount(self, adapters: Mapping[Adapter, float], sequence: int = 0) -> None:
        """Mounts adapters with their strengths in place of those that the sequence has."""
        mounts = (_abi.whit_mount * max(len(adapters), 1))()
        for mount, (adapter, scale) in zip(mounts, adapters.items()):
            mount.adapter, mount.scale = adapter._pointer, scale
        _call(lib.whit_session_mount_strided, self._pointer, sequence, mounts, len(adapters),
              ctypes.sizeof(_abi.whit_mount))
        self._adapters = list(adapters)

    def step(self, ids: Sequence[int], sequence: int = 0, *, every: bool = False) -> Any:
        """Appends tokens and returns the logits after the last one, (vocab) f32, or with `every` after each, (n, vocab).
        Arrays are views of the session's memory, valid until its next call."""
        tokens = (_abi.whit_step_token * max(len(ids), 1))()
        for i, token in enumerate(ids):
            tokens[i].sequence, tokens[i].id = sequence, token
            tokens[i].want_logits = every or i + 1 == len(ids)
        self._cancel.value = False
        _call(lib.whit_session_step_strided, self._pointer, tokens, len(ids), ctypes.sizeof(_abi.whit_step_token))
        first, n_rows = lib.whit_session_logits(self._pointer, 0), len(ids) if every else 1
        second = lib.whit_session_logits(self._pointer, 1) if n_rows > 1 else first
        values = _array(ctypes.cast(first, ctypes.POINTER(ctypes.c_float)), n_rows, self.model.vocab_size,
                        (second - first) // 4 or self.model.vocab_size, self)
        return values if every else values[0]

    def generate(self, prompt: Union[str, Sequence[int]], *, max_tokens: int = 128, stop: Sequence[str] = (),
                 schema: Union[None, str, Mapping[str, Any]] = None, grammar: Optional[str] = None,
                 ignore_end: bool = False, sequence: int = 0, **sampling: Any) -> Iterator[str]:
        """Continues a text and yields pieces of it as they become final. `schema` (JSON Schema) or `grammar` (GBNF) hold
        its form. `sampling` are the library's sampler options: seed, temperature, top_k, top_p, ..."""
        ids = self.model.tokenize(prompt) if isinstance(prompt, str) else list(prompt)
        with _Sampler(self.model, sampling) as sampler, _Form(self.model, schema, grammar) as form:
            present = ctypes.c_uint32()
            self._cancel.value = False
            _call(lib.whit_session_reuse, self._pointer, sequence, _ids_of(ids), len(ids), ctypes.byref(present))
            options = defaults(_abi.whit_generate_options)
            options.sequence, options.n_present, options.n_tokens = sequence, present.value, max_tokens
            options.ignore_end = ignore_end
            texts = (ctypes.c_char_p * max(len(stop), 1))(*[text.encode() for text in stop])
            options.stop, options.n_stop = ctypes.addressof(texts), len(stop)
            stages = form.stages()
            options.stages, options.n_stages = ctypes.addressof(stages), 1 if form.state else 0
            handle = ctypes.c_void_p()
            _call(lib.whit_generation_open, self._pointer, sampler._pointer, _ids_of(ids), len(ids),
                  ctypes.byref(options), ctypes.byref(handle))
            try:
                yield from self._texts(handle)
            finally:
                if self._handle:  # a closed session has taken the generation's memory with it
                    lib.whit_generation_cancel(handle)
                    lib.whit_generation_close(handle)

    def _texts(self, handle: ctypes.c_void_p) -> Iterator[str]:
        # The library's work drives Python's own code and data out of the caches, so that one turn of this loop costs 20 us:
        # it touches little, and a model that is faster than PIECE_NS a token gives several of them in one turn.
        generations, error = (ctypes.c_void_p * 1)(handle), _abi.whit_error()
        n_open, n_bytes = ctypes.c_size_t(1), ctypes.c_size_t()
        open_pointer, bytes_pointer, error_pointer = map(ctypes.byref, (n_open, n_bytes, error))
        run, text_of, string_at = lib.whit_generations_run, lib.whit_generation_text, ctypes.string_at
        while n_open.value:
            status = run(self._pointer, generations, 1, PIECE_NS, open_pointer, error_pointer)
            text = text_of(handle, bytes_pointer)
            if n_bytes.value:
                yield string_at(text, n_bytes.value).decode("utf-8", "replace")
            if status:
                _raise(status, error)
        failed = lib.whit_generation_error(handle)
        if failed:
            error = ctypes.cast(failed, ctypes.POINTER(_abi.whit_error)).contents
            _raise(error.status, error)

    def _embed(self, many: Sequence[str], dimensions: int, size: int) -> Any:
        tokens = [self.model.tokenize(text) for text in many]
        kept = [_ids_of(ids) for ids in tokens]
        texts = (_abi.whit_embed_text * max(len(many), 1))()
        for text, ids, own in zip(texts, tokens, kept):
            text.ids, text.n_ids = ctypes.addressof(own), len(ids)
        options = defaults(_abi.whit_embed_options)
        options.n_dimensions = dimensions
        values = (ctypes.c_float * max(len(many) * size, 1))()
        _call(lib.whit_embed_texts_strided, self._pointer, texts, len(many), ctypes.sizeof(_abi.whit_embed_text),
              ctypes.byref(options), values)
        return _array(ctypes.cast(values, ctypes.POINTER(ctypes.c_float)), len(many), size, size, values)


class _Sampler(_Handle):
    _close_function = "whit_sampler_close"

    def __init__(self, model: Model, sampling: Mapping[str, Any]) -> None:
        super().__init__()
        options = defaults(_abi.whit_sampler_options)
        known = {name for name, _kind in _abi.whit_sampler_options._fields_} - {"struct_bytes"}
        for name, value in sampling.items():
            if name not in known:
                raise TypeError(f"'{name}' is no sampler option: {', '.join(sorted(known))}")
            setattr(options, name, value)
        handle = ctypes.c_void_p()
        _call(lib.whit_sampler_open, model._pointer, ctypes.byref(options), ctypes.byref(handle))
        self._handle = handle


class _Form:
    """A grammar of one generation, if one was given."""

    def __init__(self, model: Model, schema: Union[None, str, Mapping[str, Any]], grammar: Optional[str]) -> None:
        self.vocabulary, self.grammar, self.state = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        if schema is None and grammar is None:
            return
        text = grammar if schema is None else schema if isinstance(schema, str) else json.dumps(schema)
        function = lib.whit_grammar_open_gbnf if schema is None else lib.whit_grammar_open_json_schema
        data = str(text).encode()
        try:
            _call(lib.whit_grammar_vocabulary_open, model._pointer, ctypes.byref(self.vocabulary))
            _call(function, self.vocabulary, b"the grammar", data, len(data), ctypes.byref(self.grammar))
            _call(lib.whit_grammar_state_open, self.grammar, ctypes.byref(self.state))
        except BaseException:
            self.__exit__()
            raise

    def stages(self) -> ctypes.Array:
        pointers = (ctypes.c_void_p * 1)()
        if self.state:
            self.stage = lib.whit_grammar_stage(self.state)
            pointers[0] = ctypes.addressof(self.stage)
        return pointers

    def __enter__(self) -> "_Form":
        return self

    def __exit__(self, *_unused: Any) -> None:
        for handle, close in ((self.state, lib.whit_grammar_state_close), (self.grammar, lib.whit_grammar_close),
                              (self.vocabulary, lib.whit_grammar_vocabulary_close)):
            if handle:
                close(handle)
                handle.value = None


class Answer:
    """An answer of a chat: text, thinking, and how many tokens it took."""

    def __init__(self, message: Mapping[str, Any], counts: Any) -> None:
        self.message = dict(message)
        self.text: str = self.message.get("content") or ""
        self.thinking: str = self.message.get("reasoning_content") or ""
        self.calls: List[Dict[str, Any]] = self.message.get("tool_calls") or []
        self.finish: str = FINISH[counts.finish]
        self.prompt_tokens, self.cached_tokens, self.tokens = counts.n_prompt, counts.n_kept, counts.n_generated

    def __str__(self) -> str:
        return self.text


class Chat(_Handle):
    """A conversation through the model's chat template. `tools` are functions by name with their JSON descriptions:
    {"name": (function, {"description": ..., "parameters": {...}})}; answers call them, and results go back."""

    _close_function = "whit_conversation_close"

    def __init__(self, model: Model, *, system: str = "", tools: Optional[Mapping[str, Any]] = None,
                 template: Optional[str] = None, session: Optional[Session] = None, sequence: int = 0,
                 max_calls: int = 16, **options: Any) -> None:
        super().__init__()
        self._template, self._session = ctypes.c_void_p(), session or Session(model, **options)
        self.model, self._tools, self._max_calls = model, dict(tools or {}), max_calls
        wanted = defaults(_abi.whit_chat_template_options)
        source = template.encode() if template else None
        wanted.source, wanted.source_bytes, wanted.tool_fallback = source, len(source or b""), True
        _call(lib.whit_chat_template_open, model._pointer, ctypes.byref(wanted), ctypes.byref(self._template))
        handle = ctypes.c_void_p()
        _call(lib.whit_conversation_open, self._session._pointer, sequence, self._template, ctypes.byref(handle))
        self._handle = handle
        if system:
            data = system.encode()
            _call(lib.whit_conversation_set_system, handle, data, len(data))
        if self._tools:
            described = json.dumps([{"type": "function", "function": {"name": name, **about}}
                                    for name, (_function, about) in self._tools.items()]).encode()
            _call(lib.whit_conversation_set_tools, handle, described, len(described))

    def close(self) -> None:
        super().close()
        template, self._template = self._template, ctypes.c_void_p()
        if template and self._pid == os.getpid():
            lib.whit_chat_template_close(template)

    @property
    def messages(self) -> List[Dict[str, Any]]:
        found, n_bytes = [], ctypes.c_size_t()
        for i in range(lib.whit_conversation_count(self._pointer)):
            text = lib.whit_conversation_message(self._pointer, i, ctypes.byref(n_bytes))
            found.append(json.loads(ctypes.string_at(text, n_bytes.value)))
        return found

    def append(self, messages: Union[Mapping[str, Any], Sequence[Mapping[str, Any]]]) -> None:
        """Appends messages as OpenAI's chat API has them."""
        data = json.dumps(messages).encode()
        _call(lib.whit_conversation_append, self._pointer, data, len(data))

    def undo(self) -> int:
        """Removes the last question and all that follows it; returns the number of removed messages."""
        return int(lib.whit_conversation_undo(self._pointer))

    def save(self, path: Union[str, os.PathLike]) -> None:
        _call(lib.whit_conversation_save, self._pointer, os.fsencode(path))

    def load(self, path: Union[str, os.PathLike]) -> None:
        _call(lib.whit_conversation_load, self._pointer, os.fsencode(path))

    def ask(self, text: Optional[str] = None, *, on_text: Optional[Callable[[str], Any]] = None,
            max_tokens: int = 0, stop: Sequence[str] = (), thinking: Optional[bool] = None, **sampling: Any) -> Answer:
        """Says something and returns the answer, after the calls of tools that it makes. `on_text` gets pieces as they
        come and stops the answer by returning False."""
        if text is not None:
            data = text.encode("utf-8", "replace")
            _call(lib.whit_conversation_say, self._pointer, b"user", data, len(data))
        with _Sampler(self.model, sampling) as sampler:
            for _turn in range(self._max_calls + 1):
                answer = self._answer_once(sampler, on_text, max_tokens, stop, thinking)
                if not self._return_results():
                    break
        return answer

    def stream(self, text: str, **options: Any) -> Iterator[str]:
        """The same as ask, as an iterator over pieces of text; leaving it early stops the answer."""
        pieces: "queue.Queue[Any]" = queue.Queue()
        stopped = threading.Event()

        def run() -> None:
            try:
                self.ask(text, on_text=lambda piece: (pieces.put(piece), not stopped.is_set())[1], **options)
                pieces.put(None)
            except BaseException as error:  # it is raised again where the pieces are read
                pieces.put(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        try:
            while True:
                piece = pieces.get()
                if piece is None:
                    return
                if isinstance(piece, BaseException):
                    raise piece
                yield piece
        finally:
            stopped.set()
            thread.join()

    def _answer_once(self, sampler: _Sampler, on_text: Optional[Callable[[str], Any]], max_tokens: int,
                     stop: Sequence[str], thinking: Optional[bool]) -> Answer:
        raised: List[BaseException] = []

        def receive(_user: Any, event: Any) -> bool:
            if on_text is None or event.contents.kind != 0:
                return True
            try:
                piece = ctypes.string_at(event.contents.text, event.contents.text_bytes).decode("utf-8", "replace")
                return on_text(piece) is not False
            except BaseException as error:  # Ctrl-C too: the answer ends, and the error is raised after it
                raised.append(error)
                return False

        options, counts = defaults(_abi.whit_answer_options), defaults(_abi.whit_answer)
        receiver = _EVENT(receive)
        options.on_event = ctypes.cast(receiver, ctypes.c_void_p).value
        if max_tokens:
            options.n_tokens = max_tokens
        if thinking is not None:
            options.thinking = 1 if thinking else 2
        texts = (ctypes.c_char_p * max(len(stop), 1))(*[text.encode() for text in stop])
        options.stop, options.n_stop = ctypes.addressof(texts), len(stop)
        self._session._cancel.value = False
        try:
            _call(lib.whit_conversation_answer, self._pointer, sampler._pointer, ctypes.byref(options),
                  ctypes.byref(counts))
        except Error:
            if not raised:
                raise
        if raised:
            raise raised[0]
        return Answer(self.messages[-1], counts)

    def _return_results(self) -> bool:
        called = False
        while self._tools:
            call = lib.whit_conversation_next_call(self._pointer)
            if not call:
                break
            about = ctypes.cast(call, ctypes.POINTER(_abi.whit_conversation_call)).contents
            name = about.name.decode("utf-8", "replace")
            text = ctypes.string_at(about.arguments, about.arguments_bytes).decode("utf-8", "replace")
            try:
                result = self._tools[name][0](**json.loads(text))
            except Exception as error:  # pylint: disable=broad-except # the model is told what went wrong
                result = f"error: {type(error).__name__}: {error}"
            data = (result if isinstance(result, str) else json.dumps(result)).encode("utf-8", "replace")
            _call(lib.whit_conversation_return, self._pointer, data, len(data))
            called = True
        return called
