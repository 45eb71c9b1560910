/** The messages before the first model call: the earlier conversation and the instruction. */
import { type Entry, earlierNeeded } from '../../domain/context.ts'
import type { Interaction, RunSpec } from '../../domain/interaction.ts'
import { partialMessage, userText } from '../../domain/message.ts'
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
  readonly entries: readonly Entry[]
  /** Part of the earlier conversation was deleted. */
  readonly historyCut: boolean
}

/**
 * The conversation at this run's next call: earlier interactions, oldest first, then this instruction, then `own`, what this
 * run has so far. `note`: what is added to the instruction. `sees`: the modalities of this run's model; earlier runs may have
 * used another one.
 */
export async function openingEntries(
  stores: MediaStores,
  spec: RunSpec,
  note: string,
  own: readonly Entry[],
  sees: Modalities,
): Promise<Opening> {
  const current = [instructionEntry(spec, note), ...own]
  const history = await readHistory(stores, spec.previousInteractionId, earlierNeeded(current), sees)
  return { ...history, entries: [...history.entries, ...current] }
}

function instructionEntry({ instruction }: RunSpec, note: string): Entry {
  return { edit: 'instruction', message: userText(instruction + note) }
}

/** The instruction of an earlier interaction as its model got it. */
async function readInstruction(db: Database, { id, spec }: Pick<Interaction, 'id' | 'spec'>): Promise<Entry> {
  const frame = mayUseTools(spec) ? await readFrame(db, id) : undefined
  return instructionEntry(spec, frame?.note ?? fileList(spec))
}

/** Reads newest first, until an interaction that was compacted: its summary covers the ones before it. */
async function readHistory(
  stores: MediaStores,
  previousId: string | undefined,
  neededMessages: number,
  sees: Modalities,
): Promise<Opening> {
  const { db } = stores
  const chain: Entry[][] = []
  let id = previousId
  let needed = neededMessages
  // No more than a request may contain. The view decides which of them are shown.
  let parts = 0
  const shown = async (of: string): Promise<ShownMedia> => {
    if (parts >= MAX_MEDIA_PARTS) return forgottenMedia(db, of)
    const media = await readMedia(stores, of, sees)
    for (const each of media.values()) parts += each.length
    return media
  }
  while (id !== undefined && needed > 0 && chain.length < MAX_HISTORY) {
    const previous = await findInteraction(db, id)
    if (!previous) break
    const entries = [await readInstruction(db, previous), ...(await readConversation(db, id, await shown(id)))]
    chain.push(entries)
    needed = earlierNeeded(entries, needed)
    id = previous.spec.previousInteractionId
  }
  return { entries: chain.reverse().flat(), historyCut: id !== undefined && needed > 0 }
}

/** The conversation of an ended interaction. An open tool call gets a result: providers refuse calls without one. */
async function readConversation(db: Database, id: string, shown: ShownMedia): Promise<Entry[]> {
  const restored = restore(await readTurns(db, id), await readEvents(db, id, 0, ALL_EVENTS), shown)
  const { entries, openBatch, unfinished } = restored
  const results = (openBatch?.calls ?? []).map(
    ({ call: { callId, name }, result }) => result ?? ({ role: 'tool', callId, name, output: NOT_RUN } as const),
  )
  const partial = unfinished === '' ? [] : [partialMessage(unfinished)]
  return [...entries.map(ofAnotherRun), ...results, ...partial]
}

/** Its steps and files are not this run's. */
function ofAnotherRun(entry: Entry): Entry {
  if ('edit' in entry || entry.role !== 'tool') return entry
  const { step: _step, file: _file, ...message } = entry
  return message
}

const NOT_RUN = 'The run ended before this call had a result.'
