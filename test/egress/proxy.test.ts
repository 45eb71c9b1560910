/** The proxy of a sandbox, its programs' only network access. */
import { once } from 'node:events'
import { request } from 'node:http'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { afterEach, expect, it } from 'vitest'
import { dialTcp } from '../../src/egress/dial.ts'
import type { CredentialSource, OutboundConnection, SandboxProxyTerms } from '../../src/egress/port.ts'
import { type Canary, guard, openCanary } from './canary.ts'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

async function serve(listener?: Parameters<typeof openCanary>[1]): Promise<Canary> {
  const canary = await openCanary('127.0.0.1', listener)
  closers.push(canary.close)
  return canary
}

interface World {
  readonly port: number
  readonly connections: OutboundConnection[]
  readonly lookups: string[]
}

/** A proxy behind a listening socket, as the runner provides inside. Every name resolves to loopback. */
async function openProxy(
  network: SandboxProxyTerms['network'],
  opened: readonly number[],
  maxBytes = 1e9,
  idleMs?: number,
  signIn?: CredentialSource,
): Promise<World> {
  const connections: OutboundConnection[] = []
  const lookups: string[] = []
  const egress = guard({
    allowPrivate: opened.map((port) => `127.0.0.1:${port}`),
    resolve: async (host) => {
      lookups.push(host)
      return ['127.0.0.1']
    },
  })
  const budget = { bytes: maxBytes, spent: 'this run has used its bytes of network.' }
  const onConnect = (connection: OutboundConnection) => void connections.push(connection)
  const proxy = egress.openProxy({ network, budget, onConnect, idleMs, signIn })
  const server: Server = createServer((socket) => proxy.handle(socket)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  closers.push(() => server.close(), proxy.close)
  return { port: (server.address() as { port: number }).port, connections, lookups }
}

async function ask({ port }: World, path: string, headers: Record<string, string> = {}) {
  const sent = request({ host: '127.0.0.1', port, path, headers })
  const answered = once(sent, 'response')
  sent.end()
  const [response] = await answered
  return { status: response.statusCode as number, body: await text(response) }
}

/** Returns the proxy's response to raw bytes, and to `more` afterwards. */
async function say({ port }: World, bytes: string, more?: string): Promise<string> {
  const socket: Socket = connect(port, '127.0.0.1')
  socket.write(bytes)
  if (more !== undefined) {
    await once(socket, 'data')
    socket.write(more)
  }
  return text(socket)
}

it('reaches an allowed host by plain http, and audits it', async () => {
  const site = await serve((asked, answer) => answer.end(`${asked.method} ${asked.url} ${asked.headers.host}`))
  const world = await openProxy({ allow: [`example.com:${site.port}`] }, [site.port])
  const address = `http://example.com:${site.port}/path?q=1`
  expect(await ask(world, address)).toEqual({ status: 200, body: `GET /path?q=1 example.com:${site.port}` })
  expect(world.connections).toEqual([{ host: 'example.com', port: site.port, outcome: 'dialled' }])
})

it('reaches an allowed host through a tunnel', async () => {
  const site = await serve((asked, answer) => answer.end(`seen ${asked.url}`))
  const world = await openProxy({ allow: [`*.example.com:${site.port}`] }, [site.port])
  const inner = `GET /inside HTTP/1.1\r\nHost: a.example.com\r\nConnection: close\r\n\r\n`
  expect(await say(world, `CONNECT a.example.com:${site.port} HTTP/1.1\r\nHost: x\r\n\r\n`, inner)).toContain(
    'seen /inside',
  )
})

const REFUSED: readonly [string, (port: number) => string][] = [
  ['another host', (port) => `CONNECT other.com:${port} HTTP/1.1\r\n\r\n`],
  ['the host below which others are allowed', (port) => `CONNECT below.com:${port} HTTP/1.1\r\n\r\n`],
  ['a host that only ends alike', (port) => `CONNECT evilexample.com:${port} HTTP/1.1\r\n\r\n`],
  ['another port', () => 'CONNECT example.com:22 HTTP/1.1\r\n\r\n'],
  ['an address', (port) => `CONNECT 127.0.0.1:${port} HTTP/1.1\r\n\r\n`],
  ['an address as one number', (port) => `CONNECT 2130706433:${port} HTTP/1.1\r\n\r\n`],
  ['localhost', (port) => `CONNECT localhost:${port} HTTP/1.1\r\n\r\n`],
  ['an address of version 6', (port) => `CONNECT [::1]:${port} HTTP/1.1\r\n\r\n`],
  ['a user name before the host', (port) => `CONNECT example.com@other.com:${port} HTTP/1.1\r\n\r\n`],
  ['no port', () => 'CONNECT example.com HTTP/1.1\r\n\r\n'],
  [
    'another host by absolute URL',
    (port) => `GET http://other.com:${port}/ HTTP/1.1\r\nHost: example.com:${port}\r\n\r\n`,
  ],
]

it.each(REFUSED)('refuses %s without a DNS lookup or a connection', async (_, bytes) => {
  const site = await serve()
  const world = await openProxy({ allow: [`example.com:${site.port}`, `*.below.com:${site.port}`] }, [])
  expect(await say(world, bytes(site.port).replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'))).toMatch(
    /^HTTP\/1.1 40[03] /,
  )
  expect(world.lookups).toEqual([])
  expect(site.hits).toBe(0)
})

it.each([
  ['a NUL in the host', (port: number) => `CONNECT example.com\0.other.com:${port} HTTP/1.1\r\n\r\n`],
  ['a request that is none', () => '\x05\x01\x00'],
  [
    'two lengths',
    (port: number) =>
      `POST http://example.com:${port}/ HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
  ],
])('closes the connection on %s', async (_, bytes) => {
  const site = await serve()
  const world = await openProxy({ allow: [`example.com:${site.port}`] }, [site.port])
  expect(await say(world, bytes(site.port))).not.toContain('200')
  expect(site.hits).toBe(0)
})

it('refuses a name that resolves to a private address', async () => {
  const site = await serve()
  const world = await openProxy('public', [])
  expect((await ask(world, 'http://rebound.example/')).body).toContain('not a public address')
  expect(world.connections).toEqual([{ host: 'rebound.example', port: 80, outcome: 'refused' }])
  expect(site.hits).toBe(0)
})

it('says what is allowed when it refuses a host', async () => {
  const world = await openProxy({ allow: ['example.com'] }, [])
  const { status, body } = await ask(world, 'http://other.com/')
  expect(status).toBe(403)
  expect(body).toBe('Refused by the egress guard: other.com:80 is not allowed for this run; what is: example.com.\n')
})

it('counts header fields, informational responses and trailers against the run’s byte limit', async () => {
  const long = 'x'.repeat(15_000)
  const site = await serve((asked, answer) => {
    if (asked.url === '/hints') for (let i = 0; i < 10; i++) answer.writeEarlyHints({ link: `</${i}>`, 'x-long': long })
    if (asked.url === '/fields') answer.setHeader('x-long', long)
    if (asked.url === '/trailers') {
      answer.writeHead(200, { trailer: 'x-long' })
      answer.write('.')
      answer.addTrailers({ 'x-long': long })
    }
    answer.end()
  })
  const network = { allow: [`example.com:${site.port}`] }
  const spent = { status: 403, body: expect.stringContaining('this run has used its bytes of network') }
  for (const [path, headers] of [
    ['fields', {}],
    ['hints', {}],
    ['trailers', {}],
    ['', { 'x-long': long }],
  ] as const) {
    const world = await openProxy(network, [site.port], 30_000)
    const address = `http://example.com:${site.port}/${path}`
    for (let i = 0; i < 2; i++) await ask(world, address, headers).catch(() => {})
    expect(await ask(world, address), path).toEqual(spent)
  }
})

it('closes connections that exceed the run’s byte limit, in either direction', async () => {
  const site = await serve((_, answer) => answer.end(Buffer.alloc(100_000)))
  const world = await openProxy({ allow: [`example.com:${site.port}`] }, [site.port], 50_000)
  const first = await ask(world, `http://example.com:${site.port}/`).catch(() => undefined)
  // Cut off in the middle, or refused if nothing of the response had been forwarded.
  expect(first?.status ?? 403).toBe(403)
  expect((await ask(world, `http://example.com:${site.port}/`)).body).toContain('has used its bytes')
})

it('does not forward hop-by-hop headers', async () => {
  const site = await serve((asked, answer) => answer.end(JSON.stringify(asked.headers)))
  const world = await openProxy({ allow: [`example.com:${site.port}`] }, [site.port])
  const headers = { 'proxy-authorization': 'Basic x', connection: 'close, x-hop', 'x-hop': '1', 'x-kept': '2' }
  const seen = JSON.parse((await ask(world, `http://example.com:${site.port}/`, headers)).body)
  expect(seen).toEqual({ 'x-kept': '2', host: `example.com:${site.port}`, connection: 'close' })
})

it.each([
  ['SOCKS 5', Buffer.from([5, 1, 0, 5, 1, 0, 3, 11, ...Buffer.from('example.com'), 1, 187])],
  ['SOCKS 5 with a NUL in its name', Buffer.from([5, 1, 0, 3, 12, ...Buffer.from('a.com\0.b.com'), 0, 80])],
  ['SOCKS 4a', Buffer.from([4, 1, 0, 80, 0, 0, 0, 1, 0, ...Buffer.from('example.com'), 0])],
  ['TLS', Buffer.from('160301020001000001fc0303', 'hex')],
  ['a line break in a host', Buffer.from('CONNECT exam\nple.com:80 HTTP/1.1\r\n\r\n')],
  ['a header in a host', Buffer.from('CONNECT example.com:80\r\nX-A: b HTTP/1.1\r\n\r\n')],
  ['a space in a host', Buffer.from('CONNECT example.com :80 HTTP/1.1\r\n\r\n')],
  ['a path', Buffer.from('GET / HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n')],
  ['https without a tunnel', Buffer.from('GET https://example.com/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')],
  [
    'WebSocket over plain http to nobody',
    Buffer.from('GET ws://example.com/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'),
  ],
])('refuses %s', async (_, bytes) => {
  const site = await serve()
  const world = await openProxy({ allow: [`example.com:${site.port}`] }, [site.port])
  const socket = connect(world.port, '127.0.0.1')
  socket.write(bytes)
  socket.on('error', () => {})
  expect(await text(socket).catch(() => '')).not.toMatch(/^HTTP\/1\.1 2/)
  expect(world.lookups).toEqual([])
  expect(site.hits).toBe(0)
})

it('checks a name at each connection, and refuses it once it becomes private', async () => {
  const site = await serve((_, answer) => answer.end('public once'))
  const answers = [['93.184.215.14'], ['127.0.0.1'], ['93.184.215.14', '10.0.0.1'], ['::ffff:127.0.0.1'], []]
  const connections: OutboundConnection[] = []
  const dialled: string[] = []
  const egress = guard({
    resolve: async () => answers.shift()!,
    dial(address, _, signal) {
      dialled.push(address)
      return dialTcp('127.0.0.1', site.port, signal)
    },
  })
  const proxy = egress.openProxy({
    network: 'public',
    budget: { bytes: 1e6, spent: '' },
    onConnect: (connection) => void connections.push(connection),
  })
  const server = createServer((socket) => proxy.handle(socket)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  closers.push(() => server.close(), proxy.close)
  const world = { port: (server.address() as { port: number }).port, connections, lookups: [] }
  const bodies = []
  for (let i = 0; i < 5; i++) bodies.push((await ask(world, 'http://rebind.example/')).body)
  expect(bodies).toEqual([
    'public once',
    ...Array(3).fill('Refused by the egress guard: rebind.example is not a public address.\n'),
    'The egress guard: No address was found for rebind.example.\n',
  ])
  expect(dialled).toEqual(['93.184.215.14'])
  expect(connections.map(({ outcome }) => outcome)).toEqual(['dialled', 'refused', 'refused', 'refused', 'unresolved'])
  expect(proxy.refusalOf('rebind.example')).toBe('No address was found for rebind.example.')
})

it('closes the outgoing connection with its client, and both after the idle timeout', async () => {
  const site = await serve((_, answer) => answer.write('and then nothing'))
  const world = await openProxy({ allow: [`example.com:${site.port}`] }, [site.port], 1e6, 200)
  const socket = connect(world.port, '127.0.0.1')
  socket.write(`CONNECT example.com:${site.port} HTTP/1.1\r\n\r\n`)
  await once(socket, 'data')
  expect(await site.open()).toBe(1)
  socket.destroy()
  while ((await site.open()) > 0) await new Promise((resolve) => setTimeout(resolve, 10))
  await expect(ask(world, `http://example.com:${site.port}/`)).rejects.toThrow()
  while ((await site.open()) > 0) await new Promise((resolve) => setTimeout(resolve, 10))
})

it('adds a credential to plain http too, and masks it in the response', async () => {
  const site = await serve((asked, answer) => answer.end(`${asked.headers['x-key']} ${asked.headers.cookie}`))
  const host = `example.com:${site.port}`
  const network = { allow: [host], inject: [{ host, header: 'x-key', credentialId: 'c' }] }
  const world = await openProxy(network, [site.port])
  expect((await ask(world, `http://${host}/`)).body).toContain("can't be signed in to")
  expect(site.hits).toBe(0)
  const signed = await openProxy(network, [site.port], 1e6, undefined, async () => ({
    headers: { 'x-key': 'k3y-of-mine' },
    confidential: ['k3y-of-mine'],
  }))
  const { body } = await ask(signed, `http://${host}/`, { 'X-Key': 'theirs', cookie: 'a=k3y-of-mine; b=k3y-of' })
  expect(body).toBe('[secret] a=[secret]; b=k3y-of')
})

const SECRET = 'k3y-of-mine'
const signIn: CredentialSource = async () => ({ headers: { 'x-key': SECRET }, confidential: [SECRET] })

it.each([
  ['gzip', gzipSync],
  ['br', brotliCompressSync],
  ['deflate', deflateSync],
  ['zstd', zstdCompressSync],
] as const)('masks a credential in a response with unrequested %s compression', async (coding, compress) => {
  const site = await serve((asked, answer) =>
    answer.writeHead(200, { 'content-encoding': coding }).end(compress(`sent: ${asked.headers['x-key']}`)),
  )
  const host = `example.com:${site.port}`
  const world = await openProxy(signed(host), [site.port], 1e6, undefined, signIn)
  expect((await ask(world, `http://${host}/`)).body).toBe('sent: [secret]')
})

it.each(['GET', 'HEAD'])('does not reveal the length of the credential in the response to %s', async (method) => {
  const answers: string[] = []
  for (const secret of [SECRET, `${SECRET}-and-${SECRET}`]) {
    const site = await serve((asked, answer) => {
      const text = `<${asked.headers['x-key']}>`
      answer.setHeader('content-length', text.length).setHeader('x-seen', text)
      // In two pieces: bytes that may begin a secret are buffered.
      answer.write(text.slice(0, 6))
      answer.end(text.slice(6))
    })
    const host = `example.com:${site.port}`
    const own: CredentialSource = async () => ({ headers: { 'x-key': secret }, confidential: [secret] })
    const world = await openProxy(signed(host), [site.port], 1e6, undefined, own)
    const said = await say(world, `${method} http://${host}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
    expect(said).toContain('x-seen: <[secret]>')
    answers.push(said.replace(/^date: .*\r\n/im, ''))
  }
  expect(answers[0]).toBe(answers[1])
})

it('returns no credential in an unknown compression, nor in a reason phrase', async () => {
  const site = await serve((asked, answer) => {
    if (asked.url === '/reason') answer.writeHead(200, `For ${asked.headers['x-key']}`).end()
    else answer.writeHead(200, { 'content-encoding': 'gzip, gzip' }).end(gzipSync(gzipSync(SECRET)))
  })
  const host = `example.com:${site.port}`
  const world = await openProxy(signed(host), [site.port], 1e6, undefined, signIn)
  const said = await say(world, `GET http://${host}/reason HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
  expect(said).toMatch(/^HTTP\/1\.1 200 For \[secret\]\r\n/)
  expect(await ask(world, `http://${host}/`)).toMatchObject({
    status: 502,
    body: expect.stringContaining('can’t be inspected'),
  })
})

it('returns no credential in parts: it drops range requests', async () => {
  const asked: unknown[] = []
  const site = await serve((request, answer) => {
    const { range, 'if-range': ifRange } = request.headers
    asked.push([range, ifRange])
    const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(range ?? '') ?? []
    const whole = `sent: ${request.headers['x-key']}`
    if (from === undefined) answer.end(whole)
    else answer.writeHead(206, { 'content-range': `bytes ${from}-${to}/*` }).end(whole.slice(+from, +to! + 1))
  })
  const host = `example.com:${site.port}`
  const world = await openProxy(signed(host), [site.port], 1e6, undefined, signIn)
  const fields = { range: 'bytes=6-10', 'if-range': '"tag"' }
  expect(await ask(world, `http://${host}/`, fields)).toEqual({ status: 200, body: 'sent: [secret]' })
  const plain = await openProxy({ allow: [host] }, [site.port])
  expect(await ask(plain, `http://${host}/`, { range: 'bytes=0-3' })).toEqual({ status: 206, body: 'sent' })
  expect(asked).toEqual([
    [undefined, undefined],
    ['bytes=0-3', undefined],
  ])
})

it('sends no credential unencrypted unless the port of plain http is named', async () => {
  const host = 'example.com'
  for (const named of [host, `${host}:443`]) {
    const world = await openProxy({ allow: [host], inject: signed(named).inject }, [], 1e6, undefined, signIn)
    const port = named.endsWith('443') ? ':443' : ''
    const { status, body } = await ask(world, `http://${host}${port}/`)
    expect(status).toBe(403)
    expect(body).toContain('by https alone')
    expect(world.lookups).toEqual([])
  }
})

it('does not treat a request inside a body as a second request', async () => {
  const asked: string[] = []
  const site = await serve((request, answer) => {
    asked.push(request.url!)
    request.resume().on('end', () => answer.end('answered'))
  })
  const host = `example.com:${site.port}`
  const world = await openProxy({ allow: [host] }, [site.port])
  const hidden = `GET /hidden HTTP/1.1\r\nHost: other\r\n\r\n`
  const fields = `Host: x\r\nConnection: close, content-length\r\nContent-Length: ${hidden.length}`
  expect(await say(world, `GET http://${host}/ HTTP/1.1\r\n${fields}\r\n\r\n${hidden}`)).toContain('answered')
  expect(asked).toEqual(['/'])
})

it('fails immediately if a host switches protocols without being asked', async () => {
  const site = await serve((request) =>
    request.socket.end('HTTP/1.1 101 Now\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n'),
  )
  const host = `example.com:${site.port}`
  const world = await openProxy({ allow: [host] }, [site.port])
  expect((await ask(world, `http://${host}/`)).status).toBe(502)
})

function signed(host: string) {
  return { allow: [host], inject: [{ host, header: 'x-key', credentialId: 'c' }] }
}
