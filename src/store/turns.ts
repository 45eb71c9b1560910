/** The turns of a run: what the model said, in full, so that the conversation can be rebuilt. */
import type { AssistantMessage, FinishReason } from '../domain/message.ts'
import type { TokenCount } from '../domain/usage.ts'
import { fixedQuery } from './fixed-query.ts'
import type { Database, Statement } from './port.ts'
import type { TurnsTable } from './tables.ts'

export interface Turn {
  /** From 1. */
  readonly turn: number
  readonly message: AssistantMessage
  readonly finish: FinishReason
  readonly tokens: TokenCount
  /** The fallback that said it; undefined: the interaction's own model. */
  readonly model?: string
  /** The number of the log's last event when the turn was written: its tool calls stand behind it. */
  readonly atSeq: number
}

const insertTurn = fixedQuery((db, row: TurnsTable) =>
  db.query.insertInto('turns').values({
    interaction_id: row.interaction_id,
    turn: row.turn,
    message: row.message,
    finish: row.finish,
    tokens: row.tokens,
    at_seq: row.at_seq,
    model: row.model,
    cost_nanos: row.cost_nanos,
  }),
)

/** Goes with the append that tells the turn's events. `cost`: US dollars. */
export function insertTurnStatement(db: Database, interactionId: string, turn: Turn, cost = 0): Statement {
  return {
    query: insertTurn(db, {
      interaction_id: interactionId,
      turn: turn.turn,
      message: JSON.stringify(turn.message),
      finish: turn.finish,
      tokens: JSON.stringify(turn.tokens),
      at_seq: turn.atSeq,
      model: turn.model ?? null,
      cost_nanos: Math.round(cost * 1e9),
    }),
  }
}

export async function readTurns(db: Database, interactionId: string): Promise<Turn[]> {
  const rows = await db.query
    .selectFrom('turns')
    .selectAll()
    .where('interaction_id', '=', interactionId)
    .orderBy('turn')
    .execute()
  return rows.map((row) => ({
    turn: row.turn,
    message: JSON.parse(row.message) as AssistantMessage,
    finish: row.finish as FinishReason,
    tokens: JSON.parse(row.tokens) as TokenCount,
    atSeq: row.at_seq,
    ...(row.model !== null && { model: row.model }),
  }))
}
