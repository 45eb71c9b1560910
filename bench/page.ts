/** docs/benchmarks.md, made of what every measurement last showed. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus, loadavg, release, totalmem } from 'node:os'
import { join } from 'node:path'
import { short } from './figures.ts'
import { hits, type Measurement, type Result, type Table, type Verdict } from './measurement.ts'

const ROOT = join(import.meta.dirname, '..')
const KEPT = join(ROOT, 'node_modules/.bench')
const place = (name: string) => join(KEPT, `${name}.json`)
const GIB = 1024 ** 3

interface Kept extends Result {
  readonly date: string
  readonly commit: string
  readonly rounds: number
  readonly seconds: number
  /** Processes that wanted to run on the machine, over the last 15 minutes. */
  readonly load: number
}

export function keep(name: string, result: Result, how: { readonly rounds: number; readonly seconds: number }): void {
  mkdirSync(KEPT, { recursive: true })
  const commit = execFileSync('git', ['describe', '--always', '--dirty'], { cwd: ROOT, encoding: 'utf8' }).trim()
  const kept: Kept = { ...result, ...how, commit, date: new Date().toISOString().slice(0, 16), load: loadavg()[2]! }
  writeFileSync(place(name), JSON.stringify(kept))
}

export function writePage(measurements: readonly Measurement[]): void {
  const found = measurements.flatMap((measurement) => {
    if (!existsSync(place(measurement.name))) return []
    return [{ ...measurement, kept: JSON.parse(readFileSync(place(measurement.name), 'utf8')) as Kept }]
  })
  if (found.length === 0) return
  const verdicts = found.flatMap(({ kept }) => kept.verdicts)
  const parts = ['# Benchmarks', `Written by \`script/bench\`. ${machine()}`, targets(verdicts), ...found.map(section)]
  writeFileSync(join(ROOT, 'docs/benchmarks.md'), `${parts.join('\n\n')}\n`)
}

function machine(): string {
  const [cpu] = cpus()
  return `${cpus().length} cores (${cpu?.model.trim()}), ${Math.round(totalmem() / GIB)} GiB, Linux ${release()}, Node ${process.versions.node}.`
}

function targets(verdicts: readonly Verdict[]): string {
  return markdown({
    title: 'Targets',
    head: ['row', 'what', 'target', 'measured', ''],
    rows: verdicts.map((verdict) => {
      const { row, what, bound, target, measured, unit = '' } = verdict
      const sign = bound === 'at least' ? '≥' : '≤'
      return [row, what, `${sign} ${target}${unit}`, `${short(measured)}${unit}`, hits(verdict) ? 'hit' : '**missed**']
    }),
  })
}

function section({ title, how, name, kept }: Measurement & { readonly kept: Kept }): string {
  const measured = `${how} \`script/bench ${name} --rounds ${kept.rounds} --seconds ${kept.seconds}\`, commit ${kept.commit}, ${kept.date} UTC, load of the machine ${kept.load.toFixed(1)}.`
  const missing = kept.missing?.length ? [`Not measured: ${kept.missing.join('; ')}.`] : []
  return [`## ${title}`, measured, ...missing, ...kept.tables.map(markdown)].join('\n\n')
}

function markdown({ title, head, rows }: Table): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  return `**${title}**\n\n${[line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')}`
}
