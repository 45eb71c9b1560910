/** Every page by axe, on a laptop and on a phone, in light and in dark colours; and by keyboard. */
import type { Browser, BrowserContextOptions } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type Server, startServer } from '../support/server.ts'
import { becomeOwner, expectAccessible, openBrowser, PERSON, visit } from './browser.ts'

type StorageState = BrowserContextOptions['storageState']

let provider: FakeProvider
let server: Server
let browser: Browser
let runId: string
/** The owner's cookies. */
let owner: StorageState

beforeAll(async () => {
  provider = await openFakeProvider()
  provider.when(
    '[look]',
    { toolCalls: [{ name: 'code_execution', args: { code: 'print(1)' } }] },
    { text: 'It is **one**.' },
  )
  server = await startServer({ provider, config: { console: { signUp: true } } })
  await server.post('/v1beta/agents', { id: 'looker', displayName: 'Looker', systemInstruction: 'Look.' })
  const { body } = await server.post('/v1beta/interactions', {
    instruction: '[look] What is it?',
    agentId: 'looker',
    tools: ['code_execution'],
    labels: { team: 'sales' },
  })
  runId = body.id
  await server.post('/v1beta/interactions', { instruction: '[look] Again.' })
  browser = await openBrowser()
  // The door of a server without an owner is looked at while it has none.
  const { page, leave } = await visit(browser, server.url, { reducedMotion: 'reduce' })
  await page.getByRole('heading', { name: 'This server has no owner yet' }).waitFor()
  await expectAccessible(page, 'no owner')
  await becomeOwner(page, server)
  owner = await page.context().storageState()
  await leave()
})
afterAll(async () => {
  await browser?.close()
  await server?.stop()
  await provider?.close()
})

/** Each page, with what is there when it is all there. */
const pages: readonly (readonly [path: () => string, text: string])[] = [
  [() => '', 'Latest runs'],
  [() => '/playground', 'What should it do?'],
  [() => `/playground?run=${runId}`, 'Open the interaction'],
  [() => '/interactions', '[look] What is it?'],
  [() => '/interactions?status=failed', 'Nothing matches'],
  [() => `/interactions/${runId}`, 'one'],
  [() => `/interactions/${runId}?tab=timeline`, 'code_execution'],
  [() => `/interactions/${runId}?tab=settings`, 'System instruction'],
  [() => `/interactions/${runId}?tab=events`, 'tool_result'],
  [() => `/interactions/${runId}?tab=outside`, 'Hosts it turned to'],
  [() => `/interactions/${runId}?tab=json`, 'Response'],
  [() => '/interactions/int_none', 'There is nothing here'],
  [() => `/compare?a=${runId}`, 'Choose a run'],
  [() => '/agents', 'Looker'],
  [() => '/agents/new', 'Create agent'],
  [() => '/agents/looker', 'Save as version 2'],
  [() => '/agents/looker?tab=versions', 'newest'],
  [() => '/agents/none', 'There is nothing here'],
  [() => '/keys', 'last used'],
  [() => '/usage', 'no stored agent'],
  [() => '/usage?by=key&days=7&project=all', 'first key'],
  [() => '/usage?from=2020-01-01&to=2020-01-31', 'Nothing ended in these days'],
  [() => '/usage?from=2020-01-01&to=2019-01-31', 'must not be before'],
  [() => '/settings', 'Not enforced on this host'],
  [() => '/settings/models', 'default'],
  [() => '/settings/mcp', 'No MCP servers yet'],
  [() => '/settings/skills', 'No skills yet'],
  [() => '/settings/credentials', 'No credentials yet'],
  [() => '/settings/members', 'Ada'],
  [() => '/settings/account', 'Managed agents'],
  [() => '/settings/audit', 'member.joined'],
  [() => '/settings/you', 'this one'],
  [() => '/no/such/page', 'There is no such page'],
]

const link = async (...options: string[]) => {
  const { stdout } = await server.errand(['console', 'link', ...options])
  return stdout.trim().replace(/.*\/console/, '')
}

test.each<[path: string | (() => Promise<string>), heading: string]>([
  ['', 'Sign in'],
  ['/sign-up', 'Create an account'],
  ['/welcome#used', 'This link does not work'],
  [() => link('--reset-password', PERSON.email), 'Set a new password'],
])('the door can be used by everybody: %s', async (path, heading) => {
  const { page, leave } = await visit(browser, server.url, { reducedMotion: 'reduce' })
  await page.goto(`${server.url}/console${typeof path === 'string' ? path : await path()}`)
  await page.getByRole('heading', { level: 1, name: heading }).waitFor()
  await expectAccessible(page, heading)
  await leave()
})

test.each(pages)('page %# can be used by everybody', async (path, text) => {
  // Without motion, so that nothing is looked at while it appears.
  const { page, leave } = await visit(browser, server.url, { reducedMotion: 'reduce', storageState: owner })
  await page.goto(`${server.url}/console${path()}`)
  await page.getByText(text, { exact: false }).locator('visible=true').first().waitFor()
  await page.waitForLoadState('networkidle')
  await expectAccessible(page, path())
  await leave()
})

test('the palette opens by keyboard, finds an agent, and goes there; Escape closes it', async () => {
  const { page, leave } = await visit(browser, server.url, { reducedMotion: 'reduce', storageState: owner })
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  await page.keyboard.press('Control+k')
  await page.getByPlaceholder('Go to a page').fill('look')
  await page.getByRole('option', { name: 'Looker' }).waitFor()
  await expectAccessible(page, 'the palette')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { level: 1, name: 'Looker' }).waitFor()
  await page.keyboard.press('Control+k')
  await page.getByPlaceholder('Go to a page').waitFor()
  await page.keyboard.press('Escape')
  await page.getByPlaceholder('Go to a page').waitFor({ state: 'detached' })
  await page.keyboard.press('g')
  await page.keyboard.press('i')
  await page.getByRole('heading', { level: 1, name: 'Interactions' }).waitFor()
  await leave()
})

test('colours that were chosen stay chosen', async () => {
  const { page, leave } = await visit(browser, server.url, { storageState: owner })
  await page.getByRole('button', { name: /^Your account/ }).click()
  await page.getByRole('menuitem', { name: 'Dark' }).click()
  await page.reload()
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  expect(await page.evaluate('getComputedStyle(document.documentElement).colorScheme')).toBe('dark')
  await leave()
})
