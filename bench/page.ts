/** docs/benchmarks.md and its picture, made of what every measurement last showed. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus, loadavg, release, totalmem } from 'node:os'
import { join } from 'node:path'
import { short } from './figures.ts'
import { hits, type Measurement, type Result, type Table, type Verdict } from './measurement.ts'
import { PEERS, type PeerName, versionOf } from './peers.ts'
import { plot } from './plot.ts'
import { REMARKS } from './remarks.ts'

const ROOT = join(import.meta.dirname, '..')
const KEPT = join(ROOT, 'node_modules/.bench')
const PICTURE = 'images/benchmarks.svg'
const place = (name: string) => join(KEPT, `${name}.json`)
const GIB = 1024 ** 3

/** Last result, stored as JSON beside the checkout's packages. */
interface Kept extends Result {
  /** When it began, UTC. */
  readonly date: string
  readonly commit: string
  readonly rounds: number
  readonly seconds: number
  /** Mean number of processes that wanted to run, over a minute, before it and behind it; the bench is among the latter. */
  readonly load: readonly [number, number]
  readonly machine: string
  readonly versions: Readonly<Partial<Record<PeerName, string>>>
}

interface Shown extends Measurement {
  readonly kept: Kept
}

export interface Setting extends Pick<Kept, 'rounds' | 'seconds'> {
  /** When it began, and the load then. */
  readonly began: Date
  readonly load: number
}

export function keep(name: string, result: Result, { began, load, rounds, seconds }: Setting): void {
  mkdirSync(KEPT, { recursive: true })
  const commit = execFileSync('git', ['describe', '--always', '--dirty'], { cwd: ROOT, encoding: 'utf8' }).trim()
  const kept: Kept = {
    ...result,
    rounds,
    seconds,
    commit,
    date: began.toISOString().slice(0, 16).replace('T', ' '),
    load: [load, loadavg()[0]!],
    machine: machine(),
    versions: versions(),
  }
  writeFileSync(place(name), JSON.stringify(kept))
}

export function writePage(measurements: readonly Measurement[]): void {
  const shown: Shown[] = measurements.flatMap((measurement) => {
    if (!existsSync(place(measurement.name))) return []
    return [{ ...measurement, kept: JSON.parse(readFileSync(place(measurement.name), 'utf8')) as Kept }]
  })
  if (shown.length === 0) return
  const [bars] = shown.flatMap(({ kept }) => kept.bars ?? [])
  if (bars) writeFileSync(join(ROOT, 'docs', PICTURE), plot(bars))
  const parts = [
    INTRODUCTION,
    ...(bars ? [`![${bars.title} of each side](${PICTURE})`] : []),
    '## Targets',
    targets(shown.flatMap(({ kept }) => kept.verdicts)),
    ...shown.map(section),
    '## The sides',
    sides(shown),
    PROFILE,
  ]
  writeFileSync(join(ROOT, 'docs/benchmarks.md'), `${parts.join('\n\n')}\n`)
}

const INTRODUCTION = `# Benchmarks

How fast Errand is, what it takes, and how that compares: against the bare limit of the machine, and against servers for agents that
others wrote. Written by \`script/bench\`, which anybody can run; it is not edited by hand.

One run is two streamed calls of a model, one call of a tool between them, and an answer in 40 fragments. The model is a fake one, in a
process of its own on the same machine, that answers at once: what is measured is what the server adds. The load comes from a process of its
own too, and every answer is checked to be whole. Where speed is compared, all sides are up at the same time and take turns, round by round;
each figure is the median of the rounds. **Ratios are what counts**: the machine is small, and the load generator and the fake model share its cores with
whom they measure, which flatters slow servers.

Errand stores each event durably (SQLite with \`synchronous=FULL\`) before it shows it, as it always does. What the others store, and what
they leave out, stands [below](#the-sides).`

const PROFILE = `## Where the time goes

![Flame graph of the main thread](images/flame-run.svg)

The main thread under 16 runs at once without a sandbox, as \`bench/flame.ts\` draws it; the boxes and their shares are in
[scaling.md](scaling.md#where-a-runs-time-goes). The next three candidates, by their weight: the interpreter's page faults in each
sandbox (what every one of them writes to could be laid together); one bundle of the server's modules instead of 1,200 files; the claim, which reads
every open row where thousands wait (counts by project instead).`

function targets(verdicts: readonly Verdict[]): string {
  const rows = verdicts.map((verdict) => {
    const { row, what, bound, target, measured, unit = '' } = verdict
    const sign = bound === 'at least' ? '≥' : '≤'
    return [row, what, `${sign} ${target}${unit}`, `${short(measured)}${unit}`, hits(verdict) ? 'hit' : '**missed**']
  })
  const missed = verdicts.filter((verdict) => !hits(verdict))
  const why = [...new Set(missed.map(({ row }) => row))].flatMap(
    (row) => REMARKS[row] && `- **${row}**: ${REMARKS[row]}`,
  )
  return [
    `${verdicts.length - missed.length} hit, ${missed.length} missed.`,
    grid({ head: ['row', 'what', 'target', 'measured', ''], rows }),
    ...(why.length > 0 ? ['What was missed, and why it stops there:', why.join('\n')] : []),
  ].join('\n\n')
}

function section({ title, how, name, kept }: Shown): string {
  const { rounds, seconds, commit, date, load, missing = [] } = kept
  const told = `\`script/bench ${name} --rounds ${rounds} --seconds ${seconds}\`, commit ${commit}, ${date} UTC, ${kept.machine}. Load of the machine (mean of a minute) before: ${load[0].toFixed(1)}, behind: ${load[1].toFixed(1)}.`
  return [
    `## ${title}`,
    how,
    told,
    ...missing.map((line) => `Not measured: ${line}`),
    ...kept.tables.map((table) => `**${table.title}**\n\n${grid(table)}`),
  ].join('\n\n')
}

function sides(shown: readonly Shown[]): string {
  const versions: Kept['versions'] = Object.assign({}, ...shown.map(({ kept }) => kept.versions))
  const peers = (Object.keys(PEERS) as PeerName[]).map((name) => {
    const { package: of, directory, lacks } = PEERS[name]
    const version = versions[name] === undefined ? 'not installed here' : `${of} ${versions[name]}`
    return `- **${name}** (${version}; set up in \`bench/peers/${directory}/server.mjs\`): ${lacks}.`
  })
  return [
    '- **bare** (`bench/bare.ts`): a plain Node server and undici that make the same two calls and write the same events. It stores nothing, knows nobody, checks nothing, and has no tool: the limit, not a product.',
    '- **Errand**: as the package and the image hold it (`script/build`) and as it is by default, with limits so high that none is met. Its tool gives the text of a skill, in its own process.',
    '- **Errand with sandbox**: the same; its tool is `code_execution`, which runs Python in a fresh hardened sandbox for each run.',
    ...peers,
  ].join('\n')
}

function machine(): string {
  const [cpu] = cpus()
  const gib = Math.round(totalmem() / GIB)
  return `${cpus().length} cores (${cpu?.model.trim()}), ${gib} GiB, Linux ${release()}, Node ${process.versions.node}`
}

function versions(): Kept['versions'] {
  const found: Partial<Record<PeerName, string>> = {}
  for (const name of Object.keys(PEERS) as PeerName[]) {
    const version = versionOf(name)
    if (version !== undefined) found[name] = version
  }
  return found
}

function grid({ head, rows }: Pick<Table, 'head' | 'rows'>): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  return [
    line(head),
    line(head.map((name) => (name === '' || name === 'what' ? '---' : '---:'))),
    ...rows.map(line),
  ].join('\n')
}
