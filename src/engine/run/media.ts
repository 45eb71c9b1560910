/**
 * Images and documents in tool results. The log contains only text, so the blob store keeps their bytes, with a record that
 * is written together with the result's event. A resumed run shows them again. They are removed with the interaction.
 */
import { randomBase62 } from '../../domain/ids.ts'
import type { MediaPart } from '../../domain/message.ts'
import type { ModelDescription } from '../../models/port.ts'
import type { Database } from '../../store/port.ts'
import { insertResultMedia, readResultMedia, type StoredMedia } from '../../store/result-media.ts'
import type { EngineDependencies } from '../dependencies.ts'
import type { Attachment } from './recorder.ts'

export type MediaStores = Pick<EngineDependencies, 'db' | 'blobs' | 'log'>

/** The media that a model accepts. */
export type Modalities = Pick<ModelDescription, 'vision' | 'documents'>

/** Media by the step of their tool result. */
export type ShownMedia = ReadonlyMap<number, readonly MediaPart[]>

/**
 * Stores media. The returned function makes their record for the step of their result. Undefined if that failed: the run
 * continues with the media in memory, but a resumed run lacks them.
 */
export async function keepMedia(
  { db, blobs, log }: MediaStores,
  interactionId: string,
  media: readonly MediaPart[],
): Promise<((step: number) => Attachment) | undefined> {
  try {
    const stored: StoredMedia[] = []
    for (const { base64, ...part } of media) {
      const blob = `${interactionId}/shown/${randomBase62(12)}`
      await blobs.put(blob, Buffer.from(base64, 'base64'))
      stored.push({ ...part, blob })
    }
    return (step) => () => insertResultMedia(db, interactionId, step, stored)
  } catch (error) {
    log.warn({ err: error, interactionId }, 'could not store images or documents of a tool result')
    return undefined
  }
}

/** Empty lists for an old interaction: they mark results whose media are not shown any more. */
export async function forgottenMedia(db: Database, interactionId: string): Promise<ShownMedia> {
  return new Map([...(await readResultMedia(db, interactionId)).keys()].map((step) => [step, []]))
}

/** Leaves out parts whose bytes are gone, and parts that the model does not accept. */
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
