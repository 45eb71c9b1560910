/** Resolves names by DNS only: no hosts file, no search domains, and no thread that a slow name server could block. */
import { Resolver } from 'node:dns/promises'

/** Returns all addresses of a name. Rejects or returns an empty list if there are none. */
export type Resolve = (host: string) => Promise<readonly string[]>

const TIMEOUT_MS = 5_000
const TRIES = 2

export const resolveByDns: Resolve = async (host) => {
  const resolver = new Resolver({ timeout: TIMEOUT_MS, tries: TRIES })
  const answers = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)])
  return answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
}
