/**
 * The load generator, in a process of its own: streamed runs, so many at once, so many in all; each is checked to have
 * its 40 fragments and its end.
 *
 *     node bench/load.ts URL AT_ONCE RUNS [KEY]
 *
 * Prints one line of JSON: runs a second, milliseconds to the first event and in all (medians and 99th), failures.
 */
import { Agent, request } from 'undici'

const [, , url = '', atOnce = '1', runs = '100', key] = process.argv
const dispatcher = new Agent({ connections: Number(atOnce), pipelining: 1 })
const tools = process.env.BENCH_TOOLS?.split(',') ?? []
const firsts: number[] = []
const totals: number[] = []
let left = Number(runs)
let failed = 0
let why = ''

async function run(): Promise<void> {
  const started = performance.now()
  let first: number | undefined
  const { statusCode, body } = await request(url, {
    dispatcher,
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'text/event-stream', ...(key && { 'x-svc-api-key': key }) },
    body: JSON.stringify({ instruction: 'find the answer', tools }),
    headersTimeout: 0,
    bodyTimeout: 0,
  })
  let text = ''
  for await (const bytes of body) {
    text += bytes
    if (first === undefined && /event: (tool_call|reasoning_started)/.test(text)) first = performance.now() - started
  }
  const whole =
    text.includes('fragment 39') && text.includes('"status":"completed"') && text.includes('event: tool_result')
  if (statusCode !== 200 || !whole) {
    failed++
    why ||= `${statusCode} ${text.slice(0, 300)}`
  }
  firsts.push(first ?? Number.NaN)
  totals.push(performance.now() - started)
}

async function worker(): Promise<void> {
  while (left-- > 0) {
    await run().catch((error) => {
      failed++
      why ||= String(error)
    })
  }
}

const at = (values: number[], share: number) =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))]
const began = performance.now()
await Promise.all(Array.from({ length: Number(atOnce) }, worker))
const seconds = (performance.now() - began) / 1000
await dispatcher.close()
const ms = (values: number[]) => ({ median: at(values, 0.5), p99: at(values, 0.99) })
console.log(JSON.stringify({ perSecond: Number(runs) / seconds, first: ms(firsts), total: ms(totals), failed, why }))
