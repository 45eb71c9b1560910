/** Tests of the simulation itself: it is deterministic, and it finds planted faults. */
import { expect, test } from 'vitest'
import type { Tamper } from './database.ts'
import { simulate } from './simulate.ts'

/** Number of seeds within which each planted fault must be found. */
const MOST_SEEDS = 200

test('makes the same decisions every time for the same seed', async () => {
  for (const seed of [1, 2, 3]) {
    const [first, second] = [await simulate(seed), await simulate(seed)]
    expect(second.hash).toBe(first.hash)
    expect(second.decisions).toEqual(first.decisions)
  }
  expect((await simulate(1)).hash).not.toBe((await simulate(2)).hash)
})

interface PlantedFault {
  /** Changes the SQL on its way to the database. */
  readonly tamper: Tamper
  /** The violation that must report it. */
  readonly foundBy: RegExp
  /** A seed that found it. It is tried first; if it no longer finds the fault, all seeds are tried. */
  readonly seed: number
}

const PLANTED: Record<string, PlantedFault> = {
  // Removing only the fence would change nothing, because the key of the events table also rejects the write.
  'appends have no fence, and events have no key': {
    tamper: (...statement) => {
      const { sql, parameters } = without(/^update "interactions" set "last_seq"/, ['epoch', 'last_seq'])(...statement)
      return { sql: sql.replace('insert into "events"', 'insert or replace into "events"'), parameters }
    },
    foundBy: /^I[125]/,
    seed: 1,
  },
  'ending a run from outside does not raise the epoch': {
    tamper: replacing('"epoch" = "epoch" + ?, "last_seq"', '"epoch" = "epoch" + 0 * ?, "last_seq"'),
    foundBy: /^I5|not come to rest/,
    seed: 1,
  },
  'a lease that has not expired is taken over': {
    tamper: replacing('q.lease_until <= ', '0 <= '),
    foundBy: /^R7/,
    seed: 2,
  },
  'leases of live workers are ended': {
    tamper: (sql, parameters) => ({
      sql: sql.replace(/^(update "interactions" set "lease_until" = .* where "lease_owner") = /, '$1 <> '),
      parameters,
    }),
    foundBy: /^R7: .* which is alive/,
    seed: 49,
  },
  'running interactions are not counted': {
    tamper: replacing('"r"."lease_until" > ', '0 > '),
    foundBy: /run; the limit is \d+/,
    seed: 1,
  },
  'an idempotency key is not stored': {
    tamper: replacing('insert into "idempotency"', 'insert or ignore into "idempotency"'),
    foundBy: /the idempotency key .* belongs to/,
    seed: 2,
  },
  'a worker that resumes a run does not see tool results': {
    tamper: unseen('tool_result'),
    foundBy: /steps are not|its result is in the log|ran twice|got another result/,
    seed: 5,
  },
  'results are paired with calls by their order': {
    tamper: withoutCallIds(),
    foundBy: /got another result|its result is in the log|steps are not/,
    seed: 46,
  },
  'runs are missing in the sum of the usage': {
    tamper: replacing('cast(sum("runs") as bigint)', '0'),
    foundBy: /^usage: /,
    seed: 1,
  },
  'a failed call does not count in the number of the next turn': {
    tamper: replacing(
      'coalesce(max("turn"), 0) + 1 as "next" from "turns" where',
      `count(*) + 1 as "next" from "turns" where "finish" <> 'failed' and`,
    ),
    foundBy: /^Something went wrong in the server/,
    seed: 12,
  },
  'a requeued claim never counts as an attempt': {
    tamper: (sql, parameters) => ({
      sql: sql.replace(
        /^(update "interactions" set "lease_owner" = \?, "lease_until" = \S+ \* 1000 as integer\))( where "id" = \? and "epoch")/,
        '$1, "attempts" = "attempts" - 1$2',
      ),
      parameters,
    }),
    foundBy: /without counting the attempt/,
    seed: 71,
  },
  'a worker that resumes a run does not see tool calls': {
    tamper: unseen('tool_call'),
    foundBy: /steps are not|twice|got another result/,
    seed: 2,
  },
  'the next worker does not see the shown part of an answer': {
    tamper: unseen('partial_output'),
    foundBy: /^I3/,
    seed: 98,
  },
  'a broken turn is stored as a complete one': {
    tamper: (sql, parameters) => ({
      sql,
      parameters: /insert into "turns"/.test(sql)
        ? parameters.map((value) => (value === 'broken' ? 'stop' : value))
        : parameters,
    }),
    foundBy: /^I3: the answer breaks off/,
    seed: 63,
  },
}

/** Removes the conditions on these columns, each a comparison with a parameter, from matching statements. */
function without(statement: RegExp, columns: readonly string[]): Tamper {
  return (sql, parameters) => {
    if (!statement.test(sql)) return { sql, parameters }
    return columns.reduce(
      (query, column) => {
        const condition = `"${column}" = ?`
        const at = query.sql.indexOf(condition, query.sql.indexOf(' where '))
        if (at < 0) return query
        const index = query.sql.slice(0, at).split('?').length - 1
        return {
          sql: `${query.sql.slice(0, at)}1 = 1${query.sql.slice(at + condition.length)}`,
          parameters: query.parameters.filter((_, i) => i !== index),
        }
      },
      { sql, parameters },
    )
  }
}

function replacing(text: string, by: string): Tamper {
  return (sql, parameters) => ({ sql: sql.replaceAll(text, by), parameters })
}

/** Removes the ids of calls and results for a worker that resumes an interaction: it can only pair them by their order. */
function withoutCallIds(): Tamper {
  return (sql, parameters) => {
    const all = sql.includes('from "events"') && parameters.includes(1_000_000)
    return { sql: all ? sql.replace('"data"', `json_remove("data", '$.callId') as "data"`) : sql, parameters }
  }
}

/** Hides the events of one type from a worker that resumes an interaction and reads all its events. */
function unseen(type: string): Tamper {
  return (sql, parameters) => {
    const all = sql.includes('from "events"') && parameters.includes(1_000_000)
    return { sql: all ? sql.replace(' where ', ` where "type" <> '${type}' and `) : sql, parameters }
  }
}

for (const [name, { tamper, foundBy, seed: knownSeed }] of Object.entries(PLANTED)) {
  test(`finds a planted fault: ${name}`, { timeout: 600_000 }, async () => {
    for (const seed of [knownSeed, ...Array.from({ length: MOST_SEEDS }, (_, i) => i + 1)]) {
      const { violations } = await simulate(seed, { tamper })
      if (violations.length === 0) continue
      expect(violations[0]).toMatch(foundBy)
      console.log(`${name}: found by seed ${seed}`)
      return
    }
    throw new Error('no seed found it')
  })
}
