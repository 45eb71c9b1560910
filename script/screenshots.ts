/**
 * Takes the README's screenshots of the console: `node script/screenshots.ts` starts a server, runs its demo model, and writes
 * docs/images/.
 */
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { becomeOwner, LAPTOP, openBrowser, PHONE, visit } from '../test/console/browser.ts'
import { startServer } from '../test/support/server.ts'

const IMAGES = join(import.meta.dirname, '../docs/images')
const WEATHER = join(import.meta.dirname, '../examples/seattle-weather.csv')

const AGENTS = [
  {
    id: 'sales-analyst',
    displayName: 'Sales analyst',
    description: 'Answers questions about CSV files, with the number first and a chart where it helps',
    systemInstruction: 'Answer in one sentence. The number comes first.',
    tools: ['code_execution', 'file_read'],
    policy: { maxTurnDuration: 300 },
  },
  {
    id: 'release-notes',
    displayName: 'Release notes',
    description: 'Turns a list of commits into notes for people',
    tools: ['file_read', 'file_write', 'browser'],
    network: { allow: ['github.com'] },
  },
  {
    id: 'bookkeeper',
    displayName: 'Bookkeeper',
    description: 'Checks that the sums of an export are right',
    tools: ['code_execution'],
  },
]
const QUESTIONS = [
  'What is (17 * 23 + 4) / 5?',
  'List the primes below 50.',
  'What is the mean of 4, 8, 15, 16, 23 and 42?',
  'How many days lie between 2026-01-01 and 2026-11-21?',
  'Which year has the most rain in seattle-weather.csv?',
  'What was the average wind by weather in seattle-weather.csv?',
]
const SHOWN = 'What was the average maximum temperature by month in seattle-weather.csv? Plot it, too.'

const server = await startServer()
const browser = await openBrowser()
try {
  const weather = [{ name: 'seattle-weather.csv', content: await readFile(WEATHER, 'utf8') }]
  for (const agent of AGENTS) await server.post('/v1beta/agents', agent)
  for (const [i, instruction] of QUESTIONS.entries()) {
    await server.post('/v1beta/interactions', {
      instruction,
      agentId: AGENTS[i % 3]?.id,
      tools: ['code_execution'],
      files: weather,
    })
  }
  const { body: run } = await server.post('/v1beta/interactions', {
    instruction: SHOWN,
    tools: ['code_execution'],
    files: weather,
  })

  await mkdir(IMAGES, { recursive: true })
  const door = await visit(browser, server.url)
  await becomeOwner(door.page, server)
  const storageState = await door.page.context().storageState()
  await door.leave()

  const shots = [
    ['playground', `/playground?run=${run.id}`, 'View run', LAPTOP, 'light'],
    ['interactions', '/interactions', SHOWN, LAPTOP, 'light'],
    ['timeline', `/interactions/${run.id}?tab=timeline`, 'Collecting files', LAPTOP, 'dark'],
    ['agent', '/agents/sales-analyst', 'Save as version 2', LAPTOP, 'light'],
    ['keys', '/keys', 'first key', LAPTOP, 'dark'],
    ['server', '/settings', 'Not enforced', LAPTOP, 'dark'],
    ['phone', `/playground?run=${run.id}`, 'View run', PHONE, 'dark'],
  ] as const
  for (const [name, path, text, viewport, colorScheme] of shots) {
    const { page, leave } = await visit(browser, server.url, {
      viewport,
      colorScheme,
      storageState,
      deviceScaleFactor: 2,
    })
    await page.goto(`${server.url}/console${path}`)
    await page.getByText(text).locator('visible=true').first().waitFor()
    await settle(page)
    await page.screenshot({ path: join(IMAGES, `console-${name}.png`) })
    await leave()
  }
} finally {
  await browser.close()
  await server.stop()
}

/** Waits until everything is loaded and drawn. */
async function settle(page: Page): Promise<void> {
  await page.waitForLoadState('networkidle')
  await page.evaluate('document.fonts.ready')
}
