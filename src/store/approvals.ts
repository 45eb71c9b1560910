/**
 * Approval decisions on tool calls. Any node may receive a decision and stores it here. The worker that holds the run
 * reads it, and logs it before it acts on it.
 */
import type { Database } from './port.ts'

export interface Decision {
  /** The step of the tool call. */
  readonly step: number
  readonly approve: boolean
  /** Shown to the model. */
  readonly reason?: string
}

/** Stores decisions. The first decision on a step is final; later ones are ignored. Durable when it resolves. */
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
