/** Approvals of pending tool calls in revision 2026-05-20: request schema and decoding. */
import { z } from 'zod'
import type { Verdict } from '../../../engine/agent/approval.ts'
import { check, wrongField } from '../../request/fields.ts'

const MAX_REASON_CHARS = 2_000
const MAX_DECISIONS = 100

const step = z.int().min(1).meta({ description: 'The `step` of the tool call, from `pendingApprovals`.' })
const approve = z
  .boolean()
  .meta({ description: '`false` denies the call. The model sees that, and the run continues.' })
const reason = z
  .string()
  .max(MAX_REASON_CHARS)
  .regex(/^[^\u0000]*$/, { error: 'must not contain a NUL character' })
  .refine((text) => text.isWellFormed(), { error: 'is not Unicode (a lone surrogate)' })
  .nullish()
  .meta({ description: 'Why the call is denied. The model sees it.' })

const decisions = z.array(z.object({ step, approve, reason })).min(1).max(MAX_DECISIONS)

/** An empty body approves all pending calls. */
export const approval = z
  .object({
    step: step.nullish(),
    approve: approve.nullish(),
    reason,
    decisions: decisions
      .nullish()
      .meta({ description: 'Several decisions, instead of `step`, `approve` and `reason`.' }),
  })
  .meta({
    title: 'Approval',
    description: 'A decision on pending tool calls. An empty object approves all of them.',
    examples: [{ step: 3, approve: false, reason: 'Ask me about deletions first.' }],
  })

export function decodeApproval(body: unknown): Verdict {
  if (body === undefined || body === null) return { all: { approve: true } }
  const sent = check(approval, body)
  if (sent.decisions) {
    if (sent.step || sent.approve !== undefined)
      throw wrongField('decisions', 'can’t be combined with `step` or `approve`')
    const steps = sent.decisions.map((decision) => decision.step)
    const twice = steps.findIndex((each, i) => steps.indexOf(each) !== i)
    if (twice >= 0) throw wrongField(`decisions[${twice}].step`, 'is listed twice')
    return { decisions: sent.decisions.map((each) => ({ ...each, reason: each.reason ?? undefined })) }
  }
  const decision = { approve: sent.approve ?? true, reason: sent.reason ?? undefined }
  return typeof sent.step === 'number' ? { decisions: [{ step: sent.step, ...decision }] } : { all: decision }
}
