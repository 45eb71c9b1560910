/** Words of a question and of column names, in forms that can be compared. */

export interface Token {
  /** The word of the question, unchanged. */
  readonly raw: string
  /** Lower case, singular, one word for synonyms. */
  readonly word: string
}

const SYNONYMS: Readonly<Record<string, string>> = {
  temperature: 'temp',
  maximum: 'max',
  minimum: 'min',
  rainfall: 'precipitation',
  mean: 'average',
  avg: 'average',
  url: 'path',
  page: 'path',
}

/** Numbers, quoted words and other words, in order. Names like `temp_max` and `tempMax` are split. */
export function tokensOf(text: string): Token[] {
  const spaced = text.replace(/(\p{Ll})(\p{Lu})/gu, '$1 $2').replaceAll('_', ' ')
  return (spaced.match(/-?\d[\d.,:-]*\d|\d|[\p{L}\p{N}]+/gu) ?? []).map((raw) => ({ raw, word: canonical(raw) }))
}

export function canonical(raw: string): string {
  const word = singular(raw.toLowerCase())
  return SYNONYMS[word] ?? word
}

function singular(word: string): string {
  if (word === 'ips') return 'ip'
  if (word.length < 4 || /(ss|us|is)$/.test(word)) return word
  if (word.endsWith('ies')) return `${word.slice(0, -3)}y`
  if (/(sh|ch|x|ss)es$/.test(word)) return word.slice(0, -2)
  return word.endsWith('s') ? word.slice(0, -1) : word
}
