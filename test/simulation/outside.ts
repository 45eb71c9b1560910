/** The simulated internet, an implementation of src/egress/port.ts: linked files, and webhook receivers. */
import { type Egress, EgressError } from '../../src/egress/port.ts'
import type { Journal } from './journal.ts'
import type { Odds } from './odds.ts'
import type { Process, Scheduler } from './scheduler.ts'

export function createOutside(
  node: Process,
  { scheduler, odds, journal }: { scheduler: Scheduler; odds: Odds; journal: Journal },
): Egress {
  const { random, chance } = scheduler
  return {
    faultOf: () => undefined,
    async fetch(url, { method, headers, signal, onConnect }) {
      const host = new URL(url).hostname
      await onConnect?.({ host, port: 443, outcome: 'dialled' })
      const isWebhook = method === 'POST'
      const aborted = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
      const takesMs = random.next() * (chance(0.1) ? 10_000 : 300)
      await Promise.race([scheduler.sleep(node, takesMs / 2, `${url} is reached`), aborted])
      signal.throwIfAborted()
      // The receiver has the webhook from here on, even if its answer is lost.
      if (isWebhook) journal.told(headers!['webhook-id']!)
      await Promise.race([scheduler.sleep(node, takesMs / 2, `${url} answers`), aborted])
      signal.throwIfAborted()
      const fails = chance(isWebhook ? odds.receiverFails : odds.addressFails)
      if (fails && chance(0.5)) throw new EgressError('unreachable', `${host} can't be reached.`)
      const status = fails ? random.pick([404, 500, 503]) : 200
      return { status, headers: { 'content-type': 'text/plain' }, body: bodyOf(url), close() {} }
    },
    openProxy() {
      throw new Error('not simulated')
    },
    trusted: () => '',
  }
}

async function* bodyOf(url: string) {
  yield Buffer.from(url)
}
