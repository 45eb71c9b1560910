/** A verdict on tool calls that wait, on the wire. */
import { z } from 'zod'
import type { Verdict } from '../../engine/agent/approval.ts'
import { check, wrongField } from '../request/fields.ts'

const MAX_REASON_CHARS = 2_000
const MAX_DECISIONS = 100

const step = z.int().min(1).meta({ description: 'The `step` of the tool call, as `pendingApprovals` has it.' })
const approve = z.boolean().meta({ description: '`false` denies the call; the model is told, and the run goes on.' })
const reason = z
  .string()
  .max(MAX_REASON_CHARS)
  .regex(/^[^\u0000]*$/, { error: 'must not contain a NUL character' })
  .refine((text) => text.isWellFormed(), { error: 'is not Unicode (a lone surrogate)' })
  .nullish()
  .meta({ description: 'For the model, where the call is denied.' })

const decisions = z.array(z.object({ step, approve, reason })).min(1).max(MAX_DECISIONS)

/** What is absent is everything that waits, approved. */
export const approval = z
  .object({
    step: step.nullish(),
    approve: approve.nullish(),
    reason,
    decisions: decisions.nullish().meta({ description: 'Several at once, instead of `step`, `approve` and `reason`.' }),
  })
  .meta({
    title: 'Approval',
    description: 'Nothing, or `{}`: all that waits is approved.',
    examples: [{ step: 3, approve: false, reason: 'Ask me about deletions first.' }],
  })

export function decodeApproval(body: unknown): Verdict {
  if (body === undefined || body === null) return { all: { approve: true } }
  const sent = check(approval, body)
  if (sent.decisions) {
    if (sent.step || sent.approve !== undefined)
      throw wrongField('decisions', 'stands alone, without `step` and `approve`')
    const steps = sent.decisions.map((decision) => decision.step)
    const twice = steps.findIndex((each, i) => steps.indexOf(each) !== i)
    if (twice >= 0) throw wrongField(`decisions[${twice}].step`, 'is decided twice')
    return { decisions: sent.decisions.map((each) => ({ ...each, reason: each.reason ?? undefined })) }
  }
  const decision = { approve: sent.approve ?? true, reason: sent.reason ?? undefined }
  return typeof sent.step === 'number' ? { decisions: [{ step: sent.step, ...decision }] } : { all: decision }
}
