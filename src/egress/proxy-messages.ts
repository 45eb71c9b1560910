/** HTTP messages of the proxy: parsing requests, filtering header fields, and sending refusals. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'

/** An error whose message is sent to the client in the sandbox. */
export class Refusal extends Error {
  readonly status: 400 | 403 | 502
  constructor(status: Refusal['status'], sentence: string) {
    super(sentence)
    this.status = status
  }
}

/** Hop-by-hop fields (RFC 9110, 7.6.1), and fields meant for the proxy itself. */
const HOP_BY_HOP = [
  ...['connection', 'keep-alive', 'proxy-connection', 'proxy-authorization', 'proxy-authenticate', 'te', 'trailer'],
  ...['transfer-encoding', 'upgrade', 'expect'],
]
const AMBIGUOUS = /[\u0000-\u0020\u007f-\uffff\\]/
/** Time for a refused client to close its connection before we do, milliseconds. */
const LINGER_MS = 1_000

/** Parses the target of a CONNECT. The host is as the URL standard writes it. Throws Refusal. */
export function readAuthority(text = ''): { readonly hostname: string; readonly port: number } {
  const [, host = '', port] = /^([A-Za-z0-9.-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\]):(\d{1,5})$/.exec(text) ?? []
  const address = `http://${host}/`
  if (host === '' || Number(port) < 1 || Number(port) > 65_535 || !URL.canParse(address)) {
    throw new Refusal(400, 'CONNECT needs a host name and a port, such as example.com:443.')
  }
  return { hostname: new URL(address).hostname, port: Number(port) }
}

/** Parses the URL of a request in absolute form. Throws Refusal. */
export function readProxied({ url: text = '' }: IncomingMessage): URL {
  if (/^https:/i.test(text)) throw new Refusal(400, 'https goes through the proxy by CONNECT.')
  if (!/^http:\/\/[^/]/i.test(text) || AMBIGUOUS.test(text) || !URL.canParse(text)) {
    throw new Refusal(400, 'this is a proxy: send a whole http:// address, or CONNECT for https.')
  }
  const url = new URL(text)
  if (url.username === '' && url.password === '') return url
  throw new Refusal(400, 'the address must not contain a user name or password.')
}

/** Throws Refusal if the Host field names another host than the URL: the credential would reach a different site there. */
export function checkHost(sent: string | undefined, { origin, protocol }: URL): void {
  const address = `${protocol}//${sent}`
  if (sent !== undefined && !AMBIGUOUS.test(sent) && URL.canParse(address)) {
    const { href } = new URL(address)
    if (href === `${origin}/`) return
  }
  throw new Refusal(400, 'the Host field names another host than the connection is for.')
}

/** Header fields to forward, name and value in turn: without hop-by-hop fields and `without`, and with `own` instead of those sent. */
export function endToEnd(
  raw: readonly string[],
  own: Readonly<Record<string, string>>,
  without: readonly string[] = [],
): string[] {
  const fields = raw.flatMap((name, at) => (at % 2 === 0 ? [[name, raw[at + 1]!] as const] : []))
  const named = fields.flatMap(([name, value]) => (name.toLowerCase() === 'connection' ? value.split(',') : []))
  const dropped = new Set([...HOP_BY_HOP, ...named, ...Object.keys(own)].map((name) => name.trim().toLowerCase()))
  // Content-Length stays even if `Connection` names it: without it a body would be read as the next request.
  dropped.delete('content-length')
  for (const name of without) dropped.add(name)
  return [...fields.filter(([name]) => !dropped.has(name.toLowerCase())).flat(), ...Object.entries(own).flat()]
}

export function refuse(response: ServerResponse, { status, message }: Refusal): void {
  if (response.headersSent || response.destroyed) return void response.destroy()
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', connection: 'close' })
  response.end(`${sentenceOf(status, message)}\n`)
}

/** Sends the sentence in both the reason phrase and the body: for a failed CONNECT most clients show only the reason. */
export function refuseTunnel(client: Duplex, { status, message }: Refusal): void {
  if (client.destroyed || !client.writable) return void client.destroy()
  const sentence = sentenceOf(status, message)
  const body = `${sentence}\n`
  const fields = `Content-Type: text/plain; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close`
  client.end(`HTTP/1.1 ${status} ${sentence.replace(/[^\x20-\x7e]/g, '?')}\r\n${fields}\r\n\r\n${body}`)
  client.resume()
  setTimeout(() => client.destroy(), LINGER_MS).unref()
}

function sentenceOf(status: Refusal['status'], message: string): string {
  return `${status === 502 ? 'The egress guard' : 'Refused by the egress guard'}: ${message}`
}
