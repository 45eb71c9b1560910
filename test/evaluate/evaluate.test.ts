/** The evaluation on the scripted provider: a model that works solves every task, one that guesses solves none. */
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { stringify } from 'yaml'
import type { RunResult } from '../../evaluate/report.ts'
import { bestCountry } from '../../evaluate/tasks/data-analysis.ts'
import { jobName, shop } from '../../evaluate/tasks/refactoring.ts'
import { bestPump } from '../../evaluate/tasks/web-reading.ts'
import { TASKS } from '../../evaluate/tasks.ts'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { SOLUTIONS } from './solutions.ts'

const EVALUATE = new URL('../../evaluate/evaluate.ts', import.meta.url).pathname
const PRICE = { input: 1, output: 4, cachedInput: 0.1 }

let solver: FakeProvider
let guesser: FakeProvider
let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'errand-evaluate-test-'))
  solver = await openFakeProvider({ counts: true, pairsCalls: true })
  guesser = await openFakeProvider({ counts: true })
  for (const [phrase, solution] of Object.entries(SOLUTIONS)) {
    solver.when(phrase, ({ body }) => {
      const turns = body.messages.filter(({ role }) => role === 'assistant').length
      const result = body.messages.findLast(({ role }) => role === 'tool')?.content ?? ''
      return solution(turns, body, String(result))
    })
  }
  guesser.when(/./, () => ({ text: '{"country": "Norway", "code": "PX-100", "phone": "+47 555 41", "city": "Malmö"}' }))
  const model = ({ url }: FakeProvider) => ({
    provider: 'openai-compatible',
    model: 'fake',
    baseUrl: url,
    price: PRICE,
  })
  await writeFile(
    join(folder, 'errand.yaml'),
    stringify({ models: { solver: model(solver), guesser: model(guesser) } }),
  )
})
afterAll(async () => {
  await solver?.close()
  await guesser?.close()
  await rm(folder, { recursive: true, force: true })
})

const evaluate = (...args: readonly string[]) =>
  promisify(execFile)(process.execPath, [EVALUATE, '--config', join(folder, 'errand.yaml'), ...args])

it('reports which model solved which task, with turns, tokens, cost and time', { timeout: 300_000 }, async () => {
  const { stdout } = await evaluate('--model', 'solver', '--model', 'guesser', '--json', '--out', join(folder, 'out'))
  const results = JSON.parse(stdout) as RunResult[]
  const solved = (model: string) => results.filter((run) => run.model === model && run.solved).map(({ task }) => task)
  expect(results.filter(({ model }) => model === 'solver').flatMap(({ problem }) => problem ?? [])).toEqual([])
  expect(solved('solver')).toEqual(TASKS.map(({ name }) => name))
  expect(solved('guesser')).toEqual([])
  for (const run of results) {
    expect(run.cost).toBeGreaterThan(0)
    expect(run.seconds).toBeGreaterThan(0)
    expect(run.turns).toBeGreaterThan(0)
  }
  const markdown = await readFile(join(folder, 'out/results.md'), 'utf8')
  expect(markdown).toMatch(/^\| all \| solver \| default \| 5\/5 \|/m)
  expect(markdown).toMatch(/^\| all \| guesser \| default \| 0\/5 \|/m)
  expect(await readFile(join(folder, 'out/results.svg'), 'utf8')).toContain('solver default')
})

it('sends each setting as fields of the request, and prints a table', { timeout: 300_000 }, async () => {
  const task = ['--model', 'solver', '--task', 'data-analysis']
  const { stdout } = await evaluate(...task, '--setting', 'default', '--setting', 'policy.maxOutputTokens=99')
  expect(stdout).toMatch(/^data-analysis +solver +default +1\/1/m)
  const limits = solver.requests.slice(-1).map(({ body }) => body.max_tokens)
  expect(limits[0]).toBeLessThanOrEqual(99)
})

it.each([
  [['--task', 'chess', '--model', 'm'], 'there is no such task'],
  [[], '--model is missing'],
  [['--model', 'm', '--setting', 'effort'], 'is not FIELD=VALUE'],
  [['--model', 'm', '--repeat', '0'], 'must be a whole number'],
])('explains the arguments %j', async (args, message) => {
  await expect(evaluate(...args)).rejects.toMatchObject({ code: 2, stderr: expect.stringContaining(message) })
})

const WITHOUT_WORK = { output: 'I could not do it.', files: new Map<string, string>() }
const json = (answer: object) => ({ ...WITHOUT_WORK, output: JSON.stringify(answer) })
const files = (entries: Iterable<readonly [string, string]>) => ({ ...WITHOUT_WORK, files: new Map(entries) })
const projectOf = (name: string) => TASKS.find((task) => task.name === name)!.request(undefined as never).files!
const unchanged = (name: string) => projectOf(name).map(({ name, content }) => [name, content ?? ''] as const)
const inShop = (change: (name: string, content: string) => string) =>
  files([...shop()].map(([name, content]) => [`shop/${name}`, change(name, content)] as const))
const withoutLegacy = (content: string) => content.replaceAll(/legacy(_send)?/g, 'mailer')

/** Results that look right and are wrong, by task. */
const WRONG = {
  'data-analysis': [
    json({ ...bestCountry(), revenue: bestCountry().revenue + 0.5 }),
    json({ ...bestCountry(), orders: bestCountry().orders + 1 }),
    json({ ...bestCountry(), country: 'Atlantis' }),
  ],
  'code-repair': [
    files(unchanged('code-repair')),
    files(unchanged('code-repair').filter(([name]) => !name.includes('finder'))),
  ],
  'web-reading': [json({ ...bestPump(), litersPerMinute: 15 }), json({ ...bestPump(), code: 'PX-1' })],
  refactoring: [
    files(unchanged('refactoring')),
    inShop((name, content) => (name === jobName(3) ? content : withoutLegacy(content))),
    inShop((_, content) => `${withoutLegacy(content)}\n# Message()\n`),
  ],
  'many-tools': [json({ phone: '+47 555 91', city: 'Oslo' }), json({ phone: '', city: 'Bergen' })],
}

it.each(TASKS.map(({ name }) => name))('fails wrong results of %s', (name) => {
  const task = TASKS.find((each) => each.name === name)!
  for (const result of [WITHOUT_WORK, ...WRONG[name as keyof typeof WRONG]]) expect(task.grade(result)).toMatch(/./)
})
