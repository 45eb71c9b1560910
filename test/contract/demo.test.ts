/**
 * Checks the built-in demo model through the API: it runs real code, returns correct figures, and is labeled as a demo.
 * The tests compute the expected figures from the files themselves.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Server, startServer } from '../support/server.ts'

const example = (name: string) => new URL(`../../examples/${name}`, import.meta.url)
const WEATHER = readFileSync(example('seattle-weather.csv'), 'utf8')
const ACCESS = readFileSync(example('access.log'), 'utf8')
const FIRST_RUN = JSON.parse(readFileSync(example('first-run.json'), 'utf8'))

const TOOLS = ['code_execution', 'file_read', 'file_write']
const MONTHS = 'January February March April May June July August September October November December'.split(' ')
const weather = { name: 'seattle-weather.csv', content: WEATHER }
const access = { name: 'access.log', content: ACCESS }
const days = WEATHER.trim()
  .split('\n')
  .slice(1)
  .map((line) => {
    const [date, rain, max, min, wind, kind] = line.trim().split(',')
    return {
      year: date!.slice(0, 4),
      month: Number(date!.slice(5, 7)),
      rain: +rain!,
      max: +max!,
      min: +min!,
      wind: +wind!,
      kind: kind!,
    }
  })
const mean = (values: readonly number[]) => values.reduce((total, value) => total + value, 0) / values.length

let server: Server
beforeAll(async () => {
  const limits = { interactionsPerMinute: 1_000_000, callsPerMinute: 1_000_000 }
  server = await startServer({ config: { limits }, env: { ERRAND_DEMO: 'on' } })
})
afterAll(async () => {
  await server?.stop()
})

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers freely; an assertion says what must be there.
async function ask(instruction: string, files: readonly object[] = [], more: object = {}): Promise<any> {
  const answer = await server.post('/v1beta/interactions', { instruction, tools: TOOLS, files, ...more })
  expect(answer.status, answer.text).toBe(200)
  expect(answer.body.status, answer.text).toBe('completed')
  const warned = answer.body.warnings.filter(({ code }: { code: string }) => code === 'demo_model')
  expect(warned, answer.text).toHaveLength(1)
  expect(warned[0]).toMatchObject({ code: 'demo_model', param: 'model', message: expect.stringMatching(/demo model/) })
  return answer.body
}

/** Returns the last number in the line that starts with this label. */
function figure(output: string, label: string): number {
  const line = output.split('\n').find((each) => each.trim().startsWith(label))
  const [number] = /-?\d+(\.\d+)?(?!.*\d)/.exec(line?.trim().slice(label.length) ?? '') ?? []
  return Number(number ?? Number.NaN)
}

function expectMonthlyMaxima(output: string): void {
  for (const [i, month] of MONTHS.entries()) {
    const expected = mean(days.filter((day) => day.month === i + 1).map(({ max }) => max))
    expect(Math.abs(figure(output, month) - expected), `${month} ${expected}\n${output}`).toBeLessThanOrEqual(0.00501)
  }
}

describe('the first-run example', () => {
  it('returns the correct mean of each month, a chart, and a trace of the code', async () => {
    const { instruction, tools, file } = FIRST_RUN
    expect(file).toBe(weather.name)
    const body = await ask(instruction, [weather], { tools })
    expectMonthlyMaxima(body.output)
    expect(body.output).toContain('August')
    expect(body.files).toHaveLength(1)
    const [chart] = body.files
    expect(chart.mimeType).toMatch(/^image\//)
    expect(body.output).toContain(chart.name.replace(/^outputs\//, ''))
    const bytes = Buffer.from(await (await fetch(chart.url)).arrayBuffer())
    expect(createHash('sha256').update(bytes).digest('hex')).toBe(chart.sha256)
    const types = body.executionTrace.map(({ type }: { type: string }) => type)
    for (const type of ['reasoning', 'tool_call', 'tool_result']) expect(types).toContain(type)
    expect(body.usage.tool_calls).toBe(types.filter((type: string) => type === 'tool_call').length)
    expect(body.usage.total_tokens).toBe(body.usage.input_tokens + body.usage.output_tokens)
  })

  it('draws the same figures in the chart', async () => {
    const { files } = await ask(FIRST_RUN.instruction, [weather])
    const svg = await (await fetch(files[0].url)).text()
    expect(svg).toMatch(/^(<\?xml[^>]*>\s*)?<svg[\s\S]*<\/svg>\s*$/)
    for (const [i, month] of MONTHS.entries()) {
      const expected = mean(days.filter((day) => day.month === i + 1).map(({ max }) => max))
      const [, drawn] = new RegExp(`>${month}: (-?\\d+(\\.\\d+)?)<`).exec(svg) ?? []
      expect(Math.abs(Number(drawn) - expected), `${month} ${expected}`).toBeLessThanOrEqual(0.00501)
    }
  })

  it('streams fragments that join to the answer, a warning, and `completed` last', async () => {
    const body = { instruction: FIRST_RUN.instruction, tools: TOOLS, files: [weather] }
    const events = await (await server.stream('/v1beta/interactions:stream', body)).all()
    const text = events.filter(({ event }) => event === 'partial_output').map(({ data }) => data.text)
    expectMonthlyMaxima(text.join(''))
    expect(events.find(({ event }) => event === 'warning')?.data.code).toBe('demo_model')
    expect(events.at(-1)).toMatchObject({ event: 'completed', data: { status: 'completed' } })
    const got = await server.get(`/v1beta/interactions/${events.at(-1)!.data.interactionId}`)
    expect(got.body.output).toBe(text.join(''))
  })

  it('computes from the file: other data gives other figures', async () => {
    const rows = days.map((day, i) => `${day.year}-${String(day.month).padStart(2, '0')}-01,${(i * 37) % 101}`)
    const other = { name: 'seattle-weather.csv', content: `date,temp_max\n${rows.join('\n')}\n` }
    const { output } = await ask(FIRST_RUN.instruction, [other])
    for (const [i, month] of MONTHS.entries()) {
      const values = days.flatMap((day, at) => (day.month === i + 1 ? [(at * 37) % 101] : []))
      expect(Math.abs(figure(output, month) - mean(values)), output).toBeLessThanOrEqual(0.00501)
    }
  })
})

describe('the demo model', () => {
  it('computes statistics of a table', async () => {
    const { output } = await ask('What is the average wind by weather in seattle-weather.csv?', [weather])
    for (const kind of new Set(days.map((day) => day.kind))) {
      const expected = mean(days.filter((day) => day.kind === kind).map(({ wind }) => wind))
      expect(Math.abs(figure(output, kind) - expected), output).toBeLessThanOrEqual(0.00501)
    }
    const { output: prices } = await ask('What is the average price by city in sales.csv?', [
      { name: 'sales.csv', content: 'city,price\nBern,10\nOslo,7\nBern,13\nOslo,8\n' },
    ])
    expect(figure(prices, 'Bern')).toBe(11.5)
    expect(figure(prices, 'Oslo')).toBe(7.5)
  })

  it('finds the maximum', async () => {
    const { output } = await ask('Which month has the highest total precipitation in seattle-weather.csv?', [weather])
    const totals = MONTHS.map((name, i) => ({
      name,
      total: days.filter(({ month }) => month === i + 1).reduce((total, { rain }) => total + rain, 0),
    }))
    const most = totals.toSorted((a, b) => b.total - a.total)[0]!
    expect(output.split('\n')[0]).toContain(most.name)
    expect(output).toContain(String(Number(most.total.toFixed(1))))
  })

  it('draws a chart', async () => {
    const { output, files } = await ask('Plot the mean temp_min by month in seattle-weather.csv', [weather])
    expect(files).toHaveLength(1)
    expect(files[0].mimeType).toMatch(/^image\//)
    const january = mean(days.filter(({ month }) => month === 1).map(({ min }) => min))
    expect(Math.abs(figure(output, 'January') - january), output).toBeLessThanOrEqual(0.00501)
  })

  it('counts entries in a log', async () => {
    const hits = ACCESS.trim()
      .split('\n')
      .map((line) => line.split(' ')[0]!)
    const counts = new Map<string, number>()
    for (const ip of hits) counts.set(ip, (counts.get(ip) ?? 0) + 1)
    const { output } = await ask('What are the top 5 IPs in access.log?', [access])
    const top = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 5)
    for (const [ip, count] of top) expect(output).toMatch(new RegExp(`^\\s*${ip}\\s.*\\b${count}$`, 'm'))
    expect(output.match(/^\s*\d+\.\d+\.\d+\.\d+\s/gm)).toHaveLength(5)
  })

  it('does arithmetic', async () => {
    const cases: [string, string][] = [
      ['What is 17 * 23 + 4?', '395'],
      ['What is 2 * (3 + 4) - 10 / 4?', '11.5'],
      ['What is 12345678901234567890 * 9?', '111111110111111111010'],
    ]
    for (const [question, result] of cases) expect((await ask(question)).output.replace(/[,\s]/g, '')).toContain(result)
  })

  it('runs code in each language', async () => {
    const cases: [string, string, string][] = [
      ['python', 'print(sum(range(101)))', '5050'],
      ['bash', 'echo $((6 * 7))', '42'],
      ['js', 'console.log([1, 2, 3].map((x) => x * x).join("-"))', '1-4-9'],
    ]
    for (const [language, code, result] of cases) {
      const body = await ask(`Run this:\n\`\`\`${language}\n${code}\n\`\`\``)
      expect(body.output).toContain(result)
      const call = body.executionTrace.find(({ type }: { type: string }) => type === 'tool_call')
      expect(call.args.code.trim()).toBe(code)
    }
    const failed = await ask('Run this:\n```python\n1 / 0\n```')
    expect(failed.output).toContain('ZeroDivisionError')
  })

  it('writes a file', async () => {
    const { files } = await ask("Create a file hello.txt with the content 'Hello'")
    expect(files).toHaveLength(1)
    expect(files[0]).toMatchObject({ size: 5, mimeType: expect.stringMatching(/^text\/plain/) })
    expect(await (await fetch(files[0].url)).text()).toBe('Hello')
  })

  it('lists the files', async () => {
    const { output } = await ask('What files are there?', [access, { name: 'in/a.txt', content: 'x' }])
    expect(output).toContain('access.log')
    expect(output).toContain(String(ACCESS.length))
    expect(output).toContain('a.txt')
  })

  it('understands each example sentence of its help', async () => {
    const files = [{ name: 'sales.csv', content: 'date,city,price\n2026-01-01,Bern,10\n2026-02-01,Oslo,7\n' }, access]
    const { output: help } = await ask('Sing me the song of the unbuilt cathedral')
    const sentences = [...help.matchAll(/"([A-Z][^"]+)"/g)].map(([, sentence]) => sentence!)
    expect(sentences.length).toBeGreaterThanOrEqual(8)
    for (const sentence of sentences) {
      const { output, usage } = await ask(sentence, files)
      expect(output, sentence).not.toMatch(/did not understand|can't/)
      expect(usage.tool_calls, sentence).toBeGreaterThan(0)
    }
  })
})

describe('the demo model, if it cannot do a task,', () => {
  it('lists what it can do and what to configure', async () => {
    for (const instruction of [
      'Translate Faust into Klingon and sing it',
      'Who won the match yesterday?',
      '…',
      'DROP TABLE interactions; --',
    ]) {
      const { output, files } = await ask(instruction)
      expect(output).toMatch(/demo model/)
      expect(output).toMatch(/not understand/)
      expect(output).toMatch(/What I can do/)
      expect(output).toMatch(/errand\.yaml/)
      expect(files).toEqual([])
    }
  })

  it('invents no figures for a missing file or column', async () => {
    const missing = await ask(FIRST_RUN.instruction)
    expect(missing.output).toContain('seattle-weather.csv')
    expect(missing.output).not.toMatch(/26\.11|August/)
    const column = await ask('What is the average snowfall by month in seattle-weather.csv?', [weather])
    expect(column.output).not.toMatch(/January|\d\.\d\d/)
    expect(column.output).toMatch(/snowfall|column/)
  })

  it('reports that it needs code_execution', async () => {
    const { output, executionTrace } = await ask(FIRST_RUN.instruction, [weather], { tools: [] })
    expect(executionTrace.filter(({ type }: { type: string }) => type === 'tool_call')).toEqual([])
    expect(output).toContain('code_execution')
    expect(output).not.toMatch(/26\.11/)
  })
})

describe('errand run', () => {
  it('prints the answer to the example and exits with 0 while a server runs', async () => {
    const file = example('seattle-weather.csv').pathname
    const { code, stdout, stderr } = await server.errand(['run', FIRST_RUN.instruction, '--file', file])
    expect(code, stderr).toBe(0)
    expectMonthlyMaxima(stdout)
    expect(stdout + stderr).toMatch(/demo model/)
  })

  it('prints the same answer with --server and its key', async () => {
    const file = example('seattle-weather.csv').pathname
    const args = ['run', FIRST_RUN.instruction, '--file', file, '--server', server.url, '--key', server.key]
    const { code, stdout, stderr } = await server.errand(args)
    expect(code, stderr).toBe(0)
    expectMonthlyMaxima(stdout)
  })

  it('prints one JSON object with --json and nothing else on stdout', async () => {
    const { code, stdout, stderr } = await server.errand(['run', 'What is 17 * 23 + 4?', '--json'])
    expect(code, stderr).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ status: 'completed', output: expect.stringContaining('395') })
  })

  it('names the file that it cannot read, and exits with an error', async () => {
    const { code, stdout, stderr } = await server.errand(['run', 'hello', '--file', '/nowhere/x.csv'])
    expect(code).not.toBe(0)
    expect(stderr).toContain('/nowhere/x.csv')
    expect(stdout + stderr).not.toMatch(/^\s+at /m)
  })
})
