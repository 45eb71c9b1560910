/**
 * `errand serve`: starts, prints on stdout what a newcomer needs, serves until a signal, drains. The first signal lets
 * running interactions go on for `drainS`; the second ends the process at once. Exit code 0: everything was closed. 1: a part
 * could not be closed, or not in time, or a second signal came.
 */
import { setFlagsFromString } from 'node:v8'
import type { Errand } from '../compose.ts'
import { describeBlobs } from '../config/blobs-url.ts'
import type { Config } from '../config.ts'
import { VERSION } from '../domain/version.ts'
import { aboutModels } from './about-models.ts'
import { type CliContext, paint } from './context.ts'
import { runExample } from './example.ts'
import { createLog } from './log.ts'
import { announceServer } from './running-server.ts'
import { type ConfigOption, listen, loadConfig, startErrand } from './start.ts'

export interface ServeOptions extends ConfigOption {
  readonly example: boolean
}

/** The process's exit code. Throws Exit where it can't start. */
export async function serve(context: CliContext, options: ServeOptions): Promise<number> {
  const config = loadConfig(context, options)
  const stop = stopSignal(context)
  const log = createLog(config.log, context.err)
  const errand = await startErrand(config, { log, mode: 'serve', env: context.env, onPoint: context.onPoint })
  let closed: boolean
  try {
    const { url } = await listenOrShowKey(context, errand, config)
    // V8 would let garbage grow to several times what lives before it looks. At twice that costs no processor time that could
    // be seen (at 1.3 times a tenth). Not from the beginning: while it is loaded, all that comes stays.
    setFlagsFromString('--heap-growing-percent=100')
    const announced = await announce(errand, config, url)
    try {
      context.out.write(banner(context, errand, config, url))
      if (options.example) await example(context, errand, url)
      await stop.requested
    } finally {
      await announced?.close()
    }
    context.err.write(`Stopping: running interactions have ${config.drainS} s to end. Once more to stop at once.\n`)
  } finally {
    closed = await closeInTime(context, errand, config.drainS)
    stop.forget()
  }
  return closed ? 0 : 1
}

/** What the end may take beyond the drain: a database that does not answer holds up each request to it. */
const CLOSE_S = 60

/** False where not everything could be closed; ends the process where that takes too long. */
async function closeInTime(context: CliContext, errand: Errand, drainS: number): Promise<boolean> {
  const late = setTimeout(
    () => {
      context.err.write(`Not everything could be closed within ${drainS + CLOSE_S} s. Ending the process.\n`)
      context.exitNow(1)
    },
    (drainS + CLOSE_S) * 1_000,
  )
  try {
    return await errand.close(drainS * 1_000)
  } finally {
    clearTimeout(late)
  }
}

/** Lets commands on this data directory find the server. A worker answers no calls. */
async function announce(errand: Errand, config: Config, url: string) {
  if (config.role === 'worker') return undefined
  // The certificate is for the public name.
  const reached = (config.tls && config.publicUrl) ?? url
  return announceServer(config.dataDir, { url: reached, key: await errand.accounts.temporaryKey('default') })
}

function stopSignal(context: CliContext) {
  const requested = Promise.withResolvers<void>()
  const forget = context.onSignal((_signal, count) => (count > 1 ? context.exitNow(1) : requested.resolve()))
  return { requested: requested.promise, forget }
}

/** A first key that was made and never shown would be lost for good. */
async function listenOrShowKey(context: CliContext, errand: Errand, config: Config): Promise<{ readonly url: string }> {
  try {
    return await listen(errand, config)
  } catch (error) {
    if (errand.firstKey) context.out.write(`The first API key, shown this once: ${errand.firstKey}\n`)
    throw error
  }
}

const NO_REAL_MODEL =
  'It has no intelligence. For a real model set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, start a local one, or write errand.yaml.'

type Row = readonly [name: string, text: string]

function banner(context: CliContext, errand: Errand, config: Config, url: string): string {
  const bold = (text: string) => paint(context.out, 'bold', text)
  const yellow = (text: string) => paint(context.out, 'yellow', text)
  const { driver, made, enforced, notEnforced } = errand.facts.sandbox
  const [answers, works] = [config.role !== 'worker', config.role !== 'api']
  const reached = config.publicUrl ?? url
  const rows: Row[] = [
    ...rowsOf('role', config.role === 'all' ? [] : [ROLES[config.role]]),
    ...rowsOf('key', errand.firstKey ? [`${bold(errand.firstKey)}   (shown this once; keep it)`] : []),
    ...aboutModels(errand.catalogue.describe()).flatMap(({ text, problem }) => [
      ...rowsOf('model', [text]),
      ...rowsOf('', problem ? [yellow(problem)] : []),
    ]),
    ...rowsOf('', errand.catalogue.describe().every(({ demo }) => demo) ? [NO_REAL_MODEL] : []),
    ...rowsOf(
      'sandbox',
      works
        ? [
            `${driver}${made ? `, ${made}` : ''}; enforced: ${enforced.map(topic).join(', ')} (${context.command} doctor tells more)`,
          ]
        : [],
    ),
    ...rowsOf('web search', errand.facts.tools.includes('web_search') ? [errand.search] : []),
    ...rowsOf('not enforced', notEnforced.map(yellow)),
    ['data', config.databaseUrl === undefined ? config.dataDir : `in Postgres; this node’s own in ${config.dataDir}`],
    ...rowsOf('files', config.blobs.kind === 's3' ? [describeBlobs(config.blobs)] : []),
    ...rowsOf('console', answers ? [consoleAddress(errand, reached)] : []),
    ...rowsOf('docs', answers ? [`${reached}/docs`] : []),
  ]
  const width = Math.max(...rows.map(([name]) => name.length))
  const body = rows.map(([name, text]) => `  ${paint(context.out, 'dim', name.padEnd(width))}  ${text}\n`).join('')
  return `\n${bold(`Errand ${VERSION}`)} is listening on ${bold(url)}\n\n${body}\n${answers ? `${tryIt(context, errand.firstKey, reached)}\n` : ''}`
}

function consoleAddress({ welcome }: Errand, url: string): string {
  if (welcome?.path) return `${url}${welcome.path}   (makes you its owner; good once, for a day)`
  return welcome
    ? `${url}/console   (another node showed the link that makes its owner; \`errand console link\` makes a new one)`
    : `${url}/console`
}

const ROLES = {
  api: 'api: answers callers; workers on the same database do the work',
  worker: 'worker: works on interactions; answers /healthz, /readyz and /metrics alone',
} as const

/** `memory: 512 MiB (cgroup v1)` → `memory`. */
function topic(fact: string): string {
  return fact.split(':')[0]!
}

/** The name stands on the first row only. */
function rowsOf(name: string, texts: readonly string[]): Row[] {
  return texts.map((text, i) => [i === 0 ? name : '', text])
}

/** Ready to paste. Without a first key there is no key to show: keys are stored as hashes. */
function tryIt({ command }: CliContext, firstKey: string | undefined, url: string): string {
  const key = firstKey ?? '$ERRAND_API_KEY'
  const hint = firstKey ? '' : `  A key: export ERRAND_API_KEY=$(${command} keys create --name me)\n`
  const body = JSON.stringify({ instruction: 'What is 17 * 23?', tools: ['code_execution'] })
  return `${hint}  curl -s ${url}/v1beta/interactions -H "x-svc-api-key: ${key}" -H 'Content-Type: application/json' -H 'Api-Revision: 2026-05-20' -d '${body}'\n`
}

/** The server stays up whatever becomes of the example. */
async function example(context: CliContext, errand: Errand, url: string): Promise<void> {
  if (!errand.firstKey) return
  try {
    await runExample(context, url, errand.firstKey)
  } catch (error) {
    context.err.write(`The example did not work: ${(error as Error).message}\nThe server is up all the same.\n`)
  }
}
