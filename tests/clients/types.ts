// SPDX-License-Identifier: MIT
// Replies as the clients declare them; schemas.mjs makes JSON Schemas of these.
import type OpenAI from "openai";
import type Anthropic from "@anthropic-ai/sdk";
import type { ChatResponse, EmbedResponse, GenerateResponse } from "ollama";

export type WireChat = OpenAI.Chat.ChatCompletion;
export type WireChatChunk = OpenAI.Chat.ChatCompletionChunk;
export type WireCompletion = OpenAI.Completion;
export type WireEmbeddings = OpenAI.CreateEmbeddingResponse;
export type WireModel = OpenAI.Model;
// Put together by the client.
export type WireResponse = Omit<OpenAI.Responses.Response, "output_text">;
export type WireResponseEvent = Exclude<OpenAI.Responses.ResponseStreamEvent, { response: unknown }>;
export type WireMessage = Anthropic.Message;
export type WireMessageEvent = Anthropic.RawMessageStreamEvent;
export type WireTokenCount = Anthropic.MessageTokensCount;
export type WireOllamaEmbed = EmbedResponse;
// Times are texts before the client reads them; the lines of a stream before the last have no counts; `context` is what
// Ollama itself no longer gives.
export type WireOllamaChat = Omit<ChatResponse, "created_at"> & { created_at: string };
export type WireOllamaPart = Pick<ChatResponse, "model" | "message" | "done"> & { created_at: string };
export type WireOllamaGenerate = Omit<GenerateResponse, "created_at" | "context"> & { created_at: string };
