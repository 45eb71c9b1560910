/** Words of a question that should have meant something and were not understood: said in the answer, never passed over. */
import { isVerb } from './columns.ts'
import { mentionAt, type Reading, rawAt } from './reading.ts'
import { isStopWord } from './words.ts'

/** Words that narrow nothing down. */
const PLAIN =
  /^(total|all|order|descending|ascending|detail|general|celsius|fahrenheit|percent|degrees?|mm|cm|km|kmh|mph|usd|dollars?|euros?|python|csv|dataset|data|files?|rows?|records?|result|results|output|days?|weeks?|months?|years?|dates?|hours?|minutes?|average|addition|particular|bars?|svg|png|line|lines|it|them|type|types|kind|value|values|observations?|requests?|entries|measurements?|everything|place|each|respectively|once|please)$/

export interface Unread {
  readonly word: string
  /** It stands behind `by`, where a column was meant. */
  readonly group: boolean
}

/** Quoted words, and words behind `in`, `for`, `where` and the like. */
export function unreadWords(reading: Reading): Unread[] {
  return reading.tokens.flatMap((token, at): Unread[] => {
    const raw = token.raw.toLowerCase()
    if (reading.used[at] || mentionAt(reading, at) || PLAIN.test(raw)) return []
    if (token.quoted) return [{ word: token.raw, group: false }]
    if (isStopWord(raw) || isVerb(token.word) || /^\d/.test(raw) || raw.endsWith('est')) return []
    const before =
      [at - 1, at - 2].map((i) => rawAt(reading, i)).find((word) => !/^(the|a|an|each|every|this|that)$/.test(word)) ??
      ''
    if (/^(by|per)$/.test(before) || /^(each|every)$/.test(rawAt(reading, at - 1)))
      return [{ word: token.raw, group: true }]
    return /^(in|for|where|from|at|on|with|not|except|excluding|only)$/.test(before)
      ? [{ word: token.raw, group: false }]
      : []
  })
}
