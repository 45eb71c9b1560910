/** Where a question names columns of a table, exactly or nearly. */
import type { Column } from './task.ts'
import { alike, canonical, isStopWord, type Token, wordsOfName } from './words.ts'

export interface Mention {
  /** The columns that may be meant: more than one where a single word of their names was given. */
  readonly columns: readonly Column[]
  /** Tokens `from` up to, not including, `to`. */
  readonly from: number
  readonly to: number
  /** Whether the whole name was given. */
  readonly whole: boolean
}

/** Words that people use for the columns of an access log. */
const ALIASES: Readonly<Record<string, readonly string[]>> = {
  ip: ['address', 'client', 'visitor', 'host'],
  path: ['url', 'page', 'endpoint', 'uri', 'resource', 'route'],
  bytes: ['traffic', 'size', 'bandwidth'],
  status: ['code'],
  time: ['date'],
}

/** Words that say what to do; alone they name no column unless one is called just so. */
const VERBS = new Set(
  `mean avg sum total min max median std deviation standard count unique distinct different highest lowest largest
  smallest greatest most least fewest top bottom best worst common frequent many number plot chart graph draw
  statistic stat summary describe summarize histogram correlation year month week day hour weekday time`.split(/\s+/),
)

export function isVerb(word: string): boolean {
  return VERBS.has(word)
}

/** In the order of the question; none overlaps another. */
export function findMentions(tokens: readonly Token[], columns: readonly Column[]): Mention[] {
  const found: Mention[] = []
  const taken = tokens.map(() => false)
  const take = (mention: Mention) => {
    found.push(mention)
    taken.fill(true, mention.from, mention.to)
  }
  const whole = columns.flatMap((column) => wholeMentions(tokens, column)).sort((a, b) => b.score - a.score)
  for (const mention of whole) {
    if (!taken.slice(mention.from, mention.to).includes(true)) take(mention)
  }
  tokens.forEach((token, at) => {
    if (
      taken[at] ||
      token.quoted ||
      isStopWord(token.raw.toLowerCase()) ||
      isVerb(token.word) ||
      /^\d/.test(token.word)
    )
      return
    let meant = columnsNamed(columns, token)
    if (meant.length === 0) return
    // A second word narrows it down: `flipper length` is not `beak length`.
    let to = at + 1
    for (let next = tokens[to]; next && !taken[to]; next = tokens[to]) {
      const narrowed = columnsNamed(meant, next)
      if (narrowed.length === 0) break
      meant = narrowed
      to++
    }
    take({ columns: meant, from: at, to, whole: false })
  })
  return found.sort((a, b) => a.from - b.from)
}

function columnsNamed(columns: readonly Column[], token: Token): Column[] {
  return columns.filter((column) => !isKey(column) && namesOf(column).some((word) => alike(word, token.word)))
}

/** `orders` are rows, not the sum of order_id: a key is meant only where it is named in full. */
function isKey(column: Column): boolean {
  const words = wordsOfName(column.name)
  return words.length > 1 && /^(id|key|uuid|nr|no)$/.test(words.at(-1)!)
}

function namesOf(column: Column): string[] {
  const words = wordsOfName(column.name)
  return words.length === 1
    ? [...words, ...(ALIASES[words[0]!] ?? [])]
    : words.filter((word) => !isVerb(word) || words.length === 1)
}

/** Windows that hold every word of the name; in the name's own order is better. */
function wholeMentions(tokens: readonly Token[], column: Column): (Mention & { readonly score: number })[] {
  const words = wordsOfName(column.name)
  const found: (Mention & { readonly score: number })[] = []
  if (words.length === 0) return found
  for (let from = 0; from + words.length <= tokens.length; from++) {
    const window = tokens.slice(from, from + words.length)
    const ordered = words.every((word, i) => window[i]!.word === word || canonical(window[i]!.raw) === word)
    if (!ordered && !sameWords(window, words)) continue
    found.push({
      columns: [column],
      from,
      to: from + words.length,
      whole: true,
      score: words.length * 10 + (ordered ? 5 : 0),
    })
  }
  return found
}

function sameWords(window: readonly Token[], words: readonly string[]): boolean {
  const left = [...words]
  for (const token of window) {
    const at = left.findIndex((word) => alike(word, token.word))
    if (at === -1) return false
    left.splice(at, 1)
  }
  return true
}
