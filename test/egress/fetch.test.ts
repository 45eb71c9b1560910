/** Fetches through the guard, from real servers on loopback that the operator allows: redirects, limits, connections. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer as createTlsServer } from 'node:tls'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { dialTcp } from '../../src/egress/dial.ts'
import type { Egress, OutboundConnection } from '../../src/egress/port.ts'
import { type Canary, fetchFrom, guard, openCanary, textOf } from './canary.ts'

type Answer = (response: ServerResponse, request: IncomingMessage) => void

const pages = new Map<string, Answer>()
const requests: IncomingMessage[] = []
let server: Canary
let canary: Canary
let egress: Egress
let base: string
beforeAll(async () => {
  server = await openCanary('127.0.0.1', (request, response) => {
    requests.push(request)
    const page = pages.get(request.url!)
    if (page) page(response, request)
    else response.writeHead(404).end()
  })
  canary = await openCanary('127.0.0.2', undefined, server.port)
  base = `http://127.0.0.1:${server.port}`
  egress = guard({ allowPrivate: [`127.0.0.1:${server.port}`] })
})
afterAll(() => Promise.all([server.close(), canary.close()]))
beforeEach(() => {
  requests.length = 0
})

/** Serves at a new path and returns its URL. */
function page(answer: Answer, path = `/${pages.size}`): string {
  pages.set(path, answer)
  return base + path
}

const redirect =
  (location: string, status = 302): Answer =>
  (response) =>
    response.writeHead(status, { location }).end('moved')

async function closed(): Promise<void> {
  while ((await server.open()) > 0) await new Promise((resolve) => setTimeout(resolve, 5))
}

describe('a fetch', () => {
  it('returns status, headers and body, and leaves no connection open', async () => {
    const answer = await fetchFrom(
      egress,
      page((response) => response.writeHead(201, { 'x-a': 'b' }).end('hello'), '/a?b=c'),
    )
    expect(answer.status).toBe(201)
    expect(answer.headers['x-a']).toBe('b')
    expect(await textOf(answer)).toBe('hello')
    expect(requests[0]!.headers).toMatchObject({ host: `127.0.0.1:${server.port}`, 'accept-encoding': 'identity' })
    await closed()
  })

  it('reports every host before it is dialed', async () => {
    const url = page(redirect(`http://127.0.0.2:${server.port}/`))
    const told: (OutboundConnection & { before: number })[] = []
    const hits = server.hits
    const onConnect = async (connection: OutboundConnection) => {
      await new Promise((resolve) => setTimeout(resolve, 5))
      told.push({ ...connection, before: server.hits - hits })
    }
    await expect(fetchFrom(egress, url, { onConnect })).rejects.toMatchObject({ code: 'refused' })
    expect(told).toEqual([{ host: '127.0.0.1', port: server.port, outcome: 'dialled', before: 0 }])
    const names = guard({ resolve: async () => ['10.0.0.1'] })
    await expect(fetchFrom(names, 'https://inside.example/', { onConnect })).rejects.toMatchObject({ code: 'refused' })
    expect(told[1]).toMatchObject({ host: 'inside.example', port: 443, outcome: 'refused' })
  })

  it('ignores the proxy settings of the environment', async () => {
    const proxy = `http://127.0.0.2:${server.port}`
    const names = ['http_proxy', 'HTTP_PROXY', 'https_proxy', 'HTTPS_PROXY', 'all_proxy', 'NODE_USE_ENV_PROXY']
    for (const name of names) process.env[name] = name === 'NODE_USE_ENV_PROXY' ? '1' : proxy
    try {
      expect(
        await textOf(
          await fetchFrom(
            egress,
            page((response) => response.end('direct')),
          ),
        ),
      ).toBe('direct')
    } finally {
      for (const name of names) delete process.env[name]
    }
    expect(canary.hits).toBe(0)
  })

  it('rejects with the caller’s abort reason, also between two chunks', async () => {
    const abort = new AbortController()
    const url = page((response) => response.write('first'))
    const answer = await fetchFrom(egress, url, { signal: abort.signal })
    const reason = new Error('enough')
    const read = textOf(answer).catch((error) => error)
    abort.abort(reason)
    expect(await read).toBe(reason)
    await expect(fetchFrom(egress, url, { signal: abort.signal })).rejects.toBe(reason)
    await closed()
  })

  it('leaves no connection open if its body is not read', async () => {
    const answer = await fetchFrom(
      egress,
      page((response) => response.write('first')),
    )
    answer.close()
    await closed()
  })

  it('reports a closed port, and a server that does not speak HTTP', async () => {
    const tcp = createTcpServer((socket) =>
      socket
        .on('error', () => {})
        .resume()
        .end('SSH-2.0-x\r\n'),
    )
    await new Promise<void>((resolve) => tcp.listen(0, '127.0.0.1', resolve))
    const { port } = tcp.address() as AddressInfo
    const url = `http://127.0.0.1:${port}/`
    const opened = guard({ allowPrivate: [`127.0.0.1:${port}`] })
    await expect(fetchFrom(opened, url)).rejects.toMatchObject({ code: 'unreachable' })
    await new Promise((resolve) => tcp.close(resolve))
    await expect(fetchFrom(opened, url)).rejects.toMatchObject({
      message: "127.0.0.1 can't be reached (ECONNREFUSED).",
    })
  })
})

describe('a name', () => {
  const named = (resolve: () => Promise<string[]>) => guard({ allowPrivate: [`127.0.0.1:${server.port}`], resolve })
  const address = (path: string) => `http://files.example:${server.port}${path}`

  it('is dialed at an allowed address, with the name in the Host field', async () => {
    page((response, request) => response.end(request.headers.host), '/host')
    const answer = await fetchFrom(
      named(async () => ['127.0.0.1']),
      address('/host'),
    )
    expect(await textOf(answer)).toBe(`files.example:${server.port}`)
  })

  it('is checked at each redirect, with all its addresses', async () => {
    const answers = [['127.0.0.1'], ['127.0.0.2']]
    page(redirect('/again'), '/rebind')
    const rebinding = named(async () => answers.shift()!)
    await expect(fetchFrom(rebinding, address('/rebind'))).rejects.toMatchObject({ code: 'refused' })
    const mixed = named(async () => ['127.0.0.1', '127.0.0.2'])
    await expect(fetchFrom(mixed, address('/host'))).rejects.toMatchObject({ code: 'refused' })
    expect(requests.map(({ url }) => url)).toEqual(['/rebind'])
    expect(canary.hits).toBe(0)
  })

  it('is reported if it has no address, or if DNS fails or does not answer', async () => {
    const says = { code: 'unreachable', message: 'No address was found for files.example.' }
    await expect(
      fetchFrom(
        named(async () => []),
        address('/'),
      ),
    ).rejects.toMatchObject(says)
    await expect(
      fetchFrom(
        named(() => Promise.reject(new Error('down'))),
        address('/'),
      ),
    ).rejects.toMatchObject(says)
    const silent = guard({ resolve: () => new Promise(() => {}), idleMs: 20 })
    await expect(fetchFrom(silent, 'https://files.example/')).rejects.toMatchObject({ code: 'too_slow' })
  })
})

describe('a redirect', () => {
  it('is followed up to five times, also if relative', async () => {
    for (let i = 1; i <= 6; i++)
      page(redirect(i === 6 ? '/end' : `hop-${i + 1}`, [301, 302, 303, 307, 308, 302][i - 1]), `/hop-${i}`)
    page((response) => response.end('arrived'), '/end')
    expect(await textOf(await fetchFrom(egress, `${base}/hop-2`))).toBe('arrived')
    requests.length = 0
    await expect(fetchFrom(egress, `${base}/hop-1`)).rejects.toMatchObject({ code: 'too_many_redirects' })
    expect(requests).toHaveLength(6)
    await closed()
  })

  it.each([
    ...['http://127.0.0.2:PORT/', 'http://2130706434:PORT/', 'http://[::ffff:127.0.0.2]:PORT/', '//127.0.0.2:PORT/'],
    ...['https://169.254.169.254/latest/', 'http://example.com/', 'https://example.com:8080/', 'file:///etc/passwd'],
    ...['ftp://127.0.0.1/', 'data:text/plain,x', 'javascript:0', 'http://a@127.0.0.1:PORT/', 'https://[::1', 'http://'],
  ])('to %s is refused', async (location) => {
    const first = page(redirect('/on'), '/first')
    page(redirect(location.replace('PORT', String(server.port))), '/on')
    await expect(fetchFrom(egress, first)).rejects.toMatchObject({
      code: 'refused',
      message: expect.stringMatching(/^It redirects to an address that is refused: it (must|is not) /),
    })
    expect(requests).toHaveLength(2)
    expect(canary.hits).toBe(0)
    await closed()
  })

  it('to another origin drops the caller’s headers, also when it redirects back', async () => {
    page(redirect('/same'), '/start')
    page(redirect(`http://localhost:${server.port}/other`), '/same')
    page(redirect(`${base}/back`), '/other')
    page((response) => response.end(), '/back')
    await textOf(await fetchFrom(egress, `${base}/start`, { headers: { authorization: 'Bearer s3cret' } }))
    expect(requests.map(({ url, headers }) => [url, headers.authorization])).toEqual([
      ['/start', 'Bearer s3cret'],
      ['/same', 'Bearer s3cret'],
      ['/other', undefined],
      ['/back', undefined],
    ])
  })

  it('is followed without reading its body to the end', async () => {
    const to = page((response) => response.end('arrived'))
    const from = page((response) => response.writeHead(302, { location: to }).write('and on'))
    expect(await textOf(await fetchFrom(egress, from))).toBe('arrived')
    await closed()
  })

  it('without a location is returned as the response', async () => {
    expect(
      (
        await fetchFrom(
          egress,
          page((response) => response.writeHead(302).end()),
        )
      ).status,
    ).toBe(302)
  })
})

describe('a body', () => {
  const MIB = 1024 * 1024

  it('that is compressed is passed on compressed, so a bomb stays small', async () => {
    const bomb = gzipSync(Buffer.alloc(64 * MIB))
    const url = page((response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb))
    let size = 0
    for await (const part of (await fetchFrom(egress, url)).body) size += part.byteLength
    expect(size).toBe(bomb.byteLength)
  })

  // memory.test.ts measures its memory in a separate process.
  it('without an end is cut off at the limit', async () => {
    const block = Buffer.alloc(256 * 1024)
    const endless: Answer = (response) => {
      const more = () => {
        while (!response.destroyed && response.write(block));
      }
      response.on('drain', more)
      more()
    }
    const { body } = await fetchFrom(egress, page(endless), { maxBytes: 300 * MIB })
    let size = 0
    const read = async () => {
      for await (const part of body) size += part.byteLength
    }
    await expect(read()).rejects.toMatchObject({ code: 'too_large', message: 'It is larger than 314,572,800 bytes.' })
    expect(size).toBeGreaterThan(299 * MIB)
    expect(size).toBeLessThanOrEqual(300 * MIB)
    await closed()
  })

  it('that declares a length over the limit is refused before it is read', async () => {
    const url = page((response) => response.writeHead(200, { 'content-length': 11 }).write('x'))
    await expect(fetchFrom(egress, url, { maxBytes: 10 })).rejects.toMatchObject({ code: 'too_large' })
    await closed()
  })

  it('may be as long as the limit, and not a byte longer', async () => {
    const url = page((response) => response.end('0123456789'))
    expect(await textOf(await fetchFrom(egress, url, { maxBytes: 10 }))).toBe('0123456789')
    const chunked = page((response) => {
      response.write('0123456789')
      response.end('x')
    })
    await expect(fetchFrom(egress, chunked, { maxBytes: 10 }).then(textOf)).rejects.toMatchObject({ code: 'too_large' })
  })

  it('that is shorter than declared is an error; a longer one is truncated', async () => {
    const short = page((response) => {
      response.writeHead(200, { 'content-length': 10 }).write('01234', () => response.destroy())
    })
    await expect(fetchFrom(egress, short).then(textOf)).rejects.toMatchObject({ code: 'unreachable' })
    const long = page((response) => {
      response.socket!.end('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n0123456789')
    })
    const got = await fetchFrom(egress, long).then(textOf, (error) => error.code)
    expect(['01234', 'unreachable']).toContain(got)
  })

  it('that stalls or arrives too slowly is cut off', async () => {
    const impatient = guard({ allowPrivate: [`127.0.0.1:${server.port}`], idleMs: 30 })
    const stalled = page((response) => response.write('first'))
    await expect(fetchFrom(impatient, stalled).then(textOf)).rejects.toMatchObject({
      code: 'too_slow',
      message: 'Nothing came for 0.03 s.',
    })
    const silent = page(() => {})
    await expect(fetchFrom(impatient, silent)).rejects.toMatchObject({ code: 'too_slow' })
    const dripping = page((response) => {
      const timer = setInterval(() => response.write('.'), 5)
      response.on('close', () => clearInterval(timer))
    })
    await expect(fetchFrom(egress, dripping, { timeoutMs: 100 }).then(textOf)).rejects.toMatchObject({
      code: 'too_slow',
      message: 'It took longer than 0.1 s.',
    })
    const unread = await fetchFrom(egress, dripping, { timeoutMs: 50 })
    await closed()
    await expect(textOf(unread)).rejects.toMatchObject({ code: 'too_slow' })
  })
})

describe('TLS', () => {
  it('requests the URL’s name at the checked address, and refuses unknown authorities', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'errand-tls-'))
    const [key, cert] = [join(dir, 'key.pem'), join(dir, 'cert.pem')]
    const subject = ['-subj', '/CN=files.example', '-addext', 'subjectAltName=DNS:files.example']
    const fresh = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
    execFileSync('openssl', [...fresh, '-keyout', key, '-out', cert, ...subject], { stdio: 'ignore' })
    const asked: string[] = []
    let said = 0
    const tls = createTlsServer({
      key: readFileSync(key),
      cert: readFileSync(cert),
      SNICallback(name, callback) {
        asked.push(name)
        callback(null)
      },
    })
    tls.on('secureConnection', (socket) => socket.on('data', () => said++))
    tls.on('tlsClientError', () => {})
    await new Promise<void>((resolve) => tls.listen(0, '127.0.0.1', resolve))
    const { port } = tls.address() as AddressInfo
    const dialled: string[] = []
    const stranger = guard({
      resolve: async () => ['93.184.215.14'],
      dial(address, wanted, signal) {
        dialled.push(`${address}:${wanted}`)
        return dialTcp('127.0.0.1', port, signal)
      },
    })
    for (const host of ['files.example', 'FILES.example.', '93.184.215.15']) {
      await expect(fetchFrom(stranger, `https://${host}/x`)).rejects.toMatchObject({
        code: 'unreachable',
        message: expect.stringContaining('SELF_SIGNED'),
      })
    }
    expect(asked).toEqual(['files.example', 'files.example'])
    expect(dialled).toEqual(['93.184.215.14:443', '93.184.215.14:443', '93.184.215.15:443'])
    expect(said).toBe(0)
    tls.close()
    rmSync(dir, { recursive: true })
  })
})

describe('an address that the operator configured', () => {
  it('may be private and plain http, but its redirects are checked as usual', async () => {
    const closedGuard = guard()
    const own = page((response) => response.end('own'))
    const connections: OutboundConnection[] = []
    const onConnect = (connection: OutboundConnection) => void connections.push(connection)
    expect(await textOf(await fetchFrom(closedGuard, own, { trusted: true, onConnect }))).toBe('own')
    expect(connections).toEqual([{ host: '127.0.0.1', port: server.port, outcome: 'dialled' }])
    await expect(fetchFrom(closedGuard, own)).rejects.toMatchObject({ code: 'refused' })
    for (const location of [own, `http://127.0.0.2:${server.port}/`, 'https://169.254.169.254/']) {
      const away = page(redirect(location))
      await expect(fetchFrom(closedGuard, away, { trusted: true })).rejects.toMatchObject({ code: 'refused' })
    }
    expect(canary.hits).toBe(0)
  })
})
