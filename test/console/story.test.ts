/** A newcomer's way through the console in a real browser, against a real server whose model is scripted. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type Server, startServer } from '../support/server.ts'
import { enter, openBrowser, type Visitor, visit } from './browser.ts'

const CODE = `print('rows', 3)
open('outputs/report.html', 'w').write('<h1>Report</h1><script>fetch("/v1beta/server")</script>')
open('outputs/sum.csv', 'w').write('a,b\\n1,2\\n')`

let provider: FakeProvider
let server: Server
let browser: Browser
let visitor: Visitor
let page: Page

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
  server = await startServer({ provider })
  browser = await openBrowser()
  visitor = await visit(browser, server.url)
  page = visitor.page
})
afterAll(async () => {
  await browser?.close()
  await server?.stop()
  await provider?.close()
})

const heading = (name: string | RegExp) => page.getByRole('heading', { level: 1, name })

test('a key opens the console, and what it says of a server is true', async () => {
  await enter(page, 'errand_sk_wrong')
  await page.getByText('The server does not know this key').waitFor()
  await enter(page, server.key)
  await heading('Overview').waitFor()
  await page.getByText('Nothing has run yet').waitFor()
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
  expect((await server.get('/v1beta/agents/reporter')).body).toMatchObject({
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
  await page.getByRole('region', { name: 'sum.csv' }).getByText('a,b').waitFor()
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
    ['Ran with', 'Count rows.'],
    ['Events', 'tool_result'],
    ['Outside', 'nothing left this server'],
    ['Request and response', '"executionTrace"'],
  ] as const) {
    await page.getByRole('tab', { name: tab }).click()
    await page.getByRole('tabpanel').getByText(text).first().waitFor()
  }
})

test('nothing was refused by the policy, thrown, or asked of anybody else', () => {
  // A browser logs every answer that is an error: the one that refused the wrong key.
  const complaints = visitor.complaints.filter((text) => !text.includes('401'))
  // The report's own script, kept from running.
  expect(complaints.filter((text) => !/Blocked script execution in 'blob:/.test(text))).toEqual([])
  for (const url of visitor.asked) expect(url.startsWith(`${server.url}/`) || url.startsWith('blob:'), url).toBe(true)
  expect(visitor.asked.join()).not.toContain(server.key)
})
