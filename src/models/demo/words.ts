/** Words of an instruction, brought to forms that can be compared: case, plurals, synonyms, small slips. */

export interface Token {
  /** As written, without quotes. */
  readonly raw: string
  /** Lower case, singular, synonyms made one. */
  readonly word: string
  readonly quoted: boolean
}

const SYNONYMS: Readonly<Record<string, string>> = {
  temperature: 'temp',
  maximum: 'max',
  minimum: 'min',
  precipitation: 'precip',
  rainfall: 'precip',
  average: 'avg',
  quantity: 'qty',
  amount: 'amt',
  percentage: 'pct',
  percent: 'pct',
  latitude: 'lat',
  longitude: 'lon',
  lng: 'lon',
  windspeed: 'wind',
}

/** Words that name no column and no value by themselves. */
const STOP = new Set(
  `a an the of in on at to for from with and or by per each every is are was were be been do does did has have had
  what which who how many much there it its this that these those me my i you we please tell show give find compute
  calculate get all any file column field value number data table csv json log row record line entry where when whose
  than more less over under above below between not no if then also now about type kind grouped group into across list
  day days case out only as can could would will me us our their his her they them`.split(/\s+/),
)

export function isStopWord(word: string): boolean {
  return STOP.has(word)
}

/** Words, numbers, comparison signs and quoted strings, in order. `snake_case` and `camelCase` names fall into words. */
export function tokensOf(text: string): Token[] {
  const tokens: Token[] = []
  const pattern =
    /["“”`]([^"“”`\n]+)["“”`]|(?<![\w])'([^'\n]+)'|\d{4}-\d\d-\d\d|\d+(?:\.\d+){2,}|(?<![\w.])\/[\w./-]*\w|-?\d[\d,]*(?:\.\d+)?(?![\w])|[<>=!]=|[<>=]|[\p{L}\p{N}_]+(?:'[a-z]+)?/gu
  for (const match of text.matchAll(pattern)) {
    const quoted = match[1] ?? match[2]
    if (quoted !== undefined) tokens.push({ raw: quoted, word: quoted.toLowerCase(), quoted: true })
    else if (/^(-?\d|\/)/.test(match[0]) && !/^\d+\p{L}/u.test(match[0])) {
      const raw = match[0].replaceAll(',', '')
      tokens.push({ raw, word: raw, quoted: false })
    } else for (const raw of splitName(match[0])) tokens.push({ raw, word: canonical(raw), quoted: false })
  }
  return tokens
}

/** The words of a column's name. */
export function wordsOfName(name: string): string[] {
  return splitName(name).map(canonical)
}

function splitName(name: string): string[] {
  return name
    .replace(/'s$/, '')
    .replace(/(\p{Ll})(\p{Lu})/gu, '$1 $2')
    .split(/[^\p{L}\p{N}<>=!]+/u)
    .filter((part) => part !== '')
}

export function canonical(raw: string): string {
  const word = singular(raw.toLowerCase())
  return SYNONYMS[word] ?? word
}

export function singular(word: string): string {
  if (/^(ip|id|url)s$/.test(word)) return word.slice(0, -1)
  if (word.length < 4 || /(ss|us|is|news)$/.test(word)) return word
  if (word.endsWith('ies')) return `${word.slice(0, -3)}y`
  if (/(sh|ch|x|ss|ddress)es$/.test(word)) return word.slice(0, -2)
  return word.endsWith('s') ? word.slice(0, -1) : word
}

/** Equal, one the beginning of the other (from four letters), or one slip apart (from five). */
export function alike(a: string, b: string): boolean {
  if (a === b) return true
  const short = Math.min(a.length, b.length)
  if (short >= 4 && (a.startsWith(b) || b.startsWith(a))) return true
  return short >= 5 && oneSlipApart(a, b)
}

function oneSlipApart(a: string, b: string): boolean {
  if (Math.abs(a.length - b.length) > 1) return false
  let i = 0
  while (i < a.length && a[i] === b[i]) i++
  const restA = a.slice(i)
  const restB = b.slice(i)
  return (
    restA.slice(1) === restB.slice(1) ||
    restA.slice(1) === restB ||
    restA === restB.slice(1) ||
    (restA[0] === restB[1] && restA[1] === restB[0] && restA.slice(2) === restB.slice(2))
  )
}

/** Runs of one to three words, lower case: what a cell is compared with to see whether the question names it. */
export function phrasesOf(text: string): string[] {
  const words = text.toLowerCase().match(/\/?[\p{L}\p{N}][\p{L}\p{N}._'&/-]*[\p{L}\p{N}]|[\p{L}\p{N}]/gu) ?? []
  const phrases = new Set<string>()
  for (let i = 0; i < words.length; i++) {
    for (let length = 1; length <= 3 && i + length <= words.length; length++) {
      const run = words.slice(i, i + length)
      if (run.every((word) => STOP.has(word))) continue
      phrases.add(run.join(' '))
    }
  }
  for (const match of text.matchAll(/["“`']([^"“”`'\n]+)["”`']/g)) phrases.add(match[1]!.toLowerCase())
  return [...phrases].slice(0, 200)
}
