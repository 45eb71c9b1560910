/** Adapter of the sign-in library to our database: reads with Kysely, writes are durable when they resolve. */
import { createAdapterFactory } from 'better-auth/adapters'
import type { Kysely } from 'kysely'
import { assertMade, type Database } from '../store/port.ts'

const TABLES: Readonly<Record<string, string>> = {
  user: 'users',
  session: 'sessions',
  account: 'identities',
  verification: 'verifications',
}

const OPERATORS = { eq: '=', ne: '!=', lt: '<', lte: '<=', gt: '>', gte: '>=', in: 'in', not_in: 'not in' } as const

interface Condition {
  readonly field: string
  readonly value: unknown
  readonly operator: string
  readonly connector: string
}

type Row = Record<string, unknown>

export function createSignInStore(db: Database) {
  // The library names the table only when it calls.
  const query = db.query as unknown as Kysely<Record<string, Row>>

  async function write(statement: { compile(): { sql: string; parameters: readonly unknown[] } }): Promise<Row[]> {
    const result = await db.write([{ query: statement.compile() }])
    assertMade(result)
    return result.rows[0]!.map(decode)
  }

  const update = (model: string, where: readonly Condition[], change: Row) =>
    write(matching(query.updateTable(tableOf(model)).set(encode(change)), where).returningAll())
  const remove = (model: string, where: readonly Condition[]) =>
    write(matching(query.deleteFrom(tableOf(model)), where).returning('id'))
  const select = (model: string, where: readonly Condition[] = []) =>
    matching(query.selectFrom(tableOf(model)), where).selectAll()

  return createAdapterFactory({
    config: { adapterId: 'errand', supportsBooleans: false },
    adapter: () => ({
      async create({ model, data }) {
        await write(query.insertInto(tableOf(model)).values(encode(data)))
        return data
      },
      findOne: async <T>({ model, where }: { model: string; where: Condition[] }) => {
        const row = await select(model, where).limit(1).executeTakeFirst()
        return (row ? decode(row) : null) as T | null
      },
      findMany: async <T>(asked: {
        model: string
        where?: Condition[]
        limit: number
        sortBy?: { field: string; direction: 'asc' | 'desc' }
        offset?: number
      }) => {
        let rows = select(asked.model, asked.where).limit(asked.limit)
        if (asked.sortBy) rows = rows.orderBy(columnOf(asked.sortBy.field), asked.sortBy.direction)
        if (asked.offset) rows = rows.offset(asked.offset)
        return (await rows.execute()).map(decode) as T[]
      },
      async count({ model, where }) {
        const counted = matching(query.selectFrom(tableOf(model)), where ?? []).select((s) =>
          s.fn.countAll().as('count'),
        )
        return Number((await counted.executeTakeFirstOrThrow()).count)
      },
      update: async <T>({ model, where, update: change }: { model: string; where: Condition[]; update: T }) =>
        ((await update(model, where, change as Row))[0] ?? null) as T | null,
      updateMany: async ({ model, where, update: change }) => (await update(model, where, change)).length,
      async delete({ model, where }) {
        await remove(model, where)
      },
      deleteMany: async ({ model, where }) => (await remove(model, where)).length,
      consumeOne: async <T>({ model, where }: { model: string; where: Condition[] }) => {
        // By id, so that two concurrent calls find the same row.
        const found = await select(model, where).limit(1).executeTakeFirst()
        if (!found) return null
        const same = [...where, { field: 'id', value: found.id, operator: 'eq', connector: 'AND' }]
        return ((await remove(model, same)).length === 1 ? decode(found) : null) as T | null
      },
    }),
  })
}

/** Combines conditions with AND. The parts of the library that we use need nothing else. */
function matching<Q extends { where(...args: never[]): Q }>(statement: Q, where: readonly Condition[]): Q {
  return where.reduce((narrowed, { field, value, operator, connector }) => {
    const sign = OPERATORS[operator as keyof typeof OPERATORS]
    if (!sign || connector !== 'AND') throw new Error(`the sign-in store has no ${connector} ${operator}`)
    if (value === null) return narrowed.where(...([columnOf(field), sign === '=' ? 'is' : 'is not', null] as never[]))
    return narrowed.where(...([columnOf(field), sign, encodeValue(value)] as never[]))
  }, statement)
}

function tableOf(model: string): string {
  const table = TABLES[model]
  if (!table) throw new Error(`the sign-in library has no table ${model} here`)
  return table
}

function encode(data: Row): Row {
  return Object.fromEntries(Object.entries(data).map(([field, value]) => [columnOf(field), encodeValue(value)]))
}

function encodeValue(value: unknown): unknown {
  return value instanceof Date ? value.getTime() : value
}

function decode(row: Row): Row {
  return Object.fromEntries(
    Object.entries(row).map(([column, value]) => {
      const field = column.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
      if (value === null) return [field, null]
      if (column.endsWith('_at')) return [field, new Date(Number(value))]
      return [field, column === 'email_verified' ? Number(value) : value]
    }),
  )
}

/** Converts a field name: `expiresAt` → `expires_at`. */
function columnOf(field: string): string {
  return field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}
