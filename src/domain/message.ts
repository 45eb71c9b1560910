/**
 * The conversation with a model, in no provider's dialect. A turn's assistant message is stored as it is here, with
 * what its provider needs to be given back (`provider`), so that a run can go on after a crash.
 */

export type UserPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image'; readonly mimeType: string; readonly base64: string }

export type AssistantPart =
  | { readonly type: 'text'; readonly text: string; readonly provider?: unknown }
  /** `provider` holds what must be sent back unchanged: a signature, an encrypted block. */
  | { readonly type: 'reasoning'; readonly text: string; readonly provider?: unknown }
  | {
      readonly type: 'tool_call'
      readonly callId: string
      readonly name: string
      /** The arguments as the model wrote them; `undefined` in `args` where they are no JSON object. */
      readonly argsText: string
      readonly args: Readonly<Record<string, unknown>> | undefined
      readonly provider?: unknown
    }

/** Why a model stopped speaking. */
export type FinishReason = 'stop' | 'tool_calls' | 'length' | 'content_filter'

export interface UserMessage {
  readonly role: 'user'
  readonly content: readonly UserPart[]
}

export interface AssistantMessage {
  readonly role: 'assistant'
  readonly content: readonly AssistantPart[]
}

export interface ToolMessage {
  readonly role: 'tool'
  readonly callId: string
  readonly name: string
  readonly output: string
  /** Images that go with the output, for models that can see. */
  readonly images?: readonly { readonly mimeType: string; readonly base64: string }[]
}

export type Message = UserMessage | AssistantMessage | ToolMessage

export function userText(text: string): UserMessage {
  return { role: 'user', content: [{ type: 'text', text }] }
}

export function toolCalls(message: AssistantMessage): Extract<AssistantPart, { type: 'tool_call' }>[] {
  return message.content.filter((part) => part.type === 'tool_call')
}

/** Characters that a model is given with these messages: for estimates, not for limits. */
export function countCharacters(messages: readonly Message[]): number {
  let count = 0
  for (const message of messages) {
    if (message.role === 'tool') count += message.output.length
    else for (const part of message.content) count += partCharacters(part)
  }
  return count
}

function partCharacters(part: UserPart | AssistantPart): number {
  if (part.type === 'tool_call') return part.name.length + part.argsText.length
  // An image costs about a thousand tokens with most providers, whatever its bytes.
  return part.type === 'image' ? 4_000 : part.text.length
}
