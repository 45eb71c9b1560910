/**
 * The conversation with a model, independent of the provider. Assistant messages are stored in this form, together with
 * the data that the provider needs back (`provider`), so that a run can resume after a crash.
 */

/** An image or a document. A document is a PDF, for models that accept whole PDFs. */
export type MediaPart =
  | { readonly type: 'image'; readonly mimeType: string; readonly base64: string }
  | { readonly type: 'document'; readonly mimeType: string; readonly base64: string; readonly name: string }

export type UserPart = { readonly type: 'text'; readonly text: string } | MediaPart

export type AssistantPart =
  | { readonly type: 'text'; readonly text: string; readonly provider?: unknown }
  /** `provider` is sent back unchanged: a signature, an encrypted block. */
  | { readonly type: 'reasoning'; readonly text: string; readonly provider?: unknown }
  | {
      readonly type: 'tool_call'
      readonly callId: string
      readonly name: string
      /** The arguments as the model wrote them. `args` is undefined if they are not a JSON object. */
      readonly argsText: string
      readonly args: Readonly<Record<string, unknown>> | undefined
      readonly provider?: unknown
    }
  /** A tool call that the model's provider ran within the turn, or its result. Sent back to that provider unchanged. */
  | { readonly type: 'provider_tool'; readonly by: string; readonly part: unknown }

export type ToolCallPart = Extract<AssistantPart, { type: 'tool_call' }>

/** Why a model call ended. */
export type FinishReason = 'stop' | 'tool_calls' | 'length' | 'content_filter'

export interface UserMessage {
  readonly role: 'user'
  readonly content: readonly UserPart[]
}

export interface AssistantMessage {
  readonly role: 'assistant'
  readonly content: readonly AssistantPart[]
  /** Digest of the request that this message answered (engine/agent/view.ts). Its reasoning is valid only after that request. */
  readonly answered?: string
}

export interface ToolMessage {
  readonly role: 'tool'
  readonly callId: string
  readonly name: string
  readonly output: string
  /** Images and documents that accompany the output. */
  readonly media?: readonly MediaPart[]
  /** Step of its `tool_result` in the run's own trace. Not sent. Undefined for results of earlier interactions. */
  readonly step?: number
  /** Path of the file in the sandbox that has the whole output. Not sent. Undefined if the output is complete. */
  readonly file?: string
}

export type Message = UserMessage | AssistantMessage | ToolMessage

/** Separates two turns of an answer. */
export const TURN_BREAK = '\n\n'

export function userText(text: string): UserMessage {
  return { role: 'user', content: [{ type: 'text', text }] }
}

/** The part of an answer that was shown before its call broke off. */
export function partialMessage(text: string): AssistantMessage {
  return { role: 'assistant', content: [{ type: 'text', text }] }
}

/** True if a reply has neither text nor calls. It is stored, but not part of the conversation: providers refuse it. */
export function isSilent({ content }: AssistantMessage): boolean {
  return content.every((part) => part.type === 'reasoning' || (part.type === 'text' && part.text.trim() === ''))
}

export function toolCalls(message: AssistantMessage): ToolCallPart[] {
  return message.content.filter((part) => part.type === 'tool_call')
}

/** The answer text of a message. */
export function answerText(message: AssistantMessage): string {
  return message.content.map((part) => (part.type === 'text' ? part.text : '')).join('')
}

/** Length of the messages in characters. For estimates, not for limits. */
export function countCharacters(messages: readonly Message[]): number {
  let count = 0
  for (const message of messages) {
    if (message.role === 'tool') {
      count += message.output.length
      for (const part of message.media ?? []) count += mediaCharacters(part)
    } else for (const part of message.content) count += partCharacters(part)
  }
  return count
}

function partCharacters(part: UserPart | AssistantPart): number {
  if (part.type === 'tool_call') return part.name.length + part.argsText.length
  if (part.type === 'provider_tool') return JSON.stringify(part.part).length
  return part.type === 'image' || part.type === 'document' ? mediaCharacters(part) : part.text.length
}

/** An image costs about a thousand tokens with most providers, whatever its bytes; a PDF's page twice that. */
function mediaCharacters(part: MediaPart): number {
  return part.type === 'image' ? 4_000 : Math.max(8_000, Math.round(part.base64.length / 8))
}
