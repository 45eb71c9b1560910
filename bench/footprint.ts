/** Memory of an idle side, its start time, and the memory that remains after many runs. */
import { setTimeout as sleep } from 'node:timers/promises'
import { median, short } from './figures.ts'
import type { Measurement, Plan, Result, Verdict } from './measurement.ts'
import { PEERS } from './peers.ts'
import { memoryBytes } from './processes.ts'
import { openProvider, openSide, type SideName } from './sides.ts'
import { load } from './throughput.ts'

const SIDES: readonly SideName[] = ['bare', 'Errand', 'VoltAgent', 'Mastra', 'LangGraph', 'opencode']
/** opencode would take many minutes for them. */
const RUNS = 5_000
/** With fewer, LangGraph takes five minutes for them. */
const AT_ONCE = 64
const SLOW: ReadonlySet<SideName> = new Set(['opencode'])
const MIB = 1024 ** 2

interface Footprint {
  readonly startMs: number
  readonly idle: number
  readonly after: number
}

export const footprint: Measurement = {
  name: 'footprint',
  title: 'Start and memory',
  rows: ['V8'],
  how: `From its start to its first 200, the median of three starts; memory of all its processes a second later (Errand’s: the server, its sandbox host and its sandboxes kept ready), and behind ${RUNS.toLocaleString('en-US')} runs, ${AT_ONCE} at once, and five seconds. A page that several of them share counts once in all (PSS).`,
  measure,
}

async function measure(plan: Plan): Promise<Result> {
  const provider = await openProvider()
  const found = new Map<SideName, Footprint>()
  const missing: string[] = []
  try {
    for (const name of SIDES.filter((name) => !plan.short || !(name in PEERS))) {
      const footprint = await of(name, plan.short ? 50 : RUNS).catch((error) => {
        if (!(name in PEERS)) throw error
        missing.push(`${name}: ${error.message.slice(0, 300)}`)
        return undefined
      })
      if (!footprint) continue
      found.set(name, footprint)
      const { startMs, idle, after } = footprint
      plan.log(`${name}: starts in ${short(startMs)} ms, ${short(idle)} MiB, ${short(after)} MiB behind its runs`)
    }
  } finally {
    await provider.stop()
  }

  async function of(name: SideName, runs: number): Promise<Footprint> {
    const starts: number[] = []
    for (let i = 1; i < (plan.short ? 1 : 3); i++) {
      const side = await openSide(name, provider, AT_ONCE)
      starts.push(side.startMs)
      await side.stop()
    }
    const side = await openSide(name, provider, AT_ONCE)
    try {
      await sleep(1_000)
      const idle = memoryBytes(side.pid) / MIB
      if (SLOW.has(name)) return { startMs: median([...starts, side.startMs]), idle, after: Number.NaN }
      await load(side, { atOnce: AT_ONCE, runs })
      await sleep(plan.short ? 0 : 5_000)
      return { startMs: median([...starts, side.startMs]), idle, after: memoryBytes(side.pid) / MIB }
    } finally {
      await side.stop()
    }
  }

  const best = (key: keyof Footprint) =>
    Math.min(
      ...[...found]
        .filter(([name]) => name in PEERS)
        .map(([, of]) => of[key])
        .filter(Number.isFinite),
    )
  const ours = found.get('Errand')!
  const row = { row: 'V8', bound: 'at most' } as const
  const verdicts: Verdict[] = []
  if (found.size > 2) {
    const what = `memory behind ${RUNS.toLocaleString('en-US')} runs against the best peer`
    verdicts.push({ ...row, what, measured: ours.after / best('after'), target: 0.4 })
    verdicts.push({
      ...row,
      what: 'start to first 200 against the best peer',
      measured: ours.startMs / best('startMs'),
      target: 0.7,
    })
  }
  const rows = [...found].map(([name, { startMs, idle, after }]) => [name, short(startMs), short(idle), short(after)])
  const head = ['', 'start to first 200, ms', 'idle, MiB', `behind ${RUNS.toLocaleString('en-US')} runs, MiB`]
  return { verdicts, tables: [{ title: 'Start and memory', head, rows }], missing }
}
