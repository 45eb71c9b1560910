/** Sessions: state between steps, the values and errors they show, and what is reported after a restart. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Sandbox } from '../../src/sandbox/port.ts'
import { LIMITS, openWorld, run, type World } from './fixture.ts'

let world: World
let sandbox: Sandbox
beforeAll(async () => {
  world = await openWorld()
  sandbox = await world.sandbox()
})
afterAll(() => world.close())

describe('Python', () => {
  test('keeps variables, imports and functions between steps', async () => {
    await run(sandbox, 'python', 'import math\nx = 20\ndef double(n): return n * 2')
    expect((await run(sandbox, 'python', 'print(double(x) + math.floor(2.5))')).output).toBe('42\n')
  })

  test.each([
    ['1 + 1', '2\n'],
    ['"text"', "'text'\n"],
    ['None', ''],
    ['y = 3', ''],
    ['y = 4\ny', '4\n'],
    ['y;', ''],
    ['for i in range(2): i', ''],
    ['import asyncio\nawait asyncio.sleep(0, "waited")', "'waited'\n"],
  ])('echoes the last expression as a notebook does: %j', async (code, output) => {
    expect(await run(sandbox, 'python', code)).toMatchObject({ output, end: { kind: 'exit', code: 0 } })
  })

  test('shows a traceback of the code alone, and keeps the session', async () => {
    await run(sandbox, 'python', 'kept = 1')
    const result = await run(sandbox, 'python', 'def f():\n    return 1 / 0\nf()')
    expect(result.end).toEqual({ kind: 'exit', code: 1 })
    expect(result.output).toMatch(
      /^Traceback[\s\S]*line 3, in <module>\n {4}f\(\)\n[\s\S]*return 1 \/ 0\n[\s\S]*ZeroDivisionError: division by zero\n$/,
    )
    expect(result.output).not.toContain('runner')
    expect(await run(sandbox, 'python', 'kept')).toMatchObject({ output: '1\n', sessionRestarted: false })
  })

  test('reports the code’s own exit code', async () => {
    expect((await run(sandbox, 'python', 'raise SystemExit(7)')).end).toEqual({ kind: 'exit', code: 7 })
    expect((await run(sandbox, 'python', 'import sys; sys.exit("so long")')).output).toBe('so long\n')
  })

  test('restarts after its death, and reports it once', async () => {
    await run(sandbox, 'python', 'gone = 1')
    const death = await run(
      sandbox,
      'python',
      'import os, signal\nprint("last words", flush=True)\nos.kill(os.getpid(), signal.SIGSEGV)',
    )
    expect(death).toMatchObject({ output: 'last words\n', end: { kind: 'signal', signal: 'SIGSEGV' } })
    const next = await run(sandbox, 'python', 'gone')
    expect(next).toMatchObject({ sessionRestarted: true, end: { kind: 'exit', code: 1 } })
    expect(next.output).toContain("NameError: name 'gone' is not defined")
    expect((await run(sandbox, 'python', '1')).sessionRestarted).toBe(false)
  })

  test('reads nothing from standard input', async () => {
    expect((await run(sandbox, 'python', 'input()')).output).toContain('EOFError')
  })

  test('saves open figures that the code has not saved to outputs/, and closes all', async () => {
    // The real one is not in every driver's root (test/contract/tools-output.test.ts has it); its shape stands for it.
    const figures = await world.sandbox()
    const figure = `
class Figure:
    def __init__(self, number): self.number = number
    def savefig(self, path, **options): open(path, 'wb').write(b'figure %d' % self.number)
`
    const pyplot = `
from matplotlib.figure import Figure
open_figures = {}
def figure(number): return open_figures.setdefault(number, Figure(number))
def get_fignums(): return sorted(open_figures)
def close(number): del open_figures[number]
`
    await figures.writeFile('matplotlib/__init__.py', new Uint8Array(), 'write')
    await figures.writeFile('matplotlib/figure.py', Buffer.from(figure), 'write')
    await figures.writeFile('matplotlib/pyplot.py', Buffer.from(pyplot), 'write')
    const result = await run(
      figures,
      'python',
      'import matplotlib.pyplot as plt\nplt.figure(1)\nf = plt.figure(2)\nplt.figure(3).savefig("outputs/own.png")',
    )
    expect(result.output).toBe('[figure saved: outputs/figure-1.png]\n[figure saved: outputs/figure-2.png]\n')
    expect(Buffer.from(await figures.readFile('outputs/figure-2.png', 100)).toString()).toBe('figure 2')
    expect((await run(figures, 'python', 'plt.figure(1).number')).output).toBe(
      '1\n[figure saved: outputs/figure-3.png]\n',
    )
    expect((await run(figures, 'python', 'plt.get_fignums()')).output).toBe('[]\n')
  })
})

describe('bash', () => {
  test('keeps directory, variables and functions between steps', async () => {
    await run(sandbox, 'bash', 'mkdir -p a/b; cd a/b; v="x y"; f() { echo "f:$1"; }')
    expect((await run(sandbox, 'bash', 'pwd; f "$v"')).output).toBe('/workspace/a/b\nf:x y\n')
  })

  test('reports the exit code, and shows errors', async () => {
    expect((await run(sandbox, 'bash', '(exit 3)')).end).toEqual({ kind: 'exit', code: 3 })
    const missing = await run(sandbox, 'bash', 'no-such-command')
    expect(missing).toMatchObject({ end: { kind: 'exit', code: 127 }, sessionRestarted: false })
    expect(missing.output).toContain('no-such-command: command not found')
    expect((await run(sandbox, 'bash', 'if then')).output).toContain('syntax error')
  })

  test('ends the session at `exit`', async () => {
    expect((await run(sandbox, 'bash', 'set -e; false; echo not reached')).end).toEqual({ kind: 'exit', code: 1 })
    expect(await run(sandbox, 'bash', 'echo here')).toMatchObject({ output: 'here\n', sessionRestarted: true })
  })

  test('resets the shell options of a step', async () => {
    await run(sandbox, 'bash', 'set -eu')
    expect((await run(sandbox, 'bash', 'false; echo "$unset_variable"on')).output).toBe('on\n')
  })
})

describe('JavaScript', () => {
  test('keeps state, accepts repeated declarations and await anywhere, echoes the last expression', async () => {
    expect((await run(sandbox, 'javascript', 'const a = 1; let f = (n) => n + a; f(1)')).output).toBe('2\n')
    expect((await run(sandbox, 'javascript', 'const a = await Promise.resolve(40); f(2)')).output).toBe('42\n')
    expect((await run(sandbox, 'javascript', '({ a: [1, "b"] })')).output).toBe("{ a: [ 1, 'b' ] }\n")
  })

  test.each([
    'import fs from "node:fs"\nfs.existsSync("/workspace")',
    'import { existsSync as there } from "node:fs"\nthere("/workspace")',
    'import * as fs from "node:fs"\nfs.existsSync("/workspace")',
    'const fs = require("fs"); fs.existsSync("/workspace")',
    'const { existsSync } = await import("node:fs"); existsSync("/workspace")',
  ])('loads modules in each of the usual ways: %j', async (code) => {
    expect(await run(sandbox, 'javascript', code)).toMatchObject({ output: 'true\n', end: { kind: 'exit', code: 0 } })
  })

  test('shows errors with their line in the step', async () => {
    const thrown = await run(sandbox, 'javascript', 'function g() { throw new TypeError("bad") }\ng()')
    expect(thrown.end).toEqual({ kind: 'exit', code: 1 })
    expect(thrown.output).toMatch(/^TypeError: bad\n {4}at g \(step-\d+\.js:1:22\)\n {4}at step-\d+\.js:2:1\n$/)
    expect((await run(sandbox, 'javascript', 'let p = 1\nlet q = ;')).output).toMatch(
      /^SyntaxError: Unexpected token ';'\n {4}at step-\d+\.js:2:9\n$/,
    )
    const late = await run(
      sandbox,
      'javascript',
      'setTimeout(() => { throw new Error("late") }, 1); await new Promise((r) => setTimeout(r, 50))',
    )
    expect(late).toMatchObject({ end: { kind: 'exit', code: 1 }, sessionRestarted: false })
    expect(late.output).toContain('Error: late')
  })

  test('reports the restart after an exit', async () => {
    expect((await run(sandbox, 'javascript', 'process.exit(4)')).end).toEqual({ kind: 'exit', code: 4 })
    expect(await run(sandbox, 'javascript', 'typeof a')).toMatchObject({
      output: "'undefined'\n",
      sessionRestarted: true,
    })
  })
})

test('the languages share the workspace and run side by side', async () => {
  const both = await world.sandbox()
  await run(both, 'bash', 'echo 5 > n')
  const [slow, quick] = await Promise.all([
    run(both, 'bash', 'while [ ! -e ready ]; do sleep 0.01; done; cat ready'),
    run(both, 'python', 'n = int(open("n").read())\nopen("ready", "w").write(str(n * 2))\nn'),
  ])
  expect([slow.output, quick.output]).toEqual(['10', '5\n'])
})

test("the environment is the sandbox's own", async () => {
  const { output } = await run(
    await world.sandbox(undefined, LIMITS),
    'python',
    'import os\nfor k in sorted(os.environ): print(k)',
  )
  expect(output.split('\n').filter(Boolean)).toEqual([
    'HOME',
    'HOSTNAME',
    'LANG',
    'MPLBACKEND',
    'MPLCONFIGDIR',
    'PATH',
    'PIP_BREAK_SYSTEM_PACKAGES',
    'PIP_DISABLE_PIP_VERSION_CHECK',
    'PIP_NO_CACHE_DIR',
    'PIP_NO_INDEX',
    'PWD',
    'PYTHONDONTWRITEBYTECODE',
    'TERM',
    'TMPDIR',
    'USER',
    'XDG_CACHE_HOME',
  ])
})
