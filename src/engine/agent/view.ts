/**
 * The request that a model gets, as a function of the conversation alone, and the digests that bind reasoning to it.
 *
 * Providers sign reasoning for the request that it answered, and some refuse it behind any other: behind other tools, another
 * system prompt, or an earlier message that was edited (an image that was cleared, a conversation that was cut). So each
 * turn keeps a digest of its request, and its reasoning is sent back only if everything before it is unchanged. One rule
 * covers every edit, whoever made it.
 */
import { createHash } from 'node:crypto'
import type { AssistantMessage, Message } from '../../domain/message.ts'
import { visibleTo, withinMedia } from '../../domain/view.ts'
import type { ModelDescription, ModelRequest } from '../../models/port.ts'

/** Everything of a request before its messages. */
export interface Frame extends Pick<ModelRequest, 'system' | 'tools' | 'responseFormat' | 'search'> {
  readonly entry: Pick<ModelDescription, 'provider' | 'model' | 'vision' | 'documents'>
}

export interface View {
  readonly messages: readonly Message[]
  /** Digest of the whole request: `answered` of the message that answers it. */
  readonly digest: string
}

/** The conversation as the model is shown it. */
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

/** Messages never change, so each is digested once: a request costs what it adds, not the whole conversation. */
const digests = new WeakMap<Message, string>()

function digestOfMessage(message: Message): string {
  const known = digests.get(message)
  if (known !== undefined) return known
  const digest = digestOf(message)
  digests.set(message, digest)
  return digest
}

function digestOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value, sortKeys)).digest('base64url')
}

/** A message that was stored and read again may have its keys in another order. */
function sortKeys(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
}
