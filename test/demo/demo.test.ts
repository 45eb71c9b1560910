/** The demo model without tables: small tasks, JSON answers, budgets, aborts. */

import { Ajv } from 'ajv'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { evaluate, findExpression } from '../../src/demo/arithmetic.ts'
import { demoEntry } from '../../src/demo/catalogue-entry.ts'
import { createDemoModel } from '../../src/demo/demo.ts'
import { userText } from '../../src/domain/message.ts'
import { estimateTokens } from '../../src/domain/usage.ts'
import type { ModelDelta, ModelRequest } from '../../src/models/port.ts'
import { drive } from './drive.ts'
import { DAYS, mean, WEATHER } from './figures.ts'

const weather = { files: { 'seattle-weather.csv': WEATHER } }

describe('arithmetic', () => {
  test.each([
    ['What is 17 * 23 + 4?', '17 * 23 + 4 = 395'],
    ['compute 2**64', '= 18446744073709551616'],
    ['what is 15% of 80', '= 12'],
    ['What is 12 plus 30 divided by 4?', '= 19.5'],
    ['how much is 1,250 x 3', '= 3750'],
    ['What is 1/0?', 'divides by zero'],
    ['compute 9**9**9', 'more than 4000 digits'],
  ])('%s has the same result with and without the sandbox', async (instruction, said) => {
    const inside = await drive(instruction)
    const outside = await drive(instruction, { tools: [] })
    expect(inside.output).toContain(said)
    expect(outside.output).toBe(inside.output)
    expect(outside.calls).toEqual([])
  })

  test('computes whole numbers exactly, in the right order of operations', () => {
    const leaf = fc.integer({ min: 0, max: 999 }).map((n) => ({ text: String(n), value: BigInt(n) }))
    const { tree } = fc.letrec<{ tree: { text: string; value: bigint } }>((tie) => ({
      tree: fc.oneof(
        { depthSize: 'small' },
        leaf,
        fc.tuple(tie('tree'), fc.constantFrom('+', '-', '*'), tie('tree')).map(([a, sign, b]) => ({
          text: `(${a.text} ${sign} ${b.text})`,
          value: sign === '+' ? a.value + b.value : sign === '-' ? a.value - b.value : a.value * b.value,
        })),
      ),
    }))
    fc.assert(
      fc.property(tree, ({ text, value }) => {
        expect(evaluate(text)).toEqual({ ok: true, value: String(value) })
      }),
    )
    expect(evaluate('2 + 3 * 4 - 10 / 4')).toEqual({ ok: true, value: '11.5' })
    expect(evaluate('-2 ** 2')).toEqual({ ok: true, value: '-4' })
    expect(evaluate('2 ** 3 ** 2')).toEqual({ ok: true, value: '512' })
    expect(evaluate('-7 % 3')).toEqual({ ok: true, value: '2' })
  })

  test('does not take other text for arithmetic, and never runs it as code', () => {
    for (const text of [
      'What happened on 2026-05-20?',
      'call me at 555-',
      'version 1.2.3',
      '__import__("os")',
      'phone',
    ]) {
      expect(findExpression(text), text).toBeUndefined()
    }
    expect(evaluate('process.exit(1)').ok).toBe(false)
  })
})

describe('sequences', () => {
  test.each([
    ['Compute the first 10 Fibonacci numbers', '0, 1, 1, 2, 3, 5, 8, 13, 21, 34'],
    ['What are the first 10 primes?', '2, 3, 5, 7, 11, 13, 17, 19, 23, 29'],
    ['the first 4 squares', '1, 4, 9, 16'],
  ])('%s', async (instruction, said) => {
    const { output, calls } = await drive(instruction)
    expect(output).toContain(said)
    expect(calls).toHaveLength(1)
  })

  test('a result is saved where the instruction says', async () => {
    const { output, outputs } = await drive('Compute the first 3 primes and save them to primes.txt')
    expect(output).toContain('outputs/primes.txt')
    expect(outputs.get('primes.txt')).toContain('2, 3, 5')
  })
})

describe('code and files', () => {
  test.each([
    ['```python\nprint(6 * 7)\n```', 'python', '42'],
    ['Run this:\n```bash\necho $((6 * 7))\n```', 'bash', '42'],
    ['Please run\n```js\nconsole.log(6 * 7)\n```', 'javascript', '42'],
  ])('%s', async (instruction, language, said) => {
    const { output, calls } = await drive(instruction)
    expect(calls[0]!.args.language).toBe(language)
    expect(output).toContain(said)
    expect(output).toContain('code ran')
  })

  test('code that fails is reported as failed', async () => {
    const { output } = await drive('```python\nraise ValueError("no")\n```')
    expect(output).toContain('code failed')
    expect(output).toContain('ValueError: no')
  })

  test.each([
    ['Create a file hello.txt with the content "Hello, world"', 'hello.txt', 'Hello, world'],
    ["Write 'a,b' to outputs/x.csv", 'x.csv', 'a,b'],
    ['save the text "one\'s own" as note.md', 'note.md', "one's own"],
  ])('%s', async (instruction, name, content) => {
    const { outputs, output } = await drive(instruction)
    expect(outputs.get(name)).toBe(content)
    expect(output).toContain(`outputs/${name}`)
    const byCode = await drive(instruction, { tools: ['code_execution'] })
    expect(byCode.outputs.get(name)).toBe(content)
  })

  test('text that it would have to make up is refused', async () => {
    const essay = await drive('Write an essay about cats to cats.md')
    expect(essay.outputs.size).toBe(0)
    expect(essay.output).toContain("can't make up that text")
  })

  test('files are listed', async () => {
    expect((await drive('What files are there?', weather)).output).toContain(
      `seattle-weather.csv (${WEATHER.length} bytes)`,
    )
  })

  test('answers anything else with what it can do and how to configure a real model', async () => {
    const { output, calls } = await drive('Hello!')
    expect(output).toMatch(/demo model.*What is 17 \* 23 \+ 4.*errand\.yaml/s)
    expect(calls).toEqual([])
  })
})

describe('an answer in JSON', () => {
  const ajv = new Ajv({ strict: false })
  const monthly = {
    type: 'object',
    properties: {
      summary: { type: 'string', maxLength: 200 },
      mean: { type: 'number' },
      month: { type: 'string' },
      months: {
        type: 'array',
        items: {
          type: 'object',
          properties: { month: { type: 'string' }, mean: { type: 'number' } },
          required: ['month', 'mean'],
          additionalProperties: false,
        },
      },
      found: { type: 'boolean' },
    },
    required: ['summary', 'mean', 'month', 'months', 'found'],
    additionalProperties: false,
  }

  test('conforms to the schema and has the computed values', async () => {
    const { output } = await drive('What is the average wind by weather in seattle-weather.csv?', {
      ...weather,
      responseFormat: {
        type: 'object',
        properties: {
          weather: { type: 'string' },
          mean: { type: 'number' },
          groups: {
            type: 'array',
            items: { type: 'object', properties: { weather: { type: 'string' }, value: { type: 'number' } } },
          },
        },
      },
    })
    const answer = JSON.parse(output)
    const snow = mean(DAYS.filter((day) => day.weather === 'snow').map((day) => day.wind))
    expect(answer.weather).toBe('snow')
    expect(answer.mean).toBeCloseTo(snow, 9)
    expect(answer.groups).toHaveLength(5)
    expect(answer.groups.find((group: { weather: string }) => group.weather === 'snow').value).toBeCloseTo(snow, 9)
  })

  test('an integer is the count that was asked for', async () => {
    const responseFormat = {
      type: 'object',
      properties: { count: { type: 'integer' }, answer: { type: 'string' } },
      required: ['count', 'answer'],
    }
    const answer = JSON.parse((await drive('How many days were rainy?', { ...weather, responseFormat })).output)
    expect(answer.count).toBe(DAYS.filter((day) => day.weather === 'rain').length)
    expect(answer.answer).toContain(String(answer.count))
  })

  test.each(['average temp_max by month in seattle-weather.csv', 'What is 2 + 2?', 'hello', 'and so on'])(
    'conforms to the schema for any instruction: %s',
    async (instruction) => {
      const { output } = await drive(instruction, { ...weather, responseFormat: monthly })
      expect(ajv.validate(monthly, JSON.parse(output)), ajv.errorsText()).toBe(true)
    },
  )
})

describe('as a model', () => {
  const request: ModelRequest = { messages: [userText('Hello!')], tools: [], maxOutputTokens: 100_000 }
  const never = new AbortController().signal

  async function call(overrides: Partial<ModelRequest>, signal = never) {
    const deltas: ModelDelta[] = []
    const outcome = await createDemoModel().call({ ...request, ...overrides }, (delta) => deltas.push(delta), signal)
    const said = (type: 'text' | 'reasoning') => deltas.map((delta) => (delta.type === type ? delta.text : '')).join('')
    return { outcome, deltas, text: said('text'), reasoning: said('reasoning') }
  }

  test('streams fragments, counts tokens, and gives the same reply again', async () => {
    const first = await call({})
    const again = await call({})
    expect(again.deltas).toEqual(first.deltas)
    expect(first.deltas.length).toBeGreaterThan(10)
    expect(first.outcome).toMatchObject({ ok: true, finish: 'stop' })
    expect(first.outcome.tokens).toEqual({
      input: estimateTokens('Hello!'.length + '[]'.length),
      output: estimateTokens(first.text.length + first.reasoning.length),
      cachedInput: 0,
      reasoning: estimateTokens(first.reasoning.length),
    })
  })

  test('stays within any token budget and reports a truncated answer', async () => {
    const whole = await call({})
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 600 }), async (maxOutputTokens) => {
        const { outcome, text, reasoning } = await call({ maxOutputTokens })
        expect(outcome.tokens!.output).toBeLessThanOrEqual(maxOutputTokens)
        expect((whole.reasoning + whole.text).startsWith(reasoning + text)).toBe(true)
        const complete = text === whole.text
        expect(outcome).toMatchObject({ ok: true, finish: complete ? 'stop' : 'length' })
      }),
    )
  })

  test('does not make a call that does not fit the budget', async () => {
    const messages = [
      userText('Average wind by weather in a.csv?\n\nFiles in the working directory:\n- a.csv (12 bytes)'),
    ]
    const tools = [{ name: 'code_execution', description: '', parameters: {} }]
    const { outcome } = await call({ messages, tools, maxOutputTokens: 120 })
    expect(outcome).toMatchObject({ ok: true, finish: 'length' })
    expect(outcome.ok && outcome.message.content.some((part) => part.type === 'tool_call')).toBe(false)
  })

  test('ends within a few fragments after an abort, and counts them', async () => {
    const abort = new AbortController()
    let heard = 0
    const outcome = await createDemoModel().call(request, () => ++heard === 8 && abort.abort(), abort.signal)
    expect(outcome).toMatchObject({ ok: false, failure: { kind: 'aborted' } })
    expect(heard).toBe(8)
    expect(outcome.tokens!.output).toBeGreaterThan(0)
    expect(await call({}, AbortSignal.abort())).toMatchObject({ outcome: { ok: false }, deltas: [] })
  })

  test('gives an answer or a call for any instruction, never an exception', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'grapheme', maxLength: 200 }), fc.boolean(), async (instruction, withFile) => {
        const files = withFile ? '\n\nFiles in the working directory:\n- a.csv (1 bytes)' : ''
        const { outcome } = await call({ messages: [userText(instruction + files)] })
        expect(outcome.ok).toBe(true)
      }),
    )
  })

  test('is marked as the demo model in its catalogue entry', () => {
    expect(demoEntry('svc-3.5-flash')).toMatchObject({
      name: 'svc-3.5-flash',
      provider: 'demo',
      demo: true,
      vision: false,
      documents: false,
    })
  })
})
