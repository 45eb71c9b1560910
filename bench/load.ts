/**
 * The load generator, a separate process: keeps a number of runs active for a number of seconds or runs in total, and checks that
 * each run is complete.
 *
 *     node bench/load.ts '{"dialect": "errand", "url": "http://…", "atOnce": 16, "seconds": 3}'
 *
 * Prints one line of JSON, a `Loaded`. With `hold` it waits until all runs are held and prints `held`; then the parent process
 * lets the provider continue. A run that fails before that ends it.
 */
import { Agent } from 'undici'
import { DIALECTS, type DialectName, type Target } from './dialects.ts'
import { median, quantile } from './figures.ts'

export interface Load extends Target {
  readonly dialect: DialectName
  readonly atOnce: number
  /** Seconds during which runs are started. */
  readonly seconds?: number
  /** Maximum number of runs. */
  readonly runs?: number
  readonly hold?: boolean
}

export interface Loaded {
  readonly runs: number
  readonly perSecond: number
  /** Milliseconds to the first event from the model, and to the end. */
  readonly first: Spread
  readonly total: Spread
  readonly failed: number
  /** Error of the first failed run. */
  readonly why: string
}

interface Spread {
  readonly median: number
  readonly p99: number
}

/** Begun and not yet held: with all at once, some servers' queues of connections overflow, and some are cut off. */
const STARTING_AT_ONCE = 64

const {
  dialect,
  atOnce,
  seconds = Infinity,
  runs = Infinity,
  hold = false,
  ...target
}: Load = JSON.parse(process.argv[2]!)
const dispatcher = new Agent({ connections: atOnce, pipelining: 1 })
const run = DIALECTS[dialect]
const firsts: number[] = []
const totals: number[] = []
let begun = 0
let held = 0
let failed = 0
let why = ''
let starting = 0
const waiting: (() => void)[] = []

const began = performance.now()
await Promise.all(Array.from({ length: atOnce }, worker))
const took = (performance.now() - began) / 1_000
await dispatcher.close()
tell(took)

function tell(tookS: number): void {
  const spread = (values: readonly number[]): Spread => ({ median: median(values), p99: quantile(values, 0.99) })
  const loaded: Loaded = {
    runs: begun,
    perSecond: begun / tookS,
    first: spread(firsts),
    total: spread(totals),
    failed,
    why,
  }
  console.log(JSON.stringify(loaded))
}

async function worker(): Promise<void> {
  while (begun < runs && performance.now() - began < seconds * 1_000) {
    begun++
    if (hold) await mayStart()
    const wrong = await once().catch((error) => String(error))
    if (wrong === undefined) continue
    failed++
    why ||= wrong
    if (!hold || held === atOnce) continue
    tell(Number.NaN)
    process.exit(1)
  }
}

async function once(): Promise<string | undefined> {
  const started = performance.now()
  let first = Number.NaN
  const wrong = await run({
    ...target,
    dispatcher,
    instruction: hold ? 'find the answer [hold]' : 'find the answer',
    onFirst: () => {
      first = performance.now() - started
    },
    ...(hold && { onHeld }),
  })
  firsts.push(first)
  totals.push(performance.now() - started)
  return wrong
}

async function mayStart(): Promise<void> {
  if (starting++ >= STARTING_AT_ONCE) await new Promise<void>((resolve) => waiting.push(resolve))
}

function onHeld(): void {
  starting--
  waiting.shift()?.()
  if (++held === atOnce) console.log('held')
}
