/** The model calls of a run: each answer in full, so that the conversation can be rebuilt, and the tokens each call used. */
import { sql } from 'kysely'
import type { AssistantMessage, FinishReason, UserMessage } from '../domain/message.ts'
import type { TokenCount } from '../domain/usage.ts'
import { fixedQuery } from './fixed-query.ts'
import type { Database, Statement } from './port.ts'
import type { TurnsTable } from './tables.ts'

/**
 * Outcome of a model call. `failed`: the call failed but was billed; its message is empty and not part of the conversation.
 * `broken`: the stream broke after part of the answer was shown; the message is exactly that part, and the next turn
 * continues it. `summary`: the message is a summary of the conversation, not part of it. It is written with the event
 * `context_compacted`, which is at its `atSeq`.
 */
export type TurnFinish = FinishReason | 'failed' | 'broken' | 'summary'

export interface Turn {
  /** Messages that Errand itself sent the model before this turn: a correction, a request to continue, a notice. */
  readonly asked: readonly UserMessage[]
  readonly message: AssistantMessage
  readonly finish: TurnFinish
  readonly tokens: TokenCount
  /** The fallback model that was called. Undefined for the interaction's own model. */
  readonly model?: string
  /** Number of the last event when the turn was stored. The events of its tool calls come after it. */
  readonly atSeq: number
}

/** The database numbers the turns: a worker's own count could miss turns of another worker, or count turns that were not stored. */
const insertTurn = fixedQuery((db, row: Omit<TurnsTable, 'turn'>) =>
  db.query.insertInto('turns').values((eb) => ({
    interaction_id: row.interaction_id,
    turn: eb
      .selectFrom('turns')
      .select((s) => s(s.fn.coalesce(s.fn.max('turn'), sql.lit(0)), '+', sql.lit(1)).as('next'))
      .where('interaction_id', '=', row.interaction_id),
    asked: row.asked,
    message: row.message,
    finish: row.finish,
    tokens: row.tokens,
    at_seq: row.at_seq,
    model: row.model,
    cost_nanos: row.cost_nanos,
  })),
)

/** Adds the run's next turn. Must follow a fenced statement, in the write of the turn's events. `cost` is in US dollars. */
export function insertTurnStatement(db: Database, interactionId: string, turn: Turn, cost = 0): Statement {
  return {
    query: insertTurn(db, {
      interaction_id: interactionId,
      asked: turn.asked.length > 0 ? JSON.stringify(turn.asked) : null,
      message: JSON.stringify(turn.message),
      finish: turn.finish,
      tokens: JSON.stringify(turn.tokens),
      at_seq: turn.atSeq,
      model: turn.model ?? null,
      cost_nanos: Math.round(cost * 1e9),
    }),
    rows: 1,
  }
}

/** Token counts of each call, without the messages. */
export async function readTurnTokens(db: Database, interactionId: string): Promise<Pick<Turn, 'tokens' | 'model'>[]> {
  const rows = await db.query
    .selectFrom('turns')
    .select(['tokens', 'model'])
    .where('interaction_id', '=', interactionId)
    .orderBy('turn')
    .execute()
  return rows.map(({ tokens, model }) => ({
    tokens: JSON.parse(tokens) as TokenCount,
    ...(model !== null && { model }),
  }))
}

/** All turns, in the order of the calls. */
export async function readTurns(db: Database, interactionId: string): Promise<Turn[]> {
  const rows = await db.query
    .selectFrom('turns')
    .selectAll()
    .where('interaction_id', '=', interactionId)
    .orderBy('turn')
    .execute()
  return rows.map((row) => ({
    asked: row.asked === null ? [] : (JSON.parse(row.asked) as UserMessage[]),
    message: JSON.parse(row.message) as AssistantMessage,
    finish: row.finish as TurnFinish,
    tokens: JSON.parse(row.tokens) as TokenCount,
    atSeq: row.at_seq,
    ...(row.model !== null && { model: row.model }),
  }))
}
