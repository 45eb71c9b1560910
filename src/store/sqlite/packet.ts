/**
 * Encodes batches of writes for the writer thread. Copying a batch to the thread costs more than most statements, so each SQL
 * text is sent once and referred to by number afterwards, and all values are in one flat array.
 *
 *   values: [statement count of write 1, (text number, rows, parameters …) of its statement 1, …, count of write 2, …]
 */
import { describeFailure, type Statement, type WriteDone, type WriteResult } from '../port.ts'
import type { BatchReply, BatchRequest } from './batch.ts'

export interface Packet {
  /** True if there were too many texts and numbering starts again. */
  readonly reset: boolean
  /** New SQL texts, which take the next numbers. */
  readonly texts: readonly { readonly sql: string; readonly parameters: number }[]
  readonly values: readonly unknown[]
}

/** Encodes that a statement may affect any number of rows. */
const ANY = -1
const MOST_TEXTS = 500

/** Returns a packer for one unpacker, which must receive every packet in order. */
export function createPacker(): (writes: readonly (readonly Statement[])[]) => Packet {
  const numbers = new Map<string, number>()
  return (writes) => {
    const texts: { sql: string; parameters: number }[] = []
    const values: unknown[] = []
    const reset = numbers.size > MOST_TEXTS
    if (reset) numbers.clear()
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
    return { reset, texts, values }
  }
}

export function createUnpacker(): (packet: Packet) => BatchRequest {
  const known: Packet['texts'][number][] = []
  return ({ reset, texts, values }) => {
    if (reset) known.length = 0
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

/** Results by write. `true`: done, and no statement returned a row; that is almost always so. */
export type PackedReply = readonly (BatchReply[number] | true)[]

export function packReply(reply: BatchReply): PackedReply {
  return reply.map((result) => (isBare(result) ? true : result))
}

/** The result of the write with these statements, or the reason why it could not be made. */
export function unpackResult(result: PackedReply[number], statements: readonly Statement[]): WriteResult | string {
  if (result === true) return { ok: true, rows: new Array(statements.length).fill(NO_ROWS) }
  if (typeof result === 'string' || result.ok) return result
  return describeFailure(statements, result.failedAt, result.unmet)
}

const NO_ROWS: WriteDone['rows'][number] = []

function isBare(result: BatchReply[number]): boolean {
  return typeof result !== 'string' && result.ok && result.rows.every((rows) => rows.length === 0)
}
