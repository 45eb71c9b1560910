/** Checks `edits` of `file_write` in a real sandbox: several replacements, all or none. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type Server, startServer } from '../support/server.ts'
import { type Call, python, toolRunner, writeFile } from '../support/tool-run.ts'

let provider: FakeProvider
let server: Server
beforeAll(async () => {
  provider = await openFakeProvider()
  const limits = { interactionsPerMinute: 1_000_000, callsPerMinute: 1_000_000 }
  server = await startServer({ provider, config: { limits, sandbox: { pool: 0 } } })
})
afterAll(async () => {
  await server?.stop()
  await provider?.close()
})

const run = toolRunner(
  () => server,
  () => provider,
)

interface Edit {
  readonly find: string
  readonly replace: string
  readonly all?: boolean | null
}
const edit = (...edits: Edit[]): Call => ({ name: 'file_write', args: { path: 'a', edits } })

/** Returns the result of the call and what the file contains then. */
async function edited(content: string, call: Call): Promise<readonly [result: string, after: string]> {
  const show = python("print(repr(open('a', newline='').read()))")
  const { answer, body, outputs } = await run([call, show], { files: [{ name: 'a', content }] })
  expect(body, answer.text).toMatchObject({ status: 'completed', output: 'Done.' })
  expect(outputs).toHaveLength(2)
  return [outputs[0]!, outputs[1]!]
}

const CODE = 'def one():\n    return 1\n\ndef two():\n    return 2\n\nprint(one(), two())\n'
const same = `'${CODE.replaceAll('\n', '\\n')}'`

describe('edits', () => {
  it('are all made, in any order, and the result names the lines', async () => {
    const [result, after] = await edited(
      CODE,
      edit({ find: 'two', replace: 'zwei', all: true }, { find: '    return 1\n', replace: '', all: null }),
    )
    expect(result).toMatch(/^Replaced 3 texts at lines 2, 4 and 7 of `a`, which now has \d+ bytes\.$/)
    expect(after).toBe(String.raw`'def one():\n\ndef zwei():\n    return 2\n\nprint(one(), zwei())\n'`)
  })

  it('refer to the file before the call', async () => {
    const [, after] = await edited('a b', edit({ find: 'a', replace: 'b' }, { find: 'b', replace: 'a' }))
    expect(after).toBe("'b a'")
  })

  it('name the lines of the first ten places', async () => {
    const [result] = await edited('x x\n'.repeat(30), edit({ find: 'x', replace: 'y', all: true }))
    expect(result).toMatch(/^Replaced 60 texts at lines 1, 2, 3, 4, 5, … of/)
  })

  it('keep Windows line endings', async () => {
    const [result, after] = await edited('a\r\nb\r\nc\r\n', edit({ find: 'a\nb', replace: 'x\ny' }))
    expect(result).toContain('Windows line endings')
    expect(after).toBe(String.raw`'x\r\ny\r\nc\r\n'`)
  })

  it('are not made if one is not found; the nearest lines are shown with the difference', async () => {
    const [result, after] = await edited(
      CODE,
      edit({ find: 'return 1', replace: 'return 10' }, { find: 'def two():\n\treturn 2\n', replace: '' }),
    )
    expect(result).toMatch(/^Nothing was replaced in `a`: edits\[1\]: `find` occurs 0 times/)
    expect(result).toContain('The nearest text begins at line 4.\nline 5: "    return 2"\n   find: "\\treturn 2"')
    expect(after).toBe(same)
  })

  it('are not made if one is found twice; the lines are named', async () => {
    const [result, after] = await edited(
      CODE,
      edit({ find: 'return 1', replace: '' }, { find: 'return', replace: 'yield' }),
    )
    expect(result).toMatch(/^Nothing was replaced in `a`: edits\[1\]: `find` occurs 2 times in it, at lines 2 and 5;/)
    expect(after).toBe(same)
  })

  it('are not made if two overlap', async () => {
    const [result, after] = await edited(
      CODE,
      edit({ find: 'return 2', replace: '' }, { find: '():\n    return 2', replace: '' }),
    )
    expect(result).toMatch(/edits\[0\]: it overlaps edits\[1\] at line 5/)
    expect(after).toBe(same)
  })

  it('all report what is wrong, up to five', async () => {
    const [result] = await edited(
      CODE,
      edit(...Array.from({ length: 7 }, (_, i) => ({ find: `missing ${i}`, replace: '' }))),
    )
    expect(result.match(/edits\[\d\]/g)).toEqual(['edits[0]', 'edits[1]', 'edits[2]', 'edits[3]', 'edits[4]'])
  })

  it('are refused beside other ways to write, and with too much text', async () => {
    const { outputs } = await run([
      { name: 'file_write', args: { path: 'a', content: 'x', edits: [{ find: 'a', replace: 'b' }] } },
      { name: 'file_write', args: { path: 'a', edits: [{ find: 'a' }] } },
      edit({ find: 'a', replace: 'x'.repeat(1_048_577) }),
    ])
    expect(outputs[0]).toMatch(/^file_write did nothing: `edits` can't be combined/)
    expect(outputs[1]).toMatch(/^file_write did nothing: `edits\[0\]\.replace` is missing/)
    expect(outputs[2]).toMatch(/must be at most 1048576 characters/)
  })
})

describe('mode replace', () => {
  it('shows the nearest text on a miss too', async () => {
    const [result, after] = await edited(CODE, writeFile('a', 'x', { mode: 'replace', find: 'print(one(), too())' }))
    expect(result).toMatch(/^Nothing was replaced in `a`: `find` occurs 0 times/)
    expect(result).toContain('The nearest text begins at line 7.\nline 7: "print(one(), two())"')
    expect(after).toBe(same)
  })
})
