/**
 * `script/bench`: measures Errand against the bare limit and its peers, and writes docs/benchmarks.md from what every
 * measurement last showed.
 *
 *     script/bench                      everything, which takes the better part of an hour
 *     script/bench throughput growth    these measurements
 *     script/bench V1 V6                these rows alone, printed and not written to the page
 *     script/bench --short              seconds: does every side work, and is every answer right?
 *
 * Exit code 1 where something could not be measured or an answer was wrong; a target that was missed is no error.
 */
import { loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import { agent } from './agent.ts'
import { short } from './figures.ts'
import { footprint } from './footprint.ts'
import { growth } from './growth.ts'
import { hits, type Measurement, type Plan, type Result } from './measurement.ts'
import { memory } from './memory.ts'
import { keep, writePage } from './page.ts'
import { sandbox } from './sandbox.ts'
import { streams } from './streams.ts'
import { throughput } from './throughput.ts'
import { workers } from './workers.ts'

const MEASUREMENTS: readonly Measurement[] = [throughput, sandbox, streams, footprint, growth, workers, memory, agent]

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '3' },
    short: { type: 'boolean', default: false },
  },
})
const names = MEASUREMENTS.flatMap(({ name, rows }) => [name, ...rows])
const stranger = positionals.find((name) => !names.includes(name))
if (stranger !== undefined) {
  console.error(`There is no ${stranger} to measure: ${names.join(' ')}`)
  process.exit(2)
}

const how = values.short
  ? { rounds: 1, seconds: 0.2 }
  : { rounds: Number(values.rounds), seconds: Number(values.seconds) }
let failed = false
for (const measurement of MEASUREMENTS) {
  const whole = positionals.length === 0 || positionals.includes(measurement.name)
  const rows = measurement.rows.filter((row) => whole || positionals.includes(row))
  if (rows.length === 0) continue
  console.log(`# ${measurement.title} (${rows.join(' ')})`)
  const plan: Plan = { ...how, rows, short: values.short, log: (line) => console.log(`  ${line}`) }
  const setting = { ...how, began: new Date(), load: loadavg()[0]! }
  try {
    const result = await measurement.measure(plan)
    print(result)
    if (whole && !values.short) keep(measurement.name, result, setting)
  } catch (error) {
    failed = true
    console.error(error)
  }
}
if (!values.short) writePage(MEASUREMENTS)
process.exit(failed ? 1 : 0)

function print({ verdicts, tables, missing = [] }: Result): void {
  for (const { title, head, rows } of tables) {
    console.log(
      `${title}\n${[head, ...rows].map((row) => `  ${row.map((cell, i) => (i ? cell.padStart(16) : cell.padEnd(32))).join('')}`).join('\n')}`,
    )
  }
  for (const verdict of verdicts) {
    const { row, what, measured, bound, target, unit = '' } = verdict
    console.log(
      `${hits(verdict) ? 'hit ' : 'MISS'} ${row} ${what}: ${short(measured)}${unit} (${bound} ${target}${unit})`,
    )
  }
  for (const line of missing) console.log(`not measured: ${line}`)
}
