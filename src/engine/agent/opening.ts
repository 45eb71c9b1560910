/** The input of the first model call: system instruction, environment, earlier conversation, instruction. */
import type { RunSpec } from '../../domain/interaction.ts'
import { type Message, partialMessage, userText } from '../../domain/message.ts'
import { describeNetwork } from '../../domain/network.ts'
import { MAX_MEDIA_PARTS } from '../../domain/view.ts'
import { ALL_EVENTS, readEvents } from '../../store/events.ts'
import { findInteraction } from '../../store/interactions.ts'
import type { Database } from '../../store/port.ts'
import { readTurns } from '../../store/turns.ts'
import { forgottenMedia, type MediaStores, type Modalities, readMedia, type ShownMedia } from '../run/media.ts'
import { restore } from '../run/restore.ts'

/** Maximum number of earlier interactions in a conversation. */
const MAX_HISTORY = 50

/** `about`: the introductions of the run's tools. */
export function systemPrompt(spec: RunSpec, inside: string, about: readonly string[]): string | undefined {
  const parts = [spec.systemInstruction, spec.tools.length > 0 ? surroundings(spec, inside) : undefined, ...about]
  return parts.filter((part) => part !== undefined && part !== '').join('\n\n') || undefined
}

function surroundings({ network }: RunSpec, inside: string): string {
  return [
    'You work in a temporary, isolated Linux sandbox that belongs to this task alone and is thrown away at its end.',
    `The working directory is /workspace. Inside: ${inside}. ${describeNetwork(network)}`,
    'Files that you write to /workspace/outputs/ are given to the caller.',
  ].join('\n')
}

function instructionText(spec: RunSpec): string {
  if (spec.inputFiles.length === 0) return spec.instruction
  const list = spec.inputFiles.map((file) => `- ${file.name} (${file.size.toLocaleString('en-US')} bytes)`)
  return `${spec.instruction}\n\nFiles in the working directory:\n${list.join('\n')}`
}

export interface Opening {
  readonly messages: readonly Message[]
  /** Part of the earlier conversation was deleted. */
  readonly historyCut: boolean
}

/**
 * The conversation before the model's first turn: earlier interactions, oldest first, then this instruction. `sees`: the
 * modalities of this run's model; earlier runs may have used another one.
 */
export async function openingMessages(stores: MediaStores, spec: RunSpec, sees: Modalities): Promise<Opening> {
  const history = await readHistory(stores, spec.previousInteractionId, sees)
  return { ...history, messages: [...history.messages, userText(instructionText(spec))] }
}

async function readHistory(stores: MediaStores, previousId: string | undefined, sees: Modalities): Promise<Opening> {
  const { db } = stores
  const chain: Message[][] = []
  let id = previousId
  // Newest first, and no more than a request may contain. The view decides which of them are shown.
  let parts = 0
  const shown = async (of: string): Promise<ShownMedia> => {
    if (parts >= MAX_MEDIA_PARTS) return forgottenMedia(db, of)
    const media = await readMedia(stores, of, sees)
    for (const each of media.values()) parts += each.length
    return media
  }
  while (id !== undefined && chain.length < MAX_HISTORY) {
    const previous = await findInteraction(db, id)
    if (!previous) return { messages: chain.reverse().flat(), historyCut: true }
    chain.push([userText(instructionText(previous.spec)), ...(await readConversation(db, id, await shown(id)))])
    id = previous.spec.previousInteractionId
  }
  return { messages: chain.reverse().flat(), historyCut: id !== undefined }
}

/** The messages of an ended interaction. An open tool call gets a result: providers refuse calls without one. */
async function readConversation(db: Database, id: string, shown: ShownMedia): Promise<Message[]> {
  const restored = restore(await readTurns(db, id), await readEvents(db, id, 0, ALL_EVENTS), shown)
  const { messages, openBatch, unfinished } = restored
  const results = (openBatch?.calls ?? []).map(
    ({ call: { callId, name }, result }) => result ?? ({ role: 'tool', callId, name, output: NOT_RUN } as const),
  )
  return [...messages, ...results, ...(unfinished === '' ? [] : [partialMessage(unfinished)])]
}

const NOT_RUN = 'The run ended before this call had a result.'
