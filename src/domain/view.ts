/**
 * The view of a conversation that a model gets: the messages without images and documents that it can't accept. Pure
 * functions of the messages, so the same log always gives the same request.
 */
import type { AssistantPart, MediaPart, Message, ToolMessage, UserPart } from './message.ts'

/** Most base64 characters in one request: providers accept 20 to 50 MB, and the text needs its share. */
const MAX_MEDIA_CHARACTERS = 16 * 1024 * 1024
/** Anthropic accepts 100 images a request, and above 20 only small ones. */
export const MAX_MEDIA_PARTS = 20

/**
 * The conversation with at most as much media as a provider accepts. When a result exceeds a limit, the oldest media are removed
 * until half of the limit is free, and their results say so. Half at once, because each removal changes the prefix that
 * the provider has cached. A result that exceeds a limit alone shows what fits.
 */
export function withinMedia(messages: readonly Message[]): readonly Message[] {
  const shown: { readonly message: ToolMessage; readonly characters: number; readonly parts: number }[] = []
  const cleared = new Set<Message>()
  let characters = 0
  let parts = 0
  for (const message of messages) {
    if (message.role !== 'tool' || !message.media?.length) continue
    const added = { message, characters: mediaCharacters(message.media), parts: message.media.length }
    shown.push(added)
    characters += added.characters
    parts += added.parts
    if (fits({ characters, parts })) continue
    while (shown.length > 1 && (characters > MAX_MEDIA_CHARACTERS / 2 || parts > MAX_MEDIA_PARTS / 2)) {
      const oldest = shown.shift()!
      cleared.add(oldest.message)
      characters -= oldest.characters
      parts -= oldest.parts
    }
  }
  if (cleared.size === 0 && (shown.length !== 1 || fits(shown[0]!))) return messages
  return messages.map((message) => {
    if (message.role !== 'tool' || !message.media) return message
    return cleared.has(message) ? withoutMedia(message) : withinLimits(message, message.media)
  })
}

function fits({ characters, parts }: { readonly characters: number; readonly parts: number }): boolean {
  return characters <= MAX_MEDIA_CHARACTERS && parts <= MAX_MEDIA_PARTS
}

function withinLimits(message: ToolMessage, media: readonly MediaPart[]): ToolMessage {
  let characters = 0
  const fitting = media.slice(0, MAX_MEDIA_PARTS).filter(({ base64 }) => {
    characters += base64.length
    return characters <= MAX_MEDIA_CHARACTERS
  })
  return fitting.length === media.length ? message : withMedia(message, fitting, NOT_ALL)
}

function mediaCharacters(media: readonly MediaPart[]): number {
  return media.reduce((sum, { base64 }) => sum + base64.length, 0)
}

/**
 * The conversation without the media that no model call has accepted yet: those of the results behind the last assistant
 * message. Undefined if there are none.
 */
export function withoutNewMedia(messages: readonly Message[]): readonly Message[] | undefined {
  const from = messages.findLastIndex((message) => message.role === 'assistant') + 1
  const isNew = (message: Message, i: number): message is ToolMessage =>
    i >= from && message.role === 'tool' && message.media !== undefined
  if (!messages.some(isNew)) return undefined
  return messages.map((message, i) => (isNew(message, i) ? withoutMedia(message, REFUSED) : message))
}

/** The conversation for a model that takes images or not, and PDFs or not. The text names what was left out. */
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

const UNSEEN = '[This model cannot be shown what was here.]'
const NOT_ALL = '[Not all of it is shown here, to make room. Read smaller parts to see the rest.]'
const TO_MAKE_ROOM = '[It is no longer shown here, to make room. Read it again to see it.]'
const REFUSED =
  "[The model's provider refused to show it. It may be damaged, or of a kind that the provider does not accept.]"

/** The result without its media, as one whose bytes are gone. */
export function withoutMedia(message: ToolMessage, note = TO_MAKE_ROOM): ToolMessage {
  return withMedia(message, [], note)
}

function withMedia({ media: _all, ...message }: ToolMessage, shown: readonly MediaPart[], note: string): ToolMessage {
  return { ...message, output: `${message.output}\n${note}`, ...(shown.length > 0 && { media: shown }) }
}
