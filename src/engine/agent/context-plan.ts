/** Plans what leaves the model's view of a conversation. Pure. */
import { isDeepStrictEqual } from 'node:util'
import { clearedResult, withinCharacters } from '../../domain/context.ts'
import { countCharacters, type Message, toolCalls } from '../../domain/message.ts'
import { CONTINUE } from '../../domain/prompts.ts'

/** An edit that keeps the latest messages, and what it takes from the others. */
export interface Plan {
  readonly keep: number
  /** Characters that it frees. */
  readonly characters: number
  /** Steps of this run's tool results that it removes. */
  readonly steps: readonly number[]
}

/**
 * Shortens the results before the latest messages of at most `keepCharacters`, except those that the model has not seen yet.
 * Undefined if that frees fewer than `least`.
 */
export function planClearing(messages: readonly Message[], keepCharacters: number, least: number): Plan | undefined {
  const unseen = messages.findLastIndex(({ role }) => role === 'assistant') + 1
  const from = Math.min(unseen, tailFrom(messages, keepCharacters))
  const cleared = messages.slice(0, from).filter((message) => clearedResult(message) !== message)
  const characters = countCharacters(cleared) - countCharacters(cleared.map(clearedResult))
  return characters < least || characters <= 0 ? undefined : planOf(messages, from, characters, cleared)
}

/**
 * Replaces the messages before the latest ones. Never separates calls from their results. Keeps what the next reply answers
 * directly: an instruction, or an unfinished answer. `most`: characters of the last turn's results above which they are
 * replaced too. Undefined if there is nothing to replace.
 */
export function planCompaction(messages: readonly Message[], keepCharacters: number, most: number): Plan | undefined {
  const latest = latestFrom(messages)
  const cuts = messages.flatMap((message, i) => (message.role !== 'tool' && i <= latest ? [i] : []))
  if (latest === messages.length) cuts.push(latest)
  const sizes = sizesOfTails(messages)
  const sizeFrom = (at: number) => sizes[at] ?? 0
  const fitting = cuts.find((at) => at < messages.length && sizeFrom(at) <= keepCharacters)
  const lastTurn = cuts.findLast((at) => at < messages.length) ?? 0
  const needed = latest < messages.length ? latest : sizeFrom(lastTurn) <= most ? lastTurn : messages.length
  const from = fitting ?? needed
  // A single message is the instruction or an earlier summary: replacing it frees nothing.
  return from < 2
    ? undefined
    : planOf(messages, from, countCharacters(messages.slice(0, from)), messages.slice(0, from))
}

function planOf(messages: readonly Message[], from: number, characters: number, removed: readonly Message[]): Plan {
  const steps = removed.flatMap((message) => (message.role === 'tool' && message.step ? [message.step] : []))
  return { keep: messages.length - from, characters, steps }
}

/** Characters of the messages from each index on. */
function sizesOfTails(messages: readonly Message[]): readonly number[] {
  let sum = 0
  return messages
    .map((_, i) => {
      sum += countCharacters([messages[messages.length - 1 - i]!])
      return sum
    })
    .reverse()
}

/** Index of the first of the latest messages that together have at most `characters` characters. */
function tailFrom(messages: readonly Message[], characters: number): number {
  let left = characters
  let at = messages.length
  while (at > 0) {
    left -= countCharacters([messages[at - 1]!])
    if (left < 0) break
    at--
  }
  return at
}

/** Index of the messages that the next reply answers directly. The length of the list if they are tool results. */
function latestFrom(messages: readonly Message[]): number {
  let at = messages.length
  if (messages[at - 1]?.role === 'user') {
    while (at > 0 && messages[at - 1]!.role === 'user') at--
    return at
  }
  // An answer that broke off: its parts alternate with requests to continue.
  while (isAnswer(messages[at - 1])) {
    at--
    if (!isDeepStrictEqual(messages[at - 1], CONTINUE)) break
    at--
  }
  return at
}

function isAnswer(message: Message | undefined): boolean {
  return message?.role === 'assistant' && toolCalls(message).length === 0
}

/** Texts are shortened to no fewer characters than this. */
const SHORTEST_TEXT = 200

/** The messages with their largest texts shortened, until all together have at most `most` characters if possible. */
export function shortened(messages: readonly Message[], most: number): readonly Message[] {
  const excess = countCharacters(messages) - most
  if (excess <= 0) return messages
  const lengths = messages.flatMap(textLengths).sort((a, b) => b - a)
  const cap = Math.max(SHORTEST_TEXT, capFreeing(lengths, excess))
  return messages.map((message) => withTextsOf(message, (text) => withinCharacters(text, cap)))
}

/** Lengths of the texts that may be shortened. Calls are not: their arguments must stay JSON. */
function textLengths(message: Message): number[] {
  const lengths: number[] = []
  withTextsOf(message, (text) => {
    lengths.push(text.length)
    return text
  })
  return lengths
}

function withTextsOf(message: Message, change: (text: string) => string): Message {
  if (message.role === 'tool') return { ...message, output: change(message.output) }
  if (message.role === 'user') {
    const content = message.content.map((part) => (part.type === 'text' ? { ...part, text: change(part.text) } : part))
    return { ...message, content }
  }
  const content = message.content.map((part) => (part.type === 'text' ? { ...part, text: change(part.text) } : part))
  return { ...message, content }
}

/** The length to which the longest are cut to free `excess` together. `lengths` descend. */
function capFreeing(lengths: readonly number[], excess: number): number {
  let sum = 0
  for (const [i, length] of lengths.entries()) {
    sum += length
    const cap = Math.floor((sum - excess) / (i + 1))
    if (cap >= (lengths[i + 1] ?? 0)) return cap
  }
  return 0
}
