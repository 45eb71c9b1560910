/** Intercepts TLS to the hosts of `network.inject`, with certificates of the run's own authority. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { createSecureContext, type SecureContext, TLSSocket } from 'node:tls'
import type { Network } from '../domain/network.ts'
import { type Authority, createAuthority } from './certificate.ts'
import type { HostPort } from './ssrf-policy.ts'

type Answer = (request: IncomingMessage, response: ServerResponse, hostPort: HostPort) => void

export interface TlsInterceptor {
  /** Certificate of its authority, PEM. Undefined if `inject` names no host. */
  readonly certificate: string | undefined
  /** Takes over a connection that requested a tunnel to a host of `inject`, and answers as that host. */
  answerFor(hostPort: HostPort, client: Duplex, head: Buffer): void
}

export function createTlsInterceptor(network: Network, maxHeaderSize: number, answer: Answer): TlsInterceptor {
  const hosts = typeof network === 'string' ? [] : (network.inject ?? []).map(({ host }) => host.replace(/:\d+$/, ''))
  const authority: Authority | undefined =
    hosts.length > 0 ? createAuthority('Errand, for one run', [...new Set(hosts)]) : undefined
  const contexts = new Map<string, SecureContext>()
  const hostPorts = new WeakMap<object, HostPort>()

  function contextFor(host: string): SecureContext {
    const known = contexts.get(host) ?? createSecureContext({ ...authority!.issue(host), minVersion: 'TLSv1.2' })
    contexts.set(host, known)
    return known
  }

  const server = createServer({ maxHeaderSize }, (request, response) => {
    answer(request, response, hostPorts.get(request.socket)!)
  })

  return {
    certificate: authority?.certificate,
    answerFor(hostPort, client, head) {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n')
      if (head.length > 0) client.unshift(head)
      const secureContext = contextFor(hostPort.host)
      const secure = new TLSSocket(client, { isServer: true, secureContext, ALPNProtocols: ['http/1.1'] })
      hostPorts.set(secure, hostPort)
      secure.on('error', () => client.destroy())
      secure.once('close', () => client.destroy())
      server.emit('connection', secure)
    },
  }
}
