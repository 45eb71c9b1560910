/** Checks `code_execution` in a real sandbox: which results the model gets. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type Server, startServer } from '../support/server.ts'
import {
  ALL_TOOLS,
  bash,
  type Call,
  javascript,
  outputsOf,
  python,
  readFile,
  scripted,
  toolRunner,
  writeFile,
} from '../support/tool-run.ts'

const OUTPUT_BYTES = 4096
const MEMORY_MIB = 384
const PIDS = 48
const WORKSPACE_MIB = 64

let provider: FakeProvider
let server: Server
beforeAll(async () => {
  provider = await openFakeProvider()
  const limits = { interactionsPerMinute: 1_000_000, callsPerMinute: 1_000_000 }
  const sandbox = { pool: 0, outputBytes: OUTPUT_BYTES, memoryMiB: MEMORY_MIB, workspaceMiB: WORKSPACE_MIB, pids: PIDS }
  server = await startServer({ provider, config: { limits, sandbox } })
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
async function outputs(...turns: (Call | readonly Call[])[]): Promise<readonly string[]> {
  const { answer, body, outputs: all } = await run(turns)
  expect(answer.status, answer.text).toBe(200)
  expect(body, answer.text).toMatchObject({ status: 'completed', output: 'Done.' })
  const calls = turns.flat()
  expect(all).toHaveLength(calls.length)
  return all
}

describe('Python', () => {
  it('keeps its variables, imports and functions from call to call', async () => {
    const [first, second] = await outputs(
      python('import math\nx = 41\ndef plus(n):\n    return x + n'),
      python('print(plus(1), math.floor(2.5))'),
    )
    expect(first).not.toMatch(/error/i)
    expect(second!.trim()).toBe('42 2')
  })

  it('prints the value of the last expression as a notebook does, except None', async () => {
    const [expression, text, none, assignment, block, both] = await outputs(
      python('1\n2 + 3'),
      python('"a\\nb"'),
      python('None'),
      python('x = 7'),
      python('for i in range(2):\n    i'),
      python('print("printed")\nx'),
    )
    expect(expression!.trim()).toBe('5')
    expect(text!.trim()).toBe("'a\\nb'")
    expect(none).not.toContain('None')
    expect(assignment).not.toContain('7')
    expect(block).not.toMatch(/\d/)
    expect(both).toMatch(/^printed\n7\s*$/)
  })

  it('shows an exception with its traceback and keeps its variables', async () => {
    const [failed, next] = await outputs(
      python('kept = "kept"\ndef fail():\n    return {}["missing"]\nprint("before")\nfail()\nprint("after")'),
      python('print(kept)'),
    )
    expect(failed).toMatch(/before[\s\S]*Traceback[\s\S]*line 3, in fail[\s\S]*KeyError: 'missing'/)
    expect(failed).not.toMatch(/^after$/m)
    expect(next!.trim()).toBe('kept')
  })

  it('shows a syntax error with its line and runs nothing', async () => {
    const [failed, next] = await outputs(python('print("ran")\nx = = 1'), python('print(1)'))
    expect(failed).toMatch(/SyntaxError/)
    expect(failed).toMatch(/line 2/)
    expect(failed).not.toMatch(/^ran/m)
    expect(next!.trim()).toBe('1')
  })

  it('reports its exit code or signal if it ends, and starts a new session', async () => {
    const [left, killed, next] = await outputs(
      python('import sys\nx = 1\nsys.exit(3)'),
      python('import os, signal\nos.kill(os.getpid(), signal.SIGKILL)'),
      python('print("back", "x" in globals())'),
    )
    expect(left).toMatch(/\b3\b/)
    expect(killed).toMatch(/SIGKILL|signal 9|killed/i)
    expect(next).toMatch(/back False/)
    expect(next + killed!).toMatch(/restart|anew|again|new|gone|lost/i)
  })

  it('has no standard input, so input() fails instead of waiting', async () => {
    const [asked] = await outputs(python('input("name? ")'))
    expect(asked).toContain('EOFError')
  })

  it('prints text in any script, and bytes that are not valid UTF-8', async () => {
    const [text, bytes] = await outputs(
      python('print("naïve — 文字 🦊" * 3)'),
      python('import sys\nsys.stdout.buffer.write(b"a\\xff\\x00b\\n")\nsys.stdout.flush()\nprint("after")'),
    )
    expect(text!.trim()).toBe('naïve — 文字 🦊'.repeat(3))
    expect(bytes).toMatch(/^a[\s\S]*b\nafter/)
  })

  it('shows stderr and stdout together', async () => {
    const [both] = await outputs(
      python('import sys\nprint("out", flush=True)\nprint("err", file=sys.stderr, flush=True)'),
    )
    expect(both).toMatch(/out/)
    expect(both).toMatch(/err/)
  })
})

describe('bash', () => {
  it('keeps its directory, variables and functions from call to call', async () => {
    const all = await outputs(
      bash('mkdir -p sub/dir && cd sub/dir && x=1 && export y=2 && f() { echo "f $1"; }'),
      bash('pwd; echo $((x + y)); f here; bash -c \'echo "child $x $y"\''),
    )
    expect(all[1]!.trim().split('\n')).toEqual(['/workspace/sub/dir', '3', 'f here', 'child  2'])
  })

  it('reports a failed command’s exit code and continues', async () => {
    const [failed, left, next] = await outputs(bash('ls /nowhere'), bash('echo out; exit 5'), bash('echo next'))
    expect(failed).toMatch(/\/nowhere/)
    expect(failed).toMatch(/\b2\b/)
    expect(left).toMatch(/out[\s\S]*\b5\b/)
    expect(next!).toMatch(/next/)
  })

  it('has no standard input', async () => {
    const [read] = await outputs(bash('cat; read line; echo "read $?"'))
    expect(read).toContain('read 1')
  })

  it('reports a syntax error', async () => {
    const [open, next] = await outputs(bash('echo "unclosed'), bash('echo next'))
    expect(open).toMatch(/unexpected|syntax/i)
    expect(next).toMatch(/next/)
  })
})

describe('JavaScript', () => {
  it('runs, keeps its declarations from call to call, and shows errors', async () => {
    const [, second, failed, next] = await outputs(
      javascript('const x = 41\nlet y = 1\nfunction plus(a, b) { return a + b }'),
      javascript('console.log(plus(x, y), typeof process.version)'),
      javascript('null.field'),
      javascript('console.log("next")'),
    )
    expect(second!.trim()).toBe('42 string')
    expect(failed).toContain('TypeError')
    expect(next!.trim()).toBe('next')
  })
})

describe('the languages', () => {
  it('share the working directory; the default is Python', async () => {
    const all = await outputs(
      bash('echo shared > shared.txt'),
      { name: 'code_execution', args: { code: 'print(open("shared.txt").read(), 7 // 2)' } },
      javascript('console.log(require("node:fs").readFileSync("shared.txt", "utf8"))'),
      { name: 'code_execution', args: { language: 'python', code: 'import os; print(os.getcwd())' } },
    )
    expect(all[1]).toMatch(/shared\s+3/)
    expect(all[2]).toMatch(/shared/)
    expect(all[3]!.trim()).toBe('/workspace')
  })

  it('are listed to the model if it requests an unknown one', async () => {
    const [ruby, next] = await outputs(
      { name: 'code_execution', args: { language: 'ruby', code: 'puts 1' } },
      python('print(1)'),
    )
    for (const name of ['python', 'javascript', 'bash']) expect(ruby).toContain(name)
    expect(next!.trim()).toBe('1')
  })
})

describe('limits on a call', () => {
  it('truncate its output, mark the cut, and keep head and tail', async () => {
    const [long, next] = await outputs(
      python('print("HEAD")\nfor i in range(20000): print("x" * 50)\nprint("TAIL")'),
      python('print("next")'),
    )
    expect(Buffer.byteLength(long!)).toBeLessThan(OUTPUT_BYTES + 500)
    expect(long).toMatch(/^HEAD/)
    expect(long).toMatch(/TAIL/)
    expect(long).toMatch(/cut|omitted|left out|truncated/i)
    expect(next!.trim()).toBe('next')
  })

  it('truncate one endless line the same way', async () => {
    const [long] = await outputs(python('import sys\nfor _ in range(3000): sys.stdout.write("ü" * 1000)'))
    expect(Buffer.byteLength(long!)).toBeLessThan(OUTPUT_BYTES + 500)
    expect(long).not.toContain('\ufffd')
    expect(long).toMatch(/cut|omitted|left out|truncated/i)
  })

  it('report the memory limit, and the run continues', async () => {
    const [bomb, next] = await outputs(python('x = b"x" * 1_000_000_000\nprint("survived")'), python('print("next")'))
    expect(bomb).not.toContain('survived')
    expect(bomb).toMatch(/memory/i)
    expect(bomb).toContain(String(MEMORY_MIB))
    expect(next).toMatch(/next/)
  })

  it('report the memory limit if a subprocess exceeds it and its parent survives', async () => {
    const [shell, child, last] = await outputs(
      bash('head -c 1000000000 /dev/zero | tail; echo "tail $?"'),
      python('import subprocess, sys\nsubprocess.run([sys.executable, "-c", "b\'x\' * 1_000_000_000"]).returncode'),
      bash('echo last'),
    )
    expect(shell).toContain('tail 137')
    expect(last).toMatch(/last/)
    expect(child).toMatch(/memory/i)
    expect(shell).toMatch(/memory/i)
  })

  it('enforce the number of processes, report it to the model, and the run continues', async () => {
    const [forked, next] = await outputs(
      python(`
import os, time
n = 0
try:
    while True:
        if os.fork() == 0: time.sleep(10000)
        n += 1
except OSError as error:
    print('refused after', n, error)
`),
      python('print("next", 6 * 7)'),
    )
    const [, count] = /refused after (\d+) .*unavailable/.exec(forked!) ?? []
    expect(Number(count), forked).toBeLessThan(PIDS)
    expect(next).toContain('next 42')
    // Uses dash because bash retries each fork for 15 s. The step waits for the first refusal without a fork of its
    // own.
    const [bomb, after] = await outputs(
      bash(
        "sh -c 'bomb() { bomb | bomb & }; bomb' 2>refused; while [ ! -s refused ]; do :; done; read -r said <refused; echo $said",
      ),
      python('print("next", 6 * 7)'),
    )
    expect(bomb).toMatch(/process|fork|resource/i)
    expect(after).toContain('next 42')
  })

  it('enforce the size of the workspace, report it to the model, and the run continues', async () => {
    const [full, next, written, after] = await outputs(
      bash('head -c 400M /dev/zero > big; echo "head $?"'),
      python('print("next")'),
      writeFile('more.txt', 'x'.repeat(100_000)),
      bash('rm big; echo small > small; cat small'),
    )
    expect(full).toContain('head 1')
    expect(full).toMatch(/no space/i)
    expect(next).toMatch(/next/)
    expect(written).toMatch(/space|full/i)
    expect(after).toMatch(/small/)
  })

  it('enforce the size of every writable directory, even if all are full at once, and the run continues', async () => {
    const [full, next, after] = await outputs(
      bash('for d in /workspace /tmp /dev/shm /run/errand; do head -c 1G /dev/zero > $d/big; done; echo filled'),
      python('print("next")'),
      bash('rm -f /workspace/big /tmp/big /dev/shm/big /run/errand/big; echo emptied'),
    )
    expect(full).toMatch(/no space/i)
    expect(next).toMatch(/next/)
    expect(after).toMatch(/emptied/)
  })

  it('let a call end although a daemon keeps stdout open', async () => {
    const [shell, child, daemon, next] = await outputs(
      bash('sleep 10000 & echo started'),
      python('import subprocess\np = subprocess.Popen(["sleep", "10000"])\nprint("started")'),
      bash('setsid nohup bash -c "(sleep 10000 &)" & echo detached'),
      bash('echo next'),
    )
    expect(shell).toMatch(/started/)
    expect(child).toMatch(/started/)
    expect(daemon).toMatch(/detached/)
    expect(next).toMatch(/next/)
  })

  it('end an endless loop at the run’s deadline with 504, and the trace shows the call', async () => {
    const loops = [
      python('while True:\n    try:\n        while True: pass\n    except BaseException: pass'),
      bash('trap "" TERM INT HUP; while :; do :; done'),
      javascript('for (;;);'),
    ]
    for (const { answer, body } of await Promise.all(
      loops.map((loop) => run([loop], { policy: { maxTurnDuration: 2 } })),
    )) {
      expect(answer.status, answer.text).toBe(504)
      expect(body.error.code).toBe('deadline_exceeded')
      const got = await server.get(`/v1beta/interactions/${body.error.interactionId}`)
      expect(got.body.status).toBe('failed')
      expect(got.body.executionTrace[0]).toMatchObject({ step: 1, type: 'tool_call', name: 'code_execution' })
    }
  })
})

describe('a call in the stream and the trace', () => {
  it('streams its output while it runs', async () => {
    const instruction = scripted(provider, [
      python('import time\nprint("first sign", flush=True)\nwhile True: time.sleep(1)'),
    ])
    const stream = await server.stream('/v1beta/interactions:stream', { instruction, tools: ALL_TOOLS })
    const id = stream.headers.get('x-interaction-id')
    const names: string[] = []
    for await (const { event, data } of stream.events) {
      names.push(event)
      if (event !== 'tool_output' || !data.text.includes('first sign')) continue
      // The code never ends by itself, so this output arrived while it ran.
      expect(data.step).toBe(1)
      expect((await server.post(`/v1beta/interactions/${id}:cancel`)).status).toBe(200)
    }
    expect(names).toContain('tool_output')
    expect(names.at(-1)).toBe('completed')
  })

  it('has one step for the call and one for its result, the same in stream and trace', async () => {
    const instruction = scripted(provider, [python('print("a")\nprint("b")'), python('6 * 7')])
    const stream = await server.stream('/v1beta/interactions:stream', { instruction, tools: ALL_TOOLS })
    const events = await stream.all()
    const { interactionId } = events.at(-1)!.data
    const { executionTrace } = (await server.get(`/v1beta/interactions/${interactionId}`)).body
    expect(executionTrace.map(({ step, type }: { step: number; type: string }) => [step, type])).toEqual([
      [1, 'tool_call'],
      [2, 'tool_result'],
      [3, 'tool_call'],
      [4, 'tool_result'],
    ])
    const shown = events.filter(({ event }) => event === 'tool_call' || event === 'tool_result')
    expect(shown.map(({ event, data }) => ({ type: event, ...data }))).toMatchObject(executionTrace)
    for (const { data } of shown.filter(({ event }) => event === 'tool_result')) {
      expect(data.duration_ms).toSatisfy(Number.isInteger)
    }
    const live = events.filter(({ event, data }) => event === 'tool_output' && data.step <= 2)
    expect(live.map(({ data }) => data.text).join('')).toContain('a\nb')
    expect(outputsOf(executionTrace)[1]).toBe('42')
  })

  it('can be one of several in a turn, each with a result under its own id', async () => {
    const [one, two, three] = await outputs([
      python('x = 1\nprint("one")'),
      writeFile('a.txt', 'two'),
      bash('echo three; cat a.txt'),
    ])
    expect(one).toMatch(/one/)
    expect(two).not.toMatch(/error/i)
    expect(three).toMatch(/three\ntwo/)
    const messages = provider.requests.at(-1)!.body.messages
    const asked = messages.flatMap((message) => message.tool_calls ?? [])
    const told = messages.filter(({ role }) => role === 'tool')
    expect(told.map(({ tool_call_id }) => tool_call_id)).toEqual(asked.map(({ id }) => id))
    expect(told.map(({ content }) => content)).toEqual([one, two, three])
  })

  it('is counted in usage', async () => {
    const { body } = await run([[python('1'), python('2')], python('3')])
    expect(body.usage).toMatchObject({ tool_calls: 3, model_calls: 3 })
    expect(body.usage.sandbox_ms).toBeGreaterThan(0)
  })
})

describe('invalid arguments', () => {
  it.each<[string, Call, RegExp]>([
    ['code that is a number', { name: 'code_execution', args: { code: 42 } }, /code/],
    ['no code', { name: 'code_execution', args: {} }, /code/],
    ['a language that is a list', { name: 'code_execution', args: { code: '1', language: ['bash'] } }, /language/],
    ['a list', { name: 'code_execution', args: [] }, /object|argument|code/i],
    ['null', { name: 'code_execution', args: 'null' }, /object|argument|code/i],
    ['no JSON', { name: 'code_execution', args: '{"code": "1' }, /JSON/],
    // Such arguments can be parsed but not serialized; storing the result used to crash the run repeatedly.
    [
      'nested without end',
      { name: 'code_execution', args: `{"code": ${'['.repeat(50_000)}${']'.repeat(50_000)}}` },
      /deep/,
    ],
    ['a path that is a number', readFile(7), /path/],
    ['a line that is a word', readFile('a', { startLine: 'first' }), /startLine/],
    ['no content', { name: 'file_write', args: { path: 'a' } }, /content/],
    ['a mode that there is not', writeFile('a', 'x', { mode: 'prepend' }), /mode|append/],
    ['replace without find', writeFile('a', 'x', { mode: 'replace' }), /find/],
    ['a tool that there is not', { name: 'no_such_tool', args: {} }, /no_such_tool/],
  ])('are reported to the model and do not fail the run: %s', async (_, call, told) => {
    const [wrong, next] = await outputs(call, python('print("next")'))
    expect(wrong).toMatch(told)
    expect(next!.trim()).toBe('next')
  })

  it('include a tool that the caller did not enable: it does not run', async () => {
    const { body, outputs: all } = await run([writeFile('outputs/a.txt', 'x'), python('import os; os.listdir(".")')], {
      tools: ['code_execution'],
    })
    expect(body.status).toBe('completed')
    expect(body.files).toEqual([])
    expect(all[0]).toMatch(/file_write/)
    const offered = provider.requests.at(-1)!.body.tools?.map(({ function: { name } }) => name)
    expect(offered).toEqual(['code_execution', 'job'])
  })

  it('do not stop the other calls of the same turn', async () => {
    const marker = randomUUID()
    const [wrong, right] = await outputs([{ name: 'code_execution', args: {} }, python(`print("${marker}")`)])
    expect(wrong).toMatch(/code/)
    expect(right!.trim()).toBe(marker)
  })
})
