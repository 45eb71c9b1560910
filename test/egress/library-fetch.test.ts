/** The guard as the `fetch` function of a library. */
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { afterEach, expect, it } from 'vitest'
import { createLibraryFetch } from '../../src/egress/library-fetch.ts'
import type { LibraryTerms } from '../../src/egress/port.ts'
import { type Canary, guard, openCanary } from './canary.ts'

const opened: Canary[] = []
afterEach(() => Promise.all(opened.splice(0).map((canary) => canary.close())))

async function serve(listener: Parameters<typeof openCanary>[1]): Promise<string> {
  const canary = await openCanary('127.0.0.1', listener)
  opened.push(canary)
  return `http://127.0.0.1:${canary.port}`
}

function library(terms: Partial<LibraryTerms> = {}): typeof fetch {
  const ports = opened.map(({ port }) => `127.0.0.1:${port}`)
  return createLibraryFetch(guard({ allowPrivate: ports }), {
    signal: new AbortController().signal,
    maxBytes: 1e6,
    timeoutMs: 60_000,
    ...terms,
  })
}

const echo: Parameters<typeof openCanary>[1] = async (request, response) => {
  let body = ''
  for await (const chunk of request) body += chunk
  const { authorization, 'content-type': type } = request.headers
  response.setHeader('set-cookie', ['a=1', 'b=2'])
  response.end(JSON.stringify({ method: request.method, authorization, type, body }))
}

it('sends method, headers and body, and returns status, headers and body', async () => {
  const url = await serve(echo)
  const response = await library()(new URL('/mcp', url), {
    method: 'POST',
    headers: { authorization: 'Bearer t', 'content-type': 'application/json' },
    body: '{"a":1}',
  })
  expect(await response.json()).toEqual({
    method: 'POST',
    authorization: 'Bearer t',
    type: 'application/json',
    body: '{"a":1}',
  })
  expect(response.headers.getSetCookie()).toEqual(['a=1', 'b=2'])
})

it('streams a body as it arrives', async () => {
  const url = await serve((_, response) => response.write('data: one\n\n'))
  const response = await library({ timeoutMs: Number.POSITIVE_INFINITY })(url)
  const reader = response.body!.getReader()
  expect(Buffer.from((await reader.read()).value!).toString()).toBe('data: one\n\n')
  await reader.cancel()
})

it('closes the connection when the body is canceled', async () => {
  const url = await serve((_, response) => response.write('x'))
  const response = await library()(url)
  await response.body!.cancel()
  while ((await opened[0]!.open()) > 0) await sleep(10)
})

it('stops a request when it is aborted', async () => {
  const url = await serve(() => {})
  const abort = new AbortController()
  const answer = library()(url, { signal: abort.signal })
  abort.abort(new Error('enough'))
  await expect(answer).rejects.toThrow('enough')
})

it('cuts off a body over the limit, and one that stalls', async () => {
  const url = await serve((request, response) => {
    if (request.url === '/long') response.end('x'.repeat(1000))
    else response.write('x')
  })
  const long = library({ maxBytes: 100 })(`${url}/long`).then((response) => response.text())
  await expect(long).rejects.toMatchObject({ code: 'too_large' })
  const stalled = library({ idleMs: 50, timeoutMs: Number.POSITIVE_INFINITY })(url).then((response) => response.text())
  await expect(stalled).rejects.toMatchObject({ code: 'too_slow' })
})

it('refuses a response that is compressed anyway', async () => {
  const url = await serve((_, response) => {
    response.setHeader('content-encoding', 'gzip')
    response.end(gzipSync(Buffer.alloc(1e6)))
  })
  await expect(library()(url)).rejects.toThrow('compressed')
})

it('drops the headers on a redirect to another origin, and never sends a body there', async () => {
  const elsewhere = await serve(echo)
  const url = await serve((request, response) => {
    response.writeHead(request.url === '/307' ? 307 : 302, { location: `${elsewhere}/there` }).end()
  })
  const sent = { method: 'POST', headers: { authorization: 'Bearer secret' }, body: 'told' }
  await expect(library()(`${url}/307`, sent)).rejects.toThrow('to another origin')
  const followed = await (await library()(url, sent)).json()
  expect(followed).toEqual({ method: 'GET', body: '' })
})

it('returns redirects to a library that asks for them, or refuses them', async () => {
  const url = await serve((_, response) => response.writeHead(302, { location: '/there' }).end())
  expect((await library()(url, { redirect: 'manual' })).status).toBe(302)
  await expect(library()(url, { redirect: 'error' })).rejects.toThrow('redirects')
})

it('rejects a refused request before anything is dialed', async () => {
  const canary = await openCanary('127.0.0.1')
  opened.push(canary)
  const url = `http://127.0.0.1:${canary.port}`
  opened.splice(0)
  await expect(library()(url, { method: 'POST', body: 'x' })).rejects.toMatchObject({ code: 'refused' })
  expect(canary.hits).toBe(0)
  await canary.close()
})
