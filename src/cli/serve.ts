/**
 * `errand serve`: starts the server, prints how to use it, and drains on a signal. After the first signal running interactions
 * have `drainS` to end; a second signal ends the process immediately. Exit code 0: everything was closed. Exit code 1: a part
 * could not be closed in time, or a second signal arrived.
 */
import { setFlagsFromString } from 'node:v8'
import type { Errand } from '../compose.ts'
import { describeBlobs } from '../config/blobs-url.ts'
import type { Config } from '../config.ts'
import { VERSION } from '../domain/version.ts'
import { SELECTING_KEYS } from '../models/providers/registry.ts'
import { aboutModels } from './about-models.ts'
import { type CliContext, paint } from './context.ts'
import { runExample } from './example.ts'
import { createLog } from './log.ts'
import { announceServer } from './running-server.ts'
import { type ConfigOption, listen, loadConfig, startErrand } from './start.ts'

export interface ServeOptions extends ConfigOption {
  readonly example: boolean
}

/** Returns the exit code of the process. Throws Exit if the server cannot start. */
export async function serve(context: CliContext, options: ServeOptions): Promise<number> {
  const config = loadConfig(context, options)
  const stop = stopSignal(context)
  const log = createLog(config.log, context.err)
  const errand = await startErrand(config, { log, mode: 'serve', env: context.env, onPoint: context.onPoint })
  let closed: boolean
  try {
    const { url } = await listenOrShowKey(context, errand, config)
    // By default V8 lets the heap grow to several times the live data before it collects garbage. Twice costs no measurable
    // processor time (1.3 times costs a tenth). Set after the start: code that is being loaded is not garbage.
    setFlagsFromString('--heap-growing-percent=100')
    const announced = await announce(errand, config, url)
    try {
      context.out.write(banner(context, errand, config, url))
      if (options.example) await example(context, errand, url)
      await stop.requested
    } finally {
      await announced?.close()
    }
    context.err.write(
      `Stopping: running interactions have ${config.drainS} s to end. Repeat the signal to stop immediately.\n`,
    )
  } finally {
    closed = await closeInTime(context, errand, config.drainS)
    stop.forget()
  }
  return closed ? 0 : 1
}

/** Time to close everything after the drain, in seconds. A database that does not answer delays each request to it. */
const CLOSE_S = 60

/** Returns false if a part could not be closed. Ends the process if closing takes too long. */
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

/** Lets commands on this data directory find the server. A worker accepts no calls. */
async function announce(errand: Errand, config: Config, url: string) {
  if (config.role === 'worker') return undefined
  // The certificate is valid for the public name only.
  const reached = (config.tls && config.publicUrl) ?? url
  return announceServer(config.dataDir, { url: reached, key: await errand.accounts.temporaryKey('default') })
}

function stopSignal(context: CliContext) {
  const requested = Promise.withResolvers<void>()
  const forget = context.onSignal((_signal, count) => (count > 1 ? context.exitNow(1) : requested.resolve()))
  return { requested: requested.promise, forget }
}

/** Prints the first key even if the server cannot listen: it is shown only once. */
async function listenOrShowKey(context: CliContext, errand: Errand, config: Config): Promise<{ readonly url: string }> {
  try {
    return await listen(errand, config)
  } catch (error) {
    if (errand.firstKey) context.out.write(`The first API key, shown only once: ${errand.firstKey}\n`)
    throw error
  }
}

const NO_REAL_MODEL = `The demo model follows fixed rules. For a real model set one of ${SELECTING_KEYS.join(', ')}, start a local one, or write errand.yaml.`

type Row = readonly [name: string, text: string]

function banner(context: CliContext, errand: Errand, config: Config, url: string): string {
  const bold = (text: string) => paint(context.out, 'bold', text)
  const yellow = (text: string) => paint(context.out, 'yellow', text)
  const { driver, made, enforced, notEnforced } = errand.facts.sandbox
  const [answers, works] = [config.role !== 'worker', config.role !== 'api']
  const reached = config.publicUrl ?? url
  const rows: Row[] = [
    ...rowsOf('role', config.role === 'all' ? [] : [ROLES[config.role]]),
    ...rowsOf('key', errand.firstKey ? [`${bold(errand.firstKey)}   (shown only once; store it now)`] : []),
    ...aboutModels(errand.catalogue.describe()).flatMap(({ text, problem }) => [
      ...rowsOf('model', [text]),
      ...rowsOf('', problem ? [yellow(problem)] : []),
    ]),
    ...rowsOf('', errand.catalogue.describe().every(({ demo }) => demo) ? [NO_REAL_MODEL] : []),
    ...rowsOf(
      'sandbox',
      works
        ? [
            `${driver}${made ? `, ${made}` : ''}; enforced: ${enforced.map(topic).join(', ')} (details: ${context.command} doctor)`,
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
  if (welcome?.path) return `${url}${welcome.path}   (one-time link that makes you the owner; expires in 24 hours)`
  return welcome
    ? `${url}/console   (another node printed the link for the first owner; \`errand console link\` prints a new one)`
    : `${url}/console`
}

const ROLES = {
  api: 'api: accepts calls; workers on the same database run the interactions',
  worker: 'worker: runs interactions; serves only /healthz, /readyz and /metrics',
} as const

/** `memory: 512 MiB (cgroup v1)` → `memory`. */
function topic(fact: string): string {
  return fact.split(':')[0]!
}

/** Puts the name on the first row only. */
function rowsOf(name: string, texts: readonly string[]): Row[] {
  return texts.map((text, i) => [i === 0 ? name : '', text])
}

/** A command to paste. Only the first start can show a key: keys are stored as hashes. */
function tryIt({ command }: CliContext, firstKey: string | undefined, url: string): string {
  const key = firstKey ?? '$ERRAND_API_KEY'
  const hint = firstKey ? '' : `  A key: export ERRAND_API_KEY=$(${command} keys create --name me)\n`
  const body = JSON.stringify({ instruction: 'What is 17 * 23?', tools: ['code_execution'] })
  return `${hint}  curl -s ${url}/v1beta/interactions -H "x-svc-api-key: ${key}" -H 'Content-Type: application/json' -H 'Api-Revision: 2026-05-20' -d '${body}'\n`
}

/** Never throws: the server keeps running if the example fails. */
async function example(context: CliContext, errand: Errand, url: string): Promise<void> {
  if (!errand.firstKey) return
  try {
    await runExample(context, url, errand.firstKey)
  } catch (error) {
    context.err.write(`The example failed: ${(error as Error).message}\nThe server keeps running.\n`)
  }
}
