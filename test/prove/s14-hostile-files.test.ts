/**
 * S14: output files that are pages and images with scripts, opened in a real browser by their signed URLs and from the
 * console's origin. No script runs. Signed URLs with any bit flipped, or for another run's file, are refused.
 */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openBrowser } from '../console/browser.ts'
import { type Canary, openCanary } from '../egress/canary.ts'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { figure, rounds } from '../support/prove.ts'
import { type Server, startServer } from '../support/server.ts'

/** One in this many bits of a URL is flipped. */
const EVERY = rounds(10, 1) === 10 ? 1 : 7

let provider: FakeProvider
let server: Server
let browser: Browser
let canary: Canary
let files: { name: string; url: string }[]
beforeAll(async () => {
  canary = await openCanary('127.0.0.1')
  const script = `fetch('http://127.0.0.1:${canary.port}/ran'); localStorage.ran = 1`
  const code = `
script = ${JSON.stringify(script)}
page = '<!doctype html><script>' + script + '</script><img src=x onerror="' + script.replace('"', "'") + '">'
open('outputs/page.html', 'w').write(page)
open('outputs/page.xhtml', 'w').write('<html xmlns="http://www.w3.org/1999/xhtml"><script>' + script + '</script></html>')
svg = '<svg xmlns="http://www.w3.org/2000/svg" onload="' + script + '"><script>' + script + '</script></svg>'
open('outputs/picture.svg', 'w').write(svg)
open('outputs/page.txt', 'w').write(page)
open('outputs/page', 'w').write(page)`
  provider = await openFakeProvider({ record: false })
  provider.when('[hostile]', { toolCalls: [{ name: 'code_execution', args: { code } }] }, { text: 'Done.' })
  server = await startServer({ provider })
  const { body } = await server.post('/v1beta/interactions', { instruction: '[hostile]', tools: ['code_execution'] })
  files = body.files
  expect(files).toHaveLength(5)
  browser = await openBrowser()
})
afterAll(async () => {
  await browser?.close()
  await server?.stop()
  await provider?.close()
  await canary?.close()
})

test('no script in a file runs, however the file is opened', async () => {
  const context = await browser.newContext()
  const page = await context.newPage()
  for (const { name, url } of files) {
    // The file is downloaded: the browser stays on its page.
    await page.goto(url).catch((error) => expect(error.message, name).toMatch(/Download is starting|ERR_ABORTED/))
    await page.goto(`${server.url}/console`)
    for (const how of ['iframe', 'img']) {
      await page.evaluate(`document.body.append(Object.assign(document.createElement('${how}'), { src: '${url}' }))`)
    }
    await page.waitForLoadState('networkidle')
    expect(await page.evaluate('localStorage.ran'), name).toBeUndefined()
  }
  // Control: the canary that a script would have called works.
  expect((await fetch(`http://127.0.0.1:${canary.port}/ran`)).ok).toBe(true)
  expect(canary.hits).toBe(1)
  await context.close()
  figure('S14', 'files with scripts, each opened, and shown in the console: scripts that ran', `0 of ${files.length}`)
})

test('a signed URL with a flipped bit, or for another file, is refused', async () => {
  const { url } = files[0]!
  const path = url.slice(server.url.length)
  let refused = 0
  for (let bit = 0; bit < path.length * 8; bit += EVERY) {
    const bytes = Buffer.from(path)
    bytes[bit >> 3]! ^= 1 << (bit & 7)
    const other = bytes.toString('latin1')
    // Clients always percent-encode other characters.
    if (!/^\/[!-"$-~]+$/.test(other)) continue
    const answer = await fetch(server.url + other, { headers: { 'x-svc-api-key': 'none' } })
    expect([400, 401, 404], other).toContain(answer.status)
    refused++
  }
  const query = url.slice(url.indexOf('?'))
  for (const { url: another } of files.slice(1)) {
    expect((await fetch(another.slice(0, another.indexOf('?')) + query)).status).toBe(404)
  }
  figure('S14', 'addresses with one bit flipped, refused', refused)
})
