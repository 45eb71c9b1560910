/** Media that tool results showed the model beside text. Rows only: the bytes are in the file store, with the interaction's files. */
import type { MediaPart } from '../domain/message.ts'
import type { Database, Statement } from './port.ts'

type WithoutBytes<P> = P extends MediaPart ? Omit<P, 'base64'> : never

/** A media part whose bytes are stored under `blob`. */
export type StoredMedia = WithoutBytes<MediaPart> & { readonly blob: string }

/** Must be part of the append that logs the result. */
export function insertResultMedia(
  db: Database,
  interactionId: string,
  step: number,
  media: readonly StoredMedia[],
): Statement {
  const values = { interaction_id: interactionId, step, media: JSON.stringify(media) }
  return { query: db.query.insertInto('result_media').values(values).compile() }
}

/** Media by the step of the result. */
export async function readResultMedia(db: Database, interactionId: string): Promise<Map<number, StoredMedia[]>> {
  const rows = await db.query
    .selectFrom('result_media')
    .select(['step', 'media'])
    .where('interaction_id', '=', interactionId)
    .orderBy('step')
    .execute()
  return new Map(rows.map((row) => [Number(row.step), JSON.parse(row.media) as StoredMedia[]]))
}
