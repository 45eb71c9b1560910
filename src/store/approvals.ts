/**
 * Decisions of people about tool calls that wait for one. Whoever hears the decision writes it here, on any node; the
 * worker that holds the run reads it, and tells it in the log before it acts on it.
 */
import type { Database } from './port.ts'

export interface Decision {
  /** Of the tool call. */
  readonly step: number
  readonly approve: boolean
  /** For the model. */
  readonly reason?: string
}

/** Stands once it is written: a second decision on a step changes nothing. Durable when it resolves. */
export async function insertDecisions(
  db: Database,
  interactionId: string,
  decisions: readonly (Decision & { readonly keyId: string; readonly at: number })[],
): Promise<void> {
  const rows = decisions.map(({ step, approve, reason, keyId, at }) => ({
    interaction_id: interactionId,
    step,
    approve: approve ? 1 : 0,
    reason: reason ?? null,
    key_id: keyId,
    at,
  }))
  const query = db.query
    .insertInto('approvals')
    .values(rows)
    .onConflict((conflict) => conflict.columns(['interaction_id', 'step']).doNothing())
    .compile()
  await db.write([{ query }])
}

export async function readDecisions(db: Database, interactionId: string): Promise<Decision[]> {
  const rows = await db.query
    .selectFrom('approvals')
    .select(['step', 'approve', 'reason'])
    .where('interaction_id', '=', interactionId)
    .orderBy('step')
    .execute()
  return rows.map(({ step, approve, reason }) => ({
    step: Number(step),
    approve: Number(approve) === 1,
    reason: reason ?? undefined,
  }))
}
