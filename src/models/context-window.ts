/** Recognizes a refusal that says the prompt does not fit the model's context window, in the words of many providers. */
import type { Overflow } from './port.ts'
import { ERROR_DIALECTS } from './providers/registry.ts'

/** Tried last: the window without the prompt. */
const WINDOW_ALONE = /context (?:length|size|window)\D{1,20}(?<window>\d{1,9})/

const CODES = ERROR_DIALECTS.flatMap(({ overflowCodes }) => overflowCodes ?? [])
const MESSAGES = ERROR_DIALECTS.flatMap(({ overflow }) => overflow ?? [])
const TOKENS = [...ERROR_DIALECTS.flatMap(({ overflowTokens }) => overflowTokens ?? []), WINDOW_ALONE]

/** Longer messages quote the request, which is not the provider's own wording. */
export const MAX_ERROR_CHARACTERS = 1_000

/** Undefined if the refusal is about something else. */
export function readOverflow({
  message = '',
  code = '',
}: {
  readonly message?: string
  readonly code?: string
}): Overflow | undefined {
  const text = message.slice(0, MAX_ERROR_CHARACTERS)
  if (!CODES.some((codes) => codes.test(code)) && !MESSAGES.some((messages) => messages.test(text))) return undefined
  const plain = text.replace(/(\d),(?=\d{3})/g, '$1')
  const { prompt, window } = TOKENS.map((tokens) => tokens.exec(plain)?.groups).find(Boolean) ?? {}
  return { ...(prompt && { prompt: Number(prompt) }), ...(window && { window: Number(window) }) }
}
