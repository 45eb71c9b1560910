/** A run's conversation with its model. Collects the messages that are stored with the next turn. */
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

export interface Conversation {
  messages(): readonly Message[]
  /** Adds the results of tool calls, in the order of the calls. */
  push(results: readonly Message[]): void
  /** Adds a message from Errand to the model. It is stored with the next turn. */
  ask(message: UserMessage): void
  /** Replaces the messages. Not stored: after a restart the same cause leads to the same edit. */
  edit(messages: readonly Message[]): void
  /** The messages from Errand that are not stored yet. */
  unanswered(): readonly UserMessage[]
  /**
   * Stores the call that the meter counted last, after the events so far. A `failed` call and an empty reply do not join the
   * messages.
   */
  take(turn: TakenTurn): void
}

export function createConversation(
  { db }: Pick<EngineDependencies, 'db'>,
  { claim, recorder, meter }: Pick<Run, 'claim' | 'recorder' | 'meter'>,
  start: readonly Message[],
): Conversation {
  let messages = [...start]
  let asked: UserMessage[] = []

  return {
    messages: () => messages,
    push(results) {
      for (const result of results) messages.push(result)
    },
    ask(message) {
      asked.push(message)
      messages.push(message)
    },
    edit(edited) {
      messages = [...edited]
    },
    unanswered: () => asked,
    take({ message, finish, model }) {
      const failed = finish === 'failed'
      const row = { asked: failed ? [] : asked, message, finish, model, tokens: meter.lastCall() }
      const cost = meter.lastCost()
      recorder.attach((atSeq) => insertTurnStatement(db, claim.id, { ...row, atSeq }, cost))
      if (failed) return
      asked = []
      if (!isSilent(message)) messages.push(message)
    },
  }
}
