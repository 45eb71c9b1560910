/** Cached input and cost of long runs with Anthropic's API, and runs whose streams break or whose server is killed. */
import { setTimeout as sleep } from 'node:timers/promises'
import { openFakeAnthropic } from '../../test/support/model-provider/messages.ts'
import type { Reply } from '../../test/support/model-provider/script.ts'
import type { RecordedRequest } from '../../test/support/model-provider/serve.ts'
import { randomOf } from '../../test/support/prove.ts'
import type { Plan, Verdict } from '../measurement.ts'
import { type Interaction, openAgentServer, restOf, resultsSince } from './agent-server.ts'

/** Public prices of Claude Opus, in US dollars per million tokens. */
const PRICE = { input: 5, output: 25, cachedInput: 0.5, cacheWrite: 6.25 }
/** Code whose output has about 500 tokens. */
const CODE = "print('0123456789abcdef' * 125)"
/** A system instruction as long as that of an agent with some skills: about 20,000 tokens. */
const SYSTEM = 'Work step by step. '.repeat(4_000)
const DONE = `Done. ${Array.from({ length: 30 }, (_, i) => `Part ${i} is done. `).join('')}`
const SEED = 16

const cachedShare = ({ usage }: Interaction): number => usage.cached_input_tokens / usage.input_tokens

/** Replies of a model that makes `turns` calls and answers. */
function works(turns: number, marker: string, onTurn?: (turn: number) => void) {
  return (request: RecordedRequest<unknown>): Reply => {
    const done = resultsSince(marker, request)
    onTurn?.(done)
    if (done >= turns) return { text: restOf(DONE, marker, request) }
    const call = { name: 'code_execution', args: { code: `${CODE}  # ${done}` } }
    return { reasoning: `Step ${done}.`, text: 'Next. ', toolCalls: [call] }
  }
}

/** Row A1. */
export async function caching({ short, log }: Plan): Promise<Verdict[]> {
  const turns = short ? 8 : 60
  const provider = await openFakeAnthropic()
  const server = await openAgentServer(provider, { model: { price: PRICE } })
  const request = (marker: string, rest: object = {}) => ({ instruction: marker, systemInstruction: SYSTEM, ...rest })
  const checked = async (marker: string, rest?: object) => {
    const run = await server.run(request(marker, rest))
    if (run.output !== DONE) throw new Error(`${marker}: ${run.status} ${JSON.stringify(run.error ?? run.output)}`)
    return run
  }
  try {
    for (const marker of ['[plain]', '[uncached]', '[follow-on]']) provider.when(marker, works(turns, marker))
    const plain = await checked('[plain]')
    log(`${turns} turns: ${plain.usage.input_tokens} input tokens`)
    const uncached = await checked('[uncached]', { model: 'uncached' })
    const followOn = await checked('[follow-on]', { previousInteractionId: plain.interactionId })
    // A run fails after the third crash, so there are two.
    const kills = [Math.floor(turns / 4), Math.floor((3 * turns) / 4)]
    const onTurn = (turn: number) => {
      if (turn !== kills[0]) return
      kills.shift()
      void server.kill()
    }
    provider.when('[killed]', works(turns, '[killed]', onTurn))
    const killed = await checked('[killed]')
    const refused = provider.requests.filter(({ refused }) => refused !== undefined).length
    const share = (what: string, run: Interaction): Verdict => ({
      row: 'A1',
      what: `input read from the cache, ${turns} tool turns${what}`,
      measured: 100 * cachedShare(run),
      bound: 'at least',
      target: 95,
      unit: ' %',
    })
    const cost = ({ usage }: Interaction) => Number(usage.cost.amount)
    return [
      share('', plain),
      share(', two SIGKILLs', killed),
      share(', in a follow-on', followOn),
      {
        row: 'A1',
        what: 'cost against the same run with cache: off',
        measured: cost(plain) / cost(uncached),
        bound: 'at most',
        target: 0.13,
      },
      { row: 'A1', what: 'requests that the provider refused', measured: refused, bound: 'at most', target: 0 },
    ]
  } finally {
    await server.close()
    await provider.close()
  }
}

/** Row A2. */
export async function brokenStreams({ short, rounds, log }: Plan): Promise<Verdict[]> {
  const [turns, runs, broken] = short ? [10, 2, 0.2] : [300, rounds, 0.003]
  const provider = await openFakeAnthropic({ faults: { seed: SEED, broken }, window: 10_000_000 })
  const server = await openAgentServer(provider)
  try {
    const markers = Array.from({ length: runs }, (_, i) => `[broken ${i}]`)
    for (const marker of markers) provider.when(marker, works(turns, marker))
    const ends = await Promise.all(markers.map((marker) => server.run({ instruction: marker })))
    const failures = ends.flatMap(({ error }) => error ?? [])
    for (const { message } of failures) log(message)
    log(`${provider.requests.length} calls for ${runs * (turns + 1)} turns`)
    const complete = ends.filter(({ status, output }) => status === 'completed' && output.endsWith(DONE)).length
    const what = `${turns} turns with ${100 * broken} % of streams broken: runs that complete`
    return [{ row: 'A2', what, measured: (100 * complete) / runs, bound: 'at least', target: 100, unit: ' %' }]
  } finally {
    await server.close()
    await provider.close()
  }
}

/** Runs that are killed together. */
const BATCH = 20

/** Row A3. */
export async function killedAnswers({ short, rounds, log }: Plan): Promise<Verdict[]> {
  const runs = short ? 4 : 40 * rounds
  const words = Array.from({ length: 30 }, (_, i) => `Sentence ${i} ${'of many words '.repeat(6)}. `)
  const answer = words.join('')
  const random = randomOf(SEED)
  const provider = await openFakeAnthropic()
  const server = await openAgentServer(provider)
  let complete = 0
  try {
    for (let first = 0; first < runs; first += BATCH) {
      const markers = Array.from({ length: Math.min(BATCH, runs - first) }, (_, i) => `[kill ${first + i}]`)
      for (const marker of markers) {
        // Held until the server dies.
        const held: Reply = { text: words, hold: new Promise(() => {}), holdAfter: random.whole(8, 25) }
        let answers = 0
        provider.when(marker, (request) => {
          const call = { name: 'code_execution', args: { code: CODE } }
          if (resultsSince(marker, request) === 0) return { toolCalls: [call] }
          return answers++ === 0 ? held : { text: restOf(answer, marker, request) }
        })
      }
      const ids = await Promise.all(markers.map((instruction) => server.start({ instruction })))
      while ((await Promise.all(ids.map(server.get))).some(({ output }) => !output)) await sleep(20)
      await server.kill()
      const ends = await Promise.all(ids.map(server.ended))
      complete += ends.filter(({ status, output }) => status === 'completed' && output === answer).length
      log(`${complete} of ${first + ids.length} complete`)
    }
    const what = `kill -9 while the answer streams, ${runs} runs: complete, with the exact text`
    return [{ row: 'A3', what, measured: (100 * complete) / runs, bound: 'at least', target: 100, unit: ' %' }]
  } finally {
    await server.close()
    await provider.close()
  }
}
