/** The list of runs in a real browser: filters, and loading and rendering while scrolling. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ROOMY } from '../contract/invariants.ts'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type Server, startServer } from '../support/server.ts'
import { becomeOwner, openBrowser, type Visitor, visit } from './browser.ts'

/** More than two pages of the list, and many more than fit on the screen. */
const MANY = 210

let provider: FakeProvider
let server: Server
let browser: Browser
let visitor: Visitor
let page: Page

beforeAll(async () => {
  provider = await openFakeProvider({ record: false })
  provider.when('[broken]', () => ({ fault: 'status:400' }))
  provider.when('run', () => ({ text: 'Done.' }))
  server = await startServer({ provider, config: { limits: { ...ROOMY, runningPerProject: 20 } } })
  const run = (instruction: string, fields: object = {}, headers = {}) =>
    server.post('/v1beta/interactions', { instruction, ...fields }, headers)
  for (let made = 0; made < MANY; made += 10) {
    await Promise.all(Array.from({ length: 10 }, (_, i) => run(`run ${made + i}`)))
  }
  await server.post('/v1beta/agents', { id: 'greeter', displayName: 'Greeter' })
  await run('run of an agent', { agentId: 'greeter' })
  await run('run of sales', { labels: { team: 'sales', stage: 'test' } })
  await run('run of live sales', { labels: { team: 'sales', stage: 'live' } })
  await run('run of another model', { model: 'svc-3.1-pro' })
  await run('run by another key', {}, { 'x-svc-api-key': await server.createKey('default') })
  await run('[broken]')
  browser = await openBrowser()
  visitor = await visit(browser, server.url)
  page = visitor.page
  await becomeOwner(page, server)
})
afterAll(async () => {
  await browser?.close()
  await server?.stop()
  await provider?.close()
})

const rows = () => page.getByRole('list', { name: 'Runs' }).getByRole('listitem')
const text = (words: string) =>
  page.getByRole('textbox', { name: words }).or(page.getByRole('combobox', { name: words }))

test.each<[name: string, set: () => Promise<unknown>, found: readonly string[]]>([
  ['status', () => page.getByLabel('Status').selectOption('Failed'), ['[broken]']],
  ['agent', () => text('Agent').fill('greeter'), ['run of an agent']],
  ['model', () => page.getByLabel('Model').selectOption('svc-3.1-pro'), ['run of another model']],
  ['label', () => setLabel('team=sales'), ['run of live sales', 'run of sales']],
  ['labels', () => setLabel('team=sales, stage=live'), ['run of live sales']],
  ['key', () => page.getByLabel('Key').selectOption('default'), ['run by another key']],
])('the filter by %s shows the matching runs, also after a reload', async (_name, set, found) => {
  await page.goto(`${server.url}/console/interactions`)
  await rows().first().waitFor()
  await set()
  for (const look of ['at once', 'again']) {
    await expect.poll(() => rows().count(), { message: look, timeout: 20_000 }).toBe(found.length)
    for (const [i, instruction] of found.entries())
      await rows().nth(i).getByText(instruction, { exact: true }).waitFor()
    await page.reload()
  }
})

async function setLabel(label: string): Promise<void> {
  await text('Label').fill(label)
  await page.keyboard.press('Enter')
}

test('the time filter requests newer runs, and the order can be reversed', async () => {
  await page.goto(`${server.url}/console/interactions`)
  await page.getByLabel('Time').selectOption('Last hour')
  await page.getByLabel('Order').selectOption('Oldest first')
  await rows()
    .first()
    .getByText(/^run \d$/)
    .waitFor()
  expect(visitor.asked.filter((url) => url.includes('order=asc')).at(-1)).toMatch(/createdAfter=20\d\d-/)
})

test('all runs can be scrolled to, and only visible rows are rendered', async () => {
  await page.goto(`${server.url}/console/interactions`)
  await rows().first().getByText('[broken]').waitFor()
  const seen = new Set<string>()
  while (!(seen.has('run 0') && seen.has('run 9'))) {
    for (const each of await rows()
      .getByText(/^run \d+$/)
      .allTextContents())
      seen.add(each)
    expect(await rows().count()).toBeLessThan(80)
    await page.mouse.wheel(0, 600)
    await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')
  }
  expect(seen.size).toBe(MANY)
})

test('warnings about a request are shown above its trace', async () => {
  const { body } = await server.post('/v1beta/interactions', { instruction: 'run', tools: ['teleport'] })
  await page.goto(`${server.url}/console/interactions/${body.id}`)
  await page.getByRole('tabpanel').getByText('unknown tool').waitFor()
  await page.getByRole('tabpanel').getByText('teleport').waitFor()
})

test('there are no CSP violations and no exceptions', () => {
  expect(visitor.complaints.filter((complaint) => !/status of 401/.test(complaint))).toEqual([])
})
