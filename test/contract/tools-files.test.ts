/** Checks `file_read` and `file_write` in a real sandbox. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type Server, startServer } from '../support/server.ts'
import { bash, type Call, python, readFile, toolRunner, writeFile } from '../support/tool-run.ts'

const OUTPUT_BYTES = 4096

let provider: FakeProvider
let server: Server
beforeAll(async () => {
  provider = await openFakeProvider()
  const limits = { interactionsPerMinute: 1_000_000, callsPerMinute: 1_000_000 }
  server = await startServer({ provider, config: { limits, sandbox: { pool: 0, outputBytes: OUTPUT_BYTES } } })
})
afterAll(async () => {
  await server?.stop()
  await provider?.close()
})

const run = toolRunner(
  () => server,
  () => provider,
)

/** Returns the result of each call of a completed run. */
async function outputs(...turns: Call[]): Promise<readonly string[]> {
  const { answer, body, outputs: all } = await run(turns)
  expect(answer.status, answer.text).toBe(200)
  expect(body, answer.text).toMatchObject({ status: 'completed', output: 'Done.' })
  expect(all).toHaveLength(turns.length)
  return all
}

const lines = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => `line ${from + i}.`)
const has = (output: string | undefined) => /line \d+\./g[Symbol.match](output ?? '') ?? []
const contentOf = (path: string) => python(`print(repr(open(${JSON.stringify(path)}, newline='').read()))`)

describe('file_read', () => {
  it('reads a whole file by relative and absolute path', async () => {
    const content = `${lines(1, 12).join('\n')}\nnaïve — 文字 🦊\n`
    const { outputs: all } = await run([readFile('a/b.txt'), readFile('/workspace/a/b.txt'), readFile('./a/b.txt')], {
      files: [{ name: 'a/b.txt', content }],
    })
    expect(has(all[0])).toEqual(lines(1, 12))
    expect(all[0]).toContain('naïve — 文字 🦊')
    expect(has(all[1])).toEqual(lines(1, 12))
    expect(has(all[2])).toEqual(lines(1, 12))
  })

  it('reads an inclusive range of lines, counted from 1', async () => {
    const { outputs: all } = await run(
      [
        readFile('a', { startLine: 3, endLine: 5 }),
        readFile('a', { startLine: 9 }),
        readFile('a', { endLine: 2 }),
        readFile('a', { startLine: 4, endLine: 4 }),
        readFile('a', { startLine: 9, endLine: 99 }),
      ],
      { files: [{ name: 'a', content: lines(1, 10).join('\n') }] },
    )
    expect(all.map(has)).toEqual([lines(3, 5), lines(9, 10), lines(1, 2), lines(4, 4), lines(9, 10)])
  })

  it('numbers the lines, and ends a long file with how to read on', async () => {
    const content = `${lines(1, 2000).join('\n')}\n`
    const { outputs: all } = await run(
      [readFile('a'), readFile('a', { startLine: 1999 }), readFile('b', { startLine: 2, endLine: 3 })],
      { files: ['a', 'b'].map((name) => ({ name, content })) },
    )
    const shown = has(all[0]).length
    expect(all[0]).toMatch(/^\[a: lines 1-\d+ of 2000, \d+ bytes\]\n1\tline 1\.\n2\tline 2\.\n/)
    expect(all[0]!.split('\n').at(-1)).toBe(`[${2000 - shown} more; continue with startLine ${shown + 1}]`)
    expect(all[1]).toMatch(/\n1999\tline 1999\.\n2000\tline 2000\.$/)
    expect(all[2]).toMatch(/\n2\tline 2\.\n3\tline 3\.$/)
  })

  it('reports an invalid range', async () => {
    const { body, outputs: all } = await run(
      [
        readFile('a', { startLine: 11 }),
        readFile('a', { startLine: 5, endLine: 4 }),
        readFile('a', { startLine: 0 }),
        readFile('a', { endLine: -1 }),
        readFile('a', { startLine: 1.5 }),
      ],
      { files: [{ name: 'a', content: lines(1, 10).join('\n') }] },
    )
    expect(body.status).toBe('completed')
    expect(all.map(has)).toEqual([[], [], [], [], []])
    expect(all[0]).toMatch(/\b10\b/)
    for (const output of all) expect(output).toMatch(/line/i)
  })

  it('truncates a long file, says so, and can read the rest by lines', async () => {
    const { outputs: all } = await run([readFile('long'), readFile('long', { startLine: 1990 })], {
      files: [{ name: 'long', content: lines(1, 2000).join('\n') }],
    })
    expect(Buffer.byteLength(all[0]!)).toBeLessThan(OUTPUT_BYTES + 500)
    expect(has(all[0])).toContain('line 1.')
    expect(all[0]).toMatch(/cut|truncated|omitted|left out|startLine/i)
    expect(has(all[1])).toEqual(lines(1990, 2000))
  })

  it('lists a directory', async () => {
    const { outputs: all } = await run([readFile('.'), readFile('sub'), readFile('sub/')], {
      files: [
        { name: 'top.txt', content: 'x' },
        { name: 'sub/inner.txt', content: 'x' },
        { name: 'sub/deep/er.txt', content: 'x' },
      ],
    })
    expect(all[0]).toMatch(/top\.txt/)
    expect(all[0]).toMatch(/sub\b/)
    expect(all[1]).toMatch(/inner\.txt/)
    expect(all[1]).toMatch(/deep/)
    expect(all[1]).not.toMatch(/top\.txt/)
    expect(all[2]).toMatch(/inner\.txt/)
  })

  it('reports an empty file, an empty directory and a missing file', async () => {
    const { body, outputs: all } = await run(
      [bash('mkdir hollow'), readFile('nothing.txt'), readFile('hollow'), readFile('missing/file.txt')],
      { files: [{ name: 'nothing.txt', content: '' }] },
    )
    expect(body.status).toBe('completed')
    expect(all[1]).toMatch(/empty/i)
    expect(all[2]).toMatch(/empty|0 entries/i)
    expect(all[3]).toContain('missing/file.txt')
    expect(all[3]).toMatch(/no such|not there|not found|does not exist|no file/i)
  })

  it('reports a binary file with its size and shows none of it', async () => {
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, i) => (i * 7) % 256))
    const { outputs: all } = await run([readFile('x.bin')], {
      files: [{ name: 'x.bin', content: bytes.toString('base64'), encoding: 'base64' }],
    })
    expect(all[0]).toMatch(/binary|no text|not text/i)
    expect(all[0]).toMatch(/256/)
    expect(all[0]).not.toContain('\ufffd')
  })

  it('does not follow links or wait for pipes', async () => {
    const [, link, pipe, device, next] = await outputs(
      bash('ln -s /etc/passwd link; mkfifo pipe; echo made'),
      readFile('link'),
      readFile('pipe'),
      readFile('/dev/zero'),
      bash('echo next'),
    )
    expect(link).not.toContain('/bin')
    for (const refused of [link, pipe, device]) expect(refused).toMatch(/\S/)
    expect(device!.length).toBeLessThan(1000)
    expect(next).toContain('next')
  })

  it('cannot leave the working directory or read processes and devices', async () => {
    const paths = [
      '../etc/passwd',
      '/workspace/../etc/passwd',
      'a/../../etc/passwd',
      '..',
      '/proc/self/environ',
      '/dev/zero',
    ]
    for (const output of await outputs(...paths.map((path) => readFile(path)))) {
      expect(output).not.toMatch(/nobody|HOME=|\0/)
      expect(output).toMatch(/workspace|working directory/i)
    }
  })

  it('reports a path with NUL, an empty path and a path that is too long', async () => {
    for (const output of await outputs(readFile('a\0b'), readFile(''), readFile('x'.repeat(5000)))) {
      expect(output).toMatch(/\S/)
      expect(output.length).toBeLessThan(6000)
    }
  })
})

describe('file_write', () => {
  it('creates a file with its directories, and overwrites a file', async () => {
    const content = 'naïve — 文字 🦊\r\nno newline at the end'
    const [written, first, over, second, empty] = await outputs(
      writeFile('new/deep/er/a.txt', content),
      contentOf('new/deep/er/a.txt'),
      writeFile('new/deep/er/a.txt', 'short', { mode: 'write' }),
      contentOf('new/deep/er/a.txt'),
      writeFile('empty', ''),
    )
    expect(written).toContain('new/deep/er/a.txt')
    expect(first!.trim()).toBe("'naïve — 文字 🦊\\r\\nno newline at the end'")
    expect(over).toContain('a.txt')
    expect(second!.trim()).toBe("'short'")
    expect(empty).not.toMatch(/error/i)
  })

  it('appends, and creates the file if it does not exist', async () => {
    const [, , both] = await outputs(
      writeFile('log.txt', 'one\n', { mode: 'append' }),
      writeFile('log.txt', 'two\n', { mode: 'append' }),
      contentOf('log.txt'),
    )
    expect(both!.trim()).toBe("'one\\ntwo\\n'")
  })

  it('replaces a unique match literally', async () => {
    const [, , after] = await outputs(
      writeFile('a.py', 'x = f(1)\ny = f(2)\n'),
      writeFile('a.py', '$& \\1 [new]', { mode: 'replace', find: 'f(2)' }),
      contentOf('a.py'),
    )
    expect(after!.trim()).toBe("'x = f(1)\\ny = $& \\\\1 [new]\\n'")
  })

  it('can replace with empty text and across lines', async () => {
    const [, , , after] = await outputs(
      writeFile('a', 'one\ntwo\nthree\nfour\n'),
      writeFile('a', '', { mode: 'replace', find: 'two\nthree\n' }),
      writeFile('a', 'ONE', { mode: 'replace', find: 'one' }),
      contentOf('a'),
    )
    expect(after!.trim()).toBe("'ONE\\nfour\\n'")
  })

  it('changes nothing and reports the number of matches unless it is exactly one', async () => {
    const [, none, two, missing, after] = await outputs(
      writeFile('a', 'same\nsame\n'),
      writeFile('a', 'x', { mode: 'replace', find: 'other' }),
      writeFile('a', 'x', { mode: 'replace', find: 'same' }),
      writeFile('missing', 'x', { mode: 'replace', find: 'same' }),
      contentOf('a'),
    )
    expect(none).toMatch(/not (in|found|there)|no match|0|nowhere|does not/i)
    expect(two).toMatch(/\b2\b|two|twice|more than one/i)
    expect(missing).toMatch(/missing/)
    expect(after!.trim()).toBe("'same\\nsame\\n'")
  })

  it('reports an empty find as an error', async () => {
    const [, refused, after] = await outputs(
      writeFile('a', 'kept'),
      writeFile('a', 'x', { mode: 'replace', find: '' }),
      contentOf('a'),
    )
    expect(refused).toMatch(/find/)
    expect(after!.trim()).toBe("'kept'")
  })

  it('does not overwrite a directory, write below a file, or write through a link', async () => {
    const [, directory, below, link, linked, after] = await outputs(
      bash(
        'mkdir dir && echo file > file && ln -s /tmp/target link && mkdir /tmp/out && ln -s /tmp/out out && echo t > /tmp/target',
      ),
      writeFile('dir', 'x'),
      writeFile('file/a', 'x'),
      writeFile('link', 'through', { mode: 'append' }),
      writeFile('out/a', 'through'),
      bash('cat file /tmp/target; ls -A /tmp/out; test -d dir && echo kept'),
    )
    expect(directory).toMatch(/directory/i)
    expect(below).toMatch(/file/)
    for (const told of [link, linked]) expect(told).toMatch(/\S/)
    expect(after!.trim()).toBe('file\nt\nkept')
  })

  it('cannot leave the working directory or change the system', async () => {
    const paths = [
      '../escape.txt',
      '/workspace/../tmp/escape.txt',
      'a/../../escape.txt',
      '/etc/escape.txt',
      '/run/errand/escape.txt',
    ]
    const all = await outputs(
      ...paths.map((path) => writeFile(path, 'x')),
      bash('ls -A / /tmp /etc /run/errand; echo end'),
    )
    for (const output of all.slice(0, -1)) expect(output).toMatch(/workspace|working directory/i)
    expect(all.at(-1)).toMatch(/^end$/m)
    expect(all.at(-1)).not.toContain('escape')
  })

  it('makes a file that code can use immediately', async () => {
    const [, ran] = await outputs(
      writeFile('tool.py', 'def answer():\n    return 42\n'),
      python('import tool\ntool.answer()'),
    )
    expect(ran!.trim()).toBe('42')
  })
})
