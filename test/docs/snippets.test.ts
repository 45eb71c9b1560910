/**
 * Runs every command and program of the documentation, page by page, on one server with the demo model.
 * test/docs/blocks.ts explains the rules.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type OpenApi, openApiOf } from '../support/openapi.ts'
import { runCommand, type Server, startServer } from '../support/server.ts'
import { type Block, blocksOf, pages } from './blocks.ts'
import { NOT_RUN } from './not-run.ts'
import { fits, openSnippetRunner, type SnippetRunner } from './snippet-runner.ts'

const BLOCKS = pages().flatMap(blocksOf)

let server: Server
let api: OpenApi
beforeAll(async () => {
  // The webhook receiver in docs/webhooks.md and docs/cookbook.md.
  server = await startServer({ env: { ERRAND_EGRESS_ALLOW_PRIVATE: '127.0.0.1:8096' } })
  api = await openApiOf(server.url)
})
afterAll(() => server?.stop())

test('runs every block, except those listed with a reason', () => {
  const left = BLOCKS.filter(({ rule }) => rule.kind === 'not-run').map(({ page, rule }) => [
    page,
    (rule as { reason: string }).reason,
  ])
  const count = (...kinds: string[]) => BLOCKS.filter(({ rule }) => kinds.includes(rule.kind)).length
  console.log(
    `${BLOCKS.length} blocks: ${count('run', 'file', 'setup')} run, ${count('output', 'config', 'schema')} checked, ${left.length} not run (test/docs/not-run.ts), ${count('shown')} shown`,
  )
  expect(left).toEqual(NOT_RUN)
})

describe.each([...new Set(BLOCKS.map(({ page }) => page))])('%s', (page) => {
  test('can be followed from the beginning', { timeout: 600_000 }, async () => {
    const runner = openSnippetRunner({ ...server, key: await server.createKey(page.replaceAll(/\W/g, '-')) })
    try {
      await follow(
        runner,
        BLOCKS.filter((block) => block.page === page),
      )
    } finally {
      runner.close()
    }
  })
})

async function follow(runner: SnippetRunner, blocks: readonly Block[]): Promise<void> {
  const before: Record<string, string> = { ts: '', python: '' }
  let printed = ''
  for (const { page, language, rule, text } of blocks) {
    if (rule.kind === 'run') {
      const program = rule.async ? inAsync(text) : text
      printed = await runner.run(language, language === 'sh' ? text : `${before[language]}\n${program}\n`)
    }
    if (rule.kind === 'setup' && language === 'sh') await runner.run('sh', text)
    if (rule.kind === 'setup') before[language] = text
    if (rule.kind === 'file') runner.write(rule.name, text)
    if (rule.kind === 'output')
      expect(fits(text, printed), `${page} shows\n${text}\nand what came is\n${printed}`).toBe(true)
    if (rule.kind === 'schema')
      expect(api.complaints(`/components/schemas/${rule.name}`, JSON.parse(text)), text).toBe('')
    if (rule.kind === 'config')
      for (const yaml of rule.eachLine ? text.split('\n') : [text]) await takes(yaml, rule.env)
  }
}

/** Wraps the body of a coroutine in a program. */
function inAsync(text: string): string {
  const body = text.replaceAll(/^/gm, '    ')
  return `import asyncio\nasync def main():\n${body}\nasyncio.run(main())`
}

/** Checks a configuration with `errand config check`. */
async function takes(yaml: string, names: readonly string[]): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'errand-config-'))
  const file = join(directory, 'errand.yaml')
  try {
    await writeFile(file, yaml)
    const env = { PATH: process.env.PATH, ...Object.fromEntries(names.map((name) => [name, 'a-value-for-this-one'])) }
    const { code, stderr } = await runCommand(['config', 'check', '--config', file], env)
    expect(code, `${yaml}\n${stderr}`).toBe(0)
  } finally {
    await rm(directory, { recursive: true })
  }
}
