/** Child process of memory.test.ts: runs attacks on the guard one after another and reports its peak memory. */
import { duplexPair } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { pino } from 'pino'
import { createEgress } from '../../src/egress/create-egress.ts'
import { createLibraryFetch } from '../../src/egress/library-fetch.ts'

const [port = '', ...attacks] = process.argv.slice(2)
const origin = `http://127.0.0.1:${port}`
const egress = createEgress({ allowPrivate: [`127.0.0.1:${port}`], log: pino({ level: 'silent' }), idleMs: 500 })
const signal = new AbortController().signal
/** Maximum overhead of HTTP framing through the proxy (header, chunk lengths), in bytes. */
const MAX_FRAMING = 100_000
const CAP = 256 * 1024 * 1024

async function drain(path: string, maxBytes = CAP, timeoutMs = 60_000): Promise<string> {
  try {
    const { body } = await egress.fetch(origin + path, { signal, maxBytes, timeoutMs })
    let total = 0
    for await (const chunk of body) total += chunk.byteLength
    return `${total} bytes`
  } catch (error) {
    return (error as { code: string }).code
  }
}

async function libraryDrain(path: string): Promise<string> {
  const fetch = createLibraryFetch(egress, { signal, maxBytes: CAP, timeoutMs: 60_000 })
  try {
    let total = 0
    for await (const chunk of (await fetch(origin + path)).body!) total += chunk.byteLength
    return `${total} bytes`
  } catch (error) {
    return (error as { code: string }).code
  }
}

/** Downloads through the proxy, as slowly as a sandbox would read. */
async function proxyDrain(path: string): Promise<string> {
  const budget = { bytes: CAP, spent: 'spent' }
  const network = { allow: [`name.localhost:${port}`] }
  const proxy = egress.openProxy({ network, budget, onConnect: () => {}, idleMs: 500 })
  const [inside, outside] = duplexPair()
  proxy.handle(outside)
  inside.write(`GET http://name.localhost:${port}${path} HTTP/1.1\r\nHost: x\r\n\r\n`)
  let total = 0
  try {
    for await (const chunk of inside) {
      total += chunk.byteLength
      await sleep(1)
    }
    return `${total} bytes`
  } catch {
    return total <= CAP + MAX_FRAMING ? 'cut' : `${total} bytes, and a cut`
  }
}

const ATTACKS: Readonly<Record<string, () => Promise<string>>> = {
  'an endless download': () => drain('/endless'),
  'a download that drips for ever': () => drain('/drip', CAP, 1_500),
  'a download that stops': () => drain('/stall'),
  'a gzip bomb as a file': () => drain('/bomb'),
  'a gzip bomb for a library': () => libraryDrain('/bomb'),
  'an endless answer for a library': () => libraryDrain('/endless'),
  'an endless download by a sandbox': () => proxyDrain('/endless'),
  'a hundred that stall, at once': async () => {
    const all = await Promise.all(Array.from({ length: 100 }, () => drain('/stall')))
    return [...new Set(all)].join()
  },
}

// Loads all code first, so that it is not counted.
for (const download of [drain, libraryDrain, proxyDrain]) await download('/small')
const before = process.memoryUsage.rss()
const outcomes: Record<string, string> = {}
for (const name of attacks) outcomes[name] = await ATTACKS[name]!()
const grownBytes = process.resourceUsage().maxRSS * 1024 - before
process.stdout.write(JSON.stringify({ outcomes, grownBytes }))
