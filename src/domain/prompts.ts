/** Errand's own messages to a model during a run. Each is stored with the turn that answers it. */
import type { Notice } from './event.ts'
import { type UserMessage, userText } from './message.ts'

/** The whole reply of a model that has nothing to add. */
export const NOTHING_LEFT = '[end of answer]'

/** Sent after a call that broke off when part of the answer was shown. */
export const CONTINUE = userText(
  'The connection broke while you were writing your last message; the reader has everything up to its last character. ' +
    'Continue exactly there: begin with the next character, repeat nothing, and do not mention the interruption. ' +
    `If that message was already complete, reply with ${NOTHING_LEFT} alone.`,
)

/** Sent after a reply without text and tool calls. */
export const REMINDER = userText(
  'Your last reply was empty. Reply with your answer. If the work is not done, continue it, or say what is missing.',
)

/** Sent when limits are near. */
export function limitNotice(notices: readonly Notice[]): UserMessage {
  const left = notices.map(({ kind, left }) => LEFT[kind](left)).join(', ')
  return userText(
    `What is left of this run's limits: ${left}. Plan your remaining steps so that you can answer in time.`,
  )
}

const LEFT: Readonly<Record<Notice['kind'], (left: number) => string>> = {
  time: (left) => `${left} s`,
  tokens: (left) => `${left} output tokens`,
  cost: (left) => `$${left}`,
  calls: (left) => `${left} model call${left === 1 ? '' : 's'}`,
}

/** Sent when the limits leave room for one more reply. */
export const LAST_TURN = userText(
  'This run is about to reach one of its limits. Reply now with your answer from what you have: what is done, what is ' +
    'missing, and where the results are. Tool calls in your reply are not run.',
)

/** Sent after an answer that does not match the response format. */
export function correction(problem: string): UserMessage {
  return userText(
    `That answer does not match the required JSON Schema: ${problem}\nAnswer again with the JSON value alone.`,
  )
}
