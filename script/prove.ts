/**
 * Runs the rows of the proof (test/prove/rows.ts) at their full counts, each in its own vitest process, and reports each as it ends.
 * Writes docs/proof.md from the last result of every row. Arguments: the rows to run; default: all. Exit code 1: a row failed.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, release, totalmem } from 'node:os'
import { join } from 'node:path'
import { ROWS, type Row, testsOf } from '../test/prove/rows.ts'
import { findPostgres } from '../test/support/cluster.ts'

/** Result of a row, stored as JSON beside its log. */
interface Outcome {
  readonly date: string
  readonly commit: string
  readonly seed: string
  readonly passed: number
  readonly failed: number
  readonly skipped: number
  readonly seconds: number
  readonly figures: readonly { readonly name: string; readonly value: number | string }[]
}

const ROOT = join(import.meta.dirname, '..')
const KEPT = join(ROOT, 'node_modules/.proof')
const GIB = 1024 ** 3
const place = (id: string, kind: 'json' | 'log' | 'figures') => join(KEPT, `${id}.${kind}`)

function main(names: readonly string[]): void {
  const stranger = names.find((name) => !ROWS.some(({ id }) => id === name))
  if (stranger !== undefined) {
    console.error(`There is no row ${stranger}: ${ROWS.map(({ id }) => id).join(' ')}`)
    process.exit(2)
  }
  mkdirSync(KEPT, { recursive: true })
  const seed = process.env.ERRAND_SEED ?? String(Math.floor(Math.random() * 2 ** 32))
  console.log(`ERRAND_SEED=${seed}; what the tests print is in ${KEPT}/ROW.log`)
  let held = true
  for (const row of ROWS.filter(({ id }) => names.length === 0 || names.includes(id))) {
    if (testsOf(row).length > 0) {
      const outcome = prove(row, seed)
      writeFileSync(place(row.id, 'json'), JSON.stringify(outcome))
      held &&= outcome.failed === 0
    }
    console.log(line(row))
    writeFileSync(join(ROOT, 'docs/proof.md'), report())
  }
  process.exit(held ? 0 : 1)
}

function prove(row: Row, seed: string): Outcome {
  const started = performance.now()
  const [log, figures, result] = [place(row.id, 'log'), place(row.id, 'figures'), join(KEPT, 'report.json')]
  for (const stale of [figures, result]) rmSync(stale, { force: true })
  const out = openSync(log, 'w')
  const env = { ...process.env, PROVE: '1', PROVE_FIGURES: figures, ERRAND_SEED: seed }
  const run = (command: string, args: readonly string[]) =>
    spawnSync(command, args, { cwd: ROOT, env, stdio: ['ignore', out, out] }).status === 0
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${result}`]
  const tested = run('vitest', ['run', ...reporters, ...testsOf(row)])
  const counts = countsOf(result)
  const scripted = row.script === undefined || run(join(ROOT, row.script), [])
  return {
    date: new Date().toISOString().slice(0, 10),
    commit: commit(),
    seed,
    passed: counts.passed + (row.script !== undefined && scripted ? 1 : 0),
    // A run without a report counts as a failure.
    failed: (tested ? counts.failed : Math.max(1, counts.failed)) + (scripted ? 0 : 1),
    skipped: counts.skipped,
    seconds: Math.round((performance.now() - started) / 1_000),
    figures: existsSync(figures)
      ? readFileSync(figures, 'utf8')
          .trim()
          .split('\n')
          .map((text) => JSON.parse(text))
      : [],
  }
}

function countsOf(report: string): Pick<Outcome, 'passed' | 'failed' | 'skipped'> {
  if (!existsSync(report)) return { passed: 0, failed: 1, skipped: 0 }
  const { numPassedTests, numFailedTests, numTotalTests } = JSON.parse(readFileSync(report, 'utf8'))
  return { passed: numPassedTests, failed: numFailedTests, skipped: numTotalTests - numPassedTests - numFailedTests }
}

function outcomeOf({ id }: Row): Outcome | undefined {
  return existsSync(place(id, 'json')) ? JSON.parse(readFileSync(place(id, 'json'), 'utf8')) : undefined
}

function verdict(row: Row): string {
  if (testsOf(row).length === 0) return '**not proved**: there is no test yet'
  const outcome = outcomeOf(row)
  if (!outcome) return '**not proved**: not run'
  if (outcome.failed > 0) return `**failed**: ${outcome.failed} of ${outcome.passed + outcome.failed} tests`
  if (outcome.skipped > 0) return `**in part**: ${outcome.skipped} tests left out`
  return 'holds'
}

function line(row: Row): string {
  const seconds = outcomeOf(row)?.seconds ?? 0
  return [row.id.padEnd(4), `${seconds} s`.padStart(7), verdict(row).padEnd(30), row.fault].join('  ')
}

function report(): string {
  const rows = ROWS.map((row) => `| ${row.id} | ${row.fault} | ${row.pass} | ${verdict(row)} |`)
  return `<!-- Written by script/prove. -->
# Proof

The faults and attacks that Errand is tested with, the required results, and the outcomes. \`script/prove\` runs every row
at full length and writes this page. Every run of the tests (\`script/test\`, also in CI) has the same rows in a short form.
\`test/prove/rows.ts\` lists the rows and their tests.

After each row with interactions, the tests check that:

- the events of each interaction are numbered 1..n without a gap, and its one end is the last of them;
- the fragments joined are the output, and the trace by GET is the same as in the stream;
- no worker wrote after it had lost its lease;
- every acknowledged interaction exists, and has ended.

Machine: ${machine()}.

| | fault or attack | required result | outcome |
|---|---|---|---|
${rows.join('\n')}

## Figures
${ROWS.map(details).filter(Boolean).join('\n')}
`
}

/** Figures of a row, and how they were measured. */
function details(row: Row): string {
  const outcome = outcomeOf(row)
  if (!outcome) return ''
  const { date, commit, seed, passed, seconds, figures } = outcome
  const facts = [
    ...figures.map(({ name, value }) => `${name}: ${value}`),
    ...(row.gap ? [`Not shown: ${row.gap}.`] : []),
  ]
  const heading = `
### ${row.id}: ${row.fault}
${date}, at ${commit}, ERRAND_SEED=${seed}: ${passed} tests passed in ${seconds} s.`
  return [heading, ...(facts.length > 0 ? [''] : []), ...facts.map((fact) => `- ${fact}`)].join('\n')
}

/** The page that is written here makes no other code of it. */
function commit(): string {
  const changed = said('git', ['status', '--porcelain', '--untracked-files=no', '--', '.', ':!docs/proof.md']) !== ''
  return `${said('git', ['rev-parse', '--short', 'HEAD'])}${changed ? '-dirty' : ''}`
}

function machine(): string {
  const postgres = findPostgres()
  const parts = [
    `${cpus().length} × ${cpus()[0]?.model.trim()}`,
    `${Math.round(totalmem() / GIB)} GiB`,
    `Linux ${release()}`,
    `Node ${process.version}`,
    postgres && said(join(postgres, 'postgres'), ['--version']),
    process.getuid?.() === 0 ? 'as root' : 'not as root (sandboxes by bubblewrap alone)',
    said('bwrap', ['--version']),
    said('dockerd', ['--version']),
    said('/usr/lib/chromium/chromium-headless-shell', ['--version']),
  ]
  return parts.filter(Boolean).join(', ')
}

/** First line of a program's output; empty if the program is not installed. */
function said(command: string, args: readonly string[]): string {
  return (spawnSync(command, args, { cwd: ROOT, encoding: 'utf8' }).stdout ?? '').split('\n')[0]!.trim()
}

main(process.argv.slice(2))
