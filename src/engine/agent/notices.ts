/**
 * Notices to the model that a limit of its run is near, so that it can plan its last steps. One at 75 % and one at 90 % of
 * each limit. The event is stored before the model gets the message; both have the same figures.
 */
import type { Notice } from '../../domain/event.ts'
import type { UserMessage } from '../../domain/message.ts'
import { limitNotice } from '../../domain/prompts.ts'
import type { EngineDependencies } from '../dependencies.ts'
import type { Run } from '../run/run.ts'
import type { Conversation } from './conversation.ts'

export interface Notices {
  /** Sends the notices that are due. Resolves when they are durable. */
  send(): Promise<void>
  /** Sends notices of an earlier worker again: their message was not stored with a turn. */
  repeat(notices: readonly Notice[]): void
}

/** Shares of a limit that are left when a notice is due. */
const SHARES_LEFT = [0.25, 0.1]
/** Micro-dollars, so that `left` is an exact decimal. */
const MICROS = 1e6

type Measure = Notice & { readonly limit: number }

export function createNotices(
  { limits }: Pick<EngineDependencies, 'limits'>,
  run: Pick<Run, 'spec' | 'meter' | 'recorder' | 'remainingMs' | 'past'>,
  conversation: Pick<Conversation, 'ask' | 'unanswered'>,
): Notices {
  const { recorder, meter, past } = run
  const sent: Notice[] = [...past.restored.notices]
  let message: UserMessage | undefined

  function ask(notices: readonly Notice[]): void {
    message = limitNotice(notices)
    conversation.ask(message)
  }

  return {
    async send() {
      // A message for each turn, so that a resumed run sends the same message.
      if (meter.modelCalls() === 0 || (message && conversation.unanswered().includes(message))) return
      const due = measure(run, limits.maxModelCalls).filter((now) => {
        const before = sent.filter(({ kind }) => kind === now.kind).map(({ left }) => levelOf(left, now.limit))
        return levelOf(now.left, now.limit) > Math.max(0, ...before)
      })
      if (due.length === 0) return
      const notices = due.map(({ kind, left }) => ({ kind, left }))
      sent.push(...notices)
      for (const notice of notices) recorder.append({ type: 'notice', ...notice })
      ask(notices)
      await recorder.flush()
    },
    repeat(notices) {
      if (notices.length > 0) ask(notices)
    },
  }
}

/** The number of notices that are due when `left` of a limit is left. */
function levelOf(left: number, limit: number): number {
  return SHARES_LEFT.filter((share) => left <= limit * share).length
}

function measure(
  { spec, meter, remainingMs }: Pick<Run, 'spec' | 'meter' | 'remainingMs'>,
  maxModelCalls: number,
): Measure[] {
  const { maxTurnDuration, maxOutputTokens, maxCost } = spec.policy
  const cost = maxCost === undefined ? undefined : meter.cost()
  return [
    { kind: 'time', limit: maxTurnDuration, left: Math.floor(remainingMs() / 1_000) },
    { kind: 'tokens', limit: maxOutputTokens, left: Math.max(0, maxOutputTokens - meter.outputTokens()) },
    ...(cost === undefined ? [] : [dollars(maxCost!, Math.max(0, maxCost! - cost))]),
    { kind: 'calls', limit: maxModelCalls, left: maxModelCalls - meter.modelCalls() },
  ]
}

function dollars(limit: number, left: number): Measure {
  return { kind: 'cost', limit, left: Math.round(left * MICROS) / MICROS }
}
