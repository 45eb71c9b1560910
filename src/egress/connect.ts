/** The way to a place, the same for whatever is sent there: name resolved once, addresses judged, told, dialled. */
import type { Socket } from 'node:net'
import type { Log } from '../telemetry/log.ts'
import { type Dialling, openSocket } from './dial.ts'
import type { Patience } from './patience.ts'
import { EgressError, type OutboundConnection } from './port.ts'
import type { Resolve } from './resolve.ts'
import type { Judge, Place } from './ssrf-policy.ts'

/** A connection to the place, encrypted where it is to be. Throws EgressError, the signal's reason, what `onConnect` throws. */
export type Reach = (place: Place, onConnect: OnConnect | undefined, patience: Patience) => Promise<Socket>
export type OnConnect = (connection: OutboundConnection) => void | Promise<void>

export interface ReachParts extends Dialling {
  readonly judge: Judge
  readonly resolve: Resolve
  readonly log: Log
}

export function createReach({ judge, resolve, log, ...dialling }: ReachParts): Reach {
  async function addressesOf({ address, host }: Place, patience: Patience): Promise<readonly string[]> {
    if (address !== undefined) return [address]
    return patience.await(resolve(host)).catch(() => {
      patience.signal.throwIfAborted()
      return []
    })
  }

  return async function reach(place, onConnect, patience) {
    const { host, port } = place
    const addresses = await addressesOf(place, patience)
    if (addresses.length === 0) {
      // A look-up is a word to a stranger, too.
      await onConnect?.({ host, port, outcome: 'unresolved' })
      throw new EgressError('unreachable', `No address was found for ${host}.`)
    }
    const allowed = addresses.every((address) => judge.mayDial(place, address))
    await onConnect?.({ host, port, outcome: allowed ? 'dialled' : 'refused' })
    if (!allowed) {
      log.warn({ host, port }, 'refused to connect to an address that is not public')
      throw new EgressError('refused', `${host} is not a public address.`)
    }
    log.debug({ host, port }, 'connecting')
    const opening = openSocket(dialling, place, addresses, patience.signal)
    try {
      return await patience.await(opening)
    } catch (error) {
      opening.then((socket) => socket.destroy()).catch(() => {})
      patience.signal.throwIfAborted()
      throw unreachable(host, error)
    }
  }
}

export function unreachable(host: string, error: unknown): EgressError {
  return new EgressError('unreachable', `${host} can't be reached${codeOf(error)}.`, error)
}

/** The system's word for it, in brackets. */
export function codeOf(error: unknown): string {
  const { code } = error as { code?: unknown }
  return typeof code === 'string' ? ` (${code})` : ''
}
