/** Serving of the console: size of the first load, caching, and content security policy. */
import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { EVERYTHING } from '../support/openapi.ts'
import { type Server, startServer } from '../support/server.ts'
import { becomeOwner, openBrowser, visit } from './browser.ts'

const CONSOLE = resolve(import.meta.dirname, '../../console')
const FIRST_LOAD_BYTES = 200_000

let server: Server
let browser: Browser

beforeAll(async () => {
  server = await startServer()
  browser = await openBrowser()
})
afterAll(async () => {
  await browser?.close()
  await server?.stop()
})

test('a first visit to the overview loads less than 200 kB', async () => {
  const { page: first, leave } = await visit(browser, server.url)
  await becomeOwner(first, server)
  const storageState = await first.context().storageState()
  await leave()
  const page = await (await browser.newContext({ storageState })).newPage()
  const client = await page.context().newCDPSession(page)
  await client.send('Network.enable')
  let loaded = 0
  client.on('Network.loadingFinished', ({ encodedDataLength }) => {
    loaded += encodedDataLength
  })
  await page.goto(`${server.url}/console`)
  await page.getByText('Latest runs').waitFor()
  await page.waitForLoadState('networkidle')
  expect(loaded).toBeGreaterThan(50_000)
  expect(loaded).toBeLessThan(FIRST_LOAD_BYTES)
})

test('the server’s root redirects to the console', async () => {
  const answer = await fetch(server.url, { redirect: 'manual' })
  expect([answer.status, answer.headers.get('location')]).toEqual([302, '/console/'])
  const page = await fetch(server.url)
  expect([page.status, page.url]).toEqual([200, `${server.url}/console/`])
  const posted = await server.post('/', {})
  expect([posted.status, posted.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
})

test('the page only runs its own scripts and is not cached; each response has its own nonce', async () => {
  const policies: string[] = []
  for (const path of ['/console', '/console/agents/some-agent']) {
    const { status, headers, text } = await server.get(path)
    expect(status, path).toBe(200)
    expect(headers.get('cache-control'), path).toBe('no-store')
    const policy = headers.get('content-security-policy') ?? ''
    for (const rule of ["default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'"]) {
      expect(policy).toContain(rule)
    }
    expect(policy).not.toMatch(/unsafe|\*|https?:/)
    expect(text).not.toMatch(/<script(?![^>]* src="\/console\/)|<style| style=| on\w+=|errand_sk_\w/)
    policies.push(policy)
  }
  expect(policies[0]).not.toBe(policies[1])
})

test('assets are cached forever, and missing assets are 404', async () => {
  const { text } = await server.get('/console')
  const script = /src="(\/console\/assets\/[^"]+\.js)"/.exec(text)?.[1] as string
  const { headers } = await server.get(script, { 'accept-encoding': 'gzip' })
  expect(headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
  expect(headers.get('content-type')).toBe('text/javascript; charset=utf-8')
  expect(headers.get('content-encoding')).toBe('gzip')
  expect(headers.get('x-content-type-options')).toBe('nosniff')
  for (const path of ['/console/assets/none.js', '/console/api/none', '/console/assets/..%2f..%2fpackage.json']) {
    expect((await server.get(path)).status, path).toBe(404)
  }
})

test('the generated client matches the server’s OpenAPI document', async () => {
  const at = await mkdtemp(join(tmpdir(), 'errand-client-'))
  try {
    await writeFile(join(at, 'openapi.json'), (await server.get(EVERYTHING)).text)
    const env = { ...process.env, ERRAND_OPENAPI: join(at, 'openapi.json'), ERRAND_CLIENT: join(at, 'api') }
    await promisify(execFile)(process.execPath, [join(CONSOLE, 'node_modules/.bin/openapi-ts')], { cwd: CONSOLE, env })
    expect(await contents(join(CONSOLE, 'src/api')), 'run: script/clients').toEqual(await contents(join(at, 'api')))
  } finally {
    await rm(at, { recursive: true })
  }
})

async function contents(folder: string): Promise<Record<string, string>> {
  const files = (await readdir(folder, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile())
  const texts = files.map(async ({ parentPath, name }) => {
    const path = join(parentPath, name)
    return [path.slice(folder.length + 1), await readFile(path, 'utf8')] as const
  })
  return Object.fromEntries((await Promise.all(texts)).sort())
}
