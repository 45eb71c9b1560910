/**
 * Images and documents that tool results showed the model. The log holds text alone, so their bytes go into the file
 * store under the interaction, with a record that is written with the result's event: a run that is taken up shows them
 * again, and they go with the interaction.
 */
import { randomBase62 } from '../../domain/ids.ts'
import type { MediaPart } from '../../domain/message.ts'
import type { ModelDescription } from '../../models/port.ts'
import type { Database } from '../../store/port.ts'
import { insertResultMedia, readResultMedia, type StoredMedia } from '../../store/result-media.ts'
import type { EngineDependencies } from '../dependencies.ts'
import type { Attachment } from './recorder.ts'

export type MediaStores = Pick<EngineDependencies, 'db' | 'blobs' | 'log'>

/** What may be put before a model. */
export type Modalities = Pick<ModelDescription, 'vision' | 'documents'>

/** By the step of the result that showed them. */
export type ShownMedia = ReadonlyMap<number, readonly MediaPart[]>

/** Undefined where they could not be kept: the run goes on with what it has in memory, only a take-over misses them. */
export async function keepMedia(
  { db, blobs, log }: MediaStores,
  interactionId: string,
  step: number,
  media: readonly MediaPart[],
): Promise<Attachment | undefined> {
  try {
    const stored: StoredMedia[] = []
    for (const { base64, ...part } of media) {
      const blob = `${interactionId}/shown/${randomBase62(12)}`
      await blobs.put(blob, Buffer.from(base64, 'base64'))
      stored.push({ ...part, blob })
    }
    return () => insertResultMedia(db, interactionId, step, stored)
  } catch (error) {
    log.warn({ err: error, interactionId, step }, 'what a tool result showed could not be kept')
    return undefined
  }
}

/** Of a conversation of long ago: that there was something. */
export async function forgottenMedia(db: Database, interactionId: string): Promise<ShownMedia> {
  return new Map([...(await readResultMedia(db, interactionId)).keys()].map((step) => [step, []]))
}

/** A part whose bytes are gone is left out, and one that the model can't be shown. */
export async function readMedia(
  { db, blobs }: MediaStores,
  interactionId: string,
  sees: Modalities = { vision: true, documents: true },
): Promise<ShownMedia> {
  const shown = new Map<number, readonly MediaPart[]>()
  for (const [step, stored] of await readResultMedia(db, interactionId)) {
    const parts: MediaPart[] = []
    for (const { blob, ...part } of stored) {
      if (!(part.type === 'image' ? sees.vision : sees.documents)) continue
      const bytes = await blobs.get(blob)
      if (bytes) parts.push({ ...part, base64: Buffer.from(bytes).toString('base64') })
    }
    shown.set(step, parts)
  }
  return shown
}
