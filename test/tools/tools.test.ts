/** The tools' checks of arguments, and their results for each outcome. */
import { describe, expect, test } from 'vitest'
import type { ToolName } from '../../src/domain/agent.ts'
import { type ExecEnd, SandboxError } from '../../src/sandbox/port.ts'
import type { ToolContext } from '../../src/tools/port.ts'
import { createTools } from '../../src/tools/tools.ts'
import { contextOn, createMemorySandbox, OK } from './memory-sandbox.ts'

const tools = createTools()

async function run(
  name: ToolName | 'find',
  args: Record<string, unknown>,
  sandbox = createMemorySandbox(),
  overrides: Partial<ToolContext> = {},
) {
  return tools.get(name)!.run(args, contextOn(sandbox, overrides))
}

describe('requests a preloaded sandbox for code that imports slow modules:', () => {
  test.each([
    ['import numpy as np\nnp.ones(3)', true],
    ['import os, pandas', true],
    ['x = 1; from matplotlib import pyplot as plt', true],
    ['try:\n    import seaborn.objects as so\nexcept ImportError: pass', true],
    ['from sklearn.linear_model import LinearRegression', true],
    ['print("hello")', false],
    ['import json  # not numpy', false],
    ['important = "numpy"', false],
    ['import numpydoc', false],
    [`${'import x; '.repeat(90_000)}`, false],
    [`${' \t;'.repeat(300_000)}`, false],
  ])('%.60j: %s', async (code, wanted) => {
    const asked: unknown[] = []
    const sandbox = async (preloaded?: boolean) => {
      asked.push(preloaded)
      return createMemorySandbox()
    }
    await run('code_execution', { code }, undefined, { sandbox })
    await run('code_execution', { code, language: 'bash' }, undefined, { sandbox })
    expect(asked).toEqual([wanted, false])
  })
})

describe('invalid arguments are refused with a message, without throwing and without effect', () => {
  const cases: readonly [ToolName | 'find', Record<string, unknown>, RegExp][] = [
    ['code_execution', {}, /`code` is missing/],
    ['code_execution', { command: 'ls' }, /`code` is missing; there is no argument `command`/],
    ['code_execution', { code: '' }, /`code` must not be empty/],
    ['code_execution', { code: ['print(1)'] }, /`code` must be a string, got an array/],
    [
      'code_execution',
      { code: 'x', language: 'ruby' },
      /`language` must be one of "python", "javascript", "bash", got "ruby"/,
    ],
    [
      'code_execution',
      { code: 'x'.repeat(1_000_001) },
      /`code` must be at most 1000000 characters.*\(1000003 characters\)/,
    ],
    ['file_read', { path: 7 }, /`path` must be a string, got 7/],
    ['file_read', { path: 'a\0b' }, /`path` must not contain a NUL character/],
    ['file_read', { path: 'a', startLine: '3' }, /`startLine` must be a whole number, got "3"/],
    ['file_read', { path: 'a', startLine: 0 }, /`startLine` must be 1 or more, got 0/],
    ['file_read', { path: 'a', startLine: 1.5 }, /`startLine` must be a whole number/],
    ['file_read', { path: 'a', startLine: 5, endLine: 2 }, /`endLine` \(2\) is before `startLine` \(5\)/],
    ['file_write', { path: 'a' }, /`content` is missing/],
    [
      'file_write',
      { content: {}, mode: 'upsert' },
      /`path` is missing; `content` must be a string, got an object; `mode` must be one of/,
    ],
    ['file_write', { path: 'a', content: 'b', mode: 'replace' }, /mode "replace" needs `find`/],
    ['file_write', { path: 'a', content: 'b', find: 'c' }, /`find` is only allowed with mode "replace"/],
    ['file_write', { path: 'a', edits: 'x' }, /`edits` must be a list, got "x"/],
    ['file_write', { path: 'a', edits: [] }, /`edits` must not be empty/],
    ['file_write', { path: 'a', edits: ['x'] }, /`edits\[0\]` must be an object with `find` and `replace`, got "x"/],
    ['file_write', { path: 'a', edits: [{ find: 'one' }] }, /`edits\[0\]\.replace` is missing/],
    [
      'file_write',
      { path: 'a', edits: [{ find: 'one', replace: '', all: 'yes' }] },
      /`edits\[0\]\.all` must be true or false, got "yes"/,
    ],
    [
      'file_write',
      { path: 'a', content: 'x', edits: [{ find: 'one', replace: 'x' }] },
      /`edits` can't be combined with `content`/,
    ],
    [
      'file_write',
      { path: 'a', mode: 'append', edits: [{ find: 'one', replace: 'x' }] },
      /`edits` can't be combined with mode "append"/,
    ],
    ['find', { glob: '' }, /`glob` must not be empty/],
    ['find', { pattern: 7 }, /`pattern` must be a string, got 7/],
  ]
  test.each(cases)('%s %j', async (name, args, expected) => {
    const sandbox = createMemorySandbox({ a: 'one' })
    const { output } = await run(name, args, sandbox)
    expect(output).toMatch(expected)
    expect(output).toMatch(new RegExp(`^${name} did nothing: `))
    expect(output.length).toBeLessThan(500)
    expect(sandbox.requests).toEqual([])
    expect([...sandbox.files].map(([file, bytes]) => [file, bytes.toString()])).toEqual([['a', 'one']])
  })

  test('an optional argument that is null counts as left out', async () => {
    const sandbox = createMemorySandbox()
    await run('code_execution', { code: 'print(1)', language: null }, sandbox)
    expect(sandbox.requests[0]).toMatchObject({
      key: 'step-1',
      language: 'python',
      code: 'print(1)',
      timeoutMs: 30_000,
    })
  })
})

describe('code_execution reports how a step ended', () => {
  const cases: readonly [string, ExecEnd, RegExp][] = [
    ['a failure', { kind: 'exit', code: 3 }, /exit code 3 after 1\.2 s/],
    ['a signal', { kind: 'signal', signal: 'SIGSEGV' }, /ended by SIGSEGV/],
    ['the time limit', { kind: 'timeout', afterMs: 5000 }, /stopped after 5\.0 s/],
    ['the memory limit', { kind: 'memory_limit', limitMiB: 512 }, /512 MiB of memory/],
    ['a cancelled run', { kind: 'cancelled' }, /run was cancelled/],
    ['a lost sandbox', { kind: 'lost' }, /outcome is unknown/],
  ]
  test.each(cases)('by %s', async (_name, end, expected) => {
    const sandbox = createMemorySandbox()
    sandbox.result = { ...OK, output: 'half done\n', end }
    const { output } = await run('code_execution', { code: 'x' }, sandbox)
    expect(output).toMatch(/^half done\n\[/)
    expect(output).toMatch(expected)
  })

  test('a successful step returns only its output', async () => {
    const sandbox = createMemorySandbox()
    sandbox.result = { ...OK, output: '42\n' }
    expect((await run('code_execution', { code: 'print(42)' }, sandbox)).output).toBe('42')
  })

  test('reports empty output, truncation and a restarted session', async () => {
    const sandbox = createMemorySandbox()
    expect((await run('code_execution', { code: 'x = 1' }, sandbox)).output).toBe('[It printed nothing.]')
    sandbox.result = { ...OK, output: 'ab', truncated: true, sessionRestarted: true }
    const { output } = await run('code_execution', { code: 'x', language: 'bash' }, sandbox)
    expect(output).toMatch(/^ab\n\[The output was longer than .*\]\n\[The bash session was restarted/)
  })

  test('truncates long output in the middle, between characters', async () => {
    const sandbox = createMemorySandbox()
    sandbox.result = { ...OK, output: `start${'é'.repeat(5000)}end` }
    const { output } = await run('code_execution', { code: 'x' }, sandbox, { outputBytes: 301 })
    expect(output).toMatch(/^starté+\n\[… \d+ bytes left out …\]\né+end\n\[The output was longer than/)
    expect(output).not.toContain('�')
    expect(Buffer.byteLength(output.slice(0, output.indexOf('\n[The output')))).toBeLessThanOrEqual(301)
  })

  test('throws if there is no sandbox', async () => {
    const gone = async () => {
      throw new SandboxError('unavailable', 'none left')
    }
    await expect(run('code_execution', { code: 'x' }, undefined, { sandbox: gone })).rejects.toThrow('none left')
  })
})

describe('file_read', () => {
  const png = Buffer.from('89504e470d0a1a0a0000000d494844520000000300000002', 'hex')
  const lines = Array.from({ length: 500 }, (_, i) => `line ${i + 1}`).join('\n')

  test('returns text with its size and line count, and ranges with where to continue', async () => {
    const sandbox = createMemorySandbox({ 'a.txt': 'one\ntwo\nthree\n', empty: '' })
    expect((await run('file_read', { path: 'a.txt' }, sandbox)).output).toBe(
      '[a.txt: 3 lines, 14 bytes]\n1\tone\n2\ttwo\n3\tthree',
    )
    expect((await run('file_read', { path: 'a.txt', startLine: 2, endLine: 2 }, sandbox)).output).toBe(
      '[a.txt: lines 2-2 of 3, 14 bytes]\n2\ttwo',
    )
    expect((await run('file_read', { path: 'a.txt', startLine: 9 }, sandbox)).output).toContain('there is no line 9')
    expect((await run('file_read', { path: 'empty' }, sandbox)).output).toBe('[empty: empty file, 0 bytes]')
  })

  test('stops at whole lines and says where to continue; continuing returns every line once', async () => {
    const sandbox = createMemorySandbox({ 'long.txt': lines })
    const seen: string[] = []
    let startLine: number | undefined = 1
    while (startLine !== undefined) {
      const { output } = await run('file_read', { path: 'long.txt', startLine }, sandbox, { outputBytes: 1000 })
      const body = output.split('\n').slice(1)
      const next = /^\[\d+ more; continue with startLine (\d+)\]$/.exec(body.at(-1)!)?.[1]
      seen.push(...body.filter((line) => /^\d/.test(line)))
      startLine = next === undefined ? undefined : Number(next)
    }
    expect(seen.join('\n')).toBe(lines.replaceAll(/line (\d+)/g, '$1\tline $1'))
  })

  test('truncates and marks a single line above the limit', async () => {
    const sandbox = createMemorySandbox({ 'one.json': 'x'.repeat(5000) })
    const { output } = await run('file_read', { path: 'one.json' }, sandbox, { outputBytes: 100 })
    expect(output).toBe(`[one.json: 1 line, 5000 bytes]\n1\t${'x'.repeat(98)}\n[line 1 is longer than shown]`)
  })

  test('lists a directory, and lists the working directory for a missing file', async () => {
    const sandbox = createMemorySandbox({ 'data/a.csv': 'x', 'data/deep/b.csv': 'y', 'notes.txt': 'z' })
    expect((await run('file_read', { path: 'data' }, sandbox)).output).toBe(
      '[data: directory, 2 entries]\na.csv (1 bytes)\ndeep/',
    )
    expect((await run('file_read', { path: 'note.txt' }, sandbox)).output).toBe(
      'There is no file `note.txt`. The working directory contains: data/, notes.txt.',
    )
  })

  test('shows an image to a model with vision, and describes it to others', async () => {
    const sandbox = createMemorySandbox({ 'a.png': png })
    const seen = await run('file_read', { path: 'a.png' }, sandbox, { vision: true })
    expect(seen.media).toEqual([{ type: 'image', mimeType: 'image/png', base64: png.toString('base64') }])
    const told = await run('file_read', { path: 'a.png' }, sandbox)
    expect(told.media).toBeUndefined()
    expect(told.output).toMatch(/is an image \(image\/png, 3 × 2, 24 bytes\)\. This model can't be shown images/)
  })

  test('describes binary files, and reads older encodings', async () => {
    const sandbox = createMemorySandbox({
      'a.bin': Buffer.from([1, 0, 2, 0]),
      'a.pdf': '%PDF-1.7\n…',
      'latin.txt': Buffer.from('caf\xe9', 'latin1'),
      'wide.txt': Buffer.from('﻿hello', 'utf16le'),
    })
    expect((await run('file_read', { path: 'a.bin' }, sandbox)).output).toContain('binary file (unknown type, 4 bytes)')
    expect((await run('file_read', { path: 'a.pdf' }, sandbox)).output).toMatch(/PDF.*this sandbox lacks poppler-utils/)
    expect((await run('file_read', { path: 'latin.txt' }, sandbox)).output).toBe(
      '[latin.txt: 1 line, 4 bytes, read as windows-1252]\n1\tcafé',
    )
    expect((await run('file_read', { path: 'wide.txt' }, sandbox)).output).toContain('\thello')
  })
})

describe('file_write', () => {
  test('writes and appends, counts bytes, and says which files are returned', async () => {
    const sandbox = createMemorySandbox()
    expect((await run('file_write', { path: 'outputs/a.txt', content: 'é\n' }, sandbox)).output).toBe(
      'Wrote 3 bytes to `outputs/a.txt`. It will be returned to the caller.',
    )
    expect(
      (await run('file_write', { path: 'outputs/a.txt', content: 'b', mode: 'append' }, sandbox)).output,
    ).toContain('Appended 1 bytes to')
    expect(sandbox.files.get('outputs/a.txt')!.toString()).toBe('é\nb')
    expect((await run('file_write', { path: 'scratch.txt', content: '' }, sandbox)).output).toBe(
      'Wrote 0 bytes to `scratch.txt`.',
    )
  })

  test('replaces text that occurs exactly once, and inserts the new text literally', async () => {
    const sandbox = createMemorySandbox({ 'a.py': 'a = 1\nb = 2\n' })
    const { output } = await run(
      'file_write',
      { path: 'a.py', mode: 'replace', find: 'b = 2', content: "b = '$&'" },
      sandbox,
    )
    expect(output).toBe('Replaced the text at line 2 of `a.py`, which now has 15 bytes.')
    expect(sandbox.files.get('a.py')!.toString()).toBe("a = 1\nb = '$&'\n")
  })

  test.each([
    ['twice', 'x\nx\n', 'x', /occurs 2 times in it, at lines 1 and 2; .*Include more/],
    ['zero times', 'x\n', 'y', /occurs 0 times .*Read the file/],
  ])('writes nothing if the text to replace occurs %s', async (_name, before, find, expected) => {
    const sandbox = createMemorySandbox({ f: before })
    const { output } = await run('file_write', { path: 'f', mode: 'replace', find, content: 'z' }, sandbox)
    expect(output).toMatch(expected)
    expect(sandbox.files.get('f')!.toString()).toBe(before)
  })

  test.each<[string, Uint8Array, string, string, Uint8Array]>([
    ['Windows line ends', Buffer.from('a\r\nb\r\nc\r\n'), 'a\nb', 'x\ny', Buffer.from('x\r\ny\r\nc\r\n')],
    ['a byte order mark', Buffer.from('\ufeffone'), 'one', 'two', Buffer.from('\ufefftwo')],
    ['UTF-16', Buffer.from('\ufeffäne…', 'utf16le'), 'ne', '文', Buffer.from('\ufeffä文…', 'utf16le')],
    [
      'UTF-16, most significant first',
      Buffer.from('\ufeffab', 'utf16le').swap16(),
      'b',
      'é',
      Buffer.from('\ufeffaé', 'utf16le').swap16(),
    ],
    ['Windows-1252', Buffer.from('caf\xe9 \x80', 'latin1'), 'é €', '– ü', Buffer.from('caf\x96 \xfc', 'latin1')],
    [
      'no encoding at all',
      Buffer.from('\0\x01KEY\xff\xfe', 'latin1'),
      'KEY',
      'key',
      Buffer.from('\0\x01key\xff\xfe', 'latin1'),
    ],
  ])('keeps every other byte of a file with %s', async (_, before, find, content, after) => {
    const sandbox = createMemorySandbox({ f: before })
    const { output } = await run('file_write', { path: 'f', mode: 'replace', find, content }, sandbox)
    expect(output).toMatch(/^Replaced the text/)
    expect(sandbox.files.get('f')!.toString('hex')).toBe(Buffer.from(after).toString('hex'))
  })

  test('refuses text that the file’s encoding can’t represent', async () => {
    const sandbox = createMemorySandbox({ f: Buffer.from('caf\xe9', 'latin1') })
    const { output } = await run('file_write', { path: 'f', mode: 'replace', find: 'caf', content: '文' }, sandbox)
    expect(output).toMatch(/Nothing was replaced.*can't represent every character/)
    expect(sandbox.files.get('f')!.toString('latin1')).toBe('caf\xe9')
  })

  test('reports a path that is not writable', async () => {
    const { output } = await run('file_write', { path: '/etc/passwd', content: 'x' })
    expect(output).toMatch(/can't be written or read here: read-only file system/)
  })
})
