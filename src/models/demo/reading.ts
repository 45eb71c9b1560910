/** A question being read: its words, the columns it names, and which words have been made sense of already. */
import { findMentions, type Mention } from './columns.ts'
import type { Column, DatePart, Group, Profile } from './task.ts'
import { type Token, tokensOf } from './words.ts'

export interface Reading {
  readonly profile: Profile
  readonly tokens: readonly Token[]
  readonly mentions: readonly Mention[]
  /** Words that belong to a filter, a group or a rank, and must not be read again. */
  readonly used: boolean[]
  /** Mentions that name a filter's or a group's column, not what to compute. */
  readonly spent: Set<Mention>
  readonly assumed: string[]
}

export function readQuestion(text: string, profile: Profile): Reading {
  const tokens = tokensOf(text)
  return {
    profile,
    tokens,
    mentions: findMentions(tokens, profile.columns),
    used: tokens.map(() => false),
    spent: new Set(),
    assumed: [],
  }
}

export function wordAt(reading: Reading, at: number): string {
  return reading.tokens[at]?.word ?? ''
}

export function rawAt(reading: Reading, at: number): string {
  return reading.tokens[at]?.raw.toLowerCase() ?? ''
}

export function use(reading: Reading, from: number, to: number): void {
  reading.used.fill(true, from, to)
}

export function mentionAt(reading: Reading, at: number): Mention | undefined {
  return reading.mentions.find((mention) => mention.from <= at && at < mention.to)
}

export function spend(reading: Reading, mention: Mention): void {
  reading.spent.add(mention)
  use(reading, mention.from, mention.to)
}

/** The first date column. */
export function dateColumn(profile: Profile): Column | undefined {
  return profile.columns.find((column) => column.type === 'date')
}

const PARTS: Readonly<Record<string, DatePart>> = {
  year: 'year',
  month: 'month',
  weekday: 'weekday',
  day: 'day',
  date: 'day',
  hour: 'hour',
  yearly: 'year',
  annual: 'year',
  monthly: 'month',
  daily: 'day',
  hourly: 'hour',
}

/**
 * A group that begins at word `at`: a column, or a part of the date column. `length` is how many words it takes. The
 * words are not marked as used: what looks like a group may turn out to be something else.
 */
export function groupAt(reading: Reading, at: number): { readonly group: Group; readonly length: number } | undefined {
  const mention = mentionAt(reading, at)
  const date = dateColumn(reading.profile)
  const part = PARTS[wordAt(reading, at)]
  if (mention?.whole && mention.from === at && mention.columns[0]!.type !== 'date') {
    return { group: { column: mention.columns[0]!.name, part: undefined }, length: mention.to - at }
  }
  if (part && date) {
    if (part === 'day' && /^(of|in)$/.test(rawAt(reading, at + 1)) && rawAt(reading, at + 2).startsWith('week')) {
      return { group: { column: date.name, part: 'weekday' }, length: rawAt(reading, at + 1) === 'of' ? 3 : 1 }
    }
    const other = wordAt(reading, at + 2)
    if (rawAt(reading, at + 1) === 'and' && [part, other].sort().join() === 'month,year') {
      return { group: { column: date.name, part: 'year_month' }, length: 3 }
    }
    return { group: { column: date.name, part }, length: 1 }
  }
  const behind = mention && PARTS[wordAt(reading, mention.to)]
  if (behind && mention.columns[0]!.type === 'date') {
    return { group: { column: mention.columns[0]!.name, part: behind }, length: mention.to + 1 - at }
  }
  if (mention) return { group: { column: mention.columns[0]!.name, part: undefined }, length: mention.to - at }
  return undefined
}
