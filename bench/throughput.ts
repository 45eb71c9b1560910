/**
 * Runs a second, processor time a run and time to the first event: every side in turn, round by round, under the same
 * load. What the rows ask for are ratios of medians.
 */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { median, short } from './figures.ts'
import type { Load, Loaded } from './load.ts'
import type { Bars, Measurement, Plan, Result, Table, Verdict } from './measurement.ts'
import { PEERS, type PeerName } from './peers.ts'
import { processorMs } from './processes.ts'
import { openProvider, openSide, type Provider, type Side, type SideName } from './sides.ts'

const peers = Object.keys(PEERS) as PeerName[]

const SHORT = { atOnce: 4, runs: 8 }
/** Time after which a side counts as hanging. */
const LOAD_TIMEOUT_MS = 600_000
const WARM_TIMEOUT_MS = 90_000

/** Sides and load of each row. */
const NEEDS: Readonly<Record<string, { readonly sides: readonly SideName[]; readonly atOnce: readonly number[] }>> = {
  V1: { sides: ['bare', 'Errand'], atOnce: [16, 64] },
  V2: { sides: ['bare', 'Errand'], atOnce: [16] },
  V3: { sides: ['Errand', ...peers], atOnce: [16, 64] },
  V4: { sides: ['Errand with sandbox', ...peers], atOnce: [16, 64] },
  V6: { sides: ['bare', 'Errand', ...peers], atOnce: [1] },
}

interface Round {
  readonly perSecond: number
  readonly cpuMs: number
  readonly firstMs: number
  readonly totalMs: number
}

/** Medians of the rounds, by runs at once and side. */
type Medians = ReadonlyMap<number, ReadonlyMap<SideName, Round>>

export const throughput: Measurement = {
  name: 'throughput',
  title: 'Runs',
  rows: Object.keys(NEEDS),
  how: 'Streamed runs, 1, 16 and 64 at once. The first event is the first output of the model: its tool call. Processor time is that of all of a side’s processes.',
  measure,
}

async function measure(plan: Plan): Promise<Result> {
  const needs = plan.rows.map((row) => NEEDS[row]!)
  const names = [...new Set(needs.flatMap(({ sides }) => sides))].filter((name) => !plan.short || !(name in PEERS))
  const loads = plan.short ? [SHORT.atOnce] : [...new Set(needs.flatMap(({ atOnce }) => atOnce))].sort((a, b) => a - b)
  const provider = await openProvider()
  const sides: Side[] = []
  const missing: string[] = []
  try {
    for (const name of names) {
      const side = await openWarm(name, provider, Math.max(...loads), plan).catch((error) => {
        if (!(name in PEERS)) throw error
        missing.push(`${name}: ${error.message.slice(0, 300)}`)
      })
      if (side) sides.push(side)
    }
    const medians = new Map<number, ReadonlyMap<SideName, Round>>()
    for (const atOnce of loads) medians.set(atOnce, await rounds(sides, atOnce, plan))
    return { ...told(medians, plan.rows), missing }
  } finally {
    for (const side of sides.toReversed()) await side.stop()
    await provider.stop()
  }
}

/** Behind some runs: none is measured cold. One that takes minutes for them would take hours for the rest. */
async function openWarm(name: SideName, provider: Provider, atOnce: number, plan: Plan): Promise<Side> {
  const side = await openSide(name, provider, atOnce)
  try {
    await load(side, plan.short ? SHORT : { atOnce: 16, seconds: plan.seconds / 2 }, WARM_TIMEOUT_MS)
    return side
  } catch (error) {
    await side.stop()
    throw error
  }
}

async function rounds(sides: readonly Side[], atOnce: number, plan: Plan): Promise<ReadonlyMap<SideName, Round>> {
  const all = new Map<SideName, Round[]>(sides.map(({ name }) => [name, []]))
  for (let round = 1; round <= plan.rounds; round++) {
    for (const side of sides) {
      const before = processorMs(side.pid)
      const { runs, perSecond, first, total } = await load(side, plan.short ? SHORT : { atOnce, seconds: plan.seconds })
      const cpuMs = (processorMs(side.pid) - before) / runs
      all.get(side.name)!.push({ perSecond, cpuMs, firstMs: first.median, totalMs: total.median })
    }
    const line = [...all].map(([name, figures]) => `${name} ${short(figures.at(-1)!.perSecond)}`).join(', ')
    plan.log(`${atOnce} at once, round ${round}, runs/s: ${line}`)
  }
  const of = (figures: readonly Round[], key: keyof Round) => median(figures.map((figure) => figure[key]))
  return new Map(
    [...all].map(([name, figures]) => [
      name,
      {
        perSecond: of(figures, 'perSecond'),
        cpuMs: of(figures, 'cpuMs'),
        firstMs: of(figures, 'firstMs'),
        totalMs: of(figures, 'totalMs'),
      },
    ]),
  )
}

/** Puts that side under load from a process of its own. Throws where a run fails. */
export async function load(
  side: Side,
  how: Pick<Load, 'atOnce' | 'seconds' | 'runs'>,
  timeout = LOAD_TIMEOUT_MS,
): Promise<Loaded> {
  const asked: Load = { ...side.target, dialect: side.dialect, ...how }
  const args = [join(import.meta.dirname, 'load.ts'), JSON.stringify(asked)]
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout }).catch((error) => {
    throw new Error(error.killed ? `not through in ${timeout / 1_000} s` : error.stderr || error.message)
  })
  const loaded: Loaded = JSON.parse(stdout)
  if (loaded.failed > 0) {
    throw new Error(`${side.name}: ${loaded.failed} of ${loaded.runs} runs failed, the first with ${loaded.why}`)
  }
  return loaded
}

function told(medians: Medians, rows: readonly string[]): Pick<Result, 'verdicts' | 'tables' | 'bars'> {
  const figure = (atOnce: number, name: SideName, key: keyof Round) => medians.get(atOnce)?.get(name)?.[key]
  const verdicts: Verdict[] = []
  const judge = (
    row: string,
    what: string,
    ours: number | undefined,
    theirs: number | undefined,
    bound: Verdict['bound'],
    target: number,
  ) => {
    if (!rows.includes(row) || ours === undefined || theirs === undefined) return
    verdicts.push({ row, what, measured: ours / theirs, bound, target })
  }
  const best = (atOnce: number, key: keyof Round, of: (...values: number[]) => number) => {
    const values = peers.flatMap((name) => figure(atOnce, name, key) ?? [])
    return values.length > 0 ? of(...values) : undefined
  }
  for (const [atOnce, target] of [
    [16, 0.7],
    [64, 0.85],
  ] as const) {
    const [ours, bare] = [figure(atOnce, 'Errand', 'perSecond'), figure(atOnce, 'bare', 'perSecond')]
    judge('V1', `runs/s, durable, against bare, ${atOnce} at once`, ours, bare, 'at least', target)
  }
  judge(
    'V2',
    'CPU a run against bare, 16 at once',
    figure(16, 'Errand', 'cpuMs'),
    figure(16, 'bare', 'cpuMs'),
    'at most',
    1.6,
  )
  for (const atOnce of [16, 64]) {
    for (const name of peers) {
      const peer = PEERS[name]
      if (!('times' in peer)) continue
      const [ours, theirs] = [figure(atOnce, 'Errand', 'perSecond'), figure(atOnce, name, 'perSecond')]
      judge('V3', `runs/s against ${name}, ${atOnce} at once`, ours, theirs, 'at least', peer.times)
    }
    const sandboxed = figure(atOnce, 'Errand with sandbox', 'perSecond')
    const what = `runs/s with a fresh sandbox and Python against the best peer without, ${atOnce} at once`
    judge('V4', what, sandboxed, best(atOnce, 'perSecond', Math.max), 'at least', 2)
  }
  const first = figure(1, 'Errand', 'firstMs')
  judge('V6', 'first event against bare, one at a time', first, figure(1, 'bare', 'firstMs'), 'at most', 2)
  judge('V6', 'first event against the best peer, one at a time', first, best(1, 'firstMs', Math.min), 'at most', 0.5)
  return { verdicts, tables: [...medians].map(([atOnce, of]) => table(atOnce, of)), bars: bars(medians) }
}

function table(atOnce: number, of: ReadonlyMap<SideName, Round>): Table {
  const rows = [...of].map(([name, { perSecond, cpuMs, firstMs, totalMs }]) => {
    return [name, short(perSecond), short(cpuMs), short(firstMs), short(totalMs)]
  })
  return { title: `${atOnce} at once`, head: ['', 'runs/s', 'CPU a run, ms', 'first event, ms', 'whole run, ms'], rows }
}

function bars(medians: Medians): Bars[] {
  const loads = [...medians.keys()]
  const names = [...(medians.values().next().value?.keys() ?? [])]
  const groups = names.map((name) => ({
    name,
    values: loads.map((atOnce) => medians.get(atOnce)!.get(name)!.perSecond),
  }))
  return [{ title: 'Runs a second', unit: 'runs/s', labels: loads.map((atOnce) => `${atOnce} at once`), groups }]
}
