/**
 * Batches of writes as they go to the thread that makes them. Copying them there costs more than most statements: a text is
 * sent once and is a number from then on, and all values stand in one flat list.
 *
 *   values: [statements of the 1st write, (text, rows, parameters …) of its 1st statement, …, statements of the 2nd write, …]
 */
import { describeFailure, type Statement, type WriteDone, type WriteResult } from '../port.ts'
import type { BatchReply, BatchRequest } from './batch.ts'

export interface Packet {
  /** All numbers are given anew: there were too many. */
  readonly anew: boolean
  /** New ones; they take the next numbers. */
  readonly texts: readonly { readonly sql: string; readonly parameters: number }[]
  readonly values: readonly unknown[]
}

/** What a statement says that may touch any number of rows. */
const ANY = -1
const MOST_TEXTS = 500

/** Packs for one unpacker: it must be given every packet, in order. */
export function createPacker(): (writes: readonly (readonly Statement[])[]) => Packet {
  const numbers = new Map<string, number>()
  return (writes) => {
    const texts: { sql: string; parameters: number }[] = []
    const values: unknown[] = []
    const anew = numbers.size > MOST_TEXTS
    if (anew) numbers.clear()
    for (const statements of writes) {
      values.push(statements.length)
      for (const { query, rows } of statements) {
        let number = numbers.get(query.sql)
        if (number === undefined) {
          number = numbers.size
          numbers.set(query.sql, number)
          texts.push({ sql: query.sql, parameters: query.parameters.length })
        }
        values.push(number, rows ?? ANY)
        for (const value of query.parameters) values.push(value)
      }
    }
    return { anew, texts, values }
  }
}

export function createUnpacker(): (packet: Packet) => BatchRequest {
  const known: Packet['texts'][number][] = []
  return ({ anew, texts, values }) => {
    if (anew) known.length = 0
    known.push(...texts)
    const batch: BatchRequest = []
    for (let at = 0; at < values.length; ) {
      const write: BatchRequest[number] = []
      for (let left = values[at++] as number; left > 0; left--) {
        const { sql, parameters } = known[values[at++] as number]!
        const rows = values[at++] as number
        write.push([sql, values.slice(at, at + parameters), rows === ANY ? undefined : rows])
        at += parameters
      }
      batch.push(write)
    }
    return batch
  }
}

/** A write each; `true`: done, and no statement of it returned a row, as of almost all. */
export type PackedReply = readonly (BatchReply[number] | true)[]

export function packReply(reply: BatchReply): PackedReply {
  return reply.map((result) => (isBare(result) ? true : result))
}

/** The result of the write that has these statements; a string: why it could not be made. */
export function unpackResult(result: PackedReply[number], statements: readonly Statement[]): WriteResult | string {
  if (result === true) return { ok: true, rows: new Array(statements.length).fill(NO_ROWS) }
  if (typeof result === 'string' || result.ok) return result
  return describeFailure(statements, result.failedAt, result.unmet)
}

const NO_ROWS: WriteDone['rows'][number] = []

function isBare(result: BatchReply[number]): boolean {
  return typeof result !== 'string' && result.ok && result.rows.every((rows) => rows.length === 0)
}
