/** A new user's first session in a real browser, against a real server with a scripted model. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type Server, startServer } from '../support/server.ts'
import { becomeOwner, expectAccessible, openBrowser, PERSON, type Visitor, visit } from './browser.ts'

const CODE = `print('rows', 3)
open('outputs/report.html', 'w').write('<h1>Report</h1><script>fetch("/v1beta/server")</script>')
open('outputs/sum.csv', 'w').write('a,b\\n1,2\\n')`

let provider: FakeProvider
let server: Server
let browser: Browser
let visitor: Visitor
let page: Page
let key: string

beforeAll(async () => {
  provider = await openFakeProvider()
  provider.when(
    '[report]',
    {
      text: 'I count the rows.',
      toolCalls: [
        { name: 'code_execution', args: { code: `import os; os.makedirs('outputs', exist_ok=True)\n${CODE}` } },
      ],
    },
    { text: ['There are **3** rows', ' in it.'] },
  )
  provider.when('[more]', { text: 'That was all.' })
  server = await startServer({ provider })
  browser = await openBrowser()
  visitor = await visit(browser, server.url, { reducedMotion: 'reduce' })
  page = visitor.page
})
afterAll(async () => {
  await browser?.close()
  await server?.stop()
  await provider?.close()
})

const heading = (name: string | RegExp) => page.getByRole('heading', { level: 1, name })

test('the link of the first start creates the owner, once', async () => {
  await becomeOwner(page, server)
  await page.getByText('No runs yet').waitFor()
  const second = await visit(browser, server.url)
  await second.page.goto(`${server.url}${/\/console\/welcome#\w+/.exec(server.output())?.[0]}`)
  await second.page.getByText('This link is not valid').waitFor()
  await second.leave()
})

test('a key of a new project is shown once, and works', async () => {
  await page.getByRole('link', { name: 'API keys' }).click()
  await page.getByRole('button', { name: 'Create key' }).first().click()
  await page.getByLabel('Name', { exact: true }).fill('Nightly report')
  await page.getByLabel('Project', { exact: true }).selectOption('New project…')
  await page.getByLabel('Project name').fill('Reports')
  await page.getByLabel('Expires').selectOption('In 30 days')
  await page.getByRole('button', { name: 'Create key' }).click()
  key = (await page.getByRole('status', { name: 'API key' }).textContent()) ?? ''
  expect(key).toMatch(/^errand_sk_\w{38}$/)
  await page.getByRole('button', { name: 'Done' }).click()
  await page.getByRole('button', { name: 'Project: Reports' }).waitFor()
  await page.getByText('never used').waitFor()
  expect(await page.content()).not.toContain(key)
  expect((await server.get('/v1beta/agents', { 'x-svc-api-key': key })).status).toBe(200)
})

test('an agent is created, changed, compared with its first version and restored', async () => {
  await page.getByRole('link', { name: 'Agents' }).click()
  await page.getByRole('link', { name: 'Create agent' }).first().click()
  await page.getByLabel('Display name').fill('Reporter')
  await page.getByLabel('Id').fill('reporter')
  await page.getByLabel('System instruction').fill('Count rows.')
  await page.getByRole('button', { name: 'Create agent' }).click()
  await heading('Reporter').waitFor()
  await page.getByLabel('System instruction').fill('Count rows. Be brief.')
  await page.getByRole('button', { name: 'Save as version 2' }).click()
  await page.getByText('Saved as version 2').waitFor()
  await page.getByRole('tab', { name: 'Versions' }).click()
  await page
    .getByLabel('Changes since version 1')
    .getByText('+ Count rows. Be brief.')
    .or(page.getByText('Count rows. Be brief.'))
    .first()
    .waitFor()
  await page.getByRole('button', { name: 'Restore' }).click()
  await page.getByText('Saved as version 3').waitFor()
  expect((await server.get('/v1beta/agents/reporter', { 'x-svc-api-key': key })).body).toMatchObject({
    version: 3,
    systemInstruction: 'Count rows.',
  })
})

test('the agent runs in the playground with a file, and every step is shown live', async () => {
  await page.getByRole('link', { name: 'Run agent' }).click()
  await heading('Playground').waitFor()
  await page.setInputFiles('input[type=file]', {
    name: 'data.csv',
    mimeType: 'text/csv',
    buffer: Buffer.from('a\n1\n2\n3\n'),
  })
  await page.getByText('data.csv').waitFor()
  await page.getByLabel('Instruction', { exact: true }).fill('[report] How many rows?')
  await page.keyboard.press('Enter')
  await page.getByText('I count the rows.').waitFor()
  await page.getByRole('region', { name: 'Answer' }).getByText('3', { exact: true }).waitFor()
  await page.getByText('rows 3').waitFor()
  await page.getByRole('link', { name: 'View run' }).waitFor()
  expect(JSON.stringify(provider.requests.at(-1)?.body)).toContain('Count rows.')
})

test('output files can be previewed and downloaded, and are not executed', async () => {
  await page.getByRole('button', { name: 'Preview report.html' }).click()
  const frame = page.locator('iframe[title="report.html"]')
  await frame.waitFor()
  expect(await frame.getAttribute('sandbox')).toBe('')
  await page.frameLocator('iframe[title="report.html"]').getByRole('heading', { name: 'Report' }).waitFor()
  await page.getByRole('button', { name: 'Preview sum.csv' }).click()
  await page.getByRole('region', { name: 'sum.csv' }).getByRole('cell', { name: '2', exact: true }).waitFor()
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: 'Download sum.csv' }).click(),
  ])
  expect(download.suggestedFilename()).toBe('sum.csv')
})

test('a reload shows the same run, and its page shows events, configuration and request', async () => {
  await page.reload()
  await page.getByRole('region', { name: 'Answer' }).getByText('3', { exact: true }).waitFor()
  await page.getByRole('link', { name: 'View run' }).click()
  await heading('[report] How many rows?').waitFor()
  for (const [tab, text] of [
    ['Timeline', 'Collecting files'],
    ['Configuration', 'Count rows.'],
    ['Events', 'tool_result'],
    ['Network & webhooks', 'No connections.'],
    ['Request and response', '"executionTrace"'],
  ] as const) {
    await page.getByRole('tab', { name: tab }).click()
    await page.getByRole('tabpanel').getByText(text).first().waitFor()
  }
})

test('a conversation continues, and earlier turns stay visible', async () => {
  await page.getByRole('button', { name: 'More actions', exact: true }).click()
  await page.getByRole('menuitem', { name: 'Continue in playground' }).click()
  await page.getByPlaceholder('Continue the conversation…').fill('[more] Is that all?')
  await page.keyboard.press('Enter')
  await page.getByText('That was all.').waitFor()
  await page.getByText('[report] How many rows?').waitFor()
  await page.getByText('There are').waitFor()
  // It continues with the same agent, also after following a link.
  expect(JSON.stringify(provider.requests.at(-1)?.body)).toContain('Count rows.')
  await page.getByRole('complementary').getByText('As reporter v3').waitFor()
})

test('the usage page lists the agent', async () => {
  await page.getByRole('link', { name: 'Usage' }).click()
  await page.getByRole('row', { name: /^Reporter 2 / }).waitFor()
})

test('a revoked key is refused immediately', async () => {
  await page.getByRole('link', { name: 'API keys' }).click()
  await page.getByRole('button', { name: 'More actions for Nightly report' }).click()
  page.once('dialog', (dialog) => dialog.accept())
  await page.getByRole('menuitem', { name: 'Revoke' }).click()
  await page.getByText('revoked', { exact: true }).waitFor()
  expect((await server.get('/v1beta/agents', { 'x-svc-api-key': key })).status).toBe(401)
})

test('disabling managed agents blocks the account’s keys, and enabling unblocks them', async () => {
  await page.getByRole('link', { name: 'Settings' }).click()
  await page.getByRole('link', { name: 'Account', exact: true }).click()
  await page.getByRole('switch', { name: 'Managed agents' }).click()
  await page.getByText('Managed agents are disabled for this account').waitFor()
  await expectAccessible(page, 'switched off')
  expect((await server.get('/v1beta/agents')).status).toBe(403)
  await page.getByRole('switch', { name: 'Managed agents' }).click()
  await page.getByText('Managed agents enabled').waitFor()
  expect((await server.get('/v1beta/agents')).status).toBe(200)
})

test('an invited viewer joins by the link and has read-only access', async () => {
  await page.getByRole('link', { name: 'Members' }).click()
  await page.getByRole('button', { name: 'Invite member' }).click()
  await page.getByLabel('Role').selectOption('viewer')
  await page.getByRole('button', { name: 'Create link' }).click()
  const link = (await page.getByRole('status', { name: 'Link' }).textContent()) ?? ''
  await page.keyboard.press('Escape')
  const guest = await visit(browser, server.url, { reducedMotion: 'reduce' })
  await guest.page.goto(link)
  await guest.page.getByRole('heading', { level: 1, name: 'Accept invitation' }).waitFor()
  await expectAccessible(guest.page, 'an invitation')
  await guest.page.getByLabel('Name').fill('Grace')
  await guest.page.getByLabel('Email').fill('grace@example.org')
  await guest.page.getByLabel('Password').fill(PERSON.password)
  await guest.page.getByRole('button', { name: 'Join' }).click()
  await guest.page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
  await guest.page.getByRole('link', { name: 'API keys' }).click()
  expect(await guest.page.getByRole('button', { name: 'Create key' }).first().isDisabled()).toBe(true)
  await guest.leave()
})

test('a user signs out and signs in again by password', async () => {
  await page.getByRole('button', { name: /^Your account/ }).click()
  await page.getByRole('menuitem', { name: 'Sign out' }).click()
  await page.getByLabel('Email').fill(PERSON.email)
  await page.getByLabel('Password').fill('something else entirely')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('alert').waitFor()
  await page.getByLabel('Password').fill(PERSON.password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await heading('Ada').or(heading('Overview')).or(heading('Members')).first().waitFor()
})

test('there are no CSP violations, no exceptions, and no requests to other hosts', () => {
  // Browsers log error responses: not signed in, wrong password, managed agents disabled.
  const complaints = visitor.complaints.filter((text) => !/status of 40[13]/.test(text))
  // The report's own script, which was blocked.
  expect(complaints.filter((text) => !/Blocked script execution in 'blob:/.test(text))).toEqual([])
  for (const url of visitor.asked) expect(url.startsWith(`${server.url}/`) || url.startsWith('blob:'), url).toBe(true)
  expect(visitor.asked.join()).not.toContain(key)
})
