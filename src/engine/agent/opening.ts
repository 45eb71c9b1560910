/** The messages before the first model call: the earlier conversation and the instruction. */
import type { Interaction, RunSpec } from '../../domain/interaction.ts'
import { type Message, partialMessage, type UserMessage, userText } from '../../domain/message.ts'
import { MAX_MEDIA_PARTS } from '../../domain/view.ts'
import { ALL_EVENTS, readEvents } from '../../store/events.ts'
import { readFrame } from '../../store/frames.ts'
import { findInteraction } from '../../store/interactions.ts'
import type { Database } from '../../store/port.ts'
import { readTurns } from '../../store/turns.ts'
import { forgottenMedia, type MediaStores, type Modalities, readMedia, type ShownMedia } from '../run/media.ts'
import { restore } from '../run/restore.ts'
import { fileList, mayUseTools } from './frame.ts'

/** Maximum number of earlier interactions in a conversation. */
const MAX_HISTORY = 50

export interface Opening {
  readonly messages: readonly Message[]
  /** Part of the earlier conversation was deleted. */
  readonly historyCut: boolean
}

/**
 * The conversation before the model's first turn: earlier interactions, oldest first, then this instruction. `sees`: the
 * modalities of this run's model; earlier runs may have used another one. `note`: what is added to the instruction.
 */
export async function openingMessages(
  stores: MediaStores,
  spec: RunSpec,
  note: string,
  sees: Modalities,
): Promise<Opening> {
  const history = await readHistory(stores, spec.previousInteractionId, sees)
  return { ...history, messages: [...history.messages, userText(spec.instruction + note)] }
}

/** The instruction of an earlier interaction as its model got it. */
async function readInstruction(db: Database, { id, spec }: Pick<Interaction, 'id' | 'spec'>): Promise<UserMessage> {
  const frame = mayUseTools(spec) ? await readFrame(db, id) : undefined
  return userText(spec.instruction + (frame?.note ?? fileList(spec)))
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
    chain.push([await readInstruction(db, previous), ...(await readConversation(db, id, await shown(id)))])
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
