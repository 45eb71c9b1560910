/** Output as a terminal shows it, in the result and in the live stream, however the writes are split. */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Sandbox } from '../../src/sandbox/port.ts'
import { LIMITS, never, openWorld, run, type World } from './fixture.ts'

let world: World
let sandbox: Sandbox
beforeAll(async () => {
  world = await openWorld()
  sandbox = await world.sandbox()
})
afterAll(() => world.close())

/** Python code that writes each piece with an unbuffered write of its own. */
const writing = (pieces: readonly string[]) => {
  const bytes = pieces.map((piece) => `bytes.fromhex("${Buffer.from(piece).toString('hex')}")`)
  return `import os\nfor piece in [${bytes.join(', ')}]: os.write(1, piece)`
}

const printed = async (...pieces: string[]) => (await run(sandbox, 'python', writing(pieces))).output

describe('a rewritten line is kept in its last state', () => {
  const cases: readonly [string, string, string][] = [
    ['by a carriage return', ' 10%\r 50%\r100%\n', '100%\n'],
    ['with the carriage return in front', '\r|   | 0/2\r|#  | 1/2\r|###| 2/2\ndone\n', '|###| 2/2\ndone\n'],
    ['with the carriage return behind', '50%\r100%\r', '100%'],
    ['by less than was there, as on a terminal', 'Downloading\rDone\n', 'Doneloading\n'],
    ['with blanks over what was there', '100% done\r         \rnext\n', 'next\n'],
    ['erased to its end, as pip does', 'Collecting a\r\x1b[KCollecting bc\r\x1b[Kall\n', 'all\n'],
    ['erased whole', 'working…\x1b[2K\rready\n', 'ready\n'],
    ['from a column on, as npm does', '\x1b[1G\x1b[0K⠙ a\x1b[1G\x1b[0K⠹ b\x1b[1G\x1b[0Kadded\n', 'added\n'],
    ['by backspaces, as a spinner does', 'wait |\b/\b-\b\\\bok\n', 'wait ok\n'],
    [
      'in bars below each other',
      '\ra 0%\n\rb 0%\x1b[A\ra 50%\n\rb 50%\x1b[A\ra 100%\n\rb 100%\x1b[A\n\n',
      'a 100%\nb 100%\n',
    ],
    ['with messages above it', '\rbar 1\r     \rfirst message\n\rbar 2', 'first message\nbar 2'],
  ]
  test.each(cases)('%s', async (_, text, kept) => expect(await printed(text)).toBe(kept))
})

describe('control sequences are removed, and nothing else', () => {
  const cases: readonly [string, string, string][] = [
    ['colours', '\x1b[1;31mred\x1b[0m and \x1b[38;2;1;2;3mblue\x1b[m\n', 'red and blue\n'],
    [
      'the title, bells and links',
      '\x1b]0;title\x07a\x07 \x1b]8;;https://x.test\x1b\\link\x1b]8;;\x1b\\\n',
      'a link\n',
    ],
    ['modes and character sets', '\x1b[?25l\x1b(B\x1b=text\x1b[?25h\n', 'text\n'],
    ['Windows line ends', 'a\r\nb\r\n\r\n', 'a\nb\n\n'],
    ['a sequence that never ends', 'a\x1b]0;title\nb\x1b', 'a0;title\nb'],
    ['brackets, tabs and blanks that are text', '[31m\ta  \n\n  [K\n', '[31m\ta  \n\n  [K\n'],
    ['letters of every alphabet', 'naïve — 文字 🦊\n', 'naïve — 文字 🦊\n'],
  ]
  test.each(cases)('%s', async (_, text, kept) => expect(await printed(text)).toBe(kept))
})

test('writes may be split anywhere, even within a character or a sequence', async () => {
  const word = fc.constantFrom(
    'a',
    'bc',
    '🦊',
    'é',
    '\r',
    '\n',
    '\r\n',
    '\b',
    '\x1b[K',
    '\x1b[2K',
    '\x1b[A',
    '\x1b[31m',
    ' ',
  )
  const runs = fc.tuple(fc.array(word, { maxLength: 12 }), fc.array(fc.nat(40), { maxLength: 5 }))
  await fc.assert(
    fc.asyncProperty(fc.array(runs, { minLength: 20, maxLength: 20 }), async (all) => {
      // Many cases in one step, each on a blank screen, separated by a line that cursor movements cannot cross.
      const parted = `${'\n'.repeat(30)}=\n`
      const texts = all.map(([words]) => Buffer.from(words.join('') + parted))
      const cut = all.flatMap(([, cuts], i) => {
        const places = [0, ...cuts.filter((at) => at < texts[i]!.length), texts[i]!.length].toSorted((a, b) => a - b)
        return places.slice(1).map((at, n) => texts[i]!.subarray(places[n], at).toString('hex'))
      })
      const code = (pieces: readonly string[]) =>
        `import os, time\nfor piece in ${JSON.stringify(pieces)}: os.write(1, bytes.fromhex(piece)); time.sleep(0)`
      const whole = await run(sandbox, 'python', code(texts.map((text) => text.toString('hex'))))
      expect((await run(sandbox, 'python', code(cut))).output).toBe(whole.output)
      expect(whole.output).not.toMatch(/[\r\b\x1b�]/)
    }),
    { numRuns: 8 },
  )
})

test('a progress bar takes no more of the cap than its last line', async () => {
  const code = `print("begin")
for i in range(20001): print(f"\\r{i:6d} of 20000 |{'#' * (i // 500):40}|", end="")
print()
print("end")`
  const { output, truncated } = await run(sandbox, 'python', code)
  expect([output, truncated]).toEqual([`begin\n 20000 of 20000 |${'#'.repeat(40)}|\nend\n`, false])
})

test('an unfinished line longer than any screen is kept like other text', async () => {
  const { output, truncated } = await run(
    sandbox,
    'python',
    `print("x" * ${LIMITS.outputBytes - 2}, end="\\r")\nprint("y")`,
  )
  expect(truncated).toBe(false)
  expect(output.replace('y', 'x')).toMatch(new RegExp(`^x{${LIMITS.outputBytes - 2},}\\n$`))
})

/** Returns what followers see of Python code that prints, waits until they have seen `awaited`, and goes on. */
async function followed(before: string, awaited: RegExp, after: string) {
  const fragments: string[] = []
  const seen = Promise.withResolvers<void>()
  const code = `import os, time
if os.path.exists("go"): os.remove("go")
${before}
while not os.path.exists("go"): time.sleep(0.01)
${after}`
  const running = sandbox.exec(
    { key: `followed ${before}`, language: 'python', code, timeoutMs: 60_000 },
    (text) => {
      fragments.push(text)
      if (awaited.test(fragments.join(''))) seen.resolve()
    },
    never,
  )
  await seen.promise
  await sandbox.writeFile('go', Buffer.from(''), 'write')
  return { output: (await running).output, shown: fragments.join('') }
}

describe('a follower sees', () => {
  test('an unfinished line, and then the rest of it', async () => {
    const { output, shown } = await followed(
      'print("working", end="", flush=True)',
      /working/,
      'print(" … done")\nprint("next")',
    )
    expect([output, shown]).toEqual(['working … done\nnext\n', 'working … done\nnext\n'])
  })

  test('that a step goes on after its output exceeds half the cap', async () => {
    const { output, shown } = await followed(
      `for i in range(2000): print(f"line {i} of many", flush=True)`,
      /… line 1999 of many/,
      'print("end")',
    )
    expect(output).toMatch(/^line 0 of many\n[\s\S]*\nline 1999 of many\nend\n$/)
    expect(shown).toMatch(/^line 0 of many\n[\s\S]*\n… line 1999 of many[\s\S]*\nline 1999 of many\nend\n$/)
  })

  test('states of a progress bar, each on a line, without control sequences', async () => {
    const { output, shown } = await followed(
      'print("\\x1b[32mstart\\x1b[0m")\nfor i in range(51): print(f"\\r{i:3d} %", end="", flush=True)',
      /50 %/,
      'for i in range(50, 101): print(f"\\r{i:3d} %", end="", flush=True)\nprint("\\nend")',
    )
    expect(output).toBe('start\n100 %\nend\n')
    expect(shown).toMatch(/^start\n( *\d+ %\n)* 50 %\n( *\d+ %\n)*100 %\nend\n$/)
  })
})
