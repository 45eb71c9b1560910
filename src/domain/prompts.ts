/** What Errand itself says to a model in the course of a run. Each is stored with the turn that answers it. */
import { type UserMessage, userText } from './message.ts'

/** The whole text of a continuation that has nothing to add. */
export const NOTHING_LEFT = '[end of answer]'

/** After a call that broke off when part of the answer was shown. */
export const CONTINUE = userText(
  'The connection broke while you were writing your last message; the reader has everything up to its last character. ' +
    'Continue exactly there: begin with the next character, repeat nothing, and do not mention the interruption. ' +
    `If that message was already complete, reply with ${NOTHING_LEFT} alone.`,
)

/** To a model that has room for one more reply. */
export const LAST_TURN = userText(
  'This run is about to reach one of its limits. Reply now with your answer from what you have: what is done, what is ' +
    'missing, and where the results are. Tool calls in your reply are not run.',
)

/** To a model whose answer does not fit the response format. */
export function correction(problem: string): UserMessage {
  return userText(
    `That answer does not match the required JSON Schema: ${problem}\nAnswer again with the JSON value alone.`,
  )
}
