// SPDX-License-Identifier: MIT
// A conversation through the model's template, for the thread that owns the module: prompts, answers, calls.
import { Frame, Generation, WhitError } from "./engine.mjs";

const kinds = ["text", "thinking", "call-begin", "call-arguments", "call-end"];

export class Chat {
  constructor(session, { system, tools, template } = {}) {
    const { library, model } = session;
    Object.assign(this, { library, session, tools, messages: [], frame: new Frame(library) });
    if (system) this.messages.push({ role: "system", content: system });
    try {
      const [source, size] = template ? this.frame.text(template) : [0, 0];
      this.template = library.open("whit_chat_template_open", model.pointer,
        this.frame.struct("whit_chat_template_options", { source, source_bytes: size, tool_fallback: true }));
      this.receiver = library.core.addFunction((_user, event) => this.receive(event), "iii");
    } catch (error) {
      this.close();
      throw error;
    }
  }

  receive(event) {
    const field = (name) => this.library.read("whit_chat_event", event, name);
    this.events.push({ kind: kinds[field("kind")], call: field("i_call"), text: this.library.text(field("text"), field("text_bytes")) });
    return 1;
  }

  /** Messages of the prompt: without the first `dropped` after the system message. */
  visible(dropped) {
    const first = this.messages[0]?.role === "system" ? 1 : 0;
    return [...this.messages.slice(0, first), ...this.messages.slice(first + dropped)];
  }

  /** How many messages more must go so that the next turn is left out too; 0 if only the last turn is there. */
  nextTurn(dropped) {
    const first = this.messages[0]?.role === "system" ? 1 : 0;
    const at = this.messages.findIndex((message, i) => i > first + dropped && message.role === "user");
    return at < 0 ? 0 : at - first;
  }

  /** Begins the answer to the last message. Prompts leave out the oldest turns while less than a quarter of the context
   * remains for the answer. */
  begin(options) {
    for (let dropped = 0; ;) {
      const next = this.nextTurn(dropped);
      const answer = new Answer(this, this.visible(dropped), options, next > 0);
      if (answer.generation) return answer;
      answer.close();
      dropped = next;
    }
  }

  close() {
    const { core } = this.library;
    if (this.receiver) core.removeFunction(this.receiver);
    if (this.template) core._whit_chat_template_close(this.template);
    this.receiver = this.template = 0;
    this.frame.end();
  }
}

const thinkings = new Map([[undefined, 0], [true, 1], [false, 2]]);

/** One answer, a step at a time; step() returns events {kind, text, call}, and null at the end. Without a generation, if
 * the prompt leaves too little room and `mayShorten` says that it could be shorter. */
class Answer {
  constructor(chat, messages, { thinking, stop = [], ...options }, mayShorten) {
    const { library, session, template } = chat;
    Object.assign(this, { chat, library, frame: new Frame(library) });
    if (!thinkings.has(thinking)) throw new WhitError("thinking is true, false or undefined");
    try {
      const [json, size] = this.frame.text(JSON.stringify(messages));
      const [tools, toolsSize] = chat.tools ? this.frame.text(JSON.stringify(chat.tools)) : [0, 0];
      this.prompt = library.open("whit_chat_render", template, this.frame.struct("whit_chat_request", {
        messages: json, messages_bytes: size, tools, tools_bytes: toolsSize, thinking: thinkings.get(thinking),
      }));
      const at = library.core._whit_chat_prompt_ids(this.prompt, library.number);
      const ids = library.core.HEAP32.slice(at >> 2, (at >> 2) + library.u32(library.number));
      if (mayShorten && 4 * ids.length > 3 * library.core._whit_session_context_size(session.pointer)) return;
      const end = library.core._whit_chat_template_end(template), mark = library.core._whit_chat_template_stop(template);
      this.generation = new Generation(session, ids, {
        maxTokens: 0xFFFFFFFF, ...options, form: tools ? this.callForm(tools, toolsSize) : 0,
        stop: mark ? [library.string(mark), ...stop] : stop, endIds: end < 0 ? [] : [end],
        keepSpecial: Boolean(library.core._whit_chat_template_keep_special(template)),
      });
      this.parser = library.open("whit_chat_parser_open", template, this.prompt, Boolean(chat.tools), chat.receiver, 0);
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** The grammar that holds calls where the template does not know tools. */
  callForm(tools, toolsSize) {
    const { library, frame } = this, { template } = this.chat;
    if (!library.core._whit_chat_template_is_plain(template)) return 0;
    this.vocabulary = library.open("whit_call_vocabulary_open", template);
    this.grammar = library.open("whit_call_grammar_open", template, this.prompt, this.vocabulary,
      frame.struct("whit_call_options", { tools, tools_bytes: toolsSize }));
    return this.grammar;
  }

  push(text) {
    this.chat.events = [];
    const frame = new Frame(this.library);
    try {
      this.library.call("whit_chat_parser_push", this.parser, ...frame.text(text));
    } finally {
      frame.end();
    }
    return this.chat.events;
  }

  step() {
    const text = this.generation.step();
    return text === null ? null : this.push(text);
  }

  /** Ends the answer, also an unfinished one, and appends it: {message, events, and the generation's counts}. */
  finish() {
    this.generation.cancel();
    this.chat.events = [];
    this.library.call("whit_chat_parser_flush", this.parser);
    const at = this.library.core._whit_chat_parser_message(this.parser, this.library.number);
    const message = JSON.parse(this.library.text(at, this.library.u32(this.library.number)));
    this.chat.messages.push(message);
    return { message, events: this.chat.events, ...this.generation.result };
  }

  close() {
    const { core } = this.library;
    if (this.parser) core._whit_chat_parser_close(this.parser);
    this.generation?.close();
    if (this.grammar) core._whit_grammar_close(this.grammar);
    if (this.vocabulary) core._whit_grammar_vocabulary_close(this.vocabulary);
    if (this.prompt) core._whit_chat_prompt_close(this.prompt);
    this.parser = this.generation = this.grammar = this.vocabulary = this.prompt = 0;
    this.frame.end();
  }
}
