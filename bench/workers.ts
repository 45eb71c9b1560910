/** One api process and 1, 2 and 4 workers on one Postgres, with a model that takes its time: do workers add up? */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findPostgres, startCluster } from '../test/support/cluster.ts'
import { median, short } from './figures.ts'
import type { Measurement, Plan, Result } from './measurement.ts'
import { processorMs } from './processes.ts'
import { type Errand, openErrand, openProvider } from './sides.ts'
import { load } from './throughput.ts'

const WORKERS = [1, 2, 4]
/** Slots of each worker. Few, so that the model's response time limits the throughput, as in production, and not the cores. */
const SLOTS = 4
/** Duration of each of a run's two model calls. */
const MODEL_MS = 100
const SECRET = 'the secret of all nodes of the bench'

export const workers: Measurement = {
  name: 'workers',
  title: 'Workers on one Postgres',
  rows: ['V10'],
  how: `An api process and 1, 2 and 4 workers with ${SLOTS} slots each, all on this machine with its Postgres (a throw-away cluster without fsync); the model takes ${2 * MODEL_MS} ms a run; as many runs at once as there are slots, and half as many again waiting.`,
  measure,
}

async function measure(plan: Plan): Promise<Result> {
  const programs = findPostgres()
  if (!programs) return { verdicts: [], tables: [], missing: ['Postgres is not installed here'] }
  const provider = await openProvider(MODEL_MS)
  const cluster = await startCluster(programs)
  const dir = mkdtempSync(join(tmpdir(), 'errand-bench-'))
  const env = {
    ERRAND_DATABASE_URL: await cluster.createDatabase(),
    ERRAND_SECRET: SECRET,
    ERRAND_BLOBS_URL: `file://${join(dir, 'files')}`,
  }
  const config = (more: object = {}) => ({
    config: { workerSlots: SLOTS, skillsDir: join(dir, 'api/skills'), sandbox: { pool: 0 }, ...more },
  })
  const nodes: Errand[] = []
  try {
    const api = await openErrand(provider, {
      ...config(),
      env: { ...env, ERRAND_ROLE: 'api' },
      dataDir: join(dir, 'api'),
    })
    nodes.push(api)
    const perSecond = new Map<number, number[]>()
    const cpu = new Map<number, number[]>()
    // One more at a time: rounds can't take turns between them, so each number of workers has all of its rounds at once.
    for (const count of plan.short ? [1, 2] : WORKERS) {
      while (nodes.length <= count) {
        const dataDir = join(dir, `worker-${nodes.length}`)
        nodes.push(
          await openErrand(provider, {
            ...config(),
            env: { ...env, ERRAND_ROLE: 'worker' },
            dataDir,
            key: api.target.key,
          }),
        )
      }
      const atOnce = Math.ceil(count * SLOTS * 1.5)
      await load(api, { atOnce, runs: atOnce })
      const [rates, times]: [number[], number[]] = [[], []]
      for (let round = 0; round < plan.rounds; round++) {
        const before = nodes.map(({ pid }) => processorMs(pid))
        const { perSecond, runs } = await load(api, { atOnce, seconds: plan.seconds })
        rates.push(perSecond)
        times.push(nodes.reduce((sum, { pid }, i) => sum + processorMs(pid) - before[i]!, 0) / runs)
      }
      perSecond.set(count, rates)
      cpu.set(count, times)
      plan.log(`${count} workers: ${rates.map(short).join(', ')} runs/s`)
    }
    const one = median(perSecond.get(1)!)
    const most = Math.max(...perSecond.keys())
    const rows = [...perSecond].map(([count, rates]) => {
      const rate = median(rates)
      return [
        `${count}`,
        short(rate),
        short(rate / one),
        short((count * SLOTS * 1_000) / (2 * MODEL_MS)),
        short(median(cpu.get(count)!)),
      ]
    })
    const head = [
      'workers',
      'runs/s',
      'times one worker',
      'if nothing but the model took time',
      'CPU a run of all nodes, ms',
    ]
    const measured = median(perSecond.get(most)!) / one
    const verdicts =
      most === 4
        ? [{ row: 'V10', what: 'runs/s of 4 workers against 1', measured, bound: 'at least', target: 3.6 } as const]
        : []
    return { verdicts, tables: [{ title: 'Workers', head, rows }] }
  } finally {
    for (const node of nodes.toReversed()) await node.stop()
    await cluster.stop()
    await provider.stop()
    rmSync(dir, { recursive: true, force: true })
  }
}
