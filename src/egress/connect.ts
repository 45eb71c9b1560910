/** Opens connections to hosts: resolves the name once, checks every address, audits the connection, then dials. */
import type { Socket } from 'node:net'
import type { Log } from '../telemetry/log.ts'
import { type Dialling, openSocket } from './dial.ts'
import type { FetchTimeout } from './fetch-timeout.ts'
import { EgressError, type OutboundConnection } from './port.ts'
import type { Resolve } from './resolve.ts'
import type { HostPort, SsrfPolicy } from './ssrf-policy.ts'

/** Opens a connection, with TLS if the host and port need it. Throws EgressError, the signal's reason, or what `onConnect` throws. */
export type Connect = (
  hostPort: HostPort,
  onConnect: OnConnect | undefined,
  fetchTimeout: FetchTimeout,
) => Promise<Socket>
export type OnConnect = (connection: OutboundConnection) => void | Promise<void>

export interface ConnectDependencies extends Dialling {
  readonly policy: SsrfPolicy
  readonly resolve: Resolve
  readonly log: Log
}

export function createConnect({ policy, resolve, log, ...dialling }: ConnectDependencies): Connect {
  async function addressesOf({ address, host }: HostPort, fetchTimeout: FetchTimeout): Promise<readonly string[]> {
    if (address !== undefined) return [address]
    return fetchTimeout.await(resolve(host)).catch(() => {
      fetchTimeout.signal.throwIfAborted()
      return []
    })
  }

  return async function connect(hostPort, onConnect, fetchTimeout) {
    const { host, port } = hostPort
    const addresses = await addressesOf(hostPort, fetchTimeout)
    if (addresses.length === 0) {
      // A DNS lookup also reaches outside, so it is audited.
      await onConnect?.({ host, port, outcome: 'unresolved' })
      throw new EgressError('unreachable', `No address was found for ${host}.`)
    }
    const allowed = addresses.every((address) => policy.mayDial(hostPort, address))
    await onConnect?.({ host, port, outcome: allowed ? 'dialled' : 'refused' })
    if (!allowed) {
      log.warn({ host, port }, 'refused to connect to an address that is not public')
      throw new EgressError('refused', `${host} is not a public address.`)
    }
    log.debug({ host, port }, 'connecting')
    const opening = openSocket(dialling, hostPort, addresses, fetchTimeout.signal)
    try {
      return await fetchTimeout.await(opening)
    } catch (error) {
      opening.then((socket) => socket.destroy()).catch(() => {})
      fetchTimeout.signal.throwIfAborted()
      throw unreachable(host, error)
    }
  }
}

export function unreachable(host: string, error: unknown): EgressError {
  return new EgressError('unreachable', `${host} can't be reached${codeOf(error)}.`, error)
}

/** The system's error code, in parentheses; empty if there is none. */
export function codeOf(error: unknown): string {
  const { code } = error as { code?: unknown }
  return typeof code === 'string' ? ` (${code})` : ''
}
