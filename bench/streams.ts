/**
 * Streams that are held: so many runs at once, each with a reader who has three quarters of its answer, the rest not
 * yet said. How much memory each takes; then all go on, and every answer has to be whole.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { short } from './figures.ts'
import type { Load, Loaded } from './load.ts'
import type { Measurement, Plan, Result, Verdict } from './measurement.ts'
import { PEERS } from './peers.ts'
import { memoryBytes } from './processes.ts'
import { openProvider, openSide, type Provider, type Side, type SideName } from './sides.ts'

/** opencode answers on one stream for all its sessions: there is none of a run's own to hold. */
const SIDES: readonly SideName[] = ['bare', 'Errand', 'VoltAgent', 'Mastra', 'LangGraph']
const STREAMS = 2_000
const KIB = 1024
/** For all to be held, and for all to end: a side that takes longer is not measured. */
const TIMEOUT_MS = 90_000

export const streams: Measurement = {
  name: 'streams',
  title: 'Held streams',
  rows: ['V7'],
  how: `${STREAMS.toLocaleString('en-US')} runs at once, held where three quarters of the answer have been read. Memory is what all processes of a side grew by, behind a warm-up of 500 runs. A page that several of them share counts once in all (PSS).`,
  measure,
}

async function measure(plan: Plan): Promise<Result> {
  const count = plan.short ? 20 : STREAMS
  const kib = new Map<SideName, number>()
  const missing: string[] = []
  for (const name of SIDES.filter((name) => !plan.short || !(name in PEERS))) {
    const provider = await openProvider()
    try {
      const side = await openSide(name, provider, count)
      try {
        kib.set(name, (await hold(side, provider, count)) / count / KIB)
        plan.log(`${name}: ${short(kib.get(name)!)} KiB a stream`)
      } finally {
        await side.stop()
      }
    } catch (error) {
      if (!(name in PEERS)) throw error
      missing.push(`${name}: ${(error as Error).message.slice(0, 300)}`)
    } finally {
      await provider.stop()
    }
  }
  const ours = kib.get('Errand')!
  const best = Math.min(...[...kib].filter(([name]) => name in PEERS).map(([, value]) => value))
  const row = { row: 'V7', bound: 'at most' } as const
  const verdicts: Verdict[] = [
    { ...row, what: `memory of each of ${count} held streams, no error`, measured: ours, target: 120, unit: ' KiB' },
  ]
  if (Number.isFinite(best)) {
    verdicts.push({ ...row, what: 'the same against the best peer', measured: ours / best, target: 0.25 })
  }
  const rows = [...kib].map(([name, value]) => [name, short(value)])
  return { verdicts, tables: [{ title: `${count} held streams`, head: ['', 'KiB each'], rows }], missing }
}

/** By how many bytes it grew. Throws where not all are held, or one is not whole in the end. */
export async function hold(side: Side, provider: Provider, count: number): Promise<number> {
  await loaded(side, { atOnce: 64, runs: Math.min(500, count * 5) })
  await sleep(1_000)
  const before = memoryBytes(side.pid)
  let grown = 0
  await loaded(side, { atOnce: count, runs: count, hold: true }, async () => {
    await sleep(1_000)
    grown = memoryBytes(side.pid) - before
    await provider.release()
  })
  return grown
}

async function loaded(
  side: Side,
  how: Partial<Load> & Pick<Load, 'atOnce'>,
  onHeld?: () => Promise<void>,
): Promise<void> {
  const load: Load = { ...side.target, dialect: side.dialect, ...how }
  const child = spawn(process.execPath, [join(import.meta.dirname, 'load.ts'), JSON.stringify(load)], {
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: TIMEOUT_MS,
  })
  const ended = once(child, 'close')
  let said: Loaded | undefined
  let held = false
  for await (const line of createInterface(child.stdout)) {
    if (line !== 'held') said = JSON.parse(line)
    else {
      held = true
      await onHeld?.()
    }
  }
  await ended
  if (said && said.failed > 0) throw new Error(`${said.failed} of ${said.runs} runs failed, the first with ${said.why}`)
  if (said) return
  const what = onHeld && !held ? `${load.atOnce} runs were never all held at once` : `${load.runs} runs did not end`
  throw new Error(`${what} within ${TIMEOUT_MS / 1_000} s`)
}
