/** Dials addresses that were checked. It never resolves the name again. */
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { HostPort } from './ssrf-policy.ts'

/** Resolves when connected. Rejects with the system's error, or the signal's reason. */
export type Dial = (address: string, port: number, signal: AbortSignal) => Promise<Socket>

export interface Dialling {
  readonly dial: Dial
  /** Certificates of trusted authorities, PEM. Undefined: those that Node trusts. */
  readonly trusted: readonly string[] | undefined
}

/** Timeout for each address of a host, milliseconds. */
const CONNECT_MS = 10_000
const MAX_ADDRESSES = 8

/** Connects to the first address that answers, with TLS for the host's name if required. */
export async function openSocket(
  { dial, trusted }: Dialling,
  hostPort: HostPort,
  addresses: readonly string[],
  signal: AbortSignal,
): Promise<Socket> {
  let failure: unknown
  for (const address of addresses.slice(0, MAX_ADDRESSES)) {
    try {
      const within = AbortSignal.any([signal, AbortSignal.timeout(CONNECT_MS)])
      const socket = await dial(address, hostPort.port, within)
      return hostPort.tls ? await secure(socket, hostPort, trusted, signal) : socket
    } catch (error) {
      signal.throwIfAborted()
      failure = error
    }
  }
  throw failure
}

export const dialTcp: Dial = (address, port, signal) => {
  return settled(connect({ host: address, port }), 'connect', signal)
}

function secure(
  socket: Socket,
  { host, address }: HostPort,
  trusted: Dialling['trusted'],
  signal: AbortSignal,
): Promise<Socket> {
  // An IP address has no name for SNI; the certificate must name the address itself.
  const servername = address === host ? undefined : host
  const ca = trusted === undefined ? undefined : [...trusted]
  const options = { socket, host, servername, ca, rejectUnauthorized: true, ALPNProtocols: ['http/1.1'] }
  return settled(connectTls(options), 'secureConnect', signal)
}

function settled<S extends Socket>(socket: S, ready: string, signal: AbortSignal): Promise<S> {
  return new Promise((resolve, reject) => {
    const giveUp = () => socket.destroy(signal.reason)
    if (signal.aborted) giveUp()
    signal.addEventListener('abort', giveUp)
    socket.once(ready, () => {
      signal.removeEventListener('abort', giveUp)
      resolve(socket)
    })
    // This listener stays: an error before the next reader attaches must not end the process.
    socket.on('error', (error) => {
      signal.removeEventListener('abort', giveUp)
      reject(error)
    })
    socket.once('close', () => reject(new Error('closed')))
  })
}
