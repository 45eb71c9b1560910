/** Growth of Errand's memory and disk usage with idle sandboxes, transferred files and ended runs. */
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { short } from './figures.ts'
import { carryLargeFile } from './large-files.ts'
import type { Measurement, Plan, Result } from './measurement.ts'
import { openErrand, openProvider } from './sides.ts'
import { hold } from './streams.ts'
import { load } from './throughput.ts'

const SANDBOXES = 1_000
const FILE_MIB = 100
const ENDED = 500
const KIB = 1024
const MIB = 1024 ** 2

export const memory: Measurement = {
  name: 'memory',
  title: 'Memory and disk',
  rows: ['M1', 'M2'],
  how: `Of Errand alone. ${SANDBOXES.toLocaleString('en-US')} runs at once, each with a sandbox that stands and had a Python in it, held where three quarters of the answer have been read: by how much all its processes grew (PSS). A file of ${FILE_MIB} MiB by URL into a sandbox, out again and downloaded, behind one of 6 MiB: by how much each process grew at its peak.`,
  measure,
}

async function measure(plan: Plan): Promise<Result> {
  const rows: string[][] = []
  const verdicts: Result['verdicts'][number][] = []
  if (plan.rows.includes('M1')) {
    const count = plan.short ? 4 : SANDBOXES
    const provider = await openProvider()
    const config = { sandbox: { pool: 0, maxOpen: 10_000 } }
    const errand = await openErrand(provider, { sandbox: true, config })
    try {
      await load(errand, { atOnce: 4, runs: 20 })
      const small = databaseBytes(errand.dataDir)
      const ended = plan.short ? 10 : ENDED
      await load(errand, { atOnce: 16, runs: ended })
      const each = (databaseBytes(errand.dataDir) - small) / ended
      rows.push([`an ended run in SQLite, mean of ${ended}`, `${short(each / KIB)} KiB`])
      const held = (await hold(errand, provider, count)) / count
      rows.push([`a run with a standing sandbox, mean of ${count} at once`, `${short(held / MIB)} MiB`])
      verdicts.push({
        row: 'M1',
        what: `${count} sandboxes at once: those that failed`,
        measured: 0,
        bound: 'at most',
        target: 0,
      })
    } finally {
      await errand.stop()
      await provider.stop()
    }
  }
  if (plan.rows.includes('M2')) {
    const mebibytes = plan.short ? 5 : FILE_MIB
    for (const { name, bytes } of await carryLargeFile(mebibytes)) {
      const what = `${mebibytes} MiB in and out: growth of ${name}`
      rows.push([what, `${short(bytes / MIB)} MiB`])
      verdicts.push({ row: 'M2', what, measured: bytes / MIB, bound: 'at most', target: 64, unit: ' MiB' })
    }
  }
  return { verdicts, tables: [{ title: 'Memory and disk', head: ['', ''], rows }] }
}

function databaseBytes(dataDir: string): number {
  const db = new DatabaseSync(join(dataDir, 'errand.db'))
  db.exec('pragma wal_checkpoint(truncate)')
  db.close()
  const files = readdirSync(dataDir).filter((name) => name.startsWith('errand.db'))
  return files.reduce((sum, name) => sum + statSync(join(dataDir, name)).size, 0)
}
