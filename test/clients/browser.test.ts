/** The client in TypeScript in a real browser, as a page of the server's own origin has it, over a network that breaks. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openBrowser } from '../console/browser.ts'
import { ROOT } from '../package/install.ts'
import { type Server, startServer } from '../support/server.ts'
import { openUnreliableProxy, type UnreliableProxy } from './unreliable-proxy.ts'

let server: Server
let proxy: UnreliableProxy
beforeAll(async () => {
  server = await startServer()
  proxy = await openUnreliableProxy(server.url)
})
afterAll(async () => {
  await proxy?.close()
  await server?.stop()
})

const PROGRAM = (key: string) => `(async () => {
  const { Errand, inputFile } = await import('/client/index.js')
  const errand = new Errand({ apiKey: '${key}', baseUrl: location.origin })
  const files = [await inputFile('data.csv', new Blob(['a,b\\n1,10\\n2,32\\n']))]
  const stream = errand.interactions.stream({ instruction: 'What is the sum of the column b in data.csv?', tools: ['code_execution'], files })
  const ids = []
  let text = ''
  for await (const event of stream) {
    ids.push(event.id)
    if (event.event === 'partial_output') text += event.data.text
  }
  const { output, status } = await stream.final()
  const gone = new AbortController()
  const left = await errand.interactions
    .create({ instruction: 'Run:\\n\`\`\`bash\\nsleep 60\\n\`\`\`', tools: ['code_execution'] }, { signal: (setTimeout(() => gone.abort(), 1000), gone.signal), cancelOnAbort: true })
    .catch((error) => error.name)
  const none = await errand.agents.retrieve('none').catch((error) => error.name)
  return { gapless: ids.every((id, i) => id === i + 1), same: text === output, output, status, left, none }
})()`

test('streams, sends a file, and takes up what is cut', async () => {
  const browser = await openBrowser()
  try {
    const page = await browser.newPage()
    await page.route('**/page', (route) => route.fulfill({ contentType: 'text/html', body: '<!doctype html>' }))
    await page.route('**/client/*', async (route) => {
      const name = new URL(route.request().url()).pathname.split('/').at(-1)!
      const body = await readFile(join(ROOT, 'clients/typescript/dist', name))
      await route.fulfill({ contentType: 'text/javascript', body })
    })
    await page.goto(`${proxy.url}/page`)
    proxy.plan({ cutAfterEvents: 2 }, 'refuse', { cutAfterEvents: 1 })
    expect(await page.evaluate(PROGRAM(server.key))).toEqual({
      gapless: true,
      same: true,
      output: expect.stringContaining('42'),
      status: 'completed',
      left: 'AbortedError',
      none: 'NotFoundError',
    })
    expect(proxy.requests.filter((request) => request.includes(':stream')).length).toBeGreaterThan(3)
  } finally {
    await browser.close()
  }
})
