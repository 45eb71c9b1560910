/**
 * The conversation with a model, in no provider's dialect. A turn's assistant message is stored as it is here, with
 * what its provider needs to be given back (`provider`), so that a run can go on after a crash.
 */

/** What a model sees rather than reads. A document is a PDF, for models that take one whole. */
export type MediaPart =
  | { readonly type: 'image'; readonly mimeType: string; readonly base64: string }
  | { readonly type: 'document'; readonly mimeType: string; readonly base64: string; readonly name: string }

export type UserPart = { readonly type: 'text'; readonly text: string } | MediaPart

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
  /** A tool that the model's provider ran within the turn, or what it brought: given back to that provider as it came. */
  | { readonly type: 'provider_tool'; readonly by: string; readonly part: unknown }

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
  /** What goes with the output, for models that can see. */
  readonly media?: readonly MediaPart[]
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

/** Characters of base64 in one request: providers take 20 to 50 MB, and the text wants its part. */
const MAX_MEDIA = 16 * 1024 * 1024
/** Anthropic takes 100 images a request, and from 20 on only small ones. */
const MAX_MEDIA_PARTS = 20

/** The conversation with no more shown than a provider takes: the oldest that tools showed goes, and its result says so. */
export function withinMedia(messages: readonly Message[]): readonly Message[] {
  let left = MAX_MEDIA
  let places = MAX_MEDIA_PARTS
  const kept = messages.toReversed().map((message): Message => {
    if (message.role !== 'tool' || !message.media) return message
    const fitting = message.media.filter(({ base64 }) => {
      left -= base64.length
      places--
      return left >= 0 && places >= 0
    })
    if (fitting.length === message.media.length) return message
    // Nor may anything older come in again behind it: what was left out once stays so.
    left = -1
    return withMedia(message, fitting)
  })
  return kept.reverse()
}

/** What was shown since the model spoke last taken away, with a word to it; else all that was shown; undefined where nothing was. */
export function withoutNewestMedia(messages: readonly Message[]): readonly Message[] | undefined {
  const shows = (message: Message) => message.role === 'tool' && message.media !== undefined
  if (!messages.some(shows)) return undefined
  const spoken = messages.findLastIndex((message) => message.role === 'assistant')
  const from = messages.slice(spoken + 1).some(shows) ? spoken + 1 : 0
  const note = "[The model's provider refused to show it. It may be damaged, or of a kind that it does not take.]"
  return messages.map((message, i) =>
    i >= from && message.role === 'tool' && message.media ? withMedia(message, [], note) : message,
  )
}

/** The conversation for a model that is shown images or not, and PDFs or not: what it can't see goes, and the text says so. */
export function visibleTo(
  messages: readonly Message[],
  { vision, documents }: { readonly vision: boolean; readonly documents: boolean },
): readonly Message[] {
  if (vision && documents) return messages
  const sees = (part: UserPart | AssistantPart) =>
    part.type === 'image' ? vision : part.type === 'document' ? documents : true
  return messages.map((message): Message => {
    if (message.role === 'tool') {
      const shown = message.media?.filter(sees) ?? []
      return shown.length === (message.media?.length ?? 0) ? message : withMedia(message, shown, UNSEEN)
    }
    if (message.role === 'assistant' || message.content.every(sees)) return message
    return { ...message, content: [...message.content.filter(sees), { type: 'text', text: UNSEEN }] }
  })
}

const UNSEEN = '[Something was shown here that you can’t be shown.]'

/** A tool's result with so much of what it showed; its text says what is missing. */
export function withMedia(
  { media: all, ...message }: ToolMessage,
  shown: readonly MediaPart[],
  note = `[${shown.length === 0 ? 'It is not' : 'Not all of it is'} shown here any more, to make room. Read it again, or in smaller parts, to see it.]`,
): ToolMessage {
  return { ...message, output: `${message.output}\n${note}`, ...(shown.length > 0 && { media: shown }) }
}
