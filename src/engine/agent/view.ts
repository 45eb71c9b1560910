/**
 * The model's request as a pure function of the conversation, and the digests that bind reasoning to it.
 *
 * Providers sign reasoning for the request that it answered. Some refuse it after any change: other tools, another system
 * prompt, or an edited earlier message (a removed image, a shortened conversation). So each turn stores a digest of its
 * request, and its reasoning is sent back only if everything before it is unchanged. This one rule covers every edit.
 */
import { createHash } from 'node:crypto'
import type { AssistantMessage, Message, ToolMessage } from '../../domain/message.ts'
import { visibleTo, withinMedia } from '../../domain/view.ts'
import type { ModelDescription } from '../../models/port.ts'
import type { RequestFrame } from './frame.ts'

/** Everything of a request before its messages. */
export interface Frame extends RequestFrame {
  readonly entry: Pick<ModelDescription, 'provider' | 'model' | 'vision' | 'documents'>
}

export interface View {
  readonly messages: readonly Message[]
  /** Digest of the whole request: `answered` of the message that answers it. */
  readonly digest: string
}

/** The messages that the model gets. */
export function viewOf(conversation: readonly Message[], { entry, ...frame }: Frame): View {
  let digest = digestOf([entry.provider, entry.model, frame])
  const messages = withinMedia(visibleTo(conversation, entry)).map((message) => {
    const shown = message.role === 'assistant' ? withValidReasoning(message, digest) : message
    digest = digestOf([digest, digestOfMessage(shown)])
    return shown
  })
  return { messages, digest }
}

function withValidReasoning(message: AssistantMessage, digest: string): AssistantMessage {
  if (message.answered === undefined || message.answered === digest) return message
  const content = message.content.filter((part) => part.type !== 'reasoning')
  return content.length === message.content.length ? message : { ...message, content }
}

/** Cached digests. Messages never change, so each is digested once, and a request costs only its new messages. */
const digests = new WeakMap<Message, string>()

function digestOfMessage(message: Message): string {
  const known = digests.get(message)
  if (known !== undefined) return known
  const digest = digestOf(message.role === 'tool' ? sentPart(message) : message)
  digests.set(message, digest)
  return digest
}

function sentPart({ step: _step, file: _file, ...sent }: ToolMessage): ToolMessage {
  return sent
}

function digestOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value, sortKeys)).digest('base64url')
}

/** Sorts keys: a message that was read from the database may have them in another order. */
function sortKeys(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
}
