/** A run's conversation with its model. Collects the messages that are stored with the next turn. */
import { type ContextEdit, type Entry, type FoldedContext, foldContext } from '../../domain/context.ts'
import type { RunEvent } from '../../domain/event.ts'
import { type AssistantMessage, isSilent, type Message, type UserMessage } from '../../domain/message.ts'
import { insertTurnStatement, type TurnFinish } from '../../store/turns.ts'
import type { EngineDependencies } from '../dependencies.ts'
import type { Run } from '../run/run.ts'

/** A model call in its stored form. */
export interface TakenTurn {
  readonly message: AssistantMessage
  readonly finish: TurnFinish
  /** The fallback that was called; undefined: the interaction's own model. */
  readonly model: string | undefined
}

/** The event that records an edit. */
export type ContextEvent = Extract<RunEvent, { type: 'context_cleared' | 'context_compacted' }>

export interface Conversation extends Pick<FoldedContext, 'characters' | 'measured'> {
  /** The messages that the model gets. */
  messages(): readonly Message[]
  /** Number of messages at the end that are stored with the next turn. Edits do not change them. */
  unstored(): number
  /** Adds the results of tool calls, in the order of the calls. */
  push(results: readonly Message[]): void
  /** Adds a message from Errand to the model. It is stored with the next turn. */
  ask(message: UserMessage): void
  /** The messages from Errand that are not stored yet. */
  unanswered(): readonly UserMessage[]
  /** The messages after an edit that is not made. */
  preview(edit: ContextEdit): readonly Message[]
  /** Records an edit, in one transaction with the call that wrote its summary, and makes it. */
  edit(edit: ContextEdit, event: ContextEvent, summary?: TakenTurn): void
  /**
   * Stores the call that the meter counted last, after the events so far. A `failed` call and an empty reply do not join the
   * messages.
   */
  take(turn: TakenTurn): void
}

export function createConversation(
  { db }: Pick<EngineDependencies, 'db'>,
  { claim, recorder, meter }: Pick<Run, 'claim' | 'recorder' | 'meter'>,
  start: readonly Entry[],
): Conversation {
  const context = foldContext(start)
  let asked: UserMessage[] = []

  function store(turn: TakenTurn, withAsked: readonly UserMessage[]): void {
    const row = { ...turn, asked: withAsked, tokens: meter.lastCall() }
    const cost = meter.lastCost()
    recorder.attach((atSeq) => insertTurnStatement(db, claim.id, { ...row, atSeq }, cost))
  }

  return {
    ...context,
    unstored: () => asked.length,
    push(results) {
      for (const result of results) context.add(result)
    },
    ask(message) {
      asked.push(message)
      context.add(message)
    },
    preview: (edit) => context.preview(edit, asked.length),
    edit(edit, event, summary) {
      recorder.append(event)
      if (summary) store(summary, [])
      context.edit(edit, asked.length)
    },
    unanswered: () => asked,
    take(turn) {
      const failed = turn.finish === 'failed'
      store(turn, failed ? [] : asked)
      if (failed) return
      asked = []
      const { input, output } = meter.lastCall()
      if (!isSilent(turn.message)) context.add(turn.message)
      context.add({ edit: 'measured', tokens: input + output })
    },
  }
}
