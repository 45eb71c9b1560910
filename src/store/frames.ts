/** The frames of a run: what its model requests begin with, as it was sent. A run without tools has none. */
import type { JsonSchema } from '../domain/interaction.ts'
import { fixedQuery } from './fixed-query.ts'
import type { Database, Statement } from './port.ts'
import type { FramesTable } from './tables.ts'

export interface StoredFrame {
  /** Text after the system instruction. */
  readonly prompt: string
  /** Text after the instruction. */
  readonly note: string
  /** The tool definitions, in the order in which they are sent. */
  readonly tools: readonly {
    readonly name: string
    readonly description: string
    readonly parameters: JsonSchema
  }[]
}

const insertFrame = fixedQuery((db, row: FramesTable) =>
  db.query.insertInto('frames').values({ interaction_id: row.interaction_id, at_seq: row.at_seq, frame: row.frame }),
)

/** Adds a frame, which applies until the next one. Must follow a fenced statement. `atSeq`: number of the last event before it. */
export function insertFrameStatement(
  db: Database,
  interactionId: string,
  atSeq: number,
  frame: StoredFrame,
): Statement {
  const row = { interaction_id: interactionId, at_seq: atSeq, frame: JSON.stringify(frame) }
  return { query: insertFrame(db, row), rows: 1 }
}

/** The newest frame. Undefined if the run has none. */
export async function readFrame(db: Database, interactionId: string): Promise<StoredFrame | undefined> {
  const row = await db.query
    .selectFrom('frames')
    .select('frame')
    .where('interaction_id', '=', interactionId)
    .orderBy('at_seq', 'desc')
    .limit(1)
    .executeTakeFirst()
  return row && (JSON.parse(row.frame) as StoredFrame)
}
