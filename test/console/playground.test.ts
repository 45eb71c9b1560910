/** The playground in a real browser: files, approvals, interruptions, images, hostile files. */
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Browser, Locator, Page, Route } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { openSite, type Site } from '../browser/site.ts'
import { openUnreliableProxy, type UnreliableProxy } from '../clients/unreliable-proxy.ts'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type FakeMcp, openFakeMcp } from '../mcp/fake-mcp.ts'
import { pdfOf } from '../support/pdf.ts'
import { type Server, startServer } from '../support/server.ts'
import { becomeOwner, expectAccessible, openBrowser, type Visitor, visit } from './browser.ts'

const run = promisify(execFile)
const SOON = { timeout: 30_000 }

let provider: FakeProvider
let mcp: FakeMcp
let site: Site
let server: Server
let proxy: UnreliableProxy
let browser: Browser
let cookies: Awaited<ReturnType<ReturnType<Page['context']>['storageState']>>
let visitor: Visitor
let page: Page

beforeAll(async () => {
  ;[provider, mcp] = await Promise.all([openFakeProvider(), openFakeMcp()])
  site = await openSite({ '/': '<body style="background: rgb(10, 200, 30)"><h1>A green page</h1>' })
  mcp.tools = [{ name: 'remove', annotations: { readOnlyHint: false } }]
  const allowPrivate = [mcp.address, `127.0.0.1:${site.port}`]
  server = await startServer({ provider, config: { egress: { allowPrivate } } })
  proxy = await openUnreliableProxy(server.url, { keepHost: true })
  browser = await openBrowser()
  const first = await visit(browser, server.url)
  await becomeOwner(first.page, server)
  cookies = await first.page.context().storageState()
  await first.leave()
})
afterAll(async () => {
  await browser?.close()
  await proxy?.close()
  await server?.stop()
  await site?.close()
  await mcp?.close()
  await provider?.close()
})
beforeEach(async () => {
  visitor = await visit(browser, server.url, { storageState: cookies, reducedMotion: 'reduce' })
  page = visitor.page
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
})
afterEach(() => visitor.leave())

const open = (path: string) => page.goto(`${server.url}/console${path}`)
const answer = (text: string) => page.getByRole('region', { name: 'Answer' }).getByText(text)
const copied = () => page.evaluate('navigator.clipboard.readText()') as Promise<string>

const widthOf = (picture: Locator) =>
  picture.evaluate((image) => (image as unknown as { naturalWidth: number }).naturalWidth)

async function ask(instruction: string): Promise<void> {
  await page.getByLabel('Instruction', { exact: true }).fill(instruction)
  await page.keyboard.press('Enter')
}

/** Scripts a model that pauses after two fragments until it is released. */
function held(marker: string, ...texts: string[]): () => void {
  const { promise, resolve } = Promise.withResolvers<void>()
  provider.when(marker, { text: texts, hold: promise, holdAfter: 2 })
  return resolve
}

test('dropped files are sent with their names and content', async () => {
  provider.when(
    '[dropped]',
    { toolCalls: [{ name: 'code_execution', args: { code: 'print(sorted(open("värden 1.csv").read().split()))' } }] },
    { text: 'Seen.' },
  )
  await open('/playground')
  const files = await page.evaluateHandle(`(() => {
    const transfer = new DataTransfer()
    transfer.items.add(new File(['3 1 2'], 'värden 1.csv', { type: 'text/csv' }))
    transfer.items.add(new File([new Uint8Array([0, 255])], 'raw.bin'))
    return transfer
  })()`)
  const field = page.getByLabel('Instruction', { exact: true })
  await field.dispatchEvent('dragover', { dataTransfer: files })
  await page.getByPlaceholder('Drop files here').waitFor()
  await field.dispatchEvent('drop', { dataTransfer: files })
  await page.getByRole('list', { name: 'Attached files' }).getByText('raw.bin').waitFor()
  await page.getByRole('button', { name: 'Remove raw.bin' }).click()
  await ask('[dropped] Sort them.')
  await page.getByText("['1', '2', '3']").waitFor()
})

test('a cancelled run stops and is shown as cancelled everywhere', async () => {
  held('[endless]', 'Once upon ', 'a time ', 'for ever.')
  await open('/playground')
  await ask('[endless] Tell me.')
  await page.getByRole('button', { name: 'Cancel' }).click()
  await page.getByText('Cancelled').first().waitFor()
  await expectAccessible(page, 'a cancelled run')
  await page.getByRole('link', { name: 'View run' }).click()
  await page.getByRole('link', { name: 'Run again' }).waitFor()
  await page.getByText('Cancelled').first().waitFor()
})

test('output is shown while code runs, code is highlighted, and the request can be read', async () => {
  const code = "import time\nprint('first', 'line', flush=True)\ntime.sleep(600)"
  provider.when('[prints]', { toolCalls: [{ name: 'code_execution', args: { code } }] })
  await open('/playground')
  await ask('[prints] Print.')
  await page
    .getByRole('region', { name: /^Result of step/ })
    .getByText('first line')
    .waitFor()
  await page
    .getByRole('region', { name: /^Code of step/ })
    .locator('.hljs-keyword')
    .getByText('import')
    .waitFor()
  await page.getByRole('button', { name: 'Request and response' }).click()
  const dialog = page.getByRole('dialog', { name: 'Request and response' })
  const request = await dialog
    .getByRole('region', { name: 'POST /v1beta/interactions:stream', exact: true })
    .textContent()
  expect(JSON.parse(request ?? '')).toMatchObject({ instruction: '[prints] Print.', tools: expect.any(Array) })
  await expectAccessible(page, 'request and response')
  await page.keyboard.press('Escape')
  await page.getByRole('button', { name: 'Cancel' }).click()
  await page.getByText('Cancelled').first().waitFor()
})

test('a reload during a run continues it, and nothing is shown twice', async () => {
  const go = held('[reloaded]', 'The first half, ', 'x'.repeat(300), ' and the second.')
  await open('/playground')
  await ask('[reloaded] Tell me.')
  await answer('The first half').waitFor()
  await page.reload()
  await answer('The first half').waitFor()
  go()
  await answer('and the second.').waitFor()
  await page.getByRole('link', { name: 'View run' }).waitFor()
  const text = await page.getByRole('region', { name: 'Answer' }).textContent()
  expect(text?.match(/The first half/g)).toHaveLength(1)
})

test('files are shown at the end, even if an earlier response arrives late', async () => {
  const { promise: over, resolve: end } = Promise.withResolvers<void>()
  const { promise: hold, resolve: go } = Promise.withResolvers<void>()
  provider.when(
    '[late]',
    { toolCalls: [{ name: 'file_write', args: { path: 'outputs/late.txt', content: 'x' } }] },
    { text: 'Made.', hold },
  )
  await open('/playground')
  const asked = page.waitForRequest(/interactions\/int_\w+$/)
  const answer = async (route: Route) => {
    const response = await route.fetch()
    await over
    await route.fulfill({ response }).catch(() => {})
  }
  await page.route(/interactions\/int_\w+$/, answer, { times: 1 })
  await ask('[late] Make a file.')
  await asked
  go()
  await page.getByRole('link', { name: 'View run' }).waitFor()
  end()
  await page.getByRole('link', { name: 'Download late.txt' }).waitFor()
})

test('a broken connection is resumed', async () => {
  const go = held('[dropped connection]', 'The first half, ', 'x'.repeat(300), ' and the second.')
  const through = await visit(browser, proxy.url, { storageState: cookies })
  page = through.page
  await page.goto(`${proxy.url}/console/playground`)
  await page.getByLabel('Instruction', { exact: true }).fill('[dropped connection] Tell me.')
  await page.waitForLoadState('networkidle')
  // The response of the POST is cut, and two reconnects fail.
  proxy.plan({ cutAfterEvents: 2 }, 'refuse', { status: 502 })
  await page.keyboard.press('Enter')
  await answer('The first half').waitFor()
  go()
  await answer('and the second.').waitFor()
  await page.getByRole('link', { name: 'View run' }).waitFor()
  expect((await page.getByRole('region', { name: 'Answer' }).textContent())?.match(/The first half/g)).toHaveLength(1)
  expect(proxy.requests.filter((each) => /^POST .*:stream/.test(each))).toHaveLength(1)
  await through.leave()
})

/** Adds an MCP server that requires approval for every call, in the playground's form. */
async function addServer(): Promise<void> {
  await page.getByText('MCP servers').click()
  await page.getByRole('button', { name: 'Add server' }).click()
  await page.getByLabel('Name', { exact: true }).fill('files')
  await page.getByLabel('URL').fill(mcp.url)
  await page.getByLabel('Require approval').selectOption('always')
}

test('calls that require approval are shown with their arguments, and are made or denied', async () => {
  provider.when('[approve]', { toolCalls: [{ name: 'files__remove', args: { path: 'a.txt' } }] }, { text: 'Gone.' })
  provider.when('[deny]', { toolCalls: [{ name: 'files__remove', args: { path: 'b.txt' } }] }, (request) => ({
    text: `The instruction was: ${request.body.messages.at(-1)?.content}`,
  }))
  await open('/playground')
  await addServer()
  await ask('[approve] Remove it.')
  await page.getByText('a.txt').waitFor()
  expect(mcp.calls()).toHaveLength(0)
  await page.reload()
  await page.getByRole('button', { name: 'Approve' }).click()
  await answer('Gone.').waitFor()
  expect(mcp.calls()).toHaveLength(1)

  await open('/playground')
  await addServer()
  await ask('[deny] Remove it.')
  await page.getByText('This call requires approval.').waitFor()
  await expectAccessible(page, 'a call that waits')
  await page.getByLabel('Reason, for the model').fill('it is needed')
  await page.getByRole('button', { name: 'Deny' }).click()
  await answer('it is needed').waitFor()
  await page.getByText('Denied').waitFor()
  expect(mcp.calls()).toHaveLength(1)
})

test('screenshots are shown in the trace', async () => {
  provider.when(
    '[shot]',
    { toolCalls: [{ name: 'browser', args: { action: 'open', url: site.url('/') } }] },
    { toolCalls: [{ name: 'browser', args: { action: 'screenshot' } }] },
    { text: 'It is green.' },
  )
  await open('/playground')
  await page.getByRole('checkbox', { name: 'browser' }).check()
  await ask('[shot] What color is it?')
  await answer('It is green.').waitFor()
  const call = page.getByRole('group', { name: /^Browser: screenshot/ })
  const picture = call.getByRole('img')
  await picture.waitFor()
  await expect.poll(() => widthOf(picture), SOON).toBe(1280)
  // The whole image, within its frame.
  const [shown, frame] = await Promise.all([picture.boundingBox(), picture.locator('..').boundingBox()])
  expect(shown!.y + shown!.height).toBeLessThanOrEqual(frame!.y + frame!.height)
})

const HOSTILE_SVG = `<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="40" height="40" onload="parent.owned=1">
<script>document.title = 'owned'; top.owned = 1; fetch('/console/api/me').then((r) => fetch('/v1beta/agents?leak'))</script>
<foreignObject><iframe xmlns="http://www.w3.org/1999/xhtml" src="javascript:top.owned=1"/></foreignObject>
<a xlink:href="javascript:top.owned=1"><rect width="40" height="40"/></a></svg>`
const HOSTILE_HTML = `<h1>Report</h1><img src=x onerror="top.owned=1"><script>top.owned=1; parent.document.title='owned'</script>
<form action=/console/auth/sign-out method=post id=f></form><script>f.submit()</script><meta http-equiv=refresh content="0;url=/console/api/me">
<a href="javascript:top.owned=1">link</a><base href="https://evil.example"><link rel=stylesheet href="/console/api/me?css">`

/** Whether something is drawn on a canvas. */
const INKED = (canvas: unknown) => {
  const { width, height, getContext } = canvas as {
    width: number
    height: number
    getContext(kind: '2d'): { getImageData(...box: number[]): { data: Uint8ClampedArray } }
  }
  const { data } = getContext.call(canvas, '2d').getImageData(0, 0, width, height)
  return data.some((value, i) => i % 4 === 0 && value < 100 && data[i + 3] === 255)
}

test('files are previewed by type, and none is executed', async () => {
  const write = (name: string, text: string) => `open('outputs/${name}', 'w').write(${JSON.stringify(text)})\n`
  const code = `import os, base64; os.makedirs('outputs', exist_ok=True)
${write('evil.svg', HOSTILE_SVG)}${write('evil.html', HOSTILE_HTML)}${write('table.csv', 'city,inhabitants\n"Bern, CH",134591\n"say ""hi""",2\n')}
open('outputs/paper.pdf', 'wb').write(base64.b64decode('${pdfOf('First page', 'Second').toString('base64')}'))
open('outputs/dot.png', 'wb').write(base64.b64decode('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='))
${write('<img src=x onerror=top.owned=1>.txt', 'a name').replace('<img', '<img')}`
  provider.when(
    '[files]',
    { toolCalls: [{ name: 'code_execution', args: { code } }] },
    {
      text: 'Look: [a link](javascript:top.owned=1) <img src=x onerror=top.owned=1> <script>top.owned=1</script>',
    },
  )
  await open('/playground')
  await ask('[files] Make some.')
  await page.getByRole('link', { name: 'View run' }).waitFor()
  await page.getByRole('img', { name: 'dot.png' }).waitFor()
  await page.getByRole('img', { name: 'evil.svg' }).waitFor()
  await expect.poll(() => widthOf(page.getByRole('img', { name: 'evil.svg' })), SOON).toBe(40)
  await page.getByRole('button', { name: 'Preview evil.html' }).click()
  await page.frameLocator('iframe[title="evil.html"]').getByRole('heading', { name: 'Report' }).waitFor()
  await page.getByRole('button', { name: 'Preview table.csv' }).click()
  const table = page.getByRole('region', { name: 'table.csv' })
  await table.getByRole('cell', { name: 'Bern, CH', exact: true }).waitFor()
  await table.getByRole('cell', { name: 'say "hi"', exact: true }).waitFor()
  await page.getByRole('button', { name: 'Preview paper.pdf' }).click()
  for (const number of [1, 2]) {
    const canvas = page.getByRole('img', { name: `paper.pdf, page ${number}` })
    await expect.poll(() => canvas.evaluate(INKED), SOON).toBe(true)
  }
  // The PDF was parsed in a worker, which can't make requests.
  const [reader] = page.workers()
  expect(reader?.url()).toMatch(/^http:.*\/console\/assets\/pdf\.worker.*\.mjs$/)
  const asked = `fetch('/console/api/me').then(() => 'answered', () => 'refused')`
  expect(await reader?.evaluate(asked)).toBe('refused')
  await page.getByRole('button', { name: /Preview <img/ }).click()
  await page.waitForLoadState('networkidle')
  await expectAccessible(page, 'files')
  expect(await page.evaluate('window.owned')).toBeUndefined()
  expect(await page.title()).toContain('Errand')
  expect(visitor.asked.filter((url) => /leak|\?css|evil\.example|sign-out/.test(url))).toEqual([])
})

test('a run is copied as curl, TypeScript and Python that work unchanged', async () => {
  provider.when('[copy]', { text: 'It’s “fine”.' })
  await open('/playground')
  await page.setInputFiles('input[type=file]', {
    name: 'big.txt',
    mimeType: 'text/plain',
    buffer: Buffer.alloc(300_000, "it's $HOME `id` \\n\n"),
  })
  await page.getByLabel('System instruction').fill('Don\'t say "no", say `yes` $HOME \\ – ☃')
  await page
    .getByLabel('Instruction', { exact: true })
    .fill('[copy] It\'s a "test" of $HOME and `id`\nin two lines \\n')
  await page.getByRole('button', { name: 'Get code' }).click()
  const dialog = page.getByRole('dialog', { name: 'Call the API' })
  await dialog.waitFor()
  await expectAccessible(page, 'code')
  const folder = await mkdtemp(join(tmpdir(), 'errand-snippets-'))
  const env = { PATH: process.env.PATH, ERRAND_API_KEY: server.key }
  const programs = [
    ['curl', 'run.sh', 'bash'],
    ['TypeScript', 'run.ts', process.execPath],
    ['Python', 'run.py', 'python3'],
  ] as const
  try {
    const bodies: unknown[] = []
    for (const [language, file, program] of programs) {
      await dialog.getByRole('tab', { name: language }).click()
      await dialog.getByRole('button', { name: `Copy ${language}` }).click()
      await dialog.getByRole('button', { name: 'Copied' }).waitFor()
      await writeFile(join(folder, file), await copied())
      const { stdout, stderr } = await run(program, [join(folder, file)], { env, cwd: folder })
      expect(stdout, stderr).toContain('It’s “fine”.')
      const { messages } = provider.requests.at(-1)!.body
      bodies.push(messages)
      expect(JSON.stringify(messages)).toContain('in two lines')
    }
    expect(bodies[1]).toEqual(bodies[0])
    expect(bodies[2]).toEqual(bodies[0])
  } finally {
    await rm(folder, { recursive: true })
  }
})

test('a run is repeated with its configuration, and two runs are compared', async () => {
  provider.when(
    '[twice]',
    { toolCalls: [{ name: 'code_execution', args: { code: 'print(int(open("data/six.txt").read()) * 7)' } }] },
    { text: 'It is 42.' },
  )
  await server.post('/v1beta/agents', {
    id: 'counter',
    systemInstruction: 'Never used.',
    skills: [],
    tools: ['browser'],
  })
  const { body } = await server.post('/v1beta/interactions', {
    agentId: 'counter',
    instruction: '[twice] How many?',
    systemInstruction: 'Count.',
    tools: ['code_execution'],
    labels: { team: 'sales' },
    policy: { maxTurnDuration: 77, sandbox: { memoryMiB: 300 } },
    files: [{ name: 'data/six.txt', content: '6' }],
  })
  await server.request('PATCH', '/v1beta/agents/counter', { systemInstruction: 'Something else by now.' })
  expect(body.status).toBe('completed')
  await open(`/interactions/${body.id}`)
  await page.getByRole('button', { name: 'Share' }).click()
  await page.getByText('Link copied').waitFor()
  expect((await copied()).split('?')[0]).toBe(`${server.url}/console/interactions/${body.id}`)
  await page.getByRole('link', { name: 'Run again' }).click()
  await page.getByRole('heading', { name: 'Playground' }).waitFor()
  await expect.poll(() => page.getByLabel('Instruction', { exact: true }).inputValue(), SOON).toBe('[twice] How many?')
  await page.getByRole('list', { name: 'Attached files' }).getByText('data/six.txt').waitFor()
  await expectAccessible(page, 'a run to be made again')
  await page.getByRole('button', { name: 'Run', exact: true }).click()
  await answer('It is 42.').waitFor()
  await page.getByRole('link', { name: 'View run' }).click()
  await page.getByRole('button', { name: 'More actions', exact: true }).waitFor()
  const again = /int_\w+/.exec(page.url())![0]
  const second = (await server.get(`/v1beta/interactions/${again}`)).body
  const configurationOf = ({ agentId, agentVersion, labels, resolved }: typeof body) => ({
    ...{ agentId, agentVersion, labels },
    resolved: {
      ...resolved,
      files: resolved.files.map(({ url: _, mimeType: __, ...file }: { url: string; mimeType: string }) => file),
    },
  })
  expect(configurationOf(second)).toEqual(configurationOf(body))
  await page.getByRole('button', { name: 'More actions', exact: true }).click()
  await page.getByRole('menuitem', { name: 'Compare with another run' }).click()
  await page.getByRole('combobox', { name: 'Run B' }).selectOption(body.id)
  for (const side of ['Run A', 'Run B']) {
    const region = page.getByRole('region', { name: side, exact: true })
    await region.getByText('It is 42.').waitFor()
    await region.getByText('42', { exact: true }).waitFor()
    await region.getByText('no change').first().waitFor()
  }
  await expectAccessible(page, 'two runs')
})
