/** A newcomer's way through the console in a real browser, against a real server whose model is scripted. */
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

test('the link of the first start makes the owner, once', async () => {
  await becomeOwner(page, server)
  await page.getByText('Nothing has run yet').waitFor()
  const second = await visit(browser, server.url)
  await second.page.goto(`${server.url}${/\/console\/welcome#\w+/.exec(server.output())?.[0]}`)
  await second.page.getByText('This link does not work').waitFor()
  await second.leave()
})

test('a key of a new project is shown once, and works', async () => {
  await page.getByRole('link', { name: 'Keys' }).click()
  await page.getByRole('button', { name: 'Create a key' }).first().click()
  await page.getByLabel('Name', { exact: true }).fill('Nightly report')
  await page.getByLabel('Project', { exact: true }).selectOption('A new project …')
  await page.getByLabel('Name of the project').fill('Reports')
  await page.getByLabel('Expires').selectOption('In 30 days')
  await page.getByRole('button', { name: 'Create key' }).click()
  key = (await page.getByRole('status', { name: 'The key' }).textContent()) ?? ''
  expect(key).toMatch(/^errand_sk_\w{38}$/)
  await page.getByRole('button', { name: 'Done' }).click()
  await page.getByRole('button', { name: 'Project: Reports' }).waitFor()
  await page.getByText('never used').waitFor()
  expect(await page.content()).not.toContain(key)
  expect((await server.get('/v1beta/agents', { 'x-svc-api-key': key })).status).toBe(200)
})

test('an agent is made with the form, changed, compared with its first version and rolled back', async () => {
  await page.getByRole('link', { name: 'Agents' }).click()
  await page.getByRole('link', { name: 'Create the first one' }).click()
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
  await page.getByRole('button', { name: 'Roll back' }).click()
  await page.getByText('Saved as version 3').waitFor()
  expect((await server.get('/v1beta/agents/reporter', { 'x-svc-api-key': key })).body).toMatchObject({
    version: 3,
    systemInstruction: 'Count rows.',
  })
})

test('the agent runs in the playground with a dropped file, and every step is seen as it comes', async () => {
  await page.getByRole('link', { name: 'Try it' }).click()
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
  await page.getByRole('link', { name: 'Open the interaction' }).waitFor()
  expect(JSON.stringify(provider.requests.at(-1)?.body)).toContain('Count rows.')
})

test('what it made can be looked at and saved, and none of it runs in the console', async () => {
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

test('a reload shows the same run again, and the interaction its events, its settings and its exchange', async () => {
  await page.reload()
  await page.getByRole('region', { name: 'Answer' }).getByText('3', { exact: true }).waitFor()
  await page.getByRole('link', { name: 'Open the interaction' }).click()
  await heading('[report] How many rows?').waitFor()
  for (const [tab, text] of [
    ['Timeline', 'Collecting files'],
    ['Ran with', 'Count rows.'],
    ['Events', 'tool_result'],
    ['Outside', 'nothing left this server'],
    ['Request and response', '"executionTrace"'],
  ] as const) {
    await page.getByRole('tab', { name: tab }).click()
    await page.getByRole('tabpanel').getByText(text).first().waitFor()
  }
})

test('a conversation goes on from there, and what was said before stays in sight', async () => {
  await page.getByRole('button', { name: 'More', exact: true }).click()
  await page.getByRole('menuitem', { name: 'Go on in the playground' }).click()
  await page.getByPlaceholder('Go on with this conversation …').fill('[more] Is that all?')
  await page.keyboard.press('Enter')
  await page.getByText('That was all.').waitFor()
  await page.getByText('[report] How many rows?').waitFor()
  await page.getByText('There are').waitFor()
  // It goes on as what it began as, also behind a link.
  expect(JSON.stringify(provider.requests.at(-1)?.body)).toContain('Count rows.')
  await page.getByRole('complementary').getByText('As reporter v3').waitFor()
})

test('what the agent used is told', async () => {
  await page.getByRole('link', { name: 'Usage' }).click()
  await page.getByRole('row', { name: /^Reporter 2 / }).waitFor()
})

test('a key that is revoked is refused at once', async () => {
  await page.getByRole('link', { name: 'Keys' }).click()
  await page.getByRole('button', { name: 'More for Nightly report' }).click()
  page.once('dialog', (dialog) => dialog.accept())
  await page.getByRole('menuitem', { name: 'Revoke' }).click()
  await page.getByText('revoked', { exact: true }).waitFor()
  expect((await server.get('/v1beta/agents', { 'x-svc-api-key': key })).status).toBe(401)
})

test('the switch of the account stops its keys and starts them again', async () => {
  await page.getByRole('link', { name: 'Settings' }).click()
  await page.getByRole('link', { name: 'Account', exact: true }).click()
  await page.getByRole('switch', { name: 'Managed agents' }).click()
  await page.getByText('Managed agents are switched off for this account').waitFor()
  await expectAccessible(page, 'switched off')
  expect((await server.get('/v1beta/agents')).status).toBe(403)
  await page.getByRole('switch', { name: 'Managed agents' }).click()
  await page.getByText('Managed agents are on').waitFor()
  expect((await server.get('/v1beta/agents')).status).toBe(200)
})

test('somebody who is invited joins by the link, and looks only where a viewer may', async () => {
  await page.getByRole('link', { name: 'Members' }).click()
  await page.getByRole('button', { name: 'Invite somebody' }).click()
  await page.getByLabel('As').selectOption('viewer')
  await page.getByRole('button', { name: 'Make the link' }).click()
  const link = (await page.getByRole('status', { name: 'The link' }).textContent()) ?? ''
  await page.keyboard.press('Escape')
  const guest = await visit(browser, server.url, { reducedMotion: 'reduce' })
  await guest.page.goto(link)
  await guest.page.getByRole('heading', { level: 1, name: 'You are invited' }).waitFor()
  await expectAccessible(guest.page, 'an invitation')
  await guest.page.getByLabel('Name').fill('Grace')
  await guest.page.getByLabel('E-mail').fill('grace@example.org')
  await guest.page.getByLabel('Password').fill(PERSON.password)
  await guest.page.getByRole('button', { name: 'Join' }).click()
  await guest.page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
  await guest.page.getByRole('link', { name: 'Keys' }).click()
  expect(await guest.page.getByRole('button', { name: 'Create a key' }).first().isDisabled()).toBe(true)
  await guest.leave()
})

test('who signs out is out, and comes in again by password', async () => {
  await page.getByRole('button', { name: /^Your account/ }).click()
  await page.getByRole('menuitem', { name: 'Sign out' }).click()
  await page.getByLabel('E-mail').fill(PERSON.email)
  await page.getByLabel('Password').fill('something else entirely')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('alert').waitFor()
  await page.getByLabel('Password').fill(PERSON.password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await heading('Ada').or(heading('Overview')).or(heading('Members')).first().waitFor()
})

test('nothing was refused by the policy, thrown, or asked of anybody else', () => {
  // A browser logs every answer that is an error: nobody signed in, a wrong password, an account switched off.
  const complaints = visitor.complaints.filter((text) => !/status of 40[13]/.test(text))
  // The report's own script, kept from running.
  expect(complaints.filter((text) => !/Blocked script execution in 'blob:/.test(text))).toEqual([])
  for (const url of visitor.asked) expect(url.startsWith(`${server.url}/`) || url.startsWith('blob:'), url).toBe(true)
  expect(visitor.asked.join()).not.toContain(key)
})
